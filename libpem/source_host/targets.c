/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * targets.c - the processes that the session's sources observe: find them, and tell the sources
 *
 * The kernel follows what a target starts once the process is a target. Processes that run by then
 * are searched in /proc. Descendants are searched once, right after a source has started. Programs,
 * control groups and namespaces are searched again and again, since more of their processes may
 * come. Processes that raise events themselves are in members.c.
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "grow.h"
#include "membership.h"
#include "util.h"

#include <pem/clock.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEARCH_NS 1000000000u
#define PASSES_MAX 8 /* tries for a target that starts others faster than they are found */

static struct pem_target *find(const struct pem_session *s, uint32_t pid)
{
	size_t i;

	for (i = 0; i < s->sources->observed_count; i++) {
		if (s->sources->observed[i].pid == pid)
			return &s->sources->observed[i];
	}
	return NULL;
}

static bool remember(struct pem_session *s, uint32_t pid)
{
	size_t capacity = s->sources->observed_capacity ? 2 * s->sources->observed_capacity : 16;
	struct pem_target *larger;

	if (s->sources->observed_count == s->sources->observed_capacity) {
		larger = realloc(s->sources->observed, capacity * sizeof(*larger));
		if (!larger)
			return false;
		s->sources->observed = larger;
		s->sources->observed_capacity = capacity;
	}
	s->sources->observed[s->sources->observed_count++] =
		(struct pem_target){.pid = pid, .seen = true};
	return true;
}

static void add_to(struct pem_session *s, struct pem_instance *instance, uint32_t pid)
{
	int result;

	if (instance->has_no_targets)
		return;
	result = instance->ops->add_target ? instance->ops->add_target(instance->source, (pid_t)pid)
					   : -ENOTSUP;
	if (!result || instance->refused_said)
		return;
	instance->refused_said = true;
	pem_session__say(s, PEM_LOG_WARNING,
			 "%s events of process %u, and of others to come, are not observed: %s",
			 instance->ops->name, pid,
			 result == -ENOTSUP ? "this source observes one process and what it starts"
					    : strerror(-result));
}

void pem_session__add_targets_to(struct pem_session *s, struct pem_instance *instance)
{
	size_t i;

	for (i = 0; i < s->sources->observed_count; i++) {
		if (s->sources->observed[i].pid != (uint32_t)s->sources->root)
			add_to(s, instance, s->sources->observed[i].pid);
	}
	pem_session__tell_gates(s, instance);
}

void pem_session__set_root(struct pem_session *s, pid_t pid, bool runs)
{
	int i;

	if (s->sources->whole_machine || find(s, (uint32_t)pid))
		return;
	if (!remember(s, (uint32_t)pid)) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "process %d is not observed in the kernel: out of memory",
				 (int)pid);
		return;
	}
	if (!s->sources->root) {
		s->sources->root = pid;
		s->sources->root_runs = runs;
	}
	for (i = 0; i < s->sources->instance_count; i++)
		add_to(s, &s->sources->instances[i], (uint32_t)pid);
}

/* --- searching --- */

static bool wants_sources(const struct pem_session *s)
{
	const struct pem_demand *demand;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		for (demand = &s->demands[i]; demand; demand = demand->next) {
			if (demand->event->source_kind != PEM_SOURCE_STUB && !demand->unavailable &&
			    (demand->want_log || demand->want_statistic || demand->want_async))
				return true;
		}
	}
	return false;
}

/*
 * The contexts of targets whose processes must be searched, since they are named by program,
 * control group or namespace. With descendants true, contexts of a process's descendants are added.
 * The context of all processes is left out: it is the whole machine, which root observes.
 */
static uint64_t open_contexts(const struct pem_session *s, bool descendants)
{
	const struct pem_session_context *c;
	uint64_t contexts = 0;
	uint32_t i;

	for (i = 1; i < s->context_count; i++) {
		c = &s->page->contexts[i];
		if (c->flags & PEM_CONTEXT_TARGET &&
		    (c->pid ? descendants && c->flags & PEM_CONTEXT_FOLLOW
			    : c->program[0] || c->cgroup || c->in_namespace))
			contexts |= 1ull << i;
	}
	return contexts;
}

static bool is_ours(const char *name)
{
	char path[300];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%s", name);
	return !stat(path, &st) && (!geteuid() || st.st_uid == geteuid());
}

/*
 * Add a process as a target. late: the sources run already, so they lack its earlier events, unless
 * they followed its parent.
 */
static void add_found(struct pem_session *s, uint32_t pid, bool late)
{
	if (late && (s->sources->no_follow || !find(s, pem_parent_of(pid))))
		s->sources->late_targets++;
	pem_session__set_root(s, (pid_t)pid, true);
	pem_log__name_process(s->log, pid);
}

/* Search /proc for processes in these contexts. Returns how many were not known before. */
static size_t search(struct pem_session *s, uint64_t contexts, bool late)
{
	uint64_t groups = late ? open_contexts(s, false) : 0, holding;
	struct pem_target *known;
	struct dirent *entry;
	size_t count = 0;
	uint32_t pid;
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		known = pid ? find(s, pid) : NULL;
		if (known)
			known->seen = true;
		if (!pid || known || pid == (uint32_t)getpid() || !is_ours(entry->d_name))
			continue;
		holding =
			contexts & pem_contexts__holding(s->page, s->context_count, pid, ~contexts);
		if (!holding)
			continue;
		add_found(s, pid, holding & groups);
		count++;
	}
	if (proc)
		closedir(proc);
	return count;
}

void pem_session__find_targets(struct pem_session *s)
{
	uint64_t contexts = s->sources->whole_machine ? 0 : open_contexts(s, true);
	size_t i, kept = 0;
	int pass;

	if (!contexts || !wants_sources(s))
		return;
	for (i = 0; i < s->sources->observed_count; i++)
		s->sources->observed[i].seen = false;
	for (pass = 0; pass < PASSES_MAX && search(s, contexts, s->sources->has_searched); pass++)
		;
	s->sources->has_searched = true;
	/* Forget targets that have ended: their process ids may be used again. */
	for (i = 0; i < s->sources->observed_count; i++) {
		if (s->sources->observed[i].seen)
			s->sources->observed[kept++] = s->sources->observed[i];
	}
	s->sources->observed_count = kept;
	s->sources->next_targets_ns = pem_monotonic_ns() + SEARCH_NS;
}

void pem_session__note_target(struct pem_session *s, uint32_t pid)
{
	uint64_t contexts;
	char name[16];

	if (!pid || !s->processes->searches_elsewhere || s->sources->whole_machine ||
	    find(s, pid) || !wants_sources(s))
		return;
	contexts = open_contexts(s, false);
	snprintf(name, sizeof(name), "%u", pid);
	if (!contexts || !is_ours(name) ||
	    !(pem_contexts__holding(s->page, s->context_count, pid, ~contexts) & contexts))
		return;
	add_found(s, pid, s->sources->has_searched);
	/* The first target: its sources are opened at the next search. */
	if (pem_session__awaits_source(s))
		s->sources->next_targets_ns = 1;
}

void pem_session__update_targets(struct pem_session *s)
{
	if (!s->processes->searches_elsewhere || s->sources->whole_machine ||
	    pem_monotonic_ns() < s->sources->next_targets_ns)
		return;
	s->sources->next_targets_ns = pem_monotonic_ns() + SEARCH_NS;
	pem_session__find_targets(s);
	if (s->sources->root && pem_session__awaits_source(s)) {
		pem_session__open_sources(s, NULL);
		pem_session__update_sources(s);
	}
}

/* --- processes that go on --- */

#define LEFT_NAMED 3u /* processes that the sentence names */

struct left {
	const struct pem_session *session;
	uint32_t *pids;
	size_t count, capacity;
};

static void note_one(void *arg, uint32_t pid)
{
	struct left *left = arg;
	size_t i;

	for (i = 0; i < left->count; i++)
		if (left->pids[i] == pid)
			return;
	if (pid == (uint32_t)left->session->command.pid ||
	    (kill((pid_t)pid, 0) && errno != EPERM) ||
	    pem_grow(&left->pids, sizeof(*left->pids), left->count + 1, &left->capacity))
		return;
	left->pids[left->count++] = pid;
}

static bool goes_on(const struct pem_producer *p)
{
	struct pollfd pollfd = {.fd = p->pidfd, .events = POLLIN};

	return !p->dead && p->pidfd >= 0 && poll(&pollfd, 1, 0) == 0;
}

/*
 * Does a process of this user's have the session's folder in its environment? Another user's could
 * make the reader wait.
 */
static bool has_session(const struct pem_session *s, uint32_t pid)
{
	char path[48], *word = NULL;
	bool found = false;
	size_t room = 0;
	FILE *file;

	if (pem_is_anothers(pid, geteuid()))
		return false;
	snprintf(path, sizeof(path), "/proc/%u/environ", pid);
	file = fopen(path, "re");
	while (file && !found && getdelim(&word, &room, 0, file) > 0)
		found = !strncmp(word, "PEM_SESSION=", 12) &&
			!strncmp(word + 12, s->directory, strlen(s->directory));
	free(word);
	if (file)
		fclose(file);
	return found;
}

/* Processes that have raised nothing yet are told by their environment alone. */
static void search_environments(const struct pem_session *s, struct left *left)
{
	struct dirent *entry;
	uint32_t pid;
	DIR *proc = opendir("/proc");

	while (proc && (entry = readdir(proc))) {
		pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		if (pid && pid != (uint32_t)getpid() && has_session(s, pid))
			note_one(left, pid);
	}
	if (proc)
		closedir(proc);
}

/* "2 processes that the command started still ran when it ended (sleep 7, dd 8)" */
static void describe_left(const struct left *left, char *text, size_t bytes)
{
	char name[PEM_NAME_BYTES], names[128] = "";
	size_t i, used = 0;

	for (i = 0; i < left->count && i < LEFT_NAMED; i++) {
		if (!pem_process_name(left->pids[i], name))
			snprintf(name, sizeof(name), "?");
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%.20s %u",
					 i ? ", " : "", name, left->pids[i]);
	}
	snprintf(text, bytes, "%zu %s that the command started still ran when it ended (%s%s)",
		 left->count, left->count == 1 ? "process" : "processes", names,
		 left->count > LEFT_NAMED ? ", ..." : "");
}

/* left->pids is the caller's to free. */
static void find_left(struct pem_session *s, struct left *left)
{
	const struct pem_instance *instance;
	const struct pem_producer *p;
	int i;

	*left = (struct left){.session = s};
	if (!s->command.done || s->sources->whole_machine)
		return;
	for (i = 0; i < s->sources->instance_count; i++) {
		instance = &s->sources->instances[i];
		if (instance->ops->each_target)
			instance->ops->each_target(instance->source, note_one, left);
	}
	for (p = s->processes->producers; p; p = p->next)
		if (goes_on(p))
			note_one(left, p->pid);
	search_environments(s, left);
}

void pem_session__note_left(struct pem_session *s, struct pem_trace_info *info)
{
	struct pem_trace_gap *gap = &info->gaps[info->gap_count];
	struct left left;
	char text[150];

	find_left(s, &left);
	if (left.count && info->gap_count < PEM_ARRAY_SIZE(info->gaps)) {
		info->gap_count++;
		describe_left(&left, text, sizeof(text));
		pem_copy_text(gap->source, sizeof(gap->source), "later");
		snprintf(gap->reason, sizeof(gap->reason),
			 "%s: what %s later is in another recording, pem record -p %u", text,
			 left.count == 1 ? "it does" : "they do", left.pids[0]);
	}
	free(left.pids);
}

void pem_session__say_left(struct pem_session *s)
{
	struct left left;
	char text[150];

	find_left(s, &left);
	if (left.count) {
		describe_left(&left, text, sizeof(text));
		pem_session__say(s, PEM_LOG_WARNING,
				 "%s: what %s later is not counted here; pem stat -p %u counts it",
				 text, left.count == 1 ? "it does" : "they do", left.pids[0]);
	}
	free(left.pids);
}

bool pem_session__observes_kernel(const struct pem_session *s)
{
	const struct pem_demand *demand;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		for (demand = &s->demands[i]; demand; demand = demand->next) {
			if (pem_event__is_of_kernel(demand->event) && demand->instance >= 0)
				return true;
		}
	}
	return false;
}

uint32_t pem_session__outer_tid(struct pem_session *s, uint32_t pid_namespace, uint32_t tid,
				uid_t owner, uint64_t clock)
{
	const struct pem_instance *instance;
	uint32_t found = 0, uid;
	uint64_t start_ns;
	int i;

	for (i = 0; !found && i < s->sources->instance_count; i++) {
		instance = &s->sources->instances[i];
		if (!instance->ops->outer_tid)
			continue;
		found = instance->ops->outer_tid(instance->source, pid_namespace, tid, &uid,
						 &start_ns);
		/*
		 * A process can't pass for one of another user. A thread that started later has
		 * only the same number.
		 */
		if (found && ((owner != geteuid() && uid != owner) ||
			      pem_clock_sync__cycles_at(&s->clock, start_ns) > clock))
			found = 0;
	}
	return found;
}
