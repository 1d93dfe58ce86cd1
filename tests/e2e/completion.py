# SPDX-License-Identifier: MIT
"""completion: what bash and zsh reply to a command line that is being typed"""
import os
import pty
import re

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


def typed(line):
    """What zsh prints of a line at whose end the tab key is pressed, without what it erased."""
    need("zsh")
    pid, terminal = pty.fork()
    if not pid:
        os.environ.update(PATH=os.path.dirname(PEM) + ":" + os.environ["PATH"], TERM="dumb", PS1="")
        os.execlp("zsh", "zsh", "-f", "-i")
    shell = os.fdopen(terminal, "r+b", buffering=0)
    setup = "fpath=(%s/docs/completion $fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy\n" % ROOT
    for text, end in ((setup, rb"ready"), (line + "\t", rb"\x08[^\x08]*,")):
        shell.write(text.encode())
        read = b""
        while not re.search(end, read):
            read += shell.read(4096)
    shell.close()
    os.waitpid(pid, 0)
    return re.search(end, read).group()[1:].decode()


@test
def events_in_zsh():
    "zsh completes the last part of an event's name, in small letters"
    equal(typed("pem record -e mal"), "APP::Libc::Malloc,", "completed")


run_all()
