# SPDX-License-Identifier: MIT
"""
toolchain.py - programs of another Debian suite, unpacked aside, that run with their own loader and libraries

A compiler of a newer suite needs a newer C library than this system may have. So each program of such a folder becomes a
script beside it, which calls that suite's loader. The scripts find everything by their own place: the folder may move.
Not here: fetching packages (kernels.py).
"""
import os
import struct

PT_INTERP = 3
MOVED = ".elf"  # what a program is renamed to
SCRIPT = """#!/bin/sh
root=${0%%/*}/%s
exec "$root/%s" --library-path "$root/%s" --argv0 "$0" "${0%%/*}/%s" "$@"
"""


def is_program(path):
    """Is it a 64-bit ELF file that names a loader?"""
    with open(path, "rb") as data:
        head = data.read(64)
        if len(head) < 64 or head[:5] != b"\x7fELF\x02":
            return False
        at, = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        data.seek(at)
        segments = data.read(size * count)
    return any(struct.unpack_from("<I", segments, i * size)[0] == PT_INTERP for i in range(len(segments) // size))


def wrap(root, triple, folders):
    """Let the programs in these folders of a root, and below, run with the root's loader and libraries."""
    libraries = os.path.join("usr", "lib", triple)
    loader = next(name for name in sorted(os.listdir(os.path.join(root, libraries))) if name.startswith("ld-linux"))
    for folder in folders:
        for where, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                path = os.path.join(where, name)
                if os.path.islink(path) or not os.access(path, os.X_OK) or not is_program(path):
                    continue
                os.rename(path, path + MOVED)
                with open(path, "w", encoding="ascii") as script:
                    script.write(SCRIPT % (os.path.relpath(root, where), os.path.join(libraries, loader), libraries,
                                           name + MOVED))
                os.chmod(path, 0o755)
