/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probe.bpf.h - the program for events that no spec describes, with gaps that libpem fills at run
 * time (pem/kprobe.h)
 *
 * pem.bpf.c includes this file. The program calls the inlines of pem.bpf.c, as generated programs
 * do. It is loaded as a program of a tracepoint. Copies of it are loaded as programs of the type
 * that their events need. Everything that depends on this type is in the gaps.
 */
#include <pem/kprobe.h>

#define PEM_TEXT_(x) #x
#define PEM_TEXT(x) PEM_TEXT_(x)

/* A constant that the verifier knows and clang does not. */
#define PEM_PROBE_CONSTANT(magic)                                                                  \
	({                                                                                         \
		uint64_t value_;                                                                   \
		__asm__ volatile("%0 = " PEM_TEXT(magic) : "=r"(value_));                          \
		value_;                                                                            \
	})

/*
 * A gap. Values that live across it are not in r0 to r5, so the code in it may call helpers. The
 * template itself is loaded with empty gaps: it jumps over each gap by a condition that the
 * verifier knows, so the verifier removes the rest at once.
 */
#define PEM_PROBE_BLOCK(magic, room, a, b, c)                                                      \
	({                                                                                         \
		uint64_t out_;                                                                     \
		__asm__ volatile("%0 = " PEM_TEXT(magic) "\n"                                      \
							 "%0 = %1\n"                               \
							 "%0 = %2\n"                               \
							 "%0 = %3\n"                               \
							 "r0 = 0\n"                                \
							 "if r0 == 0 goto .Lroom%=\n"              \
							 ".rept " PEM_TEXT(room) " - 2\n"          \
										 "goto +0\n"       \
										 ".endr\n"         \
										 ".Lroom%=:\n"     \
				 : "=&r"(out_)                                                     \
				 : "r"(a), "r"(b), "r"(c)                                          \
				 : "r0", "r1", "r2", "r3", "r4", "r5", "memory");                  \
		out_;                                                                              \
	})

/*
 * Add to the statistic of a probe in a process. Such a probe may be preempted by another thread
 * that hits the same probe. Only one of both threads then adds to the cell. The other thread's
 * value is counted in values_lost, but its event may still be in the log, and is counted there.
 */
PEM_INLINE void pem_probe_stat(struct pem_kevent *e, uint64_t value, uint64_t key)
{
	uint64_t *busy = &e->ring->scratch[e->index];

	if (!e->shared) {
		pem_stat(e, value, key);
		return;
	}
	/* none: it is the CPU's own */
	if (__sync_val_compare_and_swap(busy, 0, 1) != 0) {
		__sync_fetch_and_add(&pem_control.values_lost, 1);
		return;
	}
	pem_stat(e, value, key);
	PEM_STORE(*busy, 0);
}

SEC("tracepoint")
int pem_probe(void *ctx)
{
	uint64_t words[PEM_KPROBE_WORDS], value = 0, key, field;
	struct pem_kevent e;
	uint8_t *record;

	/* The template itself is loaded without an index, so the mask keeps the index in bounds. */
	if (!pem_begin(&e, PEM_PROBE_CONSTANT(PEM_KPROBE_INDEX) & (PEM_KRING_EVENTS_MAX - 1)))
		return 0;
	e.shared = PEM_PROBE_CONSTANT(PEM_KPROBE_SHARED);
	__builtin_memset(words, 0, sizeof(words));
	PEM_PROBE_BLOCK(PEM_KPROBE_FETCH, PEM_KPROBE_FETCH_ROOM, ctx, words,
			&e.ring->scratch[e.index]);
	if (!PEM_PROBE_BLOCK(PEM_KPROBE_TEST, PEM_KPROBE_TEST_ROOM, words, words, words))
		return 0;
	if (e.flags & PEM_ACTION_STAT) {
		field = PEM_ACTION_FIELD(e.action);
		if (field < PEM_KPROBE_WORDS)
			value = PEM_LOAD(words[field]);
		key = PEM_ACTION_TYPE(e.action);
		key = key >= PEM_TYPE_INT8 && key <= PEM_TYPE_INT64 ? value ^ (1ULL << 63) : value;
		pem_probe_stat(&e, value, key);
	}
	if (e.flags & PEM_ACTION_LOG) {
		record = pem_reserve(&e, (uint32_t)PEM_PROBE_CONSTANT(PEM_KPROBE_BYTES));
		if (!record)
			return 0;
		PEM_PROBE_BLOCK(PEM_KPROBE_FILL, PEM_KPROBE_FILL_ROOM, ctx, words, record);
		pem_commit(&e, record, (uint32_t)PEM_PROBE_CONSTANT(PEM_KPROBE_ID));
	}
	return 0;
}
