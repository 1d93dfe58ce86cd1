// SPDX-License-Identifier: MIT
/*
 * specs.c - events of specs that are not built into pem: finds the specs and loads them into a
 * session
 *
 * Events that the program itself carries come first, because the program raises these. Then specs
 * are searched in this order: beside the catalogue's specs where pem is installed; in
 * PEM_SPEC_PATH; in the folder of the program to be recorded, and of the first file it is given,
 * its script; in the current folder. pem-codegen --models converts each of them to a model.
 * Contradictions between events are found here, where both locations are known.
 */
#include "cli.h"
#include "grow.h"

#include "builtin_specs.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PATH_DEPTH 4u /* levels of folders below a folder of PEM_SPEC_PATH */
#define ARGUMENTS 16 /* of a command, searched for a file */
#define SPEC_BYTES_MAX (1u << 20)

/* One line of "pem-codegen --models" for an event: its location. It points into the output. */
struct location {
	uint32_t id;
	char *line, *column;
	const char *path;
};

struct loading {
	struct pem_session *session;
	const struct cli_spec_files *files;
	struct location *locations; /* of events of all files so far */
	size_t location_count, location_capacity;
	bool *done; /* by file: its model was loaded */
	const struct cli_patterns *asked;
	const char *program; /* file of the program, or NULL */
	struct pem_model *carried; /* events that the program carries */
	bool is_its; /* a spec is left out because the program carries another event */
	/* Messages about specs of the current folder, printed if they matter. */
	struct cli_words here;
	bool quiet;
	int status;
};

/* --- which files --- */

static int name_path(struct cli_spec_files *files)
{
	const char *env = secure_getenv("PEM_SPEC_PATH");
	char *copy = strdup(env != NULL ? env : ""), *rest = copy, *part;
	int rc = copy != NULL ? 0 : -ENOMEM;
	struct stat st;

	while (rc == 0 && (part = strsep(&rest, ":")) != NULL) {
		if (*part == '\0')
			continue;
		if (stat(part, &st) == 0 && S_ISDIR(st.st_mode))
			rc = cli_spec_files__add_folder(files, part, PATH_DEPTH, CLI_SPEC_PATH,
							NULL);
		else
			rc = cli_spec_files__add(files, part, CLI_SPEC_PATH);
		if (rc == -E2BIG)
			cli_error(CLI_WRONG_INPUT,
				  "PEM_SPEC_PATH leads to too many specs, the last in '%s': name "
				  "fewer folders",
				  part);
		else if (rc < 0)
			cli_error(CLI_WRONG_INPUT,
				  "PEM_SPEC_PATH names '%s', which can't be read: %s", part,
				  strerror(-rc));
	}
	free(copy);
	return rc < 0 ? CLI_WRONG_INPUT : CLI_DONE;
}

static void name_neighbours(struct cli_spec_files *files, const char *file)
{
	char path[PATH_MAX], *slash;

	if (realpath(file, path) == NULL)
		return;
	slash = strrchr(path, '/');
	if (slash == NULL)
		return;
	*slash = '\0';
	cli_spec_files__add_folder(files, *path != '\0' ? path : "/", 0, CLI_SPEC_BESIDE, NULL);
}

static int name_files(struct cli_spec_files *files, const char *program, char **argv)
{
	char folder[PATH_MAX];
	struct stat st;
	int status, i;

	/* Built-in specs need not be read again. Editing their files changes nothing. */
	if (cli_spec_folder(folder, sizeof(folder)) == 0)
		cli_spec_files__add_folder(files, folder, 0, CLI_SPEC_INSTALLED, builtin_specs);
	status = name_path(files);
	if (status != CLI_DONE)
		return status;
	if (program != NULL)
		name_neighbours(files, program);
	/* The program of python3 program.py is program.py. */
	for (i = 1; program != NULL && argv[0] != NULL && i < ARGUMENTS && argv[i] != NULL; i++) {
		if (stat(argv[i], &st) == 0 && S_ISREG(st.st_mode)) {
			name_neighbours(files, argv[i]);
			break;
		}
	}
	/*
	 * Compilers put programs elsewhere (target/release, classes), and pem list has no program.
	 * So the current folder is searched, too.
	 */
	cli_spec_files__add_folder(files, ".", 0, CLI_SPEC_HERE, NULL);
	return status;
}

/* --- locations of events --- */

/* The line of a file that names an event. 0: there is none. */
static unsigned int find_line(const char *path, const char *name)
{
	char *text = malloc(SPEC_BYTES_MAX + 1), *found = NULL, *p;
	FILE *file = fopen(path, "re");
	unsigned int line = 0;
	size_t n;

	if (file != NULL && text != NULL) {
		n = fread(text, 1, SPEC_BYTES_MAX, file);
		text[n] = '\0';
		found = strstr(text, cli_format("<event name='%s'", name));
		if (found == NULL)
			found = strstr(text, cli_format("<event name=\"%s\"", name));
	}
	for (p = text; found != NULL && p <= found; p++)
		line += p == text || p[-1] == '\n';
	if (file != NULL)
		fclose(file);
	free(text);
	return line;
}

/* Describe where an event of the catalogue is defined. */
static const char *builtin_location(const char *name)
{
	char folder[PATH_MAX], path[PATH_MAX + 64];
	const char *const *file;
	unsigned int line;

	if (cli_spec_folder(folder, sizeof(folder)) == 0) {
		for (file = builtin_specs; *file != NULL; file++) {
			snprintf(path, sizeof(path), "%s/%s", folder, *file);
			line = find_line(path, name);
			if (line != 0)
				return cli_format("%s:%u", path, line);
		}
	}
	return "the one built into pem";
}

static const struct location *location_of(const struct loading *l, size_t first, size_t end,
					  uint32_t id)
{
	size_t i;

	for (i = first; i < end; i++)
		if (l->locations[i].id == id)
			return &l->locations[i];
	return NULL;
}

/* --- one file's model --- */

/*
 * Report that a file is left out. It is an error if PEM_SPEC_PATH names the file, unless the
 * program's own events replace it.
 */
static void leave_out(struct loading *l, const struct cli_spec_file *file, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void leave_out(struct loading *l, const struct cli_spec_file *file, const char *format, ...)
{
	char sentence[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (l->is_its) {
		if (!l->quiet)
			cli_say("a spec is left out, since the program has other events: %s",
				sentence);
	} else if (file->origin == CLI_SPEC_PATH) {
		fprintf(stderr, "%s\n", pem_printable(sentence));
		l->status = CLI_WRONG_INPUT;
	} else if (file->origin == CLI_SPEC_HERE) {
		cli_words__add(&l->here, sentence);
	} else if (!l->quiet) {
		cli_say("a spec %s is left out: %s",
			file->origin == CLI_SPEC_BESIDE ? "beside the program"
							: "installed beside pem's",
			sentence);
	}
}

/* Did the user ask for an event that is unknown? */
static bool misses_any(const struct loading *l)
{
	struct pem_event_set *set;
	struct pem_error error;
	size_t i;

	for (i = 0; i < l->asked->count; i++) {
		set = pem_event_set__new(l->session, (const char *const *)&l->asked->text[i], 1,
					 &error);
		pem_event_set__free(set);
		if (set == NULL)
			return true;
	}
	return false;
}

/*
 * The current folder may hold specs for other purposes. They are reported only if they may explain
 * a missing event.
 */
static void say_left_out_here(const struct loading *l)
{
	size_t i;

	if (l->quiet || l->here.count == 0 || (l->asked != NULL && !misses_any(l)))
		return;
	for (i = 0; i < l->here.count; i++)
		if (l->here.text[i] != NULL)
			cli_say("a spec in the current folder is left out: %s", l->here.text[i]);
}

/* Does an event of the file contradict an event in the session? If so, report it. */
static bool contradicts(struct loading *l, const struct cli_spec_file *file, size_t first,
			const struct pem_model *model)
{
	const struct pem_model *known = pem_session__model(l->session);
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);
		const struct pem_event *other = pem_model__by_id(known, event->id);
		const struct location *here = location_of(l, first, l->location_count, event->id);
		const struct location *there;

		if (other == NULL || pem_event__equal(other, event))
			continue;
		there = location_of(l, 0, first, event->id);
		l->is_its = there == NULL && pem_model__by_id(l->carried, other->id) != NULL;
		leave_out(l, file,
			  "%s:%s:%s: error: event '%s' is not the '%s' of %s%s%s%s%s: expected "
			  "another "
			  "name, another version, or the same fields",
			  file->path, here != NULL ? here->line : "1",
			  here != NULL ? here->column : "1", event->name, other->name,
			  there != NULL ? there->path
			  : l->is_its   ? l->program
					: builtin_location(other->name),
			  there != NULL ? ":" : "", there != NULL ? there->line : "",
			  there != NULL ? ":" : "", there != NULL ? there->column : "");
		l->is_its = false;
		return true;
	}
	return false;
}

static void add_model(struct loading *l, const struct cli_spec_file *file, size_t first,
		      const char *text, size_t bytes)
{
	struct pem_model *model = pem_model__new();
	struct pem_error error = {{0}};
	int rc = -ENOMEM;

	if (model != NULL)
		rc = pem_model__add_text(model, text, bytes, file->path, &error);
	if (rc >= 0 && contradicts(l, file, first, model))
		goto out;
	if (rc >= 0)
		rc = pem_session__add_model(l->session, text, bytes, file->path, &error);
	if (rc < 0)
		leave_out(l, file, "%s", *error.text != '\0' ? error.text : strerror(-rc));
out:
	pem_model__free(model);
}

/* Parse "ID LINE COLUMN", separated by tabs, at p. */
static bool add_location(struct loading *l, const struct cli_spec_file *file, char *p)
{
	char *id = strsep(&p, "\t"), *line = strsep(&p, "\t"), *column = strsep(&p, "\t");
	struct location *location;

	if (column == NULL || pem_grow(&l->locations, sizeof(*l->locations), l->location_count + 1,
				       &l->location_capacity) < 0)
		return false;
	location = &l->locations[l->location_count++];
	*location = (struct location){(uint32_t)strtoul(id, NULL, 16), line, column, file->path};
	return true;
}

/*
 * Read the output of pem-codegen --models: for each file without errors a line "spec INDEX PLACES
 * BYTES", then PLACES lines and a model of BYTES. The output is of our own program, so it is
 * checked only enough to stay in bounds.
 */
static bool read_models(struct loading *l, char *text)
{
	while (*text != '\0') {
		size_t index, locations, bytes, i, first = l->location_count;
		const struct cli_spec_file *file;
		char *end = strchr(text, '\n');

		if (end == NULL ||
		    sscanf(text, "spec\t%zu\t%zu\t%zu", &index, &locations, &bytes) != 3 ||
		    index >= l->files->count)
			return false;
		file = &l->files->files[index];
		text = end + 1;
		for (i = 0; i < locations; i++) {
			end = strchr(text, '\n');
			if (end == NULL)
				return false;
			*end = '\0';
			if (!add_location(l, file, text))
				return false;
			text = end + 1;
		}
		if (strnlen(text, bytes) < bytes)
			return false;
		l->done[index] = true;
		add_model(l, file, first, text, bytes);
		text += bytes;
	}
	return true;
}

/* --- reporting errors --- */

/* Print the errors of one file: all unchanged, or the first one in a warning. */
static void say_errors(struct loading *l, const struct cli_spec_file *file, const char *errors)
{
	size_t n, count = 0, first_length = 0;
	const char *line, *first = NULL;
	char shown[2048], path[PATH_MAX];

	/* pem-codegen prints paths in this form, too. */
	snprintf(path, sizeof(path), "%s", file->path);
	n = strlen(pem_printable(path));
	for (line = errors; *line != '\0'; line += strcspn(line, "\n") + 1) {
		size_t length = strcspn(line, "\n");

		if (strncmp(line, path, n) == 0 && line[n] == ':' &&
		    memmem(line, length, ": error: ", 9) != NULL) {
			if (file->origin == CLI_SPEC_PATH) {
				snprintf(shown, sizeof(shown), "%.*s", (int)length, line);
				fprintf(stderr, "%s\n", pem_printable(shown));
			}
			if (count++ == 0) {
				first = line;
				first_length = length;
			}
		}
		if (line[length] == '\0')
			break;
	}
	if (file->origin == CLI_SPEC_PATH)
		l->status =
			cli_error(CLI_WRONG_INPUT,
				  "PEM_SPEC_PATH names %s, which is wrong (see above)", file->path);
	else if (count == 1)
		leave_out(l, file, "%.*s", (int)first_length, first);
	else if (count > 1)
		leave_out(l, file, "%.*s; and %zu more: pem spec check %s shows them",
			  (int)first_length, first, count - 1, file->path);
}

static int run_codegen(struct loading *l)
{
	struct cli_words words = {0};
	char *out = NULL, *errors = NULL;
	int status = CLI_FAILED;
	size_t i;

	if (!cli_words__add(&words, "--models") || !cli_words__add(&words, "--"))
		goto end;
	for (i = 0; i < l->files->count; i++)
		if (!cli_words__add(&words, l->files->files[i].path))
			goto end;
	status = cli_codegen__read(&words, &out, &errors);
	/* an error was already printed */
	if (status != CLI_DONE && status != CLI_WRONG_INPUT)
		goto end;
	status = CLI_DONE;
	if (!read_models(l, out))
		status = cli_error(CLI_FAILED, "pem-codegen and pem are of different versions");
	for (i = 0; i < l->files->count && status == CLI_DONE; i++)
		if (!l->done[i])
			say_errors(l, &l->files->files[i], errors);
end:
	cli_words__free(&words);
	free(out);
	free(errors);
	return status != CLI_DONE ? status : l->status;
}

/* Load the events that the program carries. Other errors of its file show when it is run. */
static int load_carried(struct loading *l)
{
	struct pem_error error;
	int rc = cli_program_events__load(l->session, l->program, l->carried, l->quiet, &error);

	if (rc == -ENOMEM)
		return cli_error(CLI_FAILED, "%s", error.text);
	if (rc == -E2BIG && !l->quiet)
		cli_say("more events may come with the program than those known by name: %s",
			error.text);
	return CLI_DONE;
}

int cli_specs__load(struct pem_session *session, const char *program, char **argv,
		    const struct cli_patterns *asked, bool quiet)
{
	struct cli_spec_files files = {0};
	struct loading l = {.session = session, .files = &files, .asked = asked, .quiet = quiet};
	int status = name_files(&files, program, argv);

	l.program = program;
	l.carried = pem_model__new();
	if (l.carried == NULL)
		status = cli_error(CLI_FAILED, "no memory");
	if (status == CLI_DONE && program != NULL)
		status = load_carried(&l);
	if (status == CLI_DONE && files.count != 0) {
		l.done = calloc(files.count, sizeof(*l.done));
		status = l.done != NULL ? run_codegen(&l) : cli_error(CLI_FAILED, "no memory");
	}
	say_left_out_here(&l);
	cli_words__free(&l.here);
	pem_model__free(l.carried);
	free(l.done);
	free(l.locations);
	cli_spec_files__free(&files);
	return status;
}
