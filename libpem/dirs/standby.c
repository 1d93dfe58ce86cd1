/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby.c - wake the processes that nobody observed so far (standby_file.h)
 *
 * A process that is woken opens files, at its next event. Some seccomp filters end a process for
 * that. A filter that pem was told of is no danger: the process has left standby before it. So a
 * user's processes stay on standby where any of them has a filter that nobody told pem of.
 */
#include "core/core.h"
#include "dirs/dirs.h"
#include "standby_file.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 16
#define NAMES_MAX 4096 /* read of a folder */
#define FILTERS PEM_FILTERS_VARIABLE "="

/* Read a file of a process of /proc up to an element with this text in it. NULL: there is none. */
static char *find_element(const char *pid, const char *name, int delimiter, const char *text)
{
	char path[64], *element = NULL, *found = NULL;
	size_t room = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	file = fopen(path, "re");
	while (file && !found && getdelim(&element, &room, delimiter, file) > 0)
		found = strstr(element, text) ? element : NULL;
	if (file)
		fclose(file);
	if (!found)
		free(element);
	return found;
}

/* How many filters does pem know of, in a process? It says so in its environment. */
static uint32_t known_filters(const char *pid)
{
	char *said = find_element(pid, "environ", 0, FILTERS);
	uint32_t known = 0;

	if (said && !strncmp(said, FILTERS, sizeof(FILTERS) - 1))
		known = (uint32_t)strtoul(said + sizeof(FILTERS) - 1, NULL, 10);
	free(said);
	return known;
}

/* Standby files of a folder. Each version of pem's libraries has one. */
struct files {
	uint64_t inode[FILES_MAX];
	unsigned count;
	bool over; /* there may be more */
};

/*
 * Only names are read, since the folder may be another user's: he may have mounted a file system of
 * his own over a file.
 */
static void list_files(int folder_fd, struct files *files)
{
	DIR *folder = pem_list_folder(folder_fd);
	struct dirent *entry;
	unsigned names = 0;

	files->count = 0;
	files->over = false;
	while (folder && (entry = readdir(folder))) {
		files->over = names++ == NAMES_MAX || files->count == FILES_MAX;
		if (files->over)
			break;
		if (pem_is_standby_name(entry->d_name))
			files->inode[files->count++] = entry->d_ino;
	}
	if (folder)
		closedir(folder);
}

/* Return the inode number of the standby file that a process has mapped; 0: it has mapped none. */
static uint64_t mapped_file(const char *pid)
{
	char *mapping = find_element(pid, "maps", '\n', "/" PEM_STANDBY_NAME);
	unsigned long long inode = 0;

	/* address, rights, offset, device, inode */
	if (mapping && sscanf(mapping, "%*s %*s %*s %*s %llu", &inode) != 1)
		inode = 0;
	free(mapping);
	return inode;
}

bool pem_standby__has(uint32_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", pid);
	return mapped_file(text) != 0;
}

static bool is_endangered(const char *process, uint32_t own_filters, const struct files *files)
{
	uint32_t filters = pem_filters_of((uint32_t)strtoul(process, NULL, 10));
	uint64_t inode = filters > own_filters ? mapped_file(process) : 0;
	bool is_it = inode && files->over;
	unsigned i;

	for (i = 0; inode && i < files->count; i++)
		is_it |= files->inode[i] == inode;
	return is_it && filters > known_filters(process);
}

/* Return a process of the user that waking might end; 0: there is none. */
static uint32_t find_endangered(uid_t owner, const struct files *files)
{
	uint32_t own_filters = pem_filters_of((uint32_t)getpid()), found = 0;
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct stat st;

	while (proc && !found && (entry = readdir(proc))) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    !fstatat(dirfd(proc), entry->d_name, &st, 0) && st.st_uid == owner &&
		    is_endangered(entry->d_name, own_filters, files))
			found = (uint32_t)strtoul(entry->d_name, NULL, 10);
	}
	if (proc)
		closedir(proc);
	return found;
}

bool pem_session__may_wake(struct pem_session *s, uid_t owner, int folder_fd)
{
	char name[PEM_NAME_BYTES];
	struct files files;
	uint32_t pid;

	list_files(folder_fd, &files);
	pid = files.count ? find_endangered(owner, &files) : 0;
	if (!pid)
		return files.count != 0;
	pem_process_name(pid, name);
	pem_session__say(
		s, PEM_LOG_WARNING,
		"programs of user %u that nobody observed so far are not observed: "
		"process %u (%s) among them has a seccomp filter that pem was not told of, "
		"and which might end it; programs that are started now are observed",
		(unsigned)owner, pid, name);
	return false;
}

static void wake(const char *name, void *arg)
{
	const struct pem_dir *dir = arg;
	int fd;

	if (!pem_is_standby_name(name))
		return;
	fd = openat(dir->runtime_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0)
		pem_standby__wake_file(fd, dir->owner);
	if (fd >= 0 || errno == ELOOP)
		unlinkat(dir->runtime_fd, name, 0);
	if (fd >= 0)
		close(fd);
}

void pem_session__wake_standby(struct pem_session *s)
{
	struct pem_dir *own = s->dirs->first;

	if (own && own->runtime_fd >= 0 && pem_session__may_wake(s, own->owner, own->runtime_fd))
		pem_visit_folder(own->runtime_fd, wake, own);
}
