#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
explore_taxi.py - the experiment of "Enabling Performance Exploration and Analysis for Multi-parametric Systems" (EWiLi 2016)

    explore/sqlite_share    queries per minute of the best configuration that pem explore finds in a tenth of the trials, as a share
                    of the best that brute force over all finds: both run again, in turns. page_size x cache_size x threads 1 to 8
                    of a table of taxi trips in SQLite (examples/explore/taxi.c). The note has the ratio's interval, and the sentence
                    about threads of pem explore show after brute force
"""
import json
import os
import re
import statistics
import subprocess

from measure import BUILD, HERE, PEM, QUICK, Folder, heading, ratio_interval, report, wanted

CASE = "explore/sqlite_share"
SOURCE = os.path.join(os.path.dirname(BUILD), "examples", "explore", "taxi.xml")
ROWS, SECONDS, AGAIN = (20_000, 0.1, 3) if QUICK else (200_000, 0.5, 31)


def explore(folder, name, *replaced):
    """What run prints as JSON, and what show prints of the threads."""
    with open(SOURCE, encoding="utf-8") as text:
        document = text.read()
    for old, new in replaced:
        document = re.sub(old, new, document)
    path = os.path.join(folder, name + ".xml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(document)
    env = dict(os.environ, PEM_DB=os.path.join(folder, name + ".db"), XDG_STATE_HOME=folder)
    run, show = (json.loads(subprocess.run([PEM, "explore", verb, path, "--json"], env=env, stdout=subprocess.PIPE, check=True).stdout)
                 for verb in ("run", "show"))
    return run, [one["sentence"] for one in show["parameters"] if one["name"] == "threads"][0]


def queries(folder, values):
    """Queries per minute of a configuration, now."""
    database = os.path.join(folder, "taxi.db")
    subprocess.run([TAXI, "page", database, values["page_size"]], check=True)
    run = subprocess.run([TAXI, "ask", database, values["cache_size"], values["threads"], str(SECONDS)], stdout=subprocess.PIPE, text=True, check=True)
    return float(run.stdout.split(":")[1])


TAXI = os.path.join(HERE, "taxi")


def main():
    if not wanted(CASE):
        return
    heading("explore")
    with Folder() as made:
        folder = made.path
        subprocess.run([TAXI, "make", os.path.join(folder, "taxi.db"), str(ROWS)], check=True)
        os.symlink(TAXI, os.path.join(folder, "taxi"))
        seconds = (r" 0\.5</command>", " %g</command>" % SECONDS)
        brute, sentence = explore(folder, "brute", seconds, ('trials="25"', 'trials="1000" policy="grid" race="0"'))
        tenth, _ = explore(folder, "tenth", seconds, ('trials="25"', 'trials="%d"' % (brute["measured"] // 10)))
        ours, theirs = [], []
        for _ in range(AGAIN):
            ours.append(queries(folder, tenth["configuration"]))
            theirs.append(queries(folder, brute["configuration"]))
        low, high = ratio_interval(ours, theirs)
    report("explore", CASE, "1/min", ours, "brute force", theirs, digits=0,
           note="%.3f to %.3f; %d trials of %d, %d and %d measured: %s; brute force %s; %s; load %.1f"
           % (low, high, tenth["trials"], brute["trials"], tenth["measured"], brute["measured"], tenth["configuration"], brute["configuration"], sentence, os.getloadavg()[0]),
           share=statistics.median(ours) / statistics.median(theirs), low=low, high=high, trials=tenth["trials"], of=brute["trials"],
           threads=sentence)


main()
