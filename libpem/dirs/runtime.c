/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * runtime.c - removing what dead sessions left in the runtime folder, and control files of the dead
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

/*
 * Tries of 1 ms each: a process that had found the folder may make a file after its files were
 * removed.
 */
#define REMOVE_TRIES 100

#define MAKING_S 60 /* a file or folder that is being made is complete by then */

static bool is_old(const struct stat *st)
{
	return st->st_mtime + MAKING_S < time(NULL);
}

/* Has the folder been renamed by a session that could not remove it? */
static bool is_gone(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot, ".gone");
}

/*
 * Remove the entries of a folder. False: it has a folder with something in it, which only that
 * folder's owner empties.
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
	 * The folder gets another name. Processes that are on their way into it do not find it any
	 * more; it is closed by now.
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

/* Inode number of the first pid namespace, in every kernel. */
#define PROC_PID_INIT_INO 0xEFFFFFFCu
/* The most control files of other pid namespaces that are checked at a time. */
#define ELSEWHERE_MAX 1024u
/*
 * /proc gives the time of a start in hundredths of a second, and the rates of the two clocks differ
 * by less than one in a hundred.
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
	uint32_t pid_namespace; /* pid namespace of this process; 0: unknown */
	struct elsewhere *elsewhere;
	size_t count;
};

/* Fields of /proc/PID/stat, as man proc counts them. */
enum { FIELD_NAME = 2, FIELD_STATE = 3, FIELD_THREADS = 20, FIELD_START = 22 };

/* Return the time since a process started, given in ticks after boot. */
static uint64_t age_ns(unsigned long long start)
{
	struct timespec now;
	double age_s;

	clock_gettime(CLOCK_BOOTTIME, &now);
	age_s = (double)now.tv_sec - (double)start / (double)sysconf(_SC_CLK_TCK);
	return age_s > 0 ? (uint64_t)(age_s * 1e9) : 0;
}

/*
 * Is it certain that a process, listed by /proc under this name, did not make a control file of
 * this age? It is if the process has started since, or if it is dead and its parent has not asked
 * for its status. False also if that is not known.
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
	/* The name before the last ')' may hold anything. */
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
	/* If only the first thread of a process has ended, its other threads go on. */
	if (state == 'Z' && threads <= 1)
		return true;
	age = age_ns(start);
	return age < file_age_ns && file_age_ns - age > AGE_SLACK_NS(file_age_ns);
}

/*
 * Return the time since a control file was made. After the machine was suspended the result is too
 * small, and then no process counts as younger than the file.
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
 * May a process be in a pid namespace? An ordinary user can't tell that for processes of other
 * users. But files that a user left were made by processes of that user.
 */
static bool may_be_of(uint32_t pid, uint32_t pid_namespace)
{
	uint64_t found = pem_namespace_of(pid, PEM_NAMESPACE_PID);

	return found ? found == pid_namespace : !geteuid() || !pem_is_anothers(pid, geteuid());
}

/* Mark the control files that a process of another pid namespace may have made as alive. */
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
 * Remove the noted control files of other pid namespaces whose processes are dead. A process in the
 * first pid namespace sees the processes of all others. The exception: /proc shows processes only
 * to their users, and then does not show the first process.
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
 * Note a control file of another pid namespace. If there is no room for more, the files noted so
 * far are checked first.
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
 * Remove a control file whose process is dead. The pid in the file tells that only in the pid
 * namespace it belongs to, and a container's processes may use the same runtime folder. A file
 * without a head is being made, unless it is old.
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
 * Is there nothing to recover of a dead consumer's session? That is so if it has no log or a
 * finished one, if half of the folder is removed, or if no process made a pool, in its public
 * folder neither.
 */
static bool has_nothing(int directory_fd, const struct stat *folder)
{
	/* Rules, which follow, are not read. The page would not fit on a small stack. */
	const size_t bytes = offsetof(struct pem_session_page, rules);
	struct pem_session_page *head;
	int fd = openat(directory_fd, "config", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool none;

	if (fd < 0)
		return errno == ENOENT && is_old(folder);
	head = malloc(sizeof(*head));
	none = head && read(fd, head, bytes) == (ssize_t)bytes &&
	       head->magic == PEM_SESSION_MAGIC && head->abi_version == PEM_ABI_VERSION &&
	       (!head->has_log || (!head->pools && !pem_public__has_pools(directory_fd)));
	free(head);
	close(fd);
	return none;
}

/*
 * Remove a dead session's folder. The pid in its name may be another process's by now, or belong to
 * another pid namespace. So the session's lock tells whether it is dead.
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
	if (!fstat(fd, &st) &&
	    (st.st_mtime + PEM_DEAD_SESSION_KEPT_S < time(NULL) || has_nothing(fd, &st)))
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
		else
			pem_standby__sweep(sweep.directory_fd, entry->d_name);
	}
	sweep_elsewhere(&sweep);
	free(sweep.elsewhere);
	closedir(directory);
}
