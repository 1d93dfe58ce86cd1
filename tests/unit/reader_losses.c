/* SPDX-License-Identifier: MIT */
/*
 * reader_losses.c - when streams lost records: before, between and behind those that are there
 */
#include "trace_fixture.h"

#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>

#include "reader_fixture.h"

/* Read all records that can be read. Returns the trace, at its end. */
static struct pem_trace *read_all(size_t count)
{
	struct pem_trace *trace = open_trace();
	struct pem_record record = {.size = sizeof(record)};
	struct pem_error error;
	size_t read = 0;
	int rc;

	while ((rc = pem_trace__next(trace, &record, &error)) == 1 || rc == -EINVAL)
		read += rc == 1;
	assert_int_equal(rc, 0);
	assert_int_equal(read, count);
	return trace;
}

static void expect_loss(const struct pem_trace *trace, size_t i, uint64_t begin_ns, uint64_t end_ns)
{
	struct pem_trace_loss loss = {.size = sizeof(loss)};

	assert_int_equal(pem_trace__loss(trace, i, &loss), 0);
	assert_int_equal(loss.begin_ns, begin_ns);
	assert_int_equal(loss.end_ns, end_ns);
	assert_int_equal(loss.pid, 70);
	assert_int_equal(loss.tid, 71);
}

static void nothing_lost(void **state)
{
	struct pem_trace_loss loss = {.size = sizeof(loss)};
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(10));
	packet_simple(&packet, T(10), 1);
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(20));
	packet_simple(&packet, T(20), 1);
	packet_write(&packet, &fixture, "u_70_0");
	trace = read_all(2);
	assert_int_equal(pem_trace__loss_count(trace), 0);
	assert_int_equal(pem_trace__loss(trace, 0, &loss), -ENOENT);
	pem_trace__close(trace);
}

static void overwritten_before_the_first(void **state)
{
	struct pem_trace_loss loss = {.size = sizeof(loss)}, unset = {0};
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(10));
	packet.header.events_overwritten = 5;
	packet.header.packet_seq_num = 3;
	packet_simple(&packet, T(15), 1);
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(20));
	packet_simple(&packet, T(25), 1);
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(30));
	packet_simple(&packet, T(35), 1);
	packet_write(&packet, &fixture, "u_70_0");
	trace = read_all(3);
	/* What a packet counts may have been lost behind its last record, too. */
	assert_int_equal(pem_trace__loss_count(trace), 2);
	expect_loss(trace, 0, 0, 15);
	expect_loss(trace, 1, 15, 25);
	assert_int_equal(pem_trace__loss(trace, 0, &unset), -EINVAL);
	/* They are found anew after rewinding, and no sooner than they are read. */
	assert_int_equal(pem_trace__rewind(trace), 0);
	assert_int_equal(pem_trace__loss(trace, 0, &loss), -ENOENT);
	pem_trace__close(trace);
}

static void discarded_between_and_behind(void **state)
{
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(10));
	packet_simple(&packet, T(10), 1);
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(20));
	packet_simple(&packet, T(20), 1);
	packet.header.events_discarded = 2;
	packet_write(&packet, &fixture, "u_70_0");
	/* Another stream lost nothing. */
	packet_new(&packet, PEM_PACKET_USER, 80, 81, PEM_NO_CPU, T(5));
	packet.header.stream_instance_id = 1;
	packet_simple(&packet, T(30), 1);
	packet_write(&packet, &fixture, "u_80_0");
	trace = read_all(3);
	assert_int_equal(pem_trace__loss_count(trace), 2);
	expect_loss(trace, 0, 10, 20);
	expect_loss(trace, 1, 20, UINT64_MAX);
	pem_trace__close(trace);
}

static void a_damaged_packet(void **state)
{
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(10));
	packet_simple(&packet, T(10), 1);
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(20));
	packet_simple(&packet, T(20), 1);
	packet_add(&packet, T(21), 0xdead, NULL, 0); /* an event that nobody knows */
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(30));
	packet_simple(&packet, T(30), 1);
	packet_write(&packet, &fixture, "u_70_0");
	trace = read_all(3);
	/* From the record before the damage to it, and on to the record behind it. */
	assert_int_equal(pem_trace__loss_count(trace), 2);
	expect_loss(trace, 0, 20, 20);
	expect_loss(trace, 1, 20, 30);
	pem_trace__close(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(overwritten_before_the_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(discarded_between_and_behind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_packet, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
