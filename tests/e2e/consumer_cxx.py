# SPDX-License-Identifier: MIT
"""consumer_cxx: pem.hpp, compiled and run by each C++ compiler that is here"""
import os

from tap import BUILD, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

WANTED = 33  # what tests/programs/consumer.cpp reports


def consumer(compiler, *more):
    """Compile tests/programs/consumer.cpp and run it: every line of it is ok."""
    need(compiler)
    folder = tmp()
    program = folder + "/consumer"
    flags = ["-fsanitize=address,undefined"] if SAN else []
    rc, _, err = run([compiler, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror",
                      *flags, *more, "-I" + ROOT + "/spec/abi", "-I" + ROOT + "/libpem/include", "-I" + BUILD + "/gen",
                      ROOT + "/tests/programs/consumer.cpp", "-o", program, "-L" + BUILD + "/lib", "-lpem", "-ldl",
                      "-Wl,-rpath," + BUILD + "/lib"])
    equal(rc, 0, "exit status of %s, which said: %s" % (compiler, err[-3000:]))
    rc, out, err = run([program, folder + "/trace"])
    equal(rc, 0, "exit status, having said: " + err)
    bad = [line for line in out.splitlines() if line.startswith("not ok")]
    equal(bad, [], "what does not hold")
    equal(out.count("\nok ") + out.startswith("ok "), WANTED, "what holds")


@test
def consumer_gcc():
    "sessions, statistics, callbacks, errors and traces in C++17 by g++"
    consumer("g++")


@test
def consumer_clang():
    "the same by clang++"
    if SAN:
        skip("a library with gcc's sanitizers does not go with clang's")
    consumer("clang++")


run_all()
