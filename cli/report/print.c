// SPDX-License-Identifier: MIT
/*
 * print.c - pem report for people
 */
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void report__heading(const char *title)
{
	printf("\n%s%s%s\n", cli_colour(stdout, CLI_BOLD), title, cli_colour(stdout, CLI_PLAIN));
}

static void line(const char *title, const char *text)
{
	char copy[1024];

	snprintf(copy, sizeof(copy), "%s", text);
	printf("%-10s", title);
	cli_wrap(stdout, pem_printable(copy), 10, 10, cli_width(stdout));
}

/* The signal of a status of 128 and more, or NULL. Programs exit with such statuses, too. */
static const char *signal_name(int status)
{
	return status > 128 ? sigabbrev_np(status - 128) : NULL;
}

/*
 * Describe how far back a flight recorder reaches. It reaches further for a program that raised few
 * events.
 */
static const char *reach_words(const struct report *r)
{
	uint64_t bulk = r->duration_ns > r->bulk_ns ? r->duration_ns - r->bulk_ns : 0;

	if (bulk >= r->duration_ns / 4 * 3)
		return cli_format("the last %s", cli_duration(r->duration_ns));
	return cli_format("the last %s, with nine tenths of the events in the last %s",
			  cli_duration(r->duration_ns), cli_duration(bulk));
}

uint64_t report__ran_ns(const struct report *r)
{
	if (r->info->ran_ns != 0)
		return r->info->ran_ns;
	return r->info->duration_ns != 0 ? r->info->duration_ns : r->duration_ns;
}

/* How exact a coarse clock was in most of the time; "": there was none. */
static const char *coarse_words(const struct pem_trace_info *info)
{
	double share;

	if (!info->coarse_late_ns || !info->duration_ns)
		return "";
	share = 100.0 * (double)info->coarse_late_ns / (double)info->duration_ns;
	return cli_format("; events of programs off by more than 10 us for %.1f %% of the time",
			  share < 100 ? share : 100);
}

/*
 * Was the snapshot written for an event, of which it has no record? Of an event with a predicate it
 * may have other records, and then nothing is said.
 */
static bool lacks_trigger(const struct report *r)
{
	const char *name = r->info->snapshot + strlen("trigger ");
	char event[128];
	size_t i;

	if (strncmp(r->info->snapshot, "trigger ", strlen("trigger ")) != 0)
		return false;
	snprintf(event, sizeof(event), "%.*s", (int)strcspn(name, " ;"), name);
	if (strpbrk(event, "(*?[") != NULL)
		return false;
	for (i = 0; i < r->occurred_count; i++)
		if (strcasestr(r->events[r->occurred[i]].event->name, event) != NULL)
			return false;
	return true;
}

static void print_head(const struct report *r, const char *directory)
{
	const struct pem_trace_info *info = r->info;
	time_t start = (time_t)(info->start_time_ns / 1000000000);
	uint64_t ran = report__ran_ns(r);
	char when[64] = "";
	struct tm tm;

	if (localtime_r(&start, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	line("Trace", directory);
	if (*info->command != '\0')
		line("Command", info->command);
	line("Recorded", cli_format("%s on %.60s by pem %.20s", when, info->host, info->version));
	if (signal_name(info->exit_status) != NULL)
		line("Ran", cli_format("%s, ended by signal %d (%s)", cli_duration(ran),
				       info->exit_status - 128, signal_name(info->exit_status)));
	else if (info->exit_status >= 0)
		line("Ran", cli_format("%s, exit status %d", cli_duration(ran), info->exit_status));
	else
		line("Ran", cli_format("%s%s", cli_duration(ran),
				       *info->snapshot != '\0' ? " until then" : ""));
	if (*report_path__sentence(r) != '\0')
		line("Mostly", report_path__sentence(r));
	if (*info->snapshot != '\0')
		line("Snapshot",
		     cli_format("%s: %.160s%s",
				info->ran_ns != 0 ? reach_words(r)
						  : "all of it, nothing was overwritten yet",
				info->snapshot,
				lacks_trigger(r) ? "; the trigger's own event is not in it" : ""));
	else if (info->ran_ns != 0)
		line("Kept", cli_format("%s: what came before was overwritten", reach_words(r)));
	line("Clock",
	     cli_format("%.3f MHz; sources agree within %s%s", (double)info->clock_hz / 1e6,
			cli_duration(info->clock_error_ns), coarse_words(info)));
}

/* --- events --- */

/* Describe a sum and its mean. */
static const char *sum_words(const struct report_event *e, const struct pem_field *field)
{
	const char *over = e->overflowed ? "over " : "", *failed = "";
	double mean = e->total_f / (double)e->summed;

	if (e->failed != 0)
		failed =
			cli_format("%s%s failed", e->summed != 0 ? "; " : "", cli_count(e->failed));
	if (e->summed == 0)
		return failed;
	if (field->type == PEM_TYPE_FLOAT32 || field->type == PEM_TYPE_FLOAT64)
		return cli_format("in all %s %.20s, mean %s%s%s", cli_decimal(e->total_f),
				  field->unit, cli_decimal(mean),
				  cli_percentiles__words(&e->sketch, field->unit), failed);
	return cli_format("in all %s%.60s, mean %.60s%s%s", over,
			  cli_quantity(e->total, field->unit),
			  cli_quantity((uint64_t)(mean + 0.5), field->unit),
			  cli_percentiles__words(&e->sketch, field->unit), failed);
}

/* A counter's last value. */
static const char *counter_words(const struct report *r, const struct report_event *e,
				 const char *unit)
{
	struct cli_estimate estimate = report__estimate(r, e);
	const char *value = cli_quantity(e->total, unit);

	if (!cli_estimate__is(&estimate))
		return cli_format("reached %.60s", value);
	return cli_format("reached ~%.60s (%s, error %s)", value,
			  cli_percent(cli_estimate__share(&estimate)),
			  cli_estimate__error(&estimate, e->total));
}

static const char *value_of(const struct report *r, const struct report_event *e)
{
	const struct pem_field *field;
	const char *word;

	if (e->markers != 0)
		return cli_format("%s more records only name a CPU's thread",
				  cli_count(e->markers));
	if (e->value == VALUE_NONE || e->count == 0)
		return "";
	field = &e->event->fields[e->field];
	if (e->value == VALUE_SUM)
		return sum_words(e, field);
	word = e->event->meaning == PEM_MEANS_COUNTER ? "reached" : "last";
	if (pem_field__label(field, e->total) != NULL)
		return cli_format("%s %.60s", word, pem_field__label(field, e->total));
	if (field->base == 16)
		return cli_format("%s 0x%llx", word, (unsigned long long)e->total);
	if (field->type == PEM_TYPE_FLOAT32 || field->type == PEM_TYPE_FLOAT64)
		return cli_format("%s %s %.20s", word, cli_decimal(e->total_f), field->unit);
	if (field->type >= PEM_TYPE_INT8 && field->type <= PEM_TYPE_INT64)
		return cli_format("%s %s %.20s", word, cli_signed((int64_t)e->total), field->unit);
	if (e->event->meaning == PEM_MEANS_COUNTER)
		return counter_words(r, e, field->unit);
	return cli_format("%s %.60s", word, cli_quantity(e->total, field->unit));
}

/*
 * If the whole machine was observed, a counter's values are summed over its CPUs. So its times are
 * longer than the recording.
 */
static const char *value_words(const struct report *r, const struct report_event *e)
{
	const char *text = value_of(r, e);

	return e->event->meaning == PEM_MEANS_COUNTER && *text != '\0' &&
			       r->info->machine_cpu_ns != 0
		       ? cli_format("%.100s on all CPUs", text)
		       : text;
}

static const char *bound(bool partial, const char *text)
{
	return partial ? cli_format(">%.60s", text) : text;
}

/* Is the layer partial? LAYERS: is any layer? */
static bool layer_is_partial(const struct report *r, unsigned int layer)
{
	const struct report_event *e;

	for (e = r->events; e < r->events + r->event_count; e++) {
		if ((layer == LAYERS || e->layer == layer) && e->count != 0 &&
		    report__is_partial(r, e))
			return true;
	}
	return false;
}

static void print_bound(const struct report *r)
{
	report_estimate__print(r);
	if (layer_is_partial(r, LAYERS))
		cli_wrap(stdout,
			 r->info->reduced_count == 0
				 ? "> more occurred than the trace has: see the balance"
				 : "> more occurred than the trace has: see the balance, and what "
				   "detail was reduced",
			 0, 0, cli_width(stdout));
}

static void event_row(const struct report *r, const struct report_event *e, const char *indent,
		      struct cli_table *table)
{
	bool partial = report__is_partial(r, e);

	cli_table__row(table, CLI_PLAIN);
	cli_table__cell(table, cli_format("%s%.100s", indent, cli_event_name(e->event)));
	cli_table__cell(table, bound(partial, cli_count(e->count)));
	cli_table__cell(table, bound(partial, cli_rate(e->count, r->duration_ns)));
	cli_table__cell(table, value_words(r, e));
}

static void event_columns(struct cli_table *table)
{
	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "COUNT", CLI_RIGHT);
	cli_table__column(table, "RATE", CLI_RIGHT);
	cli_table__column(table, "VALUE", CLI_CUT);
}

/*
 * Print the events that were recorded only for the context of others, and which the user did not
 * ask for.
 */
static void print_context_events(const struct report *r)
{
	char text[512] = "";
	const char *states = "";
	size_t i, used = 0, count = 0;

	for (i = 0; i < r->event_count && used < sizeof(text); i++) {
		if (!report__is_context(r, &r->events[i]) || r->events[i].count == 0)
			continue;
		if (r->events[i].event->meaning == PEM_MEANS_THREAD_STATE)
			states = " and what threads did at first";
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
					 count++ ? ", " : "", r->events[i].event->name);
	}
	if (count == 0)
		return;
	cli_wrap(stdout,
		 cli_format("Not asked for, but recorded to tell whose the kernel's records are"
			    "%s: %.230s",
			    states, text),
		 0, 0, cli_width(stdout));
}

static void print_layers(const struct report *r, const size_t *order, bool with_events)
{
	struct cli_table *table = cli_table__new(stdout);
	unsigned int layer;
	bool partial;
	size_t i;

	event_columns(table);
	for (layer = 0; layer < LAYERS; layer++) {
		if (r->layer_count[layer] == 0)
			continue;
		cli_table__row(table, CLI_BOLD);
		cli_table__cell(table, report_layers[layer]);
		partial = layer_is_partial(r, layer);
		cli_table__cell(table, bound(partial, cli_count(r->layer_count[layer])));
		cli_table__cell(table,
				bound(partial, cli_rate(r->layer_count[layer], r->duration_ns)));
		for (i = 0; with_events && i < r->event_count; i++)
			if (r->events[order[i]].layer == layer && r->events[order[i]].count != 0)
				event_row(r, &r->events[order[i]], "  ", table);
	}
	report__heading("Events by layer");
	cli_table__print(table);
	print_bound(r);
	print_context_events(r);
}

static void print_events(const struct report *r, const size_t *order)
{
	struct cli_table *table = cli_table__new(stdout);
	size_t i;

	event_columns(table);
	for (i = 0; i < r->event_count && r->events[order[i]].count != 0; i++)
		event_row(r, &r->events[order[i]], "", table);
	report__heading("Events");
	cli_table__print(table);
	print_bound(r);
	print_context_events(r);
}

/* --- phases --- */

#define PHASES_MOST 50u /* unless the user asks for them */

/* Is it a reading of counters, which is made for the event behind it? */
static bool is_reading(const struct pem_event *event)
{
	return strcmp(event->name, PEM_COUNTERS_EVENT) == 0 ||
	       strcmp(event->name, PEM_THREAD_COUNTERS_EVENT) == 0;
}

static void phase_events(const struct report *r, const struct report_phase *phase, char *text,
			 size_t bytes)
{
	uint64_t by_layer[LAYERS] = {0};
	unsigned int layer;
	size_t i, used = 0;

	for (i = 0; i < phase->counted; i++) {
		const struct report_event *e = &r->events[r->occurred[i]];

		by_layer[e->layer] += is_reading(e->event) ? 0 : phase->inside[i].count;
	}
	text[0] = '\0';
	for (layer = 0; layer < LAYERS && used < bytes; layer++)
		if (by_layer[layer] != 0)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s %s",
						 used != 0 ? ", " : "", report_layers[layer],
						 cli_count(by_layer[layer]));
}

static void print_phases(const struct report *r, size_t most)
{
	static const struct pem_sketch none;
	struct cli_table *table;
	bool several = false;
	char events[256];
	size_t i, partial = 0;

	if (r->phase_count == 0 && r->ends_without_begin == 0)
		return;
	for (i = 0; i < r->phase_count; i++)
		several |= r->phases[i].times + r->phases[i].unfinished > 1;
	for (i = 0; i < r->phase_count; i++)
		partial += r->phases[i].is_partial;
	table = cli_table__new(stdout);
	cli_table__column(table, "PHASE", CLI_CUT);
	cli_table__column(table, "TIMES", CLI_RIGHT);
	cli_table__column(table, "BEGAN AT", CLI_RIGHT);
	cli_table__column(table, "TOOK", CLI_RIGHT);
	cli_percentiles__columns(table);
	cli_table__column(table, "LONGEST", CLI_RIGHT);
	cli_table__column(table, "EVENTS INSIDE", CLI_LEFT);
	for (i = 0; i < r->phase_count && i < most; i++) {
		const struct report_phase *p = &r->phases[i];

		phase_events(r, p, events, sizeof(events));
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, p->name);
		cli_table__cell(table, several ? cli_count(p->times + p->unfinished) : "");
		cli_table__cell(table, cli_duration(p->first_ns));
		cli_table__cell(table, cli_format("%s%s", p->unfinished != 0 ? ">" : "",
						  cli_sum__duration(p->total_ns)));
		cli_percentiles__durations(several ? &p->sketch : &none, p->most_ns, table);
		cli_table__cell(table, several ? cli_duration(p->most_ns) : "");
		cli_table__cell(table, events);
	}
	report__heading("Phases");
	cli_table__print(table);
	if (r->phase_count > most)
		printf("and %s more (--by phase)\n", cli_count(r->phase_count - most));
	if (partial != 0)
		printf("The events inside are not all counted of %s names: there are too many, or "
		       "their thread is unknown\n",
		       cli_count(partial));
	if (r->ends_without_begin != 0)
		printf("%s ends of phases had no begin in this trace\n",
		       cli_count(r->ends_without_begin));
}

/* --- balance, cost, gaps --- */

static void print_balance(const struct report *r, const size_t *order)
{
	const struct pem_balance *b = &r->total;
	struct cli_table *table;
	char text[256];
	size_t i;

	report__heading("Balance");
	snprintf(text, sizeof(text), "%s produced = %s delivered + %s discarded + %s overwritten%s",
		 cli_count(b->produced), cli_count(b->delivered), cli_count(b->discarded),
		 cli_count(b->overwritten), r->balanced ? "; all of them read" : "");
	cli_wrap(stdout, text, 0, 0, cli_width(stdout));
	if (r->info->reduced_count != 0)
		cli_wrap(stdout, "Not in it: what was only counted, or off, to keep the budget", 0,
			 0, cli_width(stdout));
	if (pem_trace__torn_packets(r->trace) != 0)
		printf("%s streams end in a torn packet, which is left out\n",
		       cli_count(pem_trace__torn_packets(r->trace)));
	if (b->discarded + b->overwritten == 0)
		return;
	table = cli_table__new(stdout);
	cli_table__column(table, "EVENT WITH LOSSES", CLI_LEFT);
	cli_table__column(table, "PRODUCED", CLI_RIGHT);
	cli_table__column(table, "DELIVERED", CLI_RIGHT);
	cli_table__column(table, "DISCARDED", CLI_RIGHT);
	cli_table__column(table, "OVERWRITTEN", CLI_RIGHT);
	for (i = 0; i < r->event_count; i++) {
		const struct report_event *e = &r->events[order[i]];

		if (e->balance.discarded + e->balance.overwritten == 0)
			continue;
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_event_name(e->event));
		cli_table__cell(table, cli_count(e->balance.produced));
		cli_table__cell(table, cli_count(e->balance.delivered));
		cli_table__cell(table, cli_count(e->balance.discarded));
		cli_table__cell(table, cli_count(e->balance.overwritten));
	}
	cli_table__print(table);
}

static void print_gaps(const struct report *r)
{
	uint32_t i, count = r->info->gap_count;
	char text[4096];

	if (count == 0)
		return;
	report__heading("Not recorded");
	for (i = 0; i < count; i++) {
		if (!cli_gap__sentence(r->info, i, text, sizeof(text)))
			continue;
		printf("%-10s ", r->info->gaps[i].source);
		cli_wrap(stdout, pem_printable(text), 11, 11, cli_width(stdout));
	}
	if (cli_gaps__rest(r->info) != NULL)
		cli_wrap(stdout, cli_gaps__rest(r->info), 0, 0, cli_width(stdout));
}

/* Print all events of one predicate in one line. */
static void print_predicates(const struct report *r)
{
	const struct pem_trace_predicate *p = r->info->predicates;
	uint32_t i, j, count = r->info->predicate_count;
	/* Room for all events and a predicate. */
	char text[sizeof(r->info->predicates[0].event) * 72];

	if (count == 0)
		return;
	report__heading("Recorded only where");
	for (i = 0; i < count; i++) {
		size_t used = 0;

		for (j = 0; j < i && strcmp(p[j].text, p[i].text) != 0; j++)
			;
		if (j < i)
			continue;
		for (; j < count && used < sizeof(text); j++)
			if (strcmp(p[j].text, p[i].text) == 0)
				used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
							 used ? ", " : "", p[j].event);
		if (used < sizeof(text))
			snprintf(text + used, sizeof(text) - used, " where %s", p[i].text);
		cli_wrap(stdout, pem_printable(text), 4, 0, cli_width(stdout));
	}
	if (r->info->predicates_more != 0)
		printf("and %s more events\n", cli_count(r->info->predicates_more));
}

void report__print(const struct report *r, const char *directory, enum report_by by)
{
	size_t *order = report__order(r), most_phases;

	if (order == NULL) {
		cli_error(0, "no memory to sort the events");
		return;
	}
	print_head(r, directory);
	if (by == REPORT_ALL || by == REPORT_LAYER)
		print_layers(r, order, by == REPORT_ALL);
	if (by == REPORT_EVENT)
		print_events(r, order);
	report_processes__print(r, by);
	if (by == REPORT_DATA)
		report_data__print(r);
	if (by == REPORT_SITE)
		report_sites__print(r);
	if (by == REPORT_FUNCTION)
		report_functions__print(r);
	if (by == REPORT_STACK)
		report_stacks__print(r);
	if (by == REPORT_ALL)
		report_metrics__print(r);
	most_phases = by == REPORT_PHASE ? SIZE_MAX : PHASES_MOST;
	print_phases(r, most_phases);
	if (by == REPORT_ALL || by == REPORT_PHASE)
		report_metrics__print_phases(r, most_phases);
	report_path__print(r, by);
	report_times__print(r, by);
	report_waits__print(r, by);
	report_locks__print(r, by);
	report_calls__print(r, by);
	report_messages__print(r, by);
	report_page_samples__print(r);
	report_counted__print(r);
	print_balance(r, order);
	report__heading("Cost of observing");
	report_cost__print(r);
	report_detail__print(r);
	print_predicates(r);
	print_gaps(r);
	free(order);
}
