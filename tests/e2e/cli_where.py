# SPDX-License-Identifier: MIT
"""cli_where: predicates on the command line, --where and -e 'PATTERN where PREDICATE'"""
import json
import os

from tap import PEM, run, run_all, test, tmp


def counted(*options):
    """Events of a program by name, as pem stat counts them."""
    out = os.path.join(tmp(), "counts")
    rc, _, err = run([PEM, "stat", "-q", "--json", "-o", out, *options, "--", "ls", "/"])
    assert rc == 0, err
    with open(out, encoding="utf-8") as f:
        return {e["name"]: e for e in json.load(f)["events"]}


@test
def a_predicate_of_one_pattern():
    "-e 'Malloc where size >= 512' counts no smaller request, and other patterns as ever"
    events = counted("-f", "size", "-e", "Malloc where size >= 512,Calloc")
    malloc = next(e for name, e in events.items() if name.endswith("Malloc"))
    assert malloc["count"] > 0 and malloc["min"] >= 512, malloc


@test
def a_predicate_of_all():
    "--where holds for all events of -e"
    events = counted("-f", "size", "-e", "Malloc", "--where", "size < 64 && size != 0")
    malloc = next(iter(events.values()))
    assert malloc["count"] > 0 and 0 < malloc["min"] and malloc["max"] < 64, malloc


@test
def a_report_says_what_was_tested():
    "pem report and its --json name the predicate of each event that had one, and no other"
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "-e", "Malloc where size > 4096,Realloc where size > 4096,Free",
                      "--", "ls", "/"])
    assert rc == 0, err
    rc, out, err = run([PEM, "report", trace], env={"COLUMNS": "100"})
    assert rc == 0, err
    assert "Recorded only where\nAPP::Libc::Malloc, APP::Libc::Realloc where size > 4096\n" in out, out
    rc, out, err = run([PEM, "report", "--json", trace])
    assert rc == 0, err
    predicates = {p["event"]: p["where"] for p in json.loads(out)["predicates"]}
    assert predicates == {"APP::Libc::Malloc": "size > 4096", "APP::Libc::Realloc": "size > 4096"}, predicates


@test
def mistakes_are_wrong_usage():
    "a predicate that is none, or of a field that an event lacks, ends with status 1 and says where"
    rc, _, err = run([PEM, "stat", "-e", "Malloc", "--where", "size >", "--", "true"])
    assert rc == 1 and "column 7" in err, (rc, err)
    rc, _, err = run([PEM, "record", "-e", "Malloc where sise > 3", "--", "true"])
    assert rc == 1 and "did you mean 'size'" in err, (rc, err)


run_all()
