# SPDX-License-Identifier: MIT
"""report_messages: how long it took from sends to receives, of a real program that forks"""
import csv
import json
import os

from tap import PEM, equal, need, run, run_all, test, tmp

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
    assert half <= found[0]["half_ns"] <= max(half * 1.031 + 1, 1), (half, found[0])
    text = run([PEM, "report", "--by", "message", trace])[1]
    assert "APP::Program::Fork, APP::Program::ForkChild" in text and "LONGEST" in text, text


@test
def no_messages():
    "a trace without messages has no such table"
    trace = os.path.join(tmp(), "trace")
    equal(run([PEM, "record", "-q", "-e", "APP::Libc::Malloc", "-o", trace, "--", "true"])[0], 0, "record")
    assert "Messages" not in run([PEM, "report", trace])[1]
    equal(json.loads(run([PEM, "report", "--json", trace])[1])["messages"], [], "messages")


run_all()
