/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * module.h - the module source inside: what its files share
 *
 *	source.c   the plugin: demands, start and stop
 *	device.c   /dev/pem: can it be used, which events does it have, its ioctls
 *	sampling.c what the module samples itself, and the thread that runs the samplers
 *	pools.c    each CPU's pool: maps it, and reads statistics and counts from it
 *	drain.c    chunks -> packets
 *
 * Only the kernel writes the mapped memory. It is still checked like any shared memory: each value
 * is loaded once, compared with its bounds, and then used.
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

/* The state of draining one lane of a CPU. */
struct pem_module_lane {
	/* Sequence number of the current chunk, or of the next one if there is none. */
	uint64_t next_seq;
	uint64_t clock; /* of the last record read, delivered or not */
	uint64_t stated; /* discarded records that the stream has reported */
	uint32_t chunk; /* the current chunk */
	uint32_t offset; /* bytes of it that were read; 0: there is no current chunk */
};

struct pem_module_cpu {
	void *mapping; /* NULL: no pool yet */
	size_t bytes;
	struct pem_ring ring; /* The consumer reads it and never writes it. */
	struct pem_module_lane lanes[PEM_KMOD_LANES];
	/* It holds data that no module writes. This is logged once. */
	bool broken;
};

struct pem_source {
	struct pem_source_common common; /* first: demands.h */
	int fd;
	struct pem_module_cpu *cpus;
	uint32_t chunk_bytes;
	uint64_t next_map_ns; /* when to look again for pools of CPUs that came online */
	uint8_t *packet; /* a private copy of one chunk, chunk_bytes long */
	/* The demands' events and sets_thread, by id. Open addressing, at most half full. */
	const struct pem_event **by_id;
	uint32_t by_id_mask;
	const struct pem_event *sets_thread; /* may be NULL */
	bool has_tree;
	bool reads_counters; /* at logged tracepoints */
	bool samples_pages; /* of targets */
	bool needs_worker; /* the module samples pages or free memory in a thread of this process */
	struct pem_module_worker *worker; /* NULL: none */
	uint32_t pages_interval_us;
	uint64_t pages_region_bytes;
	bool started;
	atomic_bool stopped;
	/* Protects what the module is told. */
	pthread_mutex_t lock;
};

/* Write a sentence to error, which may be NULL. Returns code. */
int pem_module__fail(struct pem_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- device.c --- */

/*
 * Open the device, for this header's version. Returns a descriptor; -ENOENT if there is no device;
 * or another -errno. Errors have a sentence.
 */
int pem_module__open(struct pem_kmod_info *info, struct pem_error *error);
/* Can this user use the module? Returns 1, or 0 with reason. */
int pem_module__usable(struct pem_error *reason);
/*
 * Does the loaded module have an event in this kernel? Returns 1. Returns 0 with reason, or -ENOENT
 * with reason if the module lacks the event or is not loaded.
 */
int pem_module__has(uint32_t event_id, struct pem_error *reason);
int pem_module__take(const struct pem_source *source, uint32_t cpu, uint32_t *chunks,
		     uint32_t count);
int pem_module__free(const struct pem_source *source, uint32_t cpu, uint32_t chunk);

/* --- sampling.c --- */

/* Does the event come from this sampler of the module: "counters", "accessed" or "supply"? */
bool pem_module__is_sampled_by(const struct pem_event *event, const char *what);
/*
 * Open the counters. Call it before the module is told of events. Returns 0 or -errno, after
 * logging a sentence.
 */
int pem_module__open_counters(struct pem_source *source, const char *names);
/*
 * Read counters at context switches that are logged although no handle demands them. Call it after
 * the module was told of all events. Returns 0 or -errno.
 */
int pem_module__count_at_switches(const struct pem_source *source);
/* Sample a process's pages, or free memory. Both return 0 or -errno, after logging a sentence. */
int pem_module__sample_process(const struct pem_source *source, uint32_t pid);
int pem_module__watch_supply(const struct pem_source *source);
/*
 * Start the thread in which the module samples. It works from START on. Returns 0, or -errno if
 * there is no thread.
 */
int pem_module__start_worker(struct pem_source *source);
/*
 * End that thread. Call it after STOP. It waits for the thread, but only for a short time if a
 * sampled process blocks it. Such a thread is abandoned.
 */
void pem_module__end_worker(struct pem_source *source);

/* --- pools.c --- */

/*
 * Map the pools of CPUs that got one since the last call. Returns how many CPUs have a mapped pool
 * now. If none has, it returns the -errno of the first failure.
 */
int pem_module__map_pools(struct pem_source *source);
void pem_module__unmap_pools(struct pem_source *source);
/*
 * Check the mapping of one CPU's pool and use it. Its chunks may have at most chunk_bytes. Returns
 * 0 or -EINVAL. The caller unmaps it.
 */
int pem_module__use_pool(struct pem_module_cpu *cpu, void *mapping, size_t bytes,
			 uint32_t chunk_bytes);
/* Find an event's index in cells, or PEM_NO_INDEX. */
uint32_t pem_module__index_of(const struct pem_source *source, uint32_t event_id);
uint32_t pem_module__index(struct pem_source *source, struct pem_source_demand *demand);
/* Find an event's cell in one lane. NULL: there is none. */
const struct pem_cell *pem_module__cell(const struct pem_module_cpu *cpu, uint32_t lane,
					uint32_t index);
/* Add the counts of all lanes of all CPUs. */
void pem_module__count(const struct pem_source *source, uint32_t index,
		       struct pem_balance *balance);

/* --- drain.c --- */

/* Build the table of events by id. Call it before the first drain. Returns 0 or -ENOMEM. */
int pem_module__index_events(struct pem_source *source);

/*
 * Give the records in the CPUs' chunks to the sink. final: the module has stopped. Returns 0, or
 * the first -errno of the sink.
 */
int pem_module__drain(struct pem_source *source, const struct pem_source_sink *sink, bool final);

#endif
