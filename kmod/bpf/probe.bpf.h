/* SPDX-License-Identifier: GPL-2.0 */
/*
 * probe.bpf.h - the program of events that no spec describes, with gaps that libpem fills at run
 * time (pem/kprobe.h)
 *
 * Included by pem.bpf.c, whose inlines it calls as generated programs do. It is loaded as a
 * tracepoint's program, and copies of it as what their events need: all that depends on that stands
 * in the gaps.
 */
#include <pem/kprobe.h>

#define PEM_TEXT_(x) #x
#define PEM_TEXT(x) PEM_TEXT_(x)

/* A constant that clang does not know and the verifier does. */
#define PEM_PROBE_CONSTANT(magic)                                                                  \
	({                                                                                         \
		uint64_t value_;                                                                   \
		__asm__ volatile("%0 = " PEM_TEXT(magic) : "=r"(value_));                          \
		value_;                                                                            \
	})

/*
 * A block: clang keeps out of r0 to r5 what lives across it, so that it may call helpers. The
 * template itself, which is loaded with nothing in it, jumps over it by a condition that the
 * verifier knows: it takes out the rest at once.
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
 * Of a probe in a process, which may be preempted while it runs, by another thread that comes to
 * the same place: what a cell adds up is then for one of them. What the other would have added is
 * counted by itself: its event may be in the log all the same, and is counted there.
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

	/* The mask is for the template itself, which is loaded with no index in it. */
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
