/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * kmod.h - ioctls and mappings of /dev/pem: how user space talks to pem.ko
 *
 * Not here: the contents of a mapping (abi.h: a pool), how it is filled (kmod/) and drained
 * (libpem/sources/module).
 *
 * An open file is one session. No other open file shares it:
 *
 *	open -> INFO, EVENTS -> SETUP -> EVENT, TARGET -> START -> mmap, poll, TAKE, FREE, EVENT,
 *	TARGET, WORK -> STOP -> close
 *
 * SETUP makes a pool for each CPU that is online, on the CPU's own memory node. A CPU that comes
 * online later gets its pool then. A pool is a file of abi.h (struct pem_pool_header, ...). Its
 * lanes are depths of nesting: a probe that interrupted d others on its CPU writes to lane 1 + d.
 * Lane 0 counts events that found no lane. The index of an event in event_id[] is the same in all
 * pools. Events on a CPU without a pool count in lane 0 of another CPU's pool.
 *
 * Mappings are read-only. A consumer changes a pool by ioctl, and the module trusts nothing that it
 * did not write itself. START may follow STOP.
 *
 * Records carry no process or thread. If a record's thread differs from that of the record before
 * it on its CPU, a record of the event that sets threads (OS::Sched::Switch) precedes it, as in a
 * BPF ring (kring.h). This happens at the start of logging, after a loss and after exec. Every
 * chunk begins with such a record. While any event is logged, context switches are logged too; with
 * TREE, only those of the target.
 *
 * Every structure begins with its size, as the calling program knows it. A smaller structure comes
 * from an older program: the members that it lacks are 0. In a larger structure the rest has to be
 * 0 (E2BIG). Members called reserved have to be 0 (EINVAL).
 *
 * Errors of every ioctl: EINVAL, EFAULT, ENOTTY (this module does not know the ioctl), EBUSY (not
 * allowed in this state of the session), ENOMEM, EINTR (a signal came while the call waited for
 * another thread's ioctl, or for memory). open(): EMFILE (the user has 64 sessions open; the ids of
 * the user's namespaces count as the user's). mmap(): EBUSY (before SETUP), ENXIO (this CPU has no
 * pool), EINVAL (beyond a pool, or MAP_PRIVATE), EPERM (to write or execute).
 *
 * A process that may open the device sees what all processes do, as with CAP_PERFMON. Fields
 * contain addresses of the kernel, whatever kernel.kptr_restrict says. Callers name processes and
 * threads by their numbers in the caller's pid namespace. Records have their numbers in the first
 * pid namespace, as for BPF.
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
/* Grows by 1 when something here changes its meaning, not when a structure grows. */
#define PEM_KMOD_VERSION 2u
#define PEM_KMOD_LANES 5u /* of each CPU's pool: lane 0 and four depths */
#define PEM_KMOD_CHUNK_BYTES_MIN 8192u
#define PEM_KMOD_CHUNK_BYTES_MAX (1u << 20)
#define PEM_KMOD_CHUNKS_MIN 8u
#define PEM_KMOD_CHUNKS_MAX 65536u
/*
 * Offset of a CPU's pool for mmap(). A mapping is at most as long as total_bytes of the pool's
 * header.
 */
#define PEM_KMOD_MAP_SHIFT 36
#define PEM_KMOD_MAP_OFFSET(cpu) ((uint64_t)(cpu) << PEM_KMOD_MAP_SHIFT)

struct pem_kmod_info {
	uint32_t size;
	uint32_t version; /* PEM_KMOD_VERSION of the module */
	uint32_t event_count; /* Events that EVENTS lists */
	uint32_t cpu_count; /* All numbers of CPUs are lower */
	uint32_t features; /* PEM_KMOD_FEATURE_* */
	uint32_t reserved;
	/*
	 * Memory that all sessions of a user without CAP_SYS_RESOURCE may take together; 0: no
	 * limit.
	 */
	uint64_t limit_bytes;
	uint64_t used_bytes; /* Memory of limit_bytes that is taken */
	/* The members from here on are of this session. */
	uint64_t statistics_lost; /* Values missing in statistics, because there was no lane */
	/* Processes started by the target that found no room in the set of processes. */
	uint32_t targets_lost;
	uint32_t reserved1;
};

/* An event that the module was built with. */
struct pem_kmod_listed {
	uint32_t event_id;
	uint32_t available; /* 1: this kernel has its tracepoint and the module a probe for it */
	/*
	 * Such as "sched:sched_switch". "": the module's own event, or its kernel headers declare
	 * no tracepoint.
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
#define PEM_KMOD_TREE 2u /* Events count in the processes of TARGET and in all that they start */
#define PEM_KMOD_ALONE 4u /* With TREE: not in processes that these start */
struct pem_kmod_setup {
	uint32_t size;
	uint32_t flags;
	uint32_t chunk_bytes; /* a power of two */
	/* Chunks of each CPU. EINVAL: the pool would not fit into PEM_KMOD_MAP_SHIFT. */
	uint32_t chunk_count;
	uint32_t watermark; /* poll() reports a CPU that has so many full chunks; 0: half of all */
	uint32_t reserved;
};

/*
 * EVENT: the demand on an event from now on. Before START it is kept until then. ENOENT: the module
 * has no such event. EOPNOTSUPP: this kernel does not have it.
 */
struct pem_kmod_event {
	uint32_t size;
	uint32_t event_id;
	/*
	 * PEM_ACTION(), with flags LOG, STAT (in an epoch above 0) and DISTRIBUTION. No flags: no
	 * demand.
	 */
	uint64_t action;
	uint32_t pid; /* Process; 0: any. ESRCH: there is none. */
	uint32_t tid; /* Thread; 0: any. ESRCH: there is none. */
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t distribution; /* with PEM_ACTION_DISTRIBUTION: PEM_DISTRIBUTION() */
	uint64_t tests; /* struct pem_test *, copied. Not read with PEM_KMOD_KEEP_TESTS. */
	uint32_t test_count; /* 0: no predicate */
	uint32_t flags; /* PEM_KMOD_KEEP_* */
};
/* Change only action and distribution: pid, tid, cpu and tests stay. */
#define PEM_KMOD_KEEP_TESTS 1u
/*
 * Read the counters of COUNTERS at each of these events, whether the event itself is logged or not.
 */
#define PEM_KMOD_READ_COUNTERS 2u

/* TARGET. ESRCH: there is no such process. */
struct pem_kmod_target {
	uint32_t size;
	uint32_t pid;
};

/*
 * TAKE takes full chunks of a CPU, the oldest first. They belong to the caller until FREE. On error
 * it takes none. FREE frees chunks of the caller. If one is not the caller's (EINVAL), or the list
 * can't be read (EFAULT), the chunks before it are free.
 */
struct pem_kmod_chunks {
	uint32_t size;
	uint32_t cpu;
	/* TAKE, in: room in the list; out: chunks taken. FREE: chunks in the list. */
	uint32_t count;
	uint32_t flags; /* FREE: PEM_KMOD_PUT_BACK */
	uint64_t chunks; /* uint32_t *: the chunks' indices */
};

/*
 * COUNTERS, once in a session: set the counters that are read at events with
 * PEM_KMOD_READ_COUNTERS. They are recorded as HW::HWPerf::HPMsAtEvent, if that event is wanted.
 * The module opens and pins each counter on each CPU. This needs what perf_event_open() of a CPU
 * needs: CAP_PERFMON, or kernel.perf_event_paranoid below 1 (EACCES). ENOSPC: the hardware has no
 * room for the counter. EOPNOTSUPP: it is no counter of a CPU, or it is a tracepoint, breakpoint or
 * probe. Else the errors of perf_event_open().
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
 * ACCESSED: page sampling of a process, by the accessed bits of its page tables. Results are the
 * events OS::Pages::Region and OS::Pages::Pass, if wanted. A second ACCESSED for a process replaces
 * the first. It needs what reading the process's memory needs (EPERM): the same user and group and
 * no fewer capabilities, or CAP_SYS_PTRACE. ESRCH: no such process. ENOSPC: the session samples 16
 * others. EAGAIN: the process has been executing another program for a second, and that has not
 * ended. Sampling ends with the process, and when the process executes a program that the user may
 * not read.
 */
struct pem_kmod_accessed {
	uint32_t size;
	uint32_t pid;
	uint32_t interval_us; /* At least 1000. 0: stop sampling; all members below are 0. */
	uint32_t reserved;
	uint64_t region_bytes; /* a power of two, from a page to 2^40 */
	uint64_t from, to; /* Addresses, multiples of a page. to 0: all addresses from from on. */
};

/* SUPPLY: sample free memory, as the event OS::Pages::Free, if wanted. */
struct pem_kmod_supply {
	uint32_t size;
	uint32_t interval_us; /* at least 1000; 0: stop sampling */
	uint32_t flags; /* PEM_KMOD_NOW */
	uint32_t reserved;
};
/*
 * Sample once, before the ioctl returns. The session has to run. interval_us is 0, and the interval
 * set before stays.
 */
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

#define PEM_KMOD_PUT_BACK 1u /* The chunks become full again, not free: for a snapshot */

#define PEM_KMOD_INFO _IOWR('P', 0x00, struct pem_kmod_info)
#define PEM_KMOD_EVENTS _IOWR('P', 0x01, struct pem_kmod_list)
#define PEM_KMOD_SETUP _IOW('P', 0x02, struct pem_kmod_setup)
#define PEM_KMOD_EVENT _IOW('P', 0x03, struct pem_kmod_event)
#define PEM_KMOD_TARGET _IOW('P', 0x04, struct pem_kmod_target)
#define PEM_KMOD_START _IO('P', 0x05)
/*
 * When STOP returns no probe runs any more, and all chunks that hold records are full: TAKE gets
 * all.
 */
#define PEM_KMOD_STOP _IO('P', 0x06)
#define PEM_KMOD_TAKE _IOWR('P', 0x07, struct pem_kmod_chunks)
#define PEM_KMOD_FREE _IOW('P', 0x08, struct pem_kmod_chunks)
#define PEM_KMOD_COUNTERS _IOWR('P', 0x09, struct pem_kmod_counters)
#define PEM_KMOD_ACCESSED _IOW('P', 0x0a, struct pem_kmod_accessed)
#define PEM_KMOD_SUPPLY _IOW('P', 0x0b, struct pem_kmod_supply)
/*
 * WORK: the calling thread does the sampling of ACCESSED and SUPPLY as long as the session runs.
 * The module has no thread of its own, so without WORK nothing is sampled. It returns 0 when STOP
 * is called. EINTR: a signal came; WORK may be called again. EBUSY: the session does not run, or
 * another thread works for it. A session whose file is closed meanwhile is released when WORK
 * returns.
 */
#define PEM_KMOD_WORK _IO('P', 0x0c)

#endif
