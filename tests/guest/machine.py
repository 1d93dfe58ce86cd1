# SPDX-License-Identifier: MIT
"""
machine.py - boots a guest under QEMU and takes apart what it says on its console

Not here: what is in the guest (assemble.py, init), what its words mean for a test (suite.py).

The accelerator is always TCG: a guest behaves the same wherever the tests run, also where there is no KVM. It gives each of
the guest's CPUs a thread, if it is new enough to do that right (emulators.py).
"""
import os
import select
import shutil
import signal
import subprocess
import time

from guest import emulators, standstill
from patience import Patience

# Emulator, its package, board, CPU, words for the kernel. Emulated cycle counters agree, which Linux doubts; it panics if
# a machine with much else to do lets no tick of the timer through in time.
EMULATORS = {
    "x86_64": ("qemu-system-x86_64", "qemu-system-x86", "pc", "max", "console=ttyS0 tsc=reliable no_timer_check"),
    "aarch64": ("qemu-system-aarch64", "qemu-system-arm", "virt", "cortex-a57", "console=ttyAMA0"),
}
# Where instructions are not counted a CPU without wide vectors serves, no defence of one that runs ahead of itself, as no
# emulated one does, and no tests that the kernel's ciphers make of themselves: all are much to emulate, a third of the
# guest's time. What keeps the kernel out of users' memory and the fifth level of page tables stay: modules are tried against
# these.
QUICK_CPUS = {"x86_64": "Nehalem,+rdrand,+smep,+smap,+umip,+la57"}
QUICK = "mitigations=off cryptomgr.notests"
MARK = "@@"  # starts a line of init's own: see init
# What a kernel says that ends, and for how long it may say more. It may fail to: whatever made it panic may stop that, too.
PANICS = ("Kernel panic - not syncing",)
SOFT_LOCKUPS = ("BUG: soft lockup",)
PANIC_S = 20
LOOK_S = 1  # how often patience is looked at
KILL_ALL = b"i"  # SysRq: SIGKILL to all processes but init
LAST_LINES, PANIC_LINES = 80, 150


class Machine:
    """
    One boot. run() yields lines; afterwards `why` says why it ended early, or is None. limit_s: for all of it; silent_s: for
    each line of the console: seconds of the emulator's CPU time, or of waiting while it wants none (patience.py), so a busy
    machine's other programs use none of them. panic_s: for what a kernel says after it panicked; quiet_s: an answer that pauses
    for so long is over (standstill.py). asks: whoever takes the line MARK + "next" has to tell() a program's number (init).
    """

    def __init__(self, kernel, image, cpus=2, memory_mib=1024, append="", icount=None, limit_s=120, silent_s=None, panic_s=PANIC_S,
                 quiet_s=standstill.QUIET_S, asks=False):
        emulator, package, board, cpu, own = EMULATORS[kernel.machine]
        self.missing = None if shutil.which(emulator) else "%s is not installed (package %s)" % (emulator, package)
        self.limit_s, self.silent_s, self.why, self.child = limit_s, silent_s or limit_s, None, None
        self.cpus = cpus
        self.whole = self.silence = self.program = None  # patience: with the guest, its next line, what runs in it
        self.looked, self.heard = 0, False  # when patience was looked at, and whether a line came since
        self.panic_s, self.quiet_s, self.stopped = panic_s, quiet_s, False
        self.last = []  # the console's last lines
        self.rest, self.at_end = b"", False  # of the console: a line that has no end yet
        if not icount:
            cpu, append = QUICK_CPUS.get(kernel.machine, cpu), "%s %s" % (QUICK, append)
        words = "%s quiet panic=-1 oops=panic %s rdinit=/init %s%s" % (own, standstill.WORDS, append, " -- ask" if asks else "")
        called, threads, self.remark = [emulator], False, None
        # Exact counting of instructions, and several emulating threads, exclude each other.
        if not self.missing and not icount:
            called, threads, self.remark = emulators.command(emulator)
        self.panics_at = PANICS + (SOFT_LOCKUPS if "softlockup_panic=1" in append.split() else ())
        self.command = called + ["-M", board, "-cpu", cpu, "-nodefaults", "-display", "none", "-serial", "mon:stdio",
                                 "-no-reboot", "-smp", str(cpus), "-m", "%dM" % memory_mib, "-kernel", kernel.bootable,
                                 "-initrd", image, "-append", words.strip(),
                                 "-accel", "tcg,thread=" + ("multi" if threads else "single")]
        self.command += ["-icount", icount] if icount else []

    def allow(self, limit_s):
        """What runs in the guest from now on may take this of each of its CPUs; then it is killed. None: it has ended."""
        self.program = Patience(self.child.pid, limit_s * self.cpus) if limit_s else None

    def run(self):
        """Boot, and yield each line of the console until the guest is off, or its time is up."""
        if self.stopped:
            return
        ended, panic, deadline = False, None, None
        self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
        self.whole, self.silence = Patience(self.child.pid, self.limit_s), Patience(self.child.pid, self.silent_s)
        try:
            while not self.at_end:
                lines = self.read(min(LOOK_S, self.limit_s, self.silent_s))
                for line in lines or ():
                    self.last = (self.last + [line])[-(PANIC_LINES if panic else LAST_LINES):]
                    if not panic and any(said in line for said in self.panics_at):
                        panic = "the guest's kernel panicked: " + line
                        deadline = time.monotonic() + self.panic_s
                    ended = ended or line == MARK + "off"
                    yield line
                self.why = panic if panic and time.monotonic() > deadline else self._over(lines)
                if self.why:
                    if not panic:
                        yield from self._standstill()
                    return
        finally:
            self.stop()
        if not ended:
            self.why = panic or "the guest stopped before its work was done (status %d)" % self.child.returncode

    def _over(self, lines):
        """Why the guest has to end, or None. A program that took all that it may is killed, and the guest goes on."""
        self.heard = self.heard or bool(lines)
        if self.at_end or time.monotonic() - self.looked < min(LOOK_S, self.limit_s, self.silent_s):
            return None
        self.looked, heard, self.heard = time.monotonic(), self.heard, False
        self.silence.limit_s = self.silent_s
        if self.program and self.program.spent():
            self.program = None
            self.write(standstill.BREAK + KILL_ALL)
        whole, silence = self.whole.spent(), None
        if heard:
            self.silence.again()
        else:
            silence = self.silence.spent()
        return "the guest did not end within " + whole if whole else "the guest said nothing for " + silence if silence else None

    def read(self, wait_s):
        """What the console says next: lines, none if one has no end yet; None if it says nothing for so long."""
        descriptor = self.child.stdout.fileno()
        if not select.select([descriptor], [], [], wait_s)[0]:
            return None
        data = os.read(descriptor, 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        if not data:
            self.at_end, lines, self.rest = True, [self.rest] if self.rest else [], b""
        return [line.decode("utf-8", "replace").rstrip("\r") for line in lines]

    def _standstill(self):
        """What the guest's CPUs and tasks are doing, for the reader of a report."""
        for line in standstill.ask(self):
            self.last.append(line)
            yield line

    def tell(self, number):
        """Say a program's number on the console."""
        self.write(b"%d\n" % number)

    def write(self, data):
        """Onto the console."""
        try:
            self.child.stdin.write(data)
            self.child.stdin.flush()
        except OSError:
            pass  # it is gone, as run() is about to find

    def cpu_s(self):
        """Seconds of this machine's CPUs that the emulator took so far: on a busy machine they say more than a clock."""
        try:
            with open("/proc/%d/stat" % self.child.pid, encoding="ascii") as text:
                ticks = text.read().rpartition(")")[2].split()[11:13]
        except OSError:
            return 0
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """End the emulator, if it runs, and let it start no more."""
        self.stopped = True
        if not self.child:
            return
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.child.stdout.close()
        try:
            self.child.stdin.close()
        except OSError:
            pass
