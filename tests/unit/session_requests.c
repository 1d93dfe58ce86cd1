// SPDX-License-Identifier: MIT
/*
 * session_requests.c - what programs send to a flight recorder's socket that are no requests, and
 * what that costs it
 *
 * Not here: requests (tests/e2e/cli_snapshot.py), and messages at random (tests/fuzz/requests.c).
 */
#include "core/core.h"
#include "flight/flight.h"
#include "session_fixture.h"

#include "descriptors.h"
#include "programs/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define TICK "APP::Probe::Tick"
#define WAITING_MAX 64u

static struct pem_session *session;

static int set_up(void **state)
{
	const struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = 4096, .chunk_count = 16, .overwrite = 1};
	const struct pem_context self = {.pid = (uint32_t)getpid()};

	if (folder_make(state))
		return -1;
	session = session_open(&options);
	log_to_trace(session, TICK, &self);
	return session->flight->serve_fd < 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

/* A program's connection to the recorder; -1 with errno. */
static int connect_to_it(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), code;

	assert_true(fd >= 0);
	assert_true(snprintf(address.sun_path, sizeof(address.sun_path), "%s/snapshot",
			     session->directory) < (int)sizeof(address.sun_path));
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	code = errno;
	close(fd);
	errno = code;
	return -1;
}

/* Send a descriptor count times, and a text of so many bytes. */
static void send_to_it(int fd, int what, unsigned count, size_t bytes)
{
	static char text[4096];
	int fds[DESCRIPTORS_MAX];
	unsigned i;

	for (i = 0; i < count; i++)
		fds[i] = what;
	assert_int_equal(send_descriptors(fd, text, bytes, fds, count, MSG_NOSIGNAL), bytes);
}

/*
 * Have the recorder take a message: it hangs up without a word, and has as many descriptors as
 * before.
 */
static void is_refused(int what, unsigned count, size_t bytes)
{
	unsigned before = count_descriptors();
	int fd = connect_to_it();
	char answer;

	assert_true(fd >= 0);
	send_to_it(fd, what, count, bytes);
	pem_session__answer_requests(session);
	assert_int_equal(session->flight->asking_fd, -1);
	assert_int_equal(recv(fd, &answer, 1, MSG_DONTWAIT), 0);
	close(fd);
	assert_int_equal(count_descriptors(), before);
}

static void leaves_no_descriptor_open(void **state)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned round;

	(void)state;
	for (round = 0; round < 3; round++) {
		is_refused(directory, 2, 1);
		is_refused(directory, 3, 1);
		is_refused(directory, DESCRIPTORS_MAX, 1);
		is_refused(file, 1, 1);
		is_refused(file, 2, 1);
		is_refused(directory, 1, 4096); /* no cause is that long */
	}
	close(directory);
	close(file);
}

/* The recorder is not asked to answer meanwhile, as one that is stopped. */
static void is_found_while_others_fill_its_queue(void **state)
{
	char wanted[sizeof(((struct pem_recorder *)0)->session)], path[128];
	struct pem_error error = {""};
	struct pem_recorder found[4] = {{.size = sizeof(found[0])}};
	int waiting[WAITING_MAX];
	unsigned count = 0, i;

	(void)state;
	while (count < WAITING_MAX && (waiting[count] = connect_to_it()) >= 0)
		count++;
	assert_in_range(count, 1, WAITING_MAX - 1);
	assert_int_equal(errno, EAGAIN);
	alarm(600); /* whoever waits for ever would be killed */
	assert_int_equal(pem_recorders(found, 4), 1);
	snprintf(wanted, sizeof(wanted), "%s", strrchr(session->directory, '/') + 1);
	assert_string_equal(found[0].session, wanted);
	assert_true(found[0].is_running);
	snprintf(path, sizeof(path), "%s/snapshot", folder);
	assert_int_equal(pem_recorder__snapshot(&found[0], path, NULL, 10, &error), -EBUSY);
	assert_non_null(strstr(error.text, "does not answer"));
	assert_int_equal(access(path, F_OK), -1);
	alarm(0);
	for (i = 0; i < count; i++)
		close(waiting[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(leaves_no_descriptor_open),
		TEST(is_found_while_others_fill_its_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
