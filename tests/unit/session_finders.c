// SPDX-License-Identifier: MIT
/*
 * session_finders.c - looking for runtime folders of others where helpers can't be started, or
 * users have too many
 *
 * Not here: what helpers do (tests/e2e/attack_folders.py, confined_keeper.py).
 */
#include "core/core.h"
#include "dirs/dirs.h"
#include "dirs/helpers.h"
#include "dirs/finders.c"

#include "session_fixture.h"

#include <sys/resource.h>

static struct pem_session *session;
static char said[8192]; /* all messages */
static char library[96]; /* the folder that libpem takes for its own */

static void note_message(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	strncat(said, text, sizeof(said) - strlen(said) - 2);
	strcat(said, "\n");
}

static int set_up(void **state)
{
	const struct pem_session_options options = {.size = sizeof(options), .log = note_message};

	if (folder_make(state))
		return -1;
	snprintf(library, sizeof(library), "%s/library", folder);
	said[0] = 0;
	if (mkdir(library, 0755) || setenv("PEM_LIBRARY_PATH", library, 1))
		return -1;
	session = session_open(&options);
	pem_session__add_session_dir(session);
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	unsetenv("PEM_LIBRARY_PATH");
	return folder_remove(state);
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

/* A helper that notes that it was started, and ends. */
static void install_helper(void)
{
	static const char text[] = "#!/bin/sh\necho >>$0.started\n";
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/pem", library);
	assert_int_equal(mkdir(path, 0755), 0);
	strcat(path, "/pem-confined");
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static uid_t owner;

static bool was_started(void)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/pem/pem-confined.started", library);
	return !access(path, F_OK);
}

/* A helper ends by itself, later. */
static void await_start(void)
{
	while (!was_started())
		usleep(100);
}

static void look(void)
{
	session->dirs->next_search_ns = 0;
	pem_session__search_dirs(session);
}

static void helper_that_is_missing_is_tried_once(void **state)
{
	(void)state;
	look();
	assert_int_equal(count_said("\n"), 1);
	assert_int_equal(count_said("install it in the folder 'pem' beside libpem"), 1);
	install_helper();
	look();
	assert_false(pem_session__find_dirs_of(session, (uint32_t)getpid(), &owner));
	assert_false(was_started());
	assert_int_equal(count_said("\n"), 1);
}

static void helper_that_is_there_is_started(void **state)
{
	(void)state;
	install_helper();
	look();
	await_start();
	assert_string_equal(said, "");
}

/* Two descriptors are left, for /proc and a process's folder. */
static void want_of_descriptors_may_pass(void **state)
{
	struct rlimit all, few;
	int fd = dup(0);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	install_helper();
	getrlimit(RLIMIT_NOFILE, &all);
	few = (struct rlimit){(rlim_t)fd + 3, all.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	look();
	look();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	assert_false(was_started());
	assert_int_equal(count_said("\n"), 1);
	assert_int_equal(count_said("install it"), 0);
	look();
	await_start();
	assert_int_equal(count_said("\n"), 1);
}

static void users_over_a_limit_are_said_once_each(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < 30; i++) {
		say_too_many(session, 1000 + i % 3, FINDING_DIRS);
		say_too_many(session, 1000 + i % 3, FINDING_MOUNTS);
	}
	assert_int_equal(count_said("\n"), 6);
	for (i = 0; i < 3; i++) {
		char user[32];

		snprintf(user, sizeof(user), "user %u has more than 32", 1000 + i);
		assert_int_equal(count_said(user), 2);
	}
	assert_int_equal(count_said("runtime folders"), 3);
	assert_int_equal(count_said("mount namespaces"), 3);
}

/* Each folder that a finder tells of over the limit, of however many users. */
static void folders_over_the_limit_are_said(void **state)
{
	struct pem_finder finder = {.setup = {.uid = geteuid()}};
	char path[128];
	unsigned i;

	(void)state;
	for (i = 0; i < USER_DIRS_MAX + 3; i++) {
		snprintf(path, sizeof(path), "%s/other-%u", folder, i);
		assert_int_equal(mkdir(path, 0700), 0);
		add_dir(session, &finder, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		assert_int_equal(count_said("runtime folders: processes"), i >= USER_DIRS_MAX);
	}
	assert_int_equal(dirs_of(session, geteuid()), USER_DIRS_MAX);
}

/* A finder that is this test: says what is sent on the returned socket. */
static struct pem_finder *add_finder(int *end)
{
	struct pem_finder *finder = calloc(1, sizeof(*finder));
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	finder->setup.uid = 1234;
	finder->helper = calloc(1, sizeof(*finder->helper));
	finder->helper->socket = ends[0];
	finder->helper->pid = getpid(); /* is no child of this process: nothing is waited for */
	finder->next = session->dirs->finders;
	session->dirs->finders = finder;
	*end = ends[1];
	return finder;
}

static void folders_that_are_not_read_are_counted(void **state)
{
	struct pem_confined_reply over = {.kind = PEM_CONFINED_OVER, .value = 1};
	static struct pem_trace_info info;
	int end[2], i;

	(void)state;
	pem_session__note_unread(session, &info);
	assert_int_equal(info.gap_count, 0);
	for (i = 0; i < 2; i++)
		add_finder(&end[i]);
	strcpy(over.name, "/tmp");
	for (i = 0; i < 3; i++)
		assert_int_equal(send(end[i % 2], &over, sizeof(over), 0), sizeof(over));
	pem_session__listen_to_finders(session);
	assert_int_equal(count_said("/tmp has more than 65536 names"), 1);
	assert_int_equal(count_said("user 1234"), 1);
	assert_int_equal(count_said("\n"), 1);
	pem_session__note_unread(session, &info);
	assert_int_equal(info.gap_count, 1);
	assert_non_null(strstr(info.gaps[0].reason, "was not read to its end 3 times"));
	pem_session__say_unread(session);
	assert_int_equal(count_said("was not read to its end 3 times"), 1);
	for (i = 0; i < 2; i++)
		close(end[i]);
}

static void one_folder_that_is_not_read_is_not_said_again(void **state)
{
	struct pem_confined_reply over = {.kind = PEM_CONFINED_OVER, .value = 1};
	int end;

	(void)state;
	add_finder(&end);
	memset(over.name, 7, sizeof(over.name)); /* without an end */
	assert_int_equal(send(end, &over, sizeof(over), 0), sizeof(over));
	pem_session__listen_to_finders(session);
	assert_int_equal(count_said("/dev/shm has more than 65536 names"), 1);
	pem_session__say_unread(session);
	assert_int_equal(count_said("\n"), 1);
	close(end);
}

static unsigned finders(void)
{
	const struct pem_finder *finder;
	unsigned count = 0;

	for (finder = session->dirs->finders; finder; finder = finder->next)
		count++;
	return count;
}

/* As it is when its helper was asked for an answer. */
static struct pem_finder *add_asked(int *end, bool once)
{
	struct pem_finder *finder = add_finder(end);

	finder->once = once;
	ask(finder, true);
	return finder;
}

static void send_reply(int end, enum pem_confined_reply_kind kind, uint32_t number)
{
	struct pem_confined_reply reply = {.kind = kind, .number = number};

	assert_int_equal(send(end, &reply, sizeof(reply), 0), sizeof(reply));
}

static void users_are_awaited_each_alone(void **state)
{
	struct pem_finder *finder;
	int end;

	(void)state;
	finder = add_asked(&end, false);
	assert_true(pem_session__awaits_helpers(session, PEM_ANY_USER));
	assert_true(pem_session__awaits_helpers(session, 1234));
	assert_false(pem_session__awaits_helpers(session, 1235));
	pem_session__stop_awaiting(session, 1235);
	assert_true(pem_session__awaits_helpers(session, 1234));
	send_reply(end, PEM_CONFINED_DONE, finder->awaited + 1);
	pem_session__listen_to_finders(session);
	assert_true(pem_session__awaits_helpers(session, 1234));
	send_reply(end, PEM_CONFINED_DONE, finder->awaited);
	pem_session__listen_to_finders(session);
	assert_false(pem_session__awaits_helpers(session, 1234));
	pem_session__stop_awaiting(session, PEM_ANY_USER);
	assert_string_equal(said, "");
	close(end);
}

/* A keeper of a user's, that is this test. */
static struct pem_dir *add_keeper(int *end)
{
	struct pem_finder *finder = add_finder(end);
	struct pem_dir *dir = calloc(1, sizeof(*dir));

	dir->number = ++session->dirs->numbers;
	dir->owner = finder->setup.uid;
	dir->runtime_fd = dir->directory_fd = -1;
	dir->keeper = finder->helper;
	session->dirs->first->next = dir;
	session->dirs->finders = finder->next;
	free(finder);
	return dir;
}

static void keepers_are_awaited_of_a_user_alone(void **state)
{
	struct pem_dir *dir;
	int end;

	(void)state;
	dir = add_keeper(&end);
	assert_false(pem_session__awaits_helpers(session, 1234));
	pem_session__ask_keepers(session, 1235);
	assert_false(pem_session__awaits_helpers(session, PEM_ANY_USER));
	pem_session__ask_keepers(session, 1234);
	assert_true(pem_session__awaits_helpers(session, 1234));
	assert_true(pem_session__awaits_helpers(session, PEM_ANY_USER));
	assert_false(pem_session__awaits_helpers(session, 1235));
	pem_session__stop_awaiting(session, 1235);
	assert_true(pem_session__awaits_helpers(session, 1234));
	pem_session__stop_awaiting(session, 1234);
	assert_false(pem_session__awaits_helpers(session, 1234));
	pem_session__ask_keepers(session, PEM_ANY_USER);
	send_reply(end, PEM_CONFINED_DONE, dir->asked);
	pem_session__scan_dirs(session);
	assert_false(pem_session__awaits_helpers(session, 1234));
	assert_string_equal(said, "");
	close(end);
}

static void late_helpers_are_said_once_and_heard(void **state)
{
	struct pem_finder *finder;
	int end[2], i;

	(void)state;
	finder = add_asked(&end[0], false);
	add_asked(&end[1], true);
	for (i = 0; i < 2; i++) {
		pem_session__stop_awaiting(session, i ? PEM_ANY_USER : 1234);
		assert_false(pem_session__awaits_helpers(session, PEM_ANY_USER));
		pem_session__listen_to_finders(session);
	}
	assert_int_equal(count_said("\n"), 1);
	assert_int_equal(count_said("of user 1234 does not answer"), 1);
	assert_int_equal(finders(), 2);
	send_reply(end[0], PEM_CONFINED_DONE, finder->awaited);
	pem_session__listen_to_finders(session);
	assert_int_equal(finder->awaited, 0);
	for (i = 0; i < 2; i++)
		close(end[i]);
}

/*
 * It ends when it has answered, when its helper has ended, or when the process is looked for anew;
 * and not by a look at all.
 */
static void finder_of_one_process_ends(void **state)
{
	struct pem_finder *finder;
	int end[2], i;

	(void)state;
	install_helper();
	finder = add_asked(&end[0], true);
	finder->pid = (uint32_t)getpid();
	for (i = 0; i < (int)USER_FINDERS_MAX; i++) {
		add_asked(&end[1], true)->shown_owner = geteuid();
		close(end[1]);
	}
	look();
	assert_true(finder->once && finder->awaited);
	/* Nor does it count as one of those of which a user has some only. */
	assert_string_equal(said, "");
	while (session->dirs->finders != finder)
		end_finder(&session->dirs->finders);
	finder = add_asked(&end[1], true);
	pem_session__listen_to_finders(session);
	assert_int_equal(finders(), 2);
	send_reply(end[1], PEM_CONFINED_DONE, finder->awaited);
	pem_session__listen_to_finders(session);
	assert_int_equal(finders(), 1);
	assert_true(pem_session__find_dirs_of(session, (uint32_t)getpid(), &owner));
	assert_int_equal(owner, geteuid());
	assert_int_equal(finders(), 1);
	while (finders()) {
		pem_session__listen_to_finders(session);
		usleep(100);
	}
	for (i = 0; i < 2; i++)
		close(end[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(helper_that_is_missing_is_tried_once, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(helper_that_is_there_is_started, set_up, tear_down),
		cmocka_unit_test_setup_teardown(want_of_descriptors_may_pass, set_up, tear_down),
		cmocka_unit_test_setup_teardown(users_over_a_limit_are_said_once_each, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(folders_over_the_limit_are_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(folders_that_are_not_read_are_counted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(one_folder_that_is_not_read_is_not_said_again,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(users_are_awaited_each_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keepers_are_awaited_of_a_user_alone, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(late_helpers_are_said_once_and_heard, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(finder_of_one_process_ends, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
