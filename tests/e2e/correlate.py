# SPDX-License-Identifier: MIT
"""correlate: pem report --correlate finds what a program of known truth does, and claims nothing else"""
import json
import os

from tap import BUILD, PEM, ROOT, equal, run, run_all, skip, test, tmp

ROUNDS = BUILD + "/programs/rounds"
ENV = {"PEM_SPEC_PATH": ROOT + "/tests/programs/rounds.xml"}


def record(name, rounds, seed=1, events="APP::Rounds::*", *options):
    trace = os.path.join(tmp(), name)
    rc, _, err = run([PEM, "record", "-q", "--no-libc", "-e", events, "-o", trace, *options, "--", ROUNDS, str(rounds), str(seed)],
                     env=ENV)
    equal(rc, 0, err)
    return trace


def correlate(trace, *options):
    rc, out, err = run([PEM, "report", "--correlate", "--json", *options, trace])
    equal((rc, err), (0, ""), "status")
    return json.loads(out)


def target(result, name):
    return next(t for t in result["targets"] if t["metric"] == name)


def relation(result, of, metric):
    return next(r for r in target(result, of)["relations"] if r["metric"] == metric)


def needs(event):
    _, out, _ = run([PEM, "list", event, "--json"])
    for e in json.loads(out):
        if not e["available"]:
            skip(e["reason"])


@test
def what_a_phase_is_made_of():
    "ticks rise with the phase that ticks; spared pages fall where touched ones rise; chance is no relation"
    result = correlate(record("known", 200))
    ticks = relation(result, "duration of compute", "APP::Rounds::Tick")
    equal(ticks["verdict"], "with", ticks)
    assert ticks["ranks"] > 0.4 and ticks["q"] < 0.001, ticks  # time of a busy machine is in the duration, too
    spared = relation(result, "duration of touch", "APP::Rounds::Spared")
    equal(spared["verdict"], "against", spared)
    assert spared["ranks"] < -0.4, spared
    equal(target(result, "duration of compute")["count"], 200, "instances")
    assert abs(target(result, "duration of sleep")["mean"]) > 300000, "a sleep is no shorter than it says"


@test
def page_faults_drive_a_phase():
    "page faults of the kernel rise and fall with the phase that touches memory"
    needs("OS::Mem::PageFault")
    result = correlate(record("faults", 200, 2, "APP::Rounds::*,OS::Mem::PageFault"))
    faults = relation(result, "duration of touch", "OS::Mem::PageFault")
    equal(faults["verdict"], "with", faults)
    equal(relation(result, "duration of touch", "APP::Rounds::Spared")["verdict"], "against", "spared")


@test
def chance_is_no_relation():
    "of numbers by chance, with all phases of 10 runs, at most one in ten is taken for a relation"
    claims = tried = 0
    for seed in range(10):
        result = correlate(record("chance%d" % seed, 60, seed), "--with", "Noise value")
        for r in target(result, "APP::Rounds::Noise value")["relations"]:
            tried += 1
            claims += r["verdict"] != "none"
    assert tried >= 30, tried
    assert claims <= tried / 10, "%d of %d" % (claims, tried)


@test
def too_short_to_tell():
    "a trace with few instances makes no claim, and says so in words and in JSON"
    trace = record("short", 5)
    result = correlate(trace, "--with", "duration of touch")
    equal(target(result, "duration of touch")["too_short"], True, "too_short")
    equal({r["verdict"] for r in target(result, "duration of touch")["relations"]} - {"too-short"}, set(), "verdicts")
    rc, out, _ = run([PEM, "report", "--correlate", "--with", "duration of touch", trace])
    equal(rc, 0, "status")
    assert "Too short to tell" in out, out
    equal(correlate(trace)["targets"], [], "targets by themselves")


@test
def tables_fit():
    "what people read is at most 80 columns wide"
    rc, out, _ = run([PEM, "report", "--correlate", record("wide", 60)], env={"COLUMNS": "80"})
    equal(rc, 0, "status")
    assert "What goes with the duration of touch" in out and "moves against it" in out, out
    equal([l for l in out.splitlines() if len(l) > 80 and "/" not in l], [], "long lines")


@test
def wrong_usage():
    "--with needs --correlate and a metric that there is; --by is another report"
    trace = record("usage", 3)
    for options, word in ((["--with", "x"], "--correlate"), (["--correlate", "--by", "event"], "choose one"),
                          (["--correlate", "--with", "no such"], "no metric")):
        rc, out, err = run([PEM, "report", *options, trace])
        equal((rc, out), (1, ""), options)
        assert word in err, err
    rc, _, err = run([PEM, "report", "--correlate", tmp() + "/none"])
    equal(rc, 1, err)


run_all()
