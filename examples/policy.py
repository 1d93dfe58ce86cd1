# SPDX-License-Identifier: MIT
"""
policy.py - a policy of pem explore in Python: all configurations, in their order (brute force)

    pem explore replay SPACE.csv --policy ./policy.py

Python finds pemapi where it is installed; in a build tree by PYTHONPATH=build/python.
"""
from pemapi import explore


class Brute:
    def __init__(self, space, options):
        """space.parameters has each parameter's name and values; options.seed decides what is left to chance: nothing here."""
        self.space = space
        self.number = -1
        self.best = None

    def next(self):
        """
        The next configuration: its number, or a list with a level for each parameter, in which 0 stands for the parameter's first
        value. None: no configuration is left.
        """
        self.number += 1
        return self.number if self.number < self.space.count else None

    def trial(self, trial):
        """
        Learn what came of a configuration, which may be one of an earlier exploration that this policy never asked for. The smaller
        a value, the better. A policy that learns keeps trial.levels and trial.values, and chooses by them.
        """
        if trial.outcome == "measured" and (self.best is None or trial.values[0] < self.best):
            self.best = trial.values[0]


explore.serve(Brute)
