# SPDX-License-Identifier: MIT
"""explorations: experiments of pem explore for tests, each with a database of its own"""
import os
import sqlite3

from tap import PEM, equal, run, tmp

HEAD = '<exploration name="%s" %s>\n'


def experiment(body, name="e", attributes='policy="grid" race="0"'):
    """A folder with e.xml, and the environment of an exploration that shares nothing with others."""
    folder = tmp()
    with open(os.path.join(folder, "e.xml"), "w", encoding="utf-8") as out:
        out.write(HEAD % (name, attributes) + body + "\n</exploration>\n")
    os.mkdir(folder + "/state", 0o700)
    return folder, dict(os.environ, PEM_DB=folder + "/db", XDG_STATE_HOME=folder + "/state")


def explore(folder, env, verb, *options, status=0):
    rc, out, err = run([PEM, "explore", verb, folder + "/e.xml", *options], env=env, timeout=120)
    equal(rc, status, "status of %s (%s)" % (verb, err))
    return out, err


def trials(folder):
    """{configuration: (state, reason)} of the database"""
    with sqlite3.connect(folder + "/db") as db:
        return {text: (state, reason) for text, state, reason in db.execute("SELECT text, state, reason FROM directive WHERE agent = 'explore'")}


def runs(folder):
    with sqlite3.connect(folder + "/db") as db:
        return db.execute("SELECT count(*), sum(wall_ns = 0) FROM run").fetchone()
