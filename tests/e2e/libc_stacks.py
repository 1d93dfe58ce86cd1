#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libc_stacks.py - threads with little stack that start programs which can't be observed

Not here: how much a start takes (libc_harmless.py), nor a first event (unit/producer_stack.c).
"""
from preload import compile_program, recorded_by_all
from tap import equal, run_all, test

# A filter refuses a call of pem's: pem's libraries are taken out of the environment of each program that is started.
PROGRAM = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define VARIABLES 7000
static char **all;
static char *arguments[] = {"sh", "-c", "echo variables $V0$V6999 libraries $LD_PRELOAD", NULL};
static void *spawn(void *unused)
{
	int status = -1;
	pid_t child;

	if (posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, all) || waitpid(child, &status, 0) != child)
		puts("not started");
	return unused;
}
static void *exec(void *unused)
{
	int status = -1;
	pid_t child = vfork();

	if (!child) {
		execve("/bin/sh", arguments, all);
		_exit(3);
	}
	waitpid(child, &status, 0);
	if (status)
		puts("not started");
	return unused;
}
static void *fails(void *unused)
{
	execve("/nowhere", arguments, all);
	return unused;
}
int main(void)
{
	static void *(*const ways[])(void *) = {spawn, exec, fails};
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {4, code};
	pthread_attr_t small;
	pthread_t thread;
	size_t count = 0, i;
	char **v;

	setvbuf(stdout, NULL, _IONBF, 0);
	all = calloc(VARIABLES + 200, sizeof(*all));
	for (v = environ; *v && count < 150; v++)
		all[count++] = *v;
	for (i = 0; i < VARIABLES; i++)
		asprintf(&all[count++], "V%zu=1", i);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
		return 1;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32768);
	for (i = 0; i < 15; i++) {
		pthread_create(&thread, &small, ways[i % 3], NULL);
		pthread_join(thread, NULL);
	}
	return 0;
}
"""


@test
def many_variables():
    "a thread of 32 KiB starts programs with 7,000 variables, in a process with a filter that refuses pem's calls"
    equal(recorded_by_all(compile_program(PROGRAM)), "variables 11 libraries\n" * 10, "output")


run_all()
