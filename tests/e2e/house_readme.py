# SPDX-License-Identifier: MIT
"""house_readme: what README and docs tell a newcomer to type works, and what they point to is there"""
import os
import re
import sys

from tap import BUILD, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp


README_LINES_MAX = 150
PAGES = sorted(f for f in os.listdir(ROOT + "/docs") if f.endswith(".md"))
GUIDE = ("record", "watch", "attach", "leave-on", "describe-events", "consume", "export")


def page(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as text:
        return text.read()


def block(text, language):
    """A page's first block of this language."""
    return re.search(r"^```%s\n(.*?)^```" % language, text, re.MULTILINE | re.DOTALL)[1]


@test
def readme_is_short():
    "the README has at most 150 lines"
    lines = page("README.md").count("\n")
    assert lines <= README_LINES_MAX, lines


@test
def index_is_complete():
    "docs/README.md leads to every page"
    index = page("docs/README.md")
    equal([f for f in PAGES if f != "README.md" and "](%s)" % f not in index], [], "pages that it does not lead to")


@test
def guide_begins_with_commands():
    "each page of the guide begins with a command of pem's, or with one that runs a consumer"
    for name in GUIDE:
        lines = [line for line in page("docs/%s.md" % name).splitlines() if line and not line.startswith(("<!--", "# "))]
        assert re.match(r"    (pem |python3 )", lines[0]), (name, lines[0])


@test
def consumers():
    "the first consumers of docs/consume.md, in Python and C++, run, and count the same"
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    need("c++")
    folder = tmp()
    for name, language in (("large.py", "python"), ("large.cpp", "cpp")):
        with open("%s/%s" % (folder, name), "w") as out:
            out.write(block(page("docs/consume.md"), language).replace('"/usr/share"', '"/usr/include"'))
    rc, _, err = run(["c++", "-std=c++17", "-I" + ROOT + "/spec/abi", "-I" + ROOT + "/libpem/include", folder + "/large.cpp",
                      "-o", folder + "/large", "-L" + BUILD + "/lib", "-lpem", "-Wl,-rpath," + BUILD + "/lib"])
    equal(rc, 0, "exit status of c++, which said: " + err[:2000])
    said = []
    cpus = sorted(os.sched_getaffinity(0))[:2]  # a count of one CPU alone shows where there are two, and not each time
    pinned = [sys.executable, "-c", "import os, sys; os.sched_setaffinity(0, %r); os.execv(sys.argv[1], sys.argv[1:])" % cpus]
    for command in [[sys.executable, folder + "/large.py"]] + 5 * [[*pinned, folder + "/large"]]:
        rc, out, err = run(command, env={"PYTHONPATH": BUILD + "/python"})
        equal(rc, 0, "exit status of %s, which said: %s" % (command, err))
        said.append(re.fullmatch(r"(\d+) large blocks of [\d.]+ bytes on average", out.splitlines()[-1])[1])
    equal(said, 6 * said[:1], "what they count, the one in C++ five times")
    assert int(said[0]) > 0, "they count none"


@test
def links_lead_somewhere():
    "every link and picture of the README, CONTRIBUTING and docs is there"
    for name in ["README.md", "CONTRIBUTING.md"] + ["docs/" + f for f in PAGES]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page(name)):
            if "://" not in link:
                path = os.path.join(ROOT, os.path.dirname(name), link)
                assert os.path.exists(path), "%s leads to %s, which is not there" % (name, link)


@test
def commands_exist():
    "every verb of pem that README and guide name has its help, and every make target is known"
    text = page("README.md") + page("CONTRIBUTING.md") + "".join(page("docs/%s.md" % name) for name in GUIDE)
    for verb in sorted(set(re.findall(r"(?:`|build/bin/|^    |\$ )pem ([a-z]+)(?= |`|$)", text, re.MULTILINE))):
        rc, out, err = run([PEM, verb, "--help"])
        equal(rc, 0, "pem %s --help, which said: %s" % (verb, err))
    rc, out, err = run(["make", "-C", ROOT, "-p", "-n", "help"])
    for target in sorted(set(re.findall(r"`?\bmake ([a-z]+)`?(?=`|  )", text))):
        assert re.search(r"^%s:|^\.PHONY:.*\b%s\b" % (target, target), out, re.MULTILINE), "make %s is not known" % target


@test
def the_language_is_told_whole():
    "docs/spec-language.md has every word of specs, every backend, and how each kind of source that has them takes values"
    text = page("docs/spec-language.md")
    for name, words in re.findall(r"\bpem_(\w+)_words\[[^]]*\] = \{(.*?)\};", page("shared/model_words.c"), re.DOTALL):
        for word in set(re.findall(r'"([^"]+)"', words)) - {"-", "probe"}:  # no spec holds an ad-hoc probe
            assert "`%s`" % word in text, "%s, a word of %s" % (word, name)
    table = text[text.index("## What comes out"):]
    rc, out, err = run([BUILD + "/bin/pem-codegen", "--backends"])
    equal((rc, err), (0, ""), "pem-codegen --backends")
    for name in out.split():
        assert re.search(r"^\|[^|]*`%s`" % re.escape(name), table, re.MULTILINE), "no line for backend " + name
    assert "`arg0`" in text, "how a static probe's values are taken"


run_all()
