# SPDX-License-Identifier: MIT
"""cli_usage: help, usage errors and statuses of every verb, lists as JSON, plugins that are refused"""
import json
import os
import re
import shutil
import sys

import probing
from consumers import python
from preload import compile_program
from tap import BUILD, PEM, ROOT, equal, run, run_all, skip, test, tmp

VERBS = "list record stat report diff export doctor mark gen spec snapshot lab db page-size".split()


def fails(command, status, *words, **more):
    """The command ends with status, says all words on standard error and nothing on standard output."""
    rc, out, err = run([PEM] + command, **more)
    equal(rc, status, "status of pem " + " ".join(command))
    equal(out, "", "standard output of pem " + " ".join(command))
    for word in words:
        assert word in err, "%r is not in %r" % (word, err)


@test
def overview_names_every_verb():
    "pem alone names every verb, and so does pem help"
    for command in ([PEM], [PEM, "help"], [PEM, "--help"]):
        rc, out, _ = run(command)
        equal(rc, 0, "status")
        for verb in VERBS:
            assert "pem " + verb in out, verb


@test
def version():
    "--version prints one line: pem and a number"
    rc, out, _ = run([PEM, "--version"])
    equal(rc, 0, "status")
    assert out.startswith("pem ") and out.count("\n") == 1 and out.split()[1][0].isdigit(), out


@test
def help_of_every_verb():
    "--help of every verb exits 0, gives examples and exit statuses, and fits 80 columns but for usage lines"
    for verb in VERBS:
        for command in ([PEM, verb, "--help"], [PEM, "help", verb]):
            rc, out, err = run(command, env={"COLUMNS": "80"})
            equal(rc, 0, verb)
            equal(err, "", verb)
            assert out.startswith("Usage: pem " + verb), out
            for heading in ("Examples", "Options", "Exit status"):
                assert "\n" + heading + "\n" in out, "%s: no %s" % (verb, heading)
            assert out.count("  pem " + verb) + out.count("| pem " + verb) >= 2, verb
            body = out.split("\n\n", 1)[1].splitlines()
            equal([line for line in body if len(line) > 84], [], "long lines of " + verb)


@test
def help_of_the_command_is_the_commands():
    "--help after the command's name goes to the command"
    rc, out, _ = run([PEM, "record", "-q", "-o", tmp() + "/t", "--", "echo", "--json"])
    equal((rc, out), (0, "--json\n"), "status and output")


@test
def unknown_words():
    "unknown verbs and options: status 1, what is wrong, and what was meant"
    fails(["recrod"], 1, "recrod", "did you mean 'record'")
    fails(["xyzzy"], 1, "xyzzy", "pem help")
    fails(["--verbose"], 1, "--verbose")
    fails(["help", "xyzzy"], 1, "xyzzy")
    for verb in VERBS:
        fails([verb, "--xyzzy"], 1, "--xyzzy", "pem %s --help" % verb)
        fails([verb, "-Z"], 1, "-Z", "pem %s --help" % verb)


@test
def missing_words():
    "what is missing is named, with status 1"
    fails(["record"], 1, "command")
    fails(["record", "-e"], 1, "-e")
    fails(["record", "-o", "", "--", "true"], 1, "-o")
    fails(["record", "-e", "A,,B", "--", "true"], 1, "A,,B")
    fails(["record", "--buffer", "1", "--", "true"], 1, "--buffer 1")
    fails(["record", "--buffer", "12Q", "--", "true"], 1, "12Q")
    for count in ("0", "65", "many"):
        fails(["record", "--drain-threads", count, "--", "true"], 1, "--drain-threads %s is no number from 1 to 64" % count)
    fails(["record", "--clock", "fast", "--", "true"], 1, "--clock fast is neither cycles nor coarse")
    fails(["stat"], 1, "command")
    fails(["stat", "-i", "0", "--", "true"], 1, "-i 0")
    fails(["stat", "-i", "86400001", "--", "true"], 1, "from 10 to 86400000")
    fails(["report"], 1, "trace")
    fails(["report", "a", "b"], 1, "one trace")
    fails(["report", "--by", "colour", "a"], 1, "colour")
    fails(["export", "a"], 1, "--to")
    fails(["export", "--to", "csv"], 1, "trace")
    fails(["mark"], 1, "begin")
    fails(["mark", "begin"], 1, "name")
    fails(["mark", "run", "x", "--"], 1, "command")
    fails(["mark", "run", "--", "echo", "hi"], 1, "name is missing", "'--'")
    for action in "begin", "end":
        fails(["mark", action, "--help"], 1, "name is missing", "'--help'")
    fails(["mark", "bogus", "x"], 1, "bogus")
    fails(["gen"], 1, "spec")
    fails(["gen", "--lang", "cobol", "a.xml"], 1, "cobol")
    fails(["spec"], 1, "check")
    fails(["spec", "check"], 1, "spec")
    fails(["doctor", "please"], 1, "please")


@test
def unknown_event():
    "an unknown event is named together with what comes near, and nothing is run or made"
    folder = tmp()
    for verb in ("record", "stat"):
        fails([verb, "-e", "OS::Mem::PageFalt", "--", "touch", "ran"], 1, "PageFalt", "PageFault",
              cwd=folder)
        equal(os.listdir(folder), [], "what " + verb + " left")
    for word, near in (("block", "'OS::Block::*'"), ("os::blok", "'OS::Block::*'"), ("cachemiss", "CacheMiss"),
                       ("pagefault", "'OS::Mem::PageFault'"), ("file", "'APP::File::*'"),
                       ("Sycall::*", "'OS::Syscall::*'"), ("OS::Sycall::*", "'OS::Syscall::*'")):
        fails(["stat", "-e", word, "--", "true"], 1, "did you mean " + near if near[0] == "'" else near)
    _, _, err = run([PEM, "stat", "-e", "loaves", "--", "true"])
    assert "did you mean" not in err and "'pem list WORD'" in err and "PEM_SPEC_PATH" in err, err


@test
def unknown_counter():
    "a counter that libpfm4 does not know is wrong input, named together with what comes near, and nothing is run or made"
    if not os.path.exists(os.path.join(BUILD, "lib", "pem", "source-counters.so")):
        skip("pem was built without libpfm4, which knows counters' names")
    folder = tmp()
    for names, words in (("bogus", ("'bogus'", "pem list hw", "showevtinfo")),
                         ("cycles,Instructons", ("'Instructons'", "did you mean 'Instructions'?")),
                         ("perf::CYCLEZ", ("did you mean 'perf::CYCLES'?",)), ("nosuch::CYCLES", ("'nosuch::CYCLES'",))):
        fails(["record", "-e", "Syscall::Enter", "--counters", names, "-o", "t", "--", "touch", "ran"], 1,
              "--counters: libpfm4 knows no counter ", *words, cwd=folder)
        equal(os.listdir(folder), [], "what it left")


@test
def patterns_in_words():
    "-e takes a layer in small letters, and LAYER::Class"
    probing.here()
    for one, other in (("os", "OS"), ("OS::Sched", "Sched"), ("os::Sched::Sw*", "OS::Sched::Sw*")):
        results = [run([PEM, "stat", "-q", "--json", "-e", word, "--", "true"]) for word in (one, other)]
        equal([rc for rc, _, _ in results], [0, 0], "status: " + results[0][2])
        names = [[e["name"] for e in json.loads(out)["events"]] for _, out, _ in results]
        assert names[0] == names[1] and names[0], (one, names)


@test
def unknown_field():
    "stat says that no event has the field"
    fails(["stat", "-e", "OS::Mem::PageFault", "-f", "colour", "--", "true"], 1, "colour")


@test
def not_a_trace():
    "a missing trace, a file and a folder that is no trace: status 1 and its name"
    folder = tmp()
    open(folder + "/file", "w").close()
    for trace in (folder + "/missing", folder + "/file", folder):
        fails(["report", trace], 1, trace)
        fails(["export", "--to", "csv", trace], 1, trace)


@test
def list_as_json():
    "list --json is an array of objects with the promised members, and agrees with the table"
    rc, out, err = run([PEM, "list", "--json"])
    equal((rc, err), (0, ""), "status and errors")
    events = json.loads(out)
    assert isinstance(events, list) and len(events) >= 20, len(events)
    for event in events:
        equal(set(event) - {"countedAs"}, {"name", "layer", "class", "specifier", "id", "version", "level", "since", "deprecated",
                           "description", "meaning", "group", "scope", "source", "sources", "available", "path",
                           "availability", "reason", "fields"}, "members")
        equal(event["name"], "::".join((event["layer"], event["class"], event["specifier"])), "name")
        assert isinstance(event["available"], bool)
        equal(event["reason"] == "", event["available"], "a reason if and only if not here")
        own = event["source"] == "stub" and not event["sources"]
        equal(event["availability"], "no" if not event["available"] else "program" if own else "yes", event["name"])
        for field in event["fields"]:
            equal(set(field) - {"labelKind", "labels"},
                  {"name", "type", "max", "unit", "role", "base", "description"}, "members of a field")
    rc, table, _ = run([PEM, "list", "*"])
    equal(rc, 0, "status")
    lines = table.split("\n\n")[0].splitlines()[1:]
    rows = {line.split()[0]: line.split()[1] for line in lines}
    equal(len(lines), len(events), "one line for each event where output is no terminal")
    equal(rows, {e["name"]: e["availability"] for e in events}, "table")
    equal({e["availability"] for e in events if e["layer"] == "CPO"}, {"program"}, "pem's agents, which may not run")
    wrapped = run([PEM, "list", "*"], env={"COLUMNS": "80"})[1].split("\n\n")[0].splitlines()
    assert len(wrapped) > len(lines), "COLUMNS does not wrap"


@test
def list_is_a_page_of_classes():
    "list alone counts the events of each layer and class, all and those that can be had here"
    events = json.loads(run([PEM, "list", "--json"])[1])
    rc, table, err = run([PEM, "list"])
    equal((rc, err), (0, ""), "status and errors")
    counts, layer = {}, ""
    for line in table.split("\n\n")[0].splitlines()[1:]:
        name, *numbers = line.split()[:5]
        layer = layer if line.startswith("  ") else name
        counts[layer, name] = [int(n) for n in numbers]
    for key in ("layer", "class"):
        for layer, name in {(e["layer"], e[key]) for e in events}:
            some = [e for e in events if (e["layer"], e[key]) == (layer, name)]
            equal(counts[layer, name], [len(some), sum(e["availability"] == "yes" for e in some),
                                        sum(e["availability"] == "program" for e in some),
                                        sum(e["level"] in ("error", "warning", "info") for e in some)], name)
    here = [e["availability"] for e in events].count
    assert "%d of %d events can be had here, by you, now; %d more (PROGRAM)" % (
        here("yes"), len(events), here("program")) in table, table
    for reason in {e["reason"] for e in events} - {""}:
        assert " ".join(reason.split()[-4:]) in " ".join(table.split()), reason


@test
def list_tells_all_of_an_event():
    "list -v tells what a field is called, of which type, unit and role, and what it holds"
    rc, out, err = run([PEM, "list", "-v", "APP::Libc::Malloc"], env={"COLUMNS": "200"})
    equal((rc, err), (0, ""), "status and errors")
    event = json.loads(run([PEM, "list", "--json", "APP::Libc::Malloc"])[1])[0]
    for text in (event["description"], event["meaning"], event["group"], "by " + event["scope"], event["level"]):
        assert text in out, (text, out)
    for field in event["fields"]:
        row = [line for line in out.splitlines() if line.startswith("  %s " % field["name"])]
        assert row and all(field[k] in row[0] for k in ("type", "unit", "role", "description")), (field, out)


@test
def list_by_layer_and_pattern():
    "list takes a layer and a pattern"
    _, out, _ = run([PEM, "list", "os", "--json"])
    equal({e["layer"] for e in json.loads(out)}, {"OS"}, "layers")
    _, out, _ = run([PEM, "list", "*Malloc", "--json"])
    equal([e["name"] for e in json.loads(out)], ["APP::Libc::Malloc"], "names")


@test
def list_by_words():
    "list looks for words that are no pattern in what events tell, in any case, all of them, and says so"
    def names(*words):
        rc, out, err = run([PEM, "list", "--json", *words])
        equal(rc, 0, "status of list " + " ".join(words) + ", which said: " + err)
        return [e["name"] for e in json.loads(out)], err

    for pattern in ("OS::Block", "os::Block", "OS::Block::*", "Block"):
        found, err = names(pattern)
        assert err == "" and {n.split("::")[1] for n in found} == {"Block"}, (pattern, found, err)
    for words, wanted in ((["block"], "OS::Block::Issue"), (["os::block::*"], "OS::Block::Issue"),
                          (["cachemiss"], "HW::HWPerf::CacheMisses"), (["DISK"], "HW::Software::MajorFaults"),
                          (["huge", "page"], "OS::HugePage::Collapse"), (["Huge page"], "OS::HugePage::Collapse"),
                          (["page_fault_user"], "OS::Mem::PageFault"), (["os", "fault"], "OS::Mem::PageFault")):
        found, err = names(*words)
        assert wanted in found and "'%s'" % words[-1] in err and err.count("\n") == 1, (words, found, err)
    assert all("OS::" in n for n in names("os", "fault")[0]), "a layer in front of the words"
    fails(["list", "agefault"], 1, "'agefault'")
    fails(["list", "fault", "::"], 1, "'::' 0")
    fails(["list", "fault", "x" * 255 + "*"], 1)
    for words in (["Switch*", "thread"], ["sched::Sw*", "thread"], ["os::sched::switch", "thread"]):
        assert "OS::Sched::Switch" in names(*words)[0], words
    fails(["list", "Migrate", "loaves"], 1, "'Migrate' and 'loaves'", "'Migrate' alone finds", "'loaves' 0")
    fails(["list", "loaves"], 1, "'loaves'", "PEM_SPEC_PATH", "pem list '*'")


@test
def list_names_each_source_once():
    "an event whose source stands twice in its spec, for kernels that differ, is listed with it once"
    for event in json.loads(run([PEM, "list", "--json"])[1]):
        equal(len(set(event["sources"])), len(event["sources"]), event["name"])
    rc, out, _ = run([PEM, "list", "-v", "OS::Sched::Switch"])
    assert rc == 0 and out.count("sched:sched_switch") == 1, out


@test
def doctor_as_json():
    "doctor --json is an array of checks with a state each"
    rc, out, _ = run([PEM, "doctor", "--json"])
    equal(rc, 0, "status")
    checks = json.loads(out)
    for check in checks:
        equal(set(check) - {"cost_ns"}, {"check", "state", "detail", "advice"}, "members")
        assert check["state"] in ("ok", "limited", "no") and check["detail"], check
    names = [c["check"] for c in checks]
    for name in ("clock", "BTF", "BPF", "hardware counters", "runtime folder", "exporters", "sources"):
        assert name in names, name
    rc, out, _ = run([PEM, "doctor"])
    equal(rc, 0, "status")


@test
def doctor_has_a_verdict():
    "doctor's last line, one of 80 columns, sums up which events can be recorded, as the lines above it have them"
    checks = json.loads(run([PEM, "doctor", "--json"])[1])
    states = {c["check"]: c["state"] for c in checks}
    words = {"ok": "all", "limited": "some", "no": "none"}
    equal(checks[-1]["detail"], "program events: %s; kernel: %s; counters: %s" % tuple(
        words[states[name + " events"]] for name in ("stub", "kernel", "counter")), "verdict")
    equal(run([PEM, "doctor"])[1].splitlines()[-1].split(maxsplit=2), [checks[-1]["state"], "verdict", checks[-1]["detail"]], "last line")
    last = run([PEM, "doctor"], env={"PEM_RUNTIME_DIR": "/proc/nowhere"})[1].splitlines()[-1]
    equal(last.split()[:2], ["no", "verdict"], "last line without a runtime folder")


@test
def doctor_says_what_serves_the_kernel():
    "doctor counts kernel events by what serves them, as list has it for each, and says why a source can't be used"
    checks = {c["check"]: c for c in json.loads(run([PEM, "doctor", "--json"])[1])}
    events = [e for e in json.loads(run([PEM, "list", "--json"])[1]) if e["source"] == "tracepoint"]
    for path, name in (("module", "module"), ("bpf", "BPF")):
        count = sum(e["path"] == path for e in events)
        assert count == 0 or "%s serves %d" % (name, count) in checks["kernel path"]["detail"], checks["kernel path"]
    for name, check in checks.items():
        assert not name.startswith("source ") or check["state"] == "ok" or len(check["detail"]) > 20, check
    for e in events:
        equal(e["path"] != "", e["available"], "path and availability of " + e["name"])


@test
def doctor_says_which_places_can_be_had():
    "doctor says of functions of the kernel and of probes of programs what list says of each"
    checks = {c["check"]: c for c in json.loads(run([PEM, "doctor", "--json"])[1])}
    for check, places in (("kernel functions", ("fentry:vfs_read", "kprobe:vfs_read")),
                          ("program probes", ("uprobe:libc.so.6:getenv",))):
        told = [run([PEM, "list", "--json", place]) for place in places]
        events = [(json.loads(out)[0]["available"], json.loads(out)[0].get("reason")) if rc == 0
                  else (False, err.split("error: ")[1].splitlines()[0]) for rc, out, err in told]
        can = [available for available, _ in events]
        equal(checks[check]["state"], "ok" if all(can) else "limited" if any(can) else "no", check + ": %r" % events)
        lacks = [why for available, why in events if not available][:1]
        assert not lacks or lacks[0] in checks[check]["detail"], (checks[check], lacks)


@test
def doctor_says_what_events_cost():
    "doctor says what an event of a stub and one of the kernel cost here, in words and as a number, where they can be had"
    env = {"XDG_CACHE_HOME": tmp()}
    checks = {c["check"]: c for c in json.loads(run([PEM, "doctor", "--json"], env=env)[1])}
    for check in ("stub event cost", "kernel event cost"):
        cost = checks[check].get("cost_ns", 0)
        equal(cost > 0, checks[check]["state"] == "ok", check)
        assert cost == 0 or "%.1f ns" % cost in checks[check]["detail"], checks[check]
    equal(checks["stub event cost"]["state"], "ok", "of a stub, which needs no privilege")
    again = {c["check"]: c for c in json.loads(run([PEM, "doctor", "--json"], env=env)[1])}
    if checks["kernel event cost"]["state"] == "ok":
        equal(again["stub event cost"], checks["stub event cost"], "the costs that are remembered")
    known = python("with pemapi.Session() as session: print(*session.costs())", env=env).split()
    for check, kind in (("stub", "user-log"), ("kernel", "kernel-log"), ("uprobe", "uprobe-log"), ("sample", "sample")):
        equal(checks[check + (" event cost" if kind != "sample" else " cost")]["state"] == "ok", kind in known, "the cost of %s, of %s" % (kind, known))


@test
def doctor_knows_where_processes_meet():
    "doctor judges the runtime folder as recording does: a folder that others may read works, one they may write does not"
    folder = tmp()
    runtime, other = folder + "/runtime", folder + "/xdg"
    os.mkdir(other)

    def told(env):
        rc, out, _ = run([PEM, "doctor", "--json"], env=env)
        equal(rc, 0, "status")
        return [(c["state"], c["detail"]) for c in json.loads(out) if c["check"] == "runtime folder"][0]

    for mode, state, status in ((None, "ok", 0), (0o700, "ok", 0), (0o755, "ok", 0), (0o777, "no", 2)):
        if os.path.exists(runtime):
            shutil.rmtree(runtime)
        if mode is not None:
            os.mkdir(runtime)
            os.chmod(runtime, mode)
        env = {"PEM_RUNTIME_DIR": runtime}
        got, detail = told(env)
        equal(got, state, "state of a folder of mode %s" % (mode and oct(mode)))
        assert detail.startswith(runtime), detail
        equal(run([PEM, "record", "-q", "-o", tmp() + "/t", "--", "true"], env=env)[0], status, "status of record")
    # One that is no absolute path is nobody's: the next in turn is taken.
    got, detail = told({"PEM_RUNTIME_DIR": "here", "XDG_RUNTIME_DIR": other})
    assert got == "ok" and detail.startswith(other + "/pem"), (got, detail)


# A source whose name fills most of a line, for every so-manyth tracepoint of the catalogue.
SOURCE = """
#include <pem/event.h>
#include "source.h"
static int can_deliver(const struct pem_event *event, struct pem_error *reason)
{
	static unsigned count;

	if (event->source_kind != PEM_SOURCE_TRACEPOINT)
		return -2; /* ENOENT */
	return count++ % EVERY == 0;
}
static int open_none(const struct pem_source_config *config, struct pem_source **source, struct pem_error *error)
{
	return -95; /* EOPNOTSUPP */
}
const struct pem_source_ops pem_source = {
	.size = sizeof(pem_source), .abi_version = PEM_SOURCE_ABI_VERSION + NEWER, .name = NAME, .can_deliver = can_deliver,
	.open = open_none,
};
"""


def source(folder, name, every=2, newer=0):
    """Put a source of this name, for every so-manyth tracepoint, into a folder."""
    more = ["-DNAME=\"%s\"" % name, "-DEVERY=%d" % every, "-DNEWER=%d" % newer, "-shared", "-fPIC"]
    more += ["-I" + os.path.join(ROOT, place) for place in ("libpem", "libpem/include", "spec/abi")]
    shutil.move(compile_program(SOURCE, "source.so", more), "%s/source-%s.so" % (folder, name))


def doctors(folder):
    """What doctor finds with the plugins of a folder, by check."""
    rc, out, err = run([PEM, "doctor", "--json"], env={"PEM_PLUGIN_PATH": folder})
    equal((rc, err), (0, ""), "status and errors of doctor")
    return {check["check"]: check for check in json.loads(out)}


@test
def doctor_of_many_sources():
    "doctor counts what each source serves, however many there are and however long their names, and leaves none out unsaid"
    folder = tmp()
    names = [letter * 90 for letter in "abcdef"]
    for name in names:
        source(folder, name)
    checks = doctors(folder)
    detail = checks["kernel path"]["detail"]
    assert all(name + " serves " in detail for name in names[:2]) and " more of the " in detail, detail
    assert names[0] in checks["sources"]["detail"] and "and 3 more" in checks["sources"]["detail"], checks["sources"]
    for name in names:
        os.remove("%s/source-%s.so" % (folder, name))
    for name in "abcdef":
        source(folder, name)
    detail = doctors(folder)["kernel path"]["detail"]
    assert all("%s serves " % name in detail for name in "abcdef"), detail


@test
def doctor_says_why_a_source_is_refused():
    "doctor names a source that libpem refuses with libpem's reason, and does not count it as installed"
    folder = tmp()
    source(folder, "newer", newer=1)
    check = doctors(folder)["sources"]
    assert check["state"] == "no" and "source-newer.so" in check["detail"] and "another version" in check["detail"], check
    source(folder, "right")
    check = doctors(folder)["sources"]
    assert check["state"] == "limited" and check["detail"].startswith("right; "), check
    os.chmod(folder, 0o777)
    checks = doctors(folder)
    for check in checks["sources"], checks["exporters"]:
        assert check["state"] == "no" and folder in check["detail"] and "everybody" in check["detail"], check
    check = doctors(tmp())["sources"]
    equal((check["state"], check["detail"]), ("no", "none found"), "of an empty folder")


@test
def doctor_says_why_an_exporter_is_refused():
    "doctor tells why an exporter's file can't be loaded"
    folder = tmp()
    with open(folder + "/export-bad.so", "w") as bad:
        bad.write("this is no shared object\n")
    check = doctors(folder)["exporters"]
    assert check["state"] == "no" and "export-bad.so" in check["detail"], check


@test
def no_colours_outside_terminals():
    "what goes to a pipe holds no escape sequence"
    for command in (["list"], ["doctor"], ["help"], ["xyzzy"]):
        _, out, err = run([PEM] + command, env={"TERM": "xterm", "NO_COLOR": None})
        assert "\033" not in out + err, command


@test
def full_standard_output():
    "standard output that can't be written: status 3 and a sentence"
    if not os.path.exists("/dev/full"):
        skip("there is no /dev/full")
    rc, _, err = run(["sh", "-c", '"$0" list > /dev/full', PEM])
    equal(rc, 3, "status")
    assert "standard output" in err, err


@test
def exporters_as_json():
    "export --list names its formats, as a table and as JSON"
    rc, out, _ = run([PEM, "export", "--list", "--json"])
    equal(rc, 0, "status")
    formats = json.loads(out)
    for entry in formats:
        equal(set(entry), {"name", "suffix", "description"}, "members")
    _, table, _ = run([PEM, "export", "--list"])
    for entry in formats:
        assert entry["name"] in table


@test
def mark_outside_a_recording():
    "mark does nothing outside a recording, and mark run returns its command's status"
    env = {"PEM_SESSION": None}
    equal(run([PEM, "mark", "begin", "x"], env=env), (0, "", ""), "begin")
    equal(run([PEM, "mark", "end", "x"], env=env), (0, "", ""), "end")
    equal(run([PEM, "mark", "run", "x", "--", "sh", "-c", "echo hi; exit 7"], env=env)[:2], (7, "hi\n"),
          "run")
    equal(run([PEM, "mark", "run", "x", "--", "sh", "-c", "kill -9 $$"], env=env)[0], 137, "killed")
    equal(run([PEM, "mark", "run", "x", "--", "/nonexistent"], env=env)[0], 127, "not found")
    equal(run([PEM, "mark", "run", "x", "--", "/etc"], env=env)[0], 126, "not executable")


@test
def mark_takes_names_that_fit_the_spec():
    "the longest name that mark takes is the longest that the field of its events holds"
    with open(ROOT + "/spec/app/phase.xml") as spec:
        (size,) = set(re.findall(r"<field name='name' type='string' max='(\d+)'", spec.read()))
    longest = int(size) - 1
    equal(run([PEM, "mark", "begin", "n" * longest])[0], 0, "status of the longest name")
    fails(["mark", "begin", "n" * (longest + 1)], 1, " %d " % longest)


@test
def mark_where_ended_children_are_ignored():
    "mark run tells its command's status where SIGCHLD is ignored from the start, which the command then sees"
    ignore = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    see = "import signal, sys; sys.exit(7 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 8)"
    rc, _, err = run([sys.executable, "-c", ignore, PEM, "mark", "run", "x", "--", sys.executable, "-c", see])
    equal((rc, err), (7, ""), "status and errors")
    equal(run([PEM, "mark", "run", "x", "--", sys.executable, "-c", see])[0], 8, "status where it is not ignored")


@test
def mark_leaves_no_signal_blocked():
    "the command of mark run has the signals that mark was started with"
    see = "import signal, sys; sys.exit(len(signal.pthread_sigmask(signal.SIG_BLOCK, ())))"
    equal(run([PEM, "mark", "run", "x", "--", sys.executable, "-c", see])[0], 0, "signals that are blocked")


@test
def gen_and_spec_run_codegen():
    "gen writes a header; spec check counts what is right, and names the line of what is wrong"
    spec = ROOT + "/spec/app/phase.xml"
    folder = tmp()
    rc, _, err = run([PEM, "gen", "--lang", "c", spec, "-o", folder + "/gen"])
    equal((rc, err), (0, ""), "gen")
    equal(os.listdir(folder + "/gen"), ["phase.h"], "files")
    rc, out, err = run([PEM, "spec", "check", spec])
    equal((rc, out, err), (0, "2 events in 1 spec: 0 errors, 0 warnings\n", ""), "check of a right spec")
    with open(spec) as right, open(folder + "/wrong.xml", "w") as wrong:
        wrong.write(right.read().replace("type='string'", "type='strnig'", 1))
    rc, _, err = run([PEM, "spec", "check", folder + "/wrong.xml"])
    equal(rc, 1, "check of a wrong spec")
    assert "wrong.xml:" in err and "error:" in err and "strnig" in err, err


@test
def completions_know_the_options():
    "the completions name every verb and every long option of the help"
    files = [ROOT + "/docs/completion/pem", ROOT + "/docs/completion/_pem"]
    for path in files:
        with open(path) as file:
            text = file.read()
        for verb in VERBS:
            assert verb in text, (path, verb)
            _, out, _ = run([PEM, verb, "--help"])
            for line in out.split("\nOptions\n")[1].split("\n\n")[0].splitlines():
                if line.startswith("  -") or line.startswith("      --"):
                    option = "--" + line.split("--")[1].split()[0]
                    assert option in text, (path, verb, option)


@test
def man_pages_know_the_options():
    "each verb has a man page that names its long options"
    for verb in VERBS:
        with open("%s/docs/man/pem-%s.1" % (ROOT, verb)) as file:
            text = file.read()
        _, out, _ = run([PEM, verb, "--help"])
        for line in out.split("\nOptions\n")[1].split("\n\n")[0].splitlines():
            if line.startswith("  -") or line.startswith("      --"):
                option = line.split("--")[1].split()[0]
                assert option == "help" or "-" + option in text, (verb, option)


@test
def examples_name_events_that_exist():
    "the events that record's and stat's examples name are known to pem list"
    for verb in ("record", "stat"):
        _, out, _ = run([PEM, verb, "--help"])
        patterns = re.findall(r"^ +pem %s .*?-e '?([^ ']+)" % verb, out.split("Examples")[1], re.M)
        assert patterns, out
        # Counters in front of an @ are record's alone.
        named = ",".join(patterns).replace("ipc@phase", "Phase")
        rc, _, err = run([PEM, "stat", "-e", named, "--", "true"])
        equal(rc, 0, "%s, in examples of %s: %s" % (patterns, verb, err))


run_all()
