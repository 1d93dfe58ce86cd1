// SPDX-License-Identifier: MIT
/*
 * call_back.c - measures how long after an event another process handles it, and what that costs:
 * one run, for callback.py
 *
 *	call_back pem MAX_DELAY_US RATE_HZ COUNT	an asynchronous callback
 *	call_back eventfd|pipe 0 RATE_HZ COUNT		a thread that blocks in read; the producer
 *							writes for each event
 *	call_back timer PERIOD_US 0 COUNT		a thread that only sleeps, which shows the
 *							cost of its wake-ups
 *	call_back spin CPUS				loads this number of CPUs until standard
 *							input ends
 *
 * Prints one line of JSON: delays in us, the CPU time of the consumer's thread as a share of one
 * CPU, and the ns that an event costs the producer's thread. The producer's intervals are random,
 * so that they match no period.
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "bench_stubs/bench.h"

#include <pem/clock.h>
#include <pem/pem.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 1000000u

/* Shared memory that both sides write. */
struct shared {
	/*
	 * Written by peers: events so far, stored with release after the clock of the last event.
	 */
	uint64_t raised;
	uint64_t clock[EVENTS_MAX]; /* of peers' events */
	uint32_t cost_ns[EVENTS_MAX]; /* cost of each event on the producer's side */
};

static struct shared *shared;
static uint64_t events, handled;
static double delay_us[EVENTS_MAX];
static struct {
	uint64_t wall_ns, cpu_ns, switches;
} start, end;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double to_us(uint64_t ticks)
{
	return (double)ticks * 1e6 / (double)pem_clock__hz();
}

/* --- the producer --- */

static int notify_fd = -1;

static void raise_ours(uint64_t i)
{
	pem_notify_bench_log(i, ~i);
}

static void raise_peers(uint64_t i)
{
	const uint64_t one = 1;

	shared->clock[i] = pem_clock();
	__atomic_store_n(&shared->raised, i + 1, __ATOMIC_RELEASE);
	if (write(notify_fd, &one, sizeof(one)) != sizeof(one))
		_exit(1);
}

static void produce(void (*raise_event)(uint64_t i), uint64_t rate_hz, uint64_t count)
{
	uint64_t due, i, before, seed = 1, mean_ns = 1000000000u / rate_hz;
	struct timespec until;

	prctl(PR_SET_TIMERSLACK, 1ul);
	raise_event(0); /* this event makes the pool */
	usleep(100000);
	due = now_ns(CLOCK_MONOTONIC);
	for (i = 1; i < count; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		due += (seed >> 33) % (2 * mean_ns);
		until.tv_sec = (time_t)(due / 1000000000u);
		until.tv_nsec = (long)(due % 1000000000u);
		if (due > now_ns(CLOCK_MONOTONIC))
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		before = pem_clock();
		raise_event(i);
		shared->cost_ns[i] = (uint32_t)(to_us(pem_clock() - before) * 1000);
	}
}

/* --- the consumer --- */

static void note(void *to)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	memcpy(to,
	       &(uint64_t[]){now_ns(CLOCK_MONOTONIC), now_ns(CLOCK_THREAD_CPUTIME_ID),
			     (uint64_t)usage.ru_nvcsw},
	       sizeof(start));
}

static void handle(uint64_t clock)
{
	if (handled == 1)
		note(&start);
	delay_us[handled++] = to_us(pem_clock() - clock);
	if (handled == events)
		note(&end);
}

static void on_event(const struct pem_record *record, void *arg)
{
	(void)arg;
	if (handled < events)
		handle(record->clock);
}

static int consume_ours(uint64_t max_delay_us, char *const command[])
{
	const struct pem_async_options options = {sizeof(options), max_delay_us};
	const char *pattern = "APP::Bench::Log";
	struct pem_callback_counts counts = {.size = sizeof(counts)};
	struct pem_session *session;
	struct pem_callback *cb = NULL;
	struct pem_event_set *set;
	struct pem_error error;
	int status = 1;

	session = pem_session__open(NULL, &error);
	if (session) {
		set = pem_event_set__new(session, &pattern, 1, &error);
		if (set)
			cb = pem_session__register_async_callback(session, set, NULL, on_event,
								  NULL, &options, &error);
		pem_event_set__free(set);
	}
	if (cb)
		pem_callback__enable(cb);
	if (cb && pem_session__run(session, command, NULL, &error) > 0) {
		while (!pem_session__poll(session, 1000, &status))
			;
		usleep(20000);
		pem_callback__counts(cb, &counts);
	} else {
		fprintf(stderr, "call_back: %s\n", error.text);
	}
	pem_session__close(session);
	if (!status && counts.called + counts.lost == events)
		printf("{\"late\":%llu,\"lost\":%llu,", (unsigned long long)counts.late,
		       (unsigned long long)counts.lost);
	return status || counts.called + counts.lost != events;
}

static void *read_events(void *arg)
{
	int fd = *(int *)arg;
	uint64_t words[64], raised;

	while (handled < events && read(fd, words, sizeof(words)) > 0) {
		raised = __atomic_load_n(&shared->raised, __ATOMIC_ACQUIRE);
		while (handled < raised)
			handle(shared->clock[handled]);
	}
	return NULL;
}

static int consume_peers(const char *kind, uint64_t rate_hz)
{
	int fd[2], status;
	pthread_t thread;
	pid_t child;

	if (!strcmp(kind, "pipe")) {
		if (pipe(fd))
			return 1;
	} else {
		fd[0] = fd[1] = eventfd(0, 0);
	}
	notify_fd = fd[1];
	child = fork();
	if (!child) {
		produce(raise_peers, rate_hz, events);
		_exit(0);
	}
	pthread_create(&thread, NULL, read_events, &fd[0]);
	waitpid(child, &status, 0);
	pthread_join(thread, NULL);
	printf("{\"late\":0,\"lost\":0,");
	return status;
}

/* --- results --- */

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int by_cost(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void print_results(void)
{
	qsort(delay_us, handled, sizeof(delay_us[0]), by_size);
	qsort(shared->cost_ns, events, sizeof(shared->cost_ns[0]), by_cost);
	printf("\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f,\"cpu_percent\":%.3f,"
	       "\"wakeups_hz\":%.0f,\"producer_ns\":%u}\n",
	       delay_us[handled / 2], delay_us[handled * 99 / 100], delay_us[handled - 1],
	       100.0 * (double)(end.cpu_ns - start.cpu_ns) / (double)(end.wall_ns - start.wall_ns),
	       (double)(end.switches - start.switches) * 1e9 /
		       (double)(end.wall_ns - start.wall_ns),
	       shared->cost_ns[events / 2]);
}

static int run_timer(uint64_t period_us)
{
	uint64_t due, i;
	struct timespec until;

	prctl(PR_SET_TIMERSLACK, 1ul);
	due = now_ns(CLOCK_MONOTONIC);
	note(&start);
	for (i = 0; i < events; i++) {
		due += period_us * 1000;
		until.tv_sec = (time_t)(due / 1000000000u);
		until.tv_nsec = (long)(due % 1000000000u);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	note(&end);
	printf("{\"cpu_us_each\":%.3f}\n",
	       (double)(end.cpu_ns - start.cpu_ns) / 1e3 / (double)events);
	return 0;
}

static void *spin(void *arg)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)(uintptr_t)arg, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (;;)
		__asm__ __volatile__("" ::: "memory");
	return NULL;
}

static int load_cpus(void)
{
	cpu_set_t allowed;
	pthread_t thread;
	uintptr_t cpu;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed))
			pthread_create(&thread, NULL, spin, (void *)cpu);
	}
	return getchar() == EOF ? 0 : 1;
}

int main(int argc, char **argv)
{
	char *command[] = {(char *)(uintptr_t) "/proc/self/exe",
			   (char *)(uintptr_t) "produce",
			   NULL,
			   NULL,
			   NULL,
			   NULL};
	char fd_text[16], path[64];
	int fd, status = 1;

	if (argc == 2 && !strcmp(argv[1], "spin"))
		return load_cpus();
	if (argc != 5) {
		fprintf(stderr, "call_back: see the head of bench/call_back.c\n");
		return 1;
	}
	events = strtoull(argv[4], NULL, 10);
	if (events < 3 || events > EVENTS_MAX)
		return 1;
	fd = !strcmp(argv[1], "produce") ? atoi(argv[2]) : memfd_create("pem-bench", 0);
	if (ftruncate(fd, sizeof(*shared)))
		return 1;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (!strcmp(argv[1], "produce")) {
		produce(raise_ours, strtoull(argv[3], NULL, 10), events);
		return 0;
	}
	if (!strcmp(argv[1], "timer"))
		return run_timer(strtoull(argv[2], NULL, 10));
	if (!strcmp(argv[1], "pem")) {
		snprintf(path, sizeof(path), "/proc/%d/exe", (int)getpid());
		snprintf(fd_text, sizeof(fd_text), "%d", fd);
		command[0] = path;
		command[2] = fd_text;
		command[3] = argv[3];
		command[4] = argv[4];
		status = consume_ours(strtoull(argv[2], NULL, 10), command);
	} else {
		status = consume_peers(argv[1], strtoull(argv[3], NULL, 10));
	}
	if (!status)
		print_results();
	return status;
}
