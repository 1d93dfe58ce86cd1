/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * multi.c - attaches a probe's program to all its locations by one link (contract: attach.h)
 *
 * Not here: the system call, and whether the kernel has it (base/uprobe_multi.c).
 */
#include "attach.h"

#include <errno.h>
#include <stdlib.h>

int pem_kernel__link_uprobes(const struct pem_probe *probe, int program,
			     const struct pem_probe_site *const *sites, size_t count,
			     bool only_here)
{
	uint64_t *locations = calloc(2 * count + 1, sizeof(*locations));
	bool counted = false;
	size_t i;
	int rc;

	if (!locations)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		locations[i] = sites[i]->offset;
		locations[count + i] = sites[i]->semaphore;
		counted |= sites[i]->semaphore != 0;
	}
	rc = pem_kernel__create_uprobe_link(program, probe->path, locations,
					    counted ? &locations[count] : NULL, count,
					    probe->kind == PEM_PROBE_URETPROBE, only_here);
	free(locations);
	return rc;
}
