# SPDX-License-Identifier: MIT
"""
suite.py - which tests run in a guest, and what came of them, as TAP

Not here: the guest itself (assemble.py), booting it (machine.py).

A test program tests/e2e/guest_*.py is a call of run_all() with a kernel's name. In its guest run
    the unit tests named in UNIT, as built for the host or, for a foreign machine, by a cross compiler, and then those in
    FOREIGN, too; those in MODULE a second time, with pem.ko in the place of BPF;
    each tests/guest/NAME.sh, by busybox's sh, and each tests/guest/NAME.c, a cmocka program as those of tests/unit are;
    each tests/e2e/NAME.py that asks for it, by this system's Python (python.py).
To add a test for guests, put a file into tests/guest which prints TAP, or ends with 77 and a last line that says why it
was skipped. It finds what tests/guest/run --help lists. A line in its first 30 that contains `guest:` and words may say
more, and makes a file of tests/e2e a test for guests:
    kernels=GLOB,..   only in these guests, such as x86_64-*; elsewhere it is left out, not skipped
    limit=S           seconds of CPU time that the emulator may take for each CPU of the guest, or wait in while it wants none
                      (180)
    file=PATH         something else to take along, relative to the tree; may be repeated. tests/guest/ring_module is the
                      module that is made of it, which then lies at build/guest/KERNEL/ring/pem_ring_test.ko
    bpf=GLOB,.. module=GLOB,..  of tests/e2e: only in these guests, served by BPF and by pem.ko; PEM_TEST_SOURCE says by whom
An emulated machine is slow: each test of tests/e2e runs in one guest for each path, what BPF serves in Linux 6.12, what
the module serves in 6.1, which has the least time. PEM_TEST_EMULATED is set in guests: a test that repeats something may
repeat it less often.
The programs of a guest are shared by two machines with one image, each of which takes the next one when it is done with one.
GUESTS, if it is set, names the kernels that are tested, parted by spaces; the others are skipped.
Whatever the kernel complains of while a program runs is a failure of that program's.
"""
import concurrent.futures
import fcntl
import fnmatch
import glob
import itertools
import os
import re
import sys
import threading
import time

from guest import assemble, python
from guest.machine import MARK, Machine
from lab import kernels
from lab.cross import Failed
from lab.image import Missing
from results import Results
from tap import BUILD, ROOT

UNIT = "kernel_*", "counters_ring", "counters_plugin"
FOREIGN = "probe_text",  # for a machine other than this one, where what they test is compiled otherwise
MODULE = "kernel_log", "kernel_statistics", "kernel_where", "kernel_distribution"  # of UNIT, once more served by pem.ko
RING_MODULE = os.path.join(ROOT, "tests", "guest", "ring_module")
LIMIT_S = 180
# Memory of the kernel's that is written to beyond its end, or after it was freed, is found there, and not only if it hurts.
# That doubles what the kernel takes: one guest of each kernel and of each machine pays it. The guest where the module serves
# tests/e2e has it for the caches that pem.ko allocates from, which are those charged to somebody.
CHECKED = {"x86_64-6.12": "slub_debug=FZP", "aarch64-6.1": "slub_debug=FZP", "x86_64-6.1": "slub_debug=FZP,kmalloc-cg*"}
UNENDED = re.compile(r"(.+)(%s(?:end \d+|log .*))$" % MARK)  # where a line of output and init's word about it meet
MACHINES = 2  # that share the programs of one guest
GUEST_LIMIT_S = 2400  # of all programs together: seconds of the emulator's two CPUs
SILENT_S = 300  # longer than any program may say nothing: the guest stands still


class Program(Results):
    """A test program of the guest's: what it is called in reports, its command there, and files that it needs."""

    def __init__(self, name, command, files=(), limit_s=LIMIT_S, script=None):
        super().__init__(name)
        self.script = script  # for Python
        self.command, self.files, self.limit_s = command, list(files), limit_s
        self.log, self.over = [], False


class Tap:
    """Prints results, one a line, with numbers; of several threads."""

    def __init__(self, prefix):
        self.prefix, self.count, self.failed, self.lock = prefix, 0, 0, threading.RLock()
        print("TAP version 13", flush=True)

    def result(self, name, details=None, skip=None):
        """One result: passed, or failed with details (a list of lines), or skipped with a reason."""
        with self.lock:
            self.count += 1
            self.failed += details is not None
            print("%s %d - %s: %s%s" % ("ok" if details is None else "not ok", self.count, self.prefix,
                                       name.replace("#", "no."), " # SKIP " + skip if skip else ""))
            for line in details or ():
                print("# " + line)
            sys.stdout.flush()

    def remark(self, text):
        with self.lock:
            print("# " + text, flush=True)

    def program(self, program, remark):
        """All results of a program that is over, and a remark."""
        with self.lock:
            self._results(program)
            print("# %s %s" % (program.name, remark), flush=True)

    def _results(self, program):
        for test in program.passed:
            self.result("%s: %s" % (program.name, test))
        for test, why in program.skipped:
            self.result(program.name if test == program.name else "%s: %s" % (program.name, test), skip=why)
        for test, details in program.failed:
            self.result("%s: %s" % (program.name, test), details[-40:])
        if program.log:
            self.result("%s: the kernel has nothing to complain of" % program.name, program.log[-60:])

    def end(self):
        print("1..%d" % self.count, flush=True)
        return 1 if self.failed else 0


def wishes(path):
    """What a test of tests/guest says about itself: a list of (word, value)."""
    with open(path, encoding="utf-8") as text:
        said = [line.split("guest:", 1)[1] for line in text.readlines()[:30] if "guest:" in line]
    return re.findall(r"(kernels|limit|file|bpf|module)=(\S+)", " ".join(said))


def units(guest):
    """Names of the unit tests that run in a guest."""
    wanted = UNIT + FOREIGN if guest.kernel.foreign else UNIT
    names = sorted(os.path.basename(source)[:-2] for source in glob.glob(os.path.join(ROOT, "tests", "unit", "*.c")))
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in wanted)]


def wish(said, word, default):
    """What was said last of a word."""
    return ([value for told, value in said if told == word] or [default])[-1]


def is_for(guest, patterns):
    return any(fnmatch.fnmatch(guest.kernel.name, pattern) for pattern in patterns.split(","))


def taken(guest, said):
    """Paths of what a test wants to have along."""
    wanted = [value for word, value in said if word == "file"]
    return [os.path.join(guest.build, path[len("build/"):]) if path.startswith("build/") else os.path.join(ROOT, path)
            for path in wanted]


def end_to_end(guest):
    """Those of tests/e2e. A foreign machine has no Python."""
    for source in [] if guest.kernel.foreign else sorted(glob.glob(os.path.join(ROOT, "tests", "e2e", "*.py"))):
        said = wishes(source)
        paths = [path for path in ("bpf", "module") if is_for(guest, wish(said, path, ""))]
        if not paths:
            continue
        name, limit_s = os.path.basename(source)[:-3], int(wish(said, "limit", LIMIT_S))
        files = python.sources(source)[0] + taken(guest, said)
        for path in paths:
            words = "PEM_TEST_SOURCE=%s " % path
            if path == "bpf":
                words += "PEM_PLUGIN_PATH=%s " % assemble.WITHOUT_MODULE
            yield Program("%s/%s" % (path, name), words + python.command(source), files, limit_s, source)


def programs(guest):
    """The programs for this guest."""
    chosen = []
    for name in units(guest):
        path = os.path.join(guest.build, "tests", name)
        chosen.append(Program("unit/" + name, "build/tests/" + name, [path]))
        if name in MODULE:
            chosen.append(Program("module/" + name, "PEM_TEST_SOURCE=module build/tests/" + name, [path]))
    for source in sorted(glob.glob(os.path.join(ROOT, "tests", "guest", "*.sh")) +
                         glob.glob(os.path.join(ROOT, "tests", "guest", "*.c"))):
        said = wishes(source)
        if not is_for(guest, wish(said, "kernels", "*")):
            continue
        name, kind = os.path.splitext(os.path.basename(source))
        files = taken(guest, said)
        if kind == ".c":
            command, files = "build/tests/guest/" + name, files + [os.path.join(guest.build, "tests", "guest", name)]
        else:
            command, files = "sh tests/guest/%s.sh" % name, files + [source]
        chosen.append(Program("guest/" + name, command, files, int(wish(said, "limit", LIMIT_S))))
    # Those that take longest come first, so that no machine is left with one at the end.
    return list(end_to_end(guest)) + chosen


class Shared:
    """Programs that the machines of one image share: each takes the next one when it is done with one."""

    def __init__(self, programs):
        self.programs, self.left, self.lock = programs, {p.name: p for p in programs}, threading.Lock()
        self.numbers = itertools.count(1)

    def number(self):
        """Of the next program; one too great, if there is none."""
        with self.lock:
            return next(self.numbers)


class Turn:
    """Leave to keep a CPU busy: as many of all guests' machines have it at a time as there are CPUs."""

    def __init__(self, folder=os.path.join(BUILD, "guest"), count=len(os.sched_getaffinity(0))):
        os.makedirs(folder, exist_ok=True)
        self.paths = [os.path.join(folder, "turn-%d" % i) for i in range(count)]
        self.next = os.path.join(folder, "turn-next")
        self.file = None

    def take(self):
        if self.file:
            return
        # One looks at a time: else who gave one up would have it again before who waits looks for the next time.
        with open(self.next, "w", encoding="ascii") as first:
            fcntl.flock(first, fcntl.LOCK_EX)
            while not self._try():
                time.sleep(0.005)

    def _try(self):
        for path in self.paths:
            file = open(path, "w", encoding="ascii")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.file = file
                return True
            except BlockingIOError:
                file.close()
        return False

    def give(self):
        if self.file:
            self.file.close()
        self.file = None


def attend(machine, number, shared, tap, turn):
    """Boot, and report each program as it ends."""
    turn.take()
    try:
        follow(machine, number, shared, tap, turn)
    finally:
        turn.give()


def told_lines(machine):
    """Lines of the console; what init says of a program whose output's last line has no end is a line of its own."""
    for line in machine.run():
        said = UNENDED.match(line)
        yield from said.groups() if said else (line,)


def follow(machine, number, shared, tap, turn):
    boot = Program("boot", "")
    current, before, began, cpu_s = boot, boot, time.monotonic(), 0
    for line in told_lines(machine):
        if not line.startswith(MARK):
            current.line(line)
            continue
        word, _, rest = line[len(MARK):].partition(" ")
        if word == "next":
            chosen = shared.number()
            if chosen <= len(shared.programs):
                turn.take()
            machine.tell(chosen)
            began, cpu_s = time.monotonic(), machine.cpu_s()
        elif word == "begin":
            if not current.over and rest != current.name:
                tap.result("%s: it ends" % current.name, ["%s began before" % rest] + machine.last)
            before, current = current, shared.left.pop(rest, boot)
            machine.allow(current.limit_s)
        elif word == "log":
            current.log.append(rest)
        elif word == "note":
            tap.remark("%s: %s" % (current.name, rest))
        elif word == "end":
            current.over = True
            machine.allow(None)
            turn.give()
            if current is boot:
                failure = None if rest == "0" else current.pending[-20:]
                if failure is not None or not current.log:
                    tap.result("boots and loads pem.ko", failure)
            else:
                status = int(rest)
                current.end(status, "it was not done within %d s" % current.limit_s if status == 137 else None)
            tap.program(current, "took %.1f s, %.1f s of CPU, on machine %d behind %s" %
                        (time.monotonic() - began, machine.cpu_s() - cpu_s, number, before.name))
    if machine.why or not current.over:
        why = machine.why or "the guest is off, and did not say that this is over"
        tap.result("%s: the guest lives" % current.name, [why + "; the console's last lines:"] + machine.last)


def attend_all(machines, programs, tap):
    """Run programs in machines of one image, side by side; what none of them came to is a failure."""
    shared = Shared(programs)
    with concurrent.futures.ThreadPoolExecutor(len(machines)) as pool:
        try:
            for done in [pool.submit(attend, machine, i + 1, shared, tap, Turn()) for i, machine in enumerate(machines)]:
                done.result()
        except BaseException:
            for machine in machines:
                machine.stop()
            raise
    for program in shared.left.values():
        tap.result("%s: not run" % program.name, [m.why for m in machines if m.why] or ["no machine took it"])


def run_suite(name, word=""):
    """Run the tests whose program's name contains word in one guest; print TAP; the exit status for tests/run."""
    kernel = kernels.KERNELS[name]
    asked = os.environ.get("GUESTS", "").split()
    if asked and name not in asked:
        print("# %s: not one of those asked for: GUESTS=%s" % (name, " ".join(asked)))
        return 77
    machine = Machine(kernel, "")
    try:
        if machine.missing:
            raise kernels.Unavailable(machine.missing)
        fetched = kernels.fetch(kernel)
    except kernels.Unavailable as why:
        print("# %s: %s" % (name, why))
        return 77
    tap = Tap(name)
    tap.result("Linux %s %s" % (kernel.release, "is fetched" if fetched else "is in the cache"))
    guest, image = assemble.Guest(name), None
    try:
        waiting = [p for p in programs(guest) if word in p.name]
        if not waiting:
            raise Missing("no test for this guest has %r in its program's name" % word)
        module = guest.module()
        tap.result("make kmod builds pem.ko")
        if kernel.foreign:
            guest.cross_build(units(guest))
            tap.result("pem and its tests are built for %s" % kernel.machine)
        for program in waiting:
            program.files = [guest.ring_module() if path == RING_MODULE else path for path in program.files]
        image = guest.image([(p.name, p.command) for p in waiting], module,
                            [path for p in waiting for path in p.files], [p.script for p in waiting if p.script])
        machines = [Machine(kernel, image, append=CHECKED.get(name, ""), limit_s=GUEST_LIMIT_S, silent_s=SILENT_S, asks=True)
                    for _ in range(min(MACHINES, len(waiting)))]
        if machine.remark:
            print("# %s: %s" % (name, machine.remark))
        attend_all(machines, waiting, tap)
    except (Failed, Missing) as why:
        tap.result("everything for the guest is built", str(why).splitlines())
    finally:
        if image:
            os.unlink(image)
    return tap.end()


def run_all(name):
    """The whole test program of one kernel."""
    sys.exit(run_suite(name))
