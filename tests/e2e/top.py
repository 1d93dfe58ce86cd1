# SPDX-License-Identifier: MIT
"""top: pem top on a terminal, driven by keys and judged by what is on the screen"""
import json
import os
import re
import signal
import termios

from tap import OTHER_USER, PEM, equal, need_reach, run, run_all, skip, start, test, tmp
from vt import Terminal

# pem top --once leaves its command running: this one ends with the tests.
BUSY = ["sh", "-c", "while kill -0 %d 2>/dev/null; do ls / >/dev/null; sleep 0.02; done" % os.getpid()]
EVENTS = "Libc::Malloc,Libc::Free,Libc::Calloc,Libc::Realloc"


class Top(Terminal):
    """pem top, five pictures a second, watching a command; what it leaves running is ended."""

    def __init__(self, *options, command=BUSY, columns=80, lines=24, events=EVENTS, **more):
        self.folder = tmp()
        super().__init__([PEM, "top", "-i", "200", "-o", self.folder + "/output"] + (["-e", events] if events else []) +
                         list(options) + ["--"] + command, columns, lines, **more)

    def rows(self):
        """The list's rows: everything between the titles and the foot."""
        return [line for line in self.lines()[4:-1] if line]

    def names(self):
        return [row.split()[0] if row.startswith("  ") else row for row in self.rows()]

    def histogram(self):
        self.shows("size of APP::Libc::Malloc in bytes")

    def __exit__(self, *error):
        command = self.target()
        super().__exit__(*error)
        if command:
            try:
                os.kill(command, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def target(self):
        found = re.search(rb"pem top: \S+ \((\d+)\)", self.raw)
        return int(found[1]) if found else None


@test
def counts_what_a_predicate_lets_pass():
    "-e 'EVENT where PREDICATE' counts these only, and another event as ever"
    rc, out, err = run([PEM, "top", "-q", "--once", "--json", "-i", "500", "-o", "/dev/null",
                        "-e", "Malloc where size >= 4096,Free", "--"] + BUSY)
    equal(rc, 0, "status, having said " + err)
    events = {e["name"]: e for e in json.loads(out)["events"]}
    malloc = events["APP::Libc::Malloc"]
    assert malloc["count"] > 0 and malloc["mean"] >= 4096, malloc
    assert events["APP::Libc::Free"]["count"] > malloc["count"], events
    rc, _, err = run([PEM, "top", "--once", "-e", "Malloc where sise > 4096", "--", "true"])
    assert rc == 1 and "did you mean 'size'" in err, (rc, err)


@test
def shows_events_by_layer():
    "events stand below their layer, sorted by rate, with numbers that keep to their columns"
    with Top() as top:
        top.until(lambda text: re.search(r"Libc::Malloc +[\d.]+k?/s", text), "a rate of Malloc")
        top.until(lambda text: "Libc::Realloc" in text, "Realloc")
        lines = top.lines()
        assert lines[0].startswith("pem top: sh ("), lines[0]
        equal(re.sub("[▾▴]", "", lines[3]).split(), ["EVENT", "RATE", "SHARE", "TOTAL", "SUM/S", "MEAN"], "titles")
        equal(lines[4].split()[:2], ["-", "APP"], "the layer's row")
        rows = top.rows()[1:]
        end = lines[3].index("RATE▾") + 5
        for row in rows:
            assert row[:end].endswith("/s") and row[end:end + 1] in ("", " "), "RATE does not end at %d: %r" % (end, row)
        assert all(len(line) <= 80 for line in lines), "a line is too long"


@test
def sorts_as_asked():
    "s and < choose the column, r turns the order around"
    with Top() as top:
        top.shows("Libc::Realloc")
        top.press("<")  # before RATE comes NAME
        top.until(lambda text: "EVENT▾" in text, "the mark of the column")
        by_name = [name for name in top.names() if "::" in name]
        equal(by_name, sorted(by_name), "by name")
        top.press("r")
        top.until(lambda text: "EVENT▴" in text, "the mark turned around")
        equal([name for name in top.names() if "::" in name], by_name[::-1], "by name, reversed")


@test
def filters_by_name():
    "/ leaves what contains the text, whatever its case; Esc brings all back"
    with Top() as top:
        top.shows("Libc::Free")
        top.press("/", "MALL")
        top.until(lambda text: "Libc::Free" not in text and "Libc::Malloc" in text, "only Malloc")
        top.shows("filter: MALL")
        top.press("enter")
        top.shows("events, with 'MALL' in the name")
        top.press("escape")
        top.shows("Libc::Free")


@test
def pauses():
    "Space stops the picture, and starts it"
    with Top() as top:
        top.shows("Libc::Malloc")
        top.press(" ")
        top.shows("paused")
        before, sent = top.text(), top.bytes
        top.read(1)
        equal(top.text(), before, "the picture while paused")
        equal(top.bytes, sent, "bytes sent while nothing changed")
        top.press(" ")
        top.until(lambda text: "paused" not in text and text != before, "it goes on")


@test
def drills_down():
    "Enter on an event shows who raised it and a histogram; Tab parts by thread; Esc goes back"
    with Top("-e", "Malloc", events=None) as top:
        top.shows("Libc::Malloc")
        top.press("down", "enter")
        top.shows("processes of APP::Libc::Malloc")
        top.until(lambda text: re.search(r"^(ls|sh) +\d+ ", text, re.MULTILINE), "a process by its name")
        top.histogram()
        top.until(lambda text: re.search(r"\d+ B to +\d+ B +[\d.]+k? +[█▏▎▍▌▋▊▉]", text), "a bar of the histogram")
        top.press("tab")
        top.shows("threads of APP::Libc::Malloc")
        top.until(lambda text: re.search(r"^(ls|sh) +\d+ +(\d+|ended) ", text, re.MULTILINE), "a thread")
        top.press("escape")
        top.until(lambda text: text.split("\n")[2] == "events", "the events again")


@test
def processes_and_threads():
    "Tab and 1, 2, 3 show processes and threads; Enter on one its events"
    with Top() as top:
        top.shows("Libc::Malloc")
        top.press("tab")
        top.until(lambda text: text.split("\n")[2] == "processes" and re.search(r"^sh +\d+ ", text, re.MULTILINE), "sh")
        top.press("tab")
        top.until(lambda text: text.split("\n")[2] == "threads", "threads")
        top.press("2", "/", "sh", "enter", "enter")
        top.until(lambda text: re.match(r"events of process \d+", text.split("\n")[2]), "events of a process")
        top.press("escape", "1")
        top.until(lambda text: text.split("\n")[2] == "events", "events")


@test
def folds_layers():
    "f folds the layer of the marked row, F all"
    with Top() as top:
        top.shows("Libc::Malloc")
        top.press("f")
        top.until(lambda text: "+ APP" in text and "Libc" not in text, "a folded layer")
        top.press("F")
        top.until(lambda text: "+ APP" in text, "all folded")
        top.press("F")
        top.until(lambda text: "- APP" in text and "Libc::Malloc" in text, "all unfolded")


@test
def shows_zeros_and_help():
    "z also shows what did not come; ? the keys, any key goes back"
    with Top("-e", "Mmap", command=["sleep", "60"]) as top:
        top.shows("events")
        top.press("z")
        top.until(lambda text: re.search(r"Libc::Mmap +0/s", text), "an event that did not come")
        top.press("?")
        top.shows("by event, by process, by thread")
        top.press("x")
        top.until(lambda text: "any key goes back" not in text and "Libc::Mmap" in text, "the list again")


@test
def any_size():
    "a narrow terminal keeps names and rates; a tiny one does no harm; a wide one gets all columns again"
    with Top() as top:
        top.shows("Libc::Malloc")
        top.resize(40, 12)
        top.until(lambda text: "MEAN" not in text and re.search(r"Libc::Malloc +[\d.]+k?/s", text), "fewer columns")
        equal([line for line in top.lines() if len(line) > 40], [], "lines that are too long")
        for columns, lines in (10, 3), (1, 1), (300, 90):
            top.resize(columns, lines)
            top.read(0.5)
        top.until(lambda text: "MEAN" in text and "Libc::Malloc" in text, "all columns")
        top.press("q")
        equal(top.end(), 0, "exit status")


def attributes(top):
    return termios.tcgetattr(top.fd)[:6]


@test
def ctrl_c_restores_the_terminal():
    "Ctrl-C ends it as q does, and the terminal is as it was"
    for key, wanted in ("\x03", 128 + signal.SIGINT), ("q", 0):
        with Top(command=["sleep", "60"]) as top:
            # What it is like at first can't be read any more: another terminal's is the same.
            with Terminal(["sleep", "60"]) as other:
                plain = attributes(other)
            top.shows("events")
            assert attributes(top) != plain, "the terminal is in no mode of its own"
            top.press(key)
            equal(top.end(), wanted, "exit status")
            equal(attributes(top), plain, "the terminal's attributes after %r" % key)
            assert b"\x1b[?25h" in top.raw[top.raw.rindex(b"events"):], "the cursor does not come back"


@test
def output_does_not_garble():
    "what the command prints goes to a file and not to the screen; the end says where"
    with Top(command=["sh", "-c", "echo GARBLE; echo GARBLE >&2; read x; echo got $?; sleep 0.6; exit 7"]) as top:
        top.shows("ended")
        assert "GARBLE" not in top.text(), top.text()
        top.press("q")
        equal(top.end(), 7, "exit status: the command's")
        with open(top.folder + "/output") as file:
            equal(file.read(), "GARBLE\nGARBLE\ngot 1\n", "the file")
    folder = tmp()
    with Terminal([PEM, "top", "-e", "Malloc", "-i", "200", "--", "echo", "hello"], env={"TMPDIR": folder}) as top:
        top.shows("ended")
        top.press("q")
        equal(top.end(), 0, "exit status")
        name, = os.listdir(folder)
        said = top.raw.decode().replace("\r\n", "\n")
        assert "what echo printed is in %s/%s" % (folder, name) in said, said[-300:]


@test
def colours_and_characters():
    "colours only where they are wanted, and only characters that the locale has"
    colour = re.compile(rb"\x1b\[(?:[\d;]*;)?3[0-7](?:;[\d;]*)?m")
    for env, coloured, wide in (({"NO_COLOR": None}, True, True), ({"NO_COLOR": "1"}, False, True),
                                ({"NO_COLOR": "1", "LC_ALL": "C"}, False, False)):
        with Top(env=env) as top:
            top.shows("Libc::Malloc")
            top.press("down", "enter")
            top.histogram()
            top.until(lambda text: re.search(r"B +[\d.]+k? +[█▏▎▍▌▋▊▉#]", text), "a bar")
            equal(bool(colour.search(top.raw)), coloured, "colours with %r" % env)
            equal(any(byte >= 0x80 for byte in top.raw), wide, "bytes beyond ASCII with %r" % env)


@test
def no_terminal():
    "without a terminal that can do it, a sentence names what can be done instead"
    rc, out, err = run([PEM, "top"])
    equal((rc, out), (2, ""), "status and output without a terminal")
    assert "pem stat -i" in err and "--once" in err, err
    with Terminal([PEM, "top"], term="dumb") as top:
        equal(top.end(), 2, "status on a dumb terminal")
        text = " ".join(top.text().split())  # it wraps where the terminal ends
        assert "TERM=dumb" in text and "pem stat -i" in text, text


@test
def once_for_programs():
    "--once prints a table, with --json an object with threads"
    program = ["sh", "-c", "ls / >/dev/null; ls / >/dev/null"]
    rc, out, err = run([PEM, "top", "--once", "-e", EVENTS, "-o", "/dev/null", "--", *program])
    equal(rc, 0, "exit status, having said: " + err)
    assert re.search(r"^  Libc::Malloc +\S+/s +\S+ +\S+ \S+/s +\S+ \S+$", out, re.MULTILINE), out
    program[2] += "; sleep 3"  # what ended has no name any more
    rc, out, err = run([PEM, "top", "--once", "--json", "-i", "1500", "-e", EVENTS, "-o", "/dev/null", "--", *program])
    equal(rc, 0, "exit status, having said: " + err)
    whole = json.loads(out)
    malloc, = [e for e in whole["events"] if e["name"] == "APP::Libc::Malloc"]
    equal((malloc["layer"], malloc["field"], malloc["unit"]), ("APP", "size", "bytes"), "the event")
    equal(sum(t["count"] for t in malloc["threads"]), malloc["count"], "counts of threads")
    assert malloc["count"] > 20 and malloc["sum"] > malloc["count"], malloc
    assert "sh" in {t["program"] for t in malloc["threads"]}, malloc["threads"]
    assert abs(malloc["rate_hz"] * whole["interval_ns"] / 1e9 - malloc["count"]) < 1, malloc


@test
def attaches():
    "-p watches a process that runs already; without a target, all of the user's programs"
    child = start([PEM, "run", "--"] + BUSY)
    try:
        for options in ["-p", str(child.pid)], ["--program", "sh"], []:
            rc, out, err = run([PEM, "top", "--once", "--json", "-i", "800", "-e", "Malloc", *options])
            equal(rc, 0, "exit status, having said: " + err)
            events = json.loads(out)["events"]
            assert events and events[0]["count"] > 100, "no events with %r: %s, having said %s" % (options, out, err)
            assert "sh" in {thread["program"] for thread in events[0]["threads"]}, out
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    rc, _, err = run([PEM, "top", "--once", "-p", "4194304"])
    equal(rc, 1, "exit status for a process that is not there")


@test
def an_empty_table_has_a_reason():
    "an ordinary user, who sees nothing of the kernel, reads why nothing was counted"
    rc, out, err = run([PEM, "top", "--once", "-a", "-i", "100", "-e", "OS::Sched::Switch"])
    if os.geteuid() == 0:
        need_reach()
        rc, out, err = run(OTHER_USER + [PEM, "top", "--once", "-a", "-i", "100", "-e", "OS::Sched::Switch"],
                           env={"PEM_RUNTIME_DIR": None, "XDG_RUNTIME_DIR": None})
    equal(rc, 0, "status: " + err)
    if "Switch" in out:
        skip("this user may observe the kernel")
    assert "nothing was counted: OS::Sched::Switch: " in err, (out, err)


@test
def wrong_usage():
    "what does not go together is said"
    for options, word in ((["-p", "1", "--", "true"], "take one"), (["--json"], "--once"), (["-i", "5"], "from 50 to 86400000"), (["-i", "86400001"], "from 50 to 86400000"),
                          (["-p", "x"], "no number of a process"), (["-o", "x", "-a"], "there is none")):
        rc, _, err = run([PEM, "top", *options])
        equal(rc, 1, "exit status of %r" % options)
        assert word in err, "%r: %s" % (options, err)


run_all()
