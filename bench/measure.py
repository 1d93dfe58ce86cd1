# SPDX-License-Identifier: MIT
"""
measure.py - what benchmarks in Python share: which cases are asked for, rows and JSON lines, LTTng beside us

Not here: any case. What the environment asks for is in bench.h.
"""
import ctypes
import functools
import glob
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.dirname(HERE)
PEM = os.path.join(BUILD, "bin", "pem")
RAISE = os.path.join(HERE, "raise")
QUICK = "BENCH_QUICK" in os.environ
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
CLONE_NEWNS = 0x20000


class Missing(Exception):
    """What a peer lacks here."""


def wanted(*cases):
    """Those that are asked for; prints all if only their names are."""
    if "BENCH_LIST" in os.environ:
        print("\n".join(cases))
        return []
    return [c for c in cases if os.environ.get("BENCH_CASE", "") in c]


def cpus():
    """Two that this process may run on: (for the program, for whoever observes it); the same twice if there is one."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[-1], allowed[-2] if len(allowed) > 1 else allowed[-1]


@functools.lru_cache
def uninterrupted():
    """Words that run a program so that no other interrupts it, where that is allowed and whoever observes it has another CPU."""
    words = ["chrt", "-f", "1"]
    allowed = shutil.which("chrt") and cpus()[0] != cpus()[1] and not subprocess.run(words + ["true"], stderr=subprocess.DEVNULL).returncode
    return words if allowed else []


def heading(bench, text=""):
    print("%-22s %9s %9s %9s  %s" % (bench, "median", "min", "max", text), flush=True)


def report(bench, case, unit, values, peer=None, theirs=(), note="", digits=3, **more):
    """A row, and a line of JSON; more goes into the latter."""
    value = statistics.median(values)
    line = {"bench": bench, "case": case, "unit": unit, "value": value, "min": min(values), "max": max(values),
            "runs": len(values)}
    text = "%-22s %9.*f %9.*f %9.*f  %s" % (case, digits, value, digits, min(values), digits, max(values), unit)
    if peer and len(theirs):
        other = statistics.median(theirs)
        line.update(peer=peer, peer_value=other)
        text += "   %s %.*f %s" % (peer, digits, other, unit)
        if other > 0 and value > 0 and not unit.startswith("%"):
            line["ratio"] = value / other
            text += ", ratio %.3f" % line["ratio"]
    elif peer:
        text += "   %s not here" % peer
    line.update(more)
    print(text + ("   " + note if note else ""), flush=True)
    if os.environ.get("BENCH_OUT"):
        with open(os.environ["BENCH_OUT"], "a", encoding="utf-8") as out:
            out.write(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()},
                                 separators=(",", ":")) + "\n")


def ratio_interval(ours, theirs):
    """95 % of the ratios of medians of runs drawn again (Efron, Ann. Stat. 7, 1979); a pair of runs stays together."""
    chance = random.Random(1)
    pairs = list(zip(ours, theirs))
    ratios = []
    for _ in range(2000):
        drawn = chance.choices(pairs, k=len(pairs))
        ratios.append(statistics.median(a for a, _ in drawn) / statistics.median(b for _, b in drawn))
    ratios.sort()
    return ratios[49], ratios[1949]


class Folder:
    """A folder of ours on tmpfs, or on the disk of TMPDIR, with PEM_RUNTIME_DIR in it; gone in the end."""

    def __init__(self, memory=True):
        self.where = MEMORY if memory else None

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="pem-bench-", dir=self.where)
        os.environ["PEM_RUNTIME_DIR"] = self.runtime = os.path.join(self.path, "run")
        return self

    def __exit__(self, *why):
        shutil.rmtree(self.path, ignore_errors=True)

    def fresh(self, name):
        path = os.path.join(self.path, name)
        shutil.rmtree(path, ignore_errors=True)
        return path


def balance(trace):
    """(produced, delivered, discarded, overwritten) of a finished trace, all events."""
    sums = [0, 0, 0, 0]
    with open(os.path.join(trace, ".pem", "balance"), encoding="utf-8") as f:
        for line in f:
            cells = line.split("\t")
            if cells[0] == "event":
                sums = [a + int(b) for a, b in zip(sums, cells[2:6])]
    return sums


def recorder_cpu_ns(trace):
    with open(os.path.join(trace, ".pem", "run"), encoding="utf-8") as f:
        return int(re.search(r"recorder_cpu_ns=(\d+)", f.read()).group(1))


def cpu_ns(pid):
    """User and system time of a process's threads so far."""
    total = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        try:
            with open(path, encoding="utf-8") as f:
                total += int(f.read().split()[0])
        except OSError:
            pass
    return total


def children(pid):
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8") as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(path.split("/")[2]))
        except (OSError, IndexError):
            pass
    return found


_tracefs = None


def private_tracefs():
    """The folder of tracefs, mounted where this process and what it starts see it; raises Missing."""
    global _tracefs
    if _tracefs:
        return _tracefs
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise Missing("tracefs needs a mount namespace: %s" % os.strerror(ctypes.get_errno()))
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for kind, where in (("tracefs", "/sys/kernel/tracing"), ("debugfs", "/sys/kernel/debug")):
        if not os.listdir(where):
            done = subprocess.run(["mount", "-t", kind, "none", where], stderr=subprocess.PIPE, universal_newlines=True)
            if done.returncode and kind == "tracefs":
                raise Missing(done.stderr.strip())
    _tracefs = "/sys/kernel/tracing"
    return _tracefs


class Lttng:
    """A session daemon of our own. As root it first moves this process to a mount namespace where /run is empty."""

    hidden = False

    def __init__(self, folder, cpu=None):
        self.cpu = cpu
        for tool in ("lttng", "lttng-sessiond"):
            if not shutil.which(tool):
                raise Missing("%s is missing (lttng-tools)" % tool)
        if os.geteuid() == 0 and not Lttng.hidden:
            if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
                raise Missing("a daemon of our own needs a mount namespace: %s" % os.strerror(ctypes.get_errno()))
            subprocess.run(["mount", "--make-rprivate", "/"], check=True)
            subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
            Lttng.hidden = True
        self.home = os.path.join(folder.path, "lttng")
        os.makedirs(self.home, exist_ok=True)
        os.environ["LTTNG_HOME"] = self.home
        words = ["taskset", "-c", str(cpu)] if cpu is not None else []
        self.daemon = subprocess.Popen(words + ["lttng-sessiond", "--no-kernel"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        for _ in range(300):
            if self.control("list", check=False).returncode == 0:
                return
            if self.daemon.poll() is not None:
                break
            time.sleep(0.1)
        self.close()
        raise Missing("its session daemon did not start")

    def control(self, *words, check=True):
        done = subprocess.run(["lttng", "--no-sessiond", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True)
        if check and done.returncode:
            raise Missing("lttng %s: %s" % (" ".join(words), done.stdout.strip()[-200:]))
        return done

    def start(self, event):
        """A session with the channel that it makes by default, and the events of this name."""
        self.output = os.path.join(self.home, "out")
        shutil.rmtree(self.output, ignore_errors=True)
        self.control("create", "bench", "--output=" + self.output)
        self.control("enable-event", "-u", event)
        self.control("start")

    def stop(self):
        """End the session: (events discarded, bytes written)."""
        self.control("stop")
        said = self.control("list", "bench").stdout
        lost = sum(int(n) for n in re.findall(r"Discarded events: (\d+)", said))
        size = sum(os.path.getsize(os.path.join(where, n)) for where, _, names in os.walk(self.output)
                   for n in names if n not in ("metadata",) and not n.endswith(".idx"))
        self.control("destroy", "bench")
        return lost, size

    def consumer_cpu_ns(self):
        return sum(cpu_ns(pid) for pid in children(self.daemon.pid))

    def close(self):
        self.daemon.terminate()
        self.daemon.wait()


def beside(bench, folder, cpu=None, raising=False):
    """A session daemon of our own; None, having said why, if there is none or (raising) no event of 'raise' comes through it."""
    lttng = None
    try:
        lttng = Lttng(folder, cpu)
        if raising:
            lttng.start("pem_bench:log")
            done = subprocess.run([RAISE, "--lttng", "paced", "0", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  universal_newlines=True)
            if done.returncode:
                raise Missing(done.stderr.strip())
            lttng.stop()
        return lttng
    except Missing as why:
        print("%s: no LTTng-UST beside us: %s" % (bench, why))
    if lttng:
        lttng.close()
    return None


def lttng_version():
    """Of the library that events are raised through."""
    if not shutil.which("pkg-config"):
        return ""
    done = subprocess.run(["pkg-config", "--modversion", "lttng-ust"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True)
    return done.stdout.strip()
