// SPDX-License-Identifier: MIT
/*
 * map.c - hash map from 64-bit keys to 32-bit numbers (open addressing), and lists of names
 */
#include "cli.h"
#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The key's entry, or the free entry where it belongs. The map is not empty. */
static struct cli_map_entry *find(const struct cli_map *map, uint64_t key)
{
	size_t i = pem_hash__index(key, map->multiplier, map->capacity);

	while (map->entries[i].used && map->entries[i].key != key)
		i = (i + 1) & (map->capacity - 1);
	return &map->entries[i];
}

static int map_grow(struct cli_map *map)
{
	struct cli_map larger = {.capacity = map->capacity != 0 ? 2 * map->capacity : 64,
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

uint32_t *cli_map__at(struct cli_map *map, uint64_t key)
{
	struct cli_map_entry *entry = NULL;

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

uint32_t cli_map__value(const struct cli_map *map, uint64_t key)
{
	const struct cli_map_entry *entry = map->capacity != 0 ? find(map, key) : NULL;

	return entry != NULL && entry->used ? entry->value : UINT32_MAX;
}

void cli_map__free(struct cli_map *map)
{
	free(map->entries);
	map->entries = NULL;
	map->capacity = map->count = 0;
}

int cli_names__add(struct cli_names *names, const char *name)
{
	if (pem_grow(&names->names, sizeof(*names->names), names->count + 1, &names->capacity) < 0)
		return -ENOMEM;
	names->names[names->count] = strdup(name);
	if (names->names[names->count] == NULL)
		return -ENOMEM;
	names->count++;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void cli_names__sort(struct cli_names *names)
{
	if (names->count > 1)
		qsort(names->names, names->count, sizeof(*names->names), compare_names);
}

void cli_names__free(struct cli_names *names)
{
	while (names->count > 0)
		free(names->names[--names->count]);
	free(names->names);
	memset(names, 0, sizeof(*names));
}
