# SPDX-License-Identifier: MIT
"""
zoo.py - what an entry of the zoo is: a program that nobody here wrote, and what to run with it

Not here: running it (run, modes.py), the entries (programs/*.py).

An entry's script is bash, with errexit and pipefail, in an empty folder. What it prints, its exit status and what it leaves in that
folder must be the same plain and watched, so it leaves out, or takes out with sed, whatever differs from run to run.
It has HOME and TMPDIR (empty folders that are not compared), PORT and PORT2 (free ports of 127.0.0.1), MADE (what prepare made) and these:

	until_ready COMMAND...   wait until the command succeeds, for 20 s
	stop PID [SIGNAL]        end a server and wait for it
	"${drop[@]}" COMMAND...  become an ordinary user (65534) for a command, if root
"""
import glob
import os
import runpy
import shlex
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534

HELPERS = r"""
set -eu -o pipefail
until_ready() {
	local n
	for n in $(seq 400); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	echo "not ready within 20 s: $*"
	return 1
}
stop() {
	kill -"${2:-TERM}" "$1"
	wait "$1" || :
}
drop=()
[ "$(id -u)" != 0 ] || drop=(setpriv --reuid 65534 --regid 65534 --clear-groups)
"""

entries = []


class Entry:
    """
    One program. packages: of Debian, that bring it; version: a command whose first line of output names it; script: what is run, or
    command: a program in $MADE that pem itself is to start; status: its exit status.
    needs: commands and files without which it is skipped (default: the version's command). prepare: a script that runs before,
    unwatched, once, in the folder $MADE: compilers and the like; status 77 skips the entry, its last line says why.
    sees: processes of which there must be application events; unseen: processes of which there can't be any, and says: a pattern
    that what pem record prints must then match. unbalanced: a pattern for the reason by which this trace, as is known, does not balance.
    tolerates: a pattern for lines of standard error that may be added; known: why it is known to fail: then it has to.
    user: 'nobody' where root would be refused; root: only root can run it. group: made from one list, as stressors are.
    seconds: about how long one run takes; limit_s: a run that takes longer hangs.
    """

    def __init__(self, name, script=None, command=None, status=0, packages="", version=None, needs=None, prepare=None, sees="", unseen="", says=None,
                 unbalanced=None, tolerates=None, known=None, user=None, root=False, seconds=2, limit_s=60, group=None, env=None):
        self.name, self.script, self.command, self.status, self.packages = name, script, command, status, packages.split()
        self.tolerates, self.known = tolerates, known
        self.version, self.prepare, self.says, self.unbalanced = version, prepare, says, unbalanced
        self.needs = needs.split() if needs is not None else shlex.split(version or "true")[:1]
        self.sees, self.unseen = sees.split(), unseen.split()
        self.user, self.root, self.seconds, self.limit_s, self.group = user, root, seconds, limit_s, group
        self.env = env or {}
        self.kind = None  # the file that it is from

    def missing(self):
        """Why it can't run here, or None."""
        if self.root and os.geteuid() != 0:
            return "only root can run it"
        for need in self.needs:
            if not (glob.glob(need) if need.startswith("/") else shutil.which(need)):
                hint = ": make zoo-deps installs " + " ".join(self.packages) if self.packages else ""
                return "%s is not installed%s" % (need, hint)
        return None

    def version_line(self):
        """The first line that the version command prints, or ''."""
        if not self.version:
            return ""
        done = subprocess.run(["bash", "-c", self.version], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, check=False)
        lines = [line.strip() for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[0] if lines else ""


def program(name, script=None, **more):
    """An entry of the zoo; see Entry."""
    entries.append(Entry(name, script, **more))


def load():
    """All entries, in the order of their files' names."""
    for path in sorted(glob.glob(os.path.join(HERE, "programs", "*.py"))):
        known = len(entries)
        runpy.run_path(path)
        for entry in entries[known:]:
            entry.kind = os.path.basename(path)[:-3]
    names = [e.name for e in entries]
    assert len(set(names)) == len(names), "two entries of the zoo have one name"
    return entries
