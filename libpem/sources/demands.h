/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demands.h - what the two sources of kernel events share: the session's demands, their statistics
 * and balances, names of streams
 *
 * BPF programs (kernel/) and the module (module/) count in cells of each CPU, in one or more parts
 * per CPU. Both sources read these cells, add them up and report losses in one way, which is here.
 * The struct pem_source of each source begins with struct pem_source_common, so these functions
 * take both. Not here: opening, starting and draining a source.
 */
#ifndef PEM_SOURCES_DEMANDS_H
#define PEM_SOURCES_DEMANDS_H

#include "source.h"

#include <pem/abi.h>

#include <stdatomic.h>
#include <stdbool.h>

/*
 * The flags of an action that a kernel source passes on (FLAGS), and those of them that need the
 * event's program (WANTS).
 */
#define PEM_SOURCE_DEMAND_FLAGS (PEM_ACTION_LOG | PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION)
#define PEM_SOURCE_DEMAND_WANTS (PEM_ACTION_LOG | PEM_ACTION_STAT)

/*
 * The demand of one event. read_statistic reads the atomic members in any thread. No atomic member
 * publishes another member.
 */
struct pem_source_demand {
	const struct pem_event *event;
	struct pem_context context;
	const struct pem_test *tests; /* of its predicate */
	uint32_t test_count;
	uint32_t gates; /* PEM_GATES() of its predicate */
	/* 0, or the -errno that tells why the event can't be delivered */
	int error;
	/*
	 * The last action. Its epoch is the statistic's, also when the event is not wanted any
	 * more.
	 */
	_Atomic uint64_t action;
	/*
	 * PEM_DISTRIBUTION(...): what the statistic keeps in addition to the cell. It holds from
	 * the next action on.
	 */
	_Atomic uint32_t distribution;
	/* Index of the event's cells. In the module it is PEM_NO_INDEX until a pool is mapped. */
	_Atomic uint32_t index;
	/* BPF only: the event was logged at some time; it is logged now. */
	atomic_bool logged, logging;
	/* Module only: the last demand that the module got. Under the source's lock. */
	uint64_t told_action;
	uint32_t told_distribution;
};
#define PEM_NO_INDEX 0xffffffffu

/* How the functions here find a source's cells and counts. */
struct pem_source_demand_ops {
	/* "kernel" or "module", for messages */
	const char *name;
	/* Cells that a CPU has for one event: one for each lane in the module, else 1. */
	uint32_t parts;
	/* Find the cell of a demand's event. NULL: there is none. */
	const struct pem_cell *(*cell)(struct pem_source *source, struct pem_source_demand *demand,
				       uint32_t cpu, uint32_t part);
	/* Find the distribution of this index. */
	const struct pem_distribution *(*distribution)(const struct pem_source *source,
						       uint32_t index, uint32_t cpu, uint32_t part);
	/*
	 * Add the produced and discarded records of a demand's event. If demand is NULL, of the
	 * event that sets threads.
	 */
	void (*count)(struct pem_source *source, struct pem_source_demand *demand,
		      struct pem_balance *balance);
};

/* Round up to the offset where the next record of a packet begins. */
static inline uint32_t pem_record__aligned(uint32_t bytes)
{
	return (bytes + PEM_RECORD_ALIGN - 1) & ~(PEM_RECORD_ALIGN - 1);
}

/* The first member of struct pem_source in both sources. */
struct pem_source_common {
	const struct pem_source_demand_ops *ops;
	struct pem_source_demand *demands;
	size_t demand_count;
	uint32_t cpu_count;
	/* copies of members of pem_source_config */
	uint32_t beside;
	bool thread_is_told;
	/* Is there an event that tells which thread a CPU runs, and does the session demand it? */
	bool has_thread_event, demands_thread_event;
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
};

/* Copy the demands from config. Returns 0 or -ENOMEM. pem_source_demands__free undoes it. */
int pem_source_demands__init(struct pem_source *source, const struct pem_source_demand_ops *ops,
			     const struct pem_source_config *config);
void pem_source_demands__free(struct pem_source *source);

/*
 * Call take for each demand, in order. take returns 0, or -errno if the event can't be delivered,
 * and may then write a sentence to reason. If reason is empty, why(error) gives the sentence. The
 * sentence is logged, and the error is kept in the demand.
 */
void pem_source_demands__take(struct pem_source *source, const struct pem_source_config *config,
			      int (*take)(struct pem_source *source, size_t i,
					  const struct pem_source_event *event,
					  struct pem_error *reason),
			      const char *(*why)(int error));

/*
 * Find demand i for a function of struct pem_source_ops. NULL with *error: there is no such demand,
 * or its event can't be delivered.
 */
struct pem_source_demand *pem_source_demands__get(struct pem_source *source, size_t i, int *error);

/* These implement read_statistic, each_statistic and balance of struct pem_source_ops. */
int pem_source_demands__read(struct pem_source *source, size_t i, struct pem_statistic *value);
int pem_source_demands__each(struct pem_source *source, size_t i,
			     void (*function)(const struct pem_statistic *part,
					      const struct pem_distribution *distribution,
					      uint32_t cpu, void *arg),
			     void *arg);
int pem_source_demands__balance(struct pem_source *source, size_t i, struct pem_balance *balance);

/* Log how many processes of the target were not observed, if there were any. */
void pem_source_demands__say_targets_lost(const struct pem_source *source, uint32_t lost);

/*
 * Write the name of the stream of a CPU's records. "k_0" belongs to CPU 0. "k_0_1" holds records of
 * probes that interrupted other probes there. "k2_0" belongs to CPU 0 in the session's second
 * kernel source.
 */
void pem_source__stream_name(const struct pem_source *source, uint32_t cpu, uint32_t depth,
			     char *name, size_t bytes);

void pem_source__log(const struct pem_source *source, enum pem_log_level level, const char *format,
		     ...) __attribute__((format(printf, 3, 4)));

#endif
