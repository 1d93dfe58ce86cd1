/* SPDX-License-Identifier: MIT */
/*
 * counters_mapped.c - which files that programs have mapped are copied for names
 *
 * Not here: names by these copies (e2e/record_gone).
 */
#include "sources/counters/counters.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "mapped-XXXXXX";
static struct mapped_files *files;
static unsigned kept;

static void keep(void *arg, const uint8_t *build_id, size_t build_id_bytes, int fd,
		 uint64_t file_bytes)
{
	char text[8] = "";

	(void)arg;
	assert_int_equal(build_id_bytes, 20);
	assert_int_equal(build_id[0], 1);
	assert_int_equal(file_bytes, 4);
	assert_int_equal(read(fd, text, sizeof(text)), 4);
	assert_string_equal(text, "code");
	kept++;
}

static const struct pem_source_sink sink = {.keep_file = keep};

static int set_up(void **state)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	(void)state;
	kept = 0;
	files = mapped_files__new();
	fd = files && !chdir(folder ? folder : "/tmp") ? mkstemp(strcpy(path, "mapped-XXXXXX"))
						       : -1;
	if (fd < 0 || write(fd, "code", 4) != 4)
		return -1;
	return close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	free(files);
	return unlink(path);
}

/* A process maps the file, as the kernel tells it. */
static void map_by(pid_t pid)
{
	struct ring_map map = {
		.pid = (uint32_t)pid, .is_file = 1, .build_id_bytes = 20, .build_id = {1, 2, 3}};

	assert_non_null(realpath(path, map.path));
	mapped_files__take(files, &map, &sink);
}

/* Its number is used by no other process as long as it is a child. */
static pid_t one_that_ended(void)
{
	pid_t pid = fork();
	siginfo_t end;

	if (!pid)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
	return pid;
}

static void a_young_file_is_kept_once(void **state)
{
	(void)state;
	map_by(getpid());
	map_by(getpid());
	assert_int_equal(kept, 1);
}

static void what_an_ended_process_mapped_is_kept_of_the_next_one(void **state)
{
	pid_t ended = one_that_ended();

	(void)state;
	map_by(ended);
	assert_int_equal(kept, 0);
	assert_int_equal(waitpid(ended, NULL, 0), ended);
	map_by(ended);
	assert_int_equal(kept, 0);
	map_by(getpid());
	assert_int_equal(kept, 1);
}

static void what_is_not_this_users_is_judged_once(void **state)
{
	(void)state;
	if (geteuid() || chown(path, 1, 1))
		skip();
	map_by(getpid());
	assert_int_equal(chown(path, 0, 0), 0);
	map_by(getpid());
	assert_int_equal(kept, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_young_file_is_kept_once),
		TEST(what_an_ended_process_mapped_is_kept_of_the_next_one),
		TEST(what_is_not_this_users_is_judged_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
