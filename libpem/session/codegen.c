/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * codegen.c - runs pem-codegen, which reads XML: this library needs the C library alone
 */
#define _GNU_SOURCE
#include "core/core.h"
#include "session/session.h"
#include "model_internal.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/*
 * Can only root, this user and the owner of own change the file or folder? own is code that runs in
 * this process: its owner can do here what they like.
 */
static bool is_trusted(const struct stat *st, const struct stat *own)
{
	return (!st->st_uid || st->st_uid == geteuid() || st->st_uid == own->st_uid) &&
	       !(st->st_mode & S_IWOTH) && (!(st->st_mode & S_IWGRP) || st->st_gid == own->st_gid);
}

/* Make the path of pem-codegen in a folder. Returns whether it is there, and is trusted. */
static bool is_program(const char *folder, const struct stat *own, char *path, size_t bytes)
{
	struct stat st;

	return folder[0] == '/' && !stat(folder, &st) && is_trusted(&st, own) &&
	       snprintf(path, bytes, "%s/pem-codegen", folder) < (int)bytes && !stat(path, &st) &&
	       S_ISREG(st.st_mode) && is_trusted(&st, own) && !access(path, X_OK);
}

/* Cut the last name off a path. Returns false if the path has only one. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return false;
	*slash = '\0';
	return true;
}

static bool is_called_lib(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && strcmp(slash, "/lib") == 0;
}

/*
 * pem-codegen lies in the bin folder beside the library's, which is PREFIX/lib or
 * PREFIX/lib/TRIPLET, or beside this program, as for pem itself. It is not started with more rights
 * than the caller of this program has.
 */
static bool find_program(char *path, size_t bytes)
{
	char folder[PATH_MAX], bin[PATH_MAX];
	struct stat own;
	ssize_t n;

	if (getauxval(AT_SECURE))
		return false;
	if (pem_library_folder(folder, sizeof(folder)) && !stat(folder, &own) && go_up(folder)) {
		if (is_called_lib(folder))
			go_up(folder);
		if (snprintf(bin, sizeof(bin), "%s/bin", folder) < (int)sizeof(bin) &&
		    is_program(bin, &own, path, bytes))
			return true;
	}
	n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	folder[n > 0 ? n : 0] = '\0';
	return !stat("/proc/self/exe", &own) && go_up(folder) &&
	       is_program(folder, &own, path, bytes);
}

static int add_actions(posix_spawn_file_actions_t *actions, int out, int errors)
{
	int result =
		-posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	if (!result)
		result = -posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
	return result ? result : -posix_spawn_file_actions_adddup2(actions, errors, STDERR_FILENO);
}

/*
 * Start pem-codegen --models of a file, and wait for its end. Its exit status is not asked for: the
 * program may have another thread that waits for any child. Its outputs tell whether it succeeded.
 */
static int run(const char *program, const char *file, int out, int errors)
{
	char *const argv[] = {(char *)"pem-codegen", (char *)"--models", (char *)"--",
			      (char *)(uintptr_t)file, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t pid;
	int result = -posix_spawn_file_actions_init(&actions);

	if (result)
		return result;
	result = -posix_spawnattr_init(&attributes);
	if (result) {
		posix_spawn_file_actions_destroy(&actions);
		return result;
	}
	sigemptyset(&none);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	result = add_actions(&actions, out, errors);
	if (!result)
		result = -posix_spawn(&pid, program, &actions, &attributes, argv, environ);
	while (!result && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return result;
}

/* The bytes of a file in memory, with a NUL after them, for free(). NULL with errno. */
static char *read_all(int fd, size_t *bytes)
{
	size_t done = 0;
	struct stat st;
	ssize_t n = 1;
	char *text;

	if (fstat(fd, &st))
		return NULL;
	if (st.st_size > PEM_MODEL_TEXT_MAX) {
		errno = EFBIG;
		return NULL;
	}
	text = malloc((size_t)st.st_size + 1);
	while (text && n > 0 && done < (size_t)st.st_size) {
		n = pread(fd, text + done, (size_t)st.st_size - done, (off_t)done);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			done += (size_t)n;
	}
	if (n < 0) {
		int saved_errno = errno;

		free(text);
		errno = saved_errno;
		return NULL;
	}
	if (text)
		text[done] = '\0';
	*bytes = done;
	return text;
}

int pem_codegen__models(const char *file, char **models, size_t *bytes, char **errors,
			struct pem_error *error)
{
	int out = memfd_create("pem-models", MFD_CLOEXEC),
	    err = memfd_create("pem-errors", MFD_CLOEXEC), result = 0;
	char program[PATH_MAX];
	size_t ignored;

	*models = *errors = NULL;
	if (!find_program(program, sizeof(program))) {
		result =
			pem_error__set(error, -ENOPKG,
				       "cannot read '%.200s': there is no pem-codegen where libpem "
				       "is installed; install it, which is built with libxml2, or "
				       "give a model that it made with --models",
				       file);
		goto out;
	}
	if (out < 0 || err < 0)
		result = -errno;
	if (!result)
		result = run(program, file, out, err);
	if (!result) {
		*models = read_all(out, bytes);
		*errors = *models ? read_all(err, &ignored) : NULL;
		result = *errors ? 0 : -errno;
	}
	if (result)
		pem_error__set(error, result, "cannot run %.200s: %s", program, strerror(-result));
out:
	if (out >= 0)
		close(out);
	if (err >= 0)
		close(err);
	if (result) {
		free(*models);
		*models = NULL;
	}
	return result;
}

char *pem_codegen__read_file(int fd, size_t *bytes)
{
	return read_all(fd, bytes);
}
