// SPDX-License-Identifier: MIT
/*
 * kernel_several.c - several handles on one event of the kernel in one session
 *
 * Not here: events of programs (session_several.c).
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "session_fixture.h"

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>

#define FAULT "OS::Mem::PageFault"
#define PAGES 32u
#define PAGE 4096u

static struct pem_session *session;
static struct pem_context here;
static uint8_t *memory; /* whose pages are touched */

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	session = session_open(NULL);
	here = (struct pem_context){.pid = (uint32_t)getpid()};
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED)
		return -1;
	madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE);
	return 0;
}

static int tear_down(void **state)
{
	munmap(memory, PAGES * PAGE);
	pem_session__close(session);
	return folder_remove(state);
}

/* Faults of some of the pages. */
static struct pem_event_set *faults(unsigned from, unsigned to)
{
	struct pem_event_set *set = events(session, FAULT);
	struct pem_error error = {""};
	char text[128];

	if (!pem_session__can_deliver(session, pem_event_set__event(set, 0), &error)) {
		print_message("# %s\n", error.text);
		pem_event_set__free(set);
		skip();
	}
	snprintf(text, sizeof(text), "address >= %llu && address < %llu",
		 (unsigned long long)(uintptr_t)(memory + from * PAGE),
		 (unsigned long long)(uintptr_t)(memory + to * PAGE));
	if (pem_event_set__where(set, text, &error))
		fail_msg("%s", error.text);
	return set;
}

static struct pem_statistics *statistics(const char *attribute, unsigned from, unsigned to)
{
	struct pem_event_set *set = faults(from, to);
	struct pem_error error = {""};
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, &here, attribute, &error);

	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	return st;
}

static struct pem_statistic value_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_int_equal(value.unavailable, 0);
	return value;
}

static void touch(void)
{
	unsigned i;

	madvise(memory, PAGES * PAGE, MADV_DONTNEED);
	for (i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
}

static uint64_t of_page(unsigned page)
{
	return (uint64_t)(uintptr_t)(memory + page * PAGE);
}

static void each_statistic_is_its_own(void **state)
{
	struct pem_statistics *all = statistics(NULL, 0, PAGES),
			      *some = statistics("address", 10, 20),
			      *write = statistics("errorCode", 0, PAGES), *more;
	struct pem_statistic value;

	(void)state;
	assert_int_equal(pem_statistics__enable(all), 0);
	assert_int_equal(pem_statistics__enable(some), 0);
	assert_int_equal(pem_statistics__enable(write), 0);
	touch();
	assert_int_equal(value_of(all).count, PAGES);
	value = value_of(some);
	assert_int_equal(value.count, 10);
	assert_int_equal(value.min, of_page(10));
	assert_int_equal(value.max, of_page(19));
	value = value_of(write);
	assert_int_equal(value.count, PAGES);
	assert_true(value.sum >= PAGES);
	/* One that comes later counts from then on; what the others have stays. */
	more = statistics("address", 5, 6);
	assert_int_equal(pem_statistics__enable(more), 0);
	pem_statistics__reset(some);
	touch();
	assert_int_equal(value_of(more).sum, of_page(5));
	assert_int_equal(value_of(some).count, 10);
	assert_int_equal(value_of(all).count, 2 * PAGES);
	pem_statistics__unregister(all);
	touch();
	assert_int_equal(value_of(more).count, 2);
	assert_int_equal(value_of(some).count, 20);
}

/* Of the pages that a callback saw: how many, and the least and the last. */
struct seen {
	uint64_t count, least, last;
};

static void see(const struct pem_record *record, void *arg)
{
	uint64_t address =
		pem_record__u64(record, (uint32_t)pem_event__field(record->event, "address"));
	struct seen *seen = arg;

	if (!seen->count++ || address < seen->least)
		seen->least = address;
	seen->last = address;
	assert_int_equal(record->pid, getpid());
}

static struct pem_callback *call_later(unsigned from, unsigned to, struct seen *seen)
{
	struct pem_event_set *set = faults(from, to);
	struct pem_error error = {""};
	struct pem_callback *cb =
		pem_session__register_async_callback(session, set, &here, see, seen, NULL, &error);

	if (!cb)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	return cb;
}

static struct pem_log *log_faults(unsigned from, unsigned to)
{
	struct pem_event_set *set = faults(from, to);
	struct pem_error error = {""};
	struct pem_log *log = pem_session__register_log(session, set, &here, trace_path, &error);

	if (!log)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_log__enable(log), 0);
	return log;
}

static void check_log(struct pem_log *log, uint64_t expected)
{
	struct pem_balance balance = {0};
	uint64_t of_event, all;

	assert_int_equal(pem_log__finish(log, NULL), 0);
	all = read_trace(FAULT, &of_event, &balance);
	assert_int_equal(of_event, expected);
	assert_int_equal(balance.delivered, all);
	assert_int_equal(balance.produced, balance.delivered + balance.discarded);
}

static void wait_for(struct pem_callback *cb, uint64_t calls)
{
	struct pem_callback_counts counts = {.size = sizeof(counts)};
	unsigned i;

	for (i = 0; i < 10000; i++) {
		assert_int_equal(pem_callback__counts(cb, &counts), 0);
		if (counts.called >= calls && !counts.waiting)
			break;
		usleep(1000);
	}
	assert_int_equal(counts.called, calls);
	assert_int_equal(counts.lost, 0);
}

static void records_and_statistics_are_apart(void **state)
{
	struct pem_statistics *all = statistics(NULL, 0, PAGES);
	static struct seen seen = {0};
	struct pem_callback *cb;
	struct pem_log *log;

	(void)state;
	assert_int_equal(pem_statistics__enable(all), 0);
	cb = call_later(3, 8, &seen);
	log = log_faults(3, 8);
	pem_callback__enable(cb);
	touch();
	assert_int_equal(value_of(all).count, PAGES);
	wait_for(cb, 5);
	check_log(log, 5);
}

/* Each has the records that pass its own predicate; some are of two of them. */
static void each_taker_of_records_has_its_own(void **state)
{
	static struct seen few = {0}, many = {0}, late = {0};
	struct pem_callback *cb, *other;
	struct pem_log *log;

	(void)state;
	cb = call_later(6, 16, &few);
	pem_callback__enable(cb);
	touch();
	wait_for(cb, 10);
	log = log_faults(3, 8);
	other = call_later(0, PAGES, &many);
	touch();
	wait_for(cb, 20);
	assert_int_equal(many.count, 0);
	pem_callback__enable(other);
	touch();
	wait_for(cb, 30);
	wait_for(other, PAGES);
	assert_int_equal(few.least, of_page(6));
	assert_int_equal(few.last, of_page(15));
	assert_int_equal(many.least, of_page(0));
	assert_int_equal(many.last, of_page(PAGES - 1));
	/* One that ends leaves the others what is theirs; another may have what it had. */
	pem_callback__unregister(cb);
	cb = call_later(6, 16, &late);
	pem_callback__enable(cb);
	touch();
	wait_for(cb, 10);
	wait_for(other, 2 * PAGES);
	check_log(log, 15);
	assert_int_equal(few.count, 30);
}

/* What callbacks need to know of threads is nothing that such a log has asked for. */
static void a_log_of_programs_has_nothing_of_the_kernel(void **state)
{
	static struct seen seen = {0};
	struct pem_callback *cb = call_later(0, PAGES, &seen);
	struct pem_balance balance;
	struct pem_log *log;
	uint64_t of_event;

	(void)state;
	log = log_to_trace(session, "APP", &here);
	pem_callback__enable(cb);
	touch();
	wait_for(cb, PAGES);
	assert_int_equal(pem_log__finish(log, NULL), 0);
	assert_int_equal(read_trace(FAULT, &of_event, &balance), 0);
	assert_int_equal(balance.produced, 0);
}

/* One instance alone tells which thread runs. */
static void records_of_context_switches_are_refused_with_a_sentence(void **state)
{
	struct pem_event_set *set = events(session, "OS::Sched::Switch");
	struct pem_error error = {""};
	struct seen seen = {0};

	(void)state;
	assert_non_null(pem_session__register_async_callback(session, set, &here, see, &seen, NULL,
							     &error));
	assert_int_equal(pem_event_set__where(set, "nextTid == 1", &error), 0);
	assert_null(pem_session__register_log(session, set, &here, trace_path, &error));
	assert_int_equal(errno, EBUSY);
	assert_non_null(strstr(error.text, "open a second session"));
	pem_event_set__free(set);
}

int main(int argc, char **argv)
{
	char plugins[PATH_MAX + 16], *path = realpath(argc ? argv[0] : ".", NULL), *slash;

	slash = path ? strstr(path, "/tests/kernel_several") : NULL;
	if (slash)
		*slash = 0;
	snprintf(plugins, sizeof(plugins), "%s/lib/pem", path ? path : "");
	free(path);
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(each_statistic_is_its_own),
		TEST(records_and_statistics_are_apart),
		TEST(each_taker_of_records_has_its_own),
		TEST(a_log_of_programs_has_nothing_of_the_kernel),
		TEST(records_of_context_switches_are_refused_with_a_sentence),
	};

	setenv("PEM_PLUGIN_PATH", plugins, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
