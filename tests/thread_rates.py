# SPDX-License-Identifier: MIT
"""
thread_rates: pem rates of programs whose stages are threads s1, s2 and so on, and report their own items

Not here: how near a rate is to the true one. No test asserts a time, so bench/streams_threads.py measures it.
"""
import json
import os
import re

from tap import OTHER_USER, PEM, equal, need_reach, run

USER = [*OTHER_USER] if os.geteuid() == 0 else []  # without rights: pipes are not observed, and nothing is lost


def rates(*command, user=True, status=0, env=None):
    """What pem rates --json prints of a command, and what pem and the command print to standard error."""
    if user:
        need_reach()
    rc, out, err = run([*(USER if user else []), PEM, "rates", "--json", "--", *command], timeout=300, env={"PEM_RUNTIME_DIR": None, **(env or {})})
    equal(rc, status, "status: " + err)
    return json.loads(out), err


def truth(err):
    """(pid, tid): (name, items) of each stage, as it reports itself."""
    return {(int(pid), int(tid)): (name, int(items)) for name, pid, tid, items in re.findall(r"^(s\d) (\d+) (\d+) (\d+) \d+$", err, re.M)}


def items_by_thread(stages):
    return {(stage["pid"], stage["tid"]): stage["items"] for stage in stages}


def of_name(found, name):
    """The stages of this name; with GStreamer, those that run the element."""
    return [stage for stage in found["stages"] if name in re.split("[+#]", stage["name"])]


def check(found, err, extra=0):
    """The stages are those of the program, with its items and extra ones; their times are all of their lives."""
    known = truth(err)
    equal({(s["pid"], s["tid"]) for name in ("s1", "s2", "s3") for s in of_name(found, name)}, set(known), "stages")
    for (pid, tid), (name, items) in known.items():
        stage, = [s for s in of_name(found, name) if (s["pid"], s["tid"]) == (pid, tid)]
        equal(stage["items"], items + extra, "items of " + stage["name"])
        parts = [stage[k] for k in ("running", "other_waits", "waiting_for_cpu", "blocked_in", "blocked_out", "unknown")]
        assert abs(sum(parts) - stage["lifetime"]) <= 0.02 * stage["lifetime"], stage
        assert stage["low"] is None or stage["low"] <= stage["rate_per_s"] <= stage["high"], stage
        assert sum(phase["items"] for phase in stage["phases"]) <= stage["items"], stage


def named(measure):
    """What measure() returns, found and err. Few readings, on a machine that is busy, may name no stage: it tries again."""
    found, err = measure()
    return (found, err) if found["bottleneck"] else measure()


def slowest_is_named(measure, slowest="s2"):
    """
    measure(): found and err of a pipeline of s1, s2 and s3, of which the slowest sleeps. The slowest is the bottleneck. Stages before
    it find no space, and stages after it no items.
    """
    found, err = named(measure)
    for name in ("s1", "s2", "s3"):
        stage, = of_name(found, name)
        if name == slowest:
            equal(found["bottleneck"], stage["name"], "bottleneck: %s" % found["stages"])
            assert stage["other_waits"] > 0, stage
        elif name < slowest:
            assert stage["blocked_out"] > stage["blocked_in"], stage
        else:
            assert stage["blocked_in"] > stage["blocked_out"], stage
    return found, err
