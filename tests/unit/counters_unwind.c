// SPDX-License-Identifier: MIT
/* counters_unwind.c - callers of this thread, and of processes as they fork, exec and map */
#include "unwind_fixture.h"

#include <elf.h>
#include <link.h>

/* --- what the kernel sampled --- */

/* Does one of the callers from *at on lie in a function? *at is then the next. */
static int passes(int (*is_in)(uint64_t), const uint64_t *callers, unsigned count, unsigned *at)
{
	while (*at < count)
		if (is_in(callers[(*at)++] - 1))
			return 1;
	return 0;
}

static int names_the_chain(const uint64_t *callers, unsigned count)
{
	unsigned at = 1;

	/* Between compare and one are functions of libc. */
	return count > 7 && is_in_compare(callers[0] - 1) && !is_in_one(callers[1] - 1) &&
	       passes(is_in_one, callers, count, &at) && is_in_two(callers[at] - 1) &&
	       is_in_three(callers[at + 1] - 1) && is_in_four(callers[at + 2] - 1) &&
	       is_in_five(callers[at + 3] - 1) && passes(is_in_main, callers, count, &at);
}

static void callers_go_up_to_main(void **state)
{
	struct unwinder *unwinder;
	unsigned from = 0, seen = 0, named = 0;
	const struct taken *taken;

	(void)state;
	need_samples(sort);
	unwinder = open_trusting();
	while ((taken = spinning(&from))) {
		uint64_t callers[CALLERS_MAX];
		unsigned count = unwinder__unwind(unwinder, &taken->sample, callers, CALLERS_MAX);

		seen++;
		named += names_the_chain(callers, count) != 0;
	}
	print_message("%u of %u stacks are whole\n", named, seen);
	assert_true(seen > 10);
	assert_true(named * 10 >= seen * 9);
	assert_int_equal(unwinder__counts(unwinder)->prepared, 1);
	assert_int_equal(unwinder__counts(unwinder)->unwound, seen);
	unwinder__close(unwinder);
}

/* Has a thread that is to continue here just returned from the kernel? */
static int is_after_system_call(uint64_t address)
{
#ifdef __x86_64__
	static const uint8_t call[] = {0x0f, 0x05};
#else
	static const uint8_t call[] = {0x01, 0x00, 0x00, 0xd4};
#endif

	return !memcmp((const void *)(address - sizeof(call)), call, sizeof(call));
}

static void a_signal_shows_what_it_interrupted(void **state)
{
	struct unwinder *unwinder;
	unsigned from = 0, seen = 0, named = 0;
	const struct taken *taken;

	(void)state;
	need_samples(be_interrupted);
	unwinder = open_trusting();
	while ((taken = spinning(&from))) {
		uint64_t callers[CALLERS_MAX];
		unsigned count = unwinder__unwind(unwinder, &taken->sample, callers, CALLERS_MAX);
		unsigned at = 0;

		seen++;
		/* Then comes libc's return from the handler, and what raise waits in. */
		named += passes(is_in_handle, callers, count, &at) && at == 1 && count > 3 &&
			 is_after_system_call(callers[2] - 1) &&
			 passes(is_in_main, callers, count, &at);
	}
	assert_true(seen > 10);
	assert_true(named * 10 >= seen * 9);
	unwinder__close(unwinder);
}

static void the_kernels_library_has_callers(void **state)
{
	const struct ring_map *vdso = &sampling.maps[sampling.map_count - 1];
	struct unwinder *unwinder;
	unsigned i, seen = 0, named = 0;

	(void)state;
	need_samples(ask_for_time);
	unwinder = open_trusting();
	for (i = 0; i < sampling.count; i++) {
		const struct taken *taken = &sampling.taken[i];
		uint64_t callers[CALLERS_MAX];
		unsigned at = 0, count;

		if (taken->ip < vdso->address || taken->ip >= vdso->address + vdso->length)
			continue;
		count = unwinder__unwind(unwinder, &taken->sample, callers, CALLERS_MAX);
		seen++;
		named += passes(is_in_tell_time, callers, count, &at) &&
			 passes(is_in_main, callers, count, &at);
	}
	unwinder__close(unwinder);
	if (seen < 5) {
		print_message("time is not told by the vdso here\n");
		skip();
	}
	assert_true(named * 10 >= seen * 9);
}

static void of_a_cut_stack_the_inner_callers_are_told(void **state)
{
	struct unwinder *unwinder;
	uint64_t whole[CALLERS_MAX], part[CALLERS_MAX];
	unsigned from = 0, count, last = 0;
	struct taken *taken;
	size_t bytes, all;

	(void)state;
	need_samples(sort);
	unwinder = open_trusting();
	taken = spinning(&from);
	assert_non_null(taken);
	all = taken->sample.stack_bytes;
	count = unwinder__unwind(unwinder, &taken->sample, whole, CALLERS_MAX);
	for (bytes = 0; bytes <= all; bytes += 8) {
		unsigned now;

		taken->sample.stack_bytes = bytes;
		now = unwinder__unwind(unwinder, &taken->sample, part, CALLERS_MAX);
		assert_in_range(now, last, count);
		assert_memory_equal(part, whole, now * sizeof(part[0]));
		last = now;
	}
	assert_int_equal(last, count);
	for (last = 0; last <= count; last++)
		assert_int_equal(unwinder__unwind(unwinder, &taken->sample, part, last), last);
	unwinder__close(unwinder);
}

/* --- processes; their sample is always this one's --- */

static void no_more_processes_are_kept_than_allowed(void **state)
{
	enum { KEPT = 8, CHILDREN = 50, PID = 100000 };
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_unwinder((struct unwinder_options){
		.trusts_files = true, .process_max = KEPT, .ready_max = 3});
	uint32_t own = (uint32_t)getpid(), i;
	uint64_t prepared;
	unsigned all = callers_of(unwinder, taken, own);

	(void)state;
	assert_true(all > 0);
	for (i = 0; i < CHILDREN; i++) {
		assert_int_equal(unwinder__fork(unwinder, PID + i, own), 0);
		assert_int_equal(callers_of(unwinder, taken, PID + i), all);
	}
	assert_int_equal(unwinder__counts(unwinder)->forgotten, CHILDREN + 1 - KEPT);
	for (i = 0; i < CHILDREN; i++)
		assert_int_equal(callers_of(unwinder, taken, PID + i),
				 i + KEPT > CHILDREN ? all : 0);
	/* The last three can be unwound at once; this one is prepared again. */
	prepared = unwinder__counts(unwinder)->prepared;
	for (i = CHILDREN - 3; i < CHILDREN; i++)
		callers_of(unwinder, taken, PID + i);
	assert_int_equal(unwinder__counts(unwinder)->prepared, prepared);
	assert_int_equal(callers_of(unwinder, taken, own), all);
	assert_int_equal(callers_of(unwinder, taken, own), all);
	assert_int_equal(unwinder__counts(unwinder)->prepared, prepared + 1);
	unwinder__close(unwinder);
}

static void an_exec_replaces_memory(void **state)
{
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_trusting();
	uint32_t own = (uint32_t)getpid();

	(void)state;
	assert_int_equal(unwinder__fork(unwinder, 100000, own), 0);
	assert_true(callers_of(unwinder, taken, own) > 0);
	unwinder__forget(unwinder, own);
	assert_int_equal(callers_of(unwinder, taken, own), 0);
	assert_true(callers_of(unwinder, taken, 100000) > 0);
	unwinder__close(unwinder);
}

static void what_is_mapped_over_code_hides_it(void **state)
{
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_trusting();
	struct ring_map map = *own_code();
	unsigned all = callers_of(unwinder, taken, map.pid);

	(void)state;
	assert_true(all > 0);
	strcpy(map.path, "//anon");
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	assert_in_range(callers_of(unwinder, taken, map.pid), 0, all - 1);
	/* And again the file. */
	assert_int_equal(unwinder__map(unwinder, own_code()), 0);
	assert_int_equal(callers_of(unwinder, taken, map.pid), all);
	assert_int_equal(unwinder__counts(unwinder)->prepared, 3);
	/* To be told again changes nothing. */
	assert_int_equal(unwinder__map(unwinder, own_code()), 0);
	assert_int_equal(callers_of(unwinder, taken, map.pid), all);
	assert_int_equal(unwinder__counts(unwinder)->prepared, 3);
	unwinder__close(unwinder);
}

static int keep_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct ring_map *map = arg;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr);
		const ElfW(Nhdr) *note = (const void *)at;

		if (segment->p_type != PT_NOTE || note->n_type != NT_GNU_BUILD_ID ||
		    note->n_descsz > sizeof(map->build_id))
			continue;
		map->build_id_bytes = (uint8_t)note->n_descsz;
		memcpy(map->build_id, at + sizeof(*note) + 4, note->n_descsz);
	}
	return 1; /* this program comes first */
}

static void a_file_with_another_build_id_is_not_used(void **state)
{
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_trusting();
	struct ring_map map = *own_code();
	unsigned all = callers_of(unwinder, taken, map.pid);

	(void)state;
	dl_iterate_phdr(keep_id, &map);
	if (!map.build_id_bytes) {
		unwinder__close(unwinder);
		print_message("this program has no build id\n");
		skip();
	}
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	assert_int_equal(callers_of(unwinder, taken, map.pid), all);
	assert_int_equal(unwinder__counts(unwinder)->refused_files, 0);
	map.build_id[3] ^= 1;
	assert_int_equal(unwinder__map(unwinder, &map), 0);
	assert_in_range(callers_of(unwinder, taken, map.pid), 0, all - 1);
	assert_int_equal(unwinder__counts(unwinder)->refused_files, 1);
	unwinder__close(unwinder);
}

static void another_kind_of_process_has_no_callers(void **state)
{
	struct taken *taken = need_one();
	struct unwinder *unwinder = open_trusting();

	(void)state;
	taken->sample.abi = PERF_SAMPLE_REGS_ABI_32;
	assert_int_equal(callers_of(unwinder, taken, taken->sample.pid), 0);
	taken->sample.abi = PERF_SAMPLE_REGS_ABI_NONE;
	assert_int_equal(callers_of(unwinder, taken, taken->sample.pid), 0);
	taken->sample.abi = PERF_SAMPLE_REGS_ABI_64;
	assert_int_equal(callers_of(unwinder, taken, 100000), 0);
	assert_int_equal(unwinder__counts(unwinder)->failed, 3);
	unwinder__close(unwinder);
}

static void a_process_has_no_mappings_without_end(void **state)
{
	struct unwinder *unwinder = open_trusting();
	struct ring_map map = {.pid = 100000, .length = 4096, .path = "/bin/true"};
	unsigned i;
	int rc = 0;

	(void)state;
	for (i = 0; i < 10000 && !rc; i++) {
		map.address = i * 8192ull;
		rc = unwinder__map(unwinder, &map);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(unwinder__counts(unwinder)->refused_maps, 1);
	unwinder__close(unwinder);
}

OWN(main) int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_go_up_to_main),
		cmocka_unit_test(a_signal_shows_what_it_interrupted),
		cmocka_unit_test(the_kernels_library_has_callers),
		cmocka_unit_test(of_a_cut_stack_the_inner_callers_are_told),
		cmocka_unit_test(no_more_processes_are_kept_than_allowed),
		cmocka_unit_test(an_exec_replaces_memory),
		cmocka_unit_test(what_is_mapped_over_code_hides_it),
		cmocka_unit_test(a_file_with_another_build_id_is_not_used),
		cmocka_unit_test(another_kind_of_process_has_no_callers),
		cmocka_unit_test(a_process_has_no_mappings_without_end),
	};
	int failed = cmocka_run_group_tests(tests, set_up, tear_down);

	/* Else the call might be a jump, and main no caller. */
	work++;
	return failed;
}
