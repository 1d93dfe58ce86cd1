# SPDX-License-Identifier: MIT
"""
codegen_tracers.py - the same C program over each C backend: pem's stubs, static probes, LTTng-UST tracepoints, nothing

bpftrace and an LTTng session read what was sent. Not here: what pem's own stubs write (codegen_stubs.py), import of
tracepoints (spec_import.py).
"""
import json
import os
import re
import shutil
import xml.etree.ElementTree as xml

from tap import CODEGEN, PEM, ROOT, equal, need, run, run_all, skip, test, tmp

LONG_S = 7

SPEC = ROOT + "/tests/programs/polyglot.xml"
SHOP = ROOT + "/examples/shop.xml"
BACKENDS = ("c", "usdt", "lttng-ust", "none")
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]

PROGRAM = r"""
#include "polyglot.h"

int main(void)
{
	static const int32_t samples[] = { -4, -3, -2 };
	static const uint16_t weights[] = { 7, 8, 9 };

	if (pem_enabled_polyglot_texts() != pem_enabled_polyglot_shapes())
		return 1;
	pem_notify_polyglot_work_begin(PEM_POLYGLOT_LANGUAGE_C, 5);
	pem_notify_polyglot_numbers(1, -7, 200, -300, 60000, -70000, 4000000000u, -5000000000ll,
				    18000000000000000000ull, 0.25f, -1.5, 0x1010, 5);
	pem_notify_polyglot_texts(2, "n\xc3\xa4me", 3, samples, "tail");
	pem_notify_polyglot_texts(3, NULL, 3, NULL, "");
	pem_notify_polyglot_shapes(4, 0x21, 0.5, 0.25, 1.5, 1.25, weights, 42);
	pem_notify_polyglot_shapes(5, 0x21, 0.5, 0.25, 1.5, 1.25, NULL, 43);
	pem_notify_polyglot_work_end(6, 5);
	return 0;
}
"""


def generate(backend, spec=SPEC):
    folder = tmp()
    rc, _, err = run([CODEGEN, "--backend", backend, "-o", folder, spec])
    equal((rc, err), (0, ""), "pem-codegen --backend " + backend)
    return folder


def header(name, package):
    if not any(os.path.exists(p + name) for p in ("/usr/include/", "/usr/include/x86_64-linux-gnu/",
                                                  "/usr/include/aarch64-linux-gnu/")):
        skip("%s is missing (%s)" % (name, package))


def need_backend(backend):
    if backend == "usdt":
        header("sys/sdt.h", "systemtap-sdt-dev")
    elif backend == "lttng-ust":
        header("lttng/tracepoint.h", "liblttng-ust-dev")


def build(backend, compiler="gcc", flags=("-O2", "-std=gnu11"), suffix="c", text=PROGRAM):
    """The program over a backend: its path."""
    need(compiler)
    need_backend(backend)
    folder = generate(backend)
    source = os.path.join(folder, "program." + suffix)
    with open(source, "w", encoding="utf-8") as f:
        f.write(text)
    paths = ["-I" + folder, "-isystem", ROOT + "/spec/abi"]
    more = []
    if backend == "lttng-ust":
        more = [os.path.join(folder, "probes.o"), "-llttng-ust"]
        rc, _, err = run(["cc", "-O2", *WARNINGS, "-c", "-o", more[0], paths[0], folder + "/polyglot_lttng.c"])
        equal((rc, err), (0, ""), "polyglot_lttng.c")
    program = os.path.join(folder, "program")
    rc, _, err = run([compiler, *flags, *WARNINGS, *paths, source, *more, "-ldl", "-o", program])
    equal((rc, err), (0, ""), "%s over %s" % (compiler, backend))
    return program


def make_test(backend):
    def unchanged():
        for compiler, flags, suffix in (("gcc", ["-O0", "-std=gnu11"], "c"), ("clang", ["-O2", "-std=gnu11"], "c"),
                                        ("g++", ["-O2", "-std=c++17"], "cc"), ("clang++", ["-std=c++17"], "cc")):
            if shutil.which(compiler):
                equal(run([build(backend, compiler, flags, suffix)])[0], 0, "status over " + backend)
    unchanged.__doc__ = "one program compiles unchanged and without warnings over backend %s, as C and C++" % backend
    return unchanged


for one in BACKENDS:
    test(make_test(one))


@test
def strict_probes():
    "the probes' header is strict C11 and pedantic"
    for compiler in ("gcc", "clang"):
        build("usdt", compiler, ["-O2", "-std=c11", "-Wpedantic"])


SCRIPT = """
usdt:%(p)s:polyglot:polyglot_numbers { printf("numbers %%d %%d %%d %%d %%d %%d\\n", arg0, arg1, arg2, arg3, arg4, arg5); }
usdt:%(p)s:polyglot:polyglot_texts {
	printf("texts %%d %%s %%d %%s\\n", arg0, str(arg1), arg2, str(arg4));
	if (arg2 > 2) { printf("list %%d %%d %%d\\n", *(int32 *)arg3, *((int32 *)arg3 + 1), *((int32 *)arg3 + 2)); }
}
usdt:%(p)s:polyglot:polyglot_shapes { printf("shapes %%d %%x %%lx %%lx\\n", arg0, arg1, arg2, arg3); }
usdt:%(p)s:polyglot:polyglot_work_end { printf("end %%d %%d\\n", arg0, arg1); }
"""


@test
def bpftrace_reads_the_probes():
    "bpftrace attaches to the probes of backend usdt and reads the values that were sent"
    need("bpftrace")
    if os.geteuid() != 0:
        skip("bpftrace needs root")
    program = build("usdt")
    script = program + ".bt"
    with open(script, "w") as f:
        f.write("BEGIN { exit(); }\n")
    rc, _, err = run(["bpftrace", script])
    if rc:
        skip("bpftrace can't run here: " + err.strip()[-200:])
    with open(script, "w") as f:
        f.write(SCRIPT % {"p": program})
    rc, out, err = run(["bpftrace", "-B", "none", "-c", program, script])
    equal(rc, 0, "status of bpftrace, which said: " + err)
    lines = [line for line in out.splitlines() if line and not line.startswith("Attaching")]
    equal(lines, ["numbers 1 -7 200 -300 60000 -70000", "texts 2 n\u00e4me 3 tail", "list -4 -3 -2", "texts 3  0 ",
                  "shapes 4 21 3fe0000000000000 3fd0000000000000", "shapes 5 21 3fe0000000000000 3fd0000000000000",
                  "end 6 5"], "what bpftrace read")


@test
def thirteen_parameters():
    "an event with more parameters than a probe has arguments gives the rest by pointer"
    need("readelf")
    program = build("usdt", flags=["-O0"])
    _, out, _ = run(["readelf", "-n", "-W", program])
    arguments = dict(re.findall(r"Name: (\w+)\n.*\n\s*Arguments: (.*)", out))
    equal(len(arguments["polyglot_numbers"].split()), 12, "arguments of numbers")
    with open(os.path.join(os.path.dirname(program), "polyglot.h")) as f:
        rest = re.search(r"struct pem_polyglot_numbers_rest \{(.*?)\n\}", f.read(), re.DOTALL).group(1)
    equal(re.findall(r"(\w+) (\w+);", rest), [("uint64_t", "place"), ("uint16_t", "access")], "the rest")


@test
def probes_come_back():
    "the probes of a program over backend usdt are imported with the sizes and signs of the spec"
    rc, out, err = run([PEM, "spec", "import", "--usdt", build("usdt", flags=["-O0"])])
    if rc == 2:
        skip(err.strip())
    equal((rc, err), (0, ""), "import")
    types = {}
    for event in xml.fromstring(out.encode()).iter("event"):
        types[event.find("source").get("name")] = [f.get("type") for f in event.iter("field")]
    equal(types["polyglot:polyglot_numbers"][:9], ["uint8", "int8", "uint8", "int16", "uint16", "int32", "uint32",
                                                   "int64", "uint64"], "numbers")
    equal(types["polyglot:polyglot_texts"], ["uint8", "uint64", "uint32", "uint64", "uint64"], "texts")
    equal(types["polyglot:polyglot_work_begin"], ["uint8", "uint32"], "work begin")


# A daemon of root's lives in /run/lttng, whatever LTTNG_HOME says: it gets a /run of its own. $1: folder; $2: what
# comes before stop.
SESSION = r"""
set -e
[ "$(id -u)" != 0 ] || mount -t tmpfs tmpfs /run || exit 77
export LTTNG_HOME=$1
cd "$1"
lttng-sessiond --no-kernel >daemon.log 2>&1 &
daemon=$!
trap 'kill $daemon; wait $daemon' EXIT
tries=0
until lttng --no-sessiond list >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || exit 78
	sleep 0.1
done
eval "$2"
"""
RECORD = """
lttng --no-sessiond create test --output="$1/out" >/dev/null
lttng --no-sessiond enable-event -u 'polyglot:*' >/dev/null
lttng --no-sessiond start >/dev/null
"%s"
lttng --no-sessiond stop >/dev/null
lttng --no-sessiond destroy >/dev/null
"""


def in_session(commands):
    """Run commands beside an LTTng session daemon of their own: folder, standard output."""
    need("lttng", "lttng-sessiond")
    folder = tmp()
    shell = ["sh", "-c", SESSION, "session", folder, commands]
    rc, out, err = run(["unshare", "-m"] + shell if os.geteuid() == 0 else shell)
    if rc == 77 or err.startswith("unshare: "):
        skip("root needs a mount namespace for a daemon of its own: " + err.strip())
    if rc == 78:
        skip("the LTTng session daemon does not start here")
    equal(rc, 0, "status of the session, which said: " + err)
    return folder, out


EXPECTED = [
    ('work_begin', 'language = ( "c" : container = 1 ), piece = 5'),
    ('numbers', 'language = ( "c" : container = 1 ), i8 = -7, u8 = 200, i16 = -300, u16 = 60000, i32 = -70000, '
     'u32 = 4000000000, i64 = -5000000000, u64 = 18000000000000000000, f32 = 0.25, f64 = -1.5, place = 0x1010, '
     'access = 0x5'),
    ('texts', 'language = ( "cxx" : container = 2 ), name = "n\u00e4me", _samples_length = 3, '
     'samples = [ [0] = -4, [1] = -3, [2] = -2 ], tail = "tail"'),
    ('texts', 'language = ( "fortran" : container = 3 ), name = "", _samples_length = 0, samples = [ ], tail = ""'),
    ('shapes', 'language = ( "java" : container = 4 ), box_color = 0x21, box_low_x = 0.5, box_low_y = 0.25, '
     'box_high_x = 1.5, box_high_y = 1.25, weights = [ [0] = 7, [1] = 8, [2] = 9 ], after = 42'),
    ('shapes', 'language = ( "python" : container = 5 ), box_color = 0x21, box_low_x = 0.5, box_low_y = 0.25, '
     'box_high_x = 1.5, box_high_y = 1.25, weights = [ [0] = 0, [1] = 0, [2] = 0 ], after = 43'),
    ('work_end', 'language = ( "rust" : container = 6 ), piece = 5'),
]


@test
def a_session_records_the_tracepoints():
    "a session of LTTng records backend lttng-ust, and babeltrace2 reads the values that were sent"
    need("babeltrace2")
    folder, _ = in_session(RECORD % build("lttng-ust"))
    rc, out, err = run(["babeltrace2", "--no-delta", folder + "/out"])
    equal((rc, err), (0, ""), "babeltrace2")
    got = re.findall(r"polyglot:polyglot_(\w+): \{[^}]*\}, \{ (.*) \}", out)
    equal([(name, re.sub(r"\s+", " ", text)) for name, text in got], EXPECTED, "events")
    _, out, _ = run(["babeltrace2", "--fields=loglevel", folder + "/out"])
    level = {name: word for word, name in re.findall(r"(?:TRACE_)?(\w+) \(\d+\) .*polyglot_(shapes|numbers):", out)}
    equal(level, {"shapes": "WARNING", "numbers": "INFO"}, "log levels")


@test
def tracepoints_come_back():
    "the tracepoints of a running program over backend lttng-ust are imported with the spec's types and labels"
    text = PROGRAM.replace("	return 0;", "	getchar();\n	return 0;").replace("#include", "#include <stdio.h>\n#include", 1)
    program = build("lttng-ust", text=text)
    commands = """mkfifo "$1/in"; "%s" <"$1/in" & exec 3>"$1/in"
until lttng --no-sessiond list -u | grep -q polyglot:; do sleep 0.1; done
"%s" spec import --lttng polyglot; lttng --no-sessiond list; exec 3>&-; wait $!"""
    _, out = in_session(commands % (program, PEM))
    spec, rest = out.split("</spec>")
    assert "pem-import" not in rest, "a session is left: " + rest
    got, sent = xml.fromstring((spec + "</spec>").encode()), xml.parse(SPEC).getroot()
    labels = [[label.attrib for label in e.iter("label")] for e in got.iter("enum")]
    equal(labels, [[{"name": label.get("name"), "value": label.get("value")} for label in e.iter("label")]
                   for e in sent.iter("enum")], "labels")
    for event in sent.iter("event"):
        if event.find("specifier").get("value") == "Shapes":
            continue  # its structures are flat in LTTng
        same = [e for e in got.iter("event") if e.get("name") == event.get("name")]
        equal(len(same), 1, "events called " + event.get("name"))
        wanted = [(f.get("name"), f.get("type").replace("address", "uint64"), f.get("eltType"), f.get("enum"))
                  for f in event.iter("field")]
        equal([(f.get("name"), f.get("type"), f.get("eltType"), f.get("enum")) for f in same[0].iter("field")],
              wanted, event.get("name"))


NOTHING = r"""
#include "polyglot.h"

void call(uint64_t a, double b, const char *text);
void call(uint64_t a, double b, const char *text)
{
	__asm__ volatile("#begin");
	pem_notify_polyglot_numbers((uint8_t)a, 1, 2, 3, 4, 5, 6, (int64_t)(a * 3), a / 7, 0.5f, b * b, a, 0);
	pem_notify_polyglot_texts(1, text, 0, 0, text + a);
	__asm__ volatile("#end");
}

int main(void)
{
	return 0;
}
"""


@test
def none_is_nothing():
    "backend none leaves no instruction: neither of the calls nor of what computes their arguments"
    folder = generate("none")
    with open(folder + "/call.c", "w") as f:
        f.write(NOTHING)
    for compiler in ("gcc", "clang"):
        need(compiler)
        for level in ("-O1", "-O2", "-Os"):
            rc, out, err = run([compiler, level, *WARNINGS, "-fno-asynchronous-unwind-tables", "-I" + folder, "-S",
                                "-o", "-", folder + "/call.c"])
            equal((rc, err), (0, ""), compiler)
            between = out.split("#begin")[1].split("#end")[0].splitlines()
            left = [line for line in between if line.strip() and not re.match(r"\s*[.#]|\w+:", line)]
            equal(left, [], "instructions that %s %s left" % (compiler, level))


@test
def code_size():
    "a stub takes at most 64 bytes at its call, the part that runs when it is enabled included"
    need("objdump", "nm", "gcc")
    results = os.path.join(tmp(), "results.jsonl")
    rc, out, err = run(["python3", ROOT + "/bench/code_size.py"], cwd=ROOT,
                       env={"BENCH_OUT": results, "PEM_CODEGEN": CODEGEN})
    equal((rc, err), (0, ""), "code_size.py")
    for line in out.splitlines():
        print("# " + line)
    with open(results) as f:
        rows = {row["case"]: row for row in map(json.loads, f)}
    assert 0 < rows["stub/code_size-off"]["min"], rows
    assert rows["stub/code_size"]["max"] <= 64, rows
    equal(set(re.findall(r"^  none .* (\d+) +(\d+)$", out, re.MULTILINE)), {("0", "0")}, "of backend none")


run_all()
