/* SPDX-License-Identifier: MIT */
/* plan.c - the references of a profile, the model, and the choice */
#include "internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256u
/*
 * Of a run whose instructions were not counted: programs refer to memory in a third to a half of
 * them.
 */
#define INSTRUCTIONS_PER_REFERENCE 2.5
/* Compiler hooks see no spilled registers, calls and returns, and nothing in libraries. */
#define INSTRUCTIONS_PER_HOOK 5.5
/* The run's time is known from its instructions only: this factor either way covers 95 %. */
#define RUN_FACTOR 1.6

static int say(struct pem_error *error, int code, const char *sentence)
{
	snprintf(error->text, sizeof(error->text), "%s", sentence);
	return code;
}

/* The model failed: for want of memory, or its callers gave it what it can't work with. */
static int refuse(struct pem_error *error, int code)
{
	return say(error, code,
		   code == -ENOMEM ? "there is not enough memory for the model"
				   : "the model refuses the machine's calibration");
}

/* --- feeding the model --- */

/* Give the model references from a batch, up to one that starts a burst. How many; or -errno. */
static int64_t feed_burst(struct page_plan *plan, const struct page_profile_reference *read,
			  int64_t count, const uint32_t *index)
{
	struct page_reference batch[BATCH];
	uint32_t rest = plan->site_count - 1;
	int64_t i;
	int rc;

	for (i = 0; i < count && (i == 0 || !read[i].starts); i++) {
		batch[i].address = read[i].address;
		batch[i].site = read[i].site == UINT32_MAX ? rest : index[read[i].site];
		plan->sites[batch[i].site].stores += read[i].flags & 1;
	}
	rc = page_model__add(plan->model, batch, (size_t)i);
	return rc ? rc : i;
}

static int feed(struct page_plan *plan, struct page_profile *profile, const uint32_t *index,
		void (*progress)(uint64_t done, uint64_t total, void *arg), void *arg,
		struct pem_error *error)
{
	struct page_profile_reference read[BATCH];
	uint64_t done = 0;
	int64_t n, at, fed;

	page_profile__rewind(profile);
	while ((n = page_profile__read(profile, read, BATCH, error)) > 0) {
		for (at = 0; at < n; at += fed) {
			/* What comes before the program's first burst is nothing. */
			if (read[at].starts && done + (uint64_t)at)
				page_model__gap(plan->model);
			fed = feed_burst(plan, read + at, n - at, index);
			if (fed < 0)
				return say(error, (int)fed,
					   "there is not enough memory for the model");
		}
		done += (uint64_t)n;
		if (progress)
			progress(done, plan->summary.kept, arg);
	}
	return (int)n;
}

/* Is an object the C library, or the loader, whose calls of mmap nobody can stand between? */
static bool is_c_library(const struct page_profile *profile, uint64_t object)
{
	const char *path = page_profile__path(profile, object), *slash;

	if (!path)
		return false;
	slash = strrchr(path, '/');
	path = slash ? slash + 1 : path;
	return !strncmp(path, "libc.so.", 8) || !strncmp(path, "libc-2.", 7) ||
	       !strncmp(path, "ld-linux", 8);
}

/* What the preloaded allocator can't give large pages (../apply/maps.c). */
static void refuse_sites(struct page_plan *plan, const struct page_profile *profile,
			 const struct page_profile_site *sites, uint32_t count,
			 const uint32_t *index)
{
	uint64_t longest[PAGE_SITES_MAX] = {0};
	struct plan_site *site;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (longest[index[i]] < sites[i].longest)
			longest[index[i]] = sites[i].longest;
	}
	for (i = 0; i + 1 < plan->site_count; i++) {
		site = &plan->sites[i];
		/* The kernel lays the stack out, and lets it grow, as it likes. */
		if (site->site.kind == PAGE_SITE_STACK)
			site->refusal = "pages of the stack are the kernel's";
		else if (site->site.kind != PAGE_SITE_MAP && site->site.kind != PAGE_SITE_RESERVED)
			continue;
		else if (is_c_library(profile, site->site.frames[0].object))
			site->refusal = "the C library maps it for itself, such as stacks of "
					"threads";
		else if (site->site.kind == PAGE_SITE_RESERVED)
			site->refusal = "it is mapped in a way that can't be changed";
		else if (longest[i] < UINT64_C(1) << plan->calibration.geometry.shifts[1])
			site->refusal = "each of its mappings is smaller than a large page";
	}
}

static double instructions_of(const struct page_profile_summary *summary)
{
	double each = summary->source == PROFILE_COMPILER ? INSTRUCTIONS_PER_HOOK
							  : INSTRUCTIONS_PER_REFERENCE;

	return summary->instructions ? (double)summary->instructions
				     : each * (double)summary->references;
}

/*
 * How many pages of each size a site touches: those that were seen, for one reference that was kept
 * as many as it stands for, and no more than its memory has.
 */
static void count_pages(struct page_plan *plan)
{
	const struct page_geometry *geometry = &plan->calibration.geometry;
	struct page_sites *sites = &plan->model_sites;
	const struct plan_site *site;
	uint64_t last;
	uint32_t i, k;

	page_model__pages(plan->model, sites);
	sites->instructions_per_reference =
		instructions_of(&plan->summary) / (double)plan->summary.references;
	for (i = 0; i < plan->site_count; i++) {
		site = &plan->sites[i];
		sites->latency_share[i] = fmin(fmax(site->chained, 0), 1);
		for (k = 0; k < geometry->size_count; k++) {
			last = (UINT64_C(1) << geometry->shifts[k]) - 1;
			sites->pages[i][k] = (uint64_t)fmin(
				(double)sites->pages[i][k] * plan->scale,
				(double)((site->bytes + last) >> geometry->shifts[k]));
		}
	}
}

/* --- the choice --- */

/* Which sites miss the TLB if all pages are small. */
static int share_walks(struct page_plan *plan)
{
	const struct page_mapping small = {{0}};
	struct page_result result;
	uint32_t i;
	int rc = page_model__cost(plan->model, &plan->model_sites, &small, &result);

	for (i = 0; !rc && i < plan->site_count; i++)
		plan->sites[i].walks = result.walks > 0 ? result.site_walks[i] / result.walks : 0;
	return rc;
}

/* What each site would save alone, with the large pages that save most. */
static int weigh_alone(struct page_plan *plan)
{
	struct page_mapping alone = {{0}};
	double saved_ns, error_ns;
	uint32_t i, k;
	int rc = 0;

	for (i = 0; i + 1 < plan->site_count; i++) {
		struct plan_site *site = &plan->sites[i];

		for (k = 1; !rc && k < plan->calibration.geometry.size_count; k++) {
			alone.size[i] = (uint8_t)k;
			rc = plan__saved(plan, &alone, &saved_ns, &error_ns);
			if (rc || (site->alone && saved_ns <= site->saved_ns))
				continue;
			site->alone = k;
			site->saved_ns = saved_ns;
		}
		alone.size[i] = 0;
	}
	return rc;
}

static const char *reason_of(const struct page_plan *plan, uint32_t at)
{
	const struct plan_site *site = &plan->sites[at];
	uint64_t bytes = plan->model_sites.pages[at][1] << plan->calibration.geometry.shifts[1];

	if (at + 1 == plan->site_count)
		return "everything else, which is not told apart";
	if (site->in_part)
		return "chosen in part: the budget has no more";
	if (site->size)
		return "chosen";
	if (site->refusal)
		return site->refusal;
	if (site->saved_ns < PLAN_PART_MIN * plan->run_ns)
		return site->saved_ns + plan_cost__copies(plan, at, site->alone) <
				       PLAN_PART_MIN * plan->run_ns
			       ? "nothing to gain"
			       : "copies after forks would cost more than it gains";
	if (bytes > plan->budget_bytes)
		return "it needs more than the budget, or than the machine has";
	if (plan->bytes + bytes > plan->budget_bytes)
		return "others gain more within the budget";
	return "nothing to gain beside the others";
}

/* What is lost without each of the chosen. */
static int weigh_parts(struct page_plan *plan, const struct plan_selection *s)
{
	struct page_mapping without;
	double whole, part, error_ns;
	uint32_t i;
	int rc = plan__saved(plan, &s->mapping, &whole, &error_ns);

	for (i = 0; !rc && i < plan->site_count; i++) {
		if (!s->mapping.size[i])
			continue;
		without = s->mapping;
		without.size[i] = 0;
		rc = plan__saved(plan, &without, &part, &error_ns);
		plan->sites[i].part_ns = whole - part;
	}
	if (s->part < plan->site_count)
		plan->sites[s->part].part_ns = s->saved_ns - whole;
	return rc;
}

static void take_selection(struct page_plan *plan, const struct plan_selection *s)
{
	const uint32_t *shifts = plan->calibration.geometry.shifts;
	double spread = 1.96 * s->error_ns;
	uint32_t i;

	for (i = 0; i < plan->site_count; i++) {
		struct plan_site *site = &plan->sites[i];

		site->size = s->mapping.size[i];
		site->large_bytes = site->size ? plan->model_sites.pages[i][site->size]
							 << shifts[site->size]
					       : 0;
	}
	if (s->part < plan->site_count) {
		plan->sites[s->part].size = s->top;
		plan->sites[s->part].in_part = true;
		plan->sites[s->part].large_bytes = s->part_bytes;
	}
	plan->bytes = s->bytes;
	plan->saved_ns = s->saved_ns;
	plan->error_ns = s->error_ns;
	plan->gain = plan__percent(plan, plan->saved_ns);
	plan->gain_low = plan__percent(plan, (plan->saved_ns - spread) / RUN_FACTOR);
	plan->gain_high = plan__percent(plan, (plan->saved_ns + spread) * RUN_FACTOR);
}

static int decide(struct page_plan *plan)
{
	const struct page_mapping small = {{0}};
	uint32_t i, largest = plan->calibration.geometry.size_count - 1;
	struct plan_selection selection;
	int rc = share_walks(plan);

	if (!rc)
		rc = weigh_alone(plan);
	if (!rc)
		rc = plan__select(plan, plan->budget_bytes, plan->calibration.supply_bytes[largest],
				  &selection);
	if (!rc)
		rc = weigh_parts(plan, &selection);
	if (!rc)
		rc = plan_cost__walks(plan, &small, &plan->small_walks);
	if (!rc)
		rc = plan_cost__walks(plan, &selection.mapping, &plan->walks);
	if (rc)
		return rc;
	take_selection(plan, &selection);
	for (i = 0; i < plan->site_count; i++)
		plan->sites[i].reason = reason_of(plan, i);
	return 0;
}

/* With the largest pages for each site. */
static uint64_t bytes_of_all(const struct page_plan *plan)
{
	uint32_t i, largest = plan->calibration.geometry.size_count - 1;
	uint64_t bytes = 0;

	for (i = 0; i + 1 < plan->site_count; i++)
		bytes += plan->model_sites.pages[i][largest]
			 << plan->calibration.geometry.shifts[largest];
	return bytes;
}

int plan__make(struct page_plan *plan, struct page_profile *profile,
	       const struct page_calibration *calibration, uint64_t budget_bytes,
	       void (*progress)(uint64_t done, uint64_t total, void *arg), void *arg,
	       struct pem_error *error)
{
	const struct page_mapping small = {{0}};
	const struct page_profile_site *sites;
	uint32_t count, *index;
	int rc;

	memset(plan, 0, sizeof(*plan));
	plan->summary = *page_profile__summary(profile);
	plan->calibration = *calibration;
	if (!plan->summary.kept)
		return say(error, -ENODATA, "the profile has no reference to memory");
	if (calibration->geometry.size_count < 2)
		return say(error, -ENODATA, "this machine has pages of one size only");
	sites = page_profile__sites(profile, &count);
	index = calloc(count + 1, sizeof(*index));
	rc = index ? plan__group(plan, sites, count, index) : -ENOMEM;
	if (!rc) {
		refuse_sites(plan, profile, sites, count, index);
		plan->model = page_model__new(&calibration->geometry, plan->site_count, 1);
		rc = plan->model ? 0 : -errno;
	}
	if (rc)
		refuse(error, rc);
	else
		rc = feed(plan, profile, index, progress, arg, error);
	free(index);
	if (rc)
		return rc;
	plan->scale = fmax(1, (double)plan->summary.references / (double)plan->summary.kept);
	count_pages(plan);
	plan->budget_bytes = budget_bytes;
	if (plan->budget_bytes > calibration->supply_bytes[1])
		plan->budget_bytes = calibration->supply_bytes[1];
	rc = plan_cost__of(plan, &small, &plan->small_ns, &plan->small_error_ns);
	plan->run_ns =
		plan->small_ns + instructions_of(&plan->summary) * calibration->ns_per_instruction;
	if (!rc)
		rc = decide(plan);
	if (!rc)
		rc = plan__find_points(plan, bytes_of_all(plan));
	return rc ? refuse(error, rc) : 0;
}

void plan__free(struct page_plan *plan)
{
	page_model__free(plan->model);
	plan->model = NULL;
}
