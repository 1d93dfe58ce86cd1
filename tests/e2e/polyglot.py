# SPDX-License-Identifier: MIT
"""
polyglot.py - one program in six languages raises the same events into one trace: every field, as it was sent

The trace is read by pem and by babeltrace2, and each is compared with what the programs (tests/programs/polyglot.*)
are to send. A language without compiler here is skipped, and the others are compared all the same.
"""
import atexit
import os
import re
import shutil
import tempfile

from probe_trace import PROGRAMS, report, rows
from tap import PEM, equal, need, run, run_all, skip, test

COUNT = 40
LANGUAGES = {"c": 1, "cxx": 2, "fortran": 3, "java": 4, "python": 5, "rust": 6}
NEEDS = {"cxx": "g++", "fortran": "gfortran", "java": "javac and its jni.h", "rust": "rustc"}
EVENTS = ("WorkBegin", "Numbers", "Texts", "Shapes", "WorkEnd")


def command(language):
    """What runs a language's program, or None: it was not built."""
    java = os.path.join(PROGRAMS, "java")
    if language == "java":
        words = ["java", "-XX:TieredStopAtLevel=1", "-Djava.library.path=" + java, "-cp", java, "Polyglot"]
        return words if os.path.exists(java + "/Polyglot.class") and shutil.which("java") else None
    if language == "python":
        return ["python3", os.path.join(PROGRAMS, "python", "polyglot.py")]
    path = os.path.join(PROGRAMS, "polyglot" if language == "c" else "polyglot_" + language)
    return [path] if os.path.exists(path) else None


COMMANDS = {language: command(language) for language in LANGUAGES}


def sent(language, i):
    """What one turn of the loop raises: {event: {field: value}}."""
    low = {"language": LANGUAGES[language]}
    big = i * 1000000007
    return {
        "WorkBegin": {**low, "piece": i},
        "Numbers": {**low, "i8": -(i % 100), "u8": i % 256, "i16": -(i % 30000), "u16": i % 65536,
                    "i32": -(i % 1000000) * 2, "u32": i * 3, "i64": -big, "u64": big, "f32": i / 4, "f64": i / 8,
                    "place": 0x1000 + i * 16, "access": i % 8},
        "Texts": {**low, "name": "näme-%d" % i, "samples": [k * i - 4 for k in range(i % 9)], "tail": "t%d" % (i % 10)},
        "Shapes": {**low, "box.color": i % 256, "box.low.x": i * 0.5, "box.low.y": i * 0.25, "box.high.x": i * 1.5,
                   "box.high.y": i * 1.25, "weights": [i % 1000 + k for k in range(3)], "after": i},
        "WorkEnd": {**low, "piece": i},
    }


# --- one recording of all programs ---

_trace = None


def trace():
    """Recorded once for all tests: where it lies."""
    global _trace
    if not _trace:
        folder = tempfile.mkdtemp(prefix="pem-test-")
        atexit.register(shutil.rmtree, folder, True)
        script = "\n".join(" ".join("'%s'" % word for word in words + [str(COUNT)]) + " || exit 9"
                           for words in COMMANDS.values() if words)
        rc, out, err = run([PEM, "record", "-q", "--no-libc", "-e", "APP", "-o", folder + "/t", "--", "sh", "-c", script])
        equal((rc, out, err), (0, "", ""), "status, output, errors of the recorded programs")
        _trace = folder + "/t"
    return _trace


def check(language, events):
    """events: [(name, {field: value})] of a language, in order of time."""
    wanted = [("APP::Polyglot::" + name, fields) for i in range(COUNT) for name, fields in
              ((e, sent(language, i)[e]) for e in EVENTS)]
    for got, want in zip(events, wanted):
        equal(got, want, "event of language %s" % language)
    equal(len(events), len(wanted), "events of language %s" % language)


# --- as pem's reader has it ---

def cell(text, like):
    """A CSV cell as a value of the type of another."""
    if isinstance(like, list):
        return [int(word) for word in text.split()]
    if isinstance(like, str):
        return text
    return float(text) if isinstance(like, float) else int(text, 0)


COLUMNS = ("clock", "time_ns", "layer", "event", "pid", "tid", "cpu", "process", "process_start_ns", "thread_start_ns")
_rows = {}


def seen_by_pem(language):
    types = sent(language, 1)
    if not _rows:
        for row in rows(trace()):
            _rows.setdefault(int(row["language"]), []).append(row)
    events = []
    for row in _rows.get(LANGUAGES[language], []):
        like = types[row["event"].split("::")[2]]
        events.append((row["event"], {f: cell(row[f], value) for f, value in like.items()}))
        rest = [f for f, text in row.items() if text and f not in like and f not in COLUMNS]
        assert not rest, "%s has more fields: %r" % (row["event"], rest)
    return events


# --- as babeltrace2 prints it ---

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[{}\[\](),=:|]|<unknown>|[^\s{}\[\](),=:|]+)')
LINE = re.compile(r"\[\d+\] \(\S+\) \S+ (\S+): \{ .*? \}, (\{ .* \})")


class Text:
    """babeltrace2's pretty form of a structure, read by descent."""

    def __init__(self, text):
        self.tokens, self.at = TOKEN.findall(text), 0

    def take(self, *wanted):
        token = self.tokens[self.at]
        assert not wanted or token in wanted, "babeltrace2 has %r where %r belongs" % (token, wanted)
        self.at += 1
        return token

    def value(self):
        token = self.take()
        if token == "{":
            return self.structure()
        if token == "[":
            return self.elements()
        if token == "(":
            return self.labelled()
        if token[0] == '"':
            return token[1:-1]
        return float(token) if re.search(r"[.einf]", token) and not token.startswith("0x") else int(token, 0)

    def structure(self):
        fields = {}
        while self.tokens[self.at] != "}":
            name = self.take()
            self.take("=")
            fields[name] = self.value()
            if self.tokens[self.at] == ",":
                self.take()
        self.take("}")
        return fields

    def elements(self):
        values = []
        while self.tokens[self.at] != "]":
            self.take("[")
            self.take(str(len(values)))
            self.take("]")
            self.take("=")
            values.append(self.value())
            if self.tokens[self.at] == ",":
                self.take()
        self.take("]")
        return values

    def labelled(self):
        """An enum's value: the number is what counts."""
        while self.take() != "container":
            pass
        self.take("=")
        value = self.value()
        self.take(")")
        return value


def flat(fields, prefix=""):
    """{'box': {'low': ..}} -> {'box.low': ..}; the lengths that stand before lists are left out."""
    found = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            found.update(flat(value, prefix + name + "."))
        elif not (name.endswith("_length") and isinstance(fields.get(name[:-7]), list)):
            found[prefix + name] = value
    return found


_lines = {}


def seen_by_babeltrace(language):
    need("babeltrace2")
    if not _lines:
        rc, out, err = run(["babeltrace2", "--clock-cycles", trace()])
        equal((rc, err), (0, ""), "babeltrace2's status and complaints")
        for line in out.splitlines():
            match = LINE.fullmatch(line)
            assert match, "a line of babeltrace2 has another form: " + line
            fields = flat(Text(match[2]).value())
            _lines.setdefault(fields["language"], []).append((match[1], fields))
    return _lines.get(LANGUAGES[language], [])


def make_test(language):
    def compare():
        if not COMMANDS[language]:
            skip("not built: %s is missing" % NEEDS.get(language, "its program"))
        check(language, seen_by_pem(language))
        check(language, seen_by_babeltrace(language))
    compare.__doc__ = "%s: every field arrives as sent, in pem and in babeltrace2" % language
    return compare


for one in LANGUAGES:
    test(make_test(one))


@test
def balance():
    "the trace holds what all programs raised, each its own process, and balances"
    ran = sum(1 for words in COMMANDS.values() if words)
    total = ran * COUNT * len(EVENTS)
    equal(report(trace())["events"], {"produced": total, "delivered": total, "discarded": 0, "overwritten": 0}, "balance")
    equal(len({row["pid"] for row in rows(trace())}), ran, "processes")


run_all()
