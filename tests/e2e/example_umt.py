# SPDX-License-Identifier: MIT
"""example_umt: the experiment of docs/umt.md, on a small mesh: two kinds of runs with one result, pages, and a comparison"""
import json
import os

from tap import BUILD, PEM, ROOT, equal, run, run_all, skip, test, tmp

UMT = os.path.join(BUILD, "examples/umt")


@test
def the_experiment():
    "small and large pages have one result; every run is recorded, compared, and the first of each is a page"
    folder = os.path.join(tmp(), "out")
    env = {**os.environ, "PEM": PEM, "UMT": UMT}
    rc, out, err = run([os.path.join(ROOT, "examples/umt_experiment"), folder, "2", "2", "24"], env=env, cwd=ROOT)
    if rc == 2:
        skip(err.splitlines()[-1])
    equal(rc, 0, "status (stderr: %s)" % err)
    results = {line for line in out.splitlines() if line.startswith("flux ")}
    equal(len(results), 1, "results: %s" % results)
    for kind in ("small", "large"):
        for i in (1, 2):
            rc, text, err = run([PEM, "report", "--json", os.path.join(folder, "%s.%d" % (kind, i))])
            equal(rc, 0, err)
            phases = {p["name"]: p["times"] for p in json.loads(text)["phases"]}
            equal(phases, {"sweep": 2, "scattering": 2}, "phases")
        if os.path.exists(os.path.join(BUILD, "lib/pem/export-html.so")):
            assert os.path.getsize(os.path.join(folder, kind + ".html")) > 10000
    assert "small.1" in out and "large.2" in out, out


@test
def a_folder_in_use():
    "a folder that has something in it is not written to"
    folder = tmp()
    with open(os.path.join(folder, "mine"), "w", encoding="ascii") as out:
        out.write("x")
    rc, _, err = run([os.path.join(ROOT, "examples/umt_experiment"), folder], cwd=ROOT)
    equal(rc, 1, "status")
    assert "not empty" in err, err
    equal(os.listdir(folder), ["mine"], "files")


@test
def a_wrong_edge():
    "an edge that is no mesh is refused"
    rc, _, err = run([UMT, "1", "1"])
    equal(rc, 1, "status")
    assert "EDGE" in err, err


run_all()
