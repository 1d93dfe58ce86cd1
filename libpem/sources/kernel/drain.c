/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * drain.c - from the CPUs' rings to packets: completes and converts clocks, moves strings together
 *
 * Only our BPF programs can write to the rings. Their content is still checked. A ring that holds
 * anything else is not read any further, and its remaining records are counted as discarded.
 */
#include "kernel.h"

#include <errno.h>
#include <string.h>

#define TAIL_STEP_BYTES 4096u /* bytes of room that are given back at once */

/*
 * The packets that are being made of one CPU's records. There is one packet. A source beside
 * another one has as many as threads take turns.
 */
struct writer {
	struct pem_source *source;
	const struct pem_source_sink *sink;
	/* The last packet, in the source's PEM_KERNEL_PACKET_BYTES. NULL: there is none. */
	struct pem_packet *packet;
	uint32_t cpu;
	uint32_t used; /* bytes of all packets up to the end of the last record */
	int error; /* the first error of the sink */
};

/* A recently found event, indexed by the low bits of its id. */
struct known {
	const struct pem_kernel_event *event; /* NULL: empty entry */
	int index; /* index in the table */
};
#define KNOWN_EVENTS 64u /* a power of two */

/* A record in the ring. */
struct found {
	const uint8_t *at;
	const struct pem_kernel_event *event; /* NULL: a clock record */
	uint32_t ring_bytes;
	int index; /* index in the table; -1: a clock record */
};

static uint64_t load_relaxed(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static uint64_t discarded_on(const struct pem_source *source, uint32_t cpu)
{
	const struct pem_kring *ring = pem_source__ring(source, cpu);
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < pem_source__event_count(source); i++)
		sum += load_relaxed(&ring->cells[i].discarded);
	return sum;
}

/* Complete the current packet. */
static void writer__end(struct writer *w)
{
	uint32_t start = (uint32_t)((uint8_t *)w->packet - w->source->packet);

	w->packet->content_size = (uint64_t)(w->used - start) * 8;
	w->packet->events_discarded = discarded_on(w->source, w->cpu);
}

/*
 * Readers doubt what they knew at the beginning of a packet with a loss, and of the next one. So
 * all is told again behind both.
 */
static void tell_after_loss(struct writer *w, bool failed)
{
	struct pem_kernel_cpu *cpu = &w->source->cpus[w->cpu];
	bool lost = failed || w->packet->events_discarded != cpu->packet_discarded;

	if (lost || cpu->lost_in_packet)
		pem_source__tell_again(w->source);
	cpu->packet_discarded = w->packet->events_discarded;
	cpu->lost_in_packet = lost;
}

static void writer__flush(struct writer *w)
{
	char name[40];
	int rc;

	if (!w->packet)
		return;
	writer__end(w);
	if ((uint8_t *)w->packet != w->source->packet) /* there are several packets */
		w->used = pem_record__aligned(w->used);
	pem_source__stream_name(w->source, w->cpu, 0, name, sizeof(name));
	rc = w->sink->write(w->sink->arg, name, (struct pem_packet *)w->source->packet, w->used);
	if (rc && !w->error)
		w->error = rc;
	tell_after_loss(w, rc != 0);
	w->packet = NULL;
	w->used = 0;
}

static void writer__begin(struct writer *w, uint64_t clock)
{
	const struct pem_kernel_cpu *cpu = &w->source->cpus[w->cpu];

	w->used = pem_record__aligned(w->used);
	w->packet = (struct pem_packet *)(w->source->packet + w->used);
	memset(w->packet, 0, sizeof(*w->packet));
	w->packet->timestamp_begin = clock;
	w->packet->timestamp_end = clock;
	w->packet->cpu = w->cpu;
	w->packet->source = PEM_PACKET_KERNEL;
	if (w->source->common.beside) {
		w->packet->source = PEM_PACKET_KERNEL_THREAD;
		w->packet->pid = cpu->pid;
		w->packet->tid = cpu->tid;
	}
	w->used += sizeof(*w->packet);
}

/*
 * Does a record of at most bytes at clock fit into the current packet? In a source beside another
 * one it must be of the packet's thread.
 */
static bool writer__goes_on(const struct writer *w, uint64_t clock)
{
	const struct pem_kernel_cpu *cpu = &w->source->cpus[w->cpu];

	/*
	 * With 32 bits of clock per record, two successive records must be less than 2^32 ticks
	 * apart.
	 */
	if (!w->packet || (clock - w->packet->timestamp_end) >> 32)
		return false;
	return !w->source->common.beside ||
	       (w->packet->pid == cpu->pid && w->packet->tid == cpu->tid);
}

static uint32_t align_up(uint32_t n, uint32_t align)
{
	return (n + align - 1) / align * align;
}

/* Move a list up to *used. In the ring it is at *place. */
static void compact_list(const struct pem_kernel_tail *tail, const uint8_t *from, uint8_t *to,
			 uint32_t *location, uint32_t *used)
{
	uint32_t count, bytes, at = align_up(*used, tail->element_bytes);

	*location = align_up(*location, tail->element_bytes);
	memcpy(&count, to + tail->length_at, sizeof(count));
	if (count > tail->max_count)
		count = tail->max_count;
	memcpy(to + tail->length_at, &count, sizeof(count));
	bytes = count * tail->element_bytes;
	memset(to + *used, 0, at - *used);
	memcpy(to + at, from + *location, bytes);
	*used = at + bytes;
	*location += (uint32_t)tail->max_count * tail->element_bytes;
}

/* Copy a record and move its strings and lists together. Returns its true length. */
static uint32_t compact(const struct pem_kernel_event *event, const uint8_t *from, uint8_t *to)
{
	uint32_t location = event->fixed_bytes, used = event->fixed_bytes, bytes;
	unsigned i;

	memcpy(to, from, event->fixed_bytes);
	for (i = 0; i < event->tail_count; i++) {
		if (event->tail[i].element_bytes) {
			compact_list(&event->tail[i], from, to, &location, &used);
			continue;
		}
		bytes = (uint32_t)strnlen((const char *)from + location,
					  event->tail[i].max_count - 1u);
		memcpy(to + used, from + location, bytes);
		to[used + bytes] = '\0';
		used += bytes + 1;
		location += event->tail[i].max_count;
	}
	return used;
}

static void writer__add(struct writer *w, const struct pem_kernel_event *event, const uint8_t *from,
			uint64_t clock)
{
	bool goes_on = writer__goes_on(w, clock);
	uint32_t more = event->ring_bytes + (goes_on ? 0 : (uint32_t)sizeof(struct pem_packet));
	struct pem_record_header *header;
	uint32_t at;
	uint8_t *to;

	if (pem_record__aligned(w->used) + more > PEM_KERNEL_PACKET_BYTES ||
	    (!goes_on && w->packet && !w->source->common.beside))
		writer__flush(w);
	else if (!goes_on && w->packet)
		writer__end(w);
	if (!goes_on || !w->packet)
		writer__begin(w, clock);
	at = pem_record__aligned(w->used);
	to = w->source->packet + at;
	memset(to - (at - w->used), 0, at - w->used);
	w->used = at + compact(event, from, to);
	header = (struct pem_record_header *)to;
	header->clock_low = (uint32_t)clock;
	header->event_id = event->id;
	w->packet->timestamp_end = clock;
	w->packet->record_count++;
}

/*
 * Find the record at position tail, of which available bytes are reserved. Returns 1; 0: it is not
 * committed yet; -EINVAL: this is not a valid record.
 */
static int find_record(const struct pem_source *source, const struct pem_kring *ring, uint64_t tail,
		       uint64_t available, struct known *known, struct found *found)
{
	const struct pem_record_header *header;
	uint32_t id;

	found->at = (const uint8_t *)ring + PEM_KRING_DATA_OFFSET + (tail & source->ring_mask);
	header = (const struct pem_record_header *)found->at;
	/* ba */
	id = __atomic_load_n(&header->event_id, __ATOMIC_ACQUIRE);
	if (id == 0)
		return 0;
	found->index = -1;
	found->event = NULL;
	found->ring_bytes = sizeof(struct pem_kring_clock);
	if (id != PEM_KRING_CLOCK_ID) {
		known = &known[id % KNOWN_EVENTS];
		if (!known->event || known->event->id != id) {
			found->index = pem_source__find(source, id);
			if (found->index < 0)
				return -EINVAL;
			known->index = found->index;
			known->event = pem_source__event(source, (unsigned)found->index);
		}
		found->index = known->index;
		found->event = known->event;
		found->ring_bytes = found->event->ring_bytes;
	}
	return found->ring_bytes <= available ? 1 : -EINVAL;
}

/*
 * Compute the nanoseconds of a record from its low half and the record before it. A clock record
 * has all of them.
 */
static int take_clock(struct pem_kernel_cpu *cpu, const struct found *found)
{
	const struct pem_kring_clock *clock = (const struct pem_kring_clock *)found->at;

	if (found->index < 0) {
		cpu->last_ns = clock->monotonic_ns;
		cpu->clock_known = true;
		return 0;
	}
	if (!cpu->clock_known)
		return -EINVAL;
	cpu->last_ns +=
		(uint64_t)(int64_t)(int32_t)(clock->header.clock_low - (uint32_t)cpu->last_ns);
	return 0;
}

/*
 * Deliver a record. Within a CPU clocks never go back. A program may be interrupted after it reads
 * the clock and before it takes its position in the ring. Its record is then behind that of the
 * interrupting program, and gets the later time of that one. A record near a correction of the
 * clocks' relation is handled in this way, too.
 */
static void deliver(struct writer *w, struct pem_kernel_cpu *cpu, const struct found *found)
{
	uint64_t clock = w->sink->clock_at(w->sink->arg, cpu->last_ns);

	if (clock < cpu->last_clock)
		clock = cpu->last_clock;
	cpu->last_clock = clock;
	if (w->source->common.beside && found->index == w->source->context_index) {
		pem_kernel__thread_of(found->at, &cpu->pid, &cpu->tid);
		return;
	}
	cpu->read[found->index]++;
	writer__add(w, found->event, found->at, clock);
}

static void give_up(struct pem_source *source, uint32_t cpu, uint64_t tail)
{
	source->cpus[cpu].broken = true;
	pem_source__log(
		source, PEM_LOG_ERROR,
		"kernel: the ring of CPU %u is damaged at %llu; its events are lost from here on",
		cpu, (unsigned long long)tail);
}

/*
 * Deliver the committed records that were there at the beginning, so that a busy CPU can't keep
 * this loop running.
 */
static int drain_cpu(struct pem_source *source, uint32_t index, const struct pem_source_sink *sink)
{
	struct writer w = {
		.source = source,
		.sink = sink,
		.cpu = index,
	};
	struct pem_kring *ring = pem_source__ring(source, index);
	struct pem_kernel_cpu *cpu = &source->cpus[index];
	uint64_t tail = ring->tail, head = load_relaxed(&ring->head);
	struct known known[KNOWN_EVENTS] = {{NULL, 0}};
	struct found found;
	int rc = 0;

	if (cpu->broken || head == tail)
		return 0;
	if (head - tail > (uint64_t)source->ring_mask + 1 || head % PEM_RECORD_ALIGN ||
	    tail % PEM_RECORD_ALIGN) {
		give_up(source, index, tail);
		return 0;
	}
	while (tail != head) {
		rc = find_record(source, ring, tail, head - tail, known, &found);
		if (rc > 0)
			rc = take_clock(cpu, &found) ? -EINVAL : 1;
		if (rc <= 0)
			break;
		if (found.index >= 0)
			deliver(&w, cpu, &found);
		memset((uint8_t *)found.at, 0, found.ring_bytes);
		tail += found.ring_bytes;
		/*
		 * BB: Producers look at the tail for each record: a store takes its cache line away
		 * from them.
		 */
		if (tail - ring->tail >= TAIL_STEP_BYTES)
			__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
	/* BB */
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	if (rc < 0)
		give_up(source, index, tail);
	writer__flush(&w);
	return w.error;
}

int pem_source__drain_rings(struct pem_source *source, const struct pem_source_sink *sink)
{
	int rc = 0, one;
	uint32_t i;

	for (i = 0; i < source->common.cpu_count; i++) {
		one = drain_cpu(source, i, sink);
		if (one && !rc)
			rc = one;
	}
	return rc;
}

bool pem_source__is_drained(const struct pem_source *source)
{
	const struct pem_kring *ring;
	uint32_t i;

	for (i = 0; i < source->common.cpu_count; i++) {
		ring = pem_source__ring(source, i);
		if (!source->cpus[i].broken && load_relaxed(&ring->head) != ring->tail)
			return false;
	}
	return true;
}

void pem_source__give_up_rest(struct pem_source *source)
{
	const struct pem_kring *ring;
	uint32_t i;

	for (i = 0; i < source->common.cpu_count; i++) {
		ring = pem_source__ring(source, i);
		if (!source->cpus[i].broken && load_relaxed(&ring->head) != ring->tail)
			give_up(source, i, ring->tail);
	}
}
