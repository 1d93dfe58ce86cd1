#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
runtime_folder.py - hostile users attack root's sessions through their runtime folders: is anybody harmed?

Use: tests/stress/runtime_folder.py (make folder-fuzz). FUZZ_S: seconds (120); FUZZ_SEED: a number, to repeat a run's choices.

Two users run hostile_user.py, and a third one, who does no harm, a program that raises events, while root records all of
them, and now and then runs pem stat and pem top. After each round of some seconds: root's recorder lived, ended soon and with
status 0, or 4 and a sentence; it has all of the third user's events, and their balance; its memory and descriptors were bounded;
no file of root's changed, and none of root's is in the users' folders; no helper was left. A consumer that opens one session
after the other holds no more after the last than after the first. FUZZ_KEEP: a folder to be made, for traces of rounds that failed.

Each third round is of another kind: root's recorder starts a command, which runs programs as the hostile users and as the one who
does no harm. They share the session's public folder; the hostile ones are told where it is, and attack there. The same has to hold.

Needs root. Runs in pid and mount namespaces of its own, so that no other program on the machine is recorded. Not here: the
attacks (hostile_user.py).
"""
import csv
import hashlib
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.abspath(os.path.join(ROOT, os.environ.get("B") or "build"))
PEM = os.path.join(BUILD, "bin", "pem")
FUZZ_S = float(os.environ.get("FUZZ_S") or 120)
FUZZ_SEED = int(os.environ.get("FUZZ_SEED") or time.time())
HONEST, HOSTILE = 64001, (64002, 64003)
EVENT = "APP::Probe::Tick"
INSIDE = "--inside"
END_S = 30  # for a recorder that was interrupted
RECORDER_KIB = 300 << 10
RECORDER_FDS = 1000

CONSUMER = """
import os, sys, pemapi
def held():
    with open("/proc/self/maps") as maps:
        return len(os.listdir("/proc/self/fd")), sum(1 for line in maps)
for line in sys.stdin:
    with pemapi.Session() as session:
        session.attach(pemapi.Context())
        session.poll(1000)
    print(*held(), flush=True)
"""


def as_user(uid):
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]


def tree(folder):
    """All that a folder of root's is: path, owner, mode, times, content."""
    found = {}
    for path, folders, files in os.walk(folder):
        for name in ["."] + folders + files:
            full = os.path.join(path, name)
            st = os.lstat(full)
            text = b""
            if stat.S_ISREG(st.st_mode):
                with open(full, "rb") as file:
                    text = file.read()
            found[os.path.relpath(full, folder)] = (st.st_uid, st.st_gid, st.st_mode, st.st_mtime_ns, hashlib.sha256(text).hexdigest())
    return found


def processes(name):
    """Processes by that name which have not ended."""
    found = []
    for pid in os.listdir("/proc"):
        try:
            if pid.isdigit():
                with open("/proc/%s/stat" % pid, encoding="latin-1") as file:
                    text = file.read()
                if "(%s)" % name in text and text.rpartition(")")[2].split()[0] != "Z":
                    found.append(int(pid))
        except OSError:
            pass
    return found


def stop(child):
    """End a process; what it said on its standard error, if that is read here."""
    if child.poll() is None:
        child.kill()
    return child.communicate()


class Fuzz:
    """The stage, and what went wrong."""

    def __init__(self, folder):
        os.chmod(folder, 0o755)
        self.folder = folder
        self.dice = random.Random(FUZZ_SEED)
        self.wrong, self.rounds, self.ticks, self.done = [], 0, 0, {}
        self.ticks_there = 0  # in public folders
        self.model = "model-00000000-%d" % HONEST
        self.most = [0, 0]  # KiB and descriptors of a recorder
        for name, source in (("libpem.so.1", "lib/libpem.so.1"), ("asked", "programs/asked")):
            shutil.copy(os.path.join(BUILD, source), os.path.join(folder, name))
        shutil.copy(os.path.join(HERE, "hostile_user.py"), folder)
        self.canary = os.path.join(folder, "canary")
        os.makedirs(self.canary + "/session-1-0/below")
        for name in "keep", "config", "control-1-0", "session-1-0/pool-1-1", "session-1-0/config":
            with open(os.path.join(self.canary, name), "w", encoding="ascii") as file:
                file.write("root's %s\n" % name)
        self.was = tree(self.canary)
        self.env = dict(os.environ, PEM_RUNTIME_DIR=os.path.join(folder, "ours"), PEM_SPEC_PATH=os.path.join(ROOT, "tests", "programs"),
                        PYTHONPATH=os.path.join(BUILD, "python"))
        self.honest = subprocess.Popen(as_user(HONEST) + self.asked(), env=self.env_of(HONEST), cwd="/", stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True, bufsize=1)
        self.wait_ready()
        self.consumer = subprocess.Popen([sys.executable, "-c", CONSUMER], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True, bufsize=1)
        self.held = []
        self.ours = {str(self.consumer.pid)}  # who has sessions
        self.said = {}  # by root's commands of this round

    def asked(self):
        return ["env", "LD_PRELOAD=" + os.path.join(self.folder, "libpem.so.1"), os.path.join(self.folder, "asked")]

    def runtime(self, uid):
        return os.path.join(self.folder, "theirs-%d" % uid)

    def env_of(self, uid):
        path = self.runtime(uid)
        if not os.path.exists(path):
            os.mkdir(path, 0o700)
            os.chown(path, uid, uid)
        env = dict(os.environ, PEM_RUNTIME_DIR=path)
        for name in "XDG_RUNTIME_DIR", "PEM_SESSION":
            env.pop(name, None)
        return env

    def say(self, what):
        self.wrong.append(what)
        print("WRONG round %d: %s" % (self.rounds, what), flush=True)

    # --- the user who does no harm ---

    def wait_ready(self):
        line = ""
        while line != "ready\n":
            line = self.honest.stdout.readline()
            if not line:
                raise SystemExit("the honest user's program ended")

    def tick(self, count):
        """None of this may wait for anybody hostile."""
        began = time.monotonic()
        self.honest.stdin.write("tick %d\n" % count)
        self.wait_ready()
        self.ticks += count
        if time.monotonic() - began > 10:
            self.say("the honest user's program took %.1f s for %d events" % (time.monotonic() - began, count))

    def is_served(self, recorder):
        runtime = self.runtime(HONEST)
        for name in os.listdir(runtime):
            if name.startswith("control-"):
                with open(os.path.join(runtime, name), "rb") as file:
                    return b"session-%d-" % recorder.pid in file.read(4096)
        return False

    # --- root ---

    def look(self, recorder):
        """What the recorder holds."""
        try:
            with open("/proc/%d/status" % recorder.pid, encoding="latin-1") as file:
                status = dict(line.split(":", 1) for line in file)
            held = int(status.get("VmHWM", "0").split()[0]), len(os.listdir("/proc/%d/fd" % recorder.pid))
        except OSError:
            return
        self.most = [max(pair) for pair in zip(self.most, held)]
        if held[0] > RECORDER_KIB:
            self.say("the recorder has had %d KiB of memory" % held[0])
        if held[1] > RECORDER_FDS:
            self.say("the recorder has %d descriptors" % held[1])

    def observe(self, *command):
        """A command of root's beside the recorder, for two seconds."""
        child = subprocess.Popen([PEM, *command], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 text=True, errors="replace")
        self.ours.add(str(child.pid))
        try:
            err = child.communicate(timeout=2)[1]
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
            try:
                err = child.communicate(timeout=END_S)[1]
            except subprocess.TimeoutExpired:
                err = stop(child)[1]
                self.say("pem %s did not end within %d s" % (command[0], END_S))
        # It may have been interrupted before it could handle that.
        if child.returncode not in (0, 4, -signal.SIGINT):
            self.say("pem %s: status %d: %s" % (command[0], child.returncode, err[-2000:]))
        self.said[command[0]] = err[-2000:]
        self.note("pem " + command[0])

    def note(self, what, count=1):
        self.done[what] = self.done.get(what, 0) + count

    def check_trace(self, trace, wanted):
        """
        The honest user's events are all there, once, and the books of their processes balance. wanted: for each process, the number
        before its first one and of its last one.
        """
        table = trace + ".csv"
        for command, allowed in ([PEM, "report", "--json", trace], (0, 4)), ([PEM, "export", "--to", "csv", trace, "-o", table], (0,)):
            done = subprocess.run(command, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, check=False)
            if done.returncode not in allowed:
                return self.say("pem %s: status %d: %s" % (command[1], done.returncode, done.stderr.decode("utf-8", "replace")[-2000:]))
        numbers = {pid: [] for pid in wanted}
        with open(table, encoding="utf-8", errors="replace", newline="") as text:
            for row in csv.DictReader(text):
                if int(row["pid"] or 0) in numbers:
                    numbers[int(row["pid"])].append(int(row["number"]))
        for pid, (first, last) in wanted.items():
            if sorted(numbers[pid]) != list(range(first + 1, last + 1)):
                missing = sorted(set(range(first + 1, last + 1)) - set(numbers[pid]))
                self.say("%d events of the honest user's process %d are recorded of %d from %d; missing: %d to %d" % (
                    len(numbers[pid]), pid, last - first, first + 1, missing[0] if missing else 0, missing[-1] if missing else 0))
        with open(trace + "/.pem/balance", encoding="latin-1") as text:
            pid = None
            for cells in (line.rstrip("\n").split("\t") for line in text):
                pid = cells[1] if cells[0] == "producer" else pid
                if cells[0] == "event" and pid in map(str, wanted) and cells[2:4] != [cells[3], cells[2]]:
                    self.say("the honest user's balance: %r" % cells)

    def check_files(self):
        now = tree(self.canary)
        if now != self.was:
            self.say("files of root's changed: %r" % sorted(set(now.items()) ^ set(self.was.items())))
        for uid in HOSTILE:
            for path, folders, files in os.walk(self.runtime(uid)):
                for name in folders + files:
                    if os.lstat(os.path.join(path, name)).st_uid != uid:
                        self.say("'%s' in user %d's folder is of user %d" % (name, uid, os.lstat(os.path.join(path, name)).st_uid))
        # Root's sessions outside of these namespaces find this folder, too; they are not asked about.
        left = {name: os.listdir(os.path.join(self.runtime(HONEST), name)) for name in os.listdir(self.runtime(HONEST))
                if name.startswith("session-") and name.split("-")[1] in self.ours}
        if left:
            self.say("left in the honest user's folder: %r; said: %r" % (left, self.said))

    # --- rounds ---

    def attack(self, seconds):
        """The hostile users' processes."""
        started = []
        for uid in HOSTILE + (HOSTILE[0],):
            # The second of the first user's is in namespaces of its own.
            seed = self.dice.getrandbits(30) * 2 + (len(started) < 2)
            started.append(subprocess.Popen(
                as_user(uid) + [sys.executable, os.path.join(self.folder, "hostile_user.py"), self.runtime(uid), self.canary,
                                str(self.honest.pid), str(seed), str(seconds), *self.asked()],
                env=self.env_of(uid), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"))
        return started

    def round(self, seconds):
        self.rounds += 1
        self.said = {}
        trace = os.path.join(self.folder, "trace-%d" % self.rounds)
        early, during_end = self.dice.random() < 0.5, self.dice.random() < 0.5
        hostile = self.attack(seconds + during_end) if early else []
        if early:
            time.sleep(0.3)
        recorder = subprocess.Popen([PEM, "record", "-q", "--no-libc", "-e", EVENT, "-o", trace, "-a"], env=self.env,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        self.ours.add(str(recorder.pid))
        said = []
        reader = threading.Thread(target=lambda: said.append(recorder.stderr.read()))
        reader.start()
        limit = time.monotonic() + END_S
        while not self.is_served(recorder) and recorder.poll() is None and time.monotonic() < limit:
            time.sleep(0.005)
        if not self.is_served(recorder):
            self.say("the honest user's program was not attached to within %d s" % END_S)
        hostile = hostile or self.attack(seconds + during_end)
        first, end = self.ticks, time.monotonic() + seconds
        beside = threading.Thread(target=self.observe, args=(
            ("stat", "-e", EVENT, "-a") if self.rounds % 2 else ("top", "--once", "--json", "-i", "300", "-e", EVENT, "-a")))
        beside.start()
        self.consumer.stdin.write("again\n")
        while time.monotonic() < end and recorder.poll() is None:
            self.tick(self.dice.randrange(1, 200))
            self.look(recorder)
            time.sleep(0.02)
        self.end_recorder(recorder)
        beside.join()
        for one in hostile:
            self.end_hostile(one, 5)
        reader.join()
        self.said["record"] = "".join(said)[-2000:]
        self.check_end(recorder, "".join(said), trace, {self.honest.pid: (first, self.ticks)})
        line = self.consumer.stdout.readline()
        if line:
            self.held.append(tuple(map(int, line.split())))
        else:
            self.say("the consumer ended: %s" % stop(self.consumer)[1])
        left = processes("pem-confined")
        if left:
            self.say("helpers are left: %r" % left)
        self.check_files()
        self.clean(trace)

    # --- rounds in the public folder ---

    def script(self, seconds):
        """Of root's command: tells the folder, starts the hostile users' processes, and the honest user's, which reads what it is to do."""
        lines = ["exec 3<&0", "F=${PEM_SESSION##*:}", "echo $F"]
        for i, uid in enumerate(HOSTILE + (HOSTILE[0],)):
            words = self.own_runtime(uid) + as_user(uid) + [sys.executable, os.path.join(self.folder, "hostile_user.py"), "--public", "$F", self.canary, self.model,
                                    str(self.dice.getrandbits(30)), str(seconds), *self.asked()]
            lines.append("%s >%s/hostile-%d 2>&1 </dev/null &" % (" ".join(words), self.folder, i))
        return "\n".join(lines + [" ".join(self.own_runtime(HONEST) + as_user(HONEST) + self.asked()) + " <&3", "wait"])

    def own_runtime(self, uid):
        return ["env", "PEM_RUNTIME_DIR=" + self.env_of(uid)["PEM_RUNTIME_DIR"]]

    def ask(self, recorder, word, count):
        """The honest user's program in the public folder, or a child of it, raises events: the process's number."""
        recorder.stdin.write("%s %d\n" % (word, count))
        while True:
            line = recorder.stdout.readline()
            if not line:
                return None
            if line != "ready\n":
                return int(line.split()[0])

    def public_round(self, seconds):
        self.rounds += 1
        trace = os.path.join(self.folder, "trace-%d" % self.rounds)
        with open(os.path.join(self.folder, "said"), "w+", encoding="utf-8", errors="replace") as said:
            recorder = subprocess.Popen([PEM, "record", "-q", "--no-libc", "-e", EVENT, "-o", trace, "--", "sh", "-c", self.script(seconds)],
                                        env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, bufsize=1)
            self.ours.add(str(recorder.pid))
            public = recorder.stdout.readline().strip()
            wanted, raised, end = {}, 0, time.monotonic() + seconds
            while time.monotonic() < end:
                word, count = self.dice.choice(("tick", "tick", "tick", "fork", "spawn")), self.dice.randrange(1, 200)
                began = time.monotonic()
                pid = self.ask(recorder, word, count)
                if pid is None:
                    self.say("the honest user's program in the public folder ended")
                    break
                if time.monotonic() - began > 10:
                    self.say("the honest user's program took %.1f s for %d events" % (time.monotonic() - began, count))
                # A child of fork counts on from where its parent was, a new image from nothing.
                first = raised if word == "fork" else 0
                raised += count if word == "tick" else 0
                wanted[pid] = (0, raised) if word == "tick" else (first, first + count)
                self.ticks_there += count
                self.look(recorder)
                self.model = self.find_model(public) or self.model
                time.sleep(0.02)
            recorder.stdin.close()
            try:
                recorder.wait(END_S)
            except subprocess.TimeoutExpired:
                self.say("the recorder of a command did not end within %d s" % END_S)
                recorder.kill()
                recorder.wait()
            recorder.stdout.close()
            said.seek(0)
            self.check_end(recorder, said.read(), trace, wanted)
        self.check_public(public)
        self.check_files()
        self.clean(trace)

    def find_model(self, public):
        """The name of the text that describes the honest user's events, which hostile ones shall know."""
        names = [name for name in os.listdir(public) if name.startswith("model-") and name.endswith("-%d" % HONEST)]
        return names[0] if len(names) == 1 else None

    def check_public(self, public):
        """It is gone; or, where a folder in it was filled, closed."""
        for i in range(len(HOSTILE) + 1):
            with open(os.path.join(self.folder, "hostile-%d" % i), encoding="utf-8", errors="replace") as file:
                out = file.read()
            if all("=" in word for word in out.split()):
                for name, count in (word.split("=") for word in out.split()):
                    self.note("public " + name, int(count))
            else:
                self.say("hostile_user.py itself: " + out[-2000:])
        if os.path.lexists(public):
            self.say("'%s' is left" % public)
        if os.path.lexists(public + ".gone"):
            st = os.lstat(public + ".gone")
            if (st.st_uid, stat.S_IMODE(st.st_mode)) != (0, 0o700):
                self.say("'%s.gone' is of user %d, mode %o" % (public, st.st_uid, st.st_mode))
            shutil.rmtree(public + ".gone")

    def end_recorder(self, recorder):
        if recorder.poll() is not None:
            return
        recorder.send_signal(signal.SIGINT)
        try:
            recorder.wait(END_S)
        except subprocess.TimeoutExpired:
            self.say("the recorder did not end within %d s" % END_S)
            recorder.kill()
            recorder.wait()

    def end_hostile(self, one, seconds):
        try:
            out, err = one.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            out, err = stop(one)
        for name, count in (word.split("=") for word in out.split()):
            self.note(name, int(count))
        if "Traceback" in err:
            self.say("hostile_user.py itself: " + err[-2000:])

    def check_end(self, recorder, said, trace, wanted):
        self.note("pem record")
        if recorder.returncode not in (0, 4) or (recorder.returncode == 4 and not said.strip()):
            self.say("pem record: status %d: %s" % (recorder.returncode, said[-3000:]))
        if os.path.isdir(trace):
            self.check_trace(trace, wanted)
        else:
            self.say("no trace: %s" % said[-3000:])

    def clean(self, trace):
        if not self.wrong:
            shutil.rmtree(trace, ignore_errors=True)
        for uid in HOSTILE:
            subprocess.run(["chmod", "-R", "u+rwx", self.runtime(uid)], stderr=subprocess.DEVNULL, check=False)
            shutil.rmtree(self.runtime(uid))

    def end(self):
        stop(self.consumer)
        # Memory of the library's own comes with the first sessions.
        for what, now, before in zip(("descriptors", "mappings"), self.held[-1], self.held[0]):
            if now > before + (16 if what == "mappings" else 0):
                self.say("a consumer's %s after each session: %r" % (what, self.held))
        stop(self.honest)


def inside():
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="pem-folders-", dir=memory) as folder:
        fuzz = Fuzz(folder)
        end = time.monotonic() + FUZZ_S
        while time.monotonic() < end and len(fuzz.wrong) < 5:
            kind = fuzz.public_round if fuzz.rounds % 3 == 1 else fuzz.round
            kind(min(4, max(1, end - time.monotonic())))
        fuzz.end()
        if fuzz.wrong and os.environ.get("FUZZ_KEEP"):
            shutil.copytree(folder, os.environ["FUZZ_KEEP"], symlinks=True, ignore=shutil.ignore_patterns("theirs-*"))
    print(", ".join("%s %d" % pair for pair in sorted(fuzz.done.items())))
    print("%d rounds, %d events of the honest user's, %d in public folders; a recorder had %d KiB and %d descriptors at most" % (
        fuzz.rounds, fuzz.ticks, fuzz.ticks_there, *fuzz.most))
    print("\n%d passed, %d failed, 0 skipped" % (fuzz.rounds - bool(fuzz.wrong), len(fuzz.wrong)))
    return 1 if fuzz.wrong else 0


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it was ignored, and would be by all below
    if sys.argv[1:] == [INSIDE]:
        return inside()
    namespaces = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() or subprocess.run(namespaces + ["true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("skip: acting as several users, in namespaces, needs root\n\n0 passed, 0 failed, 1 skipped")
        return 0
    print("FUZZ_SEED=%d" % FUZZ_SEED, flush=True)
    # A shell as the first process: it waits for whoever has lost his parent.
    return subprocess.run(namespaces + ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, os.path.abspath(__file__), INSIDE],
                          env=dict(os.environ, FUZZ_SEED=str(FUZZ_SEED)), check=False).returncode


sys.exit(main())
