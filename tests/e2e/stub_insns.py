# SPDX-License-Identifier: MIT
"""stub_insns: the budget of instructions of an event (bench/stepped.c counts them)"""
import os

from tap import BUILD, SAN, run, run_all, skip, test

# Of gcc 12; other versions may need one or two more. The disabled stub is a load, a test and a branch everywhere.
BUDGET = {"disabled": (2, 3), "log2": (38, 44), "stat": (33, 38), "stat_rising": (42, 48), "stat_filtered": (90, 98), "filtered_out": (73, 81),
          "stat_wide": (191, 215), "stat_top": (176, 200),
          # Pairs of statements (pem/probe.h).
          "probe_disabled": (2, 6), "probe_cnt": (47, 54), "probe_lat": (60, 68), "probe_lat_sampled": (8, 12), "probe_tpt": (77, 88),
          "probe_flt": (80, 92), "probe_ctxsw": (80, 92)}


@test
def events_take_no_more_than_their_budget():
    "instructions of an event that is disabled, logged, counted, counted where a predicate holds, and rejected"
    if SAN:
        skip("sanitizers add instructions")
    rc, out, err = run([os.path.join(BUILD, "bench", "stepped")])
    if rc == 77 or "ptrace" in err:
        skip((out + err).strip())
    assert rc == 0, err
    compiler, *lines = out.splitlines()
    found = {name: int(number) for name, number in (line.split() for line in lines)}
    allowed = {name: both[compiler != "gcc 12"] for name, both in BUDGET.items()}
    over = {name: (found[name], allowed[name]) for name in allowed if found[name] > allowed[name]}
    assert not over, "over the budget (found, allowed) with %s: %s" % (compiler, over)


run_all()
