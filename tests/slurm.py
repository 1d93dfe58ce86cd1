# SPDX-License-Identifier: MIT
"""slurm: a Slurm cluster of a test's own: its controller and two nodes, on loopback"""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time

from patience import HANG_S
from tap import run, skip

CONFIGURATION = """ClusterName=pem
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES State=UP
"""


def free_ports(count):
    """Ports of loopback that nothing listens on now."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for(what, command, env, daemons):
    """Wait until a command succeeds; a cluster that does not start skips nothing: it fails the test."""
    limit = time.monotonic() + HANG_S
    while time.monotonic() < limit and all(daemon.poll() is None for daemon, _ in daemons):
        with contextlib.suppress(subprocess.TimeoutExpired):
            if subprocess.run(command, env=env, capture_output=True, check=False, timeout=30).returncode == 0:
                return
        time.sleep(0.1)
    texts = []
    for daemon, log in daemons:
        with open(log, encoding="utf-8", errors="replace") as text:
            texts.append("%s (status %s): %s" % (daemon.args[0], daemon.poll(), text.read()[-2000:]))
        if daemon.poll() is not None and "Unable to initialize cgroup plugin" in texts[-1]:
            skip("slurmd does not start without control groups of its own")
    raise AssertionError("%s did not start: %s" % (what, "\n".join(texts)))


def end(process):
    """End a daemon, which may not want to."""
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def cluster():
    """The environment in which srun finds nodes n1 and n2."""
    for program in ("slurmctld", "slurmd", "srun", "munged"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            skip(program + " is not installed")
    if os.geteuid() != 0:
        skip("a Slurm cluster starts as root here")
    try:
        socket.getaddrinfo("127.0.0.1", None, socket.AF_INET, flags=socket.AI_ADDRCONFIG)
    except socket.gaierror:
        skip("only the loopback device has an address, and Slurm finds none then")
    search = os.environ["PATH"] + ":/usr/sbin"
    with tempfile.TemporaryDirectory(prefix="pem-slurm-") as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        with open(folder + "/key", "wb", opener=lambda path, flags: os.open(path, flags, 0o400)) as key:
            key.write(os.urandom(128))
        with open(folder + "/slurm.conf", "w", encoding="utf-8") as out:
            out.write(CONFIGURATION.format(folder=folder, host=socket.gethostname(), ports=free_ports(3)))
        env = dict(os.environ, PATH=search, SLURM_CONF=folder + "/slurm.conf")

        def start(*words):
            with open("%s/%s.out" % (folder, words[-1].strip("-/").replace("/", "_")), "wb") as log:
                process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            stack.callback(end, process)
            return process, log.name

        daemons = [start("munged", "-F", "--key-file=" + folder + "/key", "--socket=" + folder + "/munge.socket",
                       "--pid-file=" + folder + "/munged.pid", "--log-file=" + folder + "/munged.log",
                       "--seed-file=" + folder + "/seed")]
        wait_for("munged", ["munge", "-n", "-S", folder + "/munge.socket"], env, daemons)
        os.mkdir(folder + "/state")
        daemons += [start("slurmctld", "-D"), start("slurmd", "-D", "-N", "n1"), start("slurmd", "-D", "-N", "n2")]
        wait_for("the cluster", ["srun", "--immediate=20", "-N2", "true"], env, daemons)
        yield env
