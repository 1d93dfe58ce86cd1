# SPDX-License-Identifier: MIT
"""
attach.py - observing programs that run already: attach, detach, attach again, several at once
"""
import json
import os
import signal
import subprocess

from attached import Asked, Observer, environment, numbers
from preload import compile_program
from probe_trace import EVENT, check_balance
from stage import until
from tap import BUILD, PEM, equal, run, run_all, start, test, tmp

# Before a list of mappings is read, this waits until the file of the variable GO is there.
MAPS_LATER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*next)(const char *, const char *) = dlsym(RTLD_NEXT, "fopen");

	if (strstr(path, "/maps")) {
		close(open(getenv("ASKED"), O_WRONLY | O_CREAT, 0600));
		while (access(getenv("GO"), F_OK))
			usleep(1000);
	}
	return next(path, mode);
}
"""


@test
def record_a_running_process():
    "record -p has every event of a process from attaching to detaching, and none before or after"
    asked = Asked(tmp())
    asked.ask("tick 5")
    observer = Observer(asked, "record", "-p", str(asked.pid))
    asked.ask("tick 7")
    found = observer.ticks()
    asked.ask("tick 3")
    equal(numbers(found, asked.pid), list(range(6, 13)), "ticks")
    check_balance(observer.trace, 7)


@test
def nothing_raised_yet():
    "a process that has raised nothing yet is observed from its first event on"
    asked = Asked(tmp())
    observer = Observer(asked, "record", "-p", str(asked.pid))
    asked.ask("tick 4")
    equal(numbers(observer.ticks(), asked.pid), [1, 2, 3, 4], "ticks")


@test
def attach_again():
    "attach and detach, again and again: each sees what came while it was there"
    asked = Asked(tmp())
    for i in range(1, 13):
        observer = Observer(asked, "stat", "-p", str(asked.pid))
        asked.ask("tick %d" % i)
        equal(observer.count(), i, "count of attachment %d" % i)
        asked.ask("tick 100")
    equal([name for name in os.listdir(asked.runtime) if name.startswith("session-")], [], "left in shared memory")


@test
def two_at_once():
    "two consumers of one process each have all of its events, and neither's end disturbs the other"
    asked = Asked(tmp())
    first = Observer(asked, "record", "-p", str(asked.pid))
    asked.ask("tick 10")
    second = Observer(asked, "stat", "-p", str(asked.pid))
    asked.ask("tick 10")
    equal(second.count(), 10, "the second's count")
    asked.ask("tick 10")
    equal(numbers(first.ticks(), asked.pid), list(range(1, 31)), "the first's ticks")


@test
def nine_at_once():
    "eight consumers observe a process at once; the ninth is told so"
    asked = Asked(tmp())
    observers = [Observer(asked, "stat", "-p", str(asked.pid)) for _ in range(8)]
    rc, _, err = run([PEM, "stat", "-e", EVENT, "-p", str(asked.pid)], env=environment(asked))
    equal(rc, 2, "status of the ninth")
    assert "eight sessions observe process %d already" % asked.pid in err, err
    asked.ask("tick 6")
    equal([o.count() for o in observers], [6] * 8, "counts")


@test
def ends_with_the_process():
    "an observation ends with the process that it is of"
    asked = Asked(tmp())
    observer = Observer(asked, "record", "-p", str(asked.pid))
    asked.ask("tick 2")
    asked.end()
    equal(observer.child.wait(20), 0, "status")
    equal(numbers(observer.ticks(), asked.pid), [1, 2], "ticks")


@test
def leaves_standby_meanwhile():
    "a process that raises its first event while pem attaches to it is not said to raise none"
    folder = tmp()
    os.mkdir(folder + "/runtime", 0o700)
    idle = Asked(folder, command=[BUILD + "/programs/idle"], LD_PRELOAD=BUILD + "/lib/libpem-adapters.so")
    later = compile_program(MAPS_LATER, "later.so", flags=["-shared", "-fPIC", "-ldl"])
    child = start([PEM, "stat", "--json", "-e", "APP::Libc::Malloc", "--where", "size == 77", "-p", str(idle.pid)],
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                  env={"PEM_RUNTIME_DIR": idle.runtime, "LD_PRELOAD": later, "ASKED": folder + "/asked", "GO": folder + "/go"})
    until(lambda: os.path.exists(folder + "/asked"), "pem reads the mappings")
    idle.ask("alloc 1")
    open(folder + "/go", "w", encoding="ascii").close()
    said = child.stderr.readline()
    assert "until it ends" in said, said
    idle.ask("alloc 1000")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    equal((child.returncode, err), (0, ""), "status, and what was said")
    event, = json.loads(out)["events"]
    assert 1000 <= event["count"] <= 1001, event


@test
def no_such_process():
    "attaching to a process that is not there is wrong input, and said"
    pid = subprocess.Popen(["true"])
    pid.wait()
    rc, _, err = run([PEM, "record", "-o", tmp() + "/t", "-p", str(pid.pid)])
    equal(rc, 1, "status")
    assert "there is no process %d" % pid.pid in err, err


run_all()
