/* SPDX-License-Identifier: MIT */
/*
 * outlook.c - what the pipeline would do with other pipes, and with another copy of a stage
 *
 * The model is of the stages' measured intervals of service (models/pipeline.h). It is asked first
 * for the pipeline as it is: if that is not what was observed, it does not describe this pipeline,
 * as when a stage takes all of its input before it gives anything, and nothing is predicted. Other
 * programs are not in the model: the time in which the pipeline waited for a CPU is left out.
 */
#include "program/program.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#define PIPE_BYTES 65536u /* of a pipe that nobody has changed: pipe(7) */
#define LARGE_BYTES 1048576u /* the most that an ordinary user may have */
#define BELIEVED 0.1 /* the prediction may be off by this share */

struct model {
	const struct rates_run *run;
	const struct rate_process *processes[MODEL_STAGES_MAX];
	struct model_stage stages[MODEL_STAGES_MAX];
	struct model_queue queues[MODEL_QUEUES_MAX];
	struct model_pipeline pipeline;
};

static uint32_t index_of(const struct model *m, const struct rate_process *process)
{
	uint32_t i = 0;

	while (i < m->pipeline.stage_count && m->processes[i] != process)
		i++;
	return i;
}

static bool add_stage(struct model *m, const struct rate_process *process)
{
	struct model_stage *stage = &m->stages[m->pipeline.stage_count];
	uint64_t bytes = process->inputs ? process->bytes_in : process->bytes_out;
	uint64_t operations = process->inputs ? process->reads : process->writes;
	struct model_estimate e;

	if (m->pipeline.stage_count == MODEL_STAGES_MAX || !bytes || !operations)
		return false;
	stage->sample_count = rates_figures__sample(process, &stage->sample);
	stage->batch = (double)bytes / (double)operations;
	stage->copies = 1;
	rates_figures__estimate(process->user, &e);
	if (e.known && m->run->request->items == RATES_BYTES && e.range.low > 0 &&
	    isfinite(e.range.high))
		stage->range = e.range;
	m->processes[m->pipeline.stage_count++] = process;
	return true;
}

static bool add_queue(struct model *m, const struct rate_pipe *pipe)
{
	struct model_queue *queue = &m->queues[m->pipeline.queue_count];
	const struct rate_process *from = pipe->writers.list[0].stage;
	uint32_t bytes;

	if (m->pipeline.queue_count == MODEL_QUEUES_MAX || pipe->writers.count != 1 ||
	    pipe->readers.count != 1 || !pipe->bytes_written)
		return false;
	queue->from = index_of(m, from);
	queue->to = index_of(m, pipe->readers.list[0].stage);
	bytes = settings_pipes__bytes(m->run->pipes, rate_pipe__inode(pipe));
	queue->capacity = bytes ? bytes : PIPE_BYTES;
	queue->given = (double)pipe->bytes_written /
		       (double)(from->inputs ? from->bytes_in : from->bytes_out);
	queue->taken = 1;
	queue->has_bytes = true;
	m->pipeline.queue_count++;
	return true;
}

/* NULL: there are several, or none. */
static const struct rate_process *last_stage(const struct rates_run *run)
{
	const struct rate_process *last = NULL;
	size_t i;

	for (i = 0; i < run->seen->stage_count; i++) {
		if (run->seen->stages[i]->feeds)
			continue;
		if (last)
			return NULL;
		last = run->seen->stages[i];
	}
	return last;
}

static const char *build(struct model *m, const struct rates_run *run,
			 const struct rate_process *measured)
{
	size_t i;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	memset(m, 0, sizeof(*m));
	m->run = run;
	m->pipeline.stages = m->stages;
	m->pipeline.queues = m->queues;
	m->pipeline.cpus = cpus > 0 ? (uint32_t)cpus : 0;
	for (i = 0; i < run->seen->stage_count; i++)
		if (!add_stage(m, run->seen->stages[i]))
			return "a stage has moved nothing";
	for (i = 0; i < run->seen->queue_count; i++)
		if (!add_queue(m, run->seen->queues[i]))
			return "several processes use one end of a queue";
	m->pipeline.measured = index_of(m, measured);
	return NULL;
}

static int predict(const struct model *m, struct model_prediction *prediction)
{
	static const struct model_predict_options options = {.seed = 1};
	int rc = model_predict(&m->pipeline, &options, prediction);

	if (rc)
		prediction->method = MODEL_UNKNOWN;
	return rc == -ENOMEM ? rc : 0;
}

static int add_way(struct rates_outlook *outlook, const struct model *m, const char *what)
{
	struct rates_way *way = &outlook->ways[outlook->way_count++];

	way->what = what;
	return predict(m, &way->prediction);
}

static int predict_ways(struct model *m, struct rates_outlook *outlook)
{
	const struct rate_process *bottleneck = rates_figures__bottleneck(m->run);
	uint32_t i, slow = bottleneck ? index_of(m, bottleneck) : m->pipeline.stage_count;
	int rc;

	for (i = 0; i < m->pipeline.queue_count; i++)
		m->queues[i].capacity = LARGE_BYTES;
	rc = add_way(outlook, m, "predicted with pipes of 1 MiB");
	for (i = 0; i < m->pipeline.queue_count; i++)
		m->queues[i].capacity = INFINITY;
	if (!rc)
		rc = add_way(outlook, m, "predicted with queues of any length");
	if (rc || slow == m->pipeline.stage_count)
		return rc;
	m->stages[slow].copies = 2;
	return add_way(outlook, m,
		       cli_format("predicted with these and two of %s", bottleneck->name));
}

/* How long the last stage waited for others, or itself, to get a CPU. */
static double waited_for_cpu_ns(const struct rates_run *run)
{
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < run->seen->stage_count; i++)
		ns += run->seen->stages[i]->held_ns[RATE_FOR_CPU];
	return (double)ns;
}

int rates_outlook__find(const struct rates_run *run, struct rates_outlook *outlook)
{
	const struct rate_process *measured = last_stage(run);
	static struct model model; /* too large for a small stack */
	uint64_t begin_ns = UINT64_MAX;
	double ns, waited_ns;
	size_t i;
	int rc;

	memset(outlook, 0, sizeof(*outlook));
	outlook->reason = measured ? build(&model, run, measured)
				   : "the pipeline has no last stage, or several";
	if (outlook->reason)
		return 0;
	for (i = 0; i < run->seen->stage_count; i++)
		if (run->seen->stages[i]->begin_ns < begin_ns)
			begin_ns = run->seen->stages[i]->begin_ns;
	if (measured->end_ns <= begin_ns)
		return 0;
	outlook->measured = measured;
	ns = (double)(measured->end_ns - begin_ns);
	outlook->was = (double)measured->bytes_in * 1e9 / ns;
	waited_ns = waited_for_cpu_ns(run);
	outlook->free = (double)measured->bytes_in * 1e9 / (waited_ns < ns ? ns - waited_ns : ns);
	rc = predict(&model, &outlook->same);
	if (rc)
		return rc;
	if (outlook->same.method == MODEL_UNKNOWN)
		outlook->reason = "a stage was observed too seldom, or waits for itself";
	else if (fabs(log(outlook->same.range.rate / outlook->free)) > log1p(BELIEVED))
		outlook->reason =
			cli_format("the model gives %s/s for this pipeline, which did %s/s",
				   cli_bytes((uint64_t)outlook->same.range.rate),
				   cli_bytes((uint64_t)outlook->free));
	outlook->is_believed = !outlook->reason;
	return outlook->is_believed ? predict_ways(&model, outlook) : 0;
}
