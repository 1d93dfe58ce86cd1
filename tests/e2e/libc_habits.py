# SPDX-License-Identifier: MIT
"""
libc_habits.py - programs with habits of their own: environments that can't be read, a libpem of their own
"""
import os

from preload import compile_program, recorded_by_all
from tap import BUILD, equal, run_all, skip, test

UNREADABLE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(void)
{
	char *arguments[] = {"true", NULL}, *none[] = {NULL};
	pid_t child = 0;
	int status = 0, rc;

	environ = (char **)8;
	execvp("/bin/true", arguments);
	printf("%s\n", strerror(errno));
	execvpe("/nothere", arguments, none);
	printf("%s\n", strerror(errno));
	rc = posix_spawnp(&child, "/bin/true", NULL, NULL, arguments, none);
	waitpid(child, &status, 0);
	printf("%d %d\n", rc, status);
	fflush(stdout);
	return execvpe("/bin/true", arguments, none);
}
"""


@test
def unreadable_environments():
    "a program whose environment can't be read starts others as it does alone"
    equal(recorded_by_all(compile_program(UNREADABLE)), "Bad address\nNo such file or directory\n0 0\n", "what it says")


EXPORTS = r"""
#include <pem/pem.h>
#include <stdio.h>
int main(void)
{
	puts("hi");
	return pem_version() == NULL;
}
"""


@test
def exports_a_libpem():
    "a program that has libpem.a in it, and exports it, keeps its hands off what belongs to the one that is preloaded"
    if not os.path.exists(BUILD + "/lib/libpem.a"):
        skip("libpem.a is not built")
    program = compile_program(EXPORTS, flags=["-rdynamic", "-Ilibpem/include", "-Ispec/abi", "-x", "none", "-Wl,--whole-archive", BUILD + "/lib/libpem.a",
                                              "-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"])
    equal(recorded_by_all(program), "hi\n", "what it says")


run_all()
