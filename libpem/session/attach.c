/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * attach.c - observe programs that run already: the session's targets
 *
 * Other files: finding processes and offering the session to them (members.c), deciding which
 * processes are in a context (membership.c).
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/demand.h"
#include "cost/cost.h"
#include "dirs/dirs.h"
#include "flight/flight.h"
#include "processes/processes.h"
#include "session/session.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "producer/producer.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Libraries that raise events for programs are named libpem-NAME.so. */
#define ADAPTER "libpem-"
#define HELPERS_NS 2000000000u
#define HEAR_MS 1
#define PF_KTHREAD 0x00200000u /* the kernel's, in field 9 of /proc/PID/stat */

static bool is_any(const struct pem_context *c)
{
	return c->pid == PEM_ANY && c->tid == PEM_ANY && !c->one_cpu && !c->in_namespace &&
	       !c->cgroup && !c->program[0];
}

/* Is the session's only target a control group, as a whole? */
static bool is_group_alone(const struct pem_session *s, const struct pem_context *c)
{
	return c->cgroup && c->pid == PEM_ANY && c->tid == PEM_ANY && !c->one_cpu &&
	       !c->in_namespace && !c->program[0] && s->processes->target_count == 1 &&
	       !s->command.pid;
}

static int check_thread(const struct pem_context *c, struct pem_error *error)
{
	char path[48];

	if (c->tid == PEM_ANY)
		return 0;
	if (c->pid)
		snprintf(path, sizeof(path), "/proc/%u/task/%u", c->pid, c->tid);
	else
		snprintf(path, sizeof(path), "/proc/%u", c->tid);
	if (!access(path, F_OK))
		return 0;
	if (!c->pid)
		return pem_error__set(error, -ESRCH, "there is no thread %u", c->tid);
	return pem_error__set(error, -ESRCH,
			      "process %u has no thread %u: 'ls /proc/%u/task' shows its threads",
			      c->pid, c->tid, c->pid);
}

static int check_process(uint32_t pid, struct pem_error *error)
{
	char path[32], name[PEM_NAME_BYTES];
	struct stat st;

	if (pid == PEM_ANY)
		return 0;
	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (stat(path, &st))
		return pem_error__set(error, -ESRCH, "there is no process %u", pid);
	if (geteuid() && st.st_uid != geteuid()) {
		pem_process_name(pid, name);
		return pem_error__set(error, -EPERM,
				      "process %u (%s) is another user's: only that user and root "
				      "may observe it",
				      pid, name);
	}
	return 0;
}

/*
 * Count the processes that are in a context, and are in the session or about to be. *full is set
 * where a process of the context has no free entry for the session.
 */
static int count_members(const struct pem_session *s, int context, bool *full)
{
	const struct pem_member *m;
	int count = 0;

	*full = false;
	for (m = s->processes->members; m; m = m->next) {
		if (!(m->contexts >> context & 1))
			continue;
		count += m->session_index >= 0 || m->joins;
		*full |= m->session_index < 0 && m->full_said;
	}
	return count;
}

/* The command line of a process, with spaces between its words. */
static void command_of(uint32_t pid, char *text, size_t bytes)
{
	char path[32];
	size_t n = 0, i;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	file = fopen(path, "re");
	if (file) {
		n = fread(text, 1, bytes - 1, file);
		fclose(file);
	}
	while (n && !text[n - 1])
		n--;
	text[n] = 0;
	for (i = 0; i < n; i++) {
		if (!text[i])
			text[i] = ' ';
	}
	pem_printable(text);
}

/*
 * Note a target in the log. The trace names the first target, and its time begins with this
 * attachment. Where sources have to start, which takes them a while, it begins when the first one
 * does.
 */
static void note_in_log(struct pem_session *s, const struct pem_context *who)
{
	struct pem_trace_info *info;

	if (!s->log || s->command.pid || s->processes->target_count > 1)
		return;
	info = &s->log->info;
	if (who->pid) {
		info->command_pid = who->pid;
		pem_process_name(who->pid, info->command_name);
		command_of(who->pid, info->command, sizeof(info->command));
		pem_session__describe_flight(s, NULL);
	}
	pem_session__calibrate(s, info, NULL);
	pem_log__start_clock(s->log);
	s->log->awaits_source = true;
}

/* The sources have started that the session has. */
static void begin_log(struct pem_session *s)
{
	if (!s->log)
		return;
	s->log->awaits_source = false;
	pem_trace_writer__set_info(s->log->writer, &s->log->info);
}

/* Are counters all that the session wants? They need nothing of a program. */
static bool wants_counters_alone(const struct pem_session *s)
{
	const struct pem_demand *demand;
	bool wants_any = false;
	size_t i;

	for (i = 0; i < s->demand_count; i++)
		for (demand = &s->demands[i]; demand; demand = demand->next) {
			if (!demand->want_log && !demand->want_statistic)
				continue;
			wants_any = true;
			if (s->demands[i].event->source_kind != PEM_SOURCE_PERF)
				return false;
		}
	return wants_any;
}

/* The letter of a process's state as in /proc/PID/stat, and whether it is the kernel's own. */
static char state_of(uint32_t pid, bool *is_kernels)
{
	char path[32], text[512], *end;
	unsigned flags = 0;
	char state = '?';
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	n = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
	if (file)
		fclose(file);
	text[n] = 0;
	end = strrchr(text, ')'); /* the name's end: a name may have any characters */
	if (!end || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		flags = 0;
	*is_kernels = flags & PF_KTHREAD;
	return state;
}

/* Say of a process that no command line starts why it raises nothing. Returns whether it is one. */
static bool explain_no_program(uint32_t pid, const char *name, struct pem_error *why)
{
	bool is_kernels;
	char state = state_of(pid, &is_kernels);

	if (is_kernels)
		pem_error__set(
			why, 0,
			"process %u (%s) is a thread of the kernel: it raises no application "
			"events; name events of the kernel, such as OS::Sched::Switch",
			pid, name);
	else if (state == 'Z')
		pem_error__set(
			why, 0,
			"process %u (%s) has ended, and its parent has not waited for it: it "
			"raises no more events; name a process that runs",
			pid, name);
	return is_kernels || state == 'Z';
}

/* Can a person copy a process's name onto a command line? Another user may have chosen it. */
static bool is_plain(const char *name)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_.+-";

	return *name && !name[strspn(name, plain)];
}

/* Tell both the log and the caller, which may have no log. */
static void tell(struct pem_session *s, const struct pem_error *why, struct pem_error *error)
{
	pem_session__say(s, PEM_LOG_WARNING, "%s", why->text);
	if (error)
		*error = *why;
}

/* Tell that a process will raise nothing. */
static void say_silent(struct pem_session *s, uint32_t pid, struct pem_error *error)
{
	bool is_anothers = pem_is_anothers(pid, geteuid());
	char name[PEM_NAME_BYTES];
	struct pem_error why;

	pem_process_name(pid, name);
	if (!explain_no_program(pid, name, &why))
		pem_error__set(
			&why, 0,
			"process %u (%s) raises no application events%s: it was not started with "
			"libpem%s; start it with 'pem run -- %s'%s",
			pid, name, is_anothers ? " so far" : "",
			is_anothers ? ", or had no event yet" : "",
			is_plain(name) ? name : "COMMAND",
			pem_session__observes_kernel(s) ? "; its kernel events are observed" : "");
	tell(s, &why, error);
}

/* Are all application events that the session wants raised by adapters, as libpem-libc.so is one?
 */
static bool wants_adapters_alone(const struct pem_session *s)
{
	bool wants_any = false;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		if (s->demands[i].event->source_kind != PEM_SOURCE_STUB)
			continue;
		if (strncmp(s->demands[i].event->source_name, ADAPTER, strlen(ADAPTER)))
			return false;
		wants_any = true;
	}
	return wants_any;
}

/* Has a process an adapter? Also if that can't be known. */
static bool has_adapter(uint32_t pid)
{
	char path[32], line[512];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return true;
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, "/" ADAPTER);
	found = found || ferror(file);
	fclose(file);
	return found;
}

/* Tell of a program that can raise events if it can raise none of those that are wanted. */
static void say_no_adapter(struct pem_session *s, uint32_t pid, struct pem_error *error)
{
	char name[PEM_NAME_BYTES];
	struct pem_error why;

	if (!wants_adapters_alone(s) || has_adapter(pid))
		return;
	pem_process_name(pid, name);
	pem_error__set(
		&why, 0,
		"process %u (%s) was started with libpem alone and raises none of the events "
		"that are wanted: libraries raise them that were not loaded into it; start it "
		"with 'pem run -- %s'",
		pid, name, is_plain(name) ? name : "COMMAND");
	tell(s, &why, error);
}

/*
 * Count the processes of a target that raise events. If it is a process that raises none, say why.
 * A process that was woken leaves standby at its next event, perhaps while the sources open. So the
 * files are searched again after its mappings were read: it is found in one of the two places.
 */
static int count_target(struct pem_session *s, uint32_t pid, int context, struct pem_error *error)
{
	bool is_on_standby, full;
	int count = count_members(s, context, &full) + (pid == (uint32_t)getpid());

	if (!pid)
		return count;
	if (count) {
		say_no_adapter(s, pid, error);
		return count;
	}
	is_on_standby = !pem_is_anothers(pid, geteuid()) && pem_standby__has(pid);
	pem_session__scan_producers(s);
	count = count_members(s, context, &full);
	if (!count && full)
		return pem_error__set(error, -EUSERS,
				      "eight sessions observe process %u already; end one of them",
				      pid);
	if (count || is_on_standby)
		say_no_adapter(s, pid, error);
	else if (!pem_session__has_started(pid) && !wants_counters_alone(s))
		say_silent(s, pid, error);
	return count;
}

/* Let the sources observe a target. */
static int observe(struct pem_session *s, const struct pem_context *who, struct pem_error *error)
{
	int before = s->sources->instance_count, result;

	if (s->sources->cgroup && before)
		pem_session__say(s, PEM_LOG_WARNING,
				 "counters count the control group that was attached to first, and "
				 "none of what is attached to beside it");
	s->sources->cgroup = is_group_alone(s, who) ? who->cgroup : 0;
	if (is_any(who))
		s->sources->whole_machine = geteuid() == 0;
	else if (!s->sources->root)
		s->sources->no_follow = who->pid ? !who->follow : who->program[0] != 0;
	if (who->pid)
		pem_session__set_root(s, (pid_t)who->pid, true);
	result = pem_session__open_sources(s, error);
	if (!result && s->sources->instance_count == before)
		pem_session__find_targets(s);
	pem_session__update_sources(s);
	return result;
}

/*
 * Wait for the helpers, so that the number of processes returned to the caller is right. A helper
 * needs some time to report processes. It belongs to a user, who may stop it. So the session goes
 * on working, and other threads may take its lock meanwhile.
 */
static void await_helpers(struct pem_session *s, uid_t owner)
{
	uint64_t deadline = pem_monotonic_ns() + HELPERS_NS;
	int status, ended = 0;

	while (!ended && pem_session__awaits_helpers(s, owner)) {
		if (pem_monotonic_ns() > deadline) {
			pem_session__stop_awaiting(s, owner);
			return;
		}
		pem_session__unlock(s);
		ended = pem_session__poll(s, HEAR_MS, &status);
		pem_session__lock(s);
		pem_session__scan_dirs(s);
	}
}

/*
 * Search other runtime directories for a target's processes: the first time, or for a process that
 * was not found.
 */
static void find_elsewhere(struct pem_session *s, uint32_t pid)
{
	uid_t owner = PEM_ANY_USER;

	if (pid &&
	    (pem_session__search_later(s, pid) || !pem_session__find_dirs_of(s, pid, &owner)))
		return;
	await_helpers(s, owner);
	pem_session__scan_producers(s);
}

int pem_session__attach(struct pem_session *s, const struct pem_context *given,
			struct pem_error *error)
{
	struct pem_context own, *who = &own;
	struct pem_member *m;
	int context, result;

	if (!s)
		return pem_error__lacks(error, "session");
	result = pem_context__copy(who, given, error);
	if (!result)
		result = check_process(who->pid, error);
	if (!result)
		result = check_thread(who, error);
	if (result)
		return result;
	/* If the process can't be described, sets can't name its own events. */
	if (who->pid && who->pid != (uint32_t)getpid())
		pem_session__describe(s, who->pid, NULL, NULL);
	pem_error__set(error, 0, "%s", "");
	pem_session__lock(s);
	context = pem_session__context(s, who, who->pid, PEM_CONTEXT_TARGET);
	if (context < 0) {
		pem_session__unlock(s);
		return pem_error__set(error, -ENOSPC, "more than %u contexts in one session",
				      PEM_CONTEXTS_MAX - 1);
	}
	s->processes->target_count++;
	note_in_log(s, who);
	/* Programs join after the sources, so that all records begin at the same time. */
	result = observe(s, who, error);
	begin_log(s);
	if (!result && who->pid == (uint32_t)getpid())
		result = pem_session__join_self(s, error);
	pem_session__add_session_dir(s);
	if (!who->pid)
		s->processes->searches_elsewhere = true;
	pem_session__publish(s);
	pem_session__wake_standby(s);
	for (m = s->processes->members; m; m = m->next)
		pem_member__ask(s, m);
	pem_session__scan_producers(s);
	find_elsewhere(s, who->pid);
	if (!result)
		result = count_target(s, who->pid, context, error);
	pem_session__unlock(s);
	return result;
}

static void fill_in(struct pem_statistic_owner *processes, size_t i, uint32_t pid, const char *comm)
{
	struct pem_statistic_owner one = {.pid = pid, .cpu = PEM_NO_CPU};

	if (comm)
		memcpy(one.program, comm, sizeof(one.program));
	else
		pem_process_name(pid, one.program);
	pem_sized__write(processes, i, &one, sizeof(one));
}

int pem_session__processes(struct pem_session *s, struct pem_statistic_owner *processes, size_t max)
{
	const struct pem_producer *p;
	const struct pem_member *m;
	size_t count = 0;

	if (!s || pem_sized__check_array(processes, max))
		return -EINVAL;
	pem_session__lock(s);
	for (m = s->processes->members; m; m = m->next) {
		if (m->session_index < 0)
			continue;
		if (count < max)
			fill_in(processes, count, m->pid, NULL);
		count++;
	}
	for (p = s->processes->producers; p; p = p->next) {
		if (p->member || p->dead)
			continue;
		if (count < max)
			fill_in(processes, count, p->pid, p->comm);
		count++;
	}
	pem_session__unlock(s);
	return (int)count;
}
