# SPDX-License-Identifier: MIT
"""export_csv: the table of pem export --to csv, read by Python's csv module and by sqlite3"""
import csv
import json
import os
import re
import struct

from tap import PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp
from trace_files import KERNEL, NO_CPU, START, USER, Trace, event_id

MIXED = "APP::Test::Mixed"
FIRST = ["clock", "time_ns", "layer", "event", "pid", "tid", "cpu", "process", "process_start_ns", "thread_start_ns"]


def mixed(trace):
    """An event with a field of each kind, among them one named like a column."""
    trace.model[MIXED] = ((), [
        "event\t%08x\t%s\tAPP\tTest\tMixed\t1\tinfo\t-\t\t-\tstub\t\t32\t136\t7\t0\t\t\t" % (event_id(MIXED), MIXED),
        "field\tsmall\tint8\t-\t10\t-\t8\t1\t\t-\t0\t", "field\tpid\tuint16\t-\t10\t-\t10\t1\t\t-\t0\t",
        "field\ttext\tstring\t-\t10\t-\t0\t64\t\t-\t0\t", "field\tlist\tlist\tuint64\t16\t-\t12\t4\t\t-\t0\t",
        "field\treal\tfloat64\t-\t10\t-\t16\t1\t\t-\t0\t", "field\tratio\tfloat32\t-\t10\t-\t24\t1\t\t-\t0\t",
        "field\tflags\tuint32\t-\t16\t-\t28\t1\t\t-\t0\t"])


def add_mixed(trace, time_ns, text, numbers=(), small=-1, real=2.5, ratio=0.1, flags=0xBEEF):
    tail = text + b"\0"
    tail += bytes(-len(tail) % 8) + struct.pack("<%dQ" % len(numbers), *numbers)
    data = struct.pack("<bxHIdfI", small, 77, len(numbers), real, ratio, flags) + tail
    trace.records.append((START + time_ns, MIXED, data, (USER, 1, 2, NO_CPU)))


def export(trace, *more):
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    out = os.path.join(tmp(), "out.csv")
    rc, _, err = run([PEM, "export", "--to", "csv", folder, "-o", out, *more])
    equal(rc, 0, "exit status (stderr: %s)" % err)
    with open(out, newline="") as f:
        return list(csv.DictReader(f)), out


def original(cell):
    """The bytes of a text, by what csv.c tells its readers."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), cell.encode().removeprefix(b"'"))


@test
def help_tells_the_columns():
    "export --help and its man page name the first columns, say what a field of such a name is called, and where units are"
    rc, out, _ = run([PEM, "export", "--help"])
    equal(rc, 0, "status")
    with open(ROOT + "/docs/man/pem-export.1", encoding="utf-8") as f:
        page = f.read()
    for text in (" ".join(out.split()), page):
        for word in FIRST + ["field_", "pem list -v", "0x..."]:
            assert word in text, word


@test
def a_value_of_each_kind():
    "a row holds every value of its record, quoted where it must be"
    trace = Trace()
    mixed(trace)
    texts = [b"plain", b"a,b", b'say "hi"', b"two\nlines", b"", "café".encode(), b" spaces "]
    for i, text in enumerate(texts):
        add_mixed(trace, i, text, range(i % 5))
    add_mixed(trace, 100, b"x", [2 ** 64 - 1], small=-128, real=-1e300, ratio=-0.0, flags=0)
    rows, out = export(trace)
    with open(out, newline="") as f:
        equal(next(csv.reader(f)), FIRST + ["small", "field_pid", "text", "list", "real", "ratio", "flags"], "columns")
    equal([row["text"] for row in rows], [t.decode() for t in texts] + ["x"], "texts")
    equal(rows[3]["list"], "0x0 0x1 0x2", "a list")
    equal(rows[5]["list"], "", "an empty list")
    equal(rows[7]["list"], "0xffffffffffffffff", "the largest number")
    equal([rows[0][c] for c in FIRST], [str(START), "0", "APP", MIXED, "1", "2", "", "program", "", ""], "what all rows have")
    equal([rows[0][c] for c in ("small", "field_pid", "real", "ratio", "flags")], ["-1", "77", "2.5", "0.1", "0xbeef"],
          "numbers")
    equal([rows[7][c] for c in ("small", "real", "ratio", "flags")], ["-128", "-1e+300", "-0", "0x0"],
          "extreme numbers")


@test
def no_text_is_a_formula():
    "a text that a spreadsheet would compute has an apostrophe in front, by which it is told apart; numbers have none"
    trace = Trace()
    mixed(trace)
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'quoted", "''", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201",
             '=HYPERLINK("http://x","y")', "=a,b", "a=b", "a;=1", "a\t=1", "", "\uff21"]
    for i, text in enumerate(texts):
        add_mixed(trace, i, text.encode(), small=-1, real=-2.5)
    rows, out = export(trace)
    got = [row["text"] for row in rows]
    equal([original(cell).decode() for cell in got], texts, "texts without the apostrophe")
    for cell in got:
        assert cell[:1] not in tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"), cell
    equal(got[-5:], texts[-5:], "texts that are no formulas")
    equal({(row["small"], row["real"]) for row in rows}, {("-1", "-2.5")}, "numbers")
    # A spreadsheet that parts cells at semicolons or tabs keeps these whole, as they are quoted.
    with open(out, newline="", encoding="utf-8") as f:
        table = f.read()
    assert '"a;=1"' in table and '"a\t=1"' in table, table


@test
def no_text_is_a_command():
    "what a terminal would obey, and what is no UTF-8, is \\xNN in the table, from which each text can be had again"
    trace = Trace()
    mixed(trace)
    texts = [b"\x1b[2J", b"\x9b2J", "\u009b31m".encode(), "\u202etxt\u2069\u2028".encode(), b"\x7f\x01", b"a\rb", b"\r=1", b"=\x1b",
             b"caf\xe9", b"\xc5", b"\\x1b", b"\\\x1b", b"\\\\x", b"C:\\dir\\new", b"\\", b'"\x1b"', b"two\n\x1blines\t", b"'\x9b",
             "\u00a0caf\u00e9 \u2027\u202f\U0001f35e".encode()]
    for i, text in enumerate(texts):
        add_mixed(trace, i, text)
    rows, out = export(trace)
    equal([original(row["text"]) for row in rows], texts, "texts, read back")
    equal([row["text"] for row in rows[:5]], [r"\x1b[2J", r"\x9b2J", r"\xc2\x9b31m", r"\xe2\x80\xaetxt\xe2\x81\xa9\xe2\x80\xa8", r"\x7f\x01"],
          "escapes")
    equal([row["text"] for row in rows if b"dir" in original(row["text"])], [r"C:\dir\new"], "backslashes that are none")
    with open(out, encoding="utf-8", newline="") as f:
        found = re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", f.read())
    assert not found, found


@test
def columns_of_what_occurs():
    "columns are those of the events that occur; what is unknown is empty"
    trace = Trace()
    fault = trace.event("OS::Mem::PageFault", fields=[("address", "uint64", "address")])
    trace.event("OS::Mem::Unseen", fields=[("never", "uint64", "-")])
    one = trace.event("APP::Test::One", fields=[("value", "uint64", "-")])
    trace.add(fault, 5, [4096], pid=0, tid=0, cpu=3, source=KERNEL)
    trace.add(one, 6, [9])
    rows, out = export(trace)
    equal(list(rows[0]), FIRST + ["address", "value"], "columns")
    equal([rows[0][c] for c in ("pid", "tid", "cpu", "process", "address", "value")], ["", "", "3", "", "4096", ""],
          "a kernel record of unknown thread")
    equal([rows[1][c] for c in ("pid", "tid", "cpu", "process", "address", "value")], ["1", "1", "", "program", "", "9"],
          "a user record")


@test
def events_take_turns():
    "of thousands of events that take turns each row has its own event's fields, each in its column"
    trace, kinds = Trace(), (["b", "a"], ["a", "c"], ["c", "b"])
    events = [trace.event("APP::Test::E%d" % e, fields=[(name, "uint32", "-") for name in kinds[e % 3]]) for e in range(3999)]
    turns = [i * 7 % 3999 for i in range(100_000)]
    for i, e in enumerate(turns):
        trace.add(events[e], i, [i, 2 * i])
    rows, _ = export(trace)
    equal(list(rows[0]), FIRST + ["b", "a", "c"], "columns")
    wanted = [{"event": events[e], "a": "", "b": "", "c": "", **dict(zip(kinds[e % 3], (str(i), str(2 * i))))}
              for i, e in enumerate(turns)]
    equal([{name: row[name] for name in ("event", "a", "b", "c")} for row in rows], wanted, "rows")


@test
def as_many_columns_as_sqlite_takes():
    "2000 columns are a table that sqlite3 imports; a trace that needs more is refused, and told what would help"
    def trace_of(names):
        trace = Trace()
        events = [trace.event("APP::Test::E%d" % e, fields=[("f%d" % i, "uint32", "-") for i in range(e, min(e + 60, names))])
                  for e in range(0, names, 50)]
        for i, event in enumerate(events):
            trace.add(event, i, range(i, i + 60))
        return trace

    rows, out = export(trace_of(1990))
    equal(list(rows[-1]), FIRST + ["f%d" % i for i in range(1990)], "columns")
    equal(list(rows[-1].values())[-41:], [""] + [str(39 + i) for i in range(40)], "the last row's last cells")
    folder, none = os.path.join(tmp(), "trace"), os.path.join(tmp(), "none.csv")
    trace_of(1991).write(folder)
    rc, _, err = run([PEM, "export", "--to", "csv", folder, "-o", none])
    equal(rc, 1, "status of one column more")
    assert "more than 1990 names" in err and "at most 2000 columns" in err and "pem record -e" in err, err
    assert not os.path.exists(none), "a file is left"
    need("sqlite3")
    rc, text, err = run(["sqlite3", ":memory:"], input=".import --csv %s t\nselect count(*), sum(f1989 = '78') from t;\n" % out)
    equal((rc, text.strip(), err), (0, "40|1", ""), "sqlite3's answer")


@test
def wide_models_are_refused_at_once():
    "thousands of events with dozens of fields of their own end in that sentence, before memory or time is spent on them"
    trace = Trace()
    for e in range(4000):
        trace.add(trace.event("APP::Test::E%d" % e, fields=[("f%d_%d" % (e, i), "uint32", "-") for i in range(60)]), e, range(60))
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    rc, _, err = run([PEM, "export", "--to", "csv", folder, "-o", "-"])
    assert rc == 1 and "at most 2000 columns" in err, (rc, err)


@test
def an_empty_trace():
    "a trace without records becomes a table without rows"
    trace = Trace()
    trace.event("APP::Test::One", fields=[("value", "uint64", "-")])
    rows, out = export(trace)
    equal(rows, [], "rows")
    with open(out) as f:
        equal(f.read(), ",".join(FIRST) + "\n", "header")


@test
def sqlite_imports_it():
    "sqlite3 imports the table and sums a column"
    need("sqlite3")
    trace = Trace()
    one = trace.event("APP::Test::One", fields=[("value", "uint64", "-"), ("name", "string", "name")])
    for i in range(1000):
        trace.add(one, i, [i, b'"%d", quoted' % i])
    _, out = export(trace)
    rc, text, err = run(["sqlite3", ":memory:"], input=".import --csv %s t\nselect count(*), sum(value), "
                        "sum(name = '\"' || value || '\", quoted') from t;\n" % out)
    equal((rc, text.strip(), err), (0, "1000|499500|1000", ""), "sqlite3's answer")


@test
def standard_output():
    "'-' writes the same table to standard output"
    trace = Trace()
    one = trace.event("APP::Test::One", fields=[("value", "uint64", "-")])
    for i in range(100):
        trace.add(one, i, [i])
    folder, out = os.path.join(tmp(), "trace"), os.path.join(tmp(), "out.csv")
    trace.write(folder)
    equal(run([PEM, "export", "--to", "csv", folder, "-o", out])[0], 0, "exit status")
    rc, text, _ = run([PEM, "export", "--to", "csv", folder, "-o", "-"], binary=True)
    with open(out, "rb") as f:
        equal((rc, text), (0, f.read()), "standard output")


@test
def nothing_is_left_on_failure():
    "a damaged trace leaves no file, and an older file as it was"
    trace = Trace()
    one = trace.event("APP::Test::One", fields=[("value", "uint64", "-")])
    for i in range(2000):
        trace.add(one, i, [i])
    folder, where = os.path.join(tmp(), "trace"), tmp()
    trace.write(folder)
    stream = os.path.join(folder, "u_1_0")
    with open(stream, "r+b") as f:
        f.seek(os.path.getsize(stream) - 12)
        f.write(struct.pack("<I", 0x666))  # the last record's event
    out = os.path.join(where, "out.csv")
    rc, _, err = run([PEM, "export", "--to", "csv", folder, "-o", out])
    assert rc in (1, 3), "exit status %d" % rc
    assert "unknown event 00000666" in err, err
    equal(os.listdir(where), [], "files")
    with open(out, "w") as f:
        f.write("older")
    run([PEM, "export", "--to", "csv", folder, "-o", out])
    equal(os.listdir(where), ["out.csv"], "files")
    with open(out) as f:
        equal(f.read(), "older", "the older file")


@test
def a_place_that_takes_nothing():
    "a full device or a missing folder is a sentence and a failure"
    trace = Trace()
    one = trace.event("APP::Test::One", fields=[("value", "uint64", "-")])
    trace.add(one, 1, [1])
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    for out, word in (("/dev/full", "No space left"), (os.path.join(tmp(), "none", "out.csv"), "No such file")):
        rc, _, err = run([PEM, "export", "--to", "csv", folder, "-o", out])
        assert rc != 0, "%s: exit status 0" % out
        assert word in err and out in err, err
    assert os.path.exists("/dev/full"), "the device was replaced"


@test
def no_export_into_the_trace():
    "export writes over no file of the trace that it reads, nor beside them, whatever names it"
    folder = tmp()
    trace, elsewhere = folder + "/trace", folder + "/out"
    new = Trace()
    mixed(new)
    add_mixed(new, 1, b"x")
    new.write(trace)
    os.mkdir(elsewhere)
    os.symlink(trace + "/metadata", elsewhere + "/link")
    before = {name: os.stat(os.path.join(trace, name)).st_size for name in os.listdir(trace)}
    for out, cwd in ((trace + "/metadata", "/"), (trace + "/new.csv", "/"), (trace + "/.pem/model", "/"), (elsewhere + "/link", "/"),
                     ("metadata", trace), ("../trace/metadata", elsewhere)):
        rc, _, err = run([PEM, "export", "--to", "csv", trace, "-o", out], cwd=cwd)
        equal(rc, 1, "status of export to " + out)
        assert "lies in the trace" in err, err
    equal({name: os.stat(os.path.join(trace, name)).st_size for name in os.listdir(trace)}, before, "files")
    equal(run([PEM, "export", "--to", "csv", trace, "-o", "../out.csv"], cwd=elsewhere)[0], 0, "status of export beside the trace")


@test
def as_many_rows_as_the_report_counts():
    "a recording has as many rows as pem report counts events"
    if SAN:
        skip("this build carries sanitizers, which can't be preloaded into an unmodified sh; run it without SAN=1")
    folder = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-o", folder, "--", "sh", "-c", "ls / | wc -l"])
    equal(rc, 0, "exit status of record (stderr: %s)" % err)
    rc, text, _ = run([PEM, "report", "--json", folder])
    equal(rc, 0, "exit status of report")
    out = os.path.join(tmp(), "out.csv")
    equal(run([PEM, "export", "--to", "csv", folder, "-o", out])[0], 0, "exit status of export")
    with open(out, newline="") as f:
        rows = list(csv.DictReader(f))
    equal(len(rows), json.loads(text)["events"]["delivered"], "rows")
    times = [int(row["time_ns"]) for row in rows]
    equal(times, sorted(times), "order of time")
    assert "sh" in {row["process"] for row in rows}, "no row of sh"


run_all()
