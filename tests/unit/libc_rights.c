/* SPDX-License-Identifier: MIT */
/*
 * libc_rights.c - which calls of a program libpem-libc tells libpem of, made by their names and by
 * syscall()
 *
 * libpem/libc/rights.c, compiled with next definitions and a libpem that only write down what they
 * are told. Not here: what libpem then makes ready (unit/producer_seccomp.c,
 * e2e/rights_given_up.py, e2e/seccomp_filters.py).
 */
#include "libc/rights.c"

#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What happened since start(), in order: a word for each call. */
static char told[256];
static long last_number, last_arguments[6], call_result;
static bool is_silent;
static enum pem_filter_effect filter_effect;

static void tell(const char *word)
{
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s%s", told[0] ? " " : "",
		 word);
}

static void start(long result)
{
	told[0] = '\0';
	call_result = result;
	filter_effect = PEM_FILTER_THREAD;
	is_silent = false;
}

/* --- the next definitions: one for all, as each argument and each result is a register --- */

static long next_call(long a, long b, long c, long d, long e, long f)
{
	long arguments[] = {a, b, c, d, e, f};

	memcpy(last_arguments, arguments, sizeof(arguments));
	tell("call");
	return call_result;
}

static long next_by_number(long number, long a, long b, long c, long d, long e, long f)
{
	last_number = number;
	return next_call(a, b, c, d, e, f);
}

void *pem_libc_next[PEM_LIBC_NEXT_COUNT];

static void find_next(void)
{
	unsigned i;

	for (i = 0; i < PEM_LIBC_NEXT_COUNT; i++)
		pem_libc_next[i] = (void *)(uintptr_t)next_call;
	pem_libc_next[PEM_LIBC_NEXT_syscall] = (void *)(uintptr_t)next_by_number;
}

void *pem_libc_next__first(unsigned index)
{
	find_next();
	tell("find");
	return pem_libc_next[index];
}

int pem_libc_call__is_silent(uintptr_t site)
{
	(void)site;
	return is_silent;
}

/* --- libpem --- */

void pem_rights__before_drop(void)
{
	tell("drop");
}

void pem_rights__before_move(void)
{
	tell("move");
}

void pem_rights__after_move(void)
{
	tell("moved");
}

enum pem_filter_effect pem_rights__before_filter(const struct sock_fprog *program, bool all_threads)
{
	(void)program;
	tell(all_threads ? "filter-all" : "filter");
	return filter_effect;
}

enum pem_filter_effect pem_rights__before_strict(void)
{
	tell("strict");
	return filter_effect;
}

enum pem_filter_effect pem_rights__before_dispatch(void)
{
	tell("dispatch");
	return filter_effect;
}

void pem_rights__end_dispatch(void)
{
	tell("no-dispatch");
}

void pem_rights__after_filter(enum pem_filter_effect effect, bool taken)
{
	assert_int_equal(effect, filter_effect);
	tell(taken ? "taken" : "not-taken");
}

void pem_rights__set_clock(bool on)
{
	tell(on ? "clock" : "no-clock");
}

/* --- tests --- */

static int find_all(void **state)
{
	(void)state;
	find_next();
	return 0;
}

#define EXPECT(result, wanted, call)                                                               \
	do {                                                                                       \
		start(result);                                                                     \
		assert_int_equal((call), result);                                                  \
		assert_string_equal(told, wanted);                                                 \
	} while (0)

static void users_and_groups_by_name(void **state)
{
	(void)state;
	EXPECT(0, "drop call", setuid(1));
	EXPECT(0, "drop call", setgid(1));
	EXPECT(0, "drop call", seteuid(1));
	EXPECT(0, "drop call", setegid(1));
	EXPECT(0, "drop call", setreuid(1, 1));
	EXPECT(0, "drop call", setregid(1, 1));
	EXPECT(0, "drop call", setresuid(1, 1, 1));
	EXPECT(0, "drop call", setresgid(1, 1, 1));
	EXPECT(0, "drop call", setfsuid(1));
	EXPECT(0, "drop call", setfsgid(1));
	EXPECT(0, "drop call", setgroups(0, NULL));
	EXPECT(0, "drop call", initgroups("nobody", 1));
	EXPECT(-1, "drop call", capset(NULL, NULL));
}

static void users_and_groups_by_number(void **state)
{
	static const long numbers[] = {SYS_setuid,    SYS_setgid,    SYS_setreuid,  SYS_setregid,
				       SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_capset,
				       SYS_setfsuid,  SYS_setfsgid};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		EXPECT(0, "drop call", syscall(numbers[i], 1, 1, 1));
		assert_int_equal(last_number, numbers[i]);
	}
}

static void root_folder_and_mounts(void **state)
{
	(void)state;
	EXPECT(0, "move call moved", chroot("/"));
	EXPECT(0, "move call moved", setns(3, 0));
	EXPECT(0, "move call moved", unshare(CLONE_NEWNS));
	EXPECT(0, "move call moved", syscall(SYS_chroot, "/"));
	EXPECT(0, "move call moved", syscall(SYS_pivot_root, "/", "/"));
	EXPECT(0, "move call moved", syscall(SYS_setns, 3, 0));
	EXPECT(0, "move call moved", syscall(SYS_unshare, CLONE_NEWNS | CLONE_NEWUSER));
}

static void one_that_fails_moves_nothing(void **state)
{
	(void)state;
	EXPECT(-1, "move call", chroot("/"));
	EXPECT(-1, "move call", syscall(SYS_chroot, "/"));
	EXPECT(-1, "move call", syscall(SYS_unshare, CLONE_NEWNS));
}

static void other_namespaces(void **state)
{
	(void)state;
	EXPECT(0, "drop call", unshare(CLONE_NEWUSER));
	EXPECT(0, "call", unshare(CLONE_NEWNET));
	EXPECT(0, "drop call", syscall(SYS_unshare, CLONE_NEWUSER));
	EXPECT(0, "call", syscall(SYS_unshare, CLONE_NEWNET));
}

static void filters(void **state)
{
	(void)state;
	EXPECT(0, "filter call taken", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
	EXPECT(-1, "filter call not-taken", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
	EXPECT(0, "strict call taken", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	EXPECT(0, "filter call taken",
	       syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
	EXPECT(0, "strict call taken", syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	EXPECT(0, "filter call taken", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
	EXPECT(-1, "strict call not-taken", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL));
	EXPECT(0, "call", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, NULL));
}

static void filters_of_all_threads(void **state)
{
	(void)state;
	EXPECT(0, "filter-all call taken",
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL));
	/* The id of a thread that could not have it. */
	EXPECT(7, "filter-all call not-taken",
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL));
	/* A descriptor. */
	EXPECT(7, "filter call taken",
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		       NULL));
}

static void syscall_user_dispatch(void **state)
{
	(void)state;
	EXPECT(0, "dispatch call taken",
	       prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, NULL));
	EXPECT(-1, "dispatch call not-taken",
	       prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, NULL));
	EXPECT(0, "dispatch call taken",
	       syscall(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, NULL));
	EXPECT(0, "call no-dispatch",
	       prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0));
	EXPECT(0, "call no-dispatch",
	       syscall(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0));
	EXPECT(-1, "call", prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 1, 0, 0));
}

static void the_clock(void **state)
{
	(void)state;
	EXPECT(0, "no-clock call", prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
	EXPECT(-1, "no-clock call clock", prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
	EXPECT(0, "call clock", prctl(PR_SET_TSC, PR_TSC_ENABLE));
	EXPECT(0, "no-clock call", syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV));
	EXPECT(0, "call clock", syscall(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE));
}

static bool changes_something(long number)
{
	static const long numbers[] = {SYS_prctl,     SYS_seccomp,  SYS_chroot,    SYS_pivot_root,
				       SYS_setns,     SYS_unshare,  SYS_setuid,    SYS_setgid,
				       SYS_setreuid,  SYS_setregid, SYS_setresuid, SYS_setresgid,
				       SYS_setgroups, SYS_capset,   SYS_setfsuid,  SYS_setfsgid};
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

static void all_others_are_passed_on_whole(void **state)
{
	static const long wanted[] = {11, -12, 13, -14, 15, -16};
	long number;

	(void)state;
	for (number = -2; number < 1100; number++) {
		if (changes_something(number))
			continue;
		EXPECT(-7, "call", syscall(number, 11L, -12L, 13L, -14L, 15L, -16L));
		assert_int_equal(last_number, number);
		assert_memory_equal(last_arguments, wanted, sizeof(wanted));
	}
	EXPECT(0, "call", syscall(SYS_prctl, PR_SET_NAME, "name"));
	EXPECT(0, "call", prctl(PR_SET_NAME, "name"));
}

static void watched_ones_are_passed_on_whole(void **state)
{
	static const long wanted[] = {11, -12, 13, -14, 15, -16};

	(void)state;
	EXPECT(-7, "drop call", syscall(SYS_setuid, 11L, -12L, 13L, -14L, 15L, -16L));
	assert_memory_equal(last_arguments, wanted, sizeof(wanted));
	EXPECT(-7, "move call", syscall(SYS_setns, 11L, -12L, 13L, -14L, 15L, -16L));
	assert_memory_equal(last_arguments, wanted, sizeof(wanted));
	EXPECT(-7, "call", syscall(SYS_seccomp, 11L, -12L, 13L, -14L, 15L, -16L));
	assert_memory_equal(last_arguments, wanted, sizeof(wanted));
}

static void where_libpem_finds_nothing(void **state)
{
	(void)state;
#define EXPECT_SILENT(call)                                                                        \
	do {                                                                                       \
		start(0);                                                                          \
		is_silent = true;                                                                  \
		assert_int_equal((call), 0);                                                       \
		assert_string_equal(told, "call");                                                 \
	} while (0)
	EXPECT_SILENT(setuid(1));
	EXPECT_SILENT(syscall(SYS_setuid, 1));
	EXPECT_SILENT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL));
	EXPECT_SILENT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
	EXPECT_SILENT(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
	EXPECT_SILENT(prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, NULL));
	EXPECT_SILENT(prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0));
}

static void the_first_call_of_all(void **state)
{
	(void)state;
	memset(pem_libc_next, 0, sizeof(pem_libc_next));
	EXPECT(5, "find call", syscall(SYS_getppid));
	EXPECT(5, "call", syscall(SYS_getppid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users_and_groups_by_name),
		cmocka_unit_test(users_and_groups_by_number),
		cmocka_unit_test(root_folder_and_mounts),
		cmocka_unit_test(one_that_fails_moves_nothing),
		cmocka_unit_test(other_namespaces),
		cmocka_unit_test(filters),
		cmocka_unit_test(filters_of_all_threads),
		cmocka_unit_test(syscall_user_dispatch),
		cmocka_unit_test(the_clock),
		cmocka_unit_test(all_others_are_passed_on_whole),
		cmocka_unit_test(watched_ones_are_passed_on_whole),
		cmocka_unit_test(where_libpem_finds_nothing),
		cmocka_unit_test(the_first_call_of_all),
	};

	return cmocka_run_group_tests(tests, find_all, NULL);
}
