# SPDX-License-Identifier: MIT
"""
syscalls: system calls that pem makes in a program are none of the program's

strace counts the calls of a program that is not observed, and pem those of the same program recorded with all usual
events, so that libpem and its adapters are in each process. One difference is the loader's: it allocates its own memory
by whole pages, and what it keeps of libpem can take it one mapping more in a process, or in some processes none.
"""
import json
import os
import re
import shutil

from preload import compile_program, need_preload
from probing import here
from tap import BUILD, PEM, SAN, equal, need, run, run_all, skip, test, tmp

# Threads that wait for each other: no two of them allocate at the same time, so that each run has the same arenas.
THREADS = """
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
static void *work(void *arg) { for (int i = 0; i < 100; i++) { free(malloc(100)); getppid(); } return arg; }
int main(void)
{
	pthread_t thread;
	int i, status;

	for (i = 0; i < 5; i++) {
		if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
			return 1;
		if (!fork())
			_exit(access("/nonexistent", 0) != -1);
		if (wait(&status) < 0 || status)
			return 1;
	}
	return 0;
}
"""
# A handler that interrupts calls of pem's and of the program's.
SIGNALS = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static volatile sig_atomic_t caught;
static void handle(int number) { (void)number; getppid(); caught++; }
int main(void)
{
	signal(SIGUSR1, handle);
	for (int i = 0; i < 200; i++) {
		free(malloc(i));
		kill(getpid(), SIGUSR1);
	}
	return caught != 200;
}
"""
PYTHON = """
import os, subprocess
for i in range(50):
    try: os.open("/nonexistent/%d" % i, os.O_RDONLY)
    except OSError: pass
for i in range(30): subprocess.run(["/bin/true"])
d = os.open("written", os.O_RDWR | os.O_CREAT)
for i in range(1000): os.pwrite(d, b"x" * 100, i * 100)
for i in range(500): os.pread(d, 200, i * 100)
"""


# Sets of texts are laid out by a random number otherwise.
ENV = {"LD_PRELOAD": None, "PYTHONHASHSEED": "0"}


def by_strace(command):
    """Calls and failed ones by name, and how many programs were executed."""
    out = os.path.join(tmp(), "strace")
    rc, _, err = run(["strace", "-f", "-c", "-U", "calls,errors,name", "-o", out, *command], cwd=tmp(), env=ENV)
    equal(rc, 0, "status beside strace (%s)" % err)
    with open(out, encoding="utf-8") as file:
        rows = [line.split() for line in file]
    return {row[-1]: (int(row[0]), int(row[1]) if len(row) == 3 else 0) for row in rows if row and row[0].isdigit() and row[-1] != "total"}


def by_pem(command):
    """The same as pem reports it, and pem's own calls."""
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "--", *command], cwd=tmp(), env=ENV)
    equal(rc, 0, "status of record (%s)" % err)
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report (%s)" % err)
    told = json.loads(out)
    assert told["events"]["discarded"] == 0, told["events"]
    counts = {}
    for row in told["system_calls"]:
        calls, failed = counts.get(row["call"], (0, 0))
        counts[row["call"]] = (calls + row["count"], failed + row["failed"])
    return counts, told["cost"]["internal_calls"], [row.get("file", "") for row in told["system_calls"]]


def compare(*command, varying=()):
    """varying: calls whose number is another in each run without pem, too."""
    need_preload()
    need("strace")
    here()
    if SAN:
        skip("a sanitizer's runtime makes calls of its own")
    if not shutil.which(command[0]):
        skip("%s is not installed" % command[0])
    alone = by_strace(command)
    observed, own, files = by_pem(command)
    images = alone["execve"][0] - alone["execve"][1]
    extra = observed["mmap"][0] - alone["mmap"][0]
    assert 0 <= extra <= images, "%d mappings more in %d images" % (extra, images)
    # These two end their thread: strace counts calls that return.
    for name in sorted((set(alone) | set(observed)) - {"exit", "exit_group", "mmap", *varying}):
        equal(observed.get(name), alone.get(name), "calls of %s and failed ones" % name)
    assert own > 50 * images, "%d calls of pem's own in %d images" % (own, images)
    equal([file for file in files if re.search(r"/(libpem|pem-\d+/|control-\d)", file)], [], "pem's own files")


@test
def a_program_that_does_nothing():
    "true makes the calls that it makes alone"
    compare("true")


@test
def a_program_of_many_libraries():
    "so does ls"
    compare("ls", "-l", "/usr/include")


@test
def a_python_program_with_children():
    "a Python program that fails to open files, starts 30 programs, reads and writes"
    script = os.path.join(tmp(), "script.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(PYTHON)
    compare("/usr/bin/python3", "-S", script)


@test
def a_pipeline_of_a_shell():
    "a shell with pipelines, subshells and redirections"
    need("bash")
    compare("bash", "-c", "for i in 1 2 3; do ls / | sort | head -2 | wc -l; done > out; (cat out; exit 0); [ -e /nonexistent ] || true")


@test
def perl():
    "Perl, which executes two programs"
    compare("perl", "-e", "system('/bin/true'); print `/bin/echo x`; opendir D, '/'; readdir D for 1 .. 3")


@test
def sort():
    "sort"
    compare("sort", "--parallel=1", "/etc/services")


@test
def awk():
    "awk, which starts a shell"
    # gawk reads /proc/self/maps, where libraries of pem are lines, in as many reads as these take.
    compare("awk", "BEGIN { for (i = 0; i < 1000; i++) x[i] = i; system(\"true\"); print length(x) }", varying=("read",))


@test
def a_compiler():
    "gcc with its preprocessor, compiler and assembler"
    source = os.path.join(tmp(), "source.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SIGNALS)
    # Its tables are keyed by addresses, and its temporary files are named, at random.
    compare("gcc", "-O1", "-c", source, "-o", "/dev/null", varying=("brk", "getrandom"))


@test
def sqlite():
    "sqlite3 with a database in memory and one in a file"
    compare("sqlite3", ":memory:", "create table t(a, b); insert into t values(1, 2); select count(*) from t")


@test
def threads_and_forks():
    "threads, and children of fork without exec"
    need_preload()
    # Whether a thread waits for another that ends is a matter of time, and where an arena lies is random.
    compare(compile_program(THREADS), varying=("futex", "munmap"))


@test
def handlers_of_signals():
    "calls of a signal handler are the program's, whatever it interrupts"
    need_preload()
    compare(compile_program(SIGNALS))


@test
def a_search_of_path():
    "folders of PATH that lack the command are pem's to search"
    compare("true")
    empty = os.path.join(tmp(), "empty")
    os.mkdir(empty)
    trace = os.path.join(tmp(), "trace-path")
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "-e", "OS::Syscall", "--", "true"],
                     env={"PATH": "%s:%s:%s" % (os.path.join(BUILD, "bin"), empty, os.environ["PATH"])})
    equal(rc, 0, "status (%s)" % err)
    calls = [row for row in json.loads(run([PEM, "report", "--json", trace])[1])["system_calls"] if row["call"] == "execve"]
    equal([(row["count"], row["failed"]) for row in calls], [(1, 0)], "calls of execve")


run_all()
