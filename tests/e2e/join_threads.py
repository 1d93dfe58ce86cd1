# SPDX-License-Identifier: MIT
"""join_threads: kernel events, which carry no process and no thread, are those of whoever raised them, under the right names

The truth is the programs' own: every thread of tests/programs/join.c puts its number into its system calls.
"""
import collections
import csv
import json
import os
import shutil
import signal
import subprocess

from probing import here
from tap import BUILD, PEM, equal, run, run_all, skip, start, test, tmp

JOIN = os.path.join(BUILD, "programs", "join")
ENTER = "OS::Syscall::Enter"
EXIT = "OS::Process::Exit"
FREE = "OS::Mem::PageFree"
TIMER = "OS::Hrtimer::End"
SIGNATURE = 1 << 30
ROUNDS = 400
PAGES = 8192  # that a process of 'exits' has


def told(lines):
    """What threads said of themselves: {tid: [(pid, name, count), ...]}."""
    truth = collections.defaultdict(list)
    for line in lines.splitlines():
        pid, tid, name, count = line.split()
        truth[int(tid)].append((int(pid), name, int(count)))
    return truth


def rows(trace):
    out = os.path.join(tmp(), "trace.csv")
    rc, _, err = run([PEM, "export", "--to", "csv", "-o", out, trace])
    equal(rc, 0, "status of export: " + err)
    with open(out, newline="") as file:
        yield from csv.DictReader(file)


def signed(trace):
    """Calls that say who made them: how many are each thread's; fails for one that is said to be another's."""
    counts = collections.Counter()
    for row in rows(trace):
        if row["event"] != ENTER or row["number"] != "close" or int(row["argument0"], 16) >> 30 != 1:
            continue
        equal(row["tid"], str(int(row["argument0"], 16) - SIGNATURE), "thread of a call (%r)" % row)
        counts[int(row["pid"]), int(row["tid"])] += 1
    return counts


def report(trace):
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report: " + err)
    report = json.loads(out)
    equal(report["events"]["discarded"], 0, "discarded")
    return report


def names(trace):
    """{(pid, tid): name} of all threads."""
    return {(p["pid"], t["tid"]): t["name"] for p in report(trace)["processes"] for t in p["threads"]}


def record(mode, events=ENTER):
    trace = os.path.join(tmp(), "trace")
    rc, out, err = run([PEM, "record", "-q", "-e", events, "-o", trace, "--", JOIN, mode, str(ROUNDS)])
    if rc == 77:
        skip("this user may not choose the number of a process")
    equal(rc, 0, "status of record: " + err)
    return trace, told(out)


def check(trace, truth):
    wanted = {(lives[0][0], tid): sum(count for _, _, count in lives) for tid, lives in truth.items()}
    equal(dict(signed(trace)), wanted, "calls of each thread")


@test
def threads_that_move_and_change_their_names():
    "eight threads on the move: each call is its thread's, and each thread has the name that it took"
    here()
    trace, truth = record("threads")
    equal(len(truth), 9, "threads")
    check(trace, truth)
    known = names(trace)
    for tid, ((pid, name, _),) in truth.items():
        equal(known[pid, tid], name, "name of thread %d" % tid)


@test
def exec_by_another_thread():
    "a thread other than the first replaces the program, and goes on under the first one's number"
    here()
    trace, truth = record("exec")
    check(trace, truth)
    (first,) = [tid for tid, lives in truth.items() if len(lives) == 2]
    equal(names(trace)[first, first], "join", "name of the thread that is left")


@test
def a_program_with_a_long_path():
    "a process is called as its program is, however long the path to that"
    here()
    folder = os.path.join(tmp(), *("a-long-name-of-a-folder-%d" % i for i in range(6)))
    os.makedirs(folder)
    path = shutil.copy("/bin/true", os.path.join(folder, "compressor"))
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", ENTER, "-o", trace, "--", path])
    equal(rc, 0, "status of record: " + err)
    equal({p["name"] for p in report(trace)["processes"]} - {""}, {"compressor"}, "processes that have a name")


@test
def a_number_that_is_used_again():
    "two processes that have the same number, one after the other: all calls are there, and the later name"
    here()
    trace, truth = record("reuse")
    (tid,) = truth
    check(trace, truth)
    equal(names(trace)[tid, tid], "life-1", "name")


@test
def what_is_given_back_after_exit():
    "a process's memory is given back after its exit event, by a thread that may be interrupted: all of it is seen"
    here()
    here(FREE)
    trace, truth = record("exits", ",".join((ENTER, EXIT, FREE)))
    check(trace, truth)
    freed, ended = collections.Counter(), set()
    for row in rows(trace):
        if row["event"] == EXIT:
            ended.add(row["pid"])
        elif row["event"] == FREE and row["pid"] in ended:
            freed[row["pid"]] += int(row["pages"])  # of a block: a large one is given back whole
    for pid in {lives[0][0] for lives in truth.values()}:
        assert freed[str(pid)] >= PAGES, "process %d gave back %d pages of %d" % (pid, freed[str(pid)], PAGES)


@test
def programs_that_interrupt_each_other():
    "timers interrupt programs in the middle of their records: every call is there once, as its thread's, and all is accounted for"
    here()
    here(TIMER)
    for _ in range(5):  # whether an interrupt comes in those nanoseconds is chance
        trace = os.path.join(tmp(), "trace")
        rc, out, err = run([PEM, "record", "-q", "-e", ENTER + "," + TIMER, "-o", trace, "--", JOIN, "nest", "50000"])
        equal(rc, 0, "status of record: " + err)
        check(trace, told(out))
        rc, out, err = run([PEM, "report", "--json", trace])
        equal(rc, 0, "status of report, 4 if it does not balance: " + err)
        before, nested = {}, 0
        for row in rows(trace):
            last = before.get(row["cpu"])
            assert not last or int(last["clock"]) <= int(row["clock"]), "back in time: %r, %r" % (last, row)
            # Who read the clock, was interrupted and took its place in the ring later has the time of its interrupter.
            nested += bool(last) and last["event"] == TIMER and row["event"] == ENTER and last["clock"] == row["clock"]
            before[row["cpu"]] = row
        if nested:
            return
    raise AssertionError("no program was interrupted in the middle of a record, so nothing was tested")


class Spinner:
    """A program that runs before the recording does, whose second thread makes ROUNDS calls for each line."""

    def __init__(self):
        self.child = start([JOIN, "spin", str(ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                           bufsize=1)
        self.pid, self.tid, self.name, self.before = self.told()

    def told(self):
        pid, tid, name, count = self.child.stdout.readline().split()
        return int(pid), int(tid), name, int(count)

    def spin(self):
        """Calls made by now."""
        self.child.stdin.write("\n")
        return self.told()[3]

    def end(self):
        self.child.stdin.close()
        self.child.wait()


def attached(*options, during=lambda: None):
    """A spinner that was recorded from its second round to its third, and the trace."""
    spinner = Spinner()
    spinner.spin()
    trace = os.path.join(tmp(), "trace")
    recorder = start([PEM, "record", "-e", ENTER, "-o", trace, *[o.replace("PID", str(spinner.pid)) for o in options]],
                     stderr=subprocess.PIPE, text=True, env={"PEM_RUNTIME_DIR": os.path.join(tmp(), "run")})
    said = []
    for line in recorder.stderr:
        said.append(line)
        if "until it ends or you interrupt" in line:
            break
    spinner.spin()
    spinner.spin()
    during()
    recorder.send_signal(signal.SIGINT)
    said.append(recorder.stderr.read())
    equal(recorder.wait(), 0, "status: " + "".join(said))
    return spinner, trace


@test
def a_thread_that_was_there_before():
    "one thread of a process attached to: all of its calls, and the name that it took before"
    here()
    spinner, trace = attached("-p", "PID")
    equal(dict(signed(trace)), {(spinner.pid, spinner.tid): 2 * ROUNDS}, "calls")
    equal(names(trace)[spinner.pid, spinner.tid], "spinner-0", "name")
    spinner.end()


def comms():
    """Names of the machine's threads as the kernel has them."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for tid in os.listdir("/proc/%s/task" % pid):
                with open("/proc/%s/task/%s/comm" % (pid, tid)) as file:
                    found[int(pid), int(tid)] = file.read().rstrip("\n")
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    return found


@test
def the_whole_machine():
    "record -a of root: a busy thread's calls are its own, and all threads that stay have the kernel's names, its own included"
    here()
    if os.geteuid():
        skip("the whole machine is root's")
    early, late = comms(), {}
    spinner, trace = attached("-a", during=lambda: late.update(comms()))
    calls = signed(trace)
    equal(calls[spinner.pid, spinner.tid], 2 * ROUNDS, "calls")
    known, stayed, after = names(trace), set(), comms()
    for who, name in known.items():
        if who in late and early.get(who, name) == late[who] == after.get(who):
            # The kernel's own threads may be called by more than 15 letters in /proc, its workers by their work of the moment.
            assert name == late[who][:15] or name.startswith("kworker/"), "name of %r: %r, not %r" % (who, name, late[who])
            stayed.add(who)
    assert (spinner.pid, spinner.tid) in stayed, known
    spinner.end()


run_all()
