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

/* Hear what finders have found since. */
void pem_session__listen_to_finders(struct pem_session *session);
void pem_session__end_finders(struct pem_session *session, uint64_t deadline_ns);

#endif
