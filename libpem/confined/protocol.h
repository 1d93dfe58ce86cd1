/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * protocol.h - messages between a session and its confined helpers, the program pem-confined
 *
 * A helper does what a session has to do in the folders of another user, with that user's rights
 * and no more. There are two roles. A finder looks for runtime folders below the root folder of a
 * process. A keeper makes the session's folder in one runtime folder, passes on the files that
 * appear there as descriptors, and removes what the session is done with.
 *
 * A helper starts with the descriptors below and with its setup as the first message. Every later
 * message is one struct request to it, or one struct reply from it, with at most one descriptor.
 * The session believes nothing in a reply.
 */
#ifndef PEM_CONFINED_PROTOCOL_H
#define PEM_CONFINED_PROTOCOL_H

#include <stdint.h>

#define PEM_CONFINED_SOCKET 3 /* SOCK_SEQPACKET, to the session */
/* finder: /proc/PID, in whose root folder it looks; keeper: the runtime folder */
#define PEM_CONFINED_FOLDER 4
/* finder: /proc/PID, to read that process's variables; or /dev/null */
#define PEM_CONFINED_PROCESS 5
#define PEM_CONFINED_GROUPS 64u
#define PEM_CONFINED_NAME 64u
/*
 * Files of one folder that a keeper tells of: of more processes of one user at a time, the rest is
 * counted.
 */
#define PEM_CONFINED_FILES 4096u
/* Names of one folder that a helper reads. */
#define PEM_CONFINED_NAMES 65536u

enum pem_confined_role { PEM_CONFINED_FINDER = 1, PEM_CONFINED_KEEPER };

struct pem_confined_setup {
	uint32_t role;
	uint32_t switch_user; /* 0: the helper has the user's rights already */
	uint32_t uid, gid;
	uint32_t group_count;
	uint32_t groups[PEM_CONFINED_GROUPS];
	uint32_t page_bytes; /* keeper: size of the session's page */
	char session[32]; /* keeper: name of the session's folder */
};

enum pem_confined_request_kind {
	PEM_CONFINED_FIND = 1, /* finder: look again */
	PEM_CONFINED_SCAN, /* keeper: list the folders now */
	/* keeper: is there a consumer behind the session's folder called name? */
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
	PEM_CONFINED_FOUND, /* finder: a runtime folder, with its descriptor */
	/* keeper: the session's folder is made; with the descriptor of its page */
	PEM_CONFINED_PAGE,
	PEM_CONFINED_FAILED, /* keeper: it is not, value: -errno; the helper ends */
	/* keeper: a control file, pool or model that is complete, with its descriptor */
	PEM_CONFINED_CONTROL,
	PEM_CONFINED_POOL,
	PEM_CONFINED_MODEL,
	PEM_CONFINED_GONE, /* keeper: a control file is no more */
	/*
	 * keeper: value: how many files there are beyond PEM_CONFINED_FILES; finder: the folder for
	 * all users so named has names beyond PEM_CONFINED_NAMES, told once of each
	 */
	PEM_CONFINED_OVER,
	/* keeper: value: how many are no plain files of the user's with one name */
	PEM_CONFINED_REFUSED,
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
