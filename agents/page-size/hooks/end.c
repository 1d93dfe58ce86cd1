// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * end.c - functions that end the program without destructors, or its right to open files: the
 * profile ends first; and dlclose
 *
 * If an exec fails, the program goes on, and so does its profile. A child of vfork that calls one
 * of these is another process, and ends nothing.
 */
#include "apply/callers.h"
#include "apply/next.h"
#include "hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS_MAX 1024u

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

static void end(void)
{
	int saved = errno;

	bursts__end();
	errno = saved;
}

static int failed(int rc)
{
	int saved = errno;

	bursts__resume();
	errno = saved;
	return rc;
}

HOOKS_EXPORT void _exit(int status)
{
	end();
	for (;;)
		syscall(SYS_exit_group, status);
}

HOOKS_EXPORT void _Exit(int status)
{
	_exit(status);
}

HOOKS_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
	end();
	return failed(FOUND(execve)(path, arguments, environment));
}

HOOKS_EXPORT int execv(const char *path, char *const arguments[])
{
	end();
	return failed(FOUND(execv)(path, arguments));
}

HOOKS_EXPORT int execvp(const char *file, char *const arguments[])
{
	end();
	return failed(FOUND(execvp)(file, arguments));
}

HOOKS_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	end();
	return failed(FOUND(execvpe)(file, arguments, environment));
}

HOOKS_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
	end();
	return failed(FOUND(fexecve)(fd, arguments, environment));
}

/* The arguments up to NULL, from first on. More than fit: the last are cut off, as E2BIG. */
static bool gather(const char *first, va_list more, char **arguments)
{
	size_t i = 0;

	for (arguments[0] = (char *)first; arguments[i]; arguments[i] = va_arg(more, char *)) {
		if (++i == ARGUMENTS_MAX) {
			errno = E2BIG;
			return false;
		}
	}
	return true;
}

HOOKS_EXPORT int execl(const char *path, const char *first, ...)
{
	char *arguments[ARGUMENTS_MAX];
	va_list more;
	bool fit;

	va_start(more, first);
	fit = gather(first, more, arguments);
	va_end(more);
	return fit ? execv(path, arguments) : -1;
}

HOOKS_EXPORT int execlp(const char *file, const char *first, ...)
{
	char *arguments[ARGUMENTS_MAX];
	va_list more;
	bool fit;

	va_start(more, first);
	fit = gather(first, more, arguments);
	va_end(more);
	return fit ? execvp(file, arguments) : -1;
}

HOOKS_EXPORT int execle(const char *path, const char *first, ...)
{
	char *arguments[ARGUMENTS_MAX], **environment = NULL;
	va_list more;
	bool fit;

	va_start(more, first);
	fit = gather(first, more, arguments);
	if (fit)
		environment = va_arg(more, char **);
	va_end(more);
	return fit ? execve(path, arguments, environment) : -1;
}

/* What comes before a filter of system calls, by whichever call it is set. */
static bool is_confining(int option)
{
	return option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP;
}

HOOKS_EXPORT int prctl(int option, ...)
{
	unsigned long arguments[4];
	va_list more;
	int i;

	va_start(more, option);
	for (i = 0; i < 4; i++)
		arguments[i] = va_arg(more, unsigned long);
	va_end(more);
	if (is_confining(option))
		end();
	return FOUND(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

HOOKS_EXPORT int dlclose(void *handle)
{
	int rc = FOUND(dlclose)(handle);

	operators__forget();
	if (bursts__are_on())
		objects__scan();
	return rc;
}
