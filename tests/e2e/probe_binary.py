# SPDX-License-Identifier: MIT
"""
probe_binary: functions and static probes of programs and libraries, with arguments, results and semaphores

guest: module=x86_64-6.1 file=build/programs/probed
"""
import json
import os
import platform
import re
import sys
import time

from probing import PROBED, here, record, rows
from tap import PEM, equal, need, run, run_all, skip, start, test, tmp

USES = 7


def numbers(found, *names):
    return [tuple(int(row[name], 0) for name in names) for row in found]


@test
def arguments_of_a_static_probe():
    "a static probe's arguments arrive from registers, memory and constants, with their sizes and signs"
    here()
    trace, _ = record("usdt:%s:probed:work" % PROBED, PROBED, str(USES))
    found = rows(trace, "APP::probed::probed__work")
    equal(numbers(found, "arg0", "arg1", "arg2", "arg3"), [(i, i << 32, -i, 7) for i in range(USES)], "arguments")
    equal({row["process"] for row in found}, {"probed"}, "process")


@test
def an_argument_that_is_a_variable():
    "an argument that lies at a place counted from the instruction is read wherever the program is in memory"
    here()
    trace, _ = record("usdt:%s:variable" % PROBED, PROBED, str(USES))
    found = rows(trace, "APP::probed::probed__variable")
    equal(numbers(found, "arg0"), [(11 * (i + 1),) for i in range(USES)], "arguments")


@test
def places_of_one_static_probe():
    "a probe that stands at two places, with its argument elsewhere at each, is one event"
    here()
    trace, _ = record("usdt:%s:place" % PROBED, PROBED, str(USES))
    found = numbers(rows(trace, "APP::probed::probed__place"), "arg0")
    equal(found, [(i if i & 1 else 1000,) for i in range(USES)], "arguments")


@test
def arguments_that_not_all_places_have():
    "what only some places of a static probe have is no field, for it would be read as 0 at the others"
    here()
    trace, _ = record("usdt:%s:uneven" % PROBED, PROBED, str(USES))
    found = rows(trace, "APP::probed::probed__uneven")
    equal(numbers(found, "arg0"), [(i,) for i in range(USES)], "arguments")
    equal([name for name in found[0] if name == "arg1"], [], "fields besides arg0")


def fields_of(pattern):
    """The fields of the one event that a pattern names, by name."""
    rc, out, err = run([PEM, "list", "--json", pattern])
    equal(rc, 0, "list: " + err)
    return [field["name"] for field in json.loads(out)[0]["fields"]]


NOTE = """
.text
.globl f
.type f, @function
f: nop
.size f, 1
.pushsection .note.stapsdt, "", "note"
.balign 4
.4byte 8, 3f-2f, 3
.asciz "stapsdt"
2: .8byte f, 0, 0
.asciz "p"
.asciz "x"
.asciz "8@state(%rip) 8@$5"
3: .balign 4
.popsection
"""
STATE = ".data\n.type state, @object\nstate: .8byte 1\n.size state, 8\n"


def link(*sources, options=()):
    """A library of assembler texts; skips where it can't be made."""
    need("cc")
    files = []
    for number, text in enumerate(sources):
        files.append(os.path.join(tmp(), "%d.s" % number))
        with open(files[-1], "w", encoding="utf-8") as out:
            out.write(text)
    path = os.path.join(tmp(), "lib.so")
    rc, _, err = run(["cc", "-nostdlib", "-shared", "-o", path, *options, *files])
    if rc:
        skip("cc can't make it: " + err.strip().splitlines()[-1])
    return path


@test
def a_variable_that_there_are_two_of():
    "an argument at a name that the program has twice is no field; at one that it has once it is"
    here()
    if platform.machine() != "x86_64":
        skip("only x86 instructions count from their own place")
    equal(fields_of("usdt:%s:x" % link(NOTE + STATE)), ["arg0", "arg1"], "fields with one variable")
    equal(fields_of("usdt:%s:x" % link(NOTE + STATE, STATE)), ["arg1"], "fields with two")


@test
def binaries_of_other_machines():
    "a program for another kind of CPU is refused, and one of 32 bits has no arguments where its registers hold none"
    here()
    other = os.path.join(tmp(), "other")
    with open(PROBED, "rb") as binary, open(other, "wb") as out:
        data = bytearray(binary.read())
        data[18:20] = b"\xf3\0"  # e_machine: RISC-V
        out.write(data)
    rc, _, err = run([PEM, "record", "-e", "uprobe:%s:probed_sum" % other, "--", "true"])
    equal(rc, 1, "status")
    assert "is a program for another kind of CPU" in err, err
    if platform.machine() != "x86_64":
        skip("no compiler for programs of 32 bits")
    narrow = link(".globl f\n.type f, @function\nf: ret\n.size f, 1\n", options=("-m32",))
    equal(fields_of("uprobe:%s:f" % narrow), [], "fields of a function")


@test
def semaphores_count_users():
    "a program that asks its semaphore finds it raised while it is recorded, and not before or after"
    here()
    seen = lambda out: int(out.split()[0])
    equal(seen(run([PROBED, str(USES)])[1]), 0, "seen when nobody records")
    _, out = record("usdt:%s:work" % PROBED, PROBED, str(USES))
    equal(seen(out), USES, "seen when recorded")
    for _ in range(6000):  # the kernel takes its time to end a probe
        after = seen(run([PROBED, str(USES)])[1])
        if not after:
            break
        time.sleep(0.1)
    equal(after, 0, "seen afterwards")


@test
def a_process_that_started_later():
    "a command's children are observed, too, and no other process"
    here()
    start([PROBED, "1000000"])
    trace, _ = record("usdt:%s:work" % PROBED, "sh", "-c", "%s 2; true; %s 3" % (PROBED, PROBED))
    equal(numbers(rows(trace, "APP::probed::probed__work"), "arg0"), [(0,), (1,), (0,), (1,), (2,)], "arguments")


@test
def functions_and_results():
    "a function's entry has its arguments, its return the result; of a shared library, too"
    here()
    trace, _ = record("uprobe:%s:probed_sum,uretprobe:%s:probed_sum,uprobe:libc.so.6:atoi" % (PROBED, PROBED),
                      PROBED, str(USES))
    found = numbers(rows(trace, "APP::probed::probed_sum"), "arg0", "arg1")
    equal(found, [(i, 100) for i in range(USES)], "arguments")
    equal(numbers(rows(trace, "APP::probed::probed_sum__return"), "ret"), [(i + 100,) for i in range(USES)], "results")


@test
def a_function_that_a_program_calls_of_the_library():
    "a library's function is seen in a program that pem did not build"
    here()
    need("bash")
    trace, _ = record("uprobe:libc.so.6:getenv", "bash", "-c", "true")
    assert rows(trace, "APP::libc_so_6::getenv"), "bash calls getenv"


@test
def conditions_and_statistics():
    "--where tests arguments before anything is written; pem stat adds them up where they are"
    here()
    trace, _ = record("usdt:%s:work where arg0 >= 3 && arg2 != -5" % PROBED, PROBED, str(USES))
    equal(numbers(rows(trace, "APP::probed::probed__work"), "arg0"), [(3,), (4,), (6,)], "arguments")
    rc, _, err = run([PEM, "stat", "-f", "arg2", "-e", "usdt:%s:work" % PROBED, "--", PROBED, str(USES)])
    equal(rc, 0, err)
    line = next(line for line in err.splitlines() if "probed__work" in line)
    assert str(-sum(range(USES))) in line and "-%d" % (USES - 1) in line, err


@test
def statistics_of_threads_in_each_others_way():
    "each use of a place is in the statistic, or among those that it is said to lack"
    here()
    uses, programs = 2000 if os.environ.get("PEM_TEST_EMULATED") else 20000, 4
    command = "for i in 1 2 3 4; do %s %d & done; wait" % (PROBED, uses)
    rc, _, err = run([PEM, "stat", "-e", "uprobe:%s:probed_sum" % PROBED, "--", "sh", "-c", command])
    equal(rc, 0, err)
    line = next(line for line in err.splitlines() if "APP::probed::probed_sum" in line)
    counted = int(re.search(r"[0-9][0-9,.\u202f']*", line).group().replace(",", ""))
    lacking = sum(int(n) for n in re.findall(r"statistics of probes lack ([0-9]+) events", err))
    equal(counted + lacking, uses * programs, "counted and said to be lacking")


@test
def python_with_its_own_probes():
    "a Python built with static probes shows calls of its functions; its semaphores are raised for it"
    here()
    for python in ("/usr/bin/python3", "/usr/bin/python3-dbg"):
        rc, out, _ = run([PEM, "list", "usdt:%s:python:*" % python])
        if rc == 0 and "function__entry" in out:
            break
    else:
        skip("no Python here is built with static probes (--with-dtrace)")
    trace, _ = record("usdt:%s:function__entry" % python, python, "-c", "import json")
    name = "APP::%s::python__function__entry" % os.path.basename(python).replace(".", "_")
    assert len(rows(trace, name)) >= 10, "calls of functions"


@test
def more_places_than_descriptors():
    "a probe that one link puts to all its places takes two descriptors, be there more places than a process may open"
    here()
    if tuple(int(n) for n in re.findall(r"[0-9]+", platform.release())[:2]) < (6, 6):
        skip("before Linux 6.6 each place takes a link")
    places = 300
    note = NOTE.split(".pushsection")[1].replace("f, 0, 0", "990b, 0, 0").replace('"8@state(%rip) 8@$5"', '""')
    path = link(".text\n.globl f\n.type f, @function\nf:\n.rept %d\n990: nop\n.pushsection%s.endr\nret\n"
                % (places, note))
    trace = os.path.join(tmp(), "trace")
    call = "import ctypes; ctypes.CDLL('%s').f()" % path
    rc, _, err = run(["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", PEM, "record", "-q", "-o", trace, "-e",
                      "usdt:%s:x" % path, "--", sys.executable, "-c", call])
    equal((rc, "descriptor" in err), (0, False), "record: " + err)
    equal(len(rows(trace, "APP::lib_so::p__x")), places, "records")


@test
def what_is_not_there():
    "a file, function or probe that does not exist is wrong input, with what was nearly named"
    here()
    need("bash")
    text = os.path.join(tmp(), "text")
    with open(text, "w", encoding="utf-8") as out:
        out.write("no program")
    for events, says in (("usdt:%s:wrok" % PROBED, "no static probe 'wrok'; did you mean 'work'?"),
                         ("uprobe:%s:probed_sun" % PROBED, "did you mean 'probed_sum'?"),
                         ("uprobe:/nowhere/at/all:f", "no program or library '/nowhere/at/all'"),
                         ("usdt:%s:*" % text, "expected an ELF file"),
                         ("usdt:%s:nothing*" % PROBED, "no static probe 'nothing*'; pem list 'usdt:%s:*' shows" % PROBED),
                         ("usdt:%s:*" % PEM, "%s has no static probes\n" % PEM),
                         ("uprobe:%s:probed_sum+0x100000" % PROBED, "bytes long"),
                         ("uprobe:%s" % PROBED, "expected uprobe:PATH:FUNCTION[+OFFSET]")):
        rc, _, err = run([PEM, "record", "-e", events, "--", "true"])
        equal(rc, 1, "status for " + events)
        assert says in err, err


run_all()
