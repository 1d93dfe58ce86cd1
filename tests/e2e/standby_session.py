# SPDX-License-Identifier: MIT
"""
standby_session.py - programs that are started in a session and raise none of its events: they make no files, join at the
first event that the session wants, and are found by later sessions
"""
import json
import os
import signal
import struct
import subprocess
import sys
import time

from attached import Asked
from preload import compile_program, need_preload
from stage import until, until_served
from tap import BUILD, PEM, SAN, equal, run, run_all, skip, start, test, tmp

FORK = "APP::Program::Fork"
MALLOC = "APP::Libc::Malloc"
IDLE = os.path.join(BUILD, "programs", "idle")


def runtime_folder():
    """In memory: only there a program knows that no other session lives."""
    return tmp("/dev/shm")


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


def run_another(started):
    """The status of another session, which looks after the runtime folder."""
    return run([PEM, "stat", "-q", "-o", os.devnull, "-e", FORK, "--", "true"], env={"PEM_RUNTIME_DIR": started.runtime})[0]


@test
def first_event_joins():
    "a program makes no file until it raises an event that the session wants, and that event is counted"
    idle = Started("--json", "-e", FORK)
    idle.ask("alloc 1000")
    equal((idle.own(), len(idle.files("standby-"))), ([], 1), "files before the event")
    idle.ask("keep")
    name, = idle.own()
    with open(os.path.join(idle.runtime, name), "rb") as file:
        control = file.read()
    for i in range(struct.unpack_from("<I", control, 12)[0]):
        offset, = struct.unpack_from("<Q", control, 64 + 16 * i)
        equal([b for b in control[offset + 64:offset + 64 + struct.unpack_from("<I", control, offset + 4)[0]] if b & 0x80], [],
              "enable bytes that still wake the program")
    equal(idle.counts(), {FORK: 1}, "counts")
    # The child that it kept may end a moment later.
    until(lambda: not run_another(idle) and not os.listdir(idle.runtime), "nothing is left by a later session")


@test
def children_join():
    "so does a child of fork, for itself"
    idle = Started("--json", "-e", "APP::Program::ForkChild")
    equal(idle.own(), [], "files before the fork")
    idle.ask("keep")
    equal(idle.own(), [], "files of the parent")
    child, = pids_of(idle.pid)
    idle.ask("child 1")  # it answers behind its event
    equal(len(idle.files("control-%d-" % child)), 1, "files of the child")
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
def event_of_each_start():
    "where the session wants an event that each program raises as it starts, all join at once, and no file is made for waiting"
    idle = Started("--json", "-e", "APP::Loader::Object")
    equal((len(idle.own()), idle.files("standby-")), (1, []), "files")
    idle.counts()


@test
def later_session():
    "a later session that attaches finds it, and both count what they want"
    idle = Started("--json", "-e", FORK)
    counter = later_counter(idle, "-p", str(idle.pid))
    idle.ask("alloc 1")
    until_served(idle.runtime, idle.pid, counter.pid)
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
    "a program that outlives its session joins it no more, is observed by later ones, and its file goes when it has ended"
    need_preload()
    runtime = runtime_folder()
    env = {"PEM_RUNTIME_DIR": runtime, "PEM_SESSION": None, "LD_PRELOAD": None}
    talk = os.path.join(tmp(), "talk")
    os.mkfifo(talk)
    both = os.open(talk, os.O_RDWR)
    rc, out, err = run([PEM, "stat", "-q", "-o", os.devnull, "-e", FORK, "--", "sh", "-c",
                        "%s <%s >%ss 2>&1 & echo $!; until [ -s %ss ]; do sleep 0.01; done" % (IDLE, talk, talk, talk)], env=env)
    equal(rc, 0, "status, with " + err)
    pid = int(out)
    files = lambda of: [n for n in os.listdir(runtime) if n.startswith(of)]

    def asked():
        with open(talk + "s", encoding="utf-8") as answers:
            return answers.read().count("ready")

    with os.fdopen(both, "w", buffering=1, encoding="utf-8") as ask:
        equal((len(files("standby-")), files("control-")), (1, []), "files behind the session")
        ask.write("keep\n")
        until(lambda: asked() == 2, "the program has forked")
        equal(files("control-"), [], "files after an event that the session had wanted")
        counter = start([PEM, "stat", "--json", "-e", MALLOC, "--where", "size == 77", "-p", str(pid)], text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        until(lambda: not files("standby-"), "the program is woken")
        ask.write("alloc 1\n")
        until_served(runtime, pid)
        ask.write("alloc 300\n")
        until(lambda: asked() == 4, "the program has allocated")
        count = end(counter)[MALLOC]
        assert 300 <= count <= 301, count


@test
def killed_session():
    "the file of a session that was killed is removed by a later one, once its programs have ended"
    idle = Started("--json", "-e", FORK)
    os.kill(idle.child.pid, signal.SIGKILL)
    idle.child.wait()
    equal(run_another(idle), 0, "status of a later session")
    equal(len(idle.files("standby-")), 1, "files while the program runs")
    idle.ask("alloc 1")
    equal(idle.own(), [], "files of the program that was left")
    idle.child.stdin.close()
    until(lambda: not os.path.exists("/proc/%d" % idle.pid), "its end")
    equal(run_another(idle), 0, "status of one more")
    equal(os.listdir(idle.runtime), [], "files")


CONSUMER = """
import os, subprocess, sys, pemapi
class Idle:
    "idle as a session's command, which is asked through pipes"
    def __init__(self, session):
        read, self.to = os.pipe()
        ready, write = os.pipe()
        out = os.dup(1)
        os.dup2(read, 0)
        os.dup2(write, 1)
        session.run([sys.argv[1]])
        os.dup2(out, 1)
        self.lines = os.fdopen(ready)
        self.wait()
    def wait(self):
        assert self.lines.readline() == "ready\\n"
    def ask(self, what):
        os.write(self.to, what + b"\\n")
        self.wait()
    def end(self):
        os.close(self.to)
        os.close(0)
def files():
    return len([n for n in os.listdir(os.environ["PEM_RUNTIME_DIR"]) if n.startswith("control-")])
FORK, THREAD = "APP::Program::Fork", "APP::Libc::ThreadCreate"
with pemapi.Session() as session:
    first = session.statistics(session.events(FORK), context=eval(sys.argv[2]))
    first.enable()
    before = files()
    idle = Idle(session)
    print(files() - before, end=" ")
    if sys.argv[2] != "None":  # it has joined, and is told as others are that have
        session.poll(0)
    second = session.statistics(session.events("APP::Program::Exit", THREAD), context=eval(sys.argv[3]))
    second.enable()
    idle.ask(b"alloc 5")
    print(files() - before, end=" ")
    idle.ask(b"thread 1")
    print(files() - before, [s.count for s in second.read()])
    idle.end()
"""


def consumer(first, second):
    """How many control files idle has at its start, after an event that is not wanted, and after one that is; the counts."""
    need_preload()
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    rc, out, err = run([sys.executable, "-c", CONSUMER, IDLE, first, second],
                       env={"PEM_RUNTIME_DIR": runtime_folder(), "PYTHONPATH": os.path.join(BUILD, "python"),
                            "LD_LIBRARY_PATH": None, "LD_PRELOAD": None, "PEM_SESSION": None})
    equal(rc, 0, "status, with " + err)
    return out


@test
def rules_that_come_later():
    "an event that the session wants later joins, too, and events that it does not want never do"
    equal(consumer("None", "None"), "0 0 1 [0, 1]\n", "files, and counts")


@test
def contexts_that_follow_children():
    "where a context follows children, a program joins as it starts, or by any event if the context comes later"
    follows = "pemapi.Context(pid=os.getpid(), follow=True)"
    equal(consumer(follows, "None"), "1 1 1 [0, 1]\n", "from the beginning")
    equal(consumer("None", follows), "0 1 1 [0, 1]\n", "later")


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


VFORKS = """
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char *argv[])
{
    char *none[] = {"none", 0}, *volatile memory;
    int status;
    pid_t pid;

    for (int i = 0; i < 3; i++) {
        pid = vfork();
        if (!pid) {
            free(memory = malloc(77));
            execve("/no/such/program", none, environ);
            _exit(errno == 2 ? 0 : 1);
        }
        if (waitpid(pid, &status, 0) != pid || status)
            return 2;
    }
    return 0;
}"""


@test
def first_event_in_a_child_of_vfork():
    "the first wanted event may be that of a child of vfork, which joins for its parent: each is counted"
    need_preload()
    out = tmp() + "/out"
    program = compile_program(VFORKS)
    for event, more in ("APP::Program::ExecFail", ()), (MALLOC, ("--where", "size == 77")):
        rc, _, err = run([PEM, "stat", "-q", "--json", "-o", out, "-e", event, *more, "--", program],
                         env={"PEM_RUNTIME_DIR": runtime_folder(), "PEM_SESSION": None, "LD_PRELOAD": None})
        equal(rc, 0, "status, with " + err)
        with open(out, encoding="utf-8") as f:
            equal([e["count"] for e in json.load(f)["events"]], [3], event)
    rc, _, err = run([PEM, "stat", "-q", "--json", "-o", out, "-e", "APP::Program::Exec", "--", "sh", "-c",
                      "/bin/true; /bin/true; /bin/true; :"],
                     env={"PEM_RUNTIME_DIR": runtime_folder(), "PEM_SESSION": None, "LD_PRELOAD": None})
    with open(out, encoding="utf-8") as f:
        equal([e["count"] for e in json.load(f)["events"]], [3], "programs that a shell starts")


THREADS = """
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t barrier;
static void *allocate(void *unused)
{
    void *volatile memory;

    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 20000; i++)
        free(memory = malloc(7777));
    return unused;
}
int main(void)
{
    pthread_t thread[4];

    pthread_barrier_init(&barrier, 0, 4);
    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], 0, allocate, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], 0);
    return 0;
}"""


@test
def first_events_of_threads():
    "no event of other threads is lost while the first one joins"
    need_preload()
    out = tmp() + "/out"
    program = compile_program(THREADS, flags=["-pthread"])
    env = {"PEM_RUNTIME_DIR": runtime_folder(), "PEM_SESSION": None, "LD_PRELOAD": None}
    for _ in range(8):
        rc, _, err = run([PEM, "stat", "-q", "--json", "-o", out, "-e", MALLOC, "--where", "size == 7777", "--", program], env=env)
        with open(out, encoding="utf-8") as f:
            equal((rc, [e["count"] for e in json.load(f)["events"]]), (0, [80000]), "count, with " + err)


LIMITED = """
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char *argv[])
{
    char *volatile memory;

    if (argc > 1) {  /* by instructions of its own */
        long result, number = SYS_setuid, user = 65534;
        __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(user) : "rcx", "r11", "memory");
    } else {
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0});
    }
    for (int i = 0; i < 5; i++)
        free(memory = malloc(77));
    return 0;
}"""


@test
def first_event_without_means():
    "a program that may open no file at its first event is counted as lacking, and one that became another user is counted"
    need_preload()
    out = tmp() + "/out"
    program = compile_program(LIMITED)
    command = [PEM, "stat", "--json", "-o", out, "-e", MALLOC, "--where", "size == 77", "--", program]
    env = {"PEM_RUNTIME_DIR": runtime_folder(), "PEM_SESSION": None, "LD_PRELOAD": None}
    rc, _, err = run(command, env=env)
    assert rc == 0 and "lack 5 events" in err, (rc, err)
    if os.geteuid() or os.uname().machine != "x86_64":
        skip("becoming another user needs root, and is written for x86-64")
    rc, _, err = run(command + ["user"], env=env)
    with open(out, encoding="utf-8") as f:
        equal((rc, [e["count"] for e in json.load(f)["events"]]), (0, [5]), "count, with " + err)


FILTERED = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char *argv[])
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {4, code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 77;
    execv(argv[1], argv + 1);
    return 1;
}"""


@test
def filter_of_a_comparison():
    "a filter that ends programs for kcmp ends none, nor does a parent wait for a lock of its dead child"
    need_preload()
    command = [compile_program(FILTERED), compile_program(VFORKS)]
    for verb in ["stat", "-q", "-o", os.devnull, "-e", "APP::Program::ExecFail", "--"], ["run", "--"]:
        rc, _, err = run([PEM, *verb, *command], env={"PEM_RUNTIME_DIR": runtime_folder(), "PEM_SESSION": None, "LD_PRELOAD": None})
        equal(rc, 0, "status under %s, with %s" % (verb[0], err))


@test
def files_of_such_names():
    "files of the runtime folder that have such names, or nearly, keep no session, and are not followed"
    idle = Started("--json", "-e", FORK)
    name, = idle.files("standby-")
    tag = name.split("-")[3]
    assert tag[0] == "." and len(tag) == 9, name
    for other, is_folder in (name.replace(tag, ".00000001"), False), (name.replace(tag, ".00000002"), True), ("foo.1-0", False):
        (os.mkdir if is_folder else os.mknod)(os.path.join(idle.runtime, other), 0o500)
    os.mkfifo(os.path.join(idle.runtime, name.replace(tag, ".00000003")))
    os.symlink("/etc/hostname", os.path.join(idle.runtime, name.replace(tag, ".00000004")))
    equal(idle.counts(), {FORK: 0}, "counts")
    equal([n.split("-")[-2] for n in idle.files("standby-")], [".00000002", ".00000003", ".00000004"], "files")
    equal(len(os.listdir(idle.runtime)), 4, "all files")


run_all()
