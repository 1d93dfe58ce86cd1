# SPDX-License-Identifier: MIT
"""page_size_profile: the tool for Valgrind profiles unmodified programs (agents/page-size/valgrind)"""
import glob
import os
import re
import signal
import subprocess
import sys

from page_profile import Profile, STORE

from tap import BUILD, SAN, equal, need, run, run_all, skip, start, test, tmp

LONG_S = 28

TOOLS = os.path.join(BUILD, "lib", "pem", "valgrind")
PROGRAM = os.path.join(BUILD, "programs", "allocates")
MIB = 1 << 20


def command(path, words, *options):
    """A command that runs words under the tool, with its profile at path."""
    need("valgrind")
    if not os.path.exists(TOOLS + "/pem-page-size-amd64-linux"):
        skip("the tool is not built: valgrind's libraries for x86-64 are missing (make deps)")
    return ["valgrind", "-q", "--tool=pem-page-size", "--profile=" + path, *options, *words]


ENVIRONMENT = {"VALGRIND_LIB": TOOLS}


def observe(words, *options):
    """Run words to the end: (stdout, profile)."""
    path = tmp() + "/profile"
    rc, out, err = run(command(path, words, *options), env=ENVIRONMENT)
    equal((rc, err), (0, ""), "exit status and stderr of " + " ".join(words))
    return out, Profile(path)


def build_id(path):
    """Its first eight bytes, as a number."""
    need("readelf")
    return int(re.search(r"Build ID: (\w{16})", run(["readelf", "-n", path])[1]).group(1), 16)


def heap_of(profile, low, high):
    """The number of the one heap site of the program that asked for so many bytes."""
    own = build_id(PROGRAM)
    found = [i for i, site in enumerate(profile.sites)
             if site.kind == "heap" and site.frames[0][0] == own and low <= profile.bytes(i) <= high]
    equal(len(found), 1, "heap sites of %d to %d bytes" % (low, high))
    return found[0]


def call_returns(symbol):
    """Offsets in the program behind each call of a function."""
    need("objdump")
    lines = run(["objdump", "-d", "--no-show-raw-insn", PROGRAM])[1].splitlines()
    return [int(after.split(":")[0], 16) for line, after in zip(lines, lines[1:])
            if re.search(r"call\s.*<%s" % symbol, line) and re.match(r" +[0-9a-f]+:", after)]


def not_with_o1():
    if SAN:
        skip("a sanitized build compiles this program with -O1: it has other loads and stores than the test counts")


@test
def arrays_are_told_apart_and_counted():
    "each array's site has its bytes and every one of its references"
    out, profile = observe([PROGRAM, "arrays"])
    equal(out, "started\ndone\n", "output")
    hot, cold = heap_of(profile, 8 * MIB, 9 * MIB), heap_of(profile, 3 * MIB, 4 * MIB)
    equal((profile.loads(hot), profile.loads(cold)), (100000, 1000), "loads")
    data = profile.sites.index(("data", ((build_id(PROGRAM), 0),)))
    assert 5000 <= profile.loads(data) < 5000 + 3 * 106000 + 10000, profile.loads(data)
    equal(profile.objects[build_id(PROGRAM)], PROGRAM, "path of the object")


@test
def frames_are_return_addresses():
    "the first frame is where the allocating function returns to, in the program's own offsets"
    profile = observe([PROGRAM, "arrays"])[1]
    site = profile.sites[heap_of(profile, 8 * MIB, 9 * MIB)]
    assert site.frames[0][1] in call_returns("[mc]alloc@plt"), site  # GCC makes calloc of malloc and memset


@test
def callers_of_a_wrapper_are_told_apart():
    "two callers of one wrapper around malloc are two sites, equal in their first frame"
    profile = observe([PROGRAM, "wrapped"])[1]
    first = profile.sites[heap_of(profile, MIB, MIB + 4096)]
    second = profile.sites[heap_of(profile, 2 * MIB, 2 * MIB + 4096)]
    equal(first.frames[0], second.frames[0], "first frame")
    assert first.frames[1] != second.frames[1]
    for site in first, second:
        assert site.frames[1][1] in call_returns("allocate>"), site


@test
def chains_are_marked():
    "loads that wait for the one before are marked, and random ones are not"
    not_with_o1()
    profile = observe([PROGRAM, "chain"])[1]
    site = heap_of(profile, 4096 * 64, 4096 * 64 + 4096)
    assert profile.chained(site) > 0.95 * 100000, profile.chained(site)
    profile = observe([PROGRAM, "arrays"])[1]
    equal(profile.chained(heap_of(profile, 8 * MIB, 9 * MIB)), 0, "chained loads of an array")


@test
def mapped_memory_has_a_site():
    "private anonymous mmap has the site of its caller"
    profile = observe([PROGRAM, "anonymous"])[1]
    own = build_id(PROGRAM)
    found = [i for i, site in enumerate(profile.sites) if site.kind == "map" and site.frames[0][0] == own]
    equal(len(found), 1, "sites")
    equal(profile.bytes(found[0]), 4 * MIB, "bytes")
    equal(profile.loads(found[0]), 1000, "loads")


@test
def blocks_hold_what_is_written():
    "blocks that come, grow and go keep their contents and alignment"
    equal(observe([PROGRAM, "blocks"])[0], "started\ndone\n", "output")


@test
def a_burst_is_of_one_thread():
    "threads have bursts of their own, with all their references"
    profile = observe([PROGRAM, "threads"])[1]
    site = heap_of(profile, MIB, MIB + 4096)
    equal(profile.loads(site), 400000, "loads")
    by = {burst.thread for burst in profile.bursts if site in burst.sites}
    equal(len(by), 2, "threads that read the array")


@test
def references_follow_each_other():
    "bursts are in order, and the end counts what they hold"
    profile = observe([PROGRAM, "threads"])[1]
    at = 0
    for burst in profile.bursts:
        equal(burst.at, at, "number of the first reference")
        at += len(burst.references)
    equal(profile.end.references, at, "references in all")
    assert profile.end.instructions > at
    equal((profile.end.lost, profile.end.stopped_at), (0, 0), "lost and stopped")


@test
def a_long_program_keeps_some_windows():
    "a bounded file has windows that are spread evenly over all references"
    not_with_o1()
    profile = observe([PROGRAM, "arrays"], "--burst=1024", "--keep=131072")[1]
    assert 4 * 1024 <= profile.kept() <= 131072 // 8, profile.kept()
    windows = sorted({burst.at // 1024 for burst in profile.bursts})
    steps = {b - a for a, b in zip(windows, windows[1:])}
    equal(len(steps), 1, "distances of windows in %r" % windows)
    assert profile.end.references - windows[-1] * 1024 <= (steps.pop() + 1) * 1024
    hot = heap_of(profile, 8 * MIB, 9 * MIB)
    assert profile.loads(hot) > 100, profile.loads(hot)


@test
def a_signal_handler_loses_nothing():
    "references around signal handlers are all there, once"
    profile = observe([PROGRAM, "signals"])[1]
    equal(profile.loads(heap_of(profile, MIB, MIB + 4096)), 10000, "loads")


@test
def a_child_has_a_file_of_its_own():
    "after fork the child writes FILE.PID, and the parent's file is whole"
    path = tmp() + "/profile"
    equal(run(command(path, [PROGRAM, "forks"]), env=ENVIRONMENT)[0], 0, "exit status")
    (child_path,) = glob.glob(path + ".*")
    parent, child = Profile(path), Profile(child_path)
    equal(child_path, "%s.%d" % (path, child.pid), "name")
    equal(parent.loads(heap_of(parent, MIB, MIB + 4096)), 1500, "loads of the parent")
    equal(child.loads(heap_of(child, MIB, MIB + 4096)), 7000, "loads of the child")
    assert parent.end and child.end


@test
def a_program_that_is_started_has_its_own():
    "a program that a shell starts has a file of its own with --trace-children"
    path = tmp() + "/profile"
    equal(run(command(path, ["/bin/sh", "-c", PROGRAM + " wrapped; :"], "--trace-children=yes"), env=ENVIRONMENT)[0], 0,
          "exit status")
    names = [set(Profile(name).objects.values()) for name in glob.glob(path + "*")]
    assert any(PROGRAM in objects for objects in names), names


@test
def a_file_that_exists_is_kept():
    "a file with something in it is not overwritten; an empty one is taken"
    folder = tmp()
    for name, text in ("full", "mine"), ("empty", ""):
        with open(folder + "/" + name, "w", encoding="utf-8") as file:
            file.write(text)
        equal(run(command(folder + "/" + name, [PROGRAM, "wrapped"]), env=ENVIRONMENT)[0], 0, "exit status")
    with open(folder + "/full", encoding="utf-8") as file:
        equal(file.read(), "mine", "the file that was there")
    equal(len(glob.glob(folder + "/full.*")), 1, "files beside it")
    assert Profile(folder + "/empty").end


@test
def a_killed_program_leaves_a_cut_profile():
    "what was kept before SIGKILL can be read"
    path = tmp() + "/profile"
    child = start(command(path, [PROGRAM, "forever"]), env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    while not os.path.exists(path) or os.path.getsize(path) < 2 * MIB:
        equal(child.poll(), None, "exit status")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    profile = Profile(path)
    equal(profile.end, None, "end")
    assert profile.kept() > 100000, profile.kept()


@test
def the_limit_ends_the_observation_only():
    "after --limit the program runs on without being observed, to its end"
    path = tmp() + "/profile"
    words = [sys.executable, "-c", "import time\nend = time.monotonic() + 2.5\n"
             "while time.monotonic() < end: pass\nprint('done')"]
    rc, out, _ = run(command(path, words, "--limit=1", "--keep=1048576"), env=ENVIRONMENT)
    equal((rc, out), (0, "done\n"), "exit status and output")
    end = Profile(path).end
    assert end.stopped_at and end.stopped_at == end.references, end


@test
def children_are_left_alone_where_that_is_asked_for():
    "with --follow-fork=no, and after --limit, a child has no file, and runs as it would"
    path = tmp() + "/profile"
    equal(run(command(path, [PROGRAM, "forks"], "--follow-fork=no"), env=ENVIRONMENT)[0], 0, "exit status")
    equal(glob.glob(path + ".*"), [], "files of the child")
    equal(Profile(path).loads(heap_of(Profile(path), MIB, MIB + 4096)), 1500, "loads of the parent")
    words = [sys.executable, "-c", "import os, time\nend = time.monotonic() + 2\n"
             "while time.monotonic() < end: pass\nif not os.fork(): print(sum(range(300000))); os._exit(0)\n"
             "os.wait(); print('done')"]
    path = tmp() + "/profile"
    rc, out, _ = run(command(path, [words[0], "-u", *words[1:]], "--limit=1", "--keep=1048576"), env=ENVIRONMENT)
    equal((rc, out), (0, "44999850000\ndone\n"), "exit status and output")
    equal(glob.glob(path + ".*"), [], "files of the child after the limit")


@test
def zeroed_memory_is_not_touched():
    "a large calloc takes no memory until it is used, and is zero where it is used again"
    words = [sys.executable, "-c", "import ctypes\nc = ctypes.CDLL(None)\n"
             "c.calloc.restype = c.malloc.restype = ctypes.c_void_p\nc.free.argtypes = [ctypes.c_void_p]\n"
             "n = 1 << 30\nc.free(c.calloc(1, n))\np = c.malloc(2 << 20)\nctypes.memset(p, 7, 2 << 20)\nc.free(p)\n"
             "p = c.calloc(2, 1 << 20)\nprint(any(ctypes.string_at(p, 2 << 20)))\n"
             "print([int(line.split()[1]) < 400000 for line in open('/proc/self/status') if line.startswith('VmHWM')])"]
    equal(observe(words, "--keep=1048576")[0], "False\n[True]\n", "output")


@test
def a_full_disk_ends_the_profile_only():
    "where the file can't be written, that is said once and the program runs"
    rc, out, err = run(command("/nowhere/profile", [PROGRAM, "wrapped"]), env=ENVIRONMENT)
    equal((rc, out), (0, "started\ndone\n"), "exit status and output")
    equal(err.count("/nowhere/profile"), 1, "sentences in " + err)


@test
def a_static_program_has_no_heap():
    "malloc of a static program is its own: it has no heap sites, and runs"
    profile = observe([PROGRAM + "_static", "arrays"])[1]
    assert not [site for site in profile.sites if site.kind == "heap"], profile.sites
    assert profile.kept() > 100000, profile.kept()


@test
def real_programs_run_as_without():
    "python3 and sqlite3 print what they print without the tool, and have sites"
    need("sqlite3")
    for words in ([sys.executable, "-c", "d = {i: str(i) for i in range(50000)}; print(sum(map(len, d.values())))"],
                  ["sqlite3", ":memory:", "create table t(a, b); with recursive n(i) as (select 1 union all "
                   "select i + 1 from n where i < 5000) insert into t select i, hex(i) from n; "
                   "select count(distinct b), sum(a) from t;"]):
        out, profile = observe(words)
        equal(out, run(words)[1], "output of " + words[0])
        assert any(site.kind == "heap" for site in profile.sites)
        assert any(reference & STORE for burst in profile.bursts for reference in burst.references)


@test
def the_tool_says_what_is_wrong_with_an_option():
    "a wrong number is refused, and help names the options"
    rc, _, err = run(command("p", ["true"], "--burst=1"), env=ENVIRONMENT, cwd=tmp())
    assert rc and "--burst" in err, err
    out = run(command("p", [], "--help"), env=ENVIRONMENT)[1]
    for option in "--profile", "--burst", "--keep", "--limit":
        assert option in out, option


run_all()
