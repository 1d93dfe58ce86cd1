# SPDX-License-Identifier: MIT
"""
header_examples: the examples at the head of the public headers, compiled as they stand there, and run
"""
import os
import re

from tap import BUILD, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

PROGRAM = """#include <pem/pem.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	char **command = argv + 1, *directory = argv[1];
	struct pem_error error;
	int status = 0;
	(void)argc, (void)command, (void)directory, (void)error, (void)status;
	{
%s	}
	return 0;
}
"""


def example(header, *arguments):
    """What the example of a header prints."""
    need("cc")
    if SAN:
        skip("the plain build tries it")
    with open("%s/libpem/include/pem/%s" % (ROOT, header), encoding="utf-8") as text:
        overview = re.match(r".*?\*/\s*(/\*.*?\*/)", text.read(), re.DOTALL)[1]
    lines = re.findall(r"^ \*(?:\t(.*))?$", overview.split("\n\n")[0], re.MULTILINE)
    body = "".join("\t%s\n" % line for line in lines)
    assert "pem_" in body, overview
    folder = tmp()
    with open(folder + "/example.c", "w", encoding="utf-8") as f:
        f.write(PROGRAM % body)
    rc, _, err = run(["cc", "-Wall", "-Wextra", "-Werror", "-I" + ROOT + "/libpem/include", "-I" + ROOT + "/spec/abi", "example.c",
                      "-o", "example", "-L" + BUILD + "/lib", "-lpem", "-Wl,-rpath," + BUILD + "/lib"], cwd=folder)
    equal((rc, err), (0, ""), "cc")
    rc, out, err = run([folder + "/example", *arguments])
    equal(rc, 0, "status, with " + err)
    return out


@test
def counts_of_a_command():
    "pem.h: the files that a command opens are counted"
    out = example("pem.h", "cat", "/dev/null", "/dev/null")
    assert re.fullmatch(r"[2-9] files opened\n", out), out


@test
def records_of_a_trace():
    "trace.h: each record of a trace is named"
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-e", "APP::File::Open", "-o", trace, "--", "cat", "/dev/null"])
    equal(rc, 0, "record, which said " + err)
    out = example("trace.h", trace)
    assert re.search(r"^\d+ ns: APP::File::Open$", out, re.MULTILINE), out


@test
def events_of_a_model():
    "model.h: the events of the catalogue are named"
    out = example("model.h")
    assert "OS::Sched::Switch\n" in out and "APP::File::Open\n" in out, out


run_all()
