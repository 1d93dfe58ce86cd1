# SPDX-License-Identifier: MIT
"""
record_allocation_stacks: pem record -g keeps all calls that led to each allocation

Not here: what is allocated from each stack, beside heaptrack (truth/stacks.py), and samples with stacks (record_stacks.py).
"""
import json
import os
import re
import subprocess
import time

from attached import Asked, Observer, control_files, environment, is_served
from html_page import export, show
from patience import HANG_S
from preload import PRELOAD, compile_program, need_preload
from tap import BUILD, PEM, equal, run, run_all, skip, start, test, tmp

LONG_S = 15
EVENTS = "APP::Libc::Malloc,APP::Libc::Free"
PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define APART __attribute__((noinline, noclone))
static void *volatile kept;
APART static void leaf(void) { kept = malloc(10); free(kept); }
APART static void down(int depth)
{
	if (depth)
		down(depth - 1);
	else
		leaf();
	kept = NULL;
}
/* 2^depth stacks */
APART static void tree(int depth)
{
	if (!depth) {
		leaf();
	} else {
		tree(depth - 1);
		kept = NULL;
		tree(depth - 1);
		kept = NULL;
	}
}
APART static void in_child(void) { leaf(); kept = NULL; }
int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	if (!strcmp(way, "fork")) {
		for (volatile int i = 0; i < 2; i++) {
			leaf();
			in_child();
			if (!i && fork()) {
				wait(NULL);
				break;
			}
		}
	} else if (!strcmp(way, "trees")) {
		for (int i = atoi(argv[2]); i; i--)
			tree(8);
	} else if (!strcmp(way, "serve")) {
		char line[16];
		do
			write(1, "ready\n", 6);
		while (read(0, line, sizeof(line)) > 0 && (down(3), 1));
	} else {
		down(atoi(way));
	}
	return 0;
}
"""


def compiled(*flags):
    need_preload()
    if not os.path.exists(BUILD + "/programs/name_code"):
        skip("libdw-dev is missing")
    return compile_program(PROGRAM, flags=flags)


def report(trace, by="stack"):
    rc, out, err = run([PEM, "report", "--by", by, "--json", trace])
    equal(rc, 0, "exit status of the report, with " + err)
    told = json.loads(out)
    told["stacks"] = [stack for stack in told["stacks"] if stack["event"].startswith("APP::Libc")]  # and not of samples
    return told


def recorded(command, *options, events=EVENTS):
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-e", events, *options, "-o", trace, "--"] + command)
    equal(rc, 0, "exit status, with " + err)
    return trace


def frames_of(stack):
    return [frame.get("function", "?") for frame in stack["frames"]]


def counts(trace):
    """{functions from main to the allocation: calls}"""
    found = {}
    for stack in report(trace)["stacks"]:
        names = frames_of(stack)
        key = " ".join(reversed(names[:names.index("main") + 1] if "main" in names else names))
        found[key] = found.get(key, 0) + stack["count"]
    return found


def events_of(told):
    return {event["name"]: event["count"] for event in told["per_event"] if event["count"]}


@test
def chosen_by_option_alone():
    "frames are recorded with -g or by their whole name, and with no pattern"
    program = compiled()
    for options, events in (([], "APP::*"), ([], "APP::Stack::*,APP::Libc::Malloc"), ([], "Frame,APP::Libc::Malloc"), (["-g"], "HPMsAndPC")):
        trace = tmp() + "/trace"
        rc, _, err = run([PEM, "record", "-q", "-e", events, *options, "-o", trace, "--", program, "3"])
        if "Frame" in events or "Stack" in events:
            equal(rc, 1, "exit status of a pattern that chooses none, with " + err)
            continue
        equal(rc, 0, "exit status, with " + err)
        equal(events_of(report(trace)).get("APP::Stack::Frame"), None, "frames with " + " ".join(options + [events]))
    for options, events in (["-g"], EVENTS), ([], EVENTS + ",APP::Loader::Object,APP::Stack::Frame"):
        equal(counts(recorded([program, "3"], *options, events=events)), {"main down down down down leaf": 1}, "stacks")


@test
def each_call_once():
    "what is known of a stack is not recorded again: a call of a stack that is new is one frame"
    told = report(recorded([compiled(), "trees", "50"], "-g", "--buffer", "64M"))
    events = events_of(told)
    equal(events["APP::Libc::Malloc"], 50 * 256, "allocations")
    # From main to the leaf's malloc: 1 + ... + 256 calls of tree, and 256 of leaf and of malloc; each stretch of 32 chunks has them again.
    calls = 2 ** 9 - 1 + 256 * 2
    chunks = (events["APP::Libc::Malloc"] * 56 + events["APP::Stack::Frame"] * 32) / 8192
    assert calls <= events["APP::Stack::Frame"] <= (chunks / 32 + 2) * (calls + 8), (events, chunks)
    equal(sorted(stack["count"] for stack in told["stacks"] if "tree" in frames_of(stack)), 256 * [50], "allocations by stack")


@test
def deep():
    "a stack of more than 127 calls ends in [cut off], and one of fewer does not"
    program = compiled()
    for depth in (100, 300):
        stacks = [stack for stack in report(recorded([program, str(depth)], "-g"))["stacks"] if "leaf" in frames_of(stack)]
        equal(len(stacks), 1, "stacks")
        names = frames_of(stacks[0])
        equal((names[0], names[-1] == "[cut off]", names.count("down")), ("leaf", depth == 300, min(depth + 1, 126)), "calls at depth %d" % depth)
    text = run([PEM, "report", "--by", "stack", recorded([program, "300"], "-g")])[1]
    assert "further callers" in text, text


@test
def cost_of_stacks():
    "the cost of observing has each stack that was looked for, and each call of it; a trace of a recorder that did not tell has them named"
    trace = recorded([compiled(), "trees", "5"], "-g")
    told = report(trace)
    events, stacks = events_of(told), told["stacks"]
    costs = {kind["kind"]: (kind["count"], kind["ns_each"]) for kind in told["cost"]["kinds"]}
    # An inlined call has no return address of its own.
    calls = sum(stack["count"] * sum(not frame.get("inlined", False) and frame.get("function") != "[cut off]" for frame in stack["frames"])
                for stack in stacks)
    equal((costs["stack"][0], costs["stack-call"][0]), (sum(events.get("APP::Libc::" + name, 0) for name in ("Malloc", "Calloc", "Realloc")), calls),
          "stacks and calls")
    assert costs["stack"][1] and costs["stack-call"][1] and not told["cost"]["unmeasured"], told["cost"]
    with open(trace + "/.pem/run", encoding="utf-8") as run_file:
        lines = run_file.readlines()
    with open(trace + "/.pem/run", "w", encoding="utf-8") as run_file:
        run_file.writelines(line for line in lines if not line.startswith("cost=stack"))
    equal(report(trace)["cost"]["unmeasured"], ["stacks of allocations"], "unmeasured")
    text = run([PEM, "report", "--by", "stack", trace])[1]
    assert re.search(r"In all at least .* Not in it: what could not be measured \(stacks of allocations\)", " ".join(text.split())), text


@test
def with_gaps_between_segments():
    "a program whose segments do not adjoin, as linkers make large ones, has its callers"
    if os.uname().machine != "x86_64":
        skip("elsewhere no callers are found")
    program = compiled("-no-pie", "-Wl,-z,separate-code", "-Wl,-z,max-page-size=0x200000")
    equal(counts(recorded([program, "3"], "-g")), {"main down down down down leaf": 1}, "stacks")


@test
def a_child():
    "a forked child's allocations have stacks, though its parent allocated from the same calls"
    stacks = [stack for stack in report(recorded([compiled(), "fork"], "-g"))["stacks"] if "in_child" in frames_of(stack)]
    equal([(stack["count"], "[cut off]" in frames_of(stack)) for stack in stacks], [(2, False)], "allocations, of %s" % stacks)


@test
def lost_records():
    "where records are lost no allocation gets another one's stack, and allocations without one are counted"
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-g", "-e", EVENTS + ",APP::Loader::Object", "--buffer", "64K", "-o", trace, "--", compiled(), "trees", "2000"])
    assert rc in (0, 4), (rc, err)
    told = report(trace)
    events = events_of(told)
    assert told["events"]["discarded"] > 1000, told["events"]
    known = [stack for stack in told["stacks"] if "leaf" in frames_of(stack)]
    for stack in known:
        names = frames_of(stack)
        assert names[-1] == "[cut off]" or "main" in names, names
        names = names[:names.index("[cut off]")] if "[cut off]" in names else names[:names.index("main") + 1]
        assert re.fullmatch(r"leaf( tree){0,9}( main)?", " ".join(names)), names
    lost = events["APP::Libc::Malloc"] - sum(stack["count"] for stack in told["stacks"])
    equal(told["without_stack"], lost, "counted")
    text = run([PEM, "report", "--by", "stack", trace])[1]
    equal("{:,} allocations are in no stack".format(lost) in text, lost != 0, "told in " + text)


class Attached(Observer):
    """pem record -g, attached."""

    def __init__(self, asked):
        self.verb, self.trace = "record", tmp() + "/trace"
        self.child = start([PEM, "record", "-q", "-g", "-e", EVENTS, "-o", self.trace, "-p", str(asked.pid)], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=environment(asked))
        for _ in range(500 * HANG_S):  # the program is on standby until its next event
            asked.ask("")
            sessions = [name for name in os.listdir(asked.runtime) if name.startswith("session-%d-" % self.child.pid)]
            if sessions and any(is_served(asked, name, sessions[0]) for name in control_files(asked)):
                return
            time.sleep(0.002)
        raise AssertionError("not attached")


@test
def a_second_recorder():
    "a recorder that attaches to a program that another one recorded, or records, gets the stacks again"
    recorded([compiled(), "3"], "-g")  # costs are measured once: a trace begins after that
    program = Asked(tmp(), [compiled(), "serve"], **PRELOAD)
    program.ask("")
    recorders = []
    for i in range(3):
        recorders.append(Attached(program))
        for _ in range(50):
            program.ask("")
        if i == 0:
            recorders[0].end()
    for i, recorder in enumerate(recorders):
        if i:
            recorder.end()
        told = report(recorder.trace)
        equal(told["without_stack"], 0, "allocations whose stack is unknown, of %s" % events_of(told))
        assert [stack for stack in told["stacks"] if frames_of(stack)[:2] == ["leaf", "down"]], told["stacks"]
    program.end()


@test
def flight_recorder():
    "a snapshot of a flight recorder that overwrote its oldest records has the stacks of its newest ones"
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-g", "-e", EVENTS + ",APP::Loader::Object", "--overwrite", "--buffer", "512K", "-o", trace, "--", compiled(), "trees", "50"])
    equal(rc, 0, "exit status, with " + err)
    told = report(trace)
    assert told["events"]["overwritten"] > 10000, told["events"]
    mallocs = events_of(told)["APP::Libc::Malloc"]
    whole = sum(stack["count"] for stack in told["stacks"] if "main" in frames_of(stack))
    assert whole > mallocs / 3, (whole, mallocs)


def amounts_of(b, *functions):
    """{what the page offers: [what each function then has with what it called]}"""
    return b.script("""
        const choice = document.querySelector('#allocation-amount'), found = {};
        for (const option of choice.options) {
            choice.value = option.value;
            choice.dispatchEvent(new Event('change'));
            found[option.text] = arguments[0].map(name => {
                const row = document.querySelector(`#allocation-table tr[data-name="${name}"]`);
                return row ? Number(row.dataset.total) : 0;
            });
        }
        return found;""", list(functions))


@test
def folded_amounts():
    "pem export --to folded --of refuses what the trace does not know, what is no amount, and other formats"
    trace = recorded([compiled(), "3"], "-g")  # without releases by realloc
    for amount, status, text in ("calls", 0, ";leaf 1\n"), ("peak", 3, "not all releases of memory are known"), ("loss", 1, "'loss' is none of samples"):
        rc, out, err = run([PEM, "export", "--to", "folded", "--of", amount, trace, "-o", "-"])
        equal(rc, status, "exit status of %s, with %s" % (amount, err))
        assert text in out + err, (amount, out, err)
    rc, _, err = run([PEM, "export", "--to", "csv", "--of", "calls", trace, "-o", "-"])
    equal((rc, "has no --of" in err), (1, True), "another format, with " + err)


@test
def flame_graph():
    "the page draws the bytes of allocations as a flame graph by their calls, and without stacks it does not"
    program = compiled()
    page = export(recorded([program, "fork"], "-g"), os.path.join(tmp(), "page.html"))
    b = show(page)
    table = {name: (own, total) for name, own, total in b.script(
        "return [...document.querySelectorAll('#allocation-table tbody tr')].map(e => "
        "[e.dataset.name, Number(e.dataset.own), Number(e.dataset.total)]);")}
    equal([table.get(name) for name in ("leaf", "in_child", "main")], [(40, 40), (0, 20), (0, 40)], "bytes itself and with what it called, of %s" % table)
    equal(b.script("return document.querySelector('#allocation-stacks canvas').getAttribute('aria-label').split(':')[0]"), "Flame graph of allocations", "label")
    equal(amounts_of(b, "leaf", "in_child"), {"bytes allocated": [40, 20], "allocations": [4, 2]}, "amounts where releases are unknown")
    b = show(export(recorded([program, "fork"], "-g", events=EVENTS + ",APP::Libc::*alloc,APP::Libc::Free"), os.path.join(tmp(), "ends.html")))
    equal(amounts_of(b, "leaf", "in_child"), {
        "bytes allocated": [40, 20], "allocations": [4, 2], "bytes at the peak": [20, 0], "bytes never released (leaked)": [0, 0],
        "temporary allocations": [4, 2]}, "amounts")
    b = show(export(recorded([program, "fork"]), os.path.join(tmp(), "without.html")))
    equal(b.script("return document.querySelector('#allocations').hidden"), True, "hidden without stacks")


if __name__ == "__main__":
    run_all()
