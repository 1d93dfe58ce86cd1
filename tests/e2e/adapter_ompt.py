#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
OpenMP programs under libpem-ompt.so: regions, tasks, locks and waits as the runtime reports them.

Not here: Fortran and devices.
"""
import collections
import os
import shutil

from preload import compile_program, count, record
from tap import BUILD, equal, run, run_all, skip, test

PROGRAM = r"""
#include <omp.h>
#include <stdio.h>
int main(void)
{
	long sum = 0, hits = 0;
	omp_set_num_threads(3);
	omp_lock_t l; omp_init_lock(&l);
#pragma omp parallel for reduction(+ : sum)
	for (int i = 0; i < 1000; i++)
		sum += i;
#pragma omp parallel
	{
#pragma omp single
		for (int i = 0; i < 10; i++)
#pragma omp task
		{
			omp_set_lock(&l);
			hits++;
			omp_unset_lock(&l);
		}
#pragma omp barrier
#pragma omp critical
		hits += 100;
	}
	omp_destroy_lock(&l);
	printf("%ld %ld\n", sum, hits);
	return 0;
}
"""


def need_adapter():
    if not os.path.exists(BUILD + "/lib/libpem-ompt.so"):
        skip("libpem-ompt.so is not built: omp-tools.h is missing (libomp-dev)")
    if not shutil.which("clang"):
        skip("clang is not installed, whose OpenMP runtime has a tools interface")


@test
def regions_tasks_and_locks():
    "a program with clang's OpenMP shows its regions, tasks, locks and waits, and prints the same"
    need_adapter()
    path = compile_program(PROGRAM, compiler="clang", flags=["-fopenmp"])
    alone = run([path])
    out, events = record([path], "APP::Omp::*")
    equal((0, out, ""), alone, "what it does")
    kinds = collections.Counter(e["event"].split("::")[2] for e in events)
    equal((kinds["ParallelBegin"], kinds["ParallelEnd"]), (2, 2), "regions")
    equal((kinds["TaskCreate"], kinds["TaskStart"]), (10, 10), "tasks")
    equal(sorted(e["task"] for e in events if e["event"] == "APP::Omp::TaskCreate"),
          sorted(e["task"] for e in events if e["event"] == "APP::Omp::TaskStart"), "each starts once")
    equal(count(events, "APP::Omp::ParallelBegin", requested=3), 2, "threads asked for")
    equal((kinds["MutexWaitBegin"], kinds["MutexWaitEnd"], kinds["MutexRelease"]), (13, 13, 13), "locks")
    equal((kinds["LockCreate"], kinds["LockDestroy"]), (1, 1), "the lock's life")
    equal(len({e["tid"] for e in events if e["event"] == "APP::Omp::ImplicitTaskBegin"}), 3, "threads")
    for name in "Work Sync SyncWait ImplicitTask Thread".split():
        assert kinds[name + "Begin"] == kinds[name + "End"] > 0, (name, kinds)
    loops = [e for e in events if e["event"] == "APP::Omp::WorkBegin" and e["count"] == "1000"]
    equal(len(loops), 3, "threads that come to the loop")


@test
def the_users_own_tool_stays():
    "OMP_TOOL_LIBRARIES of the user is left as it is"
    need_adapter()
    out, _ = record(["sh", "-c", "echo $OMP_TOOL_LIBRARIES"], "APP::Omp::*", env={"OMP_TOOL_LIBRARIES": "/none.so"})
    equal(out, "/none.so\n", "the variable")
    out, _ = record(["sh", "-c", "echo $OMP_TOOL_LIBRARIES"], "APP::Omp::*", env={"OMP_TOOL_LIBRARIES": None})
    equal(os.path.realpath(out.strip()), os.path.realpath(BUILD + "/lib/libpem-ompt.so"), "the variable")


@test
def gnu_runtime_is_silent():
    "a program with gcc's OpenMP, which has no tools interface, runs the same and shows nothing"
    need_adapter()
    if not shutil.which("gcc"):
        skip("gcc is not installed")
    path = compile_program(PROGRAM, compiler="gcc", flags=["-fopenmp"])
    out, events = record([path], "APP::Omp::*")
    equal((out, len(events)), ("499500 310\n", 0), "output and events")


@test
def without_libpem_it_does_not_watch():
    "the adapter in a process without libpem's session leaves the runtime unwatched"
    need_adapter()
    path = compile_program(PROGRAM, compiler="clang", flags=["-fopenmp"])
    equal(run([path], env={"OMP_TOOL_LIBRARIES": BUILD + "/lib/libpem-ompt.so"}), (0, "499500 310\n", ""), "what it does")


run_all()
