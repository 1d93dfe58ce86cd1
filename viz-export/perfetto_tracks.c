/* SPDX-License-Identifier: MIT */
/*
 * perfetto_tracks.c - see perfetto_tracks.h
 */
#include "perfetto_tracks.h"

#include <stdlib.h>
#include <string.h>

static size_t find(const struct pem_tracks *tracks, const struct pem_track_key *key)
{
	uint64_t hash = (uint64_t)key->kind;
	size_t i;

	hash = (hash ^ key->a) * 0x9e3779b97f4a7c15u;
	hash = (hash ^ hash >> 32 ^ key->b) * 0x9e3779b97f4a7c15u;
	hash = (hash ^ hash >> 32 ^ key->c) * 0x9e3779b97f4a7c15u;
	i = (size_t)(hash >> 32) & (tracks->size - 1);
	while (tracks->entries[i].key.kind &&
	       memcmp(&tracks->entries[i].key, key, sizeof(*key)) != 0)
		i = (i + 1) & (tracks->size - 1);
	return i;
}

static bool grow(struct pem_tracks *tracks)
{
	struct pem_tracks larger = {.size = tracks->size ? tracks->size * 2 : 256};
	size_t i;

	larger.entries = calloc(larger.size, sizeof(*larger.entries));
	if (!larger.entries)
		return false;
	larger.count = tracks->count;
	for (i = 0; i < tracks->size; i++) {
		if (tracks->entries[i].key.kind)
			larger.entries[find(&larger, &tracks->entries[i].key)] = tracks->entries[i];
	}
	free(tracks->entries);
	*tracks = larger;
	return true;
}

uint64_t pem_tracks__uuid(struct pem_tracks *tracks, const struct pem_track_key *key, bool *is_new)
{
	size_t i;

	*is_new = false;
	if (tracks->count * 2 >= tracks->size && !grow(tracks))
		return 0;
	i = find(tracks, key);
	if (!tracks->entries[i].key.kind) {
		tracks->entries[i].key = *key;
		tracks->entries[i].uuid = ++tracks->count;
		*is_new = true;
	}
	return tracks->entries[i].uuid;
}

void pem_tracks__free(struct pem_tracks *tracks)
{
	free(tracks->entries);
	memset(tracks, 0, sizeof(*tracks));
}
