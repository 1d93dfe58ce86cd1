// SPDX-License-Identifier: MIT
/* counts.c - the counts of each directive */
#include "counts.h"

#include "start.h"

struct counts counts__all[PAGE_APPLY_SITES_MAX];

void counts__after_fork_child(void)
{
	uint32_t i;

	for (i = 0; i < apply__directives.count; i++) {
		struct counts *counts = &counts__all[i];

		*counts = (struct counts){
			.bytes = counts->bytes, .peak = counts->bytes, .most = counts->most};
	}
}
