# SPDX-License-Identifier: MIT
"""
runtime_sweep.py - what a killed consumer leaves in the runtime folder: nothing once another comes, but what can be recovered
"""
import os
import signal
import subprocess
import tempfile
import time

from tap import PEM, equal, run, run_all, test


def leave(folder, words):
    """The session folders that a killed pem leaves, once another has come and gone."""
    env = dict(os.environ, PEM_RUNTIME_DIR=os.path.join(folder, "runtime"))
    consumer = subprocess.Popen([PEM, *words, "--", "sleep", "60"], env=env, start_new_session=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    runtime = env["PEM_RUNTIME_DIR"]
    sessions = lambda: [name for name in (os.listdir(runtime) if os.path.isdir(runtime) else [])
                        if name.startswith("session-") and os.path.exists(os.path.join(runtime, name, "config"))]
    while time.monotonic() < until and not (sessions() and ready(folder, words)):
        time.sleep(0.02)
    assert sessions(), "it made no session"
    os.killpg(consumer.pid, signal.SIGKILL)
    consumer.wait()
    equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "the next one")
    return sessions()


def wait_for(condition):
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)


def ready(folder, words):
    return words[0] == "stat" or os.path.exists(os.path.join(folder, "trace", ".pem", "session"))


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


run_all()
