#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
processor - names the machine's processor; writes the name into each row of results that has none

Use: bench/processor.py [FILE...]
FILE: rows of JSON, one a line, as the benchmarks write them. A figure in ns means little without the processor: "cpu" of a row.
"""
import json
import os
import sys


def name():
    """As the kernel calls it, with the numbers that tell apart what vendors sell under one name."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        found = dict([part.strip() for part in line.split(":", 1)] for line in lines if ":" in line)
    model = found.get("model name") or "%s part %s" % (os.uname().machine, found.get("CPU part", "unknown"))
    if "cpu family" in found:
        model += " (family %s, model %s)" % (found["cpu family"], found["model"])
    return "%s, %d CPUs" % (model, os.cpu_count() or 1)


def stamp(path, cpu):
    """Add the processor to rows that lack it. The file is replaced as a whole."""
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with open(path + ".new", "w", encoding="utf-8") as out:
        out.writelines(json.dumps({**row, "cpu": row.get("cpu", cpu)}, separators=(",", ":")) + "\n" for row in rows)
    os.rename(path + ".new", path)


def main():
    cpu = name()
    for path in sys.argv[1:]:
        if os.path.exists(path):
            stamp(path, cpu)
    print(cpu)


main()
