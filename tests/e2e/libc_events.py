#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Locks, files, streams, sockets, processes and libraries of unmodified programs, as libpem-libc.so shows them.

Not here: allocations, mappings and threads (libc_programs.py).
"""
import collections
import json
import subprocess
import sys

from preload import PRELOAD, compile_program, count, need_preload, record
from tap import PEM, equal, need, run, run_all, test, tmp

ALL = ",".join("APP::%s::*" % name for name in "Libc Lock File Stdio Socket Loader Program".split())


def same_when_recorded(command, **more):
    """Run alone, then recorded with every event on: nothing may differ. Returns the events."""
    need_preload()
    need(command[0])
    rc, out, err = run(command, **more)
    got, events = record(command, ALL, rc)
    equal(got, out, "standard output of " + command[0] + ", alone with " + err)
    return events


def balanced(events, begin, end, *keys, unfinished=0):
    """
    Every begin has its end: in its thread, in order, with the same keys; but for so many that the process ended in.
    Returns how many there are.
    """
    under_way = collections.Counter()
    for e in events:
        key = (e["tid"],) + tuple(e[k] for k in keys)
        if e["event"] == begin:
            under_way[key] += 1
        elif e["event"] == end:
            under_way[key] -= 1
            assert under_way[key] >= 0, "%s without %s: %s" % (end, begin, key)
    left = {k: n for k, n in under_way.items() if n}
    assert sum(left.values()) <= unfinished, "%s without %s: %s" % (begin, end, left)
    return count(events, begin)


@test
def locks():
    "waits and holdings of mutexes, rwlocks, conditions, barriers and semaphores show, with their results"
    path = compile_program(r"""
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); exit(1); } } while (0)
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, r, e;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t b;
static sem_t s;
static int ready;
static void *work(void *arg)
{
	pthread_barrier_wait(&b); /* main holds m and rw */
	CHECK(pthread_mutex_trylock(&m) == EBUSY);
	pthread_mutex_lock(&m);
	ready = 1;
	pthread_cond_signal(&c);
	pthread_mutex_unlock(&m);
	pthread_rwlock_rdlock(&rw);
	pthread_rwlock_unlock(&rw);
	errno = 77;
	CHECK(sem_wait(&s) == 0 && errno == 77);
	return arg;
}
int main(void)
{
	struct timespec past = { 1, 0 };
	pthread_mutexattr_t a;
	pthread_t t;
	pthread_mutexattr_init(&a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&r, &a);
	pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&e, &a);
	CHECK(!pthread_mutex_lock(&r) && !pthread_mutex_lock(&r) && !pthread_mutex_unlock(&r) && !pthread_mutex_unlock(&r));
	CHECK(!pthread_mutex_lock(&e) && pthread_mutex_lock(&e) == EDEADLK && !pthread_mutex_unlock(&e));
	pthread_barrier_init(&b, NULL, 2);
	sem_init(&s, 0, 0);
	pthread_mutex_lock(&m);
	pthread_rwlock_wrlock(&rw);
	pthread_create(&t, NULL, work, NULL);
	pthread_barrier_wait(&b);
	usleep(20000);
	while (!ready)
		pthread_cond_wait(&c, &m);
	CHECK(pthread_cond_timedwait(&c, &m, &past) == ETIMEDOUT);
	pthread_mutex_unlock(&m);
	usleep(20000);
	pthread_rwlock_unlock(&rw);
	usleep(20000);
	sem_post(&s);
	pthread_join(t, NULL);
	errno = 0;
	CHECK(sem_timedwait(&s, &past) == -1 && errno == ETIMEDOUT);
	errno = 0;
	CHECK(sem_clockwait(&s, CLOCK_MONOTONIC, &past) == -1 && errno == ETIMEDOUT);
	printf("%p %p %p\n", &m, &r, &e);
	return 0;
}""")
    out, events = record([path], "APP::Lock::*")
    mutex, recursive, checked = ("0x" + word[2:].lstrip("0") for word in out.split())
    name = "APP::Lock::"
    equal(count(events, name + "MutexBusy", mutex=mutex), 1, "trylock that failed")
    equal(count(events, name + "MutexAcquire", mutex=recursive), 2, "recursive holdings")
    equal(count(events, name + "MutexWaitEnd", mutex=checked, status=35), 1, "EDEADLK shows as a wait that failed")
    equal(balanced(events, name + "MutexWaitBegin", name + "MutexWaitEnd", "mutex"), 2, "waits for mutexes")
    equal(balanced(events, name + "MutexAcquire", name + "MutexRelease", "mutex"), 5, "holdings")
    equal(balanced(events, name + "RwlockAcquire", name + "RwlockRelease", "rwlock"), 2, "holdings of the rwlock")
    equal(balanced(events, name + "RwlockWaitBegin", name + "RwlockWaitEnd", "rwlock"), 1, "waits for it")
    waits = balanced(events, name + "ConditionWaitBegin", name + "ConditionWaitEnd", "condition")
    assert waits >= 2, waits
    equal(count(events, name + "ConditionWaitEnd", status=110), 1, "timed out")
    equal(count(events, name + "ConditionSignal"), 1, "signals")
    equal(balanced(events, name + "BarrierWaitBegin", name + "BarrierWaitEnd", "barrier"), 2, "threads at the barrier")
    equal(sorted(e["status"] for e in events if e["event"].endswith("BarrierWaitEnd")), ["-1", "0"], "its results")
    equal(balanced(events, name + "SemaphoreWaitBegin", name + "SemaphoreWaitEnd", "semaphore"), 3, "semaphore")
    equal(count(events, name + "SemaphoreWaitEnd", error=110), 2, "semaphore timed out")


@test
def cancellation_goes_through():
    "threads cancelled in a read, a condition and a semaphore end as without the library"
    path = compile_program(r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static sem_t s;
static int fds[2];
static volatile int begun;
/* Wait until the thread that began sleeps in the kernel. */
static void until_it_sleeps(void)
{
	char path[64], text[64];
	int fd, n;

	while (!begun)
		usleep(100);
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", begun);
	do {
		usleep(100);
		fd = open(path, O_RDONLY);
		n = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);
		close(fd);
	} while (n > 0 && text[0] == 'r'); /* running */
	begun = 0;
}
static void clean(void *arg) { if (arg) pthread_mutex_unlock(arg); puts("cleaned"); }
static void *reads(void *arg) { char x; pthread_cleanup_push(clean, 0); begun = gettid(); read(fds[0], &x, 1); pthread_cleanup_pop(0); return arg; }
static void *waits(void *arg)
{
	pthread_mutex_lock(&m);
	pthread_cleanup_push(clean, &m);
	begun = gettid();
	for (;;)
		pthread_cond_wait(&c, &m);
	pthread_cleanup_pop(0);
	return arg;
}
static void *sleeps(void *arg) { pthread_cleanup_push(clean, 0); begun = gettid(); sem_wait(&s); pthread_cleanup_pop(0); return arg; }
int main(void)
{
	void *(*routine[])(void *) = { reads, waits, sleeps }, *result;
	pthread_t t;
	sem_init(&s, 0, 0);
	if (pipe(fds))
		return 1;
	for (int i = 0; i < 3; i++) {
		pthread_create(&t, NULL, routine[i], NULL);
		until_it_sleeps();
		pthread_cancel(t);
		pthread_join(t, &result);
		printf("%d\n", result == PTHREAD_CANCELED);
	}
	pthread_mutex_lock(&m);
	puts("free");
	return 0;
}""")
    out, events = record([path], ALL)
    equal(out, "cleaned\n1\n" * 3 + "free\n", "what it says")
    equal(count(events, "APP::Lock::SemaphoreWaitBegin"), 1, "the wait that never ended")


FILES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); exit(1); } } while (0)
int main(int argc, char **argv)
{
	char data[5000] = "x", other[5000];
	struct iovec parts[2] = { { data, 111 }, { data, 222 } };
	volatile int flags = O_RDWR;
	volatile size_t size = 4321;
	int fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640), i;
	FILE *f;

	CHECK(fd >= 0);
	errno = 77;
	CHECK(write(fd, data, size) == 4321 && errno == 77);
	CHECK(pwrite(fd, data, 1234, 100) == 1234);
	CHECK(writev(fd, parts, 2) == 333);
	CHECK(lseek(fd, 10, SEEK_SET) == 10);
	CHECK(read(fd, other, size) == 4321);
	CHECK(pread(fd, other, size, 4600) == 54);
	CHECK(fsync(fd) == 0);
	CHECK(dup2(fd, 99) == 99 && close(99) == 0 && close(fd) == 0);
	errno = 0;
	CHECK(read(fd, other, 10) == -1 && errno == EBADF);
	fd = open(argv[1], flags);
	CHECK(fd >= 0 && close(fd) == 0);
	errno = 0;
	CHECK(open("/nonexistent/file", O_RDONLY) == -1 && errno == ENOENT);
	CHECK(open((char *)16, O_RDONLY) == -1 && errno == EFAULT);
	f = fopen(argv[1], "r+");
	CHECK(fread(other, 10, 20, f) == 20);
	rewind(f);
	CHECK(fwrite(data, 7, 3, f) == 3 && fflush(f) == 0 && fclose(f) == 0);
	CHECK(poll(NULL, 0, 1) == 0);
	CHECK(rename(argv[1], argv[2]) == 0 && unlink(argv[2]) == 0);
	puts("done");
	return 0;
}
"""


def check_files(flags):
    path = compile_program(FILES, flags=flags)
    folder = tmp()
    out, events = record([path, folder + "/a", folder + "/b"], "APP::File::*,APP::Stdio::*")
    equal(out, "done\n", "what it says")
    name = "APP::File::"
    opened = [e for e in events if e["event"] == name + "Open" and e["path"] == folder + "/a"]
    equal([(int(e["descriptor"]) >= 0, e["error"]) for e in opened], [(True, "0")] * 2, "opened")
    equal(count(events, name + "Open", path="/nonexistent/file", error=2, descriptor=-1), 1, "failed open")
    equal(count(events, name + "Open", path="", error=14), 1, "path that can't be read")
    equal({(e["size"], e["offset"]): 1 for e in events if e["event"] == name + "WriteBegin" and e["size"] != "5"},
          {("4321", "-1"): 1, ("1234", "100"): 1, ("333", "-1"): 1}, "writes")
    balanced(events, name + "WriteBegin", name + "WriteEnd", "descriptor")
    balanced(events, name + "ReadBegin", name + "ReadEnd", "descriptor")
    equal([e["bytes"] for e in events if e["event"] == name + "ReadEnd"], ["4321", "54", "-1"], "reads")
    equal(count(events, name + "ReadEnd", error=9), 1, "EBADF")
    equal((count(events, name + "Seek", offset=10, position=10), count(events, name + "SyncEnd", error=0),
           count(events, name + "Duplicate", copy=99), count(events, name + "Close", descriptor=99)), (1,) * 4, "others")
    equal((count(events, name + "Rename", path=folder + "/a", newPath=folder + "/b"),
           count(events, name + "Unlink", path=folder + "/b"), count(events, name + "PollEnd", ready=0)), (1,) * 3, "names")
    name = "APP::Stdio::"
    equal((count(events, name + "Open", path=folder + "/a", access="r+"), count(events, name + "ReadEnd", bytes=200),
           count(events, name + "WriteEnd", bytes=21), count(events, name + "FlushEnd", error=0),
           count(events, name + "CloseEnd", error=0)), (1,) * 5, "streams")


@test
def files():
    "each call on a file shows once, with what it asked for and got"
    check_files([])


@test
def fortified_files():
    "a program built with _FORTIFY_SOURCE shows the same"
    check_files(["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"])


@test
def fortified_overflow_is_caught():
    "a fortified read into too small a buffer still ends the program"
    path = compile_program(r"""
#include <unistd.h>
int main(int argc, char **argv) { char small[argc + 3]; volatile size_t n = argc + 100; char fixed[8]; return read(0, fixed, n) + small[0]; }
""", flags=["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"])
    rc = run([path])[0]
    assert rc < 0, rc
    need_preload()
    equal(run([path], env=PRELOAD)[0], rc, "its end with the library")


@test
def sockets():
    "a python3 server and client over loopback: connections and bytes show at both ends"
    program = ("import socket, threading\n"
               "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(3)\n"
               "def serve():\n  c, _ = s.accept(); d = c.recv(4567); c.send(d[:1234]); c.close()\n"
               "t = threading.Thread(target=serve); t.start()\n"
               "c = socket.create_connection(s.getsockname()); c.sendall(b'x' * 2345)\n"
               "n = 0\n"
               "while True:\n  d = c.recv(4096)\n  if not d: break\n  n += len(d)\n"
               "t.join(); print(n, s.getsockname()[1])")
    need("python3")
    out, events = record(["python3", "-c", program], "APP::Socket::*")
    received, port = out.split()
    equal(received, "1234", "bytes")
    name = "APP::Socket::"
    equal(count(events, name + "ConnectBegin", port=port), 1, "connections")
    equal((count(events, name + "Listen", backlog=3), count(events, name + "AcceptEnd", error=0)), (1, 1), "server")
    balanced(events, name + "AcceptBegin", name + "AcceptEnd", "descriptor")
    equal(sum(int(e["bytes"]) for e in events if e["event"] == name + "SendEnd"), 2345 + 1234, "bytes sent")
    equal(sum(int(e["bytes"]) for e in events if e["event"] == name + "ReceiveEnd"), 2345 + 1234, "bytes received")


@test
def processes():
    "forks pair with their children, and exec, wait, exit and sleep show"
    path = compile_program(r"""
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(void)
{
	char *arguments[] = { "true", NULL }, *none[] = { "none", NULL };
	int status;
	pid_t child = fork();
	if (!child) {
		usleep(1000);
		_exit(5);
	}
	waitpid(child, &status, 0);
	printf("%d %d\n", (int)child, WEXITSTATUS(status));
	fflush(stdout);
	if (!fork()) {
		execvp("/nonexistent", none);
		execvp("true", arguments);
	}
	wait(&status);
	if (posix_spawnp(&child, "true", NULL, NULL, arguments, environ))
		return 1;
	waitpid(child, NULL, 0);
	exit(3);
}""")
    out, events = record([path], "APP::Program::*", 3)
    child, status = out.split()
    equal(status, "5", "exit status of the child")
    name = "APP::Program::"
    equal((count(events, name + "Fork", child=child), count(events, name + "ForkChild", child=child, pid=child)), (1, 1), "pair")
    equal((count(events, name + "Exec", path="true"), count(events, name + "ExecFail", path="/nonexistent", error=2)), (1, 1), "exec")
    equal(count(events, name + "Spawn", path="true", status=0), 1, "spawn")
    equal(balanced(events, name + "WaitBegin", name + "WaitEnd"), 3, "waits")
    equal(count(events, name + "SleepBegin", time=1000000, isAbsolute=0), 1, "sleeps")
    equal((count(events, name + "Exit", status=5), count(events, name + "Exit", status=3)), (1, 1), "exits")


@test
def libraries():
    "dlopen and dlclose show, and a bare name is still found by the RUNPATH of who asks"
    need("cc")
    folder = tmp()
    with open(folder + "/l.c", "w") as file:
        file.write("int pem_test_answer(void) { return 42; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder + "/libpemtest.so", folder + "/l.c"], check=True)
    source = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);
		int (*answer)(void) = library ? dlsym(library, "pem_test_answer") : 0;
		printf("%d\n", answer ? answer() : -1);
		if (library)
			dlclose(library);
	}
	return 0;
}"""
    path = compile_program(source, flags=["-Wl,-rpath," + folder, "-Wl,--enable-new-dtags", "-ldl"])
    out, events = record([path, "libpemtest.so", folder + "/libpemtest.so", "/nonexistent.so"], "APP::Loader::*")
    equal(out, "42\n42\n-1\n", "answers")
    name = "APP::Loader::"
    equal(balanced(events, name + "OpenBegin", name + "OpenEnd", "name"), 2, "calls that do not depend on the caller")
    equal((count(events, name + "OpenEnd", handle="0x0"), count(events, name + "CloseEnd", status=0)), (1, 2), "results")


@test
def nothing_is_lost():
    "with every event on, libpem's own calls raise none: no event is lost in many short processes"
    need_preload()
    folder = tmp()
    command = ["sh", "-c", "for i in 1 2 3; do (true | cat); done"]
    equal(run([PEM, "record", "-q", "-e", ALL, "-o", folder + "/t", "--"] + command)[0], 0, "exit status")
    rc, out, err = run([PEM, "report", "--json", folder + "/t"])
    equal(rc, 0, "exit status of report, with " + err)
    balance = json.loads(out)["events"]
    equal((balance["discarded"], balance["produced"] > 50), (0, True), "balance %s" % balance)


@test
def python_with_everything_on():
    "python3 with threads, locks and a child process prints the same when every event is recorded"
    events = same_when_recorded([
        "python3", "-c", "import threading, subprocess, queue\n"
        "q = queue.Queue(); r = []\n"
        "t = [threading.Thread(target=lambda: r.append(q.get())) for i in range(8)]\n"
        "[x.start() for x in t]; [q.put(i * i) for i in range(8)]; [x.join() for x in t]\n"
        "print(sorted(r)); print(subprocess.check_output(['echo', 'child']))"])
    kinds = collections.Counter(e["event"] for e in events)
    assert kinds["APP::File::ReadBegin"] > 20 and kinds["APP::Lock::SemaphoreWaitBegin"] + kinds[
        "APP::Lock::ConditionWaitBegin"] > 0, kinds


@test
def xz_with_everything_on():
    "xz with two threads packs the same when every event is recorded, and its locks balance (two workers end waiting)"
    folder = tmp()
    with open(folder + "/data", "w") as file:
        file.writelines("%d %d\n" % (i, i * i % 1009) for i in range(50000))
    need("xz")
    out, events = record(["sh", "-c", "xz -T2 --block-size=65536 -c %s/data | xz -dc | cksum" % folder], ALL)
    equal(out, run(["sh", "-c", "cksum < %s/data" % folder])[1], "what comes out")
    assert balanced(events, "APP::Lock::MutexAcquire", "APP::Lock::MutexRelease", "mutex", unfinished=2) > 100, len(events)


@test
def shells_with_everything_on():
    "bash with pipes and subshells, and perl that forks, print the same when every event is recorded"
    same_when_recorded(["bash", "-c", "trap 'echo bye' EXIT; for i in 1 2 3; do (echo $i; exit $i) | cat; done; "
                        "echo $(echo nested $(echo deeper)); (sleep 0.01 & wait; echo waited)"])
    same_when_recorded(["perl", "-e", "$| = 1; if (my $p = fork) { waitpid $p, 0; print $? >> 8, qq(\\n) } else { exit 3 }"])


run_all()
