# SPDX-License-Identifier: MIT
"""spec_import_pfm: pem spec import --pfm makes specs of libpfm4's counters that check, and that pem can list"""
import json
import os
import xml.etree.ElementTree as xml

from tap import CODEGEN, PEM, equal, run, run_all, skip, test, tmp


def imported(pattern):
    """The file that an import makes, after checking that it is without errors."""
    path = os.path.join(tmp(), "imported.xml")
    rc, out, err = run([PEM, "spec", "import", "--pfm", pattern, "-o", path])
    if rc == 2:
        skip(err.strip())
    equal((rc, out, err), (0, "", ""), "import of " + pattern)
    rc, out, err = run([CODEGEN, "--check", path])
    equal((rc, [line for line in err.splitlines() if " error: " in line]), (0, []), "check of " + pattern)
    return path


def sources(path):
    return [s.get("name") for s in xml.parse(path).getroot().iter("source")]


@test
def faults_are_imported():
    "a pattern over unit and event makes one counter of each"
    path = imported("perf::*-FAULTS")
    equal(sorted(sources(path)), ["perf::MAJOR-FAULTS", "perf::MINOR-FAULTS", "perf::PAGE-FAULTS"], "sources")
    event = xml.parse(path).getroot().find("event")
    equal((event.find("layerId").get("value"), event.find("meaning").get("value"), event.get("level")),
          ("HW", "counter", "detail"), "event")
    equal([dict(f.attrib) for f in event.iter("field")], [{"name": "value", "type": "uint64", "role": "value"}], "fields")


@test
def unit_masks_are_imported():
    "an event that needs a unit mask becomes one counter for each of its masks; one can be named alone"
    names = sources(imported("perf::PERF_COUNT_HW_CACHE_DTLB"))
    assert "perf::PERF_COUNT_HW_CACHE_DTLB:READ" in names, names
    equal(sources(imported("perf::PERF_COUNT_HW_CACHE_DTLB:READ")), ["perf::PERF_COUNT_HW_CACHE_DTLB:READ"], "sources")


@test
def whole_units_are_imported():
    "all counters of a unit make a spec without errors, names that collide told apart"
    path = imported("perf::PERF_COUNT*")
    names = [e.get("name") for e in xml.parse(path).getroot().iter("event")]
    assert len(names) > 40 and len(names) == len(set(names)), len(names)


@test
def imported_counters_can_be_listed():
    "an imported spec is found by pem list, and its software counters are here or said why not"
    path = imported("perf::PAGE-FAULTS")
    rc, out, err = run([PEM, "list", "--json", "HW::Perf::PageFaults"], env={"PEM_SPEC_PATH": os.path.dirname(path)})
    equal(rc, 0, "pem list, which said: " + err)
    listed = json.loads(out)
    equal([(e["name"], e["sources"]) for e in listed], [("HW::Perf::PageFaults", ["perf::PAGE-FAULTS"])], "event")
    equal(listed[0]["available"], listed[0]["reason"] == "", "a reason where it is not here")


@test
def what_is_not_there_is_said():
    "a pattern that names nothing, and one that names too much, say so and write nothing"
    for pattern, words in (("nosuch::*", "nosuch::*"), ("*", "name fewer")):
        path = os.path.join(tmp(), "none.xml")
        rc, out, err = run([PEM, "spec", "import", "--pfm", pattern, "-o", path])
        if rc == 2:
            skip(err.strip())
        if pattern == "*" and rc == 0:
            continue  # a libpfm4 of few processors
        equal((rc, out, os.path.exists(path)), (1, "", False), pattern)
        assert words in err, err


run_all()
