/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * entry.h - a process's table of sessions: taking an entry, offering it, giving it back
 *
 * Also: whether a session's consumer is alive. Consumers work on the control files of other
 * processes, a process works on its own. To a consumer the table is hostile: a consumer keeps its
 * own copy of what it relies on.
 */
#ifndef PEM_ENTRY_H
#define PEM_ENTRY_H

#include <pem/abi.h>

#include <stdbool.h>

/*
 * Return whether the session's folder of this name has a living consumer. Unknown counts as true.
 */
typedef bool pem_has_consumer_t(void *arg, const char *folder);
/*
 * Take an entry of a table: a free one, or one whose consumer is dead. folder: the name of the
 * consumer's session folder; "": the process that owns the table takes the entry. Returns the
 * entry's index, and its new word in *word. -EUSERS: there is none. As async-signal-safe as
 * has_consumer.
 */
int pem_entry__take(struct pem_session_entry *table, pem_has_consumer_t *has_consumer, void *arg,
		    const char *folder, uint64_t *word);
/*
 * Offer an entry that this process has taken. *word is the word that taking it returned. The
 * members consumer_pid, session_id, contexts and folder come from 'wanted'. is_own: the table is
 * this process's. If another entry of the table offers the session, or is about to, this entry is
 * given back. Returns index, and the entry's new word in *word; or the index of the entry that has
 * the session; or -1: another process has taken this entry away.
 */
int pem_entry__offer(struct pem_session_entry *table, int index, uint64_t *word,
		     const struct pem_session_entry *wanted, bool is_own);
/*
 * Give back an entry that was taken or offered with this word. Does nothing if the entry has
 * another owner now.
 */
void pem_entry__give_back(struct pem_session_entry *entry, uint64_t word);
/*
 * Copy an offered entry of a table. Returns false if it is not offered, or is changing. The folder
 * in the copy is checked: it is a session's name, or "".
 */
bool pem_entry__read(const struct pem_session_entry *entry, struct pem_session_entry *copy);
/* Return the index of the entry that offers the session with this id, or -1. */
int pem_entry__find(const struct pem_session_entry *table, uint32_t session_id);

/* Return whether this could be the name of a session's folder. */
bool pem_is_session_name(const char *name);
/*
 * Declare that this process is the consumer of the session in the folder that directory_fd is open
 * on. The function locks the folder until the returned descriptor, which is a new one, is released.
 * A child of fork does not keep the lock. Returns -errno on failure. -EWOULDBLOCK: another process
 * holds the lock for longer than a check takes. May block for 0.1 s.
 */
int pem_alive__hold(int directory_fd);
/*
 * As pem_alive__hold, but lock a file of the folder. Consumers that may not open the folder test
 * that lock.
 */
int pem_alive__hold_file(int directory_fd, const char *name);
/* Release a lock. -1 is accepted. */
void pem_alive__release(int fd);
/*
 * Return whether the session in a folder has a living consumer. Unknown counts as true.
 * Async-signal-safe.
 */
bool pem_alive__check(const char *directory);
/* As pem_alive__check, for the lock on a file. */
bool pem_alive__check_file(int directory_fd, const char *name);

#endif
