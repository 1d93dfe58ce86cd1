#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
allocation - what it costs a program that its allocations are recorded, beside heaptrack

	allocation/malloc	what a pair of malloc and free takes more than alone, in CPU time of the thread that calls
	allocation/xmalloc	the same where the program's xmalloc calls malloc: the site is in xmalloc's caller
	allocation/stacks	as malloc, with all calls that led there (-g): some six
	allocation/deep_stacks	the same below 20 further calls

pem records malloc, calloc, realloc and free with the site of each, and with -g all calls; heaptrack has all calls. A round runs the program alone, under
pem and under heaptrack; pem's recorder has a CPU of its own where there are two.
"""
import os
import shutil
import subprocess

from measure import Folder, HERE, PEM, QUICK, cpus, heading, report, wanted

ROUNDS = 1 if QUICK else 15
PAIRS = 100000 if QUICK else 2000000
EVENTS = "APP::Libc::*alloc,APP::Libc::Free,APP::Loader::Object"
KINDS = {"allocation/malloc": ("malloc", []), "allocation/xmalloc": ("xmalloc", []),
         "allocation/stacks": ("malloc", ["-g"]), "allocation/deep_stacks": ("deep", ["-g"])}


def pair_ns(words, kind, folder):
    run = subprocess.run(words + [os.path.join(HERE, "allocate"), str(PAIRS), kind], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True, check=True, cwd=folder.path)
    return float([line for line in run.stdout.split("\n") if line.replace(".", "", 1).isdigit()][0])


def main():
    cases = wanted(*KINDS)
    if not cases:
        return
    heading("allocation", "ns that a pair takes more, %d rounds" % ROUNDS)
    program, observer = cpus()
    on_cpu = ["taskset", "-c", str(program)]
    with Folder() as folder:
        for case in cases:
            ours, theirs, alone = [], [], []
            kind, options = KINDS[case]
            for _ in range(ROUNDS):
                alone.append(pair_ns(on_cpu, kind, folder))
                recorder = ["taskset", "-c", str(observer), PEM, "record", "-q", *options, "-e", EVENTS, "-o", folder.fresh("trace"), "--"]
                ours.append(pair_ns(recorder + on_cpu, kind, folder) - alone[-1])
                if not shutil.which("heaptrack"):
                    continue
                # It observes the first program alone that it starts.
                theirs.append(pair_ns(on_cpu + ["heaptrack", "-o", folder.path + "/heap"], kind, folder) - alone[-1])
                for name in os.listdir(folder.path):
                    if name.startswith("heap"):
                        os.remove(os.path.join(folder.path, name))
            report("allocation", case, "ns", ours, "heaptrack", theirs, "alone %.1f ns" % sorted(alone)[len(alone) // 2])


main()
