/* SPDX-License-Identifier: MIT */
/*
 * perfetto_tracks.h - the tracks that a Perfetto trace has so far
 *
 * Not here: how a track is described in the file (perfetto.c).
 */
#ifndef PEM_PERFETTO_TRACKS_H
#define PEM_PERFETTO_TRACKS_H

#include <pem/trace.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pem_track_kind {
	PEM_TRACK_PROCESS = 1, /* a: pid */
	PEM_TRACK_THREAD, /* a: pid, or 0, b: tid */
	PEM_TRACK_CPU, /* a: cpu */
	PEM_TRACK_MACHINE,
	PEM_TRACK_COUNTER, /* a: event id, b: the process's track or 0, c: cpu */
	PEM_TRACK_SLICES, /* a: id of the event that begins them, b: as before, c: number */
	PEM_TRACK_CPU_SLICES, /* a: id of the event that begins them, b: cpu, c: number */
};

struct pem_track_key {
	uint32_t kind; /* never 0 */
	uint32_t a, b, c;
};

/* All zero: there is no track yet. */
struct pem_tracks {
	struct {
		struct pem_track_key key;
		uint64_t uuid; /* 0: it is forgotten */
	} * entries; /* open-addressed, at most half full */
	size_t size;
	size_t count; /* also the last uuid */
	bool *is_taken; /* by uuid, up to taken_size */
	size_t taken_size;
	uint64_t multiplier; /* of hash.h */
};

/* Find the uuid of a track. The first use of a track makes it and sets *is_new. 0: no memory. */
uint64_t pem_tracks__uuid(struct pem_tracks *tracks, const struct pem_track_key *key, bool *is_new);
/*
 * If the record starts a thread or process, whose number another one may have had, its next use
 * makes a new track.
 */
void pem_tracks__take_start(struct pem_tracks *tracks, const struct pem_record *record);
/*
 * Take a track of this kind, a and b that no one has: one of the least c. Returns its uuid and sets
 * c and *is_new. 0: no memory.
 */
uint64_t pem_tracks__take(struct pem_tracks *tracks, struct pem_track_key *key, bool *is_new);
/* Release a track that was taken. A uuid that was not, and 0, are ignored. */
void pem_tracks__release(struct pem_tracks *tracks, uint64_t uuid);
void pem_tracks__free(struct pem_tracks *tracks);

#endif
