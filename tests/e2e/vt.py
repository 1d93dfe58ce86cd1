# SPDX-License-Identifier: MIT
"""
vt - a program on a terminal of its own, for tests: keys go in, and what its screen then shows comes out

The terminal is pyte's (python3-pyte), an emulator that somebody else wrote; it neither repeats characters nor scrolls by lines, as an xterm does.
"""
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

from patience import HANG_S
from tap import skip

try:
    import pyte
except ImportError:
    sys.path.append("/usr/lib/python3/dist-packages")  # another python3 than the distribution's
    try:
        import pyte
    except ImportError:
        pyte = None

KEYS = {"up": "\x1b[A", "down": "\x1b[B", "enter": "\r", "escape": "\x1b", "tab": "\t", "backspace": "\x7f", "end": "\x1b[4~",
        "home": "\x1b[1~"}


class Terminal:
    """A command on a terminal of columns times lines. env is added to the environment; None removes."""

    def __init__(self, command, columns=80, lines=24, term="linux", env=None):
        if pyte is None:
            skip("no terminal emulator for Python: make deps installs python3-pyte")
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes, self.status, self.raw = 0, None, b""
        environment = dict(os.environ, TERM=term, **{k: v for k, v in (env or {}).items() if v is not None})
        for name in [k for k, v in (env or {}).items() if v is None] + ["COLUMNS", "LINES"]:
            environment.pop(name, None)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
                os.execvpe(command[0], command, environment)
            finally:
                os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(self.pid, signal.SIGKILL)  # so young that it leads no group yet
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def read(self, seconds):
        """Take in what comes within so long. False: the program has closed the terminal."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                return True
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.bytes += len(data)
            self.raw += data
            self.stream.feed(data)
        return True

    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def text(self):
        return "\n".join(self.lines())

    def until(self, condition, what, seconds=HANG_S):
        """Read until condition(text of the screen) holds; its value."""
        end, alive = time.monotonic() + seconds, True
        while time.monotonic() < end and alive:
            alive = self.read(0.05)
            value = condition(self.text())
            if value:
                return value
        raise AssertionError("%s: not on the screen after %g s, but this:\n%s" % (what, seconds, self.text()))

    def shows(self, word, seconds=HANG_S):
        self.until(lambda text: word in text, "'%s'" % word, seconds)

    def press(self, *keys):
        """Keys by their names, or text as it is."""
        for key in keys:
            os.write(self.fd, KEYS.get(key, key).encode())
            self.read(0.1)

    def resize(self, columns, lines):
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def end(self, seconds=HANG_S):
        """Wait for the program's end; its exit status (minus a signal)."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
        raise AssertionError("still running after %g s, its screen:\n%s" % (seconds, self.text()))
