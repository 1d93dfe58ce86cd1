# SPDX-License-Identifier: MIT
"""
example_watch.py - a consumer that is called back while another program runs
"""
import os
import re

from tap import BUILD, SAN, equal, run, run_all, skip, test, tmp

WATCH = os.path.join(BUILD, "examples", "watch")
LAST = re.compile(r"(\d+) opens, late: (\d+), lost: (\d+), allocated: (\d+) bytes")


def watch(*command):
    """(status, [(pid, name)] of opens, counts)"""
    if SAN:
        skip("the command would need the sanitizer's library first")
    rc, out, err = run([WATCH, *command])
    lines = [line for line in out.splitlines() if not line.startswith("said ")]
    counts = LAST.fullmatch(lines[-1]) if lines else None
    assert counts, "status %d, output: %s, errors: %s" % (rc, out, err)
    return rc, [tuple(line.split(" ", 1)) for line in lines[:-1]], [int(n) for n in counts.groups()]


@test
def opens_as_they_happen():
    "a program's opens are told in their order, those that fail and its children's included"
    folder = tmp()
    names = ["%s/%d" % (folder, i) for i in range(20)]
    for name in names[:10]:
        with open(name, "w", encoding="utf-8"):
            pass
    script = "".join("cat %s 2>/dev/null\n" % name for name in names)
    rc, opens, (count, late, lost, allocated) = watch("sh", "-c", script + "exit 3")
    equal(rc, 3, "status, the command's")
    equal([name for _, name in opens if name in names], names, "opens")
    equal(len({pid for pid, name in opens if name in names}), 20, "processes")
    equal((count, late, lost), (len(opens), 0, 0), "counts")
    assert allocated > 0, "no allocations"


@test
def watch_usage():
    "without a command it says what is missing"
    rc, _, err = run([WATCH])
    equal((rc, err), (1, "watch: name a command\n"), "status and errors")


run_all()
