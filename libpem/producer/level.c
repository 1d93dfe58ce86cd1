/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * level.c - how much an event of this process's own providers matters, by the model text that they bring
 *
 * Asked for only when a session wants what it has not met, up to a level. Not here: parsing models (model_parse.c).
 */
#include "model_internal.h"
#include "producer/producer.h"

#include <stdio.h>
#include <string.h>

unsigned pem_provider__level(const struct pem_provider *provider, uint32_t i, const char **at)
{
	char start[sizeof("\nevent\t01234567\t")];
	const char *line;
	size_t length;
	unsigned cell;

	snprintf(start, sizeof(start), "\nevent\t%08x\t", provider->event_ids[i]);
	line = strstr(*at, start);
	if (!line)
		line = strstr(provider->model, start);
	if (!line)
		return PEM_LEVEL_INFO;
	*at = line++;
	for (cell = 0; cell < 7; cell++) {
		line += strcspn(line, "\t\n");
		if (*line != '\t')
			return PEM_LEVEL_INFO;
		line++;
	}
	length = strcspn(line, "\t\n");
	for (cell = PEM_LEVEL_ERROR; cell < PEM_LEVEL_COUNT; cell++) {
		if (strlen(pem_level_words[cell]) == length &&
		    !memcmp(pem_level_words[cell], line, length))
			return cell;
	}
	return PEM_LEVEL_INFO;
}
