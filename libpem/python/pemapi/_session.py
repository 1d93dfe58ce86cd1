# SPDX-License-Identifier: LGPL-2.1-or-later
"""
_session - sessions and their handles

No function of C is called with the interpreter's lock held, so that a callback that waits for the lock never
waits for a thread that waits for the callback. What C may still call is kept alive here, until C has let go of it.
"""
import atexit
import ctypes
import errno
import math
import os
import struct
import warnings
import weakref
from collections import namedtuple

from . import _c
from ._c import lib
from ._checks import (BUDGET, ENABLE_LOG, KEEP, OBSERVED_BY_EIGHT, READ_KEPT, SAMPLE_PAGES, called, check, made, sentence, text_of,
                      unsigned)
from ._model import Error, Events, Record, text

VARIANCE, HISTOGRAM, TOP = 1, 2, 4  # Session.statistics(keep=...)

Part = namedtuple("Part", "statistic pid tid cpu program")
Part.__doc__ = "What one thread, or CPU, did of what a statistic counts. pid, tid 0 and cpu None: of none."
Process = namedtuple("Process", "pid program")
Counts = namedtuple("Counts", "called late lost waiting", defaults=(0,))
Source = namedtuple("Source", "name reason")
Source.__doc__ = "An installed source. reason: None if this user can use it here, or a sentence why not."
CountedAs = namedtuple("CountedAs", "name type config takes_counter counters fixed_counters")
CountedAs.__doc__ = "What this machine counts an event as: libpfm4's name, and the members of struct pem_counted_as."
SOURCES_MAX = COSTS_MAX = 64


def _events_of(events):
    """The set of events that a handle takes, as C has it."""
    if not isinstance(events, EventSet):
        raise TypeError("events is %r: give a set of events, as Session.events(%s) makes it" % (
            events, repr(events) if isinstance(events, str) else "'OS::Sched::*'"))
    return events._handle


def _command(command, preload_libc, follow, runner_words, no_preload, own_group=False):
    """A command and its options, as C takes them."""
    if isinstance(command, (str, bytes)):
        raise TypeError("the command is %r: give a list of words, as ['ls', '-l']" % (command,))
    unsigned(runner_words=runner_words)
    words = [os.fsencode(word) for word in command]
    return (ctypes.c_char_p * (len(words) + 1))(*words), _c.RunOptions(
        preload_libc=preload_libc, no_follow=not follow, runner_words=runner_words, no_preload=no_preload, own_group=own_group)


def run_exec(command, preload_libc=True, follow=True, runner_words=0, no_preload=False):
    """Replace this process by a command that sessions can attach to later. It returns by raising Error alone."""
    argv, options, why = *_command(command, preload_libc, follow, runner_words, no_preload), _c.Error()
    check(lib.pem_run__exec(argv, options, why), why)


def drop_capabilities():
    """Take pem's own capabilities from programs that this thread starts."""
    check(lib.pem_run__drop_capabilities())


def runtime_dir():
    """The folder in which this user's programs and consumers find each other."""
    path = ctypes.create_string_buffer(4096)
    check(lib.pem_runtime_dir(path, len(path)))
    return os.fsdecode(path.value)


class Context:
    """
    Where events count; all that is given has to hold. cpu, pid, tid: numbers; follow: with pid, and whatever that process
    starts; program: a process's name; cgroup: a folder below /sys/fs/cgroup, or its id; namespace: an inode number.

    A handle gets events of this process only once a context names it (this_process(), this_thread()) or a callback() is there.
    """

    def __init__(self, cpu=None, pid=0, tid=0, follow=False, program="", cgroup=0, namespace=0):
        if isinstance(cgroup, (str, bytes, os.PathLike)):
            found = ctypes.c_uint64()
            result = lib.pem_cgroup_id(os.fsencode(cgroup), found)
            if result < 0:
                raise Error(-result, "no control group %s: %s" % (cgroup, os.strerror(-result)))
            cgroup = found.value
        unsigned(cpu=cpu or 0, pid=pid, tid=tid, namespace=namespace)
        unsigned(64, cgroup=cgroup)
        self._c = _c.Context(one_cpu=cpu is not None, cpu=cpu or 0, pid=pid, tid=tid, follow=follow, cgroup=cgroup,
                             in_namespace=namespace, program=program.encode()[:_c.NAME_BYTES - 1])

    @classmethod
    def this_process(cls):
        return cls(pid=os.getpid())

    @classmethod
    def this_thread(cls):
        import threading
        return cls(pid=os.getpid(), tid=threading.get_native_id())


_ANYWHERE = Context()
_NO_COMMAND = "the command of this session could not be started; open a second session for another"


def _where(context):
    """Of a Context, a process's number, or None: anywhere."""
    if context is None:
        return _ANYWHERE._c
    if isinstance(context, int) and not isinstance(context, bool):
        if not 0 < context < 1 << 31:
            raise Error(errno.ESRCH, "no process has the number %d" % context)
        context = Context(pid=context)
    if not isinstance(context, Context):
        raise Error(errno.EINVAL, "%r is no context: give a pemapi.Context, or a process's number" % (context,))
    return context._c


class Statistic:
    """
    An event's values so far: count, and of the attribute sum, min, max, mean and variance (0 without). unavailable: None, or
    why its source can't deliver it. is_partial: for a time it was not counted, to keep the overhead budget.

    A counter that ran for running_ns of enabled_ns is an estimate of this error (NaN: unknown), and counted is
    its count in that time; those of one number in together,
    other than 0, were counted at the same times. undecided: with 'inside' or 'from' in the predicate, events that are not
    counted, because the state of a gate was unknown. may_have_overflowed: the sum may have wrapped; mean is then NaN.
    """
    __slots__ = ("event", "unavailable", "is_partial", "count", "sum", "min", "max", "mean", "variance", "enabled_ns", "running_ns", "counted",
                 "error", "together", "undecided", "may_have_overflowed")

    def __init__(self, c, event):
        self.event, self.count, self.mean, self.variance = event, c.count, c.mean, c.variance
        self.unavailable = os.strerror(-c.unavailable) if c.unavailable else None
        self.is_partial, self.counted = bool(c.is_partial), c.counted
        self.enabled_ns, self.running_ns, self.error, self.together = c.enabled_ns, c.running_ns, c.error, c.together
        self.undecided, self.may_have_overflowed = c.undecided, bool(c.may_have_overflowed)
        if c.is_float:
            self.sum, self.min, self.max = c.sum_f, c.min_f, c.max_f
        else:
            self.sum, self.min, self.max = (_number(x, c.is_signed) for x in (c.sum, c.min, c.max))

    @property
    def deviation(self):
        """Standard deviation, of the whole: the root of the variance."""
        return math.sqrt(self.variance)

    def __repr__(self):
        return "<%s: %s>" % (self.event.name, self.unavailable or self.count)


def _number(bits, is_signed):
    return bits - (1 << 64) if is_signed and bits >> 63 else bits


class _Handle:
    """What a session has handed out. It lasts until unregister(), or as long as the session; 'with' enables it meanwhile."""
    _kind = ""
    _reasons = OBSERVED_BY_EIGHT  # of an enable that fails

    def __init__(self, session, handle):
        self._session, self._handle = session, handle
        session._handles.add(self)

    def _c(self):
        if not self._handle:
            raise ValueError("this was unregistered, or its session closed")
        return self._handle

    def enable(self):
        check(getattr(lib, "pem_%s__enable" % self._kind)(self._c()) or 0, reasons=self._reasons)

    def disable(self):
        getattr(lib, "pem_%s__disable" % self._kind)(self._c())

    def unregister(self):
        """End it. No other thread may be using it."""
        handle, self._handle = self._handle, None
        if handle:
            getattr(lib, "pem_%s__unregister" % self._kind)(handle)
            self._session._handles.discard(self)

    def __enter__(self):
        self.enable()
        return self

    def __exit__(self, *_):
        if self._handle:
            self.disable()


class EventSet:
    """Events that patterns name; a sequence of Event."""

    def __init__(self, session, handle):
        self._session, self._handle = session, handle
        self._events = [session._events[lib.pem_event_set__event(handle, i)]
                        for i in range(lib.pem_event_set__count(handle))]

    def where(self, predicate, pattern=None):
        """
        Of handles registered with it from now on, the events whose fields pass, as 'size > 4096'; None: all. pattern: of
        those events only that match it. Returns the set.
        """
        why, predicate = _c.Error(), None if predicate is None else text_of("where", predicate)
        if pattern is None:
            check(lib.pem_event_set__where(self._handle, predicate, why), why)
        else:
            check(lib.pem_event_set__where_of(self._handle, text_of("a pattern", pattern), predicate, why), why)
        return self

    def predicate(self, i):
        """The predicate of event i, or None."""
        found = lib.pem_event_set__predicate(self._handle, i)
        return None if found is None else text(found)

    def __len__(self):
        return len(self._events)

    def __getitem__(self, i):
        return self._events[i]

    def __del__(self):
        if getattr(self, "_handle", None):
            lib.pem_event_set__free(self._handle)


class Statistics(_Handle):
    _kind = "statistics"

    def __init__(self, session, handle, events):
        super().__init__(session, handle)
        self._events, self._values = list(events), _c.Statistic.room(len(events))

    def reset(self):
        lib.pem_statistics__reset(self._c())

    def read(self):
        """A Statistic for each event of the set."""
        n = check(lib.pem_statistics__read(self._c(), self._values, len(self._values)))
        return [Statistic(self._values[i], self._events[i]) for i in range(n)]

    def histogram(self, i=0):
        """Of event i: a list of 65 counts. [0]: of values up to 0; [n]: from 2**(n-1) to below 2**n."""
        c = _c.Histogram()
        unsigned(i=i)
        check(lib.pem_statistics__histogram(self._c(), i, c), reasons=READ_KEPT)
        return list(c.bucket)

    def top(self, i=0, most=16):
        """Of event i: (value, count, error) of the most frequent values, which came between count - error and count times."""
        unsigned(i=i, most=most)
        if i >= len(self._values):
            raise Error(errno.EINVAL, READ_KEPT[errno.EINVAL])
        room, value = _c.Top.room(most), self._values[i]
        lib.pem_statistics__read(self._c(), self._values, len(self._values))  # tells the type
        n = check(lib.pem_statistics__top(self._c(), i, room, most), reasons=READ_KEPT)
        if value.is_float:
            return [(struct.unpack("d", struct.pack("Q", t.value))[0], t.count, t.error) for t in room[:n]]
        return [(_number(t.value, value.is_signed), t.count, t.error) for t in room[:n]]

    def each(self, i=0):
        """Of event i: a Part for each thread, or CPU, that has any. Error: its source can't deliver it."""
        parts, event = [], self._events[i]

        @_c.PartFunction
        def add(c, owner, _):
            owner = owner.contents
            parts.append(Part(Statistic(c.contents, event), owner.pid, owner.tid,
                              None if owner.cpu == _c.NO_CPU else owner.cpu, text(owner.program)))
        result = lib.pem_statistics__each(self._c(), i, add, None)
        if result < 0:
            raise Error(-result, "%s is not available: %s; the session's log has the reason" % (event.name, os.strerror(-result)))
        return parts


class Callback(_Handle):
    """A function that is called with a Record. What it raises is shown by sys.unraisablehook, and the program goes on."""
    _kind = "callback"

    def __init__(self, session, handle, function):
        super().__init__(session, handle)
        self._function = function  # C's view of it, which C may call for as long as it is registered

    def counts(self):
        """How an asynchronous callback fared: events called, late and lost; events that wait for any callback of the session."""
        c = _c.CallbackCounts()
        check(lib.pem_callback__counts(self._c(), c))
        return Counts(c.called, c.late, c.lost, c.waiting)

    def settle(self):
        """Wait until an asynchronous callback has been called for each event from before this call that it did not lose."""
        check(lib.pem_callback__settle(self._c()))


class Log(_Handle):
    _kind = "log"
    _reasons = ENABLE_LOG

    def finish(self):
        """Stop, and complete the trace."""
        why = _c.Error()
        check(lib.pem_log__finish(self._c(), why), why)

    def __exit__(self, *_):
        """After 'with' the trace is complete."""
        if self._handle:
            self.finish()


class Session:
    """
    What a consumer opens; 'with' closes it. log: a function of (level, sentence) for what the library has to say, level being
    'error', 'warning' or 'info', with progress also 'progress'. sample_stacks: 'none', 'frames' or 'tables'. hardware: a file's
    path. The others are as struct pem_session_options has them.
    """

    def __init__(self, log=None, chunk_bytes=0, chunk_count=0, overwrite=False, by_process=False, progress=False, sample_hz=0,
                 sample_stacks="none", coarse_clock=False, hardware=None, drain_threads=0, compress=False):
        why, self._handle, self._handles, self._functions = _c.Error(), None, set(), []
        unsigned(chunk_bytes=chunk_bytes, chunk_count=chunk_count, sample_hz=sample_hz, drain_threads=drain_threads)
        if sample_stacks not in _c.STACKS:
            raise ValueError("sample_stacks is %r: it is 'none', 'frames' or 'tables'" % (sample_stacks,))
        if log is not None:
            called(log)
        self._log = _c.LogFunction(lambda level, said, _: log(_c.LOG_LEVELS[level], text(said))) if log else \
            _c.LogFunction()
        self._options = _c.SessionOptions(
            chunk_bytes=chunk_bytes, chunk_count=chunk_count, overwrite=overwrite, log=self._log, by_process=by_process,
            progress=progress, sample_hz=sample_hz, sample_stacks=_c.STACKS.index(sample_stacks), coarse_clock=coarse_clock,
            hardware=None if hardware is None else os.fsencode(hardware), drain_threads=drain_threads, compress=compress)
        self._events = Events()
        self._handle = made(lib.pem_session__open(self._options, why), why)
        self._owner, self._silent = os.getpid(), not log
        _sessions.add(self)

    @classmethod
    def _borrowed(cls, handle):
        """A session that somebody else opened and closes."""
        of = cls.__new__(cls)
        of._handle, of._handles, of._functions, of._events, of._owner = handle, set(), [], Events(), None
        of._silent = False  # who opened it has its log
        return of

    def close(self):
        """Disable and unregister all of it. Not from a callback."""
        handle, self._handle = self._handle, None
        if handle and self._owner == os.getpid():
            lib.pem_session__close(handle)
        for of in self._handles:
            of._handle = None
        self._handles.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def _c(self):
        if not self._handle:
            raise ValueError("this session was closed")
        return self._handle

    def events(self, *patterns, where=None):
        """The set of the events that match any of the patterns, as -e takes them; where: see EventSet.where."""
        names, why = (ctypes.c_char_p * len(patterns))(*(text_of("a pattern", p) for p in patterns)), _c.Error()
        handle = lib.pem_event_set__new(self._c(), names, len(patterns), why)
        of = EventSet(self, made(handle, why))
        return of if where is None else of.where(where)

    def add_model(self, model, origin="a model"):
        """Know the events of a model's text, as pem-codegen --models makes it. How many are new; origin names it in errors."""
        why, model = _c.Error(), model.encode() if isinstance(model, str) else bytes(model)
        return check(lib.pem_session__add_model(self._c(), model, len(model), origin.encode(), why), why)

    def add_specs(self, path):
        """Know the events of a spec in XML, of a file of models, or of a folder of specs. How many are new."""
        why = _c.Error()
        return check(lib.pem_session__add_specs(self._c(), os.fsencode(path), why), why)

    def describe(self, program):
        """
        Know the events that a program describes itself: a process's number, or the file of a program. How many it describes,
        known ones included.
        """
        if isinstance(program, int) and (isinstance(program, bool) or not 0 < program < 1 << 32):
            raise ValueError("%r is not a process's number" % program)
        why, pid = _c.Error(), program if isinstance(program, int) else 0
        path = None if isinstance(program, int) else os.fsencode(program)
        return check(lib.pem_session__describe(self._c(), pid, path, why), why)

    def add_probes(self, pattern):
        """
        Know the events of places that no spec describes, such as "sched:*" or "usdt:PATH:NAME"; events() does so itself for
        such patterns. How many the pattern names; an error if none.
        """
        why = _c.Error()
        return check(lib.pem_session__add_probes(self._c(), pattern.encode(), why), why)

    def set_counters(self, *names):
        """
        Have pem.ko read these counters (at most 8) at each event of the kernel that is logged, and at context switches: values of
        HW::HWPerf::HPMsAtEvent. Before anything is enabled.
        """
        why = _c.Error()
        check(lib.pem_session__set_counters(self._c(), ",".join(names).encode(), why), why)

    def count_at(self, events):
        """
        Have threads of programs read the counters of set_counters() at each logged event of a set of events: values of
        HW::HWPerf::HPMsInThread, in front of the event. Before anything is enabled; log that event, too.
        """
        why = _c.Error()
        check(lib.pem_session__count_at(self._c(), _events_of(events), why), why)

    def set_page_sampling(self, interval_us, region_bytes):
        """
        How often pem.ko looks at page tables and free memory (OS::Pages), from 1000 us on, and by what regions of memory: a power
        of two from 4096 on. Before anything is enabled.
        """
        unsigned(interval_us=interval_us)
        unsigned(64, region_bytes=region_bytes)
        check(lib.pem_session__set_page_sampling(self._c(), interval_us, region_bytes), reasons=SAMPLE_PAGES)

    def why_not(self, event):
        """None if this machine can deliver the event to this user, or a sentence why not."""
        why = _c.Error()
        return None if lib.pem_session__can_deliver(self._c(), event._address, why) == 1 else text(why.text)

    def source_of(self, event):
        """Which source delivers the event: "module", "BPF", "counters" or "stub"; None if none does, and why_not says why."""
        name = lib.pem_session__source_of(self._c(), event._address, None)
        return None if name is None else text(name)

    def counted_as(self, event):
        """What this machine counts the event as; None if it is not the event of a counter, or this processor has none for it."""
        found = _c.CountedAs()
        rc = lib.pem_session__counted_as(self._c(), event._address, found)
        if rc == -errno.ENOENT:
            return None
        check(rc)
        return CountedAs(text(found.name), found.type, found.config, bool(found.takes_counter), found.counters, found.fixed_counters)

    def counter_turns(self, events):
        """
        The turn in which each of the events is counted, if all are counted in one thread: a list of numbers from 1 on; 0: it takes
        no counter of the processor, or can't be counted.
        """
        events = list(events)
        turns = (ctypes.c_uint32 * max(len(events), 1))()
        addresses = (ctypes.c_void_p * max(len(events), 1))(*(event._address for event in events))
        check(lib.pem_session__counter_turns(self._c(), addresses, len(events), turns))
        return list(turns)[:len(events)]

    def costs(self):
        """What one event of each kind costs on this machine, in nanoseconds: a dict by the kind's name."""
        costs = _c.EventCost.room(COSTS_MAX)
        count = check(lib.pem_session__costs(self._c(), costs, COSTS_MAX))
        return {text(cost.kind): cost.ns_each for cost in costs[:count]}

    def sources(self):
        """The installed sources, in the order in which they are asked for an event."""
        states = _c.SourceState.room(SOURCES_MAX)
        count = check(lib.pem_session__sources(self._c(), states, SOURCES_MAX))
        return [Source(text(s.name), None if s.usable else text(s.reason.text)) for s in states[:count]]

    def statistics(self, events, attribute=None, context=None, keep=0):
        """Statistics of the events' attribute, or their counts alone. keep: of VARIANCE, HISTOGRAM and TOP."""
        why = _c.Error()
        handle = lib.pem_session__register_statistics(self._c(), _events_of(events), _where(context),
                                                      None if attribute is None else text_of("attribute", attribute), why)
        of = Statistics(self, made(handle, why), events)
        if keep:
            unsigned(keep=keep)
            check(lib.pem_statistics__keep(handle, keep), reasons=KEEP)
        return of

    def _function(self, function):
        events = self._events
        called(function)
        return _c.RecordFunction(lambda record, _: function(Record(record.contents, events)))

    def callback(self, events, function, context=None):
        """
        Call function in the thread of this process that raises an event, in the middle of what it does. It waits for the
        interpreter's lock; so it is not for events that the interpreter itself raises while it holds locks of its own
        (malloc's), nor for such as signal handlers raise. Enable what is returned.
        """
        c, why = self._function(function), _c.Error()
        handle = lib.pem_session__register_callback(self._c(), _events_of(events), _where(context), c, None, why)
        return Callback(self, made(handle, why), c)

    def async_callback(self, events, function, context=None, max_delay_us=0):
        """Call function on a thread of the session's, in order of time, for events of any observed process and the kernel."""
        c, why = self._function(function), _c.Error()
        unsigned(64, max_delay_us=max_delay_us)
        options = _c.AsyncOptions(max_delay_us=max_delay_us)
        handle = lib.pem_session__register_async_callback(self._c(), _events_of(events), _where(context), c, None, options, why)
        return Callback(self, made(handle, why), c)

    def log(self, events, directory, context=None):
        """Log the events to a trace directory that must not exist, or be empty. One in a session's life."""
        why = _c.Error()
        handle = lib.pem_session__register_log(self._c(), _events_of(events), _where(context), os.fsencode(directory), why)
        return Log(self, made(handle, why))

    def snapshot(self, directory, cause=None):
        """Write what a flight recorder (overwrite) holds now as a trace of its own; cause: a few words noted in it."""
        why = _c.Error()
        check(lib.pem_session__snapshot(self._c(), os.fsencode(directory), cause and cause.encode(), why), why)

    def set_budget(self, share):
        """Keep what the observation costs below a share of the programs' CPU time; 0: no bound."""
        check(lib.pem_session__set_budget(self._c(), share), reasons=BUDGET)

    def attach(self, context=None):
        """
        Observe programs that run already, and those to come in the context: a Context, or a process's number. Returns how many
        have raised application events. A named process that can raise none, or none of those that are enabled, is a warning of
        the session's log, or of Python's if the session has no log.
        """
        why = _c.Error()
        found = check(lib.pem_session__attach(self._c(), _where(context), why), why)
        if why.text and self._silent:
            warnings.warn(sentence(why), RuntimeWarning, stacklevel=2)
        return found

    def processes(self):
        """Observed processes now."""
        n = 0
        while True:  # more may come between two calls
            room = _c.Owner.room(n)
            found = check(lib.pem_session__processes(self._c(), room, n))
            if found <= n:
                return [Process(p.pid, text(p.program)) for p in room[:found]]
            n = found

    def run(self, command, preload_libc=True, follow=True, runner_words=0, no_preload=False, own_group=False):
        """
        Start a command (a list of words) under the session. Returns its pid; poll() or wait() then. follow is the contrary of
        no_follow; the options are as struct pem_run_options has them.
        """
        argv, options, why = *_command(command, preload_libc, follow, runner_words, no_preload, own_group), _c.Error()
        return check(lib.pem_session__run(self._c(), argv, options, why), why)

    def poll(self, timeout_ms=100):
        """
        Work for at most so long. The command's exit status once it has ended (minus its signal), else None. Call it often.
        Error with errno EINTR: the session was interrupted; ECHILD: the command could not be started, and nothing else is observed.
        """
        status = ctypes.c_int()
        result = lib.pem_session__poll(self._c(), timeout_ms, status)
        if result == -errno.ECHILD:
            raise Error(errno.ECHILD, _NO_COMMAND)
        return os.waitstatus_to_exitcode(status.value) if check(result) == 1 else None

    def wait(self):
        """Work until the command ends. Its exit status, as of poll."""
        while (status := self.poll()) is None:
            pass
        return status

    def interrupt(self):
        """End poll() and wait() in every thread, now and later: they raise Error with errno EINTR. The command goes on."""
        lib.pem_session__interrupt(self._c())

    @property
    def elapsed_s(self):
        """Time from the command's start to its end, or to now."""
        return lib.pem_session__elapsed_ns(self._c()) / 1e9

    @property
    def model(self):
        """Every event the session knows."""
        model = lib.pem_session__model(self._c())
        return [self._events[lib.pem_model__event(model, i)] for i in range(lib.pem_model__count(model))]


# Their threads must not call into an interpreter that is being taken down.
_sessions = weakref.WeakSet()


@atexit.register
def _close_all():
    for session in list(_sessions):
        session.close()
