# SPDX-License-Identifier: MIT
"""
names.py - code of programs that a compiler made here by name: stripped, with debug files, built again, in C++, damaged
"""
import os
import random
import re
import shutil
import struct
import subprocess
import zlib

from patience import HANG_S
from tap import BUILD, equal, need, parallel, run, run_all, skip, test, tmp

NAMER = BUILD + "/programs/name_code"
C = """#include <stdlib.h>
void *volatile kept;
static inline void keep(size_t bytes)
{
	kept = malloc(bytes);
}
__attribute__((noinline)) void allocate(size_t bytes)
{
	keep(bytes);
	kept = NULL;
}
int main(void)
{
	allocate(100);
	return kept != NULL;
}
"""
CXX = """#include <new>
namespace shop { template <class T> struct Shelf { T *things; __attribute__((noinline)) void add(int count); }; }
template <class T> void shop::Shelf<T>::add(int count)
{
	things = new T[count];
}
int main(int argc, char **) { shop::Shelf<int> shelf; shelf.add(argc); return shelf.things == nullptr; }
"""


def build(folder, *flags, text=C, name="p", compiler="gcc"):
    """Compile as folder/name; the source lies beside it."""
    need(compiler, "objdump", "objcopy")
    source = name + (".c" if compiler in ("gcc", "clang") else ".cpp")
    with open(os.path.join(folder, source), "w") as out:
        out.write(text)
    rc, _, err = run([compiler, "-O2", "-g", "-Wl,--build-id", *flags, source, "-o", name], cwd=folder)
    equal(rc, 0, compiler + ", which said: " + err)
    return os.path.join(folder, name)


def call_to(binary, callee):
    """The offset in the first call of a function, as a return address minus 1."""
    _, out, _ = run(["objdump", "-d", "-j", ".text", "--no-show-raw-insn", binary])
    lines = out.splitlines()
    for i, line in enumerate(lines):
        if re.search(r"\b(call|bl|jmp|b)\b.*<%s(@.*)?>" % re.escape(callee), line):
            return int(line.split(":")[0], 16) + 1
    raise AssertionError("no call of %s in %s" % (callee, binary))


def build_id(binary):
    need("readelf")
    return re.search(r"Build ID: (\w+)", run(["readelf", "-n", binary])[1])[1]


def name(path, offsets, ids="-", folders="-"):
    """What each offset is called: a list of (function, base of file, line, source) from the innermost outwards."""
    if not os.path.exists(NAMER):
        skip("libdw-dev is missing")
    rc, out, err = run([NAMER, path, ids, folders], input="".join("%x\n" % offset for offset in offsets))
    if rc != 0:
        return rc, out.strip().split("\t")
    found = []
    for line in out.splitlines():
        cells = line.split("\t") if line else []
        found.append([(cells[i], os.path.basename(cells[i + 1]), int(cells[i + 2]), cells[i + 3])
                      for i in range(0, len(cells), 5)])
    return err.split("\t")[0], found


INLINED = [("keep", "p.c", 5, "debug"), ("allocate", "p.c", 9, "debug")]


def strip(binary, *flags):
    equal(run(["objcopy", *flags, binary])[0], 0, "objcopy")


def debug_file(folder, binary):
    """Move debug information to where distributions put it; returns the folder of debug files."""
    folders, ids = os.path.join(folder, "debug"), build_id(binary)
    path = "%s/.build-id/%s/%s.debug" % (folders, ids[:2], ids[2:])
    os.makedirs(os.path.dirname(path))
    equal(run(["objcopy", "--only-keep-debug", binary, path])[0], 0, "objcopy")
    strip(binary, "--strip-all")
    return folders, path


@test
def kinds_of_programs():
    "position-independent or not, a library, by clang, without .debug_aranges, with older and compressed debug information"
    kinds = [["-pie", "-fPIE"], ["-no-pie", "-fno-pie"], ["-shared", "-fPIC"], ["-gdwarf-4"], ["-gz"], ["-gsplit-dwarf"],
             ["-Wl,-z,separate-code", "-Wl,-Ttext-segment=0x10000000", "-no-pie", "-fno-pie"], ["clang"],
             ["clang", "-gsplit-dwarf"], ["-static"], ["-flto"]]

    def one(flags):
        folder = tmp()
        compiler = flags[0] if flags[0] == "clang" else "gcc"
        if not shutil.which(compiler):
            return
        binary = build(folder, *flags[flags[0] == "clang":], compiler=compiler)
        _, found = name(binary, [call_to(binary, "malloc" if "-static" not in flags else "__libc_malloc")])
        equal(found, [INLINED], " ".join(flags))
    parallel(one, kinds)


@test
def stripped():
    "a stripped program has the functions that it exports; one whose symbols were left has these; the rest have no name"
    folder = tmp()
    binary = build(folder, "-shared", "-fPIC", name="p.so")
    offset = call_to(binary, "malloc")
    strip(binary, "--strip-debug")
    equal(name(binary, [offset])[1], [[("allocate", "?", 0, "symbol")]], "without debug information")
    strip(binary, "--strip-all")
    equal(name(binary, [offset, 1]), (binary, [[("allocate", "?", 0, "symbol")], []]), "stripped library")
    binary = build(folder)
    offset = call_to(binary, "malloc")
    strip(binary, "--strip-all")
    equal(name(binary, [offset]), (binary, [[]]), "stripped program")


@test
def debug_file_by_build_id():
    "a stripped program's debug file is found by build id; it alone is enough when the program is gone or was built again"
    folder = tmp()
    binary = build(folder)
    offset, ids = call_to(binary, "malloc"), build_id(binary)
    folders, path = debug_file(folder, binary)
    equal(name(binary, [offset], "-", folders), (binary, [INLINED]), "beside the program")
    equal(name(binary, [offset], ids, folders), (binary, [INLINED]), "of the program with this build id")
    equal(name("-", [offset], ids, folders), (path, [INLINED]), "by build id alone")
    equal(name("-", [offset], "=" + ids[:16], "/nowhere:" + folders), (path, [INLINED]), "by object number alone")
    rc, (code, says) = name("-", [offset], "=" + ids[:15] + "?", folders)
    equal((rc, code), (1, "ENOENT"), says)
    shutil.move(binary, binary + ".old")
    equal(name(binary, [offset], ids, folders), (path, [INLINED]), "the program is gone")
    build(folder, text=C.replace("allocate", "renamed"))
    equal(name(binary, [offset], ids, folders), (path, [INLINED]), "built again")


@test
def rebuilt():
    "a program that was built again has no names of the one that ran, and the sentence says so"
    folder = tmp()
    ids = build_id(build(folder))
    binary = build(folder, text=C.replace("allocate", "renamed"))
    rc, (code, says) = name(binary, [1], ids)
    equal((rc, code), (1, "ESTALE"), says)
    assert "was built again since" in says and ids in says, says
    equal(name(binary, [1], "=" + ids[:16])[1][0], "ESTALE", "by object number")


@test
def debug_link():
    "a debug file is found by the name in the program, and is not taken if it is another one's"
    folder = tmp()
    binary = build(folder)
    offset = call_to(binary, "malloc")
    equal(run(["objcopy", "--only-keep-debug", binary, binary + ".debug"])[0], 0, "objcopy")
    strip(binary, "--strip-all", "--add-gnu-debuglink=" + binary + ".debug")
    equal(name(binary, [offset])[1], [INLINED], "beside the program")
    os.mkdir(folder + "/.debug")
    shutil.move(binary + ".debug", folder + "/.debug/p.debug")
    equal(name(binary, [offset])[1], [INLINED], "in .debug")
    other = build(folder, name="other", text=C.replace("allocate", "renamed"))
    equal(run(["objcopy", "--only-keep-debug", other, folder + "/.debug/p.debug"])[0], 0, "objcopy")
    equal(name(binary, [offset])[1], [[]], "of another program")


@test
def debug_link_by_checksum():
    "the debug file of a program without a build id is found by the name in the program if it has the checksum there"
    folder = tmp()
    binary = build(folder, "-Wl,--build-id=none")
    offset = call_to(binary, "malloc")
    equal(run(["objcopy", "--only-keep-debug", binary, binary + ".debug"])[0], 0, "objcopy")
    strip(binary, "--strip-all", "--add-gnu-debuglink=" + binary + ".debug")
    equal(name(binary, [offset])[1], [INLINED], "beside the program")
    with open(binary + ".debug", "ab") as out:
        out.write(b"x")
    equal(name(binary, [offset])[1], [[]], "with another checksum")
    os.truncate(binary + ".debug", 1 << 43)  # without data on the disk: it would take hours to read
    equal(name(binary, [offset])[1], [[]], "too large to have its checksum found")


@test
def shared_debug_file():
    "debug information that dwz moved to a file for several programs is found by the path in each, and is not taken from another file"
    need("dwz")
    folder = tmp()
    binaries = [build(folder, text=C + "/* %s */\n" % one, name=one) for one in ("p", "q")]
    offset = call_to(binaries[0], "malloc")
    equal(run(["dwz", "-m", folder + "/shared", "-h", *binaries], cwd=folder)[0], 0, "dwz")
    assert "debugaltlink" in run(["readelf", "-SW", binaries[0]])[1], "nothing is shared"
    equal(name(binaries[0], [offset])[1], [INLINED], "beside the shared file")
    shutil.copy(binaries[1], folder + "/shared")
    equal(name(binaries[0], [offset])[1], [[("allocate", "?", 0, "symbol")]], "beside another file")


@test
def pipes():
    "a pipe that a program names as its debug file, as one for several programs, or as split debug information is not opened"
    folder = tmp()
    pipe = folder + "/pipe"
    symbol = [("allocate", "?", 0, "symbol")]
    binary = build(folder, name="linked")
    offset = call_to(binary, "malloc")
    shutil.copy(binary, pipe)
    strip(binary, "--strip-debug", "--add-gnu-debuglink=" + pipe)
    os.unlink(pipe)
    os.mkfifo(pipe)
    equal(name(binary, [offset])[1], [symbol], "debug link")
    binary = build(folder, name="sharing")
    with open(folder + "/link", "wb") as out:
        out.write(pipe.encode() + bytes(1) + bytes(range(20)))
    strip(binary, "--add-section", ".gnu_debugaltlink=" + folder + "/link")
    equal(name(binary, [offset])[1], [symbol], "shared")
    binary = build(folder, "-gsplit-dwarf", name="split")
    part, = (one for one in os.listdir(folder) if one.endswith(".dwo"))
    os.unlink(folder + "/" + part)
    os.mkfifo(folder + "/" + part)
    equal(name(binary, [offset])[1], [[("allocate", "split.c", 5, "symbol")]], "split")


@test
def split_among_others():
    "split debug information is not read where other users may exchange it"
    folder = tmp()
    binary = build(folder, "-gsplit-dwarf")
    offset = call_to(binary, "malloc")
    equal(name(binary, [offset])[1], [INLINED], "in a folder of this user's")
    os.chmod(folder, 0o777)
    equal(name(binary, [offset])[1], [[("allocate", "p.c", 5, "symbol")]], "in a folder of all")


@test
def wrong_debug_file():
    "a file in the folder of debug files that has another build id than its name says is not taken"
    folder = tmp()
    binary = build(folder)
    offset, ids = call_to(binary, "malloc"), build_id(binary)
    folders, path = debug_file(folder, binary)
    other = build(folder, name="other", text=C.replace("allocate", "renamed"))
    shutil.copy(other, path)
    equal(name(binary, [offset], ids, folders)[1], [[]], "beside the program")
    equal(name("-", [offset], ids, folders)[1][0], "ENOENT", "alone")


@test
def cxx():
    "names of C++ are as the source has them, from debug information and from symbols"
    folder = tmp()
    binary = build(folder, text=CXX, compiler="g++")
    offset = call_to(binary, "_Znam@plt")
    equal(name(binary, [offset])[1], [[("shop::Shelf<int>::add(int)", "p.cpp", 5, "debug")]], "debug information")
    strip(binary, "--strip-debug")
    equal(name(binary, [offset])[1], [[("shop::Shelf<int>::add(int)", "?", 0, "symbol")]], "symbols")


@test
def left_out():
    "a function that the linker left out has no address: what lies in front of the code has no name"
    dead = "int dead(int n)\n{\n\treturn n * 3;\n}\n"
    for flags in ([], ["-gdwarf-4"]):
        binary = build(tmp(), "-ffunction-sections", "-Wl,--gc-sections", *flags, text=C + dead)
        equal(name(binary, [0, 1, 2, call_to(binary, "malloc")])[1], [[], [], [], INLINED], " ".join(flags))


@test
def as_addr2line():
    "functions and lines of the instructions of a library are addr2line's"
    need("addr2line")
    library = BUILD + "/lib/libpem-libc.so"
    _, out, _ = run(["objdump", "-d", "--no-show-raw-insn", library])
    offsets = [int(m, 16) for m in re.findall(r"^ *([0-9a-f]+):\t(?!nop|xchg +%ax,%ax|data16|cs nop)", out, re.MULTILINE)][::7]
    _, ours = name(library, offsets)
    _, out, _ = run(["addr2line", "-a", "-f", "-i", "-e", library], input="".join("%x\n" % o for o in offsets))
    theirs = []
    for line in out.splitlines():
        if line.startswith("0x"):
            theirs.append([])
        else:
            theirs[-1].append(line)
    equal(len(ours), len(theirs), "names")
    known = 0
    for offset, our, their in zip(offsets, ours, theirs):
        # Of files addr2line 2.40 says the first of the unit where the lines say that it is another one.
        their = list(zip(their[::2], (re.sub(r".*:(\d+|\?).*", r"\1", t) for t in their[1::2])))
        if not our or our[0][3] != "debug":
            continue
        equal([(function, str(line or "?")) for function, _, line, _ in our], their, "%x" % offset)
        known += 1
    assert known > 0.95 * len(offsets), "%d of %d have a name" % (known, len(offsets))


def section_header(data, wanted):
    """Where the header of a section lies in a 64-bit file."""
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3a)
    texts, = struct.unpack_from("<Q", data, table + names * size + 24)
    for at in range(table, table + count * size, size):
        start = texts + struct.unpack_from("<I", data, at)[0]
        if data[start:data.index(b"\0", start)] == wanted.encode():
            return at
    raise AssertionError("no section " + wanted)


def compressed(zeros, is_older):
    """Zeros as a compressed section: SHF_COMPRESSED, or as .zdebug."""
    head = b"ZLIB" + struct.pack(">Q", zeros) if is_older else struct.pack("<IIQQ", 1, 0, zeros, 1)
    return head + zlib.compress(bytes(zeros))


@test
def more_memory_than_bytes():
    "sections that would be inflated a thousand times, or lie in a hole of the file, are not read"
    folder = tmp()
    binary = build(folder)
    offset = call_to(binary, "malloc")
    with open(binary, "rb") as file:
        good = file.read()
    zeros = 64 << 20
    for kind, add, size in (("flag", compressed(zeros, False), 0), ("older", compressed(zeros, True), 0), ("hole", b"", 1 << 36)):
        data = bytearray(good)
        header = section_header(data, ".debug_str")
        flags, = struct.unpack_from("<Q", data, header + 8)
        struct.pack_into("<Q", data, header + 8, flags | (0x800 if kind == "flag" else 0))
        struct.pack_into("<QQ", data, header + 24, len(data), size or len(add))
        path = os.path.join(folder, kind)
        with open(path, "wb") as file:
            file.write(data + add)
            if size:
                file.truncate(len(data) + size)
        rc, said = name(path, [offset])
        equal((rc, said[0]), (1, "EFBIG"), kind + ": %r" % said)


@test
def damaged():
    "files with damaged headers, tables and debug information are read to an end, or refused with a sentence"
    folder = tmp()
    binary = build(folder, text=CXX, compiler="g++")
    with open(binary, "rb") as file:
        good = file.read()
    offsets = [call_to(binary, "_Znam@plt")] + list(range(0x1000, 0x1400, 16))
    chance = random.Random(14)
    tables = [int(m, 16) for m in re.findall(r"PROGBITS +\w+ (\w+)", run(["readelf", "-SW", binary])[1])]

    def one(number):
        bad = bytearray(good)
        if number % 8 == 0:
            bad = bad[:chance.randrange(len(bad))]
        for _ in range(chance.choice((1, 4, 30)) if bad else 0):
            start = chance.choice([0, 64, len(good) - 64 * 40] + tables)
            bad[min(start + int(chance.expovariate(1 / 200)), len(bad) - 1)] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
        path = "%s/bad%d" % (folder, number)
        with open(path, "wb") as file:
            file.write(bad)
        result = subprocess.run([NAMER, path, "-", "-"], input="".join("%x\n" % o for o in offsets), capture_output=True, text=True,
                                timeout=HANG_S, errors="replace")
        assert result.returncode in (0, 1), "file %d: status %d: %s" % (number, result.returncode, result.stderr)
        if result.returncode == 1:
            assert re.match(r"(ENOEXEC|ESTALE)\t\S.* (is not an ELF file|is damaged)", result.stdout), result.stdout
        os.unlink(path)
    name(binary, [])
    for number in range(150):
        one(number)


run_all()
