# SPDX-License-Identifier: MIT
"""
cross.py - this tree, built for a guest's machine

Not here: what else is in a guest (image.py, tests/guest/assemble.py, the script build).
"""
import fcntl
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Failed(Exception):
    """Something could not be built; the message says what the builder said."""


def make(*arguments, env=None):
    """Run make in this tree; all that it said. Failed if it does."""
    changed = dict({k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "SAN"))}, **env or {})
    done = subprocess.run(["make", "-j2", "--no-print-directory", *arguments], cwd=ROOT, env=changed, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    if done.returncode:
        raise Failed("make %s: status %d\n%s" % (" ".join(arguments), done.returncode, done.stdout[-3000:]))
    return done.stdout


def parts(kernel, build, codegen, units=()):
    """Build pem, its libraries and plugins, these unit tests, and those of tests/guest for a foreign machine, into a folder."""
    lib = os.path.join(kernel.root, "usr", "lib", kernel.triple, "pkgconfig")
    os.makedirs(build, exist_ok=True)
    # Another kernel of the same machine shares the folder.
    with open(os.path.join(build, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Nobody debugs there.
        make("guest-parts", "B=" + build, "CFLAGS=-O2", "CC=%s-gcc --sysroot=%s" % (kernel.triple, kernel.root),
             "AR=%s-ar" % kernel.triple, "SYSROOT=" + kernel.root, "PEM_CODEGEN=" + codegen,
             "GUEST_UNITS=" + " ".join(units), env={"PKG_CONFIG_LIBDIR": lib, "PKG_CONFIG_SYSROOT_DIR": kernel.root})
