// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * program.c - processes, sleeping and loading of libraries, with their events
 *
 * Not here: vfork, because its child would return into a frame that the parent still needs; execl
 * and its kin, system and popen, which the C library serves inside itself; dlsym, whose result
 * depends on its caller.
 *
 * dlopen too depends on its caller: it searches a bare name in the folders of the calling library's
 * RUNPATH. Such a call is passed on by a jump, which keeps the caller's return address. It raises
 * no event.
 */
#include "libc/exec.h"
#include "libc/readable.h"
#include "libc/next.h"
#include "libc/spawn.h"
#include "libc/stacks.h"

#include "producer/rights.h"
#include "stubs/libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- processes --- */

PEM_LIBC_EXPORT pid_t fork(void)
{
	pid_t child;

	/* What most children call is found here once, and not in each of them. */
	pem_libc_next__get(PEM_LIBC_NEXT_execve);
	pem_libc_next__get(PEM_LIBC_NEXT__exit);
	child = PEM_LIBC_NEXT(fork)();

	if (child > 0 && pem_enabled_program_fork())
		pem_notify_program_fork((uint32_t)child);
	else if (child == 0 && pem_enabled_program_fork_child())
		pem_notify_program_fork_child(pem_rights__thread_id(), pem_rights__parent_id());
	return child;
}

static void exec_begins(const char *path, uintptr_t site)
{
	if (pem_enabled_program_exec() && !pem_libc_call__is_silent(site))
		pem_notify_program_exec(pem_libc_readable__text(path) ? path : NULL);
}

/* Called when an exec has failed: one that succeeds does not return. */
static int exec_failed(const struct pem_libc_start *start, const char *path, uintptr_t site)
{
	pem_libc_exec__end(start, false);
	if (pem_enabled_program_exec_fail() && !pem_libc_call__is_silent(site))
		pem_notify_program_exec_fail(errno, errno == EFAULT ? NULL : path);
	return -1;
}

PEM_LIBC_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
	struct pem_libc_start start;

	exec_begins(path, PEM_LIBC_SITE);
	PEM_LIBC_NEXT(execve)
	(path, arguments, pem_libc_exec__begin(&start, path, PEM_LIBC_BY_PATH, environment));
	return exec_failed(&start, path, PEM_LIBC_SITE);
}

PEM_LIBC_EXPORT int execv(const char *path, char *const arguments[])
{
	struct pem_libc_start start;

	exec_begins(path, PEM_LIBC_SITE);
	PEM_LIBC_NEXT(execve)
	(path, arguments, pem_libc_exec__begin(&start, path, PEM_LIBC_BY_PATH, environ));
	return exec_failed(&start, path, PEM_LIBC_SITE);
}

PEM_LIBC_EXPORT int execvp(const char *name, char *const arguments[])
{
	struct pem_libc_start start;

	exec_begins(name, PEM_LIBC_SITE);
	PEM_LIBC_NEXT(execvpe)
	(name, arguments, pem_libc_exec__begin(&start, name, PEM_LIBC_BY_NAME, environ));
	return exec_failed(&start, name, PEM_LIBC_SITE);
}

PEM_LIBC_EXPORT int execvpe(const char *name, char *const arguments[], char *const environment[])
{
	struct pem_libc_start start;

	exec_begins(name, PEM_LIBC_SITE);
	PEM_LIBC_NEXT(execvpe)
	(name, arguments, pem_libc_exec__begin(&start, name, PEM_LIBC_BY_NAME, environment));
	return exec_failed(&start, name, PEM_LIBC_SITE);
}

#define FD_PATH "/proc/self/fd/"
#define FD_PATH_BYTES (sizeof(FD_PATH) + 10)
#define BENEATH_BYTES 512u
#define BENEATH_PATH_MAX (BENEATH_BYTES - FD_PATH_BYTES - 1) /* more than an event keeps */

/* Write the path of a descriptor. Returns the path's end. */
static char *fd_path(char *path, int fd)
{
	unsigned number = (unsigned)fd;
	char digits[10];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	memcpy(path, FD_PATH, sizeof(FD_PATH) - 1);
	path += sizeof(FD_PATH) - 1;
	while (n)
		*path++ = digits[--n];
	*path = 0;
	return path;
}

PEM_LIBC_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
	struct pem_libc_start start;
	char path[FD_PATH_BYTES];

	fd_path(path, fd);
	exec_begins(path, PEM_LIBC_SITE);
	PEM_LIBC_NEXT(fexecve)
	(fd, arguments, pem_libc_exec__begin(&start, path, PEM_LIBC_BY_PATH, environment));
	return exec_failed(&start, path, PEM_LIBC_SITE);
}

PEM_LIBC_EXPORT int execveat(int folder, const char *path, char *const arguments[],
			     char *const environment[], int flags)
{
	struct pem_libc_start start;
	enum pem_libc_named named = PEM_LIBC_BY_PATH;
	const char *known = path;
	size_t length;
	char beneath[BENEATH_BYTES], *end;

	if (folder != AT_FDCWD && pem_libc_readable__text(path) && *path != '/') {
		end = fd_path(beneath, folder);
		if (*path)
			*end++ = '/';
		length = strnlen(path, BENEATH_PATH_MAX);
		if (path[length])
			named = PEM_LIBC_BENEATH; /* only the event gets the path that is cut */
		memcpy(end, path, length);
		end[length] = '\0';
		known = beneath;
	}
	exec_begins(known, PEM_LIBC_SITE);
	PEM_LIBC_NEXT(execveat)
	(folder, path, arguments,
	 pem_libc_exec__begin(&start, named == PEM_LIBC_BENEATH ? path : known, named, environment),
	 flags);
	return exec_failed(&start, known, PEM_LIBC_SITE);
}

PEM_LIBC_EXPORT int posix_spawn(pid_t *__restrict child, const char *__restrict path,
				const posix_spawn_file_actions_t *__restrict actions,
				const posix_spawnattr_t *__restrict attributes,
				char *const arguments[__restrict],
				char *const environment[__restrict])
{
	return pem_libc_spawn(PEM_LIBC_NEXT(posix_spawn), false, child, path, actions, attributes,
			      arguments, environment);
}

PEM_LIBC_EXPORT int posix_spawnp(pid_t *__restrict child, const char *__restrict name,
				 const posix_spawn_file_actions_t *__restrict actions,
				 const posix_spawnattr_t *__restrict attributes,
				 char *const arguments[__restrict],
				 char *const environment[__restrict])
{
	return pem_libc_spawn(PEM_LIBC_NEXT(posix_spawnp), true, child, name, actions, attributes,
			      arguments, environment);
}

static int wait_enabled(void)
{
	return pem_enabled_program_wait_begin() | pem_enabled_program_wait_end();
}

/*
 * The kernel writes the state to the caller's variable, which may be no memory at all. It gives the
 * variable to nobody else, so it may be read after the call.
 */
PEM_LIBC_EXPORT pid_t waitpid(pid_t child, int *status, int options)
{
	pid_t changed;
	int state = 0;

	if (PEM_LIBC_UNWANTED(wait_enabled()))
		return PEM_LIBC_NEXT(waitpid)(child, status, options);
	pem_notify_program_wait_begin(child, (uint32_t)options);
	if (!status)
		status = &state;
	changed = PEM_LIBC_NEXT(waitpid)(child, status, options);
	pem_notify_program_wait_end(changed, changed > 0 ? (uint32_t)*status : 0);
	return changed;
}

PEM_LIBC_EXPORT pid_t wait(int *status)
{
	pid_t changed;
	int state = 0;

	if (PEM_LIBC_UNWANTED(wait_enabled()))
		return PEM_LIBC_NEXT(wait)(status);
	pem_notify_program_wait_begin(-1, 0);
	if (!status)
		status = &state;
	changed = PEM_LIBC_NEXT(wait)(status);
	pem_notify_program_wait_end(changed, changed > 0 ? (uint32_t)*status : 0);
	return changed;
}

PEM_LIBC_EXPORT void exit(int status)
{
	pem_notify_program_exit(status);
	PEM_LIBC_NEXT(exit)(status);
	__builtin_unreachable();
}

PEM_LIBC_EXPORT void _exit(int status)
{
	if (!PEM_LIBC_UNWANTED(pem_enabled_program_exit()))
		pem_notify_program_exit(status);
	pem_rights__ends();
	PEM_LIBC_NEXT(_exit)(status);
	__builtin_unreachable();
}

PEM_LIBC_EXPORT void _Exit(int status) __attribute__((alias("_exit")));

/* --- sleeping --- */

static int sleep_enabled(void)
{
	return pem_enabled_program_sleep_begin() | pem_enabled_program_sleep_end();
}

static uint64_t nanoseconds(const struct timespec *t)
{
	return t && pem_libc_readable__memory(t, sizeof(*t))
		       ? (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec
		       : 0;
}

PEM_LIBC_EXPORT int nanosleep(const struct timespec *time, struct timespec *left)
{
	int rc;

	if (PEM_LIBC_UNWANTED(sleep_enabled()))
		return PEM_LIBC_NEXT(nanosleep)(time, left);
	pem_notify_program_sleep_begin(nanoseconds(time), 0);
	rc = PEM_LIBC_NEXT(nanosleep)(time, left);
	pem_notify_program_sleep_end(rc);
	return rc;
}

PEM_LIBC_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				    struct timespec *left)
{
	int rc;

	if (PEM_LIBC_UNWANTED(sleep_enabled()))
		return PEM_LIBC_NEXT(clock_nanosleep)(clock, flags, time, left);
	pem_notify_program_sleep_begin(nanoseconds(time), (flags & TIMER_ABSTIME) != 0);
	rc = PEM_LIBC_NEXT(clock_nanosleep)(clock, flags, time, left);
	pem_notify_program_sleep_end(rc);
	return rc;
}

PEM_LIBC_EXPORT int usleep(useconds_t microseconds)
{
	int rc;

	if (PEM_LIBC_UNWANTED(sleep_enabled()))
		return PEM_LIBC_NEXT(usleep)(microseconds);
	pem_notify_program_sleep_begin(microseconds * UINT64_C(1000), 0);
	rc = PEM_LIBC_NEXT(usleep)(microseconds);
	pem_notify_program_sleep_end(rc);
	return rc;
}

PEM_LIBC_EXPORT unsigned int sleep(unsigned int seconds)
{
	unsigned int left;

	if (PEM_LIBC_UNWANTED(sleep_enabled()))
		return PEM_LIBC_NEXT(sleep)(seconds);
	pem_notify_program_sleep_begin(seconds * UINT64_C(1000000000), 0);
	left = PEM_LIBC_NEXT(sleep)(seconds);
	pem_notify_program_sleep_end(left ? -1 : 0);
	return left;
}

/* --- libraries --- */

/*
 * Return whether dlopen would search other folders for name if this library called it instead of
 * the caller. Unknown counts as yes.
 */
static int depends_on_caller(const char *name, uintptr_t site)
{
	struct link_map *map = NULL;
	const ElfW(Dyn) * entry;
	Dl_info info;

	if (name && strchr(name, '$')) /* $ORIGIN */
		return 1;
	if (!name || strchr(name, '/'))
		return 0;
	if (!dladdr1((void *)site, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_ld)
		return 1;
	for (entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH)
			return 1;
	}
	return 0;
}

static __attribute__((noinline)) void *open_library(const char *name, int flags)
{
	char text[PEM_LIBC_TEXT_BYTES];
	const char *known = pem_libc_readable__copy(text, name); /* initializers may free it */
	void *handle;

	pem_notify_loader_open_begin(known, (uint32_t)flags);
	handle = PEM_LIBC_NEXT(dlopen)(name, flags);
	pem_notify_loader_open_end((uintptr_t)handle, known);
	pem_libc_objects__raise();
	pem_libc_stacks__forget();
	return handle;
}

/* The file is compiled with -foptimize-sibling-calls, so the first return is a jump. */
PEM_LIBC_EXPORT void *dlopen(const char *name, int flags)
{
	if (PEM_LIBC_UNWANTED(pem_enabled_loader_open_begin() | pem_enabled_loader_open_end() |
			      pem_enabled_loader_object()) ||
	    depends_on_caller(name, PEM_LIBC_SITE))
		return PEM_LIBC_NEXT(dlopen)(name, flags);
	return open_library(name, flags);
}

PEM_LIBC_EXPORT int dlclose(void *handle)
{
	int rc;

	if (PEM_LIBC_UNWANTED(pem_enabled_loader_close_begin() | pem_enabled_loader_close_end()))
		return PEM_LIBC_NEXT(dlclose)(handle);
	pem_notify_loader_close_begin((uintptr_t)handle);
	rc = PEM_LIBC_NEXT(dlclose)(handle);
	pem_notify_loader_close_end((uintptr_t)handle, rc);
	return rc;
}
