# SPDX-License-Identifier: MIT
"""kernel_costs: the ledger charges each event what its kind costs, and sets it against the CPU time of what was observed"""
import json
import os
import re
import shutil
import subprocess
import tempfile

from attached import Recorder
from probing import PROBED, here, record
from tap import PEM, equal, need_mounts, run, run_all, skip, test

USES = 50


def ledger(trace):
    """The report, and of each kind in it the count and ns of each."""
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report: " + err)
    report = json.loads(out)
    return report, {kind["kind"]: (kind["count"], kind["ns_each"]) for kind in report["cost"]["kinds"]}


def count(report, *words):
    """Records of events whose names have one of the words in them."""
    return sum(e["count"] + e.get("markers", 0) for e in report["per_event"] if any(word in e["name"] for word in words))


@test
def functions_of_programs_have_costs_of_their_own():
    "uprobes and static probes, returns of functions, and the kernel's own events are charged apart"
    here()
    trace, _ = record("uprobe:%s:probed_*,uretprobe:%s:probed_*,usdt:%s:probed:work,Sched" % ((PROBED,) * 3),
                      PROBED, str(USES))
    report, costs = ledger(trace)
    returns = count(report, "__return")
    equal(costs["uretprobe-log"][0], returns, "returns")
    equal(costs["uprobe-log"][0], count(report, "APP::probed::") - returns, "entries and static probes")
    equal(costs["kernel-log"][0], count(report, "OS::"), "events of the kernel")
    assert costs["uprobe-log"][0] >= USES and returns, costs
    for kind in ("uprobe-log", "uretprobe-log", "kernel-log"):
        assert costs[kind][1], "%s: not measured" % kind
    equal(len({costs[kind][1] for kind in ("uprobe-log", "uretprobe-log", "kernel-log")}), 3, "different costs")
    assert " uprobe-log " in " " + run([PEM, "report", trace])[1].replace("\n", " "), "the table"


@test
def each_kind_has_its_events():
    "functions of the C library, system calls, their paths and other events of the kernel are charged apart, each between its bounds"
    here()
    trace, _ = record("APP,OS", "ls", "-R", "/usr/share/doc")
    report, costs = ledger(trace)
    calls, paths, files = (count(report, *names) for names in
                           (("Syscall::Enter", "Syscall::Exit"), ("Syscall::Path",), ("Syscall::File",)))
    equal(costs["libc-log"][0], count(report, "APP::Libc::", "APP::Loader::"), "functions of the C library, and what its loader loads")
    equal(costs["syscall-log"][0], calls, "entries and exits of system calls")
    equal(costs["path-log"][0], paths, "paths of system calls")
    equal(costs["file-log"][0], files, "files of descriptors")
    equal(costs["kernel-log"][0], count(report, "OS::") - calls - paths - files, "other events of the kernel")
    assert costs["pool-page"][0], costs
    for kind in report["cost"]["kinds"]:
        assert 0 < kind["least_ns_each"] <= kind["ns_each"] <= kind["most_ns_each"], kind
    cost = report["cost"]
    assert cost["least_total_ns"] <= cost["total_ns"] <= cost["most_total_ns"], cost
    out = " ".join(run([PEM, "report", trace])[1].split())
    assert re.search(r"In all \S+ \S+ \(\S+ \S+ to \S+ \S+\), ", out) and "Not in it: what copying" in out, out


@test
def sets_of_events_are_remembered_together():
    "recordings of two sets of events by turns measure once for each what it costs processes"
    folder = tempfile.mkdtemp()

    def known_after(*options):
        shutil.rmtree(folder + "/trace", ignore_errors=True)
        rc, _, err = run([PEM, "record", "-q", "-e", "Malloc", *options, "-o", folder + "/trace", "--", "true"],
                         env={"XDG_CACHE_HOME": folder})
        equal(rc, 0, err)
        name, = os.listdir(folder + "/pem")
        with open(folder + "/pem/" + name) as costs:
            return costs.read()

    both = [known_after(*options) for options in ([], ["--no-libc"])][1]
    equal([known_after(*options) for options in ([], ["--no-libc"])], [both, both], "what is remembered")
    shutil.rmtree(folder)


@test
def lost_events_have_a_cost_of_their_own():
    "an event of a program that found no space in its buffer is charged as lost, and not as a recorded one"
    trace = os.path.join(tempfile.mkdtemp(), "trace")
    rc, _, err = run([PEM, "record", "-e", "Libc", "--buffer", "64K", "-o", trace, "--", "python3", "-S", "-c",
                      "for i in range(400000): bytearray(2000)"])
    equal(rc, 0, err)
    costs = ledger(trace)[1]
    with open(os.path.join(trace, ".pem", "balance")) as file:
        rows = [line.split("\t") for line in file if line.startswith("event\t")]
    produced, lost = (sum(int(row[i]) for row in rows) for i in (2, 4))
    if not lost:
        skip("the recorder kept up")
    equal(costs["lost"][0], lost, "lost events")
    equal(costs["libc-log"][0] + costs["lost"][0], produced, "events of the C library, and lost ones")
    assert costs["lost"][1], "the cost of a lost one is measured"
    shutil.rmtree(os.path.dirname(trace))


@test
def samples_have_a_cost():
    "what a timer's samples cost is in the ledger, for as many as there were"
    rc, out, _ = run([PEM, "list", "--json", "HPMsAndPC"])
    why = [e["reason"] for e in json.loads(out) if not e["available"]]
    if why:
        skip(why[0])
    trace, _ = record("HPMsAndPC", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
    report, costs = ledger(trace)
    equal(costs["sample"][0], count(report, "HPMsAndPC"), "samples")
    assert costs["sample"][0] and costs["sample"][1], costs


@test
def counters_cost_at_switches_and_faults():
    "where only counters were read, the report says what they cost as threads switch, or in whose time they were read, and no share of 0 ns"
    trace, _ = record("PageFaults", "true")
    out = run([PEM, "report", trace])[1]
    assert re.search(r"^(switch|fault|process-start) ", out, re.M) or "counters are read by the recorder" in " ".join(out.split()), out
    assert "In all 0 ns" not in out, out


@test
def switches_of_a_program_that_ran_already_are_said_to_be_missing():
    "the report of a program that the recorder attached to says that the number of its switches is not known; of a command it does not"
    here()
    words = "at switches of threads and at page faults, whose number is not known"
    program = subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE)
    recorder = Recorder("-p", str(program.pid), events="OS::Syscall::Enter,Sched")
    program.communicate(b"a line\n")
    recorder.end()
    out = " ".join(run([PEM, "report", recorder.trace])[1].split())
    assert "Not in the table: " in out and words in out, out
    trace, _ = record("OS::Syscall::Enter,Sched,HPMsAndPC", "sh", "-c", "sleep 0; sleep 0")
    out = " ".join(run([PEM, "report", trace])[1].split())
    assert "Not in it: " in out and words not in out, out


@test
def the_machine_is_the_base():
    "of the whole machine, the cost is a share of the machine's CPU time, and what ran is the command's time"
    here()
    if os.geteuid() != 0:
        skip("only root may observe the whole machine")
    trace, _ = record("Sched,PageFault,TaskClock", "sh", "-c", "sleep 0.3", options=("-a",))
    report, _ = ledger(trace)
    cost = report["cost"]
    equal(cost["share_of"], "machine", "share of")
    assert cost["machine_cpu_ns"] >= cost["program_cpu_ns"], cost
    assert cost["machine_cpu_ns"] <= report["info"]["ran_ns"] * os.cpu_count(), cost
    share = cost["total_ns"] * 100 / cost["machine_cpu_ns"]
    assert abs(cost["share_percent"] - share) <= share / 1000, cost
    out = run([PEM, "report", trace])[1]
    assert "OF MACHINE" in out and "of the machine's" in " ".join(out.split()), out
    assert re.search(r"TaskClock .* on all CPUs$", out, re.M), out
    alone, _ = record("PageFault", "true")
    equal(ledger(alone)[0]["cost"]["share_of"], "program", "share of")


@test
def a_machine_whose_time_was_not_told_at_first_is_no_base():
    "what ran since boot is not taken for what ran meanwhile"
    here()
    if os.geteuid() != 0:
        skip("only root may observe the whole machine, and mount")
    need_mounts()
    folder = tempfile.mkdtemp()
    trace = os.path.join(folder, "trace")
    script = 'mount --bind /dev/null /proc/stat && exec "$0" record -a -e PageFault -o "$1" -- umount /proc/stat'
    rc, _, err = run(["unshare", "-m", "sh", "-c", script, PEM, trace])
    equal(rc, 0, err)
    cost = ledger(trace)[0]["cost"]
    assert "machine_cpu_ns" not in cost and cost.get("share_of") != "machine", cost
    shutil.rmtree(folder)


@test
def what_could_not_be_measured_is_named():
    "the sum is the least where a kind's cost is not known, and the report names the kind"
    here()
    trace, _ = record("PageFault", "true")
    account = os.path.join(trace, ".pem", "run")
    with open(account) as file:
        text = file.read()
    whole = ledger(trace)[0]["cost"]
    equal(whole["unmeasured"], [], "unmeasured")
    with open(account, "w") as file:
        file.write(re.sub(r"(?m)^(cost=kernel-log\t)[^\t]*", r"\g<1>0", text))
    cost = ledger(trace)[0]["cost"]
    equal(cost["unmeasured"], ["kernel-log"], "unmeasured")
    assert cost["total_ns"] < whole["total_ns"], cost
    out = " ".join(run([PEM, "report", trace])[1].split())
    assert "In all at least " in out and "what could not be measured (kernel-log)" in out, out


run_all()
