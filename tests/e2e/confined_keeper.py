# SPDX-License-Identifier: MIT
"""
confined_keeper.py - the keeper of pem-confined by hand: this test is its session

Not here: what a session makes of its messages (unit/session_dirs.c), what it may do (attack_folders.py).
"""
import fcntl
import os
import signal
import socket
import struct
import subprocess

from patience import HANG_S
from tap import BUILD, equal, run_all, test, tmp

KEEPER = 2
PAGE, OVER = 3, 9
PAGE_BYTES = 65536
REPLY = struct.Struct("=IIiIQ64s")
LISTED = 65536  # names of a folder that a keeper reads


class Keeper:
    """A keeper in a folder, which makes the session there."""

    def __init__(self, folder, session):
        self.socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(HANG_S)
        self.socket.send(struct.pack("=5I64II32s", KEEPER, 0, os.geteuid(), os.getegid(), 0, *[0] * 64, PAGE_BYTES,
                                     session.encode()))
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, 16) for fd in (its.fileno(), opened)]
        os.close(opened)
        its.close()
        self.child = subprocess.Popen([os.path.join(BUILD, "lib", "pem", "pem-confined")], close_fds=False,
                                      preexec_fn=lambda: [os.dup2(moved[i], 3 + i) for i in range(2)])
        for fd in moved:
            os.close(fd)

    def hear(self):
        """The next message: (kind, number, value)."""
        message, fds, _, _ = socket.recv_fds(self.socket, REPLY.size, 1)
        for fd in fds:
            os.close(fd)
        return REPLY.unpack(message)[:3]

    def end(self):
        self.socket.close()
        self.child.wait()


def take_locks(folder, rounds):
    """In a process of its own: look at each session as soon as it is there, as programs do."""
    child = os.fork()
    if child:
        return child
    signal.alarm(HANG_S)  # nobody makes a further session if the test has failed
    for i in range(rounds):
        path = os.path.join(folder, "session-1-%d" % i)
        while not os.path.exists(path + ".over"):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                continue
            end = os.times().elapsed + 0.002
            while os.times().elapsed < end:
                pass
            os.close(fd)
            break
    os._exit(0)


@test
def program_looks_at_a_new_session():
    "a program that looks whether a session lives does not keep the keeper from making it"
    folder, rounds = tmp(), 100
    child = take_locks(folder, rounds)
    heard = []
    for i in range(rounds):
        keeper = Keeper(folder, "session-1-%d" % i)
        heard.append(keeper.hear()[0])
        keeper.end()
        open(os.path.join(folder, "session-1-%d.over" % i), "w", encoding="ascii").close()
    os.waitpid(child, 0)
    equal(heard, [PAGE] * rounds, "first messages")


@test
def more_names_than_are_read():
    "of a folder with more names than a keeper reads the session is told"
    folder = tmp()
    os.mkdir(os.path.join(folder, "0"))
    for i in range(2):
        open(os.path.join(folder, "0", "%d" % i), "w", encoding="ascii").close()
    there = os.open(folder, os.O_RDONLY)
    for i in range(LISTED + 5000):  # a listing may end a few thousand names later
        os.link("0/%d" % (i % 2), "%d" % (i + 1), src_dir_fd=there, dst_dir_fd=there)
    os.close(there)
    keeper = Keeper(folder, "session-1-1")
    heard = [keeper.hear() for _ in range(2)]
    keeper.end()
    equal([(kind, value) for kind, _, value in heard], [(PAGE, 0), (OVER, 1)], "messages")


run_all()
