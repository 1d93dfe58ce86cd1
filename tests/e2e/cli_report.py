# SPDX-License-Identifier: MIT
"""cli_report: numbers of report and stat against what a known program did, tampered traces, hostile names"""
import atexit
import functools
import glob
import json
import os
import re
import shutil
import signal
import struct
import sys
import tempfile

from tap import PEM, equal, need, run, run_all, skip, test, tmp


def record(command, *options):
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-o", trace, *options, "--"] + command)
    return rc, trace, err


@functools.cache
def listing():
    """A trace with thousands of events, for tests that only read it."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rc, _, err = run([PEM, "record", "-q", "-o", folder + "/trace", "--", "sh", "-c", "ls -R /usr/share/doc > /dev/null; exit 0"])
    equal(rc, 0, "status: " + err)
    return folder + "/trace"


def report(trace):
    rc, out, err = run([PEM, "report", "--json", trace])
    return rc, json.loads(out), err


def event(r, name):
    return next((e for e in r["per_event"] if e["name"] == name), None)


def available(name):
    _, out, _ = run([PEM, "list", name, "--json"])
    for e in json.loads(out):
        if not e["available"]:
            skip(e["reason"])


@test
def promised_members():
    "report --json has the promised members, events first"
    _, trace, _ = record(["true"])
    rc, out, _ = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status")
    r = json.loads(out)
    equal(list(r), ["events", "layers", "processes", "phases", "per_event", "metrics", "thread_states", "critical_path", "waits", "locks", "intervals", "messages", "system_calls", "counters", "memory", "counted", "cost", "detail", "predicates", "gaps", "info"],
          "members")
    equal(list(r["events"]), ["produced", "delivered", "discarded", "overwritten"], "events")


@test
def numbers_for_people_are_those_for_programs():
    "the table has the same count for each event as the JSON, with thousands separated"
    trace = listing()
    _, r, _ = report(trace)
    rc, out, _ = run([PEM, "report", "--by", "event", trace])
    equal(rc, 0, "status")
    rows = dict(re.findall(r"^(\S+::\S+) +([\d,]+) ", out, re.M))
    equal(rows, {e["name"]: "{:,}".format(e["count"]) for e in r["per_event"] if e["count"]}, "counts")


@test
def tables_fit():
    "tables of a report and of stat are at most as wide as the terminal, 80 or 60 columns"
    trace = listing()
    for columns in (80, 60):
        narrow = {"COLUMNS": str(columns)}
        for by in ([], ["--by", "layer"], ["--by", "process"], ["--by", "thread"], ["--by", "event"], ["--by", "site"], ["--by", "wait"]):
            rc, out, _ = run([PEM, "report", *by, trace], env=narrow)
            equal(rc, 0, "status")
            # A line that is longer for one word: a trace's path.
            equal([l for l in out.splitlines() if len(l) > columns and len(l.split()) > 2], [], "long lines of report %s" % by)
        _, _, err = run([PEM, "stat", "-q", "-f", "size", "--", "true"], env=narrow)
        equal([l for l in err.splitlines() if len(l) > columns], [], "long lines of stat")


@test
def phases_of_a_script():
    "phases marked by a script nest, carry their events, and one that never ends is unfinished"
    script = ('"$0" mark begin outer; "$0" mark run inner -- ls -R /usr/share/doc >/dev/null; '
              '"$0" mark run inner -- true; "$0" mark end outer; "$0" mark end never; "$0" mark begin open')
    rc, trace, err = record(["sh", "-c", script, PEM])
    equal(rc, 0, err)
    rc, r, err = report(trace)
    equal((rc, err), (0, ""), "report")
    phases = {p["name"]: p for p in r["phases"]}
    equal({n: (p["times"], p["unfinished"]) for n, p in phases.items()},
          {"outer": (1, 0), "inner": (2, 0), "open": (0, 1)}, "phases")
    outer, inner = phases["outer"], phases["inner"]
    assert outer["begin_ns"] < inner["begin_ns"], (outer, inner)
    assert inner["duration_ns"] < outer["duration_ns"] < r["info"]["duration_ns"], (outer, inner)
    for name, count in inner["events"].items():
        assert count <= outer["events"][name] <= event(r, name)["count"], name
    assert inner["events"]["APP::Libc::Malloc"] > 0, inner
    equal((event(r, "APP::Phase::Begin")["count"], event(r, "APP::Phase::End")["count"]), (4, 4), "marks")
    rc, out, _ = run([PEM, "report", trace])
    equal(rc, 0, "status")
    assert "\nPhases\n" in out and "had no begin" in out, out


@test
def a_phase_of_a_command_that_is_stopped():
    "mark run passes a signal that is sent to it on to its command, whose phase then ends"
    for name in "INT", "QUIT", "TERM", "HUP":
        # A shell without job control, as this one's, may ignore the first two for what it starts.
        script = "import os, signal, time; n = signal.SIG%s; signal.signal(n, signal.SIG_DFL); os.kill(os.getppid(), n); time.sleep(60)"
        rc, trace, err = record([PEM, "mark", "run", "work", "--", sys.executable, "-c", script % name], "-e", "APP::Phase::*")
        equal(rc, 128 + getattr(signal, "SIG" + name), "status at SIG%s, which said: %s" % (name, err))
        _, r, _ = report(trace)
        equal([(p["name"], p["times"], p["unfinished"]) for p in r["phases"]], [("work", 1, 0)], "phases")


@test
def sizes_add_up():
    "the sum of an event's sizes is what the program asked for"
    rc, trace, err = record(["python3", "-c", "import ctypes; m = ctypes.CDLL(None).malloc; "
                             "m.argtypes = [ctypes.c_size_t]; [m(12345678) for i in range(10)]"],
                            "-e", "APP::Libc::Malloc where size == 12345678")
    equal(rc, 0, err)
    _, r, _ = report(trace)
    malloc = event(r, "APP::Libc::Malloc")
    equal((malloc["count"], malloc["sum"]), (10, 123456780), "count and sum")
    equal((malloc["field"], malloc["unit"]), ("size", "bytes"), "field and unit")


@test
def bytes_moved_add_up():
    "reads and writes show what they moved in all and on average; one that fails moved nothing"
    rc, trace, err = record(["python3", "-c", "import ctypes; c = ctypes.CDLL(None); "
                             "[c.write(1, b'x' * 1000, 1000) for i in range(30)]; c.write(-1, b'x', 1)"],
                            "-e", "APP::File::WriteEnd")
    equal(rc, 0, err)
    _, r, _ = report(trace)
    end = event(r, "APP::File::WriteEnd")
    equal((end["count"], end["unit"], end["sum"]), (31, "bytes", 30000), "writes")
    equal(end["mean"], 1000, "mean")
    _, out, _ = run([PEM, "report", trace])
    assert re.search(r"WriteEnd +31 .* in all 29.3 KiB, mean 1,?000 B", out), out


@test
def counters_are_the_commands():
    "what nobody but the counters recorded is the command's, by its pid and name"
    available("HW::Software::TaskClock")
    _, trace, _ = record(["/bin/echo", "hello"], "-e", "HW::Software::TaskClock")
    _, r, _ = report(trace)
    equal([p["name"] for p in r["processes"]], ["echo"], "processes")
    rc, out, _ = run([PEM, "report", trace])
    assert "(outside)" not in out and re.search(r"^ *%d  echo " % r["processes"][0]["pid"], out, re.M), out


@test
def counters_reach_the_program_s_end():
    "the last value of a counter is that of the program's end, be the program ever so short"
    available("HW::Software::PageFaults")
    _, trace, _ = record(["/bin/echo", "hello"], "-e", "HW::Software::PageFaults")
    _, r, _ = report(trace)
    (faults,) = [e["last"] for e in r["per_event"] if e["name"] == "HW::Software::PageFaults"]
    assert faults > 60, "%d page faults, though starting a program takes more" % faults


@test
def a_process_is_called_what_it_became():
    "after exec a process has its new name, also where no kernel event tells of it"
    _, trace, err = record(["bash", "-c", "exec python3 -c pass"], "-e", "APP::Libc::Malloc")
    _, r, _ = report(trace)
    equal([p["name"] for p in r["processes"]], ["python3"], err)


@test
def processes_and_threads():
    "events are those of the processes that raised them, by name"
    _, r, _ = report(listing())
    names = [p["name"] for p in r["processes"]]
    assert "ls" in names and "sh" in names, names
    for p in r["processes"]:
        equal(sum(p["layers"].values()), p["count"], "layers of " + p["name"])
        equal(sum(t["count"] for t in p["threads"]), p["count"], "threads of " + p["name"])
    markers = sum(e.get("markers", 0) for e in r["per_event"])
    equal(sum(p["count"] for p in r["processes"]), r["events"]["delivered"] - markers, "all processes")


@test
def stat_counts_what_record_counts():
    "stat and record agree on how often a deterministic program allocates"
    command = ["/bin/echo", "hello"]
    rc, trace, err = record(command, "-e", "APP::Libc::Malloc")
    equal(rc, 0, err)
    _, r, _ = report(trace)
    rc, out, err = run([PEM, "stat", "-q", "--json", "-e", "APP::Libc::Malloc", "-f", "size", "-o", "/dev/fd/2",
                        "--"] + command)
    equal((rc, out), (0, "hello\n"), err)
    s = json.loads(err)
    equal(len(s["events"]), 1, "events")
    malloc, recorded = s["events"][0], event(r, "APP::Libc::Malloc")
    equal((malloc["count"], malloc["sum"]), (recorded["count"], recorded["sum"]), "count and sum")
    assert malloc["min"] <= malloc["mean"] <= malloc["max"], malloc
    equal(round(malloc["mean"] * malloc["count"]), malloc["sum"], "mean")


@test
def stat_of_counters():
    "a counter's value is what it reached while the command ran"
    available("HW::Software::TaskClock")
    rc, out, err = run([PEM, "stat", "-q", "--json", "-e", "HW::Software::TaskClock", "--", "sh", "-c",
                        "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"])
    equal(rc, 0, err)
    equal([e["sum"] > 0 for e in json.loads(out)["events"]], [True], out)


@test
def stat_intervals():
    "with -i, the intervals add up to the whole, one object a line"
    rc, out, err = run([PEM, "stat", "-q", "--json", "-i", "50", "-e", "APP::Libc::Malloc", "--", "sh", "-c",
                        "ls >/dev/null; sleep 0.2; ls > /dev/null; sleep 0.1"])
    equal(rc, 0, err)
    lines = [json.loads(line) for line in out.splitlines()]
    assert len(lines) >= 3, out
    total = lines[-1]["events"][0]["count"]
    assert total > 0, out
    equal(sum(e["count"] for line in lines[:-1] for e in line["events"]), total, "sum of the intervals")
    times = [line["time_ns"] for line in lines[:-1]]
    equal(times, sorted(times), "times")


@test
def a_result_that_has_no_place():
    "stat says that its result could not be written, also when the command failed; that status is the command's"
    for command, status in (("true", 3), ("false", 1)):
        rc, _, err = run([PEM, "stat", "-q", "-e", "APP", "-o", "/dev/full", "--", command])
        equal(rc, status, "status of " + command)
        assert "cannot write the result: No space left" in err, err


@test
def a_lost_stream_is_noticed():
    "a trace that lacks a stream does not balance: status 4 and a sentence, and the rest is shown"
    rc, trace, err = record(["ls", "-R", "/usr/share/doc"], "-e", "APP")
    streams = glob.glob(trace + "/u_*")
    assert streams, os.listdir(trace)
    os.remove(streams[0])
    rc, r, err = report(trace)
    equal(rc, 4, "status")
    assert "files of the trace are missing" in err and trace in err, err
    assert r["info"]["balanced"] is False and r["info"]["read"] < r["events"]["delivered"], r["info"]
    rc, out, _ = run([PEM, "report", trace])
    equal(rc, 4, "status of the table")
    assert "Events by layer" in out, out


@test
def a_wrong_account_is_noticed():
    "an account in which produced is not the sum of the rest: status 4 and a sentence"
    rc, trace, err = record(["ls", "/"], "-e", "APP::Libc::Malloc")
    path = trace + "/.pem/balance"
    with open(path) as file:
        lines = file.read().splitlines()
    for i, line in enumerate(lines):
        cells = line.split("\t")
        if cells[0] == "event" and int(cells[2]) > 0:
            cells[2] = str(int(cells[2]) + 1)
            lines[i] = "\t".join(cells)
            break
    else:
        raise AssertionError("no event in the balance: %r" % lines)
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    rc, _, err = report(trace)
    equal(rc, 4, "status")
    assert "account is wrong" in err, err


def records_of_packets(stream):
    """How many records each packet of a stream file has."""
    with open(stream, "rb") as file:
        data = file.read()
    at, counts = 0, []
    while at < len(data):
        counts.append(struct.unpack_from("<Q", data, at + 104)[0])
        at += struct.unpack_from("<Q", data, at + 56)[0] // 8
    return counts


@test
def a_damaged_packet_costs_itself():
    "bytes overwritten in a packet cost its records, or its stream's if none knows where the next one begins, and no others"
    rc, trace, _ = record(["ls", "-R", "/usr/share/doc"])
    # magic, stream, size: the stream's; source, the first record's header: the packet's
    for offset, is_whole in ((0, True), (20, True), (48, True), (100, False), (112, False)):
        copy = tmp() + "/copy"
        shutil.copytree(trace, copy)
        stream = max(glob.glob(copy + "/u_*"), key=os.path.getsize)
        counts = records_of_packets(stream)
        assert len(counts) > 1 and counts[0] > 0, counts
        with open(stream, "r+b") as file:
            file.seek(offset)
            file.write(b"\xff" * 8)
        rc, r, err = report(copy)
        equal(rc, 4, "status with damage at %d, and the sentence %r" % (offset, err))
        assert err.startswith("pem: error: "), err
        equal(r["events"]["delivered"] - r["info"]["read"], sum(counts) if is_whole else counts[0],
              "records that damage at %d costs" % offset)


@test
def hostile_names_do_not_reach_the_terminal():
    "control characters in names that a program chose are shown as question marks, and JSON stays valid"
    name = "a\033[31mb\x07\tc\udcff"
    rc, trace, err = record([PEM, "mark", "run", name, "--", "true"], "-e", "APP::Phase::*")
    equal(rc, 0, err)
    rc, out, _ = run([PEM, "report", trace], binary=True)
    equal(rc, 0, "status")
    assert b"\033" not in out and b"\x07" not in out, out
    rc, r, _ = report(trace)
    equal([(p["name"], p["times"]) for p in r["phases"]], [("a\033[31mb\x07\tc?", 1)], "phases")


@test
def exports_agree():
    "export writes where it is told, and without -o beside nothing but under the trace's name"
    _, out, _ = run([PEM, "export", "--list", "--json"])
    if "csv" not in [f["name"] for f in json.loads(out)]:
        skip("the csv exporter is not built")
    _, trace, _ = record(["ls", "/"])
    folder = tmp()
    equal(run([PEM, "export", "--to", "csv", trace], cwd=folder)[0], 0, "status")
    equal(os.listdir(folder), ["trace.csv"], "default name")
    equal(run([PEM, "export", "--to", "csv", trace + "/", "-o", folder + "/x.csv"])[0], 0, "status with -o")
    with open(folder + "/trace.csv") as a, open(folder + "/x.csv") as b:
        equal(a.read(), b.read(), "both files")
    rc, _, err = run([PEM, "export", "--to", "csv", trace, "-o", folder + "/missing/x.csv"])
    assert rc in (1, 3) and "missing/x.csv" in err, (rc, err)
    rc, _, err = run([PEM, "export", "--to", "cvs", trace])
    equal(rc, 1, "status of an unknown format")
    assert "did you mean 'csv'" in err, err


@test
def how_the_command_ended():
    "a status above 128 is a signal's only if there is such a signal"
    for script, words in (("exit 200", "exit status 200"), ("kill -9 $$", "ended by signal 9 (KILL)")):
        rc, trace, _ = record(["sh", "-c", script])
        rc, out, _ = run([PEM, "report", trace])
        equal(rc, 0, "status")
        assert words in out, out.splitlines()[:5]


@test
def starts_of_processes_cost():
    "each process of a command counts as started in the ledger"
    if not os.access("/bin/true", os.X_OK):
        skip("there is no /bin/true to measure with")
    _, trace, _ = record(["sh", "-c", "/bin/ls >/dev/null; /bin/ls >/dev/null; :"], "-e", "APP")
    _, r, _ = report(trace)
    start = [k for k in r["cost"]["kinds"] if k["kind"] == "process-start"]
    equal([k["count"] for k in start], [3], "processes that were started")
    assert start[0]["ns_each"] > 0, start


@test
def cost_and_gaps():
    "the cost is the sum of its kinds, and what could not be recorded has a reason"
    _, out, _ = run([PEM, "list", "hw", "--json"])
    missing = [e["name"] for e in json.loads(out) if not e["available"]]
    rc, trace, err = record(["ls", "-R", "/usr/share/doc"], "-e", "APP,OS,HW")
    equal(rc, 0, err)
    _, r, _ = report(trace)
    cost = r["cost"]
    assert cost["kinds"], cost
    total = sum(k["ns_each"] * k["count"] for k in cost["kinds"])
    assert abs(total - cost["total_ns"]) <= 1 + total / 1e9, cost
    equal(bool(missing), any(g["source"] == "counters" for g in r["gaps"]), "gaps %r" % r["gaps"])
    for gap in r["gaps"]:
        assert gap["reason"], gap


@test
def costs_of_one_event_have_one_unit():
    "what one event of each kind cost is told in nanoseconds, from some of a record to some 100,000 of the start of a process"
    _, trace, _ = record(["sh", "-c", "ls / > /dev/null; true"], "-e", "APP::Libc")
    costs = report(trace)[1]["cost"]["kinds"]
    rc, out, _ = run([PEM, "report", trace], env={"COLUMNS": "200"})
    equal(rc, 0, "status")
    told = dict(re.findall(r"^(\S+) +[\d,]+ +([\d,.]+ \w+) ", out[out.index("Cost of observing"):], re.M))
    for kind in costs:
        if kind["count"] and kind["ns_each"] > 0:
            number, unit = told[kind["kind"]].split()
            equal(unit, "ns", "unit of one " + kind["kind"])
            told_ns, digit = float(number.replace(",", "")), 0.1 if "." in number else 1
            assert abs(told_ns - kind["ns_each"]) < digit, "cost of one %s: %s, wanted %r" % (kind["kind"], number, kind["ns_each"])
    assert max(kind["ns_each"] for kind in costs) > 1e4 > min(kind["ns_each"] for kind in costs), costs


run_all()
