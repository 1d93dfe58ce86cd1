/* SPDX-License-Identifier: MIT */
/*
 * ring_test.h - a session of the ring's test: one pool, of the CPU that runs the test, and who
 * writes to it
 */
#ifndef PEM_RING_TEST_H
#define PEM_RING_TEST_H

#include "pem_kmod.h"

#include <linux/seq_file.h>

#include <pem/layout.h>

enum { SWITCH, MARK, EVENTS = 64 };
#define MARK_ID 0x1001u
#define SWITCH_BYTES 16u
#define LANES (1u + PEM_KMOD_DEPTH)

/* Who raises events, each interrupting the one before. */
enum level { PROCESS, SOFT_INTERRUPT, INTERRUPT, NMI, LEVELS };

struct trial {
	struct pem_kmod_rule rule;
	struct pem_pool_header layout;
	struct pem_ring ring;
	void *memory;
	struct pem_kmod_cpu *cpu;
	u32 number; /* of the next event; none has one twice */
	u64 raised;
	u64 at[LEVELS]; /* events, by who raised them */
	u64 refused; /* by depth */
	/* of what was consumed */
	u64 next_seq[LANES];
	u32 last_number[LANES];
	u64 marks[LANES], switches[LANES];
	u32 late; /* the number of the first event that is late */
	u64 late_marks;
	/* the first thing that was not as it should be */
	const char *wrong;
	u64 got, wanted;
	struct pem_kmod_probe_data data; /* ends with rules */
};

/* --- ring_test.c --- */

/*
 * Raise an event of so many bytes; interrupt, if any, runs while its record is reserved and half
 * written.
 */
void pem_trial__raise(struct trial *t, enum level level, u32 bytes,
		      void (*interrupt)(struct trial *t));
void pem_trial__expect(struct trial *t, const char *what, u64 got, u64 wanted);

/* --- levels.c: the CPU's contexts --- */

/* Why there is no NMI here; NULL: there is one. */
const char *pem_levels__begin(void);
void pem_levels__end(void);
/*
 * From process context, preemption off: an event on each level, each interrupting the one before.
 */
void pem_levels__nest(struct trial *t);
/* Nothing of it comes any more. */
void pem_levels__settle(void);
/* Interrupts that raise events come at any time, until stop. */
void pem_levels__start_interrupts(struct trial *t);
u64 pem_levels__stop_interrupts(struct trial *t);

#endif
