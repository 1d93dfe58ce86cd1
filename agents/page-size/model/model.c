// SPDX-License-Identifier: MIT
/*
 * model.c - reads references once, and then knows the misses of every mapping
 *
 * Invariant: a row of the sample says, for one reference, for each pool of the TLB, and for each
 * page size that its site might have, how many pages of each site and page size in its set were
 * used since its own page was. Under any mapping, the stack distance of the reference is the sum
 * over the sites of the number of each site's page size, and the reference misses if the sum is at
 * least the ways.
 *
 * Sources: Mattson, Gecsei, Slutz, Traiger, Evaluation techniques for storage hierarchies, IBM
 * Systems Journal 9(2), 1970, for stack distances and for one stack per set; Hill and Smith,
 * Evaluating associativity in CPU caches, IEEE Transactions on Computers 38(12), 1989, for all
 * sets in one pass; Cascaval, Duesterwald, Sweeney, Wisniewski, Multiple page size modeling and
 * optimization, PACT 2005, for page sizes by data structure. Numbers stop at the ways, so nothing
 * but the set of touched pages grows with the program.
 *
 * What distances get wrong: that a later level sees every reference, where it sees only those that
 * missed the levels before it; and that every pool is LRU. Windows of the references are simulated
 * to correct that (replay.h).
 */
#include "pages.h"
#include "replay.h"
#include "samples.h"
#include "stacks.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VIEWS_MAX (PAGE_LEVELS_MAX * PAGE_POOLS_MAX)
#define PREFETCH_AHEAD 8

/* The numbers of one pool for one page size of the reference's own site. */
struct block {
	uint32_t offset; /* in a row */
	uint32_t view;
	bool present; /* the level has a pool for the size */
};

struct page_model {
	struct page_geometry geometry;
	uint32_t site_count;
	uint64_t seen; /* references */
	uint64_t now; /* references to a page other than the one before */
	uint64_t repeats[PAGE_SITES_MAX]; /* the others: hits in the first level with the size */
	uint64_t last; /* the key of the smallest page of the one before */
	uint32_t cold; /* references after a gap that are still to be left uncounted */
	uint64_t uncounted;
	bool failed;
	struct stacks views[VIEWS_MAX];
	uint32_t group_shifts[VIEWS_MAX];
	uint32_t view_count;
	struct block blocks[PAGE_LEVELS_MAX][PAGE_SIZES_MAX]; /* [level][own size] */
	struct pages pages;
	uint64_t touched[PAGE_SITES_MAX][PAGE_SIZES_MAX];
	struct samples samples; /* a row begins with the site */
	struct replay replay;
	bool replay_needed; /* distances alone may be wrong */
};

static bool needs_replay(const struct page_geometry *geometry)
{
	bool needed = geometry->level_count > 1;
	uint32_t i;

	for (i = 0; i < geometry->levels[0].pool_count; i++)
		needed = needed || geometry->levels[0].pools[i].replacement != PAGE_LRU;
	return needed;
}

static int make_views(struct page_model *model)
{
	const struct page_geometry *geometry = &model->geometry;
	uint32_t level, i, size, width = 1;
	struct block *block;
	struct stacks *view;

	for (level = 0; level < geometry->level_count; level++) {
		for (i = 0; i < geometry->levels[level].pool_count; i++) {
			model->group_shifts[model->view_count] =
				geometry->levels[level].group_shift;
			view = &model->views[model->view_count++];
			if (stacks__init(view, &geometry->levels[level].pools[i],
					 model->site_count) < 0)
				return -ENOMEM;
			for (size = 0; size < geometry->size_count; size++) {
				if (!stacks__hold(view, size))
					continue;
				block = &model->blocks[level][size];
				block->view = model->view_count - 1;
				block->present = true;
				block->offset = width;
				width += view->slot_count * model->site_count;
			}
		}
	}
	samples__init(&model->samples, width, model->samples.random);
	replay__init(&model->replay, geometry->shifts[0]);
	model->replay_needed = needs_replay(geometry);
	return pages__init(&model->pages);
}

struct page_model *page_model__new(const struct page_geometry *geometry, uint32_t site_count,
				   uint64_t seed)
{
	struct page_model *model;

	if (page_geometry__check(geometry, NULL) < 0 || site_count > PAGE_SITES_MAX) {
		errno = EINVAL;
		return NULL;
	}
	model = calloc(1, sizeof(*model));
	if (!model)
		return NULL;
	model->geometry = *geometry;
	model->site_count = site_count;
	model->samples.random = seed;
	if (make_views(model) < 0) {
		page_model__free(model);
		errno = ENOMEM;
		return NULL;
	}
	return model;
}

void page_model__free(struct page_model *model)
{
	uint32_t i;

	if (!model)
		return;
	for (i = 0; i < model->view_count; i++)
		stacks__destroy(&model->views[i]);
	pages__destroy(&model->pages);
	samples__destroy(&model->samples);
	replay__destroy(&model->replay);
	free(model);
}

/* The number of what a TLB entry maps. */
static uint64_t page_of(const struct page_model *model, uint64_t address, uint32_t size)
{
	return address >> geometry__entry_shift(&model->geometry, size);
}

static int take_sample(struct page_model *model, uint64_t address, uint32_t site)
{
	uint16_t *row = samples__add(&model->samples);
	uint32_t level, size;

	if (!row)
		return -ENOMEM;
	row[0] = (uint16_t)site;
	for (level = 0; level < model->geometry.level_count; level++) {
		for (size = 0; size < model->geometry.size_count; size++) {
			const struct block *block = &model->blocks[level][size];
			const struct stacks *view = &model->views[block->view];
			uint64_t page =
				page_of(model, address, size) >> model->group_shifts[block->view];

			if (block->present)
				stacks__distance(view, site, size, page, page_key(page, site, size),
						 row + block->offset);
		}
	}
	return 0;
}

/* A page that is in a stack of single pages has been counted. */
static int use(struct page_model *model, uint64_t address, uint32_t site)
{
	uint32_t size, i;

	for (size = 0; size < model->geometry.size_count; size++) {
		uint64_t page = page_of(model, address, size), key = page_key(page, site, size);
		bool before = false;
		int added;

		for (i = 0; i < model->view_count; i++) {
			uint32_t group_shift = model->group_shifts[i];

			if (!stacks__hold(&model->views[i], size))
				continue;
			if (group_shift)
				stacks__use(&model->views[i], site, size, page >> group_shift,
					    page_key(page >> group_shift, site, size), model->now);
			else
				before |= stacks__use(&model->views[i], site, size, page, key,
						      model->now);
		}
		if (before)
			continue;
		page = address >> model->geometry.shifts[size];
		added = pages__add(&model->pages, page_key(page, site, size));
		if (added < 0)
			return added;
		model->touched[site][size] += (uint64_t)added;
	}
	return 0;
}

static void prefetch(const struct page_model *model, const struct page_reference *reference)
{
	uint64_t page = page_of(model, reference->address, 0);

	uint32_t i, site = reference->site;

	if (site >= model->site_count)
		return;
	pages__prefetch(&model->pages, page_key(page, site, 0));
	for (i = 0; i < model->view_count; i++) {
		if (stacks__hold(&model->views[i], 0))
			stacks__prefetch(&model->views[i], site, 0, page >> model->group_shifts[i]);
	}
}

static void forget_times(struct page_model *model)
{
	uint32_t i;

	for (i = 0; i < model->view_count; i++)
		stacks__forget_times(&model->views[i], model->now);
}

void page_model__gap(struct page_model *model)
{
	model->last = 0;
	model->cold = PAGE_COLD_REFERENCES;
}

int page_model__add(struct page_model *model, const struct page_reference *references, size_t count)
{
	int rc = model->failed ? -EINVAL : 0;
	uint64_t key;
	bool warm;
	size_t i;

	for (i = 0; i < count && !rc; i++) {
		uint64_t address = references[i].address;
		uint32_t site = references[i].site;

		if (i + PREFETCH_AHEAD < count)
			prefetch(model, &references[i + PREFETCH_AHEAD]);
		if (site >= model->site_count) {
			rc = -EINVAL;
			break;
		}
		model->seen++;
		warm = !model->cold;
		if (!warm) {
			model->cold--;
			model->uncounted++;
		}
		key = page_key(page_of(model, address, 0), site, 0);
		if (key == model->last) {
			model->repeats[site] += warm;
			continue;
		}
		model->last = key;
		if (!(++model->now % STACKS_TIMES))
			forget_times(model);
		if (warm && samples__offer(&model->samples))
			rc = take_sample(model, address, site);
		if (!rc)
			rc = use(model, address, site);
		if (!rc && model->replay_needed)
			rc = replay__add(&model->replay, address, site);
	}
	model->failed = rc < 0;
	return rc;
}

/* --- answers --- */

/* What a reference of a site of one size adds up in one level. */
struct sum {
	uint32_t limit; /* ways; 0: the level does not hold the size */
	uint32_t count;
	uint32_t index[PAGE_SITES_MAX]; /* in a row */
};

struct question {
	struct sum sums[PAGE_LEVELS_MAX][PAGE_SIZES_MAX];
	/* What the samples say. */
	uint64_t misses[PAGE_LEVELS_MAX];
	uint64_t site_walks[PAGE_SITES_MAX];
	uint64_t hits[PAGE_LEVELS_MAX][PAGE_SITES_MAX];
};

static void prepare(const struct page_model *model, const struct page_mapping *mapping,
		    struct question *question)
{
	const struct page_geometry *geometry = &model->geometry;
	uint32_t level, size, i;

	memset(question, 0, sizeof(*question));
	for (level = 0; level < geometry->level_count; level++) {
		for (size = 0; size < geometry->size_count; size++) {
			const struct block *block = &model->blocks[level][size];
			const struct stacks *view = &model->views[block->view];
			struct sum *sum = &question->sums[level][size];

			if (!block->present)
				continue;
			sum->limit = view->pool.ways;
			for (i = 0; i < model->site_count; i++) {
				if (stacks__hold(view, mapping->size[i]))
					sum->index[sum->count++] =
						block->offset + i +
						view->slots[mapping->size[i]] * model->site_count;
			}
		}
	}
}

static bool misses(const struct sum *sum, const uint16_t *row)
{
	uint32_t i, distance = 0;

	for (i = 0; i < sum->count; i++)
		distance += row[sum->index[i]];
	return distance >= sum->limit;
}

static void ask(const struct page_model *model, const struct page_mapping *mapping,
		struct question *question)
{
	const struct samples *samples = &model->samples;
	uint32_t level, site, levels = model->geometry.level_count;
	size_t i;

	for (i = 0; i < samples->count; i++) {
		const uint16_t *row = &samples->rows[i * samples->width];

		site = row[0];
		for (level = 0; level < levels; level++) {
			if (!misses(&question->sums[level][mapping->size[site]], row))
				break;
			question->misses[level]++;
		}
		if (level == levels)
			question->site_walks[site]++;
		else
			question->hits[level][site]++;
	}
}

/* The standard error of a total over population, of n samples without replacement. */
static double total_error(double sum, double squares, double n, double population)
{
	double variance;

	if (n < 2 || population <= n)
		return 0;
	variance = (squares - sum * sum / n) / (n - 1);
	return variance > 0 ? population * sqrt(variance / n * (1 - n / population)) : 0;
}

/* References to the page of the reference before: no sample has them. */
static void add_repeats(const struct page_model *model, const struct page_mapping *mapping,
			const struct question *question, struct page_result *result,
			struct level_hits *hits)
{
	uint32_t site, level, levels = model->geometry.level_count;

	for (site = 0; site < model->site_count; site++) {
		double n = (double)model->repeats[site];

		for (level = 0; level < levels; level++) {
			if (question->sums[level][mapping->size[site]].limit)
				break;
			result->misses[level] += n;
		}
		if (level == levels)
			result->site_walks[site] += n;
		else
			hits->of[level][site] += n;
	}
}

/* The standard error of the time, of samples whose counts a question has. */
static double time_error(const struct page_model *model, const struct page_sites *sites,
			 const struct page_mapping *mapping, const struct question *question,
			 const struct page_result *result)
{
	const struct page_geometry *geometry = &model->geometry;
	double ns, sum = 0, squares = 0;
	struct overlap overlap;
	uint32_t i, level;

	overlap__find(geometry, sites, mapping, result, &overlap);
	for (i = 0; i < sites->count; i++) {
		ns = overlap__walk_ns(&overlap, geometry, sites, i, mapping->size[i]);
		sum += (double)question->site_walks[i] * ns;
		squares += (double)question->site_walks[i] * ns * ns;
		for (level = 0; level < geometry->level_count; level++) {
			ns = overlap__hit_ns(&overlap, geometry, sites, i, level);
			sum += (double)question->hits[level][i] * ns;
			squares += (double)question->hits[level][i] * ns * ns;
		}
	}
	return total_error(sum, squares, (double)model->samples.count,
			   (double)model->samples.offered);
}

/* By distances, of those that were counted. */
static int estimate(const struct page_model *model, const struct page_sites *sites,
		    const struct page_mapping *mapping, struct page_result *result,
		    struct level_hits *hits)
{
	const struct page_geometry *geometry = &model->geometry;
	double population = (double)model->samples.offered, n = (double)model->samples.count;
	double scale = n ? population / n : 0, walks;
	struct question question;
	uint32_t i, level;

	if (sites->count != model->site_count || !geometry__fits(geometry, sites, mapping))
		return -EINVAL;
	if (model->seen && model->seen == model->uncounted)
		return -ENODATA;
	prepare(model, mapping, &question);
	ask(model, mapping, &question);
	memset(result, 0, sizeof(*result));
	for (i = 0; i < geometry->level_count; i++)
		result->misses[i] = (double)question.misses[i] * scale;
	walks = (double)question.misses[geometry->level_count - 1];
	for (i = 0; i < sites->count; i++)
		result->site_walks[i] = (double)question.site_walks[i] * scale;
	for (level = 0; level < geometry->level_count; level++) {
		for (i = 0; i < sites->count; i++)
			hits->of[level][i] = (double)question.hits[level][i] * scale;
	}
	add_repeats(model, mapping, &question, result, hits);
	result->references = model->seen - model->uncounted;
	result->walks_error = total_error(walks, walks, n, population);
	result->time_error_ns = time_error(model, sites, mapping, &question, result);
	return 0;
}

static double limited(double value, double high)
{
	return value < 0 ? 0 : value > high ? high : value;
}

/* Sums stay sums, and no level misses more than the one before it. */
static void correct(const struct page_model *model, const struct replay_correction *correction,
		    struct page_result *result, struct level_hits *hits)
{
	double n = (double)model->samples.offered, most = (double)(model->seen - model->uncounted),
	       walks = 0;
	uint32_t i, level;

	for (i = 0; i < model->geometry.level_count; i++) {
		result->misses[i] = limited(result->misses[i] + correction->misses[i] * n, most);
		most = result->misses[i];
	}
	for (i = 0; i < model->site_count; i++) {
		result->site_walks[i] =
			limited(result->site_walks[i] + correction->site_walks[i] * n, most);
		walks += result->site_walks[i];
	}
	for (i = 0; i < model->site_count && walks > 0; i++)
		result->site_walks[i] *= most / walks;
	for (level = 0; level < model->geometry.level_count; level++) {
		for (i = 0; i < model->site_count; i++)
			hits->of[level][i] =
				limited(hits->of[level][i] + correction->hits.of[level][i] * n,
					(double)model->seen);
	}
	result->walks_error = hypot(result->walks_error, correction->walks_error * n);
	result->time_error_ns = hypot(result->time_error_ns, correction->time_error_ns * n);
}

/* From those that were counted to all that were read. */
static void scale_up(const struct page_model *model, const struct page_sites *sites,
		     const struct page_mapping *mapping, struct page_result *result,
		     struct level_hits *hits)
{
	double counted = (double)(model->seen - model->uncounted);
	double scale = counted > 0 ? (double)model->seen / counted : 1;
	uint32_t i, level;

	result->references = model->seen;
	for (i = 0; i < model->geometry.level_count; i++)
		result->misses[i] *= scale;
	for (i = 0; i < model->site_count; i++)
		result->site_walks[i] *= scale;
	for (level = 0; level < model->geometry.level_count; level++) {
		for (i = 0; i < model->site_count; i++)
			hits->of[level][i] *= scale;
	}
	result->walks_error *= scale;
	result->time_error_ns *= scale;
	geometry__add_up(&model->geometry, sites, mapping, hits, result);
}

int page_model__estimate(const struct page_model *model, const struct page_sites *sites,
			 const struct page_mapping *mapping, struct page_result *result)
{
	struct level_hits hits;
	int rc = estimate(model, sites, mapping, result, &hits);

	if (!rc)
		scale_up(model, sites, mapping, result, &hits);
	return rc;
}

int page_model__cost(const struct page_model *model, const struct page_sites *sites,
		     const struct page_mapping *mapping, struct page_result *result)
{
	struct replay_correction correction;
	struct page_result corrected;
	struct level_hits hits;
	int rc = estimate(model, sites, mapping, &corrected, &hits);

	if (rc < 0)
		return rc;
	if (model->replay_needed) {
		rc = replay__correct(&model->replay, &model->geometry, sites, mapping, &correction);
		if (rc < 0)
			return rc;
		correct(model, &correction, &corrected, &hits);
	}
	scale_up(model, sites, mapping, &corrected, &hits);
	*result = corrected;
	return 0;
}

void page_model__pages(const struct page_model *model, struct page_sites *sites)
{
	sites->count = model->site_count;
	memcpy(sites->pages, model->touched, sizeof(sites->pages));
}

size_t page_model__bytes(const struct page_model *model)
{
	size_t sum = sizeof(*model) + (sizeof(uint64_t) << model->pages.bits) +
		     model->samples.capacity * model->samples.width * sizeof(uint16_t) +
		     replay__bytes(&model->replay);
	uint32_t i;

	for (i = 0; i < model->view_count; i++)
		sum += stacks__bytes(&model->views[i]);
	return sum;
}
