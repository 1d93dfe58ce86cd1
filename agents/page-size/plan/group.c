/* SPDX-License-Identifier: MIT */
/* group.c - which allocation contexts are one site, and which sites matter */
#include "plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A site with less memory has nothing to gain from a large page. */
#define SITE_BYTES_MIN (256u << 10)
/*
 * Callers of a function that allocates for them are told apart if one's memory is used this many
 * times as much as another's, byte for byte. Else one frame does, which costs less to look up.
 */
#define DENSITY_RATIO_MIN 4.0

struct context {
	const struct page_profile_site *site;
	uint32_t index; /* in the profile */
};

struct group {
	uint32_t first, count; /* contexts */
	uint32_t frames; /* that its contexts have in common, as many as name it */
	uint64_t bytes, references, chained, calls;
};

struct grouping {
	struct context *contexts;
	struct group *groups;
	uint32_t context_count, group_count;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_frames(const struct page_site *a, const struct page_site *b, uint32_t frame)
{
	int order;

	if (frame >= a->frame_count || frame >= b->frame_count)
		return compare_numbers(a->frame_count > frame, b->frame_count > frame);
	order = compare_numbers(a->frames[frame].object, b->frames[frame].object);
	return order ? order : compare_numbers(a->frames[frame].offset, b->frames[frame].offset);
}

static int compare_contexts(const void *a, const void *b)
{
	const struct page_site *x = &((const struct context *)a)->site->site;
	const struct page_site *y = &((const struct context *)b)->site->site;
	int order = compare_numbers(x->kind, y->kind);
	uint32_t i;

	for (i = 0; !order && i < PAGE_FRAMES_MAX; i++)
		order = compare_frames(x, y, i);
	return order;
}

static struct group sum(const struct grouping *g, uint32_t first, uint32_t count, uint32_t frames)
{
	struct group group = {.first = first, .count = count, .frames = frames};
	const struct page_profile_site *site;
	uint32_t i;

	for (i = first; i < first + count; i++) {
		site = g->contexts[i].site;
		group.bytes += site->requested ? site->requested : site->bytes;
		group.references += site->references;
		group.chained += site->chained;
		group.calls += site->calls;
	}
	return group;
}

/* How many contexts from first on have this frame in common. */
static uint32_t run_of(const struct grouping *g, uint32_t first, uint32_t end, uint32_t frame)
{
	uint32_t i = first + 1;

	while (i < end &&
	       !compare_frames(&g->contexts[first].site->site, &g->contexts[i].site->site, frame))
		i++;
	return i - first;
}

/* Is the memory of some callers used far more than that of others? */
static bool differ(const struct grouping *g, uint32_t first, uint32_t end, uint32_t frame)
{
	double least = 0, most = 0, density;
	uint32_t i, count, seen = 0;
	struct group child;

	for (i = first; i < end; i += count) {
		count = run_of(g, i, end, frame);
		child = sum(g, i, count, frame);
		if (child.bytes < SITE_BYTES_MIN)
			continue;
		/* One reference more, so that memory which was not used has a density. */
		density = (double)(child.references + 1) / (double)child.bytes;
		least = seen && least < density ? least : density;
		most = seen && most > density ? most : density;
		seen++;
	}
	return seen > 1 && most > DENSITY_RATIO_MIN * least;
}

/* Contexts that share frames frames are one group, or several that more frames tell apart. */
static void part(struct grouping *g, uint32_t first, uint32_t end, uint32_t frame, uint32_t frames)
{
	uint32_t i, count;

	while (frame < PAGE_FRAMES_MAX && run_of(g, first, end, frame) == end - first)
		frame++;
	if (frame >= PAGE_FRAMES_MAX || !differ(g, first, end, frame)) {
		g->groups[g->group_count++] = sum(g, first, end - first, frames);
		return;
	}
	for (i = first; i < end; i += count) {
		count = run_of(g, i, end, frame);
		part(g, i, i + count, frame + 1, frame + 1);
	}
}

static void part_all(struct grouping *g)
{
	uint32_t i, count;

	qsort(g->contexts, g->context_count, sizeof(*g->contexts), compare_contexts);
	for (i = 0; i < g->context_count; i += count) {
		const struct page_site *site = &g->contexts[i].site->site;

		count = run_of(g, i, g->context_count, 0);
		while (g->contexts[i + count - 1].site->site.kind != site->kind)
			count--;
		part(g, i, i + count, 1, site->frame_count ? 1 : 0);
	}
}

static bool matters(const struct group *group)
{
	return group->bytes >= SITE_BYTES_MIN && group->references;
}

/* The hottest of those that matter first. */
static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (matters(x) != matters(y))
		return matters(y) - matters(x);
	if (x->references != y->references)
		return compare_numbers(y->references, x->references);
	return compare_numbers(x->first, y->first);
}

/* Blocks of all who call the allocator from the same place as a group. */
static uint64_t wrapped_calls(const struct grouping *g, const struct group *group)
{
	const struct page_site *site = &g->contexts[group->first].site->site, *other;
	uint64_t calls = 0;
	uint32_t i;

	for (i = 0; i < g->context_count; i++) {
		other = &g->contexts[i].site->site;
		if (other->kind == site->kind && !compare_frames(other, site, 0))
			calls += g->contexts[i].site->calls;
	}
	return calls;
}

static void fill(struct page_plan *plan, const struct grouping *g, uint64_t references,
		 uint32_t *index)
{
	struct plan_site *site, *rest;
	const struct group *group;
	uint32_t i, k, at, told = 0;

	while (told < g->group_count && told < PAGE_SITES_MAX - 1 && matters(&g->groups[told]))
		told++;
	memset(plan->sites, 0, sizeof(plan->sites));
	plan->site_count = told + 1;
	rest = &plan->sites[told];
	for (i = 0; i < g->group_count; i++) {
		group = &g->groups[i];
		at = i < told ? i : told;
		site = &plan->sites[at];
		if (site != rest) {
			site->site = g->contexts[group->first].site->site;
			site->site.frame_count = group->frames;
			if (group->frames > 1)
				site->wrapped_calls = wrapped_calls(g, group);
		}
		site->bytes += group->bytes;
		site->share += (double)group->references;
		site->chained += (double)group->chained;
		site->calls += group->calls;
		for (k = group->first; k < group->first + group->count; k++)
			index[g->contexts[k].index] = at;
	}
	for (i = 0; i < plan->site_count; i++) {
		site = &plan->sites[i];
		if (site->share > 0)
			site->chained /= site->share;
		if (references)
			site->share /= (double)references;
	}
}

int plan__group(struct page_plan *plan, const struct page_profile_site *sites, uint32_t count,
		uint32_t *index)
{
	struct grouping g = {.context_count = count};
	uint32_t i;

	g.contexts = calloc(count + 1, sizeof(*g.contexts));
	g.groups = calloc(count + 1, sizeof(*g.groups));
	if (g.contexts && g.groups) {
		for (i = 0; i < count; i++)
			g.contexts[i] = (struct context){.site = &sites[i], .index = i};
		part_all(&g);
		qsort(g.groups, g.group_count, sizeof(*g.groups), compare_groups);
		fill(plan, &g, plan->summary.kept, index);
	}
	free(g.contexts);
	free(g.groups);
	return g.contexts && g.groups ? 0 : -ENOMEM;
}
