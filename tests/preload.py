# SPDX-License-Identifier: MIT
"""
preload.py - running and recording programs that nobody changed, for the tests of libpem-libc and other adapters

Not here: tests.
"""
import csv
import os
import subprocess

from tap import BUILD, PEM, SAN, equal, need, run, skip, tmp

LIBC = os.path.join(BUILD, "lib", "libpem-libc.so")
PRELOAD = {"LD_PRELOAD": os.path.join(BUILD, "lib", "libpem.so.1") + ":" + LIBC}

# All of libpem-libc's and the adapters'. "APP::*" has the probes of PostgreSQL, too: 51 programs for the kernel to verify.
STUBS = ",".join("APP::%s::*" % name for name in ("Collector", "File", "Jit", "Libc", "Loader", "Lock", "Mpi", "Omp", "Phase",
                                                 "Program", "Runtime", "Socket", "Sqlite", "Stdio"))


def need_preload():
    if SAN:
        skip("a sanitizer's runtime must come before every preloaded library; run without SAN=1")
    if not os.path.exists(LIBC):
        skip("libpem-libc.so is not built")


def compile_program(source, name="program", flags=(), compiler=None):
    compiler = compiler or os.environ.get("CC") or "cc"
    need(compiler.split()[0])
    folder = tmp()
    path = os.path.join(folder, name)
    language = "c++" if "++" in compiler else "c"
    child = subprocess.run(compiler.split() + ["-x", language, "-", "-o", path, "-g", "-O1", "-fno-builtin", "-w",
                                               "-pthread"] + list(flags),
                           input=source.encode(), stderr=subprocess.PIPE)
    if child.returncode and flags:
        skip("%s can't build with %s" % (compiler, " ".join(flags)))
    equal((child.returncode, child.stderr), (0, b""), "compiling")
    return path


def same(command, **more):
    """Run with and without the library: nothing may differ. Returns standard output."""
    need_preload()
    need(command[0])
    alone = run(command, env={"LD_PRELOAD": None}, binary=True, **more)
    equal(run(command, env=PRELOAD, binary=True, **more), alone, command[0] + " with the library")
    equal(alone[0], 0, "exit status of " + command[0])
    return alone[1]


def record(command, patterns, status=0, env=None):
    """Record a command: its standard output, and its events as dictionaries."""
    need_preload()
    if not os.path.exists(PEM) or not os.path.exists(BUILD + "/lib/pem/export-csv.so"):
        skip("pem or its csv exporter is not built")
    folder = tmp()
    rc, out, err = run([PEM, "record", "-q", "-e", patterns, "-o", folder + "/t", "--"] + command, env=env)
    equal(rc, status, "exit status, with " + err)
    plugins = {"PEM_PLUGIN_PATH": BUILD + "/lib/pem"}
    rc, _, err = run([PEM, "export", "--to", "csv", folder + "/t", "-o", folder + "/csv"], env=plugins)
    equal(rc, 0, "exit status of export, with " + err)
    with open(folder + "/csv", newline="") as file:
        return out, list(csv.DictReader(file))


def recorded_by_all(path, env=None):
    """A program alone, and under each of pem's verbs that start programs: what it says must be the same. Returns that."""
    need_preload()
    alone = run([path], env=env)
    equal(alone[0], 0, "exit status alone, with " + alone[2])
    trace = tmp() + "/trace"
    for verb in (["record", "-q", "-e", STUBS, "-o", trace], ["stat", "-e", STUBS, "-o", tmp() + "/stat"], ["run"]):
        got = run([PEM] + verb + ["--", path], env=env, timeout=30)
        equal(got[:2], alone[:2], "under pem %s, with %s" % (verb[0], got[2]))
    rc, out, err = run([PEM, "report", trace])
    equal(rc, 0, "what pem report says of the balance, with " + out + err)
    return alone[1]


def count(events, name, **fields):
    """How many events have this name (without layer and class: of APP::Libc) and these values."""
    name = name if "::" in name else "APP::Libc::" + name
    return sum(e["event"] == name and all(e[k] == str(v) for k, v in fields.items())
               for e in events)
