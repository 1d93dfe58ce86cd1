# SPDX-License-Identifier: LGPL-2.1-or-later
"""
_checks - what was wrong with a call, as a sentence: checks of arguments that ctypes would take, and errors of C's functions
"""
import ctypes
import errno
import os
import re

from ._model import Error, text

# For calls that give no sentence: what an errno of theirs means, and the next step.
OBSERVED_BY_EIGHT = {errno.EUSERS: "eight sessions observe this process already: end one of them"}
ENABLE_LOG = {**OBSERVED_BY_EIGHT, errno.EINVAL: "the log is finished, and a session has one: open another session"}
READ_KEPT = {errno.EINVAL: "the set has no event of this number",
             errno.ENODATA: "the statistics do not keep this: register them with keep=pemapi.HISTOGRAM or pemapi.TOP"}
KEEP = {errno.EINVAL: "nothing can be kept: name an attribute, and keep of pemapi.VARIANCE, HISTOGRAM and TOP",
        errno.ENOTSUP: "all of these events are counters, which keep nothing more",
        errno.ENOSPC: "the session keeps more of 16 events already: make a set of fewer"}
SAMPLE_PAGES = {errno.EINVAL: "page sampling takes an interval of 1000 us or more, and regions of a power of two from 4096 to 2**40 bytes",
                errno.EBUSY: "a handle of the session was enabled already: call set_page_sampling() before"}
BUDGET = {errno.EINVAL: "a budget is a share of the programs' CPU time, from 0 (no limit) to 1"}

_NAMES_IN_C = re.compile(r"\bpem_(\w+?)__(?:register_)?(\w+)\(\)")


def sentence(why):
    """A sentence of the library's, with this module's names of its functions."""
    said = _NAMES_IN_C.sub(lambda m: "%s.%s()" % (m[1].title().replace("_", ""), m[2]), text(why.text))
    return said.replace("struct pem_session_options: ", "option ")


def check(result, why=None, reasons=None):
    if result < 0:
        said = sentence(why) if why is not None else (reasons or {}).get(-result)
        raise Error(-result, said or os.strerror(-result))
    return result


def made(handle, why):
    if not handle:
        code = ctypes.get_errno()
        raise Error(code, sentence(why) or os.strerror(code))
    return handle


def unsigned(bits=32, **numbers):
    """Refuse a number that C's type can't hold: ctypes takes it for another one."""
    for name, number in numbers.items():
        if not isinstance(number, int):
            raise TypeError("%s is %r: it is a whole number" % (name, number))
        if not 0 <= number < 1 << bits:
            raise ValueError("%s is %d: it is a number from 0 to %d" % (name, number, (1 << bits) - 1))


def text_of(name, value):
    """The bytes of a text that the caller gave for name."""
    if not isinstance(value, str):
        raise TypeError("%s is %r: it is a text, as 'OS::Sched::*'" % (name, value) if name == "a pattern" else
                        "%s is %r: it is a text" % (name, value))
    return value.encode()


def called(function):
    if not callable(function):
        raise TypeError("function is %r, which can't be called: give a function of one argument, the record" % (function,))
    return function
