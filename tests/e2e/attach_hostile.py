# SPDX-License-Identifier: MIT
"""
attach_hostile.py - a producer that truncates or scribbles over what it shares can't crash, stall or end a recording
"""
import glob
import os
import random
import time

from attached import Asked, Observer, numbers
from patience import HANG_S
from probe_trace import check_balance, ticks
from tap import PEM, equal, run, run_all, test, tmp


def shared(asked, pattern, seconds=HANG_S):
    """A file of the runtime folder, once it is there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = glob.glob(os.path.join(asked.runtime, pattern))
        if found:
            return found[0]
        time.sleep(0.005)
    raise AssertionError("no " + pattern)


def wait_until_mapped(observer, path):
    for _ in range(200 * HANG_S):
        with open("/proc/%d/maps" % observer.child.pid, encoding="utf-8") as maps:
            if os.path.basename(path) in maps.read():
                return
        time.sleep(0.005)
    raise AssertionError("%s is not mapped" % path)


def truncate(path, bytes):
    os.truncate(path, bytes)


def scribble(path, seed):
    """Random bytes over all that is there, some of them again and again."""
    words = random.Random(seed)
    size = min(os.path.getsize(path), 4 << 20)
    with open(path, "r+b", buffering=0) as file:
        for _ in range(400):
            file.seek(words.randrange(size) & ~7)
            file.write(words.choice([b"\xff" * 8, b"\0" * 8, words.randbytes(8), (1 << 40).to_bytes(8, "little")]) * 8)


def survive(pattern, damage, *arguments):
    """One process does damage to what it shares; the recording of another goes on, and is whole."""
    good = Asked(tmp())
    bad = Asked(os.path.dirname(good.runtime))
    observer = Observer(good, "record", "-p", "%d,%d" % (bad.pid, good.pid))
    observer.wait_for(good)
    bad.ask("tick 100")
    pool = shared(good, "session-*/pool-%d-*" % bad.pid)
    path = pool if pattern == "pool" else shared(good, "control-%d-*" % bad.pid)
    wait_until_mapped(observer, path)
    damage(path, *arguments)
    good.ask("tick 500")
    time.sleep(0.1)  # some scans
    try:
        bad.child.stdin.write("tick 1000\n")  # it may well end itself so
        time.sleep(0.05)
    except OSError:
        pass
    good.ask("tick 500")
    observer.end()
    rc, out, err = run([PEM, "report", "--json", observer.trace])
    assert rc in (0, 4), "status of report %d: %s" % (rc, err)
    found = numbers(ticks(observer.trace), good.pid)
    assert found == list(range(1, 1001)), "%d ticks of the other process" % len(found)


@test
def pool_truncated():
    "a pool truncated to nothing"
    survive("pool", truncate, 0)


@test
def pool_shrunk():
    "a pool that keeps its head only"
    survive("pool", truncate, 4096)


@test
def control_truncated():
    "a control file truncated to nothing"
    survive("control", truncate, 0)


@test
def control_shrunk():
    "a control file that keeps its head only"
    survive("control", truncate, 4096)


@test
def pool_scribbled():
    "random bytes over a pool"
    for seed in range(3):
        survive("pool", scribble, seed)


@test
def control_scribbled():
    "random bytes over a control file"
    for seed in range(3):
        survive("control", scribble, seed)


@test
def links_are_not_followed():
    "neither control files nor pools are read through a link"
    good = Asked(tmp())
    os.symlink(shared(good, "control-*"), os.path.join(good.runtime, "control-1-0"))
    observer = Observer(good, "record", "-a")
    good.ask("tick 5")
    check_balance(observer.trace, len(numbers(observer.ticks(), good.pid)))


@test
def consumer_killed():
    "a killed consumer's entry is taken by the next, nine times over; the program goes on"
    asked = Asked(tmp())
    for _ in range(9):
        observer = Observer(asked, "record", "-p", str(asked.pid))
        asked.ask("tick 10")
        observer.child.kill()
        observer.child.communicate()
    last = Observer(asked, "stat", "-p", str(asked.pid))
    asked.ask("tick 25")
    equal(last.count(), 25, "ticks")


run_all()
