/* SPDX-License-Identifier: MIT */
/*
 * fork_in_join.c - a signal handler forks just when the process makes its pool, at its first event
 *
 * It has libpem inside, whose open() of the pool's file finds the one here. argv: MODE COUNT, of
 * which COUNT ticks are raised.
 */
#include "probe.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/types.h>
#include <sys/wait.h>

static pid_t child;
static int tried;

static void fork_in_handler(int signal_number)
{
	(void)signal_number;
	child = fork();
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	va_list more;
	int mode;

	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, int) : 0;
	va_end(more);
	if (strstr(path, "/pool-") && !tried++)
		raise(SIGUSR1);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 3;
	pid_t self = getpid();
	int status = 0;

	signal(SIGUSR1, fork_in_handler);
	pem_notify_probe_tick(0, 1);
	if (getpid() != self) {
		probe_raise(1, 1, 3);
		probe_tell(1, 3);
		_exit(0);
	}
	probe_raise(0, 2, count);
	probe_tell(0, count);
	if (child > 0 && (waitpid(child, &status, 0) != child || status))
		return 1;
	return child > 0 ? 0 : 2; /* no handler ran: nothing was tried */
}
