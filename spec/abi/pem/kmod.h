/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * kmod.h - what user space says to pem.ko: ioctls and mappings of /dev/pem
 *
 * Not here: what lies in a mapping (abi.h: a pool), who fills it (kmod/), who drains it
 * (libpem/sources/module).
 *
 * An open file is a session, and nobody else's:
 *
 *	open -> INFO, EVENTS -> SETUP -> EVENT, TARGET -> START -> mmap, poll, TAKE, FREE, EVENT,
 *	TARGET, WORK -> STOP -> close
 *
 * SETUP makes a pool for each CPU that is online, and for each that comes online later, on the
 * CPU's own memory node. It is a file of abi.h (struct pem_pool_header, ...), and its lanes are
 * depths of nesting: lane 1 + d is written by a probe that interrupted d others on that CPU. Lane 0
 * counts what found no lane. The index of an event in event_id[] is the same in all CPUs' pools.
 * What a CPU without a pool raises counts in lane 0 of another one's. Mappings are read-only: what
 * a consumer changes it changes by ioctl, and the module believes nothing that it did not write
 * itself. START may follow STOP.
 *
 * Records carry no process or thread. One of another thread than the record before it on its CPU is
 * preceded by one of the event that sets threads (OS::Sched::Switch), as in a BPF ring (kring.h):
 * at the start of logging, after a loss, after exec; and every chunk begins with one. While any
 * event is logged so are context switches, those of the target with TREE.
 *
 * Every structure begins with its size, as its user knows it: a smaller one is an older user's,
 * what it lacks is 0; of a larger one the rest has to be 0 (E2BIG). Fields called reserved have to
 * be 0 (EINVAL). Errors of all: EINVAL, EFAULT, ENOTTY (an ioctl this module does not know), EBUSY
 * (not in this state of the session), ENOMEM, EINTR (a signal came while it waited for another
 * thread's ioctl, or for memory). open(): EMFILE (64 of the user's are; the ids of his user
 * namespaces are his). mmap(): EBUSY (before SETUP), ENXIO (this CPU has no pool), EINVAL (beyond a
 * pool, or MAP_PRIVATE), EPERM (to write or execute).
 *
 * Whoever may open the device sees what all processes do, as with CAP_PERFMON: among the fields are
 * addresses of the kernel, whatever kernel.kptr_restrict says. Processes and threads are named to
 * the module by their numbers in the caller's pid namespace; in records they have those of the
 * first one, as for BPF.
 */
#ifndef PEM_KMOD_ABI_H
#define PEM_KMOD_ABI_H

#include <pem/abi.h>

#ifdef __KERNEL__
#include <linux/ioctl.h>
#else
#include <sys/ioctl.h>
#endif

#define PEM_KMOD_DEVICE "/dev/pem"
/* counts up when something here changes its meaning, not when it grows */
#define PEM_KMOD_VERSION 2u
#define PEM_KMOD_LANES 5u /* of each CPU's pool: lane 0 and four depths */
#define PEM_KMOD_CHUNK_BYTES_MIN 8192u
#define PEM_KMOD_CHUNK_BYTES_MAX (1u << 20)
#define PEM_KMOD_CHUNKS_MIN 8u
#define PEM_KMOD_CHUNKS_MAX 65536u
/* Where a CPU's pool lies for mmap(); its length is total_bytes of its header, at most. */
#define PEM_KMOD_MAP_SHIFT 36
#define PEM_KMOD_MAP_OFFSET(cpu) ((uint64_t)(cpu) << PEM_KMOD_MAP_SHIFT)

struct pem_kmod_info {
	uint32_t size;
	uint32_t version; /* PEM_KMOD_VERSION of the module */
	uint32_t event_count; /* of EVENTS */
	uint32_t cpu_count; /* CPUs have numbers below it */
	uint32_t features; /* PEM_KMOD_FEATURE_* */
	uint32_t reserved;
	/* of memory for all sessions of a user without CAP_SYS_RESOURCE; 0: none */
	uint64_t limit_bytes;
	uint64_t used_bytes; /* of it */
	/* Of this session: */
	uint64_t statistics_lost; /* values that statistics lack: raised where there was no lane */
	uint32_t targets_lost; /* processes started by the target that it had no room for */
	uint32_t reserved1;
};

/* An event that the module was built with. */
struct pem_kmod_listed {
	uint32_t event_id;
	uint32_t available; /* 1: this kernel has its tracepoint and the module a probe for it */
	/*
	 * "sched:sched_switch"; "": the module's own event, or no tracepoint that its headers
	 * declare
	 */
	char tracepoint[56];
};
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_listed) == 64, "a listed event is 64 bytes");

struct pem_kmod_list {
	uint32_t size;
	uint32_t count; /* in: room in entries; out: how many were written */
	uint32_t first; /* the first one wanted */
	uint32_t reserved;
	uint64_t entries; /* struct pem_kmod_listed * */
};

#define PEM_KMOD_OVERWRITE 1u /* a full pool reclaims its oldest chunk */
#define PEM_KMOD_TREE 2u /* events count in processes of TARGET, and what these start */
#define PEM_KMOD_ALONE 4u /* with TREE: not what they start */
struct pem_kmod_setup {
	uint32_t size;
	uint32_t flags;
	uint32_t chunk_bytes; /* a power of two */
	/* of each CPU; EINVAL: its pool would not fit into PEM_KMOD_MAP_SHIFT */
	uint32_t chunk_count;
	uint32_t watermark; /* poll() reports a CPU with so many full chunks; 0: half of them */
	uint32_t reserved;
};

/*
 * What is wanted of an event from now on. Before START it is kept for then. ENOENT: none such;
 * EOPNOTSUPP: not in this kernel.
 */
struct pem_kmod_event {
	uint32_t size;
	uint32_t event_id;
	/* PEM_ACTION(), flags LOG, STAT (in an epoch above 0) and WIDE; no flags: nothing */
	uint64_t action;
	uint32_t pid; /* of a process; 0: any; ESRCH: no such */
	uint32_t tid; /* of a thread; 0: any; ESRCH: no such */
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t distribution; /* with PEM_ACTION_DISTRIBUTION: PEM_DISTRIBUTION() */
	uint64_t tests; /* struct pem_test *, copied; with PEM_KMOD_KEEP_TESTS not looked at */
	uint32_t test_count; /* 0: no predicate */
	uint32_t flags; /* PEM_KMOD_KEEP_* */
};
#define PEM_KMOD_KEEP_TESTS 1u /* change action and wide alone: pid, tid, cpu and tests stay */
/* read COUNTERS at each of them, whether itself is logged or not */
#define PEM_KMOD_READ_COUNTERS 2u

/* ESRCH: no such process. */
struct pem_kmod_target {
	uint32_t size;
	uint32_t pid;
};

/*
 * TAKE: full chunks of a CPU, the oldest first, which are the caller's until FREE; on error none
 * is. FREE: if one is not the caller's (EINVAL), or the list can't be read on (EFAULT), those
 * before it are free.
 */
struct pem_kmod_chunks {
	uint32_t size;
	uint32_t cpu;
	uint32_t count; /* TAKE, in: room; out: how many were taken. FREE: how many */
	uint32_t flags; /* FREE: PEM_KMOD_PUT_BACK */
	uint64_t chunks; /* uint32_t *: their indices */
};

/*
 * COUNTERS, once in a session: to be read at events with PEM_KMOD_READ_COUNTERS, as
 * HW::HWPerf::HPMsAtEvent, if that one is wanted. Each is opened and pinned on each CPU, which
 * needs what perf_event_open() of a CPU needs: CAP_PERFMON, or kernel.perf_event_paranoid below 1
 * (EACCES). ENOSPC: the hardware has no room for it; EOPNOTSUPP: it is none of a CPU, or a
 * tracepoint, breakpoint or probe; else as perf_event_open().
 */
#define PEM_KMOD_COUNTERS_MAX 8u
#define PEM_KMOD_EXCLUDE_USER 1u
#define PEM_KMOD_EXCLUDE_KERNEL 2u
struct pem_kmod_counter {
	uint32_t type;
	uint32_t flags; /* PEM_KMOD_EXCLUDE_* */
	uint64_t config;
	uint64_t config1;
	uint64_t config2;
};
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_counter) == 32, "a counter is 32 bytes");

struct pem_kmod_counters {
	uint32_t size;
	uint32_t count;
	uint64_t counters; /* struct pem_kmod_counter * */
	uint32_t failed; /* out: on error, the index of the first that can't be had */
	uint32_t reserved;
};

/*
 * ACCESSED: sample a process by the accessed bits of its page tables, as OS::Pages::Region and
 * OS::Pages::Pass, if wanted. Another one for the same process replaces it. It needs what reading
 * the process's memory needs (EPERM): the same user and group and no fewer capabilities, or
 * CAP_SYS_PTRACE. ESRCH: no such process; ENOSPC: the session samples 16 others; EAGAIN: the
 * process has been executing another program for a second and has not ended that. It ends with the
 * process, and when that executes what the user may not read.
 */
struct pem_kmod_accessed {
	uint32_t size;
	uint32_t pid;
	uint32_t interval_us; /* at least 1000; 0: no more, and all below is 0 */
	uint32_t reserved;
	uint64_t region_bytes; /* a power of two, from a page to 2^40 */
	uint64_t from, to; /* addresses, multiples of a page; to 0: all above */
};

/* SUPPLY: look at free memory, as OS::Pages::Free, if wanted. */
struct pem_kmod_supply {
	uint32_t size;
	uint32_t interval_us; /* at least 1000; 0: no more */
	uint32_t flags; /* PEM_KMOD_NOW */
	uint32_t reserved;
};
/* once, before it returns; the session runs, and interval_us is 0 and does not change */
#define PEM_KMOD_NOW 1u

PEM_STATIC_ASSERT(sizeof(struct pem_kmod_info) == 56, "INFO is 56 bytes");
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_list) == 24, "EVENTS is 24 bytes");
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_setup) == 24, "SETUP is 24 bytes");
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_event) == 48, "EVENT is 48 bytes");
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_target) == 8, "TARGET is 8 bytes");
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_chunks) == 24, "TAKE and FREE are 24 bytes");
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_counters) == 24, "COUNTERS is 24 bytes");
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_accessed) == 40, "ACCESSED is 40 bytes");
PEM_STATIC_ASSERT(sizeof(struct pem_kmod_supply) == 16, "SUPPLY is 16 bytes");

#define PEM_KMOD_PUT_BACK 1u /* they are full again, not free: a snapshot */

#define PEM_KMOD_INFO _IOWR('P', 0x00, struct pem_kmod_info)
#define PEM_KMOD_EVENTS _IOWR('P', 0x01, struct pem_kmod_list)
#define PEM_KMOD_SETUP _IOW('P', 0x02, struct pem_kmod_setup)
#define PEM_KMOD_EVENT _IOW('P', 0x03, struct pem_kmod_event)
#define PEM_KMOD_TARGET _IOW('P', 0x04, struct pem_kmod_target)
#define PEM_KMOD_START _IO('P', 0x05)
/*
 * No probe runs any more when it returns, and chunks that hold records are full: TAKE gets them
 * all.
 */
#define PEM_KMOD_STOP _IO('P', 0x06)
#define PEM_KMOD_TAKE _IOWR('P', 0x07, struct pem_kmod_chunks)
#define PEM_KMOD_FREE _IOW('P', 0x08, struct pem_kmod_chunks)
#define PEM_KMOD_COUNTERS _IOWR('P', 0x09, struct pem_kmod_counters)
#define PEM_KMOD_ACCESSED _IOW('P', 0x0a, struct pem_kmod_accessed)
#define PEM_KMOD_SUPPLY _IOW('P', 0x0b, struct pem_kmod_supply)
/*
 * WORK: the calling thread does what ACCESSED and SUPPLY ask for, as long as the session runs: the
 * module has no thread of its own, so without it nothing is sampled. It returns 0 when STOP is
 * called. EINTR: a signal came, and it may be called again; EBUSY: the session does not run, or
 * another thread works for it. One that is closed meanwhile is released when it returns.
 */
#define PEM_KMOD_WORK _IO('P', 0x0c)

#endif
