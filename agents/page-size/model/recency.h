/* SPDX-License-Identifier: MIT */
/*
 * recency.h - the most recently used pages of one set: an LRU list of bounded length
 *
 * Invariant: the entries stand in order of their last use, the newest first; times descend.
 *
 * They stand in a linked list with a hash table, so that a use takes constant time. For few ways
 * there are quicker forms: newest.h, and the arrays of simulate.c.
 */
#ifndef PAGE_SIZE_RECENCY_H
#define PAGE_SIZE_RECENCY_H

#include "internal.h"
#include "newest.h"

#define RECENCY_ARRAY_WAYS 16u

struct recency_node {
	uint64_t key; /* 0: empty */
	uint32_t next,
		previous; /* in order of use: a ring, in which the oldest is before the first */
	uint32_t chain; /* the next node with an equal hash, or 0 */
};

struct recency_list {
	struct recency_node *nodes; /* 1 to ways; 0 is none */
	/* Of the last use of each node, together, so that four are compared at a time. */
	newest_vector *times;
	uint32_t *buckets;
	uint32_t shift; /* of the hash, to a bucket */
	uint32_t first, ways;
};

/* 0 or -ENOMEM. */
int recency_list__init(struct recency_list *list, uint32_t ways);
void recency_list__destroy(struct recency_list *list);
/* What init allocates. */
size_t recency_list__bytes(uint32_t ways);

static inline uint32_t recency_list__find(const struct recency_list *list, uint64_t key)
{
	uint32_t i = list->buckets[page_hash(key) >> list->shift];

	while (i && list->nodes[i].key != key)
		i = list->nodes[i].chain;
	return i;
}

static inline int32_t *recency_list__time(const struct recency_list *list, uint32_t i)
{
	return (int32_t *)list->times + i;
}

/*
 * Make the page the newest; the oldest leaves if there is no room. Was it there? now is greater
 * than all times so far, and more than 0, if times are asked for.
 */
bool recency_list__use_other(struct recency_list *list, uint64_t key, int32_t now);

static inline bool recency_list__use(struct recency_list *list, uint64_t key, int32_t now)
{
	if (list->nodes[list->first].key != key)
		return recency_list__use_other(list, key, now);
	*recency_list__time(list, list->first) = now;
	return true;
}

/* The number of pages that were used after a time. */
uint32_t recency_list__count(const struct recency_list *list, int32_t time);
/* Subtract from all times; none falls below 0. */
void recency_list__forget_times(struct recency_list *list, int32_t less);

#endif
