# SPDX-License-Identifier: MIT
"""explore_show: pem explore show on tables whose effects are known: shares, curves, sentences, the page"""
import glob
import itertools
import json
import math
import os
import random
import re
import sqlite3
import sys

from explorations import experiment, explore
from html_page import browser, quiet
from tap import BUILD, PEM, ROOT, equal, need, run, run_all, test, tmp

LONG_S = 20

if not os.path.exists(BUILD + "/bin/pem-explore"):
    print("1..0 # SKIP pem was built without SQLite, OpenBLAS, LAPACKE, NLopt or XGBoost")
    sys.exit(0)

THREADS = {1: 100, 2: 170, 3: 230, 4: 200, 5: 180, 6: 165, 7: 155, 8: 150}


def table(names, rows):
    """The path of a CSV file."""
    path = os.path.join(tmp(), "space.csv")
    with open(path, "w", encoding="utf-8") as out:
        for row in [names] + rows:
            out.write(",".join(map(str, row)) + "\n")
    return path


def show(path, *options):
    rc, out, err = run([PEM, "explore", "show", path, "--json", *options])
    equal((rc, err), (0, ""), "status and errors")
    return json.loads(out)


def text(path, *options):
    rc, out, err = run([PEM, "explore", "show", path, *options])
    equal((rc, err), (0, ""), "status and errors")
    return out


def sentences(told):
    return {one["name"]: one["sentence"] for one in told["parameters"]}


def exact(names, rows):
    """{(parameter, or two): share of the variance} over a whole table, by definition."""
    most = max(abs(row[-1]) for row in rows)
    rows = [row[:-1] + (row[-1] / most,) for row in rows]
    values = [row[-1] for row in rows]
    mean = sum(values) / len(values)
    total = sum((value - mean) ** 2 for value in values)

    def closed(columns):
        cells = {}
        for row in rows:
            cells.setdefault(tuple(row[i] for i in columns), []).append(row[-1] - mean)
        return sum(sum(cell) ** 2 / len(cell) for cell in cells.values()) / total
    count = len(names) - 1
    shares = {(names[i],): closed([i]) for i in range(count)}
    for i, k in itertools.combinations(range(count), 2):
        shares[names[i], names[k]] = max(0, closed([i, k]) - shares[names[i],] - shares[names[k],])
    return shares


def agree(names, rows, widest=0.1):
    shares = exact(names, rows)
    told = show(table(names, rows))
    equal(len(told["effects"]), len(shares), "effects")
    for effect in told["effects"]:
        pair = (effect["parameter"],) + ((effect["with"],) if "with" in effect else ())
        true, share = shares.get(pair, shares.get(pair[::-1])), effect["share"]
        assert share["low"] - 0.002 <= true <= share["high"] + 0.002 and share["high"] - share["low"] < widest, (effect, true)
    return told


def scaling(noise=0.0, of=lambda threads: THREADS[threads]):
    """The paper's experiment in small: page size, cache size, threads."""
    chance = random.Random(3)
    return ["page_size", "cache", "threads", "qpm"], [
        (page, cache, threads, of(threads) * (1.05 if page == 4096 else 1) * chance.gauss(1, noise))
        for page in (1024, 4096, 65536) for cache in (2, 16, 128, 1024) for threads in THREADS]


@test
def shares_of_an_additive_function():
    "of a sum of functions of one parameter each, fully measured, shares are those of the table, and pairs have none"
    rows = [(a, b, c, d, 50 + 3 * a + 2 * (b == 1) - 0.5 * c) for a, b, c, d in itertools.product(range(4), range(3), range(5), range(2))]
    told = agree(["a", "b", "c", "d", "v"], rows)
    assert all(effect["share"]["high"] < 0.002 for effect in told["effects"] if "with" in effect), told["effects"]


@test
def shares_of_interactions():
    "an exclusive or, a product, and noise: shares are those of the table within their intervals"
    chance = random.Random(7)
    rows = [levels + (100 + 8 * levels[0] + 6 * (levels[1] ^ levels[2]) + 5 * levels[0] * levels[3] + chance.gauss(0, 1),)
            for levels in itertools.product((0, 1), repeat=8)]
    agree(["o%d" % i for i in range(8)] + ["v"], rows)


@test
def shares_where_levels_exclude_each_other():
    "options of which one is set, as in the measured spaces that are published: shares are those of the table"
    rows = [flags + tuple(int(i == one) for i in range(3)) + (240 + 60 * one * (1 + flags[0]) + 20 * flags[1] + 3 * flags[2],)
            for flags in itertools.product((0, 1), repeat=5) for one in range(3)]
    agree(["f%d" % i for i in range(5)] + ["ref_%d" % i for i in range(3)] + ["v"], rows)


@test
def shares_of_any_magnitude():
    "values that are huge, tiny, negative or partly 0 have the same shares"
    for scale, shift in ((1e300, 0), (1e-300, 0), (-5, 3), (1, -1)):
        rows = [(a, b, scale * (1 + a + 0.5 * b) + shift * 3) for a, b in itertools.product(range(4), range(4))]
        agree(["a", "b", "v"], rows, 0.2)


@test
def chance_is_no_effect():
    "of values that are chance, no parameter matters, and each interval has 0"
    chance = random.Random(11)
    told = show(table(["a", "b", "c", "v"], [levels + (chance.gauss(100, 10),) for levels in itertools.product(range(4), repeat=3)]))
    assert not any(one["matters"] for one in told["parameters"]), sentences(told)
    assert all(one["sentence"].startswith("No effect of ") for one in told["parameters"]), sentences(told)
    equal([effect for effect in told["effects"] if effect["share"]["low"] > 0], [], "effects that are not 0")


@test
def collapse_is_named():
    "the level beyond which a rate falls is named, on average and at the best configuration, beside one without effect"
    names, rows = scaling(0.02)
    told = show(table(names, rows), "--maximize")
    said = sentences(told)
    assert said["threads"].startswith("qpm rises up to threads = 3 and falls beyond threads = 3: 3"), said
    assert " worse at 8 on average, " in said["threads"] and said["threads"].endswith(" worse at 8 at the best configuration"), said
    assert said["cache"].startswith("No effect of cache is seen; if there is one, it is at most "), said
    equal(told["effects"][0]["parameter"], "threads", "what matters most")
    equal((told["best"]["configuration"]["page_size"], told["best"]["configuration"]["threads"]), ("4096", "3"), "best")


@test
def collapse_of_times():
    "of times, less is better: they fall up to the same level, and rise beyond"
    names, rows = scaling(0.02, lambda threads: 1e4 / THREADS[threads])
    said = sentences(show(table(names, rows)))
    assert said["threads"].startswith("qpm falls up to threads = 3 and rises beyond threads = 3: "), said


@test
def monotone_curves():
    "what rises to its last level, what stops rising, and what only falls: a sentence each"
    for of, begin in ((lambda threads: 50 + 20 * threads, "qpm rises up to threads = 8: "),
                      (lambda threads: 50 + 20 * min(threads, 4), "qpm rises up to threads = 4 and no further: "),
                      (lambda threads: 300 - 20 * threads, "qpm falls beyond threads = 1: ")):
        said = sentences(show(table(*scaling(0.005, of)), "--maximize"))
        assert said["threads"].startswith(begin), said


@test
def an_effect_beside_some_others():
    "an effect that is small on average and large at the best configuration is told of both"
    rows = [(mode, i, 100 + (500 if mode == "slow" else 0) - (0 if mode == "slow" else 8 * i)) for mode in ("fast", "slow") for i in range(6)]
    rows = [row + (k,) for row in rows for k in range(3)]
    said = sentences(show(table(["mode", "i", "k", "v"], [(mode, i, k, v) for mode, i, v, k in rows])))
    assert re.search(r" \d\.\d+ % .* worse at 0 on average; v falls up to i = 5: 6\d(\.\d+)? % .* worse at 0 at the best configuration$", said["i"]), said
    assert said["mode"].startswith("v is best at mode = fast: "), said


@test
def gain_over_the_median():
    "the gain over the median configuration is that of the table"
    rows = [(a, b, 100 + 10 * a + b) for a, b in itertools.product(range(6), range(5))]
    told = show(table(["a", "b", "v"], rows))
    median = sorted(row[-1] for row in rows)[len(rows) // 2]
    true, gain = 1 - 100 / median, told["gain"]
    assert gain["low"] - 0.005 <= true <= gain["high"] + 0.005 and gain["high"] - gain["low"] < 0.05, (gain, true)


@test
def too_few_trials_are_unknown():
    "of few trials, equal ones, and one, the best is told, and that nothing else is known"
    for rows, why in (([(i, i + 1) for i in range(7)], "fewer than 8 trials were measured"),
                      ([(i, 5) for i in range(20)], "all values that were measured are equal"), ([("x", 3)], "all values that were measured are equal")):
        told = show(table(["a", "v"], rows))
        equal((told["unknown"], told["effects"], "gain" in told), (why, [], False), "what is known")
        equal(told["best"]["values"]["v"], rows[0][1], "best")
        assert "Which parameter matters is unknown: " + why in text(table(["a", "v"], rows)), why


@test
def text_has_what_json_has():
    "the text names the best trial and its settings, the shares, and the sentences, the ones that matter first"
    names, rows = scaling(0.02)
    path = table(names, rows)
    told, out = show(path, "--maximize"), text(path, "--maximize")
    assert "best: trial %d, qpm %g, " % (told["best"]["trial"], told["best"]["values"]["qpm"]) in out, out
    assert "  page_size=4096 cache=%s threads=3\n" % told["best"]["configuration"]["cache"] in out, out
    assert re.search(r"^threads +9\d\.\d %", out, re.M), out
    places = [out.index(one["sentence"]) for one in sorted(told["parameters"], key=lambda one: not one["matters"])]
    equal(places[-1], max(places), "the last sentence")
    equal([(one["trial"], one["outcome"]) for one in told["trials"]], [(i + 1, "measured") for i in range(len(rows))], "trials")


@test
def many_levels_are_grouped():
    "a parameter with thousands of levels is told by groups of them, in seconds"
    chance = random.Random(2)
    told = show(table(["x", "v"], [(i, 10 + abs(i - 1500) / 500 + chance.gauss(0, 0.05)) for i in range(5000)]))
    equal(len(told["parameters"][0]["levels"]), 32, "groups")
    said = sentences(told)["x"]
    assert said.startswith("v falls up to x = 1") and " and rises beyond x = 1" in said, said


@test
def an_interval_is_of_as_many_runs_as_were_made():
    "two runs of 10 and 12 give 11 +- 12.7, by Student's distribution of one degree of freedom, and no digits beyond that; of one run nothing is known"
    folder, env = experiment("""  <parameter name="a" values="1 2"/>
  <command>echo >>n-{a}; echo v=$((8 * {a} + 2 * $(wc -l &lt;n-{a})))</command>
  <metric name="v" match="v=([0-9]+)" unit="s"/>""", attributes='policy="grid" runs="2" race="0"')
    explore(folder, env, "run")
    equal(explore(folder, env, "best")[0].splitlines()[0], "e: best of 2 is trial 1, v 11 s (-2 to 24, 2 runs)", "best")
    told = json.loads(explore(folder, env, "show", "--json")[0])["trials"]
    equal([round(one["half_intervals"]["v"], 3) for one in told], [12.706, 12.706], "halves")
    assert "best: trial 1, v 11 s +- 13\n" in explore(folder, env, "show")[0], "show"
    out = explore(folder, env, "reproduce", "-t", "1", status=5)[0]
    assert out.startswith("trial 1: v 11 s then (2 runs), 16 s now (3 runs)\n"), out
    folder, env = experiment("""  <parameter name="a" values="1 2" default="1"/>
  <command>echo v={a}</command>
  <metric name="v" match="v=([0-9]+)"/>""")
    explore(folder, env, "run")
    assert "best: trial 1, v 1: the defaults\n" in explore(folder, env, "show")[0], "defaults"
    equal([one["half_intervals"] for one in json.loads(explore(folder, env, "show", "--json")[0])["trials"]], [{}, {}], "one run")


@test
def an_experiment_is_shown_from_the_database():
    "of an experiment that ran: the gain over the defaults, what failed and why, the front of two metrics; before it ran, nothing"
    folder = tmp()
    path = os.path.join(folder, "e.xml")
    with open(path, "w", encoding="utf-8") as out:
        out.write("""<exploration name="known" policy="grid" race="0">
  <parameter name="threads" from="1" to="8" default="1"/>
  <parameter name="cache" from="1" to="3" default="1"/>
  <command>[ "{threads}-{cache}" = 5-3 ] || echo rate=$((300 - 30 * ({threads} > 3 ? {threads} - 3 : 3 - {threads}) + {cache})) size=$(({cache} * 100 + {threads}))</command>
  <metric name="rate" match="rate=([0-9]+)" better="more"/>
  <metric name="size" match="size=([0-9]+)" unit="bytes"/>
</exploration>
""")
    os.mkdir(folder + "/state", 0o700)
    env = dict(os.environ, PEM_DB=folder + "/db", XDG_STATE_HOME=folder + "/state")

    def told(*options):
        rc, out, err = run([PEM, "explore", "show", path, *options], env=env)
        equal((rc, err), (0, ""), "status and errors")
        return out
    equal(json.loads(told("--json"))["unknown"], "no trial was measured", "before")
    rc, _, err = run([PEM, "explore", "run", path], env=env)
    equal(rc, 0, err)
    all_of, out = json.loads(told("--json")), told()
    equal((all_of["best"]["configuration"], all_of["best"]["values"]), ({"threads": "3", "cache": "3"}, {"rate": 303, "size": 303}), "best")
    equal(all_of["reference"]["configuration"], {"threads": "1", "cache": "1"}, "defaults")
    assert abs(all_of["gain"]["value"] - (303 / 241 - 1)) < 0.01 and all_of["gain"]["low"] is None, all_of["gain"]  # of single runs
    assert sentences(all_of)["threads"].startswith("rate rises up to threads = 3 and falls beyond threads = 3: "), sentences(all_of)
    equal(sorted(one["values"]["rate"] for one in all_of["trials"] if one["pareto"] and one["configuration"]["cache"] == "3"), [303], "front")
    equal([one["configuration"] for one in all_of["trials"] if one["outcome"] == "failed"], [{"threads": "5", "cache": "3"}], "failed")
    assert "failed or refused:\n" in out and ", failed: " in out, out
    assert "Pareto front:\n" in out and "better than the defaults (its error is unknown: that takes two runs of each)\n" in out, out


@test
def the_front_of_a_real_program_is_that_of_its_runs():
    "of xz by time and size, the front is what the runs in the database say, and its sizes are those that xz makes again"
    need("xz")
    folder, env = experiment("""  <parameter name="preset" from="0" to="4" default="1"/>
  <parameter name="check" values="none sha256" default="none"/>
  <command>xz -c -T1 -{preset} --check={check} in >{scratch}/out &amp;&amp; echo bytes=$(stat -c %s {scratch}/out)</command>
  <metric name="seconds" of="cpu" unit="s" better="less"/>
  <metric name="bytes" match="bytes=([0-9]+)" unit="bytes" better="less"/>""", attributes='policy="grid" runs="2" race="0"')
    with open(folder + "/in", "w", encoding="utf-8") as out:
        for path in sorted(glob.glob(ROOT + "/docs/*.md"))[:8]:
            with open(path, encoding="utf-8") as text:
                out.write(text.read())
    explore(folder, env, "run")
    with sqlite3.connect(folder + "/db") as db:
        rows = db.execute("SELECT d.text, m.name, avg(m.mean), count(*) FROM metric m, evidence e, directive d WHERE m.run = e.run AND "
                          "e.directive = d.id AND d.agent = 'explore' AND m.name IN ('seconds', 'bytes') GROUP BY d.text, m.name").fetchall()
    equal({count for *_, count in rows}, {2}, "runs of each")
    figures = {}
    for configuration, name, mean, _ in rows:
        figures.setdefault(configuration, {})[name] = mean
    beats = lambda a, b: a["seconds"] <= b["seconds"] and a["bytes"] <= b["bytes"] and a != b
    front = {one for one, of in figures.items() if not any(beats(other, of) for other in figures.values())}
    told = json.loads(explore(folder, env, "show", "--json")[0])["trials"]
    text_of = lambda trial: "preset=%(preset)s check=%(check)s" % trial["configuration"]
    equal(({text_of(trial) for trial in told if trial["pareto"]}, len(told)), (front, 10), "front, and trials")
    for trial in told:
        of = figures[text_of(trial)]
        assert abs(trial["values"]["seconds"] - of["seconds"]) < 1e-9 and trial["values"]["bytes"] == of["bytes"], (trial, of)
    printed = explore(folder, env, "show")[0].split("Pareto front:\n")[1].split("failed or refused:")[0]
    equal(re.findall(r"^trial ([0-9]+), ", printed, re.M), [str(trial["trial"]) for trial in told if trial["pareto"]], "front in text")
    for one in front:
        rc, out, err = run(["sh", "-c", "xz -c -T1 -%s --check=%s in | wc -c" % tuple(re.findall("=([a-z0-9]+)", one))], cwd=folder)
        equal((rc, int(out)), (0, figures[one]["bytes"]), "bytes of %s (%s)" % (one, err))


EVIL = "</script><script>alert(1)</script>"


def hostile():
    path = os.path.join(tmp(), "space.csv")
    with open(path, "wb") as out:
        out.write(b'"%s<!--",\'&amp;\x01\xff,"<b>\x1b[31m"\n' % EVIL.encode())
        for i in range(24):
            out.write(b'"%s%d\xc3",%d,%d\n' % (b"<img src=x onerror=alert(1)>", i % 4, i // 4, 10 + i % 4 * 3 + i // 4))
    return path


@test
def names_can_do_no_harm():
    "names and values with markup, control characters and bytes that are not UTF-8 end nothing, in JSON, text and page"
    path, page = hostile(), tmp() + "/page.html"
    told = show(path)
    assert EVIL in told["parameters"][0]["name"], told["parameters"]
    assert "\x1b" not in text(path), text(path)
    rc, out, err = run([PEM, "explore", "show", path, "--html", page])
    equal((rc, out), (0, ""), err)
    with open(page, encoding="utf-8") as file:
        written = file.read().split('<script id="data" type="application/json">')[1].split("</script>")[0]
    assert "<" not in written and json.loads(written)["best"]["trial"] == told["best"]["trial"], written[:300]
    b = opened(page)
    assert EVIL in b.script("return document.querySelector('#words').textContent"), "sentences"
    equal(b.script("return document.querySelectorAll('main img, main script, main b').length"), 0, "elements of names")


def opened(page, width=1400):
    b = browser()
    b.resize(width, 1000)
    b.colour_scheme("light")
    b.console()
    b.open("file://" + page)
    b.wait_for("return document.documentElement.dataset.ready === 'yes'", "drawn")
    b.settle()
    quiet(b)
    return b


def page_of_scaling():
    page = tmp() + "/page.html"
    path = table(*scaling(0.02))
    rc, _, err = run([PEM, "explore", "show", path, "--maximize", "--html", page])
    equal(rc, 0, err)
    return path, page


@test
def the_page_rounds_to_the_error():
    "of runs of 10 and 12 the page prints 11 ± 13, and no digits beyond that"
    folder, env = experiment("""  <parameter name="a" values="1 2"/>
  <command>echo >>n-{a}; echo v=$((8 * {a} + 2 * $(wc -l &lt;n-{a})))</command>
  <metric name="v" match="v=([0-9]+)" unit="s"/>""", attributes='policy="grid" runs="2" race="0"')
    page = tmp() + "/page.html"
    explore(folder, env, "run")
    explore(folder, env, "show", "--html", page)
    b = opened(page)
    assert b.script("return document.querySelector('#verdict').textContent").startswith("Best: 11 ± 13 s in trial 1"), "verdict"
    equal(b.script("return [rounded(78165, 15000), rounded(4.34, 3), rounded(4.34, 0), rounded(0.5, 1e-9)]"), [78000, 4.3, 4.34, 0.5], "rounded")


@test
def the_page_shows_it():
    "the page has the best, a bar for what matters, a heat map for each page size, curves, and a row for each trial"
    path, page = page_of_scaling()
    told, b = show(path, "--maximize"), opened(page)
    assert "in trial %d, " % told["best"]["trial"] in b.script("return document.querySelector('#verdict').textContent"), "verdict"
    assert b.script("return document.querySelector('#effects [data-tip]').dataset.tip").startswith("threads\n9"), "bars"
    equal(b.script("return [...document.querySelectorAll('#heat figcaption')].map(e => e.textContent)"),
          ["page_size = 1024", "page_size = 4096", "page_size = 65536"], "maps")
    equal(b.script("return document.querySelectorAll('#heat rect.cell').length"), 3 * 4 * 8, "cells")
    equal(b.script("return document.querySelectorAll('#heat .chosen').length"), 1, "best cell")
    equal(b.script("return document.querySelectorAll('#curves figure').length"), 3, "curves")
    equal(b.script("return document.querySelectorAll('#trials tbody tr').length"), 25, "rows at first")
    b.click("#trials-more")
    equal(b.script("return document.querySelectorAll('#trials tbody tr').length"), 50, "rows")
    b.click("#trials th:nth-child(2) button")
    values = b.script("return [...document.querySelectorAll('#trials tbody tr')].map(r => Number(r.cells[1].textContent))")
    equal(values, sorted(values), "rows by value")
    b.script("const s = document.querySelector('#heat-by'); s.value = '-1'; s.dispatchEvent(new Event('change'))")
    equal(b.script("return document.querySelectorAll('#heat rect.cell').length"), 4 * 8, "cells of one map")
    quiet(b)


@test
def keys_reach_each_cell():
    "arrows go from cell to cell, a tip tells the cell's value, Escape takes it away; the pointer brings it, too"
    _, page = page_of_scaling()
    b = opened(page)
    tip = "const t = document.querySelector('#tip'); return t.hidden ? '' : t.textContent"
    b.script("document.querySelector('#heat rect.cell').focus()")
    first = b.script(tip)
    b.script("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))")
    second = b.script(tip)
    b.script("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))")
    third = b.script(tip)
    assert len({first, second, third}) == 3 and all("threads = " in one and "measured (trial " in one for one in (first, second, third)), (first, second, third)
    b.script("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))")
    equal(b.script(tip), "", "tip after Escape")
    b.script("document.querySelector('#heat').scrollIntoView()")
    x, y, width, height = b.box("#heat rect.cell")
    b.mouse([("move", x + width / 2, y + height / 2)])
    equal(b.script(tip), first, "tip of the pointer")


@test
def the_page_fits_a_narrow_window():
    "at 700 pixels nothing is wider than the window, in light and dark"
    _, page = page_of_scaling()
    b = opened(page, 700)
    equal(b.script("return document.documentElement.scrollWidth"), 700, "width")
    light = b.script("return getComputedStyle(document.body).backgroundColor")
    b.colour_scheme("dark")
    b.settle()
    assert b.script("return getComputedStyle(document.body).backgroundColor") != light, light


@test
def no_file_is_overwritten():
    "the page is not written over a file, and not into a folder that is not there"
    path, page = page_of_scaling()
    with open(page, "rb") as file:
        before = file.read()
    for where in (page, tmp() + "/none/page.html"):
        rc, out, err = run([PEM, "explore", "show", path, "--html", where])
        assert rc in (1, 3) and not out and "can't be made" in err, (rc, err)
    with open(page, "rb") as file:
        equal(file.read(), before, "the page")


@test
def wrong_usage():
    "no table, two, one that is not there, two forms at once: a sentence each"
    path = table(["a", "v"], [(1, 2)])
    for words, sentence in (([], "which experiment?"), ([path, path], "which experiment?"), ([path[:-3] + "other.csv"], "No such file"),
                            ([path, "--json", "--html", "x"], "take one of them"), ([path, "--seeds", "3"], "show takes no --seeds")):
        rc, out, err = run([PEM, "explore", "show", *words])
        assert rc == 1 and not out and sentence in err, (words, rc, err)


run_all()
