/* SPDX-License-Identifier: MIT */
/*
 * module_supply.c - the module's free blocks of memory are those of /proc/buddyinfo, once or again
 * and again
 */
#include "module_fixture.h"

#define ZONES 16
#define ORDERS 16

struct zone {
	unsigned node;
	char name[20];
	uint64_t blocks[ORDERS];
	unsigned orders;
};

struct zones {
	struct zone zone[ZONES];
	unsigned count;
	uint64_t records;
};

static struct zone *zone_of(struct zones *zones, unsigned node, const char *name)
{
	struct zone *z;

	for (z = zones->zone; z < zones->zone + zones->count; z++)
		if (z->node == node && !strcmp(z->name, name))
			return z;
	assert_in_range(zones->count, 0, ZONES - 1);
	z = &zones->zone[zones->count++];
	z->node = node;
	snprintf(z->name, sizeof(z->name), "%s", name);
	return z;
}

/* "Node 0, zone    DMA32      1      2 ..." */
static void read_buddyinfo(struct zones *zones)
{
	FILE *f = fopen("/proc/buddyinfo", "r");
	char line[512], name[20];
	struct zone *z;
	unsigned node;
	int at, n;

	memset(zones, 0, sizeof(*zones));
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		assert_int_equal(sscanf(line, "Node %u, zone %19s %n", &node, name, &at), 2);
		z = zone_of(zones, node, name);
		while (z->orders < ORDERS &&
		       sscanf(line + at, "%lu %n", &z->blocks[z->orders], &n) == 1) {
			z->orders++;
			at += n;
		}
	}
	fclose(f);
}

static void see(void *arg, unsigned cpu, const struct pem_packet *packet, uint64_t clock,
		uint32_t id, const uint8_t *record)
{
	struct zones *zones = arg;
	uint16_t node, order;
	struct zone *z;

	(void)cpu, (void)packet, (void)clock;
	if (id != id_of(FREE_BLOCKS))
		return;
	memcpy(&node, record + 8, 2);
	memcpy(&order, record + 10, 2);
	z = zone_of(zones, node, (const char *)record + 24);
	assert_in_range(order, 0, ORDERS - 1);
	z->blocks[order] = distribution_of(record, 16);
	if (z->orders <= order)
		z->orders = order + 1u;
	zones->records++;
}

static uint64_t pages_of(const struct zone *z)
{
	uint64_t pages = 0;
	unsigned order;

	for (order = 0; order < z->orders && order < ORDERS; order++)
		pages += z->blocks[order] << order;
	return pages;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Memory comes and goes meanwhile: of the whole a part, and no more. */
static void the_module_and_buddyinfo_agree(void **state)
{
	struct pem_kmod_supply now = {.size = sizeof(now), .flags = PEM_KMOD_NOW};
	struct zones told, seen = {.count = 0};
	struct session *s = session_open();
	const struct zone *a, *b;
	unsigned i;

	(void)state;
	session_setup(s, 0, 8192, 8);
	session_event(s, FREE_BLOCKS, PEM_ACTION_LOG);
	s->seen = see;
	s->arg = &seen;
	assert_int_equal(ask(s, PEM_KMOD_SUPPLY, &now), -EBUSY);
	session_start(s);
	read_buddyinfo(&told);
	assert_int_equal(ask(s, PEM_KMOD_SUPPLY, &now), 0);
	session_finish(s);
	assert_int_equal(seen.count, told.count);
	for (i = 0; i < told.count; i++) {
		a = &told.zone[i];
		b = zone_of(&seen, a->node, a->name);
		assert_int_equal(b->orders, a->orders);
		assert_in_range(apart(pages_of(a), pages_of(b)), 0, 256 + pages_of(a) / 20);
	}
	assert_int_equal(seen.count, told.count);
	session_close(s);
}

static void it_looks_again_and_again_until_told_not_to(void **state)
{
	struct pem_kmod_supply supply = {.size = sizeof(supply), .interval_us = 10000};
	struct zones seen = {.count = 0};
	struct session *s = session_open();
	uint64_t one;

	(void)state;
	session_setup(s, 0, 8192, 64);
	session_event(s, FREE_BLOCKS, PEM_ACTION_LOG);
	s->seen = see;
	s->arg = &seen;
	assert_int_equal(ask(s, PEM_KMOD_SUPPLY, &supply), 0);
	session_work(s);
	session_run_until(s, &seen.records, 0);
	one = (uint64_t)seen.count * seen.zone[0].orders;
	assert_true(seen.records >= one && !(seen.records % one));
	/* Started again it goes on; told not to it does not. */
	session_run_until(s, &seen.records, 5 * one - 1);
	session_start(s);
	supply.interval_us = 0;
	assert_int_equal(ask(s, PEM_KMOD_SUPPLY, &supply), 0);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	session_drain(s);
	one = seen.records;
	session_start(s);
	usleep(50000);
	session_finish(s);
	assert_int_equal(seen.records, one);
	session_close(s);
}

static void a_predicate_chooses_orders(void **state)
{
	/* order >= 9, in the two bytes that end at 12 */
	struct pem_test test = {.mask = 0xffffull << 48,
				.lo = 9ull << 48,
				.span = (0xffffull - 9) << 48,
				.end = 12,
				.on_true = PEM_TEST_PASS,
				.on_false = PEM_TEST_FAIL};
	struct pem_kmod_supply now = {.size = sizeof(now), .flags = PEM_KMOD_NOW};
	struct pem_kmod_event event = event_of(FREE_BLOCKS, PEM_ACTION_LOG);
	struct zones seen = {.count = 0};
	struct session *s = session_open();
	unsigned i;

	(void)state;
	session_setup(s, 0, 8192, 8);
	event.tests = (uint64_t)(uintptr_t)&test;
	event.test_count = 1;
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), 0);
	s->seen = see;
	s->arg = &seen;
	session_start(s);
	assert_int_equal(ask(s, PEM_KMOD_SUPPLY, &now), 0);
	session_finish(s);
	assert_true(seen.count > 0);
	for (i = 0; i < seen.count; i++)
		assert_int_equal(seen.zone[i].blocks[8], 0);
	assert_int_equal(seen.records, (uint64_t)seen.count * (seen.zone[0].orders - 9));
	session_close(s);
}

static void what_makes_no_sense_is_refused(void **state)
{
	struct pem_kmod_supply bad[] = {
		{.size = 16, .interval_us = 999},
		{.size = 16, .flags = 2},
		{.size = 16, .reserved = 1},
		{.size = 16, .interval_us = 1000, .flags = PEM_KMOD_NOW},
		{.size = 3},
	};
	struct pem_kmod_supply fine = {.size = sizeof(fine), .interval_us = 1000000};
	struct session *s = session_open();
	unsigned i;

	(void)state;
	assert_int_equal(ask(s, PEM_KMOD_SUPPLY, &fine), -EBUSY);
	session_setup(s, 0, 8192, 8);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(ask(s, PEM_KMOD_SUPPLY, &bad[i]), -EINVAL);
	assert_int_equal(ask(s, PEM_KMOD_SUPPLY, NULL), -EFAULT);
	assert_int_equal(ask(s, PEM_KMOD_SUPPLY, &fine), 0);
	session_start(s);
	session_work(s);
	session_close(s); /* while it runs */
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_module_and_buddyinfo_agree),
		cmocka_unit_test(it_looks_again_and_again_until_told_not_to),
		cmocka_unit_test(a_predicate_chooses_orders),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
