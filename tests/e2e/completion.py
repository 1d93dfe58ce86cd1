# SPDX-License-Identifier: MIT
"""completion: what bash and zsh reply to a command line that is being typed"""
import os
import pty
import re

from tap import PEM, ROOT, equal, need, run, run_all, test, tmp

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


def typed(command, setup, line, end, folder="/"):
    """What a shell prints of a line at whose end the tab key is pressed, from what the pattern end finds."""
    need(command[0])
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(folder)
        os.environ.update(PATH=os.path.dirname(PEM) + ":" + os.environ["PATH"], TERM="dumb", PS1="")
        os.execlp(command[0], *command)
    shell = os.fdopen(terminal, "r+b", buffering=0)
    for text, wanted in ((setup + "; echo rea''dy\n", rb"ready"), (line + "\t", end)):
        shell.write(text.encode())
        read = b""
        while not re.search(wanted, read):
            read += shell.read(4096)
    shell.close()
    os.waitpid(pid, 0)
    return re.search(wanted, read).group(1).decode()


@test
def events_in_zsh():
    "zsh completes the last part of an event's name, in small letters"
    setup = "fpath=(%s/docs/completion $fpath); autoload -Uz compinit; compinit -u -D" % ROOT
    equal(typed(["zsh", "-f", "-i"], setup, "pem record -e mal", rb"\x08([^\x08]*,)"), "APP::Libc::Malloc,", "completed")


@test
def names_that_a_shell_would_run():
    "bash quotes what is completed of another user's names"
    folder = tmp()
    os.mkdir(folder + "/pem-`id`")
    found = typed(["bash", "--norc", "--noprofile", "-i"], "bind 'set enable-bracketed-paste off'; . %s/docs/completion/pem" % ROOT,
                  "pem report pe", rb"report pe(\S+/)", folder)
    equal(found, "m-\\`id\\`/", "completed")


run_all()
