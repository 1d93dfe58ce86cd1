/* SPDX-License-Identifier: MIT */
/*
 * predict.h - throughput of a pipeline with other queues, other numbers of copies, other CPUs
 *
 *	predict.c	formulas where their assumptions hold; which capacity is enough
 *	simulate.c	a simulation of the measured service times elsewhere
 *
 * Not here: how stages are measured (../estimate), and whether a prediction was right: the caller
 * compares it with a run before it is believed.
 *
 * Nothing here does I/O, reads a clock, prints or blocks. Equal input gives equal results. Work is
 * bounded by options. Arrays that are given stay the caller's.
 */
#ifndef AGENTS_RATES_PREDICT_H
#define AGENTS_RATES_PREDICT_H

#include "estimate/estimate.h"

#define RATE_STAGES_MAX 32u
#define RATE_QUEUES_MAX 64u
#define RATE_COPIES_MAX 256u /* of all stages */

/*
 * A copy of a stage repeats this: take a batch of items from each of its queues, serve it, give the
 * results to each of its queues and wait for space there. Of a queue of bytes it takes what is
 * there, up to a batch. A stage without a queue to take from has always work.
 */
struct rate_stage {
	const struct model_sums *sample; /* service intervals as they were observed, in order */
	uint32_t sample_count;
	/* The rate of one copy, by all intervals, low above 0. rate 0: by the sample alone. */
	struct model_range range;
	double batch; /* items of a service, above 0 */
	uint32_t copies; /* at least 1 */
};

/* Amounts of a queue are in its own unit: items or bytes. */
struct rate_queue {
	uint32_t from, to; /* stages */
	double capacity; /* above 0; INFINITY: unlimited */
	double given, taken; /* units for each item of from, and of to; above 0 */
	bool has_bytes; /* readers take what is there */
};

struct rate_pipeline {
	const struct rate_stage *stages;
	const struct rate_queue *queues; /* join all stages: a chain, or a tree */
	uint32_t stage_count, queue_count;
	uint32_t cpus; /* 0: enough for all copies */
	uint32_t measured; /* the stage whose items count */
};

struct rate_predict_options {
	uint64_t seed;
	uint32_t services; /* that one simulation has at most; 0: 40,000 */
	uint32_t simulations; /* of resampled intervals, from 3 to 64; 0: 12 */
	bool always_simulate; /* for comparisons with a simulation */
};

enum rate_method {
	RATE_UNKNOWN, /* a stage has too small a sample, or the pipeline stops */
	RATE_SIMULATED,
	/* Two stages of exponential times: a birth-death process, M/M/1/K if of one copy each. */
	RATE_MARKOV,
	RATE_DETERMINISTIC, /* times that vary by less than 2 %, space for a batch: the slowest
			       counts */
	RATE_UNLIMITED, /* queues without limit: the slowest counts */
};

struct rate_prediction {
	enum rate_method method;
	struct model_range range; /* items of the measured stage per second; 0 if unknown */
	uint32_t bottleneck; /* stage that limits it if queues do not; UINT32_MAX: the CPUs */
};

/*
 * Predict the throughput. The interval holds what is uncertain in stages' rates and samples, and in
 * the simulation; not whether the stages would be as fast as before. Returns 0, -ENOMEM, or
 * -EINVAL: a member is beyond its limits, a stage is not joined to the others, or the amounts of
 * queues that lead to one stage differ. Writes no prediction then.
 */
int rate_predict(const struct rate_pipeline *pipeline, const struct rate_predict_options *options,
		 struct rate_prediction *prediction);

struct rate_capacity {
	double capacity;
	/* false: even the greatest capacity is not within 1 % of an unlimited one. */
	bool is_enough;
	struct rate_prediction with, unlimited;
};

/*
 * Find the least capacity of a queue, a multiple of unit from least to most, with which throughput
 * is within 1 % of what it would be if this queue had no limit. Takes some 2 log2(most / unit)
 * predictions. Returns as rate_predict(); -EINVAL as well if the queue or the bounds are not valid.
 */
int rate_predict__capacity(const struct rate_pipeline *pipeline, uint32_t queue, double unit,
			   double least, double most, const struct rate_predict_options *options,
			   struct rate_capacity *result);

/* --- simulate.c, for predict.c --- */

/*
 * Write the throughput of the measured stage in items per second, in each of options' simulations;
 * 0: it stopped. Returns 0 or -ENOMEM.
 */
int rate_simulate(const struct rate_pipeline *pipeline, const struct rate_predict_options *options,
		  double *rates);

#endif
