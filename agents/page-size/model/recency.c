// SPDX-License-Identifier: MIT
/* recency.c - the linked form of recency.h */
#include "recency.h"

#include <errno.h>
#include <stdlib.h>

/* Up to so many, it is quicker to compare all times than to follow the list. */
#define COUNT_ALL_WAYS 256u

/* Eight buckets or more for each page: most chains are empty, which a processor predicts well. */
static uint32_t bucket_bits(uint32_t ways)
{
	uint32_t bits = 1;

	while (bits < 20 && 1u << bits < 8 * ways)
		bits++;
	return bits;
}

/* Number 0 is no node, and what is beyond the ways has time 0. */
static uint32_t vectors(uint32_t ways)
{
	return ways / NEWEST_LANES + 1;
}

size_t recency_list__bytes(uint32_t ways)
{
	return (ways + 1) * sizeof(struct recency_node) + vectors(ways) * sizeof(newest_vector) +
	       ((size_t)1 << bucket_bits(ways)) * sizeof(uint32_t);
}

int recency_list__init(struct recency_list *list, uint32_t ways)
{
	uint32_t i;

	list->ways = ways;
	list->first = 1;
	list->shift = 64 - bucket_bits(ways);
	list->nodes = calloc(ways + 1, sizeof(*list->nodes));
	list->buckets = calloc((size_t)1 << bucket_bits(ways), sizeof(*list->buckets));
	list->times = calloc(vectors(ways), sizeof(*list->times));
	if (!list->nodes || !list->buckets || !list->times) {
		recency_list__destroy(list);
		return -ENOMEM;
	}
	for (i = 1; i <= ways; i++) {
		list->nodes[i].next = i < ways ? i + 1 : 1;
		list->nodes[i].previous = i > 1 ? i - 1 : ways;
	}
	return 0;
}

void recency_list__destroy(struct recency_list *list)
{
	free(list->nodes);
	free(list->buckets);
	free(list->times);
	list->times = NULL;
	list->nodes = NULL;
	list->buckets = NULL;
}

static void move_to_front(struct recency_list *list, uint32_t i)
{
	struct recency_node *nodes = list->nodes;
	uint32_t first = list->first, last = nodes[first].previous;

	list->first = i;
	if (i == last)
		return;
	nodes[nodes[i].previous].next = nodes[i].next;
	nodes[nodes[i].next].previous = nodes[i].previous;
	nodes[i].previous = last;
	nodes[i].next = first;
	nodes[last].next = i;
	nodes[first].previous = i;
}

/* Give the node of the oldest page, or an empty one, to a new page. */
static uint32_t replace_oldest(struct recency_list *list, uint64_t key)
{
	struct recency_node *nodes = list->nodes;
	uint32_t i = nodes[list->first].previous, *link;

	if (nodes[i].key) {
		link = &list->buckets[page_hash(nodes[i].key) >> list->shift];
		while (*link != i)
			link = &nodes[*link].chain;
		*link = nodes[i].chain;
	}
	link = &list->buckets[page_hash(key) >> list->shift];
	nodes[i].key = key;
	nodes[i].chain = *link;
	*link = i;
	return i;
}

bool recency_list__use_other(struct recency_list *list, uint64_t key, int32_t now)
{
	uint32_t i = recency_list__find(list, key);
	bool found = i != 0;

	if (!found)
		i = replace_oldest(list, key);
	*recency_list__time(list, i) = now;
	move_to_front(list, i);
	return found;
}

static uint32_t count_in_order(const struct recency_list *list, int32_t time)
{
	uint32_t count, i = list->first;

	for (count = 0; count<list->ways && * recency_list__time(list, i)> time; count++)
		i = list->nodes[i].next;
	return count;
}

uint32_t recency_list__count(const struct recency_list *list, int32_t time)
{
	newest_vector limit = newest__all(time), count = {0};
	uint32_t i, n = vectors(list->ways);

	if (list->ways > COUNT_ALL_WAYS)
		return count_in_order(list, time);
	for (i = 0; i < n; i++)
		count -= list->times[i] > limit;
	return (uint32_t)(count[0] + count[1] + count[2] + count[3]);
}

void recency_list__forget_times(struct recency_list *list, int32_t less)
{
	int32_t *time;
	uint32_t i;

	for (i = 0; i <= list->ways; i++) {
		time = recency_list__time(list, i);
		*time = *time > less ? *time - less : 0;
	}
}
