# SPDX-License-Identifier: MIT
"""
process_threads.py - threads that come and go, events inside events, libraries that come and go
"""
import os
from collections import Counter

from preload import compile_program, need_preload
from probe_trace import PROGRAMS, check_balance, check_complete, program, record, streams, ticks
from tap import PEM, equal, need, run, run_all, test, tmp

LONG_S = 12


@test
def many_short_threads():
    "500 short threads lose nothing, and take as many streams as were alive at once"
    trace, raised = record(tmp(), program("threads", "short", 200, 500))
    equal(len(raised), 500, "threads")
    check_complete(trace, raised)
    # Four at a time; a fifth may begin before the one that was joined gave its lane back.
    assert len(streams(trace)) <= 8, "streams: %r" % streams(trace)


@test
def thousands_at_once():
    "a buffer with as many chunks again as threads keeps what 3,000 threads raise that all live at once"
    trace, raised = record(tmp(), program("threads", "crowd", 20, 3000), "--buffer", "64M")
    equal(len(raised), 3000, "threads")
    check_complete(trace, raised)


@test
def several_recording_threads():
    "several threads of the recorder move what 200 threads raise at full speed: all of it, each thread's in order"
    trace, raised = record(tmp(), program("threads", "crowd", 5000, 200), "--buffer", "256M", "--drain-threads", "4")
    equal(len(raised), 200, "threads")
    check_complete(trace, raised)


@test
def ticks_of_destructors():
    "events raised by a thread's destructors are not lost"
    trace, raised = record(tmp(), program("threads", "late", 300))
    check_complete(trace, raised)


CROWD = r"""
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t all;
static void *work(void *arg)
{
	free(malloc(10));
	pthread_barrier_wait(&all);
	return arg;
}
int main(void)
{
	pthread_t threads[200];
	int i;

	pthread_barrier_init(&all, NULL, 200);
	for (i = 0; i < 200; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (i = 0; i < 200; i++)
		pthread_join(threads[i], NULL);
	return 0;
}"""


@test
def calls_of_many_threads():
    "what a new thread asks of the kernel does not grow with the threads that are there"
    need_preload()
    need("strace")
    folder, crowd = tmp(), compile_program(CROWD)
    rc, _, err = run(["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=tgkill,madvise", "-e", "signal=none", "-o",
                      folder + "/calls", PEM, "record", "-q", "-e", "APP::Libc::Malloc", "-o", folder + "/trace", "--", crowd],
                     timeout=60)
    equal(rc, 0, "exit status, with " + err)
    with open(folder + "/calls", encoding="utf-8") as file:
        calls = Counter(line.split()[1].split("(")[0] for line in file)
    assert calls["tgkill"] < 200 * 12, calls
    assert calls["madvise"] < 200 * 3, calls


@test
def events_inside_events():
    "events of signal handlers in the middle of events are delivered, or counted as discarded"
    trace, raised = record(tmp(), program("threads", "signals", 300000), "--buffer", "64M")
    told = Counter()
    for (_, _, who), count in raised.items():
        told[who] += count
    assert told[1] > 20, "the timer hardly ran: %r" % told
    check_balance(trace, sum(told.values()))
    for (_, _, who), numbers in ticks(trace).items():
        assert len(set(numbers)) == len(numbers) <= told[who], "raiser %d: %d of %d, some twice" % (
            who, len(numbers), told[who])
        equal(numbers, sorted(numbers), "order of raiser %d" % who)


def libraries(times):
    trace, raised = record(tmp(), program("threads", "libraries", 10, os.path.join(PROGRAMS, "library.so"), times))
    check_complete(trace, raised)


@test
def library_and_program():
    "a library with the same events as the program shares their books"
    libraries(1)


@test
def library_comes_and_goes():
    "an instrumented library may be loaded and unloaded any number of times"
    libraries(700)


run_all()
