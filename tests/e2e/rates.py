# SPDX-License-Identifier: MIT
"""rates: pem rates finds what stages of pipelines could do, beside programs that know their own service"""
import json
import os
import re
import signal
import subprocess
import sys
import time

from probing import here
from tap import BUILD, PEM, equal, run, run_all, skip, start, test, tmp

STAGE = os.path.join(BUILD, "programs", "stage")
if not os.path.exists(BUILD + "/bin/pem-rates"):
    print("1..0 # SKIP pem rates was not built: json-c is missing")
    sys.exit(77)


def rates(command, *options, status=0):
    """What pem rates --json prints of a command, and what the command itself printed to standard error."""
    here()
    return unless_lost(lambda: run([PEM, "rates", "--json", "-q", *options, "--", "sh", "-c", command], timeout=300), status)


def unless_lost(do, status=0):
    """What it prints. On a machine that is busy enough, records are lost: then it is done again."""
    for _ in range(5):
        rc, out, err = do()
        if not out or not json.loads(out)["lost"]:
            break
    equal(rc, status, "status: " + err)
    return json.loads(out), err


def truth(err):
    """pid: (bytes, seconds of service) of each stage, as it says itself."""
    return {int(pid): (int(items), int(ns) / 1e9) for pid, items, ns in re.findall(r"^stage (\d+) (\d+) (\d+)$", err, re.M)}


def near(got, wanted, share, what):
    assert abs(got - wanted) <= share * wanted, "%s: %g, and the truth is %g" % (what, got, wanted)


def tolerance(stage):
    """A stage that often lost its CPU has used some of its CPU time to get it back."""
    return 0.05 if stage["waiting_for_cpu"] < 0.1 * stage["lifetime"] else 0.12


def pipeline(*stages):
    return " | ".join("%s %s" % (STAGE, stage) for stage in stages)


@test
def rates_of_stages_that_work():
    "each stage's rate is its bytes over its own CPU time, whatever blocks it; and its interval has it"
    found, err = rates(pipeline("-o 4096 60 3000", "-i -o 4096 90 3000", "-i 4096 60 3000"))
    known = truth(err)
    equal(len(found["stages"]), 3, "stages")
    for stage in found["stages"]:
        items, seconds = known[stage["pid"]]
        near(stage["rate_per_s"], items / seconds, tolerance(stage), "rate of %s" % stage["name"])
        assert stage["low"] <= stage["rate_per_s"] <= stage["high"], stage
    equal(found["lost"], 0, "lost")


@test
def the_bottleneck_is_the_slowest_stage():
    "the slowest stage is called the bottleneck; the one before it finds its output full, the one after it no input"
    found, err = rates(pipeline("-o 4096 5 3000", "-i -o -k 4096 300 3000", "-i 4096 5 3000"))
    first, slow, last = found["stages"]
    equal(found["bottleneck"], slow["name"], "bottleneck")
    assert first["blocked_out"] > 0.5 * first["lifetime"], first
    assert last["blocked_in"] > 0.5 * last["lifetime"], last
    assert slow["blocked_in"] + slow["blocked_out"] < 0.2 * slow["lifetime"], slow
    assert slow["other_waits"] >= 0.9 * 3000 * 300e-6, slow
    # Its service is at least the time that it asks for, and at most the time that it was there.
    assert slow["rate_per_s"] <= 4096 / 300e-6, slow
    near(slow["running"] + slow["other_waits"], truth(err)[slow["pid"]][1] - slow["waiting_for_cpu"], 0.25, "service")


@test
def times_add_up():
    "what a stage did adds up to its lifetime"
    found, _ = rates("seq 300000 | sort -r | uniq | wc -l >/dev/null")
    equal([s["name"] for s in found["stages"]], ["seq", "sort", "uniq", "wc"], "stages in order")
    for stage in found["stages"]:
        parts = [stage[k] for k in ("running", "other_waits", "waiting_for_cpu", "blocked_in", "blocked_out", "unknown")]
        near(sum(parts), stage["lifetime"], 0.02, "times of %s" % stage["name"])


@test
def bytes_are_the_programs():
    "bytes through each queue are those that the programs moved"
    found, _ = rates("head -c 3000000 /dev/zero | tee /dev/null | cat | wc -c >/dev/null")
    equal([q["bytes"] for q in found["queues"]], [3000000] * 3, "bytes")
    equal([(q["from"], q["to"]) for q in found["queues"]], [(["head"], ["tee"]), (["tee"], ["cat"]), (["cat"], ["wc"])], "ends")


@test
def a_bottleneck_outside():
    "if what takes the output is too slow, that is told, and no stage is blamed"
    here()
    rc, out, err = run(["sh", "-c", "%s rates -q -o /dev/stderr --json -- sh -c 'cat /dev/zero | head -c 3000000' | (%s -i 30000 3000 100)"
                        % (PEM, STAGE)])
    equal(rc, 0, "status")
    found = json.loads(err[err.index("{"):err.rindex("}") + 1])
    equal(found["bottleneck"], None, "bottleneck")
    assert found["held_up_outside"] > 0.5, found["held_up_outside"]


@test
def what_other_pipes_would_bring():
    "the model gives what was observed, and says that longer pipes bring nothing where one stage is slow all the time"
    found, _ = rates(pipeline("-o 4096 10 3000", "-i -o -k 4096 400 3000", "-i 4096 10 3000"))
    if not found["predictions_believed"]:
        skip("this machine is too busy: the model gives %r" % found["predictions"][0])
    slow = found["stages"][1]["rate_per_s"]
    for one in found["predictions"][:2]:
        near(one["rate_per_s"], slow, 0.12, one["what"])


@test
def why_nothing_is_predicted():
    "two pipelines at a time have no last stage, and the reason is printed"
    here()
    rc, _, err = run([PEM, "rates", "-q", "--", "sh", "-c", "seq 1000 | wc -l >/dev/null; seq 1000 | wc -l >/dev/null"])
    assert rc in (0, 4) and "not predicted: the pipeline has no last stage, or several.\n" in err, (rc, err)


@test
def items_of_another_size():
    "--items 512 counts blocks, reads counts reads: the rates are those of the bytes over that"
    command = pipeline("-o 4096 20 1000", "-i 4096 60 1000")
    for option, size in ("512", 512), ("reads", 4096):
        found, err = rates(command, "--items", option)
        last = found["stages"][1]
        items, seconds = truth(err)[last["pid"]]
        near(last["rate_per_s"], items / size / seconds, tolerance(last), "rate in " + option)
        near(last["items"], items / size, 0.03, "items")
        equal(found["stages"][0]["items"], 4096 * 1000 // size, "items that the first stage gave")


@test
def a_trace_tells_the_same():
    "a recorded pipeline has the stages, bytes and rates that the programs know"
    here()
    known = {}

    def record():
        trace = os.path.join(tmp(), "trace")
        rc, _, err = run([PEM, "record", "-q", "-o", trace, "-e", "OS::Syscall,OS::Sched,OS::Process", "--", "sh", "-c",
                          pipeline("-o 4096 60 3000", "-i -o 4096 90 3000", "-i 4096 60 3000")])
        equal(rc, 0, "status: " + err)
        known.update(truth(err), trace=trace)
        return run([PEM, "rates", "--json", trace])

    found, _ = unless_lost(record)
    equal(len(found["stages"]), 3, "stages")
    for stage in found["stages"]:
        items, seconds = known[stage["pid"]]
        near(stage["rate_per_s"], items / seconds, tolerance(stage), "rate of %s" % stage["name"])
    rc, out, err = run([PEM, "rates", known["trace"]])
    assert "The bottleneck is " in out, out


@test
def a_trace_without_what_is_needed():
    "a trace without system calls is refused, with the events that are needed"
    here()
    trace = os.path.join(tmp(), "trace")
    run([PEM, "record", "-q", "-o", trace, "-e", "OS::Process", "--", "true"])
    rc, _, err = run([PEM, "rates", trace])
    equal(rc, 1, "status")
    assert "OS::Syscall::Enter" in err and "record with -e" in err, err


@test
def a_fifo():
    "a FIFO is a queue like a pipe, also in a trace"
    folder = tmp()
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    command = "%s -o 4096 20 500 > %s & %s -i 4096 20 500 < %s; wait" % (STAGE, fifo, STAGE, fifo)

    def record():
        trace = os.path.join(tmp(), "trace")
        rc, _, err = run([PEM, "record", "-q", "-o", trace, "--", "sh", "-c", command])
        equal(rc, 0, "status: " + err)
        return run([PEM, "rates", "--json", trace])

    for found, _ in rates(command), unless_lost(record):
        # The kernel's paths begin above the root folder of a chroot.
        equal([(q["name"][-len("/fifo"):], q["bytes"]) for q in found["queues"]], [("/fifo", 4096 * 500)], "queues")
        equal([(s["items"], s["reads"] + s["writes"]) for s in found["stages"]], [(4096 * 500, 500)] * 2, "items and operations")


@test
def what_is_written_to_standard_error():
    "it is output if a stage reads it, also later"
    writer = "import os, sys\nfor _ in range(50): os.write(2, b'x' * 1000)"
    reader = "import os\nos.read(3, 1)\nwhile os.read(0, 1 << 20): pass"
    folder = tmp()
    for name, text in (("writer.py", writer), ("reader.py", reader)):
        with open(os.path.join(folder, name), "w", encoding="ascii") as out:
            out.write(text)
    fifo = os.path.join(folder, "written")
    os.mkfifo(fifo)
    found, _ = rates("{ python3 %s/writer.py; echo > %s; } 2>&1 | python3 %s/reader.py 3< %s" % (folder, fifo, folder, fifo))
    equal([(s["items"], s["writes"]) for s in found["stages"] if s["writes"] == 50], [(50000, 50)], "writer")
    assert 50000 in [q["bytes"] for q in found["queues"]], found["queues"]


@test
def a_pair_of_sockets():
    "a pair of sockets through which one process sends is a queue, and one through which both send is not"
    path = os.path.join(tmp(), "pair.py")
    with open(path, "w", encoding="ascii") as text:
        text.write("import os, socket, sys\n"
                   "a, b = socket.socketpair()\n"
                   "answers = len(sys.argv) > 1\n"
                   "if os.fork() == 0:\n"
                   "    a.close()\n"
                   "    while b.recv(65536):\n"
                   "        if answers: b.send(b'y')\n"
                   "    os._exit(0)\n"
                   "b.close()\n"
                   "for i in range(300):\n"
                   "    a.sendall(b'x' * 1000)\n"
                   "    if answers: a.recv(1)\n"
                   "a.close()\n"
                   "os.wait()\n")
    found, _ = rates("python3 " + path)
    queue = found["queues"][0]
    assert re.match(r"socketpair:\[\d+,\d+\]$", queue["name"]), queue
    equal((queue["bytes"], len(found["stages"])), (300000, 2), "bytes and stages")
    found, _ = rates("python3 %s answer" % path)
    equal(found["stages"], [], "stages")


@test
def a_thread_that_waits_for_a_socket():
    "a thread that sleeps in a read of a socket does not make its stage busy"
    path = os.path.join(tmp(), "idle.py")
    with open(path, "w", encoding="ascii") as text:
        text.write("import os, socket, threading\n"
                   "a, b = socket.socketpair()\n"
                   "threading.Thread(target=lambda: a.recv(1), daemon=True).start()\n"
                   "while os.read(0, 65536): pass\n"
                   "os._exit(0)\n")
    found, _ = rates("%s -o -k 4096 1000 300 | python3 %s" % (STAGE, path))
    equal(found["bottleneck"], "stage", "bottleneck")
    assert found["stages"][1]["blocked_in"] > 0.15, found["stages"][1]


@test
def all_of_a_machine():
    "-a ends with its command, though others go on"
    if os.geteuid():
        skip("only root observes all programs")
    here()
    busy = start(["sh", "-c", "while :; do echo x; done | cat >/dev/null"], stderr=subprocess.DEVNULL)
    rc, out, err = run([PEM, "rates", "--json", "-q", "-a", "--", "sh", "-c", "seq 1000 | cat >/dev/null"])
    os.killpg(busy.pid, signal.SIGKILL)
    busy.wait()
    assert rc in (0, 4), (rc, err)
    assert "seq" in [s["name"] for s in json.loads(out)["stages"]], out


@test
def what_is_no_pipeline():
    "a program that writes to itself, and tokens that each process takes and gives back, are no stages"
    code = """
import os
r, w = os.pipe()
for i in range(50):
    os.write(w, b"x" * 10)
    os.read(r, 10)
for child in range(3):
    if os.fork() == 0:
        for i in range(20):
            os.write(w, b"t")
            os.read(r, 1)
        os._exit(0)
for child in range(3):
    os.wait()
"""
    path = os.path.join(tmp(), "self.py")
    with open(path, "w", encoding="ascii") as out:
        out.write(code)
    found, _ = rates("python3 " + path)
    equal((found["stages"], found["queues"], found["bottleneck"]), ([], [], None), "what is claimed")
    rc, _, err = run([PEM, "rates", "-q", "--", "true"])
    equal(rc, 0, "status")
    assert "no pipe or FIFO has both ends" in err, err


@test
def a_stage_that_dies():
    "a stage that is killed ends, the others are told as they are, and the command's status is pem's"
    found, _ = rates("(%s -o 4096 20 100000; exit 0) | (%s -i -o 4096 20 300; kill -9 $$; exit 3) | wc -c >/dev/null; exit 7"
                     % (STAGE, STAGE), status=137)
    assert {"stage", "stage#2", "wc"} <= {s["name"] for s in found["stages"]}, found
    _, err = rates("yes | head -n 100000 | wc -l >/dev/null; exit 5", status=5)


class Running:
    """A pipeline of two stages that runs already, and pem rates attached to it."""

    def __init__(self):
        here()
        reads, self.writes = os.pipe()
        self.first = start([STAGE, "-o", "-k", "4096", "300", "10000000"], stdout=self.writes, stderr=subprocess.DEVNULL)
        self.last = start([STAGE, "-i", "4096", "0", "10000000"], stdin=reads, stderr=subprocess.DEVNULL)
        os.close(reads)
        self.out = os.path.join(tmp(), "out")
        self.pem = start([PEM, "rates", "--json", "-o", self.out, "-p", "%d,%d" % (self.first.pid, self.last.pid)],
                         stderr=subprocess.PIPE, text=True)
        for line in self.pem.stderr:
            if "until it ends or you interrupt" in line:
                break
        before = sum(os.times()[:2])
        while sum(cpu_of(p.pid) for p in (self.first, self.last)) < 0.05:
            assert sum(os.times()[:2]) - before < 60, "the programs get no CPU"
            time.sleep(0.05)

    def end(self):
        """What pem rates has found until now."""
        self.pem.send_signal(signal.SIGINT)
        self.pem.stderr.read()
        equal(self.pem.wait(), 0, "status")
        os.close(self.writes)
        for one in self.first, self.last:
            one.kill()
            one.wait()
        with open(self.out, encoding="utf-8") as text:
            return json.load(text)


@test
def programs_that_run_already():
    "-p finds the stages of programs that were there before, by their names"
    running = Running()
    found = running.end()
    equal([s["pid"] for s in found["stages"]], [running.first.pid, running.last.pid], "stages")
    equal([s["name"] for s in found["stages"]], ["stage", "stage#2"], "names")
    equal(found["bottleneck"], "stage", "bottleneck")
    # It asks for 300 us, and the kernel adds up to 50 us of slack and what a call takes.
    near(found["stages"][0]["rate_per_s"], 4096 / 360e-6, 0.25, "rate")


@test
def a_silent_end():
    "what a stage does after its last record counts until the observation ends"
    running = Running()
    running.first.kill()  # the other one waits for more, since this program has the pipe open
    time.sleep(1.5)  # of silence, which is what is measured
    last = running.end()["stages"][1]
    assert last["blocked_in"] >= 1.4, last


def cpu_of(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as text:
        words = text.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@test
def what_makes_no_sense():
    "wrong options get a sentence each"
    for words, told in ((["--items", "0", "--", "true"], "expected bytes, reads"), (["-i", "3", "--", "true"], "invalid interval"),
                        ([], "which pipeline?"), (["--", "no-such-command"], "not found"), (["-o", "/no/such/file", "--", "true"], "cannot write")):
        rc, out, err = run([PEM, "rates", *words])
        assert rc not in (0, -signal.SIGSEGV) and told in err and not out, (words, rc, out, err)


run_all()
