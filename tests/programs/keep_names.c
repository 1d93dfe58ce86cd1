/* SPDX-License-Identifier: MIT */
/*
 * keep_names.c - names the code of a trace and keeps the names, as pem record does at its end
 *
 * Use: keep_names TRACE. Prints the nanoseconds that it took. Exit status: 0, or 1 with a sentence.
 */
#include <pem/code.h>

#include <stdio.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	struct pem_error error = {""};
	uint64_t begin = now_ns();

	if (argc != 2 || pem_code__keep(argv[1], UINT64_MAX / 2, &error) < 0) {
		fprintf(stderr, "keep_names: %s\n", argc != 2 ? "no trace is named" : error.text);
		return 1;
	}
	printf("%llu\n", (unsigned long long)(now_ns() - begin));
	return 0;
}
