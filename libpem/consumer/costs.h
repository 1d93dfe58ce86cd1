/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * costs.h - what one event of each kind costs on this machine, for the overhead ledger and the budget
 */
#ifndef PEM_COSTS_H
#define PEM_COSTS_H

#include <pem/trace.h>

#include <stdbool.h>
#include <stdint.h>

struct pem_session;

/* What one event costs here, in nanoseconds; 0: not measured. */
struct pem_costs {
	double user_log_ns, user_stat_ns;
	double kernel_log_ns, kernel_stat_ns;
	double start_ns
		[2]; /* of a process: with libpem, and with the adapters, too; 0: not measured */
	char kernel_source[16]; /* the name of the one that the kernel's are of */
};

/* calibrate.c: what each kind of logged event costs here; fills info->costs' ns_each, counts stay 0. */
void pem_session__calibrate(struct pem_session *session, struct pem_trace_info *info);
/* The same with what counting costs: so many were. */
void pem_session__add_stat_costs(struct pem_session *session, struct pem_trace_info *info,
				 uint64_t user, uint64_t kernel);
/* Remembered, or measured now; of the kernel's only if asked for, since that loads a program into it. */
const struct pem_costs *pem_session__measure(struct pem_session *session, bool kernel);
bool pem_session__wants_kernel(const struct pem_session *session);
/* The same for the start of a process, which its command and all that descend from it are. */
void pem_session__calibrate_start(struct pem_session *session, struct pem_trace_info *info,
				  bool adapters);
/* start_cost.c: ns of CPU time by which a process becomes dearer; 0: that can't be found out here. */
double pem_start_ns(bool adapters);

#endif
