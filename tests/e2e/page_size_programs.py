#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Real programs under libpem-page-size.so do what they do alone
"""
import glob
import subprocess

from page_sites import MIB, Directives, every_site, need_large_pages, same_output
from preload import compile_program
from tap import equal, need, run, run_all, start, test, tmp

LONG_S = 18


@test
def python():
    "python3 does what it does alone, with no site and with all sites listed"
    code = "import json, re, zlib; d = {str(i): [i] * 9 for i in range(20000)}; print(zlib.crc32(json.dumps(d).encode()))"
    assert same_output(["python3", "-I", "-S", "-c", code]), "no site was used"


@test
def cxx_loaded_later():
    "a C++ library that a program without C++ loads for itself alone has its operators, and its exceptions"
    need("g++")
    library = compile_program(r"""
#include <new>
#include <vector>
extern "C" long many(void) { std::vector<long> v; for (long i = 0; i < 100000; i++) v.push_back(i); return v[99999]; }
extern "C" int thrown(void) { try { return !::operator new(1ul << 60); } catch (std::bad_alloc &) { return 7; } }
""", name="library.so", compiler="g++", flags=["-shared", "-fPIC"])
    static = compile_program(r"""
#include <vector>
extern "C" long many(void) { std::vector<long> v; for (long i = 0; i < 100000; i++) v.push_back(i); return v[99999]; }
""", name="static.so", compiler="g++", flags=["-shared", "-fPIC", "-static-libstdc++", "-static-libgcc"])
    code = "import ctypes, _ctypes\nfor path in (%r, %r, %r):\n l = ctypes.CDLL(path)\n" \
        " print(l.many(), getattr(l, 'thrown', len)(*[''] * (path == %r)))\n _ctypes.dlclose(l._handle)" % (static, library, static, static)
    same_output(["python3", "-I", "-S", "-c", code])


@test
def perl():
    "perl does what it does alone"
    assert same_output(["perl", "-e", "my %h; $h{$_ % 9999} .= $_ for 1 .. 100000; print length(join '', map { $h{$_} } sort keys %h)"])


@test
def sqlite():
    "sqlite3 does what it does alone"
    sql = "create table t(a, b); with recursive c(i) as (select 1 union all select i + 1 from c where i < 50000) " \
          "insert into t select i * 7919 % 50021, hex(i) from c; select sum(a), max(b), count(distinct b) from t;"
    same_output(["sqlite3", ":memory:", sql])


@test
def git():
    "git does what it does alone"
    folder = tmp()
    run(["git", "init", "-q", folder])
    for i in range(50):
        with open("%s/%d" % (folder, i), "w") as file:
            file.write(str(i) * 1000)
    run(["git", "-C", folder, "add", "."])
    same_output(["git", "-C", folder, "write-tree"])
    same_output(["git", "-C", folder, "ls-files", "--stage"])


@test
def compiler():
    "gcc, which starts other programs, compiles to the same bytes"
    source = tmp() + "/x.c"
    with open(source, "w") as file:
        file.write("#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(\"x\"); return 0; }\n")
    same_output(["gcc", "-O2", "-S", "-o", "-", source])


@test
def redis():
    "redis-server keeps what it is told, and saves it by a forked child, as alone"
    need_large_pages()
    need("redis-server", "redis-cli")
    folder = tmp()
    directives = Directives(*every_site("redis-server"), budget=64 * MIB)
    socket = folder + "/socket"
    server = start(["redis-server", "--port", "0", "--unixsocket", socket, "--dir", folder, "--save", ""], env=directives.env(),
                   stdout=subprocess.DEVNULL)
    cli = ["redis-cli", "-s", socket]
    for _ in range(100):
        if run(cli + ["ping"])[1] == "PONG\n":
            break
    equal(run(cli + ["eval", "for i = 1, 20000 do redis.call('set', i, string.rep(i, 20)) end return redis.call('dbsize')", "0"])[1],
          "20000\n", "keys")
    run(cli + ["bgsave"])
    for _ in range(1000):
        if "rdb_bgsave_in_progress:0" in run(cli + ["info", "persistence"])[1]:
            break
    assert "rdb_last_bgsave_status:ok" in run(cli + ["info", "persistence"])[1], "saved"
    equal(run(cli + ["get", "777"])[1], "777" * 20 + "\n", "a value")
    run(cli + ["shutdown", "nosave"])
    equal(server.wait(20), 0, "exit status of redis-server")
    assert glob.glob(folder + "/*.rdb"), "what was saved"


run_all()
