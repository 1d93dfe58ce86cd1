# SPDX-License-Identifier: MIT
"""
names_of_others: root names code in files that another user can change: with that user's rights, and whatever the files
are, it ends, with what it has and a sentence for what it has not
"""
import ctypes
import errno
import json
import os
import resource
import shutil
import struct
import threading
import zlib

from tap import BUILD, PEM, equal, need, need_mounts, run, run_all, skip, test, tmp

LONG_S = 60

USER = 54321
KEEPER = BUILD + "/programs/keep_names"
PROGRAM = """#include <stdlib.h>
static void *volatile kept;
__attribute__((noinline)) void allocate(size_t bytes)
{
	kept = malloc(bytes);
}
int main(void)
{
	allocate(100);
	return kept == NULL;
}
"""
# 80,000 functions, all with the same list of 80,000 ranges, which are empty.
RANGES = """
.section .debug_abbrev
	.uleb128 1, 0x11
	.byte 1
	.uleb128 0x55, 0x17, 0x11, 0x01, 0, 0
	.uleb128 2, 0x2e
	.byte 0
	.uleb128 0x55, 0x17, 0, 0
	.byte 0
.section .debug_info
	.long end - begin
begin:	.short 4
	.long 0
	.byte 8
	.uleb128 1
	.long unit
	.quad 0
	.rept 80000
	.uleb128 2
	.long 0
	.endr
	.byte 0
end:
.section .debug_ranges
	.rept 80000
	.quad 0x2000, 0x2000
	.endr
	.quad 0, 0
	.equ unit, 80001 * 16
	.quad 0x1000, 0x2000, 0, 0
"""
# Cuts what is mapped of a file of this name.
CUTTER = """#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
void *mmap(void *at, size_t bytes, int rights, int flags, int fd, off_t from)
{
	void *mapped = (void *)syscall(SYS_mmap, at, bytes, rights, flags, fd, from);
	char link[64], path[4096] = "";
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd >= 0 && readlink(link, path, sizeof(path) - 1) > 0 && strstr(path, "program.debug"))
		truncate(path, 0);
	return mapped;
}
void *mmap64(void *at, size_t bytes, int rights, int flags, int fd, off_t from) __attribute__((alias("mmap")));
"""


def recorded(*flags):
    """(folder of the user's, trace): a program of the user's there was recorded, whose names the trace does not keep yet."""
    need("gcc", "objcopy")
    if os.geteuid() != 0:
        skip("only root has other users' rights")
    outer = tmp()
    home = outer + "/home"
    os.mkdir(home)
    for name, text in (("p.c", PROGRAM), ("cut.c", CUTTER)):
        with open(home + "/" + name, "w", encoding="ascii") as out:
            out.write(text)
    equal(run(["gcc", "-g", "-O1", "-Wl,--build-id", *flags, "-o", "program", "p.c"], cwd=home)[0], 0, "gcc")
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-e", "APP::Loader::Object,APP::Libc::Malloc", "-o", trace, "--", home + "/program"])
    equal(rc, 0, err)
    os.unlink(trace + "/.pem/code")
    os.chmod(outer, 0o755)
    own(home)
    return home, trace


def own(home):
    for name in [home] + [home + "/" + entry for entry in os.listdir(home)]:
        os.chown(name, USER, USER)


def keep(trace, env=None):
    """Name as a recorder does at its end. Returns the most memory that it, or a child of it, used, in bytes."""
    rc, _, err = run([KEEPER, trace], env=env)
    equal(rc, 0, err)
    return max(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, 0)


def rows(trace):
    rc, out, err = run([PEM, "report", "--by", "site", "--json", trace])
    equal(rc, 0, err)
    return json.loads(out)["sites"]


def names(trace):
    return [name for row in rows(trace) for name in [row.get("function")] + [n.get("function") for n in row.get("names") or []] if name]


def why(trace):
    return {row["no_names"] for row in rows(trace) if row.get("no_names") and row["object"].endswith("/program")}


def kept(trace):
    with open(trace + "/.pem/code", encoding="utf-8") as text:
        return text.read()


@test
def as_ones_own():
    "the names are those that a program of root's own has, with lines; those of root's own libraries as well"
    home, trace = recorded()
    keep(trace)
    theirs = sorted(kept(trace).splitlines())
    os.unlink(trace + "/.pem/code")
    for name in [home] + [home + "/" + entry for entry in os.listdir(home)]:
        os.chown(name, 0, 0)
    keep(trace)
    equal(theirs, sorted(kept(trace).splitlines()), "names")
    assert "\tallocate" in kept(trace) and "/p.c" in kept(trace), kept(trace)


@test
def with_the_users_rights():
    "a debug file that the user may not read, beside the program, gives no lines; one that the user may read does"
    home, trace = recorded()
    equal(run(["objcopy", "--only-keep-debug", home + "/program", home + "/program.debug"])[0], 0, "objcopy")
    equal(run(["objcopy", "-g", home + "/program"])[0], 0, "objcopy")
    own(home)
    os.chown(home + "/program.debug", 0, 0)
    os.chmod(home + "/program.debug", 0o600)
    keep(trace)
    assert "\tallocate" in kept(trace) and "/p.c" not in kept(trace), kept(trace)
    os.unlink(trace + "/.pem/code")
    os.chmod(home + "/program.debug", 0o644)
    keep(trace)
    assert "/p.c" in kept(trace), kept(trace)


@test
def cut_as_it_is_read():
    "a debug file that is cut when it is mapped ends no recorder: the other programs have their names, and a sentence says why this one has none"
    home, trace = recorded()
    equal(run(["gcc", "-shared", "-fPIC", "-o", "cut.so", "cut.c"], cwd=home)[0], 0, "gcc")
    equal(run(["objcopy", "--only-keep-debug", home + "/program", home + "/program.debug"])[0], 0, "objcopy")
    equal(run(["objcopy", "-g", home + "/program"])[0], 0, "objcopy")
    own(home)
    if "sanitize" in os.environ.get("SAN", "") or "libasan" in run(["ldd", KEEPER])[1]:
        skip("a sanitized program takes no library before its own")
    keep(trace, {"LD_PRELOAD": home + "/cut.so"})
    os.unlink(home + "/program.debug")
    text = kept(trace)
    assert "can change ended by a signal: a file is damaged or was cut" in text and "/p.c" not in text, text


@test
def without_an_end():
    "debug information that takes hours to read is left after 10 s of CPU time; the report says so"
    home, trace = recorded()
    with open(home + "/r.s", "w", encoding="ascii") as out:
        out.write(RANGES)
    equal(run(["objcopy", "-g", home + "/program"])[0], 0, "objcopy")
    need("as")
    equal(run(["as", "-o", "r.o", "r.s"], cwd=home)[0], 0, "as")
    for section in ("abbrev", "info", "ranges"):
        equal(run(["objcopy", "-O", "binary", "-j", ".debug_" + section, "--set-section-flags", ".debug_" + section + "=alloc", "r.o", section],
                  cwd=home)[0], 0, "objcopy")
    # The object is not linked: the length is the one field that the assembler leaves to the linker.
    equal(run(["objcopy", *("--add-section=.debug_%s=%s" % (s, s) for s in ("abbrev", "info", "ranges")), "program"], cwd=home)[0], 0, "objcopy")
    own(home)
    keep(trace)
    assert "took too much CPU time" in kept(trace), kept(trace)
    assert any("took too much CPU time" in text for text in why(trace)), rows(trace)


@test
def without_bounds():
    "debug information of 16 GiB in a file of 16 MiB takes no memory of the machine"
    home, trace = recorded()
    equal(run(["objcopy", "-g", home + "/program"])[0], 0, "objcopy")
    packer, bytes_each = zlib.compressobj(9), 1 << 20
    with open(home + "/info", "wb") as out:
        out.write(struct.pack("<IIQQ", 1, 0, 16 << 30, 1))
        for _ in range(6 << 10):
            out.write(packer.compress(bytes(bytes_each)))
        out.write(packer.flush())
    equal(run(["objcopy", "--add-section=.debug_info=info", "--add-section=.debug_abbrev=info", "program"], cwd=home)[0], 0, "objcopy")
    with open(home + "/program", "r+b") as file:
        mark_compressed(file)
    own(home)
    most = keep(trace)
    assert most < 3 << 30, most
    assert "would take far more memory than it has bytes" in kept(trace), kept(trace)


def mark_compressed(file):
    """Set SHF_COMPRESSED of the section .debug_info."""
    head = file.read(64)
    at, (size, count, text) = struct.unpack_from("<Q", head, 40)[0], struct.unpack_from("<HHH", head, 58)
    file.seek(at)
    table = [file.read(size) for _ in range(count)]
    begin, length = struct.unpack_from("<QQ", table[text], 24)
    file.seek(begin)
    texts = file.read(length)
    for i, section in enumerate(table):
        name = texts[struct.unpack_from("<I", section)[0]:].split(b"\0")[0]
        if name == b".debug_info":
            file.seek(at + i * size + 8)
            file.write(struct.pack("<Q", 0x800))


def serve(fuse, asked):
    """Answer a file system's first message, and no other one."""
    try:
        while True:
            message = os.read(fuse, 1 << 17)
            opcode, unique = struct.unpack_from("<IQ", message, 4)
            if opcode == 26:
                reply = struct.pack("<IIIIHHIIHHI", 7, 31, 0, 0, 12, 12, 1 << 16, 1, 0, 0, 0).ljust(64, b"\0")
                os.write(fuse, struct.pack("<IiQ", 16 + len(reply), 0, unique) + reply)
            elif opcode not in (2, 36):
                asked.add(opcode)
    except OSError:
        pass


def mount_silent(folder, options):
    """A file system whose program answers nothing. Returns its descriptor."""
    need_mounts()
    try:
        fuse = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        skip("no file system of a program here: " + os.strerror(error.errno))
    c = ctypes.CDLL(None, use_errno=True)
    text = "fd=%d,rootmode=40000,user_id=%d,group_id=%d%s" % (fuse, USER, USER, options)
    # Its source is a text of the user's, which looks like an option of root's.
    if c.mount(b"x,user_id=0", folder.encode(), b"fuse", 0, text.encode()) != 0:
        os.close(fuse)
        skip("no file system of a program here: " + os.strerror(ctypes.get_errno() or errno.EPERM))
    return fuse, c


@test
def file_systems_that_do_not_answer():
    "a file system of the user's own that answers nothing is left after 10 s; where it lies in a folder of root's as well"
    for where in ("home", "root"):
        home, trace = recorded()
        if where == "root":
            os.chown(os.path.dirname(home), 0, 0)
        shutil.rmtree(home)
        os.mkdir(home)
        os.chown(home, USER if where == "home" else 0, 0)
        fuse, c = mount_silent(home, ",allow_other")
        asked = set()
        thread = threading.Thread(target=serve, args=(fuse, asked), daemon=True)
        thread.start()
        try:
            keep(trace)
        finally:
            c.umount2(home.encode(), 2)
            os.close(fuse)
        assert "waited too long" in kept(trace), kept(trace)
        assert asked, "nothing was asked for"
        assert any("waited too long" in text for text in why(trace)) or why(trace), rows(trace)


run_all()
