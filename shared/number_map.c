/* SPDX-License-Identifier: MIT */
/* number_map.c - open addressing with linear probing (contract: number_map.h) */
#include "number_map.h"
#include "hash.h"

#include <errno.h>
#include <stdlib.h>

/* The key's entry, or the free entry where it belongs. The map is not empty. */
static struct pem_number_map_entry *find(const struct pem_number_map *map, uint64_t key)
{
	size_t i = pem_hash__index(key, map->multiplier, map->capacity);

	while (map->entries[i].used && map->entries[i].key != key)
		i = (i + 1) & (map->capacity - 1);
	return &map->entries[i];
}

static int map_grow(struct pem_number_map *map)
{
	struct pem_number_map larger = {.capacity = map->capacity != 0 ? 2 * map->capacity : 64,
					.count = map->count};
	size_t i;

	larger.multiplier = map->capacity != 0 ? map->multiplier : pem_hash__multiplier();
	larger.entries = calloc(larger.capacity, sizeof(*larger.entries));
	if (larger.entries == NULL)
		return -ENOMEM;
	for (i = 0; i < map->capacity; i++)
		if (map->entries[i].used)
			*find(&larger, map->entries[i].key) = map->entries[i];
	free(map->entries);
	*map = larger;
	return 0;
}

uint32_t *pem_number_map__at(struct pem_number_map *map, uint64_t key)
{
	struct pem_number_map_entry *entry = NULL;

	if (map->capacity != 0)
		entry = find(map, key);
	if (entry != NULL && entry->used)
		return &entry->value;
	/* The map is at most two thirds full, so that a search is short and ends. */
	if (3 * (map->count + 1) > 2 * map->capacity) {
		if (map_grow(map) < 0)
			return NULL;
		entry = find(map, key);
	}
	entry->used = 1;
	entry->key = key;
	entry->value = UINT32_MAX;
	map->count++;
	return &entry->value;
}

uint32_t pem_number_map__value(const struct pem_number_map *map, uint64_t key)
{
	const struct pem_number_map_entry *entry = map->capacity != 0 ? find(map, key) : NULL;

	return entry != NULL && entry->used ? entry->value : UINT32_MAX;
}

void pem_number_map__free(struct pem_number_map *map)
{
	free(map->entries);
	map->entries = NULL;
	map->capacity = map->count = 0;
}
