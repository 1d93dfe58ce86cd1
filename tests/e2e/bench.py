# SPDX-License-Identifier: MIT
"""bench: every case of the benchmarks runs and says what it measured; what it measured is no matter here"""
import functools
import json
import os
import re

from tap import BUILD, ROOT, SAN, equal, run, run_all, skip, test, tmp

LONG_S = 7

# Those that measure from outside or in several threads; the others are the same frame with other loops.
PROGRAMS = ("notify", "threads", "record", "memory", "apps", "attach")
PROMISED = ("notify/log2", "notify/log2_mt2", "notify/log2_mt8", "notify/stat", "notify/disabled", "notify/record_bytes",
            "notify/sustained", "memory/threads_1", "memory/threads_1000", "apps/sqlite3", "apps/redis", "apps/xz",
            "apps/compile", "attach/first_event")


@functools.lru_cache(None)
def make():
    folder = os.path.relpath(BUILD, ROOT)
    rc, out, err = run(["make", "-s", "B=" + folder] + [os.path.join(folder, "bench", name) for name in PROGRAMS],
                       cwd=ROOT, env={"MAKEFLAGS": ""}, timeout=100)
    equal(rc, 0, "make: %s%s" % (out, err))


def built(name):
    """A benchmark's path; made if it is not there."""
    if SAN:
        skip("the build carries sanitizers, which are not what is measured")
    make()
    return os.path.join(BUILD, "bench", name)


def listed(name):
    rc, out, _ = run([built(name)], cwd=ROOT, env={"BENCH_LIST": "1"})
    equal(rc, 0, "status of %s" % name)
    return out.split()


@test
def promised_cases_are_there():
    "the cases that the documents name are there"
    names = [case for name in PROGRAMS for case in listed(name)]
    equal([case for case in PROMISED if case not in names], [], "cases that no program has")
    equal(len(names), len(set(names)), "cases of different names")


def runs(name):
    out_file = tmp() + "/results.jsonl"
    rc, out, err = run([built(name)], cwd=ROOT, timeout=100,
                       env={"BENCH_QUICK": "1", "BENCH_OUT": out_file, "PEM_RUNTIME_DIR": tmp()})
    equal(rc, 0, "status of %s: %s%s" % (name, out, err))
    with open(out_file, encoding="utf-8") as f:
        results = {line["case"]: line for line in map(json.loads, f)}
    for case in listed(name):
        assert case in results or case + " " in out, "%s says nothing of %s: %s" % (name, case, out)
    for line in results.values():
        assert line["runs"] >= 1 and line["min"] <= line["value"] <= line["max"], line
    without = re.search(r"no LTTng-UST beside us: .*", out)
    if without:
        skip("its cases were measured, but " + without.group())


def add(name):
    def each():
        runs(name)
    each.__doc__ = "'%s' measures each of its cases" % name
    each.__name__ = name
    test(each)


for program in PROGRAMS:
    add(program)


@test
def one_case_of_many():
    "BENCH_CASE leaves the other cases out"
    out_file = tmp() + "/results.jsonl"
    rc, _, err = run([built("notify")], cwd=ROOT, timeout=100,
                     env={"BENCH_QUICK": "1", "BENCH_CASE": "notify/floor", "BENCH_OUT": out_file})
    equal(rc, 0, err)
    with open(out_file, encoding="utf-8") as f:
        equal([json.loads(line)["case"] for line in f], ["notify/floor"], "cases")


run_all()
