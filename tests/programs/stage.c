/* SPDX-License-Identifier: MIT */
/*
 * stage.c - a stage of a pipeline that knows its own service
 *
 * Use: stage [-i] [-o] [-k] [-2] BYTES MICROSECONDS COUNT: takes BYTES from standard input (-i),
 * works for MICROSECONDS of CPU time, or sleeps for them (-k), and gives BYTES to standard output
 * (-o); COUNT times. -2: twice as long from the middle on.
 *
 * At its end it prints to standard error: stage PID ITEMS SERVICE_NS. ITEMS are bytes; the service
 * is the CPU time of all its rounds, calls on queues included, and the time slept.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int move_all(int fd, char *bytes, size_t count, int is_write)
{
	size_t done = 0;
	ssize_t n = 1;

	while (done < count && n > 0) {
		n = is_write ? write(fd, bytes + done, count - done)
			     : read(fd, bytes + done, count - done);
		done += n > 0 ? (size_t)n : 0;
	}
	return done == count;
}

static uint64_t work(uint64_t ns, int sleeps)
{
	struct timespec pause = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	uint64_t begin = now_ns(sleeps ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID);

	if (sleeps)
		nanosleep(&pause, NULL);
	else
		while (now_ns(CLOCK_THREAD_CPUTIME_ID) - begin < ns)
			;
	return sleeps ? now_ns(CLOCK_MONOTONIC) - begin : 0;
}

int main(int argc, char **argv)
{
	int option, takes = 0, gives = 0, sleeps = 0, slows = 0;
	uint64_t bytes, ns, count, i, slept = 0, begin;
	char *item;

	while ((option = getopt(argc, argv, "iok2")) != -1) {
		takes |= option == 'i';
		gives |= option == 'o';
		sleeps |= option == 'k';
		slows |= option == '2';
	}
	if (argc - optind != 3)
		return 2;
	bytes = strtoull(argv[optind], NULL, 10);
	ns = strtoull(argv[optind + 1], NULL, 10) * 1000;
	count = strtoull(argv[optind + 2], NULL, 10);
	item = calloc(bytes + 1, 1);
	if (!item)
		return 3;
	begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (i = 0; i < count; i++) {
		if (takes && !move_all(0, item, bytes, 0))
			break;
		slept += ns ? work(slows && i >= count / 2 ? 2 * ns : ns, sleeps) : 0;
		if (gives && !move_all(1, item, bytes, 1))
			break;
	}
	fprintf(stderr, "stage %d %llu %llu\n", (int)getpid(), (unsigned long long)(i * bytes),
		(unsigned long long)(now_ns(CLOCK_THREAD_CPUTIME_ID) - begin + slept));
	free(item);
	return 0;
}
