# SPDX-License-Identifier: MIT
"""
codegen_output.py - the files that pem-codegen writes: the same each time, left alone when unchanged, whole or not at all
"""
import os
import re
import shutil

from tap import BUILD, CODEGEN, PEM, ROOT, equal, need, parallel, run, run_all, skip, test, tmp

LONG_S = 12

SPECS = sorted(os.path.join(ROOT, "spec", layer, name) for layer in ("app", "cpo", "hw", "os")
               for name in os.listdir(os.path.join(ROOT, "spec", layer)) if name.endswith(".xml"))
BACKENDS = ("c", "c++", "fortran", "rust", "java", "python", "model", "ctf", "bpf", "man", "html")


def generate(folder, specs=None, backends=BACKENDS):
    parallel(lambda backend: equal(run([CODEGEN, "--backend", backend, "-o", folder, *(specs or SPECS)]), (0, "", ""), backend),
             backends)


def files(folder):
    """Paths of all files, within folder."""
    return sorted(os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names)


def contents(folder):
    result = {}
    for name in files(folder):
        with open(os.path.join(folder, name), "rb") as f:
            result[name] = f.read()
    return result


def states(folder):
    return {name: (s.st_ino, s.st_mtime_ns, s.st_ctime_ns) for name in files(folder)
            for s in [os.stat(os.path.join(folder, name))]}


@test
def second_run_writes_nothing():
    "a second run with the same specs touches no file"
    folder = os.path.join(tmp(), "deep", "er")
    generate(folder)
    before = states(folder)
    assert len(before) >= 2 * len(SPECS) + 3, before
    generate(folder)
    equal(states(folder), before, "inodes and times")


@test
def only_changed_files_are_written():
    "a change of one spec rewrites only the files made from it"
    folder, specs = tmp(), tmp()
    mine = [shutil.copy(s, specs) for s in SPECS]
    generate(folder, mine, ["c"])
    before = states(folder)
    phase = os.path.join(specs, "phase.xml")
    with open(phase, encoding="utf-8") as f:
        text = f.read()
    with open(phase, "w", encoding="utf-8") as f:
        f.write(text.replace("what the program is about to do", "what is coming"))
    generate(folder, mine, ["c"])
    after = states(folder)
    equal([n for n in sorted(before) if before[n] != after[n]], ["phase.h"], "changed files")


@test
def output_depends_on_the_specs_alone():
    "output is the same in another folder, from another folder, at another time"
    one, two, specs = tmp(), tmp(), tmp()
    generate(one)
    os.environ["TZ"], os.environ["SOURCE_DATE_EPOCH"] = "Asia/Tokyo", "1"
    generate(two, [shutil.copy(s, specs) for s in SPECS])
    equal(contents(one), contents(two), "files")


@test
def banner_names_spec_and_hash():
    "each file says which spec, with what hash, it is made from"
    folder = tmp()
    generate(folder)
    for name, data in contents(folder).items():
        head = data[:1500].decode()
        assert re.search(r"[0-9a-f]{16}  \w+ \(\w+\.xml\)", head), name
        assert "SPDX-License-Identifier" in head, name
    with open(SPECS[0], "rb") as f:
        value = 0xcbf29ce484222325
        for byte in f.read():
            value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
    assert b"%016x" % value in contents(folder)["catalogue.c"], "hash of " + SPECS[0]


@test
def existing_output_survives_errors():
    "wrong specs leave the earlier output as it is"
    folder = tmp()
    generate(folder)
    before = states(folder)
    bad = os.path.join(tmp(), "bad.xml")
    with open(bad, "w", encoding="utf-8") as f:
        f.write("<spec/>")
    for backend in BACKENDS:
        equal(run([CODEGEN, "--backend", backend, "-o", folder, *SPECS, bad])[0], 1, "exit status")
    equal(states(folder), before, "inodes and times")


@test
def printed_commands_can_be_copied():
    "what pem gen prints for a folder with spaces and apostrophes is what a shell takes for it; control characters are shown"
    need("cc")
    folder = os.path.join(tmp(), "it's mine; $(exit 7)")
    os.mkdir(folder)
    rc, out, err = run([PEM, "gen", "-o", folder, os.path.join(ROOT, "examples/shop.xml")])
    equal(rc, 0, err)
    line = re.search(r"^build with: +(cc .*)$", out, re.M).group(1)
    program = os.path.join(folder, "program.c")
    with open(program, "w", encoding="ascii") as file:
        file.write('#include "shop.h"\nint main(void)\n{\n\treturn 0;\n}\n')
    rc, _, err = run(["sh", "-ec", line], cwd=folder)
    equal((rc, os.path.exists(os.path.join(folder, "program"))), (0, True), line + err)
    rc, out, err = run([PEM, "gen", "-o", os.path.join(tmp(), "\x1b[31m"), os.path.join(ROOT, "examples/shop.xml")])
    equal(rc, 0, err)
    assert "\x1b" not in out and "'" in out and "?[31m" in out, out


@test
def calls_are_named():
    "pem gen prints the functions that raise the spec's events, and the files have them"
    for language, name, file in (("c", "pem_notify_hello_greeting", "hello.h"), ("c++", "pem_notify_hello_greeting", "hello.h"),
                                 ("fortran", "pem_notify_hello_greeting", "hello.f90"), ("java", "notifyHelloGreeting", "pem/hello/PemHello.java"),
                                 ("python", "notify_hello_greeting", "pem_hello.py"), ("rust", "notify_hello_greeting", "pem_hello/src/lib.rs")):
        folder = tmp()
        rc, out, err = run([PEM, "gen", "--lang", language, "-o", folder, os.path.join(ROOT, "examples/hello.xml")])
        equal(rc, 0, err)
        call = re.search(r"^call: +(.*)$", out, re.M).group(1)
        assert name + "()" in call, (language, out)
        with open(os.path.join(folder, file), encoding="utf-8") as text:
            assert re.search(r"\b%s\b" % name, text.read()), (language, name)
    with open(os.path.join(folder, "pem_hello/c/hello.h"), encoding="utf-8") as text:
        assert "A program calls pem_notify_NAME()" in text.read(), "the header says nothing of what to call"


@test
def full_disk_leaves_no_part():
    "on a full disk the old file stays whole and no temporary file is left"
    need("mount")
    folder = tmp()
    rc, _, err = run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", folder])
    if rc:
        skip("a small tmpfs can't be mounted: %s; root could" % err.strip())
    try:
        rc, _, err = run([CODEGEN, "--backend", "model", "-o", folder, *SPECS])
        equal(rc, 3, "exit status")
        assert "can't be written: No space left" in err, err
        equal(os.listdir(folder), [], "files left")
    finally:
        run(["umount", folder])


@test
def catalogue_holds_every_event():
    "the built-in catalogue holds every event of the specs, with as many lines as it says"
    path = os.path.join(BUILD, "gen/catalogue.c")
    with open(path, encoding="utf-8") as f:
        literal = re.findall(r'^\t"(.*)\\n"$', f.read(), re.M)
    lines = [line.replace("\\t", "\t").replace('\\"', '"').replace("\\?", "?") for line in literal]
    equal(lines.pop(0), "pem-model\t2", "first line")
    names = []
    while lines and lines[-1].startswith("metric\t"):
        equal(lines.pop().count("\t"), 8, "cells of a metric")
    while lines:
        cells = lines.pop(0).split("\t")
        equal((cells[0], len(cells)), ("event", 20), "event line")
        names.append(cells[2])
        fields, tsdl = int(cells[15]), int(cells[16])
        for _ in range(fields):
            line = lines.pop(0)
            equal((line.split("\t")[0], line.count("\t")), ("field", 11), line)
            del lines[:int(line.split("\t")[10])]
        equal((lines[0], lines[tsdl - 1]), ("event {", "};"), "declaration of " + cells[2])
        del lines[:tsdl]
    wanted = []
    for spec in SPECS:
        with open(spec, encoding="utf-8") as f:
            wanted += re.findall(r"<event name='([^']*)'", f.read())
    equal(sorted(names), sorted(wanted), "events")


run_all()
