#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The application part of the catalogue: how large it is, that it says who raises what, and that probes it names exist.

Not here: tracepoints and hardware events; what a spec may say (spec_check.py).
"""
import glob
import os
import re
import shutil
import xml.etree.ElementTree as xml

from tap import CODEGEN, ROOT, equal, need, run, run_all, skip, test

SPECS = sorted(glob.glob(os.path.join(ROOT, "spec", "app", "*.xml")))


def events():
    return [(path, event) for path in SPECS for event in xml.parse(path).getroot().findall("event")]


@test
def size():
    "at least 110 events of applications, without a warning"
    assert len(events()) >= 110, len(events())
    equal(run([CODEGEN, "--check"] + SPECS), (0, "", ""), "pem-codegen --check")


@test
def adapters_exist():
    "each library that a spec names as raising its events has a folder that builds it"
    named = {source.get("name") for _, event in events() for source in event.findall("source")
             if source.get("type") == "stub" and source.get("name")}
    made = set()
    for path in glob.glob(os.path.join(ROOT, "libpem", "*", "build.mk")):
        with open(path) as file:
            made.update(re.findall(r"lib/(libpem-[a-z]+\.so):", file.read()))
    equal(sorted(named - made), [], "libraries that nothing builds")


@test
def adapters_raise_what_they_are_said_to():
    "each stub event that names its library is raised in that library's source"
    sources = {}
    for folder in glob.glob(os.path.join(ROOT, "libpem", "*", "")):
        text = ""
        for path in glob.glob(folder + "*.c"):
            with open(path) as file:
                text += file.read()
        sources["libpem-%s.so" % os.path.basename(folder[:-1])] = text
    missing = []
    for _, event in events():
        for source in event.findall("source"):
            if source.get("type") != "stub" or not source.get("name"):
                continue
            _, group, specifier = event.get("name").split("::")
            name = "_".join(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower() for word in (group, specifier))
            if "pem_notify_" + name not in sources.get(source.get("name"), ""):
                missing.append(event.get("name"))
    equal(missing, [], "events that nobody raises")


@test
def details_are_not_recorded_by_default():
    "but for those of old, and for what names their sites, every event is of level detail, debug or named: a plain recording stays small"
    few = [event.get("name") for _, event in events() if event.get("level") not in ("detail", "debug", "named")]
    assert len(few) <= 11, few


@test
def postgresql_probes():
    "each probe that postgresql.xml names is in the server that is installed here, with as many arguments"
    need("readelf")
    servers = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres")) or [shutil.which("postgres")]
    if not servers[-1]:
        skip("PostgreSQL is not installed")
    _, notes, _ = run(["readelf", "-n", servers[-1]])
    have = {}
    for name, arguments in re.findall(r"Provider: postgresql\s+Name: (\S+)\s+Location:.*\s+Arguments:(.*)", notes):
        have.setdefault(name, len(arguments.split()))
    if not have:
        skip("this PostgreSQL has no static probes")
    wrong = []
    for path, event in events():
        if not path.endswith("postgresql.xml"):
            continue
        probes = [source.get("name").split(":")[1] for source in event.findall("source")]
        used = [int(f.get("from")[3:]) for f in event.iter("field") if re.fullmatch(r"arg\d+", f.get("from") or "")]
        found = [probe for probe in probes if probe in have]
        if not found:
            wrong.append("%s: none of %s" % (event.get("name"), probes))
        elif used and max(used) >= have[found[0]]:
            wrong.append("%s: argument %d of %d" % (event.get("name"), max(used), have[found[0]]))
    equal(wrong, [], "probes")


run_all()
