/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dirs.h - runtime directories that a session reaches processes in: its own, its public one, and
 * those of other users
 *
 * Not here: the processes (processes/processes.h), limits (limits.h), helpers (helpers.h).
 */
#ifndef PEM_DIRS_H
#define PEM_DIRS_H

#include "dirs/limits.h"

#include <pem/abi.h>
#include <pem/pem.h>

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

struct pem_confined;
struct pem_dir_event;
struct pem_finder;
struct pem_kept_message;
struct pem_known_model;
struct pem_producer;
struct pem_session;

#define PEM_ANY_USER ((uid_t)-1)

struct pem_dir_of_session {
	struct pem_session *session;
	struct pem_dir *dir;
};

/*
 * One program that fills a public folder costs the others nothing but what comes after so many
 * files.
 */
#define PEM_PUBLIC_FILES_MAX 4096

#define PEM_DIR_BUCKETS 256u

/*
 * A runtime folder in which the session meets processes: the first is its own, others are other
 * users' and containers'.
 */
struct pem_dir {
	uint32_t number; /* 0: the session's own */
	/*
	 * The session's public folder: files in it are of any user. It has no runtime folder. See
	 * public.c.
	 */
	bool is_public;
	bool over_said; /* that there are too many files in it */
	bool full_said; /* that there was no room for further files in it */
	/*
	 * A public folder's: when it had last changed, if nobody's file was in it then; 0: it is to
	 * be listed.
	 */
	struct timespec bare_since;
	/*
	 * Not NULL: this directory is what one user has in that public folder. It has the folder's
	 * descriptor, and no page. Users share neither models nor limits.
	 */
	struct pem_dir *public_folder;
	int alive_fd; /* of a public one: holds the lock that says that the consumer lives */
	uid_t owner;
	int runtime_fd, directory_fd; /* of its own; else -1 */
	uint64_t device, inode; /* of the runtime folder */
	char folder[32]; /* the session's in it */
	struct pem_session_page *page; /* NULL: its keeper has not made it */
	int cut; /* the page was truncated */
	/* of the page's: what the session's has of them */
	uint32_t unobserved[PEM_UNOBSERVED_COUNT];
	/* works in it with its owner's rights; NULL: the session's own, or it has ended */
	struct pem_confined *keeper;
	uint32_t asked; /* number of a request that is waited for */
	uint32_t answered; /* number of the keeper's last answer, which is: */
	int32_t answer;
	struct pem_kept_message *kept; /* messages of the keeper's that are to be heard first */
	uint32_t kept_count;
	/*
	 * what processes there say of their events, by hash and by id, and how many of these were
	 * renamed.
	 */
	struct pem_known_model *known_models[PEM_DIR_BUCKETS];
	struct pem_dir_event *events[PEM_DIR_BUCKETS];
	uint32_t renamed;
	/* There were more models than the directory may have. */
	bool models_over;
	struct pem_dir_usage usage;
	struct pem_dir *next;
};

/* The stall clock: times at pem_dir__begin (stall.c). */
struct pem_stall_clock {
	pid_t tid; /* whose times they are; 0: none, and fd is not open */
	int fd;
	uint64_t began_ns, ran_ns, written_ns;
};

struct pem_session_dirs {
	/* The first is the session's own. */
	struct pem_dir *first;
	/* Numbers given to further ones so far. */
	uint32_t numbers;
	char public_directory[64]; /* see public.c; "": none */
	struct pem_finder *finders; /* of further directories */
	uint64_t next_search_ns; /* for further directories */
	/*
	 * Why confined helpers can't be started, an errno; 0: they can, as far as is known. And
	 * that this was said.
	 */
	int helper_error;
	bool helpless_said;
	/* Folders for all users, such as /tmp, that finders have not read to their end. */
	uint32_t unread_folders;
	uint64_t next_gather_ns; /* of losses that processes of other directories counted */
	/* unobserved.c: bit i: a process was refused its pool for reason i, and that was said. */
	uint32_t refusals_said;
	/* stall.c. written_ns: time spent writing the trace so far. */
	struct pem_stall_clock stall_clock;
	uint64_t written_ns;
	/* limits.c: what all directories but the session's own have taken together. */
	struct pem_user *users;
	uint64_t used_by_others[PEM_RESOURCE_COUNT];
	uint64_t end_of_others_ns;
	/* Of draining: counts turns. */
	uint64_t turn;
};

/* Does this process open the directory's files, and not a keeper? */
static inline bool pem_dir__opens_files(const struct pem_dir *dir)
{
	return !dir->number || dir->is_public || dir->public_folder;
}

/* The directory whose folder it is that the directory's files lie in. */
static inline const struct pem_dir *pem_dir__folder(const struct pem_dir *dir)
{
	return dir->public_folder ? dir->public_folder : dir;
}

/* --- dirs.c --- */

void pem_session__add_session_dir(struct pem_session *session);
/* Take in what keepers have told of since, some of each: never waits. */
void pem_session__scan_dirs(struct pem_session *session);

/*
 * The recording ends: take in all that is there now. Of keepers that have not told by then, of
 * pem_monotonic_ns, it is said that what they had to tell is lost.
 */
void pem_session__settle_dirs(struct pem_session *session, uint64_t deadline_ns);

/* For pem_entry__take; arg: a struct pem_dir_of_session. */
bool pem_dir__has_consumer(void *arg, const char *folder);

/* Remove a file of the directory; of a control file, the one with this inode number. */
void pem_dir__remove_control(struct pem_dir *dir, const char *name, uint64_t inode);

void pem_dir__remove_pool(struct pem_dir *dir, const char *name);
/* Let the pages of all directories say what the session's own does. */
void pem_session__mirror(struct pem_session *session);

/* Add to the session's own page what was lost in other directories. */
void pem_session__gather_losses(struct pem_session *session);

void pem_session__close_dirs(struct pem_session *session);
/* Has the session a log that is to be recovered should this process die? */
void pem_session__note_log(struct pem_session *s, bool has_log);

/* --- finders.c --- */

/*
 * Let a helper look for the runtime folders that a process may have. Each is a directory from the
 * scan on that hears of it. *owner: the process's user, whose helpers then have something to tell.
 * False: none can be started.
 */
bool pem_session__find_dirs_of(struct pem_session *session, uint32_t pid, uid_t *owner);

/* The same for every process that can be seen; does it once a second at most. */
void pem_session__search_dirs(struct pem_session *session);

/* Have helpers of a user still to tell what is there? Not those that were waited for in vain. */
bool pem_session__awaits_helpers(const struct pem_session *session, uid_t owner);

/* They were waited for in vain: said of finders, which are heard when they answer. */
void pem_session__stop_awaiting(struct pem_session *session, uid_t owner);

/* The session ends: say how many folders for all users were not read to their end, if several. */
void pem_session__say_unread(struct pem_session *session);

/* The same, as a gap of a trace. */
void pem_session__note_unread(const struct pem_session *session, struct pem_trace_info *info);

/* --- pids.c --- */

/* The number here of a process of a directory that has pid in a namespace; 0: it is not found. */
uint32_t pem_dir__pid(uid_t owner, uint32_t pid, uint32_t pid_namespace);

/*
 * The number in its own pid namespace of a process that /proc lists by this name, and in how many
 * it has one. 0: it has ended.
 */
uint32_t pem_inner_pid(const char *process, unsigned *namespaces);

/* Is a process there that has nothing of a user? */
bool pem_is_anothers(uint32_t pid, uid_t owner);

/* --- runtime.c --- */

/*
 * Remove a session's folder, the files in it, and folders in it that are empty; takes fd, which may
 * be -1: nothing happens. False: it is there still, as path or under that name with ".gone" behind.
 */
bool pem_runtime__remove(int fd, const char *path);

/*
 * Take away what processes that are no more left behind: control files and sessions of which
 * nothing is to be recovered at once, others after a day, as pem_trace__recover may still want
 * them.
 */
void pem_runtime__sweep(const char *runtime);

/* --- public.c --- */

/*
 * Make root's session's public folder; nothing where this is not root. -errno: there is none, and
 * programs that the command starts as other users are not observed.
 */
int pem_session__make_public(struct pem_session *session);

/* Of a session whose recorder died: read what lies in its public folder, too, if it has one. */
void pem_session__reopen_public(struct pem_session *session);

/*
 * Is there a pool in the public folder of the session whose own folder is open? False: it may have
 * no public folder.
 */
bool pem_public__has_pools(int session_fd);

/* Remove it, unless the session's own folder is kept. Takes the folder's descriptors. */
void pem_session__close_public(struct pem_session *session, struct pem_dir *folder);

/* Remove those that dead sessions left, once these can't be recovered any more. */
void pem_public__sweep(struct pem_session *session);

/*
 * The directory for what the owner of a file in a public folder has there. NULL: it is no plain
 * file with one name, or there are too many users, which is counted; or there is no memory.
 */
struct pem_dir *pem_public__user(struct pem_session *session, struct pem_dir *folder, int fd);

/*
 * Has nobody a file in there? False where that is not known. Costs one system call, where listing
 * the folder costs some six. True holds until the next file is made.
 */
bool pem_public__is_bare(const struct pem_dir *folder);

/*
 * Take out of the files of programs what they have counted in a public folder since, and remove the
 * files of those that ended. Where there is no room for such files, that is said once.
 */
void pem_public__take_counts(struct pem_session *session, struct pem_dir *folder);

/* Add to the gaps of a trace that there was no room for files in the public folder. */
void pem_public__note_room(const struct pem_session *session, struct pem_trace_info *info);

/* --- unobserved.c --- */

/* What programs could not have recorded for want of memory or of rights that they gave up */
/* Say why processes made no pools, and what would mend it: once for each kind of reason. */
void pem_session__say_refused(struct pem_session *session);

/* The session ends: say how many processes made no pool, if several. */
void pem_session__say_all_refused(struct pem_session *session);

/* Add to the session's page what the page of a further directory has counted. */
void pem_session__gather_rights(struct pem_session *session, struct pem_dir *dir);

/*
 * Add what a file of the public folder has counted: the head of a page, which one process and its
 * children write.
 */
void pem_session__gather_head(struct pem_session *session, struct pem_session_page *head);

/* One more process could not make its pool; code: an errno. */
void pem_session__count_refusal(struct pem_session *session, uint32_t code);

void pem_session__note_rights(struct pem_session *session, struct pem_trace_info *info);

#endif
