// SPDX-License-Identifier: MIT
/*
 * export.c - pem export: writes a trace in another format, through a plugin (pem/export.h)
 */
#include "cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMATS_MAX 32
#define CTF_SUFFIX "-ctf"

enum { OPT_TO = 256, OPT_LIST, OPT_OF };

static const struct cli_option options[] = {
	{OPT_TO, "to", "FORMAT", "What to write: one of --list."},
	{'o', "output", "OUT",
	 "File to write; - is standard output. Default: the trace's name and the format's suffix, "
	 "a regular file of yours in the current folder, which is made or replaced."},
	{OPT_OF, "of", "AMOUNT",
	 "With --to folded: the number of each stack. samples (default): of the CPU. Of "
	 "allocations: calls, bytes, peak (bytes when most were held), leaked (bytes that were "
	 "never released), or temporary (calls whose block was released at once)."},
	{OPT_LIST, "list", NULL, "List the formats there are."},
	{'j', "json", NULL, "With --list: an array of objects."},
	{0},
};

struct search {
	const char *wanted; /* name of the exporter that is searched; NULL: collect all names */
	struct pem_exporter found; /* the exporter found, with a handle */
	void *handle;
	struct pem_exporter all[FORMATS_MAX];
	const char *names[FORMATS_MAX];
	size_t count;
};

static void refuse(const char *sentence, void *arg)
{
	(void)arg;
	cli_say("%s", sentence);
}

static int visit(const char *path, const char *name, void *arg)
{
	struct search *search = arg;
	struct pem_exporter exporter;
	struct pem_error error = {{0}};
	void *handle;

	(void)name;
	if (!cli_exporter__load(path, &exporter, &handle, &error)) {
		cli_say("%s", error.text);
		return 0;
	}
	if (search->wanted != NULL && strcmp(exporter.name, search->wanted) == 0) {
		search->found = exporter;
		search->handle = handle;
		return 1;
	}
	if (search->count < FORMATS_MAX) {
		/* The plugin stays loaded, because it owns its name and description. */
		search->names[search->count] = exporter.name;
		search->all[search->count++] = exporter;
	}
	return 0;
}

/* Not a plugin: a trace is CTF, but for what --compress does to it. */
static const struct pem_exporter ctf = {
	.name = "ctf",
	.suffix = CTF_SUFFIX,
	.description = "a copy of the trace that is not compressed, for any reader of CTF",
};

static int list_formats(bool json)
{
	struct search search = {0};
	struct json_object *array = json ? json_object_new_array() : NULL;
	struct cli_table *table = json ? NULL : cli_table__new(stdout);
	size_t i;

	cli_exporters__visit(visit, refuse, &search);
	if (table != NULL) {
		cli_table__column(table, "FORMAT", CLI_LEFT);
		cli_table__column(table, "SUFFIX", CLI_LEFT);
		cli_table__column(table, "WHAT", CLI_LEFT);
	}
	for (i = 0; i <= search.count; i++) {
		const struct pem_exporter *e = i == 0 ? &ctf : &search.all[i - 1];
		struct json_object *object;

		if (table != NULL) {
			cli_table__row(table, CLI_PLAIN);
			cli_table__cell(table, e->name);
			cli_table__cell(table, e->suffix != NULL ? e->suffix : "");
			cli_table__cell(table, e->description != NULL ? e->description : "");
			continue;
		}
		object = json_object_new_object();
		cli_json__text(object, "name", e->name);
		cli_json__text(object, "suffix", e->suffix);
		cli_json__text(object, "description", e->description);
		json_object_array_add(array, object);
	}
	if (table != NULL)
		cli_table__print(table);
	else
		cli_json__print(array, stdout, false);
	return cli_finish_output(CLI_DONE);
}

static int unknown_format(const struct cli_verb *verb, const char *format, struct search *search)
{
	const char *near;

	if (search->count < FORMATS_MAX)
		search->names[search->count++] = ctf.name;
	near = cli_nearest(format, search->names, search->count);
	if (near != NULL)
		return cli_usage_error(verb, "no format '%s'; did you mean '%s'?", format, near);
	return cli_usage_error(verb, "no format '%s'; pem export --list shows what there is",
			       format);
}

/* Make the default output: the trace's folder name and the suffix, in the current folder. */
static void default_output(const char *directory, const char *suffix, char *path, size_t bytes)
{
	size_t end = strlen(directory), start;

	while (end > 1 && directory[end - 1] == '/')
		end--;
	start = end;
	while (start > 0 && directory[start - 1] != '/')
		start--;
	if (end - start == 0 || (end - start <= 2 && directory[start] == '.'))
		snprintf(path, bytes, "trace%s", suffix);
	else
		snprintf(path, bytes, "%.*s%s", (int)(end - start), directory + start, suffix);
}

/* Does a file, which may not exist yet, lie in a trace's folder or below? */
static bool lies_in(const char *path, const char *directory)
{
	char real[PATH_MAX], above[PATH_MAX];
	const char *slash;
	struct stat trace, folder, last = {0};

	/* The path may be a link. */
	if (realpath(path, real) != NULL)
		path = real;
	slash = strrchr(path, '/');
	snprintf(above, sizeof(above), "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
		 slash != NULL ? path : ".");
	if (stat(directory, &trace) != 0)
		return false;
	/* The root folder is its own parent, so the loop ends there. */
	while (stat(above, &folder) == 0 &&
	       (folder.st_ino != last.st_ino || folder.st_dev != last.st_dev)) {
		if (folder.st_ino == trace.st_ino && folder.st_dev == trace.st_dev)
			return true;
		last = folder;
		if (strlen(above) + sizeof("/..") > sizeof(above))
			break;
		strcat(above, "/..");
	}
	return false;
}

/*
 * Is the default output not there yet, or a regular file of this user's? Nobody named that file, so
 * nothing else is replaced. The exporter follows no link and opens no pipe.
 */
static int check_default(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0 || (S_ISREG(st.st_mode) && st.st_uid == geteuid()))
		return CLI_DONE;
	return cli_error(CLI_WRONG_INPUT,
			 "the default output, %s, exists and is %s: name another file with -o",
			 path, S_ISREG(st.st_mode) ? "another user's" : "not a regular file");
}

/*
 * A file that the user named may be a link, a pipe or a device: it becomes standard output, which
 * the exporter writes to. *to is then "-". A regular file, or a new one, is the exporter's to make.
 */
static int open_named(const char *path, const char **to)
{
	struct stat st;
	int fd, rc;

	*to = path;
	if (strcmp(path, "-") == 0 || lstat(path, &st) < 0 || S_ISREG(st.st_mode))
		return CLI_DONE;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);
	rc = fd < 0 || dup2(fd, STDOUT_FILENO) < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	*to = "-";
	return rc == 0 ? CLI_DONE
		       : cli_error(cli_status_of_errno(rc), "cannot write '%s': %s", path,
				   strerror(rc));
}

/* other: another run's trace, or NULL. */
static int export_trace(const struct cli_verb *verb, const struct pem_exporter *exporter,
			const char *directory, const char *other, const char *output,
			const char *amount)
{
	struct cli_progress progress;
	struct pem_export_options export_options = {.size = sizeof(export_options),
						    .progress = cli_progress__update,
						    .progress_arg = &progress,
						    .amount = amount};
	struct pem_error error = {{0}};
	struct pem_trace *trace;
	char path[PATH_MAX];
	const char *to;
	int rc;

	trace = cli_trace__open(directory, &rc);
	if (trace == NULL)
		return rc;
	export_options.title = pem_trace__info(trace)->command;
	if (other != NULL) {
		export_options.other = cli_trace__open(other, &rc);
		if (export_options.other == NULL) {
			pem_trace__close(trace);
			return rc;
		}
		export_options.other_title = pem_trace__info(export_options.other)->command;
	}
	if (output != NULL)
		snprintf(path, sizeof(path), "%s", output);
	else
		default_output(directory, exporter->suffix != NULL ? exporter->suffix : "", path,
			       sizeof(path));
	if (strcmp(path, "-") != 0 &&
	    (lies_in(path, directory) || (other != NULL && lies_in(path, other)))) {
		pem_trace__close(export_options.other);
		pem_trace__close(trace);
		return cli_usage_error(verb,
				       "%s lies in the trace, all of whose files are its own; -o "
				       "names a file elsewhere",
				       path);
	}
	to = path;
	rc = output != NULL ? open_named(path, &to) : check_default(path);
	if (rc != CLI_DONE) {
		pem_trace__close(export_options.other);
		pem_trace__close(trace);
		return rc;
	}
	cli_progress__start(&progress, "exporting");
	rc = exporter->run(trace, to, &export_options, &error);
	cli_progress__end(&progress);
	pem_trace__close(export_options.other);
	pem_trace__close(trace);
	if (rc < 0 && *error.text == '\0')
		snprintf(error.text, sizeof(error.text), "%s", strerror(-rc));
	if (rc < 0)
		return cli_error(rc == -EINVAL || rc == -E2BIG   ? CLI_WRONG_INPUT
				 : rc == -EACCES || rc == -EROFS ? CLI_NOT_HERE
								 : CLI_FAILED,
				 "%s%s%s", to != path ? path : "", to != path ? ": " : "",
				 error.text);
	if (strcmp(path, "-") != 0)
		cli_say("wrote %s", path);
	return cli_finish_output(CLI_DONE);
}

/* Write a copy of a trace that is CTF, whether or not it was compressed: a folder. */
static int export_ctf(const struct cli_verb *verb, const char *directory, const char *output)
{
	struct pem_error error = {{0}};
	struct pem_trace *trace;
	char path[PATH_MAX];
	int rc;

	if (output != NULL)
		snprintf(path, sizeof(path), "%s", output);
	else
		default_output(directory, CTF_SUFFIX, path, sizeof(path));
	if (strcmp(path, "-") == 0)
		return cli_usage_error(verb, "a CTF trace is a folder; -o names it");
	if (lies_in(path, directory))
		return cli_usage_error(verb,
				       "%s lies in the trace, all of whose files are its own; -o "
				       "names a folder elsewhere",
				       path);
	trace = cli_trace__open(directory,
				&rc); /* what a killed recorder left is recovered first */
	if (trace == NULL)
		return rc;
	pem_trace__close(trace);
	rc = pem_trace__unpack(directory, path, &error);
	if (rc < 0)
		return cli_error(cli_status_of_errno(-rc), "%s", error.text);
	cli_say("wrote %s", path);
	return CLI_DONE;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	const char *format = NULL, *output = NULL, *amount = NULL;
	bool list = false, json = false;
	struct search search = {0};
	int code, status;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		if (code == OPT_TO)
			format = optarg;
		else if (code == 'o')
			output = optarg;
		else if (code == OPT_OF)
			amount = optarg;
		else if (code == OPT_LIST)
			list = true;
		else
			json = true;
	}
	if (list)
		return list_formats(json);
	if (format == NULL)
		return cli_usage_error(
			verb, "--to FORMAT is missing; pem export --list shows the formats");
	if (optind == argc)
		return cli_usage_error(verb, "no trace given");
	if (optind + 2 < argc)
		return cli_usage_error(verb, "more than two traces: give one run, and one to "
					     "compare it with");
	if (strcmp(format, "ctf") == 0 && optind + 1 == argc)
		return export_ctf(verb, argv[optind], output);
	search.wanted = format;
	if (strcmp(format, "ctf") != 0 && cli_exporters__visit(visit, refuse, &search) != 1)
		return unknown_format(verb, format, &search);
	if (optind + 1 < argc && !search.found.takes_other)
		status = cli_usage_error(verb,
					 "a file of format '%s' has one run: give one trace, or "
					 "--to html for two",
					 format);
	else if (amount != NULL && !search.found.takes_amount)
		status = cli_usage_error(verb, "format '%s' has no --of", format);
	else
		status = export_trace(verb, &search.found, argv[optind],
				      optind + 1 < argc ? argv[optind + 1] : NULL, output, amount);
	if (search.handle != NULL)
		dlclose(search.handle);
	return status;
}

const struct cli_verb cli_export = {
	.name = "export",
	.summary = "write a trace in another format",
	.usage = "export --to FORMAT TRACE [-o OUT]\nexport --to html TRACE OTHER [-o OUT]\n"
		 "export --to folded [--of AMOUNT] TRACE [-o OUT]\n"
		 "export --list [--json]",
	.text = "Writes a whole trace in a format that other tools or people read. Each format is "
		"a "
		"plugin, export-NAME.so, in the library folder beside libpem or in the folders of "
		"PEM_PLUGIN_PATH (parted by colons). Folders and files that others may write to "
		"are "
		"left out.\n\nOf two traces the HTML page lays the second run over the first, "
		"dashed, "
		"aligned at their starts.\n\nCSV has a row per record, and first the columns clock "
		"(its cycles), "
		"time_ns "
		"(since the trace's start), layer, event, pid, tid, cpu, process, "
		"process_start_ns and thread_start_ns; what is unknown is empty. One pid or tid "
		"may "
		"be several, one after the other: the start tells them apart. Then comes a column "
		"for each name that a field of an event in "
		"the trace has, in which events share fields of one name; a field called like one "
		"of the first columns is field_NAME, such as field_pid. A trace that needs more "
		"than 2000 columns is refused: sqlite3 would not import it. Numbers are plain, in "
		"the "
		"unit that pem list -v EVENT tells; values with labels are their names, addresses "
		"and other fields of base 16 are 0x..., a list is its elements parted by blanks. A "
		"text that a spreadsheet would take for a formula, as it begins with =, +, - or @, "
		"has an apostrophe in front, and so has one that begins with an apostrophe. Of "
		"what a terminal would obey each byte is \\xNN. So is a byte that is no UTF-8, and "
		"a backslash in front of an x is \\x5c.",
	.examples =
		"pem export --list           formats there are\n"
		"pem export --to html pem-trace-sqlite3-1\n"
		"                            pem-trace-sqlite3-1.html, a page that opens offline\n"
		"pem export --to html pem-trace-sqlite3-1 pem-trace-sqlite3-2 -o both.html\n"
		"                            one page of two runs\n"
		"pem export --to perfetto pem-trace-sqlite3-1 -o run.pftrace\n"
		"                            for ui.perfetto.dev\n"
		"pem export --to folded pem-trace-sqlite3-1 -o - | flamegraph.pl > run.svg\n"
		"                            stacks of samples, as other tools take them\n"
		"pem export --to folded --of peak pem-trace-sqlite3-1 -o peak\n"
		"                            who held memory when most was held\n"
		"babeltrace2 pem-trace-sqlite3-1\n"
		"                            needs no export: a trace is CTF as it is,\n"
		"                            unless it was recorded with --compress\n"
		"pem export --to ctf pem-trace-sqlite3-1\n"
		"                            pem-trace-sqlite3-1-ctf, which then is",
	.options = options,
	.run = run,
};
