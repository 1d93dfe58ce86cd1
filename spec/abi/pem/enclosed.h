/* SPDX-License-Identifier: MIT */
/*
 * enclosed.h - how an enclosing probe (pem/probe.h) reads what libpem can measure in its thread
 *
 * Page faults and context switches come from memory that the kernel keeps for the thread: the
 * mapped page of a perf event that writes a record of fixed size for each of them. The position up
 * to which the kernel has written is then a count, and reading it takes no system call. struct
 * pem_thread has the address of that position as soon as libpem has opened the event, which it does
 * when a thread first asks. Everything else is asked of the library.
 *
 * Not here: clock and counts of executions, for which no library is needed.
 */
#ifndef PEM_ENCLOSED_H
#define PEM_ENCLOSED_H

#include <pem/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is measured. A number means the same for ever. */
enum pem_enclosed_kind {
	PEM_ENCLOSED_FAULTS = 0,
	PEM_ENCLOSED_SWITCHES = 1,
	PEM_ENCLOSED_LLC = 2, /* misses and references */
	PEM_ENCLOSED_COUNTER = 3, /* + the number of a counter, below PEM_ENCLOSED_COUNTER_MAX */
	PEM_ENCLOSED_CLOCK = 64, /* only to begin: the clock, where the thread may read it */
};
#define PEM_ENCLOSED_MAPPED 2u /* the kinds below this one are read from a mapped position */
#define PEM_ENCLOSED_COUNTER_MAX 16u

/* How a value was read. */
enum pem_enclosed_reading {
	PEM_ENCLOSED_NOT_READ = 0,
	PEM_ENCLOSED_READ_MAPPED = 1,
	PEM_ENCLOSED_READ_MAPPED_USER =
		2, /* as MAPPED, without what system calls of the thread do */
	PEM_ENCLOSED_READ_CALL = 3,
};

/* Where values are from; see pem_probe__begin. */
#define PEM_ENCLOSED_SOURCE_NONE 1u

/*
 * Begin to measure in this thread. values: room for 2 numbers, which the caller keeps for the end.
 * Returns where they are from, never 0: an even number is the address of a position, an odd one is
 * the library's choice; PEM_ENCLOSED_SOURCE_NONE: they could not be read, values are 0. At first in
 * a thread it opens what it reads from, and maps that.
 *
 * Async-signal-safe, keeps errno; may wait for the process lock of libpem, as the first event of a
 * thread does.
 */
__attribute__((visibility("default"))) uint64_t pem_probe__begin(uint32_t kind, uint64_t *values);
/*
 * End it. source and values: of begin; what was counted since then becomes values: of
 * PEM_ENCLOSED_LLC misses and references, else one number and 0. Returns enum pem_enclosed_reading;
 * PEM_ENCLOSED_NOT_READ: it is unknown, for instance because the processor has no such counter, or
 * begin was in the process that forked this one; values are 0 then. Async-signal-safe, keeps errno.
 */
__attribute__((visibility("default"))) uint32_t pem_probe__end(uint32_t kind, uint64_t source,
							       uint64_t *values);
/*
 * Say what a counter of this process counts, for measurements that begin later: the processor's own
 * numbers of event and mask, as its manual has them (arm64: the event alone). Returns 0; -EINVAL:
 * the counter's number is PEM_ENCLOSED_COUNTER_MAX or more. Any thread may call it;
 * async-signal-safe.
 */
__attribute__((visibility("default"))) int pem_probe__set_counter(uint32_t counter, uint32_t event,
								  uint32_t mask);

/* --- probes of languages that cannot use the macros of pem/probe.h --- */

/* The statements' names, as a number that means the same for ever. */
enum pem_enclosed_by {
	PEM_ENCLOSED_BY_CNT = 0,
	PEM_ENCLOSED_BY_LAT = 1,
	PEM_ENCLOSED_BY_TPT = 2,
	PEM_ENCLOSED_BY_FLT = 3,
	PEM_ENCLOSED_BY_CTXSW = 4,
	PEM_ENCLOSED_BY_LLC = 5,
	PEM_ENCLOSED_BY_PERFCNTR =
		6, /* + the number of a counter, below PEM_ENCLOSED_COUNTER_MAX */
};
#define PEM_ENCLOSED_OPEN_MAX 32u
#define PEM_ENCLOSED_SITE_MAX 64u

/*
 * Begin and end a probe, as PEM_X_PROBE_BEGIN(id, sc) and PEM_X_PROBE_END(id) of pem/probe.h do;
 * by: enum pem_enclosed_by. The pairs of a thread nest: leave ends the innermost of this kind and
 * id, and forgets those inside of it that were not left. leave without enter does nothing. At most
 * PEM_ENCLOSED_OPEN_MAX of a thread are open, and it has at most PEM_ENCLOSED_SITE_MAX of
 * different kinds and ids in all; further ones are not measured.
 *
 * Async-signal-safe, keep errno; the first call of a process registers the events, which may wait
 * for the process lock of libpem.
 */
__attribute__((visibility("default"))) void pem_probe__enter(uint32_t by, uint32_t id, uint32_t sc);
__attribute__((visibility("default"))) void pem_probe__leave(uint32_t by, uint32_t id);

#ifdef __cplusplus
}
#endif
#endif
