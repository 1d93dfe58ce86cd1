/* SPDX-License-Identifier: MIT */
/*
 * kernel_drain.c - rings to packets, with rings made by hand: sound ones, and ones that no program
 * would write
 *
 * Needs no kernel and no privilege: drain.c and table.c alone, over memory of the test's own.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libpem/sources/kernel/kernel.h"

#define RING_BYTES 8192u
#define STRIDE (PEM_KRING_DATA_OFFSET + RING_BYTES + PEM_KRING_SLACK_BYTES)

static unsigned complaints;

static void complain(enum pem_log_level level, const char *text, void *arg)
{
	(void)level, (void)text, (void)arg;
	complaints++;
}

/* A source of one CPU, and what its sink got. */
struct bench {
	struct pem_source source;
	struct pem_source_sink sink;
	uint64_t packets;
	uint64_t records;
	uint64_t last_clock;
	uint64_t ticks_per_ns;
	uint8_t last_record[PEM_KRING_SLACK_BYTES];
	uint32_t last_bytes;
	int refuse; /* the sink's answer */
};

static uint64_t clock_at(void *arg, uint64_t ns)
{
	return ns * ((struct bench *)arg)->ticks_per_ns;
}

/*
 * Checks the packet's frame; sound records are checked by their count, and the last one's bytes are
 * kept.
 */
static int write_packet(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	const uint8_t *at = (const uint8_t *)(packet + 1), *end = (const uint8_t *)packet + bytes;
	const struct pem_record_header *header;
	const struct pem_kernel_event *event;
	uint64_t clock = packet->timestamp_begin, records = 0;
	struct bench *b = arg;
	uint32_t used;
	unsigned i;

	assert_string_equal(name, "k_0");
	assert_true(bytes <= PEM_KERNEL_PACKET_BYTES);
	assert_int_equal(packet->content_size, bytes * 8);
	assert_true(packet->timestamp_begin >= b->last_clock);
	while (at < end) {
		header = (const struct pem_record_header *)at;
		assert_true(pem_kernel__find(header->event_id) >= 0);
		event = pem_kernel__event((unsigned)pem_kernel__find(header->event_id));
		used = event->fixed_bytes;
		for (i = 0; i < event->tail_count; i++)
			used += (uint32_t)strlen((const char *)at + used) + 1;
		assert_true(at + used <= end);
		memcpy(b->last_record, at, used);
		b->last_bytes = used;
		clock += (uint32_t)(header->clock_low - (uint32_t)clock);
		records++;
		at += at + used == end ? used : (used + 7) / 8 * 8;
	}
	assert_int_equal(records, packet->record_count);
	assert_int_equal(clock, packet->timestamp_end);
	b->last_clock = clock;
	b->packets++;
	b->records += records;
	return b->refuse;
}

static struct bench *new_bench(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->source.common.cpu_count = 1;
	b->source.common.log = complain;
	b->source.ring_stride = STRIDE;
	b->source.ring_mask = RING_BYTES - 1;
	b->source.rings = aligned_alloc(4096, (STRIDE + 4095) / 4096 * 4096);
	b->source.cpus = calloc(1, sizeof(*b->source.cpus));
	b->source.packet = malloc(PEM_KERNEL_PACKET_BYTES);
	assert_true(b->source.rings && b->source.cpus && b->source.packet);
	memset(b->source.rings, 0, STRIDE);
	b->sink = (struct pem_source_sink){.arg = b, .write = write_packet, .clock_at = clock_at};
	b->ticks_per_ns = 1;
	complaints = 0;
	return b;
}

static void free_bench(struct bench *b)
{
	free(b->source.rings);
	free(b->source.cpus);
	free(b->source.packet);
	free(b);
}

static struct pem_kring *ring_of(struct bench *b)
{
	return pem_source__ring(&b->source, 0);
}

static uint8_t *location(struct bench *b, uint64_t position)
{
	return (uint8_t *)ring_of(b) + PEM_KRING_DATA_OFFSET + (position & b->source.ring_mask);
}

static void put_clock(struct bench *b, uint64_t ns)
{
	struct pem_kring_clock *clock = (struct pem_kring_clock *)location(b, ring_of(b)->head);

	*clock = (struct pem_kring_clock){.header = {(uint32_t)ns, PEM_KRING_CLOCK_ID},
					  .monotonic_ns = ns};
	ring_of(b)->head += sizeof(*clock);
}

static uint8_t *put_record(struct bench *b, const struct pem_kernel_event *event, uint64_t ns)
{
	uint8_t *at = location(b, ring_of(b)->head);

	*(struct pem_record_header *)at = (struct pem_record_header){(uint32_t)ns, event->id};
	ring_of(b)->head += event->ring_bytes;
	ring_of(b)->cells[event - pem_kernel__event(0)].produced++;
	return at;
}

/* The first event with, or without, a string. */
static const struct pem_kernel_event *any_event(bool with_string)
{
	const struct pem_kernel_event *event;
	unsigned i;

	for (i = 0; (event = pem_kernel__event(i)) != NULL; i++) {
		if (event->id && (event->tail_count != 0) == with_string)
			return event;
	}
	fail_msg("the specs have no tracepoint event %s a string",
		 with_string ? "with" : "without");
	return NULL;
}

static void drain(struct bench *b)
{
	assert_int_equal(pem_source__drain_rings(&b->source, &b->sink), b->refuse);
}

static void records_may_cross_the_end_of_the_ring(void **state)
{
	const struct pem_kernel_event *event = any_event(false);
	struct bench *b = new_bench();
	uint64_t ns = 1000, laps = 0;
	uint32_t i;

	(void)state;
	put_clock(b, ns);
	while (laps < 5) {
		for (i = 0; i < 7; i++)
			put_record(b, event, ++ns);
		drain(b);
		assert_true(pem_source__is_drained(&b->source));
		laps = ring_of(b)->head / RING_BYTES;
	}
	assert_int_equal(b->records, ns - 1000);
	for (i = 0; i < RING_BYTES + PEM_KRING_SLACK_BYTES; i++)
		assert_int_equal(b->source.rings[PEM_KRING_DATA_OFFSET + i], 0);
	assert_int_equal(complaints, 0);
	free_bench(b);
}

static void strings_move_together(void **state)
{
	const struct pem_kernel_event *event = any_event(true);
	struct bench *b = new_bench();
	uint8_t *at;

	(void)state;
	put_clock(b, 5);
	at = put_record(b, event, 5);
	strcpy((char *)at + event->fixed_bytes, "/bin/sh");
	drain(b);
	assert_int_equal(b->records, 1);
	assert_int_equal(b->last_bytes, event->fixed_bytes + 8u * event->tail_count -
						7u * (event->tail_count - 1u));
	assert_string_equal((char *)b->last_record + event->fixed_bytes, "/bin/sh");
	/* one that fills its place and has no end is cut */
	at = put_record(b, event, 6);
	memset(at + event->fixed_bytes, 'x', event->tail[0].max_count);
	drain(b);
	assert_int_equal(strlen((char *)b->last_record + event->fixed_bytes),
			 event->tail[0].max_count - 1);
	free_bench(b);
}

static void uncommitted_records_wait(void **state)
{
	const struct pem_kernel_event *event = any_event(false);
	struct bench *b = new_bench();
	struct pem_record_header *first, *second;

	(void)state;
	put_clock(b, 5);
	first = (struct pem_record_header *)put_record(b, event, 5);
	second = (struct pem_record_header *)put_record(b, event, 6);
	first->event_id = 0;
	drain(b);
	assert_int_equal(b->records, 0);
	assert_false(pem_source__is_drained(&b->source));
	first->event_id = event->id;
	second->event_id = 0;
	drain(b);
	assert_int_equal(b->records, 1);
	pem_source__give_up_rest(&b->source);
	assert_true(b->source.cpus[0].broken);
	assert_int_equal(complaints, 1);
	free_bench(b);
}

/*
 * Interrupted programs leave older times behind newer ones, and 32 bits of packet clock reach only
 * so far.
 */
static void clocks_never_go_back_and_far_ones_part_packets(void **state)
{
	const struct pem_kernel_event *event = any_event(false);
	struct bench *b = new_bench();
	uint64_t ns = 0x1fffffff0ull;

	(void)state;
	b->ticks_per_ns = 3;
	put_clock(b, ns);
	put_record(b, event, ns);
	put_record(b, event, ns + 100); /* over the low half's end */
	put_record(b, event, ns + 50);
	drain(b);
	assert_int_equal(b->packets, 1);
	assert_int_equal(b->last_clock, (ns + 100) * 3);
	put_record(b, event, ns + 0x40000000);
	put_record(b, event, ns + 0x40000000 + 0x60000000); /* 1.6 s: 2^32 ticks and more */
	drain(b);
	assert_int_equal(b->records, 5);
	assert_int_equal(b->packets, 3);
	assert_int_equal(b->last_clock, (ns + 0xa0000000) * 3);
	free_bench(b);
}

static void a_sink_that_fails_is_reported_and_the_ring_goes_on(void **state)
{
	const struct pem_kernel_event *event = any_event(false);
	struct bench *b = new_bench();

	(void)state;
	b->refuse = -ENOSPC;
	put_clock(b, 5);
	put_record(b, event, 5);
	drain(b);
	assert_true(pem_source__is_drained(&b->source));
	free_bench(b);
}

static void what_no_program_writes_ends_a_ring(void **state)
{
	const struct pem_kernel_event *event = any_event(false);
	unsigned kind;
	struct bench *b;

	(void)state;
	for (kind = 0; kind < 5; kind++) {
		b = new_bench();
		if (kind != 0) /* 0: a record before any clock */
			put_clock(b, 5);
		put_record(b, event, 5);
		if (kind == 1)
			((struct pem_record_header *)location(b, 16))->event_id = 15;
		else if (kind == 2)
			ring_of(b)->head = ring_of(b)->tail + 2 * RING_BYTES;
		else if (kind == 3)
			ring_of(b)->head++;
		/* the record is longer than what is reserved */
		else if (kind == 4)
			ring_of(b)->head -= 8;
		drain(b);
		assert_int_equal(b->records, 0);
		assert_true(b->source.cpus[0].broken);
		assert_int_equal(complaints, 1);
		drain(b);
		assert_int_equal(complaints, 1);
		free_bench(b);
	}
}

/*
 * Any bytes at all: nothing outside the ring is touched (run with SAN=1), and what comes out is
 * well formed.
 */
static void any_bytes_are_survived(void **state)
{
	struct bench *b;
	unsigned round;
	uint32_t *word;
	size_t i;

	(void)state;
	srandom(1);
	for (round = 0; round < 200; round++) {
		b = new_bench();
		word = (uint32_t *)(b->source.rings + PEM_KRING_DATA_OFFSET);
		for (i = 0; i < (RING_BYTES + PEM_KRING_SLACK_BYTES) / 4; i++) {
			word[i] = (uint32_t)random();
			if (random() % 4 == 0)
				word[i] = pem_kernel__event((unsigned)random() %
							    pem_kernel__event_count())
						  ->id;
			else if (random() % 4 == 0)
				word[i] = PEM_KRING_CLOCK_ID;
		}
		ring_of(b)->tail = (uint64_t)random() * 8;
		ring_of(b)->head = ring_of(b)->tail + (uint64_t)random() % (RING_BYTES / 8) * 8;
		b->source.cpus[0].clock_known = random() % 2;
		b->last_clock = 0;
		drain(b);
		free_bench(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_may_cross_the_end_of_the_ring),
		cmocka_unit_test(strings_move_together),
		cmocka_unit_test(uncommitted_records_wait),
		cmocka_unit_test(clocks_never_go_back_and_far_ones_part_packets),
		cmocka_unit_test(a_sink_that_fails_is_reported_and_the_ring_goes_on),
		cmocka_unit_test(what_no_program_writes_ends_a_ring),
		cmocka_unit_test(any_bytes_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
