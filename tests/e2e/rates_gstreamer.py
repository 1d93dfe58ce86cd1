# SPDX-License-Identifier: MIT
"""rates_gstreamer: pem rates sees the threads of GStreamer pipelines, which are not recompiled"""
import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from probing import here
from tap import BUILD, OTHER_USER, PEM, equal, need, need_reach, run, run_all, skip, start, test

GSTREAMER = os.path.join(BUILD, "programs", "gstreamer")
PLUGINS = os.path.join(BUILD, "lib", "pem", "gstreamer")
USER = [*OTHER_USER] if os.geteuid() == 0 else []  # without rights: pipes are not observed
for missing, path in (("pem rates", BUILD + "/bin/pem-rates"), ("the tracer", PLUGINS + "/libgstpem.so"), ("its test program", GSTREAMER)):
    if not os.path.exists(path):
        print("1..0 # SKIP %s was not built: json-c or libgstreamer1.0-dev of 1.22 or later is missing" % missing)
        sys.exit(77)
if os.environ.get("SAN"):
    print("1..0 # SKIP GStreamer has no sanitizers, and can't load a plugin that has")
    sys.exit(77)
FOLDER = tempfile.mkdtemp(prefix="pem-test-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
REGISTRY = os.path.join(FOLDER, "registry")
ENV = {"PEM_RUNTIME_DIR": None, "GST_REGISTRY": REGISTRY, "GST_TRACERS": None, "GST_PLUGIN_PATH": None, "GST_PLUGIN_PATH_1_0": None}


def rates(*command, status=0, options=()):
    """What pem rates --json prints of a command, and what pem and the command print to standard error."""
    need_reach()
    if not os.path.exists(REGISTRY):  # else GStreamer looks through all plugins in each program
        os.chmod(FOLDER, 0o755)
        run([GSTREAMER, "1", "queue", "0"], env={**ENV, "GST_PLUGIN_PATH": PLUGINS})
        os.chmod(REGISTRY, 0o644)
    rc, out, err = run([*USER, PEM, "rates", "--json", *options, "--", *command], timeout=300, env=ENV)
    equal(rc, status, "status: " + err)
    return json.loads(out), err


def truth(err):
    """(pid, tid): (name, buffers, seconds of its thread's CPU time) of each stage, as it reports itself."""
    return {(int(pid), int(tid)): (name, int(items), int(ns) / 1e9)
            for name, pid, tid, items, ns in re.findall(r"^(s\d) (\d+) (\d+) (\d+) (\d+)$", err, re.M)}


def check(found, err):
    """The stages are those of the program, named by their elements, and their rates are buffers over CPU time."""
    known = truth(err)
    equal({(s["pid"], s["tid"]) for s in found["stages"]}, set(known), "stages")
    for stage in found["stages"]:
        equal(stage["items"], known[stage["pid"], stage["tid"]][1], "items of " + stage["name"])
        assert known[stage["pid"], stage["tid"]][0] in re.split("[+#]", stage["name"]), stage
        parts = [stage[k] for k in ("running", "other_waits", "waiting_for_cpu", "blocked_in", "blocked_out", "unknown")]
        assert abs(sum(parts) - stage["lifetime"]) <= 0.02 * stage["lifetime"], stage
    for stage in found["stages"]:
        _, items, seconds = known[stage["pid"], stage["tid"]]
        assert abs(stage["rate_per_s"] * seconds / items - 1) <= 0.3, (stage, items / seconds)
        if stage["waiting_for_cpu"] > 0.1 * stage["lifetime"]:
            skip("this machine is too busy: %s waited for a CPU for %g s" % (stage["name"], stage["waiting_for_cpu"]))
        assert abs(stage["rate_per_s"] * seconds / items - 1) <= 0.05, (stage, items / seconds)


def items(found):
    return [s["items"] for s in found["stages"]]


@test
def rates_of_threads_that_work():
    "each thread's rate is its buffers over its own CPU time, for an ordinary user"
    check(*rates(GSTREAMER, "2000", "queue", "500", "1000", "700"))


@test
def silent_queues():
    "so it is if no signal tells who waits: a silent queue, queue2 and multiqueue"
    for queue in ("queue silent=true", "queue2 max-size-buffers=40", "multiqueue max-size-buffers=40"):
        found, err = rates(GSTREAMER, "1000", queue, "500", "1000", "700")
        equal(len(found["queues"]), 2, "queues of " + queue)
        check(found, err)


@test
def the_bottleneck_is_the_slowest_stage():
    "whichever stage is slow, it is the bottleneck; those before it find no space, those after it no buffer"
    for slow in range(3):
        works = ["s2000" if slow == i else "50" for i in range(3)]
        found, err = rates(GSTREAMER, "400", "queue max-size-buffers=20", *works)
        tid = {name: tid for (_, tid), (name, _, _) in truth(err).items()}["s%d" % (slow + 1)]
        stages = found["stages"]
        equal([s["tid"] for s in stages if s["name"] == found["bottleneck"]], [tid], "bottleneck: %s" % stages)
        for i, stage in enumerate(stages):
            key = "other_waits" if i == slow else "blocked_out" if i < slow else "blocked_in"
            assert stage[key] > 0.5 * stage["lifetime"], (slow, stage)
        equal([(q["items"], q["capacity"]) for q in found["queues"]], [(400, 20)] * 2, "queues")


@test
def capacities():
    "a capacity is the number of buffers that fit; a multiqueue exceeds its number while another of its queues is empty"
    for queue, capacity in (("queue", 200), ("queue2 max-size-buffers=40", 40), ("multiqueue max-size-buffers=40", None)):
        found, _ = rates(GSTREAMER, "3000", queue, "50", "50")
        equal([q["capacity"] for q in found["queues"]], [capacity], "capacity of " + queue)


@test
def queues_limited_by_bytes():
    "a queue that is full by its bytes is a queue that is full; its capacity in buffers is unknown"
    found, _ = rates(GSTREAMER, "400", "queue max-size-buffers=0 max-size-time=0 max-size-bytes=4000", "50", "s2000", "50")
    equal([q["capacity"] for q in found["queues"]], [None, None], "capacities")
    assert found["bottleneck"] == found["stages"][1]["name"], found
    assert found["stages"][0]["blocked_out"] > 0.5 * found["stages"][0]["lifetime"], found


@test
def a_scanner_of_plugins_is_beside_the_pipeline():
    "a program that first has a helper look through all plugins, by two pipes, has the bottleneck of its pipeline"
    need_reach()
    if not USER:
        skip("an ordinary user can't observe pipes")
    here()
    command = [PEM, "rates", "--json", "--", GSTREAMER, "1000", "queue max-size-buffers=20", "50", "s2000", "50"]
    rc, out, err = run(command, timeout=300, env={**ENV, "GST_REGISTRY": FOLDER + "/fresh"})
    equal(rc, 0, err)
    found = json.loads(out)
    assert any(q["name"].startswith("pipe:") for q in found["queues"]), found["queues"]
    tid = {name: tid for (_, tid), (name, _, _) in truth(err).items()}["s2"]
    equal([s.get("tid") for s in found["stages"] if s["name"] == found["bottleneck"]], [tid], "bottleneck: %s" % found)


@test
def a_real_encoder():
    "gst-launch-1.0, as it is installed: the encoder is the bottleneck, and its source waits for it"
    need("gst-launch-1.0", "gst-inspect-1.0")
    if run(["gst-inspect-1.0", "--exists", "theoraenc"], env=ENV)[0]:
        skip("theoraenc is not installed (gstreamer1.0-plugins-base)")
    found, _ = rates("gst-launch-1.0", "-q", "videotestsrc", "num-buffers=100", "!", "video/x-raw,width=320,height=240", "!", "queue",
                     "max-size-buffers=4", "!", "theoraenc", "speed-level=0", "!", "queue", "!", "fakesink")
    equal(items(found), [100, 100] + items(found)[2:], "buffers")
    equal([s["name"] for s in found["stages"]], ["videotestsrc0+capsfilter0", "theoraenc0", "fakesink0"], "names")
    equal(found["bottleneck"], "theoraenc0", "bottleneck")
    assert found["stages"][0]["blocked_out"] > 0.3 * found["stages"][0]["lifetime"], found


@test
def a_pipeline_that_is_sought():
    "buffers that a seek throws away are popped by nobody, and the stages after it are seen to wait"
    found, err = rates(GSTREAMER, "-s", "200", "600", "queue max-size-buffers=20", "50", "s1500", "50")
    known = {name: count for name, count, _ in truth(err).values()}
    first, slow, last = found["stages"]
    assert known["s1"] > known["s2"] + 10 and abs(slow["items"] - known["s2"]) <= 2, (items(found), known)
    assert first["blocked_out"] > 0.5 * first["lifetime"], first
    assert last["blocked_in"] > 0.5 * last["lifetime"], last
    equal(found["bottleneck"], slow["name"], "bottleneck")


@test
def a_pipeline_that_ends_or_starts_again():
    "a pipeline whose stream is ended early, or that is stopped and started again, has the buffers that it had"
    for option in "-e", "-r":
        found, err = rates(GSTREAMER, option, "200", "400", "queue max-size-buffers=20", "50", "s1500", "50")
        known = {name: count for name, count, _ in truth(err).values()}
        assert abs(found["queues"][1]["items"] - known["s3"]) <= 2, (found["queues"], known)
        for name in ("s1", "s2", "s3"):
            # The threads of a second start are others, or the same ones.
            threads = [s for s in found["stages"] if name in re.split("[+#]", s["name"])]
            assert abs(sum(s["items"] for s in threads) - known[name]) <= 2, (option, threads, known)
            assert name != "s1" or any(s["blocked_out"] > 0.5 * s["lifetime"] for s in threads), threads
        for stage in found["stages"]:
            assert sum(p["items"] for p in stage["phases"]) <= stage["items"], stage


@test
def pipelines_that_come_and_go():
    "a program that made more queues than can be shown at once has space for those that it has now"
    found, err = rates(GSTREAMER, "-p", "600", "300", "queue max-size-buffers=20", "50", "s1500")
    equal(found["queues_missing"], 0, "queues that were not shown")
    equal({count for _, count, _ in truth(err).values()}, {300}, "buffers")
    assert 300 in [q["items"] for q in found["queues"]], found["queues"]


@test
def a_process_that_forks():
    "parent and child have pipelines of their own"
    found, err = rates(GSTREAMER, "-f", "300", "queue max-size-buffers=20", "50", "s1500")
    equal({(s["pid"], s["tid"]): s["items"] for s in found["stages"]}, {key: count for key, (_, count, _) in truth(err).items()}, "buffers")


@test
def a_pipeline_without_queues():
    "a pipeline without queues is one thread, and pem says so"
    need_reach()
    rc, out, err = run([*USER, PEM, "rates", "--", GSTREAMER, "50", "queue", "s2000"], env=ENV)
    equal((rc, out), (0, ""), "status and output: " + err)
    assert "a pipeline of GStreamer without queue elements is one thread" in err, err


@test
def the_variables_of_the_user_are_kept():
    "the command has the tracers and folders that it would have had, and pem's"
    rc, out, _ = run([PEM, "rates", "-q", "-o", "/dev/null", "--", "sh", "-c", "echo $GST_TRACERS $GST_PLUGIN_PATH"],
                     env={**ENV, "GST_TRACERS": "leaks;stats", "GST_PLUGIN_PATH": "/mine"})
    tracers, folders = out.split()
    equal((rc in (0, 2), tracers, folders.split(":")[1:]), (True, "pem;leaks;stats", ["/mine"]), "variables")
    equal(os.path.realpath(folders.split(":")[0]), os.path.realpath(PLUGINS), "the tracer's folder")
    for mine, wanted in ("/r", "/r"), (None, "/cache/gstreamer-1.0/registry.pem.%s.bin" % os.uname().machine):
        out = run([PEM, "rates", "-q", "-o", "/dev/null", "--", "sh", "-c", "echo $GST_REGISTRY"],
                  env={**ENV, "GST_REGISTRY": mine, "GST_REGISTRY_1_0": None, "XDG_CACHE_HOME": "/cache"})[1]
        equal(out, wanted + "\n", "the registry of plugins")


class Running:
    """A pipeline that waits in its midst until a line is written to it."""

    def __init__(self, **env):
        self.program = start([GSTREAMER, "-t", "100", "300", "queue max-size-buffers=20", "50", "s1500"], env={**ENV, **env},
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equal(self.program.stdout.readline(), "%d\n" % self.program.pid, "its process")


@test
def a_process_that_runs():
    "-p PID sees a pipeline that was started with the tracer"
    running = Running(GST_TRACERS="pem", GST_PLUGIN_PATH=PLUGINS)
    pem = start([PEM, "rates", "--json", "-p", str(running.program.pid)], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in pem.stderr:
        if "until it ends or you interrupt" in line:
            break
    err = running.program.communicate("\n")[1]
    found = json.loads(pem.communicate()[0])
    equal({(s["pid"], s["tid"]): s["items"] for s in found["stages"]}, {key: count for key, (_, count, _) in truth(err).items()}, "buffers")


@test
def a_process_without_the_tracer():
    "-p PID of a pipeline without the tracer: pem says how to start it"
    running = Running()
    pem = start([PEM, "rates", "-p", str(running.program.pid)], env=ENV, stderr=subprocess.PIPE, text=True)
    lines = []
    for line in pem.stderr:
        lines.append(line)
        if "GST_TRACERS=pem" in line:
            break
    assert lines and "GST_TRACERS=pem" in lines[-1], lines
    pem.send_signal(signal.SIGINT)
    pem.communicate()
    running.program.communicate("\n")


run_all()
