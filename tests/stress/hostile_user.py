# SPDX-License-Identifier: MIT
"""
hostile_user.py - what runtime_folder.py runs as an ordinary user: random attacks on a session through his runtime folder

Use: hostile_user.py FOLDER CANARY PID SEED SECONDS COMMAND... FOLDER: his runtime folder; CANARY: a folder of root's that he
may read; PID: of a process of another user's; COMMAND: a program of his with libpem, which is asked for events.
Or: hostile_user.py --public FOLDER CANARY MODEL SEED SECONDS COMMAND... FOLDER: the public folder of root's session, which he can't
list; MODEL: a name there which a program of another user's has, or will want to have.

Each run takes some kinds of attack by chance, and does them in a random order until its time is over. With an even seed it
runs in a user and mount namespace of its own. An attack that the system refuses is not repeated. Prints how often each was done.
"""
import ctypes
import fcntl
import mmap
import os
import random
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MNT_DETACH = 4096, 2
RENAME_EXCHANGE = 2
POOL_HEADER = 320
NUMBERS = [0, 1, 2, 3, 63, 64, 65, 4095, 4096, 65535, 65536, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
WIDE = NUMBERS + [1 << 32, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


class Hostile:
    """The user: his folders, his programs, his dice."""

    def __init__(self, folder, canary, pid, seed, command):
        self.folder, self.canary, self.pid, self.command = folder, canary, pid, command
        self.dice = random.Random(seed)
        self.programs, self.held = [], []
        self.done = {}

    # --- names ---

    def session(self):
        """The session's folder, or another by such a name."""
        found = [name for name in os.listdir(self.folder) if name.startswith("session-")]
        return os.path.join(self.folder, self.dice.choice(found)) if found else self.folder

    def parent(self):
        return self.dice.choice((self.folder, self.session()))

    def new_name(self):
        """A name that means something to a session, or nearly."""
        number = self.dice.choice(["1", str(os.getpid()), str(self.pid), "0", "4294967295", "99999999999", "x" * self.dice.randrange(1, 200)])
        return os.path.join(self.parent(), self.dice.choice(("control-%s-0", "control-%s", "pool-%s-1", "pool-%s-2", "model-%s", "session-%s",
                                                             "model-0000000%.1s", "config%.0s", "%s", "control-\n%s", "pool-%s-\x9b")) % number)

    def old_name(self):
        """Any name that is there."""
        folder = self.parent()
        names = os.listdir(folder)
        return os.path.join(folder, self.dice.choice(names)) if names else self.new_name()

    def real(self, kind):
        """A file of a program's, of a kind: its path."""
        folder = self.folder if kind == "control-" else self.session()
        names = [name for name in os.listdir(folder) if name.startswith(kind)]
        return os.path.join(folder, self.dice.choice(names)) if names else None

    @staticmethod
    def open(path, flags):
        """Waits for nobody: it may be a pipe by now."""
        return open(os.open(path, flags | os.O_NONBLOCK, 0o600), "wb" if flags & os.O_CREAT else "r+b")

    # --- attacks on names ---

    def make_file(self):
        with self.open(self.new_name(), os.O_RDWR | os.O_CREAT) as file:
            file.write(os.urandom(self.dice.randrange(64)))

    def make_folder(self):
        os.mkdir(self.new_name(), self.dice.choice((0, 0o500, 0o700, 0o777)))

    def make_fifo(self):
        os.mkfifo(self.new_name())

    def make_socket(self):
        one = socket.socket(socket.AF_UNIX)
        one.bind(self.new_name()[-100:] if self.dice.random() < 0.1 else self.new_name())
        one.close()

    def hard_link(self):
        os.link(self.old_name(), self.new_name())

    def hard_links(self):
        "one file by hundreds of names"
        old = self.old_name()
        for i in range(300):
            os.link(old, "%s-%d" % (self.new_name()[:-2], i))

    def symbolic_link(self):
        os.symlink(self.dice.choice((self.canary, self.canary + "/keep", self.old_name(), "/dev/zero", "/proc/self/mem", ".", "/")), self.new_name())

    def rename(self):
        os.rename(self.old_name(), self.new_name())

    def exchange(self):
        if libc.renameat2(-100, os.fsencode(self.old_name()), -100, os.fsencode(self.old_name()), RENAME_EXCHANGE):
            raise OSError(ctypes.get_errno(), "exchange")

    def exchange_session(self):
        "another folder in the place of the session's, and back"
        session, other = self.session(), os.path.join(self.folder, "other")
        os.makedirs(other, exist_ok=True)
        for _ in range(10):
            libc.renameat2(-100, os.fsencode(session), -100, os.fsencode(other), RENAME_EXCHANGE)

    def remove(self):
        name = self.old_name()
        if stat.S_ISDIR(os.lstat(name).st_mode):
            os.rmdir(name)
        else:
            os.unlink(name)

    def remove_session(self):
        session = self.session()
        if session != self.folder:
            for name in os.listdir(session):
                os.unlink(os.path.join(session, name))
            os.rmdir(session)

    def flood(self):
        "thousands of names at a time; then they are taken away"
        kind, folder, names = self.dice.choice(("control-%d-9", "pool-%d-9", "model-%08x")), self.parent(), []
        for i in range(self.dice.choice((300, 5000))):
            names.append(os.path.join(folder, kind % i))
            os.close(os.open(names[-1], os.O_CREAT | os.O_WRONLY, 0o600))
        for name in names:
            os.unlink(name)

    # --- attacks on sizes, modes and locks ---

    def truncate(self):
        os.truncate(self.old_name(), self.dice.choice((0, 1, 63, 64, 4095, 4096, 65536)))

    def cut_and_grow(self):
        name = self.old_name()
        size = os.stat(name).st_size
        os.truncate(name, self.dice.choice((0, 4096)))
        os.truncate(name, size)

    def grow(self):
        os.truncate(self.old_name(), self.dice.choice((1 << 20, 1 << 30, 1 << 40, (1 << 40) - 1, 1 << 42)))

    def change_mode(self):
        name = self.dice.choice((self.folder, self.session(), self.old_name()))
        os.chmod(name, self.dice.choice((0, 0o400, 0o777, 0o2777, 0o1700, 0o4755)))
        if self.dice.random() < 0.9:
            os.chmod(name, 0o700)

    def lock(self):
        fd = os.open(self.session(), os.O_RDONLY)
        try:
            fcntl.flock(fd, self.dice.choice((fcntl.LOCK_SH, fcntl.LOCK_EX)) | fcntl.LOCK_NB)
        finally:
            self.hold(fd)

    def lease(self):
        fd = os.open(self.old_name(), os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, self.dice.choice((fcntl.F_RDLCK, fcntl.F_WRLCK)))
        finally:
            self.hold(fd)

    def hold(self, fd):
        self.held.append(fd)
        if len(self.held) > 100:
            os.close(self.held.pop(0))

    def set_attributes(self):
        "immutable, append-only and the like, which only root may set; and an attribute of his own"
        name = self.old_name()
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.ioctl(fd, 0x40086602, struct.pack("L", self.dice.choice((0x10, 0x20, 0x80, 0x40))))
        except OSError:
            os.setxattr(fd, "user.pem", b"x" * 1000)
        finally:
            os.close(fd)

    # --- attacks on what files say ---

    def scribble(self, path, spots):
        """Random members of a file that a session may have mapped."""
        with self.open(path, os.O_RDWR) as file:
            size = min(os.fstat(file.fileno()).st_size, 4 << 20)
            if size < 4096:
                return
            with mmap.mmap(file.fileno(), size) as memory:
                for _ in range(self.dice.randrange(1, 20)):
                    start, end = self.dice.choice(spots)
                    at = self.dice.randrange(start, min(end, size) - 7) & ~3
                    if self.dice.random() < 0.5:
                        memory[at:at + 4] = struct.pack("<I", self.dice.choice(NUMBERS + [os.getpid(), self.pid]))
                    elif self.dice.random() < 0.7:
                        at &= ~7
                        memory[at:at + 8] = struct.pack("<Q", self.dice.choice(WIDE))
                    else:
                        memory[at:at + 8] = os.urandom(8)

    def scribble_control(self):
        path = self.real("control-")
        if path:
            self.scribble(path, ((4, 64), (64, 576), (576, 4096), (4096, 1 << 20)))

    def scribble_pool(self):
        path = self.real("pool-")
        if path:
            self.scribble(path, ((4, POOL_HEADER), (POOL_HEADER, 1 << 16), (POOL_HEADER, 4 << 20)))

    def scribble_page(self):
        path = os.path.join(self.session(), "config")
        if os.path.exists(path):
            self.scribble(path, ((0, 128), (128, 1 << 16)))

    def copy(self, kind, name, spots):
        """A file of a program's by another name, some of it changed."""
        path = self.real(kind)
        if not path:
            return
        target = os.path.join(os.path.dirname(path), name)
        with self.open(path, os.O_RDWR) as file, self.open(target + ".new", os.O_RDWR | os.O_CREAT) as to:
            to.write(file.read(1 << 20))
            to.truncate(os.fstat(file.fileno()).st_size)
        self.scribble(target + ".new", spots)
        os.rename(target + ".new", target)

    def false_control(self):
        self.copy("control-", "control-%d-%d" % (self.dice.choice((1, self.pid, os.getpid(), 4194303)), self.dice.randrange(300)), ((4, 64), (64, 1024)))

    def false_pool(self):
        self.copy("pool-", "pool-%d-%d" % (self.dice.choice((1, self.pid, os.getpid(), 4194303)), self.dice.randrange(300)),
                  ((4, POOL_HEADER), (POOL_HEADER, 1 << 16)))

    def false_model(self):
        "texts that contradict, are endless, nested, cut off, or none"
        event = "event\t82160df3\tAPP::Probe::Tick\tAPP\tProbe\tTick\t1\tinfo\t-\t\t-\tstub\t\t24\t24\t2\t9\t\t\tone\n"
        field = "field\t%s\t%s\t-\t10\t-\t%d\t1\t\t-\t0\tf\n"
        text = self.dice.choice((
            "pem-model\t2\n" + event + field % ("who", "string", self.dice.choice((8, 16, -1))) + field % ("number", "uint32", 16),
            "pem-model\t2\n" + event + "".join(field % ("f%d" % i, "uint64", 8 * i) for i in range(3000)),
            "pem-model\t2\n" + "".join(event.replace("82160df3", "%08x" % i).replace("Tick", "T%d" % i) for i in range(5000)),
            "pem-model\t2\n" + event + "struct\t{" * 5000,
            "pem-model\t2\nevent {" + "a := struct {" * 5000,
            "pem-model\t2\n" + event + field % ("x" * 100000, "uint64", 8),
            "pem-model\t%d\n" % self.dice.choice(NUMBERS),
            event, "\0" * 4096, "\xff" * 70000))
        number = self.dice.choice([0x82160df3, self.dice.getrandbits(32), self.dice.randrange(200)])
        path = self.real("model-") if self.dice.random() < 0.3 else None
        with self.open(path or os.path.join(self.session(), "model-%08x" % number), os.O_RDWR | os.O_CREAT) as file:
            file.truncate(0)
            file.write(text.encode("latin-1"))
            if self.dice.random() < 0.1:
                file.truncate(self.dice.choice((20 << 20, 63 << 20, 65 << 20, 1 << 40)))

    # --- programs, helpers, mounts ---

    def ask(self):
        """A program of his is started or asked for events, as any is."""
        if len(self.programs) < 3 or self.dice.random() < 0.1:
            self.programs.append(subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                                  text=True, bufsize=1))
        if len(self.programs) > 4:
            gone = self.programs.pop(0)
            gone.kill()
            gone.communicate()
        one = self.dice.choice(self.programs)
        try:
            one.stdin.write("%s %d\n" % (self.dice.choice(("tick", "tick", "thread", "fork")), self.dice.choice((1, 30, 1000))))
        except OSError:
            self.programs.remove(one)
            one.communicate()

    def helpers(self):
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and open("/proc/%s/comm" % name, encoding="ascii").read() == "pem-confined\n":
                    found.append(int(name))
            except OSError:
                pass
        return found

    def signal_helper(self, number):
        for pid in self.helpers():
            try:
                os.kill(pid, number)
            except PermissionError:  # another user's
                pass

    def stop_helper(self):
        self.signal_helper(signal.SIGSTOP)
        time.sleep(self.dice.choice((0.001, 0.02, 0.2)))
        self.signal_helper(signal.SIGCONT)

    def stop_helper_for_good(self):
        self.signal_helper(signal.SIGSTOP)

    def kill_helper(self):
        self.signal_helper(self.dice.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGBUS)))

    def mount(self, what, where, kind, flags=0, options=""):
        if libc.mount(os.fsencode(what), os.fsencode(where), os.fsencode(kind), flags, os.fsencode(options) or None):
            raise OSError(ctypes.get_errno(), "mount")

    def mount_small(self):
        self.mount("none", self.parent(), "tmpfs", 0, self.dice.choice(("size=4k", "size=64k", "nr_inodes=3", "size=16m")))

    def mount_canary(self):
        self.mount(self.dice.choice((self.canary, "/etc", "/proc")), self.dice.choice((self.folder, self.session(), self.parent())), "none", MS_BIND)

    def mount_overlay(self):
        self.mount("none", self.folder, "overlay", 0, "lowerdir=%s:%s" % (self.canary, self.folder))

    def unmount(self):
        libc.umount2(os.fsencode(self.parent()), MNT_DETACH)

    # ---

    ORDINARY = ("make_file make_folder make_fifo make_socket hard_link symbolic_link rename exchange remove truncate cut_and_grow grow "
                "change_mode lock lease set_attributes scribble_control scribble_pool scribble_page false_control false_pool "
                "false_model ask").split()
    # At most once a run each: they end the session here, or take long.
    RARE = "hard_links exchange_session remove_session flood stop_helper stop_helper_for_good kill_helper".split()
    MOUNTS = "mount_small mount_canary mount_overlay unmount".split()

    def run(self, seconds, mounts):
        kinds = self.dice.sample(self.ORDINARY, self.dice.randrange(3, 12)) + ["ask", "ask"]
        rare = self.dice.sample(self.RARE, min(len(self.RARE), self.dice.choice((0, 1, 1, 2))))
        if mounts:
            kinds += self.dice.sample(self.MOUNTS, 2)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            name = self.dice.choice(kinds)
            if rare and self.dice.random() < 0.003:
                name = rare.pop()
            try:
                getattr(self, name)()
                self.done[name] = self.done.get(name, 0) + 1
            except (OSError, ValueError, mmap.error):
                pass  # refused by the system: so it is no attack
            if name.startswith("mount") or self.dice.random() < 0.1:
                time.sleep(0.001)


class PublicHostile(Hostile):
    """The same in the public folder of root's session: he knows the names that he has made, and those that everybody knows."""

    OWN_MAX = 500  # names: a folder of thousands is not read to its end, which is said, and no harm done

    def __init__(self, folder, canary, model, seed, command):
        super().__init__(folder, canary, 1, seed, command)
        self.known = ["config", "session", model]
        self.model = model
        self.own = []

    def session(self):
        return self.folder

    def parent(self):
        return self.folder

    def new_name(self):
        number = self.dice.choice(["1-1", "%d-%d" % (os.getpid(), self.dice.getrandbits(32)), "1", "99999999999-1", "-1-1", "x" * self.dice.randrange(1, 200)])
        name = self.dice.choice(("counts-%s", "pool-%s", "model-%s", "refused-%s-28", "refused-%s", "counts-%s\n", "%s", self.model + "%.0s",
                                 "config.new%.0s")) % number
        self.own.append(name)
        while len(self.own) > self.OWN_MAX:
            self.discard(self.own.pop(0))
        return os.path.join(self.folder, name)

    def discard(self, name):
        path = os.path.join(self.folder, name)
        try:
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.rmdir(path)
            else:
                os.unlink(path)
        except OSError:
            pass

    def old_name(self):
        return os.path.join(self.folder, self.dice.choice(self.own[-50:] * 3 + self.known))

    def real(self, kind):
        """A file that a program of his has mapped."""
        found = []
        for one in self.programs:
            try:
                with open("/proc/%d/maps" % one.pid, encoding="latin-1") as maps:
                    found += [line.split(None, 5)[5].strip() for line in maps if os.path.join(self.folder, kind) in line]
            except OSError:
                pass
        return self.dice.choice(found) if found else None

    def hard_links(self):
        "one file by hundreds of names"
        old = self.old_name()
        for i in range(300):
            self.own.append("%s-1-%d" % (self.dice.choice(("counts", "pool")), i))
            os.link(old, os.path.join(self.folder, self.own[-1]))

    def false_counts(self):
        "numbers that nobody counted, of every size, locked or not"
        with self.open(self.new_name(), os.O_RDWR | os.O_CREAT) as file:
            file.write(struct.pack("<4sI", b"PEMC", 1) + os.urandom(self.dice.choice((0, 100, 200, 201, 5000))))
            file.flush()
            if self.dice.random() < 0.5:
                fcntl.flock(file, self.dice.choice((fcntl.LOCK_SH, fcntl.LOCK_EX)) | fcntl.LOCK_NB)
                self.hold(os.dup(file.fileno()))

    def scribble_counts(self):
        path = self.real("counts-")
        if path:
            with self.open(path, os.O_RDWR) as file:
                file.seek(self.dice.randrange(200))
                file.write(os.urandom(8))

    def cut_counts(self):
        "which ends his program, should it count"
        path = self.real("counts-")
        if path:
            os.truncate(path, self.dice.choice((0, 100, 208, 4096)))

    def refuse(self):
        name = os.path.join(self.folder, "refused-%d-%d-%d" % (os.getpid(), self.dice.getrandbits(32), self.dice.choice((1, 13, 28, 0, 4095, 9999))))
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))

    def lock(self):
        "also what root's session is told alive by"
        fd = os.open(self.old_name(), os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.flock(fd, self.dice.choice((fcntl.LOCK_SH, fcntl.LOCK_EX)) | fcntl.LOCK_NB)
        finally:
            self.hold(fd)

    def false_model(self):
        with self.open(os.path.join(self.folder, self.model), os.O_RDWR | os.O_CREAT) as file:
            file.write(b"pem-model\t2\n" + os.urandom(100))

    ORDINARY = ("make_file make_folder make_fifo make_socket hard_link symbolic_link rename exchange remove truncate cut_and_grow grow "
                "change_mode lock lease set_attributes scribble_pool false_pool false_model false_counts scribble_counts cut_counts refuse").split()
    RARE = ["hard_links"]


def enter_namespaces():
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
        return False
    for name, text in ("setgroups", "deny"), ("uid_map", "0 %d 1" % uid), ("gid_map", "0 %d 1" % gid):
        with open("/proc/self/" + name, "w", encoding="ascii") as file:
            file.write(text)
    return True


def main():
    is_public = sys.argv[1] == "--public"
    folder, canary, other, seed, seconds, *command = sys.argv[1 + is_public:]
    if is_public:
        hostile = PublicHostile(folder, canary, other, int(seed), command)
    else:
        hostile = Hostile(folder, canary, int(other), int(seed), command)
    signal.signal(signal.SIGBUS, signal.SIG_DFL)
    hostile.run(float(seconds), not is_public and int(seed) % 2 == 0 and enter_namespaces())
    for one in hostile.programs:
        one.kill()
        one.wait()
    print(" ".join("%s=%d" % pair for pair in sorted(hostile.done.items())))


if __name__ == "__main__":
    main()
