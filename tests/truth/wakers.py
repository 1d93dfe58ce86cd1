# SPDX-License-Identifier: MIT
"""
wakers: who ends each wait, beside a program that knows it: 99.9 % of the waits are right, the others unknown, none wrong

Each of four threads waits for the one before it, in turn by a pipe, an event descriptor, a socket, a message queue, a
semaphore, a futex and a signal. Beside them two threads sleep, whom only timers wake, and two read /dev/zero, who wake
nobody.
"""
import json
import os

import probing
from tap import PEM, equal, need, run, run_all, test, tmp

LONG_S = 6
EVENTS = "OS::Syscall,OS::Sched::Switch,OS::Sched::Waking,OS::Sched::Wakeup,OS::Process"
RELAY = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RUNNERS 4
#define ROUNDS 400
#define KINDS 7

static int pipes[RUNNERS][2], events[RUNNERS], sockets[RUNNERS][2], words[RUNNERS];
static mqd_t queues[RUNNERS];
static sem_t semaphores[RUNNERS];
static pid_t tids[RUNNERS];
static volatile int over;

static void must(int is_right)
{
	if (!is_right)
		abort();
}

static void wake(int kind, int i)
{
	unsigned long long one = 1;

	switch (kind) {
	case 0: must(write(pipes[i][1], "x", 1) == 1); break;
	case 1: must(write(events[i], &one, 8) == 8); break;
	case 2: must(send(sockets[i][1], "x", 1, 0) == 1); break;
	case 3: must(mq_send(queues[i], "x", 1, 0) == 0); break;
	case 4: must(sem_post(&semaphores[i]) == 0); break;
	case 5:
		__atomic_store_n(&words[i], 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &words[i], FUTEX_WAKE, 1, NULL);
		break;
	default: must(tgkill(getpid(), tids[i], SIGUSR1) == 0);
	}
}

static void sleep_until_woken(int kind, int i)
{
	unsigned long long value;
	sigset_t set;
	char byte[64];

	switch (kind) {
	case 0: must(read(pipes[i][0], byte, 1) == 1); break;
	case 1: must(read(events[i], &value, 8) == 8); break;
	case 2: must(recv(sockets[i][0], byte, 1, 0) == 1); break;
	case 3: must(mq_receive(queues[i], byte, sizeof(byte), NULL) == 1); break;
	case 4:
		while (sem_wait(&semaphores[i]))
			must(errno == EINTR);
		break;
	case 5:
		while (!__atomic_exchange_n(&words[i], 0, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, &words[i], FUTEX_WAIT, 0, NULL);
		break;
	default:
		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		must(sigwaitinfo(&set, NULL) == SIGUSR1);
	}
}

static void *runs(void *number)
{
	int i = (int)(long)number, round, kind;

	tids[i] = gettid();
	for (kind = 0; kind < KINDS; kind++)
		for (round = 0; round < ROUNDS; round++) {
			if (i || round)
				sleep_until_woken(kind, i);
			if (i < RUNNERS - 1 || round < ROUNDS - 1)
				wake(kind, (i + 1) % RUNNERS);
			else if (kind < KINDS - 1)
				must(write(pipes[0][1], "y", 1) == 1);
			/* The next kind begins when the last runner of this one is through. */
			if (i == 0 && round == ROUNDS - 1 && kind < KINDS - 1) {
				char byte;

				must(read(pipes[0][0], &byte, 1) == 1);
			}
		}
	return NULL;
}

static void *sleeps(void *unused)
{
	while (!over)
		usleep(1000);
	return unused;
}

static void *reads(void *unused)
{
	static char bytes[2][1 << 16];
	FILE *zero = fopen("/dev/zero", "r");

	while (zero && !over && read(fileno(zero), bytes[(long)unused], sizeof(bytes[0])) > 0)
		;
	return NULL;
}

int main(void)
{
	pthread_t runners[RUNNERS], others[4];
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 64};
	sigset_t set;
	int i;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (i = 0; i < RUNNERS; i++) {
		char name[64];

		must(pipe(pipes[i]) == 0 && (events[i] = eventfd(0, 0)) >= 0);
		must(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[i]) == 0);
		snprintf(name, sizeof(name), "/pem-relay-%d-%d", (int)getpid(), i);
		queues[i] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
		must(queues[i] != (mqd_t)-1 && mq_unlink(name) == 0);
		must(sem_init(&semaphores[i], 0, 0) == 0);
	}
	for (i = 0; i < 4; i++)
		must(pthread_create(&others[i], NULL, i < 2 ? sleeps : reads, (void *)(long)(i & 1)) == 0);
	for (i = 0; i < RUNNERS; i++)
		must(pthread_create(&runners[i], NULL, runs, (void *)(long)i) == 0);
	for (i = 0; i < RUNNERS; i++)
		pthread_join(runners[i], NULL);
	over = 1;
	for (i = 0; i < 4; i++)
		pthread_join(others[i], NULL);
	for (i = 0; i < RUNNERS; i++)
		printf("%d %d\n", tids[i], tids[(i + RUNNERS - 1) % RUNNERS]);
	return 0;
}
""".replace("#include <errno.h>", "#include <errno.h>\n#include <fcntl.h>")
WAITS = {"OS::Syscall " + call for call in ("read", "recvfrom", "mq_timedreceive", "futex", "rt_sigtimedwait")}


def recorded():
    """The relay's threads, each with the one that wakes it; and the waits of its recording."""
    probing.here()
    need("gcc")
    folder = tmp()
    with open(folder + "/relay.c", "w", encoding="ascii") as out:
        out.write(RELAY)
    rc, _, err = run(["gcc", "-O1", "-pthread", "-o", folder + "/relay", folder + "/relay.c", "-lrt"])
    equal(rc, 0, err)
    rc, out, err = run([PEM, "record", "-q", "--no-libc", "--buffer", "128M", "-e", EVENTS, "-o", folder + "/trace", "--", folder + "/relay"])
    equal(rc, 0, "status of record (stderr: %s)" % err)
    rc, found, err = run([PEM, "report", "--json", folder + "/trace"])
    equal(rc, 0, "status of report (stderr: %s)" % err)
    return dict(tuple(map(int, line.split())) for line in out.splitlines()), json.loads(found)["waits"]


@test
def wakers_are_right_or_unknown():
    "waits for another thread by seven means name that thread, at most one of a thousand names none; sleeps name timers only"
    waker_of, waits = recorded()
    right = unknown = 0
    for wait in waits:
        if wait.get("tid") not in waker_of or wait.get("interval") not in WAITS:
            continue
        if "waker_tid" in wait:
            equal(wait["waker_tid"], waker_of[wait["tid"]], "who ended %r" % wait)
            right += wait["count"]
        else:
            assert wait.get("woken_by") in (None, "interrupt-or-fault"), wait
            unknown += wait["count"]
    print("# %d waits for another thread: %d right, %d unknown" % (right + unknown, right, unknown))
    assert right > 4000 and unknown <= 0.001 * (right + unknown), (right, unknown)
    sleeps = [wait for wait in waits if wait.get("interval") == "OS::Syscall clock_nanosleep"]
    equal([wait for wait in sleeps if "waker_tid" in wait or wait.get("woken_by") not in (None, "interrupt")], [], "sleeps that others ended")


run_all()
