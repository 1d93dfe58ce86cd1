# SPDX-License-Identifier: MIT
"""
example_hello.py - one binary that includes a generated header: with libpem absent, preloaded, and in a static program
"""
import csv
import json
import os
import subprocess

from tap import BUILD, PEM, equal, run, run_all, test, tmp

HELLO = os.path.join(BUILD, "examples", "hello")
SAID = "hello, world\nhello, timeline\nhello, reader\n"


@test
def hello_alone():
    "without libpem the program runs as if there were no events"
    equal(run([HELLO], env={"LD_LIBRARY_PATH": None}), (0, SAID, ""), "status, output, errors")


@test
def hello_not_linked():
    "the program is linked with nothing of pem"
    out = subprocess.run(["readelf", "-d", HELLO], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert "libpem" not in out, out


@test
def hello_recorded():
    "under pem record each greeting is in the trace, with its fields, and the output is the same"
    folder = tmp()
    rc, out, err = run([PEM, "record", "-q", "--no-libc", "-e", "APP", "-o", folder + "/trace", "--", HELLO, "5"])
    equal((rc, out), (0, SAID), "status and output (stderr: %s)" % err)
    rc, out, err = run([PEM, "export", "--to", "csv", "-o", "-", folder + "/trace"])
    equal(rc, 0, "export: " + err)
    rows = list(csv.DictReader(out.splitlines()))
    equal([(r["event"], r["number"], r["whom"]) for r in rows],
          [("APP::Hello::Greeting", str(i + 1), ["world", "timeline", "reader"][i % 3]) for i in range(5)], "rows")


@test
def hello_recorded_by_default():
    "pem record without options has the program's own events too, though pem never saw their spec"
    folder = tmp()
    rc, out, err = run([PEM, "record", "-q", "-o", folder + "/trace", "--", HELLO])
    equal((rc, out), (0, SAID), "status and output (stderr: %s)" % err)
    rc, out, err = run([PEM, "report", "--json", folder + "/trace"])
    equal(rc, 0, "report: " + err)
    equal([e["count"] for e in json.loads(out)["per_event"] if e["name"] == "APP::Hello::Greeting"], [3], "greetings")


@test
def hello_session_gone():
    "a program that finds its session gone runs as if there were none"
    equal(run([HELLO], env={"LD_PRELOAD": os.path.join(BUILD, "lib", "libpem.so.1"),
                            "PEM_SESSION": "/nonexistent/session"}), (0, SAID, ""), "status, output, errors")


run_all()
