// SPDX-License-Identifier: MIT
/*
 * page_size_streams.c - the model beside exact simulation, on the streams of the benchmark
 *
 * They are longer than what the model keeps, so all of its answers are of samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agents/page-size/model/simulation.h"
#include "bench/page_size_streams.h"

#include <stdlib.h>
#include <string.h>

#define SITES 16u
#define REFERENCES 450000u
#define MAPPINGS 4u
#define PROGRAMS (sizeof(programs) / sizeof(programs[0]))
#define MACHINES (sizeof(machines) / sizeof(machines[0]))

static const uint64_t large_sites[MAPPINGS] = {0, 0xffff, 0xff3f, 0xadfa};

static struct page_mapping mapping_number(uint32_t i)
{
	struct page_mapping mapping = {{0}};
	uint32_t site;

	for (site = 0; site < SITES; site++)
		mapping.size[site] = large_sites[i] >> site & 1;
	return mapping;
}

static struct page_reference *new_stream(void)
{
	struct page_reference *references = calloc(REFERENCES, sizeof(*references));

	assert_non_null(references);
	return references;
}

static double percent(double walks, uint64_t references)
{
	return walks / (double)references * 100;
}

static double exact_percent(const struct page_geometry *geometry,
			    const struct page_mapping *mapping,
			    const struct page_reference *references)
{
	struct page_sites sites = {.count = SITES};
	struct page_result result;

	assert_int_equal(page_simulate(geometry, &sites, mapping, references, REFERENCES, &result),
			 0);
	return percent(result.walks, REFERENCES);
}

static double model_percent(const struct page_model *model, const struct page_mapping *mapping)
{
	struct page_sites sites = {.count = SITES};
	struct page_result result;
	double walks = 0;
	uint32_t i;

	assert_int_equal(page_model__cost(model, &sites, mapping, &result), 0);
	assert_int_equal(result.references, REFERENCES);
	for (i = 0; i < SITES; i++)
		walks += result.site_walks[i];
	assert_float_equal(walks, result.walks, 1);
	return percent(result.walks, REFERENCES);
}

static void miss_ratios_are_within_a_point(void **state)
{
	struct page_reference *references = new_stream();
	const struct page_geometry *geometry;
	struct page_mapping mapping;
	struct page_model *model;
	uint32_t m;
	size_t i;

	(void)state;
	for (i = 0; i < PROGRAMS * MACHINES; i++) {
		geometry = &machines[i % MACHINES].geometry;
		program__fill(&programs[i / MACHINES], SITES, references, REFERENCES);
		model = page_model__new(geometry, SITES, 1);
		assert_non_null(model);
		assert_int_equal(page_model__add(model, references, REFERENCES), 0);
		for (m = 0; m < MAPPINGS; m++) {
			mapping = mapping_number(m);
			assert_float_equal(model_percent(model, &mapping),
					   exact_percent(geometry, &mapping, references), 1);
		}
		page_model__free(model);
	}
	free(references);
}

/* Trees miss more and less than LRU does. */
static void trees_are_within_a_point(void **state)
{
	struct page_reference *references = new_stream();
	struct page_geometry geometry = machines[0].geometry;
	struct page_mapping mapping;
	struct page_model *model;
	uint32_t m, p;

	(void)state;
	geometry.levels[0].pools[0] = (struct page_pool){1, 64, 16, PAGE_TREE_PLRU};
	geometry.levels[1].pools[0] = (struct page_pool){3, 1024, 16, PAGE_TREE_PLRU};
	for (p = 2; p < PROGRAMS; p++) {
		program__fill(&programs[p], SITES, references, REFERENCES);
		model = page_model__new(&geometry, SITES, 1);
		assert_non_null(model);
		assert_int_equal(page_model__add(model, references, REFERENCES), 0);
		for (m = 0; m < MAPPINGS; m++) {
			mapping = mapping_number(m);
			assert_float_equal(model_percent(model, &mapping),
					   exact_percent(&geometry, &mapping, references), 1);
		}
		page_model__free(model);
	}
	free(references);
}

#define BURST 49152u
#define BURST_PERIOD 70001u

/* The misses of the bursts' references when all are simulated: no miss is for lack of what was. */
static double exact_of_bursts(const struct page_geometry *geometry,
			      const struct page_mapping *mapping,
			      const struct page_reference *references)
{
	struct page_sites sites = {.count = SITES};
	struct simulation *tlb = simulation__new(geometry, &sites, mapping, false);
	struct page_result result;
	struct level_hits hits;
	uint64_t from, count = 0;
	double walks = 0;

	assert_non_null(tlb);
	for (from = 0; from + BURST_PERIOD <= REFERENCES; from += BURST_PERIOD) {
		simulation__forget_counts(tlb);
		assert_int_equal(simulation__add(tlb, references + from, BURST), 0);
		simulation__report(tlb, geometry, &sites, mapping, BURST, &result, &hits);
		walks += result.walks;
		count += BURST;
		assert_int_equal(
			simulation__add(tlb, references + from + BURST, BURST_PERIOD - BURST), 0);
	}
	simulation__free(tlb);
	return percent(walks, count);
}

static struct page_model *read_bursts(const struct page_geometry *geometry,
				      const struct page_reference *references)
{
	struct page_model *model = page_model__new(geometry, SITES, 1);
	uint64_t from;

	assert_non_null(model);
	for (from = 0; from + BURST_PERIOD <= REFERENCES; from += BURST_PERIOD) {
		if (from)
			page_model__gap(model);
		assert_int_equal(page_model__add(model, references + from, BURST), 0);
	}
	return model;
}

/*
 * Two points: the first burst has no gap before it, so more of it is counted, and the heads of the
 * others are not counted, whatever phase they are of.
 */
static void bursts_are_as_the_whole(void **state)
{
	struct page_reference *references = new_stream();
	const struct page_geometry *geometry;
	struct page_sites sites = {.count = SITES};
	struct page_mapping mapping;
	struct page_result result;
	struct page_model *model;
	uint32_t m;
	size_t i;

	(void)state;
	for (i = 0; i < PROGRAMS * MACHINES; i++) {
		geometry = &machines[i % MACHINES].geometry;
		program__fill(&programs[i / MACHINES], SITES, references, REFERENCES);
		model = read_bursts(geometry, references);
		for (m = 0; m < MAPPINGS; m++) {
			mapping = mapping_number(m);
			assert_int_equal(page_model__cost(model, &sites, &mapping, &result), 0);
			assert_float_equal(percent(result.walks, result.references),
					   exact_of_bursts(geometry, &mapping, references), 2);
		}
		page_model__free(model);
	}
	free(references);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(miss_ratios_are_within_a_point),
		cmocka_unit_test(trees_are_within_a_point),
		cmocka_unit_test(bursts_are_as_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
