// SPDX-License-Identifier: MIT
/*
 * writer_others.c - a trace being written, in whose folder another user puts files or which is that
 * user's
 */
#include "writer/trace_writer.h"
#include "session_fixture.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define OTHER_USER 65533
#define STREAMS 300 /* more than may be open at once */

static struct pem_model *model;
static struct pem_trace_writer *writer;
static int trace_fd;

static const struct pem_trace_info info = {
	.host = "here", .start_time_ns = 1000000000, .start_clock = 1, .clock_hz = 1000000000};

static int set_up(void **state)
{
	struct pem_error error = {""};

	if (folder_make(state))
		return -1;
	model = pem_model__new();
	pem_model__add_catalogue(model, &error);
	writer = pem_trace_writer__new(trace_path, model, &info, &error);
	trace_fd = open(trace_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return writer && trace_fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	close(trace_fd);
	pem_trace_writer__free(writer);
	pem_model__free(model);
	return folder_remove(state);
}

static int put(unsigned int stream)
{
	union {
		struct pem_packet packet;
		uint8_t bytes[4096];
	} u = {.packet = {.content_size = (PEM_PACKET_HEADER_BYTES + 16) * 8, .record_count = 1}};
	char name[32];

	snprintf(name, sizeof(name), "u_%u_0_1", stream);
	return pem_trace_writer__packet(writer, name, &u.packet, sizeof(u));
}

/* Write to more streams than may be open, so that the first one is closed. */
static void close_the_first_stream(void)
{
	unsigned int i;

	for (i = 0; i < STREAMS; i++)
		assert_int_equal(put(i), 0);
}

static void a_file_in_the_place_of_a_stream_gets_nothing(void **state)
{
	struct stat st;
	int fd;

	(void)state;
	close_the_first_stream();
	assert_int_equal(renameat(trace_fd, "u_0_0_1", trace_fd, "u_away"), 0);
	fd = openat(trace_fd, "u_0_0_1", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(put(0), -ESTALE);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	close(fd);
}

static void a_pipe_in_the_place_of_a_stream_is_not_waited_for(void **state)
{
	(void)state;
	close_the_first_stream();
	assert_int_equal(unlinkat(trace_fd, "u_0_0_1", 0), 0);
	assert_int_equal(mkfifoat(trace_fd, "u_0_0_1", 0600), 0);
	assert_int_equal(put(0), -ENXIO);
}

/* A reader is there: the pipe is written to, rather than waited for, by who opens it. */
static void a_pipe_with_the_name_of_a_new_file_is_not_opened(void **state)
{
	struct stat st;
	char byte;
	int fd;

	(void)state;
	assert_int_equal(mkfifoat(trace_fd, "metadata.new", 0600), 0);
	fd = openat(trace_fd, "metadata.new", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pem_trace_writer__model_changed(writer), 0);
	assert_int_equal(read(fd, &byte, 1), -1);
	assert_int_equal(fstatat(trace_fd, "metadata", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(st.st_mode));
	close(fd);
}

static void a_file_linked_as_a_new_file_stays(void **state)
{
	static const char text[] = "precious";
	char read_back[sizeof(text)];
	int fd = openat(trace_fd, "victim", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(pem_write_all(fd, text, sizeof(text)), 0);
	assert_int_equal(linkat(trace_fd, "victim", trace_fd, "metadata.new", 0), 0);
	assert_int_equal(pem_trace_writer__model_changed(writer), 0);
	assert_int_equal(pread(fd, read_back, sizeof(text), 0), sizeof(text));
	assert_string_equal(read_back, text);
	close(fd);
}

static void a_folder_of_another_user_is_refused(void **state)
{
	struct pem_trace_writer *other;
	struct pem_error error = {""};
	char path[PATH_MAX];

	(void)state;
	if (geteuid())
		skip(); /* only root can make a folder of another user */
	snprintf(path, sizeof(path), "%s/theirs", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chown(path, OTHER_USER, OTHER_USER), 0);
	other = pem_trace_writer__new(path, model, &info, &error);
	assert_null(other);
	assert_int_equal(errno, EPERM);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, "belongs to user 65533"));
	assert_int_equal(rmdir(path), 0); /* nothing was written there */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_file_in_the_place_of_a_stream_gets_nothing),
		TEST(a_pipe_in_the_place_of_a_stream_is_not_waited_for),
		TEST(a_pipe_with_the_name_of_a_new_file_is_not_opened),
		TEST(a_file_linked_as_a_new_file_stays),
		TEST(a_folder_of_another_user_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
