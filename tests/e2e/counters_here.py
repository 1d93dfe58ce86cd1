# SPDX-License-Identifier: MIT
"""counters_here: what this machine counts events as, and when, by pem list and by the library"""
import json
import os
import sys
import textwrap

from tap import BUILD, PEM, SAN, equal, run, run_all, skip, test, tmp


def listed(*words):
    rc, out, err = run([PEM, "list", "--json", *words])
    equal(rc, 0, "status (%s)" % err)
    return json.loads(out)


def python(body):
    """What Python prints that has pemapi."""
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    program = os.path.join(tmp(), "program.py")
    with open(program, "w", encoding="ascii") as out:
        out.write("import pemapi\n" + textwrap.dedent(body))
    rc, out, err = run([sys.executable, program], env={"PYTHONPATH": os.path.join(BUILD, "python"), "LD_LIBRARY_PATH": None})
    equal(rc, 0, "exit status, having said: " + err)
    return out


@test
def counters_of_the_kernel():
    "what the kernel counts is told by libpfm4's name, with the numbers of perf_event_open, and takes no counter of the processor"
    found = {event["specifier"]: event["countedAs"] for event in listed("Software")}
    for specifier, name, config in (("PageFaults", "perf::PAGE-FAULTS", "0x2"), ("ContextSwitches", "perf::CONTEXT-SWITCHES", "0x3"),
                                    ("TaskClock", "perf::TASK-CLOCK", "0x1")):
        as_told = found[specifier]
        equal([as_told[key] for key in ("name", "type", "config", "takesCounter", "turn")], [name, 1, config, False, 0], specifier)
    rc, out, err = run([PEM, "list", "-v", "PageFaults"])
    equal(rc, 0, "status (%s)" % err)
    assert "perf::PAGE-FAULTS: type 1, config 0x2" in " ".join(out.split()), out
    rc, out, err = run([PEM, "list", "Software"])
    equal(rc, 0, "status (%s)" % err)
    assert "COUNTED AS" in out and "counter of the processor" not in out, out


@test
def counters_of_the_processor():
    "cycles and instructions take a counter; they have turns where they can be counted, and it is said where they can't"
    found = {event["specifier"]: event for event in listed("HW::HWPerf::*") if "countedAs" in event}
    equal(sorted(found), ["BranchMisses", "CacheMisses", "Cycles", "DataTLBMisses", "Instructions"], "counters of the class")
    for name in ("Cycles", "Instructions"):
        as_told = found[name]["countedAs"]
        assert as_told["takesCounter"] is True and as_told["type"] == 0, as_told
        equal(as_told["turn"] > 0, found[name]["available"], "turn of an event that is %s" % found[name]["availability"])
    rc, out, err = run([PEM, "list", "HW::HWPerf::*"])
    equal(rc, 0, "status (%s)" % err)
    here = [event for event in found.values() if event["available"]]
    text = " ".join(out.split())
    if here:
        assert "%d of these take a counter of the processor each." % len(here) in text, out
    else:
        assert "5 of these take a counter of the processor, and this machine offers none." in text, out


@test
def topdown_stands_for_this_processor_s_counters():
    "-e topdown counts what libpfm4 knows here of the slots, or says with status 2 that it knows none"
    known = {event["name"] for event in listed("TopDown") if event.get("countedAs")}
    rc, out, err = run([PEM, "stat", "--json", "-q", "-e", "topdown", "--", "true"])
    if not known:
        equal(rc, 2, err)
        assert "topdown: libpfm4 knows this processor for none" in err, err
        return
    equal({event["name"] for event in json.loads(out)["events"]}, known | {"HW::HWPerf::Cycles"}, "events")
    equal(len({name.split("::")[2][:4] for name in known}), 1, "families of processors")


@test
def no_counters():
    "events that are no counters have no such column, and null for what no name is of this processor"
    rc, out, err = run([PEM, "list", "OS::Sched::*"])
    equal(rc, 0, "status (%s)" % err)
    assert "COUNTED AS" not in out, out
    assert all("countedAs" not in event for event in listed("OS::Sched::*")), "no counter"
    other = "Amd" if os.uname().machine == "aarch64" else "Arm"
    assert all(event["countedAs"] is None and not event["available"] for event in listed("HW::%s::*" % other)), other


@test
def by_the_library():
    "pemapi tells the same as pem list; a counter of the kernel has counted all of the time, and is no estimate"
    found = listed("HW::*")
    told = python("""
        with pemapi.Session() as session:
            events = session.events("HW::*")
            for event, turn in zip(events, session.counter_turns(events)):
                counted = session.counted_as(event)
                print(event.name, turn, counted and counted.name, counted and counted.takes_counter, sep="|")
            print(session.counter_turns([]))
        """).splitlines()
    equal(told.pop(), "[]", "turns of no events")
    expected = []
    for event in found:
        counted = event.get("countedAs")
        words = [event["name"], 0 if not counted else counted["turn"], counted and counted["name"], counted and counted["takesCounter"]]
        expected.append("|".join(str(word) for word in words))
    # Turns depend on the order in which events are asked for.
    turnless = [sorted(line.split("|")[0::2] for line in lines) for lines in (told, expected)]
    equal(turnless[0], turnless[1], "events")
    equal(sorted(line.split("|")[1] != "0" for line in told), sorted(line.split("|")[1] != "0" for line in expected), "with turns")
    equal(python("""
        with pemapi.Session() as session:
            stats = session.statistics(session.events("HW::Software::PageFaults"), None, pemapi.Context.this_process())
            with stats:
                data = bytearray(4000000)
                v, = stats.read()
            print(v.unavailable, v.enabled_ns > 0, v.enabled_ns == v.running_ns, v.error, v.together)
        """), "None True True 0.0 0\n", "output")


@test
def what_is_missing_has_its_reason():
    "pem stat --json says why an event can't be counted here, and the sentence says it once"
    rc, out, err = run([PEM, "stat", "--json", "-e", "instructions,page-faults", "--", "true"])
    equal(rc, 0, "status (%s)" % err)
    missing, there = json.loads(out)["events"]
    if missing["available"]:
        skip("this machine has counters")
    assert "performance monitoring unit" in missing["reason"], missing
    assert "reason" not in there and there["count"] > 0, there
    equal(err.count("counted"), 1, "how often the sentence says so: " + err)


run_all()
