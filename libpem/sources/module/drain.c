/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * drain.c - from the CPUs' chunks to packets (contract: module.h)
 *
 * A full chunk is already a packet. It is copied, given to the sink and freed. Until the log ends,
 * records do not wait until their chunk is full. The committed part of a chunk in use is delivered
 * as a packet of its own, and the rest later. This also holds for sessions that only log. Each
 * record is read only once in both cases. And a killed recorder loses no more records of an idle
 * CPU than of a busy one. Each lane is a stream, because only within a lane do clocks never go
 * back.
 *
 * A chunk's content, full or not, is copied first and then read from the copy. Counts and times in
 * its header are never trusted. Data that no module writes is not delivered, nor anything after it,
 * and the CPU is reported as broken. Its records are then missing in the balance, which is an
 * error, as it should be.
 */
#include "module.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TAKEN_MAX 32
#define MAP_AGAIN_NS 100000000u

/* A part of a lane's chunk that is delivered as a packet. */
struct piece {
	struct pem_module_cpu *cpu;
	struct pem_module_lane *lane;
	uint32_t cpu_number, lane_number;
	const struct pem_packet *shared; /* the chunk, mapped */
	struct pem_packet header; /* a copy of its header, content_size checked */
	uint32_t from, content; /* bytes of the chunk: those read before, and those committed now */
};

static int complain(struct pem_source *source, const struct piece *piece, const char *what)
{
	if (!piece->cpu->broken)
		pem_source__log(source, PEM_LOG_ERROR,
				"module: a chunk of CPU %u, lane %u, %s: its records are lost, and "
				"what such chunks hold from here on",
				piece->cpu_number, piece->lane_number, what);
	piece->cpu->broken = true;
	return -EINVAL;
}

static int write_packet(struct pem_source *source, const struct pem_source_sink *sink,
			const struct piece *piece, struct pem_packet *packet, uint32_t content)
{
	char name[48];

	packet->content_size = (uint64_t)content * 8;
	packet->events_discarded = piece->lane->stated;
	packet->events_overwritten = 0;
	packet->pid = packet->tid = 0;
	packet->cpu = piece->cpu_number;
	packet->source = PEM_PACKET_KERNEL;
	if (packet->timestamp_end < packet->timestamp_begin)
		packet->timestamp_end = packet->timestamp_begin;
	pem_source__stream_name(source, piece->cpu_number,
				piece->lane_number ? piece->lane_number - 1 : 0, name,
				sizeof(name));
	return sink->write(sink->arg, name, packet, content);
}

/*
 * Report that records of this lane were lost before clock. A reader distrusts its state at the
 * beginning of the packet that reports a loss, and of the next packet. So the report is an empty
 * packet: the chunk after a loss begins with the thread that runs.
 */
static int state_loss(struct pem_source *source, const struct pem_source_sink *sink,
		      const struct piece *piece, uint64_t discarded, uint64_t clock)
{
	struct pem_packet packet = {.timestamp_begin = clock, .timestamp_end = clock};

	if (discarded <= piece->lane->stated)
		return 0;
	piece->lane->stated = discarded;
	return write_packet(source, sink, piece, &packet, sizeof(packet));
}

static void put_event(struct pem_source *source, const struct pem_event *event)
{
	uint32_t i = event->id;

	while (source->by_id[i & source->by_id_mask] &&
	       source->by_id[i & source->by_id_mask] != event)
		i++;
	source->by_id[i & source->by_id_mask] = event;
}

int pem_module__index_events(struct pem_source *source)
{
	uint32_t size = 16;
	size_t i;

	while (size < 2 * (source->common.demand_count + 1))
		size *= 2;
	source->by_id = calloc(size, sizeof(*source->by_id));
	if (!source->by_id)
		return -ENOMEM;
	source->by_id_mask = size - 1;
	if (source->sets_thread)
		put_event(source, source->sets_thread);
	for (i = 0; i < source->common.demand_count; i++)
		put_event(source, source->common.demands[i].event);
	return 0;
}

static const struct pem_event *event_of(const struct pem_source *source, uint32_t id)
{
	const struct pem_event *event;
	uint32_t i = id;

	while ((event = source->by_id[i++ & source->by_id_mask])) {
		if (event->id == id)
			return event;
	}
	return NULL;
}

/*
 * Read the copy's records, which end at *content, and write correct values to its header. Events
 * that another source of the session reports, too, are removed. Clocks continue from *clock. It
 * becomes the clock of the last record, removed or not, because later records count from it.
 * Returns 0; or -EINVAL, and the records before the error are kept.
 */
static int walk(const struct pem_source *source, struct pem_packet *packet, uint32_t *content,
		uint64_t *clock)
{
	const struct pem_event *event = NULL;
	const struct pem_record_header *header;
	uint8_t *base = (uint8_t *)packet;
	uint32_t at = sizeof(*packet), to = at, end = at, bytes = *content;
	int length, rc = 0;

	packet->record_count = 0;
	packet->timestamp_begin = packet->timestamp_end = *clock;
	while (at < bytes && !rc) {
		header = (const struct pem_record_header *)(base + at);
		length = -EINVAL;
		if (bytes - at >= sizeof(*header)) {
			if (!event || event->id != header->event_id)
				event = event_of(source, header->event_id);
			if (event)
				length = pem_event__record_bytes(event, base + at, bytes - at);
		}
		if (length < 0) {
			rc = -EINVAL;
			break;
		}
		*clock += (uint32_t)(header->clock_low - (uint32_t)*clock);
		if (event != source->sets_thread || !source->common.thread_is_told) {
			if (!packet->record_count++)
				packet->timestamp_begin = *clock;
			packet->timestamp_end = *clock;
			if (to != at)
				memmove(base + to, base + at, (size_t)length);
			end = to + (uint32_t)length;
			to = pem_record__aligned(end);
		}
		at = pem_record__aligned(at + (uint32_t)length);
	}
	*content = end;
	return rc;
}

/* Give the new part of a piece to the sink, and remember its end. */
static int hand_on(struct pem_source *source, const struct pem_source_sink *sink,
		   const struct piece *piece)
{
	struct pem_packet *packet = (struct pem_packet *)source->packet;
	struct pem_module_lane *lane = piece->lane;
	uint32_t content = (uint32_t)sizeof(*packet) + (piece->content - piece->from);
	int rc = 0, found;

	if (piece->from == sizeof(*packet)) {
		rc = state_loss(source, sink, piece, piece->header.events_discarded,
				piece->header.timestamp_begin);
		lane->clock = piece->header.timestamp_begin;
	}
	*packet = piece->header;
	memcpy(packet + 1, (const uint8_t *)piece->shared + piece->from,
	       piece->content - piece->from);
	found = walk(source, packet, &content, &lane->clock);
	lane->chunk = (uint32_t)(((const uint8_t *)piece->shared - piece->cpu->ring.chunks) /
				 piece->cpu->ring.chunk_bytes);
	lane->offset = pem_record__aligned(piece->content);
	if (found)
		complain(source, piece, "holds no records of ours");
	if (packet->record_count && content > sizeof(*packet)) {
		found = write_packet(source, sink, piece, packet, content);
		rc = rc ? rc : found;
	}
	return rc;
}

/*
 * Find what to read of a chunk whose state word is word. Returns 1; 0: nothing to read; -EINVAL:
 * this is not a valid chunk.
 */
static int find_piece(struct pem_source *source, uint32_t cpu, uint32_t chunk, uint32_t word,
		      struct piece *piece)
{
	struct pem_module_cpu *of = &source->cpus[cpu];
	uint64_t bits;

	*piece = (struct piece){.cpu = of, .cpu_number = cpu, .lane_number = PEM_CHUNK_LANE(word)};
	if (!piece->lane_number || piece->lane_number >= of->ring.lane_count)
		return complain(source, piece, "which there is not");
	piece->lane = &of->lanes[piece->lane_number];
	piece->shared =
		(const struct pem_packet *)(of->ring.chunks + (size_t)chunk * of->ring.chunk_bytes);
	/* ra */
	bits = __atomic_load_n(&piece->shared->content_size, __ATOMIC_ACQUIRE);
	piece->header = *piece->shared;
	if (bits % 8 || bits / 8 < sizeof(struct pem_packet) || bits / 8 > of->ring.chunk_bytes)
		return complain(source, piece, "is longer than a chunk");
	piece->content = (uint32_t)(bits / 8);
	piece->from = sizeof(struct pem_packet);
	if (piece->lane->offset && piece->lane->chunk == chunk &&
	    piece->lane->next_seq == piece->header.packet_seq_num)
		piece->from = piece->lane->offset;
	return piece->content > piece->from;
}

/* Read a chunk that was taken. It is full. */
static int read_taken(struct pem_source *source, uint32_t cpu, uint32_t chunk,
		      const struct pem_source_sink *sink)
{
	const struct pem_ring *ring = &source->cpus[cpu].ring;
	struct piece piece;
	uint32_t word;
	int rc = 0;

	if (chunk >= ring->chunk_count)
		return 0;
	/* rb, rd */
	word = __atomic_load_n(&ring->chunk_state[chunk], __ATOMIC_ACQUIRE);
	if (PEM_CHUNK_STATE(word) == PEM_CHUNK_READING) {
		rc = find_piece(source, cpu, chunk, word, &piece);
		if (rc > 0)
			rc = hand_on(source, sink, &piece);
		else
			rc = 0;
		if (piece.lane) {
			piece.lane->offset = 0;
			piece.lane->next_seq = piece.header.packet_seq_num + 1;
		}
	}
	pem_module__free(source, cpu, chunk);
	return rc;
}

/*
 * Read the committed part of the chunks in use. Only the next chunk of a lane is read, because a
 * lane may have filled a chunk since chunks were taken.
 */
static int read_owned(struct pem_source *source, uint32_t cpu, const struct pem_source_sink *sink)
{
	const struct pem_ring *ring = &source->cpus[cpu].ring;
	struct piece piece;
	uint32_t i, word;
	int rc = 0, one;

	for (i = 0; i < ring->chunk_count && !source->cpus[cpu].broken; i++) {
		/* rf */
		word = __atomic_load_n(&ring->chunk_state[i], __ATOMIC_ACQUIRE);
		/* Lane 0: a producer is just claiming the chunk. */
		if (PEM_CHUNK_STATE(word) != PEM_CHUNK_OWNED || !PEM_CHUNK_LANE(word))
			continue;
		if (find_piece(source, cpu, i, word, &piece) <= 0 ||
		    piece.header.packet_seq_num != piece.lane->next_seq)
			continue;
		one = hand_on(source, sink, &piece);
		rc = rc ? rc : one;
	}
	return rc;
}

/*
 * Read all full chunks, but no more than the pool holds, so that a busy CPU can't keep this loop
 * running.
 */
static int read_full(struct pem_source *source, uint32_t cpu, const struct pem_source_sink *sink)
{
	uint32_t chunks[TAKEN_MAX], left = source->cpus[cpu].ring.chunk_count;
	int rc = 0, count, one, i;

	do {
		count = pem_module__take(source, cpu, chunks, left < TAKEN_MAX ? left : TAKEN_MAX);
		for (i = 0; i < count; i++) {
			one = read_taken(source, cpu, chunks[i], sink);
			rc = rc ? rc : one;
		}
		left -= count > 0 ? (uint32_t)count : 0;
	} while (count > 0 && left);
	return rc;
}

/* Report what a lane lost after its last chunk. */
static int state_last_losses(struct pem_source *source, uint32_t cpu,
			     const struct pem_source_sink *sink)
{
	struct pem_module_cpu *of = &source->cpus[cpu];
	struct piece piece = {.cpu = of, .cpu_number = cpu};
	int rc = 0, one;

	for (piece.lane_number = 1; piece.lane_number < of->ring.lane_count; piece.lane_number++) {
		piece.lane = &of->lanes[piece.lane_number];
		one = state_loss(source, sink, &piece,
				 __atomic_load_n(&of->ring.lanes[piece.lane_number].discarded,
						 __ATOMIC_RELAXED),
				 piece.lane->clock);
		rc = rc ? rc : one;
	}
	return rc;
}

static void find_new_pools(struct pem_source *source, bool final)
{
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (now_ns < source->next_map_ns && !final)
		return;
	source->next_map_ns = now_ns + MAP_AGAIN_NS;
	pem_module__map_pools(source);
}

int pem_module__drain(struct pem_source *source, const struct pem_source_sink *sink, bool final)
{
	int rc = 0, one;
	uint32_t i;

	find_new_pools(source, final);
	for (i = 0; i < source->common.cpu_count; i++) {
		if (!source->cpus[i].mapping)
			continue;
		one = read_full(source, i, sink);
		rc = rc ? rc : one;
		one = final ? state_last_losses(source, i, sink) : read_owned(source, i, sink);
		rc = rc ? rc : one;
	}
	return rc;
}
