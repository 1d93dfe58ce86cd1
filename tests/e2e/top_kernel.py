# SPDX-License-Identifier: MIT
"""top_kernel: pem top tells which process raised the kernel's events, to the event"""
import json
import os
import sys

from tap import PEM, equal, run, run_all, skip, start, test

EVENT = "OS::Syscall::Enter where number == getppid"
CALLS = "import ctypes; c = ctypes.CDLL(None); [c.getppid() for i in range(%d)]"


def available():
    _, out, _ = run([PEM, "list", "OS::Syscall::Enter", "--json"])
    event = json.loads(out)[0]
    if not event["available"]:
        skip(event["reason"])
    if event["path"] != "bpf":
        skip("the module keeps no statistics by process, and BPF can't be used here")


def counted(script):
    """{program of a process that lives, or '' for those that ended: calls}, and the sum."""
    available()
    rc, out, err = run([PEM, "top", "-q", "--once", "--json", "-i", "3000", "-o", "/dev/null", "-e", EVENT, "--", "sh", "-c",
                        script, sys.executable], timeout=60)
    equal(rc, 0, "status, having said " + err)
    (event,) = json.loads(out)["events"]
    parts = {}
    for part in event["threads"]:
        parts[part["program"]] = parts.get(part["program"], 0) + part["count"]
    return parts, event["count"]


@test
def processes_that_live_and_that_ended():
    "calls are those of the process that made them; of processes that ended they stay in the sum"
    lives = CALLS % 2000 + "; import time; time.sleep(20)"
    parts, count = counted("\"$0\" -c '%s' & \"$0\" -c '%s'; sleep 20" % (lives, CALLS % 5000))
    python = os.path.basename(os.path.realpath(sys.executable))[:15]
    names = [name for name in parts if name.startswith("python")]
    equal(len(names), 1, "processes of %s: %r" % (python, parts))
    # A shell asks for its parent once.
    assert 2000 <= parts[names[0]] <= 2010 and 5000 <= parts.get("", 0) <= 5010, parts
    equal(sum(parts.values()), count, "sum of %r" % parts)


@test
def a_table_for_people():
    "the table has the process by its name, and not the kernel"
    available()
    rc, out, err = run([PEM, "top", "-q", "--once", "-i", "2000", "-o", "/dev/null", "-e", EVENT, "--", sys.executable, "-c",
                        CALLS % 3000 + "; import time; time.sleep(20)"], timeout=60)
    equal(rc, 0, "status, having said " + err)
    (row,) = [line for line in out.splitlines() if line.startswith("python")]
    assert "(kernel)" not in out and row.split()[-1] == "3.00k", out


@test
def a_command_and_all_others():
    "-a with a command watches the whole machine until the command ends, whose status is pem's"
    available()
    other = start([sys.executable, "-c", "import os, time\nwhile os.getppid() == %d: time.sleep(0.001)" % os.getpid()])
    rc, out, err = run([PEM, "top", "-q", "-a", "--once", "--json", "-i", "20000", "-o", "/dev/null", "-e", EVENT, "--", "sh", "-c",
                        "sleep 1; exit 7"], timeout=60)
    other.kill()
    equal(rc, 7, "status, having said " + err)
    (event,) = json.loads(out)["events"]
    counts = [part["count"] for part in event["threads"] if part["pid"] == other.pid]
    assert len(counts) == 1 and counts[0] > 10, event


@test
def results_are_no_quantity():
    "results of system calls, addresses and errors among them, are not added up; bytes of file events are"
    available()
    rc, out, err = run([PEM, "top", "-q", "--once", "--json", "-i", "700", "-o", "/dev/null", "-e", "OS::Syscall::Exit,APP::File::WriteEnd",
                        "--", sys.executable, "-c", "import os, time; [os.write(1, b'x' * 100) for i in range(50)]; time.sleep(20)"], timeout=60)
    equal(rc, 0, "status, having said " + err)
    events = {event["name"]: event for event in json.loads(out)["events"]}
    equal(sorted(name for name, event in events.items() if "field" in event or "sum" in event), ["APP::File::WriteEnd"],
          "events with sums: %r" % events)


run_all()
