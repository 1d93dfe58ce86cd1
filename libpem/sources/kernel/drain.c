/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * drain.c - from the per-CPU rings to packets: clocks made whole and converted, strings moved together
 *
 * Rings hold what our programs wrote, and nothing else can write there; their content is checked all the same.
 * A ring that holds anything else is read no further, and what it held is counted as discarded.
 * Letters A to C are those of pem/kring.h.
 */
#include "kernel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Packets of one CPU under way. */
struct writer {
	struct pem_source *source;
	const struct pem_source_sink *sink;
	struct pem_packet *packet; /* PEM_KERNEL_PACKET_BYTES */
	uint32_t cpu;
	uint32_t used; /* bytes up to the last record's last */
	int error; /* the sink's first */
};

/* A record where it lies in the ring. */
struct found {
	const uint8_t *at;
	uint32_t ring_bytes;
	int index; /* in the table; -1: a clock record */
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

	for (i = 0; i < pem_kernel__event_count(); i++)
		sum += load_relaxed(&ring->slots[i].discarded);
	return sum;
}

static void writer__flush(struct writer *w)
{
	struct pem_packet *packet = w->packet;
	char name[24];
	int rc;

	if (!packet->record_count)
		return;
	packet->content_size = (uint64_t)w->used * 8;
	packet->events_discarded = discarded_on(w->source, w->cpu);
	snprintf(name, sizeof(name), "k_%u", w->cpu);
	rc = w->sink->write(w->sink->arg, name, packet, w->used);
	if (rc && !w->error)
		w->error = rc;
	packet->record_count = 0;
}

static void writer__begin(struct writer *w, uint64_t clock)
{
	memset(w->packet, 0, sizeof(*w->packet));
	w->packet->timestamp_begin = clock;
	w->packet->timestamp_end = clock;
	w->packet->cpu = w->cpu;
	w->packet->source = PEM_PACKET_KERNEL;
	w->used = sizeof(*w->packet);
}

/* Copy a record, its strings moved up to each other's ends. Returns its true length. */
static uint32_t compact(const struct pem_kernel_event *event, const uint8_t *from, uint8_t *to)
{
	uint32_t place = event->fixed_bytes, used = event->fixed_bytes, bytes;
	unsigned i;

	memcpy(to, from, event->fixed_bytes);
	for (i = 0; i < event->string_count; i++) {
		bytes = (uint32_t)strnlen((const char *)from + place, event->string_max[i] - 1u);
		memcpy(to + used, from + place, bytes);
		to[used + bytes] = '\0';
		used += bytes + 1;
		place += event->string_max[i];
	}
	return used;
}

static void writer__add(struct writer *w, const struct pem_kernel_event *event, const uint8_t *from,
			uint64_t clock)
{
	uint32_t at = (w->used + PEM_RECORD_ALIGN - 1) & ~(PEM_RECORD_ALIGN - 1);
	struct pem_record_header *header;
	uint8_t *to;

	/* 32 bits of clock per record reach less than 2^32 ticks from one record to the next. */
	if (!w->packet->record_count || at + event->ring_bytes > PEM_KERNEL_PACKET_BYTES ||
	    (clock - w->packet->timestamp_end) >> 32) {
		writer__flush(w);
		writer__begin(w, clock);
		at = w->used;
	}
	to = (uint8_t *)w->packet + at;
	memset(to - (at - w->used), 0, at - w->used);
	w->used = at + compact(event, from, to);
	header = (struct pem_record_header *)to;
	header->clock_low = (uint32_t)clock;
	header->event_id = event->id;
	w->packet->timestamp_end = clock;
	w->packet->record_count++;
}

/*
 * The record at position tail, of which available bytes are reserved. 1: found; 0: not committed yet; -EINVAL:
 * no record of ours.
 */
static int find_record(const struct pem_source *source, const struct pem_kring *ring, uint64_t tail,
		       uint64_t available, struct found *found)
{
	const struct pem_kernel_event *event;
	const struct pem_record_header *header;
	uint32_t id;

	found->at = (const uint8_t *)ring + PEM_KRING_DATA_OFFSET + (tail & source->ring_mask);
	header = (const struct pem_record_header *)found->at;
	id = __atomic_load_n(&header->event_id, __ATOMIC_ACQUIRE); /* B */
	if (id == 0)
		return 0;
	found->index = -1;
	found->ring_bytes = sizeof(struct pem_kring_clock);
	if (id != PEM_KRING_CLOCK_ID) {
		found->index = pem_kernel__find(id);
		if (found->index < 0)
			return -EINVAL;
		event = pem_kernel__event((unsigned)found->index);
		found->ring_bytes = event->ring_bytes;
	}
	return found->ring_bytes <= available ? 1 : -EINVAL;
}

/* Nanoseconds of a record: its low half, next to the record before it; a clock record says all. */
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
 * Hand a record on. Within a CPU clocks never go back: a program that was interrupted between reading the clock
 * and taking its place in the ring comes after the one that interrupted it, whose later time it gets; so does a
 * record next to a correction of the clocks' relation.
 */
static void deliver(struct writer *w, struct pem_kernel_cpu *cpu, const struct found *found)
{
	const struct pem_kernel_event *event = pem_kernel__event((unsigned)found->index);
	uint64_t clock = w->sink->clock_at(w->sink->arg, cpu->last_ns);

	if (clock < cpu->last_clock)
		clock = cpu->last_clock;
	cpu->last_clock = clock;
	cpu->read[found->index]++;
	writer__add(w, event, found->at, clock);
}

static void give_up(struct pem_source *source, uint32_t cpu, uint64_t tail)
{
	source->cpus[cpu].broken = true;
	pem_source__log(
		source, PEM_LOG_ERROR,
		"kernel: the ring of CPU %u is damaged at %llu; its events are lost from here on",
		cpu, (unsigned long long)tail);
}

/* What is committed and was there when we began, so that a busy CPU can't keep us. */
static int drain_cpu(struct pem_source *source, uint32_t index, const struct pem_source_sink *sink)
{
	struct writer w = {
		.source = source,
		.sink = sink,
		.packet = (struct pem_packet *)source->packet,
		.cpu = index,
	};
	struct pem_kring *ring = pem_source__ring(source, index);
	struct pem_kernel_cpu *cpu = &source->cpus[index];
	uint64_t tail = ring->tail, head = load_relaxed(&ring->head);
	struct found found;
	int rc = 0;

	if (cpu->broken || head == tail)
		return 0;
	if (head - tail > (uint64_t)source->ring_mask + 1 || head % PEM_RECORD_ALIGN ||
	    tail % PEM_RECORD_ALIGN) {
		give_up(source, index, tail);
		return 0;
	}
	writer__begin(&w, 0);
	while (tail != head) {
		rc = find_record(source, ring, tail, head - tail, &found);
		if (rc > 0)
			rc = take_clock(cpu, &found) ? -EINVAL : 1;
		if (rc <= 0)
			break;
		if (found.index >= 0)
			deliver(&w, cpu, &found);
		memset((uint8_t *)found.at, 0, found.ring_bytes);
		tail += found.ring_bytes;
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE); /* C */
	}
	if (rc < 0)
		give_up(source, index, tail);
	writer__flush(&w);
	return w.error;
}

int pem_source__drain_rings(struct pem_source *source, const struct pem_source_sink *sink)
{
	int rc = 0, one;
	uint32_t i;

	for (i = 0; i < source->cpu_count; i++) {
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

	for (i = 0; i < source->cpu_count; i++) {
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

	for (i = 0; i < source->cpu_count; i++) {
		ring = pem_source__ring(source, i);
		if (!source->cpus[i].broken && load_relaxed(&ring->head) != ring->tail)
			give_up(source, i, ring->tail);
	}
}
