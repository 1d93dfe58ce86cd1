/* SPDX-License-Identifier: MIT */
/*
 * streams_watch.c - runs a program and observes the first queue that it shows, from outside
 *
 *	streams_watch PERIOD_MS PROGRAM [ARGUMENTS]
 *
 * Prints the items that the consumer's thread took between the first reading and the last one, its
 * busy time for them with its least and greatest value, the time between the readings, in ns, their
 * number, and the CPU time of the observation in us.
 */
#include <pem/streams.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int main(int argc, char **argv)
{
	struct pem_streams_service service = {.size = sizeof(service)};
	struct timespec pause = {0, 1000000};
	struct pem_streams *streams = NULL;
	unsigned readings = 0;
	double cpu = 0;
	long period;
	pid_t pid;

	if (argc < 3)
		return 2;
	period = strtol(argv[1], NULL, 10);
	pid = fork();
	if (!pid) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	while (!waitpid(pid, NULL, WNOHANG)) {
		nanosleep(&pause, NULL);
		if (!streams) {
			streams = pem_streams__open((uint32_t)pid, NULL);
			cpu = cpu_us();
			continue;
		}
		if (pem_streams__read(streams, NULL) < 1)
			continue;
		pause.tv_sec = period / 1000;
		pause.tv_nsec = period % 1000 * 1000000;
		readings += pem_streams__service(streams, 0, 1, &service) == 1;
	}
	cpu = cpu_us() - cpu;
	pem_streams__close(streams);
	if (!readings)
		return 1;
	printf("%llu %llu %llu %llu %llu %u %.0f\n", (unsigned long long)service.items,
	       (unsigned long long)service.busy_ns, (unsigned long long)service.low_ns,
	       (unsigned long long)service.high_ns, (unsigned long long)service.wall_ns, readings,
	       cpu);
	return 0;
}
