# SPDX-License-Identifier: MIT
"""
app_programs.py - the programs of apps.py: what each is run on, and how its time is taken

Not here: who observes them, and rows.
"""
import glob
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from measure import BUILD, HERE, Missing, QUICK, cpus

TIMED = os.path.join(HERE, "timed")
PROGRAM_CPU, OBSERVER_CPU = cpus()
ROWS = 200 if QUICK else 50_000
REQUESTS = 200 if QUICK else 40_000
XZ_BYTES = (1 if QUICK else 12) << 18
FILES = 3 if QUICK else 50
TRANSACTIONS = 20 if QUICK else 2_000


class Run:
    """Time that passed, the program's CPU time, and for pem how many events there were and the recorder's CPU time."""

    def __init__(self, wall_s, cpu_s, events=0, lost=0, recorder_s=0.0):
        self.wall_s, self.cpu_s, self.events, self.lost, self.recorder_s = wall_s, cpu_s, events, lost, recorder_s


def on(cpu, *words):
    return ["taskset", "-c", str(cpu), *words]


def times(path):
    """What 'timed' wrote: (seconds that passed, seconds of CPU time)."""
    with open(path, encoding="utf-8") as f:
        wall, user, system = map(int, f.read().split())
    return wall / 1e9, (user + system) / 1e6


class Program:
    """A program that runs to its end. prepare: makes what it starts from anew."""

    def __init__(self, folder, command, prepare=lambda: None):
        self.command, self.prepare = command, prepare
        self.times = folder.path + "/times"

    def run(self, prefix, env=None, limit_s=None, inner=()):
        """inner: words before the command, of which only the command is bound to the CPU."""
        self.prepare()
        words = prefix + on(PROGRAM_CPU, TIMED, self.times, *inner, *self.command)
        run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})},
                               start_new_session=True)
        try:
            if run.wait(timeout=limit_s):
                raise subprocess.CalledProcessError(run.returncode, words)
        except subprocess.TimeoutExpired:  # with all that it started: the next run's times are written to the same file
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            raise
        return Run(*times(self.times))


class Server:
    """A server that is run under the prefix: the time is its client's, the CPU time is the server's from its start to its end."""

    def __init__(self, folder, command, is_ready, client, stop):
        self.command, self.is_ready, self.client, self.stop = command, is_ready, client, stop
        self.times = folder.path + "/times"

    def run(self, prefix, env=None):
        server = subprocess.Popen(prefix + on(PROGRAM_CPU, TIMED, self.times, *self.command), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        try:
            for _ in range(200):
                if self.is_ready():
                    break
                time.sleep(0.05)
            else:
                raise Missing("%s did not start" % self.command[0])
            start = time.monotonic()
            subprocess.run(on(OBSERVER_CPU, *self.client), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
                           timeout=120)
            took = time.monotonic() - start
        finally:
            self.stop()
            server.wait(timeout=60)
        return Run(took, times(self.times)[1])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", int(port))) == 0


def quiet(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def end(pid_file, number):
    """Send a signal to the process whose id is a file's first line."""
    try:
        with open(pid_file, encoding="utf-8") as f:
            os.kill(int(f.readline()), number)
    except (OSError, ValueError):
        pass


def make_redis(folder):
    port = free_port()
    return Server(folder, ["redis-server", "--port", port, "--save", "", "--bind", "127.0.0.1", "--dir", folder.path,
                           "--appendonly", "no"],
                  lambda: quiet("redis-cli", "-p", port, "ping"),
                  ["redis-benchmark", "-p", port, "-n", str(REQUESTS), "-t", "set,get,lpush,hset", "-c", "20", "-q"],
                  lambda: quiet("redis-cli", "-p", port, "shutdown", "nosave"))


def make_nginx(folder):
    port, config, pid_file = free_port(), folder.path + "/nginx.conf", folder.path + "/nginx.pid"
    with open(config, "w", encoding="utf-8") as f:
        f.write("daemon off; master_process off; pid %s; error_log /dev/null;\nevents { worker_connections 64; }\nhttp {\n"
                "  access_log off; keepalive_requests 100000;\n" % pid_file)
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"):
            f.write("  %s_temp_path %s/%s;\n" % (name, folder.path, name))
        f.write("  server { listen 127.0.0.1:%s; location / { return 200 'an answer of a few words'; } }\n}\n" % port)
    return Server(folder, ["nginx", "-c", config, "-p", folder.path], lambda: answers(port),
                  ["ab", "-q", "-k", "-n", str(REQUESTS), "-c", "20", "http://127.0.0.1:%s/" % port],
                  lambda: end(pid_file, signal.SIGTERM))


def make_pgbench(folder):
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found:
        raise Missing("PostgreSQL is not installed")
    programs, data = os.path.dirname(found[-1]), folder.path + "/postgres"
    words = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    os.mkdir(data)
    if words:
        user = pwd.getpwnam("postgres")
        os.chown(data, user.pw_uid, user.pw_gid)
        os.chmod(folder.path, 0o711)
    server = words + [programs + "/postgres", "-D", data + "/data", "-k", data, "-F", "-c", "listen_addresses="]
    ready = [programs + "/pg_isready", "-q", "-h", data]
    pid_file = data + "/data/postmaster.pid"
    subprocess.run(words + [programs + "/initdb", "-D", data + "/data", "-A", "trust", "-N", "-U", "pem", "--locale=C.UTF-8"],
                   cwd="/", check=True, stdout=subprocess.DEVNULL)
    first = Server(folder, server, lambda: quiet(*ready),
                   [programs + "/pgbench", "-i", "-q", "-h", data, "-U", "pem", "postgres"], lambda: end(pid_file, signal.SIGINT))
    first.run([])
    return Server(folder, server, first.is_ready,
                  [programs + "/pgbench", "-n", "-c", "4", "-t", str(TRANSACTIONS), "-S", "-h", data, "-U", "pem", "postgres"],
                  first.stop)


def make_sqlite(folder):
    script, data = folder.path + "/inserts.sql", os.path.join(HERE, "rows.db")
    with open(script, "w", encoding="utf-8") as f:
        f.write("create table t(a integer primary key, b text, c real);\ncreate index i on t(b);\n")
        for first in range(0, ROWS, 1000):
            f.write("begin;\n")
            for i in range(first, min(first + 1000, ROWS)):
                f.write("insert into t(b, c) values('row number %d of many', %d.5);\n" % (i * 7919 % ROWS, i))
            f.write("commit;\n")

    def prepare():
        for name in (data, data + "-journal"):
            if os.path.exists(name):
                os.unlink(name)

    return Program(folder, ["sqlite3", data, ".read " + script], prepare)


def make_xz(folder):
    source = next(os.path.join(where, name) for where in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib")
                  if os.path.isdir(where) for name in sorted(os.listdir(where)) if name.startswith("libc.so")
                  or name.startswith("libstdc++.so"))
    path = folder.path + "/library"
    with open(source, "rb") as f:
        data = f.read()
    with open(path, "wb") as f:
        f.write((data * (XZ_BYTES // len(data) + 1))[:XZ_BYTES])
    return Program(folder, ["xz", "-k", "-c", "-T1", "-6", path])


def make_compile(folder):
    source = os.path.join(os.path.dirname(BUILD), "libpem", "model_parse.c")
    root = os.path.dirname(BUILD)
    words = [w for d in ("spec/abi", "shared", "libpem", "libpem/include") for w in ("-I", os.path.join(root, d))]
    return Program(folder, ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", *words, "-c", source, "-o", folder.path + "/out.o"])


def make_small_files(folder):
    """make compiles many small files, each by three processes."""
    where = folder.path + "/files"
    os.mkdir(where)
    for i in range(FILES):
        with open("%s/file%d.c" % (where, i), "w", encoding="utf-8") as f:
            f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
                    "size_t length%d(const char *text)\n{\n\tchar *copy = strdup(text);\n\tsize_t length = copy ? strlen(copy) : 0;\n\n"
                    "\tprintf(\"%%zu\\n\", length);\n\tfree(copy);\n\treturn length + %d;\n}\n" % (i, i))
    with open(where + "/Makefile", "w", encoding="utf-8") as f:
        f.write("all: $(patsubst %.c,%.o,$(wildcard *.c))\n")

    def prepare():
        for path in glob.glob(where + "/*.o"):
            os.unlink(path)

    return Program(folder, ["make", "-s", "-C", where, "CC=gcc", "CFLAGS=-O2"], prepare)


def make_git(folder):
    """git looks at a repository of many files, in as many commands as a person may type in a day."""
    where = folder.path + "/repository"
    words = ["git", "-C", where, "-c", "user.name=pem", "-c", "user.email=pem@localhost", "-c", "gc.auto=0"]
    os.mkdir(where)
    quiet(*words, "init", "-q")
    for commit in range(3):
        for i in range(8 * FILES):
            with open("%s/file%d" % (where, i), "w", encoding="utf-8") as f:
                f.write("".join("line %d of file %d, commit %d\n" % (n, i, commit if n % 17 == 0 else 0) for n in range(200)))
        quiet(*words, "add", "-A")
        quiet(*words, "commit", "-q", "-m", "commit %d" % commit)
    git = " ".join(words)
    script = "for i in 1 2 3 4 5; do %s status --porcelain; %s log --stat -3; %s diff HEAD~1; %s grep -c commit; done" % ((git,) * 4)
    return Program(folder, ["sh", "-c", script])


def make_python(folder):
    """Python starts, imports what small tools import, and ends, 20 times."""
    python = os.path.realpath(sys.executable)
    return Program(folder, ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do "
                            "%s -c 'import argparse, json, re, subprocess'; done" % python])


def instructions(program, prefix, limit_s):
    """Instructions of all processes of a program, by callgrind; None: it takes too long, or valgrind is not here."""
    if not shutil.which("valgrind"):
        return None
    log = program.times + ".valgrind"
    for path in glob.glob(log + ".*"):
        os.unlink(path)
    try:
        program.run(prefix, limit_s=limit_s,
                    inner=["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--trace-children=yes",
                           "--log-file=%s.%%p" % log])
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    total = 0
    for path in glob.glob(log + ".*"):
        with open(path, encoding="utf-8", errors="replace") as f:
            total += sum(map(int, re.findall(r"Collected : (\d+)", f.read())))
    return total or None


# Case: (programs that have to be there, maker)
MAKERS = {"apps/sqlite3": ("sqlite3", make_sqlite), "apps/redis": ("redis-server", make_redis), "apps/xz": ("xz", make_xz),
          "apps/compile": ("gcc", make_compile), "apps/small_files": ("make", make_small_files), "apps/git": ("git", make_git),
          "apps/python": ("python3", make_python), "apps/pgbench": ("pgbench", make_pgbench), "apps/nginx": ("nginx ab", make_nginx)}
