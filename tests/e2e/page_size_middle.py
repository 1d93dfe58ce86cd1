#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
pages of 64 KiB: memory of listed sites has them, none of 2 MiB, and what programs do with memory goes on working

Not here: pages of 2 MiB (page_size_memory.py). Needs root, which switches these pages on for as long as each test runs.
"""
from page_sites import HEAD, MIB, MIDDLE, Directives, build_id, calls, middle_pages, need_large_pages
from preload import compile_program
from tap import equal, run_all, test

# there(): how many of the 16 small pages of a block of 64 KiB are resident. faults(): of the process.
MIDDLE_HEAD = HEAD + r"""
static int there(void *at)
{
	unsigned char pages[16];
	int i, n = 0;
	if (mincore((void *)((size_t)at & -65536), 65536, pages))
		return -1;
	for (i = 0; i < 16; i++)
		n += pages[i] & 1;
	return n;
}
static long faults(void) { struct rusage u; getrusage(RUSAGE_SELF, &u); return u.ru_minflt; }
static void check(int line, int what) { if (!what) { printf("line %d failed\n", line); exit(1); } }
#define CHECK(what) check(__LINE__, what)
SITE char *map(size_t n) { char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); KEEP; return p; }
"""


def program(source):
    need_large_pages()
    return compile_program(MIDDLE_HEAD + source)


def middle(path, key, value="madvise", output="done\n", budget=1 << 40):
    directives = Directives((MIDDLE, 0, key), budget=budget)
    with middle_pages(value):
        equal(directives.run([path]), output, "output")
    return directives.lines()


@test
def heap():
    "a block of a listed site has pages of 64 KiB and none of 2 MiB: one touch brings 16 small pages"
    path = program(r"""
int main(void)
{
	char *p = hot(32 << 20);
	long before;
	p[(17 << 20) + 5] = 1;
	CHECK(there(p + (17 << 20)) == 16 && !there(p + (17 << 20) + 65536));
	before = faults();
	memset(p, 1, 32 << 20);
	/* 31 of 32 blocks of each chunk by one fault, the last by one for each small page. */
	CHECK(faults() - before < 16 * (31 + 16) + 100);
	CHECK(!large());
	puts("done");
	return 0;
}""")
    line = middle(path, "heap " + calls(path, "hot", "malloc")[0])[0]
    equal((line["page_size"], line["large_bytes"], line["refused_bytes"], line["reason"]),
          (MIDDLE, 16 * (2 * MIB - 4096), 0, ""), "report")


@test
def given_back():
    "memory that is freed goes back to the kernel, and comes again as zeros in such pages"
    path = program(r"""
int main(void)
{
	char *p, *q;
	int turn;
	for (turn = 0; turn < 3; turn++) {
		p = hot(64 << 20);
		memset(p, 1, 64 << 20);
		free(p);
		q = calloc(1, 1);
		free(q);
	}
	p = hot(64 << 20);
	p[60 << 20] = 1;
	CHECK(there(p + (60 << 20)) == 16);
	puts("done");
	return 0;
}""")
    line = middle(path, "heap " + calls(path, "hot", "malloc")[0], budget=64 * MIB)[0]
    equal((line["refused_bytes"], line["reason"]), (0, ""), "report")


@test
def budget():
    "no more than the budget is advised"
    path = program(r"""
int main(void)
{
	char *p = hot(32 << 20);
	memset(p, 1, 32 << 20);
	puts("done");
	return 0;
}""")
    line = middle(path, "heap " + calls(path, "hot", "malloc")[0], budget=8 * MIB)[0]
    equal((line["large_bytes"], line["refused_bytes"], line["reason"]), (4 * (2 * MIB - 4096), 24 * MIB, "budget"), "report")


@test
def mapped():
    "a mapping of a listed site may grow, shrink, move, be unmapped and replaced in parts, as without such pages"
    path = program(r"""
int main(void)
{
	char *p = map((8 << 20) + 12288), *q;
	CHECK((size_t)p % (2 << 20) == 0);
	p[3 << 20] = 1;
	CHECK(there(p + (3 << 20)) == 16);
	memset(p, 7, (8 << 20) + 12288);
	q = map(4096); /* in the way, perhaps */
	p = mremap(p, (8 << 20) + 12288, 64 << 20, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED && p[0] == 7 && p[(8 << 20) + 12287] == 7 && !p[(8 << 20) + 12288]);
	p[40 << 20] = 1;
	CHECK(there(p + (40 << 20)) == 16);
	p = mremap(p, 64 << 20, 6 << 20, 0);
	CHECK(p != MAP_FAILED && p[(6 << 20) - 1] == 7);
	CHECK(!mprotect(p + (1 << 20), 1 << 20, PROT_READ) && !mprotect(p + (1 << 20), 1 << 20, PROT_READ | PROT_WRITE));
	CHECK(!munmap(p + (2 << 20), 2 << 20));
	CHECK(p[(4 << 20) + 1] == 7 && p[(2 << 20) - 1] == 7);
	p = mremap(p, 2 << 20, 12 << 20, MREMAP_MAYMOVE);
	CHECK(p != MAP_FAILED && p[(2 << 20) - 1] == 7 && !p[2 << 20]);
	CHECK(mmap(p + 65536, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + 65536);
	CHECK(!p[65536] && p[65535] == 7);
	p[65536] = 1;
	CHECK(p[65536] == 1 && !large());
	puts("done");
	return q == MAP_FAILED;
}""")
    key = "map " + calls(path, "map", "mmap")[0]
    line = middle(path, key)[0]
    equal((line["refused_bytes"], line["reason"]), (0, ""), "report")


@test
def data():
    "static data, from the file and zeros, have such pages and their bytes"
    path = program(r"""
static int filled[2 << 20] = {1, 2, 3};
static char zeros[9 << 20];
int main(void)
{
	size_t chunk = ((size_t)filled + (2 << 20)) & -(size_t)(2 << 20);
	char *zero = (char *)(((size_t)zeros + (3 << 20)) & -(size_t)65536);
	CHECK(filled[0] == 1 && filled[2] == 3 && !filled[(2 << 20) - 1]);
	CHECK(there((void *)chunk) == 16);
	*zero = 1;
	CHECK(there(zero) == 16 && !zeros[(9 << 20) - 1]);
	CHECK(!large());
	puts("done");
	return 0;
}""")
    line = middle(path, "data " + build_id(path))[0]
    equal((line["refused_bytes"], line["reason"]), (0, ""), "report")


@test
def forks():
    "after fork both write what they like, and the child has no such page of its own"
    path = program(r"""
int main(void)
{
	char *p = hot(16 << 20), *m = map(4 << 20);
	int status, i;
	pid_t child;
	memset(p, 1, 16 << 20);
	memset(m, 1, 4 << 20);
	child = fork();
	for (i = 0; i < 16 << 20; i += 4096)
		p[i] = m[i & ((4 << 20) - 1)] = child ? 2 : 3;
	for (i = 0; i < 16 << 20; i += 4096)
		CHECK(p[i] == (child ? 2 : 3) && p[i + 1] == 1);
	if (!child) {
		free(p);
		p = map(8 << 20);
		p[0] = 1;
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	free(p);
	puts("done");
	return 0;
}""")
    lines = middle(path, "heap " + calls(path, "hot", "malloc")[0])
    equal([line["reason"] for line in lines], [""], "reasons of the report")


@test
def switched_off():
    "where root has switched these pages off, the program runs with small ones, and the report says why"
    path = program(r"""
int main(void)
{
	char *p = hot(8 << 20);
	p[5 << 20] = 1;
	CHECK(there(p + (5 << 20)) == 1 && !large());
	puts("done");
	return 0;
}""")
    line = middle(path, "heap " + calls(path, "hot", "malloc")[0], value="never")[0]
    equal((line["large_bytes"], line["refused_bytes"], line["reason"]), (0, 8 * MIB, "64 KiB"), "report")


run_all()
