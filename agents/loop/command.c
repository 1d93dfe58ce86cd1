/* SPDX-License-Identifier: MIT */
/* command.c - starts an agent's command, under a session or alone, and waits for its end */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 100

extern char **environ;

/* --- the environment --- */

int pem_agent__set_variable(struct pem_agent *agent, const char *name, const char *value)
{
	char *text = NULL;

	if (agent->variable_count == PEM_AGENT_VARIABLES_MAX)
		return -E2BIG;
	if (!*name || strchr(name, '='))
		return -EINVAL;
	if (asprintf(&text, "%s%s%s", name, value ? "=" : "", value ? value : "") < 0)
		return -ENOMEM;
	agent->variables[agent->variable_count++] = text;
	return 0;
}

static void free_wrap(struct pem_agent *agent)
{
	size_t i;

	for (i = 0; agent->wrap && agent->wrap[i]; i++)
		free(agent->wrap[i]);
	free(agent->wrap);
	agent->wrap = NULL;
}

int pem_agent__wrap(struct pem_agent *agent, char *const words[])
{
	size_t count = 0, i;

	if (agent->wrap)
		return -EBUSY;
	while (words[count])
		count++;
	agent->wrap = calloc(count + 1, sizeof(*agent->wrap));
	for (i = 0; agent->wrap && i < count; i++) {
		agent->wrap[i] = strdup(words[i]);
		if (!agent->wrap[i])
			break;
	}
	if (agent->wrap && i == count)
		return 0;
	free_wrap(agent);
	return -ENOMEM;
}

void agent_command__free(struct pem_agent *agent)
{
	free_wrap(agent);
	while (agent->variable_count)
		free(agent->variables[--agent->variable_count]);
}

/* Does an entry of the environment have the name that a variable sets or takes away? */
static bool has_name(const char *entry, const char *variable)
{
	size_t n = strcspn(variable, "=");

	return !strncmp(entry, variable, n) && entry[n] == '=';
}

static bool is_replaced(const struct pem_agent *agent, const char *entry, size_t from)
{
	size_t i;

	for (i = from; i < agent->variable_count; i++) {
		if (has_name(entry, agent->variables[i]))
			return true;
	}
	return false;
}

/* This process's environment with the variables of the agent. NULL: out of memory. */
static char **make_environment(const struct pem_agent *agent)
{
	size_t count = 0, used = 0, i;
	char **all;

	while (environ[count])
		count++;
	all = calloc(count + agent->variable_count + 1, sizeof(*all));
	for (i = 0; all && i < count; i++) {
		if (!is_replaced(agent, environ[i], 0))
			all[used++] = environ[i];
	}
	/* Of a name that was set twice, the last counts. */
	for (i = 0; all && i < agent->variable_count; i++) {
		if (strchr(agent->variables[i], '=') &&
		    !is_replaced(agent, agent->variables[i], i + 1))
			all[used++] = agent->variables[i];
	}
	return all;
}

/* --- signals --- */

static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
#define PASSED (sizeof(passed) / sizeof(passed[0]))

/* The command, while it runs. Signal handlers have no other way to it. */
static volatile pid_t command;
/* A signal that came before the command was there. */
static volatile sig_atomic_t pending;
/* The last of the signals by which people end a command. */
static volatile sig_atomic_t interrupted;

/* A terminal sends its signals to the command, too: those come from the kernel. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	int error = errno;

	(void)context;
	if (number == SIGINT || number == SIGQUIT || number == SIGTERM)
		interrupted = number;
	if (info->si_code > 0 && (number == SIGINT || number == SIGQUIT))
		return;
	if (command > 0)
		kill(command, number);
	else
		pending = number;
	errno = error;
}

/* What signals did before. */
struct dispositions {
	struct sigaction passed[PASSED], child;
};

static void pass_signals(struct dispositions *before)
{
	struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction usual = {.sa_handler = SIG_DFL}, *old = before->passed;
	size_t i;

	/* If SIGCHLD is ignored, the kernel keeps no status to wait for. */
	sigaction(SIGCHLD, NULL, &before->child);
	if (before->child.sa_handler == SIG_IGN || before->child.sa_flags & SA_NOCLDWAIT)
		sigaction(SIGCHLD, &usual, NULL);

	for (i = 0; i < PASSED; i++) {
		sigaction(passed[i], NULL, &old[i]);
		/* What this process was told to ignore, the command ignores as well. */
		if (old[i].sa_handler != SIG_IGN)
			sigaction(passed[i], &action, NULL);
	}
}

static void restore_signals(const struct dispositions *before)
{
	size_t i;

	for (i = 0; i < PASSED; i++)
		sigaction(passed[i], &before->passed[i], NULL);
	sigaction(SIGCHLD, &before->child, NULL);
}

/* --- the command --- */

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/*
 * A file that the kernel takes for no program is a script for the shell, as execvp and all shells
 * have it. NULL: out of memory.
 */
static char **make_script_words(const struct pem_agent *agent)
{
	static char shell[] = "/bin/sh";
	size_t count = 0, i;
	char **words;

	while (agent->argv[count])
		count++;
	words = calloc(count + 2, sizeof(*words));
	if (!words)
		return NULL;
	words[0] = shell;
	words[1] = (char *)agent->file;
	for (i = 1; i < count; i++)
		words[i + 1] = agent->argv[i];
	return words;
}

static int spawn_script(const struct pem_agent *agent, char **environment, pid_t *pid)
{
	char **words = make_script_words(agent);
	int rc = words ? posix_spawn(pid, words[0], NULL, NULL, words, environment) : ENOMEM;

	free(words);
	return rc;
}

/* The program found, and not what PATH may name by now. */
static pid_t start_alone(struct pem_agent *agent, struct pem_error *error)
{
	char **environment = make_environment(agent);
	pid_t pid = 0;
	int rc = environment ? posix_spawn(&pid, agent->file, NULL, NULL, agent->argv, environment)
			     : ENOMEM;

	if (rc == ENOEXEC)
		rc = spawn_script(agent, environment, &pid);
	free(environment);
	if (!rc)
		return pid;
	snprintf(error->text, sizeof(error->text), "%.400s can't be started: %s", agent->file,
		 strerror(rc));
	return -rc;
}

/* The command's words behind those of the program that it goes through. NULL: out of memory. */
static char **make_words(const struct pem_agent *agent)
{
	size_t before = 0, count = 0, i;
	char **words;

	while (agent->wrap && agent->wrap[before])
		before++;
	while (agent->argv[count])
		count++;
	words = calloc(before + count + 1, sizeof(*words));
	for (i = 0; words && i < before + count; i++)
		words[i] = i < before ? agent->wrap[i] : agent->argv[i - before];
	if (words && before)
		words[before] = (char *)agent->file;
	return words;
}

int agent_command__exec(struct pem_agent *agent)
{
	char **environment = make_environment(agent), **words;

	if (!environment)
		return -ENOMEM;
	execve(agent->file, agent->argv, environment);
	words = errno == ENOEXEC ? make_script_words(agent) : NULL;
	if (words)
		execve(words[0], words, environment);
	free(words);
	free(environment);
	return -errno;
}

/* pem_session__run takes this process's environment: it is changed for the moment. */
static pid_t start_observed(struct pem_agent *agent, struct pem_session *session,
			    struct pem_error *error)
{
	const struct pem_run_options options = {.size = sizeof(options),
						.preload_libc = agent->options.preload_libc != 0};
	char **environment = make_environment(agent), **own = environ, **words = make_words(agent);
	pid_t pid = -ENOMEM;

	if (environment && words) {
		environ = environment;
		pid = pem_session__run(session, words, &options, error);
		environ = own;
	} else {
		snprintf(error->text, sizeof(error->text), "out of memory");
	}
	free(environment);
	free(words);
	return pid;
}

/*
 * Linux counts what this process had at most as the command's, since the command shared its memory
 * until it was started. From here on the most is what this process has now.
 */
static void forget_own_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	/* Where that can't be done, the peak of a small command is this process's. */
	if (fd >= 0) {
		(void)!write(fd, "5", 1);
		close(fd);
	}
}

/* Let the agent act on the command when it is time. Returns for how many ms to wait then. */
static int act(struct pem_agent *agent, double *due_s)
{
	double wait_s = *due_s - now_s();
	uint64_t pause_ns;

	if (agent->ops->act && wait_s <= 0) {
		pause_ns = agent->ops->act(agent, agent->arg);
		wait_s = pause_ns ? (double)pause_ns / 1e9 : INFINITY;
		*due_s = now_s() + wait_s;
	}
	return agent->ops->act && wait_s * 1e3 < POLL_MS ? (int)(wait_s * 1e3) + 1 : POLL_MS;
}

/* Let the agent act until the command ends, or until it has done all. */
static void act_until_end(struct pem_agent *agent, pid_t pid)
{
	struct pollfd end = {.events = POLLIN};
	double due_s = 0;

	if (!agent->ops->act || agent->purpose != PEM_AGENT_TREATED)
		return;
	end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	while (end.fd >= 0 && !isinf(due_s) && poll(&end, 1, act(agent, &due_s)) <= 0)
		;
	if (end.fd >= 0)
		close(end.fd);
}

/*
 * Wait until the command ends, and leave it a zombie. Returns how long its first thread was ready
 * to run without a CPU: the second number of /proc/PID/schedstat. 0: unknown.
 */
static double wait_and_ask(pid_t pid)
{
	unsigned long long waited_ns = 0;
	siginfo_t ended;
	char path[64];
	FILE *file;

	while (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%*u %llu", &waited_ns) != 1)
		waited_ns = 0;
	if (file)
		fclose(file);
	return (double)waited_ns / 1e9;
}

/* used: by the command and what it waited for; under a session its peak is that of all children. */
static int wait_for(struct pem_agent *agent, pid_t pid, struct pem_session *session,
		    struct rusage *used)
{
	struct rusage before;
	int status = 0, rc = 0;
	double due_s = 0;

	getrusage(RUSAGE_CHILDREN, &before);
	if (session) {
		while (rc == 0)
			rc = pem_session__poll(session, act(agent, &due_s), &status);
		getrusage(RUSAGE_CHILDREN, used);
		timersub(&used->ru_utime, &before.ru_utime, &used->ru_utime);
		timersub(&used->ru_stime, &before.ru_stime, &used->ru_stime);
		used->ru_minflt -= before.ru_minflt;
		used->ru_majflt -= before.ru_majflt;
		if (rc > 0)
			return status;
		/* The session failed: the command is waited for without it. */
	}
	while (wait4(pid, &status, 0, used) < 0 && errno == EINTR)
		;
	return status;
}

int agent_command__run(struct pem_agent *agent, struct pem_session *session,
		       struct pem_error *error)
{
	struct dispositions old;
	struct rusage used;
	double began_s;
	pid_t pid;
	int status;

	forget_own_peak();
	pending = interrupted = 0;
	pass_signals(&old);
	began_s = now_s();
	pid = session ? start_observed(agent, session, error) : start_alone(agent, error);
	if (pid < 0) {
		restore_signals(&old);
		return pid;
	}
	command = pid;
	if (pending)
		kill(pid, pending);
	if (!session)
		act_until_end(agent, pid);
	agent->end.waited_s = session ? 0 : wait_and_ask(pid);
	status = wait_for(agent, pid, session, &used);
	agent->end.seconds = now_s() - began_s;
	agent->end.waited_s = fmin(agent->end.waited_s, agent->end.seconds);
	command = 0;
	restore_signals(&old);
	agent->end.interrupted = interrupted;
	agent->end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	agent->end.user_s = seconds(used.ru_utime);
	agent->end.system_s = seconds(used.ru_stime);
	agent->end.minor_faults = used.ru_minflt;
	agent->end.major_faults = used.ru_majflt;
	agent->end.peak_kib = used.ru_maxrss;
	return 0;
}
