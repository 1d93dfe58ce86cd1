# SPDX-License-Identifier: MIT
"""probing: recordings of tracepoints and probes, for tests/e2e/probe_*.py"""
import csv
import functools
import json
import os

from tap import PEM, ROOT, equal, run, skip, tmp

PROBED = os.path.join(os.environ.get("B", os.path.join(ROOT, "build")), "programs", "probed")


@functools.lru_cache(None)
def missing(event):
    """Why an event of the kernel's can't be had here; None: it can. Asked once, for it takes an emulated machine long."""
    rc, out, err = run([PEM, "list", "--json", event])
    equal(rc, 0, "status of list: " + err)
    told, = json.loads(out)
    return None if told["available"] else told["reason"]


def here(event="OS::Sched::Switch"):
    """Skip unless the kernel layer, or this event of it, can be had."""
    if missing(event):
        skip(missing(event))


def paths_here():
    """Skip in a chroot, where the kernel's paths begin with the folder that / is."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        if not any(line.split()[4] == "/" for line in mounts):
            skip("/ is no mount point here, and the kernel's paths begin above it")


def record(events, *command, options=()):
    """Record events of a command: the trace's folder, and what the command printed."""
    trace = os.path.join(tmp(), "trace")
    rc, out, err = run([PEM, "record", "-q", "-o", trace, "-e", events, *options, "--", *command])
    said = [line for line in err.splitlines() if "does not count the events that it passes over" not in line]
    equal((rc, said), (0, []), "record of " + events)
    return trace, out


def rows(trace, name):
    """The fields of an event's records, as text by name, in order of time; what all are balanced with has been checked."""
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report: " + err)
    balance = json.loads(out)["events"]
    equal(balance["produced"], sum(balance[k] for k in ("delivered", "discarded", "overwritten")), "produced")
    table = os.path.join(tmp(), "table.csv")
    rc, _, err = run([PEM, "export", "--to", "csv", trace, "-o", table])
    equal(rc, 0, "status of export: " + err)
    with open(table, newline="", encoding="utf-8") as text:
        return [dict(row) for row in csv.DictReader(text) if row["event"] == name]


def can_attach(events, *words):
    """Skip with the reason if the kernel will not have these events here, and that reason has one of the words in it."""
    trace = os.path.join(tmp(), "try")
    rc, _, err = run([PEM, "record", "-o", trace, "-e", events, "--", "true"])
    for line in err.splitlines():
        if any(word in line for word in words):
            skip(line.replace("pem: ", "", 1))
    equal(rc, 0, "record of %s: %s" % (events, err))
