/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run.c - start a command under a session, and the session's work while it runs
 */
#include "chunks/chunks.h"
#include "core/clock_sync.h"
#include "core/core.h"
#include "cost/cost.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "flight/flight.h"
#include "processes/processes.h"
#include "session/session.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The pause between drains. A default pool lasts 68 ms at 20 million records of 24 bytes a second.
 */
#define DRAIN_NS 10000000u

/*
 * Write the command as one line for people. Control characters are replaced, since they would end
 * the line that it is stored in.
 */
static void write_command(char *to, size_t bytes, char *const argv[])
{
	size_t used = 0;
	const char *c;
	int i;

	for (i = 0; argv[i]; i++) {
		if (i && used + 1 < bytes)
			to[used++] = ' ';
		for (c = argv[i]; *c && used + 1 < bytes; c++)
			to[used++] = *c;
	}
	to[used] = 0;
	pem_printable(to);
}

static void note_command(struct pem_session *s, struct pem_trace_info *info, char *const argv[])
{
	const char *slash = strrchr(argv[0], '/');
	char *const name[] = {(char *)(uintptr_t)(slash ? slash + 1 : argv[0]), NULL};

	info->command_pid = (uint32_t)s->command.pid;
	write_command(info->command_name, sizeof(info->command_name), name);
	write_command(info->command, sizeof(info->command), argv);
}

/* --- the child, between fork and exec --- */

/*
 * Execute the program as execvpe does. Folders of PATH that lack it are searched by pem's own
 * calls: the command's events begin with the call that succeeds.
 */
static void execute(char *const argv[], char **environment)
{
	const char *folder = getenv("PATH");
	char path[PATH_MAX];
	size_t length;

	for (; folder && *folder && !strchr(argv[0], '/'); folder += length + !!folder[length]) {
		length = strcspn(folder, ":");
		if (length && length < sizeof(path) &&
		    (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, argv[0]) <
			    sizeof(path) &&
		    !access(path, X_OK))
			execve(path, argv, environment);
	}
	execvpe(argv[0], argv, environment);
}

static void run_child(char *const argv[], char **environment, bool own_group, int go_fd,
		      int error_fd)
{
	int code;
	char c;

	if (read(go_fd, &c, 1) != 1)
		_exit(127);
	code = own_group && setpgid(0, 0) ? errno : -pem_run__drop_capabilities();
	if (!code) {
		execute(argv, environment);
		code = errno;
	}
	if (write(error_fd, &code, sizeof(code)) != sizeof(code))
		_exit(126);
	_exit(127);
}

/* Wait for the exec. Returns true where it failed, with its errno in code. */
static bool read_code(int fd, int *code)
{
	ssize_t done;

	do
		done = read(fd, code, sizeof(*code));
	while (done < 0 && errno == EINTR); /* a signal may interrupt the recorder just then */
	return done == sizeof(*code);
}

static int exec_error(struct pem_error *error, const char *name, int code)
{
	if (code == ENOENT)
		return pem_error__set(error, -ENOENT,
				      "command '%s' not found; check its name and PATH", name);
	return pem_error__set(error, -code, "cannot run '%s': %s%s", name, strerror(code),
			      code == EACCES ? "; name a file that this user may execute"
			      : code == ENOEXEC
				      ? "; a script begins with a line such as '#!/bin/sh'"
				      : "");
}

/*
 * Make the child the only target. No variable names the session to the programs that the child
 * starts. The child finds the session because it is its target.
 */
static void target_alone(struct pem_session *s, pid_t child)
{
	const struct pem_context alone = {.pid = (uint32_t)child};

	s->sources->no_follow = true;
	if (pem_session__context(s, &alone, alone.pid, PEM_CONTEXT_TARGET) >= 0)
		s->processes->target_count++;
}

#define STARTED_MAX 64 /* remembered commands; only hints depend on them */

/*
 * The commands that sessions of this process started last. pem_session__run writes them,
 * pem_session__has_started reads them.
 */
static pid_t started[STARTED_MAX];
static unsigned int started_count;

static void remember_started(pid_t child)
{
	unsigned int n = __atomic_fetch_add(&started_count, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&started[n % STARTED_MAX], child, __ATOMIC_RELAXED);
}

bool pem_session__has_started(uint32_t pid)
{
	size_t i;

	for (i = 0; i < STARTED_MAX; i++) {
		if ((uint32_t)__atomic_load_n(&started[i], __ATOMIC_RELAXED) == pid)
			return pid != 0;
	}
	return false;
}

/*
 * Make the environment of a command. It names the session's folder, and the public folder for
 * programs that have no right to the first.
 */
static struct pem_environment *make_environment(struct pem_session *s, char *const argv[],
						const struct pem_run_options *options)
{
	char session[sizeof(s->directory) + sizeof(s->dirs->public_directory)];
	int result;

	pem_session__lock(s);
	result = pem_session__make_public(s);
	pem_session__unlock(s);
	if (result)
		pem_session__say(s, PEM_LOG_WARNING,
				 "no folder for programs that the command starts as other users "
				 "can be made in /dev/shm or /tmp: %s; they are not observed",
				 strerror(-result));
	snprintf(session, sizeof(session), "%s%s%s", s->directory,
		 s->dirs->public_directory[0] ? ":" : "", s->dirs->public_directory);
	return pem_environment__new(s, session, argv[0], options);
}

/* Is there a word after so many? */
static bool has_words(char *const argv[], uint32_t count)
{
	uint32_t i;

	for (i = 0; argv[i] && i < count; i++)
		;
	return argv[i] != NULL;
}

/* Copy the options for argv, with defaults for those not given. given may be NULL. */
static int take_options(struct pem_run_options *options, char *const argv[],
			const struct pem_run_options *given, struct pem_error *error)
{
	int result;

	memset(options, 0, sizeof(*options));
	if (!argv || !argv[0] || !*argv[0])
		return pem_error__lacks(error, "command");
	result = given ? PEM_READ_SIZED(pem_run_options, options, given, no_follow, error) : 0;
	if (!result && !has_words(argv, options->runner_words))
		result = pem_error__set(error, -EINVAL, "no command follows its runner's %u words",
					options->runner_words);
	return result;
}

static void note_started(struct pem_session *s, pid_t child)
{
	s->command.pid = child;
	/* The child waits: it has raised no event of these gates. */
	__atomic_store_n(&s->page->gates_at_start,
			 __atomic_load_n(&s->page->gates, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	remember_started(child);
}

/* The child could not become the command, and ends. The session has no command then. */
static void note_failed(struct pem_session *s)
{
	int status;

	pem_session__lock(s);
	waitpid(s->command.pid, &status, 0);
	s->command.failed = true;
	s->command.start_clock = 0;
	pem_session__unlock(s);
}

static int refuse_second(const struct pem_session *s, struct pem_error *error)
{
	return pem_error__set(
		error, -EBUSY,
		s->command.failed ? "the command of this session could not be started; open a "
				    "second session for another"
				  : "this session has had its command; open a second session for "
				    "another");
}

pid_t pem_session__run(struct pem_session *s, char *const argv[],
		       const struct pem_run_options *given, struct pem_error *error)
{
	struct pem_run_options own, *options = &own;
	struct pem_environment *environment = NULL;
	int go[2] = {-1, -1}, failed[2] = {-1, -1}, code = 0, result;
	pid_t child;

	result = s ? take_options(options, argv, given, error) : pem_error__lacks(error, "session");
	if (result)
		return result;
	if (s->command.pid)
		return refuse_second(s, error);
	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC)) {
		result = pem_error__set(error, -errno, "cannot make a pipe: %s", strerror(errno));
		goto out;
	}
	environment = options->no_follow ? pem_environment__new(s, NULL, argv[0], options)
					 : make_environment(s, argv, options);
	if (!environment) {
		result = pem_error__set(error, -ENOMEM, "out of memory");
		goto out;
	}
	child = fork();
	if (child < 0) {
		result = pem_error__set(error, -errno, "cannot start a process: %s",
					strerror(errno));
		goto out;
	}
	if (!child) {
		close(go[1]);
		run_child(argv, pem_environment__variables(environment), options->own_group, go[0],
			  failed[1]);
	}
	close(failed[1]);
	failed[1] = -1;
	pem_session__lock(s);
	note_started(s, child);
	if (options->no_follow)
		target_alone(s, child);
	s->command.pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	if (s->log) {
		note_command(s, &s->log->info, argv + options->runner_words);
		pem_session__describe_flight(s, NULL);
		pem_session__calibrate(s, &s->log->info, options);
	}
	/* Before steps that take long. */
	if (s->cost->detail)
		pem_session__measure(s, pem_session__cost_kinds(s));
	pem_session__set_root(s, child, false);
	pem_session__open_sources(s, error);
	pem_session__update_sources(s);
	if (s->log) {
		pem_log__start_clock(s->log);
		pem_trace_writer__set_info(s->log->writer, &s->log->info);
	}
	pem_session__unlock(s);
	result = child;
	s->command.start_clock = pem_clock();
	if (write(go[1], "g", 1) != 1 || read_code(failed[0], &code)) {
		result = exec_error(error, argv[0], code ? code : EIO);
		note_failed(s);
	}
out:
	pem_environment__free(environment);
	close(go[0]);
	close(go[1]);
	close(failed[0]);
	close(failed[1]);
	return result;
}

/* --- while it runs --- */

static void work(struct pem_session *s, uint64_t now)
{
	bool all;

	pem_session__begin_turn(s);
	if (now >= s->chunks->next_scan_ns)
		pem_session__update_processes(s, now);
	all = pem_session__drain_producers(s);
	s->sources->moved = false;
	pem_session__drain_sources(s, PEM_DRAIN_NOW);
	s->sources->woken_in_vain = s->sources->woken && !s->sources->moved;
	s->sources->woken = false;
	pem_session__judge(s, now);
	pem_session__answer_requests(s);
	s->turn->next_drain_ns = all ? now + DRAIN_NS : now;
}

static void note_end(struct pem_session *s)
{
	if (!s->command.end_clock)
		s->command.end_clock = pem_clock();
}

/* Returns 1 when the command has ended. */
static int check_command(struct pem_session *s)
{
	if (!s->command.pid || s->command.failed || s->command.done)
		return s->command.done;
	if (wait4(s->command.pid, &s->command.status, WNOHANG, &s->command.usage) ==
	    s->command.pid) {
		s->command.done = true;
		note_end(s);
	}
	return s->command.done;
}

/* What a thread that polls has to know of the session while it waits. Several threads may poll. */
struct turn {
	bool ended; /* the command has ended */
	bool in_vain; /* it could not be started, and nothing else is observed */
	int wait_status;
	uint64_t next_ns; /* the time when there is work again */
	/*
	 * What may end the wait earlier: the command's pidfd (-1: none), and sources that fill up.
	 */
	struct pollfd fds[1 + PEM_INSTANCES_MAX];
	nfds_t fd_count;
};

static void add_sources(const struct pem_session *s, struct turn *turn)
{
	const struct pem_instance *instance;
	int i, fd;

	for (i = 0; i < s->sources->instance_count; i++) {
		instance = &s->sources->instances[i];
		fd = instance->ops->poll_fd ? instance->ops->poll_fd(instance->source) : -1;
		if (fd >= 0)
			turn->fds[turn->fd_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
}

static struct turn take_turn(struct pem_session *s, uint64_t now)
{
	struct turn turn;

	pem_session__lock(s);
	if (now >= s->turn->next_drain_ns)
		work(s, now);
	turn.ended = check_command(s);
	turn.in_vain = s->command.failed && !s->processes->target_count && s->self_index < 0;
	turn.wait_status = s->command.status;
	turn.fds[0] =
		(struct pollfd){.fd = s->command.done || s->command.failed ? -1 : s->command.pidfd,
				.events = POLLIN};
	turn.fd_count = 1;
	if (!s->sources->woken_in_vain)
		add_sources(s, &turn);
	turn.next_ns = s->turn->next_drain_ns;
	pem_session__unlock(s);
	return turn;
}

static void wait_ns(struct pem_session *s, struct turn *turn, uint64_t ns)
{
	const struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)ns};
	int ready = ppoll(turn->fds, turn->fd_count, &ts, NULL);

	if (ready <= 0)
		return;
	pem_session__lock(s);
	if (turn->fds[0].revents) {
		note_end(s); /* before any work that may be due */
		ready--;
	}
	if (ready) {
		s->sources->woken = true;
		s->turn->next_drain_ns = 0;
	}
	pem_session__unlock(s);
}

int pem_session__poll(struct pem_session *s, int timeout_ms, int *wait_status)
{
	uint64_t now = pem_monotonic_ns(),
		 end = now + (timeout_ms > 0 ? (uint64_t)timeout_ms * 1000000u : 0), until;
	struct turn turn;

	if (!s)
		return -EINVAL;
	for (;;) {
		turn = take_turn(s, now);
		if (turn.ended) {
			if (wait_status)
				*wait_status = turn.wait_status;
			return 1;
		}
		if (__atomic_load_n(&s->interrupted, __ATOMIC_RELAXED))
			return -EINTR;
		if (turn.in_vain)
			return -ECHILD;
		now = pem_monotonic_ns();
		if (now >= end)
			return 0;
		until = turn.next_ns < end ? turn.next_ns : end;
		wait_ns(s, &turn, until > now ? until - now : 0);
		now = pem_monotonic_ns();
	}
}

uint64_t pem_session__elapsed_ns(const struct pem_session *s)
{
	uint64_t end;

	if (!s || !s->command.start_clock)
		return 0;
	end = s->command.end_clock ? s->command.end_clock : pem_clock();
	return (uint64_t)((unsigned __int128)(end - s->command.start_clock) * 1000000000u /
			  pem_clock__hz());
}

void pem_session__interrupt(struct pem_session *session)
{
	if (session)
		__atomic_store_n(&session->interrupted, 1, __ATOMIC_RELAXED);
}

int pem_run__exec(char *const argv[], const struct pem_run_options *given, struct pem_error *error)
{
	struct pem_environment *environment;
	struct pem_run_options options;
	int code = take_options(&options, argv, given, error);

	if (code)
		return code;
	environment = pem_environment__new(NULL, NULL, argv[0], &options);
	if (!environment)
		return pem_error__set(error, -ENOMEM, "out of memory");
	code = -pem_run__drop_capabilities();
	if (!code) {
		execvpe(argv[0], argv, pem_environment__variables(environment));
		code = errno;
	}
	pem_environment__free(environment);
	return exec_error(error, argv[0], code);
}
