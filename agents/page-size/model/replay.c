// SPDX-License-Identifier: MIT
/* replay.c - keeps windows of references, and simulates them */
#include "replay.h"
#include "simulation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 512u
/* The part of a window that brings the simulation near the state that the program had. */
#define WARM_UP (REPLAY_WINDOW / 4)

void replay__init(struct replay *replay, uint32_t shift)
{
	memset(replay, 0, sizeof(*replay));
	replay->shift = shift;
	replay->period = REPLAY_WINDOW;
}

void replay__destroy(struct replay *replay)
{
	free(replay->references);
}

size_t replay__bytes(const struct replay *replay)
{
	return (size_t)replay->capacity * REPLAY_WINDOW * sizeof(*replay->references);
}

/* Windows 0, 2, 4, ... stay. */
static void halve(struct replay *replay)
{
	uint64_t i, windows = replay->count / REPLAY_WINDOW;

	for (i = 1; 2 * i < windows; i++)
		memcpy(&replay->references[i * REPLAY_WINDOW],
		       &replay->references[2 * i * REPLAY_WINDOW],
		       REPLAY_WINDOW * sizeof(*replay->references));
	replay->count = (windows + 1) / 2 * REPLAY_WINDOW;
	replay->period *= 2;
}

static int begin_window(struct replay *replay)
{
	uint64_t *references;

	if (replay->count == (uint64_t)REPLAY_WINDOWS_MAX * REPLAY_WINDOW) {
		/* This one has an even number, so it begins at a multiple of the new period. */
		halve(replay);
	} else if (replay->count == (uint64_t)replay->capacity * REPLAY_WINDOW) {
		references =
			realloc(replay->references, (size_t)(replay->capacity + 1) * REPLAY_WINDOW *
							    sizeof(*references));
		if (!references)
			return -ENOMEM;
		replay->references = references;
		replay->capacity++;
	}
	replay->recording = true;
	replay->left = REPLAY_WINDOW;
	return 0;
}

int replay__turn(struct replay *replay, uint64_t address, uint32_t site)
{
	if (!replay->recording && begin_window(replay) < 0)
		return -ENOMEM;
	replay->references[replay->count++] = address >> replay->shift << 8 | site;
	if (--replay->left)
		return 0;
	replay->recording = false;
	replay->left = replay->period - REPLAY_WINDOW;
	return 0;
}

struct pair {
	const struct page_geometry *geometry;
	const struct page_sites *sites;
	const struct page_mapping *mapping;
	struct simulation *real, *open;
};

static int pair_add(const struct replay *replay, struct pair *pair, uint64_t from, uint64_t to)
{
	struct page_reference batch[BATCH];
	uint32_t i, n;
	int rc = 0;

	for (; from < to && !rc; from += n) {
		n = to - from < BATCH ? (uint32_t)(to - from) : BATCH;
		for (i = 0; i < n; i++) {
			uint64_t word = replay->references[from + i];

			batch[i] = (struct page_reference){word >> 8 << replay->shift,
							   (uint32_t)(word & 0xff), 0};
		}
		rc = simulation__add(pair->real, batch, n);
		if (!rc)
			rc = simulation__add(pair->open, batch, n);
	}
	return rc;
}

struct totals {
	struct replay_correction sums; /* not yet for each reference */
	double references;
	/* Of the windows' differences for each reference: sums, and sums of squares. */
	double windows, walks, walks_squares, time_ns, time_squares;
};

static void total(struct totals *totals, const struct pair *pair, uint64_t references)
{
	struct level_hits real_hits, open_hits;
	struct page_result real, open;
	double walks, time_ns;
	uint32_t i, level;

	simulation__report(pair->real, pair->geometry, pair->sites, pair->mapping, references,
			   &real, &real_hits);
	simulation__report(pair->open, pair->geometry, pair->sites, pair->mapping, references,
			   &open, &open_hits);
	for (i = 0; i < pair->geometry->level_count; i++)
		totals->sums.misses[i] += real.misses[i] - open.misses[i];
	for (level = 0; level < pair->geometry->level_count; level++) {
		for (i = 0; i < pair->sites->count; i++)
			totals->sums.hits.of[level][i] +=
				real_hits.of[level][i] - open_hits.of[level][i];
	}
	for (i = 0; i < pair->sites->count; i++)
		totals->sums.site_walks[i] += real.site_walks[i] - open.site_walks[i];
	walks = (real.walks - open.walks) / (double)references;
	time_ns = (real.time_ns - open.time_ns) / (double)references;
	totals->references += (double)references;
	totals->windows++;
	totals->walks += walks;
	totals->walks_squares += walks * walks;
	totals->time_ns += time_ns;
	totals->time_squares += time_ns * time_ns;
}

static int run(const struct replay *replay, struct pair *pair, struct totals *totals)
{
	uint64_t from, to, warm;
	int rc = 0;

	for (from = 0; from < replay->count && !rc; from = to) {
		to = from + REPLAY_WINDOW < replay->count ? from + REPLAY_WINDOW : replay->count;
		/* The first begins as the program does; and none lacks what is before it. */
		warm = !from || replay->period == REPLAY_WINDOW ? from : from + WARM_UP;
		if (warm >= to)
			break;
		rc = pair_add(replay, pair, from, warm);
		simulation__forget_counts(pair->real);
		simulation__forget_counts(pair->open);
		if (!rc)
			rc = pair_add(replay, pair, warm, to);
		total(totals, pair, to - warm);
	}
	return rc;
}

static double mean_error(double sum, double squares, double n)
{
	double variance = n > 1 ? (squares - sum * sum / n) / (n - 1) : 0;

	return variance > 0 ? sqrt(variance / n) : 0;
}

static void summarize(const struct replay *replay, const struct totals *totals,
		      struct replay_correction *correction)
{
	uint32_t i, level;

	*correction = totals->sums;
	for (i = 0; i < PAGE_LEVELS_MAX && totals->references; i++)
		correction->misses[i] /= totals->references;
	for (i = 0; i < PAGE_SITES_MAX && totals->references; i++)
		correction->site_walks[i] /= totals->references;
	for (level = 0; level < PAGE_LEVELS_MAX && totals->references; level++) {
		for (i = 0; i < PAGE_SITES_MAX; i++)
			correction->hits.of[level][i] /= totals->references;
	}
	/* Windows without a gap are all that there was: no sample, and no error. */
	if (replay->period == REPLAY_WINDOW)
		return;
	correction->walks_error = mean_error(totals->walks, totals->walks_squares, totals->windows);
	correction->time_error_ns =
		mean_error(totals->time_ns, totals->time_squares, totals->windows);
}

int replay__correct(const struct replay *replay, const struct page_geometry *geometry,
		    const struct page_sites *sites, const struct page_mapping *mapping,
		    struct replay_correction *correction)
{
	struct pair pair = {geometry, sites, mapping,
			    simulation__new(geometry, sites, mapping, false),
			    simulation__new(geometry, sites, mapping, true)};
	struct totals totals = {0};
	int rc = -ENOMEM;

	if (pair.real && pair.open)
		rc = run(replay, &pair, &totals);
	simulation__free(pair.real);
	simulation__free(pair.open);
	if (!rc)
		summarize(replay, &totals, correction);
	return rc;
}
