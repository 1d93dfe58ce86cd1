# SPDX-License-Identifier: MIT
"""
example_between_collections.py - the paper's Figure 4 on a JVM, from outside: page faults between collections and during
them, held against -Xlog:gc and against a trace of the same run
"""
import os
import re
import subprocess
import sys

from talk import Talk
from tap import BUILD, SAN, equal, need, run, run_all, skip, test, tmp

PROGRAM = os.path.join(BUILD, "examples", "between_collections")
AGENT = BUILD + "/lib/libpem-jvm.so"
FAULT, BEGIN, END = "OS::Mem::PageFault", "APP::Collector::PauseBegin", "APP::Collector::PauseEnd"
LINE = re.compile(r"^(\d+) collections, (\d+) page faults between them, (\d+) during them, (\d+) unknown$", re.MULTILINE)
CHURN = """
public class Churn {
	static java.util.ArrayList<byte[]> keep = new java.util.ArrayList<>();
	public static void main(String[] a) throws java.io.IOException {
		if (a.length > 0) { System.out.print("."); System.out.flush(); System.in.read(); }
		for (int r = 0; r < 40; r++) {
			for (int i = 0; i < 2000; i++) { byte[] b = new byte[8192]; if (i % 50 == 0) keep.add(b); }
			if (keep.size() > 2000) keep.clear();
		}
		System.exit(3);
	}
}
"""


def java(folder):
    """A command that collects some forty times, with a log of its collections; in a folder of its own."""
    if not os.path.exists(AGENT):
        skip("libpem-jvm.so is not built: jvmti.h is missing (default-jdk-headless)")
    need("java", "javac")
    with open(folder + "/Churn.java", "w") as f:
        f.write(CHURN)
    subprocess.run(["javac", "-d", folder, folder + "/Churn.java"], check=True)
    return ["java", "-Xmx64m", "-XX:+UseSerialGC", "-Xlog:gc:file=%s/gc.log" % folder, "-agentpath:" + AGENT, "-cp", folder, "Churn"]


def pauses(folder):
    with open(folder + "/gc.log") as f:
        return sum("Pause" in line for line in f)


def check(program, env=None):
    folder = tmp()
    env = dict(env or {})
    if SAN:  # a JVM handles SIGSEGV that it raises on purpose, and the search for leaks reads pages that it protects
        env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":handle_segv=0:detect_leaks=0"
    rc, out, err = run(program + java(folder), env=env)
    if rc == 2:
        skip("no page faults here: " + err.strip().splitlines()[-1])
    equal(rc, 3, "the command's exit status (stderr: %s)" % err)
    found = LINE.search(out)
    assert found, "unexpected output: " + out
    collections, between, during, _ = map(int, found.groups())
    equal(collections, pauses(folder), "collections, beside those in the JVM's log")
    # The heap grows and is copied by the collector, which touches most of it first.
    assert during > between > 0, out


@test
def in_c():
    "the example in C counts the collections that the JVM's log has"
    check([PROGRAM])


@test
def in_cxx():
    "the example in C++ does the same"
    if not os.path.exists(PROGRAM + "_cxx"):
        skip("no C++ compiler: make deps installs g++")
    check([PROGRAM + "_cxx"])


@test
def in_python():
    "so does the one in Python"
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    check([sys.executable, PROGRAM + ".py"], env={"PYTHONPATH": os.path.join(BUILD, "python")})


def of_trace(pemapi, trace):
    """Page faults of a trace before the first collection, between collections and during them, and the collections."""
    before, between, during, collections, inside, ended = 0, 0, 0, 0, False, False
    for record in pemapi.Trace(trace):
        name = record.event.name
        if name == FAULT:
            during += inside
            between += ended and not inside
            before += not ended and not inside
        elif name in (BEGIN, END):
            inside = name == BEGIN
            ended = ended or not inside
            collections += inside
    return before, between, during, collections


@test
def as_in_a_trace():
    "statistics with gates count what a trace of the same run has between and during its collections"
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    sys.path.insert(0, os.path.join(BUILD, "python"))
    import pemapi
    folder = tmp()
    command = java(folder) + ["wait"]
    with pemapi.Session() as session, Talk() as talk:
        reason = session.why_not(session.events(FAULT)[0])
        if reason:
            skip("no page faults here: " + reason)
        between, during, everything = (session.statistics(session.events(FAULT, where=where))
                                       for where in ("from %s to %s" % (END, BEGIN), "inside " + BEGIN, None))
        log = session.log(session.events(FAULT, BEGIN, END), folder + "/trace")
        for handle in between, during, everything, log:
            handle.enable()
        talk.run(session, command)
        equal(talk.out.read(1), ".", "sign of life")
        # Reading looks for the process. From here on BPF knows it, and no collection has begun.
        early = during.read()[0].undecided
        talk.answer(".")
        session.wait()
        between, during, everything = (s.read()[0] for s in (between, during, everything))
    before, traced_between, traced_during, collections = of_trace(pemapi, folder + "/trace")
    equal(collections, pauses(folder), "collections of the trace, beside those in the JVM's log")
    equal(before + traced_between + traced_during, everything.count, "page faults of the trace")
    equal((during.undecided, between.undecided <= before), (early, True), "undecided faults after the first collection")
    # A fault within the error of the clocks of a collection's begin or end may lie on the other side of it in the trace.
    for name, value, traced in ("between", between, traced_between), ("during", during, traced_during):
        missing = traced - value.count
        assert abs(missing) <= 2 * collections, "%s: %d counted, %d in the trace" % (name, value.count, traced)


run_all()
