#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kernel_module - what pem.ko costs, in instructions, beside lttng-modules and ftrace: all in one boot of a guest

	kernel/module_log2_insns	a system call's entry is logged, with its number and first argument
	kernel/module_disabled_insns	the module is loaded, a session logs another event, and the call is not wanted

The guest's cycle counter counts instructions (QEMU's -icount), so a figure is the same in every run: what a loop of system
calls takes beyond the same loop with no tracer. The median of batches is of calls only; 'in the mean' has what comes once in
many calls, a new chunk or sub-buffer, and the timer's interrupts. Nobody drains buffers meanwhile. What the kernel itself adds
as soon as anybody traces system calls is part of all figures.

lttng-modules record an entry with the call's parameters, in a channel as 'lttng' makes it: of dup2 two, as many as pem's fields;
of getppid none, which is less than pem and ftrace (all six arguments) record. Beside us stands what it takes for two.
"""
import os
import subprocess
import sys

from measure import BUILD, HERE, Missing, heading, report, wanted

ROOT = os.path.dirname(BUILD)
os.environ["B"] = BUILD
sys.path[:0] = [os.path.join(ROOT, "tests"), ROOT]
from guest_peers import KERNEL, TRACER, LttngModules, console, make_guest  # noqa: E402

LOG, DISABLED = "kernel/module_log2_insns", "kernel/module_disabled_insns"
BATCHES, CALLS = 200, 100
ROUNDS = 2
# Of each way: what the guest's sh runs before it, in front of the program, and after it.
HERE_THERE = "/pem/build/bench/"
WAYS = {
    "plain": ("", "", ""),
    "loaded": ("insmod $KO", "", ""),
    "pem": ("", HERE_THERE + "guest_pem OS::Syscall::Enter", ""),
    "unwanted": ("", HERE_THERE + "guest_pem OS::Mem::PageFault", "rmmod pem"),
    "ftrace": ("cd /sys/kernel/tracing; echo >trace; echo 1 >events/raw_syscalls/sys_enter/enable", "",
               "echo 0 >events/raw_syscalls/sys_enter/enable; "
               "awk '/^entries|^overrun/ { n += $2 } END { print \"held\", n, 0 }' per_cpu/cpu0/stats"),
    "lttng": ("", HERE_THERE + "guest_lttng $CALL", ""),
}


def script(ways, module, lttng):
    """What the guest runs: each way in turn, ROUNDS times; a line `way NAME CALL` before what it prints."""
    lines = ["KO=" + module] if module else []
    lines += ["insmod %s || exit 1" % path for path in lttng]
    for _ in range(ROUNDS):
        for call in ("getppid", "dup2"):
            lines.append("CALL=" + call)
            for way in ways:
                before, front, after = WAYS[way]
                lines += ["echo way %s $CALL" % way, before,
                          "%s %sguest_calls $CALL %d %d || exit 1" % (front, HERE_THERE, BATCHES, CALLS), after]
    return "".join(line.strip() + "\n" for line in lines if line)


def measure(guest, text, files):
    """Run the script: {(way, call): [(median, mean), one a round]}, and {(way, call): [(held, lost)]}."""
    costs, held, key, loops = {}, {}, None, []
    for line in console(guest, text, files):
        words = line.split()
        if words[:1] == ["way"]:
            key = tuple(words[1:])
        elif words[:1] == ["held"]:
            held.setdefault(key, []).append((int(words[1]), int(words[2])))
        elif key and len(words) == 3 and line[0].isdigit():
            loops.append(float(words[0]))
            costs.setdefault(key, []).append((float(words[1]), float(words[2])))
    if min(loops) != 2:
        raise Missing("the guest's cycle counter does not count instructions: %g for two" % min(loops))
    return costs, held


def check(held):
    """Was everything recorded?"""
    for (way, call), rounds in held.items():
        least = 0 if way == "unwanted" else BATCHES * CALLS * (8 if way == "lttng" and call == "dup2" else 1)
        for count, lost in rounds:
            if count < least or lost:
                raise Missing("%s of %s holds %d, not %d, and lost %d" % (way, call, count, least, lost))


def compile_peer(lttng):
    """guest_lttng, whose header came with the modules."""
    program = os.path.join(HERE, "guest_lttng")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-I", lttng.headers, "-o", program,
                    os.path.join(ROOT, "bench", "guest_lttng.c")], check=True)
    return program


def beyond(costs, way, call, base="plain"):
    """Instructions a call beyond base, one a round: (medians, means)."""
    pairs = list(zip(costs.get((way, call), ()), costs[base, call]))
    return [w[0] - b[0] for w, b in pairs], [w[1] - b[1] for w, b in pairs]


def peers(guest):
    """lttng-modules for the guest, or None, having said why."""
    try:
        return LttngModules(guest.kernel)
    except Missing as why:
        print("kernel_module: no lttng-modules beside us: %s" % why)
        return None


def tell(chosen, costs, lttng):
    """Rows, and JSON."""
    if LOG in chosen:
        ours, mean = beyond(costs, "pem", "getppid")
        ftrace, ftrace_mean = beyond(costs, "ftrace", "getppid")
        two, two_mean = beyond(costs, "lttng", "dup2")
        none, _ = beyond(costs, "lttng", "getppid")
        more = {"peer_no_field": none[0], "peer_mean": two_mean[0]} if two else {}
        report("kernel_module", LOG, "instructions", ours, "lttng-modules " + (lttng.version if lttng else ""), two,
               "in the mean %.1f; ftrace %.2f (ratio %.3f)%s" % (
                   mean[0], ftrace[0], ours[0] / ftrace[0], "; lttng-modules without a field %.2f" % none[0] if two else ""),
               digits=2, mean=mean[0], ftrace=ftrace[0], ftrace_mean=ftrace_mean[0], ftrace_ratio=ours[0] / ftrace[0],
               exact=len(set(ours + [ours[0]])) == 1, dup2=beyond(costs, "pem", "dup2")[0][0], **more)
    if DISABLED in chosen:
        values = [v for way in ("unwanted", "loaded") for call in ("getppid", "dup2") for v in beyond(costs, way, call)[0]]
        report("kernel_module", DISABLED, "instructions", values, note="beyond the call's own %.2f with no module" % (
            costs["plain", "getppid"][0][0]), digits=2, plain=costs["plain", "getppid"][0][0])


def main():
    chosen = wanted(LOG, DISABLED)
    if not chosen:
        return
    heading("kernel_module", "in a guest, Linux %s, one CPU" % KERNEL)
    try:
        guest, module = make_guest()
        lttng = peers(guest) if LOG in chosen else None
        ways = [w for w in WAYS if w in ("plain", "loaded", "unwanted") or LOG in chosen and (w != "lttng" or lttng)]
        files = [module] + [os.path.join(HERE, name) for name in ("guest_calls", "guest_pem")]
        if lttng:
            files += [compile_peer(lttng)] + [lttng.module(name) for name in TRACER]
        costs, held = measure(guest, script(ways, guest.place(module), [lttng.module(n) for n in TRACER] if lttng else []), files)
        check(held)
        tell(chosen, costs, lttng)
    except Missing as why:
        print("kernel_module: %s" % why)


main()
