# SPDX-License-Identifier: MIT
"""export_html: the page of pem export --to html, in a real browser: its counts, brush, filter, looks, and safety"""
import glob
import os
import re

from html_page import PLUGIN, choose_process, export, exported, interval, quiet, report, show, shown, strips
from tap import PEM, ROOT, equal, need, run, run_all, skip, test, tmp
from trace_files import COUNTER, Trace

MS = 1_000_000


def vertical_trace():
    """Two processes over 3 s, every layer, phases, a counter and a gauge; faults of process 8 only in the last second."""
    t = Trace(duration_ns=3_000_000_000)
    t.costs = [("user-log", 13.5, 2000), ("kernel-log", 60, 500)]
    t.gaps = [("perf", "this machine has no PMU: run on hardware")]
    begin = t.event("APP::Phase::Begin", "interval-begin", [("name", "string", "name")])
    end = t.event("APP::Phase::End", "interval-end", [("name", "string", "name")])
    malloc = t.event("APP::Libc::Malloc", "allocation", [("address", "uint64", "address"), ("size", "uint64", "size")])
    fault = t.event("OS::Memory::PageFault", fields=[("address", "uint64", "address")])
    resident = t.event("OS::Memory::Resident", "gauge", [("pages", "uint64", "value")], unit="pages")
    misses = t.event("HW::Cache::Misses", "counter", [("value", "uint64", "value")], unit="misses")
    agent = t.event("CPO::PageSize::Directive")
    for i in range(2000):
        t.add(malloc, i * MS + i, [i, 64], pid=7)
    for i in range(500):
        t.add(fault, 2_000_000_000 + i * 2 * MS - 7, [i], pid=8)
    for i in range(300):
        t.add(misses, i * 10 * MS, [i * 1000], pid=7, source=COUNTER)
        t.add(resident, i * 10 * MS, [100 + i], pid=7, source=COUNTER)
    for i, name in enumerate([b"load", b"index", b"query"]):
        t.add(begin, i * 1000 * MS + 100, [name], pid=7)
        t.add(end, (i + 1) * 1000 * MS - 100, [name], pid=7)
    t.add(agent, 1_234_567_890, pid=9)
    t.discarded[malloc] = 5
    return t


def check_against_report(b, folder):
    said = report(folder)
    wanted = {e["name"]: (e["count"], e["count"]) for e in said["per_event"]}
    equal(shown(b, "#events tbody tr"), wanted, "table")
    said_by_strips = shown(b, ".strip")
    equal(said_by_strips, {name: wanted[name] for name in said_by_strips}, "strips")
    for name in ("produced", "delivered", "discarded", "overwritten"):
        text = b.script("return document.querySelector('#fact-' + arguments[0] + ' dd').textContent", name)
        equal(int(re.sub(r"\D", "", text)), said["events"][name], name)
    return said_by_strips


@test
def counts():
    "every count on the page is the report's"
    folder, page = exported(vertical_trace())
    b = show(page)
    seen = check_against_report(b, folder)
    assert {name.split("::")[0] for name in strips(b)} == {"APP", "OS", "HW", "CPO"}, seen
    equal(b.script("const d = document.querySelector('#phases').dataset; return [d.inside, d.total]"), ["3", "3"],
          "phases")
    text = b.script("return document.querySelector('#notices').textContent")
    assert "perf, not recorded: this machine has no PMU" in text and "5 of " in text, text


@test
def recorded():
    "a recorded trace's page shows what the report counts"
    need("ls")
    folder = tmp()
    rc, _, err = run([PEM, "record", "-o", folder + "/trace", "--", "ls", "-lR", "/usr/share/doc"], cwd=folder)
    if rc == 2:
        skip("nothing can be recorded here: " + err.strip())
    equal(rc, 0, "pem record (stderr: %s)" % err)
    b = show(export(folder + "/trace", folder + "/page.html"))
    assert check_against_report(b, folder + "/trace"), "no strip"


@test
def brush():
    "a drag in the overview sets the interval of every strip"
    trace = vertical_trace()
    b = show(exported(trace)[1])
    before = b.script("return document.querySelector('#axis').textContent")
    x, y, w, h = b.box(".brush-layer")
    b.mouse([("move", x + w * 0.3, y + h / 2), ("down",), ("move", x + w * 0.4, y + h / 2),
             ("move", x + w * 0.8, y + h / 2), ("up",)])
    low, high = interval(b)
    assert abs(low - 0.9e9) < 2e7 and abs(high - 2.4e9) < 2e7, (low, high)
    for name, (inside, total) in shown(b, ".strip").items():
        equal(total, trace.count(name), name)
        equal(inside, sum(1 for clock, n, _, _ in trace.records if n == name and low <= clock - 5_000_000_000 < high),
              name + " in the interval")
    assert b.script("return document.querySelector('#axis').textContent") != before, "the axis stayed"
    equal(shown(b, "#events tbody tr").items() >= shown(b, ".strip").items(), True, "table agrees with strips")
    # Its right handle, then its body, move too.
    b.mouse([("move", x + w * 0.8, y + h / 2), ("down",), ("move", x + w * 0.6, y + h / 2), ("up",)])
    assert abs(interval(b)[1] - 1.8e9) < 3e7 and interval(b)[0] == low, interval(b)
    b.mouse([("move", x + w * 0.45, y + h / 2), ("down",), ("move", x + w * 0.55, y + h / 2), ("up",)])
    assert abs(interval(b)[0] - 1.2e9) < 3e7 and abs(interval(b)[1] - 2.1e9) < 3e7, interval(b)
    quiet(b)


@test
def keys_and_phases():
    "keys zoom, pan and reset; a click on a phase shows that phase"
    b = show(exported(vertical_trace())[1])
    whole = interval(b)
    b.keys("body", "+")
    b.settle()
    zoomed = interval(b)
    assert (zoomed[1] - zoomed[0]) * 1.9 < whole[1] - whole[0], zoomed
    b.keys("body", "\ue014")  # right arrow
    b.settle()
    panned = interval(b)
    assert panned[0] > zoomed[0] and panned[1] - panned[0] == zoomed[1] - zoomed[0], panned
    b.keys("body", "\ue00c")  # Escape
    b.settle()
    equal(interval(b), whole, "interval after Esc")
    x, y, w, _ = b.box("#phases canvas")
    b.mouse([("move", x + w * 0.5, y + 10), ("down",), ("up",)])
    low, high = interval(b)
    assert abs(low - 1e9) < 5 * MS and abs(high - 2e9) < 5 * MS, (low, high)
    x, y, w, h = b.box("#strips")
    b.mouse([("move", x + w * 0.6, y + h / 2)])
    chips = b.script("return [...document.querySelectorAll('.chip')].map(e => !e.hidden && e.textContent.length > 0)")
    assert chips and all(chips), "crosshair values: %r" % chips
    quiet(b)


@test
def marked_from_outside():
    "a phase begun by one process and ended by another is one phase, whoever is chosen"
    t = Trace(duration_ns=1_000_000_000)
    begin = t.event("APP::Phase::Begin", "interval-begin", [("name", "string", "name")])
    end = t.event("APP::Phase::End", "interval-end", [("name", "string", "name")])
    work = t.event("APP::Libc::Malloc")
    for pid, name, at, until in ((20, b"load", 100, 400), (22, b"query", 500, 900)):
        t.add(begin, at * MS, [name], pid=pid)
        t.add(end, until * MS, [name], pid=pid + 1)
    t.add(begin, 100 * MS, [b"own"], pid=7)
    t.add(begin, 110 * MS, [b"own"], pid=8)
    t.add(end, 200 * MS, [b"own"], pid=7)
    t.add(end, 210 * MS, [b"own"], pid=8)
    t.add(work, 1, pid=7)
    b = show(exported(t)[1])
    phases = "return JSON.parse(document.querySelector('#data').textContent).phases"
    said = b.script(phases)
    equal((said["unmatched"], [p[:4] for p in said["list"]]), (0, [
        ["load", 100 * MS, 400 * MS, 0], ["own", 100 * MS, 200 * MS, 7], ["own", 110 * MS, 210 * MS, 8],
        ["query", 500 * MS, 900 * MS, 0]]), "phases")
    value = b.script("return [...document.querySelectorAll('#process option')].find(e => /\\b7\\b/"
                     ".test(e.textContent)).value")
    choose_process(b, value)
    equal(b.script("return document.querySelector('#phases').dataset.total"), "3", "phases of process 7")
    tids = "return [...document.querySelectorAll('.lane')].map(e => e.dataset.tid)"
    equal(b.script(tids), ["7"], "lanes of process 7")
    choose_process(b, "-1")
    equal(b.script(tids), ["7", "8"], "threads with a lane: what others ended is not theirs")


@test
def process_filter():
    "choosing a process counts only its events"
    trace = vertical_trace()
    b = show(exported(trace)[1])
    options = b.script("return [...document.querySelectorAll('#process option')].map(e => [e.value, e.textContent])")
    equal(len(options), 4, "choices in %r" % options)
    for pid in (8, 7):
        value = next(value for value, text in options if re.search(r"\b%d\b" % pid, text))
        choose_process(b, value)
        for name, (_, total) in shown(b, ".strip").items():
            equal(total, trace.count(name, pid), "%s of %d" % (name, pid))
    quiet(b)


@test
def strips_are_chosen():
    "a box hides a strip, an arrow moves it"
    b = show(exported(vertical_trace())[1])
    names = strips(b)
    b.script("document.querySelector('#chooser').open = true")
    place = 1 + b.script("return [...document.querySelectorAll('#chooser-list label')].findIndex(e => "
                         "e.textContent === arguments[0])", names[1])
    b.click("#chooser-list > div:nth-child(%d) button:last-child" % place)
    b.settle()
    equal(strips(b), [names[0], names[2], names[1]] + names[3:], "order of strips")
    b.click("#chooser-list > div:nth-child(%d) input" % (place + 1))
    b.settle()
    equal(strips(b), [names[0]] + names[2:], "strips left")
    b.click("#chooser-list > div:nth-child(%d) input" % (place + 1))
    b.settle()
    equal(strips(b), [names[0], names[2], names[1]] + names[3:], "strips once it is back")
    quiet(b)


def pixels(b):
    """How many pixels of the first strip are drawn, and the colours of page and text."""
    return b.script(
        "const from = document.querySelector('.strip canvas'), s = getComputedStyle(document.documentElement);"
        "const c = document.createElement('canvas'); c.width = from.width; c.height = from.height;"
        "const t = c.getContext('2d', { willReadFrequently: true }); t.drawImage(from, 0, 0);"
        "const d = t.getImageData(0, 0, c.width, c.height).data; let n = 0;"
        "for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return [n, s.backgroundColor, s.color];")


@test
def dark():
    "light and dark are drawn, narrow and wide"
    b = show(exported(vertical_trace())[1])
    for width in (1400, 800, 420):
        b.resize(width, 1000)
        looks = []
        for scheme in ("light", "dark"):
            b.colour_scheme(scheme)
            b.settle()
            b.settle()
            looks.append(pixels(b))
            assert looks[-1][0] > 500, "almost nothing is drawn: %r" % looks
        assert looks[0][1:] != looks[1][1:], looks
        equal(b.script("return document.documentElement.scrollWidth <= innerWidth"), True, "fits %d pixels" % width)
        lefts = b.script("return [...document.querySelectorAll('.strip .plot')].map(e => e.getBoundingClientRect().x)")
        equal(len(set(lefts)), 1, "left edges of the plots")
    quiet(b)


@test
def alone():
    "the page loads nothing, and names its plotting library's licence"
    b = show(exported(vertical_trace())[1])
    equal(b.script("return performance.getEntriesByType('resource').map(e => e.name)"), [], "what it loaded")
    text = b.script("return document.querySelector('#licence-text').textContent")
    assert "Dan Vanderkam" in text and "MERCHANTABILITY" in text, text[:200]


HOSTILE = '</script><img src="x" onerror="document.title=1"><!--<script '


@test
def hostile():
    "a hostile trace's page shows its text and runs none of it"
    t = Trace(command="sh " + HOSTILE + "\udcff\udcc0", host="<b>h</b>", duration_ns=2 ** 64 - 1)
    t.gaps = [("<i>gap", HOSTILE)]
    t.costs = [("<u>kind", 1.5, 2 ** 63)]
    begin = t.event("APP::constructor::Begin", "interval-begin", [("name", "string", "name")], description=HOSTILE)
    end = t.event("APP::constructor::End", "interval-end", [("name", "string", "name")])
    gauge = t.event("__proto__::__proto__::__proto__", "gauge", [("v", "float64", "value")], unit=HOSTILE)
    counter = t.event("XX::toString::valueOf", "counter", [("v", "float64", "value")], unit="\u2028</style>")
    values = [float("nan"), float("inf"), -float("inf"), 1e308, 1e308, -1e308, 0.0, 5e-324]
    for i in range(400):
        t.add(begin, i * 1000, [HOSTILE.encode() + b"\xff\xfe\xed\xa0\x80" + bytes([1 + i % 31])], pid=i * 12345 + 1)
        t.add(gauge, i * 1000, [values[i % 8]], pid=2 ** 32 - 1 - i, source=COUNTER)
        t.add(counter, i * 1000, [values[i % 8]], pid=5, source=COUNTER)
    t.add(end, 10 ** 9, [b"never begun"], pid=3)
    t.add(counter, 2 ** 63, [1.0], pid=5)
    folder, page = exported(t)
    with open(page, "rb") as file:
        text = file.read().decode("utf-8")  # strictly
    equal(text.count("</script>"), text.count("<script"), "script elements")
    for part in "</script><img", "<!--<script", "\u2028</style":  # a comment, a script in it: the page's own end would not count
        assert part not in text, "in the page: " + part
    assert "\\u003c!--\\u003cscript " in text, "the command is not in the page as it was"
    assert os.path.getsize(page) < 4 << 20, os.path.getsize(page)
    b = show(page)
    equal(b.script("return [document.images.length, document.querySelectorAll('b, i, u').length]"), [0, 0],
          "elements that the trace brought")
    assert HOSTILE in b.script("return document.querySelector('#command').textContent"), "command"
    assert HOSTILE in b.script("return document.querySelector('#notices').textContent"), "gap"
    wanted = {e["name"]: (e["count"], e["count"]) for e in report(folder)["per_event"]}
    equal(shown(b, "#events tbody tr"), wanted, "table")
    for key in ("+", "+", "\ue012", "-", "\ue00c"):
        b.keys("body", key)
        b.settle()
    quiet(b)


@test
def empty():
    "a trace without a record makes a page that says so"
    t = Trace()
    t.event("OS::Memory::PageFault")
    b = show(exported(t)[1])
    equal(strips(b), [], "strips")
    assert "no event was recorded" in b.script("return document.querySelector('#strips').textContent")


@test
def small():
    "many events of many processes make a small page"
    t = Trace()
    events = [t.event("OS::Class%d::Event" % i) for i in range(12)]
    for i in range(60000):
        t.add(events[i % 12], i * 50_000 + i * 37 % 999, pid=i * 7919 % 40 + 1)
    folder, page = exported(t)
    assert os.path.getsize(page) < 2 << 20, os.path.getsize(page)
    b = show(page)
    check_against_report(b, folder)
    equal(b.script("return [...document.querySelectorAll('#process option')].filter(e => /others? process/"
                   ".test(e.textContent)).length"), 1, "choices for the other processes")


@test
def unwritable():
    "a page that can't be written leaves nothing behind"
    if not os.path.exists(PLUGIN):
        skip("export-html.so was not built: dygraphs is missing (package libjs-dygraphs)")
    folder = tmp()
    vertical_trace().write(folder + "/trace")
    for path in ("/dev/full", folder + "/no/such/page.html"):
        rc, _, err = run([PEM, "export", "--to", "html", folder + "/trace", "-o", path])
        assert rc != 0 and path in err, (rc, err)
    equal(glob.glob(folder + "/*"), [folder + "/trace"], "files")


@test
def without_library():
    "without dygraphs the exporter is left out, with the reason"
    need("make")
    rc, out, err = run(["make", "-n", "-C", ROOT, "B=" + tmp(), "DYGRAPHS_DIR=/nowhere", "all"], timeout=100)
    assert "html: left out, needs dygraphs in /nowhere" in out, out[:300] + err[-300:]
    assert "export-html.so" not in out, "it would be built"


run_all()
