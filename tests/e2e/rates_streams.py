# SPDX-License-Identifier: MIT
"""rates_streams: pem rates finds what threads could do that have queues of pem/stream.h between them"""
import json
import os
import re
import signal
import subprocess
import sys
import time

from probing import here
from tap import BUILD, PEM, equal, need_reach, run, run_all, skip, start, test, tmp
from thread_rates import USER, check, items_by_thread, rates, slowest_is_named, truth

STREAMS = os.path.join(BUILD, "programs", "streams")
if not os.path.exists(BUILD + "/bin/pem-rates"):
    print("1..0 # SKIP pem rates was not built: json-c is missing")
    sys.exit(77)


@test
def stages_queues_and_bottleneck():
    "each thread is a stage with its items, for an ordinary user and a command that appears later; the slowest one is named"
    found, err = slowest_is_named(lambda: rates("sh", "-c", "%s 1000 5 s500 5" % STREAMS))
    check(found, err)
    equal([s["name"] for s in found["stages"]], ["s1", "s2", "s3"], "order")
    equal([(q["name"], q["from"], q["to"], q["items"], q["capacity"]) for q in found["queues"]],
          [("q1", ["s1"], ["s2"], 1000, 64), ("q2", ["s2"], ["s3"], 1000, 64)], "queues")
    equal(found["item_unit"], "items", "unit")
    assert "pipes can't be observed" in err or not USER, err


@test
def a_slow_first_or_last_stage():
    "a first stage, or a last one, is named if it is the slowest"
    slowest_is_named(lambda: rates(STREAMS, "1000", "s500", "5", "5"), "s1")
    slowest_is_named(lambda: rates(STREAMS, "1000", "5", "5", "s500"), "s3")


@test
def tables_tell_the_same():
    "tables have the threads and their items, the sentence the bottleneck; --items is not about them"
    rc, out, err = run([PEM, "rates", "--items", "512", "--", STREAMS, "2000", "5", "s500", "5"])
    equal((rc, out), (0, ""), "status and output")
    assert re.search(r"^s2 +\d+ +\d+ ", err, re.M) and re.search(r"^q1 +s1 +s2 +2,000 ", err, re.M), err
    assert "The bottleneck is s2: " in err and "--items is about pipes" in err, err


@test
def a_process_that_forks():
    "parent and child are stages of their own, each with its own items"
    found, err = rates(STREAMS, "-f", "1000", "20", "s500")
    known = truth(err)
    equal(len(known), 4, "stages of the program")
    equal(items_by_thread(found["stages"]), {key: items for key, (_, items) in known.items()}, "items")
    equal(sorted(s["name"] for s in found["stages"]), ["s1", "s1#2", "s2", "s2#2"], "names")


@test
def a_stage_that_becomes_another_one():
    "a thread that popped, freed its queue and only pushes has the items of its pushes; one that leaves all queues and returns is a new stage"
    found, _ = rates(STREAMS, "-o", "300", "50", "s300", "50")
    stages = {s["name"]: s for s in found["stages"]}
    equal({name: s["items"] for name, s in stages.items()}, {"s1": 300, "s2": 1200, "s3": 1200, "again": 900}, "items")
    equal(stages["again"]["tid"], stages["s3"]["tid"], "thread")
    assert sum(p["items"] for p in stages["s2"]["phases"]) > 300, stages["s2"]


@test
def an_end_that_moves_to_another_thread():
    "of two threads that use an end after each other it is not known which of them moved some items: both counts are unknown"
    found, _ = rates(STREAMS, "-t", "300", "50", "s300", "50")
    equal([(s["name"], s["items"]) for s in found["stages"]], [("s1", 300), ("s2", 300), ("s3", None), ("s3#2", None)], "items")
    equal([(q["name"], q["to"], q["items"]) for q in found["queues"]], [("q1", ["s2"], 300), ("q2", ["s3#2"], 300)], "queues")


@test
def a_process_that_runs_another_program():
    "the queues of a program are not those of the next one in the same process"
    found, err = rates(STREAMS, "-x", "1000", "20", "s500")
    known = truth(err)
    equal(len(known), 4, "stages of the programs")
    equal(sorted(s["items"] for s in found["stages"]), [1000] * 4, "items")
    equal(len(found["queues"]), 2, "queues")


class Running:
    """A program that runs already, and pem rates attached to it."""

    def __init__(self, *words):
        self.program = start([STREAMS, *words], stderr=subprocess.PIPE, text=True)
        while not self.has_begun(len(words) - 1):
            time.sleep(0.02)
        self.out = os.path.join(tmp(), "out")
        self.pem = start([PEM, "rates", "--json", "-o", self.out, "-p", str(self.program.pid)], stderr=subprocess.PIPE, text=True)
        for line in self.pem.stderr:
            if "until it ends or you interrupt" in line:
                break

    def has_begun(self, stages):
        """Has each stage waited for something? Then it has used its queues, unless the program has ended."""
        folder = "/proc/%d/task" % self.program.pid
        waited = 0
        for tid in os.listdir(folder):
            with open("%s/%s/status" % (folder, tid), encoding="utf-8") as text:
                waited += "\nvoluntary_ctxt_switches:\t0\n" not in text.read()
        return waited > stages or self.program.poll() is not None

    def result(self, status=0):
        equal((self.pem.wait(), self.pem.stderr.read()), (status, ""), "status and errors")
        with open(self.out, encoding="utf-8") as text:
            return json.load(text)


@test
def a_process_that_ends():
    "the last numbers of a process that ends are those of all its items"
    running = Running("2000", "5", "s300", "5")
    err = running.program.communicate()[1]
    found = running.result()
    equal([s["items"] for s in found["stages"]], [2000] * 3, "items")
    equal(len(truth(err)), 3, "stages")


@test
def a_process_that_is_killed():
    "a process that is killed leaves the items that it had"
    running = Running("1000000", "5", "s300")
    os.kill(running.program.pid, signal.SIGKILL)
    running.program.wait()
    found = running.result()
    equal([s["name"] for s in found["stages"]], ["s1", "s2"], "stages")
    assert 0 < found["queues"][0]["items"] < 1000000, found


@test
def a_process_that_is_stopped():
    "a process that is stopped has no items in the meantime, and its stages stay"
    running = Running("1000000", "5", "s300")
    os.kill(running.program.pid, signal.SIGSTOP)
    running.pem.send_signal(signal.SIGINT)
    found = running.result()
    running.program.kill()
    running.program.wait()
    equal([s["name"] for s in found["stages"]], ["s1", "s2"], "stages")


@test
def pipes_and_queues():
    "a process with pipes outside and queues inside is in one report, and the thread is named that is slow"
    if os.geteuid():
        skip("pipes are observed by root")
    here()
    found, _ = rates("sh", "-c", "(%s 2000 5 s500 5; echo done) | cat >/dev/null" % STREAMS, user=False)
    names = [s["name"] for s in found["stages"]]
    assert {"s1", "s2", "s3", "cat"} <= set(names), names
    equal([q["items"] for q in found["queues"] if "items" in q], [2000, 2000], "queues")


@test
def nothing_to_observe():
    "without the right and without queues a command runs, and pem reports that it observed nothing"
    if not USER:
        skip("only root can become another user")
    need_reach()
    rc, out, err = run([*USER, PEM, "rates", "--", "sh", "-c", "echo ran | cat"], env={"PEM_RUNTIME_DIR": None})
    equal((rc, out), (2, "ran\n"), "status and output: " + err)
    assert "no queue of pem/stream.h was found either" in err, err


run_all()
