/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* open.h - the source's state: one counter for each event that it was asked for (counters.c) */
#ifndef PEM_COUNTERS_OPEN_H
#define PEM_COUNTERS_OPEN_H

#include "counters.h"

struct counter {
	const struct pem_event *event;
	struct pem_context context;
	uint64_t action; /* PEM_ACTION; atomic because drain reads it */
	int error; /* 0, or the -errno why it can't be delivered */
	uint32_t pid; /* the process that its records are about; 0: the machine */
	uint16_t value_offset;
	int *fds;
	size_t fd_count;
	struct sampler *sampler; /* for a SAMPLE event, which has no fds */
	int is_of_maps; /* an event that the first sampler tells beside samples; it has neither */
	uint64_t base, accumulated; /* of the statistic */
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
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
	uint64_t last_sample_ns;
	uint64_t refused; /* records that the sink refused */
	size_t count;
	struct counter counters[];
};

/*
 * Open the counter on what its context and the session's target say, disabled unless the command's
 * exec enables it. Returns 0 or -errno; descriptors that were opened stay in the counter.
 */
int counter__open_all(const struct pem_source *source, struct counter *counter,
		      struct perf_event_attr *attr);

#endif
