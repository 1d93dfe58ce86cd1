/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * started.c - count the programs that a recorded process starts and that cannot be recorded, for
 * each session
 *
 * The counts are where the process counts its losses (joined.counts). That memory is mapped
 * already. A child of vfork or a signal handler may start a program, and nothing may be allocated
 * there.
 *
 * Other files: why a program cannot be recorded (libc/exec.c), and the message about it
 * (dirs/unobserved.c).
 */
#include "producer/producer.h"
#include "producer/rights.h"
#include "producer/standby.h"
#include "runtime_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Here the session that a process on standby was started in has this index. */
#define WAITING 0u

/*
 * That session; NULL: none. Another thread may make the process join meanwhile. What this points
 * to, and the page, stay as they are all the same.
 */
static const struct pem_standby_session *waiting(unsigned session_index)
{
	return session_index == WAITING ? pem_standby__session() : NULL;
}

/* The page of a session that the process has joined. NULL: there is none. */
static struct pem_session_page *joined_page(unsigned session_index)
{
	struct pem_session_page *page = NULL;

	/* jb */
	if (pem_process__had_session(session_index))
		page = __atomic_load_n(&pem_process.joined[session_index].page, __ATOMIC_ACQUIRE);
	/* ja */
	return page && __atomic_load_n(&pem_process.joined[session_index].state,
				       __ATOMIC_ACQUIRE) != PEM_JOINED_NOT
		       ? page
		       : NULL;
}

/* The page of a session. NULL: there is none, or the session is closed. */
static struct pem_session_page *live_page(unsigned session_index)
{
	const struct pem_standby_session *session = waiting(session_index);
	struct pem_session_page *page = session ? session->page : joined_page(session_index);

	return page && !__atomic_load_n(&page->closed, __ATOMIC_RELAXED) ? page : NULL;
}

/* The page on which the process counts a session's losses. NULL: there is none. */
static struct pem_session_page *counts_of(unsigned session_index)
{
	const struct pem_standby_session *session = waiting(session_index);

	if (session)
		return session->page;
	/* jb */
	return __atomic_load_n(&pem_process.joined[session_index].counts, __ATOMIC_ACQUIRE);
}

uint32_t pem_rights__sessions(void)
{
	uint32_t sessions = 0;
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++)
		sessions |= live_page(session_index) ? 1u << session_index : 0;
	return sessions;
}

/*
 * Is the session given by the environment variable? Sessions that a consumer offered from outside
 * are found without it.
 */
static bool is_given(unsigned session_index)
{
	return live_page(session_index) &&
	       (waiting(session_index) || pem_process.joined[session_index].asked);
}

uint32_t pem_rights__not_named(const char *value)
{
	const struct pem_standby_session *session;
	uint32_t sessions = 0;
	const char *folder;
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		session = waiting(session_index);
		folder = session ? session->folder : pem_process.joined[session_index].directory;
		if (is_given(session_index) && (!value || !strstr(value, folder)))
			sessions |= 1u << session_index;
	}
	return sessions;
}

#define PATH_BYTES 512u /* on the stack, which may be a signal handler's */

/*
 * Can a program open the session's page as pem does when it joins? In root's public folder other
 * users can only read the page, and make files beside it. parent: the folder that folder is in, or
 * "". A longer path is not tried, and counts as one that can be opened.
 */
static bool can_join(const char *parent, const char *folder)
{
	char path[PATH_BYTES];
	size_t used = 0, end;
	long fd;

	if ((*parent && !(pem_path__append(path, sizeof(path), &used, parent) &&
			  pem_path__append(path, sizeof(path), &used, "/"))) ||
	    !pem_path__append(path, sizeof(path), &used, folder))
		return true;
	end = used;
	if (!pem_path__append(path, sizeof(path), &used, "/config"))
		return true;
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 && errno == EACCES) {
		path[end] = '\0';
		if (syscall(SYS_faccessat, AT_FDCWD, path, W_OK) && errno == EROFS)
			return false;
		path[end] = '/';
		fd = syscall(SYS_openat, AT_FDCWD, path,
			     O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	return fd >= 0;
}

uint32_t pem_rights__out_of_reach(void)
{
	const struct pem_standby_session *session;
	const struct pem_joined *joined;
	uint32_t sessions = 0;
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		joined = &pem_process.joined[session_index];
		session = waiting(session_index);
		if (session) {
			if (live_page(session_index) &&
			    !can_join(pem_process.runtime, session->folder))
				sessions |= 1u << session_index;
			continue;
		}
		if (is_given(session_index) && !can_join("", joined->directory) &&
		    !(joined->public_directory[0] && can_join("", joined->public_directory)))
			sessions |= 1u << session_index;
	}
	return sessions;
}

void pem_rights__count_unobserved(uint32_t sessions, enum pem_unobserved reason, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct pem_session_page *counts;
	unsigned session_index;
	size_t length = strnlen(name, PEM_NAME_BYTES - 1);

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		counts = sessions & 1u << session_index && live_page(session_index)
				 ? counts_of(session_index)
				 : NULL;
		if (!counts)
			continue;
		memset(counts->unobserved_name[reason], 0, PEM_NAME_BYTES);
		memcpy(counts->unobserved_name[reason], name, length);
		__atomic_fetch_add(&counts->unobserved[reason], 1, __ATOMIC_RELAXED);
	}
}

/*
 * Take 1 from a count, but not below 0. It may be 0 where the entry has become another session's,
 * or where the consumer has taken the count.
 */
static void take_one(uint32_t *count)
{
	uint32_t now = __atomic_load_n(count, __ATOMIC_RELAXED);

	while (now && !__atomic_compare_exchange_n(count, &now, now - 1, 0, __ATOMIC_RELAXED,
						   __ATOMIC_RELAXED))
		;
}

void pem_rights__uncount_unobserved(uint32_t sessions, enum pem_unobserved reason)
{
	struct pem_session_page *counts;
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		counts = sessions & 1u << session_index ? counts_of(session_index) : NULL;
		if (counts)
			take_one(&counts->unobserved[reason]);
	}
}
