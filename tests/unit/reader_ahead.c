/* SPDX-License-Identifier: MIT */
/*
 * reader_ahead.c - a trace that a thread reads ahead is the same trace: records, names, losses and
 * damage at each position
 */
#include "trace_fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "reader_fixture.h"

#define STREAMS 4
#define PACKETS 80
#define RECORDS 1000 /* of a packet: some 15 MB in batches, which go round more than once */
#define PIDS 6

static uint64_t dice_state = 1;

/* Xorshift (Marsaglia, Xorshift RNGs, 2003). */
static uint32_t dice(uint32_t sides)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return (uint32_t)(dice_state >> 33) % sides;
}

static uint32_t any_process(void)
{
	return 50 + dice(PIDS);
}

/* A record of any kind. What names processes is rare, as in real traces. */
static void add_any(uint64_t clock, bool is_kernel)
{
	static const char *const names[] = {"/bin/sh", "tar", "/usr/bin/xz", "worker"};
	uint32_t pid = any_process();

	if (!is_kernel)
		packet_simple(&packet, clock, dice(1000));
	else if (dice(10) == 0)
		packet_switch(&packet, clock, any_process(), pid, pid);
	else if (dice(100) == 0)
		packet_fork(&packet, clock, any_process(), pid, pid);
	else if (dice(100) == 0)
		packet_exec(&packet, clock, pid, names[dice(4)]);
	else if (dice(100) == 0)
		packet_rename(&packet, clock, pid, names[dice(4)]);
	else
		packet_fault(&packet, clock);
}

static void write_stream(unsigned number)
{
	bool is_kernel = number < 2;
	char name[16];
	unsigned i, k;
	uint64_t clock = 10 + number;

	snprintf(name, sizeof(name), is_kernel ? "k_%u" : "u_5%u_0", number);
	for (i = 0; i < PACKETS; i++) {
		if (i)
			packet_next(&packet, T(clock));
		else
			packet_new(&packet, is_kernel ? PEM_PACKET_KERNEL : PEM_PACKET_USER,
				   is_kernel ? 0 : 50 + number, is_kernel ? 0 : 50 + number,
				   is_kernel ? number : PEM_NO_CPU, T(clock));
		if (dice(10) == 0)
			packet.header.events_discarded += 3;
		for (k = 0; k < RECORDS; k++)
			add_any(T(clock += dice(20)), is_kernel);
		/* In the last stream a packet in the middle has a record of no known event. */
		if (number == STREAMS - 1 && i == PACKETS / 2)
			packet_add(&packet, T(clock), 0xdead, NULL, 0);
		packet_write(&packet, &fixture, name);
	}
}

static void write_trace(void)
{
	char text[200];
	unsigned i;

	dice_state = 88172645463325252ull;
	snprintf(
		text, sizeof(text),
		"producer\t50\tfirst\t%llu\nproducer\t50\tsecond\t%llu\nproducer\t51\tother\t%llu\n"
		"end\n",
		T(0), T(100000), T(300000));
	fixture_text(&fixture, ".pem/balance", text);
	fixture_text(&fixture, ".pem/names", "52\tbefore\n52/52\tits-thread\n");
	for (i = 0; i < STREAMS; i++)
		write_stream(i);
}

/* What both traces say at this position is the same. */
static void compare_around(const struct pem_trace *a, const struct pem_trace *b)
{
	struct pem_trace_loss of_a = {.size = sizeof(of_a)}, of_b = {.size = sizeof(of_b)};
	size_t losses = pem_trace__loss_count(a);
	uint32_t pid;

	assert_int_equal(pem_trace__loss_count(b), losses);
	if (losses) {
		assert_int_equal(pem_trace__loss(a, losses - 1, &of_a), 0);
		assert_int_equal(pem_trace__loss(b, losses - 1, &of_b), 0);
		assert_memory_equal(&of_a, &of_b, sizeof(of_a));
	}
	for (pid = 50; pid < 50 + PIDS; pid++) {
		assert_string_equal(pem_trace__process_name(a, pid),
				    pem_trace__process_name(b, pid));
		assert_string_equal(pem_trace__thread_name(a, pid), pem_trace__thread_name(b, pid));
	}
}

/* Read n records or damages from both. Returns what the last call returned. */
static int read_both(struct pem_trace *a, struct pem_trace *b, size_t n)
{
	struct pem_record of_a = {.size = sizeof(of_a)}, of_b = {.size = sizeof(of_b)};
	int rc = 1;

	while (rc != 0 && n-- > 0) {
		struct pem_error error_a = {""}, error_b = {""};

		rc = pem_trace__next(a, &of_a, &error_a);
		assert_int_equal(pem_trace__next(b, &of_b, &error_b), rc);
		assert_string_equal(error_a.text, error_b.text);
		compare_around(a, b);
		if (rc != 1)
			continue;
		assert_string_equal(of_a.event->name, of_b.event->name);
		assert_memory_equal(of_a.data, of_b.data, of_a.bytes);
		of_a.event = of_b.event = NULL; /* each trace has its own */
		of_a.data = of_b.data = NULL;
		assert_memory_equal(&of_a, &of_b, sizeof(of_a));
	}
	return rc;
}

static bool has_no_thread;

/* In front of the C library's: a system may have no more threads. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
		   void *arg)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (has_no_thread)
		return EAGAIN;
	*(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
	return create(thread, attributes, start, arg);
}

static struct pem_trace *open_ahead(void)
{
	struct pem_trace *trace = open_trace();
	int rc = pem_trace__read_ahead(trace);

	if (rc == 0) {
		pem_trace__close(trace);
		print_message("SKIP: one CPU only\n");
		skip();
	}
	assert_int_equal(rc, 1);
	return trace;
}

static void compare_all(void)
{
	struct pem_trace *ahead, *here;
	int rc;

	write_trace();
	ahead = open_ahead();
	here = open_trace();
	rc = read_both(ahead, here, SIZE_MAX);
	assert_int_equal(rc, 0);
	assert_int_equal(read_both(ahead, here, 3), 0); /* the end stays the end */
	assert_true(pem_trace__loss_count(here) > 4);
	assert_int_equal(pem_trace__torn_packets(ahead), pem_trace__torn_packets(here));
	pem_trace__close(ahead);
	pem_trace__close(here);
}

static void what_is_read_is_the_same(void **state)
{
	(void)state;
	compare_all();
}

static void without_a_thread_the_caller_reads(void **state)
{
	(void)state;
	has_no_thread = true;
	compare_all();
	has_no_thread = false;
}

static void it_may_be_left_and_begun_again_anywhere(void **state)
{
	static const size_t lengths[] = {0, 1, 5000, 150000, SIZE_MAX, 7};
	struct pem_trace *ahead, *here;
	size_t i;

	(void)state;
	write_trace();
	ahead = open_ahead();
	here = open_trace();
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		read_both(ahead, here, lengths[i]);
		assert_int_equal(pem_trace__rewind(ahead), 0);
		assert_int_equal(pem_trace__rewind(here), 0);
		compare_around(ahead, here);
	}
	read_both(ahead, here, 100);
	pem_trace__close(ahead);
	pem_trace__close(here);
}

static void torn_packets_are_counted_at_the_end(void **state)
{
	struct pem_trace *ahead;
	struct pem_record record = {.size = sizeof(record)};
	size_t count = 0;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 50, 50, PEM_NO_CPU, T(10));
	packet_simple(&packet, T(10), 1);
	packet_write(&packet, &fixture, "u_50_0");
	fixture_write(&fixture, "u_50_0", &packet.header, 20, "a");
	ahead = open_ahead();
	while (pem_trace__next(ahead, &record, NULL) == 1)
		count++;
	assert_int_equal(count, 1);
	assert_int_equal(pem_trace__torn_packets(ahead), 1);
	pem_trace__close(ahead);
}

static void it_is_asked_for_before_the_first_record(void **state)
{
	struct pem_record record = {.size = sizeof(record)};
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 50, 50, PEM_NO_CPU, T(10));
	packet_simple(&packet, T(10), 1);
	packet_write(&packet, &fixture, "u_50_0");
	trace = open_trace();
	assert_int_equal(pem_trace__next(trace, &record, NULL), 1);
	assert_int_equal(pem_trace__read_ahead(trace), -EBUSY);
	pem_trace__close(trace);
}

static void with_one_cpu_there_is_no_thread(void **state)
{
	struct pem_trace *trace;
	cpu_set_t before, one;
	int cpu;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (cpu = 0; !CPU_ISSET(cpu, &before); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	trace = open_trace();
	assert_int_equal(pem_trace__read_ahead(trace), 0);
	pem_trace__close(trace);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_read_is_the_same),
		TEST(without_a_thread_the_caller_reads),
		TEST(it_may_be_left_and_begun_again_anywhere),
		TEST(torn_packets_are_counted_at_the_end),
		TEST(it_is_asked_for_before_the_first_record),
		TEST(with_one_cpu_there_is_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
