# SPDX-License-Identifier: MIT
"""late_library: statistics of events that come with a library, after the session has found the process"""
import os
import sys

from tap import BUILD, CODEGEN, ROOT, SAN, equal, run, run_all, skip, test, tmp

LIBRARY = os.path.join(BUILD, "programs", "library.so")
CHILD = """
import ctypes, os
os.read(0, 1)
ctypes.CDLL("%s").library_raise(*map(ctypes.c_uint64, (1, 0, 9)))
""" % LIBRARY


@test
def late_library_counts():
    "its events count, though nobody reads before the process has ended"
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    folder = tmp()
    equal(run([CODEGEN, "--backend", "python", "-o", folder, ROOT + "/tests/programs/probe.xml"])[0], 0, "pem-codegen")
    sys.path[:0] = [os.path.join(BUILD, "python"), folder]
    import pemapi
    import pem_probe  # noqa: F401 - so that the session knows the library's events
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    with pemapi.Session() as session:
        mallocs, ticks = (session.statistics(session.events(name)) for name in ("APP::Libc::Malloc", "APP::Probe::Tick"))
        mallocs.enable()
        ticks.enable()
        session.run([sys.executable, "-c", CHILD])
        while not mallocs.read()[0].count:
            session.poll(10)
        os.write(writer, b"1")
        session.wait()
        equal(ticks.read()[0].count, 10, "ticks")


run_all()
