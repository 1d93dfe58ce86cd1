# SPDX-License-Identifier: MIT
"""record_left: processes that a command started, and that go on when it has ended: how many, and which"""
import json
import os
import signal

from probing import here
from tap import PEM, equal, run, run_all, test, tmp

# Starts one that sleeps, without any file of its own's, and tells its number.
LEAVES = ("sleep 600 </dev/null >/dev/null 2>&1 & "
          "until read name </proc/$!/comm && [ $name = sleep ]; do :; done; echo $!")


def left_of(events, command):
    """What record says at its end, the gaps in the trace, and what the command printed."""
    trace = os.path.join(tmp(), "trace")
    rc, out, err = run([PEM, "record", "-e", events, "-o", trace, "--", "sh", "-c", command])
    equal(rc, 0, "status: " + err)
    report = json.loads(run([PEM, "report", "--json", trace])[1])
    for word in out.split():
        os.kill(int(word), signal.SIGKILL)
    return err, [gap["reason"] for gap in report["gaps"] if gap["source"] == "later"], out.split()


def check(events):
    err, gaps, pids = left_of(events, LEAVES)
    words = "1 process that the command started still ran when it ended (sleep %s)" % pids[0]
    assert words in err, err
    assert len(gaps) == 1 and words in gaps[0], gaps
    assert "pem record -p " + pids[0] in gaps[0], gaps


@test
def of_kernel_events():
    "one that goes on is named in the last lines and in the trace, where the kernel's events are recorded"
    here()
    check("OS::Syscall::Enter")


@test
def of_program_events():
    "where events of programs alone are recorded as well"
    check("Malloc")


@test
def several():
    "of several the number is told"
    _, gaps, pids = left_of("Malloc", "%s; %s; %s; %s" % ((LEAVES,) * 4))
    equal(len(pids), 4, "processes")
    assert len(gaps) == 1 and gaps[0].startswith("4 processes that the command started still ran"), gaps


@test
def of_statistics():
    "pem stat names them as well, and what counts them; with -q it does not"
    for quiet in False, True:
        rc, out, err = run([PEM, "stat", *["-q"] * quiet, "-e", "Malloc", "--", "sh", "-c", LEAVES])
        equal(rc, 0, "status: " + err)
        pid, = out.split()
        os.kill(int(pid), signal.SIGKILL)
        words = "1 process that the command started still ran when it ended (sleep %s)" % pid
        equal((words in err, "pem stat -p " + pid in err), (not quiet, not quiet), "said: " + err)
    rc, _, err = run([PEM, "stat", "-e", "Malloc", "--", "sh", "-c", "sleep 0.01 & wait"])
    equal((rc, "still ran" in err), (0, False), "status, and said: " + err)


@test
def none():
    "a command whose processes have all ended leaves no such sentence"
    err, gaps, _ = left_of("Malloc", "sleep 0.01 & wait")
    equal(gaps, [], "gaps")
    assert "still ran" not in err, err


run_all()
