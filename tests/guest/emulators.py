# SPDX-License-Identifier: MIT
"""
emulators.py - the emulator that a guest runs on: this system's, or one that is fetched where that is too old

Not here: how it is called (machine.py), the kernels (lab/kernels.py).

QEMU before 8.1 reads the instructions that it translates without a lock. What another of the guest's CPUs writes there at that
moment, as Linux does whenever it switches a tracepoint or a static key, is lost for good. A CPU that met the breakpoint which
Linux puts there meanwhile meets it for ever, since its handler finds none in memory and goes back; or one goes past the
tracepoint. So the guest panics (int3), stands still ("soft lockup"), or misses events (tests/guest/patched_code.c). One thread
for all CPUs is right, and slow: a CPU waits for another's turn, a tenth of a second, at each of several steps of every
tracepoint that is switched.

Newer ones lose it, too, though seldom, and then the guest passes what it would have died of (tests/guest/stale_code).

So Debian's backport is fetched, as the kernels are, into the same cache. It runs from there with this system's libraries and
what else this system's emulator came with; nothing is installed.
"""
import fcntl
import functools
import glob
import os
import re
import shutil
import subprocess

from lab import kernels

SINCE = 8, 1
BINARY = "./usr/bin/%s"
# What is taken of which packages; a machine's firmware is of the emulator's version or of none in particular.
PACKAGES = {
    "qemu-system-x86_64": (("qemu-system-x86", BINARY), ("qemu-system-data", "./usr/share/qemu"), ("seabios", "./usr/share/seabios")),
    "qemu-system-aarch64": (("qemu-system-arm", BINARY), ("qemu-system-data", "./usr/share/qemu")),
}


def version(path):
    """(major, minor) of an emulator; (0, 0) if it does not run."""
    try:
        said = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, errors="replace", timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0, 0
    found = re.search(r"version (\d+)\.(\d+)", said)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def fill(name, folder):
    """Fetch the newest that Debian has for this release into a folder."""
    apt = kernels.Apt(kernels.output(["dpkg", "--print-architecture"]).strip())
    apt.update()
    downloads = os.path.join(folder, "downloads")
    os.mkdir(downloads)
    for package, member in PACKAGES[name]:
        newest = apt.fields(package)[0]["Version"]
        for path in apt.download(["%s=%s" % (package, newest)], os.path.join(downloads, package)):
            kernels.unpack(path, folder, member.replace("%s", name))
    shutil.rmtree(downloads)
    if version(os.path.join(folder, BINARY % name)) < SINCE:
        raise kernels.Unavailable("Debian's archive has no %s that is %d.%d or newer and runs here" % (name, *SINCE))


def command(name):
    """
    How the emulator is called (a list), whether it may have a thread for each CPU, and None or a remark for whoever reads the
    results. It is this system's own, which must be there, unless that is too old and a newer one can be had.
    """
    return look_for(name, shutil.which(name), kernels.cache())


@functools.lru_cache(None)  # what can't be had takes its time
def look_for(name, path, cache):
    if version(path) >= SINCE:
        return [name], True, None
    folder = os.path.join(cache, name)
    try:
        os.makedirs(cache, exist_ok=True)
        with open(os.path.join(cache, "lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kernels.have(folder, lambda fresh: fill(name, fresh), repr(PACKAGES[name]) + "\n", False)
    except (OSError, kernels.Unavailable) as why:
        return [name], False, ("%s is older than %d.%d, so the guest's CPUs take turns in one thread, which is slow; a newer one "
                               "can't be had: %s" % (name, *SINCE, why))
    firmware = [word for part in sorted(glob.glob(os.path.join(folder, "usr", "share", "*"))) for word in ("-L", part)]
    return [os.path.join(folder, BINARY % name), *firmware], True, None
