# SPDX-License-Identifier: MIT
"""
attack_folders.py - a user who attacks root's session through his own runtime folder: races, links, helpers stopped

The attacker is an ordinary user with namespaces of his own. A race is made sure by strace, which holds pem for a moment
after each folder that it makes.
"""
import ctypes
import glob
import os
import shutil
import signal
import subprocess

from probe_trace import EVENT, ticks
from stage import USER, Stage, as_user, interrupt, served, tick, until, wait_ready
from tap import PEM, equal, need, need_mounts, run, run_all, skip, start, test

LIMIT_S = 240
RENAME_EXCHANGE = 2
libc = ctypes.CDLL(None, use_errno=True)


def helpers(of, uid):
    """The confined helpers that a process has for a user, one for each runtime folder: status of each, by pid."""
    found = {}
    with open("/proc/%d/task/%d/children" % (of, of), encoding="ascii") as children:
        pids = [int(word) for word in children.read().split()]
    for pid in pids:
        try:
            with open("/proc/%d/status" % pid, encoding="ascii") as file:
                status = dict(line.split(":", 1) for line in file.read().splitlines())
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if status["Name"].strip() == "pem-confined" and int(status["Uid"].split()[0]) == uid:
            found[pid] = status
    return found


def session_in(runtime, of=""):
    """Folders of sessions, or of those of one process: root's record -a beside this test has one there, too."""
    return [name for name in os.listdir(runtime) if name.startswith("session-%s" % (of and "%d-" % of))]


def exchange(runtime, decoy):
    """Exchange a decoy with the session's folder as soon as there is one, as the user; the process, which ends with 0."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
        until(lambda: session_in(runtime), "a session's folder")
        path = os.path.join(runtime, session_in(runtime)[0])
        os._exit(libc.renameat2(-100, path.encode(), -100, decoy.encode(), RENAME_EXCHANGE) != 0)
    finally:
        os._exit(1)


class Exchange:
    """A folder of root's, bound over a decoy in the attacker's runtime folder, in his namespaces; a program of his there."""

    def __init__(self):
        need("strace", "unshare")
        self.stage = Stage()
        self.runtime, self.victim = self.stage.runtime(USER), os.path.join(self.stage.folder, "victim")
        os.mkdir(self.victim, 0o755)
        with open(self.victim + "/keep", "w", encoding="ascii") as file:
            file.write("root's\n")
        self.decoy = os.path.join(self.runtime, "decoy")
        os.mkdir(self.decoy)
        os.chown(self.decoy, USER, USER)
        if subprocess.run(as_user(USER) + ["unshare", "-Urm", "true"], stderr=subprocess.DEVNULL).returncode:
            skip("this kernel lets no ordinary user have namespaces")
        self.inside = self.stage.program(USER, "unshare", "-Urm", "sh", "-c",
                                         "mount --bind %s %s && exec %s" % (self.victim, self.decoy, self.stage.asked))

    def held_after(self, call):
        """pem stat is held for a moment after each call of this kind, and so are its helpers; it ends by itself."""
        strace = ["strace", "-f", "-qq", "-o", self.stage.folder + "/calls", "-e", "trace=" + call, "-e",
                  "inject=%s:delay_exit=300000" % call]
        _, _, err = run(["timeout", "-s", "INT", "3", *strace, PEM, "stat", "-e", EVENT, "-p", str(self.inside.pid)],
                        env=self.stage.env)
        return err

    def check(self):
        self.inside.stdin.close()
        self.inside.wait()
        equal(os.stat(self.victim).st_uid, 0, "owner of root's folder")
        equal(os.listdir(self.victim), ["keep"], "what is in it")


@test
def folder_exchanged_once_made():
    "a folder of root's that is put in the place of the session's, once that is made, stays root's, and keeps its files"
    attack = Exchange()
    racer = exchange(attack.runtime, attack.decoy)
    err = attack.held_after("mkdirat")
    equal(os.waitpid(racer, 0)[1], 0, "status of the racer, which saw the session's folder (stderr: %s)" % err)
    attack.check()


@test
def folder_exchanged_before_the_end():
    "so does one that is put there while the session runs: nothing of it is removed at the end"
    attack = Exchange()
    child, _ = attack.stage.record("-p", str(attack.inside.pid))
    until(lambda: served(attack.runtime, child), "attached")
    equal(os.waitpid(exchange(attack.runtime, attack.decoy), 0)[1], 0, "status of the exchange")
    interrupt(child)
    attack.check()


@test
def no_call_of_root_names_a_users_file():
    "root itself makes, opens, gives away and removes nothing by name in another user's folder"
    need("strace")
    stage = Stage()
    runtime = stage.runtime(USER)
    asked = stage.program(USER)
    calls = stage.folder + "/calls"
    run(["timeout", "-s", "INT", "2", "strace", "-ff", "-qq", "-o", calls, "-e", "trace=%file,fchown,openat2,mkdirat,unlinkat",
         PEM, "stat", "-e", EVENT, "-p", str(asked.pid)], env=stage.env)
    asked.stdin.close()
    asked.wait()
    for name in glob.glob(calls + ".*"):
        with open(name, encoding="utf-8", errors="replace") as file:
            text = file.read()
        if "pem-confined" in text:
            continue
        waits = [line for line in text.splitlines() if any(word in line for word in ('"environ"', '"root"', "/ns/mnt"))]
        equal(waits, [], "calls of root that wait for a user's exec")
        found = [line for line in text.splitlines() if runtime in line or "fchown(" in line or "mkdirat(" in line]
        equal(found, [], "calls of root in the user's folder")


@test
def helpers_have_no_rights():
    "a helper has the user's ids, no capability, no new privileges, and a filter"
    stage = Stage()
    asked = stage.program(USER)
    child, _ = stage.record("-p", str(asked.pid))
    until(lambda: served(stage.runtime(USER), child), "attached")
    until(lambda: helpers(child.pid, USER), "a helper of the user's")
    for status in helpers(child.pid, USER).values():
        equal(status["Uid"].split(), [str(USER)] * 4, "user")
        equal(status["Gid"].split(), [str(USER)] * 4, "group")
        equal(status["Groups"].split(), [], "groups")
        for kind in "CapInh", "CapPrm", "CapEff", "CapAmb":
            equal(int(status[kind], 16), 0, kind)
        equal(status["NoNewPrivs"].strip(), "1", "no new privileges")
    until(lambda: all(status["Seccomp"].strip() == "2" for status in helpers(child.pid, USER).values()), "filters")
    interrupt(child)


def helper_ends(how, said):
    """Of two users one stops or kills his helper: what the other's program raises is recorded all the same."""
    stage = Stage()
    good, bad = stage.program(60001), stage.program(USER)
    child, trace = stage.record("-p", "%d,%d" % (bad.pid, good.pid))
    until(lambda: served(stage.runtime(60001), child) and served(stage.runtime(USER), child), "attached to both")
    until(lambda: helpers(child.pid, USER), "a helper of the user's")
    run(as_user(USER) + ["kill", "-" + how, *map(str, helpers(child.pid, USER))])
    tick(good, 50)
    rc, _, err = interrupt(child)
    equal(rc, 0, "status (stderr: %s)" % err)
    assert said in err and "user 60001" not in err, err
    equal(session_in(stage.runtime(60001), child.pid), [], "left in the other's folder")
    found = ticks(trace)
    equal(sorted(n for raiser, some in found.items() if raiser[0] == good.pid for n in some), list(range(1, 51)), "ticks")


@test
def helper_stopped():
    "a user who stops the helper with his rights stalls nobody, and it is said"
    helper_ends("STOP", "does not answer")


@test
def helper_killed():
    "nor does one who kills it"
    helper_ends("KILL", "has ended")


@test
def specs_beside_anothers_program():
    "root reads no spec that lies beside another user's program which it attaches to"
    stage = Stage()
    asked = stage.program(USER)
    os.chown(stage.folder, USER, USER)
    with open(stage.folder + "/bait.xml", "w", encoding="ascii") as file:
        file.write("<spec provider='bait' description='x'><event name='APP::Bait::Taken' description='x'/></spec>")
    command = [PEM, "stat", "-e", "APP::Bait::Taken", "-p", str(asked.pid)]
    rc, _, err = run(["timeout", "-s", "INT", "20", *command], env=stage.env, cwd="/")
    os.chown(stage.folder, 0, 0)
    equal(rc, 1, "status")
    assert "'APP::Bait::Taken'" in err and "bait.xml" not in err, err
    os.chmod(stage.folder, 0o1777)
    rc, _, err = run(["timeout", "-s", "INT", "20", *command], env=stage.env, cwd="/")
    assert "bait.xml" not in err, "of a folder like /tmp: " + err
    os.chmod(stage.folder, 0o755)
    rc, _, err = run(["timeout", "-s", "INT", "20", *command], env=stage.env, cwd="/")
    assert "bait.xml" in err, "of root's own folder: " + err


def all_are_told_to_end(number):
    """A signal for the recorder and its helpers: nothing is left behind, and no event is lost."""
    stage = Stage()
    asked = stage.program(USER)
    child, trace = stage.record("-p", str(asked.pid))
    until(lambda: served(stage.runtime(USER), child), "attached")
    tick(asked, 50)
    if number == signal.SIGTERM:  # of a unit, not of a group
        for pid in helpers(child.pid, USER):
            os.kill(pid, number)
    os.killpg(child.pid, number)
    _, err = child.communicate(timeout=60)
    equal((child.returncode, session_in(stage.runtime(USER), child.pid)), (0, []), "status, and what is left (stderr: %s)" % err)
    assert "has ended" not in err, err
    equal(ticks(trace).get((asked.pid, asked.pid, 0)), list(range(1, 51)), "ticks")


@test
def terminal_interrupts_all():
    "^C of a terminal, which its whole group of processes gets, leaves nothing behind, and no event is lost"
    all_are_told_to_end(signal.SIGINT)


@test
def unit_is_stopped():
    "nor does SIGTERM to all processes of a unit"
    all_are_told_to_end(signal.SIGTERM)


def overlay_in(*namespaces):
    """
    A user's program whose runtime folder is an overlay that was mounted in these namespaces, by root if they have no
    user's: is there a session of root's record -p in it?
    """
    need("unshare", "mount")
    stage, uid = Stage(), 60061
    folders = [os.path.join(stage.folder, name) for name in ("lower", "upper", "work")]
    for folder in folders:
        os.mkdir(folder, 0o700)
        os.chown(folder, uid, uid)
    mount = "mount -t overlay overlay -o lowerdir=%s,upperdir=%s,workdir=%s" % tuple(folders) + " " + stage.runtime(uid)
    begin, become = as_user(uid), ""
    if "--user" not in namespaces:
        begin, become = ["env"], " ".join(as_user(uid))
    if subprocess.run(begin + ["unshare", *namespaces, "sh", "-c", mount], stderr=subprocess.DEVNULL).returncode:
        skip("this kernel lets nobody mount an overlay there")
    asked = start(begin + ["unshare", *namespaces, "sh", "-c", "%s && exec %s env LD_PRELOAD=%s %s" %
                           (mount, become, stage.library, stage.asked)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                  text=True, bufsize=1, cwd="/", env={"PEM_RUNTIME_DIR": stage.runtime(uid), "XDG_RUNTIME_DIR": None,
                                                      "PEM_SESSION": None})
    wait_ready(asked)
    assert any(name.startswith("control-") for name in os.listdir(folders[1])), "the program's file is in the overlay"
    child, _ = stage.record("-p", str(asked.pid))
    said = ""
    while "until" not in said:
        line = child.stderr.readline()
        if not line:
            break
        said += line
    found = session_in(folders[1], child.pid)
    interrupt(child)
    return found, said


@test
def overlay_of_a_users():
    "root uses no overlay that a user mounted: one over a FUSE file system of his would make root's touches of memory wait"
    equal(overlay_in("--user", "--map-root-user", "--mount")[0], [], "sessions in the overlay")


@test
def overlay_of_roots():
    "it uses one that root mounted, as containers have it"
    found, said = overlay_in("--mount")
    equal(len(found), 1, "sessions in the overlay (stderr: %s)" % said)


@test
def name_taken_by_another():
    "root finds the folder of a user whose usual name in /dev/shm another has taken"
    stage, squatted = Stage(), "/dev/shm/pem-60031"
    if os.path.lexists(squatted):
        skip(squatted + " is there already; remove it")
    os.mkdir(squatted)
    try:
        asked = start(as_user(60031) + ["env", "LD_PRELOAD=" + stage.library, stage.asked], stdin=subprocess.PIPE,
                      stdout=subprocess.PIPE, text=True, bufsize=1, cwd="/",
                      env={"PEM_RUNTIME_DIR": None, "XDG_RUNTIME_DIR": None, "PEM_SESSION": None})
        wait_ready(asked)
        theirs, = glob.glob(squatted + "-*")
        child, trace = stage.record("-p", str(asked.pid))
        until(lambda: served(theirs, child), "attached")
        tick(asked, 7)
        interrupt(child)
        equal(ticks(trace), {(asked.pid, asked.pid, 0): list(range(1, 8))}, "ticks")
    finally:
        os.rmdir(squatted)
        for path in glob.glob(squatted + "-*"):
            shutil.rmtree(path)


@test
def folder_behind_many_others():
    "root finds a user's folder although others have filled /dev/shm with more names than are read of it, and says so"
    stage, uid = Stage(), 60051
    need_mounts()
    user = " ".join(as_user(uid))
    asked = start(["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o mode=1777 none /dev/shm && exec %s env LD_PRELOAD=%s %s" %
                   (user, stage.library, stage.asked)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                  cwd="/", env={"PEM_RUNTIME_DIR": None, "XDG_RUNTIME_DIR": None, "PEM_SESSION": None})
    wait_ready(asked)
    shared = "/proc/%d/root/dev/shm" % asked.pid
    for number in range(70000):  # a tmpfs lists what is newest first
        os.close(os.open("%s/%d" % (shared, number), os.O_CREAT, 0o600))
    child, trace = stage.record("-p", str(asked.pid))
    until(lambda: served(shared + "/pem-%d" % uid, child), "attached")
    tick(asked, 5)
    said = ""
    while "until it ends" not in said:  # an interrupt ends the attaching, too, which waits for the helper that reads them all
        said += child.stderr.readline() or "ended: until it ends"
    err = said + interrupt(child)[2]
    equal(err.count("/dev/shm has more than 65536 names: a runtime folder of user %d" % uid), 1, "sentences in " + err)
    equal(ticks(trace), {(asked.pid, asked.pid, 0): list(range(1, 6))}, "ticks")


@test
def program_that_comes_later():
    "a user's program with a runtime folder of its own is found when the one that was asked before has ended"
    stage, uid = Stage(), 60041
    first = start(as_user(uid) + ["sleep", "60"], env={"PEM_RUNTIME_DIR": stage.folder, "XDG_RUNTIME_DIR": None}, cwd="/")
    until(lambda: "sleep" in open("/proc/%d/comm" % first.pid, encoding="ascii").read(), "a program of the user's")
    child, trace = stage.record("-a")
    until(lambda: helpers(child.pid, uid), "a helper of the user's")
    asked = stage.program(uid)
    first.kill()
    first.wait()
    until(lambda: served(stage.runtime(uid), child), "attached")
    tick(asked, 4)
    rc, _, err = interrupt(child)
    equal(rc, 0, "status (stderr: %s)" % err)
    equal(ticks(trace).get((asked.pid, asked.pid, 0)), [1, 2, 3, 4], "ticks (stderr: %s)" % err)


@test
def twenty_users():
    "each of twenty users' programs is observed by root's record -a"
    stage = Stage()
    users = range(60001, 60021)
    children = [stage.program(uid) for uid in users]
    child, trace = stage.record("-a")
    for uid in users:
        until(lambda uid=uid: served(stage.runtime(uid), child), "attached to user %d's" % uid)
    for asked in children:
        tick(asked, 3)
    rc, _, err = interrupt(child)
    equal(rc, 0, "status (stderr: %s)" % err)
    found = ticks(trace)
    for asked in children:
        equal(found.get((asked.pid, asked.pid, 0)), [1, 2, 3], "ticks of a user's (stderr: %s)" % err)
    equal([name for uid in users for name in session_in(stage.runtime(uid), child.pid)], [], "left in the users' folders")


run_all()
