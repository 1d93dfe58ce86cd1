/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * runtime.c - keeping the runtime folder clean of what dead processes left there
 */
#include "dirs/dirs.h"
#include "entry.h"
#include "util.h"

#include <pem/clock.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* of 1 ms: a process that had found the folder may make a file between looking and removing */
#define REMOVE_TRIES 100

#define MAKING_S 60 /* what somebody makes is complete by then */

static bool is_old(const struct stat *st)
{
	return st->st_mtime + MAKING_S < time(NULL);
}

/* Has it been renamed by somebody who could not remove it? */
static bool is_gone(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot, ".gone");
}

/*
 * Remove what lies there. False: a folder with something in it does, which only its owner empties.
 */
static bool remove_entries(DIR *directory)
{
	const struct dirent *entry;
	bool all = true;

	rewinddir(directory);
	while ((entry = readdir(directory))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (unlinkat(dirfd(directory), entry->d_name, 0) &&
		    (errno == EISDIR || errno == EPERM) &&
		    unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR) && errno != ENOENT)
			all = false;
	}
	return all;
}

bool pem_runtime__remove(int fd, const char *path)
{
	const struct timespec pause = {0, 1000000};
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	bool removed = false, all = true;
	char gone[PATH_MAX];
	unsigned tries;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	/*
	 * Under another name: processes on their way into it, which is closed by now, find it no
	 * more.
	 */
	if (!is_gone(path) && snprintf(gone, sizeof(gone), "%s.gone", path) < (int)sizeof(gone) &&
	    !rename(path, gone))
		path = gone;
	for (tries = 0; tries < REMOVE_TRIES && all && !removed; tries++) {
		if (tries)
			nanosleep(&pause, NULL);
		all = remove_entries(directory);
		removed = !rmdir(path);
		if (!removed && errno != ENOTEMPTY && errno != EEXIST)
			break;
	}
	closedir(directory);
	return removed;
}

/* --- control files --- */

/* inode number of the first pid namespace, in every kernel */
#define PROC_PID_INIT_INO 0xEFFFFFFCu
/* control files of other pid namespaces that are looked into at a time */
#define ELSEWHERE_MAX 1024u
/*
 * /proc tells of starts in hundredths of a second, and the two clocks' rates differ by less than
 * one in a hundred.
 */
#define AGE_SLACK_NS(age_ns) (1000000000u + (age_ns) / 100)

/* A control file of another pid namespace. */
struct elsewhere {
	char name[64];
	uint64_t inode, age_ns;
	uint32_t pid, pid_namespace;
	bool alive;
};

struct sweep {
	int directory_fd;
	uint32_t pid_namespace; /* of this process; 0: unknown */
	struct elsewhere *elsewhere;
	size_t count;
};

/* Fields of /proc/PID/stat, as man proc counts them. */
enum { FIELD_NAME = 2, FIELD_STATE = 3, FIELD_THREADS = 20, FIELD_START = 22 };

/* Time since something that started so many ticks after boot. */
static uint64_t age_ns(unsigned long long start)
{
	struct timespec now;
	double age_s;

	clock_gettime(CLOCK_BOOTTIME, &now);
	age_s = (double)now.tv_sec - (double)start / (double)sysconf(_SC_CLK_TCK);
	return age_s > 0 ? (uint64_t)(age_s * 1e9) : 0;
}

/*
 * Can a process that /proc lists by this name not be the one that made a control file so long ago?
 * It has started since; or it is dead, and its parent has not asked for its status. What can't be
 * found out is no.
 */
static bool is_another(const char *process, uint64_t file_age_ns)
{
	char path[300], line[1024], state = 0;
	unsigned long long start = 0;
	const char *at = NULL;
	uint64_t age;
	long threads = 0;
	FILE *file;
	int field;

	snprintf(path, sizeof(path), "/proc/%s/stat", process);
	file = fopen(path, "re");
	/* a name may hold anything */
	if (file && fgets(line, sizeof(line), file))
		at = strrchr(line, ')');
	if (file)
		fclose(file);
	for (field = FIELD_NAME; at && field < FIELD_START; field++) {
		at = strchr(at + 1, ' ');
		if (at && field + 1 == FIELD_STATE)
			state = at[1];
		if (at && field + 1 == FIELD_THREADS)
			threads = strtol(at, NULL, 10);
	}
	if (!at || sscanf(at, "%llu", &start) != 1)
		return false;
	/* Of a process whose first thread has ended the others go on. */
	if (state == 'Z' && threads <= 1)
		return true;
	age = age_ns(start);
	return age < file_age_ns && file_age_ns - age > AGE_SLACK_NS(file_age_ns);
}

/*
 * Time since a control file was made. Not after the machine was suspended: then it is too short,
 * and no process is younger.
 */
static uint64_t file_age_ns(const struct pem_control_file *head)
{
	uint64_t now = pem_clock();

	return now < head->start_clock ? 0
				       : (uint64_t)((unsigned __int128)(now - head->start_clock) *
						    1000000000u / pem_clock__hz());
}

static bool is_left(const struct pem_control_file *head)
{
	char process[16];

	if (kill((pid_t)head->pid, 0) && errno == ESRCH)
		return true;
	snprintf(process, sizeof(process), "%u", head->pid);
	return is_another(process, file_age_ns(head));
}

/*
 * Could a process be of a pid namespace? Of others' processes an ordinary user can't tell: what
 * users left is their own's.
 */
static bool may_be_of(uint32_t pid, uint32_t pid_namespace)
{
	uint64_t found = pem_namespace_of(pid, PEM_NAMESPACE_PID);

	return found ? found == pid_namespace : !geteuid() || !pem_is_anothers(pid, geteuid());
}

/* What a process of another pid namespace keeps alive. */
static void keep_of(struct sweep *sweep, const char *process)
{
	uint32_t pid = (uint32_t)strtoul(process, NULL, 10), inner;
	struct elsewhere *e;
	unsigned namespaces;
	size_t i;

	inner = pem_inner_pid(process, &namespaces);
	for (i = 0; i < sweep->count && namespaces > 1; i++) {
		e = &sweep->elsewhere[i];
		if (!e->alive && e->pid == inner && !is_another(process, e->age_ns))
			e->alive = may_be_of(pid, e->pid_namespace);
	}
}

/*
 * Who is in the first pid namespace sees the processes of all others; unless /proc shows them to
 * their users alone, and then does not show the first process.
 */
static void sweep_elsewhere(struct sweep *sweep)
{
	DIR *proc = sweep->count && !access("/proc/1/status", R_OK) ? opendir("/proc") : NULL;
	struct dirent *entry;
	struct elsewhere *e;
	struct stat st;
	size_t i;

	if (!proc)
		goto out;
	while ((entry = readdir(proc))) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			keep_of(sweep, entry->d_name);
	}
	closedir(proc);
	for (i = 0; i < sweep->count; i++) {
		e = &sweep->elsewhere[i];
		if (!e->alive && !fstatat(sweep->directory_fd, e->name, &st, AT_SYMLINK_NOFOLLOW) &&
		    (uint64_t)st.st_ino == e->inode)
			unlinkat(sweep->directory_fd, e->name, 0);
	}
out:
	sweep->count = 0;
}

/*
 * Remember a control file of another pid namespace. When there is no room for more, those so far
 * are looked into.
 */
static void note_elsewhere(struct sweep *sweep, const char *name, const struct stat *st,
			   const struct pem_control_file *head)
{
	struct elsewhere *e;

	if (sweep->pid_namespace != PROC_PID_INIT_INO || strlen(name) >= sizeof(e->name))
		return;
	if (sweep->count == ELSEWHERE_MAX)
		sweep_elsewhere(sweep);
	if (!sweep->elsewhere)
		sweep->elsewhere = calloc(ELSEWHERE_MAX, sizeof(*e));
	if (!sweep->elsewhere)
		return;
	e = &sweep->elsewhere[sweep->count++];
	*e = (struct elsewhere){.inode = (uint64_t)st->st_ino,
				.age_ns = file_age_ns(head),
				.pid = head->pid,
				.pid_namespace = head->pid_namespace};
	strcpy(e->name, name);
}

/*
 * Remove a control file that a process left which died. The number in it says so only in the pid
 * namespace that it is of; a container's processes may use the same folder. One without a head yet
 * is being made, unless it has long been there.
 */
static void sweep_control(struct sweep *sweep, const char *name)
{
	const ssize_t bytes = offsetof(struct pem_control_file, reserved0);
	int fd = openat(sweep->directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct pem_control_file head;
	bool left = false;
	struct stat st;
	ssize_t got;

	if (fd < 0)
		return;
	got = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -1 : read(fd, &head, (size_t)bytes);
	close(fd);
	if (got >= 0 && (got < bytes || !head.pid))
		left = is_old(&st);
	else if (got < bytes || head.pid > INT32_MAX || !head.pid_namespace)
		return;
	else if (head.pid_namespace == sweep->pid_namespace)
		left = is_left(&head);
	else
		note_elsewhere(sweep, name, &st, &head);
	if (left)
		unlinkat(sweep->directory_fd, name, 0);
}

/* --- sessions --- */

/*
 * Is there nothing to recover of a dead consumer's session: no log, a finished one, half of the
 * folder removed, or one where nobody ever made a pool, nor in its public folder?
 */
static bool has_nothing(int directory_fd, const struct stat *folder)
{
	struct pem_session_page head;
	size_t bytes = offsetof(struct pem_session_page, rules);
	int fd = openat(directory_fd, "config", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool none;

	if (fd < 0)
		return errno == ENOENT && is_old(folder);
	none = read(fd, &head, bytes) == (ssize_t)bytes && head.magic == PEM_SESSION_MAGIC &&
	       head.abi_version == PEM_ABI_VERSION &&
	       (!head.has_log || (!head.pools && !pem_public__has_pools(directory_fd)));
	close(fd);
	return none;
}

/*
 * The number of its process may be another's by now, or of another pid namespace: its lock says who
 * is dead.
 */
static void sweep_session(const char *runtime, const char *name)
{
	struct stat st;
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", runtime, name) >= (int)sizeof(path) ||
	    pem_alive__check(path))
		return;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && (st.st_mtime + 24 * 3600 < time(NULL) || has_nothing(fd, &st)))
		pem_runtime__remove(fd, path);
	else
		close(fd);
}

void pem_runtime__sweep(const char *runtime)
{
	struct sweep sweep = {.pid_namespace = pem_pid_namespace()};
	DIR *directory = opendir(runtime);
	struct dirent *entry;
	int pid;

	if (!directory)
		return;
	sweep.directory_fd = dirfd(directory);
	while ((entry = readdir(directory))) {
		if (sscanf(entry->d_name, "session-%d-", &pid) == 1 && pid > 0)
			sweep_session(runtime, entry->d_name);
		else if (sscanf(entry->d_name, "control-%d-", &pid) == 1)
			sweep_control(&sweep, entry->d_name);
	}
	sweep_elsewhere(&sweep);
	free(sweep.elsewhere);
	closedir(directory);
}
