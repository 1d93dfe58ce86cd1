// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * bursts.c - which references are kept
 *
 * The references of each thread are divided into windows of options.burst. Windows are numbered in
 * the order in which they begin, over all threads; every stride-th is kept, at first each one. When
 * what is kept is more than options.keep, stride doubles, and the file is thinned. So the kept
 * windows are spread evenly over the references of the program, however long.
 *
 * A window is of one thread, without a gap. In the file windows follow each other in the order in
 * which they end, as if the threads had run one after the other, a window at a time. That is what
 * the tool for Valgrind sees, too, which runs one thread at a time for some 100,000 blocks of code.
 * A model of a processor's TLB needs no finer order: threads on different processors do not share
 * one.
 *
 * In a window that is not kept, a thread only counts down. In one that is, each reference comes
 * here, and is stored in a buffer of the thread's.
 */
#include "hooks.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of a thread that looks at none of its references. */
#define NEVER (INT64_MAX / 2)
/* References of a window that is not kept, until the time is looked at. */
#define PIECE 65536u
#define LOADS 256u
#define BUFFERS_MAX 4096u
/* What glibc keeps in the thread's own structure, so that setting it allocates nothing. */
#define KEYS_MAX 32u

/* What an instruction loaded last: in which number the next address of a chain is. */
struct load {
	uintptr_t caller;
	uint64_t address, value;
	int64_t change; /* of value */
};

struct thread {
	struct thread *next, **link; /* of all; with the output locked */
	/* Of a window that is kept: what the file has not, and where the buffer ends. Else NULL. */
	uint64_t *start, *cursor, *end;
	uint64_t *buffer;
	uint64_t window; /* its number */
	/* Of a window that is not kept: references behind the last that was looked at. */
	uint64_t window_left;
	int64_t granted; /* of these: until the next that is looked at */
	uint64_t taken; /* references of it that are in total */
	int64_t *left;
	uint32_t number;
	/* References are dropped: a handler of a signal has interrupted what is done here. */
	bool busy;
	struct load loads[LOADS];
	char room[BURSTS_ROOM];
};

uint32_t bursts__state;
HOOKS_TLS int64_t pem_page_size_left;
static HOOKS_TLS struct thread *self;
static HOOKS_TLS bool gone; /* the thread has ended */
static pthread_key_t key;

/* All below: with the output locked. */
static struct thread *threads;
static uint32_t thread_count;
static uint64_t total; /* references that were taken */
static uint64_t windows; /* that have begun */
static uint64_t stride = 1;
static uint64_t stopped_at;
static uint64_t *buffers[BUFFERS_MAX]; /* that are free */
static uint32_t buffer_count, buffers_free;
static uint64_t ends_ns;
static bool end_written;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- chains --- */

#define NEAR 4096

/*
 * Does an address come from what the same instruction loaded before? It does if it is near that
 * number (a pointer, and a member), or if the two differ from those before them by a whole factor
 * (an index). Neighbours in an array are no chain for a TLB.
 */
static bool is_chained(const struct load *load, uint64_t address)
{
	int64_t moved = (int64_t)(address - load->address), factor, rest;
	uint64_t change = load->change < 0 ? -(uint64_t)load->change : (uint64_t)load->change;
	uint64_t by = moved < 0 ? -(uint64_t)moved : (uint64_t)moved;

	if (address - load->value + NEAR < 2 * NEAR)
		return true;
	/* Most are told apart before they are divided. */
	if (by < NEAR || by < change / 2 || by / NEAR > change || (moved < 0) != (load->change < 0))
		return false;
	factor = (int64_t)((by + change / 2) / change);
	rest = (int64_t)(by - (uint64_t)factor * change);
	/* Of numbers that have nothing to do with each other, few have so small a rest. */
	return factor <= NEAR && rest > -factor && rest < factor && change > 32 * (uint64_t)factor;
}

static uint64_t chained(struct thread *thread, uint64_t address, uint64_t value, uintptr_t caller)
{
	struct load *load = &thread->loads[(caller ^ caller >> 8) % LOADS];
	bool found = load->caller == caller && is_chained(load, address);

	load->change = load->caller == caller ? (int64_t)(value - load->value) : 0;
	load->caller = caller;
	load->address = address;
	load->value = value;
	return found ? PROFILE_CHAINED : 0;
}

/* --- windows, with the output locked --- */

static uint64_t *take_buffer(void)
{
	uint64_t most = hooks__options.keep / (hooks__options.burst * sizeof(uint64_t));

	if (buffers_free)
		return buffers[--buffers_free];
	if (buffer_count >= most || buffer_count == BUFFERS_MAX)
		return NULL;
	buffer_count++;
	return hooks__memory(hooks__options.burst * sizeof(uint64_t));
}

static void give_buffer(struct thread *thread)
{
	if (thread->buffer)
		buffers[buffers_free++] = thread->buffer;
	thread->buffer = thread->start = thread->cursor = thread->end = NULL;
}

static void start_window(struct thread *thread)
{
	thread->window = windows++;
	thread->window_left = hooks__options.burst;
	thread->granted = 0;
	thread->taken = 0;
	/* Without a buffer it is not kept: too many threads do so at this time. */
	if (thread->window % stride || !(thread->buffer = take_buffer()))
		return;
	thread->start = thread->cursor = thread->buffer;
	thread->end = thread->buffer + hooks__options.burst;
}

static void stop(void)
{
	stopped_at = total;
	__atomic_store_n(&bursts__state, BURSTS_ENDED, __ATOMIC_RELAXED);
}

static void thin(void)
{
	while (output__burst_bytes() > hooks__options.keep) {
		stride *= 2;
		if (!output__thin(stride)) {
			stop();
			return;
		}
	}
}

/* References of a window that is not kept, up to now. */
static uint64_t passed(const struct thread *thread)
{
	int64_t left = __atomic_load_n(thread->left, __ATOMIC_RELAXED);
	int64_t more = left < thread->granted ? thread->granted - 1 - left : 0;

	if (more > thread->granted)
		more = thread->granted;
	return hooks__options.burst - thread->window_left + (uint64_t)more;
}

/* Take what a thread has of its window up to now. It may run meanwhile, and have more. */
static void take(struct thread *thread)
{
	uint64_t *cursor = __atomic_load_n(&thread->cursor, __ATOMIC_RELAXED);
	struct profile_burst burst = {.at = total, .thread = thread->number};
	uint64_t count;

	if (!thread->buffer) {
		count = passed(thread);
		total += count - thread->taken;
		thread->taken = count;
		return;
	}
	count = (uint64_t)(cursor - thread->start);
	if (count && thread->window % stride == 0 &&
	    !output__burst(&burst, thread->window, thread->start, count))
		stop();
	thread->start = cursor;
	total += count;
}

static void end_window(struct thread *thread)
{
	take(thread);
	give_buffer(thread);
	thin();
	start_window(thread);
}

/* --- threads --- */

static struct thread *start_thread(void)
{
	struct thread *thread;

	if (gone || !hooks__is_process() || !output__lock())
		return NULL;
	thread = hooks__memory(sizeof(*thread));
	if (!thread) {
		output__unlock();
		return NULL;
	}
	thread->left = &pem_page_size_left;
	thread->number = ++thread_count;
	thread->link = &threads;
	thread->next = threads;
	if (threads)
		threads->link = &thread->next;
	threads = thread;
	start_window(thread);
	output__unlock();
	self = thread;
	pthread_setspecific(key, thread);
	return thread;
}

static void end_thread(void *arg)
{
	struct thread *thread = arg;
	int saved = errno;

	gone = true;
	if (hooks__is_process() && output__lock()) {
		if (bursts__are_on())
			take(thread);
		give_buffer(thread);
		*thread->link = thread->next;
		if (thread->next)
			thread->next->link = thread->link;
		output__unlock();
		syscall(SYS_munmap, thread, sizeof(*thread));
	}
	self = NULL;
	pem_page_size_left = NEVER;
	errno = saved;
}

bool bursts__init(void)
{
	ends_ns = hooks__options.limit ? now_ns() + hooks__options.limit * 1000000000u : UINT64_MAX;
	return !pthread_key_create(&key, end_thread) && key < KEYS_MAX;
}

void *bursts__room(void)
{
	struct thread *thread = self;

	if (!thread && bursts__are_on()) {
		thread = start_thread();
		/* Its first reference is not looked at before it comes. */
		if (thread)
			pem_page_size_left = 0;
	}
	return thread && !thread->busy ? thread->room : NULL;
}

/* --- references --- */

/* How many references until the next that is looked at. */
static void grant(struct thread *thread)
{
	thread->granted = thread->window_left < PIECE ? (int64_t)thread->window_left : PIECE;
	pem_page_size_left = thread->buffer ? 0 : thread->granted - 1;
}

/* The window has ended, or a piece of it. */
static void turn(struct thread *thread)
{
	bool new_window = true;

	if (!thread->buffer) {
		thread->window_left -= (uint64_t)thread->granted;
		thread->granted = 0;
		new_window = !thread->window_left;
	}
	if (new_window && hooks__is_process() && output__lock()) {
		end_window(thread);
		output__unlock();
		if (thread->buffer)
			objects__scan();
	} else if (new_window) {
		/* This can't be written now: the same window again. */
		thread->window_left = hooks__options.burst;
		thread->taken = 0;
		thread->start = thread->cursor = thread->buffer;
	}
	if (now_ns() >= ends_ns && bursts__are_on() && output__lock()) {
		take(thread);
		stop();
		output__unlock();
	}
}

/* All but the next reference of a window that is kept. */
static __attribute__((noinline)) void look(struct thread *thread, uint64_t reference,
					   uint32_t bytes, uintptr_t caller)
{
	int saved = errno;
	bool first = false;

	pem_page_size_left = 0;
	if (!bursts__are_on() || gone) {
		pem_page_size_left = NEVER;
		return;
	}
	if (!thread) {
		thread = start_thread();
		first = true;
	}
	if (!thread || thread->busy) {
		errno = saved;
		return;
	}
	if (first) {
		grant(thread);
		if (--pem_page_size_left < 0)
			pem_page_size_turn(reference, bytes, caller);
	} else {
		thread->busy = true;
		turn(thread);
		grant(thread);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		thread->busy = false;
		if (!bursts__are_on())
			pem_page_size_left = NEVER;
	}
	errno = saved;
}

void pem_page_size_turn(uint64_t reference, uint32_t bytes, uintptr_t caller)
{
	struct thread *thread = self;
	uint64_t value = 0;

	if (!thread || thread->busy || thread->cursor == thread->end) {
		look(thread, reference, bytes, caller);
		return;
	}
	pem_page_size_left = 0;
	/* The program reads it next. If it can't be read, the handler of the signal may jump away.
	 */
	if (bytes == 8)
		value = *(const volatile uint64_t *)reference;
	else if (bytes == 4)
		value = *(const volatile uint32_t *)reference;
	thread->busy = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (bytes)
		reference |= chained(thread, reference, value, caller);
	*thread->cursor++ = reference & (PROFILE_ADDRESS | PROFILE_STORE | PROFILE_CHAINED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->busy = false;
	if (thread->cursor == thread->end)
		look(thread, reference, bytes, caller);
}

void bursts__settle(void)
{
	struct thread *thread = self;

	if (!thread || thread->busy || !hooks__is_process() || !output__lock())
		return;
	if (thread->buffer && bursts__are_on())
		take(thread);
	output__unlock();
}

/* --- the end --- */

void bursts__leave(void)
{
	__atomic_store_n(&bursts__state, BURSTS_ENDED, __ATOMIC_RELAXED);
	pem_page_size_left = NEVER;
}

void bursts__end(void)
{
	struct profile_end end = {0};
	struct thread *thread;

	if (!__atomic_load_n(&bursts__state, __ATOMIC_RELAXED) || !hooks__is_process() ||
	    !output__lock())
		return;
	for (thread = threads; thread && bursts__are_on(); thread = thread->next)
		take(thread);
	__atomic_store_n(&bursts__state, BURSTS_ENDED, __ATOMIC_RELAXED);
	end.references = total;
	end.stopped_at = stopped_at;
	end.forks = hooks__forks();
	if (!end_written) {
		heap__tell();
		output__end(&end);
	}
	end_written = true;
	output__unlock();
}

void bursts__resume(void)
{
	if (!end_written || !hooks__is_process() || !output__lock())
		return;
	output__reopen();
	end_written = false;
	if (!stopped_at) {
		__atomic_store_n(&bursts__state, BURSTS_ON, __ATOMIC_RELAXED);
		if (self) {
			self->window_left = hooks__options.burst - self->taken;
			grant(self);
		}
	}
	output__unlock();
}
