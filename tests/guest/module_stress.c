/* SPDX-License-Identifier: MIT */
/*
 * module_stress.c - pem.ko under all that nests and comes and goes: timers, forks, CPUs; every
 * chunk is checked
 *
 * guest: limit=240
 *
 * What is checked of each chunk is in module_fixture.h: whole records in order of time, lanes
 * without a gap. At the end what was produced is what was taken and discarded.
 */
#include "module_fixture.h"

#include <pthread.h>
#include <sys/timerfd.h>

/*
 * How many records each goes on for; a machine that is emulated is kept busy by fewer. The work is
 * the same however little of its CPUs the machine gets.
 */
static uint64_t work = 200000;
static unsigned turns = 4;

/* --- work for the kernel, on all CPUs --- */

static volatile bool over;

/* Calls as fast as it can, interrupted by timers of its own each 100 us. */
static void *busy(void *arg)
{
	struct itimerspec each = {{0, 100000}, {0, 100000}};
	unsigned cpu = (unsigned)(uintptr_t)arg;
	int timer[4], i;

	run_on(cpu);
	for (i = 0; i < 4; i++) {
		timer[i] = timerfd_create(CLOCK_MONOTONIC, 0);
		each.it_interval.tv_nsec += 13000;
		timerfd_settime(timer[i], 0, &each, NULL);
	}
	while (!over)
		call(0);
	for (i = 0; i < 4; i++)
		close(timer[i]);
	return NULL;
}

static void *forks(void *arg)
{
	int status;
	pid_t pid;

	(void)arg;
	while (!over) {
		pid = fork();
		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, &status, 0);
	}
	return NULL;
}

struct workers {
	pthread_t thread[2 * CPUS];
	unsigned count;
};

static void workers_start(struct workers *w)
{
	unsigned cpu, cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);

	over = false;
	w->count = 0;
	for (cpu = 0; cpu < cpus; cpu++) {
		assert_int_equal(
			pthread_create(&w->thread[w->count++], NULL, busy, (void *)(uintptr_t)cpu),
			0);
		assert_int_equal(pthread_create(&w->thread[w->count++], NULL, forks, NULL), 0);
	}
}

static void workers_stop(struct workers *w)
{
	over = true;
	while (w->count)
		assert_int_equal(pthread_join(w->thread[--w->count], NULL), 0);
}

static struct session *recording(uint32_t flags, uint32_t chunks)
{
	static const char *const events[] = {SWITCH, ENTER,       EXIT,     WAKEUP,
					     FORK,   TIMER_BEGIN, TIMER_END};
	struct session *s = session_open();
	unsigned i;

	session_setup(s, flags, 16384, chunks);
	for (i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		session_event(s, events[i], PEM_ACTION_LOG);
	return s;
}

/* Take records until so many more were produced. */
static void drain_more(struct session *s, uint64_t records)
{
	struct pollfd ready = {.fd = s->fd, .events = POLLIN};
	uint64_t before, produced, discarded;

	session_counts(s, NULL, &before, &discarded);
	do {
		poll(&ready, 1, 50);
		session_drain(s);
		session_counts(s, NULL, &produced, &discarded);
	} while (produced - before < records);
}

static uint64_t lost(struct session *s)
{
	uint64_t produced, discarded;

	session_counts(s, NULL, &produced, &discarded);
	return discarded + session_overwritten(s);
}

/* Until the pools are full and more than that, however slow the machine is. */
static void do_not_drain(struct session *s)
{
	uint64_t before = lost(s);

	while (lost(s) == before)
		usleep(10000);
}

static uint64_t packets_of_lane(struct session *s, uint32_t lane)
{
	uint64_t sum = 0;
	struct mapped *m;
	unsigned cpu;

	for (cpu = 0; cpu < CPUS; cpu++) {
		m = session_map(s, cpu);
		if (m)
			sum += m->ring.lanes[lane].packet_seq;
	}
	return sum;
}

static void interrupts_nest_and_nothing_is_torn(void **state)
{
	struct session *s = recording(0, 256);
	struct workers w;
	uint64_t produced, discarded;

	(void)state;
	session_start(s);
	workers_start(&w);
	drain_more(s, work);
	/* Otherwise this test would test nothing. */
	while (!packets_of_lane(s, 2) || s->taken < 10000)
		drain_more(s, work / 10);
	workers_stop(&w);
	session_finish(s);
	session_counts(s, NULL, &produced, &discarded);
	printf("# %llu records, %llu discarded, %llu chunks of probes in probes\n",
	       (unsigned long long)produced, (unsigned long long)discarded,
	       (unsigned long long)packets_of_lane(s, 2));
	assert_true(produced >= 10000);
	session_close(s);
}

static void a_small_pool_loses_and_counts(void **state)
{
	struct session *s = recording(0, 8);
	struct workers w;
	uint64_t produced, discarded;

	(void)state;
	session_start(s);
	workers_start(&w);
	drain_more(s, work / 2);
	do_not_drain(s);
	workers_stop(&w);
	session_finish(s);
	session_counts(s, NULL, &produced, &discarded);
	assert_true(produced > discarded);
	assert_true(discarded > 0);
	session_close(s);
}

static void a_flight_recorder_is_read_while_it_writes(void **state)
{
	struct session *s = recording(PEM_KMOD_OVERWRITE, 16);
	struct workers w;

	(void)state;
	session_start(s);
	workers_start(&w);
	drain_more(s, work / 2);
	do_not_drain(s); /* the oldest go */
	workers_stop(&w);
	session_finish(s);
	assert_true(session_overwritten(s) > 0);
	session_close(s);
}

static void stopping_and_starting_in_the_middle(void **state)
{
	struct session *s = recording(0, 64);
	struct workers w;
	unsigned i;

	(void)state;
	session_start(s);
	workers_start(&w);
	for (i = 0; i < 5 * turns; i++) {
		drain_more(s, work / 100);
		session_event(s, ENTER, i % 2 ? PEM_ACTION_LOG : 0);
		session_event(s, SWITCH, i % 3 ? PEM_ACTION_LOG | PEM_ACTION_STAT : 0);
		if (i % 4 == 0) {
			assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
			session_drain(s);
			session_start(s);
		}
	}
	workers_stop(&w);
	session_finish(s);
	session_close(s);
}

static bool set_online(unsigned cpu, bool online)
{
	char path[64];
	bool done;
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return false;
	done = write(fd, online ? "1" : "0", 1) == 1;
	close(fd);
	return done;
}

static void cpus_come_and_go(void **state)
{
	struct session *s, *late;
	struct workers w;
	unsigned i;

	(void)state;
	if (!set_online(1, false)) {
		print_message("# CPU 1 is not there, or can't go\n");
		skip();
	}
	late = recording(0, 64); /* made while the CPU is away: its pool comes with it */
	assert_null(session_map(late, 1));
	assert_true(set_online(1, true));
	assert_non_null(session_map(late, 1));
	s = recording(0, 64);
	session_start(s);
	session_start(late);
	workers_start(&w);
	for (i = 0; i < turns; i++) {
		drain_more(s, work / 8);
		session_drain(late);
		assert_true(set_online(1, false));
		drain_more(s, work / 16);
		session_drain(late);
		assert_true(set_online(1, true));
	}
	workers_stop(&w);
	session_finish(s);
	session_finish(late);
	session_close(s);
	session_close(late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupts_nest_and_nothing_is_torn),
		cmocka_unit_test(a_small_pool_loses_and_counts),
		cmocka_unit_test(a_flight_recorder_is_read_while_it_writes),
		cmocka_unit_test(stopping_and_starting_in_the_middle),
		cmocka_unit_test(cpus_come_and_go),
	};

	setlinebuf(stdout); /* a test that does not end shows those before it */
	if (getenv("PEM_TEST_EMULATED")) {
		work = 80000;
		turns = 2;
	}
	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
