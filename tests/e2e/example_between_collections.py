# SPDX-License-Identifier: MIT
"""
example_between_collections.py - the paper's Figure 4: what happens between two garbage collections, and only there
"""
import os
import re
import sys

from tap import BUILD, SAN, equal, run, run_all, skip, test, tmp

PROGRAM = os.path.join(BUILD, "examples", "between_collections")
PROGRAM_CXX = PROGRAM + "_cxx"
LINE = re.compile(r"from (\d+) to (\d+): (\d+|n/a) page faults, (\d+|n/a) cache misses")
MARGIN = 16  # faults of the stack, of code run for the first time: a few, never in proportion to the pages


def intervals(command, env=None):
    """[(begin, end, page faults, cache misses)], and what was said on standard error."""
    rc, out, err = run(command, env=env)
    if rc == 2:
        skip("no page faults here: " + err.strip().splitlines()[-1])
    equal(rc, 0, "exit status (stderr: %s)" % err)
    found = [LINE.fullmatch(line) for line in out.splitlines()]
    assert all(found), "unexpected output: " + out
    return [(int(m[1]), int(m[2]), m[3], m[4]) for m in found], err


def check(lines, collections, pages):
    equal(len(lines), collections - 1, "intervals between %d collections" % collections)
    last = 0
    # A sanitizer's shadow has a page for eight, and more for what the callbacks do.
    margin = pages // 8 + 250 if SAN else MARGIN
    for begin, end, faults, _ in lines:
        assert last < begin < end, "intervals overlap or run backwards: %r" % lines
        last = end
        assert pages <= int(faults) <= pages + margin, "%s faults, %d pages touched" % (faults, pages)


@test
def between_exact():
    "between two collections each fresh page is one fault, and nothing else counts"
    lines, _ = intervals([PROGRAM, "6", "1500"])
    check(lines, 6, 1500)


@test
def collector_not_counted():
    "the collector's own faults are not counted: they grow, the counts do not"
    # Half of the heap is kept: at collection n the collector touches nearly as many fresh pages as the mutator.
    lines, _ = intervals([PROGRAM, "12", "100"])
    check(lines, 12, 100)


@test
def no_pages_no_faults():
    "a program that touches nothing between collections has no faults there"
    lines, _ = intervals([PROGRAM, "4", "0"])
    check(lines, 4, 0)


@test
def cache_misses_or_reason():
    "cache misses are counted, or n/a with the reason on standard error"
    lines, err = intervals([PROGRAM, "3", "10"])
    absent = {misses == "n/a" for _, _, _, misses in lines}
    equal(len(absent), 1, "ways of showing cache misses")
    equal("no HW::HWPerf::CacheMisses: " in err, absent.pop(), "a reason was given")


@test
def unprivileged():
    "without privilege the faults come from the kernel's counter, with the same result"
    if os.geteuid():
        skip("this test drops privilege, and there is none to drop: run as root")
    folder = tmp()
    os.chmod(folder, 0o711)
    runtime = os.path.join(folder, "runtime")
    os.mkdir(runtime, 0o700)
    os.chown(runtime, 65534, 65534)
    rc, _, err = run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x", PROGRAM])
    if rc:
        skip("user 65534 cannot reach %s: build in a folder that others may enter" % PROGRAM)
    lines, err = intervals(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", PROGRAM, "4", "700"],
                           env={"PEM_RUNTIME_DIR": runtime, "XDG_RUNTIME_DIR": None})
    check(lines, 4, 700)
    assert "no OS::Mem::PageFault: " in err, "it does not say why the kernel's event is not used: " + err


@test
def between_in_cxx():
    "the example in C++ finds what the one in C does"
    if not os.path.exists(PROGRAM_CXX):
        skip("no C++ compiler: make deps installs g++")
    lines, _ = intervals([PROGRAM_CXX, "6", "1500"])
    check(lines, 6, 1500)
    lines, _ = intervals([PROGRAM_CXX, "12", "100"])
    check(lines, 12, 100)


@test
def between_in_python():
    "so does the one in Python"
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    env = {"PYTHONPATH": os.path.join(BUILD, "python")}
    for collections, pages in (6, 1500), (12, 100):
        lines, _ = intervals([sys.executable, PROGRAM + ".py", str(collections), str(pages)], env=env)
        check(lines, collections, pages)


run_all()
