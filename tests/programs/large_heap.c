// SPDX-License-Identifier: MIT
/*
 * large_heap.c - takes much memory, and is slow, or crashes, with large pages or without: argv[1]
 * is gain, harm or crash
 *
 * Its ways differ by far more than a busy machine makes of them.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
	struct timespec quick = {.tv_nsec = 20000000}, slow = {.tv_nsec = 500000000};
	int large = getenv("GLIBC_TUNABLES") != NULL;
	char *heap = malloc(80 << 20);

	if (argc != 2 || !heap)
		return 1;
	memset(heap, 1, 1 << 20);
	if (large && !strcmp(argv[1], "crash"))
		raise(SIGSEGV);
	nanosleep(large == !strcmp(argv[1], "harm") ? &slow : &quick, NULL);
	free(heap);
	return 3;
}
