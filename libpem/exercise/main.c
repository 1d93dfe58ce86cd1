/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * main.c - pem-exercise: does what programs do that are observed, and measures what that takes
 *
 * It reads words from its standard input, does what each stands for (cost.h), and writes the
 * result. libpem runs it plain and observed, in turn (cost/libc_cost.c, cost/process_cost.c). The
 * C library is used as any program uses it. "pem-exercise nothing" does nothing: it is what starts.
 *
 * All is done on one CPU, which libpem chooses. Times are CPU time, so that other programs take no
 * part in them.
 */
#define _GNU_SOURCE
#include "cost/cost.h"

#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define PAIRS 1400
#define CALLS 400
#define OPENS 80
#define COLD 4
#define BEFORE 4
#define ROUNDS 9
#define TIMES 40
#define STARTS 1
#define CALLS_MAX 100

static void *volatile kept;
static int calls; /* of the allocation's stack; 0: not known yet */

/* How many calls the caller's stack has, this one not among them. */
static __attribute__((noinline)) int count_calls(void)
{
	void *found[CALLS_MAX];
	int count;

	/*
	 * The C library loads the unwinder at the first call. The leak sanitizer can't see that the
	 * loader keeps memory for it, and would report that memory.
	 */
#ifdef __SANITIZE_ADDRESS__
	__lsan_disable();
#endif
	count = backtrace(found, CALLS_MAX) - 1;
#ifdef __SANITIZE_ADDRESS__
	__lsan_enable();
#endif
	return count;
}

static void allocate(void *arg)
{
	unsigned *count = arg;

	if (!calls)
		calls = count_calls();
	kept = malloc(24 + (*count)++ % 4 * 16);
	free(kept);
}

/* Measure a step, or take a turn of it. */
static void take_step(const struct pem_stepper *stepper, unsigned caches,
		      struct pem_exercised *done)
{
	if (caches < PEM_CACHES)
		done->ns = pem_step__turn_ns(stepper, caches);
	else
		done->step = pem_step__measure(stepper);
}

static __attribute__((noinline)) void take_below(unsigned further,
						 const struct pem_stepper *stepper, unsigned caches,
						 struct pem_exercised *done)
{
	if (further)
		take_below(further - 1, stepper, caches, done);
	else
		take_step(stepper, caches, done);
	kept = NULL; /* not the last call: it would become a jump */
}

/* --- system calls --- */

/* This program, and the folder that it is in. */
static char program[PATH_MAX], folder[PATH_MAX];

static void call(void *arg)
{
	lseek(*(int *)arg, 0, SEEK_CUR);
}

static void ask_for_path(void *arg)
{
	(void)arg;
	access(program, F_OK);
}

static void open_file(void *arg)
{
	unsigned *count = arg;
	int fd = open((*count)++ % 2 ? program : folder, O_RDONLY | O_CLOEXEC);

	lseek(fd, 0, SEEK_CUR);
	close(fd);
}

static bool find_program(void)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (n <= 0)
		return false;
	strcpy(folder, program);
	*strrchr(folder, '/') = 0;
	return true;
}

/* --- switches, faults and starts --- */

struct exercise {
	int there[2], back[2];
	pid_t other; /* 0: it was not started yet */
	uint8_t *page;
	volatile uint8_t *memory;
};

/* The CPU time of this process, of the other one, and of those that have ended. */
static double cpu_ns(const struct exercise *e)
{
	struct rusage ended;
	clockid_t other;

	if (getrusage(RUSAGE_CHILDREN, &ended) || clock_getcpuclockid(e->other, &other))
		return 0;
	return pem_step__clock_ns(CLOCK_PROCESS_CPUTIME_ID) +
	       (e->other ? pem_step__clock_ns(other) : 0) +
	       (double)(ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * 1e9 +
	       (double)(ended.ru_utime.tv_usec + ended.ru_stime.tv_usec) * 1e3;
}

static void answer(struct exercise *e)
{
	char byte;

	while (read(e->there[0], &byte, 1) == 1 && write(e->back[1], &byte, 1) == 1)
		;
	_exit(0);
}

/* To the other process and back: two switches. */
static void switch_over(struct exercise *e)
{
	char byte = 0;

	if (write(e->there[1], &byte, 1) != 1 || read(e->back[0], &byte, 1) != 1)
		_exit(1);
}

static void fault(struct exercise *e)
{
	madvise(e->page, (size_t)sysconf(_SC_PAGESIZE), MADV_DONTNEED);
	*(volatile uint8_t *)e->page = 1;
}

static void start(struct exercise *e)
{
	static char name[] = "pem-exercise", what[] = "nothing";
	char *const argv[] = {name, what, NULL};
	pid_t child = vfork();
	int status;

	(void)e;
	if (!child) {
		execve(program, argv, environ);
		_exit(1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		_exit(1);
}

/* Take steps; times: in each round. each: how much happens in a step. The mean of most rounds. */
static struct pem_exercised take(void (*step)(struct exercise *), unsigned times, double each,
				 struct exercise *e)
{
	double rounds[ROUNDS], begin;
	unsigned r, i;

	for (r = 0; r < ROUNDS; r++) {
		begin = cpu_ns(e);
		for (i = 0; i < times; i++)
			step(e);
		rounds[r] = (cpu_ns(e) - begin) / (times * each);
	}
	return (struct pem_exercised){.ns = pem_step__typical(rounds, ROUNDS),
				      .count = ROUNDS * times * each};
}

static void start_other(struct exercise *e)
{
	if (pipe(e->there) || pipe(e->back))
		_exit(1);
	e->other = fork();
	if (e->other < 0)
		_exit(1);
	close(e->there[e->other ? 0 : 1]);
	if (!e->other)
		answer(e);
}

static struct pem_exercised exercise(struct pem_exercise_word word, struct exercise *e)
{
	static unsigned count;
	static int fd = -1;
	struct pem_exercised done = {.ns = 0};

	switch (word.what) {
	case PEM_EXERCISE_ALLOCATE:
	case PEM_EXERCISE_DEEP:
		if (word.caches == PEM_CACHES)
			calls = 0;
		take_below(word.what == PEM_EXERCISE_DEEP ? PEM_EXERCISE_DEPTH : 0,
			   &(struct pem_stepper){allocate, &count, e->memory, PAIRS, COLD, BEFORE},
			   word.caches, &done);
		done.count = calls;
		return done;
	case PEM_EXERCISE_CALL:
		if (fd < 0)
			fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		take_step(&(struct pem_stepper){call, &fd, e->memory, CALLS, COLD, BEFORE},
			  word.caches, &done);
		return done;
	case PEM_EXERCISE_PATH:
		take_step(&(struct pem_stepper){ask_for_path, NULL, e->memory, CALLS, COLD, BEFORE},
			  word.caches, &done);
		return done;
	case PEM_EXERCISE_OPEN:
		take_step(&(struct pem_stepper){open_file, &count, e->memory, OPENS, COLD, BEFORE},
			  word.caches, &done);
		return done;
	case PEM_EXERCISE_SWITCH:
		if (!e->other)
			start_other(e);
		return take(switch_over, TIMES, 2, e);
	case PEM_EXERCISE_FAULT:
		return take(fault, TIMES, 1, e);
	case PEM_EXERCISE_START:
		return take(start, STARTS, 1, e);
	default:
		_exit(1);
	}
}

int main(int argc, char **argv)
{
	struct exercise e = {.other = 0};
	struct pem_exercise_word word;
	struct pem_exercised done;

	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0;
	e.memory = pem_step__memory();
	e.page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (e.page == MAP_FAILED || !e.memory || !find_program())
		return 1;
	while (read(STDIN_FILENO, &word, sizeof(word)) == sizeof(word)) {
		done = exercise(word, &e);
		if (write(STDOUT_FILENO, &done, sizeof(done)) != sizeof(done))
			return 1;
	}
	free((void *)e.memory);
	return 0;
}
