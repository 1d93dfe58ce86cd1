// SPDX-License-Identifier: MIT
/*
 * detail.c - pem report: events that had a lower detail level for a time, so that users do not
 * believe that they did not occur
 */
#include "report.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 20

static const char *const words[] = {"off", "statistics", "log"};

static const char *word(unsigned int detail)
{
	return detail < 3 ? words[detail] : "?";
}

static int field(const struct pem_record *record, const char *name)
{
	return pem_event__field(record->event, name);
}

int report_detail__record(struct report *report, const struct pem_record *record)
{
	static const char *const names[] = {"overhead", "budget", "oldDetail", "newDetail",
					    "eventName"};
	struct report_step *step;
	int at[5], i;

	if (strcmp(record->event->name, "CPO::Recorder::LevelSteppedDown") != 0 &&
	    strcmp(record->event->name, "CPO::Recorder::LevelSteppedUp") != 0)
		return 0;
	for (i = 0; i < 5; i++) {
		at[i] = field(record, names[i]);
		if (at[i] < 0)
			return 0;
	}
	if (pem_grow(&report->steps, sizeof(*report->steps), report->step_count + 1,
		     &report->step_capacity) < 0)
		return -ENOMEM;
	step = &report->steps[report->step_count++];
	step->time_ns = record->time_ns;
	step->overhead = pem_record__f64(record, (unsigned int)at[0]);
	step->budget = pem_record__f64(record, (unsigned int)at[1]);
	step->from = (uint8_t)pem_record__u64(record, (unsigned int)at[2]);
	step->to = (uint8_t)pem_record__u64(record, (unsigned int)at[3]);
	snprintf(step->event, sizeof(step->event), "%s",
		 pem_record__string(record, (unsigned int)at[4]));
	pem_printable(step->event);
	return 0;
}

static const char *percent(double value)
{
	return value >= 0 && value < 1e6 ? cli_percent(value / 100) : "?";
}

static void print_steps(const struct report *r)
{
	struct cli_table *table = cli_table__new(stdout);
	size_t i;

	cli_table__column(table, "AT", CLI_RIGHT);
	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "FROM", CLI_CUT);
	cli_table__column(table, "TO", CLI_CUT);
	cli_table__column(table, "OVERHEAD", CLI_RIGHT);
	cli_table__column(table, "BUDGET", CLI_RIGHT);
	for (i = 0; i < r->step_count && i < ROWS_MOST; i++) {
		const struct report_step *step = &r->steps[i];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, step->time_ns != 0 ? cli_duration(step->time_ns) : "before");
		cli_table__cell(table, step->event);
		cli_table__cell(table, word(step->from));
		cli_table__cell(table, word(step->to));
		cli_table__cell(table, percent(step->overhead));
		cli_table__cell(table, percent(step->budget));
	}
	cli_table__print(table);
	if (r->step_count > ROWS_MOST)
		printf("and %s more (--json)\n", cli_count(r->step_count - ROWS_MOST));
}

/* Is a step missing in the trace? Its effect is then unknown. */
static bool lacks_steps(const struct report *r)
{
	size_t i;

	for (i = 0; i < r->event_count; i++) {
		const struct report_event *e = &r->events[i];

		if (strncmp(e->event->name, "CPO::Recorder::", 15) == 0 &&
		    (e->balance.discarded != 0 || e->balance.overwritten != 0))
			return true;
	}
	return false;
}

/* Was the event off for a time, or may it have been? */
static bool was_off(const struct report *r, const struct pem_trace_reduced *e)
{
	char name[sizeof(e->event)];
	size_t i;

	memcpy(name, e->event, sizeof(name));
	pem_printable(name);
	for (i = 0; i < r->step_count; i++)
		if (r->steps[i].to == 0 && strcmp(r->steps[i].event, name) == 0)
			return true;
	return e->detail == 0 || lacks_steps(r);
}

/*
 * Were records lost by the reduction? They were not if the event was only counted and none
 * occurred.
 */
static bool lacks(const struct report *r, const struct pem_trace_reduced *e)
{
	return e->counted != 0 || was_off(r, e);
}

bool report__is_reduced(const struct report *r, const struct report_event *event)
{
	const struct pem_trace_info *info = r->info;
	uint32_t i;

	for (i = 0; i < info->reduced_count; i++) {
		if (lacks(r, &info->reduced[i]) &&
		    !strcmp(info->reduced[i].event, cli_event_name(event->event)))
			return true;
	}
	return false;
}

bool report__is_partial(const struct report *r, const struct report_event *event)
{
	return report__is_reduced(r, event) || event->balance.discarded != 0 ||
	       event->balance.overwritten != 0;
}

const char *report_detail__excess(const struct report *r, double share)
{
	double budget = r->step_count != 0 ? r->steps[r->step_count - 1].budget : 100;

	return share <= budget
		       ? ""
		       : cli_format(" That is above the budget of %s: how much there will be is "
				    "judged by what there was, 100 ms of CPU time at a time.",
				    percent(budget));
}

static void print_reduced(const struct report *r, const struct pem_trace_reduced *e)
{
	const char *counted = "", *off = "";
	const char *once = lacks_steps(r) ? "for a time it may have been" : "for a time it was";
	char name[sizeof(e->event)];

	memcpy(name, e->event, sizeof(name));
	pem_printable(name);
	if (e->counted != 0)
		counted =
			cli_format("%s more were counted and not recorded", cli_count(e->counted));
	if (was_off(r, e))
		off = cli_format("%s%s off, and nobody knows how many more there were",
				 e->counted == 0  ? ""
				 : e->detail == 0 ? "; then "
						  : "; ",
				 e->detail != 0    ? once
				 : e->counted != 0 ? "it was"
						   : "in the end it was");
	cli_wrap(stdout, cli_format("%s: %s%s", name, counted, off), 0, 0, cli_width(stdout));
}

void report_detail__print(const struct report *r)
{
	const struct pem_trace_info *info = r->info;
	uint32_t i;

	if (r->step_count == 0 && info->reduced_count == 0)
		return;
	printf("\n%sDetail was reduced%s\n", cli_colour(stdout, CLI_BOLD),
	       cli_colour(stdout, CLI_PLAIN));
	print_steps(r);
	for (i = 0; i < info->reduced_count; i++)
		if (lacks(r, &info->reduced[i]))
			print_reduced(r, &info->reduced[i]);
}

void report_detail__json(const struct report *r, struct cli_json_stream *json)
{
	size_t i;

	cli_json_stream__open(json, "detail", '{');
	cli_json_stream__open(json, "steps", '[');
	for (i = 0; i < r->step_count; i++) {
		const struct report_step *step = &r->steps[i];
		struct json_object *entry = json_object_new_object();

		cli_json__count(entry, "time_ns", step->time_ns);
		cli_json__text(entry, "event", step->event);
		cli_json__text(entry, "from", word(step->from));
		cli_json__text(entry, "to", word(step->to));
		cli_json__real(entry, "overhead_percent", step->overhead);
		cli_json__real(entry, "budget_percent", step->budget);
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
	cli_json_stream__open(json, "reduced", '[');
	for (i = 0; i < r->info->reduced_count; i++) {
		const struct pem_trace_reduced *e = &r->info->reduced[i];
		struct json_object *entry = json_object_new_object();

		cli_json__text(entry, "event", e->event);
		cli_json__text(entry, "detail", word(e->detail));
		cli_json__count(entry, "counted", e->counted);
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
	cli_json_stream__close(json, '}');
}
