# SPDX-License-Identifier: MIT
"""postgresql: a PostgreSQL server of a test's own, on a socket in a folder of its own"""
import contextlib
import glob
import os
import pwd
import shutil
import tempfile
import urllib.parse

from tap import equal, run, skip


def programs():
    """The folder of the newest server's programs; the test is skipped where there is none."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found:
        skip("PostgreSQL is not installed")
    return os.path.dirname(found[-1])


def as_user():
    """Words in front of a command, since the server does not run as root; and its user."""
    if os.geteuid() != 0:
        return [], pwd.getpwuid(os.geteuid())
    if not shutil.which("runuser"):
        skip("runuser is not installed, and the server does not run as root")
    try:
        return ["runuser", "-u", "postgres", "--"], pwd.getpwnam("postgres")
    except KeyError:
        skip("there is no user postgres, without whom the server does not start")


@contextlib.contextmanager
def server(*options):
    """A running server: the part of its URL behind 'postgresql://'."""
    folder = programs()
    words, user = as_user()
    with tempfile.TemporaryDirectory(prefix="pem-postgresql-") as data:  # not below tmp(), which is ours alone
        os.chown(data, user.pw_uid, user.pw_gid)
        rc, _, err = run(words + [folder + "/initdb", "-D", data + "/data", "-A", "trust", "-N", "-U", "pem",
                                  "--locale=C.UTF-8"], cwd="/", timeout=60)
        equal(rc, 0, "initdb: " + err)
        control = words + [folder + "/pg_ctl", "-D", data + "/data", "-w", "-t", "60"]
        rc, out, err = run(control + ["-l", data + "/log", "-o",
                                      "-k '%s' -c listen_addresses='' -F %s" % (data, " ".join(options)), "start"],
                           cwd="/", timeout=90)
        equal(rc, 0, "pg_ctl start: " + out + err)
        try:
            yield "pem@/postgres?host=" + urllib.parse.quote(data)
        finally:
            run(control + ["-m", "immediate", "stop"], cwd="/", timeout=90)
