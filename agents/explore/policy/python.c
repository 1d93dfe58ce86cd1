/* SPDX-License-Identifier: MIT */
/*
 * python.c - policies in Python: a child process that answers questions, a line of JSON each
 *
 *	{"begin": {"seed", "budget", "objectives", "count", "parameters": [...]}}
 *			true, or "records": the policy takes records
 *	{"next": null}	levels, or the number of a configuration, or null
 *	{"record": {"time_ns", "value", "objective"}}	is the run that goes on to be stopped?
 *	{"trial": {"levels", "values", "outcome", "runs", "error", "seconds"}}	true
 *
 * The child's side is libpem/python/pemapi/explore.py.
 */
#include "policy/policy.h"

#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_S 60 /* PEM_EXPLORE_ANSWER_S is another limit */
#define ANSWER_BYTES 65536u
#define REFUSED_MAX 1000u

struct python {
	const struct pem_explore_space *space;
	uint32_t objectives;
	pid_t child;
	FILE *answers; /* reads from the socket to the child */
	char answer[ANSWER_BYTES];
	bool takes_records, stops; /* answers to begin, and to the last record */
};

static char script[PATH_MAX];

static int write_all(int socket, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t written = send(socket, text, bytes, MSG_NOSIGNAL);

		if (written < 0 && errno != EINTR)
			return -EPIPE;
		text += written > 0 ? written : 0;
		bytes -= written > 0 ? (size_t)written : 0;
	}
	return 0;
}

/* Ask a question, whose content becomes its own. Returns 0 with an answer, NULL for null. */
static int ask(struct python *python, const char *name, struct json_object *content,
	       struct json_object **answer)
{
	struct json_object *question = json_object_new_object();
	enum json_tokener_error error;
	const char *text;
	size_t bytes;
	int rc;

	json_object_object_add(question, name, content);
	text = json_object_to_json_string_length(question, JSON_C_TO_STRING_PLAIN, &bytes);
	rc = write_all(fileno(python->answers), text, bytes);
	if (!rc)
		rc = write_all(fileno(python->answers), "\n", 1);
	json_object_put(question);
	if (rc)
		return rc;
	errno = 0;
	if (!fgets(python->answer, sizeof(python->answer), python->answers))
		return errno == EAGAIN ? -ETIME : errno == EINTR ? -EINTR : -EPIPE;
	*answer = json_tokener_parse_verbose(python->answer, &error);
	return error == json_tokener_success && strchr(python->answer, '\n') ? 0 : -EPROTO;
}

/* Ask a question whose answer is yes or no. Returns 1, 0 or -errno. */
static int ask_whether(struct python *python, const char *name, struct json_object *content)
{
	struct json_object *answer = NULL;
	int rc = ask(python, name, content, &answer);

	if (!rc)
		rc = json_object_is_type(answer, json_type_boolean)
			     ? json_object_get_boolean(answer)
			     : -EPROTO;
	json_object_put(answer);
	return rc;
}

static struct json_object *parameter_json(const struct pem_explore_parameter *parameter)
{
	struct json_object *json = json_object_new_object(), *values = json_object_new_array();
	struct json_object *positions = parameter->is_ordered ? json_object_new_array() : NULL;
	uint32_t i;

	for (i = 0; i < parameter->levels; i++) {
		json_object_array_add(values, json_object_new_string(parameter->values[i]));
		if (positions)
			json_object_array_add(positions,
					      json_object_new_double(parameter->positions[i]));
	}
	json_object_object_add(json, "name", json_object_new_string(parameter->name));
	json_object_object_add(json, "values", values);
	json_object_object_add(json, "positions", positions);
	return json;
}

static struct json_object *begin_json(const struct pem_explore_space *space,
				      const struct pem_explore_options *options)
{
	struct json_object *json = json_object_new_object(), *parameters = json_object_new_array();
	uint32_t i;

	for (i = 0; i < space->parameter_count; i++)
		json_object_array_add(parameters, parameter_json(&space->parameters[i]));
	json_object_object_add(json, "seed", json_object_new_uint64(options->seed));
	json_object_object_add(json, "budget", json_object_new_uint64(options->budget));
	json_object_object_add(json, "objectives", json_object_new_uint64(options->objectives));
	json_object_object_add(json, "count",
			       space->count == UINT64_MAX ? NULL
							  : json_object_new_uint64(space->count));
	json_object_object_add(json, "parameters", parameters);
	return json;
}

/* Its input ends, so that it ends; a child that failed, or does not end at once, is killed. */
static void end(void *policy)
{
	struct python *python = policy;
	unsigned int tries;

	if (!python)
		return;
	fclose(python->answers);
	for (tries = 0; tries < 100 && !waitpid(python->child, NULL, WNOHANG); tries++)
		usleep(10000);
	if (tries == 100) {
		kill(python->child, SIGKILL);
		waitpid(python->child, NULL, 0);
	}
	free(python);
}

static int start(struct python *python)
{
	const char *limit = getenv("PEM_EXPLORE_ANSWER_S");
	struct timeval patience = {.tv_sec = limit ? atoi(limit) : ANSWER_S};
	char *words[] = {"python3", script, NULL};
	posix_spawn_file_actions_t actions;
	extern char **environ;
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	python->answers = fdopen(ends[0], "r");
	rc = python->answers ? posix_spawn_file_actions_init(&actions) : errno;
	if (!rc) {
		posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
		posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
		rc = posix_spawnp(&python->child, words[0], &actions, NULL, words, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(ends[1]);
	if (rc && python->answers)
		fclose(python->answers);
	else if (rc)
		close(ends[0]);
	return -rc;
}

static void *begin(const struct pem_explore_space *space, const struct pem_explore_options *options)
{
	struct python *python = calloc(1, sizeof(*python));
	struct json_object *answer = NULL;
	int rc = python ? start(python) : -ENOMEM;

	if (rc) {
		free(python);
		errno = -rc;
		return NULL;
	}
	python->space = space;
	python->objectives = options->objectives;
	rc = ask(python, "begin", begin_json(space, options), &answer);
	python->takes_records = answer && !strcmp(json_object_get_string(answer), "records");
	if (!rc && !python->takes_records && !json_object_get_boolean(answer))
		rc = -EPROTO;
	json_object_put(answer);
	if (!rc)
		return python;
	end(python);
	errno = -rc;
	return NULL;
}

/* Levels of an answer. Returns 1, 0: none is left, -EPROTO. */
static int take_levels(const struct python *python, struct json_object *answer, uint32_t *levels)
{
	const struct pem_explore_space *space = python->space;
	uint32_t i;

	if (!answer)
		return 0;
	if (json_object_is_type(answer, json_type_int) && space->count != UINT64_MAX) {
		uint64_t number = json_object_get_uint64(answer);

		if (json_object_get_int64(answer) < 0 || number >= space->count)
			return -EPROTO;
		space->at(space, number, levels);
		return 1;
	}
	if (!json_object_is_type(answer, json_type_array) ||
	    json_object_array_length(answer) != space->parameter_count)
		return -EPROTO;
	for (i = 0; i < space->parameter_count; i++) {
		struct json_object *level = json_object_array_get_idx(answer, i);
		int64_t number = json_object_get_int64(level);

		if (!json_object_is_type(level, json_type_int) || number < 0 ||
		    number >= space->parameters[i].levels)
			return -EPROTO;
		levels[i] = (uint32_t)number;
	}
	return 1;
}

/* A configuration that is not allowed is passed over, some times. */
static int next_config(void *policy, uint32_t *levels)
{
	struct python *python = policy;
	uint32_t refused;

	for (refused = 0; refused < REFUSED_MAX; refused++) {
		struct json_object *answer = NULL;
		int rc = ask(python, "next", NULL, &answer);

		if (!rc)
			rc = take_levels(python, answer, levels);
		json_object_put(answer);
		if (rc != 1 || python->space->allows(python->space, levels))
			return rc;
	}
	return -ERANGE;
}

static int process_trial(void *policy, const struct pem_explore_trial *trial)
{
	struct python *python = policy;
	struct json_object *json = json_object_new_object(), *levels = json_object_new_array();
	struct json_object *values = trial->values ? json_object_new_array() : NULL;
	uint32_t i;
	int rc;

	for (i = 0; i < python->space->parameter_count; i++)
		json_object_array_add(levels, json_object_new_uint64(trial->levels[i]));
	for (i = 0; values && i < python->objectives; i++)
		json_object_array_add(values, json_object_new_double(trial->values[i]));
	json_object_object_add(json, "levels", levels);
	json_object_object_add(json, "values", values);
	json_object_object_add(json, "outcome",
			       json_object_new_string(trial_outcome__text(trial->outcome)));
	json_object_object_add(json, "runs", json_object_new_uint64(trial->runs));
	json_object_object_add(json, "error", json_object_new_double(trial->error));
	json_object_object_add(json, "seconds", json_object_new_double(trial->seconds));
	rc = ask_whether(python, "trial", json);
	return rc > 0 ? 0 : rc ? rc : -EPROTO;
}

static int process_record(void *policy, const struct pem_explore_record *record)
{
	struct python *python = policy;
	struct json_object *json;
	int rc;

	if (!python->takes_records)
		return 0;
	json = json_object_new_object();
	json_object_object_add(json, "time_ns", json_object_new_uint64(record->time_ns));
	json_object_object_add(json, "value", json_object_new_double(record->value));
	json_object_object_add(json, "objective", json_object_new_uint64(record->objective));
	rc = ask_whether(python, "record", json);
	python->stops = rc > 0;
	return rc < 0 ? rc : 0;
}

static int stop_run(void *policy)
{
	return ((const struct python *)policy)->stops;
}

int explore_python__load(const char *path, struct pem_explore_policy *policy)
{
	if (access(path, R_OK) || strlen(path) >= sizeof(script))
		return -(errno ? errno : ENAMETOOLONG);
	strcpy(script, path);
	*policy = (struct pem_explore_policy){.size = sizeof(*policy),
					      .abi_version = PEM_EXPLORE_ABI_VERSION,
					      .name = strrchr(script, '/') + 1,
					      .begin = begin,
					      .next_config = next_config,
					      .process_trial = process_trial,
					      .process_record = process_record,
					      .stop_run = stop_run,
					      .end = end};
	return 0;
}
