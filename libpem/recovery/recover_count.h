/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recover_count.h - what the streams of a trace hold whose recorder was killed, for recover.c
 */
#ifndef PEM_RECOVER_COUNT_H
#define PEM_RECOVER_COUNT_H

struct pem_session;
struct pem_producer;

/* Every event of the session's model has a demand. 0, or -ENOMEM. */
int pem_recovery__demand_for_all(struct pem_session *session);
/* What was written of a producer counts as delivered. */
void pem_recovery__take_over_counts(struct pem_session *session, struct pem_producer *producer);
/*
 * The balances of processes without a pool, which ended before their recorder did. 0, or -ENOMEM.
 */
int pem_recovery__account_gone(struct pem_session *session);
/* The same of sources. */
int pem_recovery__account_sources(struct pem_session *session);

#endif
