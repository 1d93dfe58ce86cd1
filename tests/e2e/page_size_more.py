# SPDX-License-Identifier: MIT
"""page_size_more: pem page-size on programs that do to their memory, and to themselves, what few do"""
import os

from page_size import Home, chosen, shape
from preload import compile_program
from tap import PEM, equal, run, run_all, test

LONG_S = 60

HEAD = r"""
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#define MIB (1ul << 20)
extern char **environ;
static uint64_t update(uint64_t *table, uint64_t count, uint64_t times)
{
	uint64_t state = 1, sum = 0;

	while (times--) {
		state = state * 6364136223846793005 + 1442695040888963407;
		sum += table[(state >> 33) % count]++;
	}
	return sum;
}
"""


def program(source):
    return compile_program(HEAD + source)


def observed_alike(command):
    "The command's first run under the agent ends and says as alone. Returns the home of its database."
    home = Home()
    rc, truth, _ = run(command)
    equal((rc, truth != ""), (0, True), "alone")
    rc, out, err = home.agent(*command)
    equal((rc, out), (0, truth), err)
    assert "predicted gain" in err or "nothing to gain" in err, err
    return home


@test
def a_mapping_that_grows():
    "what mremap adds to a mapping, or moves, is its site's"
    path = program(r"""
int main(void)
{
	size_t bytes = MIB;
	uint64_t *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (; bytes < 32 * MIB; bytes *= 2) {
		table = mremap(table, bytes, 2 * bytes, MREMAP_MAYMOVE);
		/* The next one has to move. */
		if (bytes == 8 * MIB)
			mmap((char *)table + 2 * bytes, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	printf("%lu\n", update(table, bytes / 8, 2000000));
	return 0;
}
""")
    plan = Home().plan(path)
    site = plan["sites"][0]
    assert site["key"].startswith("map ") and site["page_size"] > 4096, plan["sites"]
    equal(site["bytes"], 32 << 20, "bytes")
    assert site["references"] > 0.9, plan["sites"]


@test
def a_table_that_grows_often():
    "a table that realloc moves many times needs large pages for what it has at last"
    path = program(r"""
int main(void)
{
	size_t bytes = MIB;
	uint64_t *table = malloc(bytes);

	for (; bytes < 64 * MIB; bytes += bytes / 4)
		table = realloc(table, bytes + bytes / 4);
	printf("%lu\n", update(table, bytes / 8, 2000000));
	return 0;
}
""")
    site = Home().plan(path)["sites"][0]
    assert site["key"].startswith("heap ") and 64 << 20 <= site["bytes"] <= 90 << 20, site


@test
def a_program_that_executes_itself():
    "a program that starts its own file by /proc/self/exe or its number, in its place or beside it, is the same when it is observed"
    path = program(r"""
int main(int argc, char **argv)
{
	char *beside[] = {argv[0], "beside", NULL}, number[40];
	int status;
	pid_t child;

	printf("%d %lu\n", argc, update(calloc(8, MIB), MIB, 100000));
	fflush(stdout);
	snprintf(number, sizeof(number), "/proc/%d/exe", (int)getpid());
	if (argc == 1)
		return execl("/proc/self/exe", argv[0], "again", "once", NULL);
	if (argc == 3)
		return execl(number, argv[0], "again", "and", "again", NULL);
	if (argc == 2)
		return 0;
	if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, beside, environ) || waitpid(child, &status, 0) != child)
		return 1;
	printf("%d %d\n", status, execv("/proc/self/exe/none", argv));
	return 0;
}
""")
    observed_alike([path])


@test
def a_deep_stack():
    "a program that uses 40 MiB of its stack is the same when it is observed, whoever has raised the limit"
    path = program(r"""
static __attribute__((noinline)) uint64_t deep(size_t bytes)
{
	uint64_t *table = alloca(bytes);

	memset(table, 0, bytes);
	return update(table, bytes / 8, 100000);
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	(void)argv;
	getrlimit(RLIMIT_STACK, &limit);
	limit.rlim_cur = 64 * MIB;
	if (argc > 1 && setrlimit(RLIMIT_STACK, &limit))
		return 1;
	printf("%lu\n", deep(40 * MIB));
	return 0;
}
""")
    home = observed_alike(["sh", "-c", "ulimit -S -s 100000; exec " + path])
    stack, = [site for site in home.show() if site["name"] == "stack"]
    assert 40 << 20 <= stack["bytes"] < 48 << 20, stack
    observed_alike([path, "raise"])


@test
def memory_that_cannot_be_served():
    "what the C library maps for itself, and mappings below 2 MiB, are hot but not chosen, with the reason"
    threads = program(r"""
static void *work(void *none)
{
	volatile char room[24 * MIB];

	memset((void *)room, 0, sizeof(room));
	printf("%lu\n", update((uint64_t *)room, sizeof(room) / 8, 2000000));
	return none;
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 32 * MIB);
	pthread_create(&thread, &attributes, work, NULL);
	return pthread_join(thread, NULL);
}
""")
    pieces = program(r"""
int main(void)
{
	uint64_t *tables[64], sum = 0;
	int i;

	for (i = 0; i < 64; i++)
		tables[i] = mmap(NULL, MIB / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < 3000000; i++)
		sum += tables[rand() % 64][rand() % (MIB / 16)]++;
	printf("%lu\n", sum);
	return 0;
}
""")
    for path, reason in (threads, "C library"), (pieces, "smaller than a large page"):
        plan = Home().plan(path)
        equal(chosen(plan), [], "chosen")
        site, = [site for site in plan["sites"] if site["key"].startswith(("map ", "reserved ")) and site["bytes"] >= 16 << 20]
        assert reason in site["reason"] and site["saved_alone_ms"] > 0, site


@test
def a_script_without_an_interpreter():
    "a file that is no program is the shell's, in each run of an agent as without one"
    home = Home()
    script = home.folder + "/script"
    with open(script, "w") as out:
        out.write("printf '%s\\n' \"$0\" \"$@\"\nexit 3\n")
    os.chmod(script, 0o755)
    for turn in range(3):
        rc, out, err = home.agent(script, "a b", "")
        equal((rc, out), (3, script + "\na b\n\n"), "run %d, which said %s" % (turn, err))


@test
def files_that_may_not_grow():
    "under a limit for the size of files the command ends as alone, and no signal of the agent's own ends it"
    for limit in 8, 200:
        home = Home()
        for turn in range(2):
            rc, out, err = run(["sh", "-c", 'ulimit -f %d; exec "$@"' % limit, "sh", PEM, "page-size", "run", "--machine", home.machine,
                                "--", *shape("maps", 1)], env={"PEM_DB": home.folder + "/cpo.db", "TMPDIR": home.folder})
            equal((rc, out), (0, run(shape("maps", 1))[1]), err)
        profile = home.folder + "/profile"
        rc, out, err = run(["sh", "-c", 'ulimit -f %d; exec "$@"' % limit, "sh", PEM, "page-size", "profile", "-o", profile, "--",
                            *shape("maps", 1)])
        equal((rc, out), (0, run(shape("maps", 1))[1]), err)
        assert "can't write" in err, err


@test
def a_command_that_starts_valgrind():
    "a child of an observed command may be Valgrind itself"
    words = ["sh", "-c", "valgrind -q --tool=none echo inside; echo outside"]
    equal(run(words)[1], "inside\noutside\n", "alone")
    observed_alike(words)


run_all()
