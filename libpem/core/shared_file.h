/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shared_file.h - files that a process leaves for its recorder: opening, checking, mapping, reading
 *
 * A file's owner may change, exchange and truncate it at any time. Opening one is apart from what
 * is done with its descriptor, so that another process may open it.
 */
#ifndef PEM_CONSUMER_SHARED_FILE_H
#define PEM_CONSUMER_SHARED_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* A mapping of a whole file. */
struct pem_shared_file {
	void *memory; /* NULL: none */
	uint64_t bytes;
	uint64_t inode;
	int *cut; /* set should its owner truncate it: it then holds zeroes */
};

/*
 * Open a file of a folder, no link followed. flags: O_RDONLY or O_RDWR. -1 with errno. Never
 * blocks.
 */
int pem_shared_file__open(int directory_fd, const char *name, int flags);

/*
 * Is what is open a regular file of the owner's with no more than one name? With several, the same
 * bytes would be counted for several files. 0, with what fstat says; -ENOENT: it has been unlinked;
 * -EPERM.
 */
int pem_shared_file__check(int fd, uid_t owner, struct stat *st);

/*
 * Map a checked file that is least to most bytes long and starts with a magic word; the word is
 * read, not touched: a file that is not complete may have no memory behind it, and on a full file
 * system a touch is SIGBUS. 0, and the caller unmaps it; -EAGAIN: no magic word yet; -EINVAL:
 * another size; -ENOMEM. fd stays the caller's.
 */
int pem_shared_file__map(int fd, const struct stat *st, uint32_t magic, uint64_t least,
			 uint64_t most, int *cut, struct pem_shared_file *file);
void pem_shared_file__unmap(void *memory, uint64_t bytes);

/* Read a checked file whole; NUL-terminated beyond *bytes. NULL with errno. The caller frees it. */
char *pem_shared_file__read(int fd, const struct stat *st, size_t *bytes);

#endif
