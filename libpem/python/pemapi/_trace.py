# SPDX-License-Identifier: LGPL-2.1-or-later
"""
_trace - reading a trace
"""
import ctypes
import os
from collections import namedtuple

from . import _c
from ._c import lib
from ._model import Error, Events, Record, text

Producer = namedtuple("Producer", "pid name balance start_clock")
Loss = namedtuple("Loss", "begin_ns end_ns pid tid cpu source")


class Trace:
    """
    A trace, to be read by a for loop: each record of every layer, in order of time, then from the beginning again. A
    damaged packet raises Error; what has been read until then is good. One loop at a time, in one thread.
    """

    def __init__(self, directory):
        why = _c.Error()
        self._events = Events()
        self._handle = lib.pem_trace__open(os.fsencode(directory), why)
        if not self._handle:
            raise Error(ctypes.get_errno(), text(why.text))

    def close(self):
        handle, self._handle = self._handle, None
        if handle:
            lib.pem_trace__close(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def _open(self):
        if not self._handle:
            raise ValueError("this trace was closed")
        return self._handle

    def __iter__(self):
        c, why, events = _c.Record(), _c.Error(), self._events
        lib.pem_trace__rewind(self._open())
        following = lib.pem_trace__next
        while (result := following(self._open(), c, why)) > 0:
            yield Record(c, events)
        if result < 0:
            raise Error(-result, text(why.text))

    @property
    def info(self):
        """About the recording: a dict of struct pem_trace_info's plain members (trace.h)."""
        c = lib.pem_trace__info(self._open()).contents
        values = {name: getattr(c, name) for name, _ in c._fields_}
        return {name: text(value) if isinstance(value, bytes) else value for name, value in values.items()
                if isinstance(value, (bytes, int, float))}

    @property
    def gaps(self):
        """What was asked for and could not be had: (source, reason) each."""
        c = lib.pem_trace__info(self._open()).contents
        return [(text(c.gaps[i].source), text(c.gaps[i].reason)) for i in range(c.gap_count)]

    @property
    def balance(self):
        """produced, delivered, discarded and overwritten, over all events: a dict."""
        c = lib.pem_trace__total_balance(self._open())
        return {name: getattr(c, name) for name, _ in c._fields_}

    def event_balance(self, event):
        """As balance, of one event."""
        c = lib.pem_trace__event_balance(self._open(), event._address)
        return {name: getattr(c, name) for name, _ in c._fields_}

    @property
    def producers(self):
        """Who recorded: a Producer each, pid 0 being the kernel or the recorder."""
        found = []
        for i in range(lib.pem_trace__producer_count(self._open())):
            c = lib.pem_trace__producer(self._open(), i).contents
            balance = {name: getattr(c.balance, name) for name, _ in c.balance._fields_}
            found.append(Producer(c.pid, text(c.name), balance, c.start_clock))
        return found

    @property
    def losses(self):
        """Times in which records were lost, as far as the trace was read: a Loss each."""
        found = []
        for i in range(lib.pem_trace__loss_count(self._open())):
            c = _c.Loss()
            if lib.pem_trace__loss(self._open(), i, c) == 0:
                found.append(Loss(*(getattr(c, name) for name in Loss._fields)))
        return found

    @property
    def torn_packets(self):
        """Packets that were cut, and are left out."""
        return lib.pem_trace__torn_packets(self._open())

    def read_ahead(self):
        """Let another thread read ahead of this one."""
        result = lib.pem_trace__read_ahead(self._open())
        if result < 0:
            raise Error(-result, os.strerror(-result))

    @staticmethod
    def recover(directory):
        """Complete the trace of a recorder that was killed."""
        why = _c.Error()
        result = lib.pem_trace__recover(os.fsencode(directory), why)
        if result < 0:
            raise Error(-result, text(why.text))

    @staticmethod
    def unpack(directory, to):
        """Copy a trace, with its streams decompressed."""
        why = _c.Error()
        result = lib.pem_trace__unpack(os.fsencode(directory), os.fsencode(to), why)
        if result < 0:
            raise Error(-result, text(why.text))

    @property
    def events(self):
        """Every event that the trace could hold."""
        model = lib.pem_trace__model(self._open())
        return [self._events[lib.pem_model__event(model, i)] for i in range(lib.pem_model__count(model))]

    def process_name(self, pid):
        """Name of a process as last seen up to the current record, or ''."""
        return text(lib.pem_trace__process_name(self._open(), pid))

    def thread_name(self, tid):
        """Name of a thread as last seen up to the current record, or ''."""
        return text(lib.pem_trace__thread_name(self._open(), tid))
