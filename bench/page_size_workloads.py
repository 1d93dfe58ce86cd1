# SPDX-License-Identifier: MIT
"""
page_size_workloads.py - the programs that page-size mappings are tried on: small ones of known shapes, and real ones

Not here: how they are run and timed (page_size_runs.py). PEM_BENCH_FULL in the environment takes the sizes of the figures that are
published: a database of 2 GB, and RandomAccess of hpcc on 512 MB.
"""
import os
import random
import re
import subprocess
import tempfile
import time

from measure import HERE, Missing, QUICK
from page_size_runs import OTHER_CPU, Started, tool_missing, warm

FULL = "PEM_BENCH_FULL" in os.environ
SMALL = os.path.join(HERE, "page-size")
# Names, and arguments that make a run quick.
SHAPES = {"gups": "1 1 1", "spmv": "10 1", "pagerank": "10 1", "bfs": "10 1", "hash_join": "10 1", "btree": "10 10",
          "table_lookup": "50 10 1", "multigrid": "16 1", "integer_sort": "1 64 1", "annealing": "10 10"}
DATABASE_MB = 1 if QUICK else 2048 if FULL else 300
ROW_BYTES = 200
LOOKUPS = 100 if QUICK else 800_000
XZ_BYTES = (1 if QUICK else 64) << 18
HPCC_SIDE = 200 if QUICK else 11500 if FULL else 2900
REDIS_KEYS = 1000 if QUICK else 700_000


class Program:
    """A command that runs to its end. Its output has to be the same in each way of running it."""

    def __init__(self, name, words, missing=""):
        self.name, self.words, self.missing = name, words, missing
        self.footprint = 64 << 20  # of a run, as known so far

    def prepare(self):
        """Make what the command reads."""

    def run(self, way, prefix=(), sampled=False):
        """Run in a Way, behind the words of prefix."""
        warm(self.footprint * 5 // 4)
        run = self.timed([*prefix, *self.words], way.env, sampled)
        self.footprint = max(self.footprint, run.resident_bytes)
        return run

    def timed(self, words, env, sampled):
        with tempfile.TemporaryFile() as out:
            started = Started(words, env, sampled, out)
            run = started.finish()
            out.seek(0)
            run.output = out.read().decode("utf-8", "replace")
        return run


class Sqlite(Program):
    """Rows of a database in random order, with a cache that holds all of it. The database is made once for each build."""

    def __init__(self):
        self.database = os.path.join(HERE, "page-size-%d.db" % DATABASE_MB)
        self.rows = DATABASE_MB * 1000000 // ROW_BYTES
        query = ("PRAGMA mmap_size=0; PRAGMA cache_size=-%d; WITH RECURSIVE q(i, k) AS (SELECT 0, 1 UNION ALL "
                 "SELECT i + 1, (k * 69069 + 1234567) %% %d FROM q WHERE i < %d) "
                 "SELECT count(*), sum(c) FROM q JOIN t ON t.a = q.k;" % (DATABASE_MB * 2000, self.rows, LOOKUPS))
        super().__init__("sqlite3", ["sqlite3", "-readonly", self.database, query], tool_missing("sqlite3"))

    def prepare(self):
        if os.path.exists(self.database):
            return
        script = ("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c INTEGER);"
                  "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
                  "INSERT INTO t SELECT i, printf('%%0180d', i), i * 7919 %% 1000003 FROM n;" % (self.rows - 1))
        temporary = self.database + ".new"
        for name in (temporary, temporary + "-journal"):
            if os.path.exists(name):
                os.unlink(name)
        subprocess.run(["sqlite3", temporary, script], check=True, stdout=subprocess.DEVNULL)
        os.rename(temporary, self.database)


class Xz(Program):
    """Compresses words in random order."""

    def __init__(self, folder):
        self.file = folder.path + "/words"
        super().__init__("xz", ["xz", "-k", "-c", "-T1", "-6", self.file], tool_missing("xz"))

    def prepare(self):
        chance = random.Random(11)
        words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randrange(2, 9))) for _ in range(20000)]
        with open(self.file, "w", encoding="ascii") as f:
            while f.tell() < XZ_BYTES:
                f.write(" ".join(chance.choices(words, k=10000)) + "\n")

    def timed(self, words, env, sampled):
        return Started(words, env, sampled).finish()


class Hpcc(Program):
    """All of hpcc runs, because its input can't choose; what is timed are its six runs of RandomAccess, by its own clock."""

    def __init__(self, folder):
        self.folder = folder.path + "/hpcc"
        super().__init__("hpcc", ["hpcc"], tool_missing("hpcc"))

    def prepare(self):
        os.makedirs(self.folder, exist_ok=True)
        lines = ["HPLinpack", "", "HPL.out", "8", "1", str(HPCC_SIDE), "1", "80", "0", "1", "1", "1", "16.0", "1", "2", "1", "4", "1",
                 "2", "1", "1", "1", "1", "1", "0", "2", "64", "0", "0", "1", "8", "##", "0", "1200", "0", "40"]
        with open(self.folder + "/hpccinf.txt", "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")

    def timed(self, words, env, sampled):
        result = self.folder + "/hpccoutf.txt"
        if os.path.exists(result):
            os.unlink(result)
        run = Started(words, {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **env}, sampled,
                      cwd=self.folder).finish()
        with open(result, encoding="utf-8") as f:
            said = {k: float(v) for k, v in re.findall(r"^(\w*RandomAccess\w*)=([\d.e+-]+)$", f.read(), re.MULTILINE)}
        try:
            run.seconds = said["MPIRandomAccess_time"] + said["MPIRandomAccess_LCG_time"]
            # Updates are four times the words of the table.
            run.seconds += sum(4e-9 * said["RandomAccess%s_N" % kind] / said["%sRandomAccess%s_GUPs" % (who, kind)]
                               for kind in ("", "_LCG") for who in ("Star", "Single"))
        except (KeyError, ZeroDivisionError):
            raise Missing("hpcc said nothing of RandomAccess") from None
        return run


class Redis(Program):
    """A server that is filled and then asked over a Unix socket; its own CPU time counts."""

    def __init__(self, folder):
        self.folder, self.socket = folder.path, folder.path + "/redis.sock"
        super().__init__("redis-server",
                         ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no", "--dir",
                          self.folder, "--disable-thp", "no"], tool_missing("redis-server", "redis-benchmark", "redis-cli"))

    def client(self, *words, check=True):
        return subprocess.run(["taskset", "-c", str(OTHER_CPU), words[0], "-s", self.socket, *words[1:]], check=check,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600).returncode

    def timed(self, words, env, sampled):
        server = Started(words, env, sampled)
        try:
            limit = time.monotonic() + 60
            while self.client("redis-cli", "ping", check=False):
                if time.monotonic() > limit or server.child.poll() is not None:
                    raise Missing("redis-server does not answer")
                time.sleep(0.02)
            for what, times in (("set", 2), ("get", 3)):
                self.client("redis-benchmark", "-t", what, "-r", str(REDIS_KEYS), "-n", str(REDIS_KEYS * times), "-d", "128", "-P",
                            "32", "-c", "4", "-q")
        finally:
            self.client("redis-cli", "shutdown", "nosave", check=False)
        return server.finish()


def programs(folder):
    """All of them, those first that were written for their shapes."""
    found = [Program(name, [os.path.join(SMALL, name)] + (quick.split() if QUICK else [])) for name, quick in SHAPES.items()]
    script = Program("python3", ["python3", os.path.join(SMALL, "dictionary.py")] + (["1", "1"] if QUICK else []),
                     tool_missing("python3"))
    return found + [Redis(folder), Sqlite(), Hpcc(folder), Xz(folder), script]


def fork_cost():
    """Not one of them: it measures itself."""
    megabytes = 4 if QUICK else 512
    program = Program("fork_cost", [os.path.join(SMALL, "fork_cost"), str(megabytes)])
    program.gib, program.footprint = megabytes / 1024, megabytes << 20
    return program
