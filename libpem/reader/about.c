/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * about.c - what a trace says about itself: .pem/run, .pem/balance and .pem/names
 *
 * Not here: the model, the streams, and what .pem/code and .pem/data say.
 *
 * All three are lines of text that may come from anyone. An invalid line means that the trace is
 * damaged. An unknown key comes from a later version and is passed over. Numbers are plain
 * decimals, whatever the locale.
 */
#include "model_internal.h"
#include "reader.h"
#include "util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLOCK_HZ_MAX 1000000000000u

/*
 * Take the next line off *text, without its newline; NULL at the end. A last line without a newline
 * does not count.
 */
static char *next_line(char **text)
{
	char *line = *text, *newline = strchr(line, '\n');

	if (!newline)
		return NULL;
	*newline = '\0';
	*text = newline + 1;
	return line;
}

/* Split a line at its first tab or '=' (by); NULL if there is none. */
static char *split(char *line, char by)
{
	char *at = strchr(line, by);

	if (!at)
		return NULL;
	*at = '\0';
	return at + 1;
}

static bool parse_u64(const char *text, uint64_t *value)
{
	uint64_t v = 0;
	const char *c;

	for (c = text; *c >= '0' && *c <= '9'; c++) {
		if (v > (UINT64_MAX - (uint64_t)(*c - '0')) / 10)
			return false;
		v = v * 10 + (uint64_t)(*c - '0');
	}
	*value = v;
	return c > text && !*c;
}

static bool parse_u32(const char *text, uint32_t *value)
{
	uint64_t v;

	if (!parse_u64(text, &v) || v > UINT32_MAX)
		return false;
	*value = (uint32_t)v;
	return true;
}

static bool parse_i32(const char *text, int32_t *value)
{
	bool minus = text[0] == '-';
	uint64_t v;

	if (!parse_u64(text + minus, &v) || v > INT32_MAX)
		return false;
	*value = minus ? -(int32_t)v : (int32_t)v;
	return true;
}

/* Parse digits, which a point and more digits may follow. */
static bool parse_decimal(const char *text, double *value)
{
	const char *c = text;
	double unit = 1, v = 0;

	for (; *c >= '0' && *c <= '9'; c++)
		v = v * 10 + (*c - '0');
	if (c > text && *c == '.' && c[1]) {
		for (c++; *c >= '0' && *c <= '9'; c++)
			v += (*c - '0') * (unit /= 10);
	}
	*value = v;
	return c > text && !*c && c - text < 40;
}

/*
 * Copy as much of text as fits. Control characters become '?', because no terminal should see them.
 */
static bool copy_text(char *to, size_t bytes, const char *text)
{
	pem_copy_text(to, bytes, text);
	pem_printable(to);
	return true;
}

static bool parse_cost(struct pem_trace_info *info, char *value)
{
	char *ns = split(value, '\t'), *count = ns ? split(ns, '\t') : NULL;
	char *least = count ? split(count, '\t') : NULL, *most = least ? split(least, '\t') : NULL;
	struct pem_trace_cost_range *range = &info->cost_ranges[info->cost_count];
	struct pem_trace_cost *cost = &info->costs[info->cost_count];

	if (!count || info->cost_count == PEM_ARRAY_SIZE(info->costs) ||
	    !parse_decimal(ns, &cost->ns_each) || !parse_u64(count, &cost->count))
		return false;
	/* Older recorders tell no range. */
	if (least && (!most || !parse_decimal(least, &range->least_ns) ||
		      !parse_decimal(most, &range->most_ns)))
		return false;
	info->cost_count++;
	return copy_text(cost->kind, sizeof(cost->kind), value);
}

static bool parse_gap(struct pem_trace_info *info, char *value)
{
	char *reason = split(value, '\t');
	struct pem_trace_gap *gap = &info->gaps[info->gap_count];

	if (!reason || info->gap_count == PEM_ARRAY_SIZE(info->gaps))
		return false;
	info->gap_count++;
	return copy_text(gap->source, sizeof(gap->source), value) &&
	       copy_text(gap->reason, sizeof(gap->reason), reason);
}

static bool parse_reduced(struct pem_trace_info *info, char *value)
{
	char *detail = split(value, '\t'), *counted = detail ? split(detail, '\t') : NULL;
	struct pem_trace_reduced *reduced = &info->reduced[info->reduced_count];

	if (!counted || info->reduced_count == PEM_ARRAY_SIZE(info->reduced) ||
	    !parse_u32(detail, &reduced->detail) || reduced->detail > 2 ||
	    !parse_u64(counted, &reduced->counted))
		return false;
	info->reduced_count++;
	return copy_text(reduced->event, sizeof(reduced->event), value);
}

static bool parse_estimate(struct pem_trace_info *info, char *value)
{
	char *enabled = split(value, '\t'), *running = enabled ? split(enabled, '\t') : NULL;
	char *together = running ? split(running, '\t') : NULL;
	char *error = together ? split(together, '\t') : NULL;
	struct pem_trace_estimate *estimate = &info->estimates[info->estimate_count];
	uint64_t most = 0;

	if (!error || info->estimate_count == PEM_ARRAY_SIZE(info->estimates) ||
	    !parse_u64(enabled, &estimate->enabled_ns) ||
	    !parse_u64(running, &estimate->running_ns) || !estimate->running_ns ||
	    estimate->running_ns >= estimate->enabled_ns ||
	    !parse_u32(together, &estimate->together) ||
	    (strcmp(error, "unknown") && !parse_u64(error, &most)))
		return false;
	estimate->error = strcmp(error, "unknown") ? (double)most : NAN;
	info->estimate_count++;
	return copy_text(estimate->event, sizeof(estimate->event), value);
}

static bool parse_predicate(struct pem_trace_info *info, char *value)
{
	char *text = split(value, '\t');
	struct pem_trace_predicate *predicate = &info->predicates[info->predicate_count];

	if (!text || info->predicate_count == PEM_ARRAY_SIZE(info->predicates))
		return false;
	info->predicate_count++;
	return copy_text(predicate->event, sizeof(predicate->event), value) &&
	       copy_text(predicate->text, sizeof(predicate->text), text);
}

static bool parse_command_process(struct pem_trace_info *info, char *value)
{
	char *name = split(value, '\t');

	return name && parse_u32(value, &info->command_pid) &&
	       copy_text(info->command_name, sizeof(info->command_name), name);
}

/* Parse the member of info that key names. An unknown key returns true. */
static bool parse_member(struct pem_trace_info *info, const char *key, char *value)
{
	const struct {
		const char *key;
		uint64_t *to;
	} numbers[] = {
		{"start_time_ns", &info->start_time_ns},
		{"start_clock", &info->start_clock},
		{"duration_ns", &info->duration_ns},
		{"clock_hz", &info->clock_hz},
		{"clock_error_ns", &info->clock_error_ns},
		{"recorder_cpu_ns", &info->recorder_cpu_ns},
		{"program_cpu_ns", &info->program_cpu_ns},
		{"ran_ns", &info->ran_ns},
		{"machine_cpu_ns", &info->machine_cpu_ns},
		{"coarse_late_ns", &info->coarse_late_ns},
		{"internal_calls", &info->internal_calls},
	};
	size_t i;

	for (i = 0; i < PEM_ARRAY_SIZE(numbers); i++) {
		if (strcmp(key, numbers[i].key) == 0)
			return parse_u64(value, numbers[i].to);
	}
	if (strcmp(key, "command") == 0)
		return copy_text(info->command, sizeof(info->command), value);
	if (strcmp(key, "command_process") == 0)
		return parse_command_process(info, value);
	if (strcmp(key, "context_events") == 0)
		return copy_text(info->context_events, sizeof(info->context_events), value);
	if (strcmp(key, "host") == 0)
		return copy_text(info->host, sizeof(info->host), value);
	if (strcmp(key, "boot_id") == 0)
		return copy_text(info->boot_id, sizeof(info->boot_id), value);
	if (strcmp(key, "version") == 0)
		return copy_text(info->version, sizeof(info->version), value);
	if (strcmp(key, "snapshot") == 0)
		return copy_text(info->snapshot, sizeof(info->snapshot), value);
	if (strcmp(key, "counters") == 0)
		return copy_text(info->counters, sizeof(info->counters), value);
	if (strcmp(key, "exit_status") == 0)
		return parse_i32(value, &info->exit_status);
	if (strcmp(key, "complete") == 0)
		return parse_u32(value, &info->complete) && info->complete <= 1;
	if (strcmp(key, "cost") == 0)
		return parse_cost(info, value);
	if (strcmp(key, "reduced") == 0)
		return parse_reduced(info, value);
	if (strcmp(key, "estimate") == 0)
		return parse_estimate(info, value);
	if (strcmp(key, "predicate") == 0)
		return parse_predicate(info, value);
	if (strcmp(key, "predicates_more") == 0)
		return parse_u32(value, &info->predicates_more);
	if (strcmp(key, "gap") == 0)
		return parse_gap(info, value);
	return true;
}

/*
 * Read the whole file as one string, which the caller frees. NULL with errno, and with error unless
 * errno is ENOENT.
 */
static char *read_about(int directory_fd, const char *name, struct pem_error *error)
{
	size_t bytes;
	char *text = pem_read_file(directory_fd, name, PEM_ABOUT_BYTES_MAX, &bytes);

	if (!text) {
		if (errno != ENOENT)
			pem_error__set(error, -errno, ".pem/%s can't be read: %s", name,
				       strerror(errno));
		return NULL;
	}
	if (strlen(text) == bytes)
		return text;
	free(text);
	pem_error__set(error, -EINVAL, ".pem/%s is no text: the trace is damaged", name);
	errno = EINVAL;
	return NULL;
}

int pem_about__read_run(int directory_fd, struct pem_trace_info *info, struct pem_error *error)
{
	char *text = read_about(directory_fd, "run", error), *at = text, *line, *value;
	unsigned number = 0;
	int rc = 0;

	if (!text)
		return errno == ENOENT ? pem_error__set(error, -EINVAL, "'.pem/run' is missing")
				       : -errno;
	info->exit_status = -1;
	while (!rc && (line = next_line(&at))) {
		number++;
		value = split(line, '=');
		if (!value || !parse_member(info, line, value))
			rc = pem_error__set(error, -EINVAL,
					    ".pem/run, line %u: '%.60s' has no valid value: the "
					    "trace is damaged",
					    number, line);
	}
	if (!rc && (info->clock_hz == 0 || info->clock_hz > CLOCK_HZ_MAX))
		rc = pem_error__set(error, -EINVAL,
				    ".pem/run: without a valid clock_hz no record has a time: the "
				    "trace is damaged");
	free(text);
	return rc;
}

static void add_balance(struct pem_balance *sum, const struct pem_balance *b)
{
	sum->produced += b->produced;
	sum->delivered += b->delivered;
	sum->discarded += b->discarded;
	sum->overwritten += b->overwritten;
}

static bool parse_producer(struct pem_balances *b, size_t *capacity, char *line)
{
	char *pid = split(line, '\t'), *name = pid ? split(pid, '\t') : NULL;
	char *start = name ? split(name, '\t') : NULL; /* not in older traces */
	struct pem_trace_producer *larger, *p;

	if (!name)
		return false;
	if (b->producer_count == *capacity) {
		*capacity = *capacity ? *capacity * 2 : 16;
		larger = realloc(b->producers, *capacity * sizeof(*larger));
		if (!larger)
			return false;
		b->producers = larger;
	}
	p = &b->producers[b->producer_count];
	memset(p, 0, sizeof(*p));
	if (!parse_u32(pid, &p->pid) || (start && !parse_u64(start, &p->start_clock)))
		return false;
	b->producer_count++;
	return copy_text(p->name, sizeof(p->name), name);
}

/* Return the index of the event whose id is these 8 hexadecimal digits, or -1. */
static ssize_t find_event(const struct pem_model *model, const char *digits)
{
	uint32_t id = 0;
	unsigned i;
	char c;

	for (i = 0; i < 8; i++) {
		c = digits[i];
		if (c >= '0' && c <= '9')
			id = id << 4 | (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			id = id << 4 | (uint32_t)(c - 'a' + 10);
		else
			return -1;
	}
	return digits[8] ? -1 : pem_model__index(model, id);
}

static bool parse_event(struct pem_balances *b, const struct pem_model *model, char *line)
{
	char *id = split(line, '\t'), *produced = id ? split(id, '\t') : NULL;
	char *delivered = produced ? split(produced, '\t') : NULL;
	char *discarded = delivered ? split(delivered, '\t') : NULL;
	char *overwritten = discarded ? split(discarded, '\t') : NULL;
	struct pem_balance balance;
	ssize_t i;

	if (!overwritten || !b->producer_count || !parse_u64(produced, &balance.produced) ||
	    !parse_u64(delivered, &balance.delivered) ||
	    !parse_u64(discarded, &balance.discarded) ||
	    !parse_u64(overwritten, &balance.overwritten))
		return false;
	/* Id 0: events that were lost where nothing could tell which events they were. */
	if (strcmp(id, "00000000") != 0) {
		i = find_event(model, id);
		if (i < 0)
			return false;
		add_balance(&b->events[i], &balance);
	}
	add_balance(&b->producers[b->producer_count - 1].balance, &balance);
	add_balance(&b->total, &balance);
	return true;
}

void pem_balances__free(struct pem_balances *balances)
{
	free(balances->producers);
	free(balances->events);
	memset(balances, 0, sizeof(*balances));
}

int pem_about__read_balance(int directory_fd, const struct pem_model *model,
			    struct pem_balances *balances, struct pem_error *error)
{
	char *text = read_about(directory_fd, "balance", error), *at = text, *line;
	struct pem_balances b = {0};
	unsigned number = 0;
	size_t capacity = 0;
	int rc = 0;

	if (!text)
		return errno == ENOENT ? 0 : -errno;
	b.events = calloc(pem_model__count(model) + 1, sizeof(*b.events));
	if (!b.events)
		rc = -ENOMEM;
	while (!rc && !b.complete && (line = next_line(&at))) {
		number++;
		if (strcmp(line, "end") == 0)
			b.complete = true;
		else if (strncmp(line, "producer\t", 9) == 0
				 ? !parse_producer(&b, &capacity, line)
				 : strncmp(line, "event\t", 6) != 0 ||
					   !parse_event(&b, model, line))
			rc = pem_error__set(error, -EINVAL,
					    ".pem/balance, line %u is no balance of a producer and "
					    "an event of this trace: the trace is damaged",
					    number);
	}
	free(text);
	if (!rc && b.complete)
		*balances = b;
	else
		pem_balances__free(&b);
	return rc;
}

#define PROCESSES_MAX (1u << 22) /* as many as Linux has numbers for */

/* 'PID<tab>NAME' is a process, 'PID/TID<tab>NAME' one of its threads. */
static bool parse_name(char *line, struct pem_process_name *entry)
{
	char *name = split(line, '\t'), *thread = split(line, '/');

	entry->tid = 0;
	if (!name || !parse_u32(line, &entry->pid))
		return false;
	if (thread && (!parse_u32(thread, &entry->tid) || !entry->tid))
		return false;
	copy_text(entry->name, sizeof(entry->name), name);
	return true;
}

int pem_about__read_names(int directory_fd, struct pem_process_names *names,
			  struct pem_error *error)
{
	char *text = read_about(directory_fd, "names", error), *at = text, *line;
	struct pem_process_names n = {0};
	struct pem_process_name *larger;
	unsigned number = 0;
	size_t capacity = 0;
	int rc = 0;

	if (!text)
		return errno == ENOENT ? 0 : -errno;
	while (!rc && (line = next_line(&at))) {
		number++;
		if (n.count == capacity) {
			capacity = capacity ? capacity * 2 : 256;
			larger = realloc(n.names, capacity * sizeof(*larger));
			if (!larger) {
				rc = -ENOMEM;
				break;
			}
			n.names = larger;
		}
		if (n.count == PROCESSES_MAX || !parse_name(line, &n.names[n.count]))
			rc = pem_error__set(error, -EINVAL,
					    ".pem/names, line %u names no process: the trace is "
					    "damaged",
					    number);
		n.count += !rc;
	}
	free(text);
	if (rc)
		free(n.names);
	else
		*names = n;
	return rc;
}
