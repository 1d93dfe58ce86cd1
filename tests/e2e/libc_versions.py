#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Functions of which the C library has an older version: who was linked with that one gets it under pem, too.

Not here: how a definition is found (tests/unit/elf_names.c).
"""
import os
import platform
import shutil

from preload import compile_program, count, record, recorded_by_all
from tap import equal, run_all, skip, test, tmp

# An old condition variable is a pointer. One of today is larger, and would lie over what follows it.
CONDITION = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
VERSIONS
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { pthread_cond_t *allocated; char next[64]; } old, release;
static int ready, released;
static void *work(void *arg)
{
	pthread_mutex_lock(&mutex);
	ready++;
	pthread_cond_signal((void *)&old);
	while (!released)
		pthread_cond_wait((void *)&release, &mutex);
	pthread_mutex_unlock(&mutex);
	return arg;
}
int work_with_conditions(void)
{
	struct timespec past = { 1, 0 };
	pthread_t threads[3];
	int i, late;

	memset(&old, 7, sizeof(old));
	pthread_cond_init((void *)&old, NULL);
	pthread_cond_init((void *)&release, NULL);
	pthread_mutex_lock(&mutex);
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	while (ready < 3)
		pthread_cond_wait((void *)&old, &mutex);
	late = pthread_cond_timedwait((void *)&old, &mutex, &past);
	released = 1;
	pthread_cond_broadcast((void *)&release);
	pthread_mutex_unlock(&mutex);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < (int)sizeof(old.next) && old.next[i] == 7; i++)
		;
	late = printf("%d ready, %s, %d bytes as they were\n", ready, strerror(late), i);
	return pthread_cond_destroy((void *)&old) | pthread_cond_destroy((void *)&release);
}
"""
OLD = "".join('__asm__(".symver pthread_cond_%s, pthread_cond_%s@GLIBC_2.2.5");\n' % (name, name)
              for name in ("init", "destroy", "wait", "timedwait", "signal", "broadcast"))
SAID = "3 ready, Connection timed out, 64 bytes as they were\n"


def need_older_versions():
    if platform.machine() != "x86_64":
        skip("the C library of %s has no older versions" % platform.machine())


@test
def old_conditions_by_version():
    "a program that was linked with the old condition variables waits for them, and its waits show"
    need_older_versions()
    path = compile_program(CONDITION.replace("VERSIONS", OLD) + "int main(void) { return work_with_conditions(); }")
    equal(recorded_by_all(path), SAID, "what it says")
    events = record([path], "APP::Lock::Condition*")[1]
    equal([count(events, "APP::Lock::Condition" + name) for name in ("Signal", "Broadcast")], [3, 1], "signals")
    waits = count(events, "APP::Lock::ConditionWaitBegin")
    equal([count(events, "APP::Lock::ConditionWaitEnd", status=status) for status in (0, 110)], [waits - 1, 1], "waits")


@test
def old_conditions_without_version():
    "a library that was linked without the C library, and so names no version, has old condition variables"
    need_older_versions()
    library = compile_program(CONDITION.replace("VERSIONS", ""), "libold.so", ["-fPIC", "-shared", "-nostdlib"])
    path = compile_program("int work_with_conditions(void); int main(void) { return work_with_conditions(); }", "program",
                           ["-L" + os.path.dirname(library), "-l:libold.so", "-Wl,-rpath," + os.path.dirname(library)])
    equal(recorded_by_all(path), SAID, "what it says")


@test
def old_spawn_by_version():
    "the old posix_spawn starts a script that names no interpreter in a shell, today's does not, and both show"
    need_older_versions()
    folder = tmp()
    with open(folder + "/script", "w", encoding="ascii") as file:
        file.write("echo script $1\n")
    os.chmod(folder + "/script", 0o755)
    source = r"""
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
int old_spawn(pid_t *, const char *, const void *, const void *, char *const *, char *const *);
int old_spawnp(pid_t *, const char *, const void *, const void *, char *const *, char *const *);
__asm__(".symver old_spawn, posix_spawn@GLIBC_2.2.5");
__asm__(".symver old_spawnp, posix_spawnp@GLIBC_2.2.5");
extern char **environ;
static void wait_for(int rc, const pid_t *child)
{
	int status = 0;

	if (!rc)
		waitpid(*child, &status, 0);
	printf("%s, status %d\n", strerror(rc), status);
	fflush(stdout);
}
int main(void)
{
	char *arguments[] = { "script", "one", NULL };
	pid_t child = 0;

	wait_for(old_spawn(&child, "FOLDER/script", NULL, NULL, arguments, environ), &child);
	wait_for(old_spawnp(&child, "true", NULL, NULL, arguments, environ), &child);
	wait_for(old_spawnp(&child, "FOLDER/script", NULL, NULL, arguments, environ), &child);
	wait_for(posix_spawn(&child, "FOLDER/script", NULL, NULL, arguments, environ), &child);
	wait_for(posix_spawnp(&child, "FOLDER/script", NULL, NULL, arguments, environ), &child);
	return 0;
}""".replace("FOLDER", folder)
    path = compile_program(source)
    ran, refused = "script one\nSuccess, status 0\n", "Exec format error, status 0\n"
    equal(recorded_by_all(path), ran + "Success, status 0\n" + ran + refused * 2, "what it says")
    events = record([path], "APP::Program::Spawn")[1]
    equal([count(events, "APP::Program::Spawn", status=status) for status in (0, 8)], [3, 2], "spawns that worked, and failed")
    shutil.rmtree(folder)


run_all()
