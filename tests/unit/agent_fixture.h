/* SPDX-License-Identifier: MIT */
/*
 * agent_fixture.h - an agent (pem/agent.h) whose directive is known: it sets a variable, by which
 * the command ends with another status
 */
#ifndef AGENT_FIXTURE_H
#define AGENT_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pem/agent.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUNS_MAX 80u

static char folder[64], url[128], text[32];
/* The state that model proposes, and the words that observe wraps the command in. */
static int64_t state_given;
static char **wrap;
/* How many directives model proposes, and what it returns then. */
static unsigned given_count;
static int model_returns;
static uint32_t apply_always, exec_alone;
static void (*ended)(struct pem_agent *agent, enum pem_agent_purpose purpose, void *arg);
static bool is_ready;
static struct pem_error error;

static inline int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/pem-agent-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(url, sizeof(url), "%s/cpo.db", folder);
	strcpy(text, "STATUS=1");
	state_given = PEM_DB_PROPOSED;
	wrap = NULL;
	given_count = 1;
	model_returns = 0;
	apply_always = exec_alone = 0;
	ended = NULL;
	is_ready = true;
	return 0;
}

static inline int tear_down(void **state)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char path[160];
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", url, suffixes[i]);
		unlink(path);
	}
	rmdir(folder);
	return 0;
}

static inline int observe(struct pem_agent *agent, struct pem_session *session, void *arg)
{
	(void)session;
	(void)arg;
	return wrap ? pem_agent__wrap(agent, wrap) : 0;
}

static inline int model(struct pem_agent *agent, struct pem_session *session, void *arg)
{
	struct pem_db_directive d = {
		.size = sizeof(d), .subject = "all", .predicted = 5, .state = state_given};

	unsigned i;

	(void)session;
	(void)arg;
	strcpy(d.text, text);
	for (i = 0; i < given_count; i++) {
		if (i)
			snprintf(d.subject, sizeof(d.subject), "one of all, %u", i);
		assert_int_equal(pem_agent__propose(agent, &d), 0);
	}
	return model_returns;
}

static inline int apply(struct pem_agent *agent, const struct pem_db_directive *directive,
			void *arg)
{
	(void)arg;
	return pem_agent__set_variable(agent, "STATUS", strchr(directive->text, '=') + 1);
}

static inline int ready(struct pem_agent *agent, const struct pem_db_directive *directives,
			size_t count, void *arg)
{
	(void)agent;
	(void)arg;
	assert_true(count >= 1 && count <= 256);
	assert_string_equal(directives[0].subject, "all");
	return is_ready;
}

static unsigned acts;

/* Twice, and then not again. */
static inline uint64_t act(struct pem_agent *agent, void *arg)
{
	(void)agent;
	(void)arg;
	return ++acts % 2;
}

static inline int run_agent(uint32_t trials_max, const char *script,
			    struct pem_agent_report *report)
{
	const struct pem_agent_ops ops = {.size = sizeof(ops),
					  .name = "test",
					  .observe = observe,
					  .model = model,
					  .apply = apply,
					  .ended = ended,
					  .ready = ready,
					  .act = act};
	const struct pem_agent_options options = {.size = sizeof(options),
						  .database = url,
						  .trials_max = trials_max,
						  .apply_always = apply_always,
						  .exec_alone = exec_alone,
						  /* No difference of time is to end the trial. */
						  .gain_min = 1e-9};
	char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)script, NULL};

	acts = 0;
	*report = (struct pem_agent_report){.size = sizeof(*report)};
	return pem_agent__run(&ops, NULL, argv, &options, report, &error);
}

static inline int count_kind(const void *row, void *counts)
{
	assert_true(((const struct pem_db_evidence *)row)->role < 4);
	++((unsigned *)counts)[((const struct pem_db_evidence *)row)->role];
	return 0;
}

/* The directive as it is now; counts: of evidence by its role. */
static inline struct pem_db_directive look(unsigned counts[4])
{
	struct pem_db_directive d = {.size = sizeof(d)};
	struct pem_database *db = pem_database__open(url, NULL, &error);

	assert_non_null(db);
	assert_int_equal(pem_database__find(db, PEM_DB_DIRECTIVE, &d, &d, &error), 1);
	memset(counts, 0, 4 * sizeof(*counts));
	pem_database__each(db, PEM_DB_EVIDENCE, NULL, count_kind, counts, &error);
	pem_database__close(db);
	return d;
}

/* The directive after runs until it is on trial no more; counts as above. */
static inline struct pem_db_directive settle(uint32_t trials_max, const char *script,
					     unsigned counts[4])
{
	struct pem_agent_report report;
	unsigned i;

	for (i = 0; i < RUNS_MAX; i++) {
		run_agent(trials_max, script, &report);
		if (i && report.directives == 0)
			break;
	}
	return look(counts);
}

#endif
