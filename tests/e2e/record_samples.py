# SPDX-License-Identifier: MIT
"""record_samples: pem record -F, which says how often programs are sampled"""
import json
import os

import probing
from tap import PEM, equal, run, run_all, skip, test, tmp

SAMPLES = "HW::HWPerf::HPMsAndPC"
# So much CPU time, whatever else the machine does meanwhile.
WORK = "import time\nwhile time.process_time() < 0.4: pass"


def samples(*options, work=WORK):
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-o", trace, *options, "--", "python3", "-c", work])
    equal(rc, 0, "status (%s)" % err)
    told = json.loads(run([PEM, "report", "--json", trace])[1])
    found = [e["count"] for e in told["per_event"] if e["name"] == SAMPLES]
    if not found and any("sampl" in gap["reason"] or "perf" in gap["reason"] for gap in told["gaps"]):
        skip("no samples here: %s" % told["gaps"])
    return found[0] if found else 0, told


@test
def a_rate_of_ones_own():
    "-F 997 takes about five times the usual samples, by CPU time; and they balance"
    usual, _ = samples("-e", SAMPLES)
    often, told = samples("-F", "997", "-e", SAMPLES)
    assert 2.5 * usual < often < 10 * usual, (usual, often)
    equal(told["info"]["balanced"], True, "balanced: %s" % told["info"]["verdict"])


@test
def samples_beside_other_events():
    "-F adds samples to the events that -e names"
    probing.here()
    count, told = samples("-F", "500", "-e", "OS::Sched::Switch")
    assert count > 20, told["per_event"]
    assert any(e["name"] == "OS::Sched::Switch" for e in told["per_event"]), told["per_event"]


@test
def nothing_in_the_program():
    "samples, counters and kernel events alone put no library into the program, whatever pattern names them"
    for events in SAMPLES, "HW::HWPerf", "HW::*", "HW::*,OS::*":
        trace = os.path.join(tmp(), "trace")
        rc, out, err = run([PEM, "record", "-q", "-F", "99", "-e", events, "-o", trace, "--", "cat", "/proc/self/maps"])
        equal(rc, 0, "status (%s)" % err)
        equal([line for line in out.splitlines() if "pem" in line], [], "mapped with -e " + events)


@test
def a_rate_that_is_none():
    "a rate that is no number is refused; one above the kernel's limit is told with the limit, and the rest is recorded"
    for wrong in ("0", "x", "-5", "1000001", "1.5"):
        rc, _, err = run([PEM, "record", "-F", wrong, "-o", os.path.join(tmp(), "none"), "--", "true"])
        equal(rc, 1, "status of -F " + wrong)
        assert "no number of samples a second" in err, err
    with open("/proc/sys/kernel/perf_event_max_sample_rate", encoding="ascii") as limit:
        most = int(limit.read())
    if most >= 1000000:
        skip("this kernel allows any rate")
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-F", "1000000", "-e", "APP::Libc::Malloc", "-o", trace, "--", "ls", "/"])
    equal(rc, 0, "status (%s)" % err)
    assert "1000000 times a second" in err and str(most) in err, err
    told = json.loads(run([PEM, "report", "--json", trace])[1])
    assert any(e["name"] == "APP::Libc::Malloc" and e["count"] for e in told["per_event"]), told["per_event"]


run_all()
