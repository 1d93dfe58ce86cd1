/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * serve.c - flight recorders that write a snapshot for another process of the same user: being such
 * a recorder, finding one, and asking one
 *
 * A recorder's session folder belongs to its user alone. It holds a socket 'snapshot' and a file
 * 'flight'. The file is for people; its lines are the trace and the command. A program that asks
 * for a snapshot makes the folder for the trace. It sends the folder as a descriptor, with the
 * cause as text. The answer is "" or says why the snapshot failed. So nobody believes a path that
 * shared memory, or anyone, names. The recorder asks the kernel for the user of the other side. A
 * program that asks checks who owns the session's folder.
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/message.h"
#include "flight/flight.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "runtime_dir.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ASK_NS 2000000000u /* time for a request to arrive after a program has connected */
#define CAUSE_BYTES 120

/*
 * Make the address of a recorder's socket. It names the folder by a descriptor, because a socket's
 * address has room for only 107 bytes of path.
 */
static void make_address(struct sockaddr_un *address, int directory_fd)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/snapshot",
		 directory_fd);
}

/* Is the other end a process of this user, or of root? */
static bool peer_may(int fd, pid_t *pid)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
		return false;
	*pid = peer.pid;
	return peer.uid == geteuid() || !peer.uid;
}

/* --- being one --- */

int pem_session__serve(struct pem_session *s)
{
	struct sockaddr_un address;

	s->flight->serve_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->flight->serve_fd < 0)
		return -errno;
	make_address(&address, s->directory_fd);
	if (bind(s->flight->serve_fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(s->flight->serve_fd, 8))
		return -errno;
	return 0;
}

void pem_session__describe_flight(struct pem_session *s, const char *trace)
{
	char text[PATH_MAX + sizeof(s->log->info.command) + 2], *path;
	int n;

	if (s->flight->serve_fd < 0)
		return;
	if (trace) {
		path = realpath(trace, NULL);
		pem_copy_text(s->flight->trace, sizeof(s->flight->trace), path ? path : "");
		free(path);
	}
	n = snprintf(text, sizeof(text), "%s\n%s\n", s->flight->trace,
		     s->log->info.command[0] ? s->log->info.command : s->log->info.command_name);
	if (!strchr(s->flight->trace, '\n'))
		pem_replace_file(s->directory_fd, "flight", text, (size_t)n);
}

/* Receive a request: return its folder, and write its cause to cause. -EAGAIN: nothing came yet. */
static int receive(int socket, char *cause, size_t cause_bytes)
{
	struct stat st;
	int folder;
	ssize_t n = pem_message__receive(socket, cause, cause_bytes - 1, &folder);

	if (n < 0)
		return (int)n;
	cause[n] = 0;
	if (folder < 0)
		return -EINVAL;
	if (!fstat(folder, &st) && S_ISDIR(st.st_mode))
		return folder;
	close(folder);
	return -ENOTDIR;
}

static void answer(struct pem_session *s, int folder, char *cause)
{
	struct pem_error error = {""};
	char path[40]; /* "/." at its end: a link is not accepted as a folder */
	pid_t pid;

	pem_printable(cause);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/.", folder);
	if (!pem_session__snapshot(s, path, cause[0] ? cause : NULL, &error))
		error.text[0] = 0;
	if (peer_may(s->flight->asking_fd, &pid))
		pem_session__say(s, PEM_LOG_INFO, "snapshot written for process %d%s%s", (int)pid,
				 error.text[0] ? " failed: " : "", error.text);
	send(s->flight->asking_fd, error.text, strlen(error.text) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void hang_up(struct pem_session *s)
{
	if (s->flight->asking_fd >= 0)
		close(s->flight->asking_fd);
	s->flight->asking_fd = -1;
}

void pem_session__answer_requests(struct pem_session *s)
{
	uint64_t now = pem_monotonic_ns();
	char cause[CAUSE_BYTES];
	pid_t pid;
	int folder;

	if (s->flight->serve_fd < 0)
		return;
	if (s->flight->asking_fd < 0) {
		s->flight->asking_fd =
			accept4(s->flight->serve_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		s->flight->asking_since_ns = now;
		if (s->flight->asking_fd >= 0 && !peer_may(s->flight->asking_fd, &pid))
			hang_up(s);
	}
	if (s->flight->asking_fd < 0)
		return;
	folder = receive(s->flight->asking_fd, cause, sizeof(cause));
	if (folder >= 0) {
		answer(s, folder, cause);
		close(folder);
	} else if (folder == -EAGAIN && now - s->flight->asking_since_ns < ASK_NS) {
		return;
	}
	hang_up(s);
}

void pem_session__stop_serving(struct pem_session *s)
{
	hang_up(s);
	if (s->flight->serve_fd >= 0)
		close(s->flight->serve_fd);
	s->flight->serve_fd = -1;
}

/* --- finding and asking one --- */

/*
 * Connect to a recorder. Waits at most timeout_ms while other programs wait for their answers.
 * Returns a descriptor; -EAGAIN: they still wait; or -errno.
 */
static int connect_to(int directory_fd, int timeout_ms)
{
	const struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), code;
	struct sockaddr_un address;

	if (fd < 0)
		return -errno;
	if (timeout_ms > 0) {
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
		fcntl(fd, F_SETFL, 0);
	}
	make_address(&address, directory_fd);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	code = errno;
	close(fd);
	return -code;
}

/* Open a session's folder, if it belongs to this user. Returns a descriptor, or -errno. */
static int open_session(const char *name)
{
	char runtime[PATH_MAX - 128], path[PATH_MAX];
	int fd, result = pem_runtime_dir(runtime, sizeof(runtime));
	struct stat st;

	if (result)
		return result;
	if (strncmp(name, "session-", 8) || strchr(name, '/'))
		return -EINVAL;
	snprintf(path, sizeof(path), "%s/%s", runtime, name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_uid == geteuid())
		return fd;
	close(fd);
	return -EPERM;
}

/* Cut a line off a text and make its control characters visible. */
static char *take_line(char **text)
{
	char *line = *text, *end = strchr(line, '\n');

	*text = end ? end + 1 : line + strlen(line);
	if (end)
		*end = 0;
	return pem_printable(line);
}

static bool describe(const char *name, struct pem_recorder *r)
{
	int fd = open_session(name), asked;
	char *text, *at;
	unsigned pid;
	size_t bytes;

	if (fd < 0)
		return false;
	text = at = pem_read_file(fd, "flight", sizeof(r->trace) + sizeof(r->command), &bytes);
	if (text && sscanf(name, "session-%u-", &pid) == 1) {
		memset(r, 0, sizeof(*r));
		pem_copy_text(r->session, sizeof(r->session), name);
		pem_copy_text(r->trace, sizeof(r->trace), take_line(&at));
		pem_copy_text(r->command, sizeof(r->command), take_line(&at));
		r->pid = pid;
		asked = connect_to(fd, 0);
		r->is_running = asked >= 0 || asked == -EAGAIN;
		if (asked >= 0)
			close(asked);
	}
	close(fd);
	free(text);
	return text && r->pid;
}

int pem_recorders(struct pem_recorder *recorders, size_t max)
{
	char runtime[PATH_MAX - 128];
	struct pem_recorder found;
	struct dirent *entry;
	DIR *directory;
	int result, count = 0;

	if (pem_sized__check_array(recorders, max))
		return -EINVAL;
	result = pem_runtime_dir(runtime, sizeof(runtime));
	if (result)
		return result;
	directory = opendir(runtime);
	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		if (strncmp(entry->d_name, "session-", 8) || !describe(entry->d_name, &found))
			continue;
		if ((size_t)count < max)
			pem_sized__write(recorders, (size_t)count, &found, sizeof(found));
		count++;
	}
	closedir(directory);
	return count;
}

static int send_request(int fd, int folder, const char *cause)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	char text[CAUSE_BYTES];
	struct iovec part = {text, 0};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	pem_copy_text(text, sizeof(text), cause ? cause : "");
	/* At least one byte is sent: a message of no bytes means the end. */
	part.iov_len = strlen(text) + 1;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &folder, sizeof(folder));
	return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int ask(const struct pem_recorder *r, int fd, int folder, const char *cause, int timeout_ms,
	       struct pem_error *error)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	char text[sizeof(error->text)];
	int result = send_request(fd, folder, cause);
	ssize_t n = -1;

	if (!result && poll(&pollfd, 1, timeout_ms) != 1)
		return pem_error__set(
			error, -ETIMEDOUT,
			"flight recorder %u (%s) does not answer: it is stopped, or its disk is "
			"slow; what it writes still comes in the folder if it goes on",
			r->pid, r->command);
	if (!result)
		n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
	if (n <= 0)
		return pem_error__set(error, -EPIPE,
				      "flight recorder %u (%s) ended before it had written "
				      "the snapshot",
				      r->pid, r->command);
	text[n] = 0;
	return text[0] ? pem_error__set(error, -EIO, "flight recorder %u: %s", r->pid, text) : 0;
}

/* The recorder also checks the owner, but does not know the folder's name. */
static int check_folder(int fd, int folder, const char *directory, struct pem_error *error)
{
	struct ucred recorder;
	socklen_t bytes = sizeof(recorder);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &recorder, &bytes))
		return pem_error__set(error, -errno, "cannot ask whose the recorder is: %s",
				      strerror(errno));
	return pem_check_owner(folder, recorder.uid, directory, error);
}

int pem_recorder__snapshot(const struct pem_recorder *given, const char *directory,
			   const char *cause, int timeout_ms, struct pem_error *error)
{
	int session, fd = -1, folder = -1, result;
	struct pem_recorder own, *recorder = &own;
	bool made;

	if (!given || !directory || !*directory)
		return pem_error__lacks(error,
					given ? "directory for the snapshot" : "flight recorder");
	result = PEM_READ_SIZED(pem_recorder, recorder, given, trace, error);
	if (result)
		return result;
	session = open_session(recorder->session);
	made = !mkdir(directory, 0700);
	folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folder < 0) {
		result = pem_error__no_folder(error, "the snapshot's folder", directory);
		goto out;
	}
	if (!pem_folder_is_empty(folder)) {
		result = pem_error__set(error, -ENOTEMPTY,
					"the folder '%s' is not empty: choose another for the "
					"snapshot or remove what is in it",
					directory);
		goto out;
	}
	fd = session < 0 ? session : connect_to(session, timeout_ms);
	if (fd == -EAGAIN)
		result =
			pem_error__set(error, -EBUSY,
				       "flight recorder %u (%s) does not answer: it is stopped, or "
				       "too many programs ask it at once",
				       recorder->pid, recorder->command);
	else if (fd < 0)
		result = pem_error__set(error, -ESRCH,
					"flight recorder %u (%s) does not run any more",
					recorder->pid, recorder->command);
	else
		result = check_folder(fd, folder, directory, error);
	if (!result)
		result = ask(recorder, fd, folder, cause, timeout_ms, error);
	/* The folder stays if anything is in it. */
	if (result && made && result != -ETIMEDOUT)
		rmdir(directory);
out:
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
	if (session >= 0)
		close(session);
	return result;
}
