/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * serve.h - a session that is a flight recorder answers requests for snapshots (pem_recorder__snapshot)
 */
#ifndef PEM_SERVE_H
#define PEM_SERVE_H

#include "consumer/session.h"

/* Make the socket in the session's folder. 0, or -errno: it is recorded all the same. */
int pem_session__serve(struct pem_session *session);
/* Tell who looks what is recorded, and where to (NULL: as before). */
void pem_session__describe_flight(struct pem_session *session, const char *trace);
/* Answer at most one request, if there is one. Writes a snapshot, and does not wait for the other side. */
void pem_session__answer_requests(struct pem_session *session);
void pem_session__stop_serving(struct pem_session *session);

#endif
