/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * standby.c - processes that nobody observed so far: waking them (standby_wake.h), and saying why
 * they were not
 */
#include "core/core.h"
#include "dirs/dirs.h"
#include "standby_wake.h"
#include "util.h"

bool pem_standby__has(uint32_t pid)
{
	char path[64], line[512], *slash;
	bool found = false;
	size_t bytes = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	file = fopen(path, "re");
	while (file && !found && bytes < PEM_WAKE_MAPS && pem_wake_line(file, line, sizeof(line))) {
		bytes += strlen(line);
		slash = strrchr(line, '/');
		/* A file that was removed otherwise wakes nobody. */
		found = slash &&
			(!strncmp(slash + 1, PEM_WOKEN_NAME, sizeof(PEM_WOKEN_NAME) - 1) ||
			 (!strncmp(slash + 1, PEM_STANDBY_NAME, sizeof(PEM_STANDBY_NAME) - 1) &&
			  !strstr(slash, " (deleted)")));
	}
	if (file)
		fclose(file);
	return found;
}

void pem_session__say_not_woken(struct pem_session *s, uid_t owner, uint32_t pid)
{
	char name[PEM_NAME_BYTES];

	if (pid == PEM_WAKE_UNKNOWN) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "programs of user %u that nobody observed so far are not "
				 "observed: there are too many processes to tell whether that "
				 "would harm one; programs that are started now are observed",
				 (unsigned)owner);
		return;
	}
	pem_process_name(pid, name);
	pem_session__say(
		s, PEM_LOG_WARNING,
		"programs of user %u that nobody observed so far are not observed: "
		"process %u (%s) among them has a seccomp filter that pem was not told of, "
		"and which might end it; programs that are started now are observed",
		(unsigned)owner, pid, name);
}

void pem_session__wake_standby(struct pem_session *s)
{
	struct pem_dir *own = s->dirs->first;
	uint32_t pid =
		own && own->runtime_fd >= 0 ? pem_standby__wake(own->runtime_fd, own->owner) : 0;

	if (pid)
		pem_session__say_not_woken(s, own->owner, pid);
}
