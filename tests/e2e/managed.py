# SPDX-License-Identifier: MIT
"""
managed.py - a spec with what is hard for Java and Python, and what its bindings need to be built and recorded

Not here: tests (backend_java.py, backend_python.py).
"""
import atexit
import glob
import os
import shutil
import tempfile

from probe_trace import report, rows
from tap import BUILD, CODEGEN, PEM, ROOT, equal, run

HARD = "ends */ and /* starts \\u002a/ &lt;b&gt; \"quoted\" 'single' {@code x} back\\slash &#233; @param"

SPEC = """<spec provider='hard' version='1.0' description='%(hard)s'>
  <enum name='Color' description='%(hard)s'>
    <label name='red' value='1' description='%(hard)s'/><label name='darkGreen' value='200'/>
  </enum>
  <enum name='Wide' description='d'><label name='low' value='-1'/><label name='high' value='0x7fffffffffffffff'/></enum>
  <enum name='String' description='d'><label name='value' value='3'/></enum>
  <flags name='Mode' description='d'><label name='read' value='1'/><label name='top' value='0x80000000'/></flags>
  <struct name='Pair' description='d'>
    <field name='a' type='uint16' unit='none' description='d'/><field name='b' type='int8' unit='none' description='d'/>
  </struct>
  %(events)s
</spec>
"""

EVENTS = {
    "Tick": "<field name='who' type='uint32' unit='none' description='d'/>"
            "<field name='number' type='uint64' unit='none' description='%(hard)s'/>",
    "Text": "<field name='len' type='uint8' unit='none' description='d'/>"
            "<field name='first' type='string' max='8' description='%(hard)s'/>"
            "<field name='second' type='string' max='16' description='d'/>",
    "Lists": "".join("<field name='l%d' type='list' eltType='%s' max='3' unit='none' description='d'/>" % (i, t)
                     for i, t in enumerate("uint8 int64 int16 float32 uint32 float64 address".split())),
    "Arrays": "<field name='two' type='array' eltType='int64' count='2' unit='none' description='d'/>"
              "<field name='three' type='array' eltType='uint8' count='3' unit='none' description='d'/>"
              "<field name='last' type='uint32' unit='none' description='d'/>",
    "Labels": "<field name='color' type='uint8' enum='Color' description='d'/>"
              "<field name='wide' type='int64' enum='Wide' description='d'/>"
              "<field name='text' type='int16' enum='String' description='d'/>"
              "<field name='mode' type='uint32' flags='Mode' description='d'/>"
              "<field name='pair' type='struct' of='Pair' description='d'/>"
              "<field name='ratio' type='float32' unit='none' description='d'/>",
    "Nothing": "",
    "StepBegin": "<field name='step' type='uint32' role='key' description='d'/>"
                 "<field name='color' type='uint8' enum='Color' description='d'/>",
    "StepEnd": "<field name='step' type='uint32' role='key' description='d'/>"
               "<field name='rows' type='int64' unit='rows' description='known at the end'/>"
               "<field name='note' type='string' max='8' description='known at the end'/>",
}
MEANING = {"StepBegin": "<meaning value='interval-begin'/>", "StepEnd": "<meaning value='interval-end'/>"}


def spec_text():
    events = "".join(
        "<event name='APP::Hard::%s' description='%%(hard)s'%s><layerId value='APP'/><classId value='Hard'/>"
        "<specifier value='%s'/>%s<fields>%s</fields></event>\n" %
        (name, " deprecated='%(hard)s'" if name == "Nothing" else "", name, MEANING.get(name, ""), fields)
        for name, fields in EVENTS.items())
    hard = HARD.replace("'", "&apos;")
    return SPEC % {"hard": hard, "events": events % {"hard": hard}}


_folder = None


def folder():
    """One folder for all tests of a program, removed at its end."""
    global _folder
    if not _folder:
        _folder = tempfile.mkdtemp(prefix="pem-test-")
        atexit.register(shutil.rmtree, _folder, True)
    return _folder


def generate(backend):
    """The bindings, in folder()."""
    spec = os.path.join(folder(), "hard.xml")
    with open(spec, "w", encoding="utf-8") as f:
        f.write(spec_text())
    rc, _, err = run([CODEGEN, "--backend", backend, "-o", folder(), spec])
    equal(rc, 0, "status of pem-codegen (stderr: %s)" % err)
    assert "error" not in err, err


def generate_catalogue(backend):
    """The bindings of every provider of this tree: the folder."""
    place = tempfile.mkdtemp(dir=folder())
    specs = sorted(glob.glob(ROOT + "/spec/*/*.xml") + glob.glob(ROOT + "/examples/*.xml"))
    equal(run([CODEGEN, "--backend", backend, "-o", place] + specs), (0, "", ""), "pem-codegen")
    return place


def recorded(command, env=None):
    """Run a command recorded: (its output, its events by specifier: lists of dictionaries)."""
    trace = tempfile.mkdtemp(dir=folder())
    rc, out, err = run([PEM, "record", "-q", "--no-libc", "-e", "APP", "-o", trace, "--"] + command, env)
    equal((rc, err), (0, ""), "status and errors of pem record")
    found = {}
    for row in rows(trace):
        found.setdefault(row["event"].split("::")[2], []).append(row)
    events = report(trace)["events"]
    total = sum(map(len, found.values()))
    equal(events, {"produced": total, "delivered": total, "discarded": 0, "overwritten": 0}, "balance")
    return out, found


def values(found, event, *fields):
    """The fields' cells of an event's records, in order of time."""
    return [tuple(row[f] for f in fields) for row in found.get(event, [])]


LIBPEM = {"LD_PRELOAD": os.path.join(os.environ.get("PEM_LIBRARY_PATH") or BUILD + "/lib", "libpem.so.1")}
ABI = os.path.join(ROOT, "spec/abi")
