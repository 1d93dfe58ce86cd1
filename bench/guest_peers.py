# SPDX-License-Identifier: MIT
"""
guest_peers.py - what benchmarks in guests share: their guest, and what stands beside pem.ko in it

Not here: any case. The guest itself is tests/guest's.

The guest has one CPU, whose cycle counter counts instructions (QEMU's -icount): what is measured is equal in every run.

lttng-modules are built for the guest's kernel.
The source is Debian's, of the package lttng-modules-dkms: fetched as guests' kernels are, compiled once in a folder of its own
beside them in the cache, and never installed. Its probes of timers do not compile with late kernels of the series 6.1, and
are left out.
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile

from guest.assemble import Guest
from guest.machine import MARK, Machine
from lab import kernels
from lab.cross import Failed
from measure import Missing

PACKAGE = "lttng-modules-dkms"
# In the order in which they are loaded.
TRACER = ["lttng-" + name for name in ("wrapper", "statedump", "clock", "lib-ring-buffer", "kprobes", "kretprobes", "uprobes",
                                       "tracer", "ring-buffer-client-discard")]


KERNEL = "x86_64-6.1"
LIMIT_S = 600


def make_guest():
    """The guest, and its pem.ko."""
    if os.uname().machine != "x86_64":
        raise Missing("the guest's programs are built for this machine, which is no x86-64")
    try:
        guest = Guest(KERNEL)
        kernels.fetch(guest.kernel)
        return guest, guest.module()
    except (Failed, kernels.Unavailable) as why:
        raise Missing(str(why)) from None


def console(guest, text, files):
    """Run a script in the guest, which starts without pem.ko; yield what it prints. Missing: it failed."""
    path = os.path.join(guest.work, "bench-%d.sh" % os.getpid())
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    image = guest.image([("bench", "sh " + guest.place(path))], None, files + [path])
    machine = Machine(guest.kernel, image, cpus=1, append="nokaslr", icount="shift=0,sleep=off", limit_s=LIMIT_S)
    if machine.missing:
        raise Missing(machine.missing)
    begun = False
    try:
        for line in machine.run():
            begun = begun or line == MARK + "begin bench"
            if begun and line.startswith(MARK + "end ") and line != MARK + "end 0":
                raise Missing("the guest failed: " + " / ".join(machine.last[-8:]))
            if begun and not line.startswith(MARK):
                yield line
    finally:
        os.unlink(image)
        os.unlink(path)
    if machine.why:
        raise Missing(machine.why + ": " + " / ".join(machine.last[-8:]))


class LttngModules:
    """Its modules for a kernel, without what debuggers read; version, headers: of the source that they were made from."""

    def __init__(self, kernel):
        self.folder = os.path.join(kernels.cache(), "%s-lttng-%s" % (kernel.name, kernel.release))
        if not os.path.exists(os.path.join(self.folder, "version")):
            try:
                self.make(kernel)
            except kernels.Unavailable as why:
                raise Missing(str(why)) from None
        with open(os.path.join(self.folder, "version"), encoding="ascii") as text:
            self.version = text.read().strip()
        self.headers = os.path.join(self.folder, "include")

    def module(self, name):
        return os.path.join(self.folder, name + ".ko")

    def tree(self, folder, release):
        """The files of a /lib/modules below a folder, as LTTng's session daemon looks for its modules."""
        where = os.path.join(folder, "lib", "modules", release)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(where)
        for path in glob.glob(os.path.join(self.folder, "*.ko")):
            shutil.copy(path, where)
        for name in ("modules.order", "modules.builtin"):
            open(os.path.join(where, name), "w", encoding="ascii").close()
        if not shutil.which("depmod"):
            raise Missing("depmod is missing (kmod)")
        subprocess.run(["depmod", "-b", folder, release], check=True, stderr=subprocess.DEVNULL)
        return sorted(glob.glob(os.path.join(where, "*")))

    def make(self, kernel):
        print("lttng-modules are fetched and compiled for Linux %s, once" % kernel.release, flush=True)
        apt = kernels.Apt(kernel.debian)
        apt.update()
        with tempfile.TemporaryDirectory(prefix="pem-lttng-") as scratch:
            version = apt.fields(PACKAGE)[0]["Version"]
            for package in apt.download(["%s=%s" % (PACKAGE, version)], os.path.join(scratch, "download")):
                kernels.unpack(package, scratch)
            source = glob.glob(os.path.join(scratch, "usr", "src", "lttng-modules-*"))[0]
            compile_modules(source, kernel)
            new = self.folder + ".new"
            shutil.rmtree(new, ignore_errors=True)
            shutil.copytree(os.path.join(source, "include"), os.path.join(new, "include"))
            for path in glob.glob(os.path.join(source, "src", "**", "*.ko"), recursive=True):
                subprocess.run(["strip", "-g", "-o", os.path.join(new, os.path.basename(path)), path], check=True)
            with open(os.path.join(new, "version"), "w", encoding="ascii") as text:
                text.write(re.sub(r"[-+].*", "", version) + "\n")
            os.rename(new, self.folder)


def compile_modules(source, kernel):
    probes = os.path.join(source, "src", "probes", "Kbuild")
    with open(probes, encoding="utf-8") as text:
        lines = [line for line in text if "lttng-probe-timer.o" not in line]
    with open(probes, "w", encoding="utf-8") as text:
        text.writelines(lines)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "-j%d" % (os.cpu_count() or 1), "-C", kernel.headers, "M=" + source, "CONFIG_LTTNG=m",
                           "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        raise Missing("lttng-modules do not compile: " + " ".join(done.stdout[-300:].split()))
