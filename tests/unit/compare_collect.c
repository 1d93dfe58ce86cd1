/* SPDX-License-Identifier: MIT */
/*
 * compare_collect.c - the metrics of a trace made by hand: counters, intervals, what a loss spoils
 */
#include "trace_fixture.h"

#include <setjmp.h>
#include <cmocka.h>

#include "cli/compare/series.h"

#define T(n) (FIXTURE_START + (uint64_t)(n))

static struct fixture fixture;
static struct packet packet;

/* The fixture's end of a phase has no group. Here it has its begin's. */
static int set_up(void **state)
{
	static const char end[] = "interval-end\t\t-";
	const char *at = strstr(fixture_model, end);
	char model[sizeof(fixture_model) + 64];

	(void)state;
	fixture_new(&fixture);
	snprintf(model, sizeof(model), "%.*sinterval-end\tAPP::Phase\tthread%s",
		 (int)(at - fixture_model), fixture_model, at + strlen(end));
	fixture_text(&fixture, ".pem/model", model);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_free(&fixture);
	return 0;
}

static void add_phase(uint64_t clock, uint32_t event, const char *name)
{
	packet_add(&packet, clock, event, name, strlen(name) + 1);
}

static void add_cycles(uint64_t clock, uint64_t cycles)
{
	packet_add(&packet, clock, EVENT_CYCLES, &cycles, sizeof(cycles));
}

static const struct compare_metric *find(const struct compare_series *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->metric_count; i++)
		if (strcmp(s->metrics[i].name, name) == 0)
			return &s->metrics[i];
	fail_msg("there is no metric %s", name);
	return NULL;
}

static void intervals_and_counters(void **state)
{
	struct compare_series series = {0};
	const struct compare_metric *m;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(1000));
	add_phase(T(1000), EVENT_BEGIN, "load");
	add_phase(T(1500), EVENT_END, "load");
	add_phase(T(2000), EVENT_BEGIN, "load");
	add_phase(T(2100), EVENT_BEGIN, "inner");
	add_phase(T(2200), EVENT_END, "inner");
	add_phase(T(2700), EVENT_END, "load");
	packet_simple(&packet, T(3000), 1);
	packet_write(&packet, &fixture, "u_70_0");
	packet_new(&packet, PEM_PACKET_COUNTER, 70, 71, PEM_NO_CPU, T(1000));
	packet.header.stream_instance_id = 1;
	add_cycles(T(1000), 5000);
	add_cycles(T(2000), 6000);
	add_cycles(T(3000), 9000);
	packet_write(&packet, &fixture, "c_0");
	assert_int_equal(compare_series__read(&series, fixture.path), 0);
	m = find(&series, "duration of load");
	assert_true(m->is_phase && m->source == PEM_DOUBT_PROGRAMS);
	assert_int_equal(m->total_weight, 2);
	assert_int_equal(m->total, 1200);
	assert_int_equal(find(&series, "duration of inner")->total, 100);
	m = find(&series, "HW::Counter::Cycles");
	assert_true(m->kind == COMPARE_GROWTH && m->source == PEM_DOUBT_COUNTERS);
	assert_int_equal(m->total, 9000);
	assert_int_equal(find(&series, "APP::Test::Simple")->total, 1);
	compare_series__free(&series);
}

static void an_interval_across_a_loss_has_no_duration(void **state)
{
	struct compare_series series = {0};

	(void)state;
	fixture_text(&fixture, ".pem/balance",
		     "producer\t70\tload\t0\nevent\t00000106\t4\t2\t2\t0\n"
		     "event\t00000107\t2\t2\t0\t0\nend\n");
	packet_new(&packet, PEM_PACKET_USER, 70, 71, PEM_NO_CPU, T(1000));
	add_phase(T(1000), EVENT_BEGIN, "load");
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(2000));
	packet.header.events_discarded = 2;
	add_phase(T(2000), EVENT_END, "load");
	packet_write(&packet, &fixture, "u_70_0");
	packet_next(&packet, T(3000));
	add_phase(T(3000), EVENT_BEGIN, "load");
	add_phase(T(3300), EVENT_END, "load");
	packet_write(&packet, &fixture, "u_70_0");
	assert_int_equal(compare_series__read(&series, fixture.path), 0);
	assert_true(series.has_losses && series.balanced);
	assert_false(series.unlocated[PEM_DOUBT_PROGRAMS]);
	assert_int_equal(find(&series, "duration of load")->total_weight, 1);
	assert_int_equal(find(&series, "duration of load")->total, 300);
	compare_series__free(&series);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(intervals_and_counters, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_interval_across_a_loss_has_no_duration, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
