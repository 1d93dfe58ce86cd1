# SPDX-License-Identifier: MIT
"""report_calls: system calls of real programs by name and file, and processes of one name by their arguments"""
import csv
import json
import os
import sys

import probing
from preload import compile_program
from tap import PEM, equal, run, run_all, test, tmp

EVENTS = "OS::Syscall,OS::Process::Fork,OS::Process::Exec,OS::Process::Arguments,OS::Process::Exit"


def recorded(command, events=EVENTS):
    """A trace of a shell command with the events of the kernel, or a skip."""
    probing.here()
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", events, "-o", trace, "--", "sh", "-c", command])
    equal(rc, 0, "status of record (stderr: %s)" % err)
    return trace


def report(trace, *options):
    rc, out, err = run([PEM, "report", *options, trace])
    equal(rc, 0, "status (stderr: %s)" % err)
    return out


def calls_of(trace):
    return json.loads(report(trace, "--json"))["system_calls"]


@test
def a_call_is_on_its_file():
    "what dd reads and writes is moved from and to its files, to the byte; opened ones by path, and a pipe by its number"
    probing.paths_here()
    path = os.path.join(tmp(), "written")
    calls = calls_of(recorded("dd if=/dev/zero bs=1000 count=37 status=none | dd of=%s bs=1000 status=none" % path))
    equal(sum(c["moved_bytes"] for c in calls if c["call"] == "write" and c.get("file") == path), 37000, "bytes into it")
    piped = [c for c in calls if c["call"] == "write" and c.get("file", "").startswith("pipe:[")]
    equal([(c["count"], c["moved_bytes"]) for c in piped], [(37, 37000)], "writes into the pipe")
    link = "pipe:[%d]"
    assert piped[0]["file"] == link % int(piped[0]["file"][6:-1]), piped
    equal(sum(c["moved_bytes"] for c in calls if c.get("file") == "/dev/zero"), 37000, "bytes of zeros")


@test
def a_path_is_as_proc_shows_it():
    "a file in a deep folder, in another mount, and one that is no file, are named as /proc/PID/fd names them"
    folder = os.path.join(tmp(), *["n%d" % i for i in range(12)])
    os.makedirs(folder)
    with open(os.path.join(folder, "deep"), "w", encoding="ascii") as out:
        out.write("x")
    paths = [os.path.join(folder, "deep"), "/proc/self/status", "/dev/null"]
    found = {c.get("file") for c in calls_of(recorded("cat %s >/dev/null" % " ".join(paths)))}
    assert paths[0] in found or any(f and f.startswith("...") and paths[0].endswith(f[3:]) for f in found), found
    assert any(f and f.startswith("/proc/") and f.endswith("/status") for f in found), found
    assert "/dev/null" in found or any(f and f.endswith("/null") for f in found), found


@test
def a_long_path_has_its_end():
    "of a path longer than the field the end is shown, behind three dots"
    folder = os.path.join(tmp(), *["a_rather_long_name_of_a_folder_%d" % i for i in range(8)])
    os.makedirs(folder)
    path = os.path.join(folder, "file")
    found = {c.get("file") for c in calls_of(recorded("echo x >%s" % path))}
    ends = [f for f in found if f and f.endswith("/file")]
    equal(len(ends), 1, "files: %s" % found)
    assert ends[0].startswith(".../") and path.endswith(ends[0][3:]) and len(ends[0]) > 80, ends


def files_of(script):
    """{file, or None: writes to it} of a Python program, whose folder is D."""
    folder = os.path.realpath(tmp())
    program = os.path.join(tmp(), "program.py")
    with open(program, "w", encoding="utf-8") as out:
        out.write("import os\nD = %r\n%s" % (folder, script))
    rows = {}
    for row in calls_of(recorded("exec '%s' '%s'" % (sys.executable, program))):
        if row["call"] == "write":
            rows[row.get("file")] = rows.get(row.get("file"), 0) + row["count"]
    return rows


@test
def names_longer_than_a_field():
    "files whose names do not fit are told apart by the end of their names, behind three points"
    rows = files_of("for c, n in ('a', 20), ('b', 30):\n fd = os.open(D + '/' + 'n' * 180 + c, os.O_CREAT | os.O_RDWR)\n"
                    " for i in range(n): os.write(fd, b'x')")
    equal([rows.get("..." + "n" * 123 + c) for c in "ab"], [20, 30], "writes by the ends of names: %r" % rows)


@test
def a_closed_descriptor_is_no_file():
    "calls on a descriptor that was closed are on no file, and on the file again that it becomes"
    rows = files_of("fd = os.open(D + '/f', os.O_CREAT | os.O_RDWR); os.write(fd, b'x'); os.close(fd)\n"
                    "for i in range(50):\n try: os.write(fd, b'x')\n except OSError: pass\n"
                    "again = os.open(D + '/f', os.O_RDWR); assert again == fd\nfor i in range(8): os.write(fd, b'x')")
    (name,) = [name for name in rows if name and name.endswith("/f")]
    equal(rows[name], 9, "writes to the file: %r" % rows)
    assert rows.get(None, 0) >= 50, rows


@test
def calls_that_take_a_path():
    "a call that takes a path is on that file, be the path in a folder's descriptor or in the current folder; fstat is on the file"
    probing.paths_here()
    folder = tmp()
    program = ("import os; D = %r; fd = os.open(D + '/made', os.O_CREAT | os.O_RDWR)\n"
               "for i in range(7): os.fstat(fd)\n"
               "for i in range(5): os.access(D + '/made', os.R_OK)\n"
               "here = os.open(D, os.O_RDONLY)\n"
               "for i in range(3): os.stat('made', dir_fd=here)\n"
               "os.chdir(D)\n"
               "for i in range(2): os.access('./made', os.R_OK)\n"
               "for i in range(4):\n try: os.unlink(D + '/missing')\n except OSError: pass\n"
               "os.rename(D + '/made', D + '/moved')") % folder
    calls = calls_of(recorded("%s -c \"%s\"" % (sys.executable, program)))

    def on(path):
        rows = [c for c in calls if c.get("file") == path]
        return {c["call"]: (c["count"], c["failed"]) for c in rows}

    made = on(folder + "/made")
    opened = made.get("openat", made.get("open"))
    equal(opened, (1, 0), "opened: %r" % made)
    equal(sum(made[call][0] for call in made if "stat" in call), 7 + 3, "fstat, and stat in a folder: %r" % made)
    equal(made.get("access", made.get("faccessat", made.get("faccessat2"))), (5 + 2, 0), "access: %r" % made)
    equal((on("made"), on("?/made")), ({}, {}), "in no folder")
    equal(next(iter(on(folder + "/missing").values()), None), (4, 4), "unlink of what is not there")
    assert any(call.startswith("rename") for call in made), made


@test
def a_current_folder_that_changes_its_name():
    "a renamed current folder, and one that is the same on another mount, are told anew; threads with a folder each have their own"
    probing.paths_here()
    folder = tmp()
    program = ("import os, ctypes, threading; D = %r; os.mkdir(D + '/old'); os.chdir(D + '/old'); os.access('one', 0)\n"
               "os.rename(D + '/old', D + '/new'); os.access('two', 0)\n"
               "libc = ctypes.CDLL(None)\n"
               "libc.unshare(0x20000); os.mkdir(D + '/on')\n"
               "if libc.mount((D + '/new').encode(), (D + '/on').encode(), None, 4096, None) == 0:\n"
               " os.chdir(D + '/on'); os.access('three', 0); os.chdir('/'); libc.umount2((D + '/on').encode(), 2)\n"
               "def work(where):\n"
               " libc.unshare(0x200); os.chdir(where); barrier.wait()\n"
               " for i in range(300): os.access('x', 0)\n"
               "barrier = threading.Barrier(2)\n"
               "for t in [threading.Thread(target=work, args=[w]) for w in ('/usr', '/etc')]: t.start()") % folder
    calls = [c for c in calls_of(recorded("%s -c \"%s\"" % (sys.executable, program))) if "access" in c["call"]]
    found = {c["file"]: c["count"] for c in calls if "file" in c}
    equal((found.get(folder + "/old/one"), found.get(folder + "/new/two")), (1, 1), "a renamed folder: %r" % found)
    assert "three" not in str(found) or found.get(folder + "/on/three") == 1, found
    equal((found.get("/usr/x"), found.get("/etc/x")), (300, 300), "of two threads: %r" % found)


@test
def what_failed_is_counted():
    "calls that returned an error are told apart from those that did not"
    calls = calls_of(recorded("cat /no/such/file_1 /no/such/file_2 2>/dev/null; true"))
    failed = sum(c["failed"] for c in calls if c["call"] == "openat")
    opened = sum(c["count"] for c in calls if c["call"] == "openat")
    assert 2 <= failed < opened, (failed, opened)
    equal(sum(c["failed"] for c in calls if c["call"] == "write"), 0, "failed writes")


@test
def sums_are_those_of_the_records():
    "calls, failures and bytes by name, and by process and name, are those that a script counts in the exported records"
    trace = recorded("ls -lR /usr/include/linux | sort | tail -3")
    table = os.path.join(tmp(), "t.csv")
    equal(run([PEM, "export", "--to", "csv", "-o", table, trace])[0], 0, "status of export")
    begun, counted = {}, {}
    with open(table, encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            thread = row["tid"]
            if row["event"] == "OS::Syscall::Enter":
                begun[thread] = row["number"]
            elif row["event"] == "OS::Syscall::Exit" and thread in begun:
                name, result = begun.pop(thread), int(row["result"])
                sums = counted.setdefault((row["pid"], name), [0, 0, 0])
                sums[0] += 1
                sums[1] += -4096 < result < 0
                sums[2] += result if result > 0 and name in ("read", "write") else 0
    by_name = {}
    for (_, name), sums in counted.items():
        by_name[name] = [a + b for a, b in zip(by_name.get(name, [0, 0, 0]), sums)]
    found = {}
    for call in calls_of(trace):
        if not call["count"]:
            assert call["no_end"], call
            continue
        sums = found.setdefault(call["call"], [0, 0, 0])
        for i, key in enumerate(("count", "failed", "moved_bytes")):
            sums[i] += call[key]
    for name in ("read", "write", "openat", "close", "mmap", "getdents64", "execve"):
        equal(found.get(name), by_name.get(name), name)
    pairs = json.loads(report(trace, "--by", "process,syscall", "--json"))["system_calls"]
    for call in pairs:
        if call["call"] in ("read", "write", "openat", "close"):
            equal([call["count"], call["failed"], call["moved_bytes"]], counted[str(call["pid"]), call["call"]],
                  "%s of process %d" % (call["call"], call["pid"]))
    counted = by_name
    equal(set(found), set(counted), "names")


@test
def tables_for_people():
    "--by syscall, --by file and --by syscall,file each show one table, and the whole report shows the first two"
    trace = recorded("ls /usr/share >/dev/null")
    text = report(trace, "--by", "syscall")
    assert "SYSTEM CALL" in text and "getdents64" in text and "MOST TIME ON" in text, text
    text = report(trace, "--by", "file")
    assert "MOST IN" in text and "/usr/share" in text and "SYSTEM CALL" not in text, text
    text = report(trace, "--by", "syscall,file")
    assert any(line.startswith("getdents64") and line.endswith("/usr/share") for line in text.splitlines()), text
    text = report(trace)
    assert "System calls" in text and "Files, by the time" in text, text
    for wrong in ("file,file", "file,layer", "syscall,", ",file", "syscall,file,process"):
        rc, _, err = run([PEM, "report", "--by", wrong, trace])
        equal(rc, 1, "status of --by " + wrong)
        assert "phase,syscall" in err, err


@test
def why_a_phase_was_slow():
    "--by phase,syscall tells the system calls of each phase apart"
    command = "%s mark begin slow && sleep 0.2; %s mark end slow; %s mark run quick -- ls /usr/share >/dev/null" % (PEM, PEM, PEM)
    trace = recorded(command, EVENTS + ",APP::Phase")
    calls = json.loads(report(trace, "--by", "phase,syscall", "--json"))["system_calls"]
    slept = [c for c in calls if c["call"] == "clock_nanosleep"]
    equal([(c.get("phase"), c["count"]) for c in slept], [("slow", 1)], "sleeps")
    files = json.loads(report(trace, "--by", "phase,file", "--json"))["system_calls"]
    equal({c.get("phase") for c in files if c.get("file") == "/usr/share"}, {"quick"}, "phases of the folder that ls read")
    text = report(trace, "--by", "phase,syscall")
    assert any(line.startswith("slow ") and "clock_nanosleep" in line for line in text.splitlines()), text


@test
def a_call_without_an_end():
    "a call that never ends, as exit_group, is shown without a time"
    trace = recorded("sleep 0.1; true")
    calls = {call["call"]: call for call in calls_of(trace) if call["no_end"]}
    assert "exit_group" in calls and calls["exit_group"]["count"] == 0, calls
    text = report(trace, "--by", "syscall")
    assert "NO END" in text and any(line.split()[:3] == ["exit_group", "0", str(calls["exit_group"]["no_end"])]
                                    for line in text.splitlines()), text


@test
def a_phase_that_began_within_a_call():
    "a call is of the phase that it began in, and not of one that another process began meanwhile"
    trace = recorded("sleep 1 & sleep 0.3; '%s' mark begin late; wait; '%s' mark end late" % (PEM, PEM), EVENTS + ",APP::Phase")
    rows = json.loads(report(trace, "--by", "phase,syscall", "--json"))["system_calls"]
    late = sum(row["total_ns"] for row in rows if row.get("phase") == "late" and row["call"].endswith("nanosleep"))
    equal(late, 0, "time of sleeps in the phase: %r" % [row for row in rows if row["call"].endswith("nanosleep")])


@test
def processes_of_one_name():
    "three processes of one program are told apart by their arguments, start and parent"
    trace = recorded("sleep 0.01; sleep 0.02; sleep 0.03")
    processes = json.loads(report(trace, "--json"))["processes"]
    sleeps = sorted((p for p in processes if p["name"] == "sleep"), key=lambda p: p["start_ns"])
    equal([p["arguments"] for p in sleeps], ["sleep 0.01", "sleep 0.02", "sleep 0.03"], "arguments")
    shell = [p for p in processes if p["name"] == "sh"]
    equal({p["parent"] for p in sleeps}, {shell[0]["pid"]}, "parents")
    text = report(trace, "--by", "process")
    assert "sleep 0.02" in text and "STARTED" in text and "PARENT" in text, text


@test
def exec_by_another_thread():
    "execve by a thread that is not the first of its process is completed, as strace shows it, and what runs then has time"
    program = compile_program("""
        #include <pthread.h>
        #include <unistd.h>
        static void *work(void *arg)
        {
            char *command[] = {"/bin/true", 0};

            usleep(20000);
            execv(command[0], command);
            return arg;
        }
        int main(void)
        {
            pthread_t thread;

            pthread_create(&thread, 0, work, 0);
            pause();
            return 1;
        }""")
    probing.here()
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", EVENTS, "-o", trace, "--", program])
    equal(rc, 0, "status of record (stderr: %s)" % err)
    found = json.loads(report(trace, "--json"))
    equal([(c["count"], c["no_end"]) for c in found["system_calls"] if c["call"] == "execve"], 2 * [(1, 0)], "calls that have ended")
    first = [t for t in found["thread_states"] if t["tid"] == t["pid"]]
    equal((len(first), all(t["running_ns"] > 0 for t in first)), (2, True), "threads of the first number: %r" % first)


@test
def arguments_with_any_bytes():
    "an argument's control characters are not sent to the terminal, and a long list is cut and says so"
    trace = recorded("sh -c : 'a\033[31mb' ; sh -c : %s" % ("x" * 400))
    text = report(trace)
    assert "\033[31m" not in text, text
    longest = max(len(p.get("arguments", "")) for p in json.loads(report(trace, "--json"))["processes"])
    equal(longest, 255, "bytes of the longest")


run_all()
