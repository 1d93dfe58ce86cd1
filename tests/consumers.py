# SPDX-License-Identifier: MIT
"""consumers: programs in Python that use the module pemapi"""
import os
import sys
import textwrap

from tap import BUILD, CODEGEN, ROOT, SAN, equal, run, skip, tmp

MODULE = os.path.join(BUILD, "python")


def python(body, *args, folder=None, env=None, status=0):
    """Run Python that finds pemapi, and pem_gc and what else is in folder; what it printed."""
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    folder = folder or tmp()
    rc, _, err = run([CODEGEN, "--backend", "python", "-o", folder, ROOT + "/examples/gc.xml"])
    equal(rc, 0, "exit status of pem-codegen, which said: " + err)
    program = os.path.join(folder, "program.py")
    with open(program, "w") as out:
        out.write("import pemapi, pem_gc, os, sys, threading\n" + textwrap.dedent(body))
    rc, out, err = run([sys.executable, program, *args],
                       env=dict({"PYTHONPATH": MODULE + os.pathsep + folder, "LD_LIBRARY_PATH": None}, **(env or {})))
    equal(rc, status, "exit status, having said: " + err)
    return out
