/* SPDX-License-Identifier: MIT */
/*
 * stub.h - what generated stubs are made of
 *
 * A generated header defines for each provider: one control page (a struct that starts with
 * pem_control_header), one struct pem_provider, a constructor that finds libpem with dlsym and
 * registers, and two functions for each event:
 *
 *	pem_notify_X(fields)       inline: one load of enable[index], a test, a branch
 *	pem_on_X(fields)           out of line: the quick paths, of the first session alone:
 *				   pem_quick_begin; pem_quick_reserve, store fields,
 *				   pem_quick_commit; or, in pem_count_X, pem_quick_counts and
 *				   pem_stat_add; or, in pem_further_X, pem_filter_begin and tests
 *				   of the fields, then either. Else, in pem_general_X, the path
 *				   of one session without a filter: pem_event_begin;
 *				   pem_log_begin, store fields, pem_log_commit; or pem_stat_add.
 *				   When these decline, pem_slow_X: fill a record on the stack and
 *				   call provider->notify
 *
 * These paths serve the common case: one session, one plain action, room in the chunk, and no
 * event of this thread under way. A quick log compares the whole action with the one that this
 * thread's lane is for, and the clock by halves: bench/stepped.c counts 38 instructions for two
 * fields, and 33 for a statistic. pem_provider.notify (libpem/producer/notify_quick.c) serves the
 * rest: the first event of a thread, a full chunk, several sessions, filters of CPUs and of further
 * sessions, callbacks, distributions, an event that a signal handler raises in the middle of
 * another one. On x86 a handler's event may be counted in the middle of a counted one, which is
 * not marked in depth: see pem_cell_count.
 *
 * Async-signal-safe. Never blocks, allocates or writes errno, with one exception: in notify, the
 * first event of a process or thread maps memory.
 */
#ifndef PEM_STUB_H
#define PEM_STUB_H

#include <pem/clock.h>
#include <pem/predicate.h>
#include <pem/ring.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The action of an event that one rule logs, without anything else. Stubs compare all of it. */
#define PEM_ACTION_LOGGED(incarnation)                                                             \
	PEM_ACTION_OF_INCARNATION(PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1), incarnation)

/*
 * The state of a thread. libpem allocates it at the thread's first event. Until then all threads
 * share one state, whose depth is 0.
 *
 * The members before the gap lie in memory that the kernel wipes in a child of fork, whatever call
 * made the child. So the child finds depth 0 as well, and its first event goes to the library,
 * which notices the new process. The gap is other threads' memory. Its size is a multiple of every
 * page size.
 */
#define PEM_THREAD_GAP 65536u
#define PEM_DEPTH_IDLE 1u
struct pem_thread {
	/*
	 * PEM_DEPTH_IDLE + events under way that no other one may interrupt without a lane of its
	 * own. Only signal handlers see more than PEM_DEPTH_IDLE.
	 * Stubs add and subtract 1, and never store a constant: a handler may fork in the middle of
	 * an event, and when the child has ended that event, its wiped depth must not look idle.
	 */
	uint32_t depth;
	uint32_t tid; /* 0: this state belongs to no thread of this process */
	/* PEM_ACTION_LOGGED of writer[0]'s incarnation. 0: it has no lane, as in version 0.2.0. */
	uint64_t logged_action;
	/*
	 * PEM_ACTION_LOGGED in a session with a coarse clock, where logged_action is ~0; else ~0.
	 * The clock; NULL: there is none.
	 */
	uint64_t coarse_action;
	const uint64_t *coarse_clock;
	/*
	 * For enclosing probes, by kind: the position up to which the kernel has written records of
	 * this thread's page faults and context switches; NULL: ask the library. The bytes that one
	 * of these takes, as a shift; and enum pem_enclosed_reading.
	 */
	const uint64_t *position[2];
	uint8_t position_shift[2];
	uint8_t position_reading[2];
	uint8_t reserved[12];
	uint8_t gap[PEM_THREAD_GAP];
	struct pem_writer writer[PEM_SESSIONS_MAX]; /* cells is never NULL */
};

struct pem_provider {
	uint32_t abi_version;
	uint32_t event_count;
	const char *name; /* at most 15 bytes */
	const uint32_t *event_ids; /* event_count of them */
	const char *model; /* text, see event.h */
	void *page; /* the control page, PEM_PAGE_ALIGN aligned */
	uint64_t page_bytes;
	/* libpem sets the members from here on at registration. */
	/* Offset of the thread's struct pem_thread pointer from the thread pointer, in bytes. */
	intptr_t thread_offset;
	uint32_t event_base;
	uint32_t registered;
	void (*notify)(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes);
	struct pem_provider *next;
	uint64_t cell_offset; /* Offset of the first event's cell in a lane's cells, in bytes */
	/*
	 * The filters, by event and session, in private memory; NULL: none. An element is replaced,
	 * never changed. Its memory lives as long as the process.
	 */
	const struct pem_filter **filters;
};

/*
 * All files that include a provider's header share one control page. PROVIDER_symbols.c has the
 * definition that is not weak.
 */
#ifndef PEM_PAGE_LINKAGE
#define PEM_PAGE_LINKAGE weak,
#endif

/*
 * A file that defines PEM_REGISTERS_ITSELF before it includes a provider's header gets no
 * constructor and destructor: it calls pem_provider_register itself.
 */

#define PEM_EVENT_CAPACITY(count) (((count) + 63u) & ~63u)

/*
 * Register a provider. The generated constructor calls it through dlsym. Returns 0, or -errno. A
 * second call changes nothing.
 */
__attribute__((visibility("default"))) int pem_provider_register(struct pem_provider *provider);
/* Unregister a provider, before its memory goes away (dlclose). */
__attribute__((visibility("default"))) void pem_provider_unregister(struct pem_provider *provider);

/*
 * Return this thread's struct pem_thread, without a call: libpem has stored its distance from the
 * thread pointer.
 */
PEM_INLINE struct pem_thread *pem_thread_self(const struct pem_provider *provider)
{
	struct pem_thread *self;

#if defined(__x86_64__)
	__asm__ __volatile__("movq %%fs:(%1), %0" : "=r"(self) : "r"(provider->thread_offset));
#elif defined(__aarch64__)
	uint8_t *tp;

	__asm__ __volatile__("mrs %0, tpidr_el0" : "=r"(tp));
	self = *(struct pem_thread **)(tp + provider->thread_offset);
#endif
	return self;
}

/* An event between begin and commit. The caller stores the fields at record. */
struct pem_cursor {
	uint8_t *record;
	struct pem_thread *thread;
	struct pem_writer *writer;
	struct pem_cell *cell;
	uint64_t now; /* on the quick path only its lower half */
	uint64_t session; /* session index */
	uint64_t action;
};

/* Half of a 64-bit clock, which compilers know to be a part of it. */
typedef uint32_t __attribute__((may_alias)) pem_half;
enum { PEM_LOW_HALF, PEM_HIGH_HALF };

#define PEM_BARRIER() __asm__ __volatile__("" ::: "memory")

/*
 * Does an event's enable byte have a value? It is loaded once. x86: compared where it lies, which
 * compilers do not do with atomic loads.
 */
PEM_INLINE int pem_enable_is(const uint8_t *enable, uint8_t value)
{
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
	int is;

	__asm__ __volatile__("cmpb %2, %1" : "=@ccz"(is) : "m"(*enable), "qi"(value));
	return is;
#else
	return __atomic_load_n(enable, __ATOMIC_RELAXED) == value;
#endif
}

PEM_INLINE int pem_is_enabled(const uint8_t *enable)
{
	return !pem_enable_is(enable, 0);
}

/* --- the quick paths: one session, the first, wants the event in one way --- */

/*
 * Find out whether one session alone wants the event, whose bit is the first, and no other event is
 * under way in this thread. Returns 1 with c->action; 0: the caller takes the general path.
 */
PEM_INLINE int pem_quick_begin(struct pem_cursor *c, const struct pem_provider *provider,
			       const uint8_t *enable, const uint64_t *actions)
{
	if (__builtin_expect(!pem_enable_is(enable, 1), 0))
		return 0;
	c->thread = pem_thread_self(provider);
	c->writer = &c->thread->writer[0];
	if (__builtin_expect(c->thread->depth != PEM_DEPTH_IDLE, 0))
		return 0;
	/* uf */
	c->action = __atomic_load_n(actions, __ATOMIC_ACQUIRE);
	return 1;
}

/* The cell of the first session's writer. */
PEM_INLINE struct pem_cell *pem_quick_cell(const struct pem_cursor *c,
					   const struct pem_provider *provider, uint32_t index)
{
	return (struct pem_cell *)(void *)((uint8_t *)c->writer->cells + provider->cell_offset) +
	       index;
}

/*
 * After pem_quick_begin, in functions of their own, which so take no registers from the log's path:
 * pem_count_X, which serves the statistic of the first field, and of none, and pem_further_X.
 */
PEM_INLINE void pem_quick_resume(struct pem_cursor *c, struct pem_thread *thread, uint64_t action)
{
	c->thread = thread;
	c->action = action;
	c->session = 0;
	c->writer = &thread->writer[0];
}

/*
 * Does the session want the statistic of this field and nothing else? field: its number, or
 * PEM_NO_FIELD, which is asked last.
 */
PEM_INLINE int pem_quick_counts(struct pem_cursor *c, const struct pem_provider *provider,
				uint32_t index, uint32_t field)
{
	uint32_t choice = (uint32_t)c->action;

	/* Hidden: gcc would compute what both have in common before it asks for the first. */
	if (field == PEM_NO_FIELD)
		__asm__("" : "+r"(choice));
	if ((choice & 0xffffu) != (PEM_ACTION_STAT | field << 8))
		return 0;
	c->cell = pem_quick_cell(c, provider, index);
	return 1;
}

/* Does the library alone do what is wanted, and is there no filter that may reject it here? */
PEM_INLINE int pem_quick_is_library_s(const struct pem_cursor *c)
{
	return !(c->action & PEM_ACTION_FILTER) &&
	       c->action & (PEM_ACTION_CALLBACK | PEM_ACTION_WAKE | PEM_ACTION_DISTRIBUTION |
			    PEM_ACTION_CHECK | PEM_ACTION_MORE);
}

/* Is all that the session wants a record in the log, and has the thread a lane there? */
PEM_INLINE int pem_quick_logs(const struct pem_cursor *c)
{
	/* Another thread of the process may forget it: the next event notices. */
	return c->action == c->thread->logged_action;
}

/* As pem_quick_logs, in a session with a coarse clock. */
PEM_INLINE int pem_quick_logs_coarse(const struct pem_cursor *c)
{
	return c->action == c->thread->coarse_action;
}

/*
 * As pem_clock_halves, of a clock in memory that another process advances. Without a clock the
 * upper half is one that no record has: a child that a handler forked finds its own wiped.
 */
PEM_INLINE uint32_t pem_coarse_halves(const uint64_t *clock, uint32_t *high)
{
	uint64_t now = __builtin_expect(clock != (const uint64_t *)0, 1)
			       ? __atomic_load_n(clock, __ATOMIC_RELAXED)
			       : ~0ULL;

	*high = (uint32_t)(now >> 32);
	return (uint32_t)now;
}

/*
 * After pem_quick_logs or pem_quick_logs_coarse (is_coarse: 0 or 1): reserve room for a record of
 * bytes bytes at c->record, and raise depth until pem_quick_commit. Returns 1. Returns 0 if there
 * is no room, or the clock's upper half is not that of the last record.
 */
PEM_INLINE int pem_quick_reserve(struct pem_cursor *c, uint32_t bytes, int is_coarse)
{
	const pem_half *last = (const pem_half *)&c->writer->last_clock;
	uint32_t low, high;

	c->thread->depth++;
	PEM_BARRIER();
	low = is_coarse ? pem_coarse_halves(c->thread->coarse_clock, &high)
			: pem_clock_halves(&high);
	c->now = low;
	c->record = c->writer->cursor;
	if (__builtin_expect(high == last[PEM_HIGH_HALF] && low >= last[PEM_LOW_HALF] &&
				     (uintptr_t)c->record + bytes <= (uintptr_t)c->writer->end,
			     1))
		return 1;
	PEM_BARRIER();
	c->thread->depth--;
	return 0;
}

/* As pem_log_commit. */
PEM_INLINE void pem_quick_commit(struct pem_cursor *c, const struct pem_provider *provider,
				 uint32_t index, uint32_t event_id, uint32_t bytes)
{
	struct pem_record_header *header = (struct pem_record_header *)(void *)c->record;
	struct pem_writer *w = c->writer;

	header->clock_low = (uint32_t)c->now;
	header->event_id = event_id;
	w->cursor = c->record + ((bytes + (PEM_RECORD_ALIGN - 1)) & ~(PEM_RECORD_ALIGN - 1));
	((pem_half *)&w->last_clock)[PEM_LOW_HALF] = (uint32_t)c->now;
	w->record_count++;
	/* RA */
	__atomic_store_n(&w->packet->content_size,
			 (uint64_t)(c->record + bytes - (uint8_t *)w->packet) * 8,
			 __ATOMIC_RELEASE);
	/* Behind the commit: see pem_ring_commit. */
	pem_add(&pem_quick_cell(c, provider, index)->produced, 1);
	PEM_BARRIER();
	/* Decrement: see pem_log_commit. */
	c->thread->depth--;
}

/* --- the general path --- */

/*
 * Find out what is wanted of an event: enable and actions are the event's, index is its index in
 * the provider. Returns PEM_ACTION_CHOICE of the action if exactly one session wants the event and
 * no other event is under way in this thread. Else returns 0. If this function or the ones below
 * decline, the caller calls provider->notify.
 */
PEM_INLINE uint32_t pem_event_begin(struct pem_cursor *c, const struct pem_provider *provider,
				    const uint8_t *enable, const uint64_t *actions, uint32_t index)
{
	uint32_t sessions = __atomic_load_n(enable, __ATOMIC_RELAXED);

	c->thread = pem_thread_self(provider);
	c->session = c->action = 0;
	c->cell = (struct pem_cell *)0;
	if (__builtin_expect(sessions != 1, 0)) { /* A single session usually has the first bit */
		if (!sessions || sessions & (sessions - 1))
			return 0;
		c->session = (uint64_t)__builtin_ctz(sessions);
	}
	if (__builtin_expect(c->thread->depth != PEM_DEPTH_IDLE, 0))
		return 0;
	/* uf */
	c->action = __atomic_load_n(&actions[c->session], __ATOMIC_ACQUIRE);
	c->writer = &c->thread->writer[c->session];
	c->cell = (struct pem_cell *)(void *)((uint8_t *)c->writer->cells + provider->cell_offset) +
		  index;
	return PEM_ACTION_CHOICE(c->action);
}

/*
 * After PEM_ACTION_LOG: reserve room for a record of bytes bytes at c->record, and raise depth
 * until pem_log_commit. Returns 1. Returns 0 if there is no room, if the thread has no lane in this
 * session, if its lane is of an earlier session with this index, or if the clock is coarse.
 */
PEM_INLINE int pem_log_begin(struct pem_cursor *c, uint32_t bytes)
{
	if (__builtin_expect(__atomic_load_n(&c->writer->incarnation, __ATOMIC_RELAXED) !=
					     PEM_ACTION_INCARNATION(c->action) ||
				     c->writer->coarse,
			     0))
		return 0;
	c->thread->depth++;
	PEM_BARRIER();
	c->now = pem_clock();
	c->record = pem_ring_reserve(c->writer, c->now, bytes);
	if (__builtin_expect(c->record != (uint8_t *)0, 1))
		return 1;
	PEM_BARRIER();
	c->thread->depth--;
	return 0;
}

PEM_INLINE void pem_log_commit(struct pem_cursor *c, uint32_t event_id, uint32_t bytes)
{
	pem_ring_commit(c->writer, c->cell, c->now, event_id, bytes);
	PEM_BARRIER();
	c->thread->depth--;
}

/*
 * After PEM_ACTION_STAT: can the cell take the event? Returns 0 if it holds the statistic of
 * another epoch or session. A writer without a lane points to cells that have no tag.
 */
PEM_INLINE int pem_stat_fits(const struct pem_cursor *c)
{
	return __builtin_expect(c->cell->tag == PEM_ACTION_TAG(c->action), 1) != 0;
}

/* Mark the thread while its cell changes, where a handler may not change it, too. */
PEM_INLINE void pem_stat_mark(struct pem_cursor *c, uint32_t change)
{
	if (PEM_COUNT_NESTS)
		return;
	PEM_BARRIER();
	c->thread->depth += change;
	PEM_BARRIER();
}

/*
 * After PEM_ACTION_STAT: add a value. key: see pem_stat_key_signed(). Returns 1. Returns 0, and
 * does nothing, if the cell can't take it.
 */
PEM_INLINE int pem_stat_add(struct pem_cursor *c, uint64_t value, uint64_t key)
{
	/* Keep the address in one register: clang would add two registers at each access. */
	__asm__("" : "+r"(c->cell));
	if (!pem_stat_fits(c))
		return 0;
	pem_stat_mark(c, 1);
	pem_cell_count(c->cell, value, key);
	pem_stat_mark(c, -1u);
	return 1;
}

/* As pem_stat_add, of an event of which no field is added up. */
PEM_INLINE int pem_stat_count(struct pem_cursor *c)
{
	if (!pem_stat_fits(c))
		return 0;
	pem_stat_mark(c, 1);
	pem_cell_count_event(c->cell);
	pem_stat_mark(c, -1u);
	return 1;
}

/*
 * After a choice with PEM_ACTION_FILTER: return the filter that thread and fields have to pass.
 *
 * Filters are replaced while threads use them. The writer (libpem/producer/apply.c) first marks the
 * action PEM_ACTION_CHECK, then stores the filter, then stores the action that belongs to it. So if
 * a stub loads one action before and after the filter, the filter belongs to that action. An event
 * raised meanwhile is judged as a whole either by the old rules or by the new ones. A consumer
 * outside the process changes only the action, and sets PEM_ACTION_CHECK. The filter is then that
 * of the old rules, and the library has to apply the new ones first.
 */
PEM_INLINE const struct pem_filter *pem_filter_begin(const struct pem_cursor *c,
						     const struct pem_filter *const *filters)
{
	/* uh */
	return __atomic_load_n(&filters[c->session], __ATOMIC_ACQUIRE);
}

/* Return whether the tests of the filter alone decide if the event is wanted. */
PEM_INLINE int pem_filter_fits(const struct pem_cursor *c, const uint64_t *actions,
			       const struct pem_filter *filter)
{
	return __builtin_expect(filter &&
					(c->thread->tid & filter->stub_mask) == filter->stub_tid &&
					__atomic_load_n(&actions[c->session], __ATOMIC_RELAXED) ==
						c->action &&
					!(c->action & PEM_ACTION_CHECK),
				1) != 0;
}

/* For a filter that does not fit: return whether it rejects the event because of its thread. */
PEM_INLINE int pem_filter_rejects(const struct pem_cursor *c, const uint64_t *actions,
				  const struct pem_filter *filter)
{
	return filter && filter->tid && filter->tid != c->thread->tid &&
	       __atomic_load_n(&actions[c->session], __ATOMIC_RELAXED) == c->action &&
	       !(c->action & PEM_ACTION_CHECK);
}

/* Return a floating field as the word that pem_test_next takes. */
PEM_INLINE uint64_t pem_word_float32(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return (uint64_t)bits << 32;
}

PEM_INLINE uint64_t pem_word_float64(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

#ifdef __cplusplus
}
#endif
#endif
