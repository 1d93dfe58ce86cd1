/* SPDX-License-Identifier: MIT */
/* find.c - a policy by its name, or of a file */
#include "policy/policy.h"

#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The policies of this program. */
static const struct {
	const char *name;
	int (*next_config)(void *policy, uint32_t *levels);
	bool has_models;
} policies[] = {
	{"portfolio", explore_portfolio__next, true},
	{"gaussian", explore_portfolio__gaussian, true},
	{"forest", explore_portfolio__forest, true},
	{"model", explore_portfolio__model, true},
	{"halving", explore_plain__halving, false},
	{"sobol", explore_plain__sobol, false},
	{"latin", explore_plain__latin, false},
	{"random", explore_plain__random, false},
	{"grid", explore_plain__grid, false},
};
#define POLICIES (sizeof(policies) / sizeof(policies[0]))

static int take_trial(void *policy, const struct pem_explore_trial *trial)
{
	return explore_history__add(policy, trial);
}

static int takes_no_record(void *policy, const struct pem_explore_record *record)
{
	(void)policy;
	(void)record;
	return 0;
}

static int never(void *policy)
{
	(void)policy;
	return 0;
}

/* The file stays loaded: its functions are used to the program's end. */
static int load(const char *path, struct pem_explore_policy *policy, struct pem_error *error)
{
	if (!cli_plugin__load(path, "policy", "pem_explore_policy", PEM_EXPLORE_ABI_VERSION, policy,
			      sizeof(*policy), error))
		return -EINVAL;
	if (policy->name && policy->begin && policy->next_config && policy->process_trial &&
	    policy->end)
		return 0;
	snprintf(error->text, sizeof(error->text),
		 "%.300s has no policy: it needs a name, begin, next_config, process_trial and end",
		 path);
	return -EINVAL;
}

static int load_python(const char *name, struct pem_explore_policy *policy, struct pem_error *error)
{
	char path[PATH_MAX];
	/* It starts more than once, in other folders. */
	int rc = realpath(name, path) ? explore_python__load(path, policy) : -errno;

	if (rc)
		snprintf(error->text, sizeof(error->text), "cannot load the policy %.200s: %s",
			 name, strerror(-rc));
	return rc ? -EINVAL : 0;
}

const char *explore_policy__why(int error)
{
	switch (-error) {
	case ETIME:
		return "it did not answer in time (PEM_EXPLORE_ANSWER_S)";
	case EPIPE:
		return "its process ended";
	case EPROTO:
		return "its answer is not a configuration of the space, or not JSON";
	case ERANGE:
		return "it chose a configuration that the space does not have";
	default:
		return strerror(-error);
	}
}

/* Find a policy of this program. */
static int find(const char *name, struct pem_explore_policy *policy, struct pem_error *error)
{
	size_t i;

	for (i = 0; i < POLICIES && strcmp(policies[i].name, name); i++)
		;
	if (i == POLICIES) {
		snprintf(error->text, sizeof(error->text),
			 "the policy '%.100s' is unknown; pem explore --help has their names",
			 name);
		return -ENOENT;
	}
	*policy = (struct pem_explore_policy){
		.size = sizeof(*policy),
		.abi_version = PEM_EXPLORE_ABI_VERSION,
		.name = policies[i].name,
		.begin = policies[i].has_models ? explore_portfolio__begin : explore_plain__begin,
		.next_config = policies[i].next_config,
		.process_trial = take_trial,
		.end = policies[i].has_models ? explore_portfolio__end : explore_plain__end};
	return 0;
}

int explore_policy__find(const char *name, struct pem_explore_policy *policy,
			 struct pem_error *error)
{
	const char *dot = strrchr(name, '.');
	int rc = !strchr(name, '/')           ? find(name, policy, error)
		 : dot && !strcmp(dot, ".py") ? load_python(name, policy, error)
					      : load(name, policy, error);

	if (rc)
		return rc;
	if (!policy->process_record)
		policy->process_record = takes_no_record;
	if (!policy->stop_run)
		policy->stop_run = never;
	if (!policy->is_done)
		policy->is_done = never;
	return 0;
}
