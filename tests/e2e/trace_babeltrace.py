# SPDX-License-Identifier: MIT
"""
trace_babeltrace.py - babeltrace2 reads our traces without a word of complaint, and sees what pem's reader sees

Every record of a trace is compared field by field: babeltrace2's text against pem export's CSV, and for the program
types, whose values are known (tests/programs/types.c), both against what was sent.
"""
import os
import re
import struct
from collections import Counter

import probing
from probe_trace import program, record, report, rows
from tap import PEM, equal, need, run, run_all, test, tmp

LINE = re.compile(r"\[(\d+)\] \(\S+\) \S+ (\S+): \{ (.*?) \}, \{ (.*) \}", re.S)
FIELD = re.compile(r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|\[ (.*?)\]|\( .*? : container = (\S+) \)|([^,\s]+))(?:, |$)', re.S)
ELEMENT = re.compile(r"\[\d+\] = ([^,\s]+)")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f", "a": "\a", "b": "\b", "e": "\033"}
COLUMNS = ("clock", "time_ns", "layer", "event", "pid", "tid", "cpu", "process", "process_start_ns", "thread_start_ns")
NO_CPU = 0xFFFFFFFF


def parse(text):
    """{name: str, number as text, or list of those} of a structure in babeltrace2's pretty form."""
    fields, at = {}, 0
    while at < len(text):
        m = FIELD.match(text, at)
        assert m, "cannot read babeltrace2's text from here: " + text[at:at + 80]
        name, string, elements, labelled, number = m.groups()
        if string is not None:
            fields[name] = re.sub(r"\\(.)", lambda e: ESCAPES.get(e[1], e[1]), string)
        elif elements is not None:
            fields[name] = ELEMENT.findall(elements)
        else:
            fields[name] = (labelled or number,)
        at = m.end()
    return fields


def babeltrace(trace):
    """[(clock, event, context, fields)] as babeltrace2 has them; it must not complain."""
    need("babeltrace2")
    rc, out, err = run(["babeltrace2", "--clock-cycles", trace])
    equal((rc, err), (0, ""), "babeltrace2's status and complaints")
    found = [LINE.fullmatch(line) for line in out.splitlines()]
    assert all(found), "a line of babeltrace2 has another form"
    return [(int(m[1]), m[2], parse(m[3]), parse(m[4])) for m in found]


def same(theirs, ours):
    """Is a value in babeltrace2's text that of a CSV cell?"""
    if isinstance(theirs, str):
        # A process may be called \x1b[31m: a cell has such bytes as numbers.
        return theirs == re.sub(rb"\\x([0-9a-f]{2})", lambda e: bytes([int(e[1], 16)]), ours.encode()).decode("utf-8", "replace")
    if isinstance(theirs, list):
        ours = ours.split(" ") if ours else []
        return len(theirs) == len(ours) and all(same((t,), o) for t, o in zip(theirs, ours))
    if re.fullmatch(r"-?(0x[0-9A-Fa-f]+|\d+)", theirs[0]) and re.fullmatch(r"-?(0x[0-9A-Fa-f]+|\d+)", ours):
        return int(theirs[0], 0) == int(ours, 0)
    return theirs[0] == "%g" % float(ours)  # babeltrace2 writes floats with six digits


def check_fields(name, fields, row):
    lists = {key: value for key, value in fields.items() if isinstance(value, list)}
    for key, value in fields.items():
        if key.endswith("_length") and key[:-7] in lists:
            equal(int(value[0]), len(lists[key[:-7]]), key)
            continue
        cell = row.pop("field_" + key if key in COLUMNS else key)
        assert same(value, cell), "%s.%s: babeltrace2 has %r, pem %r" % (name, key, value, cell)
    rest = {key: cell for key, cell in row.items() if key not in COLUMNS and cell}
    assert not rest, "%s has more in pem than in babeltrace2: %r" % (name, rest)


def check_context(name, context, row):
    if context["source"] == ("0",):
        equal((row["pid"], row["tid"]), (context["pid"][0], context["tid"][0]), name + "'s process and thread")
    if int(context["cpu"][0]) != NO_CPU:
        equal(row["cpu"], context["cpu"][0], name + "'s cpu")


def compare(trace):
    """Compare every record. Returns pem's rows."""
    theirs, ours = babeltrace(trace), rows(trace)
    equal(len(theirs), len(ours), "records")
    kept = [dict(row) for row in ours]
    # Records of one moment may be ordered otherwise: by all that both know of them.
    theirs.sort(key=lambda r: (r[0], r[1], r[2]["cpu"][0], r[2]["tid"][0] if r[2]["cpu"] == (str(NO_CPU),) else ""))
    for row in ours:
        row["order"] = (int(row["clock"]), row["event"], row["cpu"] or str(NO_CPU), "" if row["cpu"] else row["tid"])
    ours.sort(key=lambda row: row["order"])
    for (clock, name, context, fields), row in zip(theirs, ours):
        del row["order"]
        equal((int(row["clock"]), row["event"]), (clock, name), "clock and event")
        check_context(name, context, row)
        check_fields(name, fields, row)
    check_counts(theirs, report(trace))
    return kept


def check_counts(theirs, said):
    equal(len(theirs), said["events"]["delivered"], "records read by babeltrace2, and delivered")
    counts = Counter(name for _, name, _, _ in theirs)
    equal({e["name"]: e["count"] + e.get("markers", 0) for e in said["per_event"] if e["count"]}, dict(counts), "records of each event")


@test
def sqlite():
    "sqlite3 with every event: each record is the same in babeltrace2 and in pem"
    need("sqlite3")
    folder = tmp()
    script = ("create table t(i integer primary key, x text);"
              "with recursive c(i) as (select 1 union all select i + 1 from c where i < 3000)"
              " insert into t select i, hex(randomblob(8)) from c; select count(*), max(x) > '' from t order by x;")
    rc, out, err = run([PEM, "record", "-q", "-o", folder + "/t", "--", "sqlite3", folder + "/db", script])
    equal((rc, out), (0, "3000|1\n"), "status and output (stderr: %s)" % err)
    seen = compare(folder + "/t")
    events = {row["event"] for row in seen}
    assert "APP::Libc::Malloc" in events, "events: %r" % events
    if not probing.missing("OS::Sched::Switch"):
        assert {"OS::Mem::PageFault", "OS::Syscall::Enter", "OS::Process::Exec"} <= events, "events: %r" % events


@test
def python_with_threads():
    "threads and child processes of a script: each record is the same in babeltrace2 and in pem"
    folder = tmp()
    script = ("import threading, subprocess\n"
              "def work():\n    sum(len(str(i)) for i in range(300))\n"
              "ts = [threading.Thread(target=work) for _ in range(4)]\n"
              "[t.start() for t in ts]; [t.join() for t in ts]\nsubprocess.run(['ls', '/'], stdout=subprocess.DEVNULL)\n")
    rc, _, err = run([PEM, "record", "-q", "-e", "APP,OS::Sched::*,OS::Process::*,HW::Software::*", "-o", folder + "/t",
                      "--", "/usr/bin/python3", "-S", "-E", "-c", script])
    equal(rc, 0, "status (stderr: %s)" % err)
    seen = compare(folder + "/t")
    users = {(row["pid"], row["tid"]) for row in seen if row["layer"] == "APP"}
    assert len(users) >= 6, "threads with events: %r" % users


@test
def losses():
    "a trace with losses: babeltrace2 reads what is there, and says how much is not"
    need("babeltrace2")
    command = ["sh", "-c", "kill -STOP $PPID; '%s' short 2000 12; kill -CONT $PPID" % program("threads")[0]]
    trace, raised = record(tmp(), command, "--buffer", "64K")
    events = report(trace)["events"]
    equal(events["produced"], sum(raised.values()), "produced")
    assert events["discarded"], "nothing was lost"
    rc, out, err = run(["babeltrace2", "--clock-cycles", trace])
    equal((rc, len(out.splitlines())), (0, events["delivered"]), "status and records")
    said = sum(map(int, re.findall(r"Tracer discarded (\d+) events? ", err)))
    equal(said, events["discarded"], "discarded, as babeltrace2 adds it up from: " + err)


def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


INTEGERS = [(0,) * 8, (255, -32768, 65535, -128, 4294967295, -2 ** 63, -2 ** 31, 2 ** 64 - 1), (1, -2, 3, -4, 5, -6, -7, 8)]
HEXADECIMAL = [(0xAB, 0xABCD, 0xDEADBEEF, 0x0123456789ABCDEF), (0, 0, 0, 2 ** 64 - 1)]
FLOATS = [(0.0, 0.0), (-1.5, 0.1), (f32(3.40282346638528859811704183484516925e+38), 1.79769313486231570814527423731704357e+308),
          (f32(1.17549435082228750796873653722224568e-38), -2.22507385850720138309023271733240406e-308)]
STRINGS = [("", 1, "", ""), ("plain", 2, "", "with, comma"), ('she said "no"', 3, "back\\slash 'single'", "tab\there"),
           ("grüß", 4, "日本", "🙂"), ("0123456789" * 6 + "012", 5, "line\nbreak", "{ brace = 1 }")]
LISTS = [([], [], [], "", [], []),
         ([0, 1, 255], [2 ** 64 - 1, 0, 1, 2, 3, 4, 5, 6], [-1], "odd", [-2 ** 31, 2 ** 31 - 1], [-0.5, 1e300]),
         ([0], [], [-1], "evenly", [], [-0.5])]
SENT = [("Integers", "u8 i16 u16 i8 u32 i64 i32 u64", INTEGERS), ("Hexadecimal", "h8 h16 h32 h64", HEXADECIMAL),
        ("Floats", "f32 f64", FLOATS), ("Strings", "first number second third", STRINGS),
        ("Lists", "l8 l64 li16 name li32 ld", LISTS)]


def cell_is(cell, value):
    if isinstance(value, str):
        return cell == value
    if isinstance(value, list):
        return len(cell.split()) == len(value) and all(map(cell_is, cell.split(), value))
    if isinstance(value, float):
        return float(cell) == value or f32(float(cell)) == value
    return int(cell, 0) == value


@test
def every_type():
    "fields of every type arrive as they were sent, in babeltrace2 and in pem"
    trace, _ = record(tmp(), program("types"))
    seen = iter(compare(trace))
    for name, fields, values in SENT:
        for sent in values:
            row = next(seen)
            equal(row["event"], "APP::Types::" + name, "event")
            for field, value in zip(fields.split(), sent):
                assert cell_is(row[field], value), "%s.%s: got %r, sent %r" % (name, field, row[field], value)
    equal(list(seen), [], "more records")


@test
def many_lanes_and_images():
    "forks, execs and threads in one trace: babeltrace2 reads all their streams"
    binary = {name: program(name)[0] for name in ("processes", "threads")}
    command = ["sh", "-c", "'%(processes)s' fork 300; '%(processes)s' exec 100 3; '%(threads)s' short 20 30" % binary]
    trace, raised = record(tmp(), command)
    equal(len(compare(trace)), sum(raised.values()), "records")


@test
def a_trace_carries_what_it_may_hold():
    "a trace's model and metadata have the events that were asked for, and not the whole catalogue"
    folder = tmp()
    rc, _, err = run([PEM, "record", "-q", "-e", "APP::Phase::*,APP::Libc::Malloc", "-o", folder + "/trace", "--",
                      PEM, "mark", "begin", "here"])
    equal(rc, 0, "record: " + err)
    with open(folder + "/trace/.pem/model", encoding="utf-8") as f:
        names = sorted(line.split("\t")[2] for line in f if line.startswith("event\t"))
    equal([n for n in names if not n.startswith("OS::Sched::Switch")],
          ["APP::Libc::Malloc", "APP::Phase::Begin", "APP::Phase::End"], "events of the model")
    with open(folder + "/trace/metadata", encoding="utf-8") as f:
        declared = [line.split('"')[1] for line in f if line.startswith("    name = ")]
    equal(sorted(declared), names, "events of the metadata")


run_all()
