// SPDX-License-Identifier: MIT
/*
 * end.c - functions that end the program without destructors, or its right to open files: what the
 * library has to write is written first; and dlclose
 *
 * If an exec fails, the program goes on. A child of vfork that calls one of these is another
 * process. What is done then, the library's endings__* know.
 */
#include "end.h"

#include "next.h"

#include <alloca.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *find(void **known, const char *name)
{
	void *found = __atomic_load_n(known, __ATOMIC_RELAXED);

	if (!found) {
		found = next__function(name);
		__atomic_store_n(known, found, __ATOMIC_RELAXED);
	}
	return found;
}

#define FOUND(name)                                                                                \
	({                                                                                         \
		static void *known;                                                                \
		(__typeof__(&name))find(&known, #name);                                            \
	})

APPLY_EXPORT void _exit(int status)
{
	endings__begin();
	for (;;)
		syscall(SYS_exit_group, status);
}

APPLY_EXPORT void _Exit(int status)
{
	_exit(status);
}

APPLY_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
	endings__begin();
	return endings__failed(FOUND(execve)(path, arguments, environment));
}

APPLY_EXPORT int execv(const char *path, char *const arguments[])
{
	endings__begin();
	return endings__failed(FOUND(execv)(path, arguments));
}

APPLY_EXPORT int execvp(const char *file, char *const arguments[])
{
	endings__begin();
	return endings__failed(FOUND(execvp)(file, arguments));
}

APPLY_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	endings__begin();
	return endings__failed(FOUND(execvpe)(file, arguments, environment));
}

APPLY_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
	endings__begin();
	return endings__failed(FOUND(fexecve)(fd, arguments, environment));
}

/* How many arguments there are, from first on, with the NULL that ends them. */
#define COUNT(first)                                                                               \
	({                                                                                         \
		va_list all;                                                                       \
		size_t found;                                                                      \
		va_start(all, first);                                                              \
		found = count(first, &all);                                                        \
		va_end(all);                                                                       \
		found;                                                                             \
	})

static size_t count(const char *first, va_list *more)
{
	size_t found = 1;

	for (; first; first = va_arg(*more, const char *))
		found++;
	return found;
}

static void gather(char **arguments, const char *first, va_list *more)
{
	arguments[0] = (char *)first;
	while (*arguments)
		*++arguments = va_arg(*more, char *);
}

APPLY_EXPORT int execl(const char *path, const char *first, ...)
{
	char **arguments = alloca(COUNT(first) * sizeof(*arguments));
	va_list more;

	va_start(more, first);
	gather(arguments, first, &more);
	va_end(more);
	return execv(path, arguments);
}

APPLY_EXPORT int execlp(const char *file, const char *first, ...)
{
	char **arguments = alloca(COUNT(first) * sizeof(*arguments));
	va_list more;

	va_start(more, first);
	gather(arguments, first, &more);
	va_end(more);
	return execvp(file, arguments);
}

APPLY_EXPORT int execle(const char *path, const char *first, ...)
{
	char **arguments = alloca(COUNT(first) * sizeof(*arguments)), **environment;
	va_list more;

	va_start(more, first);
	gather(arguments, first, &more);
	environment = va_arg(more, char **);
	va_end(more);
	return execve(path, arguments, environment);
}

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

/* What comes before a filter of system calls, by whichever call it is set. */
static bool is_confining(int option)
{
	return option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP ||
	       option == PR_SET_SYSCALL_USER_DISPATCH;
}

APPLY_EXPORT int prctl(int option, ...)
{
	unsigned long arguments[4];
	va_list more;
	int i;

	va_start(more, option);
	for (i = 0; i < 4; i++)
		arguments[i] = va_arg(more, unsigned long);
	va_end(more);
	if (is_confining(option))
		endings__confine();
	return FOUND(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

APPLY_EXPORT int dlclose(void *handle)
{
	int rc = FOUND(dlclose)(handle);

	operators__forget();
	endings__closed();
	return rc;
}
