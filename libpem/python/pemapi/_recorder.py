# SPDX-License-Identifier: LGPL-2.1-or-later
"""
_recorder - flight recorders of this user's, in whatever process, and what they hold
"""
import os

from . import _c
from ._c import lib
from ._model import Error, text


class Recorder:
    """
    A flight recorder: a Session with overwrite and a log, or pem record --flight. pid; is_running: False if it was killed;
    session: its name; command: what it records, '' if it did not start it; trace: where its log will be.
    """

    def __init__(self, c):
        self._c = c
        self.pid, self.is_running = c.pid, bool(c.is_running)
        self.session, self.command, self.trace = text(c.session), text(c.command), os.fsdecode(c.trace)

    def __repr__(self):
        return "<recorder %s of %s>" % (self.session, self.command or "what runs")

    def snapshot(self, directory, cause=None, timeout_ms=30000):
        """
        Have it write what it holds now as a trace, to a directory that is made, or is empty; cause: a few words noted in it.
        It does so where it polls: in this process that has to be another thread.
        """
        why = _c.Error()
        result = lib.pem_recorder__snapshot(self._c, os.fsencode(directory), cause and cause.encode(), timeout_ms, why)
        if result < 0:
            raise Error(-result, text(why.text) or os.strerror(-result))


def recorders():
    """All flight recorders there are now, a Recorder each."""
    n = 0
    while True:  # more may come between two calls
        room = _c.Recorder.room(n)
        found = lib.pem_recorders(room, n)
        if found < 0:
            raise Error(-found, os.strerror(-found))
        if found <= n:
            return [Recorder(_c.Recorder.from_buffer_copy(c)) for c in room[:found]]
        n = found
