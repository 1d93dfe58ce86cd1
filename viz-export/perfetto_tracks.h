/* SPDX-License-Identifier: MIT */
/*
 * perfetto_tracks.h - the tracks that a Perfetto trace has so far
 *
 * Not here: how a track is described in the file (perfetto.c).
 */
#ifndef PEM_PERFETTO_TRACKS_H
#define PEM_PERFETTO_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pem_track_kind {
	PEM_TRACK_PROCESS = 1, /* a: pid */
	PEM_TRACK_THREAD, /* a: pid, or 0, b: tid */
	PEM_TRACK_CPU, /* a: cpu */
	PEM_TRACK_MACHINE,
	PEM_TRACK_COUNTER, /* a: event id, b: pid or tid, c: cpu */
};

struct pem_track_key {
	uint32_t kind; /* never 0 */
	uint32_t a, b, c;
};

/* All zero: there is no track yet. */
struct pem_tracks {
	struct {
		struct pem_track_key key;
		uint64_t uuid;
	} * entries; /* open-addressed, at most half full */
	size_t size;
	size_t count;
	uint64_t multiplier; /* of hash.h */
};

/* Find the uuid of a track. The first use of a track makes it and sets *is_new. 0: no memory. */
uint64_t pem_tracks__uuid(struct pem_tracks *tracks, const struct pem_track_key *key, bool *is_new);
void pem_tracks__free(struct pem_tracks *tracks);

#endif
