# SPDX-License-Identifier: MIT
"""gen_agent: pem gen --agent: the program that it makes compiles for each spec, and counts what the report counts"""
import csv
import glob
import json
import os
import re
import shutil

from tap import BUILD, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

FLAGS = ["-I" + os.path.join(ROOT, "libpem/include"), "-I" + os.path.join(ROOT, "spec/abi")]
LIB = os.path.join(BUILD, "lib")
LINK = ["-L" + LIB, "-lpem", "-Wl,-rpath," + LIB] + (["-fsanitize=address,undefined"] if SAN else [])
SHOP = os.path.join(ROOT, "examples/shop.xml")


def made(spec, folder=None):
    folder = folder or tmp()
    rc, out, err = run([PEM, "gen", "--agent", "-o", folder, spec])
    equal((rc, err), (0, ""), "gen of " + spec)
    return folder, out


def compiled(folder, provider="shop"):
    need("gcc")
    program = os.path.join(folder, provider + "_agent")
    rc, _, err = run(["gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", program + ".c", "-o", program, *FLAGS, *LINK])
    equal((rc, err), (0, ""), "compiler")
    return program


def recorded():
    """A trace of the shop, which raises some of each event."""
    shop = os.path.join(BUILD, "examples/shop")
    if not os.path.exists(shop):
        skip("examples/shop is not built")
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", "APP::Shop::*", "-o", trace, "--", shop])
    equal(rc, 0, "status of record (stderr: %s)" % err)
    return trace


def cents_of(trace):
    """Sum of the sales' cents, by the exported records."""
    table = os.path.join(tmp(), "t.csv")
    equal(run([PEM, "export", "--to", "csv", "-o", table, trace])[0], 0, "status of export")
    with open(table, encoding="utf-8", newline="") as text:
        return sum(int(row["cents"]) for row in csv.DictReader(text) if row["event"] == "APP::Shop::Sale")


@test
def every_spec_of_the_tree():
    "for each spec of this tree the program and its header compile without a warning, as C11 and as C++17"
    need("gcc")
    need("g++")
    folder = tmp()
    for spec in sorted(glob.glob(os.path.join(ROOT, "spec/*/*.xml")) + glob.glob(os.path.join(ROOT, "examples/*.xml"))):
        made(spec, folder)
    programs = sorted(glob.glob(os.path.join(folder, "*_agent.c")))
    assert len(programs) > 30, programs
    warn = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", *FLAGS]
    equal(run(["gcc", "-std=c11", *warn, *programs])[::2], (0, ""), "as C")
    equal(run(["g++", "-x", "c++", "-std=c++17", *warn, *programs])[::2], (0, ""), "as C++")


@test
def it_counts_what_the_report_counts():
    "the program, as it is made, has the counts, sums and durations of pem report"
    trace = recorded()
    rc, out, err = run([compiled(made(SHOP)[0]), trace])
    equal((rc, err), (0, ""), "the agent")
    found = json.loads(run([PEM, "report", "--json", trace])[1])
    events = {e["name"]: e for e in found["per_event"]}
    sums = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("APP::")}
    equal({name: int(words[1]) for name, words in sums.items()}, {name: e["count"] for name, e in events.items()}, "counts")
    equal(sums["APP::Shop::Sale"][2:5], ["cents", str(cents_of(trace)), "cents"], "sum of cents")
    serve = [i for i in found["intervals"] if i["interval"].startswith("APP::Shop")]
    over = [line for line in out.splitlines() if line.startswith("  over")][0].split()
    equal(int(over[1]), sum(i["count"] for i in serve), "intervals")
    equal("%.6f" % (sum(i["total_ns"] for i in serve) / 1e9), over[2], "seconds in all")
    assert "missing" not in out, out


@test
def a_state_is_not_summed():
    "of a gauge and of a counter the program prints the last value, of other numbers the sum"
    folder = tmp()
    spec = os.path.join(folder, "tank.xml")
    event = ("<event name='APP::Tank::%s' description='d'><layerId value='APP'/><classId value='Tank'/>"
             "<specifier value='%s'/>%s<fields><field name='v' type='uint64' role='value'/></fields></event>")
    with open(spec, "w", encoding="utf-8") as text:
        text.write("<spec provider='tank' version='1'>" + "".join(event % (name, name, meaning and "<meaning value='%s'/>" % meaning)
                   for name, meaning in (("Level", "gauge"), ("Turns", "counter"), ("Drops", ""))) + "</spec>")
    made(spec, folder)
    program = compiled(folder, "tank")
    equal(run([PEM, "gen", "-q", "--lang", "c", "-o", folder, spec])[0], 0, "status of gen")
    source, binary = os.path.join(folder, "fill.c"), os.path.join(folder, "fill")
    with open(source, "w", encoding="utf-8") as text:
        text.write('#include "tank.h"\nint main(void) { for (int i = 1; i < 5; i++) { pem_notify_tank_level(10 - i); '
                   "pem_notify_tank_turns(i); pem_notify_tank_drops(i); } return 0; }\n")
    equal(run(["gcc", "-g", "-I" + folder, *FLAGS, source, "-o", binary, *LINK])[::2], (0, ""), "compiler")
    trace = os.path.join(folder, "trace")
    equal(run([PEM, "record", "-q", "-e", "APP::Tank::*", "-o", trace, "--", binary])[0], 0, "status of record")
    rc, out, err = run([program, trace])
    equal((rc, err), (0, ""), "the agent")
    equal({line.split()[0]: " ".join(line.split()[1:]) for line in out.splitlines()},
          {"APP::Tank::Level": "4 last v 6", "APP::Tank::Turns": "4 last v 4", "APP::Tank::Drops": "4 v 10"}, "printed")


@test
def handlers_get_values_and_context():
    "a handler that a person has written gets the values of each field, the process and the phase's duration"
    folder, _ = made(SHOP)
    path = os.path.join(folder, "shop_agent.c")
    with open(path, encoding="utf-8") as text:
        source = text.read()
    count = "	agent->shop_sale.count++;\n"
    source = source.replace(count, count + '	printf("sale %s %u %u %llu %s %u\\n", event->item, event->count, '
                            "event->payment, (unsigned long long)event->cents, around->process->name, around->thread->tid);\n", 1)
    over = "	add_duration(&agent->shop_serve_begin_done, ended);\n"
    source = source.replace(over, over + '	printf("served %u\\n", begin->customer);\n', 1)
    with open(path, "w", encoding="utf-8") as text:
        text.write(source)
    trace = recorded()
    out = run([compiled(folder), trace])[1]
    sales = [line.split() for line in out.splitlines() if line.startswith("sale ")]
    events = {e["name"]: e for e in json.loads(run([PEM, "report", "--json", trace])[1])["per_event"]}
    equal(len(sales), events["APP::Shop::Sale"]["count"], "sales")
    equal(sum(int(words[4]) for words in sales), cents_of(trace), "cents")
    equal({words[5] for words in sales}, {"shop"}, "processes")
    assert re.search(r"^served \d+$", out, re.MULTILINE), out


@test
def what_was_edited_stays():
    "made again, the header follows the spec, and the program that a person has edited stays as it is"
    folder, out = made(SHOP)
    assert "shop_trace.h" in out and "shop_agent.c" in out and "cc " in out, out
    paths = [os.path.join(folder, name) for name in ("shop_agent.c", "shop_trace.h")]
    for path in paths:
        with open(path, "w", encoding="utf-8") as text:
            text.write("mine\n")
    made(SHOP, folder)
    with open(paths[0], encoding="utf-8") as text:
        equal(text.read(), "mine\n", "the program")
    with open(paths[1], encoding="utf-8") as text:
        assert "shop_handlers" in text.read()


@test
def a_trace_of_another_version():
    "a trace whose event has other fields is refused with the field's name, and nothing is printed of it"
    folder = tmp()
    spec = os.path.join(folder, "shop.xml")
    with open(SHOP, encoding="utf-8") as text:
        changed = text.read().replace("name='count' type='uint32'", "name='count' type='uint64'")
    with open(spec, "w", encoding="utf-8") as text:
        text.write(changed)
    made(spec, folder)
    rc, out, err = run([compiled(folder), recorded()])
    equal((rc, out), (1, ""), "status and output")
    assert "APP::Shop::Sale is of another version" in err and "'count'" in err and "pem gen --agent" in err, err


@test
def not_a_trace():
    "a folder that is no trace is said to be none"
    rc, out, err = run([compiled(made(SHOP)[0]), tmp()])
    equal((rc, out), (1, ""), "status and output")
    assert err.strip(), "a reason"


@test
def wrong_use():
    "--agent has one language; a spec with a mistake makes nothing"
    rc, _, err = run([PEM, "gen", "--agent", "--lang", "python", SHOP])
    equal(rc, 1, "status")
    assert "--lang" in err, err
    folder = tmp()
    broken = os.path.join(folder, "broken.xml")
    shutil.copy(SHOP, broken)
    with open(broken, "a", encoding="utf-8") as text:
        text.write("<oops")
    equal(run([PEM, "gen", "--agent", "-o", folder, broken])[0], 1, "status of a broken spec")
    equal(os.listdir(folder), ["broken.xml"], "files")


run_all()
