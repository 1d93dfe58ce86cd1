# SPDX-License-Identifier: MIT
"""
attach_groups.py - attaching to what is in a control group, now or later
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from attached import Asked, Observer, numbers
from stage import as_user
from tap import PEM, equal, run, run_all, skip, test, tmp


@contextlib.contextmanager
def group():
    """A version 2 control group of its own."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if not os.path.exists(os.path.join(root, "cgroup.procs")) or not os.path.exists(os.path.join(root, "cgroup.controllers")):
            continue
        path = os.path.join(root, "pem-e2e-%d" % os.getpid())
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            yield path
        finally:
            for _ in range(200):  # the kernel takes a moment to see that a process is gone
                with contextlib.suppress(OSError):
                    os.rmdir(path)
                    break
                time.sleep(0.01)
        return
    skip("no version 2 control group can be made here")


def enter(asked, path):
    with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as procs:
        procs.write(str(asked.pid))


@test
def in_a_group():
    "record --cgroup records the programs in a control group and no other, and one that enters it later"
    folder = tmp()
    inside, outside, later = Asked(folder), Asked(folder), Asked(folder)
    with group() as path:
        enter(inside, path)
        observer = Observer(inside, "record", "--cgroup", path)
        observer.wait_for(inside)
        for asked in (inside, outside, later):
            asked.ask("tick 20")
        enter(later, path)
        observer.wait_for(later)  # the group is looked at anew once a second
        for asked in (inside, outside, later):
            asked.ask("tick 7")
        found = observer.ticks()
        equal(numbers(found, inside.pid), list(range(1, 28)), "ticks of the one inside")
        equal(numbers(found, outside.pid), [], "ticks of the one outside")
        equal(numbers(found, later.pid), list(range(21, 28)), "ticks of the one that came later")
        for asked in (inside, outside, later):
            asked.end()


TOUCH = "x = bytearray(%d)"
PAGES = 4000


def touch(path):
    """Let a process fault some pages in: one that entered a group; or None, in the group of this test."""
    code = TOUCH % (PAGES * os.sysconf("SC_PAGE_SIZE"))
    move = "echo $$ > %s/cgroup.procs; " % path if path else ""
    subprocess.run(["sh", "-c", move + "exec %s -S -c '%s'" % (sys.executable, code)], check=True)


def observe(while_it_runs, *words):
    """Standard output and error of a pem that is interrupted once while_it_runs has been called."""
    with subprocess.Popen([PEM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as pem:
        said = ""
        while "until it ends" not in said:
            line = pem.stderr.readline()
            assert line, said
            said += line
        while_it_runs()
        pem.send_signal(signal.SIGINT)
        out, err = pem.communicate(timeout=60)
    equal(pem.returncode, 0, "status (%s)" % (said + err))
    return out, said + err


def counts_groups():
    """Skip where the kernel can't count a control group's events."""
    if os.geteuid() != 0:
        skip("counting a control group needs root")
    try:
        with open("/proc/cgroups", encoding="ascii") as groups:
            known = any(line.split()[0] == "perf_event" and line.split()[1] == "0" for line in groups)
    except OSError:
        known = True
    if not known:
        skip("this kernel counts no version 2 control groups: perf_event is not among them")


@test
def counters_of_a_group():
    "stat --cgroup counts the processes in the group, those to come and those below it, and no other; and that none was there"
    counts_groups()

    def work():
        touch(None)
        touch(path)
        os.mkdir(path + "/below")
        touch(path + "/below")

    with group() as path:
        try:
            out, _ = observe(work, "stat", "--json", "--cgroup", path, "-e", "page-faults,task-clock")
        finally:
            os.rmdir(path + "/below")
        found = {event["name"].rsplit("::", 1)[1]: event["count"] for event in json.loads(out)["events"]}
        assert 2 * PAGES <= found["PageFaults"] < 3 * PAGES, found
        assert found["TaskClock"] > 0, found
        out, _ = observe(lambda: touch(None), "stat", "--json", "--cgroup", path, "-e", "page-faults")
        equal(json.loads(out)["events"][0]["count"], 0, "faults of an empty group")


@test
def recorded_counters_of_a_group():
    "record --cgroup writes the group's counters, and samples of its processes alone"
    counts_groups()
    folder = tmp() + "/trace"

    def work():
        spin = "t = __import__(\"time\"); e = t.process_time() + 0.3\nwhile t.process_time() < e: pass"
        for move in ("", "echo $$ > %s/cgroup.procs; " % path):
            subprocess.run(["sh", "-c", "%sexec %s -S -c '%s'" % (move, sys.executable, spin)], check=True)
        touch(path)

    with group() as path:
        observe(work, "record", "-o", folder, "--cgroup", path, "-e", "page-faults,HPMsAndPC")
        rc, out, err = run([PEM, "report", "--json", folder])
        equal(rc, 0, "status of report (%s)" % err)
        found = {event["name"].rsplit("::", 1)[1]: event for event in json.loads(out)["per_event"]}
        assert PAGES <= found["PageFaults"]["last"] < 3 * PAGES, found["PageFaults"]
        assert 0 < found["HPMsAndPC"]["count"] < 120, found["HPMsAndPC"]


@test
def one_group_alone():
    "a group beside another target, or beside a command, is a sentence"
    with group() as path:
        for words in (["-p", str(os.getpid())], ["--cgroup", path], ["--", "true"]):
            rc, _, err = run([PEM, "stat", "--cgroup", path, *words])
            equal(rc, 1, "status (%s)" % err)
            assert "two observers at once do both" in err, err
    rc, _, err = run([PEM, "stat", "--cgroup", "pem-no-such-group"])
    assert (rc, "there is no control group pem-no-such-group" in err) == (1, True) or (
        rc == 2 and "are not mounted" in err), (rc, err)


@test
def who_may_not_count_groups():
    "a user without the right is told what would give it, with status 2 where nothing else was asked for"
    try:
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as level:
            if os.geteuid() != 0 or int(level.read()) < 1:
                skip("all users may count whole CPUs here, or this one is not root and can't be another")
    except FileNotFoundError:
        skip("this kernel has no perf_event_open")
    folder = tmp()
    os.chown(folder, 65534, 65534)
    os.chmod(folder, 0o700)
    with group() as path:
        with subprocess.Popen([*as_user(65534), PEM, "stat", "--cgroup", path, "-e", "page-faults"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, env=dict(os.environ, PEM_RUNTIME_DIR=folder)) as pem:
            said = ""
            while "until it ends" not in said:
                line = pem.stderr.readline()
                assert line, said
                said += line
            pem.send_signal(signal.SIGINT)
            said += pem.communicate(timeout=60)[1]
        equal(pem.returncode, 2, "status (%s)" % said)
        assert "none of the events of -e can be had here: HW::Software::PageFaults: can't be counted of a control group" in said, said
        assert "kernel.perf_event_paranoid=0" in said, said


@test
def no_groups_mounted():
    "where no version 2 groups are mounted that is said, and what mounts them"
    hide = "for d in /sys/fs/cgroup/unified /sys/fs/cgroup; do umount -l $d 2>/dev/null; done; exec \"$@\""
    if os.geteuid() != 0 or run(["unshare", "-m", "true"])[0] != 0:
        skip("a mount namespace needs root")
    rc, _, err = run(["unshare", "-m", "sh", "-c", hide, "sh", PEM, "stat", "--cgroup", "x"])
    equal(rc, 2, "status (%s)" % err)
    assert "mount -t cgroup2" in err, err


@test
def no_group():
    "what is no version 2 control group is told so"
    rc, _, err = run([PEM, "stat", "--cgroup", "/proc"])
    assert rc in (1, 2) and ("is no version 2 control group" in err or "mount -t cgroup2" in err), (rc, err)


run_all()
