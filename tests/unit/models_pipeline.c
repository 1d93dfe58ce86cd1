// SPDX-License-Identifier: MIT
/*
 * models_pipeline.c - predictions beside pipelines whose throughput is known
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "models_series.h"
#include "models/pipeline.h"

#include <errno.h>
#include <string.h>

#define SAMPLE 2000u
#define STAGES 3u
#define NS 1e4 /* mean time of an item, unless a stage is slower: a rate of 1e5 */

static struct model_sums samples[STAGES][SAMPLE];
static struct model_stage stages[STAGES];
static struct model_queue queues[STAGES - 1];
static struct model_pipeline pipeline = {.stages = stages, .queues = queues};
static const struct model_predict_options simulate = {.seed = 1, .always_simulate = true};
static const struct model_predict_options any = {.seed = 1};

/* A chain of stages with queues of a capacity; the times of a stage are slowness times the mean. */
static void make_chain(uint32_t count, enum series_kind kind, const double *slowness,
		       double capacity, uint64_t seed)
{
	uint64_t items;
	uint32_t i, k;

	for (i = 0; i < count; i++) {
		struct series series = {.kind = kind, .random = seed + 100 * i};

		for (k = 0; k < SAMPLE; k++) {
			samples[i][k].busy_ns = series_next(&series, &items) * NS * slowness[i];
			samples[i][k].items = (double)items;
		}
		stages[i] = (struct model_stage){
			.sample = samples[i], .sample_count = SAMPLE, .batch = 1, .copies = 1};
		stages[i].range.rate = stages[i].range.low = stages[i].range.high =
			1e9 / NS / slowness[i];
		if (i != 0)
			queues[i - 1] = (struct model_queue){.from = i - 1,
							     .to = i,
							     .capacity = capacity,
							     .given = 1,
							     .taken = 1};
	}
	pipeline.stage_count = count;
	pipeline.queue_count = count - 1;
	pipeline.measured = count - 1;
	pipeline.cpus = 0;
}

static struct model_prediction predict(const struct model_predict_options *options)
{
	struct model_prediction prediction;

	assert_int_equal(model_predict(&pipeline, options, &prediction), 0);
	return prediction;
}

/* A prediction in units of 1 / NS. */
static void expect(struct model_prediction prediction, enum model_method method, double rate,
		   double error)
{
	double got = prediction.range.rate * NS / 1e9;

	assert_int_equal(prediction.method, method);
	if (!(fabs(got / rate - 1) <= error))
		fail_msg("%g, not %g", got, rate);
	assert_true(prediction.range.low <= prediction.range.rate &&
		    prediction.range.rate <= prediction.range.high);
}

static void two_exponential_stages_are_a_known_process(void **state)
{
	double capacity, slowness[2] = {1, 1};

	(void)state;
	/* With equal rates throughput is (K + 2) / (K + 3). */
	for (capacity = 1; capacity <= 16; capacity *= 4) {
		make_chain(2, SERIES_EXPONENTIAL, slowness, capacity, 5);
		expect(predict(&any), MODEL_MARKOV, (capacity + 2) / (capacity + 3), 1e-9);
		expect(predict(&simulate), MODEL_SIMULATED, (capacity + 2) / (capacity + 3), 0.015);
	}
	/* M/M/1/N with a load of 1/2 and N = 3: (1 - p) of which p is 1/15. */
	slowness[0] = 2;
	make_chain(2, SERIES_EXPONENTIAL, slowness, 1, 5);
	expect(predict(&any), MODEL_MARKOV, 0.5 * (1 - 1 / 15.0), 1e-9);
	expect(predict(&simulate), MODEL_SIMULATED, 0.5 * (1 - 1 / 15.0), 0.015);
}

static void exponential_samples_are_recognized(void **state)
{
	const double slowness[2] = {1, 1};
	uint32_t i, markov = 0;

	(void)state;
	for (i = 0; i < 100; i++) {
		make_chain(2, SERIES_EXPONENTIAL, slowness, 1, 1000 * i + 1);
		markov += predict(&any).method == MODEL_MARKOV;
	}
	/* Two tests of two samples refuse 4 of 100. */
	print_message("%u of 100\n", markov);
	assert_true(markov >= 88);
}

static void copies_of_exponential_stages_are_a_known_process(void **state)
{
	const double slowness[2] = {1, 2};
	/* Rates of 1 and 1/2, two copies of the second, 1 in the queue, 1 blocked: 0 to 4 items. */
	const double shares[] = {1, 2, 2, 2, 2};
	double served = 0.5 * shares[1] + shares[2] + shares[3] + shares[4];

	(void)state;
	make_chain(2, SERIES_EXPONENTIAL, slowness, 1, 5);
	stages[1].copies = 2;
	expect(predict(&any), MODEL_MARKOV, served / 9, 1e-9);
	expect(predict(&simulate), MODEL_SIMULATED, served / 9, 0.015);
}

static void three_exponential_stages_are_simulated(void **state)
{
	const double slowness[3] = {1, 1, 1};

	(void)state;
	/* Hillier and Boling, Oper. Res. 15, 1967. */
	make_chain(3, SERIES_EXPONENTIAL, slowness, 1, 5);
	expect(predict(&any), MODEL_SIMULATED, 0.6705, 0.015);
}

static void deterministic_stages_go_as_the_slowest(void **state)
{
	const double slowness[3] = {1, 2.5, 1.7};

	(void)state;
	make_chain(3, SERIES_JITTER, slowness, 1, 5);
	expect(predict(&any), MODEL_DETERMINISTIC, 1 / 2.5, 1e-9);
	expect(predict(&simulate), MODEL_SIMULATED, 1 / 2.5, 0.01);
	assert_int_equal(predict(&any).bottleneck, 1);
}

static void other_distributions_are_simulated(void **state)
{
	static const enum series_kind kinds[] = {SERIES_BIMODAL, SERIES_AR1, SERIES_GAMMA4};
	const double slowness[2] = {1, 1.2};
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		make_chain(2, kinds[i], slowness, 2, 5);
		assert_int_equal(predict(&any).method, MODEL_SIMULATED);
	}
}

static void cpus_are_shared(void **state)
{
	const double slowness[3] = {1, 2, 3};

	(void)state;
	make_chain(3, SERIES_JITTER, slowness, 4, 5);
	pipeline.cpus = 1;
	expect(predict(&any), MODEL_SIMULATED, 1 / 6.0, 0.01);
	assert_int_equal(predict(&any).bottleneck, UINT32_MAX);
	queues[0].capacity = queues[1].capacity = INFINITY;
	expect(predict(&any), MODEL_UNLIMITED, 1 / 6.0, 1e-9);
	pipeline.cpus = 3;
	expect(predict(&any), MODEL_UNLIMITED, 1 / 3.0, 1e-9);
}

/* A writer of 64 KiB and a reader of 4 KiB, which need as long for these bytes as one NS. */
static void a_small_pipe_keeps_its_writer_waiting(void **state)
{
	const double slowness[2] = {1, 1 / 16.0};
	uint32_t i;

	(void)state;
	make_chain(2, SERIES_DETERMINISTIC, slowness, 4096, 5);
	for (i = 0; i < SAMPLE; i++) {
		samples[0][i].items = 65536;
		samples[1][i].items = 4096;
	}
	stages[0].batch = 65536;
	stages[1].batch = 4096;
	stages[0].range = stages[1].range = (struct model_range){0};
	queues[0].has_bytes = true;
	/* The writer serves for 1, and waits for 14 of 16 reads. */
	expect(predict(&any), MODEL_SIMULATED, 65536 / (1 + 14.0 / 16), 0.002);
	/* With space for a write it never waits. */
	queues[0].capacity = 65536;
	expect(predict(&any), MODEL_SIMULATED, 65536, 0.002);
}

/* Two sources and a stage that takes two items of one and three bytes of the other. */
static void a_tree_has_units_of_its_own(void **state)
{
	const double slowness[3] = {1, 1, 4};

	(void)state;
	make_chain(3, SERIES_JITTER, slowness, 8, 5);
	queues[0] = (struct model_queue){.from = 0, .to = 2, .capacity = 8, .given = 1, .taken = 2};
	queues[1] = (struct model_queue){.from = 1, .to = 2, .capacity = 8, .given = 1, .taken = 6};
	/* The second source needs 6 for an item of the last stage. */
	expect(predict(&simulate), MODEL_SIMULATED, 1 / 6.0, 0.01);
	assert_int_equal(predict(&simulate).bottleneck, 1);
	pipeline.measured = 0;
	expect(predict(&simulate), MODEL_SIMULATED, 2 / 6.0, 0.01);
}

static void equal_input_gives_equal_results(void **state)
{
	const double slowness[2] = {1, 1.1};
	struct model_prediction one, other;

	(void)state;
	make_chain(2, SERIES_BIMODAL, slowness, 3, 5);
	one = predict(&any);
	other = predict(&any);
	assert_memory_equal(&one.range, &other.range, sizeof(one.range));
	other = predict(&(struct model_predict_options){.seed = 2});
	assert_true(one.range.rate != other.range.rate);
}

/* Rates known by the samples alone. */
static void intervals_hold_the_true_throughput(void **state)
{
	const struct model_predict_options options = {
		.services = 10000, .simulations = 16, .always_simulate = true};
	const double slowness[2] = {1, 1};
	uint32_t run, holds = 0, i;

	(void)state;
	for (run = 0; run < 60; run++) {
		struct model_prediction p;

		make_chain(2, SERIES_EXPONENTIAL, slowness, 2, 1000 + run * 7919);
		for (i = 0; i < 2; i++) {
			stages[i].range = (struct model_range){0};
			stages[i].sample_count = 400;
		}
		p = predict(&options);
		holds += p.range.low <= 0.8 * 1e9 / NS && 0.8 * 1e9 / NS <= p.range.high;
	}
	print_message("%u of 60\n", holds);
	assert_true(holds >= 52);
}

static void nonsense_is_refused(void **state)
{
	const double slowness[3] = {1, 1, 1};
	struct model_prediction p;

	(void)state;
	make_chain(3, SERIES_EXPONENTIAL, slowness, 1, 5);
	stages[1].sample_count = 3;
	assert_int_equal(predict(&any).method, MODEL_UNKNOWN);
	stages[1].copies = MODEL_COPIES_MAX;
	assert_int_equal(model_predict(&pipeline, &any, &p), -EINVAL);
	make_chain(3, SERIES_EXPONENTIAL, slowness, 1, 5);
	samples[1][4].items = NAN;
	assert_int_equal(model_predict(&pipeline, &any, &p), -EINVAL);
	samples[1][4].items = 1;
	queues[0].to = 7;
	assert_int_equal(model_predict(&pipeline, &any, &p), -EINVAL);
	queues[0].to = 0;
	assert_int_equal(model_predict(&pipeline, &any, &p), -EINVAL);
	queues[0].to = 1;
	queues[0].capacity = NAN;
	assert_int_equal(model_predict(&pipeline, &any, &p), -EINVAL);
}

static void intervals_without_items_take_their_time(void **state)
{
	const double slowness[2] = {1, 2};
	uint32_t i;

	(void)state;
	make_chain(2, SERIES_JITTER, slowness, 4, 5);
	for (i = 0; i < SAMPLE; i++)
		samples[1][i].items = i % 4 ? 0 : 4;
	expect(predict(&any), MODEL_SIMULATED, 1 / 2.0, 0.03);
}

/* Items go round: none ever came in. */
static void a_cycle_without_items_is_unknown(void **state)
{
	const double slowness[2] = {1, 1};

	(void)state;
	make_chain(2, SERIES_BIMODAL, slowness, 1, 5);
	queues[1] = (struct model_queue){.from = 1, .to = 0, .capacity = 1, .given = 1, .taken = 1};
	pipeline.queue_count = 2;
	assert_int_equal(predict(&simulate).method, MODEL_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_exponential_stages_are_a_known_process),
		cmocka_unit_test(exponential_samples_are_recognized),
		cmocka_unit_test(copies_of_exponential_stages_are_a_known_process),
		cmocka_unit_test(three_exponential_stages_are_simulated),
		cmocka_unit_test(deterministic_stages_go_as_the_slowest),
		cmocka_unit_test(other_distributions_are_simulated),
		cmocka_unit_test(cpus_are_shared),
		cmocka_unit_test(a_small_pipe_keeps_its_writer_waiting),
		cmocka_unit_test(a_tree_has_units_of_its_own),
		cmocka_unit_test(equal_input_gives_equal_results),
		cmocka_unit_test(intervals_hold_the_true_throughput),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(intervals_without_items_take_their_time),
		cmocka_unit_test(a_cycle_without_items_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
