# SPDX-License-Identifier: MIT
"""runtime_folder: where a user's programs and consumers meet, whatever other users have put in the way"""
import json
import os
import re
import shutil
import signal
import stat
import time

from patience import HANG_S
from tap import PEM, SAN, equal, need_reach, run, run_all, skip, start, test, tmp

UID, OTHER = 54321, 54322  # nobody's
SHARED = "/dev/shm", "/tmp"
USUAL = "pem-%d" % UID
RANDOM = re.compile(r"pem-%d-[0-9a-f]{16}$" % UID)


def as_user(uid):
    return ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid, "--clear-groups"]


def env(**more):
    return dict({"PEM_RUNTIME_DIR": None, "XDG_RUNTIME_DIR": None, "HOME": "/"}, **more)


def remove_all():
    for base in SHARED:
        for name in os.listdir(base):
            if name.startswith(USUAL):
                path = os.path.join(base, name)
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)


def with_users(function):
    """Run a test where users can be had and no folder of theirs is there; and leave none."""
    def body():
        if SAN:
            skip("a sanitizer's build is not readable to others everywhere")
        need_reach()
        for base in SHARED:
            if not os.path.isdir(base) or os.stat(base).st_mode & 0o1777 != 0o1777:
                skip("%s is no folder that everybody may write to" % base)
        remove_all()
        try:
            function()
        finally:
            remove_all()
    body.__doc__, body.__name__ = function.__doc__, function.__name__
    return body


def own_folders(base):
    """Names of the user's own folders there."""
    return sorted(name for name in os.listdir(base) if name.startswith(USUAL)
                  and os.lstat(os.path.join(base, name)).st_uid == UID)


def meets():
    """A program of the user's, and a consumer of the same user's that attaches to it. The folders they used."""
    target = start(as_user(UID) + [PEM, "run", "--", "sh", "-c", "while sleep 0.01; do :; done"], env=env(), cwd="/")
    try:
        used = lambda: [os.path.join(base, name) for base in SHARED for name in own_folders(base)
                        if any(f.startswith(("control-%d-" % target.pid, "standby-"))
                               for f in os.listdir(os.path.join(base, name)))]
        until = time.monotonic() + HANG_S
        while not used():
            assert target.poll() is None and time.monotonic() < until, "the program made no file"
            time.sleep(0.01)
        found = used()
        seconds, count = 0.5, 0
        while not count:
            assert seconds < 20, "nothing of the program is counted"
            rc, out, err = run(["timeout", "-s", "INT", str(seconds)] + as_user(UID) +
                               [PEM, "stat", "--json", "-e", "Libc::*", "-p", str(target.pid)], env=env(), cwd="/")
            count = sum(event["count"] for event in json.loads(out)["events"]) if out else 0
            seconds *= 2
        return found
    finally:
        os.killpg(target.pid, signal.SIGKILL)
        target.wait()


def squat(base, name, kind, target="/"):
    """Another user takes a name."""
    path = os.path.join(base, name)
    if kind == "folder":
        os.mkdir(path, 0o777)
        os.chmod(path, 0o777)
    elif kind == "file":
        with open(path, "w", encoding="ascii"):
            pass
    else:
        os.symlink(target, path)
    os.chown(path, OTHER, OTHER, follow_symlinks=False)


@test
@with_users
def usual_name():
    "where nobody is in the way it is pem-UID in /dev/shm, and no other"
    equal(meets(), ["/dev/shm/" + USUAL], "folders")
    equal([own_folders(base) for base in SHARED], [[USUAL], []], "made")


@test
@with_users
def names_taken_by_others():
    "where another user has taken the usual names, by a folder, a file or a link, user's programs and consumers meet all the same"
    for kind in ("folder", "file", "link"):
        for base in SHARED:
            squat(base, USUAL, kind)
        found = meets()
        equal(len(found), 1, "folders of the program (%r)" % found)
        base, name = os.path.split(found[0])
        assert base == "/dev/shm" and RANDOM.match(name), found
        equal(stat.S_IMODE(os.stat(found[0]).st_mode), 0o700, "mode")
        equal(meets(), found, "folders of the next program")
        equal([own_folders(base) for base in SHARED], [[name], []], "made")
        remove_all()


@test
@with_users
def names_that_others_guess():
    "folders of others whose names look like the user's are passed over, and links; of the user's own the first by name counts"
    squat("/dev/shm", USUAL, "folder")
    for digit in "0", "f":
        squat("/dev/shm", USUAL + "-" + 16 * digit, "folder")
    os.mkdir("/tmp/" + USUAL + "-target", 0o700)
    os.chown("/tmp/" + USUAL + "-target", UID, UID)
    squat("/dev/shm", USUAL + "-" + 15 * "0" + "1", "link", "/tmp/" + USUAL + "-target")
    for name in "-" + 15 * "0" + "2", "-" + 16 * "5", "-" + 16 * "3", "-" + 16 * "4", "-" + 16 * "1" + "1":
        path = "/dev/shm/" + USUAL + name
        os.mkdir(path, 0o700)
        os.chown(path, UID, UID)
    os.chmod("/dev/shm/" + USUAL + "-" + 15 * "0" + "2", 0o770)  # others may write there
    equal(meets(), ["/dev/shm/" + USUAL + "-" + 16 * "3"], "folders")


@test
@with_users
def root_of_a_user_namespace():
    "who is root in a user namespace, where root's name is taken, uses the folder that the user has outside, and leaves no other"
    os.makedirs("/dev/shm/pem-0", 0o700, exist_ok=True)
    if run(as_user(UID) + ["unshare", "-Ur", "true"])[0]:
        skip("this kernel lets no ordinary user have namespaces")
    before = set(os.listdir("/dev/shm"))
    record = [PEM, "stat", "-q", "-e", "APP", "--", "true"]
    try:
        equal(run(as_user(UID) + ["unshare", "-Ur"] + record, env=env(), cwd="/")[0], 0, "status")
        made = [name for name in set(os.listdir("/dev/shm")) - before if os.stat("/dev/shm/" + name).st_uid == UID]
        equal(made, [USUAL], "made")
    finally:
        for name in set(os.listdir("/dev/shm")) - before:
            if name.startswith("pem-0-") and os.stat("/dev/shm/" + name).st_uid == UID:
                shutil.rmtree("/dev/shm/" + name)


@test
@with_users
def where_one_can_log_in():
    "without XDG_RUNTIME_DIR, as in cron's jobs, /run/user/UID is found; one that is not the user's own is not"
    base = "/run/user/%d" % UID
    if not os.path.isdir("/run/user") or os.path.exists(base):
        skip("there is no /run/user, or %s is there" % base)
    record = as_user(UID) + [PEM, "stat", "-q", "-e", "APP", "--", "true"]
    os.mkdir(base, 0o700)
    try:
        os.chown(base, UID, UID)
        equal(run(record, env=env(), cwd="/")[0], 0, "status")
        equal(os.listdir(base), ["pem"], "made in " + base)
        equal([own_folders(b) for b in SHARED], [[], []], "made elsewhere")
        os.chown(base, OTHER, OTHER)
        os.chmod(base, 0o777)
        os.rmdir(base + "/pem")
        equal(run(record, env=env(), cwd="/")[0], 0, "status")
        equal([os.listdir(base), own_folders("/dev/shm")], [[], [USUAL]], "made")
    finally:
        shutil.rmtree(base)


@test
@with_users
def roots_is_not_anothers():
    "root, with variables of the user who called su or sudo -E, makes nothing in that user's folders"
    folder = tmp()
    os.chown(folder, UID, UID)
    rc, _, err = run([PEM, "stat", "-q", "-e", "APP", "--", "true"], env=env(XDG_RUNTIME_DIR=folder))
    equal([rc, os.listdir(folder)], [0, []], "status (%s), and what is there" % err)
    rc, _, err = run([PEM, "stat", "-q", "-e", "APP", "--", "true"], env=env(PEM_RUNTIME_DIR=folder + "/mine"))
    equal([rc, os.listdir(folder)], [2, []], "status (%s), and what is there" % err)
    assert "it would lie in a folder of another user" in err, err


run_all()
