# SPDX-License-Identifier: MIT
"""
attach.py - observing programs that run already: attach, detach, attach again, several at once
"""
import os
import subprocess

from attached import Asked, Observer, environment, numbers
from probe_trace import EVENT, check_balance
from tap import PEM, equal, run, run_all, test, tmp


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
