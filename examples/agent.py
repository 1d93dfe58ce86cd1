# SPDX-License-Identifier: MIT
"""
agent.py - agent.c in Python: large pages for the heap of a program that nobody changes

    python3 agent.py COMMAND [ARG...]

Run it some times: the first run is observed, the next ones are with and without large pages, by chance, until it is clear
which is faster; from then on the better way is used. 'pem db' shows what it learnt. It needs pemapi where Python looks.
"""
import sys

from pemapi import agent

LEAST_BYTES = 64 << 20  # of allocations of a page and more: below, nothing is gained
PURPOSES = {"alone": "alone", "observed": "observed", "treated": "with large pages", "control": "without"}


class LargeHeap(agent.Agent):
    """glibc 2.35 and later asks for large pages if GLIBC_TUNABLES says so."""
    name = "example-heap"

    def observe(self, run, session):
        self.allocations = session.statistics(session.events("APP::Libc::Malloc", where="size >= 4096"), "size")
        self.allocations.enable()

    def model(self, run, session):
        allocated = self.allocations.read()[0].sum
        run.note("large allocations", "bytes", allocated)
        if allocated >= LEAST_BYTES:
            run.propose("heap", "glibc.malloc.hugetlb=1", predicted=5, high=50, cost_bytes=allocated)

    def apply(self, run, directive):
        run.set_variable("GLIBC_TUNABLES", directive.text)


def main(command):
    if not command:
        sys.exit("usage: agent.py COMMAND [ARG...]")
    try:
        report = LargeHeap().run(command, log=lambda level, sentence: print("agent: " + sentence, file=sys.stderr))
    except OSError as why:
        print("agent: %s" % why.strerror, file=sys.stderr)
        return 127
    print("agent: run %d, %s: %.3f s" % (report.run, PURPOSES[report.purpose], report.seconds), end="", file=sys.stderr)
    if report.treated + report.controls > 2:
        print("; gain %.1f %% (%.1f to %.1f) in %d and %d runs" %
              (report.gain, report.gain_low, report.gain_high, report.treated, report.controls), end="", file=sys.stderr)
    print(file=sys.stderr)
    return report.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
