#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
page - the page of pem export --to html for a trace of 10 million events, in headless Chromium

	page/10m_bytes		the page's size: system calls and their threads' states, allocations, of several processes
	page/export		seconds that pem export takes for it, beside reading the trace with all context (reader/pass)
	page/export_memory	the most memory of the same
	page/first_paint	seconds from opening the file until all of it is drawn and painted
	page/brush		milliseconds of a brush's move, from the event until the next frame is painted; each move is to another interval

BENCH_PAGE_EVENTS: another number than 10 million.
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from measure import Folder, HERE, PEM, QUICK, balance, heading, report, wanted

ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path += [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "e2e")]

EVENTS = int(os.environ.get("BENCH_PAGE_EVENTS", 100_000 if QUICK else 10_000_000))
ROUNDS = 1 if QUICK else 5
MOVES = 10 if QUICK else 60
READ = os.path.join(HERE, "read_trace")
BYTES, EXPORT, MEMORY, PAINT, BRUSH = "page/10m_bytes", "page/export", "page/export_memory", "page/first_paint", "page/brush"
# A byte that dd copies is two system calls, so four events.
WORK = ("for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=1 count=%d status=none & done; "
        "dd if=/dev/zero bs=1k count=%d status=none | dd of=/dev/null bs=1k status=none & "
        "find /usr/share -size +1 >/dev/null 2>&1; wait")
# A drag over the overview: the low edge moves on while the high one stays; after each move, a frame.
DRAG = """
const done = arguments[arguments.length - 1], moves = arguments[0], times = [];
const layer = document.querySelector('.brush-layer'), box = layer.getBoundingClientRect();
const send = (type, share) => layer.dispatchEvent(new PointerEvent(type, { clientX: box.x + share * box.width,
    clientY: box.y + 20, button: 0, pointerId: 1, bubbles: true }));
layer.setPointerCapture = () => {};
send('pointerdown', 0.1);
const step = i => {
    const start = performance.now();
    send('pointermove', 0.95 - 0.8 * i / moves);
    requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = () => {
            times.push(performance.now() - start);
            if (i < moves) { setTimeout(() => step(i + 1), 0); } else { send('pointerup', 0.2); done(times); }
        };
        channel.port2.postMessage(0);
    });
};
step(0);
"""


def measured(*command):
    """Seconds that passed, and the most MiB."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit("page: %s ended with %d" % (command[0], status))
    return time.monotonic() - start, usage.ru_maxrss / 1024


def recorded(folder):
    trace = folder.fresh("trace")
    each = EVENTS // 11
    work = WORK % (each * 9 // 10, each // 20)
    done = subprocess.run([PEM, "record", "-q", "--buffer", "256M", "-e", "OS,APP", "-o", trace, "--", "sh", "-c", work])
    if done.returncode:
        sys.exit("page: nothing was recorded")
    return trace


def browsed(page, profile):
    """Seconds until it is painted, and ms of each move of the brush."""
    from webdriver import Browser
    with Browser(profile) as browser:
        browser.open("file://" + page)
        browser.wait_for("return document.documentElement.dataset.ready === 'yes'", "drawn", 60)
        browser.settle()
        painted = browser.script("return Math.max(performance.getEntriesByName('first-contentful-paint')[0].startTime, "
                                 "performance.getEntriesByType('navigation')[0].loadEventEnd)")
        moves = browser._call("POST", "/execute/async", {"script": DRAG, "args": [MOVES]})
    return painted / 1e3, moves


def main():
    cases = wanted(BYTES, EXPORT, MEMORY, PAINT, BRUSH)
    if not cases:
        return
    heading("page")
    with Folder() as folder:
        trace = recorded(folder)
        page = folder.fresh("page.html")
        exports, most, passes, paints, brushes, slowest = [], [], [], [], [], []
        for _ in range(min(ROUNDS, 3)):
            seconds, memory = measured(PEM, "export", "--to", "html", trace, "-o", page)
            exports.append(seconds)
            most.append(memory)
            passes.append(measured(READ, trace, "pass")[0])
        report("page", BYTES, "MB", [os.path.getsize(page) / 1e6], digits=2, note="%d events" % balance(trace)[1])
        report("page", EXPORT, "s", exports, "reader/pass", passes, digits=2)
        report("page", MEMORY, "MiB", most, digits=0)
        if not shutil.which("chromium") or not shutil.which("chromedriver"):
            print("page: no first paint and no brush: chromium or chromedriver is missing (packages chromium, chromium-driver)")
            return
        for _ in range(ROUNDS):
            profile = tempfile.mkdtemp(prefix="pem-browser-")
            painted, moves = browsed(page, profile)
            shutil.rmtree(profile, ignore_errors=True)
            paints.append(painted)
            brushes.append(statistics.median(moves))
            slowest.append(max(moves))
        report("page", PAINT, "s", paints, digits=2)
        report("page", BRUSH, "ms", brushes, digits=1, note="slowest move %.1f ms" % statistics.median(slowest))


if __name__ == "__main__":
    main()
