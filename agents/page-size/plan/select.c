/* SPDX-License-Identifier: MIT */
/*
 * select.c - which sites get large pages within a budget
 *
 * The model answers for whole sites. A site that does not fit may have large pages in part: its
 * references are taken to be spread evenly, so that half of its large pages save half.
 */
#include "internal.h"

#include <math.h>

/* So many sites are tried as the one that has large pages in part. */
#define PARTS_TRIED 4u
#define NO_SITE UINT32_MAX

bool plan__can_be_large(const struct page_plan *plan, uint32_t site)
{
	/* The kernel lays the stack out, and lets it grow, as it likes. */
	return site + 1 < plan->site_count && plan->sites[site].site.kind != PAGE_SITE_STACK;
}

static uint64_t bytes_of(const struct page_plan *plan, uint32_t site)
{
	return plan->model_sites.pages[site][1] << plan->calibration.geometry.shifts[1];
}

/* Whole sites within a budget, but for one. What can't be large needs more than any budget. */
static int choose(const struct page_plan *plan, uint64_t bytes, uint32_t but,
		  struct page_mapping *mapping)
{
	struct page_sites sites = plan->model_sites;
	const struct page_budget budget = {.bytes = bytes, .noise = PLAN_PART_MIN * plan->run_ns};
	const struct page_costs costs = {.quick = plan_cost__quick,
					 .exact = plan_cost__exact,
					 .data = (void *)(uintptr_t)plan};
	uint32_t i, k;

	for (i = 0; i < plan->site_count; i++) {
		if (plan__can_be_large(plan, i) && i != but)
			continue;
		for (k = 1; k < PAGE_SIZES_MAX; k++)
			sites.pages[i][k] = UINT64_C(1) << 32;
	}
	return page_choose(&plan->calibration.geometry, &sites, &budget, &costs, mapping);
}

/* Take large pages from sites that gain next to nothing by them: they are scarce. */
static int prune(const struct page_plan *plan, struct plan_selection *s)
{
	struct page_mapping without;
	double part_ns, error_ns;
	uint32_t i;
	int rc = plan__saved(plan, &s->mapping, &s->saved_ns, &s->error_ns);

	for (i = 0; !rc && i < plan->site_count; i++) {
		if (!s->mapping.size[i])
			continue;
		without = s->mapping;
		without.size[i] = 0;
		rc = plan__saved(plan, &without, &part_ns, &error_ns);
		if (rc || s->saved_ns - part_ns >= PLAN_PART_MIN * plan->run_ns)
			continue;
		s->mapping = without;
		s->saved_ns = part_ns;
		s->error_ns = error_ns;
	}
	s->bytes =
		page_mapping__bytes(&plan->calibration.geometry, &plan->model_sites, &s->mapping);
	return rc;
}

/* Give a site large pages in part, with what the budget has left. */
static int add_part(const struct page_plan *plan, uint64_t budget, uint32_t site,
		    struct plan_selection *s)
{
	uint64_t page = UINT64_C(1) << plan->calibration.geometry.shifts[1];
	uint64_t left = (budget - s->bytes) / page * page, whole = bytes_of(plan, site);
	struct page_mapping with = s->mapping;
	double saved_ns, error_ns, share;
	int rc;

	if (!left || !whole)
		return 0;
	left = left < whole ? left : whole;
	share = (double)left / (double)whole;
	with.size[site] = 1;
	rc = plan__saved(plan, &with, &saved_ns, &error_ns);
	if (rc || (saved_ns - s->saved_ns) * share < PLAN_PART_MIN * plan->run_ns)
		return rc;
	s->saved_ns += (saved_ns - s->saved_ns) * share;
	s->error_ns = fmax(s->error_ns, error_ns * share);
	s->part = site;
	s->part_bytes = left;
	s->bytes += left;
	return 0;
}

/* The site that saves most for its large pages, among those that are not large yet or refused. */
static uint32_t densest(const struct page_plan *plan, const struct page_mapping *mapping,
			uint64_t refused)
{
	double density, most = 0;
	uint32_t i, found = NO_SITE;

	for (i = 0; i < plan->site_count; i++) {
		if (!plan__can_be_large(plan, i) || mapping->size[i] || refused >> i & 1 ||
		    !bytes_of(plan, i))
			continue;
		density = plan->sites[i].saved_ns / (double)bytes_of(plan, i);
		if (density > most) {
			most = density;
			found = i;
		}
	}
	return found;
}

/* The best with one site in part first, and whole ones in what is left then. */
static int part_first(const struct page_plan *plan, uint64_t bytes, uint32_t site,
		      struct plan_selection *s)
{
	uint64_t whole = bytes_of(plan, site);
	int rc;

	*s = (struct plan_selection){.part = NO_SITE};
	if (whole < bytes) {
		rc = choose(plan, bytes - whole, site, &s->mapping);
		if (!rc)
			rc = prune(plan, s);
		if (rc)
			return rc;
	}
	return add_part(plan, bytes, site, s);
}

/* A site that has all it wants is not in part. */
static void tidy(const struct page_plan *plan, struct plan_selection *s)
{
	if (s->part == NO_SITE || s->part_bytes < bytes_of(plan, s->part))
		return;
	s->mapping.size[s->part] = 1;
	s->part = NO_SITE;
	s->part_bytes = 0;
}

int plan__select(const struct page_plan *plan, uint64_t bytes, struct plan_selection *selection)
{
	const struct page_mapping small = {{0}};
	struct plan_selection best = {.part = NO_SITE}, other;
	uint64_t refused = 0;
	uint32_t site, i;
	int rc = choose(plan, bytes, NO_SITE, &best.mapping);

	if (!rc)
		rc = prune(plan, &best);
	if (rc)
		return rc;
	site = densest(plan, &best.mapping, 0);
	if (site != NO_SITE)
		rc = add_part(plan, bytes, site, &best);
	for (i = 0; !rc && i < PARTS_TRIED; i++) {
		site = densest(plan, &small, refused);
		if (site == NO_SITE)
			break;
		refused |= UINT64_C(1) << site;
		rc = part_first(plan, bytes, site, &other);
		if (!rc && other.saved_ns > best.saved_ns)
			best = other;
	}
	tidy(plan, &best);
	*selection = best;
	return rc;
}

int plan__find_points(struct page_plan *plan, uint64_t most_bytes)
{
	struct plan_selection s;
	struct plan_point *last;
	uint32_t step;
	int rc = 0;

	plan->points[plan->point_count++] = (struct plan_point){0};
	for (step = 0; step < 11 && !rc; step++) {
		rc = plan__select(plan, most_bytes >> (10 - step), &s);
		last = &plan->points[plan->point_count - 1];
		if (!rc && s.bytes > last->bytes && s.saved_ns > last->saved_ns)
			plan->points[plan->point_count++] =
				(struct plan_point){s.bytes, s.saved_ns, s.error_ns};
	}
	return rc;
}
