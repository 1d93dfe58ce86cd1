/* SPDX-License-Identifier: MIT */
/*
 * fork_waits.c - fork waits for a lock of the C library, whose holder raises its first event
 * meanwhile
 *
 * The lock is that of all streams: fflush(NULL) holds it while it calls a stream's write function,
 * and fork takes it after all handlers that prepare. argv: MODE COUNT, of which COUNT ticks are
 * raised by each of parent, thread and child.
 */
#include "probe.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>
#include <sys/wait.h>

static bool flushing, forking;
static uint64_t count;

static void wait_for(const bool *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		usleep(100);
}

/*
 * Handlers that prepare run in the opposite order in which they were added: this one after
 * libpem's.
 */
static void prepare(void)
{
	__atomic_store_n(&forking, true, __ATOMIC_RELEASE);
}

static void add_handler(void)
{
	pthread_atfork(prepare, NULL, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = add_handler;

static ssize_t write_ticks(void *who, const char *text, size_t bytes)
{
	(void)text;
	__atomic_store_n(&flushing, true, __ATOMIC_RELEASE);
	wait_for(&forking);
	probe_raise((uintptr_t)who, 1, count);
	return (ssize_t)bytes;
}

static void *flush(void *stream)
{
	fputs("text", stream);
	fflush(NULL);
	probe_tell(1, count);
	return NULL;
}

int main(int argc, char **argv)
{
	cookie_io_functions_t functions = {.write = write_ticks};
	FILE *stream = fopencookie((void *)(uintptr_t)1, "w", functions);
	pthread_t thread;
	int status = 1;
	pid_t child;

	count = argc > 2 ? strtoul(argv[2], NULL, 10) : 3;
	if (!stream || pthread_create(&thread, NULL, flush, stream))
		return 1;
	wait_for(&flushing);
	child = fork();
	probe_raise(child ? 0 : 2, 1, count);
	probe_tell(child ? 0 : 2, count);
	if (!child)
		_exit(0);
	pthread_join(thread, NULL);
	return waitpid(child, &status, 0) != child || status;
}
