# SPDX-License-Identifier: MIT
"""lab_counters: more counters than the emulated processor has: they take turns, and what is told of them is true"""
import functools
import json
import os
import re

import labs
from tap import equal, run_all, test, tmp

LIMIT_S = 300  # a fetch, and a build for another machine
LONG_S = 20
# The processor has seven counters. These take six of them, and count something else than the loop.
OTHERS = "HW::Arm::*Loads*,HW::Arm::*Stores*"
PAIRS = "UserInstructions,UserCycles,instructions,cycles"
# The two counters of a metric are asked for first and last.
MANY = "instructions,%s,UserInstructions,UserCycles,cycles" % OTHERS
MILLIONS = 200
# One boot: each object or text is behind its own line.
WORK = r"""
say() { echo; echo "== $1"; }
say list; pem list --json hw
say parts; pem stat -q --json -e cycles:k,cycles:u,cycles,arm_ac57::INST_RETIRED,instructions -- ./loop {few}
say alone; pem stat -q --json -e {pairs} -- ./loop {few}
say few; pem stat -q --json -e {pairs} -- ./loop
say many; pem stat -q --json -e '{many}' -- ./loop {millions}
say table; pem stat -q -o - -e '{many}' -- ./loop {millions}
say lines; pem stat -q --json -i 100 -e '{many}' -- ./loop {millions}
say short; pem stat --json -e 'HW::Arm::*' -- ./loop 2>said; say none; cat said
say trace; pem record -q -o /tmp/t -e '{many}' -- ./loop {millions}; pem report --json /tmp/t
say report; pem report /tmp/t
sed -i 's/^\(estimate=HW::HWPerf::Cycles.[0-9]*.[0-9]*.\)[0-9]*/\199/' /tmp/t/.pem/run
say apart; pem report /tmp/t; pem report --json /tmp/t
say lost; pem record -o /tmp/s -e 'HW::Arm::*' -- ./loop 2>/dev/null; pem report /tmp/s
say top; ./loop {millions} & pem top --once --json -i 300 -e '{many}' -p $!; kill $!
say end
"""


@functools.lru_cache(None)
def said():
    """What each part of the work printed, by its name."""
    folder = tmp()
    labs.program(folder)
    work = WORK.replace("{many}", MANY).replace("{pairs}", PAIRS).replace("{millions}", str(MILLIONS)).replace("{few}", "20")
    out, err = labs.pem_lab("--file", "../%s/./loop" % os.path.basename(folder), "stat", "-q", "-e", "cs", "--", "sh", "-c", work, cwd=folder)
    parts = re.split(r"^== (\w+)$", out.decode("utf-8", "replace"), flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2]))
    assert "end" in found, (out[-2000:], err[-2000:])
    return found


def objects(part):
    """The JSON objects in a part, among what the loop printed."""
    decoder, text = json.JSONDecoder(), said()[part]
    return [decoder.raw_decode(text[match.start():])[0] for match in re.finditer(r"^\{", text, re.MULTILINE)]


def counted(part):
    found = objects(part)
    equal(len(found), 1, "objects in " + said()[part])
    return {event["name"].rsplit("::", 1)[1]: event for event in found[0]["events"]}, found[0]


def truth():
    """The program's own instructions in the long run: those of a run that was not estimated, and two a round more."""
    few, _ = counted("alone")
    return few["UserInstructions"]["count"] + 2 * (MILLIONS - 20) * 1000000


@test
def counters_of_no_spec():
    "of names that libpfm4 has the kernel's and the program's cycles make all, and one event by two names counts the same"
    events, _ = counted("parts")
    equal(events["cycles_k"]["count"] + events["UserCycles"]["count"], events["Cycles"]["count"], "cycles %r" % events)
    equal(events["INST_RETIRED"]["count"], events["Instructions"]["count"], "instructions by two names")
    assert events["cycles_k"]["count"] > 10000, events


@test
def which_take_turns():
    "pem list tells what is counted together: each counter of the processor has a turn, and no turn more than there are counters"
    events = json.loads(said()["list"])
    turns = {}
    for event in events:
        counted_as = event.get("countedAs")
        if counted_as and counted_as["takesCounter"]:
            equal(counted_as["turn"] > 0, event["available"], "turn of " + event["name"])
            turns.setdefault(counted_as["turn"], []).append(event["specifier"])
            assert counted_as["counters"] >= 6, counted_as
    turns.pop(0, None)
    equal(sorted(turns), list(range(1, len(turns) + 1)), "turns")
    assert len(turns) > 3 and max(len(names) for names in turns.values()) <= 7, turns
    names = {event["specifier"]: event["countedAs"]["name"] for event in events if event.get("countedAs")}
    equal((names["Cycles"], names["UserCycles"], names["SupervisorCalls"]),
          ("perf::CYCLES", "perf::CYCLES:u", "arm_ac57::EXCEPTION_SVC"), "what is counted")


@test
def a_group_is_exact():
    "cycles and instructions, with and without the kernel, are counted at the same times: all of it, in a proportion known"
    for part in ("alone", "few"):
        events, told = counted(part)
        for event in events.values():
            assert "estimate" not in event and event["count"] > 0, event
        equal(events["Cycles"]["count"], 2 * events["Instructions"]["count"], "cycles of 1 ns, at two an instruction")
        equal(events["UserCycles"]["count"], 2 * events["UserInstructions"]["count"], "those of the program")
        equal([m["value"] for m in told["metrics"]], [2.0], "metrics")
        assert all("estimate" not in metric for metric in told["metrics"]), told["metrics"]
    few = counted("few")[0]["UserInstructions"]["count"]
    assert 0 < counted("alone")[0]["UserInstructions"]["count"] - few - 2 * (20 * 1000000 - 1) < 1000, few


@test
def an_estimate_is_within_its_error():
    "with more counters than there are, each is marked, with the share of its time, and the truth is within twice its error"
    events, told = counted("many")
    for name in ("UserInstructions", "UserCycles", "Instructions", "Cycles"):
        event = events[name]
        assert event["estimate"] is True and 0.2 < event["counted_share"] < 0.8, event
        assert 0 < event["error"] < 0.02 * event["count"], event
    for name, value in (("UserInstructions", truth()), ("UserCycles", 2 * truth())):
        # The error is of 95 %: one number in twenty is further off.
        assert abs(events[name]["count"] - value) <= 2 * events[name]["error"], (value, events[name])
    times = [(events[name]["enabled_ns"], events[name]["running_ns"]) for name in events if "enabled_ns" in events[name]]
    assert len(set(times)) > 1, times
    equal(*[[events[name][key] for key in ("enabled_ns", "running_ns")] for name in ("Cycles", "Instructions")], "their times")
    assert abs(events["Cycles"]["count"] / events["Instructions"]["count"] - 2) < 1e-7, events
    metric, = told["metrics"]
    equal((metric["estimate"], metric["same_times"]), (True, True), "the metric")
    assert abs(metric["value"] - 2) < 1e-7, metric


@test
def tables_and_lines_say_so():
    "the table has a ~, share and error; an interval's counts too, which together are about the whole"
    table = said()["table"]
    assert re.search(r"UserInstructions +~[\d,]+ instructions .*\d\.\d %.*\+-\d", table), table
    assert "~ is an estimate" in table and "(estimated)" in table, table
    lines = objects("lines")
    whole = {event["name"]: event for event in lines.pop()["events"]}["HW::User::UserInstructions"]
    total = 0
    for line in lines:
        for event in line["events"]:
            if event["name"] == "HW::User::UserInstructions":
                assert event["estimate"] is True and 0 < event["counted_share"] < 1, event
                assert event["error"] is None or event["error"] > 0, event
                total += event["count"]
    assert len(lines) > 5 and abs(total - whole["count"]) <= 0.05 * whole["count"], (total, whole)


@test
def what_never_had_a_turn_has_no_number():
    "a program shorter than the turns: those counted have numbers, the others none, and a sentence says why"
    events, _ = counted("short")
    had = [event for event in events.values() if "count" in event]
    none = [event for event in events.values() if "count" not in event]
    assert had and none, events
    for event in none:
        equal((event["available"], "sum" in event), (False, False), event["name"])
    for part in ("none", "lost"):
        text = " ".join(said()[part].split())
        assert "the hardware counters were others' all the time" in text, text
    assert re.search(r"HW::Arm::\w+, HW::Arm::\w+ and \d+ others: ", " ".join(said()["lost"].split())), said()["lost"]


@test
def a_trace_says_so():
    "report of a trace: the same marks, for the last value"
    told = objects("trace")[0]
    events = {event["name"].rsplit("::", 1)[1]: event for event in told["per_event"]}
    event = events["UserInstructions"]
    assert event["estimate"] is True and abs(event["last"] - truth()) <= 2 * event["error"], (truth(), event)
    equal([(metric["estimate"], metric["same_times"]) for metric in told["metrics"]], [(True, True)], "metrics")
    assert abs(events["Cycles"]["last"] / events["Instructions"]["last"] - 2) < 1e-6, events["Cycles"]
    text = said()["report"]
    assert re.search(r"UserInstructions .*reached ~[\d,]+ instructions \(\d+\.\d %, error \+-", text), text
    assert "~ is an estimate" in text, text


@test
def top_says_so():
    "pem top marks the counters that take turns"
    events = objects("top")[0]["events"]
    marked = [event["name"] for event in events if event.get("estimate")]
    assert "HW::User::UserInstructions" in marked, events


@test
def counters_apart_are_told():
    "a metric of two counters of different groups says that they were not counted at the same times"
    assert "not counted at the same times" not in said()["report"]
    assert "(estimated: not counted at the same times)" in said()["apart"], said()["apart"]
    equal([metric["same_times"] for metric in objects("apart")[0]["metrics"]], [False], "same_times")


run_all()
