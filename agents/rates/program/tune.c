/* SPDX-License-Identifier: MIT */
/*
 * tune.c - pem rates --tune: longer pipes, tried and kept by the loop of agents (pem/agent.h)
 *
 * The first run of a command is observed. A pipe at which stages block often gets a directive: its
 * new size. Further runs have these sizes or not, by chance, until the loop knows whether they pay.
 * In these runs nothing is observed: the pipes are found and resized (apply/pipes.h).
 */
#include "program/program.h"

#include "loop/program/outcome.h"
#include "processes.h"

#include <pem/agent.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGENT "rates"
#define SIZE_LEAST (1u << 20) /* an ordinary user's limit, unless somebody has changed it */
/*
 * A block costs two switches of threads and a wake-up: some microseconds. Pipes whose blocks would
 * cost a hundredth of the time in which stages run are worth a trial even if the model, which knows
 * no such costs, predicts no gain.
 */
#define BLOCK_NS 5000u
#define WORTH 0.01

struct tuning {
	struct rates_run *run;
	struct settings_pipe_wish wishes[MODEL_QUEUES_MAX];
	size_t wish_count;
	struct settings_pipes *pipes;
	struct json_object *observation; /* of an observed run */
	bool is_modelled; /* and it shows which pipes to try */
};

/* --- observe --- */

static int observe(struct pem_agent *agent, struct pem_session *session, void *arg)
{
	struct tuning *tuning = arg;

	(void)agent;
	return rates_gather__begin(tuning->run, session) == CLI_DONE ? 0 : -EIO;
}

/* --- model --- */

/* Is the pipe one between two processes, of which one can find it again by their names? */
static bool is_plain(const struct rate_pipe *queue)
{
	const char *from, *to;

	if (!rate_pipe__inode(queue) || queue->writers.count != 1 || queue->readers.count != 1)
		return false;
	from = queue->writers.list[0].stage->process->name;
	to = queue->readers.list[0].stage->process->name;
	return *from && *to && !strchr(from, '/') && !strchr(to, '/');
}

static int propose_pipe(struct pem_agent *agent, const struct rate_pipe *queue,
			const struct pem_db_directive *gain, uint32_t bytes)
{
	struct pem_db_directive d = *gain;
	const char *from = queue->writers.list[0].stage->process->name;
	const char *to = queue->readers.list[0].stage->process->name;

	snprintf(d.subject, sizeof(d.subject), "pipes from %s to %s", from, to);
	snprintf(d.text, sizeof(d.text), "%" PRIu32 " %s/%s", bytes, from, to);
	d.state = PEM_DB_ON_TRIAL;
	d.cost_bytes = bytes;
	pem_agent__say(agent, PEM_LOG_INFO, "further runs try %s for %s", cli_bytes(bytes),
		       d.subject);
	return pem_agent__propose(agent, &d);
}

/* The gain that the model predicts for longer pipes, in % of the time; unknown: 0, and a reason. */
static void predict(const struct rates_run *run, struct pem_db_directive *d)
{
	static struct rates_outlook outlook;
	const struct model_range *was = &outlook.same.range,
				 *then = &outlook.ways[0].prediction.range;

	if (rates_outlook__find(run, &outlook) || !outlook.is_believed || !outlook.way_count ||
	    outlook.ways[0].prediction.method == MODEL_UNKNOWN || !(then->low > 0)) {
		snprintf(d->reason, sizeof(d->reason), "the gain is not predicted%s%s",
			 outlook.reason ? ": " : "", outlook.reason ? outlook.reason : "");
		return;
	}
	d->predicted = 100 * (1 - was->rate / then->rate);
	d->predicted_low = 100 * (1 - was->rate / then->low);
	d->predicted_high = 100 * (1 - was->rate / then->high);
}

/* The time in which stages ran, of all together. */
static double running_ns(const struct rates_run *run)
{
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < run->seen->stage_count; i++)
		ns += run->seen->stages[i]->ns[RATE_RUNS];
	return (double)ns;
}

static int propose_all(struct pem_agent *agent, const struct rates_run *run)
{
	struct pem_db_directive gain = {.size = sizeof(gain), .rank = 1};
	size_t i, count = run->seen->queue_count;
	uint32_t limit = pem_proc__pipe_limit(), bytes = limit < SIZE_LEAST ? limit : SIZE_LEAST;
	int rc = 0;

	predict(run, &gain);
	for (i = 0; !rc && i < count && i < MODEL_QUEUES_MAX; i++) {
		const struct rate_pipe *queue = run->seen->queues[i];
		uint32_t was = settings_pipes__bytes(run->pipes, rate_pipe__inode(queue));
		double cost_ns = (double)queue->blocks * BLOCK_NS;

		if (is_plain(queue) && was < bytes &&
		    (gain.predicted >= 100 * WORTH || cost_ns > WORTH * running_ns(run)))
			rc = propose_pipe(agent, queue, &gain, bytes);
	}
	return rc;
}

static int model(struct pem_agent *agent, struct pem_session *session, void *arg)
{
	struct tuning *tuning = arg;
	struct rates_run *run = tuning->run;
	int rc;

	(void)session;
	if (rates_gather__end(run) != CLI_DONE)
		return -EIO;
	if (run->request->json)
		tuning->observation = rates_report__json(run);
	else if (rates_report__print(run) == CLI_FAILED)
		return -ENOMEM;
	if (run->lost) {
		pem_agent__say(agent, PEM_LOG_WARNING,
			       "records were lost: the next run is observed again");
		return -EAGAIN;
	}
	rc = propose_all(agent, run);
	tuning->is_modelled = !rc;
	return rc;
}

/* --- apply --- */

/* Read a directive: bytes, and the names. Returns 0 or -EINVAL: it is not one of this version. */
static int read_wish(const struct pem_db_directive *d, struct settings_pipe_wish *wish)
{
	int at = 0;

	memset(wish, 0, sizeof(*wish));
	if (sscanf(d->text, "%" SCNu32 " %63[^/]/%63[^/]%n", &wish->bytes, wish->from, wish->to,
		   &at) != 3 ||
	    d->text[at] || !wish->bytes || wish->bytes > INT32_MAX)
		return -EINVAL;
	return 0;
}

static int ready(struct pem_agent *agent, const struct pem_db_directive *directives, size_t count,
		 void *arg)
{
	struct tuning *tuning = arg;
	size_t i;

	for (i = 0; i < count && i < MODEL_QUEUES_MAX; i++)
		if (read_wish(&directives[i], &tuning->wishes[tuning->wish_count++])) {
			pem_agent__say(agent, PEM_LOG_WARNING,
				       "directive %" PRId64
				       " of the database is not one of this version",
				       directives[i].id);
			return 0;
		}
	return 1;
}

static int apply(struct pem_agent *agent, const struct pem_db_directive *directive, void *arg)
{
	const pid_t root = getpid();
	struct tuning *tuning = arg;

	(void)agent;
	(void)directive;
	if (!tuning->pipes)
		tuning->pipes = settings_pipes__new(&root, 1, tuning->wishes, tuning->wish_count);
	return tuning->pipes ? 0 : -ENOMEM;
}

static uint64_t act(struct pem_agent *agent, void *arg)
{
	struct tuning *tuning = arg;
	struct settings_pipes *pipes = tuning->pipes ? tuning->pipes : tuning->run->pipes;

	(void)agent;
	return pipes ? settings_pipes__look(pipes) : 0;
}

/* A run in which a pipe was not resized is not evidence. */
static void check_wish(struct pem_agent *agent, const struct settings_pipe_wish *wish)
{
	if (wish->was_bytes && !wish->error)
		return;
	if (wish->error)
		pem_agent__say(agent, PEM_LOG_WARNING,
			       "the pipe from %s to %s can't have %s: %s; a user may have as much "
			       "as fs.pipe-max-size and fs.pipe-user-pages-soft say (pipe(7)). "
			       "This run does not count",
			       wish->from, wish->to, cli_bytes(wish->bytes),
			       strerror(-wish->error));
	else
		pem_agent__say(agent, PEM_LOG_WARNING,
			       "the pipe from %s to %s was not found: this run does not count",
			       wish->from, wish->to);
	pem_agent__exclude(agent);
}

static void ended(struct pem_agent *agent, enum pem_agent_purpose purpose, void *arg)
{
	struct tuning *tuning = arg;
	size_t i;

	for (i = 0; purpose == PEM_AGENT_TREATED && i < tuning->wish_count; i++)
		check_wish(agent, &tuning->wishes[i]);
}

/* --- report --- */

static const char *const purposes[] = {"with pipes as they are", "observed", "with longer pipes",
				       "with pipes as they are, to compare"};

static void tell(const struct tuning *tuning, const struct pem_agent_report *report)
{
	const char *end = "";

	if (report->verdict == PEM_AGENT_FASTER)
		end = ". The longer pipes are kept";
	else if (report->verdict != PEM_AGENT_UNCLEAR)
		end = ". The longer pipes are withdrawn";
	else if (tuning->is_modelled && !report->directives)
		end = ". No longer pipe is worth a trial";
	agent_outcome__say(report, purposes, end);
}

static void print_json(const struct tuning *tuning, const struct pem_agent_report *report)
{
	struct json_object *object = agent_outcome__json(report), *pipes = json_object_new_array();
	size_t i;

	for (i = 0; i < tuning->wish_count; i++) {
		const struct settings_pipe_wish *wish = &tuning->wishes[i];
		struct json_object *pipe;

		if (!wish->was_bytes || wish->was_bytes >= wish->bytes || wish->error)
			continue; /* it has the size that it had */
		pipe = json_object_new_object();
		cli_json__text(pipe, "from", wish->from);
		cli_json__text(pipe, "to", wish->to);
		cli_json__count(pipe, "bytes", wish->bytes);
		cli_json__count(pipe, "was_bytes", wish->was_bytes);
		json_object_array_add(pipes, pipe);
	}
	json_object_object_add(object, "pipes", pipes);
	json_object_object_add(object, "observation", tuning->observation);
	cli_json__print(object, tuning->run->request->out, false);
}

static void say(enum pem_log_level level, const char *text, void *arg)
{
	const struct rates_request *request = arg;

	if (level != PEM_LOG_INFO || !request->quiet)
		cli_say("%s", text);
}

int rates_tune(struct rates_run *run)
{
	static const struct pem_agent_ops ops = {.size = sizeof(ops),
						 .name = AGENT,
						 .observe = observe,
						 .model = model,
						 .apply = apply,
						 .ended = ended,
						 .ready = ready,
						 .act = act};
	const struct rates_request *request = run->request;
	const struct pem_agent_options options = {
		.size = sizeof(options), .log = say, .log_arg = (void *)request, .by_arguments = 1};
	struct pem_agent_report report = {.size = sizeof(report)};
	struct tuning tuning = {.run = run};
	struct pem_error error = {{0}};
	char file[PATH_MAX];
	int status = cli_command__check(request->words[0], file, sizeof(file));

	if (status != CLI_DONE)
		return status;
	cli_descriptors__raise();
	status = pem_agent__run(&ops, &tuning, request->words, &options, &report, &error);
	settings_pipes__free(tuning.pipes);
	if (status < 0)
		return agent_outcome__fail(status, &error);
	if (!request->quiet)
		tell(&tuning, &report);
	if (request->json)
		print_json(&tuning, &report);
	return status;
}
