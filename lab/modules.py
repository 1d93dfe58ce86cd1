# SPDX-License-Identifier: MIT
"""
modules.py - pem.ko, built for each kernel whose headers are installed or can be fetched

Not here: fetching kernels (kernels.py), booting them (tests/guest).
Use: python3 -m lab.modules FOLDER, as `make kmod-kernels` does. FOLDER: where builds land (build).
"""
import glob
import os
import re
import sys

from lab import cross, kernels

LEFT_OUT = re.compile(r"^kmod: .*", re.MULTILINE)
OTHERWISE, WITHOUT = "declare otherwise", "the module comes without"  # in LEFT_OUT: what a kernel changed
WARNING = re.compile(r"^.*warning: (?!pahole|the compiler differs|jobserver).*", re.MULTILINE)


class Headers:
    """Headers that are installed, in the place of a kernel that is fetched."""

    build_variables = {}

    def __init__(self, folder):
        self.headers, self.name = folder, os.path.basename(folder)
        self.release = self.name[len("linux-headers-"):]
        self.build_arguments = ["KDIR=" + folder]


def installed():
    """Folders of headers in their usual places; PEM_TEST_KDIR, parted by colons, adds more."""
    found = [f for f in os.environ.get("PEM_TEST_KDIR", "").split(":") if f]
    for pattern in ("/usr/src/linux-headers-*-amd64", "/usr/src/linux-headers-*-arm64", "/lib/modules/*/build"):
        found += glob.glob(pattern)
    return sorted({os.path.realpath(f) for f in found if os.path.exists(os.path.join(f, "Makefile"))})


def build(kernel, folder, *arguments):
    """Build the module in a folder; all that was said. cross.Failed if it does not build."""
    # What debuggers read takes a third of the compiler's time.
    return cross.make("kmod", "KMOD=" + folder, "KCFLAGS=-g0", "CONFIG_DEBUG_INFO_BTF_MODULES=", *kernel.build_arguments,
                      *arguments, env=kernel.build_variables)


def main():
    folder = os.path.abspath(sys.argv[1])
    failed = 0
    fetched = [kernel for kernel in {**kernels.BUILT, **kernels.KERNELS}.values() if kernel.name != "x86_64-newest"]
    for kernel in [Headers(path) for path in installed()] + fetched:
        try:
            if kernel in fetched:
                kernels.fetch(kernel)
            said = build(kernel, os.path.join(folder, "kmod-" + kernel.name), "B=" + folder)
            print("Linux %s (%s): pem.ko is built" % (kernel.release, kernel.name))
            print("".join("    %s\n" % line for line in LEFT_OUT.findall(said) + WARNING.findall(said)), end="", flush=True)
        except kernels.Unavailable as why:
            print("%s: skipped: %s" % (kernel.name, why), flush=True)
        except cross.Failed as why:
            failed += 1
            print("%s: FAILED: %s" % (kernel.name, why), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
