# SPDX-License-Identifier: MIT
"""cli_snapshot: flight recorders that write what they hold, are found, are killed, and stay small"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

from patience import HANG_S
from probe_trace import program
from stage import until
from tap import PEM, SAN, equal, run, run_all, skip, start, test, tmp


def balanced(trace):
    """The trace is complete and every event accounted for. Returns the report."""
    rc, out, err = run([PEM, "report", "--json", trace])
    equal((rc, err), (0, ""), "status and errors of report")
    return json.loads(out)


def flight(folder, command, *options):
    """A recorder that runs, with its runtime folder at folder/run: (process, environment)."""
    env = {"PEM_RUNTIME_DIR": os.path.join(folder, "run")}
    recorder = start([PEM, "record", "-q", "--overwrite", "--buffer", "64K", "-o", os.path.join(folder, "trace"),
                      *options, "--"] + command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(recorder.stdout.readline().strip(), "ready", "the command's line")
    return recorder, env


def snapshot(env, *options, status=0):
    rc, out, err = run([PEM, "snapshot", *options], env=env)
    equal(rc, status, "status of pem snapshot (stderr: %s)" % err)
    return out, err


def end(recorder):
    recorder.send_signal(signal.SIGINT)
    recorder.wait(30)


BUSY = ["sh", "-c", "ls -R /usr/share/doc > /dev/null; echo ready; while :; do ls -R /usr/share/doc > /dev/null; done"]
IDLE = ["sh", "-c", "ls -R /usr/share/doc > /dev/null; echo ready; exec sleep 60"]
# Where other events show no more: all of them take ten times as long to begin with.
SOME = ("-e", "APP")


@test
def of_a_program_that_goes_on():
    "snapshots of a busy program balance, one after the other, and so does the trace at its end"
    folder = tmp()
    recorder, env = flight(folder, BUSY)
    overwritten = 0
    for i in range(4):
        path = os.path.join(folder, "snapshot-%d" % i)
        out, _ = snapshot(env, "--json", "-o", path)
        told, r = json.loads(out), balanced(path)
        equal(told["trace"], path, "trace")
        equal(told["recorder"], recorder.pid, "recorder")
        equal(told["events"], r["events"]["delivered"], "events told, and read")
        equal(r["info"]["snapshot"], "asked for by pem snapshot", "cause")
        assert r["events"]["overwritten"] >= overwritten
        overwritten = r["events"]["overwritten"]
    end(recorder)
    assert overwritten > 0
    r = balanced(os.path.join(folder, "trace"))
    assert "snapshot" not in r["info"]
    assert r["events"]["overwritten"] > overwritten


@test
def files_of_calls_are_told_again():
    "a snapshot knows the files of system calls, though what the kernel said first of them was overwritten long before"
    folder = tmp()
    enough = os.path.join(folder, "enough")
    reader = "import os, sys, time; fd = os.open('/dev/zero', os.O_RDONLY); print('ready', flush=True)\n" \
        "for i in range(10 ** 9):\n os.read(fd, 1); time.sleep(0.0002)\n if i == 25000: open(sys.argv[1], 'w').close()"
    _, out, _ = run([PEM, "list", "OS::Syscall::File", "--json"])
    if not json.loads(out)[0]["available"]:
        skip(json.loads(out)[0]["reason"])
    recorder, env = flight(folder, [sys.executable, "-c", reader, enough], "-e", "OS::Syscall")
    for _ in range(100 * HANG_S):
        if os.path.exists(enough):
            break
        time.sleep(0.01)
    path = os.path.join(folder, "snapshot")
    snapshot(env, "-o", path)
    end(recorder)
    r = balanced(path)
    assert r["events"]["overwritten"] > 1000, r["events"]
    reads = {row.get("file"): row["count"] for row in r["system_calls"] if row["call"] == "read"}
    # In a chroot the kernel's paths begin with the folder that / is.
    assert sum(count for file, count in reads.items() if file and file.endswith("/dev/zero")) > sum(reads.values()) / 2, reads


@test
def report_says_how_far_back():
    "the report of a snapshot says that it is one, why it was written, and how far it reaches back"
    folder = tmp()
    recorder, env = flight(folder, BUSY, *SOME)
    snapshot(env, "-o", os.path.join(folder, "s"))
    end(recorder)
    rc, out, _ = run([PEM, "report", os.path.join(folder, "s")], env={"COLUMNS": "200"})
    equal(rc, 0, "status")
    line = [line for line in out.splitlines() if line.startswith("Snapshot")]
    equal(len(line), 1, "lines of the snapshot")
    assert "the last " in line[0] and line[0].endswith("asked for by pem snapshot"), line
    assert "until then" in out


@test
def names_its_folder():
    "without -o, the snapshot's folder is named after the command"
    folder = tmp()
    recorder, env = flight(folder, IDLE, *SOME)
    for i in (1, 2):
        rc, out, err = run([PEM, "snapshot"], env=env, cwd=folder)
        equal((rc, err), (0, ""), "status and errors")
        assert out.startswith("pem-snapshot-sh-%d: the last " % i), out
        balanced(os.path.join(folder, "pem-snapshot-sh-%d" % i))
    end(recorder)


@test
def shows_its_folder():
    "the folder that -o names is shown, not obeyed, and the next command has it in quotes"
    folder = tmp()
    recorder, env = flight(folder, IDLE, *SOME)
    rc, out, err = run([PEM, "snapshot", "-o", "it's \x1b[2J"], env=env, cwd=folder)
    end(recorder)
    equal((rc, err), (0, ""), "status and errors")
    assert out.startswith("it's ?[2J: the last ") and out.endswith("; next: pem report 'it'\\''s ?[2J'\n"), out


@test
def none_runs():
    "without a flight recorder, the error says how to start one; a plain recording is none"
    folder = tmp()
    env = {"PEM_RUNTIME_DIR": os.path.join(folder, "run")}
    _, err = snapshot(env, status=1)
    assert "pem record --overwrite" in err, err
    recorder = start([PEM, "record", "-q", *SOME, "-o", os.path.join(folder, "trace"), "--"] + IDLE, env=env,
                     stdout=subprocess.PIPE, text=True)
    recorder.stdout.readline()
    _, err = snapshot(env, status=1)
    assert "pem record --overwrite" in err, err
    end(recorder)


@test
def one_of_several():
    "of several recorders one is chosen by its process; without, they are listed"
    folder, other = tmp(), tmp()
    first, env = flight(folder, IDLE, *SOME)
    second = start([PEM, "record", "-q", "--overwrite", *SOME, "-o", os.path.join(other, "trace"), "--"] + IDLE, env=env,
                   stdout=subprocess.PIPE, text=True)
    second.stdout.readline()
    _, err = snapshot(env, status=1)
    assert "--session" in err and str(first.pid) in err and str(second.pid) in err, err
    out, _ = snapshot(env, "--session", str(second.pid), "--json", "-o", os.path.join(folder, "s"))
    equal(json.loads(out)["recorder"], second.pid, "recorder")
    _, err = snapshot(env, "--session", "1", status=1)
    assert "no flight recorder is called 1" in err, err
    end(first)
    end(second)


@test
def killed_recorder():
    "after kill -9 of the recorder, what living programs had logged is recovered in its own trace"
    folder = tmp()
    recorder, env = flight(folder, IDLE, *SOME)
    recorder.kill()
    recorder.wait(30)
    out, err = snapshot(env, "--json")
    told = json.loads(out)
    equal((told["recovered"], told["trace"]), (True, os.path.join(folder, "trace")), "what was recovered")
    assert "was killed" in err and "is lost" in err, err
    run([PEM, "report", os.path.join(folder, "trace")], env=env)
    _, err = snapshot(env, status=1)
    assert "no flight recorder" in err, err


@test
def strange_requests():
    "who connects and sends rubbish, nothing, or hangs up, gets nothing, and the next one is served"
    folder = tmp()
    recorder, env = flight(folder, IDLE, *SOME)
    session = [name for name in os.listdir(env["PEM_RUNTIME_DIR"]) if name.startswith("session-")][0]
    address = os.path.join(env["PEM_RUNTIME_DIR"], session, "snapshot")

    def connect():
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(address)
        return s

    connect().close()
    with connect() as s:
        s.send(b"/etc")
        equal(s.recv(100), b"", "answer to a message without a folder")
    with connect() as s, open("/dev/null", "rb") as null:
        socket.send_fds(s, [b"x"], [null.fileno()])
        equal(s.recv(100), b"", "answer to a message with a device")
    with connect() as s:
        descriptor = os.open(folder, os.O_RDONLY)  # not empty
        socket.send_fds(s, [b"x\n\x1b"], [descriptor])
        os.close(descriptor)
        assert b"not empty" in s.recv(1000)
    with connect():  # and says nothing
        snapshot(env, "-o", os.path.join(folder, "s"))
    balanced(os.path.join(folder, "s"))
    end(recorder)


def resident_kib(pid):
    with open("/proc/%d/status" % pid) as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmRSS"].split()[0])


def used_bytes(folder):
    used = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
                used += os.lstat(os.path.join(where, name)).st_blocks * 512
    return used


def until_only_the_living_have_pools(folder):
    """The recorder removes the pools of processes that have ended, once it gets a CPU."""
    def ended():
        pools = [name for _, _, names in os.walk(folder + "/run") for name in names if name.startswith("pool-")]
        return [name for name in pools if not os.path.exists("/proc/%s" % name.split("-")[1])]

    until(lambda: not ended(), "the pools of ended processes are removed")


@test
def into_a_folder_that_is_not_empty():
    "a folder with something in it is wrong input, and called what the user called it"
    folder = tmp()
    recorder, env = flight(folder, IDLE, *SOME)
    os.makedirs(folder + "/slow/thing")
    _, err = snapshot(env, "-o", folder + "/slow", status=1)
    assert "'%s/slow' is not empty" % folder in err and "/proc/" not in err, err
    end(recorder)


@test
def into_a_folder_of_another_user():
    "root's snapshot goes into no folder of another user, and the recorder is not asked"
    if os.geteuid() != 0:
        skip("only root can make a folder of another user")
    folder = tmp()
    recorder, env = flight(folder, IDLE, *SOME)
    os.mkdir(folder + "/theirs")
    os.chown(folder + "/theirs", 65533, 65533)
    _, err = snapshot(env, "-o", folder + "/theirs", status=3)
    assert "'%s/theirs' belongs to user 65533" % folder in err, err
    equal(os.listdir(folder + "/theirs"), [], "what is in it")
    end(recorder)


@test
def of_what_is_attached_to():
    "a flight recorder that is attached is called what its process is called"
    folder = tmp()
    child = start(["sleep", "60"])
    env = {"PEM_RUNTIME_DIR": folder + "/run"}
    recorder = start([PEM, "record", "--overwrite", "-o", folder + "/trace", "-p", str(child.pid)], env=env,
                     stderr=subprocess.PIPE, text=True)
    while "until it ends" not in recorder.stderr.readline():
        pass
    out, _ = snapshot(env, "--json", "-o", folder + "/snapshot")
    equal(json.loads(out)["command"], "sleep 60", "the command")
    end(recorder)


@test
def stays_small():
    "hundreds of processes and much of the kernel: memory and disk of the recorder stay within the bound"
    folder = tmp()
    loop = "echo ready; i=0; while [ $i -lt %d ]; do i=$((i+1)); " + " ".join(program("processes", "plain", 400)) + \
           " > /dev/null; done; echo half; read line"
    command = ["sh", "-c", (loop + "; " + loop) % (150, 75)]  # tables of processes and names fill at first
    recorder, env = flight(folder, command, "-e", "APP,OS::Sched,OS::Process,OS::Syscall::Enter")
    seen = []
    for _ in range(2):
        equal(recorder.stdout.readline().strip(), "half", "the command's line")
        until_only_the_living_have_pools(folder)
        seen.append((resident_kib(recorder.pid), used_bytes(folder)))
        recorder.stdin.write("on\n")
        recorder.stdin.flush()
        if not seen[1:]:
            recorder.stdout.readline()
    recorder.stdin.close()
    recorder.wait(60)
    r = balanced(os.path.join(folder, "trace"))
    assert r["events"]["produced"] >= 2 * 75 * 400, r["events"]
    assert r["events"]["overwritten"] > 0
    (memory, disk), (memory_2, disk_2) = seen
    assert SAN or memory_2 - memory < 1024, "KiB of memory: %d, then %d" % (memory, memory_2)
    assert disk_2 - disk < 1 << 20, "bytes of disk: %d, then %d" % (disk, disk_2)
    if SAN:
        skip("its disk stays small; AddressSanitizer keeps what was freed for a while, so that memory is no measure")


run_all()
