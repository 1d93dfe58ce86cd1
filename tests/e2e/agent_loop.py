# SPDX-License-Identifier: MIT
"""agent_loop: what the loop of an agent does with real programs: the example agent, on programs whose truth is known"""
import csv
import json
import os
import shutil
import signal
import sys

from tap import BUILD, PEM, ROOT, SAN, equal, run, run_all, skip, start, test, tmp

AGENT = BUILD + "/examples/agent"
PROGRAM = BUILD + "/programs/large_heap"

if not os.path.exists(AGENT):
    print("1..0 # SKIP pem was built without SQLite or libelf")
    sys.exit(0)


def database():
    folder = tmp()
    os.chmod(folder, 0o700)
    return folder + "/cpo.db"


def agent(db, *command, **more):
    return run([AGENT, *command], env={"PEM_DB": db, "GLIBC_TUNABLES": None}, **more)


def rows(db, table):
    rc, out, err = run([PEM, "db", "show", table, "--json"], env={"PEM_DB": db})
    equal(rc, 0, err)
    return json.loads(out)


def until_settled(db, *command):
    """Runs of a command until its directive is on trial no more; how many there were on trial."""
    for count in range(40):
        rc, _, err = agent(db, *command)
        assert rc in (3, 139), err
        state = rows(db, "directive")[0]["state"]
        if state != "on trial":
            return count, state
    raise AssertionError("on trial for ever: %s" % rows(db, "directive"))


@test
def a_directive_that_pays_is_kept():
    "a directive that makes a program faster is kept, with its evidence, and applied from then on"
    db = database()
    count, state = until_settled(db, PROGRAM, "gain")
    equal(state, "kept", rows(db, "directive"))
    (directive,) = rows(db, "directive")
    assert directive["gain"] > 20 and "faster" in directive["reason"], directive
    equal([v["verdict"] for v in rows(db, "validation")], ["faster"], "verdicts")
    roles = [e["role"] for e in rows(db, "evidence")]
    equal((roles[0], len(roles)), ("basis", count + 1), roles)
    purposes = [agent(db, PROGRAM, "gain")[2] for _ in range(6)]
    assert sum("with large pages" in p for p in purposes) >= 3, purposes


@test
def a_directive_that_harms_is_withdrawn():
    "a directive that makes a program slower is withdrawn after some runs, and not tried again"
    db = database()
    count, state = until_settled(db, PROGRAM, "harm")
    equal(state, "withdrawn", count)
    rc, _, err = agent(db, PROGRAM, "harm")
    assert rc == 3 and ", alone:" in err, err
    equal([d["state"] for d in rows(db, "directive")], ["withdrawn"], "states")


@test
def a_directive_that_crashes_the_program_is_withdrawn_at_once():
    "the first run that ends by a signal with the directive is its last"
    db = database()
    until_settled(db, PROGRAM, "crash")
    assert "signal 11" in rows(db, "directive")[0]["reason"], rows(db, "directive")
    equal([r["status"] for r in rows(db, "run")].count(139), 1, "crashes")


@test
def nothing_to_gain():
    "a program that takes little memory is observed once and left alone then"
    db = database()
    equal([agent(db, "true")[2].split(", ")[1].split(":")[0] for _ in range(3)], ["observed", "alone", "alone"], "runs")
    names = {m["name"] for m in rows(db, "metric")}
    assert {"wall", "user", "system", "minor faults", "peak memory"} <= names, names


@test
def without_a_database_the_program_runs():
    "a database that is damaged, foreign or of others does not harm the command: it runs alone, and a sentence says so"
    db = database()
    with open(db, "w") as out:
        out.write("this is no database, but it is long enough to have a head" * 20)
    rc, out, err = agent(db, "sh", "-c", "echo out; exit 7")
    equal((rc, out), (7, "out\n"), err)
    assert "leaves this run alone" in err and "damaged" in err, err
    rc, _, err = agent("postgresql:///x?host=/nowhere", "sh", "-c", "exit 7")
    assert rc == 7 and "leaves this run alone" in err, err


@test
def what_is_no_program():
    "a command that does not exist, a folder, and a program with other rights are refused with a sentence, and not run"
    db = database()
    for command, words in (("nonexistent", "no such command"), ("/nonexistent/x", "no such command"), ("/etc", "/etc")):
        rc, out, err = agent(db, command)
        assert (rc, out) == (127, "") and words in err and err.count("\n") == 1, (rc, err)
    copy = tmp() + "/id"
    shutil.copy(shutil.which("id"), copy)
    os.chmod(copy, 0o4755)
    rc, out, err = agent(db, copy)
    assert (rc, out) == (127, "") and "setuid" in err, (rc, out, err)


@test
def signals_reach_the_program():
    "a signal sent to the agent is the program's, and its end is the agent's"
    db = database()
    child = start([AGENT, "sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"],
                  env={"PEM_DB": db}, stdout=-1)
    equal(child.stdout.readline(), b"ready\n", "output")
    child.send_signal(signal.SIGTERM)
    equal(child.wait(20), 9, "status")


@test
def another_build_is_another_application():
    "a program that is built anew is observed anew; a script is told by its contents"
    db = database()
    copy = tmp() + "/script"
    for text in ("exit 0", "exit 0 # again"):
        with open(copy, "w") as out:
            out.write("#!/bin/sh\n" + text + "\n")
        os.chmod(copy, 0o755)
        assert "observed" in agent(db, copy)[2]
    equal(len({a["build_id"] for a in rows(db, "application")}), 2, "applications")
    equal(len({r["workload"] for r in rows(db, "run")}), 1, "workloads")


def in_python(db, script, *command):
    """Run an agent in Python."""
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    return run([sys.executable, script, *command],
               env={"PEM_DB": db, "GLIBC_TUNABLES": None, "PYTHONPATH": BUILD + "/python"})


@test
def the_agent_in_python_does_the_same():
    "the example in Python observes, proposes, applies, and withdraws what crashes the program"
    db, script = database(), ROOT + "/examples/agent.py"
    rc, _, err = in_python(db, script, PROGRAM, "crash")
    assert rc == 3 and "run 1, observed: " in err, err
    (directive,) = rows(db, "directive")
    equal((directive["text"], directive["predicted"], directive["state"]), ("glibc.malloc.hugetlb=1", 5, "on trial"), "directive")
    assert directive["cost_bytes"] >= 80 << 20, directive
    while rows(db, "directive")[0]["state"] == "on trial":
        rc, _, err = in_python(db, script, PROGRAM, "crash")
    assert rc == 139 and "signal 11" in err, err
    rc, _, err = in_python(db, script, "nonexistent")
    assert rc == 127 and "no such command" in err and "Traceback" not in err, err


@test
def a_mistake_in_python_leaves_the_command_alone():
    "an exception in a function of an agent is logged with the line of the agent's file, and the command runs alone"
    script = tmp() + "/wrong.py"
    with open(script, "w") as out:
        out.write("""
import sys
from pemapi import agent

class Wrong(agent.Agent):
    name = "wrong"
    def observe(self, run, session):
        session.events("NO::Such::Event")

report = Wrong().run(["sh", "-c", "echo out; exit 7"], log=lambda level, sentence: print(level, sentence, file=sys.stderr))
sys.exit(report.status if report.purpose == "alone" else 1)
""")
    rc, out, err = in_python(database(), script)
    equal((rc, out), (7, "out\n"), err)
    assert "observe of wrong" in err and "(wrong.py:8)" in err, err


@test
def what_an_agent_did_is_on_the_timeline():
    "pem record of an agent shows its run, its observation and its decision as events"
    db, trace = database(), tmp() + "/t"
    rc, _, err = run([PEM, "record", "-o", trace, "-e", "CPO::Agent::*", "--", AGENT, "true"], env={"PEM_DB": db})
    equal(rc, 0, err)
    rc, _, err = run([PEM, "export", "--to", "csv", trace, "-o", trace + ".csv"])
    equal(rc, 0, err)
    with open(trace + ".csv") as table:
        names = [row["event"] for row in csv.DictReader(table)]
    equal([n.split("::")[2] for n in names],
          ["Started", "ObservationBegin", "ObservationEnd", "DecisionMade", "Ended"], "events")


run_all()
