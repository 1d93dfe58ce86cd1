# SPDX-License-Identifier: MIT
"""
standstill.py - asks a guest that stands still what its CPUs and tasks are doing

The kernel is asked first, by SysRq on the serial console, then the emulator, which answers even if no CPU of the guest takes
interrupts. The console's escape is QEMU's (-serial mon:stdio). The guest is not to go on: last comes an NMI, of which it panics,
which tells where its first CPU is that takes no interrupts.

Not here: when a guest stands still (machine.py).
"""
import re
import time

# For the kernel's command line.
WORDS = "sysrq_always_enabled unknown_nmi_panic"
BREAK, MONITOR = b"\x01b", b"\x01c"
# All messages to the console; each CPU's stack; tasks that wait for what no signal ends; all tasks.
KEYS = b"8", b"l", b"w", b"t"
QUIET_S = 1.5  # an answer that pauses for so long is over, unless a Machine says otherwise
ANSWER_S = 15  # and after so long, too
TASK = re.compile(r"task:(\S+) +state:(\S) .*\bpid:(\d+) .*\bppid:(\d+)")
KTHREADD = "2"  # of which all threads of the kernel's are children
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x08")  # the monitor edits its line


def ask(machine):
    """Lines of a report. read() and write() of machine are its console's."""
    before, began = machine.cpu_s(), time.monotonic()
    first = answer(machine)
    yield "the guest stands still, and its emulator took %.1f s of CPU in %.1f s; the kernel says (SysRq l, w and t):" % (
        machine.cpu_s() - before, time.monotonic() - began)
    yield from first
    for key in KEYS:
        machine.write(BREAK + key)
        lines = answer(machine)
        yield from chosen(lines) if key == b"t" else lines
    yield "the emulator says of its CPUs:"
    machine.write(MONITOR + b"info registers -a\n")
    yield from (line for line in map(plain, answer(machine)) if re.match(r"CPU#|RIP=|\s*PC=", line))
    yield "where an NMI finds CPU 0:"
    machine.write(b"nmi\n")
    yield from filter(None, map(plain, answer(machine)))


def plain(line):
    """Without the monitor's prompt, and what was typed there."""
    return re.sub(r"^\(qemu\) ([nmi]+$)?", "", ESCAPES.sub("", line))


def answer(machine):
    """The lines of the console until it is quiet."""
    lines, end = [], time.monotonic() + ANSWER_S
    while not machine.at_end and time.monotonic() < end:
        said = machine.read(machine.quiet_s)
        if said is None:
            break
        lines += said
    return lines


def chosen(lines):
    """Of all tasks those of users, and those of the kernel that do not sleep."""
    keep = True
    for line in lines:
        if "Sched Debug Version" in line:  # statistics of the scheduler follow
            return
        task = TASK.search(line)
        if task:
            _, state, pid, parent = task.groups()
            keep = state not in "SI" or KTHREADD not in (pid, parent)
        if keep:
            yield line
