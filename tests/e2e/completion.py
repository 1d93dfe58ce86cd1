# SPDX-License-Identifier: MIT
"""completion: what the completion for bash replies to a command line that is being typed"""
import os

from tap import PEM, ROOT, equal, need, run, run_all, test

SCRIPT = r'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pem; echo "${COMPREPLY[@]}"'


def replies(*words):
    need("bash")
    path = os.path.dirname(PEM) + ":" + os.environ["PATH"]
    rc, out, err = run(["bash", "-c", SCRIPT, ROOT + "/docs/completion/pem", "pem", *words], env={"PATH": path})
    equal((rc, err), (0, ""), "status and errors")
    return out.split()


@test
def events_by_a_part_of_their_name():
    "the last part of an event's name is completed, in small or large letters, also after a comma"
    for verb in "record", "stat", "top":
        assert "APP::Libc::Malloc" in replies(verb, "-e", "mal"), verb
    equal(replies("record", "-e", "OS::*,MALLO"), ["*,APP::Libc::Malloc"], "after a comma")
    equal(replies("record", "-e", "os::sched::swi"), ["Switch"], "after colons, at which readline splits")
    equal(replies("record", "-e", "no-such-event"), [], "none")


@test
def processes():
    "-p offers processes, also after a comma"
    pid = str(os.getpid())
    for verb in "record", "stat", "top":
        assert pid in replies(verb, "-p", pid), verb
    assert "1," + pid in replies("record", "--pid", "1," + pid), "after a comma"
    equal([word for word in replies("record", "-p", "") if not word.isdigit()], [], "what is no process")


run_all()
