/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shared_file.c - files that a process leaves for its recorder: opening, checking, mapping, reading
 */
#include "core/fault.h"
#include "core/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int pem_shared_file__open(int directory_fd, const char *name, int flags)
{
	return openat(directory_fd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

int pem_shared_file__check(int fd, uid_t owner, struct stat *st)
{
	if (fstat(fd, st))
		return -errno;
	if (!S_ISREG(st->st_mode) || st->st_uid != owner || st->st_nlink > 1)
		return -EPERM;
	return st->st_nlink ? 0 : -ENOENT;
}

int pem_shared_file__map(int fd, const struct stat *st, uint32_t magic, uint64_t least,
			 uint64_t most, int *cut, struct pem_shared_file *file)
{
	uint64_t bytes = (uint64_t)st->st_size;
	uint32_t word;
	void *memory;
	int result;

	if (pread(fd, &word, sizeof(word), 0) != sizeof(word) || word != magic)
		return -EAGAIN;
	if (bytes < least || bytes > most)
		return -EINVAL;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	result = pem_fault__watch(memory, bytes, cut);
	if (result) {
		munmap(memory, bytes);
		return result;
	}
	*file = (struct pem_shared_file){memory, bytes, (uint64_t)st->st_ino, cut};
	return 0;
}

void pem_shared_file__unmap(void *memory, uint64_t bytes)
{
	pem_fault__forget(memory);
	munmap(memory, bytes);
}

char *pem_shared_file__read(int fd, const struct stat *st, size_t *bytes)
{
	size_t size = (size_t)st->st_size, used = 0;
	char *data = malloc(size + 1);
	ssize_t got = 1;

	while (data && used < size && got) {
		got = read(fd, data + used, size - used);
		if (got < 0 && errno != EINTR) {
			free(data);
			return NULL;
		}
		used += got > 0 ? (size_t)got : 0;
	}
	if (!data)
		return NULL;
	data[used] = 0;
	*bytes = used;
	return data;
}
