# SPDX-License-Identifier: MIT
"""lane_memory: what a thread counted stays counted when the next one finds no memory for its lane"""
import json

from preload import compile_program, need_preload
from tap import PEM, equal, run, run_all, test, tmp

# A second thread takes the lane of the first one, which has ended; the kernel then refuses to make memory exist beforehand.
PROGRAM = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void *allocate(void *argument)
{
	for (int i = 0; i < 1000; i++)
		free(malloc(12345));
	return argument;
}

static void run_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, allocate, NULL);
	pthread_join(thread, NULL);
}

int main(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23 /* MADV_POPULATE_WRITE */, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	run_thread();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 77;
	run_thread();
	return 0;
}
"""


@test
def counts_of_a_lane_without_memory():
    "a trace balances when a thread finds no memory for a lane that another had"
    need_preload()
    trace = tmp() + "/t"
    rc, _, err = run([PEM, "record", "-q", "-e", "APP::Libc::*", "-o", trace, "--", compile_program(PROGRAM)])
    equal(rc, 0, "exit status, with " + err)
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of pem report, which said: " + err)
    count = next(e for e in json.loads(out)["per_event"] if e["name"] == "APP::Libc::Malloc")["balance"]
    equal(count["produced"], count["delivered"] + count["discarded"], "events produced")
    assert count["delivered"] >= 1000, "the first thread's events were lost: %r" % count


run_all()
