# SPDX-License-Identifier: MIT
"""house_kmod: a name of the kernel module means nothing else in libpem"""
import glob
import re

from tap import ROOT, equal, run_all, test

TYPE = re.compile(r"^(?:typedef )?(struct|union|enum) (\w+) \{", re.MULTILINE)
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


run_all()
