# SPDX-License-Identifier: MIT
"""probe_kernel: tracepoints of the running kernel that are in no spec, and functions of the kernel"""
import json
import os
import re
import resource

from probing import can_attach, here, record, rows
from tap import PEM, equal, need, run, run_all, skip, test, tmp

READS = 300
# What dd reads of which size: the catalogue has no event that comes from a single system call.
DD = ("dd", "if=/dev/zero", "of=/dev/null", "bs=137", "count=%d" % READS, "status=none")


def babeltrace(trace, name):
    """The fields of an event's records, as babeltrace2 prints them."""
    rc, out, err = run(["babeltrace2", "--names=payload", "--fields=", trace])
    equal((rc, err), (0, ""), "babeltrace2")
    return [line.split(name + ":")[1] for line in out.splitlines() if name + ":" in line]


@test
def a_tracepoint_outside_the_catalogue():
    "each call is a record with the fields of the tracepoint's format, for our own reader and for babeltrace2"
    here()
    need("babeltrace2", "dd")
    trace, _ = record("syscalls:sys_enter_read,syscalls:sys_exit_read", *DD)
    calls = [row for row in rows(trace, "OS::syscalls::sys_enter_read") if row["count"] == "137"]
    equal(len(calls), READS, "calls of 137 bytes")
    equal({row["fd"] for row in calls}, {"0"}, "fd")
    equal({row["process"] for row in calls}, {"dd"}, "process")
    done = [row for row in rows(trace, "OS::syscalls::sys_exit_read") if row["ret"] == "137"]
    equal(len(done), READS, "results of 137")
    theirs = [line for line in babeltrace(trace, "OS::syscalls::sys_enter_read") if "count = 137 }" in line]
    equal(len(theirs), READS, "calls in babeltrace2")


@test
def strings_and_arrays():
    "a string of the entry's tail is one, and so is one of its fixed part"
    here()
    trace, _ = record("sched:*,task:*", "sh", "-c", "exec /bin/true")
    names = [row["newcomm"] for row in rows(trace, "OS::task::task_rename")]
    execs = [row["filename"] for row in rows(trace, "OS::Process::Exec")]
    assert "/bin/true" in execs, execs
    if names:
        assert "true" in names, names


@test
def more_probes_than_descriptors():
    "as many as find descriptors are recorded, the trace is finished, one sentence tells of the others, and the command's limit is its own"
    here()
    folder = tmp()
    say = 'ulimit -%sn %d; exec %s record -o %s -e "syscalls:sys_enter_*c*" -- sh -c "ulimit -Sn; true"'
    rc, out, err = run(["sh", "-c", say % ("", 128, PEM, folder + "/few")])
    equal((rc, out), (0, "128\n"), "status, and the command's limit: " + err)
    lines = [line for line in err.splitlines() if "does not count the events that it passes over" not in line]
    assert len(lines) == 2 and re.search(r"\d+ of \d+ found no descriptor, for this process may have 128", lines[0]), err
    assert rows(folder + "/few", "OS::syscalls::sys_enter_access"), "no probe was attached"
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4096:
        skip("the limit can't be raised far enough")
    rc, out, err = run(["sh", "-c", say % ("S", 128, PEM, folder + "/all")])
    equal((rc, out), (0, "128\n"), "status, and the command's limit: " + err)
    assert "descriptor" not in err, err


@test
def the_catalogue_comes_first():
    "a tracepoint that the catalogue has is the catalogue's event, by whichever name it is asked for"
    here()
    rc, out, err = run([PEM, "list", "--json", "sched:*"])
    equal(rc, 0, "list: " + err)
    names = {e["name"]: e for e in json.loads(out)}
    assert "OS::Sched::Switch" in names and "OS::sched::sched_switch" not in names, sorted(names)
    others = [name for name in names if name.startswith("OS::sched::")]
    assert others, "no tracepoint of sched is outside the catalogue"
    for name in others:
        equal(names[name]["sources"], ["sched:" + name.split("::")[2]], "source of " + name)


@test
def conditions_and_statistics():
    "--where and statistics work on the fields of a tracepoint's format"
    here()
    trace, _ = record("syscalls:sys_enter_read where count == 137 && fd == 0", *DD)
    equal(len(rows(trace, "OS::syscalls::sys_enter_read")), READS, "records")
    out = os.path.join(tmp(), "counts")
    rc, _, err = run([PEM, "stat", "-q", "--json", "-o", out, "-f", "count", "-e",
                      "syscalls:sys_enter_read where count == 137", "--", *DD])
    equal(rc, 0, err)
    with open(out, encoding="utf-8") as text:
        event = next(e for e in json.load(text)["events"] if e["name"] == "OS::syscalls::sys_enter_read")
    equal((event["count"], event["sum"], event["min"], event["max"]), (READS, 137 * READS, 137, 137), "statistics")


@test
def what_is_not_there():
    "a tracepoint or function that this kernel has not is wrong input, with what was nearly named"
    here()
    for events, says in (("sched:sched_pi_setprioo", "did you mean 'sched:sched_pi_setprio'?"),
                         ("schad:*", "did you mean 'sched:*'?"), ("sched:nothing*", "no tracepoint 'sched:nothing*'"),
                         ("nosuchsystem:*", "'nosuchsystem:*'; /sys/kernel/tracing/events has"),
                         ("fentry:vfs_opn", "did you mean 'vfs_open'?"),
                         ("kprobe:vfs_opn+0", "no function 'vfs_opn'; did you mean 'vfs_open'?")):
        rc, _, err = run([PEM, "record", "-e", events, "--", "true"])
        equal(rc, 1, "status for " + events)
        assert says in err, err


@test
def tracepoints_for_the_kernel_only():
    "a tracepoint without an event in tracefs is refused as such, and not as one that the kernel lacks"
    here()
    with open("/sys/kernel/btf/vmlinux", "rb") as types:
        if b"btf_trace_sched_overutilized_tp" not in types.read():
            skip("this kernel has no sched_overutilized_tp")
    rc, _, err = run([PEM, "record", "-e", "sched:sched_overutilized_tp", "--", "true"])
    equal(rc, 1, "status")
    assert "'sched:sched_overutilized_tp' has no format in /sys/kernel/tracing/events" in err, err


def lacking():
    """Tracepoints of sched that the catalogue has and this kernel lacks, by their events."""
    here()
    _, out, _ = run([PEM, "list", "--json", "OS::Sched::*"])
    lacks = {e["name"]: e["sources"] for e in json.loads(out) if not e["available"]}
    lacks = {name: sources[0] for name, sources in lacks.items() if sources and sources[0].startswith("sched:")}
    if not lacks:
        skip("this kernel has every tracepoint of sched that the catalogue knows")
    return lacks


@test
def a_wildcard_takes_what_is_there():
    "of 'sched:*' nothing is said of what this kernel lacks; its exact name is an error, and list gives the reason"
    lacks = lacking()
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-o", trace, "-e", "sched:*", "--", "true"])
    equal(rc, 0, "status: " + err)
    assert "has no tracepoint" not in err, err
    _, out, _ = run([PEM, "report", "--json", trace])
    equal([gap for gap in json.loads(out)["gaps"] if "has no tracepoint" in gap["reason"]], [], "gaps")
    for name, source in lacks.items():
        rc, _, err = run([PEM, "record", "-e", source, "--", "true"])
        equal(rc, 1, "status of %s: %s" % (source, err))
        assert "tracepoint '%s'" % source in err, err
        rc, out, err = run([PEM, "list", "--json", source])
        equal(rc, 0, "status of list %s: %s" % (source, err))
        told = {e["name"]: e["reason"] for e in json.loads(out)}
        equal(list(told), [name], "events of " + source)
        assert "has no tracepoint" in told[name] or "would call itself without end" in told[name], told


@test
def what_else_there_is_instead():
    "a kernel that takes neither kprobes nor programs in functions is not said to take the other"
    here()
    reasons = {}
    for kind in ("fentry", "kprobe"):
        _, out, _ = run([PEM, "list", "--json", kind + ":vfs_read"])
        reasons.update({kind: e["reason"] for e in json.loads(out) if not e["available"]})
    if len(reasons) < 2:
        skip("this kernel has one of them")
    assert "need none" not in reasons["kprobe"], reasons
    assert "name a tracepoint" in reasons["kprobe"], reasons


# A folder like tracefs's, and one for a user's own session.
FOLDER = "mount -t tmpfs none /sys/kernel/tracing && mkdir -p /sys/kernel/tracing/events/fake/thing && " \
         "touch /sys/kernel/tracing/events/fake/thing/format && chmod 440 /sys/kernel/tracing/events/fake/thing/format && " \
         "mkdir /sys/kernel/tracing/own && chown 65534 /sys/kernel/tracing/own"


@test
def formats_that_may_not_be_read():
    "a tracepoint whose format only root may read is said to be that, and not to be of another form"
    here()
    need("unshare", "setpriv", "mount")
    rc, out, err = run(["unshare", "-m", "sh", "-c", FOLDER + " && export PEM_RUNTIME_DIR=/sys/kernel/tracing/own "
                        "&& exec setpriv --reuid=65534 --regid=65534 --clear-groups "
                        "\"$0\" list fake:thing", PEM])
    if "mount:" in err or "setpriv:" in err or "unshare:" in err:
        skip("no mount namespace, or no other user, to be had: " + err.strip())
    assert rc != 0, out
    assert "fake:thing can't be read (Permission denied)" in err and "-o gid=GROUP" in err, err


@test
def entries_and_exits_of_functions():
    "fentry has a function's arguments by name, fexit its result, too"
    here()
    can_attach("fentry:vfs_read", "lets nobody put programs", "can't attach")
    trace, _ = record("fentry:vfs_read,fexit:vfs_read", *DD)
    calls = [row for row in rows(trace, "OS::fentry::vfs_read") if row["count"] == "137"]
    equal(len(calls), READS, "calls of 137 bytes")
    done = [row for row in rows(trace, "OS::fexit::vfs_read") if row["count"] == "137"]
    equal({row["ret"] for row in done}, {"137"}, "results")
    equal(len(done), READS, "returns")


@test
def a_kernel_without_kprobes_says_so():
    "what a kernel has no means to attach is said with what is missing, and nothing is tried"
    here()
    if os.path.exists("/sys/bus/event_source/devices/kprobe"):
        skip("this kernel has kprobes")
    _, _, err = run([PEM, "record", "-o", os.path.join(tmp(), "trace"), "-e", "kprobe:vfs_read+0", "--", "true"])
    assert "built without kprobes (CONFIG_KPROBE_EVENTS)" in err, err
    assert "can't attach" not in err, err


@test
def nothing_to_be_had_is_no_success():
    "where none of the functions named can be observed the status is 2, and the trace has a gap that says why"
    here()
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "-e", "kprobe:vfs_read", "--", "true"])
    if rc == 0:
        skip("this kernel has kprobes")
    equal(rc, 2, "status: " + err)
    assert "none of the events of -e can be had here: " in err, err
    _, out, _ = run([PEM, "report", "--json", trace])
    assert "gaps" in out and "kprobes" in out, out


@test
def another_user_is_told_so():
    "who may not look for tracepoints gets status 2, and not that of a wrong name"
    here()
    need("setpriv")
    if os.geteuid() != 0:
        skip("only root can become somebody else")
    rc, _, err = run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", PEM, "list", "sched:*"])
    equal(rc, 2, "status: " + err)


@test
def kprobes():
    "kprobe and kretprobe do the same where the kernel has them"
    here()
    can_attach("kprobe:vfs_read", "built without kprobes", "can't attach")
    trace, _ = record("kprobe:vfs_read,kretprobe:vfs_read", *DD)
    calls = [row for row in rows(trace, "OS::kprobe::vfs_read") if row["count"] == "137"]
    equal(len(calls), READS, "calls of 137 bytes")
    done = [row for row in rows(trace, "OS::kretprobe::vfs_read") if row["ret"] == "137"]
    equal(len(done), READS, "returns of 137")


run_all()
