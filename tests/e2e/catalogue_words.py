#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
The catalogue's descriptions: each is read alone, in a list sorted by name, so each must say what it speaks of.

Not here: whether a description is true; that every event has one (pem-codegen --check --strict).
"""
import glob
import os
import re
import xml.etree.ElementTree as xml

from tap import ROOT, equal, run_all, test

# What only a sentence before could explain.
REFERS_BACK = re.compile(r"(it|its|they|their|them|this|that|these|those|such|he|she|his|her)\b", re.IGNORECASE)
# Labels are short names' short meanings, shown beside the name and the field.
FEWEST_WORDS = {"spec": 3, "event": 3, "field": 3}


def descriptions():
    for path in sorted(glob.glob(os.path.join(ROOT, "spec", "*", "*.xml"))):
        for element in xml.parse(path).getroot().iter():
            text = element.get("description")
            if text is not None:
                yield os.path.basename(path), element.tag, element.get("name") or element.get("provider"), text


@test
def stands_alone():
    "no description begins with a word that refers to another, such as 'it' or 'such a'"
    equal([d for d in descriptions() if REFERS_BACK.match(d[3])], [], "descriptions that refer back")


@test
def says_enough():
    "the description of a spec, event or field has at least three words"
    equal([d for d in descriptions() if len(d[3].split()) < FEWEST_WORDS.get(d[1], 1)], [], "descriptions too short")


run_all()
