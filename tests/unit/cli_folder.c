// SPDX-License-Identifier: MIT
/* cli_folder.c - which folder a name stands for, and which folders are removed */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "cli/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STRANGER 65534
#define SKIPPED 77

static char base[] = "/tmp/pem-folder-XXXXXX";

static const char *below(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", base, name);
	return path;
}

static void make_file(const char *name)
{
	int fd = open(below(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_return_code(fd, errno);
	close(fd);
}

static bool exists(const char *name)
{
	struct stat st;

	return lstat(below(name), &st) == 0;
}

static int set_up(void **state)
{
	(void)state;
	strcpy(base, "/tmp/pem-folder-XXXXXX");
	assert_non_null(mkdtemp(base));
	return 0;
}

static int tear_down(void **state)
{
	struct cli_folder folder;

	(void)state;
	assert_int_equal(cli_folder__made(base, &folder), 0);
	assert_int_equal(cli_folder__remove(base, &folder), 0);
	return 0;
}

static void a_link_leads_to_its_folder(void **state)
{
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(mkdir(below("target"), 0700), 0);
	assert_int_equal(symlink("target", below("link")), 0);
	assert_int_equal(cli_folder__given(below("link"), path, sizeof(path)), CLI_DONE);
	assert_string_equal(path, below("target"));
	assert_int_equal(cli_folder__given(below("new"), path, sizeof(path)), CLI_DONE);
	assert_string_equal(path, below("new"));
}

static void a_link_that_leads_to_no_folder(void **state)
{
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(symlink("nowhere", below("link")), 0);
	make_file("file");
	assert_int_equal(symlink("file", below("to-file")), 0);
	assert_int_equal(cli_folder__given(below("link"), path, sizeof(path)), CLI_WRONG_INPUT);
	assert_int_equal(cli_folder__given(below("to-file"), path, sizeof(path)), CLI_WRONG_INPUT);
}

/* fs.protected_symlinks: in a folder for all, a link of another user is not followed. */
static void a_link_that_the_kernel_does_not_follow(void **state)
{
	char path[PATH_MAX], value = '0';
	int fd = open("/proc/sys/fs/protected_symlinks", O_RDONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0 || read(fd, &value, 1) != 1 || value == '0' || geteuid() != 0) {
		print_message("needs root, and fs.protected_symlinks=1\n");
		if (fd >= 0)
			close(fd);
		skip();
	}
	close(fd);
	assert_int_equal(mkdir(below("target"), 0700), 0);
	assert_int_equal(symlink("target", below("link")), 0);
	assert_int_equal(lchown(below("link"), STRANGER, STRANGER), 0);
	assert_int_equal(chmod(base, 01777), 0);
	assert_int_equal(cli_folder__given(below("link"), path, sizeof(path)), CLI_NOT_HERE);
}

static void a_name_that_is_too_long(void **state)
{
	char path[16];

	(void)state;
	assert_int_equal(cli_folder__given("0123456789abcdef", path, sizeof(path)),
			 CLI_WRONG_INPUT);
	assert_int_equal(symlink(base, below("link")), 0);
	assert_int_equal(cli_folder__given(below("link"), path, sizeof(path)), CLI_WRONG_INPUT);
}

static void another_folder_of_that_name_stays(void **state)
{
	struct cli_folder folder;

	(void)state;
	assert_int_equal(mkdir(below("made"), 0700), 0);
	assert_int_equal(cli_folder__made(below("made"), &folder), 0);
	assert_int_equal(rename(below("made"), below("moved")), 0);
	assert_int_equal(mkdir(below("made"), 0700), 0);
	make_file("made/notes");
	assert_int_equal(cli_folder__measure(below("made"), &folder), -ESTALE);
	assert_int_equal(cli_folder__remove(below("made"), &folder), -ESTALE);
	assert_true(exists("made/notes"));
	assert_true(exists("moved"));
}

static void a_folder_of_another_user_stays(void **state)
{
	struct cli_folder folder, same;

	(void)state;
	if (geteuid() != 0) {
		print_message("needs root: it gives a folder away\n");
		skip();
	}
	assert_int_equal(mkdir(below("made"), 0700), 0);
	assert_int_equal(cli_folder__made(below("made"), &folder), 0);
	assert_int_equal(chown(below("made"), STRANGER, STRANGER), 0);
	assert_int_equal(cli_folder__made(below("made"), &same), -EPERM);
	assert_int_equal(cli_folder__remove(below("made"), &folder), -EPERM);
	assert_true(exists("made"));
}

/* In a mount namespace of its own. Returns an exit status. */
static int remove_across_mount(void)
{
	struct cli_folder folder;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("pem-test", below("made/mounted"), "tmpfs", 0, NULL) < 0)
		return SKIPPED;
	make_file("made/mounted/notes");
	if (cli_folder__made(below("made"), &folder) != 0 ||
	    cli_folder__measure(below("made"), &folder) != -EIO ||
	    cli_folder__remove(below("made"), &folder) != -EIO)
		return 1;
	return exists("made/mounted/notes") ? 0 : 2;
}

static void a_mount_in_it_stays(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(mkdir(below("made"), 0700), 0);
	assert_int_equal(mkdir(below("made/mounted"), 0700), 0);
	pid = fork();
	assert_return_code(pid, errno);
	if (pid == 0)
		_exit(remove_across_mount());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		print_message("cannot mount a tmpfs (needs root)\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_link_leads_to_its_folder),
		TEST(a_link_that_leads_to_no_folder),
		TEST(a_link_that_the_kernel_does_not_follow),
		TEST(a_name_that_is_too_long),
		TEST(another_folder_of_that_name_stays),
		TEST(a_folder_of_another_user_stays),
		TEST(a_mount_in_it_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
