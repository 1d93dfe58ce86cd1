/* SPDX-License-Identifier: MIT */
/*
 * number_map.h - a hash map from 64-bit keys to 32-bit numbers, such as indexes of an array
 *
 * Keys may come from a trace (hash.h). Not thread-safe.
 */
#ifndef PEM_SHARED_NUMBER_MAP_H
#define PEM_SHARED_NUMBER_MAP_H

#include <stddef.h>
#include <stdint.h>

struct pem_number_map_entry {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};
struct pem_number_map {
	struct pem_number_map_entry *entries;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
	uint64_t multiplier; /* of hash.h */
};
/*
 * Find the value of a key. A new key gets UINT32_MAX. The pointer is valid until the next new key.
 * NULL: no memory.
 */
uint32_t *pem_number_map__at(struct pem_number_map *map, uint64_t key);
/* The number of a key, or UINT32_MAX: the map does not have it. */
uint32_t pem_number_map__value(const struct pem_number_map *map, uint64_t key);
void pem_number_map__free(struct pem_number_map *map);

#endif
