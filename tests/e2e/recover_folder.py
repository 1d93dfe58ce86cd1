# SPDX-License-Identifier: MIT
"""
recover_folder.py - what a recovery finds in a trace's folder: what is not pem's stays as it is, and what can't be written is not lost

Not here: what is recovered of programs (cli_record.py), recoveries that end half-way (unit/recover_steps.c).
"""
import hashlib
import json
import os
import resource
import shutil
import signal
import stat
import struct
import subprocess
import time

from patience import HANG_S
from tap import PEM, equal, run, run_all, skip, start, test, tmp

MAGIC = 0xC1FC1FC1
PROGRAM = ["sh", "-c", "ls /usr/share/doc > /dev/null; echo ready; exec sleep 60"]


class Killed:
    """A trace whose recorder was killed, and its program then; what programs had logged is in shared memory still."""

    def __init__(self, where=None):
        self.folder = tmp()
        self.trace = os.path.join(where or self.folder, "trace")
        self.runtime = os.path.join(self.folder, "runtime")
        self.env = {"PEM_RUNTIME_DIR": self.runtime}
        # Small buffers, since they are copied.
        recorder = start([PEM, "record", "-q", "-o", self.trace, "-e", "APP::Libc::*", "--buffer", "256K", "--"] + PROGRAM,
                         self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal(recorder.stdout.readline(), b"ready\n", "what the program says")
        end = time.monotonic() + HANG_S
        while not self.streams():
            assert time.monotonic() < end, "no packet was written"
            time.sleep(0.005)
        program = int(run(["pgrep", "-P", str(recorder.pid)])[1])
        recorder.kill()
        recorder.wait(30)
        os.kill(program, signal.SIGKILL)
        recorder.communicate(timeout=30)

    def path(self, *names):
        return os.path.join(self.trace, *names)

    def streams(self):
        """Streams with packets: a recorder makes the file first."""
        return sorted(n for n in os.listdir(self.trace) if n[:2] in ("u_", "k_", "c_") and os.path.getsize(self.path(n)))

    def sessions(self):
        """Shared memory of recorders: pools and sizes."""
        return sorted((base, name, os.path.getsize(os.path.join(base, name)))
                      for base, _, files in os.walk(self.runtime) for name in files if "session-" in base)

    def unchanged(self):
        """What a recovery that fails leaves as it was."""
        return contents(self.trace), self.sessions()

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def report(self, **more):
        """Status, object and standard error of report --json."""
        rc, out, err = run([PEM, "report", "--json", self.trace], self.env, **more)
        return rc, json.loads(out) if out else None, err

    def copy(self):
        """The same in other folders: a trace of it, and its shared memory."""
        other = Killed.__new__(Killed)
        other.folder = tmp()
        other.trace, other.runtime = os.path.join(other.folder, "trace"), os.path.join(other.folder, "runtime")
        other.env = {"PEM_RUNTIME_DIR": other.runtime}
        for one, to in ((self.trace, other.trace), (self.runtime, other.runtime)):
            shutil.copytree(one, to, symlinks=True)
        os.chmod(other.runtime, 0o700)
        with open(other.path(".pem", "session")) as file:
            text = file.read()
        with open(other.path(".pem", "session"), "w") as file:
            file.write(text.replace(self.runtime, other.runtime))
        return other

    def counts(self):
        """What a recovery of a copy finds of each event; every event is accounted for."""
        return self.copy().recovered()

    def recovered(self):
        rc, r, err = self.report()
        equal(rc, 0, "status of report: " + err)
        assert "did not finish" in err and r["info"]["read"] > 0, err
        rc, _, err = self.report()
        equal((rc, err), (0, ""), "status and errors of the next report")
        return sorted((e["name"], e["count"], e["balance"]["produced"]) for e in r["per_event"])


def contents(folder):
    """All that is in a folder: names, kinds, owners, sizes, bytes, and times of files."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(base, name)
            st = os.lstat(path)
            data = b""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    data = file.read()
            elif stat.S_ISLNK(st.st_mode):
                data = os.readlink(path).encode()
            found[os.path.relpath(path, folder)] = (st.st_mode, st.st_uid, not stat.S_ISDIR(st.st_mode) and st.st_mtime_ns,
                                                    len(data), hashlib.sha256(data).hexdigest())
    return found


def in_the_way(status, put):
    """What a recovery leaves of what put(killed) puts into the trace's folder: its names. All else is recovered."""
    killed = Killed()
    expected = killed.counts()
    names = put(killed)
    before = {n: v for n, v in contents(killed.trace).items() if os.path.basename(n) in names}
    equal(sorted(map(os.path.basename, before)), sorted(names), "what was put there")
    rc, r, err = killed.report()
    equal(rc, status, "status of report: " + err)
    after = contents(killed.trace)
    equal({n: after.get(n) for n in before}, before, "what is not pem's")
    assert not os.path.exists(killed.path(".pem", "session")), "it was not recovered: " + err
    equal(killed.sessions(), [], "what is left in shared memory")
    equal(sorted((e["name"], e["count"], e["balance"]["produced"]) for e in r["per_event"]), expected, "events")
    return killed


@test
def a_folder():
    "a folder by a stream's name is left alone, and the rest recovered"

    def put(killed):
        os.mkdir(killed.path("u_1_1_0"))
        return ["u_1_1_0"]
    in_the_way(0, put)


@test
def any_folder():
    "so is one of any name"

    def put(killed):
        os.mkdir(killed.path("plots"))
        return ["plots"]
    in_the_way(0, put)


@test
def a_link():
    "a link is not followed: what it leads to stays as it is"

    def put(killed):
        outside = os.path.join(killed.folder, "outside")
        with open(outside, "wb") as file:
            file.write(struct.pack("<I", MAGIC) + b"mine" * 100)
        os.symlink(outside, killed.path("u_1_1_0"))
        os.symlink(outside, killed.path("c_0"))
        return ["u_1_1_0", "c_0"]
    killed = in_the_way(0, put)
    equal(os.path.getsize(os.path.join(killed.folder, "outside")), 404, "bytes of what it leads to")


@test
def a_hard_link():
    "another name of a file outside is not cut"

    def put(killed):
        outside = os.path.join(killed.folder, "outside")
        with open(outside, "wb") as file:
            file.write(b"mine" * 100)
        os.link(outside, killed.path("u_1_1_0"))
        return ["u_1_1_0"]
    in_the_way(4, put)  # it is damage to whoever reads the trace


@test
def a_hard_link_to_a_stream():
    "nor is it if it holds packets of this trace, and a torn one at its end"
    killed, outside = Killed(), os.path.join(tmp(), "outside")
    with open(killed.path(killed.streams()[0]), "rb") as file:
        data = file.read()
    with open(outside, "wb") as file:
        file.write(data + data[:120])
    try:
        os.link(outside, killed.path("u_1_1_0"))
    except OSError as why:
        skip("two folders of one file system are needed: %s" % why)
    rc, _, err = killed.report()
    assert rc in (0, 4) and "recovered" in err, (rc, err)  # its events are there twice
    equal(os.path.getsize(outside), len(data) + 120, "bytes of the file")


@test
def a_long_name():
    "a file whose name no stream can have is left alone"

    def put(killed):
        name = "u_" + 58 * "1"
        killed.write(name, b"mine")
        return [name]
    in_the_way(0, put)


@test
def a_fifo():
    "a fifo is not opened"

    def put(killed):
        os.mkfifo(killed.path("u_1_1_0"))
        return ["u_1_1_0"]
    in_the_way(0, put)


@test
def notes():
    "a file beside the streams keeps its bytes"

    def put(killed):
        killed.write("notes.txt", b"what I saw in this trace")
        return ["notes.txt"]
    in_the_way(0, put)


@test
def not_pems():
    "a file by a stream's name without the magic number keeps its bytes"

    def put(killed):
        killed.write("u_1_1_0", b"what I saw in this trace" * 10)
        killed.write("u_1_1_1", b"what I saw in this trace")
        return ["u_1_1_0", "u_1_1_1"]
    in_the_way(4, put)


@test
def of_another_trace():
    "a stream of another trace keeps its bytes, a torn packet at its end among them"

    def put(killed):
        killed.write("u_1_1_0", struct.pack("<I16s", MAGIC, b"x" * 16) + b"y" * 100)
        killed.write("u_1_1_1", struct.pack("<I16s", MAGIC, b"x" * 16) + b"y" * 60)  # and no whole header
        return ["u_1_1_0", "u_1_1_1"]
    in_the_way(4, put)


@test
def its_place_is_taken():
    "what is recovered of a thread does not replace a file that has its name: it goes by that name and a number"
    killed = Killed()
    other = killed.copy()
    expected, before = other.recovered(), set(killed.streams())
    names = sorted(set(other.streams()) - before)
    assert names, "no stream was new"
    for name in names:
        killed.write(name, b"mine" * 100)
    rc, r, err = killed.report()
    equal(rc, 4, "status of report: " + err)
    for name in names:
        with open(killed.path(name), "rb") as file:
            equal(file.read(), b"mine" * 100, name)
    beside = set(killed.streams()) - before - set(names)
    assert len(beside) == len(names) and all("_r" in n for n in beside), killed.streams()
    equal(sorted((e["name"], e["count"], e["balance"]["produced"]) for e in r["per_event"]), expected, "events")


@test
def damage():
    "a stream that is damaged in its middle keeps what is behind the damage"
    killed = Killed()
    name = killed.streams()[0]
    with open(killed.path(name), "rb") as file:
        data = file.read()
    killed.write(name, data + b"\0" * len(data) + data)
    rc, _, err = killed.report()
    equal(rc, 4, "status of report: " + err)
    with open(killed.path(name), "rb") as file:
        equal(file.read(len(data) * 3), data + b"\0" * len(data) + data, "its bytes")


@test
def torn():
    "a torn packet is cut off, be its header whole or not"
    killed = Killed()
    expected = killed.counts()
    for other, part in ((killed.copy(), 50), (killed, 120)):
        name = other.streams()[0]
        size = os.path.getsize(other.path(name))
        with open(other.path(name), "r+b") as file:
            first = file.read(part)
            file.seek(0, 2)
            file.write(first)
        rc, r, err = other.report()
        equal(rc, 0, "status of report: " + err)
        equal(os.path.getsize(other.path(name)), size, "bytes of the stream")
        equal(sorted((e["name"], e["count"], e["balance"]["produced"]) for e in r["per_event"]), expected, "events")


@test
def session_is_a_folder():
    "a folder in the place of .pem/session: nothing is recovered, and status 4 says that it is not whole"
    killed = Killed()
    os.unlink(killed.path(".pem", "session"))
    os.mkdir(killed.path(".pem", "session"))
    before = contents(killed.trace)
    rc, _, err = killed.report()
    equal((rc, ".pem/session" in err), (4, True), "status of report, and what it names: " + err)
    equal(contents(killed.trace), before, "the trace")


@test
def full_disk():
    "on a full disk nothing is changed and nothing lost: it is recovered once there is space"
    disk = tmp()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "pem-test", disk], capture_output=True, text=True)
    if made.returncode != 0:
        skip("cannot mount a tmpfs (needs root): " + made.stderr.strip())
    try:
        killed = Killed(disk)
        expected = killed.counts()
        filler = os.path.join(disk, "filler")
        with open(filler, "wb", 0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        before = contents(killed.trace)
        for _ in range(2):
            rc, _, err = killed.report()
            equal((rc, "free some space" in err), (4, True), "status of report, and the advice: " + err)
            equal(contents(killed.trace), before, "the trace")
        os.unlink(filler)
        equal(killed.recovered(), expected, "events")
    finally:
        subprocess.run(["umount", "-l", disk], capture_output=True)


@test
def small_files():
    "with files limited in size nothing is changed and nothing lost, whatever the limit's signal would do"
    killed = Killed()
    expected, before = killed.counts(), contents(killed.trace)

    def limit(action, most):
        signal.signal(signal.SIGXFSZ, action)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    for most in (0, 100, 5000):
        for action in (signal.SIG_IGN, signal.SIG_DFL):
            out = subprocess.run([PEM, "report", killed.trace], env=dict(os.environ, **killed.env), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, text=True, preexec_fn=lambda: limit(action, most), timeout=HANG_S)
            equal((out.returncode, "ulimit -f" in out.stderr), (4, True), "status of report, and the advice: " + out.stderr)
            equal(contents(killed.trace), before, "the trace")
    equal(killed.recovered(), expected, "events")


@test
def another_users():
    "root recovers no other user's trace, whatever it names: it says who can, and shows what is there"
    if os.geteuid() != 0:
        skip("only root can be the wrong user who could")
    killed = Killed()
    for base, folders, files in os.walk(killed.trace):
        for path in [base] + [os.path.join(base, n) for n in folders + files]:
            os.lchown(path, 65534, 65534)
    before = killed.unchanged()
    rc, _, err = killed.report()
    equal((rc, "user 65534" in err, "by that user" in err), (4, True, True), "status of report, and whom it names: " + err)
    equal(killed.unchanged(), before, "the trace, and shared memory")
    os.chown(killed.path(".pem"), 0, 0)  # as of a folder that was there before it was recorded into
    before = killed.unchanged()
    rc, _, err = killed.report()
    equal((rc, "by that user" in err), (4, True), "status of report, and whom it names: " + err)
    equal(killed.unchanged(), before, "the trace, and shared memory")


@test
def others_may_write():
    "a trace whose .pem is another user's, or may be written by others, is not recovered"
    killed = Killed()
    os.chmod(killed.path(".pem"), 0o777)
    before = killed.unchanged()
    rc, _, err = killed.report()
    equal((rc, "chmod" in err), (4, True), "status of report, and the advice: " + err)
    equal(killed.unchanged(), before, "the trace, and shared memory")
    if os.geteuid() != 0:
        return
    os.chmod(killed.path(".pem"), 0o700)
    os.chown(killed.path(".pem"), 65534, 65534)
    before = killed.unchanged()
    rc, _, err = killed.report()
    equal((rc, "chown" in err), (4, True), "status of report, and the advice: " + err)
    equal(killed.unchanged(), before, "the trace, and shared memory")


@test
def a_link_to_another_trace():
    "a folder whose .pem leads into another trace is no trace: that one is not recovered by it"
    killed = Killed()
    lure = os.path.join(killed.folder, "lure")
    os.mkdir(lure)
    shutil.copy(killed.path("metadata"), lure)
    os.symlink(killed.path(".pem"), os.path.join(lure, ".pem"))
    before = killed.unchanged()
    rc, _, err = run([PEM, "report", lure], env=killed.env)
    equal((rc, "is no pem trace" in err), (1, True), "status of report, and the error: " + err)
    equal(killed.unchanged(), before, "the other trace, and shared memory")


run_all()
