# SPDX-License-Identifier: MIT
"""explore_replay: pem explore replay, policies on spaces whose values are known"""
import itertools
import json
import math
import os
import random
import statistics
import sys

from tap import BUILD, PEM, ROOT, equal, need, run, run_all, test, tmp

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)

POLICIES = "portfolio gaussian forest model sobol latin random grid".split()
SIZES, CACHES, MODES = (1, 4, 16, 64), (2, 8, 32), ("wal", "delete", "off")


def table(lines):
    """The path of a file with these lines."""
    path = os.path.join(tmp(), "space.csv")
    with open(path, "w", encoding="utf-8") as out:
        out.write("".join(line + "\n" for line in lines))
    return path


def small():
    """36 configurations in a random order: (path, {levels: value})."""
    space = {(s, c, m): 100 + s % 5 * 7 + c + 11 * MODES.index(m) for s in SIZES for c in CACHES for m in MODES}
    rows = ["%d,%d,%s,%d" % (levels + (value,)) for levels, value in space.items()]
    random.Random(1).shuffle(rows)
    return table(["page_size,cache,journal,seconds"] + rows), space


def binary(parameters=10):
    """A space of two-level settings, of which few matter, in pairs: (path, best value)."""
    rows, best = [], math.inf
    for levels in itertools.product((0, 1), repeat=parameters):
        value = 100 * math.exp(0.5 * levels[0] - 0.3 * levels[3] + 0.4 * (levels[5] ^ levels[7]) + 0.01 * levels[6])
        best = min(best, value)
        rows.append(",".join(map(str, levels)) + ",%.6f" % value)
    return table([",".join("o%d" % i for i in range(parameters)) + ",seconds"] + rows), best


def replay(path, *options):
    rc, out, err = run([PEM, "explore", "replay", path, "--json", *options])
    equal((rc, err), (0, ""), "status and errors")
    return json.loads(out)


def refused(path, *options, status=1):
    rc, out, err = run([PEM, "explore", "replay", path, *options])
    equal((rc, out), (status, ""), "status and output (%s)" % err)
    return err


@test
def each_policy_finds_the_best_of_all():
    "with as many trials as configurations, each policy ends at the best value, and never gets worse"
    path, space = small()
    for policy in POLICIES:
        told = replay(path, "--policy", policy)
        equal((told["policy"], told["configurations"], told["metric"]), (policy, 36, "seconds"), "head")
        best = told["seeds"][0]["best"]
        equal(len(best), 36, "trials of " + policy)
        equal(best, sorted(best, reverse=True), "best values of " + policy)
        equal(best[-1], min(space.values()), "best of " + policy)


@test
def maximize_finds_the_greatest():
    "with --maximize each policy ends at the greatest value"
    path, space = small()
    for policy in POLICIES:
        best = replay(path, "--policy", policy, "--maximize")["seeds"][0]["best"]
        equal(best, sorted(best), "best values of " + policy)
        equal(best[-1], max(space.values()), "best of " + policy)


@test
def grid_goes_in_order():
    "the grid's best values are those of the table's lines in their order"
    values = [5, 7, 3, 4, 1, 2]
    path = table(["a,seconds"] + ["%d,%d" % (i, value) for i, value in enumerate(values)])
    equal(replay(path, "--policy", "grid")["seeds"][0]["best"], [5, 5, 3, 3, 1, 1], "best values")


@test
def models_beat_chance():
    "the portfolio and the forest are within 1 % of the optimum after fewer trials than chance"
    path, optimum = binary()
    median = {}
    for policy in ("portfolio", "forest", "random"):
        seeds = replay(path, "--policy", policy, "--seeds", "7", "--budget", "60")["seeds"]
        equal([one["seed"] for one in seeds], list(range(1, 8)), "seeds")
        median[policy] = statistics.median(
            next((i + 1 for i, value in enumerate(one["best"]) if value <= optimum * 1.01), 61) for one in seeds)
    assert median["portfolio"] < median["random"] and median["forest"] < median["random"], median


@test
def noise_costs_runs_and_is_reproducible():
    "with --noise the budget counts runs, the best one wins races, and its settings, true value and regret are reported"
    path, optimum = binary(8)
    options = ("--noise", "0.15,0.3", "--seeds", "5", "--budget", "50")
    told = replay(path, *options)
    equal(told, replay(path, *options), "two replays")
    for one in told["seeds"]:
        called = one["called"]
        equal(len(one["best"]), 50, "runs")
        equal((one["best"][-1], len(called["settings"])), (called["value"], 8), "value and settings of the best")
        assert math.isclose(called["regret"], called["value"] / optimum - 1, abs_tol=1e-6), called
    assert max(one["called"]["runs"] for one in told["seeds"]) > 1, told
    for one in replay(path, *options, "--no-race")["seeds"]:
        equal(one["called"]["runs"], 1, "runs of the best without races")
    equal({one["called"]["runs"] for one in replay(path, *options, "--no-race", "--runs", "3")["seeds"]}, {3}, "runs of the best of three")


@test
def seeds_are_reproducible():
    "equal seeds make equal choices, and different seeds different ones"
    path, _ = binary(8)
    for policy in ("portfolio", "forest", "latin", "random"):
        options = ("--policy", policy, "--seeds", "2", "--budget", "20")
        first, again = replay(path, *options), replay(path, *options)
        equal(first, again, "two replays of " + policy)
        assert first["seeds"][0]["best"] != first["seeds"][1]["best"], policy


@test
def values_of_any_sign():
    "values that are negative, of both signs, or all equal are explored to their best"
    for values in ([-5, -1, -9, -2], [-5, 0, 3, 7], [4, 4, 4, 4]):
        path = table(["a,b,value"] + ["%d,%d,%d" % (i % 2, i // 2, value) for i, value in enumerate(values)])
        for policy in POLICIES:
            for option, best in (("-b9", min(values)), ("--maximize", max(values))):
                equal(replay(path, "--policy", policy, option)["seeds"][0]["best"][-1], best, "%s of %s" % (policy, values))


@test
def policy_of_a_file():
    "the policy of examples/policy.c is built as its head says, and chooses"
    need("cc")
    path, space = small()
    folder = tmp()
    rc, _, err = run(["cc", "-Wall", "-Werror", "-shared", "-fPIC", ROOT + "/examples/policy.c", "-I", ROOT + "/libpem/include", "-o",
                      folder + "/mine.so"])
    equal((rc, err), (0, ""), "the compiler")
    told = replay(path, "--policy", folder + "/mine.so")
    equal((told["policy"], told["seeds"][0]["best"][-1]), ("brute", min(space.values())), "policy and best")


@test
def files_that_are_no_policies():
    "a file that is not a policy, one without its functions, one that chooses what is not there: a sentence each"
    need("cc")
    path, _ = small()
    head = "#include <pem/explore.h>\nstatic void *begin(const struct pem_explore_space *s, const struct pem_explore_options *o)\n" \
        "{ return (void *)s; }\nstatic int next(void *p, uint32_t *l) { (void)p; l[0] = 99; return 1; }\n" \
        "static int take(void *p, const struct pem_explore_trial *t) { return 0; }\nstatic void end(void *p) {}\n" \
        "const struct pem_explore_policy pem_explore_policy = {.size = sizeof(pem_explore_policy), .abi_version = %s, .name = \"bad\", %s};\n"
    whole = ".begin = begin, .next_config = next, .process_trial = take, .end = end"
    for source, sentence in (("int x;\n", "defines no symbol pem_explore_policy"), (head % ("77", whole), "another version"),
                             (head % ("PEM_EXPLORE_ABI_VERSION", ".begin = begin"), "needs a name, begin"),
                             (head % ("PEM_EXPLORE_ABI_VERSION", whole), "a configuration that the space does not have")):
        folder = tmp()
        with open(folder + "/bad.c", "w", encoding="utf-8") as out:
            out.write(source)
        rc, _, err = run(["cc", "-w", "-shared", "-fPIC", folder + "/bad.c", "-I", ROOT + "/libpem/include", "-o", folder + "/bad.so"])
        equal((rc, err), (0, ""), "the compiler")
        assert sentence in refused(path, "--policy", folder + "/bad.so"), sentence
    assert "cannot load the policy" in refused(path, "--policy", "./there-is-none.so")
    assert "the policy 'best' is unknown" in refused(path, "--policy", "best")


@test
def bad_tables():
    "gaps, text for a value, one column, nothing, repetitions, folders: the file, the line, and what is wrong"
    for lines, sentence in ((["a,b,t", "1,,3"], "line 2: column 2 is empty"), (["a,t", "1,fast"], "column 2, the value, is 'fast'"),
                            (["a,t", "1,nan"], "column 2, the value, is 'nan'"), (["a,t", "1,1e999"], "column 2, the value"),
                            (["t", "1"], "fewer than two columns"), ([], "there are no lines"), (["a,t"], "no configuration follows"),
                            (["a,b,t", "1,2"], "line 2: it has 2 columns, and the first line 3"), (["a,,t", "1,2,3"], "column 2 has no name"),
                            (["a,a,t", "1,2,3"], "columns 1 and 2 have one name"), (["a,t", "1,2", "1,3"], "1 and 2 are equal"),
                            (["a,t", "1,2", "1.0,3"], "one number twice: '1' and '1.0'"), (['a,t', '"1,2'], "a quote that does not end"),
                            (['a,t', '"1"2,3'], "goes on after its quote"), (["a,t", "x\0y,3"], "a byte of 0")):
        err = refused(table(lines))
        assert sentence in err and "space.csv" in err, (lines, err)
    assert "Is a directory" in refused(tmp())
    assert "No such file" in refused(tmp() + "/none.csv")


@test
def quotes_and_line_ends():
    "fields in quotes may have commas and quotes, and lines may end in CR LF"
    path = table(['"a ""b""",t\r', '"x,y",2\r', "", "z,1\r"])
    told = replay(path, "--policy", "grid")
    equal((told["seeds"][0]["best"], told["metric"]), ([2, 1], "t"), "best values and metric")


@test
def wrong_usage():
    "what is wrong with the command line is said, with the word that was given"
    path, _ = small()
    for words, sentence in (([], "There is: init, check, run"), (["replai"], "did you mean 'replay'"), (["replay"], "which table?"), (["run"], "which experiment?"),
                            (["replay", path, path], "one table at a time"), (["replay", path, "--seeds", "0"], "'0' is not a number of seeds"),
                            (["replay", path, "--budget", "many"], "'many' is not a number of trials"),
                            (["replay", path, "--noise", "0.15"], "'0.15' is not a share of runs"),
                            (["replay", path, "--noise", "2,0.3"], "'2,0.3' is not a share of runs"),
                            (["replay", path, "--runs", "0"], "'0' is not a number of runs")):
        rc, out, err = run([PEM, "explore", *words])
        equal((rc, out), (1, ""), "status of %s" % words)
        assert sentence in err, (words, err)


@test
def table_for_people():
    "the table has the median trials until values are within shares of the optimum, and what was explored"
    path, _ = small()
    rc, out, err = run([PEM, "explore", "replay", path, "--seeds", "3", "--policy", "grid"])
    equal((rc, err), (0, ""), "status and errors")
    assert "seconds of 36 configurations, best " in out and "policy grid, 3 seeds, 36 trials" in out, out
    assert [line.split()[0] for line in out.splitlines()[3:]] == ["10.0", "5.0", "1.0", "0.00"], out


run_all()
