/* SPDX-License-Identifier: MIT */
/*
 * context_files.c - a pass tells which file a system call is on, and which arguments a process has
 */
#include "context_fixture.h"

enum { CALL_READ, CALL_WRITE, CALL_GETPID, CALL_OPENAT, CALL_UNLINK, CALL_FSTATAT };

/* A kernel's packet of CPU 0, on which thread 51 of process 50 runs. */
static void begin_packet(void)
{
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(1), 0, 0, 50, 51);
}

static void end_packet(void)
{
	packet_write(&packet, &fixture, "k_0");
}

/* Read on to the end of a call at T(n); it is on that file. NULL: it is not known. */
static void expect_file(int n, const char *path)
{
	const struct pem_pass_file *file;

	go_to(n);
	assert_int_equal(around.ended_count, 1);
	file = around.ended[0].interval->file;
	if (!path != !file || (path && strcmp(path, file->path)))
		fail_msg("at %d: '%s'", n, file ? file->path : "unknown");
}

static void a_call_is_on_the_file_that_its_descriptor_is(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_FILE, 3, "/etc/passwd");
	packet_pair(T(11), EVENT_SYSTEM_CALL, CALL_READ, 3);
	packet_pair(T(12), EVENT_RESULT, 0, 100);
	packet_pair(T(13), EVENT_SYSTEM_CALL, CALL_READ, 4); /* nothing was told of 4 */
	packet_pair(T(14), EVENT_RESULT, 0, 0);
	packet_pair(T(15), EVENT_SYSTEM_CALL, CALL_GETPID, 3); /* 3 is no descriptor */
	packet_pair(T(16), EVENT_RESULT, 0, 50);
	packet_text(T(17), EVENT_FILE, 3, "pipe:[77]");
	packet_pair(T(18), EVENT_SYSTEM_CALL, CALL_WRITE, 3);
	packet_pair(T(19), EVENT_RESULT, 0, 1);
	end_packet();
	start_pass();
	expect_file(12, "/etc/passwd");
	expect_file(14, NULL);
	expect_file(16, NULL);
	expect_file(19, "pipe:[77]");
	assert_int_equal(pem_pass__file_count(pass), 2);
	assert_string_equal(pem_pass__file(pass, 1)->path, "pipe:[77]");
	assert_null(pem_pass__file(pass, 2));
	end_pass();
}

static void addresses_of_sockets_are_short(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_FILE, 3, "tcp:[0000:0000:0000:0000:0000:0000:0000:0001]:80");
	packet_pair(T(11), EVENT_SYSTEM_CALL, CALL_READ, 3);
	packet_pair(T(12), EVENT_RESULT, 0, 1);
	packet_text(T(13), EVENT_FILE, 3,
		    "udp:[2001:0db8:0000:0000:0000:0000:0000:0001]:9 (local)");
	packet_pair(T(14), EVENT_SYSTEM_CALL, CALL_READ, 3);
	packet_pair(T(15), EVENT_RESULT, 0, 1);
	packet_text(T(16), EVENT_FILE, 3, "tcp:[zzzz:0000:0000:0000:0000:0000:0000:0001]:80");
	packet_pair(T(17), EVENT_SYSTEM_CALL, CALL_READ, 3);
	packet_pair(T(18), EVENT_RESULT, 0, 1);
	end_packet();
	start_pass();
	expect_file(12, "tcp:[::1]:80");
	expect_file(15, "udp:[2001:db8::1]:9 (local)");
	expect_file(18, "tcp:[zzzz:0000:0000:0000:0000:0000:0000:0001]:80");
	end_pass();
}

static void a_file_told_directly_behind_the_begin(void **state)
{
	(void)state;
	begin_packet();
	packet_pair(T(10), EVENT_SYSTEM_CALL, CALL_READ, 3);
	packet_text(T(11), EVENT_FILE, 4, "/not/this"); /* not of this call */
	packet_text(T(12), EVENT_FILE, 3, "/etc/passwd");
	packet_pair(T(13), EVENT_RESULT, 0, 100);
	packet_pair(T(14), EVENT_SYSTEM_CALL, CALL_READ, 4);
	packet_leave(T(15), 51, 1, 50, 52);
	packet_text(T(16), EVENT_FILE, 4, "/later"); /* another thread's call */
	packet_leave(T(17), 52, 1, 50, 51);
	packet_pair(T(18), EVENT_RESULT, 0, 100);
	end_packet();
	start_pass();
	expect_file(13, "/etc/passwd");
	expect_file(18, "/not/this");
	end_pass();
}

static void a_descriptor_is_of_one_process(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_FILE, 3, "/etc/passwd");
	packet_leave(T(11), 51, 1, 60, 60);
	packet_pair(T(12), EVENT_SYSTEM_CALL, CALL_READ, 3);
	packet_pair(T(13), EVENT_RESULT, 0, 100);
	packet_leave(T(14), 60, 1, 50, 52);
	packet_pair(T(15), EVENT_SYSTEM_CALL, CALL_READ, 3); /* another thread of the first one */
	packet_pair(T(16), EVENT_RESULT, 0, 100);
	end_packet();
	start_pass();
	expect_file(13, NULL);
	expect_file(16, "/etc/passwd");
	end_pass();
}

static void after_a_loss_a_file_is_told_again(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_FILE, 3, "/etc/passwd");
	end_packet();
	packet_next(&packet, T(20));
	packet.header.events_discarded = 1; /* what 3 has become may be among them */
	packet_leave(T(20), 0, 0, 50, 51);
	packet_pair(T(21), EVENT_SYSTEM_CALL, CALL_READ, 3);
	packet_pair(T(22), EVENT_RESULT, 0, 100);
	packet_text(T(23), EVENT_FILE, 3, "/etc/group");
	packet_pair(T(24), EVENT_SYSTEM_CALL, CALL_READ, 3);
	packet_pair(T(25), EVENT_RESULT, 0, 100);
	end_packet();
	start_pass();
	expect_file(22, NULL);
	expect_file(25, "/etc/group");
	end_pass();
}

static void a_call_is_on_the_file_of_its_path(void **state)
{
	(void)state;
	begin_packet();
	packet_pair(T(10), EVENT_SYSTEM_CALL, CALL_OPENAT, 3);
	packet_text(T(11), EVENT_PATH, CALL_OPENAT, "/etc/passwd");
	packet_pair(T(12), EVENT_RESULT, 0, 4);
	packet_text(T(13), EVENT_PATH, CALL_UNLINK, "old"); /* told before the begin */
	packet_pair(T(14), EVENT_SYSTEM_CALL, CALL_UNLINK, 0);
	packet_pair(T(15), EVENT_RESULT, 0, 0);
	packet_pair(T(16), EVENT_SYSTEM_CALL, CALL_UNLINK, 0); /* of this one nothing was told */
	packet_pair(T(17), EVENT_RESULT, 0, 0);
	packet_text(T(18), EVENT_PATH, CALL_OPENAT, "?"); /* it could not be read */
	packet_pair(T(19), EVENT_SYSTEM_CALL, CALL_OPENAT, 3);
	packet_pair(T(20), EVENT_RESULT, 0, 5);
	end_packet();
	start_pass();
	expect_file(12, "/etc/passwd");
	expect_file(15, "?/old"); /* in a folder that was not told */
	expect_file(17, NULL);
	expect_file(20, NULL);
	end_pass();
}

/* A call, what is told of it, and its end. */
static void add_call(int n, uint32_t call, uint32_t descriptor, const char *path)
{
	packet_pair(T(n), EVENT_SYSTEM_CALL, call, descriptor);
	packet_text(T(n + 1), EVENT_PATH, call, path);
	packet_pair(T(n + 2), EVENT_RESULT, 0, 0);
}

static void a_path_begins_in_a_folder(void **state)
{
	static char deep[101] = "", expected[128];

	(void)state;
	memset(deep, 'd', sizeof(deep) - 1);
	begin_packet();
	packet_text(T(10), EVENT_FILE, 3, "/usr/share");
	packet_text(T(11), EVENT_FILE, (uint32_t)-100, "/home/ada");
	add_call(20, CALL_OPENAT, 3, "doc/copyright");
	add_call(30, CALL_OPENAT, (uint32_t)-100, "doc/copyright");
	add_call(40, CALL_UNLINK, 3, ".//old"); /* its argument is no descriptor */
	add_call(50, CALL_OPENAT, 3, "/etc/passwd");
	add_call(60, CALL_OPENAT, 3, ".");
	packet_text(T(70), EVENT_FILE, (uint32_t)-100, "/");
	add_call(71, CALL_OPENAT, (uint32_t)-100, "boot");
	packet_text(T(80), EVENT_FILE, 3, ""); /* closed */
	add_call(81, CALL_OPENAT, 3, "doc");
	packet_text(T(90), EVENT_FILE, 3, "/a/folder/with/a/long/name");
	add_call(91, CALL_OPENAT, 3, deep);
	end_packet();
	start_pass();
	expect_file(22, "/usr/share/doc/copyright");
	expect_file(32, "/home/ada/doc/copyright");
	expect_file(42, "/home/ada/old");
	expect_file(52, "/etc/passwd");
	expect_file(62, "/usr/share");
	expect_file(73, "/boot");
	expect_file(83, "?/doc");
	snprintf(expected, sizeof(expected), "/a/folder/with/a/long/name/%s", deep);
	assert_int_equal(strlen(expected), 127);
	expect_file(93, expected);
	end_pass();
}

static void of_a_path_too_long_the_end_is_told(void **state)
{
	char deep[121] = "", expected[130];

	(void)state;
	memset(deep, 'd', sizeof(deep) - 1);
	begin_packet();
	packet_text(T(10), EVENT_FILE, 3, "/usr/share");
	add_call(20, CALL_OPENAT, 3, deep);
	end_packet();
	start_pass();
	/* 127 bytes in all. */
	snprintf(expected, sizeof(expected), "...are/%s", deep);
	assert_int_equal(strlen(expected), 127);
	expect_file(22, expected);
	end_pass();
}

static void a_folder_is_forgotten_with_a_loss(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_FILE, (uint32_t)-100, "/home/ada");
	end_packet();
	packet_next(&packet, T(15));
	packet.header.events_discarded = 1;
	packet_leave(T(18), 0, 0, 50, 51);
	add_call(20, CALL_OPENAT, (uint32_t)-100, "mail");
	end_packet();
	start_pass();
	expect_file(22, "?/mail");
	end_pass();
}

static void a_path_is_of_the_call_that_it_was_told_for(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_PATH, CALL_UNLINK, "old");
	packet_pair(T(11), EVENT_SYSTEM_CALL, CALL_GETPID, 0); /* its begin was not recorded */
	packet_pair(T(12), EVENT_RESULT, 0, 0);
	packet_pair(T(13), EVENT_SYSTEM_CALL, CALL_UNLINK, 0);
	packet_pair(T(14), EVENT_RESULT, 0, 0);
	packet_pair(T(15), EVENT_SYSTEM_CALL, CALL_UNLINK, 0);
	packet_leave(T(16), 51, 1, 50, 52);
	packet_text(T(17), EVENT_PATH, CALL_UNLINK, "other"); /* of another thread */
	packet_leave(T(18), 52, 1, 50, 51);
	packet_text(T(19), EVENT_PATH, CALL_OPENAT, "not this"); /* of another call */
	packet_pair(T(20), EVENT_RESULT, 0, 0);
	packet_text(T(21), EVENT_PATH, CALL_OPENAT, "lost");
	end_packet();
	packet_next(&packet, T(30));
	packet.header.events_discarded = 1;
	packet_leave(T(30), 0, 0, 50, 51);
	packet_pair(T(31), EVENT_SYSTEM_CALL, CALL_OPENAT, 3);
	packet_pair(T(32), EVENT_RESULT, 0, 0);
	end_packet();
	start_pass();
	expect_file(14, NULL);
	expect_file(20, NULL);
	expect_file(32, NULL);
	end_pass();
}

/* As of fstat of the C library, which calls newfstatat. */
static void a_call_with_an_empty_path_is_on_its_descriptor(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_FILE, 3, "/etc/passwd");
	packet_pair(T(11), EVENT_SYSTEM_CALL, CALL_FSTATAT, 3);
	packet_text(T(12), EVENT_PATH, CALL_FSTATAT, "(descriptor)");
	packet_pair(T(13), EVENT_RESULT, 0, 0);
	packet_text(T(14), EVENT_PATH, CALL_FSTATAT, "(descriptor)");
	packet_pair(T(15), EVENT_SYSTEM_CALL, CALL_FSTATAT, 3);
	packet_pair(T(16), EVENT_RESULT, 0, 0);
	packet_pair(T(17), EVENT_SYSTEM_CALL, CALL_FSTATAT, 4);
	packet_text(T(18), EVENT_PATH, CALL_FSTATAT, "(descriptor)");
	packet_text(T(19), EVENT_FILE, 4, "/etc/group"); /* told for this call */
	packet_pair(T(20), EVENT_RESULT, 0, 0);
	packet_pair(T(21), EVENT_SYSTEM_CALL, CALL_FSTATAT, 3); /* of a folder, and some path */
	packet_pair(T(22), EVENT_RESULT, 0, 0);
	end_packet();
	start_pass();
	expect_file(13, "/etc/passwd");
	expect_file(16, "/etc/passwd");
	expect_file(20, "/etc/group");
	expect_file(22, NULL);
	end_pass();
}

/* They fail. */
static void other_calls_with_an_empty_path_are_on_no_file(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_FILE, 3, "/usr");
	packet_text(T(11), EVENT_FILE, (uint32_t)-100, "/home/ada");
	add_call(20, CALL_OPENAT, 3, "(descriptor)");
	add_call(30, CALL_UNLINK, 0, "(descriptor)");
	add_call(40, CALL_FSTATAT, (uint32_t)-100, "(descriptor)");
	end_packet();
	start_pass();
	expect_file(22, NULL);
	expect_file(32, NULL);
	expect_file(42, "/home/ada");
	end_pass();
}

static void threads_may_have_a_folder_each(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_FILE, (uint32_t)-100, "/usr");
	packet_text(T(11), EVENT_FILE, 3, "/etc");
	add_call(20, CALL_OPENAT, (uint32_t)-100, "mine");
	packet_leave(T(30), 51, 1, 50, 52);
	add_call(31, CALL_OPENAT, (uint32_t)-100, "unknown");
	packet_text(T(40), EVENT_FILE, (uint32_t)-100, "/var");
	add_call(41, CALL_OPENAT, (uint32_t)-100, "its");
	add_call(51, CALL_OPENAT, 3, "ours");
	packet_leave(T(60), 52, 1, 50, 51);
	add_call(61, CALL_OPENAT, (uint32_t)-100, "mine");
	end_packet();
	start_pass();
	expect_file(22, "/usr/mine");
	expect_file(33, "?/unknown");
	expect_file(43, "/var/its");
	expect_file(53, "/etc/ours");
	expect_file(63, "/usr/mine");
	end_pass();
}

static const char *arguments_of(uint32_t pid)
{
	size_t i = pem_pass__process_count(pass);

	while (i-- > 0)
		if (pem_pass__process(pass, i)->pid == pid)
			return pem_pass__process(pass, i)->arguments;
	return "no process";
}

static void a_process_has_the_arguments_of_its_exec(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_PROGRAM, 50, "git");
	packet_text(T(11), EVENT_ARGUMENTS, 50, "git log -3");
	packet_start(T(12), 70, 70, 50);
	packet_simple(&packet, T(13), 1);
	packet_text(T(14), EVENT_ARGUMENTS, 70, "less -R"); /* they come first here */
	packet_text(T(15), EVENT_PROGRAM, 70, "less");
	packet_simple(&packet, T(16), 1);
	packet_text(T(17), EVENT_PROGRAM, 70, "more"); /* and are not told here */
	packet_simple(&packet, T(18), 1);
	end_packet();
	start_pass();
	go_to(10);
	assert_string_equal(arguments_of(50), "");
	go_to(13);
	assert_string_equal(arguments_of(50), "git log -3");
	assert_string_equal(arguments_of(70), "git log -3"); /* until it calls exec */
	go_to(16);
	assert_string_equal(arguments_of(70), "less -R");
	go_to(18);
	assert_string_equal(arguments_of(70), "");
	assert_string_equal(arguments_of(50), "git log -3");
	end_pass();
}

/* The program says its own name, too, and has no new arguments then. */
static void a_name_that_the_program_says_is_no_exec(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_PROGRAM, 50, "git");
	packet_text(T(11), EVENT_ARGUMENTS, 50, "git log -3");
	end_packet();
	packet_new(&packet, PEM_PACKET_USER, 50, 51, PEM_NO_CPU, T(0));
	packet_text(T(12), EVENT_PROGRAM, 50, "pager");
	packet_text(T(13), EVENT_PROGRAM, 50, "git");
	packet_write(&packet, &fixture, "u_50_0");
	start_pass();
	go_to(13);
	assert_string_equal(arguments_of(50), "git log -3");
	end_pass();
}

static void arguments_are_unknown_after_an_exec_in_a_loss(void **state)
{
	(void)state;
	begin_packet();
	packet_text(T(10), EVENT_PROGRAM, 50, "git");
	packet_text(T(11), EVENT_ARGUMENTS, 50, "git log -3");
	end_packet();
	packet_next(&packet, T(20));
	packet.header.events_discarded = 1; /* the arguments of the next program */
	packet_text(T(20), EVENT_PROGRAM, 50, "less");
	packet_simple(&packet, T(21), 1);
	end_packet();
	start_pass();
	go_to(21);
	assert_string_equal(arguments_of(50), "");
	end_pass();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_call_is_on_the_file_that_its_descriptor_is),
		TEST(addresses_of_sockets_are_short),
		TEST(a_file_told_directly_behind_the_begin),
		TEST(a_descriptor_is_of_one_process),
		TEST(after_a_loss_a_file_is_told_again),
		TEST(a_call_is_on_the_file_of_its_path),
		TEST(a_path_begins_in_a_folder),
		TEST(of_a_path_too_long_the_end_is_told),
		TEST(a_folder_is_forgotten_with_a_loss),
		TEST(a_path_is_of_the_call_that_it_was_told_for),
		TEST(a_call_with_an_empty_path_is_on_its_descriptor),
		TEST(other_calls_with_an_empty_path_are_on_no_file),
		TEST(threads_may_have_a_folder_each),
		TEST(a_process_has_the_arguments_of_its_exec),
		TEST(a_name_that_the_program_says_is_no_exec),
		TEST(arguments_are_unknown_after_an_exec_in_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
