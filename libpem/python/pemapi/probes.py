# SPDX-License-Identifier: MIT
"""
probes - enclosing probes for Python: what the code in a 'with' takes, recorded as the probes of pem/probe.h are

    from pemapi import probes

    with probes.lat(7):          # APP::Probe::Lat with id 7, and the cycles
        answer(query)
    with probes.flt(8, sc=10):   # of each tenth execution in this thread, page faults
        load(table)

Where libpem is not in the process, nothing is measured. Each end of a probe is a call by ctypes, some tenths of a microsecond. The file
needs nothing else of pemapi: a program may have a copy of it.
"""
import ctypes as _ctypes

__all__ = ["cnt", "lat", "tpt", "flt", "ctxsw", "llc", "perfcntr", "set_perfcntr"]


def _find(name):
    try:
        return getattr(_ctypes.PyDLL(None), name)
    except (AttributeError, OSError):
        return lambda *_: 0


_enter, _leave, _set_counter = map(_find, ("pem_probe__enter", "pem_probe__leave", "pem_probe__set_counter"))


class _Probe:
    """To be entered and left in one thread; it may be entered again, also while it is open."""
    __slots__ = ("_by", "_id", "_sc")

    def __init__(self, by, id, sc):
        self._by, self._id, self._sc = by, id, sc

    def __enter__(self):
        _enter(self._by, self._id, self._sc)
        return self

    def __exit__(self, *_error):
        _leave(self._by, self._id)


def _kind(by, doc):
    def make(id, sc=1):
        return _Probe(by, id, sc)
    make.__doc__ = doc + " id: the probe's number. sc: how many executions make one record."
    return make


# enum pem_enclosed_by (pem/enclosed.h)
cnt = _kind(0, "Counts executions.")
lat = _kind(1, "Measures cycles.")
tpt = _kind(2, "Counts executions, and adds up their cycles.")
flt = _kind(3, "Counts page faults of the thread.")
ctxsw = _kind(4, "Counts context switches of the thread.")
llc = _kind(5, "Counts misses and references of the last-level cache.")


def perfcntr(counter, id, sc=1):
    """Reads a counter that set_perfcntr named, 0 to 15. id, sc: as of the others."""
    return _Probe(6 + counter, id, sc)


def set_perfcntr(counter, event, mask=0):
    """Say what a counter counts: the processor's own numbers of event and mask. False: there is no such counter."""
    return _set_counter(counter, event, mask) == 0
