#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Unmodified programs under libpem-libc.so: they do what they do without it, and what they do is recorded.

Not here: the inside of libpem-libc (tests/unit/libc_real.c).
"""
import collections
import os
import platform
import re

from preload import LIBC, PRELOAD, compile_program, count, need_preload, record, same
from tap import PEM, ROOT, SAN, equal, need, run, run_all, skip, test

# Does a known number of everything, with sizes that nobody else asks for.
PROGRAM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); exit(1); } } while (0)

static pthread_key_t key;

static void *returns(void *arg) { pthread_setspecific(key, malloc(12121)); return arg; }
static void *exits(void *arg) { pthread_exit(arg); }
static void *waits(void *arg) { for (;;) pause(); return arg; }

static void allocations(void)
{
	void *p, *q;
	int i;

	for (i = 0; i < 100; i++) {
		errno = 77;
		p = malloc(12345);
		CHECK(errno == 77 && p);
		free(p);
		CHECK(errno == 77);
	}
	free(NULL);
	p = calloc(7, 1111);
	p = realloc(p, 23456);
	for (i = 0; i < 7777; i++)
		CHECK(((char *)p)[i] == 0);
	p = reallocarray(p, 3, 1113);
	CHECK(p);
	errno = 0;
	CHECK(!reallocarray(p, (size_t)-1, 2) && errno == ENOMEM);
	errno = 0;
	CHECK(!realloc(p, 0));
	CHECK(posix_memalign(&q, 64, 34567) == 0 && (unsigned long)q % 64 == 0);
	errno = 77;
	CHECK(posix_memalign(&q, 3, 34567) == EINVAL && errno == 77);
	free(q);
	q = aligned_alloc(256, 45568);
	CHECK((unsigned long)q % 256 == 0);
	free(q);
	q = memalign(128, 34568);
	CHECK((unsigned long)q % 128 == 0);
	free(q);
	q = valloc(34569);
	CHECK((unsigned long)q % 4096 == 0);
	free(q);
	errno = 0;
	CHECK(!malloc((size_t)1 << 60) && errno == ENOMEM);
}

static void threads(void)
{
	void *(*routine[])(void *) = { returns, returns, returns, exits, exits, waits, waits };
	pthread_t thread[7];
	void *result;
	int i;

	CHECK(pthread_key_create(&key, free) == 0);
	for (i = 0; i < 7; i++)
		CHECK(pthread_create(&thread[i], NULL, routine[i], thread + i) == 0);
	pthread_cancel(thread[5]);
	pthread_cancel(thread[6]);
	for (i = 0; i < 7; i++) {
		CHECK(pthread_join(thread[i], &result) == 0);
		CHECK(result == (i < 5 ? thread + i : PTHREAD_CANCELED));
	}
}

static void mappings(void)
{
	void *p;
	int i;

	for (i = 0; i < 5; i++) {
		p = mmap(NULL, 3 * 8192 + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED);
		memset(p, 1, 3 * 8192 + 1);
		CHECK(munmap(p, 3 * 8192 + 1) == 0);
	}
	errno = 0;
	CHECK(mmap(NULL, 0, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
}

static void children(void)
{
	int i, status;

	if (fork() == 0) {
		for (i = 0; i < 10; i++)
			free(malloc(54321));
		_exit(5);
	}
	wait(&status);
	CHECK(WEXITSTATUS(status) == 5);
	if (fork() == 0)
		execlp("true", "true", NULL);
	wait(&status);
	CHECK(status == 0);
}

__attribute__((constructor(102))) static void early(void) { free(malloc(11111)); }
__attribute__((destructor)) static void late(void) { free(malloc(11111)); }

int main(void)
{
	allocations();
	threads();
	mappings();
	children();
	puts("done");
	return 7;
}
"""


@test
def exports_only_what_it_stands_in_front_of():
    "libpem-libc exports the functions it wraps and nothing else, with versions only those that the C library has older versions of"
    need_preload()
    need("nm")
    _, out, _ = run(["nm", "-D", "--defined-only", LIBC])
    names = sorted(line.split()[-1] for line in out.splitlines() if line.split()[-2] != "A")  # A: a version's own name
    if platform.machine() == "x86_64":
        older = "posix_spawn posix_spawnp pthread_cond_broadcast pthread_cond_signal pthread_cond_timedwait pthread_cond_wait".split()
        equal([name for name in names if name.endswith("@GLIBC_2.2.5")], [name + "@GLIBC_2.2.5" for name in older], "older versions")
        names = [name.split("@@")[0] for name in names if not name.endswith("@GLIBC_2.2.5")]
    with open(os.path.join(ROOT, "libpem", "libc", "libpem-libc.map")) as file:
        wanted = re.findall(r"(\w+);", file.read().split("global:")[1].split("local:")[0])
    equal(sorted(names), sorted(wanted), "exports")
    assert "malloc" in names and "pthread_mutex_lock" in names and "dlsym" not in names, names


@test
def sqlite():
    "sqlite3 answers the same"
    out = same(["sqlite3", ":memory:", "create table t(a, b); with recursive c(x) as (select 1 union all "
                "select x + 1 from c where x < 20000) insert into t select x, hex(x * x) from c; "
                "select count(*), sum(a), max(b) from t; select * from t order by b desc limit 3"])
    assert out.startswith(b"20000|200010000|"), out


@test
def python_threads():
    "python3 with threads and a subprocess prints the same"
    same(["python3", "-c", "import threading, subprocess, sys\n"
          "r = []\n"
          "t = [threading.Thread(target=lambda i=i: r.append(sum(range(i * 1000)))) for i in range(8)]\n"
          "[x.start() for x in t]; [x.join() for x in t]\n"
          "print(sorted(r)); print(subprocess.check_output(['echo', 'child']))"])


@test
def bash_and_children():
    "bash with pipes, subshells and traps prints the same"
    same(["bash", "-c", "trap 'echo bye' EXIT; for i in 1 2 3; do (echo $i; exit $i) | cat; done; "
          "echo $(echo nested $(echo deeper)); (sleep 0.01 & wait; echo waited)"])


@test
def xz_round_trip():
    "xz with two threads packs and unpacks the same"
    data = b"".join(b"%d %d\n" % (i, i * i % 1009) for i in range(50000))
    packed = same(["xz", "-T2", "--block-size=65536", "-c"], input=data)
    assert same(["xz", "-T2", "-dc"], input=packed) == data


@test
def perl_forks():
    "perl that forks and sorts prints the same"
    same(["perl", "-e", "my %h = map { $_ => $_ ** 2 } 1..5000; print scalar(keys %h), "
          "join(',', (sort { $h{$b} <=> $h{$a} } keys %h)[0..4]), qq(\\n); $| = 1; "
          "if (my $p = fork) { waitpid $p, 0; print $? >> 8, qq(\\n) } else { exit 3 }"])


@test
def parallel_sort():
    "sort --parallel gives the same order"
    lines = b"".join(b"%d\n" % (i * 7919 % 100003) for i in range(100003))
    out = same(["sort", "--parallel=2", "-n", "-S", "1M"], input=lines)
    equal(out, b"".join(b"%d\n" % i for i in range(100003)), "sorted lines")


@test
def cxx_program():
    "a C++ program with threads, exceptions and thread_local objects runs the same"
    path = compile_program(r"""
#include <cstdio>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
struct held { std::string s = std::string(100, 'x'); ~held() { s += "y"; } };
static thread_local held mine;
int main()
{
	std::vector<std::thread> threads;
	std::vector<size_t> sums(4);
	for (int i = 0; i < 4; i++)
		threads.emplace_back([i, &sums] {
			std::map<int, std::string> m;
			for (int k = 0; k < 1000; k++)
				m[k] = std::to_string(k * i);
			for (auto &e : m)
				sums[i] += e.second.size() + mine.s.size();
			try { throw std::runtime_error("caught"); } catch (std::exception &) { sums[i]++; }
		});
	for (auto &t : threads)
		t.join();
	volatile size_t huge = (size_t)1 << 60;
	try { char *volatile p = new char[huge]; (void)p; } catch (std::bad_alloc &) { puts("bad_alloc"); }
	for (size_t s : sums)
		printf("%zu\n", s);
}""", compiler=os.environ.get("CXX") or "c++")
    assert same([path]).startswith(b"bad_alloc\n")


@test
def own_allocator():
    "a program with its own malloc and free keeps them"
    path = compile_program(r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char pool[1 << 22], *next = pool;
void *malloc(size_t n) { void *p = next; next += (n + 15) & ~15ul; return p; }
void free(void *p) { (void)p; }
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p ? memcpy(q, p, n) : q; }
int main(void)
{
	char *p = strdup("hello");
	printf("%d\n", p >= pool && p < pool + sizeof(pool));
	return 0;
}""")
    equal(same([path]), b"1\n", "strdup in the own pool")


@test
def own_allocator_without_reallocarray():
    "a program with its own realloc gets it from reallocarray"
    path = compile_program(r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char pool[1 << 22], *next = pool;
void *malloc(size_t n) { void *p = next; next += (n + 15) & ~15ul; return p; }
void free(void *p) { (void)p; }
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p ? memcpy(q, p, n) : q; }
int main(void)
{
	char *p = reallocarray(malloc(10), 10, 10);
	printf("%d\n", p >= pool && p < pool + sizeof(pool));
	return 0;
}""")
    equal(same([path]), b"1\n", "the block in the own pool")


@test
def beside_address_sanitizer():
    "a program built with AddressSanitizer runs, and its allocations are left alone"
    need_preload()
    path = compile_program("#include <stdlib.h>\nint main(void) { char *p = malloc(12345); p[0] = 1; free(p); "
                           "return 0; }", flags=["-fsanitize=address"])
    options = {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    rc, _, err = run([path], env=dict(PRELOAD, **options))
    equal((rc, err), (0, ""), "exit status and errors")
    # Either library sees the sanitizer before it raises anything.
    for patterns in ("APP::Libc::*,APP::Loader::*", "APP::*"):
        _, events = record([path], patterns)
        equal([e["event"] for e in events if e["event"].startswith(("APP::Libc", "APP::Loader"))], [], "events of " + patterns)


@test
def known_program_is_unchanged():
    "errno, alignment, threads that exit or are cancelled: as without the library"
    need_preload()
    path = compile_program(PROGRAM)
    equal(run([path], env=PRELOAD), (7, "done\n", ""), "what it says")


@test
def known_program_is_recorded():
    "each allocation, thread and mapping of a known program is in the trace once"
    path = compile_program(PROGRAM)
    out, events = record([path], "APP::Libc::*", 7)
    equal(out, "done\n", "standard output")
    wanted = {
        ("Malloc", 12345): 100, ("Malloc", 34567): 2, ("Malloc", 45568): 1, ("Malloc", 34568): 1,
        ("Malloc", 34569): 1, ("Malloc", 54321): 10, ("Malloc", 1 << 60): 1, ("Malloc", 12121): 3,
        ("Calloc", 7777): 1, ("Realloc", 23456): 1, ("Realloc", 3339): 1,
    }
    got = {k: count(events, k[0], size=k[1]) for k in wanted}
    equal(got, wanted, "allocations by size")
    equal(count(events, "Malloc", size=1 << 60, address="0x0"), 1, "failed allocation at address 0")
    # By process: threads start and end; five mappings made and taken away.
    equal((count(events, "ThreadStart"), count(events, "ThreadEnd")), (7, 7), "threads")
    equal({e["pid"] for e in events if e["event"].endswith("::ThreadEnd")},
          {e["pid"] for e in events if e["event"].endswith("::ThreadStart")}, "their process")
    for e in events:
        if e["event"].endswith("::ThreadEnd"):
            equal(e["threadId"], e["tid"], "the ending thread raises its end")
    equal((count(events, "Mmap", length=24577), count(events, "Munmap", length=24577)), (5, 5), "mappings")


@test
def releases_come_before_the_address_is_seen_again():
    "no address is shown as allocated twice without a release between, in any thread"
    path = compile_program(r"""
#include <pthread.h>
#include <stdlib.h>
static void *work(void *arg)
{
	void *p[16] = { 0 };
	for (int i = 0; i < 20000; i++) {
		free(p[i % 16]);
		p[i % 16] = malloc(i * 37 % 500 + 5000);
	}
	for (int i = 0; i < 16; i++)
		free(p[i]);
	return arg;
}
int main(void)
{
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, work, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 0;
}""", flags=())
    _, events = record([path], "APP::Libc::Malloc,APP::Libc::Free")
    live = set()
    for e in events:
        if e["event"] == "APP::Libc::Free":
            live.discard(e["address"])
        elif e["address"] != "0x0":
            assert e["address"] not in live, "%s allocated twice, at %s ns" % (e["address"], e["time_ns"])
            live.add(e["address"])
    assert len(events) >= 120000, len(events)


@test
def programs_that_lie_low_start():
    "a program of 800 KiB under Valgrind, which loads it at an address that is hardly more than its size"
    need("valgrind")
    if SAN:
        skip("a sanitizer's program does not run under Valgrind")
    path = compile_program(r"""
#include <stdio.h>
static const char large[800 << 10] = {1};
int main(int argc, char **argv)
{
	return printf("%d\n", large[argc - 1]) != 2;
}""", flags=())
    rc, out, err = run([PEM, "run", "--", "valgrind", "-q", "--tool=none", path], timeout=60)
    equal((rc, out, err), (0, "1\n", ""), "status and output")


@test
def counts_balance_for_a_real_program():
    "sqlite3 recorded: all it allocated is released in the end, or was there at its exit"
    need("sqlite3")
    out, events = record(["sqlite3", ":memory:", "select 6 * 7"], "APP::Libc::*")
    equal(out, "42\n", "the answer")
    kinds = collections.Counter(e["event"] for e in events)
    assert kinds["APP::Libc::Malloc"] > 50 and kinds["APP::Libc::Free"] > 50, kinds
    live = {e["address"] for e in events if "alloc" in e["event"]}
    unknown = [e for e in events if e["event"] == "APP::Libc::Free" and e["address"] not in live]
    assert not unknown, "%d releases of what nobody allocated, of %s" % (len(unknown), kinds)


run_all()
