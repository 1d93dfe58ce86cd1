# SPDX-License-Identifier: MIT
"""report_sites.py - pem report --by site: who allocated how much, in programs and libraries that a compiler made here"""
import json
import os
import re
import shutil

from tap import BUILD, PEM, equal, need, run, run_all, skip, test, tmp

EVENTS = "APP::Libc::Malloc,APP::Loader::Object"
MAIN = """#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
void *volatile kept;
void linked(void);
static __attribute__((noinline)) void small(void)
{
	for (int i = 0; i < 10; i++)
		kept = malloc(100);
}
static inline __attribute__((always_inline)) void inner(void)
{
	kept = malloc(1 << 20);
	kept = NULL;
}
static __attribute__((noinline)) void large(void)
{
	inner();
}
void *(*volatile allocate)(size_t) = malloc;
static __attribute__((noinline)) void ignored(void)
{
	allocate(7000);
	kept = NULL;
}
int main(int argc, char **argv)
{
	small();
	large();
	ignored();
	linked();
	if (argc > 1) {
		void *handle = dlopen(argv[1], RTLD_NOW);
		if (!handle)
			return 3;
		void (*opened)(void) = (void (*)(void))dlsym(handle, "opened");
		opened();
		dlclose(handle);
	}
	if (argc > 2) {
		if (!fork()) {
			small();
			exit(0);
		}
		wait(NULL);
	}
	return 0;
}
"""
LIBRARY = """#include <stdlib.h>
extern void *volatile kept;
void %s(void);
void %s(void)
{
	kept = malloc(%d);
	kept = NULL;
}
"""


def write(folder, name, text):
    with open(os.path.join(folder, name), "w") as out:
        out.write(text)


def build(folder, *flags):
    """A program, a library that it is linked with, and one that it can open."""
    need("gcc")
    write(folder, "p.c", MAIN)
    for name, size in (("linked", 3000), ("opened", 5000)):
        write(folder, name + ".c", LIBRARY % (name, name, size))
        rc, _, err = run(["gcc", "-O1", "-g", "-shared", "-fPIC", "-Wl,--build-id", name + ".c", "-o", name + ".so"], cwd=folder)
        equal(rc, 0, err)
    rc, _, err = run(["gcc", "-O1", "-g", "-rdynamic", "-Wl,--build-id", *flags, "p.c", "-o", "p", "./linked.so", "-ldl"], cwd=folder)
    equal(rc, 0, err)


def record(folder, *arguments, events=EVENTS):
    if not os.path.exists(BUILD + "/lib/libpem-libc.so"):
        skip("libpem-libc is not built")
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-e", events, "-o", trace, "--", folder + "/p", *arguments], cwd=folder)
    equal(rc, 0, err)
    return trace


def sites(trace, folder):
    """The sites in objects of the folder: {line of source: site}."""
    if not os.path.exists(BUILD + "/programs/name_code"):
        skip("libdw-dev is missing")
    rc, out, err = run([PEM, "report", "--by", "site", "--json", trace])
    equal(rc, 0, err)
    found = [s for s in json.loads(out)["sites"] if os.path.dirname(s.get("object", "")) == folder]
    return {(os.path.basename(s["names"][0]["file"]), s["names"][0]["line"]): s for s in found}


def numbers(found):
    return {where: (s["count"], s["bytes"], [n["function"] for n in s["names"]]) for where, s in found.items()}


OWN = {("p.c", 10): (10, 1000, ["small"]), ("p.c", 14): (1, 1 << 20, ["inner", "large"]), ("linked.c", 6): (1, 3000, ["linked"]),
       # Behind the call is another line's code.
       ("p.c", 24): (1, 7000, ["ignored"])}


@test
def program_and_library():
    "events and bytes of each site, in a program that is position-independent or not, and in its library"
    for flags in (["-pie", "-fPIE"], ["-no-pie", "-fno-pie"]):
        folder = os.path.realpath(tmp())
        build(folder, *flags)
        found = sites(record(folder), folder)
        equal(numbers(found), OWN, " ".join(flags))
        need("readelf", "objdump")
        site = found["p.c", 10]
        build_id = re.search(r"Build ID: (\w+)", run(["readelf", "-n", folder + "/p"])[1])[1]
        equal(site["build_id"], build_id, "build id")
        number, offset = site["site"].split("+")
        equal(number, build_id[:16], "object number")
        # The instruction in front of the site is the call.
        _, code, _ = run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=small", folder + "/p"])
        code = [line.split(":")[0].strip() for line in code.splitlines() if re.match(r" +\w+:\t", line)]
        assert offset in code, (offset, code)


@test
def opened_library():
    "a library that was opened and closed again has its names, and also if it was opened by a relative path"
    folder = os.path.realpath(tmp())
    build(folder)
    for path in (folder + "/opened.so", "./opened.so"):
        equal(numbers(sites(record(folder, path), folder)), {**OWN, ("opened.c", 6): (1, 5000, ["opened"])}, path)


@test
def forked():
    "what a child calls counts with what its parent calls from the same place"
    folder = os.path.realpath(tmp())
    build(folder)
    found = numbers(sites(record(folder, folder + "/opened.so", "fork"), folder))
    equal(found["p.c", 10], (20, 2000, ["small"]), "in both processes")


@test
def rebuilt_and_gone():
    "of a trace that keeps no names, a program that was built again since, or removed, has none: its sites stay, with the reason"
    folder = os.path.realpath(tmp())
    build(folder)
    trace = record(folder)
    if os.path.exists(trace + "/.pem/code"):
        os.unlink(trace + "/.pem/code")
    write(folder, "p.c", MAIN.replace("small", "another"))
    equal(run(["gcc", "-g", "-Wl,--build-id", "p.c", "-o", "p", "./linked.so", "-ldl", "-rdynamic"], cwd=folder)[0], 0, "gcc")

    def own():
        _, out, _ = run([PEM, "report", "--by", "site", "--json", trace])
        found = [s for s in json.loads(out)["sites"] if s.get("object") == folder + "/p"]
        equal(sorted((s["count"], s["bytes"], s["names"]) for s in found), [(1, 7000, []), (1, 1 << 20, []), (10, 1000, [])], "sites")
        return {s["no_names"] for s in found}.pop(), run([PEM, "report", "--by", "site", trace])[1]
    if not os.path.exists(BUILD + "/programs/name_code"):
        skip("libdw-dev is missing")
    says, table = own()
    assert "was built again since" in says, says
    assert "No names for 12 events" in table, table
    os.unlink(folder + "/p")
    says, _ = own()
    assert "no file with build id" in says, says


@test
def objects_not_recorded():
    "without the objects sites are addresses, and the report says what to record"
    folder = os.path.realpath(tmp())
    build(folder)
    trace = record(folder, events="APP::Libc::Malloc")
    rc, out, err = run([PEM, "report", "--by", "site", trace])
    equal(rc, 0, err)
    assert re.search(r" 10 +1000 B +APP::Libc::Malloc +process \d+, 0x\w+", out), out
    assert "the trace lacks APP::Loader::Object" in out, out
    trace = record(folder, events="APP::Libc::Free")
    assert "No event of the trace says where it was called" in run([PEM, "report", "--by", "site", trace])[1]


@test
def plain_recording():
    "a recording that names no event has what names its sites; the table has function and line"
    folder = os.path.realpath(tmp())
    build(folder)
    trace = tmp() + "/trace"
    rc, _, err = run([PEM, "record", "-q", "-o", trace, "--", folder + "/p"], cwd=folder)
    equal(rc, 0, err)
    rc, out, err = run([PEM, "report", "--by", "site", trace])
    equal(rc, 0, err)
    if not os.path.exists(BUILD + "/programs/name_code"):
        skip("libdw-dev is missing")
    assert re.search(r"\n +1 +1.0 MiB +1.0 MiB +1.0 MiB +APP::Libc::Malloc +p.c:14 +inner, in large\n", out), out
    assert re.search(r"\n +10 +1000 B +1000 B +1000 B +APP::Libc::Malloc +p.c:10 +small\n", out), out
    equal("sites" in json.loads(run([PEM, "report", "--json", trace])[1]), False, "sites that nobody asked for")


@test
def cxx_and_python():
    "a library of C++ is demangled; an interpreter's modules, opened one after the other, have their names"
    need("python3")
    trace = tmp() + "/trace"
    python = os.path.realpath(shutil.which("python3"))
    rc, _, err = run([PEM, "record", "-q", "-e", EVENTS, "-o", trace, "--", python, "-c", "import json, socket, ctypes"])
    equal(rc, 0, err)
    rc, out, err = run([PEM, "report", "--by", "site", "--json", trace])
    equal(rc, 0, err)
    found = json.loads(out)["sites"]
    assert len(found) > 3 and all("object" in s for s in found), [s for s in found if "object" not in s]


run_all()
