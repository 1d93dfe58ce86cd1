/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * kring.h - the per-CPU byte ring that BPF programs fill and the kernel source drains
 *
 * Not here: the programs (kmod/bpf), loading and draining (libpem/sources/kernel).
 *
 * One mappable BPF array map; element i belongs to CPU i and is value_size bytes long:
 *
 *	0         struct pem_kring   head, tail, context of the CPU, cells[event]
 *	151552    data               a power of two of bytes, mask + 1, chosen at load time
 *	+ data    slack              4096 bytes
 *
 *	                  tail                         head
 *	                   v                            v
 *	  data  |..........|CLOCK|Enter|Exit|PageFault  |Exit..|....................|  slack  |
 *	          zeros      committed, to be consumed    ^ reserved: event_id is 0
 *
 * A record that starts before the end of data may end in the slack.
 *
 * head and tail run free; position p lies at data + (p & mask). A record that starts before the end
 * of data runs on into the slack, and the bytes it would have taken at the start stay unused in
 * that lap: records are contiguous without filling, and the verifier needs to know the mask only.
 *
 * A record takes its event's ring_bytes, the longest it can be, a multiple of 8: strings have fixed
 * places one after the other; whoever drains moves them together. Its header's clock_low is the low
 * half of CLOCK_MONOTONIC in ns. A record whose now >> 31 differs from that of the record before it
 * is preceded, within one reservation, by a struct pem_kring_clock with all 64 bits, so a consumer
 * decodes exactly after any delay.
 *
 * Records carry no process or thread: they belong to the one that the last context switch in the
 * ring went to. A record of another (logged_thread is not the current one: logging began in the
 * middle, the switch was discarded, exec renamed the thread, or the kernel did not report the
 * switch, as it does happen) is preceded, in the same reservation, by a switch record that says so;
 * that one counts as produced like any other.
 *
 * Producers of a ring are programs on one CPU, of which one may interrupt another (interrupt, NMI,
 * fault) but none itself: the kernel refuses to run a program within itself on a CPU and counts it
 * (recursion_misses). So head is moved by compare-and-swap, and all that belongs to one event (its
 * cell) by plain stores. A producer that finds no room, or loses the race PEM_KRING_TRIES times
 * after the first, discards its record and counts it.
 *
 * Ordering: docs/architecture.md, Barriers. A barrier bears the letters of its pair, capital where
 * something is published and small where it is read.
 *
 * Invariants: tail <= head <= tail + mask + 1; bytes between head and tail + mask + 1 are zero, and
 * so is the event_id of every record that is reserved and not committed; only the consumer moves
 * tail.
 */
#ifndef PEM_KRING_H
#define PEM_KRING_H

#include <pem/abi.h>

/* the catalogue's, and then those of probes: 144 KiB of each CPU's ring */
#define PEM_KRING_EVENTS_MAX 2048u
#define PEM_KRING_SLACK_BYTES 4096u /* also the longest record, its clock record not counted */
#define PEM_KRING_TRIES 4
#define PEM_KRING_CLOCK_ID 1u /* ids 0 to 15 are no event's */

/*
 * Is the process that runs on the CPU of the target? Unknown until the first switch or event there.
 */
#define PEM_KRING_CONTEXT_UNKNOWN 0u
#define PEM_KRING_CONTEXT_OUT 1u
#define PEM_KRING_CONTEXT_IN 2u
#define PEM_KRING_NO_THREAD (~0ull) /* no thread's logged_thread */

struct pem_kring {
	/* the producers' cache line */
	uint64_t head;
	uint64_t clock_epoch; /* (now >> 31) + 1 of the last record; 0: none yet */
	/* process id << 32 | thread id: whose the records after the last one are */
	uint64_t logged_thread;
	uint32_t context; /* PEM_KRING_CONTEXT_*, of process context_pid */
	uint32_t context_pid;
	uint32_t reserved0[8];
	/* the consumer's */
	uint64_t tail;
	uint64_t reserved1[7];
	uint8_t reserved2[4096 - 128];
	struct pem_cell cells[PEM_KRING_EVENTS_MAX]; /* by index in the table of kernel events */
	/* by the same index, for that event's program alone */
	uint64_t scratch[PEM_KRING_EVENTS_MAX];
};
#define PEM_KRING_DATA_OFFSET 151552u
PEM_STATIC_ASSERT(offsetof(struct pem_kring, tail) == 64, "tail has its own cache line");
PEM_STATIC_ASSERT(offsetof(struct pem_kring, cells) == 4096, "cells start the second page");
PEM_STATIC_ASSERT(sizeof(struct pem_kring) == PEM_KRING_DATA_OFFSET,
		  "data follows the scratch words");

struct pem_kring_clock {
	struct pem_record_header header; /* event_id PEM_KRING_CLOCK_ID */
	uint64_t monotonic_ns; /* of the next record of the same reservation */
};
PEM_STATIC_ASSERT(sizeof(struct pem_kring_clock) == 16, "a clock record is 16 bytes");

/*
 * Beside an event's action: the one context it is wanted in (PEM_ACTION_FILTER), and what more to
 * keep (PEM_ACTION_DISTRIBUTION).
 */
struct pem_kfilter {
	uint32_t pid; /* 0: any */
	uint32_t tid; /* 0: any */
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t distribution; /* PEM_DISTRIBUTION(...) */
};

/*
 * Constants of the programs, set before they are loaded; the whole of .rodata. So the verifier
 * knows them, and takes what an event without a predicate does not need out of its program.
 */
#define PEM_KTESTS_MAX 1024u /* a power of two */
#define PEM_KTREE_FOLLOW 1u /* and what they start */
#define PEM_KTREE_ALONE 2u
struct pem_kconfig {
	uint32_t ring_mask;
	uint32_t tree; /* not 0: the target is processes, whose ids are in the map pem_targets */
	uint32_t loads_void; /* not 0: programs may load arguments that are 'const void *' */
	/* not 0: helpers read no memory of the kernel's for programs: it is locked down */
	uint32_t no_reading;
	struct {
		uint16_t first; /* in test */
		uint16_t count; /* 0: no predicate */
	} predicate[PEM_KRING_EVENTS_MAX];
	struct pem_test test[PEM_KTESTS_MAX];
	struct pem_distribution zeros; /* that a program begins another with */
};
PEM_STATIC_ASSERT(sizeof(struct pem_kconfig) == 16 + 4 * PEM_KRING_EVENTS_MAX +
							40 * PEM_KTESTS_MAX +
							sizeof(struct pem_distribution),
		  "the programs' constants have no gaps");

/*
 * The control words, the whole of .bss: written by user space with plain stores, read by the
 * programs. An action of 0 means that the event is not wanted: its program ends after one load.
 * Else it is an action word as in abi.h, plus PEM_KACTION_TREE: only what runs in a process of the
 * target; intervals of scope 'system' are taken of all.
 */
#define PEM_KACTION_TREE 0x80u
/* In the module alone: its session's counters are read first. */
#define PEM_KACTION_COUNTERS 0x40u
struct pem_kcontrol {
	uint64_t action[PEM_KRING_EVENTS_MAX];
	/* events being logged: while it is not 0, context switches are logged too, */
	uint32_t logging;
	uint32_t context_flags; /* with these flags added to their own action */
	uint32_t targets_lost; /* processes of the target that the map had no room for */
	uint32_t reserved0;
	uint64_t values_lost; /* that statistics of probes lack (kmod/bpf/probe.bpf.h) */
	uint32_t reserved[10];
	struct pem_kfilter filter[PEM_KRING_EVENTS_MAX];
};
PEM_STATIC_ASSERT(sizeof(struct pem_kcontrol) == 64 + 24 * PEM_KRING_EVENTS_MAX, "control words");

#endif
