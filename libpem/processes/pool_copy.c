/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pool_copy.c - a private copy of a pool whose process goes on; in the copy no chunk changes
 *
 * The copy is drained and accounted for like a pool at its end (drain.c). It ends at a cut: for
 * each lane a place in the chunk that its thread fills, and the counts of what the lane produced
 * until there. Cuts are made before chunks are copied, and what a chunk holds beyond the cut is
 * left out. So threads that go on leave no holes, and the counts are those of the records. The
 * counts of overwritten records are read last, and include some that are in the copy.
 */
#include "processes/processes.h"
#include "util.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/*
 * Tries of 20 us each for a chunk that is claimed and not begun. Its thread may have been preempted
 * there.
 */
#define TRIES 1000
/* A chunk that changes hands this many times while it is copied holds nothing old. */
#define RETAKES 4
/* Tries, if threads overwrite all records before the cut while the chunks are copied. */
#define LAPS 20
/*
 * All lanes together wait so long for moments in which a thread raises nothing while its counts are
 * copied. The counts of one that never pauses may be those of a few records less.
 */
#define QUIET_NS 5000000u

/* The end of a lane's records in the copy. */
struct cut {
	uint64_t packets; /* number of packets that the lane had claimed; later ones are left out */
	uint64_t bits; /* content of the last one; UINT64_MAX: all of it */
};

static struct pem_packet *chunk_at(const struct pem_ring *ring, uint32_t index)
{
	return (struct pem_packet *)(ring->chunks + (uint64_t)index * ring->chunk_bytes);
}

/* Copy the committed part of a chunk. Returns false where its size is impossible. */
static bool copy_chunk(const struct pem_ring *ring, uint32_t index, struct pem_packet *to)
{
	const struct pem_packet *from = chunk_at(ring, index);
	/* ra */
	uint64_t bits = __atomic_load_n(&from->content_size, __ATOMIC_ACQUIRE);

	if (bits % 8 || bits / 8 < PEM_PACKET_HEADER_BYTES || bits / 8 > ring->chunk_bytes)
		return false;
	memcpy(to, from, bits / 8);
	to->content_size = bits;
	return true;
}

/* Copy a full chunk and hold it meanwhile. Producers do not take a held chunk. */
static bool copy_full(const struct pem_ring *ring, uint32_t index, uint32_t word,
		      struct pem_packet *to)
{
	uint32_t lane = PEM_CHUNK_LANE(word);
	bool copied;

	/* rb, rd */
	if (!__atomic_compare_exchange_n(&ring->chunk_state[index], &word,
					 PEM_CHUNK_WORD(PEM_CHUNK_READING, lane), 0,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	copied = copy_chunk(ring, index, to);
	/* RD */
	__atomic_store_n(&ring->chunk_state[index], PEM_CHUNK_WORD(PEM_CHUNK_FULL, lane),
			 __ATOMIC_RELEASE);
	return copied;
}

/*
 * Copy a chunk that a thread fills. A chunk gets the time of its first record when it begins. So
 * the time is read before the state and after the copy.
 */
bool pem_chunk__copy_owned(const struct pem_ring *ring, uint32_t index, uint32_t lane,
			   struct pem_packet *to)
{
	const struct pem_packet *from = chunk_at(ring, index);
	/* re */
	uint64_t begin = __atomic_load_n(&from->timestamp_begin, __ATOMIC_ACQUIRE);
	/* rf */
	uint32_t word = __atomic_load_n(&ring->chunk_state[index], __ATOMIC_ACQUIRE);

	if (word != PEM_CHUNK_WORD(PEM_CHUNK_OWNED, lane) || !copy_chunk(ring, index, to))
		return false;
	/* re */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* re */
	if (__atomic_load_n(&from->timestamp_begin, __ATOMIC_ACQUIRE) != begin)
		return false;
	word = __atomic_load_n(&ring->chunk_state[index], __ATOMIC_RELAXED);
	return word == PEM_CHUNK_WORD(PEM_CHUNK_OWNED, lane) ||
	       word == PEM_CHUNK_WORD(PEM_CHUNK_FULL, lane);
}

/*
 * Wait until a chunk is not claimed without having begun, and return its word. The old records of
 * such a chunk are not yet counted as overwritten.
 */
static uint32_t settled_word(const struct pem_ring *ring, uint32_t index, unsigned *tries)
{
	const struct timespec pause = {0, 20000};
	/* rb, rd, rf */
	uint32_t word = __atomic_load_n(&ring->chunk_state[index], __ATOMIC_ACQUIRE);

	while (word == PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 0) && *tries) {
		--*tries;
		nanosleep(&pause, NULL);
		/* rb, rd, rf */
		word = __atomic_load_n(&ring->chunk_state[index], __ATOMIC_ACQUIRE);
	}
	return word;
}

/* Leave out what a copied chunk holds beyond the cut. Returns whether anything is left. */
static bool end_at(struct pem_packet *packet, const struct cut *cut)
{
	if (packet->packet_seq_num >= cut->packets)
		return false;
	if (packet->packet_seq_num + 1 == cut->packets && packet->content_size > cut->bits)
		packet->content_size = cut->bits;
	return packet->content_size / 8 >= PEM_PACKET_HEADER_BYTES;
}

/* Returns whether there are any records in the copy. */
static bool copy_chunks(const struct pem_ring *from, struct pem_ring *to, const struct cut *cuts)
{
	unsigned tries = TRIES, retakes;
	bool any = false;
	uint32_t i, word, state;
	bool copied;

	for (i = 0; i < from->chunk_count; i++) {
		copied = false;
		for (retakes = 0; !copied && retakes < RETAKES; retakes++) {
			word = settled_word(from, i, &tries);
			state = PEM_CHUNK_STATE(word);
			if (!PEM_CHUNK_LANE(word) || PEM_CHUNK_LANE(word) >= from->lane_count ||
			    (state != PEM_CHUNK_FULL && state != PEM_CHUNK_OWNED))
				break;
			copied = state == PEM_CHUNK_FULL
					 ? copy_full(from, i, word, chunk_at(to, i))
					 : pem_chunk__copy_owned(from, i, PEM_CHUNK_LANE(word),
								 chunk_at(to, i));
		}
		if (!copied || !end_at(chunk_at(to, i), &cuts[PEM_CHUNK_LANE(word)]))
			continue;
		to->chunk_state[i] = PEM_CHUNK_WORD(PEM_CHUNK_FULL, PEM_CHUNK_LANE(word));
		any = true;
	}
	return any;
}

static bool is_filled(const struct pem_ring *ring, uint32_t index, uint32_t lane, uint64_t packet)
{
	/* rf */
	return __atomic_load_n(&ring->chunk_state[index], __ATOMIC_ACQUIRE) ==
		       PEM_CHUNK_WORD(PEM_CHUNK_OWNED, lane) &&
	       __atomic_load_n(&chunk_at(ring, index)->packet_seq_num, __ATOMIC_RELAXED) == packet;
}

/*
 * Where a lane's records end now. *index: the chunk that its thread filled last, and fills now. If
 * the lane has no such chunk, its last packet is complete.
 */
static struct cut end_of(const struct pem_ring *ring, uint32_t lane, uint32_t *index)
{
	/* rg */
	struct cut cut = {__atomic_load_n(&ring->lanes[lane].packet_seq, __ATOMIC_ACQUIRE),
			  UINT64_MAX};
	uint32_t i = *index, tries;

	for (tries = 0; cut.packets && tries <= ring->chunk_count; tries++) {
		if (is_filled(ring, i, lane, cut.packets - 1)) {
			*index = i;
			/* ra */
			cut.bits =
				__atomic_load_n(&chunk_at(ring, i)->content_size, __ATOMIC_ACQUIRE);
			break;
		}
		i = i + 1 < ring->chunk_count ? i + 1 : 0;
	}
	return cut;
}

/*
 * Copy the lanes that a thread has ever used, and their cells, and cut each lane. The counts of
 * overwritten records are copied later. Returns whether a lane has claimed a packet.
 */
static bool copy_counts(const struct pem_producer *p, struct pem_ring *to, struct cut *cuts)
{
	const struct pem_ring *from = &p->ring;
	uint32_t events = pem_pool__event_count(from), lane, index = 0;
	uint64_t first, until_ns = pem_monotonic_ns() + QUIET_NS;
	bool any = false;
	struct cut before;

	for (lane = 0; lane < from->lane_count; lane = pem_producer__next_lane(p, lane)) {
		first = (uint64_t)lane * from->event_capacity;
		cuts[lane] = end_of(from, lane, &index);
		do {
			before = cuts[lane];
			to->lanes[lane] = from->lanes[lane];
			memcpy(&to->cells[first], &from->cells[first], events * sizeof(*to->cells));
			/* none: a producer stores its count after the commit, without a release */
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			cuts[lane] = end_of(from, lane, &index);
		} while ((before.packets != cuts[lane].packets || before.bits != cuts[lane].bits) &&
			 pem_monotonic_ns() < until_ns);
		any |= cuts[lane].packets != 0;
	}
	return any;
}

static void copy_overwritten(const struct pem_producer *p, struct pem_ring *to)
{
	uint32_t lane;

	for (lane = 0; lane < p->ring.lane_count; lane = pem_producer__next_lane(p, lane))
		to->lanes[lane] = p->ring.lanes[lane];
}

static bool make_ring(struct pem_producer *copy, const struct pem_ring *like)
{
	struct pem_pool_header layout = {.chunk_bytes = like->chunk_bytes,
					 .chunk_count = like->chunk_count,
					 .lane_count = like->lane_count,
					 .event_capacity = like->event_capacity,
					 .flags = like->overwrite ? PEM_POOL_OVERWRITE : 0};
	void *memory;

	pem_pool__layout(&layout);
	memory = mmap(NULL, layout.total_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	copy->bytes = layout.total_bytes;
	pem_pool__point(memory, &layout, &copy->ring);
	copy->chunk_limit = layout.chunk_count;
	return true;
}

struct pem_producer *pem_producer__copy(const struct pem_producer *p)
{
	struct pem_producer *copy = calloc(1, sizeof(*copy));
	struct cut *cuts = calloc(p->ring.lane_count, sizeof(*cuts));
	uint32_t capacity = p->ring.event_capacity, tries;

	if (!copy || !cuts) {
		free(copy);
		free(cuts);
		return NULL;
	}
	memcpy(copy->name, p->name, sizeof(copy->name));
	memcpy(copy->file, p->file, sizeof(copy->file));
	memcpy(copy->comm, p->comm, sizeof(copy->comm));
	copy->pid = p->pid;
	copy->inner_pid = p->inner_pid;
	copy->pid_namespace = p->pid_namespace;
	copy->is_inner = p->is_inner;
	copy->is_found = p->is_found;
	copy->dir = p->dir;
	copy->start_clock = p->start_clock;
	copy->pidfd = -1;
	copy->is_copy = true;
	copy->tids = calloc(p->ring.lane_count, sizeof(*copy->tids));
	copy->next_seq = calloc(p->ring.lane_count, sizeof(*copy->next_seq));
	copy->delivered = calloc(capacity, sizeof(*copy->delivered));
	copy->lost = calloc(capacity, sizeof(*copy->lost));
	copy->callback_only = calloc(capacity, sizeof(*copy->callback_only));
	copy->produced = calloc(capacity, sizeof(*copy->produced));
	copy->discarded = calloc(capacity, sizeof(*copy->discarded));
	if (!copy->tids || !copy->next_seq || !copy->delivered || !copy->lost ||
	    !copy->callback_only || !copy->produced || !copy->discarded ||
	    !make_ring(copy, &p->ring)) {
		pem_producer__free(copy);
		free(cuts);
		return NULL;
	}
	for (tries = 0; tries < LAPS; tries++)
		if (!copy_counts(p, &copy->ring, cuts) || copy_chunks(&p->ring, &copy->ring, cuts))
			break;
	free(cuts);
	copy_overwritten(p, &copy->ring);
	/* Copy the events last, so that the event of every copied record is there. */
	memcpy(pem_pool__event_ids(&copy->ring), pem_pool__event_ids(&p->ring),
	       2 * (size_t)capacity * sizeof(uint32_t));
	return copy;
}
