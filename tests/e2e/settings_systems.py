# SPDX-License-Identifier: MIT
"""settings_systems: values in SQLite, redis, PostgreSQL, the kernel and a program, read back, restored"""
import contextlib
import os
import socket
import sqlite3
import sys

import postgresql
from settings_agent import Agent, PROGRAM, agent, folder, opened
from tap import equal, need, run, run_all, skip, start, test, tmp

if not os.path.exists(PROGRAM):
    print("1..0 # SKIP pem was built without SQLite or json-c")
    sys.exit(0)


def has(said, *words):
    for word in words:
        assert word in said, (word, said)


# --- SQLite ---


def database():
    path = os.path.join(tmp(), "taxi.db")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("create table trips (id integer primary key, fare real)")
        db.executemany("insert into trips (fare) values (?)", [(i * 0.5,) for i in range(5000)])
        db.commit()
    return path


def pragma(path, name):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("pragma " + name).fetchone()[0]


def content(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("select count(*), sum(fare) from trips").fetchone()


@test
def page_sizes():
    "SQLite takes page sizes up to 65,536 bytes, and what it does not take is refused in a sentence"
    path = database()
    rows = content(path)
    with agent(("pragma", "page_size", "page_size", path)) as one:
        for size in (1024, 65536, 4096):
            equal(one.apply(size), "0", "size %d" % size)
            equal((pragma(path, "page_size"), content(path)), (size, rows), "what others read")
        equal(one.apply(1048576), "1 0 page_size: 1048576 was given; taxi.db has 4096", "1 MiB")
        equal(one.apply(5000), "1 0 page_size: 5000 was given; taxi.db has 4096", "not a power of 2")
        equal(one.apply(512), "0", "512")
    equal((pragma(path, "page_size"), content(path)), (4096, rows), "restored")


@test
def pragmas_in_a_database_of_wal():
    "a page size that SQLite does not change in mode wal is refused, and the mode itself is restored"
    path = database()
    with agent(("pragma", "mode", "journal_mode", path), ("pragma", "size", "page_size", path)) as one:
        equal(one.apply("wal", 8192), "1 1 size: 8192 was given; taxi.db has 4096", "in wal")
        equal(pragma(path, "journal_mode"), "wal", "mode")
        equal(one.apply("delete", 8192), "0", "in delete")
        equal((pragma(path, "journal_mode"), pragma(path, "page_size")), ("delete", 8192), "then")
    equal((pragma(path, "journal_mode"), pragma(path, "page_size")), ("delete", 4096), "restored")


@test
def a_databases_folder_became_a_link():
    "no database is changed through a symbolic link that took the place of its folder"
    need("sqlite3")
    home, other = tmp(), tmp()
    os.mkdir(home + "/data")
    path = home + "/data/a.db"
    for where in path, other + "/a.db":
        with sqlite3.connect(where) as db:
            db.execute("create table t(a)")
    with agent(("pragma", "page_size", "page_size", path)) as one:
        equal(one.apply("8192"), "0", "applied")
        os.rename(home + "/data", home + "/aside")
        os.symlink(other, home + "/data")
        has(one.restore(), "-116 ", path, "leads to " + other, "its first page_size was 4096")
        equal(pragma(other + "/a.db", "page_size"), 4096, "the database behind the link")


@test
def pragmas_of_a_connection():
    "a connection's pragma is tried and not stored; words that SQLite documents for its numbers are the same"
    path = database()
    for name, taken, refused in (("cache_size", ("-2000", "500"), ("many",)), ("synchronous", ("NORMAL", "off", "2"), ("8",)),
                                 ("temp_store", ("memory",), ("disk",)), ("foreign_keys", ("on", "0"), ()),
                                 ("mmap_size", ("1048576",), ("8000000000000",)), ("journal_mode", ("memory", "off"), ("fast",))):
        with agent(("pragma", "x", name, path)) as one:
            for value in taken:
                equal(one.apply(value), "0", name + " " + value)
            for value in refused:
                has(one.apply(value), "1 0 x: %s was given; taxi.db has " % value)
    equal(pragma(path, "cache_size"), -2000, "what others read")


@test
def databases_that_cannot_be_used():
    "a database that is missing, locked or none, and an unknown pragma, are errors with their remedy"
    path = database()
    with agent(("pragma", "x", "page_size", path + "x")) as one:
        has(one.apply(1024), "-2 ", path + "x", "Make the database first")
    with agent(("pragma", "x", "no_such", path)) as one:
        has(one.apply(1024), "-2 ", "no_such")
    none = os.path.join(tmp(), "text.db")
    with open(none, "w", encoding="ascii") as out:
        out.write("text " * 1000)
    with agent(("pragma", "x", "page_size", none)) as one:
        has(one.apply(1024), "-5 ", "not a database")


@test
def killed_between_page_sizes():
    "after kill -9 the next agent gives a database its first page size, with all rows"
    path, where = database(), folder()
    rows = content(path)
    for _ in range(10):
        one = Agent(where, [("pragma", "size", "page_size", path)])
        one.child.stdin.write("8192\n1024\n16384\n512\n")
        one.child.stdin.flush()
        one.child.stdout.readline()
        one.kill()
        one = Agent(where, [])
        equal(one.opened, "open 1", "the next agent")
        one.end()
        equal((pragma(path, "page_size"), content(path)), (4096, rows), "restored")


# --- redis ---


@contextlib.contextmanager
def redis(path):
    need("redis-server", "redis-cli")
    server = start(["redis-server", "--port", "0", "--unixsocket", path, "--dir", os.path.dirname(path), "--save", ""],
                   stdout=-3)
    while run(["redis-cli", "-s", path, "ping"])[1] != "PONG\n":
        assert server.poll() is None, "redis-server ended"
    yield lambda *words: run(["redis-cli", "-s", path, *words])[1].split("\n")
    server.terminate()
    server.wait(60)


@test
def redis_settings():
    "redis takes settings with its units; what it refuses, or takes only as it starts, is a sentence"
    path = os.path.join(tmp(), "redis.sock")
    targets = [("redis", "memory", "maxmemory", path), ("redis", "policy", "maxmemory-policy", path)]
    with redis(path) as ask:
        before = ask("config", "get", "maxmemory*")
        with agent(*targets) as one:
            equal(one.apply("100mb", "allkeys-lru"), "0", "applied")
            equal(ask("config", "get", "maxmemory")[1], "104857600", "memory")
            equal(one.apply("1g", None), "0", "decimal unit, first policy")
            equal(ask("config", "get", "maxmemory")[1], "1000000000", "memory")
            equal(ask("config", "get", "maxmemory-policy")[1], "noeviction", "policy")
            has(one.apply("1g", "best"), "1 1 policy: best was refused: ERR ", "maxmemory-policy")
        equal(ask("config", "get", "maxmemory*"), before, "restored")
        with agent(("redis", "x", "databases", path)) as one:
            has(one.apply("3"), "1 0 x: 3 was refused: ", "{name} in the command")
            equal(one.apply("16"), "0", "what it has")
        with agent(("redis", "x", "no-such", path)) as one:
            has(one.apply("3"), "-2 ", "no setting 'no-such'")


@test
def redis_that_ended():
    "a redis server that ended took its settings along: nothing is left to restore; one that hangs is an error"
    path, where = os.path.join(tmp(), "redis.sock"), folder()
    with redis(path):
        one = Agent(where, [("redis", "memory", "maxmemory", path)])
        equal(one.apply("100mb"), "0", "applied")
    has(one.apply("1gb"), "-111 ", path, "does not answer")
    one.kill()
    equal(opened(where), "open 1", "next")


@test
def servers_that_are_not_redis():
    "a server that hangs, ends, or answers something else is an error within seconds"
    for answer, words in ((None, ("-110 ", "did not answer")), (b"", ("-111 ", "ended")), (b"-NOAUTH\r\n", ("-1 ", "NOAUTH")),
                          (b"HTTP/1.1 200\r\n", ("-1 ", "refused")), (b"*2\r\n$99999999999\r\n", ("-90 ",)), (b"*2\r\nx", ("-90 ",)),
                          (b"*2\r\n$1\r\nx\r\n", ("-90 ",)), (b"*1000000000\r\n", ("-90 ",)), (b"*-5\r\n", ("-2 ",)), (b"x" * 9000, ("-90 ",))):
        path = os.path.join(tmp(), "sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            one = Agent(folder(), [("redis", "x", "maxmemory", path)])
            one.child.stdin.write("1mb\n")
            one.child.stdin.flush()
            with listener.accept()[0] as peer:
                if answer is not None:
                    peer.recv(1000)
                    peer.sendall(answer)
                    peer.shutdown(socket.SHUT_RDWR)
                has(one.child.stdout.readline(), *words)
        one.end()


@test
def redis_recovered():
    "after kill -9 the next agent gives a running redis server its first values"
    path, where = os.path.join(tmp(), "redis.sock"), folder()
    with redis(path) as ask:
        one = Agent(where, [("redis", "memory", "maxmemory", path), ("redis", "policy", "maxmemory-policy", path)])
        equal(one.apply("100mb", "allkeys-lru"), "0", "applied")
        one.kill()
        equal(ask("config", "get", "maxmemory")[1], "104857600", "while changed")
        equal(opened(where), "open 2", "next")
        equal([ask("config", "get", name)[1] for name in ("maxmemory", "maxmemory-policy")], ["0", "noeviction"], "restored")


# --- PostgreSQL ---


def asker(url):
    need("psql")
    return lambda text: run(["psql", "-XAtq", "-c", text, url])[1].strip()


@test
def postgres_settings():
    "PostgreSQL takes settings in its units, for new sessions; all are as before afterwards"
    with postgresql.server() as where:
        url = "postgresql://" + where
        ask = asker(url)
        ask("alter system set work_mem = '5MB'")
        ask("select pg_reload_conf()")
        names = "work_mem", "random_page_cost", "jit", "checkpoint_timeout", "wal_sync_method"
        with agent(*[("postgres", name, name, url) for name in names]) as one:
            equal(one.apply("64MB", "1.1", "no", "600", "fsync"), "0", "applied")
            equal([ask("show " + name) for name in names], ["64MB", "1.1", "off", "10min", "fsync"], "new session")
            equal(one.apply("65536", "1.10", "off", "600s", None), "0", "the same in other units")
            equal([ask("show " + name) for name in names], ["64MB", "1.1", "off", "10min", "fdatasync"], "then")
            has(one.apply("64MB", "-7", "off", "600", "fsync"), "1 1 random_page_cost: -7 was refused: ", "outside the valid range")
            has(one.apply("100.3kB", "2", "off", "600", "fsync"), "1 0 work_mem: 100.3kB was given; ", "has 100kB")
        equal(ask("select name || setting from pg_file_settings where sourcefile like '%auto.conf'"), "work_mem5MB", "restored")
        equal(ask("show work_mem") + ask("show jit"), "5MBon", "restored")


@test
def postgres_names_of_a_value():
    "a value with several names in PostgreSQL's documentation is taken by each"
    with postgresql.server() as where:
        with agent(("postgres", "x", "wal_compression", "postgresql://" + where)) as one:
            for value in ("on", "pglz", "off", "true"):
                equal(one.apply(value), "0", value)
            has(one.apply("best"), "1 0 x: best was refused: invalid value")


@test
def postgres_settings_of_its_start():
    "a setting that PostgreSQL takes only as it starts is refused with the remedy; the value it has is taken"
    with postgresql.server("-c", "max_connections=33") as where:
        url = "postgresql://" + where
        with agent(("postgres", "x", "max_connections", url)) as one:
            has(one.apply("50"), "1 0 x: 50 was refused: ", "{name} in the command")
            equal(one.apply("33"), "0", "what it has")
        with agent(("postgres", "x", "no_such", url)) as one:
            has(one.apply("50"), "-2 ", "no setting 'no_such'")
        with agent(("postgres", "x", "work_mem", url)) as one:
            has(one.apply("lots"), "1 0 x: lots was refused: invalid value for parameter")


@test
def postgres_settings_that_lose():
    "a value that the server's command line overrides is refused"
    with postgresql.server("-c", "work_mem=7MB") as where:
        with agent(("postgres", "x", "work_mem", "postgresql://" + where)) as one:
            has(one.apply("9MB"), "1 0 x: 9MB was given; ", "has 7MB")


@test
def postgres_recovered():
    "after kill -9 first values come back as soon as the server answers"
    where = folder()
    with postgresql.server() as server:
        url = "postgresql://" + server
        ask = asker(url)
        one = Agent(where, [("postgres", "x", "work_mem", url)])
        equal(one.apply("9MB"), "0", "applied")
        one.kill()
        equal(ask("show work_mem"), "9MB", "while changed")
        equal(opened(where), "open 1", "next")
        equal(ask("select count(*) from pg_file_settings where sourcefile like '%auto.conf'"), "0", "restored")
        one = Agent(where, [("postgres", "x", "work_mem", url)])
        equal(one.apply("9MB"), "0", "again")
        one.kill()
    one = Agent(where, [("postgres", "x", "work_mem", url)])
    has(one.opened, "open 0 ", "does not answer")
    has(one.restore(), "-111 ", "does not answer")
    one.end()
    has(open(where + "/journal", encoding="utf-8").read(), "work_mem")


# --- the kernel ---


@test
def sysctl():
    "a sysctl is written, read back and restored"
    path = "/proc/sys/vm/swappiness"
    if not os.access(path, os.W_OK):
        skip("vm.swappiness can't be written here: root may")
    with open(path, encoding="ascii") as file:
        before = file.read()
    with agent(("sysctl", "x", "vm.swappiness", "")) as one:
        equal(one.apply(37), "0", "applied")
        with open(path, encoding="ascii") as file:
            equal(file.read(), "37\n", "value")
        has(one.apply(100000), "1 0 x: 100000 was refused: ", "the kernel")
    with open(path, encoding="ascii") as file:
        equal(file.read(), before, "restored")
    with agent(("sysctl", "x", "vm.no_such", "")) as one:
        has(one.apply(1), "-2 ", "/proc/sys/vm/no_such")
    with agent(("sysctl", "x", "../../etc/passwd", "")) as one:
        has(one.apply(1), "-22 ", "not the name")


@test
def control_group():
    "a control group of its own is made, has the value, and is removed; also after kill -9"
    where = folder()
    targets = [("cgroup", "x", "cgroup.max.descendants", "")]
    one = Agent(where, targets)
    said = one.apply(5)
    if said.startswith("-"):
        skip("no control group of version 2 can be made here: " + said)
    equal(said, "0", "applied")
    group = one.say("cgroup")
    with open(group + "/cgroup.max.descendants", encoding="ascii") as file:
        equal(file.read(), "5\n", "value")
    has(one.apply("few"), "1 0 x: few was refused: ", "the kernel")
    equal(one.apply(None), "0", "none")
    with open(group + "/cgroup.max.descendants", encoding="ascii") as file:
        equal(file.read(), "max\n", "first value")
    equal((one.restore(), os.path.exists(group), one.say("cgroup")), ("0", False, "none"), "restored")
    equal(one.apply(5), "0", "again")
    group = one.say("cgroup")
    one.kill()
    assert os.path.exists(group)
    one = Agent(where, targets)
    assert one.opened in ("open 1", "open 2"), one.opened
    assert not os.path.exists(group)


# --- a program of the user's ---


def script(text):
    path = os.path.join(tmp(), "set.sh")
    with open(path, "w", encoding="ascii") as out:
        out.write("#!/bin/sh\ncd '%s'\n%s" % (os.path.dirname(path), text))
    os.chmod(path, 0o755)
    return path


@test
def a_program_of_the_users():
    "a program sets and gets; what it refuses or changes is a sentence, and its first value comes back"
    path = script("""[ "$1" = get ] && exec cat "$2"
[ "$3" = bad ] && { echo "no: $3"; exit 1; }
value=$3
[ "$value" = odd ] && value=other
echo "$value" >"$2"
""")
    value = os.path.dirname(path) + "/a b"
    with open(value, "w", encoding="ascii") as out:
        out.write("first\n")
    with agent(("program", "a b", path, "")) as one:
        equal(one.apply("x y"), "0", "applied")
        equal(open(value, encoding="ascii").read(), "x y\n", "value")
        equal(one.apply("bad"), "1 0 a b: bad was refused: no: bad", "refused")
        equal(one.apply("odd"), "1 0 a b: odd was given; set.sh has other", "taken differently")
    equal(open(value, encoding="ascii").read(), "first\n", "restored")


@test
def programs_that_fail():
    "a program that is missing, fails, prints without end, leaves its group or leaves a child with its output is not waited for"
    with agent(("program", "x", "/nowhere/set.sh", "")) as one:
        has(one.apply("1"), "-2 ", "/nowhere/set.sh")
    with agent(("program", "x", script("exit 3"), "")) as one:
        has(one.apply("1"), "-2 ", "get x failed")
    with agent(("program", "x", script("exec cat /dev/zero"), "")) as one:
        has(one.apply("1"), "-110 ", "printed more than")
    path = script("exec %s -c 'import os, time; os.setpgid(0, os.getpgid(os.getppid())); time.sleep(60); open(\"late\", \"w\")'" % sys.executable)
    with agent(("program", "x", path, "")) as one:
        has(one.apply("1"), "-110 ", "ran for more than")
    assert not os.path.exists(os.path.dirname(path) + "/late"), "a program in another process group was waited for"
    with agent(("program", "x", script("sleep 60 & echo 1"), "")) as one:
        equal(one.apply("1"), "0", "with a child")


run_all()
