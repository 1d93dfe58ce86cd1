// SPDX-License-Identifier: LGPL-2.1-or-later
/* start.c - what happens when the library is loaded, and around fork */
#include "apply/start.h"

#include "apply/end.h"
#include "apply/heap.h"
#include "apply/next.h"
#include "hooks.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WINDOWS_MIN 8u

struct hooks_options hooks__options = {
	.burst = PROFILE_BURST_MAX,
	.keep = UINT64_C(64) << 20,
	.limit = 60,
};
uint32_t hooks__pid;

/* What front.c asks: calls are under contexts. It stays so after the end, as blocks do. */
bool apply__active;

bool hooks__is_process(void)
{
	return (uint32_t)syscall(SYS_getpid) == hooks__pid;
}

void *hooks__memory(size_t bytes)
{
	long at = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == -1 ? NULL : (void *)at;
}

void hooks__say(const char *about, const char *sentence)
{
	const char *parts[] = {"pem-page-size: ", about, ": ", sentence, "\n"};
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (syscall(SYS_write, STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
			return;
}

void *pem_page_size_move(void *to, const void *from, size_t bytes)
{
	return memmove(to, from, bytes);
}

void *pem_page_size_fill(void *to, int value, size_t bytes)
{
	return memset(to, value, bytes);
}

/* --- fork --- */

static uint64_t forks;

uint64_t hooks__forks(void)
{
	return forks;
}

static void before_fork(void)
{
	int saved = errno;

	heap__before_fork();
	output__before_fork();
	__atomic_store_n(&lock__forking, lock__self(), __ATOMIC_RELAXED);
	errno = saved;
}

static void after_fork(bool is_child)
{
	int saved = errno;

	__atomic_store_n(&lock__forking, 0, __ATOMIC_RELAXED);
	forks++;
	if (is_child)
		bursts__leave();
	output__after_fork(is_child);
	heap__after_fork(is_child);
	errno = saved;
}

static void after_fork_parent(void)
{
	after_fork(false);
}

static void after_fork_child(void)
{
	after_fork(true);
}

/* --- options --- */

/* The C library's own pointer to the environment may not be set yet. */
static const char *variable(char **environment, const char *name)
{
	size_t length = strlen(name);

	for (; environment && *environment; environment++) {
		if (!strncmp(*environment, name, length) && (*environment)[length] == '=')
			return *environment + length + 1;
	}
	return NULL;
}

static const struct {
	const char *name;
	uint64_t *value, least, most;
} options[] = {
	{"burst=", &hooks__options.burst, 1024, PROFILE_BURST_MAX},
	{"keep=", &hooks__options.keep, 1 << 16, UINT64_C(1) << 40},
	{"limit=", &hooks__options.limit, 0, UINT64_C(1) << 31},
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

/* "name=number", and what follows it. NULL: it is none. */
static const char *read_option(const char *text)
{
	size_t i = 0, length;
	char *rest;

	while (i < OPTIONS && strncmp(text, options[i].name, strlen(options[i].name)))
		i++;
	if (i == OPTIONS)
		return NULL;
	length = strlen(options[i].name);
	if (text[length] < '0' || text[length] > '9')
		return NULL;
	errno = 0;
	*options[i].value = strtoull(text + length, &rest, 10);
	if (errno || *options[i].value < options[i].least || *options[i].value > options[i].most ||
	    (*rest && *rest != ','))
		return NULL;
	return *rest ? rest + 1 : rest;
}

static bool read_options(const char *text)
{
	const char *rest = text;

	while (rest && *rest)
		rest = read_option(rest);
	if (!rest) {
		hooks__say(HOOKS_OPTIONS, "no profile is written: it is like "
					  "burst=1048576,keep=67108864,limit=60");
		return false;
	}
	/* One window is always kept: there must be some. */
	while (hooks__options.burst * sizeof(uint64_t) * WINDOWS_MIN > hooks__options.keep)
		hooks__options.burst /= 2;
	return true;
}

/* --- start --- */

static uint64_t random_number(void)
{
	const void *bytes = (const void *)getauxval(AT_RANDOM); /* 16 bytes, from the kernel */
	uint64_t number = 0;

	if (bytes)
		memcpy(&number, bytes, sizeof(number));
	/* The stack's guard is made of these bytes, too: it is not to be told by an address. */
	return number * UINT64_C(0x9e3779b97f4a7c15) >> 40;
}

static bool begin(const char *path)
{
	bool done;

	if (getauxval(AT_PAGESZ) != ARENA_PAGE) {
		hooks__say(path, "the small pages of this machine don't have 4 KiB: no profile is "
				 "written");
		return false;
	}
	if (!bursts__init() || pthread_atfork(before_fork, after_fork_parent, after_fork_child)) {
		hooks__say(path, "the program's libraries leave no room to follow its threads: no "
				 "profile is written");
		return false;
	}
	if (!output__lock())
		return false;
	done = output__init(path);
	output__unlock();
	return done;
}

__attribute__((constructor(101))) static void start(int argc, char **argv, char **environment)
{
	const char *path = variable(environment, HOOKS_VARIABLE);
	const char *text = variable(environment, HOOKS_OPTIONS);
	int saved = errno;

	(void)argc, (void)argv;
	next__find();
	/* A program with more rights than its user writes no file where its user says. */
	if (path && path[0] && !getauxval(AT_SECURE)) {
		hooks__pid = (uint32_t)syscall(SYS_getpid);
		if (read_options(text ? text : "") && begin(path)) {
			objects__scan();
			objects__tell_stack();
			if (next__is_allocator()) {
				heap__start(random_number());
				apply__active = true;
			} else {
				hooks__say(path,
					   "the program has an allocator of its own: its heap "
					   "has no sites");
			}
			__atomic_store_n(&bursts__state, BURSTS_ON, __ATOMIC_RELAXED);
			pem_page_size_left = 0;
			at_quick_exit(bursts__end);
		}
	}
	errno = saved;
}

__attribute__((destructor(101))) static void end(void)
{
	bursts__end();
}

/* --- the program's own ends --- */

void endings__begin(void)
{
	int saved = errno;

	bursts__end();
	errno = saved;
}

int endings__failed(int rc)
{
	int saved = errno;

	bursts__resume();
	errno = saved;
	return rc;
}

void endings__confine(void)
{
	endings__begin();
}

void endings__closed(void)
{
	if (bursts__are_on())
		objects__scan();
}
