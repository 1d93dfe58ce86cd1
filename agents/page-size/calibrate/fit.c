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
