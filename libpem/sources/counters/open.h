/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * open.h - the source's state: one counter for each event that it was asked for
 *
 *	counters.c	the plugin's operations
 *	open.c		opens counters, in groups
 *	readings.c	reads them: statistics, and packets of readings
 */
#ifndef PEM_COUNTERS_OPEN_H
#define PEM_COUNTERS_OPEN_H

#include "counters.h"

#include <pem/trace.h>

struct counter {
	const struct pem_event *event;
	struct pem_context context;
	uint64_t action; /* PEM_ACTION; atomic because drain reads it */
	int error; /* 0, or the -errno why it can't be delivered */
	uint32_t pid; /* the process that its records are about; 0: the machine */
	uint16_t value_offset;
	int is_hardware; /* it may have to share the hardware */
	/*
	 * Hardware counters of one number other than 0 are in one group (groups.h). No other group
	 * of this process ever has the number.
	 */
	uint32_t group;
	int *fds;
	size_t fd_count;
	int is_leader; /* of its group, which is enabled by enabling its leader */
	struct sampler *sampler; /* for a SAMPLE event, which has no fds */
	int is_of_maps; /* an event that the first sampler tells beside samples; it has neither */
	struct tally base, accumulated; /* of the statistic */
	struct windows windows; /* drain's */
	/*
	 * windows__rate_error for 1 ns of running, in half widths of 95 %: the bits of a double.
	 * Atomic because drain writes it.
	 */
	uint64_t rate_error;
	/*
	 * The greatest value written. A counter only grows, but scaling may make a reading smaller.
	 */
	uint64_t last;
	uint64_t written;
	/* What the counter had counted when logging it ended, and when: the last record. */
	uint64_t owed, owed_clock;
	int is_owed; /* atomic: hands these to drain */
	int writes_owed; /* drain is about to write it */
};

struct pem_source {
	pid_t root;
	int root_runs;
	int no_follow;
	/* The folder of the control group whose processes are observed; -1: none. */
	int cgroup_fd;
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
	uint64_t last_sample_ns, last_windows_ns;
	uint64_t refused; /* records that the sink refused */
	size_t count;
	struct counter counters[];
};

/* --- open.c --- */

/* Called for a counter that can't be had; reason has no subject, such as "can't be counted: ...".
 */
typedef void refuse_function(const struct pem_source *source, struct counter *counter,
			     const char *reason);

/*
 * Open all counters whose events are of PEM_SOURCE_PERF on what their contexts and the session's
 * target say, disabled unless the command's exec enables them. Those that can't be opened have
 * their error set, and are refused. Returns 0 or -ENOMEM.
 */
int counters__open_values(struct pem_source *source, const struct pem_source_config *config,
			  refuse_function *refuse);
/*
 * Has the process that the counter observes not called exec yet? The exec then enables the counter.
 */
int counter__waits_for_exec(const struct pem_source *source, const struct counter *counter);
void counter__close_fds(struct counter *counter);

/* --- cgroup.c --- */

/* Open the folder of a version 2 control group. Returns a descriptor or -errno. Blocks on files. */
int cgroup__open(uint64_t id);

/* --- readings.c: as in pem_source_ops --- */

/* Note what the windows tell of the counter's rate. */
void counter__set_rate_error(struct counter *counter);

int counters__set_action(struct pem_source *source, size_t i, uint64_t action);
int counters__read_statistic(struct pem_source *source, size_t i, struct pem_statistic *statistic);
int counters__estimate(struct pem_source *source, size_t i, struct pem_trace_estimate *estimate,
		       struct pem_error *reason);
/* Write what counters have counted, some hundred times a second at most. */
int counters__sample(struct pem_source *source, const struct pem_source_sink *sink, int final);
/* The sampler that tells what is mapped: the first one. NULL: there is none. */
struct sampler *counters__sampler_of_maps(const struct pem_source *source,
					  const struct pem_event *event);

#endif
