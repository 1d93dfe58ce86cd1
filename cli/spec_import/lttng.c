// SPDX-License-Identifier: MIT
/*
 * lttng.c - pem spec import --lttng: tracepoints of a running program, with their exact types
 *
 * `lttng list` tells the kinds of fields, but not their sizes and signs. So a session with the
 * tracepoints is made, started, stopped and destroyed. Its metadata declares them completely.
 */
#include "tsdl.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define METADATA_BYTES_MAX (16u << 20)
#define OUTPUT_MAX (1u << 20)

/*
 * Run lttng with these words. Returns its exit status or -errno. text gets its output, truncated at
 * OUTPUT_MAX.
 */
static int lttng(char *const words[], char **text)
{
	int out[2], status, saved;
	size_t used = 0;
	ssize_t n;
	pid_t child;

	*text = calloc(1, OUTPUT_MAX + 1);
	if (*text == NULL || pipe2(out, O_CLOEXEC) < 0)
		return *text == NULL ? -ENOMEM : -errno;
	child = fork();
	if (child == 0) {
		dup2(out[1], STDOUT_FILENO);
		dup2(out[1], STDERR_FILENO);
		execvp(words[0], words);
		_exit(127);
	}
	saved = errno;
	close(out[1]);
	while (child > 0 && used < OUTPUT_MAX &&
	       ((n = read(out[0], *text + used, OUTPUT_MAX - used)) > 0 ||
		(n < 0 && errno == EINTR)))
		used += n > 0 ? (size_t)n : 0;
	close(out[0]);
	if (child < 0)
		return -saved;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/*
 * As lttng(), for words that must succeed. Returns a status, after printing a sentence if it is not
 * CLI_DONE.
 */
static int must(char *const words[])
{
	char *text;
	int rc = lttng(words, &text);

	if (rc == 127)
		rc = cli_error(CLI_NOT_HERE, "there is no lttng command: install lttng-tools");
	else if (rc < 0)
		rc = cli_error(CLI_FAILED, "cannot run lttng: %s", strerror(-rc));
	else if (rc > 0)
		rc = cli_error(CLI_FAILED, "'lttng %s' failed: %.300s", words[2],
			       pem_printable(text));
	else
		rc = CLI_DONE;
	free(text);
	return rc;
}

/* Does the provider exist? Returns a status, after printing a sentence on failure. */
static int find_provider(const char *provider)
{
	char *const words[] = {(char *)"lttng", (char *)"--no-sessiond", (char *)"list",
			       (char *)"--userspace", NULL};
	char *text, name[128];
	int rc = lttng(words, &text), status = CLI_DONE;

	snprintf(name, sizeof(name), " %s:", provider);
	if (rc == 127)
		status = cli_error(CLI_NOT_HERE, "there is no lttng command: install lttng-tools");
	else if (rc != 0)
		status = cli_error(CLI_NOT_HERE,
				   "no session daemon of LTTng answers: start one (lttng-sessiond "
				   "--daemonize), and the program anew if it runs");
	else if (strstr(text, name) == NULL)
		status = cli_error(
			CLI_WRONG_INPUT,
			"no running program has tracepoints of a provider '%s': start one "
			"that has; lttng list --userspace shows them all",
			provider);
	free(text);
	return status;
}

static int record(const char *provider, const char *session, const char *folder)
{
	char output[64], pattern[128];
	char *const create[] = {(char *)"lttng",  (char *)"--no-sessiond",
				(char *)"create", (char *)session,
				output,           NULL};
	char *const enable[] = {(char *)"lttng",
				(char *)"--no-sessiond",
				(char *)"enable-event",
				(char *)"--userspace",
				(char *)"--session",
				(char *)session,
				pattern,
				NULL};
	char *const start[] = {(char *)"lttng", (char *)"--no-sessiond", (char *)"start",
			       (char *)session, NULL};
	char *const stop[] = {(char *)"lttng", (char *)"--no-sessiond", (char *)"stop",
			      (char *)session, NULL};
	char *const destroy[] = {(char *)"lttng", (char *)"--no-sessiond", (char *)"destroy",
				 (char *)session, NULL};
	int status, rc;

	snprintf(output, sizeof(output), "--output=%s", folder);
	snprintf(pattern, sizeof(pattern), "%s:*", provider);
	status = must(create);
	if (status != CLI_DONE)
		return status;
	status = must(enable);
	if (status == CLI_DONE)
		status = must(start);
	if (status == CLI_DONE)
		status = must(stop);
	rc = must(destroy);
	return status != CLI_DONE ? status : rc;
}

/* nftw passes no argument to its function, so this is static. */
static struct {
	struct import_tsdl *tsdl;
	const char *provider;
	int error;
} visit;

static int read_metadata(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char *bytes;
	FILE *f;

	if (type != FTW_F || strcmp(path + ftw->base, "metadata") != 0 || st->st_size <= 0 ||
	    st->st_size > (off_t)METADATA_BYTES_MAX)
		return 0;
	f = fopen(path, "re");
	bytes = malloc((size_t)st->st_size);
	if (f == NULL || bytes == NULL)
		visit.error = f == NULL ? -errno : -ENOMEM;
	else
		visit.error = import_tsdl__add(visit.tsdl, visit.provider, bytes,
					       fread(bytes, 1, (size_t)st->st_size, f));
	free(bytes);
	if (f != NULL)
		fclose(f);
	return visit.error;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	remove(path);
	return 0;
}

static int put(const char *provider, const char *folder, FILE *out)
{
	char name[IMPORT_PROVIDER_BYTES], how[256];
	struct import_tsdl tsdl;
	int rc = import_tsdl__init(&tsdl), status = CLI_DONE;

	visit.tsdl = &tsdl;
	visit.provider = provider;
	visit.error = 0;
	if (rc == 0) {
		nftw(folder, read_metadata, 16, FTW_PHYS);
		rc = visit.error;
	}
	if (rc == 0)
		rc = import_tsdl__finish(&tsdl);
	if (rc < 0)
		status = cli_error(CLI_FAILED, "cannot read what LTTng wrote: %s", strerror(-rc));
	else if (tsdl.count == 0)
		status = cli_error(
			CLI_FAILED,
			"LTTng declared no tracepoint of provider '%s': does its program "
			"still run, and as a user whose programs this session daemon sees?",
			provider);
	if (status == CLI_DONE) {
		import_provider(name, provider);
		snprintf(how, sizeof(how),
			 "LTTng-UST tracepoints of provider %s. Strings and lists have no longest "
			 "length there: max='' is a guess.",
			 provider);
		import_begin(out, name, how);
		fprintf(out, "%s%s</spec>\n", tsdl.label_text, tsdl.event_text);
	}
	import_tsdl__free(&tsdl);
	return status;
}

int cli_import_lttng(const char *provider, FILE *out)
{
	char folder[] = "/tmp/pem-import-XXXXXX", session[48];
	int status;

	if (*provider == '\0' || strlen(provider) > 100 ||
	    strspn(provider, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
		    strlen(provider))
		return cli_error(CLI_WRONG_INPUT,
				 "'%s' is no provider: expected the part of a tracepoint's name in "
				 "front of the colon",
				 provider);
	status = find_provider(provider);
	if (status != CLI_DONE)
		return status;
	if (mkdtemp(folder) == NULL)
		return cli_error(CLI_FAILED, "cannot make a folder in /tmp: %s", strerror(errno));
	snprintf(session, sizeof(session), "pem-import-%d", (int)getpid());
	status = record(provider, session, folder);
	if (status == CLI_DONE)
		status = put(provider, folder, out);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return status;
}
