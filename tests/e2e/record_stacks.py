# SPDX-License-Identifier: MIT
"""record_stacks: samples with the calls that led there: by frame pointers and by unwind tables, in report, folded stacks and page"""
import json
import os
import re
import subprocess
import time

from html_page import export, show
from tap import PEM, equal, need, run, run_all, skip, test, tmp

# Half of the time in hot below inner, half in it below outer; 0.6 s in all.
CHAIN = """#include <stdlib.h>
#include <time.h>
#define CALLED __attribute__((noinline, noclone))
static volatile unsigned long sum;
static CALLED void rest(void)
{
	sum++;
}
static CALLED void hot(void)
{
	for (int i = 0; i < 300000; i++)
		sum += i;
	rest(); /* what calls none has no frame of its own */
	sum++;
}
static CALLED void inner(void)
{
	hot();
	sum++;
}
static CALLED int compare(const void *a, const void *b)
{
	hot();
	return *(const int *)a - *(const int *)b;
}
static CALLED void outer(void)
{
	int two[2] = {2, 1};
	inner();
	qsort(two, 2, sizeof(two[0]), compare);
	sum++;
}
int main(void)
{
	struct timespec now, end;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	end.tv_nsec += 600000000;
	do {
		outer();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((now.tv_sec - end.tv_sec) * 1000000000l + now.tv_nsec - end.tv_nsec < 0);
	return 0;
}
"""


LONG_S = 13
FRAMES = "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"


def built(*flags):
    need("gcc")
    source, program = os.path.join(tmp(), "chain.c"), os.path.join(tmp(), "chain")
    with open(source, "w", encoding="ascii") as out:
        out.write(CHAIN)
    rc, _, err = run(["gcc", "-O2", *flags, "-o", program, source])
    equal(rc, 0, "compiler (%s)" % err)
    return program


def recorded(program, *options, arguments=()):
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-F", "1000", "-e", "HPMsAndPC", *options, "-o", trace, "--", program, *arguments])
    equal(rc, 0, "status (%s)" % err)
    told = json.loads(run([PEM, "report", "--json", trace])[1])
    equal(told["info"]["balanced"], True, "balanced: %s" % told["info"]["verdict"])
    if not any(e["count"] for e in told["per_event"]):
        skip("no samples here: %s" % told["gaps"])
    return trace


def folded(trace):
    """{stack: samples}"""
    rc, out, err = run([PEM, "export", "--to", "folded", "-o", "-", trace])
    equal(rc, 0, "status (%s)" % err)
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in out.splitlines()}


def share(stacks, pattern):
    """Of the samples of the program's own code, those whose stack matches."""
    all_of = sum(n for stack, n in stacks.items() if ";main" in stack or re.search(pattern, stack))
    return sum(n for stack, n in stacks.items() if re.search(pattern, stack)) / (all_of or 1)


def check_calls(trace):
    stacks = folded(trace)
    assert sum(stacks.values()) > 300, stacks
    by_inner, by_sort = share(stacks, "main;outer;inner;hot"), share(stacks, "main;outer;.*qsort.*;compare;hot")
    assert 0.35 < by_inner < 0.65 and 0.35 < by_sort < 0.65, (by_inner, by_sort, stacks)


def has_cost(trace, name):
    """The ledger has the samples, as such ones."""
    told = json.loads(run([PEM, "report", "--json", trace])[1])
    counts = {kind["kind"]: kind["count"] for kind in told["cost"]["kinds"] if kind["kind"].startswith("sample")}
    equal(counts, {name: sum(e["count"] for e in told["per_event"] if e["name"] == "HW::HWPerf::HPMsAndPC")}, "samples in the ledger")


@test
def by_frame_pointers():
    "--call-graph fp: of a program with frame pointers, the calls in their proportions"
    trace = recorded(built(*FRAMES), "--call-graph", "fp")
    has_cost(trace, "sample-fp")
    stacks = folded(trace)
    # The C library has none, so that its callback's caller is not told.
    assert share(stacks, "main;outer;inner;hot") > 0.3 and share(stacks, "compare;hot") > 0.3, stacks


@test
def by_unwind_tables():
    "-g: of a program as compilers make it, and through the C library, the calls in their proportions"
    trace = recorded(built("-fno-optimize-sibling-calls"), "-g")
    check_calls(trace)
    has_cost(trace, "sample-dwarf")


@test
def of_what_a_program_starts():
    "-g: a child that runs on, and one that begins another program, have the calls of their own memory"
    program = built("-fno-optimize-sibling-calls")
    trace = recorded("sh", "-g", arguments=["-c", '%s & (exec %s) ; wait' % (program, program)])
    stacks = folded(trace)
    assert sum(n for stack, n in stacks.items() if stack.startswith("chain;")) > 600, stacks
    check_calls(trace)


@test
def of_a_program_that_runs():
    "-g with -p: all threads that it has are sampled, by what lay in memory before"
    source, program = os.path.join(tmp(), "threads.c"), os.path.join(tmp(), "threads")
    with open(source, "w", encoding="ascii") as out:
        out.write(CHAIN.replace("int main(void)", "static void *chain(void *arg)").replace("return 0;", "return arg;") +
                  "#include <pthread.h>\nint main(void)\n{\n\tpthread_t t;\n\tpthread_create(&t, NULL, chain, NULL);\n"
                  "\tpthread_join(t, NULL);\n\treturn 0;\n}\n")
    need("gcc")
    equal(run(["gcc", "-O2", "-fno-optimize-sibling-calls", "-o", program, source, "-lpthread"])[0], 0, "compiler")
    trace = os.path.join(tmp(), "trace")
    with subprocess.Popen([program]) as child:
        time.sleep(0.1)
        rc, _, err = run([PEM, "record", "-q", "-F", "1000", "-g", "-e", "HPMsAndPC", "-o", trace, "-p", str(child.pid)])
    equal(rc, 0, "status (%s)" % err)
    stacks = folded(trace)
    assert sum(n for stack, n in stacks.items() if re.search("chain;outer;inner;hot", stack)) > 0.3 * sum(stacks.values()), stacks
    assert sum(stacks.values()) > 100, stacks


BURN = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static __attribute__((noinline, noclone)) void burn(double seconds)
{
	struct timespec begin, now;
	volatile unsigned long sum = 0;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do {
		for (int i = 0; i < 100000; i++)
			sum += (unsigned long)i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
}
static void *burn_in_thread(void *arg)
{
	burn(0.5);
	return arg;
}
static void burn_elsewhere(const char *at)
{
	static const unsigned char code[] = {0xff, 0xcf, 0x75, 0xfc, 0xc3}; /* dec edi; jnz; ret */
	struct timespec begin, now;
	void *p = mmap((void *)strtoul(at, NULL, 16), 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		exit(77);
	memcpy(p, code, sizeof(code));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do {
		((void (*)(int))p)(1000000);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < 0.5);
}
int main(int argc, char **argv)
{
	pthread_t thread;
	char at[32];

	if (!strcmp(argv[1], "thread")) {
		pthread_create(&thread, NULL, burn_in_thread, NULL);
		pthread_exit(NULL);
	}
	if (!strcmp(argv[1], "exec")) {
		snprintf(at, sizeof(at), "%lx", (unsigned long)dlsym(RTLD_DEFAULT, "qsort") & ~4095ul);
		execl("/proc/self/exe", argv[0], "there", at, NULL);
	}
	if (argc > 2)
		burn_elsewhere(argv[2]);
	else if (!fork()) {
		if (!dlopen("libutil.so.1", RTLD_NOW))
			dlopen("libm.so.6", RTLD_NOW);
		burn(0.5);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
"""


def burnt(way):
    """Stacks of a program that burns 0.5 s one way."""
    need("gcc")
    source, program = os.path.join(tmp(), "burner.c"), os.path.join(tmp(), "burner")
    with open(source, "w", encoding="ascii") as out:
        out.write(BURN)
    equal(run(["gcc", "-O1", "-o", program, source, "-ldl", "-lpthread"])[0], 0, "compiler")
    return folded(recorded(program, "-g", arguments=[way]))


@test
def a_child_that_loads_a_library():
    "a forked child that maps one more file still has what its parent had"
    stacks = burnt("fork")
    assert share(stacks, ";main;burn") > 0.9 and sum(stacks.values()) > 200, stacks


@test
def a_thread_that_outlives_main():
    "the end of the first thread is not the process's: others keep their calls"
    stacks = burnt("thread")
    assert share(stacks, "start_thread;burn_in_thread;burn") > 0.9 and sum(stacks.values()) > 200, stacks


@test
def memory_of_an_exec():
    "after an exec nothing is named by what the program before had there"
    if os.uname().machine != "x86_64":
        skip("its code is x86-64's")
    stacks = burnt("exec")
    unknown = sum(n for stack, n in stacks.items() if stack.endswith("[unknown]"))
    assert unknown > 200 and not any("sort" in stack for stack in stacks), stacks


@test
def the_kernel_and_what_entered_it():
    "-g: a sample in the kernel has the kernel's callers, and those of the system call's caller"
    source, program = os.path.join(tmp(), "reader.c"), os.path.join(tmp(), "reader")
    with open(source, "w", encoding="ascii") as out:
        out.write("""#include <fcntl.h>
#include <unistd.h>
static char bytes[1 << 20];
static __attribute__((noinline, noclone)) long reads(int fd)
{
	long sum = 0;
	for (int i = 0; i < 4000; i++)
		sum += pread(fd, bytes, sizeof(bytes), 0);
	return sum;
}
int main(void)
{
	return reads(open("/dev/zero", O_RDONLY)) == 0;
}
""")
    need("gcc")
    equal(run(["gcc", "-O2", "-o", program, source])[0], 0, "compiler")
    stacks = folded(recorded(program, "-g"))
    if os.geteuid() != 0 or not any("_[k]" in stack for stack in stacks):
        skip("this user may not see the kernel's functions, or sample it: %s" % stacks)
    inside = sum(n for stack, n in stacks.items() if re.search(r"main;.*;.*pread.*;.*_\[k\];", stack))
    assert inside > 0.7 * sum(stacks.values()), stacks


@test
def a_function_with_what_it_called():
    "pem report --by function tells for each function the samples in it and in what it called"
    trace = recorded(built(*FRAMES), "--call-graph", "fp")
    rows = {row["function"]: row for row in json.loads(run([PEM, "report", "--by", "function", "--json", trace])[1])["functions"]
            if "function" in row and "chain" in row.get("object", "")}
    assert rows["hot"]["count"] > 0.8 * rows["hot"]["of"] and rows["hot"]["total"] >= rows["hot"]["count"], rows["hot"]
    assert rows["inner"]["count"] < 0.1 * rows["inner"]["total"], rows["inner"]
    assert rows["main"]["total"] > 0.3 * rows["main"]["of"] and rows["main"]["count"] < 10, rows["main"]
    text = run([PEM, "report", "--by", "function", trace])[1]
    assert "WITH CALLED" in text and re.search(r"% .* main\b", text), text


# Calls so many of itself, each with a frame of some 200 bytes, and then works.
DEEP = r"""
#include <stdlib.h>
#include <string.h>
static volatile long x;
__attribute__((noinline)) static long deep(int n)
{
	volatile char frame[200];

	memset((void *)frame, n, sizeof(frame));
	for (long i = 0; !n && i < 300000000; i++)
		x += i;
	return n ? deep(n - 1) + frame[3] : x;
}
/* Its own frame is more than the kernel copies. */
__attribute__((noinline)) static long large(void)
{
	volatile char frame[20000];

	memset((void *)frame, 1, sizeof(frame));
	for (long i = 0; i < 300000000; i++)
		x += i;
	return x + frame[5];
}
int main(int argc, char **argv)
{
	return (argc > 1 && !strcmp(argv[1], "large") ? large() : deep(argc > 1 ? atoi(argv[1]) : 0)) == 3;
}
"""


@test
def of_a_deep_stack():
    "-g: a stack that is deeper than what the kernel copies ends in [cut off], and one that is not does not"
    source, program = os.path.join(tmp(), "deep.c"), os.path.join(tmp(), "deep")
    with open(source, "w", encoding="ascii") as out:
        out.write(DEEP)
    equal(run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-o", program, source])[0], 0, "compiler")
    for depth, outermost, innermost in (("5", "_start", "deep"), ("100", "[cut off]", "deep"), ("large", "[cut off]", "large")):
        trace = os.path.join(tmp(), "trace" + depth)
        rc, _, err = run([PEM, "record", "-q", "-g", "-e", "HW::HWPerf::HPMsAndPC", "-o", trace, "--", program, depth])
        equal(rc, 0, "status (%s)" % err)
        rc, out, err = run([PEM, "export", "--to", "folded", "-o", "-", trace])
        equal(rc, 0, "status of export (%s)" % err)
        counts = {}
        for line in out.splitlines():
            stack, _, count = line.rpartition(" ")
            if stack.endswith(";" + innermost):
                counts[stack.split(";")[1]] = counts.get(stack.split(";")[1], 0) + int(count)
        equal(list(counts), [outermost], "outermost callers at depth %s in %s" % (depth, out[:2000]))
        text = run([PEM, "report", "--by", "function", trace])[1]
        equal("[cut off]" in text, depth != "5", "told in the report: " + text)
        assert "(jit)" not in text, text


@test
def without_stacks():
    "without -g a sample is one function, and the report has no column of what was called"
    trace = recorded(built())
    assert all(stack.count(";") <= 1 for stack in folded(trace)), folded(trace)
    assert "WITH CALLED" not in run([PEM, "report", "--by", "function", trace])[1]


@test
def flame_graph_of_samples():
    "the page draws samples as a flame graph, and its table is the report's"
    trace = recorded(built(*FRAMES), "--call-graph", "fp")
    rows = {row["function"]: row for row in json.loads(run([PEM, "report", "--by", "function", "--json", trace])[1])["functions"]
            if "function" in row and "chain" in row.get("object", "")}
    b = show(export(trace, os.path.join(tmp(), "page.html")))
    table = {name: (own, total) for name, own, total in b.script(
        "return [...document.querySelectorAll('#sample-table tbody tr')].map(e => "
        "[e.dataset.name, Number(e.dataset.own), Number(e.dataset.total)]);")}
    for name in ("hot", "inner", "main"):
        equal(table[name], (rows[name]["count"], rows[name]["total"]), name)
    b.script("document.querySelector('#stacks').scrollIntoView()")
    x, y, width, _ = b.box("#stacks canvas")
    b.mouse([("move", x + width / 4, y + 18 + 9)])
    told = b.script("return document.querySelector('#tip').textContent")
    assert re.search(r"chain \(\d+\)\d+ samples, ", told), told


@test
def no_samples():
    "folded stacks of a trace without samples: what to record"
    trace = os.path.join(tmp(), "trace")
    run([PEM, "record", "-q", "-e", "Malloc", "-o", trace, "--", "ls", "/"])
    rc, out, err = run([PEM, "export", "--to", "folded", "-o", "-", trace])
    assert rc != 0 and out == "" and "record with -g" in err, (rc, out, err)


@test
def a_misspelt_way():
    "--call-graph knows fp and dwarf"
    rc, _, err = run([PEM, "record", "--call-graph", "lbr", "--", "true"])
    equal(rc, 1, "status")
    assert "there are fp and dwarf" in err, err


run_all()
