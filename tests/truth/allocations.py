#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
allocations: who allocates, where functions allocate for their callers: operator new, strdup, xmalloc and the like

Not here: sites of calls without such a function (report_sites.py), and all calls of a stack (stacks.py).
"""
import collections
import json
import os
import re

from heaptrack import by_heaptrack
from preload import compile_program, need_preload
from tap import BUILD, PEM, equal, need, run, run_all, skip, test, tmp

EVENTS = ",".join("APP::Libc::" + name for name in "Malloc Calloc Realloc Free".split()) + ",APP::Loader::Object"
CXX = r"""
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>
#define APART __attribute__((noinline))
struct Node { int k; Node *l, *r; };
APART Node *build(int d) { return d ? new Node{d, build(d - 1), build(d - 1)} : nullptr; }
APART int numbers() { std::vector<int> v; for (int i = 0; i < 1000; i++) v.push_back(i); return v[5]; }
APART char *text() { char *s = nullptr; for (int i = 0; i < 50; i++) { free(s); s = strdup("a text that is copied"); } return s; }
APART void leak() { for (int i = 0; i < 100; i++) { volatile char *p = (char *)malloc(100); p[0] = 1; } }
APART double *doubles(int n) { return new double[n]; }
int main()
{
	char *s = text();
	delete[] doubles(10);
	leak();
	int sum = numbers();
	return !build(5) + !s + (sum != 5);
}
"""


def recorded_sites(command, env=None):
    """The call sites of a recorded command."""
    need_preload()
    if not os.path.exists(BUILD + "/programs/name_code"):
        skip("libdw-dev is missing")
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-e", EVENTS, "-o", trace, "--"] + command, env=env)
    equal(rc, 0, "exit status, with " + err)
    rc, out, err = run([PEM, "report", "--by", "site", "--json", trace])
    equal(rc, 0, "exit status of the report, with " + err)
    return json.loads(out)["sites"]


def function_of(site):
    """Inlined functions count under the one that has them."""
    return site["names"][-1]["function"].split("(")[0] if site["names"] else "?"


def by_function(command, env=None):
    """Calls that allocate, by function."""
    found = collections.Counter()
    for site in recorded_sites(command, env):
        found[function_of(site)] += site["count"]
    return found


def of(stacks, function):
    return sum(cost for frames, cost in stacks if any(re.match(r"%s\b" % function, frame) for frame in frames))


@test
def cxx():
    "new, new[] and strdup count for the functions that call them, as often as heaptrack tells"
    program = compile_program(CXX, compiler="g++")
    found = by_function([program])
    equal({name: found[name] for name in ("build", "leak", "text", "doubles")},
          {"build": 31, "leak": 100, "text": 50, "doubles": 1}, "calls by function")
    grows = sum(count for name, count in found.items() if "vector<" in name)
    stacks = by_heaptrack([program], "allocations")["allocations"]
    for name, count in (("build", 31), ("leak", 100), ("text", 50), ("doubles", 1), ("numbers", grows)):
        equal(of(stacks, name), count, "by heaptrack: " + name)
    assert not {"operator new", "_Znwm", "strdup", "__strdup"} & set(found), found


LIFE = r"""
#include <stdlib.h>
#define APART __attribute__((noinline))
static void *volatile kept[300];
APART static void leaks(void) { for (int i = 0; i < 30; i++) kept[i] = malloc(100); }
APART static void passes(void) { for (int i = 0; i < 50; i++) { kept[299] = malloc(64); free(kept[299]); } }
APART static void grows(void)
{
	void *volatile block = NULL;
	for (int i = 1; i <= 40; i++)
		block = realloc(block, i * 1000);
	kept[298] = calloc(3, 7);
	free(block);
}
APART static void mounts(void) { for (int i = 100; i < 200; i++) kept[i] = malloc(4000); }
APART static void falls(void) { for (int i = 100; i < 200; i++) free(kept[i]); }
APART static void later(void) { kept[297] = malloc(5000); }
int main(void)
{
	leaks();
	passes();
	grows();
	mounts();
	falls();
	later();
	grows();
	return 0;
}
"""


@test
def life():
    "calls, bytes at the peak, bytes left and temporary blocks of each function are those of heaptrack"
    program = compile_program(LIFE)
    mine = collections.defaultdict(collections.Counter)
    for site in recorded_sites([program]):
        for key in ("count", "peak_bytes", "live_bytes", "temporary"):
            mine[function_of(site)][key] += site[key]
    peer = by_heaptrack([program], "allocations", "peak", "leaked", "temporary")
    for name in ("leaks", "passes", "grows", "mounts", "later"):
        theirs = [of(stacks, name) for stacks in peer.values()]
        equal([mine[name][key] for key in ("count", "peak_bytes", "live_bytes", "temporary")], theirs, name)
    equal((mine["passes"]["temporary"], mine["leaks"]["live_bytes"], mine["mounts"]["peak_bytes"]), (50, 3000, 400000), "known")


C = r"""
#include <stdlib.h>
#include <string.h>
static void *volatile kept;
__attribute__((noinline)) static void *%s(size_t size)
{
	void *block = malloc(size);
	if (!block)
		abort();
	kept = block;
	return block;
}
__attribute__((noinline)) static char *xstrdup(const char *text)
{
	char *copy = %s(strlen(text) + 1);
	strcpy(copy, text);
	kept = copy;
	return copy;
}
__attribute__((noinline)) static int caller(void)
{
	for (int i = 0; i < 7; i++)
		kept = %s(10);
	return kept == NULL;
}
__attribute__((noinline)) static int copier(void)
{
	for (int i = 0; i < 5; i++)
		kept = xstrdup("text");
	return kept == NULL;
}
int main(void) { return caller() + copier(); }
"""


@test
def static_function():
    "a program's xmalloc counts for its callers, and so does a wrapper that calls it"
    found = by_function([compile_program(C.replace("%s", "xmalloc"))])
    equal((found["caller"], found["copier"], found["xmalloc"], found["xstrdup"]), (7, 5, 0, 0), "calls by function")


@test
def named_by_user():
    "a function that PEM_WRAPPERS names counts for its callers, and alone for itself"
    program = compile_program(C.replace("%s", "my_alloc"))
    found = by_function([program])
    equal((found["caller"], found["copier"], found["my_alloc"]), (0, 0, 12), "calls by function")
    found = by_function([program], env={"PEM_WRAPPERS": "other,my_al*"})
    equal((found["caller"], found["copier"], found["my_alloc"]), (7, 5, 0), "calls by function, with the name")


@test
def without_tables():
    "a wrapper without unwind tables keeps its allocations"
    found = by_function([compile_program(C.replace("%s", "xmalloc"), flags=["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"])])
    equal((found["caller"], found["xmalloc"]), (0, 12), "calls by function")


@test
def glib():
    "g_malloc and g_strdup count for their callers"
    program = compile_program(r"""
#include <dlfcn.h>
#include <stddef.h>
static void *volatile kept;
static void *(*allocate)(size_t);
static char *(*copy)(const char *);
__attribute__((noinline)) static int blocks(void)
{
	for (int i = 0; i < 7; i++)
		kept = allocate(100);
	return kept == NULL;
}
__attribute__((noinline)) static int texts(void)
{
	for (int i = 0; i < 5; i++)
		kept = copy("text");
	return kept == NULL;
}
int main(void)
{
	void *handle = dlopen("libglib-2.0.so.0", RTLD_NOW);
	if (!handle)
		return 77;
	allocate = (void *(*)(size_t))dlsym(handle, "g_malloc");
	copy = (char *(*)(const char *))dlsym(handle, "g_strdup");
	return blocks() + texts();
}
""", flags=["-ldl"])
    if run([program])[0] == 77:
        skip("GLib is missing")
    found = by_function([program])
    equal((found["blocks"], found["texts"]), (7, 5), "calls by function")


if __name__ == "__main__":
    run_all()
