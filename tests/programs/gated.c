// SPDX-License-Identifier: MIT
/*
 * gated.c - a program of known truth: threads that follow a script of intervals, steps and faults
 *
 * Use: gated THREADS ROUNDS SCRIPT. Each thread does so many rounds of the script:
 *
 *	b e	begin and end an interval		o c	open and close a door
 *	s	raise a step				t	touch a page for the first time
 *	k	send itself a signal, whose handler does what H says
 *	F	fork: the child does the rest of this round and ends, the parent waits for it
 *	.	write a dot and wait for a byte on standard input
 *	|	wait until all threads are here
 *
 * The pages lie from REGION on. With a fourth argument, the main thread sends signals to the others
 * for as long as they run, which is until a handler ran, and the number of handlers is printed.
 */
#include "programs/gated.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define REGION ((char *)0x200000000000)
#define PAGES 100000u
#define THREADS_MAX 64

static const char H[] = "bsse";
static unsigned threads, rounds, next_page, handlers, ended;
static const char *script;
static bool in_storm; /* with a fourth argument */
static pthread_barrier_t barrier;

static void follow(const char *at, unsigned number);

static void on_signal(int signal)
{
	(void)signal;
	__atomic_fetch_add(&handlers, 1, __ATOMIC_RELAXED);
	follow(H, 0);
}

static void in_child(const char *rest, unsigned number)
{
	pid_t child = fork();

	if (!child) {
		follow(rest, number);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void wait_for_byte(void)
{
	char byte;

	if (write(1, ".", 1) != 1 || read(0, &byte, 1) != 1)
		exit(1);
}

static void follow(const char *at, unsigned number)
{
	for (; *at; at++) {
		switch (*at) {
		case 'b':
			pem_notify_gated_begin();
			break;
		case 'e':
			pem_notify_gated_end();
			break;
		case 'o':
			pem_notify_gated_open();
			break;
		case 'c':
			pem_notify_gated_close();
			break;
		case 's':
			pem_notify_gated_step(number);
			break;
		case 't':
			REGION[4096ul * __atomic_fetch_add(&next_page, 1, __ATOMIC_RELAXED)] = 1;
			break;
		case 'k':
			raise(SIGUSR1);
			break;
		case 'F':
			in_child(at + 1, number);
			break;
		case '.':
			wait_for_byte();
			break;
		case '|':
			pthread_barrier_wait(&barrier);
			break;
		}
	}
}

static void *work(void *arg)
{
	unsigned round;

	for (round = 0; round < rounds; round++)
		follow(script, (unsigned)(uintptr_t)arg);
	while (in_storm && !__atomic_load_n(&handlers, __ATOMIC_RELAXED))
		sched_yield();
	__atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS_MAX];
	unsigned i;

	if (argc < 4)
		return 1;
	threads = (unsigned)atoi(argv[1]);
	rounds = (unsigned)atoi(argv[2]);
	script = argv[3];
	in_storm = argc > 4;
	if (threads > THREADS_MAX ||
	    mmap(REGION, 4096ul * PAGES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		 0) == MAP_FAILED)
		return 1;
	madvise(REGION, 4096ul * PAGES, MADV_NOHUGEPAGE);
	pthread_barrier_init(&barrier, NULL, threads);
	signal(SIGUSR1, on_signal);
	for (i = 1; i < threads; i++)
		pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)(i + 1));
	if (!in_storm)
		work((void *)1);
	while (in_storm && __atomic_load_n(&ended, __ATOMIC_RELAXED) < threads - 1)
		for (i = 1; i < threads; i++)
			pthread_kill(thread[i], SIGUSR1);
	for (i = 1; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (in_storm)
		printf("%u\n", handlers);
	return 0;
}
