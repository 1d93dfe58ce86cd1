#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libc_pointers.py - programs that hand in pointers to memory that can't be read: they get EFAULT, as unobserved

Not here: programs that are started (unrecorded_programs.py).
"""
from preload import compile_program, record, recorded_by_all
from tap import equal, run_all, test

PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define FAILS(call, code) do { \
	errno = 0; \
	long rc_ = (long)(call); \
	if (rc_ != -1 || errno != (code)) \
		printf("line %d: %ld, %s\n", __LINE__, rc_, strerror(errno)); \
} while (0)
int main(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *end = pages + 4096, *close_by, text[8] = "text";
	struct iovec *parts = (struct iovec *)(void *)(end - sizeof(*parts));
	struct iovec good[2] = {{text, 3}, {text, 4}};
	struct msghdr to_nothing = {.msg_iov = (void *)end, .msg_iovlen = 1}, many = {.msg_iov = good, .msg_iovlen = 1u << 30};
	struct msghdr sound = {.msg_iov = good, .msg_iovlen = 2};
	struct sockaddr_in *peer = (void *)(end - sizeof(*peer));
	pid_t child;
	int pair[2], in, null = open("/dev/null", O_RDWR);

	mprotect(end, 4096, PROT_NONE);
	memset(pages, 0, 4096);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	in = socket(AF_INET, SOCK_STREAM, 0);
	close_by = end - 3;
	memcpy(close_by, "/xy", 3);
	FAILS(open(end, O_RDONLY), EFAULT);
	FAILS(open(close_by, O_RDONLY), EFAULT);
	FAILS(open((char *)16, O_CREAT | O_DIRECTORY | O_PATH, 0600), errno); /* its flags are looked at first, by some kernels */
	FAILS(openat(AT_FDCWD, (char *)16, O_TMPFILE, 0600), errno);
	FAILS(unlink(end), EFAULT);
	FAILS(rename("/nothing", end), EFAULT);
	*parts = (struct iovec){text, 4};
	FAILS(readv(pair[0], (void *)end, 1), EFAULT);
	FAILS(writev(pair[0], (void *)end, 1), EFAULT);
	FAILS(writev(pair[0], parts, 2), EFAULT);
	FAILS(writev(pair[0], (void *)16, 1), EFAULT);
	FAILS(writev(pair[0], (void *)-16l, 1), EFAULT);
	FAILS(writev(pair[0], good, -1), EINVAL);
	FAILS(writev(pair[0], good, 1 << 20), EINVAL);
	FAILS(sendmsg(pair[0], NULL, 0), EFAULT);
	FAILS(sendmsg(pair[0], (void *)(end - 8), 0), EFAULT);
	FAILS(sendmsg(pair[0], &to_nothing, 0), EFAULT);
	FAILS(sendmsg(pair[0], &many, 0), EMSGSIZE);
	FAILS(recvmsg(pair[0], (void *)end, 0), EFAULT);
	FAILS(recvmsg(pair[0], &to_nothing, 0), EFAULT);
	*peer = (struct sockaddr_in){.sin_family = AF_INET};
	FAILS(connect(in, (void *)end, sizeof(*peer)), EFAULT);
	FAILS(connect(in, (void *)(end - 4), sizeof(*peer)), EFAULT);
	FAILS(connect(in, NULL, sizeof(*peer)), EFAULT);
	FAILS(connect(in, (void *)end, ~0u), EINVAL);
	*parts = (struct iovec){text, 4};
	child = fork();
	if (!child)
		_exit(0);
	FAILS(waitpid(child, (void *)end, 0), EFAULT);
	child = fork();
	if (!child)
		_exit(0);
	FAILS(wait((void *)end), EFAULT);
	FAILS(nanosleep((void *)end, NULL), EFAULT);
	errno = 77;
	printf("%zd", writev(null, good, 2));
	printf(" %zd", writev(null, parts, 1));
	printf(" %zd", sendmsg(pair[0], &sound, 0));
	printf(" %d\n", errno);
	return 0;
}
"""


@test
def pointers_that_cannot_be_read():
    "paths, arrays of parts, messages and addresses that can't be read are answered with EFAULT; the program goes on"
    equal(recorded_by_all(compile_program(PROGRAM)), "7 4 7 77\n", "what it says")


@test
def their_events():
    "such calls are recorded with no path and no bytes, and those with sound pointers by what they point to"
    out, events = record([compile_program(PROGRAM)], "APP::File::*,APP::Socket::*")
    equal(out, "7 4 7 77\n", "what it says")
    written = [e["size"] for e in events if e["event"] == "APP::File::WriteBegin"]
    equal(written[-2:], ["7", "4"], "bytes that writev was to write")
    equal(set(written[:-2]), {"0"}, "bytes of those that failed")
    sent = [e["size"] for e in events if e["event"] == "APP::Socket::SendBegin"]
    equal(sent, ["0"] * 4 + ["7"], "bytes to be sent")
    opened = [e["path"] for e in events if e["event"] == "APP::File::Open" and e["error"] == "14"]
    equal(set(opened), {""}, "paths of opens that ended with EFAULT")


run_all()
