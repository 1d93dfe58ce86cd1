// SPDX-License-Identifier: MIT
/* run_codegen.c - runs pem-codegen, which lies beside this program: pem itself reads no XML */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool cli_words__add(struct cli_words *words, const char *text)
{
	/* The first word is the program's name, and a NULL follows the last word. */
	if (words->count == 0)
		words->count = 1;
	while (words->count + 2 > words->capacity) {
		size_t bigger = words->capacity != 0 ? 2 * words->capacity : 16;
		char **more = reallocarray(words->text, bigger, sizeof(*more));

		if (more == NULL)
			goto fail;
		memset(more + words->capacity, 0, (bigger - words->capacity) * sizeof(*more));
		words->text = more;
		words->capacity = bigger;
	}
	words->text[words->count] = strdup(text);
	if (words->text[words->count] == NULL)
		goto fail;
	words->text[++words->count] = NULL;
	return true;
fail:
	cli_error(CLI_FAILED, "no memory");
	return false;
}

void cli_words__free(struct cli_words *words)
{
	size_t i;

	for (i = 1; i < words->count; i++)
		free(words->text[i]);
	free(words->text);
	memset(words, 0, sizeof(*words));
}

static int find_program(char *path, size_t bytes)
{
	int rc = cli_program_folder(path, bytes - 16);

	if (rc < 0)
		return cli_error(CLI_FAILED, "cannot find this program's folder: %s",
				 strerror(-rc));
	strcat(path, "/pem-codegen");
	if (access(path, X_OK) == 0)
		return CLI_DONE;
	return cli_error(CLI_NOT_HERE, "there is no %s: it is built if libxml2 is installed", path);
}

int cli_codegen__exec(struct cli_words *words)
{
	char path[PATH_MAX], name[] = "pem"; /* name: the program name in messages of pem-codegen */
	int status = find_program(path, sizeof(path));

	if (status != CLI_DONE)
		return status;
	words->text[0] = name;
	fflush(stdout);
	execv(path, words->text);
	return cli_error(CLI_FAILED, "cannot run %s: %s", path, strerror(errno));
}

/* One output of the child, read so far. */
struct stream {
	int fd;
	char *text;
	size_t used, capacity;
};

/* Read what is available. Close the stream at its end, or if memory is missing. */
static void take(struct stream *s)
{
	ssize_t n;

	if (s->used + 4096 > s->capacity) {
		size_t bigger = s->capacity != 0 ? 2 * s->capacity : 1u << 16;
		char *more = realloc(s->text, bigger);

		if (more == NULL)
			goto end;
		s->text = more;
		s->capacity = bigger;
		s->text[s->used] = '\0';
	}
	n = read(s->fd, s->text + s->used, s->capacity - s->used - 1);
	if (n < 0 && errno == EINTR)
		return;
	if (n > 0) {
		s->used += (size_t)n;
		s->text[s->used] = '\0';
		return;
	}
end:
	close(s->fd);
	s->fd = -1;
}

static void take_both(struct stream *out, struct stream *errors)
{
	struct pollfd fds[2];

	while (out->fd >= 0 || errors->fd >= 0) {
		fds[0] = (struct pollfd){.fd = out->fd, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = errors->fd, .events = POLLIN};
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return;
		if (out->fd >= 0 && fds[0].revents != 0)
			take(out);
		if (errors->fd >= 0 && fds[1].revents != 0)
			take(errors);
	}
}

static void run_child(const char *path, char **words, int out, int errors)
{
	if (dup2(out, STDOUT_FILENO) < 0 || (errors >= 0 && dup2(errors, STDERR_FILENO) < 0))
		_exit(CLI_FAILED);
	execv(path, words);
	_exit(CLI_FAILED);
}

static int read_outputs(struct cli_words *words, char **out_text, size_t *out_bytes,
			char **errors_text)
{
	int out[2] = {-1, -1}, err[2] = {-1, -1}, wait_status = 0, status;
	struct stream from_out = {.fd = -1}, from_errors = {.fd = -1};
	char path[PATH_MAX], name[] = "pem";
	pid_t child;

	*out_text = NULL;
	if (errors_text != NULL)
		*errors_text = NULL;
	status = find_program(path, sizeof(path));
	if (status != CLI_DONE)
		return status;
	words->text[0] = name;
	fflush(stdout);
	if (pipe2(out, O_CLOEXEC) < 0 || (errors_text != NULL && pipe2(err, O_CLOEXEC) < 0))
		return cli_error(CLI_FAILED, "cannot make a pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		return cli_error(CLI_FAILED, "cannot start a process: %s", strerror(errno));
	if (child == 0)
		run_child(path, words->text, out[1], err[1]);
	close(out[1]);
	if (err[1] >= 0)
		close(err[1]);
	from_out.fd = out[0];
	from_errors.fd = err[0];
	take_both(&from_out, &from_errors);
	while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR)
		;
	*out_text = from_out.text != NULL ? from_out.text : strdup("");
	*out_bytes = from_out.used;
	if (errors_text != NULL)
		*errors_text = from_errors.text != NULL ? from_errors.text : strdup("");
	if (*out_text == NULL || (errors_text != NULL && *errors_text == NULL))
		return cli_error(CLI_FAILED, "no memory");
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : CLI_FAILED;
}

int cli_codegen__read(struct cli_words *words, char **out_text, char **errors_text)
{
	size_t bytes;

	return read_outputs(words, out_text, &bytes, errors_text);
}

int cli_codegen__read_bytes(struct cli_words *words, char **out, size_t *bytes)
{
	return read_outputs(words, out, bytes, NULL);
}
