#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
forks - what a recorded program's children cost it: 'pem record' with its usual events, beside the same program alone

	fork/calls		system calls of a child that has no event, counted by strace, beyond those without pem
	fork/child		CPU time of a child that has no event
	fork/parent		CPU time of a fork in the parent
	fork/child_threads	CPU time of the child beside four threads that allocate
	fork/child_events	CPU time of a child that makes 50 allocations

The peer is LTTng-UST's wrappers of the C library and of fork, preloaded; its session daemon does not run. All take turns.
"""
import os
import re
import subprocess
import sys

from measure import Folder, HERE, PEM, QUICK, heading, lttng_version, report, wanted

FORKED = os.path.join(HERE, "forked")
ROUNDS = 1 if QUICK else 11
CHILDREN = 20 if QUICK else 300
WRAPPERS = ["/usr/lib/x86_64-linux-gnu/liblttng-ust-%s.so.1" % name for name in ("libc-wrapper", "fork")]


def calls(ways):
    """System calls of a child that has no event, by way."""
    found = {}
    for way, (prefix, environment) in ways.items():
        said = subprocess.run(["strace", "-f", "-qq", "-e", "signal=none", *prefix, FORKED, "5", "0", "0"], env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True).stderr
        of = {}
        for pid, name in re.findall(r"^\[pid +(\d+)\] (?:<\.\.\. )?(\w+)\(", said, re.M):
            of.setdefault(pid, []).append(name)
        children = [c for c in of.values() if c[0] == "set_robust_list" and "execve" not in c]
        found[way] = len(children[-1])
    return found


def main():
    cases = wanted("fork/calls", "fork/child", "fork/parent", "fork/child_threads", "fork/child_events")
    if not cases:
        return
    with Folder() as folder:
        plain = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
        record = [PEM, "record", "-q", "-o"]
        ways = {"plain": ([], plain), "pem": (None, plain)}
        if all(map(os.path.exists, WRAPPERS)):
            ways["peer"] = ([], {**plain, "LD_PRELOAD": ":".join(WRAPPERS)})
        heading("forks", "forked %d" % CHILDREN)
        prefix = lambda way: [*record, folder.fresh("trace"), "--"] if way == "pem" else []
        if "fork/calls" in cases:
            found = calls({way: (prefix(way), environment) for way, (_, environment) in ways.items()})
            report("forks", "fork/calls", "calls", [found["pem"] - found["plain"]], "LTTng-UST " + lttng_version(),
                   [found["peer"] - found["plain"]] if "peer" in found else (), digits=0)
        for allocations, threads, names in (("0", "0", ["fork/child", "fork/parent"]), ("0", "4", ["fork/child_threads"]),
                                            ("50", "0", ["fork/child_events"])):
            if not any(name in cases for name in names):
                continue
            took = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way, (_, environment) in ways.items():
                    said = subprocess.run([*prefix(way), FORKED, str(CHILDREN // (1 + int(threads))), allocations, threads], env=environment,
                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
                    took[way].append([float(text) for text in said.split()])
            for i, name in enumerate(names):
                if name in cases:
                    value = lambda way: [one[i] for one in took[way]]
                    report("forks", name, "us", value("pem"), "LTTng-UST " + lttng_version(),
                           value("peer") if "peer" in took else (), "alone %.1f" % sorted(value("plain"))[ROUNDS // 2], digits=1)


if __name__ == "__main__":
    sys.exit(main())
