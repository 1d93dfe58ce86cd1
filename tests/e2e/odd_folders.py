# SPDX-License-Identifier: MIT
"""odd_folders: verbs of pem in folders whose names shells and scripts take apart, and with a HOME that can't be written"""
import os
import shutil

from tap import BUILD, PEM, ROOT, equal, need, run, run_all, skip, test, tmp

LONG_S = 11

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


@test
def the_kernel_module():
    "make kmod in a checkout whose path has a space asks for KMOD, and gives the kernel's build all of its sources there"
    need("make")
    tree, folder, kernel = tmp() + "/a folder", tmp() + "/kmod", tmp()
    shutil.copytree(ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns("build", ".git", "__pycache__"))
    with open(kernel + "/Makefile", "w", encoding="ascii") as out:
        out.write("modules:\n\t@echo $(PEM_INCLUDES) in $(M)\n")
    command = ["make", "-C", tree, "--no-print-directory", "kmod", "KMOD_GEN=" + BUILD + "/gen", "KDIR=" + kernel]
    for generated in (BUILD + "/gen/.codegen", BUILD + "/gen/viz-export/perfetto.pb-c.h"):
        command += ["-o", generated]
    env = {"B": None, "MAKEFLAGS": None, "MAKELEVEL": None, "MFLAGS": None}
    rc, _, err = run(command + ["B=" + BUILD, "KMOD=" + tree + "/build/kmod"], env=env)
    assert rc and "name another folder: make kmod KMOD=" in err, (rc, err)
    rc, out, err = run(command + ["B=" + BUILD, "KMOD=" + folder], env=env)
    equal(rc, 0, "exit status of make kmod, which said: " + err)
    assert "-I%s -I%s/abi in %s\n" % (folder, folder, folder) in out, out
    equal([name for name in os.listdir(folder) if not os.path.exists(folder + "/" + name)], [], "links that lead nowhere")
    assert {"Kbuild", "Makefile", "device.c", "pem_kmod_events.h"} <= set(os.listdir(folder)), os.listdir(folder)
    assert os.path.exists(folder + "/abi/pem/abi.h"), "no pem/abi.h"


run_all()
