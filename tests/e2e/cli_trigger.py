# SPDX-License-Identifier: MIT
"""cli_trigger: a flight recorder that writes snapshots by itself: on events, statistics, a signal"""
import json
import os
import signal
import subprocess
import sys
import time

import probing
from patience import HANG_S
from tap import PEM, equal, parallel, run, run_all, skip, start, test, tmp

# Asks for a block of each size in turn, and tells after each.
SIZES = ["sh", "-c", "ls / > /dev/null; for n in $0 $@; do head -c $n /dev/zero > /dev/null; dd if=/dev/zero of=/dev/null "
         "bs=$n count=1 2> /dev/null; sleep 0.3; done"]


def snapshots(folder):
    return sorted((n for n in os.listdir(folder) if n.startswith("trace-snapshot-")), key=lambda n: int(n.split("-")[2]))


def cause(folder, name):
    rc, out, err = run([PEM, "report", "--json", os.path.join(folder, name)])
    equal((rc, err), (0, ""), "status and errors of report: the snapshot balances")
    return json.loads(out)["info"]["snapshot"]


def record(folder, command, *options, events="Libc,OS::Process"):
    rc, _, err = run([PEM, "record", "--overwrite", "--buffer", "256K", "-e", events, "-o", os.path.join(folder, "trace"),
                      *options, "--"] + command)
    equal(rc, 0, "status of pem record (stderr: %s)" % err)
    return snapshots(folder), err


@test
def an_event_with_a_predicate():
    "the event that passes the predicate writes a snapshot, others of its kind do not"
    folder = tmp()
    trigger = "Malloc where size > 5000000 && size < 5500000"
    found, err = record(folder, SIZES + ["1000", "5242880"], "--trigger", trigger)
    equal(found, ["trace-snapshot-1"], "snapshots (stderr: %s)" % err)
    equal(cause(folder, found[0]), "trigger " + trigger, "cause")
    assert "snapshot in " in err and trigger in err, err
    folder = tmp()
    equal(record(folder, SIZES + ["1000", "2000"], "--trigger", trigger)[0], [], "snapshots without such an event")


@test
def an_event_that_is_not_recorded():
    "a trigger's event need not be among those that are recorded"
    probing.here("OS::Process::Exec")
    folder = tmp()
    found, _ = record(folder, SIZES + ["1000"], "--trigger", "Malloc where size > 0", events="OS::Process")
    equal(found, ["trace-snapshot-1"], "snapshots")
    rc, out, _ = run([PEM, "report", "--json", os.path.join(folder, found[0])])
    equal([e["name"] for e in json.loads(out)["per_event"] if e["layer"] == "APP"], [], "events of the trigger in the trace")
    assert "the trigger's own event is not in it" in " ".join(run([PEM, "report", os.path.join(folder, found[0])])[1].split()), "a word"
    found, _ = record(tmp(), SIZES + ["1000"], "--trigger", "OS::Process::Exec", events="OS::Process")
    assert "own event is not in it" not in " ".join(run([PEM, "report", os.path.join(tmp(), found[0])])[1].split()), "it is there"


@test
def a_statistic_above_a_threshold():
    "each statistic above its threshold in a second writes one, below it none"
    def each(above, below):
        busy = ["sh", "-c", "for i in 1 2 3 4 5; do ls -l /usr/bin > /dev/null; done; sleep 1.2"]
        folder = tmp()
        found, err = record(folder, busy, "--trigger", below, "--trigger", above)
        equal(found, ["trace-snapshot-1"], "snapshots of %s (stderr: %s)" % (above, err))
        assert cause(folder, found[0]).startswith("trigger %s: it was " % above), cause(folder, found[0])

    parallel(each, ("rate(Malloc) > 100", "max(Malloc.size) > 1", "mean(Malloc.size) > 0.5",
                    "sum(Malloc.size where size > 100) > 1"),
             ("rate(Malloc) > 1e12", "max(Malloc.size) > 1e12", "mean(Malloc.size) > 1e12",
              "sum(Malloc.size where size > 1e12) > 0"))


@test
def thresholds_of_no_known_form():
    "what looks like a threshold and is none is told the forms that there are"
    for trigger in "median(Malloc.size) > 1", "Malloc.size > 3":
        rc, _, err = run([PEM, "record", "--overwrite", "--trigger", trigger, "-o", tmp() + "/t", "--", "true"])
        equal(rc, 1, "status of %s" % trigger)
        assert "is none of 'EVENT'" in err, err


@test
def a_command_that_pem_started():
    "a trigger's session that attaches to the recorder's own command does not call it started without libpem"
    for _ in range(5):
        _, err = record(tmp(), ["true"], "--trigger", "Malloc where size > 1e12", "--trigger", "Malloc where size > 2e12",
                        events="OS::Process,Malloc")
        assert "not started with" not in err, err


@test
def one_in_an_interval():
    "triggers in quick succession write one snapshot, and say how many wrote none"
    probing.here("OS::Process::Exec")
    folder = tmp()
    found, err = record(folder, SIZES + ["1000"] * 6, "--trigger", "OS::Process::Exec")
    equal(found, ["trace-snapshot-1"], "snapshots")
    assert "triggers since the last snapshot wrote none" in err, err


@test
def the_last_ones_are_kept():
    "--snapshots keeps the last, and numbers go on"
    folder = tmp()
    found, _ = record(folder, SIZES + ["1000"] * 8, "--trigger", "Malloc", "--snapshot-interval", "0", "--snapshots", "2")
    equal(len(found), 2, "snapshots kept")
    first, second = (int(name.split("-")[2]) for name in found)
    equal(second, first + 1, "numbers")
    assert first > 1, found
    for name in found:
        cause(folder, name)


@test
def a_signal():
    "SIGUSR2 writes a snapshot each time, and the program goes on"
    folder = tmp()
    recorder = start([PEM, "record", "-q", "--overwrite", "-o", os.path.join(folder, "trace"), "--", "sh", "-c",
                      "ls / > /dev/null; echo ready; exec sleep 60"], stdout=subprocess.PIPE, text=True)
    equal(recorder.stdout.readline().strip(), "ready", "the command's line")
    for count in (1, 2):
        recorder.send_signal(signal.SIGUSR2)
        end = time.monotonic() + HANG_S
        while not os.path.exists(os.path.join(folder, "trace-snapshot-%d" % count, ".pem", "balance")):
            assert time.monotonic() < end, "no snapshot %d" % count
            time.sleep(0.02)
        assert recorder.poll() is None
    recorder.send_signal(signal.SIGINT)
    recorder.wait(30)
    for name in snapshots(folder):
        equal(cause(folder, name), "signal SIGUSR2", "cause")


class Signalled:
    """A flight recorder that writes a snapshot for each signal, into folder/trace-snapshot-N."""

    def __init__(self, folder, *options):
        self.folder, self.lines = folder, []
        self.recorder = start([PEM, "record", "--overwrite", "--buffer", "256K", "-e", "Libc", "-o", folder + "/trace", *options,
                               "--", "sh", "-c", "ls / > /dev/null; echo ready; exec sleep 60"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equal(self.recorder.stdout.readline().strip(), "ready", "the command's line")

    def snapshot(self, times=1):
        for _ in range(times):
            self.recorder.send_signal(signal.SIGUSR2)
            self.lines.append(self.recorder.stderr.readline())
            while "snapshot in" not in self.lines[-1]:
                assert self.lines[-1], "the recorder ended: " + "".join(self.lines)
                self.lines.append(self.recorder.stderr.readline())

    def end(self):
        """What pem printed."""
        self.recorder.send_signal(signal.SIGINT)
        self.lines += self.recorder.communicate()[1].splitlines(True)
        return "".join(self.lines)


@test
def few_are_kept_by_default():
    "without --snapshots the last eight are kept, and each removal is told"
    recorder = Signalled(tmp())
    recorder.snapshot(11)
    said = recorder.end()
    equal(snapshots(recorder.folder), ["trace-snapshot-%d" % n for n in range(4, 12)], "snapshots")
    equal(said.count("removed "), 3, "sentences about removal: " + said)


def bytes_of(disk, folders):
    return sum(os.stat(os.path.join(base, name)).st_blocks * 512 for one in folders
               for base, _, files in os.walk(os.path.join(disk, one)) for name in files)


@test
def few_are_kept_on_a_small_disk():
    "snapshots take at most a tenth of the free space, but for the last one"
    disk = tmp()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "pem-test", disk], capture_output=True, text=True)
    if made.returncode != 0:
        skip("cannot mount a tmpfs (needs root): " + made.stderr.strip())
    try:
        free = os.statvfs(disk)
        recorder = Signalled(disk)
        recorder.snapshot(8)
        recorder.end()
        found = snapshots(disk)
        size = bytes_of(disk, found)
        assert found[-1:] == ["trace-snapshot-8"] and len(found) < 8, (found, size)
        assert len(found) == 1 or size <= free.f_bavail * free.f_frsize / 10, (found, size)
    finally:
        subprocess.run(["umount", "-l", disk], capture_output=True)


@test
def a_disk_that_others_fill():
    "snapshots are not removed because something else takes the free space meanwhile"
    disk = tmp()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "pem-test", disk], capture_output=True, text=True)
    if made.returncode != 0:
        skip("cannot mount a tmpfs (needs root): " + made.stderr.strip())
    try:
        recorder = Signalled(disk)
        recorder.snapshot(2)
        free, two = os.statvfs(disk), bytes_of(disk, snapshots(disk))
        with open(disk + "/other", "wb") as file:  # a tenth of what is left is less than two snapshots
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - 4 * two)
        recorder.snapshot()
        said = recorder.end()
        equal(snapshots(disk), ["trace-snapshot-%d" % n for n in (1, 2, 3)], "snapshots (%s)" % said)
    finally:
        subprocess.run(["umount", "-l", disk], capture_output=True)


@test
def a_disk_that_others_filled_before():
    "snapshots are not removed because something else took the free space when the recording started"
    disk = tmp()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "pem-test", disk], capture_output=True, text=True)
    if made.returncode != 0:
        skip("cannot mount a tmpfs (needs root): " + made.stderr.strip())
    try:
        free = os.statvfs(disk)
        with open(disk + "/other", "wb") as file:  # what is left is enough for the trace that begins
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - 1024 * 1024)
        recorder = Signalled(disk)
        os.remove(disk + "/other")
        recorder.snapshot(3)
        said = recorder.end()
        equal(snapshots(disk), ["trace-snapshot-%d" % n for n in (1, 2, 3)], "snapshots (%s)" % said)
    finally:
        subprocess.run(["umount", "-l", disk], capture_output=True)


@test
def what_others_wrote_stays():
    "a snapshot in which something was changed, or in whose place there is another folder, is not removed"
    recorder = Signalled(tmp(), "--snapshots", "1")
    folder = recorder.folder
    for n in 1, 2, 3, 4, 5:
        recorder.snapshot()
        path = "%s/trace-snapshot-%d" % (folder, n)
        if n == 1:
            with open(path + "/notes", "w") as file:
                file.write("mine")
        elif n == 2:
            os.rename(path, folder + "/mine")
            os.mkdir(path)
        elif n == 3:
            os.rename(path, folder + "/moved")
            os.symlink("moved", path)
    said = recorder.end()
    equal([said.count("trace-snapshot-%d stays and no longer counts" % n) for n in range(1, 6)], [1, 1, 1, 0, 0], said)
    equal(sorted(os.listdir(folder)), ["mine", "moved", "trace"] + ["trace-snapshot-%d" % n for n in (1, 2, 3, 5)], "folders")
    for path in "trace-snapshot-1/notes", "trace-snapshot-1/metadata", "mine/metadata", "moved/metadata":
        assert os.path.exists(os.path.join(folder, path)), path


@test
def overwriting_is_no_loss():
    "the last line of a flight recorder counts overwritten events, and advises no larger buffer"
    _, err = record(tmp(), [sys.executable, "-c", "for _ in range(1000000): bytes(1000)"], events="Libc")
    assert "older ones, were overwritten" in err and "lost" not in err and "--buffer" not in err, err


@test
def what_is_no_trigger():
    "wrong triggers are said before the command runs"
    folder = tmp()
    for text, word in (("", "none of"), ("rate(Malloc)", "none of"), ("rate(Malloc) < 3", "none of"),
                       ("mean(Malloc) > 3", "none of"), ("Malloc where", "Malloc where"), ("Mallok", "Malloc"),
                       ("mean(Malloc.sise) > 3", "sise"), ("Malloc where sise > 3", "sise")):
        rc, _, err = run([PEM, "record", "--overwrite", "-o", os.path.join(folder, "t"), "--trigger", text, "--", "touch",
                          os.path.join(folder, "ran")])
        equal(rc, 1, "status of --trigger '%s'" % text)
        assert word in err, (text, err)
    rc, _, err = run([PEM, "record", "--trigger", "Malloc", "--", "true"], cwd=folder)
    equal(rc, 1, "status without --overwrite")
    assert "--overwrite" in err, err
    equal(os.listdir(folder), [], "what was left")


run_all()
