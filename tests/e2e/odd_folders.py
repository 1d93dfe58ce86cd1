# SPDX-License-Identifier: MIT
"""odd_folders: verbs of pem in folders whose names shells and scripts take apart, and with a HOME that can't be written"""
import os

from tap import PEM, equal, run, run_all, skip, test, tmp

VERBS = """
set -e
"$0" record -q -e 'APP::Libc::*' -o "a trace" -- ls / >ls
"$0" report "a trace" >report
"$0" diff "a trace" "a trace" >diff
"$0" export --to csv "a trace" -o "a table.csv"
"$0" export --to html "a trace" -o "a page.html"
"$0" stat -e Malloc -o "a count" -- ls / >ls
"$0" run -- ls / >ls
"$0" record -q --overwrite -e 'APP::Libc::*' -o "a recorder" -- "$0" snapshot -o "a snapshot" 2>snapshot
"$0" report "a snapshot" >report
"$0" doctor >doctor
"""


def verbs(where, **env):
    rc, out, err = run(["sh", "-c", VERBS, PEM], cwd=where, env=env)
    equal(rc, 0, "exit status of the verbs, which said: " + out[-1000:] + err[-1000:])


@test
def a_space():
    "verbs work if TMPDIR, HOME, the runtime folder and the current folder have a space and a quote in their names"
    odd = tmp() + "/it's a folder"
    os.mkdir(odd, 0o700)
    verbs(odd, TMPDIR=odd, HOME=odd, PEM_RUNTIME_DIR=odd + "/of a run", XDG_CACHE_HOME=None, XDG_DATA_HOME=None)


@test
def a_home_that_is_read_only():
    "verbs work if HOME can't be written"
    if os.geteuid() == 0:
        home = "/proc/self"
    else:
        home = tmp()
        os.chmod(home, 0o500)
    if os.access(home, os.W_OK) and os.geteuid():
        skip("a folder can't be made read-only here")
    verbs(tmp(), HOME=home, XDG_CACHE_HOME=None, XDG_DATA_HOME=None)


@test
def another_language():
    "verbs work in a locale whose letters i and I are no pair"
    verbs(tmp(), LC_ALL=None, LANG="tr_TR.UTF-8")


run_all()
