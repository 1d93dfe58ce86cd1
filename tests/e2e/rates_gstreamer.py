# SPDX-License-Identifier: MIT
"""rates_gstreamer: pem rates sees the threads of GStreamer pipelines, which are not recompiled"""
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from probing import here
from tap import BUILD, PEM, equal, need, need_reach, run, run_all, skip, start, test
import thread_rates
from thread_rates import USER, check, items_by_thread, named, of_name, slowest_is_named, truth

GSTREAMER = os.path.join(BUILD, "programs", "gstreamer")
PLUGINS = os.path.join(BUILD, "lib", "pem", "gstreamer")
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


def rates(*command):
    """As thread_rates.rates, with a registry of plugins that all tests share."""
    need_reach()
    if not os.path.exists(REGISTRY):  # else GStreamer looks through all plugins in each program
        os.chmod(FOLDER, 0o755)
        run([GSTREAMER, "1", "queue", "0"], env={**ENV, "GST_PLUGIN_PATH": PLUGINS})
        os.chmod(REGISTRY, 0o644)
    return thread_rates.rates(*command, env=ENV)


@test
def stages_queues_and_bottleneck():
    "each thread is a stage with its buffers, named by its elements, for an ordinary user; the slowest one is named"
    found, err = slowest_is_named(lambda: rates(GSTREAMER, "300", "queue max-size-buffers=20", "50", "s2000", "50"))
    check(found, err)
    equal([s["name"] for s in found["stages"]], ["videotestsrc0+capsfilter0+s1", "s2", "s3+fakesink0"], "names")
    equal([(q["items"], q["capacity"]) for q in found["queues"]], [(300, 20)] * 2, "queues")


@test
def silent_queues():
    "so it is if no signal tells who waits: a silent queue, queue2 and multiqueue"
    for queue in ("queue silent=true max-size-buffers=20", "queue2 max-size-buffers=20", "multiqueue max-size-buffers=20"):
        found, err = slowest_is_named(lambda queue=queue: rates(GSTREAMER, "300", queue, "50", "s2000", "50"))
        check(found, err)
        equal([q["items"] for q in found["queues"]], [300] * 2, "buffers")


@test
def capacities():
    "a capacity is the number of buffers that fit; a multiqueue exceeds its number while another of its queues is empty"
    for queue, capacity in (("queue", 200), ("queue2 max-size-buffers=40", 40), ("multiqueue max-size-buffers=40", None)):
        found, _ = rates(GSTREAMER, "300", queue, "50", "s500")
        equal([q["capacity"] for q in found["queues"]], [capacity], "capacity of " + queue)


@test
def queues_limited_by_bytes():
    "a queue that is full by its bytes is a queue that is full; its capacity in buffers is unknown"
    found, _ = slowest_is_named(lambda: rates(GSTREAMER, "300", "queue max-size-buffers=0 max-size-time=0 max-size-bytes=4000", "50", "s2000", "50"))
    equal([q["capacity"] for q in found["queues"]], [None, None], "capacities")


@test
def a_scanner_of_plugins_is_beside_the_pipeline():
    "a program that first has a helper look through all plugins, by two pipes, has the bottleneck of its pipeline"
    need_reach()
    if not USER:
        skip("an ordinary user can't observe pipes")
    here()
    command = [PEM, "rates", "--json", "--", GSTREAMER, "400", "queue max-size-buffers=20", "50", "s2000", "50"]

    def measure():
        registry = tempfile.mkdtemp(dir=FOLDER) + "/fresh"
        rc, out, err = run(command, timeout=300, env={**ENV, "GST_REGISTRY": registry})
        equal(rc, 0, err)
        return json.loads(out), err

    found, err = named(measure)
    assert any(q["name"].startswith("pipe:") for q in found["queues"]), found["queues"]
    equal(found["bottleneck"], "s2", "bottleneck: %s" % found)
    assert truth(err) and of_name(found, "s2"), found


@test
def a_real_encoder():
    "gst-launch-1.0, as it is installed: the encoder is the bottleneck, and its source waits for it"
    need("gst-launch-1.0", "gst-inspect-1.0")
    if run(["gst-inspect-1.0", "--exists", "theoraenc"], env=ENV)[0]:
        skip("theoraenc is not installed (gstreamer1.0-plugins-base)")
    found, _ = named(lambda: rates("gst-launch-1.0", "-q", "videotestsrc", "num-buffers=100", "!", "video/x-raw,width=320,height=240", "!",
                                   "queue", "max-size-buffers=4", "!", "theoraenc", "speed-level=0", "!", "queue", "!", "fakesink"))
    equal([s["items"] for s in found["stages"]][:2], [100, 100], "buffers")
    equal([s["name"] for s in found["stages"]], ["videotestsrc0+capsfilter0", "theoraenc0", "fakesink0"], "names")
    equal(found["bottleneck"], "theoraenc0", "bottleneck")


@test
def a_pipeline_that_is_sought():
    "buffers that a seek throws away are popped by nobody, and the stages after it are seen to wait"
    found, err = slowest_is_named(lambda: rates(GSTREAMER, "-s", "200", "400", "queue max-size-buffers=20", "50", "s1500", "50"))
    known = dict(truth(err).values())
    slow, = of_name(found, "s2")
    assert known["s1"] > known["s2"] + 10 and abs(slow["items"] - known["s2"]) <= 2, (slow, known)


@test
def a_pipeline_that_ends_or_starts_again():
    "a pipeline whose stream is ended early, or that is stopped and started again, has the buffers that it had"
    for option in "-e", "-r":
        found, err = rates(GSTREAMER, option, "200", "400", "queue max-size-buffers=20", "50", "s1500", "50")
        known = dict(truth(err).values())
        assert abs(found["queues"][1]["items"] - known["s3"]) <= 2, (found["queues"], known)
        for name in ("s1", "s2", "s3"):
            # The threads of a second start are others, or the same ones.
            threads = of_name(found, name)
            assert abs(sum(s["items"] for s in threads) - known[name]) <= 2, (option, threads, known)
            assert name != "s1" or any(s["blocked_out"] > s["blocked_in"] for s in threads), threads
        for stage in found["stages"]:
            assert sum(p["items"] for p in stage["phases"]) <= stage["items"], stage


@test
def pipelines_that_come_and_go():
    "a program that made more queues than can be shown at once has space for those that it has now"
    found, err = rates(GSTREAMER, "-p", "600", "300", "queue max-size-buffers=20", "50", "s1500")
    equal(found["queues_missing"], 0, "queues that were not shown")
    equal({count for _, count in truth(err).values()}, {300}, "buffers")
    assert 300 in [q["items"] for q in found["queues"]], found["queues"]


@test
def a_process_that_forks():
    "parent and child have pipelines of their own"
    found, err = rates(GSTREAMER, "-f", "300", "queue max-size-buffers=20", "50", "s1500")
    equal(items_by_thread(found["stages"]), {key: count for key, (_, count) in truth(err).items()}, "buffers")


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
    equal(items_by_thread(found["stages"]), {key: count for key, (_, count) in truth(err).items()}, "buffers")


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
