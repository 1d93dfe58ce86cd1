/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rights.c - when a process is about to give up rights, make all that its later events need
 *
 * Two kinds of rights matter. A process without its user, root folder or namespace can make no more
 * files; its mapped pools still work. A process with a seccomp filter may be allowed no system
 * call, and so may a thread with syscall user dispatch. There pem makes none, and uses only memory
 * that is allocated already. Elsewhere: which calls a filter refuses (seccomp.c), pools (pools.c).
 */
#include "producer/rights.h"

#include "producer/producer.h"
#include "producer/seccomp.h"
#include "producer/standby.h"
#include "runtime_dir.h"
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

static bool given_up; /* the process gave up rights by a call that was seen */
static bool moved; /* paths may lead to other files than before */

/*
 * Does a consumer say that this process is restricted? A process may set a filter by instructions
 * of its own. pem in the process does not see this; a consumer sees it from outside.
 */
uint32_t pem_process__refused_as_seen(void)
{
	const uint32_t all = PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE;
	const struct pem_joined *joined;
	const struct pem_pool_header *header;
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		if (!pem_process__had_session(session_index))
			continue;
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
 * The number of filters that the variable gave when the program began, and harmless ones since. ~0:
 * not known. The variable is not read for it later: a program may have its own getenv with a lock,
 * and may hold this lock when it raises an event.
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
 * The distance from the thread pointer to the thread's id in the C library's thread structure. No
 * function of the C library tells it, so it is found while the kernel may be asked for the id. 0:
 * not found yet, or not there.
 */
static intptr_t id_offset;

#if defined(__x86_64__)
/* The part of the structure that surely exists, counted from the thread pointer. */
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

/*
 * A filter of which nobody told pem may refuse getpid. The C library's structure has the thread's
 * id, and then, 8 bytes further, two addresses for the kernel, which finds the thread's robust
 * locks by them: both are that of the second one (struct pthread of the GNU C library).
 */
uint32_t pem_process__first_id(void)
{
	const uint8_t *tp = __builtin_thread_pointer();
	uintptr_t links[2];
	intptr_t offset;

	for (offset = STRUCTURE_START; offset < STRUCTURE_END - 24; offset += 8) {
		memcpy(links, tp + offset + 8, sizeof(links));
		if (links[0] == (uintptr_t)tp + (uintptr_t)offset + 16 && links[1] == links[0])
			return word_at(offset);
	}
	return 0;
}

/*
 * The id of this thread, without a system call. Where the id is not known, it is a number that
 * differs between threads and is no thread's id.
 */
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

static bool clock_denied; /* to any thread of this process, or of a process that forked it */

bool pem_rights__has_clock(void)
{
	int mode = PR_TSC_SIGSEGV, saved_errno = errno;

	if (!__atomic_load_n(&clock_denied, __ATOMIC_RELAXED))
		return true;
	/*
	 * A filter may refuse this call. Filters are not checked for it beforehand, since few
	 * programs come here. So it is only made where there is no filter.
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

/*
 * Make the pools of all sessions that the process has joined. spares, ready: see
 * pem_process__reserve.
 */
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

	pem_standby__leave();
	make_pools(false, false);
	__atomic_store_n(&given_up, true, __ATOMIC_RELAXED);
	errno = saved_errno;
}

void pem_rights__before_move(void)
{
	int saved_errno = errno;

	pem_standby__leave();
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

#define STATUS_BYTES 512u /* read at a time, since signal handlers may have small stacks */

/*
 * The number in a line of this thread's status; name is "\nNAME:". Returns -1 where there is no
 * such line. The calls have the same form as the loader's. The only thread of a process is its
 * first one, whose path is shorter: the kernel makes two files of /proc less for it.
 */
static long read_status(const char *name)
{
	const char *path =
		pem_process__had_one_thread() ? "/proc/self/status" : "/proc/thread-self/status";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[STATUS_BYTES + 1];
	size_t kept = 0, tail = strlen(name) + 12; /* the length of the line with its number */
	const char *line = NULL;
	ssize_t n;

	if (fd < 0)
		return -1;
	while (!line && (n = read(fd, text + kept, STATUS_BYTES - kept)) > 0) {
		kept += (size_t)n;
		text[kept] = 0;
		line = strstr(text, name);
		/* A line that is cut off is found again in the next read. */
		if (line && !strchr(line + 1, '\n') && kept > tail)
			line = NULL;
		if (line || kept <= tail)
			continue;
		memmove(text, text + kept - tail, tail);
		kept = tail;
	}
	close(fd);
	if (!line)
		return -1;
	line += strlen(name);
	return (long)pem_take_number(&line);
}

/*
 * May this memory be read? The kernel reads a signal mask before it refuses the invalid operation.
 * Filters that list the refused calls allow this call; they refuse process_vm_readv.
 */
static bool is_readable(const void *start, size_t bytes)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (uintptr_t)start + bytes;
	uintptr_t at;

	if (!start) /* to the kernel NULL means no mask */
		return false;
	for (at = (uintptr_t)start; at < end; at = (at | (page - 1)) + 1) {
		if (syscall(SYS_rt_sigprocmask, PEM_SECCOMP_NO_OPERATION, at, NULL, 8) &&
		    errno == EFAULT)
			return false;
	}
	return true;
}

/*
 * Copy the program's filter. Returns false where it cannot be read: a program may pass NULL to find
 * out whether the kernel knows the call, and expects EFAULT.
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
 * Does the state in this memory belong to this process? A child of vfork shares its parent's
 * memory, and must change nothing there. pem is not told of a child of clone: taking the lock makes
 * the state the child's. Unknown, which counts as yes, in a restricted thread.
 */
static bool is_own_process(void)
{
	if (pem_restricted())
		return true;
	if (pem_process__lock())
		pem_process__unlock();
	return (uint32_t)getpid() == pem_process.pid;
}

/* Make all that later events need, while system calls are still allowed. */
static void make_ready(void)
{
	if (!pem_restricted()) {
		find_id();
		make_pools(true, true);
		pem_thread__reserve();
	}
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

/* A thread of this process is about to take a filter, or has taken one. */
static bool took_filter;

/* The calls that a filter refuses: all if it can't be read. False: the kernel will not take it. */
static bool find_refused(const struct sock_fprog *program, uint32_t *refused)
{
	struct sock_fprog filter;

	*refused = PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE;
	if (pem_restricted()) /* by syscall user dispatch */
		return true;
	if (!read_program(program, &filter) || !is_own_process())
		return false;
	*refused = pem_seccomp__refused(filter.filter, filter.len);
	return true;
}

enum pem_filter_effect pem_rights__before_filter(const struct sock_fprog *program, bool all_threads)
{
	enum pem_filter_effect effect = PEM_FILTER_NONE;
	int saved_errno = errno;
	uint32_t refused;

	pem_standby__leave();
	if (pem_rights__filtered() || !find_refused(program, &refused))
		goto out;
	effect = PEM_FILTER_HARMLESS;
	/* none: the filter is installed by a system call after it */
	__atomic_store_n(&took_filter, true, __ATOMIC_SEQ_CST);
	pem_standby__end_children();
	if (!refused)
		goto out;
	make_ready();
	if (!all_threads && !pem_restricted())
		all_threads = read_status("\nThreads:") == 1;
	effect = all_threads ? PEM_FILTER_PROCESS : PEM_FILTER_THREAD;
	/* none: the filter is installed by a system call after it */
	if (effect == PEM_FILTER_PROCESS)
		__atomic_store_n(&pem_process_refused, refused, __ATOMIC_SEQ_CST);
	else
		pem_thread_refused |= refused;
out:
	errno = saved_errno;
	return effect;
}

enum pem_filter_effect pem_rights__before_strict(void)
{
	enum pem_filter_effect effect = PEM_FILTER_NONE;
	int saved_errno = errno;

	pem_standby__leave();
	/* A process that has a filter cannot change to strict mode. */
	if (!pem_rights__filtered() && is_own_process()) {
		make_ready();
		pem_thread__silence(true);
		pem_thread_refused |= PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE;
		effect = PEM_FILTER_STRICT;
	}
	errno = saved_errno;
	return effect;
}

enum pem_filter_effect pem_rights__before_dispatch(void)
{
	int saved_errno = errno;
	bool begins;

	pem_standby__leave();
	begins = !(pem_thread_refused & PEM_SECCOMP_DISPATCH) && is_own_process();
	if (begins) {
		make_ready();
		pem_thread_refused |= PEM_SECCOMP_DISPATCH;
	}
	errno = saved_errno;
	return begins ? PEM_FILTER_DISPATCH : PEM_FILTER_NONE;
}

void pem_rights__end_dispatch(void)
{
	pem_thread_refused &= ~PEM_SECCOMP_DISPATCH;
}

/* Tell consumers how many filters are known. */
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

/*
 * May this memory be written? Kernels before 5.14 cannot tell: can_touch() fails there for pem's
 * own memory too. There the answer is true.
 */
static bool is_writable(void *start, size_t bytes)
{
	return can_touch(start, bytes) || !can_touch(&clock_denied, sizeof(clock_denied));
}

/*
 * Count one more harmless filter. The variable that told this process its number of filters is
 * changed too, for the programs that this process starts. Its digits are overwritten one by one,
 * since no memory may be allocated here. If a program has made its variables read-only, the
 * programs that it starts are not told.
 */
static void count_harmless(void)
{
	char *digits = pem_variable(PEM_FILTERS_VARIABLE);
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
	/* none: nothing is ordered by it */
	if (effect == PEM_FILTER_PROCESS)
		__atomic_store_n(&pem_process_refused, 0, __ATOMIC_SEQ_CST);
	else if (effect == PEM_FILTER_DISPATCH)
		pem_rights__end_dispatch();
	else
		pem_thread_refused &= PEM_SECCOMP_DISPATCH;
	if (effect == PEM_FILTER_STRICT)
		pem_thread__silence(false);
}

bool pem_rights__restricted(void)
{
	return pem_restricted();
}

bool pem_rights__filtered(void)
{
	return pem_refused() & PEM_SECCOMP_CALLS;
}

void pem_rights__inherit(bool filtered)
{
	if (filtered)
		pem_thread_refused = PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE;
}

void pem_process__read_known_filters(void)
{
	const char *said = pem_variable(PEM_FILTERS_VARIABLE);

	__atomic_store_n(&known_filters, said ? (uint32_t)pem_take_number(&said) : ~0u,
			 __ATOMIC_RELAXED);
}

/*
 * Decide whether this process began with a filter that nobody knows. The variable says how many
 * known filters there are. The recording program gave its own number: its filters let pem's calls
 * pass, since it makes the same calls. Processes in between have added those that they counted as
 * harmless. If the process has more filters than that, it makes none of pem's calls. Filters are
 * never removed. Linux before 5.9 does not count them.
 */
void pem_process__find_filter(void)
{
	uint32_t known = pem_process__known_filters();

	if (known != ~0u && read_status("\nSeccomp_filters:") > (long)known)
		pem_process_refused = PEM_SECCOMP_CALLS | PEM_SECCOMP_WAKE;
}

/*
 * Was a failed call refused by a filter that pem was not told of? If so, the process is restricted
 * from now on. Where the kernel's count cannot be read either, any filter counts as such: pem began
 * with the known filters, and those let it read the count.
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

bool pem_rights__took_filter(void)
{
	return __atomic_load_n(&took_filter, __ATOMIC_RELAXED);
}

bool pem_rights__has_filter(void)
{
	return pem_restricted() || pem_rights__took_filter() || read_status("\nSeccomp:") != 0;
}

bool pem_rights__may_be_filtered(void)
{
	uint32_t known = pem_process__known_filters();

	return pem_restricted() ||
	       (known != ~0u && read_status("\nSeccomp_filters:") > (long)known);
}
