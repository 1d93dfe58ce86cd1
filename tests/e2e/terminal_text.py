# SPDX-License-Identifier: MIT
"""terminal_text: names and strings of programs and traces that are commands to a terminal are shown, and not obeyed"""
import json
import os
import re
import shutil

from tap import BUILD, CODEGEN, PEM, SAN, equal, run, run_all, skip, test, tmp
from trace_files import Trace

# A clear screen and a colour, by the single byte 0x9b and by U+009B; a tab; and "txt" read from right to left.
HOSTILE = b"\x9b2J\xc2\x9b31m\t\xe2\x80\xaetxt"
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def shown_errors(command, **more):
    """Standard error of a command that fails with status 1, checked as in shown."""
    shown(command, 1, **more)
    return run(command, **more)[2]


def shown(command, status=0, **more):
    """What a command prints, in which a terminal must find nothing to obey, nor bytes that are no UTF-8. status: None: any."""
    rc, out, err = run(command, binary=True, **more)
    for what, text in ("standard output", out), ("standard error", err):
        try:
            found = CONTROLS.search(text.decode())
        except UnicodeDecodeError as error:
            raise AssertionError("%s of %r is no UTF-8: %s" % (what, command[1:3], error)) from None
        assert not found, "%s of %r: %r" % (what, command[1:3], text[max(found.start() - 40, 0):][:80])
    if status is not None:
        equal(rc, status, "status of %r (%r)" % (command[1:3], err))
    return out.decode()


SPEC = ("<spec provider='shop' description='d'><event name='APP::Shop::Sale' description='d'><layerId value='APP'/>"
        "<classId value='Shop'/><specifier value='%s'/></event></spec>")


@test
def words_of_the_command_line():
    "every verb, and pem-codegen, shows a hostile word, option, file or folder that it was given without obeying it"
    folder = tmp()
    verbs = re.findall(r"^  pem ([\w-]+) ", shown([PEM]), re.M)
    assert "gen" in verbs and "diff" in verbs, verbs
    for words in [[], *([verb] for verb in verbs), ["spec", "check"], ["spec", "import"], ["page-size", "show"], ["page-size", "forget"]]:
        for word in HOSTILE, b"--" + HOSTILE, b"-\x1b":
            shown([PEM, *words, word], None, cwd=folder, env={"PEM_DB": folder + "/db"})
    for words in [HOSTILE], [b"--" + HOSTILE], ["--check", b"--against"], ["--backend", HOSTILE, "-o", "."]:
        shown([CODEGEN, *words], 1, cwd=folder)


@test
def names_of_files():
    "names of specs, of folders for stubs and of traces are shown so, also in lists of mistakes"
    folder = os.fsencode(tmp())
    good, bad = os.path.join(folder, b"good" + HOSTILE + b".xml"), os.path.join(folder, b"bad" + HOSTILE + b"\n.xml")
    for path, word in (good, "Sale"), (bad, "Sole"):
        with open(path, "w", encoding="utf-8") as f:
            f.write(SPEC % word)
    for more in [], ["--agent"], *(["--lang", lang] for lang in ("c++", "fortran", "java", "python", "rust")):
        text = shown([PEM, "gen", *more, good, "-o", os.path.join(folder, HOSTILE)])
        assert "/?2J??31m????txt'" in text or "/?2J??31m????txt/" in text, text
    assert "bad?2J" in shown_errors([PEM, "spec", "check", bad]), "no mistake is shown"
    mistakes = json.loads(shown([PEM, "spec", "check", "--json", bad], 1))
    assert mistakes[0]["file"].endswith("bad\ufffd2J\u009b31m\t\u202etxt\n.xml"), mistakes
    said = shown_errors([PEM, "list", "Sale"], env={"PEM_SPEC_PATH": os.fsdecode(bad)})
    assert re.search(r"bad\?2J.*\.xml:1:\d+: error: ", said), said
    trace = Trace()
    one = trace.event("APP::Test::One", fields=[("value", "uint64", "-")])
    for i in range(100):
        trace.add(one, i * 1000, [i])
    traces = [os.path.join(folder, name + HOSTILE) for name in (b"a", b"b")]
    for path in traces:
        trace.write(os.fsdecode(path))
    assert "a?2J" in shown([PEM, "diff", *traces], None), "the traces are not named"
    assert "a?2J" in shown([PEM, "report", "--correlate", traces[0]], None), "the trace is not named"
    for path in traces:
        shown([PEM, "export", "--to", "csv", path], cwd=folder)


@test
def a_programs_name():
    "a program and its arguments are named by record, report, stat, top, and by JSON, without being obeyed"
    if SAN:
        skip("this build carries sanitizers, which can't be preloaded into an unmodified sleep; run it without SAN=1")
    folder = tmp()
    program = os.path.join(os.fsencode(folder), HOSTILE)
    shutil.copy(shutil.which("sleep"), program)
    trace = os.path.join(folder, "trace")
    shown([PEM, "record", "-e", "APP", "-o", trace, "--", program, b"0.0"], cwd=folder)
    for more in [], ["--by", "process"], ["--by", "thread"]:
        shown([PEM, "report", *more, trace])
    report = json.loads(shown([PEM, "report", "--json", trace]))
    assert any(p["name"].endswith("txt") or "2J" in p["name"] for p in report["processes"]), report["processes"]
    shown([PEM, "stat", "-e", "APP", "--", program, b"0.0"], cwd=folder)
    json.loads(shown([PEM, "stat", "--json", "-e", "APP", "--", program, b"0.0"], cwd=folder))
    shown([PEM, "top", "--once", "--", program, b"0.0"], cwd=folder)
    json.loads(shown([PEM, "top", "--once", "--json", "--", program, b"0.0"], cwd=folder))
    shown([PEM, "stat", "--", program + b"x"], status=127, cwd=folder)


def hostile_trace():
    """The folder of a trace whose every text is hostile."""
    said = HOSTILE.replace(b"\t", b"").decode("utf-8", "surrogateescape")
    trace = Trace(command="ran " + said, host=said)
    trace.gaps.append((said, "because of " + said))
    begin = trace.event("APP::Phase::Begin", "interval-begin", [("name", "string", "name")])
    end = trace.event("APP::Phase::End", "interval-end", [("name", "string", "name")])
    named = trace.event("OS::Process::Exec", "process-name", [("pid", "uint32", "process"), ("filename", "string", "name")])
    thread = trace.event("APP::Test::Thread", "thread-name", [("tid", "uint32", "thread"), ("name", "string", "name")])
    trace.add(named, 0, [1, HOSTILE])
    trace.add(thread, 0, [1, HOSTILE])
    trace.add(begin, 1, [HOSTILE])
    trace.add(end, 5, [HOSTILE])
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    return folder


@test
def strings_of_a_trace():
    "names of phases, processes and threads, and what a trace says of its run, are shown so, and JSON is JSON that has them"
    folder = hostile_trace()
    for more in [], ["--by", "process"], ["--by", "thread"]:
        text = shown([PEM, "report", *more, folder])
    assert "2J" in text, text
    report = json.loads(shown([PEM, "report", "--json", folder]))
    assert "2J" in json.dumps(report["processes"]), report
    assert r"\x9b2J\xc2\x9b31m" in shown([PEM, "export", "--to", "csv", folder, "-o", "-"]), "a table lacks the phase"


@test
def strings_of_a_page():
    "a page on standard output has no such characters either"
    if not os.path.exists(os.path.join(BUILD, "lib", "pem", "export-html.so")):
        skip("export-html.so was not built: dygraphs is missing (package libjs-dygraphs)")
    page = shown([PEM, "export", "--to", "html", hostile_trace(), "-o", "-"])
    assert r"\ufffd2J\u009b31m\u0009\u202etxt" in page, "the page lacks the phase"


@test
def strings_of_json():
    "in JSON, characters that a terminal would obey are escapes, and so the same to who reads it"
    word = "\u009b31m\u202etxt\u2028\x7f\u00e9\U0001f600"
    folder = tmp()
    program = os.path.join(folder, word)
    shutil.copy(shutil.which("true"), program)
    told = json.loads(shown([PEM, "stat", "--json", "-e", "Malloc", "--", program]))
    equal(os.path.basename(told["command"]), word, "the command, read back")


run_all()
