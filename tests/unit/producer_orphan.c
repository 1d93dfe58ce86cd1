// SPDX-License-Identifier: MIT
/*
 * producer_orphan.c - a process whose consumer was killed: when it notices without ever being in
 * need of a chunk
 *
 * Not here: one that logs (process_life.py), entries of dead consumers (entry_alive.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static pid_t consumer;
static int session_index;

static void consume(int out)
{
	struct pem_session *session = session_open(NULL);
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, NULL, NULL, &error);

	if (!st || pem_statistics__enable(st) ||
	    write(out, session->directory, sizeof(session->directory)) < 0)
		_exit(1);
	pause();
	_exit(1);
}

static int set_up(void **state)
{
	static char directory[sizeof(((struct pem_session *)0)->directory)];
	int out[2];

	if (folder_make(state) || pipe(out))
		return -1;
	consumer = fork();
	if (!consumer)
		consume(out[1]);
	close(out[1]);
	if (read(out[0], directory, sizeof(directory)) != sizeof(directory))
		return -1;
	close(out[0]);
	session_index = pem_process__join(directory);
	return session_index < 0;
}

static int tear_down(void **state)
{
	pem_process__leave((unsigned)session_index);
	return folder_remove(state);
}

static void kill_consumer(void)
{
	kill(consumer, SIGKILL);
	assert_int_equal(waitpid(consumer, NULL, 0), consumer);
	pem_process.joined[session_index].checked_at = 0; /* it looks once a second at most */
}

static bool is_enabled(void)
{
	const struct pem_provider *provider;
	const uint8_t *enable;
	uint8_t bits = 0;
	uint32_t i;

	for (provider = pem_process.providers; provider; provider = provider->next) {
		enable = (const uint8_t *)provider->page + sizeof(struct pem_control_header);
		for (i = 0; i < provider->event_count; i++)
			bits |= enable[i];
	}
	return bits >> session_index & 1;
}

static void *tick(void *arg)
{
	pem_notify_probe_tick(1, 1);
	return arg;
}

static void tick_in_thread(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, tick, NULL), 0);
	pthread_join(thread, NULL);
}

static void a_thread_that_starts_notices(void **state)
{
	(void)state;
	tick(NULL);
	pem_process.joined[session_index].checked_at = 0;
	tick_in_thread();
	assert_true(is_enabled());
	kill_consumer();
	tick(NULL);
	assert_true(is_enabled()); /* as architecture.md says */
	tick_in_thread();
	assert_false(is_enabled());
}

static void a_library_that_is_loaded_notices(void **state)
{
	struct pem_provider *provider = pem_process.providers;

	(void)state;
	tick(NULL);
	kill_consumer();
	assert_true(is_enabled());
	assert_int_equal(pem_provider_register(provider), 0);
	assert_false(is_enabled());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_that_starts_notices),
		TEST(a_library_that_is_loaded_notices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
