# SPDX-License-Identifier: MIT
"""page_size_sizes: pem page-size with three sizes of pages, from the model to a run, and where root has switched one off"""
import json
import shutil
import subprocess

from page_sites import MIDDLE, middle_pages
from page_size import MACHINE, MACHINE_OF_THREE, SHAPES, Home, shape
from tap import PEM, equal, run, run_all, skip, test

LONG_S = 25


def keep(home, facts):
    "Have the database know this calibration of the machine."
    sqlite = shutil.which("sqlite3")
    if not sqlite:
        skip("sqlite3 is not installed")
    home.agent("true")
    rc, _, err = run([sqlite, home.folder + "/cpo.db", "update machine set facts = '%s'" % facts])
    equal(rc, 0, err)


@test
def each_site_has_the_pages_that_suit_it():
    "pages of 64 KiB are chosen where large ones save less, and a mapping has a digit for each size"
    home = Home(MACHINE_OF_THREE)
    plan = home.plan(*shape("hot-and-cold"))
    hot = max(plan["sites"], key=lambda site: site["saved_alone_ms"])
    equal((hot["page_size"], hot["large_bytes"]), (MIDDLE, 32 << 20), "the hot site: %s" % hot)
    digits = "0" * plan["sites"].index(hot)
    rc, out, err = home.run("model", home.folder + "/profile", "--machine", home.machine, "--json", "--mapping", digits + "1",
                            "--mapping", digits + "2")
    equal(rc, 0, err)
    plan = json.loads(out)
    middle, large = (mapping["saved_ms"] for mapping in plan["mappings"])
    assert middle > large > 0, plan["mappings"]
    rc, out, err = home.run("model", home.folder + "/profile", "--machine", home.machine, "--mapping", "3")
    assert rc == 1 and "0 to 2" in err, (rc, err)


@test
def a_run_has_pages_of_64_kib():
    "sites that are to have pages of 64 KiB have them, and the output is the program's"
    home, command = Home(MACHINE_OF_THREE), shape("hot-and-cold")
    truth = run(command)[1]
    home.agent(*command)
    equal({d["page_size"] for d in home.show() if d["state"] == "on trial"}, {MIDDLE}, "pages on trial")
    with middle_pages("madvise"):
        rc, out, err = home.run("apply", "--", *command)
    equal((rc, out), (0, truth), err)
    assert "had small pages" not in err, err
    assert home.large_pages()[0] >= 31 << 20, home.large_pages()
    with middle_pages("never"):
        rc, out, err = home.run("apply", "--", *command)
        shown = home.run("show", command[0])[1]
    equal((rc, out), (0, truth), err)
    assert "had small pages: the kernel gave no pages of 64 KiB" in err, err
    assert "64 KiB are not offered: they are switched off; root could say: echo madvise" in shown, shown


@test
def what_is_switched_off_is_not_modelled():
    "a kept calibration is without pages of 64 KiB as long as they are switched off"
    home = Home()
    home.plan(*shape("hot-and-cold"))
    keep(home, MACHINE_OF_THREE)
    words = ("model", home.folder + "/profile", "--mapping", "2")
    with middle_pages("never"):
        rc, _, err = home.run(*words)
    assert rc == 1 and "0 to 1" in err, (rc, err)
    with middle_pages("madvise"):
        rc, _, err = home.run(*words)
    equal(rc, 0, err)


@test
def what_was_switched_on_is_measured():
    "a calibration without pages of 64 KiB is made anew once they are switched on, but not where there were too few"
    home = Home()
    home.plan(*shape("hot-and-cold"))
    with middle_pages("madvise"):
        keep(home, MACHINE[:-1] + ',"lacks_middle":1}')
        rc, out, err = home.run("model", home.folder + "/profile", "--json")
        equal((rc, err), (0, ""), "status and standard error")
        keep(home, MACHINE)
        child = subprocess.Popen([PEM, "page-size", "model", home.folder + "/profile"], stderr=subprocess.PIPE, text=True,
                                 stdout=subprocess.DEVNULL, env={"PEM_DB": home.folder + "/cpo.db", "PATH": "/usr/bin:/bin"})
        said = child.stderr.readline() + child.stderr.readline()
        child.kill()
        child.wait()
    assert "64 KiB now" in said and "measuring this machine" in said, said


run_all()
