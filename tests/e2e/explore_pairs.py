# SPDX-License-Identifier: MIT
"""explore_pairs: two configurations at the same time, each on CPUs of its own: sides, races, gains, halves that fail or are killed"""
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

from explorations import HEAD, experiment, explore, runs, trials
from tap import BUILD, PEM, equal, need, run, run_all, skip, test

LONG_S = 10

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)

TREATED, CONTROL, EXCLUDED = 1, 2, 3
PAIRS = 'policy="grid" race="%d" trials="%d" pairs="yes"'
# In a pair, and not in a run alone.
BESIDE = "case {scratch} in */half*) %s;; esac;"
METRIC = '<metric name="v" match="v=([0-9.]+)"/>'


def need_two_cpus():
    if len(os.sched_getaffinity(0)) < 2:
        skip("there is one CPU alone")


def pairs_of(folder):
    """[{configuration: (role, value)}] of the runs that were pairs"""
    found = {}
    with sqlite3.connect(folder + "/db") as db:
        for run, text, role, value in db.execute("SELECT run, text, role, value FROM evidence JOIN directive ON directive.id = directive "
                                                 "WHERE agent = 'explore' ORDER BY run"):
            found.setdefault(run, {})[text] = (role, value)
    return [sides for sides in found.values() if len(sides) > 1]


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as text:
        return text.read().split("\n")[:-1]


def left(marker):
    """Commands that still run, by a number in their words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as words:
                found += [pid] if marker.encode() in words.read() else []
        except OSError:
            pass
    return found


@test
def races_and_gains_are_pairs():
    "a rival and the best one run at the same time, as do the best one and the defaults, and the gain is that of the pairs"
    need_two_cpus()
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command>echo "v=$((100 - 20 * ({a} - 1)))"</command>""" + METRIC, attributes=PAIRS % (4, 2))
    out = explore(folder, env, "run")[0]
    assert "20 % better than the defaults (+20 to +20 %, " in out and "in 6 fresh runs of each, in pairs" in out, out
    found = pairs_of(folder)
    equal(found[:3], [{"a=2": (TREATED, 80), "a=1": (CONTROL, 100)}] * 3, "the race: equal pairs decide it")
    equal([{text: value for text, (_, value) in sides.items()} for sides in found[3:]], [{"a=1": 100, "a=2": 80}] * 6, "pairs of the gain")
    told = json.loads(explore(folder, env, "best", "--json")[0])
    equal((told["configuration"], told["fresh_runs"], told["in_pairs"]), ({"a": "2"}, 6, True), "what is told")
    equal((round(told["gain"], 6), round(told["gain_low"], 3)), (0.2, 0.2), "gain")
    count = runs(folder)[0]
    equal(count, 2 + 3 + 6, "runs")
    explore(folder, env, "run")
    equal(runs(folder)[0], count, "runs of another exploration of what is known")


@test
def an_option_makes_pairs():
    "--pairs makes pairs of an experiment that does not tell, and 'best' finds their gain without it"
    need_two_cpus()
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command>echo "v=$((100 - 20 * ({a} - 1)))"</command>""" + METRIC, attributes='policy="grid" race="1" trials="2"')
    explore(folder, env, "run", "--pairs")
    assert "in 6 fresh runs of each, in pairs" in explore(folder, env, "best")[0], "best"
    count = runs(folder)[0]
    explore(folder, env, "run")
    equal(runs(folder)[0], count, "runs without the option, when the pairs are known")


@test
def a_pair_is_made_as_a_rate():
    "of a metric that is the better the more, the rate is higher: not its inverse"
    need_two_cpus()
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command>echo "v=$((80 + 20 * ({a} - 1)))"</command>
  <metric name="v" match="v=([0-9.]+)" better="more"/>""", attributes=PAIRS % (4, 2))
    explore(folder, env, "run")
    told = json.loads(explore(folder, env, "best", "--json")[0])
    equal((told["configuration"], round(told["gain"], 6), told["mean"]), ({"a": "2"}, 0.25, 100), "best, gain and mean")


@test
def sides_are_apart_and_by_chance():
    "both of a pair have as many CPUs, and none in common; and which ones a configuration has first changes from pair to pair"
    need_two_cpus()
    # Each tells where it is, and looks at the other one as long as that is there.
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command>grep Cpus_allowed_list /proc/self/status >>first-{a}
    case {scratch} in */half*) mkdir -p meet; echo $$ >meet/{a}.new; mv meet/{a}.new meet/{a}
      until test -e meet/1 -a -e meet/2; do sleep 0.01; done
      for i in 1 2 3 4 5 6; do echo $(for s in 1 2; do sed -n 's/Cpus_allowed_list:.//p' /proc/$(cat meet/$s)/status; done) >>seen; done
      rm -f meet/{a}; echo v=$(shuf -i 900-1100 -n 1);;
    *) echo v=100{a} | tr 12 10;; esac</command>""" + METRIC, attributes=PAIRS % (16, 2))
    # A half that looks when the other one is through reads nothing.
    explore(folder, env, "run")
    sides = set(lines(folder + "/first-1")) | set(lines(folder + "/first-2"))
    whole = {"Cpus_allowed_list:\t" + subprocess.run(["sed", "-n", "s/Cpus_allowed_list:.//p", "/proc/self/status"], stdout=subprocess.PIPE,
                                                     check=True, text=True).stdout.strip()}
    equal(len(sides - whole), 2, "sides in %s" % sides)
    for one in "12":
        equal(set(lines(folder + "/first-" + one)) - whole, sides - whole, "sides of %s" % one)
    seen = [line.split() for line in lines(folder + "/seen")]
    apart = [words for words in seen if len(words) == 2 and words[0] != words[1]]
    assert len(apart) > len([words for words in seen if len(words) == 2]) / 2, seen


@test
def the_one_that_is_through_keeps_the_other_company():
    "the quicker one of a pair runs its command again until the slower one has ended, and that is not measured"
    need_two_cpus()
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command>%s
    echo "v={a}"</command>""" % (BESIDE % "echo {a} >>starts; if [ {a} = 1 ]; then n=$(grep -c 2 starts); "
                                "until [ $(grep -c 2 starts) -ge $((n + 3)) ]; do sleep 0.01; done; fi") +
                             '  <metric name="v" match="v=([0-9.]+)" better="more"/>', attributes=PAIRS % (1, 2))
    explore(folder, env, "run")
    found = pairs_of(folder)
    equal([sorted(value for _, value in sides.values()) for sides in found], [[1, 2]] * len(found), "values")
    assert found and lines(folder + "/starts").count("1") == len(found), "the slower one ran again"


@test
def warm_ups_and_prepare_do_not_meet():
    "prepare runs for one of a pair after the other, and a command is measured when both are warm"
    need_two_cpus()
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <prepare>echo begin >>log; sleep 0.05; echo end >>log</prepare>
  <command warm-up="{a}">echo v={a} >>{scratch}/n; echo v=$(wc -l &lt;{scratch}/n)</command>""".replace('"{a}"', '"2"') +
                             '  <metric name="v" match="v=([0-9.]+)"/>', attributes=PAIRS % (2, 2))
    explore(folder, env, "run")
    log = lines(folder + "/log")
    equal(log, ["begin", "end"] * (len(log) // 2), "prepare")
    equal({value for sides in pairs_of(folder) for _, value in sides.values()} | {3}, {3}, "runs until it is measured")


@test
def events_of_a_pair_are_each_ones_own():
    "calls that are counted in a half of a pair are those of its own command, and all of them"
    need_two_cpus()
    need("gcc")
    folder, env = experiment("""  <parameter name="a" values="2000 1000" default="2000"/>
  <command>./counted {a}</command>
  <metric name="calls" event="uprobe:./counted:query"/>""", attributes=PAIRS % (2, 2))
    with open(folder + "/counted.c", "w", encoding="utf-8") as out:
        out.write('#include <stdlib.h>\n__attribute__((noinline)) void query(int i) { asm volatile("" : : "r"(i)); }\n'
                  "int main(int n, char **v) { for (n = 0; n < atoi(v[1]); n++) query(n); }\n")
    subprocess.run(["gcc", "-O1", "-o", folder + "/counted", folder + "/counted.c"], check=True)
    if run([PEM, "stat", "-e", "uprobe:./counted:query", "./counted", "1"], cwd=folder)[0]:
        skip("probes of programs can't be had here: 'pem doctor' says why")
    explore(folder, env, "run")
    found = [{text: value for text, (_, value) in sides.items()} for sides in pairs_of(folder)]
    equal(found, [{"a=2000": 2000, "a=1000": 1000}] * len(found), "calls")
    assert found, "no pair was made"
    equal({reason for _, reason in trials(folder).values()}, {""}, "processes that are said to be left, of which pem's own are none")


@test
def shared_settings_are_refused():
    "what both of a pair would share is refused where it is written: settings outside of the command, a server, files of prepare"
    command = "<command>echo v=1 {a}</command>" + METRIC
    for body, word in (('<parameter name="a" values="1 2" file="app.ini" key="a"/>', "'a', which is set outside"),
                       ('<parameter name="a" values="1 2" pragma="page_size" in="x.db"/>', "'a', which is set outside"),
                       ('<parameter name="a" values="1 2" postgres="work_mem" in="postgresql:///x"/>', "'a', which is set outside"),
                       ('<parameter name="a" values="1 2" sysctl="vm.swappiness"/>', "'a', which is set outside"),
                       ('<parameter name="a" values="1 2" program="./set.sh"/>', "'a', which is set outside"),
                       ('<parameter name="a" values="1 2"/><start>sleep 1</start>', "one server"),
                       ('<parameter name="a" values="1 2"/><prepare>make O={a}</prepare>', "prepare the same files")):
        folder, env = experiment(body + command, attributes=PAIRS % (1, 2))
        err = explore(folder, env, "check", status=1)[1]
        assert "e.xml:1:" in err and word in err, "%s: %s" % (body, err)
        folder, env = experiment(body + command, attributes='policy="grid" race="1"')
        err = explore(folder, env, "run", "--pairs", status=1)[1]
        assert word in err and not os.path.exists(folder + "/db"), "%s: %s" % (body, err)
    folder, env = experiment('<parameter name="a" values="1 2" environment="A"/><prepare>echo {a} >{scratch}/a</prepare>' + command,
                             attributes=PAIRS % (1, 2))
    explore(folder, env, "check")


@test
def one_cpu_makes_turns():
    "where pem may use one CPU alone, runs are made in turns, and that is told"
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command>echo "v=$((100 - 20 * ({a} - 1)))"</command>""" + METRIC, attributes=PAIRS % (1, 2))
    cpu = str(min(os.sched_getaffinity(0)))
    made = subprocess.run(["taskset", "-c", cpu, PEM, "explore", "run", folder + "/e.xml"], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=True)
    assert "one CPU alone" in made.stderr and "in 6 fresh runs of each, in turns" in made.stdout, made
    equal(pairs_of(folder), [], "pairs")


def lost(what, why):
    """The second configuration is lost in each pair, and alone it is the better one."""
    need_two_cpus()
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command limit="%s">[ {a} = 1 ] || %s
    echo "v=$((100 - 20 * ({a} - 1)))"; sleep 0.05</command>""" % ("200ms" if "TERM" in what else "100s", BESIDE % what) + METRIC, attributes=PAIRS % (2, 2))
    out, err = explore(folder, env, "run")
    assert err.count("a pair does not count: ") == 2 and why in err, err
    assert "trial 1" in out, out
    equal(pairs_of(folder), [{"a=1": (EXCLUDED, 0), "a=2": (EXCLUDED, 0)}] * 2, "pairs")
    assert why in trials(folder)["a=2"][1], trials(folder)
    equal(trials(folder)["a=2"][0], 1, "state of a configuration that was measured alone")
    equal(left("987641"), [], "processes left")


@test
def a_half_that_fails_makes_its_pair_void():
    "a configuration that fails beside another one loses its race, and neither figure of such a pair counts"
    lost("echo 'port is in use' >&amp;2; exit 3", "its exit status was 3: port is in use")


@test
def a_half_that_hangs_makes_its_pair_void():
    "a configuration that hangs beside another one is ended, with what it started"
    lost("trap '' TERM; sleep 987641", "did not end within 0.2 s")


@test
def a_half_that_is_killed_makes_its_pair_void():
    "a half whose process is killed leaves no command, and the exploration goes on"
    lost("sleep 987641 &amp; kill -9 $PPID; wait", "ended by a signal")


def begin(folder, env):
    """An exploration whose first pair waits: (its process, its explorer)"""
    explorer = subprocess.Popen([PEM, "explore", "run", folder + "/e.xml"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not (os.path.exists(folder + "/in-1") and os.path.exists(folder + "/in-2")):
        assert explorer.poll() is None, explorer.stderr.read()
        time.sleep(0.01)
    children = subprocess.run(["pgrep", "-P", str(explorer.pid)], stdout=subprocess.PIPE, check=False).stdout.split()
    return explorer, int(children[0])


def ended(how):
    """End an exploration in a pair: nothing is left of it, and the next one goes on."""
    need_two_cpus()
    marker = "98764%d" % (2 + len(how))
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command>%s
    echo "v=$((100 - 20 * ({a} - 1)))"</command>""" % (BESIDE % ("if test ! -e go; then : >in-{a}; sleep %s; fi" % marker)) + METRIC,
                             attributes=PAIRS % (2, 2))
    env["TMPDIR"] = folder + "/state"
    explorer, inner = begin(folder, env)
    if how == "int":
        os.kill(explorer.pid, signal.SIGINT)
    if how in ("both", "guard"):
        os.kill(explorer.pid, signal.SIGKILL)
    if how in ("both", "inner"):
        os.kill(inner, signal.SIGKILL)
    equal(explorer.wait(), {"int": 130, "inner": 3}.get(how, -signal.SIGKILL), "status")
    while left(marker) or os.path.exists("/proc/%d" % inner):
        time.sleep(0.01)
    if how != "both":
        equal([name for name in os.listdir(folder + "/state") if name.startswith("pem-explore-")], [], "folders left")
    equal(pairs_of(folder) if how == "int" else [], [], "pairs of an interrupted exploration")
    open(folder + "/go", "w", encoding="utf-8").close()
    err = explore(folder, env, "run")[1]
    assert ("1 run was lost" in err) == (how in ("inner", "both")), err
    assert "in pairs" in explore(folder, env, "best")[0], "it did not go on"


@test
def an_interrupted_pair_leaves_nothing():
    "^C in a pair ends both commands, and nothing of the pair is kept"
    ended("int")


@test
def a_killed_exploration_leaves_nothing_of_a_pair():
    "kill -9 of the explorer, of its guard, or of both ends both commands of a pair"
    for how in ("inner", "guard", "both"):
        ended(how)


@test
def a_race_in_pairs_goes_on_where_it_was():
    "an exploration that ended in the middle of a race takes the pairs that were made"
    need_two_cpus()
    body = """  <parameter name="a" values="1 2" default="1"/>
  <command>echo >>n; echo "v=$((100 - 20 * ({a} - 1) + $(wc -l &lt;n) %% 3))"; %s true</command>""" + METRIC
    folder, env = experiment(body % "", attributes=PAIRS % (4, 2))
    explore(folder, env, "run")
    before, told = pairs_of(folder), json.loads(explore(folder, env, "best", "--json")[0])
    explore(folder, env, "run")
    equal((pairs_of(folder), json.loads(explore(folder, env, "best", "--json")[0])), (before, told), "after another look")
    with open(folder + "/e.xml", "w", encoding="utf-8") as out:
        out.write(HEAD % ("e", 'policy="grid" race="4" trials="2"') + body % "" + "\n</exploration>\n")
    assert "in pairs" in explore(folder, env, "best")[0], "a document without pairs"


run_all()
