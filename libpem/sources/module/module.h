/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * module.h - the module source inside: what its files share
 *
 *	source.c   the plugin: demands, start and stop
 *	device.c   /dev/pem: can it be used, which events has it, its ioctls
 *	sampling.c what the module samples itself, and the thread in which it does
 *	pools.c    each CPU's pool: mapped, and statistics and counts read out of it
 *	drain.c    chunks -> packets
 *
 * What is mapped only the kernel writes. It is checked like any shared memory all the same: loaded
 * once, held against its bounds, then used.
 */
#ifndef PEM_SOURCES_MODULE_H
#define PEM_SOURCES_MODULE_H

#include "pool.h"
#include "source.h"
#include "sources/demands.h"

#include <pem/kmod.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What draining remembers of one lane of a CPU. */
struct pem_module_lane {
	uint64_t next_seq; /* of the chunk that is read next, or of the one in hand */
	uint64_t clock; /* of the last record read, handed on or not */
	uint64_t stated; /* records that the stream says were discarded */
	uint32_t chunk; /* in hand */
	uint32_t offset; /* read so far of it; 0: none is in hand */
};

struct pem_module_cpu {
	void *mapping; /* NULL: no pool yet */
	size_t bytes;
	struct pem_ring ring; /* to be read, never written */
	struct pem_module_lane lanes[PEM_KMOD_LANES];
	bool broken; /* it holds what no module wrote: said once */
};

struct pem_source {
	struct pem_source_common common; /* first: demands.h */
	int fd;
	struct pem_module_cpu *cpus;
	uint32_t chunk_bytes;
	uint64_t next_map_ns; /* when pools of CPUs that came online are looked for again */
	uint8_t *packet; /* chunk_bytes: a private copy of one */
	/* demands' and sets_thread; open addressing, half empty at least */
	const struct pem_event **by_id;
	uint32_t by_id_mask;
	const struct pem_event *sets_thread; /* may be NULL */
	bool has_tree;
	bool reads_counters; /* at tracepoints that are logged */
	bool samples_pages; /* of targets */
	bool needs_worker; /* the module samples pages or free memory in a thread of this process */
	struct pem_module_worker *worker; /* NULL: none */
	uint32_t pages_interval_us;
	uint64_t pages_region_bytes;
	bool started;
	atomic_bool stopped;
	pthread_mutex_t lock; /* of what the module is told */
};

/* Write an error's sentence; error may be NULL. Returns code. */
int pem_module__fail(struct pem_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- device.c --- */

/*
 * A descriptor of the device, of this header's version; -errno with a sentence: -ENOENT, it is not
 * there at all.
 */
int pem_module__open(struct pem_kmod_info *info, struct pem_error *error);
/* Can this user use it? 1; 0 with reason. */
int pem_module__usable(struct pem_error *reason);
/*
 * Does the module that is loaded have an event in this kernel? 1; else with reason: 0; -ENOENT, no,
 * or there is no module.
 */
int pem_module__has(uint32_t event_id, struct pem_error *reason);
int pem_module__take(const struct pem_source *source, uint32_t cpu, uint32_t *chunks,
		     uint32_t count);
int pem_module__free(const struct pem_source *source, uint32_t cpu, uint32_t chunk);

/* --- sampling.c --- */

/* Does the event come of a sampler of the module: "counters", "accessed" or "supply"? */
bool pem_module__is_sampled_by(const struct pem_event *event, const char *what);
/* Before events are told. 0, or -errno, said. */
int pem_module__open_counters(struct pem_source *source, const char *names);
/*
 * Switches that are logged though nobody asked for them; after all events are told. 0, or -errno.
 */
int pem_module__count_at_switches(const struct pem_source *source);
/* 0, or -errno, said. */
int pem_module__sample_process(const struct pem_source *source, uint32_t pid);
int pem_module__watch_supply(const struct pem_source *source);
/* The thread in which the module samples, from START on. 0, or -errno: there is none. */
int pem_module__start_worker(struct pem_source *source);
/*
 * After STOP. It waits for the thread, but not long for one that a sampled process holds up: that
 * one is left.
 */
void pem_module__end_worker(struct pem_source *source);

/* --- pools.c --- */

/*
 * Map the pools of CPUs that have got one. How many there are now; -errno of the first that can't
 * be mapped, if there is none.
 */
int pem_module__map_pools(struct pem_source *source);
void pem_module__unmap_pools(struct pem_source *source);
/*
 * Believe a mapping of a pool of one CPU, of chunks of so many bytes at most: 0, or -EINVAL.
 * Unmapping is left to the caller.
 */
int pem_module__use_pool(struct pem_module_cpu *cpu, void *mapping, size_t bytes,
			 uint32_t chunk_bytes);
/* An event's index in cells, or PEM_NO_INDEX. */
uint32_t pem_module__index_of(const struct pem_source *source, uint32_t event_id);
uint32_t pem_module__index(struct pem_source *source, struct pem_source_demand *demand);
/* An event's cell in one lane; NULL: there is none. */
const struct pem_cell *pem_module__cell(const struct pem_module_cpu *cpu, uint32_t lane,
					uint32_t index);
/* Add all lanes of all CPUs. */
void pem_module__count(const struct pem_source *source, uint32_t index,
		       struct pem_balance *balance);

/* --- drain.c --- */

/* Note which events there may be: before the first drain. 0, or -ENOMEM. */
int pem_module__index_events(struct pem_source *source);

/* Hand on what CPUs' chunks hold. final: the module has stopped. 0, or the sink's first -errno. */
int pem_module__drain(struct pem_source *source, const struct pem_source_sink *sink, bool final);

#endif
