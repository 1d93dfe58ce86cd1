#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
soak.py - everything at once for ten minutes: does every trace balance, and is memory bounded on all sides?

Use: tests/stress/soak.py (make soak). SOAK_S: seconds (600).

One program (tests/programs/storm.c: threads by the hundred thousand, cancelled threads, children of every kind, signal handlers in
the middle of events, a library that comes and goes) lives through all of it. A flight recorder is attached to it throughout, and
snapshots are taken; a consumer reads and resets statistics all the time; recorders and pem stat attach, detach, and attach
again; every eighth is killed. Prints what each side holds, and at the end what was done. Exit status 1: a command failed, a trace did not balance,
something grew, or somebody crashed.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.path.join(ROOT, os.environ.get("B") or "build"))
PEM = os.path.join(BUILD, "bin", "pem")
STORM = [os.path.join(BUILD, "programs", "storm"), "0", "ttcfsl", os.path.join(BUILD, "programs", "library.so")]
SOAK_S = float(os.environ.get("SOAK_S") or 600)
EVENT = "APP::Probe::Tick"

READER = """
import sys, pemapi
from pemapi._c import Error, lib
with pemapi.Session() as session:
    model = sys.argv[2].encode()
    if lib.pem_session__add_model(session._c(), model, len(model), b"probe.xml", Error()) < 0:
        sys.exit("the model of probe.xml is not taken")
    session.attach(pemapi.Context(pid=int(sys.argv[1]), follow=True))
    statistics = session.statistics(session.events("APP::Probe::Tick"), "number")
    statistics.enable()
    n = 0
    try:
        while True:
            n += 1
            session.poll(50)
            value = statistics.read()[0]
            if value.count and not value.min <= value.mean <= value.max:
                sys.exit("impossible: %r" % value)
            if n % 10 == 0:
                statistics.reset()
    except KeyboardInterrupt:
        pass
"""


def model_of_probe():
    """The model text of the program's events, as a program with them carries it."""
    return subprocess.run([os.path.join(BUILD, "bin", "pem-codegen"), "--models", os.path.join(ROOT, "tests", "programs", "probe.xml")],
                          check=True, stdout=subprocess.PIPE, text=True).stdout


class Soak:
    """What is going on, and what came of it."""

    def __init__(self, folder):
        self.folder = folder
        self.runtime = os.path.join(folder, "runtime")
        self.env = dict(os.environ, PEM_RUNTIME_DIR=self.runtime, PYTHONPATH=os.path.join(BUILD, "python"),
                        PEM_SPEC_PATH=os.path.join(ROOT, "tests", "programs"))
        self.end = time.monotonic() + SOAK_S
        self.done, self.wrong, self.total = {}, [], {}
        self.lock = threading.Lock()
        self.pids = {}
        self.early = 0  # interrupted before they could handle it: their sessions are left
        self.sides = {}

    def start(self, name, command, **more):
        """A side of the soak that is there throughout."""
        errors = open(os.path.join(self.folder, name + ".err"), "wb")
        child = subprocess.Popen(command, env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stderr=errors, **more)
        errors.close()
        self.sides[name] = child
        return child

    def note(self, what, wrong=None):
        with self.lock:
            self.done[what] = self.done.get(what, 0) + 1
            if wrong:
                self.wrong.append("%s: %s" % (what, wrong))
                print("WRONG " + self.wrong[-1], flush=True)

    def going_on(self):
        return time.monotonic() < self.end and len(self.wrong) < 20

    def check_trace(self, what, trace, add=True):
        done = subprocess.run([PEM, "report", "--json", trace], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        wrong = None
        if done.returncode:
            wrong = "pem report: status %d: %s" % (done.returncode, done.stderr.decode("utf-8", "replace").strip())
        else:
            events = json.loads(done.stdout)["events"]
            if events["produced"] != events["delivered"] + events["discarded"] + events["overwritten"]:
                wrong = "unbalanced: %r" % events
            with self.lock:
                for key, count in events.items():
                    self.total[key] = self.total.get(key, 0) + count * add
        self.note(what, wrong)
        if not wrong:
            shutil.rmtree(trace)

    def interrupted(self, what, command, seconds, killed=False):
        """Run a command for a while, then interrupt or kill it. False: it failed, or has hardly begun."""
        child = subprocess.Popen(command, env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL if killed else signal.SIGINT)
        self.early += killed  # report recovers what a recorder leaves; of others nobody comes for it
        try:
            _, err = child.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            self.note(what, "it did not end when interrupted")
            return False
        # A second at the start may be too short to have attached: then it was the signal.
        if child.returncode not in (0, -signal.SIGINT, 130) and not killed:
            self.note(what, "status %d: %s" % (child.returncode, err.decode("utf-8", "replace").strip()))
            return False
        self.early += child.returncode == -signal.SIGINT
        self.pids[child.pid] = "%s after %.1f s, status %d" % (" ".join(command[1:]), seconds, child.returncode)
        return child.returncode == 0 or killed


def recorders(soak, pid, seed):
    """Attach, record, detach."""
    chance, number = random.Random(seed), 0
    while soak.going_on():
        number += 1
        trace = os.path.join(soak.folder, "trace-%d-%d" % (seed, number))
        options = chance.choice(([], ["--buffer", "64K"], ["--buffer", "256K", "--overwrite"]))
        if soak.interrupted("pem record -p", [PEM, "record", "-q", "-e", EVENT, "-o", trace, *options, "-p", str(pid)],
                            0.3 + chance.random() * 1.5, number % 8 == 7) and os.path.exists(os.path.join(trace, ".pem")):
            soak.check_trace("pem record -p", trace)
        shutil.rmtree(trace, ignore_errors=True)


def watchers(soak, pid, seed):
    """Attach, count, detach."""
    chance = random.Random(seed)
    while soak.going_on():
        if soak.interrupted("pem stat -p", [PEM, "stat", "-e", EVENT, "-p", str(pid)], 0.3 + chance.random() * 2,
                            chance.random() < 0.1):
            soak.note("pem stat -p")


def snapshots(soak, recorder):
    """The last moments, again and again."""
    number = 0
    while soak.going_on():
        number += 1
        trace = os.path.join(soak.folder, "snapshot-%d" % number)
        done = subprocess.run([PEM, "snapshot", "-o", trace, "--session", str(recorder.pid)], env=soak.env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode:
            soak.note("pem snapshot", "status %d: %s" % (done.returncode, done.stderr.decode("utf-8", "replace").strip()))
        else:
            soak.check_trace("pem snapshot", trace, add=False)
        shutil.rmtree(trace, ignore_errors=True)
        time.sleep(2)


def held(pid):
    """(KiB resident, maps, descriptors) of a process."""
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as text:
        resident = next((int(line.split()[1]) for line in text if line.startswith("VmRSS")), 0)
    with open("/proc/%d/maps" % pid, "rb") as text:
        maps = sum(1 for _ in text)
    return resident, maps, len(os.listdir("/proc/%d/fd" % pid))


def measure(soak):
    """One row: per side resident KiB, maps, descriptors; files and KiB of the runtime folder."""
    row = []
    for child in soak.sides.values():
        row += held(child.pid)
    files = kib = 0
    for folder, _, names in os.walk(soak.runtime):
        # What a killed consumer leaves is kept for a day, since a trace may be recovered from it: runtime.c.
        owner = os.path.basename(folder).split("-")
        if owner[0] == "session" and not os.path.exists("/proc/" + owner[1]):
            continue
        for name in names:
            try:
                kib += os.lstat(os.path.join(folder, name)).st_blocks // 2
                files += 1
            except OSError:
                pass
    return row + [files, kib]


def columns(soak):
    return [name + " " + what for name in soak.sides for what in ("KiB", "maps", "fds")] + ["files", "files KiB"]


def grown(soak, rows):
    """Columns whose last third holds much more than their second: it went on growing."""
    third = len(rows) // 3
    found = []
    for i, name in enumerate(columns(soak)):
        before, after = (sorted(row[i] for row in part)[third // 2] for part in (rows[third:2 * third], rows[2 * third:]))
        slack = 16384 if "KiB" in name else 24
        if third >= 4 and after > before * 1.3 + slack:
            found.append("%s grew from %d to %d" % (name, before, after))
    return found


def end(soak):
    """End what went on throughout; what went wrong there."""
    for name, child in reversed(soak.sides.items()):
        ended = child.poll()
        if ended is not None:
            soak.note(name, "it ended by itself, with %d" % ended)
            continue
        child.send_signal(signal.SIGTERM if name == "program" else signal.SIGINT)
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            child.kill()
            soak.note(name, "it did not end")
    for name in soak.sides:
        with open(os.path.join(soak.folder, name + ".err"), encoding="utf-8", errors="replace") as text:
            said = text.read().strip()
        if said:
            soak.note(name, said[-1000:])


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it was ignored, and would be by all below
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    rows = []
    with tempfile.TemporaryDirectory(prefix="pem-soak-", dir=memory) as folder:
        soak = Soak(folder)
        storm = soak.start("program", [PEM, "run", "-n", "--", *STORM], stdout=subprocess.DEVNULL)
        time.sleep(1)
        flight = os.path.join(folder, "flight")
        recorder = soak.start("recorder", [PEM, "record", "-q", "--overwrite", "--buffer", "1M", "-e", EVENT, "-o", flight,
                                           "-p", str(storm.pid)])
        soak.start("reader", [sys.executable, "-c", READER, str(storm.pid), model_of_probe()])
        time.sleep(2)
        work = [threading.Thread(target=recorders, args=(soak, storm.pid, 1)), threading.Thread(target=recorders, args=(soak, storm.pid, 2)),
                threading.Thread(target=watchers, args=(soak, storm.pid, 3)), threading.Thread(target=snapshots, args=(soak, recorder))]
        for thread in work:
            thread.start()
        print("seconds  " + "  ".join(columns(soak)), flush=True)
        pause = min(10, SOAK_S / 30)
        while soak.going_on() and all(child.poll() is None for child in soak.sides.values()):
            time.sleep(pause)
            try:
                rows.append(measure(soak))
            except OSError:
                break
            if len(rows) % 3 == 1:
                print("%7.0f  " % (SOAK_S - soak.end + time.monotonic()) + "  ".join(
                    "%*d" % (len(name), value) for name, value in zip(columns(soak), rows[-1])), flush=True)
        soak.end = time.monotonic()
        for thread in work:
            thread.join()
        end(soak)
        soak.check_trace("flight recorder", flight)
        left = [name for name in os.listdir(soak.runtime) if name.startswith("session-")]
        if len(left) > soak.early:
            soak.note("runtime folder", "left: %r" % [(name, soak.pids.get(int(name.split("-")[1]))) for name in left])
        soak.wrong += grown(soak, rows) if len(rows) >= 12 else []
    print("\n" + "\n".join("%6d  %s" % (count, what) for what, count in sorted(soak.done.items())))
    print("events recorded: " + ", ".join("%s %d" % pair for pair in soak.total.items()))
    for wrong in soak.wrong:
        print("WRONG " + wrong)
    print("\n%d passed, %d failed, 0 skipped" % (sum(soak.done.values()), len(soak.wrong)))
    return 1 if soak.wrong else 0


sys.exit(main())
