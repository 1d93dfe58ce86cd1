# SPDX-License-Identifier: MIT
"""report_sockets: calls on sockets are on their peers, as strace -yy and the program itself say"""
import collections
import json
import os
import re
import sys

import probing
from tap import PEM, equal, need, run, run_all, test, tmp

# A server and its clients in one thread: what is sent waits until it is received. It tells which port is whose: each family
# and each protocol has ports of its own, with the same numbers. No socket is used between being bound and being connected,
# since strace goes on with the first address that it has found.
PROGRAM = r"""
import json, os, socket, sys
ports = {}
def called(s, name):
    host, port = s.getsockname()[:2]
    kind = "udp" if s.type == socket.SOCK_DGRAM else "tcp"
    ports["%s:%s:%d" % (kind, "[%s]" % host if ":" in host else host, port)] = name
def bound(family, kind, host, name):
    s = socket.socket(family, kind)
    s.bind((host, 0))
    called(s, name)
    return s
def talk(family, host, name):
    listener = bound(family, socket.SOCK_STREAM, host, name + "-server")
    listener.listen(5)
    for i in range(3):
        client = socket.socket(family, socket.SOCK_STREAM)
        client.connect(listener.getsockname()[:2])
        called(client, name + "-client%d" % i)
        server, _ = listener.accept()
        for _ in range(i + 4):
            client.send(b"x" * 10)
            server.recv(100)
            os.write(server.fileno(), b"y")
            os.read(client.fileno(), 10)
        client.close()
        server.recv(10)
        server.close()
    listener.close()
talk(socket.AF_INET, "127.0.0.1", "v4")
if len(sys.argv) > 1:
    talk(socket.AF_INET6, "::1", "v6")
one, two = (bound(socket.AF_INET, socket.SOCK_DGRAM, "127.0.0.1", n) for n in ("one", "two"))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(5):
    u.sendto(b"a", one.getsockname())
    called(u, "sender")
    u.sendto(b"b", two.getsockname())
    u.sendto(b"c", two.getsockname())
    one.recvfrom(10)
u.sendmsg([b"d"], [], 0, one.getsockname())
connected = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
connected.connect(two.getsockname())
for i in range(3):
    connected.send(b"e")
u.close()
json.dump(ports, sys.stdout)
"""
CALLS = "connect accept4 accept listen sendto recvfrom sendmsg read write close"


def has_v6():
    rc, _, _ = run([sys.executable, "-c", "import socket; socket.socket(socket.AF_INET6).bind(('::1', 0))"])
    return rc == 0


def program(text, *arguments):
    path = os.path.join(tmp(), "program.py")
    with open(path, "w", encoding="ascii") as out:
        out.write(text)
    return [sys.executable, path, *arguments]


def named(name, ports):
    "A socket's name with what the program calls its port in place of the number."
    return re.sub(r"^(\S+):(\d+)(?= |$)", lambda m: m[1] + ":" + ports.get(m[0], m[2]), name)


def recorded(command):
    "Calls on sockets by name, as pem says, and the program's standard output."
    trace = os.path.join(tmp(), "trace")
    rc, out, err = run([PEM, "record", "-q", "-e", "OS::Syscall", "-o", trace, "--", *command])
    equal(rc, 0, err)
    rc, report, err = run([PEM, "report", "--json", "--by", "syscall,file", trace])
    equal(rc, 0, err)
    return json.loads(report)["system_calls"], out


def by_strace(command):
    "Counter of (call, name) of TCP and UDP sockets, in pem's words, and the program's standard output."
    log = os.path.join(tmp(), "strace")
    rc, out, err = run(["strace", "-yy", "-o", log, "-e", "trace=" + CALLS.replace(" ", ","), *command])
    equal(rc, 0, err)
    found = collections.Counter()
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            call = re.match(r"(\w+)\(\d+<(TCP|UDP)(?:v6)?:\[(.*?)\]>[,)]", line)
            if not call:
                continue
            kind, name = call[2].lower(), call[3]
            given = re.search(r'port=htons\((\d+)\).*?(?:inet_addr\("(.*?)"\)|AF_INET6, "(.*?)")', line)
            if given and call[1] in ("connect", "sendto", "sendmsg"):
                name = "%s:%s" % (given[2] or "[%s]" % given[3], given[1])
            elif "->" in name:
                name = name.split("->")[1]
            elif name.isdigit():
                continue # A socket without an address.
            else:
                name += " (local)"
            found[call[1], "%s:%s" % (kind, name)] += 1
    return found, out


@test
def peers_of_internet_sockets():
    "each call on a TCP or UDP socket, of IPv4 and IPv6, is on the peer that strace -yy shows, as often"
    need("strace")
    probing.here()
    command = program(PROGRAM, *(["v6"] if has_v6() else []))
    calls, out = recorded(command)
    ports = json.loads(out)
    found = collections.Counter()
    for call in calls:
        if call["call"] in CALLS.split() and call.get("file", "").startswith(("tcp:", "udp:")):
            found[call["call"], named(call["file"], ports)] += call["count"]
    stated, out = by_strace(command)
    ports, wanted = json.loads(out), collections.Counter()
    for (call, name), count in stated.items():
        wanted[call, named(name, ports)] += count
    assert wanted["sendto", "tcp:127.0.0.1:v4-server"] == 4 + 5 + 6 and wanted["sendto", "udp:127.0.0.1:two"] == 13, wanted
    equal(found, wanted, "calls by peer")


@test
def peers_of_local_sockets():
    "calls of a client of a local socket are on the server's path or abstract name; those of the server on its own"
    probing.here()
    text = r"""
import os, socket
path = %r
for name in (path, "\0pem-%%d" %% os.getpid()):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(1)
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    server, _ = listener.accept()
    for _ in range(7):
        client.send(b"x")
        server.recv(1)
d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
d.bind(path + "d")
u = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
u.sendto(b"y", path + "d")
print(os.getpid())
"""
    path = os.path.join(tmp(), "s")[-100:]
    calls, out = recorded(program(text % path))
    found = {(c["call"], c.get("file")): c["count"] for c in calls if c.get("file", "").startswith("unix:")}
    for name in ("unix:" + path, "unix:@pem-" + out.strip()):
        equal((found["connect", name], found["sendto", name]), (1, 7), name)
        equal((found["accept4", name + " (local)"], found["recvfrom", name + " (local)"]), (1, 7), name + " of the server")
    equal(found["sendto", "unix:%sd" % path], 1, "a datagram")


@test
def a_refused_connection_has_a_peer():
    "a call to connect that fails is on the address that it was to reach, and what follows on that socket is not"
    probing.here()
    calls, out = recorded(program(r"""
import socket
closed = socket.socket()
closed.bind(("127.0.0.1", 0))
s = socket.socket()
try:
    s.connect(closed.getsockname())
except ConnectionRefusedError:
    print(closed.getsockname()[1])
s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
"""))
    peer = "tcp:127.0.0.1:%s" % out.strip()
    (row,) = [c for c in calls if c["call"] == "connect" and c.get("file") == peer]
    equal((row["count"], row["failed"]), (1, 1), "calls, failed ones")
    assert not [c for c in calls if c["call"] == "setsockopt" and c.get("file") == peer], calls


run_all()
