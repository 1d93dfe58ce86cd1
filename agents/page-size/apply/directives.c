// SPDX-License-Identifier: MIT
/* directives.c - the lines of the file of directives, and whose the file may be */
#include "directives.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool refuse(char error[DIRECTIVES_ERROR], const char *why)
{
	snprintf(error, DIRECTIVES_ERROR, "the file of directives %s", why);
	return false;
}

/* A decimal number up to a tab, a newline or the end. Returns where it ends; NULL: it is none. */
static const char *get_number(const char *at, uint64_t *number)
{
	const char *first = at;

	for (*number = 0; *at >= '0' && *at <= '9'; at++) {
		if (__builtin_mul_overflow(*number, (uint64_t)10, number) ||
		    __builtin_add_overflow(*number, (uint64_t)(*at - '0'), number))
			return NULL;
	}
	return at > first && (*at == '\t' || *at == '\n' || !*at) ? at : NULL;
}

static const char *get_site(struct directives *directives, const char *at, bool in_part)
{
	struct directive *to = &directives->list[directives->count];
	size_t length;

	if (directives->count == PAGE_APPLY_SITES_MAX)
		return NULL;
	at = get_number(at, &to->page_size);
	if (!at || *at++ != '\t' ||
	    (to->page_size != 4096 && to->page_size != 2u << 20 && to->page_size != 1u << 30))
		return NULL;
	at = get_number(at, &to->least);
	if (!at || *at++ != '\t')
		return NULL;
	to->most = 0;
	if (in_part) {
		at = get_number(at, &to->most);
		if (!at || *at++ != '\t' || !to->most)
			return NULL;
	}
	length = page_site__read(at, &to->site);
	if (!length)
		return NULL;
	page_site__write(&to->site, to->text);
	directives->count++;
	return at + length;
}

static const char *get_path(char path[PATH_MAX], const char *at)
{
	size_t length = strcspn(at, "\n");

	if (!length || length >= PATH_MAX || at[0] != '/')
		return NULL;
	memcpy(path, at, length);
	path[length] = '\0';
	return at + length;
}

/* One line. Returns where it ends; NULL: it is unknown. */
static const char *get_line(struct directives *directives, const char *at)
{
	if (!strncmp(at, "budget ", 7))
		return get_number(at + 7, &directives->budget);
	if (!strncmp(at, "agent ", 6))
		return get_number(at + 6, &directives->agent);
	if (!strncmp(at, "report ", 7))
		return get_path(directives->report, at + 7);
	if (!strncmp(at, "site\t", 5))
		return get_site(directives, at + 5, false);
	if (!strncmp(at, "part\t", 5))
		return get_site(directives, at + 5, true);
	return NULL;
}

bool directives__parse(struct directives *directives, const char *text,
		       char error[DIRECTIVES_ERROR])
{
	char why[64];
	unsigned line = 1;
	const char *at = text;
	size_t magic = strlen(PAGE_APPLY_MAGIC);

	if (strncmp(at, PAGE_APPLY_MAGIC, magic) || at[magic] != '\n')
		return refuse(error, "does not begin with '" PAGE_APPLY_MAGIC "'");
	for (at += magic + 1; *at; at++) {
		line++;
		at = get_line(directives, at);
		if (!at || *at != '\n') {
			snprintf(why, sizeof(why), "has a line that is unknown: line %u", line);
			return refuse(error, why);
		}
	}
	return true;
}

static bool check_owner(const struct stat *st, char error[DIRECTIVES_ERROR])
{
	if (!S_ISREG(st->st_mode))
		return refuse(error, "is no regular file");
	/* Programs trust root, who could change them anyway. */
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return refuse(error, "is another user's");
	if (st->st_mode & 022)
		return refuse(error, "may be written by others: chmod go-w mends it");
	if (st->st_size > (off_t)PAGE_APPLY_FILE_MAX)
		return refuse(error, "has more than 1 MiB");
	return true;
}

static bool read_text(struct directives *directives, int fd, char error[DIRECTIVES_ERROR])
{
	size_t bytes = PAGE_APPLY_FILE_MAX + 4096, length = 0;
	char *text = (char *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool done = false;
	ssize_t got;

	if (text == MAP_FAILED)
		return refuse(error, "was not read: there is no memory");
	do {
		got = read(fd, text + length, PAGE_APPLY_FILE_MAX + 1 - length);
		if (got > 0)
			length += (size_t)got;
	} while ((got > 0 && length <= PAGE_APPLY_FILE_MAX) || (got < 0 && errno == EINTR));
	if (got < 0)
		refuse(error, "can't be read");
	else if (length > PAGE_APPLY_FILE_MAX)
		refuse(error, "has more than 1 MiB");
	else if (memchr(text, '\0', length))
		refuse(error, "has a NUL in it");
	else
		done = directives__parse(directives, text, error);
	syscall(SYS_munmap, text, bytes);
	return done;
}

bool directives__read(struct directives *directives, const char *path, char error[DIRECTIVES_ERROR])
{
	size_t length = strlen(path);
	struct stat st;
	bool done;
	int fd;

	if (length + sizeof(".account") > PATH_MAX || path[0] != '/')
		return refuse(error, "has no path from / on, or one that is too long");
	memcpy(directives->path, path, length + 1);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return refuse(error, errno == ELOOP ? "is a symbolic link" : "can't be opened");
	if (fstat(fd, &st))
		done = refuse(error, "can't be opened");
	else
		done = check_owner(&st, error) && read_text(directives, fd, error);
	close(fd);
	return done;
}
