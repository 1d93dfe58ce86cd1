# SPDX-License-Identifier: LGPL-2.1-or-later
"""
explore - policies of pem explore in Python: which configuration is tried next

    from pemapi import explore

    class Mine:
        def __init__(self, space, options): ...
        def next(self): return [0, 3, 1]     # a level for each parameter; a number below space.count; None: no more
        def trial(self, trial): ...          # what came of a configuration
        def record(self, record): ...        # optional: a value while the program runs; True: stop the run, it is not worth its time

    explore.serve(Mine)

'pem explore ... --policy ./mine.py' starts the file by python3 and asks it, a line of JSON for each question, over its standard
input and output. What the policy prints goes to standard error. pem/explore.h is the contract; examples/policy.py is a whole policy.
A policy with record() is asked at each value of a metric, and the exploration waits for the answer.
"""
import collections
import json
import os
import sys

# values: the text of each level. positions: where each lies on the scale, from 0 to 1; None: the parameter has no order.
Parameter = collections.namedtuple("Parameter", "name values positions")
# count: configurations that are allowed; None: too many to be counted.
Space = collections.namedtuple("Space", "parameters count")
Options = collections.namedtuple("Options", "seed budget objectives")
# levels: list. values: one for each objective, the smaller the better; None: it was not measured. outcome: "measured", "failed",
# "refused" or "stopped". error: standard error of the first value, or 0.
Trial = collections.namedtuple("Trial", "levels values outcome runs error seconds")
# A value of a metric: the smaller, the better. time_ns: since the run began. objective: which one, from 0.
Record = collections.namedtuple("Record", "time_ns value objective")


def serve(policy):
    """Answer pem explore until it has no more questions. policy: a class as above."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    one = None
    for line in sys.stdin:
        question, content = next(iter(json.loads(line).items()))
        answer = True
        if question == "begin":
            parameters = [Parameter(**parameter) for parameter in content["parameters"]]
            one = policy(Space(parameters, content["count"]), Options(content["seed"], content["budget"], content["objectives"]))
            answer = "records" if hasattr(one, "record") else True
        elif question == "next":
            answer = one.next()
        elif question == "record":
            answer = bool(one.record(Record(**content)))
        else:
            one.trial(Trial(**content))
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
