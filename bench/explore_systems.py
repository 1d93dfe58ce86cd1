#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
explore_systems.py - what pem explore gains on programs that nobody here wrote

    explore/gain_NAME   NAME: sqlite3, xz, zstd, ffmpeg, redis, nginx, postgresql, and postgresql_durable, whose synchronous_commit
                        stays on. The experiment that pem explore init writes is
                    explored as it is (PEM_BENCH_TRIALS: so many trials); then the defaults and the configuration called best run
                    again, in turns, several times each. The row has these fresh runs alone; the note has their ratio's interval

The note has what the programs' documentation advises beside them, in the same turns (ADVICE), where it advises something.
"""
import json
import os
import pwd
import re
import statistics
import subprocess

from measure import PEM, QUICK, Folder, heading, ratio_interval, report, wanted

SYSTEMS = ("sqlite3", "xz", "zstd", "ffmpeg", "redis", "nginx", "postgresql", "postgresql_durable")
DURABLE = '  <constraint then="synchronous_commit = on"/>\n  <prepare>'
# In place of the defaults: -T0 of xz and zstd on two CPUs; x264's preset veryfast; nginx's guide to static content and
# "worker_processes auto"; SQLite's page on memory-mapped I/O; PostgreSQL's chapter on resources and its notes on disks without seeks.
ADVICE = {"xz": {"threads": "2"},
          "zstd": {"threads": "2"},
          "ffmpeg": {"subme": "2", "ref": "1", "trellis": "0", "rc_lookahead": "10", "weightp": "1"},
          "nginx": {"workers": "2", "sendfile": "on", "tcp_nopush": "on"},
          "sqlite3": {"mmap_size": "268435456"},
          "postgresql": {"shared_buffers": "256MB", "random_page_cost": "1.1", "max_wal_size": "4GB", "checkpoint_timeout": "15min"}}
AGAIN = 1 if QUICK else 3  # each time, reproduce makes three runs
TRIALS = os.environ.get("PEM_BENCH_TRIALS") or ("4" if QUICK else "")


def explore(folder, env, front, verb, *options):
    """What a verb prints as JSON. A figure that does not hold is one as well."""
    run = subprocess.run([*front, PEM, "explore", verb, *options, "--json"], cwd=folder, env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, check=False)
    if not run.stdout:
        raise RuntimeError(run.stderr.strip())
    return json.loads(run.stdout)


def advise(folder, name):
    """Write the experiment with the advice in place of the defaults, as advice.xml; None if there is none."""
    if name not in ADVICE:
        return None
    with open(os.path.join(folder, name + ".xml"), encoding="utf-8") as document:
        text = document.read()
    for parameter, value in ADVICE[name].items():
        text, count = re.subn(r'(<parameter name="%s"[^>]* default=")[^"]*' % parameter, r"\g<1>" + value, text)
        assert count == 1, parameter
    path = os.path.join(folder, "advice.xml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    return "advice.xml"


def own(best):
    """The gain that pem explore itself prints."""
    if best["gain_low"] is None:
        return ""
    return "; pem: %+.1f %% (%+.1f to %+.1f)" % tuple(100 * best[key] for key in ("gain", "gain_low", "gain_high"))


def gain(case):
    name, _, durable = case.partition("_")
    with Folder(memory=name != "postgresql") as made:  # in memory, a commit has no disk to wait for
        folder, front = made.path, []
        env = dict(os.environ, PEM_DB=os.path.join(folder, "db"), XDG_STATE_HOME=folder, HOME=folder)
        if name == "postgresql" and os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
            front = ["runuser", "-u", "postgres", "--"]
        subprocess.run([*front, PEM, "explore", "init", name], cwd=folder, env=env, stdout=subprocess.DEVNULL, check=True)
        document = name + ".xml"
        if durable:
            with open(os.path.join(folder, document), encoding="utf-8") as text:
                text = text.read()
            with open(os.path.join(folder, document), "w", encoding="utf-8") as out:
                out.write(re.sub("  <prepare>", DURABLE, text, count=1))
        best = explore(folder, env, front, "run", document, *(["--budget", TRIALS] if TRIALS else []))
        ours, theirs, advised = [], [], []
        advice, apart = advise(folder, name), dict(env, PEM_DB=os.path.join(folder, "advice.db"))
        if advice:
            explore(folder, apart, front, "run", advice, "--budget", "1")
        for _ in range(AGAIN):
            theirs.append(explore(folder, env, front, "reproduce", document, "--trial", "1")["now"])
            ours.append(explore(folder, env, front, "reproduce", document, "--trial", str(best["trial"]))["now"])
            if advice:
                advised.append(explore(folder, apart, front, "reproduce", advice, "--trial", "1")["now"])
    low, high = ratio_interval(ours, theirs)
    report("explore", "explore/gain_" + case, best["unit"] or best["metric"], ours, "defaults", theirs,
           note="%.3f to %.3f, of %d trials%s%s" % (low, high, best["trials"], own(best),
                                                   "; as advised %.3f" % statistics.median(advised) if advised else ""),
           advised=statistics.median(advised) if advised else None, low=low, high=high, trials=best["trials"],
           gain=best["gain"], gain_low=best["gain_low"], gain_high=best["gain_high"], load=os.getloadavg()[0],
           configuration=best["configuration"])


def main():
    cases = wanted(*["explore/gain_" + name for name in SYSTEMS])
    if cases:
        heading("explore", "fresh runs of the configuration called best")
    for case in cases:
        try:
            gain(case.partition("_")[2])
        except (OSError, KeyError, RuntimeError, subprocess.CalledProcessError) as error:
            print("%s: skipped, %s" % (case, error), flush=True)


main()
