# SPDX-License-Identifier: MIT
"""house_prose: names keep to the glossary, comments fit their lines and speak of things that exist"""
import glob
import os
import re

from tap import ROOT, equal, need, parallel, run, run_all, skip, test

LONG_S = 9

TOKEN = re.compile(r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|"""
                   r"(?P<name>[A-Za-z_]\w*)|(?P<other>.)", re.S)
FOLDERS = ("spec", "codegen", "kmod", "libpem", "viz-export", "cli", "examples", "tests", "bench")
COLUMNS = 100
FORMATTER = 14  # of clang-format: Debian 12's

# Words that docs/glossary.md has given up: no name of ours has one among its parts.
GIVEN_UP = {"wish", "wishes", "wished", "place", "places", "slot", "slots", "wide", "wides", "look", "looks", "looked", "aside",
            "tend", "bury", "meet", "met", "stuck"}
OTHERS_WORDS = {"MPI_IN_PLACE", "pem_notify_bench_wide"}  # of others, and of an event

# Files of other projects, and of examples, that comments speak of.
ELSEWHERE = {"jni.h", "omp-tools.h", "mpi.h", "bpf_tracing.h", "sched.h", "shop.h", "program.py", "sdt.h",
             "pgtable-generic.c", "dl-lookup.c", "commoncap.c", "catalogue.c"}
GENERATED = re.compile(r"PROVIDER|NAME|^pem_(kmod_|kernel_)?(events|headers|emit|checks)\.")


def sources():
    """Path, relative to the tree, and text of each C file."""
    for folder in FOLDERS:
        for path in sorted(glob.glob("%s/%s/**/*" % (ROOT, folder), recursive=True)):
            if path.endswith((".c", ".h", ".hpp")):
                with open(path, encoding="utf-8") as text:
                    yield os.path.relpath(path, ROOT), text.read()


def tokens(text, kind):
    return [found.group() for found in TOKEN.finditer(text) if found.lastgroup == kind]


def is_given_up(name):
    return name not in OTHERS_WORDS and bool(GIVEN_UP & set(name.lower().split("_")))


@test
def given_up_words_are_gone_from_names():
    "no name has a word that the glossary has given up"
    found = sorted({"%s: %s" % (path, name) for path, text in sources() if not path.startswith("tests/")
                    for name in tokens(text, "name") if is_given_up(name)})
    equal(found, [], "names with words given up")
    files = [path for path, _ in sources() if is_given_up(os.path.basename(path).split(".")[0])]
    equal(files, [], "files so named")


@test
def a_given_up_word_is_found():
    "the check finds a planted one"
    assert is_given_up("pem_wish__action") and is_given_up("PEM_SLOT") and not is_given_up("pem_replace_file")


@test
def heads_name_their_file():
    "a file's first comment begins with its name"
    wrong = []
    for path, text in sources():
        head = re.match(r"(?:/\* SPDX.*?\*/|// SPDX[^\n]*)\n/\*\n \* ([\w.-]+) - ", text)
        if head and head.group(1) != os.path.basename(path):
            wrong.append("%s calls itself %s" % (path, head.group(1)))
    equal(wrong, [], "heads")


@test
def comments_speak_of_files_that_exist():
    "a source file that a comment names is there"
    there, wrong = set(ELSEWHERE), []
    for where, _, names in os.walk(ROOT):
        if "/build" not in where and "/.git" not in where:
            there |= set(names)
    for path, text in sources():
        for comment in tokens(text, "comment"):
            for name in re.findall(r"(?<![\w<*.-])(?:[\w-]+/)*([\w-]+\.(?:bpf\.)?(?:c|h|py|pml|xml|mk))\b(?!>|::|\()", comment):
                if name not in there and not GENERATED.search(name):
                    wrong.append("%s: %s" % (path, name))
    equal(sorted(set(wrong)), [], "files that are not there")


@test
def comments_speak_of_functions_that_exist():
    "a function or struct of ours that a comment names is there"
    texts = list(sources())
    names = {name for _, text in texts for name in tokens(text, "name")}
    words = {word for _, text in texts for kind in ("text", "other") for piece in (tokens(text, kind) if kind == "text" else ())
             for word in re.findall(r"\w+", piece)}
    wrong = sorted({"%s: %s" % (path, name) for path, text in texts for comment in tokens(text, "comment")
                    for name in re.findall(r"\bpem_[a-z0-9_]+__[a-z0-9_]+\b", comment)
                    if name not in names and name not in words})
    equal(wrong, [], "functions that are not there")


@test
def lines_fit():
    "no line of C is over 100 columns"
    wrong = ["%s:%d" % (path, number) for path, text in sources() for number, line in enumerate(text.splitlines(), 1)
             if len(line.expandtabs(8)) > COLUMNS]
    equal(wrong, [], "longer lines")


@test
def comments_keep_their_space():
    "a line of a comment begins with a space after its star, which the formatter drops if it joins lines"
    found = run(["git", "grep", "-nE", r"^ \*[A-Za-z]", "--", "*.c", "*.h", "*.hpp"], cwd=ROOT)[1].splitlines()
    equal([line for line in found if "agents/page-size" not in line], [], "lines")


@test
def man_pages_close_their_quotes():
    "no line of a man page begins a quotation within a quotation, which man prints with quotes in wrong places"
    found = run(["git", "grep", "-nE", r"^\.(Ql|Dq|Sq) .* (Ql|Dq|Sq) ", "--", "docs/man"], cwd=ROOT)[1]
    equal(found, "", "lines")


@test
def the_formatter_changes_nothing():
    "clang-format leaves every C file as it is"
    need("clang-format")
    version = run(["clang-format", "--version"])[1]
    if not re.search(r"version %d\." % FORMATTER, version):
        skip("each version formats differently: this is %s, and the tree goes by %d" % (version.strip(), FORMATTER))
    paths = [path for path, _ in sources() if not path.endswith(".hpp")]

    def checked(some):
        rc, _, err = run(["clang-format", "--dry-run", "--Werror", "--ferror-limit=3"] + some, cwd=ROOT, timeout=200)
        return err[:2000] if rc else ""

    said = [text for text in parallel(checked, [paths[i:i + 60] for i in range(0, len(paths), 60)]) if text]
    equal("\n".join(said), "", "what it would change")


run_all()
