/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rights.c - a process about to give up rights: what its later events need is made before
 *
 * Two kinds of rights end two kinds of things. Without its user, root folder or namespace a process
 * makes no more files; its pools, which are mapped, go on. With a seccomp filter it may make no
 * system call: then pem makes none, and lives on memory that exists already.
 *
 * Not here: what a filter refuses (seccomp.c), pools (pools.c).
 */
#include "producer/rights.h"

#include "producer/producer.h"
#include "producer/seccomp.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

__thread uint32_t pem_thread_refused __attribute__((tls_model("initial-exec")));
uint32_t pem_process_refused;

static bool given_up; /* rights, by a call that was seen */
static bool moved; /* paths lead elsewhere than they did */

/*
 * Of a filter that the process set by instructions of its own nobody tells it but who looks from
 * outside.
 */
uint32_t pem_process__refused_as_seen(void)
{
	const uint32_t all = PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE;
	const struct pem_joined *joined;
	const struct pem_pool_header *header;
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		joined = &pem_process.joined[session_index];
		/* ja */
		if (__atomic_load_n(&joined->state, __ATOMIC_ACQUIRE) != PEM_JOINED_POOL)
			continue;
		header = __atomic_load_n(&joined->ring.header, __ATOMIC_RELAXED);
		if (!header || !__atomic_load_n(&header->restricted, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&pem_process_refused, all, __ATOMIC_RELAXED);
		return all;
	}
	return 0;
}

/*
 * What the variable said when the program began, and those that came since. Not asked for later: a
 * program that has a getenv of its own, with a lock, may hold that lock when it raises an event.
 */
static uint32_t known_filters = ~0u;

uint32_t pem_process__known_filters(void)
{
	return __atomic_load_n(&known_filters, __ATOMIC_RELAXED);
}

bool pem_process__has_moved(void)
{
	return moved;
}

/*
 * The C library keeps a thread's id in the thread's own structure, where no function tells it: at
 * what distance from the thread pointer is found out while the kernel may be asked. 0: not yet, or
 * nowhere.
 */
static intptr_t id_offset;

#if defined(__x86_64__)
/* of what of the structure is certainly there, from the thread pointer on */
#define STRUCTURE_START 0
#define STRUCTURE_END 2048
#elif defined(__aarch64__)
#define STRUCTURE_START (-1536)
#define STRUCTURE_END 0
#endif

static uint32_t word_at(intptr_t offset)
{
	uint32_t word;

	memcpy(&word, (const uint8_t *)__builtin_thread_pointer() + offset, sizeof(word));
	return word;
}

static void find_id(void)
{
	uint32_t id = (uint32_t)syscall(SYS_gettid);
	intptr_t offset;

	if (id_offset && word_at(id_offset) == id)
		return;
	for (offset = STRUCTURE_START; offset < STRUCTURE_END; offset += 4) {
		if (word_at(offset) == id)
			break;
	}
	id_offset = offset < STRUCTURE_END ? offset : 0;
}

/* Where it is not known, something that tells threads apart and is no thread's id. */
static uint32_t known_thread_id(void)
{
	return id_offset
		       ? word_at(id_offset)
		       : ((uint32_t)((uintptr_t)&pem_thread_refused >> 4) & ~(3u << 30)) | 1u << 31;
}

uint32_t pem_rights__thread_id(void)
{
	return pem_restricted() ? known_thread_id() : (uint32_t)syscall(SYS_gettid);
}

uint32_t pem_rights__parent_id(void)
{
	return pem_restricted() ? pem_process.parent_pid : (uint32_t)getppid();
}

/* --- the clock --- */

static bool clock_denied; /* to any thread of this process, or of one that forked it */

bool pem_rights__has_clock(void)
{
	int mode = PR_TSC_SIGSEGV, saved_errno = errno;

	if (!__atomic_load_n(&clock_denied, __ATOMIC_RELAXED))
		return true;
	/*
	 * A filter may refuse to tell: it is not asked of filters beforehand, since few programs
	 * come here.
	 */
	if (!pem_restricted() && !prctl(PR_GET_SECCOMP, 0, 0, 0, 0))
		prctl(PR_GET_TSC, &mode);
	errno = saved_errno;
	return mode != PR_TSC_SIGSEGV;
}

void pem_rights__set_clock(bool on)
{
	int saved_errno = errno;

	if (!on)
		__atomic_store_n(&clock_denied, true, __ATOMIC_RELAXED);
	pem_thread__set_clock(on);
	errno = saved_errno;
}

/* --- files --- */

static bool has_joined(void)
{
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		if (__atomic_load_n(&pem_process.joined[session_index].state, __ATOMIC_RELAXED) !=
		    PEM_JOINED_NOT)
			return true;
	}
	return false;
}

/* Of every session that the process has joined. spares, ready: see pem_process__reserve. */
static void make_pools(bool spares, bool ready)
{
	unsigned session_index;

	if (!has_joined() || pem_restricted() || !pem_rights__has_clock() || !pem_process__lock())
		return;
	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		if (!pem_process__make_pool(session_index))
			pem_process__reserve(session_index, spares, ready);
	}
	pem_process__unlock();
}

void pem_rights__before_drop(void)
{
	int saved_errno = errno;

	make_pools(false, false);
	__atomic_store_n(&given_up, true, __ATOMIC_RELAXED);
	errno = saved_errno;
}

void pem_rights__before_move(void)
{
	int saved_errno = errno;

	make_pools(true, false);
	__atomic_store_n(&given_up, true, __ATOMIC_RELAXED);
	errno = saved_errno;
}

void pem_rights__after_move(void)
{
	__atomic_store_n(&moved, true, __ATOMIC_RELAXED);
}

bool pem_rights__given_up(void)
{
	return __atomic_load_n(&given_up, __ATOMIC_RELAXED);
}

/* --- seccomp filters --- */

#define STATUS_BYTES 512u /* at a time: handlers have small stacks */

/*
 * The number in a line of /proc/thread-self/status, "\nNAME:"; -1: there is none. Calls have the
 * form that the loader's have.
 */
static long read_status(const char *name)
{
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	char text[STATUS_BYTES + 1];
	size_t kept = 0, tail = strlen(name) + 12; /* the line, with its number */
	const char *line = NULL;
	ssize_t n;

	if (fd < 0)
		return -1;
	while (!line && (n = read(fd, text + kept, STATUS_BYTES - kept)) > 0) {
		kept += (size_t)n;
		text[kept] = 0;
		line = strstr(text, name);
		/* One that is cut off is found with what follows. */
		if (line && !strchr(line + 1, '\n') && kept > tail)
			line = NULL;
		if (line || kept <= tail)
			continue;
		memmove(text, text + kept - tail, tail);
		kept = tail;
	}
	close(fd);
	return line ? (long)strtoul(line + strlen(name), NULL, 10) : -1;
}

/*
 * May the memory be read? The kernel looks at a signal mask before it finds that what to do with it
 * is none of its operations. A call that filters allow which list what they refuse, as they do not
 * process_vm_readv.
 */
static bool is_readable(const void *start, size_t bytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (uintptr_t)start + bytes;
	uintptr_t at;

	if (!start) /* for the kernel no mask at all */
		return false;
	for (at = (uintptr_t)start; at < end; at = (at | (page - 1)) + 1) {
		if (syscall(SYS_rt_sigprocmask, PEM_SECCOMP_NO_OPERATION, at, NULL, 8) &&
		    errno == EFAULT)
			return false;
	}
	return true;
}

/*
 * The program's filter, which may be none: a program that hands in NULL to find out whether the
 * kernel knows the call lives by EFAULT.
 */
static bool read_program(const struct sock_fprog *program, struct sock_fprog *filter)
{
	if (!is_readable(program, sizeof(*program)))
		return false;
	memcpy(filter, program, sizeof(*filter));
	return filter->len && filter->len <= BPF_MAXINSNS &&
	       is_readable(filter->filter, filter->len * sizeof(*filter->filter));
}

/*
 * Is this process the one whose state lies here? A child of vfork is in its parent's memory, where
 * nothing may be changed for it. A child of clone, of which nobody was told, is once it has taken
 * the lock.
 */
static bool is_own_process(void)
{
	if (pem_process__lock())
		pem_process__unlock();
	return (uint32_t)getpid() == pem_process.pid;
}

/* What all that follows needs, while calls may still be made. */
static void make_ready(void)
{
	find_id();
	make_pools(true, true);
	pem_thread__reserve();
}

static void count_filtered(void)
{
	struct pem_session_page *counts;
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		/* jb */
		counts = __atomic_load_n(&pem_process.joined[session_index].counts,
					 __ATOMIC_ACQUIRE);
		/* ja */
		if (counts && __atomic_load_n(&pem_process.joined[session_index].state,
					      __ATOMIC_ACQUIRE) != PEM_JOINED_NOT)
			__atomic_fetch_add(&counts->filtered, 1, __ATOMIC_RELAXED);
	}
}

enum pem_filter_effect pem_rights__before_filter(const struct sock_fprog *program, bool all_threads)
{
	enum pem_filter_effect effect = PEM_FILTER_NONE;
	int saved_errno = errno;
	struct sock_fprog filter;
	uint32_t refused;

	if (pem_restricted())
		return effect;
	if (!read_program(program, &filter) || !is_own_process())
		goto out;
	effect = PEM_FILTER_HARMLESS;
	refused = pem_seccomp__refused(filter.filter, filter.len);
	if (!refused)
		goto out;
	make_ready();
	effect = all_threads || read_status("\nThreads:") == 1 ? PEM_FILTER_PROCESS
							       : PEM_FILTER_THREAD;
	/* none: the filter is installed by a system call after it */
	if (effect == PEM_FILTER_PROCESS)
		__atomic_store_n(&pem_process_refused, refused, __ATOMIC_SEQ_CST);
	else
		pem_thread_refused = refused;
out:
	errno = saved_errno;
	return effect;
}

enum pem_filter_effect pem_rights__before_strict(void)
{
	enum pem_filter_effect effect = PEM_FILTER_NONE;
	int saved_errno = errno;

	/* Who has a filter can't change to strict mode. */
	if (!pem_restricted() && is_own_process()) {
		make_ready();
		pem_thread__silence(true);
		pem_thread_refused = PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE;
		effect = PEM_FILTER_STRICT;
	}
	errno = saved_errno;
	return effect;
}

/* Let consumers know how many filters are no news. */
static void note_filters(void)
{
	struct pem_ring ring;
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		if (pem_joined__ring(&pem_process.joined[session_index],
				     __atomic_load_n(&pem_process.joined[session_index].incarnation,
						     __ATOMIC_RELAXED),
				     &ring))
			__atomic_store_n(&ring.header->filters, pem_process__known_filters(),
					 __ATOMIC_RELAXED);
	}
}

static bool can_touch(void *start, size_t bytes)
{
	uintptr_t page = (uintptr_t)start & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	return !madvise((void *)page, bytes + ((uintptr_t)start - page), MADV_POPULATE_WRITE);
}

/* Kernels before 5.14 can't say: there pem's own memory seems to be read-only, too. */
static bool is_writable(void *start, size_t bytes)
{
	return can_touch(start, bytes) || !can_touch(&clock_denied, sizeof(clock_denied));
}

/*
 * One filter more that does no harm: programs that this one starts are told how many they have of
 * those, in the variable by which this process was told. It is written over, digit by digit, since
 * memory may not be allocated here. Where a program has made its variables read-only, those that it
 * starts are not told.
 */
static void count_harmless(void)
{
	char *digits = secure_getenv(PEM_FILTERS_VARIABLE);
	uint32_t known = pem_process__known_filters(), rest;
	unsigned i;

	if (known == ~0u)
		return;
	rest = ++known;
	if (digits && strlen(digits) == PEM_FILTERS_DIGITS &&
	    is_writable(digits, PEM_FILTERS_DIGITS)) {
		for (i = PEM_FILTERS_DIGITS; i--; rest /= 10)
			digits[i] = (char)('0' + rest % 10);
	}
	__atomic_store_n(&known_filters, known, __ATOMIC_RELAXED);
	note_filters();
}

void pem_rights__after_filter(enum pem_filter_effect effect, bool taken)
{
	if (taken && effect == PEM_FILTER_HARMLESS)
		count_harmless();
	if (effect == PEM_FILTER_NONE || effect == PEM_FILTER_HARMLESS)
		return;
	if (taken) {
		count_filtered();
		return;
	}
	/* none: nobody orders anything by it */
	if (effect == PEM_FILTER_PROCESS)
		__atomic_store_n(&pem_process_refused, 0, __ATOMIC_SEQ_CST);
	else
		pem_thread_refused = 0;
	if (effect == PEM_FILTER_STRICT)
		pem_thread__silence(false);
}

bool pem_rights__restricted(void)
{
	return pem_restricted();
}

void pem_rights__inherit(bool restricted)
{
	if (restricted)
		pem_thread_refused = PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE;
}

/*
 * Of a program that is started with a filter nobody knows. The one who has it recorded says how
 * many filters it has itself, which let pem's calls pass, for it makes the same; with more than
 * these, and those of which the processes between have counted as harmless, this program makes none
 * of them. Filters are never taken away. Before Linux 5.9 they can't be counted.
 */
void pem_process__find_filter(void)
{
	const char *said = secure_getenv(PEM_FILTERS_VARIABLE);
	uint32_t known = said ? (uint32_t)strtoul(said, NULL, 10) : ~0u;

	__atomic_store_n(&known_filters, known, __ATOMIC_RELAXED);
	if (known != ~0u && read_status("\nSeccomp_filters:") > (long)known)
		pem_process_refused = PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE;
}

/*
 * A filter that nobody told of may be why a call failed. Where the kernel's word on that is
 * refused, too, any filter will do: pem began with those that it knows, and they let it read.
 */
bool pem_rights__notice_filter(void)
{
	uint32_t known = pem_process__known_filters();
	long count;

	if (known == ~0u || pem_restricted() || !prctl(PR_GET_SECCOMP, 0, 0, 0, 0))
		return false;
	count = read_status("\nSeccomp_filters:");
	if (count >= 0 && count <= (long)known)
		return false;
	/* none: the filter is installed by a system call after it */
	__atomic_store_n(&pem_process_refused, PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE,
			 __ATOMIC_SEQ_CST);
	count_filtered();
	return true;
}

bool pem_rights__may_be_filtered(void)
{
	uint32_t known = pem_process__known_filters();

	return pem_restricted() ||
	       (known != ~0u && read_status("\nSeccomp_filters:") > (long)known);
}
