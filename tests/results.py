# SPDX-License-Identifier: MIT
"""
results.py - what a test program says, taken line by line: TAP 13, as cmocka and tests/tap.py print it

Not here: running the program (tests/run, tests/guest).
"""
import re

RESULT = re.compile(r"^(not )?ok\b\s*(\d+)?\s*(?:- )?(.*)$")
SKIP = re.compile(r"#\s*skip\b:?\s*(.*)$", re.IGNORECASE)
BETWEEN_LINES = 200
PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*(.*))?$")


class Results:
    """What came of one test program. name: of the program; wanted: whether a test, by its name, counts."""

    def __init__(self, name, wanted=lambda test: True):
        self.name, self.wanted_test = name, wanted
        self.passed, self.failed, self.skipped = [], [], []  # names; (test, details); (test, reason)
        self.planned, self.seen, self.pending = None, 0, []
        self.open = None  # details of the failure just reported: what follows explains it
        self.unasked = False  # a test that does not count failed
        self.between = []  # what was said by tests that passed: a sanitizer's report, maybe

    def line(self, line):
        """Take one line of output. True if it was a test's result."""
        plan, result = PLAN.match(line), RESULT.match(line)
        if plan:
            self.planned = int(plan.group(1))
            if plan.group(2) and not self.planned:
                self.skipped.append((self.name, plan.group(2)))
        elif result:
            self._result(result)
            return True
        elif not line.startswith("TAP version"):
            self.pending.append(line)
            if self.open is not None:
                self.open.append(line)
        return False

    def _result(self, result):
        self.seen += 1
        name, details, self.pending = result.group(3), self.pending, []
        self.between = (self.between + details)[-BETWEEN_LINES:]
        explained, self.open = self.open is not None, None
        skip = SKIP.search(name)
        if skip:
            reason = skip.group(1)
            name = name[:skip.start()].strip(" -")
        if not self.wanted_test(name):
            self.unasked = self.unasked or bool(result.group(1))
            return
        if skip:
            # cmocka puts the test's name after SKIP and has no reason: then the line before says it
            if not name:
                name, reason = reason, ""
            self.skipped.append((name, reason or " ".join(details[-1:]).lstrip("# ") or "no reason given"))
        elif result.group(1):
            self.open = [] if explained else details
            self.failed.append([name, self.open])
        else:
            self.passed.append(name)

    def end(self, status, overdue=None):
        """The program ended: is what it said all it had to say? overdue: why it was killed, if it was."""
        trailing, self.pending = self.pending, []
        if overdue:
            self.failed.append(["test %d" % (self.seen + 1), trailing + ["killed: " + overdue]])
        elif status == 77 and not self.seen:
            self.skipped.append((self.name, " ".join(trailing[-1:]).lstrip("# ") or "no reason given"))
        elif self.planned is None and status == 0 and not self.seen:
            self.failed.append(["(program)", trailing + ["it ran no test"]])
        elif self.planned is not None and self.seen != self.planned:
            self.failed.append(["test %d" % (self.seen + 1),
                                trailing + ["planned %d tests, %d reported; %s" % (self.planned, self.seen, said(status))]])
        elif status and not self.failed and not self.unasked:
            self.failed.append(["(program)", self.between + trailing + ["every test passed, but " + said(status)]])


def said(status):
    return "ended by signal %d" % -status if status < 0 else "exit status %d" % status
