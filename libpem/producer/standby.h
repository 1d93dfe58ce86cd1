/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* standby.h - processes that nobody observes, and that have no control file yet */
#ifndef PEM_PRODUCER_STANDBY_H
#define PEM_PRODUCER_STANDBY_H

#include "producer/providers.h"

#include <pem/abi.h>

#include <stdbool.h>

/*
 * The process starts in a session. value: that of PEM_SESSION; it must stay as it is until
 * pem_standby__join_deferred. The process joins the session then, unless it has come on standby.
 */
void pem_standby__defer(const char *value);
/*
 * Join the session that was deferred. Returns its index; -errno; PEM_SESSIONS_MAX: there is none.
 * Takes the process lock.
 */
int pem_standby__join_deferred(void);
/* The session that a process on standby was started in; NULL: none. What it points to never
 * changes. */
const struct pem_standby_session *pem_standby__session(void);

/*
 * Put the process on standby, with these providers as its first ones. False: a session may want the
 * process, or it can't be on standby; nothing has changed. Called as the process starts, by its
 * only thread, without the process lock.
 */
bool pem_standby__enter(const struct pem_known_provider providers[], uint32_t count);

/*
 * Make the control file of a process on standby, and join the sessions that want the process. Does
 * nothing where the process is not on standby. Takes the process lock, and stays on standby where
 * this thread holds it already. Keeps errno. Async-signal-safe.
 */
void pem_standby__leave(void);

/*
 * Unregister a provider of a process on standby. False: the process is not on standby. The
 * provider's memory stays: it is used once more when the process leaves. Takes no lock, since each
 * process that ends comes here.
 */
bool pem_standby__forget(struct pem_provider *provider);

/* Count an event that nothing raised as lost. False: the process is not on standby. */
bool pem_standby__lose(uint32_t event_id);

bool pem_process__on_standby(void);
/* Has the process had one thread so far? False where the C library does not tell. */
bool pem_process__had_one_thread(void);
/* Is the process on standby, and has it had one thread so far? */
bool pem_standby__is_alone(void);
/* Was the process woken, and has not left yet? */
bool pem_standby__is_woken(void);
/* As pem_standby__leave, in a process that is surely no child of vfork. Lock held. */
void pem_standby__leave_now(void);
/*
 * Note the facts of providers that are registered next, if they are the process's first. Each
 * process that starts comes here.
 */
void pem_standby__note_facts(const struct pem_known_provider known[], uint32_t count);
/*
 * Fill known with the providers of the process, in the order of their pages, and return how many
 * there are. 0: some of them cannot be on standby. Lock held.
 */
uint32_t pem_standby__providers(struct pem_known_provider known[PEM_PROVIDERS_MAX]);

/* --- standby_fork.c --- */

/*
 * Prepare for a fork. Returns whether pem_standby__begin_child can put the child on standby. Makes
 * files at the first fork. Lock held.
 */
bool pem_standby__before_fork(void);
/* Put this new child of fork on standby, as process pid. False: nothing has changed. */
bool pem_standby__begin_child(uint32_t pid);
/*
 * If this process is such a child and has its parent's state still, drop that state, and return
 * true. The child stays on standby. Lock held.
 */
bool pem_standby__start_over(void);
/*
 * Children begin on standby no more. Called before the process takes a seccomp filter: sessions
 * wake none of the processes that map a standby file if one of them has a filter which came later.
 * Takes the process lock.
 */
void pem_standby__end_children(void);
/*
 * A child of fork, whose providers' pages are those of the session's standby file, comes on
 * standby.
 */
void pem_standby__enter_again(const struct pem_standby_session *session);

/* --- standby_make.c --- */

/* The session that a process on standby was started in. */
struct pem_standby_session {
	struct pem_session_page *page; /* mapped; NULL: it was in none */
	uint64_t device, inode; /* of the page's file */
	char folder[sizeof(((struct pem_session_entry *)0)->folder)]; /* in the runtime folder */
	char public_directory[64]; /* as in struct pem_joined */
};

/*
 * Open the file for a process that starts in no session, or make it. Returns -1 where a session may
 * want the process, or there is no such file.
 */
int pem_standby_file__open(const struct pem_known_provider known[], uint32_t count);
/*
 * The same for a process that was given a session, with PEM_SESSION's value; another session may
 * not live. session is filled. Where the result is -1, and it has a page, the process is to join by
 * that.
 */
int pem_standby_file__open_of(const char *given, const struct pem_known_provider known[],
			      uint32_t count, struct pem_standby_session *session);
/*
 * The same for children of a process that has joined the session of this page. Another session may
 * live. Lock held.
 */
int pem_standby_file__open_for_child(struct pem_session_page *page,
				     const struct pem_known_provider known[], uint32_t count);
/* Bytes of the providers' pages in the file. */
uint64_t pem_standby_file__bytes(const struct pem_known_provider known[], uint32_t count);

/* --- what standby.c needs of control.c, process.c and join.c --- */

/* Fill the head of a provider's page. */
void pem_process__fill_page_head(struct pem_control_header *head,
				 const struct pem_provider *provider);
/* Make the process's state its own, in a child of fork, _Fork or clone. Lock held. */
void pem_process__become_child(void);
/* Unmap the parent's control file. The table of sessions becomes empty. Lock held. */
void pem_process__forget_control(struct pem_control_file *parents);
/*
 * Does the session of this folder in the runtime folder live? Unknown counts as true. arg is not
 * used. Lock held.
 */
bool pem_process__has_consumer(void *arg, const char *folder);
/* Remove the control file of the program that this process ran before an exec. */
void pem_process__remove_former(void);
/* Is the provider's page in the control file? Lock held. */
bool pem_process__is_published(const struct pem_provider *provider);
/* Give a provider an empty private page. False: the process can't have one. Lock held. */
bool pem_process__keep_private(const struct pem_provider *provider);
/* Can the provider be registered? Returns 0 or -errno. */
int pem_process__check_provider(const struct pem_provider *provider);
/*
 * Put a provider that was checked on the list, and find the place of its events among the
 * process's. Returns whether they were there before: a library has gone and come again. Lock held,
 * or only one thread.
 */
bool pem_process__list_provider(struct pem_provider *provider);
/*
 * Note the events of a provider on the list in the process and in the pools of its sessions. If
 * they were there before, their text may be another now. facts: NULL where they are not known.
 * Lock held.
 */
void pem_process__note_events(struct pem_provider *provider, bool came_again,
			      const struct pem_provider_facts *facts);
/*
 * Map the page of the session of session->folder, and fill what belongs to it. False: there is
 * none, or it ended, or this process may not write it, or its consumer is too old for standby. Lock
 * held, or only one thread.
 */
bool pem_process__map_session(struct pem_standby_session *session);
/*
 * Join a session that the process was started in. Its page stays mapped. Returns its index, or
 * -errno. Lock held.
 */
int pem_process__join_started(const struct pem_standby_session *session);
/*
 * Does any session live in the runtime folder? True also where the folder can't be read. Makes
 * system calls that a program's loader does not make.
 */
bool pem_process__finds_session(void);

#endif
