# SPDX-License-Identifier: MIT
"""
record_gone: functions of programs whose files are not where their paths lead to, or are gone, as the recording ends

Not here: traces that are read on another machine (trace_names.py).
"""
import json
import os
import shutil

from preload import need_preload
from tap import PEM, equal, need, run, run_all, skip, test, tmp

SPIN = r"""
#include <time.h>
#include <unistd.h>
static volatile unsigned long sum;
__attribute__((noinline)) void spends_it_all(void)
{
	for (int i = 0; i < 1000000; i++)
		sum += i;
}
int main(int count, char **arguments)
{
	struct timespec now;
	if (count == 2 && unlink(arguments[1]))
		return 1;
	do {
		spends_it_all();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec == 0 && now.tv_nsec < 300000000);
	return count > 2 && unlink(arguments[1]);
}
"""


def spinner(*options):
    need_preload()
    need("gcc")
    path = os.path.join(tmp(), "spinner")
    with open(path + ".c", "w", encoding="ascii") as file:
        file.write(SPIN)
    rc, _, err = run(["gcc", "-O1", "-Wl,--build-id", *options, "-o", path, path + ".c"])
    equal(rc, 0, err)
    return path


def functions(name, *command):
    """The functions of samples of an object of that name, in a trace whose program's file is gone by now."""
    trace = os.path.join(tmp(), "trace")
    shutil.rmtree(trace, ignore_errors=True)
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "--", *command])
    equal(rc, 0, "status (%s)" % err)
    equal(os.path.exists(os.path.join(trace, ".pem", "files")), False, "copies are left in the trace")
    rc, out, err = run([PEM, "report", "--json", "--by", "function", trace])
    equal(rc, 0, err)
    told = json.loads(out)
    rows = [row for row in told["functions"] if os.path.basename(row.get("object", "")) == name and not row["kernel"] and not row["bytes"]]
    if not rows:
        skip("this machine takes no samples: %s" % told["gaps"])
    return {row.get("function") for row in rows}


def mounts():
    need("unshare")
    rc, _, err = run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"])
    if rc:
        skip("no mounts here: %s" % err.strip())


@test
def a_program_that_removes_itself():
    "a program that was just built, and removes itself as it begins or as it ends, has its functions' names"
    for more in [], ["at the end"]:
        path = spinner()
        assert "spends_it_all" in functions("spinner", path, path, *more), more
        equal(os.path.exists(path), False, "the program's file is there")


@test
def a_program_in_mounts_of_its_own():
    "so has one that only its own mount namespace has, which can be unmounted as soon as it ends"
    mounts()
    path = spinner()
    script = "mount -t tmpfs none /mnt && cp %s /mnt/inner && touch -d '2 days ago' /mnt/inner && /mnt/inner && umount /mnt" % path
    assert "spends_it_all" in functions("inner", "unshare", "-m", "sh", "-c", script)


@test
def a_program_in_a_root_of_its_own():
    "so has one in another root folder, where its path leads to another program outside"
    need("chroot")
    root = os.path.join(tmp(), "root")
    os.makedirs(os.path.join(root, "bin"))
    shutil.copy(spinner("-static"), os.path.join(root, "bin", "true"))
    os.truncate(os.path.join(root, "bin", "true"), 9 << 20)  # too large to be kept since it is young
    if run(["chroot", root, "/bin/true"])[0]:
        skip("no other root folders here")
    found = functions("true", "chroot", root, "/bin/true")
    assert "spends_it_all" in found, found


run_all()
