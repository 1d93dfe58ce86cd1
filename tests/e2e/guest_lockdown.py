# SPDX-License-Identifier: MIT
"""guest_lockdown: what BPF serves of a kernel that is locked down for confidentiality, where helpers read none of its memory"""
import json
import os
import subprocess
import sys

from guest.machine import Machine
from lab import kernels
from tap import ROOT, equal, run_all, skip, test

LIMIT_S = 300  # a fetch
LONG_S = 25
KERNEL = "x86_64-6.1"
LOCKED = "mount -t securityfs none /sys/kernel/security && grep -qF '[confidentiality]' /sys/kernel/security/lockdown && "
RECORD = "pem record -q -o /tmp/trace -e OS::Sched::Switch,OS::Syscall::Enter -- busybox true"


@test
def locked_down_for_confidentiality():
    "what needs no helper that reads the kernel's memory is recorded, each system call in its process"
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
                           "--append", "lockdown=confidentiality", "--shell",
                           LOCKED + RECORD + " && echo REPORT && pem report --json /tmp/trace && echo END"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    equal(done.returncode, 0, done.stdout[-3000:])
    report = json.loads(done.stdout.split("REPORT\n")[1].split("\nEND")[0])
    counts = {event["name"]: event["count"] for event in report["per_event"]}
    assert counts.get("OS::Syscall::Enter", 0) > 10, counts
    assert any(p["name"] == "busybox" for p in report["processes"]), report["processes"]


run_all()
