/* SPDX-License-Identifier: MIT */
/*
 * module_drain.c - the module's chunks to packets: sound pools, filled by the ring's own inlines,
 * and ones that no module would make
 *
 * Needs no module: see module_fixture.h. With one, tests/unit/kernel_*.c run on it in guests.
 */
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <stdarg.h>

#include <cmocka.h>

#include "module_fixture.h"

/* What the sink got. */
struct got {
	uint64_t packets, records, discarded;
	uint64_t of[3]; /* calls, texts, switches */
	uint64_t last_clock[PEM_KMOD_LANES]; /* by depth */
	uint64_t clock; /* of the last record */
	uint64_t first_value, next_value; /* of calls: each once, in order */
	int refuse;
	char last_name[32];
};
static struct got got;

static void see_record(const struct pem_record_header *header)
{
	uint64_t value;

	got.records++;
	got.of[header->event_id - event_call.id]++;
	if (header->event_id != event_call.id)
		return;
	memcpy(&value, header + 1, sizeof(value));
	assert_int_equal(value, got.next_value);
	got.next_value++;
}

static int write_packet(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	const struct bench *b = arg;
	const uint8_t *base = (const uint8_t *)packet;
	size_t at = sizeof(*packet), end = sizeof(*packet);
	const struct pem_record_header *header;
	const char *second = strchr(strchr(name, '_') + 1, '_');
	unsigned depth = second ? (unsigned)atoi(second + 1) : 0;
	uint64_t clock = packet->timestamp_begin, records = 0;

	if (!b->source.common.beside)
		assert_memory_equal(name, "k_0", 3);
	assert_true(depth < PEM_KMOD_LANES);
	assert_int_equal(packet->content_size, bytes * 8);
	assert_int_equal(packet->source, PEM_PACKET_KERNEL);
	assert_int_equal(packet->cpu, 0);
	assert_true(packet->timestamp_begin >= got.last_clock[depth]);
	for (; at < bytes; at = (end + 7) & ~(size_t)7) {
		header = (const struct pem_record_header *)(base + at);
		end = at + (header->event_id == event_call.id ? 16
			    : header->event_id == event_switch.id
				    ? 24
				    : 8 + strlen((const char *)(header + 1)) + 1);
		clock += (uint32_t)(header->clock_low - (uint32_t)clock);
		see_record(header);
		records++;
	}
	assert_int_equal(end, bytes);
	assert_int_equal(records, packet->record_count);
	assert_true(clock <= packet->timestamp_end);
	got.last_clock[depth] = packet->timestamp_end;
	got.clock = records ? clock : got.clock;
	got.discarded = packet->events_discarded;
	got.packets++;
	strncpy(got.last_name, name, sizeof(got.last_name) - 1);
	return got.refuse;
}

static struct bench *begin(void)
{
	struct bench *b = new_bench();

	assert_non_null(b);
	memset(&got, 0, sizeof(got));
	assert_int_equal(pem_module__use_pool(&b->cpu, b->pool, b->pool->total_bytes, CHUNK_BYTES),
			 0);
	assert_int_equal(pem_module__index_events(&b->source), 0);
	return b;
}

static int drain(struct bench *b, bool final)
{
	const struct pem_source_sink sink = {.arg = b, .write = write_packet};

	/*
	 * The final one needs_worker for pools of CPUs that came online, by the device, which is
	 * not there.
	 */
	b->source.fd = -1;
	return pem_module__drain(&b->source, &sink, final);
}

/* As the module's probes do. false: no room. */
static bool put(struct bench *b, uint32_t lane, const struct pem_event *event, const void *fields,
		uint32_t bytes)
{
	struct pem_writer *w = &b->writers[lane];
	struct pem_cell *cell = &b->ring.cells[lane * CAPACITY];
	uint8_t *record = pem_ring_reserve(w, ++b->clock, bytes);
	int64_t chunk;

	if (!record) {
		pem_ring_retire(&b->ring, w);
		chunk = pem_ring_find(&b->ring);
		if (chunk < 0) {
			b->ring.lanes[lane].discarded++;
			return false;
		}
		pem_ring_start(&b->ring, w, (uint32_t)chunk, b->clock, 0, 0);
		w->packet->cpu = 0;
		w->packet->source = PEM_PACKET_KERNEL;
		record = pem_ring_reserve(w, b->clock, bytes);
	}
	memcpy(record + sizeof(struct pem_record_header), fields,
	       bytes - sizeof(struct pem_record_header));
	pem_ring_commit(w, cell, b->clock, event->id, bytes);
	return true;
}

static uint64_t sent;

static bool put_call(struct bench *b, uint32_t lane)
{
	if (!put(b, lane, &event_call, &sent, 16))
		return false;
	sent++;
	return true;
}

static void full_chunks_are_packets_and_given_back(void **state)
{
	struct bench *b = begin();
	uint32_t lap, i;

	(void)state;
	sent = 0;
	for (lap = 0; lap < 20; lap++) {
		for (i = 0; i < 1000; i++)
			assert_true(put_call(b, 1));
		assert_int_equal(drain(b, false), 0);
		assert_int_equal(got.of[0], sent); /* also what is in a chunk that is not full */
	}
	pem_ring_retire(&b->ring, &b->writers[1]);
	assert_int_equal(drain(b, true), 0);
	assert_int_equal(got.of[0], sent);
	assert_true(got.packets > 20 * 1000 / 512);
	assert_string_equal(got.last_name, "k_0");
	assert_int_equal(complaints, 0);
	free_bench(b);
}

static void what_is_committed_does_not_wait_for_its_chunk(void **state)
{
	struct bench *b = begin();

	(void)state;
	sent = 0;
	put(b, 1, &event_text, "one", 8 + 4);
	assert_int_equal(drain(b, false), 0);
	assert_int_equal(got.records, 1);
	assert_int_equal(drain(b, false), 0);
	assert_int_equal(got.packets, 1); /* nothing new: no packet */
	put_call(b, 1);
	put(b, 1, &event_text, "another", 8 + 8);
	assert_int_equal(drain(b, false), 0);
	assert_int_equal(got.records, 3);
	put_call(b, 1);
	pem_ring_retire(&b->ring, &b->writers[1]);
	assert_int_equal(drain(b, false), 0);
	assert_int_equal(got.records, 4);
	assert_int_equal(got.packets, 3);
	assert_int_equal(drain(b, true), 0);
	assert_int_equal(got.packets, 3);
	free_bench(b);
}

/*
 * Between taking what is full and looking at what is not, the chunk in hand may become full: its
 * rest comes before the next one's.
 */
static void a_chunk_that_became_full_is_read_before_the_next(void **state)
{
	struct bench *b = begin();
	uint32_t chunk;

	(void)state;
	sent = 0;
	put_call(b, 1);
	assert_int_equal(drain(b, false), 0);
	chunk = b->writers[1].chunk_index;
	while (b->writers[1].chunk_index == chunk)
		put_call(b, 1);
	b->ring.chunk_state[chunk] = PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 1); /* not to be taken yet */
	b->ring.lanes[1].packet_seq = 2;
	b->ring.chunk_state[chunk] = PEM_CHUNK_WORD(PEM_CHUNK_FREE, 1); /* nor to be found */
	assert_int_equal(drain(b, false), 0);
	assert_int_equal(got.of[0], 1);
	b->ring.chunk_state[chunk] = PEM_CHUNK_WORD(PEM_CHUNK_FULL, 1);
	assert_int_equal(drain(b, false), 0);
	assert_int_equal(got.of[0], sent);
	free_bench(b);
}

static void each_depth_is_a_stream(void **state)
{
	struct bench *b = begin();

	(void)state;
	put(b, 1, &event_text, "a", 8 + 2);
	put(b, 2, &event_text, "b", 8 + 2);
	put(b, 1, &event_text, "c", 8 + 2);
	assert_int_equal(drain(b, false), 0);
	assert_int_equal(got.packets, 2);
	assert_string_equal(got.last_name, "k_0_1");
	put(b, 4, &event_text, "d", 8 + 2);
	assert_int_equal(drain(b, false), 0);
	assert_string_equal(got.last_name, "k_0_3");
	free_bench(b);
}

static void losses_are_stated_before_what_follows(void **state)
{
	struct bench *b = begin();

	(void)state;
	sent = 0;
	while (put_call(b, 1))
		;
	put_call(b, 1);
	assert_int_equal(drain(b, false), 0);
	assert_int_equal(got.of[0], sent);
	assert_int_equal(got.discarded, 0);
	put_call(b, 1);
	assert_int_equal(drain(b, false), 0);
	assert_int_equal(got.discarded, 2);
	assert_int_equal(got.packets, CHUNKS + 2); /* an empty one says it */
	b->ring.lanes[1].discarded = 7;
	pem_ring_retire(&b->ring, &b->writers[1]);
	assert_int_equal(drain(b, true), 0);
	assert_int_equal(got.discarded, 7); /* what was lost at the very end */
	free_bench(b);
}

static void beside_another_source_switches_are_left_out(void **state)
{
	const uint8_t fields[16] = {0};
	struct bench *b = begin();
	uint32_t i;

	(void)state;
	sent = 0;
	b->source.common.beside = 2;
	b->source.common.thread_is_told = true;
	for (i = 0; i < 2000; i++) {
		put(b, 1, &event_switch, fields, 24);
		if (i % 3)
			put_call(b, 1);
		if (i % 100 == 0)
			assert_int_equal(drain(b, false), 0);
	}
	pem_ring_retire(&b->ring, &b->writers[1]);
	assert_int_equal(drain(b, true), 0);
	assert_int_equal(got.of[0], sent);
	assert_int_equal(got.of[2], 0);
	assert_string_equal(got.last_name, "k2_0");
	free_bench(b);
}

/* In a narrow context no source observes switches: each tells them for its own records. */
static void beside_another_source_switches_may_be_its_own(void **state)
{
	const uint8_t fields[16] = {0};
	struct bench *b = begin();

	(void)state;
	sent = 0;
	b->source.common.beside = 2;
	put(b, 1, &event_switch, fields, 24);
	put_call(b, 1);
	pem_ring_retire(&b->ring, &b->writers[1]);
	assert_int_equal(drain(b, true), 0);
	assert_int_equal(got.of[0], 1);
	assert_int_equal(got.of[2], 1);
	free_bench(b);
}

/* Clocks are told by their lower halves: what is left out counts, too. */
static void switches_left_out_move_the_clock_on(void **state)
{
	const uint8_t fields[16] = {0};
	struct bench *b = begin();
	uint32_t i, lap;

	(void)state;
	sent = 0;
	b->source.common.beside = 2;
	b->source.common.thread_is_told = true;
	for (lap = 0; lap < 3; lap++) {
		put_call(b, 1);
		for (i = 0; i < 6; i++) {
			b->clock += 1000000000;
			put(b, 1, &event_switch, fields, 24);
			assert_int_equal(drain(b, false), 0);
		}
		put_call(b, 1);
		assert_int_equal(drain(b, false), 0);
		assert_int_equal(got.clock, b->clock);
	}
	assert_int_equal(got.of[0], 6);
	free_bench(b);
}

static void a_sink_that_fails_is_reported_and_chunks_are_given_back(void **state)
{
	struct bench *b = begin();
	uint32_t i;

	(void)state;
	sent = 0;
	got.refuse = -ENOSPC;
	for (i = 0; i < 2000; i++)
		put_call(b, 1);
	assert_int_equal(drain(b, false), -ENOSPC);
	for (i = 0; i < CHUNKS; i++)
		assert_int_not_equal(PEM_CHUNK_STATE(b->ring.chunk_state[i]), PEM_CHUNK_READING);
	free_bench(b);
}

/* --- what no module would write --- */

static struct pem_packet *full_chunk(struct bench *b)
{
	struct pem_packet *packet;

	sent = 0;
	put_call(b, 1);
	packet = b->writers[1].packet;
	pem_ring_retire(&b->ring, &b->writers[1]);
	return packet;
}

static void hostile_chunks_are_not_handed_on(void **state)
{
	static const uint64_t sizes[] = {0, 8, 111 * 8, 112 * 8 + 4, (CHUNK_BYTES + 1) * 8, ~0ull};
	struct bench *b;
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		b = begin();
		full_chunk(b)->content_size = sizes[i];
		drain(b, false);
		assert_int_equal(got.packets, 0);
		assert_int_equal(complaints, 1);
		assert_int_equal(PEM_CHUNK_STATE(b->ring.chunk_state[0]), PEM_CHUNK_FREE);
		free_bench(b);
	}
	for (i = PEM_KMOD_LANES; i < 1u << 30; i <<= 3) {
		b = begin();
		full_chunk(b);
		b->ring.chunk_state[0] = PEM_CHUNK_WORD(PEM_CHUNK_FULL, i);
		drain(b, false);
		assert_int_equal(got.packets, 0);
		assert_int_equal(complaints, 1);
		free_bench(b);
	}
}

static void unknown_records_end_what_is_read(void **state)
{
	struct bench *b = begin();

	(void)state;
	sent = 0;
	put_call(b, 1);
	put(b, 1, &event_text, "nobody's", 8 + 9);
	((struct pem_record_header *)(b->writers[1].cursor - 24))->event_id = 0xdead;
	put_call(b, 1);
	drain(b, false);
	assert_int_equal(got.of[0], 1);
	assert_int_equal(complaints, 1);
	put_call(b, 1);
	drain(b, false);
	assert_int_equal(complaints, 1); /* said once */
	free_bench(b);
}

/* A full chunk's head is not believed: its records are counted, and its times are theirs. */
static void full_chunks_say_what_they_hold(void **state)
{
	struct bench *b = begin();
	struct pem_packet *packet;

	(void)state;
	packet = full_chunk(b);
	packet->record_count = 1000;
	packet->timestamp_end = 1; /* the sink checks both against the records */
	drain(b, false);
	assert_int_equal(got.packets, 1);
	assert_int_equal(got.records, 1);
	put_call(b, 1);
	put(b, 1, &event_text, "nobody's", 8 + 9);
	((struct pem_record_header *)(b->writers[1].cursor - 24))->event_id = 0xdead;
	pem_ring_retire(&b->ring, &b->writers[1]);
	drain(b, false);
	assert_int_equal(got.of[0], 2);
	assert_int_equal(got.records, 2);
	assert_int_equal(complaints, 1);
	free_bench(b);
}

static void a_pool_that_lies_is_not_used(void **state)
{
	struct pem_pool_header lies[6], truth;
	struct pem_module_cpu cpu = {0};
	struct bench *b = begin();
	size_t i;

	(void)state;
	truth = *b->pool;
	for (i = 0; i < 6; i++)
		lies[i] = truth;
	lies[0].chunk_count = CHUNKS * 2; /* more than was mapped */
	lies[1].lane_count = PEM_KMOD_LANES + 1;
	lies[2].event_capacity = 1u << 16;
	lies[3].chunk_bytes = CHUNK_BYTES * 2;
	lies[4].magic = 0;
	lies[5].abi_version = 99;
	for (i = 0; i < 6; i++) {
		*b->pool = lies[i];
		assert_int_equal(
			pem_module__use_pool(&cpu, b->pool, truth.total_bytes, CHUNK_BYTES),
			-EINVAL);
		assert_null(cpu.mapping);
	}
	*b->pool = truth;
	assert_int_equal(pem_module__use_pool(&cpu, b->pool, truth.total_bytes, CHUNK_BYTES / 2),
			 -EINVAL);
	assert_int_equal(pem_module__use_pool(&cpu, b->pool, 4096, CHUNK_BYTES), -EINVAL);
	free_bench(b);
}

static void counts_are_of_all_lanes(void **state)
{
	struct pem_balance balance = {0};
	struct bench *b = begin();
	uint32_t *ids = pem_pool__event_ids(&b->ring), lane;

	(void)state;
	ids[0] = event_switch.id;
	ids[1] = event_call.id;
	assert_int_equal(pem_module__index_of(&b->source, event_call.id), 1);
	assert_int_equal(pem_module__index_of(&b->source, event_text.id), PEM_NO_INDEX);
	for (lane = 0; lane < PEM_KMOD_LANES; lane++) {
		b->ring.cells[lane * CAPACITY + 1].produced = 10 + lane;
		b->ring.cells[lane * CAPACITY + 1].discarded = lane;
	}
	pem_module__count(&b->source, 1, &balance);
	assert_int_equal(balance.produced, 60);
	assert_int_equal(balance.discarded, 10);
	pem_module__count(&b->source, PEM_NO_INDEX, &balance);
	assert_int_equal(balance.produced, 60);
	free_bench(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_chunks_are_packets_and_given_back),
		cmocka_unit_test(what_is_committed_does_not_wait_for_its_chunk),
		cmocka_unit_test(a_chunk_that_became_full_is_read_before_the_next),
		cmocka_unit_test(each_depth_is_a_stream),
		cmocka_unit_test(losses_are_stated_before_what_follows),
		cmocka_unit_test(beside_another_source_switches_are_left_out),
		cmocka_unit_test(beside_another_source_switches_may_be_its_own),
		cmocka_unit_test(switches_left_out_move_the_clock_on),
		cmocka_unit_test(a_sink_that_fails_is_reported_and_chunks_are_given_back),
		cmocka_unit_test(hostile_chunks_are_not_handed_on),
		cmocka_unit_test(unknown_records_end_what_is_read),
		cmocka_unit_test(full_chunks_say_what_they_hold),
		cmocka_unit_test(a_pool_that_lies_is_not_used),
		cmocka_unit_test(counts_are_of_all_lanes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
