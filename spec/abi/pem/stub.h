/* SPDX-License-Identifier: MIT */
/*
 * stub.h - what generated stubs are made of
 *
 * A generated header defines, per provider: one control page (a struct starting with
 * pem_control_header), one struct pem_provider, a constructor that finds libpem with dlsym and
 * registers, and two functions per event:
 *
 *	pem_notify_X(fields)       inline: one load of enable[index], a test, a branch
 *	pem_on_X(fields)           out of line: pem_event_begin; pem_log_begin, store fields,
 *				   pem_log_commit; or pem_stat_add; between these, if a filter is
 *				   asked for, pem_filter_begin and tests of the fields; or, when
 *				   these decline, fill a record on the stack and call
 *				   provider->notify
 *
 * The fast paths serve the common case: one session, one plain action, room in the chunk, and no
 * event of this thread under way. All else (first event of a thread, full chunk, several sessions,
 * filters of CPUs, callbacks, an event raised by a signal handler in the middle of another) is
 * pem_provider.notify, in libpem/producer/notify.c.
 *
 * Async-signal-safe; never blocks, allocates or writes errno, except that the first event of a
 * process or thread, in notify, maps memory.
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

/*
 * Per thread; libpem allocates it at the thread's first event. Until then all threads share one
 * with depth 0.
 *
 * What stands before the gap lies in memory that the kernel wipes in a child of fork, by whatever
 * call it was made: the child finds depth 0 as well, so that its first event goes to the library,
 * which sees that this is another process. The gap is other threads' memory, and a multiple of
 * every page's size.
 */
#define PEM_THREAD_GAP 65536u
#define PEM_DEPTH_IDLE 1u
struct pem_thread {
	/* PEM_DEPTH_IDLE and events under way: more than that only seen by signal handlers */
	uint32_t depth;
	uint32_t tid; /* 0: no thread's of this process */
	uint8_t reserved[56];
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
	/* set by libpem on registration */
	/* of the thread's struct pem_thread pointer, from the thread pointer */
	intptr_t thread_offset;
	uint32_t event_base;
	uint32_t registered;
	void (*notify)(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes);
	struct pem_provider *next;
	uint64_t cell_offset; /* of its first event's cell in a lane's, in bytes */
	/*
	 * By event and session, private memory; an element is replaced, never changed, and stays
	 * while the process lives. NULL: none
	 */
	const struct pem_filter **filters;
};

/*
 * The control page is one for all files that include its header; PROVIDER_symbols.c has the
 * definition that is not weak.
 */
#ifndef PEM_PAGE_LINKAGE
#define PEM_PAGE_LINKAGE weak,
#endif

#define PEM_EVENT_CAPACITY(count) (((count) + 63u) & ~63u)

/*
 * Register a provider; the generated constructor calls it through dlsym. 0, or -errno. Idempotent.
 */
__attribute__((visibility("default"))) int pem_provider_register(struct pem_provider *provider);
/* Take it back before its memory goes away (dlclose). */
__attribute__((visibility("default"))) void pem_provider_unregister(struct pem_provider *provider);

/*
 * This thread's struct pem_thread, found without a call: libpem says how far it lies from the
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

/* An event on its way, between begin and commit. record is where the caller stores the fields. */
struct pem_cursor {
	uint8_t *record;
	struct pem_thread *thread;
	struct pem_writer *writer;
	struct pem_cell *cell;
	uint64_t now;
	uint64_t session; /* its index */
	uint64_t action;
};

#define PEM_BARRIER() __asm__ __volatile__("" ::: "memory")

/*
 * Find out what is wanted; enable is not 0, actions are the event's, index is its own. Returns
 * PEM_ACTION_CHOICE of the action if exactly one session wants the event and no other event is
 * under way in this thread, else 0. What the functions below decline then, and all else, is for
 * provider->notify.
 */
PEM_INLINE uint32_t pem_event_begin(struct pem_cursor *c, const struct pem_provider *provider,
				    uint32_t enable, const uint64_t *actions, uint32_t index)
{
	c->thread = pem_thread_self(provider);
	c->session = 0;
	if (__builtin_expect(enable != 1, 0)) { /* one session alone has the first bit */
		if (enable & (enable - 1))
			return 0;
		c->session = (uint64_t)__builtin_ctz(enable);
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
 * After PEM_ACTION_LOG: 1, room for bytes at c->record and depth raised until pem_log_commit; or 0:
 * no room, or no lane in this session yet, or in an earlier one that had its cell.
 */
PEM_INLINE int pem_log_begin(struct pem_cursor *c, uint32_t bytes)
{
	if (__builtin_expect(__atomic_load_n(&c->writer->incarnation, __ATOMIC_RELAXED) !=
				     PEM_ACTION_INCARNATION(c->action),
			     0))
		return 0;
	c->thread->depth = PEM_DEPTH_IDLE + 1;
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
	/*
	 * Counted down: a handler may have forked, and in the child what was wiped is not to look
	 * idle.
	 */
	c->thread->depth--;
}

/*
 * After PEM_ACTION_STAT: add a value. key: see ring.h. 0: nothing was done, as the cell holds
 * another epoch's or session's statistic. A writer that has no lane points to cells without one.
 */
PEM_INLINE int pem_stat_add(struct pem_cursor *c, uint64_t value, uint64_t key)
{
	struct pem_cell *cell = c->cell;

	__asm__("" : "+r"(cell)); /* one register: clang would add up two at each access */
	if (__builtin_expect(cell->tag != PEM_ACTION_TAG(c->action), 0))
		return 0;
	c->thread->depth = PEM_DEPTH_IDLE + 1;
	PEM_BARRIER();
	pem_cell_update(cell, value, key);
	PEM_BARRIER();
	c->thread->depth--;
	__asm__ __volatile__("" : : "r"(cell)); /* else clang jumps to the end of pem_log_commit */
	return 1;
}

/*
 * After a choice with PEM_ACTION_FILTER: what thread and fields have to pass.
 *
 * Filters are replaced while threads go by them. Who does so (libpem/producer/apply.c) first marks
 * the action PEM_ACTION_CHECK, then stores the filter, then the action that it came with; so that
 * an action seen before and after the filter is one that the filter belongs to. An event raised
 * meanwhile is judged, as a whole, by rules that were in force while it was: the old ones or the
 * new. A consumer outside changes the action alone, with PEM_ACTION_CHECK: the filter is of the
 * rules before then, and the library is to apply the new ones first.
 */
PEM_INLINE const struct pem_filter *pem_filter_begin(const struct pem_cursor *c,
						     const struct pem_filter *const *filters)
{
	/* uh */
	return __atomic_load_n(&filters[c->session], __ATOMIC_ACQUIRE);
}

/* Is it all told by the tests of the filter whether the event is wanted? */
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

/* One that does not fit: is the event that of a thread that is not wanted? */
PEM_INLINE int pem_filter_rejects(const struct pem_cursor *c, const uint64_t *actions,
				  const struct pem_filter *filter)
{
	return filter && filter->tid && filter->tid != c->thread->tid &&
	       __atomic_load_n(&actions[c->session], __ATOMIC_RELAXED) == c->action &&
	       !(c->action & PEM_ACTION_CHECK);
}

/* Floating fields as pem_test_next wants them. */
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
