# SPDX-License-Identifier: MIT
"""stat_counters: counters of the processor and of the kernel, asked for by the names that perf has for them"""
import json

from tap import PEM, equal, run, run_all, test


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
    found = counted("instructions,branch-misses,dtlb-misses,cs")
    equal(sorted(found), ["HW::HWPerf::BranchMisses", "HW::HWPerf::DataTLBMisses", "HW::HWPerf::Instructions",
                           "HW::Software::ContextSwitches"], "events")
    for event in found.values():
        assert event["available"] == ("count" in event) == ("sum" in event), event


@test
def a_name_that_nobody_has():
    "a misspelt counter is an error that says what is near"
    rc, _, err = run([PEM, "stat", "-e", "instuctions", "--", "true"])
    equal(rc, 1, "status")
    assert "no event matches 'instuctions'" in err and "HW::HWPerf::Instructions" in err, err


run_all()
