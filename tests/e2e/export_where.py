# SPDX-License-Identifier: MIT
"""export_where: which files pem export and record write, if another user may choose what their names lead to"""
import os
import stat
import subprocess

from tap import PEM, equal, need, run, run_all, skip, start, test, tmp
from trace_files import Trace


def trace_in(folder):
    """A small trace, from which pem export makes t.csv in the folder."""
    Trace().write(os.path.join(folder, "traces", "t"))
    return os.path.join(folder, "traces", "t")


def export(folder, *more):
    return run([PEM, "export", "--to", "csv", *more, trace_in(folder) if not more else "traces/t"], cwd=folder, timeout=20)


def refused(folder, word):
    rc, out, err = export(folder)
    equal((rc, out), (1, ""), "status and output: " + err)
    assert "t.csv" in err and word in err and "-o" in err, err


@test
def default_output_is_made_and_replaced():
    "without -o a regular file is made, and one of the same user is replaced: what was linked to it stays"
    folder = tmp()
    equal(export(folder)[0], 0, "status")
    os.link(folder + "/t.csv", folder + "/linked")
    with open(folder + "/linked", "w") as file:
        file.write("mine")
    equal(export(folder, "-o", "t.csv")[0], 0, "status")
    with open(folder + "/linked") as file:
        equal(file.read(), "mine", "the linked file")


@test
def default_output_follows_no_link():
    "without -o a link at the default name is refused, whatever it leads to, and neither is touched"
    for target in ("victim", "pipe", "nothing", "/dev/null"):
        folder = tmp()
        os.mkfifo(folder + "/pipe")
        with open(folder + "/victim", "w") as file:
            file.write("precious")
        os.symlink(target, folder + "/t.csv")
        refused(folder, "not a regular file")
        with open(folder + "/victim") as file:
            equal(file.read(), "precious", "the victim")
        equal(os.readlink(folder + "/t.csv"), target, "the link")


@test
def default_output_opens_no_pipe():
    "without -o a pipe or a folder at the default name is refused and stays"
    for make, kind in ((os.mkfifo, stat.S_ISFIFO), (os.mkdir, stat.S_ISDIR)):
        folder = tmp()
        make(folder + "/t.csv")
        refused(folder, "not a regular file")
        assert kind(os.lstat(folder + "/t.csv").st_mode), "it was replaced"


@test
def default_output_of_another_user():
    "without -o root replaces no file of another user"
    if os.geteuid() != 0:
        skip("only root can make a file of another user")
    folder = tmp()
    with open(folder + "/t.csv", "w") as file:
        file.write("theirs")
    os.chown(folder + "/t.csv", 65534, 65534)
    refused(folder, "another user's")
    equal(os.stat(folder + "/t.csv").st_uid, 65534, "owner")


@test
def named_outputs_are_followed():
    "-o may name standard output's device, a pipe, and a link, which leads on"
    folder = tmp()
    trace_in(folder)
    wanted = run([PEM, "export", "--to", "csv", "traces/t", "-o", "-"], cwd=folder)[1]
    os.symlink("target", folder + "/link")
    rc, out, err = export(folder, "-o", "/dev/stdout")
    equal((rc, out), (0, wanted), "status and output: " + err)
    rc, out, err = run(["sh", "-c", 'mkfifo p; cat p & "$0" export --to csv traces/t -o p && wait', PEM], cwd=folder)
    equal((rc, out), (0, wanted), "status and output through a pipe: " + err)
    rc, out, err = export(folder, "-o", "link")
    equal((rc, out), (0, ""), "status and output: " + err)
    with open(folder + "/target") as file:
        equal(file.read(), wanted, "what the link leads to")
    assert os.path.islink(folder + "/link"), "the link was replaced"
    with open(folder + "/redirected", "w") as file:
        file.write("before")
    rc, out, err = run(["sh", "-c", '"$0" export --to csv traces/t -o /dev/stdout > redirected', PEM], cwd=folder)
    with open(folder + "/redirected") as file:
        equal((rc, file.read()), (0, wanted), "status and redirected output: " + err)
    assert os.path.islink("/dev/stdout"), "/dev/stdout was replaced"


@test
def trace_folder_that_is_a_link():
    "-o of record may name a link to an empty folder"
    folder = tmp()
    os.mkdir(folder + "/real")
    os.symlink("real", folder + "/link")
    rc, _, err = run([PEM, "record", "-q", "-e", "APP", "-o", "link", "--", "true"], cwd=folder)
    equal((rc, os.path.exists(folder + "/real/metadata")), (0, True), "status, and the trace: " + err)


OTHER = 65533


def folder_of_another(name):
    """A folder of another user's with an empty one in it."""
    if os.geteuid() != 0:
        skip("only root can make a folder of another user")
    folder = tmp()
    os.mkdir(os.path.join(folder, name))
    for path in folder, os.path.join(folder, name):
        os.chown(path, OTHER, OTHER)
    return folder


@test
def trace_folder_of_another_user():
    "root records into no empty folder of another user, who could exchange the files there"
    folder = folder_of_another("theirs")
    rc, _, err = run([PEM, "record", "-q", "-e", "APP", "-o", "theirs", "--", "touch", "ran"], cwd=folder)
    assert rc != 0 and "belongs to user 65533" in err and "choose" in err, (rc, err)
    equal((os.listdir(folder), os.listdir(folder + "/theirs")), (["theirs"], []), "what is there")


@test
def trace_folder_exchanged_once_made():
    "root records into no folder that another user puts in the place of the one that was made"
    need("strace")
    folder = folder_of_another("decoy")
    racer = start(["setpriv", "--reuid=%d" % OTHER, "--regid=%d" % OTHER, "--clear-groups", "sh", "-c",
                   "until mv -T pem-trace-true-1 made; do :; done; exec mv -T decoy pem-trace-true-1"], cwd=folder,
                  stderr=subprocess.DEVNULL)
    # strace holds pem for a moment after each folder that it makes.
    rc, _, err = run(["strace", "-qq", "-o", tmp() + "/calls", "-e", "trace=mkdir", "-e", "inject=mkdir:delay_exit=300000",
                      PEM, "record", "-q", "-e", "APP", "--", "true"], cwd=folder)
    equal(racer.wait(), 0, "status of the racer")
    assert rc != 0 and "belongs to user 65533" in err, (rc, err)
    equal(os.listdir(folder + "/pem-trace-true-1"), [], "in the other user's folder")


run_all()
