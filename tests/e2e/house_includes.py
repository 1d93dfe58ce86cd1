# SPDX-License-Identifier: MIT
"""house_includes: who may include whom, sizes of files and functions, public headers alone"""
import glob
import os
import re

from tap import BUILD, ROOT, SAN, equal, need, parallel, run, run_all, skip, test, tmp

LONG_S = 17

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
FOLDERS = ("spec", "shared", "codegen", "kmod", "libpem", "agents", "viz-export", "cli", "examples", "tests", "bench", "demo")
ABI = {os.path.basename(p) for p in glob.glob(ROOT + "/spec/abi/pem/*.h")}
PUBLIC = ABI | {os.path.basename(p) for p in glob.glob(ROOT + "/libpem/include/pem/*.h")}
PEM_HEADERS = {"spec": ABI, "codegen": ABI, "kmod": ABI, "tests": PUBLIC, "bench": PUBLIC}

# Those whose programs are linked with what lies in shared/.
SHARED_BY = ("codegen", "libpem", "viz-export", "cli")

LINES_MAX, FUNCTION_LINES_MAX = 600, 70
LONGER = {"libpem/include/pem/pem.h": "the contract of a session, to be read in one go"}  # path: reason


def code(*suffixes):
    """Path and text of each C file, relative to the tree."""
    for folder in FOLDERS:
        for where, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(names):
                if name.endswith(suffixes):
                    path = os.path.join(where, name)
                    with open(path, encoding="utf-8") as text:
                        yield os.path.relpath(path, ROOT), text.read()


def owner(path, header):
    """The folder in which a file's quoted include lies, or None: it is generated, or a library's."""
    folder = path.split("/")[0]
    for base in (os.path.dirname(path), folder, "."):
        found = os.path.normpath(os.path.join(base, header))
        if os.path.exists(os.path.join(ROOT, found)):
            return found.split("/")[0]
    for other in FOLDERS:
        for found in glob.glob("%s/%s/**/%s" % (ROOT, other, header), recursive=True):
            return os.path.relpath(found, ROOT).split("/")[0]
    return None


def stray(path, bracket, header):
    """Why this include crosses an arrow, or None."""
    folder = path.split("/")[0]
    if header.startswith("pem/"):
        name = header[4:]
        if name not in PEM_HEADERS.get(folder, PUBLIC):
            return "only %s may be included here" % ", ".join(sorted(PEM_HEADERS.get(folder, PUBLIC)))
        return None
    if folder in ("tests", "bench"):
        return None
    if ".." in header.split("/"):
        return "no path goes upwards"
    whose = owner(path, header) if bracket == '"' else None
    if whose == "shared" and folder in SHARED_BY:
        return None
    # Agents are programs, which speak as pem does. Containers and distributions know nothing of pem.
    if folder == "agents" and header in ("cli.h", "attach.h", "call_kinds.h", "grow.h", "processes.h", "hash.h", "number_map.h", "rank_test.h", "sketch.h",
                                         "student.h", "rounded.h"):
        return None
    if whose not in (None, folder):
        return "it lies in %s/" % whose
    return None


@test
def arrows_hold():
    "folders include only what the design lets them"
    found = ["%s: %s: %s" % (path, header, stray(path, bracket, header)) for path, text in code(".c", ".h")
             for bracket, header in INCLUDE.findall(text) if stray(path, bracket, header)]
    equal(found, [], "strays")


@test
def arrows_can_break():
    "the check of includes finds a planted stray"
    assert stray("cli/x.c", '"', "source.h"), "cli may include libpem's private header"
    assert stray("codegen/x.c", "<", "pem/pem.h"), "codegen may include libpem"
    assert stray("libpem/x.c", '"', "../tests/x.h"), "a path upwards passes"
    assert not stray("cli/x.c", "<", "pem/trace.h"), "cli may not include a public header"
    assert not stray("cli/x.c", '"', "text.h"), "cli may not include what is shared"
    assert stray("examples/x.c", '"', "text.h"), "examples may include what is shared"
    assert not stray("agents/x.c", '"', "cli.h"), "agents may not speak as pem does"
    assert stray("agents/x.c", '"', "text.h"), "agents may include what is shared"
    assert stray("shared/x.c", '"', "source.h"), "shared may include libpem's private header"


@test
def files_are_short():
    "files stay under 600 lines"
    found = [(path, text.count("\n")) for path, text in code(".c", ".h", ".py", ".js", ".mk", "/run")
             if text.count("\n") > LINES_MAX and path not in LONGER]
    equal(found, [], "longer files")


@test
def functions_fit_a_screen():
    "functions stay under 70 lines"
    found = []
    for path, text in code(".c", ".h"):
        begin = None
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("{"):
                begin = number
            elif line.startswith("}") and begin:
                if number - begin - 1 >= FUNCTION_LINES_MAX and not line.startswith("};"):
                    found.append("%s:%d: %d lines" % (path, begin, number - begin - 1))
                begin = None
    equal(found, [], "longer functions")


def compiles(command, text, suffix):
    """Compile text without output; the compiler's errors, or ''."""
    source = tmp() + "/alone" + suffix
    with open(source, "w") as out:
        out.write(text)
    if suffix == ".c":
        command = command + ["-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wvla"]
    rc, _, err = run(command + ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I" + ROOT + "/spec/abi",
                                "-I" + ROOT + "/libpem/include", "-I" + BUILD + "/gen", source])
    return err[:2000] or "exit status %d" % rc if rc else ""


def headers_alone(compiler, cxx):
    need(compiler, cxx)
    # One generator makes all stubs: one is tried alone, and all together.
    stubs = sorted("stubs/" + os.path.basename(p) for p in glob.glob(BUILD + "/gen/stubs/*.h"))
    todo = [(header, command, suffix) for header in sorted("pem/" + name for name in PUBLIC) + [stubs[0], ">\n#include <".join(stubs)]
            for command, suffix in (([compiler, "-std=c11"], ".c"), ([compiler, "-std=gnu11"], ".c"), ([cxx, "-std=c++17"], ".cc"))]
    todo += [(header, [cxx, "-std=c++17"] + more, ".cc") for header in ("pem/pem.hpp", "pem/stream.hpp", "pem/stub.hpp")
             for more in ([], ["-fno-exceptions", "-fno-rtti"], ["-std=c++20", "-Wpedantic", "-Wconversion", "-Wshadow"])]

    def alone(one):
        header, command, suffix = one
        said = compiles(command, "#include <%s>\n#include <%s>\nint alone;\n" % (header, header), suffix)
        return said and "%s %s:\n%s" % (header, " ".join(command[1:]), said)

    errors = [said for said in parallel(alone, todo) if said]
    assert not errors, "\n".join(errors)


@test
def headers_alone_gcc():
    "public headers compile alone, twice, and stubs do together, as C11, gnu11 and C++17 with gcc"
    headers_alone("gcc", "g++")


@test
def headers_alone_clang():
    "public headers compile alone, twice, and stubs do together, as C11, gnu11 and C++17 with clang"
    headers_alone("clang", "clang++")


@test
def library_needs_libc_only():
    "libraries that are preloaded into programs need the C library and nothing else"
    if SAN:
        skip("a sanitized build needs the sanitizers' libraries")
    need("objdump")
    for name in ("libpem.so.1", "libpem-libc.so", "pem/libpem-page-size.so"):
        rc, out, err = run(["objdump", "-p", BUILD + "/lib/" + name])
        equal(rc, 0, "exit status of objdump, which said: " + err)
        needed = set(re.findall(r"NEEDED\s+(\S+)", out))
        allowed = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libpem.so.1"}
        equal(sorted(needed - allowed), [], name + " also needs")


run_all()
