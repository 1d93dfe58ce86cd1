# SPDX-License-Identifier: MIT
"""page_size_hooks_agent: pem page-size observes a program with compiler hooks by them, and finds what it finds with Valgrind"""
import os

from page_size import SHAPES, Home, chosen
from hooks import build
from page_profile import Profile
from tap import equal, run, run_all, test

LONG_S = 25

# Sizes at which the best sites are far beyond the TLB of page_size.MACHINE.
PROGRAMS = {"gups": ["2", "24", "96"], "hash_join": ["1000", "2"], "pagerank": ["400", "3"]}
WITHOUT_VALGRIND = {"PATH": "/nowhere"}


def bench(name, hooks=True):
    return build("bench/page-size/%s.c" % name, flags=("-O2", "-fbuiltin", "-Ibench/page-size"), hooks=hooks)


@test
def both_observers_choose_alike():
    "for three programs the same sites get large pages, and the gain is nearly the same, whoever observes"
    home = Home()
    for name, words in PROGRAMS.items():
        own, plain = home.plan(bench(name), *words), home.plan(bench(name, False), *words)
        equal((own["observer"], plain["observer"]), ("hooks", "valgrind"), "observers of " + name)
        equal(sorted(chosen(own)), sorted(chosen(plain)), "sites with large pages, of " + name)
        best = [max(plan["sites"], key=lambda site: site["saved_alone_ms"])["name"] for plan in (own, plain)]
        equal(best[0], best[1], "the site that gains most, of " + name)
        assert name + ".c:" in best[0], best[0]
        assert 0.75 < own["saved_ms"] / plain["saved_ms"] < 1.33, (name, own["saved_ms"], plain["saved_ms"])
        assert 0.7 < own["gain_percent"] / plain["gain_percent"] < 1.43, (name, own["gain_percent"], plain["gain_percent"])
        memory = [{site["name"]: site["bytes"] for site in plan["sites"] if site["bytes"] > 1 << 20 and ".c:" in site["name"]}
                  for plan in (own, plain)]
        equal(memory[0], memory[1], "memory of the sites of " + name)


@test
def hooks_need_no_valgrind():
    "a program with hooks is observed where there is no Valgrind; one without is told what to install"
    home = Home()
    rc, out, err = home.run("profile", "-o", home.folder + "/p", "--", bench("gups"), "1", "1", "1", env=WITHOUT_VALGRIND)
    assert rc == 0 and out.startswith("gups ") and "observing with compiler hooks" in err, (rc, out, err)
    rc, out, err = home.run("model", home.folder + "/p", "--machine", home.machine, env=WITHOUT_VALGRIND)
    assert rc == 0 and "references that compiler hooks saw" in out, (rc, out, err)
    rc, out, err = home.run("profile", "-o", home.folder + "/q", "--", SHAPES, "compute", "1", "1", env=WITHOUT_VALGRIND)
    assert rc == 2 and "install Valgrind" in err, (rc, err)


@test
def the_loop_says_who_observed():
    "run observes by the hooks, which is said and shown; the next run writes no profile, and has its large pages"
    home, command = Home(), [bench("gups"), "2", "24", "96"]
    rc, out, err = home.agent(*command)
    assert rc == 0 and "observing the command with compiler hooks" in err and "predicted gain" in err, (rc, err)
    equal(out, run(command)[1], "output")
    equal({site["observer"] for site in home.show(command[0])}, {"hooks"}, "observer")
    rc, out, err = home.run("show", command[0])
    assert rc == 0 and "Observed with compiler hooks." in out, out
    rc, out, err = home.run("apply", "--", *command)
    assert rc == 0 and ", with large pages" in err and "Valgrind" not in err, err
    equal(out, run(command)[1], "output")
    equal(home.large_pages()[-1], 24 << 20, "large pages: those of the hot table")
    equal(home.left(), [], "files that are left")
    rc, _, err = home.agent(SHAPES, "hot-and-cold", "1", "32")
    assert rc == 0 and "observing the command with Valgrind" in err, err
    equal({site["observer"] for site in home.show(SHAPES)}, {"valgrind"}, "observer of the other")


@test
def a_short_limit_ends_the_observation():
    "after --limit the program runs on, and the profile says where it stopped"
    home = Home()
    path = home.folder + "/profile"
    rc, out, err = home.run("profile", "-o", path, "--limit", "1", "--", bench("gups"), "40", "24", "96")
    assert rc == 0 and out.startswith("gups "), (rc, err)
    end = Profile(path).end
    assert end.stopped_at and end.stopped_at == end.references < 400000000, end
    assert os.path.getsize(path) < 80 << 20


run_all()
