/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * dirs.h - runtime directories in which a session meets processes: its own, its public one, and
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
 * A scan of a public folder reads at most so many names. A program that fills the folder can then
 * only hide the files that come after them.
 */
#define PEM_PUBLIC_FILES_MAX 4096

#define PEM_DIR_BUCKETS 256u

/*
 * A runtime folder in which the session meets processes. The first is the session's own. The others
 * belong to other users and to containers.
 */
struct pem_dir {
	uint32_t number; /* 0: the session's own */
	/*
	 * This is the session's public folder: files in it may belong to any user. It has no
	 * runtime folder. See public.c.
	 */
	bool is_public;
	bool over_said; /* said: there are too many files in it */
	bool full_said; /* said: there was no room for further files in it */
	bool not_woken_said; /* said: its processes on standby were not woken */
	/*
	 * Of a public folder: when it had last changed, if no program had a file in it then. tv_sec
	 * 0: the folder has to be listed.
	 */
	struct timespec bare_since;
	/*
	 * Not NULL: this directory is the part of that public folder that belongs to one user. It
	 * shares the folder's descriptor and has no page. Users share neither models nor limits.
	 */
	struct pem_dir *public_folder;
	int alive_fd; /* of a public one: holds the lock that says that the consumer lives */
	uid_t owner;
	int runtime_fd, directory_fd; /* descriptors of its own; else -1 */
	uint64_t device, inode; /* of the runtime folder */
	char folder[32]; /* the session's folder in it */
	struct pem_session_page *page; /* NULL: its keeper has not made it yet */
	int cut; /* the page was truncated */
	/* The part of the page's counts that the session's own page already includes. */
	uint32_t unobserved[PEM_UNOBSERVED_COUNT];
	/*
	 * The helper that works in it with its owner's rights. NULL: this is the session's own
	 * directory, or the helper has ended.
	 */
	struct pem_confined *keeper;
	uint32_t asked; /* number of the request that the session waits for; 0: none */
	uint32_t answered; /* number of the keeper's last answer */
	int32_t answer;
	/* Messages of the keeper that came earlier and are to be handled first. */
	struct pem_kept_message *kept;
	uint32_t kept_count;
	/*
	 * Descriptions of events by processes of this directory: models by hash, and events by id.
	 * renamed is the number of events that were renamed.
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
	pid_t tid; /* the thread that was measured; 0: none, and fd is not open */
	int fd;
	uint64_t began_ns, ran_ns, written_ns;
};

struct pem_session_dirs {
	/* List of directories. The first one is the session's own. */
	struct pem_dir *first;
	/* The last number that was given to a further directory. */
	uint32_t numbers;
	char public_directory[64]; /* path of the public folder, see public.c; "": none */
	struct pem_finder *finders; /* look for further directories */
	uint64_t next_search_ns; /* when to look for further directories next */
	/*
	 * Why confined helpers can't be started, an errno. 0: they can, as far as the session
	 * knows. helpless_said: the session has said so.
	 */
	int helper_error;
	bool helpless_said;
	/*
	 * The number of folders for all users, such as /tmp, that finders did not read to their
	 * end.
	 */
	uint32_t unread_folders;
	uint64_t next_gather_ns; /* when to gather losses of other directories next */
	/*
	 * unobserved.c: bit i: the session has said that a process was refused its pool for reason
	 * i.
	 */
	uint32_t refusals_said;
	/* stall.c. written_ns: time spent writing the trace so far. */
	struct pem_stall_clock stall_clock;
	uint64_t written_ns;
	/* limits.c: what all directories but the session's own have taken together. */
	struct pem_user *users;
	uint64_t used_by_others[PEM_RESOURCE_COUNT];
	uint64_t end_of_others_ns;
	/* The number of the current turn of draining. */
	uint64_t turn;
};

/* Does this process itself open the directory's files? If not, a keeper does. */
static inline bool pem_dir__opens_files(const struct pem_dir *dir)
{
	return !dir->number || dir->is_public || dir->public_folder;
}

/* Return the directory whose folder holds this directory's files. */
static inline const struct pem_dir *pem_dir__folder(const struct pem_dir *dir)
{
	return dir->public_folder ? dir->public_folder : dir;
}

/* --- dirs.c --- */

void pem_session__add_session_dir(struct pem_session *session);
/*
 * Handle messages that finders and keepers have sent since the last call, some of each. Never
 * waits.
 */
void pem_session__scan_dirs(struct pem_session *session);

/*
 * The recording ends: ask all keepers, and take in all files that are there now. The session stops
 * waiting at deadline_ns, a time of pem_monotonic_ns. Keepers that have not told everything by then
 * are given up, and the session says that their users' programs are not observed.
 */
void pem_session__settle_dirs(struct pem_session *session, uint64_t deadline_ns);

/*
 * For pem_entry__take; arg: a struct pem_dir_of_session. Does a session's folder of that name have
 * a living consumer? Returns true also if that is not known. May wait 0.1 s for the keeper.
 */
bool pem_dir__has_consumer(void *arg, const char *folder);

/* Remove a control file of the directory, if the file of that name has this inode number. */
void pem_dir__remove_control(struct pem_dir *dir, const char *name, uint64_t inode);

void pem_dir__remove_pool(struct pem_dir *dir, const char *name);
/*
 * Let the pages of all other directories say what the session's own page does: contexts, rules,
 * tests, and whether the session has closed.
 */
void pem_session__mirror(struct pem_session *session);

/* Add to the session's own page what processes of other directories counted as lost. */
void pem_session__gather_losses(struct pem_session *session);

void pem_session__close_dirs(struct pem_session *session);
/* Note in all pages whether the session has a log that is to be recovered if this process dies. */
void pem_session__note_log(struct pem_session *s, bool has_log);

/* --- finders.c --- */

/*
 * Let a helper look for the runtime folders that a process may have. Each folder becomes a
 * directory at the scan that hears of it. *owner is the process's user: helpers of that user then
 * have something to tell. False: no helper could be started.
 */
bool pem_session__find_dirs_of(struct pem_session *session, uint32_t pid, uid_t *owner);

/*
 * Do so for one process of each user and mount namespace that can be seen, once a second at most.
 */
void pem_session__search_dirs(struct pem_session *session);

/*
 * Have helpers of a user still to tell what is there? Helpers that pem_session__stop_awaiting gave
 * up do not count.
 */
bool pem_session__awaits_helpers(const struct pem_session *session, uid_t owner);

/*
 * Stop waiting for the helpers of a user. The session says once for each user that a finder does
 * not answer. It still handles the finder's answer when that comes.
 */
void pem_session__stop_awaiting(struct pem_session *session, uid_t owner);

/* The session ends: say how many folders for all users were not read to their end, if several. */
void pem_session__say_unread(struct pem_session *session);

/* Add the same sentence to the gaps of a trace. */
void pem_session__note_unread(const struct pem_session *session, struct pem_trace_info *info);

/* --- pids.c --- */

/*
 * Return the pid, in this process's pid namespace, of a process of a directory that has pid in
 * another one. 0: it was not found, or belongs to another user than owner.
 */
uint32_t pem_dir__pid(uid_t owner, uint32_t pid, uint32_t pid_namespace);

/*
 * Return a number for the time at which the process started that has this pid now. A later process
 * with the same pid has another number. 0: no process has the pid.
 */
uint64_t pem_start_of(uint32_t pid);

/* The same, of a process of owner's. 0 also if another user than owner has the process. */
uint64_t pem_dir__start(uid_t owner, uint32_t pid);

/*
 * Return the pid that a process, listed by /proc under this name, has in its own pid namespace.
 * *namespaces: the number of namespaces in which it has a pid. 0: the process has ended.
 */
uint32_t pem_inner_pid(const char *process, unsigned *namespaces);

/*
 * Return how many seccomp filters a process has. Returns 0 also where the kernel does not count
 * them (before Linux 5.9).
 */
uint32_t pem_filters_of(uint32_t pid);
/* Has a process more seccomp filters than this one, or is it in strict mode? */
bool pem_has_filter(uint32_t pid);

/* Does a process exist none of whose user ids is this user's? */
bool pem_is_anothers(uint32_t pid, uid_t owner);

/* --- runtime.c --- */

/*
 * For so many seconds the folders of a dead session stay if they have something in them, because
 * pem_trace__recover may still want it.
 */
#define PEM_DEAD_SESSION_KEPT_S (24 * 3600)

/*
 * Remove a session's folder, the files in it, and empty folders in it. Takes fd; if it is -1,
 * nothing happens. False: the folder is still there, as path or as path with ".gone" behind it.
 */
bool pem_runtime__remove(int fd, const char *path);

/*
 * Remove the files that dead processes left: control files at once; sessions with nothing to
 * recover at once, too; other sessions after PEM_DEAD_SESSION_KEPT_S.
 */
void pem_runtime__sweep(const char *runtime);

/* --- standby.c --- */

/*
 * Wake the processes on standby of the session's own directory: each makes its control file at its
 * next event (standby_file.h). Keepers do so in other directories. The session's folder must exist.
 */
void pem_session__wake_standby(struct pem_session *session);

/*
 * Let the processes that were started in the session, and are on standby, know its rules, which
 * have changed.
 */
void pem_session__update_standby(struct pem_session *session);
/* The session has ended: those that are left join it no more. */
void pem_session__retire_standby(struct pem_session *session);
/* Remove a file of a runtime folder if processes of a session are on standby by it, and none is
 * left. */
void pem_standby__sweep(int runtime_fd, const char *name);

/* Say why a user's processes were not woken. pid: what pem_standby__wake returned. */
void pem_session__say_not_woken(struct pem_session *session, uid_t owner, uint32_t pid);

/*
 * Is a process of this user's on standby, to be woken or woken already, or just leaving it? Reads
 * its mappings in /proc, which may wait for the process: not for one of another user.
 */
bool pem_standby__has(uint32_t pid);

/* --- public.c --- */

/*
 * Make the public folder of a session of root's. Does nothing if the user is not root. Returns 0,
 * or -errno: programs that the command starts as other users are not observed.
 */
int pem_session__make_public(struct pem_session *session);

/* Of a session whose recorder died: read also the files of its public folder, if it has one. */
void pem_session__reopen_public(struct pem_session *session);

/*
 * Is there a pool in the public folder of the session whose own folder is open? Returns true also
 * if the public folder can't be listed, and false if there is no public folder.
 */
bool pem_public__has_pools(int session_fd);

/*
 * Remove the public folder, unless the session's own folder is kept. Takes the folder's
 * descriptors.
 */
void pem_session__close_public(struct pem_session *session, struct pem_dir *folder);

/*
 * Remove the public folders that dead sessions left, once these sessions can't be recovered any
 * more.
 */
void pem_public__sweep(struct pem_session *session);

/*
 * Return the directory for the files that the owner of fd has in a public folder. NULL: fd is no
 * plain file with one name; or there are too many users, which is counted; or out of memory.
 */
struct pem_dir *pem_public__user(struct pem_session *session, struct pem_dir *folder, int fd);

/*
 * Is it certain that no program has a file in the folder? Takes one system call, where listing the
 * folder takes about six. True holds until a program makes a file.
 */
bool pem_public__is_bare(const struct pem_dir *folder);

/*
 * Take the counts out of the files that programs have in a public folder, and remove the files of
 * programs that have ended. If the file system has no room for such files, the session says so
 * once.
 */
void pem_public__take_counts(struct pem_session *session, struct pem_dir *folder);

/* Add to the gaps of a trace that there was no room for files in the public folder. */
void pem_public__note_room(const struct pem_session *session, struct pem_trace_info *info);

/* --- unobserved.c --- */

/* Say why processes made no pools, and what would mend it: once for each kind of reason. */
void pem_session__say_refused(struct pem_session *session);

/* The session ends: say how many processes made no pool, if several. */
void pem_session__say_all_refused(struct pem_session *session);

/* Add what the page of a further directory has counted to the session's page. */
void pem_session__gather_rights(struct pem_session *session, struct pem_dir *dir);

/*
 * Add the counts of a file of the public folder. The file is like the head of a page; one process
 * and its children write it.
 */
void pem_session__gather_head(struct pem_session *session, struct pem_session_page *head);

/* Count one more process that could not make its pool; code: an errno. */
void pem_session__count_refusal(struct pem_session *session, uint32_t code);

void pem_session__note_rights(struct pem_session *session, struct pem_trace_info *info);

#endif
