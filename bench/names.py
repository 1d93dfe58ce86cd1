#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
names - how long a million addresses take to become functions, files and lines

    names/distinct   addresses all over a program's code, each of them once, as far as there are so many
    names/repeated   a thousand addresses, a thousand times each, as a trace has its call sites
    cost/names       what pem record does at its end: it names what a trace has, which is kept with it; no peer does that

Each value is of a million look-ups, with opening the object and reading its debug information. The object is pem, which has
debug information. Beside it addr2line -f -i -e and eu-addr2line -f -i -e, in turn: they get a share of the addresses, which
'peer_addresses' says, and their time is that for a million if each takes as long.
"""
import os
import random
import re
import shutil
import subprocess
import tempfile
import time

from measure import BUILD, PEM, QUICK, heading, report, wanted

LOOKUPS = 10_000 if QUICK else 1_000_000
ROUNDS = 1 if QUICK else 5
NAMER = os.path.join(BUILD, "programs", "name_code")
KEEPER = os.path.join(BUILD, "programs", "keep_names")
# Of the addresses, so that a round takes seconds.
PEERS = {"addr2line": 10, "eu-addr2line": 100}


def code():
    """Where the code of pem begins, and its bytes."""
    out = subprocess.run(["readelf", "-SW", PEM], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.search(r" \.text +PROGBITS +(\w+) +\w+ +(\w+)", out)
    return int(found[1], 16), int(found[2], 16)


def ours_s(offsets, times):
    out = subprocess.run([NAMER, PEM, "-", "-", str(times)], input=offsets, stdout=subprocess.PIPE, text=True, check=True).stdout
    opened, named, _ = map(int, out.split())
    return (opened + named) / 1e9


def theirs_s(tool, offsets):
    begin = time.monotonic()
    subprocess.run([tool, "-f", "-i", "-e", PEM], input=offsets, stdout=subprocess.DEVNULL, text=True, check=True)
    return time.monotonic() - begin


def keep():
    """The time that names take at the end of a recording of Python, which calls compilers."""
    work = "import json, subprocess; [json.dumps(list(range(20000))) for _ in range(60)]; subprocess.run(['gcc', '-x', 'c', '-S', '-o-', '-'], " \
           "input=b'int main(void) { return 0; }', stdout=subprocess.DEVNULL)"
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "trace")
        subprocess.run([PEM, "record", "-q", "-g", "-o", trace, "--", "python3", "-c", work], check=True, stdout=subprocess.DEVNULL)
        ours = [int(subprocess.run([KEEPER, trace], stdout=subprocess.PIPE, text=True, check=True).stdout) / 1e9 for _ in range(ROUNDS)]
        report("names", "cost/names", "s", ours, kept_bytes=os.path.getsize(trace + "/.pem/code"))


def main():
    cases = wanted("names/distinct", "names/repeated", "cost/names")
    if not cases:
        return
    heading("names")
    if not os.path.exists(NAMER):
        print("names: not built: libdw-dev is missing")
        return
    if "cost/names" in cases:
        keep()
        cases = [case for case in cases if case != "cost/names"]
    start, size = code()
    chance = random.Random(1)
    tools = [tool for tool in PEERS if shutil.which(tool)]
    for case in cases:
        distinct = case == "names/distinct"
        count = LOOKUPS if distinct else LOOKUPS // 1000
        offsets = ["%x\n" % (start + chance.randrange(size)) for _ in range(count)]
        ours, theirs = [], {tool: [] for tool in tools}
        for _ in range(ROUNDS):
            ours.append(ours_s("".join(offsets), LOOKUPS // count))
            for tool in tools:
                part = LOOKUPS // PEERS[tool] // (1 if not QUICK else 10)
                given = [offsets[i % count] for i in range(part)]
                theirs[tool].append(theirs_s(tool, "".join(given)) * LOOKUPS / part)
        for tool in tools or [None]:
            report("names", case, "s", ours, peer=tool or "addr2line", theirs=theirs.get(tool, ()), distinct=len(set(offsets)),
                   peer_addresses=LOOKUPS // PEERS[tool] if tool else 0)


if __name__ == "__main__":
    main()
