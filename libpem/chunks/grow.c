/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * grow.c - pools of the default size grow while the session can't keep up
 *
 * A pool's file is sparse, and has chunks that nobody uses at first (pem_pool_header.chunk_limit).
 * If a quarter of those in use is full when the session looks, the session doubles their number.
 * The memory is the observed process's, which owes pem nothing. So a pool grows only by an eighth
 * at most of what is free in the machine's memory, in the file system of the pool, and in each
 * memory control group that the process is in. It never shrinks; chunks of low numbers are used
 * first.
 *
 * Not here: pools of other users, whose memory is accounted for by pools of the first size; flight
 * recorders, which overwrite; pools of a size that was asked for.
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "util.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define FULL_SHARE 4u /* grow if one of so many chunks is full */
#define FREE_SHARE 8u /* take one of so many free bytes at most */
#define RETRY_NS 1000000000u /* after a growth that memory did not allow */

/* Read the start of a file as text. False: it can't be read. */
static bool read_text(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = 0;
	return length > 0;
}

static bool memory_allows(uint64_t bytes)
{
	char text[1024], *line;

	if (!read_text("/proc/meminfo", text, sizeof(text)))
		return false;
	line = strstr(text, "MemAvailable:");
	return line &&
	       strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 / FREE_SHARE >= bytes;
}

static bool file_system_allows(int folder_fd, uint64_t bytes)
{
	struct statvfs fs;

	return !fstatvfs(folder_fd, &fs) &&
	       (uint64_t)fs.f_bavail * fs.f_frsize / FREE_SHARE >= bytes;
}

/* --- memory control groups --- */

/* How version 1 and version 2 name the files, and where they are mounted. */
struct group_version {
	const char *root, *limit, *used;
};

static const struct group_version version_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes",
					       "memory.usage_in_bytes"};
static const struct group_version version_2[] = {
	{"/sys/fs/cgroup", "memory.max", "memory.current"},
	{"/sys/fs/cgroup/unified", "memory.max", "memory.current"}};

/* A group without a limit has the word "max", or no file if memory is not controlled there. */
static bool group_allows(const struct group_version *v, const char *group, uint64_t bytes)
{
	char path[PATH_MAX], text[32];
	uint64_t limit, used;

	snprintf(path, sizeof(path), "%s%s/%s", v->root, group, v->limit);
	if (!read_text(path, text, sizeof(text)))
		return access(path, F_OK) != 0;
	if (!strncmp(text, "max", 3))
		return true;
	limit = strtoull(text, NULL, 10);
	snprintf(path, sizeof(path), "%s%s/%s", v->root, group, v->used);
	if (!read_text(path, text, sizeof(text)))
		return false;
	used = strtoull(text, NULL, 10);
	return limit > used && (limit - used) / FREE_SHARE >= bytes;
}

/*
 * Do a group and all that it is in allow so many bytes? group: a path, which is cut. A group
 * outside this process's cgroup namespace, "/..", is not known.
 */
static bool groups_allow(const struct group_version *v, char *group, uint64_t bytes)
{
	char path[PATH_MAX], *slash;

	if (strstr(group, "/..") ||
	    snprintf(path, sizeof(path) - 32, "%s%s", v->root, group) >= (int)sizeof(path) - 32 ||
	    access(path, F_OK))
		return false;
	for (;;) {
		if (!group_allows(v, group, bytes))
			return false;
		slash = strrchr(group, '/');
		if (!slash || !*group)
			return true;
		*slash = 0;
	}
}

/* Return the path in a line of /proc/PID/cgroup, ended; NULL: there is no such line. */
static char *path_of(char *lines, const char *controller)
{
	char *line = strstr(lines, controller), *path = line ? strchr(line, '/') : NULL;

	if (path)
		path[strcspn(path, "\n")] = 0;
	return path;
}

/* What can't be found out allows nothing. */
static bool process_groups_allow(uint32_t pid, uint64_t bytes)
{
	char name[64], text[4096], *path;
	size_t i;

	snprintf(name, sizeof(name), "/proc/%u/cgroup", pid);
	if (!read_text(name, text, sizeof(text)))
		return false;
	path = path_of(text, ":memory:");
	if (path)
		return groups_allow(&version_1, path, bytes);
	path = path_of(text, "0::");
	if (!path)
		return false;
	for (i = 0; i < PEM_ARRAY_SIZE(version_2); i++) {
		if (groups_allow(&version_2[i], path, bytes))
			return true;
	}
	return false;
}

/* --- growing --- */

/*
 * Allocate the states of chunks from 'from' on, as their owner did for the first ones. Kernels
 * before 5.14 can't, and a pool does not grow there.
 */
static bool populate_states(const struct pem_ring *ring, uint32_t from, uint32_t to)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = (uintptr_t)&ring->chunk_state[from] & ~(page - 1);
	uintptr_t end = (uintptr_t)&ring->chunk_state[to];

	return !madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

static bool may_grow(const struct pem_producer *p)
{
	return p->chunk_limit < p->ring.chunk_count && !p->ring.overwrite && !p->dir->number &&
	       !p->recovering && !p->is_copy;
}

/* Bytes that all pools may take beyond their first size. */
static uint64_t grown_bytes(const struct pem_session *s)
{
	uint32_t first = pem_pool_geometry__first_chunks(&s->geometry);
	const struct pem_producer *p;
	uint64_t chunks = 0;

	for (p = s->processes->producers; p; p = p->next)
		chunks += p->chunk_limit > first ? p->chunk_limit - first : 0;
	return chunks * s->geometry.chunk_bytes;
}

void pem_producer__grow(struct pem_session *s, struct pem_producer *p, size_t full)
{
	uint64_t now = pem_monotonic_ns(), bytes;
	uint32_t limit = p->chunk_limit, more = limit;

	if (!may_grow(p) || full < limit / FULL_SHARE || now < s->chunks->next_growth_ns)
		return;
	if (more > p->ring.chunk_count - limit)
		more = p->ring.chunk_count - limit;
	bytes = (uint64_t)more * p->ring.chunk_bytes;
	if (!memory_allows(grown_bytes(s) + bytes) ||
	    !file_system_allows(p->dir->directory_fd, bytes) ||
	    !process_groups_allow(p->pid, bytes) ||
	    !populate_states(&p->ring, limit, limit + more)) {
		s->chunks->next_growth_ns = now + RETRY_NS;
		return;
	}
	p->chunk_limit = limit + more;
	__atomic_store_n(&p->ring.header->chunk_limit, p->chunk_limit, __ATOMIC_RELAXED);
	/* RH: a producer whose pool was full searches it again */
	__atomic_fetch_add(&p->ring.header->freed, 1, __ATOMIC_RELEASE);
}
