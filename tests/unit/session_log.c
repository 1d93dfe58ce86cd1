// SPDX-License-Identifier: MIT
/*
 * session_log.c - a session's log as its handle promises it (pem/pem.h)
 *
 * Not here: what is drained into it (session_drain.c), its files (writer_streams.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "writer/log.h"
#include "session_fixture.h"

#include "programs/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static struct pem_session *session;

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
	return folder_remove(state);
}

/* The second one would be told of the first one's events, and of its own not. */
static void one_in_a_session(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};
	struct pem_log *first;
	char second[128];

	(void)state;
	snprintf(second, sizeof(second), "%s/second", folder);
	first = log_to_trace(session, "APP::Probe::Tick", &self);
	pem_notify_probe_tick(1, 1);
	assert_null(pem_session__register_log(session, set, &self, second, &error));
	assert_int_equal(errno, EBUSY);
	assert_int_equal(pem_log__finish(first, &error), 0);
	pem_log__unregister(first);
	assert_null(pem_session__register_log(session, set, &self, second, &error));
	assert_int_equal(errno, EBUSY);
	assert_int_equal(access(second, F_OK), -1);
	pem_event_set__free(set);
}

/* One that could not be made is no log. */
static void another_folder_after_a_failure(void **state)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};

	(void)state;
	assert_null(pem_session__register_log(session, set, NULL, "/nowhere/at/all", &error));
	assert_int_equal(errno, ENOENT);
	assert_non_null(pem_session__register_log(session, set, NULL, trace_path, &error));
	pem_event_set__free(set);
}

/*
 * Sessions that are there already, of this process or of one that had its number, are not taken for
 * new ones.
 */
static void folders_of_others_are_left_alone(void **state)
{
	struct pem_error error = {""};
	char path[160];
	unsigned k;

	(void)state;
	for (k = 0; k < 1000; k++) {
		snprintf(path, sizeof(path), "%s/session-%d-%u", folder, (int)getpid(), k);
		assert_true(!mkdir(path, 0700) || errno == EEXIST);
	}
	strcat(path, "/theirs");
	close(open(path, O_WRONLY | O_CREAT, 0600));
	assert_null(pem_session__open(NULL, &error));
	assert_int_equal(errno, EEXIST);
	assert_int_equal(access(path, F_OK), 0);
}

/* Where another user may write, a link may have taken the place of a folder that was just made. */
static void a_link_is_no_folder(void **state)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};
	char target[128], link[128];

	(void)state;
	snprintf(target, sizeof(target), "%s/target", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(symlink(target, link), 0);
	assert_null(pem_session__register_log(session, set, NULL, link, &error));
	assert_non_null(strstr(error.text, "is a link: give the folder that it leads to"));
	assert_int_equal(rmdir(target), 0);
	unlink(link);
	pem_event_set__free(set);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(one_in_a_session),
		TEST(another_folder_after_a_failure),
		TEST(folders_of_others_are_left_alone),
		TEST(a_link_is_no_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
