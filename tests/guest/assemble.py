# SPDX-License-Identifier: MIT
"""
assemble.py - one guest: a kernel, the module built for it, and a file system with this tree's build in it

Not here: which tests run in it (suite.py).
"""
import fcntl
import glob
import os

from guest import python
from lab import kernels
from lab.cross import make, parts
from lab.image import Image
from tap import BUILD, ROOT

HERE = os.path.join(ROOT, "tests", "guest")
PEM = "/pem"  # the tree, in the guest
WITHOUT_MODULE = "/guest/without-module"  # plugins that leave the kernel to BPF, for PEM_PLUGIN_PATH
USERS = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
GROUPS = "root:x:0:\ntracing:x:900:\nnogroup:x:65534:\n"


class Guest:
    """One kernel's guest. work: a folder for what is built for it."""

    def __init__(self, name):
        self.kernel = kernels.KERNELS[name]
        self.work = os.path.join(BUILD, "guest", name)
        self.build = os.path.join(BUILD, self.kernel.machine) if self.kernel.foreign else BUILD
        os.makedirs(self.work, exist_ok=True)

    def cross_build(self, units):
        """Build what runs in a foreign guest: pem, its libraries and plugins, these unit tests, and those of tests/guest."""
        parts(self.kernel, self.build, os.path.join(BUILD, "bin", "pem-codegen"), units)

    def kernel_module(self, target, variable, name):
        """Build a module for this kernel with one of make's targets, in the folder that a variable says; that folder."""
        folder = os.path.join(self.work, name)
        # Another test's guest with this kernel may need it, too.
        with open(os.path.join(self.work, name + ".lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # What only a debugger reads takes a third of the compiler's time, and of the guest's to load it.
            make(target, "B=" + BUILD, "%s=%s" % (variable, folder), "KCFLAGS=-g0", "CONFIG_DEBUG_INFO_BTF_MODULES=",
                 *self.kernel.build_arguments, env=self.kernel.build_variables)
        return folder

    def module(self):
        """Build pem.ko for this kernel; its path."""
        return os.path.join(self.kernel_module("kmod", "KMOD", "kmod"), "pem.ko")

    def ring_module(self):
        """Build the module of tests/guest/ring_module; its path."""
        return os.path.join(self.kernel_module("kmod-ring-test", "KMOD_RING", "ring"), "pem_ring_test.ko")

    def stale_code(self):
        """Build the module of tests/guest/stale_code; its path."""
        return os.path.join(self.kernel_module("kmod-stale-code", "KMOD_STALE", "stale"), "stale_code.ko")

    def image(self, programs, module=None, files=(), scripts=()):
        """
        Write the file system; its path. programs: (name, command for the guest's sh); files: programs
        and others of this machine, which lie at the same path in the guest, and below /pem if they are of this tree;
        scripts: those of them that a Python runs.
        """
        root, triple = self.kernel.root, self.kernel.triple
        folders = "lib/" + triple, "usr/lib/" + triple, "lib64", "lib", "usr/local/lib"
        image = Image([os.path.join(root, folder) for folder in folders], beside=[os.path.join(self.build, "lib")])
        image.file("/init", os.path.join(HERE, "init"))
        image.file("/bin/busybox", os.path.join(root, "bin", "busybox"))
        image.link("/bin/sh", "busybox")
        image.text("/etc/passwd", USERS)
        image.text("/etc/group", GROUPS)
        image.text("/guest/programs", "".join("%s\t%s\n" % program for program in programs))
        image.tree(PEM + "/build/bin", os.path.join(self.build, "bin"), lambda name: name == "pem")
        image.tree(PEM + "/build/lib", os.path.join(self.build, "lib"), plain)
        for path in sorted(glob.glob(os.path.join(self.kernel.folder, "modules", "*"))):
            image.file("/guest/modules/" + os.path.basename(path), path)
        for path in sorted(glob.glob(os.path.join(self.build, "lib", "pem", "*.so"))):
            if os.path.basename(path) != "source-module.so":
                image.link(WITHOUT_MODULE + "/" + os.path.basename(path), self.place(path))
        if scripts:
            python.add(image, scripts, self.work)
        if self.kernel.machine == "x86_64":
            image.file("/guest/stale_code.ko", self.stale_code())
        if module:
            image.file("/guest/pem.ko", module)
        for path in files:
            image.file(self.place(path), path)
        path = os.path.join(self.work, "initramfs-%d.cpio" % os.getpid())
        image.write(path)
        return path

    def place(self, path):
        """Where a file of this machine lies in the guest."""
        path = os.path.abspath(path)
        if path.startswith(self.build + "/"):
            return os.path.join(PEM, "build", os.path.relpath(path, self.build))
        if path.startswith(ROOT + "/"):
            return os.path.join(PEM, os.path.relpath(path, ROOT))
        return path


def plain(name):
    """Libraries of the build that need nothing large: none of other languages' runtimes."""
    return ".so" in name and not name.startswith(("libpem-jvm", "libpem-mpi", "libpem-ompt", "libpem-sqlite"))
