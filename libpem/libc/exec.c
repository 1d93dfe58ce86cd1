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
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VARIABLE "LD_PRELOAD="
#define VARIABLE_BYTES (sizeof(VARIABLE) - 1)
#define PATH_BYTES 512u /* of a path on the caller's stack, which may be a signal handler's */

/* --- memory for an environment --- */

#define COPY_WORDS 8192u /* for some 8,000 variables */
#define PID_UNKNOWN (~0u) /* a filter may refuse to give it */
#define COPIES 8u /* for starts at once; more are mapped when they are needed */

/*
 * Memory for a changed environment. It is not on the caller's stack, which may be small, and not
 * from malloc, which may be the program's.
 *
 * A thread keeps its copy until its start of a program has returned. Two kinds of copies have the
 * same owner as a new start. A copy is in use if a signal handler interrupted its start, and the
 * handler starts a program. It is left over if a child of vfork took it: the child has the thread
 * pointer of its parent's thread, and does not return if its start succeeds.
 *
 * A child of fork does not get back the copies that other threads of its parent had.
 */
struct pem_libc_copy {
	uintptr_t owner; /* thread pointer; 0: free */
	uint32_t pid; /* of the process that took it; 0: not set yet */
	uintptr_t frame; /* address of the owner's struct pem_libc_start; 0: not set yet */
	struct pem_libc_copy *next;
	char *words[COPY_WORDS];
};

static struct pem_libc_copy copies[COPIES];

/* The last one of the array starts the list of those that were mapped. */
static struct pem_libc_copy *next_copy(struct pem_libc_copy *copy)
{
	if (copy >= copies && copy < copies + COPIES - 1)
		return copy + 1;
	/* xk */
	return __atomic_load_n(&copy->next, __ATOMIC_ACQUIRE);
}

/*
 * Was a copy of this thread left over? A copy in use was taken by this process, or by its parent if
 * this is a child of vfork. With a filter the kernel can't be asked for these: then a copy whose
 * start was on a part of the stack that is free now is left over.
 */
static bool is_left_over(const struct pem_libc_copy *copy, uintptr_t frame, bool is_filtered)
{
	if (!copy->pid || !copy->frame)
		return false;
	return is_filtered ? copy->frame <= frame
			   : copy->pid != (uint32_t)pem_libc_internal_call(SYS_getpid) &&
				     copy->pid != (uint32_t)pem_libc_internal_call(SYS_getppid);
}

/* A signal handler may have given back a copy that was left over, which then has another owner. */
static void give_back_copy(struct pem_libc_copy *copy)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer();

	if (!copy)
		return;
	copy->pid = 0;
	copy->frame = 0;
	/* XE */
	__atomic_compare_exchange_n(&copy->owner, &self, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* Returns NULL if there is no memory for another one. */
static struct pem_libc_copy *map_copy(uintptr_t self)
{
	struct pem_libc_copy *copy, **list = &copies[COPIES - 1].next;
	long start = pem_libc_internal_call(SYS_mmap, NULL, sizeof(*copy), PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == -1)
		return NULL;
	copy = (struct pem_libc_copy *)start;
	copy->owner = self;
	copy->next = __atomic_load_n(list, __ATOMIC_RELAXED);
	/* XK: RELEASE pairs with ACQUIRE in next_copy */
	while (!__atomic_compare_exchange_n(list, &copy->next, copy, 0, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	return copy;
}

/* Returns NULL if none is free and no other one can be mapped: a filter may refuse that. */
static struct pem_libc_copy *find_copy(uintptr_t frame, bool is_filtered)
{
	uintptr_t self = (uintptr_t)__builtin_thread_pointer(), owner;
	struct pem_libc_copy *copy;

	for (copy = copies; copy; copy = next_copy(copy)) {
		if (__atomic_load_n(&copy->owner, __ATOMIC_RELAXED) == self &&
		    is_left_over(copy, frame, is_filtered))
			give_back_copy(copy);
	}
	for (copy = copies; copy; copy = next_copy(copy)) {
		owner = 0;
		/* xe: ACQUIRE pairs with RELEASE in give_back_copy */
		if (__atomic_compare_exchange_n(&copy->owner, &owner, self, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return copy;
	}
	return is_filtered ? NULL : map_copy(self);
}

static struct pem_libc_copy *take_copy(uintptr_t frame, bool is_filtered)
{
	struct pem_libc_copy *copy = find_copy(frame, is_filtered);

	if (copy) {
		copy->frame = frame;
		copy->pid =
			is_filtered ? PID_UNKNOWN : (uint32_t)pem_libc_internal_call(SYS_getpid);
	}
	return copy;
}

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

/* Return whether this process can open the path. A long one is not tried, and counts as yes. */
static int can_open(const char *entry, size_t length)
{
	char path[PATH_BYTES];
	long fd;

	if (length >= sizeof(path))
		return 1;
	memcpy(path, entry, length);
	path[length] = 0;
	/*
	 * Call the kernel directly: a thread must not be cancelled in execve, as it may be in
	 * openat.
	 */
	fd = pem_libc_internal_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0)
		pem_libc_internal_call(SYS_close, fd);
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
static const char *folders(const char *program, enum pem_libc_named named)
{
	const char *list;
	size_t index;

	if (named != PEM_LIBC_BY_NAME || strchr(program, '/'))
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
static bool is_usual_start(const char *program, enum pem_libc_named named)
{
	enum pem_program_kind kind;
	struct stat st;

	if (pem_rights__sessions() || pem_rights__restricted() || pem_rights__given_up())
		return false;
	if (named == PEM_LIBC_BENEATH)
		return true;
	/* Can the name be read? What is not searched only the kernel reads. */
	if (named == PEM_LIBC_BY_NAME &&
	    pem_libc_internal_call(SYS_newfstatat, AT_FDCWD, program, &st, 0) && errno == EFAULT)
		return false;
	kind = pem_program_file__kind(program, folders(program, named), PEM_PROGRAM_LOADER);
	return kind != PEM_PROGRAM_32_BIT && kind != PEM_PROGRAM_MUSL;
}

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

/* Copy an environment without pem's libraries. Returns NULL if there is no memory for it. */
static char **copy_without(struct pem_libc_start *start, char *const environment[], size_t index,
			   bool is_filtered)
{
	const char *list = environment[index] + VARIABLE_BYTES;
	size_t entries, used = 0, i;
	char **copy, *text;

	for (entries = index; environment[entries]; entries++)
		;
	if ((entries + 1) * sizeof(char *) + VARIABLE_BYTES + strlen(list) + 1 >
	    COPY_WORDS * sizeof(char *))
		return NULL;
	start->copy = take_copy((uintptr_t)start, is_filtered);
	if (!start->copy)
		return NULL;
	copy = start->copy->words;
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

/*
 * Count the program, and copy its environment if it needs another. Returns NULL if it keeps its
 * own.
 */
static char **another(struct pem_libc_start *start, const char *program, enum pem_libc_named named,
		      char *const environment[])
{
	struct target t = {.name = program, .kind = PEM_PROGRAM_USUAL};
	char **copy = NULL;
	size_t index = 0;

	if (is_usual_start(program, named))
		return NULL;
	/*
	 * With syscall user dispatch nothing can be found out. The program does not have it, and
	 * can load the libraries.
	 */
	if (pem_rights__restricted() && !pem_rights__filtered())
		return NULL;
	t.is_filtered = pem_rights__may_be_filtered();
	/* If the kernel can't be asked, the environment is taken as readable. */
	if (!t.is_filtered &&
	    (!pem_libc_readable__texts(environment) || !pem_libc_readable__text(program)))
		return NULL;
	t.session = find(environment, "PEM_SESSION=", &index);
	t.preload = find(environment, VARIABLE, &index);
	if (!t.is_filtered && named != PEM_LIBC_BENEATH)
		t.kind = pem_program_file__kind(program, folders(program, named), PEM_PROGRAM_KIND);
	if (must_go(&t))
		copy = copy_without(start, environment, index, t.is_filtered);
	count_all(start, &t, copy != NULL);
	return copy;
}

char *const *pem_libc_exec__begin(struct pem_libc_start *start, const char *program,
				  enum pem_libc_named named, char *const environment[])
{
	int saved_errno;
	char **copy;

	memset(start, 0, sizeof(*start));
	/* A thread without thread-local memory has not even errno. */
	if (pem_libc_call__is_silent(0))
		return environment;
	saved_errno = errno;
	copy = another(start, program, named, environment);
	errno = saved_errno;
	return copy ? copy : environment;
}

void pem_libc_exec__end(const struct pem_libc_start *start, bool is_started)
{
	unsigned reason;

	give_back_copy(start->copy);
	for (reason = 0; !is_started && reason < PEM_UNOBSERVED_COUNT; reason++) {
		if (start->sessions[reason])
			pem_rights__uncount_unobserved(start->sessions[reason],
						       (enum pem_unobserved)reason);
	}
}
