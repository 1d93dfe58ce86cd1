/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * counts.c - where a process counts what it loses, if the session's page is not its to write
 *
 * Root's public folder has a page that only root writes: whoever may write a file may also cut it
 * off, which would end every other program that has it mapped. So each program that joins there
 * counts in a file of its own, which its own user alone can cut. The consumer finds the file, takes
 * the counts out of it, and removes it when nobody holds the lock on it.
 *
 * Not here: who reads them (dirs/public.c).
 */
#include "producer/producer.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

/* Where no file can be made: of all such sessions, and read by nobody. */
static uint64_t private_head[PEM_SESSION_HEAD_BYTES / sizeof(uint64_t)];

/*
 * Fill and map it; the lock lasts as long as the mapping, here and in children. It is taken before
 * the magic is there. Its memory exists once it is written. NULL with errno.
 */
static struct pem_session_page *map_counts(int fd)
{
	uint32_t head[PEM_SESSION_HEAD_BYTES / sizeof(uint32_t)] = {PEM_COUNTS_MAGIC,
								    PEM_ABI_VERSION};
	void *memory;
	int result;

	if (!pem_file_size_allowed(sizeof(head))) {
		errno = EFBIG;
		return NULL;
	}
	if (flock(fd, LOCK_SH | LOCK_NB))
		return NULL;
	result = pem_write_all(fd, head, sizeof(head));
	if (result) {
		errno = -result;
		return NULL;
	}
	memory = mmap(NULL, sizeof(head), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* What is lost here can't be told. That it can't be is told by a name, which needs no room. */
static void leave_name(const char *directory, const char *path, int code)
{
	static char name[PATH_MAX + 64];

	snprintf(name, sizeof(name), "%s/refused-%s-%d", directory,
		 path + strlen(directory) + strlen("/counts-"), code);
	if (rename(path, name))
		unlink(path);
}

struct pem_session_page *pem_counts__make(const char *directory)
{
	static char path[PATH_MAX + 64];
	int fd = pem_create_file(directory, "counts", NULL, path, sizeof(path));
	struct pem_session_page *counts = NULL;

	if (fd >= 0) {
		counts = map_counts(fd);
		if (!counts)
			leave_name(directory, path, errno);
		close(fd);
	}
	return counts ? counts : (struct pem_session_page *)private_head;
}

void pem_counts__give_up(struct pem_session_page *counts)
{
	if (counts && counts != (struct pem_session_page *)private_head)
		pem_make_private(counts, PEM_SESSION_HEAD_BYTES);
}
