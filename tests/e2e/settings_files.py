# SPDX-License-Identifier: MIT
"""settings_files: values in configuration files, read back, and restored whatever happens"""
import configparser
import glob
import json
import os
import random
import re
import shutil
import stat
import sys
import time

import postgresql
from settings_agent import Agent, PROGRAM, agent, folder, opened
from tap import SAN, equal, need, run, run_all, skip, start, test, tmp

LONG_S = 12

if not os.path.exists(PROGRAM):
    print("1..0 # SKIP pem was built without SQLite or json-c")
    sys.exit(0)

INI = """; first
threads = 1 ; of all
[net]
threads=2
host = "a b"
none =
[disk]
size = 4
"""
REDIS = """# redis
maxmemory 100mb
save 900 1
save 300 10
"""
POSTGRES = """#work_mem = 4MB
shared_buffers = 128MB			# min 128kB
log_line_prefix = '%m [%p] '
"""
NGINX = """user www-data; # worker_processes 9;
worker_processes auto;
events { worker_connections 768; }
http {
	sendfile on;
	log_format main '$remote_addr; {x}'
		'"$request"';
	set $a ${b};
	server { listen 80 default_server; }
	server { listen 81; gzip off; }
}
"""
JSON = """{"net": {"threads": 2, "hosts": ["a", "b\\u00e9"]},
 "name": "x", "on": true}
"""
YAML = """# é
net:
  threads: 2   # of each
  hosts: [a, 'b']
name: "x"
on: &a yes
off: *a
text: |
  some
empty:
"""


def written(text, name, mode=0o644):
    path = os.path.join(tmp(), name)
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    os.chmod(path, mode)
    return path


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def tried(text, name, key, value, before, after):
    """A value is written in place of the text before, and nothing else is changed; then all is as it was."""
    path = written(text, name)
    with agent(("file", "x", key, path)) as one:
        equal(one.apply(value), "0", "%s of %s" % (key, name))
        equal(text_of(path), text.replace(before, after, 1), "%s with %s" % (name, key))
    equal(text_of(path), text, name + " restored")


def not_applied(text, name, key, value="5"):
    """The answer for a value that is not applied; the file is as it was."""
    path = written(text, name)
    with agent(("file", "x", key, path)) as one:
        said = one.apply(value)
        equal(text_of(path), text, name)
    return said


def has(said, *words):
    for word in words:
        assert word in said, (word, said)


@test
def ini():
    "a value of an INI file is replaced in its section, with its quotes"
    tried(INI, "a.ini", "net.threads", "8", "threads=2", "threads=8")
    tried(INI, "a.ini", "threads", "8", "threads = 1 ;", "threads = 8 ;")
    tried(INI, "a.ini", "none", "8", "none =", "none =8")
    tried("[a]\nx: 1\ny : 2\n", "a.cfg", "a.x", "8", "x: 1", "x: 8")
    tried("[a]\nx: 1\ny : 2\n", "a.cfg", "y", "8", "y : 2", "y : 8")
    tried(INI, "a.ini", "size", "8", "size = 4", "size = 8")
    tried(INI, "a.ini", "net.host", "c d", '"a b"', '"c d"')


@test
def missing_keys_of_lines_are_appended():
    "a key that a file of lines does not have is appended to its section, as its neighbours are written"
    tried(INI, "a.ini", "net.port", "8", 'none =\n', 'none =\nport = 8\n')
    tried(INI, "a.ini", "disk.kind", "8", "size = 4\n", "size = 4\nkind = 8\n")
    tried(REDIS, "redis.conf", "io-threads", "2", "300 10\n", "300 10\nio-threads 2\n")
    tried(POSTGRES, "postgresql.conf", "work_mem", "8MB", "[%p] '\n", "[%p] '\nwork_mem = 8MB\n")
    has(not_applied(INI, "a.ini", "nowhere.port"), "-2 ", "has no 'nowhere.port'", "add it")


@test
def lines():
    "values of redis.conf and postgresql.conf are replaced, and comments stay"
    tried(REDIS, "redis.conf", "maxmemory", "1gb", "100mb", "1gb")
    tried(POSTGRES, "postgresql.conf", "shared_buffers", "1GB", "128MB\t", "1GB\t")
    tried(POSTGRES, "postgresql.conf", "log_line_prefix", "%p", "'%m [%p] '", "'%p'")


@test
def blocks():
    "values of nginx.conf are replaced in their blocks"
    tried(NGINX, "nginx.conf", "worker_processes", "4", "auto", "4")
    tried(NGINX, "nginx.conf", "events.worker_connections", "64", "768", "64")
    tried(NGINX, "nginx.conf", "sendfile", "off", "on;", "off;")
    tried(NGINX, "nginx.conf", "http.server.gzip", "on", "gzip off", "gzip on")
    has(not_applied(NGINX, "nginx.conf", "http.server.listen"), "lines 9 and 10")
    has(not_applied(NGINX, "nginx.conf", "keepalive_timeout"), "has no", "add it")
    has(not_applied(NGINX, "nginx.conf", "sendfile", "on; daemon off"), "1 0 x: ", "one value")


@test
def trees():
    "values of JSON and YAML are replaced, with quotes where they need them"
    tried(JSON, "a.json", "net.threads", "8", "2", "8")
    tried(JSON, "a.json", "net.threads", "many", "2", '"many"')
    tried(JSON, "a.json", "net.hosts.1", 'c"\\', '"b\\u00e9"', '"c\\"\\\\"')
    tried(JSON, "a.json", "name", "8", '"x"', '"8"')
    tried(JSON, "a.json", "on", "false", "true", "false")
    tried(YAML, "a.yaml", "net.threads", "8", "2", "8")
    tried(YAML, "a.yml", "net.hosts.0", "c: d", "[a,", '["c: d",')
    tried(YAML, "a.yml", "net.hosts.1", "c", "'b'", '"c"')
    tried(YAML, "a.yaml", "name", "y", '"x"', '"y"')
    tried(YAML, "a.yaml", "empty", "1", "empty:", "empty: 1")


def grown(chance, depth=0):
    """A random value that JSON can have."""
    kind = chance.randrange(6 if depth < 3 else 4)
    if kind == 4:
        return [grown(chance, depth + 1) for _ in range(chance.randrange(1, 4))]
    if kind == 5:
        return {chance.choice(NAMES) + str(i): grown(chance, depth + 1) for i in range(chance.randrange(1, 4))}
    return (chance.randrange(-9, 10 ** 9), chance.random() < 0.5, None, chance.choice(TEXTS))[kind]


NAMES = "a", "B_c", "d-e", "f g", "h\u00e9", "\u4e2d"
TEXTS = "", "x", "a b", "a: b", "# c", "\"q\" 'r'", "\\", "\u00e9\u4e2d", "{", "1", "true", "a\tb"


def leaves(tree, path=()):
    """Paths of all values that are no list or map."""
    if isinstance(tree, (dict, list)):
        for name, below in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(below, path + (name,))
    else:
        yield path


@test
def random_trees_beside_python():
    "in 60 random trees Python's reader of JSON finds the new value in its place, and all others as before"
    chance = random.Random(1)
    for number in range(60):
        tree = {"root": grown(chance)}
        path = written(json.dumps(tree, indent=chance.choice((None, 1)), ensure_ascii=chance.random() < 0.5),
                       chance.choice(("a.json", "a.yaml")))
        where, value = chance.choice(list(leaves(tree))), chance.choice(TEXTS + (17, True))
        with agent(("file", "x", ".".join(map(str, where)), path)) as one:
            written_value = str(value).lower() if isinstance(value, bool) else str(value)
            if "\t" not in written_value:
                equal(one.apply(written_value), "0", "tree %d: %r at %r" % (number, value, where))
                got = json.loads(text_of(path)) if path.endswith("json") else None
        if got is None or "\t" in written_value:
            continue
        for other in leaves(tree):
            found, first = got, tree
            for name in other:
                found, first = found[name], first[name]
            if other == where:
                assert str(found).lower() == written_value.lower(), (found, written_value)
            else:
                equal(found, first, "another value")


@test
def ini_beside_python():
    "Python's reader of INI files finds each new value, and all others as before"
    names = ["k%d" % i for i in range(5)]
    text = "".join("[s%d]\n%s" % (s, "".join("%s%s%s\n" % (name, separator, s) for name, separator in
                                            zip(names, ("=", " = ", ": ", " : ", "\t=\t")))) for s in range(3))
    for section in range(3):
        for name in names + ["new"]:
            path = written(text, "a.ini")
            with agent(("file", "x", "s%d.%s" % (section, name), path)) as one:
                equal(one.apply("9 x"), "0", "applied")
                found, first = configparser.ConfigParser(), configparser.ConfigParser()
                found.read(path)
            first.read_string(text)
            first["s%d" % section][name] = "9 x"
            equal({s: dict(found[s]) for s in found}, {s: dict(first[s]) for s in first}, name)


@test
def programs_read_their_files():
    "nginx, redis and PostgreSQL read the values that are written into their own files"
    where = tmp()
    if shutil.which("nginx") and os.path.exists("/etc/nginx/nginx.conf"):
        path = where + "/nginx.conf"
        with open(path, "w", encoding="utf-8") as out:  # without what listens
            out.write(re.sub(r"include .*(sites|conf\.d|modules).*", "", text_of("/etc/nginx/nginx.conf")))
        with agent(("file", "x", "events.worker_connections", path), ("file", "y", "http.gzip", path), ("file", "p", "pid", path),
                   ("file", "a", "http.access_log", path), ("file", "e", "error_log", path)) as one:
            equal(one.apply("77", "off", where + "/pid", "off", "stderr"), "0", "nginx")
            out = "".join(run(["nginx", "-T", "-e", "stderr", "-c", path])[1:])
            has(out, "worker_connections 77;", "gzip off;")
    if shutil.which("redis-server") and os.access("/etc/redis/redis.conf", os.R_OK):
        path = shutil.copy("/etc/redis/redis.conf", where + "/redis.conf")
        targets = [("file", key, key, path) for key in ("port", "unixsocket", "dir", "daemonize", "logfile", "io-threads", "timeout",
                                                        "pidfile", "supervised")]
        with agent(*targets) as one:
            equal(one.apply("0", where + "/sock", where, "no", '', "2", "77", where + "/pid", "no"), "0", "redis")
            server = start(["redis-server", path], stdout=-3, stderr=-3)
            while run(["redis-cli", "-s", where + "/sock", "ping"])[1] != "PONG\n":
                assert server.poll() is None, "redis-server ended"
            for key, value in (("timeout", "77"), ("io-threads", "2")):
                equal(run(["redis-cli", "-s", where + "/sock", "config", "get", key])[1], "%s\n%s\n" % (key, value), key)
            server.kill()
            server.wait(60)
    samples = glob.glob("/usr/share/postgresql/*/postgresql.conf.sample")
    if samples:
        path = shutil.copy(samples[-1], where + "/postgresql.conf")
        postgres = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))[-1]
        words, user = postgresql.as_user()
        with open(path, "a", encoding="utf-8") as out:
            out.write("max_connections = 20\n")
        os.chmod(where, 0o755)
        os.chown(path, user.pw_uid, user.pw_gid)
        with agent(("file", "x", "work_mem", path), ("file", "y", "log_timezone", path)) as one:
            equal(one.apply("7MB", "UTC"), "0", "PostgreSQL")
            for key, value in (("work_mem", "7168"), ("log_timezone", "UTC")):
                equal(run(words + [postgres, "-C", key, "-D", where], cwd="/")[1], value + "\n", key)


@test
def trees_that_are_not_understood():
    "a value that has no place, or a meaning of its own, is refused with its line"
    has(not_applied(JSON, "a.json", "net.port"), "-2 ", "has no 'net.port'")
    has(not_applied('{"a": 1, "a": 2}', "a.json", "a"), "lines 1 and 1")
    has(not_applied('{"a": 1,\n "b" 2}', "a.json", "a"), "line 2")
    has(not_applied(JSON, "a.json", "net"), "line 1", "not a plain or quoted one")
    for key in ("on", "off", "text"):
        has(not_applied(YAML, "a.yaml", key), "not a plain or quoted one")
    has(not_applied("[" * 100 + "]" * 100, "a.json", "a"), "levels")
    has(not_applied("a: 1\n\tb: 2\n", "a.yaml", "a"), "line 2")


@test
def values_that_lines_cannot_hold():
    "a value that a file of lines can't hold as one is refused, and not written"
    has(not_applied(REDIS, "redis.conf", "maxmemory", "1 # x"), "1 0 x: ", "one value")
    has(not_applied(POSTGRES, "postgresql.conf", "log_line_prefix", "it's"), "1 0 x: ", "one value")
    has(not_applied(REDIS, "redis.conf", "save"), "lines 3 and 4")


@test
def several_values_of_one_file():
    "a file has its first content with the values of one configuration, and a value of none is the first"
    path = written(INI, "a.ini")
    targets = [("file", "t", "net.threads", path), ("file", "s", "disk.size", path)]
    with agent(*targets) as one:
        equal(one.apply("8", "9"), "0", "both")
        equal(text_of(path), INI.replace("threads=2", "threads=8").replace("size = 4", "size = 9"), "both")
        equal(one.apply(None, "9"), "0", "one")
        equal(text_of(path), INI.replace("size = 4", "size = 9"), "one")
        equal(one.apply(None, None), "0", "none")
        equal(text_of(path), INI, "none")
        equal(one.apply("2", "4"), "0", "first values")
        equal(text_of(path), INI, "first values")


def told(path, key="threads"):
    """What the agent answers for a file."""
    with agent(("file", "x", key, path)) as one:
        return one.apply("5")


@test
def other_kinds_of_files():
    "a file that is not there, is no regular one, too large, not text, or has two names is an error with its path"
    where = tmp()
    os.mkfifo(where + "/fifo")
    os.mkdir(where + "/folder.ini")
    with open(where + "/large", "wb") as out:
        out.truncate((16 << 20) + 1)
    with open(where + "/zero", "wb") as out:
        out.write(b"threads = 1\0\n")
    first = written("threads = 1\n", "one")
    os.link(first, where + "/two")
    for name, words in (("nothing", "No such file"), ("fifo", "not a regular file"), ("folder.ini", "not a regular file"),
                        ("large", "more than 16 MiB"), ("zero", "not a text file"), ("two", "2 names"),
                        ("../../../../dev/null", "not a regular file")):
        has(told(where + "/" + name), words, name.split("/")[-1])


@test
def attributes_and_links_stay():
    "owner, mode, times and a symbolic link are as before after a restore, and mode and owner while it is changed"
    path = written(INI, "a.ini", 0o640)
    link = os.path.join(tmp(), "link.ini")
    os.symlink(path, link)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
    try:
        os.setxattr(path, "user.pem", b"x")
    except OSError:
        pass
    before = os.stat(path)
    with agent(("file", "x", "net.threads", link)) as one:
        equal(one.apply("7"), "0", "applied")
        during = os.stat(path)
        equal((during.st_mode, during.st_uid, during.st_gid), (before.st_mode, before.st_uid, before.st_gid), "while changed")
        equal(text_of(link), INI.replace("threads=2", "threads=7"), "by the link")
    after = os.stat(path)
    for name in ("st_mode", "st_uid", "st_gid", "st_mtime_ns", "st_size"):
        equal(getattr(after, name), getattr(before, name), name)
    assert stat.S_ISLNK(os.lstat(link).st_mode)
    equal(os.listdir(os.path.dirname(path)), ["a.ini"], "files beside it")
    try:
        equal(os.getxattr(path, "user.pem"), b"x", "extended attribute")
    except OSError:
        pass


@test
def changed_by_another_program():
    "a file that another program changed stays as it is, and its first content is kept"
    path, where = written(INI, "a.ini"), folder()
    one = Agent(where, [("file", "x", "net.threads", path)])
    equal(one.apply("7"), "0", "applied")
    with open(path, "a", encoding="utf-8") as out:
        out.write("mine = 1\n")
    mine = text_of(path)
    has(one.apply("8"), "-116 ", "changed by another program")
    equal(text_of(path), mine, "then")
    said = one.restore()
    has(said, "-116 ", path, "stays as it is", where)
    equal(text_of(path), mine, "restored")
    equal(text_of(said.split("content is ")[1]), INI, "what was kept")
    equal(one.restore(), "0", "again")
    one.end()
    equal(opened(where), "open 0", "next")


@test
def folder_became_a_link():
    "no file is read, replaced or made through a symbolic link that took the place of the file's folder"
    for name, content in (("not there", None), ("the same content", INI), ("the content of the trial", INI.replace("threads=2", "threads=7"))):
        home, other, where = tmp(), tmp(), folder()
        os.mkdir(home + "/conf")
        path = home + "/conf/a.ini"
        with open(path, "w", encoding="utf-8") as out:
            out.write(INI)
        one = Agent(where, [("file", "x", "net.threads", path)])
        equal(one.apply("7"), "0", "applied")
        os.rename(home + "/conf", home + "/aside")
        os.symlink(other, home + "/conf")
        if content:
            with open(other + "/a.ini", "w", encoding="utf-8") as out:
                out.write(content)
        before = os.stat(other + "/a.ini").st_ino if content else None
        said = one.restore()
        has(said, "-116 ", path, "stays as it is")
        equal(text_of(said.split("content is ")[1]), INI, "kept, with a file that is " + name)
        equal(os.listdir(other), ["a.ini"] if content else [], "files behind the link")
        if content:
            equal((os.stat(other + "/a.ini").st_ino, text_of(other + "/a.ini")), (before, content), name)
        one.end()


@test
def killed_at_any_moment():
    "after kill -9 at 100 random moments the next agent restores two files, byte for byte, and leaves nothing beside them"
    ini, nginx, where = written(INI, "a.ini"), written(NGINX, "nginx.conf"), folder()
    targets = [("file", "a", "net.threads", ini), ("file", "b", "sendfile", nginx), ("file", "c", "disk.new", ini)]
    chance, changed, recovered = random.Random(1), 0, 0
    for _ in range(100):
        one = Agent(where, targets, env={"LOOP": "1"})
        assert one.opened.startswith("open "), one.opened
        one.child.stdin.write("7\toff\t1\n8\ton\t?\n")
        one.child.stdin.flush()
        time.sleep(chance.expovariate(1 / 0.05))
        one.kill()
        changed += text_of(ini) != INI or text_of(nginx) != NGINX
        one = Agent(where, targets)
        recovered += one.opened not in ("open 0", "open 1", "open 2")
        one.end()
        equal((text_of(ini), text_of(nginx)), (INI, NGINX), "contents")
        equal((os.listdir(os.path.dirname(ini)), os.listdir(os.path.dirname(nginx))), (["a.ini"], ["nginx.conf"]), "files")
    equal(recovered, 0, "agents that said something else")
    assert changed > 10, changed


@test
def killed_in_each_system_call():
    "killed in any system call that changes files, and in those of a restore, nothing is lost and nothing is left"
    need("strace")
    if SAN:
        skip("a sanitizer finds no leaks under strace, and calls that a failure")
    if run(["strace", "-qq", "-o", "/dev/null", "true"])[0]:
        skip("strace may not trace here")
    ini, nginx, where = written(INI, "a.ini"), written(NGINX, "nginx.conf"), folder()
    targets = "file", "a", "net.threads", ini, "file", "b", "sendfile", nginx, "file", "c", "disk.new", ini
    for call in ("fsync", "renameat", "write"):
        killed, rc = 0, None
        while rc != 0:
            assert killed < 300, "it never came to its end: status %s" % rc
            killed += 1
            trap = lambda n: ["strace", "-qq", "-o", "/dev/null", "-e", "inject=%s:signal=KILL:when=%d" % (call, n), PROGRAM, where]
            rc = run(trap(killed) + list(targets), input="7\toff\t1\n8\ton\t?\nrestore\n")[0]
            run(trap(1 + killed % 5))
            equal(run([PROGRAM, where])[0], 0, "the next agent")
            equal((text_of(ini), text_of(nginx)), (INI, NGINX), "contents")
            equal((os.listdir(os.path.dirname(ini)), os.listdir(os.path.dirname(nginx)), os.listdir(where)), (["a.ini"], ["nginx.conf"], []),
                  "files")
        assert killed > 10, (call, killed)


@test
def journal_of_another():
    "a folder that others can write to, that is used, or whose journal is damaged is refused"
    where = folder()
    os.chmod(where, 0o750)
    has(opened(where), "closed 1 ", "chmod 700")
    os.chmod(where, 0o700)
    first = Agent(where, [])
    equal(first.opened, "open 0", "first")
    has(opened(where), "closed 16 ", "another exploration")
    first.end()
    link = where + "-link"
    os.symlink(where, link)
    has(opened(link), "closed 20 ")
    for text in ("[[3,", "{}", "[3]", "[[3]]", "[[3,\"\"]]"):
        with open(where + "/journal", "w", encoding="ascii") as out:
            out.write(text)
        has(opened(where), "closed 74 ", "damaged")


@test
def a_file_that_cannot_be_written():
    "a file without write permission, and one in a folder without, is an error; nothing is changed"
    if os.geteuid() == 0:
        skip("root may write everything")
    path = written(INI, "a.ini", 0o444)
    has(told(path), "Permission denied", path)
    os.chmod(path, 0o644)
    os.chmod(os.path.dirname(path), 0o555)
    has(told(path), "can't be replaced", path)
    os.chmod(os.path.dirname(path), 0o755)
    equal(text_of(path), INI, "content")


run_all()
