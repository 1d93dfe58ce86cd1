# SPDX-License-Identifier: MIT
"""house_runner: tests/run counts what passes, fails, skips, crashes and hangs"""
import os
import shutil

from tap import ROOT, equal, run, run_all, test, tmp

CASES = """
import os, signal, time
from tap import equal, need, run, run_all, skip, test

@test
def passes():
    "a good one"

@test
def fails():
    "a bad one"
    equal(1, 2, "answer")

@test
def skips():
    "a shy one"
    skip("no moon tonight")

run_all()
"""


def tree(**programs):
    """A tree with the runner and these test programs: NAME=(unit source and) text of a script."""
    root = tmp()
    for folder in ("tests/unit", "tests/e2e", "build/tests"):
        os.makedirs(os.path.join(root, folder))
    for name in ("run", "results.py", "tap.py"):
        shutil.copy(os.path.join(ROOT, "tests", name), os.path.join(root, "tests"))
    for name, text in programs.items():
        if text.startswith("#!"):
            open(root + "/tests/unit/%s.c" % name, "w").close()
            path = root + "/build/tests/" + name
        else:
            path = root + "/tests/e2e/%s.py" % name
        with open(path, "w") as out:
            out.write(text)
        os.chmod(path, 0o755)
    return root


def runner(root, **env):
    """Run the runner; its status, last line and whole output."""
    rc, out, err = run([root + "/tests/run"], env=dict({"B": None, "T": None, "LIMIT_S": None}, **env))
    equal(err, "", "standard error")
    return rc, out.splitlines()[-1], out


@test
def counts():
    "passed, failed and skipped are counted, failures explained, reasons of skips printed"
    rc, last, out = runner(tree(cases=CASES))
    equal((rc, last), (1, "1 passed, 1 failed, 1 skipped"), "status and last line")
    assert "answer: got 1, wanted 2" in out and "a shy one: no moon tonight" in out, out


@test
def selects():
    "T selects by a test's name; nothing selected is a failure"
    root = tree(cases=CASES)
    equal(runner(root, T="good")[:2], (0, "1 passed, 0 failed, 0 skipped"), "T=good")
    equal(runner(root, T="cases")[1], "1 passed, 1 failed, 1 skipped", "T=cases")
    equal(runner(root, T="nosuch")[:2], (1, "0 passed, 0 failed, 0 skipped"), "T=nosuch")


@test
def what_is_said_among_passed_tests():
    "a program whose tests all passed, and which ends with another status, is shown with all that it said: a sanitizer's report"
    rc, last, out = runner(tree(a="#!/bin/sh\necho 1..2\necho a race was found\necho ok 1 - x\necho ok 2 - y\nexit 66\n"))
    equal((rc, last), (1, "2 passed, 1 failed, 0 skipped"), "status and last line")
    assert "a race was found" in out and "exit status 66" in out, out


@test
def crash():
    "a program that ends by a signal, or before its plan, has failed"
    rc, last, out = runner(tree(a="#!/bin/sh\necho 1..2\necho ok 1 - x\nkill -SEGV $$\n", b="#!/bin/sh\necho 1..2\necho ok 1 - x\n"))
    equal((rc, last), (1, "2 passed, 2 failed, 0 skipped"), "status and last line")
    assert "ended by signal 11" in out, out


@test
def silence():
    "a program that reports no test, or fails after its last one, has failed"
    rc, last, out = runner(tree(a="#!/bin/sh\n", b="#!/bin/sh\necho 1..1\necho ok 1 - x\nexit 3\n"))
    equal((rc, last), (1, "1 passed, 2 failed, 0 skipped"), "status and last line")


@test
def hang():
    "a test past its time is killed with its children, and the next program runs"
    root = tree(a="#!/bin/sh\necho 1..1\nsleep 3600 & echo $! > pid\nwait\n", b="#!/bin/sh\necho 1..1\necho ok 1 - x\n")
    rc, last, out = runner(root, LIMIT_S="1")
    equal((rc, last), (1, "1 passed, 1 failed, 0 skipped"), "status and last line")
    with open(root + "/pid") as text:
        child = text.read().strip()
    try:
        with open("/proc/%s/stat" % child) as text:
            equal(text.read().rsplit(")", 1)[1].split()[0], "Z", "state of the sleeping child")
    except FileNotFoundError:
        pass


@test
def cmocka():
    "cmocka's skips have the test's name, and the line before as their reason"
    rc, last, out = runner(tree(a="#!/bin/sh\nprintf '1..2\\nok 1 - x\\n# no PMU here\\nnot ok 2 # SKIP counts_cycles\\n'\n"))
    equal((rc, last), (0, "1 passed, 0 failed, 1 skipped"), "status and last line")
    assert "counts_cycles: no PMU here" in out, out


run_all()
