# SPDX-License-Identifier: MIT
"""
attach_containers.py - processes in other mount and pid namespaces, and of other users, are found and named as outside
"""
import os
import shutil
import subprocess

from attached import LIBPEM, Asked, Observer
from probe_trace import check_balance, program
from stage import served, until
from tap import BUILD, PEM, equal, run, run_all, skip, start, test, tmp


def need_root():
    if os.geteuid():
        skip("making namespaces and processes of other users needs root")


def child_of(pid):
    """The number outside of the one process that a process has started."""
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as children:
        pids = [int(word) for word in children.read().split()]
    return pids[0] if pids else pid


def container():
    """A program in mount and pid namespaces of its own, with its own /dev/shm; (it, its number outside)."""
    need_root()
    command = ["unshare", "--fork", "--pid", "--mount", "--kill-child", "sh", "-c",
               "mount -t tmpfs none /dev/shm && mount -t proc none /proc && "
               "LD_PRELOAD=%s exec %s" % (LIBPEM, program("asked")[0])]
    if subprocess.run(command[:5] + ["true"], stderr=subprocess.DEVNULL).returncode:
        skip("namespaces can't be made here")
    inside = Asked(tmp(), command=command, LD_PRELOAD=None, PEM_RUNTIME_DIR=None, XDG_RUNTIME_DIR=None)
    return inside, child_of(inside.pid)


class Outside(Observer):
    """An observer outside of the container that its target lives in."""

    def _wait_for_entry(self, asked):
        marker = "/proc/%d/root/dev/shm/pem-0" % self.target
        until(lambda: served(marker, self.child) or self.child.poll() is not None, "the process in the container is observed")

    def __init__(self, asked, target, *options):
        self.target = target
        super().__init__(asked, *options)


@test
def attach_to_a_container():
    "a process in a container is attached to by its number outside, and recorded under that number"
    inside, pid = container()
    inside.runtime = os.path.join(tmp(), "runtime")
    observer = Outside(inside, pid, "record", "-p", str(pid))
    (told, _, _, count), = inside.ask("tick 40")
    assert told != pid, "the number inside is another"
    found = observer.ticks()
    equal(found, {(pid, pid, 0): list(range(1, 41))}, "ticks")
    check_balance(observer.trace, 40)


@test
def threads_of_a_container():
    "its threads have their numbers outside, too"
    inside, pid = container()
    inside.runtime = os.path.join(tmp(), "runtime")
    observer = Outside(inside, pid, "record", "-p", str(pid))
    inside.ask("fork 5")
    inside.ask("tick 5")
    found = observer.ticks()
    equal(sorted(map(len, found.values())), [5, 5], "ticks of the process and its child")
    assert (pid, pid, 0) in found, found


@test
def all_with_containers():
    "record -a of root finds programs in containers"
    inside, pid = container()
    inside.runtime = os.path.join(tmp(), "runtime")
    observer = Outside(inside, pid, "record", "-a")
    inside.ask("tick 6")
    found = observer.ticks()
    equal(found.get((pid, pid, 0)), list(range(1, 7)), "ticks")


@test
def attach_to_another_user():
    "root attaches to a process of another user, whose files stay that user's"
    need_root()
    folder = tmp()
    os.chmod(folder, 0o755)
    theirs = os.path.join(folder, "theirs")
    os.mkdir(theirs, 0o700)
    os.chown(theirs, 65534, 65534)
    copy, library = os.path.join(folder, "asked"), os.path.join(folder, "libpem.so.1")
    shutil.copy(program("asked")[0], copy)
    shutil.copy(LIBPEM, library)
    asked = Asked(folder, command=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                                   "env", "LD_PRELOAD=" + library, copy], PEM_RUNTIME_DIR=theirs, LD_PRELOAD=None)
    asked.runtime, asked.consumers = theirs, os.path.join(folder, "ours")
    observer = Observer(asked, "record", "-p", str(asked.pid))
    # Another test's record -a has a session there, too.
    ours = "session-%d-" % observer.child.pid
    session, = [name for name in os.listdir(theirs) if name.startswith(ours)]
    equal(os.stat(os.path.join(theirs, session)).st_uid, 65534, "owner of the session's folder")
    equal(os.stat(os.path.join(theirs, session, "config")).st_mode & 0o777, 0o600, "mode of its page")
    asked.ask("tick 15")
    equal(observer.ticks(), {(asked.pid, asked.pid, 0): list(range(1, 16))}, "ticks")
    equal([name for name in os.listdir(theirs) if name.startswith(ours)], [], "left there")


@test
def folder_of_a_privileged_program():
    "root makes nothing in a folder that the user named to a program which runs with the rights of its file's owner"
    need_root()
    folder = tmp()
    named = os.path.join(folder, "named")
    os.mkdir(named, 0o700)
    os.utime(named, (0, 0))
    child = start(["setpriv", "--ruid", "65534", "sleep", "1"], env={"PEM_RUNTIME_DIR": named})
    while "sleep" not in open("/proc/%d/comm" % child.pid, encoding="utf-8").read():
        pass
    _, _, err = run([PEM, "stat", "-e", "APP", "-p", str(child.pid)],
                    env={"PEM_RUNTIME_DIR": os.path.join(folder, "ours")})
    child.wait()
    assert "raises no application events" in err, err
    equal(os.stat(named).st_mtime, 0, "time of the last file made there")


@test
def another_users_process():
    "who is not root can't attach to another user's process, and is told so"
    need_root()
    folder = tmp()
    os.chmod(folder, 0o755)
    asked = Asked(folder)
    pem = os.path.join(folder, "bin")
    shutil.copytree(os.path.join(BUILD, "bin"), pem)
    shutil.copytree(os.path.join(BUILD, "lib"), os.path.join(folder, "lib"), symlinks=True)
    rc, _, err = run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", os.path.join(pem, "pem"),
                      "stat", "-e", "APP", "-p", str(asked.pid)],
                     env={"PEM_RUNTIME_DIR": None, "XDG_RUNTIME_DIR": None, "HOME": folder}, cwd="/")
    equal(rc, 2, "status (stderr: %s)" % err)
    assert "is another user's" in err, err


@test
def a_runtime_folder_of_another():
    "a runtime folder of another user is named with its owner"
    need_root()
    folder = tmp() + "/runtime"
    os.mkdir(folder, 0o700)
    os.chown(folder, 65534, 65534)
    rc, _, err = run([PEM, "stat", "--", "true"], env={"PEM_RUNTIME_DIR": folder})
    equal(rc, 2, "status")
    assert folder in err and "belongs to user 65534" in err, err


run_all()
