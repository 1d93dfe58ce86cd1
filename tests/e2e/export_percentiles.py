# SPDX-License-Identifier: MIT
"""export_percentiles: percentiles in the page of pem export --to html"""
from html_page import exported, quiet, report, show
from tap import equal, run_all, test
from trace_files import Trace

MS = 1_000_000

# The last four cells of the only row, and what sketch.js makes of the data.
PERCENTILES_SHOWN = """
const sketch = new Sketch();
for (const node of JSON.parse(document.querySelector('#data').textContent).tree.nodes)
    sketch.add(node.sketch);
const values = PERCENTILES.map(share => sketch.percentile(share));
const cells = [...document.querySelectorAll('#interval-table tbody td')].slice(-4).map(e => e.textContent);
return { values, cells, formatted: values.map(value => Format.duration(value)) };
"""


@test
def percentiles_of_intervals():
    "the table of intervals has percentiles of the whole run, as the report and the sorted durations have them"
    t = Trace(duration_ns=10_000 * MS)
    pair = [t.event("APP::Shop::Work" + end, "interval-" + end.lower(), group="APP::Shop::Work") for end in ("Begin", "End")]
    took, at = [100 + (i * 7919 % 2000) ** 2 for i in range(2000)], 0
    for i, ns in enumerate(took):
        t.add(pair[0], at, pid=7 + i % 2)
        t.add(pair[1], at + ns, pid=7 + i % 2)
        at += ns
    folder, page = exported(t)
    b = show(page)
    (said,) = report(folder)["intervals"]
    shown = b.script(PERCENTILES_SHOWN)
    equal(shown["cells"], shown["formatted"], "cells")
    for value, share, key in zip(shown["values"], (500, 900, 990, 999), ("p50_ns", "p90_ns", "p99_ns", "p99_9_ns")):
        exact = sorted(took)[-(-len(took) * share // 1000) - 1]
        equal(value, said[key], key + " of page and report")
        assert abs(value - exact) <= 0.008 * exact, (key, value, exact)
    quiet(b)


run_all()
