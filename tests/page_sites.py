# SPDX-License-Identifier: MIT
"""
page_sites.py - programs with known sites, and runs of programs under directives of the page-size agent

Not here: tests.
"""
import json
import os
import re
import shutil
import subprocess

from preload import compile_program
from tap import BUILD, SAN, equal, need, run, skip, tmp

LIBRARY = BUILD + "/lib/pem/libpem-page-size.so"
HUGE = 2 << 20
MIB = 1 << 20

# What the C programs below share. large_from(LEAST): AnonHugePages of the process, in bytes, once there are LEAST of them and
# they don't change any more. The library makes large pages by and by, as the program calls it and uses processor time, and after
# each look waits for several times as long as the look took: 5 s of processor time are the limit. large(): the same without a
# least number, so that there may be more later. resident(): bytes. own(): a large block of an arena begins a page, and the C
# library's does not. (A kernel that gives large pages unasked may give them to both.)
HEAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define KEEP __asm__ volatile("" ::: "memory")
#define SITE __attribute__((noinline, noclone, noipa))
static long rollup(const char *form)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[200];
	long kib = -1;
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, form, &kib);
	if (f)
		fclose(f);
	return kib * 1024;
}
static long resident(void) { return rollup("Rss: %ld"); }
static long cpu_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
static long large_from(long least)
{
	long was, is = rollup("AnonHugePages: %ld"), first = cpu_ms(), begin;
	if (!getenv("PEM_PAGE_SIZE"))
		return is;
	do {
		was = is;
		begin = cpu_ms();
		do {
			for (int i = 0; i < 1000; i++) {
				void *volatile p = malloc(1);
				free(p);
			}
		} while (cpu_ms() - begin < 60);
		is = rollup("AnonHugePages: %ld");
	} while (is != was || (is < least && cpu_ms() - first < 5000));
	return is;
}
static long large(void) { return large_from(0); }
static int own(void *p) { return (size_t)p % 4096 == 0; }
SITE void *hot(size_t n) { void *p = malloc(n); KEEP; return p; }
SITE void *cold(size_t n) { void *p = malloc(n); KEEP; return p; }
"""


def need_large_pages():
    if SAN:
        skip("a sanitizer's runtime has an allocator of its own; run without SAN=1")
    need("objdump", "readelf")
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
            if "[never]" in file.read():
                skip("this kernel gives no large pages: /sys/kernel/mm/transparent_hugepage/enabled is never")
    except OSError:
        skip("this kernel has no transparent large pages")


def build_id(path):
    return re.search(r"Build ID: (\w{16})", run(["readelf", "-nW", path])[1])[1]


def calls(path, function, callee):
    "Keys of where calls of callee return to in a function."
    rc, out, err = run(["objdump", "-d", "--no-show-raw-insn", path])
    equal(rc, 0, "exit status of objdump, which said: " + err)
    inside, called, found = False, False, []
    for line in out.splitlines():
        head = re.match(r"[0-9a-f]+ <(.+)>:", line)
        if head:
            inside, called = head[1] == function, False
            continue
        code = re.match(r"\s*([0-9a-f]+):\s+(.*)", line)
        if code and called:
            found.append("%s+%s" % (build_id(path), code[1]))
        if code:
            called = inside and re.search(r"\b(call|bl)\b.*<%s(@plt)?>" % re.escape(callee), code[2])
    assert found, "no call of %s in %s" % (callee, function)
    return found


class Directives:
    def __init__(self, *sites, budget=1 << 40, head="pem-page-size 1\n", mode=0o600):
        self.folder = tmp()
        self.path = self.folder + "/directives"
        self.report_path = self.folder + "/report"
        with open(self.report_path, "w"):
            pass
        with open(self.path, "w") as file:
            file.write("%sbudget %d\nreport %s\nagent %d\n" % (head, budget, self.report_path, os.getpid()))
            for site in sites:
                size, least, key = site if isinstance(site, tuple) else (HUGE, 0, site)
                file.write("site\t%d\t%d\t%s\n" % (size, least, key))
        os.chmod(self.path, mode)

    def env(self):
        return {"LD_PRELOAD": LIBRARY, "PEM_PAGE_SIZE": self.path}

    def run(self, command, **more):
        rc, out, err = run(command, env=dict(self.env(), **more.pop("env", {})), **more)
        equal((rc, err), (0, ""), "exit status and standard error of %s, which said %s" % (command[0], out))
        return out

    def report(self):
        with open(self.report_path) as file:
            return [json.loads(line) for line in file]

    def all_lines(self):
        "Of sites, and errors."
        return [line for line in self.report() if "site" in line or "error" in line]

    def extents(self):
        "(start, end) of all extents, by number of the directive."
        found = {}
        for line in self.report():
            if "extent" in line:
                found.setdefault(line["extent"], set()).add((line["start"], line["end"]))
        return found

    def lines(self):
        "The last line of each process and site, in the order of these; of errors all."
        last = {}
        for i, line in enumerate(self.all_lines()):
            key = (line["pid"], line.get("site", i))
            last.pop(key, None)
            last[key] = line
        return list(last.values())

    def line(self):
        found = self.lines()
        equal(len(found), 1, "lines of the report: %s" % found)
        return found[0]


def program(source, flags=(), **more):
    need_large_pages()
    return compile_program(HEAD + source, flags=flags, **more)


def every_site(command):
    "Directives for up to 256 sites in the objects that a program consists of: calls of the malloc family."
    keys = []
    rc, out, err = run(["ldd", shutil.which(command)])
    for path in [shutil.which(command)] + re.findall(r"=> (/\S+)", out):
        text = run(["objdump", "-d", "--no-show-raw-insn", path], timeout=120)[1]
        name = build_id(os.path.realpath(path))
        found = re.findall(r"\bcall .*<(?:malloc|calloc|realloc|_Znwm)(?:@[^>]*)?>\n\s*([0-9a-f]+):", text)
        keys += ["heap %s+%s" % (name, offset) for offset in found]
    step = max(1, len(keys) // 256)
    return keys[::step][:256]


def same_output(command, **more):
    need_large_pages()
    need(command[0])
    alone = run(command, env={"LD_PRELOAD": None}, binary=True, **more)
    equal(alone[0], 0, "exit status of " + command[0])
    for sites in (["heap 0123456789abcdef+1"], every_site(command[0])):
        directives = Directives(*sites)
        equal(run(command, env=directives.env(), binary=True, **more), alone, "%s with %d sites" % (command[0], len(sites)))
    return directives.lines()
