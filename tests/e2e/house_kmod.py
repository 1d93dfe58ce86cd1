# SPDX-License-Identifier: MIT
"""house_kmod: a name of the kernel module means nothing else in libpem; words that were given up are gone from kmod/ and its sources"""
import glob
import re

from tap import ROOT, equal, run_all, test

TYPE = re.compile(r"^(?:typedef )?(struct|union|enum) (\w+) \{", re.MULTILINE)
GIVEN_UP = set("wish wishes wished look looks looked own owns tend bury meet stuck aside slot slots wide wides".split())
NAME = re.compile(r"[A-Za-z_]\w*")
NO_CODE = re.compile(r"/\*.*?\*/|\"(?:\\\\.|[^\"\\\\\n])*\"|<pem/wide.h>", re.DOTALL)
FUNCTION = re.compile(r"^(?!static|typedef|PEM_INLINE|[ \t#/*}])[\w ]+[ *](pem_\w+)\(", re.MULTILINE)


def defined(text):
    """The types that a file defines, and the functions that it declares or defines for other files."""
    return {" ".join(found) for found in TYPE.findall(text)} | {name + "()" for name in FUNCTION.findall(text)}


def names(*patterns):
    """Each name with the file that has it first."""
    found = {}
    for pattern in patterns:
        for path in sorted(glob.glob(ROOT + "/" + pattern, recursive=True)):
            with open(path, encoding="utf-8") as f:
                for name in defined(f.read()):
                    found.setdefault(name, path[len(ROOT) + 1:])
    return found


@test
def names_are_the_modules():
    "no type and no function of kmod/ is called as one of libpem is"
    kmod, libpem = names("kmod/*.[ch]"), names("libpem/**/*.[ch]")
    assert len(kmod) > 50 and len(libpem) > 300, "too few names were found: %d, %d" % (len(kmod), len(libpem))
    equal(["%s: %s and %s" % (name, kmod[name], libpem[name]) for name in sorted(kmod) if name in libpem], [], "names with two meanings")


@test
def names_are_found():
    "types and functions are found where they are declared and where they are defined"
    equal(defined("struct pem_a {\n\tint b;\n};\nint pem_c(struct pem_d *d);\nvoid *pem_e(void)\n{\n\tpem_f();\n}\nstatic int pem_g(void)\n"),
          {"struct pem_a", "pem_c()", "pem_e()"}, "names")


def given_up(text, keep=()):
    """The names of a file's code that have a given up word in them, without those to keep."""
    found = NAME.findall(NO_CODE.sub(" ", text))
    return sorted({name for name in found if GIVEN_UP & set(name.lower().split("_")) and name not in keep})


@test
def words_are_gone():
    "no name in kmod/, and in the sources of the kernel's events, has a word in it that docs/glossary.md gave up"
    found, theirs = [], set()
    for path in glob.glob(ROOT + "/spec/abi/pem/*.h") + [ROOT + "/libpem/pool.h", ROOT + "/libpem/source.h"]:
        with open(path, encoding="utf-8") as f:
            theirs |= set(NAME.findall(f.read()))
    for pattern in ("kmod/**/*.[ch]", "libpem/sources/module/*.[ch]", "libpem/sources/kernel/**/*.[ch]"):
        for path in glob.glob(ROOT + "/" + pattern, recursive=True):
            with open(path, encoding="utf-8") as f:
                found += ["%s: %s" % (path[len(ROOT) + 1:], name) for name in given_up(f.read(), theirs)]
    equal(sorted(found), [], "names with words given up")


@test
def words_are_found():
    "a given up word is found in a name, and not in a comment or a longer word"
    equal(given_up("int look_at; /* own */ int known_owner, PEM_WIDE_TOP; bool is_own; f(\"wish\");"), ["PEM_WIDE_TOP", "is_own", "look_at"], "names")


run_all()
