/* SPDX-License-Identifier: MIT */
/*
 * read_trace.c - reads a trace once
 *
 * 'read_trace DIR' prints the number of records, the ns of CPU time that this process has used
 * until then, and the ns that passed. 'read_trace DIR pass' makes a pass over it: each record with
 * all that was around it. 'read_trace DIR pass ahead' has a second thread read ahead.
 */
#include <pem/context.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int read_all(struct pem_trace *trace, uint64_t *count, struct pem_error *error)
{
	struct pem_record record = {.size = sizeof(record)};
	uint64_t last = 0, owned = 0;
	int rc;

	while ((rc = pem_trace__next(trace, &record, error)) > 0) {
		if (record.clock < last)
			return -1;
		last = record.clock;
		/* Uses the record's context, so that the reader must provide it. */
		owned += record.pid != 0;
		++*count;
	}
	fprintf(stderr, "%" PRIu64 " with a process\n", owned);
	return rc;
}

static int walk(struct pem_trace *trace, uint64_t *count, struct pem_error *error)
{
	struct pem_pass *pass = pem_pass__new(trace, NULL, error);
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	uint64_t owned = 0, ended = 0, blocks = 0;
	int rc = pass ? 1 : -1;

	while (rc > 0 && (rc = pem_pass__next(pass, &record, &around, error)) > 0) {
		owned += around.thread != NULL;
		ended += around.ended_count;
		blocks += around.block != NULL;
		++*count;
	}
	fprintf(stderr, "%" PRIu64 " with a thread, %" PRIu64 " of blocks; %" PRIu64 " intervals\n",
		owned, blocks, ended);
	pem_pass__free(pass);
	return rc;
}

int main(int argc, char **argv)
{
	struct pem_error error = {""};
	uint64_t count = 0, start_ns = now_ns(CLOCK_MONOTONIC);
	struct pem_trace *trace;
	int rc;

	trace = argc >= 2 ? pem_trace__open(argv[1], &error) : NULL;
	if (!trace) {
		fprintf(stderr, "read_trace: %s\n", error.text);
		return 1;
	}
	if (argc > 3 && pem_trace__read_ahead(trace) != 1) {
		fprintf(stderr, "read_trace: there is no second CPU\n");
		return 1;
	}
	rc = argc > 2 ? walk(trace, &count, &error) : read_all(trace, &count, &error);
	pem_trace__close(trace);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", count, now_ns(CLOCK_PROCESS_CPUTIME_ID),
	       now_ns(CLOCK_MONOTONIC) - start_ns);
	return rc != 0;
}
