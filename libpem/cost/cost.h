/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cost.h - what observing costs on this machine, what it has cost, and the budget that limits it
 *
 * calibrate.c measures, cost_cache.c remembers. detail.c counts events and CPU time, has them
 * judged (budget.h), obeys, and records each step.
 */
#ifndef PEM_COST_H
#define PEM_COST_H

#include <pem/trace.h>

#include <stdbool.h>
#include <stdint.h>

struct pem_detail_state;
struct pem_producer;
struct pem_session;

/* --- detail.c --- */

/* Judge, if it is time to: changes demands' detail and publishes them. */
void pem_session__judge(struct pem_session *session, uint64_t now_ns);

/* Count what a producer raised since it was counted last: before it goes away. */
void pem_session__count_producer(struct pem_session *session, struct pem_producer *producer);

/*
 * Write the steps that are not in the log's trace yet, and their account; note in info what was
 * counted only.
 */
void pem_session__account_detail(struct pem_session *session, struct pem_trace_info *info);

void pem_session__forget_detail(struct pem_session *session);

/* --- cpu_time.c --- */

/*
 * CPU time so far of the observed programs: the session's command, what it was attached to and
 * every process with a pool, with what they waited for. It may fall when a process ends that nobody
 * observed waits for.
 */
uint64_t pem_session__program_cpu_ns(const struct pem_session *session);

/*
 * The same of all that ran on this machine since it booted, in ticks of some milliseconds; 0: that
 * can't be told.
 */
uint64_t pem_machine_cpu_ns(void);

/* Kinds of events by what raising one takes. */
enum pem_cost_kind {
	PEM_COST_USER, /* of a stub */
	PEM_COST_KERNEL, /* of a tracepoint, of pem.ko, of a function of the kernel */
	PEM_COST_UPROBE, /* at an instruction of a program: functions' entries, static probes */
	PEM_COST_URETPROBE, /* functions' returns */
	PEM_COST_SAMPLE, /* by a timer's interrupt */
	PEM_COST_KINDS,
	PEM_COST_NONE = PEM_COST_KINDS /* counters, which the recorder reads in its own time */
};

/* What one event costs here, in nanoseconds; 0: not measured. */
struct pem_cost {
	double log_ns, stat_ns;
};

struct pem_costs {
	struct pem_cost each[PEM_COST_KINDS];
	/* of a process: with libpem, and with the adapters, too; 0: not measured */
	double start_ns[2];
	/* the name of the one that the kernel's are of; "": not asked yet */
	char kernel_source[16];
};

struct pem_session_cost {
	struct pem_detail_state *detail; /* of the overhead budget; NULL: none was ever set */
	struct pem_costs costs; /* zero: not measured */
	uint32_t costs_tried; /* kinds that were asked for */
};

/* --- calibrate.c --- */

enum pem_cost_kind pem_event__cost_kind(const struct pem_event *event);
/* A bit for each kind that is wanted, logged or counted. */
uint32_t pem_session__cost_kinds(const struct pem_session *session);

/*
 * What these kinds cost: remembered, or measured now, for which programs are loaded into the
 * kernel.
 */
const struct pem_costs *pem_session__measure(struct pem_session *session, uint32_t kinds);

/* What each kind of logged event costs here; fills info->costs' ns_each, counts stay 0. */
void pem_session__calibrate(struct pem_session *session, struct pem_trace_info *info);

/* Fill in the counts of these, as of now. */
void pem_session__count_costs(struct pem_session *session, struct pem_trace_info *info);

/* Add what counting costs: so many of each kind were. */
void pem_session__add_stat_costs(struct pem_session *session, struct pem_trace_info *info,
				 const uint64_t *counted);

/* Add the start of a process, which its command and all that descend from it are. */
void pem_session__calibrate_start(struct pem_session *session, struct pem_trace_info *info,
				  bool adapters);

/* --- start_cost.c --- */

/* CPU time by which a process becomes dearer. */
double pem_start_ns(bool adapters);

/* --- sample_cost.c --- */

/* By which a sample's interrupt delays the thread that it is of. */
double pem_sample_ns(void);

/* --- cost_cache.c --- */

/* What is remembered; false: nothing that holds here and now. */
bool pem_costs__load(struct pem_costs *costs);

/* A cache: failing to write it costs the next recording some time, nothing else. */
void pem_costs__store(const struct pem_costs *costs);

#endif
