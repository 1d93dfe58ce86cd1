/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source.h - the plugin interface of sources: where events come from when not from a stub
 *
 * A source is a shared object 'source-NAME.so' in the plugin folder; it defines const struct
 * pem_source_ops pem_source. Each keeps its libraries (libbpf, libpfm4) out of libpem, which is
 * preloaded into programs. One instance serves one session. All calls come from the session's
 * thread, read_statistic and set_action also from synchronous callbacks in other threads.
 */
#ifndef PEM_SOURCE_H
#define PEM_SOURCE_H

#include "context.h"

#include <pem/pem.h>

#include <stdbool.h>

#define PEM_SOURCE_ABI_VERSION 4u

/* One event that the session wants from the source. */
struct pem_source_event {
	const struct pem_event *event;
	struct pem_context context; /* pid or tid PEM_ANY: the whole target */
	uint64_t action; /* PEM_ACTION(...): LOG, STAT and WIDE only */
	/*
	 * A predicate on its fields, checked by pem_tests__valid; NULL: none. Lives as long as the
	 * session.
	 */
	const struct pem_test *tests;
	uint32_t test_count;
	uint32_t distribution; /* as keep's; 0: nothing */
};

/* Where a source puts packets, and what it needs to know of time. */
struct pem_source_sink {
	void *arg;
	/*
	 * Append packets to a stream: one; or several, each at the multiple of 8 behind the content
	 * of the one before, and bytes then is a multiple of 8. name: the stream's file name, such
	 * as "k_0". The source fills timestamp_begin, timestamp_end, content_size, events_discarded
	 * (so far, in this stream), pid, tid, cpu, source, record_count and the records; the sink
	 * the rest. Records' clocks are already pem_clock() values. 0, or -errno: nothing was
	 * written and the records are counted as discarded by the sink.
	 */
	int (*write)(void *arg, const char *name, struct pem_packet *packet, size_t bytes);
	/* pem_clock() at a CLOCK_MONOTONIC time. */
	uint64_t (*clock_at)(void *arg, uint64_t monotonic_ns);
};

struct pem_source;
struct pem_distribution; /* pem/distribution.h */

struct pem_source_config {
	size_t size;
	pid_t root; /* observe this process (alive) and its descendants to come; 0: see contexts */
	int whole_machine; /* 1, with root 0: observe whatever runs */
	const struct pem_source_event *events;
	size_t event_count;
	int root_runs; /* 1: root was attached to; 0: it is about to exec */
	int no_follow; /* 1: root alone, and not what it starts */
	uint32_t buffer_bytes; /* per CPU; 0: the default */
	/*
	 * 0: this source logs who runs where whenever it logs anything, and its packets are
	 * PEM_PACKET_KERNEL. Else another does, and this one is the session's so-manyth: it hands
	 * on no such event, its streams' names have the number, and its packets are
	 * PEM_PACKET_KERNEL_THREAD if its clocks are converted.
	 */
	uint32_t beside;
	/*
	 * The event that says who runs where, whether it is among events or not; NULL: the session
	 * knows none.
	 */
	const struct pem_event *sets_thread;
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
	/*
	 * Of events that pem.ko looks for itself. counters: libpfm4 names, alternatives parted by
	 * '|', by commas; NULL: none.
	 */
	const char *counters;
	uint32_t pages_interval_us;
	uint64_t pages_region_bytes;
};

struct pem_source_ops {
	size_t size; /* of this struct */
	uint32_t abi_version; /* PEM_SOURCE_ABI_VERSION */
	const char *name; /* for people: "module", "BPF", "counters" */
	/*
	 * Is this event this source's, and can it be delivered? 1; 0 with reason; -ENOENT: not this
	 * source's.
	 */
	int (*can_deliver)(const struct pem_event *event, struct pem_error *reason);
	/*
	 * Open everything that config asks for, nothing running yet. Events that fail alone are
	 * logged and marked.
	 */
	int (*open)(const struct pem_source_config *config, struct pem_source **source,
		    struct pem_error *error);
	int (*start)(struct pem_source *source, struct pem_error *error);
	/*
	 * Change what is wanted of config.events[i]. flags 0: nothing, and what was counted in the
	 * action's epoch stays readable. Takes effect at once, with one system call at most.
	 */
	int (*set_action)(struct pem_source *source, size_t i, uint64_t action);
	/* 0, or -errno why event i can't be delivered. */
	int (*read_statistic)(struct pem_source *source, size_t i, struct pem_statistic *value);
	/* Move what has accumulated to the sink. final: stop first, then all of it. */
	int (*drain)(struct pem_source *source, const struct pem_source_sink *sink, int final);
	/*
	 * Observe one more process and its descendants to come. NULL: the source can't. 0;
	 * -ENOTSUP: it was opened for contexts, or the whole machine, not for process trees;
	 * -ENOSPC.
	 */
	int (*add_target)(struct pem_source *source, pid_t pid);
	/* produced and discarded of config.events[i] so far. */
	int (*balance)(struct pem_source *source, size_t i, struct pem_balance *balance);
	void (*close)(struct pem_source *source);
	/*
	 * The parts that read_statistic adds up, one call for each CPU that has any, or several;
	 * wide: what it keeps besides, NULL: nothing. Returns how many, or -errno. NULL: it can't
	 * tell them apart.
	 */
	int (*each_statistic)(struct pem_source *source, size_t i,
			      void (*function)(const struct pem_statistic *part,
					       const struct pem_distribution *distribution,
					       uint32_t cpu, void *arg),
			      void *arg);
	/*
	 * What the statistic of config.events[i] keeps besides from its next action with WIDE on:
	 * PEM_DISTRIBUTION(...). NULL: the source keeps no more.
	 */
	int (*keep)(struct pem_source *source, size_t i, uint32_t distribution);
	/*
	 * Several sources may deliver the same event: the one of the highest preference is asked
	 * first.
	 */
	uint32_t preference;
	/*
	 * A descriptor that poll() finds readable when the source should be drained soon; -1 or
	 * NULL: none.
	 */
	int (*poll_fd)(const struct pem_source *source);
	/*
	 * Can this user use it here at all? 1; 0 with reason. NULL: each event has its own answer.
	 */
	int (*usable)(struct pem_error *reason);
	/*
	 * Find what a pattern such as "sched:*" or "uprobe:/bin/sh:main" names here, in the
	 * catalogue or not, and call found for each: an event with layer, class_name, specifier,
	 * level, source and fields, which have no offsets yet. All of it is valid during the call;
	 * other than 0 ends the search and is returned. Returns how many; -ENOENT, or another
	 * -errno, with error. NULL: this source finds nothing.
	 */
	int (*find)(const char *pattern, int (*found)(void *arg, const struct pem_event *event),
		    void *arg, struct pem_error *error);
	/*
	 * Is it the name of a counter, on this machine or on another? 1; -ENOENT with error, a
	 * sentence. NULL: this source knows no counters' names.
	 */
	int (*knows_counter)(const char *name, struct pem_error *error);
};

#endif
