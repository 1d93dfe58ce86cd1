/* SPDX-License-Identifier: MIT */
/*
 * output_signals.c - see output_signals.h
 */
#define _GNU_SOURCE
#include "output_signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#define FILES_MAX 4

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

/*
 * A signal handler has no argument. Elements of paths are read by the handler, and are written with
 * the lock held. count, old and handled belong to the lock.
 */
static struct {
	pthread_mutex_t lock;
	const char *paths[FILES_MAX];
	unsigned int count;
	struct sigaction old[NUMBERS];
	unsigned char handled[NUMBERS];
} files = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* SA_RESETHAND has restored the default, so the signal that is raised again ends the process. */
static void remove_files(int number)
{
	const char *path;
	size_t i;

	for (i = 0; i < FILES_MAX; i++) {
		path = __atomic_load_n(&files.paths[i], __ATOMIC_RELAXED);
		if (path)
			unlink(path);
	}
	raise(number);
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = remove_files, .sa_flags = SA_RESETHAND};
	size_t i;

	sigemptyset(&action.sa_mask);
	for (i = 0; i < NUMBERS; i++) {
		files.handled[i] = !sigaction(numbers[i], NULL, &files.old[i]) &&
				   !(files.old[i].sa_flags & SA_SIGINFO) &&
				   files.old[i].sa_handler == SIG_DFL &&
				   !sigaction(numbers[i], &action, NULL);
	}
}

static void release_signals(void)
{
	size_t i;

	for (i = 0; i < NUMBERS; i++) {
		if (files.handled[i])
			sigaction(numbers[i], &files.old[i], NULL);
	}
}

void pem_output_signals__add(const char *path)
{
	size_t i;

	pthread_mutex_lock(&files.lock);
	for (i = 0; i < FILES_MAX && files.paths[i]; i++)
		;
	if (i < FILES_MAX) {
		__atomic_store_n(&files.paths[i], path, __ATOMIC_RELAXED);
		if (files.count++ == 0)
			catch_signals();
	}
	pthread_mutex_unlock(&files.lock);
}

void pem_output_signals__remove(const char *path)
{
	size_t i;

	pthread_mutex_lock(&files.lock);
	for (i = 0; i < FILES_MAX && files.paths[i] != path; i++)
		;
	if (i < FILES_MAX) {
		__atomic_store_n(&files.paths[i], NULL, __ATOMIC_RELAXED);
		if (--files.count == 0)
			release_signals();
	}
	pthread_mutex_unlock(&files.lock);
}
