# SPDX-License-Identifier: MIT
"""explore_run: pem explore on programs that run: trials, what they leave, what a killed one leaves"""
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

from explorations import HEAD, experiment, explore, runs, trials
from tap import BUILD, PEM, SAN, equal, need, run, run_all, skip, test

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)

SQUARE = """  <parameter name="a" from="1" to="6" default="1"/>
  <parameter name="b" from="1" to="6" default="1" argument="-b {}"/>
  <constraint if="a = 3" then="b != 4"/>
  <command>f() { echo "v=$((({a}-3)*({a}-3) + ($2-4)*($2-4)))"; }; f</command>
  <metric name="v" match="v=([0-9]+)"/>"""


@test
def a_command_that_ends_its_process_group():
    "a command that ends its process group has failed, also if its events are counted, and the others are tried"
    for metric in 'of="time"', 'event="APP::Libc::Malloc"':
        folder, env = experiment('<parameter name="a" values="TERM KILL 0" environment="A"/><command>kill -$A 0; expr 1 + 1</command>'
                                 '<metric name="m" %s/>' % metric)
        explore(folder, env, "run")
        equal(sorted(trials(folder)), ["a=0", "a=KILL", "a=TERM"], "configurations")


@test
def finds_the_best_that_is_allowed():
    "the best configuration of a known function is found, and one that a constraint forbids is not tried"
    folder, env = experiment(SQUARE)
    explore(folder, env, "run")
    best = json.loads(explore(folder, env, "best", "--json")[0])
    equal((best["mean"], best["trials"]), (1, 35), "best value and trials")
    assert "a=3 b=4" not in trials(folder), "a configuration that is not allowed was tried"
    equal(best["gain"], 1 - 1 / 13, "gain over the defaults")


@test
def a_gain_is_a_share_of_all():
    "runs that differ much do not save more time than all: the interval of a gain ends below 100 %"
    folder, env = experiment("""  <parameter name="a" values="1 2" default="2"/>
  <command>echo >> runs-{a}; n=$(wc -l &lt; runs-{a}); echo v=$(( {a} == 2 ? 100 * n * n * n : 40 + 90 * (n - 1) ))</command>
  <metric name="v" match="v=([0-9]+)"/>""", attributes='policy="grid" runs="2" race="0"')
    explore(folder, env, "run")
    best = json.loads(explore(folder, env, "best", "--json")[0])
    equal(best["gain"], 1 - 85 / 450, "gain")
    assert best["gain_low"] < best["gain"] < best["gain_high"] < 1, best


@test
def goes_on_where_it_was():
    "a second run makes only the trials that are missing, and a third none"
    folder, env = experiment(SQUARE)
    explore(folder, env, "run", "--budget", "5")
    equal(runs(folder)[0], 5, "runs of the first")
    explore(folder, env, "run", "--budget", "8")
    equal(runs(folder)[0], 8, "runs of both")
    explore(folder, env, "run", "--budget", "8")
    equal(runs(folder)[0], 8, "runs of all three")


@test
def a_parameter_without_meaning_is_not_tried_twice():
    "a conditional parameter is left out where its condition does not hold"
    folder, env = experiment("""  <parameter name="mode" values="plain fancy"/>
  <parameter name="level" values="1 2 3" when="mode = fancy" argument="-l {}"/>
  <command>f() { echo "v=$#"; }; f</command>
  <metric name="v" match="v=([0-9]+)"/>""")
    explore(folder, env, "run")
    equal(sorted(trials(folder)), ["mode=fancy level=1", "mode=fancy level=2", "mode=fancy level=3", "mode=plain"], "trials")


@test
def bad_programs_are_trials_that_failed():
    "a command that crashes, fails, needs a terminal or fills the disk fails its trial, and nothing of it stays"
    folder, env = experiment("""  <parameter name="what" values="fine crash fail quiet terminal disk silent fork"/>
  <command disk="200M">case {what} in
    fine) echo v=1;;
    crash) echo v=1; kill -SEGV $$;;
    fail) echo "no such table" &gt;&amp;2; echo v=1; echo "3 of 4 done"; exit 3;;
    quiet) echo "only this"; exit 4;;
    terminal) stty -F /dev/tty size || exit 5; echo v=1;;
    disk) fallocate -l 400M {scratch}/big; sleep 987654; echo v=1;;
    silent) :;;
    fork) (setsid sleep 987654 &amp;); echo v=2;;
  esac</command>
  <metric name="v" match="v=([0-9]+)"/>""")
    explore(folder, env, "run")
    told = {text.split("=")[1]: reason for text, (_, reason) in trials(folder).items()}
    equal(told["fine"], "", "fine")
    for what, word in (("crash", "SIGSEGV"), ("fail", "status was 3: no such table"), ("quiet", "status was 4: only this"),
                       ("terminal", "status was 5"), ("silent", "never came"), ("fork", "it left processes, which were ended: ")):
        assert word in told[what], "%s: %r" % (what, told[what])
    assert "free space" in told["disk"], told["disk"]
    equal(json.loads(explore(folder, env, "best", "--json")[0])["configuration"], {"what": "fine"}, "best")
    left = [pid for pid in os.listdir("/proc") if pid.isdigit() and b"987654" in cmdline(pid)]
    equal(left, [], "processes left")


@test
def a_command_that_hangs_is_ended():
    "a command that does not end, and ignores to be asked, is ended with its children"
    folder, env = experiment("""  <parameter name="what" values="hang"/>
  <command limit="100ms">trap '' TERM; echo v=1; while :; do sleep 987652; done</command>
  <metric name="v" match="v=([0-9]+)"/>""")
    assert "all 1 failed" in explore(folder, env, "run", status=3)[1], "it did not fail"
    assert "within 0.1 s" in trials(folder)["what=hang"][1], trials(folder)
    equal([pid for pid in os.listdir("/proc") if pid.isdigit() and b"987652" in cmdline(pid)], [], "processes left")


@test
def a_command_that_prints_without_pause_is_ended():
    "a command that never stops printing is watched all the same"
    folder, env = experiment("""  <parameter name="what" values="yes"/>
  <command limit="100ms">yes v=1</command>
  <metric name="v" match="v=([0-9]+)" use="count"/>""")
    assert "all 1 failed" in explore(folder, env, "run", status=3)[1], "it did not fail"
    assert "within 0.1 s" in trials(folder)["what=yes"][1], trials(folder)


@test
def what_is_no_number_is_no_figure():
    "text where a number should be fails the trial, and a number is what the group matched"
    folder, env = experiment("""  <parameter name="v" values="n/a 12.7 0x1F 3e2"/>
  <command>echo v={v}.</command>
  <metric name="v" match="v=(.*)[.]"/>""")
    explore(folder, env, "run")
    told = trials(folder)
    equal(sorted(text for text, (state, _) in told.items() if state == 1), ["v=12.7", "v=3e2"], "measured")
    assert "is not a number: 'n/a'" in told["v=n/a"][1] and "'0x1F'" in told["v=0x1F"][1], told


@test
def memory_is_the_commands():
    "the memory of a large command is its own, and of a small one unknown"
    folder, env = experiment("""  <parameter name="mib" values="0 200"/>
  <command>head -c {mib}M /dev/zero | tail -c {mib}M | wc -c</command>
  <metric name="memory" of="memory"/>""")
    explore(folder, env, "run")
    told = trials(folder)
    assert "less memory than pem" in told["mib=0"][1], told
    with sqlite3.connect(folder + "/db") as db:
        value = db.execute("SELECT mean FROM metric WHERE name = 'memory'").fetchone()[0]
    assert value > 200 << 20, value


@test
def another_condition_makes_other_trials():
    "a document whose parameter has lost its condition, or whose limit is another one, knows no trial of the first"
    body = """  <parameter name="mode" values="plain fancy"/>
  <parameter name="level" values="1 2" when="mode = fancy" argument="-l {}"/>
  <command>f() { echo "v=$#"; }; f {arguments}</command>
  <metric name="v" match="v=([0-9]+)"/>"""
    folder, env = experiment(body)
    explore(folder, env, "run")
    for old, new, wanted in ((' when="mode = fancy"', "", 4), ("<command>", '<command limit="50s">', 3)):
        with open(folder + "/e.xml", "w", encoding="utf-8") as out:
            out.write(HEAD % ("e", 'policy="grid" race="0"') + body.replace(old, new).replace("echo", ": {mode}; echo") + "</exploration>")
        explore(folder, env, "run")
        equal(json.loads(explore(folder, env, "best", "--json")[0])["trials"], wanted, "trials with %r" % new)


@test
def a_server_that_ended_is_noticed():
    "a server that does not start fails its trial, though another one answers in its place"
    folder, env = experiment("""  <parameter name="a" values="1 2"/>
  <start ready="true">test {a} = 1 || { touch failed; exit 7; }; exec sleep 987651</start>
  <command>while [ {a} = 2 ] &amp;&amp; [ ! -e failed ]; do sleep 0.01; done; [ {a} = 1 ] || sleep 0.2; echo v={a}</command>
  <metric name="v" match="v=([0-9]+)"/>""")
    explore(folder, env, "run")
    told = trials(folder)
    equal(told["a=1"], (1, ""), "a server that runs")
    assert "the server ended" in told["a=2"][1], told


def cmdline(pid):
    try:
        with open("/proc/%s/cmdline" % pid, "rb") as text:
            return text.read()
    except OSError:
        return b""


@test
def a_refused_value_is_a_finding():
    "a page size that SQLite does not take is refused with what it took, and the database is as before"
    need("sqlite3")
    folder, env = experiment("""  <parameter name="page_size" values="1024 4096 1048576" default="4096" pragma="page_size" in="x.db"/>
  <command>sqlite3 x.db "SELECT 'v=' || page_size FROM pragma_page_size"</command>
  <metric name="v" match="v=([0-9]+)"/>""")
    subprocess.run(["sqlite3", folder + "/x.db", "CREATE TABLE t(a); INSERT INTO t VALUES (1)"], check=True)
    explore(folder, env, "run")
    told = trials(folder)
    equal(told["page_size=1024"], (1, ""), "a size that is taken")
    assert "1048576 was given" in told["page_size=1048576"][1], told
    with sqlite3.connect(folder + "/x.db") as db:
        equal(db.execute("PRAGMA page_size").fetchone()[0], 4096, "page size afterwards")


SLOW = """  <parameter name="a" values="1 2 3" file="app.ini" key="a"/>
  <command>read line &lt; go; cat app.ini &gt; seen; echo v={a}; echo {a} &gt;&gt; ran</command>
  <metric name="v" match="v=([0-9]+)"/>"""


def killed(victim):
    """Kill the explorer in its first trial, and see what is left and that the next one goes on."""
    folder, env = experiment(SLOW)
    os.mkfifo(folder + "/go")
    with open(folder + "/app.ini", "w", encoding="utf-8") as out:
        out.write("a = 9\n")
    explorer = subprocess.Popen([PEM, "explore", "run", folder + "/e.xml"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    # The command waits for a writer once its configuration is applied.
    go = open(folder + "/go", "w", encoding="utf-8")
    children = subprocess.run(["pgrep", "-P", str(explorer.pid)], stdout=subprocess.PIPE, check=False).stdout.split()
    os.kill(explorer.pid if victim == "guard" else int(children[0]), signal.SIGKILL)
    explorer.wait()
    while open(folder + "/app.ini", encoding="utf-8").read() != "a = 9\n":
        time.sleep(0.01)
    go.close()
    while os.path.exists("/proc/%d" % int(children[0])):
        time.sleep(0.01)
    assert not os.path.exists(folder + "/ran"), "the killed run went on"
    os.unlink(folder + "/go")
    with open(folder + "/go", "w", encoding="utf-8") as out:
        out.write("go\n")
    explore(folder, env, "run")
    with open(folder + "/ran", encoding="utf-8") as ran:
        equal(ran.read().split(), ["1", "2", "3"], "runs after that")
    equal(open(folder + "/app.ini", encoding="utf-8").read(), "a = 9\n", "the file at the end")
    equal(len(trials(folder)), 3, "trials")


@test
def a_killed_explorer_leaves_nothing():
    "kill -9 of the explorer restores the configuration and ends the command; the next run makes each trial once"
    killed("explorer")


@test
def a_killed_guard_leaves_nothing():
    "kill -9 of the process that a person sees does the same"
    killed("guard")


@test
def a_database_that_is_removed_is_noticed():
    "if the database is removed or replaced while trials are made, the exploration ends with a sentence, and the next one makes all"
    for how in ("rm db*", "rm db-*; cp db copy; mv copy db"):
        folder, env = experiment("""  <parameter name="a" values="1 2 3" file="app.ini" key="a"/>
  <command>[ {a} != 2 ] || [ -e gone ] || { touch gone; %s; }; echo v={a}</command>
  <metric name="v" match="v=([0-9]+)"/>""" % how)
        with open(folder + "/app.ini", "w", encoding="utf-8") as out:
            out.write("a = 9\n")
        assert "was removed or replaced" in explore(folder, env, "run", status=3)[1], "it was not noticed"
        equal(open(folder + "/app.ini", encoding="utf-8").read(), "a = 9\n", "the file at the end")
        if how == "rm db*":
            explore(folder, env, "run")
            equal(runs(folder), (3, 0), "runs of the next one")


@test
def an_interrupt_ends_the_run_that_goes_on():
    "^C in a trial ends its command, restores the configuration and exits with 130; the same command goes on"
    folder, env = experiment(SLOW.replace("<command>", "<command>sleep 987650 &amp; "))
    os.mkfifo(folder + "/go")
    with open(folder + "/app.ini", "w", encoding="utf-8") as out:
        out.write("a = 9\n")
    # A shell's & ignores the signal, and pem leaves it so.
    explorer = subprocess.Popen([PEM, "explore", "run", folder + "/e.xml"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    go = open(folder + "/go", "w", encoding="utf-8")
    explorer.send_signal(signal.SIGINT)
    err = explorer.communicate()[1].decode()
    go.close()
    equal(explorer.returncode, 128 + signal.SIGINT, "status (%s)" % err)
    assert "the same command goes on" in err, err
    equal(open(folder + "/app.ini", encoding="utf-8").read(), "a = 9\n", "the file")
    equal((runs(folder)[0], os.path.exists(folder + "/ran")), (0, False), "runs that are noted, and a command that went on")
    equal([pid for pid in os.listdir("/proc") if pid.isdigit() and b"987650" in cmdline(pid)], [], "processes left")
    os.unlink(folder + "/go")
    with open(folder + "/go", "w", encoding="utf-8") as out:
        out.write("go\n")
    explore(folder, env, "run")
    equal(runs(folder), (3, 0), "runs of both")


@test
def two_at_once_are_refused():
    "a second exploration of a user does not begin while one runs"
    folder, env = experiment(SLOW)
    os.mkfifo(folder + "/go")
    with open(folder + "/app.ini", "w", encoding="utf-8") as out:
        out.write("a = 9\n")
    first = subprocess.Popen([PEM, "explore", "run", folder + "/e.xml"], env=env, stdout=subprocess.DEVNULL)
    go = open(folder + "/go", "w", encoding="utf-8")
    assert "another exploration runs" in explore(folder, env, "run", status=3)[1], "the second one ran"
    first.terminate()
    first.wait()
    go.close()
    equal(open(folder + "/app.ini", encoding="utf-8").read(), "a = 9\n", "the file at the end")


@test
def mistakes_have_their_place():
    "each mistake of a document is told with line and column, and what would be right"
    good = '  <parameter name="a" values="1 2 3"/>\n  <command>true {a}</command>\n  <metric name="t" of="time"/>'
    cases = [
        (good.replace('values="1 2 3"', 'valuess="1 2 3"'), "2:", "valuess"),
        (good.replace('1 2 3', '1 2 2'), "2:31", "twice"),
        (good.replace('values="1 2 3"', 'values="1 2" default="3"'), "2:45", "not one of the values"),
        (good.replace("<command>", '<constraint if="a &gt; 1" then="b = 2"/>\n  <command>'), "3:", "no parameter 'b'"),
        (good.replace('of="time"', 'match="[0-9"'), "4:", "regular expression"),
        (good.replace('of="time"', 'match="[0-9]+"'), "4:", "one group"),
        (good.replace("</command>", ""), "", "not XML"),
        (good.replace('values="1 2 3"', 'from="1" to="0"'), "2:", "range"),
        (good.replace('values="1 2 3"', 'values="1 2 3" argument="-a"'), "2:", "{}"),
        (good.replace(' of="time"', ""), "4:", "measured"),
        (good.replace("<command>", '<command duration="2s" limit="1s">'), "3:", "longer limit"),
        (good + '\n  <metric name="m" of="memory"/>\n  <metric name="e" event="OS::Process::Exec" better="no"/>', "1:1", "memory is not known"),
        (good.replace('of="time"', 'of="time" unit="' + 300 * "x" + '"'), "4:", "unit"),
        (good.replace("{a}", "{b}"), "1:1", "'a' reaches nobody"),
        (good.replace("{a}", "{a} {argument}"), "3:", "is {arguments} meant"),
        (good.replace("<command>", "<prepare>echo {arguments}</prepare>\n  <command>"), "3:", "in the command and in start alone"),
        (good.replace("<command>", '<start ready="test {scratchh}/x">x</start>\n  <command>'), "3:", "is {scratch} meant"),
        (good.replace("<command>", '<constraint if="a = 7" then="a &gt; 0"/>\n  <command>'), "3:", "no value '7'"),
        (good.replace('of="time"', 'event="OS::Process::Exec" use="median"'), "4:", 'use="count"'),
        ("".join('<parameter name="p%d" values="1 2"/>' % i for i in range(256)) + good, "2:", "more than 255 parameters"),
    ]
    for body, place, word in cases:
        folder, env = experiment(body)
        err = explore(folder, env, "check", status=1)[1]
        assert "e.xml:" + place in err and word in err, "%.999s: %s" % (body, err)
    folder, env = experiment(good.replace("{a}", "{a} {word} ${a} { print } [0-9]{3}").replace("<command>", '<constraint if="a = 1.0" then="a != 2"/>\n  <command>'))
    assert "{word} stays as it is" in explore(folder, env, "check")[0], "what is the command's own"


@test
def a_figure_is_reproduced():
    "a figure that holds is told to hold, and one that changed is not"
    folder, env = experiment("""  <parameter name="a" values="1 2 3" default="1"/>
  <command>echo v=$(( {a} * $(cat factor) ))</command>
  <metric name="v" match="v=([0-9]+)"/>""", attributes='policy="grid" runs="2" race="0"')
    with open(folder + "/factor", "w", encoding="utf-8") as out:
        out.write("10")
    explore(folder, env, "run")
    assert json.loads(explore(folder, env, "reproduce", "--trial", "2", "--json")[0])["holds"], "20 is 20"
    with open(folder + "/factor", "w", encoding="utf-8") as out:
        out.write("11")
    told = json.loads(explore(folder, env, "reproduce", "--trial", "2", "--json", status=5)[0])
    equal((told["then"], told["now"], told["holds"]), (20, 22, False), "what is told")
    out = explore(folder, env, "reproduce", "--trial", "3", status=5)[0]
    assert out.endswith("Does the defaults' figure hold? --trial 1 shows it.\n"), out
    assert "--trial" not in explore(folder, env, "reproduce", "--trial", "1", status=5)[0], "the defaults themselves"


@test
def the_best_is_applied_for_good():
    "best --apply leaves the best configuration in its file, and nothing takes it back"
    folder, env = experiment("""  <parameter name="a" values="1 2 3" default="1" file="app.ini" key="a"/>
  <command>echo v={a}</command>
  <metric name="v" match="v=([0-9]+)" better="more"/>""")
    with open(folder + "/app.ini", "w", encoding="utf-8") as out:
        out.write("a = 1\n")
    explore(folder, env, "run")
    equal(open(folder + "/app.ini", encoding="utf-8").read(), "a = 1\n", "before")
    explore(folder, env, "best", "--apply")
    explore(folder, env, "run")
    equal(open(folder + "/app.ini", encoding="utf-8").read(), "a = 3\n", "after")


@test
def a_metric_may_have_any_name():
    "a metric named as what pem notes itself does not change how a trial ended"
    folder, env = experiment("""  <parameter name="v" values="2 7"/>
  <command>echo v={v}</command>
  <metric name="outcome" match="v=([0-9]+)"/>""")
    explore(folder, env, "run")
    told = json.loads(explore(folder, env, "best", "--json")[0])
    equal((told["mean"], told["trials"]), (2, 2), "best and trials")


@test
def another_users_folder_is_not_used():
    "root makes nothing in another user's folder"
    if os.geteuid() != 0:
        skip("only root can give a folder to another user")
    folder, env = experiment(SQUARE)
    os.chown(folder + "/state", 65534, 65534)
    assert "can't be used" in explore(folder, env, "run", status=2)[1], "it was used"
    equal(os.listdir(folder + "/state"), [], "what was made there")


@test
def a_server_is_started_for_each_trial():
    "start, ready and end surround the command, and the server is gone after the trial"
    folder, env = experiment("""  <parameter name="a" values="1 2"/>
  <prepare>rm -f up; echo prepare >> log</prepare>
  <start ready="test -e up">echo start {a} >> log; touch up; exec sleep 987653</start>
  <command>echo command >> log; echo v={a}</command>
  <end>echo end >> log</end>
  <metric name="v" match="v=([0-9]+)"/>""")
    explore(folder, env, "run")
    with open(folder + "/log", encoding="utf-8") as log:
        equal(log.read().split("\n")[:-1], ["prepare", "start 1", "command", "end", "prepare", "start 2", "command", "end"], "order")
    equal([reason for _, reason in trials(folder).values()], ["", ""], "nothing was left")
    equal([pid for pid in os.listdir("/proc") if pid.isdigit() and b"987653" in cmdline(pid)], [], "servers left")


@test
def events_are_metrics():
    "a kernel's event and a field of it are metrics: programs that a command starts, and their exit codes"
    folder, env = experiment("""  <parameter name="a" values="3 7"/>
  <command>for i in $(seq {a}); do /bin/true; done</command>
  <metric name="programs" event="OS::Process::Exec"/>""")
    rc, out, _ = run([PEM, "list", "OS::Process::Exec", "--json"])
    if rc or not json.loads(out)[0]["available"]:
        skip("the kernel's events can't be had here: 'pem doctor' says why")
    explore(folder, env, "run")
    with sqlite3.connect(folder + "/db") as db:
        counts = [row[0] for row in db.execute("SELECT mean FROM metric WHERE name = 'programs' ORDER BY id")]
    # The shell, seq, and a /bin/true each time.
    equal(counts, [1 + 1 + 3, 1 + 1 + 7], "programs")


@test
def functions_of_a_program_are_metrics():
    "a pair of probes on a function of an unmodified program measures it, and each call is counted"
    need("gcc")
    folder, env = experiment("""  <parameter name="us" values="1000 20000"/>
  <command>./sleeper {us}</command>
  <metric name="least" event="uprobe:./sleeper:query" until="uretprobe:./sleeper:query" use="least"/>
  <metric name="calls" event="uprobe:./sleeper:query" better="no"/>""")
    with open(folder + "/sleeper.c", "w", encoding="utf-8") as out:
        out.write("#include <stdlib.h>\n#include <unistd.h>\n__attribute__((noinline)) void query(int us) { usleep(us); "
                  'asm volatile(""); }\nint main(int n, char **v) { for (n = 0; n < 9; n++) query(atoi(v[1])); }\n')
    subprocess.run(["gcc", "-O1", "-o", folder + "/sleeper", folder + "/sleeper.c"], check=True)
    if run([PEM, "stat", "-e", "uprobe:./sleeper:query", "./sleeper", "1"], cwd=folder)[0]:
        skip("probes of programs can't be had here: 'pem doctor' says why")
    explore(folder, env, "run")
    with sqlite3.connect(folder + "/db") as db:
        rows = db.execute("SELECT name, mean FROM metric ORDER BY id").fetchall()
    equal([mean for name, mean in rows if name == "calls"], [9, 9], "calls")
    least = [mean for name, mean in rows if name == "least"]
    assert least[0] >= 0.001 and least[1] >= 0.02, least


@test
def probes_in_the_source_are_metrics():
    "an enclosing probe of a program is a metric, by its id"
    program = BUILD + "/examples/probes"
    if not os.path.exists(program):
        skip("examples/probes is not built")
    if SAN:
        skip("a sanitizer's runtime must come before every preloaded library; run without SAN=1")
    folder, env = experiment("""  <parameter name="threads" values="1 2"/>
  <command>%s {threads} 1000</command>
  <metric name="queries" event="APP::Probe::Tpt" field="count" where="id == 2"/>
  <metric name="other" event="APP::Probe::Tpt" where="id == 9" better="no"/>""" % os.path.realpath(program))
    explore(folder, env, "run")
    with sqlite3.connect(folder + "/db") as db:
        rows = db.execute("SELECT name, mean FROM metric ORDER BY id").fetchall()
    # 2,000 in each thread
    equal([mean for name, mean in rows if name == "queries"], [2000, 4000], "queries")
    equal([mean for name, mean in rows if name == "other"], [0, 0], "a probe that is not there")


@test
def a_gain_is_of_fresh_runs():
    "on a machine that gets slower and slower, the gain is that of fresh runs in turns, and not of those that chose it"
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command>n=$(cat n || echo 0); echo $((n + 1)) >n; awk -v n=$n 'BEGIN { print "v=" ({a} == 1 ? 10 : 8) * 1.05 ^ n }'</command>
  <metric name="v" match="v=([0-9.]+)"/>""", attributes='policy="grid" trials="2" race="1"')
    out = explore(folder, env, "run")[0]
    assert "in 6 fresh runs of each, in turns" in out, out
    told = json.loads(explore(folder, env, "best", "--json")[0])
    equal((told["configuration"], told["fresh_runs"]), ({"a": "2"}, 6), "what is called best, and the runs of its gain")
    assert told["gain_low"] < 0.2 < told["gain_high"] and told["gain_high"] - told["gain_low"] < 0.2, told
    with open(folder + "/n", encoding="utf-8") as count:
        made = count.read()
    explore(folder, env, "run")
    with open(folder + "/n", encoding="utf-8") as count:
        equal(count.read(), made, "runs of another exploration of what is known")
    with sqlite3.connect(folder + "/db") as db:
        equal(db.execute("SELECT treated, controls FROM validation").fetchall(), [(6, 6)], "rows of validations")


def interrupted(folder, env, at, how):
    """Explore, and end the explorer in the command's run number at."""
    with open(folder + "/at", "w", encoding="utf-8") as out:
        out.write(str(at))
    explorer = subprocess.Popen([PEM, "explore", "run", folder + "/e.xml"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while not os.path.exists(folder + "/in"):
        assert explorer.poll() is None, explorer.stderr.read()
        time.sleep(0.01)
    children = subprocess.run(["pgrep", "-P", str(explorer.pid)], stdout=subprocess.PIPE, check=False).stdout.split()
    os.kill(int(children[0]), how)
    explorer.communicate()
    os.remove(folder + "/in")
    os.remove(folder + "/at")


@test
def an_interrupted_comparison_goes_on():
    "^C or kill -9 among a gain's fresh runs: the next exploration makes the missing runs, or all if others ran since; a second ^C loses none"
    body = """  <parameter name="a" values="1 2" default="1"/>
  <command>echo >>n; if test $(wc -l &lt;n) = "$(cat at)"; then : >in; sleep 987661; fi; echo v=$((12 - {a}))</command>
  <metric name="v" match="v=([0-9]+)"/>"""
    folder, env = experiment(body, attributes='policy="grid" trials="2" race="2"')
    explore(folder, env, "run")
    whole, gain = runs(folder)[0], json.loads(explore(folder, env, "best", "--json")[0])
    for how, more in ((signal.SIGINT, 0), (signal.SIGKILL, 0), (signal.SIGINT, 3)):
        folder, env = experiment(body, attributes='policy="grid" trials="2" race="2"')
        interrupted(folder, env, 9, how)
        equal(runs(folder)[0] - (how == signal.SIGKILL), 8, "runs before %s" % how)
        if more:
            explore(folder, env, "reproduce", "--trial", "1")
            interrupted(folder, env, 9 + more + 6, how)
            equal(runs(folder)[0], 8 + more + 5, "runs before the second %s" % how)
        explore(folder, env, "run")
        equal(runs(folder)[0], 8 + more + 12 if more else whole, "runs of both")
        told = json.loads(explore(folder, env, "best", "--json")[0])
        equal((told["gain"], told["fresh_runs"]), (gain["gain"], 6), "gain")


@test
def a_rate_gains_what_it_rises():
    "the gain of a rate in fresh runs is how much higher it is, and a document without races makes none"
    body = """  <parameter name="a" values="1 2" default="1"/>
  <command>echo "v=$(({a} == 1 ? 80 : 100))"; echo >>n</command>
  <metric name="v" match="v=([0-9.]+)" better="more"/>"""
    folder, env = experiment(body, attributes='policy="grid" trials="2" race="1"')
    explore(folder, env, "run")
    told = json.loads(explore(folder, env, "best", "--json")[0])
    equal((round(told["gain"], 6), round(told["gain_low"], 3), round(told["gain_high"], 3)), (0.25, 0.25, 0.25), "gain")
    folder, env = experiment(body, attributes='policy="grid" trials="2" race="0"')
    assert "fresh" not in explore(folder, env, "run")[0], "a document without races"
    with open(folder + "/n", encoding="utf-8") as made:
        equal(len(made.readlines()), 2, "runs")


@test
def a_gain_is_over_the_defaults_of_the_document():
    "after the defaults of a document changed, the gain is not the one over the earlier ones"
    body = """  <parameter name="a" values="1 2 3" default="1"/>
  <command>echo "v=$((120 / {a}))"</command>
  <metric name="v" match="v=([0-9.]+)"/>"""
    folder, env = experiment(body, attributes='policy="grid" trials="3" race="1"')
    explore(folder, env, "run")
    gains = [round(json.loads(explore(folder, env, "best", "--json")[0]).get("gain", -1), 3)]
    for default in ('default="2"', 'default="3"', ""):
        with open(folder + "/e.xml", "w", encoding="utf-8") as out:
            out.write(HEAD % ("e", 'policy="grid" trials="3" race="1"') + body.replace('default="1"', default) + "\n</exploration>\n")
        out = explore(folder, env, "best")[0]
        gains.append(round(json.loads(explore(folder, env, "best", "--json")[0]).get("gain", -1), 3))
        assert "fresh" not in out, out
    equal(gains, [0.667, 0.333, 0, -1], "gains over 1, 2, 3 and nothing")


@test
def a_validation_that_cannot_be_made_is_not_made_again():
    "values of 0 have no ratio, and time that is over leaves none: no fresh runs are made, whatever is asked again"
    body = """  <parameter name="a" values="1 2" default="1"/>
  <command>echo >>n; sleep 0.05; echo "v=$((2 - {a}))"</command>
  <metric name="v" match="v=([0-9.]+)"/>"""
    for more in ("", ' time="0.01s"'):
        folder, env = experiment(body.replace("2 - {a}", "3 - {a}") if more else body, attributes='policy="grid" trials="2" race="1"' + more)
        for _ in range(4):
            assert "fresh" not in explore(folder, env, "run")[0], more
        with open(folder + "/n", encoding="utf-8") as made:
            assert len(made.readlines()) <= 6, more


run_all()
