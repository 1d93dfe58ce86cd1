#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
syscall_dispatch.py - programs with syscall user dispatch, in which a call that does not come from the C library ends the
program by SIGSYS: pem makes none in such a thread, and records the others

Not here: seccomp filters (seccomp_filters.py), which calls pem is told of (unit/libc_rights.c).
"""
from preload import compile_program, count, record, recorded_by_all
from tap import equal, run, run_all, skip, test

# Sizes of malloc say where it was called.
PROGRAM = r"""
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define BLOCK 1
extern char **environ;
static volatile char selector;
static unsigned long start, bytes;
static int find(struct dl_phdr_info *info, size_t size, void *arg)
{
	int i;

	for (i = 0; strstr(info->dlpi_name, "libc.so.6") && i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			bytes = info->dlpi_phdr[i].p_memsz;
		}
	return 0;
}
static void raise_events(size_t size, int count)
{
	while (count--)
		free(malloc(size));
}
static void *work(void *arg) { raise_events(33, 100); return arg; }
static int child_status(pid_t child) { int status = -1; waitpid(child, &status, 0); return status; }
static void live(char *self, int by_number)
{
	char *arguments[] = {self, "started", NULL};
	pthread_t thread;
	pid_t child;

	if (by_number ? syscall(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 1, start, bytes, &selector)
		      : prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, start, bytes, &selector)) {
		puts("no dispatch");
		exit(0);
	}
	selector = BLOCK;
	raise_events(11, 100000);
	selector = 0;
	raise_events(11, 100);
	selector = BLOCK;
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	child = fork();
	if (!child) {
		raise_events(44, 100);
		_exit(5);
	}
	printf("forked %x\n", child_status(child));
	child = -1;
	printf("spawned %d", posix_spawn(&child, self, NULL, NULL, arguments, environ));
	printf(" %x\n", child_status(child));
	prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
	raise_events(66, 100);
}
int main(int argc, char **argv)
{
	if (argc > 1) {
		raise_events(55, 100);
		return 6;
	}
	setvbuf(stdout, NULL, _IONBF, 0);
	dl_iterate_phdr(find, NULL);
	raise_events(22, 100);
	live(argv[0], 0);
	live(argv[0], 1);
	return 0;
}
"""
SAID = "forked 500\nspawned 0 600\n" * 2


def program():
    path = compile_program(PROGRAM)
    if "no dispatch" in run([path])[1]:
        skip("this kernel has no syscall user dispatch")
    return path


@test
def as_alone():
    "a program that dispatches system calls to a handler does what it does alone"
    equal(recorded_by_all(program()), SAID, "output")


@test
def recorded_around_it():
    "its other threads, its children, what it starts, and the thread itself before and after, are recorded whole"
    out, events = record([program()], "APP::Libc::Malloc")
    equal(out, SAID, "output")
    equal([count(events, "Malloc", size=size) for size in (22, 33, 44, 55, 66)], [100, 200, 200, 200, 200], "events")


FILTERED = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
static char selector; /* lets all pass */
static void raise_events(int count)
{
	while (count--)
		free(malloc(11));
}
int main(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {4, code};

	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector)) {
		puts("no dispatch");
		return 0;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
		return 1;
	raise_events(100);
	prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0);
	raise_events(100000);
	puts("done");
	return 0;
}
"""


@test
def filter_meanwhile():
    "one that takes a seccomp filter while it dispatches stays restricted by the filter afterwards"
    path = compile_program(FILTERED)
    if "no dispatch" in run([path])[1]:
        skip("this kernel has no syscall user dispatch")
    equal(recorded_by_all(path), "done\n", "output")


run_all()
