# SPDX-License-Identifier: MIT
"""
consumer_parity: C++ and Python have each function and each option that the C headers have, and a reference page shows them
"""
import importlib.machinery
import importlib.util
import os

from tap import ROOT, equal, run, run_all, test, tmp


def api_pages():
    """tools/api_pages, as a module."""
    loader = importlib.machinery.SourceFileLoader("api_pages", ROOT + "/tools/api_pages")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("api_pages", loader))
    loader.exec_module(module)
    return module


@test
def nothing_is_missing():
    "each function and each member of an option is reachable in C++ and in Python, or left out with a reason"
    equal(api_pages().missing()[0], [], "missing")


@test
def each_function_is_on_each_page():
    "the reference page of each language has each function"
    folder, module = tmp(), api_pages()
    rc, _, err = run([ROOT + "/tools/api_pages", folder])
    equal((rc, err), (0, ""), "api_pages")
    names = {name for header in module.HEADERS for name, _, _ in module.functions(module.read("libpem/include/pem/" + header))}
    assert len(names) > 100, names
    for page in "c", "cxx", "python":
        with open("%s/%s.md" % (folder, page), encoding="utf-8") as text:
            shown = text.read()
        equal(sorted(name for name in names if "`%s`" % name not in shown and "### %s\n" % name not in shown), [], "not on page " + page)


@test
def what_is_missing_is_found():
    "a function and an option that C alone has are found"
    module = api_pages()
    whole = module.read

    def read(path):
        text = whole(path)
        if path.endswith("/pem.h"):
            text = text.replace("int pem_runtime_dir(", "int pem_more(int x);\nint pem_runtime_dir(")
            text = text.replace("uint32_t compress;", "uint32_t compress;\n\tuint32_t novel;")
        return text
    module.read = read
    found = module.missing()[0]
    for language in "cxx", "python":
        assert "%s has no pem_more" % language in found, found
        assert "%s has no member pem_session_options.novel" % language in found, found


run_all()
