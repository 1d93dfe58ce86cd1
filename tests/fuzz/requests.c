// SPDX-License-Identifier: MIT
/*
 * requests.c - fuzz target: what a flight recorder is sent by whoever connects to its socket
 *
 * An input is messages of three bytes: what each of its descriptors is, how many there are, and how
 * long its text is; several may come before the recorder gets to the first. Whatever is sent, the
 * recorder goes on with as many descriptors open as before, and hangs up on all but who has said
 * nothing yet.
 */
#define _GNU_SOURCE
#include "core/clock_sync.h"
#include "core/core.h"
#include "flight/flight.h"
#include "tests/unit/descriptors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define MESSAGE_BYTES 3u
#define MESSAGES_MAX 4u

static struct pem_session *session;
static char folder[64];
static int things[4]; /* a folder, a file, a socket, a pipe */

static void check(int condition)
{
	if (!condition)
		abort();
}

static void clean(void)
{
	char command[96];

	pem_session__close(session);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	check(!system(command));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct pem_session_options options = {.size = sizeof(options), .overwrite = 1};
	int pipe_ends[2];

	(void)argc;
	(void)argv;
	snprintf(folder, sizeof(folder), "/tmp/pem-fuzz-XXXXXX");
	check(mkdtemp(folder) != NULL);
	setenv("PEM_RUNTIME_DIR", folder, 1);
	session = pem_session__open(&options, NULL);
	check(session && !pem_session__serve(session));
	check(!pipe(pipe_ends));
	things[0] = open(folder, O_RDONLY | O_DIRECTORY);
	things[1] = open("/dev/null", O_RDONLY);
	things[2] = socket(AF_UNIX, SOCK_STREAM, 0);
	things[3] = pipe_ends[0];
	atexit(clean);
	return 0;
}

/* Credentials too, if asked for: then there are two headers. */
static void send_message(int fd, uint8_t what, uint8_t number, uint8_t length)
{
	unsigned count = number > DESCRIPTORS_MAX ? DESCRIPTORS_MAX : number, i;
	union {
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	const struct ucred self = {getpid(), getuid(), getgid()};
	static char text[4 * 256];
	struct iovec part = {text, 4u * length};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes};
	struct cmsghdr *header = &control.align;

	memset(text, what, sizeof(text));
	memset(&control, 0, sizeof(control));
	if (what & 0x40) {
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_CREDENTIALS;
		header->cmsg_len = CMSG_LEN(sizeof(self));
		memcpy(CMSG_DATA(header), &self, sizeof(self));
		message.msg_controllen = CMSG_SPACE(sizeof(self));
		header = (struct cmsghdr *)(control.bytes + message.msg_controllen);
	}
	for (i = 0; i < count; i++)
		memcpy(CMSG_DATA(header) + i * sizeof(int), &things[(what >> (i % 3 * 2)) % 4],
		       sizeof(int));
	if (count) {
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(count * sizeof(int));
		message.msg_controllen += CMSG_SPACE(count * sizeof(int));
	}
	if (!message.msg_controllen)
		message.msg_control = NULL;
	check(sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	unsigned before = count_descriptors();
	size_t at, sent = 0;
	int ends[2], one = 1;

	check(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	/* The kernel then puts the sender's credentials in front of what is sent. */
	if (bytes && data[0] & 0x80)
		setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one));
	session->flight->asking_fd = ends[0];
	session->flight->asking_since_ns = pem_monotonic_ns();
	for (at = 0; at + MESSAGE_BYTES <= bytes && sent < MESSAGES_MAX;
	     at += MESSAGE_BYTES, sent++)
		send_message(ends[1], data[at], data[at + 1], data[at + 2]);
	pem_session__answer_requests(session);
	check((session->flight->asking_fd >= 0) == !sent);
	if (!sent) {
		close(session->flight->asking_fd);
		session->flight->asking_fd = -1;
	}
	close(ends[1]);
	check(count_descriptors() == before);
	return 0;
}
