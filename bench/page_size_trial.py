# SPDX-License-Identifier: MIT
"""
page_size_trial.py - one program under all ways to give it large pages: mappings, the agent's choices, simple rankings, peers

Not here: what follows over programs (page_size_programs.py), how a run is made (page_size_runs.py).
"""
import json
import os
import random
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack

from measure import BUILD, Missing, PEM, QUICK
from page_size_metrics import gains
from page_size_runs import LARGE, Setting, Way, directives, mapped, peers

ROUNDS_MIN, ROUNDS_MAX = (2, 2) if QUICK else (3, 40)
SECONDS = float(os.environ.get("PEM_BENCH_SECONDS", "300"))
ERROR_OF_BEST = 0.02  # rounds go on until the best gain is known so well
NOISE_TIMES = 3
SITES_MAX = 8  # with more sites, mappings vary the hottest of these
MAPPINGS = 12
QUARTER, TWENTIETH = 0.25, 0.05
PLAIN = Way("plain")


class Wrong(Exception):
    """A program's output depends on the way it is run."""


class Agent:
    """'pem page-size' on one program: its profile, and what it says of mappings. All that it says is simulated."""

    def __init__(self, folder, program):
        self.profile, self.seconds = "%s/%s.profile" % (folder.path, program.name), None
        self.program = program

    def observe(self):
        if os.path.exists(self.profile):
            return
        begin = time.monotonic()
        self.program.run(PLAIN, prefix=[PEM, "page-size", "profile", "-o", self.profile, "--"])
        self.seconds = time.monotonic() - begin

    def model(self, mappings=(), budget=None):
        words = [PEM, "page-size", "model", self.profile, "--json"]
        words += ["--budget=%d" % budget] if budget is not None else []
        words += ["--mapping=" + digits for digits in mappings]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise Missing("pem page-size model: " + done.stderr.strip()[-300:])
        found = json.loads(done.stdout)
        # The last stands for all that is of no site.
        found["sites"] = [site for site in found["sites"] if site["key"]]
        found["chosen"] = "".join("1" if site["page_size"] > 4096 else "0" for site in found["sites"])
        return found


def mappings_of(sites, chance):
    """Mappings to try, as a digit for each site: none, all, singles, pairs of the hottest, random ones. Hottest sites come first."""
    # The kernel alone chooses the stack's pages.
    varied = [i for i, site in enumerate(sites) if site["bytes"] >= LARGE // 2 and site["key"] != "stack"][:SITES_MAX]

    def digits(chosen):
        return "".join("1" if i in chosen else "0" for i in range(len(sites)))

    found = [digits(()), digits(range(len(sites)))] + [digits((i,)) for i in varied]
    found += [digits((a, b)) for n, b in enumerate(varied[:4]) for a in varied[:n]]
    for _ in range(1000):
        if len(set(found)) >= MAPPINGS:
            break
        found.append(digits([i for i in varied if chance.random() < 0.5]))
    return list(dict.fromkeys(found))


def by_rank(sites, value, budget):
    """The mapping of a simple ranking: the greatest value first, until the budget is used up; the last may have it in part."""
    chosen, used = set(), 0
    for i in sorted(range(len(sites)), key=lambda i: -value(sites[i])):
        if used < budget:
            chosen.add(i)
            used += sites[i]["bytes"]
    return "".join("1" if i in chosen else "0" for i in range(len(sites)))


class Trial:
    """
    One program: its ways, their times by round, and what follows. groups: which ways are tried, of thp_always, peers, mappings,
    chosen, quarter and budget.
    """

    def __init__(self, program, folder, groups):
        self.groups = set(groups)
        self.program, self.folder = program, folder
        self.ways, self.times, self.system, self.large = {"plain": PLAIN}, {}, {}, {}
        self.wall = []  # of plain runs
        self.mappings, self.predicted, self.missing, self.sites = {}, {}, [], []
        self.chance = random.Random(program.name)
        self.agent = Agent(folder, program)
        self.output = None

    def add(self, way):
        if way.missing:
            self.missing.append("%s: %s" % (way.name, way.missing))
        else:
            self.ways[way.name] = way

    def add_mapping(self, name, digits, budget=None):
        """A way whose directives these are; budget None: no limit."""
        path = "%s/%s-%s.directives" % (self.folder.path, self.program.name, name)
        directives(path, [site["key"] for site in self.sites], digits, **({} if budget is None else {"budget": budget}))
        self.add(mapped(name, path))

    def once(self, way, sampled=False):
        with ExitStack() as stack:
            for path, value in way.settings:
                stack.enter_context(Setting(path, value))
            run = self.program.run(way, sampled=sampled)
        if self.output is None:
            self.output = run.output
        if run.output != self.output:
            raise Wrong("%s has another output with %s than plain" % (self.program.name, way.name))
        return run

    def sample(self):
        """One run of each way that is not timed, for its large pages; ways that can't be had are left out."""
        for name, way in list(self.ways.items()):
            if name in self.large:
                continue
            try:
                run = self.once(way, sampled=True)
                self.large[name] = run.large_bytes
            except Missing as why:
                del self.ways[name]
                self.missing.append("%s: %s" % (name, why))
        if "plain" not in self.ways:
            raise Missing(self.missing[-1])

    def ask_agent(self):
        """The ways that need a profile, and what the agent says of them."""
        try:
            self.agent.observe()
            said = self.agent.model()
            self.sites = said["sites"]
            if "mappings" in self.groups:
                self.predict()
            if "chosen" in self.groups:
                self.add_mapping("chosen", said["chosen"])
            if "quarter" in self.groups and "thp_always" in self.large:
                self.add_quarter(int(QUARTER * self.large["thp_always"]) // LARGE * LARGE)
            if "budget" in self.groups:
                self.add_rankings(int(TWENTIETH * self.program.footprint) // LARGE * LARGE)
        except Missing as why:
            self.missing.append("the agent: %s" % why)

    def predict(self):
        self.mappings = {"mapping " + d: d for d in mappings_of(self.sites, self.chance)}
        said = self.agent.model(self.mappings.values())
        self.predicted = {"mapping " + m["mapping"]: m["saved_ms"] / 1e3 for m in said["mappings"]}
        for name, digits in self.mappings.items():
            self.add_mapping(name, digits)

    def add_quarter(self, budget):
        if budget:
            self.add_mapping("quarter", self.agent.model(budget=budget)["chosen"], budget)
        else:
            self.missing.append("quarter: THP=always has fewer than four large pages")

    def add_rankings(self, budget):
        """The agent's choice within a budget, and those of simple rankings."""
        self.add_mapping("budget agent", self.agent.model(budget=budget)["chosen"], budget)
        for name, value in (("size", "bytes"), ("count", "references"), ("misses", "misses")):
            if all(value in site for site in self.sites):
                self.add_mapping("budget " + name, by_rank(self.sites, lambda site, v=value: site[v], budget), budget)
            else:
                self.missing.append("budget %s: the agent's model says no %s of a site" % (name, value))

    def measure(self):
        end = time.monotonic() + SECONDS
        self.times = {name: [] for name in self.ways}
        self.system = {name: [] for name in self.ways}
        for done in range(ROUNDS_MAX):
            if done >= ROUNDS_MIN and (time.monotonic() > end or self.known()):
                break
            for name in self.chance.sample(sorted(self.ways), len(self.ways)):
                run = self.once(self.ways[name])
                self.times[name].append(run.seconds)
                self.system[name].append(run.system_s)
                if name == "plain":
                    self.wall.append(run.wall_s)

    def known(self):
        """Is the error of the best gain small enough?"""
        best, error = max(gains(self.times, "plain").values())
        return best > 0 and error <= ERROR_OF_BEST * best

    def gain(self, name):
        """(s saved against plain, standard error), or None."""
        return gains(self.times, "plain").get(name)

    def counts(self):
        """Does the best gain of a mapping exceed the noise?"""
        if not self.mappings or not all(name in self.times for name in self.mappings):
            return False
        none = next(iter(self.mappings))
        found = gains(self.times, none)
        best, error = max(found[name] for name in self.mappings)
        return best > NOISE_TIMES * error

    def ranking(self):
        """(predicted gains, measured gains, their errors, which are 'none' or 'all')"""
        names = list(self.mappings)
        found = gains(self.times, names[0])
        return ([self.predicted[n] for n in names], [0.0 if n == names[0] else found[n][0] for n in names],
                [found[n][1] for n in names], [i < 2 for i in range(len(names))])

    def plain_s(self):
        return statistics.median(self.times["plain"])

    def rows(self):
        for name in self.ways:
            gain, error = self.gain(name)
            row = {"what": "run", "program": self.program.name, "way": name, "rounds": len(self.times[name]),
                   "measured": {"seconds": statistics.median(self.times[name]), "saved_s": gain, "saved_error_s": error,
                                "system_s": statistics.median(self.system[name]), "large_bytes": self.large[name],
                                "resident_bytes": self.program.footprint, "times_s": self.times[name]}}
            if name in self.predicted:
                row["simulated"] = {"saved_s": self.predicted[name]}
            yield row
        yield {"what": "sites", "program": self.program.name, "simulated": self.sites, "missing": self.missing}

    def run(self):
        """Measure all; what was found is printed, and goes to page-size.jsonl."""
        self.program.prepare()
        self.sample()
        for way in peers(self.program.footprint):
            if self.groups & {"peers", way.name}:
                self.add(way)
        self.sample()
        if self.groups - {"peers", "thp_always"}:
            self.ask_agent()
            self.sample()
        self.measure()
        with open(os.path.join(BUILD, "bench", "page-size.jsonl"), "a", encoding="utf-8") as log:
            log.writelines(json.dumps(row) + "\n" for row in self.rows())
        print("    %-13s plain %.2f s; %d rounds; saved, with standard error, and large pages:" %
              (self.program.name, self.plain_s(), len(self.times["plain"])))
        for name, (gain, error) in gains(self.times, "plain").items():
            if name != "plain" and name not in self.mappings:
                print("        %-16s %6.1f %% +- %3.1f %6d MiB" % (name, 100 * gain / self.plain_s(), 100 * error / self.plain_s(),
                                                                 self.large[name] >> 20))
        for line in self.missing:
            print("        not here: " + line)
        sys.stdout.flush()
