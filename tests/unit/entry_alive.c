// SPDX-License-Identifier: MIT
/*
 * entry_alive.c - the lock by which others know that a session has a consumer, and entries of
 * consumers that died
 */
#include "session_fixture.h"

#include "entry.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void session_lives_while_its_lock_is_held(void **state)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	(void)state;
	assert_false(pem_alive__check(folder));
	fd = pem_alive__hold(directory);
	assert_true(fd >= 0 && fd != directory);
	assert_true(pem_alive__check(folder));
	pem_alive__release(fd);
	assert_false(pem_alive__check(folder));
	close(directory);
}

static void nobody_is_waited_for_without_end(void **state)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int other = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(flock(other, LOCK_SH), 0);
	assert_int_equal(pem_alive__hold(directory), -EWOULDBLOCK);
	close(other);
	close(directory);
}

static bool has_consumer(void *arg, const char *name)
{
	char path[256];

	(void)arg;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return pem_alive__check(path);
}

/*
 * A child that has the lock on a session's folder and takes an entry of the table, and ends when
 * killed.
 */
static pid_t start_consumer(struct pem_session_entry *table, const char *name, bool offers)
{
	struct pem_session_entry wanted = {.session_id = 7};
	int directory, done[2];
	char path[128], c = 0;
	uint64_t word;
	pid_t child;

	strcpy(wanted.folder, name);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0700) | pipe(done), 0);
	child = fork();
	if (!child) {
		directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (pem_alive__hold(directory) < 0 ||
		    pem_entry__take(table, has_consumer, NULL, name, &word) != PEM_SESSIONS_MAX - 1)
			_exit(1);
		if (offers)
			pem_entry__offer(table, PEM_SESSIONS_MAX - 1, &word, &wanted, false);
		(void)!write(done[1], &c, 1);
		pause();
		_exit(1);
	}
	close(done[1]);
	assert_int_equal(read(done[0], &c, 1), 1);
	close(done[0]);
	return child;
}

static void takes_after_death(bool offers)
{
	struct pem_session_entry *table =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t word, before;
	int i, status;
	pid_t child;

	assert_true(table != MAP_FAILED);
	/* All others are the process's own, whoever lives. */
	for (i = 0; i < (int)PEM_SESSIONS_MAX - 1; i++)
		assert_int_equal(pem_entry__take(table, has_consumer, NULL, "", &word), i);
	child = start_consumer(table, "session-4194303-999", offers);
	before = table[i].word;
	assert_int_equal(PEM_ENTRY_STATE(before), offers ? PEM_ENTRY_OFFERED : PEM_ENTRY_TAKEN);
	/* It may be stopped as long as it likes: what it has begun it may yet finish. */
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(pem_entry__take(table, has_consumer, NULL, "session-2-0", &word), -EUSERS);
	assert_true(table[i].word == before);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(pem_entry__take(table, has_consumer, NULL, "session-2-0", &word), i);
	pem_entry__give_back(&table[i], before); /* as by the one before */
	assert_true(table[i].word == word);
	assert_int_equal(PEM_ENTRY_STATE(word), PEM_ENTRY_TAKEN);
	munmap(table, 4096);
}

static void entry_taken_by_one_that_was_killed_is_taken_back(void **state)
{
	(void)state;
	takes_after_death(false);
}

static void entry_offered_by_one_that_was_killed_is_taken_back(void **state)
{
	(void)state;
	takes_after_death(true);
}

static void folders_of_other_names_are_nobodys(void **state)
{
	static const char *const names[] = {"session-",
					    "session-1",
					    "session-1-",
					    "session-x-1",
					    "session-1-x",
					    "session-1-1x",
					    "session-4194304-0",
					    "session-1-1024",
					    "session-99999999999999-1",
					    "control-1-1",
					    ""};
	struct pem_session_entry table[PEM_SESSIONS_MAX] = {0};
	uint64_t word;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(pem_entry__take(table, has_consumer, NULL, names[i], &word), 0);
		assert_int_equal(PEM_ENTRY_CONSUMER(word), 0);
		pem_entry__give_back(&table[0], word);
	}
	assert_int_equal(pem_entry__take(table, has_consumer, NULL, "session-4194303-1023", &word),
			 0);
	assert_int_equal(PEM_ENTRY_CONSUMER(word), PEM_CONSUMER(4194303, 1023));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(session_lives_while_its_lock_is_held, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(nobody_is_waited_for_without_end, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(entry_taken_by_one_that_was_killed_is_taken_back,
						folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(entry_offered_by_one_that_was_killed_is_taken_back,
						folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(folders_of_other_names_are_nobodys, folder_make,
						folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
