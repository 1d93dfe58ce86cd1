# SPDX-License-Identifier: MIT
"""
process_bare_fork.py - children of clone and _Fork, of whom no pthread_atfork handler is told: every event, once, of whose it is
"""
import json
import os

from probe_trace import check_complete, program, record
from tap import PEM, ROOT, equal, run, run_all, test, tmp


def check(processes, *arguments):
    trace, raised = record(tmp(), program("bare_fork", *arguments), "--buffer", "64M")
    check_complete(trace, raised)
    equal(len({pid for pid, _, _ in raised}), processes, "processes")


@test
def clone():
    "a child of clone, and what that forks, have events of their own"
    check(3, "both", 20000, "clone")


@test
def c_library():
    "so has a child of _Fork"
    check(3, "both", 20000, "_Fork")


@test
def beside_threads():
    "children made while other threads are anywhere, in the library too, go on"
    check(41, "beside-threads", 300, "clone")


@test
def quiet():
    "a child that raises nothing does no harm, and one whose second thread is first to raise loses nothing"
    check(2, "quiet", 3000, "clone")


@test
def statistics():
    "what they raise is counted by statistics, too"
    rc, out, err = run([PEM, "stat", "-q", "--json", "-e", "APP::Probe::Tick", "--"] +
                       program("bare_fork", "both", 5000, "clone"),
                       env={"PEM_SPEC_PATH": os.path.join(ROOT, "tests/programs")})
    equal(rc, 0, "status: " + err)
    equal(json.loads(out[out.index("{"):])["events"][0]["count"], 4 * 5000, "count")


run_all()
