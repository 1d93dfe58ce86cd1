// SPDX-License-Identifier: MIT
/*
 * producer_fork_lock.c - the process lock while a thread forks: held, but never for a thread that
 * the fork waits for
 *
 * Not here: what the child makes of its parent's state (producer_fork.c).
 */
#include "session_fixture.h"

#include "producer/producer.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ROUNDS 50

/* What the next fork does once the library's own handler has run. */
static void (*in_fork)(void);

static void before_fork(void)
{
	void (*function)(void) = in_fork;

	in_fork = NULL;
	if (function)
		function();
}

static void add_handler(void)
{
	if (pthread_atfork(before_fork, NULL, NULL))
		abort();
}

/* Before the library adds its handlers: those that prepare run in the opposite order. */
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = add_handler;

static pthread_t other;
static int steps[2][2]; /* pipes: the main thread tells the other one to go on, and is told */
static pid_t other_tid;
static bool got_lock, kept_lock;

static void tell(int which)
{
	assert_int_equal(write(steps[which][1], "", 1), 1);
}

static void wait_for(int which)
{
	char byte;

	assert_int_equal(read(steps[which][0], &byte, 1), 1);
}

static int make_pipes(void **state)
{
	(void)state;
	got_lock = kept_lock = false;
	return pipe(steps[0]) || pipe(steps[1]) ? -1 : 0;
}

static int close_pipes(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		close(steps[i / 2][i % 2]);
	return 0;
}

static void start_other(void *(*function)(void *))
{
	assert_int_equal(pthread_create(&other, NULL, function, NULL), 0);
}

static bool lock_is_free(void)
{
	if (!pem_process__lock())
		return false;
	pem_process__unlock();
	return true;
}

/* A thread's signal mask and cancellation that are no other thread's. */
static void set_own(int signal_number)
{
	sigset_t mask;
	int before;

	sigemptyset(&mask);
	sigaddset(&mask, signal_number);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (signal_number == SIGUSR1)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	else
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
}

static bool has_own(int signal_number)
{
	int state, type, number;
	sigset_t mask;
	bool same;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	same = (state == PTHREAD_CANCEL_DISABLE) == (signal_number == SIGUSR1) &&
	       (type == PTHREAD_CANCEL_ASYNCHRONOUS) == (signal_number != SIGUSR1);
	for (number = 1; number <= 64; number++) {
		if (number != 32 && number != 33 && /* the C library's own */
		    sigismember(&mask, number) != (number == signal_number))
			same = false;
	}
	sigemptyset(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return same;
}

/* The child says with its status whether all is as it should be. */
static bool child_is_well(pid_t child)
{
	int status = -1;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

static pid_t fork_and_check(int signal_number)
{
	pid_t child = fork();

	if (!child)
		_exit(!lock_is_free() || !has_own(signal_number));
	return child;
}

static void fork_gives_the_lock_back(void **state)
{
	pid_t child;

	(void)state;
	set_own(SIGUSR1);
	child = fork_and_check(SIGUSR1);
	assert_true(has_own(SIGUSR1));
	assert_true(lock_is_free());
	assert_true(child_is_well(child));
}

/* --- a fork that waits for a thread that waits for the lock --- */

static void *take_lock(void *arg)
{
	set_own(SIGUSR2);
	got_lock = lock_is_free();
	kept_lock = has_own(SIGUSR2);
	return arg;
}

static void wait_for_taker(void)
{
	start_other(take_lock);
	pthread_join(other, NULL);
}

static void thread_that_the_fork_waits_for_gets_the_lock(void **state)
{
	pid_t child;

	(void)state;
	in_fork = wait_for_taker;
	set_own(SIGUSR1);
	child = fork_and_check(SIGUSR1);
	assert_true(has_own(SIGUSR1));
	assert_true(got_lock);
	assert_true(kept_lock);
	assert_true(lock_is_free());
	assert_true(child_is_well(child));
}

/* --- the lock was taken, and the fork ends before it is given back --- */

static void *hold_lock(void *arg)
{
	got_lock = pem_process__lock();
	tell(0);
	wait_for(1);
	/* false: this thread has it still. */
	kept_lock = !pem_process__lock();
	pem_process__unlock();
	return arg;
}

static void wait_for_holder(void)
{
	start_other(hold_lock);
	wait_for(0);
}

static void end_of_the_fork_leaves_the_lock_to_its_new_holder(void **state)
{
	pid_t child;

	(void)state;
	in_fork = wait_for_holder;
	set_own(SIGUSR1);
	child = fork_and_check(SIGUSR1);
	assert_true(has_own(SIGUSR1));
	tell(1);
	pthread_join(other, NULL);
	assert_true(got_lock);
	assert_true(kept_lock);
	assert_true(lock_is_free());
	assert_true(child_is_well(child));
}

/* --- two forks at once --- */

static void *fork_too(void *arg)
{
	pid_t child;

	set_own(SIGUSR2);
	child = fork_and_check(SIGUSR2);
	kept_lock = has_own(SIGUSR2);
	got_lock = child_is_well(child);
	return arg;
}

static void wait_for_fork(void)
{
	start_other(fork_too);
	pthread_join(other, NULL);
}

static void each_of_two_forks_restores_what_was_its_own(void **state)
{
	pid_t child;

	(void)state;
	/* Until then the C library let one thread at a time fork. */
	if (strverscmp(gnu_get_libc_version(), "2.36") < 0)
		skip();
	in_fork = wait_for_fork;
	set_own(SIGUSR1);
	child = fork_and_check(SIGUSR1);
	assert_true(has_own(SIGUSR1));
	assert_true(got_lock);
	assert_true(kept_lock);
	assert_true(lock_is_free());
	assert_true(child_is_well(child));
}

/* --- a fork that waits for nobody keeps the lock --- */

static bool napped;

static void *say_and_take_lock(void *arg)
{
	__atomic_store_n(&other_tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	if (pem_process__lock()) {
		__atomic_store_n(&got_lock, true, __ATOMIC_RELEASE);
		pem_process__unlock();
	}
	return arg;
}

static bool is_asleep(pid_t tid)
{
	char path[64], text[512] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	(void)!read(fd, text, sizeof(text) - 1);
	close(fd);
	return strstr(text, ") S ");
}

/* The other thread sleeps only while it waits for the lock. */
static void see_it_nap(void)
{
	pid_t tid;

	start_other(say_and_take_lock);
	while (!__atomic_load_n(&got_lock, __ATOMIC_ACQUIRE) && !napped) {
		tid = __atomic_load_n(&other_tid, __ATOMIC_ACQUIRE);
		napped = tid && is_asleep(tid) && !__atomic_load_n(&got_lock, __ATOMIC_ACQUIRE);
	}
}

static void thread_waits_for_a_fork_first(void **state)
{
	pid_t child;
	int round;

	(void)state;
	/* On a machine with much to do the wait may be over before it is seen. */
	for (round = 0; round < ROUNDS && !napped; round++) {
		got_lock = false;
		other_tid = 0;
		in_fork = see_it_nap;
		child = fork();
		if (!child)
			_exit(!lock_is_free());
		pthread_join(other, NULL);
		assert_true(got_lock);
		assert_true(child_is_well(child));
	}
	assert_true(napped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fork_gives_the_lock_back),
		cmocka_unit_test_setup_teardown(thread_that_the_fork_waits_for_gets_the_lock,
						make_pipes, close_pipes),
		cmocka_unit_test_setup_teardown(end_of_the_fork_leaves_the_lock_to_its_new_holder,
						make_pipes, close_pipes),
		cmocka_unit_test_setup_teardown(each_of_two_forks_restores_what_was_its_own,
						make_pipes, close_pipes),
		cmocka_unit_test_setup_teardown(thread_waits_for_a_fork_first, make_pipes,
						close_pipes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
