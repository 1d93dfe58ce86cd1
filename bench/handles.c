// SPDX-License-Identifier: MIT
/*
 * handles.c - what an event costs that several handles of one session count, each with a predicate
 * of its own
 *
 *	notify/handles_1	one statistic of a field, where a predicate of one test holds
 *	notify/handles_2, notify/handles_4, notify/handles_8	so many; the predicate of each holds
 *
 * Time is the thread's CPU time. Not here: other kinds of handles (notify.c).
 */
#include "bench/bench.h"

#include "bench_stubs/bench.h"

#include <pem/pem.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 7
#define ROUNDS 15
#define SLICE_MS 5.0
#define CHECKED 1000u

static void run_1(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_handles1(i + 8, 1))
}

static void run_2(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_handles2(i + 8, 1))
}

static void run_4(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_handles4(i + 8, 1))
}

static void run_8(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_handles8(i + 8, 1))
}

static const struct {
	const char *event;
	unsigned handles;
	void (*run)(uint64_t n);
} subjects[] = {{"APP::Bench::Handles1", 1, run_1},
		{"APP::Bench::Handles2", 2, run_2},
		{"APP::Bench::Handles4", 4, run_4},
		{"APP::Bench::Handles8", 8, run_8}};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

/* One more handle of an event, which counts where a is greater than a number. */
static struct pem_statistics *add_handle(struct pem_session *session, const char *event,
					 unsigned number, struct pem_error *error)
{
	const struct pem_context here = {.pid = (uint32_t)getpid()};
	struct pem_event_set *set = pem_event_set__new(session, &event, 1, error);
	struct pem_statistics *statistics = NULL;
	char predicate[32];

	snprintf(predicate, sizeof(predicate), "a > %u", number);
	if (set && !pem_event_set__where(set, predicate, error))
		statistics = pem_session__register_statistics(session, set, &here, "a", error);
	pem_event_set__free(set);
	if (statistics && pem_statistics__enable(statistics)) {
		snprintf(error->text, sizeof(error->text), "a statistic could not be enabled");
		return NULL;
	}
	return statistics;
}

/* Is what is timed what is meant? Then each handle counts what is raised. */
static int check(struct pem_statistics *statistics, void (*run)(uint64_t n),
		 struct pem_error *error)
{
	struct pem_statistic before = {.size = sizeof(before)}, after = {.size = sizeof(after)};

	if (pem_statistics__read(statistics, &before, 1) == 1) {
		run(CHECKED);
		if (pem_statistics__read(statistics, &after, 1) == 1 &&
		    after.count - before.count == CHECKED)
			return 0;
	}
	snprintf(error->text, sizeof(error->text), "a handle does not count what is raised");
	return -1;
}

static int enable(struct pem_session *session, struct pem_error *error)
{
	struct pem_statistics *statistics;
	unsigned i, number;

	for (i = 0; i < SUBJECTS; i++) {
		for (number = 0; number < subjects[i].handles; number++) {
			statistics = add_handle(session, subjects[i].event, number, error);
			if (!statistics || check(statistics, subjects[i].run, error))
				return -1;
		}
	}
	return 0;
}

int main(void)
{
	const struct bench_case cases[] = {
		{"notify/handles_1", run_1, NULL, NULL, NULL, 0},
		{"notify/handles_2", run_2, NULL, NULL, "notify/handles_1", 0},
		{"notify/handles_4", run_4, NULL, NULL, "notify/handles_1", 0},
		{"notify/handles_8", run_8, NULL, NULL, "notify/handles_1", 0},
	};
	const struct bench bench = {"handles",
				    PROCESSES,
				    ROUNDS,
				    SLICE_MS,
				    CLOCK_THREAD_CPUTIME_ID,
				    cases,
				    sizeof(cases) / sizeof(cases[0])};
	struct pem_error error = {""};
	struct pem_session *session;
	int rc = 1;

	if (!bench__child()) {
		rc = bench__spread(&bench);
		if (rc < 0 && rc != -ECHILD) /* a child has said why */
			fprintf(stderr, "handles: no results: %s\n", strerror(-rc));
		return rc < 0;
	}
	session = pem_session__open(NULL, &error);
	if (session && !enable(session, &error)) {
		if (bench__pin() < 0)
			fprintf(stderr, "handles: not bound to one CPU\n");
		rc = bench__run(&bench) < 0;
	} else {
		fprintf(stderr, "handles: %s\n", error.text);
	}
	pem_session__close(session);
	return rc;
}
