# SPDX-License-Identifier: MIT
"""
attack_stalls.py - a user whose pool keeps root's recorder waiting: holes are punched into it without end, and each touch waits
until the kernel has taken the hole out of tens of thousands of mappings of that file
"""
import ctypes
import glob
import json
import mmap
import os
import signal
import threading
import time

from patience import HANG_S
from stage import USER, Stage, served, tick, until
from tap import PEM, equal, run, run_all, test

GOOD = 60001
MAPPINGS = 60_000  # of each process: a kernel allows 65,530
PROCESSES = 2
PUNCH_HOLE = 3  # FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]


def punch(path):
    """Punch holes until killed, as the user."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
        signal.alarm(HANG_S)
        fd, size = os.open(path, os.O_RDWR), os.path.getsize(path)
        for _ in range(MAPPINGS):
            libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, fd, 0)
        while True:
            libc.fallocate(fd, PUNCH_HOLE, 0, size)
    finally:
        os._exit(1)


@test
def holes_punched_without_end():
    "the user is left out, which is said and in the trace, and the others are recorded to the end"
    stage = Stage()
    good, bad = stage.program(GOOD), stage.program(USER)
    child, trace = stage.record("-p", "%d,%d" % (bad.pid, good.pid))
    until(lambda: served(stage.runtime(GOOD), child) and served(stage.runtime(USER), child), "both are attached to")
    tick(good, 10)
    tick(bad, 10)
    pool = stage.runtime(USER) + "/session-*/pool-*"
    until(lambda: glob.glob(pool), "the attacker's pool")
    attackers = [punch(glob.glob(pool)[0]) for _ in range(PROCESSES)]
    try:
        said, rounds = [], 0
        reader = threading.Thread(target=lambda: said.extend(child.stderr), daemon=True)
        reader.start()
        end = time.monotonic() + HANG_S
        while not any("of user %d are not observed any more" % USER in line for line in said):
            assert time.monotonic() < end, "the attacker is not left out: %s" % said
            tick(good, 100)
            rounds += 1
            time.sleep(0.01)
        tick(good, 1000)
        child.send_signal(signal.SIGINT)
        equal(child.wait(timeout=60), 0, "status")
    finally:
        for pid in attackers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "the trace balances: " + err)
    result = json.loads(out)
    reasons = [gap["reason"] for gap in result["gaps"] if gap["source"] == "user %d" % USER]
    assert any("kept the recorder waiting" in reason for reason in reasons), result["gaps"]
    counts = {p["pid"]: p["count"] for p in result["processes"]}
    equal(counts[good.pid], 10 + 100 * rounds + 1000, "events of the other user")


run_all()
