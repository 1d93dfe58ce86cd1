# SPDX-License-Identifier: MIT
"""consumer_python_mirror: structures, constants and functions of the module pemapi are those of the headers"""
import os
import re
import sys

from tap import BUILD, ROOT, SAN, equal, need, run, run_all, skip, test, tmp

MODULE = os.path.join(BUILD, "python")


def module():
    """pemapi._c, in this very process."""
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    if MODULE not in sys.path:
        sys.path.insert(0, MODULE)
    from pemapi import _c
    return _c


def compiled(body):
    """What a C program prints, whose main is body."""
    need("cc")
    folder = tmp()
    with open(folder + "/layout.c", "w") as out:
        out.write("#include <pem/agent.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n%s\treturn 0;\n}\n" % body)
    rc, _, err = run(["cc", "-I" + ROOT + "/spec/abi", "-I" + ROOT + "/libpem/include", folder + "/layout.c", "-o",
                      folder + "/layout"])
    equal(rc, 0, "exit status of cc, which said: " + err[:2000])
    return run([folder + "/layout"])[1].split("\n")[:-1]


@test
def layouts_are_c_s():
    "every structure's size, and every member's offset and size, is what the C compiler makes of the headers"
    import ctypes
    structures = dict(module().STRUCTURES)
    if os.path.exists(BUILD + "/lib/libpem-agent.so.1"):
        from pemapi import agent
        structures.update(agent.STRUCTURES)
    body, mirrored = "", []
    for name, structure in structures.items():
        body += '\tprintf("%s %%zu\\n", sizeof(struct %s));\n' % (name, name)
        mirrored.append("%s %d" % (name, ctypes.sizeof(structure)))
        for member, *_ in structure._fields_:
            body += '\tprintf("%s.%s %%zu %%zu\\n", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));\n' % (
                name, member, name, member, name, member)
            field = getattr(structure, member)
            mirrored.append("%s.%s %d %d" % (name, member, field.offset, field.size))
    equal(mirrored, compiled(body), "layouts")


@test
def constants_are_c_s():
    "types and constants have the numbers of the headers"
    c = module()
    sys.modules.pop("pemapi._session", None)
    import pemapi
    wanted = [("PEM_TYPE_" + name.upper(), i) for i, name in enumerate(c.TYPES)] + [
        ("PEM_TYPE_COUNT", len(c.TYPES)), ("PEM_NO_CPU", c.NO_CPU), ("PEM_NAME_BYTES", c.NAME_BYTES),
        ("PEM_LABELS_ENUM", c.LABELS_ENUM), ("PEM_LABELS_FLAGS", c.LABELS_FLAGS),
        ("PEM_STATISTIC_VARIANCE", pemapi.VARIANCE), ("PEM_STATISTIC_HISTOGRAM", pemapi.HISTOGRAM),
        ("PEM_STATISTIC_TOP", pemapi.TOP)] + [("PEM_LOG_" + name.upper(), i) for i, name in enumerate(c.LOG_LEVELS)]
    body = "".join('\tprintf("%%s %%lld\\n", "%s", (long long)%s);\n' % (name, name) for name, _ in wanted)
    equal(["%s %d" % item for item in wanted], compiled(body), "constants")


@test
def functions_are_there():
    "every function it names is in the headers with so many parameters, and in the library"
    c = module()
    text = ""
    for header in ("pem.h", "trace.h", "model.h"):
        with open(ROOT + "/libpem/include/pem/" + header) as source:
            text += re.sub(r"/\*.*?\*/", "", source.read(), flags=re.DOTALL)
    for name, (_, *takes) in c.FUNCTIONS.items():
        found = re.search(r"\b%s\(" % name, text)
        assert found, name + " is in no header"
        depth, end, commas = 1, found.end(), 0
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            commas += text[end] == "," and depth == 1
            end += 1
        inside = text[found.end():end - 1].strip()
        equal(len(takes), 0 if inside == "void" else commas + 1, "parameters of " + name)
    declared = set(re.findall(r"\b(pem_(?:session|statistics|callback|log|event_set|recorder)_\w+)\(", text))
    equal(declared - set(c.FUNCTIONS), set(), "functions of pem.h that Python lacks")
    equal([name for name in c.FUNCTIONS if not hasattr(c.lib._cdll, name)], [], "functions that the library lacks")


@test
def another_version_is_refused():
    "a module and a library of different versions say so on import"
    folder = tmp()
    run(["cp", "-r", MODULE + "/pemapi", folder])
    with open(folder + "/pemapi/_place.py", "w") as out:
        out.write("LIBRARY = %r\nVERSION = '0.0.1'\n" % (BUILD + "/lib/libpem.so.1"))
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    rc, _, err = run([sys.executable, "-c", "import pemapi"], env={"PYTHONPATH": folder})
    equal(rc, 1, "exit status")
    assert "this module is of pem 0.0.1, and the library" in err, err


run_all()
