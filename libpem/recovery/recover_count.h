/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* recover_count.h - what the streams of a trace hold, if its recorder was killed; for recover.c */
#ifndef PEM_RECOVER_COUNT_H
#define PEM_RECOVER_COUNT_H

struct pem_session;
struct pem_producer;

/* Make a demand for every event of the session's model. Returns 0, or -ENOMEM. */
int pem_recovery__demand_for_all(struct pem_session *session);
/* Count the records of a producer that are in the trace as delivered. */
void pem_recovery__take_over_counts(struct pem_session *session, struct pem_producer *producer);
/*
 * Write balances of processes without a pool, which ended before their recorder did. Returns 0, or
 * -ENOMEM.
 */
int pem_recovery__account_gone(struct pem_session *session);
/* Write the balances of sources, counted from the trace's streams. Returns 0, or -ENOMEM. */
int pem_recovery__account_sources(struct pem_session *session);

#endif
