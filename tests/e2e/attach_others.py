# SPDX-License-Identifier: MIT
"""
attach_others.py - what an attached process starts, and processes that come later: followed or not, by name, all of them
"""
import glob
import os
import re
import signal
import subprocess
import time

from attached import Asked, Observer, environment, numbers
from patience import HANG_S, Patience
from probe_trace import check_balance, program
from tap import PEM, equal, run, run_all, start, test, tmp


def follow(how, *options):
    """A process that is attached to starts another: (its own ticks, the other's) that were recorded."""
    asked = Asked(tmp())
    observer = Observer(asked, "record", "-p", str(asked.pid), *options)
    asked.ask("tick 3")
    (pid, _, _, count), = asked.ask(how + " 20") if how != "daemon" else daemon(asked)
    assert pid != asked.pid and count == 20, (pid, count)
    asked.ask("tick 3")
    found = observer.ticks()
    own = numbers(found, asked.pid)
    equal(own, list(range(1, 7)), "ticks of the process attached to")
    others = [n for raiser, some in found.items() if raiser[0] != asked.pid for n in some]
    check_balance(observer.trace, 6 + len(others))
    return others


def daemon(asked):
    """It tells some time after it was asked for."""
    told = asked.ask("daemon 20")
    while not told:
        time.sleep(0.01)
        told = asked.ask("tick 0")
        told = [t for t in told if t[3]]
    return told


@test
def follows_fork():
    "what a child of fork raises is recorded from its first event on"
    equal(len(follow("fork")), 20, "ticks of the child")


@test
def follows_spawn():
    "so is what a program raises that was started by posix_spawn"
    equal(len(follow("spawn")), 20, "ticks of the program")


@test
def follows_vfork():
    "or by vfork and exec"
    equal(len(follow("vfork")), 20, "ticks of the program")


@test
def follows_daemon():
    "and by a daemon whose parents are gone"
    equal(len(follow("daemon")), 20, "ticks of the daemon")


@test
def follows_no_fork():
    "with --no-follow a child of fork is not recorded"
    equal(follow("fork", "--no-follow"), [], "ticks of the child")


@test
def follows_no_spawn():
    "nor is a program that was started by posix_spawn"
    equal(follow("spawn", "--no-follow"), [], "ticks of the program")


@test
def goes_on_after_exec():
    "a process stays observed when it becomes another program"
    asked = Asked(tmp())
    observer = Observer(asked, "record", "-p", str(asked.pid), "--no-follow")
    asked.ask("tick 4")
    asked.ask("exec")
    asked.ask("tick 5")
    equal(numbers(observer.ticks(), asked.pid), [1, 1, 2, 2, 3, 3, 4, 4, 5], "ticks of both images")
    check_balance(observer.trace, 9)


@test
def run_alone():
    "record --no-follow of a command leaves out what it starts"
    folder = tmp()
    rc, out, err = run([PEM, "record", "-q", "--no-libc", "--no-follow", "-e", "APP", "-o", folder + "/trace", "--"] +
                       program("processes", "spawn", 50), env={"PEM_RUNTIME_DIR": folder + "/runtime"})
    equal(rc, 0, "status (stderr: %s)" % err)
    check_balance(folder + "/trace", 100)


def newcomer(*options, attached=False):
    """Somebody waits; a program comes, raises, and is gone at once: its ticks that were recorded."""
    first = Asked(tmp())
    observer = Observer(first, "record", *options, *(["-p", str(first.pid)] if attached else []))
    rc, out, err = run(program("asked", 30), env=dict(first.env))
    equal(rc, 0, "status of the newcomer")
    pid = int(out.split()[0])
    found = observer.ticks()
    return numbers(found, pid)


@test
def newcomer_of_all():
    "record -a has the events of a program that comes later from its first one on"
    equal(newcomer("-a"), list(range(1, 31)), "ticks of the newcomer")


@test
def newcomer_by_name():
    "so has record --program, of a program of that name"
    equal(newcomer("--program", "asked"), list(range(1, 31)), "ticks of the newcomer")


@test
def others_by_name():
    "but not of one with another"
    equal(newcomer("--program", "nobody", attached=True), [], "ticks of the newcomer")


@test
def ends_by_interrupt():
    "SIGINT ends a recording that a script's '&' started, where it is ignored"
    asked = Asked(tmp())
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        observer = Observer(asked, "record", "-p", str(asked.pid))
    finally:
        signal.signal(signal.SIGINT, before)
    asked.ask("tick 3")
    equal(numbers(observer.ticks(), asked.pid), [1, 2, 3], "ticks")


@test
def ends_by_an_early_interrupt():
    "so does a SIGINT that comes while pem still prepares to observe, for each verb that attaches"
    asked = Asked(tmp())
    for verb in ("record", "-o", tmp() + "/trace"), ("stat",), ("top", "--once"):
        place = tmp()
        child = start([PEM, *verb, "-p", str(asked.pid)], env={"PEM_RUNTIME_DIR": place}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        patience = Patience(child.pid, 60)
        while not glob.glob(place + "/session-*"):
            assert child.poll() is None and not patience.spent(), "no session of %s" % verb[0]
        with open("/proc/%d/status" % child.pid, encoding="ascii") as status:
            ignored = int(re.search(r"SigIgn:\s*(\w+)", status.read()).group(1), 16)
        equal(ignored >> (signal.SIGINT - 1) & 1, 0, "SIGINT of %s ignored as its session begins" % verb[0])
        child.send_signal(signal.SIGINT)
        child.wait(HANG_S)


@test
def started_by_pem_run():
    "what pem run starts can be attached to"
    asked = Asked(tmp(), command=[PEM, "run", "-n", "--"] + program("asked"), LD_PRELOAD=None)
    observer = Observer(asked, "stat", "-p", str(asked.pid))
    asked.ask("tick 11")
    equal(observer.count(), 11, "count")


@test
def not_started_with_libpem():
    "what can't raise application events is said to, with what would help"
    child = start(["sleep", "100"], env={"LD_PRELOAD": None})
    rc, _, err = run(["timeout", "-s", "INT", "3", PEM, "stat", "-e", "APP", "-p", str(child.pid)],
                     env={"PEM_RUNTIME_DIR": tmp() + "/runtime"})
    assert "process %d (sleep) raises no application events" % child.pid in err, err
    assert "pem run -- sleep" in err, err


@test
def started_with_libpem_alone():
    "a program without the library that raises what is wanted is named, and not if it raises a part of it"
    asked = Asked(tmp(), command=[PEM, "run", "-n", "--"] + program("asked"), LD_PRELOAD=None)
    for when in "on standby", "observed before":
        for events, warned in ("Malloc", True), ("Malloc,Tick", False):
            child = start([PEM, "stat", "-e", events, "-p", str(asked.pid)], env=environment(asked), stderr=subprocess.PIPE, text=True)
            err = child.stderr.readline()
            child.send_signal(signal.SIGINT)
            err += child.communicate()[1]
            equal("process %d (asked) was started with libpem alone" % asked.pid in err, warned, "%s, %s: %s" % (when, events, err))
        asked.ask("tick 1")


@test
def says_what_it_watches():
    "pem stat -p says what it counts and how it ends, and with -q nothing"
    asked = Asked(tmp())
    for options in [], ["-q"]:
        _, _, err = run(["timeout", "-s", "INT", "0.5", PEM, "stat", "--json", "-e", "APP", "-p", str(asked.pid), *options],
                        env={"PEM_RUNTIME_DIR": asked.runtime})
        equal("until it ends or you interrupt" in err, not options, "said with %r: %s" % (options, err))


@test
def a_command_and_what_runs():
    "a command beside what runs already is wrong usage"
    for verb in "record", "stat":
        rc, _, err = run([PEM, verb, "-p", str(os.getpid()), "--", "true"], cwd=tmp())
        equal(rc, 1, "status of " + verb)
        assert "take one" in err, err


@test
def a_name_that_nobody_has():
    "--program of a name that nobody has names it"
    _, _, err = run(["timeout", "-s", "INT", "0.5", PEM, "stat", "-e", "APP", "--program", "nosuch"],
                    env={"PEM_RUNTIME_DIR": tmp() + "/runtime"})
    assert "no program named 'nosuch' that raises application events runs now" in err, err


run_all()
