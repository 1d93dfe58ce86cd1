// SPDX-License-Identifier: MIT
/*
 * stat.c - pem stat: runs a command and counts its events where they happen, without a trace
 */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 5

static const struct cli_option options[] = {
	{'e', "events", "EV,...",
	 "Events to count: names or patterns. Default: all stub and kernel events, and the "
	 "counters "
	 "that can be had here."},
	{'f', "field", "FIELD",
	 "Sum, least, greatest and mean of this field, where an event has it."},
	{'i', "interval", "MS", "Print what came in each interval of so many milliseconds."},
	{'o', "output", "FILE",
	 "Write the result to FILE. Default: the table to standard error, JSON to standard "
	 "output."},
	{'j', "json", NULL, "Print an object (with -i, one a line) instead of a table."},
	{'n', "no-libc", NULL,
	 "Do not preload the adapters that show the C library, OpenMP, MPI and SQLite."},
	{'q', "quiet", NULL, "Do not say what can't be counted here."},
	{0},
};

/* The events of one statistics handle: those that share an attribute. */
struct group {
	struct pem_statistics *statistics;
	bool with_field;
	size_t count;
	struct pem_statistic *now;
	struct pem_statistic *before; /* at the last interval's end */
};

enum { GROUP_FIELD, GROUP_COUNTER, GROUP_COUNT, GROUPS };

struct stat {
	struct cli_patterns patterns;
	const char *field;
	const char *path;
	uint64_t interval_ms;
	bool json;
	bool no_libc;
	bool quiet;
	char **command;
	FILE *out;
	uint64_t start_ns;
	uint64_t last_ns;
	bool titled;
	struct group groups[GROUPS];
};

static int parse(const struct cli_verb *verb, struct stat *s, int argc, char **argv)
{
	int code, rc = 0;

	while (rc == 0 && (code = cli_option__next(verb, argc, argv)) != -1) {
		switch (code) {
		case 'e':
			if (cli_patterns__add(&s->patterns, optarg) < 0)
				rc = cli_usage_error(verb, "-e %s has an empty name in it", optarg);
			break;
		case 'f':
			s->field = optarg;
			break;
		case 'i':
			if (cli_parse_number(optarg, 86400000, &s->interval_ms) < 0 ||
			    s->interval_ms < 10)
				rc = cli_usage_error(verb,
						     "-i %s is no number of milliseconds "
						     "from 10 on",
						     optarg);
			break;
		case 'o':
			s->path = optarg;
			break;
		case 'j':
			s->json = true;
			break;
		case 'n':
			s->no_libc = true;
			break;
		case 'q':
			s->quiet = true;
			break;
		default:
			rc = CLI_WRONG_INPUT;
		}
	}
	if (rc == 0 && optind == argc)
		rc = cli_usage_error(verb, "no command to count: put it after --");
	s->command = argv + optind;
	return rc;
}

/* --- registering --- */

static unsigned int group_of(const struct stat *s, const struct pem_event *event)
{
	if (s->field != NULL && pem_event__field(event, s->field) >= 0)
		return GROUP_FIELD;
	return event->source_kind == PEM_SOURCE_PERF ? GROUP_COUNTER : GROUP_COUNT;
}

/* Of this version and no other, for another's fields may put it into another group. NULL without memory. */
static char *pattern_of(const struct pem_event *event)
{
	return strdup(cli_format("%s@%u", event->name, event->version));
}

/* Register the events of set that belong to group g, as a handle of their own. */
static int register_group(struct stat *s, struct pem_session *session,
			  const struct pem_event_set *all, unsigned int g, struct pem_error *error)
{
	size_t i, n = 0, count = pem_event_set__count(all);
	struct group *group = &s->groups[g];
	struct pem_event_set *set;
	const char **names;
	int rc = -ENOMEM;

	names = calloc(count + 1, sizeof(*names));
	if (names == NULL)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		if (group_of(s, pem_event_set__event(all, i)) == g)
			names[n++] = pattern_of(pem_event_set__event(all, i));
	set = n != 0 ? pem_event_set__new(session, names, n, error) : NULL;
	for (i = 0; i < n; i++)
		free((char *)names[i]);
	free(names);
	if (n == 0)
		return 0;
	if (set == NULL)
		return errno != 0 ? -errno : -EINVAL;
	group->with_field = g == GROUP_FIELD;
	group->count = pem_event_set__count(set);
	group->now = calloc(group->count + 1, sizeof(*group->now));
	group->before = calloc(group->count + 1, sizeof(*group->before));
	if (group->now != NULL && group->before != NULL) {
		group->statistics = pem_session__register_statistics(
			session, set, NULL, g == GROUP_FIELD ? s->field : NULL, error);
		rc = group->statistics != NULL ? pem_statistics__enable(group->statistics) : -errno;
	}
	pem_event_set__free(set);
	return rc;
}

static int register_all(struct stat *s, struct pem_session *session)
{
	struct pem_error error = {{0}};
	struct pem_event_set *all = cli_choose_events(session, &s->patterns, false, &error);
	unsigned int g;
	size_t i;
	int rc = 0;

	if (all == NULL)
		return cli_error(errno == ENOENT ? CLI_WRONG_INPUT : cli_status_of_errno(errno),
				 "%s", error.text);
	if (s->field != NULL) {
		for (i = 0; i < pem_event_set__count(all); i++)
			if (pem_event__field(pem_event_set__event(all, i), s->field) >= 0)
				break;
		if (i == pem_event_set__count(all)) {
			pem_event_set__free(all);
			return cli_error(CLI_WRONG_INPUT,
					 "none of these events has a field '%s'; pem list shows "
					 "what they have",
					 s->field);
		}
	}
	for (g = 0; rc == 0 && g < GROUPS; g++)
		rc = register_group(s, session, all, g, &error);
	pem_event_set__free(all);
	if (rc < 0)
		return cli_error(cli_status_of_errno(rc), "%s",
				 *error.text != '\0' ? error.text : strerror(-rc));
	return CLI_DONE;
}

static void read_all(struct stat *s)
{
	unsigned int g;

	for (g = 0; g < GROUPS; g++)
		if (s->groups[g].statistics != NULL)
			pem_statistics__read(s->groups[g].statistics, s->groups[g].now,
					     s->groups[g].count);
}

/* --- printing --- */

static const char *const layer_names[LAYERS] = {"APP", "OS", "HW", "CPO", ""};

static unsigned int layer_of(const struct pem_event *event)
{
	unsigned int i;

	for (i = 0; i < LAYERS - 1; i++)
		if (strcmp(layer_names[i], event->layer) == 0)
			break;
	return i;
}

/* Its attribute's unit. */
static const char *unit_of(const struct stat *s, const struct group *group,
			   const struct pem_event *event)
{
	int f = group->with_field ? pem_event__field(event, s->field)
				  : pem_event__field_by_role(event, PEM_ROLE_VALUE);

	return f >= 0 ? event->fields[f].unit : "";
}

/* A counter occurs all the time: what counts is how far it got. */
static bool is_counter(const struct group *group, const struct pem_event *event)
{
	return !group->with_field && event->source_kind == PEM_SOURCE_PERF;
}

static const char *number(const struct pem_statistic *v, uint64_t bits, double real,
			  const char *unit)
{
	if (v->is_float)
		return cli_decimal(real);
	if (v->is_signed)
		return cli_signed((int64_t)bits);
	return cli_quantity(bits, unit);
}

static void table_row(const struct stat *s, const struct group *group,
		      const struct pem_statistic *v, uint64_t ns, struct cli_table *table)
{
	const char *unit = unit_of(s, group, v->event);
	bool counter = is_counter(group, v->event);

	cli_table__row(table, CLI_PLAIN);
	cli_table__cell(table, cli_format("  %s", cli_event_name(v->event)));
	if (v->unavailable != 0) {
		cli_table__cell(table, "not here");
		return;
	}
	if (counter) {
		cli_table__cell(table, number(v, v->sum, v->sum_f, unit));
		cli_table__cell(table, strcmp(unit, "ns") == 0 || s->field != NULL
					       ? ""
					       : cli_rate(v->sum, ns));
		return;
	}
	cli_table__cell(table, cli_count(v->count));
	cli_table__cell(table, s->field == NULL ? cli_rate(v->count, ns) : "");
	if (!group->with_field || v->count == 0)
		return;
	cli_table__cell(table, number(v, v->sum, v->sum_f, unit));
	cli_table__cell(table, number(v, v->min, v->min_f, unit));
	cli_table__cell(table, number(v, v->max, v->max_f, unit));
	cli_table__cell(table, strcmp(unit, "bytes") == 0 && v->mean >= 0
				       ? cli_bytes((uint64_t)(v->mean + 0.5))
				       : cli_decimal(v->mean));
}

static void layer_rows(const struct stat *s, unsigned int layer, uint64_t ns,
		       struct cli_table *table)
{
	bool headed = false;
	unsigned int g;
	size_t i;

	for (g = 0; g < GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++) {
			const struct pem_statistic *v = &s->groups[g].now[i];

			if (v->event == NULL || layer_of(v->event) != layer)
				continue;
			if (!headed) {
				cli_table__row(table, CLI_BOLD);
				cli_table__cell(table, v->event->layer);
				headed = true;
			}
			table_row(s, &s->groups[g], v, ns, table);
		}
}

static void print_table(const struct stat *s, uint64_t ns)
{
	struct cli_table *table = cli_table__new(s->out);
	unsigned int layer;

	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "COUNT", CLI_RIGHT);
	cli_table__column(table, "RATE", CLI_RIGHT);
	cli_table__column(table, "SUM", CLI_RIGHT);
	cli_table__column(table, "LEAST", CLI_RIGHT);
	cli_table__column(table, "MOST", CLI_RIGHT);
	cli_table__column(table, "MEAN", CLI_RIGHT);
	for (layer = 0; layer < LAYERS; layer++)
		layer_rows(s, layer, ns, table);
	fprintf(s->out, "\n%s ran for %s%s%s\n\n", s->command[0], cli_duration(ns),
		s->field != NULL ? "; the last columns are of field " : "",
		s->field != NULL ? s->field : "");
	cli_table__print(table);
}

static struct json_object *event_json(const struct group *group, const struct pem_statistic *v)
{
	struct json_object *object = json_object_new_object();

	cli_json__text(object, "name", v->event->name);
	cli_json__count(object, "version", v->event->version);
	cli_json__text(object, "layer", v->event->layer);
	cli_json__flag(object, "available", v->unavailable == 0);
	cli_json__count(object, "count", v->count);
	if (!group->with_field && !is_counter(group, v->event))
		return object;
	if (v->is_float) {
		cli_json__real(object, "sum", v->sum_f);
		cli_json__real(object, "min", v->min_f);
		cli_json__real(object, "max", v->max_f);
	} else if (v->is_signed) {
		json_object_object_add(object, "sum", json_object_new_int64((int64_t)v->sum));
		json_object_object_add(object, "min", json_object_new_int64((int64_t)v->min));
		json_object_object_add(object, "max", json_object_new_int64((int64_t)v->max));
	} else {
		cli_json__count(object, "sum", v->sum);
		cli_json__count(object, "min", v->min);
		cli_json__count(object, "max", v->max);
	}
	cli_json__real(object, "mean", v->mean);
	return object;
}

static void print_json(const struct stat *s, uint64_t ns)
{
	struct json_object *object = json_object_new_object();
	struct json_object *events = json_object_new_array();
	unsigned int g;
	size_t i;

	cli_json__text(object, "command", s->command[0]);
	cli_json__count(object, "duration_ns", ns);
	if (s->field != NULL)
		cli_json__text(object, "field", s->field);
	for (g = 0; g < GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++)
			if (s->groups[g].now[i].event != NULL)
				json_object_array_add(
					events, event_json(&s->groups[g], &s->groups[g].now[i]));
	json_object_object_add(object, "events", events);
	cli_json__print(object, s->out, s->interval_ms != 0);
}

/* --- intervals --- */

/* "" unless the count is a counter's. */
static const char *counter_unit(const struct stat *s, const struct group *group,
				const struct pem_event *event)
{
	return is_counter(group, event) ? unit_of(s, group, event) : "";
}

/* What came since the last interval: counts and sums; the rest is of the whole run and not shown. */
static void interval_lines(struct stat *s, const struct group *group, uint64_t at_ns, uint64_t ns,
			   struct json_object *events)
{
	size_t i;

	for (i = 0; i < group->count; i++) {
		const struct pem_statistic *now = &group->now[i], *before = &group->before[i];
		uint64_t count, sum = now->sum - before->sum;
		const char *unit;
		bool counter;

		if (now->event == NULL || now->unavailable != 0)
			continue;
		unit = counter_unit(s, group, now->event);
		counter = is_counter(group, now->event);
		count = counter ? sum : now->count - before->count;
		if (count == 0)
			continue;
		if (events != NULL) {
			struct json_object *object = json_object_new_object();

			cli_json__text(object, "name", now->event->name);
			cli_json__count(object, "count", count);
			if (group->with_field && now->is_float)
				cli_json__real(object, "sum", now->sum_f - before->sum_f);
			else if (group->with_field)
				json_object_object_add(object, "sum",
						       json_object_new_int64((int64_t)sum));
			json_object_array_add(events, object);
			continue;
		}
		fprintf(s->out, "%10.3f  %-36s %16s %14s", (double)at_ns / 1e9,
			cli_event_name(now->event), cli_quantity(count, unit),
			strcmp(unit, "ns") == 0 ? "" : cli_rate(count, ns));
		if (group->with_field)
			fprintf(s->out, "  %s",
				now->is_float ? cli_decimal(now->sum_f - before->sum_f)
					      : cli_quantity(sum, unit_of(s, group, now->event)));
		fputc('\n', s->out);
	}
}

static void interval(void *arg)
{
	struct stat *s = arg;
	uint64_t now = cli_now_ns(), at = now - s->start_ns, ns = now - s->last_ns;
	struct json_object *object = NULL, *events = NULL;
	unsigned int g;

	if (s->interval_ms == 0)
		return;
	read_all(s);
	if (s->json) {
		object = json_object_new_object();
		events = json_object_new_array();
		cli_json__count(object, "time_ns", at);
		cli_json__count(object, "interval_ns", ns);
		json_object_object_add(object, "events", events);
	} else if (!s->titled) {
		fprintf(s->out, "%10s  %-36s %16s %14s\n", "SECONDS", "EVENT", "COUNT", "RATE");
		s->titled = true;
	}
	for (g = 0; g < GROUPS; g++) {
		struct group *group = &s->groups[g];

		interval_lines(s, group, at, ns, events);
		if (group->count != 0)
			memcpy(group->before, group->now, group->count * sizeof(*group->now));
	}
	if (object != NULL)
		cli_json__print(object, s->out, true);
	fflush(s->out);
	s->last_ns = now;
}

/* --- running --- */

static int count_command(struct stat *s, struct pem_session *session)
{
	struct pem_run_options run_options = {.size = sizeof(run_options),
					      .preload_libc = !s->no_libc};
	struct cli_run run = {.session = session,
			      .interval_ms = s->interval_ms != 0 ? (int)s->interval_ms : 1000,
			      .tick = interval,
			      .arg = s};
	struct pem_error error = {{0}};
	uint64_t ns;
	int rc;

	rc = cli_run__start(&run, s->command, &run_options, &error);
	if (rc < 0)
		return cli_error(rc == -ENOENT                     ? CLI_NOT_FOUND
				 : rc == -EACCES || rc == -ENOEXEC ? CLI_NOT_EXECUTABLE
								   : CLI_FAILED,
				 "%s", *error.text != '\0' ? error.text : strerror(-rc));
	/* Opening the kernel's sources, before the command ran, is not its time. */
	s->start_ns = s->last_ns = cli_now_ns();
	cli_run__wait(&run);
	ns = pem_session__elapsed_ns(session);
	interval(s); /* the last, short one */
	read_all(s);
	cli_run__explain(&run, s->command[0]);
	if (s->json)
		print_json(s, ns);
	else
		print_table(s, ns);
	return cli_run__status(&run);
}

static int open_output(struct stat *s)
{
	s->out = s->json ? stdout : stderr;
	if (s->path == NULL)
		return CLI_DONE;
	s->out = fopen(s->path, "we");
	if (s->out == NULL)
		return cli_error(cli_status_of_errno(errno), "cannot write %s: %s", s->path,
				 strerror(errno));
	return CLI_DONE;
}

static int close_output(struct stat *s, int status)
{
	bool bad;

	if (s->out == NULL)
		return status;
	bad = fflush(s->out) != 0 || ferror(s->out);
	if (s->path != NULL)
		bad |= fclose(s->out) != 0;
	if (bad) /* the command's own trouble tells more than ours */
		status = cli_error(status != CLI_DONE ? status : CLI_FAILED,
				   "cannot write the result: %s", strerror(errno));
	return status;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct stat s = {0};
	struct pem_session_options session_options = {
		.size = sizeof(session_options), .log = cli_log, .log_arg = &s.quiet};
	struct pem_session *session = NULL;
	struct pem_error error = {{0}};
	char program[PATH_MAX];
	unsigned int g;
	int status = parse(verb, &s, argc, argv);

	if (status == CLI_DONE)
		status = cli_command__check(s.command[0], program, sizeof(program));
	if (status == CLI_DONE)
		status = open_output(&s);
	if (status != CLI_DONE)
		goto end;
	session = pem_session__open(&session_options, &error);
	if (session == NULL) {
		status = cli_error(cli_status_of_errno(errno), "%s", error.text);
		goto end;
	}
	status = cli_specs__load(session, program, s.command, s.quiet);
	if (status == CLI_DONE)
		status = register_all(&s, session);
	if (status == CLI_DONE)
		status = count_command(&s, session);
end:
	status = close_output(&s, status);
	pem_session__close(session); /* and its handles with it */
	for (g = 0; g < GROUPS; g++) {
		free(s.groups[g].now);
		free(s.groups[g].before);
	}
	cli_patterns__free(&s.patterns);
	return status;
}

const struct cli_verb cli_stat = {
	.name = "stat",
	.summary = "run a command and count its events, without a trace",
	.usage = "stat [-e EV,...] [-f FIELD] [-i MS] [--json] [-o FILE] -- COMMAND [ARG...]",
	.text = "Runs COMMAND and accumulates, where each event happens, how often it did, and, "
		"for a "
		"chosen field, its sum, least, greatest and mean. No event is written anywhere, "
		"which costs a "
		"fraction of recording it. The table goes to standard error, so that the command's "
		"output "
		"stays clean.",
	.examples = "pem stat -- sqlite3 my.db .tables\n"
		    "                            how often each event happened\n"
		    "pem stat -e Malloc -f size -- ls -R /usr\n"
		    "                            bytes asked for, and sizes of the requests\n"
		    "pem stat -e 'OS::*' -i 1000 -- make\n"
		    "                            the operating system's events, second by second\n"
		    "pem stat --json -o counts.json -- ./program\n"
		    "                            numbers for another program",
	.options = options,
	.status = "The command's own; 128 and the signal's number when a signal ended it.\n"
		  "127 command not found, 126 not executable; before the command runs:\n"
		  "1 wrong usage or input, 2 cannot be done here, 3 failed.",
	.runs_command = true,
	.run = run,
};
