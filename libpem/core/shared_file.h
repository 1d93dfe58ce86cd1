/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shared_file.h - files that a process leaves for its recorder: opening, checking, mapping, reading
 *
 * A file's owner may change, exchange and truncate it at any time. One function opens the file and
 * others use its descriptor, so that another process may open it.
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
	int *cut; /* set if its owner truncates it: it then holds zeroes */
};

/*
 * Open a file of a folder; links are not followed. flags: O_RDONLY or O_RDWR. Returns a descriptor,
 * or -1 with errno. Never blocks.
 */
int pem_shared_file__open(int directory_fd, const char *name, int flags);

/*
 * Check that an open file is a regular file of the owner's with at most one name. The bytes of a
 * file with several names would be counted several times. Returns 0, and *st is what fstat says;
 * -ENOENT: the file has been unlinked; -EPERM: it is another kind of file; or -errno of fstat.
 */
int pem_shared_file__check(int fd, uid_t owner, struct stat *st);

/*
 * Map a checked file that is least to most bytes long and starts with a magic word. The function
 * reads the word by a system call and does not touch the memory. A file that is not complete may
 * have no memory behind it, and on a full file system a touch would raise SIGBUS. Returns 0, and
 * the caller unmaps the file; -EAGAIN: there is no magic word yet; -EINVAL: the size is another
 * one; -ENOMEM. fd stays the caller's.
 */
int pem_shared_file__map(int fd, const struct stat *st, uint32_t magic, uint64_t least,
			 uint64_t most, int *cut, struct pem_shared_file *file);
void pem_shared_file__unmap(void *memory, uint64_t bytes);

/*
 * Read a whole checked file, with a NUL behind its *bytes bytes. NULL with errno. The caller frees
 * it.
 */
char *pem_shared_file__read(int fd, const struct stat *st, size_t *bytes);

#endif
