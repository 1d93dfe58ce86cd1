# SPDX-License-Identifier: MIT
"""
standby_session.py - programs that are started in a session and raise none of its events: they make no files, join at the
first event that the session wants, and are found by later sessions
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from attached import Asked
from preload import compile_program, need_preload
from stage import until
from tap import BUILD, PEM, SAN, equal, run, run_all, skip, start, test, tmp

FORK = "APP::Program::Fork"
MALLOC = "APP::Libc::Malloc"
IDLE = os.path.join(BUILD, "programs", "idle")


def runtime_folder():
    """In memory: only there a program knows that no other session lives."""
    return tempfile.mkdtemp(dir="/dev/shm", prefix="pem-test-")


def pids_of(parent):
    with open("/proc/%d/task/%d/children" % (parent, parent), encoding="utf-8") as f:
        return [int(pid) for pid in f.read().split()]


class Started(Asked):
    """idle, as the command of a session."""

    def __init__(self, *options, verb="stat"):
        need_preload()
        self.runtime = runtime_folder()
        self.out = os.path.join(tmp(), "out")
        self.consumers = None
        self.child = start([PEM, verb, "-q", "-o", self.out, *options, "--", IDLE], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True, bufsize=1,
                           env={"PEM_RUNTIME_DIR": self.runtime, "LD_PRELOAD": None, "PEM_SESSION": None})
        self._until_ready()
        self.pid, = pids_of(self.child.pid)

    def files(self, of):
        return sorted(name for name in os.listdir(self.runtime) if name.startswith(of))

    def own(self):
        return self.files("control-%d-" % self.pid)

    def counts(self):
        """The count of each event, after the end."""
        self.end()
        equal(self.child.returncode, 0, "status")
        with open(self.out, encoding="utf-8") as f:
            return {e["name"]: e["count"] for e in json.load(f)["events"]}


def later_counter(started, *target):
    """pem stat of allocations of 77 bytes by what runs already."""
    counter = start([PEM, "stat", "--json", "-e", MALLOC, "--where", "size == 77", *target], text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PEM_RUNTIME_DIR": started.runtime})
    until(lambda: not started.files("standby-"), "the file is gone")
    return counter


def end(counter):
    counter.send_signal(signal.SIGINT)
    out, err = counter.communicate(timeout=60)
    equal(counter.returncode, 0, "status, with " + err)
    return {e["name"]: e["count"] for e in json.loads(out)["events"]}


@test
def first_event_joins():
    "a program makes no file until it raises an event that the session wants, and that event is counted"
    idle = Started("--json", "-e", FORK)
    idle.ask("alloc 1000")
    equal((idle.own(), len(idle.files("standby-"))), ([], 1), "files before the event")
    idle.ask("keep")
    equal(len(idle.own()), 1, "files after it")
    equal(idle.counts(), {FORK: 1}, "counts")
    equal(os.listdir(idle.runtime), [], "what is left")


@test
def children_join():
    "so does a child of fork, for itself"
    idle = Started("--json", "-e", "APP::Program::ForkChild")
    equal(idle.own(), [], "files before the fork")
    idle.ask("keep")
    equal(idle.own(), [], "files of the parent")
    child, = pids_of(idle.pid)
    until(lambda: idle.files("control-%d-" % child), "files of the child")
    equal(idle.counts(), {"APP::Program::ForkChild": 1}, "counts")


@test
def without_an_event():
    "a record of a program that raised none of its events balances, and is empty"
    idle = Started("-e", "APP::Socket::*", verb="record")
    equal(idle.own(), [], "files")
    idle.end()
    equal(idle.child.returncode, 0, "status")
    rc, out, err = run([PEM, "report", "--json", idle.out])
    equal((rc, json.loads(out)["events"]["delivered"]), (0, 0), "records, with " + err)


@test
def later_session():
    "a later session that attaches finds it, and both count what they want"
    idle = Started("--json", "-e", FORK)
    counter = later_counter(idle, "-p", str(idle.pid))
    idle.ask("alloc 1")
    until(idle.own, "the program's control file")
    time.sleep(0.2)
    idle.ask("alloc 500")
    idle.ask("keep")
    count = end(counter)[MALLOC]
    assert 500 <= count <= 501, count
    equal(idle.counts(), {FORK: 1}, "counts")


@test
def beside_another():
    "while another session lives, a program joins as it starts"
    idle = Started("--json", "-e", FORK)
    os.mkdir(os.path.join(idle.runtime, "session-1-0"))
    later = start([PEM, "stat", "-q", "--json", "-o", os.devnull, "-e", FORK, "--", IDLE], stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, text=True, env={"PEM_RUNTIME_DIR": idle.runtime})
    equal(later.stdout.readline(), "ready\n", "the other program")
    pid, = pids_of(later.pid)
    equal(len(idle.files("control-%d-" % pid)), 1, "its files")
    later.communicate("")
    equal(idle.counts(), {FORK: 0}, "counts")


@test
def survives_its_session():
    "a program that outlives its session is woken at its end, and later sessions observe it"
    need_preload()
    runtime = runtime_folder()
    env = {"PEM_RUNTIME_DIR": runtime, "PEM_SESSION": None, "LD_PRELOAD": None}
    talk = os.path.join(tmp(), "talk")
    os.mkfifo(talk)
    both = os.open(talk, os.O_RDWR)
    rc, out, err = run([PEM, "stat", "-q", "-o", os.devnull, "-e", FORK, "--", "sh", "-c",
                        "%s <%s >%s 2>&1 & echo $!; until [ -s %s ]; do sleep 0.01; done" % (IDLE, talk, talk + "s", talk + "s")], env=env)
    equal(rc, 0, "status, with " + err)
    pid = int(out)
    with os.fdopen(both, "w", buffering=1, encoding="utf-8") as ask:
        until(lambda: not [n for n in os.listdir(runtime) if n.startswith("standby-")], "its file is removed")
        ask.write("alloc 1\n")
        until(lambda: [n for n in os.listdir(runtime) if n.startswith("control-%d-" % pid)], "its control file")
        counter = start([PEM, "stat", "--json", "-e", MALLOC, "--where", "size == 77", "-p", str(pid)], text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        until(lambda: [n for n in os.listdir(runtime) if n.startswith("session-")], "the later session")
        time.sleep(0.5)
        ask.write("alloc 300\n")
        time.sleep(0.5)
        equal(end(counter), {MALLOC: 300}, "counts")


@test
def killed_session():
    "the file of a session that was killed is removed by a later one, and its program is woken"
    idle = Started("--json", "-e", FORK)
    os.kill(idle.child.pid, signal.SIGKILL)
    idle.child.wait()
    equal(len(idle.files("standby-")), 1, "files after the kill")
    for _ in range(2):  # the first one removes the session's folder
        equal(run([PEM, "stat", "-q", "-o", os.devnull, "-e", FORK, "--", "true"],
                  env={"PEM_RUNTIME_DIR": idle.runtime})[0], 0, "status of a later session")
    equal(idle.files("standby-") + idle.files("session-"), [], "files")
    idle.ask("alloc 1")
    equal(len(idle.own()), 1, "files of the program that was left")
    idle.child.stdin.close()
    until(lambda: not os.path.exists("/proc/%d" % idle.pid), "its end")


RULES = """
import os, subprocess, sys, pemapi
FORK, THREAD = "APP::Program::Fork", "APP::Libc::ThreadCreate"
read, write = os.pipe()
with pemapi.Session() as session:
    first = session.statistics(session.events(FORK))
    first.enable()
    os.dup2(read, 0)
    out = os.dup(1)
    ready = os.pipe()
    os.dup2(ready[1], 1)
    session.run([sys.argv[1]])
    os.dup2(out, 1)
    lines = os.fdopen(ready[0])
    assert lines.readline() == "ready\\n"
    own = lambda: [n for n in os.listdir(os.environ["PEM_RUNTIME_DIR"]) if n.startswith("control-")]
    before = own()
    second = session.statistics(session.events("APP::Program::Exit", THREAD))
    second.enable()
    os.write(write, b"alloc 5\\n")
    assert lines.readline() == "ready\\n"
    unwanted = own()
    os.write(write, b"thread 1\\n")
    assert lines.readline() == "ready\\n"
    print(before == unwanted, len(own()) - len(before), [s.count for s in second.read()])
    os.close(write)
    os.close(0)
"""


@test
def rules_that_come_later():
    "an event that the session wants later joins, too, and events that it does not want never do"
    need_preload()
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    rc, out, err = run([sys.executable, "-c", RULES, IDLE],
                       env={"PEM_RUNTIME_DIR": runtime_folder(), "PYTHONPATH": os.path.join(BUILD, "python"),
                            "LD_LIBRARY_PATH": None, "LD_PRELOAD": None, "PEM_SESSION": None})
    equal((rc, out), (0, "True 1 [0, 1]\n"), "with " + err)


@test
def unobserved_programs():
    "a program that waits counts what it starts and nobody can observe, also in a child of vfork, and not what fails"
    need_preload()
    static = compile_program("int main(void) { return 0; }", flags=["-static"])
    starts = compile_program("""
        #include <spawn.h>
        #include <sys/wait.h>
        #include <unistd.h>
        extern char **environ;
        int main(int argc, char *argv[])
        {
            pid_t pid = vfork();

            if (!pid) {
                execve("/no/such/program", argv, environ);
                execve(argv[1], argv + 1, environ);
                _exit(1);
            }
            waitpid(pid, 0, 0);
            return posix_spawn(&pid, argv[1], 0, 0, argv + 1, environ) || waitpid(pid, 0, 0) != pid;
        }""")
    runtime = runtime_folder()
    rc, _, err = run([PEM, "record", "-e", "APP::Socket::*", "-o", tmp() + "/t", "--", starts, static],
                     env={"PEM_RUNTIME_DIR": runtime, "PEM_SESSION": None, "LD_PRELOAD": None})
    equal(rc, 0, "status, with " + err)
    assert "2 programs" in err and "linked statically" in err, err
    rc, _, err = run([PEM, "record", "-e", "APP::Socket::*", "-o", tmp() + "/t", "--", "env", "-i", "/bin/true"],
                     env={"PEM_RUNTIME_DIR": runtime, "PEM_SESSION": None, "LD_PRELOAD": None})
    assert rc == 0 and "without pem's variables" in err, err


@test
def names_of_sessions():
    "a session is told by the whole of its numbers, and its file by nothing less"
    idle = Started("--json", "-e", FORK)
    name, = idle.files("standby-")
    tag = name.split("-")[3]
    equal(tag.split(".")[0], str(idle.child.pid), "the process in the name")
    others = [name.replace(tag, other) for other in ("1" + tag, tag.replace(".", ".1"), tag.replace(".", "1."))]
    for other in others:
        with open(os.path.join(idle.runtime, other), "w", encoding="utf-8"):
            os.chmod(os.path.join(idle.runtime, other), 0o500)
    equal(idle.counts(), {FORK: 0}, "counts")
    equal(idle.files("standby-"), [], "files of sessions that are gone")


run_all()
