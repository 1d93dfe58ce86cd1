# SPDX-License-Identifier: MIT
"""
trace_names: names that a trace keeps: the same after its programs were removed or built again, and where there is nothing
but pem and the trace; and no wrong name of a program that was replaced
"""
import json
import os
import shutil

from tap import BUILD, PEM, equal, need, run, run_all, skip, test, tmp

LONG_S = 8

LIBRARY = """#include <stdlib.h>
static void *volatile kept[64];
static __attribute__((noinline)) void allocate(int i)
{
	kept[i] = malloc(1000);
}
unsigned long work(unsigned long x)
{
	for (int i = 0; i < 64; i++)
		allocate(i);
	for (long i = 0; i < 150000000; i++)
		x = x * 6364136223846793005UL + 1;
	return x;
}
"""
PROGRAM = """#include <pthread.h>
#include <stdio.h>
pthread_mutex_t counter_lock = PTHREAD_MUTEX_INITIALIZER;
unsigned long work(unsigned long x);
static __attribute__((noinline)) unsigned long %s(unsigned long x)
{
	for (long i = 0; i < 150000000; i++)
		x = x * 6364136223846793005UL + 1;
	return x;
}
int main(void)
{
	pthread_mutex_lock(&counter_lock);
	unsigned long x = work(%s(1));
	pthread_mutex_unlock(&counter_lock);
	return x == 1;
}
"""


def build(folder, flags=(), name="spin"):
    """The library, and the program, which has no build id if the flags say so."""
    need("gcc")
    for file, text in (("work.c", LIBRARY), ("main.c", PROGRAM % (name, name))):
        with open(os.path.join(folder, file), "w", encoding="ascii") as out:
            out.write(text)
    equal(run(["gcc", "-g", "-O1", "-shared", "-fPIC", *flags, "-o", "libwork.so", "work.c"], cwd=folder)[0], 0, "library")
    equal(run(["gcc", "-g", "-O1", *flags, "-o", "program", "main.c", "-L.", "-lwork", "-Wl,-rpath," + folder, "-pthread"], cwd=folder)[0], 0,
          "program")
    return os.path.join(folder, "program")


def record(*command):
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-g", "-F", "499", "-e", "APP::Loader::Object,APP::Libc::*,APP::Lock,HW::HWPerf::HPMsAndPC", "-o", trace,
                      "--", *command])
    if rc == 2:
        skip("not recorded here: " + err.splitlines()[-1])
    equal(rc, 0, err)
    return trace


def rows(trace, by, prefix=(), pem=PEM):
    """What pem report prints as JSON: where code was, with names and numbers, but without why something has no name."""
    rc, out, err = run([*prefix, pem, "report", "--by", by, "--json", trace])
    equal(rc, 0, err)
    found = json.loads(out)[{"function": "functions", "site": "sites", "lock": "locks"}[by]]
    for row in found:
        row.pop("no_names", None)
    return sorted(json.dumps(row, sort_keys=True) for row in found)


def functions(trace):
    return {row.get("function") for row in map(json.loads, rows(trace, "function"))}


def needs(path):
    """The libraries of a program, with their paths."""
    return [word for line in run(["ldd", path])[1].splitlines() for word in line.split() if word.startswith("/")]


def bare_root(trace):
    """A folder with pem, its libraries and a trace, as the root of a command; returns what is put before the command."""
    root = tmp()
    for path in [os.path.abspath(PEM)] + needs(PEM):
        path = os.path.normpath(path)
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)
    shutil.copytree(trace, root + "/trace")
    # The loader finds the libraries beside a program by /proc.
    prefix = ["env", "LD_LIBRARY_PATH=" + os.path.abspath(BUILD + "/lib")] + (["unshare", "-r"] if os.geteuid() != 0 else []) + ["chroot", root]
    if run([*prefix, os.path.abspath(PEM), "--version"])[0] != 0:
        skip("chroot is not allowed here")
    return prefix


@test
def a_trace_in_a_bare_root():
    "after the program was removed, where there is nothing but pem and the trace, it has the same functions, sites and locks"
    folder = tmp()
    trace = record(build(folder))
    before = {by: rows(trace, by) for by in ("function", "site", "lock")}
    found = functions(trace)
    assert {"spin", "work", "allocate"} <= found, found
    shutil.rmtree(folder)
    prefix = bare_root(trace)
    for by, expected in before.items():
        equal(rows("/trace", by, prefix, os.path.abspath(PEM)), expected, "by " + by)
    folded = os.path.join(tmp(), "folded")
    equal(run([PEM, "export", "--to", "folded", trace, "-o", folded])[0], 0, "folded")
    with open(folded, encoding="utf-8") as lines:
        stacks = [line.rsplit(" ", 1)[0] for line in lines]
    assert any(stack.endswith("main;spin") for stack in stacks) and any(stack.endswith("main;work") for stack in stacks), stacks


@test
def a_program_that_was_built_again():
    "its trace has the names of the program that ran, with a build id and without"
    for flags in ((), ("-Wl,--build-id=none",)):
        folder = tmp()
        trace = record(build(folder, flags))
        before = rows(trace, "function")
        build(folder, flags, name="other")
        equal(rows(trace, "function"), before, " ".join(flags))
        found = functions(trace)
        assert "spin" in found and "other" not in found, found


@test
def replaced_without_a_build_id():
    "a program without a build id that is replaced as it runs, or of a trace that keeps no names, has none, and a sentence says why"
    folder, flags = tmp(), ("-Wl,--build-id=none",)
    new = tmp()
    build(new, flags, name="other")
    program = build(folder, flags)
    # Once its library is mapped, the program runs.
    trace = record("sh", "-c", "%s & for i in $(seq 1000); do grep -q libwork /proc/$!/maps && break; done; mv %s %s; wait $!" %
                   (program, new + "/program", program))
    found = functions(trace)
    assert "spin" not in found and "other" not in found and "work" in found, found
    text = run([PEM, "report", "--by", "function", trace])[1]
    assert "has no build id, and was changed or replaced after it ran" in " ".join(text.split()), text
    trace = record(build(folder, flags))
    for name in ("code", "data"):
        if os.path.exists(trace + "/.pem/" + name):
            os.unlink(trace + "/.pem/" + name)
    assert "spin" in functions(trace), "of a trace that keeps no names, before the program is replaced"
    build(folder, flags, name="other")
    found = functions(trace)
    assert "spin" not in found and "other" not in found, found


@test
def damaged_names():
    "names that are damaged are not used, which a sentence says; what files have is then as before"
    trace = record(build(tmp()))
    before = rows(trace, "function")
    path = trace + "/.pem/code"
    with open(path, encoding="utf-8") as file:
        good = file.read()
    for text in (good.replace("pem-code 1", "pem-code 2", 1), good + "at\tffffffff\t0\t0:0:0\n", good + "function\t0\n", good + "new\t\n"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        equal(rows(trace, "function"), before, "rows")
        shown = " ".join(run([PEM, "report", "--by", "function", trace])[1].split())
        assert "the names that the trace keeps (.pem/code) are damaged in line" in shown, shown


@test
def an_unpacked_copy():
    "a copy as CTF keeps them, too"
    folder = tmp()
    trace = record(build(folder))
    copy = os.path.join(tmp(), "copy")
    equal(run([PEM, "export", "--to", "ctf", trace, "-o", copy])[0], 0, "export")
    shutil.rmtree(folder)
    equal(rows(copy, "function"), rows(trace, "function"), "functions")
    assert "spin" in functions(copy), functions(copy)


run_all()
