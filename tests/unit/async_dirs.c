// SPDX-License-Identifier: MIT
/*
 * async_dirs.c - asynchronous callbacks and processes that meet in another runtime folder, as those
 * in containers do
 *
 * Such a process can't wake the thread up, which waits by the clock then, also when it slept
 * before.
 */
#include "async_fixture.h"

#include <limits.h>

/* many times as long as a thread looks about before it goes to sleep */
#define QUIET_US 100000

static char elsewhere[PATH_MAX];

static void waits_by_the_clock(void **state)
{
	struct pem_context target = {0};
	struct pem_error error = {""};
	struct raiser r;
	uint32_t word;
	unsigned i;

	(void)state;
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	r = raiser_start_in(elsewhere);
	target.pid = (uint32_t)r.pid;
	enabled_on("APP::Probe::Tick", 100);
	while (!is_asleep())
		usleep(100);
	/*
	 * What it was before exec has left its file in the session's own folder, and may be
	 * counted, too.
	 */
	if (pem_session__attach(session, &target, &error) < 1)
		fail_msg("not attached: %s", error.text);
	/*
	 * Where it is now, and where the user's programs meet without the variable, is found soon
	 * after.
	 */
	while (!observes_elsewhere())
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
		return raiser_main_anew();
	/* The helper lies beside libpem.so, and this program has a libpem of its own. */
	if (getenv("B")) {
		snprintf(elsewhere, sizeof(elsewhere), "%s/lib", getenv("B"));
		setenv("PEM_LIBRARY_PATH", elsewhere, 0);
	}
	alarm(600);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
