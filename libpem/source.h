/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * source.h - the plugin interface of sources: events that no stub raises
 *
 * A source is a shared object 'source-NAME.so' in the plugin folder. It defines const struct
 * pem_source_ops pem_source. A source keeps its libraries (libbpf, libpfm4) out of libpem, which is
 * preloaded into programs. One instance serves one session. All calls come from the session's
 * thread. read_statistic and set_action are also called from synchronous callbacks in other
 * threads.
 */
#ifndef PEM_SOURCE_H
#define PEM_SOURCE_H

#include "context.h"

#include <pem/counted.h>
#include <pem/pem.h>
#include <pem/trace.h>

#include <stdbool.h>

#define PEM_SOURCE_ABI_VERSION 8u

/* One event that the session wants from the source. */
struct pem_source_event {
	const struct pem_event *event;
	struct pem_context context; /* pid or tid PEM_ANY: the whole target */
	uint64_t action; /* PEM_ACTION(...): LOG, STAT and DISTRIBUTION only */
	/*
	 * A predicate on the event's fields, checked by pem_tests__valid; NULL: none. It lives as
	 * long as the session.
	 */
	const struct pem_test *tests;
	uint32_t test_count;
	uint32_t distribution; /* as in keep; 0: nothing */
	uint32_t gates; /* PEM_GATES() of its predicate (pem/gate.h); 0: none */
};

/* Where a source writes packets, and how it converts clocks. */
struct pem_source_sink {
	void *arg;
	/*
	 * Append one or more packets to a stream. With several, each begins at the next multiple of
	 * 8 behind the content of the one before, and bytes is a multiple of 8. name: the stream's
	 * file name, such as "k_0". The source fills timestamp_begin, timestamp_end, content_size,
	 * events_discarded (so far, in this stream), pid, tid, cpu, source, record_count and the
	 * records. The sink fills the rest. Records' clocks are already pem_clock() values. Returns
	 * 0. -errno: nothing was written, and the sink has counted the records as discarded.
	 */
	int (*write)(void *arg, const char *name, struct pem_packet *packet, size_t bytes);
	/* Return the pem_clock() value at a CLOCK_MONOTONIC time. */
	uint64_t (*clock_at)(void *arg, uint64_t monotonic_ns);
	/*
	 * Keep a copy of a file that may be gone when its code is to be named. fd is open for
	 * reading, and stays the caller's. NULL: there is no need.
	 */
	void (*keep_file)(void *arg, const uint8_t *build_id, size_t build_id_bytes, int fd,
			  uint64_t file_bytes);
};

struct pem_source;
struct pem_distribution; /* pem/distribution.h */

struct pem_source_config {
	size_t size;
	/* Observe this process, which is alive, and its future descendants; 0: see contexts */
	pid_t root;
	int whole_machine; /* 1, with root 0: observe all processes */
	const struct pem_source_event *events;
	size_t event_count;
	int root_runs; /* 1: the session attached to root; 0: root is about to exec */
	int no_follow; /* 1: observe root alone, and not the processes that it starts */
	uint32_t buffer_bytes; /* per CPU; 0: the default */
	/*
	 * 0: this source logs context switches whenever it logs anything, and its packets are
	 * PEM_PACKET_KERNEL. Not 0: another source logs them, and this is the session's source of
	 * this number. It then delivers no such event (but see thread_is_told), its streams' names
	 * contain the number, and its packets are PEM_PACKET_KERNEL_THREAD if its clocks are
	 * converted.
	 */
	uint32_t beside;
	/*
	 * The event of context switches, whether it is among events or not; NULL: the session has
	 * none.
	 */
	const struct pem_event *sets_thread;
	/*
	 * With beside: 1 if another source delivers that event. 0: none does, so a source whose
	 * packets don't tell their thread delivers it for its own streams.
	 */
	int thread_is_told;
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
	/*
	 * For events that pem.ko samples itself. counters: libpfm4 names, separated by commas, with
	 * alternatives separated by '|'; NULL: none.
	 */
	const char *counters;
	uint32_t pages_interval_us;
	uint64_t pages_region_bytes;
	int by_process; /* 1: keep statistics by process, for each_process */
	uint32_t sample_hz; /* of events of PEM_SOURCE_SAMPLE; 0: 199 */
	int forgets; /* 1: the session keeps only the last records, as a flight recorder does */
	uint32_t sample_stacks; /* enum pem_stacks */
	/*
	 * Observe the processes in this version 2 control group, now and later (pem_cgroup_id).
	 * root is then one of them, or 0. 0: see root.
	 */
	uint64_t cgroup;
	/* What the counters of each of these count should be counted at the same times. */
	const struct pem_metric *const *metrics; /* valid while the source opens */
	size_t metric_count;
	/* File of a simulated machine (pem/hardware.h); NULL: there is none. */
	const char *hardware;
	uint32_t session_id; /* as programs know it: pem_session_page.id */
	/*
	 * The beginning of the path by which loaders open pem's preloaded libraries. What they do
	 * for these is no event of the program (pem/internal.h). "": unknown.
	 */
	const char *library_path;
};

struct pem_source_ops {
	size_t size; /* of this struct */
	uint32_t abi_version; /* PEM_SOURCE_ABI_VERSION */
	const char *name; /* for people: "module", "BPF", "counters" */
	/*
	 * Return whether this source can deliver an event. 1: yes. 0 with reason: the event is this
	 * source's, but can't be delivered. -ENOENT: the event is not this source's.
	 */
	int (*can_deliver)(const struct pem_event *event, struct pem_error *reason);
	/*
	 * Open everything that config asks for. Nothing runs yet. Events that fail alone are logged
	 * and marked.
	 */
	int (*open)(const struct pem_source_config *config, struct pem_source **source,
		    struct pem_error *error);
	int (*start)(struct pem_source *source, struct pem_error *error);
	/*
	 * Change the demand on config.events[i]. With flags 0 nothing is wanted, and the statistic
	 * of the action's epoch stays readable. Takes effect at once, with one system call at most.
	 */
	int (*set_action)(struct pem_source *source, size_t i, uint64_t action);
	/*
	 * Read the statistic of config.events[i]. Returns 0. -errno: why the event can't be
	 * delivered.
	 */
	int (*read_statistic)(struct pem_source *source, size_t i, struct pem_statistic *value);
	/* Write what has accumulated to the sink. final: first stop, then write all of it. */
	int (*drain)(struct pem_source *source, const struct pem_source_sink *sink, int final);
	/*
	 * Observe one more process and its future descendants. Returns 0. -ENOTSUP: the source was
	 * opened for contexts or the whole machine, not for process trees. -ENOSPC. NULL: the
	 * source can't do this.
	 */
	int (*add_target)(struct pem_source *source, pid_t pid);
	/*
	 * Return produced and discarded of config.events[i] so far. -errno: it could not be opened,
	 * and a warning has said why.
	 */
	int (*balance)(struct pem_source *source, size_t i, struct pem_balance *balance);
	void (*close)(struct pem_source *source);
	/*
	 * Call function with the parts that read_statistic adds up: at least once for each CPU that
	 * has any. distribution: the part's distribution; NULL: none. Returns the number of parts,
	 * or -errno. NULL: the source can't tell the parts apart.
	 */
	int (*each_statistic)(struct pem_source *source, size_t i,
			      void (*function)(const struct pem_statistic *part,
					       const struct pem_distribution *distribution,
					       uint32_t cpu, void *arg),
			      void *arg);
	/*
	 * Set the distribution that config.events[i] keeps from its next action with DISTRIBUTION
	 * on: PEM_DISTRIBUTION(...). NULL: the source keeps no distributions.
	 */
	int (*keep)(struct pem_source *source, size_t i, uint32_t distribution);
	/*
	 * Several sources may deliver one event. The source of the highest preference is asked
	 * first.
	 */
	uint32_t preference;
	/*
	 * Return a descriptor that poll() finds readable when the source should be drained soon. -1
	 * or NULL: there is none.
	 */
	int (*poll_fd)(const struct pem_source *source);
	/*
	 * Return whether this user can use the source on this machine: 1; 0 with reason. NULL: each
	 * event has its own answer.
	 */
	int (*usable)(struct pem_error *reason);
	/*
	 * Find what a pattern such as "sched:*" or "uprobe:/bin/sh:main" names on this machine, in
	 * the catalogue or not. Call found with each: an event with layer, class_name, specifier,
	 * level, source and fields, which have no offsets yet. All of it is valid during the call.
	 * If found returns other than 0, the search ends and returns that. Returns the number
	 * found; -ENOENT, or another -errno, with error. NULL: this source finds nothing.
	 */
	int (*find)(const char *pattern, int (*found)(void *arg, const struct pem_event *event),
		    void *arg, struct pem_error *error);
	/*
	 * Return whether name is that of a counter, on this machine or another: 1; -ENOENT with
	 * error, a sentence. NULL: this source knows no names of counters.
	 */
	int (*knows_counter)(const char *name, struct pem_error *error);
	/*
	 * With by_process: call function with the parts that read_statistic adds up, by process.
	 * They have no minimum, maximum and variance. pid 0: with a cpu, what that CPU raised while
	 * it was idle; with PEM_NO_CPU, processes that ended, or for which there was no room.
	 * Returns the number of parts, or -errno. NULL: the source keeps nothing by process.
	 */
	int (*each_process)(struct pem_source *source, size_t i,
			    void (*function)(const struct pem_statistic *part, uint32_t pid,
					     uint32_t cpu, const char *program, void *arg),
			    void *arg);
	/*
	 * Say how perf_event_open takes a counter that a program's thread is to read by itself.
	 * names: as pem_source_config.counters has one. 0, or -errno with error, a sentence without
	 * a subject: also where threads can't read it. NULL: this source knows no counters.
	 */
	int (*encode_counter)(const char *names, struct pem_counter *counter,
			      struct pem_error *error);
	/*
	 * Were the values of config.events[i] estimated so far? 1: fill estimate, but for its
	 * event. 0: no, they were counted. -EBUSY: it was not counted at all, and reason says why,
	 * in a sentence without a subject. NULL: this source estimates nothing.
	 */
	int (*estimate)(struct pem_source *source, size_t i, struct pem_trace_estimate *estimate,
			struct pem_error *reason);
	/* As pem_session__counted_as, without size. NULL: this source counts nothing so. */
	int (*counted_as)(const struct pem_event *event, struct pem_counted_as *counted_as);
	/* As pem_session__counter_turns. NULL: this source counts nothing so. */
	int (*counter_turns)(const struct pem_event *const *events, size_t count, uint32_t *turns);
	/*
	 * A process keeps the states of the session's gates at this address of its memory (struct
	 * pem_gate_slot). Returns 0 or -errno. NULL: the source serves no event with gates.
	 */
	int (*set_gates)(struct pem_source *source, pid_t pid, uint64_t address);
	/*
	 * Return the number of a thread that was started in an inner pid namespace (inode), and had
	 * the number tid there; 0: it is unknown. uid: of its parent. start_ns: when it started, of
	 * CLOCK_MONOTONIC. Any thread may call it. NULL: this source knows none.
	 */
	uint32_t (*outer_tid)(struct pem_source *source, uint32_t pid_namespace, uint32_t tid,
			      uint32_t *uid, uint64_t *start_ns);
	/*
	 * Return the number of system calls that pem itself made in observed programs so far, by
	 * pem/internal.h. They are no events. NULL: the source does not tell them apart.
	 */
	uint64_t (*internal_calls)(struct pem_source *source);
	/*
	 * The log is about to end, and all sources still run: write how things stand. Returns 0 or
	 * -errno. NULL: there is nothing to write.
	 */
	int (*end)(struct pem_source *source, const struct pem_source_sink *sink);
	/*
	 * Call found with the number of each process that is observed and has not ended, as far as
	 * the source knows. NULL: it does not follow what processes start.
	 */
	void (*each_target)(struct pem_source *source, void (*found)(void *arg, uint32_t pid),
			    void *arg);
};

#endif
