# SPDX-License-Identifier: MIT
"""
rights_given_up.py - programs and servers from packages that root starts and that give up their user, groups or root folder:
what they raise afterwards is recorded like before
"""
import contextlib
import grp
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from patience import HANG_S
from preload import compile_program, need_preload
from tap import PEM, equal, need, need_reach, run, run_all, skip, start, test, tmp

USER = "nobody"


def need_root():
    need_preload()
    need_reach()


def report(trace, said=()):
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "the trace balances: " + err)
    result = json.loads(out)
    gaps = [gap["reason"] for gap in result["gaps"]]
    equal((result["events"]["discarded"], [gap for gap in gaps if not any(word in gap for word in said)]), (0, []), "lost")
    assert all(any(word in gap for gap in gaps) for word in said), gaps
    return result


def recorded(command, status=0, said=(), **more):
    """
    Standard output and the processes of a recording in which nothing is lost: their counts, by name. said: words of the
    sentences on what was refused.
    """
    need_root()
    need(command[0])
    trace = tmp() + "/t"
    rc, out, err = run([PEM, "record", "-q", "-o", trace, "-e", "APP::Libc::*", "--"] + command, **more)
    equal(rc, status, "status, with " + err)
    if not said:
        equal(err, "", "errors")
    names = {}
    for process in report(trace, said)["processes"]:
        names.setdefault(process["name"], []).append(process["count"])
    return out, names


def uid_of(output):
    return int(output.split("uid=")[1].split("(")[0])


# --- programs started as another user ---

@test
def su():
    "su: itself, the shell and what that starts"
    out, names = recorded(["su", "-s", "/bin/sh", USER, "-c", "id; true"])
    equal(uid_of(out), pwd.getpwnam(USER).pw_uid, "user")
    for name in ("su", "sh", "id"):
        assert name in names, names


@test
def runuser():
    "runuser"
    out, names = recorded(["runuser", "-u", USER, "--", "id"])
    equal(uid_of(out), pwd.getpwnam(USER).pw_uid, "user")
    assert "id" in names, names


@test
def setpriv():
    "setpriv, and what its program forks"
    out, names = recorded(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c",
                           "(id); (id); true"])
    equal(uid_of(out), 65534, "user")
    equal(len(names["id"]), 2, "programs that the shell started")


@test
def late():
    "one that is started when nobody has had a file in the public folder for long, and another when that one's is gone"
    as_other = "setpriv --reuid 65534 --regid 65534 --clear-groups "
    rest = "touch -d @1000 ${PEM_SESSION##*:}; sleep 0.3; "  # its time of change is what tells that nothing came
    out, names = recorded(["sh", "-c", rest + as_other + "id; " + rest + as_other + "sh -c 'id; true'"])
    equal(out.count("uid=65534"), 2, "users")
    equal(len(names["id"]), 2, "programs of that user")


AS_1000 = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"]
USERS_OWN = ["env", "-u", "XDG_RUNTIME_DIR", "-u", "PEM_RUNTIME_DIR", PEM, "record"]


def need_user_namespaces(flags):
    need("unshare")
    if run(AS_1000 + ["unshare", flags, "true"])[0]:
        skip("an ordinary user gets no namespaces here")


@test
def user_namespace():
    "a program that is root in a user namespace only, where the session's folder is nobody's"
    for flags in ("-Ur", "-Urm", "-Urpf", "-Uc"):
        need_root()
        need_user_namespaces(flags)
        _, names = recorded(AS_1000 + ["unshare", flags, "sh", "-c", "(id); true"])
        assert names.get("id", [0])[0] > 10, (flags, names)


@test
def user_namespace_of_users():
    "the same where the recorder is the user's, too"
    need_root()
    for flags in ("-Ur", "-Urm", "-Urpf"):
        need_user_namespaces(flags)
        folder = tmp()
        os.chown(folder, 1000, 1000)
        rc, out, err = run(AS_1000 + USERS_OWN + ["-q", "-o", folder + "/t", "-e", "APP::Libc::*", "--", "unshare", flags, "sh", "-c", "(id); true"])
        equal(rc, 0, "status, with " + err)
        assert any(p["name"] == "id" and p["count"] > 10 for p in report(folder + "/t")["processes"]), flags


# --- the public folder of root's session ---

def public_folders():
    return {base + "/" + name for base in ("/dev/shm", "/tmp") for name in os.listdir(base)
            if re.fullmatch(r"pem-[0-9a-f]{32}(\.gone)?", name)}


@test
def public_folder():
    "nobody lists it; what others put into it harms nobody; and it goes with the session"
    hostile = '''folder=${PEM_SESSION##*:}; stat -c %a $folder; ls $folder 2>/dev/null && echo listed
mkfifo $folder/pool-1-1; ln -s /etc/passwd $folder/pool-2-2; mkdir $folder/pool-3-3; echo x >$folder/pool-4-4
truncate -s 1T $folder/pool-5-5; ln -s / $folder/model-00000001; rm -f $folder/session; mv $folder/config $folder/other
echo $folder; id -u'''
    out, names = recorded(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c",
                           "exec 2>/dev/null; " + hostile], said=["no plain files of that user's"])
    lines = out.split()
    equal((lines[0], lines[-1]), ("1733", "65534"), "mode and user")
    assert "id" in names, names
    assert lines[1].startswith("/dev/shm/pem-"), out
    equal([f for f in public_folders() if f.startswith(lines[1])], [], "left")


@test
def too_many_files():
    "who fills it is not listened to beyond a limit, which is said"
    need_root()
    rc, out, err = run([PEM, "record", "-o", tmp() + "/t", "-e", "APP::Libc::*", "--", "setpriv", "--reuid", "65534",
                        "--regid", "65534", "--clear-groups", "sh", "-c",
                        "cd ${PEM_SESSION##*:} && seq -f pool-1-%g 5000 | xargs touch; sleep 0.2; pwd"])
    equal(rc, 0, "status, with " + err)
    assert "more than 4096 files" in err, err
    equal([f for f in public_folders() if f.startswith(out.strip())], [], "left")


@test
def recorder_killed():
    "what a killed recorder left in it is recovered with the trace, and goes"
    need_root()
    trace = tmp() + "/t"
    child = start([PEM, "record", "-q", "-o", trace, "-e", "APP::Libc::*", "--", "setpriv", "--reuid", "65534", "--regid",
                   "65534", "--clear-groups", "sh", "-c", "echo ${PEM_SESSION##*:}; while read line; do :; done"],
                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    folder = child.stdout.readline().decode().strip()
    assert folder in public_folders(), folder
    child.kill()
    child.wait()
    rc, out, err = run([PEM, "report", "--json", trace])
    assert rc in (0, 4), err
    assert any(p["name"] == "sh" for p in json.loads(out)["processes"]), out
    equal([f for f in public_folders() if f.startswith(folder)], [], "left")
    child.stdin.close()


# --- programs that can't be recorded ---

HELLO = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) { puts(getenv("LD_PRELOAD") ? "preloaded" : "alone"); return 0; }
"""


def unrecorded(command, wanted="alone\n", **more):
    """Record a command in which a program can't be: what pem and the loader say, and the gaps."""
    need_preload()
    trace = tmp() + "/t"
    rc, out, err = run([PEM, "record", "-o", trace, "-e", "APP::Libc::*", "--"] + command, **more)
    equal((rc, out), (0, wanted), "status and output, with " + err)
    err = "".join(line for line in err.splitlines(True) if "next: pem report" not in line)
    rc, out, report_err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "the trace balances: " + report_err)
    return err, [g["reason"] for g in json.loads(out)["gaps"]]


@test
def without_libraries():
    "a program started in another root folder, where the libraries are not: no word of the loader, and it is counted"
    need_root()
    folder = tmp()
    shutil.copy(compile_program(HELLO), folder + "/hello")
    for line in run(["ldd", folder + "/hello"])[1].split():
        if line.startswith("/"):
            os.makedirs(folder + os.path.dirname(line), exist_ok=True)
            shutil.copy(line, folder + line)
    err, gaps = unrecorded(["chroot", folder, "/hello"])
    assert "ld.so" not in err, err
    assert any("taken out of 1 programs" in gap for gap in gaps), gaps
    err, gaps = unrecorded(["chroot", folder, "/hello"], "preloaded\n", env={"LD_PRELOAD": "libm.so.6"})
    assert "libpem" not in err, err


def unobserved(program, wanted="alone\n"):
    """What is said where a shell starts the program under a pem run that nobody observes."""
    rc, out, err = run([PEM, "run", "--", "sh", "-c", program + "; exec " + program], env={"PEM_RUNTIME_DIR": tmp()})
    equal((rc, out), (0, 2 * wanted), "status and output, with " + err)
    return err


@test
def other_class():
    "a 32-bit program: no word of the loader, and a sentence where it is the command itself"
    program = compile_program(HELLO, flags=["-m32"])
    err, _ = unrecorded([program])
    assert "32-bit program" in err and "ld.so" not in err, err
    equal(unobserved(program), "", "what is said where nobody observes")
    err, gaps = unrecorded(["sh", "-c", program + "; true"])
    assert "ld.so" not in err, err
    assert any("taken out of 1 programs" in gap for gap in gaps), gaps


@test
def other_libc():
    "a program of musl, whose loader ends it for a library of glibc's: it runs, alone and as a shell's child"
    need("musl-gcc")
    folder = tmp()
    with open(folder + "/hello.c", "w", encoding="ascii") as file:
        file.write(HELLO)
    rc, _, err = run(["musl-gcc", "-o", folder + "/hello", folder + "/hello.c"])
    if rc:
        skip("musl-gcc makes no program of it: " + err.splitlines()[0])
    err, _ = unrecorded([folder + "/hello"])
    assert "musl" in err, err
    equal(unobserved(folder + "/hello"), "", "what is said where nobody observes")
    err, gaps = unrecorded(["sh", "-c", folder + "/hello; true"])
    assert any("taken out of 1 programs" in gap for gap in gaps), gaps


@test
def static():
    "a program that is linked statically: a sentence"
    err, _ = unrecorded([compile_program(HELLO, flags=["-static"])], "preloaded\n")
    assert "is linked statically" in err, err


# --- programs that go on themselves ---

DROPS = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <grp.h>
static void make_folders(char *path)
{
    for (char *end = path; (end = strchr(end + 1, '/')); *end = '/') { *end = 0; mkdir(path, 0777); }
    mkdir(path, 0777);
}
static void work(void) { void *volatile p; for (int i = 0; i < 500; i++) { p = malloc(24); free(p); } }
int main(int argc, char **argv)
{
    int i, status;
    if (!strcmp(argv[1], "chroot") && (chroot(argv[2]) || chdir("/"))) return 3;
    if (!strcmp(argv[1], "again")) {
        if (chroot(argv[2]) || chdir("/")) return 3;
        umask(0);
        make_folders(strtok(getenv("PEM_SESSION"), ":"));
        pid_t child = fork();
        if (!child) { work(); _exit(0); }
        if (waitpid(child, &status, 0) != child || status || chroot("/")) return 3;
    }
    if (!strcmp(argv[1], "namespace") && unshare(CLONE_NEWNS)) return 3;
    if (setgroups(0, NULL) || setgid(65534) || setuid(65534)) return 4;
    work();
    for (i = 0; i < 3; i++) {
        pid_t child = fork();
        if (!child) { work(); _exit(i); }
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != i) return 5;
    }
    if (!access("/tmp", F_OK) != !strcmp(argv[1], "user") && strcmp(argv[1], "namespace")) return 6;
    puts("done");
    return 0;
}
"""


def dropped(how, processes=4):
    empty = tmp()
    os.chmod(empty, 0o755)
    out, names = recorded([compile_program(DROPS), how, empty])
    equal(out, "done\n", "output")
    equal(len(names["program"]), processes, "processes")
    assert min(names["program"]) >= 1000, names
    equal([names for _, _, names in os.walk(empty) if names], [], "files in the new root folder")


@test
def user():
    "a process that gives up its user, and its children"
    dropped("user")


@test
def root_folder():
    "one that changes its root folder before"
    dropped("chroot")


@test
def root_folder_again():
    "one that changes it twice, and finds a folder like the session's there: it and its children leave no files in it"
    dropped("again", 5)


@test
def namespace():
    "one in a mount namespace of its own"
    dropped("namespace")


# --- servers ---

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, condition, child):
    end = time.monotonic() + HANG_S
    while time.monotonic() < end:
        if condition():
            return
        if child.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError("%s did not come; status %s" % (what, child.poll()))


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def serve(command, port, ask, end=signal.SIGTERM, env=None, said=()):
    """Record a server until it has been asked, and ends by a signal (None: of ask's): the processes in the trace."""
    need_root()
    need(command[0])
    trace = tmp() + "/t"
    child = start([PEM, "record", "-q", "-o", trace, "-e", "APP::Libc::*", "--buffer", "64M", "--"] + command,
                  env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_for("the server", lambda: answers(port), child)
        ask()
    finally:
        with open("/proc/%d/task/%d/children" % (child.pid, child.pid)) as file:
            servers = file.read().split()
        if end and servers:
            os.kill(int(servers[0]), end)
        out, _ = child.communicate(timeout=60)
    equal(child.returncode, 0, "status, with %r" % out)
    assert b"preload" not in out, out
    return report(trace, said)["processes"]


@test
def nginx():
    "nginx, whose workers give up their user"
    folder, port = tmp(), free_port()
    os.chmod(folder, 0o755)
    with open(folder + "/index.html", "w") as file:
        file.write("hello")
    with open(folder + "/nginx.conf", "w") as file:
        file.write("""user %s %s; daemon off; worker_processes 2; pid %s/pid; error_log %s/error;
events { worker_connections 64; }
http { access_log off; client_body_temp_path %s/body; proxy_temp_path %s/proxy; fastcgi_temp_path %s/fast;
uwsgi_temp_path %s/uwsgi; scgi_temp_path %s/scgi; server { listen 127.0.0.1:%d; root %s; } }
""" % ((USER, grp.getgrgid(pwd.getpwnam(USER).pw_gid).gr_name) + (folder,) * 7 + (port, folder)))
    count = 50

    def ask():
        for _ in range(count):
            equal(urllib.request.urlopen("http://127.0.0.1:%d/" % port).read(), b"hello", "answer")

    processes = serve(["nginx", "-c", folder + "/nginx.conf"], port, ask, signal.SIGQUIT)
    equal(len(processes), 3, "the master and its workers")
    assert sum(p["count"] for p in processes) > count * 4, processes


@test
def redis():
    "redis-server, started as another user by setpriv"
    need("redis-cli", "redis-server")
    folder, port = tmp(), free_port()
    os.chmod(folder, 0o777)

    def ask():
        for i in range(20):
            equal(run(["redis-cli", "-p", str(port), "set", "k%d" % i, "v"])[1], "OK\n", "answer")

    processes = serve(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "redis-server", "--port",
                       str(port), "--dir", folder, "--save", ""], port, ask)
    assert any(p["name"].startswith("redis") and p["count"] > 100 for p in processes), processes


@test
def sshd():
    "sshd, whose children change their root folder and user and take a seccomp filter"
    need("sshd", "ssh-keygen", "ssh")
    folder, port = tmp(), free_port()
    os.makedirs("/run/sshd", exist_ok=True)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder + "/host"])
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder + "/user"])
    shutil.copy(folder + "/user.pub", folder + "/keys")
    os.chmod(folder, 0o755)
    said = []

    def ask():
        rc, out, err = run(["ssh", "-F", "/dev/null", "-i", folder + "/user", "-p", str(port),
                            "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                            "-o", "BatchMode=yes", "root@127.0.0.1", "echo hello"])
        said.append((rc, out, err))

    processes = serve([shutil.which("sshd"), "-D", "-e", "-f", "/dev/null", "-h", folder + "/host", "-p", str(port),
                       "-o", "AuthorizedKeysFile=" + folder + "/keys", "-o", "StrictModes=no",
                       "-o", "PermitRootLogin=yes", "-o", "PidFile=none", "-o", "ListenAddress=127.0.0.1",
                       "-o", "UsePAM=no"], port, ask,
                      said=["started without pem's variables"])  # a session's shell has an environment of its own
    equal(said[0][:2], (0, "hello\n"), "the session, with " + said[0][2])
    assert len(processes) >= 3, processes


@test
def postgresql():
    "PostgreSQL, started as its user by su"
    need_root()
    need("su")
    folders = [f for f in (sorted(os.listdir("/usr/lib/postgresql")) if os.path.isdir("/usr/lib/postgresql") else [])]
    if not folders:
        skip("no PostgreSQL below /usr/lib/postgresql")
    binaries = "/usr/lib/postgresql/%s/bin/" % folders[-1]
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        skip("there is no user postgres")
    folder, port = tmp(), free_port()
    os.chown(folder, user.pw_uid, user.pw_gid)
    data = folder + "/data"
    rc, _, err = run(["su", "-s", "/bin/sh", "postgres", "-c", binaries + "initdb -N -A trust -D " + data])
    equal(rc, 0, "initdb: " + err)

    def ask():
        psql = [binaries + "psql", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-Atc"]
        try:
            end = time.monotonic() + HANG_S
            while run(psql + ["select 1"])[0] and time.monotonic() < end:
                time.sleep(0.1)  # it listens before it serves
            equal(run(psql + ["select sum(i) from generate_series(1, 100) i"])[:2], (0, "5050\n"), "answer")
        finally:
            with open(data + "/postmaster.pid") as file:
                os.kill(int(file.readline()), signal.SIGINT)

    processes = serve(["su", "-s", "/bin/sh", "postgres", "-c",
                       "exec %spostgres -D %s -p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s"
                       % (binaries, data, port, folder)], port, ask, end=None)
    assert sum(p["name"].startswith("postgres") for p in processes) >= 3, processes


run_all()
