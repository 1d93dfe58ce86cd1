# SPDX-License-Identifier: MIT
"""guest_runner: what the guests' runner says of programs that fail and of guests that die; nothing of pem is in them"""
import contextlib
import io
import os
import tempfile
import threading
import time

from guest import assemble, emulators, machine
from guest.machine import Machine
from guest.suite import Program, Tap, Turn, attend_all, run_suite
from lab import kernels
from tap import equal, run_all, skip, test, tmp

LIMIT_S = 300  # a fetch
LONG_S = 25
KERNEL = "x86_64-6.1"


def programs():
    """Programs for a guest, none of which has run."""
    return (
        Program("passes", "echo 'ok 1 - one'; echo 1..1"),
        Program("breaks-off", "echo 'not ok 1 - six'; echo 1..1; printf 'a line without an end'; exit 1"),
        Program("warns", "echo 'ok 1 - two'; echo 1..1; echo 'WARNING: something is wrong' >/dev/kmsg"),
        Program("hangs", "echo 'ok 1 - three'; sleep 1000", limit_s=2),
        Program("skips", "echo 'there is no hope'; exit 77"),
        Program("panics", "echo 'ok 1 - four'; echo c >/proc/sysrq-trigger; sleep 1000"),
        Program("waits", "echo 'ok 1 - five'"),
    )


said = []


def told(machines=1, limit_s=180, **options):
    """What is reported of a guest with these programs, and how many failed; options are of Machine."""
    kernel = kernels.KERNELS[KERNEL]
    guest, output = assemble.Guest(KERNEL), io.StringIO()
    listed = programs()
    image = guest.image([(p.name, p.command) for p in listed])
    try:
        with contextlib.redirect_stdout(output):
            tap = Tap("guest")
            attend_all([Machine(kernel, image, limit_s=limit_s, asks=machines > 1, **options) for _ in range(machines)],
                       listed, tap)
    finally:
        os.unlink(image)
    return output.getvalue().splitlines(), tap.failed


def booted():
    """The report of one boot, for all tests."""
    try:
        kernel = kernels.KERNELS[KERNEL]
        missing = Machine(kernel, "").missing
        if missing:
            raise kernels.Unavailable(missing)
        kernels.fetch(kernel)
    except kernels.Unavailable as why:
        skip(str(why))
    if not said:
        said.append(told())
    return said[0][0]


def details(start):
    """The lines that explain a result."""
    lines = booted()
    at = [i for i, line in enumerate(lines) if start in line]
    equal(len(at), 1, "results with %r in %r" % (start, lines))
    assert lines[at[0]].startswith("not ok "), lines[at[0]]
    after = lines[at[0] + 1:]
    return after[:next((i for i, line in enumerate(after) if not line.startswith("# ")), len(after))]


@test
def a_program_that_passes():
    "a result of a program's is one of the guest's, under the program's name; a skipped one has its reason"
    assert any(line.startswith("ok ") and line.endswith("guest: passes: one") for line in booted()), booted()
    assert any(line.endswith("guest: skips # SKIP there is no hope") for line in booted()), booted()


@test
def a_program_that_breaks_off():
    "a program whose output ends within a line is reported as any other"
    assert "# a line without an end" in details("breaks-off: six"), booted()


@test
def a_kernel_that_warns():
    "what the kernel complains of is a failure of the program that ran"
    assert any("WARNING: something is wrong" in line for line in details("warns: the kernel has nothing")), booted()


@test
def a_program_that_hangs():
    "a program that outlives its limit is killed, and the next one runs"
    assert any("it was not done within 2 s" in line for line in details("hangs: test 2")), booted()


@test
def a_guest_that_panics():
    "a panic is a failure of the program that ran, with the kernel's stack; what did not run is named"
    lines = details("panics: the guest lives")
    assert any("the guest's kernel panicked" in line for line in lines), lines
    assert any("sysrq_handle_crash" in line for line in lines), lines
    assert any("the guest's kernel panicked" in line for line in details("waits: not run")), booted()
    equal(said[0][1], 5, "failures")


@test
def machines_that_share_a_guest():
    "of two machines each runs what the other does not, and goes on alone when the other is dead"
    booted()
    lines, failed = told(machines=2)
    for said_once in ("passes: one", "breaks-off: six", "warns: two", "hangs: three", "panics: the guest lives",
                      "waits: five"):
        equal(sum(line.endswith("guest: " + said_once) for line in lines), 1, said_once)
    equal(failed, 4, "failures: what breaks off, what warns, what hangs, what panics")


@test
def a_guest_that_panics_and_stays():
    "a kernel that does not end when it panics is ended, long before the time of its guest is up"
    booted()
    lines, failed = told(append="panic=0", panic_s=2, limit_s=10 * LIMIT_S)
    assert any("the guest's kernel panicked" in line for line in lines), lines
    equal(failed, 5, "failures")


@test
def a_guest_that_does_not_answer():
    "a guest that is not done in time is ended, and named as that"
    booted()
    lines, failed = told(limit_s=0.5, quiet_s=0.1)
    assert any("the guest did not end within 0.5 s" in line for line in lines), lines
    assert any("the emulator says of its CPUs" in line for line in lines), lines
    equal(failed, 1 + len(programs()), "failures")


@test
def a_guest_that_stands_still():
    "a guest that says nothing for too long is ended long before its time, and says what its CPUs and tasks do"
    booted()
    kernel, guest = kernels.KERNELS[KERNEL], assemble.Guest(KERNEL)
    image = guest.image([("sleeps", "sleep 1000")])
    try:
        still = Machine(kernel, image, limit_s=180)
        for line in still.run():
            if line == machine.MARK + "begin sleeps":
                still.silent_s = 0.5
    finally:
        os.unlink(image)
    assert still.why.startswith("the guest said nothing for 0.5 s"), still.why
    report = "\n".join(still.last)
    for said in ("and its emulator took ", "NMI backtrace for cpu 0", "NMI backtrace for cpu 1", "Show Blocked State",
                 "task:sleep ", "do_nanosleep+", "\nCPU#0\nRIP=", "\nCPU#1\nRIP=", "Kernel panic - not syncing: NMI"):
        assert said in report, "no %r in %s" % (said, report)
    for said in ("task:kthreadd", "task:khungtaskd", "cfs_rq", "(qemu)", "\x1b"):
        assert said not in report, "%r in %s" % (said, report)


class Canned:
    """In the place of a machine: its console says just this."""

    def __init__(self, lines, why=None):
        self.lines, self.why, self.last = lines, why, []

    def run(self):
        return iter(self.lines)

    def cpu_s(self):
        return 0

    def allow(self, limit_s):
        pass


def told_of(lines, why=None):
    """What is reported of a console and two programs, besides what passed."""
    output, boot = io.StringIO(), ["@@begin boot", "@@end 0"]
    with contextlib.redirect_stdout(output):
        attend_all([Canned(boot + lines, why)], [Program("one", ""), Program("two", "")], Tap("guest"))
    return [line.partition("guest: ")[2] for line in output.getvalue().splitlines() if line.startswith("not ok")]


@test
def what_is_not_seen_to_end():
    "no program, and no guest, is forgotten whose end is not seen"
    one, two = ["@@begin one", "ok 1 - a", "@@end 0"], ["@@begin two", "ok 1 - b", "@@end 0"]
    equal(told_of(one + two + ["@@off"]), [], "failures of what ends")
    equal(told_of(one[:2] + two + ["@@off"]), ["one: it ends"], "failures where another program begins")
    equal(told_of(one + two[:2] + ["@@off"]), ["two: the guest lives"], "failures where the guest ends")
    equal(told_of(one + two, "it is dead"), ["two: the guest lives"], "failures where the guest dies between programs")


@test
def a_word_in_no_programs_name():
    "where no program is asked for, that is said, and is no success"
    booted()
    output, kept = io.StringIO(), os.environ.pop("GUESTS", None)
    try:
        with contextlib.redirect_stdout(output):
            equal(run_suite(KERNEL, "no such program"), 1, "status")
    finally:
        if kept is not None:
            os.environ["GUESTS"] = kept
    assert "no test for this guest has 'no such program' in its program's name" in output.getvalue(), output.getvalue()


@test
def turns_are_taken_in_turn():
    "who gave up a turn and wants the next one leaves it to who waited for it"
    folder = tmp()
    first, second = Turn(folder, 1), Turn(folder, 1)
    waits, had, rounds = threading.Event(), threading.Event(), 0

    def take_once():
        waits.set()
        second.take()
        had.set()
        second.give()

    first.take()
    other = threading.Thread(target=take_once)
    other.start()
    waits.wait()
    while not had.is_set() and rounds < 500:
        time.sleep(0.001)
        first.give()
        first.take()
        rounds += 1
    first.give()
    other.join()
    assert rounds < 500, "the other had to wait until it was wanted no more"


def unavailable(_name, _folder):
    raise kernels.Unavailable("there is no archive")


@test
def an_emulator_that_is_too_old():
    "where no newer emulator can be had, the guest's CPUs share a thread, and it is said why"
    kept, emulators.fill = (emulators.SINCE, emulators.fill, os.environ.get("GUEST_CACHE")), unavailable
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["GUEST_CACHE"], emulators.SINCE = folder, (999, 0)
            tried = Machine(kernels.KERNELS[KERNEL], "")
    finally:
        emulators.SINCE, emulators.fill = kept[:2]
        os.environ.pop("GUEST_CACHE")
        if kept[2]:
            os.environ["GUEST_CACHE"] = kept[2]
    if tried.missing:
        skip(tried.missing)
    assert "tcg,thread=single" in tried.command, tried.command
    assert "there is no archive" in tried.remark, tried.remark


run_all()
