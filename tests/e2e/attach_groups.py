# SPDX-License-Identifier: MIT
"""
attach_groups.py - attaching to what is in a control group, now or later
"""
import contextlib
import os
import time

from attached import Asked, Observer, numbers
from tap import PEM, equal, run, run_all, skip, test, tmp


@contextlib.contextmanager
def group():
    """A version 2 control group of its own."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if not os.path.exists(os.path.join(root, "cgroup.procs")) or not os.path.exists(os.path.join(root, "cgroup.controllers")):
            continue
        path = os.path.join(root, "pem-e2e-%d" % os.getpid())
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            yield path
        finally:
            for _ in range(200):  # the kernel takes a moment to see that a process is gone
                with contextlib.suppress(OSError):
                    os.rmdir(path)
                    break
                time.sleep(0.01)
        return
    skip("no version 2 control group can be made here")


def enter(asked, path):
    with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as procs:
        procs.write(str(asked.pid))


@test
def in_a_group():
    "record --cgroup records the programs in a control group and no other, and one that enters it later"
    folder = tmp()
    inside, outside, later = Asked(folder), Asked(folder), Asked(folder)
    with group() as path:
        enter(inside, path)
        observer = Observer(inside, "record", "--cgroup", path)
        observer.wait_for(inside)
        for asked in (inside, outside, later):
            asked.ask("tick 20")
        enter(later, path)
        observer.wait_for(later)  # the group is looked at anew once a second
        for asked in (inside, outside, later):
            asked.ask("tick 7")
        found = observer.ticks()
        equal(numbers(found, inside.pid), list(range(1, 28)), "ticks of the one inside")
        equal(numbers(found, outside.pid), [], "ticks of the one outside")
        equal(numbers(found, later.pid), list(range(21, 28)), "ticks of the one that came later")
        for asked in (inside, outside, later):
            asked.end()


@test
def no_group():
    "what is no version 2 control group is told so"
    rc, _, err = run([PEM, "stat", "--cgroup", "/proc"])
    assert rc in (1, 2) and "is no version 2 control group" in err, (rc, err)


run_all()
