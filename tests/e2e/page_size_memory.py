#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libpem-page-size.so: how many large pages there are, of which kinds of memory, and whose they are

Not here: which requests are served (page_size_apply.py).
"""
import os

from page_sites import HUGE, MIB, Directives, build_id, calls, program
from tap import equal, need, run, run_all, skip, test

LONG_S = 8


@test
def small_pages():
    "a site of page size 4096 has no large pages"
    path = program("int main(void) { memset(hot(32 << 20), 1, 32 << 20); printf(\"%ld\\n\", large()); return 0; }")
    directives = Directives((4096, 0, "heap " + calls(path, "hot", "malloc")[0]))
    equal(directives.run([path]), "0\n", "large pages")
    equal((directives.line()["bytes"], directives.line()["large_bytes"]), (32 * MIB, 0), "report")


@test
def refused_by_kernel():
    "a chunk that the kernel does not make large (MADV_NOHUGEPAGE) keeps no other from it, and is not counted"
    path = program(r"""
int main(void)
{
	char *table = hot(32 << 20), *first = (char *)(((size_t)table + (2 << 20) - 1) & -(size_t)(2 << 20));
	if (madvise(first, 2 << 20, MADV_NOHUGEPAGE))
		return 3;
	memset(table, 1, 32 << 20);
	printf("%ld\n", large_from(28 << 20));
	return 0;
}""")
    directives = Directives("heap " + calls(path, "hot", "malloc")[0])
    found = int(directives.run([path]))
    equal(found in (28 * MIB, 30 * MIB), True, "all but one or two are large, %d bytes" % found)
    equal((directives.line()["large_bytes"], directives.line()["reason"]), (found, "kernel"), "report")


@test
def budget():
    "all large pages together stay within the budget, with forked and with started processes"
    path = program(r"""
static void fill(void) { memset(hot(16 << 20), 1, 16 << 20); }
int main(int count, char **arguments)
{
	int ready[2], done[2], i;
	long all, more, least = atol(getenv("LEAST")); /* of each process, if the budget has it */
	char word[40] = "";
	if (count > 1) { /* says what it has and waits */
		fill();
		printf("%ld ", large_from(least)), fflush(stdout);
		read(atoi(arguments[1]), word, 1);
		return 0;
	}
	fill();
	large_from(least); /* what children share is not made large */
	pipe(ready), pipe(done);
	for (i = 0; i < 4; i++) {
		if (!fork()) {
			if (i % 2) {
				close(1), dup(ready[1]), close(done[1]);
				sprintf(word, "%d", done[0]);
				execl("/proc/self/exe", "self", word, NULL);
			}
			all = large();
			fill();
			dprintf(ready[1], "%ld ", large_from(all + least) - all);
			close(done[1]);
			read(done[0], word, 1);
			_exit(0);
		}
	}
	all = large();
	for (i = 0; i < 4; i++) {
		char number[40];
		int n = 0;
		while (read(ready[0], number + n, 1) == 1 && number[n] != ' ')
			n++;
		more = atol(number);
		all += more;
	}
	printf("%ld\n", all);
	close(done[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}""")
    key = "heap " + calls(path, "hot", "malloc")[0]
    for mib, wanted in ((40, 40), (0, 0), (200, 80)):
        directives = Directives(key, budget=mib * MIB)
        out = int(directives.run([path], env={"LEAST": 16 * MIB if mib > 80 else 0}))
        assert wanted * MIB - 2 * HUGE < out <= mib * MIB, "%d MiB of %d" % (out // MIB, mib)
        if mib < 80:
            equal({line["reason"] for line in directives.lines() if line["refused_bytes"]}, {"budget"}, "reasons")


@test
def budget_of_the_dead():
    "what a process had is had by the next, however it ended"
    path = program("int main(void) { memset(hot(16 << 20), 1, 16 << 20); printf(\"%ld\\n\", large_from(16 << 20)); fflush(stdout); return raise(9); }",
                   flags=["-include", "signal.h"])
    directives = Directives("heap " + calls(path, "hot", "malloc")[0], budget=20 * MIB)
    for _ in range(3):
        equal(run([path], env=directives.env())[:2], (-9, "%d\n" % (16 * MIB)), "exit status and large pages")


@test
def of_the_killed():
    "a process that a signal kills has told what it was granted and refused, in some lines"
    path = program("""
static char zeroed[8 << 20];
int main(int count, char **arguments)
{
	memset(zeroed, 1, sizeof(zeroed));
	for (int i = 0; i < 24; i++)
		memset(hot(2 << 20), 1, 2 << 20);
	large_from(40 << 20);
	kill(getpid(), atoi(arguments[1]));
	pause();
	return 0;
}""", flags=["-include", "signal.h"])
    for number in (9, 15):
        directives = Directives("heap " + calls(path, "hot", "malloc")[0], "data " + build_id(path), budget=40 * MIB)
        equal(run([path, str(number)], env=directives.env())[0], -number, "exit status")
        lines = {line["site"].split()[0]: line for line in directives.lines()}
        assert not lines["heap"]["ended"] and 16 * MIB <= lines["heap"]["granted_bytes"] <= 40 * MIB, lines
        equal((lines["heap"]["reason"], lines["heap"]["refused_bytes"] > 0), ("budget", True), "what was refused")
        assert 8 * MIB <= lines["heap"]["large_bytes"] <= 40 * MIB, lines
        assert 4 * MIB <= lines["data"]["granted_bytes"] <= 8 * MIB, lines
        assert 3 <= len(directives.all_lines()) <= 12, directives.all_lines()


@test
def written_after_fork():
    "what parent and child write after a fork stays within the budget"
    path = program(r"""
int main(void)
{
	size_t n = 32 << 20;
	char *a = hot(n), byte;
	int pipes[2], done[2];
	long mine;
	memset(a, 1, n / 2);
	large();
	pipe(pipes), pipe(done);
	if (!fork()) {
		memset(a, 2, n);
		mine = large();
		for (size_t i = 0; i < n; i++)
			if (a[i] != 2)
				mine = 1l << 40;
		close(done[1]);
		write(pipes[1], &mine, sizeof(mine));
		read(done[0], &byte, 1);
		_exit(0);
	}
	memset(a, 3, n);
	read(pipes[0], &mine, sizeof(mine));
	for (size_t i = 0; i < n; i++)
		if (a[i] != 3)
			return 1;
	printf("%ld\n", mine + large());
	close(done[1]);
	wait(NULL);
	return 0;
}""")
    directives = Directives("heap " + calls(path, "hot", "malloc")[0], budget=32 * MIB)
    assert int(directives.run([path])) <= 32 * MIB


@test
def given_back():
    "what a site frees for good another may have"
    path = program(r"""
SITE void *second(size_t n) { void *p = malloc(n); KEEP; return p; }
int main(void)
{
	char *a = hot(64 << 20);
	memset(a, 1, 64 << 20);
	free(a);
	memset(second(40 << 20), 1, 40 << 20);
	printf("%ld\n", large_from(30 << 20));
	return 0;
}""")
    directives = Directives(*["heap " + calls(path, name, "malloc")[0] for name in ("hot", "second")], budget=64 * MIB)
    out = int(directives.run([path]))
    assert 30 * MIB <= out <= 64 * MIB, out


@test
def given_back_by_advice():
    "large pages whose memory the program gives back where it is (MADV_DONTNEED) are another site's"
    path = program(r"""
SITE void *second(size_t n) { void *p = malloc(n); KEEP; return p; }
int main(void)
{
	char *a = hot(64 << 20);
	memset(a, 1, 64 << 20);
	large_from(60 << 20);
	if (madvise(a, 64 << 20, MADV_DONTNEED))
		return 3;
	memset(second(40 << 20), 1, 40 << 20);
	printf("%ld\n", large_from(30 << 20));
	a[0] = 1;
	free(a);
	return 0;
}""")
    directives = Directives(*["heap " + calls(path, name, "malloc")[0] for name in ("hot", "second")], budget=64 * MIB)
    out = int(directives.run([path]))
    assert 30 * MIB <= out <= 64 * MIB, out


@test
def given_back_in_part():
    "who gives some of its large pages back has the others still, and the budget holds"
    path = program(r"""
SITE void *map(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	KEEP;
	return p;
}
int main(void)
{
	size_t m = 1 << 20;
	memset(map(12 * m), 1, 12 * m);
	for (int i = 0; i < 5; i++)
		munmap(map(8 * m), 8 * m);
	memset(map(40 * m), 1, 40 * m);
	printf("%ld\n", large_from(24 * m) / m);
	return 0;
}""")
    directives = Directives("map " + calls(path, "map", "mmap")[0], budget=24 * MIB)
    equal(directives.run([path]), "24\n", "large pages in MiB")


@test
def mapped():
    "a listed site's mappings have large pages when they are made, when they grow, and none is counted that is gone"
    path = program(r"""
SITE void *map(size_t n, int more)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
	KEEP;
	return p;
}
static void check(int what) { if (!what) abort(); }
int main(void)
{
	size_t m = 1 << 20;
	char *p, *wall;
	errno = 5;
	for (int i = 0; i < 100; i++) { /* 10 of them are within the budget, 100 are not */
		p = map(6 * m, 0);
		memset(p, 1, 6 * m);
		check(!munmap(p, 6 * m) && errno == 5);
	}
	p = map(7 * m, MAP_POPULATE);
	printf("%d %ld ", own((char *)((size_t)p % (2 << 20))), large_from(6 * m) / m);
	memset(p, 1, 7 * m);
	wall = mmap(p + 7 * m, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	p = mremap(p, 7 * m, 20 * m, MREMAP_MAYMOVE);
	check(p != MAP_FAILED && p[7 * m - 1] == 1 && p[7 * m] == 0 && errno == 5);
	memset(p, 2, 20 * m);
	printf("%d %ld ", (int)((size_t)p % (2 << 20)), large_from(20 * m) / m);
	check(!munmap(p + 4 * m, 4 * m));
	memset(p, 3, 4 * m), memset(p + 8 * m, 3, 12 * m);
	check(p[4 * m - 1] == 3 && p[20 * m - 1] == 3);
	check(!munmap(p, 20 * m));
	p = map(60 * m, 0);
	memset(p, 1, 60 * m);
	printf("%ld\n", large_from(34 * m) / m);
	p = mremap(p, 60 * m, 64 * m, MREMAP_MAYMOVE); /* with large pages in a part only, it is one mapping still */
	check(p != MAP_FAILED && p[60 * m - 1] == 1);
	check(mremap(p, 64 * m, 4 * m, 0) == p);
	check(map(-1ul << 40, 0) == MAP_FAILED && errno == ENOMEM);
	check(map(100, 0) != MAP_FAILED);
	return 0;
}""")
    directives = Directives("map " + calls(path, "map", "mmap")[0], budget=48 * MIB)
    first, large, second, grown, last = directives.run([path]).split()
    equal((first, large, second, grown), ("1", "6", "0", "20"), "places, and large pages in MiB")
    assert 34 <= int(last) <= 48, last
    line = directives.line()
    equal((line["requests"], line["bytes"]), (102, 64 * MIB), "report")
    # Pages that the last look came too early for were never asked for.
    assert line["reason"] == "budget" or int(last) < 48, line


@test
def committed():
    "memory that a listed site commits in a reservation has large pages where it is, in pieces too, and gives them back"
    path = program(r"""
static char *room;
static size_t m = 1 << 20;
SITE void commit(size_t at, size_t n)
{
	if (mmap(room + at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != room + at)
		abort();
	KEEP;
}
SITE void other(size_t at, size_t n, int protection)
{
	if (mmap(room + at, n, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != room + at)
		abort();
	KEEP;
}
static void say(long least) { printf("%ld ", large_from(least) / m); }
int main(void)
{
	size_t huge = 2 << 20;
	room = mmap(NULL, 256 * m, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	room = (char *)(((size_t)room + huge - 1) / huge * huge);
	commit(0, m); /* no large page fits */
	memset(room, 1, m);
	say(0);
	errno = 5;
	/* Pieces that end in the middle of a large page: where the next begins, they are one. */
	for (int i = 0; i < 4; i++) {
		commit(4 * m + i * (3 * m + 4096), 3 * m + 4096);
		memset(room + 4 * m + i * (3 * m + 4096), i, 3 * m + 4096);
	}
	for (int i = 0; i < 4; i++)
		if (room[4 * m + i * (3 * m + 4096)] != i || room[4 * m + (i + 1) * (3 * m + 4096) - 1] != i)
			abort();
	if (errno != 5)
		abort();
	say(12 * m);
	for (int i = 0; i < 50; i++) { /* each time it is given back, so that the budget lasts */
		commit(32 * m, 8 * m);
		memset(room + 32 * m, 1, 8 * m);
		if (i % 2)
			other(32 * m, 8 * m, PROT_NONE);
	}
	say(12 * m);
	other(100 * m, 8 * m, PROT_READ | PROT_WRITE); /* nobody's site */
	madvise(room + 100 * m, 8 * m, MADV_NOHUGEPAGE);
	memset(room + 100 * m, 1, 8 * m);
	say(12 * m);
	commit(64 * m, 40 * m);
	memset(room + 64 * m, 1, 40 * m);
	say(24 * m);
	if (mprotect(room + 64 * m, 8 * m, PROT_READ) || munmap(room + 64 * m, 40 * m) || munmap(room, 60 * m))
		abort();
	say(0);
	puts("");
	return 0;
}""")
    directives = Directives("map " + calls(path, "commit", "mmap")[0], budget=24 * MIB)
    equal(directives.run([path]).split(), ["0", "12", "12", "12", "24", "0"], "large pages in MiB")
    line = directives.line()
    equal((line["requests"], line["refused_bytes"], line["reason"]), (55, 28 * MIB, "budget"), "report")


@test
def data():
    "zeroed data of an object have large pages, and all data their values"
    path = program(r"""
static char zeroed[16 << 20];
char filled[16 << 20] = {1, 2, 3};
char *pointer = &filled[5 << 20];
int main(void)
{
	zeroed[0] = 4;
	if (filled[2] != 3 || pointer != &filled[5 << 20])
		return 1;
	for (size_t i = 3; i < sizeof(filled); i++)
		if (filled[i] || (i < sizeof(zeroed) && zeroed[i]))
			return 2;
	memset(zeroed, 1, sizeof(zeroed)), memset(filled, 1, sizeof(filled));
	if (!fork()) {
		memset(zeroed, 2, sizeof(zeroed));
		_exit(0);
	}
	wait(NULL);
	printf("%ld\n", large_from(atol(getenv("LEAST"))) >> 20);
	return zeroed[77777] != 1;
}""")
    key = "data " + build_id(path)
    directives = Directives(key)
    out = int(directives.run([path], env={"LEAST": 12 * MIB}))
    assert 12 <= out <= 16, "%d MiB" % out
    equal(directives.lines()[-1]["site"], key, "report")
    assert directives.lines()[-1]["large_bytes"] >= 12 * MIB, directives.lines()
    assert int(Directives(key, budget=8 * MIB).run([path], env={"LEAST": 0})) <= 8, "budget"
    small = program("int main(void) { puts(\"small\"); return 0; }")
    equal(Directives("data " + build_id(small)).run([small]), "small\n", "an object with little data")


@test
def stack():
    "the main thread's stack has large pages below where it begins"
    path = program(r"""
SITE int deep(int n) { volatile char room[100000]; memset((char *)room, n, sizeof(room)); return n ? deep(n - 1) + room[5] : 0; }
int main(void) { int sum = deep(60); printf("%ld %d\n", large_from(2 << 20) >> 20, sum); return 0; }""")
    directives = Directives("stack")
    large, total = directives.run([path]).split()
    equal(total, str(sum(range(61))), "what the program computes")
    assert int(large) >= 2, large
    assert directives.line()["large_bytes"] >= 2 * MIB, directives.lines()
    rc, _, err = run(["sh", "-c", "ulimit -s 6400; exec " + path], env=directives.env())
    equal((rc, err), (0, ""), "exit status with a small stack")


@test
def little_address_space():
    "a program whose address space is limited gets as much memory as without the library"
    path = program(r"""
int main(void)
{
	struct rlimit limit = {256 << 20, 256 << 20};
	int n = 0;
	free(hot(1 << 20));
	setrlimit(RLIMIT_AS, &limit);
	while (hot(1 << 20))
		n++;
	printf("%d\n", n > 200);
	return 0;
}""")
    directives = Directives("heap " + calls(path, "hot", "malloc")[0])
    equal(directives.run([path]), "1\n", "more than 200 MiB")


@test
def idle_end():
    "a program under directives that never come up reads nothing when it ends, since smaps takes long to read"
    need("strace")
    path = program("int main(void) { free(cold(100000)); return 0; }")
    directives = Directives("heap " + calls(path, "hot", "malloc")[0])
    trace = directives.folder + "/trace"
    directives.run(["strace", "-f", "-o", trace, path])
    with open(trace) as file:
        text = file.read()
    assert directives.path in text, "the library is not there"
    assert "smaps" not in text and directives.report_path not in text, text[-2000:]


@test
def of_a_child():
    "a forked child reports what it asked for itself, and not what it has of its parent"
    path = program(r"""
SITE void *second(size_t n) { void *p = malloc(n); KEEP; return p; }
int main(void)
{
	memset(hot(32 << 20), 1, 32 << 20);
	large_from(32 << 20);
	for (int i = 0; i < 2; i++) {
		if (!fork()) {
			if (i)
				memset(hot(6 << 20), 1, 6 << 20);
			large_from((i ? 38 : 32) << 20);
			exit(0);
		}
		wait(NULL);
	}
	return 0;
}""")
    directives = Directives(*["heap " + calls(path, name, "malloc")[0] for name in ("hot", "second")])
    directives.run([path])
    equal([(line["requests"], line["large_bytes"]) for line in directives.lines()], [(1, 6 * MIB), (1, 32 * MIB)],
          "requests and large pages of the second child and of the parent")


@test
def idle():
    "a program under directives that never come up has at most 2 MiB more memory"
    path = program(r"""
int main(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[200];
	long kib;
	for (int i = 0; i < 100000; i++)
		free(cold(i % 1000));
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Pss: %ld", &kib) == 1)
			printf("%ld\n", kib);
	return 0;
}""")
    sites = ["heap 0123456789abcdef+%x" % i for i in range(256)]
    more = int(Directives(*sites).run([path])) - int(run([path])[1])
    assert more < 2048, "%d KiB" % more


run_all()
