/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * finders.c - finding the runtime folders of other users, in other mount namespaces, and of
 * processes with other variables
 *
 * Not here: the work in these folders (dirs.c).
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "dirs/confined.h"
#include "dirs/dirs.h"
#include "dirs/helpers.h"
#include "dirs/limits.h"
#include "util.h"

#include <pem/clock.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEARCH_NS 1000000000u /* between searches for new processes elsewhere */
#define SEARCH_AGAIN_NS 100000000u /* when a process that was asked has ended */
#define TURN_MESSAGES 64
/*
 * A user who has more mount namespaces or runtime folders than these is not observed in the others.
 */
#define USER_FINDERS_MAX 32u
#define USER_DIRS_MAX 32u

/* A helper that looks for the runtime folders of one user in one mount namespace. */
struct pem_finder {
	struct pem_confined *helper;
	struct pem_confined_setup setup; /* setup has the rights of the helper */
	uint64_t mounts; /* inode number of the mount namespace */
	/* Owner of the processes as /proc shows it: root for processes that nobody may read. */
	uid_t shown_owner;
	uint32_t pid; /* the process whose variables the helper was told */
	bool seen; /* the current search has seen that process */
	/*
	 * The helper looks only for the folders of that process, to which the session was attached.
	 * It ends when it has answered.
	 */
	bool once;
	/* Number of the reply that is awaited; 0: none. */
	uint32_t awaited;
	/* The session has stopped waiting for that reply. */
	bool late;
	struct pem_finder *next;
};

static bool is_known(const struct pem_session *s, const struct stat *st)
{
	const struct pem_dir *dir;

	for (dir = s->dirs->first; dir; dir = dir->next) {
		if (dir->device == (uint64_t)st->st_dev && dir->inode == (uint64_t)st->st_ino)
			return true;
	}
	return false;
}

static unsigned dirs_of(const struct pem_session *s, uid_t owner)
{
	const struct pem_dir *dir;
	unsigned count = 0;

	for (dir = s->dirs->first; dir; dir = dir->next)
		count += dir->owner == owner && !pem_dir__opens_files(dir);
	return count;
}

/* May the reason for which a helper could not be started, an errno, be over at the next search? */
static bool is_passing(int error)
{
	return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

/*
 * Start a helper. NULL: it can't be started. Then none is started for other processes either, until
 * the next search if the reason may pass. The session says so once, whatever user the helper was
 * for, because programs of other users are not observed either.
 */
static struct pem_confined *start_helper(struct pem_session *s,
					 const struct pem_confined_setup *setup, int folder_fd,
					 int process_fd)
{
	struct pem_confined *helper;

	if (s->dirs->helper_error)
		return NULL;
	helper = pem_confined__start(setup, folder_fd, process_fd);
	if (helper)
		return helper;
	s->dirs->helper_error = errno;
	if (s->dirs->helpless_said)
		return NULL;
	s->dirs->helpless_said = true;
	pem_session__say(s, PEM_LOG_WARNING,
			 "programs of other users, in containers, or with another runtime folder "
			 "are not observed: the helper pem-confined cannot be started: %s%s",
			 strerror(s->dirs->helper_error),
			 s->dirs->helper_error == ENOENT
				 ? "; install it in the folder 'pem' beside libpem"
				 : "");
	return NULL;
}

/* What the session says once for each user. */
enum finding { FINDING_MOUNTS, FINDING_DIRS, FINDING_LATE };

static bool is_to_be_said(struct pem_session *s, uid_t owner, enum finding finding)
{
	struct pem_user *user = pem_session__user(s, owner, false);

	if (!user || user->findings_said >> finding & 1)
		return false;
	user->findings_said |= 1u << finding;
	return true;
}

/* Say that a user has more of something than is observed. */
static void say_too_many(struct pem_session *s, uid_t owner, enum finding finding)
{
	if (!is_to_be_said(s, owner, finding))
		return;
	pem_session__say(s, PEM_LOG_WARNING,
			 "user %u has more than %u %s: processes in the others are not observed",
			 (unsigned)owner,
			 finding == FINDING_MOUNTS ? USER_FINDERS_MAX : USER_DIRS_MAX,
			 finding == FINDING_MOUNTS ? "mount namespaces" : "runtime folders");
}

static void hear_unread(struct pem_session *s, const struct pem_finder *finder,
			const struct pem_confined_reply *reply)
{
	if (s->dirs->unread_folders++)
		return;
	pem_session__say(
		s, PEM_LOG_WARNING,
		"%s has more than %u names: a runtime folder of user %u behind them is not "
		"found, and its programs are not observed; remove files there",
		strcmp(reply->name, "/tmp") ? "/dev/shm" : "/tmp", PEM_CONFINED_NAMES,
		(unsigned)finder->setup.uid);
}

#define UNREAD                                                                                     \
	"/dev/shm or /tmp was not read to its end %u times, each for one user in one mount "       \
	"namespace: programs with a runtime folder behind what was read are not observed"

void pem_session__say_unread(struct pem_session *s)
{
	if (s->dirs->unread_folders > 1)
		pem_session__say(s, PEM_LOG_WARNING, UNREAD, s->dirs->unread_folders);
}

void pem_session__note_unread(const struct pem_session *s, struct pem_trace_info *info)
{
	struct pem_trace_gap *gap;

	if (!s->dirs->unread_folders || info->gap_count == PEM_ARRAY_SIZE(info->gaps))
		return;
	gap = &info->gaps[info->gap_count++];
	pem_copy_text(gap->source, sizeof(gap->source), "users");
	snprintf(gap->reason, sizeof(gap->reason), UNREAD, s->dirs->unread_folders);
}

/* Make a directory of a runtime folder that a finder has told of. Takes fd. */
static void add_dir(struct pem_session *s, const struct pem_finder *finder, int fd)
{
	struct pem_confined_setup setup = finder->setup;
	struct pem_dir *dir, **link;
	struct stat st;

	if (fstat(fd, &st) || !S_ISDIR(st.st_mode) || st.st_uid != setup.uid || st.st_mode & 022 ||
	    is_known(s, &st))
		goto close;
	if (dirs_of(s, setup.uid) >= USER_DIRS_MAX) {
		say_too_many(s, setup.uid, FINDING_DIRS);
		goto close;
	}
	dir = calloc(1, sizeof(*dir));
	if (!dir)
		goto close;
	setup.role = PEM_CONFINED_KEEPER;
	setup.page_bytes = sizeof(*s->page);
	pem_copy_text(dir->folder, sizeof(dir->folder), strrchr(s->directory, '/') + 1);
	memcpy(setup.session, dir->folder, sizeof(setup.session));
	dir->number = ++s->dirs->numbers;
	dir->runtime_fd = dir->directory_fd = -1;
	dir->owner = setup.uid;
	dir->device = (uint64_t)st.st_dev;
	dir->inode = (uint64_t)st.st_ino;
	dir->keeper = start_helper(s, &setup, fd, -1);
	pem_dir__ask(dir);
	for (link = &s->dirs->first; *link; link = &(*link)->next)
		;
	*link = dir;
close:
	close(fd);
}

static void hear(struct pem_session *s, struct pem_finder *finder)
{
	struct pem_confined_reply reply;
	unsigned i;
	int fd, result = 1;

	for (i = 0; finder->helper && result && i < TURN_MESSAGES; i++) {
		result = pem_confined__receive(finder->helper, &reply, &fd);
		if (result > 0 && reply.kind == PEM_CONFINED_FOUND && fd >= 0) {
			add_dir(s, finder, fd);
			continue;
		}
		if (fd >= 0)
			close(fd);
		if (result > 0 && reply.kind == PEM_CONFINED_OVER)
			hear_unread(s, finder, &reply);
		if (result > 0 && reply.kind == PEM_CONFINED_DONE &&
		    reply.number == finder->awaited)
			finder->awaited = 0;
		if (result < 0) {
			pem_confined__end(finder->helper, 0);
			finder->helper = NULL;
		}
	}
}

/*
 * Return what follows a word at the beginning of a line of /proc/PID/status; NULL: there is no such
 * line.
 */
static const char *status_line(const char *text, const char *word)
{
	const char *line = strstr(text, word);

	return line ? line + strlen(word) : NULL;
}

/*
 * Read the rights of a process. *own_words: its user started it, and so chose its variables. A
 * program that its file gave another user's rights was started by somebody who may say anything in
 * its variables.
 */
static bool read_rights(int process_fd, struct pem_confined_setup *setup, bool *own_words)
{
	unsigned uid[3], gid[2], group;
	char text[8192];
	const char *line;
	int fd = openat(process_fd, "status", O_RDONLY | O_CLOEXEC), used;
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	line = status_line(text, "\nUid:");
	if (!line || sscanf(line, "%u %u %u", &uid[0], &uid[1], &uid[2]) != 3)
		return false;
	line = status_line(text, "\nGid:");
	if (!line || sscanf(line, "%u %u", &gid[0], &gid[1]) != 2)
		return false;
	setup->uid = uid[1];
	setup->gid = gid[1];
	*own_words = uid[0] == uid[1] && uid[2] == uid[1];
	line = status_line(text, "\nGroups:");
	while (line && setup->group_count < PEM_CONFINED_GROUPS &&
	       sscanf(line, "%*[ \t]%u%n", &group, &used) == 1) {
		setup->groups[setup->group_count++] = group;
		line += used;
	}
	return true;
}

/*
 * Make a finder for the folders of a process's user below the process's root folder. NULL: that
 * failed.
 */
static struct pem_finder *new_finder(struct pem_session *s, uint32_t pid)
{
	struct pem_finder *finder = calloc(1, sizeof(*finder));
	int process;
	bool own_words = false;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	process = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!finder || process < 0 || !read_rights(process, &finder->setup, &own_words) ||
	    (geteuid() && finder->setup.uid != geteuid()))
		goto fail;
	finder->setup.role = PEM_CONFINED_FINDER;
	finder->setup.switch_user = geteuid() == 0;
	/*
	 * The helper opens files in the process's folder of /proc. That waits for an exec, which
	 * the user can make wait without end.
	 */
	finder->helper = start_helper(s, &finder->setup, process, own_words ? process : -1);
	if (!finder->helper)
		goto fail;
	close(process);
	return finder;
fail:
	if (process >= 0)
		close(process);
	free(finder);
	return NULL;
}

static void ask(struct pem_finder *finder, bool asks)
{
	if (finder->helper && !pem_confined__send(finder->helper, PEM_CONFINED_FIND, "", 0, asks) &&
	    asks)
		finder->awaited = finder->helper->number;
}

/* End a finder, and take it out of the session's list. */
static void end_finder(struct pem_finder **link)
{
	struct pem_finder *finder = *link;

	*link = finder->next;
	pem_confined__end(finder->helper, 0);
	free(finder);
}

static bool has_ended(const struct pem_finder *finder)
{
	return finder->once && (!finder->helper || !finder->awaited);
}

bool pem_session__find_dirs_of(struct pem_session *s, uint32_t pid, uid_t *owner)
{
	struct pem_finder *finder = new_finder(s, pid), **link;

	if (!finder)
		return false;
	/* An earlier finder for that pid did not answer. */
	for (link = &s->dirs->finders; *link; link = &(*link)->next) {
		if ((*link)->once && (*link)->pid == pid) {
			end_finder(link);
			break;
		}
	}
	finder->pid = pid;
	finder->once = true;
	finder->next = s->dirs->finders;
	s->dirs->finders = finder;
	ask(finder, true);
	*owner = finder->setup.uid;
	pem_session__ask_keepers(s, *owner);
	return true;
}

static bool is_of(uid_t uid, uid_t owner)
{
	return owner == PEM_ANY_USER || uid == owner;
}

bool pem_session__awaits_helpers(const struct pem_session *s, uid_t owner)
{
	const struct pem_finder *finder;

	for (finder = s->dirs->finders; finder; finder = finder->next) {
		if (is_of(finder->setup.uid, owner) && finder->helper && finder->awaited &&
		    !finder->late)
			return true;
	}
	return pem_session__awaits_keepers(s, owner);
}

void pem_session__stop_awaiting(struct pem_session *s, uid_t owner)
{
	struct pem_finder *finder;

	for (finder = s->dirs->finders; finder; finder = finder->next) {
		if (!is_of(finder->setup.uid, owner) || !finder->awaited || finder->late)
			continue;
		finder->late = true;
		if (is_to_be_said(s, finder->setup.uid, FINDING_LATE))
			pem_session__say(
				s, PEM_LOG_WARNING,
				"the helper that looks for runtime folders of user %u does not "
				"answer: programs of that user in further ones are not observed "
				"until it does",
				(unsigned)finder->setup.uid);
	}
	pem_session__forget_asked(s, owner);
}

static void note_process(struct pem_session *s, const char *pid)
{
	uint32_t number = (uint32_t)strtoul(pid, NULL, 10);
	struct pem_finder *finder;
	struct stat st;
	unsigned count = 0;
	uint64_t mounts;
	char path[300];

	mounts = pem_namespace_of(number, PEM_NAMESPACE_MOUNT);
	if (!mounts)
		return;
	snprintf(path, sizeof(path), "/proc/%s", pid);
	if (stat(path, &st) || (geteuid() && st.st_uid != geteuid()))
		return;
	for (finder = s->dirs->finders; finder; finder = finder->next) {
		if (finder->once)
			continue;
		count += finder->shown_owner == st.st_uid;
		if (finder->mounts == mounts && finder->shown_owner == st.st_uid) {
			finder->seen |= finder->pid == number;
			return;
		}
	}
	if (s->dirs->helper_error)
		return;
	if (count >= USER_FINDERS_MAX) {
		say_too_many(s, st.st_uid, FINDING_MOUNTS);
		return;
	}
	finder = new_finder(s, number);
	if (!finder)
		return;
	finder->pid = number;
	finder->mounts = mounts;
	finder->shown_owner = st.st_uid;
	finder->seen = true;
	finder->next = s->dirs->finders;
	s->dirs->finders = finder;
}

/*
 * Ask one process of each user and mount namespace. If this process is not root's, ask only
 * processes of its own user.
 */
void pem_session__search_dirs(struct pem_session *s)
{
	uint64_t now = pem_monotonic_ns();
	struct pem_finder *finder, **link;
	bool is_first = !s->dirs->next_search_ns;
	struct dirent *entry;
	DIR *proc;

	if (now < s->dirs->next_search_ns)
		return;
	s->dirs->next_search_ns = now + SEARCH_NS;
	if (is_passing(s->dirs->helper_error))
		s->dirs->helper_error = 0;
	for (finder = s->dirs->finders; finder; finder = finder->next)
		finder->seen = false;
	proc = opendir("/proc");
	while (proc && (entry = readdir(proc))) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			note_process(s, entry->d_name);
	}
	if (proc)
		closedir(proc);
	for (link = &s->dirs->finders; (finder = *link);) {
		if (finder->once || finder->seen) {
			if (finder->seen)
				ask(finder, is_first);
			link = &finder->next;
			continue;
		}
		/* Another process of the user may have other variables. It is asked soon. */
		s->dirs->next_search_ns = now + SEARCH_AGAIN_NS;
		end_finder(link);
	}
}

void pem_session__listen_to_finders(struct pem_session *s)
{
	struct pem_finder *finder, **link;

	for (link = &s->dirs->finders; (finder = *link);) {
		hear(s, finder);
		if (has_ended(finder))
			end_finder(link);
		else
			link = &finder->next;
	}
}

void pem_session__end_finders(struct pem_session *s, uint64_t deadline_ns)
{
	struct pem_finder *finder;

	for (finder = s->dirs->finders; finder; finder = finder->next) {
		if (finder->helper)
			shutdown(finder->helper->socket, SHUT_WR);
	}
	while ((finder = s->dirs->finders)) {
		s->dirs->finders = finder->next;
		pem_confined__end(finder->helper, deadline_ns);
		free(finder);
	}
}
