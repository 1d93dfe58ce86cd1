/* SPDX-License-Identifier: MIT */
/*
 * gather.c - records, of a trace or while they happen, to stages and their rates
 *
 * While they happen: the kernel's records of system calls and of the scheduler come by an
 * asynchronous callback, on a thread of the session's. Nothing is written to a disk, and memory
 * grows by processes and queues alone.
 */
#include "program/threads.h"

#include "call_kinds.h"
#include "processes.h"

#include <pem/clock.h>
#include <pem/streams.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * What a pass needs to tell who waits in which call, on what. Without the first four nothing is
 * known: calls, the files that they are on, and who runs.
 */
#define NEEDED 4u
static const char *const events[] = {
	"OS::Syscall::Enter", "OS::Syscall::Exit",      "OS::Syscall::File",
	"OS::Sched::Switch",  "OS::Syscall::Ongoing",   "OS::Sched::Wakeup",
	"OS::Sched::Waking",  "OS::Process::Fork",      "OS::Process::Exec",
	"OS::Process::Exit",  "OS::Process::Arguments", "OS::Process::ThreadState",
};
#define EVENTS (sizeof(events) / sizeof(*events))
#define PARTS (PEM_PASS_BLOCKS | PEM_PASS_MESSAGES) /* that a pass leaves out */

static int begin(struct rates_run *run)
{
	if (run->seen)
		return CLI_DONE;
	run->threads = rates_threads__new(run->request);
	run->observation = rate_observation__new(rates_figures__served, run);
	if (!run->threads || !run->observation)
		return cli_error(CLI_FAILED, "no memory for an observation");
	run->seen = rate_observation__seen(run->observation);
	return CLI_DONE;
}

void rates_run__free(struct rates_run *run)
{
	settings_pipes__free(run->pipes);
	rates_figures__free(run);
	rates_threads__free(run->threads);
	rate_observation__free(run->observation);
	pem_pass__free(run->pass);
	pem_trace__close(run->trace);
	pem_session__close(run->session);
}

/* --- a trace --- */

/* Does the trace have what is needed? Prints what it lacks. */
static int check_trace(struct pem_trace *trace, const char *folder)
{
	const struct pem_model *model = pem_trace__model(trace);
	size_t i;

	for (i = 0; i < NEEDED; i++)
		if (!pem_model__by_name(model, events[i]))
			return cli_error(CLI_WRONG_INPUT,
					 "%s has no %s: record with -e "
					 "OS::Syscall,OS::Sched,OS::Process as root",
					 folder, events[i]);
	return CLI_DONE;
}

static int read_trace(struct rates_run *run)
{
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	struct pem_pass_unknown unknown = {.size = sizeof(unknown)};
	struct pem_error error = {{0}};
	uint64_t losses = 0;
	int rc, taken = 0;

	while (!taken && (rc = pem_pass__next(run->pass, &record, &around, &error)) != 0) {
		if (rc == -ENOMEM)
			return cli_fail(rc, &error);
		if (rc < 0) {
			cli_say("%s", error.text);
			rate_observation__lose(run->observation);
			run->lost++;
			continue;
		}
		pem_pass__unknown(run->pass, &unknown);
		if (unknown.losses != losses)
			rate_observation__lose(run->observation);
		losses = unknown.losses;
		run->last_ns = record.time_ns;
		taken = rate_observation__take(run->observation, &record, &around);
	}
	run->lost += losses;
	rate_observation__update(run->observation, run->last_ns);
	return taken ? cli_error(CLI_FAILED, "no memory to follow the pipeline") : CLI_DONE;
}

int rates_gather__trace(struct rates_run *run, const char *folder)
{
	struct pem_pass_options options = {.size = sizeof(options), .without = PARTS};
	struct pem_error error = {{0}};
	int status = CLI_DONE;

	run->trace = cli_trace__open(folder, &status);
	if (!run->trace)
		return status;
	status = check_trace(run->trace, folder);
	if (status == CLI_DONE)
		status = begin(run);
	if (status == CLI_DONE) {
		run->pass = pem_pass__new(run->trace, &options, &error);
		status = run->pass ? read_trace(run) : cli_fail(-errno, &error);
	}
	return status;
}

/* --- while it happens --- */

static void take_record(const struct pem_record *record, void *arg)
{
	struct pem_around around = {.size = sizeof(around)};
	struct pem_record copy = *record;
	struct rates_run *run = arg;
	int rc;

	if (!run->is_first_taken)
		cli_run__go_first();
	run->is_first_taken = true;
	pthread_mutex_lock(&run->lock);
	run->last_clock = record->clock;
	rc = run->error ? run->error : pem_pass__take(run->pass, &copy, &around, NULL);
	if (!rc)
		rc = rate_observation__take(run->observation, &copy, &around);
	run->last_ns = copy.time_ns;
	run->error = rc;
	pthread_mutex_unlock(&run->lock);
}

/* Learn of losses. The lock is held. */
static void count_losses(struct rates_run *run)
{
	struct pem_callback_counts counts = {.size = sizeof(counts)};

	if (pem_callback__counts(run->callback, &counts) || counts.lost == run->lost)
		return;
	run->lost = counts.lost;
	rate_observation__lose(run->observation);
	if (pem_pass__lose(run->pass))
		run->error = -ENOMEM;
}

/* Name stages that were there before the first record. The lock is held. */
static void name_stages(struct rates_run *run)
{
	size_t i;

	for (i = 0; i < run->seen->stage_count; i++) {
		const struct rate_process *stage = run->seen->stages[i];
		char name[64];

		if (*stage->process->name || stage->has_ended)
			continue;
		pem_proc__name((pid_t)stage->process->pid, name, sizeof(name));
		if (*name)
			pem_pass__call(run->pass, stage->process->pid, 0, name);
	}
}

static void tick(void *arg)
{
	struct rates_run *run = arg;
	uint64_t now_ns = cli_now_ns();

	/* Records are taken in the meantime. */
	if (run->pipes)
		settings_pipes__look(run->pipes);
	pthread_mutex_lock(&run->lock);
	if (rates_threads__tick(run->threads))
		run->error = -ENOMEM;
	count_losses(run);
	name_stages(run);
	if (now_ns - run->shown_ns >= run->request->interval_ms * 1000000) {
		run->shown_ns = now_ns;
		rates_report__view(run);
	}
	pthread_mutex_unlock(&run->lock);
}

int rates_gather__end(struct rates_run *run)
{
	uint64_t end = pem_clock();

	if (!run->callback)
		return CLI_DONE;
	pem_callback__settle(run->callback);
	pthread_mutex_lock(&run->lock);
	/* Before it is disabled: what waits then is later than the end, and counts as lost. */
	count_losses(run);
	/* Stages that have not ended do what they do until now. */
	if (end > run->last_clock && run->last_clock)
		run->last_ns +=
			(uint64_t)((double)(end - run->last_clock) * 1e9 / (double)pem_clock__hz());
	rate_observation__update(run->observation, run->last_ns);
	if (!rate_observation__arrange(run->observation))
		name_stages(run);
	pthread_mutex_unlock(&run->lock);
	pem_callback__disable(run->callback);
	pem_callback__unregister(run->callback);
	run->callback = NULL;
	return run->error ? cli_error(CLI_FAILED, "no memory to follow the pipeline") : CLI_DONE;
}

static int watch(struct rates_run *observed)
{
	const struct rates_request *request = observed->request;
	struct pem_run_options options = {
		.size = sizeof(options), .no_preload = 1, .no_follow = request->attach.no_follow};
	struct cli_run run = {
		.session = observed->session, .interval_ms = 10, .tick = tick, .arg = observed};
	struct pem_error error = {{0}};
	int rc, status = CLI_DONE;

	observed->shown_ns = cli_now_ns();
	if (!request->words[0]) {
		status = cli_attach__watch((struct cli_attach *)&request->attach, &run,
					   request->quiet ? NULL : "observing");
	} else {
		rc = cli_run__start(&run, request->words, &options, &error);
		if (rc < 0)
			return cli_run__not_started(rc, &error);
		cli_run__wait(&run);
		cli_run__explain(&run, request->words[0]);
		status = cli_run__status(&run);
	}
	cli_progress__clear();
	return status;
}

/*
 * Programs that ask for the time as often as they can would raise most of the records: only calls
 * that tell something are recorded.
 */
static int choose_calls(const struct pem_model *model, struct pem_event_set *set,
			struct pem_error *error)
{
	const struct pem_event *enter = pem_model__by_name(model, events[0]);
	int number = enter ? pem_event__field_by_role(enter, PEM_ROLE_SYSTEM_CALL) : -1;
	const struct pem_field *field = number < 0 ? NULL : &enter->fields[number];
	char predicate[2048] = "";
	size_t i, used = 0;

	for (i = 0; field && i < field->label_count && used < sizeof(predicate); i++)
		if (pem_call__kind(field->labels[i].name) != PEM_CALL_OTHER)
			used += (size_t)snprintf(predicate + used, sizeof(predicate) - used,
						 "%snumber == %" PRIu64, used ? " || " : "",
						 field->labels[i].value);
	return pem_event_set__where_of(set, events[0], predicate, error);
}

/* Can the kernel deliver what is needed? Prints why not. */
static int check_events(struct pem_session *session, const struct pem_model *model)
{
	struct pem_error error = {{0}};
	size_t i;

	for (i = 0; i < NEEDED; i++)
		if (pem_session__can_deliver(session, pem_model__by_name(model, events[i]),
					     &error) != 1)
			return cli_error(CLI_NOT_HERE, "%s is needed: %s", events[i], error.text);
	return CLI_DONE;
}

int rates_gather__begin(struct rates_run *run, struct pem_session *session)
{
	const struct pem_model *model = pem_session__model(session);
	struct pem_pass_options options = {.size = sizeof(options),
					   .without = PARTS,
					   .is_whole_machine = run->request->attach.all};
	struct pem_error error = {{0}};
	struct pem_event_set *set = pem_event_set__new(session, events, EVENTS, &error);
	int status = begin(run);

	if (status == CLI_DONE)
		status = set ? check_events(session, model) : cli_fail(-errno, &error);
	if (status == CLI_DONE && choose_calls(model, set, &error))
		status = cli_fail(-EINVAL, &error);
	if (status == CLI_DONE) {
		run->pass = pem_pass__new_live(model, &options, &error);
		if (run->pass)
			run->callback = pem_session__register_async_callback(
				session, set, NULL, take_record, run, NULL, &error);
		if (!run->callback)
			status = cli_fail(-errno, &error);
	}
	pem_event_set__free(set);
	if (status != CLI_DONE)
		return status;
	pem_callback__enable(run->callback);
	/* A pipe whose size is unknown counts as 64 KiB. */
	if (run->request->root_count)
		run->pipes =
			settings_pipes__new(run->request->roots, run->request->root_count, NULL, 0);
	return CLI_DONE;
}

/* Look for queues of pem/stream.h, which may be there, or come. has_pipes: others are observed. */
static int begin_threads(struct rates_run *run, bool has_pipes)
{
	bool is_command = run->request->words[0] != NULL;
	const char *why;

	if (rates_threads__tick(run->threads))
		return CLI_FAILED;
	why = is_command ? NULL : rates_threads__why_none(run->threads);
	if (why)
		cli_say("%s", why);
	if (has_pipes)
		return CLI_DONE;
	if (!is_command && !run->threads->programs)
		return CLI_NOT_HERE;
	cli_say("so pipes can't be observed here; queues of pem/stream.h are");
	return CLI_DONE;
}

int rates_gather__live(struct rates_run *run)
{
	const struct rates_request *request = run->request;
	struct pem_session_options options = {.size = sizeof(options),
					      .log = cli_log,
					      .log_arg = (void *)&request->quiet,
					      .progress = 1};
	bool has_pipes;
	struct pem_error error = {{0}};
	char file[PATH_MAX];
	int ended, status = request->words[0]
				    ? cli_command__check(request->words[0], file, sizeof(file))
				    : CLI_DONE;

	if (status != CLI_DONE)
		return status;
	cli_descriptors__raise();
	pem_streams__offer(); /* before the session has threads */
	run->session = pem_session__open(&options, &error);
	if (!run->session)
		return cli_error(cli_status_of_errno(errno), "%s", error.text);
	status = rates_gather__begin(run, run->session);
	has_pipes = status == CLI_DONE;
	if (has_pipes || status == CLI_NOT_HERE)
		status = begin_threads(run, has_pipes);
	if (status == CLI_DONE)
		status = cli_attach__start((struct cli_attach *)&request->attach, run->session);
	if (status == CLI_DONE)
		status = watch(run);
	if (run->threads && rates_threads__read(run->threads))
		run->error = -ENOMEM;
	ended = rates_gather__end(run);
	if (status == CLI_DONE && !has_pipes && !run->threads->programs)
		status = cli_error(CLI_NOT_HERE, "no queue of pem/stream.h was found either");
	return ended == CLI_DONE ? status : ended;
}
