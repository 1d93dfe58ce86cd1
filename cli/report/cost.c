// SPDX-License-Identifier: MIT
/*
 * cost.c - pem report: the cost of observing, for people and for programs
 *
 * The cost is a share of CPU time: of the observed program's, or if the whole machine was observed,
 * of all programs that ran.
 */
#include "report.h"

#include <string.h>

/* The CPU time in ns of which the cost is a share, and its owner. 0: unknown. */
static uint64_t base_of(const struct pem_trace_info *info, const char **whose)
{
	*whose = info->machine_cpu_ns != 0 ? "machine" : "program";
	return info->machine_cpu_ns != 0 ? info->machine_cpu_ns : info->program_cpu_ns;
}

static double sum_of(const struct pem_trace_info *info)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < info->cost_count; i++)
		sum += info->costs[i].ns_each * (double)info->costs[i].count;
	return sum;
}

/* The sum with warm caches, or (most) with cold ones. 0: the recorder did not tell. */
static double bound_of(const struct pem_trace_info *info, bool most)
{
	const struct pem_trace_cost_range *range;
	double sum = 0;
	uint32_t i;

	for (i = 0; i < info->cost_count; i++) {
		range = &info->cost_ranges[i];
		if (range->most_ns <= 0 && info->costs[i].ns_each > 0)
			return 0;
		sum += (most ? range->most_ns : range->least_ns) * (double)info->costs[i].count;
	}
	return sum;
}

static bool has_kind(const struct pem_trace_info *info, const char *kind)
{
	uint32_t i;

	for (i = 0; i < info->cost_count; i++)
		if (strcmp(info->costs[i].kind, kind) == 0)
			return true;
	return false;
}

/* Did this kind of cost occur without being measured? It must then be added to the sum. */
static bool is_unmeasured(const struct pem_trace_cost *c)
{
	return c->count != 0 && c->ns_each <= 0;
}

/* How stacks of allocations were looked for: recorders of earlier versions don't tell. */
#define STACKS "stacks of allocations"

static bool lacks_stacks(const struct report *r)
{
	return report__has(r, PEM_MEANS_FRAME) && !has_kind(r->info, "stack") &&
	       !has_kind(r->info, "others");
}

/* The names of these kinds, "uprobe-log, sample". "": the sum has all. */
static const char *unmeasured(const struct report *r, char *text, size_t bytes)
{
	const struct pem_trace_info *info = r->info;
	size_t used = 0;
	uint32_t i;

	text[0] = '\0';
	for (i = 0; i < info->cost_count; i++)
		if (is_unmeasured(&info->costs[i]) && used < bytes)
			used += (size_t)snprintf(text + used, bytes - used, "%s%s",
						 used != 0 ? ", " : "", info->costs[i].kind);
	if (lacks_stacks(r) && used < bytes)
		snprintf(text + used, bytes - used, "%s" STACKS, used != 0 ? ", " : "");
	return text;
}

/* A duration for people. "?": it is more than possible. */
static const char *duration(double ns)
{
	return ns < 1e18 ? cli_duration((uint64_t)ns) : "?";
}

/* What one can have cost, "14.3 to 30.5 ns". "": it is the same whatever the caches hold. */
static const char *range(const struct pem_trace_cost_range *range)
{
	if (range->most_ns <= range->least_ns)
		return "";
	return cli_format("%.1f to %.1f ns", range->least_ns, range->most_ns);
}

static void add_row(struct cli_table *table, const struct pem_trace_info *info, uint32_t i,
		    uint64_t base)
{
	const struct pem_trace_cost *c = &info->costs[i];
	double ns = c->ns_each * (double)c->count;

	cli_table__row(table, CLI_PLAIN);
	cli_table__cell(table, c->kind);
	cli_table__cell(table, cli_count(c->count));
	if (c->ns_each <= 0) {
		cli_table__cell(table, "not measured");
		return;
	}
	/* One unit for all rows, which are compared. */
	cli_table__cell(table, c->ns_each < 1e4
				       ? cli_format("%.1f ns", c->ns_each)
				       : cli_format("%s ns", cli_count((uint64_t)c->ns_each)));
	cli_table__cell(table, range(&info->cost_ranges[i]));
	cli_table__cell(table, duration(ns));
	cli_table__cell(table, base != 0 ? cli_percent(ns / (double)base) : "");
}

/* Returns the number of kinds. */
static unsigned int print_kinds(const struct pem_trace_info *info, uint64_t base, const char *whose)
{
	struct cli_table *table = cli_table__new(stdout);
	unsigned int rows = 0;
	uint32_t i;

	cli_table__column(table, "KIND", CLI_LEFT);
	cli_table__column(table, "COUNT", CLI_RIGHT);
	cli_table__column(table, "EACH", CLI_RIGHT);
	cli_table__column(table, "BETWEEN", CLI_RIGHT);
	cli_table__column(table, "TOTAL", CLI_RIGHT);
	cli_table__column(table, strcmp(whose, "machine") == 0 ? "OF MACHINE" : "OF PROGRAM",
			  CLI_RIGHT);
	for (i = 0; i < info->cost_count; i++) {
		/* None occurred, or no process lived to count them. */
		if (info->costs[i].count == 0)
			continue;
		add_row(table, info, i, base);
		rows++;
	}
	cli_table__print(table);
	return rows;
}

/* The sum's bounds for people, " (62.1 ms to 80.5 ms)". "": unknown. */
static const char *bounds(const struct pem_trace_info *info)
{
	double least = bound_of(info, false), most = bound_of(info, true);
	char from[32];

	if (most <= least)
		return "";
	snprintf(from, sizeof(from), "%s", duration(least));
	return cli_format(" (%s to %s)", from, duration(most));
}

/*
 * Is it unknown how often threads switched and had page faults? The recorder is told by the end of
 * a command that it ran, together with its CPU time.
 */
static bool lacks_switches(const struct report *r)
{
	return r->info->machine_cpu_ns == 0 && r->info->program_cpu_ns == 0 &&
	       (report__has(r, PEM_MEANS_SAMPLE) || has_kind(r->info, "kernel-log"));
}

/* What the sum of costs lacks. kinds: those that were not measured; "": none. */
static void print_lacking(const struct report *r, const char *kinds, char *text, size_t bytes)
{
	bool has_starts = has_kind(r->info, "process-start");

	snprintf(text, bytes,
		 "%s%s%s%s%s%sthe caches and the memory's bandwidth that recording takes.",
		 *kinds != '\0' ? "what could not be measured (" : "", kinds,
		 *kinds != '\0' ? "), " : "",
		 has_starts ? "" : "what loading pem into each process costs, ",
		 lacks_switches(r)
			 ? "what observing costs at switches of threads and at page faults, whose "
			   "number is not known, "
			 : "",
		 has_starts ? "what copying pem's memory costs at each fork, " : "");
}

/* Are events of pem's own in the tables: page faults, or calls of functions that have probes? */
static bool has_own_events(const struct report *r)
{
	size_t i;

	for (i = 0; i < r->event_count && has_kind(r->info, "process-start"); i++) {
		const struct report_event *e = &r->events[i];
		uint32_t source = e->event->source_kind;

		if (e->balance.delivered != 0 &&
		    (source == PEM_SOURCE_UPROBE || source == PEM_SOURCE_PROBE ||
		     strcmp(e->event->name, "OS::Mem::PageFault") == 0))
			return true;
	}
	return false;
}

void report_cost__print(const struct report *r)
{
	const struct pem_trace_info *info = r->info;
	double sum = sum_of(info);
	const char *whose;
	uint64_t base = base_of(info, &whose);
	unsigned int rows = print_kinds(info, base, whose);
	char text[1536], kinds[320], lacking[768];
	bool least = *unmeasured(r, kinds, sizeof(kinds)) != '\0';

	print_lacking(r, kinds, lacking, sizeof(lacking));
	if (info->recorder_cpu_ns == 0)
		snprintf(text, sizeof(text), "What the recorder itself used died with it.");
	else if (rows == 0)
		snprintf(text, sizeof(text),
			 "Nothing that was observed is known to have taken the program's time: "
			 "counters are read by the recorder, which itself used %s.",
			 cli_duration(info->recorder_cpu_ns));
	else if (base == 0)
		snprintf(text, sizeof(text),
			 "The recorder itself used %s. What share of the program's CPU time "
			 "observing took is told where pem ran the program. Not in the table: %s",
			 cli_duration(info->recorder_cpu_ns), lacking);
	else
		snprintf(text, sizeof(text),
			 "In all %s%s%s, %s%s of the %s's %s of CPU time; the recorder itself used "
			 "%s. Not in it: %s%s",
			 least ? "at least " : "", duration(sum), bounds(info),
			 least ? "at least " : "", cli_percent(sum / (double)base), whose,
			 cli_duration(base), cli_duration(info->recorder_cpu_ns), lacking,
			 report_detail__excess(r, sum * 100 / (double)base));
	cli_wrap(stdout, text, 0, 0, cli_width(stdout));
	if (info->internal_calls != 0) {
		snprintf(text, sizeof(text),
			 "pem itself made %s system calls in the programs. No table counts them.",
			 cli_count(info->internal_calls));
		cli_wrap(stdout, text, 0, 0, cli_width(stdout));
	}
	if (has_own_events(r))
		cli_wrap(stdout,
			 "Page faults that pem caused in the programs, and its own calls of "
			 "functions that have probes, are among theirs.",
			 0, 0, cli_width(stdout));
}

struct json_object *report_cost__json(const struct report *r)
{
	const struct pem_trace_info *info = r->info;
	struct json_object *object = json_object_new_object();
	struct json_object *kinds = json_object_new_array();
	struct json_object *lacking = json_object_new_array();
	double sum = sum_of(info);
	const char *whose;
	uint64_t base = base_of(info, &whose);
	uint32_t i;

	for (i = 0; i < info->cost_count; i++) {
		const struct pem_trace_cost *c = &info->costs[i];
		struct json_object *entry = json_object_new_object();

		cli_json__text(entry, "kind", c->kind);
		if (c->ns_each > 0)
			cli_json__real(entry, "ns_each", c->ns_each);
		else /* the cost was not measured */
			json_object_object_add(entry, "ns_each", NULL);
		if (info->cost_ranges[i].most_ns > 0) {
			cli_json__real(entry, "least_ns_each", info->cost_ranges[i].least_ns);
			cli_json__real(entry, "most_ns_each", info->cost_ranges[i].most_ns);
		}
		cli_json__count(entry, "count", c->count);
		cli_json__real(entry, "total_ns", c->ns_each * (double)c->count);
		json_object_array_add(kinds, entry);
		if (is_unmeasured(c))
			json_object_array_add(lacking, json_object_new_string(c->kind));
	}
	if (lacks_stacks(r))
		json_object_array_add(lacking, json_object_new_string(STACKS));
	json_object_object_add(object, "kinds", kinds);
	json_object_object_add(object, "unmeasured", lacking);
	cli_json__real(object, "total_ns", sum);
	if (bound_of(info, true) > 0) {
		cli_json__real(object, "least_total_ns", bound_of(info, false));
		cli_json__real(object, "most_total_ns", bound_of(info, true));
	}
	cli_json__count(object, "program_cpu_ns", info->program_cpu_ns);
	if (info->machine_cpu_ns != 0)
		cli_json__count(object, "machine_cpu_ns", info->machine_cpu_ns);
	cli_json__count(object, "recorder_cpu_ns", info->recorder_cpu_ns);
	cli_json__count(object, "internal_calls", info->internal_calls);
	if (base != 0) {
		cli_json__real(object, "share_percent", sum * 100 / (double)base);
		cli_json__text(object, "share_of", whose);
	} else {
		json_object_object_add(object, "share_percent", NULL);
	}
	return object;
}
