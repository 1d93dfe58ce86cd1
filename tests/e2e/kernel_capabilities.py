# SPDX-License-Identifier: MIT
"""
kernel_capabilities: what an ordinary user records of the kernel with CAP_BPF and CAP_PERFMON, and what without

guest: bpf=x86_64-6.12
"""
import json
import os

import probing
from tap import PEM, SAN, equal, need_reach, run, run_all, skip, test, tmp

BITS = {"perfmon": 1 << 38, "bpf": 1 << 39}
PROBE = "uprobe:libc.so.6:getenv"
SENTENCE = "needs root or CAP_BPF and CAP_PERFMON"


def user(*capabilities):
    """The beginning of a command line that is run by an ordinary user who has these capabilities and no other."""
    some = ",".join(["-all"] + ["+" + c for c in capabilities])
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=" + some, "--ambient-caps=" + some,
            "--bounding-set=" + some]


def here():
    if SAN:
        skip("a sanitizer's build is not readable to others everywhere")
    probing.here()
    need_reach()
    for capabilities in ((), ("bpf",), ("bpf", "perfmon")):
        rc, out, err = run(user(*capabilities) + ["grep", "^Cap", "/proc/self/status"])
        if rc:
            skip("setpriv can't hand on capabilities here: " + err)
        told = dict(line.split() for line in out.splitlines())
        for kind in ("CapPrm:", "CapEff:", "CapBnd:"):
            equal(int(told[kind], 16), sum(BITS[c] for c in capabilities), kind)


def record(capabilities, *arguments):
    """Record as such a user: (report, what was said)."""
    folder = tmp()
    os.chmod(folder, 0o777)
    env = {"PEM_RUNTIME_DIR": os.path.join(folder, "run"), "XDG_RUNTIME_DIR": None}
    trace = os.path.join(folder, "trace")
    rc, _, said = run(user(*capabilities) + [PEM, "record", "-o", trace, *arguments], env=env, cwd="/")
    equal(rc, 0, "status of record: " + said)
    rc, out, err = run(user(*capabilities) + [PEM, "report", "--json", trace], env=env, cwd="/")
    equal(rc, 0, "status of report: " + err)
    return json.loads(out), said


def counts(report):
    return {event["name"]: event["count"] for event in report["per_event"]}


@test
def two_capabilities_are_enough():
    "CAP_BPF and CAP_PERFMON and no other: system calls, page faults and switches of a command, all accounted for"
    here()
    r, said = record(("bpf", "perfmon"), "-e", "OS", "--", "sh", "-c", "ls /usr >/dev/null; true")
    assert SENTENCE not in said, said
    found = counts(r)
    for name in ("OS::Syscall::Enter", "OS::Mem::PageFault", "OS::Sched::Switch", "OS::Process::Exit"):
        assert found.get(name), "no %s: %r" % (name, found)
    equal(sorted(p["name"] for p in r["processes"] if p["name"]), ["ls", "sh"], "processes")
    equal(r["events"]["produced"], r["events"]["delivered"] + r["events"]["discarded"], "produced")


def refused(capabilities):
    r, said = record(capabilities, "--", "ls", "/usr")
    equal(said.count(SENTENCE), 1, "sentences (%r)" % said)
    assert r["layers"]["APP"]["count"] > 0, "the application's events are missing: %r" % r["layers"]
    equal(r["layers"].get("OS", {"count": 0})["count"], 0, "events of the kernel")
    assert any(SENTENCE in gap["reason"] for gap in r["gaps"]), r["gaps"]


@test
def with_one_of_them_the_rest_goes_on():
    "with CAP_BPF alone, or CAP_PERFMON alone: one sentence says what is missing, and the application's events are there"
    here()
    refused(("bpf",))
    refused(("perfmon",))


@test
def with_none_the_rest_goes_on():
    "with no capability: the same"
    here()
    refused(())


@test
def list_says_what_record_does():
    "whether a probe in a program can be had with CAP_BPF and CAP_PERFMON is what list says, and what record does"
    here()
    folder = tmp()
    os.chmod(folder, 0o777)
    env = {"PEM_RUNTIME_DIR": os.path.join(folder, "run"), "XDG_RUNTIME_DIR": None}
    user_command = user("bpf", "perfmon")
    rc, out, err = run(user_command + [PEM, "list", "--json", PROBE], env=env, cwd="/")
    if "no function" in err or "no program" in err:
        skip(err.strip())
    equal(rc, 0, "status of list: " + err)
    told = json.loads(out)[0]
    trace = os.path.join(folder, "trace")
    rc, _, err = run(user_command + [PEM, "record", "-q", "-o", trace, "-e", PROBE, "--", "true"], env=env, cwd="/")
    equal(rc, 0 if told["available"] else 2, "status of record: " + err)
    if not told["available"]:
        assert "CAP_SYS_ADMIN" in told["reason"] and told["reason"] in err, (told, err)


def count(*arguments):
    """Count as a user without capabilities: (status, what was said, the result)."""
    folder = tmp()
    os.chmod(folder, 0o777)
    env = {"PEM_RUNTIME_DIR": os.path.join(folder, "run"), "XDG_RUNTIME_DIR": None}
    path = os.path.join(folder, "counts")
    rc, _, said = run(user() + [PEM, "stat", "--json", "-o", path, *arguments], env=env, cwd="/")
    with open(path, encoding="utf-8") as text:
        return rc, said, {e["name"]: e["available"] for e in json.load(text)["events"]}


@test
def stat_says_what_record_does():
    "who may not count events of the kernel is told why, in one sentence, and gets status 2 if he named no other"
    here()
    for target in ((), ("-a",)):
        rc, said, found = count(*target, "-e", "Sched::Switch,Sched::Wakeup", "--", "true")
        equal(rc, 2, "status: " + said)
        equal(said.count(SENTENCE), 1, "sentences (%r)" % said)
        equal(found, {"OS::Sched::Switch": False, "OS::Sched::Wakeup": False}, "events")
        rc, said, found = count(*target, "-e", "Sched::Switch,Malloc", "--", "ls", "/usr")
        equal(rc, 0, "status with others: " + said)
        equal(said.count(SENTENCE), 1, "sentences with others (%r)" % said)
        equal(found, {"OS::Sched::Switch": False, "APP::Libc::Malloc": True}, "with others")
        rc, said, _ = count(*target, "-e", "Sched::Switch", "--", "sh", "-c", "exit 5")
        equal(rc, 5, "status of a command that failed: " + said)


run_all()
