# SPDX-License-Identifier: MIT
"""
tap.py - what an end-to-end test is written with

Not here: finding and counting test programs (tests/run).

A test program looks like this and emits TAP 13:

	from tap import PEM, equal, run, run_all, test

	@test
	def list_names_the_layers():
		"list names the layer of every event"
		rc, out, err = run([PEM, "list"])
		equal(rc, 0, "exit status")

	run_all()

A test fails by raising anything (assert, equal); it skips by calling skip(reason), at any point. By hand:
PYTHONPATH=tests:. B=build python3 tests/e2e/NAME.py
"""
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import room
from patience import Patience

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.abspath(os.path.join(ROOT, os.environ.get("B") or "build"))
PEM = os.path.join(BUILD, "bin", "pem")
CODEGEN = os.path.join(BUILD, "bin", "pem-codegen")
SAN = bool(os.environ.get("SAN"))  # the build under test carries sanitizers

_tests = []
_groups = set()  # process groups of commands under way
_folders = []


class Skip(Exception):
    """Raised by skip(); the runner prints its reason."""


class CommandTimeout(AssertionError):
    """A command outlived its limit and was killed."""


def test(function):
    """Register a test. Its docstring's first line, or else its name, is its description."""
    _tests.append(function)
    return function


def skip(reason):
    """End this test as skipped. reason: what is missing here, and what would change it."""
    raise Skip(reason)


def need(*tools):
    """Skip unless each of these commands is in PATH."""
    for tool in tools:
        if not shutil.which(tool):
            skip("%s is not installed" % tool)


OTHER_USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def need_reach():
    """Skip unless root can become another user, and that user can run pem: not in a tree below a closed folder."""
    need("setpriv")
    if os.geteuid():
        skip("needs root to become another user")
    if run(OTHER_USER + ["test", "-x", PEM])[0]:
        skip("%s can't be reached by other users" % PEM)


def runs(tool):
    """Does this compiler run? One that is only a front of others may need a HOME that it can write."""
    return shutil.which(tool) and not run([tool, "--version"])[0]


def need_mounts():
    """Skip unless a test can mount file systems in a namespace of its own. In a chroot / is no mount point."""
    need("unshare", "mount")
    rc, _, err = run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", tmp()])
    if rc:
        skip("no file system can be mounted here: " + err.strip())


def equal(got, wanted, what="value"):
    """Fail with both values if they differ."""
    if got != wanted:
        raise AssertionError("%s: got %r, wanted %r" % (what, got, wanted))


def tmp(parent=None):
    """A fresh folder of the running test, removed when the test ends."""
    folder = tempfile.mkdtemp(dir=parent, prefix="pem-test-")
    _folders.append(folder)
    return folder


class Child(subprocess.Popen):
    """
    The limits of wait and communicate are seconds of CPU of this test and its children, or of waiting. Past them the
    child's group is killed.
    """

    spent = None  # why the limit was reached

    def _patiently(self, call, timeout):
        over = threading.Event()

        def watch():
            patience = None
            while not over.wait(1):
                patience = patience or Patience(os.getpid(), timeout)
                self.spent = patience.spent()
                if self.spent:
                    _kill_group(self.pid)
                    return

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            result = call()
        finally:
            over.set()
            watcher.join()
        if self.spent:
            raise subprocess.TimeoutExpired(self.args, timeout, *(result if isinstance(result, tuple) else ()))
        return result

    def wait(self, timeout=None):
        return super().wait() if timeout is None else self._patiently(super().wait, timeout)

    def communicate(self, input=None, timeout=None):
        call = super().communicate
        return call(input) if timeout is None else self._patiently(lambda: call(input), timeout)


def start(command, env=None, **more):
    """
    subprocess.Popen in a process group of its own, which ends with this program. env is added to the
    environment; a value of None removes that variable. more goes to Popen.
    """
    child = Child(command, env=_environment(env), start_new_session=True, **more)
    _groups.add(child.pid)
    return child


def run(command, env=None, cwd=None, input=None, timeout=60, binary=False):
    """
    Run a command (a list) to its end: (exit status, stdout, stderr). A status below 0 is minus the signal. Output
    is text (undecodable bytes replaced) unless binary. Past timeout seconds of CPU, or of waiting, its group is killed and
    the test fails.
    """
    if isinstance(input, str):
        input = input.encode()
    child = start(command, env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                  stdin=subprocess.DEVNULL if input is None else subprocess.PIPE)
    try:
        out, err = child.communicate(input, timeout)
    except subprocess.TimeoutExpired as late:
        raise CommandTimeout("%s: still running after %s; stderr: %s" %
                             (" ".join(map(str, command)), child.spent, _text(late.stderr)[-500:])) from None
    finally:
        _groups.discard(child.pid)
    return (child.returncode, out, err) if binary else (child.returncode, _text(out), _text(err))


def parallel(function, *items):
    """What function makes of each item (of several lists: of the first of each, and so on), on all CPUs at once."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(function, *items))


def _text(data):
    return data.decode("utf-8", "replace")


def _environment(changes):
    env = dict(os.environ)
    for name, value in (changes or {}).items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


def _kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _clean():
    for group in list(_groups):
        _kill_group(group)
    _groups.clear()
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)


def _one(number, function):
    """Run one test; True unless it failed."""
    name = (function.__doc__ or function.__name__).strip().splitlines()[0].replace("#", "no.")
    try:
        function()
    except Skip as why:
        print("ok %d - %s # SKIP %s" % (number, name, why), flush=True)
        return True
    except Exception:
        print("not ok %d - %s" % (number, name))
        why = traceback.format_exc()
        # The test's own folders, which go now, may be what filled it.
        for line in room.lacking((tempfile.gettempdir(), "/dev/shm", BUILD), why) + why.splitlines():
            print("# " + line)
        sys.stdout.flush()
        return False
    finally:
        _clean()
    print("ok %d - %s" % (number, name), flush=True)
    return True


def run_all():
    """Run every registered test whose name or description contains T, emit TAP 13, exit 1 on a failure."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the runner's time limit: take the children along
    atexit.register(_clean)
    wanted = os.environ.get("T", "")
    tests = [t for t in _tests if wanted in t.__name__ or wanted in (t.__doc__ or "")]
    print("TAP version 13\n1..%d" % len(tests), flush=True)
    failed = sum(not _one(i + 1, t) for i, t in enumerate(tests))
    sys.exit(1 if failed else 0)
