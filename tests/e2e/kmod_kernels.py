# SPDX-License-Identifier: MIT
"""kmod_kernels: the kernel module builds for the newest kernel of each later suite, and has all tracepoints that they declare"""
import os

from lab import cross, kernels, modules
from tap import BUILD, equal, run_all, skip, test

LIMIT_S = 600  # a fetch on a busy machine
LONG_S = 130


def builds_for(kernel):
    """A test for a kernel."""
    def check():
        try:
            kernels.fetch(kernel)
        except kernels.Unavailable as why:
            skip(str(why))
        folder = os.path.join(BUILD, "kmod-" + kernel.name)  # kept: what is up to date is not made again
        try:
            said = modules.build(kernel, folder, "B=" + BUILD)
        except cross.Failed as why:
            raise AssertionError("Linux %s: %s" % (kernel.release, why)) from None
        equal(modules.WARNING.findall(said), [], "warnings")
        with open(os.path.join(folder, "pem_kmod_checks.h"), encoding="ascii") as text:
            lines = text.read().splitlines()
        assert "#define PEM_KMOD_CAN_sched_switch 1" in lines, "the scheduler's headers are not found"
        equal([line for line in lines if modules.OTHERWISE in line or modules.WITHOUT in line], [], "left out")

    check.__doc__ = "the newest kernel of the suite %s" % kernel.series
    check.__name__ = kernel.series
    return check


for built in kernels.BUILT.values():
    test(builds_for(built))

run_all()
