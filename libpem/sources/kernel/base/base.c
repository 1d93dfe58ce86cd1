/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* base.c - functions on the kernel source's state that all its folders use (contract: base.h) */
#include "base.h"

#include <string.h>

struct pem_source_demand *pem_source__demand_of(const struct pem_source *source, unsigned index)
{
	size_t i;

	for (i = 0; i < source->common.demand_count; i++) {
		if (!source->common.demands[i].error && source->common.demands[i].index == index)
			return &source->common.demands[i];
	}
	return NULL;
}

void pem_kernel__keep_last(char *last, size_t last_bytes, const char *text, const char *end)
{
	const char *start;
	size_t bytes;

	while (end > text && (end[-1] == '\n' || end[-1] == ' '))
		end--;
	bytes = (size_t)(end - text);
	start = bytes < last_bytes ? text : end - (last_bytes - 1);
	bytes = (size_t)(end - start);
	if (!bytes)
		return;
	memcpy(last, start, bytes);
	last[bytes] = '\0';
	for (bytes = 0; last[bytes]; bytes++) {
		if (last[bytes] == '\n' || last[bytes] == '\t')
			last[bytes] = ' ';
	}
}
