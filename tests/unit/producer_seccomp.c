/* SPDX-License-Identifier: MIT */
/*
 * producer_seccomp.c - what the interpreter of seccomp filters says of pem's calls
 *
 * Each instruction that a filter may have is used so that a wrong result refuses, or lets pass, a
 * call.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "producer/seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define NUMBER offsetof(struct seccomp_data, nr)
#define ARGUMENT(i) (offsetof(struct seccomp_data, args) + 8 * (i))
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ERRNO BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
/* Kill for a value in the accumulator, else go on. */
#define KILL_IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, 1), KILL
#define FAIL_IF(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, 1), ERRNO
#define KILL_UNLESS(value) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 1, 0), KILL

#define REFUSED(...)                                                                               \
	({                                                                                         \
		const struct sock_filter code_[] = {__VA_ARGS__};                                  \
		pem_seccomp__refused(code_, sizeof(code_) / sizeof(code_[0]));                     \
	})

static void all_and_none(void **state)
{
	(void)state;
	assert_int_equal(REFUSED(ALLOW), 0);
	assert_int_equal(REFUSED(KILL), PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE);
	/* With an errno for all no memory is to be had. A word in the log harms nobody. */
	assert_int_equal(REFUSED(ERRNO), PEM_SECCOMP_CALLS);
	assert_int_equal(REFUSED(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_LOG)), 0);
	assert_int_equal(REFUSED(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP)),
			 PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE);
	assert_int_equal(REFUSED(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE)),
			 PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE);
	assert_int_equal(REFUSED(BPF_STMT(BPF_RET | BPF_K, 0x7fc00000u)), /* a supervisor */
			 PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE);
}

static void one_call(void **state)
{
	static const long calls[] = {SYS_madvise,         SYS_rt_sigprocmask, SYS_sched_yield,
				     SYS_clock_nanosleep, SYS_gettid,         SYS_getpid,
				     SYS_tgkill,          SYS_openat,         SYS_close,
				     SYS_ftruncate,       SYS_mmap,           SYS_flock,
				     SYS_prlimit64,       SYS_getdents64,     SYS_munmap};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		assert_int_equal(REFUSED(LOAD(NUMBER), KILL_IF(calls[i]), ALLOW),
				 PEM_SECCOMP_CALLS);
	assert_int_equal(REFUSED(LOAD(NUMBER), KILL_IF(SYS_futex), ALLOW), PEM_SECCOMP_WAKE);
	assert_int_equal(REFUSED(LOAD(NUMBER), KILL_IF(SYS_reboot), ALLOW), 0);
}

/* Calls by whose failure nothing is lost, and others. */
static void errnos(void **state)
{
	static const long may_fail[] = {SYS_sched_yield, SYS_clock_nanosleep, SYS_getdents64,
					SYS_getxattr,    SYS_statfs,          SYS_getuid,
					SYS_futex,       SYS_reboot};
	static const long needed[] = {SYS_openat, SYS_ftruncate,      SYS_mmap,   SYS_madvise,
				      SYS_gettid, SYS_rt_sigprocmask, SYS_getpid, SYS_write,
				      SYS_flock,  SYS_prlimit64,      SYS_tgkill, SYS_read};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(may_fail) / sizeof(may_fail[0]); i++)
		assert_int_equal(REFUSED(LOAD(NUMBER), FAIL_IF(may_fail[i]), ALLOW), 0);
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		assert_int_equal(REFUSED(LOAD(NUMBER), FAIL_IF(needed[i]), ALLOW),
				 PEM_SECCOMP_CALLS);
}

static void arguments(void **state)
{
	(void)state;
	/* madvise, but for what pem asks of it */
	assert_int_equal(
		REFUSED(LOAD(NUMBER), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 1, 0), ALLOW,
			LOAD(ARGUMENT(2)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_DONTNEED, 0, 1),
			ALLOW, KILL),
		PEM_SECCOMP_CALLS);
	/* memory that is to be run */
	assert_int_equal(REFUSED(LOAD(NUMBER), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
				 ALLOW, LOAD(ARGUMENT(2)),
				 BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), KILL,
				 ALLOW),
			 0);
	assert_int_equal(
		REFUSED(LOAD(offsetof(struct seccomp_data, arch)), KILL_IF(AUDIT_ARCH_I386), ALLOW),
		0);
}

/* Of each the accumulator is compared with what it must be. */
static void instructions(void **state)
{
#define A_IS(value, ...) assert_int_equal(REFUSED(__VA_ARGS__, KILL_UNLESS(value), ALLOW), 0)
#define IMM(k) BPF_STMT(BPF_LD | BPF_IMM, k)
#define X_IMM(k) BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, k)
	(void)state;
	A_IS(7, IMM(7));
	A_IS(12, IMM(7), BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 5));
	A_IS(2, IMM(7), X_IMM(5), BPF_STMT(BPF_ALU | BPF_SUB | BPF_X, 0));
	A_IS(35, IMM(7), BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 5));
	A_IS(3, IMM(7), BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 2));
	A_IS(5, IMM(7), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xd));
	A_IS(15, IMM(7), BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 8));
	A_IS(2, IMM(7), BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, 5));
	A_IS(28, IMM(7), BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 2));
	A_IS(3, IMM(7), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1));
	A_IS(-7, IMM(7), BPF_STMT(BPF_ALU | BPF_NEG, 0));
	A_IS(9, X_IMM(9), IMM(1), BPF_STMT(BPF_MISC | BPF_TXA, 0));
	A_IS(9, IMM(9), BPF_STMT(BPF_MISC | BPF_TAX, 0), IMM(1), BPF_STMT(BPF_MISC | BPF_TXA, 0));
	A_IS(9, IMM(9), BPF_STMT(BPF_ST, 15), IMM(1), BPF_STMT(BPF_LD | BPF_MEM, 15));
	A_IS(9, X_IMM(9), BPF_STMT(BPF_STX, 0), X_IMM(1), BPF_STMT(BPF_LDX | BPF_MEM, 0),
	     BPF_STMT(BPF_MISC | BPF_TXA, 0));
	A_IS(64, BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0));
	/* jumps */
	assert_int_equal(REFUSED(BPF_STMT(BPF_JMP | BPF_JA, 1), KILL, ALLOW), 0);
	assert_int_equal(REFUSED(IMM(5), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 5, 0, 1), KILL, ALLOW),
			 0);
	assert_int_equal(REFUSED(IMM(5), BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 5, 1, 0), KILL, ALLOW),
			 0);
	assert_int_equal(REFUSED(IMM(5), X_IMM(4), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
				 KILL, ALLOW),
			 0);
	/* the accumulator itself */
	assert_int_equal(REFUSED(IMM(SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_A, 0)), 0);
}

static void no_program(void **state)
{
	(void)state;
	/* beyond the end, beyond the memory, beyond the call, and not known */
	assert_int_not_equal(REFUSED(BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), ALLOW), 0);
	assert_int_not_equal(REFUSED(BPF_STMT(BPF_LD | BPF_MEM, BPF_MEMWORDS), ALLOW), 0);
	assert_int_not_equal(REFUSED(BPF_STMT(BPF_ST, BPF_MEMWORDS), ALLOW), 0);
	assert_int_not_equal(REFUSED(LOAD(sizeof(struct seccomp_data)), ALLOW), 0);
	assert_int_not_equal(REFUSED(LOAD(2), ALLOW), 0);
	assert_int_not_equal(REFUSED(BPF_STMT(BPF_LD | BPF_H | BPF_IND, 0), ALLOW), 0);
	assert_int_not_equal(REFUSED(BPF_STMT(BPF_ALU | 0xf0, 0), ALLOW), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_and_none), cmocka_unit_test(one_call),
		cmocka_unit_test(errnos),       cmocka_unit_test(arguments),
		cmocka_unit_test(instructions), cmocka_unit_test(no_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
