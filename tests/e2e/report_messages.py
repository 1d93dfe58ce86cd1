# SPDX-License-Identifier: MIT
"""report_messages: how long it took from sends to receives, of a real program that forks"""
import csv
import json
import os

from tap import PEM, equal, need, run, run_all, test, tmp
from trace_files import NO_CPU, USER, Trace

FORKS = """#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 20; i++) {
		if (!fork())
			_exit(0);
		wait(NULL);
	}
	return 0;
}
"""


@test
def forks_are_messages():
    "each fork is a message from the parent to the child, and the times are those that a script finds in the records"
    need("gcc")
    program = os.path.join(tmp(), "forks")
    with open(program + ".c", "w", encoding="ascii") as out:
        out.write(FORKS)
    equal(run(["gcc", "-o", program, program + ".c"])[0], 0, "gcc")
    trace, table = os.path.join(tmp(), "trace"), os.path.join(tmp(), "t.csv")
    rc, _, err = run([PEM, "record", "-q", "-e", "APP::Program::Fork,APP::Program::ForkChild", "-o", trace, "--", program])
    equal(rc, 0, err)
    equal(run([PEM, "export", "--to", "csv", "-o", table, trace])[0], 0, "export")
    sent, arrived = {}, {}
    with open(table, encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            if row["event"] == "APP::Program::Fork":
                sent[int(row["child"])] = int(row["time_ns"])
            elif row["event"] == "APP::Program::ForkChild":
                arrived[int(row["pid"])] = int(row["time_ns"])
    took = [max(0, arrived[pid] - sent[pid]) for pid in sent if pid in arrived]
    equal(len(took), 20, "forks with both ends")
    found = json.loads(run([PEM, "report", "--json", trace])[1])["messages"]
    equal([(m["send"], m["receive"], m["count"]) for m in found], [("APP::Program::Fork", "APP::Program::ForkChild", 20)], "messages")
    equal((found[0]["total_ns"], found[0]["longest_ns"]), (sum(took), max(took)), "total and longest")
    half = sorted(took)[9]
    assert abs(found[0]["p50_ns"] - half) <= 0.008 * half, (half, found[0])
    text = run([PEM, "report", "--by", "message", trace])[1]
    assert "APP::Program::Fork, APP::Program::ForkChild" in text and "LONGEST" in text, text


def under_way(ns):
    """What the report says of one message that took so long, by a clock that begins at 0."""
    t = Trace(start_clock=0, clock_hz=10 ** 9)
    send = t.event("APP::T::Send", "send", [("number", "uint64", "key")], group="APP::T", scope="system")
    got = t.event("APP::T::Got", "receive", [("number", "uint64", "key")], group="APP::T", scope="system")
    t.records.append((0, send, (7).to_bytes(8, "little"), (USER, 7, 7, NO_CPU)))
    t.records.append((ns, got, (7).to_bytes(8, "little"), (USER, 8, 8, NO_CPU)))
    folder = os.path.join(tmp(), "trace")
    t.write(folder)
    rc, out, err = run([PEM, "report", "--json", folder])
    equal(rc, 0, err)
    (row,) = json.loads(out)["messages"]
    return row


@test
def the_longest_time_there_is():
    "a message that took as long as 64 bits of nanoseconds can say has a row, too"
    for ns in (1, 2 ** 63, 2 ** 64 - 16, 2 ** 64 - 1):
        row = under_way(ns)
        equal((row["count"], row["longest_ns"], row["p50_ns"]), (1, ns, ns), "the message of %d ns" % ns)


@test
def more_kinds_than_rows():
    "of more kinds of messages than there are rows for, the first ones have rows and the rest is counted"
    t = Trace(duration_ns=10 ** 9)
    sends = [t.event("APP::T::Send%d" % i, "send", [("number", "uint64", "key")], group="APP::T", scope="system") for i in range(40)]
    gots = [t.event("APP::T::Got%d" % i, "receive", [("number", "uint64", "key")], group="APP::T", scope="system") for i in range(40)]
    for i in range(1600):
        t.add(sends[i % 40], i * 1000, [i], pid=7)
        t.add(gots[i // 40], i * 1000 + 100, [i], pid=8)
    folder = os.path.join(tmp(), "trace")
    t.write(folder)
    equal(len(json.loads(run([PEM, "report", "--json", folder])[1])["messages"]), 1024, "rows")
    text = run([PEM, "report", "--by", "message", folder])[1]
    assert "and 576 messages between more kinds of sends and receives" in text, text[-600:]


@test
def no_messages():
    "a trace without messages has no such table"
    trace = os.path.join(tmp(), "trace")
    equal(run([PEM, "record", "-q", "-e", "APP::Libc::Malloc", "-o", trace, "--", "true"])[0], 0, "record")
    assert "Messages" not in run([PEM, "report", trace])[1]
    equal(json.loads(run([PEM, "report", "--json", trace])[1])["messages"], [], "messages")


run_all()
