# SPDX-License-Identifier: MIT
"""
spec_import.py - pem spec import: what it makes of the kernel's tracepoints and of static probes is valid and true

Not here: the stubs that raise USDT probes (codegen_peers.py).
"""
import os
import re
import struct
import xml.etree.ElementTree as xml

from tap import CODEGEN, OTHER_USER, PEM, equal, need, need_reach, parallel, run, run_all, skip, test, tmp
from tracefs import need_tracefs

LONG_S = 9

EVENTS = "/sys/kernel/tracing/events"


def here():
    need_tracefs()
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        skip("this kernel has no BTF")
    rc, _, err = run([PEM, "spec", "import", "--tracepoint", "sched:sched_switch"])
    if rc == 2:
        skip(err.strip())


def imported(*arguments):
    """The file that an import makes, after checking that it is without errors."""
    path = os.path.join(tmp(), "imported.xml")
    rc, out, err = run([PEM, "spec", "import", *arguments, "-o", path])
    equal((rc, out, err), (0, "", ""), "import of %s" % " ".join(arguments))
    rc, out, err = run([CODEGEN, "--check", path])
    wrong = [line for line in (out + err).splitlines() if " error: " in line]
    equal((rc, wrong), (0, []), "check of %s" % " ".join(arguments))
    return path


def each_of(system):
    """A system's tracepoints by their whole names, so that those of the catalogue are imported too."""
    return ",".join("%s:%s" % (system, name) for name in sorted(os.listdir(os.path.join(EVENTS, system)))
                    if os.path.isdir(os.path.join(EVENTS, system, name)))


def fields(path, event):
    """name -> attributes of an event's fields."""
    found = [e for e in xml.parse(path).getroot().iter("event") if e.get("name") == event]
    equal(len(found), 1, "events called " + event)
    return {f.get("name"): f.attrib for f in found[0].iter("field")}


@test
def switch_is_understood():
    "the import of sched:sched_switch has the kernel's arguments, and fields from them"
    here()
    path = imported("--tracepoint", "sched:sched_switch")
    source = xml.parse(path).getroot().find("event/source")
    equal(source.get("name"), "sched:sched_switch", "name")
    assert "struct task_struct *prev, struct task_struct *next" in source.get("arguments"), source.attrib
    got = fields(path, "OS::Sched::SchedSwitch")  # the catalogue has OS::Sched::Switch
    equal(got["prevPid"]["from"], "prev->pid", "from of prevPid")
    equal((got["nextPid"]["type"], got["nextComm"]["type"], got["nextComm"]["max"]), ("int32", "string", "16"), "types")


@test
def every_system_imports():
    "every system of this kernel's tracepoints makes a spec without errors, that generates"
    here()

    def events_of(system):
        folder = tmp()
        rc, out, err = run([PEM, "spec", "import", "--tracepoint", each_of(system)])
        if rc == 2 and "has arguments" in err:
            return 0
        equal((rc, err), (0, ""), system)
        path = os.path.join(folder, "one.xml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(out)
        rc, _, err = run([CODEGEN, "--backend", "bpf", "-o", folder, path])
        equal(rc, 0, "%s: %s" % (system, err[-500:]))
        return out.count("<event ")

    systems = sorted(s for s in os.listdir(EVENTS) if os.path.isdir(os.path.join(EVENTS, s)))
    events = [count for count in parallel(events_of, systems) if count]
    assert len(events) > 20 and sum(events) > 200, "%d events of %d systems" % (sum(events), len(events))


@test
def types_are_the_kernels():
    "an imported field has the size and sign of the kernel's format file"
    here()
    wrong, seen = [], 0
    for system in ("sched", "block", "irq", "timer", "kmem"):
        if not os.path.isdir(os.path.join(EVENTS, system)):
            continue
        for event in xml.parse(imported("--tracepoint", each_of(system))).getroot().iter("event"):
            name = event.find("source").get("name").split(":")[1]
            with open("%s/%s/%s/format" % (EVENTS, system, name)) as f:
                text = f.read()
            real = {re.sub(r"_", "", n).lower(): (int(size), sign == "1") for n, size, sign in re.findall(
                r"(\w+)(?:\[[^\]]*\])?;\s*offset:\d+;\s*size:(\d+);\s*signed:(\d);", text)}
            for field in event.iter("field"):
                size, signed = real[field.get("name").lower().replace("value", "")] \
                    if field.get("name").lower() not in real else real[field.get("name").lower()]
                seen += 1
                if re.match(r"u?int", field.get("type")) and \
                        field.get("type") != "%sint%d" % ("" if signed and not field.get("flags") else "u", size * 8):
                    wrong.append((name, field.attrib, size, signed))
    equal(wrong, [], "fields that differ")
    assert seen > 50, seen


@test
def labels_of_print_formats():
    "tables of a print format become labels: of bits, and of the kernel's enumerators"
    here()
    for event, element, label, value in (
            ("irq:softirq_entry", "enum", "TIMER", "1"), ("sock:inet_sock_set_state", "enum", "AF_INET", "2"),
            ("sock:inet_sock_set_state", "enum", "TCP_LISTEN", "10"), ("block:block_rq_issue", None, None, None)):
        if not os.path.exists("%s/%s/format" % (EVENTS, event.replace(":", "/"))):
            continue
        root = xml.parse(imported("--tracepoint", event)).getroot()
        found = {(e.tag, label.get("name"), label.get("value")) for e in root for label in e.iter("label")}
        assert label is None or (element, label, value) in found, (event, sorted(found))


@test
def nothing_matches():
    "a pattern that names no tracepoint, and one whose tracepoints can't be attached to, say so and write nothing"
    here()
    path = os.path.join(tmp(), "none.xml")
    rc, out, err = run([PEM, "spec", "import", "--tracepoint", "nosuch:*", "-o", path])
    equal((rc, out, os.path.exists(path)), (1, "", False), "status, output, file")
    assert "nosuch:*" in err, err
    rc, out, err = run([PEM, "spec", "import", "--tracepoint", "syscalls:*", "-o", path])
    equal((rc, out, os.path.exists(path)), (2, "", False), "status, output, file")
    assert "raw_syscalls" in err, err


@test
def without_root_it_says_so():
    "an ordinary user reads that tracepoints need root"
    here()
    need_reach()
    rc, out, err = run(OTHER_USER + [PEM, "spec", "import", "--tracepoint", "sched:*"], cwd="/")
    equal((rc, out), (2, ""), "status and output")
    assert "root" in err, err


@test
def what_pem_has_is_left_out():
    "a pattern leaves out tracepoints of the catalogue and says as what pem has them; a whole name imports one anyway"
    here()
    rc, out, err = run([PEM, "spec", "import", "--tracepoint", "sched:sched_swi*,sched:sched_migrate_task,irq:*"])
    equal((rc, err), (0, ""), "import")
    assert "sched:sched_switch is left out: pem has it already, as OS::Sched::Switch" in out, out
    assert "sched:sched_migrate_task follows: pem has it already, as OS::" in out, out
    names = re.findall(r"<source [^>]*name='([^']+)'", out)
    assert "sched:sched_migrate_task" in names and "sched:sched_switch" not in names, names
    rc, out, err = run([PEM, "spec", "import", "--tracepoint", "sched:sched_swi*"])
    equal((rc, out), (1, ""), "nothing new")
    assert "already, such as OS::Sched::Switch: " in err, err


@test
def what_a_build_needs_is_said():
    "a tracepoint spec says where it goes, and the members of kernel structures that its expressions follow"
    here()
    with open(imported("--tracepoint", "sched:sched_migrate_task,sched:sched_switch"), encoding="utf-8") as f:
        text = f.read()
    assert "put this file into spec/os of pem's source tree and run make" in text, text
    members = re.search(r"<!-- struct task_struct \{(.*) \}; -->", text).group(1).split(";")
    assert " int pid" in members and " char comm[16]" in members, members
    for name in set(re.findall(r"from='\w+->(\w+)'", text)):
        assert any(re.search(r"\b%s(\[\d+\])?$" % name, member) for member in members), (name, members)


@test
def too_many_are_refused_at_once():
    "more tracepoints than a spec can hold are refused with their number"
    here()
    rc, out, err = run([PEM, "spec", "import", "--tracepoint", "*:*"])
    equal((rc, out), (1, ""), "status and output")
    assert re.search(r"'\*:\*' names \d+ tracepoints: expected at most 1000", err), err


PROBES = r"""
#include <sys/sdt.h>
#include <stdint.h>

int main(int argc, char **argv)
{
	int8_t small = (int8_t)argc;
	uint16_t half = (uint16_t)argc;
	int64_t wide = argc;

	STAP_PROBE3(kitchen, sink_full, small, half, wide);
	STAP_PROBE2(kitchen, pan__hot, argv, argc);
	STAP_PROBE(kitchen, done);
	STAP_PROBE1(kitchen, sink_full_again, 7);
	return 0;
}
"""


@test
def probes_of_a_program():
    "the static probes of a program are imported with the sizes and signs they have"
    need("gcc")
    folder = tmp()
    with open(os.path.join(folder, "kitchen.c"), "w") as f:
        f.write(PROBES)
    program = os.path.join(folder, "kitchen")
    rc, _, err = run(["gcc", "-O2", "-o", program, program + ".c"])
    if rc and "sys/sdt.h" in err:
        skip("sys/sdt.h is missing (systemtap-sdt-dev)")
    equal((rc, err), (0, ""), "gcc")
    path = imported("--usdt", program)
    got = fields(path, "APP::Kitchen::SinkFull")
    equal([(n, a["type"], a["from"]) for n, a in got.items()],
          [("arg0", "int8", "arg0"), ("arg1", "uint16", "arg1"), ("arg2", "int64", "arg2")], "fields")
    equal([a["type"] for a in fields(path, "APP::Kitchen::PanHot").values()], ["uint64", "int32"], "types")
    equal(fields(path, "APP::Kitchen::Done"), {}, "fields")
    equal(xml.parse(path).getroot().find("event/source").attrib,
          {"type": "usdt", "name": "kitchen:sink_full", "binary": "kitchen"}, "source")


@test
def probes_of_a_library():
    "the C++ library's own probes are imported"
    need("readelf")
    found = [p for p in ("/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
                         "/usr/lib/aarch64-linux-gnu/libstdc++.so.6") if os.path.exists(p)]
    if not found or "stapsdt" not in run(["readelf", "-n", found[0]])[1]:
        skip("this system's libstdc++ has no static probes")
    assert "libstdcxx" in open(imported("--usdt", found[0])).read(), "no probe"


@test
def no_probes():
    "a file without probes, and one that is no program, say so"
    for path, word in (("/bin/true", "no static probes"), ("/etc/passwd", "ELF"), ("/nonexistent", "No such file")):
        rc, out, err = run([PEM, "spec", "import", "--usdt", path])
        equal((rc, out), (1, ""), path)
        assert word in err, err


@test
def damaged_notes():
    "probes whose notes are cut or overwritten are refused or read, and nothing crashes"
    need("gcc", "objcopy")
    folder = tmp()
    with open(os.path.join(folder, "kitchen.c"), "w") as f:
        f.write(PROBES)
    program = os.path.join(folder, "kitchen")
    rc, _, err = run(["gcc", "-O2", "-o", program, program + ".c"])
    if rc and "sys/sdt.h" in err:
        skip("sys/sdt.h is missing (systemtap-sdt-dev)")
    with open(program, "rb") as f:
        data = bytearray(f.read())
    at = data.index(b"stapsdt\0") - 12
    for step in range(0, 240, 4):
        broken = bytearray(data)
        broken[at + step:at + step + 4] = b"\xff\xff\xff\xff"
        with open(program, "wb") as f:
            f.write(broken)
        rc, _, err = run([PEM, "spec", "import", "--usdt", program])
        assert rc in (0, 1), "status %d at %d: %s" % (rc, step, err)


# What a session of LTTng would leave, where lttng is this.
LTTNG = r"""#!/bin/sh
case $2 in
list) echo "      shop:sale (loglevel: TRACE_INFO (6)) (type: tracepoint)" ;;
create) echo "$4" | sed 's/--output=//' >"$FAKE/output" ;;
stop) mkdir -p "$(cat "$FAKE/output")/ust" && cp "$FAKE/metadata" "$(cat "$FAKE/output")/ust/metadata" ;;
esac
"""
METADATA = """/* CTF 1.8 */
event {
	name = "shop:sale";
	id = 0;
	loglevel = 3;
	fields := struct {
		integer { size = 64; align = 8; signed = 1; encoding = none; base = 10; } _class;
		integer { size = 24; align = 8; signed = 1; encoding = none; base = 10; } _odd;
		struct {
			struct { integer { size = 8; } _x; } _y;
		} _inner;
		integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; } __lone_length;
		integer { size = 32; align = 8; signed = 0; encoding = none; base = 10; } __raw_length;
		integer { size = 16; align = 8; signed = 0; encoding = none; base = 16; } _raw[ __raw_length ];
		integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _text[8];
		floating_point { exp_dig = 8; mant_dig = 24; align = 8; } _Class;
		enum : integer { size = 8; align = 8; signed = 1; encoding = none; base = 10; } {
			"none at all" = -1,
			"8 or 9" = 8 ... 9,
		} _kind;
	};
};
event {
	name = "other:sale";
	fields := struct {
		string _x;
	};
};
event {
	name = "shop:nothing";
	loglevel = 14;
	fields := struct {
	};
};
"""


def from_metadata(data):
    """The import of what a session declared: status, output, errors."""
    folder = tmp()
    with open(folder + "/lttng", "w") as f:
        f.write(LTTNG)
    os.chmod(folder + "/lttng", 0o755)
    with open(folder + "/metadata", "wb") as f:
        f.write(data)
    return run([PEM, "spec", "import", "--lttng", "shop"],
               env={"FAKE": folder, "PATH": folder + ":" + os.environ["PATH"]})


def packets(text, size=300):
    """Metadata text cut into packets, as session daemons write it."""
    data = b""
    for at in range(0, len(text), size):
        part = text[at:at + size].encode()
        data += struct.pack("<I16sIIIBBBBB", 0x75d11d57, bytes(16), 0, (len(part) + 37) * 8, (size + 64) * 8,
                            0, 0, 0, 1, 8) + part.ljust(size + 27, b"\0")
    return data


@test
def declarations_of_lttng():
    "all that LTTng declares becomes fields, or comments where specs have no type; packets or not, it is the same"
    rc, out, err = from_metadata(METADATA.encode())
    equal((rc, err), (0, ""), "import")
    equal(from_metadata(packets(METADATA)), (0, out, ""), "import of packets")
    path = os.path.join(tmp(), "shop.xml")
    with open(path, "w") as f:
        f.write(out)
    rc, _, err = run([CODEGEN, "--check", path])
    equal((rc, [line for line in err.splitlines() if " error: " in line]), (0, []), "check")
    root = xml.parse(path).getroot()
    equal([(e.get("name"), e.get("level")) for e in root.iter("event")],
          [("APP::Shop::Sale", "error"), ("APP::Shop::Nothing", "debug")], "events")
    equal([[value for value in f.attrib.values()] for f in root.iter("field")],
          [["classValue", "int64"], ["loneLength", "uint32"], ["raw", "list", "uint16", "16", "16"],
           ["text", "string", "8"], ["classValue2", "float32"], ["kind", "int8", "Kind"]], "fields")
    equal([list(label.attrib.values()) for label in root.iter("label")], [["none_at_all", "-1"], ["v8_or_9", "8"]],
          "labels")
    assert "odd: specs have no type" in out and "specs have no type like struct" in out, out


@test
def damaged_declarations():
    "metadata that is cut or overwritten is refused or read in part, and nothing crashes"
    data = packets(METADATA)
    for at in range(0, len(data), 97):
        for broken in (data[:at], data[:at] + b"\xff\xff\xff\xff" + data[at + 4:]):
            rc, _, err = from_metadata(broken)
            assert rc in (0, 3), "status %d at %d: %s" % (rc, at, err)
    text = METADATA.encode()
    for at in range(10, len(text), 41):
        rc, _, err = from_metadata(text[:at])
        assert rc in (0, 3), "status %d at %d: %s" % (rc, at, err)


run_all()
