/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * descriptors.c - how many descriptors are left for probes, and how many a probe takes
 *
 * A probe takes two or more descriptors, and patterns can name hundreds of probes. The recorder
 * needs some later: a pipe to its command, the streams of its trace, the pools of new processes. So
 * probes leave it a share. If descriptors run short, probes are left out rather than the recorder.
 */
#include "attach.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define RESERVE_MOST 256u

size_t pem_kernel__spare_descriptors(void)
{
	struct rlimit its;
	size_t limit = getrlimit(RLIMIT_NOFILE, &its) ? 0 : (size_t)its.rlim_cur;
	size_t reserve = limit / 4 < RESERVE_MOST ? limit / 4 : RESERVE_MOST;
	int fd = eventfd(0, EFD_CLOEXEC); /* the lowest free descriptor: few below it are free */

	if (fd < 0)
		return 0;
	close(fd);
	return limit > (size_t)fd + reserve ? limit - (size_t)fd - reserve : 0;
}

/* One program; for a static probe one for each set of argument locations. */
static size_t programs_of(const struct pem_probe *probe)
{
	size_t i, k, count = 0;

	if (probe->kind != PEM_PROBE_USDT)
		return 1;
	for (i = 0; i < probe->site_count; i++) {
		for (k = 0; k < i; k++) {
			if (pem_usdt_arguments__same(&probe->sites[k], &probe->sites[i]))
				break;
		}
		count += k == i;
	}
	return count;
}

size_t pem_probe__descriptors(const struct pem_probe *probe, bool by_multi)
{
	size_t programs = programs_of(probe), locations = probe->site_count ? probe->site_count : 1;

	return programs + (by_multi ? programs : locations);
}
