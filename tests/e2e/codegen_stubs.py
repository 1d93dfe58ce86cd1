# SPDX-License-Identifier: MIT
"""
codegen_stubs.py - generated C stubs, compiled and run: the bytes they write, and what a CTF reader makes of these

A small C program stands in for libpem: it registers the provider, owns one chunk and one thread, raises every event
on each of the stubs' paths and prints the records. encode() below writes the same records a second time, from the
words of spec/abi/pem/event.h alone. Not here: libpem, pem record.
"""
import os
import struct

from tap import CODEGEN, ROOT, equal, need, run, run_all, skip, test, tmp

# name -> fields as (name, type, element type or "", max or 0)
EVENTS = {
    "Two": [("a", "uint64", "", 0), ("b", "uint64", "", 0)],
    "Mixed": [("u8", "uint8", "", 0), ("i64", "int64", "", 0), ("i16", "int16", "", 0),
              ("f32", "float32", "", 0), ("f64", "float64", "", 0), ("i8", "int8", "", 0),
              ("u16", "uint16", "", 0), ("u32", "uint32", "", 0), ("i32", "int32", "", 0)],
    "Text": [("s", "string", "", 8), ("n", "uint32", "", 0), ("t", "string", "", 4)],
    "Lists": [("n", "uint8", "", 0), ("s", "string", "", 16), ("l", "list", "uint64", 3),
              ("m", "list", "int16", 4), ("d", "list", "float64", 2)],
    "Bytes": [("l", "list", "uint8", 5), ("s", "string", "", 8)],
    "Empty": [],
}

# what is raised: event, C arguments, the values that should arrive
RAISED = [
    ("Two", "1, 0xfedcba9876543210", [1, 0xfedcba9876543210]),
    ("Mixed", "200, -5, -300, 1.5f, -2.25, -7, 65535, 4000000000u, -70000",
     [200, -5, -300, 1.5, -2.25, -7, 65535, 4000000000, -70000]),
    ("Text", '"abc", 7, ""', ["abc", 7, ""]),
    ("Text", '"longer than 8", 8, "xyz"', ["longer ", 8, "xyz"]),
    ("Text", '0, 9, "four"', ["", 9, "fou"]),
    ("Text", '"12345\\xf0\\x9f\\x8d\\xb5", 10, "1\\xc3\\xa9"', ["12345", 10, "1\u00e9"]),
    ("Text", '"123456\\xc3\\xa9", 11, "\\x80\\x80\\x80\\x80"', ["123456", 11, ""]),
    ("Lists", '1, "ab", 2, longs, 3, shorts, 1, doubles', [1, "ab", [11, 22], [-1, -2, -3], [0.5]]),
    ("Lists", '2, "abcdef", 0, longs, 0, 0, 0, 0', [2, "abcdef", [], [], []]),
    ("Lists", '3, "", 4, longs, 5, shorts, 3, doubles',
     [3, "", [11, 22, 33], [-1, -2, -3, -4], [0.5, 0.25]]),
    ("Lists", '4, "abcdefg", 9, 0, 1, shorts, 0, 0', [4, "abcdefg", [], [-1], []]),
    ("Bytes", '5, bytes, "x"', [[1, 2, 3, 4, 5], "x"]),
    ("Bytes", '0, bytes, "yy"', [[], "yy"]),
    ("Empty", "", []),
]

NUMBERS = {"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q", "int8": "b", "int16": "h",
           "int32": "i", "int64": "q", "float32": "f", "float64": "d"}

PROGRAM = r"""
#include "probe.h"
#include <pem/event.h>
#include <stdio.h>
#include <stdlib.h>

void raise_elsewhere(void);

#ifdef __cplusplus
extern "C" {
#endif

static __thread struct pem_thread *self;
static struct pem_thread thread;
static struct pem_cell cells[256];
static uint64_t chunk[4096];
static unsigned registered, notified;

static void dump(const char *path, const void *record, uint32_t bytes)
{
	const uint8_t *p = (const uint8_t *)record;
	uint32_t i;

	printf("%s ", path);
	for (i = 4; i < bytes; i++) /* without the clock */
		printf("%02x", p[i]);
	printf("\n");
}

static void notify(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes)
{
	uint32_t id;

	memcpy(&id, (char *)record + 4, 4);
	if (provider != &pem_provider_probe || provider->event_ids[index] != id || (uintptr_t)record % 8)
		abort();
	notified++;
	dump("slow", record, bytes);
}

int pem_provider_register(struct pem_provider *provider)
{
	uint8_t *tp;

#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(tp));
#else
	tp = (uint8_t *)__builtin_thread_pointer();
#endif
	registered++;
	self = &thread;
	thread.depth = PEM_DEPTH_IDLE;
	provider->registered = 1;
	provider->notify = notify;
	provider->event_base = 5;
	provider->cell_offset = 5 * sizeof(struct pem_cell);
	provider->thread_offset = (uint8_t *)&self - tp;
	return 0;
}

void pem_provider_unregister(struct pem_provider *provider)
{
	if (!provider->registered)
		abort();
	provider->registered = 0;
}

#ifdef __cplusplus
}
#endif

static void use_chunk(unsigned bytes)
{
	struct pem_writer *w = &thread.writer[2];

	memset(chunk, 0xee, sizeof(chunk));
	memset(w, 0, sizeof(*w));
	w->packet = (struct pem_packet *)(void *)chunk;
	w->cursor = (uint8_t *)chunk + PEM_PACKET_HEADER_BYTES;
	w->end = (uint8_t *)chunk + bytes;
	w->last_clock = pem_clock();
	w->cells = cells;
	w->incarnation = 7;
	w->lane_index = 1;
}

static void want(uint64_t action)
{
	unsigned i;

	memset(cells, 0, sizeof(cells));
	for (i = 0; i < pem_provider_probe.event_count; i++) {
		pem_page_probe.enable[i] = action ? 4 : 0;
		pem_page_probe.action[i][2] = PEM_ACTION_OF_INCARNATION(action, 7);
	}
}

static void check(int ok, const char *what)
{
	if (!ok || thread.depth != PEM_DEPTH_IDLE) {
		printf("failed %s depth %u\n", what, thread.depth);
		exit(1);
	}
}

static void raise_all(int log)
{
	static const uint64_t longs[] = { 11, 22, 33, 44 };
	static const int16_t shorts[] = { -1, -2, -3, -4, -5 };
	static const double doubles[] = { 0.5, 0.25, 0.125 };
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5 };
	uint8_t *before = thread.writer[2].cursor;
	struct pem_packet *packet = (struct pem_packet *)(void *)chunk;

#define RAISE(call) \
	do { \
		call; \
		if (log) \
			dump("fast", before, (uint32_t)(packet->content_size / 8 - \
							(uint64_t)(before - (uint8_t *)chunk))); \
		before = thread.writer[2].cursor; \
	} while (0)
	@RAISE@
}

int main(void)
{
	struct pem_cell *mixed = &cells[5 + 1];

	check(registered == 1, "registered once");
	check((uintptr_t)&pem_page_probe % PEM_PAGE_ALIGN == 0, "page alignment");
	check(sizeof(pem_page_probe) % PEM_PAGE_ALIGN == 0, "page size");
	check(!strncmp(pem_provider_probe.model, "pem-model\t2\nevent\t", 17), "model");
	use_chunk(sizeof(chunk));

	raise_all(0);
	check(!notified && thread.writer[2].record_count == 0, "disabled");

	want(PEM_ACTION(PEM_ACTION_LOG, 0, 0, 0, 0));
	raise_all(1);
	check(!notified && thread.writer[2].record_count == @COUNT@, "fast log");
	check(cells[5].produced == 1, "produced");

	thread.depth = PEM_DEPTH_IDLE + 1; /* an event is under way, and a signal handler raises another */
	raise_all(0);
	thread.depth = PEM_DEPTH_IDLE;
	check(notified == @COUNT@ && thread.writer[2].record_count == @COUNT@, "slow when nested");

	use_chunk(PEM_PACKET_HEADER_BYTES + 4); /* no room */
	cells[5].produced = 0;
	notified = 0;
	raise_all(0);
	check(notified == @COUNT@ && thread.writer[2].record_count == 0, "slow when full");

	thread.writer[2].incarnation = 6; /* the lane is an earlier session's */
	notified = 0;
	raise_elsewhere();
	check(notified == 1 && cells[5].produced == 0, "slow when the session changed");
	thread.writer[2].incarnation = 7;

	notified = 0;
	want(PEM_ACTION(PEM_ACTION_LOG | PEM_ACTION_FILTER, 0, 0, 0, 0));
	raise_elsewhere();
	check(notified == 1, "slow when filtered");

	want(PEM_ACTION(0, 0, 0, 0, 1)); /* enabled, and what for is just being taken back */
	raise_elsewhere();
	check(cells[5].produced == 0, "no depth is left behind by an empty action");

	notified = 0;
	want(PEM_ACTION(PEM_ACTION_STAT, 1, PEM_TYPE_INT64, 0, 3));
	cells[5].tag = PEM_ACTION_TAG(PEM_ACTION(0, 0, 0, 0, 3)); /* the session before, in the same epoch */
	raise_elsewhere();
	check(notified == 1 && cells[5].stat_begin == 0, "slow when the statistic begins anew");
	notified = 0;
	pem_cell_add(mixed, PEM_ACTION_TAG(pem_page_probe.action[1][2]), 0, pem_stat_key_signed(0));
	pem_notify_probe_mixed(1, -5, 0, 0, 0, 0, 0, 0, 0);
	pem_notify_probe_mixed(1, 3, 0, 0, 0, 0, 0, 0, 0);
	check(!notified && mixed->stat_end == 3 && mixed->stat_begin == 3, "stat count");
	check(mixed->sum == (uint64_t)-2, "stat sum");
	check(mixed->min == pem_stat_key_signed(-5) && mixed->max == pem_stat_key_signed(3), "stat bounds");
	want(PEM_ACTION(PEM_ACTION_STAT, 3, PEM_TYPE_FLOAT32, 0, 3));
	mixed->tag = PEM_ACTION_TAG(pem_page_probe.action[1][2]);
	pem_notify_probe_mixed(1, -5, 0, 1.5f, 0, 0, 0, 0, 0);
	check(notified == 1 && mixed->stat_end == 0, "a float's statistic is the library's");
	want(PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 3));
	cells[5].tag = PEM_ACTION_TAG(pem_page_probe.action[0][2]);
	raise_elsewhere();
	check(notified == 1 && cells[5].stat_end == 1, "stat without field counts");

	want(0);
	return 0;
}
"""

ELSEWHERE = r"""
#include "probe.h"
void raise_elsewhere(void);
void raise_elsewhere(void)
{
	pem_notify_probe_two(1, 2);
}
"""

COMPILERS = [
    ("gcc", ["-std=gnu11"], "c"),
    ("gcc", ["-std=c11", "-Wpedantic", "-Wstrict-prototypes", "-Wconversion"], "c"),
    ("gcc", ["-std=gnu11", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"], "c"),
    ("clang", ["-std=c11", "-Wpedantic"], "c"),
    ("g++", ["-std=c++17", "-Wpedantic"], "cc"),
    ("clang++", ["-std=c++17", "-Wpedantic"], "cc"),
]


def spec_text():
    text = "<spec provider='probe' description='for tests'>\n"
    for event, fields in EVENTS.items():
        text += ("<event name='APP::Probe::%s' description='ends */ and /* starts ??/ a \"comment\"'>"
                 "<layerId value='APP'/><classId value='Probe'/><specifier value='%s'/>"
                 "<source type='stub'/><fields>\n" % (event, event))
        for name, kind, element, most in fields:
            text += "<field name='%s' type='%s'%s%s description='d &#233;'/>\n" % (
                name, kind, " eltType='%s'" % element if element else "",
                " max='%d'" % most if most else "")
        text += "</fields></event>\n"
    return text + "</spec>\n"


def generate(backend):
    folder = tmp()
    with open(os.path.join(folder, "probe.xml"), "w", encoding="utf-8") as f:
        f.write(spec_text())
    rc, _, err = run([CODEGEN, "--backend", backend, "-o", folder, os.path.join(folder, "probe.xml")])
    equal((rc, err), (0, ""), "pem-codegen")
    return folder


def event_id(event):
    value = 0x811c9dc5
    for byte in ("APP::Probe::" + event).encode():
        value = (value ^ byte) * 0x01000193 & 0xffffffff
    return value


def align(data, size):
    return data + b"\0" * (-len(data) % size)


def encode(event, values, clock=0):
    """A record as event.h describes it: header, numbers and list lengths, tail."""
    data = struct.pack("<II", clock & 0xffffffff, event_id(event))
    for (_, kind, _, _), value in zip(EVENTS[event], values):
        if kind == "list":
            data = align(data, 4) + struct.pack("<I", len(value))
        elif kind != "string":
            code = NUMBERS[kind]
            data = align(data, struct.calcsize(code)) + struct.pack("<" + code, value)
    for (_, kind, element, _), value in zip(EVENTS[event], values):
        if kind == "string":
            data += value.encode() + b"\0"
        elif kind == "list":
            code = NUMBERS[element]
            data = align(data, struct.calcsize(code))
            data += b"".join(struct.pack("<" + code, v) for v in value)
    return data


def snake(event):
    return "probe_" + event.lower()


def build(compiler, flags, suffix):
    need(compiler)
    folder = generate("c")
    calls = "\n\t".join("RAISE(pem_notify_%s(%s));" % (snake(e), args) for e, args, _ in RAISED)
    program = PROGRAM.replace("@RAISE@", calls).replace("@COUNT@", str(len(RAISED)))
    sources = []
    for name, text in (("main", program), ("elsewhere", ELSEWHERE)):
        sources.append(os.path.join(folder, "%s.%s" % (name, suffix)))
        with open(sources[-1], "w", encoding="utf-8") as f:
            f.write(text)
    binary = os.path.join(folder, "program")
    rc, _, err = run([compiler, "-O2", "-Wall", "-Wextra", "-Wshadow", "-Werror", *flags,
                      "-I" + folder, "-isystem", os.path.join(ROOT, "spec/abi"), *sources,
                      "-rdynamic", "-ldl", "-o", binary])
    equal((rc, err), (0, ""), "%s %s" % (compiler, " ".join(flags)))
    return binary


def check_program(compiler, flags, suffix):
    rc, out, err = run([build(compiler, flags, suffix)])
    equal((rc, err), (0, ""), "status and errors, after " + out[-300:])
    fast = [line.split()[1] for line in out.splitlines() if line.startswith("fast")]
    slow = [line.split()[1] for line in out.splitlines() if line.startswith("slow")]
    equal(len(fast), len(RAISED), "records of the fast path")
    for i, (event, args, values) in enumerate(RAISED):
        wanted = encode(event, values)[4:].hex()
        equal(fast[i], wanted, "fast record of %s(%s)" % (event, args))
        equal(slow[i], wanted, "slow record of %s(%s)" % (event, args))
        equal(slow[len(RAISED) + i], wanted, "record of %s(%s) without room" % (event, args))


def make_test(compiler, flags, suffix):
    def stubs():
        check_program(compiler, flags, suffix)
    stubs.__doc__ = "stubs built by %s %s write the bytes of the contract" % (compiler, " ".join(flags))
    return stubs


for one in COMPILERS:
    test(make_test(*one))


@test
def names_that_begin_alike():
    "events whose names continue another's, or sound like a part of its stub, stay apart"
    need("gcc")
    folder = tmp()
    specifiers = ["Query", "QueryOn", "QuerySlow", "QueryPut", "QueryRecord", "OnQuery", "SlowQuery"]
    with open(os.path.join(folder, "db.xml"), "w", encoding="utf-8") as f:
        f.write("<spec provider='db' description='d'>" + "".join(
            "<event name='APP::Db::%s' description='d'><layerId value='APP'/><classId value='Db'/>"
            "<specifier value='%s'/></event>" % (s, s) for s in specifiers) + "</spec>")
    equal(run([CODEGEN, "--backend", "c", "-o", folder, folder + "/db.xml"]), (0, "", ""), "pem-codegen")
    with open(folder + "/all.c", "w", encoding="utf-8") as f:
        f.write('#include "db.h"\nint main(void)\n{\n' + "".join(
            "\tpem_notify_db_%s();\n" % name for name in
            ("query", "query_on", "query_slow", "query_put", "query_record", "on_query", "slow_query")) +
            "\treturn 0;\n}\n")
    rc, _, err = run(["gcc", "-Wall", "-Wextra", "-Werror", "-I" + folder, "-I" + os.path.join(ROOT, "spec/abi"),
                      folder + "/all.c", "-o", folder + "/all", "-ldl"])
    equal((rc, err), (0, ""), "gcc")


@test
def stub_without_libpem_does_nothing():
    "a program without libpem runs its stubs and nothing happens"
    need("gcc")
    folder = generate("c")
    source = os.path.join(folder, "alone.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write('#include "probe.h"\nint main(void)\n{\n\tpem_notify_probe_two(1, 2);\n'
                "\treturn pem_provider_probe.registered != 0;\n}\n")
    rc, _, err = run(["gcc", "-Wall", "-Wextra", "-Werror", "-I" + folder,
                      "-I" + os.path.join(ROOT, "spec/abi"), source, "-o", folder + "/alone", "-ldl"])
    equal((rc, err), (0, ""), "gcc")
    equal(run([folder + "/alone"], env={"LD_PRELOAD": None})[0], 0, "exit status")


@test
def disabled_stub_is_a_load_a_test_and_a_branch():
    "a disabled stub is one load, a test and a branch"
    need("gcc", "objdump")
    if os.uname().machine != "x86_64":
        skip("the instructions looked for are those of x86-64")
    folder = generate("c")
    source = os.path.join(folder, "one.c")
    with open(source, "w", encoding="utf-8") as f:
        f.write('#include "probe.h"\nvoid one(void);\nvoid one(void)\n{\n\tpem_notify_probe_two(1, 2);\n}\n')
    rc, _, err = run(["gcc", "-O2", "-fcf-protection=none", "-I" + folder,
                      "-I" + os.path.join(ROOT, "spec/abi"), "-c", source, "-o", folder + "/one.o"])
    equal((rc, err), (0, ""), "gcc")
    rc, out, _ = run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=one", folder + "/one.o"])
    words = [line.split("\t")[1].split()[0] for line in out.splitlines()
             if line.startswith(" ") and "\t" in line]
    words = words[:words.index("ret")]
    assert words in (["movzbl", "test", "jne"], ["cmpb", "jne"], ["mov", "test", "jne"]), words


PREAMBLE = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 32; signed = false; } := uint32_t;
typealias integer { size = 64; align = 64; signed = false; } := uint64_t;
trace {
    major = 1; minor = 8; uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f"; byte_order = le;
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id;
        uint64_t stream_instance_id; };
};
clock { name = monotonic; freq = 1000000000; offset = 0; };
typealias integer { size = 64; align = 64; signed = false; map = clock.monotonic.value; } := clock64;
stream {
    id = 0;
    packet.context := struct { clock64 timestamp_begin; clock64 timestamp_end; uint64_t content_size;
        uint64_t packet_size; uint64_t events_discarded; uint64_t packet_seq_num;
        uint64_t events_overwritten; uint32_t pid; uint32_t tid; uint32_t cpu; uint32_t source;
        uint64_t record_count; };
    event.header := struct {
        integer { size = 32; align = 32; signed = false; map = clock.monotonic.value; } clock_low;
        uint32_t id; } align(64);
};
"""


def write_trace(folder, tsdl):
    """One packet of all that RAISED says, as libpem would write it."""
    records = b""
    for i, (event, _, values) in enumerate(RAISED):
        records = align(records, 8) + encode(event, values, clock=1000 + i)
    size = 112 + len(records)
    packet = struct.pack("<I16sIQ", 0xC1FC1FC1, bytes(range(16)), 0, 0)
    packet += struct.pack("<QQQQQQQIIIIQ", 1000, 1000 + len(RAISED), size * 8, 4096 * 8, 0, 0, 0, 1, 1,
                          0xffffffff, 0, len(RAISED))
    with open(os.path.join(folder, "u_1_0"), "wb") as f:
        f.write((packet + records).ljust(4096, b"\xee"))
    with open(os.path.join(folder, "metadata"), "w", encoding="utf-8") as f:
        f.write(PREAMBLE + tsdl)


def shown(event, values):
    """How babeltrace2 prints the payload."""
    order, tail = [], []
    for (name, kind, _, _), value in zip(EVENTS[event], values):
        if kind == "string":
            tail.append('%s = "%s"' % (name, value))
        elif kind == "list":
            order.append("%s_length = %d" % (name, len(value)))
            tail.append("%s = [%s]" % (name, ",".join(" [%d] = %s" % (i, number(v))
                                                      for i, v in enumerate(value)) + " "))
        else:
            order.append("%s = %s" % (name, number(value)))
    return "{ " + ", ".join(order + tail) + " }"


def number(value):
    return "%g" % value if isinstance(value, float) else str(value)


@test
def babeltrace_reads_every_field():
    "babeltrace2 reads the declared events: each value, no warning"
    need("babeltrace2")
    folder = generate("ctf")
    trace = os.path.join(folder, "trace")
    os.mkdir(trace)
    with open(os.path.join(folder, "probe.tsdl"), encoding="utf-8") as f:
        write_trace(trace, f.read())
    rc, out, err = run(["babeltrace2", "--clock-cycles", trace])
    equal((rc, err), (0, ""), "babeltrace2")
    lines = out.splitlines()
    equal(len(lines), len(RAISED), "events")
    for i, (event, _, values) in enumerate(RAISED):
        assert "APP::Probe::%s:" % event in lines[i], lines[i]
        if values:
            wanted = shown(event, values)
            assert lines[i].endswith(wanted), "%s does not end with %s" % (lines[i], wanted)


run_all()
