# SPDX-License-Identifier: MIT
"""
model_chunks.py - the models of tests/model: what takes spin a second or two; .ci/run has it explore the rest
"""
import os

from tap import ROOT, equal, need, run, run_all, test

LONG_S = 22


@test
def chunk_hand_over():
    "the models hold, and each of their mutants fails"
    need("spin", "cc")
    rc, out, err = run([os.path.join(ROOT, "tests/model/run"), "quick"], timeout=110)
    equal(rc, 0, "status (%s%s)" % (out, err))


run_all()
