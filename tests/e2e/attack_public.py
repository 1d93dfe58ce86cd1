# SPDX-License-Identifier: MIT
"""
attack_public.py - users whose programs root's command starts, and who attack each other in the session's public folder

Not here: the folder's mode and its end (rights_given_up.py), runtime folders of the users' own (attack_folders.py).
"""
import csv
import json
import os
import shutil
import sys

from preload import compile_program, need_preload
from spec_program import FIRST, build
from tap import PEM, equal, need, need_reach, run, run_all, skip, test, tmp

A, B = 65533, 65534


def need_root():
    need_preload()
    need_reach()


def as_user(uid, script):
    return "setpriv --reuid %d --regid %d --clear-groups sh -c '%s'" % (uid, uid, script)


def recorded(script, events="APP::Libc::*", status=0, before=(), **env):
    """Record a script that root's shell runs; $D: a folder that all may write in. Its output and the report."""
    need_root()
    folder, trace = tmp(), tmp() + "/t"
    os.chmod(folder, 0o777)
    rc, out, err = run([*before, PEM, "record", "-q", "-o", trace, "-e", events, "--", "sh", "-c",
                        "F=${PEM_SESSION##*:}; D=%s; mkfifo -m 666 $D/ready $D/go\n" % folder + script], env=env)
    equal(rc, status, "status, with " + err + out)
    rc, report, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "the trace balances: " + err)
    return out, json.loads(report), trace


def gaps(report):
    return [gap["reason"] for gap in report["gaps"]]


def counts(report, name):
    return [p["count"] for p in report["processes"] if p["name"] == name]


@test
def page():
    "who cuts off, writes, or removes the page of a public folder does no harm to another user's programs there"
    attack = ": >$F/config; truncate -s 0 $F/config; dd if=/dev/zero of=$F/config bs=4096 count=9 conv=notrunc; " \
             "rm -f $F/config; mv $F/config $F/other; true"
    out, report, _ = recorded(
        as_user(B, "echo >$D/ready; read x <$D/go; (id -u; true); id -u; echo went on").replace("$D/", '\'"$D"\'/')
        + " &\nread x <$D/ready\nexport F\n" + as_user(A, "exec 2>/dev/null; " + attack) + "\necho >$D/go; wait\n"
        + "stat -c %a:%u $F/config")
    equal(out.split(), ["65534", "65534", "went", "on", "644:0"], "output")
    equal((gaps(report), report["events"]["discarded"]), ([], 0), "lost")
    equal(len(counts(report, "id")), 2, "programs that were started afterwards")


@test
def counts_of_lost():
    "what a program of another user loses is counted, said, and its file goes with it"
    out, report, _ = recorded(as_user(B, "ulimit -f 8; exec id -u") + """
for i in $(seq 500); do ls $F | grep -q counts- || break; sleep 0.01; done; ls $F | grep -c counts-; id -u""")
    equal(out.split(), ["65534", "0", "0"], "output, and files left")
    assert report["events"]["discarded"] > 10, report["events"]
    assert any("1 processes could not make a pool in shared memory: File too large" in gap for gap in gaps(report)), gaps(report)


ORPHAN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
    struct rlimit few = {4096, 4096};
    const struct timespec pause = {0, 200000000};
    void *volatile p;
    int parent = getpid(), i;

    if (setgid(65534) || setuid(65534) || setrlimit(RLIMIT_FSIZE, &few)) return 3;
    if (fork()) _exit(0);
    while (getppid() == parent) usleep(1000);
    nanosleep(&pause, NULL); /* the recorder looks some times */
    for (i = 0; i < 5000; i++) { p = malloc(24); free(p); }
    return 0;
}
"""


@test
def orphan():
    "a child goes on counting where its parent did, and after that has ended"
    program = compile_program(ORPHAN.replace("setgid(65534) || setuid(65534) || ", ""))
    os.chmod(os.path.dirname(program), 0o755)
    _, report, _ = recorded("(" + as_user(B, "exec " + program) + ") | cat")
    assert report["events"]["discarded"] >= 10000, report["events"]


def small(options):
    """What runs a command with another /dev/shm."""
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o %s none /dev/shm || exit 77; exec \"$@\"" % options, "sh"]
    if run(command + ["true"])[0]:
        skip("can't mount a file system")
    return command


@test
def no_files():
    "that programs can't even leave a name is told by the file system"
    need("unshare", "mount")
    need_root()
    out, report, _ = recorded("(cd /dev/shm; seq 100 | xargs touch 2>/dev/null); " + as_user(B, "exec id -u"),
                              before=small("size=64m,nr_inodes=60"), PEM_RUNTIME_DIR=tmp() + "/r")
    equal(out.split(), ["65534"], "output")
    assert any("had no room for further files" in gap for gap in gaps(report)), gaps(report)


@test
def no_room():
    "a program that can't even make a file to count in is told of"
    need("unshare", "mount")
    need_root()
    full = small("size=1m")
    out, report, _ = recorded("dd if=/dev/zero of=/dev/shm/fill bs=4096 2>/dev/null; " + as_user(B, "exec id -u"),
                              before=full, PEM_RUNTIME_DIR=tmp() + "/r")
    equal(out.split(), ["65534"], "output")
    assert any("2 processes could not make a pool in shared memory: No space left" in gap for gap in gaps(report)), gaps(report)


@test
def names_of_refusals():
    "only a plain file by the exact name that a program leaves counts as one that could not make its file"
    out, report, _ = recorded("cd $F; " + as_user(A, "touch refused--1-1-5 refused-+1-1-5 refused-1-1-5x refused-1-1- refused-1-1-0 "
                                                  "refused-1-1-4096 refused-01-1-5 refused-4294967296-1-5 refused-1-1-99999999999; "
                                                  "touch \"refused- 1-1-5\" refused-$(printf %0200d 1)-1-5; mkfifo refused-2-2-5; "
                                                  "mkdir refused-3-3-5; ln -s /etc/passwd refused-4-4-5; "
                                                  "echo >.two; ln .two refused-5-5-5; touch refused-6-6-28") + """
for i in $(seq 500); do ls | grep -q refused-6-6-28 || break; sleep 0.01; done; ls | grep -c refused-""")
    equal(out.split(), ["15"], "names left")
    equal([gap for gap in gaps(report) if "could not make a pool" in gap],
          ["1 processes could not make a pool in shared memory: No space left on device; free some space there"], "gaps")


MANY = """
import os, struct, sys
for user in range(70000, 70300):
    os.close(os.open(sys.argv[1] + "/new", os.O_CREAT | os.O_WRONLY, 0o600))
    os.chown(sys.argv[1] + "/new", user, user)
    os.rename(sys.argv[1] + "/new", "%s/pool-%d-1" % (sys.argv[1], user))
os.write(os.open(sys.argv[1] + "/counts-1-1", os.O_CREAT | os.O_WRONLY), struct.pack("4sI200x", b"PEMC", 1))
"""


@test
def many_users():
    "more users than a recorder tells apart are said, and cost those that are known, and root, nothing"
    need_root()
    script = tmp() + "/many.py"
    with open(script, "w", encoding="ascii") as file:
        file.write(MANY)
    out, report, _ = recorded(as_user(B, "id >$D/out; echo >$D/ready; read x <$D/go; id >$D/out; (id -u; true) >$D/out").replace(
        "$D/", '\'"$D"\'/') + """ &
read x <$D/ready
%s %s $F
for i in $(seq 500); do [ -e $F/counts-1-1 ] || break; sleep 0.01; done; ls $F | grep -c counts-1-1; echo >$D/go; wait; id -u""" % (sys.executable, script))
    equal(out.split()[0], "0", "files of counts left once it was scanned")
    equal(len(counts(report, "id")), 4, "programs of B's and root's")
    equal(report["events"]["discarded"], 0, "lost")
    equal(gaps(report), ["45 processes of users that the command's programs became are not observed: a recorder tells 256 such users apart"], "gaps")


# --- what they say of their events ---

def till(name, cents, who="someone paid"):
    """A program that raises an event of its own 10 times, and its spec is not known to who records."""
    need("gcc")
    folder = tmp()
    os.chmod(folder, 0o755)
    program = build(folder, name, (FIRST % who).replace("type='uint32'", "type='%s'" % cents),
                    "for (int i = 0; i < 10; i++)\n\t\tpem_notify_till_paid(i)")
    os.chmod(os.path.dirname(program), 0o755)
    return program


def paid(trace):
    rc, out, err = run([PEM, "export", "--to", "csv", "-o", "-", trace])
    equal(rc, 0, "export: " + err)
    return [(row["event"], int(row["cents"])) for row in csv.DictReader(out.splitlines()) if "Till" in row["event"]]


TEN = [("APP::Till::Paid", i) for i in range(10)]


@test
def model():
    "a false text under the name of another user's, there first, changes nothing of what that user's programs record"
    need_root()
    program, keep = till("till", "uint32"), tmp()
    os.chmod(keep, 0o755)
    _, report, trace = recorded(as_user(B, "exec " + program) + "\ncp $F/model-* %s; chmod 644 %s/*" % (keep, keep), "APP")
    equal(paid(trace), TEN, "events")
    names = sorted(os.listdir(keep))
    texts = {name: open(os.path.join(keep, name), encoding="utf-8").read() for name in names}
    mine = [name for name in names if "Paid" in texts[name]]
    equal(len(mine), 1, "models with the event among %s" % names)
    first = mine[0]
    with open(os.path.join(keep, first), "w", encoding="utf-8") as file:
        file.write(texts[first].replace("cents", "Cents"))
    for what in ("cp %s/%s $F/" % (keep, first), "ln -s /etc/passwd $F/%s" % first, "mkdir $F/%s" % first,
                 "mkfifo $F/%s" % first):
        _, report, trace = recorded("export F\n" + as_user(A, "umask 0; " + what) + "\n" + as_user(B, "exec " + program),
                                    "APP")
        equal(paid(trace), TEN, "events after '%s'" % what)
        equal((gaps(report), report["events"]["discarded"]), ([], 0), "lost after '%s'" % what)


@test
def event_defined_first():
    "who defines another's event first, with other fields, silences nobody"
    first, later = till("first", "uint64"), till("later", "uint32")
    _, report, trace = recorded(as_user(A, "exec " + first) + "\n" + as_user(B, "exec " + later), "APP")
    # Whose pool is found first, when both are there, has the name.
    later = [("APP::Till::Paid_of_user_%d" % user, i) for user in (A, B) for i in range(10)]
    events = sorted(paid(trace))
    equal(events, TEN + [event for event in later if event in events], "events")
    equal(len(events), 20, "events of both")
    equal((gaps(report), report["events"]["discarded"]), ([], 0), "lost")


@test
def child_after_giving_up():
    "the model of a child, whose parent had given up its user, lies in the public folder"
    need_root()
    folder = tmp()
    os.chmod(folder, 0o755)
    program = build(folder, "drops", FIRST % "someone paid",
                    "if (setgid(65534) || setuid(65534))\n\t\treturn 3;\n\tif (fork())\n\t\treturn wait(NULL) < 0;\n"
                    "\tfor (int i = 0; i < 10; i++)\n\t\tpem_notify_till_paid(i)", "unistd.h", "sys/wait.h")
    _, _, trace = recorded("exec " + program, "APP")
    equal(paid(trace), TEN, "events")


# --- its end ---

@test
def folders_in_it():
    "empty folders and hidden files go with it; one that is filled stays, closed, under one name, and is said once"
    need_root()
    out, _, _ = recorded(as_user(A, "cd $0 && mkdir empty .hidden && touch .file && pwd").replace("$0", '\'"$F"\''), "APP")
    equal([name for name in os.listdir("/dev/shm") if name.startswith(os.path.basename(out.strip()))], [], "left")
    script = ("F=${PEM_SESSION##*:}; echo $F; cd $F; " + as_user(A, "mkdir -m 777 d && ln -s /etc d/link && mkdir d/e"))
    rc, out, err = run([PEM, "record", "-o", tmp() + "/t", "-e", "APP", "--", "sh", "-c", script])
    left = out.strip() + ".gone"
    try:
        equal(rc, 0, "status")
        assert "'%s' is left" % left in err, err
        for _ in range(2):
            rc, _, err = run([PEM, "record", "-o", tmp() + "/t", "-e", "APP", "--", "true"])
            equal((rc, left in err), (0, False), "the next one, with " + err)
            equal([name for name in os.listdir("/dev/shm") if name.startswith(os.path.basename(out.strip()))],
                  [os.path.basename(left)], "names")
        equal((os.stat(left).st_mode & 0o777, sorted(os.listdir(left)), sorted(os.listdir(left + "/d"))),
              (0o700, ["d"], ["e", "link"]), "mode and contents")
        shutil.rmtree(left + "/d/e")
        os.unlink(left + "/d/link")
        run([PEM, "record", "-o", tmp() + "/t", "-e", "APP", "--", "true"])
        assert not os.path.exists(left), "it is there still, though its folder is empty"
    finally:
        shutil.rmtree(left, ignore_errors=True)


run_all()
