# SPDX-License-Identifier: MIT
"""explore_examples: the experiments that pem explore init writes run as they are"""
import contextlib
import glob
import json
import os
import re
import shutil
import socket
import sqlite3 as database
import sys

import postgresql
from tap import BUILD, PEM, ROOT, equal, need, run, run_all, skip, test, tmp

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)

LONG_S = 40


def trial(name, metric, front=(), owner=None):
    """Write an experiment by its name and make one trial: it measures the metric, and nothing is changed afterwards."""
    folder = tmp()
    os.chmod(folder, 0o755)
    os.mkdir(folder + "/state", 0o700)
    if owner:
        for path in (folder, folder + "/state"):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    env = {"PEM_DB": folder + "/db", "XDG_STATE_HOME": folder + "/state", "HOME": folder}
    front = [*front, "env", "-C", folder]
    rc, _, err = run(front + [PEM, "explore", "init", name], env=env, cwd="/")
    equal(rc, 0, "init (%s)" % err)
    with open(folder + "/%s.xml" % name, "r+", encoding="utf-8") as document:
        text = document.read()
        with socket.socket() as free:  # others may test on this machine
            free.bind(("127.0.0.1", 0))
            text = re.sub(r"\b1812[34]\b", str(free.getsockname()[1]), text)
        document.seek(0)
        document.write(text)
        document.truncate()
    rc, out, err = run(front + [PEM, "explore", "run", name + ".xml", "--budget", "1"], env=env, cwd="/", timeout=200)
    equal(rc, 0, "run (%s)" % err)
    rc, out, err = run(front + [PEM, "explore", "best", name + ".xml", "--json"], env=env, cwd="/")
    equal(rc, 0, "best (%s)" % err)
    told = json.loads(out)
    equal(told["metric"], metric, "metric")
    assert told["mean"] > 0, told
    return folder


@test
def all_are_right():
    "each experiment is a document without mistakes, and has as many settings as real systems have"
    folder = tmp()
    with contextlib.closing(database.connect(folder + "/taxi.db")) as taxi:  # examples/explore/taxi.c makes it
        taxi.execute("CREATE TABLE trips (fare REAL)")
    for path in glob.glob(ROOT + "/examples/explore/*.xml"):
        path = shutil.copy(path, folder)
        rc, out, err = run([PEM, "explore", "check", path, "--json"], env={"PEM_DB": folder + "/db"})
        equal(rc, 0, "check %s (%s)" % (path, err))
        with open(path, encoding="utf-8") as text:
            text = text.read()
        if "taxi.xml" not in path:
            assert 8 <= text.count("<parameter ") <= 15, path
            equal(text.count("<parameter "), text.count(" default="), "parameters with a default in " + path)


@test
def sqlite3():
    "sqlite3: a trial of a database's page size and connections' settings"
    need("sqlite3")
    folder = trial("sqlite3", "seconds")
    equal(run(["sqlite3", folder + "/taxi.db", "PRAGMA page_size; SELECT count(*) FROM trips"])[1], "4096\n300000\n", "database")


@test
def xz():
    "xz: a trial of its options"
    need("xz")
    trial("xz", "seconds")


@test
def zstd():
    "zstd: a trial of its options"
    need("zstd")
    trial("zstd", "sent")


@test
def ffmpeg():
    "ffmpeg: a trial of x264's options"
    need("ffmpeg")
    if "libx264" not in run(["ffmpeg", "-hide_banner", "-encoders"])[1]:
        skip("ffmpeg was built without x264")
    trial("ffmpeg", "sent")


@test
def redis():
    "redis: a trial of a running server's settings"
    need("redis-server", "redis-benchmark")
    trial("redis", "requests")


@test
def nginx():
    "nginx: a trial of a configuration file's settings"
    need("nginx", "ab")
    folder = trial("nginx", "requests")
    with open(folder + "/nginx.conf", encoding="utf-8") as text:
        assert "worker_processes 1;" in text.read()


@test
def postgres():
    "postgresql: a trial of a running server's settings"
    need("pgbench")
    postgresql.programs()
    words, user = postgresql.as_user()
    folder = trial("postgresql", "tps", words, user)
    with open(folder + "/data/postgresql.auto.conf", encoding="utf-8") as text:
        assert "=" not in text.read(), "a setting was left"


run_all()
