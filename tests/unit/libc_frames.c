// SPDX-License-Identifier: MIT
/* libc_frames.c - the callers that libpem-libc finds by unwind tables, beside those of the C
 * library */
#include "libc/frames.h"

#include <alloca.h>
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MAX 64
#define APART __attribute__((noinline))

static void *found[MAX], *wanted[MAX];
static int found_count, wanted_count;
static volatile int sink;

/* Two frames are of this function and of backtrace's caller: both begin with the next one. */
static APART void look(void)
{
	struct pem_libc_frame frame = pem_libc_frame__own();

	found_count = 0;
	do
		found[found_count++] = (void *)frame.pc;
	while (found_count < MAX && pem_libc_frame__step(&frame));
	wanted_count = backtrace(wanted, MAX);
	sink++;
}

static APART void deep(int depth)
{
	volatile int local = depth;

	if (depth)
		deep(depth - 1);
	else
		look();
	sink += local;
}

/* Its frame has no fixed size, so that it ends by the frame pointer. */
static APART void variable(unsigned bytes)
{
	volatile char *memory = alloca(bytes);

	memory[0] = 1;
	deep(2);
	sink += memory[0];
}

static void need_tables(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("# the sanitizer's backtrace() has other frames\n");
	skip();
#endif
#if !defined(__x86_64__)
	skip();
#endif
}

static void assert_same(void)
{
	/* From main's callers on, which have other tables, ours may end. */
	assert_true(found_count > 3);
	assert_true(wanted_count > found_count);
	assert_memory_equal(found, wanted + 1, (size_t)found_count * sizeof(found[0]));
}

static void recursion(void **state)
{
	(void)state;
	need_tables();
	deep(20);
	assert_true(found_count > 20);
	assert_same();
	deep(3); /* by rules that were kept */
	assert_same();
}

static void frames_of_variable_size(void **state)
{
	(void)state;
	need_tables();
	variable(100);
	assert_same();
	variable(5000);
	assert_same();
}

static void handler(int signal)
{
	(void)signal;
	deep(1);
}

static void ends_at_a_signal(void **state)
{
	(void)state;
	need_tables();
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	assert_true(found_count >= 3);
	assert_memory_equal(found, wanted + 1, 3 * sizeof(found[0]));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(recursion),
		cmocka_unit_test(frames_of_variable_size),
		cmocka_unit_test(ends_at_a_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
