#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libpem-page-size.so and memory that others count on: what a program has with directives, and what it has alone

Each program prints its resident memory at points where its needs are known. With directives it may have a tenth more and
one large page for each site, whatever it touches and in whichever order it frees. No limit ends it that does not end it alone.
"""
import os

from page_sites import HUGE, MIB, Directives, calls, program
from tap import equal, run, run_all, skip, test

LONG_S = 9

# What the library itself takes: its code, its relocated data, and a table or two.
LIBRARY = 2 * MIB


def site(path, function="hot", callee="malloc"):
    return "heap " + calls(path, function, callee)[0]


def compare(path, arguments=(), key=None, sites=1, env=None):
    "Run a program alone and with directives: its figures, which are bytes at points, one a line."
    directives = Directives(key or site(path))
    command = [path, *arguments]
    alone = run(command, env=env)
    equal(alone[0], 0, "exit status alone, which printed " + alone[2])
    with_pages = directives.run(command, **({"env": env} if env else {}))
    alone, with_pages = ([int(word) for word in out.split()] for out in (alone[1], with_pages))
    equal(len(with_pages), len(alone), "figures")
    for number, (had, has) in enumerate(zip(alone, with_pages)):
        assert has <= 1.1 * had + sites * HUGE + LIBRARY, "point %d: %.1f MiB, alone %.1f MiB" % (number, has / MIB, had / MIB)
    return directives.line()


SPARSE = r"""
int main(int count, char **arguments)
{
	size_t n = 256 << 20, i;
	char *table = hot(n);
	if (count > 1) {
		FILE *file = fopen(arguments[1], "w");
		if (!file || fprintf(file, "%d", getpid()) < 0 || fclose(file))
			return 3;
	}
	for (i = 0; i < n; i += 65536)
		table[i] = 1;
	large();
	printf("%ld\n", resident());
	for (i = 0; i < n; i += 65536)
		if (table[i] != 1)
			return 4;
	return 0;
}"""


@test
def sparse():
    "a table that is touched in pieces has the pages that are touched"
    line = compare(program(SPARSE))
    equal((line["large_bytes"], line["reason"]), (0, ""), "large pages, and why")


@test
def filled_at_random():
    "a table that is filled in no order has at each moment what it has alone, and large pages in the end"
    line = compare(program(r"""
int main(void)
{
	size_t pages = 16384, i, at = 0;
	char *table = hot(pages * 4096);
	for (i = 0; i < pages; i++) {
		at = (at * 1664525 + 1013904223) % pages; /* each page once */
		table[at * 4096] = 1;
		if (i % 4096 == 100)
			large(), printf("%ld\n", resident());
	}
	large_from(56 << 20);
	printf("%ld\n", resident());
	return 0;
}"""))
    assert line["large_bytes"] >= 56 * MIB, line


# Blocks of a size, all used and then freed in an order: from the front, from the end, by turns, at random. Some stay.
FREES = r"""
static unsigned seed = 1;
static unsigned below(unsigned n) { seed = seed * 1664525 + 1013904223; return (unsigned)((unsigned long)seed * n >> 32); }
int main(int count, char **arguments)
{
	size_t size = atol(arguments[1]), n = (48 << 20) / size, i, k;
	const char *order = arguments[2];
	char **blocks = malloc(n * sizeof(*blocks)), *block;
	for (int turn = 0; turn < 2; turn++) { /* the second in memory that was used */
		for (i = 0; i < n; i++)
			memset(blocks[i] = hot(size), 1, size);
		if (!turn)
			large();
		printf("%ld\n", resident());
		for (i = 0; *order == 'r' && i < n; i++)
			k = below(n), block = blocks[i], blocks[i] = blocks[k], blocks[k] = block;
		for (i = 0; *order == 's' && i < n; i++) /* 15 of 16 */
			if (i % 16)
				free(blocks[i]), blocks[i] = NULL;
		for (i = 0; i < n; i++) {
			k = *order == 'l' ? n - 1 - i : i;
			if (blocks[k])
				free(blocks[k]);
			if (size >= 1 << 18 && i % (n / 4) == n / 8)
				printf("%ld\n", resident());
		}
		printf("%ld\n", resident());
	}
	return 0;
}"""


@test
def freed_in_every_order():
    "what is freed goes back, whichever part of a large page it is of"
    path = program(FREES)
    # The C library maps blocks of this size, and gives each back; of small ones, what is at the end of its heap.
    env = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    for size, orders in ((1 << 20, "flrs"), (300000, "r"), (5 << 20, "f"), (20000, "l"), (100, "l")):
        for order in orders:
            compare(path, [str(size), order], env=env)


@test
def given_back_in_part():
    "what a program gives back of its own block (MADV_DONTNEED) is gone, and a large page that it splits is not made again"
    compare(program(r"""
int main(void)
{
	size_t n = 32 << 20, i;
	char *block = hot(n + 4096), *table = (char *)(((size_t)block + 4095) & -4096ul);
	memset(table, 1, n);
	large();
	printf("%ld\n", resident());
	for (i = 0; i < n; i += 8192)
		if (madvise(table + i, 4096, MADV_DONTNEED))
			return 3;
	large();
	printf("%ld\n", resident());
	free(block);
	printf("%ld\n", resident());
	return 0;
}"""))


@test
def locked():
    "under mlockall(MCL_FUTURE) what is freed is gone, too"
    need_lock = program("int main(void) { return mlockall(MCL_CURRENT | MCL_FUTURE) != 0 || !hot(64 << 20); }")
    if run([need_lock])[0]:
        skip("64 MiB may not be locked here")
    compare(program(r"""
int main(void)
{
	char *table;
	mlockall(MCL_CURRENT | MCL_FUTURE);
	table = hot(32 << 20);
	memset(table, 1, 32 << 20);
	large();
	printf("%ld\n", resident());
	free(table);
	printf("%ld\n", resident());
	return 0;
}"""))


@test
def of_children():
    "a large page that parent and child share is not copied: together they have what they have alone"
    compare(program(r"""
static long private_bytes(void) { return rollup("Private_Dirty: %ld"); }
int main(void)
{
	size_t n = 32 << 20, i;
	char *table = hot(n), byte;
	int up[2], down[2];
	long child;
	memset(table, 1, n);
	large();
	pipe(up), pipe(down);
	if (!fork()) {
		for (i = 0; i < n; i += 1 << 18)
			table[i] = 2;
		large();
		child = private_bytes();
		write(up[1], &child, sizeof(child));
		close(down[1]);
		read(down[0], &byte, 1);
		_exit(0);
	}
	read(up[0], &child, sizeof(child));
	for (i = 0; i < n; i += 1 << 17)
		table[i] = 3;
	large();
	printf("%ld\n%ld\n", child, private_bytes());
	close(down[1]);
	wait(NULL);
	return 0;
}"""))


# --- limits ---


GROWS = r"""
/* A buffer grows until it is as large as most of the limit; alone, it is moved, not copied. */
SITE char *grow(char *p, size_t n) { p = realloc(p, n); KEEP; return p; }
int main(int count, char **arguments)
{
	struct rlimit limit = {160 << 20, 160 << 20};
	char *p = NULL, *other[16];
	size_t n, had = 0;
	int looked = 0;
	if (setrlimit(atoi(arguments[1]), &limit))
		return 3;
	for (n = 1 << 20; n <= 96 << 20; n += n / 8) {
		p = grow(p, n);
		if (!p)
			return 4;
		memset(p + had, 1, n - had);
		had = n;
		if (n > 40 << 20 && !looked++)
			large();
		other[0] = cold(300000); /* in the way of growing where it is */
		if (!other[0])
			return 5;
		other[0][0] = 1;
	}
	free(p);
	for (n = 0; n < 12; n++) { /* what was freed is for others */
		other[n] = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (other[n] == MAP_FAILED)
			return 6;
	}
	puts("done");
	return 0;
}"""


@test
def limited_addresses():
    "under RLIMIT_AS and RLIMIT_DATA a program gets what it gets alone: a buffer that grows, and what it has freed"
    import resource
    path = program(GROWS)
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        equal(run([path, str(limit)])[:2], (0, "done\n"), "alone, limit %d" % limit)
        equal(Directives(site(path, "grow", "realloc")).run([path, str(limit)]), "done\n", "limit %d" % limit)


MAPS = r"""
SITE char *map(size_t n, int flags)
{
	char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	KEEP;
	return p;
}
static long status(const char *name)
{
	char line[200];
	FILE *file = fopen("/proc/self/status", "r");
	long kib = -1;
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kib = atol(line + strlen(name));
	fclose(file);
	return kib;
}
"""


@test
def grown_map_at_limit():
    "a mapping grows (mremap) as far as RLIMIT_AS lets it alone, if it has to move"
    path = program(MAPS + r"""
int main(void)
{
	char *table = map(32 << 20, 0);
	struct rlimit limit;
	if (table == MAP_FAILED)
		return 3;
	table[0] = 1;
	/* In the way, unless there is something already. */
	mmap(table + (32 << 20), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	limit.rlim_cur = limit.rlim_max = (status("VmSize:") << 10) + (33 << 20); /* for the moment that it is in both places */
	if (setrlimit(RLIMIT_AS, &limit))
		return 4;
	table = mremap(table, 32 << 20, 33 << 20, MREMAP_MAYMOVE);
	printf("%d\n", table != MAP_FAILED && table[0] == 1);
	return 0;
}""")
    equal(run([path])[:2], (0, "1\n"), "alone")
    equal(Directives("map " + calls(path, "map", "mmap")[0]).run([path]), "1\n", "with directives")


@test
def filled_map():
    "a mapping that is filled at once (MAP_POPULATE) never has more memory than its length"
    path = program(MAPS + r"""
int main(void)
{
	char *table = map(64 << 20, MAP_POPULATE);
	printf("%d\n", table != MAP_FAILED && status("VmHWM:") - status("VmRSS:") < 1024);
	return 0;
}""")
    equal(run([path])[:2], (0, "1\n"), "alone")
    equal(Directives("map " + calls(path, "map", "mmap")[0]).run([path]), "1\n", "with directives")


def group_folder():
    "A control group below this process's own, and the names of its limit and counter."
    with open("/proc/self/cgroup") as file:
        groups = dict((line.split(":")[1], line.strip().split(":")[2]) for line in file)
    folder, limit = "/sys/fs/cgroup" + groups.get("", ""), "memory.max"
    if "memory" in groups:
        folder, limit = "/sys/fs/cgroup/memory" + groups["memory"], "memory.limit_in_bytes"
    folder += "/pem-test-%d" % os.getpid()
    try:
        os.mkdir(folder)
    except OSError:
        skip("no control group can be made here: run as root, with the controller of memory")
    return folder, limit


def need_limit(folder, limit, limit_bytes):
    try:
        with open(folder + "/" + limit, "w") as file:
            file.write(str(limit_bytes))
    except OSError:
        skip("this control group has no controller of memory")


def in_group(path, limit_bytes, key=None, several=False):
    "Run a program alone and with directives in a control group with a limit: the line of the report, unless there are several."
    folder, limit = group_folder()
    try:
        need_limit(folder, limit, limit_bytes)
        equal(run([path, folder + "/cgroup.procs"])[0], 0, "alone")
        directives = Directives(key or site(path))
        directives.run([path, folder + "/cgroup.procs"])
        return None if several else directives.line()
    finally:
        os.rmdir(folder)


@test
def limited_by_control_group():
    "a program that has little in much address space lives under a limit that it keeps alone"
    path = program(SPARSE)
    for mib in (24, 60, 120):
        equal(in_group(path, mib * MIB)["large_bytes"], 0, "large pages under %d MiB" % mib)


FULL = r"""
int main(int count, char **arguments)
{
	FILE *file = fopen(arguments[1], "w");
	char *a, *b;
	size_t n = 64 << 20;
	if (!file || fprintf(file, "%d", getpid()) < 0 || fclose(file))
		return 3;
	a = hot(n);
	memset(a, 1, n);
	large();
	b = cold(24 << 20);
	memset(b, 1, 24 << 20); /* little is left then */
	free(a);
	a = cold(48 << 20);
	memset(a, 1, 48 << 20);
	return 0;
}"""


@test
def full_control_group():
    "a program that fills most of its control group has large pages while there is space, and lives"
    assert in_group(program(FULL.replace("large()", "large_from(32 << 20)")), 104 * MIB)["large_bytes"] >= 32 * MIB


@test
def small_control_group():
    "no large page is made where the control group has no space for one"
    path = program(FULL.replace("64 << 20", "30 << 20").replace("24 << 20", "1 << 20").replace("48 << 20", "20 << 20").replace(
        "large();", "for (int i = 0; i < 10; i++) large();"))
    line = in_group(path, 33 * MIB)
    equal((line["large_bytes"] <= 26 * MIB, line["reason"]), (True, "limit of the control group"), "large pages, and why: %s" % line)


@test
def in_turns():
    "while one program makes a large page under a limit, no other does"
    import fcntl
    folder, limit = group_folder()
    path = program(FULL)
    held = []
    try:
        need_limit(folder, limit, 104 * MIB)
        group = folder
        while group != "/sys/fs": # the program takes its turn in the topmost of these that has a limit
            held.append(os.open(group, os.O_RDONLY))
            fcntl.flock(held[-1], fcntl.LOCK_EX)
            group = os.path.dirname(group)
        directives = Directives(site(path))
        directives.run([path, folder + "/cgroup.procs"])
        line = directives.line()
        equal((line["large_bytes"], line["reason"]), (0, "turn"), "large pages, and why")
    finally:
        for fd in held:
            os.close(fd)
        os.rmdir(folder)


@test
def several_in_a_control_group():
    "several processes that fill their control group have large pages, and live"
    path = program(r"""
int main(int count, char **arguments)
{
	FILE *file = fopen(arguments[1], "w");
	char byte, *a;
	int ready[2], done[2], status, i;
	if (!file || fprintf(file, "%d", getpid()) < 0 || fclose(file) || pipe(ready) || pipe(done))
		return 3;
	free(hot(1));
	for (i = 0; i < 6; i++) {
		if (fork())
			continue;
		close(done[1]);
		a = hot(10 << 20);
		memset(a, 1, 10 << 20);
		large();
		memset(cold(5 << 20), 1, 5 << 20);
		write(ready[1], "", 1);
		read(done[0], &byte, 1);
		_exit(a[12345] != 1);
	}
	close(ready[1]);
	for (i = 0; i < 6 && read(ready[0], &byte, 1) == 1; i++)
		;
	close(done[1]);
	while (wait(&status) > 0)
		if (status)
			return 4;
	return i != 6;
}""")
    in_group(path, 98 * MIB, several=True)


run_all()
