// SPDX-License-Identifier: MIT
/*
 * async_places.c - asynchronous callbacks and processes that meet in another runtime folder, as those in containers do
 *
 * Such a process can't wake the thread up, which waits by the clock then, also when it slept before.
 */
#include "async_fixture.h"

#include <limits.h>
#include <sys/prctl.h>

#define QUIET_US 100000 /* many times as long as a thread looks about before it goes to sleep */

static char elsewhere[PATH_MAX];

/* This program anew, with a folder of its own: what its environment was at its start is where it is looked for. */
static struct raiser start_elsewhere(void)
{
	struct raiser r;
	int in[2], out[2];

	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	assert_int_equal(pipe(in) | pipe(out), 0);
	r.pid = fork();
	assert_true(r.pid >= 0);
	if (!r.pid) {
		setenv("PEM_RUNTIME_DIR", elsewhere, 1);
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", "async_places", "raise", NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	r.to = in[1];
	r.from = out[0];
	assert_int_equal(read(r.from, &(char){0}, 1), 1);
	return r;
}

static int raise_what_is_read(void)
{
	uint64_t number = 0;
	unsigned char c, i;

	pem_notify_probe_tick(1, 0); /* makes the control file */
	if (write(1, "", 1) != 1)
		return 1;
	while (read(0, &c, 1) == 1) {
		for (i = 0; i < c; i++)
			pem_notify_probe_tick(1, ++number);
		if (write(1, &c, 1) != 1)
			return 1;
	}
	return 0;
}

static bool has_other_places(void)
{
	bool result;

	pem_session__lock(session);
	result = session->places->next != NULL;
	pem_session__unlock(session);
	return result;
}

static void waits_by_the_clock(void **state)
{
	struct pem_context target = PEM_CONTEXT_ANY;
	struct raiser r = start_elsewhere();
	struct pem_error error = {""};
	uint32_t word;
	unsigned i;

	(void)state;
	target.pid = (uint32_t)r.pid;
	enabled_on("APP::Probe::Tick", 100);
	while (!is_asleep())
		usleep(100);
	/* What it was before exec has left its file in the session's own folder, and may be counted, too. */
	if (pem_session__attach(session, &target, &error) < 1)
		fail_msg("not attached: %s", error.text);
	/* Where it is now, and where the user's programs meet without the variable, is found soon after. */
	while (!has_other_places())
		usleep(100);
	while (is_asleep())
		usleep(100);
	word = session->page->wake;
	for (i = 1; i <= 3; i++) {
		usleep(QUIET_US);
		/* It would be odd while it sleeps, and another number ever after. */
		assert_int_equal(__atomic_load_n(&session->page->wake, __ATOMIC_SEQ_CST), word);
		raise_ticks(&r, 1);
		wait_for(i);
	}
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(waits_by_the_clock, async_set_up, async_tear_down),
	};

	if (argc == 2 && !strcmp(argv[1], "raise"))
		return raise_what_is_read();
	/* The helper lies beside libpem.so, and this program has a libpem of its own. */
	if (getenv("B")) {
		snprintf(elsewhere, sizeof(elsewhere), "%s/lib", getenv("B"));
		setenv("PEM_LIBRARY_PATH", elsewhere, 0);
	}
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
