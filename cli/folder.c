// SPDX-License-Identifier: MIT
/* folder.c - makes folders for traces without a given name: PREFIX-COMMAND-N */
#include "folder.h"
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDERS_MOST 99999u
#define DEPTH_MOST 16u
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

int cli_folder__make(const char *prefix, const char *command, char *path, size_t bytes)
{
	const char *slash = strrchr(command, '/');
	char name[64];
	unsigned int n;
	char *p;

	snprintf(name, sizeof(name), "%.60s", slash != NULL ? slash + 1 : command);
	for (p = name; *p != '\0'; p++)
		if (strchr(" \t\n'\"\\$*?[]&;|<>()", *p) != NULL || (unsigned char)*p < 0x20)
			*p = '_';
	for (n = 1; n <= FOLDERS_MOST; n++) {
		snprintf(path, bytes, "%s-%s-%u", prefix, name, n);
		if (mkdir(path, 0777) == 0)
			return CLI_DONE;
		if (errno != EEXIST)
			return cli_error(cli_status_of_errno(errno),
					 "cannot make %s in the current folder: %s; -o DIR puts "
					 "the trace elsewhere",
					 path, strerror(errno));
	}
	return cli_error(CLI_WRONG_INPUT,
			 "there are 99,999 traces named %s-%s-N here: remove some or name a folder "
			 "with -o",
			 prefix, name);
}

void cli_folder__given(const char *given, char *path, size_t bytes)
{
	char *real = NULL;
	struct stat st;

	if (lstat(given, &st) == 0 && S_ISLNK(st.st_mode))
		real = realpath(given, NULL);
	snprintf(path, bytes, "%s", real != NULL ? real : given);
	free(real);
}

/* Look at an entry of a folder. */
static void add_entry(struct cli_folder *folder, const struct stat *st)
{
	folder->bytes += (uint64_t)st->st_blocks * 512;
	if (st->st_ctim.tv_sec > folder->changed.tv_sec ||
	    (st->st_ctim.tv_sec == folder->changed.tv_sec &&
	     st->st_ctim.tv_nsec > folder->changed.tv_nsec))
		folder->changed = st->st_ctim;
}

/*
 * Look at the entries of a folder and below, or remove them. fd is closed. Returns whether all
 * could be looked at.
 */
static bool walk(int fd, unsigned int depth, struct cli_folder *folder)
{
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	bool all = directory != NULL && depth < DEPTH_MOST;
	struct dirent *entry;
	struct stat st;

	if (directory == NULL && fd >= 0)
		close(fd);
	while (all && (entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		all = fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		if (all && S_ISDIR(st.st_mode))
			all = walk(openat(fd, entry->d_name, FOLDER_FLAGS), depth + 1, folder);
		if (all && folder != NULL)
			add_entry(folder, &st);
		else if (all)
			unlinkat(fd, entry->d_name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	}
	if (directory != NULL)
		closedir(directory);
	return all;
}

/* As cli_folder__measure, for an open folder. */
static int measure(int fd, struct cli_folder *folder)
{
	struct stat st;

	*folder = (struct cli_folder){0};
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	folder->device = st.st_dev;
	folder->inode = st.st_ino;
	add_entry(folder, &st);
	return walk(openat(fd, ".", FOLDER_FLAGS), 0, folder) ? 0 : -EIO;
}

int cli_folder__measure(const char *path, struct cli_folder *folder)
{
	int fd = open(path, FOLDER_FLAGS);
	int rc = measure(fd, folder);

	if (fd >= 0)
		close(fd);
	return rc;
}

void cli_folder__remove(const char *path)
{
	if (walk(open(path, FOLDER_FLAGS), 0, NULL))
		rmdir(path);
}

bool cli_folder__remove_same(const char *path, const struct cli_folder *folder)
{
	struct cli_folder now;
	int fd = open(path, FOLDER_FLAGS);
	bool same = measure(fd, &now) == 0 && now.device == folder->device &&
		    now.inode == folder->inode && now.bytes == folder->bytes &&
		    now.changed.tv_sec == folder->changed.tv_sec &&
		    now.changed.tv_nsec == folder->changed.tv_nsec;

	if (same && walk(fd, 0, NULL))
		rmdir(path);
	else if (fd >= 0 && !same)
		close(fd);
	return same;
}
