/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * counters.c - what a thread's counters hold when it raises an event: HW::HWPerf::HPMsInThread
 *
 * A session's file "counters" says which ones. A thread opens them at its first event that wants
 * them, for itself alone, and maps the page of each. Then it closes the descriptors: the program
 * has as many as before, and none of ours is left for a child. Reading takes no system call: the
 * page says which register the counter is in (struct perf_event_mmap_page), and the processor lets
 * the thread read it. What the kernel counts in software is asked for by a system call that needs
 * no descriptor.
 *
 * A counter that can't be had, or has no register just then, is marked as missing in the record.
 * In a child of fork the pages are not mapped, and its threads have a new state, without counters.
 * A signal handler may fork in the middle of a reading, and return in the child: there are pages of
 * zeros there then, which say that the counter is in no register. A child of a bare system call has
 * none, and must not return so.
 */
/* The provider is registered when a session first wants counters, and never leaves. */
#define PEM_REGISTERS_ITSELF
#include "producer/counters.h"
#include "producer/producer.h"
#include "producer/rights.h"

#include <pem/hardware.h>
#include <stubs/hw_thread.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define PEM_HAS_REQUESTS
#endif
#endif

/* Readings that are timed to find what one costs; the fastest round counts. */
#define COST_ROUNDS 9
#define COST_READINGS 50

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* --- reading --- */

/*
 * The calls are made as such: a program may have functions of these names. In a child of vfork they
 * would tell of the child, whose events are in its parent's lane.
 */
static bool ask_kernel(uint64_t config, uint32_t tid, uint64_t *value)
{
	struct rusage usage;
	struct timespec time;

	if ((uint32_t)syscall(SYS_gettid) != tid)
		return false;
	if (config == PERF_COUNT_SW_TASK_CLOCK || config == PERF_COUNT_SW_CPU_CLOCK) {
		if (syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time))
			return false;
		*value = (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
		return true;
	}
	if (syscall(SYS_getrusage, RUSAGE_THREAD, &usage))
		return false;
	switch (config) {
	case PERF_COUNT_SW_PAGE_FAULTS:
		*value = (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
		return true;
	case PERF_COUNT_SW_PAGE_FAULTS_MIN:
		*value = (uint64_t)usage.ru_minflt;
		return true;
	case PERF_COUNT_SW_PAGE_FAULTS_MAJ:
		*value = (uint64_t)usage.ru_majflt;
		return true;
	case PERF_COUNT_SW_CONTEXT_SWITCHES:
		*value = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
		return true;
	default:
		return false;
	}
}

__attribute__((noinline)) bool pem_counted__ask(uint64_t config, uint32_t tid, uint64_t *value)
{
	int saved_errno = errno;
	bool is_known =
		!pem_restricted() && !pem_rights__took_filter() && ask_kernel(config, tid, value);

	errno = saved_errno;
	return is_known;
}

/*
 * Ask the tool for Valgrind in which the program runs. False: it runs in none that counts this. No
 * system call is made, and without Valgrind the request is a few instructions without effect.
 */
static bool read_simulated(const struct pem_counter *counter, uint64_t *value)
{
#ifdef PEM_HAS_REQUESTS
	uint64_t answer = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, PEM_SIMULATED_REQUEST, counter->config,
							  0, 0, 0, 0);

	*value = answer & ~PEM_SIMULATED_ANSWER;
	return answer & PEM_SIMULATED_ANSWER;
#else
	(void)counter;
	(void)value;
	return false;
#endif
}

static bool read_without_page(const struct pem_counter *counter, uint32_t tid, uint64_t *value)
{
	if (counter->type == PEM_COUNTER_SIMULATED)
		return read_simulated(counter, value);
	return counter->type == PERF_TYPE_SOFTWARE && pem_counted__ask(counter->config, tid, value);
}

/* Returns a bit for each counter that can't be read. Keeps errno. */
static __attribute__((noinline)) uint32_t read_all(const struct pem_opened *opened,
						   uint64_t *values)
{
	const struct perf_event_mmap_page *const *page = opened->page;
	uint64_t *const end = values + opened->count;
	uint32_t missing = 0, i;

	for (; values < end; values++, page++) {
		if (__builtin_expect(*page && pem_read_page(*page, values), 1))
			continue;
		*values = 0;
		i = (uint32_t)(page - opened->page);
		if (*page || !read_without_page(&opened->counter[i], opened->tid, values))
			missing |= 1u << i;
	}
	return missing;
}

/* --- opening --- */

int pem_counted__open(struct perf_event_attr *attr, int group)
{
	int fd;

	attr->size = sizeof(*attr);
	attr->exclude_hv = 1;
	fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && (errno == EACCES || errno == EPERM) && !attr->exclude_kernel &&
	    !attr->exclude_user) {
		attr->exclude_kernel = 1;
		fd = (int)syscall(SYS_perf_event_open, attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
	}
	return fd;
}

static int open_counter(const struct pem_counter *counter, int group)
{
	struct perf_event_attr attr = {.type = counter->type,
				       .config = counter->config,
				       .config1 = counter->config1 | PEM_COUNTER_USER_ACCESS,
				       .config2 = counter->config2};

	attr.exclude_kernel = counter->flags & PEM_COUNTER_NO_KERNEL;
	attr.exclude_user = (counter->flags & PEM_COUNTER_NO_USER) != 0;
	return pem_counted__open(&attr, group);
}

const struct perf_event_mmap_page *pem_counted__map(int fd)
{
	const struct perf_event_mmap_page *page =
		mmap(NULL, page_bytes(), PROT_READ, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (page->cap_user_rdpmc)
		return page;
	munmap((void *)page, page_bytes());
	return NULL;
}

/*
 * Open what is in hardware, as one group, so that all count at the same times. The mapping of its
 * page keeps a counter open.
 */
static void open_all(struct pem_opened *opened)
{
	int fds[PEM_COUNTERS_MAX], leader = -1;
	uint32_t i;

	for (i = 0; i < opened->count; i++) {
		fds[i] = -1;
		opened->page[i] = NULL;
		if (opened->counter[i].type == PERF_TYPE_SOFTWARE ||
		    opened->counter[i].type == PEM_COUNTER_SIMULATED ||
		    opened->counter[i].type == PEM_COUNTER_NONE)
			continue;
		fds[i] = open_counter(&opened->counter[i], leader);
		if (fds[i] < 0 && leader >= 0) /* more than there are registers */
			fds[i] = open_counter(&opened->counter[i], -1);
		if (fds[i] < 0)
			continue;
		if (leader < 0)
			leader = fds[i];
		opened->page[i] = pem_counted__map(fds[i]);
	}
	for (i = 0; i < opened->count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/*
 * Read the session's file. Returns how many counters it names; 0: it has none, or can't be read.
 * The folder has been checked: it is the one of the page that this process maps.
 */
static uint32_t read_names(unsigned session_index, struct pem_counter *counters)
{
	static char path[sizeof(pem_process.joined[0].directory) + sizeof("/counters")];
	const struct pem_joined *joined = &pem_process.joined[session_index];
	struct stat folder, st;
	ssize_t got = -1;
	size_t length;
	int fd;

	if (!pem_process__lock())
		return 0;
	length = strlen(joined->directory);
	memcpy(path, joined->directory, length);
	memcpy(path + length, "/config", sizeof("/config"));
	if (!stat(path, &folder) && (uint64_t)folder.st_ino == joined->inode &&
	    (uint64_t)folder.st_dev == joined->device) {
		memcpy(path + length, "/counters", sizeof("/counters"));
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (fd >= 0) {
			if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == folder.st_uid)
				got = read(fd, counters, PEM_COUNTERS_MAX * sizeof(*counters));
			close(fd);
		}
	}
	pem_process__unlock();
	return got > 0 ? (uint32_t)((size_t)got / sizeof(*counters)) : 0;
}

static void close_all(struct pem_opened *opened)
{
	uint32_t i;

	for (i = 0; i < opened->count; i++)
		if (opened->page[i])
			munmap((void *)opened->page[i], page_bytes());
	memset(opened, 0, sizeof(*opened));
}

static bool has_provider(void)
{
	/* RP, rp: an event_base that is read behind this is there */
	return __atomic_load_n(&pem_provider_hw_thread.registered, __ATOMIC_ACQUIRE) ||
	       !pem_provider_register(&pem_provider_hw_thread);
}

struct pem_thread_counters *pem_counted__make(struct pem_thread_full *thread)
{
	void *memory;

	if (thread->counters)
		return thread->counters;
	memory = mmap(NULL, sizeof(*thread->counters), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
		thread->counters = memory;
	return thread->counters;
}

/* Open a session's counters. incarnation is set last: only then they are used. */
static void open_session(struct pem_opened *opened, unsigned session_index, uint32_t incarnation,
			 uint32_t tid)
{
	close_all(opened);
	opened->count = read_names(session_index, opened->counter);
	if (!opened->count) /* not now: the process lock is another thread's, or the file is gone */
		return;
	open_all(opened);
	opened->tid = tid;
	opened->event_index = pem_provider_hw_thread.event_base;
	opened->record_bytes = PEM_READING_BYTES + opened->count * 8;
	PEM_BARRIER();
	opened->incarnation = incarnation;
}

/*
 * The thread's counters in a session, opened now if need be. NULL: it has none. Where a filter may
 * forbid opening them that is not tried again.
 */
static struct pem_opened *opened_in(struct pem_thread_full *thread, unsigned session_index,
				    uint32_t incarnation)
{
	struct pem_thread_counters *counters = thread->counters;

	if (counters && counters->session[session_index].incarnation == incarnation)
		return &counters->session[session_index];
	if (thread->counters_refused[session_index] == incarnation)
		return NULL;
	if (pem_rights__has_filter()) {
		thread->counters_refused[session_index] = (uint8_t)incarnation;
		return NULL;
	}
	/* An event that a handler raises in another one: its counters may be being read. */
	if (thread->shared.depth > PEM_DEPTH_IDLE + 1)
		return NULL;
	counters = has_provider() ? pem_counted__make(thread) : NULL;
	if (!counters || counters->is_opening)
		return NULL;
	counters->is_opening = true;
	PEM_BARRIER();
	open_session(&counters->session[session_index], session_index, incarnation,
		     thread->shared.tid);
	PEM_BARRIER();
	counters->is_opening = false;
	return counters->session[session_index].incarnation == incarnation
		       ? &counters->session[session_index]
		       : NULL;
}

static bool has_all_pages(const struct pem_opened *opened)
{
	uint32_t i;

	for (i = 0; i < opened->count && opened->page[i]; i++)
		;
	return i == opened->count;
}

void pem_counted__log(struct pem_thread_full *thread, unsigned session_index,
		      struct pem_writer *writer, uint64_t action, uint32_t event_id)
{
	struct pem_opened *opened =
		opened_in(thread, session_index, PEM_ACTION_INCARNATION(action));
	union {
		struct pem_hw_perf_hpms_in_thread_record record;
		uint64_t words[3 + PEM_COUNTERS_MAX];
	} u = {.words = {0}};
	uint64_t values[PEM_COUNTERS_MAX];
	uint32_t missing;

	if (!opened || !opened->count)
		return;
	if (PEM_ACTION_FLAGS(action) == (PEM_ACTION_LOG | PEM_ACTION_MORE) &&
	    PEM_ACTION_TYPE(action) == PEM_ACTION_COUNTED && !writer->coarse &&
	    has_all_pages(opened))
		opened->action = action;
	missing = read_all(opened, values);
	pem_put_hw_perf_hpms_in_thread((uint8_t *)&u, event_id, (uint8_t)missing, opened->count,
				       values);
	pem_log_record(session_index, writer, pem_provider_hw_thread.event_base, thread->shared.tid,
		       (const uint8_t *)&u, opened->record_bytes);
}

double pem_counted__reading_cycles(const struct pem_counter *counters, uint32_t count)
{
	struct pem_opened opened = {.count = count, .tid = (uint32_t)syscall(SYS_gettid)};
	uint64_t values[PEM_COUNTERS_MAX], start, took, least = UINT64_MAX;
	int round, i;

	if (count > PEM_COUNTERS_MAX)
		return 0;
	memcpy(opened.counter, counters, count * sizeof(*counters));
	open_all(&opened);
	for (round = 0; round < COST_ROUNDS; round++) {
		start = pem_clock();
		for (i = 0; i < COST_READINGS; i++)
			read_all(&opened, values);
		took = pem_clock() - start;
		least = took < least ? took : least;
	}
	close_all(&opened);
	return (double)least / COST_READINGS;
}

/* Put zeros in place of a page that a child does not have. */
static void replace_page(const void *page, size_t bytes)
{
	if (page)
		(void)!mmap((void *)page, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			    -1, 0);
}

void pem_counted__after_fork(struct pem_thread_full *thread)
{
	unsigned i, k;

	if (!thread->counters || pem_restricted())
		return;
	for (i = 0; i < PEM_SESSIONS_MAX; i++) {
		const struct pem_opened *opened = &thread->counters->session[i];

		for (k = 0; k < opened->count; k++)
			replace_page(opened->page[k], page_bytes());
	}
	for (i = 0; i < PEM_ENCLOSED_PAGES; i++)
		replace_page(thread->counters->enclosed.page[i], pem_enclosed__bytes(i));
}

void pem_counted__close(struct pem_thread_full *thread)
{
	struct pem_thread_counters *counters = thread->counters;
	unsigned i;

	if (!counters || pem_restricted())
		return;
	for (i = 0; i < PEM_SESSIONS_MAX; i++)
		close_all(&counters->session[i]);
	for (i = 0; i < PEM_ENCLOSED_PAGES; i++)
		if (counters->enclosed.page[i])
			munmap((void *)counters->enclosed.page[i], pem_enclosed__bytes(i));
	munmap(counters, sizeof(*counters));
	thread->counters = NULL;
}
