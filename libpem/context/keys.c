/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * keys.c - a map from 64-bit keys to the heads of lists (open addressing, linear probing)
 *
 * Keys are hashed as hash.h says. At most half of the entries are used. A removed entry's
 * successors move up (algorithm R of Knuth, The Art of Computer Programming 3, 6.4), so that
 * searches stay short and no marks are left.
 */
#include "pass.h"
#include "hash.h"

#include <stdlib.h>

static size_t home(const struct pem_keys *keys, uint64_t key)
{
	return (size_t)(key * keys->multiplier >> keys->shift);
}

static struct pem_key_entry *entry_of(const struct pem_keys *keys, uint64_t key)
{
	size_t i = home(keys, key);

	while (keys->entries[i].key && keys->entries[i].key != key)
		i = (i + 1) & (keys->size - 1);
	return &keys->entries[i];
}

void **pem_keys__find(const struct pem_keys *keys, uint64_t key)
{
	struct pem_key_entry *entry;

	if (!keys->size)
		return NULL;
	entry = entry_of(keys, key);
	return entry->key ? &entry->first : NULL;
}

static int grow(struct pem_keys *keys)
{
	struct pem_keys larger = {.size = keys->size ? keys->size * 2 : 64, .count = keys->count};
	size_t i;

	larger.multiplier = keys->size ? keys->multiplier : pem_hash__multiplier();
	larger.shift = 64 - (unsigned)__builtin_ctzll(larger.size);
	larger.entries = calloc(larger.size, sizeof(*larger.entries));
	if (!larger.entries)
		return -1;
	for (i = 0; i < keys->size; i++)
		if (keys->entries[i].key)
			*entry_of(&larger, keys->entries[i].key) = keys->entries[i];
	free(keys->entries);
	*keys = larger;
	return 0;
}

void **pem_keys__at(struct pem_keys *keys, uint64_t key)
{
	struct pem_key_entry *entry;

	if (2 * (keys->count + 1) > keys->size && grow(keys))
		return NULL;
	entry = entry_of(keys, key);
	if (!entry->key) {
		entry->key = key;
		entry->first = NULL;
		keys->count++;
	}
	return &entry->first;
}

void pem_keys__remove(struct pem_keys *keys, void **first)
{
	struct pem_key_entry *entry =
		(struct pem_key_entry *)(void *)((char *)first -
						 offsetof(struct pem_key_entry, first));
	size_t hole = (size_t)(entry - keys->entries), i = hole, wanted;

	for (;;) {
		i = (i + 1) & (keys->size - 1);
		if (!keys->entries[i].key)
			break;
		wanted = home(keys, keys->entries[i].key);
		/* The entry may fill the hole if its home is not between the hole and itself. */
		if (((i - wanted) & (keys->size - 1)) >= ((i - hole) & (keys->size - 1))) {
			keys->entries[hole] = keys->entries[i];
			hole = i;
		}
	}
	keys->entries[hole].key = 0;
	keys->entries[hole].first = NULL;
	keys->count--;
}

void pem_keys__free(struct pem_keys *keys)
{
	free(keys->entries);
}
