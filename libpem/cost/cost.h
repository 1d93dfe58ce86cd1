/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cost.h - what observing costs on this machine, what it has cost, and the budget that limits it
 *
 * calibrate.c measures costs and cost_cache.c remembers them. detail.c counts events and CPU time,
 * has them judged (budget.h), does what the judge says, and records each step.
 */
#ifndef PEM_COST_H
#define PEM_COST_H

#include <pem/pem.h>
#include <pem/trace.h>

#include <stdbool.h>
#include <stdint.h>

struct pem_detail_state;
struct pem_producer;
struct pem_session;

/* --- detail.c --- */

/* Judge, if it is time to: change the demands' detail levels and publish them. */
void pem_session__judge(struct pem_session *session, uint64_t now_ns);

/* Count what a producer raised since the last count. The producer is about to go away. */
void pem_session__count_producer(struct pem_session *session, struct pem_producer *producer);

/*
 * Write the steps that are not in the log's trace yet, and their account. Note in info which events
 * were only counted.
 */
void pem_session__account_detail(struct pem_session *session, struct pem_trace_info *info);

void pem_session__forget_detail(struct pem_session *session);

/* --- cpu_time.c --- */

/*
 * Return the CPU time so far of the observed programs: the session's command, the processes that it
 * was attached to, every process with a pool, and the children that they have waited for. Returns
 * the machine's time if the whole machine is observed. The value falls when a process ends and no
 * observed process waits for it.
 */
uint64_t pem_session__program_cpu_ns(const struct pem_session *session);

/*
 * Return the CPU time of all that ran on this machine since it booted, in ns. Its steps are ticks
 * of some milliseconds. 0: not known.
 */
uint64_t pem_machine_cpu_ns(void);

/* Kinds of events, by how an event is raised. */
enum pem_cost_kind {
	PEM_COST_USER, /* a stub */
	PEM_COST_KERNEL, /* a tracepoint, pem.ko, a function of the kernel */
	PEM_COST_UPROBE, /* an instruction of a program: functions' entries, static probes */
	PEM_COST_URETPROBE, /* functions' returns */
	/* A timer's interrupt. In the order of enum pem_stacks. */
	PEM_COST_SAMPLE,
	PEM_COST_SAMPLE_FRAMES, /* with callers, by frame pointers */
	PEM_COST_SAMPLE_TABLES, /* with a copy of the stack */
	PEM_COST_KINDS,
	PEM_COST_NONE = PEM_COST_KINDS /* counters, which the recorder reads in its own time */
};

/* What one event costs here, in nanoseconds; 0: not measured. */
struct pem_cost {
	double log_ns, stat_ns;
};

struct pem_costs {
	struct pem_cost each[PEM_COST_KINDS];
	/* Start of a process: with libpem, and with the adapters, too; 0: not measured. */
	double start_ns[2];
	/* Name of the source for which PEM_COST_KERNEL was measured; "": not asked yet. */
	char kernel_source[16];
};

struct pem_session_cost {
	struct pem_detail_state *detail; /* of the overhead budget; NULL: none was ever set */
	struct pem_costs costs; /* zero: not measured */
	uint32_t costs_tried; /* bits of the kinds that were asked for */
	/*
	 * What it takes a thread to read the session's counters at an event, without the record. 0:
	 * not measured, or it reads none. Not remembered: each session may have other counters.
	 */
	double reading_ns;
	bool reading_tried;
};

/* --- calibrate.c --- */

enum pem_cost_kind pem_session__cost_kind(const struct pem_session *session,
					  const struct pem_event *event);
/* Return a bit for each kind of which an event is wanted, logged or counted. */
uint32_t pem_session__cost_kinds(const struct pem_session *session);

/*
 * Return what these kinds cost: remembered, or measured now. To measure, programs are loaded into
 * the kernel.
 */
const struct pem_costs *pem_session__measure(struct pem_session *session, uint32_t kinds);

/* Find what each kind of logged event costs here. Fills ns_each of info->costs; counts stay 0. */
void pem_session__calibrate(struct pem_session *session, struct pem_trace_info *info);

/* Fill in the counts of info->costs, as of now. */
void pem_session__count_costs(struct pem_session *session, struct pem_trace_info *info);

/* Add what counting costs to info->costs. counted: how many events of each kind were counted. */
void pem_session__add_stat_costs(struct pem_session *session, struct pem_trace_info *info,
				 const uint64_t *counted);

/*
 * Add what process starts cost to info->costs: the start of the command and of each process that
 * descends from it.
 */
void pem_session__calibrate_start(struct pem_session *session, struct pem_trace_info *info,
				  bool adapters);

/* --- start_cost.c --- */

/*
 * Measure how much more CPU time a process takes because of libpem; adapters: and of the adapters.
 */
double pem_start_ns(bool adapters);

/* --- sample_cost.c --- */

/* Measure by how much the interrupt of a sample with such stacks delays the sampled thread. */
double pem_sample_ns(enum pem_stacks stacks);

/* --- cost_cache.c --- */

/* Load the remembered costs. False: there are none that hold here and now. */
bool pem_costs__load(struct pem_costs *costs);

/*
 * Remember costs. If this fails, the next recording takes some time to measure, and nothing else
 * happens.
 */
void pem_costs__store(const struct pem_costs *costs);

#endif
