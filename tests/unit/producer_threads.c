// SPDX-License-Identifier: MIT
/*
 * producer_threads.c - lanes of threads that end in every way they can
 *
 * Not here: threads of whole programs as a recorder sees them (process_threads.py).
 */
#include "core/core.h"
#include "writer/log.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"
#include "util.h"

#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TICK "APP::Probe::Tick"
#define THREADS 300u
#define CHUNKS 2u
#define ROUND 200u /* ticks that fill a chunk, and more */

static struct pem_session *session;
static struct pem_log *trace_log;

static int set_up(void **state)
{
	struct pem_context self = {.pid = (uint32_t)getpid()};

	if (folder_make(state))
		return -1;
	session = session_open(NULL);
	trace_log = log_to_trace(session, TICK, &self);
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static pthread_key_t last_key;

/* The last destructor of the last round: libpem's own has had its last turn. */
static void last_words(void *round)
{
	if ((uintptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(last_key, (void *)((uintptr_t)round + 1));
	else
		pem_notify_probe_tick(1, 2);
}

static void *live(void *arg)
{
	pthread_setspecific(last_key, (void *)1);
	pem_notify_probe_tick(1, 1);
	return arg;
}

static void events_after_the_last_destructor_keep_no_lane(void **state)
{
	const struct pem_ring *ring;
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t ticks;
	unsigned i, owned = 0;
	pthread_t thread;

	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("# ThreadSanitizer has given up a thread before its last destructor\n");
	skip();
#endif
	pthread_key_create(&last_key, last_words);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, live, NULL), 0);
		pthread_join(thread, NULL);
	}
	pthread_key_delete(last_key);
	ring = &pem_process.joined[session->self_index].ring;
	for (i = 1; i < ring->lane_count; i++)
		owned += ring->lanes[i].state == PEM_LANE_OWNED;
	assert_true(owned > 0); /* it did happen */
	assert_true(owned < THREADS / 4);
	if (pem_log__finish(trace_log, &error))
		fail_msg("%s", error.text);
	read_trace(TICK, &ticks, &balance);
	assert_int_equal(ticks, 2 * THREADS);
	assert_int_equal(balance.produced, 2 * THREADS);
	assert_int_equal(balance.delivered, 2 * THREADS);
}

static void *tick_until_cancelled(void *arg)
{
	int type;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	for (;;)
		pem_notify_probe_tick(1, 1);
	return arg;
}

static void cancelled_threads_leave_no_chunk_behind(void **state)
{
	const struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = 4096, .chunk_count = 8, .overwrite = 1};
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_error error = {""};
	struct pem_balance balance;
	const struct pem_ring *ring;
	pthread_t thread;
	uint64_t ticks;
	unsigned i;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/*
	 * Nor does either bear it in a program without pem: the first keeps red zones of frames
	 * that are gone.
	 */
	print_message("# no sanitizer follows a thread that is cancelled at any instruction\n");
	skip();
#endif
	pem_session__close(session);
	session = session_open(&options);
	snprintf(trace_path, sizeof(trace_path), "%s/cancelled", folder);
	trace_log = log_to_trace(session, TICK, &self);
	for (i = 0; i < 10 * THREADS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, tick_until_cancelled, NULL), 0);
		usleep(i % 50);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	ring = &pem_process.joined[session->self_index].ring;
	for (i = 0; i < ring->chunk_count; i++)
		assert_int_not_equal(PEM_CHUNK_STATE(ring->chunk_state[i]), PEM_CHUNK_OWNED);
	for (i = 1; i < ring->lane_count; i++)
		assert_int_not_equal(ring->lanes[i].state, PEM_LANE_OWNED);
	if (pem_log__finish(trace_log, &error))
		fail_msg("%s", error.text);
	read_trace(TICK, &ticks, &balance);
	assert_int_equal(balance.delivered, ticks);
	assert_int_equal(balance.produced,
			 balance.delivered + balance.discarded + balance.overwritten);
}

#define SIGNAL_CANCEL 32 /* the C library's own */

static int gate[2];
static bool is_let_go, has_lock;
static pid_t waiting;

/* Wait for the lock, and with it for the gate, which is a cancellation point. */
static void *wait_with_the_lock(void *arg)
{
	char byte;
	int type;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	__atomic_store_n(&waiting, gettid(), __ATOMIC_RELAXED);
	while (!__atomic_load_n(&is_let_go, __ATOMIC_RELAXED))
		;
	if (!pem_process__lock())
		abort();
	has_lock = true;
	if (read(gate[0], &byte, 1) == 1)
		has_lock = false;
	pem_process__unlock();
	for (;;)
		pause();
	return arg;
}

/* Begin to cancel a thread, with a signal that stays under way: the kernel drops it. */
static void *begin_to_cancel(void *thread)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {PEM_ARRAY_SIZE(filter), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		return "no filter of system calls here";
	pthread_cancel(*(pthread_t *)thread);
	return NULL;
}

static void await_sleep(pid_t tid)
{
	char path[64], state = 0;
	unsigned times = 0;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	while (times < 5) {
		usleep(2000);
		stat = fopen(path, "r");
		assert_non_null(stat);
		assert_int_equal(fscanf(stat, "%*d (%*[^)]) %c", &state), 1);
		fclose(stat);
		times = state == 'S' ? times + 1 : 0;
	}
}

static void a_thread_is_not_cancelled_while_it_has_the_lock(void **state)
{
	pthread_t thread, canceller;
	void *result, *why;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("# no sanitizer follows a thread that is cancelled at any instruction\n");
	skip();
#endif
	assert_int_equal(pipe(gate), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_with_the_lock, NULL), 0);
	while (!__atomic_load_n(&waiting, __ATOMIC_RELAXED))
		sched_yield();
	assert_int_equal(pthread_create(&canceller, NULL, begin_to_cancel, &thread), 0);
	pthread_join(canceller, &why);
	if (why) {
		print_message("# %s\n", (char *)why);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		skip();
	}
	__atomic_store_n(&is_let_go, true, __ATOMIC_RELAXED);
	await_sleep(waiting);
	assert_int_equal(syscall(SYS_tgkill, getpid(), waiting, SIGNAL_CANCEL), 0);
	assert_int_equal(write(gate[1], "", 1), 1);
	pthread_join(thread, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	assert_false(has_lock);
	close(gate[0]);
	close(gate[1]);
}

/* A thread that has come to the lock, which another one has, and what its handler raises. */
static struct {
	sem_t ready, go;
	pid_t tid;
} waiter;

static void tick_in_handler(int signal)
{
	(void)signal;
	pem_notify_probe_tick(2, 1);
}

static void *tick_once(void *arg)
{
	waiter.tid = gettid();
	if (arg)
		pem_notify_probe_tick(1, 1);
	sem_post(&waiter.ready);
	sem_wait(&waiter.go);
	if (!arg)
		pem_notify_probe_tick(1, 1);
	return arg;
}

/* The lock holds signals back, also while a thread waits for it. */
static void await_held_signals(pid_t tid)
{
	unsigned long long blocked = 0;
	char path[64], line[256];
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	while (!(blocked >> (SIGUSR1 - 1) & 1)) {
		sched_yield();
		status = fopen(path, "r");
		assert_non_null(status);
		while (fgets(line, sizeof(line), status))
			sscanf(line, "SigBlk: %llx", &blocked);
		fclose(status);
	}
}

/*
 * Start a thread that ticks once, and send it a signal that it gets when it gives the lock back. It
 * takes the lock at its first event, or else at its end.
 */
static void tick_and_signal(bool at_end)
{
	struct sigaction action = {.sa_handler = tick_in_handler}, before;
	pthread_t thread;

	sigaction(SIGUSR1, &action, &before);
	sem_init(&waiter.ready, 0, 0);
	sem_init(&waiter.go, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, tick_once, at_end ? &waiter : NULL), 0);
	while (sem_wait(&waiter.ready))
		;
	assert_true(pem_process__lock());
	sem_post(&waiter.go);
	await_held_signals(waiter.tid);
	pthread_kill(thread, SIGUSR1);
	pem_process__unlock();
	pthread_join(thread, NULL);
	sigaction(SIGUSR1, &before, NULL);
}

static void no_handler_loses_its_event(bool at_end)
{
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t ticks;

	pem_notify_probe_tick(0, 0); /* makes the pool, which takes the lock */
	tick_and_signal(at_end);
	if (pem_log__finish(trace_log, &error))
		fail_msg("%s", error.text);
	read_trace(TICK, &ticks, &balance);
	assert_int_equal(balance.produced, 3);
	assert_int_equal(balance.discarded, 0);
	assert_int_equal(ticks, 3);
}

static void a_handler_at_a_threads_first_event_loses_none(void **state)
{
	(void)state;
	no_handler_loses_its_event(false);
}

static void a_handler_at_a_threads_end_loses_none(void **state)
{
	(void)state;
	no_handler_loses_its_event(true);
}

static sem_t one_more, done;

/* One tick, whose chunk it keeps until it may go. */
static void *hold_a_chunk(void *arg)
{
	pem_notify_probe_tick(1, 1);
	sem_post(&done);
	sem_wait(&one_more);
	return arg;
}

static void *find_none(void *arg)
{
	pem_notify_probe_tick(2, 1);
	return arg;
}

static void a_full_flight_recorder_goes_on(void **state)
{
	const struct pem_session_options options = {.size = sizeof(options),
						    .chunk_bytes = 4096,
						    .chunk_count = CHUNKS,
						    .overwrite = 1};
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_error error = {""};
	struct pem_balance balance;
	pthread_t holder, other;
	uint64_t ticks;
	unsigned i;

	(void)state;
	pem_session__close(session);
	session = session_open(&options);
	snprintf(trace_path, sizeof(trace_path), "%s/flight", folder);
	trace_log = log_to_trace(session, TICK, &self);
	sem_init(&one_more, 0, 0);
	sem_init(&done, 0, 0);
	pthread_create(&holder, NULL, hold_a_chunk, NULL);
	sem_wait(&done);
	pem_notify_probe_tick(0, 0);
	/* Each chunk has an owner: this one's tick is lost. */
	pthread_create(&other, NULL, find_none, NULL);
	pthread_join(other, NULL);
	/* Afterwards those that are retired are to be had again. */
	for (i = 1; i < 5 * ROUND; i++)
		pem_notify_probe_tick(0, i);
	sem_post(&one_more);
	pthread_join(holder, NULL);
	if (pem_log__finish(trace_log, &error))
		fail_msg("%s", error.text);
	read_trace(TICK, &ticks, &balance);
	assert_int_equal(balance.produced, 5 * ROUND + 2);
	assert_int_equal(balance.discarded, 1);
	assert_int_equal(balance.delivered + balance.overwritten, 5 * ROUND + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(events_after_the_last_destructor_keep_no_lane,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(cancelled_threads_leave_no_chunk_behind, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_thread_is_not_cancelled_while_it_has_the_lock,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_handler_at_a_threads_first_event_loses_none,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_handler_at_a_threads_end_loses_none, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_full_flight_recorder_goes_on, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
