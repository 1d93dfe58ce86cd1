# SPDX-License-Identifier: MIT
"""export_view: what the page of pem export --to html shows first: its head, the toolbar, lanes, which strips there are, and two runs"""
import json
import os

from html_page import export, exported, interval, quiet, show, strips
from tap import PEM, equal, run, run_all, test, tmp
from trace_files import KERNEL, Trace

LONG_S = 11

MS = 1_000_000
SWITCH = [("prev", "uint32", "previous-thread"), ("prevState", "uint32", "state"), ("pid", "uint32", "process"), ("tid", "uint32", "thread")]
THIN = "\u202f"


def text(b, selector):
    return b.script("return document.querySelector(arguments[0]).textContent", selector).replace(THIN, " ")


def busy(processes=()):
    """Process 7 runs for 600 ms of a second, then sleeps in a read; each of the others runs for 1 ms."""
    t = Trace(duration_ns=1_000 * MS, machine_cpu_ns=2_000 * MS)
    switch = t.event("OS::Sched::Switch", "sets-thread", SWITCH)
    begin, end = [t.event("APP::Shop::Read" + end, "interval-" + end.lower(), group="APP::Shop::Read") for end in ("Begin", "End")]
    kernel = dict(pid=0, tid=0, cpu=1, source=KERNEL)
    t.add(switch, 0, [0, 0, 7, 7], **kernel)
    t.add(begin, 590 * MS, pid=7)
    t.add(switch, 600 * MS, [7, 1, 0, 0], **kernel)
    for i, pid in enumerate(processes):
        t.add(switch, (610 + 2 * i) * MS, [0, 0, pid, pid], **kernel)
        t.add(switch, (611 + 2 * i) * MS, [pid, 1, 0, 0], **kernel)
    t.add(switch, 950 * MS, [0, 0, 7, 7], **kernel)
    t.add(end, 960 * MS, pid=7)
    t.add(switch, 1_000 * MS, [7, 1, 0, 0], **kernel)
    return t


def rates(n=40):
    """A trace of one event, n times, of a second."""
    t = Trace(duration_ns=1_000 * MS)
    event = t.event("APP::Shop::Sale")
    for i in range(n):
        t.add(event, i * 1_000 * MS // n, pid=7)
    return t


@test
def the_toolbar_stays():
    "nothing moves as a part of the run is chosen, down to nanoseconds, in a wide and a narrow window"
    page = exported(rates())[1]
    for width in (1400, 1180, 800, 600):
        b = show(page)
        b.resize(width, 1000)
        b.settle()
        places = [b.box(s) for s in (".toolbar", ".buttons", "#overview", "#axis")]
        x, y, w, h = b.box(".brush-layer")
        b.mouse([("move", x + w * 0.31, y + h / 2), ("down",), ("move", x + w * 0.4, y + h / 2), ("move", x + w * 0.53, y + h / 2), ("up",)])
        b.settle()
        low, high = interval(b)
        assert high - low < 300 * MS, (low, high)
        for _ in range(60):
            b.keys("body", "+")
        b.settle()
        low, high = interval(b)
        assert high - low < 1000, (low, high)
        equal([b.box(s) for s in (".toolbar", ".buttons", "#overview", "#axis")], places, "places at %d" % width)
        quiet(b)


@test
def the_head_is_a_sentence():
    "the head tells how long the busiest thread ran and in what it was blocked; without states there is no sentence"
    b = show(exported(busy())[1])
    equal(text(b, "#sentence"), "thread 7 ran 650 ms of 1 s and was blocked 350 ms, 350 ms of it in APP::Shop::Read.", "sentence")
    b = show(exported(rates())[1])
    equal(b.script("return document.querySelector('#sentence').hidden"), True, "hidden")


@test
def short_processes_are_folded():
    "processes that did next to nothing are one row below the lanes, until all are asked for"
    b = show(exported(busy(range(20, 28)))[1])
    tids = "return [...document.querySelectorAll('.lane')].map(e => Number(e.dataset.tid))"
    equal(b.script(tids), [7], "lanes at first")
    assert text(b, ".row.folded").startswith("8 short processes"), text(b, ".row.folded")
    equal(text(b, "#lane-counts"), "1 of 9", "count")
    b.click("#more-lanes")
    b.settle()
    equal(b.script(tids), [7, *range(20, 28)], "all lanes")
    equal(b.script("return document.querySelector('.row.folded')"), None, "row")
    quiet(b)
    b = show(exported(busy(range(20, 23)))[1])
    equal(b.script(tids), [7, 20, 21, 22], "three are no trouble")


@test
def names_of_things_are_no_quantities():
    "a number without a unit, such as that of an inode or thread, has neither a mean nor a sum; one with a unit has both"
    t = Trace(duration_ns=1_000 * MS)
    inode = t.event("APP::Shop::Open", fields=[("inode", "uint64", "-"), ("size", "uint64", "size")])
    sale = t.event("APP::Shop::Sale", fields=[("cents", "uint64", "-"), ("thread", "uint32", "thread")], unit="cents")
    for i in range(50):
        t.add(inode, 20 * i * MS, [i, 4096], pid=7)
        t.add(sale, 20 * i * MS + MS, [i, 7], pid=7)
    b = show(exported(t)[1])
    b.keys("body", "/")
    b.settle()
    found = b.script("return [...document.querySelectorAll('#chooser-list label')].map(e => e.textContent).filter(n => n.includes('('))")
    equal(sorted(found), ["APP::Shop::Open size (mean)", "APP::Shop::Open size (sum)", "APP::Shop::Sale cents (mean)", "APP::Shop::Sale cents (sum)"],
          "strips of fields")


@test
def correlations_have_words():
    "the column of correlations has a heading, and each cell a word; a page of one strip has neither"
    t = Trace(duration_ns=4_000 * MS)
    a, same, against = (t.event("APP::Load::" + name) for name in ("A", "Same", "Against"))
    for i in range(400):
        level = i // 10 * 7919 % 10
        for name, n in ((a, level), (same, level), (against, 9 - level)):
            for k in range(n):
                t.add(name, i * 10 * MS + k * MS, pid=7)
    b = show(exported(t)[1])
    b.click(".strip[data-event='APP::Load::A'] .relation")
    equal(text(b, "#strip-head .side"), "Correlationwith the strip that is marked", "heading")
    words = {name: b.script("return [...document.querySelectorAll(`.strip[data-event='${arguments[0]}'] .relation span`)].at(-1).textContent", name)
             for name in (a, same, against)}
    equal(words, {a: "the others are compared with this", same: "alike", against: "opposite"}, "words")
    x, _, w, _ = b.box("#strip-head .side")
    equal(b.box(".strip .side")[0::2], [x, w], "the column's place and width")
    b = show(exported(rates())[1])
    equal(b.script("return document.querySelector('#strip-head').hidden"), True, "hidden")


@test
def long_names_keep_their_ends():
    "the name of an interval loses its layer and class before its end; other texts lose their end"
    b = show(exported(rates())[1])
    fit = "const c = document.createElement('canvas').getContext('2d'); return fitText(c, arguments[0], c.measureText(arguments[1]).width + 1)"
    for name, room, fitting in (("APP::Libc::MutexWait", "APP::Libc::MutexWait", "APP::Libc::MutexWait"),
                                ("APP::Libc::MutexWait", "Libc::MutexWait", "Libc::MutexWait"), ("APP::Libc::MutexWait", "MutexWait", "MutexWait"),
                                ("APP::Libc::MutexWait", "Mutex\u2026", "Mutex\u2026"), ("std::map<a::b>", "std::m\u2026", "std::m\u2026")):
        equal(b.script(fit, name, room), fitting, "%s in the room of %s" % (name, room))


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
