# SPDX-License-Identifier: MIT
"""rates_tbb: pem rates sees the threads at the ends of queues of oneTBB, by pem/stream_tbb.hpp"""
import os
import sys

from tap import BUILD, equal, run, run_all, test
from thread_rates import check, of_name, rates, slowest_is_named

TBB = os.path.join(BUILD, "programs", "tbb")
if not os.path.exists(BUILD + "/bin/pem-rates") or not os.path.exists(TBB):
    print("1..0 # SKIP pem rates or its test program was not built: json-c, libtbb-dev or g++ is missing")
    sys.exit(77)


@test
def stages_queues_and_bottleneck():
    "each thread is a stage with its items; the slowest one is named"
    found, err = slowest_is_named(lambda: rates(TBB, "400", "1", "50", "s2000", "50"))
    check(found, err, 1)  # and the item that ends the stream
    equal(sorted((q["name"], q["capacity"], q["items"]) for q in found["queues"] if q["name"] in ("q1", "q2")),
          [("q1", 30, 401), ("q2", 30, 401)], "queues")


@test
def an_end_that_threads_share():
    "an end that two threads use shows all of its items, and neither of the threads"
    found, _ = rates(TBB, "200", "2", "50", "s1500")
    queue, = [q for q in found["queues"] if q["name"] == "q1"]
    equal((queue["items"], queue["from"], queue["to"]), (202, ["s1"], []), "items, producer and consumers")
    equal([q["from"] for q in found["queues"] if q["name"] == "lent"], [[]], "producer of a queue that another thread used once before")
    assert all(s["rate_per_s"] is s["items"] is None for s in of_name(found, "s2")), found["stages"]


@test
def no_race_and_no_fault():
    "the queue works under sanitizers: threads, addresses, undefined behaviour"
    for program in TBB + "_address", TBB + "_thread":
        rc, _, err = run(["setarch", "-R", program, "300", "3", "5", "5", "5"], timeout=120, env={"ASAN_OPTIONS": "detect_leaks=0"})
        equal((rc, "WARNING: ThreadSanitizer" in err), (0, False), "status and races: " + err)


run_all()
