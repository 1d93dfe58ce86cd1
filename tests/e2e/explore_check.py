# SPDX-License-Identifier: MIT
"""explore_check: what pem explore check, best and show say of an experiment before and after its trials"""
import json
import os
import sqlite3
import subprocess
import sys

from explorations import experiment, explore, runs, trials
from html_page import browser, quiet
from tap import BUILD, equal, need, run_all, test

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)

BODY = """  <parameter name="a" values="1 2"/>
%s
  <command>echo v={a}</command>
  <metric name="v" match="v=([0-9]+)"/>"""


def missing(parameter, word, place="3:20"):
    """A parameter whose setting is not there: the sentence has its place."""
    folder, env = experiment(BODY % parameter)
    with open(folder + "/app.json", "w", encoding="utf-8") as out:
        out.write('{"there": 1}')
    err = explore(folder, env, "check", status=1)[1]
    assert "e.xml:%s: " % place in err and word in err, err


@test
def missing_settings_have_their_place():
    "a file, a key, a database, a PRAGMA, a kernel setting and a program that are not there are told with line and column"
    for parameter, word in (('<parameter name="b" values="1 2" file="app.ini" key="b"/>', "app.ini can't be read"),
                            ('<parameter name="b" values="1 2" file="app.json" key="b"/>', "has no 'b'"),
                            ('<parameter name="b" values="1 2" pragma="page_size" in="x.db"/>', "x.db can't be opened"),
                            ('<parameter name="b" values="1 2" sysctl="vm.swappines"/>', "swappines can't be read"),
                            ('<parameter name="b" values="1 2" program="./set.sh"/>', "./set.sh can't be run")):
        missing("  " + parameter, word)


@test
def settings_that_are_there_are_right():
    "a key of a file that is there is no mistake, and the file is as it was"
    folder, env = experiment(BODY % '  <parameter name="b" values="1 2" file="app.json" key="there"/>')
    with open(folder + "/app.json", "w", encoding="utf-8") as out:
        out.write('{"there": 7}')
    explore(folder, env, "check")
    with open(folder + "/app.json", encoding="utf-8") as now:
        equal(now.read(), '{"there": 7}', "the file")


@test
def what_prepare_makes_may_be_missing():
    "a file that is not there is no mistake if a command runs before it is needed, and is told"
    folder, env = experiment(BODY % '  <parameter name="b" values="1 2" file="app.ini" key="b"/>\n  <prepare>echo b=1 &gt; app.ini</prepare>')
    out, err = explore(folder, env, "check", "--json")
    assert "app.ini can't be read" in json.loads(out)["missing"] and "unless prepare makes it" in err, (out, err)


@test
def an_unknown_event_has_its_place():
    "an event that there is not, and a field that it does not have, are told with line and column"
    for event, word in (('event="OS::Process::Exek"', "OS::Process::Exek"), ('event="OS::Process::Exec" field="nofield"', "no field 'nofield'")):
        folder, env = experiment(BODY % "" + '\n  <metric name="e" %s better="no"/>' % event)
        err = explore(folder, env, "check", status=1)[1]
        assert "e.xml:6:17: " in err and word in err, err


@test
def trials_are_of_the_program_that_is_wrapped():
    "programs that run another one are not what trials belong to: another build of that one makes other trials"
    need("cp")
    folder, env = experiment(BODY.replace("echo", "env X=1 nice -n 1 ./app") % "")
    for source in ("echo", "printf"):
        subprocess.run(["cp", "/usr/bin/" + source, folder + "/app"], check=True)
        assert "this build of %s/app.\n0 configurations" % os.path.realpath(folder) in explore(folder, env, "check")[0], "program"
        explore(folder, env, "run")
    equal(runs(folder), (4, 0), "runs of two builds")


@test
def trials_are_of_the_program_that_is_named():
    "another build of the program that the document names makes other trials, whatever the command begins with; a pattern names the last file"
    need("cp")
    folder, env = experiment(BODY.replace("echo", "export X=1; ./app-2") % "", attributes='program="./app-*"')
    for source in ("echo", "printf"):
        for number in "12":
            subprocess.run(["cp", "/usr/bin/" + source, "%s/app-%s" % (folder, number)], check=True)
        out = explore(folder, env, "check")[0]
        assert "this build of %s/app-2.\n0 configurations" % os.path.realpath(folder) in out, out
        explore(folder, env, "run")
    equal(runs(folder), (4, 0), "runs of two builds")
    os.unlink(folder + "/app-1")
    os.unlink(folder + "/app-2")
    assert "./app-*: there is no such command" in explore(folder, env, "check", status=1)[1], "no program"


@test
def a_build_that_is_not_known_is_not_claimed():
    "if the command begins with a word of the shell, or prepare makes the program, check names no build; a program of PATH is not prepare's"
    for command, prepare, wanted in (("export X=1; echo v={a}", "", "any build of what the command runs: 'export' is not"),
                                     ("./app v={a}", "cp /usr/bin/echo app", "any build of ./app, since prepare makes it"),
                                     ("./app v={a}", "touch app.in", "any build of what the command runs: './app' is not"),
                                     ("cp --version; echo v={a}", "cp /usr/bin/echo app", "this build of /usr/bin/cp.")):
        folder, env = experiment((BODY % ("  <prepare>%s</prepare>" % prepare if prepare else "")).replace("echo v={a}", command))
        out = explore(folder, env, "check")[0]
        assert "Trials are of " + wanted in out, out
        known = wanted.startswith("this build")
        equal(json.loads(explore(folder, env, "check", "--json")[0])["program"], "/usr/bin/cp" if known else "", "JSON")


@test
def a_folder_of_a_run_is_explained():
    "where a command has {scratch}, the word that is printed in its place is explained; elsewhere there is no such word"
    for use in (True, False):
        folder, env = experiment((BODY % "").replace("echo", "ls {scratch}; echo" if use else "echo"))
        explore(folder, env, "run")
        for verb in ("check", "best"):
            out = explore(folder, env, verb)[0]
            equal("SCRATCH stands for an empty folder" in out, use, verb)
        equal(json.loads(explore(folder, env, "best", "--json")[0]).get("scratch"), "SCRATCH" if use else None, "JSON")


@test
def a_refused_value_is_not_tried_for_ever():
    "a value that is refused in three configurations and never taken is left out of all others, and the rest is measured"
    folder, env = experiment("""  <parameter name="n" from="1" to="6"/>
  <parameter name="page_size" values="1024 1048576" pragma="page_size" in="x.db"/>
  <command>echo v={n}</command>
  <metric name="v" match="v=([0-9]+)"/>""")
    with sqlite3.connect(folder + "/x.db") as db:
        db.execute("CREATE TABLE t(a)")
    explore(folder, env, "run")
    told = [state for text, (state, _) in trials(folder).items() if "1048576" in text]
    equal((len(told), len(trials(folder))), (3, 3 + 6), "refused, and all")
    assert "best of 6 is trial" in explore(folder, env, "best")[0], "best"
    best = json.loads(explore(folder, env, "best", "--json")[0])
    equal((best["trials"], best["measured"]), (9, 6), "trials, and measured ones")


@test
def and_binds_more_tightly_than_or():
    "of a condition with 'and' and 'or', the configurations are those that it means"
    for condition, wanted in (("a = 1 and b = 1 or a = 2 and b = 2", 2), ("a = 1 or a = 2 and b = 2", 4), ("!a = 1 and b != 3 and a &gt;= b", 4)):
        folder, env = experiment("""  <parameter name="a" values="1 2 3"/>
  <parameter name="b" values="1 2 3"/>
  <constraint then="%s"/>
  <command>echo v={a}{b}</command>
  <metric name="v" match="v=([0-9]+)"/>""" % condition)
        equal(json.loads(explore(folder, env, "check", "--json")[0])["configurations"], wanted, condition)


@test
def time_ends_an_exploration():
    "no trial begins after the exploration's time"
    folder, env = experiment("""  <parameter name="a" from="1" to="9" default="1"/>
  <command>echo v={a}</command>
  <metric name="v" match="v=([0-9]+)"/>""", attributes='policy="grid" race="0" time="1ms"')
    explore(folder, env, "run")
    assert "a=2" not in trials(folder), trials(folder)


@test
def values_that_mean_nothing_are_not_shown():
    "show has no value of a parameter that means nothing in a configuration, as text and as JSON"
    folder, env = experiment("""  <parameter name="mode" values="plain fancy"/>
  <parameter name="level" values="1 2 3" when="mode = fancy" argument="-l {}"/>
  <command>f() { echo "v=$#"; }; f {mode} {arguments}</command>
  <metric name="v" match="v=([0-9]+)"/>""")
    explore(folder, env, "run")
    trials = json.loads(explore(folder, env, "show", "--json")[0])["trials"]
    equal([one["configuration"] for one in trials], [{"mode": "plain"}] + [{"mode": "fancy", "level": str(level)} for level in (1, 2, 3)], "JSON")
    assert "\n  mode=plain\n" in explore(folder, env, "show")[0], "text"


@test
def each_run_keeps_its_reason():
    "a configuration that is measured and fails later has what the first run left and why the other one failed, in any later process"
    folder, env = experiment("""  <parameter name="a" values="1 2"/>
  <command>echo >>n-{a}; if test $(wc -l &lt;n-{a}) -gt 1; then echo "no more of {a}" >&amp;2; exit 3; fi
    if test {a} = 1; then sleep 987663 &amp; fi; echo v={a}</command>
  <metric name="v" match="v=([0-9]+)"/>""", attributes='policy="grid" runs="2" race="0"')
    assert "all 2 failed or were refused in a run" in explore(folder, env, "run", status=3)[1], "run"
    told = {trial["configuration"]["a"]: trial for trial in json.loads(explore(folder, env, "show", "--json")[0])["trials"]}
    left = told["1"]["left"]
    assert left.startswith("it left processes, which were ended: ") and not told["2"]["left"], told
    for a in "12":
        equal([told[a][name] for name in ("outcome", "reason", "runs", "values")],
              ["failed", "its exit status was 3: no more of " + a, 1, {"v": int(a)}], "a = " + a)
    assert "trial 2, failed: its exit status was 3: no more of 2\n" in explore(folder, env, "show")[0], "show"
    with sqlite3.connect(folder + "/db") as db:
        equal(db.execute("SELECT run, text FROM evidence, directive WHERE directive.id = directive AND agent = 'explore reason' ORDER BY run")
              .fetchall(), [(1, left), (2, "its exit status was 3: no more of 1"),
                            (4, "its exit status was 3: no more of 2")], "reasons of runs")


@test
def a_pages_table_stays_readable():
    "on a narrow page a reason has lines of several words, and a parameter without meaning an empty cell"
    folder, env = experiment("""  <parameter name="mode" values="plain fancy" default="plain"/>
  <parameter name="level" from="1" to="4" default="1" when="mode = fancy"/>
  <parameter name="a" values="1 2"/>
  <parameter name="b" values="1 2"/>
  <command>[ {level} != 3 ] || { echo "level three was not reached by this program" &gt;&amp;2; exit 3; }; echo v=$(({level} * {a} + {b}))</command>
  <metric name="v" match="v=([0-9]+)"/>
  <metric name="seconds" of="time" better="no"/>""")
    explore(folder, env, "run")
    explore(folder, env, "show", "--html", folder + "/page.html")
    b = browser()
    b.resize(700, 1000)
    b.console()
    b.open("file://" + folder + "/page.html")
    b.wait_for("return document.documentElement.dataset.ready === 'yes'", "drawn")
    quiet(b)
    cells = b.script("return [...document.querySelectorAll('#trials td')].map((td) => [td.textContent, td.offsetWidth])")
    assert all(width >= 200 for words, width in cells if "level three" in words) and all(width >= 60 for _, width in cells), cells
    equal(b.script("return [...document.querySelectorAll('#trials tbody tr')].filter((row) => row.textContent.includes('plain'))"
                   ".map((row) => [...row.cells].map((td) => td.textContent)).filter((all) => !all.includes('')).length"), 0, "rows of plain with a level")
    equal([words for words, _ in cells if words in ("undefined", "NaN", "null")], [], "cells")


run_all()
