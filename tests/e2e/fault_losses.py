# SPDX-License-Identifier: MIT
"""
fault_losses.py - programs that raise more than there is room for: they are unharmed, and each lost event is counted

Not here: a full disk, killed recorders and programs as the command line shows them (cli_record.py).
"""
import os
import struct
import subprocess
import time

from patience import HANG_S
from probe_trace import check_balance, check_complete, program, record, record_command, report, ticks, told
from tap import PEM, equal, run, run_all, skip, start, test, tmp


def quote(command):
    return " ".join("'%s'" % part for part in command)


def behind_a_stopped_recorder(command):
    """The command, with the recorder (its parent) stopped from its beginning to its end."""
    return ["sh", "-c", "kill -STOP $PPID; %s; status=$?; kill -CONT $PPID; exit $status" % quote(command)]


def tmpfs(size):
    """A folder on a file system of its own, which holds so much."""
    if os.geteuid():
        skip("mounting a small tmpfs needs root")
    folder = tmp()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700,size=" + size, "tmpfs", folder],
                      stderr=subprocess.DEVNULL).returncode:
        skip("a tmpfs can't be mounted here")
    return folder


def unmount(folder):
    subprocess.run(["umount", "-l", folder], check=True)


@test
def full_pool_discards_newest():
    "a full pool discards the newest events and counts them; what was there first is delivered"
    trace, raised = record(tmp(), behind_a_stopped_recorder(program("processes", "plain", 50000)), "--buffer", "64K")
    events = check_balance(trace, 50000)
    assert events["discarded"] > 0 and events["delivered"] > 0, "%r" % events
    (raiser, numbers), = ticks(trace).items()
    equal(raised[raiser], 50000, "told")
    equal(numbers, list(range(1, len(numbers) + 1)), "the first ticks, without a gap")


@test
def full_pool_of_many_threads():
    "threads that share a full pool lose nothing uncounted"
    trace, raised = record(tmp(), behind_a_stopped_recorder(program("threads", "short", 2000, 40)), "--buffer", "64K")
    equal(len(raised), 40, "threads")
    events = check_balance(trace, 80000)
    assert events["discarded"] > 0, "%r" % events


@test
def flight_recorder_keeps_newest():
    "a full pool that overwrites keeps the newest events, and counts the others"
    trace, raised = record(tmp(), program("processes", "plain", 50000), "--buffer", "64K", "--overwrite")
    events = check_balance(trace, 50000)
    equal(events["discarded"], 0, "discarded")
    assert events["overwritten"] > 0, "%r" % events
    (raiser, numbers), = ticks(trace).items()
    equal(raised[raiser], 50000, "told")
    equal(numbers, list(range(50001 - len(numbers), 50001)), "the last ticks, without a gap")


@test
def flight_recorder_of_many_threads():
    "threads that share a pool that overwrites lose nothing uncounted"
    trace, raised = record(tmp(), program("threads", "short", 2000, 40), "--buffer", "64K", "--overwrite")
    equal(len(raised), 40, "threads")
    events = check_balance(trace, 80000)
    equal(events["discarded"], 0, "discarded")


def refused(command, why, mend, **more):
    """Recorded where it has no pool, which the program must not feel: why, and what mends it, is told; no buffer is advised."""
    folder = tmp()
    rc, out, err = run([word for word in record_command(folder, command) if word != "-q"], **more)
    equal((rc, list(told(out).values())), (0, [700]), "status, and told (stderr: %s)" % err)
    trace = folder + "/trace"
    equal(check_balance(trace, 700), {"produced": 700, "delivered": 0, "discarded": 700, "overwritten": 0}, "balance")
    gaps = [gap["reason"] for gap in report(trace)["gaps"]]
    assert any(why in reason and mend in reason for reason in gaps), "no gap says why: %r" % gaps
    end, = [line for line in err.splitlines() if "700 of 700 events were lost" in line]
    assert "no buffer would keep them" in end and "--buffer" not in err, err


def limited(limit, why, mend):
    """The same for a limit of the shell's."""
    refused(["sh", "-c", "ulimit %s; exec %s" % (limit, quote(program("processes", "plain", 700)))], why, mend)


@test
def file_size_limit_of_the_pool():
    "a program whose file size limit is below its pool's size is unharmed; its events are counted as discarded, and why"
    limited("-f 4096", "File too large", "ulimit -f")


@test
def recovery_where_the_file_system_is_full():
    "what a killed recorder left in a pool is recovered though the pool's file system is full: unused chunks are not looked at"
    runtime, folder = tmpfs("24m"), tmp()
    try:
        recorder = start(record_command(folder, ["sh", "-c", quote(program("processes", "plain", 700)) + "; echo; exec sleep 60"]),
                         {"PEM_RUNTIME_DIR": runtime}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while recorder.stdout.readline().strip():
            pass
        child = int(run(["pgrep", "-P", str(recorder.pid)])[1])
        recorder.kill()
        recorder.wait(30)
        os.kill(child, 9)
        with open(runtime + "/filler", "wb", buffering=0) as filler:
            try:
                while filler.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        rc, _, err = run([PEM, "report", folder + "/trace"], {"PEM_RUNTIME_DIR": runtime})
        equal(rc, 0, "status of report, which said: " + err)
        equal(check_balance(folder + "/trace", 700)["delivered"], 700, "delivered")
    finally:
        unmount(runtime)


@test
def limited_programs_have_small_pools():
    "a pool that can grow is not made where a program's address space or files are limited, and nothing is lost there"
    bytes_of = {}
    for limit in ("true", "ulimit -v 4000000", "ulimit -f 1000000"):
        folder = tmp()
        # A recorder that goes on would remove the pool once the program has ended.
        inner = "%s; kill -STOP $PPID; %s; ls -l $PEM_RUNTIME_DIR/session-*/pool-* | awk '{ print \"pool\", $5 }'; kill -CONT $PPID" % (
            limit, quote(program("processes", "plain", 700)))
        rc, out, err = run(record_command(folder, ["sh", "-c", inner]), {"PEM_RUNTIME_DIR": folder + "/runtime"})
        equal(rc, 0, "status (stderr: %s)" % err)
        equal(check_balance(folder + "/trace", 700)["delivered"], 700, "delivered with " + limit)
        bytes_of[limit] = {int(line.split()[1]) for line in out.splitlines() if line.startswith("pool ")}
    usual, space, files = bytes_of.values()
    equal(len(usual), 1, "sizes of pools: %r" % usual)
    equal(space, files, "sizes of pools with a limit of address space, and of files")
    more = usual.pop() - space.pop() - ((128 - 32) << 20)
    assert 0 < more < 1 << 20, "beside chunks there are their states: %d bytes" % more


@test
def locked_memory():
    "mlockall gives no memory to chunks that a pool does not use"
    script = ("import ctypes; print('locked', ctypes.CDLL(None).mlockall(3)); "
              "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('RssShmem')][0])")
    folder = tmp()
    rc, out, err = run([PEM, "record", "-q", "-e", "APP", "-o", folder + "/trace", "--", "python3", "-c", script])
    equal((rc, err), (0, ""), "status and errors")
    if "locked 0" not in out:
        skip("mlockall is not allowed here")
    shared_mib = int(out.split()[-1]) // 1024
    assert 32 < shared_mib < 200, "%d MiB of shared memory" % shared_mib


@test
def file_size_limit_of_anything():
    "so is one that may hardly write a file at all"
    limited("-f 1", "File too large", "ulimit -f")


@test
def address_space_limit():
    "so is one whose address space has no room for a pool"
    limited("-v 30000", "Cannot allocate memory", "ulimit -v")


@test
def one_descriptor_left():
    "one descriptor that a program may still open suffices: everything is recorded"
    command = ["sh", "-c", "ulimit -n 4; exec %s" % quote(program("processes", "plain", 700))]
    trace, raised = record(tmp(), command)
    check_complete(trace, raised)


@test
def no_buffer_where_there_is_no_room():
    "where shared memory is full, free space is advised and no larger buffer"
    runtime = tmpfs("140k")
    try:
        refused(program("processes", "plain", 700), "No space left", "free some space", env={"PEM_RUNTIME_DIR": runtime})
    finally:
        unmount(runtime)


@test
def shared_memory_full_at_first():
    "no room for a pool in shared memory: the program is unharmed, its events are counted as discarded, and why"
    runtime = tmpfs("140k")
    try:
        trace, raised = record(tmp(), program("processes", "fork", 300), env={"PEM_RUNTIME_DIR": runtime})
        equal(sorted(raised.values()), [300, 600], "told")
        events = check_balance(trace, 900)
        equal(events["discarded"], 900, "discarded")
        assert any("No space" in gap["reason"] for gap in report(trace)["gaps"]), "no gap says why"
    finally:
        unmount(runtime)


@test
def shared_memory_full_later():
    "shared memory that fills up while a program runs: no SIGBUS, and what found no room is counted"
    runtime = tmpfs("700k")
    try:
        command = behind_a_stopped_recorder(program("processes", "plain", 100000))
        trace, raised = record(tmp(), command, env={"PEM_RUNTIME_DIR": runtime})
        equal(list(raised.values()), [100000], "told")
        events = check_balance(trace, 100000)
        assert events["discarded"] > 0 and events["delivered"] > 0, "%r" % events
    finally:
        unmount(runtime)


@test
def shared_memory_full_for_threads():
    "no room for the lanes of more threads: they are unharmed, and their events are counted"
    runtime = tmpfs("500k")
    try:
        command = behind_a_stopped_recorder(program("threads", "short", 500, 60))
        trace, raised = record(tmp(), command, env={"PEM_RUNTIME_DIR": runtime})
        equal(len(raised), 60, "threads")
        check_balance(trace, 30000)
    finally:
        unmount(runtime)


@test
def killed_program_counts():
    "kill -9 in full flight: all that the program had raised when it last told is delivered or discarded"
    folder = tmp()
    progress = os.path.join(folder, "progress")
    recorder = start(record_command(folder, program("processes", "for-ever", 1000, progress)),
                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + HANG_S
    while not (os.path.exists(progress) and os.path.getsize(progress)):
        assert time.monotonic() < deadline, "the program does not run"
        time.sleep(0.01)
    pid = int(run(["pgrep", "-P", str(recorder.pid)])[1].split()[0])
    os.kill(pid, 9)
    _, err = recorder.communicate()
    equal(recorder.returncode, 137, "status (stderr: %s)" % err.decode())
    with open(progress, "rb") as file:
        last, = struct.unpack("Q", file.read(8))
    events = report(folder + "/trace")["events"]
    assert events["produced"] >= last, "%d told, balance %r" % (last, events)
    equal(events["produced"], events["delivered"] + events["discarded"], "balance")
    (_, numbers), = ticks(folder + "/trace").items()
    equal(len(numbers), events["delivered"], "records read")
    equal(numbers, sorted(set(numbers)), "ticks in order, none twice")


@test
def nothing_lost_after_a_pause():
    "a recorder that stood still for a moment catches up: what fits in the pool is not lost"
    trace, raised = record(tmp(), behind_a_stopped_recorder(program("processes", "fork", 20000)))
    check_complete(trace, raised)


run_all()
