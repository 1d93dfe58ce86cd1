#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
system_wide_guest - a kernel-heavy workload while pem.ko records everything, beside LTTng's modules and trace-cmd, in a guest

	kernel/system_wide_guest_find	find /sys -xdev
	kernel/system_wide_guest_pipe	two processes that pass a byte to and fro
	kernel/system_wide_guest_exec	a shell that starts programs

As system_wide does on this machine, where LTTng's modules and ours may not be loaded. Recorded are all system calls, the scheduler
as far as all three know it, and page faults; with each one's own tools and buffers as they come, into files in memory. The guest
has one CPU, on which the consumer runs, too: values are instructions until the workload is done, in per cent more than without
a recorder, all that the machine does meanwhile counted.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys

from measure import BUILD, HERE, Missing, PEM, QUICK, heading, report, wanted

ROOT = os.path.dirname(BUILD)
os.environ["B"] = BUILD
sys.path[:0] = [os.path.join(ROOT, "tests"), ROOT]
from guest_peers import KERNEL, LttngModules, console, make_guest  # noqa: E402

ROUNDS = 1 if QUICK else 3
SCHEDULER = ("switch", "waking", "wakeup", "wakeup_new", "migrate_task", "wait_task", "pi_setprio", "stat_wait", "stat_sleep",
             "stat_iowait", "stat_blocked", "stat_runtime")
CLASSES = ("OS::Sched::*", "OS::Syscall::Enter", "OS::Syscall::Exit", "OS::Mem::PageFault", "OS::Mem::KernelPageFault")
WORKLOADS = {
    "find": "find /sys -xdev",
    "pipe": "/pem/build/bench/calls pipe 10000",
    "exec": "sh -c 'i=0; while [ $i -lt 100 ]; do busybox true; i=$((i + 1)); done'",
}
RUN = "/pem/build/bench/guest_calls run "
DAEMONS = ("/usr/bin/lttng", "/usr/bin/lttng-sessiond", "/usr/share/xml/lttng/session.xsd")
CONSUMER = "/usr/lib/x86_64-linux-gnu/lttng/libexec/lttng-consumerd"


def pem_events():
    """Of the classes, those whose tracepoints the others have, too."""
    names = []
    for pattern in CLASSES:
        done = subprocess.run([PEM, "list", "--json", pattern], stdout=subprocess.PIPE, check=True)
        for event in json.loads(done.stdout):
            system, _, name = event["sources"][0].partition(":")
            if system != "sched" or name[len("sched_"):] in SCHEDULER:
                names.append(event["name"])
    return ",".join(names)


class Way:
    """How a workload is recorded in the guest: sh before everything, around the program, and to print 'lost LOST ALL'."""

    def __init__(self, name, files=(), begin="", front="", before="", after=""):
        self.name, self.files, self.begin, self.front, self.before, self.after = name, list(files), begin, front, before, after


def ours(place):
    balance = r"""awk -F'\t' '$1 == "event" { a += $3; b += $4 } END { print "lost", a - b, a }' /tmp/t/.pem/balance; rm -r /tmp/t"""
    return Way("pem", [], "insmod " + place, "pem record -q --no-libc -a -e %s -o /tmp/t -- " % pem_events(), "", balance)


def trace_cmd():
    if not shutil.which("trace-cmd"):
        raise Missing("trace-cmd is not installed")
    names = ["sched:sched_" + name for name in SCHEDULER] + ["raw_syscalls", "exceptions"]
    counts = ("trace-cmd report --stat -i /tmp/tc 2>&1 | awk -F': ' '/^(overrun|commit overrun|dropped events)/ { l += $2 } "
              "/^(entries|read events)/ { n += $2 } END { print \"lost\", l, l + n }'; rm /tmp/tc")
    return Way("trace-cmd", [shutil.which("trace-cmd")], "",
               "trace-cmd record -q -o /tmp/tc %s " % " ".join("-e " + name for name in names), "", counts)


def lttng(guest):
    for path in DAEMONS + (CONSUMER,):
        if not os.path.exists(path):
            raise Missing("%s is not here (lttng-tools)" % path)
    tree = LttngModules(guest.kernel).tree(os.path.join(guest.work, "lttng"), guest.kernel.release)
    modules = guest.place(os.path.dirname(os.path.dirname(tree[0])))
    begin = "mkdir -p /var/run; ln -s %s /lib/modules; lttng-sessiond -d --kmod-probes=sched,x86-exceptions" % modules
    before = ("lttng -q create w --output=/tmp/lt; lttng -q enable-event -k %s,x86_exceptions_page_fault_user,"
              "x86_exceptions_page_fault_kernel; lttng -q enable-event -k --syscall --all; lttng -q start" %
              ",".join("sched_" + name for name in SCHEDULER))
    after = ("lttng -q stop; lttng list w | awk '/Discarded events/ { l += $3 } END { print \"lost\", l + 0, 0 }'; "
             "lttng -q destroy w; rm -r /tmp/lt")
    return Way("lttng", list(DAEMONS) + [CONSUMER] + tree, begin, "", before, after)


def script(ways, chosen):
    lines = [way.begin for way in ways]
    for number in range(ROUNDS + 1):  # the first is for what is only found out, or read from a disk, once
        for case in chosen:
            for way in ways[number % len(ways):] + ways[:number % len(ways)]:
                lines += ["echo way %d %s %s" % (number, case, way.name), way.before,
                          "%s%s%s >/tmp/out 2>&1 || { tail -5 /tmp/out; exit 1; }" % (way.front, RUN, WORKLOADS[case]),
                          "grep '^ran ' /tmp/out || exit 1", way.after]
    return "".join(line + "\n" for line in lines if line)


def measure(guest, ways, chosen, files):
    """{(case, way): [instructions]}, {(case, way): [lost, of all]}."""
    ran, lost, key = {}, {}, None
    for line in console(guest, script(ways, chosen), files + [path for way in ways for path in way.files]):
        words = line.split()
        if words[:1] == ["way"]:
            number, key = int(words[1]), (words[2], words[3])
        elif words[:1] == ["ran"] and number:
            ran.setdefault(key, []).append(int(words[1]))
        elif words[:1] == ["lost"] and number:
            sums = lost.setdefault(key, [0, 0])
            sums[0], sums[1] = sums[0] + int(words[1]), sums[1] + int(words[2])
    return ran, lost


def tell(case, ways, ran, lost):
    plain = statistics.median(ran[case, "plain"])
    more = {way.name: [100 * (n / plain - 1) for n in ran[case, way.name]] for way in ways[1:]}
    others = ["%s %.2f" % (name, statistics.median(values)) for name, values in more.items() if name not in ("pem", "lttng")]
    losses = ["%s %d of %s" % (name, *[n or "unknown" if i else n for i, n in enumerate(lost[case, name])]) for name in more]
    report("system_wide_guest", "kernel/system_wide_guest_" + case, "% more", more["pem"], "LTTng", more.get("lttng", ()),
           "%s; lost: %s" % (", ".join(others), ", ".join(losses)), digits=2, plain=plain,
           lost={name: lost[case, name][0] for name in more},
           others={name: statistics.median(values) for name, values in more.items() if name != "pem"})


def main():
    chosen = [c.rpartition("_")[2] for c in wanted(*("kernel/system_wide_guest_" + w for w in WORKLOADS))]
    if not chosen:
        return
    heading("system_wide_guest", "in a guest, Linux %s, one CPU" % KERNEL)
    try:
        guest, module = make_guest()
        ways = [Way("plain"), ours(guest.place(module))]
        for make in (lambda: lttng(guest), trace_cmd):
            try:
                ways.append(make())
            except Missing as why:
                print("system_wide_guest: not beside us: %s" % why)
        files = [module] + [os.path.join(HERE, name) for name in ("guest_calls", "calls")]
        ran, lost = measure(guest, ways, chosen, files)
        for case in chosen:
            tell(case, ways, ran, lost)
    except Missing as why:
        print("system_wide_guest: %s" % why)


main()
