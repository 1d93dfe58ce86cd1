# SPDX-License-Identifier: MIT
"""probe_postgres: events of a spec that come from a server's static probes, in a real PostgreSQL"""
import glob
import os
import pwd
import shutil
import tempfile

from probing import here, record, rows
from tap import equal, run, run_all, skip, test

STATEMENT = "select 41 + 1 as answer"


@test
def a_statement_is_seen_with_its_text():
    "a statement's begin and end arrive with its text, between those of its transaction"
    here()
    servers = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    if not servers or not shutil.which("runuser"):
        skip("PostgreSQL or runuser is not installed")
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        skip("there is no user postgres, without whom the server does not start")
    with tempfile.TemporaryDirectory(prefix="pem-postgres-") as folder:  # not below tmp(), which is ours alone
        os.chown(folder, user.pw_uid, user.pw_gid)
        in_folder(servers[-1], folder)


def in_folder(server, folder):
    """Make a server's data in a folder, and record a statement."""
    as_user = ["runuser", "-u", "postgres", "--"]
    rc, _, err = run(as_user + [os.path.dirname(server) + "/initdb", "-D", folder, "-A", "trust", "-N"], cwd="/")
    equal(rc, 0, "initdb: " + err)
    script = "echo '%s;' | %s --single -D %s postgres 2>/dev/null" % (STATEMENT, server, folder)
    trace, out = record("APP::Postgres::Query*,APP::Postgres::Transaction*", *as_user, "sh", "-c", script)
    assert '"42"' in out, out
    for event in ("QueryBegin", "QueryEnd"):
        equal([row["text"].strip() for row in rows(trace, "APP::Postgres::" + event)], [STATEMENT + ";"], event)
    begun = [row["transaction"] for row in rows(trace, "APP::Postgres::TransactionBegin")]
    ended = [row["transaction"] for row in rows(trace, "APP::Postgres::TransactionCommit")]
    assert begun and begun == ended, (begun, ended)


run_all()
