/* SPDX-License-Identifier: MIT */
/*
 * program.h - pem page-size, in parts
 *
 *	main.c		which verb, and its options
 *	verbs.c		run, profile, apply, validate
 *	run.c		a command under the loop of agents
 *	observer.c	what a command is observed with
 *	lease.c		which large pages other runs count on
 *	quoting.c	names of folders that LD_PRELOAD can't hold
 *	treatment.c	what is made for a run with directives, and what came of it
 *	hits.c		which timer samples of a run were at the chosen data
 *	drift.c		is a run still what was observed?
 *	machine.c	this machine's calibration, measured once and kept in the database
 *	model.c		model: what a profile comes to
 *	show.c		show, forget: what is known, for people and as JSON
 *	page.c		show --html
 *	names.c		what people call a site
 *
 * Functions that return an int return an exit status (enum cli_status) after printing a sentence,
 * where nothing else is said.
 */
#ifndef PAGE_PROGRAM_H
#define PAGE_PROGRAM_H

#include "cli.h"
#include "plan/plan.h"
#include "profile/profile.h"
#include "timer/timer.h"

#include <pem/agent.h>

#include <limits.h>

#define PAGE_AGENT "page-size"

/* What was asked for. */
struct page_request {
	uint64_t budget_bytes; /* UINT64_MAX: as much as there is */
	uint32_t limit_s; /* of observing */
	uint32_t runs; /* validate: at most */
	const char *output; /* a file to write; NULL: none */
	const char *machine; /* a file with a calibration; NULL: this machine's */
	const char *html; /* show: a page to write; NULL: none */
	const char *const *mappings; /* model: a digit for each site */
	uint32_t mapping_count;
	bool json;
	char **words; /* behind the options: a command, or a file; ended by NULL */
};

/* --- main.c --- */

/* For sentences about a wrong usage. */
extern const struct cli_verb page_help;

/* --- run.c --- */

/*
 * Run the command that is asked for once, for what the loop chooses, or always with what directives
 * there are. Returns its exit status, or -errno with error: it was not run.
 */
int page_agent__run(const struct page_request *request, bool always,
		    struct pem_agent_report *report, struct pem_error *error);

/* --- verbs.c --- */

int page_run(const struct page_request *request);
int page_profile(const struct page_request *request);
int page_apply(const struct page_request *request);
int page_validate(const struct page_request *request);

/* --- observer.c --- */

struct page_observer {
	enum profile_source source;
	/* For the command's environment: names and values; NULL ends them. */
	const char *variables[3][2];
	char program[PATH_MAX]; /* valgrind */
	char folder[PATH_MAX]; /* of our tool for it */
	char profile_option[PATH_MAX + 16], limit_option[48], stack_option[48];
	char *words[11]; /* before the command's; none: words[0] is NULL */
};

/*
 * Find the best observer of a command, and set it up to write a profile to an absolute path: the
 * runtime of compiler hooks that its program is linked with, else Valgrind. Returns 0 or -errno
 * with error: -ENOENT there is none, and what to install.
 */
int page_observer__find(struct page_observer *observer, const char *command, const char *profile,
			uint32_t limit_s, struct pem_error *error);
/* What people call who wrote a profile: a static text. */
const char *page_observer__name(enum profile_source source);
/*
 * Can a program be observed and changed? 0, or -EOPNOTSUPP with error: it is linked statically, or
 * for another processor, so that nothing can be preloaded into it.
 */
int page_program__check(const char *file, struct pem_error *error);

/* --- hits.c --- */

/* Timer samples of the command's own process, as the observed one was. */
struct page_hits {
	double seconds; /* that they stand for; 0: nothing is known */
	size_t samples, hits; /* with an address; at chosen data */
};

/* report: of the preloaded allocator, which is read again from its beginning; NULL: there is none.
 */
void page_hits__count(FILE *report, const struct timer_result *samples, struct page_hits *hits);

/* --- drift.c --- */

/* The metrics of an observed run: memory of all its sites, and how long it is without observer. */
#define PAGE_OBSERVED_MEMORY "observed memory"
#define PAGE_OBSERVED_TIME "observed time"
/* The metrics of a run with directives: how many samples, and which share of them in %. */
#define PAGE_TIMER_SAMPLES "timer samples"
#define PAGE_TIMER_HITS "timer samples at chosen data"
/*
 * After a run that was not observed: have its next one observed if it took far more memory than
 * what was, or far more time, and nothing is on trial or kept.
 */
void page_drift__notice(struct pem_agent *agent, bool has_directives);
/*
 * After a run with directives, which were first proposed at a time, and whose data had a share (0
 * to 1) of the references that were observed: note its hits, and have its next one observed if its
 * time goes elsewhere, and that of an earlier run did not.
 */
void page_drift__notice_hits(struct pem_agent *agent, int64_t since_ns, double share,
			     const struct page_hits *hits);
/* Is that another input than the observed one? 0: nobody knows what was observed. */
bool page_drift__is_larger(double observed_bytes, double bytes);
bool page_drift__is_longer(double observed_s, double seconds);
bool page_drift__is_elsewhere(double share, const struct page_hits *hits);

/* --- machine.c --- */

/*
 * The calibration to model with: of the file that the request names; else of this machine's row in
 * the database, or measured and put there. database and machine may be NULL. Returns 0 or -errno
 * with error; -EBADMSG: the file holds none.
 */
int page_machine__calibration(const struct page_request *request, struct pem_database *database,
			      const struct pem_db_machine *machine,
			      struct page_calibration *calibration, struct pem_error *error);
int page_calibrate_verb(const struct page_request *request);

/* --- lease.c --- */

/*
 * Bytes of large pages that other runs on this machine mean to use and don't have yet. before: of
 * leases that were taken before this one; 0: of all. Errors are said, and count as none.
 */
uint64_t page_lease__others(struct pem_agent *agent, int64_t before);
/* Say how many this run means to use. Returns the lease's number, or 0 after a sentence. */
int64_t page_lease__take(struct pem_agent *agent, uint64_t bytes);
/* End it. 0 does nothing. */
void page_lease__end(struct pem_agent *agent, int64_t id);

/* --- quoting.c --- */

/*
 * LD_PRELOAD has no quoting, and ends a path at a space or a colon. Replace a folder with one in
 * its name by a symbolic link in the runtime directory. The link stays, for processes that outlive
 * the command and start others. Returns 0 or -errno with error, and folder is unchanged then.
 */
int page_quote_folder(char *folder, size_t bytes, struct pem_error *error);

/* --- treatment.c --- */

/* The temporary folder of a run, with what the preloaded allocator reads and writes. */
struct page_treatment {
	char folder[PATH_MAX - 32];
	char directives[PATH_MAX], report[PATH_MAX];
	FILE *file; /* of directives, while they are written */
	FILE *lines; /* of the report: the command may put anything in its place */
	uint32_t sites;
	uint64_t planned_bytes; /* of large pages, by all directives */
	double share; /* of the observed references, to the data of all directives */
};

/* What the run reported, over all its processes. */
struct page_outcome {
	uint64_t large_bytes, refused_bytes;
	bool killed; /* some process: of it, what it was granted counts as what it had */
	uint64_t short_bytes; /* of those refused, for reasons that pass: see
				 page_treatment__is_short */
	char error[256]; /* of the first process that did nothing, or why pages were refused */
};

/* What is read of a report, which the command's processes may make as long as they like. */
#define PAGE_REPORT_LINE_MAX 4096
#define PAGE_REPORT_BYTES_MAX (16u << 20)

/* Make the folder. Returns 0 or -errno with error. */
int page_treatment__begin(struct page_treatment *treatment, struct pem_error *error);
/* Add a directive. -EBADMSG: it is not one that may be applied. */
int page_treatment__add(struct page_treatment *treatment, const struct pem_db_directive *directive,
			uint64_t budget_bytes);
/* What directives plan to use, in bytes of large pages. */
uint64_t page_treatment__planned(const struct pem_db_directive *directives, size_t count);
/* Is so much far less than what was wanted, so that its effect would not be that of the plan? */
bool page_treatment__is_far_less(uint64_t had_bytes, uint64_t wanted_bytes);
/* Name the allocator and its directives in the command's environment. */
int page_treatment__apply(struct page_treatment *treatment, struct pem_agent *agent);
/* What came of it. Lines that are none count for nothing. */
void page_treatment__outcome(struct page_treatment *treatment, struct page_outcome *outcome);
/*
 * Did the run have far less than it asked for, of what was planned, because the machine or the
 * budget had no more then? A program that asks for little, or whose own ways keep large pages from
 * it, is what is on trial; others that use all memory are not.
 */
bool page_treatment__is_short(const struct page_treatment *treatment,
			      const struct page_outcome *outcome);
/*
 * Why there were small pages, for people: reason is a word of the allocator (apply/apply.h), or a
 * sentence, which is returned as it is.
 */
const char *page_treatment__in_words(const char *reason);
/* Remove the folder. */
void page_treatment__end(struct page_treatment *treatment);

/* --- names.c --- */

/* Names for the sites of a plan: function, file and line where they are known. */
void page_names__fill(struct page_plan *plan, const struct page_profile *profile);

/* --- model.c, show.c --- */

int page_model_verb(const struct page_request *request);
int page_show(const struct page_request *request);
int page_forget(const struct page_request *request);

/* --- page.c --- */

/*
 * Write the page of an application whose sites are given, as show --json prints them, into a new
 * file. The sites are freed.
 */
int page_write_html(struct pem_database *database, const struct pem_db_application *application,
		    struct json_object *sites, const char *path);

/* --- main.c, for the others --- */

/* Say a sentence of libpem-agent's log; arg is not used. */
void page_log(enum pem_log_level level, const char *text, void *arg);

#endif
