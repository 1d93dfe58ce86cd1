/* SPDX-License-Identifier: MIT */
/*
 * module_counters.c - counters that the module reads at events: totals of the CPU, in front of the
 * event, or told missing
 */
#include "module_fixture.h"

#include <linux/perf_event.h>

#define SEEN 4096
#define PAGE 4096ul

struct reading {
	uint64_t values[PEM_KMOD_COUNTERS_MAX];
	uint64_t pc, mark; /* of the event behind it: what call() was called with */
	uint32_t event_id, missing, count;
};

struct seen {
	struct reading reading[SEEN]; /* as they come; one of these for each CPU */
	uint32_t count;
	bool waits; /* for the event that was read at */
};

static void see(void *arg, unsigned cpu, const struct pem_packet *packet, uint64_t clock,
		uint32_t id, const uint8_t *record)
{
	struct seen *all = (struct seen *)arg + cpu;
	struct reading *r = &all->reading[all->count];

	(void)packet, (void)clock;
	if (id == id_of(AT_EVENT) && all->count < SEEN) {
		assert_false(all->waits);
		r->event_id = word_of(record, 8);
		r->missing = record[12];
		r->pc = distribution_of(record, 16);
		r->count = word_of(record, 24);
		assert_in_range(r->count, 1, PEM_KMOD_COUNTERS_MAX);
		memcpy(r->values, record + 32, r->count * sizeof(r->values[0]));
		all->waits = true;
	} else if (all->waits && id == r->event_id) {
		if (id == id_of(ENTER))
			r->mark = distribution_of(record, 16);
		all->waits = false;
		all->count++;
	}
}

static int open_counters(const struct session *s, const struct pem_kmod_counter *counter,
			 uint32_t count, uint32_t *failed)
{
	struct pem_kmod_counters asked = {
		.size = sizeof(asked), .count = count, .counters = (uintptr_t)counter};
	int rc = ask(s, PEM_KMOD_COUNTERS, &asked);

	*failed = asked.failed;
	return rc;
}

static void event_with_counters(const struct session *s, const char *name)
{
	struct pem_kmod_event event = event_of(name, PEM_ACTION_LOG);

	event.flags = PEM_KMOD_READ_COUNTERS;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), 0);
}

/* Running, with these counters read at each of an event; NULL: this machine has not all of them. */
static struct session *read_at(const char *name, const struct pem_kmod_counter *counter,
			       uint32_t count, struct seen *seen)
{
	struct session *s = session_open();
	uint32_t failed;
	int rc;

	session_setup(s, 0, 65536, 16);
	rc = open_counters(s, counter, count, &failed);
	if (rc == -ENOENT || rc == -EOPNOTSUPP) {
		session_close(s);
		return NULL;
	}
	assert_int_equal(rc, 0);
	session_event(s, AT_EVENT, PEM_ACTION_LOG);
	event_with_counters(s, name);
	s->seen = see;
	s->arg = seen;
	session_start(s);
	return s;
}

static const struct pem_kmod_counter software[] = {
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK},
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS},
	{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES},
};

/* The reading at a call with this number. */
static const struct reading *reading_of(const struct seen *seen, uint64_t number)
{
	uint32_t i;

	for (i = 0; i < seen->count; i++)
		if (seen->reading[i].mark == MARK_BASE + number)
			return &seen->reading[i];
	fail_msg("no counters at call %llu", (unsigned long long)number);
	return NULL;
}

/* perf's own counter of CPU 0, which the module's must agree with. */
static int open_peer(uint64_t config)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = config};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);

	assert_true(fd >= 0);
	return fd;
}

static uint64_t read_peer(int fd)
{
	uint64_t count;

	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
	return count;
}

/*
 * The kernel switches branches on to count faults and switches, and an emulator may lose that
 * (patched_code.c): then perf counts none either, and what the counts are can't be tried here.
 */
static void totals_only_grow_and_count_what_happens(void **state)
{
	int faults = open_peer(PERF_COUNT_SW_PAGE_FAULTS),
	    switches = open_peer(PERF_COUNT_SW_CONTEXT_SWITCHES);
	struct seen *seen = calloc(CPUS, sizeof(*seen));
	const struct reading *one, *two;
	struct partner partner;
	uint64_t before[2], between[2];
	uint8_t *memory =
		mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct session *s;
	uint32_t cpu, i, k;

	(void)state;
	assert_true(seen && memory != MAP_FAILED);
	madvise(memory, 64 * PAGE, MADV_NOHUGEPAGE);
	run_on(0);
	partner_start(&partner);
	s = read_at(ENTER, software, 3, seen);
	assert_non_null(s);
	call(1);
	before[0] = read_peer(faults);
	for (i = 0; i < 64; i++)
		memory[i * PAGE] = 1;
	between[0] = read_peer(faults) - before[0];
	call(2);
	before[1] = read_peer(switches);
	partner_ask(&partner);
	between[1] = read_peer(switches) - before[1];
	call(3);
	session_finish(s);
	partner_end(&partner);
	close(faults);
	close(switches);
	one = reading_of(&seen[0], 1);
	two = reading_of(&seen[0], 2);
	assert_true(two->values[1] - one->values[1] >= between[0]);
	one = reading_of(&seen[0], 3);
	assert_true(one->values[2] - two->values[2] >= between[1]);
	assert_true(one->values[0] > two->values[0]);
	for (cpu = 0; cpu < 2; cpu++) {
		for (i = 0; i < seen[cpu].count; i++) {
			one = &seen[cpu].reading[i];
			assert_int_equal(one->event_id, id_of(ENTER));
			assert_int_equal(one->missing, 0);
			assert_int_equal(one->count, 3);
			for (k = 0; i && k < 3; k++)
				assert_true(one->values[k] >= one[-1].values[k]);
		}
	}
	/* At system calls the program was in the C library. */
	assert_true(reading_of(&seen[0], 1)->pc == reading_of(&seen[0], 2)->pc);
	assert_true(reading_of(&seen[0], 1)->pc > PAGE);
	munmap(memory, 64 * PAGE);
	session_close(s);
	free(seen);
	if (between[0] < 64 || between[1] < 2) {
		print_message(
			"# perf counts %llu of 64 faults and %llu of 2 switches: the emulator "
			"lost what the kernel patched\n",
			(unsigned long long)between[0], (unsigned long long)between[1]);
		skip();
	}
}

static uint32_t most_frequent(const uint64_t *values, uint32_t count, uint64_t *which)
{
	uint32_t i, k, n, most = 0;

	for (i = 0; i < count; i++) {
		for (k = n = 0; k < count; k++)
			n += values[k] == values[i];
		if (n > most) {
			most = n;
			*which = values[i];
		}
	}
	return most;
}

/*
 * The processor's own: where it counts exactly, the same instructions are the same number each
 * time.
 */
static void instructions_between_equal_events_are_equal(void **state)
{
	static const struct pem_kmod_counter counters[] = {
		{.type = PERF_TYPE_HARDWARE,
		 .config = PERF_COUNT_HW_INSTRUCTIONS,
		 .flags = PEM_KMOD_EXCLUDE_KERNEL},
		{.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS},
	};
	struct seen *seen = calloc(CPUS, sizeof(*seen));
	uint64_t user[99], both[99], typical = 0;
	struct session *s;
	uint32_t i;

	(void)state;
	assert_non_null(seen);
	run_on(0);
	s = read_at(ENTER, counters, 2, seen);
	if (!s) {
		free(seen);
		print_message("# this machine counts no instructions and cycles\n");
		skip();
	}
	for (i = 0; i < 100; i++)
		call(i);
	session_finish(s);
	for (i = 0; i < 99; i++) {
		const struct reading *a = reading_of(&seen[0], i), *b = reading_of(&seen[0], i + 1);

		assert_int_equal(a->missing, 0);
		user[i] = b->values[0] - a->values[0];
		both[i] = b->values[1] - a->values[1];
		assert_true(both[i] > user[i]);
	}
	assert_true(most_frequent(user, 99, &typical) >= 90);
	assert_true(typical > 4 && typical < 1000);
	print_message("%llu user instructions between two calls, %u of 99 times\n",
		      (unsigned long long)typical, most_frequent(user, 99, &typical));
	assert_true(most_frequent(both, 99, &typical) >= 30);
	assert_true(typical > 100 && typical < 100000);
	session_close(s);
	free(seen);
}

/* Every switch reads in the thread that leaves: so the differences are each thread's. */
static void a_switch_reads_in_front_of_itself(void **state)
{
	struct seen *seen = calloc(CPUS, sizeof(*seen));
	struct partner partner;
	struct session *s;
	uint32_t i;

	(void)state;
	assert_non_null(seen);
	run_on(0);
	partner_start(&partner);
	s = read_at(SWITCH, software, 1, seen);
	assert_non_null(s);
	for (i = 0; i < 20; i++)
		partner_ask(&partner);
	session_finish(s);
	partner_end(&partner);
	assert_true(seen[0].count >= 40);
	for (i = 0; i < seen[0].count; i++)
		assert_int_equal(seen[0].reading[i].event_id, id_of(SWITCH));
	session_close(s);
	free(seen);
}

static void set_online(const char *value)
{
	FILE *f = fopen("/sys/devices/system/cpu/cpu1/online", "w");

	assert_non_null(f);
	assert_true(fputs(value, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void a_cpu_that_comes_back_counts_again(void **state)
{
	struct seen *seen = calloc(CPUS, sizeof(*seen));
	struct session *s;
	uint32_t i, n;

	(void)state;
	if (access("/sys/devices/system/cpu/cpu1/online", W_OK)) {
		free(seen);
		print_message("# CPU 1 can't be taken offline\n");
		skip();
	}
	assert_non_null(seen);
	s = read_at(ENTER, software, 3, seen);
	assert_non_null(s);
	for (i = 0; i < 3; i++) {
		set_online("0");
		set_online("1");
	}
	run_on(1);
	do { /* a worker opens them */
		usleep(10000);
		assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
		session_drain(s);
		session_start(s);
		call(1);
		n = seen[1].count;
	} while (!n || seen[1].reading[n - 1].missing);
	session_finish(s);
	session_close(s);
	run_on(0);
	free(seen);
}

/* The hardware has no room for so many: it is said at once, and of which. */
static void what_has_no_room_is_refused(void **state)
{
	struct pem_kmod_counter counter[8];
	struct session *s = session_open();
	uint32_t failed, i;
	int rc;

	(void)state;
	session_setup(s, 0, 8192, 8);
	for (i = 0; i < 8; i++)
		counter[i] = (struct pem_kmod_counter){.type = PERF_TYPE_HARDWARE,
						       .config = PERF_COUNT_HW_INSTRUCTIONS};
	rc = open_counters(s, counter, 8, &failed);
	if (rc == -ENOENT || rc == -EOPNOTSUPP || !rc) { /* no PMU, or a large one */
		print_message("# this machine's counters are none, or more than eight\n");
		session_close(s);
		skip();
	}
	assert_int_equal(rc, -ENOSPC);
	assert_in_range(failed, 1, 7);
	/* None of them is left behind. */
	assert_int_equal(open_counters(s, counter, failed, &failed), 0);
	session_close(s);
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct pem_kmod_counter counter[2] = {
		{.type = PERF_TYPE_SOFTWARE},
		{.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_MAX},
	};
	struct pem_kmod_event event = event_of(ENTER, PEM_ACTION_LOG);
	struct session *s = session_open();
	uint32_t failed;

	(void)state;
	assert_int_equal(open_counters(s, counter, 1, &failed), -EBUSY);
	session_setup(s, 0, 8192, 8);
	event.flags = PEM_KMOD_READ_COUNTERS;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL); /* there are none yet */
	assert_int_equal(open_counters(s, counter, 0, &failed), -EINVAL);
	assert_int_equal(open_counters(s, counter, 9, &failed), -EINVAL);
	assert_int_equal(open_counters(s, NULL, 1, &failed), -EFAULT);
	assert_int_equal(open_counters(s, counter, 2, &failed), -ENOENT);
	assert_int_equal(failed, 1);
	counter[1] = (struct pem_kmod_counter){.type = PERF_TYPE_SOFTWARE, .flags = 4};
	assert_int_equal(open_counters(s, counter, 2, &failed), -EINVAL);
	counter[1] = (struct pem_kmod_counter){.type = 0xffffffff};
	assert_int_equal(open_counters(s, counter, 2, &failed), -ENOENT);
	assert_int_equal(open_counters(s, counter, 1, &failed), 0);
	assert_int_equal(open_counters(s, counter, 1, &failed), -EBUSY);
	event.event_id = id_of(AT_EVENT); /* counters at counters */
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	session_close(s);
}

/* What would change the kernel's code to be counted, all of it for ftrace:function. */
static void tracepoints_are_no_counters(void **state)
{
	static const uint32_t types[] = {PERF_TYPE_TRACEPOINT, PERF_TYPE_BREAKPOINT};
	struct pem_kmod_counter counter[2] = {{.type = PERF_TYPE_SOFTWARE}};
	struct session *s = session_open();
	uint32_t failed, i;

	(void)state;
	session_setup(s, 0, 8192, 8);
	for (i = 0; i < 2; i++) {
		counter[1].type = types[i];
		counter[1].config = 1; /* ftrace:function */
		assert_int_equal(open_counters(s, counter, 2, &failed), -EOPNOTSUPP);
		assert_int_equal(failed, 1);
	}
	session_close(s);
}

/* A type that perf hands out at boot, or -1. */
static long type_of(const char *pmu)
{
	char path[96], text[16] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type", pmu);
	file = fopen(path, "r");
	if (!file)
		return -1;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return text[0] ? atol(text) : -1;
}

/* Those with a type of their own are counters, and a kprobe is none. */
static void a_probe_is_no_counter(void **state)
{
	struct pem_kmod_counter probe = {.type = (uint32_t)type_of("kprobe"),
					 .config1 = (uintptr_t) "do_nanosleep"};
	struct pem_kmod_counter tsc = {.type = (uint32_t)type_of("msr")};
	struct session *s;
	uint32_t failed;

	(void)state;
	if (type_of("kprobe") < 0) {
		print_message("# this kernel has no kprobes\n");
		skip();
	}
	s = session_open();
	session_setup(s, 0, 8192, 8);
	assert_int_equal(open_counters(s, &probe, 1, &failed), -EOPNOTSUPP);
	if (type_of("msr") >= 0)
		assert_int_equal(open_counters(s, &tsc, 1, &failed), 0);
	session_close(s);
}

#define PARANOIA "/proc/sys/kernel/perf_event_paranoid"

static void set_paranoia(const char *value)
{
	FILE *f = fopen(PARANOIA, "w");

	assert_non_null(f);
	assert_true(fputs(value, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int open_as_nobody(void)
{
	struct pem_kmod_counter clock = {.type = PERF_TYPE_SOFTWARE};
	struct session *s = session_open();
	uint32_t failed;

	session_setup(s, 0, 8192, 8);
	return setgid(65534) || setuid(65534) ? 255 : -open_counters(s, &clock, 1, &failed);
}

static int answer_to_nobody(void)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(open_as_nobody());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void who_may_not_observe_cpus_gets_no_counters(void **state)
{
	FILE *f = fopen(PARANOIA, "r");
	char before[16] = "";

	(void)state;
	assert_non_null(f);
	assert_non_null(fgets(before, sizeof(before), f));
	fclose(f);
	set_paranoia("1");
	assert_int_equal(answer_to_nobody(), EACCES);
	set_paranoia("0");
	assert_int_equal(answer_to_nobody(), 0);
	set_paranoia(before);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals_only_grow_and_count_what_happens),
		cmocka_unit_test(instructions_between_equal_events_are_equal),
		cmocka_unit_test(a_switch_reads_in_front_of_itself),
		cmocka_unit_test(a_cpu_that_comes_back_counts_again),
		cmocka_unit_test(what_has_no_room_is_refused),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(tracepoints_are_no_counters),
		cmocka_unit_test(a_probe_is_no_counter),
		cmocka_unit_test(who_may_not_observe_cpus_gets_no_counters),
	};

	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
