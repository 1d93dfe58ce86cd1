#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
page_size_loop.py - what the page-size agent costs beside its directives, and what it does with poisoned ones

    page-size/idle_cost         CPU time of gzip under an agent that knows it has nothing to do, above gzip alone; the greatest
                                memory of either
    page-size/sample_cost       CPU time of timer samples, the command's and the agent's, at the agent's rate: a fiftieth of what
                                they cost at fifty times the rate; and what a process more costs that inherits them
    page-size/withdraw          poisoned directives that are withdrawn within 10 runs: large pages for one line in each 2 MiB;
                                and good ones that are taken for harmful within 24: large pages for a table used at random

Runs alternate. All is measured; the observations before use a fixed calibration, so that nothing hangs on this machine's.
"""
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys

from measure import BUILD, Folder, Missing, QUICK, heading, report, wanted

CASES = ("page-size/idle_cost", "page-size/sample_cost", "page-size/withdraw")
PEM = os.path.join(BUILD, "bin", "pem")
SHAPES = os.path.join(BUILD, "programs", "page_shapes")
SAMPLED = os.path.join(BUILD, "bench", "page_size_sampled")
PAIRS, TRIALS = (3, 2) if QUICK else (25, 40)
RATE_HZ, TIMES = 101, 50  # TIMER_RATE_HZ of agents/page-size/timer/timer.h; above, as the docstring has it
PROCESSES = 300
POISONED_RUNS, GOOD_RUNS = 10, 24
INPUT_BYTES = (8 if QUICK else 64) << 20
ON_TRIAL, WITHDRAWN = 1, 3
TEXT = "page_size=2097152 bytes=0 most=0 share=0 chained=0 saved_ms=0 name=x"


def seconds(command, env):
    """(CPU seconds, KiB of the largest process) of a command in a process of its own, and what it said."""
    done = subprocess.run([sys.executable, "-c", "import resource, subprocess, sys\n"
                           "rc = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
                           "u = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
                           "print(rc, u.ru_utime + u.ru_stime, u.ru_maxrss)", *command], env={**os.environ, **env},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    rc, cpu, kib = done.stdout.split()
    assert rc == "0", (command, done.stderr)
    return float(cpu), int(kib), done.stderr


def idle_cost(folder):
    """Pairs of gzip alone and under the agent, in turn."""
    source = os.path.join(folder, "input")
    with open(source, "wb") as out:
        out.write(os.urandom(1 << 20) * (INPUT_BYTES >> 20))
    env, plain = {"PEM_DB": os.path.join(folder, "idle.db")}, [shutil.which("gzip"), "-c", source]
    agent = [PEM, "page-size", "run", "--", *plain]
    seconds(agent, env)
    costs, more_kib = [], []
    for number in range(PAIRS):
        pair = {}
        for under in (False, True) if number % 2 else (True, False):
            pair[under] = seconds(agent if under else plain, env)
        if "runs alone" in pair[True][2]:  # one in sixteen is waited for
            costs.append(100 * (pair[True][0] / pair[False][0] - 1))
            more_kib.append(pair[True][1] - pair[False][1])
    report("page_size_loop", CASES[0], "% of CPU", costs,
           note="%d KiB more in the largest process, and none beside it; measured" % max(more_kib), more_kib=max(more_kib))


def sampled(rate, *words):
    """CPU seconds of a command and of who samples it. Missing: it can't be sampled here."""
    done = subprocess.run([SAMPLED, str(rate), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        raise Missing(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    command, own, _ = done.stdout.split()
    return float(command), float(own)


def sample_cost():
    """Pairs with and without samples, in turn. Samples end after 2,048, and so does a run: 0.4 s at fifty times the rate."""
    work, many = (SHAPES, "hot-and-cold", "15", "32"), ("sh", "-c", "i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done" % PROCESSES)
    costs, processes = [], []
    for number in range(PAIRS):
        pair, more = {}, {}
        for rate in (0, 1) if number % 2 else (1, 0):
            pair[rate] = sum(sampled(rate * RATE_HZ * TIMES, *work))
            more[rate] = sum(sampled(rate * RATE_HZ, *many))
        costs.append(100 * (pair[1] / pair[0] - 1) / TIMES)
        processes.append((more[1] - more[0]) / PROCESSES * 1e6)
    report("page_size_loop", CASES[1], "% of CPU", costs,
           note="%.0f us more for each process, of %d; measured" % (statistics.median(processes), PROCESSES),
           process_us=statistics.median(processes))


def template(folder, name, command):
    """A database in which the site that command's table comes from is on trial for large pages, whatever the model says."""
    path = os.path.join(folder, name + ".db")
    seconds([PEM, "page-size", "run", "--", *command], {"PEM_DB": path})
    with sqlite3.connect(path) as db:
        db.execute("delete from directive where subject like '(%'")
        site, = db.execute("select id from directive where subject like 'heap %' or subject like 'map %' "
                           "order by cast(substr(text, instr(text, 'bytes=') + 6) as integer) desc").fetchone()
        db.execute("update directive set state = ?, text = case id when ? then ? else text end, reason = ''", (WITHDRAWN, site, TEXT))
        db.execute("update directive set state = ? where id = ?", (ON_TRIAL, site))
    db.close()
    return path


def withdrawn_within(path, runs, command):
    """After how many runs the directive was withdrawn; None: it was not."""
    for number in range(1, runs + 1):
        seconds([PEM, "page-size", "run", "--", *command], {"PEM_DB": path})
        with sqlite3.connect(path) as db:
            state, reason = db.execute("select state, reason from directive where text = ?", (TEXT,)).fetchone()
        db.close()
        if state != ON_TRIAL:
            return number if state == WITHDRAWN and "no difference" not in reason else None
    return None


def withdraw(folder):
    share, needed = {}, []
    for name, command, runs in (("poisoned", [SHAPES, "sparse", "1", "1024"], POISONED_RUNS),
                                ("good", [SHAPES, "maps", "2", "192"], GOOD_RUNS)):
        base, found = template(folder, name, command), []
        for number in range(TRIALS if name == "poisoned" else max(2, TRIALS // 2)):
            path = os.path.join(folder, "%s-%d.db" % (name, number))
            shutil.copy(base, path)
            found.append(withdrawn_within(path, runs, command))
        share[name] = 100 * sum(n is not None for n in found) / len(found)
        needed = needed or [n for n in found if n is not None]
    report("page_size_loop", CASES[2], "% withdrawn", [share["poisoned"]],
           note="after %s runs; of good ones %.0f %% taken for harmful; measured" % (
               "%d to %d" % (min(needed), max(needed)) if needed else "no", share["good"]),
           good_withdrawn=share["good"], trials=TRIALS)


def main():
    cases = wanted(*CASES)
    if not cases:
        return 0
    heading("page_size_loop")
    if not os.path.exists(os.path.join(BUILD, "lib", "pem", "valgrind")) or not shutil.which("valgrind"):
        print("    left out: there is no Valgrind")
        return 0
    with Folder() as folder:
        os.chmod(folder.path, 0o700)
        if CASES[0] in cases:
            idle_cost(folder.path)
        if CASES[1] in cases:
            try:
                sample_cost()
            except Missing as why:
                print("%-22s no value: %s" % (CASES[1], why))
        if CASES[2] in cases:
            withdraw(folder.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
