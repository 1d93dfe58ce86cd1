# SPDX-License-Identifier: MIT
"""
processes.py - running a command of the zoo within a time limit: its descendants, their stacks when it hangs, their end

Not here: what is run (zoo.py), what it is compared by (modes.py).

This process adopts what its descendants leave behind (PR_SET_CHILD_SUBREAPER), so that daemons are found and ended, too, and nothing
is ever looked for by its name.
"""
import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 10  # for processes that end by themselves once the command has
STACKS = 12  # processes whose stacks are shown

_own = []  # processes that start() made, and whose statuses belong to their callers
_lock = threading.Lock()  # around making them and taking the statuses of others


def adopt_orphans():
    """Make this process the parent of whatever loses its own below it."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot adopt processes: " + os.strerror(ctypes.get_errno()))


def _parents(ended=False):
    """Of each process that has not ended, or of each that has and is still there, the parent."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as stat:
                    fields = stat.read().rpartition(")")[2].split()
            except OSError:
                continue
            if (fields[0] in "ZX") == ended:
                parents[int(name)] = int(fields[1])
    return parents


def descendants(root):
    """Processes below this one that have not ended, eldest first."""
    children = {}
    for pid, parent in _parents().items():
        children.setdefault(parent, []).append(pid)
    found = list(children.get(root, []))
    for pid in found:
        found.extend(children.get(pid, []))
    return found


def name_of(pid):
    """The command line of a process, or ''."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:120]
    except OSError:
        return ""


def stacks(pids):
    """The stacks of these processes' threads, as text."""
    text = []
    for pid in pids[:STACKS]:
        text.append("process %d: %s" % (pid, name_of(pid)))
        if shutil.which("gdb"):
            command = ["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt 25"]
        elif shutil.which("eu-stack"):
            command = ["eu-stack", "-p", str(pid)]
        else:
            text.append("  no stack: neither gdb nor eu-stack (elfutils) is installed")
            continue
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=30, check=False)
            text += ["  " + line for line in done.stdout.decode("utf-8", "replace").splitlines()
                     if line.startswith(("#", "Thread", "TID"))]
        except subprocess.TimeoutExpired:
            text.append("  no stack within 30 s")
    if len(pids) > STACKS:
        text.append("and %d more processes" % (len(pids) - STACKS))
    return "\n".join(text)


def start(command, **more):
    """subprocess.Popen in a session of its own; its status is left for its wait()."""
    with _lock:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **more)
        _own.append(child)
    return child


def reap():
    """Take the statuses of adopted processes that ended: a zombie would look alive to whoever waits for its end."""
    with _lock:
        _own[:] = [child for child in _own if child.returncode is None]
        own = {child.pid for child in _own}
        try:
            # This shows one that ended, and the same again until its status is taken.
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            return
        for pid, parent in _parents(ended=True).items():
            if parent == os.getpid() and pid not in own:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass


def end_all():
    """Kill all processes below this one, and what they start meanwhile, until none is left or GRACE_S have passed."""
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline:
        pids = descendants(os.getpid())
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        reap()
        time.sleep(0.02)


def outlived():
    """Processes that have not ended GRACE_S after the command has: they are killed, and their command lines returned."""
    deadline = time.monotonic() + GRACE_S
    while True:
        reap()
        left = descendants(os.getpid())
        if not left:
            return []
        if time.monotonic() > deadline:
            names = [name_of(pid) for pid in left]
            end_all()
            return names
        time.sleep(0.02)


class Finished:
    """What came of a command. hang: stacks of all processes, if it took too long; left: processes that outlived it."""

    def __init__(self, status, out, err, hang, left, took_s):
        self.status, self.out, self.err, self.hang, self.left, self.took_s = status, out, err, hang, left, took_s


def run(command, env, cwd, scratch, limit_s, user=None, during=None):
    """
    Run a command to its end, in a session of its own, its output by way of files in the folder scratch. during: called with the
    process once it runs, and what it returns once the process ended.
    """
    began = time.monotonic()
    paths = [os.path.join(scratch, name) for name in ("out", "err")]
    more = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
        child = start(command, env=env, cwd=cwd, stdout=out, stderr=err, **more)
    finish, hang, left = None, None, []
    try:
        finish = during(child) if during else None
        while not hang:
            try:
                child.wait(0.02)
                break
            except subprocess.TimeoutExpired:
                reap()
                if time.monotonic() - began > limit_s:
                    hang = "still running after %g s\n%s" % (limit_s, stacks(descendants(os.getpid())))
        if hang:
            end_all()
            child.wait()
        took_s = time.monotonic() - began
        if finish:
            finish()
        if not hang:
            left = outlived()
    except BaseException:
        end_all()
        child.wait()
        if finish:
            finish()
        raise
    texts = []
    for path in paths:
        with open(path, "rb") as file:
            texts.append(file.read().decode("utf-8", "replace"))
    return Finished(child.returncode, *texts, hang, left, took_s)
