# SPDX-License-Identifier: MIT
"""rates_page: pem rates --html draws the pipeline, in a browser"""
import os
import sys

from html_page import browser, quiet
from probing import here
from tap import BUILD, PEM, equal, run, run_all, test, tmp

if not os.path.exists(BUILD + "/bin/pem-rates"):
    print("1..0 # SKIP pem rates was not built: it needs json-c, SQLite and libelf")
    sys.exit(77)


def drawn(command):
    """The browser with the page of a command, what was printed, and the stages in the picture."""
    here()
    page = os.path.join(tmp(), "page.html")
    rc, _, err = run([PEM, "rates", "--html", page, "--", "sh", "-c", command])
    assert rc in (0, 4), err
    shown = browser()
    shown.console()
    shown.open("file://" + page)
    shown.wait_for("return document.documentElement.dataset.ready === 'yes'", "drawn")
    quiet(shown)
    return shown, err, shown.script("return [...document.querySelectorAll('#pipeline .title')].map(e => e.textContent)")


@test
def a_pipeline_is_drawn():
    "each stage and queue is in the picture, the bottleneck is marked, and the sentence is that of the table"
    shown, err, stages = drawn("head -c 30000000 /dev/zero | gzip -9 | cat | wc -c >/dev/null")
    equal(stages, ["head", "gzip", "cat", "wc"], "stages")
    equal(shown.script("return document.querySelectorAll('#pipeline .pipe').length"), 3, "queues")
    equal(shown.script("return document.querySelectorAll('#pipeline .slowest').length"), 1, "bottlenecks")
    sentence = shown.script("return document.getElementById('verdict').textContent")
    assert sentence.startswith("The bottleneck is gzip: ") and sentence.split(" waited ")[0] in err, (sentence, err)
    equal(shown.script("return document.querySelectorAll('#stages tbody tr').length"), 4, "rows")


@test
def hostile_names():
    "a process with markup in its name is shown as text"
    name = os.path.join(tmp(), "<b>&x")
    os.symlink("/bin/cat", name)
    shown, _, stages = drawn("head -c 3000000 /dev/zero | '%s' | wc -c >/dev/null" % name)
    equal(stages, ["head", "<b>&x", "wc"], "stages")
    equal(shown.script("return document.querySelectorAll('b').length"), 0, "elements of names")


@test
def a_file_that_is_there():
    "a page that is there already is kept, and the command does not run"
    folder = tmp()
    page, ran = os.path.join(folder, "page.html"), os.path.join(folder, "ran")
    with open(page, "w", encoding="ascii") as out:
        out.write("mine")
    rc, _, err = run([PEM, "rates", "--html", page, "--", "touch", ran])
    equal((rc, os.path.exists(ran)), (1, False), "status and command")
    assert "is there already" in err, err
    with open(page, encoding="ascii") as text:
        equal(text.read(), "mine", "contents")


run_all()
