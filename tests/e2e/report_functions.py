# SPDX-License-Identifier: MIT
"""report_functions: which function the CPU was in, and which one allocated what is live at the end"""
import json
import os
import re
import shutil
import subprocess
import time

from attached import Recorder
from patience import tree
from tap import PEM, equal, need, run, run_all, skip, start, test, tmp
from trace_files import Trace

LONG_S = 11

SPIN = """#include <time.h>
static volatile unsigned long sum;
static __attribute__((noinline)) void hot(void)
{
	for (int i = 0; i < 1000000; i++)
		sum += i;
}
static __attribute__((noinline)) void cold(void)
{
	for (int i = 0; i < 1000; i++)
		sum += i;
}
int main(void)
{
	struct timespec now, end;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	end.tv_sec++;
	do {
		hot();
		cold();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec < end.tv_sec);
	return 0;
}
"""
LEAK = """#include <stdlib.h>
static void *volatile kept[300];
static __attribute__((noinline)) void leak(int i)
{
	kept[i] = malloc(1000);
}
static __attribute__((noinline)) void tidy(int i)
{
	kept[200 + i] = malloc(500);
}
int main(void)
{
	for (int i = 0; i < 120; i++)
		leak(i);
	for (int i = 0; i < 50; i++)
		tidy(i);
	for (int i = 0; i < 50; i++)
		free(kept[200 + i]);
	free(kept[3]);
	return 0;
}
"""


def built(name, source):
    need("gcc")
    path = os.path.join(tmp(), name)
    with open(path + ".c", "w", encoding="ascii") as out:
        out.write(source)
    rc, _, err = run(["gcc", "-g", "-O1", "-o", path, path + ".c"])
    equal(rc, 0, err)
    return path


def recorded(events, program):
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", events, "-o", trace, "--", program])
    if rc == 2:
        skip("not recorded here: " + err.splitlines()[-1])
    equal(rc, 0, "status of record (stderr: %s)" % err)
    return trace


def functions(trace):
    rc, out, err = run([PEM, "report", "--by", "function", "--json", trace])
    equal(rc, 0, "status (stderr: %s)" % err)
    return json.loads(out)["functions"]


@test
def the_function_that_takes_the_time():
    "of a program that is in one function nearly always, so are its samples; each sample is counted once"
    # What lies in memory is recorded beside samples, though nobody asks for it.
    trace = recorded("HW::HWPerf::HPMsAndPC", built("spin", SPIN))
    rows = functions(trace)
    total = sum(row["count"] for row in rows)
    if total < 20:
        skip("only %d samples in a second of CPU time" % total)
    hot = [row["count"] for row in rows if row.get("function") == "hot"]
    assert len(hot) == 1 and hot[0] > 0.8 * total, rows
    equal({row["of"] for row in rows}, {total}, "samples in all")
    text = run([PEM, "report", "--by", "function", trace])[1]
    line = [line for line in text.splitlines() if line.endswith(" hot")]
    assert len(line) == 1 and "%" in line[0] and "spin" in line[0], text


@test
def what_is_live_at_the_end():
    "of two functions that allocate, the one whose blocks were not released has them live, to the block and byte"
    trace = recorded("APP::Libc::Malloc,APP::Libc::Realloc,APP::Libc::Free,APP::Loader::Object", built("leak", LEAK))
    rows = {row["function"]: row for row in functions(trace) if row.get("function") in ("leak", "tidy")}
    equal((rows["leak"]["count"], rows["leak"]["live"], rows["leak"]["live_bytes"]), (120, 119, 119000), "leak")
    equal((rows["tidy"]["count"], rows["tidy"]["bytes"], rows["tidy"]["live"]), (50, 25000, 0), "tidy")
    rc, out, _ = run([PEM, "report", "--by", "site", "--json", trace])
    sites = json.loads(out)["sites"]
    equal(sum(s["live_bytes"] for s in sites if any(n.get("function") == "leak" for n in s["names"])), 119000, "by site")
    text = run([PEM, "report", "--by", "function", trace])[1]
    assert "LIVE" in text and any("116 KiB" in line and line.endswith("leak") for line in text.splitlines()), text


@test
def a_name_for_the_linker():
    "a function of C that a library calls by a name of its own has the name that it exports"
    source = LEAK.replace("static __attribute__((noinline)) void leak(int i)\n",
                          "__attribute__((noinline, visibility(\"hidden\"))) void own(int i) __asm__(\"__GI_leak\");\n"
                          "void leak(int i) __attribute__((alias(\"__GI_leak\")));\nvoid own(int i)\n")
    rows = functions(recorded("APP::Libc::Malloc,APP::Libc::Free,APP::Loader::Object", built("leak", source)))
    equal(sorted({row.get("function") for row in rows} & {"leak", "tidy", "__GI_leak"}), ["leak", "tidy"], "functions")


# Two files with a function of one name each, of which the first has two thirds of the work.
HELPER = """static volatile unsigned long sum;
static __attribute__((noinline)) void helper(void)
{
	unsigned long x = sum;
	for (long i = 0; i < %d; i++)
		x = x * 6364136223846793005UL + 1;
	sum = x;
}
void %s(void)
{
	helper();
}
"""
HELPERS = """void first(void);
void second(void);
int main(void)
{
	for (int i = 0; i < 100; i++) {
		first();
		second();
	}
	return 0;
}
"""
# Functions of C++ that are local to their source: they have no linkage name in debug information.
SCOPES = """#include <stdlib.h>
static volatile unsigned long sum;
#define WORK(n) unsigned long x = sum; for (long i = 0; i < (n) * 1000000L; i++) x = x * 6364136223846793005UL + 1; sum = x
#define APART __attribute__((noinline))
#define INTO __attribute__((always_inline))
APART void A() { auto f = []() APART { WORK(40); }; f(); }
APART void B() { auto f = []() APART { WORK(20); }; f(); }
APART void C() { auto f = []() INTO { WORK(30); }; auto g = []() INTO { WORK(15); }; f(); g(); }
namespace { struct S { APART void h() { WORK(40); } INTO void in() { WORK(20); } }; }
namespace shop { namespace { APART void h() { WORK(20); } } APART void call() { h(); S s; s.in(); } }
int main() { for (int i = 0; i < 2; i++) { S s; A(); B(); C(); s.h(); shop::call(); } return 0; }
"""


def build_in(folder, compiler, *files, flags=("-O1", "-g")):
    """Compile files, which are (name, text), as folder/program."""
    need(compiler)
    for name, text in files:
        with open(os.path.join(folder, name), "w", encoding="ascii") as out:
            out.write(text)
    rc, _, err = run([compiler, *flags, "-o", "program", *[name for name, _ in files]], cwd=folder)
    equal(rc, 0, err)
    return os.path.join(folder, "program")


def expect_near(count, total, share, what):
    """Of a total number of samples, a share is within five standard errors of a binomial distribution."""
    error = (share * (1 - share) / total) ** 0.5
    assert abs(count / total - share) < 5 * error + 0.01, "%s: %d of %d samples, expected %.3f" % (what, count, total, share)


@test
def functions_with_one_name():
    "two static functions with one name are two rows, with their files, by debug information and by symbols alone; so in all exports"
    for flags in (("-O1", "-g"), ("-O1",)):
        files = [("a.c", HELPER % (4000000, "first")), ("b.c", HELPER % (2000000, "second")), ("main.c", HELPERS)]
        rows, trace = sampled_trace("--", build_in(tmp(), "gcc", *files, flags=flags))
        found = {row["function"]: row["count"] for row in rows if row.get("function", "").startswith("helper")}
        equal(sorted(found), ["helper (a.c)", "helper (b.c)"], " ".join(flags))
        expect_near(found["helper (a.c)"], sum(found.values()), 2 / 3, "helper (a.c)")
        out = os.path.join(tmp(), "folded")
        equal(run([PEM, "export", "--to", "folded", trace, "-o", out])[0], 0, "folded")
        with open(out, encoding="utf-8") as lines:
            stacks = dict(line.rsplit(" ", 1) for line in lines if "helper" in line)
        equal({stack.rsplit(";", 1)[1]: int(count) for stack, count in stacks.items()}, found, "folded stacks")
        equal(run([PEM, "export", "--to", "html", trace, "-o", out])[0], 0, "page")
        with open(out, encoding="utf-8") as page:
            equal(set(re.findall(r'"(helper[^"]*)","/', page.read())), set(found), "page")


@test
def scopes_of_functions():
    "functions of C++ that are local to their source have their namespaces and classes, lambdas the function around them; inlined too"
    for compiler in ("g++", "clang++"):
        if compiler == "clang++" and not shutil.which(compiler):
            continue
        rows, trace = sampled_trace("-g", "--", build_in(tmp(), compiler, ("scopes.cpp", SCOPES)))
        total = sum(row["count"] for row in rows)
        names = {row["function"]: row["count"] for row in rows if row["count"] and row.get("function")}
        for pattern, share in ((r"A\(\)::.*operator\(\)", 40), (r"B\(\)::.*operator\(\)", 20), (r"C\(\)", 45),
                               (r"\(anonymous namespace\)::S::h\(\)", 40), (r"shop::\(anonymous namespace\)::h\(\)", 20)):
            found = [name for name in names if re.match(pattern, name)]
            equal(len(found), 1, "%s, %s among %s" % (compiler, pattern, sorted(names)))
            expect_near(names[found[0]], total, share / 185, pattern)
        out = os.path.join(tmp(), "folded")
        equal(run([PEM, "export", "--to", "folded", trace, "-o", out])[0], 0, "folded")
        with open(out, encoding="utf-8") as lines:
            frames = {frame for line in lines for frame in line.rsplit(" ", 1)[0].split(";")}
        inlined = sorted(frame for frame in frames if re.match(r"C\(\)::.*::operator\(\)", frame))
        equal(len(inlined), 2, "inlined lambdas of C, by %s, among %s" % (compiler, sorted(frames)))
        assert any(re.fullmatch(r"\(anonymous namespace\)::S::in(\(\))?", frame) for frame in frames), sorted(frames)


LONG_NAMES = """#include <map>
#include <string>
#include <vector>
typedef std::map<std::string, std::vector<std::string>> index_type;
__attribute__((noinline)) unsigned long look_up(const index_type &index, std::vector<std::map<std::string, index_type>> &more)
{
	unsigned long x = index.size() + more.size();
	for (long i = 0; i < 300000000; i++)
		x = x * 6364136223846793005UL + 1;
	return x;
}
int main() { index_type index; std::vector<std::map<std::string, index_type>> more; return look_up(index, more) == 1; }
"""


@test
def long_names():
    "tables have names of C++ as people write them, and no row of hundreds of characters; JSON has them in full"
    rows, trace = sampled_trace("--", build_in(tmp(), "g++", ("long.cpp", LONG_NAMES)))
    full = [row["function"] for row in rows if "look_up" in row.get("function", "")]
    assert len(full) == 1 and full[0].count("std::allocator<") > 5, full
    lines = [line for line in run([PEM, "report", "--by", "function", trace])[1].splitlines() if "look_up" in line]
    assert len(lines) == 1 and "look_up(std::map<std::string, std::vector<" in lines[0] and len(lines[0]) < 200, lines
    assert "CPU samples" in lines[0], lines


@test
def narrow_terminals():
    "in a terminal of 60 columns no line of a report is longer, so that none is broken within a word"
    trace = sampled_trace("-g", "--", build_in(tmp(), "g++", ("scopes.cpp", SCOPES)))[1]
    for by in ((), ("--by", "function"), ("--by", "site"), ("--by", "lock"), ("--by", "file"), ("--by", "wait")):
        text = run(["env", "COLUMNS=60", PEM, "report", *by, trace])[1]
        equal([line for line in text.splitlines() if len(line) > 60], [], " ".join(by))


FORKS = """#include <sys/wait.h>
#include <unistd.h>
static volatile long sum;
static __attribute__((noinline)) void in_child(void)
{
	for (long i = 0; i < 300000000; i++)
		sum += i;
}
int main(void)
{
	if (fork() == 0) {
		in_child();
		_exit(0);
	}
	wait(NULL);
	return 0;
}
"""


def sampled_trace(*arguments):
    """Record with samples: the rows of functions, and the trace."""
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-F", "1000", "-o", trace, *arguments])
    if rc == 2:
        skip("not recorded here: " + err.splitlines()[-1])
    equal(rc, 0, err)
    rows = [row for row in functions(trace) if "HPMsAndPC" in row["event"]]
    if sum(row["count"] for row in rows) < 20:
        skip("too few samples")
    return rows, trace


def sampled(*arguments):
    return sampled_trace(*arguments)[0]


def share(rows, function):
    return sum(row["count"] for row in rows if row.get("function") == function) / sum(row["count"] for row in rows)


@test
def programs_without_pem_in_them():
    "samples of a static program, of its forked child, and of one without adapters are named by what the kernel says is mapped"
    program = built("forks", FORKS)
    equal(run(["gcc", "-O1", "-static", "-o", program, program + ".c"])[0], 0, "gcc -static")
    assert share(sampled("--", program), "in_child") > 0.8, "static"
    rows = sampled("--no-libc", "-e", "HW::HWPerf::HPMsAndPC", "--", built("spin", SPIN))
    assert share(rows, "hot") > 0.8, rows


@test
def a_forked_process_has_its_parents_memory():
    "but only where the kernel would have told that it began another program; else nothing is known of it"
    for has_maps in (False, True):
        t = Trace(duration_ns=10 ** 9)
        t.event("APP::Test::Object", "object", [("address", "uint64", "address"), ("length", "uint64", "size"), ("base", "uint64", "value"),
                                                ("path", "string", "name")])
        t.event("HW::Test::Map", "object", [("address", "uint64", "address"), ("length", "uint64", "size"), ("offset", "uint64", "-"),
                                            ("path", "string", "name")])
        t.event("OS::Test::Start", "thread-start", [("pid", "uint32", "process"), ("tid", "uint32", "thread"), ("parent", "uint32", "parent")])
        t.event("HW::Test::Sample", "sample", [("pc", "uint64", "code")])
        t.add("APP::Test::Object", 1000, [0x10000, 0x10000, 0x10000, b"/no/such/program"], pid=7)
        if has_maps:
            t.add("HW::Test::Map", 2000, [0x40000, 0x1000, 0x3000, b"/no/such/library"], pid=7)
        t.add("OS::Test::Start", 3000, [8, 8, 7], pid=7)
        t.add("HW::Test::Sample", 4000, [0x10500], pid=8)
        t.add("HW::Test::Sample", 5000, [0x10500], pid=7)
        folder = os.path.join(tmp(), "trace")
        t.write(folder)
        found = sorted((row.get("object", ""), row["count"]) for row in functions(folder))
        equal(found, [("/no/such/program", 2)] if has_maps else [("", 1), ("/no/such/program", 1)], "with maps: %r" % has_maps)


@test
def programs_that_run_already():
    "what a program had mapped before it was attached to is known, too"
    with subprocess.Popen([built("spin", SPIN.replace("tv_sec++", "tv_sec += 2"))]) as process:
        rows = sampled("-p", str(process.pid))
    assert share(rows, "hot") > 0.8, rows


@test
def the_maps_of_other_users_are_not_read():
    "for all processes, what those of the same user have mapped is read; another user could make the reader wait"
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        skip("needs root and setpriv")
    source = SPIN.replace("tv_sec++", "tv_sec += 3")
    os.chmod(tmp(), 0o755)
    mine, other = built("mine", source), built("other", source)
    as_other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", other]
    with subprocess.Popen([mine]) as first, subprocess.Popen(as_other) as second:
        try:
            time.sleep(0.3)
            rows = sampled("-a", "-e", "HW::HWPerf::HPMsAndPC", "--", "sleep", "0.8")
            running = first.poll() is None and second.poll() is None
        finally:
            first.kill()
            second.kill()
    if not running:
        skip("a program ended too early")
    objects = {os.path.basename(row.get("object", "")) for row in rows}
    assert "mine" in objects and "other" not in objects, objects


def kernel_functions():
    """Names of the kernel's functions; skips where they can't be seen."""
    with open("/proc/kallsyms", encoding="utf-8") as f:
        lines = [line.split() for line in f]
    if not any(int(line[0], 16) for line in lines):
        skip("the kernel hides where its functions lie")
    return {line[2] for line in lines if line[1] in "tTwW"}


@test
def functions_of_the_kernel():
    "samples within the kernel are of its functions, also where it was booted since; of none if the trace then keeps no names"
    known = kernel_functions()
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-F", "2000", "-e", "HW::HWPerf::HPMsAndPC", "-o", trace, "--",
                      "dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=4000", "status=none"])
    if rc == 2:
        skip("not recorded here: " + err.splitlines()[-1])
    equal(rc, 0, err)
    rows = [row for row in functions(trace) if row["kernel"]]
    if not rows:
        skip("no sample was in the kernel")
    named = [row for row in rows if row.get("function")]
    assert sum(row["count"] for row in named) > 0.9 * sum(row["count"] for row in rows), rows
    equal({row["function"].split(" ")[0] for row in named} - known, set(), "functions that the kernel has not")
    text = run([PEM, "report", "--by", "function", trace])[1]
    assert re.search(r"\(kernel\) +%s$" % re.escape(named[0]["function"]), text, re.M) and "(kernel):" not in text, text
    path = os.path.join(trace, ".pem", "run")
    with open(path, encoding="utf-8") as f:
        about = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(re.sub("boot_id=.", "boot_id=x", about))
    equal([row for row in functions(trace) if row["kernel"]], rows, "after another boot")
    os.unlink(os.path.join(trace, ".pem", "code"))
    equal([row for row in functions(trace) if row["kernel"] and row.get("function")], [], "after another boot, without the names that were kept")
    text = run([PEM, "report", "--by", "function", trace])[1]
    assert "(kernel): the kernel's functions lie elsewhere since it was booted" in text, text


JIT = """#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
/* mov $0x20000000, %ecx; 1: dec %rcx; jnz 1b; ret */
static const uint8_t loop[] = {0xb9, 0, 0, 0, 0x20, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3};
int main(int count, char **arguments)
{
	struct pollfd end = {.events = POLLIN};
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[64];
	FILE *f;
	if (code == MAP_FAILED)
		return 77;
	memcpy(code + 64, loop, sizeof(loop));
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	f = fopen(name, "w");
	fprintf(f, "%lx 40 before\\n%lx 40 stale\\nno line\\n%lx 40 LazyCompile:*spin app.js:7\\n%lx 40 behind\\n", (long)code,
		(long)code + 64, (long)code + 64, (long)code + 128);
	fclose(f);
	puts(name);
	fflush(stdout);
	if (count > 1 && read(0, name, 1) < 0)
		return 1;
	do
		((void (*)(void))(code + 64))();
	while (count > 1 && poll(&end, 1, 0) == 0);
	return 0;
}
"""


@test
def functions_that_the_program_made():
    "code that a program compiles as it runs is named by the list that it leaves for perf, which is kept; an older list is another process's"
    if os.uname().machine != "x86_64":
        skip("the loop is code of x86-64")
    trace = os.path.join(tmp(), "trace")
    rc, out, err = run([PEM, "record", "-q", "-e", "HW::HWPerf::HPMsAndPC", "-o", trace, "--", built("jit", JIT)])
    if rc in (2, 77):
        skip("not recorded here: " + err)
    equal(rc, 0, err)
    path = out.strip()
    try:
        rows = functions(trace)
        made = [row["count"] for row in rows if row.get("function") == "LazyCompile:*spin app.js:7"]
        assert len(made) == 1 and made[0] > 0.5 * sum(row["count"] for row in rows), rows
        text = run([PEM, "report", "--by", "function", trace])[1]
        assert re.search(r"\(jit\) +LazyCompile:\*spin app.js:7$", text, re.M), text
        os.rename(path, path + ".old")
        equal(functions(trace), rows, "without the list")
        os.rename(path + ".old", path)
        # As of a trace that keeps no names.
        os.unlink(os.path.join(trace, ".pem", "code"))
        equal(functions(trace), rows, "by the list")
        if os.geteuid() == 0 and shutil.which("setpriv"):
            equal(run(["chmod", "-R", "a+rX", os.path.dirname(trace)])[0], 0, "chmod")
            rc, out, err = run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", PEM, "report", "--by", "function", "--json", trace])
            if rc == 0:  # who may read the trace
                assert "LazyCompile" not in out, "another user's list"
        os.utime(path, (1, 1))
        equal([row for row in functions(trace) if (row.get("function") or "").startswith("Lazy")], [], "with an older list")
    finally:
        os.unlink(path)


@test
def functions_that_the_program_made_before():
    "a process that made its code long before it was attached to has names for it; not by a list that is older than the process"
    if os.uname().machine != "x86_64":
        skip("the loop is code of x86-64")
    child = start([built("jit", JIT), "again"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    path = child.stdout.readline().strip()
    try:
        recorder = Recorder("-p", str(child.pid), events="HW::HWPerf::HPMsAndPC")
        child.stdin.write("x")
        child.stdin.flush()
        ran = tree(child.pid)[1]
        while tree(child.pid)[1] < ran + 0.5:
            pass
        recorder.end()
        named = lambda: sum(row["count"] for row in functions(recorder.trace) if row.get("function") == "LazyCompile:*spin app.js:7")
        text = run([PEM, "report", "--by", "function", recorder.trace])[1]
        if "(jit)" not in text:
            skip("no sample was taken: " + text)
        assert "Code without an object" not in text, text
        # As if the recording had begun an hour later, and kept no names.
        os.unlink(os.path.join(recorder.trace, ".pem", "code"))
        with open(os.path.join(recorder.trace, ".pem", "run"), "r+", encoding="utf-8") as info:
            later = re.sub(r"start_time_ns=(\d+)", lambda found: "start_time_ns=%d" % (int(found.group(1)) + 3600 * 10**9), info.read())
            info.seek(0)
            info.write(later)
        assert named() > 0, "a list of the process, older than the recording"
        os.utime(path, (1, 1))
        equal(named(), 0, "by a list that is older than the process")
        child.stdin.close()
        equal(child.wait(), 0, "status")
    finally:
        os.unlink(path)


def edited(trace, pattern, text):
    path = os.path.join(trace, ".pem", "run")
    with open(path, "r+", encoding="utf-8") as info:
        about = re.sub(pattern, text, info.read(), count=1, flags=re.M)
        info.seek(0)
        info.truncate()
        info.write(about)


@test
def functions_that_an_ended_process_made():
    "of a process that has ended, a list is left that is older than its start or the machine's, or of another boot"
    if os.uname().machine != "x86_64":
        skip("the loop is code of x86-64")
    trace = os.path.join(tmp(), "trace")
    events = "HW::HWPerf::HPMsAndPC" + (",OS::Process::Fork" if os.geteuid() == 0 else "")
    rc, out, err = run([PEM, "record", "-q", "-e", events, "-o", trace, "--", "sh", "-c", "%s; true" % built("jit", JIT)])
    if rc in (2, 77):
        skip("not recorded here: " + err)
    equal(rc, 0, err)
    path = out.strip()
    try:
        named = lambda: any((row.get("function") or "").startswith("LazyCompile") for row in functions(trace))
        os.unlink(os.path.join(trace, ".pem", "code"))
        equal(named(), True, "by the process's list")
        began = os.stat(path).st_mtime
        # As of a recording of all processes: they may have run before.
        edited(trace, "^command=.*", "command=")
        os.utime(path, (began, began))
        equal(named(), True, "by the process's list, without a command")
        starts = json.loads(run([PEM, "report", "--json", trace])[1])["per_event"]
        if any(event["name"] == "OS::Process::Fork" and event["count"] for event in starts):
            os.utime(path, (began - 60, began - 60))
            equal(named(), False, "a list of a minute before the process started")
        os.utime(path, (1, 1))
        equal(named(), False, "a list that is older than the machine's start")
        os.utime(path, (began, began))
        edited(trace, "^boot_id=.", "boot_id=x")
        equal(named(), False, "of another boot")
    finally:
        os.unlink(path)


MANY = "#include <stdlib.h>\nstatic void *volatile kept;\n" + "".join(
    "static __attribute__((noinline)) void at%d(void) { kept = malloc(%d); free(kept); }\n" % (i, i + 1) for i in range(60)) + """
int main(void)
{
	for (volatile int i = 0; i < 300000000; i++)
		;
	for (int i = 0; i < 100; i++) {
""" + "".join("		at%d();\n" % i for i in range(60)) + "	}\n	return 0;\n}\n"


@test
def samples_come_first():
    "functions that allocate often leave room for those that take the CPU's time, and tell how many are left out"
    trace = recorded("HW::HWPerf::HPMsAndPC,APP::Libc::Malloc,APP::Loader::Object", built("many", MANY))
    rows = functions(trace)
    if not any("HPMsAndPC" in row["event"] for row in rows):
        skip("no sample was taken")
    assert "HPMsAndPC" in rows[0]["event"], rows[0]
    text = run([PEM, "report", "--by", "function", trace])[1]
    lines = [line for line in text.splitlines() if "APP::Libc::Malloc" in line]
    equal(len(lines), 40, "rows of an event")
    left_out = sum(1 for row in rows if row["event"] == "APP::Libc::Malloc") - 40
    assert "and %d more" % (left_out + max(0, sum(1 for row in rows if "HPMsAndPC" in row["event"]) - 40)) in text, text


@test
def frees_that_were_not_recorded():
    "where an event that ends blocks was not recorded, nothing is said to be live"
    program = built("leak", LEAK)
    for events in ("APP::Libc::Malloc", "APP::Libc::Malloc,APP::Libc::Free",
                   "APP::Libc::Malloc,APP::Libc::Realloc,APP::Libc::Free where address > 4096"):
        rows = functions(recorded(events + ",APP::Loader::Object", program))
        equal(sum(row["live"] for row in rows), 0, "live blocks with " + events)


@test
def nothing_to_say():
    "a trace without code addresses says which events have them"
    rc, out, _ = run([PEM, "report", "--by", "function", recorded("APP::Libc::Free", "true")])
    equal(rc, 0, "status")
    assert "HW::HWPerf::HPMsAndPC" in out or "APP::Libc::Free" in out, out


run_all()
