/* SPDX-License-Identifier: MIT */
/*
 * loop.h - the loop of an agent, in parts
 *
 *	loop.c		what this run is for; the functions of an agent, called in their order
 *	history.c	directives and runs of the database, and what was observed
 *	verdict.c	runs as evidence, and what becomes of directives by it
 *	identity.c	which application and which machine
 *	command.c	starts the command and waits for its end
 *	judge.c		are runs with directives faster?
 */
#ifndef PEM_AGENT_LOOP_H
#define PEM_AGENT_LOOP_H

#include <pem/agent.h>

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define PEM_AGENT_VARIABLES_MAX 16u
#define PEM_AGENT_DIRECTIVES_MAX 256u
#define PEM_AGENT_TRIALS_MAX 256u /* runs that a comparison looks back on */

/* How a command ended, and what it used. */
struct agent_end {
	int status; /* exit status, or 128 + the signal */
	double seconds;
	double waited_s; /* of these, its first thread was ready to run and had no CPU */
	double user_s, system_s;
	long minor_faults, major_faults, peak_kib;
	int interrupted; /* the signal by which a person ended it; 0: none did */
};

/* What is compared: the command's time without that in which other programs had its CPU. */
static inline double agent_end__value(const struct agent_end *end)
{
	return end->seconds - end->waited_s;
}

struct pem_agent {
	const struct pem_agent_ops *ops;
	void *arg;
	struct pem_agent_options options;
	char *const *argv;
	char file[PATH_MAX]; /* of the program */
	struct pem_database *database;
	struct pem_db_application application;
	struct pem_db_machine machine;
	struct pem_db_run run;
	/* Directives that are on trial or kept, the best first. */
	struct pem_db_directive directives[PEM_AGENT_DIRECTIVES_MAX];
	size_t directive_count;
	bool kept; /* they are kept */
	bool known; /* an observation was modelled already, or something was withdrawn */
	struct pem_db_directive asked; /* who asked for another observation; id 0: nobody */
	bool again; /* and this run is the one */
	uint32_t times; /* that was done before */
	int64_t latest; /* a directive of the last observation; 0: none */
	int64_t basis; /* the observed run; 0: not known yet */
	uint32_t failures; /* observations that could not be modelled, one after the other */
	bool seen; /* a run with these arguments was waited for before */
	/* Earlier runs that speak for or against the directives. */
	struct pem_agent_trial trials[PEM_AGENT_TRIALS_MAX];
	size_t trial_count; /* of them all; the last PEM_AGENT_TRIALS_MAX are kept */
	size_t treated, controls; /* among them, of this run's group */
	size_t exclusions; /* earlier runs of the trial that are no evidence */
	bool excluded; /* this one is none */
	enum pem_agent_purpose purpose;
	char **wrap; /* words before the observed command's, ended by NULL; NULL: none */
	char *variables[PEM_AGENT_VARIABLES_MAX]; /* "NAME=VALUE", or "NAME": taken away */
	size_t variable_count;
	size_t proposed; /* directives that were proposed in this run */
	struct agent_end end;
	struct pem_error error; /* of the database */
};

/* --- identity.c --- */

/*
 * Find the program of argv[0], and what tells it from others. Returns 0 or -errno with error, as
 * pem_agent__run does.
 */
int agent_identify(struct pem_agent *agent, struct pem_error *error);

/* --- history.c --- */

/*
 * Open the database, note this run, and read what is known. False: it can't be used; a sentence was
 * logged.
 */
bool agent_history__begin(struct pem_agent *agent);
/* Note how the run ended. */
void agent_history__end(struct pem_agent *agent);
/* Take back what an earlier observation came to, before a new one is modelled. */
void agent_history__forget(struct pem_agent *agent);
/* Note what an observation came to: the proposed directives are on trial from the next run on. */
void agent_history__modelled(struct pem_agent *agent);
/* Note that no model could be made of an observation. */
void agent_history__failed(struct pem_agent *agent);
/* Stop using the database: the command runs on without it. The sentence of agent->error is said. */
void agent_history__give_up(struct pem_agent *agent);
/* The time since 1970. */
int64_t agent_history__now_ns(void);

/* --- verdict.c --- */

/* Runs are compared that had the same arguments and ended alike: the number of such a group. */
uint32_t agent_verdict__group(const char *workload, int64_t status);
/* Add an earlier run to what is compared. */
void agent_verdict__add(struct pem_agent *agent, const struct pem_agent_trial *trial);
/* Note this run as evidence, compare all, and keep or withdraw the directives. */
enum pem_agent_verdict agent_verdict__judge(struct pem_agent *agent,
					    struct pem_agent_comparison *comparison);

/* --- command.c --- */

/*
 * Run the command to its end: under a session, or alone (NULL). Returns 0 or -errno with error: it
 * was not started.
 */
int agent_command__run(struct pem_agent *agent, struct pem_session *session,
		       struct pem_error *error);
/* Become the command. Returns only if that fails: -errno. */
int agent_command__exec(struct pem_agent *agent);
void agent_command__free(struct pem_agent *agent);

#endif
