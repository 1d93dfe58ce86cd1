/* SPDX-License-Identifier: MIT */
/*
 * kernel_only_here.c - a probe of a binary that is wanted in one's own process puts no breakpoint
 * into any other
 */
#include "core/core.h"
#include "kernel_fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <pem/pem.h>

#define CODE_BYTES 16
#define TIMES 3

/* One for each test, apart: what the last one attached may be there for a while yet. */
#define PROBED(name)                                                                               \
	__attribute__((noinline, visibility("default"), aligned(64))) void name(void);             \
	void name(void)                                                                            \
	{                                                                                          \
		__asm__ volatile("nop");                                                           \
	}
PROBED(probed_here)
PROBED(probed_return)

static void (*probed)(void);

static void read_code(pid_t pid, uint8_t *code)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, code, CODE_BYTES, (off_t)(uintptr_t)probed), CODE_BYTES);
	close(fd);
}

/* The session whose event it is stays open: it ends with us. */
static const struct pem_event *find(const char *kind, const char *function)
{
	const char *build = getenv("B");
	struct pem_session *session;
	char path[PATH_MAX], pattern[PATH_MAX + 64];
	struct pem_error error = {""};
	const struct pem_event *event;
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s/lib/pem", build ? build : "build");
	assert_non_null(realpath(pattern, path)); /* it has to be absolute */
	assert_int_equal(setenv("PEM_PLUGIN_PATH", path, 1), 0);
	session = pem_session__open(NULL, NULL);
	assert_non_null(session);
	assert_non_null(realpath("/proc/self/exe", path));
	snprintf(pattern, sizeof(pattern), "%s:%s:%s", kind, path, function);
	if (pem_session__add_probes(session, pattern, &error) != 1)
		fail_msg("%s", error.text);
	for (i = pem_model__count(pem_session__model(session)); i-- > 0;) {
		event = pem_model__event(pem_session__model(session), i);
		if (!strcmp(event->source_name, pattern))
			return event;
	}
	fail_msg("%s is no event", pattern);
	return NULL;
}

static void run_child(int go, int say)
{
	(void)go;
	(void)say;
	probed();
}

static void check(const char *kind, const char *function)
{
	const struct pem_context self = {.pid = (uint32_t)getpid(), .tid = (uint32_t)gettid()};
	uint8_t before[CODE_BYTES], mine[CODE_BYTES], its[CODE_BYTES];
	const struct pem_event *event = find(kind, function);
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_error reason;
	struct child child;
	struct subject *s;
	unsigned i;

	if (ops->can_deliver(event, &reason) != 1) {
		print_message("# %s\n", reason.text);
		skip();
	}
	child = make_child(run_child);
	s = new_subject();
	read_code(getpid(), before);
	s->events[s->count++] = (struct pem_source_event){
		.event = event,
		.context = self,
		.action = PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 1)};
	open_subject(s, 0, 0);
	read_code(getpid(), mine);
	read_code(child.pid, its);
	assert_memory_not_equal(mine, before, CODE_BYTES);
	assert_memory_equal(its, before, CODE_BYTES);
	ignore(write(child.go, "", 1));
	finish_child(&child);
	for (i = 0; i < TIMES; i++)
		probed();
	assert_int_equal(ops->read_statistic(s->source, 0, &value), 0);
	assert_int_equal(value.count, TIMES);
	close_subject(s);
}

static void no_other_process_has_the_breakpoint(void **state)
{
	(void)state;
	probed = probed_here;
	check("uprobe", "probed_here");
}

static void nor_that_of_a_return(void **state)
{
	(void)state;
	probed = probed_return;
	check("uretprobe", "probed_return");
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(no_other_process_has_the_breakpoint),
		cmocka_unit_test(nor_that_of_a_return),
	};
	int usable = load_plugin();

	if (usable <= 0)
		return usable ? 1 : 0;
	return cmocka_run_group_tests(all, NULL, NULL);
}
