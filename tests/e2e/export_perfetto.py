# SPDX-License-Identifier: MIT
"""export_perfetto: the file of pem export --to perfetto, decoded by protoc"""
import json
import os
import re
import struct

from tap import BUILD, PEM, ROOT, SAN, equal, need, run, run_all, skip, test, tmp
from trace_files import COUNTER, KERNEL, NO_CPU, START, USER, Trace, event_id

PLUGIN = os.path.join(BUILD, "lib", "pem", "export-perfetto.so")


def parse(text):
    """protoc's text form as nested lists of (name, value)."""
    top, stack = [], []
    current = top
    for line in text.splitlines():
        line = line.strip()
        if line.endswith(" {"):
            inner = []
            current.append((line[:-2], inner))
            stack.append(current)
            current = inner
        elif line == "}":
            current = stack.pop()
        else:
            name, value = line.split(": ", 1)
            current.append((name, value))
    return top


def get(message, name, default=None):
    return next((v for n, v in message if n == name), default)


def text(message, name):
    value = get(message, name)
    return None if value is None else value[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()


def export(folder):
    """The packets of the exported trace."""
    if not os.path.exists(PLUGIN):
        skip("export-perfetto.so was not built: protobuf-c is missing (packages libprotobuf-c-dev, protobuf-c-compiler)")
    need("protoc")
    out = os.path.join(tmp(), "out.pftrace")
    rc, _, err = run([PEM, "export", "--to", "perfetto", folder, "-o", out])
    equal(rc, 0, "exit status (stderr: %s)" % err)
    with open(out, "rb") as f:
        data = f.read()
    where = os.path.join(ROOT, "viz-export")
    rc, decoded, err = run(["protoc", "--decode=perfetto.protos.Trace", "--proto_path=" + where,
                            os.path.join(where, "perfetto.proto")], input=data, binary=True)
    equal((rc, err), (0, b""), "protoc")
    packets = [message for name, message in parse(decoded.decode()) if name == "packet"]
    assert not any(re.match(r"\d+$", name) for p in packets for name, _ in p), "a field that perfetto.proto lacks"
    return packets


def exported(trace):
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    return export(folder)


def events(packets):
    return [get(p, "track_event") for p in packets if get(p, "track_event")]


def tracks(packets):
    """Descriptors by uuid, the last of each; each must come before the first event on its track."""
    found = {}
    for p in packets:
        descriptor, event = get(p, "track_descriptor"), get(p, "track_event")
        if descriptor:
            found[get(descriptor, "uuid")] = descriptor
        if event:
            assert get(event, "track_uuid") in found, "an event on a track not described yet"
    return found


@test
def slices_of_system_calls():
    "a system call's slice has the call's name; its end, which does not say which call ended, has none"
    trace = Trace()
    begin = trace.event("OS::Call::Enter", "interval-begin", [("number", "uint64", "system-call")])
    end = trace.event("OS::Call::Exit", "interval-end", [("result", "uint64", "-")])
    other = trace.event("OS::Wait::Begin", "interval-begin", [("value", "uint64", "-")])
    over = trace.event("OS::Wait::End", "interval-end", [("value", "uint64", "-")])
    lines = trace.model[begin][1]
    lines[1] = lines[1].replace("\t-\t0\t", "\tenum\t2\t")
    lines += ["label\t%016x\t%s\t" % (0, "read"), "label\t%016x\t%s\t" % (257, "openat")]
    for i, number in enumerate((257, 0, 999)):
        trace.add(begin, 100 * i + 1, [number])
        trace.add(other, 100 * i + 2, [1])
        trace.add(over, 100 * i + 3, [1])
        trace.add(end, 100 * i + 4, [0])
    found = [(get(e, "type"), text(e, "name")) for e in events(exported(trace))]
    wait = [("TYPE_SLICE_BEGIN", "Wait"), ("TYPE_SLICE_END", "Wait")]
    equal(found, [e for name in ("openat", "read", "Call")
                  for e in [("TYPE_SLICE_BEGIN", name), *wait, ("TYPE_SLICE_END", None)]], "slices")


@test
def slices_and_instants():
    "intervals become slices, others instants, on the track of their thread"
    trace = Trace()
    begin = trace.event("APP::Phase::Begin", "interval-begin", [("name", "string", "name")])
    end = trace.event("APP::Phase::End", "interval-end", [("name", "string", "name")])
    one = trace.event("APP::Test::One", fields=[("value", "uint64", "-")])
    for tid in (7, 8):
        trace.add(begin, 1000 * tid, ["load é".encode()], pid=7, tid=tid)
        trace.add(one, 1000 * tid + 100, [5], pid=7, tid=tid)
        trace.add(end, 1000 * tid + 200, ["load é".encode()], pid=7, tid=tid)
    packets = exported(trace)
    known = tracks(packets)
    equal([(get(e, "type"), text(e, "name")) for e in events(packets)],
          [("TYPE_SLICE_BEGIN", "load é"), ("TYPE_INSTANT", "Test::One"), ("TYPE_SLICE_END", "load é")] * 2, "events")
    equal([text(e, "categories") for e in events(packets)], ["APP"] * 6, "categories")
    equal([get(p, "timestamp") for p in packets if get(p, "track_event")],
          ["7000", "7100", "7200", "8000", "8100", "8200"], "times")
    threads = [get(known[get(e, "track_uuid")], "thread") for e in events(packets)]
    equal([(get(t, "pid"), get(t, "tid")) for t in threads], [("7", "7")] * 3 + [("7", "8")] * 3, "threads")
    annotation = get(events(packets)[1], "debug_annotations")
    equal((text(annotation, "name"), get(annotation, "uint_value")), ("value", "5"), "annotation")
    equal({get(p, "trusted_packet_sequence_id") for p in packets}, {"1"}, "sequence")
    equal([get(p, "sequence_flags") for p in packets if get(p, "sequence_flags")], ["1"], "cleared once")


def pair(trace, group, scope, keys=(), class_name="Srv"):
    """The begin and the end of intervals of this group and scope."""
    word = group.split("::")[-1]
    return [trace.event("APP::%s::%s%s" % (class_name, word, end), "interval-" + end.lower(), [(k, "uint64", "key") for k in keys],
                        group=group, scope=scope) for end in ("Begin", "End")]


def slices(packets):
    """Type, name, name of the track and pid of its parent, of each event."""
    known = tracks(packets)
    found = []
    for e in events(packets):
        track = known[get(e, "track_uuid")]
        parent = known.get(get(track, "parent_uuid"), [])
        found.append((get(e, "type")[5:], text(e, "name"), text(track, "name"), get(get(parent, "process", []), "pid") or text(parent, "name")))
    return found


@test
def slices_are_named_by_their_group():
    "two intervals of one class have slices of two names"
    trace = Trace()
    for group in ("APP::Srv::Parse", "APP::Srv::Reply"):
        for event in pair(trace, group, "thread"):
            trace.add(event, 10 * len(trace.records), [], pid=3, tid=4)
    equal([(get(e, "type"), text(e, "name")) for e in events(exported(trace))],
          [("TYPE_SLICE_" + end, name) for name in ("Parse", "Reply") for end in ("BEGIN", "END")], "slices")


@test
def intervals_of_a_process_are_slices():
    "intervals of a process, CPU or machine are slices on tracks of their group; those that overlap are on two, which are used again"
    trace = Trace()
    begin, end = pair(trace, "APP::Srv::Request", "process", ["order"])
    cpu = pair(trace, "APP::Irq::Handler", "cpu", class_name="Irq")
    whole = pair(trace, "APP::Block::Request", "system", ["sector"], class_name="Block")
    for i, (event, key, tid) in enumerate(((begin, 1, 4), (begin, 2, 4), (end, 1, 5), (begin, 3, 5), (end, 2, 4), (end, 3, 4), (end, 9, 4))):
        trace.add(event, 10 * i, [key], pid=3, tid=tid)
    for i in range(2):
        trace.add(cpu[i], 100 + i, [], pid=0, tid=0, cpu=2, source=KERNEL)
        trace.add(whole[i], 110 + i, [7], pid=3 + i, tid=3 + i)
    packets = exported(trace)
    request = [("SLICE_" + t, "Request", "Srv::Request", "3") for t in ("BEGIN", "BEGIN", "END", "BEGIN", "END", "END")]
    found = slices(packets)
    equal(found[:6], request, "of the process")
    equal(found[6][:2], ("INSTANT", "Srv::RequestEnd"), "an end that ends nothing")
    equal(sorted(found[7:]), sorted([("SLICE_" + t, *words) for t in ("BEGIN", "END") for words in (
        ("Handler", "Irq::Handler", "CPU 2"), ("Request", "Block::Request", None))]), "of the CPU and the machine")
    ids = [get(e, "track_uuid") for e in events(packets)][:6]
    assert ids[0] == ids[2] == ids[3] == ids[5] and ids[1] == ids[4] != ids[0], ids


@test
def a_phase_may_end_in_another_process():
    "a phase that pem mark begins in one process and ends in another is one slice, on the track where it began"
    trace = Trace()
    begin = trace.event("APP::Phase::Begin", "interval-begin", [("name", "string", "name")])
    end = trace.event("APP::Phase::End", "interval-end", [("name", "string", "name")])
    trace.add(begin, 10, [b"load"], pid=5, tid=5)
    trace.add(end, 20, [b"load"], pid=6, tid=6)
    first, last = events(exported(trace))
    equal([(get(e, "type"), text(e, "name")) for e in (first, last)], [("TYPE_SLICE_BEGIN", "load"), ("TYPE_SLICE_END", "load")], "slice")
    equal(get(first, "track_uuid"), get(last, "track_uuid"), "tracks")


@test
def annotations_of_each_kind():
    "fields become annotations of their type; a text that is no UTF-8 is made readable"
    name = "APP::Test::Mixed"
    trace = Trace()
    trace.model[name] = ((), [
        "event\t%08x\t%s\tAPP\tTest\tMixed\t1\tinfo\t-\t\t-\tstub\t\t32\t136\t5\t0\t\t\t" % (event_id(name), name),
        "field\tsmall\tint8\t-\t10\t-\t8\t1\t\t-\t0\t", "field\ttext\tstring\t-\t10\t-\t0\t64\t\t-\t0\t",
        "field\tlist\tlist\tuint64\t10\t-\t12\t4\t\t-\t0\t", "field\treal\tfloat64\t-\t10\t-\t16\t1\t\t-\t0\t",
        "field\taddress\tuint64\t-\t16\t-\t24\t1\t\t-\t0\t"])
    data = struct.pack("<bxxxIdQ", -5, 2, 0.5, 2 ** 64 - 1)
    for i, words in enumerate((b"caf\xc3\xa9\0\0\0", b"caf\xe9 \xff\0\0")):
        trace.records.append((START + i, name, data + words + struct.pack("<QQ", 3, 4), (USER, 1, 1, NO_CPU)))
    packets = exported(trace)
    first, second = ([a for n, a in e if n == "debug_annotations"] for e in events(packets))
    equal([text(a, "name") for a in first], ["small", "text", "list", "real", "address"], "names")
    equal(get(first[0], "int_value"), "-5", "signed")
    equal(text(first[1], "string_value"), "café", "text")
    equal([get(v, "uint_value") for n, v in first[2] if n == "array_values"], ["3", "4"], "list")
    equal(get(first[3], "double_value"), "0.5", "fraction")
    equal(get(first[4], "pointer_value"), str(2 ** 64 - 1), "address")
    equal(text(second[1], "string_value"), "caf? ?", "bytes that are no UTF-8")


@test
def counters_have_tracks():
    "a counter becomes a track of its process with its values"
    trace = Trace()
    clock = trace.event("HW::Software::TaskClock", "counter", [("value", "uint64", "value")], unit="ns")
    load = trace.event("OS::Sched::Load", "gauge", [("value", "float64", "value")])
    for i in range(3):
        trace.add(clock, i * 10, [i * 100], pid=5, tid=0, source=COUNTER)
        trace.add(load, i * 10 + 1, [i / 4], pid=0, tid=0, cpu=1, source=COUNTER)
    packets = exported(trace)
    known = tracks(packets)
    equal([get(e, "type") for e in events(packets)], ["TYPE_COUNTER"] * 6, "types")
    equal([get(e, "counter_value") for e in events(packets)[::2]], ["0", "100", "200"], "values")
    equal([get(e, "double_counter_value") for e in events(packets)[1::2]], ["0", "0.25", "0.5"], "fractions")
    track = known[get(events(packets)[0], "track_uuid")]
    equal(text(track, "name"), "HW::Software::TaskClock", "name")
    equal(get(get(track, "counter"), "unit"), "UNIT_TIME_NS", "unit")
    equal(get(get(known[get(track, "parent_uuid")], "process"), "pid"), "5", "process")
    track = known[get(events(packets)[1], "track_uuid")]
    equal((text(track, "name"), get(track, "parent_uuid")), ("OS::Sched::Load CPU 1", None), "the machine's")


@test
def kernel_records_find_their_thread():
    "kernel records go to the thread that a switch put on their CPU, and to the CPU before one"
    trace = Trace()
    switch = trace.event("OS::Sched::Switch", "sets-thread", [
        ("prev", "uint32", "previous-thread"), ("prevState", "uint32", "-"), ("pid", "uint32", "process"),
        ("tid", "uint32", "thread")])
    fault = trace.event("OS::Mem::PageFault", fields=[("address", "uint64", "address")])
    kernel = dict(pid=0, tid=0, cpu=2, source=KERNEL)
    trace.add(fault, 1, [1], **kernel)
    trace.add(switch, 2, [0, 0, 1, 9], **kernel)
    trace.add(fault, 3, [3], **kernel)
    trace.add(switch, 4, [9, 2, 0, 0], **kernel)
    packets = exported(trace)
    known = tracks(packets)
    before, after = (known[get(e, "track_uuid")] for e in events(packets))
    equal(text(before, "name"), "CPU 2", "track before the switch")
    equal([get(get(after, "thread"), n) for n in ("pid", "tid")], ["1", "9"], "track after the switch")
    bundles = [get(p, "ftrace_events") for p in packets if get(p, "ftrace_events")]
    equal([get(b, "cpu") for b in bundles], ["2", "2"], "CPU")
    switches = [get(get(b, "event"), "sched_switch") for b in bundles]
    equal([(get(s, "prev_pid"), get(s, "prev_state"), get(s, "next_pid"), text(s, "next_comm")) for s in switches],
          [("0", "0", "9", "program"), ("9", "2", "0", "swapper")], "switches")


@test
def a_process_takes_its_new_name():
    "a process that replaces its program is described again"
    trace = Trace()
    name = trace.event("OS::Process::Exec", "process-name", [("pid", "uint32", "process"),
                                                             ("filename", "string", "name")])
    trace.add(name, 5, [1, b"/usr/bin/other"], pid=0, tid=0, cpu=0, source=KERNEL)
    packets = exported(trace)
    names = [text(get(get(p, "track_descriptor"), "process"), "process_name") for p in packets
             if get(get(p, "track_descriptor", []), "process")]
    equal(names[-1], "other", "name")


@test
def processes_and_threads_of_one_number():
    "a process or thread that takes the number of another one has a track of its own"
    trace = Trace()
    start = trace.event("OS::Test::Start", "thread-start", [("pid", "uint32", "process"), ("tid", "uint32", "thread"), ("parent", "uint32", "parent")])
    work = trace.event("APP::Test::Work")
    for i in range(3):
        trace.add(start, 100 * i, [7, 7, 1])
        trace.add(work, 100 * i + 1, pid=7, tid=7)
        trace.add(start, 100 * i + 2, [7, 8, 7], pid=7, tid=7)
        trace.add(work, 100 * i + 3, pid=7, tid=8)
    packets = exported(trace)
    found = tracks(packets)
    processes = [u for u, d in found.items() if get(d, "process") and get(get(d, "process"), "pid") == "7"]
    equal(len(processes), 3, "processes")
    by_thread = {}
    for e in events(packets):
        thread = get(found[get(e, "track_uuid")], "thread")
        if thread and text(e, "name") == "Test::Work":
            by_thread.setdefault(get(thread, "tid"), []).append(get(e, "track_uuid"))
    equal({tid: (len(t), len(set(t))) for tid, t in by_thread.items()}, {"7": (3, 3), "8": (3, 3)}, "tracks of threads")


@test
def counters_and_slices_of_one_number():
    "counters and slices of a process are on its own track, also if it takes the number of another one"
    trace = Trace()
    start = trace.event("OS::Test::Start", "thread-start", [("pid", "uint32", "process"), ("tid", "uint32", "thread"), ("parent", "uint32", "parent")])
    clock = trace.event("HW::Software::TaskClock", "counter", [("value", "uint64", "value")], unit="ns")
    begin, end = (trace.event("APP::Test::" + word, "interval-" + word.lower(), [("id", "uint32", "key")], group="APP::Test", scope="process")
                  for word in ("Begin", "End"))
    for i in range(3):
        trace.add(start, 100 * i, [7, 7, 1])
        trace.add(clock, 100 * i + 1, [i], pid=7, tid=0, source=COUNTER)
        trace.add(begin, 100 * i + 2, [1], pid=7, tid=7)
        trace.add(end, 100 * i + 3, [1], pid=7, tid=7)
    packets = exported(trace)
    found = tracks(packets)
    for kind in "TYPE_COUNTER", "TYPE_SLICE_BEGIN":
        parents = [get(found[get(e, "track_uuid")], "parent_uuid") for e in events(packets) if get(e, "type") == kind]
        equal((len(parents), len(set(parents))), (3, 3), "processes of " + kind)
        equal({get(get(found[parent], "process"), "pid") for parent in parents}, {"7"}, "their numbers")


@test
def names_that_are_no_utf8():
    "a process whose name is no UTF-8, as file names may be, gets one that protobuf takes, wherever it is named"
    trace = Trace()
    name = trace.event("OS::Process::Exec", "process-name", [("pid", "uint32", "process"),
                                                             ("filename", "string", "name")])
    switch = trace.event("OS::Sched::Switch", "sets-thread", [
        ("prev", "uint32", "previous-thread"), ("pid", "uint32", "process"), ("tid", "uint32", "thread")])
    long = b"\xff" * 200  # cut to what the reader keeps
    for pid in (1, 2):
        trace.add(name, 5 + pid, [pid, long], pid=0, tid=0, cpu=0, source=KERNEL)
        trace.add(name, 15 + pid, [pid, b"\xff" * 63], pid=0, tid=0, cpu=0, source=KERNEL)
    trace.add(switch, 20, [0, 1, 1], pid=0, tid=0, cpu=1, source=KERNEL)
    trace.add(switch, 30, [1, 2, 2], pid=0, tid=0, cpu=1, source=KERNEL)
    packets = exported(trace)
    names = {text(get(get(p, "track_descriptor"), "process"), "process_name") for p in packets
             if get(get(p, "track_descriptor", []), "process")}
    equal(names, {"?" * 63}, "names of processes")
    switches = [get(get(get(p, "ftrace_events"), "event"), "sched_switch") for p in packets if get(p, "ftrace_events")]
    equal([text(s, "next_comm") for s in switches], ["?" * 63] * 2, "names in switches")


@test
def as_many_events_as_the_report_counts():
    "a recording has as many events and switches as pem report counts events"
    if SAN:
        skip("this build carries sanitizers, which can't be preloaded into an unmodified sh; run it without SAN=1")
    folder = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-o", folder, "--", "sh", "-c", "ls / | wc -l"])
    equal(rc, 0, "exit status of record (stderr: %s)" % err)
    rc, out, _ = run([PEM, "report", "--json", folder])
    equal(rc, 0, "exit status of report")
    packets = export(folder)
    known = tracks(packets)
    switches = sum(1 for p in packets if get(p, "ftrace_events"))
    equal(len(events(packets)) + switches, json.loads(out)["events"]["delivered"], "events and switches")
    assert "sh" in {text(get(t, "process"), "process_name") for t in known.values() if get(t, "process")}, "no sh"


@test
def one_suffix():
    "the demo and the man page name files as the exporter does"
    rc, out, _ = run([PEM, "export", "--list", "--json"])
    equal(rc, 0, "status")
    suffix = next((f["suffix"] for f in json.loads(out) if f["name"] == "perfetto"), None)
    if suffix is None:
        skip("the exporter is not built")
    for path in ("demo/run", "docs/man/pem-export.1"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            named = re.findall(r"(?:demo|run)(\.[\w-]*(?:perfetto|pftrace)[\w-]*)", f.read())
        equal(set(named), {suffix}, "suffixes in " + path)


run_all()
