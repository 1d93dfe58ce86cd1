/* SPDX-License-Identifier: MIT */
/*
 * shared_betweens.c - which times between two events of a thread are found, and which are not
 */
#include "trace_fixture.h"

#include <setjmp.h>
#include <cmocka.h>

#include "reader_fixture.h"
#include "shared/betweens.h"

static char model[sizeof(fixture_model) + 256];
static uint64_t times[8];
static size_t time_count;

static int keep(void *arg, size_t metric, uint64_t ns)
{
	(void)arg;
	assert_int_equal(metric, 1); /* the first one of the model is a rate */
	times[time_count++] = ns;
	return 0;
}

/* Find the times from the records APP::Test::Simple to APP::Phase::Begin. */
static void find_times(void)
{
	struct pem_record record = {.size = sizeof(record)};
	struct pem_betweens *betweens;
	struct pem_trace *trace;

	snprintf(model, sizeof(model),
		 "%smetric\tAPP::Test::Pace\trate\tAPP::Test::Simple\t\t\t\tx\t\n"
		 "metric\tAPP::Test::Till\tbetween\tAPP::Test::Simple\t\tAPP::Phase::"
		 "Begin\t\tns\t\n",
		 fixture_model);
	fixture_text(&fixture, ".pem/model", model);
	trace = open_trace();
	betweens = pem_betweens__new(trace);
	assert_non_null(betweens);
	time_count = 0;
	while (pem_trace__next(trace, &record, NULL) == 1)
		assert_int_equal(pem_betweens__record(betweens, &record, NULL, keep, NULL), 0);
	pem_betweens__free(betweens);
	pem_trace__close(trace);
}

static void ends(uint64_t clock)
{
	packet_add(&packet, clock, EVENT_BEGIN, "x", 2);
}

static void from_the_last_first_event_to_the_next_second_one(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(1000));
	ends(T(1000)); /* nothing began */
	packet_simple(&packet, T(1100), 1);
	packet_simple(&packet, T(1200), 1);
	ends(T(1500));
	ends(T(1700)); /* its time has ended */
	packet_write(&packet, &fixture, "u_70_0");
	packet_new(&packet, PEM_PACKET_USER, 70, 72, PEM_NO_CPU, T(1000));
	ends(T(1300)); /* of another thread */
	packet_write(&packet, &fixture, "u_70_1");
	find_times();
	assert_int_equal(time_count, 1);
	assert_int_equal(times[0], 300);
}

static void none_goes_across_a_loss(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(1000));
	packet_simple(&packet, T(1000), 1);
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(2000));
	packet.header.events_discarded = 2;
	ends(T(2000));
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(3000));
	packet_simple(&packet, T(3000), 1);
	ends(T(3100));
	packet_write(&packet, &fixture, "u_70_0");
	find_times();
	assert_int_equal(time_count, 1);
	assert_int_equal(times[0], 100);
}

/* A thread has a stream for each depth of events within events. */
static void none_ends_behind_a_loss_without_an_end(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(1000));
	packet_simple(&packet, T(1000), 1);
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(2000));
	packet.header.events_discarded = 1; /* and no record: the stream ends so */
	packet_write(&packet, &fixture, "u_70_0");
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(1000));
	packet.header.stream_instance_id = 1;
	ends(T(5000));
	packet_write(&packet, &fixture, "u_70_1");
	packet_new(&packet, PEM_PACKET_USER, 80, 81, PEM_NO_CPU, T(1000));
	packet.header.stream_instance_id = 2;
	packet_simple(&packet, T(6000), 1); /* another process has lost nothing */
	ends(T(6100));
	packet_write(&packet, &fixture, "u_80_0");
	find_times();
	assert_int_equal(time_count, 1);
	assert_int_equal(times[0], 100);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(from_the_last_first_event_to_the_next_second_one),
		TEST(none_goes_across_a_loss),
		TEST(none_ends_behind_a_loss_without_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
