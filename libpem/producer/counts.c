/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * counts.c - the file in which a process counts its losses, where it may not write to the session's
 * page
 *
 * Only root writes the page of root's public folder. A program that may write a file may also
 * truncate it, which would end every other program that has it mapped. So each program that joins
 * there counts in a file of its own, and only its own user can truncate that. The consumer finds
 * the file, takes the counts out of it, and removes it when nobody holds the lock on it.
 *
 * Reading the counts is in dirs/public.c.
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

/*
 * Losses are counted here where no file can be made. All such sessions share it, and nothing reads
 * it.
 */
static uint64_t private_head[PEM_SESSION_HEAD_BYTES / sizeof(uint64_t)];

/*
 * Fill and map the file. The file is locked before it has its magic. The lock lasts as long as the
 * mapping, here and in children. Writing the file allocates its memory. Returns NULL with errno.
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

/*
 * Leave a file name that says that losses cannot be counted here. A name needs no room on the disk.
 */
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
	char *path = pem_process__path;
	int fd = pem_create_file(directory, "counts", NULL, path, sizeof(pem_process__path));
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
