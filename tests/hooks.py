# SPDX-License-Identifier: MIT
"""
hooks.py - programs that are compiled with -fsanitize=thread and linked with pem's runtime in place of libtsan, for tests

Not here: tests.
"""
import atexit
import functools
import os
import shutil
import sys
import tempfile

from page_profile import Profile
from tap import BUILD, ROOT, equal, need, run, tmp

LIBRARY = BUILD + "/lib/libpem-page-size-hooks.so"
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
LINK = ["-L" + BUILD + "/lib", "-l:libpem-page-size-hooks.a", "-lpem-page-size-hooks", "-Wl,-rpath," + BUILD + "/lib", "-pthread"]

if not os.path.exists(LIBRARY):
    print("1..0 # SKIP the runtime of compiler hooks is not built: it is for x86-64, and without sanitizers")
    sys.exit(0)


def of(compiler, language):
    return {"gcc": "g++", "clang": "clang++"}[compiler] if language == "c++" else compiler


@functools.lru_cache(None)
def build(source, compiler="gcc", language="c", flags=(), hooks=True, more=()):
    """A program, from the path of its source or its text. more: for the linker."""
    command = of(compiler, language)
    need(command)
    folder = tempfile.mkdtemp(prefix="pem-test-")  # it outlives a test
    atexit.register(shutil.rmtree, folder, True)
    path = folder + "/program." + ("cpp" if language == "c++" else "c")
    if "\n" in source:
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
    else:
        path = ROOT + "/" + source
    words = [command, "-O1", "-g", "-w", "-fno-builtin", "-D_GNU_SOURCE", "-mcx16", *(["-fsanitize=thread"] if hooks else []), *flags]
    rc, _, err = run([*words, "-c", path, "-o", folder + "/program.o"])
    equal((rc, err), (0, ""), "compiling with " + command)
    rc, _, err = run([command, *[f for f in flags if f in ("-shared", "-static")], folder + "/program.o", "-o", folder + "/program",
                      *(LINK if hooks else ["-pthread"]), *([] if hooks else ["-latomic"]), *more, "-ldl"])
    equal((rc, err), (0, ""), "linking with " + command)
    return folder + "/program"


def asked(path, options=""):
    """The environment in which a program writes its profile."""
    return {"PEM_PAGE_SIZE_PROFILE": path, "PEM_PAGE_SIZE_PROFILE_OPTIONS": options}


def observe(words, options="", status=0):
    """Run words to the end: (stdout, profile)."""
    path = tmp() + "/profile"
    rc, out, err = run(words, env=asked(path, options))
    equal((rc, err), (status, ""), "exit status and stderr of " + " ".join(words))
    return out, Profile(path)
