#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
data_samples - how far the data that timer samples find (pem record --mem) are those that a program touches

	hw/data_samples_line	samples with an address in the program's own code whose instruction, the sampled one or the one before
				it, touches that cache line of that data structure in a reference trace
	hw/data_samples_object	the same of the data structure alone
	hw/data_samples_none	samples there without an address
	hw/data_samples_shares	difference between the data structures' shares of samples and of the references, half of the sum over
				all: how much would have to be moved. Samples are time, and references are not: a slow one takes more.

'touched' works with six data structures, the same way in each round. Valgrind's lackey writes each instruction and each reference to
memory of a round; pem samples many rounds. Addresses are compared as an offset in a data structure, since these lie elsewhere.
"""
import csv
import os
import shutil
import subprocess
import sys
from collections import Counter, defaultdict

from measure import Folder, PEM, QUICK, heading, report, wanted

ROUNDS = 300 if QUICK else 6000
RUNS = 1 if QUICK else 5
HZ = 997
LINE = 64
CASES = ("hw/data_samples_line", "hw/data_samples_object", "hw/data_samples_none", "hw/data_samples_shares")
TOUCHED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "touched")


def structures(text):
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2].isdigit():
            found.append((words[0], int(words[1]), int(words[2])))
    return found


def place(where, address):
    """(data structure, cache line of it) of an address, or None."""
    for name, start, size in where:
        if start <= address < start + size:
            return name, (address - start) // LINE
    return None


def reference(folder):
    """({pc: what it touches}, {address behind an instruction: its pc}, references by data structure) of one round."""
    trace = folder.fresh("lackey")
    done = subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=" + trace, TOUCHED, "1"], stdout=subprocess.PIPE,
                          universal_newlines=True)
    if done.returncode:
        sys.exit("data_samples: valgrind failed")
    where = structures(done.stdout)
    touches, before, shares, pc = defaultdict(set), {}, Counter(), 0
    with open(trace, encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line[:2].strip() not in ("I", "L", "S", "M"):
                continue
            address, size = line[3:].split(",")
            address = int(address, 16)
            if line[0] == "I":
                pc = address
                before[pc + int(size)] = pc
                continue
            found = place(where, address)
            touches[pc].add(found or (None, 0))
            if found:
                shares[found[0]] += 1
    return touches, before, shares


def sampled(folder):
    """(where data structures are, [(pc, address)]) of a run."""
    trace, table = folder.fresh("trace"), folder.fresh("samples.csv")
    said = subprocess.run([PEM, "record", "-q", "--mem", "-F", str(HZ), "-e", "DataSample", "-o", trace, "--", TOUCHED, str(ROUNDS)],
                          stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
    subprocess.run([PEM, "export", "--to", "csv", trace, "-o", table], stderr=subprocess.DEVNULL, check=True)
    with open(table, encoding="utf-8") as rows:
        samples = [(int(row["pc"], 16), int(row["address"], 16)) for row in csv.DictReader(rows) if row["event"].endswith("DataSample")]
    return structures(said), samples


def compare(where, samples, told):
    """The figures of a run, by case."""
    touches, before, shares = told
    own = [(pc, address) for pc, address in samples if pc in before or pc in touches]
    found = [(pc, address) for pc, address in own if address]
    lines = objects = 0
    by_structure = Counter()
    for pc, address in found:
        at = place(where, address)
        by_structure[at[0] if at else None] += 1
        may = touches.get(pc, set()) | touches.get(before.get(pc), set())
        # What is in no data structure lies elsewhere under Valgrind: that it is in none is all there is to compare.
        lines += at in may if at else any(name is None for name, _ in may)
        objects += (at[0] if at else None) in {name for name, _ in may}
    of = sum(count for name, count in by_structure.items() if name)
    moved = sum(abs(by_structure[name] / of - shares[name] / sum(shares.values())) for name in shares) / 2 if of else 1
    return dict(zip(CASES, (100 * lines / max(len(found), 1), 100 * objects / max(len(found), 1), 100 * (1 - len(found) / max(len(own), 1)), 100 * moved))), len(own)


def main():
    cases = wanted(*CASES)
    if not cases:
        return
    heading("data_samples", "of %d samples a second" % HZ)
    if not shutil.which("valgrind"):
        print("data_samples: left out, there is no valgrind")
        return
    runs = []
    with Folder() as folder:
        told = reference(folder)
        for _ in range(RUNS):
            runs.append(compare(*sampled(folder), told))
    for case in cases:
        report("data_samples", case, "%", [figures[case] for figures, _ in runs], digits=1, note="%d samples in a run" % runs[0][1])


if __name__ == "__main__":
    main()
