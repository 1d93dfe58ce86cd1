/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * detail.h - the overhead budget of a session: counts events and CPU time, has them judged (budget.h), obeys, and
 * records each step
 */
#ifndef PEM_DETAIL_H
#define PEM_DETAIL_H

#include "consumer/session.h"

/* Judge, if it is time to: changes demands' detail and publishes them. */
void pem_session__judge(struct pem_session *session, uint64_t now_ns);
/* Count what a producer raised since it was counted last: before it goes away. */
void pem_session__count_producer(struct pem_session *session, struct pem_producer *producer);
/* Write the steps that are not in the log's trace yet, and their account; note in info what was counted only. */
void pem_session__account_detail(struct pem_session *session, struct pem_trace_info *info);
void pem_session__forget_detail(struct pem_session *session);

/*
 * cpu_time.c: CPU time so far of the observed programs: the session's command, what it was attached to and every process
 * with a pool, with what they waited for. It may fall when a process ends that nobody observed waits for.
 */
uint64_t pem_session__program_cpu_ns(const struct pem_session *session);
/* The same of all that ran on this machine since it booted, in ticks of some milliseconds; 0: that can't be told. */
uint64_t pem_machine_cpu_ns(void);

#endif
