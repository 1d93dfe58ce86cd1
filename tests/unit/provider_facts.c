// SPDX-License-Identifier: MIT
/* provider_facts.c - what pem-codegen tells of a provider is what its model's text tells */
#include "model_hash.h"
#include "producer/producer.h"
#include "producer/providers.h"
#include "programs/alike.h"
#include "stubs/libc.h"
#include "stubs/libc_io.h"
#include "stubs/libc_lock.h"
#include "stubs/mpi.h"
#include "stubs/sqlite.h"
#include "session_fixture.h"

static const struct {
	const struct pem_provider *provider;
	struct pem_provider_facts facts;
} known[] = {
	{&pem_provider_alike, {PEM_FACTS_alike, 0}},
	{&pem_provider_libc, {PEM_FACTS_libc, 0}},
	{&pem_provider_libc_io, {PEM_FACTS_libc_io, 0}},
	{&pem_provider_libc_lock, {PEM_FACTS_libc_lock, 0}},
	{&pem_provider_mpi, {PEM_FACTS_mpi, 0}},
	{&pem_provider_sqlite, {PEM_FACTS_sqlite, 0}},
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static void hashes_are_those_of_the_texts(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < KNOWN; i++)
		assert_int_equal(known[i].facts.model_hash,
				 pem_model__hash(known[i].provider->model,
						 strlen(known[i].provider->model)));
}

static void levels_are_those_of_the_texts(void **state)
{
	uint32_t seen = 0, k;
	size_t i;

	(void)state;
	for (i = 0; i < KNOWN; i++) {
		for (k = 0; k < known[i].provider->event_count; k++) {
			assert_int_equal(known[i].facts.levels[k],
					 pem_provider__level(known[i].provider, k));
			seen |= 1u << known[i].facts.levels[k];
		}
	}
	/* They are not all alike. */
	assert_true(__builtin_popcount(seen) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_those_of_the_texts),
		cmocka_unit_test(levels_are_those_of_the_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
