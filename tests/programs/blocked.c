/* SPDX-License-Identifier: MIT */
/*
 * blocked.c - threads that wait for known things: two mutexes in a deadlock, mutexes whose owner is
 * in their word, the end of a thread, a signal, and input
 *
 * Prints the number of each thread, by what it does, once all of them wait; then a line for each
 * byte of input. Ends with the input.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FIRST, SECOND, INHERITS, ROBUST, JOINS, SLEEPS, SPINS, THREADS };
static const char *const names[THREADS] = {"first", "second", "inherits", "robust",
					   "joins", "sleeps", "spins"};

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static struct {
	long count;
	pthread_mutex_t lock;
} second = {1, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t inherited, robust;
static pthread_barrier_t both;
static pthread_t threads[THREADS];
static atomic_int tids[THREADS];

static void *wait_for(void *arg)
{
	int which = (int)(size_t)arg;

	if (which == FIRST) {
		pthread_mutex_lock(&first);
		pthread_mutex_lock(&inherited);
		pthread_mutex_lock(&robust);
	} else if (which == SECOND) {
		pthread_mutex_lock(&second.lock);
	}
	if (which <= ROBUST)
		pthread_barrier_wait(&both);
	/* What follows is the wait. */
	tids[which] = (int)syscall(SYS_gettid);
	switch (which) {
	case FIRST:
		pthread_mutex_lock(&second.lock);
		break;
	case SECOND:
		pthread_mutex_lock(&first);
		break;
	case INHERITS:
		pthread_mutex_lock(&inherited);
		break;
	case ROBUST:
		pthread_mutex_lock(&robust);
		break;
	case JOINS:
		pthread_join(threads[FIRST], NULL);
		break;
	case SLEEPS:
		pause();
		break;
	default:
		for (;;)
			;
	}
	return NULL;
}

static bool sleeps(int tid)
{
	char path[64], text[256] = "", *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (file) {
		if (!fgets(text, sizeof(text), file))
			text[0] = 0;
		fclose(file);
	}
	end = strrchr(text, ')');
	return end && end[2] == 'S';
}

int main(void)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	pthread_mutexattr_t kind;
	char byte;
	int i;

	pthread_barrier_init(&both, NULL, ROBUST + 1);
	pthread_mutexattr_init(&kind);
	pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &kind);
	pthread_mutexattr_init(&kind);
	pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&inherited, &kind);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, wait_for, (void *)(size_t)i);
	for (i = 0; i < THREADS; i++)
		while (!tids[i] || (i != SPINS && !sleeps(tids[i])))
			nanosleep(&moment, NULL);
	for (i = 0; i < THREADS; i++)
		printf("%s %d\n", names[i], tids[i]);
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) == 1)
		if (write(1, "byte\n", 5) != 5)
			return 1;
	_exit(0);
}
