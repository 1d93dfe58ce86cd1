// SPDX-License-Identifier: MIT
/*
 * attach_first.c - measures the time from attaching to a process to its first event: one
 * attachment, for attach.py
 *
 *	attach_first PID	prints microseconds from the call of pem_session__attach to the
 *				callback's first event
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "bench_stubs/bench.h"

#include <pem/clock.h>
#include <pem/pem.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TRIES 50000 /* waits of 100 us */

static uint64_t first;

static void on_event(const struct pem_record *record, void *arg)
{
	(void)record;
	(void)arg;
	if (!__atomic_load_n(&first, __ATOMIC_RELAXED))
		__atomic_store_n(&first, pem_clock(), __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
	const struct pem_async_options options = {sizeof(options), 100};
	const char *pattern = "APP::Bench::Log";
	struct pem_context target = {0};
	struct pem_error error = {""};
	struct pem_callback *cb = NULL;
	struct pem_session *session;
	struct pem_event_set *set;
	uint64_t start;
	unsigned i;

	if (argc != 2)
		return 1;
	/* No demand exists: the call only makes the event's description available. */
	pem_notify_bench_log(0, 0);
	target.pid = (uint32_t)atoi(argv[1]);
	session = pem_session__open(NULL, &error);
	set = session ? pem_event_set__new(session, &pattern, 1, &error) : NULL;
	if (set)
		cb = pem_session__register_async_callback(session, set, NULL, on_event, NULL,
							  &options, &error);
	pem_event_set__free(set);
	if (!cb) {
		fprintf(stderr, "attach_first: %s\n", error.text);
		pem_session__close(session);
		return 1;
	}
	pem_callback__enable(cb);
	start = pem_clock();
	if (pem_session__attach(session, &target, &error) < 1) {
		fprintf(stderr, "attach_first: %s\n", error.text);
		pem_session__close(session);
		return 1;
	}
	for (i = 0; i < TRIES && !__atomic_load_n(&first, __ATOMIC_ACQUIRE); i++)
		usleep(100);
	if (first)
		printf("%.3f\n", (double)(first - start) * 1e6 / (double)pem_clock__hz());
	pem_session__close(session);
	return !first;
}
