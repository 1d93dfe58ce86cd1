#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
read4 - what it costs to read 4 counters at an event

	hw/read4_insns		what an event takes more with 4 counters than without, in instructions: so many times a bare reading of
				the 4 by the protocol of linux/perf_event.h; in pem lab's machine
	hw/read4_papi_insns	PAPI_read() of the same 4 in the same machine, with the kernel's instructions: so many times as many as
				an event takes more
	hw/read4		as hw/read4_insns, in ns: where this machine has counters that programs can read

In the lab, time counts instructions: a figure is the same in every run. It comes from the readings in the program's own trace, as
read4.c says; medians leave out what comes once in many events, such as a new chunk. The bare reading and the events are of two
threads of one program, since the 4 of each thread fill the processor's counters.

PAPI is Debian's for arm64, kept beside the guests' kernels in the cache and never installed.
"""
import csv
import fcntl
import os
import re
import shutil
import statistics
import subprocess
import sys

from measure import BUILD, HERE, Folder, Missing, PEM, QUICK, heading, report, wanted

ROOT = os.path.dirname(BUILD)
sys.path.insert(0, ROOT)
from lab import kernels  # noqa: E402

INSNS, PAPI, NS = "hw/read4_insns", "hw/read4_papi_insns", "hw/read4"
COUNTERS = "Cycles+UserCycles+Instructions+UserInstructions"
EVENTS = "APP::Bench::Log,%s@APP::Bench::Stat" % COUNTERS
SPEC = os.path.join(ROOT, "bench", "bench.xml")
INCLUDES = [".", "spec/abi", "libpem/include", os.path.join(BUILD, "gen")]
KERNEL = kernels.KERNELS["aarch64-6.12"]
PAPI_PACKAGES = ("libpapi-dev", "libpapi7.0", "libpfm4")
PLAIN = 8  # as read4.c
ROUNDS = 100 if QUICK else 1000
BATCHES = 100 if QUICK else 5000
NS_ROUNDS = 1 if QUICK else 7


# --- in the lab ---


def compile_for_lab(name, program, *more):
    """A program of bench/NAME.c for the lab's machine."""
    compiler = KERNEL.triple + "-gcc"
    if not shutil.which(compiler):
        raise Missing("%s is missing (gcc-%s)" % (compiler, KERNEL.triple))
    subprocess.run([compiler, "--sysroot=" + KERNEL.root, "-O2", *("-I" + os.path.join(ROOT, path) for path in INCLUDES), "-o", program,
                    os.path.join(ROOT, "bench", name + ".c"), *more, "-lpthread"], check=True)
    return program


def in_lab(trace, files, options, command):
    """Record a command in the lab: what it prints."""
    done = subprocess.run([PEM, "lab", "-o", trace, "--limit", "300", *(word for path in files for word in ("--file", path)),
                           "record", "-q", *options, "--", *command],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        raise Missing(" ".join((done.stderr or done.stdout).split())[-300:] or "pem lab ended with %d" % done.returncode)
    return done.stdout


def readings(trace):
    """
    From a trace of read4: {n: [(instructions, the program's) between its events Stat(n - 1) and Stat(n)]}, and [the program's
    instructions of a bare reading].
    """
    between, bare, main, last, pending = {}, [], None, None, None
    exporting = subprocess.Popen([PEM, "export", "--to", "csv", trace, "-o", "-"], stdout=subprocess.PIPE, universal_newlines=True)
    for row in csv.DictReader(exporting.stdout):
        if row["event"] == "HW::HWPerf::HPMsInThread":
            if int(row["missing"], 16):
                raise Missing("a counter could not be read in the lab")
            values = dict(pair.split("=") for pair in row["counterValues"].split())
            pending, main = (int(values["Instructions"]), int(values["UserInstructions"])), row["tid"]
        elif row["event"] == "APP::Bench::Stat":
            phase = int(row["a"])
            if phase:
                between.setdefault(phase, []).append(tuple(now - then for now, then in zip(pending, last)))
            last = pending
        elif row["event"] == "APP::Bench::Log" and row["tid"] != main:
            bare.append(int(row["a"]))
    if exporting.wait():
        raise Missing("the lab's trace can't be exported")
    return between, bare


def ours(folder):
    """(counted, plain, bare): instructions of an event with counters, of one without, and of a bare reading."""
    program = compile_for_lab("read4", os.path.join(folder.path, "read4"))
    trace = folder.fresh("trace")
    said = in_lab(trace, [SPEC], ["--overwrite", "-e", EVENTS], [program, "insns", str(ROUNDS)])
    if said.strip():
        raise Missing("the program reads no counters: " + said.strip())
    between, bare = readings(trace)
    if any(len(between.get(phase, ())) != ROUNDS for phase in (1, 2)) or len(bare) != ROUNDS:
        raise Missing("the lab's trace lacks events")
    total, users = zip(*between[1])
    counted = statistics.median(users)
    if statistics.median(total) != counted:
        raise Missing("the event took instructions of the kernel's")
    plain = (statistics.median(user for _, user in between[2]) - counted) / PLAIN
    return counted, plain, statistics.median(bare)


# --- PAPI ---


def fill_papi(folder):
    apt = kernels.Apt(KERNEL.debian)
    apt.update()
    for package in apt.download(PAPI_PACKAGES, os.path.join(folder, "downloads")):
        kernels.unpack(package, folder)
    shutil.rmtree(os.path.join(folder, "downloads"))
    shutil.rmtree(os.path.join(folder, "usr", "share"), ignore_errors=True)


def papi():
    """The folder that has PAPI for the lab's machine, fetched once."""
    folder = os.path.join(kernels.cache(), "papi-" + KERNEL.machine)
    try:
        with open(os.path.join(kernels.cache(), "lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kernels.have(folder, fill_papi, " ".join(PAPI_PACKAGES), False)
    except (OSError, kernels.Unavailable) as why:
        raise Missing(str(why)) from None
    return folder


def theirs(folder):
    """(instructions, the program's, version) of a PAPI_read()."""
    there = papi()
    lib = os.path.join(there, "usr", "lib", KERNEL.triple)
    # As libpapi looks for libpfm: DT_RPATH holds for libraries of libraries, DT_RUNPATH does not.
    program = compile_for_lab("read4_papi", os.path.join(folder.path, "read4_papi"), "-I" + os.path.join(there, "usr", "include"),
                              "-L" + lib, "-lpapi", "-Wl,--disable-new-dtags,-rpath," + lib, "-Wl,-rpath-link," + lib)
    libraries = [os.path.join(lib, name) for name in sorted(os.listdir(lib)) if re.match(r"lib(papi|pfm)\.so\.\d+(\.0)?$", name)]
    said = in_lab(folder.fresh("trace"), libraries, ["--no-libc", "-e", "OS::Process::Exit"], [program, str(ROUNDS)])
    pairs = [tuple(int(word) for word in line.split()) for line in said.splitlines()]
    if len(pairs) != ROUNDS:
        raise Missing("PAPI's program printed %d lines, not %d" % (len(pairs), ROUNDS))
    total, users = (statistics.median(column) for column in zip(*pairs))
    version = os.path.realpath(os.path.join(lib, "libpapi.so")).rpartition(".so.")[2]
    return total, users, re.sub(r"\.0$", "", version)


def by_instructions(cases, folder):
    try:
        if not os.path.exists(os.path.join(BUILD, "lab", "aarch64", "vmlinuz")):
            raise Missing("no lab: `make lab` makes one")
        counted, plain, bare = ours(folder)
    except Missing as why:
        print("read4: %s" % why)
        return
    more = counted - plain
    if INSNS in cases:
        report("read4", INSNS, "x", [more / bare], note="(%g with counters - %g without) / %g bare, instructions" % (counted, plain, bare),
               counted=counted, plain=plain, bare=bare)
    if PAPI in cases:
        try:
            total, users, version = theirs(folder)
        except Missing as why:
            print("read4: PAPI not here: %s" % why)
            return
        report("read4", PAPI, "x", [total / more], note="PAPI %s: %g instructions, of which %g of the kernel's: it reads by %s; pem: %g" % (
            version, total, total - users, "system call" if total > users else "registers", more),
            papi=total, papi_user=users, pem=more, papi_version=version)


# --- on this machine ---


def numbers(said):
    return {name: float(value) for name, value in (line.split() for line in said.splitlines())}


def by_time(folder):
    program = os.path.join(HERE, "read4_native")
    said = subprocess.run([program, "ns", "1"], stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
    if "missing" in said:
        print("read4: %s skipped: no program can read %s of this machine" % (NS, said.partition("missing ")[2].strip()))
        return
    os.environ["PEM_SPEC_PATH"] = os.path.dirname(SPEC)
    rounds = []
    for _ in range(NS_ROUNDS):
        done = subprocess.run([PEM, "record", "-q", "--overwrite", "-o", folder.fresh("trace"), "-e", EVENTS, "--", program, "ns",
                               str(BATCHES)], stdout=subprocess.PIPE, universal_newlines=True, check=True)
        rounds.append(numbers(done.stdout))
    more = [one["counted"] - one["plain"] for one in rounds]
    report("read4", NS, "ns", more, "bare reading", [one["bare"] for one in rounds],
           **{name: statistics.median(one[name] for one in rounds) for name in ("counted", "plain", "bare")})


def main():
    cases = wanted(INSNS, PAPI, NS)
    if not cases:
        return
    heading("read4", "4 counters at an event")
    with Folder() as folder:
        if INSNS in cases or PAPI in cases:
            by_instructions(cases, folder)
        if NS in cases:
            by_time(folder)


if __name__ == "__main__":
    main()
