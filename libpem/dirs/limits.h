/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * limits.h - how much of a recorder one runtime folder may take, and what was over that
 *
 * The owner of a runtime folder makes the files in it, and may be hostile, or only busy. Each
 * folder (struct pem_dir) has an account (struct pem_dir_usage). The account counts, by kind, what
 * is over a limit. The session says it once for each kind and writes it into the trace.
 *
 * The limits of the session's own folder only keep the recorder's process alive. The limits of
 * other users also keep these users from harming each other. Such a limit holds for all folders of
 * a user together (struct pem_user), because a user may have many. A user gets no more than is left
 * for all others, so that the first users that come can't take all.
 *
 *	what                      each user  all users  own     why
 *	texts of models           256        -          4096    a program brings 1 to 3,
 *	                                                        of 2 to 200 KiB
 *	bytes of one text         1 MiB      -          64 MiB  the catalogue of libc's
 *	                                                        events has 0.2 MiB
 *	bytes of texts            8 MiB      64 MiB     256 MiB a parsed text takes up to
 *	                                                        four times as much memory
 *	events new to the session 256        2048       -       a model holds 4096 events,
 *	                                                        the catalogue's included
 *	pools                     1024       8192       16384   a process has one; a kernel
 *	                                                        allows 65530 mappings
 *	control files             1024       8192       16384   as for pools
 *	bytes mapped              2 TiB      16 TiB     64 TiB  a process has 128 TiB of
 *	                                                        addresses
 *	users in a public folder  -          256        -       a user costs 6 KiB, and a
 *	                                                        search of a list
 *	files that are listed     4096       -          -       for one folder, see
 *	                                                        PEM_CONFINED_FILES
 *	messages in a turn        64         -          -       for the keeper of a folder;
 *	                                                        a message brings one file
 *	time of a turn            5 ms       -          -       a pool of the default size
 *	                                                        lasts 68 ms at 20 M records/s
 *	time of the end           1 s        10 s       -       what is not read by then is
 *	                                                        counted as discarded
 *	waiting for files         1/20 of the time, and 1 s     a touch of a user's memory
 *	                          besides                       can wait (stall.c)
 */
#ifndef PEM_CONSUMER_LIMITS_H
#define PEM_CONSUMER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct pem_dir;
struct pem_session;
struct pem_trace_info;

/* What a folder takes of the recorder for as long as the folder is in use. */
enum pem_resource {
	PEM_RESOURCE_MODELS,
	PEM_RESOURCE_MODEL_BYTES,
	PEM_RESOURCE_EVENTS,
	PEM_RESOURCE_POOLS,
	PEM_RESOURCE_MEMBERS,
	PEM_RESOURCE_BYTES, /* mapped */
	PEM_RESOURCE_COUNT
};

/* What the recorder refuses. Each has its sentence in limits.c. */
enum pem_excess {
	PEM_EXCESS_MODELS, /* events whose description is over a limit */
	PEM_EXCESS_EVENTS, /* events that are new to the session */
	PEM_EXCESS_FALSE_MODELS, /* events whose description has another hash, or can't be parsed */
	PEM_EXCESS_POOLS,
	PEM_EXCESS_MEMBERS,
	PEM_EXCESS_GEOMETRY, /* pools of another geometry than the session's */
	PEM_EXCESS_LINKS, /* files with several names, of another owner, or not plain */
	PEM_EXCESS_NAMES, /* files that a keeper does not pass on, because there are too many */
	PEM_EXCESS_MAPPING, /* files for which the recorder has no memory */
	PEM_EXCESS_TIME, /* pools that were not read to their end */
	PEM_EXCESS_PROCESS, /* pools that name a process of another user */
	PEM_EXCESS_COUNTS, /* processes whose own counts can't be true */
	PEM_EXCESS_USERS, /* pools of too many users in a public folder */
	PEM_EXCESS_STALLS, /* processes of a user whose files keep the session waiting (stall.c) */
	PEM_EXCESS_COUNT
};

/* Lists of files of the session's own directory, which every scan reads again. */
enum pem_list { PEM_LIST_POOLS, PEM_LIST_MEMBERS, PEM_LIST_COUNT };

/* A file that was refused, until it changes. */
struct pem_refused_file {
	uint64_t inode, ctime_ns;
	uint8_t excess; /* enum pem_excess */
};
#define PEM_REFUSED_FILES 1024u

/* What all folders of another user have taken together. */
struct pem_user {
	uid_t uid;
	/*
	 * This is no single user. It accounts for what the session's public folder takes apart from
	 * the pools and models of its users.
	 */
	bool is_public;
	uint64_t used[PEM_RESOURCE_COUNT];
	/* Time taken in this turn, and time taken at the end of a recording. */
	uint64_t turn_ns, end_ns;
	/* finders.c: bit i: the session has said finding i (enum finding) of the user. */
	uint32_t findings_said;
	/*
	 * stall.c: how long the session has waited for this user, less the user's share of that
	 * time.
	 */
	uint64_t stalled_ns;
	uint64_t stalled_at_ns; /* when stalled_ns was last changed */
	uint32_t stalls; /* how often the session has waited since stalled_ns was 0 */
	bool is_left_out;
	struct pem_user *next;
};

struct pem_dir_usage {
	/*
	 * The account of the folder's user. NULL: the folder is the session's own, or has not taken
	 * anything.
	 */
	struct pem_user *user;
	uint64_t used[PEM_RESOURCE_COUNT];
	uint64_t excess[PEM_EXCESS_COUNT];
	uint32_t said; /* bit i: excess i was said */
	/*
	 * Of the session's own directory: what is over a limit so far in the current scan of a
	 * list.
	 */
	uint64_t listed[PEM_LIST_COUNT][PEM_EXCESS_COUNT];
	/*
	 * Of the session's own directory: a table of PEM_REFUSED_FILES files, by inode. NULL: no
	 * file was refused yet.
	 */
	struct pem_refused_file *refused;
	/* Files opened so far. */
	uint64_t files_opened;
};

/* Return the account of a user, or of the public folder; made if need be. NULL: out of memory. */
struct pem_user *pem_session__user(struct pem_session *session, uid_t uid, bool is_public);
/*
 * Return the account of a folder's user. NULL: the folder is the session's own, which has none; or
 * out of memory.
 */
struct pem_user *pem_dir__user(struct pem_session *session, struct pem_dir *dir);
/* May the directory have so much more of a resource? If so, book it, until pem_dir__give_back. */
bool pem_dir__take(struct pem_session *session, struct pem_dir *dir, enum pem_resource resource,
		   uint64_t amount);
void pem_dir__give_back(struct pem_session *session, struct pem_dir *dir,
			enum pem_resource resource, uint64_t amount);
/* Return the most bytes that a text of a model may have in the directory. */
uint64_t pem_dir__text_bytes_max(const struct pem_dir *dir);

/* Count what is over a limit, and say it if it is the first of its kind. */
void pem_dir__exceed(struct pem_session *session, struct pem_dir *dir, enum pem_excess excess,
		     uint64_t count);
/* Do so for a count that a keeper keeps itself; count is its total so far. */
void pem_dir__exceed_to(struct pem_session *session, struct pem_dir *dir, enum pem_excess excess,
			int32_t count);
/*
 * Do so for one file of a list. The file is counted once, however often the list is read. In the
 * directory of another user each file comes only once.
 */
void pem_dir__exceed_in_list(struct pem_session *session, struct pem_dir *dir, enum pem_list list,
			     enum pem_excess excess);

/* A turn begins: every user has its whole time again. */
void pem_session__begin_turn(struct pem_session *session);
/*
 * Has the directory's user used up the time of this turn? Never true for the session's own
 * directory.
 */
bool pem_dir__had_turn(const struct pem_dir *dir);
/*
 * The session begins to work for a directory. Returns the time (pem_monotonic_ns), for
 * pem_dir__charge. If the directory is another user's, the stall clock starts. A session has one
 * stall clock: the last call counts.
 */
uint64_t pem_dir__begin(struct pem_session *session, const struct pem_dir *dir);
/*
 * Add the time that the session has waited since pem_dir__begin to the user's account. A user over
 * the limit is left out: zeroes replace the memory mapped from that user, and the session takes in
 * no further files.
 */
void pem_dir__note_wait(struct pem_session *session, struct pem_dir *dir, uint64_t now_ns);
void pem_session__close_stall_clock(struct pem_session *session);
/*
 * Charge the time since began_ns to the directory's user: pem_dir__charge in a turn,
 * pem_dir__charge_end at the end of a recording.
 */
void pem_dir__charge(struct pem_session *session, struct pem_dir *dir, uint64_t began_ns);
/* A recording or a snapshot comes to its end. Directories may take longer there than in a turn. */
void pem_session__begin_end(struct pem_session *session);
bool pem_dir__had_end(const struct pem_session *session, const struct pem_dir *dir);
void pem_dir__charge_end(struct pem_session *session, struct pem_dir *dir, uint64_t began_ns);

/* A scan of a list of the session's own directory begins. */
void pem_dir__begin_list(struct pem_dir *dir, enum pem_list list);
/*
 * Open a file of the list for reading and writing. Returns a descriptor, or -1: the file is gone,
 * or it is refused. The function refuses a file that was refused before and has not changed, one
 * that is not plain or has several names, and one that can't be opened. It counts the refusal.
 */
int pem_dir__open(struct pem_session *session, struct pem_dir *dir, enum pem_list list,
		  int directory_fd, const char *name);

/* Remember a file that is refused, until the file changes. */
void pem_dir__refuse_file(struct pem_dir *dir, const struct stat *st, enum pem_excess excess);

/* Say how often limits were exceeded, for every directory. */
void pem_session__say_excess(struct pem_session *session);
/* Add the same sentences to the gaps of a trace. */
void pem_session__note_excess(struct pem_session *session, struct pem_trace_info *info);
/* Free what the account of a directory holds. */
void pem_dir__close_account(struct pem_session *session, struct pem_dir *dir);
/* Free the accounts of all users. No directory is left. */
void pem_session__forget_users(struct pem_session *session);

#endif
