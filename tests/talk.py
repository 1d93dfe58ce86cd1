# SPDX-License-Identifier: MIT
"""talk: a command of a session, with pipes to its standard input and output"""
import os


class Talk:
    """out: the command's standard output, to read."""

    def __init__(self):
        self._input, self._write = os.pipe()
        read, self._output = os.pipe()
        self.out = os.fdopen(read)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.out.close()
        os.close(self._write)

    def run(self, session, command, **options):
        """Start the command in the session. Once: its ends of the pipes are closed here."""
        saved = [os.dup(0), os.dup(1)]
        os.dup2(self._input, 0)
        os.dup2(self._output, 1)
        try:
            session.run(command, **options)
        finally:
            for fd, before in enumerate(saved):
                os.dup2(before, fd)
                os.close(before)
            os.close(self._input)
            os.close(self._output)

    def answer(self, text):
        os.write(self._write, text.encode())
