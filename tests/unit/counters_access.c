// SPDX-License-Identifier: MIT
/* counters_access.c - what processors that sample data tell, put into a ring by hand */
#include "sources/counters/data.h"

#include <pem/model.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct pem_model *model;
static const struct pem_event *event;

/* --- what a processor says of an access --- */

#define ACCESS(op, levels, number, remote_, tlb)                                                   \
	((union perf_mem_data_src){.mem_op = (op),                                                 \
				   .mem_lvl = (levels),                                            \
				   .mem_lvl_num = (number),                                        \
				   .mem_remote = (remote_),                                        \
				   .mem_dtlb = (tlb)}                                              \
		 .val)

static void is(uint64_t source, const char *access, const char *level, const char *tlb)
{
	static const char *const fields[] = {"access", "source", "tlb"};
	struct ring_sample sample = {.data_source = source, .data = {.address = 8}};
	const char *words[] = {access, level, tlb};
	uint8_t found[3];
	int i;

	access__find(&sample);
	found[0] = sample.data.access;
	found[1] = sample.data.source;
	found[2] = sample.data.tlb;
	for (i = 0; i < 3; i++)
		assert_string_equal(
			pem_field__label(&event->fields[pem_event__field(event, fields[i])],
					 found[i]),
			words[i]);
	assert_int_equal(sample.data.origin, DATA_ORIGIN_MEASURED);
}

/* As Linux writes them for the PEBS of Intel and the IBS of AMD. */
static void accesses_have_their_words(void **state)
{
	const uint64_t load = PERF_MEM_OP_LOAD, store = PERF_MEM_OP_STORE;
	const uint64_t hit = PERF_MEM_LVL_HIT, miss = PERF_MEM_LVL_MISS;
	const uint64_t both = PERF_MEM_TLB_HIT | PERF_MEM_TLB_L1 | PERF_MEM_TLB_L2;

	(void)state;
	is(ACCESS(load, hit | PERF_MEM_LVL_L1, 1, 0, both), "load", "l1", "l1OrL2");
	is(ACCESS(load, hit | PERF_MEM_LVL_LFB, 0xc, 0, PERF_MEM_TLB_MISS | PERF_MEM_TLB_L2),
	   "load", "fillBuffer", "walk");
	is(ACCESS(load, 0, 2, 0, PERF_MEM_TLB_HIT | PERF_MEM_TLB_L2), "load", "l2", "l2");
	is(ACCESS(load, 0, 3, 0, PERF_MEM_TLB_HIT | PERF_MEM_TLB_L1), "load", "l3", "l1");
	is(ACCESS(load, hit | PERF_MEM_LVL_REM_CCE1, 3, 1, 0), "load", "remoteCache", "unknown");
	is(ACCESS(load, hit | PERF_MEM_LVL_LOC_RAM, 0xd, 0, 0), "load", "memory", "unknown");
	is(ACCESS(load, hit | PERF_MEM_LVL_REM_RAM1, 0xd, 1, 0), "load", "remoteMemory", "unknown");
	is(ACCESS(load, 0, 0xb, 1, 0), "load", "remoteCache", "unknown");
	is(ACCESS(load, 0, 0xa, 0, 0), "load", "other", "unknown");
	/* Older kernels tell bits alone. */
	is(ACCESS(load, hit | PERF_MEM_LVL_L2, 0, 0, 0), "load", "l2", "unknown");
	is(ACCESS(load, hit | PERF_MEM_LVL_REM_CCE2, 0, 0, 0), "load", "remoteCache", "unknown");
	is(ACCESS(load, hit | PERF_MEM_LVL_REM_RAM2, 0xf, 0, 0), "load", "remoteMemory", "unknown");
	is(ACCESS(load, hit | PERF_MEM_LVL_UNC, 0, 0, PERF_MEM_TLB_NA), "load", "other", "unknown");
	/* A store missed the first level: where its line came from is not told. */
	is(ACCESS(store, miss | PERF_MEM_LVL_L1, 0, 0, PERF_MEM_TLB_L2), "store", "unknown",
	   "unknown");
	is(ACCESS(store | load, hit | PERF_MEM_LVL_L1, 0, 0, 0), "store", "l1", "unknown");
	is(ACCESS(PERF_MEM_OP_NA, PERF_MEM_LVL_NA, 0xf, 0, PERF_MEM_TLB_NA), "unknown", "unknown",
	   "unknown");
}

#define SNOOPED(snoop_, snoopx_)                                                                   \
	((union perf_mem_data_src){.mem_snoop = (snoop_), .mem_snoopx = (snoopx_)}.val)

/* From Linux's tables of what Intel's processors tell (arch/x86/events/intel). */
static void a_level_that_was_missed_is_no_source(void **state)
{
	const uint64_t load = PERF_MEM_OP_LOAD;
	const uint64_t hit = PERF_MEM_LVL_HIT, miss = PERF_MEM_LVL_MISS;

	(void)state;
	/* 0x00 of each */
	is(ACCESS(load, miss | PERF_MEM_LVL_L3, 3, 0, 0), "load", "unknown", "unknown");
	is(ACCESS(load, miss, 3, 0, 0), "load", "unknown", "unknown");
	/* Lion Cove's */
	is(ACCESS(load, miss | PERF_MEM_LVL_L3, 3, 0, 0) | SNOOPED(PERF_MEM_SNOOP_HITM, 0), "load",
	   "unknown", "unknown");
	is(ACCESS(load, hit, 5, 0, 0), "load", "fillBuffer", "unknown");
	is(ACCESS(load, hit, 6, 0, 0), "load", "other", "unknown");
	/* 0x0b before Skylake: the number says level 3, and the bits another node's memory. */
	is(ACCESS(load, hit | PERF_MEM_LVL_REM_RAM1, 3, 1, 0), "load", "remoteMemory", "unknown");
}

static void a_line_that_another_core_had_is_from_its_cache(void **state)
{
	const uint64_t l3 = ACCESS(PERF_MEM_OP_LOAD, PERF_MEM_LVL_HIT | PERF_MEM_LVL_L3, 3, 0, 0);

	(void)state;
	is(l3 | SNOOPED(PERF_MEM_SNOOP_NONE, 0), "load", "l3", "unknown");
	is(l3 | SNOOPED(PERF_MEM_SNOOP_MISS, 0), "load", "l3", "unknown");
	is(l3 | SNOOPED(PERF_MEM_SNOOP_HITM, 0), "load", "remoteCache", "unknown");
	is(l3 | SNOOPED(0, 1), "load", "remoteCache", "unknown");
	is(l3 | SNOOPED(0, 2), "load", "remoteCache", "unknown");
}

static void a_store_has_no_latency(void **state)
{
	const uint64_t hit = PERF_MEM_LVL_HIT | PERF_MEM_LVL_L1;
	struct ring_sample load = {.data_source = ACCESS(PERF_MEM_OP_LOAD, hit, 1, 0, 0)},
			   store = {.data_source = ACCESS(PERF_MEM_OP_STORE, hit, 1, 0, 0)};

	(void)state;
	load.data.latency = store.data.latency = 7;
	access__find(&load);
	access__find(&store);
	assert_int_equal(load.data.latency, 7);
	assert_int_equal(store.data.latency, 0);
}

static void no_address_is_no_measurement(void **state)
{
	struct ring_sample sample = {.data_source =
					     ACCESS(PERF_MEM_OP_NA, PERF_MEM_LVL_NA, 0, 0, 0)};

	(void)state;
	access__find(&sample);
	assert_int_equal(sample.data.origin, DATA_ORIGIN_NONE);
}

/* --- its records --- */

/* A PERF_RECORD_SAMPLE as precise__prepare asks for it. */
struct data_record {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time, address, abi, stack_pointer, weight, source;
};

static int next(struct ring *ring, struct ring_sample *sample, uint16_t mode, uint64_t weight)
{
	const struct data_record record = {
		{.type = PERF_RECORD_SAMPLE, .misc = mode, .size = sizeof(record)},
		.ip = 0x1000,
		.pid = 11,
		.tid = 12,
		.time = 77,
		.address = 0x2000,
		.abi = PERF_SAMPLE_REGS_ABI_64,
		.stack_pointer = 0x7000,
		.weight = weight,
		.source = 0x42};
	uint8_t data[128] = {0};

	memcpy(data, &record, sizeof(record));
	ring->data = data;
	ring->data_bytes = sizeof(data);
	ring->tail = 0;
	ring->has_data = 1;
	ring->register_count = 1;
	assert_int_equal(ring__time_ns(ring, sizeof(record)), 77);
	return ring__next(ring, sizeof(record), sample);
}

static void what_is_told_of_data_comes_out(void **state)
{
	struct ring_sample sample;
	struct ring ring = {0};

	(void)state;
	assert_int_equal(next(&ring, &sample, PERF_RECORD_MISC_USER, 300), RING_SAMPLE);
	assert_int_equal(sample.data.address, 0x2000);
	assert_int_equal(sample.data.latency, 300);
	assert_int_equal(sample.data_source, 0x42);
	assert_int_equal(sample.registers[0], 0x7000);
	assert_int_equal(next(&ring, &sample, PERF_RECORD_MISC_KERNEL, 0x100000005), RING_SAMPLE);
	assert_int_equal(sample.data.latency, UINT32_MAX);
}

static void samples_of_the_kernel_can_be_passed_over(void **state)
{
	struct ring ring = {.skips_kernel = 1};
	struct ring_sample sample;

	(void)state;
	assert_int_equal(next(&ring, &sample, PERF_RECORD_MISC_KERNEL, 1), 0);
	assert_int_equal(next(&ring, &sample, PERF_RECORD_MISC_HYPERVISOR, 1), 0);
	assert_int_equal(next(&ring, &sample, PERF_RECORD_MISC_USER, 1), RING_SAMPLE);
	assert_int_equal(ring.lost, 0);
}

static int load_catalogue(void **state)
{
	(void)state;
	model = pem_model__new();
	if (pem_model__add_catalogue(model, NULL) <= 0)
		return -1;
	event = pem_model__by_name(model, "HW::HWPerf::DataSample");
	return event ? 0 : -1;
}

static int free_catalogue(void **state)
{
	(void)state;
	pem_model__free(model);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accesses_have_their_words),
		cmocka_unit_test(a_level_that_was_missed_is_no_source),
		cmocka_unit_test(a_line_that_another_core_had_is_from_its_cache),
		cmocka_unit_test(a_store_has_no_latency),
		cmocka_unit_test(no_address_is_no_measurement),
		cmocka_unit_test(what_is_told_of_data_comes_out),
		cmocka_unit_test(samples_of_the_kernel_can_be_passed_over),
	};

	return cmocka_run_group_tests(tests, load_catalogue, free_catalogue);
}
