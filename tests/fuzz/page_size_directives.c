/* SPDX-License-Identifier: MIT */
/*
 * page_size_directives.c - fuzz target: any bytes as the page-size agent's file of directives
 *
 * What is accepted is within the limits, and each site is what its text says.
 */
#include "agents/page-size/apply/directives.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct directives *directives)
{
	struct page_site site;
	uint32_t i;

	if (directives->count > PAGE_APPLY_SITES_MAX)
		abort();
	for (i = 0; i < directives->count; i++) {
		const struct directive *directive = &directives->list[i];

		memset(&site, 0, sizeof(site));
		if (page_site__read(directive->text, &site) != strlen(directive->text) ||
		    memcmp(&site, &directive->site, sizeof(site)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct directives directives;
	char error[DIRECTIVES_ERROR] = "", *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	memset(&directives, 0, sizeof(directives));
	if (directives__parse(&directives, text, error))
		check(&directives);
	else if (!error[0] || !memchr(error, '\0', sizeof(error)))
		abort();
	free(text);
	return 0;
}
