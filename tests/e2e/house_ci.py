# SPDX-License-Identifier: MIT
"""house_ci: what .ci/run leaves to other turns comes in one of 36"""
import functools
import glob
import importlib.machinery
import os
import re

from lab import kernels
from tap import ROOT, equal, run, run_all, test

TURNS = 36
# A process of its own for each of forty turns takes half a minute.
PLAN = importlib.machinery.SourceFileLoader("plan", ROOT + "/.ci/plan").load_module()


@functools.lru_cache(None)
def planned(turn):
    """variable -> names, of one turn."""
    return PLAN.plan(turn)


def all_turns(variable):
    """What 36 turns in a row run; each name once."""
    sets = []
    for first in (744, 1001):
        names = [name for turn in range(first, first + TURNS) for name in planned(turn)[variable]
                 if turn == first or not name.startswith(PLAN.EACH_TURN + PLAN.OFTEN)]
        sets.append(set(names) | often_of(first, variable))
        if variable not in ("PART", "SETTING", "LOAD_PART"):
            equal(len(names), len(set(names)), "names of %s in turns from %d on: %s" % (variable, first, names))
    equal(sets[0], sets[1], variable)
    return sets[0]


def often_of(first, variable):
    """Those of three turns in a row that each third turn runs."""
    return {name for turn in range(first, first + 3) for name in planned(turn)[variable] if name.startswith(PLAN.OFTEN)}


def names_of(pattern):
    return {os.path.basename(path) for path in glob.glob(os.path.join(ROOT, pattern))}


@test
def long_programs():
    "each program that make check leaves out has its turn"
    left = set()
    for folder in ("e2e", "truth"):
        for path in glob.glob(os.path.join(ROOT, "tests", folder, "*.py")):
            with open(path, encoding="utf-8") as text:
                if re.search(r"^LONG_S = ", text.read(), re.MULTILINE):
                    left.add("%s/%s" % (folder, os.path.basename(path)[:-3]))
    equal(all_turns("ALSO"), left, "programs")


@test
def each_turn():
    "what each change can break most easily is in all turns"
    wanted = {name for name in PLAN.long_programs() if name.startswith(PLAN.EACH_TURN)}
    assert wanted
    for turn in range(744, 744 + TURNS):
        assert wanted <= set(planned(turn)["ALSO"]), turn


@test
def each_third_turn():
    "a third of what changes break next is in each turn"
    wanted = {name for name in PLAN.long_programs() if name.startswith(PLAN.OFTEN)}
    for turn in range(744, 744 + TURNS):
        equal(often_of(turn, "ALSO"), wanted, "programs of three turns from %d on" % turn)


@test
def guests():
    "each kernel has its turn"
    also = all_turns("ALSO")
    for name in kernels.KERNELS:
        assert "e2e/guest_" + re.sub(r"\W", "_", name) in also, name


@test
def models():
    "each model has its turn"
    equal(all_turns("MODELS"), names_of("tests/model/*.pml"), "models")


@test
def zoo():
    "each kind of program has its turn"
    equal({name + ".py" for name in all_turns("ZOO_KINDS")}, names_of("tests/zoo/programs/*.py"), "kinds")


@test
def sanitized_tests():
    "each part of the sanitized end-to-end tests has its turn"
    parts = all_turns("PART")
    count = int(sorted(parts)[0].split("/")[1])
    equal(parts, {"%d/%d" % (i, count) for i in range(count)}, "parts")


@test
def every_second_turn():
    "there are tests under sanitizers, or fuzzing, in each turn"
    for part, second in (("SANITIZED", 0), ("FUZZED", 1)):
        equal([planned(turn)[part] for turn in range(4)], [["all"] if turn % 2 == second else [] for turn in range(4)], "turns of " + part)
    equal([turn for turn in range(TURNS) if bool(planned(turn)["PART"]) != bool(planned(turn)["SANITIZED"])], [], "parts without tests")


@test
def every_third_turn():
    "the kernel module is fuzzed in turns of fuzzing, threads are watched or clang warns"
    for part, turns in (("MODULE", (3,)), ("THREADS", (1, 4)), ("CLANG", (2, 5))):
        equal([turn for turn in range(6) if planned(turn)[part]], list(turns), "turns of " + part)


@test
def settings():
    "make check has turns in a container, and each part of it one beside load"
    equal([planned(turn)["SETTING"] for turn in range(3)], [["load"], ["container"], []], "settings")
    equal(all_turns("SETTING"), {"load", "container"}, "settings of all turns")
    parts = all_turns("LOAD_PART")
    equal(parts, {"%d/%d" % (i, len(parts)) for i in range(len(parts))}, "parts beside load")


@test
def it_is_told():
    "CI's plan says what this turn runs, and what is left to which turn"
    rc, out, err = run([ROOT + "/.ci/run", "--plan", "744"])
    equal((rc, err), (0, ""), "status of --plan")
    for said in ("turn 744 runs these:\n", "left to turn 745:\n", "left to turn 779:\n", "e2e/guest_aarch64_6_1", "chunks.pml",
                 "stressors"):
        assert said in out, out
    rc, out, err = run([ROOT + "/.ci/plan", "744", "--shell"])
    equal((rc, err), (0, ""), "status of --shell")
    equal({name: value.split() for name, value in re.findall(r"^(\w+)='(.*)'$", out, re.MULTILINE)}, planned(744), "variables")
    rc, out, err = run([ROOT + "/.ci/plan", "x"])
    assert rc == 1 and "give it one turn" in err, (rc, err)


run_all()
