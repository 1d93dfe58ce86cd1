// SPDX-License-Identifier: MIT
/*
 * command.c - what record and stat share: choosing events, running a command under a session,
 * signals
 */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOPDOWN_EVENTS "HW::TopDown"
#define PAGES_EVENTS "OS::Pages::*"
/* Either is enough; programs and machines have one, the other, or both. */
#define MAP_EVENT "HW::HWPerf::Map"
/* As programs see it. Only programs that raise other events are asked for it. */
#define OBJECT_EVENT "APP::Loader::Object"
#define READING_EVENT "HW::HWPerf::HPMsInThread"
/* The calls of stacks that allocations name. */
#define FRAME_EVENT "APP::Stack::Frame"
/* A child has what its parent has in memory. */
#define FORK_EVENT "OS::Process::Fork"

/* --- events --- */

/*
 * Add the names of the counters that "topdown" stands for: those of its class that libpfm4 knows
 * for this processor, and cycles. Returns how many there are; 0: this processor has none.
 */
static size_t add_topdown(struct pem_session *session, const char **names)
{
	const struct pem_model *model = pem_session__model(session);
	size_t i, n = 0;

	for (i = 0; i < pem_model__count(model); i++) {
		struct pem_counted_as as = {.size = sizeof(as)};
		const struct pem_event *event = pem_model__event(model, i);

		if (pem_event__matches(event, TOPDOWN_EVENTS) == 1 &&
		    pem_session__counted_as(session, event, &as) == 0)
			names[n++] = event->name;
	}
	if (n != 0)
		names[n++] = "HW::HWPerf::Cycles";
	return n;
}

/*
 * Add the patterns' names, and those that "ipc" and "topdown" stand for. Returns how many there
 * are; 0 with errno and error: "topdown" is among them, and this processor has no such counters.
 */
static size_t add_patterns(struct pem_session *session, const struct cli_patterns *patterns,
			   const char **names, struct pem_error *error)
{
	size_t i, n = 0, found = 0;

	for (i = 0; i < patterns->count; i++) {
		/* As in front of an @, see counted.c. */
		if (strcmp(patterns->text[i], "ipc") == 0 ||
		    strcmp(patterns->text[i], "cpi") == 0) {
			names[n++] = "HW::HWPerf::Cycles";
			names[n++] = "HW::HWPerf::Instructions";
			continue;
		}
		if (strcmp(patterns->text[i], "topdown") != 0) {
			names[n++] = patterns->text[i];
			continue;
		}
		if (found != 0)
			continue;
		found = add_topdown(session, names + n);
		n += found;
		if (found != 0)
			continue;
		snprintf(error->text, sizeof(error->text),
			 "topdown: libpfm4 knows this processor for none of those whose slots pem "
			 "can count; 'pem list -v TopDown' tells which these are");
		errno = ENOTSUP;
		return 0;
	}
	return n;
}

/* Does no event that is known so far match a pattern, which is not one of probes? */
static bool is_unknown(struct pem_session *session, const char *pattern)
{
	const struct pem_model *model = pem_session__model(session);
	const char *colon = strchr(pattern, ':');
	size_t i;

	if (colon != NULL && colon[1] != ':')
		return false;
	for (i = 0; i < pem_model__count(model); i++)
		if (pem_event__matches(pem_model__event(model, i), pattern) != 0)
			return false;
	return true;
}

struct pem_event_set *cli_event_set__new(struct pem_session *session, const char *const *patterns,
					 size_t count, struct pem_error *error)
{
	struct pem_event_set *set = pem_event_set__new(session, patterns, count, error);
	int code = errno;
	size_t i, end;

	if (set != NULL)
		return set;
	for (i = 0; code == ENOENT && i < count; i++)
		if (is_unknown(session, patterns[i]))
			break;
	if (code == ENOENT && i < count) {
		end = strlen(error->text);
		snprintf(error->text + end, sizeof(error->text) - end,
			 ": 'pem list WORD' searches names and descriptions; specs of your own are "
			 "found beside the program, in the current folder and by PEM_SPEC_PATH; "
			 "programs that a shell or env starts are not searched: name the program "
			 "itself, or its spec's folder there");
	}
	errno = code;
	return NULL;
}

bool cli_event_set__has_stubs(const struct pem_event_set *set)
{
	const struct pem_event *event;
	size_t i;

	for (i = 0; i < pem_event_set__count(set); i++) {
		event = pem_event_set__event(set, i);
		if (event->source_kind == PEM_SOURCE_STUB && strcmp(event->name, READING_EVENT))
			return true;
	}
	return false;
}

static struct pem_event_set *choose_events(struct pem_session *session,
					   const struct cli_patterns *patterns, bool samples,
					   struct pem_error *error)
{
	const struct pem_model *model = pem_session__model(session);
	size_t i, n = 0, count = pem_model__count(model);
	struct pem_event_set *set;
	const char **names;

	/* "topdown" is expanded once, to some of the model's; "ipc" to two each time. */
	names = calloc(count + 2 * patterns->count +
			       sizeof(patterns->also) / sizeof(patterns->also[0]) + 1,
		       sizeof(*names));
	if (names == NULL) {
		snprintf(error->text, sizeof(error->text), "no memory for %zu events", count);
		return NULL;
	}
	for (i = 0; i < sizeof(patterns->also) / sizeof(patterns->also[0]); i++)
		if (patterns->also[i] != NULL)
			names[n++] = patterns->also[i];
	if (patterns->count != 0) {
		size_t added = add_patterns(session, patterns, names + n, error);

		if (added == 0) {
			free(names);
			return NULL;
		}
		n += added;
	}
	/* also events of programs that the catalogue lacks */
	if (cli_patterns__has_usual(patterns))
		names[n++] = "APP";
	for (i = 0; cli_patterns__has_usual(patterns) && i < count; i++) {
		const struct pem_event *event = pem_model__event(model, i);
		bool counter =
			cli_event__is_counter(event) || event->source_kind == PEM_SOURCE_SAMPLE;

		if ((event->source_kind == PEM_SOURCE_SAMPLE && !samples) ||
		    event->level > PEM_LEVEL_INFO || strcmp(event->layer, "APP") == 0)
			continue;
		/*
		 * If a kernel event is not available, it leaves a gap with its reason in the trace.
		 * A counter is then left out.
		 */
		if (!counter || pem_session__can_deliver(session, event, NULL) == 1)
			names[n++] = event->name;
	}
	set = cli_event_set__new(session, names, n, error);
	free(names);
	return set;
}

struct pem_event_set *cli_choose_events(struct pem_session *session,
					const struct cli_patterns *patterns, bool samples,
					struct pem_error *error)
{
	struct pem_event_set *set = choose_events(session, patterns, samples, error);

	return set == NULL || cli_patterns__bind(patterns, set, error) < 0 ? NULL : set;
}

static bool samples_pages(const struct pem_event_set *set)
{
	size_t i;

	for (i = 0; i < pem_event_set__count(set); i++)
		if (pem_event__matches(pem_event_set__event(set, i), PAGES_EVENTS))
			return true;
	return false;
}

static bool has_objects(const struct pem_event_set *set)
{
	size_t i;

	for (i = 0; i < pem_event_set__count(set); i++)
		if (pem_event_set__event(set, i)->meaning == PEM_MEANS_OBJECT)
			return true;
	return false;
}

/* Does the set have samples of the CPU that can be had, but not what lies in memory? */
static bool lacks_objects(struct pem_session *session, const struct pem_event_set *set)
{
	bool lacks = false;
	size_t i;

	for (i = 0; i < pem_event_set__count(set) && !has_objects(set); i++) {
		const struct pem_event *event = pem_event_set__event(set, i);

		lacks |= event->meaning == PEM_MEANS_SAMPLE &&
			 pem_event__field_by_role(event, PEM_ROLE_CODE) >= 0 &&
			 pem_session__can_deliver(session, event, NULL) == 1;
	}
	return lacks;
}

/* Is the set to have stacks that its events name by a number? */
static bool wants_frames(const struct cli_patterns *patterns, const struct pem_event_set *set)
{
	size_t i;

	for (i = 0; patterns->has_stacks && i < pem_event_set__count(set); i++)
		if (pem_event__field_by_role(pem_event_set__event(set, i), PEM_ROLE_STACK) >= 0)
			return true;
	return false;
}

struct pem_event_set *cli_choose_logged(struct pem_session *session, struct cli_patterns *patterns,
					bool pages, struct pem_error *error)
{
	struct pem_event_set *set = cli_choose_events(session, patterns, true, error);

	if (set == NULL)
		return NULL;
	if (pages && !samples_pages(set))
		patterns->also[1] = PAGES_EVENTS;
	if (patterns->all_where == NULL && lacks_objects(session, set)) {
		patterns->also[3] = MAP_EVENT;
		if (cli_event_set__has_stubs(set))
			patterns->also[4] = OBJECT_EVENT;
		patterns->also[6] = FORK_EVENT;
	}
	if (wants_frames(patterns, set)) {
		patterns->also[12] = FRAME_EVENT;
		if (patterns->all_where == NULL && !has_objects(set))
			patterns->also[4] = OBJECT_EVENT;
	}
	if (patterns->also[1] == NULL && patterns->also[3] == NULL && patterns->also[12] == NULL)
		return set;
	pem_event_set__free(set);
	return cli_choose_events(session, patterns, true, error);
}

/* --- the command --- */

/* Returns 0, or the -errno that execve would return for this file. */
static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) == 0 ? 0 : -errno;
}

int cli_command__check(const char *name, char *file, size_t bytes)
{
	const char *path = getenv("PATH");
	int found = -ENOENT, rc;

	if (strchr(name, '/') != NULL) {
		snprintf(file, bytes, "%s", name);
		found = check_file(name);
	} else {
		if (path == NULL)
			path = "/usr/local/bin:/bin:/usr/bin";
		while (found != 0) {
			size_t n = strcspn(path, ":");

			snprintf(file, bytes, "%.*s/%s", n != 0 ? (int)n : 1, n != 0 ? path : ".",
				 name);
			rc = check_file(file);
			/*
			 * A folder that this user may not search has no command for this user. A
			 * shell says so, too.
			 */
			if (rc == 0 || (rc == -EACCES && access(file, F_OK) == 0))
				found = rc;
			if (path[n] == '\0')
				break;
			path += n + 1;
		}
	}
	if (found == 0)
		return CLI_DONE;
	if (found == -ENOENT || found == -ENOTDIR)
		return cli_error(CLI_NOT_FOUND, "command not found: %s", name);
	return cli_error(CLI_NOT_EXECUTABLE, "cannot execute %s: %s", name, strerror(-found));
}

/* --- signals --- */

static const int forwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
#define FORWARDED (sizeof(forwarded) / sizeof(forwarded[0]))

/*
 * A signal handler has no argument. These members are set before and after the run. During the run
 * only the handler sets them.
 */
static struct {
	struct pem_session *volatile session;
	volatile pid_t pid;
	volatile sig_atomic_t count;
	volatile sig_atomic_t limit; /* after this many signals the work ends at once */
	volatile sig_atomic_t last;
} on_signal;

static void handle(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	on_signal.last = number;
	if (++on_signal.count >= on_signal.limit) {
		if (on_signal.session != NULL)
			pem_session__interrupt(on_signal.session);
	} else if (info->si_code <= 0 && on_signal.pid > 0) {
		/*
		 * If a process sent the signal to us, pass it on. A signal of the terminal has
		 * reached the command already.
		 */
		kill(on_signal.pid, number);
	}
	errno = saved;
}

static void install(struct pem_session *session, int limit)
{
	struct sigaction old,
		action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
	size_t i;

	on_signal.session = session;
	on_signal.limit = limit;
	sigemptyset(&action.sa_mask);
	for (i = 0; i < FORWARDED; i++) {
		sigaction(forwarded[i], NULL, &old);
		/* A signal that was ignored (nohup) stays ignored. */
		if (old.sa_handler != SIG_IGN)
			sigaction(forwarded[i], &action, NULL);
	}
}

void cli_run__prepare(void)
{
	install(NULL, 2);
}

int cli_run__not_started(int rc, const struct pem_error *error)
{
	return cli_error(rc == -ENOENT                     ? CLI_NOT_FOUND
			 : rc == -EACCES || rc == -ENOEXEC ? CLI_NOT_EXECUTABLE
							   : CLI_FAILED,
			 "%s", *error->text != '\0' ? error->text : strerror(-rc));
}

pid_t cli_run__start(struct cli_run *run, char *const argv[], const struct pem_run_options *options,
		     struct pem_error *error)
{
	install(run->session, 2);
	run->pid = pem_session__run(run->session, argv, options, error);
	if (run->pid > 0)
		on_signal.pid = run->pid;
	if (run->pid > 0 && on_signal.count > 0)
		kill(run->pid, on_signal.last);
	return run->pid;
}

static void work(struct cli_run *run)
{
	uint64_t step_ns = (uint64_t)run->interval_ms * 1000000, next = cli_now_ns() + step_ns;

	while (on_signal.count < on_signal.limit) {
		uint64_t now = cli_now_ns();
		int rc;

		if (now >= next) {
			if (run->tick != NULL)
				run->tick(run->arg);
			/*
			 * After a stall continue with the next full step, without a burst of short
			 * steps.
			 */
			next += (now - next) / step_ns * step_ns + step_ns;
			continue;
		}
		rc = pem_session__poll(run->session, (int)((next - now) / 1000000) + 1,
				       &run->wait_status);
		if (rc == 1 || (run->has_ended != NULL && run->has_ended(run->ended_arg))) {
			run->ended = true;
			break;
		}
		if (rc < 0 && rc != -EINTR) {
			run->error = rc;
			break;
		}
	}
	/*
	 * The handlers stay installed and do nothing: a third signal must not prevent that the
	 * trace is finished.
	 */
	on_signal.pid = 0;
	on_signal.session = NULL;
}

void cli_run__wait(struct cli_run *run)
{
	work(run);
	if (!run->ended && on_signal.count >= 2)
		run->stopped_by = on_signal.last;
}

void cli_run__go_first(void)
{
	errno = 0;
	if (getpriority(PRIO_PROCESS, 0) == 0 && errno == 0)
		setpriority(PRIO_PROCESS, 0, CLI_RECORDER_NICE);
}

void cli_run__catch(struct pem_session *session)
{
	install(session, 1);
}

void cli_run__watch(struct cli_run *run)
{
	work(run);
	run->ended = run->error == 0;
}

int cli_status_of_wait(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
}

int cli_run__status(const struct cli_run *run)
{
	if (run->ended)
		return cli_status_of_wait(run->wait_status);
	return run->stopped_by != 0 ? 128 + run->stopped_by : CLI_FAILED;
}

void cli_run__explain(const struct cli_run *run, const char *command)
{
	if (run->ended && WIFSIGNALED(run->wait_status))
		cli_say("%s was ended by signal %d (%s)", command, WTERMSIG(run->wait_status),
			strsignal(WTERMSIG(run->wait_status)));
	else if (run->stopped_by != 0)
		cli_say("stopped at the second signal; %s (process %d) may still run", command,
			(int)run->pid);
	else if (run->error != 0)
		cli_error(0, "watching %s failed: %s", command, strerror(-run->error));
}
