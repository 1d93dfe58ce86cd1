/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * helpers.h - helpers for the runtime folders of other users: finders find the folders (finders.c),
 * keepers work in them (dirs.c)
 *
 * All functions are called with the session's mutex held.
 */
#ifndef PEM_HELPERS_H
#define PEM_HELPERS_H

struct pem_dir;
struct pem_session;
struct pem_user;

/* Handle the messages that finders have sent since the last call. Never waits. */
void pem_session__listen_to_finders(struct pem_session *session);
/* Ask the directory's keeper, if it has one, to tell all that is there now. */
void pem_dir__ask(struct pem_dir *dir);
void pem_session__ask_keepers(struct pem_session *session, uid_t owner);
/*
 * Has a keeper of this user still to answer, or are messages that it sent before still to be
 * handled?
 */
bool pem_session__awaits_keepers(const struct pem_session *session, uid_t owner);
void pem_session__forget_asked(struct pem_session *session, uid_t owner);
/* End a user's keepers, without saying so. */
void pem_session__end_keepers(struct pem_session *session, const struct pem_user *user);
void pem_session__end_finders(struct pem_session *session, uint64_t deadline_ns);

#endif
