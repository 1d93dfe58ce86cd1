/* SPDX-License-Identifier: MIT */
/*
 * cli.h - what the verbs of pem share: statuses, options (options.h), tables, words for numbers,
 * progress, running a command
 *
 * Not a public header. Nothing of it is in libpem: the verbs use <pem/...> alone.
 */
#ifndef PEM_CLI_H
#define PEM_CLI_H

#include <pem/export.h>
#include <pem/pem.h>
#include <pem/trace.h>

#include "number_map.h"
#include "options.h"

#include <json-c/json.h>

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_status {
	CLI_DONE = 0,
	CLI_WRONG_INPUT = 1, /* wrong usage, or a wrong file or name was given */
	CLI_NOT_HERE = 2, /* this machine can't do it, or this user may not */
	CLI_FAILED = 3, /* an error while working */
	CLI_UNACCOUNTED = 4, /* done, but the balance does not account for all events */
	CLI_DIFFERS = 5, /* done, and what was compared differs by more than the limit */
	CLI_NOT_EXECUTABLE = 126, /* as a shell reports it */
	CLI_NOT_FOUND = 127,
};

/* --- sentences, colours, words for numbers (text.c) --- */

/* Print one sentence to standard error, after "pem: ". */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print an error like cli_say. Returns status. */
int cli_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Print a sentence of libpem's. Returns the status for its -errno. */
int cli_fail(int code, const struct pem_error *error);
/* The status for an errno of setting something up: wrong input, not here, or failed. */
int cli_status_of_errno(int error);
/* Print a message of libpem. arg points to a bool: if true, only errors are printed. */
void cli_log(enum pem_log_level level, const char *text, void *arg);

enum cli_colour { CLI_PLAIN, CLI_BOLD, CLI_GREEN, CLI_YELLOW, CLI_RED, CLI_DIM };
/*
 * The escape sequence that starts a colour on out, or "" if out gets no colours. CLI_PLAIN ends the
 * colour.
 */
const char *cli_colour(FILE *out, enum cli_colour colour);
/* Columns of the terminal out, or of the variable COLUMNS, or 80. */
unsigned int cli_width(FILE *out);
/* Is the width known, from a terminal or from the variable COLUMNS? */
bool cli_has_width(FILE *out);
/* Print a text that is not pem's own. Each byte that a terminal would obey becomes '?'. */
void cli_put_text(FILE *out, const char *text);
/* Print a text like cli_put_text, as one word of a shell command: quoted if it needs that. */
void cli_put_word(FILE *out, const char *text);
/* Columns that UTF-8 text takes. */
size_t cli_columns(const char *text);
/*
 * Print text like cli_put_text, in lines of at most width columns. The first line continues at
 * column; the others start after indent spaces.
 */
void cli_wrap(FILE *out, const char *text, unsigned int indent, unsigned int column,
	      unsigned int width);

/* Words for people. A result stays valid until 32 further results were made. */
const char *cli_count(uint64_t count); /* 1,234,567 */
const char *cli_signed(int64_t value);
const char *cli_decimal(double value); /* 1,234.5 */
const char *cli_duration(uint64_t ns); /* 12.3 ms */
const char *cli_bytes(uint64_t bytes); /* 12.3 MiB */
/* Add to a sum that stays at UINT64_MAX once it would pass it. */
static inline void cli_sum__add(uint64_t *sum, uint64_t value)
{
	*sum = value > UINT64_MAX - *sum ? UINT64_MAX : *sum + value;
}
/* Such a sum in words, with "over" before it if it passed the limit. */
const char *cli_sum__duration(uint64_t sum_ns);
const char *cli_sum__bytes(uint64_t sum_bytes);
/* Its mean, or "" if it passed the limit or nothing was added. */
const char *cli_sum__mean_duration(uint64_t sum_ns, uint64_t count);
const char *cli_rate(uint64_t count, uint64_t ns); /* 1,234/s */
const char *cli_percent(double share); /* share is of 1: 12.3 % */
/* Unit decides: bytes, ns, or a count. */
const char *cli_quantity(uint64_t value, const char *unit);
/* An event's name as users see it and as -e accepts it. From version 2 on it ends in @VERSION. */
const char *cli_event_name(const struct pem_event *event);
const char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Parse "64K", "16M", "1G" as bytes. Returns 0 or -EINVAL. */
int cli_parse_bytes(const char *text, uint64_t *bytes);
/* Parse "1%", "0.5%" as a share of 1. It must be above 0. Returns 0 or -EINVAL. */
int cli_parse_share(const char *text, double *share);
/* The greatest interval that a verb takes: 24 hours. */
#define CLI_INTERVAL_MAX_MS (24u * 3600 * 1000)

/* Parse a whole positive decimal number up to max. Returns 0 or -EINVAL. */
int cli_parse_number(const char *text, uint64_t max, uint64_t *number);

/* --- tables (table.c) --- */

/*
 * CLI_CUT: to the left, and cut in the middle if the terminal is too narrow. CLI_SPARE: to the
 * right, and left out if the terminal is too narrow, the last one first.
 */
enum cli_align { CLI_LEFT, CLI_CUT, CLI_RIGHT, CLI_SPARE };
#define CLI_COLUMNS_MAX 16

struct cli_table;
/*
 * Make an empty table. On a terminal, or if COLUMNS is set, the last column is wrapped. Else each
 * row is one line, for grep and awk.
 */
struct cli_table *cli_table__new(FILE *out);
void cli_table__column(struct cli_table *table, const char *title, enum cli_align align);
/* Begin a row. One cell after the other follows; missing cells are empty. Text is copied. */
void cli_table__row(struct cli_table *table, enum cli_colour colour);
void cli_table__cell(struct cli_table *table, const char *text);
/*
 * Print the table and free it. Columns without any text are left out. A table without rows prints
 * nothing.
 */
void cli_table__print(struct cli_table *table);

/* --- progress (progress.c) --- */

/*
 * Progress of work whose length is known. It is printed on a terminal if the work takes longer than
 * two seconds.
 */
struct cli_progress {
	const char *what;
	uint64_t start_ns;
	uint64_t shown_ns;
};
void cli_progress__start(struct cli_progress *progress, const char *what);
void cli_progress__update(uint64_t done, uint64_t total, void *progress);
void cli_progress__end(struct cli_progress *progress);
/*
 * Show a line in place of the last such one, on a terminal that can take it away again. It is cut
 * to the terminal's width.
 */
void cli_progress__show(const char *text);
/* Take away the line that is shown, if there is one. */
void cli_progress__clear(void);
uint64_t cli_now_ns(void); /* CLOCK_MONOTONIC */

/* --- JSON (json.c) --- */

/*
 * JSON that is written entry by entry, so that it needs the memory of one entry only. It looks like
 * that of cli_json__print. Initialize out, and the rest with 0.
 */
struct cli_json_stream {
	FILE *out;
	unsigned int depth; /* of open objects and arrays */
	bool has_member; /* the innermost one has a member */
};
/* Begin an object ('{') or an array ('['). key: NULL in an array and at the top. */
void cli_json_stream__open(struct cli_json_stream *json, const char *key, char bracket);
/* Write a member and free it. key: NULL in an array. */
void cli_json_stream__add(struct cli_json_stream *json, const char *key, struct json_object *value);
/* Write all members of an object into the open one, and free it. */
void cli_json_stream__add_members(struct cli_json_stream *json, struct json_object *object);
/* End what was begun last. bracket: '}' or ']'. */
void cli_json_stream__close(struct cli_json_stream *json, char bracket);

void cli_json__text(struct json_object *object, const char *key, const char *value);
void cli_json__count(struct json_object *object, const char *key, uint64_t value);
void cli_json__real(struct json_object *object, const char *key, double value);
void cli_json__flag(struct json_object *object, const char *key, bool value);
/*
 * Print the object and free it: on several lines for people, or on one line where each line is one
 * object.
 */
void cli_json__print(struct json_object *object, FILE *out, bool one_line);
/* Write a built-in page, with data in its line "@data@", to a new file. Returns a status. */
int cli_page__write(const char *path, const char *page, const char *end, struct json_object *data);
/*
 * Flush standard output. Returns status, or CLI_FAILED after printing that the output could not be
 * written.
 */
int cli_finish_output(int status);
/*
 * Open the file of a verb's result. *path: NULL: standard output if is_result, or standard error;
 * "-": standard output, and *path becomes NULL. Returns a status, after printing an error; *out is
 * NULL then.
 */
int cli_output__open(const char **path, bool is_result, FILE **out);
/* Flush or close it. Returns status, or another one after printing an error. NULL is accepted. */
int cli_output__close(const char *path, FILE *out, int status);

/* --- counters that counted for a part of the time (estimate.c) --- */

/* Members as in struct pem_statistic. All zero is no estimate. */
struct cli_estimate {
	uint64_t enabled_ns, running_ns;
	double error;
	uint32_t together;
};

/* Is the value scaled to a time in which it was not counted? */
bool cli_estimate__is(const struct cli_estimate *estimate);
/* The share of the time in which it was counted, of 1. */
double cli_estimate__share(const struct cli_estimate *estimate);
/* Were two counters, one of which at least is an estimate, counted at different times? */
bool cli_estimate__are_apart(const struct cli_estimate *a, const struct cli_estimate *b);
/* The error of a value, as "+-1.2 %", or "unknown". */
const char *cli_estimate__error(const struct cli_estimate *estimate, uint64_t value);
/* Add it to the object of a value; nothing if it is no estimate. error null: it is unknown. */
void cli_estimate__json(struct json_object *object, const struct cli_estimate *estimate);
/*
 * How a counter was estimated in an interval, between two readings of its statistic, and what it
 * counted there. running_ns 0: it was not counted there. The whole's error is that of its mean
 * rate, times the root of enabled * (enabled - running). The rate of a part of the time is known
 * from fewer windows: its error is greater by the root of running / (running in this part).
 */
struct cli_estimate cli_estimate__between(const struct pem_statistic *before,
					  const struct pem_statistic *now, uint64_t *count);

/* --- metrics that specs declare (metric.c) --- */

struct pem_sketch;
/* What a verb counted, for the metrics of a model. */
struct cli_metrics {
	const struct pem_model *model;
	double seconds; /* in which it was counted */
	/*
	 * What a term of a metric came to: a number of events, or the sum of a field. metric: its
	 * number in the model. NAN: it is unknown.
	 */
	double (*value)(const struct pem_metric_term *term, size_t metric, const void *arg);
	/* The mean ns of a metric of times, by its number in the model. NULL: they are unknown. */
	double (*between)(size_t metric, const void *arg);
	/* Its times, of which that is the mean. NULL, as between. */
	const struct pem_sketch *(*times)(size_t metric, const void *arg);
	/* How the value of a term was counted. NULL: none was estimated. */
	struct cli_estimate (*estimate)(const struct pem_metric_term *term, size_t metric,
					const void *arg);
	const void *arg;
};

/* Is the value of any metric known? */
bool cli_metrics__any(const struct cli_metrics *metrics);
/* Add the columns of metrics to a table. */
void cli_metrics__columns(struct cli_table *table);
/* Add a row for each metric whose value is known. of: text of a column before, or NULL. */
void cli_metrics__rows(const struct cli_metrics *metrics, struct cli_table *table, const char *of);
/* The same as an array, which the caller owns. is_brief: names and values alone. */
struct json_object *cli_metrics__json(const struct cli_metrics *metrics, bool is_brief);

/* --- lists of names (names.c) --- */

/* A list of names. All zero is an empty list. */
struct cli_names {
	char **names;
	size_t count, capacity;
};
/* Append a copy of a name. Returns 0 or -ENOMEM. */
int cli_names__add(struct cli_names *names, const char *name);
void cli_names__sort(struct cli_names *names);
/* Free the names. The list is then empty. */
void cli_names__free(struct cli_names *names);

/* --- running a command under a session (command.c) --- */

struct cli_patterns {
	char **text;
	/* The predicate of each pattern, from 'PATTERN where PREDICATE'; NULL: none. */
	char **where;
	size_t count;
	bool and_usual; /* a pattern begins with +: they are added to the usual events */
	const char *all_where; /* predicate of all events; NULL: none */
	const char *also[13]; /* further events, added to those of the patterns; NULL: none */
	bool has_stacks; /* also those that tell the stacks of chosen events */
	/* Of patterns as COUNTERS@PATTERN, which are a PATTERN above, too (counted.c). */
	char *counters; /* names, separated by commas; NULL: there are none */
	struct cli_names counted; /* the patterns */
};
/*
 * Add the patterns of a comma-separated list. A + before a pattern adds the usual events. Returns
 * 0, -EINVAL if the list is empty, or -ENOMEM.
 */
int cli_patterns__add(struct cli_patterns *patterns, const char *list);
void cli_patterns__free(struct cli_patterns *patterns);
/* The predicate that a pattern's events have to pass; NULL: none. */
const char *cli_patterns__predicate(const struct cli_patterns *patterns, size_t i);
/* Bind their predicates to the set that they chose. Returns 0; or -1 with errno: set is freed. */
int cli_patterns__bind(const struct cli_patterns *patterns, struct pem_event_set *set,
		       struct pem_error *error);
/* Are the verb's usual events chosen? */
static inline bool cli_patterns__has_usual(const struct cli_patterns *patterns)
{
	return patterns->count == 0 || patterns->and_usual;
}

/* Add names, with commas between, to a list that lacks them. Returns 0 or -ENOMEM. */
int cli_counted__add(char **list, const char *names);
/*
 * Take "COUNTERS@" off a pattern's text, if it has it, with a + between counters, or the name of a
 * metric of two counters. Returns 0; -EINVAL: one of both is missing; -ENOMEM.
 */
int cli_counted__take(struct cli_patterns *patterns, char *text);
/* Of a verb that records nothing: a status if there are such patterns. Prints why. */
int cli_counted__refuse(const struct cli_verb *verb, const struct cli_patterns *patterns);
/* Let threads read these counters at these events. A status. Prints what can't be, and goes on. */
int cli_counted__set(struct pem_session *session, const struct cli_patterns *patterns);

/*
 * As pem_event_set__new(). If a pattern matches nothing, error says where the verbs look for
 * events.
 */
struct pem_event_set *cli_event_set__new(struct pem_session *session, const char *const *patterns,
					 size_t count, struct pem_error *error);
/*
 * Make the set of events that the patterns name. Without patterns it has all stub and kernel events
 * and the counters that are available here, each up to level info. samples: include periodic
 * samples, which only a log can hold.
 */
struct pem_event_set *cli_choose_events(struct pem_session *session,
					const struct cli_patterns *patterns, bool samples,
					struct pem_error *error);
/*
 * As cli_choose_events(), of a recording. pages: the samples of pages are added if no event of them
 * is named. Where samples of the CPU are taken, what lies in memory is added: without it they are
 * of no function.
 */
struct pem_event_set *cli_choose_logged(struct pem_session *session, struct cli_patterns *patterns,
					bool pages, struct pem_error *error);

/*
 * Do programs raise some of these events? A command needs libpem for no others. A reading of a
 * thread's counters does not count: a thread raises it only before another event of a program.
 */
bool cli_event_set__has_stubs(const struct pem_event_set *set);

/* Does a source read its value from time to time? */
static inline bool cli_event__is_counter(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_PERF || event->source_kind == PEM_SOURCE_SIMULATED;
}

/* --- a machine that is simulated (hardware.c) --- */

struct cli_hardware {
	char folder[PATH_MAX]; /* "": there is none */
	char file[PATH_MAX + 16];
	char option[PATH_MAX + 32];
	char log[PATH_MAX + 16];
	char log_option[PATH_MAX + 32];
	char **command; /* under Valgrind */
};
/*
 * Make the file of a machine's counts, and put Valgrind before the command. 'instructions' and
 * 'cycles' are the machine's then. Without patterns those of usual are added. A status; prints why.
 */
int cli_hardware__start(struct cli_hardware *hardware, const char *path, char **command,
			struct cli_patterns *patterns, const char *usual);
/* What is to be run for the command: the command, or with it what simulates. */
char **cli_hardware__command(const struct cli_hardware *hardware, char **command,
			     struct pem_run_options *options);
/* Remove the file. */
void cli_hardware__end(struct cli_hardware *hardware);

/*
 * Make a folder NAME-XXXXXX for this user alone, in the first of XDG_RUNTIME_DIR, TMPDIR and /tmp
 * where only root and this user can put others in its place. Returns 0 and its path, which the
 * caller removes, or -errno and an empty path; -EPERM: all three can be changed by others.
 */
int cli_temporary__folder(const char *name, char *path, size_t bytes);

/*
 * Does this command exist? Returns CLI_DONE with its path in file; or CLI_NOT_FOUND or
 * CLI_NOT_EXECUTABLE after printing a sentence.
 */
int cli_command__check(const char *name, char *file, size_t bytes);

struct cli_run {
	struct pem_session *session;
	pid_t pid;
	int interval_ms; /* interval of tick, and the longest single wait */
	void (*tick)(void *arg); /* NULL: none */
	void *arg;
	/* Used without a command: have all targets ended? The first signal ends the run, too. */
	bool (*has_ended)(void *ended_arg);
	void *ended_arg;
	/* results */
	bool ended;
	int wait_status;
	int stopped_by; /* the second signal, if the command did not end after the first */
	int error; /* -errno of the session */
};
/*
 * Raise the limit of open files of pem to its maximum. Processes forked afterwards get the limit
 * that pem was started with. Call it once.
 */
void cli_descriptors__raise(void);
/* Start the command, and pass signals to it from then on. Returns its pid, or -errno with error. */
pid_t cli_run__start(struct cli_run *run, char *const argv[], const struct pem_run_options *options,
		     struct pem_error *error);
/* The command was not started: print why, and return a status. rc: that of cli_run__start. */
int cli_run__not_started(int rc, const struct pem_error *error);
/*
 * Do the session's work until the command ends. SIGINT, SIGQUIT, SIGTERM and SIGHUP reach the
 * command (signals of the terminal do so anyway). A second signal stops the work at once.
 */
void cli_run__wait(struct cli_run *run);
/*
 * Raise the priority of this thread, so that buffers are drained before they are full even if all
 * CPUs are busy. Only root may do that. Without the right, or if the thread was given another
 * priority, nothing changes. Commands started later inherit the priority.
 */
#define CLI_RECORDER_NICE (-10)
void cli_run__go_first(void);
/*
 * Catch signals from now on, before anything is made that only a run finishes. A signal ends what
 * cli_run__start starts, or what cli_run__watch does.
 */
void cli_run__prepare(void);
/*
 * Catch signals from now on: a signal ends cli_run__watch, or the next call of it. Work that has
 * begun is finished.
 */
void cli_run__catch(struct pem_session *session);
/*
 * Do the session's work without a command, until has_ended returns true or a signal comes. Call
 * cli_run__catch first.
 */
void cli_run__watch(struct cli_run *run);
/* The exit status of the run as a shell gives it: the command's, or 128 plus the signal. */
int cli_run__status(const struct cli_run *run);
/* Print a sentence if a signal ended the command or the work. */
void cli_run__explain(const struct cli_run *run, const char *command);
int cli_status_of_wait(int wait_status);

/* --- traces (trace.c) --- */

/*
 * Open a trace. If its recorder was killed, the data that it left in shared memory is added first,
 * and a sentence tells so. NULL: failed; a sentence was printed and *status is set.
 */
struct pem_trace *cli_trace__open(const char *directory, int *status);

/*
 * The field of an allocation's event that is 0 where no memory was got, by its role; -1: the event
 * is no allocation, or does not tell.
 */
int cli_allocation__result(const struct pem_event *event);
/*
 * Did an allocation of some bytes fail? result is its event's cli_allocation__result(), size the
 * field of the bytes. Whoever asks for nothing may get no memory and has not failed.
 */
bool cli_allocation__failed(const struct pem_record *record, int result, int size);

/*
 * Describe the gaps of a trace in few sentences (gaps.c). False: the sentence of an earlier gap
 * covers gap i, too. Else text is the sentence of gap i and of all gaps that differ from it in one
 * word, which is a name.
 */
bool cli_gap__sentence(const struct pem_trace_info *info, uint32_t i, char *text, size_t bytes);
/* A sentence if the trace may lack more gaps than it tells of. Else NULL. */
const char *cli_gaps__rest(const struct pem_trace_info *info);

/* --- the machine that pem lab boots (lab_parts.c) --- */

#define CLI_LAB_EMULATOR "qemu-system-aarch64"

struct cli_lab_parts {
	char folder[PATH_MAX]; /* where it is, or would be */
	char kernel[PATH_MAX], image[PATH_MAX]; /* the image is its file system */
	char *list; /* the paths in it, one a line */
};
/*
 * Find the machine and the emulator. Returns 0, or -ENOENT with a sentence that says what would
 * mend it. cli_lab_parts__free frees it in both cases.
 */
int cli_lab_parts__find(struct cli_lab_parts *parts, struct pem_error *error);
/* Is there a file at this path of its file system? */
bool cli_lab_parts__has(const struct cli_lab_parts *parts, const char *path);
void cli_lab_parts__free(struct cli_lab_parts *parts);

/* --- plugins, and what lies beside this program (plugin.c) --- */

/* The folder of this program's file. Returns 0 or -errno. */
int cli_program_folder(char *path, size_t bytes);
/*
 * Find a file in the library folder that belongs to this program. Returns 0 if it exists, or
 * -ENOENT. path is set in both cases.
 */
int cli_library_file(const char *name, char *path, size_t bytes);
/* Find the folder that libpem was loaded from. Returns 0 or -errno. */
int cli_library_folder(char *path, size_t bytes);
/* Say if libpem is of another version than this program (version.c). */
void cli_version__check(void);

/*
 * Visit each file of the plugin folders that may be an exporter (plugin_folders.h). visit returns 0
 * to continue. refuse gets the reason why a folder or a file is left out. Returns what visit
 * returned, 0, or -ENOMEM.
 */
int cli_exporters__visit(int (*visit)(const char *path, const char *name, void *arg),
			 void (*refuse)(const char *sentence, void *arg), void *arg);
/*
 * Copy the table that a plugin file defines as symbol: a struct that begins with its size, as a
 * size_t, and the version of its interface, as a uint32_t. Functions that the file's version does
 * not have are NULL. kind: the word for such a plugin, in sentences. Returns the handle, for
 * dlclose. NULL with error: the file has no such table.
 */
void *cli_plugin__load(const char *path, const char *kind, const char *symbol, uint32_t version,
		       void *table, size_t bytes, struct pem_error *error);
/*
 * Copy the table of an exporter from a plugin file. False with error: the file is not an exporter
 * for this pem. handle is for dlclose.
 */
bool cli_exporter__load(const char *path, struct pem_exporter *exporter, void **handle,
			struct pem_error *error);

/* --- pem-codegen, which knows what a spec may be (run_codegen.c) --- */

/*
 * A growing list of words for pem-codegen. The function that adds one prints an error and returns
 * false if memory is missing.
 */
struct cli_words {
	char **text; /* ends in NULL; [0] is the program's name */
	size_t count;
	size_t capacity;
};
bool cli_words__add(struct cli_words *words, const char *text);
void cli_words__free(struct cli_words *words);

/* Replace this process by pem-codegen. Returns a status on failure only. */
int cli_codegen__exec(struct cli_words *words);
/*
 * Run pem-codegen and wait for its end. *out gets what it printed, and *errors its errors; the
 * caller frees both. If errors is NULL, errors go to standard error. Returns its exit status, or a
 * status after printing why it could not run.
 */
int cli_codegen__read(struct cli_words *words, char **out, char **errors);
/* As cli_codegen__read(), of bytes. Errors go to standard error. */
int cli_codegen__read_bytes(struct cli_words *words, char **out, size_t *bytes);

/* --- specs that are not built in (specs.c) --- */

/* Where a spec was found: the origin in a list of files. It decides how serious an error in it is.
 */
enum cli_spec_origin {
	CLI_SPEC_INSTALLED, /* PREFIX/share/pem/spec */
	CLI_SPEC_PATH, /* PEM_SPEC_PATH */
	CLI_SPEC_BESIDE, /* the folder of the program to be recorded */
	CLI_SPEC_HERE, /* the current folder */
};

/*
 * Can only root, this user, and whoever became root by sudo, put files into a folder? pem must not
 * read specs that another user put into /tmp. Returns false if the folder can't be examined.
 */
bool cli_specs__trusts(const char *folder);
/*
 * Load specs into a session: those installed beside the catalogue; those named by PEM_SPEC_PATH;
 * those in the folder of the program's file (NULL: no program is run) or of the first file among
 * its arguments; those in the current folder, if it is trusted. Before them it loads the events
 * that the program carries. Returns CLI_DONE; or a status, after printing a sentence, if a spec
 * named by PEM_SPEC_PATH is wrong. Other wrong specs cause a warning unless quiet is set. Wrong
 * specs of the current folder cause a warning only if one of the patterns asked for matches no
 * event (NULL: always). If there are no such specs, this costs one search of a folder.
 */
int cli_specs__load(struct pem_session *session, const char *program, char **argv,
		    const struct cli_patterns *asked, bool quiet);

/* spec_import/import.c: `pem spec import ...`; argv[0] is "import". Returns a status. */
int cli_spec_import(int argc, char **argv);

#endif
