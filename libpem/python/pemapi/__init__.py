# SPDX-License-Identifier: LGPL-2.1-or-later
"""
pemapi - PEMAPI in Python: statistics, callbacks and logs over the events of every layer, while programs run

    import pemapi

    with pemapi.Session() as session:
        stats = session.statistics(session.events("OS::Syscall::Enter"))
        with stats:
            session.run(["ls", "-R", "/usr"])
            session.wait()
        print(stats.read()[0].count)

    for record in pemapi.Trace("pem-trace-ls-1"):
        print(record.time_ns, record.pid, record)

It is ctypes over libpem and nothing else, and adds no meaning of its own: pem/pem.h is the contract. Import it before modules
that pem-codegen made (pem_NAME): they register with the library that this one loads. Any thread may use any of it.
"""
from ._c import lib as _lib
from ._model import Error, Event, Field, Record
from ._recorder import Recorder, recorders
from ._session import (HISTOGRAM, TOP, VARIANCE, Callback, Context, Counts, EventSet, Log, Part, Process, Session, Source,
                       Statistic, Statistics, drop_capabilities, run_exec, runtime_dir)
from ._trace import Loss, Producer, Trace

__all__ = ["Session", "Context", "EventSet", "Statistics", "Statistic", "Part", "Process", "Source", "Callback", "Counts", "Log",
           "Trace", "Producer", "Loss", "Record", "Event", "Field", "Error", "Recorder", "VARIANCE", "HISTOGRAM", "TOP", "clock_hz", "recorders",
           "drop_capabilities", "run_exec", "runtime_dir"]

__version__ = _lib.pem_version().decode()


def clock_hz():
    """Rate of the clock that records carry, in Hz."""
    return _lib.pem_clock__hz()
