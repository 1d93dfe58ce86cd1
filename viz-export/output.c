/* SPDX-License-Identifier: MIT */
/*
 * output.c - see output.h
 */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int output_error(struct pem_error *error, int code, const char *what, const char *path)
{
	if (error)
		snprintf(error->text, sizeof(error->text), "can't %s '%s': %s", what, path,
			 strerror(code));
	return -code;
}

static int output_open_file(struct pem_output *output, const char *path)
{
	mode_t mask = umask(0);
	int fd, code;

	umask(mask);
	output->path = strdup(path);
	if (!output->path || asprintf(&output->temporary, "%s.XXXXXX", path) < 0) {
		output->temporary = NULL;
		return ENOMEM;
	}
	fd = mkostemp(output->temporary, 0);
	if (fd < 0) {
		code = errno;
		free(output->temporary);
		output->temporary = NULL;
		return code;
	}
	output->file = fchmod(fd, 0666 & ~mask) ? NULL : fdopen(fd, "w");
	if (!output->file) {
		code = errno;
		close(fd);
		return code;
	}
	return 0;
}

int pem_output__open(struct pem_output *output, const char *path, struct pem_error *error)
{
	struct stat st;
	int code;

	memset(output, 0, sizeof(*output));
	if (strcmp(path, "-") == 0) {
		output->file = stdout;
		return 0;
	}
	/*
	 * A device or a pipe is written directly, because renaming a file over it would replace it.
	 */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		output->path = strdup(path);
		output->file = output->path ? fopen(path, "w") : NULL;
		code = output->file ? 0 : errno;
	} else {
		code = output_open_file(output, path);
	}
	if (!code) {
		setvbuf(output->file, NULL, _IOFBF, 1 << 18);
		return 0;
	}
	output->file = NULL;
	pem_output__finish(output, -code, NULL);
	return output_error(error, code, "write", path);
}

int pem_output__finish(struct pem_output *output, int result, struct pem_error *error)
{
	const char *name = output->path ? output->path : "standard output";
	int code = 0;

	if (output->file) {
		if (fflush(output->file) || ferror(output->file))
			code = errno ? errno : EIO;
		if (output->path && fclose(output->file) && !code)
			code = errno;
	}
	if (!result && code)
		result = output_error(error, code, "write", name);
	if (output->temporary && !result && rename(output->temporary, output->path))
		result = output_error(error, errno, "write", name);
	if (output->temporary && result)
		unlink(output->temporary);
	free(output->temporary);
	free(output->path);
	memset(output, 0, sizeof(*output));
	return result;
}
