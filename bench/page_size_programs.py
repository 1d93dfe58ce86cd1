#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
page_size_programs.py - real runs under page-size mappings: does the agent predict them, and what does its choice gain?

    page-size/native            time that THP=always saves against small pages
    page-size/ranking_error     mean absolute difference of predicted and measured gain, each in % of the greatest, over mappings
    page-size/ranking_error_nontrivial    the same without the mappings 'all' and 'none'
    page-size/kendall_tau       tau-b of the two rankings; agreement: the same of pairs that differ by more than the noise
    page-size/gain_at_quarter   time saved with at most 25 % of the large pages of THP=always, in % of what THP=always saves
    page-size/budget_5pct       time saved with large pages of 5 % of the footprint, less what the best simple ranking saves
    page-size/per_large_page    time saved for each large page, beside that of the peer that does best in it
    page-size/behind_best       time with the agent's choice, above that with the quickest peer
    page-size/profile_slowdown  time that passed in the observed run, by that of a plain one
    page-size/fork_cost         time of fork, and of writing to all pages after it, for each GiB

For each program the agent's profile names the sites. At least 8 mappings of sites to page sizes (none, all, each hot site alone,
pairs, random ones), the agent's choices, those of simple rankings, and the peers are timed in rounds: each way once in a round, in
random order. Rounds go on until the standard error of the best gain is 2 % of it, or PEM_BENCH_SECONDS (300) have passed for the
program; there are at least 3. What slows down a whole round is taken out, then medians are compared. Time is CPU time. Ranking
errors and tau are over the programs whose best mapping gains more than 3 times its standard error. PEM_BENCH_PROGRAM=WORD takes the
programs with this word in their names, PEM_BENCH_FULL takes inputs of full size.

In a row of page-size.jsonl, 'measured' holds what was measured, and 'simulated' what the agent predicted.
"""
import os
import statistics
import sys
from contextlib import ExitStack

from measure import Folder, Missing, QUICK, heading, report, wanted
from page_size_metrics import geometric_mean, kendall_tau_b, ranking_error, ranking_error_nontrivial, resolved_agreement
from page_size_runs import LARGE, THP, Setting, alone, damon_missing, peers
from page_size_trial import PLAIN, Trial, Wrong
from page_size_workloads import fork_cost, programs

CASES = ("page-size/native", "page-size/ranking_error", "page-size/ranking_error_nontrivial", "page-size/kendall_tau",
         "page-size/gain_at_quarter", "page-size/budget_5pct", "page-size/per_large_page", "page-size/behind_best",
         "page-size/profile_slowdown", "page-size/fork_cost")
FORK = CASES[-1]
# The ways that a case needs (Trial).
GROUPS = dict(zip(CASES, ({"thp_always"}, {"mappings"}, {"mappings"}, {"mappings"}, {"thp_always", "quarter"}, {"budget"},
                          {"peers", "chosen"}, {"peers", "chosen"}, {"profile"}, set())))
PEERS = [way.name for way in peers(0)]
RANKINGS = ("budget size", "budget count", "budget misses")


def say(case, unit, values, note, missing="nothing was measured", **more):
    if values:
        report("page-size", case, unit, values, note=note, **more)
    else:
        print("%-22s no value: %s" % (case, missing))


def percent(trial, name):
    return 100 * trial.gain(name)[0] / trial.plain_s()


def by_program(trials, value):
    """{program: value} of those that have one."""
    return {t.program.name: v for t in trials if (v := value(t)) is not None}


def say_ranking(cases, trials):
    """Predicted and measured, over the programs with something to gain."""
    apart = {t.program.name: t.ranking() for t in trials if t.counts()}
    quiet = [t.program.name for t in trials if t.program.name not in apart]
    missing = "no program has a mapping that gains more than the noise, and a prediction"
    left_out = "; left out: " + ", ".join(quiet) if quiet else ""
    for case, figure in ((CASES[1], lambda p, m, e, t: ranking_error(p, m)),
                         (CASES[2], lambda p, m, e, t: ranking_error_nontrivial(p, m, t))):
        if case in cases:
            found = {name: v for name, r in apart.items() if (v := figure(*r)) is not None}
            mean = geometric_mean(found.values()) if found else None
            say(case, "% points", list(found.values()),
                "geometric mean %.2f; predictions simulated, gains measured%s" % (mean or 0, left_out), missing, geometric_mean=mean,
                programs=found)
    if CASES[3] in cases:
        found = {name: v for name, (p, m, _, _) in apart.items() if (v := kendall_tau_b(p, m)) is not None}
        agreed = {name: v for name, (p, m, e, _) in apart.items() if (v := resolved_agreement(p, m, e)) is not None}
        say(CASES[3], "tau-b", list(found.values()),
            "mean %.3f; of pairs beyond the noise %.3f; predictions simulated, gains measured" % (
                statistics.mean(found.values() or [0]), statistics.mean(agreed.values() or [0])), missing, programs=found,
            agreement=agreed)


def gain_at_quarter(trial):
    """None: THP=always saves nothing that could be told from noise."""
    always, quarter = trial.gain("thp_always"), trial.gain("quarter")
    if not always or not quarter or always[0] <= 3 * always[1]:
        return None
    return 100 * quarter[0] / always[0]


def budget(trial):
    others = [percent(trial, name) for name in RANKINGS if trial.gain(name)]
    if not others or not trial.gain("budget agent"):
        return None
    return percent(trial, "budget agent") - max(others)


def for_each_page(trial, name):
    """ms saved for each large page."""
    pages = trial.large[name] / LARGE
    return 1e3 * trial.gain(name)[0] / pages if pages else 0.0


def per_large_page(trial):
    there = [name for name in PEERS if trial.gain(name)]
    if not there or not trial.gain("chosen"):
        return None
    best = max(for_each_page(trial, name) for name in there)
    return for_each_page(trial, "chosen") / best if best > 0 else None


def behind_best(trial):
    there = [percent(trial, name) for name in PEERS if trial.gain(name)]
    if not there or not trial.gain("chosen"):
        return None
    return max(there) - percent(trial, "chosen")


def slowdown(trial):
    return trial.agent.seconds / statistics.median(trial.wall) if trial.agent.seconds else None


FIGURES = {
    CASES[0]: (lambda t: percent(t, "thp_always") if t.gain("thp_always") else None, "% of the time", "measured", False),
    CASES[4]: (gain_at_quarter, "% of the gain", "measured", True),
    CASES[5]: (budget, "% points", "of the time, above the best of size, count and misses (of the profile); measured", False),
    CASES[6]: (per_large_page, "times", "those of the best peer; measured", False),
    CASES[7]: (behind_best, "% points", "of the time; measured", False),
    CASES[8]: (slowdown, "times", "measured", False),
}


def say_figures(cases, trials):
    for case, (value, unit, note, geometric) in FIGURES.items():
        if case in cases:
            found = by_program(trials, value)
            more = {"geometric_mean": geometric_mean(found.values())} if geometric and found else {}
            note = ("geometric mean %.1f; " % more["geometric_mean"] if more else "") + note
            say(case, unit, list(found.values()), note, "no program has it", programs=found, **more)


def say_fork():
    """Small pages and each peer, in turn."""
    program, found = fork_cost(), {}
    for _ in range(1 if QUICK else 7):
        for way in [PLAIN] + [way for way in peers(program.footprint) if not way.missing]:
            with ExitStack() as stack:
                for path, value in way.settings:
                    stack.enter_context(Setting(path, value))
                touch, fork, copy = (int(n) / 1e6 / program.gib for n in program.run(way).output.split())
            found.setdefault(way.name, []).append((touch, fork, copy))
    middle = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in found.items()}
    for name, (touch, fork, copy) in middle.items():
        print("        %-16s first touch %6.1f, fork %6.1f, copies %6.1f ms/GiB" % (name, touch, fork, copy))
    say(FORK, "ms/GiB", [fork + copy for _, fork, copy in found["plain"]], "with small pages; measured", ways=middle)


def main():
    cases = wanted(*CASES)
    if not cases:
        return 0
    heading("page-size")
    trials, status = [], 0
    with ExitStack() as stack:
        folder = stack.enter_context(Folder())
        if os.path.exists(THP):
            stack.enter_context(alone())
        if os.path.exists(THP) and Setting(THP, "").now() == "always":
            stack.enter_context(Setting(THP, "madvise"))
        print("    not here: damon: " + damon_missing())
        for program in programs(folder) if set(cases) - {FORK} else ():
            if os.environ.get("PEM_BENCH_PROGRAM", "") not in program.name:
                continue
            try:
                if program.missing:
                    raise Missing(program.missing)
                trial = Trial(program, folder, set().union(*(GROUPS[case] for case in cases)))
                trial.run()
                trials.append(trial)
            except (Missing, Wrong) as why:
                print("    %-13s left out: %s" % (program.name, why), flush=True)
                status |= isinstance(why, Wrong)
        say_ranking(cases, trials)
        say_figures(cases, trials)
        if FORK in cases:
            say_fork()
    return status


if __name__ == "__main__":
    sys.exit(main())
