# SPDX-License-Identifier: MIT
"""
html_page.py - exports a trace as a page and shows it in a real browser

Not here: tests; driving the browser (webdriver.py).
"""
import atexit
import json
import os
import shutil
import tempfile

from tap import BUILD, PEM, equal, run, skip, tmp
from webdriver import Browser, missing

PLUGIN = os.path.join(BUILD, "lib", "pem", "export-html.so")
_browser = []


def browser():
    """One browser for all tests, started by the first."""
    if missing():
        skip("%s is not installed (packages chromium, chromium-driver)" % missing())
    if not _browser:
        profile = tempfile.mkdtemp(prefix="pem-browser-")
        atexit.register(shutil.rmtree, profile, ignore_errors=True)
        _browser.append(Browser(profile))
        atexit.register(_browser[0].close)
    return _browser[0]


def export(folder, page):
    if not os.path.exists(PLUGIN):
        skip("export-html.so was not built: dygraphs is missing (package libjs-dygraphs)")
    rc, out, err = run([PEM, "export", "--to", "html", folder, "-o", page])
    equal((rc, out), (0, ""), "pem export (stderr: %s)" % err)
    return page


def show(page):
    """Open a page and wait for it to be drawn, without a word on the console."""
    b = browser()
    b.resize(1400, 1000)
    b.colour_scheme("light")
    b.console()
    b.open("file://" + page)
    b.wait_for("return document.documentElement.dataset.ready === 'yes'", "drawn")
    b.settle()
    quiet(b)
    return b


def quiet(b):
    equal([entry["message"] for entry in b.console() if entry["level"] in ("SEVERE", "WARNING")], [], "console")


def shown(b, where):
    """{event: (in the interval, in total)} of the strips or of the table's rows."""
    return {name: (inside, total) for name, inside, total in b.script(
        "return [...document.querySelectorAll(arguments[0] + '[data-event]')].map(e => "
        "[e.dataset.event, Number(e.dataset.inside), Number(e.dataset.total)]);", where)}


def strips(b):
    """Names of the strips, from top to bottom."""
    return b.script("return [...document.querySelectorAll('.strip')].map(e => e.dataset.metric)")


def interval(b):
    return b.script("const d = document.querySelector('#timeline').dataset;"
                    "return [Number(d.lowNs), Number(d.highNs)];")


def report(folder):
    rc, out, err = run([PEM, "report", "--json", folder])
    equal(rc, 0, "pem report (stderr: %s)" % err)
    return json.loads(out)


def exported(trace):
    folder = tmp()
    trace.write(folder + "/trace")
    return folder + "/trace", export(folder + "/trace", folder + "/page.html")


def choose_process(b, value):
    """As a person does in the list of processes."""
    b.script("const s = document.querySelector('#process'); s.value = arguments[0];"
             "s.dispatchEvent(new Event('change'))", value)
    b.settle()
