#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libc_starts.py - programs that are started at the same time: each start has an environment of its own

The started file is not really a program. Its loader could not load pem's libraries, so pem takes them out of its
environment. A library of the program's own stands between pem and the C library, and holds each start there.
"""
import os

from preload import PRELOAD, compile_program, need_preload
from tap import equal, run, run_all, test, tmp

HOLDS = r"""
#include <errno.h>
extern void held(char *const environment[]);
int execve(const char *path, char *const arguments[], char *const environment[])
{ held(environment); errno = ENOEXEC; return -1; }
"""

STARTS = r"""
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define THREADS 20
static char *program, *arguments[] = {"x", NULL}, *seen[8];
static char preload[4096] = "LD_PRELOAD=";
static int way, depth, others, seen_count, wrong;
static pthread_barrier_t all;
static void start(char *name)
{
	char *environment[] = {preload, name, NULL};

	execve(program, arguments, environment);
}
static void handler(int signal)
{
	char name[] = "N=0";

	name[2] += ++depth;
	start(name);
}
static int has_libraries(char *const e[])
{
	for (; *e; e++) {
		if (strstr(*e, "libpem"))
			return 1;
	}
	return 0;
}
void held(char *const environment[])
{
	char *name = environment[0];
	int i;

	if (has_libraries(environment))
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	if (way == 0 && depth < 5) /* a handler interrupts the start, and another one the handler's */
		raise(SIGUSR1);
	if (way == 1)
		pthread_barrier_wait(&all);
	if (way == 2) { /* as a start in a child of vfork that succeeds */
		for (i = 0; i < seen_count && seen[i] != (char *)environment; i++)
			;
		if (i == 8)
			wrong++;
		else if (i == seen_count)
			seen[seen_count++] = (char *)environment;
		_exit(0);
	}
	if (environment[0] != name || environment[1])
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}
static void *work(void *name) { start(name); return NULL; }
int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER};
	pthread_t threads[THREADS];
	int i;

	program = argv[1];
	way = atoi(argv[2]);
	strcat(preload, getenv("LD_PRELOAD"));
	sigaction(SIGUSR1, &action, NULL);
	if (way == 0)
		start("N=0");
	pthread_barrier_init(&all, NULL, THREADS);
	for (i = 0; way == 1 && i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, "N=0");
	for (i = 0; way == 1 && i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; way == 2 && i < 30; i++) {
		pid_t child = vfork();

		if (!child)
			start("N=0");
		waitpid(child, NULL, 0);
	}
	printf("%d wrong\n", wrong);
	return 0;
}
"""


def starts(way):
    need_preload()
    library = compile_program(HOLDS, "libholds.so", ["-shared", "-fPIC"])
    folder, name = os.path.split(library)
    path = compile_program(STARTS, flags=["-rdynamic", "-L" + folder, "-l:" + name, "-Wl,-rpath," + folder])
    program = tmp() + "/program"
    with open(program, "wb") as file:
        file.write(b"\x7fELF\x01" + bytes(600))
    os.chmod(program, 0o755)
    rc, out, err = run([path, program, str(way)], env=PRELOAD)
    equal((rc, out), (0, "0 wrong\n"), "status and output, with " + err)


@test
def in_signal_handlers():
    "a start that a handler interrupts keeps its environment, if the handler starts programs that fail"
    starts(0)


@test
def in_many_threads():
    "no start of 20 at once gets pem's libraries"
    starts(1)


@test
def in_children_of_vfork():
    "30 starts in children of vfork take at most 8 environments' memory"
    starts(2)


run_all()
