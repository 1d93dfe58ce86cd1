// SPDX-License-Identifier: MIT
/*
 * counters_plugin.c - the counters source as a session uses it: loaded, opened on a command or on
 * this process
 *
 * Started with arguments it is the observed command: 'touch N' faults N pages in, itself and in a
 * child; 'spin' uses 300 ms of processor time.
 */
#include "source.h"

#include <pem/clock.h>
#include <pem/model.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 2000u
#define STREAMS_MAX 256u
#define LOG PEM_ACTION(PEM_ACTION_LOG | PEM_ACTION_STAT, 0, 0, 0, 1)
#define STAT(epoch) PEM_ACTION(PEM_ACTION_STAT, 0, 0, 0, epoch)

static const struct pem_source_ops *ops;
static struct pem_model *model;

/* What the sink and the log saw. */
static struct {
	uint64_t records, bad, last_value, values;
	uint64_t last_clock[STREAMS_MAX]; /* full clock of the last record, by stream */
	unsigned complaints;
	char complaint[512];
	int refuse;
} seen;

static void touch(unsigned pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i;
	uint8_t *at = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	madvise(at, pages * page, MADV_NOHUGEPAGE);
	for (i = 0; i < pages; i++)
		((volatile uint8_t *)at)[i * page] = 1;
	munmap(at, pages * page);
}

static void *touch_in_thread(void *arg)
{
	touch(PAGES);
	return arg;
}

static int be_command(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "touch")) {
		touch((unsigned)atoi(argv[2]));
		if (fork() == 0) {
			touch((unsigned)atoi(argv[2]));
			_exit(0);
		}
		wait(NULL);
		return 0;
	}
	while (clock() < CLOCKS_PER_SEC * 3 / 10)
		;
	return 0;
}

static const struct pem_event *event(const char *name)
{
	const struct pem_event *found = pem_model__by_name(model, name);

	assert_non_null(found);
	return found;
}

static void take_record(const uint8_t *at, const struct pem_packet *packet,
			const struct pem_event *e, uint64_t *clock)
{
	uint32_t low, tid, count;

	memcpy(&low, at, 4);
	*clock += (uint32_t)(low - (uint32_t)*clock);
	seen.records++;
	if (e->source_kind == PEM_SOURCE_PERF) {
		seen.bad += packet->source != PEM_PACKET_COUNTER;
		memcpy(&seen.last_value, at + e->fields[0].offset, 8);
		return;
	}
	memcpy(&tid, at + e->fields[1].offset, 4);
	memcpy(&count, at + e->fields[2].offset, 4);
	seen.bad += tid == 0 || tid != packet->tid;
	seen.values = count;
}

static int take_packet(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	const uint8_t *data = (const uint8_t *)packet;
	size_t at = PEM_PACKET_HEADER_BYTES, records = 0;
	unsigned long stream = strtoul(name + 2, NULL, 10) % STREAMS_MAX;
	uint64_t clock = packet->timestamp_begin;

	(void)arg;
	seen.bad += packet->content_size != bytes * 8 || strncmp(name, "c_", 2) ||
		    packet->timestamp_begin < seen.last_clock[stream];
	while (at < bytes) {
		const struct pem_event *e;
		uint32_t id;
		int size;

		memcpy(&id, data + at + 4, 4);
		e = pem_model__by_id(model, id);
		size = e ? pem_event__record_bytes(e, data + at, bytes - at) : -1;
		if (size <= 0) {
			seen.bad++;
			break;
		}
		take_record(data + at, packet, e, &clock);
		records++;
		at += ((size_t)size + 7) & ~(size_t)7;
	}
	seen.bad += records != packet->record_count || clock != packet->timestamp_end;
	seen.last_clock[stream] = clock;
	return seen.refuse ? -ENOSPC : 0;
}

/* Good enough here: only the order of times matters. */
static uint64_t clock_at(void *arg, uint64_t monotonic_ns)
{
	(void)arg;
	return monotonic_ns;
}

static void complain(enum pem_log_level level, const char *text, void *arg)
{
	(void)level, (void)arg;
	seen.complaints++;
	snprintf(seen.complaint, sizeof(seen.complaint), "%s", text);
}

static const struct pem_source_sink sink = {.write = take_packet, .clock_at = clock_at};

static struct pem_source *open_source(pid_t root, const struct pem_source_event *events,
				      size_t count)
{
	struct pem_source_config config = {.size = sizeof(config),
					   .root = root,
					   .events = events,
					   .event_count = count,
					   .log = complain};
	struct pem_source *source = NULL;
	struct pem_error error = {""};

	memset(&seen, 0, sizeof(seen));
	if (ops->open(&config, &source, &error) < 0 || ops->start(source, &error) < 0)
		fail_msg("%s", error.text);
	return source;
}

/*
 * Fork, open the source on the child, let it exec this program as the command, and drain to the
 * end.
 */
static struct pem_source *record(const char *what, const char *argument,
				 const struct pem_source_event *events, size_t count, int refuse)
{
	struct pem_source *source;
	int go[2], status = -1;
	pid_t child;

	assert_int_equal(pipe(go), 0);
	child = fork();
	if (child == 0) {
		char byte;

		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			execl("/proc/self/exe", "command", what, argument, NULL);
		_exit(127);
	}
	close(go[0]);
	source = open_source(child, events, count);
	seen.refuse = refuse;
	assert_int_equal(ops->drain(source, &sink, 0), refuse ? -ENOSPC : 0);
	assert_int_equal(write(go[1], "x", 1), 1);
	close(go[1]);
	while (waitpid(child, &status, WNOHANG) == 0) {
		usleep(2000);
		ops->drain(source, &sink, 0);
	}
	assert_int_equal(status, 0);
	ops->drain(source, &sink, 1);
	return source;
}

static uint64_t count_of(struct pem_source *source, size_t i)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(ops->read_statistic(source, i, &value), 0);
	return value.count;
}

static void names_libpfm4_does_not_know_are_named(void **state)
{
	struct pem_event unknown = *event("HW::Software::PageFaults");
	struct pem_error reason = {""};

	(void)state;
	unknown.source_name = "perf::NO-SUCH-EVENT";
	assert_int_equal(ops->can_deliver(&unknown, &reason), 0);
	assert_non_null(strstr(reason.text, "'perf::NO-SUCH-EVENT'"));
}

static void the_first_alternative_that_is_here_is_taken(void **state)
{
	struct pem_event choice = *event("HW::Software::PageFaults");
	struct pem_source_event wanted = {
		.event = &choice, .context = {.pid = (uint32_t)getpid()}, .action = STAT(1)};
	struct pem_source *source;
	struct pem_error reason = {""};
	uint64_t before;

	(void)state;
	choice.source_name = "no_pmu::NOTHING|perf::PAGE-FAULTS|perf::TASK-CLOCK";
	if (ops->can_deliver(&choice, &reason) != 1) {
		print_message("# %s\n", reason.text);
		skip();
	}
	source = open_source(0, &wanted, 1);
	before = count_of(source, 0);
	touch(PAGES);
	assert_in_range(count_of(source, 0) - before, PAGES, 2 * PAGES);
	ops->close(source);
}

static void events_of_other_processors_say_so(void **state)
{
	struct pem_event elsewhere = *event("HW::Software::PageFaults");
	struct pem_error reason = {""};

	(void)state;
#if defined(__x86_64__)
	elsewhere.source_name = "arm_n1::CPU_CYCLES|arm_n2::CPU_CYCLES";
#else
	elsewhere.source_name = "amd64_fam19h_zen3::CYCLES_NOT_IN_HALT";
#endif
	assert_int_equal(ops->can_deliver(&elsewhere, &reason), 0);
	assert_non_null(strstr(reason.text, elsewhere.source_name[1] == 'r' ? "Arm" : "AMD"));
}

static void events_of_other_sources_are_left_to_them(void **state)
{
	(void)state;
	assert_int_equal(ops->can_deliver(event("OS::Sched::Switch"), NULL), -ENOENT);
}

static void a_missing_pmu_is_said_and_the_rest_goes_on(void **state)
{
	struct pem_source_event events[2] = {
		{.event = event("HW::HWPerf::Cycles"), .context = {.pid = 0}, .action = LOG},
		{.event = event("HW::Software::PageFaults"), .context = {.pid = 0}, .action = LOG},
	};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_source *source;

	(void)state;
	if (ops->can_deliver(events[0].event, NULL) == 1) {
		print_message("# this machine counts cycles: nothing to say\n");
		skip();
	}
	source = record("touch", "10", events, 2, 0);
	assert_int_equal(seen.complaints, 1);
	assert_non_null(strstr(seen.complaint, "HW::HWPerf::Cycles: can't be counted"));
	assert_true(ops->read_statistic(source, 0, &value) < 0);
	assert_true(seen.last_value > 10);
	ops->close(source);
}

static void a_command_and_its_children_are_counted_to_the_end(void **state)
{
	struct pem_source_event want = {
		.event = event("HW::Software::PageFaults"), .context = {.pid = 0}, .action = LOG};
	struct pem_source *source = record("touch", "2000", &want, 1, 0);
	struct pem_balance balance;

	(void)state;
	assert_int_equal(seen.bad, 0);
	assert_true(seen.last_value >= 2 * PAGES);
	assert_int_equal(count_of(source, 0), seen.last_value);
	assert_int_equal(ops->balance(source, 0, &balance), 0);
	assert_int_equal(balance.produced, seen.records);
	assert_int_equal(balance.discarded, 0);
	ops->close(source);
}

static void the_kernels_counters_are_no_estimates(void **state)
{
	struct pem_source_event want = {
		.event = event("HW::Software::PageFaults"), .context = {.pid = 0}, .action = LOG};
	struct pem_source *source = record("touch", "2000", &want, 1, 0);
	struct pem_trace_estimate estimate = {.event = ""};
	struct pem_statistic value = {0};
	struct pem_error reason = {""};

	(void)state;
	assert_int_equal(ops->read_statistic(source, 0, &value), 0);
	assert_true(value.enabled_ns > 0);
	assert_int_equal(value.enabled_ns, value.running_ns);
	assert_int_equal(value.counted, value.count);
	assert_true(value.error == 0);
	assert_int_equal(value.together, 0);
	assert_int_equal(ops->estimate(source, 0, &estimate, &reason), 0);
	ops->close(source);
}

static void a_group_that_is_not_there_is_said(void **state)
{
	struct pem_source_event want = {.event = event("HW::Software::PageFaults"),
					.action = STAT(1)};
	struct pem_source_config config = {.size = sizeof(config),
					   .events = &want,
					   .event_count = 1,
					   .cgroup = UINT64_MAX - 1,
					   .log = complain};
	struct pem_source *source = NULL;
	struct pem_error error = {""};

	(void)state;
	assert_int_equal(ops->open(&config, &source, &error), -ENOENT);
	assert_null(source);
	assert_non_null(strstr(error.text, "control group"));
}

static void what_the_sink_refuses_stays_produced(void **state)
{
	struct pem_source_event want = {
		.event = event("HW::Software::PageFaults"), .context = {.pid = 0}, .action = LOG};
	struct pem_source *source = record("touch", "10", &want, 1, 1);
	struct pem_balance balance;

	(void)state;
	assert_true(seen.records >= 2);
	assert_int_equal(ops->balance(source, 0, &balance), 0);
	assert_int_equal(balance.produced, seen.records);
	ops->close(source);
}

static void samples_hold_thread_and_counters(void **state)
{
	struct pem_source_event events[2] = {
		{.event = event("HW::HWPerf::HPMsAndPC"), .context = {.pid = 0}, .action = LOG},
		{.event = event("HW::Software::PageFaults"),
		 .context = {.pid = 0},
		 .action = STAT(1)},
	};
	struct pem_source *source = record("spin", "", events, 2, 0);
	struct pem_balance balance;

	(void)state;
	assert_int_equal(seen.complaints, 0);
	assert_int_equal(seen.bad, 0);
	assert_true(seen.records >= 1); /* about 60 where the program gets a processor at once */
	assert_true(seen.values == 2 || seen.values == 0); /* 0 before Linux 6.12 */
	assert_int_equal(ops->balance(source, 0, &balance), 0);
	assert_int_equal(balance.produced, seen.records + balance.discarded);
	ops->close(source);
}

static void a_process_is_counted_while_enabled_and_from_reset(void **state)
{
	struct pem_source_event want = {.event = event("HW::Software::PageFaults"),
					.context = {.pid = (uint32_t)getpid()},
					.action = STAT(1)};
	struct pem_source *source = open_source(0, &want, 1);
	uint64_t before, disabled;

	(void)state;
	assert_int_equal(ops->set_action(source, 0, STAT(2)), 0);
	before = count_of(source, 0);
	touch(PAGES);
	assert_in_range(count_of(source, 0) - before, PAGES, PAGES * 3 / 2);
	assert_int_equal(ops->set_action(source, 0, PEM_ACTION(0, 0, 0, 0, 2)), 0);
	disabled = count_of(source, 0);
	touch(PAGES);
	assert_int_equal(count_of(source, 0), disabled);
	assert_int_equal(ops->set_action(source, 0, STAT(2)), 0);
	touch(PAGES);
	assert_in_range(count_of(source, 0) - disabled, PAGES, PAGES * 3 / 2);
	assert_int_equal(ops->set_action(source, 0, STAT(3)), 0);
	assert_in_range(count_of(source, 0), 0, PAGES / 2);
	ops->close(source);
}

/* A session ends logging before it drains for the last time. */
static void what_was_counted_when_logging_ended_is_written(void **state)
{
	struct pem_source_event want = {.event = event("HW::Software::PageFaults"),
					.context = {.pid = (uint32_t)getpid()},
					.action = LOG};
	struct pem_source *source = open_source(0, &want, 1);
	uint64_t records, clock;

	(void)state;
	assert_int_equal(ops->drain(source, &sink, 1), 0);
	touch(PAGES);
	assert_int_equal(ops->set_action(source, 0, PEM_ACTION(0, 0, 0, 0, 2)), 0);
	touch(10 * PAGES);
	/* Other changes of the session come, too, before the drain. */
	assert_int_equal(ops->set_action(source, 0, PEM_ACTION(0, 0, 0, 0, 3)), 0);
	clock = pem_clock();
	records = seen.records;
	assert_int_equal(ops->drain(source, &sink, 1), 0);
	assert_int_equal(seen.records, records + 1);
	assert_in_range(seen.last_value, PAGES, 2 * PAGES);
	assert_true(seen.last_clock[0] < clock);
	assert_int_equal(ops->drain(source, &sink, 1), 0);
	assert_int_equal(seen.records, records + 1);
	ops->close(source);
}

static void threads_started_later_are_counted(void **state)
{
	struct pem_source_event want = {.event = event("HW::Software::PageFaults"),
					.context = {.pid = (uint32_t)getpid()},
					.action = STAT(1)};
	struct pem_source *source = open_source(0, &want, 1);
	uint64_t before = count_of(source, 0);
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, touch_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_true(count_of(source, 0) - before >= PAGES);
	ops->close(source);
}

static void a_process_that_is_gone_is_said(void **state)
{
	struct pem_source_event want = {
		.event = event("HW::Software::PageFaults"), .context = {.pid = 0}, .action = LOG};
	struct pem_source *source;
	struct pem_statistic value = {.size = sizeof(value)};
	pid_t gone = fork();

	(void)state;
	if (gone == 0)
		_exit(0);
	waitpid(gone, NULL, 0);
	want.context.pid = (uint32_t)gone;
	source = open_source(0, &want, 1);
	assert_int_equal(seen.complaints, 1);
	assert_non_null(strstr(seen.complaint, "is gone"));
	assert_int_equal(ops->read_statistic(source, 0, &value), -ESRCH);
	ops->close(source);
}

/* 1: loaded; 0: said why this is skipped; -1: wrong. */
static int load(void)
{
	const char *build = getenv("B");
	struct pem_error error = {""};
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/lib/pem/source-counters.so", build ? build : "build");
	if (access(path, R_OK)) {
		printf("1..0 # SKIP source-counters.so was not built: libpfm4 is missing\n");
		return 0;
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ops = handle ? dlsym(handle, "pem_source") : NULL;
	model = pem_model__new();
	if (!ops || !model || pem_model__add_catalogue(model, &error) < 0)
		return -1;
	if (ops->can_deliver(event("HW::Software::PageFaults"), &error) == 1)
		return 1;
	printf("1..0 # SKIP %s\n", error.text);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_libpfm4_does_not_know_are_named),
		cmocka_unit_test(the_first_alternative_that_is_here_is_taken),
		cmocka_unit_test(events_of_other_processors_say_so),
		cmocka_unit_test(events_of_other_sources_are_left_to_them),
		cmocka_unit_test(a_missing_pmu_is_said_and_the_rest_goes_on),
		cmocka_unit_test(a_command_and_its_children_are_counted_to_the_end),
		cmocka_unit_test(the_kernels_counters_are_no_estimates),
		cmocka_unit_test(a_group_that_is_not_there_is_said),
		cmocka_unit_test(what_the_sink_refuses_stays_produced),
		cmocka_unit_test(samples_hold_thread_and_counters),
		cmocka_unit_test(a_process_is_counted_while_enabled_and_from_reset),
		cmocka_unit_test(what_was_counted_when_logging_ended_is_written),
		cmocka_unit_test(threads_started_later_are_counted),
		cmocka_unit_test(a_process_that_is_gone_is_said),
	};
	int rc;

	if (argc > 1)
		return be_command(argc, argv);
	rc = load();
	if (rc <= 0)
		return -rc;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	pem_model__free(model);
	return rc;
}
