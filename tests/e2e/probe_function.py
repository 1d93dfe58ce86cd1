# SPDX-License-Identifier: MIT
"""
probe_function: functions of stripped programs, by name and by address; parameters and results by debug information

Not here: functions of programs with symbols and no debug information, and static probes (probe_binary).
"""
import json
import os
import re
import shutil

from preload import compile_program, need_preload
from probing import here, record, rows
from tap import PEM, ROOT, equal, need, need_mounts, run, run_all, skip, test, tmp

SOURCE = ROOT + "/tests/programs/functions.c"
TEXTS = ["one", "", "(fault)", "(fault)", "one"]
TARGET = [(str(i - 2), TEXTS[i]) for i in range(5)]
SPEC = """<spec provider='functions' description='functions'>
%s</spec>"""
EVENT = """<event name='APP::Functions::%s' description='called'>
<layerId value='APP'/><classId value='Functions'/><specifier value='%s'/>
<source type='uprobe' name='%s' binary='%s'/>
<fields>%s</fields></event>
"""


def build(*flags, compiler="gcc"):
    """functions.c as a program with debug information."""
    need(compiler, "objcopy", "strip", "nm")
    path = os.path.join(tmp(), "functions")
    rc, _, err = run([compiler, "-g", *flags, "-o", path, SOURCE])
    equal(rc, 0, compiler + ": " + err)
    return path


def split(path):
    """Move symbols and debug information from a program to a file of their own."""
    debug = os.path.join(os.path.dirname(path), "symbols")
    for command in (["objcopy", "--only-keep-debug", path, debug], ["strip", path]):
        equal(run(command)[0], 0, " ".join(command))
    equal(run(["nm", path])[1], "", "symbols that are left")
    return debug


def address_of(path, function):
    _, out, _ = run(["nm", path])
    return int(next(line.split()[0] for line in out.splitlines() if line.split()[-1] == function), 16)


def values(events, path, name, *fields):
    """What an event's fields were in a recording of the program, as text."""
    trace, _ = record(events, path)
    return [tuple(row[field] for field in fields) for row in rows(trace, name)]


def described(pattern):
    """The description, and the fields with their types, of the one event that a pattern names."""
    rc, out, err = run([PEM, "list", "--json", pattern])
    equal(rc, 0, "list: " + err)
    event, = json.loads(out)
    return event["description"], [(field["name"], field["type"]) for field in event["fields"]]


def refused(pattern, says, status=1):
    rc, _, err = run([PEM, "record", "-o", os.path.join(tmp(), "refused"), "-e", pattern, "--", "true"])
    equal(rc, status, "status for " + pattern)
    assert says in err, err


@test
def by_its_debug_link():
    "a function of a stripped program is found in the file that its debug link names; its parameters have names"
    here()
    path = build("-O2")
    debug = split(path)
    refused("uprobe:%s:target" % path, "has no function 'target'")
    equal(run(["objcopy", "--add-gnu-debuglink=" + debug, path])[0], 0, "objcopy")
    equal(values("uprobe:%s:target" % path, path, "APP::functions::target", "a", "s"), TARGET, "parameters")


@test
def by_its_build_id():
    "a function of a stripped program is found below /usr/lib/debug/.build-id, and in the cache of debuginfod's clients"
    here()
    path = build("-O0", "-Wl,--build-id=0x1234567890abcdef")
    debug, cache = split(path), os.path.join(tmp(), "cache")
    os.makedirs(cache + "/1234567890abcdef")
    shutil.copy(debug, cache + "/1234567890abcdef/debuginfo")
    os.environ["DEBUGINFOD_CACHE_PATH"] = cache
    equal(values("uprobe:%s:target" % path, path, "APP::functions::target", "a", "s"), TARGET, "by the cache")
    del os.environ["DEBUGINFOD_CACHE_PATH"]
    need_mounts()
    if not os.path.isdir("/usr/lib/debug"):
        skip("there is no /usr/lib/debug here to mount a folder on")
    folder = os.path.join(tmp(), "folder")
    os.makedirs(folder + "/.build-id/12")
    os.rename(debug, folder + "/.build-id/12/34567890abcdef.debug")
    rc, out, err = run(["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /usr/lib/debug && exec "$@"', folder,
                        PEM, "list", "--json", "uprobe:%s:target" % path])
    equal(rc, 0, err)
    equal([field["name"] for field in json.loads(out)[0]["fields"]], ["a", "s"], "fields")


def intervals(events, path):
    """How many intervals of each name a recording of the program has."""
    trace, _ = record(events, path)
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report: " + err)
    told = json.loads(out)
    equal(told["info"]["balanced"], True, "balanced")
    return {row["interval"]: row["count"] for row in told["intervals"] if row["interval"].startswith("APP::functions")}


@test
def entry_and_return_enclose():
    "the entry and the return of a function, recorded together, are an interval of each execution; one of them alone is none"
    here()
    path = build("-O2")
    entry, end = "uprobe:%s:target" % path, "uretprobe:%s:target" % path
    equal(intervals(entry + "," + end, path), {"APP::functions::target": 5}, "of both")
    equal(intervals("%s,%s,uprobe:%s:wide" % (end, entry, path), path), {"APP::functions::target": 5}, "and of another function's entry")
    equal([intervals(entry, path), intervals(end, path)], [{}, {}], "of one")


@test
def by_address():
    "an address is a probe where an instruction begins; with debug information a function's has its parameters"
    here()
    path = build("-O2")
    target = address_of(path, "target")
    where = "uprobe:%s:%#x" % (path, target)
    equal(values(where, path, "APP::functions::_%#x" % target, "a", "s"), TARGET, "with debug information")
    split(path)
    trace, _ = record(where + ",uretprobe:%s:%#x" % (path, target), path)
    found = [int(row["arg0"], 0) & 0xffffffff for row in rows(trace, "APP::functions::_%#x" % target)]
    equal(found, [(i - 2) & 0xffffffff for i in range(5)], "a register of the stripped program")
    found = [int(row["ret"], 0) & 0xffffffff for row in rows(trace, "APP::functions::_%#x__return" % target)]
    equal(found, [(2 - i) & 0xffffffff for i in range(5)], "results")


@test
def addresses_that_are_no_places():
    "what is not code, or in the middle of an instruction, or no function's begin where one is needed, is refused"
    here()
    path = build("-O2")
    main = address_of(path, "main")
    _, out, _ = run(["objdump", "-d", "--no-show-raw-insn", path])
    begins = [int(line.split(":")[0], 16) for line in out.split("<main>:")[1].split("\n\n")[0].splitlines()[1:]]
    inner = next(at for at in range(main, begins[-1]) if at not in begins)
    assert described("uprobe:%s:main+%d" % (path, begins[1] - main)), "a place in a function"
    refused("uprobe:%s:main+%d" % (path, inner - main), "is in the middle of an instruction")
    split(path)
    refused("uprobe:%s:%#x" % (path, inner), "is in the middle of an instruction")
    refused("uprobe:%s:0x10" % path, "has no code at 0x10")
    refused("uprobe:%s:0xffffffffffffffff" % path, "has no code at 0xffffffffffffffff")
    refused("uprobe:%s:0x" % path, "expected uprobe:PATH:FUNCTION[+OFFSET] or 0xADDRESS")
    refused("uretprobe:%s:%#x" % (path, begins[1]), "no function is known to begin at")
    for address in begins:
        assert described("uprobe:%s:%#x" % (path, address)), "each instruction is a place"


def all_kinds(path):
    "Compare parameters of all kinds with what the program passes."
    one = "APP::functions::"
    functions = ("wide", "mixed", "make", "nothing")
    trace = os.path.join(tmp(), "trace")
    events = ["uprobe:%s:%s" % (path, name) for name in functions]
    events += ["uretprobe:%s:%s" % (path, name) for name in ("target", "name")]
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "-e", ",".join(events), "--", path])
    equal(rc, 0, err)
    equal([(row["c"], row["h"], row["u"], row["b"], row["e"], row["seventh"], row["eighth"])
           for row in rows(trace, one + "wide")], [("-1", "65535", "4000000000", "1", "-1", "-7", "one")] * 5, "wide")
    assert all(int(row["p"], 0) > 4096 for row in rows(trace, one + "wide")), "a pointer"
    found = rows(trace, one + "mixed")
    equal([(row["first"], row["after"]) for row in found], [(str(i), "-3") for i in range(5)], "mixed")
    assert "d" not in found[0] and "pair" not in found[0], found[0]
    if "last" in found[0]:
        equal([row["last"] for row in found], ["-5"] * 5, "the parameter after a structure")
    equal([row["x"] for row in rows(trace, one + "make")], [str(i) for i in range(5)], "after a result's address")
    equal(len(rows(trace, one + "nothing")), 5, "a function without parameters")
    equal([row["ret"] for row in rows(trace, one + "target__return")], [str(2 - i) for i in range(5)], "results")
    equal([row["ret"] for row in rows(trace, one + "name__return")], ["one", "", "one", "", "one"], "results that are text")


@test
def parameters_of_all_kinds():
    "integers of all sizes and signs, pointers, texts, those on the stack, and results, are what the program passes"
    here()
    for flags in ("-O0",), ("-O2",), ("-O2", "-gdwarf-4"):
        all_kinds(build(*flags))
    if shutil.which("clang"):
        for flags in ("-O0",), ("-O2",):
            all_kinds(build(*flags, compiler="clang"))


@test
def a_clone_with_other_parameters():
    "a function that the compiler gave other parameters has those whose register is known, with their values"
    here()
    path = build("-O2")
    _, out, _ = run(["nm", path])
    name = next((line.split()[-1] for line in out.splitlines() if " clone." in line), None)
    if name is None:
        skip("this compiler makes no clone of the function")
    event = "APP::functions::" + re.sub(r"\W", "_", name)
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "-e", "uprobe:%s:%s" % (path, name), "--", path])
    equal(rc, 0, err)
    equal([row["used"] for row in rows(trace, event)], [str(100 + i) for i in range(5)], "values")


@test
def what_is_left_out_is_said():
    "a parameter that can't be read is told when it is recorded, in the list, and when a predicate names it"
    here()
    path = build("-O0")
    says = "d (a floating-point number), pair (a structure)"
    assert says in described("uprobe:%s:mixed" % path)[0]
    rc, _, err = run([PEM, "record", "-o", os.path.join(tmp(), "trace"), "-e", "uprobe:%s:mixed" % path, "--", path])
    equal((rc, says in err), (0, True), err)
    refused("uprobe:%s:mixed where d > 1" % path, says)


def spec(events):
    folder = os.path.join(tmp(), "spec")
    os.mkdir(folder)
    with open(folder + "/functions.xml", "w", encoding="utf-8") as out:
        out.write(SPEC % "".join(EVENT % (name, name, function, binary, fields) for name, function, binary, fields in events))
    os.environ["PEM_SPEC_PATH"] = folder


ODD = r"""
extern "C" __attribute__((noinline)) int odd(int, int b) { __asm__ volatile("" : : "r"(b)); return b; }
static int one(void) { return 1; }
extern "C" { static int (*pick(void))(void) { return one; } }
extern "C" int chosen(void) __attribute__((ifunc("pick")));
namespace first { static __attribute__((noinline, used)) int same(int number) __asm__("same"); int same(int number) { return number; } }
int main() { return odd(1, 2) + chosen() - 3; }
"""
SAME = '__attribute__((noinline, used)) static int same(const char *text, long length) { return text[length]; }'


@test
def functions_that_are_odd():
    "a parameter without a name has its number, functions of one name and two kinds have registers, and one that is chosen at start is refused"
    here()
    need("g++", "gcc", "objcopy")
    other = os.path.join(tmp(), "same.o")
    with open(other + ".c", "w", encoding="ascii") as file:
        file.write(SAME)
    equal(run(["gcc", "-g", "-O1", "-fPIE", "-c", "-o", other, other + ".c"])[0], 0, "gcc")
    path = compile_program(ODD, compiler="g++", flags=["-xnone", other])
    equal([name for name, _ in described("uprobe:%s:odd" % path)[1]], ["arg0", "b"], "parameters")
    equal([name for name, _ in described("uprobe:%s:same" % path)[1]][:3], ["arg0", "arg1", "arg2"], "fields of functions of one name")
    refused("uprobe:%s:chosen" % path, "is chosen when the program starts", 2)


@test
def an_event_of_a_spec():
    "a spec's event of source uprobe is recorded by name, with parameters by name and registers by position"
    here()
    path = build("-O2")
    target = "%#x" % address_of(path, "target")
    given = "<field name='number' type='int64' from='a'/><field name='text' type='string' max='8' from='s'/>"
    spec([("Named", "target", path, given),
          ("Placed", target, path, "<field name='number' type='int32' from='arg0'/>"),
          ("Narrow", "target", path, "<field name='number' type='uint8' from='a'/>"),
          ("Unknown", "mixed", path, "<field name='number' type='uint64' from='d'/>")])
    trace, _ = record("APP::Functions::Named,APP::Functions::Placed", path)
    equal([(row["number"], row["text"]) for row in rows(trace, "APP::Functions::Named")], TARGET, "by name")
    equal([(row["number"],) for row in rows(trace, "APP::Functions::Placed")], [row[:1] for row in TARGET], "by position")
    _, out, _ = run([PEM, "report", "--json", trace])
    equal({kind["kind"]: kind["count"] for kind in json.loads(out)["cost"]["kinds"]}.get("uprobe-log"), 10, "that cost a uprobe's")
    for name, says in ("Narrow", "can't hold each value of parameter a"), ("Unknown", "d (a floating-point number)"):
        rc, out, _ = run([PEM, "list", "--json", "APP::Functions::" + name])
        equal(rc, 0, "list")
        assert says in json.loads(out)[0]["reason"], out


@test
def calls_of_pems_own():
    "pem's own libraries in a program do not ask the C library for variables"
    here()
    need_preload()
    path = compile_program('#include <stdlib.h>\nint main(void) { int i, n = 0; for (i = 0; i < 5; i++) n += getenv("ASKED") != NULL; return n; }')
    libc = re.search(r"=> (\S*libc\.so\.6)", run(["ldd", path])[1])
    if not libc:
        skip("no C library that is linked when a program starts")
    own = shutil.copy(libc[1], tmp())
    spec([("Asked", "getenv", own, "<field name='name' type='string' max='64' from='arg0'/>")])
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run(["env", "LD_LIBRARY_PATH=" + os.path.dirname(own), PEM, "record", "-q", "-o", trace, "-e", "APP::Functions::Asked,APP::Libc::Malloc", "--", path])
    equal(rc, 0, err)
    began = int(rows(trace, "OS::Process::Rename")[0]["time_ns"])
    names = [row["name"] for row in rows(trace, "APP::Functions::Asked") if int(row["time_ns"]) > began]
    equal((len(names), set(names) - {"ASKED", "(fault)"}), (5, set()), "calls, and names of others, of %s" % names)
    text = " ".join(run([PEM, "report", trace])[1].split())
    assert "its own calls of functions that have probes, are among theirs" in text, text


@test
def a_program_from_a_package():
    "what a stripped program of a package asks the C library for is what bpftrace shows, call by call"
    here()
    need("bpftrace", "bash")
    bash = os.path.realpath(shutil.which("bash"))
    libc = re.search(r"=> (\S*libc\.so\.6)", run(["ldd", bash])[1])
    if not libc:
        skip("bash is not linked with the C library here")
    # A copy: bpftrace puts its breakpoint into each process that has the file, and Valgrind takes it for the program's own.
    own = shutil.copy(libc[1], tmp())
    clean = ["env", "-i", "PATH=" + os.environ["PATH"], "LD_LIBRARY_PATH=" + os.path.dirname(own)]
    script = 'uprobe:%s:getenv /pid == cpid/ { printf("=%%s\\n", str(arg0)) }' % own
    _, out, err = run([*clean, "bpftrace", "-e", script, "-c", bash + " -c true"])
    wanted = [line[1:] for line in out.splitlines() if line.startswith("=")]
    if not wanted:
        skip("bpftrace shows nothing: " + (err.strip().splitlines() or ["no word"])[0])
    spec([("Asked", "getenv", own, "<field name='name' type='string' max='64' from='arg0'/>")])
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([*clean, "PEM_SPEC_PATH=" + os.environ["PEM_SPEC_PATH"], PEM, "record", "-q", "-o", trace, "-e",
                      "APP::Functions::Asked", "--", bash, "-c", "true"])
    equal(rc, 0, err)
    # Before its exec, which renames it, the process runs pem's code.
    began = int(rows(trace, "OS::Process::Rename")[0]["time_ns"])
    found = [row["name"] for row in rows(trace, "APP::Functions::Asked") if int(row["time_ns"]) > began]
    equal(len(found), len(wanted), "calls")
    # Whether memory is there when a probe reads it, a run does not know of the other; bpftrace shows "" if it is not.
    read = [pair for pair in zip(found, wanted) if pair[0] != "(fault)" and pair[1]]
    equal([a for a, _ in read], [b for _, b in read], "names that both could read")
    assert len(read) * 10 > len(found) * 9, (found, wanted)


run_all()
