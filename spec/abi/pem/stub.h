/* SPDX-License-Identifier: MIT */
/*
 * stub.h - what generated stubs are made of
 *
 * A generated header defines for each provider: one control page (a struct that starts with
 * pem_control_header), one struct pem_provider, a constructor that finds libpem with dlsym and
 * registers, and two functions for each event:
 *
 *	pem_notify_X(fields)       inline: one load of enable[index], a test, a branch
 *	pem_on_X(fields)           out of line: pem_event_begin; pem_log_begin, store fields,
 *				   pem_log_commit; or pem_stat_add; between these, if a filter is
 *				   asked for, pem_filter_begin and tests of the fields; or, when
 *				   these decline, fill a record on the stack and call
 *				   provider->notify
 *
 * The fast paths serve the common case: one session, one plain action, room in the chunk, and no
 * event of this thread under way. pem_provider.notify (libpem/producer/notify.c) serves all other
 * cases: the first event of a thread, a full chunk, several sessions, filters of CPUs, callbacks,
 * an event that a signal handler raises in the middle of another.
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
	/* PEM_DEPTH_IDLE + events under way. Only signal handlers see more than PEM_DEPTH_IDLE. */
	uint32_t depth;
	uint32_t tid; /* 0: this state belongs to no thread of this process */
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
	uint64_t now;
	uint64_t session; /* session index */
	uint64_t action;
};

#define PEM_BARRIER() __asm__ __volatile__("" ::: "memory")

/*
 * Find out what is wanted of an event. enable is not 0, actions are the event's, index is its index
 * in the provider. Returns PEM_ACTION_CHOICE of the action if exactly one session wants the event
 * and no other event is under way in this thread. Else returns 0. If this function or the ones
 * below decline, the caller calls provider->notify.
 */
PEM_INLINE uint32_t pem_event_begin(struct pem_cursor *c, const struct pem_provider *provider,
				    uint32_t enable, const uint64_t *actions, uint32_t index)
{
	c->thread = pem_thread_self(provider);
	c->session = 0;
	if (__builtin_expect(enable != 1, 0)) { /* A single session usually has the first bit */
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
 * After PEM_ACTION_LOG: reserve room for a record of bytes bytes at c->record, and raise depth
 * until pem_log_commit. Returns 1. Returns 0 if there is no room, if the thread has no lane in this
 * session, or if its lane is of an earlier session with this index.
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
	 * Decrement, and do not store a constant: a handler may have forked, and in the child the
	 * wiped depth must not look idle.
	 */
	c->thread->depth--;
}

/*
 * After PEM_ACTION_STAT: add a value. key: see pem_stat_key_signed(). Returns 1. Returns 0, and
 * does nothing, if the cell holds the statistic of another epoch or session. A writer without a
 * lane points to cells that have no tag.
 */
PEM_INLINE int pem_stat_add(struct pem_cursor *c, uint64_t value, uint64_t key)
{
	struct pem_cell *cell = c->cell;

	__asm__(""
		: "+r"(cell)); /* Keep the address in one register: clang would add two registers at
				  each access. */
	if (__builtin_expect(cell->tag != PEM_ACTION_TAG(c->action), 0))
		return 0;
	c->thread->depth = PEM_DEPTH_IDLE + 1;
	PEM_BARRIER();
	pem_cell_update(cell, value, key);
	PEM_BARRIER();
	c->thread->depth--;
	__asm__ __volatile__(
		""
		:
		: "r"(cell)); /* Without this clang jumps to the end of pem_log_commit. */
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
