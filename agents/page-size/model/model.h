/* SPDX-License-Identifier: MIT */
/*
 * model.h - what a mapping of allocation sites to page sizes costs in a given TLB
 *
 * Not here: where references come from, how a TLB is measured, how a mapping is applied.
 *
 * Three parts, which share the types below:
 *
 *	simulate.c	simulates one mapping exactly
 *	model.c		reads the references once and then answers for every mapping
 *	choice.c	finds the best mapping within a budget of large pages, and ranks mappings
 *
 * Every site is taken to have its memory to itself, as arenas of the sites give it: a page is a
 * page of one site, and two sites never share one. All figures are simulated, never measured.
 *
 * Functions return 0 or -errno. Different objects may be used by different threads at the same
 * time; one object by one thread. Nothing here blocks. Only functions that say so allocate.
 */
#ifndef PAGE_SIZE_MODEL_H
#define PAGE_SIZE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_SIZES_MAX 3u
#define PAGE_SITES_MAX 64u
#define PAGE_LEVELS_MAX 4u
#define PAGE_POOLS_MAX 3u
/* Entries of one pool and its ways: the model keeps counts in 16 bits. */
#define PAGE_ENTRIES_MAX 32768u
#define PAGE_SHIFT_MIN 10u

/* One access to memory. */
struct page_reference {
	uint64_t address;
	uint32_t site; /* below the number of sites */
	uint32_t reserved; /* ignored */
};

enum page_replacement {
	PAGE_LRU,
	/* A binary tree of bits for each set. The number of ways is a power of two up to 64. */
	PAGE_TREE_PLRU,
};

/* A TLB array. The set of a page is its number modulo the number of sets (entries / ways). */
struct page_pool {
	uint32_t sizes; /* bit k: holds pages of size k */
	uint32_t entries; /* a multiple of ways */
	uint32_t ways; /* entries: fully associative */
	enum page_replacement replacement;
};

struct page_level {
	uint32_t pool_count;
	struct page_pool pools[PAGE_POOLS_MAX]; /* a size is in one of them at most */
	double hit_ns; /* what a hit in this level adds to the time of an access that waits */
	/* What of hit_ns is hidden where accesses overlap: 0 to hit_ns. 0 in the first level. */
	double hidden_ns;
	/*
	 * An entry holds 1 << group_shift neighbouring pages, at most 9: more than one in a level
	 * that is no TLB but a cache of lines of page tables.
	 */
	uint32_t group_shift;
};

/* The TLB of a machine, and what its events cost. Size 0 is the smallest page size. */
struct page_geometry {
	uint32_t size_count;
	uint32_t shifts[PAGE_SIZES_MAX]; /* ascending: 12 for 4 KiB, 21, 30 */
	/*
	 * Of what one TLB entry maps of a page of this size; 0: the whole page. It is less where a
	 * hypervisor backs large pages by small ones: from shifts[0] to the page's own.
	 */
	uint32_t entry_shifts[PAGE_SIZES_MAX];
	uint32_t level_count;
	struct page_level levels[PAGE_LEVELS_MAX]; /* the first is looked up first */
	/* A page walk that the program waits for, and one that overlaps with others. */
	double walk_latency_ns[PAGE_SIZES_MAX];
	double walk_throughput_ns[PAGE_SIZES_MAX];
	/*
	 * Instructions within which walks overlap: overlap.c. 0: one that overlaps costs
	 * walk_throughput_ns, however few there are.
	 */
	double window_instructions;
	double first_touch_ns[PAGE_SIZES_MAX];
};

struct page_sites {
	uint32_t count; /* at most PAGE_SITES_MAX */
	/* Share of the site's walks that the program waits for: 0 to 1. */
	double latency_share[PAGE_SITES_MAX];
	/* Of the whole program. 0: unknown, and walks that overlap cost walk_throughput_ns. */
	double instructions_per_reference;
	/*
	 * Pages that the site touches, for each size: page_model__pages fills it. 0: first touches
	 * cost nothing.
	 */
	uint64_t pages[PAGE_SITES_MAX][PAGE_SIZES_MAX];
};

/* The page size of each site, as an index into page_geometry.shifts. */
struct page_mapping {
	uint8_t size[PAGE_SITES_MAX];
};

struct page_result {
	uint64_t references;
	double misses[PAGE_LEVELS_MAX]; /* references that missed this level and those before it */
	double walks; /* misses of the last level */
	double site_walks[PAGE_SITES_MAX];
	double time_ns; /* of hits, walks and first touches */
	/*
	 * Standard errors of walks and time_ns by sampling. 0: exact simulation, or every
	 * reference was a sample.
	 */
	double walks_error, time_error_ns;
};

/*
 * Check that a geometry keeps the rules above. Returns 0 or -EINVAL; then *reason, if reason is not
 * NULL, is a static sentence that says what is wrong.
 */
int page_geometry__check(const struct page_geometry *geometry, const char **reason);

/* --- exact simulation --- */

/*
 * Simulate the references in order. A hit in one level changes no later level; a miss fills all
 * levels. -EINVAL: a bad geometry, too many sites, a site or a size out of range. -ENOMEM. Writes
 * *result only on success. Allocates while it runs.
 */
int page_simulate(const struct page_geometry *geometry, const struct page_sites *sites,
		  const struct page_mapping *mapping, const struct page_reference *references,
		  size_t count, struct page_result *result);

/* --- one pass for every mapping --- */

struct page_model;

/*
 * A model of site_count sites in this geometry, which is copied. seed chooses the samples; any
 * number will do. NULL with errno EINVAL or ENOMEM.
 */
struct page_model *page_model__new(const struct page_geometry *geometry, uint32_t site_count,
				   uint64_t seed);
void page_model__free(struct page_model *model);
/*
 * Read the next references. -EINVAL: a site out of range. -ENOMEM. After an error the model has
 * read those before the one at fault, and may be asked but not fed. Allocates.
 */
int page_model__add(struct page_model *model, const struct page_reference *references,
		    size_t count);
/* A second level of 4096 entries is about full of what a burst uses. */
#define PAGE_COLD_REFERENCES 16384u

/*
 * Say that the next references do not follow those before them: some were left out between, or they
 * are of another thread. What then misses because the model does not know what came before would be
 * a miss of the sampling, not of the program. So the next PAGE_COLD_REFERENCES are read, but not
 * counted. Bursts should be several times as long, and all about as long: a longer one counts for
 * more. Not to be called before the first references of the program.
 */
void page_model__gap(struct page_model *model);
/*
 * The cost of a mapping, for all references read: what was counted stands for the rest.
 *
 * sites->pages and sites->latency_share are used as given. Of a program that was read in bursts,
 * page_model__pages knows only pages of the bursts: fill sites->pages with those that it touches.
 *
 * -EINVAL: sites->count is not the model's, or a size is out of range. -ENODATA: no reference was
 * counted, because all bursts are too short (see page_model__gap). -ENOMEM. Writes
 * *result only on success. Allocates while it runs, some
 * 10 ms.
 */
int page_model__cost(const struct page_model *model, const struct page_sites *sites,
		     const struct page_mapping *mapping, struct page_result *result);
/*
 * The same by stack distances alone, some 20 times as quickly: a later level is taken to see
 * every reference, where it sees only those that missed the levels before it, and all pools to be
 * LRU. Right for most programs; with mixed page sizes the miss ratio may be wrong by some
 * percentage points. For a search; not for what is told to a person. Does not allocate.
 */
int page_model__estimate(const struct page_model *model, const struct page_sites *sites,
			 const struct page_mapping *mapping, struct page_result *result);
/* Fill sites->pages with the pages of all references read, and set sites->count. */
void page_model__pages(const struct page_model *model, struct page_sites *sites);
/* Memory that the model has allocated. */
size_t page_model__bytes(const struct page_model *model);

/* --- choice --- */

/* The time of a mapping, in any unit. Negative: an error, as -errno. */
typedef double (*page_cost_fn)(void *data, const struct page_mapping *mapping);

#define PAGE_CHECKED_MAX 18u
#define PAGE_RANKED_MAX 1024u

struct page_costs {
	page_cost_fn quick; /* for the search, which calls it some thousand times */
	/* For the best that were found, at most PAGE_CHECKED_MAX in each search. NULL: as quick. */
	page_cost_fn exact;
	page_cost_fn error; /* standard error of exact, for page_rank. NULL: 0 */
	void *data; /* their first argument */
};

struct page_budget {
	uint64_t bytes; /* of pages larger than size 0, in all */
	double noise; /* a smaller gain is no gain, in the unit of the cost */
};

/*
 * Find a mapping of low cost whose large pages need at most budget->bytes. sites->pages says how
 * many each site needs. All mappings of the 10 sites that matter most (6 with three page sizes) are
 * tried, then changes of one, two or three sites at a time until none gains. So with few sites the
 * answer is the best by the quick cost, and with more it may not be. A site matters by its gain
 * alone or by its small pages. All singles are tried, pairs among the 24 sites that matter most,
 * triples among 12. The best, PAGE_CHECKED_MAX at most, are compared by the exact cost. Of those
 * that the noise does not tell from the best, the answer is the one with the fewest bytes; so it is
 * size 0 for all if the gain is at most budget->noise. -EINVAL, -ENOMEM, or the error of a cost
 * function. Writes *mapping only on success. Allocates while it runs.
 */
int page_choose(const struct page_geometry *geometry, const struct page_sites *sites,
		const struct page_budget *budget, const struct page_costs *costs,
		struct page_mapping *mapping);

/* A mapping among others: a point of a picture of benefit against large pages. */
struct page_ranked {
	struct page_mapping mapping;
	uint64_t bytes; /* of its large pages */
	double cost, cost_error; /* by the exact cost */
	/*
	 * Of the greatest benefit in the list: 0 for size 0 for all, 100 for the best. The standard
	 * error takes the errors of costs to be independent. Those of one model are of the same
	 * samples, so their differences are known better.
	 */
	double percent, percent_error;
	bool front; /* none with as few bytes or fewer costs as little */
};

/*
 * Rank the mappings that page_choose finds for room - 1 budgets, which grow by equal factors from
 * the least that buys anything to budget->bytes or all sites at their largest size. The list begins
 * with size 0 for all, and bytes ascend; no mapping is in it twice. Returns its length, at most
 * room, or -EINVAL (also: room is 0 or above PAGE_RANKED_MAX), -ENOMEM, or the error of a cost
 * function; then the list has no meaning. Allocates while it runs.
 */
int page_rank(const struct page_geometry *geometry, const struct page_sites *sites,
	      const struct page_budget *budget, const struct page_costs *costs,
	      struct page_ranked *list, size_t room);
/* Bytes of pages larger than size 0 that a mapping needs. UINT64_MAX if they are more than fit. */
uint64_t page_mapping__bytes(const struct page_geometry *geometry, const struct page_sites *sites,
			     const struct page_mapping *mapping);

#endif
