#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
managed - what an event costs from Java and Python, beside what these languages offer: cases stub/java, stub/python

Not here: the compiled languages. A case's process runs under 'pem record --overwrite', as a flight recorder, and raises
our event and the peer's in turn; a disabled case's has libpem in it, and nobody records. Time is the thread's CPU time;
the loop around the call is in it. Prints a table, and appends JSON lines to the file that BENCH_OUT names.
"""
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from measure import QUICK, wanted

HERE = os.path.dirname(os.path.abspath(__file__))
PEM = os.path.join(HERE, "..", "bin", "pem")
LIBPEM = os.path.join(HERE, "..", "lib", "libpem.so.1")
PROCESSES = 1 if QUICK else 5
LTTNG = """
set -e
[ "$(id -u)" != 0 ] || mount -t tmpfs none /run
lttng-sessiond --no-kernel >/dev/null 2>&1 &
daemon=$!
trap 'kill $daemon; wait $daemon' EXIT
for i in 1 2 3 4 5 6 7 8 9 10; do
    if lttng --no-sessiond list >/dev/null 2>&1; then break; fi
    sleep 0.5
done
lttng create bench --output="$LTTNG_HOME/out" >&2
lttng enable-event --python bench >&2
lttng start >&2
"$@"
lttng destroy >&2
echo arrived $(find "$LTTNG_HOME/out" -type f -size +1M | wc -l)
"""


class Failed(Exception):
    pass


def lines(command, env=None):
    """{name: [numbers]} of what a command prints."""
    done = subprocess.run(command, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True)
    if done.returncode:
        raise Failed("%s: status %d: %s" % (command[0], done.returncode, done.stderr.strip()[-300:]))
    found = {}
    for line in done.stdout.splitlines():
        words = line.split()
        found.setdefault(words[0], []).append(float(words[-1]))
    return found


def recorded(command):
    """As lines(), of a recorded command that must have raised what it says."""
    folder = tempfile.mkdtemp(prefix="pem-bench-")
    try:
        found = lines([PEM, "record", "-q", "--no-libc", "--overwrite", "-e", "APP", "-o", folder + "/t", "--"] + command)
        said = subprocess.run([PEM, "report", "--json", folder + "/t"], stdout=subprocess.PIPE, check=True).stdout
        events = json.loads(said)["events"]
        if events["produced"] != found["raised"][0] or events["discarded"]:
            raise Failed("of %d events raised the trace says %r" % (found["raised"][0], events))
        return found
    finally:
        shutil.rmtree(folder)


def several(function, command, env=None):
    total = {}
    for _ in range(PROCESSES):
        for name, values in (function(command) if env is None else function(command, env)).items():
            total.setdefault(name, []).extend(values)
    return total


def java():
    if not glob.glob(HERE + "/java/Stub.class"):
        raise Failed("not built: no JDK")
    command = ["java", "-Djava.library.path=" + HERE + "/java", "-cp", HERE + "/java", "Stub"]
    version = subprocess.run(["java", "-version"], stderr=subprocess.PIPE).stderr.decode().split('"')[1]
    found = several(recorded, command + ["recorded"])
    found.update(several(lines, command + ["disabled"], {"LD_PRELOAD": LIBPEM}))
    report("stub/java_loop", found["loop"])
    report("stub/java", found["log"], "JFR event, OpenJDK " + version, found["jfr"])
    report("stub/java_disabled", found["disabled"], "JFR event, OpenJDK " + version, found["jfr_disabled"])


def with_lttngust(python, script):
    """The peer's numbers, or a Failed that says what it lacks."""
    if subprocess.run([python, "-c", "import lttngust"], stderr=subprocess.DEVNULL).returncode:
        raise Failed("lttngust is missing (python3-lttngust)")
    if not shutil.which("lttng-sessiond"):
        raise Failed("lttng-sessiond is missing (lttng-tools)")
    home = tempfile.mkdtemp(prefix="pem-bench-")
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else []
    try:
        found = lines(unshare + ["sh", "-c", LTTNG, "sh", python, script, "lttngust"], {"LTTNG_HOME": home})
        if not found["arrived"][0]:
            raise Failed("its messages did not arrive")
        return found
    finally:
        shutil.rmtree(home)


def python():
    os.environ["PYTHONPATH"] = HERE + "/python"
    interpreter = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    command = [interpreter, HERE + "/python/stub.py"]
    version = subprocess.run([interpreter, "--version"], stdout=subprocess.PIPE).stdout.decode().split()[1]
    found = several(recorded, command + ["recorded"])
    found.update(several(lines, command + ["disabled"], {"LD_PRELOAD": LIBPEM}))
    peer = "logging.MemoryHandler, Python " + version
    report("stub/python", found["log"], peer, found["logging"])
    report("stub/python_disabled", found["disabled"], peer, found["logging_disabled"])
    try:
        report("stub/python_lttngust", found["log"], "lttngust, Python " + version, with_lttngust(*command)["lttngust"])
    except Failed as why:
        print("managed: no lttngust beside us: %s" % why)


def report(case, ours, peer=None, theirs=()):
    value = statistics.median(ours)
    line = {"bench": "managed", "case": case, "unit": "ns", "value": value, "min": min(ours), "max": max(ours),
            "runs": len(ours)}
    text = "%-20s %9.3f %9.3f %9.3f  ns" % (case, value, min(ours), max(ours))
    if peer:
        other = statistics.median(theirs)
        line.update(peer=peer, peer_value=other, ratio=value / other)
        text += "   %s %.3f ns, ratio %.3f" % (peer, other, value / other)
    print(text, flush=True)
    if os.environ.get("BENCH_OUT"):
        with open(os.environ["BENCH_OUT"], "a", encoding="utf-8") as out:
            out.write(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()},
                                 separators=(",", ":")) + "\n")


CASES = {java: ("stub/java_loop", "stub/java", "stub/java_disabled"),
         python: ("stub/python", "stub/python_disabled", "stub/python_lttngust")}
chosen = wanted(*CASES[java], *CASES[python])
if chosen:
    print("%-20s %9s %9s %9s" % ("managed", "median", "min", "max"))
for language, cases in CASES.items():
    try:
        if set(cases) & set(chosen):
            language()
    except (Failed, OSError) as why:
        print("managed: no %s: %s" % (language.__name__, why))
