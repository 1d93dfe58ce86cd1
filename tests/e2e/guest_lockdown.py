# SPDX-License-Identifier: MIT
"""guest_lockdown: what BPF serves of a kernel that is locked down for confidentiality, where helpers read none of its memory"""
import json
import os
import shutil
import subprocess
import sys

from guest.machine import Machine
from lab import kernels
from tap import ROOT, equal, run_all, skip, test

LIMIT_S = 300  # a fetch
LONG_S = 25
KERNEL = "x86_64-6.1"
LOCKED = "mount -t securityfs none /sys/kernel/security && grep -qF '[confidentiality]' /sys/kernel/security/lockdown && "
CALLS, TRUE = "-e OS::Syscall::Enter,OS::Syscall::Exit", shutil.which("true")
RECORD = "pem record -q -o /tmp/trace -e OS::Sched::Switch,OS::Process::Rename,OS::Syscall::Path -- busybox true; echo STATUS $?; "
RECORD += "pem record -q -o /tmp/with %s,APP::Libc::Malloc -- %s; pem record -q -o /tmp/without %s -- %s" % (CALLS, TRUE, CALLS, TRUE)
REPORT = "".join("; echo %s; pem report --json /tmp/%s; echo END" % (name, name) for name in ("trace", "with", "without"))


def report(out, name):
    return json.loads(out.split("\n%s\n" % name)[1].split("\nEND\n")[0])


def calls(told):
    """How often each system call was made."""
    counts = {}
    for row in told["system_calls"]:
        counts[row["call"]] = counts.get(row["call"], 0) + row["count"]
    return counts


@test
def locked_down_for_confidentiality():
    "what needs no helper that reads the kernel's memory is recorded, pem's own system calls are told apart, and what needs one is named"
    asked = os.environ.get("GUESTS", "").split()
    if asked and KERNEL not in asked:
        skip("%s is not one of those asked for: GUESTS=%s" % (KERNEL, " ".join(asked)))
    try:
        missing = Machine(kernels.KERNELS[KERNEL], "").missing
        if missing:
            raise kernels.Unavailable(missing)
        kernels.fetch(kernels.KERNELS[KERNEL])
    except kernels.Unavailable as why:
        skip(str(why))
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "guest", "run"), "--kernel", KERNEL, "--module", "none",
                           "--append", "lockdown=confidentiality", "--file", TRUE, "--shell",
                           LOCKED + "{ " + RECORD + REPORT + "; }"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    equal(done.returncode, 0, done.stdout[-3000:])
    assert "STATUS 0" in done.stdout, done.stdout[-3000:]
    told = report(done.stdout, "trace")
    counts = {event["name"]: event["count"] for event in told["per_event"]}
    assert counts.get("OS::Process::Exec", 0) == 1 and counts.get("OS::Sched::Switch", 0) > 0, counts
    assert any(p["name"] == "busybox" for p in told["processes"]), told["processes"]
    reasons = [gap["reason"] for gap in told["gaps"]]
    equal(len(reasons), 1, reasons)
    assert reasons[0].startswith("OS::Syscall::Path: ") and "locked down" in reasons[0], reasons
    preloaded, alone = report(done.stdout, "with"), report(done.stdout, "without")
    expected, observed = calls(alone), calls(preloaded)
    assert expected["openat"] > 0 and preloaded["cost"]["internal_calls"] > 20, (expected, preloaded["cost"])
    assert 0 <= observed.pop("mmap") - expected.pop("mmap") <= 1, (observed, expected)
    equal(observed, expected, "system calls of a program that pem's libraries are loaded into")


run_all()
