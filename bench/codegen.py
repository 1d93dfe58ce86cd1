#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
codegen.py - how long pem-codegen takes to generate everything from a catalogue of 500 events

The catalogue is this tree's specs, the short ones first, and synthetic ones up to 500, the same each time. An operation
runs pem-codegen with all of its backends, as a build does, into folders that are not there before. Below it, for
comparison: each backend in a run of its own. Not here: other benchmarks (bench.h).

make puts it beside the other benchmarks, in BUILD/bench, and runs it in the root of the tree.
"""
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from measure import QUICK, wanted

EVENTS = 500
PER_SPEC = 60
ROUNDS = 1 if QUICK else 9
BUILD = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64", "address",
         "string", "list", "array")


def field(number, k):
    """One field of an event, by their numbers: of every type, with units and labels where they fit."""
    kind = TYPES[(number * 3 + k) % len(TYPES)]
    more = {"list": " eltType='uint64' max='8' unit='bytes'", "array": " eltType='int32' count='4' unit='ns'",
            "string": " max='32'", "address": "", "uint8": " enum='State'"}.get(kind, " unit='bytes'")
    return "      <field name='value%d' type='%s'%s description='number %d of this event'/>\n" % (k, kind, more, k)


def event(number):
    name = "Happening%d" % number
    return ("  <event name='APP::Synthetic::%s' level='detail' description='number %d happened'>\n"
            "    <layerId value='APP'/><classId value='Synthetic'/><specifier value='%s'/>\n"
            "    <source type='stub'/>\n    <fields>\n%s    </fields>\n  </event>\n" %
            (name, number, name, "".join(field(number, k) for k in range(2 + number % 5))))


def synthetic(folder, count):
    """Write specs of so many events in all; their paths."""
    paths = []
    for first in range(0, count, PER_SPEC):
        path = os.path.join(folder, "synthetic%d.xml" % len(paths))
        with open(path, "w", encoding="utf-8") as f:
            f.write("<spec provider='synthetic%d' version='1.0' description='what a benchmark needs'>\n"
                    "  <enum name='State' description='how it stands'><label name='off' value='0'/>"
                    "<label name='on' value='1'/></enum>\n" % len(paths))
            f.write("".join(event(n) for n in range(first, min(first + PER_SPEC, count))))
            f.write("</spec>\n")
        paths.append(path)
    return paths


def tree():
    """Specs of this tree that have up to so many events together, and how many that is."""
    paths, count = [], 0
    for folder, _, names in os.walk("spec"):
        paths += [os.path.join(folder, n) for n in names if n.endswith(".xml")]
    chosen = []
    for path in sorted(paths, key=lambda p: (os.path.getsize(p), p)):
        with open(path, encoding="utf-8") as f:
            events = f.read().count("<event ")
        if count + events <= EVENTS:
            chosen.append(path)
            count += events
    return chosen, count


def generate(codegen, backends, paths, folder):
    """One operation: its seconds."""
    shutil.rmtree(os.path.join(folder, "out"), ignore_errors=True)
    words = [word for b in backends for word in ("--backend", b, "-o", os.path.join(folder, "out", b))]
    start = time.monotonic()
    subprocess.run([codegen, *words, *paths], check=True)
    return time.monotonic() - start


def main():
    codegen = os.path.join(BUILD, "bin", "pem-codegen")
    backends = subprocess.run([codegen, "--backends"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    folder = tempfile.mkdtemp(prefix="pem-bench-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        paths, count = tree()
        paths += synthetic(folder, EVENTS - count)
        generate(codegen, backends, paths, folder)
        sums = [generate(codegen, backends, paths, folder) for _ in range(ROUNDS)]
        alone = {b: statistics.median(generate(codegen, [b], paths, folder) for _ in range(3)) for b in backends}
    finally:
        shutil.rmtree(folder)
    print("%-24s %9s %9s %9s" % ("codegen", "median", "min", "max"))
    print("%-24s %9.1f %9.1f %9.1f  ms   %d backends, %d events, of which %d are this tree's" %
          ("codegen/generate_500", statistics.median(sums) * 1e3, min(sums) * 1e3, max(sums) * 1e3, len(backends),
           EVENTS, count))
    for backend, took in alone.items():
        print("  %-22s %9.1f" % (backend, took * 1e3))
    print("  %-22s %9.1f" % ("sum of these", sum(alone.values()) * 1e3))
    if os.environ.get("BENCH_OUT"):
        with open(os.environ["BENCH_OUT"], "a", encoding="utf-8") as f:
            f.write(json.dumps({"bench": "codegen", "case": "codegen/generate_500", "unit": "ns",
                                "value": round(statistics.median(sums) * 1e9), "min": round(min(sums) * 1e9),
                                "max": round(max(sums) * 1e9), "runs": len(sums)}, separators=(",", ":")) + "\n")


if wanted("codegen/generate_500"):
    main()
