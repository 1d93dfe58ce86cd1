/* SPDX-License-Identifier: MIT */
/*
 * read_trace.c - reads a trace once
 *
 * 'read_trace DIR' prints the number of records, and the ns of CPU time that this process has used
 * until then.
 */
#include <pem/trace.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int main(int argc, char **argv)
{
	struct pem_error error = {""};
	struct pem_record record = {.size = sizeof(record)};
	uint64_t count = 0, last = 0, owned = 0;
	struct pem_trace *trace;
	int rc;

	trace = argc == 2 ? pem_trace__open(argv[1], &error) : NULL;
	if (!trace) {
		fprintf(stderr, "read_trace: %s\n", error.text);
		return 1;
	}
	while ((rc = pem_trace__next(trace, &record, &error)) > 0) {
		if (record.clock < last)
			return 1;
		last = record.clock;
		/* Uses the record's context, so that the reader must provide it. */
		owned += record.pid != 0;
		count++;
	}
	fprintf(stderr, "%" PRIu64 " with a process\n", owned);
	pem_trace__close(trace);
	printf("%" PRIu64 " %" PRIu64 "\n", count, cpu_ns());
	return rc != 0;
}
