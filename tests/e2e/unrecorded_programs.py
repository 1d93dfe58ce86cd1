# SPDX-License-Identifier: MIT
"""
unrecorded_programs.py - programs that a recorded one starts and that can't be recorded: each is counted once and said, by its
reason, and starts that fail are not
"""
import json
import os
import struct

from preload import compile_program, need_preload
from tap import PEM, equal, need, need_reach, run, run_all, skip, test, tmp

AS_USER = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"]
USERS_OWN = ["env", "-u", "XDG_RUNTIME_DIR", "-u", "PEM_RUNTIME_DIR", PEM, "record"]
CLEARED = "without pem's variables"
PRIVILEGED = "gained rights"
STATIC = "linked statically"
UNREACHABLE = "can't be written"
REMOVED = "taken out"
ALL = (CLEARED, PRIVILEGED, STATIC, UNREACHABLE, REMOVED)


def said(command, status=0, events="APP::Libc::*", **more):
    """What a recording says of programs that it lacks, {reason: (how many, the last one's name)}, and all it printed."""
    need_preload()
    trace = tmp() + "/t"
    rc, out, err = run([PEM, "record", "-o", trace, "-e", events, "--"] + command, **more)
    equal(rc, status, "status, with " + err)
    rc, text, report_err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "the trace balances: " + report_err)
    found = {}
    for gap in json.loads(text)["gaps"]:
        for word in ALL:
            if word in gap["reason"]:
                assert gap["reason"] in err, (gap, err)
                number = [int(w) for w in gap["reason"].split() if w.isdigit()][0]
                found[word] = (number, gap["reason"].split("the last one: ")[1].split(";")[0].split(")")[0])
    return found


# --- environments ---

@test
def cleared():
    "an environment without the libraries, without the session, or empty"
    equal(said(["env", "-i", "/bin/ls", "-d", "/"]), {CLEARED: (1, "ls")}, "env -i")
    equal(said(["sh", "-c", "unset LD_PRELOAD; ls -d /; true; id"]), {CLEARED: (2, "id")}, "unset")
    equal(said(["env", "LD_PRELOAD=libm.so.6", "ls", "-d", "/"]), {CLEARED: (1, "ls")}, "another's")
    equal(said(["env", "-u", "PEM_SESSION", "ls", "-d", "/"]), {CLEARED: (1, "ls")}, "no session")
    equal(said(["env", "PEM_SESSION=/tmp/x", "ls", "-d", "/"]), {CLEARED: (1, "ls")}, "another session")


@test
def passed_on():
    "programs that get them are not counted, nor where no events of programs are wanted"
    equal(said(["sh", "-c", "ls -d /; (id); env true"]), {}, "recorded")
    kernel = ["env", "-i", "/bin/ls", "-d", "/"]
    if not run([PEM, "record", "-q", "-o", tmp() + "/t", "-e", "PageFault", "--"] + kernel)[0]:
        equal(said(kernel, events="PageFault"), {}, "not wanted")


WAYS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>
static char *arguments[] = {"true", NULL}, *none[] = {NULL};
static int wait_for(pid_t child) { int status; return waitpid(child, &status, 0) == child && !status; }
int main(int argc, char **argv)
{
    int fd = open("/bin/true", O_RDONLY | O_CLOEXEC), folder = open("/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC), way;
    pid_t child;
    extern char **environ;
    for (way = 0; way < 10; way++) {
        if (way == 0 && posix_spawn(&child, "/bin/true", NULL, NULL, arguments, none)) return 10;
        if (way == 1 && posix_spawnp(&child, "true", NULL, NULL, arguments, none)) return 11;
        if (way > 1 && !(child = way == 2 ? vfork() : fork())) {
            if (way == 2) execve("/bin/true", arguments, none);
            if (way == 3) execve("/bin/true", arguments, NULL);
            if (way == 4) execvpe("true", arguments, none);
            if (way == 5) fexecve(fd, arguments, none);
            if (way == 6) execveat(fd, "", arguments, none, AT_EMPTY_PATH);
            if (way == 7) execveat(folder, "true", arguments, none, 0);
            if (way == 8) { environ = none; execv("/bin/true", arguments); }
            if (way == 9) { environ = none; execvp("true", arguments); }
            _exit(9);
        }
        if (!wait_for(child)) return 20 + way;
    }
    return 0;
}
"""


@test
def ways():
    "each way of the C library to start a program counts once"
    equal(said([compile_program(WAYS)]), {CLEARED: (10, "true")}, "starts")


FAILURES = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char *arguments[] = {"x", NULL}, *none[] = {NULL};
#define FAILS(call, error) do { errno = 0; if ((call) != -1 || errno != (error)) return __LINE__ % 200 + 1; } while (0)
int main(int argc, char **argv)
{
    const char *text = argv[1]; /* may be run, and is no program */
    char *big = malloc(1 << 20), *too_much[] = {"x", big, NULL};
    int fd = open(text, O_RDONLY);
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *end = page + 4094, *bad = (char *)8, *bad_texts[] = {"A=1", bad, NULL}; /* end: without its end */
    pid_t child;
    munmap(page + 4096, 4096);
    end[0] = '/';
    end[1] = 'x';
    memset(big, 'x', (1 << 20) - 1);
    big[(1 << 20) - 1] = 0;
    FAILS(execve("/nonexistent", arguments, none), ENOENT);
    FAILS(execve(text, arguments, none), ENOEXEC);
    FAILS(execve("/bin/true", too_much, none), E2BIG);
    FAILS(execve("/bin", arguments, none), EACCES);
    FAILS(execvpe("nonexistent-program", arguments, none), ENOENT);
    FAILS(fexecve(fd, arguments, none), ENOEXEC);
    FAILS(execveat(fd, "", arguments, none, AT_EMPTY_PATH), ENOEXEC);
    FAILS(execveat(-1, "true", arguments, none, 0), EBADF);
    FAILS(execve(NULL, arguments, none), EFAULT);
    FAILS(execve(bad, arguments, none), EFAULT);
    FAILS(execve(end, arguments, none), EFAULT);
    FAILS(execve("/nonexistent", arguments, (char **)bad), ENOENT);
    FAILS(execve("/nonexistent", arguments, bad_texts), ENOENT);
    FAILS(execve("/nonexistent", arguments, NULL), ENOENT);
    FAILS(execv(bad, arguments), EFAULT);
    FAILS(execveat(fd, bad, arguments, none, 0), EFAULT);
    FAILS(execveat(AT_FDCWD, NULL, arguments, none, 0), EFAULT);
    if (posix_spawn(&child, "/nonexistent", NULL, NULL, arguments, (char **)bad) != ENOENT) return 203;
    if (posix_spawn(&child, text, NULL, NULL, arguments, none) != ENOEXEC) return 201;
    if (posix_spawnp(&child, "nonexistent-program", NULL, NULL, arguments, none) != ENOENT) return 202;
    return 0;
}
"""


@test
def failures():
    "starts that fail are not counted, and fail as they do alone"
    text = tmp() + "/text"
    with open(text, "w", encoding="ascii") as file:
        file.write("\x01\x02 no program")
    os.chmod(text, 0o755)
    program = compile_program(FAILURES)
    equal(run([program, text])[0], 0, "alone")
    equal(said([program, text]), {}, "recorded")
    equal(said(["sh", "-c", "exec 2>/dev/null; env -i /nonexistent; env -i /tmp; nonexistent; true"]), {}, "a shell's")


@test
def by_other_users():
    "programs of another user's that root's command starts count in root's session"
    need_root()
    equal(said(AS_USER + ["sh", "-c", "env -i /nonexistent 2>/dev/null; env -i /bin/id; env -i /bin/id"]),
          {CLEARED: (2, "id")}, "starts")


# --- rights ---

HELLO = "int main(void) { return 0; }"


def need_root():
    need_reach()


def program_for_all():
    path = compile_program(HELLO)
    os.chmod(os.path.dirname(path), 0o755)
    if os.statvfs(path).f_flag & os.ST_NOSUID:
        skip("the folder of test programs is mounted nosuid")
    return path


@test
def set_id():
    "programs with set-id bits, where these change something"
    need_root()
    path = program_for_all()
    os.chmod(path, 0o4755)
    equal(said(AS_USER + ["sh", "-c", path + "; true"]), {PRIVILEGED: (1, "program")}, "setuid")
    equal(said(AS_USER + ["env", "PATH=/nonexistent:%s" % os.path.dirname(path), "/bin/sh", "-c", "program; /bin/true"]),
          {PRIVILEGED: (1, "program")}, "found in PATH")
    equal(said(["sh", "-c", path + "; true"]), {}, "root's, for root")
    equal(said(AS_USER + ["env", "-i", path]), {CLEARED: (1, "program")}, "with two reasons it counts once")
    script = os.path.dirname(path) + "/script"
    with open(script, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\ntrue\n")
    os.chmod(script, 0o4755)
    equal(said(AS_USER + ["sh", "-c", script + "; true"]), {}, "a script's bits mean nothing")
    equal(said(AS_USER + ["setpriv", "--no-new-privs", "sh", "-c", path + "; true"]), {}, "no new privileges")
    os.chmod(path, 0o2755)
    equal(said(AS_USER + [path]), {PRIVILEGED: (1, "program")}, "setgid")
    os.chmod(path, 0o2705)
    equal(said(AS_USER + ["sh", "-c", path + "; true"]), {}, "no group may run it")
    os.chown(path, 1000, 1000)
    os.chmod(path, 0o4755)
    equal(said(["sh", "-c", path + "; true"]), {PRIVILEGED: (1, "program")}, "another user's, for root")
    equal(said(AS_USER + ["sh", "-c", path + "; true"]), {}, "the user's own")


@test
def capabilities():
    "programs with capabilities of their file"
    need_root()
    path = program_for_all()
    for magic, permitted, wanted in ((0x02000001, 1 << 13, 1), (0x02000000, 1 << 13, 1), (0x02000000, 0, 0)):
        os.setxattr(path, "security.capability", struct.pack("<5I", magic, permitted, 0, 0, 0))
        equal(said(AS_USER + ["sh", "-c", path + "; true"]), {PRIVILEGED: (1, "program")} if wanted else {},
              "capabilities %x %x" % (magic, permitted))
    os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
    equal(said(["sh", "-c", path + "; true"]), {}, "for root")


@test
def command():
    "the command itself, which pem starts: a sentence"
    need_root()
    path = program_for_all()
    os.chmod(path, 0o4755)
    folder = tmp()
    os.chown(folder, 1000, 1000)
    rc, _, err = run(AS_USER + USERS_OWN + ["-o", folder + "/t", "-e", "APP::Libc::*", "--", path])
    equal(rc, 0, "status, with " + err)
    assert "it gains rights as it starts" in err, err


# --- files ---

@test
def static():
    "a program that is linked statically"
    path = compile_program(HELLO, flags=["-static"])
    equal(said(["sh", "-c", path + "; true"]), {STATIC: (1, "program")}, "started by a shell")
    folders = "PATH=%s:%s" % ("/x" * 300, os.path.dirname(path))
    equal(said(["env", folders, "program"]), {STATIC: (1, "program")}, "found in PATH, after a folder with a long path")


# argv: a folder, a path beneath it
BENEATH = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char *arguments[] = {"program", NULL}, *none[] = {NULL};
    int folder = open(argv[1], O_RDONLY | O_DIRECTORY);

    execveat(folder, argv[2], arguments, argc > 3 ? none : environ, 0);
    return 9;
}
"""


@test
def beneath_a_folder():
    "a long path beneath a folder is not taken for a shorter one, which another program has"
    static_program, folder = compile_program(HELLO, flags=["-static"]), tmp()
    name = "q" * 200
    for n in range(1, len(name)):
        os.symlink(static_program, folder + "/" + name[:n])
    os.symlink(compile_program(HELLO), folder + "/" + name)
    starter = compile_program(BENEATH)
    equal(said([starter, folder, "./" * 200 + name]), {}, "with the libraries")
    equal(said([starter, folder, "./" * 200 + name, "cleared"]), {CLEARED: (1, name[:15])}, "in an empty environment")


@test
def loader():
    "the loader as a program is not taken for one"
    for line in run(["ldd", "/bin/true"])[1].split():
        if "/ld-" in line:
            equal(said(["sh", "-c", line + " /bin/true; true"]), {}, "loader")
            return
    skip("ldd names no loader")


@test
def sandbox():
    "one that is started where the session's folders are others"
    need_root()
    need("unshare", "mount")
    folder = tmp()
    env = {"PEM_RUNTIME_DIR": folder}
    mounts = "mount -t tmpfs none %s && mount -t tmpfs none /dev/shm && (id) && true" % folder
    if run(["unshare", "-m", "sh", "-c", mounts])[0]:
        skip("no mounts here")
    equal(said(["unshare", "-m", "sh", "-c", mounts], env=env), {UNREACHABLE: (1, "id")}, "another file system")
    # Programs join in the public folder where that is left.
    equal(said(["unshare", "-m", "sh", "-c", "mount -t tmpfs none %s && (id) && true" % folder], env=env), {}, "public")


@test
def read_only():
    "one that is started where they are read-only"
    need("bwrap")
    sandboxed = ["bwrap", "--ro-bind", "/", "/", "id"]
    if run(sandboxed)[0]:
        skip("no sandbox here")
    equal(said(sandboxed), {UNREACHABLE: (1, "id")}, "read-only")
    equal(said(["bwrap", "--dev-bind", "/", "/", "id"]), {}, "writable")


run_all()
