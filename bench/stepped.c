// SPDX-License-Identifier: MIT
/*
 * stepped.c - counts the instructions of an event, by stepping through it
 *
 * Prints the compiler, as "gcc 12", and a line "CASE INSTRUCTIONS" for each of disabled, log2,
 * stat, stat_rising, stat_filtered, filtered_out, stat_wide and stat_top: from the load of the
 * enable byte to the return to the code that raised the event, of an event of two numbers that are
 * in registers. A case is raised some hundred times, and the number is that of most of them: it
 * leaves out a new chunk. Each is exact.
 *
 * The child raises the events and observes itself. The parent steps through the child between two
 * labels. x86-64 only: elsewhere it prints the reason, with status 77.
 */
#include "bench/flight.h"

#include "bench_stubs/bench.h"

#include <pem/pem.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if !defined(__x86_64__)
int main(void)
{
	printf("instructions are stepped through on x86-64 only\n");
	return 77;
}
#else

#define EVENTS 60u
#define MOST 4096u /* instructions of an event that are told apart */

/* One copy of a function, which has labels. */
#if defined(__clang__)
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noclone))
#endif

/* Raise an event between two labels, from registers. */
#define STEPPED(name, notify)                                                                      \
	static ALONE void raise_##name(uint64_t a, uint64_t b)                                     \
	{                                                                                          \
		__asm__ __volatile__(".globl begin_" #name "\nbegin_" #name ":"                    \
				     : "+r"(a), "+r"(b));                                          \
		notify(a, b);                                                                      \
		__asm__ __volatile__(".globl end_" #name "\nend_" #name ":");                      \
	}                                                                                          \
	extern const char begin_##name[], end_##name[];

STEPPED(disabled, pem_notify_bench_disabled)
STEPPED(log2, pem_notify_bench_log)
STEPPED(stat, pem_notify_bench_stat)
STEPPED(stat_rising, pem_notify_bench_stat)
STEPPED(stat_filtered, pem_notify_bench_filtered)
STEPPED(filtered_out, pem_notify_bench_filtered)
STEPPED(stat_distribution, pem_notify_bench_wide)
STEPPED(stat_top, pem_notify_bench_top)

static const struct stepped {
	const char *name;
	void (*raise)(uint64_t a, uint64_t b);
	const char *begin, *end;
	uint64_t b;
	int rises; /* each value is the greatest so far; else few values come again and again */
} cases[] = {
	{"disabled", raise_disabled, begin_disabled, end_disabled, 1, 0},
	{"log2", raise_log2, begin_log2, end_log2, 1, 0},
	{"stat", raise_stat, begin_stat, end_stat, 1, 0},
	{"stat_rising", raise_stat_rising, begin_stat_rising, end_stat_rising, 1, 1},
	{"stat_filtered", raise_stat_filtered, begin_stat_filtered, end_stat_filtered, 1, 0},
	{"filtered_out", raise_filtered_out, begin_filtered_out, end_filtered_out, 0, 0},
	{"stat_wide", raise_stat_distribution, begin_stat_distribution, end_stat_distribution, 1,
	 0},
	{"stat_top", raise_stat_top, begin_stat_top, end_stat_top, 1, 0},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

/* --- the child --- */

static struct pem_statistics *count(struct pem_session *session, const char *event,
				    const char *predicate, unsigned keep, struct pem_error *error)
{
	struct pem_event_set *set = pem_event_set__new(session, &event, 1, error);
	struct pem_statistics *statistics = NULL;
	struct pem_context here = {.pid = (uint32_t)getpid(), .tid = (uint32_t)gettid()};

	if (!predicate)
		here.tid = PEM_ANY;
	if (set && !pem_event_set__where(set, predicate, error))
		statistics = pem_session__register_statistics(session, set, &here, "a", error);
	pem_event_set__free(set);
	if (statistics && keep && pem_statistics__keep(statistics, keep))
		return NULL;
	return statistics && !pem_statistics__enable(statistics) ? statistics : NULL;
}

static int run_child(void)
{
	struct pem_error error = {"unknown"};
	struct flight flight;
	uint64_t i;
	size_t k;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) {
		perror("stepped: ptrace");
		return 1;
	}
	if (flight__start(&flight, "APP::Bench::Log", 0, &error) < 0 ||
	    !count(flight.session, "APP::Bench::Stat", NULL, 0, &error) ||
	    !count(flight.session, "APP::Bench::Filtered", "a > 4096 && b != 0", 0, &error) ||
	    !count(flight.session, "APP::Bench::Wide", NULL,
		   PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM, &error) ||
	    !count(flight.session, "APP::Bench::Top", NULL, PEM_STATISTIC_TOP, &error)) {
		fprintf(stderr, "stepped: %s\n", error.text);
		return 1;
	}
	for (k = 0; k < CASES; k++)
		cases[k].raise(4097, cases[k].b); /* the first of a thread takes long */
	for (k = 0; k < CASES; k++) {
		raise(SIGSTOP);
		for (i = 0; i < EVENTS; i++)
			cases[k].raise(cases[k].rises ? 5000 + i : 4097 + i % 7, cases[k].b);
	}
	raise(SIGSTOP);
	flight__stop(&flight);
	return 0;
}

/* --- the parent --- */

/* Continue the child until it stops itself. */
static int wait_for_stop(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		if (WSTOPSIG(status) == SIGSTOP)
			return 0;
		ptrace(PTRACE_CONT, child, NULL, (void *)(uintptr_t)WSTOPSIG(status));
	}
	return -1;
}

/* Make one step. Returns 1; 0: the child stopped itself; -1: it is gone. */
static int step(pid_t child, struct user_regs_struct *registers)
{
	int status;

	if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) || waitpid(child, &status, 0) != child ||
	    !WIFSTOPPED(status))
		return -1;
	if (WSTOPSIG(status) == SIGSTOP)
		return 0;
	return ptrace(PTRACE_GETREGS, child, NULL, registers) ? -1 : 1;
}

/*
 * Step through all events of a case. counts[n]: events of n instructions. An event that is wanted
 * ends as its function returns, which the stack pointer tells; else at the label behind it.
 */
static int count_steps(pid_t child, const struct stepped *c, unsigned counts[MOST])
{
	const uint64_t begin = (uintptr_t)c->begin, end = (uintptr_t)c->end;
	struct user_regs_struct registers;
	uint64_t stack = 0;
	unsigned steps = 0;
	int inside = 0, has_called = 0, rc;

	for (;;) {
		rc = step(child, &registers);
		if (rc <= 0)
			return rc;
		if (registers.rip == begin) {
			stack = registers.rsp;
			steps = 0;
			inside = 1;
			has_called = 0;
			continue;
		}
		if (!inside)
			continue;
		steps++;
		if (registers.rsp < stack)
			has_called = 1;
		else if (has_called || registers.rip == end) {
			inside = 0;
			counts[steps < MOST ? steps : MOST - 1]++;
		}
	}
}

static unsigned most_of(const unsigned counts[MOST])
{
	unsigned i, most = 0;

	for (i = 0; i < MOST; i++)
		if (counts[i] > counts[most])
			most = i;
	return most;
}

int main(void)
{
	unsigned counts[MOST];
	int status;
	pid_t child = fork();
	size_t k;

	if (!child)
		exit(run_child());
#if defined(__clang__)
	printf("clang %d\n", __clang_major__);
#else
	printf("gcc %d\n", __GNUC__);
#endif
	for (k = 0; k < CASES; k++) {
		memset(counts, 0, sizeof(counts));
		if ((!k && wait_for_stop(child)) || count_steps(child, &cases[k], counts)) {
			fprintf(stderr, "stepped: the program that raises events is gone\n");
			return 1;
		}
		printf("%s %u\n", cases[k].name, most_of(counts));
		fflush(stdout);
	}
	ptrace(PTRACE_CONT, child, NULL, NULL);
	return waitpid(child, &status, 0) != child || status;
}
#endif
