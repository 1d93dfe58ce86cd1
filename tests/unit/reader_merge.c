/* SPDX-License-Identifier: MIT */
/*
 * reader_merge.c - the reader: order across streams, clocks, fields, and what it says about a trace
 */
#include "trace_fixture.h"

#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>

#include "reader_fixture.h"

static void next(struct pem_trace *trace, struct pem_record *record)
{
	struct pem_error error = {"the end"};

	if (pem_trace__next(trace, record, &error) != 1)
		fail_msg("%s", error.text);
}

static void merges_streams_by_time(void **state)
{
	enum { STREAMS = 7, RECORDS = 900 };
	uint64_t clock[STREAMS], last = 0;
	uint32_t last_stream = 0, random = 1, i, s;
	unsigned per_stream[STREAMS] = {0};
	static struct packet packets[STREAMS];
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	char name[16];

	(void)state;
	for (s = 0; s < STREAMS; s++) {
		clock[s] = FIXTURE_START;
		packet_new(&packets[s], PEM_PACKET_USER, 10 + s, 100 + s, PEM_NO_CPU, clock[s]);
	}
	for (i = 0; i < STREAMS * RECORDS; i++) {
		random = random * 1103515245 + 12345;
		s = i % STREAMS;
		clock[s] += (random >> 16) % (s + 2) * (s == 3 && i % 100 < 50 ? 0 : 10);
		packet_simple(&packets[s], clock[s], i / STREAMS);
		if (i / STREAMS % 97 == 0) {
			snprintf(name, sizeof(name), "u_%u_0", 10 + s);
			packet_write(&packets[s], &fixture, name);
			packet_next(&packets[s], clock[s]);
		}
	}
	for (s = 0; s < STREAMS; s++) {
		snprintf(name, sizeof(name), "u_%u_0", 10 + s);
		packet_write(&packets[s], &fixture, name);
	}
	trace = open_trace();
	for (i = 0; i < STREAMS * RECORDS; i++) {
		next(trace, &r);
		assert_true(r.clock > last || (r.clock == last && r.stream >= last_stream));
		last = r.clock;
		last_stream = r.stream;
		s = r.pid - 10;
		assert_true(s < STREAMS);
		assert_int_equal(r.stream, s);
		assert_int_equal(r.tid, 100 + s);
		assert_int_equal(r.cpu, PEM_NO_CPU);
		assert_int_equal(r.source, PEM_PACKET_USER);
		assert_int_equal(pem_record__u64(&r, 0), per_stream[s]++);
		assert_int_equal(r.time_ns, r.clock - FIXTURE_START);
	}
	assert_int_equal(pem_trace__next(trace, &r, NULL), 0);
	assert_int_equal(pem_trace__next(trace, &r, NULL), 0);
	pem_trace__close(trace);
}

static void reads_the_same_after_rewind(void **state)
{
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	int pass;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, FIXTURE_START);
	packet_simple(&packet, FIXTURE_START + 1, 11);
	packet_simple(&packet, FIXTURE_START + 2, 12);
	packet_write(&packet, &fixture, "u_1_0");
	trace = open_trace();
	for (pass = 0; pass < 3; pass++) {
		next(trace, &r);
		assert_int_equal(pem_record__u64(&r, 0), 11);
		if (pass < 2) {
			next(trace, &r);
			assert_int_equal(pem_record__u64(&r, 0), 12);
			assert_int_equal(pem_trace__next(trace, &r, NULL), 0);
		}
		assert_int_equal(pem_trace__rewind(trace), 0);
	}
	pem_trace__close(trace);
}

static void follows_the_clock_across_32_bits(void **state)
{
	uint64_t at = FIXTURE_START | 0xfffffff0u, step = 0xffffffffu;
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	int i;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, at - 5);
	for (i = 0; i < 10; i++)
		packet_simple(&packet, at + (uint64_t)i * step, (uint64_t)i);
	packet_write(&packet, &fixture, "u_1_0");
	/* Many wraps between packets. */
	packet_next(&packet, at + 100 * step);
	packet_simple(&packet, at + 100 * step + 7, 10);
	packet_write(&packet, &fixture, "u_1_0");
	trace = open_trace();
	for (i = 0; i < 10; i++) {
		next(trace, &r);
		assert_true(r.clock == at + (uint64_t)i * step);
	}
	next(trace, &r);
	assert_true(r.clock == at + 100 * step + 7);
	pem_trace__close(trace);
}

static void scales_time_exactly(void **state)
{
	static const uint64_t rates[] = {1,          3,          19200000,      2500000000,
					 2999999999, 4294967295, 4294967296ull, 5123456789ull};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	uint64_t hz, ticks;
	char run[128];
	size_t i;
	int k;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, 0);
	packet_simple(&packet, 500, 0); /* before the start */
	for (k = 0; k < 60; k++)
		packet_simple(&packet, 1000 + (uint64_t)k * 0xfedcba98u, 0);
	packet_write(&packet, &fixture, "u_1_0");
	for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		hz = rates[i];
		snprintf(run, sizeof(run), "start_clock=1000\nclock_hz=%llu\n",
			 (unsigned long long)hz);
		fixture_text(&fixture, ".pem/run", run);
		trace = open_trace();
		next(trace, &r);
		assert_int_equal(r.time_ns, 0);
		for (k = 0; k < 60; k++) {
			next(trace, &r);
			ticks = (uint64_t)k * 0xfedcba98u;
			assert_true(r.time_ns ==
				    (uint64_t)((unsigned __int128)ticks * 1000000000u / hz));
		}
		pem_trace__close(trace);
	}
}

/* A body of event Mixed: text, then count list elements, as the layout says. */
static size_t mixed_body(uint8_t *body, const char *text, uint32_t count, const uint64_t *list)
{
	double real = 2.5;
	size_t at = 16;

	memset(body, 0, 128);
	body[0] = 0xff; /* int8 -1 */
	memcpy(body + 4, &count, sizeof(count));
	memcpy(body + 8, &real, sizeof(real));
	memcpy(body + at, text, strlen(text) + 1);
	at = (at + strlen(text) + 1 + 7) & ~(size_t)7;
	if (count)
		memcpy(body + at, list, count * sizeof(*list));
	return at + count * sizeof(*list);
}

static void gives_fields_of_every_kind(void **state)
{
	static const uint64_t list[3] = {7, 8, UINT64_MAX};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	const void *elements;
	uint8_t body[128];
	size_t bytes;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, FIXTURE_START);
	bytes = mixed_body(body, "caf\xc3\xa9", 3, list);
	packet_add(&packet, FIXTURE_START + 1, EVENT_MIXED, body, bytes);
	bytes = mixed_body(body, "", 0, list);
	packet_add(&packet, FIXTURE_START + 2, EVENT_MIXED, body, bytes);
	packet_simple(&packet, FIXTURE_START + 3, UINT64_MAX);
	packet_write(&packet, &fixture, "u_1_0");
	trace = open_trace();
	next(trace, &r);
	assert_string_equal(r.event->name, "APP::Test::Mixed");
	assert_true(pem_record__i64(&r, 0) == -1);
	assert_true(pem_record__u64(&r, 0) == UINT64_MAX);
	assert_true(pem_record__f64(&r, 0) == -1.0);
	assert_string_equal(pem_record__string(&r, 1), "caf\xc3\xa9");
	assert_int_equal(pem_record__list(&r, 2, &elements), 3);
	assert_memory_equal(elements, list, sizeof(list));
	assert_int_equal((uintptr_t)elements % 8, 0);
	assert_true(pem_record__f64(&r, 3) == 2.5);
	assert_true(pem_record__i64(&r, 3) == 2);
	/* What a field is not. */
	assert_true(pem_record__u64(&r, 1) == 0);
	assert_true(pem_record__u64(&r, 2) == 0);
	assert_string_equal(pem_record__string(&r, 0), "");
	assert_int_equal(pem_record__list(&r, 1, &elements), 0);
	assert_true(pem_record__u64(&r, 99) == 0);
	assert_string_equal(pem_record__string(&r, 99), "");
	next(trace, &r);
	assert_string_equal(pem_record__string(&r, 1), "");
	assert_int_equal(pem_record__list(&r, 2, &elements), 0);
	next(trace, &r);
	assert_true(pem_record__u64(&r, 0) == UINT64_MAX);
	assert_true(pem_record__i64(&r, 0) == -1);
	pem_trace__close(trace);
}

static void passes_over_padding_and_empty_packets(void **state)
{
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	int i;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, FIXTURE_START);
	for (i = 0; i < 50; i++) {
		if (i % 3)
			packet_simple(&packet, FIXTURE_START + 10 * (uint64_t)i, (uint64_t)i);
		packet.header.packet_size = 8192 * 8;
		packet_write(&packet, &fixture, "u_1_0");
		packet_next(&packet, FIXTURE_START + 10 * (uint64_t)i);
	}
	trace = open_trace();
	for (i = 0; i < 50; i++) {
		if (i % 3 == 0)
			continue;
		next(trace, &r);
		assert_int_equal(pem_record__u64(&r, 0), i);
	}
	assert_int_equal(pem_trace__next(trace, &r, NULL), 0);
	assert_int_equal(pem_trace__torn_packets(trace), 0);
	pem_trace__close(trace);
}

static void reads_packets_larger_than_its_blocks(void **state)
{
	enum { RECORDS = 4000, PACKETS = 30 };
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	uint64_t clock = FIXTURE_START;
	int i, k;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, clock);
	for (k = 0; k < PACKETS; k++) {
		for (i = 0; i < RECORDS; i++)
			packet_simple(&packet, ++clock, (uint64_t)(k * RECORDS + i));
		packet.header.packet_size = (uint64_t)(k % 2 ? 120000 : 65536) * 8;
		packet_write(&packet, &fixture, "u_1_0");
		packet_next(&packet, clock);
	}
	trace = open_trace();
	for (i = 0; i < RECORDS * PACKETS; i++) {
		next(trace, &r);
		if (pem_record__u64(&r, 0) != (uint64_t)i)
			fail_msg("record %d", i);
	}
	assert_int_equal(pem_trace__next(trace, &r, NULL), 0);
	pem_trace__close(trace);
}

static void tells_run_and_balance(void **state)
{
	const struct pem_trace_info *info;
	struct pem_balance b;
	struct pem_trace *trace;

	(void)state;
	fixture_text(&fixture, ".pem/run",
		     "command=sqlite3 db\nhost=here\nversion=0.1.0\nstart_time_ns=5\n"
		     "start_clock=6\nduration_ns=7\nclock_hz=8\nclock_error_ns=9\n"
		     "recorder_cpu_ns=10\nprogram_cpu_ns=11\nexit_status=-1\ncomplete=1\n"
		     "cost=user-log\t12.5\t100\ncost=kernel-log\t80\t3\n"
		     "gap=counters\tthis machine has no PMU\nsomething_new=1\n");
	fixture_text(&fixture, ".pem/balance",
		     "producer\t0\tkernel\nevent\t00000101\t10\t7\t2\t1\n"
		     "producer\t42\tsqlite3\nevent\t00000104\t5\t5\t0\t0\n"
		     "event\t00000101\t1\t1\t0\t0\nend\n");
	trace = open_trace();
	info = pem_trace__info(trace);
	assert_string_equal(info->command, "sqlite3 db");
	assert_string_equal(info->host, "here");
	assert_string_equal(info->version, "0.1.0");
	assert_int_equal(info->start_time_ns, 5);
	assert_int_equal(info->duration_ns, 7);
	assert_int_equal(info->clock_error_ns, 9);
	assert_int_equal(info->program_cpu_ns, 11);
	assert_int_equal(info->exit_status, -1);
	assert_int_equal(info->complete, 1);
	assert_int_equal(info->cost_count, 2);
	assert_string_equal(info->costs[0].kind, "user-log");
	assert_true(info->costs[0].ns_each == 12.5);
	assert_int_equal(info->costs[1].count, 3);
	assert_int_equal(info->gap_count, 1);
	assert_string_equal(info->gaps[0].reason, "this machine has no PMU");
	assert_int_equal(pem_trace__producer_count(trace), 2);
	assert_int_equal(pem_trace__producer(trace, 1)->pid, 42);
	assert_string_equal(pem_trace__producer(trace, 1)->name, "sqlite3");
	assert_int_equal(pem_trace__producer(trace, 1)->balance.produced, 6);
	assert_null(pem_trace__producer(trace, 2));
	b = pem_trace__event_balance(trace, pem_model__by_id(pem_trace__model(trace), EVENT_FAULT));
	assert_int_equal(b.produced, 11);
	assert_int_equal(b.delivered, 8);
	assert_int_equal(b.discarded, 2);
	assert_int_equal(b.overwritten, 1);
	b = pem_trace__event_balance(trace, pem_model__by_id(pem_trace__model(trace), EVENT_FORK));
	assert_int_equal(b.produced, 0);
	assert_int_equal(pem_trace__total_balance(trace).produced, 16);
	assert_string_equal(pem_trace__process_name(trace, 42), "sqlite3");
	assert_string_equal(pem_trace__process_name(trace, 43), "");
	pem_trace__close(trace);
}

static void opens_what_a_killed_recorder_left(void **state)
{
	static const char *const balances[] = {NULL, "", "producer\t1\tx\n",
					       "producer\t1\tx\nevent\t00000104\t5"};
	struct pem_trace *trace;
	char path[96];
	size_t i;

	(void)state;
	snprintf(path, sizeof(path), "%s/.pem/balance", fixture.path);
	for (i = 0; i < sizeof(balances) / sizeof(balances[0]); i++) {
		if (balances[i])
			fixture_text(&fixture, ".pem/balance", balances[i]);
		else
			unlink(path);
		trace = open_trace();
		assert_int_equal(pem_trace__info(trace)->complete, 0);
		assert_int_equal(pem_trace__total_balance(trace).produced, 0);
		assert_int_equal(pem_trace__producer_count(trace), 0);
		pem_trace__close(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(merges_streams_by_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reads_the_same_after_rewind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(follows_the_clock_across_32_bits, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(scales_time_exactly, set_up, tear_down),
		cmocka_unit_test_setup_teardown(gives_fields_of_every_kind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(passes_over_padding_and_empty_packets, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(reads_packets_larger_than_its_blocks, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(tells_run_and_balance, set_up, tear_down),
		cmocka_unit_test_setup_teardown(opens_what_a_killed_recorder_left, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
