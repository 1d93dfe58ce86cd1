// SPDX-License-Identifier: MIT
/* start.c - what happens when the library is loaded, and around fork */
#include "start.h"

#include "callers.h"
#include "counts.h"
#include "end.h"
#include "fixed.h"
#include "grants.h"
#include "heap.h"
#include "large.h"
#include "look.h"
#include "maps.h"
#include "next.h"
#include "report.h"
#include "signals.h"
#include "wake.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

bool apply__active, apply__confined;
struct directives apply__directives;

static void before_fork(void)
{
	int saved = errno;

	heap__before_fork();
	maps__before_fork();
	large__before_fork();
	grants__before_fork();
	__atomic_store_n(&lock__forking, lock__self(), __ATOMIC_RELAXED);
	errno = saved;
}

static void after_fork(bool is_child)
{
	int saved = errno;

	__atomic_store_n(&lock__forking, 0, __ATOMIC_RELAXED);
	if (is_child) {
		report__set_process();
		counts__after_fork_child();
		look__after_fork_child();
	}
	grants__after_fork(is_child);
	large__after_fork(is_child);
	maps__after_fork(is_child);
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

static uint64_t random_number(void)
{
	const void *bytes = (const void *)getauxval(AT_RANDOM); /* 16 bytes, from the kernel */
	uint64_t number = 0;

	if (bytes)
		memcpy(&number, bytes, sizeof(number));
	/* The stack's guard is made of these bytes, too: it is not to be told by an address. */
	return number * UINT64_C(0x9e3779b97f4a7c15) >> 40;
}

static bool has_heap_sites(void)
{
	uint32_t i = 0;

	while (i < apply__directives.count && apply__directives.list[i].site.kind != PAGE_SITE_HEAP)
		i++;
	return i < apply__directives.count;
}

static void quick_exit_called(void)
{
	report__sites(false);
}

/* The linker marks this library to be initialized before all others (-z initfirst). */
__attribute__((constructor(101))) static void start(int argc, char **argv, char **environment)
{
	const char *path = variable(environment, PAGE_APPLY_VARIABLE);
	char error[DIRECTIVES_ERROR];

	(void)argc, (void)argv;
	next__find();
	signals__find();
	/* A program with more rights than its user does not follow its user's directives. */
	if (!path || !path[0] || getauxval(AT_SECURE))
		return;
	report__set_process();
	if (!directives__read(&apply__directives, path, error)) {
		report__error(error);
		return;
	}
	if (!apply__directives.count)
		return;
	if (getauxval(AT_PAGESZ) != ARENA_PAGE) {
		report__error("the small pages of this machine don't have 4 KiB");
		return;
	}
	if (!callers__init(&apply__directives)) {
		report__error("this C library is older than 2.35 and can't tell whose code calls");
		return;
	}
	if (pthread_atfork(before_fork, after_fork_parent, after_fork_child)) {
		report__error("there is no memory for what has to be done around fork");
		return;
	}
	counts__init(&apply__directives);
	grants__init(apply__directives.budget, apply__directives.path);
	if (!has_heap_sites() || next__is_allocator())
		heap__init(&apply__directives, random_number());
	else
		report__error("the program has an allocator of its own: no heap site is served");
	maps__init(&apply__directives);
	fixed__init(&apply__directives);
	at_quick_exit(quick_exit_called);
	apply__active = true;
	report__begin();
	look__init();
}

__attribute__((destructor(101))) static void end(void)
{
	report__sites(false);
}

/* What is written is the last line of a site until another one is, so a failed exec needs none. */

void endings__begin(void)
{
	report__sites(false);
}

int endings__failed(int rc)
{
	return rc;
}

void endings__confine(void)
{
	if (apply__active && report__is_process()) {
		wake__stop();
		report__sites(true);
		apply__confined = true;
	}
}

void endings__closed(void)
{
	if (apply__active)
		callers__forget();
}
