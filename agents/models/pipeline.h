/* SPDX-License-Identifier: MIT */
/*
 * pipeline.h - throughput of a pipeline with other queues, other numbers of copies, other CPUs
 *
 *	pipeline.c	formulas if their assumptions hold
 *	simulate.c	otherwise a simulation of the measured service times
 *
 * Not here: how stages are measured (service.h), and whether a prediction is right: the caller
 * compares it with a run before it believes the prediction.
 *
 * Nothing here does I/O, reads a clock, prints or blocks. Equal input gives equal results. Work is
 * bounded by options. Arrays that are given stay the caller's.
 */
#ifndef AGENTS_PIPELINE_H
#define AGENTS_PIPELINE_H

#include "models/service.h"

#define MODEL_STAGES_MAX 32u
#define MODEL_QUEUES_MAX 64u
#define MODEL_COPIES_MAX 256u /* of all stages */

/*
 * A copy of a stage repeats this: take a batch of items from each of its queues, serve it, give the
 * results to each of its queues and wait for space there. Of a queue of bytes it takes what is
 * there, up to a batch. A stage without a queue to take from has always work.
 */
struct model_stage {
	const struct model_sums *sample; /* service intervals as they were observed, in order */
	uint32_t sample_count;
	/* The rate of one copy, by all intervals, low above 0. rate 0: by the sample alone. */
	struct model_range range;
	double batch; /* items of a service, above 0 */
	uint32_t copies; /* at least 1 */
};

/* Amounts of a queue are in its own unit: items or bytes. */
struct model_queue {
	uint32_t from, to; /* stages */
	double capacity; /* above 0; INFINITY: unlimited */
	double given, taken; /* units for each item of from, and of to; above 0 */
	bool has_bytes; /* readers take what is there */
};

struct model_pipeline {
	const struct model_stage *stages;
	const struct model_queue *queues; /* join all stages: a chain, or a tree */
	uint32_t stage_count, queue_count;
	uint32_t cpus; /* 0: enough for all copies */
	uint32_t measured; /* the stage whose items count */
};

struct model_predict_options {
	uint64_t seed;
	uint32_t services; /* that one simulation has at most; 0: 40,000 */
	uint32_t simulations; /* of resampled intervals, from 3 to 64; 0: 12 */
	bool always_simulate; /* for comparisons with a simulation */
};

enum model_method {
	MODEL_UNKNOWN, /* a stage has too small a sample, or the pipeline stops */
	MODEL_SIMULATED,
	/* Two stages of exponential times: a birth-death process, M/M/1/K if of one copy each. */
	MODEL_MARKOV,
	MODEL_DETERMINISTIC, /* times that vary by less than 2 %, space for a batch: the slowest
			       counts */
	MODEL_UNLIMITED, /* queues without limit: the slowest counts */
};

struct model_prediction {
	enum model_method method;
	struct model_range range; /* items of the measured stage per second; 0 if unknown */
	uint32_t bottleneck; /* stage that limits it if queues do not; UINT32_MAX: the CPUs */
};

/*
 * Predict the throughput. The interval holds what is uncertain in stages' rates and samples, and in
 * the simulation; not whether the stages would be as fast as before. Returns 0, -ENOMEM, or
 * -EINVAL: a member is beyond its limits, a stage is not joined to the others, or the amounts of
 * queues that lead to one stage differ. Writes no prediction then.
 */
int model_predict(const struct model_pipeline *pipeline,
		  const struct model_predict_options *options, struct model_prediction *prediction);

/* --- simulate.c, for pipeline.c --- */

/*
 * Write the throughput of the measured stage in items per second, in each of options' simulations;
 * 0: it stopped. Returns 0 or -ENOMEM.
 */
int model_simulate(const struct model_pipeline *pipeline,
		   const struct model_predict_options *options, double *rates);

#endif
