# SPDX-License-Identifier: MIT
"""
tracefs.py - tracefs for a test that needs it and finds it not mounted

Not here: recording, which mounts it for itself alone (libpem/sources/kernel/probe_tracepoint.c).
"""
import ctypes
import os
import subprocess

from tap import skip

FOLDER = "/sys/kernel/tracing"
CLONE_NEWNS = 0x20000


def need_tracefs():
    """
    Skip unless this process reads tracefs, which only root does. Where it is not mounted it is, in a mount namespace of
    this process and the commands that it runs: nothing is left behind.
    """
    if os.path.isdir(FOLDER + "/events"):
        return
    if os.geteuid() != 0:
        skip("tracepoints are shown to root only, or whom tracefs is mounted for: run as root")
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        skip("tracefs is not mounted, and no mount namespace is to be had: " + os.strerror(ctypes.get_errno()))
    for command in (["--make-rprivate", "/"], ["-t", "tracefs", "none", FOLDER]):
        done = subprocess.run(["mount", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            skip("tracefs is not mounted, and can't be: " + done.stdout.strip())
