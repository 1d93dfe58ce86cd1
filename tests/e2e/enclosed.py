# SPDX-License-Identifier: MIT
"""enclosed: probes around code (pem/probe.h) find what programs of known truth do"""
import os

from enclosing import records, values
from tap import BUILD, PEM, ROOT, equal, need, run, run_all, skip, test, tmp

HEAD = r"""#include <pem/probe.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { QUERY = 42 };
#define UPDATE 43

__attribute__((unused)) static char *fresh(size_t pages)
{
	char *p = (char *)mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, pages * 4096, MADV_NOHUGEPAGE);
	return p;
}

/* One record, of faults of fresh pages. */
__attribute__((unused)) static void touch(size_t pages)
{
	char *p = fresh(pages);

	PEM_FLT_PROBE_BEGIN(QUERY, 1);
	for (size_t i = 0; i < pages; i++)
		p[i * 4096] = 1;
	PEM_FLT_PROBE_END(QUERY);
	munmap(p, pages * 4096);
}
"""

COUNTS = HEAD + r"""
static void *thousand(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		PEM_CNT_PROBE_BEGIN(QUERY, 10);
		PEM_TPT_PROBE_BEGIN(UPDATE, 10);
		PEM_LAT_PROBE_BEGIN(3, 10);
		__asm__ __volatile__("" ::: "memory");
		PEM_LAT_PROBE_END(3);
		PEM_TPT_PROBE_END(UPDATE);
		PEM_CNT_PROBE_END(QUERY);
		PEM_LAT_PROBE_BEGIN(4, 1);
		PEM_LAT_PROBE_END(4);
		PEM_CNT_PROBE_BEGIN(5, 0);
		if (i % 2)
			continue; /* leaves without an end */
		PEM_CNT_PROBE_END(5);
		PEM_SNAPSHOT_PROBE(6, 100, i, -1);
		PEM_SNAPSHOT_PROBE(7, 500, 1, 2, 3, 4, 5, i);
	}
	return arg;
}
int main(void)
{
	pthread_t t;
	thousand(NULL);
	pthread_create(&t, NULL, thousand, NULL);
	pthread_join(t, NULL);
	PEM_TPT_PROBE_BEGIN(8, 1);
	for (int i = 0; i < 20; i++)
		usleep(1000);
	PEM_TPT_PROBE_END(8);
	return 0;
}
"""


def program(text, compiler="gcc", *flags):
    need(compiler)
    language = ".cc" if "++" in compiler else ".c"
    source, path = os.path.join(tmp(), "program" + language), os.path.join(tmp(), "program")
    with open(source, "w", encoding="ascii") as out:
        out.write(text)
    rc, _, err = run([compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", *flags, "-I", ROOT + "/spec/abi", "-I",
                      ROOT + "/libpem/include", "-I", BUILD + "/gen", "-o", path, source, "-ldl", "-lpthread"])
    equal(rc, 0, "compiler (%s)" % err)
    return path


def counts_hold(path):
    _, found = records(path)
    equal(values(found, "Cnt", "count", 42), [10] * 200, "executions of each record")
    equal(values(found, "Tpt", "count", 43), [10] * 200, "executions with cycles")
    equal(len(values(found, "Lat", "cycles", 3)), 200, "each tenth latency")
    equal(len(values(found, "Lat", "cycles", 4)), 2000, "each latency")
    equal(values(found, "Cnt", "count", 5), [1] * 1000, "executions that reach the end")
    equal([len({row["tid"] for _, row in found}), len({row["pid"] for _, row in found})], [2, 1], "threads and processes")
    equal(values(found, "Snapshot", "v0", 6), list(range(198, 1000, 200)) * 2, "each hundredth value of every second one")
    equal([{key: int(row[key]) for key in ("v1", "v2", "values")} for name, row in found if row["id"] == "6"],
          [{"v1": 2 ** 64 - 1, "v2": 0, "values": 2}] * 10, "values that were given, and were not")
    equal([[int(row["v%d" % i]) for i in range(6)] for _, row in found if row["id"] == "7"], [[1, 2, 3, 4, 5, 998]] * 2, "six values")
    # Latency and throughput of what another clock knows: at least 20 ms.
    (cycles,) = values(found, "Tpt", "cycles", 8)
    lines = [row for _, row in found]
    hz = (int(lines[-1]["clock"]) - int(lines[0]["clock"])) / (float(lines[-1]["time_ns"]) - float(lines[0]["time_ns"]))
    assert cycles / hz >= 20e6, "%d cycles of %g a ns" % (cycles, hz)


@test
def counts_and_latencies_in_c():
    "subsampling by 10 of 1000 executions gives 100 records, each of 10; ids of enums and macros; values; code that leaves without an end"
    for compiler in ("gcc", "clang"):
        counts_hold(program(COUNTS, compiler, "-std=gnu11"))


@test
def counts_and_latencies_in_cxx():
    "the same in C++"
    for compiler in ("g++", "clang++"):
        counts_hold(program(COUNTS, compiler, "-std=c++17"))


@test
def counts_and_latencies_in_a_library():
    "the same in a library that a program loads late"
    library = program(COUNTS, "gcc", "-shared", "-fPIC", "-Dmain=begin")
    os.rename(library, library + ".so")
    counts_hold(program("""#include <dlfcn.h>
int main(void) { return ((int (*)(void))dlsym(dlopen("%s.so", RTLD_NOW), "begin"))(); }
""" % library))


@test
def nobody_looks():
    "without pem, and where pem records other events, a program with probes does what it does"
    path = program(COUNTS)
    equal(run([path]), (0, "", ""), "alone")
    trace = os.path.join(tmp(), "other")
    rc, _, err = run([PEM, "record", "-q", "-e", "APP::Phase::*", "-o", trace, "--", path])
    equal(rc, 0, "status (%s)" % err)


@test
def statistics_alone():
    "pem stat sums executions without a log"
    rc, out, err = run([PEM, "stat", "--json", "-e", "APP::Probe::Cnt", "-f", "count", "--", program(COUNTS)])
    equal(rc, 0, "status (%s)" % err)
    assert '"sum":3000' in out.replace(" ", ""), out


@test
def the_example_is_measured():
    "examples/probes.c says the same recorded and alone, and its records are of the queries that it answers"
    command = [os.path.join(BUILD, "examples", "probes"), "2", "700"]
    out, found = records(*command)
    equal(run(command), (0, out, ""), "alone")
    equal([sum(values(found, "Tpt", "count", 2)), len(values(found, "Tpt", "count", 2))], [4000, 40], "queries, in records of 100")
    equal(len(values(found, "Lat", "cycles", 2)), 400, "each tenth latency")
    equal(sorted(values(found, "Snapshot", "v0", 3)), [999, 999, 1999, 1999], "each thousandth query")
    equal({int(row["v1"]) for name, row in found if name == "Snapshot"}, {100}, "rows that a query reads")
    equal(len(values(found, "Flt", "faults", 1)), 1, "fillings of the table")


FAULTS = HEAD + r"""
static void *thread(void *arg)
{
	touch(50);
	touch(0);
	return arg;
}
int main(int argc, char **argv)
{
	struct rusage before, after;
	struct rlimit none = {0, 0};
	int zero = open("/dev/zero", O_RDONLY);
	pthread_t t;
	char *p;

	PEM_LAT_PROBE_BEGIN(2, 1);
	PEM_LAT_PROBE_END(2);
	if (argc > 1 && *argv[1] == 'n') /* from here on, when pem has what it needs for records */
		setrlimit(RLIMIT_NOFILE, &none);
	touch(1); /* the thread's first records have a chunk's first faults */
	touch(1);
	touch(1000);
	for (int i = 0; i < 3; i++)
		touch(7);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
	p = fresh(30);
	if (read(zero, p, 0)) /* its code may not be mapped yet, which is one more fault */
		return 1;
	PEM_FLT_PROBE_BEGIN(3, 1);
	if (read(zero, p, 30 * 4096) != 30 * 4096) /* the kernel takes these faults, for the thread */
		return 1;
	PEM_FLT_PROBE_END(3);
	getrusage(RUSAGE_THREAD, &before);
	PEM_CTXSW_PROBE_BEGIN(1, 1);
	for (int i = 0; i < 20; i++) {
		struct timespec ms = {0, 1000000};
		nanosleep(&ms, NULL);
	}
	PEM_CTXSW_PROBE_END(1);
	getrusage(RUSAGE_THREAD, &after);
	printf("%ld\n", after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw);
	return 0;
}
"""


def readings_of(*words):
    """How faults and switches were read, of a program in which both are known."""
    out, found = records(program(FAULTS), *words)
    equal(values(found, "Flt", "faults", 42)[1:], [1, 1000, 7, 7, 7, 50, 0], "faults of fresh pages (the first pair's may have one of ours)")
    (reading,) = {row["reading"] for name, row in found if name == "Flt"}
    equal(values(found, "Flt", "faults", 3), [0 if reading == "mapped_user" else 30], "faults within a system call, by " + reading)
    (switches,) = values(found, "Ctxsw", "switches", 1)
    assert 20 <= switches <= int(out), "%d switches of 20 sleeps, where the kernel counts %s" % (switches, out)
    equal([row for name, row in found if name == "Missing"], [], "missing")
    return {row["reading"] for name, row in found if name in ("Flt", "Ctxsw")}


@test
def faults_and_switches_are_read_from_mapped_memory():
    "faults of N fresh pages are N, switches of N sleeps are N to what the kernel counted, by memory that the kernel keeps"
    readings = readings_of()
    if readings == {"call"}:
        skip("perf_event_open(2) is refused here: see /proc/sys/kernel/perf_event_paranoid")
    equal(readings - {"mapped", "mapped_user"}, set(), "readings")


@test
def faults_and_switches_are_asked_for():
    "the same where no memory can be had: the system call is asked, and the record says so"
    equal(readings_of("no descriptors"), {"call"}, "readings")


FORK = HEAD + r"""
static int in_child;
/* Begins in the parent, ends in both. */
static void both(void)
{
	PEM_FLT_PROBE_BEGIN(1, 1);
	PEM_LAT_PROBE_BEGIN(1, 1);
	in_child = !fork();
	PEM_LAT_PROBE_END(1);
	PEM_FLT_PROBE_END(1);
}
int main(void)
{
	touch(3);
	touch(3);
	both();
	if (in_child) {
		touch(5);
		touch(5);
		both();
		wait(NULL); /* a recording ends with its command, which waits for this process alone */
		exit(0);
	}
	wait(NULL);
	touch(4);
	return 0;
}
"""


@test
def children_have_their_own():
    "a child of fork counts for itself; what began before the fork is missing in the child, and is there in the parent"
    _, found = records(program(FORK))
    parent = found[0][1]["pid"]
    mine = [row for name, row in found if name == "Flt" and row["pid"] == parent]
    equal([int(row["faults"]) for row in mine if row["id"] == "42"][1:], [3, 4], "faults of the parent's pages")
    equal(len([row for row in mine if row["id"] == "1"]), 1, "the parent's end of what it began")
    theirs = [(name, row) for name, row in found if row["pid"] != parent]
    equal(values(theirs, "Flt", "faults", 42)[1:], [5], "faults of the child's pages")
    equal([(row["id"], row["probe"]) for name, row in theirs if name == "Missing"], [("1", "flt")] * 2, "missing, of child and grandchild")


HANDLER = HEAD + r"""
#include <signal.h>
#include <sys/time.h>
static volatile int calls;
static void handler(int number)
{
	PEM_FLT_PROBE_BEGIN(2, 1);
	PEM_CNT_PROBE_BEGIN(2, 1);
	pem_probe__enter(PEM_ENCLOSED_BY_CNT, 4, 1);
	calls += number == SIGALRM;
	pem_probe__leave(PEM_ENCLOSED_BY_CNT, 4);
	PEM_CNT_PROBE_END(2);
	PEM_FLT_PROBE_END(2);
}
int main(void)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	int i;

	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; i < 2000 || calls < 50; i++) {
		PEM_FLT_PROBE_BEGIN(1, 1);
		PEM_CNT_PROBE_BEGIN(1, 1);
		pem_probe__enter(PEM_ENCLOSED_BY_CNT, 3, 1);
		pem_probe__leave(PEM_ENCLOSED_BY_CNT, 3);
		PEM_CNT_PROBE_END(1);
		PEM_FLT_PROBE_END(1);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%d %d\n", i, calls);
	return 0;
}
"""


@test
def signal_handlers_have_probes():
    "a handler's probes in the middle of the program's: each execution of both has a record, and no impossible number"
    path = program(HANDLER, "gcc", "-L" + BUILD + "/lib", "-Wl,-rpath," + BUILD + "/lib", "-Wl,--no-as-needed", "-lpem")
    out, found = records(path)
    mine, handlers = map(int, out.split())
    for number, executions in ((1, mine), (2, handlers), (3, mine), (4, handlers)):
        equal(sum(values(found, "Cnt", "count", number)), executions, "executions of %d" % number)
    faults = values(found, "Flt", "faults", 1) + values(found, "Flt", "faults", 2)
    missing = [row for name, row in found if name == "Missing"]
    equal(len(faults) + len(missing), mine + handlers, "executions with a count of faults, or without")
    assert len(missing) <= 1 and max(faults) < 1000, (missing, max(faults))


CLOCK = HEAD + r"""
#include <sys/prctl.h>
static void pairs(int count)
{
	for (int i = 0; i < count; i++) {
		PEM_TPT_PROBE_BEGIN(1, 1);
		PEM_LAT_PROBE_BEGIN(1, 1);
		pem_probe__enter(PEM_ENCLOSED_BY_LAT, 2, 1);
		pem_probe__leave(PEM_ENCLOSED_BY_LAT, 2);
		PEM_LAT_PROBE_END(1);
		PEM_TPT_PROBE_END(1);
	}
}
int main(void)
{
	pairs(3);
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		return 77;
	pairs(100);
	{
		PEM_LAT_PROBE_BEGIN(3, 1);
		prctl(PR_SET_TSC, PR_TSC_ENABLE);
		PEM_LAT_PROBE_END(3);
	}
	pairs(2);
	return 0;
}
"""


@test
def threads_without_a_clock():
    "a thread that gives up the right to read the clock goes on, unmeasured; with the right again it is measured again"
    path = program(CLOCK, "gcc", "-L" + BUILD + "/lib", "-Wl,-rpath," + BUILD + "/lib", "-Wl,--no-as-needed", "-lpem")
    if run([path])[0] == 77:
        skip("the processor's clock can't be forbidden here")
    _, found = records(path)
    for event, field, number in (("Tpt", "cycles", 1), ("Lat", "cycles", 1), ("Lat", "cycles", 2)):
        cycles = values(found, event, field, number)
        equal([len(cycles), max(cycles) < 1 << 40], [5, True], "records of %s %d, of sane cycles" % (event, number))
    equal(values(found, "Lat", "cycles", 3), [], "of what began without a clock")


CALLS = HEAD + r"""
int main(void)
{
	volatile char *p;

	for (int i = 0; i < 40; i++) /* more than may be open: eight of them are not measured */
		pem_probe__enter(PEM_ENCLOSED_BY_CNT, 1, 1);
	for (int i = 0; i < 41; i++)
		pem_probe__leave(PEM_ENCLOSED_BY_CNT, 1);
	for (int i = 0; i < 2; i++) {
		p = fresh(9);
		pem_probe__enter(PEM_ENCLOSED_BY_FLT, 1, 1);
		pem_probe__enter(PEM_ENCLOSED_BY_CNT, 2, 1); /* never left */
		for (int k = 0; k < 9; k++)
			p[k * 4096] = 1;
		pem_probe__leave(PEM_ENCLOSED_BY_FLT, 1);
		pem_probe__leave(PEM_ENCLOSED_BY_CNT, 2);
	}
	for (int i = 0; i < 100; i++) { /* more kinds and ids than a thread has */
		pem_probe__enter(PEM_ENCLOSED_BY_CNT, 1000 + i, 1);
		pem_probe__leave(PEM_ENCLOSED_BY_CNT, 1000 + i);
	}
	pem_probe__enter(99, 1, 1);
	pem_probe__leave(99, 1);
	return 0;
}
"""


@test
def calls_have_limits():
    "probes by calls nest, up to a number; one that is not left has no record; nonsense does nothing"
    _, found = records(program(CALLS, "gcc", "-L" + BUILD + "/lib", "-Wl,-rpath," + BUILD + "/lib", "-Wl,--no-as-needed", "-lpem"))
    equal(len(values(found, "Cnt", "count", 1)), 32, "open at a time")
    equal(len([1 for name, row in found if name == "Cnt" and int(row["id"]) >= 1000]), 61, "kinds and ids beside the three before")
    equal(values(found, "Flt", "faults", 1)[1:] + values(found, "Cnt", "count", 2), [9], "faults of fresh pages, and what was not left")


COUNTERS = HEAD + r"""
int main(void)
{
	volatile uint64_t sum = 0;

	PEM_SET_PERFCNTR(2, %s, 0);
	for (int i = 0; i < 100; i++) {
		PEM_LLC_PROBE_BEGIN(1, 1);
		PEM_PERFCNTR_PROBE_BEGIN(2, 1, 2);
		PEM_PERFCNTR_PROBE_BEGIN(3, 1, 3);
		for (int k = 0; k < 1000; k++)
			sum += 1;
		PEM_PERFCNTR_PROBE_END(3);
		PEM_PERFCNTR_PROBE_END(2);
		PEM_LLC_PROBE_END(1);
	}
	return 0;
}
"""


@test
def counters_of_the_processor_or_none():
    "each execution has a record of its counters, or one that they are missing; a counter that was not set is always missing"
    _, found = records(program(COUNTERS.replace("%s", "0xc0")))
    equal([len([1 for name, row in found if row["id"] == str(i)]) for i in (1, 2, 3)], [100, 100, 100], "records of each probe")
    equal({name for name, row in found if row["id"] == "3"}, {"Missing"}, "of a counter that was not set")
    for event, number in (("Llc", 1), ("Perfcntr", 2)):
        equal({name for name, row in found if row["id"] == str(number)} - {event, "Missing"}, set(), "events of probe %d" % number)


THREADS = HEAD + r"""
static void *thread(void *arg)
{
	touch(2);
	PEM_CTXSW_PROBE_BEGIN(1, 1);
	PEM_CTXSW_PROBE_END(1);
	return arg;
}
int main(void)
{
	char line[512];
	int rings = 0;
	pthread_t t;
	FILE *maps;

	for (int i = 0; i < 300; i++) {
		pthread_create(&t, NULL, thread, NULL);
		pthread_join(t, NULL);
	}
	for (maps = fopen("/proc/self/maps", "r"); fgets(line, sizeof(line), maps);)
		rings += strstr(line, "perf_event") != NULL;
	printf("%d %d\n", rings, fileno(maps));
	return 0;
}
"""


@test
def threads_leave_nothing():
    "threads that have ended leave no memory of the kernel mapped, and no descriptor"
    out, found = records(program(THREADS))
    equal((out, len(values(found, "Flt", "faults", 42))), ("0 3\n", 300), "mappings that are left, the next descriptor, records")
    equal({n for n in values(found, "Flt", "faults", 42) if n not in (2, 3)}, set(), "other numbers of faults")


run_all()
