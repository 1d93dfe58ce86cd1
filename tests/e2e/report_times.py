# SPDX-License-Identifier: MIT
"""report_times: where threads' time went and how long intervals took, of real programs"""
import json
import os
import platform

from tap import PEM, equal, run, run_all, skip, test, tmp

EVENTS = "OS::Syscall::Enter,OS::Syscall::Exit,OS::Sched::Switch,OS::Sched::Wakeup,OS::Process::Fork,OS::Process::Exec,OS::Process::Exit"
BLOCKS = "dd if=/dev/zero bs=64k count=40 status=none | { sleep 0.3; cat >/dev/null; }"


def recorded(*command):
    """A trace of a command with the events of the kernel, or a skip."""
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", EVENTS, "-o", trace, "--", *command])
    if rc == 2:
        skip("no kernel events here: " + err.splitlines()[-1])
    equal(rc, 0, "status of record (stderr: %s)" % err)
    return trace


def report(trace):
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status (stderr: %s)" % err)
    return json.loads(out)


@test
def a_writer_that_waits_for_its_reader():
    "of a pipe whose reader sleeps, the report says that the writer was blocked in write, and the shell in waiting"
    found = report(recorded("sh", "-c", BLOCKS))
    threads = {t["process"]: t for t in found["thread_states"]}
    equal(threads["dd"]["blocked_most_in"], "OS::Syscall write", "where dd was blocked")
    assert threads["dd"]["blocked_ns"] > 100e6, threads["dd"]
    assert threads["sleep"]["blocked_most_in"].startswith("OS::Syscall clock_nanosleep"), threads["sleep"]
    assert threads["sh"]["blocked_most_in"].startswith("OS::Syscall wait"), threads["sh"]


@test
def every_call_is_counted_once():
    "system calls of known and of unknown length add up to the records that begin them, and are named"
    trace = recorded("ls", "/usr/share")
    found = report(trace)
    begun = [e["count"] for e in found["per_event"] if e["name"] == "OS::Syscall::Enter"][0]
    calls = [i for i in found["intervals"] if i["interval"].startswith("OS::Syscall")]
    equal(sum(i["count"] + i["end_unknown"] for i in calls), begun, "calls")
    names = {i["interval"] for i in calls}
    assert "OS::Syscall openat" in names and "OS::Syscall write" in names, names
    text = run([PEM, "report", "--by", "interval", trace])[1]
    assert "OS::Syscall openat" in text and "Where threads" not in text, text
    text = run([PEM, "report", "--by", "state", trace])[1]
    assert "Where threads' time went" in text and "TIMES" not in text, text


@test
def a_thread_has_no_more_time_than_there_was():
    "the states of a thread add up to the recording's time at most"
    found = report(recorded("sh", "-c", BLOCKS))
    for thread in found["thread_states"]:
        known = thread["running_ns"] + thread["runnable_ns"] + thread["blocked_ns"]
        assert known <= found["info"]["duration_ns"] + 1e6, thread


@test
def names_are_of_the_recording_machine():
    "the names of system calls travel in the trace's model"
    trace = recorded("true")
    with open(trace + "/.pem/model", encoding="utf-8") as model:
        text = model.read()
    number = {"x86_64": 257, "aarch64": 56}.get(platform.machine())
    if number is None:
        skip("the number of openat on %s is not in this test" % platform.machine())
    assert "label\t%016x\topenat\t" % number in text
    rc, out, _ = run([PEM, "export", "--to", "csv", trace, "-o", "-"])
    equal(rc, 0, "status of export")
    assert "execve" in out or "mmap" in out, out[:400]


run_all()
