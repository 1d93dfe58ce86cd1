// SPDX-License-Identifier: MIT
/*
 * module_ioctl.c - what each ioctl of /dev/pem makes of sizes, values, memory, chunks and processes
 * that make no sense or are not there
 *
 * Not here: mappings (module_map.c), memory (module_limits.c), what nobody thought of
 * (module_fuzz.c).
 */
#include "module_fixture.h"

#define PAGE 4096u

/* Memory before a page that can't be read. */
static uint8_t *before_hole(void)
{
	static uint8_t *at;

	if (!at) {
		at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
		assert_ptr_not_equal(at, MAP_FAILED);
		assert_int_equal(mprotect(at + PAGE, PAGE, PROT_NONE), 0);
	}
	return at + PAGE;
}

static struct session *ready(void)
{
	struct session *s = session_open();

	session_setup(s, 0, PEM_KMOD_CHUNK_BYTES_MIN, PEM_KMOD_CHUNKS_MIN);
	return s;
}

/* System calls until a chunk is full; it is not taken. */
static void fill_a_chunk(struct session *s)
{
	unsigned i;

	run_on(0);
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_start(s);
	for (i = 0; i < PEM_KMOD_CHUNK_BYTES_MIN / 24; i++)
		syscall(SYS_getppid);
}

static void sizes_of_other_versions(void **state)
{
	struct {
		struct pem_kmod_info info;
		uint64_t more;
	} large = {{.size = sizeof(large)}, 0};
	struct pem_kmod_info info = {.size = 12};
	struct session *s = session_open();

	(void)state;
	/* an older user's: it gets what it knows */
	info.features = 0x77;
	assert_int_equal(ask(s, PEM_KMOD_INFO, &info), 0);
	assert_int_equal(info.version, PEM_KMOD_VERSION);
	assert_true(info.event_count > 300);
	assert_int_equal(info.features, 0x77);
	/* a newer one's: what it knows more has to be 0 */
	assert_int_equal(ask(s, PEM_KMOD_INFO, &large), 0);
	assert_true(large.info.cpu_count > 0);
	large.more = 1;
	assert_int_equal(ask(s, PEM_KMOD_INFO, &large), -E2BIG);
	large.more = 0;
	large.info.reserved = 1;
	assert_int_equal(ask(s, PEM_KMOD_INFO, &large), -EINVAL);
	/* by number: the size in the command is of the user's header */
	info.size = sizeof(info);
	assert_int_equal(ask(s, _IOWR('P', 0, struct pem_kmod_list), &info), 0);
	assert_int_equal(ask(s, _IOWR('P', 255, struct pem_kmod_info), &info), -ENOTTY);
	assert_int_equal(ask(s, _IOWR('Q', 0, struct pem_kmod_info), &info), -ENOTTY);
	session_close(s);
}

static void sizes_of_no_version_are_refused(void **state)
{
	static const struct {
		uint32_t size;
		int error;
	} wrong[] = {{0, -EINVAL},
		     {3, -EINVAL},
		     {PAGE + 1, -E2BIG},
		     {0x80000000, -E2BIG},
		     {0xffffffff, -E2BIG}};
	static const unsigned long commands[] = {PEM_KMOD_INFO,  PEM_KMOD_EVENTS, PEM_KMOD_SETUP,
						 PEM_KMOD_EVENT, PEM_KMOD_TARGET, PEM_KMOD_TAKE,
						 PEM_KMOD_FREE};
	static uint32_t bytes[2 * PAGE];
	struct session *s = session_open();
	size_t i, c;

	(void)state;
	for (c = 0; c < sizeof(commands) / sizeof(commands[0]); c++) {
		for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			memset(bytes, 0, sizeof(bytes));
			bytes[0] = wrong[i].size;
			assert_int_equal(ask(s, commands[c], bytes), wrong[i].error);
		}
	}
	session_close(s);
}

static void the_device_is_not_read_or_written(void **state)
{
	struct session *s = ready();
	char bytes[8] = "";

	(void)state;
	assert_int_equal(read(s->fd, bytes, sizeof(bytes)), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(write(s->fd, bytes, sizeof(bytes)), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(lseek(s->fd, 0, SEEK_SET), -1);
	assert_int_equal(errno, ESPIPE);
	session_close(s);
}

static void setups_that_make_no_sense(void **state)
{
	const struct pem_kmod_setup good = {
		.size = sizeof(good), .chunk_bytes = 8192, .chunk_count = 8};
	struct pem_kmod_setup bad[] = {good, good, good, good, good, good, good, good, good};
	struct session *s = session_open();
	unsigned i;

	(void)state;
	bad[0].chunk_bytes = 4096;
	bad[1].chunk_bytes = 12288;
	bad[2].chunk_bytes = PEM_KMOD_CHUNK_BYTES_MAX * 2;
	bad[3].chunk_count = PEM_KMOD_CHUNKS_MIN - 1;
	bad[4].chunk_count = PEM_KMOD_CHUNKS_MAX + 1;
	bad[5].flags = 0x100;
	bad[6].flags = PEM_KMOD_ALONE;
	bad[7].reserved = 1;
	/* no room for its head before the next CPU's */
	bad[8].chunk_bytes = PEM_KMOD_CHUNK_BYTES_MAX;
	bad[8].chunk_count = PEM_KMOD_CHUNKS_MAX;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(ask(s, PEM_KMOD_SETUP, &bad[i]), -EINVAL);
	session_setup(s, 0, 8192, 8);
	bad[0] = good;
	assert_int_equal(ask(s, PEM_KMOD_SETUP, &bad[0]), -EBUSY);
	session_close(s);
}

static void what_comes_too_early_or_too_late(void **state)
{
	struct pem_kmod_event event = event_of(ENTER, PEM_ACTION_LOG);
	struct pem_kmod_target target = {.size = sizeof(target), .pid = 1};
	struct pem_kmod_chunks chunks = {.size = sizeof(chunks)};
	struct session *s = session_open();

	(void)state;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EBUSY);
	assert_int_equal(ask(s, PEM_KMOD_TARGET, &target), -EBUSY);
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), -EBUSY);
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), -EBUSY);
	assert_int_equal(ask(s, PEM_KMOD_START, NULL), -EBUSY);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), -EBUSY);
	session_setup(s, 0, 8192, 8);
	assert_int_equal(ask(s, PEM_KMOD_TARGET, &target), -EINVAL); /* no tree */
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), -EBUSY);
	session_start(s);
	assert_int_equal(ask(s, PEM_KMOD_START, NULL), -EBUSY);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	session_start(s);
	session_close(s);
}

static void events_that_make_no_sense(void **state)
{
	const struct pem_kmod_event good = event_of(ENTER, PEM_ACTION_LOG);
	struct pem_test test = {.mask = ~0ull,
				.span = 1,
				.end = 24,
				.on_true = PEM_TEST_PASS,
				.on_false = PEM_TEST_FAIL};
	struct session *s = ready();
	struct pem_kmod_event event = good;

	(void)state;
	event.action |= PEM_ACTION_FILTER;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	event = good;
	event.action |= PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION;
	event.distribution = PEM_DISTRIBUTION(PEM_DISTRIBUTION_COUNT, PEM_DISTRIBUTION_VARIANCE, 1);
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	event = good;
	event.cpu = 1u << 20;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	event = good;
	event.flags = 0x100;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	event = good;
	event.action = PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 0); /* no epoch */
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	event = good;
	event.pid = 0x7fffffff;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -ESRCH);
	event = good;
	event.tests = (uint64_t)(uintptr_t)&test;
	event.test_count = PEM_TESTS_MAX + 1;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	event.test_count = 1;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), 0);
	test.end = 25; /* beyond the record */
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	test.end = 24;
	test.on_true = 0; /* round and round */
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	test.on_true = PEM_TEST_PASS;
	test.is_float = 1;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EINVAL);
	session_close(s);
}

static void memory_that_is_not_there_is_efault(void **state)
{
	struct pem_kmod_event event = event_of(ENTER, PEM_ACTION_LOG);
	struct pem_kmod_list list = {.size = sizeof(list), .count = 4};
	struct session *s = ready();
	uint32_t *half = (uint32_t *)(void *)(before_hole() - 8);

	(void)state;
	assert_int_equal(ask(s, PEM_KMOD_INFO, NULL), -EFAULT);
	assert_int_equal(ask(s, PEM_KMOD_INFO, before_hole()), -EFAULT);
	assert_int_equal(ask(s, PEM_KMOD_INFO, (void *)0xffff888000000000ull), -EFAULT);
	*half = sizeof(event);
	assert_int_equal(ask(s, PEM_KMOD_EVENT, half), -EFAULT);
	list.entries = (uintptr_t)(before_hole() - 2 * sizeof(struct pem_kmod_listed));
	assert_int_equal(ask(s, PEM_KMOD_EVENTS, &list), -EFAULT);
	event.test_count = 2;
	event.tests = (uintptr_t)(before_hole() - sizeof(struct pem_test));
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -EFAULT);
	session_close(s);
}

static void a_chunk_that_could_not_be_told_is_not_lost(void **state)
{
	struct pem_kmod_chunks chunks = {.size = sizeof(chunks), .count = 8};
	struct pem_kmod_chunks *told;
	struct session *s = ready();
	uint32_t index[8];

	(void)state;
	fill_a_chunk(s);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	chunks.chunks = (uintptr_t)before_hole();
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), -EFAULT);
	/* Nor if the indices could, and not how many they are. */
	told = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(told, MAP_FAILED);
	chunks.chunks = (uintptr_t)index;
	*told = chunks;
	assert_int_equal(mprotect(told, PAGE, PROT_READ), 0);
	assert_int_equal(ask(s, PEM_KMOD_TAKE, told), -EFAULT);
	munmap(told, PAGE);
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
	assert_true(chunks.count > 0);
	session_close(s);
}

static void the_oldest_chunk_is_taken_first_one_at_a_time(void **state)
{
	struct pem_kmod_chunks chunks = {.size = sizeof(chunks), .count = 1};
	struct session *s = ready();
	const struct mapped *m = session_map(s, 0);
	uint64_t begin[PEM_KMOD_CHUNKS_MIN];
	uint32_t index, i;

	(void)state;
	fill_a_chunk(s);
	for (i = 0; i < PEM_KMOD_CHUNKS_MIN * PEM_KMOD_CHUNK_BYTES_MIN / 24; i++)
		syscall(SYS_getppid);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	chunks.chunks = (uintptr_t)&index;
	for (i = 0; i < PEM_KMOD_CHUNKS_MIN; i++) {
		assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
		assert_int_equal(chunks.count, 1);
		begin[i] = ((const struct pem_packet *)(m->ring.chunks +
							(uint64_t)index * m->ring.chunk_bytes))
				   ->timestamp_begin;
		assert_true(!i || begin[i] > begin[i - 1]);
		/* What is put back is the next again. */
		if (i == 2) {
			chunks.flags = PEM_KMOD_PUT_BACK;
			assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), 0);
			chunks.flags = 0;
			assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
			assert_int_equal(chunks.count, 1);
			assert_int_equal(
				((const struct pem_packet *)(m->ring.chunks +
							     (uint64_t)index * m->ring.chunk_bytes))
					->timestamp_begin,
				begin[i]);
		}
	}
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
	assert_int_equal(chunks.count, 0);
	session_close(s);
}

/* However it comes back, and though later ones are known already. */
static void what_is_put_back_is_in_its_place_again(void **state)
{
	static const uint32_t back[] = {3, 0, 4, 1, 2};
	struct session *s = ready();
	struct pem_kmod_chunks chunks = {.size = sizeof(chunks), .count = 5};
	uint32_t index[5], again[PEM_KMOD_CHUNKS_MIN], i;

	(void)state;
	run_on(0);
	fill_a_chunk(s);
	for (i = 0; i < PEM_KMOD_CHUNKS_MIN * PEM_KMOD_CHUNK_BYTES_MIN / 24; i++)
		syscall(SYS_getppid);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	chunks.chunks = (uintptr_t)index;
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
	assert_int_equal(chunks.count, 5);
	chunks.count = 1;
	chunks.flags = PEM_KMOD_PUT_BACK;
	for (i = 0; i < 5; i++) {
		chunks.chunks = (uintptr_t)&index[back[i]];
		assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), 0);
	}
	chunks.flags = 0;
	chunks.count = PEM_KMOD_CHUNKS_MIN;
	chunks.chunks = (uintptr_t)again;
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
	assert_int_equal(chunks.count, PEM_KMOD_CHUNKS_MIN);
	assert_memory_equal(again, index, sizeof(index));
	session_close(s);
}

static void chunks_that_are_not_the_callers(void **state)
{
	struct session *s = ready();
	uint32_t index[16] = {0};
	struct pem_kmod_chunks chunks = {
		.size = sizeof(chunks), .count = 1, .chunks = (uint64_t)(uintptr_t)index};

	(void)state;
	run_on(0);
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), -EINVAL); /* free already */
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_start(s);
	call(1);
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), -EINVAL); /* written to */
	index[0] = 8;
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), -EINVAL); /* none such */
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
	assert_int_equal(chunks.count, 1);
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), 0);
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), -EINVAL); /* twice */
	chunks.cpu = 4096;
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), -EINVAL);
	chunks.cpu = 0;
	chunks.count = 0xffffffff;
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), -EINVAL);
	session_close(s);
}

static void a_chunk_is_freed_by_the_file_that_took_it(void **state)
{
	struct pem_kmod_chunks chunks = {.size = sizeof(chunks), .count = 1};
	struct session *s = ready(), *other = ready();
	uint32_t index;

	(void)state;
	fill_a_chunk(s);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	chunks.chunks = (uintptr_t)&index;
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
	assert_int_equal(chunks.count, 1);
	assert_int_equal(ask(other, PEM_KMOD_FREE, &chunks), -EINVAL);
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), 0);
	session_close(other);
	session_close(s);
}

static void events_that_are_not_here_are_named_so(void **state)
{
	static struct pem_kmod_listed listed[1024];
	struct pem_kmod_list list = {
		.size = sizeof(list), .count = 1024, .entries = (uintptr_t)listed};
	struct pem_kmod_event event = event_of("OS::No::Such", PEM_ACTION_LOG);
	struct session *s = ready();
	uint32_t i, missing = 0;

	(void)state;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -ENOENT);
	assert_int_equal(ask(s, PEM_KMOD_EVENTS, &list), 0);
	for (i = 0; i < list.count; i++) {
		event.event_id = listed[i].event_id;
		if (listed[i].available)
			continue;
		missing++;
		assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), -ENOTSUP);
	}
	assert_true(missing > 0); /* no kernel has all of them */
	list.first = 0xffffffff;
	assert_int_equal(ask(s, PEM_KMOD_EVENTS, &list), 0);
	assert_int_equal(list.count, 0);
	session_start(s);
	session_close(s);
}

static void targets_that_are_no_process_are_esrch(void **state)
{
	struct pem_kmod_target target = {.size = sizeof(target), .pid = (uint32_t)getpid()};
	struct session *s = session_open();

	(void)state;
	session_setup(s, PEM_KMOD_TREE, PEM_KMOD_CHUNK_BYTES_MIN, PEM_KMOD_CHUNKS_MIN);
	assert_int_equal(ask(s, PEM_KMOD_TARGET, &target), 0);
	target.pid = 0x7ffffff0;
	assert_int_equal(ask(s, PEM_KMOD_TARGET, &target), -ESRCH);
	target.pid = 0;
	assert_int_equal(ask(s, PEM_KMOD_TARGET, &target), -ESRCH);
	session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_other_versions),
		cmocka_unit_test(sizes_of_no_version_are_refused),
		cmocka_unit_test(the_device_is_not_read_or_written),
		cmocka_unit_test(setups_that_make_no_sense),
		cmocka_unit_test(what_comes_too_early_or_too_late),
		cmocka_unit_test(events_that_make_no_sense),
		cmocka_unit_test(memory_that_is_not_there_is_efault),
		cmocka_unit_test(a_chunk_that_could_not_be_told_is_not_lost),
		cmocka_unit_test(the_oldest_chunk_is_taken_first_one_at_a_time),
		cmocka_unit_test(what_is_put_back_is_in_its_place_again),
		cmocka_unit_test(chunks_that_are_not_the_callers),
		cmocka_unit_test(a_chunk_is_freed_by_the_file_that_took_it),
		cmocka_unit_test(events_that_are_not_here_are_named_so),
		cmocka_unit_test(targets_that_are_no_process_are_esrch),
	};

	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
