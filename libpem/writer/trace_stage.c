/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_stage.c - the stage: a folder beside the trace's files where a recovery puts new files
 *
 * Not here: writing these files (recover.c, trace_writer.c).
 *
 * The steps of a recovery. Each says what is there if the process ends after it:
 *
 *	1. The recovery makes '.pem/recovery.new' and fills it: new stream files,
 *	   metadata, model, run, names, balance.
 *	   The trace and shared memory are as they were. The next recovery removes the
 *	   folder and begins anew.
 *	2. The recovery renames the folder to '.pem/recovery': the stage is whole.
 *	   From here on, the next recovery goes on with step 3 and does not need shared
 *	   memory.
 *	3. model and metadata replace those of the trace.
 *	   They describe all that the old ones did, and more.
 *	4. Stream files move to the trace, one by one. A file keeps its name, or gets a
 *	   number behind it if the trace has a file of that name: nothing is overwritten.
 *	   A file that has moved is no longer in the stage, so it does not move twice.
 *	5. A torn packet, which no reader can use, is cut off the end of each stream.
 *	   Cutting again finds nothing to cut.
 *	6. names and run replace those of the trace; reserve and session are removed.
 *	   balance comes last: with it the trace is complete, and is not recovered again.
 *	7. The empty folder is removed, and then shared memory, too. If they stay, nobody
 *	   reads them.
 *
 * Steps 3 to 7 take no space but for entries in folders. Until step 6 is done the trace is readable
 * as an incomplete one. This is safe if the process ends, but not if the machine does: shared
 * memory does not outlive the machine either.
 *
 * Anyone may have written the trace. So only regular files move, to the trace's own folder, under
 * pem's names. Links are not followed. A stream is cut only if it belongs to the user, has one
 * name, and its torn end has the magic number and uuid of this trace, or is the beginning of a
 * block of a compressed stream of this trace.
 */
#include "writer/trace_stage.h"
#include "files.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILLING "recovery.new"
#define WHOLE "recovery"
#define NUMBERS_MAX 1000 /* most numbers behind a stream's name */

static const char *const closing[] = {"metadata", "model", "names", "run", "balance"};

static int open_stage(int private_fd, const char *name)
{
	int fd = openat(private_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? -errno : fd;
}

/* Does a stage have files of this name? */
static bool is_staged_name(const char *name)
{
	size_t length = strlen(name), i;

	/* A name with ".new" is left when pem_replace_file was interrupted. */
	if (length > 4 && !strcmp(name + length - 4, ".new"))
		length -= 4;
	for (i = 0; i < PEM_ARRAY_SIZE(closing); i++) {
		if (strlen(closing[i]) == length && !strncmp(name, closing[i], length))
			return true;
	}
	return pem_is_stream_name(name);
}

static bool is_regular(int fd, const char *name)
{
	struct stat st;

	return !fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

static void remove_stage(int private_fd, const char *name)
{
	int fd = open_stage(private_fd, name);
	DIR *folder = fd < 0 ? NULL : pem_list_folder(fd);
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		if (is_staged_name(entry->d_name) && is_regular(fd, entry->d_name))
			unlinkat(fd, entry->d_name, 0);
	}
	if (folder)
		closedir(folder);
	if (fd >= 0)
		close(fd);
	unlinkat(private_fd, name, AT_REMOVEDIR);
}

int pem_stage__begin(int private_fd)
{
	struct stat st;
	int fd;

	remove_stage(private_fd, FILLING);
	if (mkdirat(private_fd, FILLING, 0700))
		return -errno;
	fd = open_stage(private_fd, FILLING);
	if (fd < 0)
		return fd;
	if (!fstat(fd, &st) && st.st_uid == geteuid())
		return fd;
	close(fd);
	return -EPERM;
}

void pem_stage__discard(int private_fd)
{
	remove_stage(private_fd, FILLING);
}

int pem_stage__commit(int private_fd)
{
	return renameat(private_fd, FILLING, private_fd, WHOLE) ? -errno : 0;
}

bool pem_stage__is_whole(int private_fd)
{
	int fd = open_stage(private_fd, WHOLE);
	struct stat st;
	bool whole;

	if (fd < 0)
		return false;
	/* A whole stage has a balance until it is published. */
	whole = !fstat(fd, &st) && st.st_uid == geteuid() && is_regular(fd, "balance");
	close(fd);
	return whole;
}

/* --- publishing --- */

/* Replace a file of the trace that is pem's own. A file that was moved before is fine. */
static int move_closing(int stage_fd, int to_fd, const char *name)
{
	if (!is_regular(stage_fd, name))
		return 0;
	return renameat(stage_fd, name, to_fd, name) ? -errno : 0;
}

static int move_stream(int stage_fd, int trace_fd, const char *name)
{
	char to[PEM_STREAM_FILE_BYTES];
	int result, i;

	pem_copy_text(to, sizeof(to), name);
	result = pem_move_without_replacing(stage_fd, name, trace_fd, to);
	for (i = 1; result == -EEXIST && i <= NUMBERS_MAX; i++) {
		if (snprintf(to, sizeof(to), "%s_r%d", name, i) >= (int)sizeof(to))
			return -ENAMETOOLONG;
		result = pem_move_without_replacing(stage_fd, name, trace_fd, to);
	}
	return result;
}

/*
 * Move the streams that a listing shows. A move may keep other streams from being listed. Returns
 * how many were moved, or -errno.
 */
static int move_listed(DIR *folder, int trace_fd)
{
	struct dirent *entry;
	int moved = 0, result;

	rewinddir(folder);
	while ((entry = readdir(folder))) {
		if (!pem_is_stream_name(entry->d_name) || !is_regular(dirfd(folder), entry->d_name))
			continue;
		result = move_stream(dirfd(folder), trace_fd, entry->d_name);
		if (result)
			return result;
		moved++;
	}
	return moved;
}

static int move_streams(int stage_fd, int trace_fd)
{
	DIR *folder = pem_list_folder(stage_fd);
	int moved;

	if (!folder)
		return -errno;
	do {
		moved = move_listed(folder, trace_fd);
	} while (moved > 0);
	closedir(folder);
	return moved;
}

static int cut_stream(int trace_fd, const char *name, const uint8_t uuid[16])
{
	struct pem_stream_extent extent;
	struct stat st;
	int fd = pem_stream_file__open(trace_fd, name, O_RDWR, &st), result = 0;

	/* A file that is no stream, or can't be written, is not cut. */
	if (fd < 0)
		return 0;
	if (st.st_uid == geteuid() && st.st_nlink == 1) {
		result = pem_stream_file__measure(fd, (uint64_t)st.st_size, uuid, &extent);
		if (!result && extent.torn && ftruncate(fd, (off_t)extent.whole_bytes))
			result = -errno;
	}
	close(fd);
	return result;
}

static int cut_streams(int trace_fd)
{
	DIR *folder = pem_list_folder(trace_fd);
	struct dirent *entry;
	uint8_t uuid[16];
	int result = folder ? pem_trace__read_uuid(trace_fd, uuid) : -errno;

	while (!result && (entry = readdir(folder)))
		result = cut_stream(trace_fd, entry->d_name, uuid);
	if (folder)
		closedir(folder);
	return result;
}

int pem_stage__publish(int trace_fd, int private_fd)
{
	int fd = open_stage(private_fd, WHOLE), result;

	if (fd < 0)
		return fd;
	result = move_closing(fd, private_fd, "model");
	if (!result)
		result = move_closing(fd, trace_fd, "metadata");
	if (!result)
		result = move_streams(fd, trace_fd);
	if (!result)
		result = cut_streams(trace_fd);
	if (!result)
		result = move_closing(fd, private_fd, "names");
	if (!result)
		result = move_closing(fd, private_fd, "run");
	if (!result) {
		unlinkat(private_fd, "reserve", 0);
		unlinkat(private_fd, "session", 0);
		result = move_closing(fd, private_fd, "balance");
	}
	close(fd);
	if (!result)
		unlinkat(private_fd, WHOLE, AT_REMOVEDIR);
	return result;
}
