# SPDX-License-Identifier: MIT
"""
libc_habits.py - programs with habits of their own: environments that can't be read, a libpem of their own,
errno that nobody sets
"""
import os

from preload import compile_program, need_preload, recorded_by_all
from tap import BUILD, PEM, equal, run, run_all, skip, test, tmp

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


# The first call of a program may fail, and its error be looked for in errno only then.
STARTS = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
static int early;
__attribute__((constructor)) static void begin(void) { early = errno; }
static void end(void) { printf("%d %d\n", early, errno); }
int main(void)
{
	int at_start = errno;

	atexit(end);
	printf("%d ", at_start);
	return 0;
}
"""


@test
def errno_at_the_start():
    "errno is 0 when a program starts, if a verb of pem starts it, and with each library that is preloaded"
    need_preload()
    program = compile_program(STARTS)
    equal(run([program])[:2], (0, "0 0 0\n"), "alone")
    for verb in (["record", "-q", "-e", "APP::Libc"], ["stat", "-e", "APP::Libc"], ["run"]):
        for options in ([], ["--no-libc"]):
            more = options + (["-o", tmp() + "/out"] if verb[0] in ("record", "stat") else [])
            rc, out, err = run([PEM] + verb + more + ["--", program])
            equal((rc, out), (0, "0 0 0\n"), "under pem %s, with %s" % (" ".join(verb + options), err))
    for name in sorted(os.listdir(BUILD + "/lib")):
        if name.startswith("libpem") and name.endswith((".so", ".so.1")):
            rc, out, err = run([program], env={"LD_PRELOAD": BUILD + "/lib/" + name})
            equal((rc, out), (0, "0 0 0\n"), "with %s, with %s" % (name, err))


run_all()
