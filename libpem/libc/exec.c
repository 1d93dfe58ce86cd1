// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * exec.c - started programs that can't be recorded
 *
 * Such programs are counted. Programs whose loader would complain about pem's libraries get an
 * environment without these.
 *
 * If a process has changed its user, root folder or namespace, the loader of a program that it
 * starts can't open the libraries, and complains about each. If a process has a seccomp filter that
 * refuses pem's calls, a program that it starts has the filter too. Such programs start as if they
 * were not observed. The entries that the program itself removed from an environment stay removed.
 *
 * A start is counted before it is tried, because a start that succeeds does not return.
 *
 * Not here: what a program's file says (program_file.c), counting (producer/started.c).
 */
#include "libc/exec.h"

#include "libc/libc.h"
#include "libc/readable.h"
#include "producer/program_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VARIABLE "LD_PRELOAD="
#define VARIABLE_BYTES (sizeof(VARIABLE) - 1)
#define COPY_BYTES_MAX 65536u /* Bytes of a caller's stack, at most: some 8,000 variables */

/* --- the libraries in an environment --- */

/* Return whether an entry is one of pem's libraries, by its name. */
static int is_own(const char *entry, size_t length)
{
	static const char start[] = "libpem";
	size_t i;

	for (i = length; i && entry[i - 1] != '/'; i--)
		;
	return length - i >= sizeof(start) && !memcmp(entry + i, start, sizeof(start) - 1) &&
	       (entry[i + sizeof(start) - 1] == '.' || entry[i + sizeof(start) - 1] == '-');
}

/*
 * Return whether this process can open the path. The function takes only the memory that the path
 * needs: signal handlers call execve on their own small stacks.
 */
static int can_open(const char *entry, size_t length)
{
	char *path;
	long fd;

	if (length >= PATH_MAX)
		return 1;
	path = __builtin_alloca(length + 1);
	memcpy(path, entry, length);
	path[length] = 0;
	/*
	 * Call the kernel directly: a thread must not be cancelled in execve, as it may be in
	 * openat.
	 */
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		syscall(SYS_close, fd);
	return fd >= 0;
}

/* Return a variable's value, or NULL. name ends in '='. */
static const char *find(char *const environment[], const char *name, size_t *index)
{
	size_t length = strlen(name), i;

	for (i = 0; environment && environment[i]; i++) {
		if (strncmp(environment[i], name, length))
			continue;
		*index = i;
		return environment[i] + length;
	}
	return NULL;
}

/* Return the length of a list's first entry. It ends at a colon or space. */
static size_t entry_length(const char *list)
{
	return strcspn(list, ": ");
}

/* Return whether a list has one of pem's libraries. */
static bool names_own(const char *list)
{
	size_t length;

	for (; list; list = list[length] ? list + length + 1 : NULL) {
		length = entry_length(list);
		if (is_own(list, length))
			return true;
	}
	return false;
}

/* Return whether this process, which has given up rights, can open pem's libraries in a list. */
static bool can_load(const char *list)
{
	size_t length;

	for (; list; list = list[length] ? list + length + 1 : NULL) {
		length = entry_length(list);
		if (is_own(list, length) && !can_open(list, length))
			return false;
	}
	return true;
}

/* --- counting --- */

/* A program that is started, and what is known of it. */
struct target {
	const char *name;
	const char *preload, *session; /* values of its variables; NULL: it has none */
	bool is_filtered;
	enum pem_program_kind kind;
};

static bool must_go(const struct target *t)
{
	return names_own(t->preload) &&
	       (t->is_filtered || t->kind == PEM_PROGRAM_32_BIT || t->kind == PEM_PROGRAM_MUSL ||
		(pem_rights__given_up() && !can_load(t->preload)));
}

/*
 * Count the program for a reason, in sessions that have not counted it yet: each counts it once,
 * for the first reason.
 */
static void count(struct pem_libc_start *start, const struct target *t, uint32_t *sessions,
		  enum pem_unobserved reason, uint32_t those)
{
	those &= *sessions;
	*sessions &= ~those;
	start->sessions[reason] = (uint8_t)those;
	if (those)
		pem_rights__count_unobserved(those, reason, t->name);
}

static void count_all(struct pem_libc_start *start, const struct target *t, bool goes)
{
	uint32_t sessions = pem_rights__sessions();

	if (!sessions || t->kind == PEM_PROGRAM_MISSING)
		return;
	count(start, t, &sessions, PEM_UNOBSERVED_LIBRARIES, goes ? sessions : 0);
	count(start, t, &sessions, PEM_UNOBSERVED_ENVIRONMENT,
	      names_own(t->preload) ? pem_rights__not_named(t->session) : sessions);
	count(start, t, &sessions, PEM_UNOBSERVED_PRIVILEGED,
	      t->kind == PEM_PROGRAM_PRIVILEGED ? sessions : 0);
	count(start, t, &sessions, PEM_UNOBSERVED_STATIC,
	      t->kind == PEM_PROGRAM_STATIC ? sessions : 0);
	if (sessions && !t->is_filtered)
		count(start, t, &sessions, PEM_UNOBSERVED_UNREACHABLE, pem_rights__out_of_reach());
}

/*
 * Return the folders that are searched for a program: PATH, or its default. NULL: none. As execvp,
 * it reads PATH only for a name without a slash: the environment may be unreadable.
 */
static const char *folders(const char *program, bool is_searched)
{
	const char *list;
	size_t index;

	if (!is_searched || strchr(program, '/'))
		return NULL;
	list = find(environ, "PATH=", &index);
	return list ? list : "/bin:/usr/bin";
}

/*
 * Does nobody observe this process, and can the program's loader load libraries? Then nothing is
 * counted and nothing removed, and neither the environment nor /proc need be read, which takes as
 * long as half the start of a small program. A filter that the program has it finds itself. The
 * calls are those that its loader makes, too.
 */
static bool is_usual_start(const char *program, bool is_searched)
{
	enum pem_program_kind kind;
	struct stat st;

	if (pem_rights__sessions() || pem_rights__restricted() || pem_rights__given_up())
		return false;
	/* Can the name be read? What is not searched only the kernel reads. */
	if (is_searched && syscall(SYS_newfstatat, AT_FDCWD, program, &st, 0) && errno == EFAULT)
		return false;
	kind = pem_program_file__kind(program, folders(program, is_searched), PEM_PROGRAM_LOADER);
	return kind != PEM_PROGRAM_32_BIT && kind != PEM_PROGRAM_MUSL;
}

size_t pem_libc_exec__bytes(struct pem_libc_start *start, const char *program, bool is_searched,
			    char *const environment[])
{
	struct target t = {.name = program, .kind = PEM_PROGRAM_USUAL};
	size_t index = 0, entries, bytes;
	int saved_errno;
	bool goes;

	memset(start, 0, sizeof(*start));
	/* a thread without thread-local memory has not even errno */
	if (pem_libc_call__is_silent(0))
		return 0;
	saved_errno = errno;
	if (is_usual_start(program, is_searched)) {
		errno = saved_errno;
		return 0;
	}
	t.is_filtered = pem_rights__may_be_filtered();
	/* If the kernel can't be asked, the environment is taken as readable. */
	if (!t.is_filtered &&
	    (!pem_libc_readable__texts(environment) || !pem_libc_readable__text(program))) {
		errno = saved_errno;
		return 0;
	}
	t.session = find(environment, "PEM_SESSION=", &index);
	t.preload = find(environment, VARIABLE, &index);
	if (!t.is_filtered)
		t.kind = pem_program_file__kind(program, folders(program, is_searched),
						PEM_PROGRAM_KIND);
	goes = must_go(&t);
	count_all(start, &t, goes);
	errno = saved_errno;
	if (!goes)
		return 0;
	for (entries = index; environment[entries]; entries++)
		;
	bytes = (entries + 1) * sizeof(char *) + VARIABLE_BYTES + strlen(t.preload) + 1;
	return bytes <= COPY_BYTES_MAX ? bytes : 0;
}

void pem_libc_exec__failed(const struct pem_libc_start *start)
{
	unsigned reason;

	for (reason = 0; reason < PEM_UNOBSERVED_COUNT; reason++) {
		if (start->sessions[reason])
			pem_rights__uncount_unobserved(start->sessions[reason],
						       (enum pem_unobserved)reason);
	}
}

/* --- the environment without them --- */

/* Copy the entries that are not pem's. Returns 0 if there are none. */
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
	size_t index = 0, entries, used = 0, i;
	const char *list = find(environment, VARIABLE, &index);

	for (entries = index; environment[entries]; entries++)
		;
	text = (char *)(copy + entries + 1);
	memcpy(text, VARIABLE, VARIABLE_BYTES);
	for (i = 0; i < entries; i++) {
		if (i != index)
			copy[used++] = environment[i];
		else if (copy_others(text + VARIABLE_BYTES, list))
			copy[used++] = text;
	}
	copy[used] = NULL;
	return copy;
}
