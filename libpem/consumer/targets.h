/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * targets.h - processes that the session's sources observe, and what processes are called that ran before
 *
 * All is called with the session's mutex held.
 */
#ifndef PEM_TARGETS_H
#define PEM_TARGETS_H

#include "consumer/session.h"

/* targets.c */
/* Let the sources observe a process, which runs already or is about to exec, and its descendants to come. */
void pem_session__set_root(struct pem_session *session, pid_t pid, bool runs);
/* Let a source that was opened for the root observe all others, too. */
void pem_session__add_targets_to(struct pem_session *session, struct pem_instance *instance);
/* Let them observe who runs already: descendants of targets, programs, control groups and namespaces. */
void pem_session__find_targets(struct pem_session *session);
/* One that raises events itself has come: is it one of them? Then it is not waited for the next look. */
void pem_session__note_target(struct pem_session *session, uint32_t pid);
/* The same once a second, if others may come; opens the sources for the first one. */
void pem_session__update_targets(struct pem_session *session);
bool pem_session__observes_kernel(const struct pem_session *session);

/* run.c */
/* Did a session of this process start it? Then it needs no libpem to be named to it, whether it uses it yet or not. */
bool pem_session__has_started(uint32_t pid);

/* names.c */
/* What /proc calls a process, '?' if nothing: then false. */
bool pem_process_name(uint32_t pid, char name[PEM_NAME_BYTES]);
/* Let the trace know what all processes are called; once. */
void pem_log__name_processes(struct pem_log *log);
/* And one that was found since; log may be NULL. */
void pem_log__name_process(struct pem_log *log, uint32_t pid);

#endif
