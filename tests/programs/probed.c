/* SPDX-License-Identifier: MIT */
/*
 * probed.c - a program to put probes on: static ones with and without a count of users, and
 * functions
 *
 * The static probes are written as sys/sdt.h writes them, so that the program can be built without
 * it. Prints how often it saw its semaphore above zero.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* One place of a static probe: its instruction, and a note that says what it is. */
#define PROBE(name, semaphore, format, ...)                                                        \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                              \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b\n"                                                      \
			 ".8byte _.stapsdt.base\n"                                                 \
			 ".8byte " semaphore "\n"                                                  \
			 ".asciz \"probed\"\n"                                                     \
			 ".asciz \"" name "\"\n"                                                   \
			 ".asciz \"" format "\"\n"                                                 \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n"                                                           \
			 ".ifndef _.stapsdt.base\n"                                                \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"   \
			 ".weak _.stapsdt.base\n"                                                  \
			 ".hidden _.stapsdt.base\n"                                                \
			 "_.stapsdt.base: .space 1\n"                                              \
			 ".size _.stapsdt.base, 1\n"                                               \
			 ".popsection\n"                                                           \
			 ".endif\n" ::__VA_ARGS__                                                  \
			 : "memory")

volatile unsigned short probed_work_semaphore __attribute__((section(".probes"), used));

volatile int probed_total; /* whose place an x86 program counts from its instructions */
long probed_sum(long a, int b, const char *text);

/* Called with these values, and returns their sum; not inlined, so that there is a function. */
__attribute__((noinline)) long probed_sum(long a, int b, const char *text)
{
	__asm__ volatile("" : "+r"(a), "+r"(b) : "r"(text) : "memory");
	return a + b;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 5, i, seen = 0;
	int64_t memory[2] = {1000, 0};
	long sum = 0;

	for (i = 0; i < count; i++) {
		if (probed_work_semaphore) {
			seen++;
			memory[1] = -i;
			PROBE("work", "probed_work_semaphore", "-4@%0 8@%1 -8@%2 4@%3", "r"(i),
			      "r"((uint64_t)i << 32), "m"(memory[1]), "n"(7));
		}
		if (i & 1)
			PROBE("place", "0", "-4@%0", "r"(i));
		else
			PROBE("place", "0", "-8@%0", "m"(memory[0]));
		if (i & 1)
			PROBE("uneven", "0", "-4@%0", "r"(i));
		else
			PROBE("uneven", "0", "-4@%0 4@%1", "r"(i), "n"(9));
		probed_total += 11;
		PROBE("variable", "0", "-4@%0", "m"(probed_total));
		sum += probed_sum(i, 100, "text");
	}
	printf("%d %ld\n", seen, sum);
	return 0;
}
