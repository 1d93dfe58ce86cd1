# SPDX-License-Identifier: MIT
"""stressors.py - of the zoo: every stressor of stress-ng for a second, as an ordinary user and with upper bounds on its memory and files: some fill a disk"""
import shutil
import subprocess

from zoo import program

SCRIPT = r"""
ulimit -v 8000000 -f 300000; status=0
stress-ng --NAME 1 --timeout 1s --oomable --temp-path "$TMPDIR" --verify >"$TMPDIR/log" 2>&1 || status=$?
echo "status $status"; grep -aoE 'successful run|unsuccessful run|\(killed\)|terminated on signal.*|Segmentation|not implemented' "$TMPDIR/log" | sort -u || :
"""


def names():
    if not shutil.which("stress-ng"):
        return ["stressors"]
    done = subprocess.run(["stress-ng", "--stressors"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode().split()


for name in names():
    program("stress-ng-" + name, packages="stress-ng", version="stress-ng --version", group="stress-ng", user="nobody", seconds=1.5, limit_s=60,
            script=SCRIPT.replace("NAME", name))
