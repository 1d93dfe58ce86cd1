# SPDX-License-Identifier: MIT
"""database_postgresql: the CPO database on a real PostgreSQL server does what it does in a file"""
import os
import socket
import struct
import subprocess

from postgresql import programs, server
from tap import BUILD, PEM, equal, run, run_all, skip, start, test, tmp

UNIT = BUILD + "/tests/database"


def here():
    if not os.path.exists(BUILD + "/lib/pem/database-postgresql.so"):
        skip("pem was built without libpq")
    if not os.path.exists(UNIT):
        skip("the unit tests are not built")


@test
def a_server_does_what_a_file_does():
    "the unit tests of the database pass on a server"
    here()
    with server() as url:
        # The plugin is looked for beside the library; a program that has the library inside has it elsewhere.
        rc, out, err = run([UNIT], env={"PEM_TEST_DB": "postgresql://" + url}, timeout=60)
        equal(rc, 0, out + err)


def answer(client):
    """Let a client of PostgreSQL in, and say no more: AuthenticationOk, ReadyForQuery."""
    client.recv(4096)
    client.sendall(b"R" + struct.pack("!II", 8, 0) + b"Z" + struct.pack("!Ic", 5, b"I"))


@test
def a_server_that_falls_silent_is_given_up():
    "a server that lets one in and answers nothing is given up with a sentence, and an agent's command runs"
    here()
    folder = tmp()
    os.chmod(folder, 0o700)
    agent = BUILD + "/examples/agent"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(folder + "/.s.PGSQL.5432")
        silent.listen()
        child = start([agent, "sh", "-c", "echo ran; exit 7"], env={"PEM_DB": "postgresql://pem@/x?host=" + folder},
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        client, _ = silent.accept()
        with client:
            answer(client)
            out, err = child.communicate(timeout=60)
    equal((child.returncode, out), (7, b"ran\n"), err)
    assert b"did not answer within" in err and b"leaves this run alone" in err, err


@test
def a_user_without_rights_to_make_a_schema():
    "a user who may use the tables of a shared server, and make none, reads and writes them"
    here()
    with server() as url:
        whole = "postgresql://" + url
        rc, _, err = run([PEM, "db", "vacuum"], env={"PEM_DB": whole})
        equal(rc, 0, err)
        psql = programs() + "/psql"
        rc, _, err = run([psql, whole, "-c", "CREATE USER guest; GRANT USAGE ON SCHEMA pem TO guest;"
                          "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA pem TO guest"], cwd="/")
        equal(rc, 0, err)
        row = '{"table":"application","id":1,"build_id":"aa","name":"tar","path":""}\n'
        rc, _, err = run([PEM, "db", "import", "-"], input='{"pem-database":1}\n' + row,
                         env={"PEM_DB": whole.replace("pem@", "guest@")})
        assert rc == 0 and "1 rows" in err, err


run_all()
