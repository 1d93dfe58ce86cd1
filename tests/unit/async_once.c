// SPDX-License-Identifier: MIT
/*
 * async_once.c - an event of a process that a session was offered to, and that joins it by itself
 * as well, is seen once
 */
#include "async_fixture.h"

#define JOIN 0
#define FORK 255

static void raise_in_child(void)
{
	pid_t child = fork();

	if (!child) {
		pem_notify_probe_tick(2, 1);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

/*
 * Like raiser_main, of a process that begins outside of the session, and does what the bytes above
 * are called.
 */
static void raise_and_join(int in, int out)
{
	uint64_t number = 0;
	unsigned char c, i;

	pem_notify_probe_tick(1, 0); /* makes the control file */
	if (write(out, "", 1) != 1)
		_exit(1);
	while (read(in, &c, 1) == 1) {
		for (i = 0; c != FORK && i < c; i++)
			pem_notify_probe_tick(1, ++number);
		if (c == JOIN && pem_process__join(session->directory) < 0)
			_exit(1);
		if (c == FORK)
			raise_in_child();
		if (write(out, &c, 1) != 1)
			break;
	}
	_exit(0);
}

static struct raiser start(void)
{
	struct raiser r;
	int in[2], out[2];

	assert_int_equal(pipe(in) | pipe(out), 0);
	r.pid = fork();
	assert_true(r.pid >= 0);
	if (!r.pid) {
		close(in[1]);
		close(out[0]);
		raise_and_join(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	r.to = in[1];
	r.from = out[0];
	assert_int_equal(read(r.from, &(char){0}, 1), 1);
	return r;
}

static void do_there(const struct raiser *r, unsigned char c)
{
	assert_int_equal(write(r->to, &c, 1), 1);
	assert_int_equal(read(r->from, &c, 1), 1);
}

static void what_was_offered_is_not_joined_again(void **state)
{
	struct pem_context target = {0};
	struct pem_error error = {""};
	struct raiser r = start();

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	target.pid = (uint32_t)r.pid;
	if (pem_session__attach(session, &target, &error) < 1)
		fail_msg("not attached: %s", error.text);
	raise_ticks(&r, 1);
	wait_for(1);
	do_there(&r, JOIN);
	raise_ticks(&r, 3);
	wait_for(4);
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

/* Joined, and not yet met by its first event: the session is in the table all the same. */
static void what_is_offered_before_an_event_is_not_joined_again(void **state)
{
	struct pem_context target = {0};
	struct pem_error error = {""};
	struct raiser r = start();

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	target.pid = (uint32_t)r.pid;
	if (pem_session__attach(session, &target, &error) < 1)
		fail_msg("not attached: %s", error.text);
	do_there(&r, JOIN);
	raise_ticks(&r, 3);
	wait_for(3);
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

static void children_of_who_was_started_in_it_are_in_it(void **state)
{
	struct pem_context target = {0};
	struct pem_error error = {""};
	struct raiser r = start();

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	target.pid = (uint32_t)r.pid;
	target.follow = 0;
	if (pem_session__attach(session, &target, &error) < 1)
		fail_msg("not attached: %s", error.text);
	do_there(&r, JOIN);
	do_there(&r, FORK);
	wait_for(1);
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_offered_is_not_joined_again, async_set_up,
						async_tear_down),
		cmocka_unit_test_setup_teardown(what_is_offered_before_an_event_is_not_joined_again,
						async_set_up, async_tear_down),
		cmocka_unit_test_setup_teardown(children_of_who_was_started_in_it_are_in_it,
						async_set_up, async_tear_down),
	};

	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
