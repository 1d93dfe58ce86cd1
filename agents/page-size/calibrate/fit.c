// SPDX-License-Identifier: MIT
/*
 * fit.c - the costs of walks by least squares
 *
 * Source: Lawson, Hanson, Solving Least Squares Problems, 1974, for least squares whose unknowns
 * are not negative. With three unknowns all their subsets are tried.
 */
#include "fit.h"

#include "model/internal.h"

#include <math.h>
#include <string.h>

/* A walk is one of so many kinds, by how near its tables are: two levels, and walks. */
#define KINDS_MAX 3u
/* Of the error that a further level must leave to be worth it. */
#define LEVEL_WORTH 0.6
/* A line of page tables is this many entries of 8 bytes. */
#define TABLE_GROUP_SHIFT 3u
#define TABLE_WAYS 16u
#define TABLE_LINES_MIN 256u
/* A saving below this many ns is as uncertain as one of it. */
#define SAVING_MIN_NS 0.2
/* Processors look ahead by some 30 to 1000 instructions. */
#define WINDOW_MIN 16.0
#define WINDOW_MAX 2048.0
#define WINDOW_STEP 1.09

static uint32_t entry_shift(const struct page_geometry *geometry, uint32_t size)
{
	return geometry->entry_shifts[size] ? geometry->entry_shifts[size] : geometry->shifts[size];
}

/* The share of random accesses to these bytes that the level and those before it serve. */
static double reached(const struct page_geometry *geometry, uint32_t level, uint32_t size,
		      double bytes)
{
	const struct page_level *l = &geometry->levels[level];
	uint32_t i;

	for (i = 0; i < l->pool_count; i++) {
		if (l->pools[i].sizes >> size & 1)
			return fmin(1, l->pools[i].entries *
					       exp2(entry_shift(geometry, size) + l->group_shift) /
					       bytes);
	}
	return 0;
}

double fit__random_ns(const struct page_geometry *geometry, uint32_t size, double bytes,
		      double share)
{
	double before = 0, now, ns = 0;
	uint32_t i;

	for (i = 0; i < geometry->level_count; i++) {
		const struct page_level *l = &geometry->levels[i];

		now = fmax(before, reached(geometry, i, size, bytes));
		ns += (now - before) * (l->hit_ns - (1 - share) * l->hidden_ns);
		before = now;
	}
	return ns + (1 - before) * (share * geometry->walk_latency_ns[size] +
				    (1 - share) * geometry->walk_throughput_ns[size]);
}

/* --- least squares --- */

/* What each kind of walk costs more than the kind before it: not negative. */
struct costs {
	double more[KINDS_MAX];
	double error; /* sum of squared relative errors */
};

/* One row for each saving: sum of rows[k] * more[k] is to be left. */
struct system {
	size_t count;
	double rows[FIT_POINTS_MAX][KINDS_MAX], left[FIT_POINTS_MAX];
};

/* Solve the normal equations of the unknowns in the set, by elimination. 0: they depend. */
static int solve_set(const struct system *system, uint32_t set, uint32_t kinds, double *more)
{
	double a[KINDS_MAX][KINDS_MAX + 1] = {{0}};
	uint32_t i, j, k;
	size_t row;

	for (i = 0; i < kinds; i++) {
		for (row = 0; row < system->count && (set >> i & 1); row++) {
			for (j = 0; j < kinds; j++)
				a[i][j] += (set >> j & 1) * system->rows[row][i] *
					   system->rows[row][j];
			a[i][KINDS_MAX] += system->rows[row][i] * system->left[row];
		}
		/* Those that are not in the set are 0. */
		if (!(set >> i & 1))
			a[i][i] = 1;
	}
	/* The matrix is symmetric and not negative: it needs no pivots. */
	for (i = 0; i < kinds; i++) {
		if (a[i][i] < 1e-9)
			return 0;
		for (j = i + 1; j < kinds; j++) {
			double part = a[j][i] / a[i][i];

			for (k = i; k <= KINDS_MAX; k++)
				a[j][k] -= part * a[i][k];
		}
	}
	for (i = kinds; i-- > 0;) {
		more[i] = a[i][KINDS_MAX];
		for (j = i + 1; j < kinds; j++)
			more[i] -= a[i][j] * more[j];
		more[i] /= a[i][i];
	}
	return 1;
}

static double error_of(const struct system *system, uint32_t kinds, const double *more)
{
	double sum = 0, error;
	uint32_t i;
	size_t row;

	for (row = 0; row < system->count; row++) {
		for (error = -system->left[row], i = 0; i < kinds; i++)
			error += system->rows[row][i] * more[i];
		sum += error * error;
	}
	return sum;
}

static struct costs solve(const struct system *system, uint32_t kinds)
{
	struct costs best = {{0}, 0};
	double more[KINDS_MAX], error;
	uint32_t set, i;

	best.error = error_of(system, kinds, best.more);
	for (set = 1; set < 1u << kinds; set++) {
		if (!solve_set(system, set, kinds, more))
			continue;
		for (i = 0; i < kinds && more[i] >= 0; i++)
			;
		error = error_of(system, kinds, more);
		if (i == kinds && error < best.error) {
			memcpy(best.more, more, sizeof(more[0]) * kinds);
			best.error = error;
		}
	}
	return best;
}

/* --- walks --- */

/* Of a hit in the last level, which a walk takes at least. */
static double least_ns(const struct page_geometry *geometry, double share)
{
	const struct page_level *last = &geometry->levels[geometry->level_count - 1];

	return last->hit_ns - (1 - share) * last->hidden_ns;
}

/*
 * Costs for the savings of one share (1: latency, 0: throughput). lines: of the tables that are
 * near, ascending, for each kind of walk but the last.
 */
static struct costs fit(const struct page_geometry *geometry, const struct saving *savings,
			size_t count, double share, const uint32_t *lines, uint32_t kinds)
{
	double line_bytes = exp2(geometry->shifts[0] + TABLE_GROUP_SHIFT);
	double least = least_ns(geometry, share);
	struct page_geometry known = *geometry;
	struct system system = {.count = count};
	uint32_t i;
	size_t row;

	/* First as if each walk took the least time. */
	known.walk_latency_ns[0] = known.walk_throughput_ns[0] = least;
	for (row = 0; row < count; row++) {
		double bytes = savings[row].bytes;
		double saving = share > 0 ? savings[row].latency_ns : savings[row].throughput_ns;
		double weight = 1 / fmax(fabs(saving), SAVING_MIN_NS);
		double held = reached(geometry, geometry->level_count - 1, 0, bytes);

		for (i = 0; i < kinds; i++) {
			system.rows[row][i] = weight * (1 - held);
			if (i < kinds - 1)
				held = fmax(held, fmin(1, lines[i] * line_bytes / bytes));
		}
		system.left[row] = weight * (saving + fit__random_ns(&known, 1, bytes, share) -
					     fit__random_ns(&known, 0, bytes, share));
	}
	return solve(&system, kinds);
}

/* The best numbers of near lines for so many kinds. */
static struct costs search(const struct page_geometry *geometry, const struct saving *savings,
			   size_t count, uint32_t kinds, uint32_t *lines)
{
	struct costs best = {{0}, HUGE_VAL}, costs;
	uint32_t tried[KINDS_MAX] = {0}, a, b;

	for (a = TABLE_LINES_MIN; a <= PAGE_ENTRIES_MAX; a *= 2) {
		for (b = 2 * a; b <= 2 * PAGE_ENTRIES_MAX; b *= 2) {
			tried[0] = a;
			tried[1] = b;
			if (kinds > 2 && b > PAGE_ENTRIES_MAX)
				break;
			costs = fit(geometry, savings, count, 1, tried, kinds);
			if (costs.error < best.error) {
				best = costs;
				memcpy(lines, tried, sizeof(tried));
			}
			if (kinds < 3)
				break;
		}
	}
	return best;
}

static void add_level(struct page_geometry *geometry, uint32_t lines, double latency_ns,
		      double throughput_ns)
{
	struct page_level *level = &geometry->levels[geometry->level_count++];

	memset(level, 0, sizeof(*level));
	level->pool_count = 1;
	level->pools[0] = (struct page_pool){1, lines, TABLE_WAYS, PAGE_LRU};
	level->group_shift = TABLE_GROUP_SHIFT;
	level->hit_ns = latency_ns;
	level->hidden_ns = latency_ns - fmin(latency_ns, throughput_ns);
}

void fit__walks(struct page_geometry *geometry, const struct saving *savings, size_t count)
{
	uint32_t lines[KINDS_MAX] = {0}, more_lines[KINDS_MAX], kinds = 1, more, i;
	struct costs waits, overlaps, found;
	double latency_ns, throughput_ns;

	if (count > FIT_POINTS_MAX)
		count = FIT_POINTS_MAX;
	waits = fit(geometry, savings, count, 1, lines, 1);
	for (more = 2; more <= KINDS_MAX && geometry->level_count + more - 1 <= PAGE_LEVELS_MAX;
	     more++) {
		found = search(geometry, savings, count, more, more_lines);
		if (found.error < waits.error * LEVEL_WORTH) {
			waits = found;
			kinds = more;
			memcpy(lines, more_lines, sizeof(lines));
		}
	}
	overlaps = fit(geometry, savings, count, 0, lines, kinds);
	latency_ns = least_ns(geometry, 1);
	throughput_ns = least_ns(geometry, 0);
	for (i = 0; i < kinds; i++) {
		latency_ns += waits.more[i];
		throughput_ns += overlaps.more[i];
		if (i < kinds - 1)
			add_level(geometry, lines[i], latency_ns, throughput_ns);
	}
	geometry->walk_latency_ns[0] = latency_ns;
	geometry->walk_throughput_ns[0] = throughput_ns;
}

/* --- the window --- */

double fit__sparse_ns(const struct page_geometry *geometry, uint32_t size, double bytes,
		      double instructions)
{
	struct page_sites sites = {.count = 1, .instructions_per_reference = instructions};
	struct page_mapping mapping = {.size = {(uint8_t)size}};
	struct page_result result = {.references = 1};
	double before = 0, now, ns = 0;
	struct overlap overlap;
	uint32_t i;

	for (i = 0; i < geometry->level_count; i++) {
		before = fmax(before, reached(geometry, i, size, bytes));
		result.misses[i] = 1 - before;
	}
	result.site_walks[0] = 1 - before;
	overlap__find(geometry, &sites, &mapping, &result, &overlap);
	for (i = 0, before = 1; i < geometry->level_count; i++, before = now) {
		now = result.misses[i];
		ns += (before - now) * overlap.hit_ns[i];
	}
	return ns + before * overlap.walk_ns[size];
}

static double window_error(const struct page_geometry *geometry,
			   const struct sparse_saving *savings, size_t count)
{
	double sum = 0, error;
	size_t i;

	for (i = 0; i < count; i++) {
		const struct sparse_saving *s = &savings[i];

		error = fit__sparse_ns(geometry, 0, s->bytes, s->instructions) -
			fit__sparse_ns(geometry, 1, s->bytes, s->instructions);
		error = log(fmax(error, SAVING_MIN_NS) / fmax(s->ns, SAVING_MIN_NS));
		sum += error * error;
	}
	return sum;
}

void fit__window(struct page_geometry *geometry, const struct sparse_saving *savings, size_t count)
{
	struct page_geometry tried = *geometry;
	double best = HUGE_VAL, error;
	bool any = false;
	size_t i;

	geometry->window_instructions = 0;
	for (i = 0; i < count; i++)
		any |= savings[i].ns > 0;
	if (!any || geometry->size_count < 2)
		return;
	for (tried.window_instructions = WINDOW_MIN; tried.window_instructions <= WINDOW_MAX;
	     tried.window_instructions *= WINDOW_STEP) {
		error = window_error(&tried, savings, count);
		if (error < best) {
			best = error;
			geometry->window_instructions = rint(tried.window_instructions);
		}
	}
}

/* --- pages between --- */

/* A saving below this share of the greatest one is as uncertain as one of it. */
#define SHARE_CERTAIN 0.25

/* How much more of its memory than of small pages is reached, by powers of two. */
struct reach {
	/* In the last level of the TLB. */
	uint32_t tlb;
	/* By the lines of tables of each further level. */
	uint32_t near[KINDS_MAX - 1];
};

static void add_pool(struct page_level *level, uint64_t entries)
{
	entries = entries / TABLE_WAYS * TABLE_WAYS;
	if (entries < TABLE_WAYS)
		entries = TABLE_WAYS;
	if (entries > PAGE_ENTRIES_MAX)
		entries = PAGE_ENTRIES_MAX;
	level->pools[level->pool_count++] =
		(struct page_pool){2, (uint32_t)entries, TABLE_WAYS, PAGE_LRU};
}

/* Make room for the middle size in a level, with the entries of small pages or its own. */
static void hold_middle(struct page_level *level, uint32_t entry_bits, uint32_t more)
{
	bool is_own = level->group_shift || more > 1;
	uint32_t k, entries = 0;

	for (k = 0; k < level->pool_count; k++) {
		uint32_t sizes = level->pools[k].sizes;

		if (sizes & 1)
			entries = level->pools[k].entries;
		level->pools[k].sizes =
			(sizes & 1) | (sizes & 1 && !is_own ? 2 : 0) | (sizes & 2 ? 4 : 0);
	}
	if (is_own && level->pool_count < PAGE_POOLS_MAX)
		add_pool(level, (uint64_t)entries * more >> entry_bits);
}

/*
 * A geometry of three sizes. The middle one has entries of its own where it reaches farther than
 * small pages, and of lines of tables.
 */
static struct page_geometry insert_middle(const struct page_geometry *from, uint32_t shift,
					  uint32_t entry_shift, const struct reach *reach)
{
	struct page_geometry to = *from;
	const uint32_t *near = reach->near;
	uint32_t i;

	to.size_count = 3;
	to.shifts[2] = from->shifts[1];
	to.entry_shifts[2] = from->entry_shifts[1];
	to.walk_latency_ns[2] = from->walk_latency_ns[1];
	to.walk_throughput_ns[2] = from->walk_throughput_ns[1];
	to.first_touch_ns[2] = from->first_touch_ns[1];
	to.shifts[1] = shift;
	to.entry_shifts[1] = entry_shift;
	to.walk_latency_ns[1] = from->walk_latency_ns[0];
	to.walk_throughput_ns[1] = from->walk_throughput_ns[0];
	to.first_touch_ns[1] = from->first_touch_ns[0];
	for (i = 0; i < to.level_count; i++) {
		bool is_last_tlb = !to.levels[i].group_shift &&
				   (i + 1 == to.level_count || to.levels[i + 1].group_shift);

		if (to.levels[i].group_shift)
			hold_middle(&to.levels[i], entry_shift - from->shifts[0], *near++);
		else
			hold_middle(&to.levels[i], 0, is_last_tlb ? reach->tlb : 1);
	}
	return to;
}

/* The best cost of the longest walks for one share: a hit's to small pages'. Adds the error. */
static double walk_of_middle(const struct page_geometry *geometry, const struct saving *savings,
			     size_t count, double share, double *error)
{
	struct page_geometry with = *geometry;
	double most = share > 0 ? with.walk_latency_ns[0] : with.walk_throughput_ns[0];
	double least = fmin(least_ns(geometry, share), most), ab = 0, bb = 0, walk, sum = 0;
	double certain = SAVING_MIN_NS;
	int pass;
	size_t i;

	for (i = 0; i < count; i++)
		certain = fmax(certain, SHARE_CERTAIN * fabs(share > 0 ? savings[i].latency_ns
								       : savings[i].throughput_ns));
	/* A saving falls by its share of walks for each ns of them: a line. Then its errors. */
	for (walk = most, pass = 0; pass < 2; pass++) {
		for (i = 0; i < count; i++) {
			double saving =
				share > 0 ? savings[i].latency_ns : savings[i].throughput_ns;
			double weight = 1 / fmax(fabs(saving), certain), at, slope;

			with.walk_latency_ns[1] = with.walk_throughput_ns[1] = walk;
			at = fit__random_ns(&with, 0, savings[i].bytes, share) -
			     fit__random_ns(&with, 1, savings[i].bytes, share);
			with.walk_latency_ns[1] = with.walk_throughput_ns[1] = walk - 1;
			slope = fit__random_ns(&with, 0, savings[i].bytes, share) -
				fit__random_ns(&with, 1, savings[i].bytes, share) - at;
			ab += pass ? 0 : weight * weight * slope * (saving - at);
			bb += pass ? 0 : weight * weight * slope * slope;
			sum += pass ? pow(weight * (saving - at), 2) : 0;
		}
		if (!pass && bb > 0)
			walk = fmin(fmax(most - ab / bb, least), most);
	}
	*error += sum;
	return walk;
}

void fit__middle(struct page_geometry *geometry, uint32_t shift, uint32_t entry_shift,
		 const struct saving *savings, size_t count)
{
	struct page_geometry best = *geometry, tried;
	double least = HUGE_VAL, error, latency_ns, throughput_ns;
	struct reach reach;
	uint32_t i;

	/* Factors of 1 to 16 for each of three. */
	for (i = 0; i < 125; i++) {
		reach.near[0] = 1u << i % 5;
		reach.near[1] = 1u << i / 5 % 5;
		reach.tlb = 1u << i / 25;
		tried = insert_middle(geometry, shift, entry_shift, &reach);
		error = 0;
		latency_ns = walk_of_middle(&tried, savings, count, 1, &error);
		throughput_ns = walk_of_middle(&tried, savings, count, 0, &error);
		tried.walk_latency_ns[1] = latency_ns;
		tried.walk_throughput_ns[1] = throughput_ns;
		if (error < least) {
			least = error;
			best = tried;
		}
	}
	*geometry = best;
}
