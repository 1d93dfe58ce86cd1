# SPDX-License-Identifier: MIT
"""
runtime_sweep.py - what a killed consumer leaves in the runtime folder: nothing once another comes, but what can be recovered
"""
import os
import signal
import subprocess
import tempfile
import time

from tap import PEM, equal, need, run, run_all, skip, test


def leave(folder, words):
    """The session folders that a killed pem leaves, once another has come and gone."""
    env = dict(os.environ, PEM_RUNTIME_DIR=os.path.join(folder, "runtime"))
    consumer = subprocess.Popen([PEM, *words, "--", "sleep", "60"], env=env, start_new_session=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    runtime = env["PEM_RUNTIME_DIR"]
    sessions = lambda: [name for name in (os.listdir(runtime) if os.path.isdir(runtime) else [])
                        if name.startswith("session-") and os.path.exists(os.path.join(runtime, name, "config"))]
    made = lambda: any(is_complete(os.path.join(runtime, name, "config")) for name in sessions())
    while time.monotonic() < until and not (made() and ready(folder, words)):
        time.sleep(0.02)
    assert sessions(), "it made no session"
    os.killpg(consumer.pid, signal.SIGKILL)
    consumer.wait()
    equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "the next one")
    return sessions()


def is_complete(path):
    """Has a process written the head of its file? The magic number comes last."""
    try:
        with open(path, "rb") as file:
            return any(file.read(4))
    except FileNotFoundError:  # as that of pem itself, which becomes the command
        return False


def wait_for(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)


def ready(folder, words):
    """Is there what the session would be kept for? A log is nothing before a process has a pool."""
    pools = [name for _, _, names in os.walk(os.path.join(folder, "runtime")) for name in names if name.startswith("pool-")]
    return words[0] == "stat" or pools and os.path.exists(os.path.join(folder, "trace", ".pem", "session"))


@test
def statistics_are_swept_at_once():
    "a session without a log goes"
    with tempfile.TemporaryDirectory() as folder:
        equal(leave(folder, ["stat", "-e", "APP"]), [], "sessions left")


@test
def a_log_is_kept():
    "a session with a log stays, for it can be recovered"
    with tempfile.TemporaryDirectory() as folder:
        equal(len(leave(folder, ["record", "-q", "-e", "APP", "-o", os.path.join(folder, "trace")])), 1, "sessions left")


@test
def further_places_are_swept():
    "what a killed recorder left in the folder of a program that raised nothing goes, too"
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = (dict(os.environ, PEM_RUNTIME_DIR=os.path.join(folder, name)) for name in ("theirs", "ours"))
        target = subprocess.Popen([PEM, "run", "-n", "--", "sleep", "60"], env=theirs, start_new_session=True)
        sessions = lambda: [name for name in os.listdir(os.path.join(folder, "theirs")) if name.startswith("session-")
                            and os.path.exists(os.path.join(folder, "theirs", name, "config"))]
        control = lambda: os.path.isdir(os.path.join(folder, "theirs")) and os.listdir(os.path.join(folder, "theirs"))
        wait_for(control)
        recorder = subprocess.Popen([PEM, "record", "-q", "-e", "APP", "-o", os.path.join(folder, "trace"), "-p", str(target.pid)],
                                    env=ours, start_new_session=True, stderr=subprocess.DEVNULL)
        wait_for(lambda: sessions() and os.path.exists(os.path.join(folder, "trace", ".pem", "session")))
        recorder.kill()
        recorder.wait()
        equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=theirs)[0], 0, "the next one")
        left = sessions()
        os.killpg(target.pid, signal.SIGKILL)
        target.wait()
        equal(left, [], "sessions left")


def free_pid():
    """A number that no process here has, nor the next ones get: 50 below the greatest."""
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as text:
        pid = int(text.read()) - 50
    while os.path.exists("/proc/%d" % pid):
        pid -= 1
    return pid


@test
def control_files_of_the_dead_are_swept():
    "the control file of a process that was killed goes with the next consumer; one whose process lives stays"
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PEM_RUNTIME_DIR=folder)
        children = [subprocess.Popen([PEM, "run", "-n", "--", "sleep", "60"], env=env) for _ in range(2)]
        files = lambda pid: [name for name in os.listdir(folder) if name.startswith("control-%d-" % pid)]
        wait_for(lambda: all(any(is_complete(os.path.join(folder, name)) for name in files(child.pid)) for child in children))
        children[0].kill()
        children[0].wait()
        equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "the next one")
        left = [len(files(child.pid)) for child in children]
        children[1].kill()
        children[1].wait()
        equal(left, [0, 1], "control files left of the killed, and of the other")


@test
def other_pid_namespaces_keep_their_files():
    "the control file of a process in a container that shares the folder stays, though no process here has its number"
    need("unshare")
    pid = free_pid()
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PEM_RUNTIME_DIR=folder)
        # The shell is the container's first process; the next one gets the number.
        script = "echo %d >/proc/sys/kernel/ns_last_pid; %s run -n -- sleep 60 & wait" % (pid - 1, PEM)
        container = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script], env=env,
                                     stderr=subprocess.PIPE, text=True, start_new_session=True)
        files = lambda: [name for name in os.listdir(folder) if name.startswith("control-")]
        wait_for(lambda: any(is_complete(os.path.join(folder, name)) for name in files()) or container.poll() is not None)
        before = files()
        if not before:
            skip("no process with a chosen number in a pid namespace can be had here: " + container.stderr.read())
        try:
            equal(before, ["control-%d-0" % pid], "control files")
            equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "the next one")
            equal(files(), before, "control files left")
        finally:
            os.killpg(container.pid, signal.SIGKILL)
            container.wait()
            container.stderr.close()


@test
def what_is_being_made_stays():
    "files and folders that a process elsewhere is about to fill in are let be; after a minute they go"
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PEM_RUNTIME_DIR=folder)
        pid = free_pid()
        control, session = os.path.join(folder, "control-%d-0" % pid), os.path.join(folder, "session-%d-0" % pid)
        with open(control, "wb"):
            os.mkdir(session)
        equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "a consumer")
        assert os.path.exists(control) and os.path.exists(session), os.listdir(folder)
        for path in control, session:
            os.utime(path, (time.time() - 120, time.time() - 120))
        equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "the next one")
        equal(os.listdir(folder), [], "left")


run_all()
