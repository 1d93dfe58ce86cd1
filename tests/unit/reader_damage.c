/* SPDX-License-Identifier: MIT */
/*
 * reader_damage.c - damaged traces: each fault is found, said in a sentence, and costs no more than
 * it must
 */
#include "trace_fixture.h"

#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>

#include "reader_fixture.h"

static void refuses_to_open(int code, const char *sentence)
{
	struct pem_error error = {""};
	struct pem_trace *trace = pem_trace__open(fixture.path, &error);

	assert_null(trace);
	assert_int_equal(errno, code);
	if (!strstr(error.text, sentence))
		fail_msg("'%s' does not say '%s'", error.text, sentence);
}

static void remove_file(const char *name)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", fixture.path, name);
	assert_int_equal(unlink(path), 0);
}

/* What a fault is, and what must be said about it. */
struct fault {
	void (*make)(struct pem_packet *header);
	const char *sentence;
};

static void bad_magic(struct pem_packet *h)
{
	h->magic ^= 1;
}

static void bad_uuid(struct pem_packet *h)
{
	h->uuid[15] ^= 1;
}

static void bad_stream_id(struct pem_packet *h)
{
	h->stream_id = 1;
}

static void bad_instance(struct pem_packet *h)
{
	h->stream_instance_id++;
}

static void ends_before_it_begins(struct pem_packet *h)
{
	h->timestamp_end = h->timestamp_begin - 1;
}

static void begins_before_the_last_ended(struct pem_packet *h)
{
	h->timestamp_begin = T(1);
}

static void ends_before_its_record(struct pem_packet *h)
{
	h->timestamp_end = h->timestamp_begin;
}

static void content_is_no_byte(struct pem_packet *h)
{
	h->content_size++;
}

static void content_is_shorter_than_the_header(struct pem_packet *h)
{
	h->content_size = 111 * 8;
}

static void content_is_longer_than_the_packet(struct pem_packet *h)
{
	h->packet_size = h->content_size - 8;
}

static void content_is_huge(struct pem_packet *h)
{
	h->content_size = ~7ull;
}

static void packet_is_no_byte(struct pem_packet *h)
{
	h->packet_size += 3;
}

static void packet_is_huge(struct pem_packet *h)
{
	h->packet_size = ~7ull;
}

static void loss_shrinks(struct pem_packet *h)
{
	h->events_discarded = 4;
}

static void overwritten_shrinks(struct pem_packet *h)
{
	h->events_overwritten = 4;
}

static void sequence_stands_still(struct pem_packet *h)
{
	h->packet_seq_num--;
}

static void unknown_source(struct pem_packet *h)
{
	h->source = 4;
}

static void cpu_beyond_all(struct pem_packet *h)
{
	h->cpu = 8192;
}

static void kernel_without_cpu(struct pem_packet *h)
{
	h->source = PEM_PACKET_KERNEL;
	h->cpu = PEM_NO_CPU;
}

static void content_ends_in_a_record(struct pem_packet *h)
{
	h->content_size -= 8;
}

static void content_ends_in_a_header(struct pem_packet *h)
{
	h->content_size -= 12 * 8;
}

static void content_has_bytes_after_its_records(struct pem_packet *h)
{
	h->content_size += 32;
}

static const struct fault faults[] = {
	{bad_magic, "magic"},
	{bad_uuid, "uuid"},
	{bad_stream_id, "stream class"},
	{bad_instance, "stream number"},
	{ends_before_it_begins, "before its beginning"},
	{begins_before_the_last_ended, "before the packet before it ends"},
	{ends_before_its_record, "after its end"},
	{content_is_no_byte, "content of"},
	{content_is_shorter_than_the_header, "content of"},
	{content_is_longer_than_the_packet, "content of"},
	{content_is_huge, "content of"},
	{packet_is_no_byte, "packet size"},
	{packet_is_huge, "packet size"},
	{loss_shrinks, "fewer lost"},
	{overwritten_shrinks, "fewer lost"},
	{sequence_stands_still, "sequence number"},
	{unknown_source, "unknown source"},
	{cpu_beyond_all, "CPU 8192"},
	{kernel_without_cpu, "without a CPU"},
	{content_ends_in_a_record, "does not fit"},
	{content_ends_in_a_header, "after its last record"},
	{content_has_bytes_after_its_records, "after its last record"},
};

/* A good packet of two records, one with the fault, a good one; and a stream of its own. */
static void write_faulty(void (*make)(struct pem_packet *header))
{
	char path[160];

	snprintf(path, sizeof(path), "%s/u_1_0", fixture.path);
	unlink(path);
	snprintf(path, sizeof(path), "%s/u_2_0", fixture.path);
	unlink(path);
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, T(0));
	packet.header.events_discarded = packet.header.events_overwritten = 5;
	packet_simple(&packet, T(1), 1);
	packet_simple(&packet, T(2), 2);
	packet_write(&packet, &fixture, "u_1_0");
	packet_next(&packet, T(10));
	packet_simple(&packet, T(12), 3);
	/* In front of padding, which belongs to the packet. */
	packet.header.packet_size += 64 * 8;
	make(&packet.header);
	if (packet.header.packet_size / 8 > sizeof(packet.header) + packet.end + 64)
		fixture_write(&fixture, "u_1_0", &packet, sizeof(packet.header) + packet.end, "a");
	else
		packet_write(&packet, &fixture, "u_1_0");
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, T(20));
	packet.header.events_discarded = packet.header.events_overwritten = 5;
	packet.header.packet_seq_num = 2;
	packet_simple(&packet, T(21), 4);
	packet_write(&packet, &fixture, "u_1_0");
	packet_new(&packet, PEM_PACKET_USER, 2, 3, PEM_NO_CPU, T(0));
	packet.header.stream_instance_id = 1;
	packet_simple(&packet, T(30), 5);
	packet_write(&packet, &fixture, "u_2_0");
}

static void finds_each_fault_of_a_header(void **state)
{
	struct pem_error error;
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	bool first, second, other;
	int damaged, rc;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		write_faulty(faults[i].make);
		trace = open_trace();
		first = second = other = false;
		damaged = 0;
		while ((rc = pem_trace__next(trace, &r, &error)) != 0) {
			if (rc < 0) {
				assert_int_equal(rc, -EINVAL);
				/* The first sentence names the fault, the file and the place. */
				if (!damaged && (!strstr(error.text, faults[i].sentence) ||
						 !strstr(error.text, "'u_1_0'") ||
						 !strstr(error.text, "byte 144")))
					fail_msg("fault %zu '%s': '%s'", i, faults[i].sentence,
						 error.text);
				damaged++;
				continue;
			}
			first |= pem_record__u64(&r, 0) == 1;
			second |= pem_record__u64(&r, 0) == 2;
			other |= pem_record__u64(&r, 0) == 5;
		}
		if (!damaged || damaged > 3 || !first || !second || !other)
			fail_msg("fault %zu '%s': %d damages, read %d %d %d", i, faults[i].sentence,
				 damaged, first, second, other);
		pem_trace__close(trace);
	}
}

static void goes_on_after_a_damaged_packet(void **state)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	int i;

	(void)state;
	write_faulty(unknown_source);
	trace = open_trace();
	for (i = 1; i <= 2; i++) {
		assert_int_equal(pem_trace__next(trace, &r, &error), 1);
		assert_int_equal(pem_record__u64(&r, 0), i);
	}
	assert_int_equal(pem_trace__next(trace, &r, &error), -EINVAL);
	for (i = 4; i <= 5; i++) {
		assert_int_equal(pem_trace__next(trace, &r, &error), 1);
		assert_int_equal(pem_record__u64(&r, 0), i);
	}
	assert_int_equal(pem_trace__next(trace, &r, &error), 0);
	pem_trace__close(trace);
}

/* One good record, then one of this id and body; the sentence must come. */
static void refuses_record(uint32_t id, const void *body, size_t bytes, const char *sentence)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};

	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, T(0));
	packet_simple(&packet, T(1), 1);
	packet_add(&packet, T(2), id, body, bytes);
	packet_write(&packet, &fixture, "u_1_0");
	trace = open_trace();
	assert_int_equal(pem_trace__next(trace, &r, &error), 1);
	assert_int_equal(pem_trace__next(trace, &r, &error), -EINVAL);
	if (!strstr(error.text, sentence))
		fail_msg("'%s' does not say '%s'", error.text, sentence);
	assert_int_equal(pem_trace__next(trace, &r, &error), 0);
	pem_trace__close(trace);
	remove_file("u_1_0");
}

static void refuses_records_that_are_none(void **state)
{
	uint8_t body[128] = {0};
	uint32_t count;

	(void)state;
	refuses_record(0x1234, body, 8, "unknown event 00001234");
	refuses_record(0, body, 8, "unknown event 00000000");
	refuses_record(EVENT_SIMPLE, body, 7, "APP::Test::Simple does not fit");
	memset(body, 'x', sizeof(body));
	refuses_record(EVENT_EXEC, body, 40, "OS::Process::Exec does not fit"); /* no NUL */
	memset(body, 0, sizeof(body));
	count = 3;
	memcpy(body + 4, &count, sizeof(count));
	refuses_record(EVENT_MIXED, body, 16 + 8 + 16, "APP::Test::Mixed does not fit");
	count = 0xffffffff;
	memcpy(body + 4, &count, sizeof(count));
	refuses_record(EVENT_MIXED, body, 48, "APP::Test::Mixed does not fit");
	/* All there, but longer than the event ever is. */
	count = 10;
	memcpy(body + 4, &count, sizeof(count));
	refuses_record(EVENT_MIXED, body, 16 + 8 + 80, "of 112 bytes, but 88 are the most");
}

static void leaves_out_and_counts_a_torn_packet(void **state)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	size_t cut, whole;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 2, 2, PEM_NO_CPU, T(0));
	packet.header.stream_instance_id = 1;
	packet_simple(&packet, T(5), 5);
	packet_write(&packet, &fixture, "u_2_0");
	whole = sizeof(packet.header) + packet.end;
	for (cut = 1; cut < whole; cut += 3) {
		packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, T(0));
		packet_simple(&packet, T(1), 1);
		packet_write(&packet, &fixture, "u_1_0");
		packet_next(&packet, T(2));
		packet_simple(&packet, T(3), 2);
		fixture_write(&fixture, "u_1_0", &packet, cut, "a");
		trace = open_trace();
		assert_int_equal(pem_trace__next(trace, &r, &error), 1);
		assert_int_equal(pem_record__u64(&r, 0), 1);
		assert_int_equal(pem_trace__next(trace, &r, &error), 1);
		assert_int_equal(pem_record__u64(&r, 0), 5);
		assert_int_equal(pem_trace__next(trace, &r, &error), 0);
		assert_int_equal(pem_trace__torn_packets(trace), 1);
		assert_int_equal(pem_trace__rewind(trace), 0);
		assert_int_equal(pem_trace__next(trace, &r, &error), 1);
		assert_int_equal(pem_trace__torn_packets(trace), 1);
		pem_trace__close(trace);
		remove_file("u_1_0");
	}
}

static void survives_a_file_that_shrinks_while_read(void **state)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	char path[160];
	int i, k, rc;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 1, 2, PEM_NO_CPU, T(0));
	for (k = 0; k < 30; k++) {
		for (i = 0; i < 2000; i++)
			packet_simple(&packet, T(k * 2000 + i), 1);
		packet_write(&packet, &fixture, "u_1_0");
		packet_next(&packet, T(k * 2000 + i));
	}
	trace = open_trace();
	assert_int_equal(pem_trace__next(trace, &r, &error), 1);
	snprintf(path, sizeof(path), "%s/u_1_0", fixture.path);
	assert_int_equal(truncate(path, 1000), 0);
	for (i = 1; (rc = pem_trace__next(trace, &r, &error)) > 0; i++)
		;
	assert_int_equal(rc, 0);
	assert_true(i < 60000);
	assert_int_equal(pem_trace__torn_packets(trace), 1);
	pem_trace__close(trace);
}

static void says_what_is_no_trace(void **state)
{
	struct pem_error error = {""};
	char path[160];

	(void)state;
	assert_null(pem_trace__open("/nonexistent/trace", &error));
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(error.text, "/nonexistent/trace"));
	snprintf(path, sizeof(path), "%s/metadata", fixture.path);
	assert_null(pem_trace__open(path, &error));
	assert_int_equal(errno, EINVAL);
	assert_null(pem_trace__open("/tmp", &error));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error.text, "no pem trace"));
	remove_file("metadata");
	refuses_to_open(EINVAL, "no pem trace");
	fixture_text(&fixture, "metadata", "");
	remove_file(".pem/run");
	refuses_to_open(EINVAL, "no pem trace");
}

static void says_what_is_wrong_with_what_a_trace_says(void **state)
{
	static const char *const runs[] = {
		"",
		"clock_hz=0\n",
		"clock_hz=1000",
		"clock_hz=1000\nnonsense\n",
		"clock_hz=1000x\n",
		"clock_hz=-1000\n",
		"clock_hz=99999999999999999999\n",
		"clock_hz=1000000000001\n",
		"clock_hz=1000\nexit_status=4294967296\n",
		"clock_hz=1000\ncomplete=2\n",
		"clock_hz=1000\ncost=user-log\t1\n",
		"clock_hz=1000\ncost=user-log\t1,5\t3\n",
		"clock_hz=1000\ngap=counters\n",
		"clock_hz=1000\nestimate=e\t9\t3\t1\n",
		"clock_hz=1000\nestimate=e\t9\t9\t1\t5\n", /* it counted all the time */
		"clock_hz=1000\nestimate=e\t9\t0\t1\t5\n", /* it never counted */
		"clock_hz=1000\nestimate=e\t9\t3\t1\tnan\n",
		"clock_hz=1000\nestimate=e\t9\t3\t1\t-5\n",
		"clock_hz=1000\nestimate=e\t9\t3\t4294967296\t5\n",
	};
	static const char *const balances[] = {
		"nonsense\nend\n",
		"event\t00000104\t5\t5\t0\t0\nend\n", /* of no producer */
		"producer\t1\nend\n",
		"producer\tx\tname\nend\n",
		"producer\t1\tname\tx\nend\n",
		"producer\t1\tname\nevent\t00000999\t5\t5\t0\t0\nend\n", /* of no event */
		"producer\t1\tname\nevent\t104\t5\t5\t0\t0\nend\n",
		"producer\t1\tname\nevent\t00000104\t5\t5\t0\nend\n",
		"producer\t1\tname\nevent\t00000104\t5\t5\t0\t-1\nend\n",
		"producer\t1\tname\nevent\t00000104\t5\t5\t0\t0\t0\nend\n",
	};
	char gaps[1024] = "clock_hz=1000\n", estimates[2048] = "clock_hz=1000\n";
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		fixture_text(&fixture, ".pem/run", runs[i]);
		refuses_to_open(EINVAL, ".pem/run");
	}
	for (i = 0; i < 17; i++)
		strcat(gaps, "gap=a\tb\n");
	fixture_text(&fixture, ".pem/run", gaps);
	refuses_to_open(EINVAL, "line 18");
	for (i = 0; i < 65; i++)
		strcat(estimates, "estimate=e\t9\t3\t1\tunknown\n");
	fixture_text(&fixture, ".pem/run", estimates);
	refuses_to_open(EINVAL, "line 66");
	fixture_write(&fixture, ".pem/run", "clock_hz=1\n\0\n", 13, "w");
	refuses_to_open(EINVAL, "no text");
	fixture_text(&fixture, ".pem/run", "clock_hz=1000\n");
	for (i = 0; i < sizeof(balances) / sizeof(balances[0]); i++) {
		fixture_text(&fixture, ".pem/balance", balances[i]);
		refuses_to_open(EINVAL, ".pem/balance, line");
	}
	fixture_text(&fixture, ".pem/balance", "end\n");
	fixture_text(&fixture, ".pem/model", "pem-model\t2\nevent\n");
	refuses_to_open(EINVAL, "model, line 2");
	remove_file(".pem/model");
	refuses_to_open(EINVAL, "model can't be read");
}

static void reads_no_link_and_no_fifo(void **state)
{
	struct pem_error error = {""};
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};
	char path[160];

	(void)state;
	snprintf(path, sizeof(path), "%s/u_1_0", fixture.path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	snprintf(path, sizeof(path), "%s/u_1_1", fixture.path);
	assert_int_equal(mkfifo(path, 0600), 0);
	trace = open_trace();
	assert_int_equal(pem_trace__next(trace, &r, &error), 0);
	pem_trace__close(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_each_fault_of_a_header, set_up, tear_down),
		cmocka_unit_test_setup_teardown(goes_on_after_a_damaged_packet, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refuses_records_that_are_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(leaves_out_and_counts_a_torn_packet, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(survives_a_file_that_shrinks_while_read, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(says_what_is_no_trace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(says_what_is_wrong_with_what_a_trace_says, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(reads_no_link_and_no_fifo, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
