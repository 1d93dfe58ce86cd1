# SPDX-License-Identifier: MIT
"""
compress.py - pem record --compress: the trace is smaller, pem reads it as any other, and other tools its copy

Not here: blocks that are cut or damaged, byte by byte (unit/packed.c).
"""
import json
import os
import shutil
import signal
import subprocess
import time

from patience import HANG_S
from probe_trace import check_complete, program, record
from tap import PEM, equal, need, run, run_all, start, test, tmp

SCRIPT = "for i in 1 2 3; do ls -R /usr/share/doc/libc6 /etc/ssl 2>/dev/null; done; sort /etc/passwd | wc -l"
MAGIC = b"\x5e\x2a\x4d\x18"


def compressed(folder, *options):
    trace = folder + "/trace"
    rc, _, err = run([PEM, "record", "-q", "--compress", *options, "-e", "APP", "-o", trace, "--", "sh", "-c", SCRIPT], timeout=60)
    equal((rc, err), (0, ""), "status and errors of record")
    return trace


def report(trace, status=0):
    rc, out, err = run([PEM, "report", "--json", trace], timeout=60)
    equal(rc, status, "status of report, which said: " + err)
    return json.loads(out), err


def streams(trace):
    return sorted(n for n in os.listdir(trace) if n != "metadata" and not n.startswith("."))


def size(trace):
    return sum(os.path.getsize(os.path.join(trace, n)) for n in streams(trace))


def copy_of(trace):
    rc, _, err = run([PEM, "export", "--to", "ctf", trace, "-o", trace + "-copy"])
    equal(rc, 0, "status of export, which said: " + err)
    return trace + "-copy"


@test
def a_compressed_trace_is_smaller_and_its_copy_is_the_same():
    "all streams are compressed, to less than half; report says the same of the trace and of its copy that is not"
    trace = compressed(tmp())
    for name in streams(trace):
        with open(os.path.join(trace, name), "rb") as stream:
            equal(stream.read(4), MAGIC, "first bytes of " + name)
    copy = copy_of(trace)
    equal(streams(copy), streams(trace), "streams")
    assert size(trace) < size(copy) / 2, "%d bytes, and %d" % (size(trace), size(copy))
    one, other = report(trace)[0], report(copy)[0]
    assert one["info"]["balanced"] and one["info"]["read"] > 1000, one["info"]
    for part in "info", "layers", "processes", "events":
        equal(one[part], other[part], part)


@test
def other_tools_read_the_copy():
    "babeltrace2 reads each record of the copy, without a word; zstd makes a stream of the copy out of the trace's"
    need("babeltrace2", "zstd")
    trace = compressed(tmp())
    copy = copy_of(trace)
    rc, out, err = run(["babeltrace2", copy], timeout=60)
    equal((rc, err), (0, ""), "status and errors of babeltrace2")
    equal(out.count("\n"), report(trace)[0]["info"]["read"], "records")
    for name in streams(trace):
        with open(os.path.join(trace, name), "rb") as stream, open(os.path.join(copy, name), "rb") as plain:
            done = subprocess.run(["zstd", "-dc"], stdin=stream, stdout=subprocess.PIPE, check=True)
            assert done.stdout == plain.read(), name + " differs"


@test
def several_threads_compress():
    "what 200 threads raise at full speed is there, compressed by several threads"
    trace, raised = record(tmp(), program("threads", "crowd", 5000, 200), "--buffer", "256M", "--drain-threads", "4", "--compress")
    equal(len(raised), 200, "threads")
    check_complete(trace, raised)


def killed(folder):
    """A trace whose recorder was killed, and then its program."""
    trace = folder + "/trace"
    recorder = start([PEM, "record", "-q", "--compress", "-e", "APP::Libc::*", "-o", trace, "--", "sh", "-c",
                      "ls -R /usr/share/doc > /dev/null; echo ready; exec sleep 60"], {"PEM_RUNTIME_DIR": folder + "/runtime"},
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(recorder.stdout.readline(), b"ready\n", "what the program says")
    end = time.monotonic() + HANG_S
    while not os.path.isdir(trace) or not size(trace):
        assert time.monotonic() < end, "no packet was written"
        time.sleep(0.005)
    child = int(run(["pgrep", "-P", str(recorder.pid)])[1])
    recorder.kill()
    recorder.wait(30)
    os.kill(child, signal.SIGKILL)
    return trace


def recovered(trace):
    rc, out, err = run([PEM, "report", "--json", trace], {"PEM_RUNTIME_DIR": os.path.dirname(trace) + "/runtime"})
    equal(rc, 0, "status of report, which said: " + err)
    assert "did not finish" in err, err
    info = json.loads(out)["info"]
    assert info["balanced"] and info["read"] > 100, info
    return info


@test
def a_killed_recorder_leaves_what_can_be_finished():
    "kill -9 on the recorder: report adds what lay in shared memory, and accounts for all of it"
    recovered(killed(tmp()))


@test
def a_block_that_was_cut_by_the_kill_is_cut_off():
    "the beginning of a block, as a killed write leaves it, is cut off; nothing else is missing"
    trace = killed(tmp())
    name = max(streams(trace), key=lambda n: os.path.getsize(os.path.join(trace, n)))
    path = os.path.join(trace, name)
    whole = os.path.getsize(path)
    with open(path, "rb") as stream:
        head = stream.read(40)
    with open(path, "ab") as stream:
        stream.write(head)
    recovered(trace)
    equal(os.path.getsize(path), whole, "bytes of %s afterwards" % name)
    copy_of(trace)


@test
def a_killed_trace_with_damage_is_not_cut():
    "a block's head that was changed is damage, not the end: recovery cuts nothing, and report does not call it balanced"
    trace = killed(tmp())
    name = max(streams(trace), key=lambda n: os.path.getsize(os.path.join(trace, n)))
    path = os.path.join(trace, name)
    with open(path, "r+b") as stream:
        whole = stream.read()
        second = whole.find(MAGIC, 16)
        assert second > 0, "one block only"
        stream.seek(second)
        stream.write(b"\xff")
    rc, out, err = run([PEM, "report", "--json", trace], {"PEM_RUNTIME_DIR": os.path.dirname(trace) + "/runtime"})
    equal(os.path.getsize(path), len(whole), "bytes of the stream")
    assert rc != 0 and not json.loads(out)["info"]["balanced"], (rc, err)
    assert "no compressed block" in err + out, err
    rc, _, err = run([PEM, "export", "--to", "ctf", trace, "-o", trace + "-copy"])
    assert rc == 1 and name in err and "is damaged" in err, (rc, err)


@test
def an_interrupted_copy_is_no_trace():
    "what a killed export leaves has another name, and a file of another kind in the place of one that is needed is refused"
    need("strace")
    folder = tmp()
    trace = compressed(folder)
    for when in 1, 5, 9:
        run(["strace", "-o", "/dev/null", "-e", "inject=write:signal=KILL:when=%d" % when, PEM, "export", "--to", "ctf", trace,
             "-o", folder + "/copy"])
        assert not os.path.exists(folder + "/copy"), "killed at write %d" % when
    os.symlink("/etc/passwd", trace + "/u_9_9")
    os.mkfifo(trace + "/u_9_8")
    equal(streams(copy_of(trace)), [n for n in streams(trace) if not n.startswith("u_9_")], "streams of the copy")
    os.rename(trace + "/metadata", folder + "/metadata")
    os.mkdir(trace + "/metadata")
    rc, _, err = run([PEM, "export", "--to", "ctf", trace, "-o", folder + "/copy"])
    equal((rc, os.path.exists(folder + "/copy")), (1, False), "status, and whether there is a copy: " + err)
    assert "metadata" in err, err


@test
def damage_is_told():
    "a changed byte is told with its stream; what is in other blocks is read"
    trace = compressed(tmp())
    before = report(trace)[0]["info"]["read"]
    name = max(streams(trace), key=lambda n: os.path.getsize(os.path.join(trace, n)))
    with open(os.path.join(trace, name), "r+b") as stream:
        stream.seek(16)
        stream.write(b"\0\0\0\0")
    rc, out, err = run([PEM, "report", "--json", trace])
    assert rc != 0 and name in err + out and "it can't be decompressed" in err + out, (rc, err)
    assert 0 < json.loads(out)["info"]["read"] < before, out[:300]
    rc, _, err = run([PEM, "export", "--to", "ctf", trace, "-o", trace + "-copy"])
    equal(rc, 1, "status of export")
    assert name in err and "is damaged" in err, err
    assert not os.path.exists(trace + "-copy"), "a part of a copy was left"


@test
def without_the_library():
    "where libzstd is missing, record and report say so, with what mends it, and export leaves nothing"
    folder = tmp()
    trace = compressed(folder)
    os.mkdir(folder + "/lib")
    with open(folder + "/lib/libzstd.so.1", "w", encoding="ascii") as broken:
        broken.write("none\n")
    env = {"LD_LIBRARY_PATH": folder + "/lib"}
    for command in (["record", "--compress", "-e", "APP", "-o", folder + "/other", "--", "true"], ["report", trace],
                    ["export", "--to", "ctf", trace, "-o", folder + "/copy"]):
        rc, _, err = run([PEM, *command], env)
        equal(rc, 2, "status of %s, which said: %s" % (command[0], err))
        assert "libzstd.so.1 is missing" in err and "libzstd1" in err, err
    assert not os.path.exists(folder + "/copy") and not os.path.exists(folder + "/other"), os.listdir(folder)


@test
def a_flight_recorder_compresses():
    "what a flight recorder holds at the end is compressed, too"
    trace = compressed(tmp(), "--overwrite", "--buffer", "64K")
    info = report(trace)[0]["info"]
    assert info["balanced"] and info["read"] > 100, info
    assert size(trace) < size(copy_of(trace)) / 2, "bytes"


@test
def export_refuses_folders_that_are_there():
    "a copy replaces nothing, and is no part of the trace"
    folder = tmp()
    trace = compressed(folder)
    os.mkdir(folder + "/there")
    for to, says in ((folder + "/there", "choose another"), (trace + "/copy", "lies in the trace"), ("-", "is a folder")):
        rc, _, err = run([PEM, "export", "--to", "ctf", trace, "-o", to])
        equal(rc, 1, "status for %s, which said: %s" % (to, err))
        assert says in err, err
    equal(os.listdir(folder + "/there"), [], "the folder that was there")
    shutil.rmtree(trace)
    rc, _, err = run([PEM, "export", "--to", "ctf", trace, "-o", folder + "/copy"])
    equal((rc, os.path.exists(folder + "/copy")), (1, False), "status without a trace, and whether there is a copy")


run_all()
