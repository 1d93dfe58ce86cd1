# SPDX-License-Identifier: MIT
"""
backend_python.py - the module that pem-codegen makes for Python: what it records, and that it never harms a program
"""
import ast
import os
import sys

from managed import LIBPEM, folder, generate, generate_catalogue, recorded, values
from tap import BUILD, PEM, equal, run, run_all, skip, test, tmp

NAME = "pem_hard.py"


def module():
    path = os.path.join(folder(), NAME)
    if not os.path.exists(path):
        generate("python")
    return path


def python(script, *arguments):
    module()
    path = os.path.join(folder(), "script.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write("import pem_hard as pem\n" + script)
    return [sys.executable, "-W", "error", path] + [str(a) for a in arguments]


@test
def reads_as_python_3_9():
    "the module is Python 3.9, and compiles without a warning"
    with open(module(), encoding="utf-8") as f:
        text = f.read()
    ast.parse(text, feature_version=(3, 9))
    rc, _, err = run([sys.executable, "-W", "error", "-c", "import pathlib; compile(pathlib.Path(%r).read_text(), 'x', 'exec')" % module()])
    equal((rc, err), (0, ""), "compile")


@test
def nothing_without_libpem():
    "without libpem each function does nothing, and problem() says why"
    rc, out, err = run(python("pem.notify_hard_tick('no', None)\npem.notify_hard_nothing()\n"
                              "with pem.hard_step(1, 2) as step:\n    step.rows = 5\n"
                              "print(pem.problem(), pem.misfits(), pem.enabled_hard_tick())\n"))
    equal((rc, out, err), (0, "libpem is not in this process: run it under 'pem record' 0 False\n", ""), "said")


@test
def off_while_nobody_records():
    "with libpem in the process and nobody recording, events are off and nothing is wrong"
    rc, out, err = run(python("pem.notify_hard_tick(1, 2)\nprint(pem.problem(), pem.enabled_hard_tick())\n"), LIBPEM)
    equal((rc, out, err), (0, "None False\n", ""), "said")


@test
def importing_starts_no_machinery():
    "importing the module loads nothing but collections.abc, ctypes, enum and struct beside what Python has"
    script = ("import __future__, sys, collections.abc, ctypes, enum, struct\nbefore = set(sys.modules)\nimport pem_hard\n"
              "print(sorted(set(sys.modules) - before))")
    module()
    equal(run([sys.executable, "-c", script], cwd=folder())[1], "['pem_hard']\n", "modules")


@test
def texts():
    "text is cut between characters, ends before a NUL, and None, bytes and objects have a text too"
    _, found = recorded(python(
        "for first, second in [('abcdefg', 'x' * 100), ('abcdefgh', '€' * 5), ('abcdef€', 'abcdefghijklm€'),\n"
        "                      ('🙂🙂', 'a\\0b'), (None, ''), ('\\ud800x', b'gr\\xc3\\xbc\\xc3'), (12, ['a'])]:\n"
        "    pem.notify_hard_text(0, first, second)\n"
        "assert pem.misfits() == 0, pem.misfits()\n"))
    equal(values(found, "Text", "first", "second"), [
        ("abcdefg", "x" * 15), ("abcdefg", "€€€€€"), ("abcdef", "abcdefghijklm"), ("🙂", "a"), ("", ""),
        ("?x", "grü\ufffd"), ("12", "['a']")], "texts")


@test
def lists():
    "lists are cut at their most, and may be anything that can be iterated"
    _, found = recorded(python(
        "import array\n"
        "pem.notify_hard_lists([1, 2, 3, 4], (-1,), range(9), [0.5], array.array('I', [7, 8]), iter([1e300]), {5})\n"
        "pem.notify_hard_lists(None, [], None, None, None, None, None)\n"
        "pem.notify_hard_lists(b'\\xff', [2 ** 63 - 1], [-5, 5], [1.5, 2.5, 3.5, 4.5], [], [-0.25], [2 ** 64 - 1])\n"
        "assert pem.misfits() == 0, pem.misfits()\n"))
    equal(values(found, "Lists", *["l%d" % i for i in range(7)]), [
        ("1 2 3", "-1", "0 1 2", "0.5", "7 8", "1e+300", "0x5"), ("",) * 7,
        ("255", "9223372036854775807", "-5 5", "1.5 2.5 3.5", "", "-0.25", "0xffffffffffffffff")], "lists")


@test
def arrays():
    "arrays have their length: what lacks is 0, what is too much is left out"
    _, found = recorded(python(
        "pem.notify_hard_arrays([1, -2], b'abc', 1)\npem.notify_hard_arrays(None, [1], 2)\n"
        "pem.notify_hard_arrays(range(5), iter([9, 8, 7, 6]), 3)\nassert pem.misfits() == 0\n"))
    equal(values(found, "Arrays", "two", "three", "last"),
          [("1 -2", "97 98 99", "1"), ("0 0", "1 0 0", "2"), ("0 1", "9 8 7", "3")], "arrays")


@test
def labels():
    "labels are IntEnum and IntFlag, and any number will do"
    _, found = recorded(python(
        "import enum\nassert issubclass(pem.Color, enum.IntEnum) and issubclass(pem.Mode, enum.IntFlag)\n"
        "pem.notify_hard_labels(pem.Color.DARK_GREEN, pem.Wide.LOW, pem.String.VALUE, pem.Mode.READ | pem.Mode.TOP,\n"
        "                       65535, -128, 0.5)\n"
        "pem.notify_hard_labels(7, pem.Wide.HIGH, -1, 0, 0, 0, ratio=float('inf'))\n"))
    equal([(int(a), int(b), int(c), int(d, 0), int(e), int(f), g) for a, b, c, d, e, f, g in
           values(found, "Labels", "color", "wide", "text", "mode", "pair.a", "pair.b", "ratio")],
          [(200, -1, 3, 0x80000001, 65535, -128, "0.5"), (7, 2 ** 63 - 1, -1, 0, 0, 0, "inf")], "labels")


@test
def bools():
    "True and False are the numbers 1 and 0, whatever the type; no field is packed as a bool, of which 2 would be 1"
    _, found = recorded(python(
        "pem.notify_hard_tick(True, False)\npem.notify_hard_tick(2, True)\npem.notify_hard_arrays([True], [False, 2], True)\n"
        "pem.notify_hard_labels(True, False, True, True, True, True, True)\nassert pem.misfits() == 0, pem.misfits()\n"))
    equal(values(found, "Tick", "who", "number"), [("1", "0"), ("2", "1")], "ticks")
    equal(values(found, "Arrays", "two", "three", "last"), [("1 0", "0 2 0", "1")], "arrays")
    equal([row[1:] for row in values(found, "Labels", "color", "pair.a", "pair.b", "ratio")], [("1", "1", "1")], "labels")


@test
def a_misfit_spoils_nothing_else():
    "a field that fits keeps its value when another does not, also bytes, None, and what can be read once"
    _, found = recorded(python(
        "pem.notify_hard_text(300, b'abc', None)\n"
        "pem.notify_hard_arrays(iter([1, 2 ** 63]), (3, 2, 1), 7)\n"
        "print(pem.misfits())\n"))
    equal(_, "2\n", "misfits")
    equal(values(found, "Text", "len", "first", "second"), [("44", "abc", "")], "texts")
    equal(values(found, "Arrays", "two", "three", "last"), [("1 -9223372036854775808", "3 2 1", "7")], "arrays")


@test
def never_raises():
    "values that do not fit are recorded as well as can be, raise nothing, and are counted"
    _, found = recorded(python(
        "class Bad:\n    def __str__(self): raise ValueError\n    def __iter__(self): raise OSError\n"
        "    __int__ = __index__ = __float__ = __bool__ = __str__\n"
        "pem.notify_hard_tick(-1, 2 ** 70 + 5)\npem.notify_hard_tick('x', 2.75)\npem.notify_hard_tick(Bad(), None)\n"
        "pem.notify_hard_text(300, Bad(), 'ok')\n"
        "pem.notify_hard_arrays([2 ** 63, 'x'], Bad(), '7')\n"
        "pem.notify_hard_lists([256, -1], Bad(), [40000], [1e39, 'y'], 5, [], [])\n"
        "pem.notify_hard_labels(-56, 0, 0, 0, 0, 200, -1e300)\n"
        "print(pem.misfits())\n"))
    equal(_, "7\n", "misfits")
    equal(values(found, "Tick", "who", "number"), [("4294967295", "5"), ("0", "2"), ("0", "0")], "ticks")
    equal(values(found, "Text", "len", "first", "second"), [("44", "", "ok")], "texts")
    equal(values(found, "Arrays", "two", "three", "last"), [("-9223372036854775808 0", "0 0 0", "7")], "arrays")
    equal(values(found, "Lists", *["l%d" % i for i in range(5)]), [("0 255", "", "-25536", "inf 0", "")], "lists")
    equal(values(found, "Labels", "color", "pair.b", "ratio"), [("200", "-56", "-inf")], "labels")


@test
def intervals():
    "with raises begin and end, an exception between them or not, and the end says what came to be known"
    _, found = recorded(python(
        "with pem.hard_step(1, pem.Color.RED) as step:\n    step.rows, step.note = 12, 'all good'\n"
        "try:\n    with pem.hard_step(2, 0):\n        raise KeyError\nexcept KeyError:\n    pem.notify_hard_nothing()\n"))
    equal(values(found, "StepBegin", "step", "color"), [("1", "1"), ("2", "0")], "begins")
    equal(values(found, "StepEnd", "step", "rows", "note"), [("1", "12", "all goo"), ("2", "0", "")], "ends")
    equal(len(found["Nothing"]), 1, "events without fields")


@test
def threads():
    "threads raise at once: every event is there, in order"
    _, found = recorded(python(
        "import threading\n"
        "def work(who):\n    for i in range(5000):\n        pem.notify_hard_tick(who, i)\n"
        "ts = [threading.Thread(target=work, args=(w,)) for w in range(4)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]\n"))
    ticks = values(found, "Tick", "who", "number")
    for who in range(4):
        equal([int(n) for w, n in ticks if int(w) == who], list(range(5000)), "thread %d" % who)
    equal(len({row["tid"] for row in found["Tick"]}), 4, "threads")


@test
def forks():
    "a forked child's events are its own"
    _, found = recorded(python(
        "import os\nassert pem.enabled_hard_tick()\npem.notify_hard_tick(0, 1)\nchild = os.fork()\npem.notify_hard_tick(1 if child else 2, 2)\n"
        "if child:\n    os.waitpid(child, 0)\n"))
    equal(sorted(values(found, "Tick", "who", "number")), [("0", "1"), ("1", "2"), ("2", "2")], "ticks")
    equal(len({row["pid"] for row in found["Tick"]}), 2, "processes")


@test
def reloaded_and_twice():
    "a reload, and a second copy of the module, go on recording"
    _, found = recorded(python(
        "import importlib.util, shutil, os, sys\nimportlib.reload(pem)\npem.notify_hard_tick(1, 1)\n"
        "spec = importlib.util.spec_from_file_location('other', pem.__file__)\n"
        "other = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(other)\nother.notify_hard_tick(2, 2)\n"))
    equal(values(found, "Tick", "who", "number"), [("1", "1"), ("2", "2")], "ticks")


@test
def subinterpreters():
    "a subinterpreter raises events too, and its end does no harm"
    probe = "try:\n    import _xxsubinterpreters as s\nexcept ImportError:\n    import _interpreters as s\n"
    if run([sys.executable, "-c", probe])[0]:
        skip("this Python has no module for subinterpreters")
    inner = ("import sys\nsys.path.insert(0, %r)\ntry:\n    import pem_hard\n    pem_hard.notify_hard_tick(2, 2)\n"
             "except ImportError:\n    pass\n" % folder())
    _, found = recorded(python(
        probe + "inner = %r\ni = s.create()\ns.run_string(i, inner)\ns.destroy(i)\npem.notify_hard_tick(1, 1)\n" % inner))
    assert ("1", "1") in values(found, "Tick", "who", "number"), found


@test
def raised_while_python_ends():
    "events raised while the interpreter ends are recorded, and do no harm"
    _, found = recorded(python(
        "import atexit, threading, time\natexit.register(pem.notify_hard_tick, 1, 1)\n"
        "class Late:\n    def __del__(self, notify=pem.notify_hard_tick): notify(2, 2)\n"
        "def forever():\n    while True: pem.notify_hard_tick(3, 3); time.sleep(0.001)\n"
        "threading.Thread(target=forever, daemon=True).start()\nlate = Late()\n"))
    assert ("1", "1") in values(found, "Tick", "who", "number"), "raised at exit"


@test
def example():
    "the example runs alone, and recorded its sales are in the trace"
    command = [sys.executable, os.path.join(BUILD, "examples", "shop.py"), "2"]
    equal(run(command), (0, "2 customers served\n", ""), "alone")
    out, found = recorded(command)
    equal(out, "2 customers served\n", "output")
    equal(values(found, "Sale", "cents", "count", "payment", "item"), [("250", "1", "1", "cheese"), ("500", "2", "1", "bread")],
          "sales")
    equal(values(found, "ServeBegin", "customer") + values(found, "ServeEnd", "customer"), [("1",), ("2",)] * 2, "intervals")


@test
def catalogue():
    "the modules of every provider can be imported without a warning"
    place = generate_catalogue("python")
    names = [name[:-3] for name in os.listdir(place)]
    assert len(names) > 5, names
    equal(run([sys.executable, "-W", "error", "-c", "import " + ", ".join(names)], cwd=place), (0, "", ""), "import")


@test
def other_programs_run_unchanged():
    "a Python program nobody here wrote runs under pem record as it does without"
    command = [sys.executable, "-m", "timeit", "-h"]
    plain = run(command)
    equal(run([PEM, "record", "-q", "-o", tmp() + "/t", "--"] + command), plain, "status, output, errors")


run_all()
