# SPDX-License-Identifier: MIT
"""bench_page_size: what the benchmark of page sizes computes from its runs, and that it leaves the machine as it was"""
import functools
import math
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))

import page_size_metrics as metrics
from tap import BUILD, ROOT, equal, run, run_all, test, tmp


def near(got, wanted, what):
    assert got is not None and abs(got - wanted) < 1e-9, "%s: got %r, wanted %r" % (what, got, wanted)


@test
def ranking_error_of_known_gains():
    "the ranking error is the mean absolute difference of percentages of each list's own maximum"
    # 0, 50, 100 % against 0, 25, 100 %.
    near(metrics.ranking_error([0, 1, 2], [0, 10, 40]), 25 / 3, "ranking error")
    near(metrics.ranking_error([0, 1, 2], [0, 20, 40]), 0, "of equal rankings in other units")
    # A loss is less than 0 %: 100, -100 against 100, 0.
    near(metrics.ranking_error([1, -1], [5, 0]), 50, "with a loss")


@test
def ranking_error_without_a_predicted_gain():
    "a prediction of no gain at all is 0 % for each mapping"
    near(metrics.ranking_error([0, 0, 0], [0, 10, 40]), 125 / 3, "ranking error")
    near(metrics.ranking_error([0, -1, -2], [0, 10, 40]), 125 / 3, "ranking error")
    equal(metrics.percentages([-1, -2]), [0, 0], "percentages of losses alone")


@test
def trivial_mappings_are_left_out():
    "without all and none the other mappings count alone, against the maxima of all"
    gains = [0, 2, 1], [0, 40, 10]
    near(metrics.ranking_error_nontrivial(*gains, [True, True, False]), 25, "ranking error")
    equal(metrics.ranking_error_nontrivial(*gains, [True, True, True]), None, "when none is left")


@test
def geometric_mean_with_zeros():
    "an error of 0 counts as 0.01 in a geometric mean"
    near(metrics.geometric_mean([1, 4]), 2, "mean")
    near(metrics.geometric_mean([0, 1]), 0.1, "mean with a zero")
    near(metrics.geometric_mean([0.001, 100]), 1, "mean with less than counts")


@test
def tau_of_known_rankings():
    "Kendall's tau-b is 1 for equal rankings, -1 for opposite ones, and takes ties into account"
    near(metrics.kendall_tau_b([1, 2, 3], [10, 20, 40]), 1, "tau of equal rankings")
    near(metrics.kendall_tau_b([1, 2, 3], [3, 2, 1]), -1, "tau of opposite rankings")
    near(metrics.kendall_tau_b([1, 2, 3, 4], [1, 3, 2, 4]), 4 / 6, "tau with one pair exchanged")
    # Five of six pairs are untied in the first list and all in the second; all five are concordant.
    near(metrics.kendall_tau_b([1, 1, 2, 3], [1, 2, 3, 4]), 5 / math.sqrt(5 * 6), "tau with a tie in one list")
    # A pair that is tied in both is in neither factor.
    near(metrics.kendall_tau_b([1, 1, 2], [5, 5, 7]), 1, "tau with a tie in both lists")
    equal(metrics.kendall_tau_b([1, 1, 1], [1, 2, 3]), None, "tau of a list of equals")


@test
def agreement_of_pairs_beyond_the_noise():
    "pairs whose measured gains are closer than the noise are not counted"
    # 1 and 1.1 are within the noise; of the other two pairs one is concordant.
    near(metrics.resolved_agreement([3, 1, 2], [1.1, 1.0, 9.0], [0.5, 0.5, 0.5]), 0, "agreement")
    near(metrics.resolved_agreement([1, 2, 3], [1.1, 1.0, 9.0], [0.5, 0.5, 0.5]), 1, "agreement")
    # A difference of one and a half errors is not beyond two.
    equal(metrics.resolved_agreement([1, 2], [1, 2.5], [1, 0]), None, "agreement without such pairs")
    equal(metrics.resolved_agreement([1, 2], [1.0, 1.1], [1, 1]), None, "agreement without such pairs")


@test
def slow_rounds_are_taken_out():
    "a round in which everything takes twice as long changes no gain"
    times = {"base": [10.0, 20.0, 10.0, 20.0], "way": [8.0, 16.0, 8.0, 16.0]}
    found = metrics.gains(times, "base")
    near(found["way"][0], 3, "gain")
    near(found["way"][1], 0, "its error")
    near(found["base"][0], 0, "gain of the base")


@test
def errors_of_medians():
    "the error of a gain comes from the spread of both ways"
    # Two ways that spread against each other, so that the rounds are alike: median absolute deviation 1.
    times = {"base": [9.0, 10.0, 11.0, 9.0, 11.0], "way": [9.0, 8.0, 7.0, 9.0, 7.0]}
    each = math.sqrt(math.pi / 2) * 1.4826 / math.sqrt(5)
    found = metrics.gains(times, "base")
    near(found["way"][0], 2, "gain")
    near(found["way"][1], math.hypot(each, each), "error of the gain")
    near(found["base"][1], each, "error of the base")


@test
def mappings_are_enough_and_differ():
    "at least 8 mappings are tried where three sites or more are there, with all and none first"
    from page_size_trial import mappings_of
    import random
    for count in (3, 5, 20):
        sites = [{"bytes": 1 << 24, "key": "heap 1+%x" % i} for i in range(count)]
        found = mappings_of(sites, random.Random(1))
        equal(found[:2], ["0" * count, "1" * count], "first mappings of %d sites" % count)
        assert 8 <= len(found) and len(found) == len(set(found)), found
        assert all("0" * i + "1" + "0" * (count - i - 1) in found for i in range(min(count, 8))), found
    # Neither the stack nor a small site is varied.
    sites = [{"bytes": 1 << 24, "key": "stack"}, {"bytes": 4096, "key": "heap 1+1"}, {"bytes": 1 << 24, "key": "heap 1+2"}]
    equal(sorted(mappings_of(sites, random.Random(1))), ["000", "001", "111"], "mappings with one site that counts")


@test
def simple_rankings_use_their_budget():
    "a simple ranking takes the greatest first, until its budget is used up"
    from page_size_trial import by_rank
    sites = [{"bytes": 10, "n": 1}, {"bytes": 20, "n": 3}, {"bytes": 40, "n": 2}]
    equal([by_rank(sites, lambda s: s["n"], budget) for budget in (5, 20, 21, 61)], ["010", "010", "011", "111"], "mappings")


@test
def directives_name_each_site():
    "the file of directives gives each site the page size of its digit, and its budget"
    from page_size_runs import directives
    path = tmp() + "/d"
    directives(path, ["heap aa+1", "stack"], "10", 4096)
    with open(path, encoding="utf-8") as f:
        equal(f.read(), "pem-page-size 1\nbudget 4096\nreport %s.report\nsite\t2097152\t0\theap aa+1\n"
              "site\t4096\t0\tstack\n" % path, "directives")
    equal([os.stat(name).st_mode & 0o777 for name in (path, path + ".report")], [0o600, 0o600], "modes")


PROGRAMS = {"gups": "1 1 1", "spmv": "10 1", "pagerank": "10 1", "bfs": "10 1", "hash_join": "10 1", "btree": "10 10",
            "table_lookup": "50 10 1", "multigrid": "16 1", "integer_sort": "1 64 1", "annealing": "10 10"}


@functools.lru_cache(None)
def make():
    folder = os.path.relpath(BUILD, ROOT)
    rc, out, err = run(["make", "-s", "B=" + folder] + ["%s/bench/page-size/%s" % (folder, name) for name in PROGRAMS], cwd=ROOT,
                       env={"MAKEFLAGS": ""}, timeout=100)
    equal(rc, 0, "make: %s%s" % (out, err))


def built(name):
    """A program's path; made if it is not there."""
    make()
    return os.path.join(BUILD, "bench", "page-size", name)


@test
def programs_are_deterministic():
    "each program says the same checksum twice, and another one for other arguments"
    for name, words in PROGRAMS.items():
        command = [built(name)]
        more = words.split()
        more[0] = str(2 * int(more[0]))
        said = [run(command + args) for args in (words.split(), words.split(), more)]
        equal([rc for rc, _, _ in said], [0, 0, 0], "status of %s: %s" % (name, said))
        assert said[0][1].startswith(name + " "), said[0]
        equal(said[0][1], said[1][1], "checksum of %s" % name)
        assert said[0][1] != said[2][1], "%s says %s for other arguments, too" % (name, said[2][1])


@test
def bad_arguments_are_refused():
    "an argument that is no number from 1 on is refused"
    for word in ("0", "x", "-1", "1x", "99999999999"):
        rc, out, err = run([built("gups"), word])
        equal((rc, out), (1, ""), "status and output for %s" % word)
        assert "must be a number" in err, err


HOLD = """
import signal, sys, time
from page_size_runs import Setting
signal.signal(signal.SIGINT, signal.default_int_handler)
with Setting(sys.argv[1], "always"):
    print(open(sys.argv[1]).read(), flush=True)
    time.sleep(100)
"""


def held(path):
    with open(path, "w", encoding="utf-8") as f:
        f.write("madvise")
    return subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            env={**os.environ, "PYTHONPATH": ROOT + "/bench"}, start_new_session=True)


def restored(path):
    with open(path, encoding="utf-8") as f:
        return f.read() == "madvise"


def killed_with(number):
    path = tmp() + "/setting"
    child = held(path)
    equal(child.stdout.readline().strip(), "always", "what the setting holds meanwhile")
    os.killpg(child.pid, number)
    # The one who restores holds our end of the pipe until it is done.
    child.stdout.read()
    child.wait()
    assert restored(path), "the setting was not put back after signal %d" % number


@test
def settings_outlive_no_interrupt():
    "a setting of the machine is put back after an interrupt"
    killed_with(signal.SIGINT)


@test
def settings_outlive_no_kill():
    "a setting of the machine is put back after SIGKILL"
    killed_with(signal.SIGKILL)


run_all()
