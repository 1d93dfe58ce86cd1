/* SPDX-License-Identifier: MIT */
/* cost.c - the time of a mapping, for the whole run */
#include "internal.h"

#include <math.h>
#include <string.h>

/* What the model says of a mapping, for the references that were kept, without first touches. */
static int weigh(const struct page_plan *plan, const struct page_mapping *mapping,
		 struct page_result *result)
{
	struct page_sites untouched = plan->model_sites;

	memset(untouched.pages, 0, sizeof(untouched.pages));
	return page_model__cost(plan->model, &untouched, mapping, result);
}

double plan_cost__copies(const struct page_plan *plan, uint32_t site, uint32_t size)
{
	const double *copy_ns = plan->calibration.copy_ns;

	if (!size || !plan->sites[site].stores)
		return 0;
	return (double)plan->summary.forks * (double)plan->model_sites.pages[site][size] *
	       fmax(0, copy_ns[size] - copy_ns[0]);
}

static bool share_wrapper(const struct page_site *a, const struct page_site *b)
{
	return a->kind == b->kind && b->frame_count > 1 &&
	       a->frames[0].object == b->frames[0].object &&
	       a->frames[0].offset == b->frames[0].offset;
}

/*
 * Whoever calls by a wrapper of which a site is listed is looked up by further frames, whether
 * listed or not: once for all sites of a wrapper.
 */
static double lookups_ns(const struct page_plan *plan, const struct page_mapping *mapping,
			 uint32_t i)
{
	const struct plan_site *site = &plan->sites[i];
	uint32_t j = 0;

	if (!mapping->size[i] || site->site.frame_count < 2)
		return 0;
	while (j < i && !(mapping->size[j] && share_wrapper(&site->site, &plan->sites[j].site)))
		j++;
	return j < i ? 0 : PLAN_LOOKUP_NS * (double)site->wrapped_calls;
}

/* Small pages are touched first, also where large ones take their place. */
static double touches_ns(const struct page_plan *plan, uint32_t site, uint32_t size)
{
	const struct page_geometry *geometry = &plan->calibration.geometry;
	const uint64_t *pages = plan->model_sites.pages[site];
	double ns = (double)pages[0] * geometry->first_touch_ns[0];

	return size ? ns + (double)pages[size] * plan->calibration.collapse_ns[size] : ns;
}

/* First touches are counted in whole, and only walks are scaled from what was kept. */
static double in_whole(const struct page_plan *plan, const struct page_mapping *mapping,
		       double time_ns)
{
	double cost_ns = time_ns * plan->scale;
	uint32_t i;

	for (i = 0; i < plan->site_count; i++)
		cost_ns += touches_ns(plan, i, mapping->size[i]) +
			   plan_cost__copies(plan, i, mapping->size[i]) +
			   lookups_ns(plan, mapping, i) +
			   (mapping->size[i] ? PLAN_BLOCK_NS * (double)plan->sites[i].calls : 0);
	return cost_ns;
}

int plan_cost__of(const struct page_plan *plan, const struct page_mapping *mapping, double *cost_ns,
		  double *error_ns)
{
	struct page_result result;
	int rc = weigh(plan, mapping, &result);

	if (rc)
		return rc;
	*cost_ns = in_whole(plan, mapping, result.time_ns);
	*error_ns = result.time_error_ns * plan->scale;
	return 0;
}

double plan_cost__quick(void *data, const struct page_mapping *mapping)
{
	const struct page_plan *plan = data;
	struct page_sites untouched = plan->model_sites;
	struct page_result result;
	int rc;

	memset(untouched.pages, 0, sizeof(untouched.pages));
	rc = page_model__estimate(plan->model, &untouched, mapping, &result);
	return rc ? rc : in_whole(plan, mapping, result.time_ns);
}

int plan__saved(const struct page_plan *plan, const struct page_mapping *mapping, double *saved_ns,
		double *error_ns)
{
	double cost, cost_error;
	int rc = plan_cost__of(plan, mapping, &cost, &cost_error);

	if (rc)
		return rc;
	*saved_ns = plan->small_ns - cost;
	*error_ns = hypot(hypot(plan->small_error_ns, cost_error),
			  plan->calibration.noise * fabs(*saved_ns));
	return 0;
}

double plan__percent(const struct page_plan *plan, double saved_ns)
{
	return plan->run_ns > 0 ? fmin(100 * saved_ns / plan->run_ns, 99) : 0;
}

double plan_cost__exact(void *data, const struct page_mapping *mapping)
{
	double cost_ns, error_ns;
	int rc = plan_cost__of(data, mapping, &cost_ns, &error_ns);

	return rc ? rc : cost_ns;
}

/* The last level that holds pages of every size. */
static uint32_t last_level_of_all(const struct page_geometry *geometry)
{
	uint32_t level, pool, sizes, last = 0;

	for (level = 0; level < geometry->level_count; level++) {
		sizes = 0;
		for (pool = 0; pool < geometry->levels[level].pool_count; pool++)
			sizes |= geometry->levels[level].pools[pool].sizes;
		if (sizes == (1u << geometry->size_count) - 1)
			last = level;
	}
	return last;
}

/*
 * A later level that holds small pages only, such as a cache of page tables, would make a miss of a
 * large page count, and that of a small one not.
 */
int plan_cost__walks(const struct page_plan *plan, const struct page_mapping *mapping,
		     double *walks)
{
	struct page_result result;
	int rc = weigh(plan, mapping, &result);

	*walks = rc ? 0
		    : result.misses[last_level_of_all(&plan->calibration.geometry)] * plan->scale;
	return rc;
}
