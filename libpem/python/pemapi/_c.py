# SPDX-License-Identifier: LGPL-2.1-or-later
"""
_c - the library, its structures and functions, as ctypes has them; what they mean is said in pem.h, model.h and trace.h

Structures, constants and functions are held against the headers by tests/e2e/consumer_python.py, which compiles them.
"""
import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint8,
                    c_uint16, c_uint32, c_uint64, c_void_p)

from . import _place

NO_CPU = 0xffffffff
NAME_BYTES = 16
TYPES = ("none", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64",
         "string", "list", "address", "array")  # enum pem_type
LETTERS = dict(zip(TYPES, "-BHIQbhiqfd--Q-"))  # of these, the struct module's
LABELS_ENUM, LABELS_FLAGS = 1, 2
LOG_LEVELS = ("error", "warning", "info", "progress")  # enum pem_log_level
STACKS = ("none", "frames", "tables")  # enum pem_stacks


class Error(ctypes.Structure):
    _fields_ = [("text", c_char * 512)]


class Sized(ctypes.Structure):
    """A struct that this module allocates: it begins with its size."""

    def __init__(self, **members):
        super().__init__(size=ctypes.sizeof(type(self)), **members)

    @classmethod
    def room(cls, count):
        """An array to be filled in: its first element has the size."""
        array = (cls * count)()
        if count:
            array[0].size = ctypes.sizeof(cls)
        return array


class Label(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("description", c_char_p), ("value", c_uint64)]


class Field(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("description", c_char_p), ("unit", c_char_p), ("type", c_uint8),
                ("element_type", c_uint8), ("base", c_uint8), ("role", c_uint8), ("offset", c_uint16),
                ("max_count", c_uint16), ("label_kind", c_uint8), ("label_count", c_uint16), ("labels", POINTER(Label))]


class Event(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("description", c_char_p), ("layer", c_char_p), ("class_name", c_char_p),
                ("specifier", c_char_p), ("source_name", c_char_p), ("group", c_char_p), ("since", c_char_p),
                ("deprecated", c_char_p), ("tsdl", c_char_p), ("fields", POINTER(Field)), ("id", c_uint32),
                ("field_count", c_uint16), ("fixed_bytes", c_uint16), ("max_bytes", c_uint16), ("meaning", c_uint8),
                ("source_kind", c_uint8), ("level", c_uint8), ("scope", c_uint8), ("version", c_uint16)]


class Record(Sized):
    _fields_ = [("size", c_size_t), ("clock", c_uint64), ("time_ns", c_uint64), ("event", c_void_p), ("data", c_void_p), ("bytes", c_uint32),
                ("pid", c_uint32), ("tid", c_uint32), ("cpu", c_uint32), ("stream", c_uint32), ("source", c_uint32)]


class Context(Sized):
    _fields_ = [("size", c_size_t), ("one_cpu", c_uint32), ("cpu", c_uint32), ("pid", c_uint32), ("tid", c_uint32),
                ("follow", c_uint32), ("in_namespace", c_uint32), ("cgroup", c_uint64), ("program", c_char * NAME_BYTES)]


LogFunction = CFUNCTYPE(None, c_int, c_char_p, c_void_p)


class SessionOptions(Sized):
    _fields_ = [("size", c_size_t), ("chunk_bytes", c_uint32), ("chunk_count", c_uint32), ("overwrite", c_int),
                ("progress", c_int), ("log", LogFunction), ("log_arg", c_void_p), ("by_process", c_int),
                ("sample_hz", c_uint32), ("sample_stacks", c_uint32), ("coarse_clock", c_uint32), ("hardware", c_char_p),
                ("drain_threads", c_uint32), ("compress", c_uint32)]


class Statistic(Sized):
    _fields_ = [("size", c_size_t), ("event", c_void_p), ("unavailable", c_int), ("is_partial", c_int), ("count", c_uint64),
                ("is_signed", c_int), ("is_float", c_int), ("sum", c_uint64), ("min", c_uint64), ("max", c_uint64), ("sum_f", c_double),
                ("min_f", c_double), ("max_f", c_double), ("mean", c_double), ("variance", c_double), ("enabled_ns", c_uint64),
                ("running_ns", c_uint64), ("counted", c_uint64), ("error", c_double), ("together", c_uint32),
                ("may_have_overflowed", c_uint32), ("undecided", c_uint64)]


class SourceState(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("usable", c_uint32), ("reserved", c_uint32), ("reason", Error)]


class CountedAs(Sized):
    _fields_ = [("size", c_size_t), ("name", c_char * 160), ("config", c_uint64), ("type", c_uint32), ("takes_counter", c_uint32),
                ("counters", c_uint32), ("fixed_counters", c_uint32)]


class EventCost(Sized):
    _fields_ = [("size", c_size_t), ("kind", c_char * 24), ("ns_each", c_double)]


class Histogram(Sized):
    _fields_ = [("size", c_size_t), ("bucket", c_uint64 * 65)]


class Top(Sized):
    _fields_ = [("size", c_size_t), ("value", c_uint64), ("count", c_uint64), ("error", c_uint64)]


class Owner(Sized):
    _fields_ = [("size", c_size_t), ("pid", c_uint32), ("tid", c_uint32), ("cpu", c_uint32), ("reserved", c_uint32),
                ("program", c_char * NAME_BYTES)]


class AsyncOptions(Sized):
    _fields_ = [("size", c_size_t), ("max_delay_us", c_uint64)]


class CallbackCounts(Sized):
    _fields_ = [("size", c_size_t), ("called", c_uint64), ("late", c_uint64), ("lost", c_uint64), ("waiting", c_uint64)]


class RunOptions(Sized):
    _fields_ = [("size", c_size_t), ("preload_libc", c_int), ("no_follow", c_int), ("runner_words", c_uint32), ("no_preload", c_uint32),
                ("own_group", c_uint32)]


class Balance(ctypes.Structure):
    _fields_ = [("produced", c_uint64), ("delivered", c_uint64), ("discarded", c_uint64), ("overwritten", c_uint64)]


class Producer(ctypes.Structure):
    _fields_ = [("pid", c_uint32), ("name", c_char * NAME_BYTES), ("balance", Balance), ("start_clock", c_uint64)]


class Loss(Sized):
    _fields_ = [("size", c_size_t), ("begin_ns", c_uint64), ("end_ns", c_uint64), ("pid", c_uint32), ("tid", c_uint32),
                ("cpu", c_uint32), ("source", c_uint32)]


class Cost(ctypes.Structure):
    _fields_ = [("kind", c_char * 24), ("ns_each", c_double), ("count", c_uint64)]


class CostRange(ctypes.Structure):
    _fields_ = [("least_ns", c_double), ("most_ns", c_double)]


class Gap(ctypes.Structure):
    _fields_ = [("source", c_char * 24), ("reason", c_char * 232)]


class Reduced(ctypes.Structure):
    _fields_ = [("event", c_char * 128), ("detail", c_uint32), ("counted", c_uint64)]


class Predicate(ctypes.Structure):
    _fields_ = [("event", c_char * 128), ("text", c_char * 384)]


class Estimate(ctypes.Structure):
    _fields_ = [("event", c_char * 128), ("enabled_ns", c_uint64), ("running_ns", c_uint64), ("error", c_double), ("together", c_uint32),
                ("reserved", c_uint32)]


class TraceInfo(ctypes.Structure):
    _fields_ = [("command", c_char * 512), ("host", c_char * 65), ("version", c_char * 32), ("start_time_ns", c_uint64),
                ("start_clock", c_uint64), ("duration_ns", c_uint64), ("clock_hz", c_uint64),
                ("clock_error_ns", c_uint64), ("recorder_cpu_ns", c_uint64), ("program_cpu_ns", c_uint64),
                ("exit_status", c_int32), ("complete", c_uint32), ("cost_count", c_uint32), ("costs", Cost * 16),
                ("gap_count", c_uint32), ("gaps", Gap * 16), ("command_pid", c_uint32), ("command_name", c_char * 64),
                ("context_events", c_char * 256), ("snapshot", c_char * 160), ("ran_ns", c_uint64),
                ("reduced_count", c_uint32), ("reduced", Reduced * 64),
                ("predicate_count", c_uint32), ("predicates_more", c_uint32), ("predicates", Predicate * 64),
                ("machine_cpu_ns", c_uint64), ("counters", c_char * 512), ("boot_id", c_char * 40),
                ("estimate_count", c_uint32), ("estimates", Estimate * 64), ("coarse_late_ns", c_uint64), ("internal_calls", c_uint64),
                ("cost_ranges", CostRange * 16)]


class Recorder(Sized):
    _fields_ = [("size", c_size_t), ("pid", c_uint32), ("is_running", c_uint32), ("session", c_char * 64), ("command", c_char * 512),
                ("trace", c_char * 4096)]


# Which structure of C each is, for the test that compiles them.
STRUCTURES = {
    "pem_error": Error, "pem_label": Label, "pem_field": Field, "pem_event": Event, "pem_record": Record,
    "pem_context": Context, "pem_session_options": SessionOptions, "pem_statistic": Statistic,
    "pem_source_state": SourceState, "pem_counted_as": CountedAs, "pem_event_cost": EventCost, "pem_histogram": Histogram, "pem_top": Top, "pem_statistic_owner": Owner,
    "pem_async_options": AsyncOptions,
    "pem_callback_counts": CallbackCounts, "pem_run_options": RunOptions, "pem_balance": Balance,
    "pem_trace_producer": Producer, "pem_trace_loss": Loss, "pem_trace_cost": Cost, "pem_trace_cost_range": CostRange, "pem_trace_gap": Gap, "pem_trace_reduced": Reduced,
    "pem_trace_predicate": Predicate, "pem_trace_estimate": Estimate,
    "pem_trace_info": TraceInfo, "pem_recorder": Recorder,
}

RecordFunction = CFUNCTYPE(None, POINTER(Record), c_void_p)
PartFunction = CFUNCTYPE(None, POINTER(Statistic), POINTER(Owner), c_void_p)
_handle, _error, _text = c_void_p, POINTER(Error), c_char_p

# Function: what it returns, what it takes.
FUNCTIONS = {
    "pem_version": (c_char_p,),
    "pem_clock__hz": (c_uint64,),
    "pem_runtime_dir": (c_int, c_char_p, c_size_t),
    "pem_run__exec": (c_int, POINTER(c_char_p), POINTER(RunOptions), _error),
    "pem_run__drop_capabilities": (c_int,),
    "pem_cgroup_id": (c_int, _text, POINTER(c_uint64)),
    "pem_session__open": (_handle, POINTER(SessionOptions), _error),
    "pem_session__close": (None, _handle),
    "pem_session__model": (_handle, _handle),
    "pem_session__can_deliver": (c_int, _handle, c_void_p, _error),
    "pem_session__costs": (c_int, _handle, POINTER(EventCost), c_size_t),
    "pem_session__source_of": (c_char_p, _handle, c_void_p, _error),
    "pem_session__sources": (c_int, _handle, POINTER(SourceState), c_size_t),
    "pem_session__add_model": (c_int, _handle, _text, c_size_t, _text, _error),
    "pem_session__add_specs": (c_int, _handle, _text, _error),
    "pem_session__describe": (c_int, _handle, c_uint32, _text, _error),
    "pem_session__add_probes": (c_int, _handle, _text, _error),
    "pem_session__set_counters": (c_int, _handle, _text, _error),
    "pem_session__count_at": (c_int, _handle, _handle, _error),
    "pem_session__counted_as": (c_int, _handle, c_void_p, POINTER(CountedAs)),
    "pem_session__counter_turns": (c_int, _handle, POINTER(c_void_p), c_size_t, POINTER(c_uint32)),
    "pem_session__set_page_sampling": (c_int, _handle, c_uint32, c_uint64),
    "pem_session__attach": (c_int, _handle, POINTER(Context), _error),
    "pem_session__processes": (c_int, _handle, POINTER(Owner), c_size_t),
    "pem_session__run": (c_int, _handle, POINTER(c_char_p), POINTER(RunOptions), _error),
    "pem_session__poll": (c_int, _handle, c_int, POINTER(c_int)),
    "pem_session__elapsed_ns": (c_uint64, _handle),
    "pem_session__interrupt": (None, _handle),
    "pem_session__snapshot": (c_int, _handle, _text, _text, _error),
    "pem_recorders": (c_int, POINTER(Recorder), c_size_t),
    "pem_recorder__snapshot": (c_int, POINTER(Recorder), _text, _text, c_int, _error),
    "pem_session__set_budget": (c_int, _handle, c_double),
    "pem_event_set__new": (_handle, _handle, POINTER(c_char_p), c_size_t, _error),
    "pem_event_set__where": (c_int, _handle, _text, _error),
    "pem_event_set__where_of": (c_int, _handle, _text, _text, _error),
    "pem_event_set__predicate": (c_char_p, _handle, c_size_t),
    "pem_event_set__free": (None, _handle),
    "pem_event_set__count": (c_size_t, _handle),
    "pem_event_set__event": (c_void_p, _handle, c_size_t),
    "pem_session__register_statistics": (_handle, _handle, _handle, POINTER(Context), _text, _error),
    "pem_statistics__enable": (c_int, _handle),
    "pem_statistics__disable": (None, _handle),
    "pem_statistics__reset": (None, _handle),
    "pem_statistics__read": (c_int, _handle, POINTER(Statistic), c_size_t),
    "pem_statistics__keep": (c_int, _handle, c_uint),
    "pem_statistics__histogram": (c_int, _handle, c_size_t, POINTER(Histogram)),
    "pem_statistics__top": (c_int, _handle, c_size_t, POINTER(Top), c_size_t),
    "pem_statistics__each": (c_int, _handle, c_size_t, PartFunction, c_void_p),
    "pem_statistics__unregister": (None, _handle),
    "pem_session__register_callback": (_handle, _handle, _handle, POINTER(Context), RecordFunction, c_void_p, _error),
    "pem_session__register_async_callback": (_handle, _handle, _handle, POINTER(Context), RecordFunction, c_void_p,
                                             POINTER(AsyncOptions), _error),
    "pem_callback__counts": (c_int, _handle, POINTER(CallbackCounts)),
    "pem_callback__settle": (c_int, _handle),
    "pem_callback__enable": (None, _handle),
    "pem_callback__disable": (None, _handle),
    "pem_callback__unregister": (None, _handle),
    "pem_session__register_log": (_handle, _handle, _handle, POINTER(Context), _text, _error),
    "pem_log__enable": (c_int, _handle),
    "pem_log__disable": (None, _handle),
    "pem_log__finish": (c_int, _handle, _error),
    "pem_log__unregister": (None, _handle),
    "pem_model__count": (c_size_t, _handle),
    "pem_model__event": (c_void_p, _handle, c_size_t),
    "pem_trace__open": (_handle, _text, _error),
    "pem_trace__close": (None, _handle),
    "pem_trace__recover": (c_int, _text, _error),
    "pem_trace__unpack": (c_int, _text, _text, _error),
    "pem_trace__model": (_handle, _handle),
    "pem_trace__info": (POINTER(TraceInfo), _handle),
    "pem_trace__torn_packets": (c_uint64, _handle),
    "pem_trace__next": (c_int, _handle, POINTER(Record), _error),
    "pem_trace__rewind": (c_int, _handle),
    "pem_trace__read_ahead": (c_int, _handle),
    "pem_trace__loss_count": (c_size_t, _handle),
    "pem_trace__loss": (c_int, _handle, c_size_t, POINTER(Loss)),
    "pem_trace__producer_count": (c_size_t, _handle),
    "pem_trace__producer": (POINTER(Producer), _handle, c_size_t),
    "pem_trace__process_name": (c_char_p, _handle, c_uint32),
    "pem_trace__thread_name": (c_char_p, _handle, c_uint32),
    "pem_trace__event_balance": (Balance, _handle, c_void_p),
    "pem_trace__total_balance": (Balance, _handle),
}


class _Library:
    """The library's functions, each bound when it is first used. A call lets go of the interpreter's lock."""

    def __init__(self):
        self._cdll = self._load()

    @staticmethod
    def _load():
        # What generated modules register with is the library that the process has: this one, seen by everybody.
        try:
            ctypes.CDLL("libpem.so.1", mode=os.RTLD_NOLOAD | os.RTLD_GLOBAL)
            return ctypes.CDLL("libpem.so.1", mode=os.RTLD_GLOBAL, use_errno=True)
        except OSError:
            pass
        for name in (_place.LIBRARY, "libpem.so.1"):
            try:
                return ctypes.CDLL(name, mode=os.RTLD_GLOBAL, use_errno=True)
            except OSError as error:
                why = error
        raise ImportError("libpem.so.1 can't be loaded, neither from %s nor from where the system looks: %s"
                          % (_place.LIBRARY, why))

    def __getattr__(self, name):
        function = getattr(self._cdll, name)
        function.restype, *function.argtypes = FUNCTIONS[name]
        setattr(self, name, function)
        return function


lib = _Library()
if lib.pem_version().decode() != _place.VERSION:
    raise ImportError("this module is of pem %s, and the library that was found is of %s: install them together, or let "
                      "LD_LIBRARY_PATH name the folder of libpem.so.1" % (_place.VERSION, lib.pem_version().decode()))
