/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mapped_files.c - has files kept that programs have mapped, and that may not be found when the
 * recording has ended and they are to be named
 *
 * A file is not found later if its path leads elsewhere here: the program has another root or other
 * mounts, or the file was removed already. And one that is younger than an hour, as a test that was
 * just built, may soon be removed or built again. A descriptor that stays open would keep file
 * systems busy that the program unmounts: so the sink gets a copy.
 *
 * What is mapped is opened by /proc/PID/map_files, below the process's root, or by /proc/PID/exe.
 *
 * Not here: where copies lie (writer/kept_files.c). Files of other users and of their processes,
 * for which a reader might wait; files without a build id, by which a copy is found.
 */
#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define JUDGED_MAX 1024u /* build ids; further ones are not kept */
#define YOUNG_S 3600
#define YOUNG_BYTES_MAX (8u << 20)
#define FILE_BYTES_MAX (128u << 20)
#define ALL_BYTES_MAX (512u << 20)

struct mapped_files {
	uint64_t judged[2 * JUDGED_MAX]; /* the first 8 bytes of build ids; open-addressed */
	unsigned count;
	uint64_t bytes; /* that were given to the sink */
};

struct mapped_files *mapped_files__new(void)
{
	return calloc(1, sizeof(struct mapped_files));
}

/* Where a build id is noted that was not judged yet. NULL: it was, or no more are. */
static uint64_t *note_of(struct mapped_files *files, uint64_t id)
{
	unsigned i = (unsigned)(id % (2 * JUDGED_MAX));

	for (; files->judged[i]; i = (i + 1) % (2 * JUDGED_MAX)) {
		if (files->judged[i] == id)
			return NULL;
	}
	return id && files->count < JUDGED_MAX ? &files->judged[i] : NULL;
}

/* The program itself, whose file may be removed already. */
static int open_program(int process, const struct ring_map *map)
{
	char path[PATH_MAX];
	ssize_t bytes = readlinkat(process, "exe", path, sizeof(path) - 1);

	if (bytes < 0)
		return -errno;
	path[bytes] = '\0';
	if (strncmp(path, map->path, strlen(map->path)) != 0)
		return -ENOENT;
	return openat(process, "exe", O_PATH | O_CLOEXEC);
}

/* Without the right to open what is mapped (CAP_CHECKPOINT_RESTORE) by the process's own root. */
static int open_mapped(int process, const struct ring_map *map)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char path[64];
	int root, fd;

	snprintf(path, sizeof(path), "map_files/%llx-%llx", (unsigned long long)map->address,
		 (unsigned long long)(map->address + map->length));
	fd = openat(process, path, O_PATH | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	root = openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, map->path, &how, sizeof(how));
	close(root);
	return fd >= 0 ? fd : open_program(process, map);
}

/*
 * Open the file if it and the process are this user's, or the file root's. The number of the
 * process may be another one's by now: its folder in /proc is of one process alone. Returns -EPERM
 * if they are not, another error if the process has ended.
 */
static int open_own(const struct ring_map *map, struct stat *file)
{
	int process = maps__open_process((pid_t)map->pid), fd = -EPERM;

	if (process < 0)
		return -ESRCH;
	if (maps__is_own_at(process))
		fd = open_mapped(process, map);
	else if (faccessat(process, "exe", F_OK, AT_SYMLINK_NOFOLLOW))
		fd = -ESRCH;
	close(process);
	if (fd < 0)
		return fd;
	if (!fstat(fd, file) && S_ISREG(file->st_mode) &&
	    (file->st_uid == 0 || file->st_uid == geteuid()))
		return fd;
	close(fd);
	return -EPERM;
}

static int may_be_gone(const struct ring_map *map, const struct stat *file)
{
	struct timespec now;
	struct stat here;
	time_t changed = file->st_mtim.tv_sec > file->st_ctim.tv_sec ? file->st_mtim.tv_sec
								     : file->st_ctim.tv_sec;

	if (stat(map->path, &here) || here.st_dev != file->st_dev || here.st_ino != file->st_ino)
		return 1;
	clock_gettime(CLOCK_REALTIME, &now);
	return file->st_size <= (off_t)YOUNG_BYTES_MAX && now.tv_sec - changed < YOUNG_S;
}

void mapped_files__take(struct mapped_files *files, const struct ring_map *map,
			const struct pem_source_sink *sink)
{
	uint64_t id, *note;
	char path[40];
	struct stat file;
	int handle, fd;

	if (!files || !sink->keep_file || !map->is_file || map->build_id_bytes < 8)
		return;
	memcpy(&id, map->build_id, sizeof(id));
	note = note_of(files, id);
	if (!note)
		return;
	handle = open_own(map, &file);
	/* A process that has ended leaves its file to the next one that maps it. */
	if (handle < 0 && handle != -EPERM)
		return;
	*note = id;
	files->count++;
	if (handle < 0)
		return;
	if (file.st_size > 0 && file.st_size <= (off_t)FILE_BYTES_MAX &&
	    files->bytes + (uint64_t)file.st_size <= ALL_BYTES_MAX && may_be_gone(map, &file)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd >= 0) {
			files->bytes += (uint64_t)file.st_size;
			sink->keep_file(sink->arg, map->build_id, map->build_id_bytes, fd,
					(uint64_t)file.st_size);
			close(fd);
		}
	}
	close(handle);
}
