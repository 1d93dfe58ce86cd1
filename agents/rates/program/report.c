/* SPDX-License-Identifier: MIT */
/* report.c - stages, queues and the bottleneck, as tables, sentences and JSON */
#include "program/program.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

extern const char rates_html[], rates_html_end[];

#define VIEWED 16u /* stages that a line can show */
#define ROWS 60u /* of the table of stages */

/* --- words --- */

static const char *rate_text(const struct rates_request *request, double rate)
{
	if (!isfinite(rate))
		return "unknown";
	return request->items == RATES_BYTES ? cli_format("%s/s", cli_bytes((uint64_t)rate))
					     : cli_format("%s/s", cli_decimal(rate));
}

static const char *share_text(uint64_t ns, uint64_t of_ns)
{
	return ns ? cli_percent(of_ns ? (double)ns / (double)of_ns : 0) : "";
}

static const char *rate_interval(const struct rates_request *request, const struct rates_figures *f)
{
	if (!f->estimate.known)
		return "";
	return cli_format("%s to %s", rate_text(request, f->estimate.range.low),
			  isfinite(f->estimate.range.high)
				  ? rate_text(request, f->estimate.range.high)
				  : "any");
}

/* --- tables --- */

static void print_stages(const struct rates_run *run)
{
	const struct rates_request *request = run->request;
	struct cli_table *table = cli_table__new(request->out);
	size_t i, count = rate_observation__stage_count(run->observation);

	cli_table__column(table, "STAGE", CLI_CUT);
	cli_table__column(table, "PID", CLI_RIGHT);
	cli_table__column(table, "RATE", CLI_RIGHT);
	cli_table__column(table, "INTERVAL (95 %)", CLI_RIGHT);
	cli_table__column(table, "BUSY", CLI_RIGHT);
	cli_table__column(table, "NO INPUT", CLI_RIGHT);
	cli_table__column(table, "OUTPUT FULL", CLI_RIGHT);
	cli_table__column(table, "FOR A CPU", CLI_RIGHT);
	cli_table__column(table, "OTHER WAITS", CLI_SPARE);
	cli_table__column(table, "UNKNOWN", CLI_SPARE);
	for (i = 0; i < count && i < ROWS; i++) {
		const struct rate_process *stage = rate_observation__stage(run->observation, i);
		struct rates_figures f;

		rates_figures__of(run, stage, &f);
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, stage->name);
		cli_table__cell(table, cli_format("%u", stage->process->pid));
		cli_table__cell(table, f.is_rate_known ? rate_text(request, f.estimate.range.rate)
						       : "unknown");
		cli_table__cell(table, rate_interval(request, &f));
		cli_table__cell(table, share_text(f.service_ns, f.lifetime_ns));
		cli_table__cell(table, share_text(f.blocked_in_ns, f.lifetime_ns));
		cli_table__cell(table, share_text(f.blocked_out_ns, f.lifetime_ns));
		cli_table__cell(table, share_text(f.for_cpu_ns, f.lifetime_ns));
		cli_table__cell(table, share_text(f.waits_ns, f.lifetime_ns));
		cli_table__cell(table, share_text(f.unknown_ns, f.lifetime_ns));
	}
	cli_table__print(table);
	if (count > ROWS)
		fprintf(request->out, "and %s more (--json)\n", cli_count(count - ROWS));
}

static const char *names_of(struct rate_process *const *stages, size_t count)
{
	return count == 1 ? stages[0]->name : cli_format("%zu stages", count);
}

static void print_queues(const struct rates_run *run)
{
	struct cli_table *table = cli_table__new(run->request->out);
	size_t i, count = rate_observation__queue_count(run->observation);

	cli_table__column(table, "QUEUE", CLI_CUT);
	cli_table__column(table, "FROM", CLI_LEFT);
	cli_table__column(table, "TO", CLI_LEFT);
	cli_table__column(table, "BYTES", CLI_RIGHT);
	cli_table__column(table, "READER WAITED", CLI_RIGHT);
	cli_table__column(table, "WRITER WAITED", CLI_RIGHT);
	for (i = 0; i < count && i < ROWS; i++) {
		const struct rate_pipe *q = rate_observation__queue(run->observation, i);

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, q->file->path);
		cli_table__cell(table, names_of(q->writers, q->writer_count));
		cli_table__cell(table, names_of(q->readers, q->reader_count));
		cli_table__cell(table, cli_bytes(q->bytes_read));
		cli_table__cell(table, cli_duration(q->read_blocked_ns));
		cli_table__cell(table, cli_duration(q->write_blocked_ns));
	}
	cli_table__print(table);
}

/* --- sentences --- */

/* What the bottleneck does while others wait for it, if it is not its work alone. */
static const char *reason_of(const struct rates_figures *f)
{
	uint64_t all = 0, waits = f->held_ns[RATE_WAITS] + f->held_ns[RATE_SLEEPS];
	unsigned doing;

	for (doing = 0; doing < RATE_DOINGS; doing++)
		all += f->held_ns[doing];
	if (f->held_ns[RATE_FOR_CPU] * 4 > all)
		return cli_format("; in %s of it, it waited for a CPU",
				  cli_percent((double)f->held_ns[RATE_FOR_CPU] / (double)all));
	if (waits * 4 > all)
		return cli_format("; in %s of it, it waited for something else than its queues, "
				  "such as a disk, a network or a time",
				  cli_percent((double)waits / (double)all));
	return "";
}

static void print_bottleneck(const struct rates_run *run)
{
	const struct rate_process *stage = rates_figures__bottleneck(run);
	struct rates_figures f;
	FILE *out = run->request->out;

	if (!stage && rates_figures__outside(run) > 0) {
		fprintf(out,
			"The bottleneck is outside: in %s of the time the pipeline waited for what "
			"feeds it or takes its output.\n",
			cli_percent(rates_figures__outside(run)));
		return;
	}
	if (!stage) {
		fprintf(out, "The bottleneck is unknown: %s.\n",
			rate_observation__stage_count(run->observation)
				? "no stage takes without giving on, or records were lost"
				: "no pipe or FIFO has both ends among the observed processes");
		return;
	}
	rates_figures__of(run, stage, &f);
	fprintf(out, "%sThe bottleneck is ", cli_colour(out, CLI_BOLD));
	cli_put_text(out, stage->name);
	fprintf(out, "%s: the pipeline waited for it %s of the time%s.\n",
		cli_colour(out, CLI_PLAIN), cli_percent(f.held), reason_of(&f));
}

/* Do phases differ by a quarter? Smaller changes are in the JSON: clocks of CPUs drift as well. */
static bool differ(const struct rates_figures *f)
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
	const struct rates_request *request = run->request;
	size_t i, count = rate_observation__stage_count(run->observation);
	uint32_t k;

	for (i = 0; i < count; i++) {
		const struct rate_process *stage = rate_observation__stage(run->observation, i);
		struct rates_figures f;

		rates_figures__of(run, stage, &f);
		if (f.phase_count < 2 || !differ(&f))
			continue;
		cli_put_text(request->out, stage->name);
		fputs(" changed its rate: ", request->out);
		for (k = 0; k < f.phase_count && k < 6; k++)
			fprintf(request->out, "%s%s", k ? ", then " : "",
				rate_text(request, f.phases[k].range.rate));
		fputs(f.phase_count > 6 ? ", and so on.\n" : ".\n", request->out);
	}
}

static void print_outlook(const struct rates_run *run)
{
	static struct rates_outlook outlook;
	FILE *out = run->request->out;
	size_t i;

	if (rates_outlook__find(run, &outlook) || !outlook.measured ||
	    outlook.same.method == RATE_UNKNOWN)
		return;
	if (!outlook.is_believed) {
		fprintf(out,
			"Other pipes are not predicted: the model gives %s/s for this pipeline, "
			"which did %s/s.\n",
			cli_bytes((uint64_t)outlook.same.range.rate),
			cli_bytes((uint64_t)outlook.free));
		return;
	}
	fprintf(out, "The last stage took %s/s", cli_bytes((uint64_t)outlook.was));
	if (outlook.free > 1.05 * outlook.was)
		fprintf(out, ", or %s/s of the time in which no stage waited for a CPU",
			cli_bytes((uint64_t)outlook.free));
	fputs(".\n", out);
	for (i = 0; i < outlook.way_count; i++) {
		const struct rates_way *way = &outlook.ways[i];

		if (way->prediction.method == RATE_UNKNOWN)
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

static void add_real(struct json_object *object, const char *key, double value, bool is_known)
{
	if (is_known && isfinite(value))
		cli_json__real(object, key, value);
	else
		json_object_object_add(object, key, NULL);
}

static void add_range(struct json_object *object, const struct model_range *range,
		      bool is_rate_known, bool is_interval_known)
{
	add_real(object, "rate_per_s", range->rate, is_rate_known);
	add_real(object, "low", range->low, is_interval_known);
	add_real(object, "high", range->high, is_interval_known);
}

static struct json_object *phases_json(const struct rates_figures *f)
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

static struct json_object *stage_json(const struct rates_run *run, const struct rate_process *stage)
{
	struct json_object *object = json_object_new_object();
	struct json_object *item = json_object_new_object();
	struct rates_figures f;

	rates_figures__of(run, stage, &f);
	cli_json__text(object, "name", stage->name);
	cli_json__count(object, "pid", stage->process->pid);
	cli_json__count(object, "items", rates_figures__items(run->request, stage));
	add_range(object, &f.estimate.range, f.is_rate_known, f.estimate.known);
	cli_json__real(object, "utilization",
		       f.lifetime_ns ? (double)f.service_ns / (double)f.lifetime_ns : 0);
	cli_json__real(object, "blocked_in", seconds(f.blocked_in_ns));
	cli_json__real(object, "blocked_out", seconds(f.blocked_out_ns));
	cli_json__real(object, "lifetime", seconds(f.lifetime_ns));
	cli_json__real(object, "running", seconds(f.runs_ns));
	cli_json__real(object, "waiting_for_cpu", seconds(f.for_cpu_ns));
	cli_json__real(object, "other_waits", seconds(f.waits_ns));
	cli_json__real(object, "unknown", seconds(f.unknown_ns));
	cli_json__real(object, "held_up", f.held);
	cli_json__count(object, "bytes_in", stage->bytes_in);
	cli_json__count(object, "bytes_out", stage->bytes_out);
	cli_json__count(object, "reads", stage->reads);
	cli_json__count(object, "writes", stage->writes);
	cli_json__count(object, "intervals", f.estimate.intervals);
	if (f.estimate.known) {
		cli_json__real(item, "mean_ns", f.estimate.mean_ns);
		cli_json__real(item, "deviation_ns", f.estimate.deviation_ns);
		cli_json__real(item, "p50_ns", f.estimate.p50_ns);
		cli_json__real(item, "p90_ns", f.estimate.p90_ns);
		cli_json__real(item, "p99_ns", f.estimate.p99_ns);
	}
	json_object_object_add(object, "item", item);
	json_object_object_add(object, "phases", phases_json(&f));
	return object;
}

static struct json_object *names_json(struct rate_process *const *stages, size_t count)
{
	struct json_object *names = json_object_new_array();
	size_t i;

	for (i = 0; i < count; i++)
		json_object_array_add(names, json_object_new_string(stages[i]->name));
	return names;
}

static struct json_object *queue_json(const struct rates_run *run, const struct rate_pipe *queue)
{
	struct json_object *object = json_object_new_object();
	uint32_t capacity = rate_pipes__bytes(run->pipes, rate_pipe__inode(queue));

	cli_json__text(object, "name", queue->file->path);
	json_object_object_add(object, "from", names_json(queue->writers, queue->writer_count));
	json_object_object_add(object, "to", names_json(queue->readers, queue->reader_count));
	cli_json__count(object, "bytes", queue->bytes_read);
	json_object_object_add(object, "capacity",
			       capacity ? json_object_new_int64(capacity) : NULL);
	cli_json__real(object, "reader_blocked", seconds(queue->read_blocked_ns));
	cli_json__real(object, "writer_blocked", seconds(queue->write_blocked_ns));
	return object;
}

static struct json_object *prediction_json(const char *what, const struct rate_prediction *p)
{
	struct json_object *object = json_object_new_object();
	bool is_known = p->method != RATE_UNKNOWN;

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
	size_t i;

	for (i = 0; i < rate_observation__stage_count(run->observation); i++)
		json_object_array_add(
			stages, stage_json(run, rate_observation__stage(run->observation, i)));
	for (i = 0; i < rate_observation__queue_count(run->observation); i++)
		json_object_array_add(
			queues, queue_json(run, rate_observation__queue(run->observation, i)));
	cli_json__text(object, "command", run->request->title);
	cli_json__text(object, "item_unit", rates_figures__unit(run->request));
	json_object_object_add(object, "stages", stages);
	json_object_object_add(object, "queues", queues);
	json_object_object_add(object, "bottleneck",
			       bottleneck ? json_object_new_string(bottleneck->name) : NULL);
	cli_json__real(object, "held_up_outside", rates_figures__outside(run));
	add_outlook(run, object);
	cli_json__count(object, "lost", run->lost);
	return object;
}

struct json_object *rates_report__json(struct rates_run *run)
{
	return rates_figures__refresh(run) ? NULL : make_json(run);
}

int rates_report__print(struct rates_run *run)
{
	struct json_object *page;
	int status = CLI_DONE;

	if (rates_figures__refresh(run))
		return cli_error(CLI_FAILED, "no memory for the pipeline");
	if (run->request->json) {
		cli_json__print(make_json(run), run->request->out, false);
	} else {
		print_stages(run);
		if (rate_observation__queue_count(run->observation))
			fputc('\n', run->request->out);
		print_queues(run);
		if (rate_observation__queue_count(run->observation))
			fputc('\n', run->request->out);
		print_bottleneck(run);
		print_phases(run);
		print_outlook(run);
		print_losses(run);
	}
	if (run->request->page) {
		page = make_json(run);
		status = cli_page__write(run->request->page, rates_html, rates_html_end, page);
		json_object_put(page);
	}
	return status == CLI_DONE && run->lost ? CLI_UNACCOUNTED : status;
}

void rates_report__view(struct rates_run *run)
{
	char line[240] = "";
	size_t i, used = 0;

	/* Many stages take long, and nobody may look. */
	if (!isatty(STDERR_FILENO) || rate_observation__stage_count(run->observation) > VIEWED ||
	    rates_figures__refresh(run))
		return;
	for (i = 0; i < rate_observation__stage_count(run->observation); i++) {
		struct rate_process *stage = rate_observation__stage(run->observation, i);
		struct rates_figures f;

		rates_figures__of(run, stage, &f);
		if (used < sizeof(line))
			used += (size_t)snprintf(
				line + used, sizeof(line) - used, "%s%s %s %s", i ? " | " : "",
				stage->name,
				f.is_rate_known ? rate_text(run->request, f.estimate.range.rate)
						: "?",
				share_text(f.service_ns, f.lifetime_ns));
	}
	cli_progress__show(line);
}
