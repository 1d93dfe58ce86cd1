# SPDX-License-Identifier: MIT
"""
runtime_sweep.py - what a killed consumer leaves in the runtime folder: nothing once another comes, but what can be recovered
"""
import glob
import os
import signal
import struct
import subprocess
import tempfile
import time

from patience import HANG_S
from tap import PEM, SAN, equal, need, need_mounts, run, run_all, skip, test


def leave(folder, words):
    """The session folders that a killed pem leaves, once another has come and gone."""
    env = dict(os.environ, PEM_RUNTIME_DIR=os.path.join(folder, "runtime"))
    consumer = subprocess.Popen([PEM, *words, "--", "sh", "-c", "ls -R /usr/share/doc > /dev/null; sleep 60"], env=env, start_new_session=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + HANG_S
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
    until = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)


def ready(folder, words):
    """Is there what the session would be kept for? A log is nothing before a process has a pool that the recorder has found."""
    pools = [os.path.join(where, name) for where, _, names in os.walk(os.path.join(folder, "runtime"))
             for name in names if name.startswith("pool-")]
    return words[0] == "stat" or any(map(is_complete, pools)) and glob.glob(os.path.join(folder, "trace", "[a-z]_*"))


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


def first_namespace():
    return os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC


def container(folder, command):
    """A program that is the first process of a pid namespace, and has made its control file; it ends with its input."""
    need("unshare")
    if os.geteuid() == 0:
        need_mounts()
    elif run(["unshare", "-Urp", "--fork", "true"])[0]:
        skip("this kernel lets no ordinary user have namespaces")
    child = subprocess.Popen(["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "--pid", "--fork", "--kill-child", "--mount-proc",
                              PEM, "run", "-n", "--", *command], env=dict(os.environ, PEM_RUNTIME_DIR=folder),
                             stdin=subprocess.PIPE, start_new_session=True)
    wait_for(lambda: child.poll() is not None or controls(folder, 1))
    assert child.poll() is None, "it ended"
    return child


def controls(folder, pid):
    """Names of the control files of processes that call themselves so, which are complete."""
    return [name for name in os.listdir(folder) if name.startswith("control-%d-" % pid) and is_complete(os.path.join(folder, name))]


def end(child):
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdin.close()


@test
def first_process_of_a_container():
    "the control file of the first process of a container that was killed goes, though a process of that number always lives"
    if not first_namespace():
        skip("from a container, processes of other containers can't be told to be dead")
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PEM_RUNTIME_DIR=folder)
        killed, lives = container(folder, ["cat"]), None
        first = controls(folder, 1)
        lives = container(folder, ["cat"])
        wait_for(lambda: len(controls(folder, 1)) == 2)
        try:
            equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "a consumer while both live")
            equal(len(controls(folder, 1)), 2, "control files of both")
            end(killed)
            equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "the next one")
            left = controls(folder, 1)
            equal((len(left), set(left) & set(first)), (1, set()), "control files left, and of them the killed one's")
        finally:
            end(lives)


@test
def any_number_of_them():
    "of whichever number of processes of containers the dead ones' files go, and those of others stay"
    if not first_namespace():
        skip("from a container, processes of other containers can't be told to be dead")
    with tempfile.TemporaryDirectory() as folder:
        lives = container(folder, ["cat"])
        try:
            with open(os.path.join(folder, controls(folder, 1)[0]), "rb") as file:
                head = file.read(4096)
            for number in range(2500):  # the first and the last ones of a listing are among the dead, whatever its order
                dead = number % 500 < 400
                with open(os.path.join(folder, "control-%d-%d" % (99999 if dead else 1, number + 10)), "wb") as file:
                    file.write(head[:8] + struct.pack("<I", 99999 if dead else 1) + head[12:])
            equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=dict(os.environ, PEM_RUNTIME_DIR=folder))[0], 0, "a consumer")
            equal((len(controls(folder, 99999)), len(controls(folder, 1))), (0, 501), "files left of the dead, and of the living")
        finally:
            end(lives)


@test
def consumer_in_another_container():
    "a consumer in a container, which sees no processes of others, leaves their control files"
    with tempfile.TemporaryDirectory() as folder:
        other = container(folder, ["cat"])
        try:
            left = controls(folder, 1)
            equal(run(["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "--pid", "--fork", "--mount-proc", PEM, "stat", "-e",
                       "APP", "--", "true"], env={"PEM_RUNTIME_DIR": folder})[0], 0, "status")
            equal(set(left) - set(os.listdir(folder)), set(), "control files that are gone")
        finally:
            end(other)


@test
def hidden_processes():
    "nor does one of an ordinary user from whom /proc hides the processes of others"
    need("unshare", "setpriv")
    if os.geteuid() or SAN or not first_namespace():
        skip("needs root in the first pid namespace, and a build that other users can read")
    need_mounts()
    user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    if run([*user, "test", "-x", PEM])[0]:
        skip("%s can't be reached by other users" % PEM)
    with tempfile.TemporaryDirectory() as folder:
        other = container(folder, ["cat"])
        try:
            left = controls(folder, 1)
            for path in [folder, *(os.path.join(folder, name) for name in os.listdir(folder))]:
                os.chown(path, 65534, 65534)
            script = "mount -t proc -o hidepid=2 none /proc && exec %s %s stat -e APP -- true" % (" ".join(user), PEM)
            rc, _, err = run(["unshare", "--mount", "sh", "-c", script], env={"PEM_RUNTIME_DIR": folder}, cwd="/")
            equal(rc, 0, "status, with " + err)
            equal(set(left) - set(os.listdir(folder)), set(), "control files that are gone")
        finally:
            end(other)


def age(path, seconds):
    """Make a control file say that it was made so much earlier. Its clock is the processor's counter."""
    with open(path, "r+b") as file:
        head = bytearray(file.read(24))
        clock = struct.unpack_from("<Q", head, 16)[0]
        struct.pack_into("<Q", head, 16, max(1, clock - int(seconds * 1.5e9)))  # at 1.5 GHz and more
        file.seek(0)
        file.write(head)


@test
def number_of_another():
    "a control file goes whose process's number another process has by now"
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PEM_RUNTIME_DIR=folder)
        child = subprocess.Popen([PEM, "run", "-n", "--", "sleep", "60"], env=env)
        try:
            wait_for(lambda: controls(folder, child.pid))
            path = os.path.join(folder, controls(folder, child.pid)[0])
            age(path, 30)
            equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "a consumer")
            equal(os.path.exists(path), False, "is a file there that is older than its process")
        finally:
            child.kill()
            child.wait()


@test
def process_that_is_older():
    "a control file stays whose process has run longer than the file is there"
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PEM_RUNTIME_DIR=folder)
        child = subprocess.Popen([PEM, "run", "-n", "--", "sleep", "60"], env=env)
        try:
            wait_for(lambda: controls(folder, child.pid))
            path = os.path.join(folder, "control-1-0")
            os.rename(os.path.join(folder, controls(folder, child.pid)[0]), path)
        finally:
            child.kill()
            child.wait()
        with open(path, "r+b") as file:  # of the first process, which no other is older than
            file.seek(8)
            file.write(struct.pack("<I", 1))
        with open("/proc/uptime", encoding="ascii") as file, open("/proc/1/stat", encoding="ascii") as first:
            started_s = int(first.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
            age(path, (float(file.read().split()[0]) - started_s) / 2)
        equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "a consumer")
        assert os.path.exists(path), "it is gone"


@test
def number_of_a_zombie():
    "a control file goes whose process is dead, though its parent has not asked how it ended"
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.Popen([PEM, "run", "-n", "--", "sleep", "60"], env=dict(os.environ, PEM_RUNTIME_DIR=folder))
        wait_for(lambda: controls(folder, child.pid))
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        rc = run([PEM, "stat", "-e", "APP", "--", "true"], env={"PEM_RUNTIME_DIR": folder})[0]
        left = controls(folder, child.pid)
        child.wait()
        equal((rc, left), (0, []), "status, and control files left")


@test
def first_thread_has_ended():
    "one whose first thread has ended, and another goes on, keeps it"
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "threads.c")
        with open(source, "w", encoding="ascii") as file:
            file.write("#include <pthread.h>\n#include <unistd.h>\nstatic void *go_on(void *a) { sleep(60); return a; }\n"
                       "int main(void) { pthread_t t; pthread_create(&t, 0, go_on, 0); pthread_exit(0); }\n")
        program = source[:-2]
        equal(run([os.environ.get("CC", "cc").split()[0], "-o", program, source, "-pthread"])[0], 0, "the compiler")
        env = dict(os.environ, PEM_RUNTIME_DIR=os.path.join(folder, "runtime"))
        os.mkdir(env["PEM_RUNTIME_DIR"], 0o700)
        child = subprocess.Popen([PEM, "run", "-n", "--", program], env=env)
        try:
            wait_for(lambda: controls(env["PEM_RUNTIME_DIR"], child.pid) and state_of(child.pid) == "Z")
            equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "a consumer")
            equal(len(controls(env["PEM_RUNTIME_DIR"], child.pid)), 1, "control files left")
        finally:
            child.kill()
            child.wait()


def state_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


@test
def session_of_a_containers_first_process():
    "the session of a consumer that was the first process of a container, and was killed, goes, too"
    need("unshare")
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PEM_RUNTIME_DIR=folder)
        consumer = subprocess.Popen(["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "--pid", "--fork", "--kill-child",
                                     "--mount-proc", PEM, "stat", "-e", "APP", "--", "sleep", "60"], env=env,
                                    start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        wait_for(lambda: consumer.poll() is not None or os.path.exists(os.path.join(folder, "session-1-0", "config")))
        if consumer.poll() is not None:
            skip("no pid namespace can be had here")
        equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "another, while it lives")
        equal(os.path.exists(os.path.join(folder, "session-1-0")), True, "is its session there")
        end(consumer)
        equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "the next one")
        equal(os.path.exists(os.path.join(folder, "session-1-0")), False, "is it there after its end")


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


@test
def a_public_folder_that_is_being_made_stays():
    "another root's session that starts just then does not take it away; after a minute it goes"
    if os.geteuid():
        skip("only root's sessions have public folders")
    base = "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"
    public = "%s/pem-%s" % (base, os.urandom(16).hex())
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, PEM_RUNTIME_DIR=os.path.join(folder, "runtime"))
        os.mkdir(public, 0o700)
        equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "a consumer")
        assert os.path.exists(public), "it is gone, and its session has none"
        os.utime(public, (time.time() - 120, time.time() - 120))
        equal(run([PEM, "stat", "-e", "APP", "--", "true"], env=env)[0], 0, "the next one")
        assert not os.path.exists(public) and not os.path.exists(public + ".gone"), "it is there still"


run_all()
