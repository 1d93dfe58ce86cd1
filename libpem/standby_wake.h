/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby_wake.h - wake the processes on standby of a runtime folder
 *
 * A process that is woken opens files, at its next event. Some seccomp filters end a process for
 * that. A filter that pem is told of is no danger: the process leaves standby before it takes one.
 * So the processes of a folder stay on standby where any of them has a filter that nobody told pem
 * of. That is read from /proc, where a process may make a reader wait. So it is done with the
 * rights of the processes' user, for another user's by pem-confined.
 *
 * Not seen are processes whose mappings their user may not read (PR_SET_DUMPABLE), and those of
 * pid namespaces that this /proc does not show.
 *
 * Inline: pem-confined is linked with nothing of libpem.
 */
#ifndef PEM_STANDBY_WAKE_H
#define PEM_STANDBY_WAKE_H

#include "standby_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PEM_WAKE_FILES 64 /* standby files of a folder */
#define PEM_WAKE_NAMES 4096 /* read of a folder */
#define PEM_WAKE_MAPS (8u << 20) /* bytes read of a process's list of mappings */
#define PEM_WAKE_S 3 /* seconds; who needs more is not woken */
#define PEM_WAKE_UNKNOWN (~0u) /* no pid: there were too many processes to be sure */

struct pem_standby_scan {
	uid_t owner;
	uint32_t own_filters;
	time_t end_s;
	unsigned count;
	bool is_unsure;
	char name[PEM_WAKE_FILES][64];
	uint64_t inode[PEM_WAKE_FILES];
};

static inline time_t pem_wake_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Read a line of an open file of /proc, without its end. A longer line is cut. */
static inline bool pem_wake_line(FILE *file, char *line, size_t bytes)
{
	size_t length;
	int c = 0;

	if (!fgets(line, (int)bytes, file))
		return false;
	length = strlen(line);
	if (length && line[length - 1] == '\n')
		line[length - 1] = 0;
	else
		while (c != '\n' && c != EOF)
			c = getc(file);
	return true;
}

/*
 * The filters of a thread, and whether it belongs to the user. A kernel before 5.9 does not count
 * them: there any filter is one too many.
 */
static inline uint32_t pem_wake_filters(const char *path, uid_t owner, bool *is_owners)
{
	FILE *file = fopen(path, "re");
	unsigned id[4], mode = 0, i;
	uint32_t filters = 0;
	bool counted = false;
	char line[256];

	*is_owners = false;
	while (file && pem_wake_line(file, line, sizeof(line))) {
		if (sscanf(line, "Uid: %u %u %u %u", &id[0], &id[1], &id[2], &id[3]) == 4)
			for (i = 0; i < 4; i++)
				*is_owners |= id[i] == owner;
		counted |= sscanf(line, "Seccomp_filters: %u", &filters) == 1;
		(void)!sscanf(line, "Seccomp: %u", &mode);
	}
	if (file)
		fclose(file);
	return mode && !counted ? PEM_STANDBY_ANY - 1 : filters;
}

/* The most filters that a thread of a process has; 0 also where it is not the user's. */
static inline uint32_t pem_wake_most_filters(const struct pem_standby_scan *scan, uint32_t pid)
{
	char path[64];
	uint32_t most = 0, filters;
	struct dirent *entry;
	bool is_owners = true;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	while (tasks && is_owners && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%u/task/%lu/status", pid,
			 strtoul(entry->d_name, NULL, 10));
		filters = pem_wake_filters(path, scan->owner, &is_owners);
		most = filters > most ? filters : most;
		if (pem_wake_now_s() > scan->end_s)
			break;
	}
	if (tasks)
		closedir(tasks);
	return is_owners ? most : 0;
}

/* With how many known filters did the process of a mapping begin? Taken from the file's name. */
static inline uint32_t pem_wake_known(const struct pem_standby_scan *scan, const char *name)
{
	const char *last = strrchr(name, '-');
	uint32_t known = last ? (uint32_t)strtoul(last + 1, NULL, 10) : 0;

	return known == PEM_STANDBY_ANY ? scan->own_filters : known;
}

/*
 * Is a process with so many filters on standby by one of the files, and not all of the filters are
 * known? A process that has a control file maps a standby file for its children alone.
 */
static inline bool pem_wake_maps(struct pem_standby_scan *scan, uint32_t pid, uint32_t filters)
{
	char path[64], own[32], line[512], *slash;
	unsigned long long inode;
	bool is_it = false;
	size_t bytes = 0;
	unsigned i;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	snprintf(own, sizeof(own), "control-%u-", pid);
	file = fopen(path, "re");
	while (file && pem_wake_line(file, line, sizeof(line))) {
		bytes += strlen(line);
		if (bytes > PEM_WAKE_MAPS || pem_wake_now_s() > scan->end_s) {
			scan->is_unsure = true;
			break;
		}
		/* address, rights, offset, device, inode, path */
		slash = strrchr(line, '/');
		if (!slash || sscanf(line, "%*s %*s %*s %*s %llu", &inode) != 1)
			continue;
		if (!strncmp(slash + 1, own, strlen(own))) {
			is_it = false;
			break;
		}
		for (i = 0; i < scan->count; i++)
			is_it |= scan->inode[i] == inode && !strcmp(slash + 1, scan->name[i]) &&
				 filters > pem_wake_known(scan, scan->name[i]);
	}
	if (file)
		fclose(file);
	return is_it;
}

/* Return a process that waking might end; 0: there is none. */
static inline uint32_t pem_wake_endangered(struct pem_standby_scan *scan)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	uint32_t found = 0, pid, filters;

	while (proc && !found && !scan->is_unsure && (entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		filters = pem_wake_most_filters(scan, pid);
		if (filters && pem_wake_maps(scan, pid, filters))
			found = pid;
		scan->is_unsure |= pem_wake_now_s() > scan->end_s;
	}
	if (proc)
		closedir(proc);
	return !proc || scan->is_unsure ? PEM_WAKE_UNKNOWN : found;
}

/* Only the files that this finds are woken. */
static inline void pem_wake_list(struct pem_standby_scan *scan, DIR *folder)
{
	struct dirent *entry;
	unsigned names = 0;

	while (names++ < PEM_WAKE_NAMES && scan->count < PEM_WAKE_FILES &&
	       (entry = readdir(folder))) {
		/* Left by a session that was killed before it removed the file. */
		if (!strncmp(entry->d_name, PEM_WOKEN_NAME, sizeof(PEM_WOKEN_NAME) - 1))
			unlinkat(dirfd(folder), entry->d_name, 0);
		if (strncmp(entry->d_name, PEM_STANDBY_NAME, sizeof(PEM_STANDBY_NAME) - 1) ||
		    strlen(entry->d_name) >= sizeof(scan->name[0]))
			continue;
		strcpy(scan->name[scan->count], entry->d_name);
		scan->inode[scan->count++] = entry->d_ino;
	}
}

/* Open a standby file to write to it, which its mode allows from now on. Returns -1: there is none.
 */
static inline int pem_wake_open(int folder_fd, const char *name, uid_t owner)
{
	const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = openat(folder_fd, name, O_RDONLY | flags);
	struct stat st;
	bool is_it;

	if (fd < 0)
		return -1;
	is_it = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == owner && !fchmod(fd, 0600);
	close(fd);
	return is_it ? openat(folder_fd, name, O_RDWR | flags) : -1;
}

/*
 * Set the enable bytes of a standby file to a value. The file is hostile: what is read is checked,
 * and only bytes that the file has are written, which it has memory for.
 */
static inline void pem_wake_file(int fd, uint8_t value)
{
	uint8_t awake[PEM_EVENTS_PER_PROVIDER_MAX];
	struct pem_standby_file file;
	uint64_t offset, bytes, size;
	struct stat st;
	uint32_t i;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    pread(fd, &file, sizeof(file), 0) != sizeof(file) || file.magic != PEM_STANDBY_MAGIC)
		return;
	size = (uint64_t)st.st_size;
	memset(awake, value, sizeof(awake));
	for (i = 0; i < file.provider_count && i < PEM_PROVIDERS_MAX; i++) {
		offset = file.enable[i].offset;
		bytes = file.enable[i].bytes;
		if (bytes <= sizeof(awake) && offset >= sizeof(file) && offset <= size &&
		    bytes <= size - offset)
			(void)!pwrite(fd, awake, bytes, (off_t)offset);
	}
}

/*
 * Wake the processes on standby of a user's runtime folder. The session's folder is in it by now,
 * and is locked. Returns 0. Returns a process that this might end, or PEM_WAKE_UNKNOWN; then none
 * was woken. May wait for processes of that user.
 */
static inline uint32_t pem_standby__wake(int folder_fd, uid_t owner)
{
	struct pem_standby_scan scan = {.owner = owner, .end_s = pem_wake_now_s() + PEM_WAKE_S};
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	uint32_t endangered = 0;
	char woken[96];
	bool is_owners;
	unsigned i;

	if (!folder) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	pem_wake_list(&scan, folder);
	closedir(folder);
	if (scan.count) {
		scan.own_filters = pem_wake_filters("/proc/self/status", owner, &is_owners);
		endangered = pem_wake_endangered(&scan);
	}
	for (i = 0; !endangered && i < scan.count; i++) {
		fd = pem_wake_open(folder_fd, scan.name[i], owner);
		if (fd >= 0) {
			pem_wake_file(fd, PEM_STANDBY_AWAKE);
			close(fd);
		}
		snprintf(woken, sizeof(woken), PEM_WOKEN_NAME "%ld-%s", (long)getpid(),
			 scan.name[i]);
		if (!renameat(folder_fd, scan.name[i], folder_fd, woken))
			unlinkat(folder_fd, woken, 0);
	}
	return endangered;
}

#endif
