# SPDX-License-Identifier: MIT
"""page_size_hooks: programs compiled with -fsanitize=thread and linked with pem's runtime profile themselves"""
import glob
import os
import re
import signal
import subprocess

from hooks import COMPILERS, LIBRARY, asked, build, observe
from page_profile import STORE, Profile
from tap import equal, need, run, run_all, skip, start, test, tmp

LONG_S = 20

MIB = 1 << 20
ALLOCATES = "tests/programs/allocates.c"
LIFE = "tests/programs/hook_life.c"
COMPILER = 2  # enum profile_source


def build_id(path):
    need("readelf")
    return int(re.search(r"Build ID: (\w{16})", run(["readelf", "-n", path])[1]).group(1), 16)


def heap_of(profile, program, low, high):
    """The number of the one heap site of the program that asked for so many bytes."""
    own = build_id(program)
    found = [i for i, site in enumerate(profile.sites)
             if site.kind == "heap" and site.frames[0][0] == own and low <= profile.bytes(i) <= high]
    equal(len(found), 1, "heap sites of %d to %d bytes" % (low, high))
    return found[0]


def call_returns(program, symbol):
    """Offsets in the program behind each call of a function."""
    need("objdump")
    lines = run(["objdump", "-d", "--no-show-raw-insn", program])[1].splitlines()
    return [int(after.split(":")[0], 16) for line, after in zip(lines, lines[1:])
            if re.search(r"call\s.*<%s" % symbol, line) and re.match(r" +[0-9a-f]+:", after)]


@test
def arrays_are_told_apart_and_counted():
    "each array's site has its bytes and every one of its references, at its return address, with each compiler"
    for compiler in COMPILERS:
        program = build(ALLOCATES, compiler)
        out, profile = observe([program, "arrays"])
        equal((out, profile.source), ("started\ndone\n", COMPILER), "output and source")
        hot, cold = heap_of(profile, program, 8 * MIB, 9 * MIB), heap_of(profile, program, 3 * MIB, 4 * MIB)
        equal((profile.loads(hot), profile.loads(cold)), (100000, 1000), "loads")
        equal(profile.chained(hot), 0, "chained loads")
        for site, name in ((hot, "malloc@plt"), (cold, "calloc@plt")):
            assert profile.sites[site].frames[0][1] in call_returns(program, name), profile.sites[site]
        data = profile.sites.index(("data", ((build_id(program), 0),)))
        assert 5000 <= profile.loads(data) < 5000 + 3 * 106000 + 10000, profile.loads(data)
        equal(profile.objects[build_id(program)], program, "path of the object")
        assert not [1 for path in profile.objects.values() if "hooks" in path and
                    ("data", ((build_id(LIBRARY), 0),)) in profile.sites], "the library's own data is a site"


@test
def nothing_is_written_unasked():
    "without being asked the program does the same, and writes no file"
    folder = tmp()
    for compiler in COMPILERS:
        for way in ("arrays", "threads", "signals", "forks", "blocks"):
            equal(run([build(ALLOCATES, compiler), way], cwd=folder)[:2], (0, "started\ndone\n"), way)
    equal(os.listdir(folder), [], "files")


@test
def callers_of_a_wrapper_are_told_apart():
    "two callers of one wrapper around malloc are two sites, equal in their first frame"
    program = build(ALLOCATES)
    profile = observe([program, "wrapped"])[1]
    first = profile.sites[heap_of(profile, program, MIB, MIB + 4096)]
    second = profile.sites[heap_of(profile, program, 2 * MIB, 2 * MIB + 4096)]
    equal(first.frames[0], second.frames[0], "first frame")
    for site in first, second:
        assert site.frames[1][1] in call_returns(program, "allocate>"), site
    assert first.frames[1] != second.frames[1]


CHAINS = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define COUNT 100000u
struct node { struct node *next; uint64_t rest[7]; };
int main(int argc, char **argv)
{
	struct node *nodes = malloc(COUNT * sizeof(*nodes)), *node = nodes;
	uint32_t *next = malloc(COUNT * 2 * sizeof(*next)), at = 0, i;
	uint64_t *plain = malloc(3 * COUNT * sizeof(*plain)), sum = 0, seed = 1;

	for (i = 0; i < COUNT; i++) {
		nodes[i].next = &nodes[(i * 7919u + 17) % COUNT];
		next[i] = (uint32_t)((i * UINT64_C(7919) + 23) % COUNT);
	}
	for (i = 0; i < 3 * COUNT; i++)
		plain[i] = i;
	for (i = 0; i < COUNT; i++)
		node = node->next;
	for (i = 0; i < COUNT; i++)
		at = next[at];
	for (i = 0; i < COUNT; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		sum += plain[(seed >> 33) % (3 * COUNT)];
	}
	for (i = 0; i < COUNT; i++)
		sum += plain[i];
	return printf("%d %u %llu\n", (int)(node - nodes), at, (unsigned long long)sum) < 0;
}
"""


@test
def chains_are_marked():
    "loads by pointers and by indices that the same instruction loaded are marked; others are not"
    for compiler in COMPILERS:
        program = build(CHAINS, compiler)
        _, profile = observe([program])
        nodes, index, plain = (heap_of(profile, program, size, size + 8191) for size in (6400000, 800000, 2400000))
        assert 98000 < profile.chained(nodes) <= 100000, profile.chained(nodes)
        assert 97000 < profile.chained(index) <= 100000, profile.chained(index)
        assert profile.loads(plain) == 200000 and profile.chained(plain) < 2000, (profile.loads(plain), profile.chained(plain))


COPIES = r"""
#include <stdlib.h>
#include <string.h>
char *volatile kept;
int main(int argc, char **argv)
{
	char *from = kept = malloc(1 << 20), *to = kept = malloc(2 << 20);
	memset(from, argc, 1 << 20);
	memcpy(to, from, 1 << 20);
	memmove(to + 100, to, 64000);
	return to[argc] != argc || to[63999] != argc || to[1048575] != argc;
}
"""


@test
def copies_are_seen():
    "memcpy, memmove and memset of the program count a reference for each 64 bytes, and do what they do"
    for compiler in COMPILERS:
        for flags in (), ("-fbuiltin", "-O2"):
            program = build(COPIES, compiler, flags=flags)
            profile = observe([program])[1]
            source, to = heap_of(profile, program, MIB, MIB + 4096), heap_of(profile, program, 2 * MIB, 2 * MIB + 4096)
            counts = [(profile.loads(site), sum(s == site and r & STORE != 0 for b in profile.bursts
                                                for r, s in zip(b.references, b.sites))) for site in (source, to)]
            equal(counts, [(16384, 16384), (1003, 17384)] if not flags else counts, compiler)
            # A compiler that knows them may make a second memset of the memcpy.
            assert counts[0][1] >= 16384 and counts[1][1] >= 16384, (compiler, flags, counts)


@test
def mapped_memory_has_a_site():
    "private anonymous mmap has the site of its caller"
    program = build(ALLOCATES)
    profile = observe([program, "anonymous"])[1]
    own = build_id(program)
    found = [i for i, site in enumerate(profile.sites) if site.kind == "map" and site.frames[0][0] == own]
    equal([(profile.bytes(i), profile.loads(i)) for i in found], [(4 * MIB, 1000)], "bytes and loads")


@test
def blocks_hold_what_is_written():
    "blocks that come, grow and go keep their contents and alignment"
    for compiler in COMPILERS:
        out, profile = observe([build(ALLOCATES, compiler), "blocks"])
        equal((out, profile.end.lost), ("started\ndone\n", 0), "output, and what was lost")


@test
def a_burst_is_of_one_thread():
    "threads have bursts of their own, in order, with all their references"
    for compiler in COMPILERS:
        program = build(ALLOCATES, compiler)
        profile = observe([program, "threads"])[1]
        site, at = heap_of(profile, program, MIB, MIB + 4096), 0
        equal(profile.loads(site), 400000, "loads")
        by = {burst.thread for burst in profile.bursts if site in burst.sites}
        equal(len(by), 2, "threads that read the array")
        for burst in profile.bursts:
            equal(burst.at, at, "number of the first reference")
            at += len(burst.references)
        equal(profile.end.references, at, "references in all")
        equal((profile.end.lost, profile.end.stopped_at), (0, 0), "lost and stopped")


@test
def a_long_program_keeps_some_windows():
    "a bounded file has windows that are spread evenly over all references, and all are counted"
    program = build(ALLOCATES)
    whole = observe([program, "arrays"])[1].end.references
    profile = observe([program, "arrays"], "burst=1024,keep=131072")[1]
    equal(profile.end.references, whole, "references in all")
    assert 4 * 1024 <= profile.kept() <= 131072 // 8, profile.kept()
    windows = sorted({burst.at // 1024 for burst in profile.bursts})
    steps = {b - a for a, b in zip(windows, windows[1:])}
    equal(len(steps), 1, "distances of windows in %r" % windows)
    assert whole - windows[-1] * 1024 <= (steps.pop() + 1) * 1024
    hot = heap_of(profile, program, 8 * MIB, 9 * MIB)
    assert profile.loads(hot) > 100, profile.loads(hot)
    several = observe([program, "threads"], "burst=1024,keep=131072")[1]
    assert several.kept() <= 131072 // 8 and several.end.references > 400000, several.end


@test
def a_signal_handler_harms_nothing():
    "references around signal handlers are there, and those of handlers, too"
    program = build(ALLOCATES)
    profile = observe([program, "signals"])[1]
    equal(profile.loads(heap_of(profile, program, MIB, MIB + 4096)), 10000, "loads")
    assert profile.end.references >= 30000, profile.end


@test
def a_child_is_not_observed():
    "after fork the child runs as it would and writes nothing; the parent's file is whole and counts it"
    program, path = build(ALLOCATES), tmp() + "/profile"
    equal(run([program, "forks"], env=asked(path))[0], 0, "exit status")
    equal(glob.glob(path + "*"), [path], "files")
    profile = Profile(path)
    equal(profile.loads(heap_of(profile, program, MIB, MIB + 4096)), 1500, "loads of the parent")
    equal(profile.end.forks, 1, "forks")


@test
def a_killed_program_leaves_a_cut_profile():
    "what was kept before SIGKILL can be read, and has no end"
    program, path = build(ALLOCATES), tmp() + "/profile"
    child = start([program, "forever"], env=asked(path, "burst=65536"), stdout=subprocess.DEVNULL)
    while not os.path.exists(path) or os.path.getsize(path) < 2 * MIB:
        equal(child.poll(), None, "exit status")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    profile = Profile(path)
    equal(profile.end, None, "end")
    assert profile.kept() > 100000, profile.kept()


@test
def files_of_others_are_kept():
    "a file with something in it is not overwritten, which is said; an empty one is taken; a folder that is missing is named"
    program, folder = build(ALLOCATES), tmp()
    for name, text in ("full", "mine"), ("empty", ""):
        with open(folder + "/" + name, "w", encoding="utf-8") as file:
            file.write(text)
    rc, out, err = run([program, "wrapped"], env=asked("full"), cwd=folder)
    assert (rc, out) == (0, "started\ndone\n") and folder + "/full" in err and "exists" in err, (rc, err)
    with open(folder + "/full", encoding="utf-8") as file:
        equal(file.read(), "mine", "the file that was there")
    equal(run([program, "wrapped"], env=asked(folder + "/empty"))[::2], (0, ""), "with an empty file")
    assert Profile(folder + "/empty").end
    rc, out, err = run([program, "wrapped"], env=asked("/nowhere/profile"))
    assert (rc, out) == (0, "started\ndone\n") and err.count("/nowhere/profile") == 1, (rc, err)
    for wrong in ("burst=1", "keep=x", "speed=9", "limit=-1", "burst=2048;keep=65536"):
        rc, out, err = run([program, "wrapped"], env=asked(folder + "/wrong", wrong))
        assert (rc, out) == (0, "started\ndone\n") and "PEM_PAGE_SIZE_PROFILE_OPTIONS" in err, (wrong, err)
    assert not os.path.exists(folder + "/wrong")


ATOMICS = r"""
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#define ALL(name, type) \
static void name(void) \
{ \
	static volatile type x; type old, e, r[16]; int i, n = 0, done[3]; \
	__atomic_store_n(&x, (type)~(type)0 - 4, __ATOMIC_SEQ_CST); \
	__atomic_store_n(&x, (type)~(type)0 - 3, __ATOMIC_RELEASE); \
	r[n++] = __atomic_load_n(&x, __ATOMIC_ACQUIRE); \
	r[n++] = __atomic_exchange_n(&x, (type)0x5a, __ATOMIC_ACQ_REL); \
	r[n++] = __atomic_fetch_add(&x, (type)200, __ATOMIC_RELAXED); \
	r[n++] = __atomic_fetch_sub(&x, (type)77, __ATOMIC_SEQ_CST); \
	r[n++] = __atomic_fetch_and(&x, (type)0xf3, __ATOMIC_SEQ_CST); \
	r[n++] = __atomic_fetch_or(&x, (type)0x48, __ATOMIC_SEQ_CST); \
	r[n++] = __atomic_fetch_xor(&x, (type)0x31, __ATOMIC_SEQ_CST); \
	r[n++] = __atomic_fetch_nand(&x, (type)0x72, __ATOMIC_SEQ_CST); \
	r[n++] = __atomic_add_fetch(&x, (type)9, __ATOMIC_SEQ_CST); \
	e = x + 1; done[0] = __atomic_compare_exchange_n(&x, &e, (type)1, false, 5, 5); r[n++] = e; \
	e = x; done[1] = __atomic_compare_exchange_n(&x, &e, (type)7, false, 5, 0); r[n++] = e; \
	e = 7; do done[2] = __atomic_compare_exchange_n(&x, &e, (type)11, true, 5, 5); while (!done[2]); \
	r[n++] = __sync_val_compare_and_swap(&x, (type)11, (type)13); \
	r[n++] = x; \
	for (i = 0; i < n; i++) \
		printf("%llx.%llx ", (unsigned long long)((unsigned __int128)r[i] >> 64), (unsigned long long)r[i]); \
	printf(#name " %d%d%d\n", done[0], done[1], done[2]); \
}
ALL(one, uint8_t) ALL(two, uint16_t) ALL(four, uint32_t) ALL(eight, uint64_t) ALL(sixteen, unsigned __int128)
int main(void)
{
	one(); two(); four(); eight(); sixteen();
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_signal_fence(__ATOMIC_ACQUIRE);
	return 0;
}
"""

COUNTERS = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
static volatile uint8_t a; static volatile uint16_t b; static volatile uint32_t c; static volatile uint64_t d;
static volatile unsigned __int128 e __attribute__((aligned(16)));
static void *work(void *arg)
{
	for (int i = 0; i < 50000; i++) {
		__atomic_fetch_add(&a, 1, 0); __atomic_fetch_xor(&b, 1 << i % 16, 0); __atomic_fetch_add(&c, 1, 0);
		__atomic_fetch_sub(&d, 1, 0); __atomic_fetch_add(&e, ((unsigned __int128)1 << 64) + 1, 0);
	}
	return arg;
}
int main(void)
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
	printf("%u %u %u %lld %llu %llu\n", a, b, c, (long long)d, (unsigned long long)(e >> 64), (unsigned long long)e);
	return 0;
}
"""


@test
def atomics_are_done():
    "atomic operations of 1 to 16 bytes do what they do without hooks, also when threads contend"
    wanted = run([build(ATOMICS, hooks=False)])[1]
    equal(len(wanted.splitlines()), 5, "lines")
    counted = "%u 0 200000 -200000 200000 200000\n" % (200000 % 256)
    for compiler in COMPILERS:
        program, counters = build(ATOMICS, compiler), build(COUNTERS, compiler)
        need_hooks = run(["nm", "-u", os.path.dirname(program) + "/program.o"])[1]
        assert "__tsan_atomic128_fetch_nand" in need_hooks, need_hooks
        equal(run([program])[:2], (0, wanted), compiler + ", not asked")
        equal(observe([program])[0], wanted, compiler)
        equal(run([counters])[:2], (0, counted), compiler + ", not asked")
        equal(observe([counters])[0], counted, compiler)


@test
def each_end_ends_the_profile():
    "_exit, quick_exit and exec write the end of the profile; threads that still run have what they had"
    for compiler in COMPILERS:
        program = build(LIFE, compiler)
        for way in ("exit", "quick", "execl", "execve"):
            profile = observe([program, way], status=3)[1]
            equal(profile.loads(heap_of(profile, program, MIB, MIB + 4096)), 1000, "loads, " + way)
            assert profile.end, way
    profile = observe([program, "detached"], status=3)[1]
    equal(profile.loads(heap_of(profile, program, MIB, MIB + 4096)), 4000, "loads, with those of a thread that never ends")


@test
def an_exec_that_fails_ends_nothing():
    "after an exec that fails the profile goes on; a program that executes itself has the profile of what it became"
    program = build(LIFE)
    profile = observe([program, "fails"], status=3)[1]
    equal(profile.loads(heap_of(profile, program, MIB, MIB + 4096)), 3000, "loads")
    profile = observe([program, "again"], status=3)[1]
    equal(profile.loads(heap_of(profile, program, MIB, MIB + 4096)), 5000, "loads of the second")


@test
def children_without_handlers_of_fork():
    "children of vfork and of a bare fork write nothing into their parent's profile"
    program = build(LIFE)
    profile = observe([program, "clone"], status=3)[1]
    equal(profile.loads(heap_of(profile, program, MIB, MIB + 4096)), 3000, "loads, with a bare fork")
    profile = observe([program, "vfork"], status=3)[1]
    loads = profile.loads(heap_of(profile, program, MIB, MIB + 4096))
    assert 3000 <= loads <= 3100, loads  # a child of vfork has its parent's memory, and may be counted


@test
def handlers_of_signals():
    "handlers that interrupt anything, jump away from a fault or allocate leave a whole profile"
    program = build(LIFE)
    profile = observe([program, "fault"], status=3)[1]
    equal(profile.loads(heap_of(profile, program, MIB, MIB + 4096)), 3000, "loads")
    for options in ("burst=65536,keep=1048576", "burst=1024,keep=65536"):
        profile = observe([program, "alarms"], options, status=3)[1]
        assert profile.end.references >= 4000000, profile.end


@test
def descriptors_are_the_programs():
    "a program that closes what it did not open writes its own files, and nothing of the profile is in them"
    program, own = build(LIFE), tmp() + "/own"
    profile = observe([program, "closes", own], "burst=1024,keep=65536", status=3)[1]
    with open(own, encoding="utf-8") as file:
        equal(file.read(), "mine\n" * 100, "the program's file")
    assert profile.end.references > 200000, profile.end


@test
def threads_end():
    "what threads refer to is there when they have ended; nothing grows with their number"
    program = build(LIFE)
    profile = observe([program, "keys"], status=3)[1]
    loads = profile.loads(heap_of(profile, program, MIB, MIB + 4096))
    assert 201000 <= loads <= 221000, loads
    assert profile.end.references >= 201000, profile.end


@test
def a_program_that_gives_up_rights_ends_its_profile():
    "before a filter of system calls may come the profile ends, and says where"
    program = build(LIFE)
    profile = observe([program, "confined"], status=3)[1]
    equal(profile.loads(heap_of(profile, program, MIB, MIB + 4096)), 1000, "loads")
    assert profile.end


PLUGIN = r"""
#include <stdint.h>
#include <stdlib.h>
static volatile uint64_t table[65536];
void plug(void)
{
	volatile uint64_t *block = malloc(3 << 20);
	for (int i = 0; i < 5000; i++)
		table[i * 13 % 65536] = block[i * 64 % 393216];
	free((void *)block);
}
"""


@test
def plugins_have_sites():
    "a library that is loaded later has heap sites of its own"
    program = build(LIFE)
    plugin = build(PLUGIN, flags=("-fPIC", "-shared"))
    profile = observe([program, "plugin", plugin], status=3)[1]
    site = heap_of(profile, plugin, 3 * MIB, 3 * MIB + 4096)
    equal(profile.loads(site), 5000, "loads")
    equal(profile.objects[build_id(plugin)], plugin, "path of the plugin")


@test
def mappings_that_come_and_go():
    "hundreds of mappings that move and go leave a profile that can be read"
    profile = observe([build(LIFE), "many"], status=3)[1]
    equal(sum(reference & STORE != 0 and profile.sites[site].kind == "map" for burst in profile.bursts
              for reference, site in zip(burst.references, burst.sites) if site is not None), 600, "stores to mappings")


CXX = r"""
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <atomic>
struct base { virtual ~base() {} virtual long value() const = 0; };
struct leaf : base { long v[8]; leaf(long x) { v[0] = x; } long value() const override { return v[0]; } };
static std::atomic<long> total;
static thread_local std::vector<long> own;
static void work(int n)
{
	for (int i = 0; i < 20000; i++) own.push_back(i * n);
	try { if (n % 2) throw std::runtime_error("odd"); } catch (const std::exception &e) { total += 1000000; }
	for (long x : own) total += x % 7;
}
int main()
{
	std::map<int, std::string> m;
	for (int i = 0; i < 30000; i++) m[i * 7919 % 100003] = std::to_string(i);
	std::vector<std::unique_ptr<base>> all;
	for (int i = 0; i < 20000; i++) all.emplace_back(new leaf(i));
	long sum = 0;
	for (auto &b : all) sum += b->value();
	std::vector<std::thread> t;
	for (int i = 0; i < 4; i++) t.emplace_back(work, i);
	for (auto &x : t) x.join();
	struct alignas(64) wide { char c[64]; };
	auto w = std::make_unique<wide[]>(5000);
	size_t length = 0;
	for (auto &p : m) length += p.second.size();
	std::printf("%ld %ld %zu %d\n", sum, total.load(), length, (int)((size_t)w.get() % 64));
	return 0;
}
"""


@test
def cxx_programs():
    "C++ with new, exceptions, virtual functions and threads runs as it does without hooks, and operator new has sites"
    for compiler in COMPILERS:
        if not run(["which", {"gcc": "g++", "clang": "clang++"}[compiler]])[1]:
            skip("there is no compiler for C++")
        wanted = run([build(CXX, compiler, "c++", ("-std=c++17",), False)])[1]
        program = build(CXX, compiler, "c++", ("-std=c++17",))
        equal(run([program])[:2], (0, wanted), "output, not asked")
        out, profile = observe([program])
        equal(out, wanted, "output")
        own = build_id(program)
        news = [i for i, site in enumerate(profile.sites) if site.kind == "heap" and site.frames[0][0] == own
                and site.frames[0][1] in call_returns(program, "_Znw")]
        assert len(news) >= 3, profile.sites
        assert any(profile.loads(i) > 10000 for i in news), [profile.loads(i) for i in news]
        equal(profile.end.lost, 0, "lost")


run_all()
