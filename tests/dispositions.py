# SPDX-License-Identifier: MIT
"""
dispositions.py - signals of a runner of tests: as a terminal's programs have them, whatever started the runner

Not here: what a test does with signals.
"""
import signal


def usual():
    """
    No signal is ignored or blocked that a shell's & or nohup ignores: programs inherit that, and a test could
    interrupt none. SIGINT raises KeyboardInterrupt here. Programs don't inherit a handler.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
