/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * agent.h - the loop of an agent: observe, model, decide, apply, validate, keep or withdraw
 *
 * An agent makes a program faster that nobody changes. It is a program of its own: it gives this
 * loop its functions and a command, and the loop runs the command once. What earlier runs came to
 * is in the CPO database (pem/database.h), so the loop knows what this run is for:
 *
 *	nothing is known	observe(), the command under a session, model(), which proposes
 *				directives; the loop decides for those with a gain
 *	directives on trial	the command with or without them, by chance: apply() for each;
 *				alone if ready() says that they can't be had now
 *	directives kept		the command with them; one run in sixteen without, to notice if
 *				they pay no longer
 *	nothing to gain		the command alone
 *
 * After each run on trial the loop compares runs with the directives (treated) and without
 * (controls), on the same machine and with the same arguments. Directives that are faster are kept;
 * those that are slower, or the same, or with which the command ends otherwise, are withdrawn and
 * not tried again. All directives of an agent
 * for an application are tried together.
 *
 * The comparison may be made after each run, without more false verdicts: a Bayes factor of 20 for
 * a difference of mean logarithms of time is needed, and chance alone exceeds that in at most one
 * of twenty directives, however long it is tried (pem_agent__judge).
 *
 * The loop raises the events CPO::Agent::* (share/pem/spec/agent.xml), so that 'pem record' of an
 * agent shows what it did on the timeline of what it did it to.
 *
 * What goes wrong with the database or the agent does not harm the command: it runs alone then, and
 * a sentence is logged. Link with libpem-agent. A process has one loop at a time; functions block.
 */
#ifndef PEM_AGENT_H
#define PEM_AGENT_H

#include <pem/database.h>
#include <pem/pem.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* One run of an agent, while pem_agent__run works. */
struct pem_agent;

/* What a run was for. */
enum pem_agent_purpose {
	PEM_AGENT_ALONE, /* nothing to gain, or nothing is known and can be learnt */
	PEM_AGENT_OBSERVED,
	PEM_AGENT_TREATED,
	PEM_AGENT_CONTROL,
};

/*
 * What makes an agent. arg is that of pem_agent__run. Functions return 0, or -errno after
 * pem_agent__say has told why: the command runs alone then, or no directive is proposed.
 */
struct pem_agent_ops {
	size_t size;
	const char *name; /* such as "page-size", at most 31 bytes; it names what is the agent's */
	/*
	 * The command is about to be observed. Enable handles of the session, which the command
	 * will run under, and set variables.
	 */
	int (*observe)(struct pem_agent *agent, struct pem_session *session, void *arg);
	/*
	 * The observed command has ended. Read the handles, and propose directives. None: there is
	 * nothing to gain. -errno: the next run is observed again, but not after three such
	 * failures.
	 */
	int (*model)(struct pem_agent *agent, struct pem_session *session, void *arg);
	/* The command is about to be started with this directive: set variables. */
	int (*apply)(struct pem_agent *agent, const struct pem_db_directive *directive, void *arg);
	/*
	 * The command has ended, in whatever run. Note what came of the directives, and take away
	 * what apply made. May be NULL.
	 */
	void (*ended)(struct pem_agent *agent, enum pem_agent_purpose purpose, void *arg);
	/*
	 * Directives are on trial or kept: can they be applied now, with what this machine has?
	 * Returns 1, or 0 after pem_agent__say has told why not. Called before chance decides who
	 * has them, so that a run in which they can't be had is on neither side: on trial it is
	 * alone, kept ones are applied as far as they go, and it is no evidence. With apply_always
	 * they are applied whatever it returns. NULL: always.
	 */
	int (*ready)(struct pem_agent *agent, const struct pem_db_directive *directives,
		     size_t count, void *arg);
	/*
	 * The command runs, observed or with directives: look at it, or change what it has.
	 * Called from the start of the command to its end, by the thread of pem_agent__run.
	 * Returns after how many ns it is to be called again; 0: not again. May be NULL.
	 */
	uint64_t (*act)(struct pem_agent *agent, void *arg);
};

struct pem_agent_options {
	size_t size;
	const char *database; /* as pem_database__open takes it; NULL: the user's own */
	double gain_min; /* a gain below this counts as none, in %; 0: 1 % */
	uint32_t trials_max; /* runs in which directives are on trial at most; 0: 64 */
	uint32_t preload_libc; /* 1: observe the C library's events, too */
	/*
	 * Called with sentences: what this run is for, what was decided, what went wrong. NULL:
	 * nothing is said. Called by the thread of pem_agent__run.
	 */
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
	/* 1: no chance: directives are applied if there are any. Such a run is no evidence. */
	uint32_t apply_always;
	/*
	 * 1: a command that runs alone may take this process's place (execve), so that nothing of
	 * the agent is left beside it. pem_agent__run does not return then, and nobody sees the
	 * run's end. The first with its arguments and one in sixteen are waited for all the same,
	 * to notice what changes.
	 */
	uint32_t exec_alone;
	/*
	 * 1: the application is the command with its arguments and the current folder, not its
	 * program alone: for agents of what a shell or an interpreter runs.
	 */
	uint32_t by_arguments;
};

/* The enum Verdict of share/pem/spec/agent.xml. */
enum pem_agent_verdict {
	PEM_AGENT_FASTER,
	PEM_AGENT_EQUAL,
	PEM_AGENT_SLOWER,
	PEM_AGENT_UNCLEAR, /* so far */
};

/* What came of a run, for a person. */
struct pem_agent_report {
	size_t size;
	uint32_t purpose; /* enum pem_agent_purpose */
	uint32_t verdict; /* enum pem_agent_verdict, of the runs up to now */
	int64_t run; /* number of its row; 0: the database could not be used */
	double seconds; /* from the command's start to its end */
	double gain, gain_low, gain_high; /* in % of the time, with 95 % interval; 0: unknown */
	uint32_t treated, controls; /* runs that were compared */
	uint32_t directives; /* that are on trial or kept */
	uint32_t kept; /* 1: they are kept */
	uint32_t excluded; /* 1: directives are on trial or kept, and the run is no evidence */
	uint32_t interrupted; /* the signal by which a person ended the command; 0: none did */
	/*
	 * Of seconds: how long the command's first thread was ready to run while other programs had
	 * the CPUs. Runs are compared by seconds without this time.
	 */
	double waited;
};

/*
 * Run a command under an agent, once. argv ends with NULL; argv[0] is searched in PATH. Signals
 * that would end this process are passed to the command, but those of the terminal, which it gets
 * itself. Returns the command's exit status, 128 + n if signal n ended it, or -errno with error
 * before it was started: -ENOENT there is no such command, -EACCES it is no program, -EINVAL ops or
 * options, -EPERM the program has more rights than its user (setuid), which no agent uses. report
 * may be NULL. Blocks until the command has ended.
 */
int pem_agent__run(const struct pem_agent_ops *ops, void *arg, char *const argv[],
		   const struct pem_agent_options *options, struct pem_agent_report *report,
		   struct pem_error *error);

/*
 * What the loop would take a command for: an application and this machine, with their keys; ids are
 * 0. Returns 0 or -errno with error, as pem_agent__run does before the command is started. The
 * structs' sizes have to be set. Blocks for reading the program.
 */
int pem_agent__identify(const char *command, struct pem_db_application *application,
			struct pem_db_machine *machine, struct pem_error *error);

/* --- in the functions of an agent --- */

/* Set a variable of the command's environment. NULL: the command does not have it. */
int pem_agent__set_variable(struct pem_agent *agent, const char *name, const char *value);

/*
 * In observe: start the command through another program, such as a tracer. words, which end with
 * NULL and are copied, come before the command's; the first is a path, and the command's first word
 * becomes the path of the program that was found. Its exit status has to be the command's. -EBUSY:
 * the command goes through one already. -ENOMEM.
 */
int pem_agent__wrap(struct pem_agent *agent, char *const words[]);

/*
 * Propose a directive: subject, text, rank, predicted gain with its interval, cost. The loop fills
 * in the rest. It is tried if its predicted gain is at least gain_min, or if its state says so:
 * PEM_DB_ON_TRIAL for one of several that pay together. PEM_DB_WITHDRAWN, with a reason: it is
 * only noted, and not tried. At most 256 are tried together; what is proposed after them is only
 * noted, with that reason.
 */
int pem_agent__propose(struct pem_agent *agent, const struct pem_db_directive *directive);

/* What the command used, from its start to its end. */
struct pem_agent_usage {
	size_t size;
	double seconds, user_s, system_s;
	int64_t minor_faults, major_faults;
	/*
	 * Of resident memory, of the largest of its processes. In an observed run it may be that of
	 * an earlier command of this process.
	 */
	int64_t peak_bytes;
	int32_t status; /* its exit status, or 128 + the signal that ended it */
	uint32_t reserved; /* zero */
};
/* In ended: what the command used. Returns 0, or -EINVAL: the struct's size. */
int pem_agent__usage(const struct pem_agent *agent, struct pem_agent_usage *usage);

/*
 * In ended: a number that was noted (pem_agent__note) of the run that was observed, which all that
 * is known was made from. Of one that pem_agent__observe_again asked for, the loop notes what the
 * run that asked had used: "asked time", of processors, in s, and "asked memory", its peak, in B.
 * Returns 1, 0: there is none, and *value is unchanged, or -errno after a sentence.
 */
int pem_agent__observed(struct pem_agent *agent, const char *name, double *value);

/*
 * In ended: have the application observed anew, since this run is no longer what was observed: at
 * the next run with its arguments, or at the eighth if they don't come again. What is then proposed
 * takes the place of all directives of this agent. The loop does so by itself if directives were
 * kept and no longer pay. Returns 1, 0: that is asked for already, or was done four times, or
 * -errno.
 */
int pem_agent__observe_again(struct pem_agent *agent, const char *reason);

/*
 * In ended, of a run that was treated or a control: it is no evidence for or against the
 * directives, because of something else than what they do, such as another program that had all
 * memory. It is kept as a run. Who asks for this by what a run came to, such as its time, makes the
 * comparison false. The loop does so by itself for a run that a person interrupted. If more than
 * half of at least 16 runs are excluded, the directives are withdrawn.
 */
void pem_agent__exclude(struct pem_agent *agent);

/* Note a number about this run. The loop itself notes time, processor time, faults and memory. */
int pem_agent__note(struct pem_agent *agent, const char *name, const char *unit, double value,
		    enum pem_db_origin origin);

/* Tell the user, through the log function. Texts are cut at 1,023 bytes. */
void pem_agent__say(struct pem_agent *agent, enum pem_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The database, the application and the machine of this run; ids are 0 without a database. */
struct pem_database *pem_agent__database(struct pem_agent *agent);
const struct pem_db_application *pem_agent__application(const struct pem_agent *agent);
const struct pem_db_machine *pem_agent__machine(const struct pem_agent *agent);

/* --- comparing runs --- */

/* One run of a comparison. */
struct pem_agent_trial {
	double value; /* what is compared, above 0; less is better */
	uint32_t treated; /* 1: with the directives; 0: without */
	uint32_t group; /* only runs of one group are compared with each other, such as of one input
			 */
};

struct pem_agent_comparison {
	double gain, gain_low, gain_high; /* in % of the controls' time, with 95 % interval */
	double bayes_factor; /* for a difference against none */
	uint32_t treated, controls; /* of groups that have both */
};

/*
 * Compare treated runs and controls: the difference of the mean logarithms of their values, within
 * groups, by the Bayes factor of Gönen, Johnson, Lu and Westfall (The American Statistician 59(3),
 * 2005) with a normal prior on the effect's size, whose variance is 10. Under chance alone it
 * exceeds 20 at any time with a probability of at most 1/20 (Ville's inequality), if logarithms of
 * values are normal. If each group that has both is one run of each, they are pairs: the spread is
 * that of the pairs' differences.
 *
 * PEM_AGENT_SLOWER: it is at least 20. PEM_AGENT_FASTER: it is, and the gain at least gain_min.
 * PEM_AGENT_EQUAL: the interval lies within gain_min on both sides, with at least six runs of each.
 * Else PEM_AGENT_UNCLEAR. Values that are not above 0 are passed over.
 * comparison may be NULL. Thread-safe, async-signal-safe, does not block.
 */
enum pem_agent_verdict pem_agent__judge(const struct pem_agent_trial *trials, size_t count,
					double gain_min, struct pem_agent_comparison *comparison);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
