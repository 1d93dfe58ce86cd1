# SPDX-License-Identifier: MIT
"""simulated: what programs of known references find in caches and TLBs that do not exist"""
import glob
import json
import os
import re
import subprocess
import time

from tap import BUILD, PEM, ROOT, equal, run, run_all, skip, test, tmp

LONG_S = 12

TOOLS = BUILD + "/lib/pem/valgrind"
MACHINE = """<hardware page='%s' memoryCycles='100' walkCycles='30'>
  <cache level='1' kind='instruction' size='32K' ways='8' line='64'/>
  <cache level='1' kind='data' size='32K' ways='8' line='64'/>
  <cache level='2' kind='unified' size='%s' ways='16' line='64' cycles='10'/>
  <tlb level='1' kind='data' entries='64' ways='64' pages='4K 2M'/>
</hardware>
"""
# One byte of each line of 1 MiB, as often as it is told.
WALK = r"""
#include <stubs/phase.h>
#include <stdlib.h>
#include <string.h>
#define BYTES (1ul << 20)
#define LINE 64
static char array[BYTES] __attribute__((aligned(4096)));
int main(int count, char **words)
{
	volatile char *byte = array;
	unsigned long passes = count > 1 ? strtoul(words[1], NULL, 10) : 1, i;

	for (; passes; passes--) {
		pem_notify_phase_begin("pass");
		for (i = 0; i < BYTES; i += LINE)
			(void)byte[i];
		pem_notify_phase_end("pass");
	}
	return 7;
}
"""
LINES, PAGES = 16384, 256


def walk(folder):
    with open(folder + "/walk.c", "w", encoding="utf-8") as text:
        text.write(WALK)
    rc, _, err = run(["cc", "-O1", "-I" + BUILD + "/gen", "-I" + ROOT + "/spec/abi", "-o", folder + "/walk", folder + "/walk.c", "-ldl"])
    equal(rc, 0, "compiling (%s)" % err)
    return folder + "/walk"


def machine(folder, page="4K", second="256K"):
    path = "%s/%s-%s.xml" % (folder, page, second)
    with open(path, "w", encoding="utf-8") as text:
        text.write(MACHINE % (page, second))
    return path


def counted(path, *command, status=7):
    if not os.path.exists(TOOLS + "/pem-hardware-amd64-linux"):
        skip("the tool for Valgrind is not built")
    rc, out, err = run([PEM, "stat", "-q", "--json", "-n", "--hardware", path, "-e", "HW::Simulated::*", "--", *command])
    equal(rc, status, "the command's status (%s)" % err)
    return {event["name"].rsplit("::", 1)[1]: event["sum"] for event in json.loads(out)["events"]}


def difference(path, program):
    """What a third pass has beyond the second, which ends as the first did."""
    two, three = counted(path, program, "2"), counted(path, program, "3")
    return {name: three[name] - two[name] for name in three}


@test
def a_pass_misses_each_line_or_none():
    "a pass over 1 MiB misses each line of a cache of 32 KiB, each of one of 256 KiB, and none of one of 4 MiB; a page is walked for once"
    folder = tmp()
    program = walk(folder)
    small = difference(machine(folder), program)
    # Outside the array a pass has a stack and the code of its loop, which are hot.
    assert LINES <= small["Loads"] < LINES + 1000, small
    assert LINES <= small["L1DataMisses"] <= LINES + 8, small
    assert LINES <= small["L2Misses"] <= LINES + 16, small
    assert PAGES <= small["DataTLBMisses"] <= PAGES + 8, small
    equal(small["PageWalks"], small["DataTLBMisses"], "walks, with one TLB")
    equal(small["PageWalkCycles"], 30 * small["PageWalks"], "cycles of walks")
    large = difference(machine(folder, second="4M"), program)
    equal(large["L1DataMisses"], small["L1DataMisses"], "misses of the same first level")
    assert large["L2Misses"] <= 2, large


@test
def large_pages_need_fewer_translations():
    "with pages of 2 MiB a pass over 1 MiB needs no walk"
    folder = tmp()
    small = difference(machine(folder, page="2M"), walk(folder))
    equal(small["PageWalks"], 0, "walks")


@test
def cycles_follow_from_the_model():
    "cycles are one for each instruction, 10 where the second level answers, 100 of memory, 30 of a walk"
    folder = tmp()
    found = counted(machine(folder), walk(folder), "2")
    equal(found["Cycles"], found["Instructions"] + 10 * (found["L2Accesses"] - found["L2Misses"])
          + 100 * found["LastLevelMisses"] + found["PageWalkCycles"], "cycles of %r" % found)
    equal(found["L2Accesses"], found["L1DataMisses"] + found["L1CodeMisses"], "what reaches the second level")


@test
def two_runs_are_equal():
    "two runs count the same, to the last one"
    folder = tmp()
    program, path = walk(folder), machine(folder)
    equal(counted(path, program, "1"), counted(path, program, "1"), "counts")


@test
def children_are_counted():
    "what a shell starts is counted, and the status is the command's"
    folder = tmp()
    program, path = walk(folder), machine(folder)
    one = counted(path, "sh", "-c", "%s 1; exit 3" % program, status=3)
    two = counted(path, "sh", "-c", "%s 1; %s 1; exit 3" % (program, program), status=3)
    assert two["Loads"] - one["Loads"] > LINES, (one, two)


@test
def as_cachegrind_counts():
    "Valgrind's own simulator counts the same instructions and misses of each cache, with lazy binding off"
    folder = tmp()
    program, path = walk(folder), machine(folder)
    counted(path, program, "1")  # or this is skipped
    with open(folder + "/counts", "wb") as counts:
        done = subprocess.run([BUILD + "/bin/pem-codegen", "--hardware", path], stdout=counts, check=True)
        equal(done.returncode, 0, "status")
        counts.truncate(544 + 4096 * 136)
    variables = {"VALGRIND_LIB": TOOLS, "PATH": os.environ["PATH"], "LD_BIND_NOW": "1"}
    # Options of one length: they lie on the program's stack.
    run(["valgrind", "-q", "--tool=pem-hardware", "--hardware=%s/counts" % folder, program, "2"], env=variables)
    with open(folder + "/counts", "rb") as counts:
        ours = [int.from_bytes(counts.read()[544 + 8 + 8 * i:544 + 16 + 8 * i], "little") if not counts.seek(0) else 0
                for i in range(16)]
    run(["valgrind", "-q", "--tool=cachegrind", "--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=262144,16,64",
         "--cachegrind-out-file=%s/theirs" % folder, program, "2"], env=variables)
    with open(glob.glob(folder + "/theirs*")[0], encoding="utf-8") as text:
        found = text.read()
    names = re.search(r"^events: (.*)$", found, re.MULTILINE).group(1).split()
    theirs = dict(zip(names, map(int, re.search(r"^summary: (.*)$", found, re.MULTILINE).group(1).split())))
    equal({"instructions": ours[0], "code": ours[4], "data": ours[5], "last": ours[10]},
          {"instructions": theirs["Ir"], "code": theirs["I1mr"], "data": theirs["D1mr"] + theirs["D1mw"],
           "last": theirs["ILmr"] + theirs["DLmr"] + theirs["DLmw"]}, "ours and cachegrind's")


@test
def phases_have_their_misses():
    "threads read simulated counters at events: the first pass misses each line of a large cache, the later ones none"
    folder = tmp()
    program, path = walk(folder), machine(folder, second="4M")
    counted(path, program, "1")
    trace = folder + "/trace"
    rc, _, err = run([PEM, "record", "-q", "--hardware", path, "-e", "L2Misses+L1DataMisses@phase", "-o", trace, "--", program, "3"])
    equal(rc, 7, "status (%s)" % err)
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report (%s)" % err)
    told = json.loads(out)
    text = json.dumps(told)
    assert "Simulated::L2Misses" in text and "Simulated::L1DataMisses" in text, text[:3000]
    rc, out, _ = run([PEM, "report", trace])
    assert "valgrind" not in out, "the command is the program's own: " + out
    row = re.search(r"^pass +3 +([\d,]+) +([\d,]+)", out, re.MULTILINE)
    assert row, out
    second, first = (int(cell.replace(",", "")) for cell in row.groups())
    # Besides the array: what reading counters needs for the first time.
    assert LINES <= second <= LINES + 100 and 3 * LINES <= first <= 3 * LINES + 1000, row.group(0)


@test
def readings_are_in_a_trace():
    "a recording has readings of simulated counters, and its last ones are the counts"
    folder = tmp()
    program, path = walk(folder), machine(folder)
    counted(path, program, "1")
    rc, _, err = run([PEM, "record", "-q", "--hardware", path, "-e", "HW::Simulated::L1DataMisses", "-o", folder + "/trace", "--", program, "2"])
    equal(rc, 7, "status (%s)" % err)
    rc, out, _ = run([PEM, "report", folder + "/trace"])
    reached = re.search(r"HW::Simulated::L1DataMisses .*reached ([\d,]+) misses", out)
    assert reached and int(reached.group(1).replace(",", "")) > 2 * LINES, out


@test
def wrong_machines_are_told_by_line():
    "each mistake is told with its line and what would mend it, and nothing runs"
    folder = tmp()
    for text, told in (
            ("<hardware page='4K' memoryCycles='1'>\n<cache level='1' kind='unified' size='3K' ways='5' line='64'/></hardware>", ":2: .*other ways"),
            ("<hardware page='4K' memoryCycles='1'>\n<cache level='9' kind='unified' size='4K' ways='4' line='64'/></hardware>", ":2: .*expected 1, 2 or 3"),
            ("<hardware page='4K' memoryCycles='1'>\n<cache level='1' kind='data' size='4K' ways='4' line='64'/></hardware>", "serves instructions"),
            ("<hardware page='4K' memoryCycles='1'>\n<cache level='1' kind='unified' size='4K' ways='0' line='64'/></hardware>", ":2: .*1 to 4096"),
            ("<hardware page='4K' memoryCycles='1'>\n<cache level='1' kind='unified' size='999999M' ways='1' line='8'/></hardware>", ":2: .*4194304 at most"),
            ("<hardware page='4K' memoryCycles='1'>\n<cache level='1' kind='unified' size='4K' line='64'/></hardware>", ":2: .*lacks its attribute 'ways'"),
            ("<hardware page='4K' memoryCycles='1'>\n<cache level='1' kind='unified' size='4K' ways='4' line='64'>", "not well-formed"),
            ("<!DOCTYPE hardware [<!ENTITY a 'b'>]><hardware page='4K' memoryCycles='1'/>", "DOCTYPE"),
            ("<spec/>", "expected <hardware>")):
        with open(folder + "/wrong.xml", "w", encoding="utf-8") as file:
            file.write(text)
        rc, out, err = run([BUILD + "/bin/pem-codegen", "--hardware", folder + "/wrong.xml"])
        equal((rc, out), (1, ""), "status and output of " + text)
        assert re.search(told, err), (told, err)


@test
def a_cut_file_is_told():
    "a program that cuts the file of counts ends itself and not the recorder, which says so"
    folder = tmp()
    program, path = walk(folder), machine(folder)
    counted(path, program, "1")  # or this is skipped
    variables = dict(os.environ, TMPDIR=folder, XDG_RUNTIME_DIR="")
    with subprocess.Popen([PEM, "stat", "-n", "--hardware", path, "-e", "HW::Simulated::*", "--", program, "100000"],
                          env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as pem:
        processes = b""
        while processes.strip(b"\0") == b"" and pem.poll() is None:
            time.sleep(0.01)
            for found in glob.glob(folder + "/pem-hardware-*/counts"):
                with open(found, "rb") as counts:
                    counts.seek(28)
                    processes = counts.read(4)
                if processes.strip(b"\0"):
                    os.truncate(found, 0)
        _, err = pem.communicate(timeout=60)
    assert pem.returncode > 0, "pem ended with %d: %s" % (pem.returncode, err)
    assert "was cut" in err, err


@test
def without_a_machine_it_is_said():
    "without --hardware the events say what they need; a program that runs can't be simulated"
    rc, _, err = run([PEM, "stat", "-e", "HW::Simulated::Cycles", "--", "true"])
    assert rc == 2 and "--hardware" in err, (rc, err)
    rc, _, err = run([PEM, "stat", "--hardware", ROOT + "/examples/hardware/no-tlb.xml", "-p", "1"])
    assert rc == 1 and "needs a command" in err, (rc, err)


@test
def examples_are_sound():
    "each example of a machine is one"
    found = sorted(glob.glob(ROOT + "/examples/hardware/*.xml"))
    equal(len(found), 3, "examples")
    for path in found:
        done = subprocess.run([BUILD + "/bin/pem-codegen", "--hardware", path], stdout=subprocess.PIPE, check=False)
        equal((done.returncode, len(done.stdout)), (0, 544), path)


def in_folder(base, command, timeout=60):
    """Simulate a shell's command, with a folder for pem's own files."""
    return run(["timeout", "-k", "1", str(timeout), PEM, "stat", "-q", "-n", "-o", tmp() + "/out", "--hardware", machine(tmp()),
                "-e", "HW::Simulated::Loads", "--", "sh", "-c", command], env={"XDG_RUNTIME_DIR": None, "TMPDIR": base}, timeout=timeout + 30)


@test
def a_program_that_replaces_the_log_makes_nobody_wait():
    "Valgrind's log becomes a FIFO, or a link to what never ends, while the program runs"
    for made in ("mkfifo $f", "ln -s /dev/zero $f"):
        base = tmp() + "/base"
        os.makedirs(base, exist_ok=True)
        rc, _, err = in_folder(base, "for f in %s/pem-hardware-*/said; do rm $f; %s; done; exit 5" % (base, made))
        equal(rc, 5, "status with %s (%s)" % (made, err))
        equal(os.listdir(base), [], "left behind")


@test
def a_folder_may_have_any_name():
    "a '%' in the temporary folder's path is no word of Valgrind's"
    base = tmp() + "/d%p-%n"
    os.mkdir(base)
    rc, _, err = in_folder(base, "echo %s/pem-hardware-* >&2; exit 5" % base)
    equal(rc, 5, "status (%s)" % err)
    assert "XXXXXX" not in err and "*" not in err, err


@test
def a_folder_of_another_user_is_not_used():
    "root makes no files where another user could put others in their place"
    if os.geteuid() != 0:
        skip("another user's folder can be made by root alone")
    base = tmp() + "/theirs"
    os.mkdir(base, 0o700)
    os.chown(base, 65534, 65534)
    for folder in (base, base + "/below"):
        os.makedirs(folder, exist_ok=True)
        rc, _, err = in_folder(folder, "echo %s/* >&2; exit 5" % folder)
        equal(rc, 5, "status (%s)" % err)
        assert "pem-hardware" not in err, err


@test
def a_folder_that_is_missing_is_told():
    "Valgrind makes files in TMPDIR, too"
    for folder in (tmp() + "/missing", "relative"):
        rc, _, err = in_folder(folder, "exit 5")
        equal(rc, 1, "status (%s)" % err)
        assert "TMPDIR names " + folder in err, err


@test
def a_program_has_the_descriptors_that_it_has_without():
    "Valgrind's log is none that the program finds open, nor one that it started"
    found = []
    for words in ((), ("--hardware", machine(tmp()))):
        rc, out, err = run([PEM, "stat", "-q", "-n", "-o", tmp() + "/out", *words, "-e", "HW::Simulated::Loads", "-e", "APP::Libc::Malloc",
                            "--", "sh", "-c", "ls /proc/self/fd; exec ls /proc/self/fd"])
        equal(rc, 0, "status (%s)" % err)
        found.append([fd for fd in out.split() if int(fd) < 100])
    equal(found[1], found[0], "descriptors")


run_all()
