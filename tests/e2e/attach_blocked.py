# SPDX-License-Identifier: MIT
"""attach_blocked: what threads did before a recording of them began: who was blocked all the time, in what, held by whom"""
import csv
import json
import os
import subprocess

from attached import Recorder
from probe_trace import program
from probing import here
from tap import PEM, equal, run, run_all, skip, start, test

DEFAULT = "app,os,hw"
CALL = "OS::Syscall "


class Blocked:
    """A program whose threads wait for known things: their numbers, by what they do."""

    def __init__(self):
        self.child = start(program("blocked"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.pid = self.child.pid
        self.tids = {"reads": self.pid}
        for line in iter(self.child.stdout.readline, "ready\n"):
            assert line, "the program ended"
            name, tid = line.split()
            self.tids[name] = int(tid)

    def read(self, count):
        for _ in range(count):
            self.child.stdin.write("x")
            self.child.stdin.flush()
            equal(self.child.stdout.readline(), "byte\n", "what the program answers")

    def run_ns(self, name):
        """How long a thread has had a CPU, and waited for one, by the scheduler's account."""
        with open("/proc/%d/task/%d/schedstat" % (self.pid, self.tids[name]), encoding="ascii") as text:
            return [int(word) for word in text.read().split()[:2]]

    def end(self):
        self.child.stdin.close()
        equal(self.child.wait(), 0, "status of the program")


def recorded(*options, events=DEFAULT, reads=0, between=None):
    """The program recorded from a while after its threads wait on, and the report."""
    here()
    blocked = Blocked()
    recorder = Recorder(*(options or ("-p", str(blocked.pid))), events=events)
    blocked.read(reads)
    if between:
        between(blocked)
    recorder.end()
    blocked.end()
    rc, out, err = run([PEM, "report", "--json", recorder.trace])
    equal(rc, 0, "status of report: " + err)
    return blocked, json.loads(out), recorder.trace


def waits_of(blocked, report, name):
    return [w for w in report["waits"] if w["tid"] == blocked.tids[name] and w["pid"] == blocked.pid]


def one_wait(blocked, report, name):
    """The only wait of a thread that is blocked all the time."""
    found = waits_of(blocked, report, name)
    equal(len(found), 1, "rows of %s: %s" % (name, found))
    equal(found[0]["count"], 1, "waits of " + name)
    state, = [s for s in report["thread_states"] if s["tid"] == blocked.tids[name]]
    equal((state["running_ns"], state["runnable_ns"]), (0, 0), "time of %s on and for a CPU" % name)
    equal(state["blocked_ns"], found[0]["total_ns"], "time that %s was blocked" % name)
    return found[0]


def check_deadlock(blocked, report):
    for name, other, lock in ("first", "second", "second+0x8 (blocked)"), ("second", "first", "first (blocked)"):
        wait = one_wait(blocked, report, name)
        equal((wait["interval"], wait["waits_on"]), (CALL + "futex", lock), "where %s waits" % name)
        equal((wait["holder_pid"], wait["holder_tid"]), (blocked.pid, blocked.tids[other]), "holder")


@test
def a_deadlock():
    "two threads that wait for each other all the time are in the tables: both in futex, on which variable, held by whom"
    blocked, report, trace = recorded()
    check_deadlock(blocked, report)
    text = run([PEM, "report", "--by", "wait", trace])[1]
    words = "second+0x8 (blocked), held by blocked %d" % blocked.tids["second"]
    assert any(words in line and str(blocked.tids["first"]) in line for line in text.splitlines()), text


@test
def a_deadlock_in_a_recording_of_all():
    "with -a as well"
    if os.geteuid():
        skip("only root observes all processes")
    # All processes of a busy machine may raise more than the recorder takes. After a loss it is unknown what threads do.
    for _ in range(10):
        blocked, report, _ = recorded("-a", events="OS::Sched,OS::Syscall::Enter,OS::Syscall::Exit")
        if not report["events"]["discarded"]:
            check_deadlock(blocked, report)
            return
    skip("ten recordings of this machine lost records")


@test
def owners_in_the_word_of_a_mutex():
    "mutexes with priority inheritance and robust ones, whose owner the kernel knows, name their holder"
    blocked, report, _ = recorded()
    for name, lock in ("inherits", "inherited (blocked)"), ("robust", "robust (blocked)"):
        wait = one_wait(blocked, report, name)
        equal((wait["waits_on"], wait["holder_tid"]), (lock, blocked.tids["first"]), name)


@test
def the_end_of_a_thread():
    "a thread that joins another one waits for its end, and nobody holds that"
    blocked, report, _ = recorded()
    wait = one_wait(blocked, report, "joins")
    equal((wait["waits_on"], wait.get("holder_tid")), ("end of thread %d" % blocked.tids["first"], None), "joins")


@test
def a_program_that_goes_on():
    "what has not ended waits for none of its idle threads: it has no critical path, and the report tells why"
    blocked, report, trace = recorded()
    equal(report["critical_path"]["rows"], [], "rows of the path")
    assert not any("waited" in part.split(",")[0] for part in [report["info"].get("mostly", "")]), report["info"]
    assert "the trace has no end of blocked" in " ".join(run([PEM, "report", "--by", "path", trace])[1].split())


@test
def the_time_begins_when_the_kernels_source_does():
    "the time that the kernel takes to load programs is not the recording's: what was seen of threads before is at its begin"
    blocked, _, trace = recorded()
    rc, out, err = run([PEM, "export", "--to", "csv", trace, "-o", "-"])
    equal(rc, 0, "status of export: " + err)
    rows = [row for row in csv.DictReader(out.splitlines()) if row["event"] == "OS::Process::ThreadState"]
    equal(min(int(row["time_ns"]) for row in rows if row["tid"] == str(blocked.tids["first"])), 0, "when it was seen first")


@test
def a_thread_that_sleeps():
    "a thread that waits for a signal all the time is blocked in that call, on nothing"
    blocked, report, _ = recorded()
    wait = one_wait(blocked, report, "sleeps")
    equal((wait["interval"], wait.get("waits_on")), (CALL + "pause", None), "sleeps")


@test
def no_calls_without_their_ends():
    "a recording of switches alone has the threads' states, and no system calls, since it would not see their ends"
    blocked, report, _ = recorded(events="OS::Sched::Switch,OS::Sched::Wakeup")
    wait = one_wait(blocked, report, "first")
    equal((wait.get("interval"), wait["holder_tid"]), (None, blocked.tids["second"]), "first")
    assert not [i for i in report["intervals"] if i["interval"].startswith("OS::Syscall")], report["intervals"]


@test
def beside_the_scheduler():
    "a thread that runs as the recording begins has all its time on a CPU, and for one, as the scheduler counts it"
    inner = []

    def work(blocked):
        before, until = blocked.run_ns("spins"), 0
        while until < 300_000_000:
            after = blocked.run_ns("spins")
            until = sum(after) - sum(before)
        inner.append(sum(after) - sum(before))
    here()
    blocked = Blocked()
    first = blocked.run_ns("spins")
    recorder = Recorder("-p", str(blocked.pid), events="OS::Sched::Switch,OS::Sched::Wakeup,OS::Syscall")
    work(blocked)
    recorder.end()
    outer = sum(blocked.run_ns("spins")) - sum(first)
    blocked.end()
    state, = [s for s in json.loads(run([PEM, "report", "--json", recorder.trace])[1])["thread_states"]
              if s["tid"] == blocked.tids["spins"]]
    told, slack = state["running_ns"] + state["runnable_ns"], 20_000_000  # the scheduler counts in ticks
    equal(state["blocked_ns"], 0, "time blocked")
    assert inner[0] - slack <= told <= outer + slack, (inner, told, outer)


run_all()
