# SPDX-License-Identifier: MIT
"""house_runner: tests/run counts what passes, fails, skips, crashes and hangs"""
import importlib.machinery
import os
import shutil

from tap import ROOT, equal, run, run_all, skip, test, tmp

CASES = """
import os, signal, time
from tap import equal, need, run, run_all, skip, test

@test
def passes():
    "a good one"

@test
def fails():
    "a bad one"
    equal(1, 2, "answer")

@test
def skips():
    "a shy one"
    skip("no moon tonight")

run_all()
"""


def tree(**programs):
    """A tree with the runner and these test programs: NAME=(unit source and) text of a script."""
    root = tmp()
    for folder in ("tests/unit", "tests/e2e", "build/tests"):
        os.makedirs(os.path.join(root, folder))
    for name in ("run", "patience.py", "results.py", "room.py", "tap.py"):
        shutil.copy(os.path.join(ROOT, "tests", name), os.path.join(root, "tests"))
    for name, text in programs.items():
        if text.startswith("#!"):
            open(root + "/tests/unit/%s.c" % name, "w").close()
            path = root + "/build/tests/" + name
        else:
            path = root + "/tests/e2e/%s.py" % name
        with open(path, "w") as out:
            out.write(text)
        os.chmod(path, 0o755)
    return root


# What a caller may have set, and what the runner must not need.
PLAIN = {"B": None, "T": None, "ALSO": None, "AGAIN": None, "PART": None, "LIMIT_S": None, "PYTHONUNBUFFERED": None}


def runner(root, before=(), **env):
    """Run the runner, by a command before it; its status, last line and whole output."""
    rc, out, err = run([*before, root + "/tests/run"], env=dict(PLAIN, **env))
    equal(err, "", "standard error")
    return rc, out.splitlines()[-1], out


@test
def counts():
    "passed, failed and skipped are counted, failures explained, reasons of skips printed"
    rc, last, out = runner(tree(cases=CASES))
    equal((rc, last), (1, "1 passed, 1 failed, 1 skipped"), "status and last line")
    assert "answer: got 1, wanted 2" in out and "a shy one: no moon tonight" in out, out


@test
def selects():
    "T selects by a test's name; nothing selected is a failure"
    root = tree(cases=CASES)
    equal(runner(root, T="good")[:2], (0, "1 passed, 0 failed, 0 skipped"), "T=good")
    equal(runner(root, T="cases")[1], "1 passed, 1 failed, 1 skipped", "T=cases")
    equal(runner(root, T="nosuch")[:2], (1, "0 passed, 0 failed, 0 skipped"), "T=nosuch")


@test
def what_is_said_among_passed_tests():
    "a program whose tests all passed, and which ends with another status, is shown with all that it said: a sanitizer's report"
    rc, last, out = runner(tree(a="#!/bin/sh\necho 1..2\necho a race was found\necho ok 1 - x\necho ok 2 - y\nexit 66\n"))
    equal((rc, last), (1, "2 passed, 1 failed, 0 skipped"), "status and last line")
    assert "a race was found" in out and "exit status 66" in out, out


@test
def crash():
    "a program that ends by a signal, or before its plan, has failed"
    rc, last, out = runner(tree(a="#!/bin/sh\necho 1..2\necho ok 1 - x\nkill -SEGV $$\n", b="#!/bin/sh\necho 1..2\necho ok 1 - x\n"))
    equal((rc, last), (1, "2 passed, 2 failed, 0 skipped"), "status and last line")
    assert "ended by signal 11" in out, out


@test
def silence():
    "a program that reports no test, or fails after its last one, has failed"
    rc, last, out = runner(tree(a="#!/bin/sh\n", b="#!/bin/sh\necho 1..1\necho ok 1 - x\nexit 3\n"))
    equal((rc, last), (1, "1 passed, 2 failed, 0 skipped"), "status and last line")


@test
def hang():
    "a test past its time is killed with its children, and the next program runs"
    root = tree(a="#!/bin/sh\necho 1..1\nsleep 3600 & echo $! > pid\nwait\n", b="#!/bin/sh\necho 1..1\necho ok 1 - x\n")
    rc, last, out = runner(root, LIMIT_S="1")
    equal((rc, last), (1, "1 passed, 1 failed, 0 skipped"), "status and last line")
    with open(root + "/pid") as text:
        child = text.read().strip()
    try:
        with open("/proc/%s/stat" % child) as text:
            equal(text.read().rsplit(")", 1)[1].split()[0], "Z", "state of the sleeping child")
    except FileNotFoundError:
        pass


@test
def busy():
    "a test that takes more than its CPU time is killed"
    rc, last, out = runner(tree(a="#!/bin/sh\necho 1..1\nwhile :; do :; done\n"), LIMIT_S="1")
    equal((rc, last), (1, "0 passed, 1 failed, 0 skipped"), "status and last line")
    assert "no result within 1 s of CPU" in out or "no result within 20 s\n" in out, out


@test
def late():
    "time in which a test wants a CPU, and gets none, is not the test's; time in which it waits is"
    # A copy of the module, whose clock nobody else reads.
    patience = importlib.machinery.SourceFileLoader("patience_here", os.path.join(ROOT, "tests/patience.py")).load_module()
    for awake, cpu_s, wanted in ((True, 0, None), (True, 0.6, "10 s of CPU"), (False, 0, "10 s of waiting, with no CPU wanted")):
        clock, looks = [0.0], [0]

        def now():
            return clock[0]

        def look(_):
            looks[0] += 1
            return awake, cpu_s * clock[0]

        patience.tree, patience.time = look, type("time", (), {"monotonic": staticmethod(now)})
        bound, said = patience.Patience(1, 10), None
        while not said and clock[0] < 100:
            clock[0] += 1
            said = bound.spent()
        equal(said, wanted, "after %d s, %d looks" % (clock[0], looks[0]))


@test
def much_input():
    "a command that takes its input slowly has all of it, and one that never ends is killed with a sentence"
    data = b"x" * (1 << 20)
    rc, out, _ = run(["sh", "-c", "sleep 1.5; cat | wc -c"], input=data)
    equal((rc, int(out)), (0, len(data)), "status and bytes")
    try:
        run(["sleep", "3600"], timeout=1)
    except AssertionError as error:
        assert "sleep 3600: still running after 1 s of waiting" in str(error), error
    else:
        raise AssertionError("it was not killed")


INTERRUPTED = """
import os, signal
from tap import run_all, test

@test
def ends():
    "SIGINT ends a child"
    child = os.fork()
    if not child:
        os.execlp("sh", "sh", "-c", "kill -INT $$; exit 0")
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])

run_all()
"""


@test
def interrupts():
    "a runner in a shell's background, where SIGINT is ignored, gives tests the signal back"
    rc, last, out = runner(tree(cases=INTERRUPTED), ["sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh"])
    equal(last, "1 passed, 0 failed, 0 skipped", "last line of " + out)


@test
def again():
    "with AGAIN a program that fails beside others counts by its second run alone, and is named; without it, by its first"
    once = CASES.replace("import os, signal, time", "import os, signal, time\nfirst = not os.path.exists('ran')\nopen('ran', 'w').close()")
    once = once.replace("equal(1, 2, \"", "equal(1, 2 if first else 1, \"ended by signal 9 with an ")
    rc, last, out = runner(tree(once=once), AGAIN="1")
    equal((rc, last), (0, "2 passed, 0 failed, 1 skipped"), "status and last line")
    assert "UNSTEADY e2e/once: a bad one" in out and "answer: got 1, wanted 2" in out, out
    equal(runner(tree(once=once), AGAIN=None)[1], "1 passed, 1 failed, 1 skipped", "without AGAIN")
    equal(runner(tree(always=CASES), AGAIN="1")[:2], (1, "1 passed, 1 failed, 1 skipped"), "what fails twice")


@test
def no_second_chance():
    "a program that crashed, or in which a sanitizer found something, does not run again"
    text = "import os\nprint('1..1', flush=True)\nif not os.path.exists('ran'):\n    open('ran', 'w').close()\n    %s\nprint('ok 1 - x')\n# run_all\n"
    for first in ("os.kill(os.getpid(), 11)", "print('ERROR: AddressSanitizer: heap-use-after-free\\nnot ok 1 - x', flush=True); os._exit(1)"):
        rc, last, out = runner(tree(crashes=text % first), AGAIN="1")
        equal((rc, last), (1, "0 passed, 1 failed, 0 skipped"), "status and last line of " + first)
        assert "again" not in out, out


@test
def long_programs():
    "a long program is left out and named, and runs if it is asked for, by name or by T"
    root = tree(long="LONG_S = 60\n" + CASES, short=CASES)
    rc, last, out = runner(root)
    equal(last, "1 passed, 1 failed, 1 skipped", "last line")
    assert "left to make check-all: 1 programs: e2e/long\n" in out, out
    for env in ({"ALSO": "e2e/long"}, {"ALSO": "all"}, {"T": "a good one"}):
        rc, last, out = runner(root, **env)
        assert last.startswith("2 passed") and "left to" not in out, (env, out)
    rc, out, err = run([root + "/tests/run"], env={"B": None, "T": None, "ALSO": "e2e/lang"})
    assert rc == 1 and "ALSO names what is no end-to-end test: e2e/lang" in err, (rc, err)


@test
def slowest():
    "SLOWEST programs that took most CPU time, with that of their children, are listed, and the sum of all"
    busy = """
import resource, subprocess
subprocess.run(["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"])
with open("took", "w") as out:
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime, file=out)
"""
    root = tree(busy=busy + CASES, idle=CASES, other=CASES)
    listed = [runner(root, SLOWEST=str(n))[2].split("in seconds of CPU:\n")[1].split("\n\n")[0].splitlines() for n in (2, 3)]
    equal([len(lines) for lines in listed], [2, 3], "programs listed")
    took_s = [float(line.split()[1]) for line in listed[1]]
    equal(took_s, sorted(took_s, reverse=True), "times")
    cpu_s, = [float(line.split()[1]) for line in listed[1] if line.endswith("e2e/busy")]
    with open(root + "/took", encoding="ascii") as text:
        assert cpu_s >= float(text.read()) - 0.06, listed


FULL = """
import os
from tap import run_all, test, tmp

@test
def writes():
    "a large one"
    with open(tmp() + "/file", "wb") as out:
        try:
            out.write(bytes(4 << 20))
        except OSError:
            pass
    assert os.path.getsize(out.name) == 4 << 20, "the file is short"

run_all()
"""


@test
def full_disk():
    "a test that failed because a folder is full says which one, whatever else it says"
    if os.geteuid() != 0:
        skip("only root can mount a small file system")
    small = tmp()
    mounted = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=1m none "$0" && exec "$@"', small]
    if run(mounted + ["true"])[0]:
        skip("no file system can be mounted here")
    rc, last, out = runner(tree(cases=FULL), mounted, TMPDIR=small)
    equal(last, "0 passed, 1 failed, 0 skipped", "last line")
    assert "no room left on %s/" % small in out and "the file is short" in out, out
    assert "no room left" not in runner(tree(cases=CASES), TMPDIR=small)[2]
    said = "#!/bin/sh\necho 1..1\necho '# write: No space left on device'\necho 'not ok 1 - x'\n"
    assert "    no room left on " in runner(tree(a=said))[2]


@test
def cmocka():
    "cmocka's skips have the test's name, and the line before as their reason"
    rc, last, out = runner(tree(a="#!/bin/sh\nprintf '1..2\\nok 1 - x\\n# no PMU here\\nnot ok 2 # SKIP counts_cycles\\n'\n"))
    equal((rc, last), (0, "1 passed, 0 failed, 1 skipped"), "status and last line")
    assert "counts_cycles: no PMU here" in out, out


run_all()
