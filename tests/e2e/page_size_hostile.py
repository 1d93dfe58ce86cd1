#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libpem-page-size.so: programs with habits of their own do what they do alone

Not here: what is served (page_size_apply.py), and how many large pages there are (page_size_memory.py).
"""
import glob
import os

from page_sites import LIBRARY, Directives, calls, program
from tap import equal, need, run, run_all, skip, test

LONG_S = 11

ZEROED = "SITE void *zeroed(size_t n) { void *p = calloc(1, n); KEEP; return p; }\n"


def directives_of(path, function="hot", callee="malloc"):
    return Directives(*["heap " + key for key in calls(path, function, callee)])


def as_alone(source, function="hot", callee="malloc"):
    "A program under a directive for what a function of it calls: it succeeds and says what it says alone. Returns the report."
    path = program(source)
    rc, out, err = run([path])
    equal((rc, err), (0, ""), "exit status and standard error alone")
    directives = directives_of(path, function, callee)
    equal(directives.run([path], timeout=30), out, "output")
    return directives.lines()


@test
def cancelled():
    "a thread that is cancelled while it allocates is cancelled later, as malloc is no place for it"
    as_alone(r"""
static void *work(void *argument)
{
	pthread_cancel(pthread_self());
	memset(hot(4 << 20), 1, 4 << 20);
	puts("allocated");
	free(hot(100 << 20));
	fflush(stdout);
	pthread_testcancel();
	puts("never");
	return NULL;
}
int main(void)
{
	pthread_t thread;
	void *result;
	alarm(600);
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, &result);
	free(hot(8 << 20));
	printf("%d\n", result == PTHREAD_CANCELED);
	return 0;
}""")


@test
def small_stack():
    "a thread with the least stack there may be allocates and frees"
    as_alone(r"""
static void *work(void *argument)
{
	char *p = hot(4 << 20);
	memset(p, 1, 4 << 20);
	free(p);
	p = hot(100 << 20);
	for (int i = 0; i < 100; i++)
		p[i << 20] = 1;
	free(p);
	return p;
}
int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 16384);
	return pthread_create(&thread, &attributes, work, NULL) || pthread_join(thread, NULL);
}""")


@test
def locked_memory():
    "calloc gives zeros where a block was that the program had locked into memory"
    for lock in ("mlock(p, 40 << 20)", "mlockall(MCL_CURRENT | MCL_FUTURE)"):
        as_alone(ZEROED + r"""
int main(void)
{
	long bytes = 40 << 20, wrong = 0;
	char *p = zeroed(bytes);
	(void)!LOCK;
	memset(p, 7, bytes);
	free(p);
	p = zeroed(bytes);
	for (long i = 0; i < bytes; i++)
		wrong += p[i] != 0;
	printf("%ld\n", wrong);
	return 0;
}""".replace("LOCK", lock), "zeroed", "calloc")


ALTERED = r"""
int main(void)
{
	size_t bytes = 8 << 20, i;
	FILE *file = tmpfile();
	char *p = hot(bytes), *page = (char *)(((size_t)p + 8191) / 4096 * 4096), byte = 0;
	ftruncate(fileno(file), 1 << 20);
	memset(p, 1, bytes);
	CHANGE;
	free(p);
	p = hot(bytes);
	memset(p, 2, bytes);
	for (i = 0; i < bytes; i++)
		if (p[i] != 2)
			return 1;
	pread(fileno(file), &byte, 1, 0);
	printf("%d\n", byte);
	return 0;
}"""


@test
def altered_blocks():
    "pages of a block that the program protects, unmaps, moves, or puts a file in the place of, are usable in the next block"
    for change in ("mprotect(page, 4096, PROT_NONE)", "mprotect(page + (1 << 20), 2 << 20, PROT_READ)", "munmap(page, 3 << 20)",
                   "mremap(page, 1 << 20, 1 << 20, MREMAP_MAYMOVE | MREMAP_FIXED, mmap(NULL, 1 << 20, 0, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))",
                   "mmap(page, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file), 0)"):
        as_alone(ALTERED.replace("CHANGE", change))


@test
def replaced_in_a_mapping():
    "a mapping of which the program has replaced a part by new memory can be moved as one"
    path = program(r"""
SITE void *map(size_t n) { void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); KEEP; return p; }
int main(void)
{
	size_t m = 1 << 20;
	char *p = map(20 * m), *q;
	memset(p, 1, 20 * m);
	if (mmap(p + 4 * m, 4 * m, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p + 4 * m || p[5 * m])
		return 1;
	memset(p + 4 * m, 2, 4 * m);
	q = mremap(p, 20 * m, 40 * m, MREMAP_MAYMOVE);
	return q == MAP_FAILED || q[4 * m - 1] != 1 || q[8 * m - 1] != 2 || q[8 * m] != 1 || q[20 * m];
}""")
    equal(run([path])[0], 0, "exit status alone")
    Directives("map " + calls(path, "map", "mmap")[0]).run([path])


@test
def seccomp():
    "a program that may open no file any more allocates, and ends as it would alone"
    lines = as_alone(r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
static void confine(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog filter = {4, code};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter))
		abort();
}
int main(void)
{
	int status;
	memset(hot(8 << 20), 1, 8 << 20);
	if (!vfork()) { /* the parent is not meant */
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(0);
	}
	wait(NULL);
	memset(hot(8 << 20), 1, 8 << 20);
	large_from(16 << 20);
	confine();
	for (int i = 0; i < 5; i++)
		memset(hot(8 << 20), 1, 8 << 20);
	if (!fork()) {
		free(hot(8 << 20));
		exit(0);
	}
	wait(&status);
	printf("%d\n", status);
	return 0;
}""")
    equal([line["large_bytes"] for line in lines], [16 << 20], "large pages, which the report says before")


@test
def interrupted():
    "a handler that interrupts an allocation may allocate, fork, or leave by longjmp"
    for handler in ("free(hot(100 << 20))", "siglongjmp(back, 1)", "if (!fork()) _exit(0); wait(NULL)"):
        as_alone(r"""
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
static sigjmp_buf back;
static volatile int count;
static void handle(int number) { count++; HANDLER; }
int main(void)
{
	struct itimerval timer = {{0, 1000}, {0, 1000}};
	alarm(600);
	signal(SIGPROF, handle);
	sigsetjmp(back, 1);
	setitimer(ITIMER_PROF, &timer, NULL);
	while (count < 100)
		free(hot(400 << 20));
	puts("done");
	return 0;
}""".replace("HANDLER", handler))


MADE = r"""
#include <new>
SITE void *made(size_t n) { void *p = ::operator new(n); KEEP; return p; }
int main()
{
	char *p = (char *)made(100000);
	size_t n = malloc_usable_size(p);
	void (*volatile release)(void *) = free;
	memset(p, 1, n);
	p = (char *)realloc(p, 2 * n);
	release(p);
	printf("%d\n", n >= 100000);
	return 0;
}"""
OWN = r"""
static char heap[1 << 20];
static size_t at;
#define BYTES(p) ((size_t *)(p))[-2]
extern "C" void *malloc(size_t n)
{
	char *p = heap + __atomic_fetch_add(&at, (n + 31) & ~15ul, 0) + 16;
	BYTES(p) = n;
	return p;
}
extern "C" void free(void *p) { if (p && (size_t)p - (size_t)heap > sizeof(heap)) abort(); }
extern "C" void *calloc(size_t count, size_t n) { return malloc(count * n); }
extern "C" size_t malloc_usable_size(void *p) { return BYTES(p); }
extern "C" void *realloc(void *old, size_t n)
{
	void *p = malloc(n);
	if (old)
		memcpy(p, old, BYTES(old) < n ? BYTES(old) : n);
	return p;
}
"""


def made(source, before="", after="", flags=()):
    "What a program is served whose operator new is listed, with libraries that are preloaded before and after."
    path = program(source, compiler="g++", flags=["-std=c++17"] + list(flags))
    directives = directives_of(path, "_Z4madem", "_Znwm")
    directives.run([path], env={"LD_PRELOAD": before + LIBRARY + after})
    return directives.line()


@test
def own_allocator():
    "a program with an allocator of its own is given no block that this does not know, and the report says so"
    need("g++")
    assert "allocator of its own" in made(OWN + MADE)["error"]
    for flags in ((), ("-no-pie", "-fno-pie")):
        equal(made(MADE, flags=flags)["requests"], 2, "requests of a program that has none")


@test
def preloaded_allocator():
    "an allocator that is preloaded, too, is asked for the rest if it comes behind, and for all if it comes first"
    need("g++")
    found = [path for name in ("jemalloc.so.2", "mimalloc.so.2", "tcmalloc_minimal.so.4")
             for path in glob.glob("/usr/lib/*/lib" + name) + glob.glob("/usr/lib*/lib" + name)]
    if not found:
        skip("none of jemalloc, mimalloc and tcmalloc is installed")
    for path in found:
        assert "allocator of its own" in made(MADE, before=path + ":")["error"]
        equal(made(MADE, after=":" + path)["requests"], 2, "requests with %s behind" % path)


@test
def descriptors_closed_meanwhile():
    "a program that closes all descriptors, and opens files, while the library uses its own keeps these files as they are"
    path = program(r"""
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
static const char *folder, *when;
static int mine[8], is_open;
/* As if another thread did it. */
static void close_and_open(const char *call)
{
	char name[300];
	if (strcmp(call, when) || is_open++)
		return;
	syscall(SYS_close_range, 3, ~0u, 0);
	for (int i = 0; i < 8; i++) {
		sprintf(name, "%s/mine-%d", folder, i);
		mine[i] = open(name, O_RDWR | O_CREAT, 0600);
	}
}
ssize_t pread(int fd, void *to, size_t bytes, off_t at)
{
	close_and_open("pread");
	return syscall(SYS_pread64, fd, to, bytes, at);
}
int flock(int fd, int operation)
{
	long rc = syscall(SYS_flock, fd, operation);
	close_and_open("flock");
	return (int)rc;
}
int main(int count, char **arguments)
{
	struct stat st;
	folder = arguments[1], when = arguments[2];
	memset(hot(16 << 20), 1, 16 << 20);
	large_from(4 << 20);
	for (int i = 0; i < 8; i++)
		if (fstat(mine[i], &st) || st.st_size)
			return 10 + i;
	return !is_open;
}""")
    for call in ("pread", "flock"):
        directives = directives_of(path)
        directives.run([path, directives.folder, call])


FILL = "int main(void) { %s; for (int i = 0; i < 3; i++) memset(hot(4 << 20), 1, 4 << 20); large_from(%s); return 0; }"


@test
def file_in_the_way():
    "a file of the user's own that has the name of the account keeps its bytes"
    path = program(FILL % ("", "0"))
    directives = directives_of(path)
    account = directives.path + ".account"
    with open(account, "w") as file:
        file.write("mine")
    os.chmod(account, 0o600)
    directives.run([path])
    with open(account) as file:
        equal(file.read(), "mine", "the file")
    equal((directives.line()["large_bytes"], directives.line()["reason"]), (0, "account"), "large pages, and why")


@test
def umask():
    "a program whose umask keeps itself from its own files has its large pages"
    path = program(FILL % ("umask(0777)", "12 << 20"), flags=["-include", "sys/stat.h"])
    directives = directives_of(path)
    as_user = []
    if not os.geteuid(): # whom modes don't stop
        need("setpriv")
        as_user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        for name in (directives.folder, directives.path, directives.report_path):
            os.chown(name, 65534, 65534)
        os.chmod(os.path.dirname(path), 0o755)
    if run(as_user + ["test", "-r", LIBRARY])[0]:
        skip("user 65534 can't read the library that was built")
    directives.run(as_user + [path])
    equal(directives.line()["large_bytes"], 12 << 20, "large pages")


@test
def quick_exit():
    "a program that ends by quick_exit reports"
    lines = as_alone("int main(void) { free(hot(4 << 20)); quick_exit(0); }")
    equal([line["requests"] for line in lines], [1], "requests")


run_all()
