// SPDX-License-Identifier: MIT
/*
 * stepped.c - counts the instructions of an event, by stepping through it
 *
 * Prints the compiler, as "gcc 12", and a line "CASE INSTRUCTIONS" for each of disabled, log2,
 * stat, stat_rising, stat_filtered, filtered_out, stat_wide and stat_top: from the load of the
 * enable byte to the return to the code that raised the event, of an event of two numbers that are
 * in registers. Of the pairs of statements probe_X (pem/probe.h) around nothing, it is all that
 * they add. A case is raised some hundred times, and the number is that of most of them: it leaves
 * out a new chunk. Each is exact.
 *
 * The child raises the events and observes itself. The parent steps through the child between two
 * labels. x86-64 only: elsewhere it prints the reason, with status 77.
 */
#include "bench/flight.h"

#include "bench_stubs/bench.h"

#include <pem/pem.h>
#include <pem/probe.h>

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

/* A pair of statements, between two labels that no jump passes by. */
#define STEPPED_PAIR(name, begin, end)                                                             \
	static ALONE void raise_##name(uint64_t a, uint64_t b)                                     \
	{                                                                                          \
		(void)a, (void)b;                                                                  \
		__asm__ __volatile__(".globl begin_" #name "\nbegin_" #name ":" ::: "memory");     \
		{                                                                                  \
			begin;                                                                     \
			__asm__ __volatile__("" ::: "memory");                                     \
			end;                                                                       \
		}                                                                                  \
		__asm__ __volatile__(".globl end_" #name "\nend_" #name ":" ::: "memory");         \
	}                                                                                          \
	extern const char begin_##name[], end_##name[];

STEPPED_PAIR(probe_disabled, PEM_FLT_PROBE_BEGIN(1, 1), PEM_FLT_PROBE_END(1))
STEPPED_PAIR(probe_cnt, PEM_CNT_PROBE_BEGIN(1, 1), PEM_CNT_PROBE_END(1))
STEPPED_PAIR(probe_lat, PEM_LAT_PROBE_BEGIN(1, 1), PEM_LAT_PROBE_END(1))
STEPPED_PAIR(probe_lat_sampled, PEM_LAT_PROBE_BEGIN(2, 1000), PEM_LAT_PROBE_END(2))
STEPPED_PAIR(probe_tpt, PEM_TPT_PROBE_BEGIN(1, 1), PEM_TPT_PROBE_END(1))
STEPPED_PAIR(probe_flt, PEM_FLT_PROBE_BEGIN(1, 1), PEM_FLT_PROBE_END(1))
STEPPED_PAIR(probe_ctxsw, PEM_CTXSW_PROBE_BEGIN(1, 1), PEM_CTXSW_PROBE_END(1))

#define PAIR(name, is_logged)                                                                      \
	{                                                                                          \
#name, raise_##name, begin_##name, end_##name, 0, 0, 1, is_logged                  \
	}

static const struct stepped {
	const char *name;
	void (*raise)(uint64_t a, uint64_t b);
	const char *begin, *end;
	uint64_t b;
	int rises; /* each value is the greatest so far; else few values come again and again */
	int is_pair; /* it returns from several functions */
	int is_logged; /* in a session of probes; these cases are the last ones */
} cases[] = {
	{"disabled", raise_disabled, begin_disabled, end_disabled, 1, 0, 0, 0},
	{"log2", raise_log2, begin_log2, end_log2, 1, 0, 0, 0},
	{"stat", raise_stat, begin_stat, end_stat, 1, 0, 0, 0},
	{"stat_rising", raise_stat_rising, begin_stat_rising, end_stat_rising, 1, 1, 0, 0},
	{"stat_filtered", raise_stat_filtered, begin_stat_filtered, end_stat_filtered, 1, 0, 0, 0},
	{"filtered_out", raise_filtered_out, begin_filtered_out, end_filtered_out, 0, 0, 0, 0},
	{"stat_wide", raise_stat_distribution, begin_stat_distribution, end_stat_distribution, 1, 0,
	 0, 0},
	{"stat_top", raise_stat_top, begin_stat_top, end_stat_top, 1, 0, 0, 0},
	PAIR(probe_disabled, 0),
	PAIR(probe_cnt, 1),
	PAIR(probe_lat, 1),
	PAIR(probe_lat_sampled, 1),
	PAIR(probe_tpt, 1),
	PAIR(probe_flt, 1),
	PAIR(probe_ctxsw, 1),
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

/* Observe what the cases of bench.xml raise, each as its name says. */
static int observe_events(struct flight *flight, struct pem_error *error)
{
	return flight__start(flight, "APP::Bench::Log", 0, error) < 0 ||
	       !count(flight->session, "APP::Bench::Stat", NULL, 0, error) ||
	       !count(flight->session, "APP::Bench::Filtered", "a > 4096 && b != 0", 0, error) ||
	       !count(flight->session, "APP::Bench::Wide", NULL,
		      PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM, error) ||
	       !count(flight->session, "APP::Bench::Top", NULL, PEM_STATISTIC_TOP, error);
}

/* Raise the cases from first to end, all of one session. */
static int run_child(const struct stepped *first, const struct stepped *end)
{
	struct pem_error error = {"unknown"};
	const struct stepped *c;
	struct flight flight;
	uint64_t i;

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) {
		perror("stepped: ptrace");
		return 1;
	}
	if (first->is_logged ? flight__start(&flight, "APP::Probe::*", 0, &error) < 0
			     : observe_events(&flight, &error)) {
		fprintf(stderr, "stepped: %s\n", error.text);
		return 1;
	}
	for (c = first; c < end; c++)
		c->raise(4097, c->b); /* the first of a thread takes long */
	for (c = first; c < end; c++) {
		raise(SIGSTOP);
		for (i = 0; i < EVENTS; i++)
			c->raise(c->rises ? 5000 + i : 4097 + i % 7, c->b);
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
 * ends as its function returns, which the stack pointer tells; else, and a pair, at the label
 * behind it.
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
			has_called = !c->is_pair;
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

/* Step through the cases from first to end, and print them. Returns 0, or 1. */
static int print_cases(const struct stepped *first, const struct stepped *end)
{
	unsigned counts[MOST];
	const struct stepped *c;
	int status;
	pid_t child = fork();

	if (!child)
		exit(run_child(first, end));
	for (c = first; c < end; c++) {
		memset(counts, 0, sizeof(counts));
		if ((c == first && wait_for_stop(child)) || count_steps(child, c, counts)) {
			fprintf(stderr, "stepped: the program that raises events is gone\n");
			return 1;
		}
		printf("%s %u\n", c->name, most_of(counts));
		fflush(stdout);
	}
	ptrace(PTRACE_CONT, child, NULL, NULL);
	return waitpid(child, &status, 0) != child || status;
}

int main(void)
{
	const struct stepped *logged = cases;

#if defined(__clang__)
	printf("clang %d\n", __clang_major__);
#else
	printf("gcc %d\n", __GNUC__);
#endif
	fflush(stdout);
	while (!logged->is_logged)
		logged++;
	return print_cases(cases, logged) || print_cases(logged, cases + CASES);
}
#endif
