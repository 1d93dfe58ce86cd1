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
	return site + 1 < plan->site_count && !plan->sites[site].refusal;
}

/* Of a whole site in pages of the largest size. */
static uint64_t bytes_of(const struct page_plan *plan, uint32_t site, uint32_t top)
{
	return plan->model_sites.pages[site][top] << plan->calibration.geometry.shifts[top];
}

/* Whole sites within a budget, but for one. What can't be large needs more than any budget. */
static int choose(const struct page_plan *plan, uint64_t bytes, uint32_t but,
		  struct plan_selection *s)
{
	struct page_sites sites = plan->model_sites;
	const struct page_budget budget = {.bytes = bytes, .noise = PLAN_PART_MIN * plan->run_ns};
	const struct page_costs costs = {.quick = plan_cost__quick,
					 .exact = plan_cost__exact,
					 .data = (void *)(uintptr_t)plan};
	uint32_t i, k;

	for (i = 0; i < plan->site_count; i++) {
		k = plan__can_be_large(plan, i) && i != but ? s->top + 1 : 1;
		for (; k < PAGE_SIZES_MAX; k++)
			sites.pages[i][k] = UINT64_C(1) << 32;
	}
	return page_choose(&plan->calibration.geometry, &sites, &budget, &costs, &s->mapping);
}

/* Give a site the smallest pages with which next to nothing is lost. */
static int prune_site(const struct page_plan *plan, struct plan_selection *s, uint32_t site)
{
	struct page_mapping without = s->mapping;
	double part_ns, error_ns;
	uint32_t size;
	int rc = 0;

	for (size = 0; !rc && size < s->mapping.size[site]; size++) {
		without.size[site] = (uint8_t)size;
		rc = plan__saved(plan, &without, &part_ns, &error_ns);
		if (rc || s->saved_ns - part_ns >= PLAN_PART_MIN * plan->run_ns)
			continue;
		s->mapping = without;
		s->saved_ns = part_ns;
		s->error_ns = error_ns;
	}
	return rc;
}

/* Take large pages from sites that gain next to nothing by them: they are scarce. */
static int prune(const struct page_plan *plan, struct plan_selection *s)
{
	uint32_t i;
	int rc = plan__saved(plan, &s->mapping, &s->saved_ns, &s->error_ns);

	for (i = 0; !rc && i < plan->site_count; i++)
		rc = prune_site(plan, s, i);
	s->bytes =
		page_mapping__bytes(&plan->calibration.geometry, &plan->model_sites, &s->mapping);
	return rc;
}

/* Give a site large pages in part, with what the budget has left. */
static int add_part(const struct page_plan *plan, uint64_t budget, uint32_t site,
		    struct plan_selection *s)
{
	uint64_t page = UINT64_C(1) << plan->calibration.geometry.shifts[s->top];
	uint64_t left = (budget - s->bytes) / page * page, whole = bytes_of(plan, site, s->top);
	struct page_mapping with = s->mapping;
	double saved_ns, error_ns, share;
	int rc;

	if (!left || !whole)
		return 0;
	left = left < whole ? left : whole;
	share = (double)left / (double)whole;
	with.size[site] = (uint8_t)s->top;
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
			uint32_t top, uint64_t refused)
{
	double density, most = 0;
	uint32_t i, found = NO_SITE;

	for (i = 0; i < plan->site_count; i++) {
		if (!plan__can_be_large(plan, i) || mapping->size[i] || refused >> i & 1 ||
		    !bytes_of(plan, i, top))
			continue;
		density = plan->sites[i].saved_ns / (double)bytes_of(plan, i, top);
		if (density > most) {
			most = density;
			found = i;
		}
	}
	return found;
}

/* A site that has all it wants is not in part. */
static int tidy(const struct page_plan *plan, struct plan_selection *s)
{
	if (s->part == NO_SITE || s->part_bytes < bytes_of(plan, s->part, s->top))
		return 0;
	s->mapping.size[s->part] = (uint8_t)s->top;
	s->part = NO_SITE;
	s->part_bytes = 0;
	return prune(plan, s);
}

/* The best with one site in part first, and whole ones in what is left then. */
static int part_first(const struct page_plan *plan, uint64_t bytes, uint32_t site, uint32_t top,
		      struct plan_selection *s)
{
	uint64_t whole = bytes_of(plan, site, top);
	int rc;

	*s = (struct plan_selection){.top = top, .part = NO_SITE};
	if (whole < bytes) {
		rc = choose(plan, bytes - whole, site, s);
		if (!rc)
			rc = prune(plan, s);
		if (rc)
			return rc;
	}
	rc = add_part(plan, bytes, site, s);
	return rc ? rc : tidy(plan, s);
}

/* The best choice of pages up to a size. */
static int select_up_to(const struct page_plan *plan, uint64_t bytes, uint32_t top,
			struct plan_selection *selection)
{
	const struct page_mapping small = {{0}};
	struct plan_selection best = {.top = top, .part = NO_SITE}, other;
	uint64_t refused = 0;
	uint32_t site, i;
	int rc = choose(plan, bytes, NO_SITE, &best);

	if (!rc)
		rc = prune(plan, &best);
	if (rc)
		return rc;
	site = densest(plan, &best.mapping, top, 0);
	if (site != NO_SITE)
		rc = add_part(plan, bytes, site, &best);
	if (!rc)
		rc = tidy(plan, &best);
	for (i = 0; !rc && i < PARTS_TRIED; i++) {
		site = densest(plan, &small, top, refused);
		if (site == NO_SITE)
			break;
		refused |= UINT64_C(1) << site;
		rc = part_first(plan, bytes, site, top, &other);
		if (!rc && other.saved_ns > best.saved_ns)
			best = other;
	}
	*selection = best;
	return rc;
}

int plan__select(const struct page_plan *plan, uint64_t bytes, uint64_t largest_bytes,
		 struct plan_selection *selection)
{
	uint32_t top = plan->calibration.geometry.size_count - 1;
	struct plan_selection smaller;
	int rc = select_up_to(plan, bytes < largest_bytes ? bytes : largest_bytes, top, selection);

	if (rc || top == 1 || bytes <= largest_bytes)
		return rc;
	rc = select_up_to(plan, bytes, top - 1, &smaller);
	if (!rc && smaller.saved_ns > selection->saved_ns)
		*selection = smaller;
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
		rc = plan__select(plan, most_bytes >> (10 - step), UINT64_MAX, &s);
		last = &plan->points[plan->point_count - 1];
		if (!rc && s.bytes > last->bytes && s.saved_ns > last->saved_ns)
			plan->points[plan->point_count++] =
				(struct plan_point){s.bytes, s.saved_ns, s.error_ns};
	}
	return rc;
}
