# SPDX-License-Identifier: MIT
"""house_spdx: every source file names its licence, the licence is here, and folders keep to theirs"""
import os
import re

from tap import ROOT, equal, run, run_all, test

SOURCE = re.compile(r"(\.(c|h|cpp|hpp|f90|rs|java|py|sh|mk|xml|xsd|js|css|html|sql|S|in|map|ld|md)|/run|/deps|^Makefile|Kbuild)$")
SPDX = re.compile(r"SPDX-License-Identifier: ([A-Za-z0-9.+() -]+?)\s*(\*/|-->|$)", re.MULTILINE)

# First match holds. What links into the kernel or with Valgrind's libraries is GPL, what users link is LGPL, what they
# copy is MIT.
EITHER = {"MIT OR GPL-2.0-only"}
FOLDERS = (
    (r".*/build\.mk$", {"MIT", "LGPL-2.1-or-later"}),
    (r"spec/abi/pem/(k?ring|kmod|kprobe|layout|predicate|distribution|statistic)\.h$", EITHER),
    (r"agents/page-size/valgrind/", {"GPL-2.0-or-later"}),
    (r"libpem/sources/simulated/tool/hierarchy\.", {"MIT"}),
    (r"libpem/sources/simulated/tool/", {"GPL-2.0-or-later"}),
    (r"agents/page-size/hooks/", {"LGPL-2.1-or-later"}),
    (r"kmod/", {"GPL-2.0-only"}),
    # They become part of programs.
    (r"libpem/(include/pem/(probe|stream|stream_shim|stream_shown|stream_tbb)\.hp*|python/pemapi/probes\.py|jvm/pem/Probe\.java)$", {"MIT"}),
    (r"libpem/", {"LGPL-2.1-or-later"}),
    (r"", {"MIT"}),
)


def sources():
    """Source files of this tree, by git, or in a tree without it by walking."""
    rc, out, err = run(["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files"])
    if rc:
        out = "\n".join(os.path.relpath(os.path.join(folder, name), ROOT)
                        for folder, _, names in os.walk(ROOT) for name in names)
    found = [f for f in out.splitlines() if SOURCE.search(f) and not f.startswith(("build/", ".git/", "LICENSES/"))]
    found = [f for f in found if not re.match(r"tests/.*\.xml$", f)]  # some are broken on purpose
    return [f for f in found if os.path.isfile(os.path.join(ROOT, f))]


def licence(path):
    """The SPDX expression in the file's first lines, or None."""
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as text:
        match = SPDX.search("".join(text.readlines()[:4]))
    return match.group(1).strip() if match else None


def allowed(path):
    return next(licences for pattern, licences in FOLDERS if re.match(pattern, path))


@test
def every_source_names_its_licence():
    "every source file has an SPDX line at its head"
    found = sources()
    assert len(found) > 10, "only %d source files found" % len(found)
    equal([f for f in found if not licence(f)], [], "files without one")


@test
def folders_keep_to_their_licence():
    "kmod is GPL-2.0-only, the tool for Valgrind, too, libpem and the hooks LGPL-2.1-or-later, the ring either, the rest MIT"
    equal([(f, licence(f)) for f in sources() if licence(f) and licence(f) not in allowed(f)], [], "strays")


@test
def every_licence_is_here():
    "the text of every licence named lies in LICENSES/, and no other"
    named = {word for f in sources() for word in re.split(r" (?:OR|AND) |[()]", licence(f) or "") if word}
    equal(sorted(name[:-4] for name in os.listdir(ROOT + "/LICENSES")),
          sorted(named | {"MIT", "GPL-2.0-only", "GPL-2.0-or-later", "LGPL-2.1-or-later"}), "LICENSES/")


@test
def readme_names_the_exceptions():
    "the README names, with its licence, each folder that has files under another licence than MIT"
    with open(ROOT + "/README.md", encoding="utf-8") as text:
        section = text.read().split("## Licence")[1]
    told = [(set(re.findall(r"`([a-z-]+(?:/[a-z-]+)*/)`", item)), item) for item in re.split(r"^- ", section, flags=re.MULTILINE)]
    for path in sources():
        words = set(re.split(r" OR ", licence(path) or "MIT"))
        fits = [item for folders, item in told if any(path.startswith(folder) for folder in folders) and all(word in item for word in words)]
        assert words == {"MIT"} or fits, "%s: %s" % (path, words)


run_all()
