/* SPDX-License-Identifier: MIT */
/*
 * cli.h - what the verbs of pem share: statuses, options, tables, words for numbers, progress,
 * running a command
 *
 * Not a public header, and nothing of it is in libpem: the verbs stand on <pem/...> alone.
 */
#ifndef PEM_CLI_H
#define PEM_CLI_H

#include <pem/export.h>
#include <pem/pem.h>
#include <pem/trace.h>

#include <json-c/json.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum cli_status {
	CLI_DONE = 0,
	CLI_WRONG_INPUT = 1, /* usage, or what was given: a file, a name */
	CLI_NOT_HERE = 2, /* this machine or this user can't */
	CLI_FAILED = 3, /* while doing it */
	CLI_UNACCOUNTED = 4, /* done, but events are unaccounted for */
	CLI_NOT_EXECUTABLE = 126, /* as a shell does */
	CLI_NOT_FOUND = 127,
};

/* --- verbs and their options (options.c) --- */

struct cli_option {
	int code; /* the short letter, or from 256 on: long name only; 0 ends a table */
	const char *name;
	const char *argument; /* its name in the help, NULL: takes none */
	const char *help;
};

struct cli_verb {
	const char *name;
	const char *summary; /* one line, for the overview */
	const char *usage; /* lines that follow "pem " */
	const char *text; /* a paragraph */
	const char *examples; /* lines: command, two spaces, what it does */
	const struct cli_option *options;
	const char *status; /* exit statuses, where they differ from everybody's */
	bool runs_command; /* options end at the first word that is none */
	int (*run)(const struct cli_verb *verb, int argc, char **argv);
};

extern const struct cli_verb cli_launch, cli_list, cli_record, cli_stat, cli_report, cli_export,
	cli_doctor, cli_mark, cli_gen, cli_spec, cli_snapshot, cli_top;

#define CLI_OPTION_BAD '?'
/*
 * Next option of argv (a verb's, argv[0] being its name): its code with optarg set; -1: no more,
 * optind is the first word after them; CLI_OPTION_BAD: wrong, and said so. -h and --help print the
 * help and end the program.
 */
int cli_option__next(const struct cli_verb *verb, int argc, char **argv);
void cli_verb__help(const struct cli_verb *verb, FILE *out);
/* Say what is wrong with the usage and where the help is. Returns CLI_WRONG_INPUT. */
int cli_usage_error(const struct cli_verb *verb, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Of count names the one most like word, or NULL if none is close. */
const char *cli_nearest(const char *word, const char *const *names, size_t count);

/* --- sentences, colours, words for numbers (text.c) --- */

/* One sentence on standard error, after "pem: ". */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same as an error. Returns status. */
int cli_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Status that fits an errno met on setting something up: wrong input, not here, or failed. */
int cli_status_of_errno(int error);
/* Print what libpem has to say; arg points to a bool: quiet, errors only. */
void cli_log(enum pem_log_level level, const char *text, void *arg);

enum cli_colour { CLI_PLAIN, CLI_BOLD, CLI_GREEN, CLI_YELLOW, CLI_RED, CLI_DIM };
/*
 * Escape sequence that starts a colour on out, or "" where colours are not wanted; CLI_PLAIN ends
 * it.
 */
const char *cli_colour(FILE *out, enum cli_colour colour);
/* Columns of the terminal that out is, or COLUMNS, or 80. */
unsigned int cli_width(FILE *out);
/* Has somebody said how wide it may be: a terminal, or COLUMNS? */
bool cli_has_width(FILE *out);
/* Columns that UTF-8 text takes. */
size_t cli_columns(const char *text);
/*
 * Print text in lines of at most width columns, each after indent spaces but the first, which
 * starts at column.
 */
void cli_wrap(FILE *out, const char *text, unsigned int indent, unsigned int column,
	      unsigned int width);

/* Words for people. Each result holds until 32 further ones were made. */
const char *cli_count(uint64_t count); /* 1,234,567 */
const char *cli_signed(int64_t value);
const char *cli_decimal(double value); /* 1,234.5 */
const char *cli_duration(uint64_t ns); /* 12.3 ms */
const char *cli_bytes(uint64_t bytes); /* 12.3 MiB */
const char *cli_rate(uint64_t count, uint64_t ns); /* 1,234/s */
const char *cli_percent(double share); /* of a share of 1: 12.3 % */
const char *cli_quantity(uint64_t value, const char *unit); /* by unit: bytes, ns, or a count */
/* An event's name as people meet it and -e takes it: from version 2 on it ends in @VERSION. */
const char *cli_event_name(const struct pem_event *event);
const char *cli_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "64K", "16M", "1G" as bytes; 0, or -EINVAL. */
int cli_parse_bytes(const char *text, uint64_t *bytes);
/* "1%", "0.5%" as a share of 1, above 0; 0, or -EINVAL. */
int cli_parse_share(const char *text, double *share);
/* A whole positive decimal number up to max; 0, or -EINVAL. */
int cli_parse_number(const char *text, uint64_t max, uint64_t *number);

/* --- tables (table.c) --- */

enum cli_align { CLI_LEFT, CLI_RIGHT };
#define CLI_COLUMNS_MAX 10

struct cli_table;
/*
 * An empty table. On a terminal, or if COLUMNS is set, the last column wraps; else a row is a line,
 * for grep and awk.
 */
struct cli_table *cli_table__new(FILE *out);
void cli_table__column(struct cli_table *table, const char *title, enum cli_align align);
/*
 * A row starts with cli_table__row, then one cell after the other; cells left out are empty. Text
 * is copied.
 */
void cli_table__row(struct cli_table *table, enum cli_colour colour);
void cli_table__cell(struct cli_table *table, const char *text);
/* Print it and free it. Columns without any text are left out, so is a table without rows. */
void cli_table__print(struct cli_table *table);

/* --- progress (progress.c) --- */

/*
 * Work of known length: says how far it is, on a terminal, once it takes longer than two seconds.
 */
struct cli_progress {
	const char *what;
	uint64_t start_ns;
	uint64_t shown_ns;
	bool visible;
};
void cli_progress__start(struct cli_progress *progress, const char *what);
void cli_progress__update(uint64_t done, uint64_t total, void *progress);
void cli_progress__end(struct cli_progress *progress);
uint64_t cli_now_ns(void); /* CLOCK_MONOTONIC */

/* --- JSON (json.c) --- */

void cli_json__text(struct json_object *object, const char *key, const char *value);
void cli_json__count(struct json_object *object, const char *key, uint64_t value);
void cli_json__real(struct json_object *object, const char *key, double value);
void cli_json__flag(struct json_object *object, const char *key, bool value);
/* Print and free it: on several lines for people who look, on one where lines delimit objects. */
void cli_json__print(struct json_object *object, FILE *out, bool one_line);
/* Flush standard output. status, or CLI_FAILED after saying that it could not be written. */
int cli_finish_output(int status);

/* --- from numbers to things (map.c) --- */

struct cli_map_entry {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};
struct cli_map {
	struct cli_map_entry *entries;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};
/*
 * Place of the value of a key, new ones hold UINT32_MAX. NULL without memory. Valid until the next
 * call.
 */
uint32_t *cli_map__at(struct cli_map *map, uint64_t key);
void cli_map__free(struct cli_map *map);
/* Make room for one more element in an array that grows by doubling; 0 or -ENOMEM. */
int cli_grow(void **array, size_t element_bytes, size_t count, size_t *capacity);

/* A list of names; all zero: empty. */
struct cli_names {
	char **names;
	size_t count, capacity;
};
/* Append a copy of a name. 0 or -ENOMEM. */
int cli_names__add(struct cli_names *names, const char *name);
void cli_names__sort(struct cli_names *names);
/* Leaves an empty list. */
void cli_names__free(struct cli_names *names);

/* --- running a command under a session (command.c) --- */

struct cli_patterns {
	char **text;
	char **where; /* the predicate of each, 'PATTERN where PREDICATE'; NULL: none */
	size_t count;
	const char *all_where; /* of all events; NULL: none */
	const char *also[2]; /* events besides, whatever the patterns; NULL: none */
};
/* Add the patterns of a comma-separated list; 0, -EINVAL for an empty one, -ENOMEM. */
int cli_patterns__add(struct cli_patterns *patterns, const char *list);
void cli_patterns__free(struct cli_patterns *patterns);
/*
 * The set that the patterns name; without any, all stub and kernel events and the counters that can
 * be had here, each up to level info. samples: also periodic samples, which only a log can hold.
 */
struct pem_event_set *cli_choose_events(struct pem_session *session,
					const struct cli_patterns *patterns, bool samples,
					struct pem_error *error);

/*
 * Is there such a command? CLI_DONE, with its path in file; CLI_NOT_FOUND or CLI_NOT_EXECUTABLE,
 * said.
 */
int cli_command__check(const char *name, char *file, size_t bytes);

struct cli_run {
	struct pem_session *session;
	pid_t pid;
	int interval_ms; /* of tick, and longest time to wait in one go */
	void (*tick)(void *arg); /* NULL: none */
	void *arg;
	/*
	 * Without a command: has what is observed come to its end? The first signal ends it, too.
	 */
	bool (*has_ended)(void *ended_arg);
	void *ended_arg;
	/* out */
	bool ended;
	int wait_status;
	int stopped_by; /* second signal, when it did not end */
	int error; /* -errno of the session's work */
};
/*
 * Let pem open as many files as it may; what it forks from now on has the limit that pem was
 * started with. Once.
 */
void cli_descriptors__raise(void);
/* Start the command and from then on pass signals to it. Its pid, or -errno with error. */
pid_t cli_run__start(struct cli_run *run, char *const argv[], const struct pem_run_options *options,
		     struct pem_error *error);
/*
 * Work for the session until the command ends. SIGINT, SIGQUIT, SIGTERM and SIGHUP reach the
 * command (from the terminal they do anyway); a second one stops the work at once.
 */
void cli_run__wait(struct cli_run *run);
/*
 * Let this thread run before others, so that buffers are taken before they are full where all CPUs
 * are busy. Whoever may not do that, as only root may, or was given another priority, goes on as
 * before. Commands started later inherit it.
 */
#define CLI_RECORDER_NICE (-10)
void cli_run__go_first(void);
/*
 * From now on a signal ends cli_run__watch, or the next one: what has begun is brought to its end.
 */
void cli_run__catch(struct pem_session *session);
/*
 * Work for the session without a command, after cli_run__catch: until has_ended says so, or a
 * signal comes.
 */
void cli_run__watch(struct cli_run *run);
/* Exit status as a shell gives it: of the command, or 128 and the signal. */
int cli_run__status(const struct cli_run *run);
/* Say so when a signal ended the command or the work. */
void cli_run__explain(const struct cli_run *run, const char *command);
int cli_status_of_wait(int wait_status);

/* --- folders for traces (folder.c) --- */

/*
 * Make the first free PREFIX-COMMAND-N here, command's name without its path. CLI_DONE, or a
 * status, said.
 */
int cli_folder__make(const char *prefix, const char *command, char *path, size_t bytes);
/* Remove a folder with all that is in it. */
void cli_folder__remove(const char *path);

/* --- traces (trace.c) --- */

/*
 * Open a trace. If its recorder was killed, what it left in shared memory is added first, and said.
 * NULL: said too, *status set.
 */
struct pem_trace *cli_trace__open(const char *directory, int *status);

/*
 * What could not be recorded, as few sentences (gaps.c): false if an earlier gap's sentence tells
 * of gap i; else text is its sentence, for all gaps that differ from it in one word, a name.
 */
bool cli_gap__sentence(const struct pem_trace_info *info, uint32_t i, char *text, size_t bytes);
/* A sentence if there may be more than a trace tells of; else NULL. */
const char *cli_gaps__rest(const struct pem_trace_info *info);

/* --- plugins, and what lies beside this program (plugin.c) --- */

/* The folder of this program's file; 0 or -errno. */
int cli_program_folder(char *path, size_t bytes);
/*
 * A file of the library folder that belongs to this program; 0 if it is there, or -ENOENT. path is
 * set anyway.
 */
int cli_library_file(const char *name, char *path, size_t bytes);

/*
 * Visit every file PREFIX*.so of the plugin folders, the first of a name wins. visit returns 0 to
 * go on. A folder that everybody may write to is left out, and refuse says why (NULL: silence).
 * Returns what visit returned, or 0.
 */
int cli_plugins__visit(const char *prefix,
		       int (*visit)(const char *path, const char *name, void *arg),
		       void (*refuse)(const char *sentence), void *arg);
/*
 * Copy the table of an exporter's plugin file. False, with error: it is none for this pem. handle
 * is for dlclose.
 */
bool cli_exporter__load(const char *path, struct pem_exporter *exporter, void **handle,
			struct pem_error *error);

/* --- pem-codegen, which knows what a spec may be (run_codegen.c) --- */

/* Words for pem-codegen, growing; add says so and returns false without memory. */
struct cli_words {
	char **text; /* ends in NULL; [0] is the program's */
	size_t count;
	size_t capacity;
};
bool cli_words__add(struct cli_words *words, const char *text);
void cli_words__free(struct cli_words *words);

/* Replace this program by pem-codegen. Returns a status on failure only. */
int cli_codegen__exec(struct cli_words *words);
/*
 * Run pem-codegen to its end. out is what it printed, to be freed; so are errors, or NULL: they go
 * to standard error. Its exit status, or a status after saying why it could not run.
 */
int cli_codegen__read(struct cli_words *words, char **out, char **errors);

/* --- specs that are not built in (specs.c, spec_files.c) --- */

/* Who named a spec: what is wrong with it matters accordingly. */
enum cli_spec_origin {
	CLI_SPEC_INSTALLED, /* PREFIX/share/pem/spec */
	CLI_SPEC_PATH, /* PEM_SPEC_PATH */
	CLI_SPEC_BESIDE, /* the folder of the program to be recorded */
	CLI_SPEC_HERE, /* the current folder */
};
struct cli_spec_file {
	char *path;
	enum cli_spec_origin origin;
	uint64_t device, inode;
};
struct cli_spec_files {
	struct cli_spec_file *files;
	size_t count;
	size_t capacity;
};
/* Add a file, once; 0 or -errno. */
int cli_spec_files__add(struct cli_spec_files *files, const char *path,
			enum cli_spec_origin origin);
/*
 * Add the specs of a folder, by name: files *.xml whose root element is <spec>. depth: of folders
 * in it to look into. skip: names to leave out, or NULL. Returns 0, -errno of opening the folder,
 * or -E2BIG: the list is full.
 */
int cli_spec_files__add_folder(struct cli_spec_files *files, const char *folder, unsigned int depth,
			       enum cli_spec_origin origin, const char *const *skip);
void cli_spec_files__free(struct cli_spec_files *files);
/* The folder where an installation keeps the catalogue's specs. 0 or -errno. */
int cli_spec_folder(char *path, size_t bytes);

/*
 * Let a session know the events that a program file and its libraries bring along, and add them to
 * carried. Those that contradict events of others are left out, with a warning unless quiet. Models
 * found, or -errno with error.
 */
int cli_program_events__load(struct pem_session *session, const char *path,
			     struct pem_model *carried, bool quiet, struct pem_error *error);

/*
 * Let a session know the specs that are installed beside the catalogue's, named by PEM_SPEC_PATH,
 * or lie in the folder of a program's file (NULL: none is run) or of the first file among its
 * arguments, or in the current folder; and before them the events that the program brings along.
 * CLI_DONE, or a status, said: a spec that PEM_SPEC_PATH names is wrong. Others that are wrong are
 * named in a warning, unless quiet; those of the current folder only if a pattern asked for matches
 * no event (NULL: always). Without such specs it costs a look into a folder.
 */
int cli_specs__load(struct pem_session *session, const char *program, char **argv,
		    const struct cli_patterns *asked, bool quiet);

/* spec_import/import.c: `pem spec import ...`; argv[0] is "import". Returns a status. */
int cli_spec_import(int argc, char **argv);

#endif
