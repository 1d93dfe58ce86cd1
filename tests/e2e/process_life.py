# SPDX-License-Identifier: MIT
"""
process_life.py - programs that fork, spawn, exec, and outlive what was recorded: every event in the trace, once
"""
import os
import shutil
import subprocess

import probing
from probe_trace import check_balance, check_complete, program, record, record_command, report, rows, streams, ticks, told
from preload import compile_program, count, recorded_by_all
from preload import record as record_preloaded
from tap import PEM, SAN, equal, need, run, run_all, skip, start, test, tmp


@test
def fork_both_sides():
    "after fork both processes go on, each with its own events"
    raised = check(program("processes", "fork", 20000))
    equal(len({pid for pid, _, _ in raised}), 2, "processes")


@test
def fork_beside_threads():
    "a fork beside busy threads loses nothing on either side, down to the grandchildren"
    folder = tmp()
    trace, raised = record(folder, program("processes", "fork-beside-threads", 1000))
    check_complete(trace, raised)
    equal(len({pid for pid, _, _ in raised}), 21, "processes")


@test
def fork_waits_for_a_lock():
    "a thread that raises its first event while fork waits for a lock of its own hangs neither, and loses nothing"
    raised = check(program("fork_waits", "stream", 1000))
    equal(sorted(who for _, _, who in raised), [0, 1, 2], "who raised")


@test
def providers_pages_are_a_file_s():
    "consumers reach the switches of a process, also of one that Valgrind runs, which knows fewer system calls"
    if SAN:
        skip("a sanitizer's runtime must come before every preloaded library; run without SAN=1")
    need("valgrind")
    mapped = {}
    for runner in ([], ["valgrind", "-q", "--tool=none"]):
        for _ in range(20):
            rc, out, err = run([PEM, "run", "--", *runner, "cat", "/proc/self/maps"], env={"PEM_RUNTIME_DIR": tmp()})
            equal(rc, 0, "status, with " + err)
            if "/control-" not in out:
                break
        else:
            skip("a recorder of the whole machine observes each program that starts here")
        # Parts side by side are one mapping.
        ranges = [line.split()[0].split("-") for line in out.splitlines() if "/standby-" in line]
        mapped[len(runner)] = sum(int(end, 16) - int(begin, 16) for begin, end in ranges)
        assert ranges, out
    equal(mapped[3], mapped[0], "bytes of providers' pages")


@test
def spawn_and_vfork():
    "posix_spawn and vfork: the parent's events and those of each new program"
    raised = check(program("processes", "spawn", 5000))
    equal(len({pid for pid, _, _ in raised}), 7, "processes")


@test
def exec_chain():
    "a process that replaces its program again and again loses no image's events"
    raised = check(program("processes", "exec", 500, 12))
    equal(len({pid for pid, _, _ in raised}), 1, "processes")
    equal(len(raised), 13, "images")


def check(command):
    trace, raised = record(tmp(), command)
    check_complete(trace, raised)
    return raised


@test
def fork_inside_event():
    "a signal handler that forks in the middle of an event harms neither process, and the books balance"
    folder = tmp()
    trace, raised = record(folder, program("processes", "fork-inside", 400000), "--buffer", "64M")
    (raiser, count), = [(r, n) for r, n in raised.items() if r[2] == 0]
    equal([n for r, n in raised.items() if r[2] == 2], [0], "children that did not come to their end")
    found = ticks(trace)
    equal(found[raiser], list(range(1, count + 1)), "the parent's ticks")
    children = {pid: numbers for (pid, _, who), numbers in found.items() if pid != raiser[0] and who == 1}
    assert children, "the handler never ran"
    equal([n for n in children.values() if n != [1, 2, 3]], [], "children's ticks")
    check_balance(trace, sum(map(len, found.values())))


@test
def fork_while_joining():
    "a signal handler that forks while the pool is made leaves the parent its own"
    trace, raised = record(tmp(), program("fork_in_join", "once", 5000))
    (raiser, count), = [(r, n) for r, n in raised.items() if r[2] == 0]
    found = ticks(trace)
    equal(found.get(raiser), list(range(1, count + 1)), "the parent's ticks")
    children = [numbers for (pid, _, who), numbers in found.items() if pid != raiser[0] and who == 1]
    equal(children, [[1, 2, 3]], "the child's ticks")
    check_balance(trace, sum(map(len, found.values())))


@test
def other_pid_namespace():
    "a program whose process id means nothing to the recorder is not taken for dead"
    unused = next(pid for pid in range(300, 1 << 15) if not os.path.exists("/proc/%d" % pid))
    inside = program("processes", "fork-inside", 400000, 500)  # ms more, in which its recorder finds it
    command = ["unshare", "--fork", "--pid", "--kill-child", "sh", "-c",
               "echo %d >/proc/sys/kernel/ns_last_pid && %s; exit $?" % (unused - 1, " ".join(inside))]
    if os.geteuid() or subprocess.run(command[:4] + ["true"], stderr=subprocess.DEVNULL).returncode:
        skip("a pid namespace needs root")
    trace, raised = record(tmp(), command, "--buffer", "64M")
    (raiser, count), = [(r, n) for r, n in raised.items() if r[2] == 0]
    equal(raiser[0], unused, "process id inside")
    (found, numbers), = [(r, n) for r, n in ticks(trace).items() if r[2] == 0 and len(n) > 1000]
    equal(numbers, list(range(1, count + 1)), "ticks")
    assert found[0] != unused and found[0] == found[1], "process and thread as they are known outside: %r" % (found,)


def outlive(how):
    "The command ends; its child goes on. What was raised until then is in the trace; the program is unharmed."
    folder = tmp()
    reader, writer = os.pipe()
    recorder = start(record_command(folder, program("processes", "outlive", 1000, how)), stdin=reader,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(reader)
    equal(recorder.wait(), 0, "status: " + recorder.stderr.read().decode() if recorder.returncode else "status")
    found = ticks(folder + "/trace")
    check_balance(folder + "/trace", sum(map(len, found.values())))
    os.close(writer)
    raised = told(recorder.stdout.read().decode())  # until the child ends too
    recorder.stdout.close()
    recorder.stderr.close()
    command, = [r for r in raised if r[2] == 0]
    equal(found[command], list(range(1, 1001)), "the command's ticks")
    equal(len([r for r in raised if r[2] == 2]), 1, "the child came to its own end")
    for raiser in found:
        equal(found[raiser], list(range(1, len(found[raiser]) + 1)), "ticks of %r, without a gap" % (raiser,))


@test
def child_outlives_command():
    "a child that outlives the command is accounted for as far as it came, and goes on unharmed"
    outlive("child")


@test
def daemon():
    "a daemon that the command left behind is accounted for as far as it came, and goes on unharmed"
    outlive("daemon")


@test
def static_program():
    "a statically linked program has no stub events, but the kernel's of its process"
    probing.here("OS::Process::Exit")
    folder = tmp()
    rc, out, err = run([PEM, "record", "-q", "-e", "APP,OS::Process::Exit", "-o", folder + "/t", "--"] +
                       program("static", "plain", 1000))
    equal(rc, 0, "status (stderr: %s)" % err)
    pid = next(iter(told(out)))[0]
    events = [row["event"] for row in rows(folder + "/t") if row["pid"] == str(pid)]
    equal([e for e in events if e.startswith("APP")], [], "stub events")
    assert "OS::Process::Exit" in events, "no event of process %d: %r" % (pid, events)


@test
def linked_program():
    "a program linked with libpem is recorded the same way"
    check(program("linked", "fork", 5000))


@test
def secure_mode():
    "a setuid program ignores the session of who started it"
    if SAN:
        skip("a sanitizer can't look for leaks in a setuid process, nor be told so: run without SAN")
    if os.geteuid():
        skip("making a setuid program of another user needs root")
    folder = tmp()
    os.chmod(folder, 0o755)
    copy = os.path.join(folder, "setuid")
    shutil.copy(program("linked")[0], copy)
    os.chown(copy, 65534, 65534)
    os.chmod(copy, 0o4755)
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        skip("%s is mounted nosuid: set TMPDIR to another folder" % folder)
    trace, raised = record(folder, [copy, "plain", "1000"])
    equal(list(raised.values()), [1000], "told")
    equal(ticks(trace), {}, "ticks")


@test
def few_streams():
    "processes that come one after another leave one stream each, and their pools are gone with them"
    folder = tmp()
    runtime = os.path.join(folder, "runtime")
    trace, raised = record(folder, program("processes", "spawn", 100), env={"PEM_RUNTIME_DIR": runtime})
    check_complete(trace, raised)
    equal(len(streams(trace)), 7, "stream files")
    equal([name for name in os.listdir(runtime) if name.startswith(("session-", "pool-"))], [], "left in shared memory")
    assert report(trace)


# Half of the signals come in the middle of an event.
JUMPS = r"""
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>
static sigjmp_buf start;
static volatile int jumps;
static void handler(int signal)
{
	jumps += jumps < 1000; /* one more may come before the timer is stopped */
	siglongjmp(start, 1);
}
int main(void)
{
	struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	int fd = open("/dev/zero", O_RDWR), i;
	char byte;

	signal(SIGALRM, handler);
	sigsetjmp(start, 1);
	if (jumps < 1000) {
		setitimer(ITIMER_REAL, &often, NULL);
		for (;;)
			read(fd, &byte, 1);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	for (i = 0; i < 500; i++)
		write(fd, &byte, 1);
	printf("%d\n", jumps);
	return 0;
}"""


@test
def jumps_out_of_handlers():
    "a program whose handlers of signals leave them by siglongjmp, in the middle of events, loses none of those after"
    program = compile_program(JUMPS)
    equal(recorded_by_all(program), "1000\n", "what it says")
    # The end of standard output's is one more.
    equal(count(record_preloaded([program], "APP::File::WriteBegin")[1], "APP::File::WriteBegin"), 500, "events after the last jump")


# The session's consumer is stopped meanwhile: else it would remove what processes leave that have ended.
LEAVES = """
import glob, os, signal
os.kill(os.getppid(), signal.SIGSTOP)
for i in range(20):
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
found = glob.glob(os.environ["PEM_RUNTIME_DIR"] + "/control-*")
os.kill(os.getppid(), signal.SIGCONT)
pids = [path.split("-")[-2] for path in found]
print([pid for pid in pids if not os.path.exists("/proc/" + pid)], str(os.getpid()) in pids)
"""


@test
def ends_without_destructors():
    "a child that ends by _exit leaves no control file"
    need("python3")
    rc, out, err = run([PEM, "stat", "-q", "-o", os.devnull, "-e", "Malloc", "--", "python3", "-c", LEAVES],
                       env={"PEM_RUNTIME_DIR": tmp()})
    equal((rc, out), (0, "[] True\n"), "status, and files of the dead, with " + err)


run_all()
