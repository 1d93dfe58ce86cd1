/* SPDX-License-Identifier: MIT */
/* run.c - one run of a configuration: configure, start, run, measure, end */
#include "trial/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_PAUSE_NS 50000000
#define END_S 10.0 /* how long a server may take to end */

struct attempt {
	const struct trial *trial;
	const struct trial_experiment *experiment;
	const uint32_t *levels;
	struct trial_outcome *outcome;
	struct pem_error *error;
	struct trial_readings *readings;
	struct pem_session *session;
	char scratch[PATH_MAX];
	pid_t server; /* 0: none runs */
};

static int fail(struct attempt *attempt, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Note why the run failed, unless a reason is known. */
static int fail(struct attempt *attempt, const char *format, ...)
{
	struct trial_outcome *outcome = attempt->outcome;
	va_list args;

	va_start(args, format);
	if (!outcome->reason[0])
		vsnprintf(outcome->reason, sizeof(outcome->reason), format, args);
	va_end(args);
	outcome->outcome = PEM_EXPLORE_FAILED;
	return 1;
}

/* --- commands --- */

static const char *signal_name(int number)
{
	const char *name = sigabbrev_np(number);

	return name ? name : "an unknown signal";
}

/* Why a command failed; "": it did not. */
static void describe(const struct attempt *attempt, const struct trial_ended *ended, char *text,
		     size_t bytes)
{
	const struct trial_experiment *e = attempt->experiment;

	text[0] = '\0';
	if (ended->how == TRIAL_TOO_LONG)
		snprintf(text, bytes, "it did not end within %g s", e->limit_s);
	else if (ended->how == TRIAL_TOO_BIG)
		snprintf(text, bytes, "the free space of the disk fell by more than %llu MiB",
			 (unsigned long long)(e->disk_bytes >> 20));
	else if (ended->how == TRIAL_INTERRUPTED)
		snprintf(text, bytes, "it was interrupted");
	else if (ended->how == TRIAL_ENDED && WIFSIGNALED(ended->status))
		snprintf(text, bytes, "it was ended by SIG%s: %.100s",
			 signal_name(WTERMSIG(ended->status)), ended->last);
	else if (ended->how == TRIAL_ENDED && WEXITSTATUS(ended->status))
		snprintf(text, bytes, "its exit status was %d: %.100s", WEXITSTATUS(ended->status),
			 ended->last);
}

/* Run one of the commands around the one that is measured. 0; 1: it failed; -errno. */
static int run_aside(struct attempt *attempt, const char *what, const char *command,
		     volatile const int *interrupted)
{
	const struct trial_experiment *e = attempt->experiment;
	struct trial_launch launch = {.folder = e->folder,
				      .scratch = attempt->scratch,
				      .limit_s = e->limit_s,
				      .disk_bytes = e->disk_bytes,
				      .interrupted = interrupted};
	struct trial_ended ended;
	char *text = trial_words__command(e, attempt->levels, command, false, attempt->scratch);
	char why[160];
	int rc;

	if (!text)
		return -ENOMEM;
	launch.command = text;
	rc = trial_launch__run(&launch, &ended, attempt->error);
	free(text);
	if (rc)
		return rc;
	describe(attempt, &ended, why, sizeof(why));
	attempt->outcome->interrupted |= ended.how == TRIAL_INTERRUPTED;
	return why[0] ? fail(attempt, "%s: %.140s", what, why) : 0;
}

/*
 * Did the server fail? Another one may answer in its place. One that goes into the background ends
 * well.
 */
static bool has_server_failed(struct attempt *attempt)
{
	siginfo_t ended = {0};

	if (!attempt->server ||
	    waitid(P_PID, (id_t)attempt->server, &ended, WEXITED | WNOHANG | WNOWAIT) ||
	    !ended.si_pid || (ended.si_code == CLD_EXITED && !ended.si_status))
		return false;
	attempt->outcome->reason[0] = '\0';
	fail(attempt, "the server ended before the command did: %s %d",
	     ended.si_code == CLD_EXITED ? "its exit status was" : "by signal", ended.si_status);
	return true;
}

/* Start the server and wait until it is ready. */
static int start_server(struct attempt *attempt)
{
	const struct trial_experiment *e = attempt->experiment;
	const struct timespec pause = {.tv_nsec = READY_PAUSE_NS};
	struct trial_launch launch = {.folder = e->folder,
				      .cgroup = settings_agent__cgroup(attempt->trial->settings)};
	char *text = trial_words__command(e, attempt->levels, e->start, true, attempt->scratch);
	double began_s = trial_now_s();
	char why[160];
	pid_t pid;
	int rc;

	if (!text)
		return -ENOMEM;
	launch.command = text;
	pid = trial_launch__start(&launch, attempt->error);
	free(text);
	if (pid < 0)
		return pid;
	attempt->server = pid;
	for (;;) {
		rc = e->ready ? run_aside(attempt, "ready", e->ready, attempt->trial->interrupted)
			      : 0;
		if (rc < 0 || attempt->outcome->interrupted)
			return rc;
		if (has_server_failed(attempt))
			return 1;
		if (!rc)
			return 0;
		snprintf(why, sizeof(why), "%s", attempt->outcome->reason);
		attempt->outcome->reason[0] = '\0';
		if (trial_now_s() - began_s > e->limit_s)
			return fail(attempt, "the server was not ready within %g s: %.100s",
				    e->limit_s, why);
		/* It is asked again. */
		attempt->outcome->outcome = PEM_EXPLORE_MEASURED;
		nanosleep(&pause, NULL);
	}
}

/* --- the command that is measured --- */

/* The other half of a pair has ended. */
static int lose_other(struct attempt *attempt)
{
	return fail(attempt, "%s", TRIAL_HALF_LOST);
}

/* With each line, and each tick: is it worth going on? */
static bool on_line(const char *line, double time_s, void *arg)
{
	struct attempt *attempt = arg;
	const struct trial_experiment *e = attempt->experiment;
	struct pem_explore_record record;
	size_t count = trial_readings__line(attempt->readings, line, time_s);

	if (!line && attempt->trial->half &&
	    trial_half__look(attempt->trial->half) == TRIAL_HALF_GONE)
		return true;
	while (trial_readings__next(attempt->readings, &record)) {
		if (attempt->trial->record &&
		    attempt->trial->record(&record, attempt->trial->arg)) {
			attempt->outcome->outcome = PEM_EXPLORE_STOPPED;
			return true;
		}
	}
	return e->records && count >= e->records;
}

static void drop(enum pem_log_level level, const char *text, void *arg)
{
	struct attempt *attempt = arg;

	/* Why a source can't count is why the metric never came. */
	if (level <= PEM_LOG_WARNING && !attempt->outcome->reason[0])
		snprintf(attempt->outcome->reason, sizeof(attempt->outcome->reason), "%s", text);
}

static int open_session(struct attempt *attempt)
{
	const struct trial_experiment *e = attempt->experiment;
	const struct pem_session_options options = {
		.size = sizeof(options), .log = drop, .log_arg = attempt};

	if (!trial_experiment__needs_session(e))
		return 0;
	attempt->session = pem_session__open(&options, attempt->error);
	if (!attempt->session)
		return -errno;
	/* Events of its own; it need not have any. */
	if (attempt->trial->program)
		pem_session__describe(attempt->session, PEM_ANY, attempt->trial->program, NULL);
	return 0;
}

/* Does the other half of a pair need no company any more? */
static bool is_other_over(const char *line, double time_s, void *arg)
{
	const struct attempt *attempt = arg;

	(void)time_s;
	return !line && trial_half__look(attempt->trial->half) != TRIAL_HALF_RUNS;
}

/* Run the command again, unmeasured, as long as the other half is measured. */
static int accompany(struct attempt *attempt, const char *command)
{
	const struct trial *trial = attempt->trial;
	const struct trial_launch launch = {.command = command,
					    .folder = attempt->experiment->folder,
					    .scratch = attempt->scratch,
					    .limit_s = attempt->experiment->limit_s,
					    .disk_bytes = attempt->experiment->disk_bytes,
					    .interrupted = trial->interrupted,
					    .line = is_other_over,
					    .arg = attempt};
	struct trial_ended ended = {.how = TRIAL_ENDED};
	int rc = 0;

	trial_half__tell(trial->half);
	/* A command that can't be run again leaves the other one alone. */
	while (!rc && ended.how == TRIAL_ENDED && !ended.status &&
	       trial_half__look(trial->half) == TRIAL_HALF_RUNS)
		rc = trial_launch__run(&launch, &ended, attempt->error);
	if (rc)
		return rc;
	return trial_half__wait(trial->half, trial->interrupted) ? 0 : lose_other(attempt);
}

/* Begin to measure when the other half does. */
static int meet(struct attempt *attempt)
{
	const struct trial *trial = attempt->trial;

	trial_half__tell(trial->half);
	return trial_half__wait(trial->half, trial->interrupted) ? 0 : lose_other(attempt);
}

static int run_command(struct attempt *attempt, const char *command, bool is_measured)
{
	const struct trial_experiment *e = attempt->experiment;
	struct trial_launch launch = {.command = command,
				      .folder = e->folder,
				      .cgroup = settings_agent__cgroup(attempt->trial->settings),
				      .scratch = attempt->scratch,
				      .limit_s = e->limit_s,
				      .duration_s = e->duration_s,
				      .disk_bytes = e->disk_bytes,
				      .interrupted = attempt->trial->interrupted,
				      .line = is_measured ? on_line : NULL,
				      .arg = attempt,
				      .session = is_measured ? attempt->session : NULL,
				      .no_preload = is_measured &&
						    !trial_readings__have_stubs(attempt->readings)};
	struct trial_outcome *outcome = attempt->outcome;
	struct trial_ended ended;
	char why[160];
	int rc = trial_launch__run(&launch, &ended, attempt->error);

	if (rc)
		return rc;
	outcome->status =
		WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : 128 + WTERMSIG(ended.status);
	describe(attempt, &ended, why, sizeof(why));
	outcome->interrupted |= ended.how == TRIAL_INTERRUPTED;
	if (why[0] && !(e->any_status && ended.how == TRIAL_ENDED && WIFEXITED(ended.status))) {
		outcome->reason[0] = '\0';
		return fail(attempt, "%s", why);
	}
	if (is_measured &&
	    trial_readings__end(attempt->readings, &ended, outcome->values, attempt->error)) {
		rc = fail(attempt, "%s", attempt->error->text);
		attempt->error->text[0] = '\0';
		return rc;
	}
	outcome->reason[0] = '\0';
	return 0;
}

static int measure(struct attempt *attempt)
{
	const struct trial_experiment *e = attempt->experiment;
	char *command =
		trial_words__command(e, attempt->levels, e->command, true, attempt->scratch);
	uint32_t i;
	int rc = command ? 0 : -ENOMEM;

	for (i = 0; !rc && i < e->warm_ups; i++)
		rc = run_command(attempt, command, false);
	if (!rc)
		rc = open_session(attempt);
	if (!rc) {
		attempt->readings = trial_readings__begin(e, attempt->session, attempt->error);
		rc = attempt->readings ? 0 : -errno;
	}
	if (!rc && attempt->trial->half)
		rc = meet(attempt);
	if (!rc)
		rc = run_command(attempt, command, true);
	if (!rc && attempt->trial->half)
		rc = accompany(attempt, command);
	trial_readings__free(attempt->readings);
	pem_session__close(attempt->session);
	attempt->readings = NULL;
	attempt->session = NULL;
	free(command);
	return rc;
}

/* --- the whole --- */

static int configure(struct attempt *attempt, enum settings_phase phase)
{
	const struct trial_experiment *e = attempt->experiment;
	const char *values[TRIAL_PARAMETERS_MAX];
	struct settings_refusal refusal = {.text = ""};
	int rc;

	trial_experiment__values(e, attempt->levels, values);
	rc = settings_agent__apply(attempt->trial->settings, phase, e->targets, values,
				   e->space->view.parameter_count, &refusal, attempt->error);
	if (rc == 1) {
		fail(attempt, "%s", refusal.text);
		attempt->outcome->outcome = PEM_EXPLORE_REFUSED;
		attempt->outcome->refused = refusal.target;
	}
	return rc;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	remove(path);
	return 0;
}

static void note_left(struct attempt *attempt, const char *processes)
{
	struct trial_outcome *outcome = attempt->outcome;

	if (processes[0] && !outcome->reason[0])
		snprintf(outcome->reason, sizeof(outcome->reason),
			 "it left processes, which were ended: %s", processes);
}

static void end_server(struct attempt *attempt)
{
	const struct timespec pause = {.tv_nsec = READY_PAUSE_NS / 5};
	double asked_s = trial_now_s();

	if (!attempt->server)
		return;
	trial_launch__ask(attempt->server);
	while (!waitpid(attempt->server, NULL, WNOHANG) && trial_now_s() - asked_s < END_S)
		nanosleep(&pause, NULL);
}

static int attempt_all(struct attempt *attempt)
{
	const struct trial_experiment *e = attempt->experiment;
	const struct trial *trial = attempt->trial;
	int rc = 0;

	/* Two would make the same files. */
	if (trial->half && trial->half->is_second &&
	    !trial_half__wait(trial->half, trial->interrupted))
		return lose_other(attempt);
	if (e->prepare)
		rc = run_aside(attempt, "prepare", e->prepare, trial->interrupted);
	if (!rc && trial->half && !trial->half->is_second)
		trial_half__tell(trial->half);
	if (!rc)
		rc = configure(attempt, SETTINGS_BEFORE_START);
	if (!rc && e->start)
		rc = start_server(attempt);
	if (!rc)
		rc = configure(attempt, SETTINGS_AFTER_START);
	return rc ? rc : measure(attempt);
}

static int make_scratch(struct attempt *attempt)
{
	snprintf(attempt->scratch, sizeof(attempt->scratch), "%s/run", attempt->trial->scratch);
	if (!mkdir(attempt->scratch, 0700))
		return 0;
	snprintf(attempt->error->text, sizeof(attempt->error->text),
		 "no folder for a run can be made, %.200s: %s", attempt->scratch, strerror(errno));
	return -errno;
}

void trial__remove(const char *folder)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

int trial__run(const struct trial *trial, const uint32_t *levels, struct trial_outcome *outcome,
	       struct pem_error *error)
{
	struct attempt attempt = {.trial = trial,
				  .experiment = trial->experiment,
				  .levels = levels,
				  .outcome = outcome,
				  .error = error};
	struct pem_error why = {.text = ""};
	/* A policy's process, for one, began before. */
	const uint64_t began_ticks = trial_launch__now_ticks();
	double began_s = trial_now_s();
	char left[100];
	int rc;

	memset(outcome, 0, sizeof(*outcome));
	rc = make_scratch(&attempt);
	if (rc)
		return rc;
	rc = attempt_all(&attempt);
	if (rc >= 0 && !outcome->interrupted)
		has_server_failed(&attempt);
	/* Its server ends with this run. */
	if (attempt.server && settings_agent__restore(trial->settings, SETTINGS_AFTER_START, &why))
		fail(&attempt, "%s", why.text);
	if (rc >= 0 && attempt.experiment->end) {
		const uint32_t before = outcome->outcome;

		/* That a figure was measured stays true if the end fails, and its reason is told.
		 */
		run_aside(&attempt, "end", attempt.experiment->end, NULL);
		if (before == PEM_EXPLORE_MEASURED || before == PEM_EXPLORE_STOPPED)
			outcome->outcome = before;
	}
	end_server(&attempt);
	trial_launch__end_all(began_ticks, left, sizeof(left));
	note_left(&attempt, left);
	trial__remove(attempt.scratch);
	outcome->seconds = trial_now_s() - began_s;
	return rc < 0 ? rc : 0;
}
