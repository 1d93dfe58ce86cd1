/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kring.h - the per-CPU byte ring that BPF programs fill and the kernel source drains
 *
 * Not here: the programs (kmod/bpf), loading and draining (libpem/sources/kernel).
 *
 * The rings are one mappable BPF array map. Element i belongs to CPU i and is value_size bytes
 * long:
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
 * head and tail run free; position p lies at data + (p & mask). A record that starts before the end
 * of data may end in the slack. The bytes that it would have taken at the start stay unused in that
 * lap. So records are contiguous without filling, and the verifier needs to know only the mask.
 *
 * A record takes its event's ring_bytes: the longest it can be, a multiple of 8. Strings have fixed
 * places one after the other, and the consumer moves them together. The header's clock_low is the
 * low half of CLOCK_MONOTONIC in ns. If now >> 31 of a record differs from that of the record
 * before it, a struct pem_kring_clock with all 64 bits precedes the record, within one reservation.
 * So a consumer decodes exactly after any delay.
 *
 * Records carry no process or thread. They belong to the thread that the last context switch in the
 * ring went to. If the current thread is not logged_thread, a switch record to the current thread
 * precedes the record, in one reservation. That switch counts as produced like any other. Reasons:
 * logging began in the middle, the switch was discarded, exec renamed the thread, or the kernel did
 * not report the switch, as happens.
 *
 * The producers of a ring are programs on one CPU. One program may interrupt another (interrupt,
 * NMI, fault), but none interrupts itself: the kernel refuses to run a program within itself on a
 * CPU and counts it (recursion_misses). So head is moved by compare-and-swap. The data of one event
 * (its cell) is changed by plain stores. A producer discards its record, and counts it, if it finds
 * no room, or if it loses the race PEM_KRING_TRIES times after the first.
 *
 * Ordering: architecture.md (share/doc/pem), Barriers. A barrier has the letters of its pair:
 * capital where a value is published, small where it is read.
 *
 * Invariants:
 * - tail <= head <= tail + mask + 1.
 * - Bytes between head and tail + mask + 1 are zero.
 * - The event_id of every record that is reserved and not committed is zero.
 * - Only the consumer moves tail.
 */
#ifndef PEM_KRING_H
#define PEM_KRING_H

#include <pem/abi.h>
#include <pem/internal.h>

/* Events of the catalogue, then ad-hoc probes: their cells take 144 KiB of each CPU's ring. */
#define PEM_KRING_EVENTS_MAX 2048u
#define PEM_KRING_SLACK_BYTES 4096u /* Also the longest record, without its clock record */
#define PEM_KRING_TRIES 4
#define PEM_KRING_CLOCK_ID 1u /* ids 0 to 15 are no event's */

/*
 * Whether the target includes the process that runs on the CPU. Unknown until the first switch or
 * event there.
 */
#define PEM_KRING_CONTEXT_UNKNOWN 0u
#define PEM_KRING_CONTEXT_OUT 1u
#define PEM_KRING_CONTEXT_IN 2u
#define PEM_KRING_NO_THREAD (~0ull) /* logged_thread of no thread */

struct pem_kring {
	/* the producers' cache line */
	uint64_t head;
	uint64_t clock_epoch; /* (now >> 31) + 1 of the last record; 0: none yet */
	/* Process id << 32 | thread id. Records after the last one belong to this thread. */
	uint64_t logged_thread;
	uint32_t context; /* PEM_KRING_CONTEXT_*, of process context_pid */
	uint32_t context_pid;
	uint64_t internal_calls; /* system calls of pem's own in observed programs (internal.h) */
	uint32_t reserved0[6];
	/* the consumer's */
	uint64_t tail;
	uint64_t reserved1[7];
	uint8_t reserved2[4096 - 128];
	struct pem_cell cells[PEM_KRING_EVENTS_MAX]; /* by index in the table of kernel events */
	/* Indexed like cells. Only that event's program uses the word. */
	uint64_t scratch[PEM_KRING_EVENTS_MAX];
};
#define PEM_KRING_DATA_OFFSET 151552u
PEM_STATIC_ASSERT(offsetof(struct pem_kring, tail) == 64, "tail has its own cache line");
PEM_STATIC_ASSERT(offsetof(struct pem_kring, cells) == 4096, "cells start the second page");
PEM_STATIC_ASSERT(sizeof(struct pem_kring) == PEM_KRING_DATA_OFFSET,
		  "data follows the scratch words");

struct pem_kring_clock {
	struct pem_record_header header; /* event_id PEM_KRING_CLOCK_ID */
	uint64_t monotonic_ns; /* Clock of the next record in this reservation */
};
PEM_STATIC_ASSERT(sizeof(struct pem_kring_clock) == 16, "a clock record is 16 bytes");

/*
 * Belongs to an event's action: the only context in which the event is wanted (PEM_ACTION_FILTER),
 * and the distribution to keep (PEM_ACTION_DISTRIBUTION).
 */
struct pem_kfilter {
	uint32_t pid; /* 0: any */
	uint32_t tid; /* 0: any */
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t distribution; /* PEM_DISTRIBUTION(...) */
};

/*
 * The programs' constants, the whole of .rodata. They are set before the programs are loaded. So
 * the verifier knows them, and removes the code that an event without a predicate does not need.
 */
#define PEM_KTESTS_MAX 1024u /* a power of two */
#define PEM_KTREE_FOLLOW 1u /* The target includes processes that its processes start */
#define PEM_KTREE_ALONE 2u
#define PEM_KCALLS_MAX 512u
/* System calls with an address in their arguments that is no descriptor's */
enum { PEM_KCALL_CONNECT, PEM_KCALL_SENDTO, PEM_KCALL_SENDMSG, PEM_KCALLS_ADDRESS };
struct pem_kconfig {
	uint32_t ring_mask;
	uint32_t tree; /* Not 0: the target is processes. Their ids are in the map pem_targets. */
	uint32_t loads_void; /* not 0: programs may load arguments that are 'const void *' */
	/* Not 0: the kernel is locked down, so helpers read no kernel memory for programs. */
	uint32_t no_reading;
	uint32_t by_process; /* not 0: statistics are kept in the map pem_processes, too */
	uint32_t reserved;
	struct {
		uint16_t first; /* in test */
		uint16_t count; /* 0: no predicate */
	} predicate[PEM_KRING_EVENTS_MAX];
	struct pem_test test[PEM_KTESTS_MAX];
	struct pem_distribution zeros; /* A program copies it to begin a distribution */
	/* A bit for each system call by number: its first argument is a file descriptor */
	uint64_t descriptor_calls[PEM_KCALLS_MAX / 64];
	/* The same: its first, or its second argument is a path */
	uint64_t path_calls[2][PEM_KCALLS_MAX / 64];
	uint8_t joined[PEM_KRING_EVENTS_MAX]; /* not 0: the event's joint program serves it */
	uint32_t gates[PEM_KRING_EVENTS_MAX]; /* PEM_GATES() of the event's predicate (gate.h) */
	uint32_t has_gates; /* not 0: an event has gates */
	uint32_t session_id; /* the session whose gates they are */
	uint64_t address_call[PEM_KCALLS_ADDRESS]; /* the numbers of PEM_KCALL_* */
	struct pem_start_calls start_calls;
	/*
	 * The beginning of the path of pem's libraries, without NUL. Length 0: none is recognized.
	 */
	uint64_t library_path_bytes;
	uint64_t library_path[PEM_LIBRARY_PATH_BYTES / 8];
};
PEM_STATIC_ASSERT(sizeof(struct pem_kconfig) ==
			  24 + 4 * PEM_KRING_EVENTS_MAX + 40 * PEM_KTESTS_MAX +
				  sizeof(struct pem_distribution) + 3 * PEM_KCALLS_MAX / 8 +
				  5 * PEM_KRING_EVENTS_MAX + 8 + 8 * PEM_KCALLS_ADDRESS +
				  sizeof(struct pem_start_calls) + 8 + PEM_LIBRARY_PATH_BYTES,
		  "the programs' constants have no gaps");

/*
 * A process's part of an event's statistic on one CPU, in the map pem_processes. Its key is the
 * event's index << 32 | the process's id; the id is 0 in the idle task.
 */
struct pem_kprocess {
	uint64_t tag; /* PEM_ACTION_TAG() of the action that the values belong to */
	uint64_t count;
	uint64_t sum;
};
/*
 * The map pem_inner_threads: the number outside of a thread that was started in an inner pid
 * namespace, by its number there.
 */
struct pem_inner_thread {
	uint32_t pid_namespace; /* inode */
	uint32_t tid;
};
struct pem_outer_thread {
	uint32_t tid;
	uint32_t uid; /* of its parent */
	uint64_t start_ns; /* CLOCK_MONOTONIC */
};
#define PEM_KINNER_MAX 16384u /* The map has room for so many, and forgets the oldest. */

#define PEM_KPROCESSES_MIN 2048u
#define PEM_KPROCESSES_MAX 16384u

/*
 * The control words, the whole of .bss. User space writes them with plain stores, the programs read
 * them. An action of 0 means that the event is not wanted: its program ends after one load. Any
 * other action is an action word as in abi.h, and may have PEM_KACTION_TREE. With that flag only
 * events in a process of the target count, but intervals of scope 'system' count in all processes.
 */
#define PEM_KACTION_TREE 0x80u
/* In the module only: the session's counters are read before the event. */
#define PEM_KACTION_COUNTERS 0x40u
struct pem_kcontrol {
	uint64_t action[PEM_KRING_EVENTS_MAX];
	/* Number of events being logged. While it is not 0, context switches are logged too. */
	uint32_t logging;
	uint32_t context_flags; /* Flags that are added to the action of context switches then */
	uint32_t targets_lost; /* Processes of the target for which the map had no room */
	uint32_t starting; /* Processes whose loader maps pem's libraries (the map pem_starts) */
	uint64_t values_lost; /* Values missing in statistics of probes (kmod/bpf/probe.bpf.h) */
	uint64_t told_epoch; /* What is told once is told again when it changes (files.bpf.h) */
	uint32_t reserved[8];
	struct pem_kfilter filter[PEM_KRING_EVENTS_MAX];
};
PEM_STATIC_ASSERT(sizeof(struct pem_kcontrol) == 64 + 24 * PEM_KRING_EVENTS_MAX, "control words");

#endif
