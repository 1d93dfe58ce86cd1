# SPDX-License-Identifier: MIT
"""
attached.py - a program that does what it is asked to, and observers that attach to it, for the tests of attaching

Not here: tests.
"""
import json
import os
import signal
import struct
import subprocess
import time

from patience import HANG_S
from probe_trace import EVENT, program, ticks
from tap import BUILD, PEM, ROOT, SAN, equal, run, skip, start, tmp

SPEC = os.path.join(ROOT, "tests", "programs", "probe.xml")
LIBPEM = os.path.join(BUILD, "lib", "libpem.so.1")
LIBRARIES = [os.path.join(BUILD, "lib", "libpem-adapters.so")]


class Asked:
    """A program with libpem that does what it is asked to."""

    def __init__(self, folder, command=None, **env):
        if SAN:
            skip("a sanitizer's runtime must come before every preloaded library; run without SAN=1")
        self.runtime = os.path.join(folder, "runtime")
        env = dict({"PEM_RUNTIME_DIR": self.runtime, "LD_PRELOAD": LIBPEM, "PEM_SESSION": None}, **env)
        self.env = env
        self.consumers = None  # their runtime folder, if it is another
        self.child = start(command or program("asked"), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
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


class Recorder:
    """pem record, attached to what the options name."""

    def __init__(self, *options, events="OS::Syscall::Enter"):
        self.trace = os.path.join(tmp(), "trace")
        self.said = []
        self.child = start([PEM, "record", "-e", events, "-o", self.trace, *options], stderr=subprocess.PIPE, text=True,
                           env={"PEM_RUNTIME_DIR": os.path.join(tmp(), "run")})
        self.until("until it ends or you interrupt")

    def until(self, words):
        for line in self.child.stderr:
            self.said.append(line)
            if words in line:
                return
        raise AssertionError("record ended: " + "".join(self.said))

    def end(self):
        """Its report's processes by number."""
        self.child.send_signal(signal.SIGINT)
        self.said.append(self.child.stderr.read())
        equal(self.child.wait(), 0, "status: " + "".join(self.said))
        rc, out, err = run([PEM, "report", "--json", self.trace])
        equal(rc, 0, "status of report: " + err)
        return {p["pid"]: p for p in json.loads(out)["processes"]}


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

    def _wait_for_entry(self, asked, of="control-"):
        """It is attached when a process's events are enabled for it."""
        sessions = lambda: [name for name in os.listdir(asked.runtime) if name.startswith("session-%d-" % self.child.pid)]
        for _ in range(500 * HANG_S):
            found = sessions()
            if self.child.poll() is not None:
                return
            if found and any(is_served(asked, name, found[0]) for name in control_files(asked) if name.startswith(of)):
                return
            time.sleep(0.002)
        raise AssertionError("%s did not attach" % self.verb)

    def wait_for(self, asked):
        """Until it is attached to this one of several."""
        self._wait_for_entry(asked, "control-%d-" % asked.pid)

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
    return {"PEM_RUNTIME_DIR": asked.consumers or asked.runtime, "PEM_SPEC_PATH": SPEC}


def control_files(asked):
    return [name for name in os.listdir(asked.runtime) if name.startswith("control-")]


def is_served(asked, name, session):
    """Does the session want events of the process with this control file by now? Its entry comes first, the events' bits last."""
    try:
        with open(os.path.join(asked.runtime, name), "rb") as file:
            head = file.read(4096)
            slots = [i for i in range(8) if session.encode() in head[576 + 64 * i + 32:576 + 64 * (i + 1)]]
            for k in range(struct.unpack_from("<I", head, 12)[0] if slots else 0):
                file.seek(struct.unpack_from("<Q", head, 64 + 16 * k)[0])
                page = file.read(64 + 256)
                if any(bits >> slots[0] & 1 for bits in page[64:64 + struct.unpack_from("<I", page, 4)[0]]):
                    return True
    except FileNotFoundError:
        pass
    return False


def numbers(found, pid):
    """The ticks of a process's raisers together."""
    return sorted(n for raiser, some in found.items() if raiser[0] == pid for n in some)


class Idle(Asked):
    """A program that was started with pem's libraries and allocates when it is asked to."""

    def __init__(self, folder=None, *arguments, **env):
        folder = folder or tmp()
        os.makedirs(os.path.join(folder, "runtime"), mode=0o700, exist_ok=True)
        super().__init__(folder, command=[os.path.join(BUILD, "programs", "idle"), *arguments],
                         LD_PRELOAD=":".join(LIBRARIES), **env)

    def files(self, of=""):
        return sorted(name for name in os.listdir(self.runtime) if name.startswith(of))
