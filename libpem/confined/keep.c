// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * keep.c - the keeper: the session's directory in one runtime directory of a user, and the files
 * there
 *
 * The keeper makes the session's directory and page, and reports them. Then, whenever something
 * changes in either directory, it lists both and reports each new file that is complete. Meanwhile
 * it does what the session asks for. When the session is gone, however it ended, the keeper removes
 * the session's directory. The keeper opens each file, and the session maps the descriptor that it
 * gets: the session opens nothing by name.
 */
#include "confined/confined.h"
#include "standby_wake.h"

#include <pem/abi.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Wait before a file that was not complete is read again. */
#define UNFINISHED_MS 5
#define BLIND_MS 20 /* wait between two listings if the kernel reports no changes */
#define REST 4u
#define REST_MAX_NS 1000000000u
/* Tries of 1 ms: a program that is just joining may make a file meanwhile. */
#define REMOVE_TRIES 100

#define LOCK_TRIES 1000 /* tries of 0.1 ms */

#define TABLE_FILES (2 * PEM_CONFINED_FILES)

struct file {
	char name[PEM_CONFINED_NAME];
	uint64_t listed_inode; /* as the directory lists it; 0: this entry of the table is free */
	bool told;
};

/* The files of one directory, by name. Open addressing; each listing makes it anew. */
struct table {
	struct file files[TABLE_FILES];
	uint32_t count;
	uint32_t over;
};

/*
 * First index: 0 the runtime directory, 1 the session's directory. The second index alternates
 * between the listing before and the one now.
 */
static struct table tables[2][2];
static unsigned now_index[2];
static int session_fd = -1, changes_fd = -1;
static uint32_t over_told, refused, refused_told;

/* --- the session's folder --- */

/*
 * Lock the session's directory. A program that has just found the directory holds the lock for a
 * moment, to see whether it is free.
 */
static int lock_session(void)
{
	const struct timespec pause = {0, 100000};
	unsigned tries;

	for (tries = 0; tries < LOCK_TRIES; tries++) {
		if (!flock(session_fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			break;
		nanosleep(&pause, NULL);
	}
	return -errno;
}

static int make_session(const struct pem_confined_setup *setup)
{
	struct pem_confined_reply reply = {.kind = PEM_CONFINED_PAGE};
	struct stat st;
	int fd, result;

	if (mkdirat(PEM_CONFINED_FOLDER, setup->session, 0700))
		return -errno;
	session_fd = pem_confined__open_beneath(PEM_CONFINED_FOLDER, setup->session,
						O_RDONLY | O_DIRECTORY, 0);
	if (session_fd < 0)
		return session_fd;
	if (fstat(session_fd, &st) || st.st_uid != setup->uid)
		return -EPERM;
	/* This lock tells programs that the session has a consumer. */
	result = lock_session();
	if (result)
		return result;
	fd = pem_confined__open_beneath(session_fd, "config", O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return fd;
	result = fallocate(fd, 0, 0, setup->page_bytes) ? -errno : 0;
	if (!result && !pem_confined__reply(&reply, fd))
		result = -EPIPE;
	close(fd);
	return result;
}

static void remove_session(const struct pem_confined_setup *setup)
{
	const struct timespec pause = {0, 1000000};
	_Alignas(8) static char entries[4096];
	unsigned tries;
	long got, at;

	for (tries = 0; session_fd >= 0 && tries < REMOVE_TRIES; tries++) {
		lseek(session_fd, 0, SEEK_SET);
		while ((got = syscall(SYS_getdents64, session_fd, entries, sizeof(entries))) > 0) {
			for (at = 0; at < got; at += *(uint16_t *)(void *)(entries + at + 16))
				unlinkat(session_fd, entries + at + 19, 0);
		}
		if (!unlinkat(PEM_CONFINED_FOLDER, setup->session, AT_REMOVEDIR) ||
		    (errno != ENOTEMPTY && errno != EEXIST))
			return;
		nanosleep(&pause, NULL);
	}
}

/* --- which files there are --- */

static struct file *find(struct table *table, const char *name)
{
	uint32_t hash = 2166136261u, i;
	const char *c;

	for (c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 16777619u;
	for (i = hash % (TABLE_FILES); table->files[i].listed_inode; i = (i + 1) % (TABLE_FILES)) {
		if (!strcmp(table->files[i].name, name))
			break;
	}
	return &table->files[i];
}

static enum pem_confined_reply_kind kind_of(int folder, const char *name)
{
	if (strlen(name) >= PEM_CONFINED_NAME)
		return 0;
	if (!folder)
		return strncmp(name, "control-", 8) ? 0 : PEM_CONFINED_CONTROL;
	if (!strncmp(name, "pool-", 5))
		return PEM_CONFINED_POOL;
	return strncmp(name, "model-", 6) ? 0 : PEM_CONFINED_MODEL;
}

/*
 * Return whether this is a complete file of the user with one name. A file with several names, of
 * another user or of another kind is counted in refused.
 */
static bool is_complete(int fd, enum pem_confined_reply_kind kind, uid_t owner, uint64_t *inode)
{
	uint32_t magic = kind == PEM_CONFINED_CONTROL ? PEM_CONTROL_MAGIC : PEM_POOL_MAGIC, word;
	struct stat st;

	if (fstat(fd, &st) || !st.st_nlink)
		return false;
	if (!S_ISREG(st.st_mode) || st.st_uid != owner || st.st_nlink != 1) {
		refused++;
		return false;
	}
	*inode = st.st_ino;
	return kind == PEM_CONFINED_MODEL ||
	       (pread(fd, &word, sizeof(word), 0) == sizeof(word) && word == magic);
}

/*
 * Report a file. Returns 0: reported. 1: the file is not complete, or can't be passed on at the
 * moment. -EPIPE: the session is gone.
 */
static int tell(int folder, const char *name, uid_t owner)
{
	enum pem_confined_reply_kind kind = kind_of(folder, name);
	struct pem_confined_reply reply = {.kind = kind};
	int fd = pem_confined__open_beneath(
		folder ? session_fd : PEM_CONFINED_FOLDER, name,
		(kind == PEM_CONFINED_MODEL ? O_RDONLY : O_RDWR) | O_NONBLOCK, 0);
	int result = 1;

	refused += fd == -ELOOP;
	if (fd < 0)
		return 1;
	if (is_complete(fd, kind, owner, &reply.inode)) {
		strcpy(reply.name, name);
		result = pem_confined__reply(&reply, fd) ? 0 : errno == ETOOMANYREFS ? 1 : -EPIPE;
	}
	close(fd);
	return result;
}

/* Add one name to a listing, and keep what was known about it. */
static void list_name(struct table *before, struct table *now, int folder, const char *name,
		      uint64_t inode)
{
	struct file *file, *old;

	if (!kind_of(folder, name))
		return;
	if (now->count == PEM_CONFINED_FILES) {
		now->over++;
		return;
	}
	file = find(now, name);
	if (file->listed_inode)
		return;
	strcpy(file->name, name);
	file->listed_inode = inode ? inode : 1;
	old = find(before, name);
	file->told = old->listed_inode == file->listed_inode && old->told;
	now->count++;
}

static void list(int folder)
{
	int fd = pem_confined__open_beneath(folder ? session_fd : PEM_CONFINED_FOLDER, ".",
					    O_RDONLY | O_DIRECTORY, 0);
	struct table *before = &tables[folder][now_index[folder]];
	_Alignas(8) static char entries[32768];
	unsigned names = 0;
	struct table *now;
	long got, at;

	now_index[folder] ^= 1;
	now = &tables[folder][now_index[folder]];
	if (now->count)
		memset(now, 0, sizeof(*now));
	now->over = 0;
	while (fd >= 0 && names < PEM_CONFINED_NAMES &&
	       (got = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (at = 0; at < got; at += *(uint16_t *)(void *)(entries + at + 16), names++)
			list_name(before, now, folder, entries + at + 19,
				  *(uint64_t *)(void *)(entries + at));
	}
	/* Names that were not read may be a program's files. */
	if (names >= PEM_CONFINED_NAMES &&
	    syscall(SYS_getdents64, fd, entries, sizeof(entries)) > 0)
		now->over++;
	if (fd >= 0)
		close(fd);
}

/* Report new files of a kind. Returns -EPIPE, or how many files are to be read again. */
static int tell_kind(int folder, struct table *now, enum pem_confined_reply_kind kind, uid_t owner)
{
	int again = 0, result;
	struct file *file;
	size_t i;

	for (i = 0; now->count && i < TABLE_FILES; i++) {
		file = &now->files[i];
		if (!file->listed_inode || file->told || kind_of(folder, file->name) != kind)
			continue;
		result = tell(folder, file->name, owner);
		if (result < 0)
			return result;
		file->told = !result;
		again += result;
	}
	return again;
}

/* Report files that have come and gone. Returns -EPIPE, or how many files are to be read again. */
static int tell_changes(int folder, uid_t owner)
{
	struct table *now = &tables[folder][now_index[folder]],
		     *before = &tables[folder][now_index[folder] ^ 1];
	struct pem_confined_reply gone = {.kind = PEM_CONFINED_GONE};
	/* Models come before pools: a pool names its models. */
	static const enum pem_confined_reply_kind kinds[] = {PEM_CONFINED_CONTROL,
							     PEM_CONFINED_MODEL, PEM_CONFINED_POOL};
	int again = 0, result;
	size_t i;

	for (i = 0; before->count && !folder && i < TABLE_FILES; i++) {
		struct file *file = &before->files[i];

		if (!file->told || find(now, file->name)->listed_inode)
			continue;
		strcpy(gone.name, file->name);
		if (!pem_confined__reply(&gone, -1))
			return -EPIPE;
	}
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		result = tell_kind(folder, now, kinds[i], owner);
		if (result < 0)
			return result;
		again += result;
	}
	return again;
}

/*
 * List both directories. Control files come first: a pool names one. Returns -EPIPE, or how many
 * files are to be read again.
 */
static int scan(uid_t owner)
{
	struct pem_confined_reply over = {.kind = PEM_CONFINED_OVER},
				  links = {.kind = PEM_CONFINED_REFUSED};
	int folder, result, again = 0;

	refused = 0;
	for (folder = 0; folder < 2; folder++) {
		list(folder);
		result = tell_changes(folder, owner);
		if (result < 0)
			return result;
		again += result;
		over.value += (int32_t)tables[folder][now_index[folder]].over;
	}
	if (refused > refused_told) {
		links.value = (int32_t)refused;
		refused_told = refused;
		if (!pem_confined__reply(&links, -1))
			return -EPIPE;
	}
	if ((uint32_t)over.value > over_told) {
		over_told = (uint32_t)over.value;
		if (!pem_confined__reply(&over, -1))
			return -EPIPE;
	}
	return again;
}

/* --- what the session asks for --- */

static int is_alive(const char *name)
{
	int fd = pem_confined__open_beneath(PEM_CONFINED_FOLDER, name, O_RDONLY | O_DIRECTORY, 0),
	    alive;

	if (fd < 0)
		return fd != -ENOENT;
	alive = flock(fd, LOCK_SH | LOCK_NB) != 0;
	close(fd);
	return alive;
}

static int remove_control(const char *name, uint64_t inode)
{
	struct stat st;

	if (kind_of(0, name) != PEM_CONFINED_CONTROL || strchr(name, '/'))
		return -EINVAL;
	if (fstatat(PEM_CONFINED_FOLDER, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_ino != inode)
		return -ENOENT;
	return unlinkat(PEM_CONFINED_FOLDER, name, 0) ? -errno : 0;
}

static int serve(struct pem_confined_request *request, uid_t owner)
{
	int result = -EINVAL;

	request->name[sizeof(request->name) - 1] = 0;
	switch (request->kind) {
	case PEM_CONFINED_SCAN:
		result = scan(owner);
		if (result < 0)
			return result;
		break;
	case PEM_CONFINED_IS_ALIVE:
		result = is_alive(request->name);
		break;
	case PEM_CONFINED_REMOVE_CONTROL:
		result = remove_control(request->name, request->inode);
		break;
	case PEM_CONFINED_REMOVE_POOL:
		if (kind_of(1, request->name) == PEM_CONFINED_POOL && !strchr(request->name, '/'))
			result = unlinkat(session_fd, request->name, 0) ? -errno : 0;
		break;
	}
	return pem_confined__done(request->number, result) ? 0 : -EPIPE;
}

static void watch_folders(void)
{
	static const int folders[] = {PEM_CONFINED_FOLDER, -1};
	const uint32_t events = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;
	char path[32];
	size_t i;

	changes_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (i = 0; changes_fd >= 0 && i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d",
			 folders[i] < 0 ? session_fd : folders[i]);
		if (inotify_add_watch(changes_fd, path, events) >= 0)
			continue;
		close(changes_fd);
		changes_fd = -1;
	}
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Scan, and set *rested_ns to the end of a rest. The rest takes REST times as long as the scan, and
 * at most REST_MAX_NS: a user who fills the directory with names gets a fifth of a CPU. Requests of
 * the session are answered during the rest. Returns -EPIPE, or how many files are to be read again.
 */
static int scan_and_rest(uid_t owner, uint64_t *rested_ns)
{
	uint64_t begin = now_ns(), rest;
	int again = scan(owner);

	rest = REST * (now_ns() - begin);
	*rested_ns = now_ns() + (rest < REST_MAX_NS ? rest : REST_MAX_NS);
	return again;
}

static int answer(uid_t owner)
{
	struct pem_confined_request request;
	ssize_t got = recv(PEM_CONFINED_SOCKET, &request, sizeof(request), MSG_DONTWAIT);

	if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
		return -EPIPE;
	return got == sizeof(request) ? serve(&request, owner) : 0;
}

/* Serve until the session is gone. */
static void loop(uid_t owner)
{
	_Alignas(struct inotify_event) static char events[4096];
	struct pollfd fds[2] = {{.fd = PEM_CONFINED_SOCKET, .events = POLLIN}, {.events = POLLIN}};
	uint64_t rested_ns, now;
	struct timespec wait;
	int again = scan_and_rest(owner, &rested_ns);

	while (again >= 0) {
		now = now_ns();
		wait = (struct timespec){0, (again ? UNFINISHED_MS : BLIND_MS) * 1000000L};
		if (now < rested_ns)
			wait = (struct timespec){(time_t)((rested_ns - now) / 1000000000u),
						 (long)((rested_ns - now) % 1000000000u)};
		fds[1].fd = now < rested_ns ? -1 : changes_fd;
		fds[0].revents = fds[1].revents = 0;
		if (ppoll(fds, 2, again || changes_fd < 0 || now < rested_ns ? &wait : NULL, NULL) <
			    0 &&
		    errno != EINTR)
			return;
		if (fds[0].revents && answer(owner))
			return;
		if (fds[0].revents || now_ns() < rested_ns)
			continue;
		/* The rest is over, and nothing has changed. */
		if (!again && changes_fd >= 0 && !fds[1].revents)
			continue;
		while (changes_fd >= 0 && read(changes_fd, events, sizeof(events)) > 0)
			;
		again = scan_and_rest(owner, &rested_ns);
	}
}

int pem_confined__keep(const struct pem_confined_setup *setup)
{
	struct pem_confined_reply failed = {.kind = PEM_CONFINED_FAILED},
				  not_woken = {.kind = PEM_CONFINED_NOT_WOKEN};
	int result = make_session(setup);

	if (!result) {
		not_woken.value = (int32_t)pem_standby__wake(PEM_CONFINED_FOLDER, setup->uid);
		if (not_woken.value && !pem_confined__reply(&not_woken, -1))
			result = -EPIPE;
		watch_folders();
	}
	if (!result)
		result = pem_confined__allow_only(PEM_CONFINED_FOLDER);
	if (!result)
		result = pem_confined__filter_calls();
	failed.value = result;
	if (result)
		pem_confined__reply(&failed, -1);
	else
		loop(setup->uid);
	remove_session(setup);
	return result ? 1 : 0;
}
