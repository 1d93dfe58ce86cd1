// SPDX-License-Identifier: MIT
/*
 * entry_offer.c - a process and a session's consumer that make an entry for the same session: one
 * of them stays
 *
 * Every order of their steps is explored by tests/model/both_join.pml; here is what the library
 * does.
 */
#include "session_fixture.h"

#include "entry.h"

#include <pthread.h>

#define SESSION "session-7-0"
#define ROUNDS 20000

static const struct pem_session_entry wanted = {.session_id = 7, .folder = SESSION};
static struct pem_session_entry table[PEM_SESSIONS_MAX];

static bool has_consumer(void *arg, const char *name)
{
	(void)arg;
	(void)name;
	return true;
}

static int take(bool is_own, uint64_t *word)
{
	return pem_entry__take(table, has_consumer, NULL, is_own ? "" : SESSION, word);
}

static int offer(int index, uint64_t *word, bool is_own)
{
	return pem_entry__offer(table, index, word, &wanted, is_own);
}

static uint32_t state_of(int index)
{
	return PEM_ENTRY_STATE(table[index].word);
}

/* An entry that somebody has filled, and not yet looked whether there is another one. */
static int filled(bool is_own, uint64_t *word)
{
	int index = take(is_own, word);

	table[index].session_id = wanted.session_id;
	*word = table[index].word += PEM_ENTRY_FILLED - PEM_ENTRY_TAKEN;
	return index;
}

static int empty_table(void **state)
{
	(void)state;
	memset(table, 0, sizeof(table));
	return 0;
}

static void process_takes_back_what_a_consumer_has_filled(void **state)
{
	uint64_t theirs, own;
	int consumers, index;

	(void)state;
	consumers = filled(false, &theirs);
	index = take(true, &own);
	assert_int_equal(offer(index, &own, true), index);
	assert_int_equal(state_of(consumers), PEM_ENTRY_FREE);
	assert_int_equal(state_of(index), PEM_ENTRY_OFFERED);
	pem_entry__give_back(&table[consumers], theirs); /* it does not know yet */
	assert_int_equal(state_of(consumers), PEM_ENTRY_FREE);
	assert_int_equal(pem_entry__find(table, wanted.session_id), index);
}

static void process_leaves_what_a_consumer_has_only_taken(void **state)
{
	uint64_t theirs, own;
	int consumers, index;

	(void)state;
	consumers = take(false, &theirs);
	table[consumers].session_id = wanted.session_id; /* of whoever had it before */
	index = take(true, &own);
	assert_int_equal(offer(index, &own, true), index);
	assert_true(table[consumers].word == theirs);
	/* Its consumer then finds the process's. */
	assert_int_equal(offer(consumers, &theirs, false), index);
	assert_int_equal(state_of(consumers), PEM_ENTRY_FREE);
}

static void process_yields_to_what_is_offered(void **state)
{
	uint64_t theirs, own;
	int consumers, index;

	(void)state;
	index = take(true, &own);
	consumers = take(false, &theirs);
	assert_int_equal(offer(consumers, &theirs, false), consumers);
	assert_int_equal(offer(index, &own, true), consumers);
	assert_int_equal(state_of(index), PEM_ENTRY_FREE);
	assert_int_equal(state_of(consumers), PEM_ENTRY_OFFERED);
}

static void consumer_yields_to_what_the_process_has_filled(void **state)
{
	uint64_t theirs, own;
	int consumers, index;

	(void)state;
	consumers = take(false, &theirs);
	index = filled(true, &own);
	assert_int_equal(offer(consumers, &theirs, false), index);
	assert_int_equal(state_of(consumers), PEM_ENTRY_FREE);
	assert_int_equal(state_of(index), PEM_ENTRY_FILLED);
}

static void other_sessions_are_left_alone(void **state)
{
	static const struct pem_session_entry other = {.session_id = 8, .folder = "session-8-0"};
	uint64_t theirs, own;
	int consumers, index;

	(void)state;
	consumers = take(false, &theirs);
	assert_int_equal(pem_entry__offer(table, consumers, &theirs, &other, false), consumers);
	index = take(true, &own);
	assert_int_equal(offer(index, &own, true), index);
	assert_int_equal(state_of(consumers), PEM_ENTRY_OFFERED);
	assert_int_equal(state_of(index), PEM_ENTRY_OFFERED);
}

static pthread_barrier_t barrier;

/* Offers the session in each round, as the process or as the consumer. */
static void *rounds_of(void *is_own)
{
	uint64_t word;
	int i, index;

	for (i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		index = take(is_own != NULL, &word);
		if (index >= 0)
			offer(index, &word, is_own != NULL);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void both_at_once_make_one(void **state)
{
	pthread_t process, consumer;
	int i, index, count;

	(void)state;
	pthread_barrier_init(&barrier, NULL, 3);
	assert_int_equal(pthread_create(&process, NULL, rounds_of, table), 0);
	assert_int_equal(pthread_create(&consumer, NULL, rounds_of, NULL), 0);
	for (i = 0; i < ROUNDS; i++) {
		memset(table, 0, sizeof(table));
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		for (index = count = 0; index < (int)PEM_SESSIONS_MAX; index++)
			count += state_of(index) == PEM_ENTRY_OFFERED;
		assert_int_equal(count, 1);
	}
	pthread_join(process, NULL);
	pthread_join(consumer, NULL);
	pthread_barrier_destroy(&barrier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(process_takes_back_what_a_consumer_has_filled, empty_table),
		cmocka_unit_test_setup(process_leaves_what_a_consumer_has_only_taken, empty_table),
		cmocka_unit_test_setup(process_yields_to_what_is_offered, empty_table),
		cmocka_unit_test_setup(consumer_yields_to_what_the_process_has_filled, empty_table),
		cmocka_unit_test_setup(other_sessions_are_left_alone, empty_table),
		cmocka_unit_test_setup(both_at_once_make_one, empty_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
