/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * helper.c - starting a program that works for this library
 *
 * Not here: the command that a session observes (session/run.c).
 */
#include "core/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

/*
 * Copies of descriptors go above the numbers that a helper starts with: these must not be
 * overwritten before they are copied.
 */
#define COPY_MIN 16

static int add_descriptor(posix_spawn_file_actions_t *actions, int *copy, int fd, int as)
{
	if (fd < 0)
		return -posix_spawn_file_actions_addopen(actions, as, "/dev/null", O_RDONLY, 0);
	*copy = fcntl(fd, F_DUPFD_CLOEXEC, COPY_MIN);
	if (*copy < 0)
		return -errno;
	return -posix_spawn_file_actions_adddup2(actions, *copy, as);
}

static int set_attributes(posix_spawnattr_t *attributes, bool has_own_session)
{
	short flags = POSIX_SPAWN_SETSIGMASK;
	sigset_t none;
	int result;

	sigemptyset(&none);
	result = -posix_spawnattr_setsigmask(attributes, &none);
	if (has_own_session)
		flags |= POSIX_SPAWN_SETSID;
	return result ? result : -posix_spawnattr_setflags(attributes, flags);
}

int pem_helper__start(const struct pem_helper *helper, pid_t *pid)
{
	int copies[PEM_HELPER_DESCRIPTORS], result, i;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;

	for (i = 0; i < PEM_HELPER_DESCRIPTORS; i++)
		copies[i] = -1;
	result = -posix_spawn_file_actions_init(&actions);
	if (result)
		return result;
	result = -posix_spawnattr_init(&attributes);
	if (result) {
		posix_spawn_file_actions_destroy(&actions);
		return result;
	}
	result = set_attributes(&attributes, helper->has_own_session);
	for (i = 0; !result && i < PEM_HELPER_DESCRIPTORS; i++)
		result = add_descriptor(&actions, &copies[i], helper->descriptors[i],
					helper->first + i);
	if (!result)
		result = -posix_spawn(pid, helper->path, &actions, &attributes, helper->argv,
				      helper->environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	for (i = 0; i < PEM_HELPER_DESCRIPTORS; i++) {
		if (copies[i] >= 0)
			close(copies[i]);
	}
	return result;
}
