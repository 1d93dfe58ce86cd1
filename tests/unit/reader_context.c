/* SPDX-License-Identifier: MIT */
/*
 * reader_context.c - the reader recovers who raised a kernel record, and admits when it can't
 */
#include "trace_fixture.h"

#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>

#include "reader_fixture.h"

/* The next record must be at T(n), of this event, process and thread. */
static void expect(struct pem_trace *trace, int n, uint32_t id, uint32_t pid, uint32_t tid)
{
	struct pem_error error = {"the end"};
	struct pem_record r = {.size = sizeof(r)};

	if (pem_trace__next(trace, &r, &error) != 1)
		fail_msg("at %d: %s", n, error.text);
	if (r.clock != T(n) || r.event->id != id || r.pid != pid || r.tid != tid)
		fail_msg("wanted %d: %#x by %u/%u, got %d: %#x by %u/%u", n, id, pid, tid,
			 (int)(r.clock - FIXTURE_START), r.event->id, r.pid, r.tid);
}

static void gives_kernel_records_the_thread_of_their_cpu(void **state)
{
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_fault(&packet, T(1));
	packet_switch(&packet, T(10), 0, 50, 51);
	packet_fault(&packet, T(20));
	packet_switch(&packet, T(30), 51, 60, 61);
	packet_fault(&packet, T(40));
	packet_switch(&packet, T(50), 61, 0, 0);
	packet_fault(&packet, T(60));
	packet_write(&packet, &fixture, "k_0");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 1, T(0));
	packet_fault(&packet, T(21));
	packet_switch(&packet, T(22), 0, 70, 71);
	packet_fault(&packet, T(41));
	packet_write(&packet, &fixture, "k_1");
	packet_new(&packet, PEM_PACKET_USER, 60, 61, PEM_NO_CPU, T(0));
	packet_simple(&packet, T(35), 1);
	packet_write(&packet, &fixture, "u_60_0");
	packet_new(&packet, PEM_PACKET_COUNTER, 60, 0, PEM_NO_CPU, T(0));
	packet_add(&packet, T(36), EVENT_CYCLES, "\1\0\0\0\0\0\0", 8);
	packet_write(&packet, &fixture, "c_0");

	trace = open_trace();
	expect(trace, 1, EVENT_FAULT, 0, 0); /* nothing is known yet */
	expect(trace, 10, EVENT_SWITCH, 0, 0); /* the idle thread leaves */
	expect(trace, 20, EVENT_FAULT, 50, 51);
	expect(trace, 21, EVENT_FAULT, 0, 0); /* the other CPU */
	expect(trace, 22, EVENT_SWITCH, 0, 0);
	expect(trace, 30, EVENT_SWITCH, 50, 51); /* raised by who leaves */
	expect(trace, 35, EVENT_SIMPLE, 60, 61);
	expect(trace, 36, EVENT_CYCLES, 60, 0);
	expect(trace, 40, EVENT_FAULT, 60, 61);
	expect(trace, 41, EVENT_FAULT, 70, 71);
	expect(trace, 50, EVENT_SWITCH, 60, 61);
	expect(trace, 60, EVENT_FAULT, 0, 0); /* idle */
	pem_trace__close(trace);
}

static void forgets_after_a_loss_on_that_cpu_only(void **state)
{
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_switch(&packet, T(10), 0, 50, 51);
	packet_fault(&packet, T(11));
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(20));
	packet_fault(&packet, T(20)); /* no loss between the packets: still known */
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(30));
	packet.header.events_discarded = 3;
	packet_fault(&packet, T(30)); /* lost before this packet, or within */
	packet_switch(&packet, T(31), 51, 60, 61);
	packet_fault(&packet, T(32));
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(40));
	packet_fault(&packet, T(40)); /* lost perhaps after the last switch */
	packet_switch(&packet, T(41), 61, 50, 51);
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(50));
	packet_fault(&packet, T(50)); /* known again, and no further loss */
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(60));
	packet.header.packet_seq_num += 2; /* packets are missing */
	packet_fault(&packet, T(60));
	packet_write(&packet, &fixture, "k_0");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 1, T(0));
	packet_switch(&packet, T(12), 0, 70, 71);
	packet_fault(&packet, T(33));
	packet_write(&packet, &fixture, "k_1");

	trace = open_trace();
	expect(trace, 10, EVENT_SWITCH, 0, 0);
	expect(trace, 11, EVENT_FAULT, 50, 51);
	expect(trace, 12, EVENT_SWITCH, 0, 0);
	expect(trace, 20, EVENT_FAULT, 50, 51);
	expect(trace, 30, EVENT_FAULT, 0, 0);
	/* it says who leaves; whose thread is remembered */
	expect(trace, 31, EVENT_SWITCH, 50, 51);
	expect(trace, 32, EVENT_FAULT, 60, 61);
	expect(trace, 33, EVENT_FAULT, 70, 71); /* the other CPU lost nothing */
	expect(trace, 40, EVENT_FAULT, 0, 0);
	expect(trace, 41, EVENT_SWITCH, 60, 61);
	expect(trace, 50, EVENT_FAULT, 50, 51);
	expect(trace, 60, EVENT_FAULT, 0, 0);
	pem_trace__close(trace);
}

static void remembers_a_loss_across_an_empty_packet(void **state)
{
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_switch(&packet, T(10), 0, 50, 51);
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(20));
	packet.header.events_discarded = 1;
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(20));
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(30));
	packet_fault(&packet, T(30));
	packet_write(&packet, &fixture, "k_0");
	trace = open_trace();
	expect(trace, 10, EVENT_SWITCH, 0, 0);
	expect(trace, 30, EVENT_FAULT, 0, 0);
	pem_trace__close(trace);
}

static void learns_from_what_only_the_running_process_raises(void **state)
{
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_fault(&packet, T(1));
	packet_exec(&packet, T(2), 50, "/bin/true");
	packet_fault(&packet, T(3));
	packet_write(&packet, &fixture, "k_0");
	trace = open_trace();
	expect(trace, 1, EVENT_FAULT, 0, 0);
	expect(trace, 2, EVENT_EXEC, 50, 0);
	expect(trace, 3, EVENT_FAULT, 50, 0);
	pem_trace__close(trace);
}

static void names_processes_as_they_go(void **state)
{
	struct pem_trace *trace;
	int pass;

	(void)state;
	fixture_text(&fixture, ".pem/balance", "producer\t50\tsh\nproducer\t50\tlater\nend\n");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_switch(&packet, T(10), 0, 50, 50);
	packet_fork(&packet, T(20), 50, 60, 60);
	packet_fork(&packet, T(25), 50, 50, 52); /* a thread: no process of its own */
	packet_exec(&packet, T(30), 60, "/usr/bin/sqlite3");
	packet_exec(&packet, T(40), 60, "plain");
	packet_write(&packet, &fixture, "k_0");
	trace = open_trace();
	for (pass = 0; pass < 2; pass++) {
		expect(trace, 10, EVENT_SWITCH, 0, 0);
		assert_string_equal(pem_trace__process_name(trace, 50), "sh");
		assert_string_equal(pem_trace__process_name(trace, 60), "");
		expect(trace, 20, EVENT_FORK, 50, 50);
		assert_string_equal(pem_trace__process_name(trace, 60), "sh");
		expect(trace, 25, EVENT_FORK, 50, 50);
		expect(trace, 30, EVENT_EXEC, 50, 50);
		assert_string_equal(pem_trace__process_name(trace, 60), "sqlite3");
		assert_string_equal(pem_trace__process_name(trace, 50), "sh");
		expect(trace, 40, EVENT_EXEC, 50, 50);
		assert_string_equal(pem_trace__process_name(trace, 60), "plain");
		assert_string_equal(pem_trace__process_name(trace, 0), "");
		assert_int_equal(pem_trace__rewind(trace), 0);
	}
	pem_trace__close(trace);
}

/*
 * What programs recorded tells their names: from the start of each image on, and before its own of
 * the first.
 */
static void names_the_images_of_a_process(void **state)
{
	struct pem_trace *trace;
	char text[512];
	int pass;

	(void)state;
	snprintf(text, sizeof(text),
		 "command=a test\nstart_clock=%llu\nclock_hz=%llu\ncomplete=1\n"
		 "command_process=50\tenv\n",
		 FIXTURE_START, FIXTURE_HZ);
	fixture_text(&fixture, ".pem/run", text);
	snprintf(text, sizeof(text),
		 "producer\t60\tlater\t%llu\nproducer\t50\tpython3\t%llu\n"
		 "producer\t60\tfirst\t%llu\nproducer\t50\tbash\t%llu\n"
		 "producer\t0\tkernel\t0\nend\n",
		 (unsigned long long)T(40), (unsigned long long)T(30), (unsigned long long)T(20),
		 (unsigned long long)T(15));
	fixture_text(&fixture, ".pem/balance", text);
	packet_new(&packet, PEM_PACKET_USER, 50, 50, PEM_NO_CPU, T(0));
	packet_simple(&packet, T(10), 1);
	packet_simple(&packet, T(20), 1);
	packet_simple(&packet, T(35), 1);
	packet_simple(&packet, T(45), 1);
	packet_write(&packet, &fixture, "u_50_0");
	trace = open_trace();
	for (pass = 0; pass < 2; pass++) {
		expect(trace, 10, EVENT_SIMPLE, 50, 50);
		assert_string_equal(pem_trace__process_name(trace, 50), "env");
		assert_string_equal(pem_trace__process_name(trace, 60), "first");
		expect(trace, 20, EVENT_SIMPLE, 50, 50);
		assert_string_equal(pem_trace__process_name(trace, 50), "bash");
		expect(trace, 35, EVENT_SIMPLE, 50, 50);
		assert_string_equal(pem_trace__process_name(trace, 50), "python3");
		assert_string_equal(pem_trace__process_name(trace, 60), "first");
		expect(trace, 45, EVENT_SIMPLE, 50, 50);
		assert_string_equal(pem_trace__process_name(trace, 60), "later");
		assert_int_equal(pem_trace__rewind(trace), 0);
	}
	pem_trace__close(trace);
}

/* A producer knows 15 letters of its name; an exec in the kernel told all. */
static void a_cut_name_does_not_replace_it_whole(void **state)
{
	struct pem_trace *trace;
	char text[128];

	(void)state;
	snprintf(text, sizeof(text), "producer\t50\ta-program-of-lo\t%llu\nend\n",
		 (unsigned long long)T(20));
	fixture_text(&fixture, ".pem/balance", text);
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_exec(&packet, T(10), 50, "/bin/a-program-of-long-name");
	packet_exec(&packet, T(30), 60, "x");
	packet_write(&packet, &fixture, "k_0");
	trace = open_trace();
	expect(trace, 10, EVENT_EXEC, 50, 0);
	expect(trace, 30, EVENT_EXEC, 50, 0);
	assert_string_equal(pem_trace__process_name(trace, 50), "a-program-of-long-name");
	pem_trace__close(trace);
}

static void follows_thousands_of_processes(void **state)
{
	struct pem_trace *trace;
	uint32_t pid;
	char file[32];

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	for (pid = 1; pid <= 1500; pid++) {
		snprintf(file, sizeof(file), "/bin/p%u", pid);
		packet_exec(&packet, T(pid), pid * 64, file);
	}
	packet_write(&packet, &fixture, "k_0");
	trace = open_trace();
	/* only the first was a surprise */
	for (pid = 1; pid <= 1500; pid++)
		expect(trace, (int)pid, EVENT_EXEC, 64, 0);
	for (pid = 1; pid <= 1500; pid++) {
		snprintf(file, sizeof(file), "p%u", pid);
		assert_string_equal(pem_trace__process_name(trace, pid * 64), file);
	}
	pem_trace__close(trace);
}

static void names_are(struct pem_trace *trace, const char *first, const char *second)
{
	assert_string_equal(pem_trace__thread_name(trace, 51), first);
	assert_string_equal(pem_trace__thread_name(trace, 52), second);
}

static void names_threads_as_they_go(void **state)
{
	struct pem_trace *trace;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_switch(&packet, T(10), 0, 50, 51);
	packet_rename(&packet, T(20), 51, "one");
	packet_fork(&packet, T(30), 50, 50, 52); /* called like the one that started it */
	packet_rename(&packet, T(40), 52, "two"); /* by another thread */
	packet_switch(&packet, T(50), 51, 60, 61);
	packet_fork(&packet, T(60), 60, 52, 52); /* the number is used again, by one of no name */
	packet_write(&packet, &fixture, "k_0");

	trace = open_trace();
	expect(trace, 10, EVENT_SWITCH, 0, 0);
	names_are(trace, "", "");
	expect(trace, 20, EVENT_RENAME, 50, 51);
	names_are(trace, "one", "");
	expect(trace, 30, EVENT_FORK, 50, 51);
	names_are(trace, "one", "one");
	expect(trace, 40, EVENT_RENAME, 50, 51);
	names_are(trace, "one", "two");
	expect(trace, 50, EVENT_SWITCH, 50, 51);
	expect(trace, 60, EVENT_FORK, 60, 61);
	names_are(trace, "one", "");
	assert_string_equal(pem_trace__process_name(trace, 50), "");
	assert_int_equal(pem_trace__rewind(trace), 0);
	names_are(trace, "", "");
	pem_trace__close(trace);
}

/* Of a source beside the one that says who runs where: neither is told by the other's records. */
static void records_that_bring_their_thread_keep_it(void **state)
{
	struct pem_trace *trace;
	struct pem_record r = {.size = sizeof(r)};

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_switch(&packet, T(10), 0, 50, 51);
	packet_fault(&packet, T(20));
	packet_switch(&packet, T(30), 51, 60, 61);
	packet_fault(&packet, T(40));
	packet_write(&packet, &fixture, "k_0");
	packet_new(&packet, PEM_PACKET_KERNEL_THREAD, 50, 51, 0, T(0));
	packet_fault(&packet, T(5));
	packet_fault(&packet, T(31)); /* its clock is a little late */
	packet_write(&packet, &fixture, "k2_0");
	packet_next(&packet, T(35));
	packet.header.pid = packet.header.tid = 0;
	packet_switch(&packet, T(35), 0, 70, 71); /* none that sets the CPU's thread */
	packet_exec(&packet, T(36), 80, "/bin/true");
	packet_write(&packet, &fixture, "k2_0");

	trace = open_trace();
	expect(trace, 5, EVENT_FAULT, 50, 51);
	expect(trace, 10, EVENT_SWITCH, 0, 0);
	expect(trace, 20, EVENT_FAULT, 50, 51);
	expect(trace, 30, EVENT_SWITCH, 50, 51);
	expect(trace, 31, EVENT_FAULT, 50, 51);
	expect(trace, 35, EVENT_SWITCH, 0, 0);
	expect(trace, 36, EVENT_EXEC, 0, 0);
	assert_string_equal(pem_trace__process_name(trace, 80), "true");
	assert_int_equal(pem_trace__next(trace, &r, NULL), 1);
	assert_int_equal(r.pid, 60);
	assert_int_equal(r.source, PEM_PACKET_KERNEL); /* nobody need know which way it came */
	assert_int_equal(pem_trace__rewind(trace), 0);
	assert_int_equal(pem_trace__next(trace, &r, NULL), 1);
	assert_int_equal(r.source, PEM_PACKET_KERNEL);
	pem_trace__close(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gives_kernel_records_the_thread_of_their_cpu,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(forgets_after_a_loss_on_that_cpu_only, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(remembers_a_loss_across_an_empty_packet, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(learns_from_what_only_the_running_process_raises,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_processes_as_they_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_threads_as_they_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_the_images_of_a_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_cut_name_does_not_replace_it_whole, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(follows_thousands_of_processes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_that_bring_their_thread_keep_it, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
