# SPDX-License-Identifier: MIT
"""
attach_other_users.py - what one user's programs say and leave behind costs no other user an event in root's recording

The hostile user writes into the session's folder in its own runtime folder, as each user may. Not here: damage within a
pool (attach_hostile.py), what root does with whose rights (attach_containers.py).
"""
import csv
import glob
import os
import re
import shutil
import subprocess
import time

from attached import LIBPEM, Asked, Observer, numbers
from probe_trace import program, ticks
from spec_program import FIRST, build
from tap import PEM, equal, need, run, run_all, skip, start, test, tmp

# Nobody else's: root's session asks one process of each user where that user's runtime folder is.
USERS = {"honest": 100000 + 2 * os.getpid(), "hostile": 100001 + 2 * os.getpid()}


def need_root():
    if os.geteuid():
        skip("processes of other users need root")


class User(Asked):
    """A program of a user's, in a runtime folder that the user owns."""

    def __init__(self, folder, who, command=None):
        self.uid = USERS[who]
        runtime = os.path.join(folder, who)
        if not os.path.isdir(runtime):
            os.mkdir(runtime, 0o700)
            os.chown(runtime, self.uid, self.uid)
        library = os.path.join(folder, "libpem.so.1")
        if not os.path.exists(library):
            shutil.copy(LIBPEM, library)
        copy = os.path.join(folder, "program-" + who)
        shutil.copy((command or program("asked"))[0], copy)
        super().__init__(folder, command=["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid),
                                          "--clear-groups", "env", "LD_PRELOAD=" + library, copy],
                         PEM_RUNTIME_DIR=runtime, LD_PRELOAD=None)
        self.runtime, self.consumers = runtime, os.path.join(folder, "ours")

    def session(self, observer):
        """The folder of an observer's session there, once there is one."""
        for _ in range(300000):
            found = glob.glob(os.path.join(self.runtime, "session-%d-*" % observer.child.pid))
            if found:
                return found[0]
            time.sleep(0.002)
        raise AssertionError("no session in %s" % self.runtime)

    def leave(self, observer, name, data):
        """Write a file into the session's folder, as the user."""
        path = os.path.join(self.session(observer), name)
        with open(path + ".new", "wb") as file:
            file.write(data)
        os.chown(path + ".new", self.uid, self.uid)
        os.rename(path + ".new", path)
        return path


class AnyEvent(Observer):
    """pem record -a of whatever programs raise, without their specs."""

    def __init__(self, *users):
        self.folder = tmp()
        self.trace = os.path.join(self.folder, "trace")
        self.verb = "record"
        self.child = start([PEM, "record", "-q", "--no-libc", "-a", "-e", "APP", "-o", self.trace],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={"PEM_RUNTIME_DIR": users[0].consumers})
        for user in users:
            self.wait_for(user)


def shared_folder():
    folder = tmp()
    os.chmod(folder, 0o755)
    return folder


def is_mapped(observer, path):
    with open("/proc/%d/maps" % observer.child.pid, encoding="utf-8") as maps:
        return path in maps.read()


def wait_for_scan(observer, path):
    """Until the recorder has mapped a file."""
    for _ in range(120000):
        if is_mapped(observer, path):
            return
        time.sleep(0.005)
    raise AssertionError("%s is not mapped" % path)


def raise_until_scanned(observer, user):
    """Until the recorder, which has to hear of the user's events first, has mapped a pool of the user's program."""
    for _ in range(120000):
        user.ask("1")
        if is_mapped(observer, "/pool-%d-" % user.pid):
            return
        time.sleep(0.005)
    raise AssertionError("no pool of process %d is mapped" % user.pid)


def report_of(observer):
    rc, out, err = run([PEM, "report", observer.trace])
    equal(rc, 0, "report: " + err + out)
    return out


@test
def false_model():
    "a false text under the hash of another user's model costs that user no event"
    need_root()
    folder = shared_folder()
    hostile = User(folder, "hostile")  # found first
    honest = User(folder, "honest")
    observer = Observer(honest, "record", "-a")
    honest.ask("tick 1")
    wait_for_scan(observer, "/honest/")
    models = {os.path.basename(path): open(path, "rb").read() for path in glob.glob(honest.session(observer) + "/model-*")}
    observer.end()
    assert models, "no model was left"
    observer = Observer(honest, "record", "-a")
    observer.wait_for(hostile)
    for name, text in models.items():
        hostile.leave(observer, name, text.replace(b"\twho\t", b"\tWho\t").replace(b" _who;", b" _Who;"))
    hostile.ask("tick 10")
    honest.ask("tick 100")
    observer.end()
    equal(numbers(ticks(observer.trace), honest.pid), list(range(2, 102)), "ticks of the honest user")
    equal(numbers(ticks(observer.trace), hostile.pid), [], "ticks of the hostile user")
    assert "1 events of programs of user %d are counted as discarded" % hostile.uid in report_of(observer), report_of(observer)


def define_differently(first, later):
    """Two users' programs give one event different fields. The rows of the trace."""
    need("gcc")
    need_root()
    folder = shared_folder()
    users = {}
    for who, cents in ((first, "uint32"), (later, "uint64")):
        spec = (FIRST % "someone paid").replace("type='uint32'", "type='%s'" % cents)
        call = "char line[99];\n\tsetbuf(stdout, NULL);\n\tputs(\"ready\");\n\twhile (fgets(line, 99, stdin)) {\n" \
               "\t\tpem_notify_till_paid(strtoull(line, NULL, 10));\n\t\tputs(\"ready\");\n\t}"
        users[who] = User(folder, who, [build(folder, who + "-program", spec, call, "stdio.h", "stdlib.h")])
    observer = AnyEvent(*users.values())
    raise_until_scanned(observer, users[first])
    users[first].ask("7")
    raise_until_scanned(observer, users[later])
    users[later].ask("250")
    users[later].ask("251")
    observer.end()
    rc, out, err = run([PEM, "export", "--to", "csv", "-o", "-", observer.trace])
    equal(rc, 0, "export: " + err)
    report_of(observer)
    rc, out2, err = run(["babeltrace2", observer.trace]) if shutil.which("babeltrace2") else (0, "", "")
    equal((rc, err), (0, ""), "babeltrace2")
    return [(r["event"], r["cents"]) for r in csv.DictReader(out.splitlines()) if "Till" in r["event"] and r["cents"] != "1"]


def check_both(first, later):
    """Whose helper answers first keeps the event's name."""
    found = define_differently(first, later)
    plain, of_user = "APP::Till::Paid", "APP::Till::Paid_of_user_%d"
    names = {"7": of_user % USERS[first], "250": plain} if found[0][0] != plain else {"7": plain, "250": of_user % USERS[later]}
    equal(found, [(names["7"], "7"), (names["250"], "250"), (names["250"], "251")], "events")


@test
def events_defined_differently():
    "an event that two users define differently is recorded of both, each with its own fields"
    check_both("honest", "hostile")


@test
def events_defined_first():
    "who defines another's event first, with other fields, silences nobody"
    check_both("hostile", "honest")


def pools_left(hostile, leave):
    """Call leave with names that pools of the hostile user's may have, and record an honest one meanwhile."""
    honest = User(os.path.dirname(hostile.runtime), "honest")
    observer = Observer(honest, "record", "-a")
    leave(observer, ["pool-1-%d" % i for i in range(3500)])
    honest.ask("tick 100")
    observer.end()
    equal(numbers(ticks(observer.trace), honest.pid), list(range(1, 101)), "ticks of the honest user")
    return report_of(observer)


@test
def linked_pools():
    "thousands of links to one sparse pool are refused, and counted, and said"
    need_root()
    hostile = User(shared_folder(), "hostile")

    def leave(observer, names):
        first = hostile.leave(observer, "new", b"PEMP" + bytes(4092))
        os.truncate(first, 1 << 30)
        for name in names:
            os.link(first, os.path.join(os.path.dirname(first), name))

    report = pools_left(hostile, leave)
    assert re.search(r"\b[1-9]\d{3} files of user %d were not read" % hostile.uid, report), "reported: " + report


@test
def sparse_pools():
    "thousands of sparse pools of another geometry are refused, and counted, and said"
    need_root()
    hostile = User(shared_folder(), "hostile")

    def leave(observer, names):
        for name in names:
            os.truncate(hostile.leave(observer, name, b"PEMP" + bytes(4092)), 1 << 30)

    report = pools_left(hostile, leave)
    assert re.search(r"\b[1-9]\d{3} files of user %d are no pools" % hostile.uid, report), "reported: " + report


run_all()
