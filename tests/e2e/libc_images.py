#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
A process that executes other programs faster than the recorder looks: its last image stays observed.

Not here: exec itself (libc_events.py), attaching (attach*.py).
"""
import os

from preload import STUBS, compile_program, need_preload
from tap import PEM, equal, run, run_all, test, tmp

# Each image raises events, so that it has a pool; all of them but the first come while the recorder is stopped.
SOURCE = r"""
#define _GNU_SOURCE
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static size_t files(const char *pattern)
{
	char path[4096];
	glob_t found;
	size_t count;

	snprintf(path, sizeof(path), pattern, getenv("PEM_RUNTIME_DIR"), getpid());
	count = glob(path, 0, NULL, &found) ? 0 : found.gl_pathc;
	globfree(&found);
	return count;
}
int main(int argc, char **argv)
{
	const struct timespec pause = { 0, 2000000 };
	char number[2] = "0";
	int i;

	free(malloc(argc));
	if (argc == 1)
		kill(getppid(), SIGSTOP);
	number[0] = argc == 1 ? '1' : argv[1][0] + 1;
	if (number[0] < '6')
		execl("/proc/self/exe", argv[0], number, NULL);
	printf("five pools or more: %d\n", files("%s/session-*/pool-%d-*") >= 5);
	kill(getppid(), SIGCONT);
	for (i = 0; i < 5000 && files("%s/session-*/pool-%d-*") > 1; i++)
		nanosleep(&pause, NULL);
	printf("%zu pool, %zu control file\n", files("%s/session-*/pool-%d-*"), files("%s/control-%d*"));
	for (i = 0; i < 1000; i++)
		free(malloc(i));
	return 0;
}"""


@test
def images_found_together():
    "of images that the recorder finds at once the last one keeps its control file, and all are accounted for"
    need_preload()
    path, folder = compile_program(SOURCE), tmp()
    os.mkdir(folder + "/runtime", 0o700)
    rc, out, err = run([PEM, "record", "-q", "-e", STUBS, "-o", folder + "/trace", "--", path], timeout=60,
                       env={"PEM_RUNTIME_DIR": folder + "/runtime"})
    equal((rc, out), (0, "five pools or more: 1\n1 pool, 1 control file\n"), "status and output, with " + err)
    rc, out, err = run([PEM, "report", folder + "/trace"])
    equal(rc, 0, "what pem report says of the balance, with " + out + err)


run_all()
