# SPDX-License-Identifier: MIT
"""diff: pem diff finds what was changed in a program of known truth, and nothing between equal runs"""
import json
import os

from tap import BUILD, PEM, ROOT, equal, run, run_all, skip, test, tmp

ROUNDS = BUILD + "/programs/rounds"
ENV = {"PEM_SPEC_PATH": ROOT + "/tests/programs/rounds.xml"}
EVENTS = "APP::Rounds::*"


def record(name, rounds, seed, *more, events=EVENTS, options=()):
    trace = os.path.join(tmp(), name)
    rc, _, err = run([PEM, "record", "-q", "--no-libc", "-e", events, "-o", trace, *options, "--", ROUNDS, str(rounds), str(seed), *more],
                     env=ENV)
    equal(rc, 0, err)
    return trace


def diff(*words, status=0):
    rc, out, err = run([PEM, "diff", "--json", *words])
    equal(rc, status, err)
    return json.loads(out)


def rows(result):
    return {m["metric"]: m for m in result["metrics"]}


def sides(rounds_a, rounds_b, count=3):
    return ([record("a%d-%d" % (rounds_a, i), rounds_a, i) for i in range(count)] + ["--"] +
            [record("b%d-%d" % (rounds_b, i), rounds_b, 10 + i) for i in range(count)])


@test
def more_rounds_are_found():
    "three runs of 60 rounds and three of 90: what comes once a round comes half as often again"
    result = diff(*sides(60, 90))
    found = rows(result)
    for name in "APP::Rounds::Begin", "APP::Rounds::End", "APP::Rounds::Noise":
        equal(found[name]["verdict"], "differs", name)
        assert abs(found[name]["change"] - 0.5) < 1e-9, found[name]
        assert found[name]["low"] < 0.5 < found[name]["high"], found[name]
    equal((found["APP::Rounds::Begin"]["a"], found["APP::Rounds::Begin"]["b"]), (180, 270), "each run's count")
    equal((result["amounts"], result["confidence"]), ("each-run", "between-runs"), "how")
    equal(found["APP::Rounds::Noise value"]["verdict"], "alike", "numbers by chance")
    equal(found["run time"]["unit"], "ns", "run time")


@test
def equal_runs_do_not_differ():
    "of runs that differ by chance alone, alone or three on each side, at most one comparison in ten finds a difference"
    traces = [record("equal%d" % i, 60, 100 + i) for i in range(12)]
    results = [diff(traces[i], traces[i + 1]) for i in range(0, 12, 2)]
    results += [diff(*traces[i:i + 3], "--", *traces[i + 3:i + 6]) for i in (0, 6)]
    results += [diff(*traces[i:i + 6:2], "--", *traces[i + 1:i + 6:2]) for i in (0, 6)]
    # Times are left out: they differ where the machine is busy with something else.
    false = [m for r in results for m in r["metrics"] if m["verdict"] == "differs" and m["unit"] != "ns"]
    assert len(false) <= 1, false
    equal(len(results), 10, "comparisons")


@test
def a_trace_is_equal_to_itself():
    "a trace beside itself has no change, and times of whole runs without a judgement"
    trace = record("a60-0", 60, 0)
    found = rows(diff(trace, trace))
    equal({m["change"] for m in found.values()}, {0.0}, "changes")
    equal({n for n, m in found.items() if m["verdict"] == "differs"}, set(), "differences")
    equal(found["run time"]["verdict"], "unknown", "run time of one run each")


@test
def large_pages_have_fewer_faults():
    "three runs with small and three with large pages: most page faults are gone"
    _, out, _ = run([PEM, "list", "OS::Mem::PageFault", "--json"])
    for e in json.loads(out):
        if not e["available"]:
            skip(e["reason"])
    with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as file:
        if "[never]" in file.read():
            skip("the kernel gives no transparent huge pages")
    events = EVENTS + ",OS::Mem::PageFault"
    small = [record("small%d" % i, 30, i, events=events) for i in range(3)]
    large = [record("large%d" % i, 30, i, "large", events=events) for i in range(3)]
    faults = rows(diff(*small, "--", *large))["OS::Mem::PageFault"]
    equal(faults["verdict"], "differs", faults)
    assert faults["change"] < -0.8 and faults["high"] < -0.5, faults


@test
def limits_have_a_status():
    "--fail-above and --fail-below end with 5 beyond their limits only, and name the metric"
    both = sides(6, 9)
    for options, status in ((["--fail-above", "40%"], 5), (["--fail-above", "60%"], 0), (["--fail-below", "1%"], 0)):
        rc, _, err = run([PEM, "diff", "--only", "Rounds::Begin", *options, *both])
        equal(rc, status, err)
        equal("differs by more" in err, status == 5, err)
    there = both.index("--")
    back = both[there + 1:] + ["--"] + both[:there]
    equal(run([PEM, "diff", "--only", "Rounds::Begin", "--fail-below", "30%", *back])[0], 5, "status of fewer")
    # A time of one run on each side is unknown, so that it is beyond no limit.
    equal(run([PEM, "diff", "--only", "run time", "--fail-above", "1%", both[0], both[-1]])[0], 0, "status of the unknown")


@test
def a_metric_is_new():
    "an event that comes on one side alone, and was recorded on both, is new; one that was not recorded is left out"
    found = diff(record("none", 0, 1), record("a6-0", 6, 0))
    begin = rows(found)["APP::Rounds::Begin"]
    equal((begin["a"], begin["change"]), (0.0, None), begin)
    result = diff(record("begins", 6, 1, events="APP::Rounds::Begin"), record("a6-0", 6, 0))
    assert "APP::Rounds::Tick" not in rows(result) and result["one_sided"] > 0, result


@test
def a_predicate_makes_a_part():
    "events that one side recorded with a predicate are not compared"
    part = record("part", 60, 0, events="APP::Rounds::Noise where value > 500")
    result = diff(part, record("a60-0", 60, 0))
    assert "APP::Rounds::Noise" not in rows(result) and result["partial"] > 0, result


@test
def what_was_overwritten_is_no_zero():
    "the windows that a flight recorder lost do not count as seconds without ticks"
    _, out, _ = run([PEM, "list", "OS::Syscall::Exit", "--json"])
    for e in json.loads(out):
        if not e["available"]:
            skip(e["reason"])
    # The kernel's events reach further back than the program's.
    events = EVENTS + ",OS::Syscall::*"
    whole = record("whole", 150, 1, events=events)
    last = record("last", 600, 2, events=events, options=["--overwrite", "--buffer", "64K"])
    result = diff(whole, last)
    equal(result["amounts"], "each-second", "amounts")
    equal(result["a"][0]["lost_windows"], 0, "windows lost of the whole one")
    b = result["b"][0]
    assert b["windows"] / 10 < b["lost_windows"] < b["windows"], b
    tick = rows(result)["APP::Rounds::Tick"]
    # The programs' speeds differ by a part where the machine is busy. Windows without ticks would be most of them.
    assert tick["b"] > 0.2 * tick["a"], tick
    assert "run time" not in rows(result), "a flight recorder has no whole run"


@test
def what_calls_return_is_no_metric():
    "results of system calls, among which are addresses, are neither summed nor compared"
    folder = tmp()
    rc, _, err = run([PEM, "record", "-q", "-e", "OS::Syscall::*", "-o", folder + "/t", "--", "true"])
    if rc == 2:
        skip("this user may not observe the kernel: " + err)
    gaps = json.loads(run([PEM, "report", "--json", folder + "/t"])[1])["gaps"]
    if gaps:
        skip("the kernel can't be observed here: " + gaps[0]["reason"])
    rc, out, err = run([PEM, "diff", "--all", folder + "/t", folder + "/t"])
    equal(rc, 0, "status: " + err)
    assert "OS::Syscall::Exit " in out and "result" not in out, out


@test
def tables_fit():
    "what people read is at most 80 columns wide"
    both = sides(6, 9)
    for more in ([], ["--all"], ["--rates"]):
        rc, out, _ = run([PEM, "diff", *more, *both], env={"COLUMNS": "80"})
        equal(rc, 0, "status")
        assert "APP::Rounds::Begin" in out or more == ["--rates"], out
        equal([l for l in out.splitlines() if len(l) > 80 and "/" not in l], [], "long lines")


@test
def wrong_usage():
    "one trace, three without --, a limit that is no share, a folder that is no trace"
    trace = record("a6-0", 6, 0)
    for words in ([trace], [trace, trace, trace], ["--", trace], [trace, "--"], ["--fail-above", "x", trace, trace],
                  [trace, tmp() + "/none"]):
        rc, out, err = run([PEM, "diff", *words])
        equal((rc, out), (1, ""), words)
        assert err, words


run_all()
