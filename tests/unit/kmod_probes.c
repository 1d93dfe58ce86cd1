/* SPDX-License-Identifier: MIT */
/*
 * kmod_probes.c - the module's generated probes, run in user space against a kernel made of macros: what they write
 *
 * The pool, the probes and what they call (kmod/pem_kmod.h) are those of the module; kmod_compiles.py has them compiled
 * for real kernels.
 */
#include "predicate_table.h"
#include "ring_fixture.h"

#include <pem/event.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

/* --- a kernel --- */

#define __percpu
#define __maybe_unused __attribute__((unused))
#define noinline __attribute__((noinline))
#define likely(x) __builtin_expect(!!(x), 1)
#define barrier() __asm__ volatile("" ::: "memory")
#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))
#define preempt_disable_notrace() (preempt_count++)
#define preempt_enable_notrace() (preempt_count--)
#define raw_cpu_ptr(p) (p)
#define smp_processor_id() 3

static __thread int preempt_count;
static const char *unreadable; /* this byte and all after it, to the end of its page */

/* Reads whole words around a string, as the kernel's does: no sanitizer's business. */
__attribute__((no_sanitize("address"))) static int
copy_from_kernel_nofault(void *to, const void *from, size_t bytes)
{
	const char *end = (const char *)from + bytes;
	size_t i;

	if (!from || (unreadable && end > unreadable && (const char *)from < unreadable + 4096))
		return -EFAULT;
	for (i = 0; i < bytes; i++)
		((volatile char *)to)[i] = ((const volatile char *)from)[i];
	return 0;
}

#include "kmod/pem_kmod.h"

/* It is of version 6.12 and declares two tracepoints. */
#define PEM_KERNEL_FROM(major, minor) ((major)*1000 + (minor) <= 6012)
#define PEM_KERNEL_UNTIL(major, minor) ((major)*1000 + (minor) >= 6012)
#define PEM_KMOD_CAN(tracepoint) PEM_KMOD_CAN_##tracepoint
#define PEM_KMOD_CAN_all 1
#define PEM_KMOD_CAN_choice 1
#define PEM_KMOD_CAN_nowhere 0

struct thing {
	uint64_t big;
	uint16_t three[3];
	char name[32];
};

static inline void check_trace_callback_type_all(void (*probe)(void *, struct thing *, int, bool,
							       const char *))
{
	(void)probe;
}

static inline __attribute__((unused)) void
check_trace_callback_type_choice(void (*probe)(void *, struct thing *, long))
{
	(void)probe;
}

#pragma GCC diagnostic ignored "-Wunused-parameter" /* the kernel does not ask for it */
#include "kmod_probes/pem_kmod_events.h"

/* --- a session on it --- */

enum { ALL, CHOICE, NOWHERE, COUNT };

struct machine {
	struct pool pool;
	struct pem_kmod_cpu cpu;
	uint64_t action[COUNT];
	uint64_t too_deep[COUNT];
	struct pem_kmod_session session;
};

static struct machine *make_machine(uint32_t chunks)
{
	struct machine *m = calloc(1, sizeof(*m));
	uint32_t i;

	assert_non_null(m);
	m->pool = pool_make(0, chunks);
	memset(m->pool.ring.chunks, 0xaa, (size_t)chunks * CHUNK);
	for (i = 0; i < PEM_KMOD_DEPTH; i++) {
		m->cpu.writers[i].lane_index = i + 1;
		m->cpu.writers[i].slots = m->pool.ring.slots + (i + 1) * EVENTS;
	}
	m->session = (struct pem_kmod_session){.ring = m->pool.ring,
					       .cpus = &m->cpu,
					       .action = m->action,
					       .too_deep = m->too_deep};
	unreadable = NULL;
	return m;
}

static void free_machine(struct machine *m)
{
	assert_int_equal(m->cpu.depth, 0);
	assert_int_equal(preempt_count, 0);
	pool_free(&m->pool);
	free(m);
}

static void raise_all(struct machine *m, struct thing *thing, int value, const char *text)
{
	((void (*)(void *, struct thing *, int, bool, const char *))pem_kmod_probes[ALL].probe)(
		&m->session, thing, value, true, text);
}

static void raise_choice(struct machine *m, struct thing *thing)
{
	((void (*)(void *, struct thing *, long))pem_kmod_probes[CHOICE].probe)(&m->session, thing,
										1);
}

static const uint8_t *first_record(const struct machine *m)
{
	return m->pool.ring.chunks + PEM_PACKET_HEADER_BYTES;
}

static struct thing thing = {.big = 0x1122334455667788, .three = {1, 2, 65535}, .name = "widget"};

/* --- tests --- */

static void a_record_is_laid_out_as_everywhere(void **state)
{
	struct machine *m = make_machine(2);
	const struct pem_packet *packet = (const struct pem_packet *)m->pool.ring.chunks;
	const uint8_t zero[7] = {0}, *at = first_record(m);
	const struct thing *place = &thing;
	int32_t value = -5;

	(void)state;
	m->action[ALL] = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1);
	raise_all(m, &thing, value, "a longer text than fits");
	assert_int_equal(((const struct pem_record_header *)at)->event_id,
			 pem_kmod_probes[ALL].event_id);
	assert_int_equal(at[8], 1);
	assert_memory_equal(at + 9, zero, 7);
	assert_memory_equal(at + 16, &thing.big, 8);
	assert_memory_equal(at + 24, &value, 4);
	assert_memory_equal(at + 28, thing.three, 6);
	assert_memory_equal(at + 34, zero, 6);
	assert_memory_equal(at + 40, &place, 8);
	assert_string_equal((const char *)at + 48, "widget");
	assert_string_equal((const char *)at + 55, "a longer text t");
	assert_int_equal(packet->content_size, (PEM_PACKET_HEADER_BYTES + 55 + 16) * 8);
	assert_int_equal(packet->source, PEM_PACKET_KERNEL);
	assert_int_equal(packet->cpu, 3);
	free_machine(m);
}

static void what_cannot_be_read_is_empty(void **state)
{
	char *page = aligned_alloc(4096, 8192);
	struct machine *m = make_machine(2);
	const uint8_t zero[6] = {0}, *at = first_record(m);

	(void)state;
	assert_non_null(page);
	strcpy(page + 4096 - 8, "no end.");
	page[4095] = 'x';
	unreadable = page + 4096;
	m->action[ALL] = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1);
	raise_all(m, &thing, 0, page + 4096 - 8);
	assert_string_equal((const char *)at + 55, "");
	/* one that ends with the page is read whole, though the next can't be */
	strcpy(page + 4096 - 8, "the end");
	raise_all(m, &thing, 0, page + 4096 - 5);
	assert_string_equal((const char *)at + 56 + 55, " end");
	raise_all(m, &thing, 0, NULL);
	assert_int_equal(m->cpu.writers[0].slots[ALL].produced, 3);
	unreadable = (const char *)thing.three;
	memset(m->pool.ring.chunks + CHUNK, 0xaa, CHUNK);
	pem_array((uint8_t *)m->pool.ring.chunks + CHUNK, 6, thing.three);
	assert_memory_equal(m->pool.ring.chunks + CHUNK, zero, 6);
	free(page);
	free_machine(m);
}

static void the_alternative_with_the_kernels_prototype_is_taken(void **state)
{
	struct machine *m = make_machine(2);
	int64_t number;

	(void)state;
	assert_int_equal(pem_kmod_probe_count, COUNT);
	assert_ptr_equal(pem_kmod_probes[CHOICE].probe, pem_probe2_made_up_choice);
	assert_string_equal(pem_kmod_probes[CHOICE].tracepoint, "choice");
	assert_null(pem_kmod_probes[NOWHERE].probe);
	assert_null(pem_kmod_probes[NOWHERE].tracepoint);
	m->action[CHOICE] = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1);
	raise_choice(m, &thing);
	memcpy(&number, first_record(m) + 8, 8);
	assert_int_equal(number, 0x1122334455667788);
	free_machine(m);
}

static void what_is_not_wanted_leaves_no_trace(void **state)
{
	struct machine *m = make_machine(2);

	(void)state;
	raise_all(m, NULL, 0, NULL);
	assert_int_equal(m->cpu.writers[0].slots[ALL].produced, 0);
	assert_null(m->cpu.writers[0].packet);
	free_machine(m);
}

static void statistics_keep_the_order_of_signed_values(void **state)
{
	struct machine *m = make_machine(2);
	struct pem_slot slot;

	(void)state;
	m->action[ALL] = PEM_ACTION(PEM_ACTION_STAT, 2, PEM_TYPE_INT32, 24, 7);
	raise_all(m, &thing, 10, "");
	raise_all(m, &thing, -20, "");
	assert_true(pem_slot_read(&m->cpu.writers[0].slots[ALL], &slot, 1));
	assert_int_equal(slot.stat_end, 2);
	assert_int_equal(PEM_ACTION_EPOCH(slot.tag << 32), 7);
	assert_int_equal((int64_t)slot.sum, -10);
	assert_int_equal((int64_t)(slot.min ^ 1ULL << 63), -20);
	assert_int_equal((int64_t)(slot.max ^ 1ULL << 63), 10);
	assert_null(m->cpu.writers[0].packet);
	free_machine(m);
}

static void a_probe_within_a_probe_has_a_lane_of_its_own(void **state)
{
	struct machine *m = make_machine(2);

	(void)state;
	m->action[ALL] = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1);
	m->cpu.depth = 1;
	raise_all(m, &thing, 0, "");
	assert_int_equal(m->cpu.writers[0].slots[ALL].produced, 0);
	assert_int_equal(m->cpu.writers[1].slots[ALL].produced, 1);
	m->cpu.depth = PEM_KMOD_DEPTH;
	raise_all(m, &thing, 0, "");
	assert_int_equal(m->too_deep[ALL], 1);
	m->cpu.depth = 0;
	free_machine(m);
}

static void *find_all_depths_taken(void *arg)
{
	struct pem_kmod_cpu cpu = {.depth = PEM_KMOD_DEPTH};
	struct pem_kmod_session session = *(struct pem_kmod_session *)arg;
	struct pem_kevent e;
	int i;

	session.cpus = &cpu;
	for (i = 0; i < 200000; i++)
		if (pem_begin(&e, &session, ALL))
			return arg;
	return NULL;
}

static void probes_too_deep_on_two_cpus_are_all_counted(void **state)
{
	struct machine *m = make_machine(2);
	pthread_t thread;
	void *result;

	(void)state;
	m->action[ALL] = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1);
	assert_int_equal(pthread_create(&thread, NULL, find_all_depths_taken, &m->session), 0);
	assert_null(find_all_depths_taken(&m->session));
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
	assert_int_equal(m->too_deep[ALL], 400000);
	free_machine(m);
}

static void a_full_pool_discards_and_counts(void **state)
{
	struct machine *m = make_machine(3);
	const struct pem_slot *slot = &m->cpu.writers[0].slots[ALL];
	uint64_t written = 0;
	uint32_t i;

	(void)state;
	m->action[ALL] = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1);
	for (i = 0; i < 1000; i++)
		raise_all(m, &thing, (int)i, "text");
	for (i = 0; i < 3; i++)
		written += ((const struct pem_packet *)(m->pool.ring.chunks + i * CHUNK))
				   ->record_count;
	assert_int_equal(slot->produced, 1000);
	assert_true(written > 100 && slot->discarded > 0);
	assert_int_equal(slot->produced, written + slot->discarded);
	free_machine(m);
}

/* Compile a predicate as a session would, for the event as its spec lays it out. */
static struct pem_filter *filter_of(const char *predicate)
{
	static const struct pem_field fields[] = {
		{"big", "", "", PEM_TYPE_UINT64, 0, 10, 0, 16, 1, 0, 0, NULL},
		{"below", "", "", PEM_TYPE_INT32, 0, 10, 0, 24, 1, 0, 0, NULL},
	};
	static const struct pem_event event = {
		.name = "OS::MadeUp::All", .fields = fields, .field_count = 2, .fixed_bytes = 48};
	static struct pem_expression expression;
	struct pem_filter *filter =
		calloc(1, sizeof(*filter) + PEM_TESTS_MAX * sizeof(struct pem_test));
	struct pem_error error = {""};
	int count;

	assert_non_null(filter);
	count = pem_expression__parse(&expression, table_text(predicate, "below", "big"), &error);
	if (!count)
		count = pem_expression__compile(&expression, &event,
						(struct pem_test *)(filter + 1), &error);
	if (count < 0)
		fail_msg("%s", error.text);
	filter->test_count = (uint32_t)count;
	return filter;
}

static void predicates_are_judged_as_the_table_says(void **state)
{
	const struct pem_filter *filters[COUNT] = {NULL};
	struct machine *m = make_machine(2);
	struct thing input = thing;
	uint64_t passed = 0;
	size_t p, i;

	(void)state;
	m->session.filters = filters;
	m->action[ALL] = PEM_ACTION(PEM_ACTION_STAT | PEM_ACTION_FILTER, PEM_NO_FIELD, 0, 0, 1);
	for (p = 0; p < TABLE_COUNT(table_predicates); p++) {
		struct pem_filter *filter = filter_of(table_predicates[p]);

		filters[ALL] = filter;
		for (i = 0; i < TABLE_COUNT(table_inputs); i++) {
			input.big = table_inputs[i].a;
			raise_all(m, &input, table_inputs[i].n, "");
			passed += table_answer(table_predicates[p], &table_inputs[i]);
			if (m->cpu.writers[0].slots[ALL].stat_end != passed)
				fail_msg("%s of n = %d, a = %llu", table_predicates[p],
					 table_inputs[i].n, (unsigned long long)input.big);
		}
		free(filter);
	}
	free_machine(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_laid_out_as_everywhere),
		cmocka_unit_test(what_cannot_be_read_is_empty),
		cmocka_unit_test(the_alternative_with_the_kernels_prototype_is_taken),
		cmocka_unit_test(what_is_not_wanted_leaves_no_trace),
		cmocka_unit_test(statistics_keep_the_order_of_signed_values),
		cmocka_unit_test(a_probe_within_a_probe_has_a_lane_of_its_own),
		cmocka_unit_test(probes_too_deep_on_two_cpus_are_all_counted),
		cmocka_unit_test(a_full_pool_discards_and_counts),
		cmocka_unit_test(predicates_are_judged_as_the_table_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
