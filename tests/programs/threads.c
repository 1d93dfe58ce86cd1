// SPDX-License-Identifier: MIT
/*
 * threads.c - raises ticks in many threads, in signal handlers, and in libraries that come and go
 */
#include "probe.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static void *raise_some(void *arg)
{
	const uint64_t *what = arg; /* who, count, how to end */

	probe_raise(what[0], 1, what[1]);
	probe_tell(what[0], what[1]);
	if (what[2])
		pthread_exit(NULL);
	return NULL;
}

/*
 * argv[3] threads, four at a time, each with count ticks; every other one ends with pthread_exit.
 */
static int short_threads(uint64_t count, char **argv)
{
	uint64_t threads = strtoul(argv[3], NULL, 10), i, what[4][3];
	pthread_t thread[4];

	for (i = 0; i < threads; i++) {
		if (i >= 4)
			pthread_join(thread[i % 4], NULL);
		what[i % 4][0] = i + 1;
		what[i % 4][1] = count;
		what[i % 4][2] = i & 1;
		if (pthread_create(&thread[i % 4], NULL, raise_some, what[i % 4]))
			return 1;
	}
	for (i = threads < 4 ? 0 : threads - 4; i < threads; i++)
		pthread_join(thread[i % 4], NULL);
	return 0;
}

/*
 * Ticks raised by the destructor of a thread-specific value, after the thread's function is done.
 */
static pthread_key_t late_key;

static void late(void *arg)
{
	const uint64_t *what = arg;

	probe_raise(what[0], what[1] + 1, 2 * what[1]);
	probe_tell(what[0], 2 * what[1]);
}

static void *leave_late(void *arg)
{
	const uint64_t *what = arg;

	pthread_setspecific(late_key, arg);
	probe_raise(what[0], 1, what[1]);
	return NULL;
}

static int late_threads(uint64_t count, char **argv)
{
	uint64_t what[8][2], i;
	pthread_t thread[8];

	(void)argv;
	pthread_key_create(&late_key, late);
	for (i = 0; i < 8; i++) {
		what[i][0] = i + 1;
		what[i][1] = count;
		pthread_create(&thread[i], NULL, leave_late, what[i]);
	}
	for (i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

static volatile uint64_t in_alarm, in_user;

static void on_alarm(int number)
{
	(void)number;
	pem_notify_probe_tick(1, ++in_alarm);
	raise(SIGUSR1); /* a handler inside the handler's event's neighbourhood: two deep */
}

static void on_user(int number)
{
	(void)number;
	pem_notify_probe_tick(2, ++in_user);
}

/* Handlers raise ticks in the middle of ticks. */
static int signals(uint64_t count, char **argv)
{
	struct itimerval timer = {{0, 50}, {0, 50}}, none = {{0, 0}, {0, 0}};
	struct sigaction alarm_action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct sigaction user_action = {.sa_handler = on_user, .sa_flags = SA_RESTART};

	(void)argv;
	sigaction(SIGALRM, &alarm_action, NULL);
	sigaction(SIGUSR1, &user_action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	probe_raise(0, 1, count);
	setitimer(ITIMER_REAL, &none, NULL);
	probe_tell(0, count);
	probe_tell(1, in_alarm);
	probe_tell(2, in_user);
	return 0;
}

static void load_and_raise(const char *path, uint64_t who, uint64_t first, uint64_t last)
{
	void (*raise_ticks)(uint64_t, uint64_t, uint64_t);
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	symbol = dlsym(library, "library_raise");
	memcpy(&raise_ticks, &symbol, sizeof(symbol));
	raise_ticks(who, first, last);
	dlclose(library);
}

/*
 * The library argv[3], which has the same events as this program, is loaded and unloaded argv[4]
 * times.
 */
static int libraries(uint64_t count, char **argv)
{
	uint64_t times = strtoul(argv[4], NULL, 10), i;

	for (i = 0; i < times; i++) {
		load_and_raise(argv[3], 1, i * count + 1, (i + 1) * count);
		probe_raise(0, i * count + 1, (i + 1) * count);
	}
	probe_tell(0, times * count);
	probe_tell(1, times * count);
	return 0;
}

static pthread_barrier_t all_there;

static void *raise_and_stay(void *arg)
{
	raise_some(arg);
	pthread_barrier_wait(&all_there);
	return NULL;
}

/* argv[3] threads, which all live at once, each with count ticks. */
static int crowd(uint64_t count, char **argv)
{
	uint64_t threads = strtoul(argv[3], NULL, 10), i, (*what)[3];
	pthread_t *thread = calloc(threads, sizeof(*thread));
	pthread_attr_t small;

	what = calloc(threads, sizeof(*what));
	if (!thread || !what || pthread_attr_init(&small) ||
	    pthread_attr_setstacksize(&small, 65536) ||
	    pthread_barrier_init(&all_there, NULL, (unsigned)threads))
		return 1;
	for (i = 0; i < threads; i++) {
		what[i][0] = i + 1;
		what[i][1] = count;
		if (pthread_create(&thread[i], &small, raise_and_stay, what[i]))
			return 1;
	}
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct probe_mode modes[] = {
		{"short", short_threads}, {"late", late_threads},   {"signals", signals},
		{"crowd", crowd},         {"libraries", libraries}, {NULL, NULL},
	};

	return probe_main(modes, argc, argv);
}
