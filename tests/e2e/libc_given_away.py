#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libc_given_away.py - memory that a call lets another thread free: pem does not read it after the call

A library of the program's own stands between pem and the C library. It frees the memory as soon as the C library's
function has returned, which is the worst moment that another thread could choose.
"""
import os

from preload import compile_program, record, recorded_by_all
from tap import equal, run_all, test, tmp

FREES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
void *given; /* a page; NULL: none */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
static void give(void)
{
	if (given)
		munmap(given, 4096);
	given = NULL;
}
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *arg)
{ int rc = NEXT(pthread_create)(t, a, f, arg); give(); return rc; }
int open(const char *p, int flags, ...) { int rc = NEXT(open)(p, flags, 0600); give(); return rc; }
int openat(int d, const char *p, int flags, ...) { int rc = NEXT(openat)(d, p, flags, 0600); give(); return rc; }
int creat(const char *p, mode_t mode) { int rc = NEXT(creat)(p, mode); give(); return rc; }
int rename(const char *p, const char *to) { int rc = NEXT(rename)(p, to); give(); return rc; }
int unlink(const char *p) { int rc = NEXT(unlink)(p); give(); return rc; }
FILE *fopen(const char *p, const char *how) { FILE *f = NEXT(fopen)(p, how); give(); return f; }
void *dlopen(const char *p, int flags) { void *h = NEXT(dlopen)(p, flags); give(); return h; }
int posix_spawn(pid_t *c, const char *p, const posix_spawn_file_actions_t *f, const posix_spawnattr_t *a, char *const v[],
		char *const e[])
{ int rc = NEXT(posix_spawn)(c, p, f, a, v, e); give(); return rc; }
"""

GIVES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern void *given;
extern char **environ;
static sem_t done;
static pthread_t self;
static void *work(void *arg) { self = pthread_self(); sem_post(&done); return arg; }
static void *page(const char *text)
{
	char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	strcpy(memory, text);
	return given = memory;
}
int main(void)
{
	char *arguments[] = {"true", NULL};
	pthread_attr_t detached;
	int status = -1;
	pid_t child;

	if (chdir(FOLDER))
		return 1;
	sem_init(&done, 0, 0);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_create(page(""), &detached, work, NULL);
	sem_wait(&done);
	fprintf(stderr, "%#lx %d\n", (long)self, (int)syscall(SYS_gettid));
	close(open(page("a"), O_CREAT | O_WRONLY, 0600));
	close(openat(AT_FDCWD, page("b"), O_CREAT | O_WRONLY, 0600));
	close(creat(page("c"), 0600));
	fclose(fopen(page("d"), "w"));
	rename(page("a"), "e");
	rename("e", page("f"));
	unlink(page("f"));
	dlclose(dlopen(page(LIBRARY), RTLD_NOW));
	posix_spawn(&child, page("/bin/true"), NULL, NULL, arguments, environ);
	waitpid(child, &status, 0);
	printf("%x\n", status);
	return 0;
}
"""


def gives():
    library = compile_program(FREES, "libfrees.so", ["-shared", "-fPIC", "-ldl"])
    folder, name = os.path.split(library)
    return compile_program(GIVES, flags=["-L" + folder, "-l:" + name, "-Wl,-rpath," + folder, "-ldl",
                                         '-DLIBRARY="%s"' % library, '-DFOLDER="%s"' % tmp()])


@test
def freed_after_the_call():
    "a program whose other threads free a thread's id, a path or a name while the call returns goes on"
    equal(recorded_by_all(gives()), "0\n", "output")


@test
def its_events():
    "the events of such calls have the path or name, and the new thread reports its id and its creator"
    said = tmp() + "/said"
    _, events = record(["sh", "-c", gives() + " 2>" + said], "APP::Libc::Thread*,APP::File::*,APP::Stdio::Open,"
                       "APP::Loader::OpenEnd,APP::Program::Spawn")
    handle, creator = open(said, encoding="ascii").read().split()
    started = [(e["handle"], e["creator"]) for e in events if e["event"] == "APP::Libc::ThreadStart"]
    equal(started, [(handle, creator)], "threads")
    texts = [e["path"] for e in events if e["event"] in ("APP::File::Open", "APP::Stdio::Open") and e["path"] in "abcd"]
    equal(texts, list("abcd"), "files")
    equal([(e["path"], e["newPath"]) for e in events if e["event"] == "APP::File::Rename"], [("a", "e"), ("e", "f")], "names")
    equal([e["path"] for e in events if e["event"] == "APP::File::Unlink"], ["f"], "removed")
    opened = [os.path.basename(e["name"]) for e in events if e["event"] == "APP::Loader::OpenEnd"]
    equal(opened, ["libfrees.so"], "libraries")
    equal([e["path"] for e in events if e["event"] == "APP::Program::Spawn"], ["/bin/true"], "programs")


PID = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
extern char **environ;
static volatile pid_t child;
static volatile int strange, seen;
static void ended(int number)
{
	int pid = waitpid(-1, NULL, WNOHANG);

	if (pid <= 0)
		return;
	seen++;
	strange += pid != child;
}
int main(void)
{
	struct sigaction action = {.sa_handler = ended, .sa_flags = SA_RESTART};
	char *arguments[] = {"true", NULL};
	int i;

	sigaction(SIGCHLD, &action, NULL);
	for (i = 1; i <= 60; i++) {
		child = -1;
		if (posix_spawn((pid_t *)&child, "/bin/true", NULL, NULL, arguments, environ))
			return 1;
		while (seen < i)
			;
	}
	printf("%d\n", strange);
	return 0;
}
"""


@test
def pid_in_a_handler():
    "a handler of SIGCHLD finds the child's pid where posix_spawn was to store it"
    equal(recorded_by_all(compile_program(PID)), "0\n", "children that it does not find")


MASKS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
extern char **environ;
static void start(const char *what, const posix_spawnattr_t *attributes)
{
	char *arguments[] = {"grep", "SigBlk", "/proc/self/status", NULL};
	sigset_t now;
	pid_t child;

	puts(what);
	fflush(stdout);
	posix_spawnp(&child, "grep", NULL, attributes, arguments, environ);
	waitpid(child, NULL, 0);
	sigprocmask(SIG_BLOCK, NULL, &now);
	printf("%d %d\n", sigismember(&now, SIGUSR1), sigismember(&now, SIGUSR2));
}
int main(void)
{
	posix_spawnattr_t attributes;
	sigset_t one, other;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	sigemptyset(&other);
	sigaddset(&other, SIGUSR2);
	start("none", NULL);
	sigprocmask(SIG_BLOCK, &one, NULL);
	start("the caller's", NULL);
	posix_spawnattr_init(&attributes);
	start("attributes without a mask", &attributes);
	posix_spawnattr_setsigmask(&attributes, &other);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	start("attributes with one", &attributes);
	return 0;
}
"""


@test
def signal_masks():
    "a program that posix_spawn starts has the signal mask that it has alone, and so has its parent afterwards"
    assert "SigBlk" in recorded_by_all(compile_program(MASKS)), "masks are shown"


run_all()
