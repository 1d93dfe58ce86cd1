// SPDX-License-Identifier: MIT
/*
 * flight_memory.c - what a flight recorder keeps itself: bounded, counted, and readable from any
 * point on
 *
 * Packets are made by hand, written by the flight's own writer, and read back with pem's reader.
 */
#include "flight/flight.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"
#include "session_fixture.h"
#include "trace_fixture.h"

#define FLIGHT_BYTES PEM_FLIGHT_BYTES_MIN

static struct pem_model *model;
static struct pem_flight *flight;
static uint64_t overwritten, clock_now;

static void count(void *arg, const struct pem_event *event)
{
	(void)arg;
	(void)event;
	overwritten++;
}

static int set_up(void **state)
{
	struct pem_error error = {""};

	if (folder_make(state))
		return -1;
	model = pem_model__new();
	if (pem_model__add_text(model, fixture_model, strlen(fixture_model), "fixture", &error) < 0)
		return -1;
	overwritten = 0;
	clock_now = FIXTURE_START;
	flight = pem_flight__new(model, FLIGHT_BYTES, count, NULL);
	return flight ? 0 : -1;
}

static int tear_down(void **state)
{
	pem_flight__free(flight);
	pem_model__free(model);
	return folder_remove(state);
}

/* A packet of one record. */
static void put(const char *stream, uint32_t source, uint32_t event, const void *fields,
		uint32_t field_bytes)
{
	struct {
		struct pem_packet header;
		struct pem_record_header record;
		uint8_t fields[64];
	} packet = {.header = {.source = source, .record_count = 1}};

	clock_now += 1000;
	packet.header.timestamp_begin = packet.header.timestamp_end = clock_now;
	packet.header.content_size = ((uint64_t)PEM_PACKET_HEADER_BYTES + 8 + field_bytes) * 8;
	packet.header.cpu = source == PEM_PACKET_KERNEL ? 0 : PEM_NO_CPU;
	packet.header.pid = source == PEM_PACKET_USER ? 77 : 0;
	packet.record.clock_low = (uint32_t)clock_now;
	packet.record.event_id = event;
	memcpy(packet.fields, fields, field_bytes);
	assert_int_equal(pem_flight__packet(flight, stream, &packet.header, sizeof(packet)), 0);
}

static void put_fault(void)
{
	uint64_t address = 0x1000;

	put("k_0", PEM_PACKET_KERNEL, EVENT_FAULT, &address, sizeof(address));
}

static void put_switch(uint32_t previous, uint32_t pid, uint32_t tid)
{
	uint32_t fields[] = {previous, pid, tid};

	put("k_0", PEM_PACKET_KERNEL, EVENT_SWITCH, fields, sizeof(fields));
}

/* A process that raised so many events, and ends. */
static void end_process(uint32_t pid, unsigned events)
{
	struct pem_balance_entry entry = {EVENT_SIMPLE, {events, events, 0, 0}};
	char stream[32];
	unsigned i;

	snprintf(stream, sizeof(stream), "u_%u_1_1", pid);
	for (i = 0; i < events; i++)
		put(stream, PEM_PACKET_USER, EVENT_SIMPLE, &(uint64_t){i}, 8);
	assert_int_equal(pem_flight__balance(flight, pid, "short", clock_now, &entry, 1), 0);
}

/* Write it, with the kernel's account, and open what was written. */
static struct pem_trace *written(const char *name, uint64_t kernel_produced)
{
	struct pem_trace_info info = {
		.clock_hz = FIXTURE_HZ, .start_clock = FIXTURE_START, .complete = 1};
	struct pem_balance_entry entry = {
		EVENT_FAULT, {kernel_produced, kernel_produced - overwritten, 0, overwritten}};
	struct pem_error error = {""};
	struct pem_trace_writer *writer;
	struct pem_trace *trace;
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	writer = pem_trace_writer__new(path, model, &info, &error);
	assert_non_null(writer);
	assert_int_equal(pem_flight__write(flight, writer), 0);
	if (kernel_produced)
		pem_trace_writer__balance(writer, 0, "kernel", 0, &entry, 1);
	assert_int_equal(pem_trace_writer__finish(writer, &info), 0);
	pem_trace_writer__free(writer);
	trace = pem_trace__open(path, &error);
	if (!trace)
		fail_msg("%s", error.text);
	return trace;
}

static uint64_t read_all(struct pem_trace *trace)
{
	struct pem_error error = {""};
	struct pem_record record = {.size = sizeof(record)};
	uint64_t n = 0, last = 0;
	int result;

	while ((result = pem_trace__next(trace, &record, &error)) == 1) {
		assert_true(record.clock >= last);
		last = record.clock;
		n++;
	}
	if (result)
		fail_msg("%s", error.text);
	return n;
}

static void check_balance(struct pem_trace *trace, uint64_t produced)
{
	struct pem_balance b = pem_trace__total_balance(trace);

	assert_int_equal(b.produced, produced);
	assert_int_equal(b.produced, b.delivered + b.discarded + b.overwritten);
	assert_int_equal(read_all(trace), b.delivered);
}

static uint64_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* However much comes in, the newest of it is there, and the rest counted. */
static void keeps_the_newest_of_a_source(void **state)
{
	struct pem_trace *trace;
	unsigned i;

	(void)state;
	for (i = 0; i < 100000; i++)
		put_fault();
	assert_true(overwritten > 0 && overwritten < 100000);
	assert_true(pem_flight__has_overwritten(flight));
	trace = written("a", 100000);
	check_balance(trace, 100000);
	pem_trace__close(trace);
	/* It is all there still. */
	trace = written("b", 100000);
	check_balance(trace, 100000);
	pem_trace__close(trace);
}

/* A record's thread is told by a switch that was pushed out long ago. */
static void knows_who_ran_before_the_beginning(void **state)
{
	struct pem_error error = {""};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_trace *trace;
	unsigned i;

	(void)state;
	put_switch(0, 4711, 4712);
	for (i = 0; i < 20000; i++)
		put_fault();
	trace = written("a", 20001);
	assert_int_equal(pem_trace__next(trace, &record, &error), 1);
	assert_int_equal(record.event->id, EVENT_SWITCH);
	for (i = 0; pem_trace__next(trace, &record, &error) == 1; i++) {
		assert_int_equal(record.event->id, EVENT_FAULT);
		assert_int_equal(record.pid, 4711);
		assert_int_equal(record.tid, 4712);
	}
	assert_int_equal(i, 20000 - overwritten);
	pem_trace__close(trace);
}

/* The name, too, though the record that told it is gone; a child's is its parent's. */
static void knows_names_from_before_the_beginning(void **state)
{
	struct {
		uint32_t pid;
		char file[16];
	} exec = {4711, "/bin/worker"};
	uint32_t fork[] = {4711, 4713, 4713};
	struct pem_trace *trace;
	unsigned i;

	(void)state;
	put("k_0", PEM_PACKET_KERNEL, EVENT_EXEC, &exec, 16);
	put("k_0", PEM_PACKET_KERNEL, EVENT_FORK, fork, sizeof(fork));
	for (i = 0; i < 20000; i++)
		put_fault();
	trace = written("a", 20002);
	assert_string_equal(pem_trace__process_name(trace, 4711), "worker");
	assert_string_equal(pem_trace__process_name(trace, 4713), "worker");
	pem_trace__close(trace);
}

/* Thousands of processes: the last ones have accounts of their own, the others one together. */
static void folds_processes_that_nothing_is_left_of(void **state)
{
	struct pem_trace *trace;
	size_t i, named = 0;
	unsigned n;

	(void)state;
	for (n = 1; n <= 30000; n++)
		end_process(n, 2);
	trace = written("a", 0);
	check_balance(trace, 60000);
	for (i = 0; i < pem_trace__producer_count(trace); i++)
		named += pem_trace__producer(trace, i)->pid != 0;
	assert_int_equal(named, PEM_FLIGHT_PROCESSES_MAX);
	assert_int_equal(pem_trace__producer_count(trace), PEM_FLIGHT_PROCESSES_MAX + 1);
	pem_trace__close(trace);
}

/*
 * A process whose pool is larger than the ring pushes out its own records before its account is
 * known.
 */
static void counts_what_one_process_pushes_out_of_itself(void **state)
{
	struct pem_trace *trace;

	(void)state;
	end_process(5, 20000);
	trace = written("a", 0);
	assert_true(pem_trace__total_balance(trace).overwritten > 0);
	check_balance(trace, 20000);
	pem_trace__close(trace);
}

/* Both rings full, many processes, many names: what is resident stays where it was. */
static void stays_within_its_bound(void **state)
{
	struct {
		uint32_t pid;
		char file[16];
	} exec = {0, "/bin/worker"};
	uint64_t before = 0;
	unsigned round, i;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	print_message("# AddressSanitizer keeps what was freed for a while\n");
	skip();
#endif
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 20000; i++) {
			exec.pid = round * 20000 + i + 1;
			put("k_0", PEM_PACKET_KERNEL, EVENT_EXEC, &exec, 16);
			put_switch(1, exec.pid, exec.pid);
			end_process(exec.pid, 1);
		}
		if (round)
			assert_true(resident_bytes() < before + (256u << 10));
		before = resident_bytes();
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(keeps_the_newest_of_a_source),
		TEST(knows_who_ran_before_the_beginning),
		TEST(knows_names_from_before_the_beginning),
		TEST(folds_processes_that_nothing_is_left_of),
		TEST(counts_what_one_process_pushes_out_of_itself),
		TEST(stays_within_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
