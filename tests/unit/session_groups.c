// SPDX-License-Identifier: MIT
/*
 * session_groups.c - contexts by control group and by namespace: whose events count
 *
 * Not here: contexts of a process, thread and CPU (session_remote.c), attaching to a group
 * (attach_groups.py).
 */
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "membership.h"
#include "producer/producer.h"
#include "programs/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#define TICKS 10u

static struct pem_session *session;
static char outer[96], inner[112];

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	session = session_open(NULL);
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	rmdir(inner);
	rmdir(outer);
	return folder_remove(state);
}

/* Two nested version 2 groups; the test is skipped where they can't be made. */
static void make_groups(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	uint64_t id;
	size_t i;

	for (i = 0; i < 2; i++) {
		snprintf(outer, sizeof(outer), "%s/pem-test-%d", roots[i], (int)getpid());
		snprintf(inner, sizeof(inner), "%s/inner", outer);
		if (pem_cgroup_id(roots[i], &id) || mkdir(outer, 0755))
			continue;
		if (!mkdir(inner, 0755))
			return;
		rmdir(outer);
	}
	print_message("skipped: no version 2 control group can be made here\n");
	skip();
}

static bool enter_group(void)
{
	char path[160];
	bool entered;
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", inner);
	fd = open(path, O_WRONLY);
	entered = fd >= 0 && write(fd, "0", 1) == 1;
	close(fd);
	return entered;
}

static bool enter_namespace(void)
{
	return !unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWUTS : CLONE_NEWUTS);
}

struct other {
	pid_t pid;
	int told, go;
};

/* A process that goes somewhere, waits until told to, and raises ticks in the session. */
static struct other start(bool (*enter)(void))
{
	int told[2], go[2];
	struct other o;
	char c = 0;

	assert_int_equal(pipe(told) | pipe(go), 0);
	o.pid = fork();
	if (!o.pid) {
		unsigned i;

		close(go[1]);
		c = !enter || enter();
		if (write(told[1], &c, 1) != 1 || read(go[0], &c, 1) != 1 ||
		    pem_process__join(session->directory) < 0)
			_exit(1);
		for (i = 0; i < TICKS; i++)
			pem_notify_probe_tick(1, i);
		_exit(0);
	}
	close(told[1]);
	close(go[0]);
	assert_int_equal(read(told[0], &c, 1), 1);
	close(told[0]);
	o.told = c;
	o.go = go[1];
	return o;
}

static int finish(struct other *o, bool raises)
{
	int status;

	if (raises)
		assert_int_equal(write(o->go, "", 1), 1);
	close(o->go);
	assert_int_equal(waitpid(o->pid, &status, 0), o->pid);
	return WEXITSTATUS(status);
}

static struct pem_statistics *count(const struct pem_context *context)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, context, NULL, &error);

	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

/* Of one that is there and one that is not, those of the first count. */
static void counts_those_there(const struct pem_context *context, struct other *there)
{
	struct pem_statistics *st = count(context);
	struct other elsewhere = start(NULL);
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(finish(&elsewhere, true), 0);
	assert_int_equal(finish(there, true), 0);
	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_int_equal(value.count, TICKS);
}

static void in_group(const char *path)
{
	struct pem_context context = {0};
	struct other there = start(enter_group);

	if (!there.told) {
		finish(&there, false);
		print_message("skipped: a control group can't be entered here\n");
		skip();
	}
	assert_int_equal(pem_cgroup_id(path, &context.cgroup), 0);
	counts_those_there(&context, &there);
}

static void processes_of_a_control_group(void **state)
{
	(void)state;
	make_groups();
	in_group(inner);
}

static void processes_below_a_control_group(void **state)
{
	(void)state;
	make_groups();
	in_group(outer);
}

static void processes_of_a_namespace(void **state)
{
	struct pem_context context = {0};
	struct other there = start(enter_namespace);
	char path[64];
	struct stat st;

	(void)state;
	if (!there.told) {
		finish(&there, false);
		print_message("skipped: no namespace can be made here\n");
		skip();
	}
	snprintf(path, sizeof(path), "/proc/%d/ns/uts", (int)there.pid);
	assert_int_equal(stat(path, &st), 0);
	context.in_namespace = (uint32_t)st.st_ino;
	counts_those_there(&context, &there);
}

static void what_is_no_group_has_no_id(void **state)
{
	uint64_t id = 5;

	(void)state;
	assert_int_equal(pem_cgroup_id("/proc", &id), -EINVAL);
	assert_int_equal(pem_cgroup_id("/nowhere/at/all", &id), -ENOENT);
	assert_int_equal(id, 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(processes_of_a_control_group),
		TEST(processes_below_a_control_group),
		TEST(processes_of_a_namespace),
		TEST(what_is_no_group_has_no_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
