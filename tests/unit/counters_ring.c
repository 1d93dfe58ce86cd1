// SPDX-License-Identifier: MIT
/*
 * counters_ring.c - parsing perf's ring: good records, records across its end, and lengths that lie
 */
#include "sources/counters/counters.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RING_BYTES 512u

struct fixture {
	uint8_t data[RING_BYTES];
	struct ring ring;
	uint64_t head;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->ring.data = f->data;
	f->ring.data_bytes = RING_BYTES;
	f->ring.has_read = 1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	free(*state);
	return 0;
}

static void put(struct fixture *f, const void *from, size_t bytes)
{
	const uint8_t *at = from;

	while (bytes--)
		f->data[f->head++ % RING_BYTES] = *at++;
}

static void put_header(struct fixture *f, uint32_t type, uint16_t size)
{
	struct perf_event_header header = {.type = type, .size = size};

	put(f, &header, sizeof(header));
}

/* A sample with nr values 100, 101, ... that claims to have claimed of them. */
static void put_sample(struct fixture *f, uint64_t ip, uint64_t nr, uint64_t claimed)
{
	uint64_t time = 77, times[2] = {10, 10}, value;
	uint32_t ids[2] = {11, 12};

	put_header(f, PERF_RECORD_SAMPLE, (uint16_t)(8 + 8 + 8 + 8 + 24 + nr * 8));
	put(f, &ip, 8);
	put(f, ids, 8);
	put(f, &time, 8);
	put(f, &claimed, 8);
	put(f, times, 16);
	for (value = 100; value < 100 + nr; value++)
		put(f, &value, 8);
}

static void put_lost(struct fixture *f, uint64_t lost)
{
	uint64_t words[2] = {1, lost};

	put_header(f, PERF_RECORD_LOST, 24);
	put(f, words, sizeof(words));
}

/* Loads and stores at the same time, which the kernel could not tell apart. */
static void samples_that_the_processor_lost_are_counted(void **state)
{
	struct fixture *f = *state;
	const uint64_t lost = 5;
	struct ring_sample sample;

	put_header(f, PERF_RECORD_LOST_SAMPLES, 16);
	put(f, &lost, sizeof(lost));
	put_lost(f, 2);
	put_sample(f, 0x1000, 1, 1);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 1);
	assert_int_equal(f->ring.lost, 7);
}

static void samples_come_out_in_order(void **state)
{
	struct fixture *f = *state;
	struct ring_sample sample;

	put_sample(f, 0x1000, 2, 2);
	put_sample(f, 0x2000, 1, 1);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 1);
	assert_int_equal(sample.ip, 0x1000);
	assert_int_equal(sample.pid, 11);
	assert_int_equal(sample.tid, 12);
	assert_int_equal(sample.time_ns, 77);
	assert_int_equal(sample.value_count, 2);
	assert_int_equal(sample.values[1], 101);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 1);
	assert_int_equal(sample.ip, 0x2000);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 0);
	assert_int_equal(f->ring.tail, f->head);
	assert_int_equal(f->ring.lost, 0);
}

static void a_record_across_the_end_is_whole(void **state)
{
	struct fixture *f = *state;
	struct ring_sample sample;
	uint64_t start;

	for (start = RING_BYTES - 72; start < RING_BYTES; start += 8) {
		f->ring.tail = f->head = start;
		put_sample(f, 0x3000 + start, 3, 3);
		assert_int_equal(ring__next(&f->ring, f->head, &sample), 1);
		assert_int_equal(sample.ip, 0x3000 + start);
		assert_int_equal(sample.values[2], 102);
		assert_int_equal(ring__next(&f->ring, f->head, &sample), 0);
	}
}

static void lost_records_are_counted_and_others_passed_over(void **state)
{
	struct fixture *f = *state;
	struct ring_sample sample;

	put_header(f, PERF_RECORD_THROTTLE, 16);
	put(f, "12345678", 8);
	put_lost(f, 41);
	put_sample(f, 0x1000, 1, 1);
	put_lost(f, 1);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 1);
	assert_int_equal(sample.ip, 0x1000);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 0);
	assert_int_equal(f->ring.lost, 42);
}

static void assert_damaged(struct fixture *f)
{
	struct ring_sample sample;

	assert_int_equal(ring__next(&f->ring, f->head, &sample), -EINVAL);
	assert_int_equal(f->ring.tail, f->head);
	assert_int_equal(f->ring.lost, 1);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 0);
}

static void a_record_of_no_length_ends_it(void **state)
{
	struct fixture *f = *state;

	put_header(f, PERF_RECORD_SAMPLE, 0);
	assert_damaged(f);
}

static void a_record_longer_than_what_is_there_ends_it(void **state)
{
	struct fixture *f = *state;

	put_header(f, PERF_RECORD_THROTTLE, 64);
	assert_damaged(f);
}

static void a_record_longer_than_its_sample_ends_it(void **state)
{
	struct fixture *f = *state;
	uint8_t zeros[400] = {0};

	put_header(f, PERF_RECORD_SAMPLE, 8 + sizeof(zeros));
	put(f, zeros, sizeof(zeros));
	assert_damaged(f);
}

static void a_head_further_than_the_ring_is_long_ends_it(void **state)
{
	struct fixture *f = *state;

	f->head = RING_BYTES * 2;
	assert_damaged(f);
}

static void more_values_than_the_record_holds_end_it(void **state)
{
	struct fixture *f = *state;

	put_sample(f, 0x1000, 1, 2);
	assert_damaged(f);
}

static void more_values_than_we_ask_for_end_it(void **state)
{
	struct fixture *f = *state;

	put_sample(f, 0x1000, 1, UINT64_MAX / 8 + 1);
	assert_damaged(f);
}

static void a_lost_record_cut_short_ends_it(void **state)
{
	struct fixture *f = *state;
	uint64_t id = 1;

	put_header(f, PERF_RECORD_LOST, 16);
	put(f, &id, 8);
	assert_damaged(f);
}

static void values_counted_part_of_the_time_are_scaled(void **state)
{
	struct fixture *f = *state;
	uint64_t times[2] = {400, 100};
	struct ring_sample sample;

	put_sample(f, 0x1000, 1, 1);
	memcpy(f->data + 40, times, sizeof(times)); /* behind header, ip, ids, time, nr */
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 1);
	assert_int_equal(sample.values[0], 400);
}

/* A sample whose stack has words of a callchain, and claims to have claimed of them. */
static void put_stack(struct fixture *f, const uint64_t *words, uint64_t count, uint64_t claimed)
{
	uint64_t ip = 0x1000, time = 77;
	uint32_t ids[2] = {11, 12};

	f->ring.has_read = 0;
	f->ring.has_callers = 1;
	put_header(f, PERF_RECORD_SAMPLE, (uint16_t)(8 + 8 + 8 + 8 + 8 + count * 8));
	put(f, &ip, 8);
	put(f, ids, 8);
	put(f, &time, 8);
	put(f, &claimed, 8);
	put(f, words, count * 8);
}

static void callers_are_those_behind_the_instruction(void **state)
{
	static const uint64_t words[] = {PERF_CONTEXT_USER, 0x1000, 0x2000, 0x3000};
	struct fixture *f = *state;
	struct ring_sample sample;

	put_stack(f, words, 4, 4);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_SAMPLE);
	assert_int_equal(sample.caller_count, 2);
	assert_int_equal(sample.callers[0], 0x2000);
	assert_int_equal(sample.callers[1], 0x3000);
}

static void where_the_program_entered_the_kernel_is_a_caller(void **state)
{
	static const uint64_t words[] = {PERF_CONTEXT_KERNEL,
					 0xffffffff81000000,
					 0xffffffff82000000,
					 PERF_CONTEXT_USER,
					 0x2000,
					 0x3000};
	struct fixture *f = *state;
	struct ring_sample sample;

	put_stack(f, words, 6, 6);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_SAMPLE);
	assert_int_equal(sample.caller_count, 3);
	assert_int_equal(sample.callers[0], 0xffffffff82000000);
	/* An instruction, and no return address: behind its begin. */
	assert_int_equal(sample.callers[1], 0x2001);
	assert_int_equal(sample.callers[2], 0x3000);
}

static void a_stack_without_callers(void **state)
{
	struct fixture *f = *state;
	struct ring_sample sample;

	put_stack(f, NULL, 0, 0);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_SAMPLE);
	assert_int_equal(sample.caller_count, 0);
}

static void more_callers_than_the_record_holds_end_it(void **state)
{
	static const uint64_t words[] = {PERF_CONTEXT_USER, 0x1000};
	struct fixture *f = *state;

	put_stack(f, words, 2, 3);
	assert_damaged(f);
}

static void fewer_callers_than_the_record_holds_end_it(void **state)
{
	static const uint64_t words[] = {PERF_CONTEXT_USER, 0x1000};
	struct fixture *f = *state;

	put_stack(f, words, 2, UINT64_MAX / 8 + 2);
	assert_damaged(f);
}

static void more_callers_than_a_sample_has_room_for_are_left_out(void **state)
{
	static uint8_t data[4096];
	struct fixture *f = *state;
	struct ring_sample sample;
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = 8 + 32 + 200 * 8};
	uint64_t count = 200;

	memcpy(data, &header, sizeof(header));
	memcpy(data + 32, &count, 8);
	f->ring = (struct ring){.data = data, .data_bytes = sizeof(data), .has_callers = 1};
	assert_int_equal(ring__next(&f->ring, header.size, &sample), RING_SAMPLE);
	assert_int_equal(sample.caller_count, RING_CALLERS_MAX);
}

/* A sample with two registers and bytes of stack, of which used were copied. */
static void put_registers(struct fixture *f, uint64_t abi, uint64_t bytes, uint64_t used)
{
	uint64_t words[3] = {0x1000, 0, 77}, registers[2] = {5, 6}, stack[8] = {7, 8};

	f->ring.has_read = 0;
	f->ring.register_count = 2;
	f->ring.has_stack = 1;
	f->ring.tells_all_maps = 1;
	put_header(f, PERF_RECORD_SAMPLE,
		   (uint16_t)(8 + 24 + 8 + (abi ? 16 : 0) + 8 + bytes + (bytes ? 8 : 0)));
	put(f, words, sizeof(words));
	put(f, &abi, 8);
	if (abi)
		put(f, registers, 16);
	put(f, &bytes, 8);
	put(f, stack, bytes < sizeof(stack) ? bytes : sizeof(stack));
	if (bytes)
		put(f, &used, 8);
}

/* As samples of data have them. */
static void registers_come_without_a_stack(void **state)
{
	uint64_t words[6] = {0x1000, 0, 77, PERF_SAMPLE_REGS_ABI_64, 5, 6};
	struct fixture *f = *state;
	struct ring_sample sample;

	f->ring.has_read = 0;
	f->ring.register_count = 2;
	put_header(f, PERF_RECORD_SAMPLE, 8 + sizeof(words));
	put(f, words, sizeof(words));
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_SAMPLE);
	assert_int_equal(sample.registers[1], 6);
	assert_int_equal(sample.stack_bytes, 0);
	assert_int_equal(sample.data.address, 0);
}

static void registers_and_stack_are_told(void **state)
{
	struct fixture *f = *state;
	struct ring_sample sample;

	put_registers(f, PERF_SAMPLE_REGS_ABI_64, 32, 16);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_SAMPLE);
	assert_int_equal(sample.abi, PERF_SAMPLE_REGS_ABI_64);
	assert_int_equal(sample.registers[1], 6);
	assert_int_equal(sample.stack_bytes, 16);
	assert_int_equal(sample.stack[8], 8);
}

static void a_thread_of_the_kernel_has_no_stack(void **state)
{
	struct fixture *f = *state;
	struct ring_sample sample;

	put_registers(f, PERF_SAMPLE_REGS_ABI_NONE, 0, 0);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_SAMPLE);
	assert_int_equal(sample.abi, PERF_SAMPLE_REGS_ABI_NONE);
	assert_int_equal(sample.stack_bytes, 0);
}

static void more_stack_than_was_copied_ends_it(void **state)
{
	struct fixture *f = *state;

	put_registers(f, PERF_SAMPLE_REGS_ABI_64, 32, 33);
	assert_damaged(f);
}

static void a_stack_longer_than_the_record_ends_it(void **state)
{
	struct fixture *f = *state;
	uint64_t bytes = 4096;

	put_registers(f, PERF_SAMPLE_REGS_ABI_64, 32, 16);
	memcpy(f->data + 8 + 24 + 8 + 16, &bytes, 8);
	assert_damaged(f);
}

static void put_task(struct fixture *f, uint32_t type, const uint32_t ids[4], uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc, .size = 8 + 16 + 8 + 8 + 8};
	uint64_t times[3] = {99, 0, 99}; /* its own, and sample_id */

	put(f, &header, sizeof(header));
	put(f, ids, 16);
	put(f, times, sizeof(times));
}

static void what_changes_memory_is_told(void **state)
{
	static const uint32_t child[] = {21, 11, 21, 11}, thread[] = {11, 11, 12, 11};
	struct fixture *f = *state;
	struct ring_sample sample;

	f->ring.tells_maps = 1;
	put_task(f, PERF_RECORD_FORK, thread, 0);
	put_task(f, PERF_RECORD_FORK, child, 0);
	put_task(f, PERF_RECORD_COMM, child, 0); /* it changed its name alone */
	put_task(f, PERF_RECORD_COMM, child, PERF_RECORD_MISC_COMM_EXEC);
	put_task(f, PERF_RECORD_EXIT, child, 0); /* its memory may be other threads' */
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_TASK);
	assert_int_equal(f->ring.task.pid, 21);
	assert_int_equal(f->ring.task.parent, 11);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_TASK);
	assert_int_equal(f->ring.task.pid, 21);
	assert_int_equal(f->ring.task.parent, 0);
	assert_int_equal(f->ring.task.time_ns, 99);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 0);
}

static void the_time_of_what_comes_next(void **state)
{
	static const uint32_t child[] = {21, 11, 21, 11};
	struct fixture *f = *state;
	struct ring_sample sample;

	f->ring.tells_maps = 1;
	assert_int_equal(ring__time_ns(&f->ring, f->head), 0);
	put_task(f, PERF_RECORD_FORK, child, 0);
	put_registers(f, PERF_SAMPLE_REGS_ABI_64, 32, 16);
	assert_int_equal(ring__time_ns(&f->ring, f->head), 99);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_TASK);
	assert_int_equal(ring__time_ns(&f->ring, f->head), 77);
	assert_int_equal(ring__time_ns(&f->ring, f->head - 8), 0); /* cut */
}

static void a_record_that_is_too_short_has_no_time(void **state)
{
	static const uint32_t types[] = {PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2};
	struct fixture *f = *state;
	uint16_t size, least;
	uint64_t word;
	int i;

	for (i = 0; i < 2; i++) {
		least = i ? 16 : 32;
		for (size = 0; size <= least; size++) {
			f->ring.tail = f->head = 0;
			put_header(f, types[i], size);
			for (word = 1; word <= 7; word++)
				put(f, &word, sizeof(word));
			assert_int_equal(ring__time_ns(&f->ring, f->head) != 0, size == least);
		}
	}
}

/* A mapping of a file whose name takes bytes in the record, a multiple of 8. */
static void put_map(struct fixture *f, const char *name, size_t bytes, uint16_t misc, uint8_t id)
{
	struct perf_event_header header = {
		.type = PERF_RECORD_MMAP2, .misc = misc, .size = (uint16_t)(72 + bytes + 16)};
	uint32_t ids[2] = {11, 12}, protection[2] = {5, 2};
	uint64_t place[3] = {0x7000, 0x3000, 0x2000}, time = 88;
	uint8_t build_id[24] = {id};
	char text[400] = "";

	memset(build_id + 4, 0xab, 20);
	snprintf(text, sizeof(text), "%s", name);
	put(f, &header, sizeof(header));
	put(f, ids, 8);
	put(f, place, 24);
	put(f, build_id, 24);
	put(f, protection, 8);
	put(f, text, bytes);
	put(f, ids, 8);
	put(f, &time, 8);
}

static void what_is_mapped_comes_out_among_samples(void **state)
{
	struct fixture *f = *state;
	struct ring_sample sample;

	f->ring.tells_maps = 1;
	put_map(f, "/bin/true", 16, PERF_RECORD_MISC_MMAP_BUILD_ID, 20);
	put_sample(f, 0x1000, 1, 1);
	put_map(f, "//anon", 8, 0, 0);
	put_map(f, "[vdso]", 8, 0, 0);
	put_map(f, "/bin/false", 16, 0, 20); /* device and inode, no build id */
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_MAP);
	assert_string_equal(f->ring.map.path, "/bin/true");
	assert_int_equal(f->ring.map.pid, 11);
	assert_int_equal(f->ring.map.tid, 12);
	assert_int_equal(f->ring.map.address, 0x7000);
	assert_int_equal(f->ring.map.length, 0x3000);
	assert_int_equal(f->ring.map.offset, 0x2000);
	assert_int_equal(f->ring.map.time_ns, 88);
	assert_int_equal(f->ring.map.build_id_bytes, 20);
	assert_int_equal(f->ring.map.build_id[19], 0xab);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_SAMPLE);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_MAP);
	assert_string_equal(f->ring.map.path, "/bin/false");
	assert_int_equal(f->ring.map.build_id_bytes, 0);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), 0);
	assert_int_equal(f->ring.lost, 0);
}

static void what_is_mapped_is_passed_over_where_nobody_asked(void **state)
{
	struct fixture *f = *state;
	struct ring_sample sample;

	put_map(f, "/bin/true", 16, 0, 0);
	put_sample(f, 0x1000, 1, 1);
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_SAMPLE);
}

static void of_a_path_too_long_the_beginning_is_kept(void **state)
{
	struct fixture *f = *state;
	struct ring_sample sample;
	char name[321];

	memset(name, 'd', sizeof(name));
	name[0] = '/';
	name[320] = 0;
	f->ring.tells_maps = 1;
	put_map(f, name, 320, PERF_RECORD_MISC_MMAP_BUILD_ID, 255); /* that id has no such length */
	assert_int_equal(ring__next(&f->ring, f->head, &sample), RING_MAP);
	assert_int_equal(strlen(f->ring.map.path), sizeof(f->ring.map.path) - 1);
	assert_int_equal(f->ring.map.build_id_bytes, 0);
}

static void a_mapping_too_short_ends_it(void **state)
{
	struct fixture *f = *state;

	f->ring.tells_maps = 1;
	put_header(f, PERF_RECORD_MMAP2, 80);
	f->head = f->ring.tail + 80;
	assert_damaged(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_mapped_comes_out_among_samples),
		TEST(what_is_mapped_is_passed_over_where_nobody_asked),
		TEST(of_a_path_too_long_the_beginning_is_kept),
		TEST(a_mapping_too_short_ends_it),
		TEST(samples_that_the_processor_lost_are_counted),
		TEST(samples_come_out_in_order),
		TEST(a_record_across_the_end_is_whole),
		TEST(lost_records_are_counted_and_others_passed_over),
		TEST(a_record_of_no_length_ends_it),
		TEST(a_record_longer_than_what_is_there_ends_it),
		TEST(a_record_longer_than_its_sample_ends_it),
		TEST(a_head_further_than_the_ring_is_long_ends_it),
		TEST(more_values_than_the_record_holds_end_it),
		TEST(more_values_than_we_ask_for_end_it),
		TEST(a_lost_record_cut_short_ends_it),
		TEST(values_counted_part_of_the_time_are_scaled),
		TEST(callers_are_those_behind_the_instruction),
		TEST(registers_come_without_a_stack),
		TEST(registers_and_stack_are_told),
		TEST(a_thread_of_the_kernel_has_no_stack),
		TEST(more_stack_than_was_copied_ends_it),
		TEST(a_stack_longer_than_the_record_ends_it),
		TEST(what_changes_memory_is_told),
		TEST(the_time_of_what_comes_next),
		TEST(a_record_that_is_too_short_has_no_time),
		TEST(where_the_program_entered_the_kernel_is_a_caller),
		TEST(a_stack_without_callers),
		TEST(more_callers_than_the_record_holds_end_it),
		TEST(fewer_callers_than_the_record_holds_end_it),
		TEST(more_callers_than_a_sample_has_room_for_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
