// SPDX-License-Identifier: MIT
/* folder.c - makes folders for traces without a given name: PREFIX-COMMAND-N */
#include "folder.h"
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-"
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
	/* The command may be another user's, and shells are to take the name as it is. */
	for (p = name; *p != '\0'; p++)
		if (strchr(PLAIN, *p) == NULL && (unsigned char)*p < 0x80)
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

/* Find where a link to a folder leads. Returns 0, or -errno. */
static int resolve(const char *link, char *path, size_t bytes)
{
	/* The kernel follows the link, so that it can refuse to: see fs.protected_symlinks. */
	int fd = open(link, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st, named;
	char name[32];
	ssize_t n;
	int rc = 0;

	if (fd < 0)
		return -errno;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, path, bytes);
	if (n < 0) {
		rc = -errno;
	} else if ((size_t)n >= bytes) {
		rc = -ENAMETOOLONG;
	} else {
		path[n] = '\0';
		/* If the folder was removed in between, the text does not name it. */
		if (fstat(fd, &st) < 0 || lstat(path, &named) < 0 || st.st_dev != named.st_dev ||
		    st.st_ino != named.st_ino)
			rc = -ENOENT;
	}
	close(fd);
	return rc;
}

int cli_folder__given(const char *given, char *path, size_t bytes)
{
	struct stat st;
	int rc = 0;

	if (lstat(given, &st) == 0 && S_ISLNK(st.st_mode))
		rc = resolve(given, path, bytes);
	else if ((size_t)snprintf(path, bytes, "%s", given) >= bytes)
		rc = -ENAMETOOLONG;
	if (rc == 0)
		return CLI_DONE;
	return cli_error(cli_status_of_errno(-rc),
			 "cannot use %s as the trace's folder: %s; -o "
			 "names another",
			 given, strerror(-rc));
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
 * Look at the entries of a folder and below, or remove them. fd is closed. A folder on another
 * device is left alone. Returns whether all could be looked at.
 */
static bool walk(int fd, unsigned int depth, uint64_t device, struct cli_folder *folder)
{
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;
	bool all = directory != NULL && depth < DEPTH_MOST && fstat(fd, &st) == 0 &&
		   st.st_dev == device;

	if (directory == NULL && fd >= 0)
		close(fd);
	while (all && (entry = readdir(directory)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		all = fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		if (all && S_ISDIR(st.st_mode))
			all = walk(openat(fd, entry->d_name, FOLDER_FLAGS), depth + 1, device,
				   folder);
		if (all && folder != NULL)
			add_entry(folder, &st);
		else if (all)
			unlinkat(fd, entry->d_name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	}
	if (directory != NULL)
		closedir(directory);
	return all;
}

/* Open a folder of this user's. Returns a descriptor, or -errno. */
static int open_own(const char *path, struct stat *st)
{
	int fd = open(path, FOLDER_FLAGS), rc;

	if (fd < 0)
		return -errno;
	rc = fstat(fd, st) < 0 ? -errno : st->st_uid != geteuid() ? -EPERM : 0;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Open the folder that was made, if it still has its name. Returns a descriptor, or -errno. */
static int open_made(const char *path, const struct cli_folder *folder, struct stat *st)
{
	int fd = open_own(path, st);

	if (fd < 0 || (st->st_dev == folder->device && st->st_ino == folder->inode))
		return fd;
	close(fd);
	return -ESTALE;
}

int cli_folder__made(const char *path, struct cli_folder *folder)
{
	struct stat st;
	int fd = open_own(path, &st);

	if (fd < 0)
		return fd;
	*folder = (struct cli_folder){.device = st.st_dev, .inode = st.st_ino};
	close(fd);
	return 0;
}

int cli_folder__measure(const char *path, struct cli_folder *folder)
{
	struct stat st;
	int fd = open_made(path, folder, &st);

	if (fd < 0)
		return fd;
	folder->bytes = 0;
	folder->changed = (struct timespec){0};
	add_entry(folder, &st);
	return walk(fd, 0, folder->device, folder) ? 0 : -EIO;
}

int cli_folder__remove(const char *path, const struct cli_folder *folder)
{
	struct stat st;
	int fd = open_made(path, folder, &st);

	if (fd < 0)
		return fd;
	if (!walk(fd, 0, folder->device, NULL))
		return -EIO;
	return rmdir(path) < 0 ? -errno : 0;
}

int cli_folder__remove_same(const char *path, const struct cli_folder *folder)
{
	struct cli_folder now = *folder;
	int rc = cli_folder__measure(path, &now);

	if (rc < 0)
		return rc;
	if (now.bytes != folder->bytes || now.changed.tv_sec != folder->changed.tv_sec ||
	    now.changed.tv_nsec != folder->changed.tv_nsec)
		return -ESTALE;
	return cli_folder__remove(path, folder);
}
