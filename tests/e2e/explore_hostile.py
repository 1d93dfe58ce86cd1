# SPDX-License-Identifier: MIT
"""explore_hostile: pem explore on a database to which others wrote rows that make no sense"""
import json
import os
import re
import shutil
import sqlite3
import sys

import postgresql
from explorations import experiment, explore
from tap import BUILD, PEM, SAN, equal, need, run, run_all, skip, test

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)

LONG_S = 20

# The last run of a = 3 is 5. Constraints of the tables are off.
RUN = 5
# Statements after which that run can't be read as one of this experiment.
LEFT_OUT = (
    "DELETE FROM metric WHERE run = 5 AND name = 'v'",
    "DELETE FROM metric WHERE run = 5",
    "UPDATE metric SET mean = 'abc' WHERE run = 5 AND name = 'v'",
    "UPDATE metric SET mean = x'00ff' WHERE run = 5 AND name = 'v'",
    "UPDATE metric SET mean = 9e999 WHERE run = 5 AND name = 'v'",
    "UPDATE metric SET mean = 1e300 WHERE run = 5 AND name = '(outcome)'",
    "UPDATE metric SET mean = -1 WHERE run = 5 AND name = '(outcome)'",
    "UPDATE run SET wall_ns = -9223372036854775808 WHERE id = 5",
    "UPDATE run SET machine = 77 WHERE id = 5",
)
# The same, and there is no row from which pem could know that it was one.
UNKNOWN = (
    "UPDATE run SET wall_ns = 'x' WHERE id = 5",
    "UPDATE run SET id = -5 WHERE id = 5; UPDATE evidence SET run = -5 WHERE run = 5; UPDATE metric SET run = -5 WHERE run = 5",
    "UPDATE run SET workload = workload || hex(randomblob(1000)) WHERE id = 5",
    "UPDATE evidence SET role = 77 WHERE run = 5",
    "DELETE FROM evidence WHERE run = 5",
    "UPDATE directive SET text = 'a=9' WHERE text = 'a=3'",
    "UPDATE directive SET text = ' = = =' WHERE text = 'a=3'",
    "UPDATE directive SET text = x'00ff' WHERE text = 'a=3'",
    "UPDATE directive SET reason = char(27) || '[31m' WHERE text = 'a=3'",
    "DELETE FROM directive WHERE text = 'a=3'",
    # Evidence of another agent, of another program, and of one that is not there.
    "INSERT INTO directive SELECT 99, application, machine, 'page-size', subject, text, state, rank, predicted, predicted_low, "
    "predicted_high, gain, cost_bytes, began_ns, reason FROM directive WHERE id = 1; INSERT INTO evidence VALUES (999, 99, 5, 1, 1)",
    "INSERT INTO evidence VALUES (999, 4711, 5, 1, 1)",
)
# Rows that change nothing, or no more than they say.
HARMLESS = (
    "UPDATE run SET began_ns = -9223372036854775808",
    "UPDATE run SET began_ns = 9223372036854775807",
    "UPDATE run SET status = 9223372036854775807",
    "UPDATE run SET id = 9223372036854775807 WHERE id = 5; UPDATE evidence SET run = 9223372036854775807 WHERE run = 5; "
    "UPDATE metric SET run = 9223372036854775807 WHERE run = 5",
    "INSERT INTO run VALUES (999, 'u', 1, 1, 'explore', 'explore:0000 vm', 1, 1, 0)",
    "INSERT INTO metric VALUES (999, 5, 'other', 'unit', 1, 1e308, 1e308, -1e308, 1e308, 0)",
    "INSERT INTO directive SELECT 99, application, machine, 'page-size', subject, text, 3, rank, 9e99, 9e99, 9e99, 9e99, -1, -1, 'x' "
    "FROM directive WHERE id = 1",
    "UPDATE validation SET gain = 1e308, gain_low = -1e308, gain_high = 1e308",
    "UPDATE validation SET gain = -1e308, gain_low = -1e308, gain_high = -1e308",
    "UPDATE validation SET treated = 9223372036854775807, controls = 9223372036854775807",
    "UPDATE validation SET treated = 'a', verdict = -7",
    "UPDATE validation SET gain_low = 9, gain_high = -9",
)


# Rows that SQLite would not take, or that need a column of another type.
SERVER_LEFT_OUT = (
    "ALTER TABLE metric ALTER mean DROP NOT NULL; UPDATE metric SET mean = NULL WHERE run = 5 AND name = 'v'",
    "UPDATE metric SET mean = 'NaN' WHERE run = 5 AND name = 'v'",
    "UPDATE metric SET mean = '-Infinity' WHERE run = 5 AND name = 'v'",
    "ALTER TABLE metric ALTER mean TYPE NUMERIC; UPDATE metric SET mean = 1e400 WHERE run = 5 AND name = 'v'",
)
SERVER_UNKNOWN = (
    "ALTER TABLE directive ALTER text DROP NOT NULL; UPDATE directive SET text = NULL WHERE text = 'a=3'",
    "ALTER TABLE run ALTER wall_ns DROP NOT NULL; UPDATE run SET wall_ns = NULL WHERE id = 5",
    "ALTER TABLE run ALTER wall_ns TYPE NUMERIC; UPDATE run SET wall_ns = 1e30 WHERE id = 5",
    "UPDATE directive SET reason = repeat('x', 2000000) WHERE text = 'a=3'",
    "UPDATE directive SET text = (SELECT json_object_agg(n, n) FROM generate_series(1, 100000) n) WHERE text = 'a=3'",
)
LEFT = " left out: rows of them are missing, or can't be read; 'pem db export' names the latter\n"
# Schemas that pem did not make, and words of the sentence.
SERVER_SCHEMAS = (
    ("UPDATE schema_version SET version = 99", "version 99", "use the newer pem"),
    ("UPDATE schema_version SET version = -1", "no version", "RENAME"),
    ("DELETE FROM schema_version", "no version", "RENAME"),
    ("ALTER TABLE schema_version ALTER version TYPE TEXT; UPDATE schema_version SET version = 'x'", "no version", "RENAME"),
    ("ALTER TABLE schema_version RENAME version TO v", "version", "RENAME"),
    ("DROP TABLE metric", "metric", "RENAME"),
    ("ALTER TABLE run RENAME workload TO load", "workload", "RENAME"),
    ("ALTER TABLE evidence DROP COLUMN value", "value", "RENAME"),
    ("DROP TABLE run CASCADE; CREATE TABLE run (id INTEGER)", "uuid", "RENAME"),
    ("ALTER TABLE run ALTER agent TYPE JSON USING to_json(agent)", "json", "RENAME"),
    ("ALTER TABLE run ADD more TEXT NOT NULL DEFAULT 'x'; ALTER TABLE run ALTER more DROP DEFAULT", "more", "RENAME"),
    ("ALTER TABLE run DROP CONSTRAINT run_uuid_key", "constraint", "RENAME"),
)


class File:
    NAME = "a file"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def url(self, folder):
        return folder + "/db"

    def ask(self, folder, statement):
        with sqlite3.connect(folder + "/db") as db:
            return db.execute(statement).fetchall()

    def shell(self, folder, statement):
        return "%s -c 'import sqlite3; sqlite3.connect(\"%s/db\", isolation_level=None).execute(\"%s\")'" % (sys.executable, folder, statement)

    def keep(self, folder):
        os.rename(folder + "/db", folder + "/kept")

    def spoil(self, folder, statements):
        """The database that was kept, and statements on it."""
        shutil.copyfile(folder + "/kept", folder + "/db")
        os.chmod(folder + "/db", 0o600)
        db = sqlite3.connect(folder + "/db", isolation_level=None)
        db.executescript("PRAGMA foreign_keys = 0; " + statements)
        db.close()


class Server:
    NAME = "a server"
    TRANSLATED = ((r"= x'00ff'", r"= '\\x00ff'"), (r"9e999", "'Infinity'"), (r"char\(27\)", "chr(27)"),
                  (r"hex\(randomblob\((\d+)\)\)", r"repeat('ab', \1)"),
                  (r"(INSERT INTO \w+) (VALUES|SELECT)", r"\1 OVERRIDING SYSTEM VALUE \2"),
                  # A number's column that gets a text.
                  (r"^UPDATE (\w+) SET (mean|wall_ns|treated) = '[^I]", r"ALTER TABLE \1 ALTER \2 TYPE TEXT; \g<0>"))

    def __enter__(self):
        need("psql")
        if not os.path.exists(BUILD + "/lib/pem/database-postgresql.so"):
            skip("pem was built without libpq")
        self.server = postgresql.server()
        self.part = self.server.__enter__()
        return self

    def __exit__(self, *why):
        self.server.__exit__(*why)

    def url(self, _, name="postgres"):
        return "postgresql://" + self.part.replace("/postgres", "/" + name, 1)

    def ask(self, _, *statements, name="postgres"):
        rc, out, err = run(["psql", "-qAt", "-v", "ON_ERROR_STOP=1", self.url(None, name), *[word for text in statements for word in ("-c", text)]],
                           cwd="/", timeout=60)
        equal(rc, 0, "%s: %s" % (statements, err))
        return [tuple(line.split("|")) for line in out.splitlines()]

    def shell(self, folder, statement):
        return "psql -q '%s' -c 'SET search_path = pem' -c '%s'" % (self.url(folder), statement)

    def keep(self, _):
        self.ask(None, "ALTER DATABASE postgres RENAME TO kept", name="template1")

    def spoil(self, _, statements):
        for pattern, text in self.TRANSLATED:
            statements = re.sub(pattern, text, statements)
        self.ask(None, "DROP DATABASE IF EXISTS postgres", "CREATE DATABASE postgres TEMPLATE kept", name="template1")
        self.ask(None, "SET search_path = pem; SET session_replication_role = replica; ALTER TABLE run ALTER id SET GENERATED BY DEFAULT; " + statements)


def on_both(function):
    """Two tests of a function that has the database as its argument."""
    for kind in (File, Server):

        def one(kind=kind):
            with kind() as database:
                function(database)

        one.__name__ = "%s_%s" % (function.__name__, kind.__name__.lower())
        one.__doc__ = "%s: %s" % (kind.NAME, function.__doc__)
        test(one)


def explored(database):
    folder, env = experiment("""  <parameter name="a" values="1 2 3 4" default="1"/>
  <command>test ! -e hook || sh ./hook; echo v=$((20 - {a}))</command>
  <metric name="v" match="v=([0-9]+)"/>""", attributes='policy="grid" trials="4" race="1"')
    env["PEM_DB"] = database.url(folder)
    explore(folder, env, "run")
    schema = "pem." if isinstance(database, Server) else ""
    equal(database.ask(folder, "SELECT text FROM %sdirective AS d, %sevidence WHERE run = %d AND d.id = directive" % (schema, schema, RUN)),
          [("a=3",)], "configuration of the run")
    database.keep(folder)
    return folder, env


def values(folder, env):
    """What show tells of each configuration that has a value: {a: (value, runs)}, and its errors."""
    out, err = explore(folder, env, "show", "--json")
    trials = json.loads(out)["trials"]
    assert all(trial["seconds"] >= 0 for trial in trials), trials
    return {trial["configuration"]["a"]: (trial["values"]["v"], trial["runs"]) for trial in trials if trial["runs"]}, err


def goes_on(folder, env, statements):
    """The exploration goes on, and ends with the right result."""
    out = explore(folder, env, "run")[0]
    assert "v 16 (16 to 16, " in out and "15.8 % better than the defaults (+15.8 to +15.8 %, in 6 fresh runs" in out, (statements, out)


@on_both
def runs_that_cannot_be_read_are_left_out(database):
    "NULLs, texts, huge and negative numbers where a run's own belong: the run is left out, the others have their values, and that is said"
    folder, env = explored(database)
    more = (SERVER_LEFT_OUT, SERVER_UNKNOWN) if isinstance(database, Server) else ((), ())
    for group in (LEFT_OUT + more[0], UNKNOWN + more[1]):
        for statements in group:
            database.spoil(folder, statements)
            told, err = values(folder, env)
            equal([told[a] for a in "12"] + [told.get("3", (17, 1)), told["4"]], [(19, 7), (18, 2), (17, 1), (16, 8)], statements)
            equal(err, "pem: 1 run is" + LEFT
                  if group[0] == LEFT_OUT[0] else "", statements)
            goes_on(folder, env, statements)


@on_both
def rows_of_others_change_nothing(database):
    "rows of other agents, numbers that pem does not use, and comparisons that can't be right change no result"
    folder, env = explored(database)
    for statements in HARMLESS:
        database.spoil(folder, statements)
        equal(values(folder, env), ({"1": (19, 7), "2": (18, 2), "3": (17, 2), "4": (16, 8)}, ""), statements)
        goes_on(folder, env, statements)


@on_both
def values_without_an_error_say_so(database):
    "a value whose square is no number has an unknown error, and no infinite one"
    folder, env = explored(database)
    database.spoil(folder, "UPDATE metric SET mean = -1.7e308 WHERE name = 'v' AND run = (SELECT min(run) FROM evidence WHERE directive = 2)")
    for verb in ("show", "best"):
        out = explore(folder, env, verb)[0]
        assert "inf" not in out and "nan" not in out, out
    assert "its error is unknown" in explore(folder, env, "best")[0], "best"


@on_both
def rows_may_vanish(database):
    "rows that others remove while a run goes on: the exploration ends, or fails with one sentence and a remedy, and the next one is right"
    folder, env = explored(database)
    for table in ("run", "evidence", "directive", "machine", "application", "validation"):
        database.spoil(folder, "DELETE FROM run WHERE id = 5")
        with open(folder + "/hook", "w", encoding="utf-8") as out:
            out.write("rm hook; " + database.shell(folder, "DELETE FROM " + table))
        rc, _, err = run([PEM, "explore", "run", folder + "/e.xml"], env=env, timeout=120)
        assert not os.path.exists(folder + "/hook"), table
        assert rc == 0 or "run the command again\n" in err, (table, rc, err)
        assert err.count("\n") == bool(rc), (table, err)
        goes_on(folder, env, table)


@test
def other_schemas_are_refused():
    "a server whose schema pem has another version, or tables and columns that pem did not make: one sentence that names them and a remedy"
    with Server() as database:
        folder, env = explored(database)
        for statements, *words in SERVER_SCHEMAS:
            database.spoil(folder, "DELETE FROM run WHERE id = 5; " + statements)
            rc, out, err = run([PEM, "explore", "run", folder + "/e.xml"], env=env, timeout=120)
            assert rc in (1, 2) and not out and err.count("\n") == 1, (statements, rc, out, err)
            for word in words:
                assert word in err, (statements, word, err)


@test
def texts_of_any_length_take_no_memory():
    "a text of 100 MB on a server is not read whole: its rows are left out, and named by 'pem db'"
    with Server() as database:
        folder, env = explored(database)
        database.spoil(folder, "UPDATE machine SET facts = repeat('x', 100000000)")
        equal(values(folder, env), ({}, "pem: 19 runs are" + LEFT), "show")
        limit = [] if SAN else ["prlimit", "--as=200000000"]
        rc, out, err = run(limit + [PEM, "db", "show", "machine"], env=env, timeout=60)
        assert rc == 0 and "row 1 of postgresql:///postgres is left out: machine.facts is no UTF-8 of less than" in err, (rc, out, err)
        goes_on(folder, env, "a long text")


run_all()
