/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demands.h - what the two sources of the kernel's events share: the session's demands, their
 * statistics and balances, names of streams
 *
 * BPF programs (kernel/) and the module (module/) count in cells of each CPU, in one or several
 * parts of it. Reading them, adding them up and saying what is lost is the same for both, and here.
 * Each source's own struct pem_source begins with struct pem_source_common, so these functions take
 * either. Not here: opening, starting and draining a source.
 */
#ifndef PEM_SOURCES_DEMANDS_H
#define PEM_SOURCES_DEMANDS_H

#include "source.h"

#include <pem/abi.h>

#include <stdatomic.h>
#include <stdbool.h>

/* Flags of an action that a kernel source passes on, and those that make it do anything. */
#define PEM_SOURCE_DEMAND_FLAGS (PEM_ACTION_LOG | PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION)
#define PEM_SOURCE_DEMAND_WANTS (PEM_ACTION_LOG | PEM_ACTION_STAT)

/*
 * An event that the session wants. The atomic members are read by read_statistic in any thread;
 * none of them publishes others.
 */
struct pem_source_demand {
	const struct pem_event *event;
	struct pem_context context;
	const struct pem_test *tests; /* of its predicate */
	uint32_t test_count;
	/* 0, or -errno why it can't be delivered. */
	int error;
	/*
	 * The last action. Its epoch is that of the statistic, also when nothing is wanted any
	 * more.
	 */
	_Atomic uint64_t action;
	/*
	 * PEM_DISTRIBUTION(...): what the statistic keeps beside the cell from its next action on.
	 */
	_Atomic uint32_t distribution;
	/* Of its cells; the module's: PEM_NO_INDEX until a pool is mapped. */
	_Atomic uint32_t index;
	/* Of BPF: it was logged at any time, it is now. */
	atomic_bool logged, logging;
	/* Of the module: what it was told last. Under the source's lock. */
	uint64_t told_action;
	uint32_t told_distribution;
};
#define PEM_NO_INDEX 0xffffffffu

/* How a source's cells are found and what its counts are. */
struct pem_source_demand_ops {
	/* For sentences: "kernel", "module". */
	const char *name;
	/* A CPU's cells of one event: lanes of the module, else 1. */
	uint32_t parts;
	/* The cell of a demand's event; NULL: there is none. */
	const struct pem_cell *(*cell)(struct pem_source *source, struct pem_source_demand *demand,
				       uint32_t cpu, uint32_t part);
	/* The distribution with that index. */
	const struct pem_distribution *(*distribution)(const struct pem_source *source,
						       uint32_t index, uint32_t cpu, uint32_t part);
	/*
	 * Add what was produced and discarded of a demand's event; demand NULL: of the one that
	 * sets threads.
	 */
	void (*count)(struct pem_source *source, struct pem_source_demand *demand,
		      struct pem_balance *balance);
};

/* Where the next record of a packet begins. */
static inline uint32_t pem_record__aligned(uint32_t bytes)
{
	return (bytes + PEM_RECORD_ALIGN - 1) & ~(PEM_RECORD_ALIGN - 1);
}

/* The first member of each struct pem_source. */
struct pem_source_common {
	const struct pem_source_demand_ops *ops;
	struct pem_source_demand *demands;
	size_t demand_count;
	uint32_t cpu_count;
	/* struct pem_source_config's. */
	uint32_t beside;
	/* The event that says who runs where: is there one, and is it a demand of the session? */
	bool has_thread_event, demands_thread_event;
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
};

/* Take over what config says. 0, or -ENOMEM; pem_source_demands__free undoes it. */
int pem_source_demands__init(struct pem_source *source, const struct pem_source_demand_ops *ops,
			     const struct pem_source_config *config);
void pem_source_demands__free(struct pem_source *source);

/*
 * Ask take of each demand, in order: 0, or -errno why it can't be delivered, and reason then may
 * say so. What it says, or why, is logged and the demand marked.
 */
void pem_source_demands__take(struct pem_source *source, const struct pem_source_config *config,
			      int (*take)(struct pem_source *source, size_t i,
					  const struct pem_source_event *event,
					  struct pem_error *reason),
			      const char *(*why)(int error));

/*
 * The demand i in a call of struct pem_source_ops; NULL with *error: there is none, or it can't be
 * delivered.
 */
struct pem_source_demand *pem_source_demands__get(struct pem_source *source, size_t i, int *error);

/* read_statistic, each_statistic and balance of struct pem_source_ops. */
int pem_source_demands__read(struct pem_source *source, size_t i, struct pem_statistic *value);
int pem_source_demands__each(struct pem_source *source, size_t i,
			     void (*function)(const struct pem_statistic *part,
					      const struct pem_distribution *distribution,
					      uint32_t cpu, void *arg),
			     void *arg);
int pem_source_demands__balance(struct pem_source *source, size_t i, struct pem_balance *balance);

/* Say how many processes of the target were not observed, if any. */
void pem_source_demands__say_targets_lost(const struct pem_source *source, uint32_t lost);

/*
 * The stream of a CPU's records: "k_0" is CPU 0's; "k_0_1" what interrupted probes there; "k2_0"
 * the session's second source's.
 */
void pem_source__stream_name(const struct pem_source *source, uint32_t cpu, uint32_t depth,
			     char *name, size_t bytes);

void pem_source__log(const struct pem_source *source, enum pem_log_level level, const char *format,
		     ...) __attribute__((format(printf, 3, 4)));

#endif
