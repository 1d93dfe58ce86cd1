// SPDX-License-Identifier: MIT
/*
 * middle.c - pages of 64 KiB: whether the kernel gives them, and a calibration without them
 *
 * Not here: what they cost (calibrate.c, fit.c), and how a program gets them (apply/).
 */
#include "calibrate.h"

#include "chase.h"

#include <stdio.h>
#include <string.h>

#define FOLDER "/sys/kernel/mm/transparent_hugepage/"

/* The word of a setting that is chosen, as in "always [madvise] never". false: there is none. */
static bool read_setting(const char *path, char word[16])
{
	FILE *file = fopen(path, "re");
	char text[128], *at = NULL;

	if (file && fgets(text, sizeof(text), file))
		at = strchr(text, '[');
	if (file)
		fclose(file);
	return at && sscanf(at, "[%15[a-z]]", word) == 1;
}

/* The setting of pages of so many KiB. It may be that of all sizes. */
static bool read_size(unsigned kib, char word[16])
{
	char path[96];

	snprintf(path, sizeof(path), FOLDER "hugepages-%ukB/enabled", kib);
	return read_setting(path, word) &&
	       (strcmp(word, "inherit") != 0 || read_setting(FOLDER "enabled", word));
}

bool page_middle__offered(char *why, size_t bytes)
{
	char word[16];
	unsigned kib;

	if (!read_size(64, word)) {
		snprintf(why, why ? bytes : 0, "this kernel has none (Linux has them from 6.8 on)");
		return false;
	}
	if (!strcmp(word, "never")) {
		snprintf(why, why ? bytes : 0,
			 "they are switched off; root could say: echo madvise >" FOLDER
			 "hugepages-64kB/enabled");
		return false;
	}
	for (kib = 128; kib <= 1024; kib *= 2) {
		if (!read_size(kib, word) || !strcmp(word, "never"))
			continue;
		snprintf(why, why ? bytes : 0,
			 "the kernel would take pages of %u KiB in their place, which are switched "
			 "on, too; root could say: echo never >" FOLDER "hugepages-%ukB/enabled",
			 kib, kib);
		return false;
	}
	return true;
}

uint32_t page_calibration__middle(const struct page_calibration *calibration)
{
	const struct page_geometry *g = &calibration->geometry;

	return g->size_count == 3 && g->shifts[1] == PAGE_MIDDLE_SHIFT;
}

static void drop(double *values)
{
	values[1] = values[2];
	values[2] = 0;
}

void page_calibration__drop_middle(struct page_calibration *calibration)
{
	struct page_geometry *g = &calibration->geometry;
	uint32_t i, k, kept, sizes;

	if (!page_calibration__middle(calibration))
		return;
	g->size_count = 2;
	g->shifts[1] = g->shifts[2];
	g->entry_shifts[1] = g->entry_shifts[2];
	g->shifts[2] = g->entry_shifts[2] = 0;
	drop(g->walk_latency_ns);
	drop(g->walk_throughput_ns);
	drop(g->first_touch_ns);
	drop(calibration->collapse_ns);
	drop(calibration->copy_ns);
	calibration->supply_bytes[1] = calibration->supply_bytes[2];
	calibration->supply_bytes[2] = 0;
	for (i = 0; i < g->level_count; i++) {
		struct page_level *level = &g->levels[i];

		for (kept = 0, k = 0; k < level->pool_count; k++) {
			sizes = level->pools[k].sizes;
			level->pools[kept] = level->pools[k];
			level->pools[kept].sizes = (sizes & 1) | (sizes >> 1 & 2);
			kept += level->pools[kept].sizes != 0;
		}
		level->pool_count = kept;
	}
}
