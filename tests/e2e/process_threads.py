# SPDX-License-Identifier: MIT
"""
process_threads.py - threads that come and go, events inside events, libraries that come and go
"""
import os
from collections import Counter

from probe_trace import PROGRAMS, check_balance, check_complete, program, record, streams, ticks
from tap import equal, run_all, test, tmp


@test
def many_short_threads():
    "500 short threads lose nothing, and take as many streams as were alive at once"
    trace, raised = record(tmp(), program("threads", "short", 200, 500))
    equal(len(raised), 500, "threads")
    check_complete(trace, raised)
    # Four at a time; a fifth may begin before the one that was joined gave its lane back.
    assert len(streams(trace)) <= 8, "streams: %r" % streams(trace)


@test
def ticks_of_destructors():
    "events raised by a thread's destructors are not lost"
    trace, raised = record(tmp(), program("threads", "late", 300))
    check_complete(trace, raised)


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
