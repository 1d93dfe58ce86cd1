# SPDX-License-Identifier: MIT
"""
patience.py - how long a test may take: by its own CPU time, and by time in which it waits while no CPU is wanted

Not here: tests.

Other programs on the machine make a test late, and use none of its patience: a process that is ready to run and gets no
CPU is not waiting.
"""
import os
import threading
import time

# A wait for an event, in seconds of wall-clock time: only a hang takes as long.
HANG_S = 600
# Wall-clock seconds for each second of patience. A program that neither ends nor sleeps, nor gets a CPU, takes as long.
WALL = 20
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# Do threads tell their children here? A kernel may be built without that.
TOLD = os.path.exists("/proc/thread-self/children")
# Below this share of a CPU, a process that is asleep when it is looked at counts as waiting.
AWAKE = 0.2


def words_of(pid):
    """The words after the name in a process's /proc/PID/stat. None: it is gone."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as text:
            return text.read().rpartition(b")")[2].split()
    except OSError:
        return None


def children_by_parent():
    """pid -> pids of its children, of all processes that can be seen."""
    below = {}
    for name in os.listdir("/proc"):
        words = words_of(int(name)) if name.isdigit() else None
        if words:
            below.setdefault(int(words[1]), []).append(int(name))
    return below


def children(pid):
    """A process's children, as its threads tell them, which is far cheaper than to look at all processes."""
    found = []
    try:
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, tid), "rb") as text:
                found += map(int, text.read().split())
    except OSError:
        pass  # it, or one of its threads, has ended
    return found


def is_awake(pid):
    """
    Does a thread of this process want a CPU or a disk, other than the one that looks? Its first thread may wait for others,
    as an emulator's does.
    """
    try:
        threads = set(os.listdir("/proc/%d/task" % pid)) - {str(threading.get_native_id())}
    except OSError:
        return False  # it has ended
    for tid in threads:
        try:
            with open("/proc/%d/task/%s/stat" % (pid, tid), "rb") as text:
                if text.read().rpartition(b")")[2].split()[0] in b"RD":
                    return True
        except OSError:
            pass  # the thread has ended
    return False


def tree(root):
    """The process root and its descendants: does one of them want a CPU or a disk, and seconds of CPU in all."""
    below = None if TOLD else children_by_parent()
    members, at, cpu_s = [root], 0, 0
    while at < len(members):
        words = words_of(members[at])
        cpu_s += sum(map(int, words[11:15])) * TICK_S if words else 0
        members += below.get(members[at], ()) if below else children(members[at])
        at += 1
    return any(map(is_awake, members)), cpu_s


class Patience:
    """Of a process and its descendants. spent() is asked every second or so."""

    def __init__(self, root, limit_s):
        self.root, self.limit_s = root, limit_s
        self.again()

    def again(self):
        """The patience is a new one: something came."""
        self.began = self.seen = time.monotonic()
        self.cpu_s = self.seen_cpu_s = tree(self.root)[1]
        self.waited_s = 0.0

    def spent(self):
        """Why it is over, or None."""
        awake, cpu_s = tree(self.root)
        now = time.monotonic()
        # A process that ended in between takes its time out of the sum.
        self.cpu_s = min(self.cpu_s, cpu_s)
        if not awake and cpu_s - self.seen_cpu_s < AWAKE * (now - self.seen):
            self.waited_s += now - self.seen
        self.seen, self.seen_cpu_s = now, cpu_s
        if cpu_s - self.cpu_s > self.limit_s:
            return "%g s of CPU" % self.limit_s
        if self.waited_s > self.limit_s:
            return "%g s of waiting, with no CPU wanted" % self.limit_s
        if now - self.began > WALL * self.limit_s:
            return "%g s" % (WALL * self.limit_s)
        return None
