# SPDX-License-Identifier: MIT
"""stat_beside_perf: pem stat counts what perf stat counts, here and in the emulated machine of pem lab"""
import glob
import json
import os
import re
import shutil
import sys
import tempfile

from labs import pem_lab, program
from tap import PEM, ROOT, need, run, run_all, skip, test, tmp

sys.path.insert(0, os.path.join(ROOT, "lab"))
import kernels  # noqa: E402

LIMIT_S = 300  # a fetch, and a build for another machine
LONG_S = 20
ROUNDS = "20"  # million; two instructions each
# What perf's package depends on for scripts alone, which are not run.
UNNEEDED = ("perl", "python3", "tar", "dpkg", "media-types", "gcc-")
# The lab's machine has these.
IN_LAB = ("libc.so", "ld-linux", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libgcc_s.so", "libstdc++.so", "libz.so",
          "liblzma.so", "libbz2.so", "libelf.so", "libdw.so")


def near(pem, perf, what):
    """Both observe a whole process, from its exec; the kernel's part of that differs a little in each run."""
    assert abs(pem - perf) <= perf / 50, "%s: pem %d, perf %d" % (what, pem, perf)


def by_perf(text):
    """Counts of perf stat -x, by the name that was asked for."""
    return {line.split(",")[2].split(":")[0]: int(line.split(",")[0]) for line in text.splitlines()
            if re.match(r"\d+,,\w[\w-]*[:\w]*,", line)}


def by_pem(text):
    return {event["name"].rsplit("::", 1)[1]: event["count"] for event in json.loads(text)["events"] if "count" in event}


@test
def on_this_machine():
    "instructions of the program alone and page faults of one command agree within 2 %"
    need("perf")
    rc, out, _ = run([PEM, "list", "--json", "hw", "UserInstructions"])
    if rc or not json.loads(out)[0]["available"]:
        skip("instructions: " + json.loads(out)[0]["reason"])
    command = ["--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]
    _, _, err = run(["perf", "stat", "-x,", "-e", "instructions:u,page-faults:u", *command])
    _, out, _ = run([PEM, "stat", "-q", "-n", "--json", "-e", "UserInstructions", *command])
    near(by_pem(out)["UserInstructions"], by_perf(err)["instructions"], "instructions")


def perf_of_lab(folder):
    """Debian's perf for arm64 and the libraries it needs, in a folder. Skips with the reason where it can't be had."""
    place = tempfile.mkdtemp(dir=folder)
    try:
        apt = kernels.Apt("arm64")
        apt.update()
        wanted = [name for name in apt.closure(["linux-perf"]) if not name.startswith(UNNEEDED)]
        for package in apt.download(wanted, os.path.join(place, "downloads")):
            kernels.unpack(package, place)
    except kernels.Unavailable as why:
        skip("perf for arm64: %s" % why)
    at = {os.path.basename(path): path for path in glob.glob(place + "/**/*.so*", recursive=True)}
    shutil.copy(os.path.join(place, "usr/bin/perf"), os.path.join(folder, "perf"))
    todo, names = ["perf"], ["perf"]
    while todo:
        listed = run(["readelf", "-d", os.path.join(folder, todo.pop())])[1]
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", listed):
            if name in names or name.startswith(IN_LAB):
                continue
            shutil.copy(at[name], os.path.join(folder, name))
            names.append(name)
            todo.append(name)
    return names


@test
def in_the_lab():
    "in the emulated machine both count the instructions of the same program alone, but for those of starting it"
    need("readelf", "dpkg-deb", "apt-get")
    folder = tmp()
    program(folder)
    names = perf_of_lab(folder)
    brought = [word for name in ["loop", *names] for word in ("--file", name)]
    out, err = pem_lab(*brought, "stat", "-q", "-e", "cs", "--", "sh", "-c",
                       "./perf stat -x, -e instructions:u ./loop %s 2>&1; pem stat -q --json -e UserInstructions -- ./loop %s 2>&1"
                       % (ROUNDS, ROUNDS), cwd=folder)
    text = out.decode("utf-8", "replace")
    counts = by_perf(text)
    assert "instructions" in counts, text + err.decode("utf-8", "replace")
    begin = re.search(r"^\{", text, re.MULTILINE)
    pem = json.JSONDecoder().raw_decode(text[begin.start():])[0]
    near(by_pem(json.dumps(pem))["UserInstructions"], counts["instructions"], "instructions")


run_all()
