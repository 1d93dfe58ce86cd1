# SPDX-License-Identifier: MIT
"""
recover_public.py - a killed recorder of root's, with pools of other users in the session's public folder

Not here: the folder while the recorder lives (attack_public.py), recovery of the session's own folder (recover_folder.py).
"""
import json
import os
import shutil
import signal
import subprocess

from preload import need_preload
from tap import BUILD, PEM, ROOT, equal, run, run_all, skip, start, test, tmp

USERS = 65533, 65534
TICK = "APP::Probe::Tick"


class Killed:
    """A trace whose recorder was killed. Programs of some users had raised ticks, and nobody else had an event that is recorded."""

    def __init__(self, users):
        need_preload()
        if os.geteuid():
            skip("starts programs as several users: needs root")
        self.folder = tmp()
        os.chmod(self.folder, 0o755)
        for name in "programs/asked", "lib/libpem.so.1":
            shutil.copy(os.path.join(BUILD, name), self.folder)
        self.trace = os.path.join(self.folder, "trace")
        self.env = {"PEM_RUNTIME_DIR": os.path.join(self.folder, "runtime"), "PEM_SPEC_PATH": os.path.join(ROOT, "tests", "programs")}
        # setpriv itself, and whatever else is root's, is without the libraries: so no pool lies in root's own folder.
        script = "echo ${PEM_SESSION##*:}\n"
        for user in users:
            os.mkfifo(self.input(user))
            script += "setpriv --reuid %d --regid %d --clear-groups env LD_PRELOAD=%s/libpem.so.1 %s/asked <%s &\n" % (
                user, user, self.folder, self.folder, self.input(user))
        self.recorder = start([PEM, "record", "-q", "-o", self.trace, "--no-libc", "-e", TICK, "--", "sh", "-c", script + "wait"], self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.public = self.recorder.stdout.readline().decode().strip()
        assert os.path.basename(self.public).startswith("pem-"), self.public
        self.inputs = {user: open(self.input(user), "w", encoding="ascii", buffering=1) for user in users}

    def input(self, user):
        return os.path.join(self.folder, "input-%d" % user)

    def raise_ticks(self, user, count):
        """By the user's program: its pid."""
        self.inputs[user].write("tick %d\n" % count)
        while True:
            words = self.recorder.stdout.readline().split()
            assert words, "the program ended"
            if words != [b"ready"]:
                return int(words[0])

    def kill(self):
        self.recorder.kill()
        self.recorder.wait(30)

    def end(self):
        for one in self.inputs.values():
            one.close()
        try:
            os.killpg(self.recorder.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # programs without input end by themselves, and so does their shell
        self.recorder.communicate(timeout=30)

    def count(self):
        """Of ticks, as recovered, for each process; and what is missing."""
        rc, out, err = run([PEM, "report", "--json", self.trace], self.env)
        equal(rc, 0, "pem report: " + err)
        report = json.loads(out)
        return {p["pid"]: p["count"] for p in report["processes"] if p["count"]}, report["events"]["discarded"]

    def left(self):
        return [name for name in os.listdir(os.path.dirname(self.public)) if name.startswith(os.path.basename(self.public))]


@test
def not_swept():
    "what only users of the public folder have logged waits for recovery while other sessions come and go"
    killed = Killed(USERS[:1])
    pid = killed.raise_ticks(USERS[0], 300)
    killed.kill()
    for _ in range(2):
        equal(run([PEM, "stat", "-e", TICK, "--", "true"], killed.env)[0], 0, "another session")
    equal(killed.count(), ({pid: 300}, 0), "ticks of each process, and discarded")
    killed.end()
    equal(killed.left(), [], "left")


HOSTILE = r"""
cd $0; mkfifo pool-1-1 counts-1-1; mkdir pool-2-2 counts-2-2; ln -s /etc/passwd counts-3-3; ln -s /etc/passwd pool-3-3; truncate -s 1T pool-4-4
echo x >pool-5-5; touch refused-1-1-x refused-1-1-99999999999
"""


@test
def several_users():
    "pools of several users are recovered each, whatever another has left beside them, and all of it goes"
    killed = Killed(USERS)
    ticks = {killed.raise_ticks(user, count): count for user, count in zip(USERS, (300, 400))}
    run(["setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups", "sh", "-c", HOSTILE, killed.public])
    owners = {os.lstat(os.path.join(killed.public, name)).st_uid for name in os.listdir(killed.public) if name.startswith("pool-")}
    equal(owners, {*USERS, 65532}, "owners of pools")
    killed.kill()
    equal(killed.count(), (ticks, 0), "ticks of each process, and discarded")
    killed.end()
    equal(killed.left(), [], "left")


run_all()
