# SPDX-License-Identifier: MIT
"""
python.py - what an end-to-end test needs in a guest: a Python, and the system's tools that busybox stands in for

Not here: which tests run in which guest (suite.py).

The Python is this system's, with as much of its standard library as the test imports, compiled: a guest is slow. It
lies at the same paths in the guest. The tools are the system's own, so that a process has the name of its program.
"""
import ast
import glob
import json
import os
import shutil
import subprocess

from lab.image import Missing
from tap import ROOT

# What a Python loads without being asked, or only when it is used for the first time.
ALWAYS = "concurrent.futures.thread", "encodings.ascii", "encodings.latin_1", "encodings.utf_8", "linecache", "tokenize"
TOOLS = "babeltrace2", "cat", "dash", "dd", "grep", "ls", "setpriv", "sleep", "test", "true"
FOLDER = "/guest/bin"  # of the tools, in the guest
# Says what it loaded: (path in the guest, path of the source). A compiled module may lie where its source would.
LOADED = """
import importlib, importlib.util, json, os, py_compile, sys
for name in sys.argv[2:]:
    importlib.import_module(name)
found = [[sys.executable, os.path.realpath(sys.executable)]]
for path in sorted({m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None)}):
    if not path.endswith(".py"):
        found.append([path, path])
        continue
    kept = importlib.util.cache_from_source(path)
    if not os.path.exists(kept):
        kept = py_compile.compile(path, os.path.join(sys.argv[1], path.replace("/", "-") + "c"), doraise=True)
    found.append([path + "c", kept])
print(json.dumps(found))
"""


def interpreter():
    """Path of the Python; Missing if there is none."""
    path = shutil.which("python3", path="/usr/bin:/bin") or shutil.which("python3")
    if not path:
        raise Missing("python3 is not installed")
    return path


def sources(script):
    """A test's own files, and the names of other modules that they import."""
    files, others, unread = [], set(), [script]
    while unread:
        path = unread.pop()
        if path in files:
            continue
        files.append(path)
        with open(path, encoding="utf-8") as text:
            tree = ast.parse(text.read(), path)
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        for name in names:
            beside = [os.path.join(ROOT, "tests", folder, name + ".py") for folder in ("", "e2e")]
            own = [os.path.normpath(path) for path in beside if os.path.exists(path)]
            unread += own[:1]
            others |= set() if own else {name}
    return files, others


def add(image, scripts, work):
    """Have in an image what these tests need to run. work: a folder for what has to be compiled."""
    modules = set(ALWAYS)
    for script in scripts:
        modules |= sources(script)[1]
    done = subprocess.run([interpreter(), "-I", "-S", "-c", LOADED, work, *sorted(modules)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Missing("python3 can't load what tests import: " + done.stderr[-500:])
    for path, source in json.loads(done.stdout):
        image.file(path, source)
    for tool in TOOLS:
        path = shutil.which(tool)
        if path:  # a test that needs it says so
            image.file(os.path.join(FOLDER, {"dash": "sh"}.get(tool, tool)), path)
    for path in glob.glob("/usr/lib/*/babeltrace2/plugins/*-ctf.so") + glob.glob("/usr/lib/*/babeltrace2/plugins/*-text.so") + \
            glob.glob("/usr/lib/*/babeltrace2/plugins/*-utils.so"):
        image.file(path, path)


def command(script):
    """What the guest's sh runs for a test."""
    return "PATH=%s:$PATH %s -S %s" % (FOLDER, interpreter(), os.path.relpath(script, ROOT))
