#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kill_either_side.py - kills the recorder, the recorded program or both at random times, and balances every trace

Use: tests/stress/kill_either_side.py [TIMES] (make kill-test: 1000). PEM_SEED: of the random choices, printed at the
beginning; the same seed makes the same choices in the same order, though not at the same instruction.

Each time 'pem record' runs tests/programs/storm.c: threads that come, go and are cancelled, children, handlers in the middle of events, a
library that comes and goes. Somebody gets kill -9, some milliseconds after both have begun. Then 'pem report', which recovers
a trace whose recorder died, must say that every event is accounted for (its status is 4 where one is not), babeltrace2
must read the trace, and no session may be left in the runtime folder once another consumer came. KEEP: a folder for traces that failed. The last line: N passed, N failed, N skipped.
"""
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.path.join(ROOT, os.environ.get("B") or "build"))
PEM = os.path.join(BUILD, "bin", "pem")
STORM = os.path.join(BUILD, "programs", "storm")
LIBRARY = os.path.join(BUILD, "programs", "library.so")
VICTIMS = ("recorder", "program", "recorder, then program", "program, then recorder", "recorder, and recover beside the program",
           "stopped recorder", "stopped program")


PR_SET_CHILD_SUBREAPER = 36


class Round:
    """One recording and its end."""

    def __init__(self, chance, folder):
        self.victim = chance.choice(VICTIMS)
        self.letters = "".join(letter for letter in "ttcfsl" if chance.random() < 0.6) or "t"
        self.options = chance.choice(([], ["--overwrite"])) + chance.choice(([], ["--buffer", "64K"], ["--buffer", "1M"]))
        self.delay_s = chance.expovariate(1 / 0.02)
        self.between_s = chance.choice((0, 0, chance.expovariate(1 / 0.002)))
        self.folder, self.trace = folder, os.path.join(folder, "trace")
        self.runtime = os.path.join(folder, "runtime")
        self.env = dict(os.environ, PEM_RUNTIME_DIR=self.runtime)
        self.events, self.swept = {}, 0

    def __str__(self):
        return "kill %s after %.1f ms and %.1f ms: storm %s %s" % (
            self.victim, self.delay_s * 1e3, self.between_s * 1e3, self.letters, " ".join(self.options))

    def run(self):
        """What went wrong, or None."""
        command = [PEM, "record", "-q", "--no-libc", "-e", "APP", "-o", self.trace, *self.options, "--", STORM, "0", self.letters, LIBRARY]
        recorder = subprocess.Popen(command, env=self.env, start_new_session=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            program = self.program_of(recorder)
            if not program:
                return "the recorder ended by itself: " + recorder.stderr.read().decode("utf-8", "replace")
            time.sleep(self.delay_s)
            self.kill(recorder, program)
        finally:
            end_group(recorder.pid)
            recorder.wait()
            recorder.stderr.close()
        return self.judge()

    @staticmethod
    def program_of(recorder):
        """The process that became the storm."""
        children = "/proc/%d/task/%d/children" % (recorder.pid, recorder.pid)
        for _ in range(5000):
            try:
                with open(children, encoding="ascii") as text:
                    for pid in text.read().split():
                        if os.readlink("/proc/%s/exe" % pid) == STORM:
                            return int(pid)
            except OSError:
                pass
            if recorder.poll() is not None:
                return None
            time.sleep(0.001)
        return None

    def kill(self, recorder, program):
        first, second = (program, recorder.pid) if self.victim.startswith("program") else (recorder.pid, program)
        if self.victim == "stopped program":
            first = second = program
        if self.victim.startswith("stopped"):
            send(first, signal.SIGSTOP)
            time.sleep(0.005 + self.between_s)
        send(first, signal.SIGKILL)
        if "then" in self.victim:
            time.sleep(self.between_s)
            send(second, signal.SIGKILL)
        if self.victim in ("program", "stopped program"):
            recorder.wait(60)
        elif self.victim == "recorder, and recover beside the program":
            recorder.wait(60)
            self.report()

    def report(self):
        return subprocess.run([PEM, "report", "--json", self.trace], env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, check=False)

    def judge(self):
        if not os.path.exists(os.path.join(self.trace, ".pem", "session")) and not os.path.exists(os.path.join(self.trace, ".pem", "balance")):
            return "there is no trace"
        self.recovered = os.path.exists(os.path.join(self.trace, ".pem", "session"))
        done = self.report()
        if done.returncode:
            return "pem report: status %d: %s" % (done.returncode, done.stderr.decode("utf-8", "replace"))
        events = self.events = json.loads(done.stdout)["events"]
        if events["produced"] != events["delivered"] + events["discarded"] + events["overwritten"]:
            return "unbalanced: %r" % events
        if shutil.which("babeltrace2"):
            read = subprocess.run(["babeltrace2", self.trace, "-c", "sink.utils.counter"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=120, check=False)
            if read.returncode:
                return "babeltrace2: " + read.stdout.decode("utf-8", "replace")[-500:]
        left = os.listdir(self.runtime)
        if left and self.victim not in ("program", "stopped program"):
            # Its recorder died once the trace was whole, or the processes before they took their control files away.
            self.swept += any(name.startswith("session-") for name in left)
            subprocess.run([PEM, "stat", "-q", "-e", "APP", "--", "true"], env=self.env, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=60, check=True)
            left = os.listdir(self.runtime)
        left = [name for name in left if not name.startswith("control-")]
        return "left in the runtime folder: %r" % left if left else None


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end_group(group):
    """All that a recording left behind; waits until none of it is there."""
    for _ in range(2000):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            return
        except PermissionError:
            pass
        try:
            while os.waitpid(-group, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.001)


def main():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans are ours to wait for
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(os.environ.get("PEM_SEED") or random.SystemRandom().randrange(1 << 32))
    chance, failed, swept, done, total = random.Random(seed), 0, 0, {}, {}
    print("seed %d" % seed, flush=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for number in range(1, times + 1):
        with tempfile.TemporaryDirectory(prefix="pem-kill-", dir=memory) as folder:
            this = Round(chance, folder)
            wrong = this.run()
            if wrong:
                failed += 1
                print("FAIL %d: %s\n    %s" % (number, this, wrong.strip().replace("\n", "\n    ")), flush=True)
                if os.environ.get("KEEP"):
                    shutil.copytree(this.trace, os.path.join(os.environ["KEEP"], str(number)), symlinks=True)
            swept += this.swept
            done[this.victim] = done.get(this.victim, 0) + 1
            for what, count in this.events.items():
                total[what] = total.get(what, 0) + count
    print("".join("%5d  %s\n" % (count, victim) for victim, count in sorted(done.items())))
    print("session folders left to the next recorder: %d" % swept)
    print("events: %s\n" % ", ".join("%s %d" % pair for pair in total.items()))
    print("%d passed, %d failed, 0 skipped" % (times - failed, failed))
    return 1 if failed else 0


sys.exit(main())
