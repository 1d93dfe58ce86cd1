// SPDX-License-Identifier: MIT
/*
 * read4_papi.c - 4 counters of the calling thread, read by PAPI_read(), for read4.py
 *
 *	read4_papi ROUNDS	Prints ROUNDS lines "INSTRUCTIONS USER_INSTRUCTIONS": how many there
 *				were from one PAPI_read to the next, with the kernel's and without.
 */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {"perf::CYCLES:u=1:k=1", "perf::CYCLES:u=1:k=0",
				    "perf::INSTRUCTIONS:u=1:k=1", "perf::INSTRUCTIONS:u=1:k=0"};

static int fail(const char *what, int status)
{
	fprintf(stderr, "%s: %s\n", what, PAPI_strerror(status));
	return 1;
}

int main(int argc, char **argv)
{
	long long before[4], after[4];
	int rounds = argc == 2 ? atoi(argv[1]) : 0, set = PAPI_NULL, status, i;

	status = PAPI_library_init(PAPI_VER_CURRENT);
	if (status != PAPI_VER_CURRENT)
		return fail("PAPI_library_init", status);
	status = PAPI_create_eventset(&set);
	if (status != PAPI_OK)
		return fail("PAPI_create_eventset", status);
	for (i = 0; i < 4; i++) {
		status = PAPI_add_named_event(set, names[i]);
		if (status != PAPI_OK)
			return fail(names[i], status);
	}
	status = PAPI_start(set);
	if (status != PAPI_OK)
		return fail("PAPI_start", status);
	for (i = 0; i < rounds; i++) {
		status = PAPI_read(set, before);
		if (status == PAPI_OK)
			status = PAPI_read(set, after);
		if (status != PAPI_OK)
			return fail("PAPI_read", status);
		printf("%lld %lld\n", after[2] - before[2], after[3] - before[3]);
	}
	return 0;
}
