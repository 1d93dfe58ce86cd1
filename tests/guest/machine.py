# SPDX-License-Identifier: MIT
"""
machine.py - boots a guest under QEMU and takes apart what it says on its console

Not here: what is in the guest (image.py, init), what its words mean for a test (suite.py).

The accelerator is always TCG: a guest behaves the same wherever the tests run, also where there is no KVM. It gives each of
the guest's CPUs a thread only if it is QEMU 8.1 or newer. Older ones read instructions that they translate without a lock:
what another CPU writes there at that moment, as Linux does for each tracepoint and static key that is switched, is lost.
The guest then panics (int3), stands still, or goes past the tracepoint until it is switched again.
"""
import os
import re
import select
import shutil
import signal
import subprocess
import time

# Emulator, its package, board, CPU, words for the kernel. Emulated cycle counters agree, which Linux doubts; it panics if
# a machine with much else to do lets no tick of the timer through in time.
EMULATORS = {
    "x86_64": ("qemu-system-x86_64", "qemu-system-x86", "pc", "max", "console=ttyS0 tsc=reliable no_timer_check"),
    "aarch64": ("qemu-system-aarch64", "qemu-system-arm", "virt", "cortex-a57", "console=ttyAMA0"),
}
THREADS_SINCE = 8, 1
MARK = "@@"  # starts a line of init's own: see init


def version(emulator):
    """(major, minor); (0, 0) if it does not say."""
    said = subprocess.run([emulator, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, errors="replace").stdout
    found = re.search(r"version (\d+)\.(\d+)", said)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


class Machine:
    """One boot. run() yields lines; afterwards `why` says why it ended early, or is None."""

    def __init__(self, kernel, image, cpus=2, memory_mib=1024, append="", icount=None, limit_s=120):
        emulator, package, board, cpu, own = EMULATORS[kernel.machine]
        self.missing = None if shutil.which(emulator) else "%s is not installed (package %s)" % (emulator, package)
        self.limit_s, self.why, self.child = limit_s, None, None
        self.last = []  # the console's last lines
        words = "%s quiet panic=-1 oops=panic rdinit=/init %s" % (own, append)
        self.command = [emulator, "-M", board, "-cpu", cpu, "-nodefaults", "-display", "none", "-serial", "stdio",
                        "-no-reboot", "-smp", str(cpus), "-m", "%dM" % memory_mib, "-kernel", kernel.bootable,
                        "-initrd", image, "-append", words.strip()]
        # Exact counting of instructions, and several emulating threads, exclude each other.
        threads = not self.missing and not icount and version(emulator) >= THREADS_SINCE
        self.command += ["-accel", "tcg,thread=" + ("multi" if threads else "single")]
        self.command += ["-icount", icount] if icount else []

    def run(self):
        """Boot, and yield each line of the console until the guest is off, or its time is up."""
        deadline, buffer, ended = time.monotonic() + self.limit_s, b"", False
        self.child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
        descriptor = self.child.stdout.fileno()
        try:
            while True:
                if not select.select([descriptor], [], [], max(0, deadline - time.monotonic()))[0]:
                    self.why = "the guest did not end within %g s" % self.limit_s
                    return
                data = os.read(descriptor, 65536)
                *lines, buffer = (buffer + data).split(b"\n")
                if not data and buffer:
                    lines = [buffer]
                for line in lines:
                    line = line.decode("utf-8", "replace").rstrip("\r")
                    self.last = self.last[-79:] + [line]
                    ended = ended or line == MARK + "off"
                    yield line
                if not data:
                    break
        finally:
            self.stop()
        if not ended:
            self.why = "the guest stopped before its work was done (status %d)" % self.child.returncode

    def cpu_s(self):
        """Seconds of this machine's CPUs that the emulator took so far: on a busy machine they say more than a clock."""
        try:
            with open("/proc/%d/stat" % self.child.pid, encoding="ascii") as text:
                ticks = text.read().rpartition(")")[2].split()[11:13]
        except OSError:
            return 0
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """End the emulator, if it runs."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.child.stdout.close()
