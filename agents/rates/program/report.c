/* SPDX-License-Identifier: MIT */
/* report.c - stages, queues and the bottleneck, as tables, sentences and JSON */
#include "program/threads.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

extern const char rates_html[], rates_html_end[];

#define VIEWED 16u /* stages that a line can show */
#define ROWS 60u /* of the table of stages */

/* --- words --- */

/* A queue, whatever it is. */
struct shown_queue {
	const char *name;
	bool is_pipe; /* or it is within a process, of threads */
	uint64_t moved, capacity; /* bytes of a pipe, or items; capacity 0: unknown */
	bool is_known; /* moved is */
	struct shown_end {
		const struct rate_ends *ends; /* of a pipe */
		const struct rates_thread *thread; /* of other queues; NULL: unknown */
		uint64_t waited_ns;
	} from, to;
};

static size_t queue_count(const struct rates_run *run)
{
	return run->seen->queue_count + run->threads->queue_count;
}

/* Pipes come first. */
static void show_queue(const struct rates_run *run, size_t i, struct shown_queue *q)
{
	size_t pipes = run->seen->queue_count;
	const struct rates_queue *inner;
	const struct rate_pipe *pipe;

	if (i < pipes) {
		pipe = run->seen->queues[i];
		*q = (struct shown_queue){
			.name = pipe->file->path,
			.is_pipe = true,
			.moved = pipe->bytes_read,
			.is_known = true,
			.capacity = settings_pipes__bytes(run->pipes, rate_pipe__inode(pipe)),
			.from = {.ends = &pipe->writers, .waited_ns = pipe->write_blocked_ns},
			.to = {.ends = &pipe->readers, .waited_ns = pipe->read_blocked_ns}};
		return;
	}
	inner = run->threads->queues[i - pipes];
	*q = (struct shown_queue){
		.name = inner->name,
		.moved = inner->to.items,
		.is_known = inner->is_known,
		.capacity = inner->capacity,
		.from = {.thread = inner->from.thread, .waited_ns = inner->from.blocked_ns},
		.to = {.thread = inner->to.thread, .waited_ns = inner->to.blocked_ns}};
}

/* The name of stage i at an end of a queue. NULL: there are not as many. */
static const char *end_name(const struct shown_end *end, size_t i)
{
	if (end->ends)
		return i < end->ends->count ? end->ends->list[i].stage->name : NULL;
	return !i && end->thread ? end->thread->name : NULL;
}

static const char *rate_text(bool has_bytes, double rate)
{
	if (!isfinite(rate))
		return "unknown";
	return has_bytes ? cli_format("%s/s", cli_bytes((uint64_t)rate))
			 : cli_format("%s/s", cli_decimal(rate));
}

static double share(uint64_t ns, uint64_t of_ns)
{
	return of_ns ? (double)ns / (double)of_ns : 0;
}

static const char *share_text(uint64_t ns, uint64_t of_ns)
{
	return ns ? cli_percent(share(ns, of_ns)) : "";
}

static const char *rate_interval(bool has_bytes, const struct rates_rate *f)
{
	if (!f->estimate.known)
		return "";
	return cli_format("%s to %s", rate_text(has_bytes, f->estimate.range.low),
			  isfinite(f->estimate.range.high)
				  ? rate_text(has_bytes, f->estimate.range.high)
				  : "any");
}

/* --- tables --- */

static void print_stages(const struct rates_run *run)
{
	struct cli_table *table = cli_table__new(run->request->out);
	size_t i, count = rates_stage__count(run);
	struct rates_stage s;
	struct rates_rate rate;

	cli_table__column(table, "STAGE", CLI_CUT);
	cli_table__column(table, "PID", CLI_RIGHT);
	cli_table__column(table, "THREAD", CLI_RIGHT);
	cli_table__column(table, "RATE", CLI_RIGHT);
	cli_table__column(table, "INTERVAL (95 %)", CLI_RIGHT);
	cli_table__column(table, "BUSY", CLI_RIGHT);
	cli_table__column(table, "NO INPUT", CLI_RIGHT);
	cli_table__column(table, "OUTPUT FULL", CLI_RIGHT);
	cli_table__column(table, "FOR A CPU", CLI_RIGHT);
	cli_table__column(table, "OTHER WAITS", CLI_SPARE);
	cli_table__column(table, "UNKNOWN", CLI_SPARE);
	for (i = 0; i < count && i < ROWS; i++) {
		rates_stage__get(run, i, &s);
		rates_stage__rate(&s, &rate);
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, s.name);
		cli_table__cell(table, cli_format("%u", s.pid));
		cli_table__cell(table, s.tid ? cli_format("%u", s.tid) : "");
		cli_table__cell(table, rate.estimate.has_rate
					       ? rate_text(s.has_bytes, rate.estimate.range.rate)
					       : "unknown");
		cli_table__cell(table, rate_interval(s.has_bytes, &rate));
		cli_table__cell(table, share_text(s.service_ns, s.lifetime_ns));
		cli_table__cell(table, share_text(s.blocked_in_ns, s.lifetime_ns));
		cli_table__cell(table, share_text(s.blocked_out_ns, s.lifetime_ns));
		cli_table__cell(table, share_text(s.for_cpu_ns, s.lifetime_ns));
		cli_table__cell(table, share_text(s.service_ns - s.runs_ns, s.lifetime_ns));
		cli_table__cell(table, share_text(s.unknown_ns, s.lifetime_ns));
	}
	cli_table__print(table);
	if (count > ROWS)
		fprintf(run->request->out, "and %s more (--json)\n", cli_count(count - ROWS));
}

static const char *end_text(const struct shown_end *end)
{
	const char *first = end_name(end, 0);
	size_t count = 1;

	while (first && end_name(end, count))
		count++;
	return count > 1 ? cli_format("%zu stages", count) : first ? first : "unknown";
}

static void print_queues(const struct rates_run *run)
{
	struct cli_table *table = cli_table__new(run->request->out);
	struct shown_queue q;
	size_t i;

	cli_table__column(table, "QUEUE", CLI_CUT);
	cli_table__column(table, "FROM", CLI_LEFT);
	cli_table__column(table, "TO", CLI_LEFT);
	cli_table__column(table, "BYTES", CLI_RIGHT);
	cli_table__column(table, "ITEMS", CLI_RIGHT);
	cli_table__column(table, "READER WAITED", CLI_RIGHT);
	cli_table__column(table, "WRITER WAITED", CLI_RIGHT);
	for (i = 0; i < queue_count(run) && i < ROWS; i++) {
		show_queue(run, i, &q);
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, q.name);
		cli_table__cell(table, end_text(&q.from));
		cli_table__cell(table, end_text(&q.to));
		cli_table__cell(table, q.is_pipe ? cli_bytes(q.moved) : "");
		cli_table__cell(table, q.is_pipe    ? ""
				       : q.is_known ? cli_count(q.moved)
						    : "unknown");
		cli_table__cell(table, cli_duration(q.to.waited_ns));
		cli_table__cell(table, cli_duration(q.from.waited_ns));
	}
	cli_table__print(table);
}

/* --- sentences --- */

/* What the bottleneck does while others wait for it, if it is not its work alone. */
static const char *reason_of(const struct rate_process *stage)
{
	uint64_t waits = stage->held_ns[RATE_WAITS] + stage->held_ns[RATE_SLEEPS];
	uint64_t all = rate_process__held_ns(stage), for_cpu = stage->held_ns[RATE_FOR_CPU];

	if (for_cpu * 4 > all)
		return cli_format("; in %s of it, it waited for a CPU", share_text(for_cpu, all));
	if (waits * 4 > all)
		return cli_format("; in %s of it, it waited for something else than its queues, "
				  "such as a disk, a network or a time",
				  share_text(waits, all));
	return "";
}

static const char *unknown_reason(const struct rates_run *run)
{
	const char *why = rates_threads__why_none(run->threads);

	if (run->seen->stage_count)
		return "no stage takes without giving on, or records were lost";
	if (run->threads->stage_count)
		return "of no stage it is sure that the last ones waited for it most";
	return why ? why
		   : "no pipe or FIFO has both ends among the observed processes, and none has a "
		     "queue of pem/stream.h";
}

/* Which stage holds up the others, in a sentence or two. */
static const char *verdict(const struct rates_run *run)
{
	const struct rate_process *stage = rates_figures__bottleneck(run);
	const struct rates_thread *thread = rates_figures__slow_thread(run);
	const char *of_thread = "";

	if (thread)
		of_thread =
			cli_format("%s: the last stages waited for it in %s of %s readings.",
				   thread->name, share_text(thread->held, run->threads->samples),
				   cli_count(run->threads->samples));
	if (thread && (!stage || thread->pid != stage->process->pid))
		return cli_format("The bottleneck is %s", of_thread);
	if (!stage && run->seen->outside_ns)
		return cli_format("The bottleneck is outside: in %s of the time the pipeline "
				  "waited for what feeds it or takes its output.",
				  share_text(run->seen->outside_ns, run->held_ns));
	if (!stage)
		return cli_format("The bottleneck is unknown: %s.", unknown_reason(run));
	return cli_format("The bottleneck is %s: the pipeline waited for it %s of the time%s.%s%s",
			  stage->name, share_text(rate_process__held_ns(stage), run->held_ns),
			  reason_of(stage), thread ? " In it, the bottleneck is " : "", of_thread);
}

/* Do phases differ by a quarter? Smaller changes are in the JSON: clocks of CPUs drift as well. */
static bool differ(const struct rates_rate *f)
{
	double least = f->phases[0].range.rate, most = least;
	uint32_t i;

	for (i = 1; i < f->phase_count; i++) {
		least = fmin(least, f->phases[i].range.rate);
		most = fmax(most, f->phases[i].range.rate);
	}
	return most >= 1.25 * least;
}

static void print_phases(const struct rates_run *run)
{
	FILE *out = run->request->out;
	struct rates_stage s;
	struct rates_rate rate;
	size_t i, k;

	for (i = 0; i < rates_stage__count(run); i++) {
		rates_stage__get(run, i, &s);
		rates_stage__rate(&s, &rate);
		if (rate.phase_count < 2 || !differ(&rate))
			continue;
		cli_put_text(out, s.name);
		fputs(" changed its rate: ", out);
		for (k = 0; k < rate.phase_count && k < 6; k++)
			fprintf(out, "%s%s", k ? ", then " : "",
				rate_text(s.has_bytes, rate.phases[k].range.rate));
		fputs(rate.phase_count > 6 ? ", and so on.\n" : ".\n", out);
	}
}

static void print_outlook(const struct rates_run *run)
{
	static struct rates_outlook outlook;
	FILE *out = run->request->out;
	size_t i;

	if (rates_outlook__find(run, &outlook))
		return;
	if (outlook.reason && run->seen->stage_count)
		fprintf(out, "Other pipes are not predicted: %s.\n", outlook.reason);
	if (!outlook.is_believed)
		return;
	fprintf(out, "The last stage took %s/s", cli_bytes((uint64_t)outlook.was));
	if (outlook.free > 1.05 * outlook.was)
		fprintf(out, ", or %s/s of the time in which no stage waited for a CPU",
			cli_bytes((uint64_t)outlook.free));
	fputs(".\n", out);
	for (i = 0; i < outlook.way_count; i++) {
		const struct rates_way *way = &outlook.ways[i];

		if (way->prediction.method == MODEL_UNKNOWN)
			continue;
		fputs("  ", out);
		cli_put_text(out, way->what);
		fprintf(out, ": %s/s (%s to %s)\n", cli_bytes((uint64_t)way->prediction.range.rate),
			cli_bytes((uint64_t)way->prediction.range.low),
			cli_bytes((uint64_t)way->prediction.range.high));
	}
}

static void print_losses(const struct rates_run *run)
{
	if (run->threads->skipped)
		fprintf(run->request->out,
			"%s queues are missing: they could not be read, or their process had no "
			"space to show them.\n",
			cli_count(run->threads->skipped));
	if (run->threads->stage_count && run->request->items != RATES_BYTES)
		fputs("--items is about pipes: an item of another queue is what the program put "
		      "there.\n",
		      run->request->out);
	if (run->lost)
		fprintf(run->request->out,
			"%s records were lost, so intervals are wider and times partly unknown.\n",
			cli_count(run->lost));
}

/* --- JSON --- */

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static void add_range(struct json_object *object, const struct model_range *range,
		      bool is_rate_known, bool is_interval_known)
{
	cli_json__real(object, "rate_per_s", is_rate_known ? range->rate : NAN);
	cli_json__real(object, "low", is_interval_known ? range->low : NAN);
	cli_json__real(object, "high", is_interval_known ? range->high : NAN);
}

static struct json_object *phases_json(const struct rates_rate *f)
{
	struct json_object *phases = json_object_new_array();
	uint32_t i;

	for (i = 0; i < f->phase_count; i++) {
		struct json_object *phase = json_object_new_object();

		cli_json__count(phase, "first_item", f->phases[i].first_item);
		cli_json__count(phase, "items", f->phases[i].items);
		add_range(phase, &f->phases[i].range, true, true);
		json_object_array_add(phases, phase);
	}
	return phases;
}

static struct json_object *stage_json(const struct rates_stage *s)
{
	struct json_object *object = json_object_new_object();
	struct json_object *item = json_object_new_object();
	struct rates_rate rate;
	const struct model_estimate *e = &rate.estimate;

	rates_stage__rate(s, &rate);
	cli_json__text(object, "name", s->name);
	cli_json__count(object, "pid", s->pid);
	if (s->tid)
		cli_json__count(object, "tid", s->tid);
	cli_json__count(object, "level", s->level);
	json_object_object_add(object, "items",
			       s->has_items ? json_object_new_uint64(s->items) : NULL);
	add_range(object, &e->range, e->has_rate, e->known);
	cli_json__real(object, "utilization", share(s->service_ns, s->lifetime_ns));
	cli_json__real(object, "blocked_in", seconds(s->blocked_in_ns));
	cli_json__real(object, "blocked_out", seconds(s->blocked_out_ns));
	cli_json__real(object, "lifetime", seconds(s->lifetime_ns));
	cli_json__real(object, "running", seconds(s->runs_ns));
	cli_json__real(object, "waiting_for_cpu", seconds(s->for_cpu_ns));
	cli_json__real(object, "other_waits", seconds(s->service_ns - s->runs_ns));
	cli_json__real(object, "unknown", seconds(s->unknown_ns));
	cli_json__real(object, "held_up", s->held);
	if (s->process) {
		cli_json__count(object, "bytes_in", s->process->bytes_in);
		cli_json__count(object, "bytes_out", s->process->bytes_out);
		cli_json__count(object, "reads", s->process->reads);
		cli_json__count(object, "writes", s->process->writes);
	}
	cli_json__count(object, "intervals", e->intervals);
	if (e->known) {
		cli_json__real(item, "mean_ns", e->mean_ns);
		cli_json__real(item, "deviation_ns", e->deviation_ns);
		cli_json__real(item, "p50_ns", e->p50_ns);
		cli_json__real(item, "p90_ns", e->p90_ns);
		cli_json__real(item, "p99_ns", e->p99_ns);
	}
	json_object_object_add(object, "item", item);
	json_object_object_add(object, "phases", phases_json(&rate));
	return object;
}

static struct json_object *end_json(const struct shown_end *end)
{
	struct json_object *names = json_object_new_array();
	const char *name;
	size_t i;

	for (i = 0; (name = end_name(end, i)); i++)
		json_object_array_add(names, json_object_new_string(name));
	return names;
}

static struct json_object *queue_json(const struct shown_queue *q)
{
	struct json_object *object = json_object_new_object();

	cli_json__text(object, "name", q->name);
	json_object_object_add(object, "from", end_json(&q->from));
	json_object_object_add(object, "to", end_json(&q->to));
	json_object_object_add(object, q->is_pipe ? "bytes" : "items",
			       q->is_known ? json_object_new_uint64(q->moved) : NULL);
	json_object_object_add(object, "capacity",
			       q->capacity ? json_object_new_uint64(q->capacity) : NULL);
	cli_json__real(object, "reader_blocked", seconds(q->to.waited_ns));
	cli_json__real(object, "writer_blocked", seconds(q->from.waited_ns));
	return object;
}

static struct json_object *prediction_json(const char *what, const struct model_prediction *p)
{
	struct json_object *object = json_object_new_object();
	bool is_known = p->method != MODEL_UNKNOWN;

	cli_json__text(object, "what", what);
	add_range(object, &p->range, is_known, is_known);
	return object;
}

/* What it would do otherwise; an empty array if nothing can be predicted. */
static void add_outlook(const struct rates_run *run, struct json_object *object)
{
	static struct rates_outlook outlook;
	struct json_object *ways = json_object_new_array();
	size_t i;

	if (!rates_outlook__find(run, &outlook) && outlook.measured) {
		cli_json__real(object, "throughput_per_s", outlook.was);
		cli_json__real(object, "throughput_with_cpus_per_s", outlook.free);
		json_object_array_add(ways, prediction_json("as it is", &outlook.same));
		for (i = 0; i < outlook.way_count; i++)
			json_object_array_add(ways, prediction_json(outlook.ways[i].what,
								    &outlook.ways[i].prediction));
	}
	cli_json__flag(object, "predictions_believed", outlook.is_believed);
	json_object_object_add(object, "predictions", ways);
}

static struct json_object *make_json(const struct rates_run *run)
{
	struct json_object *object = json_object_new_object();
	struct json_object *stages = json_object_new_array(), *queues = json_object_new_array();
	const struct rate_process *bottleneck = rates_figures__bottleneck(run);
	const struct rates_thread *thread = rates_figures__slow_thread(run);
	const char *name = thread ? thread->name : bottleneck ? bottleneck->name : NULL;
	struct shown_queue q;
	struct rates_stage s;
	size_t i;

	for (i = 0; i < rates_stage__count(run); i++) {
		rates_stage__get(run, i, &s);
		json_object_array_add(stages, stage_json(&s));
	}
	for (i = 0; i < queue_count(run); i++) {
		show_queue(run, i, &q);
		json_object_array_add(queues, queue_json(&q));
	}
	cli_json__text(object, "command", run->request->title);
	cli_json__text(object, "item_unit",
		       run->seen->stage_count || !run->threads->stage_count
			       ? rates_figures__unit(run->request)
			       : "items");
	json_object_object_add(object, "stages", stages);
	json_object_object_add(object, "queues", queues);
	json_object_object_add(object, "bottleneck", name ? json_object_new_string(name) : NULL);
	cli_json__text(object, "verdict", verdict(run));
	cli_json__real(object, "held_up_outside", share(run->seen->outside_ns, run->held_ns));
	add_outlook(run, object);
	cli_json__count(object, "lost", run->lost);
	cli_json__count(object, "queues_missing", run->threads->skipped);
	return object;
}

struct json_object *rates_report__json(struct rates_run *run)
{
	return rates_figures__refresh(run) ? NULL : make_json(run);
}

int rates_report__print(struct rates_run *run)
{
	FILE *out = run->request->out;
	int status = CLI_DONE;

	if (rates_figures__refresh(run))
		return cli_error(CLI_FAILED, "no memory for the pipeline");
	if (run->request->json) {
		cli_json__print(make_json(run), out, false);
	} else {
		print_stages(run);
		if (queue_count(run)) {
			fputc('\n', out);
			print_queues(run);
			fputc('\n', out);
		}
		cli_put_text(out, verdict(run));
		fputc('\n', out);
		print_phases(run);
		print_outlook(run);
		print_losses(run);
	}
	if (run->request->page) {
		struct json_object *page = make_json(run);

		status = cli_page__write(run->request->page, rates_html, rates_html_end, page);
		json_object_put(page);
	}
	return status == CLI_DONE && run->lost ? CLI_UNACCOUNTED : status;
}

void rates_report__view(struct rates_run *run)
{
	char line[240] = "";
	size_t i, used = 0;
	struct rates_stage s;
	struct rates_rate rate;

	/* A line of many stages takes long to make, and is not shown unless there is a terminal. */
	if (!isatty(STDERR_FILENO) || rates_stage__count(run) > VIEWED ||
	    rates_figures__refresh(run))
		return;
	for (i = 0; i < rates_stage__count(run) && used < sizeof(line); i++) {
		rates_stage__get(run, i, &s);
		rates_stage__rate(&s, &rate);
		used += (size_t)snprintf(
			line + used, sizeof(line) - used, "%s%s %s %s", i ? " | " : "", s.name,
			rate.estimate.has_rate ? rate_text(s.has_bytes, rate.estimate.range.rate)
					       : "?",
			share_text(s.service_ns, s.lifetime_ns));
	}
	cli_progress__show(line);
}
