/* SPDX-License-Identifier: MIT */
/*
 * record_key.c - which records belong together, as their specs say: group, scope, keys and
 * addresses
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pem/trace.h>

#include <string.h>

/* An event of two fields: a 32-bit one of a role, and a 64-bit one of another. */
#define EVENT(id, name, meaning, group, scope, role32, role64)                                     \
	"event\t" id "\tAPP::Key::" name "\tAPP\tKey\t" name "\t1\tinfo\t" meaning "\t" group      \
	"\t" scope "\tstub\t\t24\t24\t2\t0\t\t\t\n"                                                \
	"field\tnumber\tuint32\t-\t10\t" role32 "\t8\t1\t\t-\t0\t\n"                               \
	"field\tplace\tuint64\t-\t16\t" role64 "\t16\t1\t\t-\t0\t\n"

/* clang-format off */
static const char text[] = "pem-model\t2\n"
	EVENT("00000101", "Begin", "interval-begin", "Work", "thread", "key", "-")
	EVENT("00000102", "End", "interval-end", "Work", "thread", "key", "-")
	EVENT("00000103", "Other", "interval-end", "Rest", "thread", "key", "-")
	EVENT("00000104", "Irq", "interval-begin", "Irq", "cpu", "-", "-")
	EVENT("00000105", "Send", "send", "Wire", "system", "-", "key")
	EVENT("00000106", "Receive", "receive", "Wire", "system", "key", "-")
	EVENT("00000107", "Alloc", "allocation", "Heap", "process", "size", "address")
	EVENT("00000108", "Free", "release", "Heap", "process", "-", "address")
	EVENT("00000109", "Move", "allocation", "Heap", "process", "-", "old-address")
	EVENT("0000010a", "Plain", "-", "", "-", "key", "-");
/* clang-format on */

struct fixture {
	struct pem_model *model;
	uint8_t data[8][24] __attribute__((aligned(8)));
	unsigned used;
};

static int set_up(void **state)
{
	static struct fixture fixture;
	struct pem_error error;

	memset(&fixture, 0, sizeof(fixture));
	fixture.model = pem_model__new();
	if (pem_model__add_text(fixture.model, text, strlen(text), "test", &error) != 10)
		return -1;
	*state = &fixture;
	return 0;
}

static int tear_down(void **state)
{
	pem_model__free(((struct fixture *)*state)->model);
	return 0;
}

static uint64_t key_as(struct fixture *f, const char *name, uint32_t number, uint64_t place,
		       uint32_t pid, uint32_t tid, uint32_t cpu, enum pem_role role)
{
	struct pem_record record = {.pid = pid, .tid = tid, .cpu = cpu};
	uint8_t *data = f->data[f->used++ % 8];

	record.event = pem_model__by_name(f->model, name);
	assert_non_null(record.event);
	memcpy(data + 8, &number, sizeof(number));
	memcpy(data + 16, &place, sizeof(place));
	record.data = data;
	return pem_record__key(&record, role);
}

static uint64_t key(struct fixture *f, const char *name, uint32_t number, uint64_t place,
		    uint32_t pid, uint32_t tid, uint32_t cpu)
{
	return key_as(f, name, number, place, pid, tid, cpu, PEM_ROLE_ADDRESS);
}

static void a_begin_and_its_end_agree_in_group_thread_and_key(void **state)
{
	struct fixture *f = *state;
	uint64_t begin = key(f, "APP::Key::Begin", 7, 1, 10, 11, 0);

	assert_int_equal(key(f, "APP::Key::End", 7, 2, 10, 11, 1), begin);
	assert_int_not_equal(key(f, "APP::Key::End", 8, 1, 10, 11, 0), begin);
	assert_int_not_equal(key(f, "APP::Key::End", 7, 1, 10, 12, 0), begin);
	assert_int_not_equal(key(f, "APP::Key::Other", 7, 1, 10, 11, 0), begin);
}

static void a_cpu_s_interval_has_no_thread(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(key(f, "APP::Key::Irq", 1, 1, 10, 11, 3),
			 key(f, "APP::Key::Irq", 2, 2, 20, 21, 3));
	assert_int_not_equal(key(f, "APP::Key::Irq", 1, 1, 10, 11, 3),
			     key(f, "APP::Key::Irq", 1, 1, 10, 11, 4));
}

static void a_message_s_ends_agree_across_processes_and_widths(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(key(f, "APP::Key::Send", 0, 5000, 1, 1, 0),
			 key(f, "APP::Key::Receive", 5000, 0, 2, 2, 1));
	assert_int_not_equal(key(f, "APP::Key::Send", 0, 5000, 1, 1, 0),
			     key(f, "APP::Key::Receive", 5001, 0, 2, 2, 1));
}

static void a_block_is_known_by_its_address_in_its_process(void **state)
{
	struct fixture *f = *state;
	uint64_t block = key(f, "APP::Key::Alloc", 64, 0x1000, 1, 1, 0);

	assert_int_equal(key(f, "APP::Key::Free", 9, 0x1000, 1, 2, 0), block);
	assert_int_not_equal(key(f, "APP::Key::Free", 9, 0x1010, 1, 1, 0), block);
	assert_int_not_equal(key(f, "APP::Key::Free", 9, 0x1000, 2, 1, 0), block);
}

static void what_moves_a_block_ends_the_old_one(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(key_as(f, "APP::Key::Move", 0, 0x1000, 1, 1, 0, PEM_ROLE_OLD_ADDRESS),
			 key(f, "APP::Key::Alloc", 64, 0x1000, 1, 1, 0));
}

static void an_event_without_such_a_meaning_belongs_to_none(void **state)
{
	assert_int_equal(key(*state, "APP::Key::Plain", 1, 1, 1, 1, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_begin_and_its_end_agree_in_group_thread_and_key,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_cpu_s_interval_has_no_thread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_message_s_ends_agree_across_processes_and_widths,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_block_is_known_by_its_address_in_its_process,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_moves_a_block_ends_the_old_one, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(an_event_without_such_a_meaning_belongs_to_none,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
