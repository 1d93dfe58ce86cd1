# SPDX-License-Identifier: MIT
"""rates_tune: pem rates --tune tries longer pipes in further runs of a command, which tells itself how long its pipe is"""
import json
import os
import sqlite3
import sys

from probing import here
from tap import BUILD, PEM, equal, run, run_all, test, tmp

if not os.path.exists(BUILD + "/bin/pem-rates"):
    print("1..0 # SKIP pem rates was not built: it needs json-c, SQLite and libelf")
    sys.exit(77)

# Works on small parts of its input, so that the stage before it blocks, and prints how long its pipe is.
ORPHAN = """import os, sys, time
while os.getppid() == int(sys.argv[1]):
    time.sleep(0.01)
for name in "parent", "done":
    with open(name, "w") as out:
        out.write(str(os.getppid()))
"""
READER = """import fcntl, hashlib, os, sys
while hashlib.md5(os.read(0, 16384)).digest() != hashlib.md5(b"").digest(): pass
print("pipe", fcntl.fcntl(0, 1032), file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
USUAL, LONG = 65536, 1 << 20


class Command:
    """A command of two stages that block on the pipe between them, with a database of its own."""

    def __init__(self, status=0):
        folder = tmp()
        os.chmod(folder, 0o700)
        self.database = os.path.join(folder, "db")
        self.reader = os.path.join(folder, "reader.py")
        with open(self.reader, "w", encoding="ascii") as text:
            text.write(READER)
        self.words = ["sh", "-c", "head -c 40000000 /dev/zero | %s %s %d" % (sys.executable, self.reader, status)]
        self.status = status
        self.folder = None

    def tune(self, words=None, status=None):
        """What a run's JSON has, the sizes that the command's pipe had at its end, and all that was said."""
        here()
        rc, out, err = run([PEM, "rates", "--tune", "--json", "--", *(words or self.words)], env={**os.environ, "PEM_DB": self.database}, cwd=self.folder, timeout=300)
        equal(rc, self.status if status is None else status, "status: " + err)
        return json.loads(out), [int(line.split()[1]) for line in err.splitlines() if line.startswith("pipe ")], err

    def observe(self):
        """The first run, and again if records were lost."""
        for _ in range(3):
            found, sizes, err = self.tune()
            if not found["observation"]["lost"]:
                break
        equal((found["purpose"], found["directives"], sizes), ("observed", 1, [USUAL]), "first run: " + err)
        return found

    def change(self, statement):
        with sqlite3.connect(self.database) as database:
            equal(database.execute(statement).rowcount, 1, "changed rows")


@test
def pipes_are_long_in_treated_runs_alone():
    "after the observed run, the pipe has 1 MiB in the runs that are called treated, and 64 KiB in the others"
    command = Command()
    found = command.observe()
    queue = found["observation"]["queues"][0]
    equal((queue["capacity"], queue["bytes"]), (USUAL, 40000000), "the observed queue")
    seen = set()
    while seen != {"treated", "control"}:
        found, sizes, err = command.tune()
        equal(sizes, [LONG if found["purpose"] == "treated" else USUAL], found["purpose"] + ": " + err)
        equal(found["counts"], True, "it counts")
        resized = [("python3"[:15], LONG, USUAL)] if found["purpose"] == "treated" else []
        equal([(p["to"], p["bytes"], p["was_bytes"]) for p in found["pipes"]], resized, "pipes")
        seen.add(found["purpose"])


@test
def each_command_is_an_application():
    "what one command of a shell showed says nothing of another one, or in another folder; the status is the command's"
    command = Command(status=3)
    command.observe()
    equal(command.tune(["sh", "-c", "true"], status=0)[0]["purpose"], "observed", "another command")
    assert command.tune()[0]["purpose"] in ("treated", "control"), "the first command again"
    command.folder = tmp()
    equal(command.tune()[0]["purpose"], "observed", "the same words in another folder")


@test
def pipes_one_after_the_other():
    "two pipes between programs of the same names, of which one is there at a time, are both resized"
    command = Command()
    one = command.words[2]
    words = ["sh", "-c", one + "; " + one]
    found, sizes, err = command.tune(words)
    equal((found["purpose"], sizes, found["directives"]), ("observed", [USUAL] * 2, 2), err)
    with sqlite3.connect(command.database) as database:
        rows = database.execute("select predicted, reason from directive where text like '1048576 %'").fetchall()
    equal(rows, [(0, "the gain is not predicted: the pipeline has no last stage, or several")], "predictions")
    for _ in range(40):
        found, sizes, err = command.tune(words)
        if found["purpose"] == "treated":
            break
    equal((found["counts"], sizes), (True, [LONG] * 2), err)


@test
def an_orphan_gets_another_parent():
    "a process of the command whose parent ends has the parent that it has alone, which daemons wait for"
    here()
    parents = []
    for words in ([], [PEM, "rates", "-q", "--"]):
        folder = tmp()
        with open(folder + "/orphan", "w", encoding="ascii") as out:
            out.write(ORPHAN)
        rc, _, err = run([*words, "sh", "-c", "sh -c 'python3 orphan $$ &'; while [ ! -e done ]; do sleep 0.01; done"], cwd=folder)
        equal(rc, 0, err)
        with open(folder + "/parent", encoding="ascii") as text:
            parents.append(text.read())
    equal(parents[1], parents[0], "parents")


@test
def a_pipe_that_does_not_block():
    "a command without a pipe that stages block on is left as it is"
    command = Command()
    words = ["sh", "-c", "echo x | cat >/dev/null"]
    found, _, err = command.tune(words, 0)
    equal((found["purpose"], found["directives"]), ("observed", 0), "first run")
    assert "No longer pipe is worth a trial" in err, err
    equal(command.tune(words, 0)[0]["purpose"], "alone", "second run")


@test
def directives_that_are_not_kept():
    "where the database takes no directive, nothing is said of what pipes are worth"
    command = Command()
    refuse = os.path.join(os.path.dirname(command.reader), "refuse.py")
    with open(refuse, "w", encoding="ascii") as text:
        text.write("import sqlite3\n"
                   "with sqlite3.connect('%s') as database:\n"
                   "    database.execute(\"create trigger refuse before insert on directive when new.text like '1048576 %%' begin \"\n"
                   "                     \"select raise(abort, 'refused'); end\")\n" % command.database)
    # The loop looks at the tables when it begins.
    found, _, err = command.tune(["sh", "-c", "%s %s; %s" % (sys.executable, refuse, command.words[2])])
    equal((found["purpose"], found["directives"]), ("observed", 0), "first run")
    assert "not kept" in err and "worth a trial" not in err, err


@test
def a_pipe_that_is_not_found():
    "a run in which a pipe was not resized is no evidence"
    command = Command()
    command.observe()
    command.change("update directive set text = '1048576 other/cat' where text like '1048576 %'")
    found = {"purpose": "control"}
    while found["purpose"] != "treated":
        found, sizes, err = command.tune()
        equal(sizes, [USUAL], "size")
    equal(found["counts"], False, "it counts")
    assert "was not found: this run does not count" in err, err


@test
def directives_that_are_not_valid():
    "text that is not a directive is not applied, and the command runs alone"
    for text in ("", "x", "1048576", "1048576 head cat", "0 head/cat", "1048576 head/", "99999999999999999999 head/cat",
                 "-1 head/cat", "1048576 1 1 4 head cat", "1048576 " + 64 * "x" + "/cat", "1048576 head/" + 64 * "x", "1048576 head/cat/x"):
        command = Command()
        command.observe()
        command.change("update directive set text = '%s' where text like '1048576 %%'" % text)
        found, sizes, err = command.tune()
        equal((found["purpose"], sizes, found["pipes"]), ("alone", [USUAL], []), text)
        assert "not one of this version" in err, err


@test
def a_size_beyond_the_limit():
    "a size that the kernel refuses leaves the pipe as it is, with a sentence"
    command = Command()
    command.observe()
    command.change("update directive set text = '2147483647' || substr(text, 8) where text like '1048576 %'")
    found = {"purpose": "control"}
    while found["purpose"] != "treated":
        found, sizes, err = command.tune()
        equal(sizes, [USUAL], "size")
    equal(found["counts"], False, "it counts")
    assert "fs.pipe-max-size" in err, err


@test
def what_takes_no_command():
    "--tune of processes that run, or of a trace, is refused with the way to use it"
    for words in (["-p", str(os.getpid())], []):
        rc, _, err = run([PEM, "rates", "--tune", *words])
        equal(rc, 1, "status")
        assert "pem rates" in err, err


run_all()
