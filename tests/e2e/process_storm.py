# SPDX-License-Identifier: MIT
"""
process_storm.py - programs that do much at once, and what stops in the middle of it (tests/programs/storm.c)

Not here: for ten minutes (tests/stress/soak.py), with somebody killed (tests/stress/kill_either_side.py).
"""
import os
import re
import signal
import time

from probe_trace import PROGRAMS, program, record_command, report
from tap import equal, run, run_all, start, test, tmp

LONG_S = 8

LIBRARY = os.path.join(PROGRAMS, "library.so")


def storm(ms, letters, *options, runtime=None):
    """Record a storm to its end: (trace, what it says of itself); its books balance."""
    folder = tmp()
    rc, out, err = run(record_command(folder, program("storm", ms, letters, LIBRARY), *options),
                       env={"PEM_RUNTIME_DIR": runtime or os.path.join(folder, "runtime")}, timeout=100)
    equal(rc, 0, "status (stderr: %s)" % err)
    events = balance(folder + "/trace")
    return events, {what: int(count) for what, count in re.findall(r"(\w+) (\d+)", out)}


def balance(trace):
    events = report(trace)["events"]
    equal(events["produced"], events["delivered"] + events["discarded"] + events["overwritten"], "balance of %r" % events)
    assert events["delivered"], "%r" % events
    return events


@test
def cancelled_threads():
    "threads that are cancelled in the middle of events, at once or later, harm nothing and are accounted for"
    _, said = storm(600, "ccp")
    assert said["threads"] > 20, said


@test
def threads_children_signals_and_libraries_at_once():
    "threads, children of every kind, handlers three deep and a library that comes and goes balance together"
    _, said = storm(800, "ttcfsl")
    assert said["children"] and said["libraries"] and said["threads"], said


@test
def a_flight_recorder_of_it():
    "the same in a pool that overwrites"
    events, _ = storm(600, "ttcfslp", "--overwrite", "--buffer", "64K")
    assert events["overwritten"], events


@test
def handlers_deeper_than_lanes():
    "events of handlers more than three deep are counted as discarded"
    events, _ = storm(600, "tsp", "--buffer", "64M")
    assert events["produced"] > 1000, events


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as text:
        return [int(child) for child in text.read().split()]


def executable(pid):
    """The name of what a process runs; none if it is gone."""
    try:
        return os.path.basename(os.readlink("/proc/%d/exe" % pid))
    except OSError:
        return None


def recording(letters, *options, ms=0):
    """A recorder of a storm, of one without an end if nothing else is said: (recorder, the storm's process, folder)."""
    folder = tmp()
    recorder = start(record_command(folder, program("storm", ms, letters, LIBRARY), *options),
                     env={"PEM_RUNTIME_DIR": os.path.join(folder, "runtime")})
    for _ in range(60000):
        for child in children_of(recorder.pid):
            if executable(child) == "storm":
                time.sleep(0.1)
                return recorder, child, folder
        time.sleep(0.01)
    raise AssertionError("the storm did not begin")


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as text:
        return text.read().rsplit(")", 1)[1].split()[0]


@test
def stopped_program():
    "a stopped program keeps nobody waiting: its recorder ends when told to, and the trace balances"
    recorder, child, folder = recording("tts")
    os.kill(child, signal.SIGSTOP)
    time.sleep(0.2)
    recorder.send_signal(signal.SIGINT)
    recorder.send_signal(signal.SIGINT)
    time.sleep(0.2)
    recorder.send_signal(signal.SIGINT)
    equal(recorder.wait(20) in (0, 130), True, "status %r" % recorder.returncode)
    balance(folder + "/trace")
    os.kill(child, signal.SIGKILL)


@test
def stopped_recorder():
    "a program whose recorder is stopped goes on, and what finds no room meanwhile is counted"
    recorder, child, folder = recording("ttp", "--buffer", "64K", ms=1500)
    recorder.send_signal(signal.SIGSTOP)
    for _ in range(6000):
        time.sleep(0.1)
        if state(child) == "Z":
            break
    else:
        raise AssertionError("the program did not come to its end beside a stopped recorder")
    recorder.send_signal(signal.SIGCONT)
    equal(recorder.wait(20), 0, "status")
    assert balance(folder + "/trace")["discarded"], "nothing was lost"


@test
def no_pools_for_the_dead():
    "processes that begin after their recorder was killed leave nothing in shared memory"
    recorder, child, folder = recording("f")
    recorder.kill()
    recorder.wait()
    runtime = os.path.join(folder, "runtime")
    time.sleep(0.1)
    before = pools(runtime)
    time.sleep(0.5)
    equal(len(pools(runtime) - before), 0, "pools made since")
    os.kill(child, signal.SIGKILL)


def pools(runtime):
    return {name for _, _, names in os.walk(runtime) for name in names if name.startswith("pool-")}


run_all()
