# SPDX-License-Identifier: MIT
"""
image.py - the file system that a guest starts with: a cpio archive, written without root and the same each time

Not here: what is in it (the script build, and for tests tests/guest/assemble.py), what the guest does with it (init).

A program brings the libraries it is linked with. The archive is not compressed: the emulated machine would take
longer to unpack it than to copy it.
"""
import os
import re
import stat
import subprocess


class Missing(Exception):
    """Something that the guest needs is not on this machine."""


def is_elf(path):
    with open(path, "rb") as data:
        return data.read(4) == b"\x7fELF"


class Image:
    """
    Files by their path in the guest. libraries: folders of the guest's kind of libraries, on this machine. beside:
    folders of libraries that come as a whole, and find each other.
    """

    def __init__(self, libraries, beside=()):
        self.libraries, self.beside = libraries, beside
        self.entries = {}  # path: (mode, path of the source, bytes, or numbers of the device)
        for folder in ("/proc", "/sys", "/dev", "/tmp", "/run", "/root"):
            self.folder(folder)
        # The console must be there before devtmpfs is.
        self.entries["/dev/console"] = (stat.S_IFCHR | 0o600, (5, 1))

    def folder(self, path):
        while path not in ("/", ""):
            self.entries.setdefault(path, (stat.S_IFDIR | 0o755, b""))
            path = os.path.dirname(path)

    def link(self, path, target):
        self.folder(os.path.dirname(path))
        self.entries[path] = (stat.S_IFLNK | 0o777, target.encode())

    def text(self, path, content, mode=0o644):
        self.folder(os.path.dirname(path))
        self.entries[path] = (stat.S_IFREG | mode, content.encode())

    def file(self, path, source):
        """A file; a program or library with what it is linked with."""
        if path in self.entries:
            return
        if not os.path.exists(source):
            raise Missing("%s is missing" % source)
        self.folder(os.path.dirname(path))
        executable = 0o111 if os.access(source, os.X_OK) else 0
        self.entries[path] = (stat.S_IFREG | 0o644 | executable, os.path.realpath(source))
        if is_elf(source):
            self.closure(source)

    def tree(self, path, source, wanted=lambda name: True):
        """The files of a folder that are wanted, by name, and those below."""
        for where, folders, names in os.walk(source):
            folders.sort()
            for name in sorted(names):
                if wanted(name):
                    self.file(os.path.normpath(os.path.join(path, os.path.relpath(where, source), name)),
                              os.path.join(where, name))

    def closure(self, source):
        """Add what a program or library is linked with: its interpreter, and libraries where the loader looks."""
        said = subprocess.run(["readelf", "-W", "-l", "-d", source], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL, env=dict(os.environ, LC_ALL="C")).stdout
        wanted = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
        interpreter = re.search(r"program interpreter: (.*)\]", said)
        if interpreter:
            self.file(interpreter.group(1), self.library(os.path.basename(interpreter.group(1)), source))
        for name in wanted:
            if any(os.path.exists(os.path.join(folder, name)) for folder in self.beside):
                continue
            path = self.library(name, source)
            self.file(os.path.join("/lib", name), path)

    def library(self, name, source):
        """Where a library lies on this machine."""
        for folder in self.libraries:
            path = os.path.join(folder, name)
            if os.path.exists(path):
                return path
        raise Missing("%s needs %s, which is in none of %s" % (source, name, ", ".join(self.libraries)))

    def write(self, path):
        """The archive: newc, owned by root, sorted, with no times."""
        with open(path, "wb") as out:
            for number, (name, (mode, content)) in enumerate(sorted(self.entries.items())):
                device = (0, 0)
                if stat.S_ISCHR(mode):
                    device, content = content, b""
                elif isinstance(content, str):
                    with open(content, "rb") as data:
                        content = data.read()
                put(out, number + 1, name.lstrip("/"), mode, content, device)
            put(out, 0, "TRAILER!!!", 0, b"", (0, 0))


def put(out, number, name, mode, content, device):
    """One member of a newc archive."""
    links = 2 if stat.S_ISDIR(mode) else 1
    raw = name.encode() + b"\0"
    numbers = (number, mode, 0, 0, links, 0, len(content), 0, 0, *device, len(raw), 0)
    out.write(b"070701" + b"".join(b"%08x" % n for n in numbers))
    out.write(raw + bytes(-(110 + len(raw)) % 4))
    out.write(content + bytes(-len(content) % 4))
