/* SPDX-License-Identifier: MIT */
/* model_metrics.c - metrics in a model's text: hostile lines are refused, good ones are kept once
 */
#include "model_internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "pem-model\t2\n"
#define EVENT(id, name)                                                                            \
	"event\t" id "\tAPP::T::" name "\tAPP\tT\t" name                                           \
	"\t1\tinfo\t-\t\t-\tstub\t\t8\t8\t0\t0\t\t\t\n"
#define METRIC "metric\tAPP::T::Share\tratio\tAPP::T::A\t\tAPP::T::B\t\tnone\tx\n"

#define QUOTIENT(of, to) "metric\tAPP::T::Part\tquotient\t" of "\t\t" to "\t\tnone\tx\n"

static struct pem_model *model;
static struct pem_error error;

static int set_up(void **state)
{
	(void)state;
	model = pem_model__new();
	return model ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	pem_model__free(model);
	return 0;
}

static int add(const char *text)
{
	error.text[0] = 0;
	return pem_model__add_text(model, text, strlen(text), "test", &error);
}

static void a_metric_is_kept_once(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(add(HEAD EVENT("00000101", "A") EVENT("00000102", "B") METRIC METRIC), 2);
	assert_int_equal(add(HEAD METRIC), 0);
	assert_int_equal(pem_model__metric_count(model), 1);
	assert_string_equal(pem_model__metric(model, 0)->to.event, "APP::T::B");
	assert_int_equal(pem_model__metric(model, 0)->form, PEM_METRIC_RATIO);
	assert_null(pem_model__metric(model, 1));
	text = pem_model__to_text(model);
	assert_non_null(strstr(text, METRIC));
	free(text);
}

static void a_text_of_metrics_alone(void **state)
{
	(void)state;
	assert_int_equal(add(HEAD METRIC), 0);
	assert_int_equal(pem_model__metric_count(model), 1);
}

static void bad_lines_are_refused(void **state)
{
	static const char *const texts[] = {
		HEAD "metric\tAPP::T::Share\tratio\tAPP::T::A\t\n",
		HEAD "metric\tAPP::T::Share\tsum\tAPP::T::A\t\tAPP::T::B\t\tnone\tx\n",
		HEAD "metric\tAPP::T::Share\t-\tAPP::T::A\t\tAPP::T::B\t\tnone\tx\n",
		HEAD "metric\t\tratio\tAPP::T::A\t\tAPP::T::B\t\tnone\tx\n",
		HEAD "metric\tAPP T\tratio\tAPP::T::A\t\tAPP::T::B\t\tnone\tx\n",
		HEAD "metric\tAPP::T::Share\tratio\t\t\tAPP::T::B\t\tnone\tx\n",
		HEAD "metric\tAPP::T::Share\tratio\tAPP::T::A\t\t\t\tnone\tx\n",
		HEAD "metric\tAPP::T::Share\trate\tAPP::T::A\t\tAPP::T::B\t\tnone\tx\n",
		HEAD "metric\tAPP::T::Share\tratio\tAPP::T::A\t\tAPP\x01T\t\tnone\tx\n",
		HEAD METRIC EVENT("00000101", "A"), /* events come first */
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (add(texts[i]) != -EINVAL || !error.text[0])
			fail_msg("text %zu: '%s'", i, error.text);
		assert_int_equal(pem_model__metric_count(model), 0);
		assert_int_equal(pem_model__count(model), 0);
	}
}

static void a_quotient_has_the_terms_of_its_sums(void **state)
{
	static const char text[] =
		HEAD QUOTIENT("4*APP::T::A.cents - APP::T::B+12*APP::T::C", "6*APP::T::B.cents");
	static const struct {
		const char *event, *field;
		int32_t factor;
		uint32_t is_divisor;
	} parts[] = {{"APP::T::A", "cents", 4, 0},
		     {"APP::T::B", "", -1, 0},
		     {"APP::T::C", "", 12, 0},
		     {"APP::T::B", "cents", 6, 1}};
	const struct pem_metric *m;
	char *written;
	size_t i;

	(void)state;
	assert_int_equal(add(text), 0);
	m = pem_model__metric(model, 0);
	assert_int_equal(m->form, PEM_METRIC_QUOTIENT);
	assert_int_equal(m->part_count, 4);
	for (i = 0; i < 4; i++) {
		assert_string_equal(m->parts[i].term.event, parts[i].event);
		assert_string_equal(m->parts[i].term.field, parts[i].field);
		assert_int_equal(m->parts[i].factor, parts[i].factor);
		assert_int_equal(m->parts[i].is_divisor, parts[i].is_divisor);
	}
	assert_string_equal(m->of.event, "APP::T::A");
	assert_string_equal(m->to.event, "APP::T::B");
	written = pem_model__to_text(model);
	assert_non_null(strstr(written, QUOTIENT("4*APP::T::A.cents-1*APP::T::B+12*APP::T::C",
						 "6*APP::T::B.cents")));
	free(written);
}

static void what_a_quotient_wrote_is_read_again(void **state)
{
	struct pem_model *again = pem_model__new();
	char *text, *twice;

	(void)state;
	assert_int_equal(add(HEAD QUOTIENT("APP::T::A-2*APP::T::B", "APP::T::A+APP::T::B")), 0);
	text = pem_model__to_text(model);
	assert_int_equal(pem_model__add_text(again, text, strlen(text), "again", &error), 0);
	twice = pem_model__to_text(again);
	assert_string_equal(text, twice);
	free(text);
	free(twice);
	pem_model__free(again);
}

#define FOUR_TERMS "APP::T::A+APP::T::A+APP::T::A+APP::T::A"

static void bad_sums_are_refused(void **state)
{
	static const char *const texts[] = {
		HEAD QUOTIENT("", "APP::T::A"),
		HEAD QUOTIENT("APP::T::A", ""),
		HEAD QUOTIENT("APP::T::A", "APP::T::A+"),
		HEAD QUOTIENT("-APP::T::A", "APP::T::A"),
		HEAD QUOTIENT("APP::T::A APP::T::B", "APP::T::A"),
		HEAD QUOTIENT("0*APP::T::A", "APP::T::A"),
		HEAD QUOTIENT("1000*APP::T::A", "APP::T::A"),
		HEAD QUOTIENT("99999999999999999999*APP::T::A", "APP::T::A"),
		HEAD QUOTIENT("*APP::T::A", "APP::T::A"),
		HEAD QUOTIENT("4*", "APP::T::A"),
		HEAD QUOTIENT("4*4*APP::T::A", "APP::T::A"),
		HEAD QUOTIENT("APP::T::A/APP::T::B", "APP::T::A"),
		HEAD QUOTIENT(".cents", "APP::T::A"),
		HEAD QUOTIENT(FOUR_TERMS, FOUR_TERMS "+APP::T::A"),
		HEAD "metric\tAPP::T::Part\tquotient\tAPP::T::A\tcents\tAPP::T::B\t\tnone\tx\n",
		HEAD "metric\tAPP::T::Part\tratio\t2*APP::T::A\t\tAPP::T::B\t\tnone\tx\n",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (add(texts[i]) != -EINVAL || !error.text[0] || pem_model__metric_count(model))
			fail_msg("text %zu: '%s'", i, error.text);
	assert_int_equal(add(HEAD QUOTIENT(FOUR_TERMS, FOUR_TERMS)), 0);
}

static void a_quotient_needs_all_of_its_events(void **state)
{
	struct pem_model *part = pem_model__new();

	(void)state;
	assert_int_equal(add(HEAD EVENT("00000101", "A") EVENT("00000102", "B")
				     QUOTIENT("APP::T::A-APP::T::B", "APP::T::A")),
			 2);
	pem_model__share(part, pem_model__event(model, 0));
	pem_model__share_metrics(part, model);
	assert_int_equal(pem_model__metric_count(part), 0);
	pem_model__share(part, pem_model__event(model, 1));
	pem_model__share_metrics(part, model);
	assert_int_equal(pem_model__metric_count(part), 1);
	pem_model__free(part);
}

static void a_model_has_the_metrics_of_its_events(void **state)
{
	struct pem_model *part = pem_model__new();

	(void)state;
	assert_int_equal(add(HEAD EVENT("00000101", "A") EVENT("00000102", "B") METRIC), 2);
	pem_model__share(part, pem_model__event(model, 0));
	pem_model__share_metrics(part, model);
	assert_int_equal(pem_model__metric_count(part), 0);
	pem_model__share(part, pem_model__event(model, 1));
	pem_model__share_metrics(part, model);
	pem_model__share_metrics(part, model);
	assert_int_equal(pem_model__metric_count(part), 1);
	pem_model__free(part);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_metric_is_kept_once),
		TEST(a_text_of_metrics_alone),
		TEST(bad_lines_are_refused),
		TEST(a_quotient_has_the_terms_of_its_sums),
		TEST(what_a_quotient_wrote_is_read_again),
		TEST(bad_sums_are_refused),
		TEST(a_quotient_needs_all_of_its_events),
		TEST(a_model_has_the_metrics_of_its_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
