# SPDX-License-Identifier: MIT
"""export_view: two runs on one page of pem export --to html"""
import json
import os

from html_page import export, quiet, show, strips
from tap import PEM, equal, run, run_all, test, tmp
from trace_files import Trace

MS = 1_000_000
THIN = "\u202f"


def text(b, selector):
    return b.script("return document.querySelector(arguments[0]).textContent", selector).replace(THIN, " ")


def rates(n=40):
    """A trace of one event, n times, of a second."""
    t = Trace(duration_ns=1_000 * MS)
    event = t.event("APP::Shop::Sale")
    for i in range(n):
        t.add(event, i * 1_000 * MS // n, pid=7)
    return t


@test
def two_runs_on_one_page():
    "a page of two traces shows the second one dashed from the start, and one of them is what the page alone would have"
    folder = tmp()
    rates(40).write(folder + "/a")
    rates(80).write(folder + "/b")
    rc, out, err = run([PEM, "export", "--to", "html", folder + "/a", folder + "/b", "-o", folder + "/both.html"])
    equal((rc, out), (0, ""), err)
    b = show(folder + "/both.html")
    equal(b.script("return document.documentElement.dataset.overlay"), "yes", "overlay")
    equal(b.script("return document.querySelector('#overlay-note').hidden"), False, "note is hidden")
    assert "1 of 1 strips are in both runs" in text(b, "#overlay-note"), text(b, "#overlay-note")
    equal(strips(b), ["APP::Shop::Sale"], "strips")
    raw = [json.loads(b.script("return document.querySelector(arguments[0]).textContent", s)) for s in ("#data", "#other-data")]
    equal([r["balance"]["delivered"] for r in raw], [40, 80], "records of each run")
    b.click("#overlay-off")
    b.settle()
    equal(b.script("return document.querySelector('#overlay-note').hidden"), True, "note after Remove")
    quiet(b)
    export(folder + "/a", folder + "/one.html")
    one = os.path.getsize(folder + "/one.html")
    assert one < os.path.getsize(folder + "/both.html") < 2 * one, "sizes"


@test
def two_runs_of_other_formats():
    "formats that hold one run refuse two, and so does the page three; nothing is written"
    folder = tmp()
    for name in "ab":
        rates().write(folder + "/" + name)
    for form, runs, sentence in (("csv", "ab", "a file of format 'csv' has one run"), ("ctf", "ab", "a file of format 'ctf' has one run"),
                                 ("html", "abb", "more than two traces")):
        rc, out, err = run([PEM, "export", "--to", form, *runs, "-o", "out"], cwd=folder)
        equal((rc, out), (1, ""), form)
        assert sentence in err, err
    equal(sorted(os.listdir(folder)), ["a", "b"], "files")


run_all()
