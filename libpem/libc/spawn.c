// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * spawn.c - a program that posix_spawn starts, with its event
 *
 * The C library stores the child's pid in the caller's variable while it blocks signals, so a
 * handler of SIGCHLD finds it there. Once it is stored, another thread may wait for the child and
 * free the variable, so it is not read afterwards. While the event is wanted, the pid goes to a
 * variable here instead, and from there to the caller's before signals are let through.
 */
#include "libc/spawn.h"

#include "libc/exec.h"
#include "libc/libc.h"
#include "libc/next.h"
#include "libc/readable.h"

#include "producer/rights.h"
#include "stubs/libc.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#define SIGNALS_BYTES 8 /* of the kernel's sets of signals */

/*
 * Change a copy of the attributes so that the child gets this signal mask if the caller names none:
 * otherwise the child has the mask that its parent has during the call.
 */
static void keep_mask(posix_spawnattr_t *attributes, const sigset_t *mask)
{
	short flags = 0;

	posix_spawnattr_getflags(attributes, &flags);
	if (flags & POSIX_SPAWN_SETSIGMASK)
		return;
	posix_spawnattr_setsigmask(attributes, mask);
	posix_spawnattr_setflags(attributes, (short)(flags | POSIX_SPAWN_SETSIGMASK));
}

/* As the next definition, and fills *made. */
static int start_child(pem_libc_spawn_call *next, pid_t *made, pid_t *child, const char *program,
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attributes, char *const arguments[],
		       char *const environment[])
{
	posix_spawnattr_t own;
	sigset_t all, before;
	int rc;

	if (attributes)
		own = *attributes;
	else
		posix_spawnattr_init(&own);
	sigfillset(&all);
	memset(&before, 0, sizeof(before));
	pem_libc_internal_call(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, SIGNALS_BYTES);
	keep_mask(&own, &before);
	rc = next(made, program, actions, &own, arguments, environment);
	if (!rc)
		*child = *made;
	pem_libc_internal_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, SIGNALS_BYTES);
	return rc;
}

int pem_libc_spawn(pem_libc_spawn_call *next, bool is_searched, pid_t *child, const char *program,
		   const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		   char *const arguments[], char *const environment[])
{
	bool is_wanted = pem_enabled_program_spawn() && !pem_libc_call__is_silent(0);
	char text[PEM_LIBC_TEXT_BYTES];
	struct pem_libc_start start;
	const char *known = NULL;
	pid_t made = 0;
	int rc;

	/* Copied here: another thread may wait for the child and free the program's path. */
	if (is_wanted)
		known = pem_libc_readable__copy(text, program);
	environment = pem_libc_exec__begin(
		&start, program, is_searched ? PEM_LIBC_BY_NAME : PEM_LIBC_BY_PATH, environment);
	if (!is_wanted || !child)
		rc = next(child ? child : &made, program, actions, attributes, arguments,
			  environment);
	else if (pem_rights__restricted()) /* signals can't be blocked: the pid stays unknown */
		rc = next(child, program, actions, attributes, arguments, environment);
	else
		rc = start_child(next, &made, child, program, actions, attributes, arguments,
				 environment);
	pem_libc_exec__end(&start, !rc);
	if (is_wanted)
		pem_notify_program_spawn(rc ? 0 : (uint32_t)made, rc, known);
	return rc;
}
