#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
describe.py - what programs were compiled against: libpem's exported functions, enumerators and structs, a line each

Use: tests/abi/describe.py > tests/abi/vVERSION.txt, when a version is released. tests/e2e/abi.py compares the newest of
these files with the tree. Needs clang; LIBRARY (build/lib/libpem.so.1) gives symbols and their versions.

    symbol NAME VERSION
    function NAME TYPE
    enumerator NAME VALUE
    struct NAME BYTES
    member STRUCT.NAME OFFSET TYPE
"""
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = ["-I" + ROOT + "/spec/abi", "-I" + ROOT + "/libpem/include", "-D_GNU_SOURCE", "-x", "c"]


def headers():
    """The installed headers of C that programs include, and stubs, but not those that hold stubs: these are the program's own. What is
    of one build (the module, BPF) may change."""
    return sorted(set(glob.glob(ROOT + "/libpem/include/pem/*.h")) - {ROOT + "/libpem/include/pem/%s.h" % name for name in ("probe", "stream", "stream_shim", "stream_shown")}) + [
        ROOT + "/spec/abi/pem/%s.h" % name for name in ("abi", "clock", "enclosed", "event", "stub")]


def clang(*arguments, source=None):
    source = source or "".join('#include "%s"\n' % h for h in headers())
    done = subprocess.run(["clang", *FLAGS, "-fsyntax-only", *arguments, "-"], input=source, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def records(source=None):
    lines = []
    for block in clang("-Xclang", "-fdump-record-layouts-complete", source=source).split("*** Dumping AST Record Layout")[1:]:
        rows = block.strip().splitlines()
        name = re.match(r"\s*0 \| (?:struct|union) (pem_\w+)$", rows[0])
        if not name:
            continue
        lines.append("struct %s %s" % (name[1], re.search(r"sizeof=(\d+)", block)[1]))
        for row in rows[1:]:
            member = re.match(r"\s*([\d:-]+) \|   (\S.*?) ?(\w+)$", row)
            if member:
                kind = re.sub(r"( \w+::)? ?\((unnamed|anonymous)[^)]* at [^)]*\)", "", member[2])
                lines.append("member %s.%s %s %s" % (name[1], member[3], member[1], kind))
    return lines


def declarations(source=None):
    lines = []

    def visit(node):
        kind, name = node.get("kind"), node.get("name", "")
        if kind == "EnumDecl":
            value = -1
            for one in node.get("inner", []):
                if one.get("kind") == "EnumConstantDecl":
                    given = next((i["value"] for i in one.get("inner", []) if "value" in i), None)
                    value = int(given) if given is not None else value + 1
                    # Counts of an enum's values grow with it.
                    if one["name"].startswith("PEM_") and not one["name"].endswith("_COUNT"):
                        lines.append("enumerator %s %d" % (one["name"], value))
        elif kind == "FunctionDecl" and name.startswith("pem_") and node.get("storageClass") != "static":
            lines.append("function %s %s" % (name, node["type"]["qualType"]))

    for node in json.loads(clang("-Xclang", "-ast-dump=json", source=source))["inner"]:
        visit(node)
    return lines


def symbols(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1].partition("@@") for line in out.splitlines() if " A " not in line]
    return ["symbol %s %s" % (name, version) for name, _, version in names if version != "PEM_PRIVATE"]


def describe(library):
    return sorted(set(records() + declarations() + symbols(library)))


def grows(description, name):
    """May later versions of a struct be longer? It begins with its size, or libpem alone allocates it, one by one."""
    return "member %s.size 0 size_t" % name in description or name in ("pem_trace_info", "pem_event", "pem_session_page")


def reserve(description, owner):
    """Bytes of a struct that are called reserved, or reserved1 and so on: zeroes, for members to come. By name, offsets from and
    to which they are."""
    found = {}
    for line in description:
        member = re.match(r"member %s\.(reserved\d*) (\d+) uint(8|32|64)_t(?:\[(\d+)\])?$" % re.escape(owner), line)
        if member:
            found[member[1]] = range(int(member[2]), int(member[2]) + int(member[3]) // 8 * int(member[4] or 1))
    return found


def broken(before, now):
    """What a program compiled against the description before can't rely on any more: sentences."""
    before, now = set(before), set(now)
    found = []
    there = {tuple(line.split(" ", 2)[:2]): line for line in now}
    for line in sorted(before - now):
        kind, name, value = line.split(" ", 2)
        new = there.get((kind, name))
        owner, _, member = name.partition(".")
        kept, left = reserve(before, owner).get(member), reserve(now, owner).get(member)
        if kept and (not left or (left[0] in kept and left[-1] == kept[-1])):
            continue
        if not new:
            found.append("%s %s is gone" % (kind, name))
        elif kind != "struct":
            found.append("%s %s was '%s' and is '%s'" % (kind, name, value, new.split(" ", 2)[2]))
        elif not grows(before, name) or int(new.split(" ", 2)[2]) < int(value):
            found.append("struct %s had %s bytes and has %s" % (name, value, new.split(" ", 2)[2]))
    released = {line.split(" ")[2] for line in before if line.startswith("symbol ")}
    found += ["symbol %s is new in version %s, which was released without it: give it a version of its own in libpem.map"
              % tuple(line.split(" ")[1:]) for line in sorted(now - before)
              if line.startswith("symbol ") and line.split(" ")[2] in released]
    known = {line.split(" ")[1] for line in before}
    for line in sorted(now - before):
        kind, name, value = line.split(" ", 2)
        owner, _, _ = name.partition(".")
        size = next((int(b.split(" ")[2]) for b in before if b.startswith("struct %s " % owner)), None)
        at = int(re.match(r"\d+", value)[0]) if kind == "member" else 0
        if kind == "member" and name not in known and size is not None and at < size and \
                not any(at in kept for kept in reserve(before, owner).values()):
            found.append("member %s lies inside of what the released struct had: add it at the end" % name)
    return found


if __name__ == "__main__":
    print("\n".join(describe(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("B", ROOT + "/build") + "/lib/libpem.so.1")))
