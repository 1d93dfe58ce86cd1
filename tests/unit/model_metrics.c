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
		TEST(a_model_has_the_metrics_of_its_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
