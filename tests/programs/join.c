/* SPDX-License-Identifier: MIT */
/*
 * join.c - threads that say in their system calls who they are: the truth that a trace's processes
 * and threads are compared with
 *
 *	join threads ROUNDS    THREADS threads, each named anew half-way, moving from CPU to CPU
 *	join spin ROUNDS       the same call ROUNDS times in a row for each line of standard input,
 *			       by a second thread
 *	join exec ROUNDS       a thread other than the first replaces the program
 *	join reuse ROUNDS      two children, one after the other, with the same process number; 77:
 *			       not allowed to
 *	join exits ROUNDS      children that end while much memory and a thread are still theirs,
 *			       interrupted by another process
 *	join nest ROUNDS       one thread calls, and timers of two others interrupt it on its CPU
 *			       40000 times a second
 *
 * A signed call is close(SIGNATURE | thread number), which fails. Each thread tells 'PID TID NAME
 * COUNT' when its calls are made.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNATURE 0x40000000u
#define THREADS 8

static unsigned long rounds;
static const char *program;

static unsigned own_tid(void)
{
	return (unsigned)syscall(SYS_gettid);
}

static void sign(unsigned long count)
{
	unsigned tid = own_tid();

	while (count--)
		syscall(SYS_close, SIGNATURE | tid);
}

static void tell(unsigned long count)
{
	char name[17] = "", line[96];
	int bytes;

	prctl(PR_GET_NAME, name);
	bytes = snprintf(line, sizeof(line), "%d %u %s %lu\n", (int)getpid(), own_tid(), name,
			 count);
	if (write(STDOUT_FILENO, line, (size_t)bytes) != bytes)
		abort();
}

static void call_thread(const char *kind, unsigned long number)
{
	char name[16];

	snprintf(name, sizeof(name), "%s-%lu", kind, number);
	prctl(PR_SET_NAME, name);
}

static void move_to(unsigned long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % (unsigned long)sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *roam(void *arg)
{
	unsigned long number = (unsigned long)(uintptr_t)arg, i;

	call_thread("early", number);
	for (i = 0; i < rounds; i++) {
		if (i % 64 == 0)
			move_to(number + i / 64);
		if (i == rounds / 2)
			call_thread("late", number);
		sign(1);
	}
	tell(rounds);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];
	uintptr_t i;

	for (i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, roam, (void *)i))
			abort();
	}
	sign(rounds);
	tell(rounds);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void *spin(void *arg)
{
	unsigned long count = 0;
	char line[16];

	(void)arg;
	call_thread("spinner", 0);
	tell(0);
	while (fgets(line, sizeof(line), stdin)) {
		sign(rounds);
		count += rounds;
		tell(count);
	}
	return NULL;
}

static void run_spin(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, spin, NULL))
		abort();
	pthread_join(thread, NULL);
}

static void *replace(void *arg)
{
	char count[24];

	(void)arg;
	sign(rounds);
	tell(rounds);
	snprintf(count, sizeof(count), "%lu", rounds);
	execl(program, program, "after", count, (char *)NULL);
	abort();
}

static void run_exec(void)
{
	pthread_t thread;

	sign(rounds);
	tell(rounds);
	if (pthread_create(&thread, NULL, replace, NULL))
		abort();
	pause();
}

static void run_after(void)
{
	sign(rounds);
	tell(rounds);
}

/* A child of a chosen number; -1: not allowed to choose. */
static pid_t fork_as(pid_t number)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void run_reuse(void)
{
	pid_t number = 0, child;
	int i;

	for (i = 0; i < 2; i++) {
		child = number ? fork_as(number) : fork();
		if (child < 0)
			exit(77);
		if (!child) {
			call_thread("life", (unsigned long)i);
			sign(rounds);
			tell(rounds);
			_exit(0);
		}
		number = child;
		waitpid(child, NULL, 0);
	}
}

static void *wait_for_ever(void *arg)
{
	sign(*(unsigned long *)arg);
	tell(*(unsigned long *)arg);
	pause();
	return NULL;
}

static void run_exits(void)
{
	const size_t bytes = (size_t)32 << 20;
	pthread_t thread;
	int i, ends[2];
	void *memory;
	pid_t rival;

	move_to(0);
	rival = fork();
	while (!rival)
		;
	for (i = 0; i < 4; i++) {
		if (fork()) {
			waitpid(-1, NULL, 0);
			continue;
		}
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
		if (memory == MAP_FAILED || pipe(ends) ||
		    pthread_create(&thread, NULL, wait_for_ever, &rounds))
			abort();
		madvise(memory, bytes / 2, MADV_HUGEPAGE); /* in large blocks, where there are */
		memset(memory, 1, bytes);
		sign(rounds);
		tell(rounds);
		_exit(0);
	}
	kill(rival, SIGKILL);
	waitpid(rival, NULL, 0);
}

static void *doze(void *arg)
{
	const struct timespec a_moment = {.tv_nsec = 50000};

	(void)arg;
	prctl(PR_SET_TIMERSLACK, 1);
	while (nanosleep(&a_moment, NULL) == 0)
		;
	return NULL;
}

static void run_nest(void)
{
	pthread_t threads[2];
	int i;

	move_to(0);
	for (i = 0; i < 2; i++) {
		if (pthread_create(&threads[i], NULL, doze, NULL))
			abort();
	}
	sign(rounds);
	tell(rounds);
	exit(0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} modes[] = {
		{"threads", run_threads}, {"spin", run_spin},   {"exec", run_exec},
		{"after", run_after},     {"reuse", run_reuse}, {"exits", run_exits},
		{"nest", run_nest},
	};
	size_t i;

	program = argv[0];
	rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	for (i = 0; argc > 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(modes[i].name, argv[1])) {
			modes[i].run();
			return 0;
		}
	}
	fprintf(stderr, "usage: %s MODE ROUNDS\n", argv[0]);
	return 64;
}
