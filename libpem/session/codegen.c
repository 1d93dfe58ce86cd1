/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * codegen.c - runs pem-codegen, which reads XML: this library needs the C library alone
 */
#define _GNU_SOURCE
#include "core/core.h"
#include "core/helper.h"
#include "session/session.h"
#include "model_internal.h"
#include "util.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODEGEN_WRONG_INPUT 1 /* its exit status if a spec is wrong; 0 if all is well */

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

struct run {
	struct pem_helper helper;
	pid_t pid;
	int result;
};

/*
 * A thread of its own, whose capabilities change alone: pem-codegen gets none of those that the
 * caller was given to hand on.
 */
static void *start(void *arg)
{
	struct run *run = arg;

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	run->result = pem_helper__start(&run->helper, &run->pid);
	return NULL;
}

/*
 * Run pem-codegen --models of a file to its end. *status: as waitpid has it; 0 also if another
 * thread of the program, which waits for any child, was told it. Returns 0 or -errno.
 */
static int run(const char *program, const char *file, int out, int errors, int *status)
{
	char *const argv[] = {(char *)"pem-codegen", (char *)"--models", (char *)"--",
			      (char *)(uintptr_t)file, NULL};
	/* The loader finds libxml2 where it does for the caller. The program reads no variable. */
	const char *libraries = getenv("LD_LIBRARY_PATH");
	char *variable = NULL, *environment[] = {NULL, NULL};
	struct run run = {.helper = {.path = program,
				     .argv = argv,
				     .environment = environment,
				     .descriptors = {-1, out, errors}}};
	sigset_t all, before;
	pthread_t thread;

	if (libraries && asprintf(&variable, "LD_LIBRARY_PATH=%s", libraries) < 0)
		return -ENOMEM;
	environment[0] = variable;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	run.result = -pthread_create(&thread, NULL, start, &run);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!run.result)
		pthread_join(thread, NULL);
	free(variable);
	*status = 0;
	while (!run.result && waitpid(run.pid, status, 0) < 0 && errno == EINTR)
		;
	return run.result;
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

/* Say how pem-codegen ended if it failed otherwise than by finding a mistake in the file. */
static int say_status(int status, const char *program, const char *file, const char *errors,
		      struct pem_error *error)
{
	if (WIFSIGNALED(status))
		return pem_error__set(error, -EIO,
				      "%.200s was ended by signal %d as it read '%.200s'", program,
				      WTERMSIG(status), file);
	if (!WIFEXITED(status) || WEXITSTATUS(status) <= CODEGEN_WRONG_INPUT)
		return 0;
	return pem_error__set(error, -EIO,
			      "%.150s ended with status %d as it read '%.150s'%s%.150s", program,
			      WEXITSTATUS(status), file, *errors ? ": " : "", errors);
}

int pem_codegen__models(const char *file, char **models, size_t *bytes, char **errors,
			struct pem_error *error)
{
	int out = memfd_create("pem-models", MFD_CLOEXEC),
	    err = memfd_create("pem-errors", MFD_CLOEXEC), result = 0, status = 0;
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
		result = run(program, file, out, err, &status);
	if (!result) {
		*models = read_all(out, bytes);
		*errors = *models ? read_all(err, &ignored) : NULL;
		result = *errors ? 0 : -errno;
	}
	if (result)
		pem_error__set(error, result, "cannot run %.200s: %s", program, strerror(-result));
	else
		result = say_status(status, program, file, *errors, error);
out:
	if (out >= 0)
		close(out);
	if (err >= 0)
		close(err);
	if (result) {
		free(*models);
		free(*errors);
		*models = *errors = NULL;
	}
	return result;
}

char *pem_codegen__read_file(int fd, size_t *bytes)
{
	return read_all(fd, bytes);
}
