# SPDX-License-Identifier: MIT
"""stream: queues of pem/stream.h in programs: C++, the example, and their events"""
import csv
import io
import os
import subprocess

from tap import BUILD, PEM, ROOT, equal, need, run, run_all, test, tmp

STREAM = BUILD + "/examples/stream"
PRIMES = "2262\n"  # below 20,000
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-I" + ROOT + "/spec/abi", "-I" + ROOT + "/libpem/include", "-I" + BUILD + "/gen"]

CXX = r"""#include <pem/stream.hpp>
#include <cstdio>
#include <thread>
struct point { double x; int n; };
int main()
{
	pem::stream<point> points("points", 7);
	if (!points.is_made())
		return 1;
	std::thread pushes([&] {
		pem_stream_stage("pushes");
		point batch[5] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}};
		for (int i = 0; i < 100; i++)
			points.push({1, i});
		while (points.try_push({0.5, 1}) == -EAGAIN)
			;
		for (std::size_t i = 0; i < 5;) {
			auto pushed = i < 2 ? points.try_push_many(batch + i, 2 - i) : points.push_many(batch + i, 5 - i);
			if (pushed < 0)
				break;
			i += (std::size_t)pushed;
		}
		points.close();
	});
	point one, some[3];
	double sum = 0;
	int n = 0;
	for (int i = 0; i < 50 && points.pop(one); i++)
		sum += one.x, n += one.n;
	for (int i = 0; i < 10;)
		if (!points.try_pop(one))
			sum += one.x, n += one.n, i++;
	for (std::ptrdiff_t count; (count = n % 2 ? points.pop_many(some, 3) : points.try_pop_many(some, 3)) >= 0;)
		while (count)
			sum += some[--count].x, n += some[count].n;
	pushes.join();
	std::printf("%g %d\n", sum, n);
}
"""


def in_cxx(compiler, *flags):
    need(compiler)
    folder = tmp()
    with open(folder + "/program.cc", "w", encoding="ascii") as out:
        out.write(CXX)
    rc, _, err = run([compiler, "-std=c++17", *FLAGS, *flags, "-o", folder + "/program", folder + "/program.cc", "-ldl", "-lpthread"])
    equal((rc, err), (0, ""), "compiler")
    equal(run([folder + "/program"]), (0, "115.5 4966\n", ""), "status, output, errors")


@test
def cxx_gcc():
    "the C++ queue passes all items with gcc, with exceptions and without"
    in_cxx("g++")
    in_cxx("g++", "-fno-exceptions", "-fno-rtti", "-Wconversion", "-Wshadow", "-Wpedantic")


@test
def cxx_clang():
    "the C++ queue passes all items with clang"
    in_cxx("clang++", "-Wpedantic", "-Wconversion", "-Wshadow")


@test
def files_of_a_program_share_the_memory():
    "two files of a program, one of them without counters, use the same queue, and the program shows one memory"
    need("gcc")
    folder = tmp()
    with open(folder + "/one.c", "w", encoding="ascii") as out:
        out.write("#include <pem/stream.h>\nvoid put(struct pem_stream *s, int v);\n"
                  "void put(struct pem_stream *s, int v)\n{\n\tpem_stream__push(s, &v);\n}\n")
    with open(folder + "/two.c", "w", encoding="ascii") as out:
        out.write("#include <pem/stream.h>\nvoid put(struct pem_stream *s, int v);\n"
                  "int main(void)\n{\n\tstruct pem_stream *s = pem_stream__make(\"s\", 4, sizeof(int));\n\tint v = 0;\n"
                  "\tput(s, 41);\n\treturn pem_stream__pop(s, &v) || v != 41 || s->side[0].count != 1;\n}\n")
    for flag in ("-DOBSERVED", "-DPEM_STREAM_UNOBSERVED"):
        rc, _, err = run(["gcc", "-std=gnu11", *FLAGS, flag, "-c", "-o", folder + "/one.o", folder + "/one.c"])
        equal((rc, err), (0, ""), "compiler")
        rc, _, err = run(["gcc", "-std=gnu11", *FLAGS, "-o", folder + "/both", folder + "/one.o", folder + "/two.c", "-ldl", "-lpthread"])
        equal((rc, err), (0, ""), "compiler")
        equal(run([folder + "/both"]), (0, "", ""), "status, output, errors")


@test
def example_alone():
    "the example runs without libpem, with which it is not linked"
    equal(run([STREAM]), (0, PRIMES, ""), "status, output, errors")
    out = subprocess.run(["readelf", "-d", STREAM], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert "libpem" not in out, out


def recorded(events):
    """Events of the example, by name, as rows."""
    trace = tmp() + "/trace"
    rc, out, err = run([PEM, "record", "-q", "--no-libc", "-e", events, "-o", trace, "--", STREAM, "2000"])
    equal((rc, out, err), (0, "303\n", ""), "record")
    rc, out, err = run([PEM, "export", "--to", "csv", "-o", "-", trace])
    equal((rc, err), (0, ""), "export")
    found = {}
    for row in csv.DictReader(io.StringIO(out)):
        found.setdefault(row["event"].rpartition(":")[2], []).append(row)
    return found


@test
def items_are_recorded():
    "each push and pop of the example is recorded, with its items and bytes"
    found = recorded("APP::Stream::Made,APP::Stream::Push,APP::Stream::Pop")
    queues = {row["queue"]: row for row in found["Made"]}
    equal(sorted((row["name"], row["capacity"], row["item_bytes"]) for row in queues.values()),
          [("numbers", "256", "4"), ("tested", "1024", "8")], "queues")
    for end in ("Push", "Pop"):
        sums = {name: [0, 0] for name in ("numbers", "tested")}
        for row in found[end]:
            of = sums[queues[row["queue"]]["name"]]
            of[0] += int(row["items"])
            of[1] += int(row["bytes"])
        equal(sums, {"numbers": [1998, 4 * 1998], "tested": [1998, 8 * 1998]}, end)


@test
def stages_and_blocks_are_recorded():
    "stages have their names, and each block of a thread ends"
    found = recorded("APP::Stream::BlockBegin,APP::Stream::BlockEnd,APP::Stream::StageBegin")
    equal(sorted(row["name"] for row in found["StageBegin"]), ["count", "generate", "test"], "stages")
    open_of = {}
    for row in sorted(found["BlockBegin"] + found["BlockEnd"], key=lambda row: int(row["time_ns"])):
        key = (row["queue"], row["end"])
        if row["event"].endswith("::BlockBegin"):
            assert key not in open_of, row
            open_of[key] = row
        else:
            del open_of[key]
    equal(open_of, {}, "blocks without an end")


run_all()
