// SPDX-License-Identifier: MIT
/*
 * drained.c - how long a session takes to move to its log what many threads raised meanwhile
 *
 *	drained DRAIN_THREADS THREADS COUNT TRACE	THREADS threads raise COUNT events each
 *
 * The threads end before the session moves anything, so that they take no CPU from it. Prints how
 * many events the session moved to the folder TRACE, in how many ns, and in how many ns of CPU
 * time.
 */
#include "bench/bench.h"

#include "bench_stubs/bench.h"

#include <pem/pem.h>
#include <pem/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES 8192u
#define THREADS_MOST 64u

static uint64_t count;
static pthread_barrier_t raised;

/* A thread that ended gives its lane back, and its last chunk would be another thread's. */
static void *raise_all(void *arg)
{
	(void)arg;
	BENCH_LOOP(count, pem_notify_bench_log(i, ~i))
	pthread_barrier_wait(&raised);
	return NULL;
}

static int raise_in_threads(unsigned threads)
{
	pthread_t thread[THREADS_MOST];
	unsigned i;

	pthread_barrier_init(&raised, NULL, threads);
	for (i = 0; i < threads; i++) {
		if (pthread_create(&thread[i], NULL, raise_all, NULL))
			return -1;
	}
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

static uint64_t ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct pem_log *start_log(struct pem_session *session, const char *directory,
				 struct pem_error *error)
{
	const struct pem_context here = {.pid = (uint32_t)getpid()};
	const char *event = "APP::Bench::Log";
	struct pem_event_set *events = pem_event_set__new(session, &event, 1, error);
	struct pem_log *log =
		events ? pem_session__register_log(session, events, &here, directory, error) : NULL;

	pem_event_set__free(events);
	return log && !pem_log__enable(log) ? log : NULL;
}

static int finish(struct pem_log *log, const char *directory, struct pem_balance *balance,
		  struct pem_error *error)
{
	struct pem_trace *trace;

	if (pem_log__finish(log, error) < 0)
		return -1;
	trace = pem_trace__open(directory, error);
	if (!trace)
		return -1;
	*balance = pem_trace__total_balance(trace);
	pem_trace__close(trace);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned threads = argc == 5 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	struct pem_session_options options = {.size = sizeof(options), .chunk_bytes = CHUNK_BYTES};
	struct pem_error error = {"no log"};
	const char *directory = argc == 5 ? argv[4] : "";
	struct pem_session *session = NULL;
	struct pem_balance balance = {0};
	uint64_t began, cpu;
	struct pem_log *log;
	int ended, rc = 1;

	if (!threads || threads > THREADS_MOST) {
		fprintf(stderr, "drained: usage: drained DRAIN_THREADS THREADS COUNT TRACE\n");
		return 1;
	}
	count = strtoull(argv[3], NULL, 10);
	options.drain_threads = (uint32_t)strtoul(argv[1], NULL, 10);
	options.chunk_count = (uint32_t)(threads * (count * 24 / (CHUNK_BYTES - 128) + 8));
	session = pem_session__open(&options, &error);
	log = session ? start_log(session, directory, &error) : NULL;
	if (!log || raise_in_threads(threads))
		goto out;
	began = ns(CLOCK_MONOTONIC);
	cpu = ns(CLOCK_PROCESS_CPUTIME_ID);
	pem_session__poll(session, 0, &ended);
	began = ns(CLOCK_MONOTONIC) - began;
	cpu = ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (finish(log, directory, &balance, &error))
		goto out;
	rc = balance.produced != balance.delivered || balance.delivered != threads * count;
	printf("%llu %llu %llu\n", (unsigned long long)balance.delivered, (unsigned long long)began,
	       (unsigned long long)cpu);
out:
	if (rc)
		fprintf(stderr, "drained: %s; %llu events raised, %llu written\n", error.text,
			(unsigned long long)balance.produced,
			(unsigned long long)balance.delivered);
	pem_session__close(session);
	return rc;
}
