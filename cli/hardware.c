// SPDX-License-Identifier: MIT
/*
 * hardware.c - a command on a machine that is simulated: under a tool for Valgrind, which counts
 * into a file
 */
#include "cli.h"

#include <pem/hardware.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOOL "pem-hardware"
#define RUNNER_WORDS 8u /* before the command */

/* Find the tool's folder: below PEM_LIBRARY_PATH, else beside the sources of libpem. */
static int find_tool(char *folder, size_t bytes)
{
	char tool[PATH_MAX + 128];
	const char *libraries = secure_getenv("PEM_LIBRARY_PATH");

	if (libraries != NULL) {
		snprintf(folder, bytes, "%s/pem/valgrind", libraries);
		snprintf(tool, sizeof(tool), "%s/" TOOL "-amd64-linux", folder);
		if (access(tool, X_OK) == 0)
			return CLI_DONE;
	}
	if (cli_library_file("pem/valgrind", folder, bytes) == 0) {
		snprintf(tool, sizeof(tool), "%s/" TOOL "-amd64-linux", folder);
		if (access(tool, X_OK) == 0)
			return CLI_DONE;
	}
	return cli_error(CLI_NOT_HERE,
			 "there is no tool that simulates hardware: it is built for x86-64 if "
			 "Valgrind is installed with its libraries");
}

/* Write the machine's description, and room for what is counted. */
static int write_file(const char *path, const char *machine, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	bool good = fd >= 0 && write(fd, machine, bytes) == (ssize_t)bytes &&
		    ftruncate(fd, sizeof(struct pem_hardware_file)) == 0;
	int error = errno;

	if (fd >= 0)
		close(fd);
	return good ? CLI_DONE
		    : cli_error(cli_status_of_errno(error), "cannot write %s: %s", path,
				strerror(error));
}

static int read_machine(struct cli_hardware *hardware, const char *path)
{
	struct cli_words words = {0};
	char *machine = NULL;
	size_t bytes = 0;
	int status = CLI_FAILED;

	if (cli_words__add(&words, "--hardware") && cli_words__add(&words, "--") &&
	    cli_words__add(&words, path))
		status = cli_codegen__read_bytes(&words, &machine, &bytes);
	cli_words__free(&words);
	if (status == CLI_DONE && bytes != sizeof(struct pem_hardware))
		status = cli_error(CLI_FAILED,
				   "pem-codegen beside this program is of another version");
	if (status == CLI_DONE)
		status = write_file(hardware->file, machine, bytes);
	free(machine);
	return status;
}

/* Valgrind replaces some words behind a '%' in the names of its files. */
static void escape(char *to, size_t bytes, const char *from)
{
	size_t used = strlen(to);

	for (; *from != '\0' && used + 2 < bytes; from++) {
		to[used++] = *from;
		if (*from == '%')
			to[used++] = '%';
	}
	to[used] = '\0';
}

static int make_folder(struct cli_hardware *hardware)
{
	const char *temporary = getenv("TMPDIR");
	int rc;

	if (temporary != NULL && *temporary != '\0' && access(temporary, W_OK | X_OK) < 0)
		return cli_error(CLI_WRONG_INPUT,
				 "Valgrind needs a folder for its files, and TMPDIR names %s: %s",
				 temporary, strerror(errno));
	rc = cli_temporary__folder("pem-hardware", hardware->folder, sizeof(hardware->folder));
	if (rc == -EPERM)
		return cli_error(CLI_NOT_HERE,
				 "other users can change files in TMPDIR and in /tmp: set TMPDIR "
				 "to a folder of your own, below such folders");
	if (rc < 0)
		return cli_error(cli_status_of_errno(-rc),
				 "cannot make a folder for temporary files: %s", strerror(-rc));
	snprintf(hardware->file, sizeof(hardware->file), "%s/counts", hardware->folder);
	snprintf(hardware->log, sizeof(hardware->log), "%s/said", hardware->folder);
	snprintf(hardware->log_option, sizeof(hardware->log_option), "--log-file=");
	escape(hardware->log_option, sizeof(hardware->log_option), hardware->log);
	snprintf(hardware->option, sizeof(hardware->option), "--hardware=%s", hardware->file);
	return CLI_DONE;
}

/* Valgrind's own words are left out; what it must say of a program that it can't run stays. */
static int wrap(struct cli_hardware *hardware, char **command)
{
	static char valgrind[] = "valgrind", tool[] = "--tool=" TOOL, quiet[] = "-q",
		    children[] = "--trace-children=yes", debugger[] = "--vgdb=no",
		    separator[] = "--";
	char *words[RUNNER_WORDS] = {valgrind,         tool,     quiet,
				     children,         debugger, hardware->log_option,
				     hardware->option, separator};
	size_t count = 0;

	while (command[count] != NULL)
		count++;
	hardware->command = calloc(RUNNER_WORDS + count + 1, sizeof(*hardware->command));
	if (hardware->command == NULL)
		return cli_error(CLI_FAILED, "no memory");
	memcpy(hardware->command, words, sizeof(words));
	memcpy(hardware->command + RUNNER_WORDS, command, count * sizeof(*command));
	return CLI_DONE;
}

char **cli_hardware__command(const struct cli_hardware *hardware, char **command,
			     struct pem_run_options *options)
{
	if (hardware->command == NULL)
		return command;
	options->runner_words = RUNNER_WORDS;
	return hardware->command;
}

/*
 * Without patterns take the usual ones: further events would be Valgrind's, its system calls and
 * page faults. 'instructions' and 'cycles' are the machine's.
 */
static int choose(struct cli_patterns *patterns, const char *usual)
{
	static const char *const own[][2] = {{"instructions", "HW::Simulated::Instructions"},
					     {"cycles", "HW::Simulated::Cycles"}};
	size_t i, k;

	if (patterns->count == 0 && cli_patterns__add(patterns, usual) < 0)
		return cli_error(CLI_FAILED, "no memory");
	for (i = 0; i < patterns->count; i++)
		for (k = 0; k < sizeof(own) / sizeof(own[0]); k++) {
			char *name;

			if (strcasecmp(patterns->text[i], own[k][0]) != 0)
				continue;
			name = strdup(own[k][1]);
			if (name == NULL)
				return cli_error(CLI_FAILED, "no memory");
			free(patterns->text[i]);
			patterns->text[i] = name;
		}
	return CLI_DONE;
}

int cli_hardware__start(struct cli_hardware *hardware, const char *path, char **command,
			struct cli_patterns *patterns, const char *usual)
{
	char file[PATH_MAX], folder[PATH_MAX + 64];
	int status = find_tool(folder, sizeof(folder));

	if (status == CLI_DONE && cli_command__check("valgrind", file, sizeof(file)) != CLI_DONE)
		status =
			cli_error(CLI_NOT_HERE, "hardware is simulated under Valgrind: install it");
	if (status == CLI_DONE)
		status = choose(patterns, usual);
	if (status == CLI_DONE)
		status = make_folder(hardware);
	if (status == CLI_DONE)
		status = read_machine(hardware, path);
	if (status == CLI_DONE)
		status = wrap(hardware, command);
	if (status == CLI_DONE && setenv("VALGRIND_LIB", folder, 1) < 0)
		status = cli_error(CLI_FAILED, "no memory");
	return status;
}

/*
 * Valgrind's reasons why it can't run a program. Its other words are of no use to the user. The
 * program could write there, too, or put another file in its place: it makes nobody wait, and is
 * read as far as Valgrind's own words would go.
 */
static void say_reasons(const struct cli_hardware *hardware)
{
	int fd = open(hardware->log, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[16384], *rest = text, *line;
	ssize_t got = 0;
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	while ((line = strsep(&rest, "\n")) != NULL) {
		if (strncmp(line, "valgrind: ", 10) != 0)
			continue;
		fputs("pem: ", stderr);
		cli_put_text(stderr, line);
		fputc('\n', stderr);
	}
}

void cli_hardware__end(struct cli_hardware *hardware)
{
	if (hardware->folder[0] != '\0') {
		say_reasons(hardware);
		unlink(hardware->log);
		unlink(hardware->file);
		rmdir(hardware->folder);
	}
	free(hardware->command);
}
