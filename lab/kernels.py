# SPDX-License-Identifier: MIT
"""
kernels.py - the kernels that guests boot, fetched through the system's package manager into a cache

Not here: what is built for them (cross.py, image.py), how tests boot them (tests/guest/machine.py).

apt gets a configuration and a state of its own in the cache, with the sources of this system's Debian archive and
keyring: neither the system's package lists nor its packages change, and no root is needed. What is fetched is kept,
so that a run without a network uses what an earlier one fetched; fetch(..., anew=True) looks for newer ones.
A kernel of a later suite than this system's comes with that suite's compiler (toolchain.py).
The cache, outside of the build folder so that `make clean` costs no download:
    $GUEST_CACHE, or $XDG_CACHE_HOME/pem/guests, or ~/.cache/pem/guests
        apt-<architecture>/        apt's configuration, lists and downloads under way
        <kernel>/                  vmlinuz, vmlinux where that starts sooner, release, modules/, and headers under usr/
        root-<machine>/            of a foreign machine: libraries, headers and busybox to build for it
"""
import fcntl
import glob
import lzma
import os
import re
import shutil
import subprocess

from lab import toolchain

# Suites in which Debian 12's kernels lie, by the last part of the archive's address.
SUITES = {"debian": ("bookworm", "bookworm-backports"), "debian-security": ("bookworm-security",)}
# Suites of which the newest kernel is taken, each with those that its packages need.
LATER = {"stable": ("trixie",), "backports": ("trixie-backports", "trixie"), "testing": ("testing",), "unstable": ("unstable",)}
# Modules that tests need, ext4 and jbd2 for their tracepoints, with what they need: everything else is built in.
MODULES = "loop", "brd", "null_blk", "jbd2", "mbcache", "crc16", "crc32c_generic", "ext4"
XZ = b"\xfd7zXZ\0"
# What a foreign machine's programs are built and run with.
ROOT_PACKAGES = ("busybox-static", "libc6-dev", "libbpf-dev", "libelf-dev", "zlib1g-dev", "libpfm4-dev", "libjson-c-dev",
                 "libncurses-dev", "libcmocka-dev", "libprotobuf-c-dev", "libdw-dev", "libstdc++6", "libgomp1")


class Unavailable(Exception):
    """This kernel can't be had here; the message says why, and what would change it."""


class Kernel:
    """
    One kernel of the matrix. machine: as `uname -m` says; debian: as Debian calls it; series: of the version, or a word for
    the newest version in one of these suites (names in LATER). boots: it is fetched to be booted, too.
    """

    def __init__(self, machine, debian, series, suites=(), boots=True):
        self.name = "%s-%s" % (machine, series)
        self.machine, self.debian, self.series, self.suites, self.boots = machine, debian, series, suites, boots

    @property
    def arch(self):
        """What the kernel's make calls it."""
        return {"aarch64": "arm64"}.get(self.machine, self.machine)

    @property
    def foreign(self):
        return self.machine != os.uname().machine

    @property
    def triple(self):
        return self.machine + "-linux-gnu"

    @property
    def root(self):
        """Where the guest's kind of libraries lie on this machine: of a foreign machine, in the cache."""
        return os.path.join(cache(), "root-" + self.machine) if self.foreign else "/"

    @property
    def folder(self):
        return os.path.join(cache(), self.name)

    @property
    def vmlinuz(self):
        return os.path.join(self.folder, "vmlinuz")

    @property
    def vmlinux(self):
        return os.path.join(self.folder, "vmlinux")

    @property
    def bootable(self):
        """What the emulator starts."""
        return self.vmlinux if os.path.exists(self.vmlinux) else self.vmlinuz

    @property
    def release(self):
        with open(os.path.join(self.folder, "release"), encoding="ascii") as text:
            return text.read().strip()

    @property
    def headers(self):
        """The folder that `make kmod KDIR=` takes."""
        return os.path.join(self.folder, "usr", "src", "linux-headers-" + self.release)

    @property
    def build_variables(self):
        """What changes in make's environment for this kernel."""
        own = os.path.join(self.folder, "usr", "bin")
        return {"PATH": own + ":" + os.environ["PATH"]} if self.suites else {}

    @property
    def build_arguments(self):
        """What make is told for this kernel."""
        cross = ["ARCH=" + self.arch, "CROSS_COMPILE=%s-" % self.triple] if self.foreign else []
        return ["KDIR=" + self.headers, *cross]


# Those that guests boot, and those that the module is built for, besides.
KERNELS = {k.name: k for k in (Kernel("x86_64", "amd64", "6.1"), Kernel("x86_64", "amd64", "6.12"),
                               Kernel("aarch64", "arm64", "6.1"), Kernel("aarch64", "arm64", "6.12"),
                               Kernel("x86_64", "amd64", "newest", ("backports", "testing", "unstable")))}
BUILT = {k.name: k for k in [Kernel("x86_64", "amd64", suite, (suite,), boots=False) for suite in LATER]}


def cache():
    """The folder that keeps what was fetched."""
    return os.path.abspath(os.environ.get("GUEST_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pem", "guests"))


def output(command):
    """Standard output of a command; Unavailable with the end of its complaints if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", env=dict(os.environ, LC_ALL="C", DEBIAN_FRONTEND="noninteractive"))
    if done.returncode:
        raise Unavailable("%s failed: %s" % ("%s ... %s" % (command[0], command[-1]),
                                             " ".join(done.stderr.split("\n")[-4:]).strip()))
    return done.stdout


def sources(later=None):
    """Lines of a sources.list with this system's Debian archives, turned to the suites of these kernels, or of one of LATER."""
    listed, wanted = [], {"debian": LATER[later]} if later else SUITES
    for line in output(["apt-get", "indextargets", "--format", "$(REPO_URI) $(SIGNED_BY)"]).splitlines():
        address, _, key = line.strip().partition(" ")
        suites = wanted.get(address.rstrip("/").rsplit("/", 1)[-1], ())
        for suite in suites:
            options = "[signed-by=%s] " % key if os.path.isabs(key) else ""
            listed.append("deb %s%s %s main" % (options, address, suite))
    listed = sorted(set(listed))
    if not listed:
        raise Unavailable("the kernels come from Debian's archive, which is no package source of this system")
    return listed


class Apt:
    """apt for one architecture, with a state of its own. later: a name in LATER."""

    def __init__(self, debian, later=None):
        self.folder = os.path.join(cache(), "apt-" + debian + ("-" + later if later else ""))
        self.debian, self.later = debian, later
        self.conf = os.path.join(self.folder, "apt.conf")

    def update(self):
        """Write the configuration and fetch the lists."""
        for part in ("lists/partial", "archives/partial"):
            os.makedirs(os.path.join(self.folder, part), exist_ok=True)
        settings = {"Dir::State": "", "Dir::State::lists": "lists", "Dir::State::status": "status",
                    "Dir::Cache": "", "Dir::Cache::archives": "archives", "Dir::Etc::SourceList": "sources.list"}
        with open(self.conf, "w", encoding="ascii") as text:
            for name, value in settings.items():
                text.write('%s "%s";\n' % (name, os.path.join(self.folder, value)))
            # Nothing of the system's hooks: they would touch the system. Proxies and certificates stay.
            text.write('Dir::Etc::SourceParts "/dev/null";\nAPT::Architecture "%s";\n#clear APT::Architectures;\n'
                       'APT::Architectures { "%s"; };\nAcquire::Languages "none";\nAPT::Sandbox::User "root";\n'
                       "#clear APT::Update::Post-Invoke-Success;\n#clear APT::Update::Post-Invoke;\n"
                       "#clear DPkg::Post-Invoke;\nAcquire::Retries \"2\";\nAcquire::http::Timeout \"20\";\n"
                       % (self.debian, self.debian))
        with open(os.path.join(self.folder, "sources.list"), "w", encoding="ascii") as text:
            text.write("\n".join(sources(self.later)) + "\n")
        open(os.path.join(self.folder, "status"), "w", encoding="ascii").close()
        output(["apt-get", "-c", self.conf, "-q", "--error-on=any", "update"])

    def fields(self, package):
        """Versions of a package, newest first, each with its fields."""
        shown = []
        for paragraph in output(["apt-cache", "-c", self.conf, "show", package]).split("\n\n"):
            fields = dict(re.findall(r"^(\S+): (.*)$", paragraph, re.MULTILINE))
            if fields:
                shown.append(fields)
        return shown

    def version(self, package, series):
        """Fields of the newest version of a package of this series."""
        for fields in self.fields(package):
            if self.later or fields["Version"].startswith(series + "."):
                return fields
        raise Unavailable("%s has no version %s in Debian's archive" % (package, series))

    def download(self, packages, folder):
        """Fetch packages, each "name" or "name=version", into a folder; their files."""
        before = os.getcwd()
        os.makedirs(folder)
        try:
            os.chdir(folder)  # apt-get download knows no other folder than the current one
            output(["apt-get", "-c", self.conf, "-q", "download", *packages])
        finally:
            os.chdir(before)
        found = sorted(glob.glob(os.path.join(folder, "*.deb")))
        if len(found) != len(packages):
            raise Unavailable("apt-get fetched %d files of %s" % (len(found), " ".join(packages)))
        return found

    def closure(self, packages):
        """These packages and all that they depend on, on a system that has nothing yet."""
        listed = output(["apt-get", "-c", self.conf, "-qq", "--print-uris", "--no-install-recommends",
                         "-o", "Debug::NoLocking=1", "install", *packages])
        return re.findall(r"^'\S+' ([^_]+)_\S+\.deb ", listed, re.MULTILINE)


def unpack(package, folder, *members):
    """Lay a package's files, or those of them that match, under a folder."""
    tar = ["tar", "-x", "-C", folder] + (["--wildcards", *members] if members else [])
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as source:
        done = subprocess.run(tar, stdin=source.stdout, stderr=subprocess.PIPE, text=True)
    if done.returncode or source.returncode:
        raise Unavailable("%s can't be unpacked: %s" % (os.path.basename(package), done.stderr.strip()))


def needed(fields, start):
    """The first package that the dependencies name and whose name starts so."""
    found = re.search(r"(?:^|[ ,|])(%s\S*)" % re.escape(start), fields["Depends"])
    if not found:
        raise Unavailable("%s depends on no %s*" % (fields["Package"], start))
    return found.group(1).rstrip(",")


def native():
    return output(["dpkg", "--print-architecture"]).strip()


def newest(kernel):
    """An updated Apt that knows the newest version of a kernel, and the fields of the package that names it."""
    best = None
    for later in kernel.suites or (None,):
        apt = Apt(kernel.debian, later)
        apt.update()
        meta = apt.version("linux-headers-" + kernel.debian, kernel.series)
        if not best or not subprocess.run(["dpkg", "--compare-versions", meta["Version"], "gt", best[1]["Version"]]).returncode:
            best = apt, meta
    return best


def fill(kernel, folder):
    """Fetch a kernel's headers, what compiles with them, and the kernel if it is to boot into a folder."""
    apt, meta = newest(kernel)
    own = Apt(native(), apt.later)
    if own.debian != apt.debian:
        own.update()
    downloads = os.path.join(folder, "downloads")
    version, package = meta["Version"], needed(meta, "linux-headers-")
    release = package[len("linux-headers-"):]
    headers = [f for f in apt.fields(package) if f["Version"] == version][0]
    common, kbuild = needed(headers, "linux-headers-"), needed(headers, "linux-kbuild-")
    # What runs while a module is compiled, kbuild, is this machine's.
    parts = apt.download(["%s=%s" % (linux, version) for linux in (package, common)], downloads)
    parts += own.download(["%s=%s" % (kbuild, version)], downloads + "/native")
    if kernel.suites:
        compiler = "%s-%s" % (re.match(r"gcc-\d+", needed(headers, "gcc-")).group(), kernel.triple.replace("_", "-"))
        # What a compiler's users link with is no use here.
        wanted = [name for name in own.closure([compiler, "binutils-" + kernel.triple.replace("_", "-"), kbuild])
                  if not name.endswith("-data") and not re.match(r"lib\w+san\d", name) and name != kbuild]
        parts += own.download(wanted, downloads + "/compiler")
    for path in parts:
        unpack(path, folder)
    relocate(os.path.join(folder, "usr", "src", package, "Makefile"))
    if kernel.suites:
        toolchain.wrap(folder, os.uname().machine + "-linux-gnu", ("usr/bin", "usr/libexec", "usr/lib/" + kbuild))
    if kernel.boots:
        fill_image(apt, release, version, folder)
    shutil.rmtree(downloads)
    with open(os.path.join(folder, "release"), "w", encoding="ascii") as text:
        text.write(release + "\n")


def relocate(makefile):
    """Let the Makefile of headers find others beside its own folder, in place of /usr/src."""
    with open(makefile, encoding="utf-8") as text:
        told = text.read().replace("/usr/src/", "$(pem_headers)/")
    with open(makefile, "w", encoding="utf-8") as text:
        text.write("pem_headers := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))..\n" + told)


def fill_image(apt, release, version, folder):
    """Fetch what boots. Later kernels have several packages of it."""
    image = [f for f in apt.fields("linux-image-" + release) if f["Version"] == version][0]
    parts = ["linux-image-" + release] + re.findall(r"(?:^|[ ,])(linux-(?:binary|modules)-\S+)", image["Depends"])
    unpacked = os.path.join(folder, "image")
    os.mkdir(unpacked)
    for path in apt.download(["%s=%s" % (part, version) for part in parts], os.path.join(folder, "downloads", "image")):
        unpack(path, unpacked)
    os.rename(sorted(glob.glob(os.path.join(unpacked, "**", "vmlinuz*"), recursive=True))[0], os.path.join(folder, "vmlinuz"))
    os.mkdir(os.path.join(folder, "modules"))
    for name in MODULES:
        for path in glob.glob(os.path.join(unpacked, "**", "lib", "modules", "**", name + ".ko*"), recursive=True):
            os.rename(path, os.path.join(folder, "modules", os.path.basename(path)))
    shutil.rmtree(unpacked)


def fill_root(kernel, folder):
    """Fetch what a foreign machine's programs are built with into a folder."""
    apt = Apt(kernel.debian)
    apt.update()
    for package in apt.download(apt.closure(ROOT_PACKAGES), os.path.join(folder, "downloads")):
        unpack(package, folder)
    shutil.rmtree(os.path.join(folder, "downloads"))
    shutil.rmtree(os.path.join(folder, "usr", "share"))


def decompress(kernel):
    """
    Have vmlinux beside a vmlinuz that is compressed with xz, as Debian's 6.1 of x86-64 is: the guest would take as long to
    decompress it as for the rest of its start. The emulator starts ELF that has a note for it (PVH).
    """
    if kernel.machine != "x86_64" or os.path.exists(kernel.vmlinux):
        return
    with open(kernel.vmlinuz, "rb") as data:
        content = data.read()
    start = content.find(XZ)
    if start < 0:
        return
    with open(kernel.vmlinux + ".new", "wb") as out:
        out.write(lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(content[start:]))
    os.rename(kernel.vmlinux + ".new", kernel.vmlinux)


def have(folder, fill_it, recipe, anew):
    """
    Have a folder, filled as a whole or not at all. recipe: what it is made from; another one fills it afresh. True if
    it was filled, False if it was there.
    """
    note = os.path.join(folder, "recipe")
    if not anew and os.path.exists(note):
        with open(note, encoding="ascii") as text:
            if text.read() == recipe:
                return False
    fresh = folder + ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    os.mkdir(fresh)
    try:
        fill_it(fresh)
        with open(os.path.join(fresh, "recipe"), "w", encoding="ascii") as text:
            text.write(recipe)
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return True


def fetch(kernel, anew=False):
    """Have a kernel in the cache. True if it was fetched, False if it was there; Unavailable if it can't be had."""
    needs = [(tool, "the kernels come as Debian's packages") for tool in ("apt-get", "apt-cache", "dpkg-deb", "tar")]
    needs += [("readelf", "it is in the package binutils")]
    if kernel.foreign:
        compiler = kernel.triple + "-gcc"
        needs += [(compiler, "it is in the package gcc-" + kernel.triple)]
    else:
        needs += [("busybox", "it is in the package busybox-static")]
    for tool, why in needs:
        if not shutil.which(tool):
            raise Unavailable("%s is not installed: %s" % (tool, why))
    try:
        os.makedirs(cache(), exist_ok=True)
        lock = open(os.path.join(cache(), "lock"), "w", encoding="ascii")
    except OSError as error:
        raise Unavailable("no cache for kernels: %s; name a folder in GUEST_CACHE" % error) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kernel.foreign:
            have(kernel.root, lambda folder: fill_root(kernel, folder), " ".join(ROOT_PACKAGES), anew)
        fetched = have(kernel.folder, lambda folder: fill(kernel, folder), " ".join(kernel.suites + MODULES), anew)
        if kernel.boots:
            decompress(kernel)
        return fetched
