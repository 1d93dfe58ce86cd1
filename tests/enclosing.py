# SPDX-License-Identifier: MIT
"""enclosing.py - records of the probes that enclose code, for enclosed.py and enclosed_languages.py"""
import csv
import io
import os

from tap import PEM, equal, run, tmp


def records(*command):
    """What the program printed, and (event, fields) of each record of a probe."""
    trace = os.path.join(tmp(), "trace")
    rc, out, err = run([PEM, "record", "-q", "-e", "APP::Probe::*", "-o", trace, "--", *command])
    equal(rc, 0, "status (%s)" % err)
    rc, text, err = run([PEM, "export", "--to", "csv", "-o", "-", trace])
    equal(rc, 0, "status of export (%s)" % err)
    rows = [(row["event"].rpartition("::")[2], row) for row in csv.DictReader(io.StringIO(text))]
    return out, [(event, row) for event, row in rows if row["event"].startswith("APP::Probe::")]


def values(found, event, field, number):
    return [int(row[field]) for name, row in found if name == event and row["id"] == str(number)]
