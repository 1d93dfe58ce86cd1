# SPDX-License-Identifier: MIT
"""cli_where: predicates on the command line, --where and -e 'PATTERN where PREDICATE'"""
import json
import os

from preload import compile_program, need_preload
from tap import PEM, equal, run, run_all, test, tmp


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


ALLOCATES = """
#include <stdlib.h>
int main(void)
{
    void *volatile memory;

    for (int i = 0; i < 100; i++) {
        memory = malloc(1000000 + i);
        free(memory);
    }
    return 0;
}
"""


@test
def several_patterns_of_one_event():
    "of an event that several patterns name all is taken that one of them asks for, whatever their order"
    need_preload()
    program = compile_program(ALLOCATES)

    def count(patterns, *options):
        rc, out, err = run([PEM, "stat", "-q", "--json", *options, "-e", patterns, "--", program])
        equal(rc, 0, "status: " + err)
        return [e["count"] for e in json.loads(out[out.index("{"):])["events"] if e["name"] == "APP::Libc::Malloc"]

    few, large = "Malloc where size == 1000005", "Malloc where size >= 1000090"
    everything, = count("Malloc")
    assert everything >= 100, everything
    equal(count(few), [1], "of one")
    equal([count(few + ",Malloc"), count("Malloc," + few), count("APP::Libc::*," + few)], 3 * [[everything]], "beside all")
    equal([count(few + "," + large), count(large + "," + few), count(few + "," + few)], [[11], [11], [1]], "of two")
    equal(count(few + ",Malloc", "--where", "size >= 1000090"), [11], "beside one of all events")
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "-e", few + "," + large, "--", program])
    equal(rc, 0, "status of record: " + err)
    found = json.loads(run([PEM, "report", "--json", trace])[1])
    equal((found["events"]["delivered"], found["predicates"]),
          (11, [{"event": "APP::Libc::Malloc", "where": "(size == 1000005) || (size >= 1000090)"}]), "records, and what they passed")


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
