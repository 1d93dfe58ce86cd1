// SPDX-License-Identifier: MIT
/* look.c - the clock, and a turn through the chunks of each directive */
#include "look.h"

#include "arena.h"
#include "counts.h"
#include "fixed.h"
#include "heap.h"
#include "large.h"
#include "maps.h"
#include "report.h"
#include "start.h"
#include "wake.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CALLS_MAX 16u /* between two readings of the clock */
/* Of one look. A program waits for it as for a page fault, which may take as long for each page. */
#define LOOK_CHUNKS 256u
#define LOOK_TRIED 16u
/* How many times as long as a look took it is until the next. */
#define WAIT_MADE 3u
#define WAIT_NONE 32u
#define WAIT_MIN_NS 1000000u
/* After this many looks that made nothing, each wait is twice the one before. */
#define LOOKS_PATIENT 4u
#define WAIT_MAX_NS UINT64_C(500000000)

__thread uint32_t look__calls __attribute__((tls_model("initial-exec")));
static __thread uint32_t step __attribute__((tls_model("initial-exec")));

/* One thread at a time looks: whoever has set busy. Only due and grown are read and written by all.
 */
static struct {
	bool busy, is_on;
	bool grown; /* since the last turn began */
	uint64_t due; /* when the next look is, in ns */
	uint64_t wait_ns;
	uint32_t vain; /* looks in a row that made nothing */
	/* The turn: the directive, and where in its memory. */
	uint32_t directive;
	struct large_look large;
	uint64_t refused; /* bytes of this directive, in this turn */
	bool is_left; /* memory of sites that may get large pages yet */
} look;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- the turn --- */

/* Look at the directive's next chunks. false: there are none. */
static bool look_at_next(uint32_t i)
{
	switch (apply__directives.list[i].site.kind) {
	case PAGE_SITE_HEAP:
		return heap__look(i, &look.large);
	case PAGE_SITE_MAP:
		return maps__look(i, &look.large);
	default:
		return fixed__look(i, &look.large);
	}
}

static void begin_directive(void)
{
	look.large.at = 0;
	look.large.may_ask = true;
	look.refused = 0;
}

/* Goes on to the next directive. false: the turn is over. */
static bool end_directive(void)
{
	struct counts *counts = &counts__all[look.directive];
	uint64_t next = counts->granted + ARENA_CHUNK;

	look.is_left |= counts->bytes >= next && (!counts->most || next <= counts->most);
	counts__want(counts, look.refused);
	begin_directive();
	if (++look.directive < apply__directives.count)
		return true;
	look.directive = 0;
	return false;
}

static void refuse(uint32_t chunks)
{
	look.refused += (uint64_t)chunks * ARENA_CHUNK;
	/* The program may end before the turn does. */
	counts__want(&counts__all[look.directive], look.refused);
}

/* Returns how many large pages were made. *is_over: nothing is left to look at. */
static uint32_t look_at_some(bool *is_over)
{
	uint32_t chunks = 0, tried = 0, made = 0;

	*is_over = false;
	if (!look.directive && !look.large.at)
		__atomic_store_n(&look.grown, false, __ATOMIC_SEQ_CST);
	while (chunks < LOOK_CHUNKS && tried < LOOK_TRIED) {
		look.large.most = LOOK_TRIED - tried;
		if (apply__directives.list[look.directive].page_size > ARENA_PAGE &&
		    look_at_next(look.directive)) {
			chunks += look.large.chunks;
			if (look.large.result == LARGE_MADE) {
				tried += look.large.chunks;
				made += look.large.chunks - look.large.failed;
			}
			if (look.large.failed)
				refuse(look.large.failed);
			if (look.large.result == LARGE_REFUSED) {
				look.large.may_ask = false;
				refuse(look.large.chunks);
			}
			continue;
		}
		if (end_directive())
			continue;
		*is_over = !look.is_left;
		look.is_left = false;
		break;
	}
	return made;
}

/* --- a look --- */

static void set_due(uint64_t due)
{
	__atomic_store_n(&look.due, due, __ATOMIC_SEQ_CST);
}

/* The caller has set busy. Returns how long to wait for the next look; 0: for ever. */
static uint64_t look_once(void)
{
	uint32_t made = 0;
	bool is_over = false;
	/* Processor time: with others on the machine, a look takes longer and costs no more. */
	uint64_t took, began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int state = lock__begin_files();

	grants__look_again();
	if (large__begin()) {
		made = look_at_some(&is_over);
		large__end();
	}
	lock__end_files(state);
	took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	look.vain = made ? 0 : look.vain + 1;
	if (look.vain > LOOKS_PATIENT)
		look.wait_ns *= 2;
	else
		look.wait_ns = took * (made ? WAIT_MADE : WAIT_NONE);
	if (look.wait_ns > WAIT_MAX_NS)
		look.wait_ns = WAIT_MAX_NS;
	if (look.wait_ns < WAIT_MIN_NS)
		look.wait_ns = WAIT_MIN_NS;
	set_due(is_over ? UINT64_MAX : clock_ns(CLOCK_MONOTONIC) + look.wait_ns);
	/* A thread that has set grown before has not seen that looks are over. */
	if (is_over && __atomic_load_n(&look.grown, __ATOMIC_SEQ_CST)) {
		set_due(0);
		is_over = false;
	}
	took = is_over ? 0 : look.wait_ns;
	__atomic_clear(&look.busy, __ATOMIC_RELEASE);
	return took;
}

/* A handler of a signal would wait for locks that its own thread holds here. */
static uint64_t look_unsignalled(void)
{
	const uint64_t all = UINT64_MAX;
	uint64_t was, wait;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &was, sizeof(was));
	wait = look_once();
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &was, NULL, sizeof(was));
	return wait;
}

uint64_t look__expired(void)
{
	/* Else another thread looks, or this one does. */
	return __atomic_test_and_set(&look.busy, __ATOMIC_ACQUIRE) ? WAIT_MIN_NS : look_once();
}

void look__now(void)
{
	uint64_t due = __atomic_load_n(&look.due, __ATOMIC_RELAXED), now;
	int saved = errno;

	if (!look.is_on || apply__confined || due == UINT64_MAX) {
		look__calls = CALLS_MAX;
		return;
	}
	now = clock_ns(CLOCK_MONOTONIC);
	if (now < due) {
		step = step < CALLS_MAX / 2 ? 2 * step + 1 : CALLS_MAX;
		look__calls = step;
		return;
	}
	step = 0;
	look__calls = 0;
	if (report__is_process() && !__atomic_test_and_set(&look.busy, __ATOMIC_ACQUIRE))
		wake__after(look_unsignalled());
	errno = saved;
}

void look__grown(void)
{
	int saved = errno;

	if (!look.is_on || __atomic_load_n(&look.grown, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&look.grown, true, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&look.due, __ATOMIC_SEQ_CST) == UINT64_MAX) {
		set_due(0);
		look__calls = 0;
	}
	/* The next look is early, however long there was nothing to make. */
	if (report__is_process() && !__atomic_test_and_set(&look.busy, __ATOMIC_ACQUIRE)) {
		look.vain = 0;
		wake__after(WAIT_MIN_NS);
		__atomic_clear(&look.busy, __ATOMIC_RELEASE);
	}
	errno = saved;
}

/* Has the administrator forbidden large pages? */
static bool is_never(void)
{
	char text[64];
	ssize_t got = 0;
	int fd = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		got = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[got > 0 ? got : 0] = '\0';
	return strstr(text, "[never]") != NULL;
}

void look__init(void)
{
	if (is_never())
		return;
	begin_directive();
	set_due(UINT64_MAX);
	wake__init();
	look.is_on = true;
	if (fixed__is_any())
		look__grown();
}

void look__after_fork_child(void)
{
	look.busy = false;
	wake__after_fork_child();
}
