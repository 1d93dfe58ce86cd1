# SPDX-License-Identifier: MIT
"""
settings_agent.py - configuration agents (agents/settings) in a process of their own

Not here: tests.
"""
import contextlib
import os
import subprocess

from tap import BUILD, equal, start, tmp

PROGRAM = BUILD + "/programs/settings"


class Agent:
    """targets: (way, name, key, in) each."""

    def __init__(self, folder, targets, **more):
        self.child = start([PROGRAM, folder] + [word for target in targets for word in target], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, text=True, **more)
        self.opened = self.child.stdout.readline().strip()

    def say(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def apply(self, *values):
        return self.say("\t".join("?" if value is None else str(value) for value in values))

    def restore(self):
        return self.say("restore")

    def end(self):
        self.child.stdin.close()
        equal(self.child.wait(60), 0, "status of the agent")

    def kill(self):
        self.child.kill()
        self.child.wait(60)


def opened(where):
    """What an agent that opens a folder says; it ends again."""
    one = Agent(where, [])
    one.child.communicate()
    return one.opened


def folder():
    """A folder for an agent's journal."""
    made = os.path.join(tmp(), "journal")
    os.mkdir(made, 0o700)
    return made


@contextlib.contextmanager
def agent(*targets, where=None, **more):
    """A running agent, which has restored everything at the end."""
    one = Agent(where or folder(), targets, **more)
    yield one
    equal(one.restore(), "0", "restored")
    one.end()
