# SPDX-License-Identifier: MIT
"""house_build: what a library that comes or goes makes old"""
import os

from tap import ROOT, equal, need, run, run_all, test, tmp


def make(folder, target, *words):
    """Status of make for one target of a build elsewhere; with -q 1: it is old."""
    path = os.path.join(folder, target)
    rc, _, err = run(["make", "-s", "B=" + folder, path, *words], cwd=ROOT, env={"MAKEFLAGS": None, "MAKELEVEL": None})
    assert "No rule" not in err, err
    return rc


@test
def library_comes():
    "what was compiled without a library is compiled again when it has come"
    need("make")
    folder = tmp()
    equal(make(folder, "obj/shared/betweens.o", "HAVE_CAPSTONE="), 0, "built without")
    equal(make(folder, "obj/shared/betweens.o", "-q", "HAVE_CAPSTONE="), 0, "again")
    equal(make(folder, "obj/shared/betweens.o", "-q", "HAVE_CAPSTONE=1"), 1, "with it")


run_all()
