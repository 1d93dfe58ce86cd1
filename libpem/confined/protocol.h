/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * protocol.h - messages between a session and its confined helpers, the program pem-confined
 *
 * A helper works for a session in the directories of another user, with that user's rights and no
 * more. There are two roles. A finder searches runtime directories below the root directory of a
 * process. A keeper makes the session's directory in one runtime directory, passes the files that
 * appear there to the session as descriptors, and removes files that the session no longer needs.
 *
 * A helper starts with the descriptors below, and gets its setup as the first message. Every later
 * message is one struct request to the helper, or one struct reply from it, with at most one
 * descriptor. The session trusts nothing in a reply.
 */
#ifndef PEM_CONFINED_PROTOCOL_H
#define PEM_CONFINED_PROTOCOL_H

#include <stdint.h>

#define PEM_CONFINED_SOCKET 3 /* SOCK_SEQPACKET, to the session */
/* finder: /proc/PID, whose root directory it searches; keeper: the runtime directory */
#define PEM_CONFINED_FOLDER 4
/* finder: /proc/PID, to read that process's variables, or /dev/null */
#define PEM_CONFINED_PROCESS 5
#define PEM_CONFINED_GROUPS 64u
#define PEM_CONFINED_NAME 64u
/*
 * Files of one directory that a keeper reports, at most: a user with more processes at a time has
 * the rest counted.
 */
#define PEM_CONFINED_FILES 4096u
/* Names of one directory that a helper reads, at most. */
#define PEM_CONFINED_NAMES 65536u

enum pem_confined_role { PEM_CONFINED_FINDER = 1, PEM_CONFINED_KEEPER };

struct pem_confined_setup {
	uint32_t role;
	uint32_t switch_user; /* 0: the helper has the user's rights already */
	uint32_t uid, gid;
	uint32_t group_count;
	uint32_t groups[PEM_CONFINED_GROUPS];
	uint32_t page_bytes; /* keeper: size of the session's page */
	char session[32]; /* keeper: name of the session's directory */
};

enum pem_confined_request_kind {
	PEM_CONFINED_FIND = 1, /* finder: search again */
	PEM_CONFINED_SCAN, /* keeper: list the directories now */
	/* keeper: has the session directory called name a living consumer? */
	PEM_CONFINED_IS_ALIVE,
	/* keeper: remove a control file, if it has this inode number */
	PEM_CONFINED_REMOVE_CONTROL,
	PEM_CONFINED_REMOVE_POOL, /* keeper: remove a pool */
};

struct pem_confined_request {
	uint32_t kind;
	uint32_t number; /* comes back in the reply DONE; 0: no reply is wanted */
	uint64_t inode;
	char name[PEM_CONFINED_NAME];
};

enum pem_confined_reply_kind {
	PEM_CONFINED_DONE = 1, /* value: 0, 1 or -errno */
	PEM_CONFINED_FOUND, /* finder: a runtime directory, with its descriptor */
	/* keeper: the session's directory is made; with the descriptor of its page */
	PEM_CONFINED_PAGE,
	PEM_CONFINED_FAILED, /* keeper: it could not be made, value: -errno; the helper ends */
	/* keeper: a control file, pool or model that is complete, with its descriptor */
	PEM_CONFINED_CONTROL,
	PEM_CONFINED_POOL,
	PEM_CONFINED_MODEL,
	PEM_CONFINED_GONE, /* keeper: a control file has gone */
	/*
	 * keeper: value is the number of files beyond PEM_CONFINED_FILES. finder: the shared
	 * directory called name has more names than PEM_CONFINED_NAMES; sent once for each
	 * directory.
	 */
	PEM_CONFINED_OVER,
	/*
	 * keeper: value is the number of files that are not regular, not the user's, or have
	 * several names.
	 */
	PEM_CONFINED_REFUSED,
	/* keeper: processes on standby were not woken; value: what pem_standby__wake returned */
	PEM_CONFINED_NOT_WOKEN,
};

struct pem_confined_reply {
	uint32_t kind;
	uint32_t number;
	int32_t value;
	uint32_t reserved;
	uint64_t inode;
	char name[PEM_CONFINED_NAME];
};

#endif
