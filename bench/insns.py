#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
insns - what an event costs in instructions, which are the same in every run and on every processor

	notify/log2_insns		an event of two numbers is logged, as notify/log2
	notify/stat_insns		count, sum, least and greatest of one of them, as notify/stat
	notify/stat_rising_insns	the same of a value that is the greatest so far each time
	notify/stat_filtered_insns	the same, in the context of a thread and with a predicate of two tests, which holds
	notify/filtered_out_insns	the same, but the second test rejects the event
	notify/stat_wide_insns		as stat_insns, with variance and histogram
	notify/stat_top_insns		as stat_insns, with the most frequent values, of which there are few
	notify/disabled_insns		nobody wants the event
	explore/probe_lat_insns		a pair of statements around nothing (pem/probe.h) that logs cycles; beside bare readings of the clock, two
	explore/probe_flt_insns		a pair that logs page faults; _ctxsw: context switches; _tpt, _cnt: executions with cycles, or alone
	explore/probe_lat_sampled_insns	a pair that logs cycles of each thousandth execution, in another one
	explore/probe_disabled_insns	a pair that nobody wants

From the load of the enable byte to the return to the code that raises the event, counted by stepping through it (stepped.c). What the
compiler makes of a stub depends on the compiler: it is named.
"""
import os
import subprocess
import sys

from measure import HERE, heading, report, wanted

CASES = {"notify/%s_insns" % name: name for name in ("disabled", "log2", "stat", "stat_rising", "stat_filtered", "filtered_out", "stat_wide", "stat_top")}
CASES.update({"explore/probe_%s_insns" % name: "probe_" + name for name in ("disabled", "cnt", "lat", "lat_sampled", "tpt", "flt", "ctxsw")})


def counted():
    """(compiler, {name: instructions}); None: not on this machine."""
    run = subprocess.run([os.path.join(HERE, "stepped")], stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode == 77:
        print("insns: %s" % run.stdout.strip())
        return None
    if run.returncode:
        sys.exit("insns: stepped ended with status %d" % run.returncode)
    compiler, *lines = run.stdout.splitlines()
    return compiler, {name: int(number) for name, number in (line.split() for line in lines)}


def main():
    cases = wanted(*CASES)
    if not cases:
        return
    found = counted()
    if found is None:
        return
    compiler, numbers = found
    heading("insns", "instructions of an event, " + compiler)
    for case in cases:
        report("insns", case, "instructions", [numbers[CASES[case]]], digits=0, compiler=compiler)


main()
