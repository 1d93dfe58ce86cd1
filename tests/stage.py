# SPDX-License-Identifier: MIT
"""stage.py - root's session and programs of other users, each with a runtime folder of its own, for tests of attacks"""
import os
import shutil
import signal
import subprocess
import time
from types import SimpleNamespace

from attached import LIBPEM, SPEC, control_files, is_served
from patience import HANG_S
from probe_trace import EVENT, program
from tap import PEM, SAN, skip, start, tmp

USER = 65534


def as_user(uid):
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]


class Stage:
    """Folders: ours for root's session, theirs for each user's runtime folder and copies of programs that they may run."""

    def __init__(self):
        if os.geteuid():
            skip("acting as several users needs root")
        if SAN:
            skip("a sanitizer's runtime must come before every preloaded library; run without SAN=1")
        self.folder = tmp()
        os.chmod(self.folder, 0o1755)  # sticky: trusted also where its owner is outside of a user namespace
        self.library = os.path.join(self.folder, "libpem.so.1")
        shutil.copy(LIBPEM, self.library)
        self.asked = os.path.join(self.folder, "asked")
        shutil.copy(program("asked")[0], self.asked)
        self.env = {"PEM_RUNTIME_DIR": os.path.join(tmp(), "ours"), "PEM_SPEC_PATH": SPEC}

    def runtime(self, uid):
        path = os.path.join(self.folder, "theirs-%d" % uid)
        if not os.path.exists(path):
            os.mkdir(path, 0o700)
            os.chown(path, uid, uid)
        return path

    def program(self, uid, *command):
        """A program of a user's that is asked for events; it is ready."""
        child = start(as_user(uid) + ["env", "LD_PRELOAD=" + self.library, *(command or [self.asked])], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, text=True, bufsize=1, cwd="/",
                      env={"PEM_RUNTIME_DIR": self.runtime(uid), "XDG_RUNTIME_DIR": None, "PEM_SESSION": None})
        wait_ready(child)
        return child

    def record(self, *target):
        trace = os.path.join(self.folder, "trace")
        child = start([PEM, "record", "--no-libc", "-e", EVENT, "-o", trace, *target], env=self.env,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return child, trace


def wait_ready(child):
    for line in child.stdout:
        if line == "ready\n":
            return
    raise AssertionError("the program ended")


def tick(child, count):
    child.stdin.write("tick %d\n" % count)
    wait_ready(child)


def until(condition, what, seconds=HANG_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.002)
    raise AssertionError("not within %d s: %s" % (seconds, what))


def until_served(runtime, pid, consumer=None):
    """Until the events that a session wants of a process are enabled: any session, or that of a consumer."""
    where, of = SimpleNamespace(runtime=runtime), "session-%d-" % consumer if consumer else "session-"
    until(lambda: any(is_served(where, name, session) for session in os.listdir(runtime) if session.startswith(of)
                      for name in control_files(where) if name.startswith("control-%d-" % pid)), "process %d is observed" % pid)


def interrupt(child):
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    return child.returncode, out, err


def served(runtime, consumer):
    """
    Some control file in the folder names the session of this child, and the events that it wants are enabled. Others of root's
    may attach to the same program.
    """
    where = SimpleNamespace(runtime=runtime)
    return any(is_served(where, name, "session-%d-" % consumer.pid) for name in control_files(where))
