# SPDX-License-Identifier: MIT
"""
kernel_layer: what a process tree does in the kernel, seen from the command line; and what is said where it can't be

guest: bpf=x86_64-6.12 module=x86_64-6.1
"""
import csv
import json
import os
import subprocess

from probe_trace import served
from probing import here
from tap import OTHER_USER, PEM, ROOT, SAN, equal, need, need_reach, run, run_all, skip, test, tmp

COUNT = 3000
TWICE = ("for i in 1 2; do dd if=/dev/zero of=/dev/null bs=1 count=%d status=none & done; wait" %
         COUNT)


def record(*arguments):
    """Record into a folder of this test's own: the report, and babeltrace2's lines if wanted."""
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-o", trace, *arguments])
    equal(rc, 0, "status of record: " + err)
    served(trace)
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report: " + err)
    return trace, json.loads(out)


@test
def a_tree_is_observed_and_nothing_else():
    "two children's reads and writes arrive, each in its own process, and all is accounted for"
    here()
    trace, r = record("-e", "OS", "--", "sh", "-c", TWICE)
    equal(r["events"]["produced"], sum(r["events"][k] for k in ("delivered", "discarded", "overwritten")),
          "produced")
    equal(r["events"]["discarded"], 0, "discarded")
    counts = [p["count"] for p in r["processes"] if p["name"] == "dd"]
    equal(len(counts), 2, "processes called dd")
    for count in counts:  # enter and exit of read and write, and what it takes to start
        assert 4 * COUNT <= count < 4 * COUNT + 3000, count
    # Other threads switch to these, and wake and move them: as often as a busy machine makes it.
    outside = [row for row in rows_of(trace) if row["process"] not in ("dd", "sh") and not row["event"].startswith("OS::Sched::")]
    assert len(outside) < 100, "records outside the tree: %r" % outside


@test
def switches_of_the_tree():
    "each switch that is counted takes a CPU from a recorded thread or gives it one; records that only name a CPU's thread are told apart"
    here()
    trace, r = record("-e", "OS", "--", "sh", "-c", "sleep 0.01; " + TWICE)
    rows = rows_of(trace)
    tree = {row["tid"] for row in rows if row["process"] in ("dd", "sh", "sleep")}
    rows = [row for row in rows if row["event"] == "OS::Sched::Switch"]
    told, = [e for e in r["per_event"] if e["name"] == "OS::Sched::Switch"]
    real = [row for row in rows if int(row["prevState"], 0) != 0xffffffff]
    equal((told["count"], told.get("markers", 0)), (len(real), len(rows) - len(real)), "switches and markers")
    equal([row for row in real if not tree & {row["prevTid"], row["nextTid"]}], [], "switches of others")
    assert len(real) < len(rows), "no record names the first thread"


@test
def kernel_events_alone_are_their_processes():
    "recorded with nothing that names processes, system calls are still those of the programs that made them"
    here()
    trace, r = record("-e", "OS::Syscall::Enter", "--", "sh", "-c", TWICE)
    counts = {}
    for p in r["processes"]:
        counts.setdefault(p["name"], []).append(p["count"])
    equal(len(counts.pop("dd")), 2, "processes called dd")
    equal(len(counts.pop("sh")), 1, "processes called sh")
    assert sum(map(sum, counts.values())) < 100, counts
    told = {e["name"] for e in r["per_event"] if e.get("context")}
    process = {"OS::Process::" + what for what in ("Exec", "Exit", "Fork", "Rename")}
    equal(told, process | {"OS::Sched::Switch"}, "context")
    rc, out, err = run([PEM, "report", trace])
    equal((rc, err), (0, ""), "report")
    assert "Not asked for, but recorded to tell whose" in out, out
    rc, out, err = run([PEM, "report", "--by", "process", trace])
    title, *rows = out.split("Events by process\n")[1].split("\n\n")[0].splitlines()
    names = [row[title.index("PROCESS"):] for row in rows]
    equal([name for name in names if name[0] == " " or name[0].isdigit()], [], "rows without a name")


def rows_of(trace, *names):
    """The trace's records of these events, or of all, in order of time."""
    table = os.path.join(tmp(), "trace.csv")
    rc, _, err = run([PEM, "export", "--to", "csv", trace, "-o", table])
    equal(rc, 0, "status of export: " + err)
    with open(table, newline="") as f:
        return [row for row in csv.DictReader(f) if not names or row["event"] in names]


@test
def block_requests_end_in_whatever_runs():
    "a program's writes to a disk are completed in interrupts: each completion is there, and agrees with its issue by key"
    here()
    folder = os.path.dirname(tmp())
    device = os.stat(folder).st_dev
    if not os.path.exists("/sys/dev/block/%d:%d" % (os.major(device), os.minor(device))):
        skip("%s lies on no block device" % folder)
    writes, size, target = 20, 65536, os.path.join(tmp(), "direct")
    command = ["dd", "if=/dev/zero", "of=" + target, "bs=%d" % size, "count=%d" % writes, "oflag=direct"]
    if run(command)[0] != 0:
        skip("%s takes no direct writes" % folder)
    trace, r = record("-e", "OS::Block::Issue,OS::Block::Complete", "--", *command, "conv=fsync")
    events = r["events"]
    equal((events["produced"], events["discarded"]), (events["delivered"], 0), "produced and discarded")
    underway, done = {}, 0
    for row in rows_of(trace, "OS::Block::Issue", "OS::Block::Complete"):
        if row["event"] == "OS::Block::Issue":
            underway[row["request"]] = dict(row, left=int(row["bytes"]))
            continue
        done += int(row["done"])  # also of requests that a thread of the kernel issued, as it does for a busy disk
        if row["request"] in underway:
            begun = underway[row["request"]]
            equal(row["device"], begun["device"], "device")
            begun["left"] -= int(row["done"])  # a request may be completed in parts
            assert begun["left"] >= 0, "more completed than issued: %r" % begun
            if not begun["left"]:
                del underway[row["request"]]
    assert done >= writes * size / 2, "%d of %d bytes completed" % (done, writes * size)
    lacking = [row for row in underway.values() if row["process"] == "dd" and row["op"] == "write"]
    equal(lacking, [], "issued by dd and never completed")


@test
def every_kernel_event_of_the_catalogue_at_once():
    "hundreds of tracepoints recorded together: all is accounted for, and babeltrace2 finds each record delivered"
    here()
    need("babeltrace2")
    trace, r = record("-e", "OS::*", "--", "sh", "-c", "ls -R /usr/include >/dev/null 2>&1; cat /proc/self/maps")
    events = r["events"]
    equal(events["produced"], events["delivered"] + events["discarded"] + events["overwritten"], "produced")
    kinds = [e["name"] for e in r["per_event"] if e["count"]]
    assert len(kinds) > 30, "kinds of events: %r" % kinds
    equal([g["reason"] for g in r["gaps"] if "no tracepoint" not in g["reason"]
           and "pem.ko" not in g["reason"]], [], "why events are missing")
    rc, out, err = run(["babeltrace2", trace])  # it warns where some were discarded
    equal(rc, 0, "babeltrace2: " + err)
    equal(len(out.splitlines()), events["delivered"], "records")


@test
def every_call_is_there_once():
    "babeltrace2 finds each of a program's calls, in order of time on every CPU"
    here()
    need("babeltrace2")
    trace, r = record("-e", "OS::Syscall::Enter", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1",
                      "count=%d" % COUNT, "status=none")
    rc, out, err = run(["babeltrace2", "--clock-cycles", trace])
    equal((rc, err), (0, ""), "babeltrace2")
    lines = out.splitlines()
    equal(len(lines), r["events"]["delivered"], "records")
    assert sum("number = 0," in line for line in lines) >= COUNT, "reads"
    equal(sum("number = 1," in line for line in lines), COUNT, "writes")
    assert any("OS::Sched::Switch" in line for line in lines), "no switch, so no context"


@test
def without_privilege_it_says_what_would_help():
    "an ordinary user reads why kernel events are missing, and what would mend it"
    if SAN:
        skip("a sanitizer's build is not readable to others everywhere")
    need_reach()
    rc, out, err = run(OTHER_USER + [PEM, "list", "--json", "os"], cwd="/",
                       env={"PEM_RUNTIME_DIR": None, "XDG_RUNTIME_DIR": None, "TMPDIR": None})
    equal(rc, 0, "status of list: " + err)
    for event in json.loads(out):
        if event["source"] == "proc":
            continue  # /proc tells of the user's own processes
        equal(event["available"], False, event["name"])
        if "group tracing" in event["reason"]:
            assert os.path.exists("/dev/pem"), event["reason"]
            continue
        if event["source"] == "module":
            assert event["reason"].startswith("only pem.ko sees this"), event["reason"]
            continue
        assert "CAP_BPF" in event["reason"] or "BTF" in event["reason"] or \
            "no installed source" in event["reason"], event["reason"]


@test
def what_a_full_disk_takes_is_counted():
    "system calls that find no room on the disk are counted as discarded, and the others as delivered"
    here()
    folder = tmp()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], stderr=subprocess.DEVNULL, check=False).returncode:
        skip("a small tmpfs can't be mounted here")
    try:
        rc, _, err = run([PEM, "record", "-o", folder + "/trace", "-e", "OS::Syscall", "--", "dd", "if=/dev/zero", "of=/dev/null",
                          "bs=1", "count=20000", "status=none"])
        equal(rc, 3, "status: " + err)
        rc, out, err = run([PEM, "report", "--json", folder + "/trace"])
        assert rc in (0, 4), err
        events = {e["name"]: e for e in json.loads(out)["per_event"] if e["name"].startswith("OS::Syscall")}
        for name in ("OS::Syscall::Enter", "OS::Syscall::Exit"):
            balance = events[name]["balance"]
            assert balance["produced"] >= 2 * 20000 and balance["delivered"] and balance["discarded"], balance
            equal(balance["delivered"] + balance["discarded"], balance["produced"], name)
            equal(events[name]["count"], balance["delivered"], name + ": records")
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@test
def a_missing_compiler_is_said_and_costs_this_source_only():
    "make without a BPF compiler says so and plans everything but the kernel source"
    need("make")
    folder = os.path.join(tmp(), "build")
    rc, out, err = run(["make", "-n", "B=" + folder, "CLANG=/none/clang"], cwd=ROOT,
                       env={"MAKEFLAGS": None, "MAKELEVEL": None})
    equal(rc, 0, "status of make -n: " + err[-300:])
    assert "kernel source: not built" in out, out[:300]
    assert "source-kernel.so" not in out, "the plugin is planned"
    assert "libpem.so" in out, "the rest is not planned"


run_all()
