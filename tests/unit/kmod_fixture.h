/* SPDX-License-Identifier: MIT */
/*
 * kmod_fixture.h - a kernel made of macros, the module's probes of a made-up spec compiled for it,
 * a session on them
 *
 * Included by the programs kmod_*.c. The pool, the probes and what they call (kmod/pem_kmod.h,
 * kmod/record.c) are those of the module.
 */
#ifndef KMOD_FIXTURE_H
#define KMOD_FIXTURE_H

#include "ring_fixture.h"

#include <pem/event.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

/* --- a kernel --- */

#define __percpu
#define __rcu
#define __force
#define __maybe_unused __attribute__((unused))
#define noinline __attribute__((noinline))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() at_barrier()
#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))
#define cmpxchg_local(p, old, new) __sync_val_compare_and_swap(p, old, new)
#define cmpxchg_relaxed(p, old, new) __sync_val_compare_and_swap(p, old, new)
#define smp_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define rcu_dereference_raw(x) READ_ONCE(x)
#define pem_pin() (preempt_count++)
#define pem_unpin() (preempt_count--)
#define raw_cpu_ptr(p) (p)
#define in_nmi() 0
#define in_hardirq() 0
#define in_serving_softirq() 0

typedef struct {
	int counter;
} atomic_t;
typedef struct {
	int64_t counter;
} atomic64_t;
#define atomic_read(v) READ_ONCE((v)->counter)
#define atomic_read_acquire(v) smp_load_acquire(&(v)->counter)
#define atomic_inc(v) __atomic_fetch_add(&(v)->counter, 1, __ATOMIC_RELAXED)
#define atomic64_inc(v) __atomic_fetch_add(&(v)->counter, 1, __ATOMIC_RELAXED)
#define atomic_fetch_add_release(n, v) __atomic_fetch_add(&(v)->counter, n, __ATOMIC_RELEASE)

/*
 * What interrupts a probe, at one of the barriers from now on: compilers keep order there, and
 * tests ask about it.
 */
static void (*interrupt)(void);
static unsigned interrupt_in; /* barriers; 0: none */

static inline void at_barrier(void)
{
	__asm__ volatile("" ::: "memory");
	if (interrupt_in && !--interrupt_in)
		interrupt();
}

struct task_struct {
	int pid, tgid;
	void *signal;
};

static struct task_struct init_task = {.signal = &init_task}, *current = &init_task;

static __thread int preempt_count;
static const char *unreadable; /* this byte and all after it, to the end of its page */

/* Reads whole words around a string, as the kernel's does: no sanitizer's business. */
__attribute__((no_sanitize("address"))) static int
copy_from_kernel_nofault(void *to, const void *from, size_t bytes)
{
	const char *end = (const char *)from + bytes;
	size_t i;

	if (!from || (unreadable && end > unreadable && (const char *)from < unreadable + 4096))
		return -EFAULT;
	for (i = 0; i < bytes; i++)
		((volatile char *)to)[i] = ((const volatile char *)from)[i];
	return 0;
}

#include "kmod/pem_kmod.h"
#include "kmod/record.c"

static unsigned filled_count;

void pem_kmod_filled(struct pem_kmod_cpu *cpu)
{
	(void)cpu;
	filled_count++;
}

static uint32_t counters_read_at; /* the last event that asked for it */

void pem_counters_read(struct pem_kmod_probe_data *data, uint32_t event_id)
{
	(void)data;
	counters_read_at = event_id;
}

/* It is of version 6.12 and declares these tracepoints. */
#define PEM_KERNEL_FROM(major, minor) ((major)*1000 + (minor) <= 6012)
#define PEM_KERNEL_UNTIL(major, minor) ((major)*1000 + (minor) >= 6012)
#define PEM_KMOD_CAN(tracepoint) PEM_KMOD_CAN_##tracepoint
#define PEM_KMOD_CAN_all 1
#define PEM_KMOD_CAN_choice 1
#define PEM_KMOD_CAN_nowhere 0
#define PEM_KMOD_CAN_sched_switch 1
#define PEM_KMOD_CAN_begins 1
#define PEM_KMOD_HAS_supply 1

struct thing {
	uint64_t big;
	uint16_t three[3];
	char name[32];
};

static inline void check_trace_callback_type_all(void (*probe)(void *, struct thing *, int, bool,
							       const char *))
{
	(void)probe;
}

static inline __attribute__((unused)) void
check_trace_callback_type_choice(void (*probe)(void *, struct thing *, long))
{
	(void)probe;
}

static inline __attribute__((unused)) void check_trace_callback_type_sched_switch(
	void (*probe)(void *, bool, struct task_struct *, struct task_struct *))
{
	(void)probe;
}

static inline __attribute__((unused)) void check_trace_callback_type_begins(void (*probe)(void *,
											  int))
{
	(void)probe;
}

#pragma GCC diagnostic ignored "-Wunused-parameter" /* the kernel does not ask for it */
#include "kmod_probes/pem_kmod_events.h"
#include "kmod_probes/pem_kmod_emit.h"

/* --- a session on it --- */

enum { ALL, CHOICE, NOWHERE, SWITCH, BEGINS, OWN, COUNT };

struct machine {
	struct pool pool;
	struct pem_kmod_cpu cpu;
	union {
		struct pem_kmod_rule head;
		uint64_t room[(sizeof(struct pem_kmod_rule) +
			       PEM_TESTS_MAX * sizeof(struct pem_test)) /
			      8];
	} rule[COUNT];
	struct pem_kmod_targets targets;
	struct pem_kmod_probe_data *data;
};

static inline void want(struct machine *m, int index, uint64_t action)
{
	m->rule[index].head.action = action;
	m->data->rule[index] = action ? &m->rule[index].head : NULL;
}

static inline struct machine *make_machine(uint32_t chunks)
{
	struct machine *m = calloc(1, sizeof(*m));
	uint32_t i;

	assert_non_null(m);
	m->data = calloc(1, sizeof(*m->data) + COUNT * sizeof(m->data->rule[0]));
	assert_non_null(m->data);
	m->pool = pool_make(0, chunks);
	memset(m->pool.ring.chunks, 0xaa, (size_t)chunks * CHUNK);
	m->cpu.number = 3;
	m->cpu.ring = m->pool.ring;
	/* as if a switch had been logged: tests of other things look at their records alone */
	m->cpu.logged_thread = pem_thread_of(current);
	for (i = 0; i < PEM_KMOD_DEPTH; i++) {
		m->cpu.writers[i].lane_index = i + 1;
		m->cpu.writers[i].cells = m->pool.ring.cells + (i + 1) * EVENTS;
	}
	for (i = 0; i < COUNT; i++)
		m->rule[i].head.cpu = PEM_NO_CPU;
	m->data->cpus = &m->cpu;
	m->data->targets = &m->targets;
	m->targets.generation.counter = 1;
	unreadable = NULL;
	filled_count = 0;
	current = &init_task;
	return m;
}

static inline void free_machine(struct machine *m)
{
	assert_int_equal(m->cpu.depth, 0);
	assert_int_equal(preempt_count, 0);
	current = &init_task;
	pool_free(&m->pool);
	free(m->data);
	free(m);
}

static inline void raise_all(struct machine *m, struct thing *thing, int value, const char *text)
{
	((void (*)(void *, struct thing *, int, bool, const char *))pem_kmod_probes[ALL].probe)(
		m->data, thing, value, true, text);
}

#define SWITCH_BYTES 24

static __maybe_unused struct thing thing = {
	.big = 0x1122334455667788, .three = {1, 2, 65535}, .name = "widget"};

#endif
