# SPDX-License-Identifier: MIT
"""export_csv: the table of pem export --to csv, read by Python's csv module and by sqlite3"""
import csv
import json
import os
import struct

from tap import PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp
from trace_files import KERNEL, NO_CPU, START, USER, Trace, event_id

MIXED = "APP::Test::Mixed"
FIRST = ["clock", "time_ns", "layer", "event", "pid", "tid", "cpu", "process"]


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
    equal([rows[0][c] for c in FIRST], [str(START), "0", "APP", MIXED, "1", "2", "", "program"], "what all rows have")
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
    equal([cell[1:] if cell.startswith("'") else cell for cell in got], texts, "texts without the apostrophe")
    for cell in got:
        assert cell[:1] not in tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"), cell
    equal(got[-5:], texts[-5:], "texts that are no formulas")
    equal({(row["small"], row["real"]) for row in rows}, {("-1", "-2.5")}, "numbers")
    # A spreadsheet that parts cells at semicolons or tabs keeps these whole, as they are quoted.
    with open(out, newline="", encoding="utf-8") as f:
        table = f.read()
    assert '"a;=1"' in table and '"a\t=1"' in table, table


@test
def control_characters():
    "control characters and bytes that are no UTF-8 are question marks; tabs and ends of lines stay in a file, not on a terminal"
    trace = Trace()
    mixed(trace)
    texts = [b"\x1b]0;x\x07", b"a\x9b2J", "\u009b31m".encode(), "\u202etxt".encode(), b"a\tb\nc\rd\x7f", "caf\u00e9\n\x1b".encode()]
    for i, text in enumerate(texts):
        add_mixed(trace, i, text)
    rows, _ = export(trace)
    equal([row["text"] for row in rows], ["?]0;x?", "a?2J", "??31m", "???txt", "a\tb\nc\rd?", "caf\u00e9\n?"], "texts")
    need("script")
    folder = os.path.join(tmp(), "terminal")
    trace.write(folder)
    rc, out, _ = run(["script", "-qec", "%s export --to csv -o - %s" % (PEM, folder), "/dev/null"], binary=True)
    equal(rc, 0, "status")
    lines = out.decode().replace("\r\n", "\n").splitlines()
    equal([line for line in lines if "a?b?c?d?" in line][0].count("\t"), 0, "tabs on a terminal")
    assert "\x1b" not in out.decode() and "\x9b" not in out.decode(), out


@test
def more_fields_than_columns():
    "a trace whose events have more different fields than a table has columns is refused with what would help"
    trace = Trace()
    for i in range(70):
        name = trace.event("APP::Test::E%d" % i, fields=[("f%d_%d" % (i, k), "uint32", "-") for k in range(60)])
        trace.add(name, i, [k for k in range(60)])
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    out = os.path.join(tmp(), "out.csv")
    rc, _, err = run([PEM, "export", "--to", "csv", folder, "-o", out])
    equal(rc, 3, "status (%s)" % err)
    assert "4200 different fields" in err and "4096" in err and "-e" in err, err
    equal(os.path.exists(out), False, "a file is left")


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
