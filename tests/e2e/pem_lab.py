# SPDX-License-Identifier: MIT
"""pem_lab: programs in the emulated machine of pem lab, counted and recorded alike in every run"""
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import time

from labs import PLAIN, lab, pem_lab, program
from patience import HANG_S
from tap import PEM, ROOT, equal, run, run_all, skip, start, test, tmp

LIMIT_S = 300  # a fetch, and a build for another machine
LONG_S = 100
# One boot: counts of three runs of the loop, each by a pem of its own.
COUNTS = "for n in 1 2 3; do pem stat -q --json -e UserInstructions,instructions,cycles -- ./loop $n 2>/dev/null; done"


def files(folder):
    """The content of all files below a folder, by their names."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(where, name), "rb") as data:
                found[os.path.relpath(os.path.join(where, name), folder)] = data.read()
    return found


@test
def counts_are_exact():
    "a million rounds more are two million instructions more, exactly; without the kernel's there are fewer than with them"
    folder = tmp()
    program(folder)
    # Each pem's own output comes behind what the loop prints.
    out, _ = pem_lab("--file", "../%s/./loop" % os.path.basename(folder), "stat", "-q", "-e", "cs", "--", "sh", "-c", COUNTS, cwd=folder)
    decoder, found, text = json.JSONDecoder(), [], out.decode("utf-8", "replace")
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        events = decoder.raw_decode(text[match.start():])[0]["events"]
        found.append({event["name"].rsplit("::", 1)[1]: event["count"] for event in events})
    equal(len(found), 3, "objects in " + text[-2000:])
    user = [counts["UserInstructions"] for counts in found]
    equal([user[1] - user[0], user[2] - user[1]], [2000000, 2000000], "differences of %r" % user)
    assert 2000000 < user[0] < 2100000, user
    for counts in found:
        assert counts["UserInstructions"] < counts["Instructions"] < 1.5 * counts["UserInstructions"], counts
        equal(counts["Cycles"], 2 * counts["Instructions"], "cycles of 1 ns, at two an instruction")


# Calls in known proportions: below three a third as long as below one; and phases of known instructions.
CALLS = r"""
#include <stubs/phase.h>
#include <stdlib.h>
#define CALLED __attribute__((noinline, noclone))
static CALLED void spin(unsigned long rounds)
{
	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(rounds) : : "cc");
	__asm__ volatile("");
}
static CALLED void one(void) { spin(3000000); __asm__ volatile(""); }
static CALLED int three(const void *a, const void *b) { spin(9000000); return (int)(a < b); }
int main(void)
{
	int i, two[2] = {2, 1};

	for (i = 0; i < 4; i++) {
		pem_notify_phase_begin("one");
		one();
		pem_notify_phase_end("one");
		pem_notify_phase_begin("three");
		qsort(two, 2, sizeof(two[0]), three);
		pem_notify_phase_end("three");
	}
	return 0;
}
"""


def raising(folder, source, name, *options):
    """A program for the lab that raises events."""
    root = os.path.join(os.environ.get("GUEST_CACHE") or os.path.expanduser("~/.cache/pem/guests"), "root-aarch64")
    lab()
    return program(folder, source, name, ("--sysroot=" + root, "-I", ROOT + "/spec/abi", "-I", PLAIN + "/gen", *options, "-ldl"))


# Phases with names of three lengths, so that a chunk ends with any room, and many of them.
MANY = r"""
#include <stubs/phase.h>
int main(void)
{
	static const char *const names[] = {"m", "many", "many of these phases"};
	int i;

	for (i = 0; i < 30000; i++) {
		pem_notify_phase_begin(names[i % 3]);
		pem_notify_phase_end(names[i % 3]);
	}
	return 0;
}
"""


@test
def readings_fill_chunks():
    "of many readings with their events none is lost where there is room, and what a flight recorder overwrites is counted"
    folder = tmp()
    raising(folder, MANY, "many")
    for options, lossy in ((("--buffer", "64M"), False), (("--buffer", "256K", "--overwrite"), True)):
        trace = folder + ("/lossy" if lossy else "/whole")
        pem_lab("-o", os.path.basename(trace), "record", *options, "-e", "UserInstructions+UserCycles@phase", "--", "./many", cwd=folder)
        rc, out, err = run([PEM, "report", "--json", trace])
        equal(rc, 0, "status of report (%s)" % err)
        told = json.loads(out)
        equal(told["info"]["balanced"], True, "balanced: %s" % told["info"]["verdict"])
        equal((told["info"]["torn_packets"], told["info"]["damaged_places"]), (0, 0), "damage")
        balance = {e["name"]: e["balance"] for e in told["per_event"]}
        equal({name: b["produced"] for name, b in balance.items()},
              {"HW::HWPerf::HPMsInThread": 60000, "APP::Phase::Begin": 30000, "APP::Phase::End": 30000}, "produced")
        equal(any(b["overwritten"] for b in balance.values()), lossy, "overwritten %r" % balance)
        if not lossy:
            rows = {row["interval"]: row for row in told["counted"] if "tid" not in row}
            for name in ("m", "many", "many of these phases"):
                equal(rows[name]["known"], {"UserInstructions": 10000, "UserCycles": 10000}, "readings of " + name)
                assert 150 < rows[name]["sum"]["UserInstructions"] / 10000 < 500, rows[name]


@test
def phases_and_stacks():
    "each phase has its instructions, read by the thread; samples have the right callers in the right proportion"
    folder = tmp()
    raising(folder, CALLS, "calls")
    pem_lab("-o", "t", "record", "-g", "-F", "2000", "-e", "HPMsAndPC,UserInstructions+UserCycles@phase", "--", "./calls", cwd=folder)
    rc, out, err = run([PEM, "report", "--json", folder + "/t"])
    equal(rc, 0, "status of report (%s)" % err)
    told = json.loads(out)
    equal(told["info"]["balanced"], True, "balanced")
    rows = {row["interval"]: row for row in told["counted"] if "tid" not in row}
    for name, rounds in (("one", 12000000), ("three", 36000000)):
        equal(rows[name]["known"]["UserInstructions"], 4, "readings of " + name)
        assert 0 <= rows[name]["sum"]["UserInstructions"] - 2 * rounds < 40000, rows[name]
    rc, out, err = run([PEM, "export", "--to", "folded", "-o", "-", folder + "/t"])
    equal(rc, 0, "status of export (%s)" % err)
    stacks = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in out.splitlines()}
    first, third = (sum(n for stack, n in stacks.items() if re.search(way, stack)) for way in (";main;one;spin", ";main;.*three;spin"))
    assert first > 20 and 2.5 < third / first < 3.5, stacks
    assert first + third > 0.8 * sum(stacks.values()), stacks


# Ten pairs, each around 10,000 rounds more than the one before, of two instructions each. Events: arm64's numbers.
COUNTED = r"""
#include <pem/probe.h>
int main(void)
{
	unsigned long i, n;

	PEM_SET_PERFCNTR(1, 0x08, 0); /* instructions */
	PEM_SET_PERFCNTR(2, 0x11, 0); /* cycles */
	for (i = 1; i <= 10; i++) {
		n = 10000 * i;
		PEM_PERFCNTR_PROBE_BEGIN(1, 1, 1);
		PEM_PERFCNTR_PROBE_BEGIN(2, 1, 2);
		__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(n) : : "cc");
		PEM_PERFCNTR_PROBE_END(2);
		PEM_PERFCNTR_PROBE_END(1);
	}
	return 0;
}
"""


@test
def probes_read_counters():
    "a probe of a counter that the program chose counts what it encloses, exactly: instructions and cycles, read by the program"
    folder = tmp()
    raising(folder, COUNTED, "counted", "-I", ROOT + "/libpem/include")
    pem_lab("-o", "t", "record", "-e", "APP::Probe::*", "--", "./counted", cwd=folder)
    rc, out, err = run([PEM, "export", "--to", "csv", "-o", "-", folder + "/t"])
    equal(rc, 0, "status of export (%s)" % err)
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["event"] == "APP::Probe::Perfcntr"]
    equal({row["reading"] for row in rows}, {"mapped"}, "readings")
    for probe, more in ((1, 20000), (2, 40000)):
        counts = [int(row["count"]) for row in rows if row["id"] == str(probe)]
        equal(len(counts), 10, "records")
        # Within the first pair of 1 the other counter is opened, and pem makes what its first record needs.
        equal([b - a for a, b in zip(counts[1:], counts[2:])], [more] * 8, "differences of %r" % counts)
        assert more < counts[1] / 2 < more + 500, counts


@test
def two_runs_are_the_same():
    "output, errors and status pass through; two runs make the same trace to the byte, which balances and names the lab"
    folder = tmp()
    program(folder)
    said = []
    for name in ("a", "b"):
        out, err = pem_lab("-o", name, "--", "./loop", "1", "7", cwd=folder, status=7)
        equal(out, b"out\0\xff\n", "standard output")
        assert b"\nerr\n" in b"\n" + err and ("pem report %s\n" % name).encode() in err, err
        said.append(err.replace(b"pem report " + name.encode(), b"pem report"))
    equal(said[0], said[1], "what is said")
    equal(sorted(os.listdir(folder)), ["a", "b", "loop", "loop.c"], "files that are left")
    first, second = files(folder + "/a"), files(folder + "/b")
    equal(sorted(first), sorted(second), "files of the traces")
    equal([name for name in first if first[name] != second[name]], [], "files that differ")
    rc, out, err = run([PEM, "report", "--json", folder + "/a"])
    equal(rc, 0, "status of report (%s)" % err)
    rc, out, err = run([PEM, "report", folder + "/a"])
    equal(rc, 0, "status of report (%s)" % err)
    assert "on pem-lab by pem" in out and "HW::HWPerf::Instructions" in out and "OS::Syscall::Enter" in out, out


@test
def what_cannot_run_there():
    "a program for this machine, one whose library is missing, a text: a sentence that names what would mend it, and no boot"
    folder = tmp()
    program(folder, "int extra(void) { return 0; }", "libextra.so", ("-shared", "-fPIC", "-Wl,-soname,libextra.so"))
    program(folder, "int extra(void); int main(void) { return extra(); }", "needs", ("-L.", "-lextra"))
    with open(folder + "/text", "w", encoding="ascii") as text:
        text.write("no program\n")
    with open(folder + "/script", "w", encoding="ascii") as text:
        text.write("#!/usr/bin/perl\n")
    for name in ("text", "script"):
        os.chmod(folder + "/" + name, 0o755)
    shutil.copy(PEM, folder + "/native")
    with open(folder + "/large", "wb") as data:
        data.truncate(65 << 20)
    _, err = pem_lab("--memory", "256", "--file", "large", "--", "true", cwd=folder, status=1)
    assert b"--memory" in err, err
    # Whatever an ELF file says of itself may be wrong.
    with open(folder + "/needs", "rb") as data:
        whole = data.read()
    with open(folder + "/short", "wb") as data:
        data.write(whole[:100])
    os.chmod(folder + "/short", 0o755)
    for command, words, status in ((["./native"], ["./native is a program for", "aarch64-linux-gnu-gcc -O2 -static"], 126),
                                   (["./needs"], ["needs the library libextra.so", "--file"], 126),
                                   (["./short"], ["./short is broken off"], 126),
                                   (["./text"], ["./text is neither"], 126),
                                   (["./script"], ["/usr/bin/perl", "--file"], 126),
                                   (["needs"], ["./needs"], 127), (["./nowhere"], ["./nowhere"], 127)):
        _, err = pem_lab("--", *command, cwd=folder, status=status)
        for word in words:
            assert word in err.decode(), (word, err)
        assert not [name for name in os.listdir(folder) if name.startswith("pem-trace")], os.listdir(folder)


@test
def a_signal_leaves_nothing():
    "a signal ends the emulator, and neither a trace nor a temporary file is left"
    folder, scratch = tmp(), tmp()
    place, why = lab()
    if why:
        skip(why)
    child = start([PEM, "lab", "--", "sh", "-c", "while :; do :; done"], env={"PEM_LAB": place, "TMPDIR": scratch}, cwd=folder,
                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    children = "/proc/%d/task/%d/children" % (child.pid, child.pid)
    deadline, emulator = time.monotonic() + HANG_S, ""
    while not emulator and time.monotonic() < deadline:
        with open(children, encoding="ascii") as text:
            emulator = text.read().strip()
        time.sleep(0.05)
    assert emulator, "no emulator was started"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    equal(child.returncode, 130, "status (%s)" % err)
    assert not os.path.exists("/proc/" + emulator), "the emulator lives"
    equal((os.listdir(folder), os.listdir(scratch)), ([], []), "files that are left")


@test
def wrong_usage():
    "what is missing or makes no sense there is said, with status 1; a lab that is not there, with status 2"
    for command, word in ((["lab"], "no command"), (["lab", "./x"], "pem lab -- ./x"), (["lab", "stat", "-p", "1", "--", "x"], "--pid"),
                          (["lab", "-o", "t", "stat", "--", "x"], "-o"), (["lab", "--cpus", "0", "--", "x"], "--cpus"),
                          (["lab", "--memory", "255", "--", "x"], "--memory"),
                          (["lab", "record", "--trigger", "x", "--", "x"], "--trigger")):
        rc, _, err = run([PEM, *command])
        equal(rc, 1, " ".join(command))
        assert word in err, (word, err)
    rc, _, err = run([PEM, "lab", "--", "true"], env={"PEM_LAB": "/nowhere"})
    equal(rc, 2, "status")
    assert "make lab" in err and "/nowhere" in err, err


run_all()
