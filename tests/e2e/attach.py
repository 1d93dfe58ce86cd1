# SPDX-License-Identifier: MIT
"""
attach.py - observing programs that run already: attach, detach, attach again, several at once, what they start
"""
import json
import os
import signal
import subprocess
import time

from probe_trace import EVENT, check_balance, program, ticks
from tap import BUILD, PEM, ROOT, SAN, equal, run, run_all, skip, start, test, tmp

SPEC = os.path.join(ROOT, "tests", "programs", "probe.xml")
LIBPEM = os.path.join(BUILD, "lib", "libpem.so.1")


class Asked:
    """A program with libpem that does what it is asked to."""

    def __init__(self, folder, **env):
        if SAN:
            skip("a sanitizer's runtime must come before every preloaded library; run without SAN=1")
        self.runtime = os.path.join(folder, "runtime")
        env = dict({"PEM_RUNTIME_DIR": self.runtime, "LD_PRELOAD": LIBPEM, "PEM_SESSION": None}, **env)
        self.child = start(program("asked"), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                           bufsize=1)
        self.pid = self.child.pid
        self._until_ready()

    def _until_ready(self):
        lines = []
        for line in self.child.stdout:
            if line == "ready\n":
                return lines
            lines.append(tuple(map(int, line.split())))
        raise AssertionError("the program ended")

    def ask(self, what):
        """What was told: (pid, tid, who, count) of each raiser."""
        self.child.stdin.write(what + "\n")
        return self._until_ready()

    def end(self):
        self.child.stdin.close()
        self.child.wait()
        self.child.stdout.close()


class Observer:
    """pem record or stat, attached."""

    def __init__(self, asked, verb, *options):
        self.folder = tmp()
        self.trace = os.path.join(self.folder, "trace")
        self.verb = verb
        more = ["--no-libc", "-o", self.trace] if verb == "record" else ["--json"]
        self.child = start([PEM, verb, "-q", "-e", EVENT, *more, *options], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=environment(asked))
        self._wait_for_entry(asked)

    def _wait_for_entry(self, asked):
        """It is attached when an entry of the process's table names it."""
        sessions = lambda: [name for name in os.listdir(asked.runtime) if name.startswith("session-%d-" % self.child.pid)]
        for _ in range(5000):
            found = sessions()
            if self.child.poll() is not None:
                return
            if found and any(found[0].encode() in table(asked, name) for name in control_files(asked)):
                return
            time.sleep(0.002)
        raise AssertionError("%s did not attach" % self.verb)

    def end(self):
        """Interrupt it: (status, standard error)."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
        self.out, err = self.child.communicate()
        equal(self.child.returncode, 0, "status (stderr: %s)" % err.decode())
        return err.decode()

    def count(self):
        self.end()
        event, = [e for e in json.loads(self.out)["events"] if e["name"] == EVENT]
        return event["count"]

    def ticks(self):
        self.end()
        return ticks(self.trace)


def environment(asked):
    return {"PEM_RUNTIME_DIR": asked.runtime, "PEM_SPEC_PATH": SPEC}


def control_files(asked):
    return [name for name in os.listdir(asked.runtime) if name.startswith("control-")]


def table(asked, name):
    """The head of a control file, with its table of sessions."""
    try:
        with open(os.path.join(asked.runtime, name), "rb") as file:
            return file.read(4096)
    except FileNotFoundError:
        return b""


def numbers(found, pid):
    """The ticks of a process's raisers together."""
    return sorted(n for raiser, some in found.items() if raiser[0] == pid for n in some)


@test
def record_a_running_process():
    "record -p has every event of a process from attaching to detaching, and none before or after"
    asked = Asked(tmp())
    asked.ask("tick 5")
    observer = Observer(asked, "record", "-p", str(asked.pid))
    asked.ask("tick 7")
    found = observer.ticks()
    asked.ask("tick 3")
    equal(numbers(found, asked.pid), list(range(6, 13)), "ticks")
    check_balance(observer.trace, 7)


@test
def nothing_raised_yet():
    "a process that has raised nothing yet is observed from its first event on"
    asked = Asked(tmp())
    observer = Observer(asked, "record", "-p", str(asked.pid))
    asked.ask("tick 4")
    equal(numbers(observer.ticks(), asked.pid), [1, 2, 3, 4], "ticks")


@test
def attach_again():
    "attach and detach, again and again: each sees what came while it was there"
    asked = Asked(tmp())
    for i in range(1, 13):
        observer = Observer(asked, "stat", "-p", str(asked.pid))
        asked.ask("tick %d" % i)
        equal(observer.count(), i, "count of attachment %d" % i)
        asked.ask("tick 100")
    equal([name for name in os.listdir(asked.runtime) if name.startswith("session-")], [], "left in shared memory")


@test
def two_at_once():
    "two consumers of one process each have all of its events, and neither's end disturbs the other"
    asked = Asked(tmp())
    first = Observer(asked, "record", "-p", str(asked.pid))
    asked.ask("tick 10")
    second = Observer(asked, "stat", "-p", str(asked.pid))
    asked.ask("tick 10")
    equal(second.count(), 10, "the second's count")
    asked.ask("tick 10")
    equal(numbers(first.ticks(), asked.pid), list(range(1, 31)), "the first's ticks")


@test
def nine_at_once():
    "eight consumers observe a process at once; the ninth is told so"
    asked = Asked(tmp())
    observers = [Observer(asked, "stat", "-p", str(asked.pid)) for _ in range(8)]
    rc, _, err = run([PEM, "stat", "-e", EVENT, "-p", str(asked.pid)], env=environment(asked))
    equal(rc, 2, "status of the ninth")
    assert "eight sessions observe process %d already" % asked.pid in err, err
    asked.ask("tick 6")
    equal([o.count() for o in observers], [6] * 8, "counts")


@test
def ends_with_the_process():
    "an observation ends with the process that it is of"
    asked = Asked(tmp())
    observer = Observer(asked, "record", "-p", str(asked.pid))
    asked.ask("tick 2")
    asked.end()
    equal(observer.child.wait(20), 0, "status")
    equal(numbers(observer.ticks(), asked.pid), [1, 2], "ticks")


@test
def no_such_process():
    "attaching to a process that is not there is wrong input, and said"
    pid = subprocess.Popen(["true"])
    pid.wait()
    rc, _, err = run([PEM, "record", "-o", tmp() + "/t", "-p", str(pid.pid)])
    equal(rc, 1, "status")
    assert "there is no process %d" % pid.pid in err, err


run_all()
