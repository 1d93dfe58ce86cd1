#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Java programs under libpem-jvm.so: pauses, compiled code, classes, exceptions, threads and monitors.

Not here: events that Java programs raise themselves (backend_java.py).
"""
import collections
import os
import subprocess

from preload import count, record
from tap import BUILD, equal, need, run, run_all, skip, test, tmp

AGENT = BUILD + "/lib/libpem-jvm.so"
ALL = "APP::Collector::*,APP::Jit::*,APP::Runtime::*"

WORK = r"""
import java.util.*;
public class Work {
	static final Object lock = new Object();
	static int thrown() { int n = 0; for (int i = 0; i < 50; i++) try { Integer.parseInt("x" + i); } catch (NumberFormatException e) { n++; } return n; }
	public static void main(String[] a) throws Exception {
		long sum = 0;
		List<byte[]> keep = new ArrayList<>();
		for (int i = 0; i < 40000; i++) { byte[] b = new byte[10000]; b[i % 10000] = 1; if (i % 4000 == 0) keep.add(b); sum += b[i % 10000]; }
		Thread t = new Thread(() -> { synchronized (lock) { lock.notifyAll(); } }, "pem-helper");
		synchronized (lock) { t.start(); Thread.sleep(50); lock.wait(2000); }
		t.join();
		System.gc();
		System.out.println(sum + " " + thrown() + " " + keep.size());
	}
}
"""


def need_agent():
    if not os.path.exists(AGENT):
        skip("libpem-jvm.so is not built: jvmti.h is missing (default-jdk-headless)")
    need("java", "javac")


def kinds(events):
    return collections.Counter(e["event"].split("::", 1)[1] for e in events)


@test
def known_program():
    "a program that collects, throws, waits and starts a thread shows each, and prints the same"
    need_agent()
    folder = tmp()
    with open(folder + "/Work.java", "w") as file:
        file.write(WORK)
    subprocess.run(["javac", "-d", folder, folder + "/Work.java"], check=True)
    out, events = record(["java", "-agentpath:" + AGENT, "-Xmx64m", "-cp", folder, "Work"], ALL)
    equal(out, "40000 50 10\n", "what it prints")
    k = kinds(events)
    assert k["Collector::PauseBegin"] == k["Collector::PauseEnd"] > 0, k
    numbers = [int(e["number"]) for e in events if e["event"].endswith("PauseBegin")]
    equal(numbers, list(range(1, len(numbers) + 1)), "numbers of the pauses")
    equal((k["Runtime::Start"], k["Runtime::Stop"]), (1, 1), "start and stop")
    thrown = {"typeName": "java.lang.NumberFormatException"}
    equal((count(events, "APP::Runtime::ExceptionThrow", isCaught=1, **thrown),
           count(events, "APP::Runtime::ExceptionCatch", method="Work.thrown", **thrown)), (50, 50), "exceptions")
    names = collections.Counter(e["name"] for e in events if e["event"].startswith("APP::Runtime::Thread"))
    equal(names["pem-helper"], 2, "start and end of the thread")
    equal(count(events, "APP::Runtime::MonitorWaitBegin", timeout=2000, typeName="java.lang.Object"), 1, "waits")
    equal((k["Runtime::MonitorEnterBegin"] >= 1, k["Runtime::MonitorEnterEnd"] >= 1), (True, True), "contended monitors")
    equal(count(events, "APP::Runtime::ClassPrepare", typeName="Work"), 1, "its class")
    assert count(events, "APP::Collector::ObjectSample", typeName="[B") > 100, k
    assert k["Jit::CodeLoad"] > 10, k


@test
def compiling_something():
    "javac, told of the agent by JAVA_TOOL_OPTIONS, compiles the same class file and shows what it does"
    need_agent()
    folder = tmp()
    with open(folder + "/Work.java", "w") as file:
        file.write(WORK)
    subprocess.run(["javac", "-d", folder + "/a", folder + "/Work.java"], check=True)
    _, events = record(["javac", "-d", folder + "/b", folder + "/Work.java"], ALL, env={"JAVA_TOOL_OPTIONS": "-agentpath:" + AGENT})
    with open(folder + "/a/Work.class", "rb") as one, open(folder + "/b/Work.class", "rb") as two:
        equal(one.read(), two.read(), "class file")
    k = kinds(events)
    assert k["Jit::CodeLoad"] > 200 and k["Runtime::ClassPrepare"] > 500, k
    code = [e for e in events if e["event"] == "APP::Jit::CodeLoad"]
    assert any("com.sun.tools.javac" in e["method"] for e in code), [e["method"] for e in code[:20]]
    assert all(int(e["size"]) > 0 and e["address"] != "0x0" for e in code), "code without place"


@test
def without_libpem_it_stays_out():
    "the agent in a virtual machine without libpem's session changes nothing"
    need_agent()
    if os.environ.get("SAN"):
        skip("a sanitizer's runtime must come before the libraries of a program built without; run without SAN=1")
    rc, out, err = run(["java", "-agentpath:" + AGENT, "-version"])
    equal((rc, "JDK" in err or "Runtime" in err, out), (0, True, ""), "java -version")


run_all()
