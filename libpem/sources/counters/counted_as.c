// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * counted_as.c - what this machine counts an event as, and which events it counts at the same times
 *
 * Nothing is counted here: counters are opened on the calling thread, disabled or for a moment, and
 * closed again.
 */
#include "counters.h"
#include "groups.h"

#include <perfmon/pfmlib.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A counter of the kernel's own takes none of the processor. */
static int takes_counter(const struct perf_event_attr *attr)
{
	return attr->type != PERF_TYPE_SOFTWARE;
}

/* The counters of the processor's cores, as libpfm4 knows them. */
static void find_counters(struct pem_counted_as *as)
{
	pfm_pmu_info_t info;
	int pmu;

	for (pmu = PFM_PMU_NONE; pmu < PFM_PMU_MAX; pmu++) {
		memset(&info, 0, sizeof(info));
		info.size = sizeof(info);
		if (pfm_get_pmu_info((pfm_pmu_t)pmu, &info) != PFM_SUCCESS || !info.is_present ||
		    info.type != PFM_PMU_TYPE_CORE || info.num_cntrs <= 0)
			continue;
		as->counters = (uint32_t)info.num_cntrs;
		as->fixed_counters = info.num_fixed_cntrs > 0 ? (uint32_t)info.num_fixed_cntrs : 0;
		return;
	}
}

int counter__counted_as(const struct pem_event *event, struct pem_counted_as *as)
{
	struct perf_event_attr attr;
	int rc;

	if (event->source_kind != PEM_SOURCE_PERF)
		return -ENOENT;
	rc = counter__encode_first(event->source_name, &attr, as->name, sizeof(as->name));
	if (rc < 0)
		return rc;
	as->type = attr.type;
	as->config = attr.config;
	as->takes_counter = (uint32_t)takes_counter(&attr);
	find_counters(as);
	return 0;
}

/* Returns 0, or -errno if the event takes no counter or can't be counted. */
static int encode(const struct pem_event *event, struct perf_event_attr *attr)
{
	struct perf_event_attr tried;
	int rc;

	if (event->source_kind != PEM_SOURCE_PERF)
		return -ENOENT;
	rc = counter__encode(event->source_name, attr);
	if (rc < 0 || !takes_counter(attr))
		return rc < 0 ? rc : -ENOENT;
	tried = *attr;
	rc = counter__try(&tried);
	attr->exclude_kernel = tried.exclude_kernel;
	return rc;
}

int counter__turns(const struct pem_event *const *events, size_t count, uint32_t *turns)
{
	struct group_item *items = calloc(count + 1, sizeof(*items));
	size_t *at = calloc(count + 1, sizeof(*at)), i, used = 0;
	int rc = -ENOMEM;

	if (!items || !at)
		goto out;
	for (i = 0; i < count; i++)
		if (encode(events[i], &items[used].attr) == 0)
			at[used++] = i;
	groups__part(items, used);
	rc = (int)groups__plan(items, used, groups__fit, NULL);
	for (i = 0; i < used; i++)
		turns[at[i]] = items[i].group + 1;
out:
	free(items);
	free(at);
	return rc;
}
