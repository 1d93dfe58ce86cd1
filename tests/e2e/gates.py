# SPDX-License-Identifier: MIT
"""gates: statistics 'inside' an interval and 'from' one event 'to' another, exact for programs of known truth"""
import json
import os
import sys

from talk import Talk
from tap import BUILD, CODEGEN, PEM, ROOT, SAN, equal, run, run_all, skip, start, test, tmp

GATED = os.path.join(BUILD, "programs", "gated")
BEGIN, END, OPEN, CLOSE = ("APP::Gated::" + name for name in ("Begin", "End", "Open", "Close"))
INSIDE, OUTSIDE = "inside APP::Gated::Span", "!inside APP::Gated::Span"
ABSENT = "inside APP::Collector::PauseBegin"
DOOR = "from %s to %s per process" % (OPEN, CLOSE)
STEP, FAULT = "APP::Gated::Step", "OS::Mem::PageFault"
REGION = "address >= 0x200000000000 && address < 0x2000186a0000 && "
HANDLER = "bsse"


def api():
    """The module pemapi, in this very process."""
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    if "pemapi" not in sys.modules:
        folder = tmp()
        equal(run([CODEGEN, "--backend", "python", "-o", folder, ROOT + "/tests/programs/gated.xml"])[0], 0, "pem-codegen")
        sys.path[:0] = [os.path.join(BUILD, "python"), folder]
    import pemapi
    import pem_gated  # noqa: F401 - so that the session knows the program's events
    return pemapi


def truth(script, rounds=1):
    """(steps inside, steps outside, faults inside, faults outside) of a thread that follows the script alone."""
    counts, depth = [0, 0, 0, 0], 0
    for c in (script * rounds).replace("k", HANDLER):
        depth += {"b": 1, "e": -1 if depth else 0}.get(c, 0)
        if c in "st":
            counts[2 * (c == "t") + (depth == 0)] += 1
    return counts


def statistics(session, *wheres):
    handles = [session.statistics(session.events(event, where=where)) for event, where in wheres]
    for handle in handles:
        handle.enable()
    return handles


def counted(wheres, command, signs=0, **options):
    """
    [(count, undecided)] of each statistic over a whole run, and what the program printed. signs: so many threads write a
    dot and wait for a byte. They go on when the session has found the process: reading a statistic looks for it.
    """
    pemapi = api()
    with pemapi.Session() as session, Talk() as talk:
        handles = statistics(session, *wheres)
        talk.run(session, command, **options)
        equal(talk.out.read(signs), "." * signs, "signs of life")
        handles[0].read()
        talk.answer("." * signs)
        session.wait()
        values = [handle.read()[0] for handle in handles]
        if any(v.unavailable for v in values):
            skip("no page faults here: " + next(v.unavailable for v in values if v.unavailable))
        return [(v.count, v.undecided) for v in values], talk.out.read()


@test
def threads_exact():
    "eight threads: each step counts by its own thread's interval, nested ones included, and none is undecided"
    script = "sbsbssesessbeesbses"
    inside, outside, _, _ = truth(script, 500)
    got, _ = counted([(STEP, INSIDE), (STEP, OUTSIDE), (STEP, None), (STEP, INSIDE + " && number == 3")],
                     [GATED, "8", "500", script])
    equal(got, [(8 * inside, 0), (8 * outside, 0), (8 * (inside + outside), 0), (inside, 0)], "steps")


@test
def process_exact():
    "a door of the process: steps of all threads count while it is open, whichever thread opened it"
    got, _ = counted([(STEP, DOOR), (STEP, "!" + DOOR)], [GATED, "6", "50", "s|o|ss|c|s|"])
    equal(got, [(6 * 50 * 2, 0), (6 * 50 * 2, 0)], "steps")


@test
def ends_count_as_in_a_trace():
    "the event that opens is outside, and the one that closes inside: what comes after the first, up to the second"
    got, _ = counted([(BEGIN, INSIDE), (END, INSIDE), (OPEN, DOOR), (CLOSE, DOOR)], [GATED, "1", "10", "bbeeosc"])
    equal(got, [(10, 0), (20, 0), (0, 0), (10, 0)], "begins and ends")


@test
def handlers_exact():
    "a signal handler in the middle of an interval and outside has its own"
    script = "skbksees"
    inside, outside, _, _ = truth(script, 200)
    got, _ = counted([(STEP, INSIDE), (STEP, OUTSIDE)], [GATED, "4", "200", script])
    equal(got, [(4 * inside, 0), (4 * outside, 0)], "steps")


def storm(*wheres):
    """[(count, undecided)] of three threads in a storm of handlers, (inside, outside) of the threads alone, and the handlers."""
    script = "sbsbseses"
    inside, outside, _, _ = truth(script, 20000)
    got, out = counted(wheres, [GATED, "4", "20000", script, "storm"])
    assert int(out) > 0, "no handler ran"
    return got, 3 * inside, 3 * outside, int(out)


@test
def storm_exact():
    "handlers that come at any instruction, also in the middle of opening and closing, lose no state and no step"
    got, inside, outside, handlers = storm((STEP, INSIDE), (STEP, OUTSIDE))
    equal(got, [(inside + 2 * handlers, 0), (outside, 0)], "steps beside %d handlers" % handlers)


@test
def storm_without_gates_exact():
    "nor do they lose a step of a statistic without gates"
    got, inside, outside, handlers = storm((STEP, None))
    equal(got, [(inside + outside + 2 * handlers, 0)], "steps beside %d handlers" % handlers)


@test
def fork_begins_outside():
    "a child of fork begins outside, and keeps its own state; the parent's stays"
    got, _ = counted([(STEP, INSIDE), (STEP, OUTSIDE)], [GATED, "1", "3", "bsFsbsees"])
    # parent: b s [fork] s b s e e s, child: s b s e e s
    equal(got, [(3 * (3 + 1), 0), (3 * (1 + 2), 0)], "steps")


@test
def kernel_exact():
    "page faults count by the thread's interval, read by BPF where they happen, and none is undecided"
    script = "bettbtttbtetet" * 100
    _, _, inside, outside = truth(script)
    got, _ = counted([(FAULT, REGION + INSIDE), (FAULT, REGION + OUTSIDE), (FAULT, REGION[:-4])],
                     [GATED, "4", "1", "be." + script], signs=4)
    equal(got, [(4 * inside, 0), (4 * outside, 0), (4 * (inside + outside), 0)], "faults inside, outside, and of the region")


@test
def kernel_unknown_is_undecided():
    "faults before the session has found the process count as undecided: each is in one of the two counts"
    # Two statistics judge a fault one after the other, and one may know the process already. So each is held to its own sum.
    got, _ = counted([(FAULT, REGION + INSIDE), (FAULT, REGION + OUTSIDE)], [GATED, "4", "1", "b" + "t" * 800 + "e"])
    equal(sum(got[0]), 3200, "faults inside and undecided (%r)" % got)
    equal(got[1][0], 0, "faults outside")
    got, _ = counted([(FAULT, REGION + OUTSIDE), (FAULT, REGION + INSIDE)], [GATED, "4", "1", "be" + "t" * 800])
    equal(sum(got[0]), 3200, "faults outside and undecided (%r)" % got)
    equal(got[1][0], 0, "faults inside")


@test
def attached_kernel_exact():
    "attached to a process that waits: from its next event on each fault is decided, and exactly so"
    pemapi = api()
    child = start([PEM, "run", "--", GATED, "1", "1", "s.be" + "." + "tbttett" * 100], stdin=-1, stdout=-1)
    equal(child.stdout.read(1), b".", "sign of life")
    with pemapi.Session() as session:
        handles = statistics(session, (FAULT, REGION + INSIDE), (FAULT, REGION + OUTSIDE), (STEP, INSIDE))
        session.attach(child.pid)
        child.stdin.write(b"1")
        child.stdin.flush()
        equal(child.stdout.read(1), b".", "second sign")
        session.poll(100)
        child.stdin.write(b"1")
        child.stdin.close()
        child.wait()
        values = [handle.read()[0] for handle in handles]
        if values[0].unavailable:
            skip("no page faults here: " + values[0].unavailable)
        equal([(v.count, v.undecided) for v in values], [(200, 0), (300, 0), (0, 0)], "faults")


@test
def stat_preloads_and_prints():
    "pem stat counts the kernel's events inside an interval of the C library's adapter, and prints the undecided ones"
    rc, out, err = run([PEM, "stat", "--json", "-e", FAULT + " where inside APP::Loader::OpenBegin", "--",
                        sys.executable, "-c", "import ctypes; ctypes.CDLL('libm.so.6')"])
    event, = json.loads(out)["events"]
    if not event["available"]:
        skip("no page faults here: " + event["reason"])
    equal(rc, 0, "exit status (stderr: %s)" % err)
    # Until the session has found the process, and before its first dlopen, nobody knows.
    assert event["undecided"] > 0 and "count" in event, event


@test
def open_interval_is_unknown():
    "attached in the middle of intervals in one another: steps are undecided until an interval begins"
    pemapi = api()
    child = start([PEM, "run", "--", GATED, "1", "1", "bbs.sssessesbssess"], stdin=-1, stdout=-1)
    equal(child.stdout.read(1), b".", "sign of life")
    with pemapi.Session() as session:
        handles = statistics(session, (STEP, INSIDE), (STEP, OUTSIDE))
        session.attach(child.pid)
        child.stdin.write(b"1")
        child.stdin.close()
        child.wait()
        values = [handle.read()[0] for handle in handles]
        equal([(v.count, v.undecided) for v in values], [(2, 6), (2, 6)], "steps")


@test
def open_door_is_unknown():
    "attached while a door is open: steps are undecided until it closes"
    pemapi = api()
    child = start([PEM, "run", "--", GATED, "1", "1", "os.ssscss"], stdin=-1, stdout=-1)
    equal(child.stdout.read(1), b".", "sign of life")
    with pemapi.Session() as session:
        handles = statistics(session, (STEP, DOOR), (STEP, "!" + DOOR))
        session.attach(child.pid)
        child.stdin.write(b"1")
        child.stdin.close()
        child.wait()
        values = [handle.read()[0] for handle in handles]
        equal([(v.count, v.undecided) for v in values], [(0, 3), (2, 3)], "steps")


DECIDED = [(STEP, INSIDE), (STEP, OUTSIDE), (STEP, DOOR), (STEP, "!" + DOOR), (STEP, "!" + ABSENT)]
DECIDED_SCRIPT = "sbsses|os|c|s"
DECIDED_COUNTS = [(2, 0), (4, 0), (1, 0), (5, 0), (6, 0)]


@test
def command_alone_is_decided():
    "of a command that is observed without the processes that it starts, no step is undecided either"
    got, _ = counted(DECIDED, [GATED, "1", "1", DECIDED_SCRIPT], follow=False)
    equal(got, DECIDED_COUNTS, "steps")


def attached_before(command, **context):
    """[(count, undecided)] of a program that a shell starts when it was attached to, in a context that the program is in."""
    pemapi = api()
    child = start([PEM, "run", "--", "sh", "-c", 'read x; %s "$@"; :' % command, "sh", GATED, "1", "1", DECIDED_SCRIPT],
                  stdin=-1, stdout=-1)
    with pemapi.Session() as session:
        handles = statistics(session, *DECIDED)
        session.attach(pemapi.Context(**(context if "program" in context else dict(context, pid=child.pid))))
        child.stdin.write(b"1\n")
        child.stdin.close()
        child.wait()
        return [(value.count, value.undecided) for value, in (handle.read() for handle in handles)]


@test
def later_program_is_decided():
    "of a program that starts when its name is observed already, no step is undecided"
    equal(attached_before("", program="gated"), DECIDED_COUNTS, "steps")


@test
def followed_program_is_decided():
    "nor of a program that an observed process starts"
    equal(attached_before("", follow=True), DECIDED_COUNTS, "steps")


@test
def executed_program_is_decided():
    "nor of a program that an observed process becomes"
    equal(attached_before("exec"), DECIDED_COUNTS, "steps")


@test
def state_stays_in_its_session():
    "attached again by another session: the state that the process had in the first one decides no event"
    pemapi = api()
    child = start([PEM, "run", "--", GATED, "1", "1", ".bs.ss."], stdin=-1, stdout=-1)
    equal(child.stdout.read(1), b".", "sign of life")
    for where, expected in (INSIDE, (1, 0)), (ABSENT, (0, 2)):
        with pemapi.Session() as session:
            handle, = statistics(session, (STEP, where))
            session.attach(child.pid)
            child.stdin.write(b"1")
            child.stdin.flush()
            equal(child.stdout.read(1), b".", "next sign")
            value, = handle.read()
            equal((value.count, value.undecided), expected, where)
    child.stdin.close()
    child.wait()


@test
def absent_gate_is_unknown_or_closed():
    "a program that lacks the gate's events is outside if the session started it, and else that is unknown"
    pemapi = api()
    got, _ = counted([(STEP, ABSENT), (STEP, "!" + ABSENT)], [GATED, "1", "1", "ss"])
    equal(got, [(0, 0), (2, 0)], "steps of a command")
    child = start([PEM, "run", "--", GATED, "1", "1", ".ss"], stdin=-1, stdout=-1)
    equal(child.stdout.read(1), b".", "sign of life")
    with pemapi.Session() as session:
        handles = statistics(session, (STEP, ABSENT), (STEP, "!" + ABSENT))
        session.attach(child.pid)
        child.stdin.write(b"1")
        child.stdin.close()
        child.wait()
        equal([(v.count, v.undecided) for v in (handle.read()[0] for handle in handles)], [(0, 2), (0, 2)], "attached")


@test
def reset_starts_anew():
    "after a reset neither counts nor undecided events of before show"
    pemapi = api()
    child = start([PEM, "run", "--", GATED, "1", "1", "bs.ss.sebes"], stdin=-1, stdout=-1)
    equal(child.stdout.read(1), b".", "sign of life")
    with pemapi.Session() as session:
        handle, = statistics(session, (STEP, OUTSIDE))
        session.attach(child.pid)
        child.stdin.write(b"1")
        child.stdin.flush()
        equal(child.stdout.read(1), b".", "second sign")
        value, = handle.read()
        equal((value.count, value.undecided), (0, 2), "before")
        handle.reset()
        child.stdin.write(b"1")
        child.stdin.close()
        child.wait()
        value, = handle.read()
        equal((value.count, value.undecided), (1, 1), "after")


@test
def mistakes_are_explained():
    "a gate in the wrong place, of an unknown name, of an event of the kernel, and too many of them"
    pemapi = api()
    with pemapi.Session() as session:
        def said(event, where):
            try:
                session.events(event, where=where)
            except pemapi.Error as error:
                return str(error)
            raise AssertionError("taken: " + where)

        malloc, pause = "APP::Libc::Malloc", "APP::Collector::Pause"
        assert "'&&' alone" in said(malloc, "size > 3 || inside " + pause)
        assert "'&&' alone" in said(malloc, "!(size > 3 && inside %s)" % pause)
        assert "names neither" in said(malloc, "inside APP::Collector::Paus")
        assert "no event is named" in said(malloc, "from APP::A::B to APP::C::D")
        assert "'to'" in said(malloc, "from APP::Collector::PauseEnd APP::Collector::PauseBegin")
        assert "not an event of a program" in said(malloc, "inside OS::Syscall::Enter")
        assert "no context switches" in said("OS::Sched::Switch", "inside " + pause)
        assert "two events" in said(malloc, "from {0} to {0}".format("APP::Libc::Malloc"))
        assert "'thread' or 'process'" in said(malloc, "inside %s per cpu" % pause)
        for where in ("size > 3 && inside %s && !(inside %s per thread)" % (pause, pause),
                      "(inside %s && (size > 1 || size == 0))" % pause):
            session.statistics(session.events(malloc, where=where))
        try:
            session.async_callback(session.events(malloc, where="inside " + pause), print)
            raise AssertionError("a callback with a gate was taken")
        except pemapi.Error as error:
            assert "statistics alone" in str(error)


run_all()
