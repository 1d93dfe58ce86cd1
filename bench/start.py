#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
start - what pem adds to a process that starts, does nothing and ends: /bin/true as 'pem run' starts it, while nobody observes

	process/start		time from the start to the end, beyond that without pem
	process/start_insns	instructions of the program itself, its loader's included, counted by callgrind: the same in every run
	process/recorded_insns	the same under 'pem record -e APP': the process joins the session, makes its buffers, and has some events
	process/start_faults	page faults
	process/start_calls	system calls, counted by strace
	process/script		time of a shell script that starts 300 such processes, beyond that without pem, of the whole

The peer is LTTng-UST's wrapper of the C library, preloaded; its session daemon does not run. The floor is a preloaded library with
nothing in it. All take turns.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

from measure import Folder, PEM, QUICK, heading, lttng_version, report, wanted

PROGRAM = "/bin/true"
ROUNDS = 5 if QUICK else 200
SCRIPT_ROUNDS = 1 if QUICK else 7
PROCESSES = 10 if QUICK else 300
PEER = "LTTng-UST " + lttng_version()
WRAPPER = "/usr/lib/x86_64-linux-gnu/liblttng-ust-libc-wrapper.so.1"


def environment_of_pem():
    """What 'pem run' gives a command."""
    said = subprocess.run([PEM, "run", "--", "env", "-0"], stdout=subprocess.PIPE, check=True).stdout
    return dict(pair.split("=", 1) for pair in said.decode().split("\0") if "=" in pair)


def empty_library(folder):
    path = os.path.join(folder, "empty.so")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run(compiler + ["-shared", "-fPIC", "-x", "c", "-o", path, "-"], input=b"", check=True)
    return path


def one(environment):
    """(ns, page faults) of a process from its start to its end."""
    begin = time.perf_counter_ns()
    pid = os.posix_spawn(PROGRAM, [PROGRAM], environment)
    _, _, usage = os.wait4(pid, 0)
    return time.perf_counter_ns() - begin, usage.ru_minflt


def instructions(environment, prefix=()):
    said = subprocess.run([*prefix, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", PROGRAM], env=environment,
                          stderr=subprocess.PIPE, text=True, check=True).stderr
    return int(re.search(r"Collected : (\d+)", said).group(1))


def system_calls(environment, folder):
    out = os.path.join(folder, "calls")
    subprocess.run(["strace", "-o", out, PROGRAM], env=environment, check=True)
    with open(out, encoding="utf-8") as calls:
        return sum(1 for line in calls if re.match(r"\w+\(", line))


def script(environment):
    command = "i=0; while [ $i -lt %d ]; do %s; i=$((i+1)); done" % (PROCESSES, PROGRAM)
    begin = time.perf_counter_ns()
    subprocess.run(["/bin/sh", "-c", command], env=environment, check=True)
    return time.perf_counter_ns() - begin


def more(values, plain):
    """What each round took more than the round without pem beside it."""
    return [value - other for value, other in zip(values, plain)]


def put(case, unit, found, peer, floor, digits=0):
    """found, peer: values of the rounds."""
    report("start", case, unit, found, PEER, peer or (), "an empty library %.*f" % (digits, statistics.median(floor)), digits)


def main():
    cases = wanted("process/start", "process/start_insns", "process/recorded_insns", "process/start_faults", "process/start_calls",
                   "process/script")
    if not cases:
        return
    with Folder() as folder:
        plain = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        ways = {"plain": plain, "pem": environment_of_pem(), "empty": {**plain, "LD_PRELOAD": empty_library(folder.path)}}
        if os.path.exists(WRAPPER):
            ways["peer"] = {**plain, "LD_PRELOAD": WRAPPER}
        heading("start", "%s, preloaded: %s" % (PROGRAM, ", ".join(
            os.path.basename(path) for path in ways["pem"].get("LD_PRELOAD", "").split(":"))))
        rounds = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, environment in ways.items():
                rounds[way].append(one(environment))
        times = {way: [ns / 1e3 for ns, _ in found] for way, found in rounds.items()}
        faults = {way: [count for _, count in found] for way, found in rounds.items()}
        others = {"process/start": times, "process/start_faults": faults}
        if "process/start_insns" in cases and shutil.which("valgrind"):
            others["process/start_insns"] = {way: [instructions(environment)] for way, environment in ways.items()}
        if "process/start_calls" in cases and shutil.which("strace"):
            others["process/start_calls"] = {way: [system_calls(environment, folder.path)] for way, environment in ways.items()}
        units = {"process/start": "us", "process/start_insns": "instructions", "process/start_faults": "faults",
                 "process/start_calls": "calls"}
        for case, unit in units.items():
            if case not in cases:
                continue
            if case not in others:
                print("%s: valgrind or strace is missing" % case)
                continue
            found = {way: more(values, others[case]["plain"]) for way, values in others[case].items()}
            put(case, unit, found["pem"], found.get("peer"), found["empty"])
        if "process/recorded_insns" in cases and shutil.which("valgrind"):
            recorded = instructions(plain, [PEM, "record", "-q", "-e", "APP", "-o", folder.fresh("trace"), "--"])
            report("start", "process/recorded_insns", "instructions", [recorded - instructions(plain)], digits=0)
        if "process/script" in cases:
            took = {way: [] for way in ways}
            for _ in range(SCRIPT_ROUNDS):
                for way, environment in ways.items():
                    took[way].append(script(environment))
            share = {way: [100 * (ns / other - 1) for ns, other in zip(values, took["plain"])] for way, values in took.items()}
            put("process/script", "% more", share["pem"], share.get("peer"), share["empty"], digits=1)


if __name__ == "__main__":
    sys.exit(main())
