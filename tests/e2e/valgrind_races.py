# SPDX-License-Identifier: MIT
"""valgrind_races: helgrind and drd with libpem/valgrind.supp report a program's own races, and none in its stubs"""
import os
import re

from preload import compile_program
from tap import BUILD, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

LONG_S = 7

RACY = r"""
#include "shop.h"
#include <pthread.h>
static int racy;
static void *run(void *given)
{
	int i;

	for (i = 0; i < 2000; i++)
		pem_notify_shop_serve_begin((uint32_t)i);
	racy++;
	return given;
}
int main(void)
{
	pthread_t threads[3];
	int round, i;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3; i++)
			pthread_create(&threads[i], 0, run, 0);
		for (i = 0; i < 3; i++)
			pthread_join(threads[i], 0);
	}
	return 0;
}
"""


@test
def stubs_are_told_from_the_program():
    "events of inlined and of separate stubs, logged and counted, are no report; the program's race is one"
    need("valgrind")
    if SAN:
        skip("a sanitized library does not run in Valgrind")
    if not os.path.exists(BUILD + "/gen/examples/shop.h"):
        skip("the examples' stubs are not made")
    include = ["-I" + ROOT + "/spec/abi", "-I" + ROOT + "/libpem/include", "-I" + BUILD + "/gen/examples", "-ldl"]
    for optimized in "-O0", "-O2":
        program = compile_program(RACY, flags=[*include, optimized])
        for tool, verb in (("helgrind", "record"), ("drd", "record"), ("helgrind", "stat")):
            rc, _, err = run([PEM, verb, "-q", "-o", tmp() + "/out", "-e", "APP::Shop::*", "--", "valgrind", "-q", "--tool=" + tool,
                              "--suppressions=" + ROOT + "/libpem/valgrind.supp", program], env={"PEM_SPEC_PATH": ROOT + "/examples"})
            equal(rc, 0, "status: " + err)
            places = re.findall(r"(?:data race|Conflicting) .*\n(?:==\d+== Locks held.*\n)?==\d+==    at \S+ (\w+)", err)
            equal(set(places), {"run"}, "functions with races, by %s, %s, %s" % (tool, verb, optimized))


run_all()
