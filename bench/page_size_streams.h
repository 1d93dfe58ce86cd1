/* SPDX-License-Identifier: MIT */
/*
 * page_size_streams.h - streams of references of known shapes, and TLBs to try them on
 *
 * The streams are made here, not recorded.
 */
#ifndef PAGE_SIZE_STREAMS_H
#define PAGE_SIZE_STREAMS_H

#include "agents/page-size/model/model.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define SITE_BYTES (1ull << 36)
#define MIB (1ull << 20)

static uint64_t dice_state;

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t dice(uint64_t below)
{
	uint64_t x = dice_state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % below;
}

/* Low numbers are frequent: about as Zipf's law has it. */
static uint64_t skewed(uint64_t below)
{
	return (uint64_t)pow((double)below, (double)dice(1 << 20) / (1 << 20)) - 1;
}

/* --- programs: each names the site and the offset of its reference number i --- */

struct step {
	uint32_t site;
	uint64_t offset;
};

/* Bytes of a site: half of them are small. */
static uint64_t size_of(uint32_t site)
{
	return site % 2 ? 4 * MIB << site % 3 : 128 * MIB;
}

static struct step gups(uint64_t i, uint32_t sites)
{
	uint32_t site = (uint32_t)dice(sites);

	(void)i;
	return (struct step){site, dice(64 * MIB) & ~7ull};
}

static struct step triad(uint64_t i, uint32_t sites)
{
	uint32_t site = (uint32_t)(i % sites);

	return (struct step){site, i / sites * 8 % size_of(site)};
}

/* Rows, columns and values in order, and a vector that is gathered from. */
static struct step spmv(uint64_t i, uint32_t sites)
{
	uint32_t site = (uint32_t)(i % 4), matrix = (uint32_t)(i >> 20) % (sites / 3 + 1);

	if (site == 3)
		return (struct step){sites - 1, skewed(8 * MIB) * 8};
	return (struct step){(matrix + site) % sites, i / 4 * (site ? 8 : 1) % size_of(site)};
}

/* A part of the first relation is read, and one of the tables probed. */
static struct step hash_join(uint64_t i, uint32_t sites)
{
	uint32_t table = 1 + (uint32_t)((i >> 19) % (sites - 1));

	if (i % 2)
		return (struct step){0, i * 8 % (256 * MIB)};
	return (struct step){table, dice(size_of(table)) & ~15ull};
}

/* Levels of a tree, each 16 times as large as the one above it; each site is a level of a tree. */
static struct step btree(uint64_t i, uint32_t sites)
{
	uint32_t level = (uint32_t)(i % 4), site = (level + 4 * (uint32_t)(i / 4 % 4)) % sites;

	return (struct step){site, dice(1ull << (14 + 4 * level)) & ~63ull};
}

/* Columns of matrices: strides of powers of two, and of one line more. */
static struct step columns(uint64_t i, uint32_t sites)
{
	uint32_t site = (uint32_t)((i >> 10) % sites);
	uint64_t row = i % 1024, column = i >> 10;

	return (struct step){site, row * (site % 2 ? 8192 : 8256) + column / sites * 8 % 8192};
}

/* Some sites at a time, each at random. */
static struct step phases(uint64_t i, uint32_t sites)
{
	uint32_t site = (uint32_t)((i >> 18) * 3 + dice(3)) % sites;

	return (struct step){site, dice(size_of(site)) & ~7ull};
}

/* Objects with frequent and rare ones, of all sites. */
static struct step cache(uint64_t i, uint32_t sites)
{
	uint32_t site = (uint32_t)skewed(sites + 1) % sites;

	(void)i;
	return (struct step){site, skewed(size_of(site) / 64) * 64};
}

static const struct program {
	const char *name;
	struct step (*step)(uint64_t i, uint32_t sites);
} programs[] = {
	{"gups", gups},       {"triad", triad}, {"spmv", spmv},     {"hash_join", hash_join},
	{"columns", columns}, {"btree", btree}, {"phases", phases}, {"cache", cache},
};

static const struct {
	const char *name;
	struct page_geometry geometry;
} machines[] = {
	{"set_associative",
	 {.size_count = 2,
	  .shifts = {12, 21},
	  .level_count = 2,
	  .levels = {{.pool_count = 2, .pools = {{1, 64, 4, PAGE_LRU}, {2, 32, 4, PAGE_LRU}}},
		     {.pool_count = 1, .pools = {{3, 1536, 12, PAGE_LRU}}, .hit_ns = 2}},
	  .walk_latency_ns = {30, 20},
	  .walk_throughput_ns = {12, 8}}},
	{"fully_associative",
	 {.size_count = 2,
	  .shifts = {12, 21},
	  .level_count = 2,
	  .levels = {{.pool_count = 1, .pools = {{3, 96, 96, PAGE_LRU}}},
		     {.pool_count = 1, .pools = {{3, 4096, 16, PAGE_LRU}}, .hit_ns = 2}},
	  .walk_latency_ns = {30, 20},
	  .walk_throughput_ns = {12, 8}}},
};

static inline void program__fill(const struct program *program, uint32_t sites,
				 struct page_reference *references, size_t count)
{
	struct step step;
	size_t i;

	dice_state = 42;
	for (i = 0; i < count; i++) {
		step = program->step(i, sites);
		references[i] = (struct page_reference){(step.site + 1) * SITE_BYTES + step.offset,
							step.site, 0};
	}
}

#endif
