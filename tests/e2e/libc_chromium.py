#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Chromium, which brings its own allocator, runs as many processes and confines them, with all events of applications.

Not here: a program of ours that does as it does (libc_allocators.py, libc_harmless.py).
"""
import os
import re
import shutil
import subprocess

from preload import need_preload
from tap import PEM, equal, run, run_all, skip, test, tmp

LONG_S = 3

PAGE = """<!DOCTYPE html><body style='background: #fff'><h1>Hello</h1><canvas id=c width=200 height=200></canvas><script>
let x = document.getElementById('c').getContext('2d');
for (let i = 0; i < 2000; i++) { x.fillStyle = `rgb(${i % 256}, 80, 90)`; x.fillRect(i % 200, i * 7 % 200, 5, 5); }
</script>"""
FLAGS = ("--headless --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --hide-scrollbars").split()


def browser():
    need_preload()
    if not shutil.which("chromium"):
        skip("chromium is not installed (package chromium)")
    if subprocess.run(["chromium", "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode:
        skip("chromium does not start here")
    return "chromium"


def as_user(command, folder):
    """A command as an ordinary user, who owns the folder."""
    if os.geteuid():
        return command
    for path in [folder] + [os.path.join(folder, name) for name in os.listdir(folder)]:
        os.chown(path, 65534, 65534)
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] + command


def screenshot(pem, *flags, user=False):
    """The picture of a page, taken by Chromium, alone or under pem; and what was said."""
    folder = tmp()
    with open(folder + "/page.html", "w", encoding="utf-8") as page:
        page.write(PAGE)
    command = pem + [browser()] + FLAGS + list(flags) + ["--user-data-dir=" + folder + "/profile",
                                                         "--screenshot=" + folder + "/picture.png", folder + "/page.html"]
    home = {"HOME": folder, "XDG_RUNTIME_DIR": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
    rc, _, err = run(as_user(command, folder) if user else command, env=home, timeout=120)
    if rc or not os.path.exists(folder + "/picture.png"):
        return None, "status %d, %s" % (rc, err[-2000:])
    with open(folder + "/picture.png", "rb") as picture:
        return picture.read(), err


def same_picture(*flags, user=False):
    alone, said = screenshot([], *flags, user=user)
    if not alone:
        skip("chromium takes no picture here: " + said[-300:].replace("\n", " "))
    folder = tmp()
    os.chmod(folder, 0o777)
    trace = folder + "/trace"
    recorded, said = screenshot([PEM, "record", "-q", "-e", "APP::*", "-o", trace, "--"], *flags, user=user)
    assert recorded, "no picture: " + said
    assert recorded == alone, "the pictures differ"
    rc, out, err = run([PEM, "report", trace])
    equal(rc, 0, "what pem report says of the balance, with " + out + err)
    events = re.search(r"^APP +([\d,]+)", out, re.MULTILINE)
    assert events and int(events.group(1).replace(",", "")) > 10000, out


@test
def starts():
    "chromium says its version under pem stat, whose event comes from inside of its allocator's lock"
    alone = run([browser(), "--version"])
    equal(run([PEM, "stat", "-o", tmp() + "/stat", "-e", "Malloc", "--", browser(), "--version"])[:2], alone[:2],
          "what it says")


@test
def takes_a_picture():
    "chromium draws the same picture recorded, and the trace of all its processes balances"
    same_picture("--no-sandbox")


@test
def takes_a_picture_confined():
    "so it does in its sandbox, as an ordinary user"
    same_picture(user=True)


run_all()
