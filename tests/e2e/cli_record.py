# SPDX-License-Identifier: MIT
"""cli_record: statuses of record and stat, where a trace may go, full disks, signals, kill -9 on either side"""
import glob
import json
import os
import signal
import subprocess
import time

import probing
from patience import HANG_S
from tap import OTHER_USER, PEM, equal, need, need_reach, run, run_all, skip, start, test, tmp
from trace_files import Trace

WAITER = ["sh", "-c", "ls -l /usr/share/doc > /dev/null; echo ready; exec sleep 60"]
LISTER = ["sh", "-c", "ls -R /usr/share/doc > /dev/null; echo ready; exec sleep 60"]
# Where other events show no more: all of them take ten times as long to begin with.
SOME = ("-e", "APP")


def report(trace):
    """Status, object and standard error of report --json."""
    rc, out, err = run([PEM, "report", "--json", trace])
    return rc, json.loads(out) if out else None, err


def balanced(trace):
    """The trace is complete and every event is accounted for. Returns the report."""
    rc, r, err = report(trace)
    lines = [e for e in r["per_event"] if e["count"] + e.get("markers", 0) != e["balance"]["delivered"] or
             2 * e["balance"]["produced"] != sum(e["balance"].values())] if r else []
    equal((rc, err, lines), (0, "", []), "status and errors of report, and events that do not balance")
    e = r["events"]
    equal(e["produced"], e["delivered"] + e["discarded"] + e["overwritten"], "conservation")
    equal(r["info"]["read"], e["delivered"], "events read")
    counted = r["info"]["read"] - sum(e.get("markers", 0) for e in r["per_event"])
    equal([sum(x["count"] for x in r[k]) for k in ("processes", "per_event")], [counted] * 2, "events of processes and events")
    assert r["info"]["complete"] and r["info"]["balanced"]
    return r


def mounted(folder, *options):
    """A tmpfs at folder, or a skip."""
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "pem-test", folder],
                          capture_output=True, text=True)
    if made.returncode != 0:
        skip("cannot mount a tmpfs (needs root): " + made.stderr.strip())


def unmount(folder):
    subprocess.run(["umount", "-l", folder], capture_output=True)


def wait_for(condition, what, seconds=HANG_S):
    """Poll until condition() is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited %d s for %s" % (seconds, what)
        time.sleep(0.02)


def gone(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def ready(recorder):
    """Wait for the command's line; return its pid."""
    equal(recorder.stdout.readline().strip(), "ready", "the command's line")
    children = "/proc/%d/task/%d/children" % (recorder.pid, recorder.pid)
    with open(children) as file:
        return int(file.read().split()[0])


def written(trace):
    """Bytes in a trace's streams."""
    return sum(os.path.getsize(stream) for stream in glob.glob(trace + "/[a-z]_*"))


def recording(folder, command=None, *options, **more):
    """A recorder under way, and where its trace goes."""
    trace = folder + "/trace"
    child = start([PEM, "record", "-o", trace, *options, "--"] + (command or WAITER),
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    return child, trace


# --- statuses


@test
def status_of_the_command():
    "record and stat return the command's status, or 128 and the signal"
    for verb in ("record", "stat"):
        more = ()
        for command, status in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 7"], 7),
                                (["sh", "-c", "exit 255"], 255), (["sh", "-c", "kill -TERM $$"], 143),
                                (["sh", "-c", "kill -KILL $$"], 137),
                                (["sh", "-c", "kill -SEGV $$"], 139)):
            rc, _, err = run([PEM, verb, "-q", *more, "--", *command], cwd=tmp())
            more = SOME
            equal(rc, status, "%s of %s: %s" % (verb, command, err))
            if 128 < status < 255:
                assert "signal %d" % (status - 128) in err, err


@test
def status_in_the_trace():
    "the trace keeps the command line and its status"
    trace = tmp() + "/t"
    equal(run([PEM, "record", "-q", "-o", trace, "--", "sh", "-c", "exit 7"])[0], 7, "status")
    info = balanced(trace)["info"]
    equal((info["command"], info["exit_status"]), ("sh -c exit 7", 7), "info")


@test
def command_not_found():
    "command not found: 127, not executable: 126, a sentence, and no trace left behind"
    folder = tmp()
    with open(folder + "/plain", "w") as plain:
        plain.write("no program\n")
    os.chmod(folder + "/plain", 0o644)
    for verb in ("record", "stat"):
        for command, status, words in (("pem-no-such-command", 127, "not found"),
                                       ("/no/such/command", 127, "not found"),
                                       ("./plain", 126, "cannot execute"),
                                       ("/etc", 126, "cannot execute")):
            rc, out, err = run([PEM, verb, "--", command], cwd=folder)
            equal((rc, out), (status, ""), "%s -- %s" % (verb, command))
            assert words in err and command in err, err
    equal(os.listdir(folder), ["plain"], "files left")


@test
def a_path_that_may_not_be_searched():
    "a command that is in no folder of PATH is not found, also when the user may not look into one of them"
    folder = tmp()
    os.chmod(folder, 0o755)
    os.mkdir(folder + "/closed")
    os.chmod(folder + "/closed", 0)
    command = ["env", "PATH=%s/closed:/usr/bin:/bin" % folder, PEM, "stat", "--", "pem-no-such-command"]
    if os.geteuid() == 0:
        need_reach()
        command = OTHER_USER + command
    rc, _, err = run(command, env={"PEM_RUNTIME_DIR": None, "XDG_RUNTIME_DIR": None}, cwd="/")
    equal(rc, 127, "status, after " + err)
    assert "command not found" in err, err


@test
def a_script_without_a_first_line():
    "an executable text without an interpreter line runs under sh, as it would from a shell"
    folder = tmp()
    with open(folder + "/script", "w") as script:
        script.write("echo hello; exit 7\n")
    os.chmod(folder + "/script", 0o755)
    equal(run([PEM, "record", "-q", *SOME, "--", "./script"], cwd=folder)[:2], (7, "hello\n"), "status and output")


@test
def output_of_the_command_is_untouched():
    "what the command writes and reads is its own; pem speaks on standard error only, and not with -q"
    folder = tmp()
    rc, out, err = run([PEM, "record", "--", "cat"], input="a\nb\n", cwd=folder)
    equal((rc, out), (0, "a\nb\n"), "status and output")
    assert "pem report pem-trace-cat-1" in err, err
    rc, out, err = run([PEM, "record", "-q", *SOME, "--", "cat"], input="a\n", cwd=folder)
    equal((rc, out, err), (0, "a\n", ""), "quiet")


# --- where the trace goes


@test
def default_folder():
    "without -o each trace gets a folder of its own in the current one"
    folder = tmp()
    for _ in range(3):
        equal(run([PEM, "record", "-q", *SOME, "--", "/bin/true"], cwd=folder)[0], 0, "status")
    equal(sorted(os.listdir(folder)), ["pem-trace-true-%d" % n for n in (1, 2, 3)], "folders")


@test
def nothing_is_overwritten():
    "a folder with something in it: status 1, its name, and what is in it stays"
    folder = tmp()
    with open(folder + "/letter", "w") as letter:
        letter.write("dear")
    rc, _, err = run([PEM, "record", "-o", folder, "--", "touch", folder + "/ran"])
    equal(rc, 1, "status")
    assert folder in err, err
    equal(os.listdir(folder), ["letter"], "what is in it")


@test
def an_empty_folder_will_do():
    "-o may name an empty folder"
    folder = tmp()
    equal(run([PEM, "record", "-q", "-o", folder, "--", "true"])[0], 0, "status")
    balanced(folder)


@test
def a_file_in_place_of_the_folder():
    "-o that is a file, lies under a file, or under nothing: status 1, its name, and the command does not run"
    folder = tmp()
    open(folder + "/file", "w").close()
    for output in ("/file", "/file/trace", "/missing/trace"):
        rc, _, err = run([PEM, "record", "-o", folder + output, "--", "touch", folder + "/ran"])
        equal(rc, 1, "status with " + output)
        assert folder + output in err, err
    equal(os.listdir(folder), ["file"], "what is there")


@test
def a_folder_that_cannot_be_written():
    "a read-only file system: status 2, a sentence, and the command does not run"
    folder, other = tmp(), tmp()
    mounted(folder, "ro", "size=64k")
    try:
        for command in (["-o", folder + "/trace"], []):
            rc, _, err = run([PEM, "record", *command, "--", "touch", other + "/ran"], cwd=folder)
            equal(rc, 2, "status")
            assert "Read-only" in err and "trace" in err, err
        equal(os.listdir(other), [], "what the command did")
    finally:
        unmount(folder)


@test
def full_disk_while_recording():
    "a disk that fills up: the command ends undisturbed, status 3, a sentence, and the trace opens with its losses counted"
    folder = tmp()
    mounted(folder, "size=2m")  # the model of all events fits, the records do not
    try:
        trace = folder + "/trace"
        rc, out, err = run([PEM, "record", "-o", trace, "--", "sh", "-c",
                            "ls -R /usr/share /usr/lib > /dev/null; echo done"])
        equal(out, "done\n", "the command's output")
        equal(rc, 3, "status: " + err)
        assert "No space left" in err or "full" in err, err
        assert "buffer" not in err, "advice that does not help: " + err
        said = run([PEM, "report", trace])[2]
        assert "not whole" in said and "No space left" in said, "report says: " + said
        rc, r, err = report(trace)
        assert rc in (0, 4), err
        assert r["events"]["delivered"] > 0, r["events"]
        assert r["events"]["discarded"] > 0, r["events"]
        equal(r["events"]["produced"],
              sum(r["events"][k] for k in ("delivered", "discarded", "overwritten")), "conservation")
        equal(r["info"]["read"], r["events"]["delivered"], "events read")
    finally:
        unmount(folder)


@test
def full_disk_keeps_the_commands_status():
    "a disk that fills up does not hide that the command failed"
    folder = tmp()
    mounted(folder, "size=512k")  # the model of these events fits, the records do not
    try:
        rc, _, err = run([PEM, "record", *SOME, "-o", folder + "/trace", "--", "sh", "-c",
                          "ls -lR /usr/share/doc > /dev/null; exit 7"])
        assert "No space left" in err or "full" in err, err
        equal(rc, 7, "status: " + err)
    finally:
        unmount(folder)


# --- losses


@test
def a_trace_that_is_taken_away():
    "a trace that is no longer where it was is a failure, unless the command failed itself"
    for end, status in (("true", 3), ("exit 5", 5)):
        folder = tmp()
        rc, _, err = run([PEM, "record", "-q", *SOME, "-o", "t", "--", "sh", "-c", "mv t moved; mkdir t; " + end], cwd=folder)
        equal(rc, status, "status of " + end)
        assert "the trace in t cannot be read back" in err, err


@test
def the_largest_buffer():
    "the largest --buffer of the manual can be had: memory is taken as it is used"
    rc, _, err = run([PEM, "record", "-q", "-e", "APP", "--buffer", "16G", "-o", os.path.join(tmp(), "trace"), "--", "true"])
    equal((rc, err), (0, ""), "status, standard error")


@test
def a_small_buffer_loses_and_counts():
    "with the smallest buffer, what is lost is counted, and record says so"
    for more, key, words in (([], "discarded", "a larger --buffer"), (["--overwrite"], "overwritten", "were overwritten")):
        trace = tmp() + "/t"
        rc, _, err = run([PEM, "record", "-e", "APP::Libc::*", "--buffer", "64K", *more, "-o", trace, "--",
                          "sqlite3", ":memory:",
                          "with recursive c(x) as (select 1 union all select x+1 from c where x < "
                          "300000) select count(hex(randomblob(8))) from c"])
        if rc == 127:
            need("sqlite3")
        equal(rc, 0, "status: " + err)
        e = balanced(trace)["events"]
        if e[key] == 0:
            skip("this machine drains 64 KiB faster than sqlite3 fills them")
        assert words in err and ("lost" in err) == (key == "discarded"), err


# --- signals


@test
def one_signal_is_the_commands():
    "a SIGTERM to the recorder reaches the command, and the trace is complete"
    for number, options in (signal.SIGTERM, ()), (signal.SIGINT, SOME):
        recorder, trace = recording(tmp(), None, *options)
        ready(recorder)
        recorder.send_signal(number)
        _, err = recorder.communicate(timeout=30)
        equal(recorder.returncode, 128 + number, "status: " + err)
        balanced(trace)


@test
def a_signal_before_the_command():
    "a signal that comes as soon as the trace's folder is there leaves a complete trace, or no folder"
    for number, options in (signal.SIGINT, ()), (signal.SIGTERM, SOME):
        trace = tmp() + "/trace"
        recorder = start([PEM, "record", *options, "-o", trace, "--", "sleep", "60"], stderr=subprocess.PIPE, text=True)
        while not os.path.exists(trace):
            assert recorder.poll() is None, recorder.stderr.read()
        recorder.send_signal(number)
        _, err = recorder.communicate(timeout=60)
        equal(recorder.returncode, 128 + number, "status: " + err)
        if os.path.exists(trace):
            balanced(trace)


@test
def a_signal_the_command_handles():
    "a command that handles the signal goes on, and so does the recording"
    recorder, trace = recording(tmp(), ["sh", "-c", 'trap "echo caught; exit 3" TERM; echo ready; while :; do sleep 0.05; done'], *SOME)
    ready(recorder)
    recorder.send_signal(signal.SIGTERM)
    out, err = recorder.communicate(timeout=30)
    equal((recorder.returncode, out), (3, "caught\n"), "status and output: " + err)
    equal(balanced(trace)["info"]["exit_status"], 3, "status in the trace")


@test
def a_second_signal_stops_recording():
    "a second signal ends the recording with a complete trace and leaves the command alone"
    recorder, trace = recording(tmp(), ["sh", "-c", 'trap "" TERM; ls /usr/share/doc > /dev/null; echo ready; exec sleep 60'], *SOME)
    pid = ready(recorder)
    recorder.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    assert recorder.poll() is None, "the recorder ended at the first signal"
    recorder.send_signal(signal.SIGTERM)
    recorder.stdout.close()
    equal(recorder.wait(30), 143, "status")
    assert not gone(pid), "the command ended too"
    os.kill(pid, signal.SIGKILL)
    err = recorder.stderr.read()
    assert str(pid) in err, err
    assert balanced(trace)["events"]["delivered"] > 0


# --- kill -9


@test
def kill_the_program():
    "kill -9 on the program: status 137, the trace is complete and what it raised until then is there"
    recorder, trace = recording(tmp())
    os.kill(ready(recorder), signal.SIGKILL)
    _, err = recorder.communicate(timeout=30)
    equal(recorder.returncode, 137, "status: " + err)
    assert "signal 9" in err, err
    r = balanced(trace)
    equal(r["info"]["exit_status"], 137, "status in the trace")
    assert r["layers"]["APP"]["count"] > 0, r["layers"]


@test
def kill_the_program_in_full_flight():
    "kill -9 while the program raises events without pause: the trace balances"
    need("sqlite3")
    recorder, trace = recording(tmp(), ["sh", "-c", "echo ready; exec sqlite3 :memory: 'with recursive "
                                        "c(x) as (select 1 union all select x+1 from c) select "
                                        "count(hex(randomblob(8))) from c'"], "-e", "APP::Libc::*")
    pid = ready(recorder)
    wait_for(lambda: written(trace) > 1 << 20, "a megabyte of events")
    os.kill(pid, signal.SIGKILL)
    _, err = recorder.communicate(timeout=30)
    equal(recorder.returncode, 137, "status: " + err)
    e = balanced(trace)["events"]
    assert e["delivered"] > 1000, e


def killed_recorder(command, *options):
    """Trace whose recorder got kill -9 while its program slept on; the program is ended too."""
    recorder, trace = recording(tmp(), command, *options)
    pid = ready(recorder)
    wait_for(lambda: written(trace) > 0, "the first packets")
    recorder.kill()
    recorder.wait(30)
    time.sleep(0.2)
    assert not gone(pid), "the program died with its recorder"
    os.kill(pid, signal.SIGKILL)
    return trace


@test
def kill_the_recorder():
    "kill -9 on the recorder: the program goes on; report adds what lay in shared memory and accounts for all of it"
    trace = killed_recorder(WAITER, "-e", "APP::Libc::*")  # and nothing of the kernel's, as static probes would be
    rc, r, err = report(trace)
    equal(rc, 0, "status of report: " + err)
    assert "did not finish" in err, err
    assert r["info"]["read"] > 0 and "recorder" in [g["source"] for g in r["gaps"]], r["gaps"]
    balanced(trace)


@test
def kill_the_recorder_that_advances_a_coarse_clock():
    "kill -9 on a recorder with --clock coarse: all that the program logged is accounted for, and the trace says for how long its clock stood still"
    trace = killed_recorder(LISTER, "-e", "APP::Libc::*", "--clock", "coarse")
    rc, r, err = report(trace)
    equal(rc, 0, "status of report: " + err)
    # What the recorder had taken and not yet written, at most some chunks, is counted as discarded.
    assert r["events"]["discarded"] <= r["events"]["produced"] / 2 and not r["events"]["overwritten"], r["events"]
    balanced(trace)
    assert r["info"]["coarse_late_ns"] > 200_000_000 and r["info"]["clock_error_ns"] > 200_000_000, r["info"]


@test
def kill_the_recorder_of_the_kernel():
    "kill -9 on the recorder of kernel events: the trace opens, and report says that losses are uncounted, status 4"
    _, out, _ = run([PEM, "list", "OS::Mem::PageFault", "--json"])
    for e in json.loads(out):
        if not e["available"]:
            skip(e["reason"])
    trace = killed_recorder(WAITER)
    for _ in range(2):
        rc, r, err = report(trace)
        equal(rc, 4, "status of report: " + err)
        assert "did not finish" in err and "kernel" in err, err
        assert r["layers"]["OS"]["count"] > 0, r["layers"]
    rc, _, err = run([PEM, "report", trace])
    equal(rc, 4, "status of the table")


@test
def kill_the_recorder_before_its_command():
    "kill -9 on a recorder of the kernel that has nothing yet: report says that it did not finish, status 4"
    recorder, trace = recording(tmp(), ["cat"], "-e", "OS::Sched::Switch", stdin=subprocess.PIPE)
    wait_for(lambda: os.path.exists(trace + "/.pem/session"), "the trace's folder")
    recorder.kill()
    recorder.communicate(timeout=30)
    rc, r, err = report(trace)
    equal((rc, r["info"]["balanced"]), (4, False), "status of report: " + err)
    assert "did not finish" in err, err


@test
def a_recorder_killed_without_a_command():
    "a trace of programs' events that was recovered: status 4 if its recorder had not come to its command, or else 0"
    for command, status in (("", 4), ("cat", 0)):
        made, trace = Trace(command=command), os.path.join(tmp(), "trace")
        made.event("APP::Made::Up")
        made.gaps.append(("recorder", "it was killed"))
        made.write(trace)
        rc, _, err = report(trace)
        equal((rc, "did not finish" in err), (status, status == 4), "report of command '%s': %s" % (command, err))


@test
def a_program_whose_recorder_died_ends_well():
    "a program whose recorder was killed runs to its end with its own status"
    folder = tmp()
    recorder, _ = recording(folder, ["sh", "-c", "echo ready; sleep 1; ls /usr/share/doc > /dev/null; "
                                     "echo $? > %s/status" % folder], *SOME)
    ready(recorder)
    recorder.kill()
    recorder.wait(30)
    path = folder + "/status"
    wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the program's end")
    with open(path) as file:
        equal(file.read(), "0\n", "its status")


@test
def a_recorder_after_a_killed_one():
    "what a killed recorder left behind does not disturb the next one"
    recorder, _ = recording(tmp(), None, *SOME)
    pid = ready(recorder)
    recorder.kill()
    recorder.wait(30)
    os.kill(pid, signal.SIGKILL)
    trace = tmp() + "/t"
    equal(run([PEM, "record", "-q", "-o", trace, "--", "true"])[0], 0, "status")
    balanced(trace)


@test
def named_and_not_raised():
    "a pattern of -e of which nothing was raised is named at the end; one that gave events, or can't be had, is not"
    rc, _, err = run([PEM, "record", "-o", tmp() + "/t", "-e", "APP::Lock::Barrier*,Malloc,Phase", "--", "ls", "/"])
    equal(rc, 0, "status")
    assert "pem: nothing was raised of 'APP::Lock::Barrier*' or 'Phase'; " in err, err
    equal(err.count("\n"), 2, "lines of " + err)
    rc, _, err = run([PEM, "record", "-o", tmp() + "/t", "-e", "Malloc", "--", "ls", "/"])
    assert rc == 0 and err.count("\n") == 1, err
    rc, _, err = run([PEM, "record", "-q", "-o", tmp() + "/t", "-e", "Phase", "--", "false"])
    equal((rc, err), (1, ""), "-q, and the command's status")
    rc, _, err = run([PEM, "record", "-o", tmp() + "/t", "--", "true"])
    assert "nothing was raised" not in err, "nobody named anything: " + err
    rc, _, err = run([PEM, "record", "-o", tmp() + "/t", "-e", "Malloc where size == 123456789", "--", "ls", "/"])
    assert rc == 0 and "pem: nothing was raised of 'Malloc' that passed 'size == 123456789'\n" in err, err


@test
def each_name_that_was_not_raised():
    "of many patterns of which nothing was raised, each is named"
    probing.here()  # BPF serves static probes
    names = [e["name"] for e in json.loads(run([PEM, "list", "app", "--json"])[1])
             if e["name"].split("::")[1] == "Postgres"]
    assert len(names) > 40, names
    _, _, err = run([PEM, "record", "-o", tmp() + "/t", "-e", ",".join(names), "--", "true"])
    equal([n for n in names if "'%s'" % n not in err], [], "not named in " + err)


@test
def gaps_are_grouped():
    "many events that lack for one reason are one sentence that names all, in record and in report"
    events = json.loads(run([PEM, "list", "--json"])[1])
    lacking = [e for e in events if not e["available"] and "no tracepoint" in e["reason"]]
    if len(lacking) < 2:
        skip("this kernel has every tracepoint")
    names = [e["name"] for e in lacking[:8]]
    trace = tmp() + "/t"
    rc, _, err = run([PEM, "record", "-o", trace, "-e", ",".join(names), "--", "true"])
    equal(rc, 2, "status, as nothing of -e can be had")
    said = [line for line in err.splitlines() if "not recorded" in line]
    equal(len(said), 1, "sentences: " + err)
    _, out, _ = run([PEM, "report", trace])
    shown = " ".join(out.split("\nNot recorded\n")[1].split())
    equal(shown.count("no tracepoint"), 1, "sentences of the report: " + shown)
    for event in lacking[:8]:
        assert any(source in said[0] and source in shown for source in event["sources"]), (event["name"], said, shown)
    assert "nothing was raised" not in err, err


@test
def goes_before_others():
    "root's recorder has a better priority than what it records, which keeps its own; one that was given another keeps that"
    if os.geteuid() != 0:
        skip("a better priority is root's to take")
    nice = 'nice() { set -- $(sed "s/.*) //" /proc/$1/stat); echo ${17}; };'
    wait = "for i in $(seq 500); do [ $(nice $PPID) = -10 ] && break; sleep 0.02; done;"
    say = "echo $(nice $PPID) $(nice $$)"
    usual = ["nice", "-n", str(-os.getpriority(os.PRIO_PROCESS, 0))]
    for words, waiting, expected in (usual, wait, "-10 0\n"), (usual + ["nice", "-n", "3"], "sleep 0.2;", "3 3\n"):
        rc, out, err = run([*words, PEM, "record", "-q", "--no-libc", "-e", "Fork", "-o", tmp() + "/trace", "--", "sh", "-c",
                            nice + waiting + say])
        equal((rc, out, err), (0, expected, ""), "the priorities of recorder and command")


def lacking(*arguments):
    """What record says of events of the module where it is not there, its status, and the trace's gaps."""
    if os.path.exists("/dev/pem"):
        skip("pem.ko is loaded")
    trace = os.path.join(tmp(), "t")
    rc, _, said = run([PEM, "record", "-o", trace, *arguments, "--", "true"])
    _, out, err = run([PEM, "report", "--json", trace])
    assert out, err
    return rc, said, [gap["reason"] for gap in json.loads(out)["gaps"]]


@test
def nothing_to_be_had_is_said_once():
    "where none of the events of -e can be had, the reason is said once, with -q too"
    rc, said, gaps = lacking("-e", "OS::Pages::*")
    equal((rc, len(gaps)), (2, 1), "status and gaps: " + said)
    equal((said.count(gaps[0]), said.count("none of the events of -e can be had here")), (1, 1), said)
    rc, said, gaps = lacking("-q", "-e", "OS::Pages::*")
    equal((rc, said), (2, "pem: error: none of the events of -e can be had here: %s\n" % gaps[0]), "with -q")


@test
def pages_are_asked_for_by_the_option():
    "--pages records OS::Pages::* where -e names none of them, so what lacks is said"
    for arguments, lacks in (["-e", "Malloc"], False), (["-e", "Malloc", "--pages", "20ms,256K"], True):
        rc, said, gaps = lacking(*arguments)
        equal((rc, any("only pem.ko sees this" in gap for gap in gaps)), (0, lacks), said)


run_all()
