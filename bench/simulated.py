#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
simulated.py - how quick the simulation of caches and TLBs is, beside Valgrind's own simulator of caches

    hw/simulated    instructions a second of pem-codegen, which checks all specs, by wall time with Valgrind's start. Cachegrind
                    simulates the same caches, and no TLB, on the same program
"""
import glob
import os
import shutil
import subprocess
import time

from measure import BUILD, QUICK, Folder, heading, report, wanted

ROOT = os.path.dirname(BUILD)
TOOLS = os.path.join(BUILD, "lib", "pem", "valgrind")
CODEGEN = os.path.join(BUILD, "bin", "pem-codegen")
MACHINE = os.path.join(ROOT, "examples", "hardware", "skylake.xml")
HEAD_BYTES, PROCESS_BYTES, PROCESSES = 544, 136, 4096
PROGRAM = [CODEGEN, "--check", *sorted(glob.glob(os.path.join(ROOT, "spec", "*", "*.xml")))]


def seconds(*options):
    begin = time.monotonic()
    subprocess.run(["valgrind", "-q", *options, *PROGRAM], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env=dict(os.environ, VALGRIND_LIB=TOOLS))
    return time.monotonic() - begin


def ours(folder):
    """Instructions, and the seconds in which they were counted."""
    path, machine = os.path.join(folder, "counts"), os.path.join(folder, "machine.xml")
    with open(MACHINE, encoding="utf-8") as text, open(machine, "w", encoding="utf-8") as lru:
        lru.write(text.read().replace("replacement='plru'", "replacement='lru'"))  # as cachegrind
    with open(path, "wb") as counts:
        subprocess.run([CODEGEN, "--hardware", machine], stdout=counts, check=True)
        counts.truncate(HEAD_BYTES + PROCESSES * PROCESS_BYTES)
    passed = seconds("--tool=pem-hardware", "--hardware=" + path)
    with open(path, "rb") as counts:
        return int.from_bytes(counts.read()[HEAD_BYTES + 8:HEAD_BYTES + 16], "little"), passed


def main():
    if not wanted("hw/simulated"):
        return
    if not shutil.which("valgrind") or not os.path.exists(os.path.join(TOOLS, "pem-hardware-amd64-linux")):
        print("hw/simulated: the tool for Valgrind is not built")
        return
    heading("simulated")
    values, theirs = [], []
    with Folder() as folder:
        for _ in range(1 if QUICK else 5):
            count, passed = ours(folder.path)
            values.append(count / passed / 1e6)
            theirs.append(count / seconds("--tool=cachegrind", "--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64",
                                          "--LL=8388608,16,64", "--cachegrind-out-file=/dev/null") / 1e6)
    report("simulated", "hw/simulated", "M/s", values, "cachegrind", theirs, digits=2)


main()
