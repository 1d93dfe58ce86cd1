// SPDX-License-Identifier: MIT
/*
 * path.c - the critical path of the command: what its end had to wait for, thread by thread, and
 * the sentence that follows from it
 *
 * Each time is in one row, so the rows add up to the path (pem/context.h).
 *
 * Not here: how the path is found (libpem/context/path.c).
 */
#include "grow.h"
#include "hash.h"
#include "path.h"
#include "times.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 8u /* unless the user asks for them */
/* The sentence has at most three groups, each of this share of the path. */
#define SENTENCE_GROUPS 3u
#define SENTENCE_LEAST 0.05
/* There is a sentence if so much of the path is known. */
#define SENTENCE_KNOWN 0.6
/* Without a path: a thread that ran for this share of the recording. */
#define RUNNER_SHARE 0.6

/* Parts of one thread and state; of waits, those of one row of the waits. */
struct row {
	const struct pem_pass_thread *thread;
	enum pem_thread_state state;
	const struct report_wait *wait; /* NULL: it is none */
	uint64_t count, total_ns, most_ns;
};

/* Rows of one state and reason, of threads of one name: first threads of processes, or others. */
struct group {
	const struct row *first; /* the longest */
	uint64_t total_ns;
	uint32_t threads;
	bool is_of_one_object;
};

/* While groups are made: numbers of groups by their keys, and threads that a group has. */
struct grouping {
	struct pem_number_map groups, members;
};

struct report_path {
	struct row *rows; /* the longest first */
	size_t count, capacity;
	struct group *groups; /* the longest first */
	size_t group_count, group_capacity;
	uint64_t begin_ns, end_ns; /* of the path */
	uint64_t known_ns; /* time of which it is known what it went to */
	uint64_t forgotten_ns; /* time whose parts the pass forgot */
};

/* --- collecting --- */

static uint64_t key_of(const struct pem_path_part *part)
{
	if (part->state == PEM_THREAD_BLOCKED)
		return part->user << 3 | PEM_THREAD_BLOCKED;
	return (uint64_t)part->thread->number << 3 | part->state;
}

static int add(struct report_path *path, struct pem_number_map *at, const struct report_times *t,
	       const struct pem_path_part *part)
{
	uint32_t *index = pem_number_map__at(at, key_of(part));
	uint64_t ns = part->end_ns - part->begin_ns;
	struct row *row;

	if (index == NULL)
		return -ENOMEM;
	if (*index == UINT32_MAX) {
		if (pem_grow(&path->rows, sizeof(*path->rows), path->count + 1, &path->capacity) <
		    0)
			return -ENOMEM;
		path->rows[path->count] =
			(struct row){.thread = part->thread,
				     .state = part->state,
				     .wait = part->state == PEM_THREAD_BLOCKED && part->user != 0
						     ? &t->waits[part->user - 1]
						     : NULL};
		*index = (uint32_t)path->count++;
	}
	row = &path->rows[*index];
	row->count++;
	row->total_ns += ns;
	if (ns > row->most_ns)
		row->most_ns = ns;
	if (pem_path_part__is_known(part))
		path->known_ns += ns;
	if (part->is_forgotten)
		path->forgotten_ns += ns;
	return 0;
}

static int longer(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	if (x->thread->number != y->thread->number)
		return x->thread->number < y->thread->number ? -1 : 1;
	return (int)x->state - (int)y->state;
}

static bool is_first_thread(const struct pem_pass_thread *thread)
{
	return thread->process != NULL && thread->process->pid == thread->tid;
}

static uint64_t group_key(const struct row *row)
{
	const struct pem_pass_process *process = row->thread->process;
	uint64_t key = pem_hash__text(PEM_HASH_START, process != NULL ? process->name : "");

	key = report_mix(pem_hash__text(key, report_times__own_name(row->thread)), row->state);
	key = report_mix(key, is_first_thread(row->thread));
	if (row->wait != NULL)
		key = report_mix(report_mix(key, row->wait->interval), row->wait->woken_by);
	return key;
}

static bool is_on_one_object(const struct report_wait *a, const struct report_wait *b)
{
	return a == b || (a != NULL && b != NULL && a->file == b->file && a->lock == b->lock &&
			  a->waker == b->waker);
}

static int larger(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return longer(x->first, y->first);
}

/* A thread may have several rows of a group: waits on different objects, or for other wakers. */
static int add_to_group(struct report_path *path, struct grouping *at, const struct row *row)
{
	uint32_t *index = pem_number_map__at(&at->groups, group_key(row)), *member;
	struct group *group;

	if (index == NULL)
		return -ENOMEM;
	if (*index == UINT32_MAX) {
		if (pem_grow(&path->groups, sizeof(*path->groups), path->group_count + 1,
			     &path->group_capacity) < 0)
			return -ENOMEM;
		path->groups[path->group_count] =
			(struct group){.first = row, .is_of_one_object = true};
		*index = (uint32_t)path->group_count++;
	}
	member = pem_number_map__at(&at->members, (uint64_t)*index << 32 | row->thread->number);
	if (member == NULL)
		return -ENOMEM;
	group = &path->groups[*index];
	group->total_ns += row->total_ns;
	group->threads += *member == UINT32_MAX;
	*member = 0;
	group->is_of_one_object =
		group->is_of_one_object && is_on_one_object(row->wait, group->first->wait);
	return 0;
}

static int make_groups(struct report_path *path)
{
	struct grouping at = {0};
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < path->count; i++)
		rc = add_to_group(path, &at, &path->rows[i]);
	pem_number_map__free(&at.groups);
	pem_number_map__free(&at.members);
	if (rc == 0 && path->group_count != 0)
		qsort(path->groups, path->group_count, sizeof(*path->groups), larger);
	return rc;
}

int report_path__find(struct report_times *t)
{
	const struct pem_path_part *part = pem_pass__command_path(t->pass);
	struct report_path *path = calloc(1, sizeof(*path));
	struct pem_number_map at = {0};
	int rc = path != NULL ? 0 : -ENOMEM;

	t->path = path;
	if (rc == 0 && part != NULL)
		path->end_ns = part->end_ns;
	for (; rc == 0 && part != NULL; part = part->before) {
		path->begin_ns = part->begin_ns;
		rc = add(path, &at, t, part);
	}
	pem_number_map__free(&at);
	if (rc == 0 && path->count != 0)
		qsort(path->rows, path->count, sizeof(*path->rows), longer);
	return rc == 0 ? make_groups(path) : rc;
}

void report_path__free(struct report_path *path)
{
	if (path == NULL)
		return;
	free(path->rows);
	free(path->groups);
	free(path);
}

/* --- words --- */

static const char *what_words(const struct report_times *t, const struct row *row)
{
	switch (row->state) {
	case PEM_THREAD_RUNNING:
		return "ran";
	case PEM_THREAD_RUNNABLE:
		return "waited for a CPU";
	case PEM_THREAD_BLOCKED:
		if (row->wait != NULL && row->wait->interval != NO_INTERVAL)
			return cli_format("waited in %.60s", report_waits__reason(t, row->wait));
		return "waited";
	default:
		return "unknown";
	}
}

static double share_of(const struct report_path *path, uint64_t ns)
{
	return path->end_ns > path->begin_ns ? (double)ns / (double)(path->end_ns - path->begin_ns)
					     : 0;
}

static const char *who_words(const struct report_times *t, const struct group *group)
{
	const struct pem_pass_thread *thread = group->first->thread;

	if (group->threads == 1)
		return report_times__thread_words(t, thread->number);
	return cli_format(
		"%.40s (%.20s %s)",
		thread->process != NULL && thread->process->name[0] != '\0' ? thread->process->name
									    : "?",
		cli_count(group->threads), is_first_thread(thread) ? "processes" : "threads");
}

/* A group, in a sentence. of: of how much its time is, or "". */
static const char *group_words(const struct report_times *t, const struct group *group,
			       const char *who, const char *of)
{
	const struct report_wait *wait = group->first->wait;
	const char *took = cli_format("%.30s%.40s", cli_sum__duration(group->total_ns), of);
	const char *what = "", *until = "", *on = "";

	if (group->first->state == PEM_THREAD_RUNNING)
		return cli_format("%.100s%sran %.70s", who, *who != '\0' ? " " : "", took);
	if (group->first->state == PEM_THREAD_RUNNABLE)
		return cli_format("%.100s%swaited %.70s for a CPU", who, *who != '\0' ? " " : "",
				  took);
	if (wait != NULL && wait->interval != NO_INTERVAL)
		what = report_waits__reason(t, wait);
	if (wait != NULL && (wait->woken_by != PEM_WOKEN_THREAD || group->is_of_one_object))
		until = report_waits__waker(t, wait);
	if (wait != NULL && group->is_of_one_object)
		on = report_waits__object(t, wait);
	return cli_format("%.100s%swaited %.70s%s%.60s%s%.140s%s%.90s", who,
			  *who != '\0' ? " " : "", took, *what != '\0' ? " in " : "", what,
			  *on != '\0' ? ", on " : "", on, *until != '\0' ? ", until " : "", until);
}

/* Of a recording without a path: the thread that ran for most of the time. */
static const char *runner_words(const struct report *r)
{
	const struct report_times *t = r->times;
	const struct report_thread_time *best = NULL;
	uint64_t ran_ns = report__ran_ns(r), queued_ns;
	const char *words;
	size_t i;

	for (i = 0; i < t->thread_count; i++)
		if (t->threads[i].thread != NULL &&
		    (best == NULL ||
		     t->threads[i].ns[PEM_THREAD_RUNNING] > best->ns[PEM_THREAD_RUNNING]))
			best = &t->threads[i];
	if (best == NULL || ran_ns == 0 ||
	    (double)best->ns[PEM_THREAD_RUNNING] < RUNNER_SHARE * (double)ran_ns)
		return "";
	queued_ns = best->ns[PEM_THREAD_RUNNABLE];
	words = cli_format("%.90s ran %.30s of %.30s",
			   report_times__thread_words(t, best->thread->number),
			   cli_sum__duration(best->ns[PEM_THREAD_RUNNING]), cli_duration(ran_ns));
	if ((double)queued_ns < SENTENCE_LEAST * (double)ran_ns)
		return words;
	return cli_format("%.200s, waited %.30s for a CPU", words, cli_sum__duration(queued_ns));
}

const char *report_path__sentence(const struct report *r)
{
	static char words[1024];
	const struct report_times *t = r->times;
	const struct report_path *path = t->path;
	const char *who, *of;
	char before[128] = "";
	size_t i, used = 0;

	if (path->count == 0)
		return runner_words(r);
	words[0] = '\0';
	if (share_of(path, path->known_ns) < SENTENCE_KNOWN)
		return words;
	of = cli_format(" of %.30s", cli_duration(path->end_ns - path->begin_ns));
	for (i = 0; i < path->group_count && i < SENTENCE_GROUPS; i++) {
		if (i != 0 && share_of(path, path->groups[i].total_ns) < SENTENCE_LEAST)
			break;
		if (path->groups[i].first->state == PEM_THREAD_UNKNOWN)
			continue;
		who = who_words(t, &path->groups[i]);
		used += (size_t)snprintf(
			words + used, sizeof(words) - used, "%s%.330s", used ? ", " : "",
			group_words(t, &path->groups[i], strcmp(who, before) != 0 ? who : "",
				    used ? "" : of));
		snprintf(before, sizeof(before), "%s", who);
	}
	return words;
}

/* Print why there is no path. */
static void explain_no_path(const struct report *r)
{
	const struct pem_trace_info *info = r->info;

	putchar('\n');
	if (r->times->thread_count == 0)
		cli_wrap(stdout, "No critical path: what threads did was not recorded", 0, 0,
			 cli_width(stdout));
	else if (info->command_pid == 0)
		cli_wrap(stdout,
			 "No critical path: it leads from the end of a command or of -p's process, "
			 "and neither was recorded",
			 0, 0, cli_width(stdout));
	else
		cli_wrap(stdout,
			 cli_format("No critical path: the trace has no end of %.64s, from which "
				    "it would lead back; --by state has what each thread did",
				    info->command_name),
			 0, 0, cli_width(stdout));
}

void report_path__print(const struct report *r, enum report_by by)
{
	const struct report_times *t = r->times;
	const struct report_path *path = t->path;
	size_t i, most = by == REPORT_PATH ? SIZE_MAX : ROWS_MOST;
	struct cli_table *table;

	if (by != REPORT_PATH && by != REPORT_ALL)
		return;
	if (path->count == 0) {
		if (by == REPORT_PATH)
			explain_no_path(r);
		return;
	}
	table = cli_table__new(stdout);
	cli_table__column(table, "SHARE", CLI_RIGHT);
	cli_table__column(table, "TIME", CLI_RIGHT);
	cli_table__column(table, "TIMES", CLI_RIGHT);
	cli_table__column(table, "THREAD", CLI_CUT);
	cli_table__column(table, "WHAT", CLI_CUT);
	cli_table__column(table, "UNTIL", CLI_CUT);
	cli_table__column(table, "ON", CLI_CUT);
	for (i = 0; i < path->count && i < most; i++) {
		const struct row *row = &path->rows[i];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_format("%.1f %%", 100 * share_of(path, row->total_ns)));
		cli_table__cell(table, cli_sum__duration(row->total_ns));
		cli_table__cell(table, cli_count(row->count));
		cli_table__cell(table, report_times__thread_words(t, row->thread->number));
		cli_table__cell(table, what_words(t, row));
		cli_table__cell(table, row->wait != NULL ? report_waits__waker(t, row->wait) : "");
		cli_table__cell(table, row->wait != NULL ? report_waits__object(t, row->wait) : "");
	}
	report__heading(
		cli_format("Critical path of %.30s", cli_duration(path->end_ns - path->begin_ns)));
	cli_table__print(table);
	if (i < path->count)
		printf("and %s more: pem report --by path\n", cli_count(path->count - i));
	if (path->forgotten_ns != 0)
		cli_wrap(stdout,
			 cli_format("Of its beginning %.30s are unknown: the path had more parts "
				    "than this report keeps",
				    cli_duration(path->forgotten_ns)),
			 0, 0, cli_width(stdout));
}

/* --- JSON --- */

void report_path__json(const struct report *r, struct cli_json_stream *json)
{
	static const char *const states[PEM_THREAD_STATES] = {
		[PEM_THREAD_UNKNOWN] = "unknown",   [PEM_THREAD_RUNNING] = "running",
		[PEM_THREAD_RUNNABLE] = "runnable", [PEM_THREAD_BLOCKED] = "blocked",
		[PEM_THREAD_ENDED] = "ended",
	};
	const struct report_times *t = r->times;
	const struct report_path *path = t->path;
	size_t i;

	cli_json_stream__open(json, "critical_path", '{');
	cli_json_stream__add(json, "begin_ns", json_object_new_uint64(path->begin_ns));
	cli_json_stream__add(json, "end_ns", json_object_new_uint64(path->end_ns));
	cli_json_stream__add(json, "known_ns", json_object_new_uint64(path->known_ns));
	cli_json_stream__add(json, "forgotten_ns", json_object_new_uint64(path->forgotten_ns));
	cli_json_stream__open(json, "rows", '[');
	for (i = 0; i < path->count; i++) {
		const struct row *row = &path->rows[i];
		struct json_object *entry = json_object_new_object();

		if (row->thread->process != NULL)
			cli_json__count(entry, "pid", row->thread->process->pid);
		cli_json__count(entry, "tid", row->thread->tid);
		cli_json__text(entry, "state", states[row->state]);
		if (row->wait != NULL)
			report_waits__describe(t, row->wait, entry);
		cli_json__count(entry, "count", row->count);
		cli_json__count(entry, "total_ns", row->total_ns);
		cli_json__count(entry, "longest_ns", row->most_ns);
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
	cli_json_stream__close(json, '}');
}
