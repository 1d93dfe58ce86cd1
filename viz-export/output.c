/* SPDX-License-Identifier: MIT */
/*
 * output.c - see output.h
 */
#define _GNU_SOURCE
#include "output.h"
#include "output_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_TRIED 100

static int output_error(struct pem_error *error, int code, const char *what, const char *path)
{
	if (error)
		snprintf(error->text, sizeof(error->text), "can't %s '%s': %s", what, path,
			 strerror(code));
	return -code;
}

/*
 * Open a file without a name in the folder of path: whatever ends the process leaves nothing. File
 * systems without such files, and systems without /proc, through which the file gets its name, get
 * a temporary name instead. Returns a descriptor, or -1.
 */
static int open_nameless(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder;
	int fd;

	if (!slash)
		folder = strdup(".");
	else
		folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	fd = folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600) : -1;
	free(folder);
	if (fd >= 0 && access("/proc/self/fd", X_OK)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Make a file with the temporary name. Returns a descriptor, or -1 with errno. */
static int open_named(struct pem_output *output, const char *path)
{
	int fd;

	if (asprintf(&output->temporary, "%s.XXXXXX", path) < 0) {
		output->temporary = NULL;
		errno = ENOMEM;
		return -1;
	}
	fd = mkostemp(output->temporary, O_CLOEXEC);
	if (fd >= 0) {
		pem_output_signals__add(output->temporary);
		return fd;
	}
	free(output->temporary);
	output->temporary = NULL;
	return -1;
}

static int output_open_file(struct pem_output *output, const char *path)
{
	mode_t mask = umask(0);
	int fd, code;

	umask(mask);
	output->path = strdup(path);
	if (!output->path)
		return ENOMEM;
	fd = open_nameless(path);
	output->nameless = fd >= 0;
	if (fd < 0)
		fd = open_named(output, path);
	if (fd < 0)
		return errno;
	output->file = fchmod(fd, 0666 & ~mask) ? NULL : fdopen(fd, "w");
	if (!output->file) {
		code = errno;
		close(fd);
		return code;
	}
	return 0;
}

/*
 * Give a complete file without a name its path. If another file is there, the file gets a temporary
 * name first, because only a rename replaces a file. Returns 0, or an errno.
 */
static int name_file(struct pem_output *output)
{
	char from[40];
	unsigned int i;

	snprintf(from, sizeof(from), "/proc/self/fd/%d", fileno(output->file));
	if (!linkat(AT_FDCWD, from, AT_FDCWD, output->path, AT_SYMLINK_FOLLOW))
		return 0;
	for (i = 0; errno == EEXIST && i < NAMES_TRIED; i++) {
		free(output->temporary);
		if (asprintf(&output->temporary, "%s.%d.%u", output->path, (int)getpid(), i) < 0) {
			output->temporary = NULL;
			return ENOMEM;
		}
		if (!linkat(AT_FDCWD, from, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW)) {
			pem_output_signals__add(output->temporary);
			return 0;
		}
	}
	free(output->temporary);
	output->temporary = NULL;
	return errno;
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
	/* A file is only ever made and renamed, so a device, a pipe or a link would be replaced. */
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		code = EEXIST;
	else
		code = output_open_file(output, path);
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
		else if (output->nameless && !result)
			code = name_file(output);
		if (output->path && fclose(output->file) && !code)
			code = errno;
	}
	if (!result && code)
		result = output_error(error, code, "write", name);
	if (output->temporary && !result && rename(output->temporary, output->path))
		result = output_error(error, errno, "write", name);
	if (output->temporary) {
		if (result)
			unlink(output->temporary);
		pem_output_signals__remove(output->temporary);
	}
	free(output->temporary);
	free(output->path);
	memset(output, 0, sizeof(*output));
	return result;
}
