# SPDX-License-Identifier: MIT
"""export_page: what the page of pem export --to html makes of intervals: durations, lanes, flame graph, correlation"""
import os

from html_page import choose_process, export, exported, interval, quiet, report, show, strips
from tap import PEM, equal, need, run, run_all, skip, test, tmp
from trace_files import KERNEL, Trace

LONG_S = 12

MS = 1_000_000


def data(b):
    return b.script("return JSON.parse(document.querySelector('#data').textContent)")


def slices(row):
    """[begin, end, what, extra, event, kind] of a row's slices."""
    flat, time, all_of = row["slices"], 0, []
    for i in range(0, len(flat), 6):
        time += flat[i]
        all_of.append([time, time + flat[i + 1]] + flat[i + 2:i + 6])
    return all_of


def intervals(b):
    """{name: (count, time)} of the table of intervals."""
    return {name: (count, time) for name, count, time in b.script(
        "return [...document.querySelectorAll('#interval-table tbody tr')].map(e => "
        "[e.dataset.name, Number(e.dataset.count), Number(e.dataset.time)]);")}


def tip(b):
    return b.script("const t = document.querySelector('#tip'); return t.hidden ? '' : [...t.children].map(e => e.textContent).join('|')")


def shop():
    """A pair of its own without a name, 100 times, nested in another; thread 2 gets a message from thread 1 each time."""
    t = Trace(duration_ns=1_000 * MS)
    outer = [t.event("APP::Shop::Order" + end, "interval-" + end.lower(), group="APP::Shop::Order") for end in ("Begin", "End")]
    inner = [t.event("APP::Shop::Pack" + end, "interval-" + end.lower(), [("grams", "uint64", "-"), ("price", "uint64", "-")] if end == "Begin" else (),
                     group="APP::Shop::Pack", unit="g") for end in ("Begin", "End")]
    sent = t.event("APP::Shop::Send", "send", [("number", "uint64", "key")], group="APP::Shop::Parcel", scope="system")
    got = t.event("APP::Shop::Receive", "receive", [("number", "uint64", "key")], group="APP::Shop::Parcel", scope="system")
    for i in range(100):
        at = i * 10 * MS
        t.add(outer[0], at, pid=7)
        t.add(inner[0], at + 2 * MS, [i, 1000], pid=7)
        t.add(inner[1], at + 5 * MS, pid=7)
        t.add(sent, at + 6 * MS, [i], pid=7)
        t.add(outer[1], at + 8 * MS, pid=7)
        t.add(got, at + 7 * MS, [i], pid=7, tid=8)
        t.add(outer[0], at + 7 * MS + 500, pid=7, tid=8)
        t.add(outer[1], at + 9 * MS, pid=7, tid=8)
    return t


@test
def one_strip_of_durations():
    "a pair of events is one strip of durations and one of its rate, called as the report calls it"
    t = Trace(duration_ns=1_000 * MS)
    begin = t.event("APP::Shop::WorkBegin", "interval-begin", group="APP::Shop::Work")
    end = t.event("APP::Shop::WorkEnd", "interval-end", group="APP::Shop::Work")
    for i in range(100):
        t.add(begin, i * 10 * MS, pid=7)
        t.add(end, i * 10 * MS + 4 * MS, pid=7)
    folder, page = exported(t)
    b = show(page)
    equal(strips(b), ["APP::Shop::Work duration", "APP::Shop::Work rate"], "strips at first")
    said = report(folder)["intervals"]
    equal([i["interval"] for i in said], ["APP::Shop::Work"], "the report's intervals")
    equal(intervals(b), {"APP::Shop::Work": (100, 400 * MS)}, "table")
    equal({p[0] for p in data(b)["phases"]["list"]}, {"APP::Shop::Work"}, "labels of phases")
    x, _, w, _ = b.box("#axis .ticks")
    low, high = interval(b)
    _, y, _, h = b.box(".strip .plot")
    b.mouse([("move", x + w * (504 * MS - low) / (high - low), y + h / 2)])
    equal(b.script("return document.querySelector('.chip').textContent").replace("\u202f", ""), "4ms", "value under the crosshair")
    quiet(b)


@test
def recorded_calls():
    "system calls have their names, and the table of intervals is the report's"
    need("ls")
    folder = tmp()
    rc, _, err = run([PEM, "record", "-e", "OS", "-o", folder + "/trace", "--", "ls", "-lR", "/usr/share/doc"], cwd=folder)
    if rc == 2:
        skip("nothing can be recorded of the kernel here: " + err.strip())
    equal(rc, 0, "pem record (stderr: %s)" % err)
    wanted = {i["interval"]: i["count"] for i in report(folder + "/trace")["intervals"]}
    if not wanted:
        skip("the kernel delivers no system calls here")
    b = show(export(folder + "/trace", folder + "/page.html"))
    got = {}
    for node in data(b)["tree"]["nodes"]:
        name = node["name"] if node["name"] == node["group"] else node["group"] + " " + node["name"]
        got[name] = got.get(name, 0) + node["count"]
    equal({name: count for name, count in got.items() if count}, {name: count for name, count in wanted.items() if count}, "intervals")
    assert "OS::Syscall duration" in strips(b), strips(b)
    assert b.script("return document.querySelectorAll('.lane').length") > 0, "no lane"


@test
def lanes():
    "each thread has a lane: nested intervals where they were, and arrows from sends to receives"
    b = show(exported(shop())[1])
    raw = data(b)
    nodes = raw["tree"]["nodes"]
    equal([lane["tid"] for lane in raw["lanes"]["list"]], [7, 8], "threads")
    first = raw["lanes"]["list"][0]["depths"]
    equal([d["depth"] for d in first], [0, 1], "depths")
    equal([[s[0], s[1], nodes[s[2]]["name"]] for s in slices(first[0]["row"])],
          [[i * 10 * MS, i * 10 * MS + 8 * MS, "APP::Shop::Order"] for i in range(100)], "outer intervals")
    equal([[s[0], s[1], nodes[s[2]]["name"]] for s in slices(first[1]["row"])],
          [[i * 10 * MS + 2 * MS, i * 10 * MS + 5 * MS, "APP::Shop::Pack"] for i in range(100)], "inner intervals")
    equal([s[:4] for s in slices(raw["lanes"]["messages"])],
          [[i * 10 * MS + 6 * MS, i * 10 * MS + 7 * MS, 0, 1] for i in range(100)], "messages")
    equal(b.script("return document.querySelector('.arrows').dataset.messages"), "100", "arrows")
    # The tip says what is under the pointer, a click shows just that.
    for _ in range(4):
        b.keys("body", "+")
        b.settle()
    low, high = interval(b)
    x, y, w, h = b.box(".lane canvas")
    at = 50 * 10 * MS + 3 * MS
    px = x + (at - low) / (high - low) * w
    b.mouse([("move", px, y + 10)])
    assert tip(b).startswith("APP::Shop::Order: 8\u202fms"), tip(b)
    b.mouse([("move", px, y + 24)])
    assert tip(b).startswith("APP::Shop::Pack: 3\u202fms"), tip(b)
    b.mouse([("move", px, y + 24), ("down",), ("up",)])
    equal(interval(b), [502 * MS, 505 * MS], "interval after the click")
    quiet(b)


@test
def states():
    "a lane's band shows when the thread ran, waited for a CPU and was blocked, and what woke it"
    t = Trace(duration_ns=100 * MS, machine_cpu_ns=200 * MS)
    switch = t.event("OS::Sched::Switch", "sets-thread", [("pid", "uint32", "process"), ("tid", "uint32", "thread"),
                                                        ("previous", "uint32", "previous-thread"), ("state", "uint32", "state")])
    for i in range(10):
        at = i * 10 * MS
        t.add(switch, at, [7, 7, 8, 0], pid=0, cpu=0, source=KERNEL)
        t.add(switch, at + 6 * MS, [7, 8, 7, 1], pid=0, cpu=0, source=KERNEL)
    b = show(exported(t)[1])
    lane = {lane["tid"]: lane for lane in data(b)["lanes"]["list"]}
    equal([s[:2] + [s[5]] for s in slices(lane[7]["states"])][:3],
          [[0, 6 * MS, 0], [6 * MS, 10 * MS, 2], [10 * MS, 16 * MS, 0]], "thread 7 runs, then sleeps")
    kinds = [s[5] for s in slices(lane[8]["states"])]
    assert 1 in kinds and 0 in kinds and 2 not in kinds, "thread 8 runs and waits: %r" % kinds
    assert b.script("return !document.querySelector('#lane-key').hidden"), "the key of states is hidden"
    quiet(b)


@test
def halves():
    "a strip of durations shows those of the view"
    t = Trace(duration_ns=1_000 * MS)
    begin = t.event("APP::Shop::Serve", "interval-begin")
    end = t.event("APP::Shop::Served", "interval-end")
    for i in range(100):
        t.add(begin, i * 10 * MS, pid=7)
        t.add(end, i * 10 * MS + (2 if i < 50 else 4) * MS, pid=7)
    b = show(exported(t)[1])
    equal(strips(b), ["APP::Shop duration", "APP::Shop rate"], "strips: the report's name of the group, no twin")
    average = "return document.querySelector('.strip .chart').getAttribute('aria-label').replace(/\u202f/g, '')"
    assert b.script(average).endswith(" 3ms on average"), b.script(average)
    x, y, w, h = b.box(".brush-layer")
    for low, high, wanted in ((0.05, 0.4, "2ms"), (0.6, 0.95, "4ms")):
        b.keys("body", "\ue00c")
        b.settle()
        b.mouse([("move", x + w * low, y + h / 2), ("down",), ("move", x + w * high, y + h / 2), ("up",)])
        assert b.script(average).endswith(" %s on average" % wanted), b.script(average)
    equal(b.script("return [...document.querySelectorAll('.strip, #phases')].some(e => e.textContent.includes('No strip'))"), False,
          "no strip")
    quiet(b)


@test
def recorded_lanes():
    "lanes of a recording have the report's times of running; the tip tells what blocked, and who woke it"
    folder = tmp()
    command = "dd if=/dev/zero bs=64k count=40 status=none | { sleep 0.3; exec cat >/dev/null; }"
    rc, _, err = run([PEM, "record", "-q", "-o", folder + "/trace", "-e", "OS::Syscall,OS::Sched::Switch,OS::Sched::Waking,"
                      "OS::Sched::Wakeup,OS::Process", "--", "sh", "-c", command])
    if rc == 2:
        skip("no kernel events here: " + err.splitlines()[-1])
    equal(rc, 0, "status of record (stderr: %s)" % err)
    b = show(export(folder + "/trace", folder + "/page.html"))
    raw = data(b)
    running = {t["tid"]: t["running_ns"] for t in report(folder + "/trace")["thread_states"]}
    found = {lane["tid"]: lane for lane in raw["lanes"]["list"]}
    for tid, lane in found.items():
        ran = sum(s[1] - s[0] for s in slices(lane["states"]) if s[5] == 0)
        equal((ran, lane["running_ns"]), (running[tid], running[tid]), "time that %d ran" % tid)
    names = {lane["process_name"]: tid for tid, lane in found.items()}
    assert {"dd", "cat"} <= set(names), names
    order = [lane["tid"] for lane in raw["lanes"]["list"]]
    wakers = {raw["lanes"]["list"][s[3]]["process_name"] for s in slices(found[names["dd"]]["states"]) if s[5] == 2 and s[3] >= 0}
    assert "cat" in wakers, "dd was woken by %r of %r" % (wakers, order)
    # Point at the longest time that dd was blocked and woken by cat, and at the write around it.
    begin, end = max((s[1] - s[0], s[0], s[1]) for s in slices(found[names["dd"]]["states"])
                     if s[5] == 2 and s[3] == order.index(names["cat"]))[1:]
    b.script("document.querySelector(`.lane[data-tid='${arguments[0]}']`).scrollIntoView({ block: 'center' })", str(names["dd"]))
    b.settle()
    low, high = interval(b)
    x, y, w, _ = b.box(".lane[data-tid='%d'] canvas" % names["dd"])
    at = x + ((begin + end) / 2 - low) / (high - low) * w
    b.mouse([("move", at, y + 5)])
    assert tip(b).startswith("blocked: ") and "woken by cat" in tip(b), tip(b)
    b.mouse([("move", at, y + 20)])
    assert tip(b).startswith("write: "), tip(b)
    check_path(b, report(folder + "/trace")["critical_path"], raw["lanes"])
    quiet(b)


def check_path(b, wanted, lanes):
    """The critical path of a pipeline whose reader slept: it has the report's time, and its sleep is where the page shows it."""
    path = lanes["path"]
    equal((path["ns"], path["known_ns"]), (wanted["end_ns"] - wanted["begin_ns"], wanted["known_ns"]), "time of the path")
    drawn = slices(path["row"])
    equal(sum(s[1] - s[0] for s in drawn), sum(row["total_ns"] for row in wanted["rows"] if row["state"] != "unknown"), "time of its slices")
    begin, end, lane = max((s[0], s[1], s[2]) for s in drawn if s[5] == 2 and s[1] - s[0] > 200e6)
    equal(lanes["list"][lane]["process_name"], "sleep", "who slept on the path")
    low, high = interval(b)
    x, y, w, _ = b.box(".lane.path canvas")
    b.mouse([("move", x + ((begin + end) / 2 - low) / (high - low) * w, y + 5)])
    assert tip(b).startswith("blocked: ") and "sleep, thread" in tip(b) and "Critical path" in tip(b), tip(b)
    text = b.script("return document.querySelector('#sentence').textContent")
    assert text.startswith("sleep ") and " was blocked " in text, text


@test
def bounded():
    "of many intervals the longest are kept, and the time of all others is counted"
    t = Trace(duration_ns=4_000 * MS)
    begin = t.event("APP::Shop::WorkBegin", "interval-begin", group="APP::Shop::Work")
    end = t.event("APP::Shop::WorkEnd", "interval-end", group="APP::Shop::Work")
    number, total = 70_000, 0
    for i in range(number):
        ns = 10_000 + i * 7919 % 20_000
        if i % 10_000 == 5_000:
            ns = 50_000
        t.add(begin, i * 56_000, pid=7)
        t.add(end, i * 56_000 + ns, pid=7)
        total += ns
    folder, page = exported(t)
    assert os.path.getsize(page) < 4 << 20, os.path.getsize(page)
    b = show(page)
    raw = data(b)
    row = raw["lanes"]["list"][0]["depths"][0]["row"]
    kept = slices(row)
    equal(len(kept) + row["left_out"], number, "intervals")
    assert row["left_out"] > 0, "all are kept, so this tests nothing"
    rest = sum(row["rest"][0]["ns"][1::2])
    kept_ns = sum(s[1] - s[0] for s in kept)
    assert abs(kept_ns + rest - total) < number, "%d kept, %d left out, %d in all" % (kept_ns, rest, total)
    equal(sum(1 for s in kept if s[1] - s[0] == 50_000), 7, "the longest that are kept")
    equal(intervals(b)["APP::Shop::Work"][0], number, "count in the table")
    assert abs(intervals(b)["APP::Shop::Work"][1] - total) < 10_000, (intervals(b), total)
    quiet(b)


@test
def many_nestings():
    "calls of more programs and nestings than the page has room for keep their names: the table by name is exact"
    t = Trace(duration_ns=4_000 * MS)
    events = {}
    for kind in ("Work", "Step"):
        for which in ("Begin", "End"):
            events[kind + which] = t.event("APP::Shop::%s%s" % (kind, which), "interval-" + which.lower(), [("name", "string", "name")],
                                           group="APP::Shop::" + kind)
    for pid in range(1, 41):
        at = pid * 90 * MS
        for i in range(30):
            name = b"work %d" % i
            t.add(events["WorkBegin"], at, [name], pid=pid)
            t.add(events["StepBegin"], at + MS // 2, [b"step"], pid=pid)
            t.add(events["StepEnd"], at + MS, [b"step"], pid=pid)
            t.add(events["WorkEnd"], at + 2 * MS, [name], pid=pid)
            at += 2 * MS
    b = show(exported(t)[1])
    rows = intervals(b)
    equal(rows["step"], (1200, 600 * MS), "steps")
    equal([rows["work %d" % i] for i in (0, 29)], [(40, 80 * MS)] * 2, "works")
    more = b.script("return document.querySelector('#interval-more').textContent")
    assert "Not told" not in more, more
    root = b.script("return document.querySelector('#flame-note').textContent")
    assert root.replace("\u202f", " ").replace("\u00a0", " ").startswith("Time of threads in intervals, 2.4 s in all"), root
    choose_process(b, "40")
    more = b.script("return document.querySelector('#interval-more').textContent")
    assert "Not told by process: " in more, more
    quiet(b)


@test
def calls_in_joined_ones():
    "time is counted once, however deep a recursion, and however many calls around others have no room of their own"
    t = Trace(duration_ns=3_000 * MS)
    begin = t.event("APP::Shop::WorkBegin", "interval-begin", [("name", "string", "name")], group="APP::Shop::Work")
    end = t.event("APP::Shop::WorkEnd", "interval-end", [("name", "string", "name")], group="APP::Shop::Work")
    for i in range(60):
        t.add(begin, i * MS, [b"deep"], pid=7)
    for i in range(60):
        t.add(end, (100 + i) * MS, [b"deep"], pid=7)
    t.add(begin, 200 * MS, [b"step"], pid=7)
    t.add(end, 201 * MS, [b"step"], pid=7)
    for i in range(800):
        at = (300 + 3 * i) * MS
        for which, after, name in ((begin, 0, b"work %d" % i), (begin, MS // 2, b"step"), (end, 3 * MS // 2, b"step"), (end, 2 * MS, b"work %d" % i)):
            t.add(which, at + after, [name], pid=7)
    b = show(exported(t)[1])
    note = b.script("return document.querySelector('#flame-note').textContent").replace("\u202f", " ").replace("\u00a0", " ")
    assert note.startswith("Time of threads in intervals, 1.76 s in all"), note
    rows = intervals(b)
    equal((rows["step"], rows["deep"][0]), ((801, 801 * MS), 60), "in the table")
    assert "Not told by name: " in b.script("return document.querySelector('#interval-more').textContent"), "more names than there is room for"
    nodes = data(b)["tree"]["nodes"]
    equal([n["count"] for n in nodes if n["name"] == "step" and n["parent"] < 0 and not n["nested"]], [1], "outermost steps")
    quiet(b)


@test
def search():
    "any field, interval and a metric of two others is found by its name and added"
    b = show(exported(shop())[1])
    b.keys("body", "/")
    b.keys("#strip-search", "pack grams mean")
    b.settle()
    equal(b.script("return [...document.querySelectorAll('#chooser-list label')].map(e => e.textContent)"),
          ["APP::Shop::PackBegin grams (mean)"], "found")
    b.click("#chooser-list input")
    b.settle()
    equal(strips(b)[0], "APP::Shop::PackBegin grams (mean)", "first strip")
    said = b.script("return document.querySelector('.strip .chart').getAttribute('aria-label')")
    assert said.endswith(" 49.5 g on average"), said
    b.script("for (const [id, name] of [['a', 'APP::Shop::Order rate'], ['b', 'APP::Shop::Pack rate']]) {"
             "const s = document.querySelector('#derived-' + id);"
             "s.value = [...s.options].find(o => o.textContent === name).value; }")
    b.click("#derived-add")
    b.settle()
    equal(strips(b)[0], "APP::Shop::Order rate \u00f7 APP::Shop::Pack rate", "derived strip")
    b.keys("body", "\ue00c")
    equal(b.script("return document.querySelector('#chooser').open"), False, "list after Esc")
    said = b.script("return document.querySelector('.strip .chart').getAttribute('aria-label')")
    assert said.endswith(" 2 ratio on average"), said
    b.keys("body", "?")
    equal(b.script("return document.querySelector('#help').open"), True, "help")
    b.keys("body", "\ue00c")
    b.settle()
    equal(b.script("return document.querySelector('#help').open"), False, "help after Esc")
    quiet(b)


@test
def declared_metrics():
    "a metric that a spec declares is a strip from the start; one whose events are not there is none"
    t = shop()
    pack = "APP::Shop::PackBegin"
    t.metric("APP::Shop::Weight", "ratio", (pack, "grams"), (pack, ""), "g", "mean weight")
    t.metric("APP::Shop::Pace", "rate", (pack, ""), unit="parcels")
    t.metric("APP::Shop::Open", "difference", ("APP::Shop::OrderBegin", ""), ("APP::Shop::Send", ""), "orders")
    t.metric("APP::Shop::Missing", "ratio", ("APP::Shop::Returned", ""), (pack, ""), "none")
    t.metric("APP::Shop::Took", "between", (pack, ""), ("APP::Shop::PackEnd", ""), "ns")
    t.metric("APP::Shop::Part", "quotient", (f"3*{pack}-APP::Shop::OrderBegin", ""), (f"2*{pack}", ""), "parts")
    t.metric("APP::Shop::Half", "quotient", (f"{pack}-APP::Shop::Returned", ""), (pack, ""), "parts")
    t.metric("APP::Shop::Never", "between", (pack, ""), ("APP::Shop::Returned", ""), "ns")
    b = show(exported(t)[1])
    names = strips(b)
    wanted = ["APP::Shop::Weight", "APP::Shop::Pace", "APP::Shop::Open", "APP::Shop::Took", "APP::Shop::Part"]
    equal([name for name in names if name in wanted + ["APP::Shop::Missing", "APP::Shop::Half", "APP::Shop::Never"]], wanted, "strips of metrics")
    charts = b.script("return [...document.querySelectorAll('.strip .chart')].map(e => e.getAttribute('aria-label'))")
    said = [chart for name, chart in zip(names, charts) if name in wanted]
    for chart, end in zip(said, (" 49.5 g on average", " 100 parcels/s on average", " 100 orders/s on average",
                                " 3\u202fms on average", " 0.5 parts on average")):
        assert chart.endswith(end), said
    quiet(b)


@test
def flame():
    "the flame graph adds up the view by nesting; a click fills it with what is below"
    b = show(exported(shop())[1])
    equal(intervals(b), {"APP::Shop::Order": (200, 100 * 8 * MS + 100 * (2 * MS - 500)), "APP::Shop::Pack": (100, 300 * MS)}, "whole run")
    b.script("window.scrollTo(0, document.body.scrollHeight)")
    b.settle()
    x, y, w, h = b.box("#flame canvas")
    rows = round(h / 18)
    equal(rows, 4, "rows: all, process, outer, inner")
    b.mouse([("move", x + 20, y + 3 * 18 + 9)])
    assert tip(b).startswith("APP::Shop::Pack|300\u202fms"), tip(b)
    b.mouse([("move", x + 20, y + 3 * 18 + 9), ("down",), ("up",)])
    b.settle()
    equal(round(b.box("#flame canvas")[3] / 18), 1, "rows after the click")
    quiet(b)


@test
def correlation():
    "strips that rise together have a correlation near 1, against each other near -1; few bins are too few to tell"
    t = Trace(duration_ns=4_000 * MS)
    a, same, against = (t.event("APP::Load::" + name) for name in ("A", "Same", "Against"))
    for i in range(400):
        level = i // 10 * 7919 % 10
        for name, n in ((a, level), (same, level), (against, 9 - level)):
            for k in range(n):
                t.add(name, i * 10 * MS + k * MS, pid=7)
    slope, incline = t.event("APP::Load::Slope"), t.event("APP::Load::Incline")
    step = [t.event("APP::Step::" + end, "interval-" + end.lower(), group="APP::Step") for end in ("Begin", "End")]
    for i in range(400):
        for k in range(i // 10 * 7919 % 10):
            t.add(step[0], i * 10 * MS + k * MS, pid=7)
            t.add(step[1], i * 10 * MS + k * MS + 1000, pid=7)
        for name, n in ((slope, i // 4), (incline, i // 6)):
            for k in range(n):
                t.add(name, i * 10 * MS + k * 10 * MS // n, pid=7)
    b = show(exported(t)[1])
    b.click(".strip[data-event='APP::Load::A'] .relation")
    value = "return Number(document.querySelector(`.strip[data-event='${arguments[0]}'] .relation`).dataset.r)"
    r = {name: b.script(value, name) for name in (same, against)}
    assert r[same] > 0.99 and r[against] < -0.9, r
    # With the rate of intervals, whose bins are others.
    b.click(".strip[data-metric='APP::Step rate'] .relation")
    assert b.script(value, a) > 0.99, "with a rate of intervals: %r" % b.script(value, a)
    # What only rises proves nothing, however many bins there are.
    b.click(".strip[data-event='APP::Load::Slope'] .relation")
    text = b.script("return document.querySelector(`.strip[data-event='APP::Load::Incline'] .relation`).textContent")
    assert "too short to tell" in text, text
    b.click(".strip[data-event='APP::Load::A'] .relation")
    for _ in range(10):
        b.keys("body", "+")
        b.settle()
    text = b.script("return document.querySelector(`.strip[data-event='APP::Load::Same'] .relation`).textContent")
    assert "too short to tell" in text, text
    quiet(b)


def picture(b):
    path = os.path.join(tmp(), "picture.png")
    b.mouse([("move", 2, 2)])
    b.settle()
    b.screenshot(path)
    with open(path, "rb") as file:
        return file.read()


@test
def the_same_view_is_the_same_picture():
    "a view that is left and taken again, and another page of the same trace, look the same to the pixel; other views do not"
    folder, page = exported(shop())
    b = show(page)
    whole = picture(b)
    b.keys("body", "+")
    b.keys("body", "+")
    near = picture(b)
    b.keys("body", "\ue012")
    assert near != whole and picture(b) not in (near, whole), "a move shows nothing"
    b.keys("body", "\ue00c")
    equal(picture(b) == whole, True, "the whole run again")
    b.keys("body", "+")
    b.keys("body", "+")
    equal(picture(b) == near, True, "the near view again")
    b = show(export(folder, os.path.join(tmp(), "again.html")))
    equal(picture(b) == whole, True, "another page of it")
    quiet(b)


@test
def lanes_of_many_threads():
    "of 5,000 threads the busiest have lanes, whenever they came, and the page takes little memory to make"
    t = Trace(duration_ns=10_000 * MS)
    begin = t.event("APP::Shop::WorkBegin", "interval-begin", group="APP::Shop::Work")
    end = t.event("APP::Shop::WorkEnd", "interval-end", group="APP::Shop::Work")
    busy = {100 * k + 7: 1 + k for k in range(50)}
    for tid in range(1, 5001):
        for k in range(4):
            at = tid * MS + k * 20_000
            t.add(begin, at, pid=7, tid=tid)
            t.add(end, at + 10_000 + busy.get(tid, 0), pid=7, tid=tid)
    b = show(exported(t)[1])
    raw = data(b)
    equal((len(raw["lanes"]["list"]), raw["lanes"]["left_out"]), (64, 5000 - 64), "lanes, and threads without one")
    lanes = {lane["tid"] for lane in raw["lanes"]["list"]}
    equal(sorted(tid for tid in busy if tid not in lanes), [], "busy threads without a lane")
    quiet(b)


@test
def process_of_lanes():
    "choosing a process leaves its lanes, and its part of the flame graph"
    t = shop()
    begin = t.event("APP::Other::WorkBegin", "interval-begin", group="APP::Other::Work")
    end = t.event("APP::Other::WorkEnd", "interval-end", group="APP::Other::Work")
    t.add(begin, 1 * MS, pid=20)
    t.add(end, 5 * MS, pid=20)
    b = show(exported(t)[1])
    equal(b.script("return document.querySelectorAll('.lane').length"), 3, "lanes of all")
    value = b.script("return [...document.querySelectorAll('#process option')].find(e => /\\b20\\b/.test(e.textContent)).value")
    choose_process(b, value)
    equal(b.script("return [...document.querySelectorAll('.lane')].map(e => e.dataset.tid)"), ["20"], "lanes of process 20")
    equal(intervals(b), {"APP::Other::Work": (1, 4 * MS)}, "table of process 20")
    quiet(b)


def load(name, per_ms, duration_ms):
    """A run of so many events a millisecond."""
    t = Trace(command=name, duration_ns=duration_ms * MS)
    work = t.event("APP::Load::Work")
    for i in range(duration_ms):
        for k in range(per_ms):
            t.add(work, i * MS + k * 1000, pid=7)
    return t


@test
def overlay():
    "another run's page is laid over this one, aligned at its start; what is no page is refused, and nothing of it runs"
    slow, fast = exported(load("slow", 2, 400))[1], exported(load("<i>fast", 6, 200))[1]
    b = show(slow)
    b.keys("#overlay-file", fast)
    b.wait_for("return document.documentElement.dataset.overlay === 'yes'", "overlaid")
    b.settle()
    said = b.script("return document.querySelector('#overlay-note').textContent")
    assert "<i>fast" in said and "1 of 1 strips" in said, said
    equal(b.script("return document.querySelectorAll('i').length"), 0, "elements that the other run brought")
    ends = b.script("const g = document.querySelector('.strip').strip.plot.graph; let last = 0;"
                    "for (let i = 0; i < g.numRows() - 1; i++) if (g.getValue(i, 2) !== null) last = g.getValue(i, 0);"
                    "return [g.numColumns(), last];")
    assert ends[0] == 3 and abs(ends[1] - 200 * MS) < 5 * MS, "dashed until the other run's end: %r" % ends
    x, _, w, _ = b.box("#axis .ticks")
    _, y, _, h = b.box(".strip .plot")
    for share, wanted in ((0.25, "2k / 6k"), (0.75, "2k / \u2013")):
        b.mouse([("move", x + w * share, y + h / 2)])
        equal(b.script("return document.querySelector('.chip').textContent").replace("\u202f", ""), wanted, "both values")
    b.click("#overlay-off")
    b.settle()
    b.mouse([("move", x + w * 0.25, y + h / 2)])
    equal(b.script("return document.querySelector('.chip').textContent").replace("\u202f", ""), "2k", "value of one run")
    other = os.path.join(tmp(), "other.html")
    with open(other, "w", encoding="utf-8") as file:
        file.write("<script>document.title = 'ran'</script>")
    b.keys("#overlay-file", other)
    b.wait_for("return document.documentElement.dataset.overlay === 'no'", "refused")
    said = b.script("return document.querySelector('#overlay-note').textContent")
    assert "not a page of pem" in said and b.script("return document.title") != "ran", said
    quiet(b)


@test
def printed():
    "in print all strips, lanes and tables stand on the page's width, without the tools to move about"
    b = show(exported(shop())[1])
    b.devtools("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        b.script("window.dispatchEvent(new Event('beforeprint'))")
        b.settle()
        for what in (".buttons", "#overlay", "#arrows", ".away"):
            equal(b.script("return document.querySelector(arguments[0]).getClientRects().length", what), 0, what + " in print")
        widths = b.script("return [...document.querySelectorAll('.strip, .lane')].map(e => e.getBoundingClientRect().right)")
        assert widths and max(widths) <= 1032, widths
        equal(b.script("const l = document.querySelector('#lane-list'); return l.scrollHeight <= l.clientHeight"), True, "all lanes")
        b.script("window.dispatchEvent(new Event('afterprint'))")
    finally:
        b.devtools("Emulation.setEmulatedMedia", {"media": ""})
    b.settle()
    quiet(b)


run_all()
