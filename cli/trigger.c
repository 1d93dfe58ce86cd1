// SPDX-License-Identifier: MIT
/*
 * trigger.c - triggers of a flight recorder: each is a statistic that is checked (trigger.h)
 *
 * A trigger on an event with a predicate fires when the count of events that pass is not zero any
 * more. It is checked with each tick, and the program pays only for counting. Thresholds are judged
 * once a second, over this second. Triggers that do not fit into the recorder's session, which has
 * at most PEM_FURTHER_HANDLES_MAX that differ, get further sessions.
 */
#include "record.h"
#include "trigger.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull

/* --- reading them --- */

static const struct {
	const char *name;
	enum cli_trigger_kind kind;
} functions[] = {
	{"rate", CLI_TRIGGER_RATE}, {"sum", CLI_TRIGGER_SUM},   {"min", CLI_TRIGGER_MIN},
	{"max", CLI_TRIGGER_MAX},   {"mean", CLI_TRIGGER_MEAN},
};
#define FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

/* Copy a part of a text without the spaces around it. False: it is empty or too long. */
static bool copy_part(char *to, size_t bytes, const char *from, size_t length)
{
	while (length != 0 && *from == ' ')
		from++, length--;
	while (length != 0 && from[length - 1] == ' ')
		length--;
	if (length == 0 || length >= bytes)
		return false;
	memcpy(to, from, length);
	to[length] = '\0';
	return true;
}

/* Parse EVENT or EVENT.FIELD, both with or without " where PREDICATE". */
static bool parse_subject(struct cli_trigger *t, const char *text, size_t length, bool with_field)
{
	const char *where = memmem(text, length, " where ", 7), *dot;
	size_t n = where != NULL ? (size_t)(where - text) : length;

	if (where != NULL &&
	    !copy_part(t->predicate, sizeof(t->predicate), where + 7, length - n - 7))
		return false;
	dot = with_field ? memrchr(text, '.', n) : NULL;
	if (with_field && (dot == NULL || !copy_part(t->field, sizeof(t->field), dot + 1,
						     n - (size_t)(dot + 1 - text))))
		return false;
	return copy_part(t->event, sizeof(t->event), text, dot != NULL ? (size_t)(dot - text) : n);
}

static bool parse_threshold(struct cli_trigger *t, const char *text)
{
	char *end;

	while (*text == ' ')
		text++;
	if (*text++ != '>')
		return false;
	while (*text == ' ')
		text++;
	t->threshold = strtod(text, &end);
	while (*end == ' ')
		end++;
	return end != text && *end == '\0';
}

static bool parse(struct cli_trigger *t, const char *text)
{
	size_t i, n;

	t->text = text;
	for (i = 0; i < FUNCTIONS; i++) {
		const char *close = strrchr(text, ')');

		n = strlen(functions[i].name);
		if (strncmp(text, functions[i].name, n) != 0 || text[n] != '(')
			continue;
		t->kind = functions[i].kind;
		return close != NULL && parse_threshold(t, close + 1) &&
		       parse_subject(t, text + n + 1, (size_t)(close - text) - n - 1,
				     t->kind != CLI_TRIGGER_RATE);
	}
	t->kind = CLI_TRIGGER_EVENT;
	return parse_subject(t, text, strlen(text), false) && strpbrk(t->event, "<>=()") == NULL;
}

int cli_triggers__add(struct cli_triggers *t, const struct cli_verb *verb, const char *text)
{
	if (t->count == CLI_TRIGGERS_MAX)
		return cli_usage_error(verb, "more than %d triggers", CLI_TRIGGERS_MAX);
	if (!parse(&t->triggers[t->count], text))
		return cli_usage_error(
			verb,
			"--trigger '%s' is none of 'EVENT', 'EVENT where PREDICATE', "
			"'rate(EVENT) > N', 'mean(EVENT.FIELD) > N', and sum, min, max",
			text);
	t->count++;
	return CLI_DONE;
}

/* --- counting --- */

static volatile sig_atomic_t signals;

static void handle(int number)
{
	(void)number;
	signals++;
}

/* Register a trigger in one session. Returns 0, or -errno with error. */
static int register_in(struct pem_session *session, struct cli_trigger *trigger,
		       struct pem_error *error)
{
	const char *pattern = trigger->event;
	struct pem_event_set *set = cli_event_set__new(session, &pattern, 1, error);
	int rc = set == NULL ? -errno : 0;

	if (rc == 0 && *trigger->predicate != '\0')
		rc = pem_event_set__where(set, trigger->predicate, error);
	if (rc == 0) {
		trigger->statistics = pem_session__register_statistics(
			session, set, NULL, *trigger->field != '\0' ? trigger->field : NULL, error);
		rc = trigger->statistics == NULL ? -errno : 0;
	}
	if (rc == 0) {
		trigger->count = pem_event_set__count(set);
		trigger->has_stubs = cli_event_set__has_stubs(set);
		trigger->values = calloc(trigger->count, sizeof(*trigger->values));
		rc = trigger->values == NULL ? -ENOMEM : 0;
		if (rc == 0 && trigger->count != 0)
			trigger->values[0].size = sizeof(trigger->values[0]);
	}
	pem_event_set__free(set);
	return rc;
}

static int register_one(struct cli_triggers *t, struct cli_trigger *trigger)
{
	struct pem_error error = {{0}};
	int i, rc = -ENOSPC;

	for (i = 0; i < CLI_TRIGGER_SESSIONS && rc == -ENOSPC; i++) {
		if (t->sessions[i] == NULL) {
			t->sessions[i] = pem_session__open(&t->options, &error);
			if (t->sessions[i] == NULL)
				return cli_error(cli_status_of_errno(errno), "%s", error.text);
			rc = cli_specs__load(t->sessions[i], NULL, NULL, NULL, true);
			if (rc != CLI_DONE)
				return rc;
		}
		rc = register_in(t->sessions[i], trigger, &error);
	}
	if (rc < 0)
		return cli_error(CLI_WRONG_INPUT, "--trigger '%s': %s", trigger->text,
				 *error.text != '\0' ? error.text : strerror(-rc));
	t->has_stubs |= trigger->has_stubs;
	pem_statistics__enable(trigger->statistics);
	return CLI_DONE;
}

/*
 * Find how many bytes the snapshots beside a trace may have; bytes are theirs now. The limit only
 * grows: another user who fills the disk later has no snapshots removed, nor does one who filled it
 * before the recording and has removed the files since.
 */
static void raise_limit(struct cli_triggers *t, uint64_t bytes)
{
	struct statvfs disk;
	uint64_t most = UINT64_MAX;

	if (statvfs(cli_format("%s/..", t->trace), &disk) == 0)
		most = ((uint64_t)disk.f_bavail * disk.f_frsize + bytes) / CLI_SNAPSHOTS_SHARE;
	if (most > t->most_bytes)
		t->most_bytes = most;
}

int cli_triggers__start(struct cli_triggers *t, struct pem_session *session, const char *trace,
			bool quiet)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
	int status = CLI_DONE;
	size_t i;

	t->sessions[0] = session;
	t->trace = trace;
	t->quiet = quiet;
	raise_limit(t, 0);
	t->options = (struct pem_session_options){
		.size = sizeof(t->options), .log = cli_log, .progress = 1, .log_arg = &t->quiet};
	sigemptyset(&action.sa_mask);
	sigaction(SIGUSR2, &action, NULL);
	t->kept = calloc(t->keep + 1, sizeof(*t->kept));
	if (t->kept == NULL)
		return cli_error(CLI_FAILED, "no memory");
	for (i = 0; i < t->count && status == CLI_DONE; i++)
		status = register_one(t, &t->triggers[i]);
	t->judged_ns = cli_now_ns();
	return status;
}

int cli_triggers__attach(struct cli_triggers *t, pid_t command, struct cli_attach *attach)
{
	struct pem_context who = {0};
	struct pem_error error = {{0}};
	int i, status;

	who.pid = (uint32_t)command;
	who.follow = !attach->no_follow;
	for (i = 1; i < CLI_TRIGGER_SESSIONS && t->sessions[i] != NULL; i++) {
		if (command != 0) {
			/* A process that has ended fires no trigger any more. */
			if (pem_session__attach(t->sessions[i], &who, &error) < 0 && !t->quiet)
				cli_say("triggers with predicates do not watch: %s", error.text);
			continue;
		}
		status = cli_attach__start(attach, t->sessions[i]);
		if (status != CLI_DONE)
			return status;
	}
	return CLI_DONE;
}

/* --- writing --- */

/* Remove the oldest snapshot, unless something in its folder was changed since it was written. */
static void remove_oldest(struct cli_triggers *t)
{
	struct cli_snapshot_kept *oldest = &t->kept[0];
	int rc = cli_folder__remove_same(oldest->path, &oldest->folder);

	if (rc == 0 && !t->quiet)
		cli_say("removed %s: the last %s snapshots are kept, in at most a tenth of the "
			"most space that was free so far; --snapshots sets their number",
			oldest->path, cli_count(t->keep));
	else if (rc < 0 && rc != -ENOENT && !t->quiet) /* who renamed it knows that it stays */
		cli_say("%s stays and no longer counts as a snapshot: %s", oldest->path,
			rc == -ESTALE ? "something in it was changed, or another folder has its "
					"name"
				      : strerror(-rc));
	free(oldest->path);
	memmove(t->kept, t->kept + 1, --t->kept_count * sizeof(*t->kept));
}

/*
 * Remove the oldest snapshots until their number and size, and further bytes, are within the
 * limits. The newest always stays.
 */
static void keep_limits(struct cli_triggers *t, uint64_t further_bytes)
{
	uint64_t bytes;
	size_t i;

	while (t->kept_count > 1) {
		for (bytes = 0, i = 0; i < t->kept_count; i++)
			bytes += t->kept[i].folder.bytes;
		raise_limit(t, bytes);
		if (t->kept_count <= t->keep && bytes + further_bytes <= t->most_bytes)
			return;
		remove_oldest(t);
	}
}

/* Remember a snapshot that was written. Older ones may be removed for it. */
static void keep(struct cli_triggers *t, const char *path, const struct cli_folder *made)
{
	struct cli_snapshot_kept *newest = &t->kept[t->kept_count];
	int rc;

	newest->folder = *made;
	newest->path = strdup(path);
	rc = newest->path == NULL ? -ENOMEM : cli_folder__measure(path, &newest->folder);
	if (rc < 0) {
		if (!t->quiet)
			cli_say("%s stays and does not count as a snapshot: %s", path,
				rc == -ESTALE ? "another folder has its name" : strerror(-rc));
		free(newest->path);
		return;
	}
	t->kept_count++;
	if (newest->folder.bytes > t->largest_bytes)
		t->largest_bytes = newest->folder.bytes;
	keep_limits(t, 0);
}

/*
 * Make a folder with the next free number. No number is used twice, even if folders were removed.
 */
static int make_folder(struct cli_triggers *t, char *path, size_t bytes, struct cli_folder *folder)
{
	int rc;

	do
		snprintf(path, bytes, "%s-snapshot-%u", t->trace, ++t->number);
	while ((rc = mkdir(path, 0777)) < 0 && errno == EEXIST);
	rc = rc < 0 ? -errno : cli_folder__made(path, folder);
	return rc == 0 ? CLI_DONE
		       : cli_error(CLI_FAILED, "no snapshot: cannot make %s: %s", path,
				   strerror(-rc));
}

static void write_snapshot(struct cli_triggers *t, const char *cause)
{
	struct pem_error error = {{0}};
	struct cli_folder folder;
	char path[4096];

	if (make_folder(t, path, sizeof(path), &folder) != CLI_DONE)
		return;
	keep_limits(t, t->largest_bytes);
	if (pem_session__snapshot(t->sessions[0], path, cause, &error) < 0) {
		cli_error(0, "%s", error.text);
		cli_folder__remove(path, &folder);
		return;
	}
	keep(t, path, &folder);
	if (!t->quiet)
		cli_say("snapshot in %s: %s", path, cause);
}

static const char *held_back_words(const struct cli_triggers *t)
{
	return t->held_back == 1 ? "1 trigger" : cli_format("%s triggers", cli_count(t->held_back));
}

/* A trigger fired. Write at most one snapshot in an interval. */
static void fire(struct cli_triggers *t, const char *cause)
{
	uint64_t now = cli_now_ns();

	if (t->written_ns != 0 && now - t->written_ns < t->interval_s * SECOND_NS) {
		t->held_back++;
		return;
	}
	if (t->held_back != 0)
		cause = cli_format("%s; %s since the last snapshot wrote none", cause,
				   held_back_words(t));
	t->held_back = 0;
	t->written_ns = now;
	write_snapshot(t, cause);
}

/* --- judging triggers --- */

static double real(const struct pem_statistic *v, uint64_t bits, double of_float)
{
	return v->is_float ? of_float : v->is_signed ? (double)(int64_t)bits : (double)bits;
}

/* The value that is compared with the threshold. */
static double value_of(const struct cli_trigger *trigger, const struct pem_statistic *v,
		       double seconds)
{
	switch (trigger->kind) {
	case CLI_TRIGGER_RATE:
		return (double)v->count / seconds;
	case CLI_TRIGGER_SUM:
		return real(v, v->sum, v->sum_f);
	case CLI_TRIGGER_MIN:
		return real(v, v->min, v->min_f);
	case CLI_TRIGGER_MAX:
		return real(v, v->max, v->max_f);
	case CLI_TRIGGER_MEAN:
		return v->mean;
	default:
		return (double)v->count;
	}
}

/*
 * Find the first of a trigger's events that is over its threshold. Its counts begin anew. NULL:
 * none.
 */
static const struct pem_statistic *judge(struct cli_trigger *trigger, double seconds)
{
	int i, n = pem_statistics__read(trigger->statistics, trigger->values, trigger->count);
	bool any = false;

	for (i = 0; i < n; i++)
		any |= trigger->values[i].count != 0;
	if (any)
		pem_statistics__reset(trigger->statistics);
	for (i = 0; i < n; i++) {
		const struct pem_statistic *v = &trigger->values[i];

		if (v->count != 0 && value_of(trigger, v, seconds) > trigger->threshold)
			return v;
	}
	return NULL;
}

static void check(struct cli_triggers *t, struct cli_trigger *trigger, double seconds)
{
	const struct pem_statistic *v = judge(trigger, seconds);

	if (v == NULL)
		return;
	if (trigger->kind == CLI_TRIGGER_EVENT)
		fire(t, cli_format("trigger %.100s", trigger->text));
	else
		fire(t, cli_format("trigger %.80s: it was %s", trigger->text,
				   cli_decimal(value_of(trigger, v, seconds))));
}

void cli_triggers__tick(void *arg)
{
	struct cli_triggers *t = arg;
	uint64_t now = cli_now_ns();
	bool second = now - t->judged_ns >= SECOND_NS;
	double seconds = (double)(now - t->judged_ns) / (double)SECOND_NS;
	int i, status;
	size_t k;

	for (i = 1; i < CLI_TRIGGER_SESSIONS && t->sessions[i] != NULL; i++)
		pem_session__poll(t->sessions[i], 0, &status);
	if ((uint64_t)signals != t->signals_seen) {
		t->signals_seen = (uint64_t)signals;
		write_snapshot(t, "signal SIGUSR2");
	}
	for (k = 0; k < t->count; k++)
		if (second || t->triggers[k].kind == CLI_TRIGGER_EVENT)
			check(t, &t->triggers[k], seconds);
	if (second)
		t->judged_ns = now;
}

void cli_triggers__end(struct cli_triggers *t)
{
	if (t->held_back != 0 && !t->quiet)
		cli_say("%s since the last snapshot wrote none: at most one in %s seconds",
			held_back_words(t), cli_count(t->interval_s));
}

void cli_triggers__free(struct cli_triggers *t)
{
	size_t i;

	for (i = 0; i < t->count; i++) {
		pem_statistics__unregister(t->triggers[i].statistics);
		free(t->triggers[i].values);
	}
	for (i = 1; i < CLI_TRIGGER_SESSIONS; i++)
		pem_session__close(t->sessions[i]);
	for (i = 0; i < t->kept_count; i++) {
		cli_trace__keep_names(t->kept[i].path);
		free(t->kept[i].path);
	}
	free(t->kept);
}
