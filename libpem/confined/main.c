// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * main.c - pem-confined: works for a session in the directories of another user, with that user's
 * rights
 *
 * Only libpem starts it, with the descriptors of protocol.h. Without these it ends.
 */
#include "confined/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICE 5

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

bool pem_confined__reply(const struct pem_confined_reply *reply, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {(void *)(uintptr_t)reply, sizeof(*reply)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *header;
	ssize_t sent;

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	do
		sent = sendmsg(PEM_CONFINED_SOCKET, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent == sizeof(*reply);
}

bool pem_confined__done(uint32_t number, int32_t value)
{
	struct pem_confined_reply reply = {
		.kind = PEM_CONFINED_DONE, .number = number, .value = value};

	return !number || pem_confined__reply(&reply, -1);
}

/*
 * Close all other descriptors. Nothing of the program that loaded libpem stays: no descriptor, and
 * no terminal to write to.
 */
static int close_others(uint32_t role)
{
	int fd = open("/dev/null", O_RDWR), i;

	if (fd < 0)
		return -errno;
	for (i = 0; i < 3; i++) {
		if (dup2(fd, i) < 0)
			return -errno;
	}
	if (fd > 2)
		close(fd);
	i = role == PEM_CONFINED_FINDER ? PEM_CONFINED_PROCESS : PEM_CONFINED_FOLDER;
	return syscall(SYS_close_range, i + 1, ~0u, 0) ? -errno : 0;
}

/*
 * Make folder a copy of fd, and close fd. Returns 0, or -errno. With fd -1 that is the errno of the
 * call that failed to open fd.
 */
static int replace(int folder, int fd)
{
	int result;

	if (fd < 0)
		return -errno;
	result = dup2(fd, folder) < 0 ? -errno : 0;
	close(fd);
	return result;
}

/* Return whether the process is in this process's user namespace. */
static bool shares_users(int process_fd)
{
	struct stat theirs, ours;

	return !fstatat(process_fd, "ns/user", &theirs, 0) && !stat("/proc/self/ns/user", &ours) &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/*
 * Open the process's root directory and variables. This needs the session's rights, but must not be
 * done in the session's process: the open waits for an exec under way, and a file system of the
 * user may delay that. If the variables can't be opened, a directory stays in their place, and
 * nothing can be read from it.
 */
static int open_process(const struct pem_confined_setup *setup, bool *user_mounts)
{
	int root = openat(PEM_CONFINED_FOLDER, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	/* Checked after the root directory was opened: a process can't leave a user namespace. */
	*user_mounts = setup->switch_user && !shares_users(PEM_CONFINED_FOLDER);
	replace(PEM_CONFINED_PROCESS,
		openat(PEM_CONFINED_PROCESS, "environ", O_RDONLY | O_CLOEXEC));
	return replace(PEM_CONFINED_FOLDER, root);
}

int main(void)
{
	struct pem_confined_setup setup;
	bool user_mounts = false;

	if (recv(PEM_CONFINED_SOCKET, &setup, sizeof(setup), 0) != sizeof(setup) ||
	    setup.group_count > PEM_CONFINED_GROUPS) {
		fprintf(stderr, "pem-confined: started by pem, for folders of other users; there "
				"is nothing to do with it by hand\n");
		return 1;
	}
	setup.session[sizeof(setup.session) - 1] = 0;
	prctl(PR_SET_NAME, "pem-confined");
	/*
	 * A service manager sends SIGTERM to each process of a unit. The helper ends after the
	 * session: it then finds the session's end of the socket closed.
	 */
	signal(SIGTERM, SIG_IGN);
	setpriority(PRIO_PROCESS, 0, NICE); /* programs have priority */
	if (close_others(setup.role))
		return 1;
	if (setup.role == PEM_CONFINED_FINDER && open_process(&setup, &user_mounts))
		return 1;
	if (pem_confined__drop_rights(&setup))
		return 1;
	if (setup.role == PEM_CONFINED_FINDER)
		return pem_confined__find(&setup, user_mounts);
	return setup.role == PEM_CONFINED_KEEPER ? pem_confined__keep(&setup) : 1;
}
