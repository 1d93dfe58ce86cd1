// SPDX-License-Identifier: MIT
/*
 * specs.c - events of specs that are not built into pem: finds the specs and loads them into a
 * session
 *
 * Events that the program itself carries come first, because the program raises these. Then specs
 * are searched in this order: beside the catalogue's specs where pem is installed; in
 * PEM_SPEC_PATH; in the folder of the program to be recorded, and of the first file it is given,
 * its script; in the current folder. The session reads them (pem_session__add_specs).
 */
#include "cli.h"
#include "spec_files.h"

#include "builtin_specs.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_DEPTH 4u /* levels of folders below a folder of PEM_SPEC_PATH */
#define ARGUMENTS 16 /* of a command, searched for a file */

struct loading {
	struct pem_session *session;
	const struct cli_patterns *asked;
	/* Messages about specs of the current folder, printed if they matter. */
	struct cli_words here;
	bool quiet;
	int status;
};

/* --- which files --- */

bool cli_specs__trusts(const char *folder)
{
	const char *sudo = geteuid() == 0 ? secure_getenv("SUDO_UID") : NULL;
	struct stat st;

	if (stat(folder, &st) < 0 || (st.st_mode & S_IWOTH) != 0)
		return false;
	if (st.st_uid != geteuid() && st.st_uid != 0 &&
	    (sudo == NULL || strcmp(sudo, cli_format("%u", st.st_uid)) != 0))
		return false;
	return (st.st_mode & S_IWGRP) == 0 || (st.st_uid == geteuid() && st.st_gid == getegid());
}

/* The folder with the catalogue's specs of an installation. Returns 0 or -errno. */
static int spec_folder(char *path, size_t bytes)
{
	static const char there[] = "/../share/pem/spec";
	int rc = cli_program_folder(path, bytes - sizeof(there));

	if (rc == 0)
		strcat(path, there);
	return rc;
}

static int name_path(struct pem_spec_files *files)
{
	const char *env = secure_getenv("PEM_SPEC_PATH");
	char *copy = strdup(env != NULL ? env : ""), *rest = copy, *part;
	int rc = copy != NULL ? 0 : -ENOMEM;
	struct stat st;

	while (rc == 0 && (part = strsep(&rest, ":")) != NULL) {
		if (*part == '\0')
			continue;
		if (stat(part, &st) == 0 && S_ISDIR(st.st_mode))
			rc = pem_spec_files__add_folder(files, part, PATH_DEPTH, CLI_SPEC_PATH,
							NULL);
		else
			rc = pem_spec_files__add(files, part, CLI_SPEC_PATH);
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

static void name_neighbours(struct pem_spec_files *files, const char *file)
{
	char path[PATH_MAX], *slash;

	if (realpath(file, path) == NULL)
		return;
	slash = strrchr(path, '/');
	if (slash == NULL)
		return;
	*slash = '\0';
	pem_spec_files__add_folder(files, *path != '\0' ? path : "/", 0, CLI_SPEC_BESIDE, NULL);
}

static bool has_file(const struct pem_spec_files *files, const struct pem_spec_file *file)
{
	size_t i;

	for (i = 0; i < files->count; i++)
		if (files->files[i].device == file->device && files->files[i].inode == file->inode)
			return true;
	return false;
}

/*
 * Compilers put programs elsewhere (target/release, classes), and pem list has no program. So the
 * current folder is searched, too.
 */
static void name_here(struct loading *l, struct pem_spec_files *files)
{
	struct pem_spec_files others = {0};
	size_t i;

	if (cli_specs__trusts(".")) {
		pem_spec_files__add_folder(files, ".", 0, CLI_SPEC_HERE, NULL);
		return;
	}
	pem_spec_files__add_folder(&others, ".", 0, CLI_SPEC_HERE, NULL);
	for (i = 0; i < others.count; i++)
		if (!has_file(files, &others.files[i]))
			cli_words__add(&l->here,
				       cli_format("%s: other users can write to this folder; set "
						  "PEM_SPEC_PATH to read it all the same",
						  others.files[i].path));
	pem_spec_files__free(&others);
}

static int name_files(struct loading *l, struct pem_spec_files *files, const char *program,
		      char **argv)
{
	char folder[PATH_MAX];
	struct stat st;
	int status, i;

	/* Built-in specs need not be read again. Editing their files changes nothing. */
	if (spec_folder(folder, sizeof(folder)) == 0)
		pem_spec_files__add_folder(files, folder, 0, CLI_SPEC_INSTALLED, builtin_specs);
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
	name_here(l, files);
	return status;
}

/* --- one file --- */

/*
 * Print all errors of a file that PEM_SPEC_PATH names: the library's sentence has only the first.
 */
static void say_errors(struct loading *l, const char *path, const char *first)
{
	struct cli_words words = {0};
	char *out = NULL;

	l->status = CLI_WRONG_INPUT;
	if (!cli_words__add(&words, "--models") || !cli_words__add(&words, "--") ||
	    !cli_words__add(&words, path) || cli_codegen__read(&words, &out, NULL) == CLI_DONE)
		fprintf(stderr, "%s\n", first);
	else
		cli_say("PEM_SPEC_PATH names %s, which is wrong (see above)", path);
	cli_words__free(&words);
	free(out);
}

/*
 * Report that a file is left out. It is an error if PEM_SPEC_PATH names the file, unless the
 * program's own events replace it.
 */
static void leave_out(struct loading *l, const struct pem_spec_file *file, int code,
		      const char *sentence)
{
	if (code == -EEXIST) {
		if (!l->quiet)
			cli_say("a spec is left out, since the program has other events: %s",
				sentence);
	} else if (file->origin == CLI_SPEC_PATH) {
		say_errors(l, file->path, sentence);
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

/* Load the events that the program carries. Other errors of its file show when it is run. */
static int load_carried(struct pem_session *session, const char *program, bool quiet)
{
	struct pem_error error;
	int rc = pem_session__describe(session, PEM_ANY, program, &error);

	if (rc == -ENOMEM)
		return cli_error(CLI_FAILED, "%s", error.text);
	if (rc == -E2BIG && !quiet)
		cli_say("more events may come with the program than those known by name: %s",
			error.text);
	return CLI_DONE;
}

int cli_specs__load(struct pem_session *session, const char *program, char **argv,
		    const struct cli_patterns *asked, bool quiet)
{
	struct pem_spec_files files = {0};
	struct loading l = {.session = session, .asked = asked, .quiet = quiet};
	struct pem_error error;
	size_t i;
	int rc;

	l.status = name_files(&l, &files, program, argv);
	if (l.status == CLI_DONE && program != NULL)
		l.status = load_carried(session, program, quiet);
	for (i = 0; i < files.count && l.status == CLI_DONE; i++) {
		rc = pem_session__add_specs(session, files.files[i].path, &error);
		if (rc == -ENOPKG)
			l.status = cli_error(CLI_NOT_HERE, "%s", error.text);
		else if (rc < 0)
			leave_out(&l, &files.files[i], rc, error.text);
	}
	say_left_out_here(&l);
	cli_words__free(&l.here);
	pem_spec_files__free(&files);
	return l.status;
}
