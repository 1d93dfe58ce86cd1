# SPDX-License-Identifier: MIT
"""
codegen_names: what a spec calls things never breaks what is generated: names that a language or pem has are mended or refused

Not here: names of fields (codegen_hostile).
"""
import builtins
import os
import re

from tap import CODEGEN, ROOT, equal, need, run, run_all, runs, skip, test, tmp

ABI = ROOT + "/spec/abi"
INTERVALS = ("Wait", "Notify", "For", "System", "String", "Problem", "Misfits", "List", "Enable", "Map", "HashCode", "Text")
ENUMS = ("Exception", "WaitScope", "Option", "Wait", "Override", "Self")


def event(name, rest="", layer="APP"):
    return ("<event name='%s::%s' description='d'><layerId value='%s'/><classId value='%s'/><specifier value='%s'/>%s</event>"
            % ((layer, name, layer) + tuple(name.split("::")) + (rest,)))


def labels(name, *values):
    return "<enum name='%s' description='d'>" % name + "".join(
        "<label name='l%d' value='%s' description='d'/>" % (i, v) for i, v in enumerate(values)) + "</enum>"


def generate(body, backend, provider="a", folder=None):
    folder = folder or tmp()
    with open(folder + "/s.xml", "w") as f:
        f.write("<spec provider='%s' description='d'>%s</spec>" % (provider, body))
    rc, _, err = run([CODEGEN, "--backend", backend, "-o", folder, folder + "/s.xml"])
    return folder, rc, err


def refused(body, text, provider="a"):
    _, rc, err = generate(body, "c", provider)
    assert rc == 1 and text in err, (provider, rc, err)


def awkward():
    fields = "<fields><field name='s' type='string' description='d'/><field name='e' type='uint32' enum='Exception' description='d'/></fields>"
    return ("".join(labels(name, 0, 1) for name in ENUMS) + labels("a", 1).replace("enum", "flags") + event("A::B", fields) +
            "".join(event(name + "::Begin", "<meaning value='interval-begin'/>") +
                    event(name + "::End", "<meaning value='interval-end'/>") for name in INTERVALS))


@test
def java_intervals_have_names_of_their_own():
    "an interval called wait, for, System or problem compiles in Java, with '_' behind its name"
    need("javac")
    folder, rc, err = generate(awkward(), "java")
    equal((rc, err), (0, ""), "generate")
    rc, out, err = run(["javac", "-Xlint:all", "-Werror", "-d", folder, folder + "/pem/a/PemA.java"], timeout=120)
    equal(rc, 0, out + err)
    with open(folder + "/pem/a/PemA.java") as f:
        text = f.read()
    assert " Wait_ wait_()" in text or " Wait wait_()" in text, "no wait_"
    assert " System_ system()" in text, "no System_"


@test
def python_modules_hide_nothing():
    "an interval or enum called map, list, enable or Exception hides neither Python's names nor the module's"
    folder, rc, err = generate(awkward(), "python")
    equal((rc, err), (0, ""), "generate")
    code = ("import builtins, pem_a as m\n"
            "assert not [n for n in m.__all__ if hasattr(builtins, n)], m.__all__\n"
            "assert m._list([1, 2], 2, 'B') == (2, bytes([1, 2])) and m._text('ab', 1) == b'a\\0'\n"
            "assert m._number(object(), 'B') == 0 and m.problem() and m.misfits() == 0\n"
            "m._enable = bytes([1]) * 64\n"
            "sent = []\n"
            "m._notify = lambda *a: sent.append(a)\n"
            "m.notify_a_b(object(), object())\n"
            "with m.map_(), m.list_(), m.enable(), m.for_(): pass\n"
            "assert len(sent) == 9 and m.misfits() == 1, (len(sent), m.misfits())\n")
    rc, out, err = run(["python3", "-W", "error", "-c", code], cwd=folder)
    equal((rc, err), (0, ""), "python")


@test
def python_names_are_used_once():
    "an interval called like the functions of an event, and two that end alike, have names of their own; a field may be called like its function"
    pairs = "".join("".join(event(name + kind, "<meaning value='interval-%s' group='%s'/>" % (kind.lower(), group)) for kind in ("Begin", "End"))
                    for name, group in (("Notify::ShopSale", "a"), ("Enabled::ShopSale", "b")))
    pairs += "".join(event("Long::" + name, "<meaning value='interval-%s' group='%s'/>" % (kind, group))
                     for group, begin in (("c", "StepBegin"), ("d", "StepStart"), ("e", "StepBeginBegin"))
                     for name, kind in ((begin, "begin"), (begin + "End", "end")))
    field = "<fields><field name='notify_shop_sale' type='uint8' unit='none' description='d'/></fields>"
    folder, rc, err = generate(event("Shop::Sale", field) + pairs, "python")
    equal((rc, err), (0, ""), "generate")
    code = ("import pem_a as m\n"
            "assert len(set(m.__all__)) == len(m.__all__), sorted(m.__all__)\n"
            "m._enable = bytes([1]) * 64\n"
            "sent = []\n"
            "m._notify = lambda provider, index, *a: sent.append(index)\n"
            "m.notify_shop_sale(object())\nm.enabled_shop_sale()\n"
            "assert (sent, m.misfits()) == ([0], 1), (sent, m.misfits())\n"
            "with m.notify_shop_sale_(), m.enabled_shop_sale_(), m.long_step_begin(), m.long_step_start(), m.long_step_begin_begin(): pass\n"
            "assert sorted(sent) == list(range(11)), sent\n")
    rc, out, err = run(["python3", "-W", "error", "-c", code], cwd=folder)
    equal((rc, err), (0, ""), "python")


@test
def python_hides_no_builtin():
    "an enum or interval called as any builtin of this Python hides none of them"
    names = [n for n in dir(builtins) if not n.startswith("_") and n not in ("True", "False", "None")]
    body = event("A::B") + "".join(labels(n, 1) for n in sorted({n for n in names if n[0].isupper()})) + "".join(
        event(n.capitalize() + "::Begin", "<meaning value='interval-begin'/>") + event(n.capitalize() + "::End", "<meaning value='interval-end'/>")
        for n in names if n[0].islower())
    folder, rc, err = generate(body, "python")
    equal((rc, err), (0, ""), "generate")
    rc, out, err = run(["python3", "-W", "error", "-c", "import builtins, pem_a as m\n"
                        "print(sorted(n for n in m.__all__ if hasattr(builtins, n)), len(m.__all__))"], cwd=folder)
    assert (rc, err) == (0, "") and out.startswith("[] ") and int(out[3:]) > 150, (out, err)


@test
def rust_and_cxx_types_differ():
    "an enum called like an interval's guard compiles in Rust and C++"
    for backend, tool, command in (
            ("c++", "g++", ["g++", "-fsyntax-only", "-Wall", "-Werror", "-std=c++17", "-I" + ABI, "-x", "c++", "a.hpp"]),
            ("rust", "rustc", ["rustc", "--crate-type", "lib", "--emit", "metadata", "-D", "warnings", "pem_a/src/lib.rs"])):
        if not runs(tool):
            skip("%s is not installed, or doesn't run" % tool)
        folder, rc, err = generate(awkward(), backend)
        equal((rc, err), (0, ""), "generate")
        rc, out, err = run(command, cwd=folder, timeout=120)
        equal(rc, 0, backend + ": " + err[:1000])


@test
def providers_hide_no_header():
    "a provider called like a header of C, or like what pem's own headers and modules define, is refused"
    one = event("A::B")
    for name in ("string", "stdint", "stddef", "dlfcn"):
        refused(one, "would hide <%s.h>" % name, name)
    words = {"event", "register", "unregister", "detail", "page", "int8", "char", "len"}
    for header in os.listdir(ABI + "/pem"):
        with open(os.path.join(ABI, "pem", header)) as f:
            words |= {w.lower() for w in re.findall(r"^\s*#\s*define PEM_([A-Z]+)_[A-Z]+_", f.read(), re.M)}
    assert {"action", "event", "record"} < words, words
    for name in sorted(words):
        refused(one, "names that pem's own code has", name)


@test
def providers_have_no_name_of_the_headers():
    "a provider whose generated names pem's headers already have, and 'pem' itself, are refused"
    folder, rc, err = generate(event("A::B"), "fortran", "zzz")
    equal((rc, err), (0, ""), "generate")
    prefixes = set()
    for name in ("zzz.h", "zzz_symbols.c"):
        with open(folder + "/" + name) as f:
            prefixes |= set(re.findall(r"\b((?:pem|PEM)_\w*_)zzz\b", f.read()))
    assert {"pem_page_", "pem_provider_", "pem_model_"} <= prefixes, prefixes
    words = {"pem"}
    for header in (os.path.join(base, name) for base in (ABI + "/pem", ROOT + "/libpem/include/pem") for name in os.listdir(base)):
        with open(header) as f:
            for name in re.findall(r"\b(?:pem|PEM)_\w+", f.read()):
                words |= {name[len(p):] for p in prefixes if name.startswith(p)}
    words = {w for w in words if re.fullmatch("[a-z][a-z0-9_]{0,14}", w)} - {"probes", "streams"}  # pem/probe.h and pem/stream.h are made of these providers' stubs
    assert {"is", "register", "visit"} < words, words
    for name in sorted(words):
        refused(event("A::B"), "names that pem's own code has", name)


@test
def providers_are_no_macros():
    "a provider that a C compiler replaces by something else is refused: LTTng and static probes take its name through macros"
    need("gcc")
    names = {"linux", "unix", "true", "tracepoint"}
    for flags in (["-std=gnu11"], ["-std=gnu11", "-include", "stdbool.h", "-include", "assert.h", "-include", "stdio.h", "-I" + ABI,
                                   "-include", "pem/stub.h"]):
        rc, out, err = run(["gcc", *flags, "-dM", "-E", "-x", "c", "/dev/null"])
        equal(rc, 0, err)
        names |= {n for n, text in re.findall(r"^#define ([a-z][a-z0-9_]{0,14}) (.*)$", out, re.M) if n != text}
    for name in sorted(names):
        refused(event("A::B"), "provider '%s' is a macro" % name, name)


@test
def providers_hide_no_function():
    "a provider called like a function or class of its events is refused, and one with a similar name compiles"
    need("gfortran")
    pair = event("A::Begin", "<meaning value='interval-begin'/>") + event("A::End", "<meaning value='interval-end'/>")
    for name in ("notify_a_begin", "enabled_a_end", "a_scope"):
        refused(pair, "provider '%s' has the name of a function or class" % name, name)
    for name in ("notify_a", "scope", "native"):
        folder, rc, err = generate(pair, "fortran", name)
        equal((rc, err), (0, ""), name)
        rc, _, err = run(["gfortran", "-std=f2008", "-fsyntax-only", "-J", folder, folder + "/" + name + ".f90"])
        equal(rc, 0, err)


@test
def types_of_labels_differ_in_every_language():
    "two enums that are one type in camel case are refused"
    refused(labels("FooBar", 0) + labels("foo_bar", 0) + event("A::B"), "differs by more than capitals and '_'")


@test
def labels_fit_an_integer():
    "labels that no integer holds are refused also where no field has them"
    refused(labels("E", "99999999999999999999") + event("A::B"), "label 'l0' needs more than 64 bits")
    refused(labels("E", "-9999999999999999999") + event("A::B"), "label 'l0' needs more than 64 bits")
    refused(labels("E", "-1", "18446744073709551614") + event("A::B"), "no integer holds both label 'l1' and label 'l0'")


@test
def the_least_label_is_a_number():
    "the least and the largest number of 64 bits are labels in C and C++, without a warning"
    for value, check in (("-9223372036854775808", "< -9223372036854775807LL"), ("18446744073709551615", "== ~0ull")):
        folder, rc, err = generate(labels("E", value) + event("A::B"), "c++")
        equal((rc, err), (0, ""), "generate")
        for tool, language in (("gcc", "c"), ("g++", "c++")):
            need(tool)
            with open(folder + "/use." + language, "w") as f:
                f.write('#include "a.h%s"\nPEM_STATIC_ASSERT(PEM_A_E_L0 %s, "value");\n' % ("pp" * (language != "c"), check))
            rc, _, err = run([tool, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I" + ABI, "-x", language,
                              folder + "/use." + language])
            assert rc == 0, (tool, value, err[:500])


@test
def scopes_and_groups_need_a_partner():
    "group='' and scope='' together on a meaning that matches nothing are refused like each alone"
    value = "<fields><field name='v' type='uint64' unit='none' role='value' description='d'/></fields>"
    for attributes in ("group='G'", "scope='thread'", "group='G' scope='thread'"):
        refused(event("A::B", "<meaning value='counter' %s/>" % attributes + value), "on meaning 'counter'")


run_all()
