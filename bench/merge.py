#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
merge - how fast traces are read: reader/merge_context, reader/pass, reader/pass_ahead, reader/text_perf, reader/text_trace_cmd

	reader/merge_context	records per second of CPU time that pem's reader hands out, in order of time over all streams and with process
				and thread of the kernel's: system calls and what programs allocate on all CPUs, read from memory
	reader/pass		the same with all context: states of threads, open intervals, phases, messages and blocks (pem/context.h)
	reader/pass_ahead	the same, records per second of time that passes, with a thread that reads ahead (pem_trace__read_ahead), beside
				one thread
	reader/text_perf	the same written as text, to nowhere: pem export --to csv, beside perf script
	reader/text_trace_cmd	the same beside trace-cmd report

babeltrace2 reads the same trace, of fewer rounds, with its muxer and without output (-o dummy). Its CPU time counts from its
start to its end, the reading of metadata included, as ours does; once it counts what it reads, which must be all. perf and
trace-cmd record begins and ends of system calls and switches of threads themselves, of the same commands: their readers merge
CPUs and find processes, too, but have no way to write nothing. trace-cmd extracts what an instance of tracefs has recorded.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

from measure import Folder, HERE, Missing, PEM, QUICK, balance, heading, private_tracefs, report, wanted

ROUNDS = 1 if QUICK else 7
PEER_ROUNDS = 1 if QUICK else 3
BYTES = 20_000 if QUICK else 3_000_000
READ = os.path.join(HERE, "read_trace")
EVENTS = "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "sched:sched_switch"
MERGE, PASS, AHEAD, TEXT_PERF, TEXT_TRACE_CMD = CASES = (
    "reader/merge_context", "reader/pass", "reader/pass_ahead", "reader/text_perf", "reader/text_trace_cmd")


def work(share=1):
    return ["sh", "-c", "for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=1 count=%d status=none & done; "
            "for i in 1 2 3 4 5 6 7 8; do find /usr/share -size +1 >/dev/null 2>&1; done; wait" % (BYTES // share // 3)]


def record(folder):
    trace = folder.fresh("trace")
    done = subprocess.run([PEM, "record", "-q", "--buffer", "256M", "-e", "OS,APP", "-o", trace, "--", *work()])
    if done.returncode:
        sys.exit("merge: nothing was recorded")
    return trace


def ours(trace, *how):
    """Millions of records a second of one reading: of CPU time, and of time that passes."""
    done = subprocess.run([READ, trace, *how], stdout=subprocess.PIPE, check=True, universal_newlines=True)
    records, cpu_ns, passed_ns = map(int, done.stdout.split())
    if records != balance(trace)[1]:
        sys.exit("merge: %d records, and the trace says %d" % (records, balance(trace)[1]))
    return records * 1e3 / cpu_ns, records * 1e3 / passed_ns


def rate(records, *command):
    """Millions of records a second of a command's CPU time."""
    done = subprocess.run(["sh", "-c", '"$@" >/dev/null 2>&1 || exit 1; times', "sh", *command],
                          stdout=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        sys.exit("merge: '%s' does not read the trace" % " ".join(command))
    minutes, seconds = zip(*re.findall(r"(\d+)m([\d.]+)s", done.stdout.splitlines()[1]))
    return records / (60e6 * sum(map(int, minutes)) + 1e6 * sum(map(float, seconds)))


def count_babeltrace(trace):
    """That babeltrace2 reads every event."""
    done = subprocess.run(["babeltrace2", trace, "--component=counter:sink.utils.counter"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, universal_newlines=True)
    counted = re.findall(r"^\s*([\d,]+) Event messages", done.stdout, re.M)  # again and again, the last being of all
    if not counted or int(counted[-1].replace(",", "")) != balance(trace)[1]:
        sys.exit("merge: babeltrace2 counts %s events of %d" % (counted[-1] if counted else "no", balance(trace)[1]))


# --- peers that write text ---

def lines_of(command):
    """How many records a reader shows."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    count = sum(1 for line in done.stdout.splitlines() if b"sys_" in line or b"sched_switch" in line)
    if done.returncode or not count:
        raise Missing("%s shows nothing" % command[0])
    return count


def perf(folder):
    """What perf script reads: (command, records)."""
    if not shutil.which("perf"):
        raise Missing("perf is not installed (linux-perf)")
    private_tracefs()
    data = folder.fresh("perf.data")
    done = subprocess.run(["perf", "record", "-q", "-m", "16M", "-o", data, *[word for e in EVENTS for word in ("-e", e)], "--",
                           *work(4)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        raise Missing("perf record: " + done.stderr.strip()[-120:])
    command = ["perf", "script", "-i", data]
    return command, lines_of(command)


def put(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def trace_cmd(folder):
    """What trace-cmd report reads: (command, records)."""
    if not shutil.which("trace-cmd"):
        raise Missing("trace-cmd is not installed")
    instance = os.path.join(private_tracefs(), "instances", "pem_bench")
    data = folder.fresh("trace.dat")
    try:
        os.mkdir(instance)
        put(instance + "/buffer_size_kb", "400000")
        for switch in "1", "0":
            for event in EVENTS:
                put("%s/events/%s/enable" % (instance, event.replace(":", "/")), switch)
            if switch == "1":
                subprocess.run(work(4), stdout=subprocess.DEVNULL, check=True)
        for stats in glob.glob(instance + "/per_cpu/cpu*/stats"):
            with open(stats, encoding="ascii") as file:
                if int(re.search(r"^overrun: (\d+)", file.read(), re.M).group(1)):
                    raise Missing("its buffer was too small")
        done = subprocess.run(["trace-cmd", "extract", "-B", "pem_bench", "-o", data], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, universal_newlines=True)
        if done.returncode:
            raise Missing("trace-cmd extract: " + done.stderr.strip()[-120:])
    except OSError as error:
        raise Missing(str(error)) from error
    finally:
        if os.path.isdir(instance):
            os.rmdir(instance)
    command = ["trace-cmd", "report", "-i", data]
    return command, lines_of(command)


def text(case, peer, make_peer, folder, trace):
    command, one_cpu = [], ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    try:
        command, records = make_peer(folder)
    except Missing as why:
        print("no %s beside us: %s" % (peer, why), flush=True)
    mine, theirs = [], []
    for _ in range(PEER_ROUNDS):
        mine.append(rate(balance(trace)[1], *one_cpu, PEM, "export", "--to", "csv", "-o", "/dev/null", trace))
        if command:
            theirs.append(rate(records, *one_cpu, *command))
    report("merge", case, "M events/s", mine, peer, theirs, digits=2,
           note="%d and %d records" % (balance(trace)[1], records) if command else "")


def main():
    chosen = wanted(*CASES)
    if not chosen:
        return
    heading("merge", "CPU time of one core, but for reader/pass_ahead")
    with Folder() as folder:
        trace = record(folder)
        rates, other, passes, here, ahead = [], [], [], [], []
        has_babeltrace = shutil.which("babeltrace2") and (MERGE in chosen or PASS in chosen)
        if has_babeltrace:
            count_babeltrace(trace)
        for _ in range(ROUNDS):
            if MERGE in chosen:
                rates.append(ours(trace)[0])
            if PASS in chosen or AHEAD in chosen:
                cpu, passed = ours(trace, "pass")
                passes.append(cpu)
                here.append(passed)
            if AHEAD in chosen and len(os.sched_getaffinity(0)) > 1:
                ahead.append(ours(trace, "pass", "ahead")[1])
            if has_babeltrace and len(other) < PEER_ROUNDS:
                other.append(rate(balance(trace)[1], "babeltrace2", "-o", "dummy", trace))
        if MERGE in chosen:
            report("merge", MERGE, "M events/s", rates, "babeltrace2", other, digits=2,
                   note="%d events in %d streams" % (balance(trace)[1], sum(n[0] in "uk" for n in os.listdir(trace))))
        if PASS in chosen:
            report("merge", PASS, "M events/s", passes, "babeltrace2", other, digits=2)
        if ahead:
            report("merge", AHEAD, "M events/s", ahead, "one thread", here, digits=2)
        elif AHEAD in chosen:
            print("no %s: there is one CPU only" % AHEAD, flush=True)
        if TEXT_PERF in chosen:
            text(TEXT_PERF, "perf script", perf, folder, trace)
        if TEXT_TRACE_CMD in chosen:
            text(TEXT_TRACE_CMD, "trace-cmd report", trace_cmd, folder, trace)


if __name__ == "__main__":
    main()
