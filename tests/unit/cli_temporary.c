// SPDX-License-Identifier: MIT
/* cli_temporary.c - where a folder for files of one run is made, and where not */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char base[PATH_MAX];

static const char *below(const char *name)
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

static int set_up(void **state)
{
	char root[] = "/tmp/pem-temporary-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(root));
	strcpy(base, root);
	assert_int_equal(mkdir(below("own"), 0700), 0);
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("TMPDIR");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(below("link"));
	rmdir(below("own/below"));
	rmdir(below("own"));
	return rmdir(base);
}

/* Make a folder. Is it in this one? */
static bool is_made_in(const char *folder)
{
	char path[PATH_MAX];
	struct stat st;
	bool is_there;

	assert_int_equal(cli_temporary__folder("pem-test", path, sizeof(path)), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	is_there = !strncmp(path, folder, strlen(folder)) &&
		   !strncmp(path + strlen(folder), "/pem-test-", 10);
	rmdir(path);
	return is_there;
}

static void the_runtime_directory_comes_before_tmpdir(void **state)
{
	(void)state;
	setenv("TMPDIR", base, 1);
	assert_true(is_made_in(base));
	setenv("XDG_RUNTIME_DIR", below("own"), 1);
	assert_true(is_made_in(below("own")));
	setenv("XDG_RUNTIME_DIR", below("missing"), 1);
	assert_true(is_made_in(base));
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("TMPDIR");
	assert_true(is_made_in("/tmp"));
}

static void a_relative_path_is_none(void **state)
{
	(void)state;
	setenv("TMPDIR", ".", 1);
	assert_true(is_made_in("/tmp"));
}

static void a_folder_that_others_may_change_is_not_used(void **state)
{
	(void)state;
	setenv("TMPDIR", below("own"), 1);
	assert_int_equal(chmod(below("own"), 0777), 0);
	assert_true(is_made_in("/tmp"));
	assert_int_equal(chmod(below("own"), 0770), 0);
	assert_true(is_made_in("/tmp"));
	assert_int_equal(chmod(below("own"), 01777), 0);
	assert_true(is_made_in(below("own")));
}

static void nor_one_below(void **state)
{
	(void)state;
	assert_int_equal(mkdir(below("own/below"), 0700), 0);
	setenv("TMPDIR", below("own/below"), 1);
	assert_true(is_made_in(below("own/below")));
	assert_int_equal(chmod(below("own"), 0777), 0);
	assert_true(is_made_in("/tmp"));
}

static void a_link_is_what_it_leads_to(void **state)
{
	char own[PATH_MAX + 64];

	(void)state;
	strcpy(own, below("own"));
	assert_int_equal(symlink(own, below("link")), 0);
	setenv("TMPDIR", below("link"), 1);
	assert_true(is_made_in(own));
}

static void another_user_s_folder_is_not_used(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chown(below("own"), 12345, 12345), 0);
	setenv("TMPDIR", below("own"), 1);
	assert_true(is_made_in("/tmp"));
}

static void a_path_without_room_is_not_made(void **state)
{
	char path[12] = "x";

	(void)state;
	setenv("TMPDIR", base, 1);
	assert_int_equal(cli_temporary__folder("pem-test", path, sizeof(path)), -ENAMETOOLONG);
	assert_string_equal(path, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_runtime_directory_comes_before_tmpdir),
		TEST(a_relative_path_is_none),
		TEST(a_folder_that_others_may_change_is_not_used),
		TEST(nor_one_below),
		TEST(a_link_is_what_it_leads_to),
		TEST(another_user_s_folder_is_not_used),
		TEST(a_path_without_room_is_not_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
