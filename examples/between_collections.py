# SPDX-License-Identifier: MIT
"""
between_collections.py - between_collections.c in Python: page faults of a Java program between and during its collections

Figure 4 of the paper on Performance and Environment Monitoring (Cascaval, Duesterwald, Sweeney, Wisniewski, IBM
J. R&D 50(2/3), 2006). The C program says what is printed and what privilege it takes; this one prints the same. It needs
pemapi where Python looks:

    python3 between_collections.py java -agentpath:LIBRARIES/libpem-jvm.so -cp . Program
"""
import sys

import pemapi

FAULT = "OS::Mem::PageFault"
BEGIN, END = "APP::Collector::PauseBegin", "APP::Collector::PauseEnd"


def main(*command):
    with pemapi.Session() as session:
        reason = session.why_not(session.events(FAULT)[0])
        if reason:
            print("no %s: %s" % (FAULT, reason), file=sys.stderr)
            sys.exit(2)
        between = session.statistics(session.events(FAULT, where="from %s to %s" % (END, BEGIN)))
        during = session.statistics(session.events(FAULT, where="inside " + BEGIN))
        collections = session.statistics(session.events(BEGIN))
        for statistics in between, during, collections:
            statistics.enable()
        session.run(command)
        status = session.wait()
        between, during, collections = (s.read()[0] for s in (between, during, collections))
        print("%d collections, %d page faults between them, %d during them, %d unknown" % (
            collections.count, between.count, during.count, during.undecided))
        sys.exit(status)


main(*sys.argv[1:])
