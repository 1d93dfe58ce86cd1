#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
early_allocations: allocations in constructors and destructors of libraries, counted by pem and by Valgrind

Not here: allocations of the program itself (libc_programs.py).
"""
import json
import os
import re

from preload import compile_program, need_preload, record
from tap import PEM, equal, need, run, run_all, test, tmp

EVENTS = ",".join("APP::Libc::" + name for name in "Malloc Calloc Realloc Free".split())
LIBRARY = r"""
#include <stdlib.h>
static void *kept[100];
__attribute__((constructor)) static void begin(void)
{
	for (int i = 0; i < 100; i++)
		kept[i] = i % 2 ? malloc(123) : calloc(3, 41);
	kept[0] = realloc(kept[0], 5000);
}
__attribute__((destructor)) static void end(void)
{
	for (int i = 0; i < 99; i++)
		free(kept[i]);
	free(malloc(7));
}
void linked(void);
void linked(void) {}
"""
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static void *kept[9];
static void first(void) { kept[0] = malloc(1000); }
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = first;
__attribute__((constructor)) static void begin(void)
{
	for (int i = 1; i < 9; i++)
		kept[i] = malloc(77);
}
__attribute__((destructor)) static void end(void)
{
	for (int i = 0; i < 9; i++)
		free(kept[i]);
}
int main(int argc, char **argv)
{
	int i;

	for (i = 0; i < 10; i++)
		free(malloc(55));
	for (i = 1; i < argc; i++) {
		void *handle = dlopen(argv[i], RTLD_NOW);

		if (!handle)
			return 3;
		if (i % 2)
			dlclose(handle);
	}
	return 0;
}
"""


def library(name):
    return compile_program(LIBRARY, name, ["-shared", "-fPIC"])


def by_pem(command, env=None):
    """Allocations, releases, bytes. Valgrind counts a realloc that moves a block, or might, as one of each."""
    _, events = record(command, EVENTS, env=env)
    names = [e["event"].rsplit("::", 1)[1] for e in events]
    moved = sum(e["oldAddress"] not in ("", "0", "0x0") for e in events if e["event"].endswith("Realloc"))
    return (len(names) - names.count("Free"), names.count("Free") + moved, sum(int(e["size"] or 0) for e in events))


def by_valgrind(command):
    need("valgrind")
    # The program alone: Valgrind can make the C library release what it keeps to the end.
    rc, _, err = run(["valgrind", "--run-libc-freeres=no", "--run-cxx-freeres=no"] + command, timeout=120)
    equal(rc, 0, "exit status under valgrind, with " + err)
    found = re.search(r"total heap usage: ([\d,]+) allocs, ([\d,]+) frees, ([\d,]+) bytes", err)
    return tuple(int(number.replace(",", "")) for number in found.groups())


def same_as_valgrind(command):
    need_preload()
    equal(by_pem(command), by_valgrind(command), "allocations, releases and bytes of " + " ".join(command))


@test
def linked_library():
    "what a linked library's constructor and destructor allocate and release is counted, and a program's preinit_array"
    path = library("liblinked.so")
    program = compile_program(PROGRAM, "program", ["-Wl,--no-as-needed," + path + ",-rpath," + os.path.dirname(path), "-ldl"])
    same_as_valgrind([program])


@test
def opened_libraries():
    "what constructors and destructors of opened libraries allocate is counted, whether the libraries are closed or stay"
    program = compile_program(PROGRAM, "program", ["-ldl"])
    same_as_valgrind([program, library("libclosed.so"), library("libstays.so")])


@test
def pool_of_cxx():
    "the memory that the C++ library takes before main is counted"
    same_as_valgrind([compile_program(r"""
#include <string>
#include <vector>
int main()
{
	std::vector<std::string> texts;
	for (int i = 0; i < 100; i++)
		texts.push_back(std::string(100, 'x'));
	return 0;
}
""", compiler="g++")])


@test
def lost():
    "what another library calls that the loader initializes first is counted as lost"
    need_preload()
    path = compile_program(r"""
#include <stdlib.h>
__attribute__((constructor)) static void begin(void)
{
	for (int i = 0; i < 100; i++)
		free(calloc(10, 10));
}
""", "libfirst.so", ["-shared", "-fPIC", "-Wl,-z,initfirst"])
    program = compile_program("#include <stdlib.h>\nint main(void) { free(malloc(55)); return 0; }\n")
    for events, lost in (("APP::Libc::Malloc,APP::Libc::Calloc", 100), (EVENTS, 200), ("APP::Libc::Mmap", 0)):
        trace = tmp() + "/trace"
        rc, _, err = run([PEM, "record", "-q", "-e", events, "-o", trace, program], env={"LD_PRELOAD": path})
        equal(rc, 0, "exit status, with " + err)
        rc, out, err = run([PEM, "report", "--json", trace])
        equal(rc, 0, "exit status of the report, with " + err)
        equal(json.loads(out)["events"]["discarded"], lost, "lost of " + events)


if __name__ == "__main__":
    run_all()
