# SPDX-License-Identifier: MIT
"""
standby.py - programs under pem run that nobody observes: they make no files, and can be observed at any time
"""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from attached import LIBRARIES, Asked, Idle
from preload import need_preload
from stage import USER, as_user, until, until_served, wait_ready
from tap import BUILD, PEM, equal, run, run_all, skip, start, test, tmp

MALLOC = "APP::Libc::Malloc"
LIMITED = """
import ctypes, os, resource, signal, struct, sys
def no_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
def filtered():
    libc = ctypes.CDLL(None, use_errno=True)
    # load the call's number; one that is not equal goes on, another is SECCOMP_RET_KILL_PROCESS
    lines = [struct.pack("=HBBI", 0x20, 0, 0, 0)]
    for number in map(int, filter(None, os.environ.get("KILL", "").split(","))):
        lines += [struct.pack("=HBBI", 0x15, 0, 1, number), struct.pack("=HBBI", 6, 0, 0, 0x80000000)]
    lines.append(struct.pack("=HBBI", 6, 0, 0, 0x7fff0000))  # SECCOMP_RET_ALLOW
    code = ctypes.create_string_buffer(b"".join(lines))
    program = ctypes.create_string_buffer(struct.pack("=H6xQ", len(lines), ctypes.addressof(code)))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0):
        sys.exit(7)
globals()[sys.argv[1]]()
os.environ["LD_PRELOAD"] = sys.argv[2]
os.execv(sys.argv[3], sys.argv[3:])
"""


class Limited(Idle):
    """Such a program, which begins with a limit."""

    def __init__(self, limit, folder=None, **env):
        folder = folder or tmp()
        os.makedirs(os.path.join(folder, "runtime"), mode=0o700, exist_ok=True)
        Asked.__init__(self, folder, command=[sys.executable, "-c", LIMITED, limit, ":".join(LIBRARIES),
                                              os.path.join(BUILD, "programs", "idle")], LD_PRELOAD=None, **env)


def wake(folder):
    """Do what a session does to the file of a folder."""
    name, = [name for name in os.listdir(folder) if name.startswith("standby-")]
    path = os.path.join(folder, name)
    os.chmod(path, 0o600)
    with open(path, "r+b") as file:
        head = file.read(528)
        for i in range(struct.unpack_from("<I", head, 8)[0]):
            offset, size = struct.unpack_from("<QQ", head, 16 + 16 * i)
            file.seek(offset)
            file.write(b"\x80" * size)
    os.unlink(path)


class Counter:
    """pem stat of allocations of 77 bytes, attached to programs that run."""

    def __init__(self, idle, *target, **env):
        self.idle = idle
        self.child = start([PEM, "stat", "--json", "-e", MALLOC, "--where", "size == 77", *target], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict({"PEM_RUNTIME_DIR": idle.runtime}, **env))

    def until_woken(self):
        def woken():
            assert self.child.poll() is None, "pem stat ended: " + self.child.stderr.read()
            return not self.idle.files("standby-")
        until(woken, "the programs are woken")

    def until_served(self, pid):
        until_served(self.idle.runtime, pid)

    def counts_from_now_on(self):
        """The program is woken, served by its next event, and each later one is counted."""
        self.until_woken()
        self.idle.ask("alloc 1")
        self.until_served(self.idle.pid)
        self.idle.ask("alloc 1000")
        count, err = self.end()
        assert 1000 <= count <= 1001, (count, err)

    def end(self):
        """The count, and standard error."""
        self.child.send_signal(signal.SIGINT)
        out, err = self.child.communicate(timeout=60)
        equal(self.child.returncode, 0, "status (stderr: %s)" % err)
        event, = [e for e in json.loads(out)["events"] if e["name"] == MALLOC]
        return event["count"], err


@test
def no_file_of_its_own():
    "programs that nobody observes share one file, and leave nothing"
    one = Idle()
    two = Idle(os.path.dirname(one.runtime))
    name, = one.files()
    assert name.startswith("standby-"), name
    one.ask("keep")
    one.ask("child 5")
    one.end()
    two.end()
    equal(one.files(), [name], "files after the end")


@test
def exec_leaves_nothing():
    "what a process was before an exec leaves no file, be it pem run itself"
    folder = tmp()
    equal(run([PEM, "run", "--", "sh", "-c", "exec true"], env={"PEM_RUNTIME_DIR": folder})[0], 0, "status")
    name, = os.listdir(folder)
    assert name.startswith("standby-"), name


@test
def observed_when_asked():
    "pem stat -p wakes such a program, and counts what it does from then on"
    idle = Idle()
    Counter(idle, "-p", str(idle.pid)).counts_from_now_on()
    idle.ask("alloc 5")
    idle.end()
    equal(idle.files(), [], "files")


@test
def one_wakes_all():
    "all of the user's programs are woken together, by their next event each; those that start meanwhile need not be"
    idle = Idle()
    other = Idle(os.path.dirname(idle.runtime))
    counter = Counter(idle, "-p", str(idle.pid))
    counter.until_woken()
    equal(idle.files("control-%d-" % other.pid), [], "files before the next event")
    other.ask("alloc 1")
    equal(len(idle.files("control-%d-" % other.pid)), 1, "files after it")
    later = Idle(os.path.dirname(idle.runtime))
    equal(len(idle.files("control-%d-" % later.pid)), 1, "files of one that starts while a session lives")
    counter.end()
    afterwards = Idle(os.path.dirname(idle.runtime))
    equal(len(idle.files("standby-")), 1, "files of one that starts when no session lives any more")
    for program in (idle, other, later, afterwards):
        program.end()


@test
def children_too():
    "a child of fork is on standby as its parent is, and is observed when it is woken"
    idle = Idle()
    idle.ask("keep")
    idle.ask("child 3")
    equal([name for name in idle.files() if not name.startswith("standby-")], [], "files")
    counter = Counter(idle, "--program", "idle")
    counter.until_woken()
    before = idle.files("control-")
    idle.ask("child 1")
    pids = {int(name.split("-")[1]) for name in set(idle.files("control-")) - set(before)}
    child, = pids - {idle.pid}
    counter.until_served(child)
    idle.ask("child 500")
    count, err = counter.end()
    assert 500 <= count <= 501, (count, err)
    idle.end()


@test
def vfork_changes_nothing():
    "a child of vfork that has the first event after the waking makes no file, and changes nothing of its parent's"
    first = Idle()
    name, = first.files()
    folder = os.path.dirname(first.runtime)
    idle = Idle(folder, os.path.join(first.runtime, name))
    idle.child.stdin.write("vfork 3\n")
    counter = Counter(idle, "-p", str(idle.pid))
    idle._until_ready()
    own = [str(process.pid) for process in (idle.child, first.child, counter.child)]
    equal([name for name in idle.files("control-") if name.split("-")[1] not in own], [], "files of the child")
    idle.ask("alloc 1")
    counter.until_served(idle.pid)
    idle.ask("alloc 100")
    count, err = counter.end()
    assert 100 <= count <= 101, (count, err)
    for program in idle, first:
        program.end()
        equal(program.child.returncode, 0, "status")


@test
def bare_fork():
    "a child of _Fork, of which pem is not told, leaves standby by itself, and is observed"
    idle = Idle()
    counter = Counter(idle, "-p", str(idle.pid))
    counter.until_woken()
    idle.ask("bare 3")
    idle.ask("alloc 1")
    counter.until_served(idle.pid)
    idle.ask("bare 3")
    idle.ask("alloc 100")
    count, err = counter.end()
    assert 103 <= count <= 107, (count, err)
    idle.end()
    equal(idle.child.returncode, 0, "status")


@test
def own_user_given_up():
    "a program that gives up its user makes its file before; who attaches is told that its events are out of reach"
    if os.geteuid():
        skip("becoming another user needs root")
    idle = Idle()
    idle.ask("user %d" % USER)
    equal(len(idle.files("control-%d-" % idle.pid)), 1, "files")
    counter = Counter(idle, "-p", str(idle.pid))
    said = counter.child.stderr.readline()
    assert str(idle.pid) in said and "became another user before anybody observed it" in said, said
    counter.end()
    idle.end()


@test
def root_folder_given_up():
    "so does one that changes its root folder"
    if os.geteuid():
        skip("changing the root folder needs root")
    idle = Idle()
    idle.ask("root")
    equal(len(idle.files("control-%d-" % idle.pid)), 1, "files")
    idle.end()


@test
def filter_of_the_c_library():
    "and one that asks the C library for a seccomp filter, which ends it for opening a file later; who attaches is told"
    idle = Idle()
    idle.ask("told")
    equal(len(idle.files("control-%d-" % idle.pid)), 1, "files")
    counter = Counter(idle, "-p", str(idle.pid))
    idle.ask("alloc 10")
    counter.until_served(idle.pid)
    idle.ask("alloc 10")
    count, said = counter.end()
    equal(count, 0, "count")
    assert "process %d (idle) has not joined" % idle.pid in said and "seccomp filter" in said and "start it with" in said, said
    idle.end()
    equal(idle.child.returncode, 0, "status")


@test
def filter_beside_other_events():
    "nothing is said of a filter where no event of programs is asked for, nor of a program without one"
    for event, what in ("HW::Software::PageFaults", "told"), (MALLOC, "alloc 1"):
        idle = Idle()
        idle.ask(what)
        counter = start([PEM, "stat", "-e", event, "-p", str(idle.pid)], text=True, stderr=subprocess.PIPE,
                        env={"PEM_RUNTIME_DIR": idle.runtime})
        until(lambda: idle.files("session-"), "the session")
        time.sleep(0.3)
        counter.send_signal(signal.SIGINT)
        _, err = counter.communicate(timeout=60)
        assert "has not joined" not in err, err
        idle.end()


@test
def filter_of_a_child():
    "a program that was woken leaves before it forks: its child may take a filter of which pem is not told"
    first = Idle()
    name, = first.files()
    idle = Idle(os.path.dirname(first.runtime), os.path.join(first.runtime, name))
    idle.child.stdin.write("fork\n")
    counter = Counter(idle, "-p", str(first.pid))
    idle._until_ready()
    counter.end()
    for program in idle, first:
        program.end()
        equal(program.child.returncode, 0, "status")


@test
def folder_in_memory():
    "in a folder of a tmpfs, where its count of links tells of sessions, a program finds one that lives"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        idle = Idle(folder)
        equal([os.stat(os.path.join(idle.runtime, name)).st_mode & 0o777 for name in idle.files()], [0o500], "mode: nobody may write")
        equal(len(Idle(folder).files()), 1, "files")
        session = start([PEM, "stat", "-q", "-e", "APP", "-o", os.devnull, "--", "sleep", "60"],
                        env={"PEM_RUNTIME_DIR": idle.runtime})
        until(lambda: idle.files("session-"), "the session")
        later = Idle(folder)
        equal([len(later.files(name)) for name in ("standby-", "control-%d-" % later.pid)], [1, 1],
              "files of one that starts while a session lives")
        os.killpg(session.pid, signal.SIGKILL)
        session.wait()


@test
def other_users_programs():
    "root's session wakes programs of other users, by a helper with their rights"
    if os.geteuid():
        skip("acting as several users needs root")
    need_preload()
    folder = tmp()
    os.chmod(folder, 0o1755)
    copies = []
    for path in [*LIBRARIES, os.path.join(BUILD, "programs", "idle")]:
        copies.append(shutil.copy(path, folder))
    runtime = os.path.join(folder, "runtime")
    os.mkdir(runtime, 0o700)
    os.chown(runtime, USER, USER)
    child = start(as_user(USER) + ["env", "LD_PRELOAD=" + ":".join(copies[:-1]), copies[-1]], stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE, text=True, bufsize=1, cwd="/",
                  env={"PEM_RUNTIME_DIR": runtime, "XDG_RUNTIME_DIR": None, "PEM_SESSION": None})
    wait_ready(child)
    name, = os.listdir(runtime)
    equal(os.stat(os.path.join(runtime, name)).st_uid, USER, "the file's owner")
    idle = Idle.__new__(Idle)
    idle.runtime = runtime
    counter = Counter(idle, "-p", str(child.pid), PEM_RUNTIME_DIR=os.path.join(folder, "ours"))
    counter.until_woken()
    child.stdin.write("alloc 1\n")
    wait_ready(child)
    counter.until_served(child.pid)
    child.stdin.write("alloc 100\n")
    wait_ready(child)
    time.sleep(0.2)  # pem stat asks the helper for the program's memory now and then
    count, err = counter.end()
    assert 100 <= count <= 101, (count, err)
    child.stdin.close()
    equal(child.wait(), 0, "status")


@test
def a_filter_of_its_own():
    "programs stay as they are where waking would end one that set a seccomp filter without the C library"
    idle = Idle()
    idle.ask("filter")
    counter = Counter(idle, "-p", str(idle.pid))
    said = counter.child.stderr.readline()
    assert "seccomp filter that pem was not told of" in said and str(idle.pid) in said, said
    idle.ask("alloc 10")
    equal(counter.end()[0], 0, "count")
    idle.end()
    equal(idle.child.returncode, 0, "status")


@test
def filter_that_is_known():
    "a program that began with as many filters as pem was told of is woken"
    idle = Limited("filtered", Idle(PEM_FILTERS="0000000001").env["PEM_RUNTIME_DIR"][:-len("/runtime")],
                   PEM_FILTERS="0000000001")
    equal(len(idle.files("control-")), 0, "files of its own")
    Counter(idle, "-p", str(idle.pid)).counts_from_now_on()
    idle.end()


@test
def hostile_file():
    "of a file with wild numbers nothing is written beyond its end, nor at its head"
    idle = Idle()
    name, = idle.files()
    path = os.path.join(idle.runtime, name)
    places = [(1 << 40, 8), (0, 16), (4096 + 64, 1 << 40), (45056 - 4, 8), ((1 << 64) - 8, 16), (4096 + 64, 8)]
    head = struct.pack("<IIII", 0x574d4550, 1, 40, 0) + b"".join(struct.pack("<QQ", *place) for place in places)
    os.chmod(path, 0o600)
    with open(path, "r+b") as file:
        file.write(head)
    with open(path, "rb") as held:
        counter = Counter(idle, "-p", str(idle.pid))
        counter.until_woken()
        equal(os.fstat(held.fileno()).st_size, 45056, "size")
        equal(held.read(len(head)), head, "head")
        held.seek(4096 + 64)
        equal(held.read(9), b"\x80" * 8 + b"\0", "what may be written")
        held.seek(45056 - 4)
        equal(held.read(), b"\0" * 4, "end")
    counter.end()
    idle.end()


@test
def damaged_files():
    "whatever lies at the file's name, programs start, and can be observed"
    idle = Idle()
    name, = idle.files()
    path = os.path.join(idle.runtime, name)
    idle.end()

    def cut():
        with open(path, "wb") as file:
            file.write(b"PEMW")
    damages = [cut, lambda: os.mkfifo(path), lambda: os.mkdir(path), lambda: os.symlink("/etc/passwd", path),
               lambda: os.symlink(path, path)]
    for damage in damages:
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        damage()
        one = Idle(os.path.dirname(idle.runtime))
        equal(len(one.files("control-%d-" % one.pid)), 1, "files")
        counter = Counter(one, "-p", str(one.pid))
        counter.until_served(one.pid)
        one.ask("alloc 100")
        equal(counter.end()[0], 100, "count")
        one.end()
        if os.path.isdir(path):
            continue
        assert not os.path.lexists(path), "it stays"
        cut()


@test
def left_by_a_killed_session():
    "a file that a killed session had not removed yet is removed by the next"
    idle = Idle()
    name, = idle.files()
    with open(os.path.join(idle.runtime, "woken-1-" + name), "wb"):
        pass
    Counter(idle, "-p", str(idle.pid)).counts_from_now_on()
    equal(idle.files("woken-"), [], "files")
    idle.end()


@test
def no_room_for_the_file():
    "without room for the file a program starts all the same"
    with_room(8, lambda idle, folder: None)


@test
def no_room_when_woken():
    "a woken program whose control file has no room goes on unobserved"
    def woken(idle, folder):
        wake(folder)
        idle.ask("alloc 10")
        idle.ask("keep")
        idle.ask("child 10")
    with_room(52, woken)


def with_room(kilobytes, use):
    if os.geteuid():
        skip("mounting a file system needs root")
    folder = tmp()
    runtime = os.path.join(folder, "runtime")
    os.mkdir(runtime, 0o700)
    if run(["unshare", "-m", "mount", "-t", "tmpfs", "none", runtime])[0]:
        skip("no file system can be mounted here")
    command = "mount -t tmpfs -o size=%dk,mode=700 none %s && LD_PRELOAD=%s exec %s" % (
        kilobytes, runtime, ":".join(LIBRARIES), os.path.join(BUILD, "programs", "idle"))
    idle = Idle.__new__(Idle)
    Asked.__init__(idle, folder, command=["unshare", "-m", "sh", "-c", command], LD_PRELOAD=None)
    use(idle, "/proc/%d/root%s" % (idle.pid, runtime))
    idle.ask("alloc 10")
    idle.end()
    equal(idle.child.returncode, 0, "status")


@test
def limit_of_file_size():
    "a program that may write no files starts, and no signal ends it"
    idle = Limited("no_files")
    equal(idle.files(), [], "files")
    idle.ask("alloc 10")
    idle.end()
    equal(idle.child.returncode, 0, "status")


@test
def filter_from_the_beginning():
    "a program that began with a filter of which pem was not told does nothing when it is woken"
    told = {"PEM_FILTERS": "0000000000"}
    first = Idle(**told)
    idle = Limited("filtered", os.path.dirname(first.runtime), **told)
    equal(len(idle.files()), 1, "files")
    wake(idle.runtime)
    idle.ask("alloc 10")
    idle.ask("keep")
    idle.ask("child 10")
    equal(idle.files(), [], "files")
    for program in idle, first:
        program.end()
        equal(program.child.returncode, 0, "status")


# Of x86-64: calls that pem makes as a process starts, and a program's loader does not.
CALLS = {"mkdir": 83, "fallocate": 285, "pwrite64": 18, "linkat": 265, "fchmod": 91, "statfs": 137, "flock": 73,
         "getdents64": 217, "lseek": 8, "madvise": 28, "gettid": 186, "unlink": 87, "getpid": 39, "geteuid": 107,
         "rt_sigprocmask": 14, "prctl": 157}


@test
def filters_of_each_call():
    "a filter of which pem was not told, and that ends a program for a call that its loader does not make, ends no program"
    if os.uname().machine != "x86_64":
        skip("the numbers of system calls are those of x86-64")
    need_preload()

    def started(name, folder, what):
        rc, out, err = run([sys.executable, "-c", LIMITED, "filtered", ":".join(LIBRARIES),
                            os.path.join(BUILD, "programs", "idle")], input="",
                           env={"PEM_RUNTIME_DIR": folder, "PEM_FILTERS": "0000000000", "KILL": str(CALLS[name]),
                                "LD_PRELOAD": None})
        equal((rc, out), (0, "ready\n"), "%s, which the filter ends, %s: %s" % (name, what, err))
    folder = tmp()
    for name in CALLS:
        started(name, os.path.join(folder, "none"), "without a folder")
    for name in CALLS:
        started(name, folder, "without the file")
    first = Idle(os.path.dirname(Idle().runtime), PEM_FILTERS="0000000000")
    for name in CALLS:
        started(name, first.runtime, "with the file")
    os.mkdir(os.path.join(first.runtime, "session-1-0"))
    for name in CALLS:
        started(name, first.runtime, "with a session's folder")


@test
def small_signal_stack():
    "the first event after the waking may be one of a handler with a stack of 8 KiB"
    idle = Idle()
    idle.ask("signal")
    counter = Counter(idle, "-p", str(idle.pid))
    counter.until_woken()
    idle.child.send_signal(signal.SIGUSR1)
    counter.until_served(idle.pid)
    counter.end()
    idle.end()
    equal(idle.child.returncode, 0, "status")


@test
def no_more_mappings():
    "a woken program that may have no further mapping goes on unobserved"
    idle = Idle()
    idle.ask("fill")
    wake(idle.runtime)
    idle.ask("alloc 10")
    idle.end()
    equal(idle.child.returncode, 0, "status")


@test
def filter_elsewhere():
    "a program with such a filter in another folder keeps none asleep here"
    other = Idle()
    other.ask("filter")
    idle = Idle()
    counter = Counter(idle, "-p", str(idle.pid))
    counter.until_woken()
    counter.end()
    for program in other, idle:
        program.end()


@test
def filter_of_one_thread():
    "also where a thread other than the first one has such a filter, none is woken"
    idle = Idle()
    idle.ask("thread")
    counter = Counter(idle, "-p", str(idle.pid))
    said = counter.child.stderr.readline()
    assert "seccomp filter that pem was not told of" in said and str(idle.pid) in said, said
    counter.end()
    idle.end()
    equal(idle.child.returncode, 0, "status")


@test
def changed_variables():
    "a program that has changed its variables is found where it was when it started"
    idle = Idle()
    idle.ask("clearenv")
    Counter(idle, "-p", str(idle.pid)).counts_from_now_on()
    idle.end()


@test
def removed_file():
    "whoever attaches to a program whose file was removed is told that nothing will come"
    idle = Idle()
    name, = idle.files()
    os.unlink(os.path.join(idle.runtime, name))
    counter = Counter(idle, "-p", str(idle.pid))
    said = counter.child.stderr.readline()
    assert "raises no application events" in said, said
    counter.end()
    idle.end()


run_all()
