# SPDX-License-Identifier: MIT
"""
spec_program.py - programs made from specs that a test writes itself

Not here: tests.
"""
import os

from tap import CODEGEN, ROOT, equal, run

FIRST = """<spec provider='till' description='a till'>
<event name='APP::Till::Paid' description='%s'>
<layerId value='APP'/><classId value='Till'/><specifier value='Paid'/>
<fields><field name='cents' type='uint32' unit='cents' description='how much'/></fields>
</event></spec>"""


def build(folder, name, spec, call, *includes):
    """A program made with the stubs of a spec; call: statements, includes: headers that these need."""
    place = os.path.join(folder, name)
    os.mkdir(place)
    with open(place + "/till.xml", "w", encoding="utf-8") as f:
        f.write(spec)
    equal(run([CODEGEN, "--backend", "c", "-o", place, place + "/till.xml"])[0], 0, "pem-codegen")
    with open(place + "/main.c", "w", encoding="utf-8") as f:
        f.write("".join("#include <%s>\n" % include for include in includes))
        f.write('#include "till.h"\nint main(void)\n{\n\t%s;\n\treturn 0;\n}\n' % call)
    program = place + "/" + name
    rc, _, err = run(["gcc", "-O2", "-I" + place, "-I" + ROOT + "/spec/abi", place + "/main.c", "-o", program, "-ldl"])
    equal(rc, 0, "gcc: " + err)
    return program
