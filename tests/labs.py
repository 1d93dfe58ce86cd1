# SPDX-License-Identifier: MIT
"""labs: the emulated machine of pem lab, for the tests that run programs there"""
import functools
import os
import subprocess

from tap import BUILD, PEM, ROOT, SAN, equal, need, run, skip

# The lab is built by the build without sanitizers: that of tests/run.
PLAIN = os.path.abspath(os.path.join(ROOT, os.environ.get("PLAIN") or "build")) if SAN else BUILD
COMPILER = "aarch64-linux-gnu-gcc"
# Two instructions a round, and nothing else that depends on the argument. Then it prints, and ends with the second argument.
LOOP = r"""
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? (unsigned long)atoi(argv[1]) * 1000000ul : 1;

	__asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(n) : : "cc");
	fwrite("out\0\xff\n", 1, 6, stdout);
	fprintf(stderr, "err\n");
	return argc > 2 ? atoi(argv[2]) : 0;
}
"""


@functools.lru_cache(None)
def lab():
    """The folder of the machine, which is made, and None; or None and why it can't be had here."""
    need("qemu-system-aarch64", COMPILER)
    rc, out, err = run(["make", "-C", ROOT, "--no-print-directory", "lab", "B=" + PLAIN], timeout=280,
                       env={"SAN": None, "MAKEFLAGS": None})
    if "lab/build: " in err and "Error 2" in err:  # it can't be made here
        return None, next(line for line in err.splitlines() if line.startswith("lab/build: "))
    equal(rc, 0, "status of make lab (%s)" % (out + err)[-2000:])
    return os.path.join(PLAIN, "lab", "aarch64"), None


def pem_lab(*words, status=0, cwd=None, **more):
    """Standard output and error of pem lab, binary."""
    folder, why = lab()
    if why:
        skip(why)
    rc, out, err = run([PEM, "lab", *words], env={"PEM_LAB": folder}, cwd=cwd, timeout=120, binary=True, **more)
    equal(rc, status, "status (%s)" % err.decode("utf-8", "replace")[-1000:])
    return out, err


def program(folder, source=LOOP, name="loop", options=("-static",)):
    """A program for the lab."""
    need(COMPILER)
    with open(os.path.join(folder, name + ".c"), "w", encoding="utf-8") as text:
        text.write(source)
    subprocess.run([COMPILER, "-O2", "-o", name, name + ".c", *options], cwd=folder, check=True)
    return os.path.join(folder, name)
