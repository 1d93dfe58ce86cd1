# SPDX-License-Identifier: MIT
"""
probe_trace.py - records the programs of tests/programs, and compares what they say they raised with the trace

Not here: tests. A program tells 'PID TID WHO COUNT' for each of its raisers (tests/programs/probe.h).
"""
import csv
import json
import os
import re
from collections import defaultdict

from tap import BUILD, PEM, equal, run

PROGRAMS = os.path.join(BUILD, "programs")
EVENT = "APP::Probe::Tick"


def program(name, *arguments):
    return [os.path.join(PROGRAMS, name)] + [str(a) for a in arguments]


def record_command(folder, command, *options):
    """The recording of a command's stubs into folder/trace, without those of its C library."""
    return [PEM, "record", "-q", "--no-libc", "-e", "APP", "-o", os.path.join(folder, "trace"), *options, "--"] + command


def record(folder, command, *options, status=0, **more):
    """Run a command recorded: (trace, what it told)."""
    rc, out, err = run(record_command(folder, command, *options), **more)
    equal(rc, status, "status of pem record (stderr: %s)" % err)
    return os.path.join(folder, "trace"), told(out)


def told(out):
    """{(pid, tid, who): count} of a program's output."""
    return {tuple(map(int, m.groups()[:3])): int(m[4]) for m in re.finditer(r"^(\d+) (\d+) (\d+) (\d+)$", out, re.M)}


def report(trace):
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of pem report (stderr: %s)" % err)
    return json.loads(out)


def served(trace):
    """
    Fail unless the kernel's events came by the path that PEM_TEST_SOURCE names, 'bpf' or 'module', if it is set. What the
    module lacks comes by BPF.
    """
    wanted = os.environ.get("PEM_TEST_SOURCE")
    if wanted:
        with open(trace + "/.pem/balance", encoding="utf-8") as text:
            # What threads did as the recording began comes by neither.
            told = {line.split("\t")[2] for line in text if line.startswith("producer\t0\t")} - {"threads"}
        assert (told == {"BPF"}) if wanted == "bpf" else ("module" in told), "paths of the kernel's events: %r" % told


def labels_of(trace):
    """{event: {field: (base, {label: value})}} of a trace's model, of fields that have labels."""
    found, event, field = defaultdict(dict), None, None
    with open(trace + "/.pem/model", encoding="utf-8") as text:
        for line in text:
            cells = line.rstrip("\n").split("\t")
            if cells[0] == "event":
                event = cells[2]
            elif cells[0] == "field":
                field = found[event][cells[1]] = (int(cells[4]), {})
            elif cells[0] == "label":
                value = int(cells[1], 16)
                field[1][cells[2]] = value - (1 << 64) if value >> 63 else value
    return {name: {f: known for f, known in fields.items() if known[1]} for name, fields in found.items()}


def number_of(cell, base, labels):
    """What stands behind 'read|write|0x40'; a number is left as it is."""
    if cell.lstrip("-")[:1].isdigit() and "|" not in cell:
        return cell
    value = sum(labels[part] if part in labels else int(part, 0) for part in cell.split("|"))
    return hex(value) if base == 16 else str(value)


def exported(trace):
    """The path of a trace's records as CSV."""
    path = trace + ".csv"
    rc, _, err = run([PEM, "export", "--to", "csv", "-o", path, trace])
    equal(rc, 0, "status of pem export (stderr: %s)" % err)
    return path


def rows(trace):
    """Every record of a trace as pem's reader has it, one dictionary each; numbers for labels."""
    with open(exported(trace), encoding="utf-8", newline="") as text:
        found = list(csv.DictReader(text))
    labels = labels_of(trace)
    for row in found:
        for field, (base, known) in labels.get(row["event"], {}).items():
            column = "field_" + field if "field_" + field in row else field
            if row[column]:
                row[column] = number_of(row[column], base, known)
    return found


def ticks(trace):
    """{(pid, tid, who): [numbers in order of time]} of a trace. Quicker than rows(): a trace may have a million."""
    found = defaultdict(list)
    with open(exported(trace), encoding="utf-8", newline="") as text:
        lines = csv.reader(text)
        columns = next(lines)
        # A trace without a record has no columns of fields.
        event, pid, tid, who, number = [name in columns and columns.index(name) for name in (
            "event", "pid", "tid", "who", "number")]
        for line in lines:
            equal(line[event], EVENT, "event")
            found[line[pid], line[tid], line[who]].append(int(line[number]))
    return {tuple(map(int, raiser)): numbers for raiser, numbers in found.items()}


def check_complete(trace, raised):
    """Every tick told is in the trace once, in order, and the balance says the same."""
    assert raised, "the program told nothing"
    found = ticks(trace)
    for raiser in raised:
        numbers = found.get(raiser, [])
        if numbers != list(range(1, raised[raiser] + 1)):
            raise AssertionError("raiser %r: %d ticks told, %d found: %r..." % (
                raiser, raised[raiser], len(numbers), numbers[:5]))
    equal(sorted(found), sorted(raised), "raisers")
    events = report(trace)["events"]
    total = sum(raised.values())
    equal(events, {"produced": total, "delivered": total, "discarded": 0, "overwritten": 0}, "balance")


def check_balance(trace, total):
    """The balance is that of so many ticks, whatever became of them; delivered is what the reader reads."""
    events = report(trace)["events"]
    equal(events["produced"], total, "produced")
    equal(events["delivered"] + events["discarded"] + events["overwritten"], total, "delivered and lost: %r" % events)
    equal(sum(map(len, ticks(trace).values())), events["delivered"], "records read")
    return events


def streams(trace):
    """Names of the user stream files."""
    return sorted(name for name in os.listdir(trace) if name.startswith("u_"))
