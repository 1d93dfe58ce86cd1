// SPDX-License-Identifier: MIT
/*
 * producer_stack.c - how much stack a process's first event takes, raised by a handler on a stack
 * of its own
 */
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define STACK_BYTES (256u << 10)
#define PAINT 0x5a

static void raise_tick(int number)
{
	(void)number;
	pem_notify_probe_tick(1, 1);
}

static void raise_nothing(int number)
{
	(void)number;
}

/* Bytes of a signal stack that a handler and what it calls have touched. */
static size_t touched_by(void (*handler)(int))
{
	uint8_t *memory =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	stack_t stack = {.ss_sp = memory, .ss_size = STACK_BYTES};
	size_t i;

	memset(memory, PAINT, STACK_BYTES);
	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL) || raise(SIGUSR1))
		return STACK_BYTES;
	for (i = 0; i < STACK_BYTES && memory[i] == PAINT; i++)
		;
	return STACK_BYTES - i;
}

/* In KiB, rounded up; 255: the event was not counted. */
static int first_event(void)
{
	size_t bytes = touched_by(raise_tick) - touched_by(raise_nothing);
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		if (pem_process.joined[session_index].state == PEM_JOINED_POOL)
			return (int)((bytes + 1023) / 1024);
	}
	return 255;
}

static void first_event_leaves_most_of_a_small_stack(void **state)
{
	struct pem_session *session;
	struct pem_event_set *set;
	struct pem_error error = {""};
	struct pem_statistics *st;
	pid_t child;
	int status;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	print_message("# AddressSanitizer's red zones take several times what the program does\n");
	skip();
#endif
	session = session_open(NULL);
	set = events(session, "APP::Probe::Tick");
	st = pem_session__register_statistics(session, set, NULL, NULL, &error);
	assert_non_null(st);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	child = fork();
	if (!child)
		_exit(pem_process__join(session->directory) < 0 ? 254 : first_event());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_in_range(WEXITSTATUS(status), 1, 6); /* of 8 that SIGSTKSZ was for decades */
	pem_session__close(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_event_leaves_most_of_a_small_stack,
						folder_make, folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
