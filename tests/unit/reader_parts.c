// SPDX-License-Identifier: MIT
/*
 * reader_parts.c - packets that are longer than the reader's blocks: all of their records, and no
 * memory for what they claim
 *
 * Not here: packets that fit (reader_merge.c), damage in their headers (reader_damage.c).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "reader_fixture.h"

#define RECORDS 60000u
#define NAME_MAX_BYTES 31u

static uint8_t *content; /* a packet under construction, longer than struct packet can be */
static size_t used;

static void begin_long(uint64_t clock)
{
	content = realloc(content, 4u << 20);
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, clock);
	used = sizeof(packet.header);
}

/* Phases by names of all lengths, and numbers. */
static void add_record(uint32_t i)
{
	struct pem_record_header header = {(uint32_t)T(i), i % 2 ? EVENT_BEGIN : EVENT_SIMPLE};
	size_t length = i / 2 % (NAME_MAX_BYTES + 1);
	uint64_t value = i;

	used = (used + 7) & ~(size_t)7;
	memcpy(content + used, &header, sizeof(header));
	used += sizeof(header);
	if (i % 2) {
		memset(content + used, 'a' + (int)(i % 26), length);
		content[used + length] = 0;
		used += length + 1;
	} else {
		memcpy(content + used, &value, sizeof(value));
		used += sizeof(value);
	}
}

static void end_long(uint64_t clock, size_t cut)
{
	packet.header.timestamp_end = clock;
	packet.header.content_size = (uint64_t)(used - cut) * 8;
	packet.header.packet_size = (((uint64_t)used + 7) & ~7ull) * 8;
	memcpy(content, &packet.header, sizeof(packet.header));
	memset(content + used, 0, 8);
	fixture_write(&fixture, "u_1_0", content, (used + 7) & ~(size_t)7, "a");
}

static void check_record(const struct pem_record *r, uint32_t i)
{
	const char *name = pem_record__string(r, 0);

	assert_int_equal(r->clock, T(i));
	if (i % 2) {
		assert_int_equal(strlen(name), i / 2 % (NAME_MAX_BYTES + 1));
		assert_int_equal(name[0], name[0] ? 'a' + (int)(i % 26) : 0);
	} else {
		assert_int_equal(pem_record__u64(r, 0), i);
	}
}

static void has_all_of_a_long_packet(void **state)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	uint32_t i, k;

	(void)state;
	begin_long(T(0));
	for (i = 0; i < RECORDS; i++)
		add_record(i);
	end_long(T(i), 0);
	packet_next(&packet, T(i));
	packet_simple(&packet, T(i), i); /* and of the one behind it */
	packet_write(&packet, &fixture, "u_1_0");
	trace = open_trace();
	for (k = 0; k < 2; k++) {
		for (i = 0; i <= RECORDS; i++) {
			assert_int_equal(pem_trace__next(trace, &r, &error), 1);
			check_record(&r, i);
		}
		assert_int_equal(pem_trace__next(trace, &r, &error), 0);
		assert_int_equal(pem_trace__rewind(trace), 0);
	}
	assert_int_equal(pem_trace__torn_packets(trace), 0);
	pem_trace__close(trace);
}

/* Wherever the content ends that is claimed, its last record is there or is damage. */
static void finds_damage_at_its_end(void **state)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	uint32_t i, count;
	size_t cut;
	int rc;

	(void)state;
	for (cut = 1; cut < 24; cut++) {
		fixture_write(&fixture, "u_1_0", "", 0, "w");
		begin_long(T(0));
		for (i = 0; i < RECORDS; i++)
			add_record(i);
		add_record(RECORDS); /* 16 bytes */
		end_long(T(i), cut);
		trace = open_trace();
		for (count = 0; (rc = pem_trace__next(trace, &r, &error)) == 1; count++)
			check_record(&r, count);
		assert_int_equal(rc, cut == 16 ? 0 : -EINVAL);
		assert_in_range(count, RECORDS - 1, RECORDS);
		pem_trace__close(trace);
	}
}

static void is_torn_where_the_file_ends(void **state)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	char path[160];
	uint32_t i;

	(void)state;
	begin_long(T(0));
	for (i = 0; i < RECORDS; i++)
		add_record(i);
	end_long(T(i), 0);
	trace = open_trace();
	snprintf(path, sizeof(path), "%s/u_1_0", fixture.path);
	assert_int_equal(pem_trace__next(trace, &r, &error), 1);
	assert_int_equal(truncate(path, (off_t)used / 2), 0);
	for (i = 1; pem_trace__next(trace, &r, &error) == 1; i++)
		check_record(&r, i);
	assert_in_range(i, 1000, RECORDS - 1);
	assert_int_equal(pem_trace__torn_packets(trace), 1);
	pem_trace__close(trace);
}

#define STREAMS 10
#define CLAIMED_BYTES ((size_t)200 << 20)

/* Most memory that a process took to read the trace, in bytes; *records: how many it has. */
static size_t memory_to_read(unsigned *records)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	struct rusage usage;
	int status, rc;
	pid_t pid = fork();

	if (!pid) {
		*records = 0;
		trace = pem_trace__open(fixture.path, &error);
		while (trace && (rc = pem_trace__next(trace, &r, &error)) != 0)
			*records += rc == 1;
		_exit(trace ? (int)*records : 255);
	}
	assert_int_equal(wait4(pid, &status, 0, &usage), pid);
	assert_true(WIFEXITED(status));
	*records = (unsigned)WEXITSTATUS(status);
	return (size_t)usage.ru_maxrss * 1024;
}

/* Each stream has a record, and a hole behind it that its packet claims. */
static void takes_no_memory_for_claims(void **state)
{
	char name[16], path[160];
	size_t without, with;
	unsigned records, i;

	(void)state;
	without = memory_to_read(&records);
	assert_int_equal(records, 0);
	for (i = 0; i < STREAMS; i++) {
		snprintf(name, sizeof(name), "u_1_%u", i);
		packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, T(0));
		packet_simple(&packet, T(i), i);
		packet.header.timestamp_end = T(1000);
		packet.header.content_size = packet.header.packet_size = CLAIMED_BYTES * 8;
		packet.header.stream_instance_id = i;
		packet_write(&packet, &fixture, name);
		snprintf(path, sizeof(path), "%s/%s", fixture.path, name);
		assert_int_equal(truncate(path, (off_t)CLAIMED_BYTES), 0);
	}
	with = memory_to_read(&records);
	assert_int_equal(records, STREAMS);
	assert_in_range(with, 0, without + CLAIMED_BYTES / 2);
}

static int free_content(void **state)
{
	(void)state;
	free(content);
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(has_all_of_a_long_packet),
		TEST(finds_damage_at_its_end),
		TEST(is_torn_where_the_file_ends),
		TEST(takes_no_memory_for_claims),
	};

	return cmocka_run_group_tests(tests, NULL, free_content);
}
