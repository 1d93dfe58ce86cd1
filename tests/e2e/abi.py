# SPDX-License-Identifier: MIT
"""
abi.py - programs that were compiled against a released libpem go on; what libraries export is what their maps list
"""
import glob
import os
import re
import sys

from tap import BUILD, ROOT, SAN, equal, need, run, run_all, skip, test

sys.path.insert(0, ROOT + "/tests/abi")
import describe  # noqa: E402

LIBRARY = BUILD + "/lib/libpem.so.1"
AGENT = BUILD + "/lib/libpem-agent.so.1"
NAMES = BUILD + "/lib/libpem-names.so.1"
WHAT_TO_DO = """
Take the change back, or add to the end of a struct that begins with its size, or add a function beside the old one.
If the break is meant: raise VERSION in the Makefile, name a new version in libpem/libpem.map, and write
tests/abi/vVERSION.txt with 'tests/abi/describe.py'."""


def released():
    """The newest description: (version, lines)."""
    def number(path):
        return [int(n) for n in re.search(r"v([\d.]+)\.txt$", path)[1].split(".")]
    path = max(glob.glob(ROOT + "/tests/abi/v*.txt"), key=number)
    with open(path, encoding="utf-8") as text:
        return ".".join(map(str, number(path))), text.read().splitlines()


def names(library):
    rc, out, err = run(["nm", "-D", "--defined-only", library])
    equal(rc, 0, "exit status of nm, which said: " + err)
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if " A " not in line}


def listed(path):
    with open(ROOT + "/" + path, encoding="utf-8") as text:
        script = re.sub(r"/\*.*?\*/", "", text.read(), flags=re.DOTALL)
    return set(re.findall(r"\b(\w+);", "".join(re.findall(r"global:(.*?)(?:local:|})", script, flags=re.DOTALL))))


def description():
    need("clang", "nm")
    if SAN:
        skip("the plain build's library is the one that is released")
    return describe.describe(LIBRARY)


@test
def programs_go_on():
    "functions, enumerators and structs are those of the last release, or more"
    version, before = released()
    found = describe.broken(before, description())
    assert not found, "programs compiled for pem %s break:\n%s%s" % (version, "\n".join(found), WHAT_TO_DO)


@test
def the_description_is_of_a_release():
    "the version that is described is no later than this one"
    with open(ROOT + "/Makefile", encoding="utf-8") as text:
        here = re.search(r"^VERSION := ([\d.]+)$", text.read(), flags=re.MULTILINE)[1]
    newest = released()[0]
    assert [int(n) for n in newest.split(".")] <= [int(n) for n in here.split(".")], \
        "tests/abi has %s, and VERSION is %s" % (newest, here)


@test
def each_symbol_is_declared():
    "what libpem.so, libpem-agent.so and libpem-names.so export is declared in a public header, and the other way round"
    found = description()
    symbols = {line.split(" ")[1] for line in found if line.startswith("symbol ")}
    if not os.path.exists(AGENT) or not os.path.exists(NAMES):
        skip("libpem-agent or libpem-names is not built")
    symbols |= (names(AGENT) | names(NAMES)) - {"PEM_AGENT_0.3", "PEM_NAMES_0.3"}
    functions = {line.split(" ")[1] for line in found if line.startswith("function ")}
    equal(symbols - functions, set(), "exported, and in no public header")
    equal(functions - symbols, set(), "declared in a public header, and not in libpem/libpem.map")


@test
def each_symbol_is_listed():
    "every library and plugin exports exactly what its map lists"
    need("nm")
    if SAN:
        skip("sanitizers export names of theirs")
    maps = {"libpem.so.1": "libpem/libpem.map", "libpem-libc.so": "libpem/libc/libpem-libc.map",
            "libpem-agent.so.1": "libpem/database/libpem-agent.map", "libpem-names.so.1": "libpem/names/libpem-names.map",
            "database-postgresql.so": "libpem/database/driver.map",
            "libpem-page-size.so": "agents/page-size/apply/libpem-page-size.map",
            "libpem-page-size-hooks.so": "agents/page-size/hooks/libpem-page-size-hooks.map"}
    maps.update({"libpem-%s.so" % name: "libpem/%s/libpem-%s.map" % (name, name) for name in ("mpi", "sqlite", "jvm", "ompt")})
    with_libpem = {"libpem-preload.so": [maps["libpem.so.1"], maps["libpem-libc.so"]]}
    with_libpem["libpem-adapters.so"] = with_libpem["libpem-preload.so"] + [
        maps["libpem-%s.so" % name] for name in ("mpi", "sqlite") if os.path.exists(BUILD + "/lib/libpem-%s.so" % name)]
    for path in sorted(glob.glob(BUILD + "/lib/*.so*") + glob.glob(BUILD + "/lib/pem/*.so")):
        name = os.path.basename(path)
        if os.path.islink(path):
            continue
        if name in with_libpem:
            equal(names(path), set().union(*map(listed, with_libpem[name])), "exported by %s, and listed in its maps" % name)
            continue
        if name.startswith(("source-", "export-")):
            script = "libpem/sources/source.map" if name.startswith("source-") else "viz-export/exporter.map"
        else:
            assert name in maps, "%s has no map: list what it exports" % name
            script = maps[name]
        equal(names(path), listed(script), "exported by %s, and listed in %s" % (name, script))


@test
def nonsense_is_given_to_each_function():
    "each function of sessions and their handles is called with NULL and nonsense by unit/session_nonsense"
    with open(ROOT + "/tests/unit/session_nonsense.c", encoding="utf-8") as text:
        called = set(re.findall(r"\b(pem_\w+)\(", text.read()))
    wanted = {name for name in listed("libpem/libpem.map")
              if re.match(r"pem_(session|event_set|statistics|callback|log|recorder|run|trace)(s?|_)_", name) or name == "pem_cgroup_id"}
    wanted -= {name for name in wanted if re.match(r"pem_trace__(?!open|unpack|recover)", name)} | {"pem_run__drop_capabilities"}
    equal(wanted - called, set(), "functions that the test does not call")


@test
def nonsense_is_given_to_each_function_on_traces():
    "each function on traces, passes, records, models and queues is called with NULL by unit/trace_nonsense"
    with open(ROOT + "/tests/unit/trace_nonsense.c", encoding="utf-8") as text:
        called = set(re.findall(r"\b(pem_\w+)\(", text.read()))
    wanted = set()
    for header in ("trace", "context", "model", "streams"):
        with open(ROOT + "/libpem/include/pem/%s.h" % header, encoding="utf-8") as text:
            wanted |= set(re.findall(r"^[^ */].*?\b(pem_\w+)\(", text.read(), re.MULTILINE))
    wanted -= {"pem_streams__offer"}  # it takes nothing: e2e/rates_gstreamer
    equal("pem_trace__next" in wanted and "pem_event__matches" in wanted, True, "the headers are read")
    equal(wanted - called, set(), "functions that the test does not call")


@test
def breaks_are_found():
    "a function that goes or changes, a member that moves, an enumerator renumbered, a struct that shrinks"
    before = ["function pem_a int (int)", "symbol pem_a PEM_0.2", "enumerator PEM_X 1", "struct pem_s 24",
              "member pem_s.size 0 size_t", "member pem_s.b 8 int", "member pem_s.c 16 int", "struct pem_fixed 8",
              "member pem_fixed.x 0 int"]
    equal(describe.broken(before, before), [], "nothing")
    for old, new, says in (
            ("function pem_a int (int)", None, "function pem_a is gone"),
            ("function pem_a int (int)", "function pem_a void (int)", "is 'void (int)'"),
            ("symbol pem_a PEM_0.2", None, "symbol pem_a is gone"),
            ("symbol pem_a PEM_0.2", "symbol pem_a PEM_0.3", "is 'PEM_0.3'"),
            ("enumerator PEM_X 1", "enumerator PEM_X 2", "enumerator PEM_X was '1'"),
            ("member pem_s.b 8 int", "member pem_s.b 12 int", "member pem_s.b was '8 int'"),
            ("struct pem_s 24", "struct pem_s 16", "had 24 bytes and has 16"),
            ("struct pem_fixed 8", "struct pem_fixed 16", "had 8 bytes and has 16")):
        now = [line for line in before if line != old] + ([new] if new else [])
        found = describe.broken(before, now)
        equal([says in sentence for sentence in found], [True], "%s -> %s: %s" % (old, new, found))
    for new, says in (("symbol pem_b PEM_0.2", "was released without it"), ("member pem_s.d 12 int", "at the end")):
        found = describe.broken(before, before + [new])
        equal([says in sentence for sentence in found], [True], "%s: %s" % (new, found))
    grown = [line for line in before if line != "struct pem_s 24"] + [
        "struct pem_s 32", "member pem_s.d 24 int", "function pem_b int (void)", "symbol pem_b PEM_0.3", "enumerator PEM_Y 2"]
    equal(describe.broken(before, grown), [], "what only adds")


@test
def reserved_bytes_are_for_members_to_come():
    "a member may take the place of reserved bytes, and of no others"
    before = ["struct pem_s 24", "member pem_s.a 0 uint64_t", "member pem_s.reserved 8 uint8_t[16]"]
    for now, count in ((["member pem_s.b 8 uint64_t", "member pem_s.reserved 16 uint8_t[8]"], 0),
                       (["member pem_s.b 8 uint64_t", "member pem_s.c 16 uint64_t"], 0),
                       (["member pem_s.b 8 uint64_t", "member pem_s.reserved 16 uint8_t[4]"], 1),
                       (["member pem_s.b 4 uint32_t", "member pem_s.reserved 8 uint8_t[16]"], 1)):
        for number in "", "1":  # a struct may have reserved bytes in several places
            renamed = [line.replace("reserved", "reserved" + number) for line in now]
            found = describe.broken(before[:2] + [before[2].replace("reserved", "reserved" + number)], before[:2] + renamed)
            equal(len(found), count, "breaks of %s: %s" % (renamed, found))


@test
def clang_tells_layouts():
    "a struct's members and an enum's values are read from C"
    need("clang")
    source = "enum pem_e { PEM_A, PEM_B = 7, PEM_C };\nstruct pem_x { char c; struct { int i; } in; };\n" \
             "int pem_f(struct pem_x *x);\nstatic int pem_g(void) { return 0; }\n"
    equal(describe.records(source), ["struct pem_x 8", "member pem_x.c 0 char", "member pem_x.in 4 struct"], "records")
    equal(describe.declarations(source), ["enumerator PEM_A 0", "enumerator PEM_B 7", "enumerator PEM_C 8",
                                          "function pem_f int (struct pem_x *)"], "declarations")


run_all()
