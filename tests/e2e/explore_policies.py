# SPDX-License-Identifier: MIT
"""explore_policies: pem explore's policies that have another aim than a good configuration soon, and policies in Python"""
import itertools
import json
import os
import sys

from tap import BUILD, PEM, ROOT, SAN, equal, run, run_all, skip, test, tmp

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)

LEVELS = 8


def square():
    """The path of a space of two parameters, and the value of each of its 64 configurations."""
    space = {(a, b): 10 + (a - 5) ** 2 + (b - 2) ** 2 for a, b in itertools.product(range(LEVELS), repeat=2)}
    path = os.path.join(tmp(), "square.csv")
    with open(path, "w", encoding="utf-8") as out:
        out.write("a,b,seconds\n" + "".join("%d,%d,%d\n" % (levels + (value,)) for levels, value in space.items()))
    return path, space


def explore(path, *options, env=None):
    rc, out, err = run([PEM, "explore", "replay", path, "--json", *options], env=env)
    equal((rc, err), (0, ""), "status and errors")
    return json.loads(out)["seeds"]


def in_python(text, *options, limit="60"):
    """(status, errors) of an exploration by a policy of this text."""
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    path = os.path.join(tmp(), "mine.py")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    rc, out, err = run([PEM, "explore", "replay", square()[0], "--policy", path, *options],
                       env={"PYTHONPATH": BUILD + "/python", "PEM_EXPLORE_ANSWER_S": limit})
    return rc, out, err


POLICY = """
from pemapi import explore
class Mine:
    def __init__(self, space, options):
        self.made = 0
        assert [(p.name, p.values[7], p.positions[7]) for p in space.parameters] == [("a", "7", 1.0), ("b", "7", 1.0)], space
        assert space.count == 64 and options.seed == 1 and options.budget == 3 and options.objectives == 1, options
    def next(self):
        self.made += 1
        print("to standard error")
        return %s
    def trial(self, trial):
        assert trial.levels == [5, 2] and trial.values == [10.0] and trial.outcome == "measured" and trial.runs >= 1, trial
explore.serve(Mine)
"""


@test
def sobol_fills_the_space():
    "a Sobol sequence comes near each point soon, and tries all configurations in the end, for each seed"
    path, space = square()
    for one in explore(path, "--policy", "sobol", "--budget", "64", "--seeds", "3"):
        equal(one["best"][-1], min(space.values()), "best of all")
    first = explore(path, "--policy", "sobol", "--budget", "20", "--seeds", "9")
    equal([one["best"][-1] <= 12 for one in first], [True] * 9, "a value near the best of each seed's first 20")


@test
def halving_runs_the_better_half_again():
    "a halving of 40 runs runs many configurations once and one of the best quarter eight times"
    path, space = square()
    for one in explore(path, "--policy", "halving", "--budget", "40", "--runs", "1", "--noise", "0.2,0.3", "--no-race", "--seeds", "5"):
        assert len(one["best"]) <= 40 and one["called"]["runs"] == 8, one
        assert one["called"]["value"] <= sorted(space.values())[len(space) // 4], one["called"]


@test
def policy_of_the_example_in_python():
    "examples/policy.py tries all configurations, in their order"
    path, space = square()
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    best = explore(path, "--policy", ROOT + "/examples/policy.py", env={"PYTHONPATH": BUILD + "/python"})[0]["best"]
    equal(best, list(itertools.accumulate(space.values(), min)), "best values")


@test
def python_is_told_the_space_and_what_came():
    "a policy in Python gets parameters and options, may name levels, and learns of each trial; what it prints is no answer"
    rc, out, err = in_python(POLICY % "[5, 2] if self.made <= 3 else None", "--budget", "3")
    equal((rc, err.splitlines()), (0, ["to standard error"] * 3), "status and errors")
    assert "policy mine.py" in out, out


@test
def python_may_take_records():
    "a policy in Python with record() gets each value while a run goes on, and may stop the run; one without it is not asked"
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    folder = tmp()
    os.mkdir(folder + "/state", 0o700)
    env = {"PYTHONPATH": BUILD + "/python", "PEM_DB": folder + "/db", "XDG_STATE_HOME": folder + "/state"}
    with open(folder + "/mine.py", "w", encoding="utf-8") as out:
        out.write("""
import sys
from pemapi import explore
class Mine:
    def __init__(self, space, options):
        self.number = -1
    def next(self):
        self.number += 1
        return [self.number] if self.number < 2 else None
    def record(self, record):
        assert record.time_ns >= 0 and record.objective == 0, record
        print("record", record.value)
        return record.value == 3
    def trial(self, trial):
        print("trial", trial.levels, trial.outcome, trial.values)
explore.serve(Mine)
""")
    with open(folder + "/e.xml", "w", encoding="utf-8") as out:
        out.write("""<exploration name="e" policy="%s/mine.py" race="0">
  <parameter name="a" values="1 4"/>
  <command>for i in {a} $(({a} + 1)) $(({a} + 2)); do echo v=$i; done; sleep 0.{a}</command>
  <metric name="v" match="v=([0-9]+)"/>
</exploration>
""" % folder)
    rc, _, err = run([PEM, "explore", "run", folder + "/e.xml"], env=env)
    equal(rc, 0, "status (%s)" % err)
    told = [line for line in err.splitlines() if line.startswith(("record", "trial"))]
    equal(told, ["record 1.0", "record 2.0", "record 3.0", "trial [0] stopped [3.0]"]
          + ["record 4.0", "record 5.0", "record 6.0", "trial [1] measured [6.0]"], "records and trials")


@test
def mistakes_in_python_are_reported():
    "a policy in Python that raises, ends, answers nonsense or nothing: a sentence each, and no exploration"
    for answer, sentence in (("1 / 0", "its process ended"), ("__import__('os')._exit(0)", "its process ended"),
                             ("[5]", "its answer is not a configuration"), ("[5, 8]", "its answer is not a configuration"),
                             ("64", "its answer is not a configuration"), ("'five'", "its answer is not a configuration"),
                             ("True", "its answer is not a configuration"), ("[5, -1]", "its answer is not a configuration")):
        rc, out, err = in_python(POLICY % answer, "--budget", "3")
        assert rc and not out and "the policy mine.py failed: " + sentence in err, (answer, rc, out, err)
    for text, sentence in (("import time\ntime.sleep(1000)", "it did not answer in time"), ("print('hello', flush=True)\ninput()", "not JSON"),
                           ("", "its process ended"), ("print('x' * 70000, flush=True)\ninput()", "not JSON")):
        rc, out, err = in_python(text, limit="1" if "sleep" in text else "60")
        assert rc and not out and sentence in err, (text, rc, out, err)
    rc, _, err = run([PEM, "explore", "replay", square()[0], "--policy", "./none.py"])
    assert rc == 1 and "cannot load the policy ./none.py: No such file" in err, err


run_all()
