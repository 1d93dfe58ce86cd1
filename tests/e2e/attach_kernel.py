# SPDX-License-Identifier: MIT
"""attach_kernel: kernel events of programs that run already, which raise none themselves: whose they are, and their names"""
import json
import os
import shutil
import signal
import subprocess
import time

from attached import Asked, Observer, Recorder
from probe_trace import program
from probing import here
from tap import PEM, equal, run, run_all, skip, start, test, tmp

READ = "OS::Syscall::Enter"
# Reads without an end, a few hundred times a second.
LOOP = ["sh", "-c", "while read line; do :; done"]


class Reader:
    """A program without libpem that makes a system call for each byte of the lines that it is sent."""

    def __init__(self, command=None):
        self.child = start(command or LOOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.pid = self.child.pid

    def named(name, folder=None):
        """One whose program has this name."""
        path = os.path.join(folder or tmp(), name)
        if not os.path.exists(path):
            shutil.copy(os.path.realpath("/bin/sh"), path)
        return Reader([path, "-c", "while read line; do echo; done"])

    def read(self, lines=50):
        self.child.stdin.write("one line of them\n" * lines)
        self.child.stdin.flush()

    def answer(self, lines=50):
        for _ in range(lines):
            self.child.stdin.write("line\n")
            self.child.stdout.readline()

    def end(self):
        self.child.stdin.close()
        self.child.wait()


@test
def several_by_number():
    "the kernel's events of each process named are there, under its name"
    here()
    readers = [Reader.named(name) for name in ("pemfirst", "pemsecond", "pemthird")]
    recorder = Recorder("-p", ",".join(str(r.pid) for r in readers))
    for r in readers:
        r.answer()
    found = recorder.end()
    for r, name in zip(readers, ("pemfirst", "pemsecond", "pemthird")):
        equal(found[r.pid]["name"], name, "name")
        assert found[r.pid]["count"] > 50, found[r.pid]
        r.end()


@test
def children_that_run_already():
    "what a process has started before it was attached to is observed, too; with --no-follow it is not"
    here()
    name = os.path.join(tmp(), "pemchild")
    shutil.copy(os.path.realpath("/bin/sh"), name)
    parent = Reader(["sh", "-c", "exec 3<&0; %s -c 'echo $$; while read line; do echo; done' <&3 & wait" % name])
    pid = int(parent.child.stdout.readline())
    recorder = Recorder("-p", str(parent.pid))
    parent.answer()
    found = recorder.end()
    equal(found[pid]["name"], "pemchild", "name")
    assert found[pid]["count"] > 50, found
    recorder = Recorder("-p", str(parent.pid), "--no-follow")
    parent.answer()
    equal(recorder.end().get(pid, {"count": 0})["count"], 0, "events of the child, not followed")
    parent.end()


@test
def programs_by_name():
    "--program observes the kernel's events of programs that are there, and of one that comes, and of no others"
    here()
    other, first = Reader.named("pemother"), Reader.named("pemnamed")
    recorder = Recorder("--program", "pemnamed")
    first.answer()
    second = Reader.named("pemnamed")
    other.answer()
    while not is_recorded(recorder, second.pid):  # it is found within a second
        second.answer(200)
    second.answer()
    found = recorder.end()
    equal(found[first.pid]["name"], "pemnamed", "name of the first")
    equal(found[second.pid]["name"], "pemnamed", "name of the second")
    assert found[first.pid]["count"] > 50 and found[second.pid]["count"] > 50, found
    assert other.pid not in found or not found[other.pid]["count"], found
    for r in (other, first, second):
        r.end()


def is_recorded(recorder, pid):
    """Are events of a process in the trace so far? A switch to it, of a CPU that another one had, is none of its own."""
    rc, out, _ = run([PEM, "report", "--json", recorder.trace])
    return rc in (0, 4) and any(p["count"] for p in json.loads(out)["processes"] if p["pid"] == pid)


@test
def all_have_names():
    "record -a of root knows what the processes are called that ran before"
    here()
    if os.geteuid():
        skip("the whole machine is root's")
    reader = Reader.named("pemearly")
    recorder = Recorder("-a")
    reader.answer()
    found = recorder.end()
    equal(found[reader.pid]["name"], "pemearly", "name")
    nameless = [pid for pid, p in found.items() if pid and not p["name"] and os.path.exists("/proc/%s" % pid)]
    equal(nameless, [], "processes that were there before, and have no name")
    reader.end()


@test
def all_while_a_command_runs():
    "record -a with a command takes the whole machine as long as that runs, has its status, and is not of it alone"
    here()
    if os.geteuid():
        skip("the whole machine is root's")
    around = os.path.join(tmp(), "pemaround")
    shutil.copy(os.path.realpath("/bin/sh"), around)
    child = start([around, "-c", "while :; do echo; done >/dev/null"])
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-a", "-e", READ, "-o", trace, "--", "sh", "-c", "cat /dev/null; exit 7"])
    equal(rc, 7, "status of record: " + err)
    assert "no program that raises" not in err, err
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report: " + err)
    told = json.loads(out)
    kinds = [cost["kind"] for cost in told["cost"]["kinds"]]
    equal(len(kinds), len(set(kinds)), "kinds of cost, each once (%r)" % kinds)
    assert {"sh", "cat", "pemaround"} <= {p["name"] for p in told["processes"]}, told["processes"]
    child.kill()
    child.wait()


@test
def what_is_not_observed_is_not_promised():
    "a program without libpem is named; its kernel events are said to be observed only if they are"
    reader = Reader.named("pemquiet")
    recorder = Recorder("-p", str(reader.pid), events="APP::Libc::Malloc")
    assert any("raises no application events" in line for line in recorder.said), recorder.said
    assert not any("kernel events are observed" in line for line in recorder.said), recorder.said
    recorder.end()
    here()
    recorder = Recorder("-p", str(reader.pid))
    recorder.end()
    assert any("its kernel events are observed" in line for line in recorder.said), recorder.said
    reader.end()


@test
def newcomer_that_raises_events():
    "a newcomer of a program is observed in the kernel soon after its own first event, and that its beginning lacks is said"
    here()
    folder = tmp()
    own_name = os.path.join(folder, "late-%d" % os.getpid())  # there are others called 'asked'
    shutil.copy(program("asked")[0], own_name)
    first = Asked(folder, command=[own_name])
    observer = Observer(first, "record", "--program", os.path.basename(own_name), "-e", READ)
    newcomers = []
    for _ in range(3):  # each gone before the next look around
        newcomer = Asked(folder, command=[own_name])
        for _ in range(20):
            newcomer.ask("tick 1")
            time.sleep(0.02)
        newcomer.end()
        newcomers.append(newcomer.pid)
    observer.end()
    rc, out, err = run([PEM, "report", "--json", observer.trace])
    equal(rc, 0, "status of report: " + err)
    told = json.loads(out)
    own = {p["pid"]: p["layers"]["OS"] for p in told["processes"]}
    assert all(own.get(pid) for pid in newcomers), (newcomers, own)
    gaps = [gap["reason"] for gap in told["gaps"] if "3 processes were found after they had started" in gap["reason"]]
    equal(len(gaps), 1, "gaps (%r)" % told["gaps"])


run_all()
