# SPDX-License-Identifier: MIT
"""
page_size_runs.py - runs of programs under ways to give them large pages: settings of the machine, time, large pages used

Not here: which programs (page_size_workloads.py), what follows from the times (page_size_metrics.py).

What a run is timed by is CPU time in user and system mode, of the program and of its children that it waited for: another program
on the machine changes it less than it changes the time that passed.
"""
import fcntl
import mmap
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time

from measure import BUILD, Missing, cpus

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
POOL = "/proc/sys/vm/nr_hugepages"
DAMON = "/sys/kernel/mm/damon/admin"
LARGE = 2 << 20
LIBRARY = os.path.join(BUILD, "lib", "pem", "libpem-page-size.so")
PROGRAM_CPU, OTHER_CPU = cpus()
SAMPLE_S = 0.02
LARGE_LINES = ("AnonHugePages", "Private_Hugetlb", "Shared_Hugetlb")
NO_LIMIT = 1 << 62


class Setting:
    """
    A file of the kernel's that holds another value while a with-block runs. A child puts the old one back when it reads the end of a
    pipe from us, so this happens in whatever way this process ends. Needs root; raises Missing.
    """

    def __init__(self, path, value):
        self.path, self.value = path, str(value)

    def now(self):
        with open(self.path, encoding="utf-8") as f:
            text = f.read().strip()
        chosen = re.search(r"\[(\w+)\]", text)
        return chosen.group(1) if chosen else text

    def __enter__(self):
        try:
            before = self.now()
        except OSError as why:
            raise Missing("%s: %s" % (self.path, why.strerror)) from None
        self.child = subprocess.Popen(["sh", "-c", 'read -r line; printf %s "$1" >"$2"', "sh", before, self.path],
                                      stdin=subprocess.PIPE, start_new_session=True)
        try:
            with open(self.path, "w", encoding="utf-8") as f:
                f.write(self.value)
        except OSError as why:
            self.__exit__()
            raise Missing("%s can't be set to %s: %s" % (self.path, self.value, why.strerror)) from None
        if self.now() != self.value:
            got = self.now()
            self.__exit__()
            raise Missing("%s is %s, and %s was asked for" % (self.path, got, self.value))
        return self

    def __exit__(self, *why):
        self.child.stdin.close()
        self.child.wait()


def alone():
    """A file that is locked until it is closed: what one benchmark sets would change another's runs. It waits for others to end."""
    held = open(THP, "rb")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("    waiting for another run of this benchmark to end", flush=True)
        fcntl.flock(held, fcntl.LOCK_EX)
    return held


class Way:
    """A way to run a program: variables, libraries to preload, settings of the machine. missing: why it can't be had here."""

    def __init__(self, name, env=None, preload=None, settings=(), missing=""):
        self.name, self.env, self.settings, self.missing = name, dict(env or {}), list(settings), missing
        if preload:
            self.env["LD_PRELOAD"] = preload


class Run:
    """Times in s. large_bytes, resident_bytes: at the peak, of a run that was sampled."""

    def __init__(self, usage, wall_s, output="", large_bytes=0, resident_bytes=0):
        self.user_s, self.system_s, self.wall_s, self.output = usage.ru_utime, usage.ru_stime, wall_s, output
        self.seconds = usage.ru_utime + usage.ru_stime
        self.large_bytes, self.resident_bytes = large_bytes, resident_bytes


class Sampler(threading.Thread):
    """Reads every 20 ms what memory a process has. A run with one is not timed: reading holds the lock of the memory map."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.large, self.resident, self.ended = pid, 0, 0, threading.Event()

    def run(self):
        while not self.ended.wait(SAMPLE_S):
            try:
                with open("/proc/%d/smaps_rollup" % self.pid, encoding="utf-8") as f:
                    sizes = dict(re.findall(r"^(\w+): +(\d+) kB", f.read(), re.MULTILINE))
            except OSError:
                continue
            large = [int(sizes.get(line, 0)) << 10 for line in LARGE_LINES]
            self.large = max(self.large, sum(large))
            # Pages of hugetlbfs are not among the resident ones.
            self.resident = max(self.resident, (int(sizes.get("Rss", 0)) << 10) + sum(large[1:]))


class Started:
    """A command on its CPU that was started; finish() waits for it. The command's status must be 0, or Missing is raised."""

    def __init__(self, words, env=None, sampled=False, output=subprocess.DEVNULL, cwd=None):
        self.words, self.begin = words, time.monotonic()
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(["taskset", "-c", str(PROGRAM_CPU), *words], env={**os.environ, **(env or {})},
                                      stdin=subprocess.DEVNULL, stdout=output, stderr=self.errors, cwd=cwd)
        self.sampler = Sampler(self.child.pid) if sampled else None
        if self.sampler:
            self.sampler.start()

    def finish(self, output=""):
        try:
            _, status, usage = os.wait4(self.child.pid, 0)
        except BaseException:
            self.child.kill()
            raise
        wall = time.monotonic() - self.begin
        self.child.returncode = os.waitstatus_to_exitcode(status)
        if self.sampler:
            self.sampler.ended.set()
            self.sampler.join()
        with self.errors:
            self.errors.seek(0)
            said = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        if self.child.returncode:
            raise Missing("%s ended with status %d%s" % (os.path.basename(self.words[0]), self.child.returncode,
                                                         ": " + said[-1] if said else ""))
        return Run(usage, wall, output, *((self.sampler.large, self.sampler.resident) if self.sampler else ()))


def warm(count):
    """
    Touch so much memory and give it back. A hypervisor that takes free memory from its guest gives it again at the next touch, which
    may take longer than all else that a first touch does, and would fall on whichever run comes first.
    """
    with mmap.mmap(-1, max(count, LARGE) + LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, len(memory), mmap.PAGESIZE):
            memory[at] = 1


def library(name):
    """A shared library of the system by its file's name, or None."""
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib64"):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


def preloaded(name, file, package, env):
    path = library(file)
    return Way(name, env, path, missing="" if path else "%s is missing (%s)" % (file, package))


def peers(footprint):
    """What a user would choose instead, for a program of this footprint in bytes."""
    pool = footprint // LARGE * 5 // 4 + 16
    root = "" if os.geteuid() == 0 else "settings of the machine need root"
    return [
        Way("thp_always", settings=[(THP, "always")], missing=root),
        Way("glibc_hugetlb_1", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        Way("glibc_hugetlb_2", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=2"}, settings=[(POOL, pool)], missing=root),
        preloaded("jemalloc_thp", "libjemalloc.so.2", "libjemalloc2", {"MALLOC_CONF": "thp:always"}),
        preloaded("mimalloc_large", "libmimalloc.so.2.0", "libmimalloc2.0",
                  {"MIMALLOC_LARGE_OS_PAGES": "1", "MIMALLOC_ALLOW_LARGE_OS_PAGES": "1"}),
    ]


def damon_missing():
    """Why DAMON's scheme for large pages is not among the peers."""
    if not os.path.isdir(DAMON):
        return "this kernel has no DAMON with sysfs (CONFIG_DAMON_SYSFS)"
    config = "/proc/config.gz"
    if os.path.exists(config):
        text = subprocess.run(["zcat", config], stdout=subprocess.PIPE, check=False).stdout.decode()
        if "CONFIG_DAMON_VADDR=y" not in text:
            return "this kernel's DAMON can't watch a process (CONFIG_DAMON_VADDR), which its scheme 'hugepage' needs"
    return "this benchmark does not drive it yet"


def directives(path, keys, digits, budget=NO_LIMIT):
    """Write the file that the preloaded library reads: the sites with digit 1 get large pages, the others an arena of small ones."""
    lines = ["pem-page-size 1", "budget %d" % budget, "report %s.report" % path]
    lines += ["site\t%d\t0\t%s" % (LARGE if digit == "1" else 4096, key) for key, digit in zip(keys, digits)]
    for name, text in ((path, "\n".join(lines) + "\n"), (path + ".report", "")):
        with open(name, "w", encoding="utf-8") as f:
            os.fchmod(f.fileno(), 0o600)
            f.write(text)


def mapped(name, path):
    """A program with the directives of this file."""
    return Way(name, {"PEM_PAGE_SIZE": path}, LIBRARY, missing="" if os.path.exists(LIBRARY) else "there is no %s" % LIBRARY)


def tool_missing(*names):
    """A sentence that names the first of these commands that is not installed, or ''."""
    return next(("%s is not installed (tools/deps bench)" % name for name in names if not shutil.which(name)), "")
