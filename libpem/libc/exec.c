// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * exec.c - what the environment of a program says of pem's libraries, where the loader would not find them
 *
 * A process that has changed its user, root folder or namespace starts programs whose loader can't open the libraries, and
 * complains of each. One with a seccomp filter that refuses pem's calls starts programs that have it, too. These get an
 * environment without the libraries, as if nobody watched, and are counted.
 */
#include "libc/exec.h"

#include "libc/libc.h"
#include "producer/rights.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VARIABLE "LD_PRELOAD="
#define VARIABLE_BYTES (sizeof(VARIABLE) - 1)

/* Is it one of pem's libraries, by its name? */
static int is_own(const char *entry, size_t length)
{
	static const char start[] = "libpem";
	size_t i;

	for (i = length; i && entry[i - 1] != '/'; i--)
		;
	return length - i >= sizeof(start) && !memcmp(entry + i, start, sizeof(start) - 1) &&
	       (entry[i + sizeof(start) - 1] == '.' || entry[i + sizeof(start) - 1] == '-');
}

/* By the call itself: a thread is not cancelled in execve, nor is what a library makes of names the loader's business. */
static int open_to_read(const char *path)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static void close_again(int fd)
{
	syscall(SYS_close, fd);
}

/* The path's memory is what it needs: handlers call execve on stacks of their own, which are small. */
static int can_open(const char *entry, size_t length)
{
	char *path;
	int fd;

	if (length >= PATH_MAX)
		return 1;
	path = __builtin_alloca(length + 1);
	memcpy(path, entry, length);
	path[length] = 0;
	fd = open_to_read(path);
	if (fd >= 0)
		close_again(fd);
	return fd >= 0;
}

#define BLOCK_BYTES 512u /* of a handler's stack */
#define BLOCKS 8u /* where linkers put the loader's name */

/* Does a program name musl's loader, which ends a program whose libraries it can't load? head: its first block. */
static int names_musl(int fd, unsigned char *block)
{
	static const char start[] = "/lib/ld-musl-";
	const Elf64_Ehdr *head = (const void *)block;
	const Elf64_Phdr *part = (const void *)(block + sizeof(*head));
	uint64_t at = 0;
	unsigned i;

	if (head->e_phoff != sizeof(*head) || head->e_phentsize != sizeof(*part))
		return 0;
	for (i = 0;
	     i < head->e_phnum && (const unsigned char *)(part + i + 1) <= block + BLOCK_BYTES;
	     i++) {
		if (part[i].p_type == PT_INTERP)
			at = part[i].p_offset;
	}
	for (i = 0; i < BLOCKS && at >= BLOCK_BYTES; i++, at -= BLOCK_BYTES) {
		if (syscall(SYS_read, fd, block, BLOCK_BYTES) != (long)BLOCK_BYTES)
			return 0;
	}
	return at && at + sizeof(start) <= BLOCK_BYTES &&
	       !memcmp(block + at, start, sizeof(start) - 1);
}

/* Would the loader of a program, which has a path, complain of the libraries, as they are of another class or C library? */
static int is_foreign(const char *program)
{
	_Alignas(Elf64_Ehdr) unsigned char block[BLOCK_BYTES] = {0};
	int fd = program ? open_to_read(program) : -1, foreign = 0;
	long got;

	if (fd < 0)
		return 0;
	got = syscall(SYS_read, fd, block, sizeof(block));
	if (got > EI_CLASS && !memcmp(block, ELFMAG, SELFMAG))
		foreign = block[EI_CLASS] == ELFCLASS32 ||
			  (got == sizeof(block) && names_musl(fd, block));
	close_again(fd);
	return foreign;
}

/* The variable, or NULL. */
static const char *find(char *const environment[], size_t *index)
{
	size_t i;

	for (i = 0; environment && environment[i]; i++) {
		if (!strncmp(environment[i], VARIABLE, VARIABLE_BYTES)) {
			*index = i;
			return environment[i] + VARIABLE_BYTES;
		}
	}
	return NULL;
}

/* The length of a list's first entry, which ends at a colon or space. */
static size_t entry_length(const char *list)
{
	return strcspn(list, ": ");
}

static int must_go(const char *list, const char *program)
{
	size_t length;

	for (;; list += length + 1) {
		length = entry_length(list);
		if (is_own(list, length) &&
		    (pem_rights__restricted() ||
		     (pem_rights__given_up() && !can_open(list, length)) || is_foreign(program)))
			return 1;
		if (!list[length])
			return 0;
	}
}

size_t pem_libc_exec__bytes(const char *program, char *const environment[])
{
	const char *list;
	size_t index = 0, count;
	int saved_errno, goes;

	if (pem_libc_call__is_silent(0)) /* a thread without memory of its own, not even errno */
		return 0;
	saved_errno = errno;
	list = find(environment, &index);
	goes = list && must_go(list, program);
	errno = saved_errno;
	if (!goes)
		return 0;
	for (count = index; environment[count]; count++)
		;
	return (count + 1) * sizeof(char *) + VARIABLE_BYTES + strlen(list) + 1;
}

/* Copy the entries that are not pem's. False: there are none. */
static int copy_others(char *to, const char *list)
{
	size_t length, used = 0;

	for (;; list += length + 1) {
		length = entry_length(list);
		if (length && !is_own(list, length)) {
			if (used)
				to[used++] = ':';
			memcpy(to + used, list, length);
			used += length;
		}
		if (!list[length])
			break;
	}
	to[used] = 0;
	return used != 0;
}

char **pem_libc_exec__copy(void *memory, char *const environment[])
{
	char **copy = memory, *text;
	size_t index = 0, count, used = 0, i;
	const char *list = find(environment, &index);

	for (count = index; environment[count]; count++)
		;
	text = (char *)(copy + count + 1);
	memcpy(text, VARIABLE, VARIABLE_BYTES);
	for (i = 0; i < count; i++) {
		if (i != index)
			copy[used++] = environment[i];
		else if (copy_others(text + VARIABLE_BYTES, list))
			copy[used++] = text;
	}
	copy[used] = NULL;
	pem_rights__count_unobserved();
	return copy;
}
