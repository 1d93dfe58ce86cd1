// SPDX-License-Identifier: MIT
/*
 * fuzz_values.c - the module's fuzzer disguises its ioctls, and none as one that waits
 */
#include "tests/guest/fuzz_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdbool.h>
#include <sys/ioctl.h>

#define TRIES 200000

static bool is_work(unsigned long command)
{
	return _IOC_NR(command) == _IOC_NR(PEM_KMOD_WORK);
}

static void no_disguise_waits(void **state)
{
	static const unsigned long commands[] = {
		PEM_KMOD_INFO,   PEM_KMOD_EVENTS,   PEM_KMOD_SETUP,    PEM_KMOD_EVENT,
		PEM_KMOD_TARGET, PEM_KMOD_START,    PEM_KMOD_STOP,     PEM_KMOD_TAKE,
		PEM_KMOD_FREE,   PEM_KMOD_COUNTERS, PEM_KMOD_ACCESSED, PEM_KMOD_SUPPLY,
	};
	static struct user u = {.seed = 1};
	size_t i, n, changed = 0;
	unsigned long command;

	(void)state;
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		for (n = 0; n < TRIES; n++) {
			command = disguise(&u, commands[i]);
			assert_false(is_work(command));
			changed += command != commands[i];
		}
	}
	/* or this test would test nothing */
	assert_true(changed > TRIES / 2);
}

static void work_is_disguised_too(void **state)
{
	static struct user u = {.seed = 1};
	size_t n, forms = 0;
	unsigned long command;

	(void)state;
	for (n = 0; n < TRIES; n++) {
		command = disguise(&u, PEM_KMOD_WORK);
		forms += is_work(command) && command != PEM_KMOD_WORK;
	}
	assert_true(forms > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_disguise_waits),
		cmocka_unit_test(work_is_disguised_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
