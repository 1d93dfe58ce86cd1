# SPDX-License-Identifier: LGPL-2.1-or-later
"""
agent - the loop of an agent in Python: observe, model, decide, apply, validate, keep or withdraw

    from pemapi import agent

    class Large(agent.Agent):
        name = "example"
        def observe(self, run, session): ...
        def model(self, run, session): run.propose("heap", "glibc.malloc.hugetlb=1", predicted=5)
        def apply(self, run, directive): run.set_variable("GLIBC_TUNABLES", directive.text)

    print(Large().run(["python3", "work.py"]).status)

pem/agent.h is the contract; this is ctypes over libpem-agent. examples/agent.py is a whole agent.
"""
import ctypes
import os
import traceback
from ctypes import CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_void_p

from . import _c, _place
from ._model import text
from ._session import Session

PURPOSES = ("alone", "observed", "treated", "control")  # enum pem_agent_purpose
VERDICTS = ("faster", "equal", "slower", "unclear")  # enum pem_agent_verdict
STATES = ("proposed", "on trial", "kept", "withdrawn")  # enum pem_db_state
_LEVEL = {"error": 0, "warning": 1, "info": 2}


class _Directive(_c.Sized):
    _fields_ = [("size", c_size_t), ("id", c_int64), ("application", c_int64), ("machine", c_int64), ("agent", c_char * 32),
                ("subject", c_char * 192), ("text", c_char * 1024), ("state", c_int64), ("rank", c_int64), ("predicted", c_double),
                ("predicted_low", c_double), ("predicted_high", c_double), ("gain", c_double), ("cost_bytes", c_int64),
                ("began_ns", c_int64), ("reason", c_char * 160)]


_Observe = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
_Apply = CFUNCTYPE(c_int, c_void_p, POINTER(_Directive), c_void_p)


class _Ops(_c.Sized):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("observe", _Observe), ("model", _Observe), ("apply", _Apply),
                ("ended", c_void_p), ("ready", c_void_p), ("act", c_void_p)]


class _Options(_c.Sized):
    _fields_ = [("size", c_size_t), ("database", c_char_p), ("gain_min", c_double), ("trials_max", c_uint32),
                ("preload_libc", c_uint32), ("log", _c.LogFunction), ("log_arg", c_void_p), ("apply_always", c_uint32), ("exec_alone", c_uint32),
                ("by_arguments", c_uint32)]


class _Report(_c.Sized):
    _fields_ = [("size", c_size_t), ("purpose", c_uint32), ("verdict", c_uint32), ("run", c_int64), ("seconds", c_double),
                ("gain", c_double), ("gain_low", c_double), ("gain_high", c_double), ("treated", c_uint32),
                ("controls", c_uint32), ("directives", c_uint32), ("kept", c_uint32), ("excluded", c_uint32),
                ("interrupted", c_uint32), ("waited", c_double)]

# Held against the headers by tests/e2e/consumer_python.py.
STRUCTURES = {"pem_db_directive": _Directive, "pem_agent_ops": _Ops, "pem_agent_options": _Options, "pem_agent_report": _Report}


def _load():
    """libpem-agent, which is built where SQLite and libelf are at hand."""
    beside = os.path.join(os.path.dirname(_place.LIBRARY), "libpem-agent.so.1")
    try:
        found = ctypes.CDLL(beside if os.path.exists(beside) else "libpem-agent.so.1")
    except OSError as why:
        raise ImportError("pemapi.agent needs libpem-agent.so.1, which is built with libsqlite3-dev and libelf-dev at hand: %s"
                          % why) from None
    found.pem_agent__run.argtypes = [POINTER(_Ops), c_void_p, POINTER(c_char_p), POINTER(_Options), POINTER(_Report),
                                     POINTER(_c.Error)]
    found.pem_agent__set_variable.argtypes = [c_void_p, c_char_p, c_char_p]
    found.pem_agent__propose.argtypes = [c_void_p, POINTER(_Directive)]
    found.pem_agent__note.argtypes = [c_void_p, c_char_p, c_char_p, c_double, c_int]
    found.pem_agent__say.argtypes = [c_void_p, c_int, c_char_p, c_char_p]
    found.pem_agent__say.restype = None
    return found


_lib = _load()


def _check(result):
    if result < 0:
        raise OSError(-result, os.strerror(-result))


class Directive:
    """What an agent would do: subject, text, rank, predicted, predicted_low, predicted_high, gain, cost_bytes, state, reason."""

    def __init__(self, c):
        for name in ("rank", "predicted", "predicted_low", "predicted_high", "gain", "cost_bytes"):
            setattr(self, name, getattr(c, name))
        for name in ("subject", "text", "reason"):
            setattr(self, name, text(getattr(c, name)))
        self.state = STATES[c.state]


class Run:
    """This run of the command, while one of the agent's functions is called."""

    def __init__(self, handle):
        self._handle = handle

    def set_variable(self, name, value):
        """Set a variable of the command's environment; None takes it away."""
        _check(_lib.pem_agent__set_variable(self._handle, name.encode(), None if value is None else os.fsencode(value)))

    def propose(self, subject, what, rank=1, predicted=0.0, low=0.0, high=0.0, cost_bytes=0):
        """Propose a directive: what it is about, what to do, the gain it should bring in % with its interval, memory it needs."""
        _check(_lib.pem_agent__propose(self._handle, _Directive(
            subject=subject.encode(), text=what.encode(), rank=rank, predicted=predicted, predicted_low=low,
            predicted_high=high, cost_bytes=cost_bytes)))

    def note(self, name, unit, value, origin=0):
        """Note a number about this run; origin: 0 measured, 1 sampled, 2 simulated."""
        _check(_lib.pem_agent__note(self._handle, name.encode(), unit.encode(), value, origin))

    def say(self, sentence, level="info"):
        """Tell the user."""
        _lib.pem_agent__say(self._handle, _LEVEL[level], b"%s", sentence.encode())


class Report:
    """What came of a run: status of the command, purpose, verdict, run, seconds, waited of them for a CPU, gain with interval, treated, controls, kept, excluded, interrupted."""

    def __init__(self, status, c):
        self.status, self.purpose, self.verdict = status, PURPOSES[c.purpose], VERDICTS[c.verdict]
        for name in ("run", "seconds", "waited", "gain", "gain_low", "gain_high", "treated", "controls", "directives", "interrupted"):
            setattr(self, name, getattr(c, name))
        self.kept, self.excluded = bool(c.kept), bool(c.excluded)


class Agent:
    """An agent: derive from it, with a name of at most 31 bytes. An exception in a function lets the command run alone."""
    name = None

    def observe(self, run, session):
        """The command is about to be observed: enable handles of the session."""
        raise NotImplementedError

    def model(self, run, session):
        """The observed command has ended: read the handles, and propose directives."""
        raise NotImplementedError

    def apply(self, run, directive):
        """The command is about to be started with this directive."""
        raise NotImplementedError

    def _guard(self, function, handle, *arguments):
        try:
            function(Run(handle), *arguments)
            return 0
        except Exception as why:  # pylint: disable=broad-except
            frames = traceback.extract_tb(why.__traceback__)
            own = [frame for frame in frames if os.path.dirname(frame.filename) != os.path.dirname(__file__)]
            where = (own or frames)[-1]
            Run(handle).say("%s of %s: %s (%s:%d)" % (function.__name__, self.name, why or type(why).__name__,
                                                      os.path.basename(where.filename), where.lineno), "warning")
            return -5

    def run(self, command, database=None, gain_min=0.0, trials_max=0, preload_libc=True, log=None):
        """
        Run a command (a list of words) once under the agent. database: a path or URL; None: the user's own. log: a function of
        (level, sentence). Returns a Report; OSError: the command was not started.
        """
        words = [os.fsencode(word) for word in command]
        argv, why, report, session = (c_char_p * (len(words) + 1))(*words), _c.Error(), _Report(), []

        def observe(handle, of, _):
            session.append(Session._borrowed(of))  # pylint: disable=protected-access
            return self._guard(self.observe, handle, session[0])

        ops = _Ops(name=self.name.encode(), observe=_Observe(observe),
                   model=_Observe(lambda handle, *_: self._guard(self.model, handle, session[0])),
                   apply=_Apply(lambda handle, d, _: self._guard(self.apply, handle, Directive(d.contents))))
        said = _c.LogFunction(lambda level, sentence, _: log(_c.LOG_LEVELS[level], text(sentence))) if log else _c.LogFunction()
        options = _Options(database=None if database is None else os.fsencode(database), gain_min=gain_min,
                           trials_max=trials_max, preload_libc=preload_libc, log=said)
        status = _lib.pem_agent__run(ops, None, argv, options, report, why)
        for of in session:
            of.close()
        if status < 0:
            raise OSError(-status, text(why.text))
        return Report(status, report)
