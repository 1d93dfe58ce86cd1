# SPDX-License-Identifier: MIT
"""
modes.py - the ways in which an entry of the zoo is run, and what must hold of each

Not here: processes and time limits (processes.py), which entries are run and the table (run).

plain: alone. record: under pem record with all application events. attach: under pem run, while recorders and counters attach and
detach one after the other. budget: under pem record with a budget.
"""
import glob
import hashlib
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time

import processes
from zoo import HELPERS, NOBODY

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.path.join(ROOT, os.environ.get("B") or "build"))
PEM = os.path.join(BUILD, "bin", "pem")
ALL = "APP::*"
MODES = "record", "attach", "budget"
PATIENCE = 4  # how much longer than plain a watched program may take, before it hangs
ATTACHED_ENOUGH = 4  # a program too short for so many consumers is run twice
ATTACH_LIMIT_S = 10
CONSUMER_LIMIT_S = 60
SEEN = 60  # events of a program that is seen
ENDED_BY_INTERRUPT = 0, -signal.SIGINT, 130


class Failure(Exception):
    """What is wrong, and in more lines how it shows."""


class Skipped(Exception):
    """Why an entry can't be run here."""


def free_ports(count):
    """Ports of 127.0.0.1 that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Place:
    """The folders of one entry, at the same paths in each mode, and the environment of its runs."""

    def __init__(self, entry):
        self.entry = entry
        self.top = tempfile.mkdtemp(prefix="pem-zoo-")
        os.chmod(self.top, 0o755)
        # Shared memory is in memory, as pem has it without this variable: thousands of processes would fill a disk.
        self.memory = tempfile.mkdtemp(prefix="pem-zoo-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        os.chmod(self.memory, 0o755)
        self.runtime = os.path.join(self.memory, "runtime")
        self.user = NOBODY if entry.user and os.geteuid() == 0 else None
        self.work, self.made, self.scratch = [os.path.join(self.top, name) for name in ("work", "made", "scratch")]
        for folder in (self.made, self.scratch):
            self._folder(folder)
        self.ports = free_ports(2)

    def _folder(self, path):
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path, 0o755)
        if self.user is not None:
            os.chown(path, self.user, self.user)

    def fresh(self):
        """Empty the folders of a run; its environment, without anything of the caller's session."""
        home, temporary = [os.path.join(self.top, name) for name in ("home", "tmp")]
        for folder in (self.work, home, temporary, self.runtime):
            self._folder(folder)
        os.chmod(temporary, 0o1777)
        os.chmod(self.runtime, 0o700)
        env = {name: os.environ[name] for name in ("TERM", "RUSTUP_HOME", "CARGO_HOME") if name in os.environ}
        for name, folder in (("RUSTUP_HOME", "~/.rustup"), ("CARGO_HOME", "~/.cargo")):
            if os.path.isdir(os.path.expanduser(folder)):
                env.setdefault(name, os.path.expanduser(folder))
        env.update(HOME=home, TMPDIR=temporary, MADE=self.made, PORT=str(self.ports[0]), PORT2=str(self.ports[1]), LC_ALL="C.UTF-8",
                   NO_COLOR="1", USER=pwd.getpwuid(self.user or os.geteuid()).pw_name, PEM_RUNTIME_DIR=self.runtime,
                   PATH=os.pathsep.join([os.environ.get("PATH") or "/usr/bin:/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"]))
        env.update(self.entry.env)
        return env

    def trace(self, name):
        """A path for a trace, where the run's user may write."""
        return os.path.join(self.scratch, name)

    def remove(self):
        shutil.rmtree(self.top, ignore_errors=True)
        shutil.rmtree(self.memory, ignore_errors=True)


def files_of(folder):
    """All that lies in a folder: path -> (kind and mode, size, digest or target)."""
    found = {}
    for parent, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(parent, name)
            st, digest = os.lstat(path), ""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
            elif stat.S_ISLNK(st.st_mode):
                digest = os.readlink(path)
            found[os.path.relpath(path, folder)] = (oct(st.st_mode), st.st_size if digest else 0, digest)
    return found


class Outcome:
    """What must be the same: status, output, errors without pem's own sentences, files; and pem's sentences."""

    def __init__(self, done, folder, tolerates):
        self.status, self.out, self.left = done.status, done.out, done.left
        self.said = [line for line in done.err.splitlines() if line.startswith("pem: ")]
        self.err = "\n".join(line for line in done.err.splitlines()
                             if not line.startswith("pem: ") and not (tolerates and re.search(tolerates, line)))
        self.files = files_of(folder)

    def difference(self, other):
        """How another outcome differs from this one, or ''."""
        lines = []
        if self.status != other.status:
            lines.append("exit status %d instead of %d" % (other.status, self.status))
        for what, mine, theirs in (("output", self.out, other.out), ("errors", self.err, other.err)):
            if mine != theirs:
                lines.append("standard %s differs:" % what)
                lines += first_difference(mine, theirs)
        for path in sorted(set(self.files) | set(other.files)):
            mine, theirs = self.files.get(path), other.files.get(path)
            if mine != theirs:
                lines.append("file %s: %s instead of %s" % (path, theirs or "missing", mine or "missing"))
        if not self.left and other.left:
            lines.append("processes outlived the command: " + "; ".join(other.left))
        return "\n".join(lines[:40])


def first_difference(mine, theirs):
    """The lines around the first difference of two texts."""
    mine, theirs = mine.splitlines(), theirs.splitlines()
    at = next((i for i, pair in enumerate(zip(mine, theirs)) if pair[0] != pair[1]), min(len(mine), len(theirs)))
    return (["  plain:   " + line[:300] for line in mine[at:at + 5]] or ["  plain:   (ended)"]) + \
           (["  watched: " + line[:300] for line in theirs[at:at + 10]] or ["  watched: (ended)"])


def run_script(place, prefix=(), limit_s=None, during=None, env=None):
    """Run the entry's script behind a prefix such as pem record; its outcome. env: of place.fresh(), if that was called."""
    entry = place.entry
    env = env or place.fresh()
    command = [os.path.join(place.made, entry.command)] if entry.command else ["bash", "-c", HELPERS + entry.script]
    done = processes.run([*prefix, *command], env, place.work, place.scratch,
                         limit_s or entry.limit_s, place.user, during)
    if done.hang:
        raise Failure("hang: %s\nwhat it had printed:\n%s%s" % (done.hang, done.out[-1500:], done.err[-1500:]))
    outcome = Outcome(done, place.work, entry.tolerates)
    outcome.took_s = done.took_s
    return outcome


def prepare(place):
    """Run the entry's prepare script, unwatched, in $MADE."""
    entry = place.entry
    if not entry.prepare:
        return
    done = processes.run(["bash", "-c", "set -eu -o pipefail\n" + entry.prepare], place.fresh(), place.made, place.scratch, 300,
                         place.user)
    text = (done.out + done.err).strip()
    if done.status == 77:
        raise Skipped(text.splitlines()[-1] if text else "its preparation says so")
    if done.status or done.hang:
        raise Failure("preparing it failed, with status %d\n%s" % (done.status, done.hang or text[-2000:]))


def report_of(place, trace):
    """What pem report makes of a trace, as an object; Failure unless everything is accounted for, or as the entry says."""
    entry = place.entry
    done = processes.start([PEM, "report", "--json", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, said = [text.decode("utf-8", "replace") for text in done.communicate(timeout=300)]
    except subprocess.TimeoutExpired:
        done.kill()
        done.communicate()
        raise Failure("pem report takes more than 300 s") from None
    if done.returncode not in (0, 4):
        raise Failure("pem report: status %d: %s" % (done.returncode, said))
    told = json.loads(out)
    count = told["events"]
    if count["produced"] != count["delivered"] + count["discarded"] + count["overwritten"] and done.returncode == 0:
        raise Failure("pem report: status 0 of a trace that does not balance: %r" % count)
    if done.returncode == 4:
        why = "%s %s" % (told["info"].get("verdict"), said)
        if not entry.unbalanced or not re.search(entry.unbalanced, why):
            raise Failure("pem report: status 4: %s" % why)
    return told


def check_seen(entry, told, said):
    """
    Were those recorded that must be, and is it said of those that can't? A child raises some events as its parent's program,
    before it becomes the one after which it is called.
    """
    raised = {}
    for process in told["processes"]:
        raised[process["name"]] = raised.get(process["name"], 0) + process["layers"].get("APP", 0)
    for name in entry.sees:
        if raised.get(name[:15], 0) < SEEN:
            raise Failure("hardly any application event of %s was recorded; processes with some: %s; pem said: %s" %
                          (name, ", ".join(sorted(n for n in raised if raised[n])), " ".join(said) or "nothing"))
    for name in entry.unseen:
        if raised.get(name, 0) >= SEEN:
            raise Failure("%d application events of %s, which can't be seen" % (raised[name], name))
    if entry.says and not any(re.search(entry.says, line) for line in said):
        raise Failure("pem does not say '%s', but: %s" % (entry.says, " ".join(said) or "nothing"))


def same(place, plain, watched):
    """Failure unless a watched run's outcome is the plain one's."""
    difference = plain.difference(watched)
    if difference:
        again = plain.difference(run_script(place))
        hint = "; another plain run differs, too: the entry has to leave it out:\n" + again if again else ""
        raise Failure("not the same: %s%s\npem said: %s" % (difference, hint, "\n".join(watched.said) or "nothing"))


def recorded(place, plain, options):
    """Under pem record with these options."""
    entry, trace = place.entry, place.trace("trace")
    shutil.rmtree(trace, ignore_errors=True)
    limit_s = entry.limit_s + PATIENCE * plain.took_s
    watched = run_script(place, [PEM, "record", "-e", ALL, "-o", trace, *options, "--"], limit_s)
    try:
        same(place, plain, watched)
        told = report_of(place, trace)
    finally:
        shutil.rmtree(trace, ignore_errors=True)
    if not options:
        check_seen(entry, told, watched.said)
    return "%s events" % format(told["events"]["produced"], ",")


class Consumers:
    """Those that attach to one program and detach again, one after the other: the first before it begins, then as long as it runs."""

    def __init__(self, place):
        self.place, self.wrong, self.met, self.number = place, [], 0, 0

    def run(self, plain, share):
        """Run the program so; the first consumer goes after this share of the time that it took alone."""
        self.over, env = threading.Event(), self.place.fresh()
        first = self._attach(all_programs=True)
        self._until_attached(first, env["PEM_RUNTIME_DIR"])

        def during(child):
            thread = threading.Thread(target=self._loop, args=(first, child, plain.took_s * share))
            thread.start()

            def finish():
                self.over.set()
                thread.join()
            return finish
        return run_script(self.place, [PEM, "run", "--"], self.place.entry.limit_s + PATIENCE * plain.took_s, during, env)

    def _attach(self, pid=None, all_programs=False):
        """Start a consumer: pem stat and pem record by turns."""
        self.number += 1
        trace = self.place.trace("attached-%d" % self.number)
        verb = ["record", "-q", "-e", ALL, "-o", trace] if self.number % 2 == 0 else ["stat", "-q", "-e", ALL]
        command = [PEM, *verb, *(["-a"] if all_programs else ["-p", str(pid)])]
        user = self.place.user
        more = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        env = {"PEM_RUNTIME_DIR": self.place.runtime, "PATH": os.environ.get("PATH", ""), "HOME": "/"}
        with open(os.path.join(self.place.scratch, "consumer"), "wb") as said:
            child = processes.start(command, env=env, cwd=self.place.scratch, stdout=said, stderr=said, **more)
        child.command, child.trace = " ".join(command), trace
        return child

    @staticmethod
    def _until_attached(child, runtime):
        """Wait until a consumer has its session's folder."""
        deadline = time.monotonic() + ATTACH_LIMIT_S
        while child.poll() is None and time.monotonic() < deadline and not glob.glob(runtime + "/session-*"):
            time.sleep(0.01)

    def _loop(self, first, program, seconds):
        """Detach the first consumer after so many seconds; then others, for some tenths of a second each."""
        try:
            self.over.wait(seconds)
            self._detach(first)
            while not self.over.wait(0.02):
                consumer = self._attach(program.pid, self.number % 5 == 4)
                self._until_attached(consumer, self.place.runtime)
                self.over.wait(0.1 + 0.1 * (self.number % 4))
                self._detach(consumer)
        except Failure as failure:
            self.wrong.append(str(failure))

    def _detach(self, child):
        """Interrupt a consumer; Failure unless it ends well, and its trace balances."""
        ended = self.over.is_set()
        try:
            os.kill(child.pid, signal.SIGINT)
        except ProcessLookupError:
            pass
        try:
            child.wait(CONSUMER_LIMIT_S)
        except subprocess.TimeoutExpired:
            text = processes.stacks([child.pid])
            child.kill()
            child.wait()
            raise Failure("%s does not end when interrupted\n%s" % (child.command, text)) from None
        try:
            # A program that has ended can't be attached to, and one that ends meanwhile may have raised nothing.
            if child.returncode not in ENDED_BY_INTERRUPT and not ((ended or self.over.is_set()) and child.returncode in (1, 2)):
                with open(os.path.join(self.place.scratch, "consumer"), encoding="utf-8", errors="replace") as file:
                    raise Failure("%s: status %d: %s" % (child.command, child.returncode, file.read()[-1500:]))
            if os.path.exists(os.path.join(child.trace, ".pem", "balance")):
                report_of(self.place, child.trace)
        finally:
            shutil.rmtree(child.trace, ignore_errors=True)
        self.met += 1


def attached(place, plain):
    """Under pem run, with consumers meanwhile: a short program twice, so that the first one detaches early, and late."""
    consumers = Consumers(place)
    for share in 0.3, 0.8:
        watched = consumers.run(plain, share)
        if consumers.wrong:
            raise Failure(consumers.wrong[0])
        same(place, plain, watched)
        if consumers.met >= ATTACHED_ENOUGH:
            break
    return "%d consumers" % consumers.met


def run_mode(place, plain, mode):
    """Run an entry in one mode, after the plain run; a few words on it. Failure says what is wrong."""
    if mode == "attach":
        return attached(place, plain)
    return recorded(place, plain, ["--budget", "1%"] if mode == "budget" else [])
