# SPDX-License-Identifier: MIT
"""
room.py - which of the folders that tests write to has no room left: the reason of a failure that seems to be another

Not here: the tests' results (results.py).
"""
import os

FULL_BYTES = 256 << 10  # with so little free a folder counts as full
SAID = "No space left on device", "ENOSPC", "Errno 28"


def lacking(folders, said=""):
    """Lines that name each full folder; if none is and said complains of one, the folder with the least room."""
    free = {}
    for folder in folders:
        try:
            found = os.statvfs(folder)
        except OSError:
            continue
        free[folder] = 0 if found.f_files and not found.f_favail else found.f_bavail * found.f_frsize
    full = [folder for folder in free if free[folder] < FULL_BYTES]
    if not full and free and any(word in said for word in SAID):
        full = [min(free, key=free.get)]
    return ["no room left on %s: %d KiB are free" % (folder, free[folder] >> 10) for folder in full]
