#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libc_stacks.py - how much of a program's stack pem takes, and threads with little stack that start programs which can't be
observed

Not here: a process's first event (unit/producer_stack.c).
"""
import os

from preload import STUBS, compile_program, need_preload, recorded_by_all
from tap import PEM, equal, run, run_all, test, tmp

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


# It has given up rights, so that the libraries of what it starts are looked for. Each call fails.
STACK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#define STACK_BYTES 262144
#define LONG 3000
static ucontext_t caller, callee;
static char stack[STACK_BYTES], path[LONG + 1] = "x/";
static char *arguments[] = {"x", NULL};
static int folder;
static void by_path(void) { execve("/nowhere", arguments, environ); }
static void by_name(void) { execvp("no-such-program", arguments); }
static void beneath(void) { execveat(folder, path, arguments, environ, 0); }
static void opened(void) { close(open(path, O_RDONLY)); }
static void moved(void) { rename(path, path); }
static void printed(void) { fopen(path, "r"); }
int main(void)
{
	static void (*const ways[])(void) = {by_path, by_name, beneath, opened, moved, printed};
	size_t i, way;

	memset(path + 2, 'y', LONG - 2);
	folder = open("/", O_RDONLY | O_DIRECTORY);
	free(malloc(1));
	if (setgid(getgid()))
		return 3;
	for (way = 0; way < sizeof(ways) / sizeof(*ways); way++) {
		ways[way]();
		memset(stack, 1, sizeof(stack));
		getcontext(&callee);
		callee.uc_stack.ss_sp = stack;
		callee.uc_stack.ss_size = sizeof(stack);
		callee.uc_link = &caller;
		makecontext(&callee, ways[way], 0);
		swapcontext(&caller, &callee);
		for (i = 0; i < sizeof(stack) && stack[i] == 1; i++)
			;
		printf("%zu\n", sizeof(stack) - i);
	}
	return 0;
}"""
LONG_PATH = ":".join(["/no/such/folder"] * 250)


@test
def bytes_of_stack():
    "a call that starts a program or opens a file takes at most 2 KiB more of the stack than alone"
    need_preload()
    program = compile_program(STACK, flags=["-Wl,-z,now"])
    env = {"PATH": LONG_PATH + ":" + os.environ["PATH"]}
    rc, alone, err = run([program], env=env)
    equal(rc, 0, "status alone, with " + err)
    rc, out, err = run([PEM, "record", "-q", "-o", tmp() + "/t", "-e", STUBS, "--", program], env=env)
    equal(rc, 0, "status recorded, with " + err)
    more = [int(observed) - int(bare) for observed, bare in zip(out.split(), alone.split())]
    equal((len(more), [n for n in more if n > 2048]), (6, []), "bytes more, of %r and %r" % (out.split(), alone.split()))


run_all()
