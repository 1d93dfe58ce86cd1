#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
stacks: all calls that led to each allocation, and what was allocated from each stack of them, beside heaptrack

Not here: the one caller that an allocation counts for (allocations.py).
"""
import collections
import json
import os
import re

from heaptrack import by_heaptrack
from preload import compile_program, need_preload
from tap import BUILD, PEM, equal, need, run, run_all, skip, test, tmp

EVENTS = "APP::Libc::*alloc,APP::Libc::Free"
AMOUNTS = {"allocations": "calls", "peak": "peak", "leaked": "leaked", "temporary": "temporary"}
COSTS = {"allocations": "count", "peak": "peak_bytes", "leaked": "live_bytes", "temporary": "temporary"}


def plain(function):
    """A function's name as both tools have it: without arguments of templates, and without the C library's second names."""
    function = re.sub(r" \([^()]*\)$", "", function)
    if re.match(r"0x[0-9a-f]+$", function):
        return "?"
    while re.search(r"<[^<>]*>", function):
        function = re.sub(r"<[^<>]*>", "", function)
    return re.sub(r"^(__GI_)+|^__(?=strdup$|getpwuid_r$)|\.cold$", "", re.sub(r"^(__GI_)+", "", function))


def key_of(frames):
    """A stack's functions, from main or a thread's first on. heaptrack has functions that were inlined in another order."""
    names = [plain(frame) for frame in frames if frame]
    names = [name for name in names if not name.startswith("operator new")]
    first = [i for i, name in enumerate(names) if name in ("main", "thread")]
    return tuple(sorted(names[first[0]:] if first else names))


def recorded(command, *options):
    """The trace of a recorded command."""
    need_preload()
    if not os.path.exists(BUILD + "/programs/name_code"):
        skip("libdw-dev is missing")
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-g", "-e", EVENTS, *options, "-o", trace, "--"] + command)
    equal(rc, 0, "exit status, with " + err)
    return trace


def report_of(trace):
    """The report of a trace's stacks."""
    rc, out, err = run([PEM, "report", "--by", "stack", "--json", trace])
    equal(rc, 0, "exit status of the report, with " + err)
    report = json.loads(out)
    report["stacks"] = [stack for stack in report["stacks"] if stack["event"].startswith("APP::Libc")]  # and not of samples
    own = [frame for stack in report["stacks"] for frame in stack["frames"] if "/libpem" in frame.get("object", "")]
    equal(own, [], "frames of pem's own")
    return report


def by_stack(trace):
    """{stack: {cost: sum}}"""
    found = collections.defaultdict(collections.Counter)
    for stack in report_of(trace)["stacks"]:
        for cost, member in COSTS.items():
            found[key_of([frame.get("function", "?") for frame in reversed(stack["frames"])])][cost] += stack[member]
    return found


def folded(trace):
    """The same by pem export --to folded."""
    found = collections.defaultdict(collections.Counter)
    for cost, amount in AMOUNTS.items():
        rc, out, err = run([PEM, "export", "--to", "folded", "--of", amount, trace, "-o", "-"])
        equal(rc, 0, "exit status of the export of %s, with %s" % (amount, err))
        for line in out.splitlines():
            stack, count = line.rsplit(" ", 1)
            found[key_of(stack.split(";")[1:])][cost] += int(count)
    return found


def named(stacks):
    """The stacks without functions that have no name: several of one library are one in a folded stack."""
    found = collections.defaultdict(collections.Counter)
    for key, sums in stacks.items():
        found[tuple(name for name in key if name == "[cut off]" or not re.match(r"\?$|\[.*\]$", name))].update(sums)
    return found


def same_as_heaptrack(command, functions):
    """Each stack of functions that match has what heaptrack tells of it, in both outputs. Returns the stacks."""
    need("heaptrack", "heaptrack_print")
    trace = recorded(command)
    same_stacks(named(folded(trace)), named(by_stack(trace)), ".*")
    return same_stacks(by_stack(trace), heaptracked(command), functions)


def heaptracked(command):
    theirs = collections.defaultdict(collections.Counter)
    for cost, stacks in by_heaptrack(command, *COSTS).items():
        for frames, count in stacks:
            theirs[key_of(frames)][cost] += count
    return theirs


def same_stacks(mine, theirs, functions):
    mine, theirs = ({key: +sums for key, sums in stacks.items() if all(re.match(functions, name) for name in key)} for stacks in (mine, theirs))
    equal({key: sums for key, sums in mine.items() if theirs.get(key) != sums}, {key: sums for key, sums in theirs.items() if mine.get(key) != sums},
          "stacks that differ")
    return mine


LIBRARY = r"""
#include <stdlib.h>
__attribute__((noinline)) static void *allocate(unsigned long size)
{
	void *block = malloc(size);
	__asm__ volatile("" : "+r"(block));
	return block;
}
void *make(int times, unsigned long size)
{
	void *block = NULL;
	while (times--) {
		free(block);
		block = allocate(size);
	}
	return block;
}
"""
C = r"""
#include <pthread.h>
#include <stdlib.h>
#define APART __attribute__((noinline, noclone))
void *make(int times, unsigned long size);
static void *volatile kept[100];
static int count;
APART static void leaf(int size) { kept[count++] = calloc(size, 1); kept[count - 1] = kept[count - 1]; }
APART static void recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		leaf(10);
	kept[99] = NULL;
}
APART static void grow(void)
{
	void *volatile block = NULL;
	for (int i = 1; i <= 5; i++)
		block = realloc(block, i * 1000);
	free(block);
}
static void *thread(void *arg)
{
	recurse(2);
	kept[98] = make(4, 50);
	grow();
	return arg;
}
int main(void)
{
	pthread_t id;
	for (int i = 0; i < 4; i++)
		recurse(i);
	kept[97] = make(3, 4000);
	grow();
	for (int i = 0; i < 2; i++) {
		pthread_create(&id, NULL, thread, NULL);
		pthread_join(id, NULL);
	}
	free(kept[97]);
	return 0;
}
"""


def program_with_library():
    library = compile_program(LIBRARY, "libmake.so", ["-shared", "-fPIC"])
    return compile_program(C, flags=["-xnone", library, "-Wl,-rpath," + os.path.dirname(library)])


FUNCTIONS = r"(main|thread|recurse|leaf|make|allocate|grow)$"


@test
def c():
    "recursion, a library and threads: stacks, calls, bytes at the peak, bytes left and temporary blocks are those that are known"
    expected = {("main",) + ("recurse",) * (i + 1) + ("leaf",): (1, 10, 10, 0) for i in range(4)}
    expected[("main", "make", "allocate")] = 3, 4000, 0, 2
    expected[("main", "grow")] = 5, 0, 0, 5
    expected[("thread",) + ("recurse",) * 3 + ("leaf",)] = 2, 20, 20, 0
    expected[("thread", "make", "allocate")] = 8, 100, 100, 6
    expected[("thread", "grow")] = 10, 5000, 0, 10
    found = {key: tuple(sums[cost] for cost in COSTS) for key, sums in by_stack(recorded([program_with_library()])).items()
             if all(re.match(FUNCTIONS, name) for name in key)}
    equal(found, {tuple(sorted(key)): sums for key, sums in expected.items()}, "stacks")


@test
def c_by_heaptrack():
    "recursion, a library and threads: each stack is as heaptrack tells"
    equal(len(same_as_heaptrack([program_with_library()], FUNCTIONS)), 9, "stacks")


RUNS = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
static void *volatile kept;
APART static void big(void) { kept = malloc(1000); free(kept); }
APART static void keep(void) { kept = malloc(600); kept = NULL; }
APART static void late(void) { kept = malloc(700); free(kept); }
int main(int argc, char **argv)
{
	if (argc > 2) {
		late();
		return 0;
	}
	big();
	if (argc == 1 && fork() == 0) {
		keep();
		_exit(0);
	}
	if (argc == 2) {
		keep();
		execl(argv[0], argv[0], "", "", NULL);
	}
	wait(NULL);
	late();
	return 0;
}
"""


@test
def peaks_of_runs():
    "a process that ended, and a program that an exec ended, hold nothing when another holds most"
    program = compile_program(RUNS)
    for arguments, expected in (([], {"big": 1000, "keep": 600, "late": 0}), (["exec"], {"big": 1000, "keep": 0, "late": 700})):
        found = by_stack(recorded([program, *arguments]))
        equal({key[-1] if key[0] == "main" else key[0]: sums["peak"] for key, sums in found.items() if len(key) == 2 and "main" in key}, expected,
              "bytes at the peak")


LEAKS = r"""
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
static void *volatile until_exit, *volatile until_end, *volatile kept;
APART static void direct(void) { kept = malloc(100); kept = NULL; }
APART static void in_thread(void) { kept = malloc(200); kept = NULL; }
APART static void in_child(void) { kept = malloc(300); kept = NULL; }
APART static void freed_at_exit(void) { until_exit = malloc(1000); kept = NULL; }
APART static void freed_at_end(void) { until_end = malloc(2000); kept = NULL; }
static void at_exit(void) { free(until_exit); }
__attribute__((destructor)) static void at_end(void) { free(until_end); }
static void *thread(void *arg) { in_thread(); return arg; }
int main(int argc, char **argv)
{
	pthread_t id;
	atexit(at_exit);
	freed_at_exit();
	freed_at_end();
	direct();
	if (argc == 1)
		return 0;
	pthread_create(&id, NULL, thread, NULL);
	pthread_join(id, NULL);
	if (fork() == 0) {
		in_child();
		exit(0);
	}
	wait(NULL);
	return 0;
}
"""
LEAKED = {"direct": 100, "in_thread": 200, "in_child": 300, "freed_at_exit": 0, "freed_at_end": 0}


@test
def leaks():
    "what main, a thread and a forked child leave is leaked; what is freed as the process exits, by atexit or a destructor, is not"
    found = {name: sums["leaked"] for key, sums in by_stack(recorded([compile_program(LEAKS, flags=["-pthread"]), "fork"])).items()
             for name in key if name in LEAKED}
    equal(found, LEAKED, "bytes leaked")


def leaked_by_valgrind(command):
    """(bytes, blocks) in use at exit, if neither C library is asked to free its own."""
    err = run(["valgrind", "--run-libc-freeres=no", "--run-cxx-freeres=no", *command])[2]
    in_use = re.search(r"in use at exit: ([\d,]+) bytes in ([\d,]+) blocks", err)
    assert in_use, err
    return tuple(int(number.replace(",", "")) for number in in_use.groups())


@test
def leaks_by_valgrind():
    "the bytes that are leaked, by C, C++ and a package whose libraries have destructors, are those that Valgrind finds in use at exit"
    need("valgrind", "gs")
    # Without threads: the loader allocates 16 bytes more for each, as libpem has thread-local memory.
    postscript = tmp() + "/page.ps"
    with open(postscript, "w", encoding="utf-8") as file:
        file.write("%!PS\n/Times-Roman findfont 20 scalefont setfont 100 100 moveto (page) show showpage\n")
    for command in ([compile_program(LEAKS, flags=["-pthread"])], [compile_program(CXX, compiler="g++")],
                    ["gs", "-q", "-dNOPAUSE", "-dBATCH", "-sDEVICE=pbmraw", "-sOutputFile=/dev/null", postscript]):
        stacks = report_of(recorded(command))["stacks"]
        equal(sum(stack["live_bytes"] for stack in stacks), leaked_by_valgrind(command)[0], "bytes leaked by " + command[0])


CXX = r"""
#include <map>
#include <memory>
#include <string>
#include <vector>
#define APART __attribute__((noinline))
struct Node { int k; std::unique_ptr<Node> l, r; Node(int d);  };
std::unique_ptr<Node> build(int d) { return d ? std::make_unique<Node>(d) : nullptr; }
APART Node::Node(int d) : k(d), l(build(d - 1)), r(build(d - 1)) {}
APART void fill(std::map<int, std::string> &map)
{
	for (int i = 0; i < 20; i++)
		map[i % 7] = std::string(30 + i, 'x');
}
struct Numbers { int operator()() const { std::vector<int> v; for (int i = 0; i < 1000; i++) v.push_back(i); return v[5]; } };
template <class F> APART int apply(F f) { return f(); }
static int *volatile left;
int main()
{
	auto tree = build(4);
	std::map<int, std::string> map;
	fill(map);
	left = new int[100];
	return apply(Numbers()) != 5;
}
"""


@test
def cxx_by_heaptrack():
    "C++ with functions that were inlined: each stack is as heaptrack tells"
    found = same_as_heaptrack([compile_program(CXX, compiler="g++")], r"(?!_dl|call_init|\[cut off\])")
    equal(sum(sums["allocations"] for key, sums in found.items() if "Node::Node(int)" in key), 14, "calls below the tree's root")


@test
def package_by_heaptrack():
    "sqlite3, of a package: each stack is as heaptrack tells"
    need("sqlite3")
    command = ["sqlite3", "-batch", "-init", "/dev/null", ":memory:", "create table t(a); insert into t values (1), (2); select * from t"]
    found = same_as_heaptrack(command, r"(?!_dl|call_init|\[cut off\])")
    assert len(found) > 50 and any("sqlite3Malloc" in key for key in found), found


if __name__ == "__main__":
    run_all()
