#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libpem-page-size.so: requests of listed sites are served, everything else is as it was

Not here: random requests to one arena (tests/unit/page_size_arena.c); how many large pages there are (page_size_memory.py); real
programs (page_size_programs.py).
"""
import os
import re
import shutil

from page_sites import HEAD, HUGE, LIBRARY, MIB, Directives, build_id, calls, need_large_pages, program
from preload import compile_program
from tap import equal, need, run, run_all, skip, test


@test
def listed_site():
    "a listed site has large pages, and the report says so"
    path = program(r"""
int main(void)
{
	char *a = hot(32 << 20), *b = cold(32 << 20);
	memset(a, 1, 32 << 20);
	printf("%ld %d %d\n", large_from(32 << 20), (int)((size_t)a % (2 << 20)), own(b));
	return 0;
}""")
    key = "heap " + calls(path, "hot", "malloc")[0]
    directives = Directives(key)
    equal(directives.run([path]), "%d 0 0\n" % (32 * MIB), "large pages")
    equal({k: v for k, v in directives.line().items() if k != "pid"},
          {"site": key, "page_size": HUGE, "requests": 1, "bytes": 32 * MIB, "granted_bytes": 32 * MIB, "large_bytes": 32 * MIB,
           "refused_bytes": 0, "reason": "", "ended": True}, "report")


PLACES = r"""
#include <sys/mman.h>
static char data[6 << 20], last[100];
SITE void *mapped(size_t n) { void *p = mmap(NULL, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); KEEP; return p; }
#define AT(p) printf("%ld\n", (long)(p))
int main(int argc, char **argv)
{
	char *a = mapped(4 << 20), *b = mapped(4 << 20), *moved;
	AT(hot(5 << 20)); AT(data + (3 << 20)); AT(last); AT(&argc); AT(a); AT(b);
	moved = mremap(b, 4 << 20, 32 << 20, MREMAP_MAYMOVE);
	AT(moved);
	munmap(a, 4 << 20);
	AT(cold(4096));
	fflush(stdout);
	if (argc > 1)
		execv(argv[1], (char *[]){argv[1], NULL});
	return 0;
}"""


@test
def places():
    "the report says where the data of each site are: blocks, static data, the stack, and mappings that are gone or have moved"
    path = program(PLACES)
    keys = ["heap " + calls(path, "hot", "malloc")[0], "data " + build_id(path), "map " + calls(path, "mapped", "mmap")[0], "stack"]
    directives = Directives(*keys)
    at = [int(line) for line in directives.run([path]).splitlines()]
    found = directives.extents()
    of = [{site for site, ranges in found.items() if any(start <= address < end for start, end in ranges)} for address in at]
    equal(of, [{0}, {1}, {1}, {3}, {2}, {2}, {2}, set()], "sites of a block, two of data, the stack, three mappings, another block")
    assert any(end - start < 40 * MIB for start, end in found[2]), found
    head, tail = directives.report()[0], directives.report()[-1]
    equal((head["command"], head["maps"], tail), (True, True, {"pid": head["pid"], "complete": True}), "first and last line")


@test
def who_says_where_its_data_are():
    "the command and what it executes, but none of its children, nor a program that another than the agent started"
    path = program(PLACES)
    keys = ["heap " + calls(path, "hot", "malloc")[0], "map " + calls(path, "mapped", "mmap")[0]]
    for command, count in ([path, path], 2), (["sh", "-c", "%s; :" % path], 1), (["setsid", "-w", "sh", "-c", "%s; :" % path], 1):
        directives = Directives(*keys)
        directives.run(command)
        lines = directives.report()
        equal(sum("command" in line for line in lines), count, "commands in %s" % lines)
        equal({line["pid"] for line in lines if "extent" in line}, {line["pid"] for line in lines if "command" in line}, "who says places")


@test
def a_confined_command_is_not_complete():
    "who gives up rights may map more than it can report: its mappings are not all known then"
    path = program(r"""
#include <sys/mman.h>
#include <sys/prctl.h>
SITE void *mapped(size_t n) { void *p = mmap(NULL, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); KEEP; return p; }
int main(void)
{
	mapped(4 << 20);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	mapped(4 << 20);
	return 0;
}""")
    directives = Directives("map " + calls(path, "mapped", "mmap")[0])
    directives.run([path])
    equal([line for line in directives.report() if "complete" in line], [], "lines")


@test
def sets_of_caches():
    "arrays of several sites begin at different large pages and, where that costs none, at different small ones"
    path = program(r"""
SITE void *third(size_t n) { void *p = malloc(n); KEEP; return p; }
SITE void *fourth(size_t n) { void *p = malloc(n); KEEP; return p; }
SITE void *fifth(size_t n) { void *p = malloc(n); KEEP; return p; }
#define SETS(p) printf("%d %d\n", (int)((size_t)(p) >> 21) % 128, (int)((size_t)(p) >> 12) % 32)
int main(void)
{
	SETS(hot(5 << 20)); SETS(cold(5 << 20)); SETS(third(5 << 20)); SETS(fourth((6 << 20) - 8192)); SETS(fifth(4 << 20));
	return 0;
}""")
    directives = Directives(*["heap " + calls(path, function, "malloc")[0] for function in ("hot", "cold", "third", "fourth", "fifth")])
    large, small = zip(*[[int(word) for word in line.split()] for line in directives.run([path]).splitlines()])
    equal(len(set(large)), 5, "large pages, modulo 128, of five arrays")
    equal(small, (0, 7, 14, 2, 0), "small pages, modulo 32: as the site has it, two that are free, none")


@test
def every_exec():
    "a program that executes another by any function of the family has reported before, and the other has its arguments"
    path = program(r"""
#include <fcntl.h>
int main(int argc, char **argv)
{
	char *command[] = {"sh", "-c", "echo $0 $X", "word", NULL}, *more[] = {"X=there", NULL};
	char way = argv[1][0], *a = hot(4 << 20);
	memset(a, 1, 4 << 20);
	setenv("X", "here", 1);
	switch (way) {
	case '0': execl("/bin/sh", "sh", "-c", "echo $0 $X", "word", NULL); break;
	case '1': execlp("sh", "sh", "-c", "echo $0 $X", "word", NULL); break;
	case '2': execle("/bin/sh", "sh", "-c", "echo $0 $X", "word", NULL, more); break;
	case '3': execv("/bin/sh", command); break;
	case '4': execvp("sh", command); break;
	case '5': execvpe("sh", command, more); break;
	case '6': execve("/bin/sh", command, more); break;
	case '7': fexecve(open("/bin/sh", O_RDONLY), command, more); break;
	}
	return argc;
}""")
    for way, word in enumerate("here here there here here there there there".split()):
        directives = Directives("heap " + calls(path, "hot", "malloc")[0])
        equal(directives.run([path, str(way)]), "word %s\n" % word, "what was executed by way %d" % way)
        equal([directives.line()[name] for name in ("bytes", "large_bytes")], [4 * MIB] * 2, "report before way %d" % way)


@test
def least_bytes():
    "requests below the least count of bytes go to the program's own allocator"
    path = program(r"""
int main(void)
{
	char *a = hot(100), *b = hot(4095), *c = hot(4096);
	memset(c, 1, 4096);
	a = realloc(a, 100000);
	free(a), free(b), free(c);
	return 0;
}""")
    directives = Directives((HUGE, 4096, "heap " + calls(path, "hot", "malloc")[0]))
    directives.run([path])
    equal((directives.line()["requests"], directives.line()["bytes"]), (1, 4096), "report")


@test
def all_functions():
    "all functions of the malloc family are served at their sites, with alignment, zeros and sizes as promised"
    path = program(r"""
static void check(int what) { if (!what) abort(); }
static char *all[16];
SITE void family(void)
{
	void *p = NULL;
	all[0] = malloc(100000); KEEP;
	all[1] = calloc(1000, 100); KEEP;
	all[2] = realloc(NULL, 100000); KEEP;
	all[3] = reallocarray(NULL, 1000, 100); KEEP;
	all[4] = memalign(65536, 100000); KEEP;
	check(!posix_memalign(&p, 4 << 20, 100000)); KEEP;
	all[5] = p;
	all[6] = aligned_alloc(256, 1024); KEEP;
	all[7] = valloc(100); KEEP;
	all[8] = pvalloc(100); KEEP;
	all[9] = malloc(0); KEEP;
}
int main(void)
{
	int i;
	for (int turn = 0; turn < 3; turn++) {
		errno = 77;
		family();
		check(errno == 77);
		for (i = 0; i < 100000; i++)
			check(!all[1][i]);
		check((size_t)all[4] % 65536 == 0 && (size_t)all[5] % (4 << 20) == 0 && (size_t)all[6] % 256 == 0);
		check((size_t)all[7] % 4096 == 0 && (size_t)all[8] % 4096 == 0 && all[9]);
		check(malloc_usable_size(all[8]) >= 4096);
		for (i = 0; i < 10; i++) {
			check(i > 8 || malloc_usable_size(all[i]) >= 100);
			memset(all[i], i + 1, malloc_usable_size(all[i]));
		}
		for (i = 0; i < 10; i++)
			check(all[i][malloc_usable_size(all[i]) - 1] == i + 1);
		check(!reallocarray(all[0], 1ul << 40, 1ul << 40) && errno == ENOMEM && all[0][0] == 1);
		check(!realloc(all[0], 0));
		for (i = 1; i < 10; i++)
			free(all[i]);
	}
	check(!calloc(1ul << 40, 1ul << 40) && errno == ENOMEM);
	errno = 0;
	check(!malloc(-100l) && errno == ENOMEM);
	puts("done");
	return 0;
}""")
    names = "malloc calloc realloc reallocarray memalign posix_memalign aligned_alloc valloc pvalloc".split()
    keys = ["heap " + key for name in names for key in calls(path, "family", name)]
    directives = Directives(*keys)
    equal(directives.run([path]), "done\n", "output")
    equal({line["site"] for line in directives.lines()}, set(keys), "sites that were served")


@test
def growth():
    "a buffer that grows under a directive moves into its arena once, keeps its bytes, and grows in place"
    path = program(r"""
SITE void *grow(void *p, size_t n) { p = realloc(p, n); KEEP; return p; }
int main(void)
{
	int moves = 0;
	char *p = cold(1000), *q;
	for (size_t i = 0; i < 1000; i++)
		p[i] = (char)i;
	for (size_t n = 2000; n < 64 << 20; n *= 2) {
		q = grow(p, n);
		moves += q != p && n > 130000;
		p = q;
	}
	for (size_t i = 0; i < 1000; i++)
		if (p[i] != (char)i)
			return 1;
	memset(p, 1, 60 << 20);
	printf("%d %d\n", moves, large_from(56 << 20) >= 56 << 20);
	p = realloc(p, 10);
	free(p);
	return 0;
}""")
    directives = Directives("heap " + calls(path, "grow", "realloc")[0])
    equal(directives.run([path]), "0 1\n", "moves, and whether pages are large")


@test
def wrappers():
    "behind a wrapper, sites are told apart by a second frame"
    path = program(r"""
SITE void *xmalloc(size_t n) { void *p = malloc(n); if (!p) abort(); KEEP; return p; }
SITE void *first(void) { void *p = xmalloc(16 << 20); KEEP; return p; }
SITE void *second(void) { void *p = xmalloc(16 << 20); KEEP; return p; }
int main(void)
{
	printf("%d %d\n", own(first()), own(second()));
	return 0;
}""")
    inner = calls(path, "xmalloc", "malloc")[0]
    for outer, wanted in (("first", "1 0\n"), ("second", "0 1\n")):
        equal(Directives("heap %s %s" % (inner, calls(path, outer, "xmalloc")[0])).run([path]), wanted, outer)
    equal(Directives("heap %s %s+1" % (inner, build_id(path))).run([path]), "0 0\n", "none")


@test
def wrappers_are_unwound_once():
    "the second frame of a block is found in some hundred instructions: a call from where an earlier one came is not unwound"
    need("valgrind")
    path = program(r"""
SITE void *xmalloc(size_t n) { void *p = malloc(n); if (!p) abort(); KEEP; return p; }
SITE void *first(size_t n) { void *p = xmalloc(n); KEEP; return p; }
int main(int argc, char **argv)
{
	for (int i = atoi(argv[1]); i; i--)
		free(first(64));
	return argc != 2;
}""")
    inner, outer = calls(path, "xmalloc", "malloc")[0], calls(path, "first", "xmalloc")[0]
    directives = Directives("heap %s %s" % (inner, outer))

    def instructions(blocks):
        rc, _, err = run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", path, str(blocks)], env=directives.env())
        equal(rc, 0, "status: " + err)
        return int(re.search(r"Collected : (\d+)", err).group(1))

    each = (instructions(20000) - instructions(10000)) / 10000
    assert each < 700, "%.0f instructions for each block" % each


@test
def cxx():
    "operator new and delete in all their forms, and exceptions"
    need("g++")
    path = program(r"""
#include <new>
#include <vector>
struct alignas(128) wide { char bytes[256]; };
static void *all[8];
SITE void family()
{
	all[0] = ::operator new(100000); KEEP;
	all[1] = ::operator new[](100000); KEEP;
	all[2] = ::operator new(100000, std::nothrow); KEEP;
	all[3] = ::operator new[](100000, std::nothrow); KEEP;
	all[4] = ::operator new(100000, std::align_val_t(8192)); KEEP;
	all[5] = ::operator new[](100000, std::align_val_t(8192)); KEEP;
	all[6] = ::operator new(100000, std::align_val_t(128), std::nothrow); KEEP;
	all[7] = ::operator new[](100000, std::align_val_t(128), std::nothrow); KEEP;
}
int main()
{
	family();
	for (void *p : all)
		memset(p, 1, 100000);
	if ((size_t)all[4] % 8192 || (size_t)all[7] % 128)
		return 1;
	::operator delete(all[0]);
	::operator delete[](all[1], (size_t)100000);
	::operator delete(all[2], std::nothrow);
	::operator delete[](all[3]);
	::operator delete(all[4], std::align_val_t(8192));
	::operator delete[](all[5], (size_t)100000, std::align_val_t(8192));
	::operator delete(all[6], std::align_val_t(128), std::nothrow);
	::operator delete[](all[7], std::align_val_t(128));
	delete new wide;
	std::vector<int> many;
	for (int i = 0; i < 1000000; i++)
		many.push_back(i);
	try {
		::operator new(1ul << 60);
	} catch (std::bad_alloc &) {
		puts("thrown");
	}
	return many[77777] != 77777;
}""", compiler="g++", flags=["-std=c++17"])
    rc, out, _ = run(["nm", "-D", "--undefined-only", path])
    names = [name.split("@")[0] for name in re.findall(r"U (_Zna?w?m\S*)", out)]
    equal(len(names), 8, "forms of new that the program calls: %s" % names)
    keys = ["heap " + key for name in names for key in calls(path, "_Z6familyv", name)]
    equal(len(keys), 8, "calls")
    directives = Directives(*keys)
    equal(directives.run([path]), "thrown\n", "output")
    equal(len(directives.lines()), 8, "sites that were served")


@test
def plugin():
    "a site in a library that is loaded later, closed and loaded again"
    need_large_pages()
    library = compile_program(HEAD, name="plugin.so", flags=["-shared", "-fPIC"])
    path = program(r"""
int main(int count, char **arguments)
{
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL), *other;
		void *(*f)(size_t) = (void *(*)(size_t))dlsym(library, "hot");
		char *p = f(4 << 20);
		memset(p, 1, 4 << 20);
		printf("%ld ", large_from(4 << 20));
		free(p);
		dlclose(library);
		other = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* elsewhere next time */
	}
	return 0;
}""")
    directives = Directives("heap " + calls(library, "hot", "malloc")[0])
    equal(directives.run([path, library]), ("%d " % (4 * MIB)) * 3, "large pages")
    equal(directives.line()["requests"], 3, "requests")


STORM = r"""
SITE void *grow(void *p, size_t n) { p = realloc(p, n); KEEP; return p; }
static int ended;
static void *work(void *argument)
{
	unsigned seed = (unsigned)(size_t)argument, i;
	unsigned char *blocks[64] = {0};
	size_t sizes[64];
	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		i = rand_r(&seed) % 64;
		if (blocks[i]) {
			if (blocks[i][0] != i + 1 || blocks[i][sizes[i] - 1] != i + 1)
				abort();
			if (seed % 3) {
				free(blocks[i]);
				blocks[i] = NULL;
				continue;
			}
		}
		sizes[i] = 1 + (seed % 5 ? rand_r(&seed) % 5000 : rand_r(&seed) % 300000);
		blocks[i] = blocks[i] ? grow(blocks[i], sizes[i]) : seed % 2 ? hot(sizes[i]) : cold(sizes[i]);
		blocks[i][0] = blocks[i][sizes[i] - 1] = i + 1;
	}
	for (i = 0; i < 64; i++)
		free(blocks[i]);
	return NULL;
}
int main(int count, char **arguments)
{
	int forks = atoi(arguments[1]), status, i;
	pthread_t threads[4];
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)(size_t)(i + 1));
	for (i = 0; i < forks; i++) {
		pid_t child = fork();
		if (!child) {
			alarm(600); /* a lock that is held for ever */
			char *p = hot(100000);
			memset(p, 1, 100000);
			p = grow(p, 200000);
			free(p);
			if (i % 2)
				_exit(0);
			exit(0);
		}
		waitpid(child, &status, 0);
		if (status)
			abort();
	}
	__atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	puts("done");
	return 0;
}"""


@test
def threads_and_forks():
    "four threads allocate while the program forks, and children allocate"
    path = program(STORM)
    keys = ["heap " + calls(path, "hot", "malloc")[0], "heap " + calls(path, "grow", "realloc")[0]]
    directives = Directives(*keys, budget=64 * MIB)
    equal(directives.run([path, "60"]), "done\n", "output")
    assert len(directives.lines()) >= 60, "children report, too"


@test
def handlers_of_fork():
    "what a library's handlers of fork allocate is had, whichever thread holds what they wait for"
    library = compile_program(HEAD + r"""
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void prepare(void) { pthread_mutex_lock(&lock); free(hot(100)); }
static void after(void) { free(hot(5000)); pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void start(void) { pthread_atfork(prepare, after, after); }
void locked(void) { pthread_mutex_lock(&lock); free(hot(100)); pthread_mutex_unlock(&lock); }
""", name="libhandlers.so", flags=["-shared", "-fPIC"])
    path = program(r"""
void locked(void);
static int ended;
static void *work(void *argument) { while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) locked(); return NULL; }
int main(void)
{
	pthread_t thread;
	alarm(600);
	pthread_create(&thread, NULL, work, NULL);
	for (int i = 0; i < 200; i++) {
		if (!fork())
			_exit(0);
		wait(NULL);
	}
	__atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	puts("done");
	return 0;
}""", flags=["-L" + os.path.dirname(library), "-lhandlers", "-Wl,-rpath," + os.path.dirname(library)])
    equal(Directives("heap " + calls(library, "hot", "malloc")[0]).run([path]), "done\n", "output")


def refused(directives, sentence, where=None):
    path = program("int main(void) { printf(\"%d\\n\", own(hot(4 << 20))); return 0; }")
    if where:
        with open(where, "w"):
            pass
        directives.report_path = where
    equal(directives.run([path]), "0\n", "blocks of an arena")
    assert sentence in directives.line()["error"], directives.line()


@test
def handlers_of_fork_first():
    "what handlers of fork allocate that were registered before this library's"
    library = compile_program(HEAD + r"""
static void handler(void) { free(hot(100)); free(hot(100000)); }
__attribute__((constructor)) static void start(void) { pthread_atfork(handler, handler, handler); }
void used(void) { }
""", name="libhandlers.so", flags=["-shared", "-fPIC", "-Wl,-z,initfirst"])
    path = program(r"""
void used(void);
int main(void)
{
	used(), alarm(600);
	for (int i = 0; i < 20; i++) {
		if (!fork())
			_exit(0);
		wait(NULL);
	}
	puts("done");
	return 0;
}""", flags=["-L" + os.path.dirname(library), "-lhandlers", "-Wl,-rpath," + os.path.dirname(library)])
    equal(Directives("heap " + calls(library, "hot", "malloc")[0]).run([path]), "done\n", "output")


@test
def hostile_directives():
    "a file that is damaged, too large, a link, or writable by others does nothing, and the report says why"
    key = "heap 0123456789abcdef+1"
    for change, sentence in ((("head", "garbage\n"), "does not begin"), (("mode", 0o622), "written by others")):
        directives = Directives(key, **dict([change]))
        refused(directives, sentence, directives.path + ".report")
    for sites, sentence in ((["heap x"], "line 5"), ([(12345, 0, key)], "line 5"), ([key] * 257, "line 261"),
                            (["data 0123456789abcdef+"], "line 5"), (["heap 0123456789abcdef+1\nwhat 1"], "line 6")):
        refused(Directives(*sites), sentence)
    directives = Directives(key)
    with open(directives.path, "a") as file:
        file.write("#" * (1 << 20))
    refused(directives, "more than 1 MiB", directives.path + ".report")
    directives = Directives(key)
    os.rename(directives.path, directives.path + ".real")
    os.symlink(directives.path + ".real", directives.path)
    refused(directives, "symbolic link", directives.path + ".report")
    directives = Directives(key)
    directives.path += ".gone"
    refused(directives, "can't be opened", directives.path + ".report")


@test
def of_another_user():
    "a file of another user's is not followed, and no report that it names is written"
    if os.geteuid():
        skip("only root can give a file to another user")
    directives = Directives("heap x")
    os.chown(directives.path, 65534, 65534)
    beside = directives.path + ".report"
    refused(directives, "another user's", beside)
    equal(os.path.getsize(directives.folder + "/report"), 0, "bytes of the report that the file names")


@test
def setuid_and_static():
    "programs with more rights than their user, and static ones, are as they were"
    path = program("int main(void) { printf(\"%d\\n\", own(hot(4 << 20))); return 0; }")
    directives = Directives("heap " + calls(path, "hot", "malloc")[0])
    static = program("int main(void) { free(hot(4 << 20)); puts(\"static\"); return 0; }", flags=["-static"])
    equal(directives.run([static]), "static\n", "output")
    if os.geteuid() or not shutil.which("setpriv"):
        return
    shutil.copy(LIBRARY, directives.folder + "/library.so")
    os.chmod(directives.folder, 0o755)
    os.chmod(os.path.dirname(path), 0o755)
    os.chmod(path, 0o4755)
    rc, out, err = run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", path], env=directives.env())
    equal((rc, out), (0, "0\n"), "exit status and blocks of an arena of a setuid program, which said " + err)
    equal(directives.lines(), [], "report")


run_all()
