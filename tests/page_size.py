# SPDX-License-Identifier: MIT
"""A database for pem page-size, and the calibration of a machine that is nobody's. Without Valgrind the test is skipped."""
import collections
import json
import os
import shutil
import sys

from tap import BUILD, PEM, SAN, equal, run, tmp

SHAPES = BUILD + "/programs/page_shapes"
TOOL = BUILD + "/lib/pem/valgrind/pem-page-size-amd64-linux"
# 64 entries of each size in the first level, 1,536 for both in the second; walks of 40 and 20 ns, half of that where they
# overlap; first touches of 0.5 and 50 us.
MACHINE = ('{"page_calibration":2,"sizes":2,"levels":2,"shifts":[12,21],"entry_shifts":[0,0],'
           '"tlb":[[0,0,0,2,[1,64,64,0],[2,64,64,0]],[2000,1000,0,1,[3,1536,12,0]]],'
           '"walk_latency_ps":[40000,20000],"walk_throughput_ps":[20000,10000],"window":0,"first_touch_ps":[500000,50000000],'
           '"collapse_ps":[0,100000000],"copy_ps":[1000000,10000000],"supply_bytes":[17179869184,8589934592],'
           '"instruction_fs":300000,"noise_ppm":20000,"calibration_ms":9000}')

if not os.path.exists(TOOL) or not shutil.which("valgrind"):
    print("1..0 # SKIP there is no Valgrind, or pem was built without its libraries")
    sys.exit(0)
if SAN:
    print("1..0 # SKIP what is preloaded into programs is tested without sanitizers")
    sys.exit(0)


class Home:
    """A database, and the calibration of a machine that is nobody's."""

    def __init__(self, machine=MACHINE):
        self.folder = tmp()
        os.chmod(self.folder, 0o700)
        self.machine = self.folder + "/machine.json"
        with open(self.machine, "w") as out:
            out.write(machine)

    def run(self, *words, env=()):
        return run([PEM, "page-size", *words], env={"PEM_DB": self.folder + "/cpo.db", "TMPDIR": self.folder, **dict(env)})

    def left(self):
        """What runs left behind in the folder for temporary files."""
        return [name for name in os.listdir(self.folder) if name.startswith("pem-page-size-")]

    def agent(self, *command, options=()):
        return self.run("run", "--machine", self.machine, *options, "--", *command)

    def show(self, *words):
        rc, out, err = self.run("show", "--json", *words)
        equal(rc, 0, err)
        return json.loads(out)

    def evidence(self):
        """How many rows of evidence there are of each role."""
        rc, out, err = run([PEM, "db", "show", "evidence", "--json"], env={"PEM_DB": self.folder + "/cpo.db"})
        equal(rc, 0, err)
        return collections.Counter(row["role"] for row in json.loads(out))

    def large_pages(self):
        """Bytes of large pages of each run that had some."""
        rc, out, err = run([PEM, "db", "show", "metric", "--json"], env={"PEM_DB": self.folder + "/cpo.db"})
        equal(rc, 0, err)
        return [m["mean"] for m in json.loads(out) if m["name"] == "large pages"]

    def plan(self, *command, options=()):
        """What is modelled of a command."""
        profile = self.folder + "/profile"
        if os.path.exists(profile):
            os.unlink(profile)
        rc, _, err = self.run("profile", "-o", profile, "--", *command)
        equal(rc, 0, err)
        rc, out, err = self.run("model", profile, "--json", "--machine", self.machine, *options)
        equal(rc, 0, err)
        return json.loads(out)


def shape(name, millions=2, mib=32):
    return [SHAPES, name, str(millions), str(mib)]


def chosen(plan):
    """Names of the sites with large pages."""
    return [site["name"] for site in plan["sites"] if site["page_size"] > 4096]
