# SPDX-License-Identifier: MIT
"""house_rooms: rooms include and call only what lies below them in the pictures of docs/architecture.md"""
import glob
import os
import re

from tap import BUILD, ROOT, SAN, equal, need, run, run_all, skip, test

HEADING = "## Rooms and their order"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def pictures():
    """{top folder: {room: height}}, the lowest line being 0; "" is the top folder itself."""
    with open(ROOT + "/docs/architecture.md", encoding="utf-8") as text:
        section = text.read().split(HEADING, 1)[1].split("\n## ", 1)[0]
    found, top = {}, None
    for line in section.splitlines():
        drawn = re.match(r"    (\S.*?)(?:  |$)", line)
        if not drawn:
            continue
        if drawn.group(1).endswith("/"):
            top = found[drawn.group(1)[:-1]] = {}
            continue
        top = {room: height + 1 for room, height in top.items()}
        top.update({"" if room == "." else room: 0 for room in drawn.group(1).split()})
        found[list(found)[-1]] = top
    return found


ORDER = pictures()


def sources(top):
    """Path below top, and text, of each C file there."""
    for path in sorted(glob.glob("%s/%s/**/*.[ch]" % (ROOT, top), recursive=True)):
        with open(path, encoding="utf-8") as text:
            yield os.path.relpath(path, ROOT + "/" + top), text.read()


def against(top, includer, header):
    """Why a file below top may not include a header, or None."""
    order, own = ORDER[top], os.path.dirname(includer)
    if header.startswith("pem/"):
        return None
    for base in (own, ""):
        path = os.path.normpath(os.path.join(base, header))
        if os.path.exists("%s/%s/%s" % (ROOT, top, path)):
            room = os.path.dirname(path)
            if room == own or order.get(room, -1) < order.get(own, -1):
                return None
            return "%s lies above or beside %s" % (room or top, own or top)
    return None


@test
def every_room_is_drawn():
    "each folder with C files is in a picture, and the other way round"
    for top, order in ORDER.items():
        there = {os.path.dirname(path) for path, _ in sources(top) if not path.startswith("include/")}
        equal(sorted(there), sorted(order), "folders of " + top)


@test
def includes_go_down():
    "no file includes a header of a room that is not below its own"
    found = ["%s/%s: %s: %s" % (top, path, header, against(top, path, header)) for top in ORDER for path, text in sources(top)
             for header in INCLUDE.findall(text) if against(top, path, header)]
    equal(found, [], "includes against the order")


@test
def an_include_against_the_order_is_found():
    "the check finds planted strays"
    assert against("libpem", "core/x.c", "session/session.h"), "core may include session"
    assert against("libpem", "dirs/x.c", "processes/processes.h"), "dirs may include processes"
    assert against("libpem", "x.c", "core/core.h"), "what both sides use may include core"
    assert against("codegen", "xml/x.c", "check/check.h"), "rooms on one line may include each other"
    assert not against("libpem", "session/x.c", "core/core.h"), "session may not include core"


def symbols(paths):
    """{object: [(name, kind)]} of all objects' symbols that are pem's."""
    rc, out, _ = run(["nm", "--print-file-name", "--format=posix", *paths])
    equal(rc, 0, "nm")
    found = {path: [] for path in paths}
    for line in out.splitlines():
        path, name, kind = re.match(r"(\S+): (\S+) (\S)", line).groups()
        if name.startswith("pem_"):
            found[path].append((name, kind))
    return found


@test
def calls_go_down():
    "no object of libpem needs a function of a room that is not below its own, but for public ones"
    need("nm")
    if SAN:
        skip("the plain build's objects tell")
    base = BUILD + "/obj/libpem/"
    rooms = [room for room in ORDER["libpem"] if room not in ("mpi", "sqlite", "libc", "jvm", "ompt", "confined")
             and not room.startswith("sources")]
    objects = {base + os.path.relpath(path, ROOT + "/libpem")[:-2] + ".o": room
               for room in rooms for path in glob.glob("%s/libpem/%s/*.c" % (ROOT, room))
               if not path.endswith("/names/absent.c")}  # stands in for a library that is here
    names = symbols(list(objects))
    where = {name: objects[path] for path in objects for name, kind in names[path] if kind in "TDBR"}
    public = ""
    for path in glob.glob(ROOT + "/libpem/include/pem/*.h"):
        with open(path, encoding="utf-8") as text:
            public += text.read()
    found = sorted({"%s calls %s, which is of %s" % (os.path.relpath(path, base), name, where[name])
                    for path, room in objects.items() for name, kind in names[path]
                    if kind == "U" and where.get(name, room) != room
                    and ORDER["libpem"][where[name]] >= ORDER["libpem"][room]
                    and not re.search(r"\b%s\(" % name, public)})
    equal(found, [], "calls against the order")


run_all()
