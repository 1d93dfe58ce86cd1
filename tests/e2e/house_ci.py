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
    """Those of OFTEN that six turns in a row run."""
    return {name for turn in range(first, first + len(PLAN.CYCLE)) for name in planned(turn)[variable] if name.startswith(PLAN.OFTEN)}


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
def often():
    "what changes break next is in six turns in a row"
    wanted = {name for name in PLAN.long_programs() if name.startswith(PLAN.OFTEN)}
    for turn in range(744, 744 + TURNS):
        equal(often_of(turn, "ALSO"), wanted, "programs of six turns from %d on" % turn)


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
def sanitizers_are_alone():
    "each second turn runs tests under sanitizers, and no other part that takes long"
    for turn in range(12):
        parts = {part for part in PLAN.COST_S if planned(turn).get(part)} | set(planned(turn)["SETTING"])
        if turn % 2 == 0:
            equal(parts, {"SANITIZED"}, "parts of turn %d" % turn)
        else:
            assert parts and "SANITIZED" not in parts, (turn, parts)
        equal(bool(planned(turn)["PART"]), turn % 2 == 0, "a part of the tests in turn %d" % turn)


@test
def six_turns():
    "each part of CI has its turn among six in a row, and each twelfth of make check one beside load among 72"
    for first in 744, 1001:
        turns = [planned(turn) for turn in range(first, first + 6)]
        for part in "SANITIZED", "FUZZED", "MODULE", "THREADS", "CLANG":
            assert any(turn[part] for turn in turns), part
        assert all(turn["FUZZED"] for turn in turns if turn["MODULE"]), "the module is fuzzed where there is fuzzing"
        equal({name for turn in turns for name in turn["SETTING"]}, {"load", "container"}, "settings")
    equal({name for turn in range(72) for name in planned(turn)["LOAD_PART"]}, {"%d/12" % i for i in range(12)}, "parts beside load")


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
