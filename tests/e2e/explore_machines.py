# SPDX-License-Identifier: MIT
"""explore_machines: one exploration on several machines, which share a database on a server"""
import contextlib
import json
import os
import sys
import time

import postgresql
import slurm
from tap import BUILD, PEM, equal, need, need_mounts, run, run_all, skip, test, tmp

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)
if not os.path.exists(BUILD + "/lib/pem/database-postgresql.so"):
    print("1..0 # SKIP pem was built without libpq")
    sys.exit(0)

SPACE = """<exploration name="e" %s>
  <parameter name="a" from="1" to="6" default="1"/>
  <parameter name="b" from="1" to="6" default="1"/>
  <command>%s</command>
  <metric name="v" match="v=([0-9.]+)"/>
</exploration>
"""


@contextlib.contextmanager
def experiment(command, attributes):
    """A folder with e.xml, and the environment of an exploration with a server of its own."""
    folder = tmp()
    with open(folder + "/e.xml", "w", encoding="utf-8") as out:
        out.write(SPACE % (attributes, command))
    os.mkdir(folder + "/state", 0o700)
    with postgresql.server() as url:
        yield folder, dict(os.environ, PEM_DB="postgresql://" + url, XDG_STATE_HOME=folder + "/state", SLURMD_NODENAME="here")


def sql(env, text):
    """The rows of the server's answer, as text."""
    rc, out, err = run(["psql", "-qAt", env["PEM_DB"], "-c", text])
    equal(rc, 0, err)
    return out.strip()


def explore(folder, env, verb, *options, before=()):
    rc, out, err = run([*before, PEM, "explore", verb, folder + "/e.xml", *options], env=env, timeout=300)
    equal(rc, 0, "status of %s (%s)" % (verb, err))
    return out, err


def tortoise(folder):
    """Words before a command that give it another kind of machine."""
    with open(folder + "/cpuinfo", "w", encoding="utf-8") as out:
        out.write("model name\t: Tortoise\n")
    return ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/cpuinfo && exec "$@"', folder + "/cpuinfo"]


def shown(folder, env, before=()):
    return json.loads(explore(folder, env, "show", "--json", before=before)[0])


@test
def two_nodes_share_the_trials():
    "two jobs of Slurm make the trials of one experiment between them: each configuration once, with its node's name"
    with slurm.cluster() as cluster, experiment(
            "touch $SLURMD_NODENAME; until [ -e n1 ] &amp;&amp; [ -e n2 ]; do sleep 0.05; done; "
            "[ $SLURMD_NODENAME = n1 ] || sleep 0.1; sleep 0.1; "
            "echo v=$((({a}-3)*({a}-3)+({b}-4)*({b}-4)))", 'policy="grid" race="0" trials="20"') as (folder, env):
        env = dict(cluster, PEM_DB=env["PEM_DB"], XDG_STATE_HOME=env["XDG_STATE_HOME"])
        explore(folder, env, "run", before=["srun", "-N2"])
        trials = shown(folder, env)["trials"]
        # Two nodes may begin the last ones at one moment, which are two configurations all the same.
        assert 20 <= len(trials) <= 21, len(trials)
        equal({trial["machine"] for trial in trials}, {"n1", "n2"}, "nodes")
        equal([trial["runs"] for trial in trials], [1] * len(trials), "runs of each configuration")
        equal(explore(folder, env, "run")[1], "", "nothing is left to do")
        equal(len(shown(folder, env)["trials"]), len(trials), "trials after another run")


@test
def another_kind_of_machine_is_a_parameter():
    "trials of another kind of machine teach the policy, and the machine is a parameter whose effect is told"
    need_mounts()
    with experiment("grep -q Tortoise /proc/cpuinfo &amp;&amp; slow=50 || slow=0; echo v=$((slow+10+({a}-3)*({a}-3)+({b}-4)*({b}-4)))",
                    'policy="gaussian" race="0" trials="14"') as (folder, env):
        explore(folder, env, "run")
        slow = tortoise(folder)
        env["SLURMD_NODENAME"] = "there"
        out = explore(folder, env, "run", before=slow)[0]
        told = shown(folder, env, before=slow)
        equal({trial["machine"] for trial in told["trials"]}, {"here", "there"}, "nodes")
        equal(len(told["trials"]), 28, "trials of both")
        for trial in told["trials"]:
            a, b = (int(trial["configuration"][name]) for name in "ab")
            slower = 50 * ("Tortoise" in trial["configuration"]["(machine)"])
            equal(trial["values"], {"v": slower + 10 + (a - 3) ** 2 + (b - 4) ** 2}, "value of %s" % trial)
        machine = [one for one in told["parameters"] if one["name"] == "(machine)"]
        equal([len(one["levels"]) for one in machine], [2], "kinds of machines")
        assert machine[0]["matters"], machine[0]["sentence"]
        best = json.loads(explore(folder, env, "best", "--json", before=slow)[0])
        equal(best["mean"], 60, "best of this kind")
        assert "has the best v, 10:" in out, out


@test
def a_run_that_another_machine_makes_is_not_lost():
    "an unfinished run on a server is another machine's until it is older than its limits allow; then it was lost"
    need("psql")
    with experiment("echo v={a}; true {b}", 'policy="grid" race="0" trials="3"') as (folder, env):
        assert "1 run:" in explore(folder, env, "run")[0], "each run is taken once"
        sql(env, "UPDATE pem.run SET wall_ns = 0, began_ns = %d, workload = replace(workload, ' here', ' there') "
            "WHERE id = (SELECT max(id) FROM pem.run)" % time.time_ns())
        equal(explore(folder, env, "run")[1], "", "what is said of a run that goes on")
        equal(sql(env, "SELECT count(*), sum((wall_ns = 0)::int) FROM pem.run"), "3|1", "runs, and those that go on")
        sql(env, "UPDATE pem.run SET began_ns = began_ns - 86400000000000 WHERE wall_ns = 0")
        assert "1 run was lost" in explore(folder, env, "run")[1], "the run that was lost"
        equal(sql(env, "SELECT count(*), sum((wall_ns = 0)::int) FROM pem.run"), "3|0", "runs, and those that go on")


@test
def what_this_node_lost_is_made_again():
    "a run of this node that kill -9 ended was lost, and its trial is made again, though the database is on a server"
    need("psql")
    with experiment("echo v={a}; true {b}", 'policy="grid" race="0" trials="3"') as (folder, env):
        explore(folder, env, "run")
        for text in ("UPDATE pem.run SET wall_ns = 0, began_ns = %d WHERE id = (SELECT max(id) FROM pem.run)" % time.time_ns(),
                     "DELETE FROM pem.metric WHERE run = (SELECT max(id) FROM pem.run)"):
            sql(env, text)
        assert "1 run was lost" in explore(folder, env, "run")[1], "the run that was lost"
        equal(len(shown(folder, env)["trials"]), 3, "trials")


@test
def a_kind_without_trials_is_told():
    "best on a kind of machine without trials says that, and what is best elsewhere"
    need_mounts()
    with experiment("echo v=$(({a}+{b}))", 'policy="grid" race="0" trials="4"') as (folder, env):
        explore(folder, env, "run")
        rc, out, err = run(tortoise(folder) + [PEM, "explore", "best", folder + "/e.xml"], env=env)
        equal(rc, 3, err)
        assert "nothing was tried on this kind of machine (Tortoise" in err and "has the best v, 2:" in out, (out, err)


run_all()
