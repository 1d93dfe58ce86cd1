# SPDX-License-Identifier: MIT
"""coarse_clock: programs recorded with pem record --clock coarse"""
import json

from tap import PEM, equal, need, run, run_all, test, tmp

SCRIPT = "for i in 1 2 3; do ls -R /usr/share/doc/libc6 /etc/ssl 2>/dev/null; done; sort /etc/passwd | wc -l"


def recorded(trace, *options):
    rc, _, err = run([PEM, "record", "-q", *options, "-e", "APP", "-o", trace, "--", "sh", "-c", SCRIPT], timeout=60)
    equal((rc, err), (0, ""), "status and errors of record")
    rc, out, err = run([PEM, "report", "--json", trace], timeout=60)
    equal((rc, err), (0, ""), "status and errors of report")
    return json.loads(out)["info"]


@test
def processes_are_recorded_and_the_trace_says_how_exact_it_is():
    "events of several processes are all there; the trace and its report state the clock's error, and only with a coarse clock"
    folder = tmp()
    info = recorded(folder + "/coarse", "--clock", "coarse")
    assert info["balanced"] and info["read"] > 1000, info
    assert info["clock_error_ns"] >= 1000 and info["coarse_late_ns"] >= 1, info
    rc, out, err = run([PEM, "report", folder + "/coarse"])
    assert rc == 0 and "events of programs off by more than 10 us for" in " ".join(out.split()), out[:1000]
    info = recorded(folder + "/cycles", "--clock", "cycles")
    assert info["balanced"] and "coarse_late_ns" not in info, info


@test
def others_read_the_trace():
    "babeltrace2 reads it without a warning, and finds no time that goes back"
    need("babeltrace2")
    folder = tmp()
    recorded(folder + "/trace", "--clock", "coarse")
    rc, out, err = run(["babeltrace2", "--clock-seconds", folder + "/trace"], timeout=60)
    equal((rc, err), (0, ""), "status and errors of babeltrace2")
    # In ns: those of one ns come in any order.
    clocks = [line[:line.index("]")] for line in out.splitlines()]
    assert len(clocks) > 1000 and clocks == sorted(clocks)


run_all()
