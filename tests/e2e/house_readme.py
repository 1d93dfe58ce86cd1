# SPDX-License-Identifier: MIT
"""house_readme: what the README tells a newcomer to type works, and what it points to is there"""
import os
import re
import sys

from tap import BUILD, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp


def readme():
    with open(ROOT + "/README.md", encoding="utf-8") as text:
        return text.read()


def block(language):
    """The README's one block of this language."""
    found = re.findall(r"^```%s\n(.*?)^```" % language, readme(), re.MULTILINE | re.DOTALL)
    equal(len(found), 1, "blocks of " + language)
    return found[0]


@test
def first_spec():
    "the README's first spec, program and commands make a trace with its event"
    if SAN:
        skip("a program without sanitizers can't take the preloaded library of a build with them by plain commands")
    need("cc")
    folder = tmp()
    for name, language in (("shop.xml", "xml"), ("shop.c", "c")):
        with open("%s/%s" % (folder, name), "w") as out:
            out.write(block(language))
    script = block("sh").replace("build/bin/", BUILD + "/bin/").replace("-Ispec/abi", "-I%s/spec/abi" % ROOT)
    rc, out, err = run(["sh", "-e", "-c", script], cwd=folder)
    equal(rc, 0, "status of the README's commands, which said: " + out + err)
    line = next((line for line in out.splitlines() if "APP::Shop::Order" in line), "")
    assert "1,000" in line.split(), "1,000 orders were recorded, and the report says: " + line
    rc, out, err = run([folder + "/shop"], env={"LD_LIBRARY_PATH": None})
    equal((rc, out, err), (0, "", ""), "the program without pem")


@test
def consumers():
    "the README's consumers in Python and C++ run, and count the same"
    if SAN:
        skip("a library with sanitizers can't be loaded into a plain python3")
    need("c++")
    folder = tmp()
    for name, language in (("large.py", "python"), ("large.cpp", "cpp")):
        with open("%s/%s" % (folder, name), "w") as out:
            out.write(block(language).replace('"/usr/share"', '"/usr/include"'))
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
    "every link and picture of the README and docs is there"
    for name in ["README.md"] + ["docs/" + f for f in os.listdir(ROOT + "/docs") if f.endswith(".md")]:
        with open(os.path.join(ROOT, name), encoding="utf-8") as text:
            links = re.findall(r"\]\(([^)#]+)\)", text.read())
        for link in links:
            if "://" not in link:
                path = os.path.join(ROOT, os.path.dirname(name), link)
                assert os.path.exists(path), "%s leads to %s, which is not there" % (name, link)


@test
def commands_exist():
    "every verb of pem that the README names has its help, and every make target is known"
    text = readme()
    for verb in sorted(set(re.findall(r"(?:`|build/bin/)pem ([a-z]+)(?= |`)", text))):
        rc, out, err = run([PEM, verb, "--help"])
        equal(rc, 0, "pem %s --help, which said: %s" % (verb, err))
    rc, out, err = run(["make", "-C", ROOT, "-p", "-n", "help"])
    for target in sorted(set(re.findall(r"`?\bmake ([a-z]+)`?(?=`|  )", text))):
        assert re.search(r"^%s:|^\.PHONY:.*\b%s\b" % (target, target), out, re.MULTILINE), "make %s is not known" % target


run_all()
