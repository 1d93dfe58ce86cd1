# SPDX-License-Identifier: MIT
"""stat_counters: counters of the processor and of the kernel, asked for by the names that perf has for them"""
import json
import os

from tap import PEM, equal, run, run_all, skip, test, tmp


def need_counters():
    """Skip unless this user may count in the kernel and by the processor."""
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as text:
        if os.geteuid() and int(text.read()) > 1:
            skip("kernel.perf_event_paranoid is above 1")


def counted(names):
    """Events by name that pem stat counts of a shell that starts two programs."""
    rc, out, err = run([PEM, "stat", "--json", "-q", "-e", names, "--", "sh", "-c", "true; /bin/true; /bin/true"])
    equal(rc, 0, "status (%s)" % err)
    return {event["name"]: event for event in json.loads(out)["events"]}


@test
def the_kernels_by_perfs_names():
    "page-faults, cs and task-clock are the kernel's counters, whatever their case and hyphens, and have values here"
    for names in ("page-faults,cs,task-clock", "Page_Faults,context-switches,TASK-CLOCK", "faults,cs,perf::TASK-CLOCK"):
        found = counted(names)
        equal(sorted(found), ["HW::Software::ContextSwitches", "HW::Software::PageFaults", "HW::Software::TaskClock"], names)
        assert found["HW::Software::PageFaults"].get("count", found["HW::Software::PageFaults"].get("value", 0)) > 50, found


@test
def the_processors_by_perfs_names():
    "a name that several events count is the usual one of them; a machine without counters says so and makes up no number"
    need_counters()
    found = counted("instructions,branch-misses,dtlb-misses,cs")
    equal(sorted(found), ["HW::HWPerf::BranchMisses", "HW::HWPerf::DataTLBMisses", "HW::HWPerf::Instructions",
                           "HW::Software::ContextSwitches"], "events")
    for event in found.values():
        assert event["available"] == ("count" in event) == ("sum" in event), event


@test
def names_of_no_spec():
    "a counter that libpfm4 names is counted, whether a spec describes it or not: page faults in the program and in the kernel make all"
    need_counters()
    found = counted("page-faults:u,page-faults:k,page-faults")
    equal(sorted(found), ["HW::Pmu::page_faults_k", "HW::Pmu::page_faults_u", "HW::Software::PageFaults"], "events")
    parts = [found["HW::Pmu::page_faults_" + part]["count"] for part in "uk"]
    equal(sum(parts), found["HW::Software::PageFaults"]["count"], "page faults of both, %r" % parts)
    assert parts[0] > 50 and parts[1] > 0, parts
    found = counted("cycles:k,instructions:u,cs")
    equal(sorted(found), ["HW::Pmu::cycles_k", "HW::Software::ContextSwitches", "HW::User::UserInstructions"], "events")
    # A tracepoint is libpfm4's, too, and stays one.
    rc, out, err = run([PEM, "list", "--json", "sched:sched_switch"])
    equal((rc, [event["name"] for event in json.loads(out)]), (0, ["OS::Sched::Switch"]), "a tracepoint (%s)" % err)


@test
def of_a_program_that_is_recorded():
    "a counter of no spec is in the trace with its name and value"
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "-e", "page-faults:u,page-faults", "--", "ls", "/"])
    equal(rc, 0, "status (%s)" % err)
    told = json.loads(run([PEM, "report", "--json", trace])[1])
    equal(sorted(event["name"] for event in told["per_event"]), ["HW::Pmu::page_faults_u", "HW::Software::PageFaults"], "events")
    equal(told["info"]["balanced"], True, "balanced")


@test
def short_words():
    "ipc stands for cycles and instructions, however often it is said"
    need_counters()
    found = counted(",".join(["ipc"] * 3000 + ["cs"]))
    equal(sorted(found), ["HW::HWPerf::Cycles", "HW::HWPerf::Instructions", "HW::Software::ContextSwitches"], "events")


@test
def a_name_that_nobody_has():
    "a misspelt counter is an error that says what is near"
    need_counters()
    rc, _, err = run([PEM, "stat", "-e", "instuctions", "--", "true"])
    equal(rc, 1, "status")
    assert "no event matches 'instuctions'" in err and "HW::HWPerf::Instructions" in err, err
    for name in ("page-faults:x", "no_such_counter", "cycles:", "cpu-clock:u", "cs:k"):
        rc, _, err = run([PEM, "stat", "-e", name, "--", "true"])
        equal(rc, 2 if name[-2:] in (":u", ":k") else 1, "status of " + name)
        assert name in err, err
    assert "without :u and :k" in err, err
    for name in ("cycles:pp", "PageFaults:u", "page-faults:G"):
        rc, _, err = run([PEM, "stat", "-e", name, "--", "true"])
        equal(rc, 1, "status of " + name)
        assert "of a counter there are" in err and "tracepoint" not in err, err


@test
def a_counter_has_no_least_and_most():
    "with a field or without one, a counter's value is its count, and has a unit"
    for more in ((), ("-f", "value")):
        rc, out, err = run([PEM, "stat", "-q", "--json", "-e", "page-faults", *more, "--", "true"])
        equal(rc, 0, "status (%s)" % err)
        event, = json.loads(out)["events"]
        equal((event["unit"], event["count"] == event["sum"] > 0, "min" in event, "mean" in event), ("faults", True, False, False), event)


@test
def nothing_is_preloaded_for_counters():
    "the command loads libpem where events of programs are counted, and not for those of the kernel and the processor alone"
    for names, loaded in (("page-faults", False), ("page-faults,OS::Process::Exec", False), ("page-faults,Malloc", True)):
        rc, out, err = run([PEM, "stat", "-q", "-o", os.path.join(tmp(), "out"), "-e", names, "--", "sh", "-c", "echo $LD_PRELOAD"])
        equal(rc, 0, "status (%s)" % err)
        equal("libpem" in out, loaded, "libpem is preloaded for %s: '%s'" % (names, out))


run_all()
