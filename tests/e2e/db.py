# SPDX-License-Identifier: MIT
"""db: pem db and the file that it is about: carried elsewhere, damaged, foreign, of others, shared, killed, without room"""
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from postgresql import server
from tap import BUILD, PEM, ROOT, equal, need, parallel, run, run_all, skip, start, test, tmp

LONG_S = 11

if not os.path.exists(BUILD + "/lib/libpem-agent.so"):
    print("1..0 # SKIP pem was built without SQLite")
    sys.exit(0)

HEAD = {"pem-database": 1}
APPLICATION = {"table": "application", "id": 7, "build_id": "c0ffee", "name": "tar", "path": "/bin/tar"}
MACHINE = {"table": "machine", "id": 5, "fingerprint": "f00d", "processor": "p", "kernel": "k", "hypervisor": "", "facts": "{}"}
RUN = {"table": "run", "id": 9, "uuid": "ab" * 16, "application": 7, "machine": 5, "agent": "test", "workload": "w",
       "began_ns": 1700000000123456789, "wall_ns": 5, "status": 0}
METRIC = {"table": "metric", "id": 1, "run": 9, "name": "time", "unit": "s", "count": 3, "mean": 0.1, "spread": 1e-9,
          "minimum": 0.0, "maximum": 1.5, "origin": "simulated"}
DIRECTIVE = {"table": "directive", "id": 3, "application": 7, "machine": 5, "agent": "test", "subject": "site 'a'", "text": "2M",
             "state": "kept", "rank": 1, "predicted": 5.5, "predicted_low": 5.0, "predicted_high": 6.0, "gain": 4.25,
             "cost_bytes": 2097152, "began_ns": 1, "reason": "é"}
EVIDENCE = {"table": "evidence", "id": 2, "directive": 3, "run": 9, "role": "treated", "value": 1.25}
VALIDATION = {"table": "validation", "id": 4, "directive": 3, "at_ns": 77, "verdict": "faster", "gain": 4.25, "gain_low": 4.0,
              "gain_high": 4.5, "treated": 8, "controls": 9}
ROWS = [APPLICATION, MACHINE, RUN, METRIC, DIRECTIVE, EVIDENCE, VALIDATION]


def place():
    """The path of a database to be, in a folder of its own."""
    folder = tmp()
    os.chmod(folder, 0o700)
    return folder + "/cpo.db"


def db(path, *words, **more):
    return run([PEM, "db", *words], env={"PEM_DB": path, "XDG_DATA_HOME": "/nowhere"}, **more)


def lines(*objects):
    return "".join(json.dumps(o, ensure_ascii=False) + "\n" for o in objects)


def filled():
    """A database with a row in each table."""
    path = place()
    rc, _, err = db(path, "import", "-", input=lines(HEAD, *ROWS))
    equal(rc, 0, "import: " + err)
    return path


def plain(text):
    """Exported rows without numbers, which are of one database."""
    rows = [json.loads(line) for line in text.splitlines()[1:]]
    return [{k: v for k, v in row.items() if k not in ("id", "application", "machine", "run", "directive")} for row in rows]


def fails(path, words, status, *told, **more):
    rc, out, err = db(path, *words, **more)
    equal((rc, out), (status, ""), "%s: %s" % (words, err))
    for word in told:
        assert word in err, (word, err)
    assert err.count("\n") == 1, err


@test
def what_is_exported_can_be_imported():
    "an import of an export has the same rows, whatever their numbers were; a second import adds none"
    path, other = filled(), place()
    rc, out, err = db(path, "export")
    equal((rc, err), (0, ""), "export")
    equal(plain(out), plain(lines(HEAD, *ROWS)), "rows")
    rc, _, err = db(other, "import", "-", input=lines(HEAD, dict(APPLICATION, build_id="other"), dict(MACHINE, fingerprint="x")))
    equal(rc, 0, err)
    rc, _, err = db(other, "import", "-", input=out)
    assert rc == 0 and "7 rows of - were added" in err, err
    rc, _, err = db(other, "import", "-", input=out)
    assert rc == 0 and "0 rows of - were added" in err and "7 were there already" in err, err
    row = json.loads(db(other, "show", "evidence", "--json")[1])[0]
    equal(json.loads(db(other, "show", "directive", str(row["directive"]), "--json")[1])[0]["subject"], "site 'a'", "reference")


@test
def merge_adds_what_is_not_there():
    "merge adds rows of another database; rows that are here stay as they are, and the other is not changed"
    path, other = filled(), place()
    before = db(path, "export")[1]
    rc, _, err = db(other, "import", "-", input=lines(HEAD, dict(APPLICATION, id=1, name="mine")))
    equal(rc, 0, err)
    rc, _, err = db(other, "merge", path)
    assert rc == 0 and "6 rows" in err and "1 were there already" in err, err
    equal([a["name"] for a in json.loads(db(other, "show", "application", "--json")[1])], ["mine"], "names")
    equal(db(path, "export")[1], before, "the other database")


@test
def gain_of_several_directives():
    "the gain of an application is that of its best kept directive, never above 100 %"
    path = place()
    best = [dict(DIRECTIVE, id=number, subject=str(number), gain=gain, state=state)
            for number, gain, state in ((1, 98.7, "kept"), (2, 98.5, "kept"), (3, 99.0, "withdrawn"))]
    rc, _, err = db(path, "import", "-", input=lines(HEAD, APPLICATION, MACHINE, *best))
    equal(rc, 0, err)
    equal(json.loads(db(path, "list", "--json")[1])[0]["gain"], 98.7, "gain")


@test
def tables_for_people():
    "list shows an application with its directives, show a table, or all of one row; an empty one says so"
    path = filled()
    rc, out, _ = db(path, "list")
    assert rc == 0 and out.splitlines()[1].split()[:3] == ["tar", "c0ffee", "1"] and "4.2 %" in out, out
    rc, out, _ = db(path, "list", "--json")
    equal([(a["application"], a["kept"], a["gain"]) for a in json.loads(out)], [("tar", 1, 4.25)], "list")
    rc, out, _ = db(path, "show", "directive")
    assert rc == 0 and "site 'a'" in out and "kept" in out, out
    rc, out, _ = db(path, "show", "directive", "1")
    assert rc == 0 and "2.0 MiB" in out and "predicted_low" in out, out
    rc, _, err = db(path, "show", "lease")
    assert rc == 0 and "no lease yet" in err, err


@test
def wrong_words():
    "a wrong action, table, number or option is one sentence and status 1"
    path = filled()
    fails(path, ["show", "tabel"], 1, "'tabel'", "directive")
    fails(path, ["show", "run", "99"], 1, "no run 99")
    fails(path, ["show", "run", "1x"], 1, "'1x'")
    for words in (["lst"], [], ["show"], ["list", "more"], ["merge"], ["list", "-o", "x"], ["show", "run", "1", "2"]):
        rc, out, err = db(path, *words)
        equal((rc, out, err.count("\n")), (1, "", 2), "%s: %s" % (words, err))
    fails(place(), ["list"], 1, "there is no database")
    fails(path, ["merge", path + ".none"], 1, "there is no database")
    fails(path, ["import", "/nowhere/file"], 1, "/nowhere/file")


@test
def a_wrong_line_imports_nothing():
    "an import with a wrong line names it and why, and adds nothing"
    path = place()
    bad = [
        ("x", "no JSON object"), ("[]", "no JSON object"), (json.dumps(HEAD), "no table"),
        (json.dumps(dict(APPLICATION, id=8, name="x" * 96)), "'name'"), (json.dumps(dict(APPLICATION, id=8, name=5)), "'name'"),
        (json.dumps(dict(APPLICATION, id=8, more=1)), "other members"), (json.dumps(dict(RUN, application=99)), "'application' is 99"),
        (json.dumps(dict(METRIC, mean="much")), "'mean'"), (json.dumps(dict(METRIC, origin="guessed")), "'origin'"),
        (json.dumps(dict(METRIC, count=2 ** 70)), "'count'"), (json.dumps(dict(APPLICATION, id=8, build_id="d00d", name="a\nb")), "control"),
        (json.dumps(dict(METRIC, mean=float("nan"))), ""), (json.dumps(dict(APPLICATION, id=8, table="lease")), "no table"),
        (json.dumps({k: v for k, v in METRIC.items() if k != "unit"}), "'unit'"), ('{"table":"run"}', "id"),
        ("[" * 5000, ""), ('"' + "x" * 70000 + '"', "too long"), ('{"table":null}', "no table"), ('{"table":["run"]}', "no table"),
        (json.dumps(dict(METRIC, count=-2 ** 70)), ""), (json.dumps(dict(METRIC, count=2 ** 63)), "'count'"),
        (json.dumps(MACHINE) + " " + json.dumps(MACHINE), ""), (json.dumps(MACHINE)[:-1] + "\0}", "NUL"),
    ]
    for line, told in bad:
        fails(path, ["import", "-"], 1, "-:5: ", told, "nothing was imported",
              input=lines(HEAD, APPLICATION, MACHINE, RUN) + line + "\n")
        equal(db(path, "export")[1], '{"pem-database":1}\n', "after " + line[:80])
    fails(path, ["import", "-"], 1, "-:1: ", "no file of pem db export", input=lines(APPLICATION))
    fails(path, ["import", "-"], 1, "-:1: ", "version", input=lines({"pem-database": 2}))
    fails(path, ["import", "-"], 1, "empty", input="")
    fails(path, ["import", os.path.dirname(path)], 3, "can't be read", "nothing was imported")


@test
def numbers_of_64_bits_are_kept():
    "numbers of 64 bits are exported and imported as they are"
    path, other = place(), place()
    rows = [APPLICATION, MACHINE, RUN, dict(METRIC, count=2 ** 63 - 1), dict(METRIC, id=2, name="least", count=1 - 2 ** 63)]
    equal(db(path, "import", "-", input=lines(HEAD, *rows))[0], 0, "import")
    equal(db(other, "import", "-", input=db(path, "export")[1])[0], 0, "import of the export")
    equal([m["count"] for m in json.loads(db(other, "show", "metric", "--json")[1])], [2 ** 63 - 1, 1 - 2 ** 63], "numbers")


@test
def a_foreign_file_is_not_touched():
    "another program's database, a text, a folder, a symbolic link and a newer database are refused and stay as they are"
    path = place()
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE run (id INTEGER)")
    foreign.commit()
    foreign.close()
    before = open(path, "rb").read()
    for words in (["list"], ["vacuum"]):
        fails(path, words, 1, "another program")
    equal(open(path, "rb").read(), before, "the foreign database")
    text = place()
    with open(text, "w") as out:
        out.write("not a database, but long enough to have a header" * 30)
    fails(text, ["vacuum"], 1, text, "damaged or no database")
    equal(os.path.getsize(text), 48 * 30, "the text")
    os.mkdir(path + ".folder")
    fails(path + ".folder", ["list"], 1, "no file")
    os.symlink(path, path + ".link")
    fails(path + ".link", ["list"], 2, "symbolic link")
    newer = filled()
    con = sqlite3.connect(newer)
    con.execute("PRAGMA user_version = 99")
    con.close()
    fails(newer, ["list"], 2, "version 99", "newer pem")


def left_out(path, script, count):
    """Rows that a script put into the database are left out, each with a sentence."""
    rc, out, err = db(path, "show", "application", "--json")
    equal((rc, [a["name"] for a in json.loads(out)]), (0, ["tar", "5.5"]), err)
    equal(err.count("is left out"), count, script + err)
    assert "\x1b" not in err, err
    rc, out, err = db(path, "show", "directive", "--json")
    assert (rc, json.loads(out)) == (0, []) and "0 to 3" in err, (out, err)
    other = place()
    rc, _, err = db(other, "merge", path)
    assert rc == 0 and "evidence 1 of" in err and "left out" in err, err


INSERT = "INSERT INTO application (build_id, name, path) VALUES "
DAMAGED = INSERT + "('%s', 'n', ''), ('bb', 'a\x1b[2Jb', ''), ('dd', 5.5, ''); UPDATE directive SET state = 77;" % ("x" * 500)


@test
def damaged_rows_are_left_out():
    "rows that pem would not have written are left out with a sentence, and the others are shown"
    path = filled()
    script = DAMAGED + INSERT + "(x'b10b', 'n', ''), ('cc', 'nul' || char(0) || 'l', '')"
    con = sqlite3.connect(path)
    con.executescript(script)
    con.close()
    left_out(path, script, 4)


@test
def damaged_rows_of_a_server_are_left_out():
    "on a server these, NULLs and long texts are left out with a sentence, and the others are shown"
    need("psql")
    if not os.path.exists(BUILD + "/lib/pem/database-postgresql.so"):
        skip("pem was built without libpq")
    script = DAMAGED.replace("5.5", "'5.5'") + "ALTER TABLE application ALTER path DROP NOT NULL;" + INSERT + \
        "('ee', 'n', NULL), ('ff', 'n', (SELECT json_object_agg(n, n) FROM generate_series(1, 1000000) n))"
    with server() as url:
        url = "postgresql://" + url
        rc, _, err = db(url, "merge", filled())
        equal(rc, 0, err)
        rc, _, err = run(["psql", "-q", url, "-v", "ON_ERROR_STOP=1", "-c", "SET search_path = pem;" + script], cwd="/", timeout=60)
        equal(rc, 0, err)
        left_out(url, script, 4)


@test
def other_tables_are_refused():
    "a database with a view without end, a trigger, an index or a computed column of others is refused, for reading, too"
    for script in ("DROP TABLE application; CREATE VIEW application AS WITH RECURSIVE r (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r) "
                   "SELECT id, 'x' AS build_id, 'n' AS name, 'p' AS path FROM r",
                   "CREATE TRIGGER t AFTER INSERT ON run BEGIN UPDATE directive SET text = 'evil'; END",
                   "CREATE INDEX more ON metric (name)",
                   "DROP TABLE lease; CREATE TABLE lease (id INTEGER PRIMARY KEY, resource TEXT, holder TEXT AS (hex(zeroblob(400000000))), "
                   "access BIGINT, until_ns BIGINT)"):
        path = filled()
        con = sqlite3.connect(path)
        con.executescript(script)
        con.close()
        for words in (["list"], ["show", "lease"], ["vacuum"]):
            fails(path, words, 1, "not as pem made them", timeout=10)


@test
def huge_texts_are_refused():
    "a text of more than a megabyte is an error, and is not read into memory"
    path = filled()
    con = sqlite3.connect(path)
    con.execute("UPDATE application SET name = ?", ("x" * (2 << 20),))
    con.commit()
    con.close()
    fails(path, ["list"], 1, "longer than pem writes any")


@test
def rows_that_come_again_are_damage():
    "pages that name a page twice, by which a walk would have no end, are an error"
    path = place()
    db(path, "import", "-", input=lines(HEAD, *[dict(APPLICATION, id=i, build_id="%x" % i, path="x" * 400) for i in range(200)]))
    con = sqlite3.connect(path)
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = con.execute("PRAGMA page_size").fetchone()[0]
    root = con.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'application'").fetchone()[0]
    con.close()
    with open(path, "r+b") as file:
        file.seek((root - 1) * size)
        page = bytearray(file.read(size))
        equal(page[0], 5, "an inner page of a table")
        cells = [int.from_bytes(page[12 + 2 * i:14 + 2 * i], "big") for i in range(int.from_bytes(page[3:5], "big"))]
        for cell in cells:
            page[cell:cell + 4] = page[cells[0]:cells[0] + 4]
        file.seek((root - 1) * size)
        file.write(page)
    fails(path, ["list"], 1, "damaged", "more than once")


@test
def damaged_pages_are_an_error():
    "a file with damaged pages is an error that names it, never a crash; vacuum says so, too"
    path = filled()
    db(path, "vacuum")
    whole = open(path, "rb").read()
    seen = set()
    for at in range(0, len(whole), 512):
        with open(path, "wb") as out:
            out.write(whole[:at] + bytes(255 - b for b in whole[at:at + 256]) + whole[at + 256:])
        for word in ("export", "vacuum"):
            rc, _, err = db(path, word)
            assert rc in (0, 1), (rc, at, word, err)
            assert rc == 0 or path in err, err
            seen.add(rc)
    assert 1 in seen, "no damage was noticed"


@test
def files_of_others_are_not_used():
    "a database that others own or may write, or whose folder they may write, is refused; root uses no other's"
    path = filled()
    folder = os.path.dirname(path)
    for what, mode in ((path, 0o602), (folder, 0o702), (folder, 0o1777)):
        old = os.stat(what).st_mode & 0o7777
        os.chmod(what, mode)
        fails(path, ["list"], 2, "others may write to " + what)
        os.chmod(what, old)
    equal(db(path, "list")[0], 0, "afterwards")
    equal(os.stat(path).st_mode & 0o777, 0o600, "mode")
    os.chmod(folder, 0o703)
    fails(folder + "/new.db", ["vacuum"], 2, "others may write to " + folder)
    assert not os.path.exists(folder + "/new.db"), "a file was made"
    os.chmod(folder, 0o700)
    if os.geteuid() != 0:
        skip("the rest needs root")
    for what in (path, folder):
        os.chown(what, 12345, -1)
        fails(path, ["list"], 2, what + " belongs to user 12345")
        os.chown(what, 0, -1)


@test
def folders_of_others_above():
    "a database below a folder that others may write to is refused, as is a way there through symbolic links; sticky ones will do"
    top = tmp()
    os.chmod(top, 0o755)
    own = top + "/between/own"
    os.makedirs(own, 0o700)
    path = own + "/cpo.db"
    os.symlink(own, top + "/link")
    equal(db(path, "vacuum")[0], 0, "own")
    equal(db(top + "/link/cpo.db", "list")[0], 0, "through a link")
    os.chmod(top + "/between", 0o1777)
    equal(db(path, "list")[0], 0, "sticky")
    os.chmod(top + "/between", 0o777)
    for name in (path, top + "/link/cpo.db"):
        fails(name, ["list"], 2, "others may write to " + top + "/between")
    os.chmod(top + "/between", 0o755)
    if os.geteuid() != 0:
        skip("the rest needs root")
    os.chown(top + "/between", 12345, -1)
    for name in (path, top + "/link/cpo.db"):
        fails(name, ["list"], 2, top + "/between belongs to user 12345")
    rc, _, err = run([PEM, "db", "vacuum"], env={"PEM_DB": None, "XDG_DATA_HOME": top + "/between/new"})
    assert rc == 2 and "12345" in err and not os.path.exists(top + "/between/new"), "made a folder in another user's: " + err


@test
def many_write_at_once():
    "sixteen processes at a time that begin one database together all get their rows in, each time"

    def one(number):
        return db(path, "import", "-", input=lines(HEAD, *[dict(APPLICATION, id=i, build_id="%x-%x" % (number, i)) for i in range(20)]))

    for _ in range(8):
        path = place()
        with ThreadPoolExecutor(16) as pool:  # more than there are CPUs
            for rc, _, err in pool.map(one, range(16)):
                equal(rc, 0, err)
        equal(len(json.loads(db(path, "show", "application", "--json")[1])), 320, "rows")


@test
def killed_at_any_moment():
    "a writer that is killed leaves all of its rows or none, and a database that works on"
    path = place()
    db(path, "import", "-", input=lines(HEAD))
    rows = lines(HEAD, *[dict(APPLICATION, id=i, build_id="%x" % i) for i in range(3000)])
    counts = set()
    for delay in range(12):
        child = start([PEM, "db", "import", "-"], env={"PEM_DB": path}, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        child.stdin.write(rows.replace('"build_id": "', '"build_id": "%d-' % delay).encode())
        if delay % 3:
            child.stdin.close()
        time.sleep(delay * 0.01)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        rc, _, err = db(path, "vacuum")
        equal(rc, 0, err)
        counts.add(len(json.loads(db(path, "show", "application", "--json")[1])))
    assert all(count % 3000 == 0 for count in counts), counts


@test
def no_room_on_the_disk():
    "on a full disk an import is an error that says so, and what was there stays"
    if os.geteuid() != 0:
        skip("only root can mount a small disk")
    folder = tmp()
    rc, _, err = run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "none", folder])
    if rc != 0:
        skip("no tmpfs can be mounted here: " + err)
    try:
        path = folder + "/cpo.db"
        equal(db(path, "import", "-", input=lines(HEAD, *ROWS))[0], 0, "first")
        before = db(path, "export")[1]
        for count in (3000, 12000):  # the second does not fit into memory either, so it fails before its end
            fails(path, ["import", "-"], 2, "room",
                  input=lines(HEAD, *[dict(APPLICATION, id=i, build_id="%x" % i, path="x" * 500) for i in range(count)]))
            equal(db(path, "export")[1], before, "what was there")
    finally:
        run(["umount", folder])


@test
def a_database_of_version_1_is_read():
    "a database as the first version wrote it is opened and has its rows"
    path = place()
    con = sqlite3.connect(path)
    with open(ROOT + "/tests/data/database/v1.sql") as script:
        con.executescript(script.read())
    con.close()
    os.chmod(path, 0o600)
    rc, out, err = db(path, "export")
    equal((rc, plain(out)), (0, plain(lines(HEAD, *ROWS))), err)
    equal(db(path, "import", "-", input=lines(HEAD, dict(APPLICATION, build_id="new")))[0], 0, "import")


@test
def without_a_place():
    "without PEM_DB the file is made in XDG_DATA_HOME, for its user alone; without a home it says what would help"
    home = tmp()
    env = {"PEM_DB": None, "XDG_DATA_HOME": home + "/data"}
    rc, _, err = run([PEM, "db", "import", "-"], env=env, input=lines(HEAD))
    equal(rc, 0, err)
    equal(os.stat(home + "/data/pem").st_mode & 0o777, 0o700, "folder")
    rc, _, err = run([PEM, "db", "vacuum"], env={"PEM_DB": None, "XDG_DATA_HOME": None, "HOME": home})
    assert rc == 0 and os.path.exists(home + "/.local/share/pem/cpo.db"), err


@test
def merge_into_a_server_and_back():
    "rows go to a PostgreSQL server and back unchanged; a server that is not there is one sentence"
    if not os.path.exists(BUILD + "/lib/pem/database-postgresql.so"):
        skip("pem was built without libpq")
    path, back = filled(), place()
    fails("postgresql:///x?host=/nowhere", ["list"], 2, "no connection to the database server")
    with server() as url:
        url = "postgresql://" + url
        rc, _, err = db(url, "merge", path)
        assert rc == 0 and "7 rows" in err and "postgresql:///postgres" in err, err
        equal(db(url, "vacuum")[0], 0, "vacuum")
        rc, _, err = db(back, "merge", url)
        equal(rc, 0, err)
        for rc, _, err in parallel(lambda i: db(url, "import", "-", input=lines(HEAD, dict(APPLICATION, build_id="%x" % i))), range(8)):
            equal(rc, 0, err)
        equal(len(json.loads(db(url, "show", "application", "--json")[1])), 9, "rows")
    equal(plain(db(back, "export")[1]), plain(lines(HEAD, *ROWS)), "rows")


run_all()
