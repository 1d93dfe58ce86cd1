/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confined.c - starting confined helpers, and the messages to and from them
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/helper.h"
#include "core/message.h"
#include "dirs/confined.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_NS 10000000u /* time for a killed helper to end */
static int start(pid_t *pid, int socket, int folder_fd, int process_fd)
{
	char folder[PATH_MAX - 32], path[PATH_MAX], *const argv[] = {"pem-confined", NULL},
							   *const environment[] = {NULL};
	/* It has to remove afterwards what it made, so it has a session of its own. */
	const struct pem_helper helper = {
		.path = path,
		.argv = argv,
		.environment = environment,
		.descriptors = {socket, folder_fd, process_fd},
		.first = PEM_CONFINED_SOCKET,
		.has_own_session = true,
	};

	if (!pem_library_folder(folder, sizeof(folder)))
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/pem/pem-confined", folder);
	return pem_helper__start(&helper, pid);
}

_Static_assert(PEM_CONFINED_FOLDER == PEM_CONFINED_SOCKET + 1 &&
		       PEM_CONFINED_PROCESS == PEM_CONFINED_SOCKET + 2,
	       "in the order of start()");

struct pem_confined *pem_confined__start(const struct pem_confined_setup *setup, int folder_fd,
					 int process_fd)
{
	struct pem_confined *helper = calloc(1, sizeof(*helper));
	int ends[2], result;

	if (!helper)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		free(helper);
		return NULL;
	}
	helper->socket = ends[0];
	result = send(ends[0], setup, sizeof(*setup), MSG_NOSIGNAL) == sizeof(*setup) ? 0 : -errno;
	if (!result)
		result = start(&helper->pid, ends[1], folder_fd, process_fd);
	close(ends[1]);
	if (!result)
		return helper;
	close(ends[0]);
	free(helper);
	errno = -result;
	return NULL;
}

int pem_confined__send(struct pem_confined *helper, enum pem_confined_request_kind kind,
		       const char *name, uint64_t inode, bool asks)
{
	struct pem_confined_request request = {.kind = kind, .inode = inode};

	pem_copy_text(request.name, sizeof(request.name), name);
	if (asks && !++helper->number)
		helper->number = 1;
	request.number = asks ? helper->number : 0;
	return send(helper->socket, &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) ==
			       sizeof(request)
		       ? 0
		       : -errno;
}

int pem_confined__receive(struct pem_confined *helper, struct pem_confined_reply *reply, int *fd)
{
	ssize_t got = pem_message__receive(helper->socket, reply, sizeof(*reply), fd);

	if (got < 0)
		return got == -EAGAIN || got == -EINTR ? 0 : -EPIPE;
	reply->name[sizeof(reply->name) - 1] = 0;
	if (got == sizeof(*reply))
		return 1;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EPIPE;
}

bool pem_confined__wait(const struct pem_confined *helper, uint64_t deadline_ns)
{
	struct pollfd pollfd = {.fd = helper->socket, .events = POLLIN};
	uint64_t now;
	int ready;

	do {
		now = pem_monotonic_ns();
		if (now >= deadline_ns)
			return false;
		ready = poll(&pollfd, 1, (int)((deadline_ns - now) / 1000000u) + 1);
	} while (ready < 0 && errno == EINTR);
	return ready == 1;
}

/*
 * Has the helper's process ended? This process reaps it, unless the program that loaded libpem has
 * done so.
 */
static bool has_ended(const struct pem_confined *helper)
{
	pid_t got = waitpid(helper->pid, NULL, WNOHANG);

	return got == helper->pid || (got < 0 && errno == ECHILD);
}

void pem_confined__end(struct pem_confined *helper, uint64_t deadline_ns)
{
	const struct timespec pause = {0, 200000};
	bool killed = false;

	if (!helper)
		return;
	shutdown(helper->socket, SHUT_WR);
	while (!has_ended(helper)) {
		if (pem_monotonic_ns() > deadline_ns) {
			/*
			 * A file system may hold it even now. The session does not wait for it
			 * again.
			 */
			if (killed)
				break;
			kill(helper->pid, SIGKILL);
			killed = true;
			deadline_ns = pem_monotonic_ns() + KILL_NS;
		}
		nanosleep(&pause, NULL);
	}
	close(helper->socket);
	free(helper);
}
