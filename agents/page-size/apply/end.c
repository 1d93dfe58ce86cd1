// SPDX-License-Identifier: MIT
/*
 * end.c - functions that end the program without destructors, or its right to open files, which
 * report first; and dlclose
 *
 * If an exec fails, the program goes on, and reports again: the last line of a site counts.
 */
#include "callers.h"
#include "next.h"
#include "report.h"
#include "start.h"

#include <dlfcn.h>
#include <errno.h>
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
	report__sites();
	for (;;)
		syscall(SYS_exit_group, status);
}

APPLY_EXPORT void _Exit(int status)
{
	_exit(status);
}

APPLY_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
	report__sites();
	return FOUND(execve)(path, arguments, environment);
}

APPLY_EXPORT int execv(const char *path, char *const arguments[])
{
	report__sites();
	return FOUND(execv)(path, arguments);
}

APPLY_EXPORT int execvp(const char *file, char *const arguments[])
{
	report__sites();
	return FOUND(execvp)(file, arguments);
}

APPLY_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	report__sites();
	return FOUND(execvpe)(file, arguments, environment);
}

APPLY_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
	report__sites();
	return FOUND(fexecve)(fd, arguments, environment);
}

/* What comes before a filter of system calls, by whichever call it is set. */
static bool is_confining(int option)
{
	return option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP;
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
	if (apply__active && is_confining(option) && report__is_process()) {
		report__sites();
		apply__confined = true;
	}
	return FOUND(prctl)(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

APPLY_EXPORT int dlclose(void *handle)
{
	int rc = FOUND(dlclose)(handle);

	operators__forget();
	if (apply__active)
		callers__forget();
	return rc;
}
