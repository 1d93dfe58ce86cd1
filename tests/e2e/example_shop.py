# SPDX-License-Identifier: MIT
"""
example_shop.py - the shop in each compiled language: the same events, whatever raised them, and the same output without pem

Not here: Java and Python, which need a library beside the program.
"""
import csv
import os
import re
import shutil

from tap import BUILD, PEM, ROOT, equal, need, run, run_all, skip, test, tmp

LANGUAGES = {"c": ("shop", "gcc"), "cxx": ("shop_cxx", "g++"), "fortran": ("shop_fortran", "gfortran"),
             "rust": ("shop_rust", "rustc")}
GOODS = ["tea", "Käse", "bread"]


def sold(customers):
    """What the program raises, in the words of the CSV: customer, cents, count, payment, item."""
    rows = []
    for customer in range(1, customers + 1):
        rows.append(("APP::Shop::ServeBegin", str(customer), "", "", "", ""))
        rows.append(("APP::Shop::Sale", "", str(250 * customer), str(customer), "card", GOODS[customer % 3]))
        rows.append(("APP::Shop::ServeEnd", str(customer), "", "", "", ""))
    return rows


def check_language(language):
    name, compiler = LANGUAGES[language]
    program, folder = os.path.join(BUILD, "examples", name), tmp()
    if not os.path.exists(program):
        skip("%s was missing when pem was built" % compiler)
    equal(run([program, "2"], env={"LD_LIBRARY_PATH": None}), (0, "2 customers served\n", ""), "without pem")
    rc, out, err = run([PEM, "record", "-q", "--no-libc", "-e", "APP", "-o", folder + "/trace", "--", program, "7"])
    equal((rc, out), (0, "7 customers served\n"), "status and output (stderr: %s)" % err)
    rc, out, err = run([PEM, "export", "--to", "csv", "-o", "-", folder + "/trace"])
    equal(rc, 0, "export: " + err)
    rows = [tuple(row[cell] for cell in ("event", "customer", "cents", "count", "payment", "item"))
            for row in csv.DictReader(out.splitlines())]
    equal(rows, sold(7), "events")


def make_test(language):
    def shop():
        check_language(language)
    shop.__doc__ = "the shop in %s raises what it does, and runs alone" % language
    return shop


@test
def commands_build_it():
    "what pem gen says would build a program does build the shop, in C, C++ and Fortran"
    need("cc", "c++", "gfortran")
    for language, suffix in (("c", "c"), ("c++", "cpp"), ("fortran", "f90")):
        folder = tmp()
        shutil.copy(os.path.join(ROOT, "examples/shop." + suffix), os.path.join(folder, "program." + suffix))
        rc, out, err = run([PEM, "gen", "--lang", language, "-o", "gen", os.path.join(ROOT, "examples/shop.xml")], cwd=folder)
        equal(rc, 0, "pem gen: " + err)
        said = re.search(r"^build with: +(.*)$", out + err, re.M).group(1)
        equal(run(["sh", "-ec", said], cwd=folder), (0, "", ""), said)
        equal(run([folder + "/program", "1"]), (0, "1 customers served\n", ""), language)


for one in LANGUAGES:
    test(make_test(one))

run_all()
