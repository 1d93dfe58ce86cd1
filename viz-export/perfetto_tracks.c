/* SPDX-License-Identifier: MIT */
/*
 * perfetto_tracks.c - see perfetto_tracks.h
 */
#include "perfetto_tracks.h"
#include "hash.h"

#include <stdlib.h>
#include <string.h>

static size_t find(const struct pem_tracks *tracks, const struct pem_track_key *key)
{
	uint64_t joined = pem_hash__join(0, tracks->multiplier, (uint64_t)key->kind << 32 | key->a);
	size_t i;

	joined = pem_hash__join(joined, tracks->multiplier, (uint64_t)key->b << 32 | key->c);
	i = pem_hash__index(joined, tracks->multiplier, tracks->size);
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
	larger.is_taken = tracks->is_taken;
	larger.taken_size = tracks->taken_size;
	larger.multiplier = tracks->size ? tracks->multiplier : pem_hash__multiplier();
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
	if (!tracks->entries[i].uuid) {
		tracks->entries[i].key = *key;
		tracks->entries[i].uuid = ++tracks->count;
		*is_new = true;
	}
	return tracks->entries[i].uuid;
}

/* What has this key from now on is another one: its next use makes a new track. */
static void forget(struct pem_tracks *tracks, enum pem_track_kind kind, uint32_t a, uint32_t b)
{
	const struct pem_track_key key = {.kind = kind, .a = a, .b = b};

	if (tracks->size)
		tracks->entries[find(tracks, &key)].uuid = 0;
}

static uint32_t role_value(const struct pem_record *record, enum pem_role role, uint32_t otherwise)
{
	int field = pem_event__field_by_role(record->event, role);

	return field >= 0 ? (uint32_t)pem_record__u64(record, (unsigned)field) : otherwise;
}

void pem_tracks__take_start(struct pem_tracks *tracks, const struct pem_record *record)
{
	uint32_t pid = role_value(record, PEM_ROLE_PROCESS, record->pid);

	if (record->event->meaning != PEM_MEANS_THREAD_START)
		return;
	forget(tracks, PEM_TRACK_THREAD, pid, role_value(record, PEM_ROLE_THREAD, 0));
	if (pid != role_value(record, PEM_ROLE_PARENT, record->pid))
		forget(tracks, PEM_TRACK_PROCESS, pid, 0);
}

/* Make is_taken hold all tracks so far. */
static bool grow_taken(struct pem_tracks *tracks)
{
	size_t size = tracks->size + 1; /* more than there are tracks */
	bool *larger;

	if (tracks->count < tracks->taken_size)
		return true;
	larger = realloc(tracks->is_taken, size * sizeof(*larger));
	if (!larger)
		return false;
	memset(larger + tracks->taken_size, 0, (size - tracks->taken_size) * sizeof(*larger));
	tracks->is_taken = larger;
	tracks->taken_size = size;
	return true;
}

uint64_t pem_tracks__take(struct pem_tracks *tracks, struct pem_track_key *key, bool *is_new)
{
	uint64_t uuid;

	for (key->c = 0;; key->c++) {
		uuid = pem_tracks__uuid(tracks, key, is_new);
		if (!uuid || !grow_taken(tracks))
			return 0;
		if (!tracks->is_taken[uuid])
			break;
	}
	tracks->is_taken[uuid] = true;
	return uuid;
}

void pem_tracks__release(struct pem_tracks *tracks, uint64_t uuid)
{
	if (uuid < tracks->taken_size)
		tracks->is_taken[uuid] = false;
}

void pem_tracks__free(struct pem_tracks *tracks)
{
	free(tracks->entries);
	free(tracks->is_taken);
	memset(tracks, 0, sizeof(*tracks));
}
