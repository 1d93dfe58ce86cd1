# SPDX-License-Identifier: MIT
"""record_namespaces: short processes of an inner pid namespace are themselves, and never under a stranger's number"""
import json
import os

from tap import PEM, equal, need, run, run_all, skip, test, tmp

TIMES = 20
MALLOCS = 100
UNKNOWN = 1 << 30  # PEM_PID_UNKNOWN
PROGRAM = """#include <stdlib.h>
int main(void) { for (int i = 0; i < %d; i++) free(malloc(4321)); return 0; }
""" % MALLOCS


def record(events):
    """Run the program again and again as children of the init of a pid namespace. Returns its processes in the report."""
    need("gcc", "unshare")
    program = os.path.join(tmp(), "inner")
    with open(program + ".c", "w", encoding="ascii") as out:
        out.write(PROGRAM)
    equal(run(["gcc", "-O0", "-fno-builtin", "-o", program, program + ".c"])[0], 0, "gcc")
    inner = ["unshare", *(["-pf"] if os.geteuid() == 0 else ["-Urpf"]), "--mount-proc"]
    if run([*inner, "true"])[0] != 0:
        skip("no pid namespace may be made here")
    trace = os.path.join(tmp(), "trace")
    script = 'i=0; while [ $i -lt %d ]; do "$0"; i=$((i+1)); done' % TIMES
    rc, _, err = run([PEM, "record", "-q", "-e", events, "-o", trace, "--", *inner, "sh", "-c", script, program])
    equal(rc, 0, err)
    rc, out, err = run([PEM, "report", "--json", trace])
    equal((rc, err), (0, ""), "report")
    return [p for p in json.loads(out)["processes"] if p["name"] == "inner"], trace


@test
def short_processes_beside_the_kernel():
    "with events of the kernel, each process has its own application's and the kernel's events in one row, with its number outside"
    there = json.loads(run([PEM, "list", "--json", "OS::Syscall::Enter"])[1])[0]
    if not there["available"] or there["path"] != "bpf":
        skip("this way of recording tells no numbers of namespaces")
    found, _ = record("APP::Libc::Malloc,OS::Syscall")
    equal([p["layers"]["APP"] for p in found], [MALLOCS] * TIMES, "mallocs of each")
    equal([p["pid"] for p in found if p["pid"] >= UNKNOWN or p["layers"]["OS"] < 10], [], "processes without a number, or without calls")


@test
def short_processes_alone():
    "without them, each has a row of its own, and a process whose number is not known has none that a process could have"
    found, trace = record("APP::Libc::Malloc")
    equal([p["layers"]["APP"] for p in found], [MALLOCS] * TIMES, "mallocs of each")
    equal(len({p["pid"] for p in found}), TIMES, "numbers")
    rows = [line.split() for line in run([PEM, "report", "--by", "process", trace])[1].splitlines() if " inner " in line]
    equal([r[0] for r in rows if r[0].isdigit() and int(r[0]) >= UNKNOWN], [], "invented numbers")


run_all()
