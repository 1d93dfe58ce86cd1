/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * places.h - runtime folders of others: the helpers that find them (finders.c) and work in them (places.c)
 *
 * All is called with the session's mutex held.
 */
#ifndef PEM_PLACES_H
#define PEM_PLACES_H

#include "consumer/confined.h"
#include "consumer/processes.h"

/*
 * Send a keeper a request and hear it until it has answered; other files that it tells of are taken in meanwhile. The
 * answer: 0, 1 or -errno; -ETIMEDOUT: it came not in time, by pem_monotonic_ns; -EPIPE: there is no keeper.
 */
int pem_place__ask_keeper(struct pem_session *session, struct pem_place *place,
			  enum pem_confined_request_kind kind, const char *name,
			  uint64_t deadline_ns);

/* Hear what finders have found since. */
void pem_session__listen_to_finders(struct pem_session *session);
void pem_session__end_finders(struct pem_session *session, uint64_t deadline_ns);

#endif
