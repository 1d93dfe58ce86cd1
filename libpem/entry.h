/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * entry.h - a process's table of sessions: taking an entry, offering it, giving it back; is a
 * session's consumer alive?
 *
 * Both sides do it: consumers in the control files of others, a process in its own. The table is
 * hostile to consumers: what they rely on they remember themselves.
 */
#ifndef PEM_ENTRY_H
#define PEM_ENTRY_H

#include <pem/abi.h>

#include <stdbool.h>

/* Is there a consumer behind the session's folder of this name? What can't be found out is yes. */
typedef bool pem_has_consumer_t(void *arg, const char *folder);
/*
 * Take a free entry of a table for the consumer whose folder is so called, "": for the process
 * whose table it is; or one whose consumer is dead. Returns its index, and its word then in *word;
 * or -EUSERS. As async-signal-safe as has_consumer.
 */
int pem_entry__take(struct pem_session_entry *table, pem_has_consumer_t *has_consumer, void *arg,
		    const char *folder, uint64_t *word);
/*
 * Offer an entry that this process has taken, by its word then, as what 'wanted' says of
 * consumer_pid, session_id, contexts and folder, unless the session is offered in the table, or
 * about to be: the entry is then given back. is_own: the table is this process's. Returns index,
 * with its word now in *word; or the index of the entry that has the session; or -1: the entry has
 * been taken away.
 */
int pem_entry__offer(struct pem_session_entry *table, int index, uint64_t *word,
		     const struct pem_session_entry *wanted, bool is_own);
/* Give back what was taken or offered with this word; nothing if it has become another's. */
void pem_entry__give_back(struct pem_session_entry *entry, uint64_t word);
/*
 * Copy a table's entry that is offered; false: it is not, or changes just now. The folder is
 * checked: a session's, or "".
 */
bool pem_entry__read(const struct pem_session_entry *entry, struct pem_session_entry *copy);
/* Index of the entry that offers the session with this id, or -1. */
int pem_entry__find(const struct pem_session_entry *table, uint32_t session_id);

/* Could this be the name of a session's folder? */
bool pem_is_session_name(const char *name);
/*
 * Say that this process consumes the session in the folder that directory_fd is open on: hold a
 * lock on it until the descriptor that is returned, another one, is released. A child of fork does
 * not keep it. -errno; -EWOULDBLOCK: somebody else holds it for longer than a look takes.
 */
int pem_alive__hold(int directory_fd);
/* The same with the lock on a file of that folder, for those who may not open the folder itself. */
int pem_alive__hold_file(int directory_fd, const char *name);
/* -1 is accepted. */
void pem_alive__release(int fd);
/* Has the session in a folder a consumer? What can't be found out is yes. Async-signal-safe. */
bool pem_alive__check(const char *directory);
/* The same for the lock on a file. */
bool pem_alive__check_file(int directory_fd, const char *name);

#endif
