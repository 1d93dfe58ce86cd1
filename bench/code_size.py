#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
code_size.py - bytes of instructions that a stub of two fields takes where it is called, by compilers and their options

A function that raises the event, and then uses what it passed, is compared with one that does not raise it. 'off' are the
bytes that run while nobody records: up to and with the branch. 'in all' is with the part behind that branch, wherever the
compiler put it. Not here: the time that a stub takes (stub.c).

make puts it beside the other benchmarks, in BUILD/bench, and runs it in the root of the tree.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from measure import wanted

BUILD = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODEGEN = os.environ.get("PEM_CODEGEN") or os.path.join(BUILD, "bin", "pem-codegen")
BACKENDS = {"c": "pem", "usdt": "usdt", "lttng-ust": "lttng-ust", "none": "none"}  # what pem gen calls them
COMPILERS = ("gcc", "clang")
OPTIONS = (["-O2"], ["-Os"], ["-O2", "-fPIC"])
PROGRAM = """
#include "bench.h"

void after(uint64_t a, uint64_t b);

void with_event(uint64_t a, uint64_t b);
void with_event(uint64_t a, uint64_t b)
{
	pem_notify_bench_log(a, b);
	after(a, b);
	after(b, 1);
}

void without(uint64_t a, uint64_t b);
void without(uint64_t a, uint64_t b)
{
	after(a, b);
	after(b, 2); /* not the same, or the compiler would write it once */
}
"""
LOAD = re.compile(r"\(%rip\)|^adrp")  # what begins the test: the enable byte, wherever it is
BRANCH = re.compile(r"^(j|cbn?z|b\.|tbn?z)")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def measure(compiler, options, folder):
    """(off, in all) of the stub in a folder's bench.h; None: it can't be compiled here."""
    path = os.path.join(folder, "two")
    with open(path + ".c", "w") as f:
        f.write(PROGRAM)
    done = subprocess.run([compiler, *options, "-std=gnu11", "-fcf-protection=none", "-I" + folder, "-Ispec/abi", "-c", "-o",
                           path + ".o", path + ".c"], stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        return None
    sizes = {name: int(size, 16)
             for size, name in re.findall(r"^\S+ (\S+) [tT] (\S+)$", output("nm", "-S", path + ".o"), re.MULTILINE)}
    whole = sizes["with_event"] + sizes.get("with_event.cold", 0) - sizes["without"]
    off = 0
    for data, text in re.findall(r"^\s+[0-9a-f]+:\t((?:[0-9a-f]+ )+)\s*\t(.*)",
                                 output("objdump", "-d", "-w", "--disassemble=with_event", path + ".o"), re.MULTILINE):
        if off or LOAD.search(text):
            off += len(data.replace(" ", "")) // 2
        if off and BRANCH.match(text):
            break
    return (off, whole) if whole else (0, 0)


def main():
    if not shutil.which("objdump") or not shutil.which("nm"):
        sys.exit("code_size: objdump and nm are missing (binutils)")
    rows, ours = [], []
    for backend, name in BACKENDS.items():
        folder = tempfile.mkdtemp(prefix="pem-bench-")
        try:
            output(CODEGEN, "--backend", backend, "-o", folder, "bench/bench.xml")
            for compiler in filter(shutil.which, COMPILERS):
                for options in OPTIONS:
                    size = measure(compiler, options, folder)
                    rows.append((name, "%s %s" % (compiler, " ".join(options)), size))
                    if backend == "c" and size:
                        ours.append(size)
        finally:
            shutil.rmtree(folder)
    print("%-24s %-16s %9s %9s  bytes" % ("code_size", "", "off", "in all"))
    for name, how, size in rows:
        print("  %-22s %-16s %s" % (name, how, "%9d %9d" % size if size else "its header is missing here"))
    if not ours:
        sys.exit("code_size: no compiler is here: gcc or clang is needed")
    if os.environ.get("BENCH_OUT"):
        with open(os.environ["BENCH_OUT"], "a", encoding="utf-8") as f:
            for case, sizes in (("stub/code_size", [s[1] for s in ours]), ("stub/code_size-off", [s[0] for s in ours])):
                f.write(json.dumps({"bench": "code_size", "case": case, "unit": "bytes", "value": max(sizes),
                                    "min": min(sizes), "max": max(sizes), "runs": len(sizes)},
                                   separators=(",", ":")) + "\n")


if wanted("stub/code_size", "stub/code_size-off"):
    main()
