/* SPDX-License-Identifier: MIT */
/*
 * kmod_probes.c - the module's generated probes, run in user space against a kernel made of macros:
 * what they write
 *
 * The pool, the probes and what they call (kmod/pem_kmod.h) are those of the module;
 * kmod_compiles.py has them compiled for real kernels.
 */
#include "kmod_fixture.h"
#include "predicate_table.h"

#include <signal.h>
#include <unistd.h>

static void raise_choice(struct machine *m, struct thing *input)
{
	((void (*)(void *, struct thing *, long))pem_kmod_probes[CHOICE].probe)(m->data, input, 1);
}

static const uint8_t *first_record(const struct machine *m)
{
	/* each chunk begins with one */
	return m->pool.ring.chunks + PEM_PACKET_HEADER_BYTES + SWITCH_BYTES;
}

/* --- tests --- */

static void a_record_is_laid_out_as_everywhere(void **state)
{
	struct machine *m = make_machine(2);
	const struct pem_packet *packet = (const struct pem_packet *)m->pool.ring.chunks;
	const uint8_t zero[7] = {0}, *at = first_record(m);
	const struct thing *place = &thing;
	int32_t value = -5;

	(void)state;
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
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
	assert_int_equal(packet->content_size,
			 (PEM_PACKET_HEADER_BYTES + SWITCH_BYTES + 55 + 16) * 8);
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
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	raise_all(m, &thing, 0, page + 4096 - 8);
	assert_string_equal((const char *)at + 55, "");
	/* one that ends with the page is read whole, though the next can't be */
	strcpy(page + 4096 - 8, "the end");
	raise_all(m, &thing, 0, page + 4096 - 5);
	assert_string_equal((const char *)at + 56 + 55, " end");
	raise_all(m, &thing, 0, NULL);
	assert_int_equal(m->cpu.writers[0].cells[ALL].produced, 3);
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
	assert_string_equal(pem_kmod_probes[CHOICE].tracepoint, "made_up:choice");
	assert_null(pem_kmod_probes[NOWHERE].probe);
	assert_null(pem_kmod_probes[NOWHERE].tracepoint);
	want(m, CHOICE, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	raise_choice(m, &thing);
	memcpy(&number, first_record(m) + 8, 8);
	assert_int_equal(number, 0x1122334455667788);
	free_machine(m);
}

static void the_modules_own_events_may_have_lists(void **state)
{
	static const uint64_t many[] = {~0ull, 2, 3};
	static const uint16_t few[] = {7, 8};
	struct machine *m = make_machine(2);
	const uint8_t *at = first_record(m), zero[7] = {0};

	(void)state;
	assert_true(pem_kmod_probes[OWN].is_emitted && !pem_kmod_probes[OWN].tracepoint);
	assert_false(pem_kmod_probes[ALL].is_emitted);
	want(m, OWN, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	pem_emit_made_up_own(m->data, 5, many, 3, "ab", few, 2);
	assert_int_equal(((const struct pem_record_header *)at)->event_id,
			 pem_kmod_probes[OWN].event_id);
	assert_int_equal(at[8], 5);
	assert_memory_equal(at + 9, zero, 3);
	assert_int_equal(*(const uint32_t *)(at + 12), 3);
	assert_int_equal(*(const uint32_t *)(at + 16), 2);
	assert_memory_equal(at + 20, zero, 4);
	assert_memory_equal(at + 24, many, sizeof(many));
	assert_string_equal((const char *)at + 48, "ab");
	assert_int_equal(at[51], 0);
	assert_memory_equal(at + 52, few, sizeof(few));
	free_machine(m);
}

static void counters_are_read_where_a_rule_says_so(void **state)
{
	struct machine *m = make_machine(2);

	(void)state;
	counters_read_at = 0;
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	raise_all(m, &thing, 1, "");
	assert_int_equal(counters_read_at, 0);
	want(m, ALL, PEM_ACTION(PEM_KACTION_COUNTERS, PEM_NO_FIELD, 0, 0, 1));
	raise_all(m, &thing, 1, "");
	assert_int_equal(counters_read_at, pem_kmod_probes[ALL].event_id);
	assert_int_equal(m->cpu.writers[0].cells[ALL].produced, 1);
	free_machine(m);
}

static void what_is_not_wanted_leaves_no_trace(void **state)
{
	struct machine *m = make_machine(2);

	(void)state;
	raise_all(m, NULL, 0, NULL);
	assert_int_equal(m->cpu.writers[0].cells[ALL].produced, 0);
	assert_null(m->cpu.writers[0].packet);
	free_machine(m);
}

static void statistics_keep_the_order_of_signed_values(void **state)
{
	struct machine *m = make_machine(2);
	struct pem_cell cell;

	(void)state;
	want(m, ALL, PEM_ACTION(PEM_ACTION_STAT, 2, PEM_TYPE_INT32, 24, 7));
	raise_all(m, &thing, 10, "");
	raise_all(m, &thing, -20, "");
	assert_true(pem_cell_read(&m->cpu.writers[0].cells[ALL], &cell, 1));
	assert_int_equal(cell.stat_end, 2);
	assert_int_equal(PEM_ACTION_EPOCH(cell.tag << 32), 7);
	assert_int_equal((int64_t)cell.sum, -10);
	assert_int_equal((int64_t)(cell.min ^ 1ULL << 63), -20);
	assert_int_equal((int64_t)(cell.max ^ 1ULL << 63), 10);
	assert_null(m->cpu.writers[0].packet);
	free_machine(m);
}

static void a_probe_within_a_probe_has_a_lane_of_its_own(void **state)
{
	struct machine *m = make_machine(2);

	(void)state;
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	m->cpu.depth = 1;
	raise_all(m, &thing, 0, "");
	assert_int_equal(m->cpu.writers[0].cells[ALL].produced, 0);
	assert_int_equal(m->cpu.writers[1].cells[ALL].produced, 1);
	m->cpu.depth = PEM_KMOD_DEPTH;
	raise_all(m, &thing, 0, "");
	assert_int_equal(m->pool.ring.cells[ALL].produced, 1);
	assert_int_equal(m->pool.ring.cells[ALL].discarded, 1);
	assert_int_equal(m->pool.ring.lanes[0].discarded, 1);
	m->cpu.depth = 0;
	free_machine(m);
}

struct two_cpus {
	struct pem_kmod_probe_data *data;
	struct pem_kmod_cpu cpu;
};

static void *find_all_depths_taken(void *arg)
{
	struct two_cpus *two = arg;
	int i;

	for (i = 0; i < 200000; i++)
		pem_kmod_no_lane(two->data, &two->cpu, ALL, PEM_ACTION_LOG | PEM_ACTION_STAT);
	return NULL;
}

static void what_cpus_without_a_pool_raise_is_counted_in_anothers(void **state)
{
	struct machine *m = make_machine(2);
	struct two_cpus two = {.data = m->data};
	pthread_t thread;

	(void)state;
	m->data->spare = &m->pool.ring;
	assert_int_equal(pthread_create(&thread, NULL, find_all_depths_taken, &two), 0);
	find_all_depths_taken(&two);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(m->pool.ring.cells[ALL].produced, 400000);
	assert_int_equal(m->pool.ring.cells[ALL].discarded, 400000);
	assert_int_equal(m->data->statistics_lost.counter, 400000);
	free_machine(m);
}

static void a_full_pool_discards_and_counts(void **state)
{
	struct machine *m = make_machine(3);
	const struct pem_cell *cells = m->cpu.writers[0].cells;
	uint64_t written = 0;
	uint32_t i;

	(void)state;
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	for (i = 0; i < 1000; i++)
		raise_all(m, &thing, (int)i, "text");
	for (i = 0; i < 3; i++)
		written += ((const struct pem_packet *)(m->pool.ring.chunks + i * CHUNK))
				   ->record_count;
	assert_int_equal(cells[ALL].produced, 1000);
	assert_int_equal(cells[SWITCH].produced, 3);
	assert_true(written > 100 && cells[ALL].discarded > 0);
	assert_int_equal(cells[ALL].produced + cells[SWITCH].produced,
			 written + cells[ALL].discarded);
	assert_int_equal(filled_count, 3);
	/* A chunk that was freed is found again, though the pool was not searched meanwhile. */
	pem_ring_give_back(&m->pool.ring, 1);
	raise_all(m, &thing, 0, "text");
	assert_int_equal(cells[SWITCH].produced, 4);
	free_machine(m);
}

/*
 * Whoever takes all chunks of an overwrite pool leaves none to reclaim: looking for one at each
 * event would take long.
 */
static void a_pool_that_is_all_taken_is_searched_once(void **state)
{
	struct machine *m = make_machine(3);
	struct pem_ring *ring = &m->cpu.ring;
	const struct pem_cell *cells = m->cpu.writers[0].cells;
	uint32_t i, hint;

	(void)state;
	ring->overwrite = 1;
	for (i = 0; i < 3; i++)
		ring->chunk_state[i] = PEM_CHUNK_WORD(PEM_CHUNK_READING, 1);
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	raise_all(m, &thing, 0, "text");
	hint = ring->header->chunk_hint;
	for (i = 0; i < 100; i++)
		raise_all(m, &thing, 0, "text");
	assert_int_equal(cells[ALL].discarded, 101);
	assert_int_equal(ring->header->chunk_hint, hint);
	/* As take.c puts one back, which may be reclaimed then. */
	ring->chunk_state[2] = PEM_CHUNK_WORD(PEM_CHUNK_FULL, 1);
	ring->header->freed++;
	raise_all(m, &thing, 0, "text");
	assert_int_equal(cells[ALL].discarded, 101);
	/* When it is full it is reclaimed, and nobody freed one. */
	i = 0;
	while (!filled_count && i++ < CHUNK)
		raise_all(m, &thing, 0, "text");
	assert_int_equal(filled_count, 1);
	assert_int_equal(cells[ALL].discarded, 101);
	assert_true(m->pool.ring.lanes[1].overwritten > 0);
	free_machine(m);
}

/* Until the writer's chunk is full, and another begun or found missing. */
static void fill_a_chunk(struct machine *m)
{
	unsigned before = filled_count, i = 0;

	while (filled_count == before && i++ < CHUNK)
		raise_all(m, &thing, 0, "text");
	assert_int_equal(filled_count, before + 1);
}

/*
 * More chunks are taken than a probe looks at: what it just filled is the newest, and full ones
 * behind them are older.
 */
static void an_overwrite_pool_gives_up_its_newest_chunk_last(void **state)
{
	enum { TAKEN = 4096, ALL_CHUNKS = TAKEN + 4 };
	struct machine *m = make_machine(ALL_CHUNKS);
	struct pem_ring *ring = &m->cpu.ring;
	const struct pem_cell *cells = m->cpu.writers[0].cells;
	const struct pem_lane *lane = &ring->lanes[2];
	uint32_t i;

	(void)state;
	ring->overwrite = 1;
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	raise_all(m, &thing, 0, "text");
	for (i = 1; i < ALL_CHUNKS; i++) {
		chunk_at(ring, i)->record_count = 1;
		ring->chunk_state[i] =
			PEM_CHUNK_WORD(i <= TAKEN ? PEM_CHUNK_READING : PEM_CHUNK_FULL, 2);
	}
	fill_a_chunk(m);
	assert_int_equal(ring->chunk_state[0], PEM_CHUNK_WORD(PEM_CHUNK_FULL, 1));
	assert_int_equal(cells[ALL].discarded, 1);
	for (i = TAKEN + 1; i < ALL_CHUNKS; i++) {
		raise_all(m, &thing, 0, "text");
		assert_int_equal(ring->chunk_state[i], PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 1));
		assert_int_equal(lane->overwritten, i - TAKEN);
		assert_int_equal(ring->lanes[1].overwritten, 0);
		fill_a_chunk(m);
	}
	/* The first that was filled is the oldest now; none was discarded for want of a chunk. */
	assert_int_equal(ring->chunk_state[0], PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 1));
	assert_true(ring->lanes[1].overwritten > 0);
	assert_int_equal(cells[ALL].discarded, 1);
	/* All others are taken: it is found again when they were looked at. */
	for (i = TAKEN + 1; i < ALL_CHUNKS; i++)
		ring->chunk_state[i] = PEM_CHUNK_WORD(PEM_CHUNK_READING, 1);
	fill_a_chunk(m);
	assert_int_equal(cells[ALL].discarded, 2);
	raise_all(m, &thing, 0, "text");
	assert_int_equal(ring->chunk_state[0], PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 1));
	assert_int_equal(cells[ALL].discarded, 2);
	free_machine(m);
}

static struct machine *interrupted;
static void *unreachable; /* a page of chunk states, which a search comes to */

/* Now it does: the rest of the search finds it, and so does this one, which interrupts. */
static void interrupt_search(int signal)
{
	(void)signal;
	if (mprotect(unreachable, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE))
		abort();
	raise_all(interrupted, &thing, 0, "text");
}

/* Both look at the same chunks: those behind them were looked at by none. */
static void a_search_that_is_interrupted_by_one_counts_once(void **state)
{
	enum { LAST = 4999 };
	struct sigaction action = {.sa_handler = interrupt_search, .sa_flags = SA_NODEFER}, old;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct machine *m = interrupted = make_machine(LAST + 1);
	struct pem_ring *ring = &m->cpu.ring;
	uint32_t i;

	(void)state;
	for (i = 0; i < LAST; i++)
		ring->chunk_state[i] = PEM_CHUNK_WORD(PEM_CHUNK_READING, 1);
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	unreachable = (void *)(((uintptr_t)&ring->chunk_state[1] + page - 1) & ~(page - 1));
	assert_true((uint32_t *)((uintptr_t)unreachable + page) <= &ring->chunk_state[4096]);
	assert_int_equal(sigaction(SIGSEGV, &action, &old), 0);
	assert_int_equal(mprotect(unreachable, page, PROT_NONE), 0);
	raise_all(m, &thing, 0, "text");
	assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
	assert_int_equal(m->cpu.writers[0].cells[ALL].discarded, 1);
	assert_int_equal(m->cpu.writers[1].cells[ALL].discarded, 1);
	for (i = 0; i < 3 && !m->cpu.writers[0].packet; i++)
		raise_all(m, &thing, 0, "text");
	assert_int_equal(ring->chunk_state[LAST], PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 1));
	free_machine(m);
}

static void distributions_are_kept_for_each_depth(void **state)
{
	struct machine *m = make_machine(2);
	const struct pem_distribution *distribution = &m->pool.ring.distributions[3 * LANES + 1];

	(void)state;
	m->rule[ALL].head.distribution = PEM_DISTRIBUTION(
		3, PEM_DISTRIBUTION_VARIANCE | PEM_DISTRIBUTION_HISTOGRAM | PEM_DISTRIBUTION_VALUES,
		1);
	want(m, ALL,
	     PEM_ACTION(PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION, 2, PEM_TYPE_INT32, 24, 7));
	raise_all(m, &thing, 5, "");
	raise_all(m, &thing, 5, "");
	raise_all(m, &thing, -3, "");
	assert_int_equal(distribution->end, 3);
	assert_int_equal(distribution->sum[0], 7);
	assert_int_equal(distribution->squares[0], 25 + 25 + 9);
	assert_int_equal(distribution->bucket[0], 1);
	assert_int_equal(distribution->bucket[3], 2);
	assert_int_equal(distribution->top[0].value, 5);
	assert_int_equal(distribution->top[0].count, 2);
	free_machine(m);
}

/* Compile a predicate as a session would, for the event as its spec lays it out. */
static void compile_predicate(struct pem_kmod_rule *rule, const char *predicate)
{
	static const struct pem_field fields[] = {
		{"big", "", "", PEM_TYPE_UINT64, 0, 10, 0, 16, 1, 0, 0, NULL},
		{"below", "", "", PEM_TYPE_INT32, 0, 10, 0, 24, 1, 0, 0, NULL},
	};
	static const struct pem_event event = {
		.name = "OS::MadeUp::All", .fields = fields, .field_count = 2, .fixed_bytes = 48};
	static struct pem_expression expression;
	struct pem_error error = {""};
	int count;

	count = pem_expression__parse(&expression, table_text(predicate, "below", "big"), &error);
	if (!count)
		count = pem_expression__compile(&expression, &event, rule->tests, &error);
	if (count < 0)
		fail_msg("%s", error.text);
	assert_true(
		pem_tests__valid(rule->tests, (uint32_t)count, pem_kmod_probes[ALL].fixed_bytes));
	rule->test_count = (uint32_t)count;
}

static void predicates_are_judged_as_the_table_says(void **state)
{
	struct machine *m = make_machine(2);
	struct thing input = thing;
	uint64_t passed = 0;
	size_t p, i;

	(void)state;
	want(m, ALL, PEM_ACTION(PEM_ACTION_STAT | PEM_ACTION_FILTER, PEM_NO_FIELD, 0, 0, 1));
	for (p = 0; p < TABLE_COUNT(table_predicates); p++) {
		compile_predicate(&m->rule[ALL].head, table_predicates[p]);
		for (i = 0; i < TABLE_COUNT(table_inputs); i++) {
			input.big = table_inputs[i].a;
			raise_all(m, &input, table_inputs[i].n, "");
			passed += table_answer(table_predicates[p], &table_inputs[i]);
			if (m->cpu.writers[0].cells[ALL].stat_end != passed)
				fail_msg("%s of n = %d, a = %llu", table_predicates[p],
					 table_inputs[i].n, (unsigned long long)input.big);
		}
	}
	free_machine(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_is_laid_out_as_everywhere),
		cmocka_unit_test(what_cannot_be_read_is_empty),
		cmocka_unit_test(the_alternative_with_the_kernels_prototype_is_taken),
		cmocka_unit_test(the_modules_own_events_may_have_lists),
		cmocka_unit_test(counters_are_read_where_a_rule_says_so),
		cmocka_unit_test(what_is_not_wanted_leaves_no_trace),
		cmocka_unit_test(statistics_keep_the_order_of_signed_values),
		cmocka_unit_test(a_probe_within_a_probe_has_a_lane_of_its_own),
		cmocka_unit_test(what_cpus_without_a_pool_raise_is_counted_in_anothers),
		cmocka_unit_test(a_full_pool_discards_and_counts),
		cmocka_unit_test(a_pool_that_is_all_taken_is_searched_once),
		cmocka_unit_test(an_overwrite_pool_gives_up_its_newest_chunk_last),
		cmocka_unit_test(a_search_that_is_interrupted_by_one_counts_once),
		cmocka_unit_test(distributions_are_kept_for_each_depth),
		cmocka_unit_test(predicates_are_judged_as_the_table_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
