/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * limits.h - how much of a recorder one runtime folder may take, and what was over that
 *
 * Files in a runtime folder are made by its owner, who may be hostile, or only busy. Each folder
 * (struct pem_dir) has an account (struct pem_dir_usage). What is over a limit is counted there by
 * kind, said once, and written into the trace.
 *
 * The limits of the session's own folder only keep the recorder's process alive. Those of other
 * users also keep them from each other. They hold for all folders of a user together (struct
 * pem_user): a user may have many. A user gets no more than is left for all others, so that the
 * first that come can't take all.
 *
 *	what                  each user    all users together    own    why
 *	texts of models       256          -                     4096   a program brings one to
 *									three, of 2 to 200 KiB
 *	bytes of one text     1 MiB        -                     64 MiB the catalogue of libc's
 *								 events has 0.2 MiB
 *	bytes of texts        8 MiB        64 MiB                256 MiB parsed, they take up to
 *								 four times as much memory
 *	events new to the session 256      2048                  -      a model holds 4096 events,
 *									the catalogue's among them
 *	pools                 1024         8192                  16384  a process has one; a kernel
 *									allows 65530 mappings
 *	control files         1024         8192                  16384  the same
 *	bytes mapped          2 TiB        16 TiB                64 TiB a process has 128 TiB of
 *								 addresses
 *	users in a public folder -    256                   -      each costs 6 KiB, and is looked
 *								   for in a list
 *	files that are listed 4096        -                     -      of one folder, see
 *								       PEM_CONFINED_FILES
 *	messages in a turn    64          -                     -      of one folder's keeper, each
 *								       with one file
 *	time of a turn        5 ms         -                     -      a pool of the default size
 *									lasts 68 ms at 20 M
 *									records/s
 *	time of the end       1 s          10 s                  -      what has not been read by
 *									then is counted as discarded
 *	waiting for files     1/20, and 1 s more -               -      a touch of a user's memory
 *									can wait (stall.c)
 */
#ifndef PEM_CONSUMER_LIMITS_H
#define PEM_CONSUMER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct pem_dir;
struct pem_session;
struct pem_trace_info;

/* What a folder holds of the recorder as long as it lasts. */
enum pem_resource {
	PEM_RESOURCE_MODELS,
	PEM_RESOURCE_MODEL_BYTES,
	PEM_RESOURCE_EVENTS,
	PEM_RESOURCE_POOLS,
	PEM_RESOURCE_MEMBERS,
	PEM_RESOURCE_BYTES, /* mapped */
	PEM_RESOURCE_COUNT
};

/* What the recorder refuses, by the sentence that says so. */
enum pem_excess {
	PEM_EXCESS_MODELS, /* events whose description is over a limit */
	PEM_EXCESS_EVENTS, /* events that are new to the session */
	PEM_EXCESS_FALSE_MODELS, /* events whose description has another hash, or can't be parsed */
	PEM_EXCESS_POOLS,
	PEM_EXCESS_MEMBERS,
	PEM_EXCESS_GEOMETRY, /* pools of another geometry than the session's */
	PEM_EXCESS_LINKS, /* files with several names, of another owner, or not plain */
	PEM_EXCESS_NAMES, /* files of which a keeper does not tell, as there are too many */
	PEM_EXCESS_MAPPING, /* files for which the recorder has no memory */
	PEM_EXCESS_TIME, /* pools that were not read to their end */
	PEM_EXCESS_PROCESS, /* pools that name a process of another user's */
	PEM_EXCESS_COUNTS, /* processes whose own counts can't be true */
	PEM_EXCESS_USERS, /* pools of too many users in a public folder */
	PEM_EXCESS_STALLS, /* processes of a user whose files keep the session waiting (stall.c) */
	PEM_EXCESS_COUNT
};

/* Lists of the session's own directory, which are looked through again and again. */
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
	/* not one user, but what of the session's public folder is no user's pool or model */
	bool is_public;
	uint64_t used[PEM_RESOURCE_COUNT];
	/* Time taken in this turn, and at the end of a recording. */
	uint64_t turn_ns, end_ns;
	/* finders.c: bit i: enum finding i was said of the user. */
	uint32_t findings_said;
	/* stall.c: time that the session has waited for this user, less the user's share of it. */
	uint64_t stalled_ns;
	uint64_t stalled_at_ns; /* when it last did */
	uint32_t stalls; /* how often, since stalled_ns was 0 */
	bool is_left_out;
	struct pem_user *next;
};

struct pem_dir_usage {
	struct pem_user *user; /* of another user's folder, once that has taken anything */
	uint64_t used[PEM_RESOURCE_COUNT];
	uint64_t excess[PEM_EXCESS_COUNT];
	uint32_t said; /* bit i: excess i was */
	/*
	 * Of the own directory: what was over a limit, as far as a list was looked through this
	 * time.
	 */
	uint64_t listed[PEM_LIST_COUNT][PEM_EXCESS_COUNT];
	/* Of the own directory: PEM_REFUSED_FILES of them, by inode; NULL: none was refused yet. */
	struct pem_refused_file *refused;
	/* Files opened so far. */
	uint64_t files_opened;
};

/* The account of a user, or of all users of the public folder. NULL: there is no memory. */
struct pem_user *pem_session__user(struct pem_session *session, uid_t uid, bool is_public);
/*
 * The account of a folder's user. NULL: of the session's own folder there is none; or there is no
 * memory.
 */
struct pem_user *pem_dir__user(struct pem_session *session, struct pem_dir *dir);
/* May the directory have so much more? Then it is booked, until pem_dir__give_back. */
bool pem_dir__take(struct pem_session *session, struct pem_dir *dir, enum pem_resource resource,
		   uint64_t amount);
void pem_dir__give_back(struct pem_session *session, struct pem_dir *dir,
			enum pem_resource resource, uint64_t amount);
/* The most bytes that a text of a model may have there. */
uint64_t pem_dir__text_bytes_max(const struct pem_dir *dir);

/* Count what is over a limit, and say it if it is the first of its kind. */
void pem_dir__exceed(struct pem_session *session, struct pem_dir *dir, enum pem_excess excess,
		     uint64_t count);
/* The same for what somebody else has counted, to so many in all. */
void pem_dir__exceed_to(struct pem_session *session, struct pem_dir *dir, enum pem_excess excess,
			int32_t count);
/*
 * The same for one file of a list, which is counted once, however often the list is looked through.
 * Of another's directory each file comes once.
 */
void pem_dir__exceed_in_list(struct pem_session *session, struct pem_dir *dir, enum pem_list list,
			     enum pem_excess excess);

/* A turn begins: every user has all of its time. */
void pem_session__begin_turn(struct pem_session *session);
/*
 * Has the directory's user had the time of this turn? Never true for the session's own directory.
 */
bool pem_dir__had_turn(const struct pem_dir *dir);
/*
 * The session begins to work for a directory. Returns the time, for pem_dir__charge. For another
 * user's directory the stall clock starts, of which a session has one: the last call counts.
 */
uint64_t pem_dir__begin(struct pem_session *session, const struct pem_dir *dir);
/*
 * Add what the session has waited since pem_dir__begin to the user's account. A user over the limit
 * is left out: memory mapped from that user becomes zeroes, and no further files are taken in.
 */
void pem_dir__note_wait(struct pem_session *session, struct pem_dir *dir, uint64_t now_ns);
void pem_session__close_stall_clock(struct pem_session *session);
/* The time since began_ns was the directory's, at the recording's end or in a turn. */
void pem_dir__charge(struct pem_session *session, struct pem_dir *dir, uint64_t began_ns);
/* A recording or a snapshot comes to its end, where directories may take longer. */
void pem_session__begin_end(struct pem_session *session);
bool pem_dir__had_end(const struct pem_session *session, const struct pem_dir *dir);
void pem_dir__charge_end(struct pem_session *session, struct pem_dir *dir, uint64_t began_ns);

/* The list of the session's own directory is looked through from its beginning. */
void pem_dir__begin_list(struct pem_dir *dir, enum pem_list list);
/*
 * Open a file of the list for reading and writing. -1: it is no more; or it is refused, by what can
 * be told without opening it, or since it was before and has not changed, which is counted.
 */
int pem_dir__open(struct pem_session *session, struct pem_dir *dir, enum pem_list list,
		  int directory_fd, const char *name);

/* Remember a file that is refused, until it changes. */
void pem_dir__refuse_file(struct pem_dir *dir, const struct stat *st, enum pem_excess excess);

/* Say how often limits were exceeded, of every directory. */
void pem_session__say_excess(struct pem_session *session);
/* The same, as gaps of a trace. */
void pem_session__note_excess(struct pem_session *session, struct pem_trace_info *info);
/* Free what the account of a directory holds. */
void pem_dir__close_account(struct pem_session *session, struct pem_dir *dir);
/* Free the accounts of users: no directory is left. */
void pem_session__forget_users(struct pem_session *session);

#endif
