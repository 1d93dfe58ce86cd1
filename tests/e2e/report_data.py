# SPDX-License-Identifier: MIT
"""report_data: which data structures samples of data fell in"""
import json
import os
import shutil
import subprocess

from tap import PEM, equal, need, run, run_all, skip, test, tmp

# Each array is walked in an order that no cache foresees: b half as often as a, the variable as often as b.
PROGRAM = """#include <pthread.h>
#include <stdlib.h>
#define WORDS (1u << 20)
long table[WORDS];
static __thread long own[64];
static __attribute__((noinline)) long *make_a(void)
{
	long *block = calloc(WORDS, sizeof(long));
	__asm__ volatile("" : "+r"(block));
	return block;
}
static __attribute__((noinline)) long *make_b(void)
{
	long *block = malloc(WORDS * sizeof(long));
	__asm__ volatile("" : "+r"(block));
	return block;
}
static __attribute__((noinline)) void walk(volatile long *data, unsigned words, unsigned steps)
{
	unsigned x = 1, i;

	for (i = 0; i < steps; i++) {
		x = x * 1664525u + 1013904223u;
		data[(x >> 8) % words] += i;
	}
}
static void *on_stack(void *arg)
{
	volatile long data[4096] = {0};

	walk(data, 4096, 1u << 23);
	return arg;
}
int main(void)
{
	long *a = make_a(), *b = make_b(), i;
	pthread_t thread;

	/* First: what is sampled shortly before the end has no address. */
	pthread_create(&thread, NULL, on_stack, NULL);
	pthread_join(thread, NULL);
	for (i = 0; i < 6; i++) {
		walk(a, WORDS, 1u << 22);
		walk(b, WORDS, 1u << 21);
		walk(table, WORDS, 1u << 21);
	}
	free(a);
	free(b);
	return own[1];
}
"""
LEAST = 60 # samples with an address, to tell shares


def built(name, source):
    need("gcc")
    path = os.path.join(tmp(), name)
    with open(path + ".c", "w", encoding="ascii") as out:
        out.write(source)
    rc, _, err = run(["gcc", "-g", "-O1", "-pthread", "-o", path, path + ".c"])
    equal(rc, 0, err)
    return path


def recorded(*words):
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "--mem", "-F", "997", "-e", "DataSample", "-o", trace, *words])
    if rc == 2 or "can't be had" in err:
        skip("not recorded here: " + err.strip().splitlines()[-1])
    equal(rc, 0, "status of record (stderr: %s)" % err)
    return trace


def rows_of(trace):
    rc, out, err = run([PEM, "report", "--by", "data", "--json", trace])
    equal(rc, 0, "status (stderr: %s)" % err)
    rows = json.loads(out)["data"]
    total = sum(row["count"] for row in rows)
    if total < LEAST:
        skip("only %d samples" % total)
    assert sum(row["count"] for row in rows if row["kind"] != "none") > total / 4, rows
    return rows


def share(rows, **wanted):
    """The share of samples with an address in the rows that have these members."""
    found = sum(row["count"] for row in rows if row["kind"] != "none")
    return sum(row["count"] for row in rows if all(row.get(key) == value for key, value in wanted.items())) / found


@test
def data_structures_are_named():
    "two blocks by who allocated them, a variable and a thread's stack have their names, and about the shares that the program gave them"
    trace = recorded("--", built("structures", PROGRAM))
    rows = rows_of(trace)
    total = sum(row["count"] for row in rows)
    equal({row["of"] for row in rows}, {total}, "samples in all")
    a = share(rows, kind="heap", data="make_a", event="APP::Libc::Calloc")
    b = share(rows, kind="heap", data="make_b", event="APP::Libc::Malloc")
    variable = share(rows, kind="variable", data="table")
    stack = share(rows, kind="stack")
    assert a + b + variable + stack > 0.9, rows
    assert 0.2 < a < 0.8 and 0.05 < b < 0.5 and 0.05 < variable < 0.5 and stack > 0, rows
    assert a > b, rows
    line = [row for row in rows if row.get("data") == "make_a"][0]["from"]
    assert line.startswith("structures.c:"), line
    for row in rows:
        assert row["loads"] + row["stores"] <= row["count"], row
        equal(row["sources"], {}, "sources that no processor told")
    text = run([PEM, "report", "--by", "data", trace])[1]
    assert any(" heap " in line and " make_a " in line for line in text.splitlines()), text
    assert "approximate" in text, text


@test
def threads_have_stacks_of_their_own():
    "what a thread does on its stack is told as that thread's"
    rows = rows_of(recorded("--", built("structures", PROGRAM)))
    stacks = [row for row in rows if row["kind"] == "stack"]
    most = max(stacks, key=lambda row: row["count"])
    assert most["tid"] != most["pid"], stacks


@test
def a_block_is_its_allocation_s_of_that_time():
    "memory that is released and allocated again elsewhere belongs to whoever had it at the sample's time"
    program = built("again", PROGRAM.replace("walk(b, WORDS, 1u << 21);", "free(a); free(b); a = make_a(); b = make_b();")
                    .replace("walk(table, WORDS, 1u << 21);", "walk(b, WORDS, 1u << 22);"))
    rows = rows_of(recorded("--", program))
    assert 0.1 < share(rows, data="make_a") < 0.9 and 0.1 < share(rows, data="make_b") < 0.9, rows


@test
def without_what_names_them_memory_is_anonymous():
    "of a program without pem in it, blocks are of no allocation"
    rows = rows_of(recorded("--no-libc", "--", built("structures", PROGRAM)))
    equal([row for row in rows if row["kind"] == "heap"], [], "blocks")
    assert share(rows, kind="mapping", data="[anon]") > 0.3, rows


@test
def a_program_of_others():
    "sqlite3, which nobody here wrote: its samples fall in what it allocated, most of them"
    need("sqlite3")
    trace = recorded("--", shutil.which("sqlite3"), ":memory:",
                     "with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) "
                     "select count(distinct i * 7919 % 100003) from n")
    rows = rows_of(trace)
    assert share(rows, kind="heap") > 0.2, rows
    assert share(rows, kind="unknown") < 0.3, rows


@test
def a_program_that_runs_already():
    "a program that is attached to: its variables and stacks are found by what it has mapped"
    program = built("forever", PROGRAM.replace("i < 6", "i < 6000"))
    trace = os.path.join(tmp(), "trace")
    with subprocess.Popen([program]) as child:
        try:
            rc, _, err = run(["timeout", "--signal=INT", "1.5", PEM, "record", "-q", "--mem", "-F", "997", "-e", "DataSample", "--no-libc", "-o",
                              trace, "-p", str(child.pid)])
        finally:
            child.kill()
    if rc == 2 or "can't be had" in err:
        skip("not recorded here: " + err.strip().splitlines()[-1])
    rows = rows_of(trace)
    assert share(rows, kind="unknown") < 0.1, rows


@test
def a_trace_without_samples_says_so():
    "a trace without samples of data says how to have them"
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", "APP::Libc::Malloc", "-o", trace, "--", "true"])
    equal(rc, 0, err)
    rc, out, err = run([PEM, "report", "--by", "data", trace])
    equal(rc, 0, err)
    assert "pem record --mem" in out, out


@test
def the_rate_is_that_of_data():
    "-F with --mem adds no samples of the CPU"
    trace = recorded("--", built("structures", PROGRAM))
    out = run([PEM, "report", "--json", trace])[1]
    names = {event["name"] for event in json.loads(out)["per_event"]}
    assert "HW::HWPerf::DataSample" in names and "HW::HWPerf::HPMsAndPC" not in names, names


run_all()
