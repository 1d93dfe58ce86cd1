/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seccomp.c - an interpreter of seccomp filters, and the system calls that pem makes in a program
 *
 * The kernel does not tell which calls a filter refuses; a process finds out by making the call.
 * But the filter's program can be read when it is set. It is a pure function of the call's number
 * and arguments (kernel/seccomp.c, Documentation/userspace-api/seccomp_filter.rst).
 *
 * Acting on the answer is in rights.c.
 */
#include "producer/seccomp.h"

#include "util.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/* --- the interpreter: the classic BPF that the kernel allows in a filter --- */

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
	const struct seccomp_data *data;
};

static uint32_t operand(const struct machine *m, const struct sock_filter *i)
{
	return BPF_SRC(i->code) == BPF_X ? m->x : i->k;
}

/* Returns false where there is no such instruction. */
static bool compute(struct machine *m, const struct sock_filter *i)
{
	uint32_t by = operand(m, i);

	switch (BPF_OP(i->code)) {
	case BPF_ADD:
		m->a += by;
		return true;
	case BPF_SUB:
		m->a -= by;
		return true;
	case BPF_MUL:
		m->a *= by;
		return true;
	case BPF_DIV:
		m->a = by ? m->a / by : 0;
		return true;
	case BPF_AND:
		m->a &= by;
		return true;
	case BPF_OR:
		m->a |= by;
		return true;
	case BPF_XOR:
		m->a ^= by;
		return true;
	case BPF_LSH:
		m->a = by < 32 ? m->a << by : 0;
		return true;
	case BPF_RSH:
		m->a = by < 32 ? m->a >> by : 0;
		return true;
	case BPF_NEG:
		m->a = -m->a;
		return true;
	default:
		return false;
	}
}

static bool load(const struct machine *m, const struct sock_filter *i, uint32_t *to)
{
	switch (BPF_MODE(i->code)) {
	case BPF_ABS:
		if (i->k % 4 || i->k > sizeof(*m->data) - 4)
			return false;
		memcpy(to, (const uint8_t *)m->data + i->k, 4);
		return true;
	case BPF_IMM:
		*to = i->k;
		return true;
	case BPF_LEN:
		*to = sizeof(*m->data);
		return true;
	case BPF_MEM:
		if (i->k >= BPF_MEMWORDS)
			return false;
		*to = m->memory[i->k];
		return true;
	default:
		return false;
	}
}

/* The number of instructions to skip; -1: there is no such jump. */
static int64_t jump(const struct machine *m, const struct sock_filter *i)
{
	uint32_t with = operand(m, i);

	switch (BPF_OP(i->code)) {
	case BPF_JA:
		return i->k;
	case BPF_JEQ:
		return m->a == with ? i->jt : i->jf;
	case BPF_JGT:
		return m->a > with ? i->jt : i->jf;
	case BPF_JGE:
		return m->a >= with ? i->jt : i->jf;
	case BPF_JSET:
		return m->a & with ? i->jt : i->jf;
	default:
		return -1;
	}
}

/* Run any instruction that is not a return or a jump. */
static bool step(struct machine *m, const struct sock_filter *i)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
		return load(m, i, &m->a);
	case BPF_LDX:
		return load(m, i, &m->x);
	case BPF_ST:
	case BPF_STX:
		if (i->k >= BPF_MEMWORDS)
			return false;
		m->memory[i->k] = BPF_CLASS(i->code) == BPF_ST ? m->a : m->x;
		return true;
	case BPF_ALU:
		return compute(m, i);
	case BPF_MISC:
		if (BPF_MISCOP(i->code) == BPF_TAX)
			m->x = m->a;
		else
			m->a = m->x;
		return true;
	default:
		return false;
	}
}

/* The filter's answer to a call. Jumps only lead forward, so the program ends. */
static uint32_t run(const struct sock_filter *code, uint32_t count, const struct seccomp_data *data)
{
	struct machine m = {.data = data};
	uint64_t at;
	int64_t skip;

	for (at = 0; at < count; at++) {
		if (BPF_CLASS(code[at].code) == BPF_RET)
			return BPF_RVAL(code[at].code) == BPF_A ? m.a : code[at].k;
		if (BPF_CLASS(code[at].code) == BPF_JMP) {
			skip = jump(&m, &code[at]);
			if (skip < 0)
				break;
			at += (uint64_t)skip;
		} else if (!step(&m, &code[at])) {
			break;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* --- the calls --- */

#define SOME_FD 3
#define SOME_ADDRESS 0x7ffff7000000ull
#define SOME_BYTES 65536
#define SOME_ID 1000

struct call {
	long number;
	uint64_t arguments[6];
};

#define OPENAT(flags)                                                                              \
	{                                                                                          \
		SYS_openat,                                                                        \
		{                                                                                  \
			(uint64_t) AT_FDCWD, SOME_ADDRESS, (flags) | O_CLOEXEC, 0600               \
		}                                                                                  \
	}
#define MMAP(address, flags, fd)                                                                   \
	{                                                                                          \
		SYS_mmap,                                                                          \
		{                                                                                  \
			(address), SOME_BYTES, PROT_READ | PROT_WRITE, (flags), (uint64_t)(fd)     \
		}                                                                                  \
	}

/*
 * The calls of producer/ and libc/ in a running process, in the C library's form. Any new call must
 * be added here.
 */
static const struct call calls[] = {
	{SYS_madvise, {SOME_ADDRESS, SOME_BYTES, MADV_POPULATE_WRITE}},
	{SYS_rt_sigprocmask, {SIG_BLOCK, SOME_ADDRESS, SOME_ADDRESS, 8}},
	{SYS_rt_sigprocmask, {SIG_SETMASK, SOME_ADDRESS, 0, 8}},
	{SYS_gettid, {0}},
	{SYS_getpid, {0}},
	{SYS_getppid, {0}},
	{SYS_geteuid, {0}},
	{SYS_tgkill, {SOME_ID, SOME_ID, 0}},
	OPENAT(O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW),
	OPENAT(O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW),
	OPENAT(O_RDWR | O_NOFOLLOW | O_NONBLOCK),
	OPENAT(O_RDONLY | O_NOFOLLOW | O_NONBLOCK),
	OPENAT(O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
	OPENAT(O_RDONLY),
	OPENAT(O_RDONLY | O_NONBLOCK),
	{SYS_close, {SOME_FD}},
	{SYS_fstat, {SOME_FD, SOME_ADDRESS}},
	{SYS_newfstatat, {(uint64_t)AT_FDCWD, SOME_ADDRESS, SOME_ADDRESS}},
	{SYS_newfstatat, {(uint64_t)AT_FDCWD, SOME_ADDRESS, SOME_ADDRESS, AT_SYMLINK_NOFOLLOW}},
	{SYS_ftruncate, {SOME_FD, SOME_BYTES}},
	{SYS_flock, {SOME_FD, LOCK_SH | LOCK_NB}},
	{SYS_read, {SOME_FD, SOME_ADDRESS, 256}},
	{SYS_write, {SOME_FD, SOME_ADDRESS, SOME_BYTES}},
	{SYS_prlimit64, {0, RLIMIT_FSIZE, 0, SOME_ADDRESS}},
	MMAP(0, MAP_SHARED, SOME_FD),
	{SYS_mmap, {0, SOME_BYTES, PROT_READ, MAP_SHARED, SOME_FD}},
	MMAP(SOME_ADDRESS, MAP_SHARED | MAP_FIXED | MAP_POPULATE, SOME_FD),
	MMAP(0, MAP_PRIVATE | MAP_ANONYMOUS, -1),
	MMAP(SOME_ADDRESS, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1),
	{SYS_munmap, {SOME_ADDRESS, SOME_BYTES}},
#ifdef SYS_rename
	{SYS_rename, {SOME_ADDRESS, SOME_ADDRESS}},
#else
	{SYS_renameat, {(uint64_t)AT_FDCWD, SOME_ADDRESS, (uint64_t)AT_FDCWD, SOME_ADDRESS}},
#endif
};
/* Calls that may fail without a loss. */
static const struct call optional_calls[] = {
	{SYS_madvise, {SOME_ADDRESS, SOME_BYTES, MADV_WIPEONFORK}},
	{SYS_rt_sigprocmask, {(uint64_t)PEM_SECCOMP_NO_OPERATION, SOME_ADDRESS, 0, 8}},
	{SYS_sched_yield, {0}},
	{SYS_mremap,
	 {SOME_ADDRESS, SOME_BYTES, SOME_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, SOME_ADDRESS}},
	{SYS_kcmp, {SOME_ID, SOME_ID, KCMP_VM}},
	{SYS_clock_nanosleep, {0, 0, SOME_ADDRESS}},
	{SYS_getdents64, {SOME_FD, SOME_ADDRESS, 4096}},
	{SYS_lseek, {SOME_FD, 0, SEEK_SET}},
	{SYS_fallocate, {SOME_FD, 0, 0, SOME_BYTES}},
	{SYS_pwrite64, {SOME_FD, SOME_ADDRESS, SOME_BYTES, 0}},
	{SYS_fchmod, {SOME_FD, 0500}},
	{SYS_linkat,
	 {(uint64_t)AT_FDCWD, SOME_ADDRESS, (uint64_t)AT_FDCWD, SOME_ADDRESS, AT_SYMLINK_FOLLOW}},
	{SYS_readlinkat, {(uint64_t)AT_FDCWD, SOME_ADDRESS, SOME_ADDRESS, 256}},
	{SYS_prctl, {PR_GET_NAME, SOME_ADDRESS}},
	{SYS_prctl, {PR_GET_SECCOMP}},
	{SYS_prctl, {PR_GET_NO_NEW_PRIVS}},
	{SYS_getuid, {0}},
	{SYS_getgid, {0}},
	{SYS_getegid, {0}},
	{SYS_statfs, {SOME_ADDRESS, SOME_ADDRESS}},
	{SYS_getxattr, {SOME_ADDRESS, SOME_ADDRESS, SOME_ADDRESS, 24}},
#ifdef SYS_unlink
	{SYS_unlink, {SOME_ADDRESS}},
	{SYS_mkdir, {SOME_ADDRESS, 0700}},
	{SYS_access, {SOME_ADDRESS, F_OK}},
#else
	{SYS_unlinkat, {(uint64_t)AT_FDCWD, SOME_ADDRESS, 0}},
	{SYS_mkdirat, {(uint64_t)AT_FDCWD, SOME_ADDRESS, 0700}},
	{SYS_faccessat, {(uint64_t)AT_FDCWD, SOME_ADDRESS, F_OK}},
#endif
};
static const struct call wake = {SYS_futex, {SOME_ADDRESS, FUTEX_WAKE, 1}};

/*
 * Does the filter refuse a call? Signals, tracers and supervisors count as refusal: they are the
 * program's own business.
 */
static bool is_refused(const struct sock_filter *code, uint32_t count, const struct call *call,
		       bool may_fail)
{
	struct seccomp_data data = {.nr = (int)call->number,
				    .arch = THIS_ARCH,
				    .instruction_pointer = (uintptr_t)&syscall};
	uint32_t action;
	size_t i;

	for (i = 0; i < PEM_ARRAY_SIZE(call->arguments); i++)
		data.args[i] = call->arguments[i];
	action = run(code, count, &data) & SECCOMP_RET_ACTION_FULL;
	return action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG &&
	       !(action == SECCOMP_RET_ERRNO && may_fail);
}

static bool any_is_refused(const struct sock_filter *code, uint32_t count, const struct call *of,
			   size_t of_count, bool may_fail)
{
	size_t i;

	for (i = 0; i < of_count; i++) {
		if (is_refused(code, count, &of[i], may_fail))
			return true;
	}
	return false;
}

uint32_t pem_seccomp__refused(const struct sock_filter *code, uint32_t count)
{
	uint32_t refused = is_refused(code, count, &wake, true) ? PEM_SECCOMP_WAKE : 0;

	if (any_is_refused(code, count, calls, PEM_ARRAY_SIZE(calls), false) ||
	    any_is_refused(code, count, optional_calls, PEM_ARRAY_SIZE(optional_calls), true))
		refused |= PEM_SECCOMP_CALLS;
	return refused;
}
