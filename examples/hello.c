// SPDX-License-Identifier: MIT
/*
 * hello.c - the smallest instrumented program: it includes one generated header, and is linked with
 * nothing of pem
 *
 *	hello				prints three greetings, as if pem did not exist
 *	pem record -- hello		also records each greeting as an event
 *	pem report TRACE		shows the events, with the page faults and system calls of
 *					the program
 *
 * For your own program: write a spec like hello.xml, run 'pem gen -o . hello.xml', include the
 * header, and compile with -I for pem's headers. An event without a demand costs one load, one test
 * and one branch.
 */
#include "stubs/hello.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	static const char *const names[] = {"world", "timeline", "reader"};
	uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 3, i;

	for (i = 0; i < count; i++) {
		if (i < 3)
			printf("hello, %s\n", names[i]);
		pem_notify_hello_greeting(i + 1, names[i % 3]);
	}
	return 0;
}
