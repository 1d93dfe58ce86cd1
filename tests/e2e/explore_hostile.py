# SPDX-License-Identifier: MIT
"""explore_hostile: pem explore on a database to which others wrote rows that make no sense"""
import json
import os
import shutil
import sqlite3
import sys

from explorations import experiment, explore
from tap import BUILD, equal, run_all, test

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)

# The last run of a = 3 is 5. Constraints of the tables are off.
RUN = 5
# Statements after which that run can't be read as one of this experiment.
LEFT_OUT = (
    "DELETE FROM metric WHERE run = 5 AND name = 'v'",
    "DELETE FROM metric WHERE run = 5",
    "UPDATE metric SET mean = 'abc' WHERE run = 5 AND name = 'v'",
    "UPDATE metric SET mean = x'00ff' WHERE run = 5 AND name = 'v'",
    "UPDATE metric SET mean = 9e999 WHERE run = 5 AND name = 'v'",
    "UPDATE metric SET mean = 1e300 WHERE run = 5 AND name = '(outcome)'",
    "UPDATE metric SET mean = -1 WHERE run = 5 AND name = '(outcome)'",
    "UPDATE run SET wall_ns = -9223372036854775808 WHERE id = 5",
    "UPDATE run SET machine = 77 WHERE id = 5",
)
# The same, and there is no row from which pem could know that it was one.
UNKNOWN = (
    "UPDATE run SET wall_ns = 'x' WHERE id = 5",
    "UPDATE run SET id = -5 WHERE id = 5; UPDATE evidence SET run = -5 WHERE run = 5; UPDATE metric SET run = -5 WHERE run = 5",
    "UPDATE run SET workload = workload || hex(randomblob(1000)) WHERE id = 5",
    "UPDATE evidence SET role = 77 WHERE run = 5",
    "DELETE FROM evidence WHERE run = 5",
    "UPDATE directive SET text = 'a=9' WHERE text = 'a=3'",
    "UPDATE directive SET text = ' = = =' WHERE text = 'a=3'",
    "UPDATE directive SET text = x'00ff' WHERE text = 'a=3'",
    "UPDATE directive SET reason = char(27) || '[31m' WHERE text = 'a=3'",
    "DELETE FROM directive WHERE text = 'a=3'",
    # Evidence of another agent, of another program, and of one that is not there.
    "INSERT INTO directive SELECT 99, application, machine, 'page-size', subject, text, state, rank, predicted, predicted_low, "
    "predicted_high, gain, cost_bytes, began_ns, reason FROM directive WHERE id = 1; INSERT INTO evidence VALUES (999, 99, 5, 1, 1)",
    "INSERT INTO evidence VALUES (999, 4711, 5, 1, 1)",
)
# Rows that change nothing, or no more than they say.
HARMLESS = (
    "UPDATE run SET began_ns = -9223372036854775808",
    "UPDATE run SET began_ns = 9223372036854775807",
    "UPDATE run SET status = 9223372036854775807",
    "UPDATE run SET id = 9223372036854775807 WHERE id = 5; UPDATE evidence SET run = 9223372036854775807 WHERE run = 5; "
    "UPDATE metric SET run = 9223372036854775807 WHERE run = 5",
    "INSERT INTO run VALUES (999, 'u', 1, 1, 'explore', 'explore:0000 vm', 1, 1, 0)",
    "INSERT INTO metric VALUES (999, 5, 'other', 'unit', 1, 1e308, 1e308, -1e308, 1e308, 0)",
    "INSERT INTO directive SELECT 99, application, machine, 'page-size', subject, text, 3, rank, 9e99, 9e99, 9e99, 9e99, -1, -1, 'x' "
    "FROM directive WHERE id = 1",
    "UPDATE validation SET gain = 1e308, gain_low = -1e308, gain_high = 1e308",
    "UPDATE validation SET gain = -1e308, gain_low = -1e308, gain_high = -1e308",
    "UPDATE validation SET treated = 9223372036854775807, controls = 9223372036854775807",
    "UPDATE validation SET treated = 'a', verdict = -7",
    "UPDATE validation SET gain_low = 9, gain_high = -9",
)


def explored():
    folder, env = experiment("""  <parameter name="a" values="1 2 3 4" default="1"/>
  <command>echo v=$((20 - {a}))</command>
  <metric name="v" match="v=([0-9]+)"/>""", attributes='policy="grid" trials="4" race="1"')
    explore(folder, env, "run")
    with sqlite3.connect(folder + "/db") as db:
        equal(db.execute("SELECT text FROM directive, evidence WHERE run = ? AND directive.id = directive", (RUN,)).fetchall(), [("a=3",)],
              "configuration of the run")
    os.rename(folder + "/db", folder + "/kept")
    return folder, env


def spoil(folder, statements):
    shutil.copyfile(folder + "/kept", folder + "/db")
    os.chmod(folder + "/db", 0o600)
    db = sqlite3.connect(folder + "/db", isolation_level=None)
    db.executescript("PRAGMA foreign_keys = 0; " + statements)
    db.close()


def values(folder, env):
    """What show tells of each configuration that has a value: {a: (value, runs)}, and its errors."""
    out, err = explore(folder, env, "show", "--json")
    trials = json.loads(out)["trials"]
    assert all(trial["seconds"] >= 0 for trial in trials), trials
    return {trial["configuration"]["a"]: (trial["values"]["v"], trial["runs"]) for trial in trials if trial["runs"]}, err


def goes_on(folder, env, statements):
    """The exploration goes on, and ends with the right result."""
    out = explore(folder, env, "run")[0]
    assert "v 16 (16 to 16, " in out and "15.8 % better than the defaults (+15.8 to +15.8 %, in 6 fresh runs" in out, (statements, out)


@test
def runs_that_cannot_be_read_are_left_out():
    "NULLs, texts, huge and negative numbers where a run's own belong: the run is left out, the others have their values, and that is said"
    folder, env = explored()
    for group in (LEFT_OUT, UNKNOWN):
        for statements in group:
            spoil(folder, statements)
            told, err = values(folder, env)
            equal([told[a] for a in "12"] + [told.get("3", (17, 1)), told["4"]], [(19, 7), (18, 2), (17, 1), (16, 8)], statements)
            equal(err, "pem: 1 run is left out: the database does not have all of their rows in a form that can be read\n"
                  if group == LEFT_OUT else "", statements)
            goes_on(folder, env, statements)


@test
def rows_of_others_change_nothing():
    "rows of other agents, numbers that pem does not use, and comparisons that can't be right change no result"
    folder, env = explored()
    for statements in HARMLESS:
        spoil(folder, statements)
        equal(values(folder, env), ({"1": (19, 7), "2": (18, 2), "3": (17, 2), "4": (16, 8)}, ""), statements)
        goes_on(folder, env, statements)


@test
def values_without_an_error_say_so():
    "a value whose square is no number has an unknown error, and no infinite one"
    folder, env = explored()
    spoil(folder, "UPDATE metric SET mean = -1.7e308 WHERE name = 'v' AND run = (SELECT min(run) FROM evidence WHERE directive = 2)")
    for verb in ("show", "best"):
        out = explore(folder, env, verb)[0]
        assert "inf" not in out and "nan" not in out, out
    assert "its error is unknown" in explore(folder, env, "best")[0], "best"


run_all()
