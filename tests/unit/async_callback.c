// SPDX-License-Identifier: MIT
/*
 * async_callback.c - asynchronous callbacks: all events that they are for, in order, on a thread of
 * their own
 *
 * Not here: what the function may do (async_function.c), what is lost, and logs beside them
 * (async_log.c).
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "delivery/delivery.h"
#include "async_fixture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void every_event_of_another_process_in_order(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 200);
	struct raiser r = raiser_start(1);

	(void)state;
	raise_ticks(&r, 10000);
	while (counts_of(cb).waiting)
		usleep(200);
	assert_int_equal(seen_count(), 10000);
	assert_int_equal(seen.gaps, 0);
	assert_int_equal(seen.disorder, counts_of(cb).late);
	assert_int_equal(seen.pid, r.pid);
	assert_int_equal(seen.tid, r.pid);
	assert_int_not_equal(seen.thread, getpid());
	assert_int_equal(counts_of(cb).called, 10000);
	assert_int_equal(counts_of(cb).lost, 0);
	raiser_end(&r);
}

static void processes_are_merged_by_time(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 1000);
	struct raiser r[3];
	unsigned i, round;

	(void)state;
	for (i = 0; i < 3; i++)
		r[i] = raiser_start(i);
	for (round = 0; round < 100; round++) {
		for (i = 0; i < 3; i++)
			raise_ticks(&r[i], 1 + round % 7);
	}
	for (i = 0; i < 3; i++)
		raiser_end(&r[i]);
	wait_for(3 * (98 / 7 * 28 + 1 + 2));
	assert_int_equal(seen.gaps, 0);
	assert_int_equal(seen.disorder, counts_of(cb).late);
}

#define THREADS 4
#define EACH 5000

static void *raise_in_thread(void *arg)
{
	uint64_t who = (uint64_t)(uintptr_t)arg, i;

	for (i = 1; i <= EACH; i++)
		pem_notify_probe_tick(who, i);
	return NULL;
}

/* In this process too. */
static void threads_are_merged_by_time(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_callback *cb = callback_on("APP::Probe::Tick", &self, 100);
	pthread_t thread[THREADS];
	uintptr_t i;

	(void)state;
	pem_callback__enable(cb);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, raise_in_thread, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	wait_for(THREADS * EACH);
	assert_int_equal(seen.gaps, 0);
	assert_int_equal(seen.disorder, counts_of(cb).late);
	assert_int_equal(counts_of(cb).lost, 0);
}

/*
 * The thread looks by the clock now and then: an event that does not wake it is late, not lost. So
 * the word is asked.
 */
static void rules_written_while_it_sleeps_wake_it(void **state)
{
	struct raiser r = raiser_start(1);
	bool asked = false;
	size_t i;

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	while (!asked) {
		while (!is_asleep())
			usleep(100);
		pem_session__lock(session);
		for (i = 0; session->async->asleep && i < session->demand_count; i++) {
			if (!session->demands[i].async)
				continue;
			asked = true;
			assert_true(PEM_ACTION_FLAGS(pem_demand__action(&session->demands[i])) &
				    PEM_ACTION_WAKE);
		}
		pem_session__unlock(session);
	}
	raiser_end(&r);
}

static void sleeps_and_is_woken(void **state)
{
	struct raiser r = raiser_start(1);
	unsigned i;

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	for (i = 1; i <= 20; i++) {
		while (!is_asleep())
			usleep(100);
		raise_ticks(&r, 1);
		wait_for(i);
	}
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

/* --- system calls of the producer --- */

/*
 * From here on any system call but exit kills. (The strict mode would forbid reading the clock,
 * too.)
 */
static int forbid_system_calls(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {4, filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Raise ticks in a process that is killed at any system call. Returns whether it lived. */
static bool lives_without_system_calls(unsigned count)
{
	int go[2], up[2], status;
	unsigned i;
	pid_t child;
	char c = 0;

	assert_int_equal(pipe(go) | pipe(up), 0);
	child = fork();
	if (!child) {
		if (pem_process__join(session->directory) < 0)
			_exit(1);
		pem_notify_types_floats(1, 2); /* makes the pool */
		pem_notify_probe_tick(1, 0); /* and has its first chunk */
		if (write(up[1], &c, 1) != 1 || read(go[0], &c, 1) != 1 || forbid_system_calls())
			_exit(2);
		for (i = 0; i < count; i++)
			pem_notify_probe_tick(1, i);
		syscall(SYS_exit, 0);
	}
	assert_int_equal(read(up[0], &c, 1), 1);
	wait_for(1);
	while (count == 1 && !is_asleep())
		usleep(100);
	assert_int_equal(write(go[1], &c, 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	close(go[0]);
	close(go[1]);
	close(up[0]);
	close(up[1]);
	assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGSYS);
	return WIFEXITED(status);
}

static void no_system_call_while_events_flow(void **state)
{
	(void)state;
	enabled_on("APP::Probe::Tick", 1000000); /* looks every 10 ms, and sleeps after 200 */
	assert_true(lives_without_system_calls(300)); /* as many as its first chunk has room for */
	wait_for(301);
}

static void a_system_call_wakes_a_sleeper(void **state)
{
	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	assert_false(lives_without_system_calls(1));
}

static void one_wake_up_for_many_events(void **state)
{
	struct raiser r = raiser_start(1);
	uint32_t asleep;

	(void)state;
	put(&inside, 0);
	put(&leave, 0);
	also_do(stay);
	enabled_on("APP::Probe::Tick", 100);
	while (!is_asleep())
		usleep(100);
	asleep = __atomic_load_n(&session->page->wake, __ATOMIC_SEQ_CST);
	raise_ticks(&r, 100);
	wait_until(&inside, 1);
	raise_ticks(&r, 100);
	assert_int_equal(__atomic_load_n(&session->page->wake, __ATOMIC_SEQ_CST), asleep + 1);
	put(&leave, 1);
	wait_for(200);
	raiser_end(&r);
}

/* --- for whom --- */

static void only_while_enabled(void **state)
{
	struct pem_callback *cb = callback_on("APP::Probe::Tick", NULL, 100);
	struct raiser r = raiser_start(1);

	(void)state;
	raise_ticks(&r, 10);
	pem_callback__enable(cb);
	raise_ticks(&r, 10);
	wait_for(10);
	assert_int_equal(seen.next_number[1], 20);
	pem_callback__disable(cb);
	raise_ticks(&r, 10);
	pem_callback__enable(cb);
	raise_ticks(&r, 5);
	wait_for(15);
	assert_int_equal(seen.next_number[1], 35);
	assert_int_equal(counts_of(cb).called, 15);
	assert_int_equal(counts_of(cb).lost, 0);
	raiser_end(&r);
}

static void only_its_events(void **state)
{
	struct raiser r = raiser_start(1);

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 1);
	assert_int_equal(write(r.to, "", 1), 1);
	assert_int_equal(read(r.from, &(char){0}, 1), 1);
	raise_ticks(&r, 1);
	wait_for(2);
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

static void only_where_its_predicate_holds(void **state)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct raiser r = raiser_start(1);
	struct pem_error error = {""};

	(void)state;
	assert_int_equal(pem_event_set__where(set, "number > 90 && number != 95", &error), 0);
	seen.self = pem_session__register_async_callback(session, set, NULL, on_tick, &seen, NULL,
							 &error);
	pem_event_set__free(set);
	pem_callback__enable(seen.self);
	raise_ticks(&r, 100);
	wait_for(9);
	assert_int_equal(seen.next_number[1], 100);
	assert_int_equal(counts_of(seen.self).called, 9);
	raiser_end(&r);
}

static void only_in_its_context(void **state)
{
	struct raiser one = raiser_start(1), two = raiser_start(2);
	const struct pem_context context = {.pid = (uint32_t)two.pid};
	struct pem_callback *cb = callback_on("APP::Probe::Tick", &context, 100);

	(void)state;
	pem_callback__enable(cb);
	raise_ticks(&one, 50);
	raise_ticks(&two, 50);
	wait_for(50);
	raise_ticks(&one, 50);
	raise_ticks(&two, 1);
	wait_for(51);
	assert_int_equal(seen.next_number[1], 0);
	raiser_end(&one);
	raiser_end(&two);
}

static void a_dead_process_is_read_to_its_end(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 100);
	struct raiser r = raiser_start(1);

	(void)state;
	raise_ticks(&r, 3000);
	kill(r.pid, SIGKILL);
	waitpid(r.pid, NULL, 0);
	wait_for(3000);
	while (has_producers())
		pem_session__poll(session, 1, &(int){0});
	assert_int_equal(seen.gaps, 0);
	assert_int_equal(counts_of(cb).called, 3000);
	assert_int_equal(counts_of(cb).lost, 0);
	raiser_end(&r);
}

static void a_short_life_is_seen(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 1000000);
	unsigned i;
	pid_t child;

	(void)state;
	for (i = 1; i <= 10; i++) {
		child = fork();
		if (!child) {
			if (pem_process__join(session->directory) >= 0)
				pem_notify_probe_tick(i % 8, 1);
			_exit(0);
		}
		assert_int_equal(waitpid(child, NULL, 0), child);
		while (counts_of(cb).waiting)
			usleep(100);
		assert_int_equal(seen_count(), i);
	}
}

static struct {
	uint64_t kernel, user, strangers, last_clock, disorder;
} mixed;

static void on_any(const struct pem_record *record, void *arg)
{
	(void)arg;
	mixed.disorder += record->clock < mixed.last_clock;
	if (record->clock > mixed.last_clock)
		mixed.last_clock = record->clock;
	mixed.user += record->source == PEM_PACKET_USER;
	mixed.kernel += record->source == PEM_PACKET_KERNEL;
	mixed.strangers += record->pid != (uint32_t)getpid();
}

#define PAGES 64u

/* Of the kernel's records, the process comes from context switches. */
static void kernel_events_are_merged_with_others(void **state)
{
	const char *const patterns[] = {"OS::Mem::PageFault", "APP::Probe::Tick"};
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_error error = {""};
	struct pem_event_set *set = pem_event_set__new(session, patterns, 2, &error);
	struct pem_callback *cb;
	uint8_t *pages;
	unsigned i;

	(void)state;
	memset(&mixed, 0, sizeof(mixed));
	if (!pem_session__can_deliver(session, pem_event_set__event(set, 0), &error)) {
		print_message("# %s\n", error.text);
		pem_event_set__free(set);
		skip();
	}
	cb = pem_session__register_async_callback(session, set, &self, on_any, NULL, NULL, &error);
	pem_event_set__free(set);
	pem_callback__enable(cb);
	pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	for (i = 0; i < PAGES; i++) {
		pages[i * 4096] = 1;
		pem_notify_probe_tick(1, i);
	}
	while (counts_of(cb).waiting)
		usleep(100);
	munmap(pages, PAGES * 4096);
	assert_int_equal(mixed.user, PAGES);
	assert_true(mixed.kernel >= PAGES);
	assert_int_equal(mixed.strangers, 0);
	assert_int_equal(mixed.disorder, counts_of(cb).late);
	assert_int_equal(counts_of(cb).lost, 0);
}

static void several_callbacks_on_one_event(void **state)
{
	struct pem_callback *one = enabled_on("APP::Probe::Tick", 100),
			    *two = enabled_on("APP::Probe::Tick", 1000);
	struct raiser r = raiser_start(1);

	(void)state;
	raise_ticks(&r, 100);
	wait_for(200);
	pem_callback__unregister(one);
	raise_ticks(&r, 100);
	wait_for(300);
	assert_int_equal(counts_of(two).called, 200);
	raiser_end(&r);
}

int main(int argc, char **argv)
{
	char plugins[PATH_MAX + 16], *path = realpath(argc ? argv[0] : ".", NULL), *slash;

	slash = path ? strstr(path, "/tests/async_callback") : NULL;
	if (slash)
		*slash = 0;
	snprintf(plugins, sizeof(plugins), "%s/lib/pem", path ? path : "");
	free(path);
#define TEST(name) cmocka_unit_test_setup_teardown(name, async_set_up, async_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(every_event_of_another_process_in_order),
		TEST(processes_are_merged_by_time),
		TEST(threads_are_merged_by_time),
		TEST(sleeps_and_is_woken),
		TEST(rules_written_while_it_sleeps_wake_it),
		TEST(no_system_call_while_events_flow),
		TEST(a_system_call_wakes_a_sleeper),
		TEST(one_wake_up_for_many_events),
		TEST(only_while_enabled),
		TEST(only_where_its_predicate_holds),
		TEST(only_its_events),
		TEST(only_in_its_context),
		TEST(a_dead_process_is_read_to_its_end),
		TEST(a_short_life_is_seen),
		TEST(kernel_events_are_merged_with_others),
		TEST(several_callbacks_on_one_event),
	};

	setenv("PEM_PLUGIN_PATH", plugins, 1);
	alarm(600); /* what is never called back is waited for */
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
