/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * public.c - the public folder of a session of root's, for programs that are started with the
 * rights of other users
 *
 * Root's own session folder is closed to everybody else. A program that root's command starts as
 * another user (su, runuser, setpriv) joins the session in the public folder instead. Anybody who
 * knows the folder's name may join, and only programs that the command starts are told the name.
 * The name is 128 random bits, nobody can list the folder, and no user can remove another user's
 * file there. The folder has a page of its own, which says what the session's page says and which
 * only root writes. Each program counts in a file of its own (producer/counts.c).
 *
 * Files in the folder belong to other users, and are hostile. This process opens them without a
 * helper, because the folder itself is root's: no link in it is followed, and no name leads out of
 * it.
 */
#include "core/core.h"
#include "core/fault.h"
#include "core/shared_file.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "entry.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES 16 /* random bytes of the name */
#define MAKING_S 60 /* a session that makes a folder has written OWNER_FILE by then */
#define OWNER_FILE "session" /* in the public folder: the path of the session's own */
#define PUBLIC_FILE "public" /* in the session's own folder: the path of the public one */
#define ERRNO_MAX 4095 /* the greatest errno */

static const char *const bases[] = {"/dev/shm", "/tmp"};

/*
 * Make a new folder, which is still closed to others. Its path is left in path. Returns its
 * descriptor, or -errno.
 */
static int make_folder(const char *base, char *path, size_t bytes)
{
	uint8_t random[NAME_BYTES];
	size_t used, i;
	int fd;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -errno;
	used = (size_t)snprintf(path, bytes, "%s/pem-", base);
	for (i = 0; i < sizeof(random); i++)
		used += (size_t)snprintf(path + used, bytes - used, "%02x", random[i]);
	if (mkdir(path, 0700))
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Make the page, which everybody may read. */
static struct pem_session_page *make_page(const struct pem_session *s, int folder_fd)
{
	struct pem_session_page *page = MAP_FAILED;
	int fd = openat(folder_fd, "config", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return NULL;
	if (!posix_fallocate(fd, 0, sizeof(*page)) && !fchmod(fd, 0644))
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return NULL;
	memcpy(page, s->page, sizeof(*page));
	page->magic = 0;
	/* Nobody advances a clock there: other users' memory is not written all the time. */
	page->pool_flags &= ~PEM_POOL_COARSE;
	page->pools = page->pools_ready = page->wake = 0;
	page->lost = page->lost_statistics = page->lost_filtered = 0;
	page->refused = page->filtered = 0;
	memset(page->unobserved, 0, sizeof(page->unobserved));
	/* UA */
	__atomic_store_n(&page->magic, PEM_SESSION_MAGIC, __ATOMIC_RELEASE);
	return page;
}

/* Write into each folder where the other one is, for recovery and for sweeping. */
static bool write_names(const struct pem_session *s, int folder_fd)
{
	return !pem_replace_file(folder_fd, OWNER_FILE, s->directory, strlen(s->directory)) &&
	       !pem_replace_file(s->directory_fd, PUBLIC_FILE, s->dirs->public_directory,
				 strlen(s->dirs->public_directory));
}

/*
 * Make a directory of the folder, so that pools are drained from it. Takes the descriptor. NULL:
 * out of memory.
 */
static struct pem_dir *add_folder(struct pem_session *s, int fd)
{
	struct pem_dir *folder = calloc(1, sizeof(*folder)), *last;

	pem_session__add_session_dir(s);
	if (!folder || !s->dirs->first) {
		free(folder);
		close(fd);
		return NULL;
	}
	folder->directory_fd = fd;
	folder->runtime_fd = folder->alive_fd = -1;
	folder->is_public = true;
	folder->owner = geteuid();
	folder->number = ++s->dirs->numbers;
	for (last = s->dirs->first; last->next; last = last->next)
		;
	last->next = folder;
	return folder;
}

/*
 * Make the folder's page. A lock on it says that the session has a consumer. Returns 0, or -errno.
 */
static int fill_folder(struct pem_session *s, struct pem_dir *folder)
{
	folder->page = make_page(s, folder->directory_fd);
	if (folder->page && pem_fault__watch(folder->page, sizeof(*folder->page), &folder->cut)) {
		munmap(folder->page, sizeof(*folder->page));
		folder->page = NULL;
	}
	if (!folder->page)
		return -ENOSPC;
	folder->alive_fd = pem_alive__hold_file(folder->directory_fd, "config");
	return folder->alive_fd < 0 ? folder->alive_fd : 0;
}

int pem_session__make_public(struct pem_session *s)
{
	struct pem_dir *folder;
	int fd = -ENOENT, result;
	size_t i;

	if (geteuid() || s->dirs->public_directory[0])
		return 0;
	for (i = 0; i < PEM_ARRAY_SIZE(bases) && fd < 0; i++)
		fd = make_folder(bases[i], s->dirs->public_directory,
				 sizeof(s->dirs->public_directory));
	if (fd < 0) {
		s->dirs->public_directory[0] = 0;
		return fd;
	}
	if (!write_names(s, fd)) {
		close(fd);
		rmdir(s->dirs->public_directory);
		s->dirs->public_directory[0] = 0;
		return -ENOSPC;
	}
	folder = add_folder(s, fd);
	result = folder ? fill_folder(s, folder) : -ENOMEM;
	/*
	 * Nobody can list the folder, and only the user who has a file there, or root, can remove
	 * it.
	 */
	if (!result && fchmod(fd, 01733))
		result = -errno;
	return result;
}

/*
 * Open the public folder of the session whose own folder is open. Its path is left in path. -1:
 * there is none.
 */
static int open_folder(int session_fd, char *path, size_t bytes)
{
	size_t length;
	char *text = pem_read_file(session_fd, PUBLIC_FILE, bytes - 1, &length);
	struct stat st;
	int fd = -1;

	if (text) {
		fd = open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		pem_copy_text(path, bytes, text);
	}
	free(text);
	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid())
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

void pem_session__reopen_public(struct pem_session *s)
{
	int fd = geteuid() ? -1
			   : open_folder(s->directory_fd, s->dirs->public_directory,
					 sizeof(s->dirs->public_directory));

	if (fd >= 0)
		add_folder(s, fd);
	else
		s->dirs->public_directory[0] = 0;
}

bool pem_public__has_pools(int session_fd)
{
	char path[sizeof(((struct pem_session_dirs *)NULL)->public_directory)];
	int fd = geteuid() ? -1 : open_folder(session_fd, path, sizeof(path));
	const struct dirent *entry;
	DIR *directory;
	bool found;

	if (fd < 0)
		return false;
	directory = pem_list_folder(fd);
	/* The folder can't be listed, so it may have pools. */
	found = !directory;
	while (directory && !found && (entry = readdir(directory)))
		found = !strncmp(entry->d_name, "pool-", strlen("pool-"));
	if (directory)
		closedir(directory);
	close(fd);
	return found;
}

#define USERS_MAX 256

/*
 * Add a directory for a user of the public folder, behind all others, because scans go through the
 * list. NULL: out of memory.
 */
static struct pem_dir *add_user(struct pem_session *s, struct pem_dir *folder, uid_t owner)
{
	struct pem_dir *user = calloc(1, sizeof(*user)), *last = folder;

	if (!user)
		return NULL;
	user->public_folder = folder;
	user->directory_fd = folder->directory_fd;
	user->runtime_fd = user->alive_fd = -1;
	user->owner = owner;
	user->number = ++s->dirs->numbers;
	while (last->next)
		last = last->next;
	return last->next = user;
}

struct pem_dir *pem_public__user(struct pem_session *s, struct pem_dir *folder, int fd)
{
	struct pem_dir *user;
	unsigned users = 0;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return NULL;
	for (user = folder->next; user; user = user->next) {
		if (user->public_folder != folder)
			continue;
		if (user->owner == st.st_uid)
			return user;
		users++;
	}
	if (users < USERS_MAX)
		return add_user(s, folder, st.st_uid);
	pem_dir__exceed_in_list(s, folder, PEM_LIST_POOLS, PEM_EXCESS_USERS);
	pem_dir__refuse_file(folder, &st, PEM_EXCESS_USERS);
	return NULL;
}

/* --- what programs count --- */

static bool add_counts(struct pem_session *s, int fd, const struct stat *st)
{
	struct pem_shared_file file;
	int cut = 0;

	if (pem_shared_file__map(fd, st, PEM_COUNTS_MAGIC, PEM_SESSION_HEAD_BYTES,
				 PEM_SESSION_HEAD_BYTES, &cut, &file))
		return false;
	pem_session__gather_head(s, file.memory);
	pem_shared_file__unmap(file.memory, file.bytes);
	return true;
}

/*
 * Take the counts out of a program's file. A file that nobody has locked is mapped by nobody: it is
 * removed.
 */
static void take_counts(struct pem_session *s, const struct pem_dir *folder, const char *name)
{
	static const uint8_t none[PEM_SESSION_HEAD_BYTES - 8];
	uint8_t head[PEM_SESSION_HEAD_BYTES];
	int fd = pem_shared_file__open(folder->directory_fd, name, O_RDWR);
	struct stat st;
	bool is_left;

	if (fd < 0)
		return;
	/*
	 * A file without its head is being made, and the program that makes it is about to lock it.
	 */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1 ||
	    pread(fd, head, sizeof(head), 0) != sizeof(head))
		goto out;
	is_left = !flock(fd, LOCK_EX | LOCK_NB);
	if ((!is_left && !memcmp(head + 8, none, sizeof(none))) || add_counts(s, fd, &st)) {
		if (is_left)
			unlinkat(folder->directory_fd, name, 0);
	}
out:
	close(fd);
}

/*
 * Is this a name that a program leaves (producer/counts.c)? *code: the reason why it could not make
 * its file.
 */
static bool is_refusal(const char *name, unsigned *code)
{
	unsigned pid, number;
	char exact[64];

	if (sscanf(name, "refused-%10u-%10u-%4u", &pid, &number, code) != 3)
		return false;
	/*
	 * sscanf also accepts signs, spaces, too large numbers and text behind. A name with these
	 * is none.
	 */
	snprintf(exact, sizeof(exact), "refused-%u-%u-%u", pid, number, *code);
	return !strcmp(name, exact) && *code && *code <= ERRNO_MAX;
}

/* Count a program that could not make its file. The name says why. */
static void take_refusal(struct pem_session *s, const struct pem_dir *folder, const char *name)
{
	struct stat st;
	unsigned code;

	if (is_refusal(name, &code) &&
	    !fstatat(folder->directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	    st.st_nlink == 1 && !unlinkat(folder->directory_fd, name, 0))
		pem_session__count_refusal(s, code);
}

#define NO_FILES                                                                                   \
	"the file system of '%s' had no room for further files: programs that were started as "    \
	"other users then are not observed, and what they raised is not counted; see df -i"

/*
 * Check whether the file system has room for files. A program that can make no file has no way to
 * tell that.
 */
static void watch_room(struct pem_session *s, struct pem_dir *folder)
{
	struct statfs fs;

	if (folder->full_said || fstatfs(folder->directory_fd, &fs) || !fs.f_files || fs.f_ffree)
		return;
	folder->full_said = true;
	pem_session__say(s, PEM_LOG_WARNING, NO_FILES, s->dirs->public_directory);
}

void pem_public__note_room(const struct pem_session *s, struct pem_trace_info *info)
{
	const struct pem_dir *dir = s->dirs->first;
	struct pem_trace_gap *gap;

	while (dir && !dir->full_said)
		dir = dir->next;
	if (!dir || info->gap_count == PEM_ARRAY_SIZE(info->gaps))
		return;
	gap = &info->gaps[info->gap_count++];
	pem_copy_text(gap->source, sizeof(gap->source), "users");
	snprintf(gap->reason, sizeof(gap->reason), NO_FILES, s->dirs->public_directory);
}

bool pem_public__is_bare(const struct pem_dir *folder)
{
	const struct timespec *since = &folder->bare_since;
	struct stat st;

	return since->tv_sec && !fstat(folder->directory_fd, &st) &&
	       st.st_mtim.tv_sec == since->tv_sec && st.st_mtim.tv_nsec == since->tv_nsec;
}

/*
 * Return when a folder last changed, if a change that comes now would get another time: file
 * systems take the time of the last tick, and some have only whole seconds. 0: it might not.
 */
static struct timespec settled_change(int fd)
{
	struct timespec now;
	struct stat st;

	if (fstat(fd, &st) || clock_gettime(CLOCK_REALTIME, &now) ||
	    now.tv_sec < st.st_mtim.tv_sec + 2)
		return (struct timespec){0};
	return st.st_mtim;
}

static bool is_ours(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "config") ||
	       !strcmp(name, OWNER_FILE);
}

void pem_public__take_counts(struct pem_session *s, struct pem_dir *folder)
{
	struct timespec change;
	struct dirent *entry;
	unsigned files = 0;
	DIR *directory;
	bool is_bare;

	watch_room(s, folder);
	if (pem_public__is_bare(folder))
		return;
	change = settled_change(folder->directory_fd);
	directory = pem_list_folder(folder->directory_fd);
	is_bare = directory != NULL;
	while (directory && files++ < PEM_PUBLIC_FILES_MAX && (entry = readdir(directory))) {
		is_bare &= is_ours(entry->d_name);
		if (!strncmp(entry->d_name, "counts-", 7))
			take_counts(s, folder, entry->d_name);
		else if (!strncmp(entry->d_name, "refused-", 8))
			take_refusal(s, folder, entry->d_name);
	}
	folder->bare_since = is_bare ? change : (struct timespec){0};
	if (directory)
		closedir(directory);
}

/* Has the folder been renamed by a session that could not remove it? */
static bool is_gone(const char *path)
{
	return strrchr(path, '.') != NULL;
}

/*
 * Close the folder to others and remove it. Nothing below another user's folder is removed with
 * root's rights. If a user has filled such a folder, the public folder stays, closed to all but
 * root, and the session says so. Takes fd.
 */
static void remove_folder(struct pem_session *s, int fd, const char *path)
{
	bool is_new = !is_gone(path);

	fchmod(fd, 0700);
	if (!pem_runtime__remove(fd, path) && is_new)
		pem_session__say(s, PEM_LOG_WARNING,
				 "'%s.gone' is left: a program that ran as another user has made a "
				 "folder in it and put something there; 'rm -r' removes it",
				 path);
}

void pem_session__close_public(struct pem_session *s, struct pem_dir *folder)
{
	/* What was not recovered is kept. */
	if (s->directory_fd < 0) {
		close(folder->directory_fd);
		return;
	}
	remove_folder(s, folder->directory_fd, s->dirs->public_directory);
	pem_alive__release(folder->alive_fd);
	s->dirs->public_directory[0] = 0;
}

/* --- what dead sessions left --- */

static bool is_public_name(const char *name)
{
	return !strncmp(name, "pem-", 4) && strlen(name) >= 4 + 2 * NAME_BYTES &&
	       strspn(name + 4, "0123456789abcdef") == 2 * NAME_BYTES &&
	       (!name[4 + 2 * NAME_BYTES] || !strcmp(name + 4 + 2 * NAME_BYTES, ".gone"));
}

/*
 * Is the folder of its session still there? Then the files here may be recovered with it. A public
 * folder that names no session is being made: it is not locked and not filled yet.
 */
static bool is_wanted(int fd, const struct stat *st, const char *path)
{
	size_t bytes;
	char *owner = pem_read_file(fd, OWNER_FILE, PATH_MAX, &bytes);
	time_t age_s = time(NULL) - st->st_mtime;
	bool wanted;

	if (owner)
		wanted = !access(owner, F_OK) && age_s < PEM_DEAD_SESSION_KEPT_S;
	else
		wanted = !is_gone(path) && age_s < MAKING_S;
	free(owner);
	return wanted;
}

static void sweep_one(struct pem_session *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) || st.st_uid != geteuid() || pem_alive__check_file(fd, "config") ||
	    is_wanted(fd, &st, path)) {
		close(fd);
		return;
	}
	remove_folder(s, fd, path);
}

void pem_public__sweep(struct pem_session *s)
{
	struct dirent *entry;
	DIR *directory;
	char path[300];
	size_t i;

	for (i = 0; !geteuid() && i < PEM_ARRAY_SIZE(bases); i++) {
		directory = opendir(bases[i]);
		while (directory && (entry = readdir(directory))) {
			if (!is_public_name(entry->d_name))
				continue;
			snprintf(path, sizeof(path), "%s/%.64s", bases[i], entry->d_name);
			sweep_one(s, path);
		}
		if (directory)
			closedir(directory);
	}
}
