// SPDX-License-Identifier: MIT
/*
 * session_page.c - a session whose page another process of the user writes to, or cuts off
 *
 * Not here: pools and control files (fuzz, attach_hostile.py).
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "programs/probe.h"

#include <errno.h>
#include <fcntl.h>

#define TICK "APP::Probe::Tick"

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

static char said[32768]; /* all messages */

static void note_message(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	strncat(said, text, sizeof(said) - strlen(said) - 2);
	strcat(said, "\n");
}

static void open_with_messages(void)
{
	const struct pem_session_options options = {.size = sizeof(options), .log = note_message};

	said[0] = 0;
	session = session_open(&options);
}

static unsigned count_said(const char *text)
{
	const char *at = said;
	unsigned count = 0;

	while ((at = strstr(at, text))) {
		count++;
		at += strlen(text);
	}
	return count;
}

static struct pem_statistics *statistics(const struct pem_context *context)
{
	struct pem_event_set *set = events(session, TICK);
	struct pem_error error = {""};
	struct pem_statistics *st;

	st = pem_session__register_statistics(session, set, context, NULL, &error);
	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	return st;
}

static void scribble(struct pem_session_page *page)
{
	page->context_count = page->rule_count = page->test_count = ~0u;
	page->chunk_bytes = 16u << 20;
	page->chunk_count = ~0u;
	page->generation = 1;
	page->id = ~page->id;
}

static void counts_in_the_page_are_not_believed(void **state)
{
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_statistics *st = statistics(&self);
	struct pem_statistic value = {.size = sizeof(value)};
	uint32_t i;

	(void)state;
	assert_int_equal(pem_statistics__enable(st), 0);
	pem_notify_probe_tick(1, 0); /* the process's own part is there before anybody writes */
	for (i = 0; i < 3; i++) {
		scribble(session->page);
		assert_int_equal(pem_statistics__enable(st), 0);
		pem_notify_probe_tick(1, i);
		scribble(session->page);
		pem_statistics__disable(st);
	}
	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_int_equal(value.count, 4);
}

static void refusals_are_said_once_for_each_reason(void **state)
{
	static const uint32_t codes[] = {EACCES, ENOENT, EFBIG, EMFILE, ENFILE, ENOSPC, EDQUOT};
	uint32_t i;

	(void)state;
	open_with_messages();
	pem_session__update_processes(session, 1);
	assert_string_equal(said, "");
	for (i = 0; i < 70; i++) {
		session->page->last_errno = codes[i % 7];
		session->page->refused++;
		pem_session__update_processes(session, 1);
	}
	assert_int_equal(count_said("could not make its pool"), 6);
	assert_int_equal(count_said("had given up the rights"), 1);
	assert_int_equal(count_said("ulimit -f"), 1);
	assert_int_equal(count_said("ulimit -n"), 1);
	assert_int_equal(count_said("free some space"), 1);
	assert_int_equal(count_said("\n"), 6);
	pem_session__close(session);
	assert_int_equal(count_said("70 processes could not make a pool"), 1);
	assert_int_equal(count_said("\n"), 7);
}

static void refusals_say_what_would_mend_them(void **state)
{
	static const struct {
		uint32_t code;
		const char *mends;
	} of[] = {
		{EACCES, "had given up the rights"},
		{EPERM, "or a seccomp filter refuses them"},
		{ENOENT, "had given up the rights"},
		{EROFS, "had given up the rights"},
		{EFBIG, "ulimit -f"},
		{EMFILE, "ulimit -n"},
		{ENFILE, "fs.file-max"},
		{ENOSPC, "free some space"},
		{EDQUOT, "quota there is used up"},
		{ENOMEM, "ulimit -v"},
		{ENOSYS, "a seccomp filter refuses what that takes"},
		{ECANCELED, "the recording had ended"},
		{EINVAL, "no larger buffer mends that"},
	};
	static struct pem_trace_info info;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		open_with_messages();
		session->page->last_errno = of[i].code;
		session->page->refused = 1;
		pem_session__update_processes(session, 1);
		assert_non_null(strstr(said, strerror((int)of[i].code)));
		assert_non_null(strstr(said, of[i].mends));
		/*
		 * The trace tells the same, and of how many events, those of another gap left out.
		 */
		session->page->lost = UINT64_MAX;
		session->page->lost_filtered = 1;
		memset(&info, 0, sizeof(info));
		pem_session__note_rights(session, &info);
		assert_int_equal(info.gap_count, 2);
		assert_non_null(strstr(info.gaps[0].reason,
				       "18446744073709551614 events were lost: 1 processes"));
		assert_non_null(strstr(info.gaps[0].reason, strerror((int)of[i].code)));
		assert_non_null(strstr(info.gaps[0].reason, of[i].mends));
		pem_session__close(session);
	}
}

static void one_refusal_is_not_said_again_at_the_end(void **state)
{
	(void)state;
	open_with_messages();
	session->page->last_errno = EACCES;
	session->page->refused = 1;
	pem_session__update_processes(session, 1);
	pem_session__close(session);
	assert_int_equal(count_said("\n"), 1);
}

static void lacking_statistics_are_said_once_and_at_the_end(void **state)
{
	struct pem_statistics *st;
	struct pem_statistic value = {.size = sizeof(value)};
	uint32_t i;

	(void)state;
	open_with_messages();
	st = statistics(NULL);
	for (i = 1; i <= 50; i++) {
		session->page->lost_statistics = i;
		assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	}
	assert_int_equal(count_said("statistics lack 1 events"), 1);
	assert_int_equal(count_said("\n"), 1);
	pem_session__close(session);
	assert_int_equal(count_said("statistics lack 50 events"), 1);
	assert_int_equal(count_said("\n"), 2);
}

static void consumer_outlives_a_page_that_is_cut_off(void **state)
{
	struct pem_statistics *st;
	struct pem_statistic value = {.size = sizeof(value)};
	int config;

	(void)state;
	/* In here, and first: cmocka has its own handler of SIGBUS around each test. */
	session = session_open(NULL);
	config = openat(session->directory_fd, "config", O_RDWR | O_CLOEXEC);
	st = statistics(NULL);
	assert_int_equal(pem_statistics__enable(st), 0);
	assert_int_equal(ftruncate(config, 0), 0);
	close(config);
	pem_statistics__disable(st);
	assert_int_equal(pem_statistics__enable(st), 0);
	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_int_equal(value.count, 0);
	assert_int_equal(session->page_cut, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(consumer_outlives_a_page_that_is_cut_off,
						folder_make, tear_down),
		cmocka_unit_test_setup_teardown(counts_in_the_page_are_not_believed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(refusals_are_said_once_for_each_reason, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(refusals_say_what_would_mend_them, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(one_refusal_is_not_said_again_at_the_end,
						folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(lacking_statistics_are_said_once_and_at_the_end,
						folder_make, folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
