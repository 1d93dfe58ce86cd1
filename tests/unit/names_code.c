// SPDX-License-Identifier: MIT
/*
 * names_code.c - which object an address is in, by process, and stacks: the limits of both
 *
 * Not here: names of what was located (names.c, kernel_names.c, e2e/report_functions).
 */
#include <pem/code.h>
#include <pem/record_layout.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAPPINGS_MAX 4096u /* of a process (libpem/names/memory.c) */
#define PAGE 4096u

/* As HW::HWPerf::Map has its fields. */
static const struct pem_field map_fields[] = {
	{.name = "address", .type = PEM_TYPE_UINT64, .role = PEM_ROLE_ADDRESS, .offset = 8},
	{.name = "length", .type = PEM_TYPE_UINT64, .role = PEM_ROLE_SIZE, .offset = 16},
	{.name = "offset", .type = PEM_TYPE_UINT64, .offset = 24},
	{.name = "path", .type = PEM_TYPE_STRING, .role = PEM_ROLE_NAME, .max_count = 64},
};
static const struct pem_event map_event = {.fields = map_fields,
					   .field_count = 4,
					   .fixed_bytes = 32,
					   .max_bytes = 96,
					   .meaning = PEM_MEANS_OBJECT};

static void map_of(struct pem_code *code, uint32_t pid, uint64_t address, uint64_t bytes,
		   const char *path)
{
	uint64_t words[12] = {0, address, bytes, 0};
	struct pem_record record = {.size = sizeof(record),
				    .event = &map_event,
				    .data = (const uint8_t *)words,
				    .pid = pid};

	record.bytes = (uint32_t)(32 + snprintf((char *)&words[4], 64, "%s", path) + 1);
	assert_int_equal(pem_code__map(code, &record), 0);
}

static void map(struct pem_code *code, uint32_t pid, uint64_t address, const char *path)
{
	map_of(code, pid, address, PAGE, path);
}

/* In process 1. */
static void map_bytes(struct pem_code *code, uint64_t address, uint64_t bytes, const char *path)
{
	map_of(code, 1, address, bytes, path);
}

/* The object that an instruction is in, or NULL. */
static const char *object_of(struct pem_code *code, uint32_t pid, uint64_t address)
{
	int64_t location = pem_code__locate(code, pid, NULL, address + 1);
	uint32_t object;

	assert_true(location >= 0);
	object = pem_code__location(code, (uint32_t)location)->object;
	return object == PEM_CODE_NONE ? NULL : pem_code__object(code, object)->path;
}

static void an_address_is_its_process_s(void **state)
{
	struct pem_code *code = pem_code__new();
	const uint64_t address = 0x400000;
	uint32_t pid;

	(void)state;
	assert_non_null(code);
	/* Many, so that whatever is remembered by address is another process's. */
	for (pid = 1; pid <= 20000; pid++)
		map(code, pid, address, pid % 3 ? "/one" : "/other");
	for (pid = 1; pid <= 20000; pid++)
		assert_string_equal(object_of(code, pid, address + 8), pid % 3 ? "/one" : "/other");
	pem_code__free(code);
}

static void a_process_has_so_many_mappings(void **state)
{
	struct pem_code *code = pem_code__new();
	uint64_t i;

	(void)state;
	assert_non_null(code);
	for (i = 0; i < MAPPINGS_MAX; i++)
		map(code, 1, (1 + 2 * i) * PAGE, "/one");
	assert_int_equal(pem_code__left_out(code), 0);
	map(code, 1, (1 + 2 * i) * PAGE, "/one");
	assert_int_equal(pem_code__left_out(code), 1);
	assert_null(object_of(code, 1, (1 + 2 * i) * PAGE));
	/* In place of another there is room. */
	map(code, 1, PAGE, "/two");
	assert_int_equal(pem_code__left_out(code), 1);
	assert_string_equal(object_of(code, 1, PAGE), "/two");
	assert_string_equal(object_of(code, 1, 3 * PAGE), "/one");
	pem_code__free(code);
}

/* --- forks --- */

static void fork_of(struct pem_code *code, uint32_t parent, uint32_t pid)
{
	const uint64_t words[5] = {0, 0, UINT64_MAX, parent, 0};
	struct pem_record record = {.size = sizeof(record),
				    .event = &map_event,
				    .data = (const uint8_t *)words,
				    .bytes = 33,
				    .pid = pid};

	assert_int_equal(pem_code__map(code, &record), 0);
}

static void a_forked_process_has_its_parent_s_memory_until_either_changes(void **state)
{
	struct pem_code *code = pem_code__new();

	(void)state;
	assert_non_null(code);
	map(code, 1, PAGE, "/one");
	fork_of(code, 1, 2);
	fork_of(code, 2, 3);
	map(code, 1, 5 * PAGE, "/parent");
	map(code, 2, PAGE, "/child");
	assert_string_equal(object_of(code, 1, PAGE), "/one");
	assert_string_equal(object_of(code, 1, 5 * PAGE), "/parent");
	assert_string_equal(object_of(code, 2, PAGE), "/child");
	assert_null(object_of(code, 2, 5 * PAGE));
	assert_string_equal(object_of(code, 3, PAGE), "/one");
	/* Another program. */
	fork_of(code, 0, 3);
	assert_null(object_of(code, 3, PAGE));
	assert_string_equal(object_of(code, 1, PAGE), "/one");
	pem_code__free(code);
}

/* Some bytes of a trace make a process, and would make so much memory. */
static void forked_processes_have_so_many_mappings_of_their_own(void **state)
{
	struct pem_code *code = pem_code__new();
	uint32_t pid, changed = 2;
	uint64_t i;

	(void)state;
	assert_non_null(code);
	for (i = 0; i < MAPPINGS_MAX; i++)
		map(code, 1, (1 + 2 * i) * PAGE, "/one");
	for (pid = 2; pid < 100000; pid++)
		fork_of(code, 1, pid);
	for (; pem_code__left_out(code) == 0 && changed < pid; changed++)
		map(code, changed, PAGE, "/two");
	assert_in_range(changed, 1000, 1100);
	/* The one that was left out has its parent's. */
	assert_string_equal(object_of(code, changed - 1, PAGE), "/one");
	assert_string_equal(object_of(code, changed - 2, PAGE), "/two");
	/* What is given back is room. */
	fork_of(code, 0, 2);
	map(code, changed, PAGE, "/two");
	assert_string_equal(object_of(code, changed, PAGE), "/two");
	assert_int_equal(pem_code__left_out(code), 1);
	pem_code__free(code);
}

/* --- data --- */

static void a_part_of_data_that_is_mapped_again_leaves_the_rest(void **state)
{
	struct pem_code *code = pem_code__new_data();
	uint64_t begin, end;

	(void)state;
	assert_non_null(code);
	map_bytes(code, 0x10000, 4 * PAGE, "/one");
	map_bytes(code, 0x10000 + PAGE, PAGE, "//anon");
	assert_string_equal(object_of(code, 1, 0x10000), "/one");
	assert_string_equal(object_of(code, 1, 0x10000 + PAGE), "//anon");
	assert_string_equal(object_of(code, 1, 0x10000 + 2 * PAGE - 1), "//anon");
	assert_string_equal(object_of(code, 1, 0x10000 + 2 * PAGE), "/one");
	assert_int_equal(pem_code__mapping(code, 1, NULL, 0x10000 + PAGE + 8, &begin, &end), 1);
	assert_int_equal(begin, 0x10000 + PAGE);
	assert_int_equal(end, 0x10000 + 2 * PAGE);
	assert_int_equal(pem_code__mapping(code, 1, NULL, 0x10000 + 4 * PAGE, &begin, &end), 0);
	pem_code__free(code);
}

static void memory_without_a_file_is_no_code(void **state)
{
	struct pem_code *code = pem_code__new();

	(void)state;
	assert_non_null(code);
	map_bytes(code, 0x10000, PAGE, "[heap]");
	assert_null(object_of(code, 1, 0x10000));
	pem_code__free(code);
}

/* --- stacks --- */

#define TOLD (2 * PEM_CODE_CALLERS_MAX)

static const struct pem_field sample_fields[] = {
	{.name = "pc", .type = PEM_TYPE_UINT64, .role = PEM_ROLE_CODE, .offset = 8},
	{.name = "callers",
	 .type = PEM_TYPE_LIST,
	 .element_type = PEM_TYPE_UINT64,
	 .offset = 16,
	 .max_count = TOLD},
};
static const struct pem_event sample_event = {.fields = sample_fields,
					      .field_count = 2,
					      .fixed_bytes = 20,
					      .max_bytes = 24 + 8 * TOLD,
					      .meaning = PEM_MEANS_SAMPLE};

static unsigned depth_of(const struct pem_code *code, int64_t node)
{
	unsigned depth = 0;
	uint32_t at;

	assert_true(node >= 0);
	for (at = (uint32_t)node; at != PEM_CODE_NONE; at = pem_code__caller(code, at))
		depth++;
	return depth;
}

/* The node of a sample with so many callers. */
static int64_t sample(struct pem_code *code, uint32_t callers)
{
	uint64_t *words = calloc(3 + TOLD, 8);
	struct pem_record record = {.size = sizeof(record),
				    .event = &sample_event,
				    .data = (const uint8_t *)words,
				    .bytes = 24 + 8 * callers,
				    .pid = 1};
	int64_t node;
	uint32_t i;

	assert_non_null(words);
	words[1] = 0x1000;
	memcpy(&words[2], &callers, sizeof(callers));
	for (i = 0; i < callers; i++)
		words[3 + i] = 0x2000 + i;
	node = pem_code__sample(code, &record, NULL);
	free(words);
	return node;
}

static void a_sample_has_its_callers_up_to_a_limit(void **state)
{
	struct pem_code *code = pem_code__new();
	uint32_t node;

	(void)state;
	assert_non_null(code);
	assert_int_equal(depth_of(code, sample(code, 0)), 1);
	node = (uint32_t)sample(code, 2);
	assert_int_equal(depth_of(code, node), 3);
	/* What is behind the instruction, then behind the calls. */
	assert_int_equal(pem_code__location(code, pem_code__node_location(code, node))->offset,
			 0x1001);
	node = pem_code__caller(code, node);
	assert_int_equal(pem_code__location(code, pem_code__node_location(code, node))->offset,
			 0x2000);
	assert_int_equal(depth_of(code, sample(code, PEM_CODE_CALLERS_MAX)),
			 1 + PEM_CODE_CALLERS_MAX);
	assert_int_equal(depth_of(code, sample(code, PEM_CODE_CALLERS_MAX + 1)),
			 1 + PEM_CODE_CALLERS_MAX);
	assert_int_equal(depth_of(code, sample(code, TOLD)), 1 + PEM_CODE_CALLERS_MAX);
	pem_code__free(code);
}

static void an_event_without_code_is_no_sample(void **state)
{
	struct pem_code *code = pem_code__new();
	const struct pem_record record = {.size = sizeof(record), .event = &map_event};

	(void)state;
	assert_non_null(code);
	assert_int_equal(pem_code__sample(code, &record, NULL), -EINVAL);
	pem_code__free(code);
}

static void a_stack_for_which_there_is_no_room_is_cut(void **state)
{
	uint64_t *addresses = calloc(PEM_CODE_NODES_MAX, sizeof(*addresses));
	const uint64_t other[] = {7, 8};
	struct pem_code *code = pem_code__new();
	int64_t node;
	size_t i;

	(void)state;
	assert_non_null(addresses);
	assert_non_null(code);
	for (i = 0; i < PEM_CODE_NODES_MAX; i++)
		addresses[i] = 5;
	node = pem_code__stack(code, 1, NULL, addresses, PEM_CODE_NODES_MAX);
	assert_int_equal(node, PEM_CODE_NODES_MAX - 1);
	assert_int_equal(pem_code__cut(code), 0);
	/* Its outermost caller is left. */
	node = pem_code__stack(code, 1, NULL, other, 2);
	assert_int_equal(depth_of(code, node), 1);
	node = pem_code__node_location(code, (uint32_t)node);
	assert_int_equal(pem_code__location(code, (uint32_t)node)->offset, 8);
	assert_int_equal(pem_code__cut(code), 1);
	pem_code__free(code);
	free(addresses);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_its_process_s),
		cmocka_unit_test(a_process_has_so_many_mappings),
		cmocka_unit_test(a_forked_process_has_its_parent_s_memory_until_either_changes),
		cmocka_unit_test(forked_processes_have_so_many_mappings_of_their_own),
		cmocka_unit_test(a_part_of_data_that_is_mapped_again_leaves_the_rest),
		cmocka_unit_test(memory_without_a_file_is_no_code),
		cmocka_unit_test(a_sample_has_its_callers_up_to_a_limit),
		cmocka_unit_test(an_event_without_code_is_no_sample),
		cmocka_unit_test(a_stack_for_which_there_is_no_room_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
