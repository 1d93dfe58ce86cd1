# SPDX-License-Identifier: MIT
"""
seccomp_filters.py - programs with a seccomp filter that kills them for any call which they do not need themselves: recorded,
they do what they do alone, every event is recorded or counted as lost, and the report says why
"""
import json
import os

from preload import STUBS, compile_program, need_preload, recorded_by_all
from tap import BUILD, PEM, equal, run, run_all, test, tmp

PROGRAM = os.path.join(BUILD, "programs", "filtered")


def report(trace):
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "the trace balances: " + err)
    return json.loads(out)


def recorded(how, what, count, *options):
    return recorded_command([PROGRAM, how, what, str(count)], *options)


def recorded_command(command, *options):
    """The report of a recording that changed nothing of what the program does."""
    need_preload()
    alone = run(command)
    equal(alone[0], 7, "status alone, with " + alone[2])
    trace = tmp() + "/t"
    rc, out, err = run([PEM, "record", "-q", "-o", trace, "-e", "APP::Libc::Malloc,APP::Libc::Free", *options, "--"] +
                       command)
    equal((rc, out), alone[:2], "status and output, with " + err)
    return report(trace)


def mallocs(result):
    for event in result["per_event"]:
        if event["name"] == "APP::Libc::Malloc":
            return event
    raise AssertionError("no Malloc in %r" % result["events"])


def sentence(result):
    return [g["reason"] for g in result["gaps"] if "seccomp filter" in g["reason"]]


def whole(how, what, threads=1, count=2000):
    """All is recorded."""
    result = recorded(how, what, count, "--buffer", "64M")
    equal(sentence(result), [], "nothing lost")
    got = mallocs(result)
    assert got["count"] >= 2 * threads * count, got
    return result


@test
def by_prctl():
    "a filter of what malloc needs, set by prctl: all is recorded"
    whole("prctl", "alone")


@test
def all_events():
    "and with all events: none is raised by a call that the filter refuses"
    for what in "alone", "threads", "fork":
        recorded("prctl", what, 20, "-e", STUBS)


@test
def without_madvise():
    "one that refuses madvise, too"
    whole("prctl", "no-madvise")


@test
def by_syscall():
    "one set by the function syscall"
    whole("syscall", "alone")


@test
def threads():
    "one that all threads get at once (TSYNC)"
    whole("tsync", "threads", threads=4)


@test
def later_threads():
    "threads that start after it, in a process that had one when it took it"
    whole("prctl", "later", threads=2)


@test
def children():
    "processes that a filtered one forks"
    result = whole("prctl", "fork")
    equal(len(result["processes"]), 4, "processes")
    assert mallocs(result)["count"] >= 5 * 2000, "the parent goes on when a child has ended: %r" % result["per_event"]


@test
def too_many_events():
    "what does not fit in the memory that was there is counted as lost, and the report says why"
    result = recorded("prctl", "alone", 400000)
    lost = result["events"]["discarded"]
    equal(bool(sentence(result)), lost > 0, "the report says so: %r" % result["events"])


@test
def strict():
    "in strict mode nothing is recorded, all is counted, and the report says why"
    result = recorded("strict", "alone", 3000)
    assert mallocs(result)["count"] >= 3000, result["per_event"]
    assert 6000 <= result["events"]["discarded"] <= 6000 + 10, result["events"]
    assert "seccomp filter" in sentence(result)[0], result["gaps"]


@test
def harmless():
    "a filter that lets pem's calls pass changes nothing, also for programs that are started with it"
    whole("harmless", "alone")
    whole("harmless", "exec")


READ_ONLY = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
extern char **environ;
int main(void)
{
	struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {1, &pass};
	char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char **all = (char **)memory, *text = memory + (1 << 19), **v;

	for (v = environ; *v; v++) {
		*all++ = strcpy(text, *v);
		text += strlen(text) + 1;
	}
	environ = (char **)memory;
	mprotect(memory, 1 << 20, PROT_READ);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	printf("%d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
	return 0;
}
"""


@test
def variables_read_only():
    "a program whose variables lie in memory that is read-only takes a filter as it does alone"
    equal(recorded_by_all(compile_program(READ_ONLY)), "0\n", "what it says")


# --- filters that let the program live: what they refuse fails ---

@test
def errno():
    "one by which calls fail: what was made before serves the program, its threads and its children"
    whole("errno", "alone")
    whole("errno", "later", threads=2)
    whole("errno", "fork")


@test
def errno_by_exec():
    "a program that is started with such a filter is counted"
    for how in ("errno", "errno-raw"):
        result = recorded(how, "exec", 20)
        assert any("taken out of 1 programs" in g["reason"] for g in result["gaps"]), (how, result["gaps"])


@test
def errno_unseen():
    "children of one that nobody told pem of: their events are lost, and the filter is named, not the buffer"
    need_preload()
    trace = tmp() + "/t"
    rc, out, err = run([PEM, "record", "-o", trace, "-e", "APP::Libc::Malloc,APP::Libc::Free", "--", PROGRAM, "errno-raw",
                        "fork", "200"])
    equal((rc, out), (7, "child\n" * 3 + "done\n"), "status and output, with " + err)
    result = report(trace)
    assert result["events"]["discarded"] >= 3 * 400, result["events"]
    assert sentence(result), result["gaps"]
    assert "a seccomp filter refuses" in err and "--buffer" not in err, err
    assert "given up" not in err, err


@test
def second():
    "a second filter, where the first kills for what only debuggers call, as many do"
    whole("second", "alone")


@test
def clone():
    "a child of clone, of which no handler is told, takes one"
    whole("prctl", "clone")


@test
def by_exec():
    "a program that is started with a filter goes on"
    result = recorded("prctl", "exec", 2000)
    assert any("taken out of 1 programs" in g["reason"] for g in result["gaps"]), result["gaps"]


@test
def by_exec_unseen():
    "so does one that is started with a filter of which nobody told pem, and it is counted"
    result = recorded("raw", "exec", 20)
    assert any("taken out of 1 programs" in g["reason"] for g in result["gaps"]), result["gaps"]


@test
def while_nobody_observes():
    "nor does a program that nobody observes end by such a filter, nor its children, nor what it starts"
    folder = tmp()
    for how in "raw", "errno-raw", "prctl":
        for what in "alone", "threads", "later", "fork", "exec":
            command = [PROGRAM, how, what, "20"]
            rc, out, err = run([PEM, "run", "--", *command], env={"PEM_RUNTIME_DIR": folder})
            equal((rc, out), run(command)[:2], "%s %s: status and output, with %s" % (how, what, err))


@test
def by_instructions():
    "a filter that the program sets by instructions of its own is seen from outside"
    result = recorded("raw", "wait", 20)
    assert mallocs(result)["count"] >= 40, result["per_event"]


LIBSECCOMP = r"""
#include <seccomp.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    static const int calls[] = {SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect),
                                SCMP_SYS(futex), SCMP_SYS(write), SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn)};
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    void *volatile block;
    unsigned i;
    for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
    if (seccomp_load(filter)) return 3;
    for (i = 0; i < 3000; i++) { block = malloc(40); free(block); }
    write(1, "done\n", 5);
    return 7;
}
"""


@test
def by_libseccomp():
    "a filter that libseccomp makes and sets"
    result = recorded_command([compile_program(LIBSECCOMP, flags=["-lseccomp"])], "--buffer", "64M")
    equal(sentence(result), [], "nothing lost")
    assert mallocs(result)["count"] >= 3000, result["per_event"]


@test
def asked():
    "a program that asks with a bad pointer whether the kernel knows filters gets its answer"
    whole("null", "alone")


run_all()
