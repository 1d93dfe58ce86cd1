# SPDX-License-Identifier: MIT
"""cli_limits: limits of the shell (ulimit) that pem and the programs it starts are under"""
import json
import os
import signal

from tap import BUILD, PEM, SAN, equal, run, run_all, skip, test, tmp


def limited(limit, *command):
    """Run a command under a limit of the shell: status, output, errors."""
    return run(["sh", "-c", 'ulimit %s; exec "$@"' % limit, "sh", *command])


@test
def no_file_may_grow_at_the_start():
    "record under a file size limit that lets it write nothing ends with a sentence, and does not start the command"
    for blocks in (1, 300):
        folder = tmp()
        rc, out, err = limited("-f %d" % blocks, PEM, "record", "-o", folder + "/t", "--", "echo", "started")
        equal((rc, out), (3, ""), "status and output: " + err)
        assert "File too large; raise the limit on the size of files (ulimit -f)" in err, err
        equal(os.listdir(folder), [], "files left")


@test
def no_file_may_grow_while_recording():
    "a trace that reaches the file size limit is finished, balances, and lists its loss"
    if SAN:
        skip("a sanitized recorder may lose too much to reach the limit")
    trace = tmp() + "/t"
    program = os.path.join(BUILD, "programs", "processes")
    rc, _, err = limited("-S -f 1500", PEM, "record", "--buffer", "256K", "-o", trace, "-e", "APP", "--",
                         "sh", "-c", 'ulimit -S -f unlimited; exec "$0" plain 2000000', program)
    equal(rc, 3, "status: " + err)
    assert "not whole: File too large" in err and "ulimit -f" in err, err
    rc, out, err = run([PEM, "report", "--json", trace])
    events = json.loads(out)["events"]
    equal((rc, events["produced"]), (0, events["delivered"] + events["discarded"]), "status and conservation: " + err)
    assert events["discarded"] > 0 and events["delivered"] > 0, "%r" % events


@test
def the_command_has_the_usual_action():
    "a command of record ends by SIGXFSZ as it does alone, and one started with it ignored ignores it"
    for action, ignored in (("--default-signal=XFSZ", False), ("--ignore-signal=XFSZ", True)):
        rc, out, err = run(["env", action, PEM, "record", "-q", "-o", tmp() + "/t", "--", "grep", "SigIgn", "/proc/self/status"])
        equal(rc, 0, "status: " + err)
        equal(bool(int(out.split()[1], 16) >> (signal.SIGXFSZ - 1) & 1), ignored, "SIGXFSZ is ignored in the command")


@test
def a_small_stack():
    "record, stat, report, diff and export work with a stack of 128 KiB"
    folder = tmp()
    for command in (["record", "-o", "t", "--", "true"], ["stat", "--", "true"], ["report", "t"], ["diff", "t", "t"],
                    ["export", "--to", "html", "t"]):
        rc, _, err = run(["sh", "-c", 'ulimit -s 128; exec "$@"', "sh", PEM, *command], cwd=folder)
        equal(rc, 0, "status of %s: %s" % (command[0], err))


run_all()
